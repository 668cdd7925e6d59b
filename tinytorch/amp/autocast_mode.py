"""`autocast`, and the switches below it; `ops/autocast.py` is what the functions see of it."""

from __future__ import annotations

import functools
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from tinytorch.core.device import device as Device
from tinytorch.core.tensor import Tensor
from tinytorch.kernels import dtypes
from tinytorch.ops.autocast import Autocast, switch

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]

_AVAILABLE = ("cpu", "cuda", "xpu", "mps", "hpu", "mtia", "maia", "xla", "ipu", "privateuseone")
_LOW = ("cpu", "hpu", "maia", "xla")  # … whose low precision is bfloat16; float16 elsewhere


class _State(threading.local):
    """What a thread was told about autocasting."""

    def __init__(self) -> None:
        self.enabled: dict[str, bool] = {}  # whether it is on, by kind of device
        self.dtypes: dict[str, dtypes.dtype] = {}  # its low precision, by kind of device
        self.cpu = Autocast()  # what makes it happen on the CPU, the one device that there is
        self.nesting = 0  # how many `autocast`s are around


_state = _State()


def is_autocast_available(device_type: str) -> bool:
    """Return whether PyTorch has autocasting for a kind of device.

    Raises:
        RuntimeError: there is no such kind.

    Example:
        >>> torch.amp.is_autocast_available("cpu")
        True
    """
    return Device(device_type).type in _AVAILABLE


class autocast:
    """Run what is inside in low precision where that is safe: a context manager and a decorator.

    Matrix products, convolutions and attention run in the low precision; losses, decompositions of matrices and what
    else needs it in float32; all others in the precision of their inputs. Parameters stay in float32, and so do
    their gradients.

    Args:
        device_type: "cpu"; for "cuda" it warns and has no effect, as there is none here.
        dtype: the low precision, bfloat16 or float16; by default bfloat16 on the CPU.
        enabled: False switches autocasting off inside.
        cache_enabled: whether converted parameters are kept until the outermost `autocast` ends.

    Raises:
        ValueError: `device_type` is no text.
        ImportError: it is entered for bfloat16, and the package that has it (the extra `bf16`) is not installed.

    Example:
        >>> layer = torch.nn.Linear(3, 1)
        >>> with torch.autocast("cpu", dtype=torch.float16):
        ...     out = layer(torch.ones(2, 3))
        ...     loss = torch.nn.functional.mse_loss(out, torch.zeros(2, 1))
        >>> loss.backward()
        >>> out.dtype, loss.dtype, layer.weight.grad.dtype
        (torch.float16, torch.float32, torch.float32)
    """

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
            warnings.warn(
                "CUDA is not available or torch_xla is imported. Disabling autocast.",
                UserWarning,
                stacklevel=_outside(self),
            )
        elif self.fast_dtype not in (dtypes.bfloat16, dtypes.float16):
            self._enabled = False
            name = device_type.upper()
            warnings.warn(
                f"In {name} autocast, but the target dtype is not supported. Disabling autocast.\n{name} Autocast only "
                "supports dtypes of torch.bfloat16, torch.float16 currently.",
                UserWarning,
                stacklevel=_outside(self),
            )

    def __enter__(self) -> autocast:
        if self._enabled and self.device == "cpu":
            _check_there(self.fast_dtype)
        before = (is_autocast_enabled(self.device), get_autocast_dtype(self.device), is_autocast_cache_enabled())
        set_autocast_dtype(self.device, self.fast_dtype)
        set_autocast_enabled(self.device, self._enabled)
        set_autocast_cache_enabled(self._cache_enabled)
        autocast_increment_nesting()
        # (Attributes, as in PyTorch: entered twice, it puts back what was before the second time.)
        self.prev, self.prev_fastdtype, self.prev_cache_enabled = before
        return self

    def __exit__(self, *exc: object) -> None:
        if autocast_decrement_nesting() == 0:
            clear_autocast_cache()
        set_autocast_enabled(self.device, self.prev)
        set_autocast_dtype(self.device, self.prev_fastdtype)
        set_autocast_cache_enabled(self.prev_cache_enabled)

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """Return `func` run inside of this.

        Raises:
            TypeError: `func` is no function.
        """
        if not callable(func):
            raise TypeError(
                f"autocast()(func) requires a callable, but got {type(func).__name__}. Did you mean to use autocast "
                "as a context manager? For example:\n    with torch.autocast(device_type=...):\n"
                "        output = model(input)"
            )

        @functools.wraps(func)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with self:
                return func(*args, **kwargs)

        return inside


def _outside(made: Any) -> int:
    """Return the stack level of who makes an `autocast`: those for one device have an `__init__` of their own."""
    return 2 if type(made) is autocast else 3


# Switches -----------------------------------------------------------------------------------------


def is_autocast_enabled(device_type: str = "cuda", /) -> bool:
    """Return whether this thread autocasts on a kind of device.

    Raises:
        RuntimeError: there is no such kind of device.

    Example:
        >>> with torch.autocast("cpu", dtype=torch.float16):
        ...     torch.is_autocast_enabled("cpu")
        True
    """
    return _state.enabled.get(Device(device_type).type, False)


def set_autocast_enabled(device_type: Any, enabled: bool | None = None, /) -> None:
    """Let this thread autocast on a kind of device (on CUDA, if the bool comes first), or no longer.

    Raises:
        TypeError: `enabled` is no bool.

    Example:
        >>> torch.set_autocast_enabled("cpu", False)
        >>> torch.is_autocast_enabled("cpu")
        False
    """
    if enabled is None and not isinstance(device_type, str):
        device_type, enabled = "cuda", device_type
    if not isinstance(enabled, bool):
        raise TypeError(
            f"set_autocast_enabled(): argument 'enabled' (position 1) must be bool, not {type(enabled).__name__}"
        )
    kind = Device(device_type).type
    if kind == "cpu":
        if enabled:
            _check_there(get_autocast_dtype("cpu"))
        switch(_state.cpu, enabled)
    _state.enabled[kind] = enabled


def _check_there(dtype: dtypes.dtype) -> None:
    """Raise an error at once where bfloat16 is asked for and its package is not installed."""
    _ = dtype.numpy


def get_autocast_dtype(device_type: str, /) -> dtypes.dtype:
    """Return the low precision of `autocast` on a kind of device.

    Example:
        >>> torch.get_autocast_dtype("cpu"), torch.get_autocast_dtype("cuda")
        (torch.bfloat16, torch.float16)
    """
    kind = Device(device_type).type
    return _state.dtypes.get(kind, dtypes.bfloat16 if kind in _LOW else dtypes.float16)


def set_autocast_dtype(device_type: str, dtype: dtypes.dtype, /) -> None:
    """Set the low precision of `autocast` on a kind of device.

    Raises:
        TypeError: `dtype` is none.

    Example:
        >>> torch.set_autocast_dtype("cpu", torch.bfloat16)
    """
    kind = Device(device_type).type
    if not isinstance(dtype, dtypes.dtype):
        raise TypeError(
            f"set_autocast_dtype(): argument 'dtype' (position 2) must be torch.dtype, not {type(dtype).__name__}"
        )
    if kind == "cpu":
        if is_autocast_enabled("cpu"):
            _check_there(dtype)
        if dtype is not _state.cpu.dtype:
            _state.cpu.kept.clear()
        _state.cpu.dtype = dtype
    _state.dtypes[kind] = dtype


def is_autocast_cache_enabled() -> bool:
    """Return whether `autocast` keeps converted parameters.

    Example:
        >>> torch.is_autocast_cache_enabled()
        True
    """
    return _state.cpu.caching


def set_autocast_cache_enabled(enabled: bool, /) -> None:
    """Set whether `autocast` keeps converted parameters.

    Example:
        >>> torch.set_autocast_cache_enabled(True)
    """
    _state.cpu.caching = bool(enabled)


def clear_autocast_cache() -> None:
    """Forget the converted parameters.

    Example:
        >>> torch.clear_autocast_cache()
    """
    _state.cpu.kept.clear()


def autocast_increment_nesting() -> int:
    """Count one more `autocast` around.

    Example:
        >>> with torch.autocast("cpu", dtype=torch.float16):
        ...     nesting = torch.autocast_increment_nesting(), torch.autocast_decrement_nesting()
        >>> nesting
        (2, 1)
    """
    _state.nesting += 1
    return _state.nesting


def autocast_decrement_nesting() -> int:
    """Count one `autocast` less around.

    Example:
        >>> torch.autocast_increment_nesting(), torch.autocast_decrement_nesting()
        (1, 0)
    """
    _state.nesting -= 1
    return _state.nesting


def _old(name: str, function_now: Callable[..., Any], device_type: str) -> Callable[..., Any]:
    """Return PyTorch's older function for one kind of device."""
    new = function_now.__name__
    shown = f", {new.rsplit('_', 1)[1]}" if new.startswith("set") else ""

    def function(*args: Any) -> Any:
        warnings.warn(
            f"torch.{name}({shown[2:]}) is deprecated. Please use torch.{new}('{device_type}'{shown}) instead.",
            DeprecationWarning,
            stacklevel=2,
        )
        return function_now(device_type, *args)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Call `{new}` for {device_type}: deprecated, as in PyTorch."
    return function


is_autocast_cpu_enabled = _old("is_autocast_cpu_enabled", is_autocast_enabled, "cpu")
set_autocast_cpu_enabled = _old("set_autocast_cpu_enabled", set_autocast_enabled, "cpu")
get_autocast_cpu_dtype = _old("get_autocast_cpu_dtype", get_autocast_dtype, "cpu")
set_autocast_cpu_dtype = _old("set_autocast_cpu_dtype", set_autocast_dtype, "cpu")
get_autocast_gpu_dtype = _old("get_autocast_gpu_dtype", get_autocast_dtype, "cuda")
set_autocast_gpu_dtype = _old("set_autocast_gpu_dtype", set_autocast_dtype, "cuda")


# A Function under autocasting ---------------------------------------------------------------------


def _cast(value: Any, device_type: str, dtype: dtypes.dtype) -> Any:
    """Return a value with the tensors in it of floating point, but for float64, as of `dtype`."""
    if isinstance(value, Tensor):
        eligible = value.dtype.is_floating_point and value.dtype is not dtypes.float64
        return value.to(dtype) if eligible and value.device.type == device_type else value
    if isinstance(value, (str, bytes, np.ndarray)):
        return value
    if isinstance(value, Mapping):
        return {_cast(key, device_type, dtype): _cast(each, device_type, dtype) for key, each in value.items()}
    if isinstance(value, Iterable):
        each_cast = (_cast(each, device_type, dtype) for each in value)
        return type(value)(each_cast) if isinstance(value, (list, tuple)) else each_cast
    return value


def custom_fwd(fwd: Any = None, *, device_type: str, cast_inputs: dtypes.dtype | None = None) -> Any:
    """Decorate `forward` of a `Function` for use under autocasting.

    Args:
        fwd: the function; without it, a decorator is returned.
        device_type: "cpu", "cuda", …
        cast_inputs: while its thread autocasts, `forward` gets floating-point tensors in this dtype, and runs
            without autocasting; None lets it run as any other code.

    Raises:
        ValueError: `device_type` is no text.

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
        args, kwargs = (_cast(each, device_type, cast_inputs) for each in (args, kwargs))
        with autocast(device_type, enabled=False):
            return fwd(*args, **kwargs)

    return forward


def custom_bwd(bwd: Any = None, *, device_type: str) -> Any:
    """Decorate `backward` of a `Function` whose `forward` has `custom_fwd`: it autocasts if `forward` did.

    Raises:
        ValueError: `device_type` is no text.

    Example:
        >>> @torch.amp.custom_bwd(device_type="cpu")
        ... def backward(ctx, g):
        ...     return 2 * g
    """
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
