"""`torch.version`: the version of PyTorch that tinytorch follows, and of the devices' libraries, which are None."""

from __future__ import annotations

from tinytorch import _version

from .torch_version import TorchVersion

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "rocm", "xpu"]

#: PyTorch's version, which programs compare with, and tinytorch's own as its local part.
__version__ = TorchVersion(f"{_version.PYTORCH}+tinytorch{_version.__version__}")
debug = False
cuda: str | None = None
git_version: str | None = None
hip: str | None = None
rocm: str | None = None
xpu: str | None = None
