"""Tests of sparse tensors, against PyTorch."""
