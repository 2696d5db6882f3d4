"""Using a trained coder: data to sparse codes in batches, and sparse codes back to data."""

from softspike.inference.coding import Inference, as_array
from softspike.inference.decoding import decode_csr
from softspike.inference.growing import GrowingCSR

__all__ = ["GrowingCSR", "Inference", "as_array", "decode_csr"]
