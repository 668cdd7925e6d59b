"""PyTorch's module of `Join`."""

from tinytorch.distributed._join import Join, Joinable, JoinHook, _JoinConfig

__all__ = ["Join", "JoinHook", "Joinable", "_JoinConfig"]
