"""`torch._C._nn`: functions of `nn.functional`, and the one that parses the arguments of `Module.to`."""

from typing import Any

from tinytorch.core.device import device
from tinytorch.nn import functional
from tinytorch.nn.modules.module import _parse_to as _parsed


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """Return the device, the dtype, `non_blocking` and the memory format among the arguments of `to`.

    Example:
        >>> torch._C._nn._parse_to("cpu", torch.float64)
        (device(type='cpu'), torch.float64, False, None)
    """
    memory_format = kwargs.pop("memory_format", None)
    place, dtype, non_blocking = _parsed(*args, **kwargs) if args or kwargs else (None, None, False)
    return place if place is None else device(place), dtype, non_blocking, memory_format


def __getattr__(name: str) -> Any:
    found = getattr(functional, "logsigmoid" if name == "log_sigmoid" else name, None)
    if found is None or getattr(found, "binds", True):  # (PyTorch defines it in Python)
        raise AttributeError(f"module 'torch._C._nn' has no attribute {name!r}")
    return found
