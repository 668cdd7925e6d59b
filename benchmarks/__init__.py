"""How fast tinytorch is, beside PyTorch: `python -m benchmarks`."""
