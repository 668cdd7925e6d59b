"""Numerical kernels: arrays in, arrays out; NumPy and the facts of `core/` only, never a Tensor."""
