"""`torch.ops.aten` and `torch.ops.profiler`: PyTorch's own operators, under the names that graphs show.

An operator has overloads, such as `torch.ops.aten.add.Tensor`. Most call the public function or the method of Tensor
of that name; those that PyTorch's functions are made of, and that have other arguments, are defined here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any, NamedTuple

from tinytorch import ops
from tinytorch.autograd.profiler import record_function
from tinytorch.core.tensor import Tensor
from tinytorch.ops import overrides
from tinytorch.ops.nn.activation import _softmax_grad, log_softmax_backward
from tinytorch.ops.transcendental import _relu_grad, sigmoid_backward, tanh_backward

__all__ = ["OpOverload", "OpOverloadPacket", "aten", "profiler"]


class Schema(NamedTuple):
    """What is known of an operator's arguments: whether it writes into one."""

    name: str
    overload_name: str
    is_mutable: bool


class _Callable:
    """An operator, with or without an overload's name."""

    __traced_as__ = "inline"
    __name__: str
    packet: OpOverloadPacket

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the operator; arguments with `__torch_function__` (such as symbolic values) may override it."""
        found = overrides.asked(args, kwargs)
        if found is not None:
            return overrides.handle_torch_function(self, [*args, *kwargs.values()], *args, **kwargs)
        return self.packet.implementation(*args, **kwargs)

    def __reduce__(self) -> Any:
        return _found, (self.packet.namespace, *self.__name__.split("."))


def _found(namespace: str, *names: str) -> Any:
    operator: Any = getattr(ops, namespace)
    for name in names:
        operator = getattr(operator, name)
    return operator


class OpOverloadPacket(_Callable):
    """An operator; its overloads are its attributes.

    Args:
        namespace: the namespace, such as "aten".
        name: the operator's name there.

    Example:
        >>> torch.ops.aten.add(torch.ones(2), 1), torch.ops.aten.add.Tensor
        (tensor([2., 2.]), <OpOverload(op='aten.add', overload='Tensor')>)
    """

    def __init__(self, namespace: str, name: str) -> None:
        self.namespace, self.__name__ = namespace, name
        self.__module__ = f"torch._ops.{namespace}"
        self.__qualname__ = self._qualified_op_name = f"{namespace}::{name}"
        self.packet = self

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"

    def __getattr__(self, name: str) -> OpOverload:
        if name.startswith("_"):
            raise AttributeError(f"'{self}' object has no attribute '{name}'")
        overload = self.__dict__[name] = OpOverload(self, name)
        return overload

    @functools.cached_property
    def implementation(self) -> Callable[..., Any]:
        """The function that computes the result.

        Raises:
            NotImplementedError: tinytorch has none.
        """
        found = _DEFINED.get(f"{self.namespace}.{self.__name__}")
        homes = (import_module("tinytorch"), Tensor, import_module("tinytorch.nn.functional"))
        for home in homes if found is None and self.namespace == "aten" else ():
            found = getattr(home, self.__name__, None)
            if found is not None:
                break
        if found is None:
            raise NotImplementedError(f"tinytorch has no operator {self.namespace}::{self.__name__}")
        return found


class OpOverload(_Callable):
    """One overload of an operator."""

    def __init__(self, overloadpacket: OpOverloadPacket, overload: str) -> None:
        self.overloadpacket = self.packet = overloadpacket
        self.namespace, self._overloadname = overloadpacket.namespace, overload
        self.__name__ = f"{overloadpacket.__name__}.{overload}"
        self.__module__ = overloadpacket.__module__
        own = overloadpacket.__name__
        self._name = f"{self.namespace}::{own}" + ("" if overload == "default" else f".{overload}")
        self.__qualname__ = self._name
        writes = (own.endswith("_") and not own.endswith("__")) or overload.rpartition("_")[2] == "out"
        self._schema = Schema(f"{self.namespace}::{own}", "" if overload == "default" else overload, writes)

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.overloadpacket}', overload='{self._overloadname}')>"

    def __str__(self) -> str:
        return f"{self.overloadpacket}.{self._overloadname}"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(f"'{self}' object has no attribute '{name}'")

    def name(self) -> str:
        """Return the name with the namespace: "aten::add.Tensor"."""
        return self._name


class _Operators(ops._Namespace):
    """A namespace of operators, which are made when they are first asked for."""

    def __getattr__(self, name: str) -> OpOverloadPacket:
        if name.startswith("__"):
            raise AttributeError(name)
        operator = self.__dict__[name] = OpOverloadPacket(self._name, name)
        return operator


# Operators that are no public functions, or have other arguments ----------------------------------


def _sized(x: Tensor, size: Iterable[int], **options: Any) -> Any:
    return x.reshape(tuple(size))


def _slice(x: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    part: Tensor = x[(slice(None),) * (dim % x.dim()) + (slice(start, end, step),)]
    return part


def _index(x: Tensor, indices: Iterable[Any]) -> Tensor:
    part: Tensor = x[tuple([slice(None) if each is None else each for each in indices])]
    return part


def _index_put(x: Tensor, indices: Iterable[Any], values: Tensor, accumulate: bool = False) -> Tensor:
    return x.index_put_(tuple([slice(None) if each is None else each for each in indices]), values, accumulate)


def _to_copy(x: Tensor, *, dtype: Any = None, device: Any = None, **options: Any) -> Tensor:
    return x.to(dtype=dtype, device=device, copy=True)


def _softmax(x: Tensor, dim: int, half_to_float: bool = False) -> Tensor:
    return x.softmax(dim)


def _log_softmax(x: Tensor, dim: int, half_to_float: bool = False) -> Tensor:
    return x.log_softmax(dim)


def _softmax_backward(grad: Tensor, output: Tensor, dim: int, input_dtype: Any) -> Any:
    return _softmax_grad(grad, output, dim).to(input_dtype)


def _log_softmax_backward(grad: Tensor, output: Tensor, dim: int, input_dtype: Any) -> Any:
    return log_softmax_backward(grad, output, dim).to(input_dtype)


def _threshold_backward(grad: Tensor, x: Tensor, threshold: float) -> Any:
    return _relu_grad(grad, x) if threshold == 0 else grad.masked_fill(x <= threshold, 0)


def _rsub(x: Tensor, other: Any, alpha: Any = 1) -> Any:
    return other - (x if alpha == 1 else x * alpha)


def _scalar_tensor(value: Any, *, dtype: Any = None, **options: Any) -> Any:
    return import_module("tinytorch").tensor(value, dtype=dtype)


def _convolution(
    x: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any, transposed: bool,
    output_padding: Any, groups: int,
) -> Any:  # fmt: skip
    functional = import_module("tinytorch.nn.functional")
    dims = weight.dim() - 2
    if transposed:
        function = getattr(functional, f"conv_transpose{dims}d")
        return function(x, weight, bias, stride, padding, output_padding, groups, dilation)
    return getattr(functional, f"conv{dims}d")(x, weight, bias, stride, padding, dilation, groups)


def _embedding(weight: Tensor, indices: Tensor, padding_idx: int = -1, *options: Any) -> Any:
    return import_module("tinytorch.nn.functional").embedding(
        indices, weight, padding_idx=padding_idx if padding_idx >= 0 else None
    )


def _native_layer_norm(x: Tensor, shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    dims = tuple(range(-len(shape), 0))
    normalized = import_module("tinytorch.nn.functional").layer_norm(x, tuple(shape), weight, bias, eps)
    variance, mean = import_module("tinytorch").var_mean(x, dims, correction=0, keepdim=True)
    return normalized, mean, (variance + eps).rsqrt()


def _native_batch_norm(
    x: Tensor, weight: Any, bias: Any, mean: Any, variance: Any, training: bool, momentum: float, eps: float
) -> Any:
    if training:
        raise NotImplementedError("aten::native_batch_norm that computes the statistics")
    functional = import_module("tinytorch.nn.functional")
    nothing = x.new_zeros(0)
    normalized = functional.batch_norm(x, mean, variance, weight, bias, False, momentum, eps)
    return normalized, nothing, nothing.clone()


def _nll_loss_forward(x: Tensor, target: Tensor, weight: Any, reduction: int, ignore_index: int) -> Any:
    counted = target != ignore_index
    total = counted.sum().to(x.dtype) if weight is None else weight[target[counted]].sum()
    functional = import_module("tinytorch.nn.functional")
    loss = functional.nll_loss(
        x, target, weight, ignore_index=ignore_index, reduction=("none", "mean", "sum")[reduction]
    )
    return loss, total


def _max_pool2d_with_indices(
    x: Tensor, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> Any:
    return import_module("tinytorch.nn.functional").max_pool2d(
        x, tuple(kernel_size), tuple(stride) or None, padding, dilation, ceil_mode, return_indices=True
    )


def _adaptive_avg_pool2d(x: Tensor, output_size: Any) -> Any:
    return import_module("tinytorch.nn.functional").adaptive_avg_pool2d(x, tuple(output_size))


def _cross_entropy(x: Tensor, target: Tensor, weight: Any, reduction: int, ignored: int, smoothing: float) -> Any:
    name = ("none", "mean", "sum")[reduction]
    functional = import_module("tinytorch.nn.functional")
    return functional.cross_entropy(x, target, weight, ignore_index=ignored, reduction=name, label_smoothing=smoothing)


def _constant_pad(x: Tensor, pad: Any, value: Any = 0) -> Any:
    return import_module("tinytorch.nn.functional").pad(x, tuple(pad), value=value)


def _dropout(x: Tensor, p: float, train: bool) -> Any:
    return import_module("tinytorch.nn.functional").dropout(x, p, train)


def _with_number(name: str) -> Callable[..., Any]:
    """Return a loss whose `reduction` is a number: 0 for none, 1 for the mean, 2 for the sum."""

    def loss(x: Tensor, y: Tensor, *args: Any) -> Any:
        *more, number = args or (1,)
        if any(each is not None for each in more):
            raise NotImplementedError(f"aten::{name} with these arguments")
        function = getattr(import_module("tinytorch.nn.functional"), name)
        return function(x, y, reduction=("none", "mean", "sum")[number])

    return loss


def _sum_to_size(x: Tensor, size: Iterable[int]) -> Any:
    return x.sum_to_size(tuple(size))


def _enter(name: str, args: str | None = None) -> Any:
    region = record_function(name, args)
    region.__enter__()
    return region


def _exit(region: Any) -> None:
    region.__exit__(None, None, None)


def _copied(x: Tensor, *, memory_format: Any = None) -> Tensor:
    return x.clone() if memory_format is None else x.clone(memory_format=memory_format)


_DEFINED: dict[str, Callable[..., Any]] = {
    "aten._convolution": _convolution,
    "aten._adaptive_avg_pool2d": _adaptive_avg_pool2d,
    "aten._log_softmax": _log_softmax,
    "aten._log_softmax_backward_data": _log_softmax_backward,
    "aten._softmax": _softmax,
    "aten._softmax_backward_data": _softmax_backward,
    "aten._to_copy": _to_copy,
    "aten._unsafe_index": _index,
    "aten._unsafe_view": _sized,
    "aten.alias": lambda x: x.view(x.shape),
    "aten.clone": _copied,
    "aten.constant_pad_nd": _constant_pad,
    "aten.convolution": _convolution,
    "aten.cross_entropy_loss": _cross_entropy,
    "aten.dropout": _dropout,
    "aten.embedding": _embedding,
    "aten.index": _index,
    "aten.index_put_": _index_put,
    "aten.lift_fresh_copy": _copied,
    "aten.max_pool2d_with_indices": _max_pool2d_with_indices,
    "aten.native_batch_norm": _native_batch_norm,
    "aten.native_layer_norm": _native_layer_norm,
    "aten.nll_loss_forward": _nll_loss_forward,
    "aten.rsub": _rsub,
    "aten.scalar_tensor": _scalar_tensor,
    "aten.sigmoid_backward": sigmoid_backward,
    "aten.slice": _slice,
    "aten.sum_to_size": _sum_to_size,
    "aten.tanh_backward": tanh_backward,
    "aten.threshold_backward": _threshold_backward,
    "profiler._record_function_enter_new": _enter,
    "profiler._record_function_exit": _exit,
}

for _name in (
    "mse_loss binary_cross_entropy_with_logits binary_cross_entropy smooth_l1_loss huber_loss soft_margin_loss"
).split():
    _DEFINED[f"aten.{_name}"] = _with_number(_name)

aten = _Operators("aten")
profiler = _Operators("profiler")
ops.add_namespace("aten", aten)
ops.add_namespace("profiler", profiler)
