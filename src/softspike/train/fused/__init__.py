"""The fused path of `train_replicas`: Triton kernels for the paper's models, whole steps captured as one CUDA graph."""

from softspike.train.fused.engine import train_fused
from softspike.train.fused.reading import NotFused

__all__ = ["NotFused", "train_fused"]
