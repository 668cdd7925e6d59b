"""Tests of `torch.fx`."""
