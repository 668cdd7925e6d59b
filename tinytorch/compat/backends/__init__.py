"""`torch.backends`: which libraries are there, and the switches that programs set for them."""

from ..backends import cpu, cuda, cudnn, mha, mkl, mkldnn, mps, openmp, opt_einsum

__all__ = ["cpu", "cuda", "cudnn", "mha", "mkl", "mkldnn", "mps", "openmp", "opt_einsum"]

fp32_precision = "none"
