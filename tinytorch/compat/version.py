"""`torch.version`: which version this is, and what it was built for."""

from __future__ import annotations

from tinytorch import _version

from .torch_version import TorchVersion

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "rocm", "xpu"]

#: PyTorch's version, which programs ask for; ours follows it.
__version__ = TorchVersion(f"{_version.PYTORCH}+tinytorch{_version.__version__}")
debug = False
cuda: str | None = None
git_version: str | None = None
hip: str | None = None
rocm: str | None = None
xpu: str | None = None
