"""Fused paths in Triton; each is beside the plain function it must equal, and tested against it."""
