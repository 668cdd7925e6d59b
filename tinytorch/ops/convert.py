"""Conversion of tensors to other dtypes and memory formats."""

from __future__ import annotations

import builtins
import functools
from typing import Any

from tinytorch.core.device import as_device
from tinytorch.core.device import cpu as cpu_device
from tinytorch.core.device import device as Device
from tinytorch.core.mode import short
from tinytorch.core.op import op
from tinytorch.core.supplied import declare_members
from tinytorch.core.tensor import Tensor
from tinytorch.core.warning import warn
from tinytorch.kernels import dtypes, meta
from tinytorch.kernels import shape as kernels
from tinytorch.ops.register import pointwise, public
from tinytorch.ops.shape import _copier


@functools.cache
def _converter(dtype: dtypes.dtype, memory_format: str = "torch.preserve_format") -> Any:
    """Return the op that copies to a dtype and memory format; the autograd engine casts gradients back."""
    kernel = functools.partial(kernels.converted, dtype.numpy, memory_format)
    if memory_format == "torch.preserve_format":
        return pointwise("to", kernel, moves=True, x=lambda g: g, node_name="ToCopy")

    @op(kernel, name="ToCopy", moves=True, x=lambda g: g)
    def to_copy(x: Any) -> Any:
        """Return a copy in the dtype and memory format."""

    return to_copy


def _cast(input: Tensor, dtype: dtypes.dtype, memory_format: str = "torch.preserve_format") -> Tensor:
    """Return a copy in a dtype and memory format, with PyTorch's warning where imaginary parts are lost."""
    if input._array.dtype.kind == "c" and dtype.numpy.kind not in "cb":
        warn("Casting complex values to real discards the imaginary part", once=True)
    made: Tensor = _converter(dtype, memory_format)(input)
    return made


def converted(input: Tensor, dtype: dtypes.dtype) -> Tensor:
    """Return `input` converted to `dtype`; `input` itself if it has that dtype."""
    return input if input.dtype is dtype else _cast(input, dtype)


def _conversion(dtype: dtypes.dtype) -> Any:
    @short("convert", dtype)
    def convert(self: Tensor, memory_format: Any = None) -> Tensor:
        if memory_format is not None:
            return _in_format(self, dtype, memory_format)
        return self if self.dtype is dtype else _cast(self, dtype)

    convert.__doc__ = f"""Return the tensor as {dtype.name}, itself where it has that dtype already.

    Example:
        >>> torch.tensor([0, 1]).{dtype.tensor_name.lower()}().dtype
        {dtype}
    """
    if dtype.is_complex:
        convert.__doc__ = f"Return the tensor as {dtype.name}, itself where it has that dtype already."
    if dtype is dtypes.bfloat16:  # (an example would need an optional package)
        convert.__doc__ = "Return the tensor as bfloat16 (needs the extra `bf16`), itself where it is that already."
    return convert


def _in_format(input: Tensor, dtype: dtypes.dtype, memory_format: Any, copy: bool = False) -> Tensor:
    """Return `input` in a dtype and memory format; `input` itself if it has both, unless `copy`."""
    _copier(memory_format)  # (raises for an invalid format)
    name = str(memory_format)
    same = name == "torch.preserve_format" or name == kernels.suggested_format(input._array)
    if same and not copy and input.dtype is dtype:
        return input
    return _cast(input, dtype, name)


@public("", method="to")
@short("to", cpu_device)
def to(
    input: Tensor,
    *args: Any,
    dtype: Any = None,
    device: Any = None,
    other: Tensor | None = None,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Return the tensor in another dtype or on another device; itself if nothing changes, unless `copy`.

    Called as `to(dtype)`, `to(device, dtype=None)` or `to(other)`, each followed by optional `non_blocking`, which has
    no effect, and `copy`. The conversion is differentiable: gradients have the dtype of `input`.

    Example:
        >>> torch.tensor([1.7]).to(torch.int64)
        tensor([1])
    """
    if args:
        first, rest = args[0], args[1:]
        if isinstance(first, dtypes.dtype) or first in (builtins.float, builtins.int, builtins.bool, complex):
            if not rest and not copy and memory_format is None:
                return converted(input, dtypes.as_dtype(first))
            dtype = first
        elif isinstance(first, Tensor):
            other = first
        elif first is None or isinstance(first, (str, Device, int)):
            device = first
            if rest and not isinstance(rest[0], builtins.bool):
                dtype, rest = rest[0], rest[1:]
        else:
            raise TypeError(
                f"to() received an invalid combination of arguments - got ({type(first).__name__}), but expected a "
                "dtype, a device or a Tensor"
            )
        copy = rest[1] if len(rest) > 1 else copy
    if other is not None:
        dtype, device = other.dtype, other.device
    if device is not None:
        input = _moved(input, as_device(device))
    kind = input.dtype if dtype is None else dtypes.as_dtype(dtype)
    if memory_format is not None:
        return _in_format(input, kind, memory_format, copy)
    return _cast(input, kind) if copy or kind is not input.dtype else input


@op(meta.like, name="ToCopy", moves=True, x=lambda g: g.cpu())
def _without_data(x: Any) -> Any:
    """Return a tensor like `x` on the meta device."""


def _moved(input: Tensor, device: Device) -> Tensor:
    """Return the tensor on a device. A tensor on the meta device has no elements that could be copied to the CPU."""
    if input.device == device:
        return input
    if device is cpu_device:
        raise meta.NotCopied
    return _without_data(input)


@public("", method="type_as")
def type_as(input: Tensor, other: Tensor) -> Tensor:
    """Return the tensor in the dtype of `other`.

    Example:
        >>> torch.tensor([1, 2]).type_as(torch.ones(1))
        tensor([1., 2.])
    """
    return converted(input, other.dtype)


@public("", method="cpu")
def cpu(self: Tensor, memory_format: Any = None) -> Tensor:
    """Return the tensor itself, which is on the CPU; NotImplementedError for a tensor on the meta device.

    Example:
        >>> torch.ones(2).cpu()
        tensor([1., 1.])
    """
    self = _moved(self, cpu_device)
    return self if memory_format is None else _in_format(self, self.dtype, memory_format)


@public("", method="cuda")
def cuda(self: Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Tensor:
    """Raise AssertionError, as PyTorch without CUDA does: tensors live on the CPU."""
    raise AssertionError("Torch not compiled with CUDA enabled: tinytorch runs on the CPU")


#: `Tensor.float` and the like, which are not module attributes since `float` is Python's here.
declare_members(
    {
        name: _conversion(getattr(dtypes, name))
        for name in ("bfloat16", "bool", "cdouble", "cfloat", "double", "float", "half", "int", "long", "short")
    }
    | {"byte": _conversion(dtypes.uint8), "char": _conversion(dtypes.int8)}
)
