"""Sparse autoencoders, the plain rivals: TopK, BatchTopK and JumpReLU, trained by the same loop."""

from softspike.autoencoder.base import Autoencoder
from softspike.autoencoder.batch_topk import BatchTopKAutoencoder
from softspike.autoencoder.jump_relu import JumpReLUAutoencoder
from softspike.autoencoder.topk import TopKAutoencoder

__all__ = ["Autoencoder", "BatchTopKAutoencoder", "JumpReLUAutoencoder", "TopKAutoencoder"]
