"""Numerical kernels: arrays in, arrays out; NumPy and floor 0 only, never a Tensor."""
