"""Fused paths in Triton, and in numba on a CPU; each is tested against the plain function it must equal."""
