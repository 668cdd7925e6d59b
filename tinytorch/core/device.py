"""`device`, and the switch of the memory allocator. The only file that will ever name CuPy."""

from __future__ import annotations

import os
import sys
from typing import Any, NoReturn

__all__ = ["device"]

_KINDS = (
    "cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga", "maia", "xla", "lazy",
    "vulkan", "mps", "meta", "hpu", "mtia", "privateuseone",
)  # fmt: skip


class device:
    """Where a tensor lives: `device("cpu")`, or `device("meta")` for tensors without data. Others have names alone.

    As a context manager it is the default device in a `with` block. `type` is the kind, with or without an index
    ("cpu", "cuda:0"), or another device; a text that names no kind is a RuntimeError.

    Example:
        >>> torch.device("cuda:1").index, torch.device("cpu")
        (1, device(type='cpu'))
    """

    __module__ = "tinytorch"

    __slots__ = ("index", "type")

    def __init__(self, type: str | device | int, index: int | None = None) -> None:
        if isinstance(type, device) and index is None:
            name, index = type.type, type.index
        elif isinstance(type, int) and not isinstance(type, bool):
            raise RuntimeError(
                "Cannot access accelerator device when none is available."
                if type >= 0
                else "Device index must not be negative"
            )
        elif isinstance(type, str):
            name = type
        else:
            raise TypeError(f"device(): argument 'type' must be str, not {type.__class__.__name__}")
        kind, colon, number = name.partition(":")
        if not name:
            raise RuntimeError("Device string must not be empty")
        if kind not in _KINDS:
            raise RuntimeError(f"Expected one of {', '.join(_KINDS)} device type at start of device string: {kind}")
        if colon:
            if not number.isdecimal() or (number[0] == "0" and number != "0"):
                raise RuntimeError(f"Invalid device string: '{type}'")
            if index is not None:
                raise RuntimeError(
                    f"type (string) must not include an index because index was passed explicitly: {type}"
                )
            index = int(number)
        if index is not None:
            if not isinstance(index, int) or isinstance(index, bool):
                raise TypeError(f"device(): argument 'index' (position 2) must be int, not {index.__class__.__name__}")
            if index < 0:
                raise RuntimeError("Device index must not be negative")
        self.type, self.index = kind, index

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __repr__(self) -> str:
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type='{self.type}'{index})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __reduce__(self) -> tuple[Any, ...]:
        return (device, (str(self),))

    def __enter__(self) -> device:
        as_device(self)
        defaults.append(self)
        return self

    def __exit__(self, *exc: object) -> None:
        if len(defaults) > 1:
            defaults.pop()


cpu = device("cpu")
meta = device("meta")
defaults = [cpu]  # the default device, and those of the `with` blocks inside


def get_default() -> device:
    """Return the device of new tensors: that of the innermost `with` block, else the one that was set."""
    return defaults[-1]


def set_default(value: Any) -> None:
    """Make `value` the device of new tensors outside of `with` blocks; None for the CPU."""
    as_device(value)
    defaults[0] = cpu if value is None else device(value)


def as_device(value: Any) -> device:
    """Return the device that tensors can be put on: the CPU, or "meta"; a clear error for every other one.

    Raises:
        AssertionError: there is no CUDA here, in PyTorch's class.
        RuntimeError: another device, or no such kind exists.
        TypeError: `value` names no device.
    """
    if value is None:
        return cpu
    wanted = value if isinstance(value, device) else device(value)
    if wanted.type == "cpu":
        return cpu
    if wanted.type == "meta":
        return meta
    if wanted.type == "cuda":
        raise AssertionError(
            "Torch not compiled with CUDA enabled: tinytorch runs on the CPU. Ask cuda.is_available() first, or use "
            "device='cpu'."
        )
    raise RuntimeError(f"PyTorch is not linked with support for {wanted.type} devices: use device='cpu'")


def chosen(value: Any) -> device:
    """Return the device of a new tensor, given the argument `device` of the function that creates it."""
    wanted = defaults[-1] if value is None else value
    return cpu if wanted is cpu else as_device(wanted)


def keep_freed_memory() -> None:
    """Tell glibc to keep freed blocks for the next array rather than hand them back to the kernel.

    A live graph makes NumPy allocate a new block for each result; handed back and forth, each costs page faults
    (20 tanh on 1 MB forward and backward: 17.1 ms against 6.2). `TINYTORCH_MALLOC=system` leaves malloc alone.
    """
    if not sys.platform.startswith("linux") or os.environ.get("TINYTORCH_MALLOC") == "system":
        return
    try:
        import ctypes  # NumPy has imported it already

        mallopt = ctypes.CDLL(None).mallopt
    except (ImportError, OSError, AttributeError):  # no glibc (musl, static Python)
        return
    trim_threshold, mmap_threshold = -1, -3
    mallopt(trim_threshold, 1 << 30)  # bytes of free memory at the top of the heap before it is handed back
    mallopt(mmap_threshold, 1 << 30)  # bytes from which a block is mapped, and so handed back, on its own


def without_cuda(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise the error of a PyTorch that was built for the CPU alone."""
    raise AssertionError("Torch not compiled with CUDA enabled")
