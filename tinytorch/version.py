"""`torch.version`: which version this is, and what it was built for (floor 4)."""

from __future__ import annotations

from tinytorch._version import __version__

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "rocm", "xpu"]

debug = False
cuda: str | None = None
git_version: str | None = None
hip: str | None = None
rocm: str | None = None
xpu: str | None = None
