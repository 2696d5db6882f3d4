"""Loops over rows compiled by numba, on torch's own threads; each beside the plain function it must equal."""
