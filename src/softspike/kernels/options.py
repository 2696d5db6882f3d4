"""What every kernel is compiled with."""

__all__ = ["FUSED"]

# A product and the sum it goes into are one instruction. Said, since Triton's own choice changes with 3.10.
FUSED = {"enable_fp_fusion": True}
