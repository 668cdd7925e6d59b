"""`autocast` and the functions that control it; `ops/autocast.py` applies it to calls of functions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from tinytorch.core.device import device as Device
from tinytorch.core.mode import PerThread, traced_as
from tinytorch.core.tensor import Tensor
from tinytorch.core.warning import warn
from tinytorch.kernels import dtypes
from tinytorch.ops.autocast import Autocast, switch

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]

_AVAILABLE = ("cpu", "cuda", "xpu", "mps", "hpu", "mtia", "maia", "xla", "ipu", "privateuseone")
_BFLOAT16_DEVICES = ("cpu", "hpu", "maia", "xla")  # devices whose default dtype is bfloat16; float16 for others


class _State(PerThread):
    def __init__(self) -> None:
        self.enabled: dict[str, bool] = {}  # by device type
        self.dtypes: dict[str, dtypes.dtype] = {}  # the low-precision dtype, by device type
        self.cpu = Autocast()  # applies autocasting on the CPU, the only device
        self.nesting = 0  # number of enclosing `autocast` blocks


_state = _State()


def is_autocast_available(device_type: str) -> bool:
    """Return whether PyTorch supports autocasting on a device type."""
    return Device(device_type).type in _AVAILABLE


class autocast:
    """Run a block or function in low precision where that is safe; a context manager and decorator.

    Matrix products, convolutions and attention run in low precision; losses, matrix decompositions and other functions
    that need it in float32; all others in the dtype of their inputs. Parameters and their gradients stay in float32.

    Args:
        device_type: "cpu"; "cuda" warns and has no effect.
        dtype: the low precision, bfloat16 or float16; by default bfloat16 on the CPU.

    Raises:
        ImportError: on entry with bfloat16, if the package that implements it (the extra `bf16`) is not installed.

    Example:
        >>> layer = torch.nn.Linear(3, 1)
        >>> with torch.autocast("cpu", dtype=torch.float16):
        ...     out = layer(torch.ones(2, 3))
        ...     loss = torch.nn.functional.mse_loss(out, torch.zeros(2, 1))
        >>> loss.backward()
        >>> out.dtype, loss.dtype, layer.weight.grad.dtype
        (torch.float16, torch.float32, torch.float32)
    """

    __traced_as__ = "op"  # by `torch.compile`

    def __init__(
        self,
        device_type: str,
        dtype: dtypes.dtype | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        if not is_autocast_available(device_type):
            raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
        self.device = device_type
        self.fast_dtype = get_autocast_dtype(device_type) if dtype is None else dtype
        self._cache_enabled = is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        self._enabled = bool(enabled)
        if not enabled:
            return
        if device_type == "cuda":
            self._enabled = False
            warn("CUDA is not available or torch_xla is imported. Disabling autocast.", UserWarning)
        elif self.fast_dtype not in (dtypes.bfloat16, dtypes.float16):
            self._enabled = False
            name = device_type.upper()
            warn(
                f"In {name} autocast, but the target dtype is not supported. Disabling autocast.\n{name} Autocast only "
                "supports dtypes of torch.bfloat16, torch.float16 currently.",
                UserWarning,
            )

    def __enter__(self) -> autocast:
        if self._enabled and self.device == "cpu":
            _check_available(self.fast_dtype)
        before = (is_autocast_enabled(self.device), get_autocast_dtype(self.device), is_autocast_cache_enabled())
        set_autocast_dtype(self.device, self.fast_dtype)
        set_autocast_enabled(self.device, self._enabled)
        set_autocast_cache_enabled(self._cache_enabled)
        autocast_increment_nesting()
        # Attributes, as in PyTorch: after entering twice, the state before the second entry is restored.
        self.prev, self.prev_fastdtype, self.prev_cache_enabled = before
        return self

    def __exit__(self, *exc: object) -> None:
        if autocast_decrement_nesting() == 0:
            clear_autocast_cache()
        set_autocast_enabled(self.device, self.prev)
        set_autocast_dtype(self.device, self.prev_fastdtype)
        set_autocast_cache_enabled(self.prev_cache_enabled)

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that calls `func` with autocasting."""
        if not callable(func):
            raise TypeError(
                f"autocast()(func) requires a callable, but got {type(func).__name__}. Did you mean to use autocast "
                "as a context manager? For example:\n    with torch.autocast(device_type=...):\n"
                "        output = model(input)"
            )

        @functools.wraps(func)
        def autocasting(*args: Any, **kwargs: Any) -> Any:
            with self:
                return func(*args, **kwargs)

        return autocasting


# Settings -----------------------------------------------------------------------------------------


@traced_as("pure")
def is_autocast_enabled(device_type: str = "cuda", /) -> bool:
    """Return whether autocasting is enabled in this thread on a device type."""
    return _state.enabled.get(Device(device_type).type, False)


def set_autocast_enabled(device_type: Any, enabled: bool | None = None, /) -> None:
    """Enable or disable autocasting in this thread on a device type (CUDA, if the only argument is a bool)."""
    if enabled is None and not isinstance(device_type, str):
        device_type, enabled = "cuda", device_type
    if not isinstance(enabled, bool):
        raise TypeError(
            f"set_autocast_enabled(): argument 'enabled' (position 1) must be bool, not {type(enabled).__name__}"
        )
    kind = Device(device_type).type
    if kind == "cpu":
        if enabled:
            _check_available(get_autocast_dtype("cpu"))
        switch(_state.cpu, enabled)
    _state.enabled[kind] = enabled


def _check_available(dtype: dtypes.dtype) -> None:
    """Raise ImportError early if `dtype` is bfloat16 and its package is not installed."""
    _ = dtype.numpy


def get_autocast_dtype(device_type: str, /) -> dtypes.dtype:
    """Return the low-precision dtype of `autocast` on a device type."""
    kind = Device(device_type).type
    return _state.dtypes.get(kind, dtypes.bfloat16 if kind in _BFLOAT16_DEVICES else dtypes.float16)


def set_autocast_dtype(device_type: str, dtype: dtypes.dtype, /) -> None:
    """Set the low-precision dtype of `autocast` on a device type."""
    kind = Device(device_type).type
    if not isinstance(dtype, dtypes.dtype):
        raise TypeError(
            f"set_autocast_dtype(): argument 'dtype' (position 2) must be torch.dtype, not {type(dtype).__name__}"
        )
    if kind == "cpu":
        if is_autocast_enabled("cpu"):
            _check_available(dtype)
        if dtype is not _state.cpu.dtype:
            _state.cpu.kept.clear()
        _state.cpu.dtype = dtype
    _state.dtypes[kind] = dtype


def is_autocast_cache_enabled() -> bool:
    """Return whether `autocast` caches converted parameters."""
    return _state.cpu.caching


def set_autocast_cache_enabled(enabled: bool, /) -> None:
    """Set whether `autocast` caches converted parameters."""
    _state.cpu.caching = bool(enabled)


def clear_autocast_cache() -> None:
    """Clear the cache of converted parameters."""
    _state.cpu.kept.clear()


def autocast_increment_nesting() -> int:
    """Increment the number of enclosing `autocast` blocks, and return it."""
    _state.nesting += 1
    return _state.nesting


def autocast_decrement_nesting() -> int:
    """Decrement the number of enclosing `autocast` blocks, and return it."""
    _state.nesting -= 1
    return _state.nesting


def _deprecated(name: str, replacement: Callable[..., Any], device_type: str) -> Callable[..., Any]:
    """Return PyTorch's deprecated function for one device type, which calls `replacement`."""
    new = replacement.__name__
    argument = f", {new.rsplit('_', 1)[1]}" if new.startswith("set") else ""

    def function(*args: Any) -> Any:
        warn(
            f"torch.{name}({argument[2:]}) is deprecated. Please use torch.{new}('{device_type}'{argument}) instead.",
            DeprecationWarning,
        )
        return replacement(device_type, *args)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Call `{new}` for {device_type}: deprecated, as in PyTorch."
    return function


is_autocast_cpu_enabled = _deprecated("is_autocast_cpu_enabled", is_autocast_enabled, "cpu")
set_autocast_cpu_enabled = _deprecated("set_autocast_cpu_enabled", set_autocast_enabled, "cpu")
get_autocast_cpu_dtype = _deprecated("get_autocast_cpu_dtype", get_autocast_dtype, "cpu")
set_autocast_cpu_dtype = _deprecated("set_autocast_cpu_dtype", set_autocast_dtype, "cpu")
get_autocast_gpu_dtype = _deprecated("get_autocast_gpu_dtype", get_autocast_dtype, "cuda")
set_autocast_gpu_dtype = _deprecated("set_autocast_gpu_dtype", set_autocast_dtype, "cuda")


# autograd.Function under autocasting ---------------------------------------------------------------


def _cast(value: Any, device_type: str, dtype: dtypes.dtype) -> Any:
    """Return a value with its floating-point tensors, except float64, converted to `dtype`."""
    if isinstance(value, Tensor):
        eligible = value.dtype.is_floating_point and value.dtype is not dtypes.float64
        return value.to(dtype) if eligible and value.device.type == device_type else value
    if isinstance(value, (str, bytes, np.ndarray)):
        return value
    if isinstance(value, Mapping):
        return {_cast(key, device_type, dtype): _cast(item, device_type, dtype) for key, item in value.items()}
    if isinstance(value, Iterable):
        items = (_cast(item, device_type, dtype) for item in value)
        return type(value)(items) if isinstance(value, (list, tuple)) else items
    return value


def custom_fwd(fwd: Any = None, *, device_type: str, cast_inputs: dtypes.dtype | None = None) -> Any:
    """Decorate `forward` of a `Function` for use under autocasting.

    Args:
        cast_inputs: a dtype to which floating-point inputs are converted if autocasting is enabled; `forward` then
            runs without autocasting. None: `forward` runs with the current autocast state.

    Example:
        >>> class Double(torch.autograd.Function):
        ...     @staticmethod
        ...     @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
        ...     def forward(ctx, x):
        ...         return 2 * x
        ...     @staticmethod
        ...     @torch.amp.custom_bwd(device_type="cpu")
        ...     def backward(ctx, g):
        ...         return 2 * g
        >>> with torch.autocast("cpu", dtype=torch.float16):
        ...     Double.apply(torch.ones(1, dtype=torch.float16)).dtype
        torch.float32
    """
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(*args: Any, **kwargs: Any) -> Any:
        ctx, enabled = args[0], is_autocast_enabled(device_type)
        ctx._dtype = get_autocast_dtype(device_type)
        ctx._fwd_used_autocast = enabled and cast_inputs is None
        if not enabled or cast_inputs is None:
            return fwd(*args, **kwargs)
        args, kwargs = (_cast(value, device_type, cast_inputs) for value in (args, kwargs))
        with autocast(device_type, enabled=False):
            return fwd(*args, **kwargs)

    return forward


def custom_bwd(bwd: Any = None, *, device_type: str) -> Any:
    """Decorate `backward` of a `Function` with `custom_fwd`; it runs with the autocast state of `forward`."""
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(*args: Any, **kwargs: Any) -> Any:
        ctx = args[0]
        with autocast(device_type, ctx._dtype, ctx._fwd_used_autocast):
            return bwd(*args, **kwargs)

    return backward
