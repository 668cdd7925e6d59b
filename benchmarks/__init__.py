"""Benchmarks of tinytorch and PyTorch: `python -m benchmarks`."""
