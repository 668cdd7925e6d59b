"""The version of the package, and of the PyTorch that it does as, in one place."""

__version__ = "0.1.0"
PYTORCH = "2.13.0"
