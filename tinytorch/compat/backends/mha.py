"""`torch.backends.mha`: the switch of attention's fast path."""

from tinytorch.nn.modules._fast_path import get_fastpath_enabled, set_fastpath_enabled

__all__ = ["get_fastpath_enabled", "set_fastpath_enabled"]
