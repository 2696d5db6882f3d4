"""2  x → h: the inference network's backbone. Heads for each parameter sit in `posterior`."""

from softspike.encoder.base import Encoder
from softspike.encoder.conv import ConvEncoder
from softspike.encoder.linear import LinearEncoder
from softspike.encoder.mlp import MLPEncoder
from softspike.encoder.unrolled import UnrolledEncoder

__all__ = ["ConvEncoder", "Encoder", "LinearEncoder", "MLPEncoder", "UnrolledEncoder"]
