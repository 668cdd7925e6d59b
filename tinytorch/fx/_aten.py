"""ATen's operators and the ops of this package, in both directions, by family.

`COMPUTES` says what an operator computes, where no public function or method has its name and arguments: the function
that `torch.ops.aten.NAME` calls (`COMPUTES |= {"rsub": lambda x, y, alpha=1: y - alpha * x}`). The field `aten` of the
declarations of ops (`core/facts.py`) says the inverse for `make_fx`: which operators compute what an op computes. It
follows from the declaration if the op has the name of an operator, and its arguments. To add one, write one of these:

- `calls("flip.default", rearrange._flip, lists=[1])`: the op `_flip` is a call of one operator.
- `@lowered(rearrange._flip)` above a function: a rule, which is called with `emit`, which records and runs an operator,
  the op, its result, and its arguments. It returns what the operators have computed. If it does not know, it returns
  None, or raises `UnsupportedOp`; then the next rule of the op is tried. What is computed is compared with the op's
  result.
- `@of_function(F.max_pool2d)`: such a rule for a public function whose ops have other arguments than the operators; it
  is called without the op.

A line in `tests/fx/test_make_fx.py` compares the graph with PyTorch's.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

from tinytorch import ops
from tinytorch.autograd.profiler import record_function
from tinytorch.core import facts
from tinytorch.core.layout import contiguous_format
from tinytorch.core.tensor import Tensor
from tinytorch.fx._names import root
from tinytorch.fx._operators import COMPUTES, REDUCTIONS, Operators
from tinytorch.kernels import dtypes
from tinytorch.nn import functional as F
from tinytorch.ops import (
    arithmetic,
    compare,
    convert,
    index,
    join,
    masks,
    rearrange,
    reduce,
    scatter,
    shape,
    sort,
    transcendental,
)  # fmt: skip
from tinytorch.ops.linalg import products
from tinytorch.ops.nn import activation, conv, embedding, linear, loss, norm, pool
from tinytorch.ops.nn.activation import _softmax_grad, log_softmax_backward
from tinytorch.ops.register import functions
from tinytorch.ops.transcendental import _relu_grad, sigmoid_backward, tanh_backward

aten, profiler = Operators("aten"), Operators("profiler")
ops.add_namespace("aten", aten)
ops.add_namespace("profiler", profiler)


class Drawing(NamedTuple):
    """An operator that draws random numbers, and its arguments."""

    target: Any
    args: tuple[Any, ...]


class UnsupportedOp(Exception):
    """A rule does not know which operators compute a result."""


def lowered(*ops: Any) -> Callable[[Any], Any]:
    """Return a decorator that enters a rule of ops; those of an op are tried in order."""

    def enter(rule: Any) -> Any:
        for op in ops:
            rules: list[Any] = facts.fact(op, "aten") or []
            facts.extend(op, aten=rules)
            rules.append(rule)
        return rule

    return enter


of_function = functools.partial(facts.rule, "aten")


def calls(
    target: str, *ops: Any, defaults: dict[int, Any] | None = None, lists: Collection[int] = (),
    count: int | None = None, more: tuple[Any, ...] = (),
) -> None:  # fmt: skip
    """Enter ops that are a call of one operator.

    Args:
        target: the operator and its overload, in which `{}` is the op's name without underscores; of two overloads,
            "Tensor|Scalar", the first is for a tensor as the last argument.
        ops: the ops.
        defaults: those of arguments, by their positions; at the end of a call they are left away.
        lists: the positions of arguments that are lists.
        count: how many of the op's arguments the operator has.
        more: its further arguments.
    """
    packet, _, overloads = target.partition(".")

    def rule(emit: Any, op: Any, out: Any, *args: Any, **kwargs: Any) -> Any:
        given = _without_defaults([*args, *kwargs.values()][:count], defaults or {})
        first, _, other = overloads.partition("|")
        overload = first if not other or isinstance(given[-1], Tensor) else other
        given = [_listed(x) if k in lists and x is not None else x for k, x in enumerate(given)]
        return emit(getattr(getattr(aten, packet.format(op.name.strip("_"))), overload), *given, *more)

    lowered(*ops)(rule)


def _without_defaults(given: list[Any], defaults: dict[int, Any]) -> list[Any]:
    """Return arguments without those at the end that are defaults, by their positions."""
    while len(given) - 1 in defaults:
        value, default = given[-1], defaults[len(given) - 1]
        if value is not default and (type(value) is not type(default) or value != default):
            break
        given.pop()
    return given


def _listed(value: Any) -> list[Any]:
    return [value] if isinstance(value, int) else [x if isinstance(x, Tensor) else int(x) for x in value]


def rules_of(op: Any) -> Sequence[Callable[..., Any]]:
    """Return the rules of an op, in the order in which they are tried."""
    if op.loss is not None and op.arguments[:2] == ("x", "y"):
        return (_loss,)
    return facts.fact(op, "aten") or (() if op.name.startswith("_") else (_same_name,))


def _same_name(emit: Any, op: Any, out: Any, *args: Any, **kwargs: Any) -> Any:
    """Call the operator that has the name of an op, and its arguments."""
    packet, public = getattr(aten, op.name), functions.get(op.name)
    if public is not None and public.operands:
        return emit(packet.Tensor if isinstance(args[-1], Tensor) else packet.Scalar, *args)
    positional = list(args)
    while positional and (positional[-1] is None or positional[-1] is False):
        positional.pop()
    plain = (None, False, "none", 1)
    named = {key: value for key, value in kwargs.items() if not any(value is each for each in plain)}
    return emit(packet.default, *positional, **named)


# Elementwise --------------------------------------------------------------------------------------

COMPUTES |= {
    "rsub": lambda x, other, alpha=1: other - (x if alpha == 1 else x * alpha),
    "sigmoid_backward": sigmoid_backward,
    "tanh_backward": tanh_backward,
    "threshold_backward": lambda grad, x, threshold: (
        _relu_grad(grad, x) if threshold == 0 else grad.masked_fill(x <= threshold, 0)
    ),
}


@lowered(arithmetic.plus, arithmetic.minus, arithmetic.mul, arithmetic.true_divide)
def as_tensors(emit: Any, op: Any, out: Any, x: Any, y: Any, *rest: Any, **kwargs: Any) -> Any:
    """Call an operator of two tensors, also if one operand is a number."""
    if not isinstance(x, Tensor):
        x, y = (y, x) if op.name in ("add", "mul") else (x, y)
    named = {key: value for key, value in kwargs.items() if value is not None}
    if op.name == "div" and "rounding_mode" in named:
        return emit(aten.div.Tensor_mode, x, y, **named)
    if rest or not isinstance(x, Tensor):
        raise UnsupportedOp
    return emit(getattr(aten, op.name).Tensor, x, y, **named)


lowered(arithmetic._plus_scaled)(lambda emit, op, out, x, y, alpha: emit(aten.add.Tensor, x, y, alpha=alpha))
lowered(arithmetic._minus_scaled)(lambda emit, op, out, x, y, alpha: emit(aten.sub.Tensor, x, y, alpha=alpha))


@lowered(transcendental.pow)
def _power(emit: Any, op: Any, out: Any, x: Any, y: Any) -> Any:
    if not isinstance(x, Tensor):
        return emit(aten.pow.Scalar, x, y)
    return emit(aten.pow.Tensor_Tensor if isinstance(y, Tensor) else aten.pow.Tensor_Scalar, x, y)


@lowered(masks._where)
def _where(emit: Any, op: Any, out: Any, condition: Any, *branches: Any) -> Any:
    given = [x if isinstance(x, Tensor) else emit(aten.scalar_tensor.default, x) for x in branches]
    return emit(aten.where.self, condition, *given)


@lowered(arithmetic._addcmul, arithmetic._addcdiv)
def _added(emit: Any, op: Any, out: Any, x: Any, a: Any, b: Any, value: Any = 1) -> Any:
    return emit(getattr(aten, op.name[1:]).default, x, a, b, **({} if value == 1 else {"value": value}))


lowered(transcendental._rest)(
    lambda emit, op, out, x: emit(aten.mul.Tensor, emit(aten.rsub.Scalar, x, 1), emit(aten.add.Tensor, x, 1))
)
calls("{}.Tensor|Tensor_Scalar", compare.bitwise_left_shift, compare.bitwise_right_shift)
calls("xlogy.Tensor|Scalar_Other", transcendental.xlogy)
calls("rsub.Scalar", arithmetic._number_less, defaults={2: 1})
calls("masked_fill.Tensor|Scalar", masks._masked_fill[0][0])
calls("lerp.Tensor|Scalar", arithmetic._lerp, arithmetic._lerp_to)
calls("clamp.default", arithmetic._clamp, defaults={2: None})
calls("clamp.default", arithmetic._clamp_min, arithmetic._clamp_min_to)
lowered(arithmetic._clamp_max, arithmetic._clamp_max_to)(
    lambda emit, op, out, x, high: emit(aten.clamp.default, x, None, high)
)
calls("{}.default", sigmoid_backward, tanh_backward, count=2)
calls("threshold_backward.default", _relu_grad, more=(0,))

# Reductions and sorting ---------------------------------------------------------------------------


@lowered(reduce.sum, reduce.mean)
def _reduction(
    emit: Any, op: Any, out: Any, x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    packet = getattr(aten, op.name)
    named = {} if dtype is None else {"dtype": dtype}
    if dim is None and not keepdim:
        return emit(packet.default, x, **named)
    dims = list(range(x.dim())) if dim is None else _listed(dim)
    return emit(packet.dim_IntList if op.name == "sum" else packet.dim, x, dims, *[True] * keepdim, **named)


@lowered(reduce._std, reduce._var, reduce._std_mean, reduce._var_mean)
def _spread_of(emit: Any, op: Any, out: Any, x: Any, dim: Any, divisor: Any, keepdim: bool) -> Any:
    dims = None if dim is None else _listed(dim)
    count = x.numel() if dims is None else math.prod([x.shape[each] for each in dims])
    named = {"keepdim": True} if keepdim else {}
    return emit(getattr(aten, op.name[1:]).correction, x, dims, correction=count - divisor, **named)


lowered(reduce._prod)(
    lambda emit, op, out, x, dim=None, keepdim=False, *_: (
        emit(aten.prod.default, x) if dim is None else emit(aten.prod.dim_int, x, dim, *[True] * keepdim)
    )
)
calls("max.dim", reduce._max_dim, defaults={2: False}, count=3)
calls("min.dim", reduce._min_dim, defaults={2: False}, count=3)
calls("max.default", reduce._max_all, count=1)
calls("min.default", reduce._min_all, count=1)
calls("{}.default", reduce.amax, reduce.amin, defaults={1: None, 2: False}, lists=[1])
calls("{}.default", reduce.argmax, reduce.argmin, defaults={1: None, 2: False})
calls("{}.default", sort._sort, sort._topk, reduce._cummax, reduce._cummin)

# Shapes and indices -------------------------------------------------------------------------------


def _key(indices: Any) -> tuple[Any, ...]:
    return tuple([slice(None) if each is None else each for each in indices])


COMPUTES |= {
    "_to_copy": lambda x, *, dtype=None, device=None, **_: x.to(dtype=dtype, device=device, copy=True),
    "_unsafe_index": lambda x, indices: x[_key(indices)],
    "_unsafe_view": lambda x, size: x.reshape(tuple(size)),
    "alias": lambda x: x.view(x.shape),
    "index": lambda x, indices: x[_key(indices)],
    "index_put_": lambda x, indices, values, accumulate=False: x.index_put_(_key(indices), values, accumulate),
    "lift_fresh_copy": Tensor.clone,
    "slice": lambda x, dim=0, start=None, end=None, step=1: x[
        (slice(None),) * (dim % x.dim()) + (slice(start, end, step),)
    ],
}


@lowered(shape._view, shape._unsafe_view, reduce._sum_to_size)
def _sized(emit: Any, op: Any, out: Any, x: Any, *rest: Any) -> Any:
    name = "sum_to_size" if op.name == "_sum_to_size" else op.name
    return emit(getattr(aten, name).default, x, _listed(out.shape))


def _contiguous(emit: Any, x: Any) -> Any:
    return emit(aten.clone.default, x, memory_format=contiguous_format)


lowered(shape._contiguous)(lambda emit, op, out, x, *_: _contiguous(emit, x))
lowered(shape._reshape_alias)(
    lambda emit, op, out, x, *_: emit(aten._unsafe_view.default, _contiguous(emit, x), _listed(out.shape))
)
lowered(convert._converter(dtypes.float32))(
    lambda emit, op, out, x, *_, **__: emit(aten._to_copy.default, x, dtype=out.dtype)
)
calls("clone.default", shape._clone, shape._clone_in, count=1)


@lowered(shape._unsqueeze, shape._squeeze)
def _with_another_dim(emit: Any, op: Any, out: Any, x: Any, *dim: Any) -> Any:
    if dim and isinstance(dim[0], tuple):
        return _part(emit, op, out, x, *dim)
    return emit(getattr(aten, op.name[1:]).default, x, *dim)


@lowered(shape.selected, shape.part)
def _part(emit: Any, op: Any, out: Any, x: Any, key: Any) -> Any:
    dim = 0
    for each in key if isinstance(key, tuple) else (key,):
        if each is Ellipsis:
            break
        if each is None:
            x = emit(aten.unsqueeze.default, x, dim)
            dim += 1
            continue
        if isinstance(each, int):
            x = emit(aten.select.int, x, dim, each)
            continue
        if not isinstance(each, slice):
            raise UnsupportedOp
        start, stop = each.start or 0, sys.maxsize if each.stop is None else each.stop
        if each.step not in (None, 1):
            x = emit(aten.slice.Tensor, x, dim, start, stop, each.step)
        elif start or each.stop is not None:
            x = emit(aten.slice.Tensor, x, dim, start, stop)
        dim += 1
    return x


@lowered(index._index)
def _indexed(emit: Any, op: Any, out: Any, x: Any, key: Any) -> Any:
    if any(each is not None and not isinstance(each, Tensor) for each in key):
        raise UnsupportedOp
    return emit(aten.index.Tensor, x, list(key))


@lowered(join._split)
def _split(emit: Any, op: Any, out: Any, x: Any, size: Any, dim: int = 0) -> Any:
    if not isinstance(size, int):
        first = size[0] if size else 0
        if any(each != first for each in size[:-1]) or size[-1] > first:
            return emit(aten.split_with_sizes.default, x, _listed(size), *[dim] * bool(dim))
        size = first
    return emit(aten.split.Tensor, x, size, *[dim] * bool(dim))


@lowered(reduce.spread, pool._spread)
def _spread_out(emit: Any, op: Any, out: Any, x: Any, shape: Any, dim: Any = None, *rest: Any) -> Any:
    dims = sorted([each % len(shape) for each in _listed(dim)]) if dim is not None else []
    for each in dims if x.dim() < len(shape) else ():
        x = emit(aten.unsqueeze.default, x, each)
    return emit(aten.expand.default, x, _listed(shape))


calls("t.default", shape._t)
calls("transpose.int", shape._transpose)
calls("{}.default", shape._permute, shape._expand, lists=[1], count=2)
calls("{}.default", rearrange._flip, rearrange._repeat, lists=[1])
calls("roll.default", rearrange._roll, defaults={2: ()}, lists=[1, 2])
calls("squeeze.dim", shape._squeeze_dim)
calls("squeeze.dims", shape._squeeze_dims, lists=[1])
calls("alias.default", shape.aliased, count=1)
calls("split_with_sizes.default", join._split_with_sizes, defaults={2: 0}, lists=[1])
calls("unbind.int", join._unbind, defaults={1: 0})
calls("{}.default", join._cat, join._stack, defaults={1: 0}, lists=[0])
calls("diagonal.default", shape._diagonal)
calls("scatter.src|value", scatter._scatter[0][0])
calls("{}.default", rearrange.tril, rearrange.triu, defaults={1: 0})
calls("constant_pad_nd.default", rearrange.constant_pad, lists=[1])

# Products -----------------------------------------------------------------------------------------


@lowered(conv._conv)
def _convolved(
    emit: Any, op: Any, out: Any, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int,
    *rest: Any,
) -> Any:  # fmt: skip
    lists = [_listed(each) for each in (stride, padding, dilation)]
    return emit(aten.convolution.default, x, weight, bias, *lists, False, [0] * len(lists[0]), groups)


@lowered(linear.linear)
def _as_matrix_product(emit: Any, op: Any, out: Any, x: Any, weight: Any, bias: Any = None) -> Any:
    turned = emit(aten.t.default, weight)
    count = -1 if x.dim() < 2 else x.numel() // max(x.shape[-1], 1)
    rows = x if x.dim() == 2 else emit(aten.view.default, x, [count, x.shape[-1]])
    if bias is None:
        product = emit(aten.mm.default, rows, turned)
    else:
        product = emit(aten.addmm.default, bias, rows, turned)
    return product if x.dim() == 2 else emit(aten.view.default, product, _listed(out.shape))


calls("linear.default", linear.linear, defaults={2: None})


def _product(turned: int | None, emit: Any, op: Any, out: Any, *matrices: Any) -> Any:
    """Return the product of two matrices, one of which the operator may read transposed."""
    given = list(matrices)
    if turned is not None:
        x = given[turned]
        given[turned] = emit(aten.t.default, x) if op.name == "mm" else emit(aten.transpose.int, x, 1, 2)
    return emit(getattr(aten, op.name).default, *given)


for _turned in (None, 0, 1):
    lowered(products.mm_nn, products._bmm)(functools.partial(_product, _turned))

# Layers -------------------------------------------------------------------------------------------


COMPUTES |= {
    "_adaptive_avg_pool2d": lambda x, output_size: F.adaptive_avg_pool2d(x, tuple(output_size)),
    "_log_softmax": lambda x, dim, half_to_float=False: x.log_softmax(dim),
    "_log_softmax_backward_data": lambda grad, output, dim, input_dtype: log_softmax_backward(grad, output, dim).to(
        input_dtype
    ),
    "_softmax": lambda x, dim, half_to_float=False: x.softmax(dim),
    "_softmax_backward_data": lambda grad, output, dim, input_dtype: _softmax_grad(grad, output, dim).to(input_dtype),
}
calls("_{}.default", activation._softmax, activation._log_softmax, count=2, more=(False,))
calls("embedding.default", embedding.rows_of, count=2)
calls("group_norm.default", norm._by_group)


@lowered(_softmax_grad, log_softmax_backward)
def _softmax_backward(emit: Any, op: Any, out: Any, grad: Any, output: Any, dim: int, *rest: Any) -> Any:
    name = op.name.removesuffix("_grad_along")
    return emit(getattr(aten, f"{name}_backward_data").default, grad, output, dim, output.dtype)


lowered(norm.layer_norm)(
    lambda emit, op, out, x, shape, *options: emit(aten.native_layer_norm.default, x, _listed(shape), *options)[0]
)


def _per_dim(value: Any, dims: int = 2) -> list[int]:
    return [value] * dims if isinstance(value, int) else _listed(value)


@of_function(F.max_pool2d)
def _max_pool(
    emit: Any, out: Any, input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
    ceil_mode: bool = False, return_indices: bool = False,
) -> Any:  # fmt: skip
    if return_indices:
        return None
    given = [_per_dim(kernel_size), [] if stride is None else _per_dim(stride), _per_dim(padding), _per_dim(dilation)]
    given = _without_defaults([*given, ceil_mode], {1: [], 2: [0, 0], 3: [1, 1], 4: False})
    return emit(aten.max_pool2d_with_indices.default, input, *given)[0]


@of_function(F.avg_pool2d)
def _avg_pool(
    emit: Any, out: Any, input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: Any = None,
) -> Any:  # fmt: skip
    if ceil_mode or not count_include_pad or divisor_override is not None:
        return None
    given = [_per_dim(kernel_size), _per_dim(kernel_size if stride is None else stride), _per_dim(padding)]
    return emit(aten.avg_pool2d.default, input, *_without_defaults(given, {2: [0, 0]}))


@of_function(F.adaptive_avg_pool2d)
def _adaptive_avg_pool(emit: Any, out: Any, input: Any, output_size: Any) -> Any:
    sizes = _per_dim(output_size)
    if sizes == [1, 1]:
        return emit(aten.mean.dim, input, [-1, -2], True)
    return emit(aten._adaptive_avg_pool2d.default, input, sizes)


@of_function(F.batch_norm)
def _batch_norm(
    emit: Any, out: Any, input: Any, running_mean: Any, running_var: Any, weight: Any = None, bias: Any = None,
    training: bool = False, momentum: float = 0.1, eps: float = 1e-5,
) -> Any:  # fmt: skip
    if training:
        return None
    given = (weight, bias, running_mean, running_var, False, momentum, eps)
    return emit(aten.native_batch_norm.default, input, *given)[0]


@of_function(F.scaled_dot_product_attention)
def _attention(emit: Any, out: Any, query: Any, key: Any, value: Any, **options: Any) -> Any:
    if options.get("dropout_p"):
        return None
    named = {name: each for name, each in options.items() if each not in (None, False, 0.0)}
    return emit(aten.scaled_dot_product_attention.default, query, key, value, **named)


@of_function(F.dropout)
def _dropout(emit: Any, out: Any, input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    return Drawing(aten.dropout.default, (input, p, True)) if training and not inplace and 0 < p < 1 else None


@of_function(root().bernoulli)
def _bernoulli(emit: Any, out: Any, input: Any, *args: Any, **options: Any) -> Any:
    given = any(each is not None for each in (*args, *options.values()))
    return None if given else Drawing(aten.bernoulli.default, (input,))


# Losses, whose operators have numbers for the words of `reduction` ------------------------------------


def _nll_loss_forward(x: Tensor, target: Tensor, weight: Any, reduction: int, ignore_index: int) -> Any:
    counted = target != ignore_index
    total = counted.sum().to(x.dtype) if weight is None else weight[target[counted]].sum()
    return F.nll_loss(x, target, weight, ignore_index=ignore_index, reduction=REDUCTIONS[reduction]), total


def _cross_entropy_loss(x: Tensor, target: Tensor, weight: Any, reduction: int, ignored: int, smoothing: float) -> Any:
    return F.cross_entropy(
        x, target, weight, ignore_index=ignored, reduction=REDUCTIONS[reduction], label_smoothing=smoothing
    )


COMPUTES |= {"cross_entropy_loss": _cross_entropy_loss, "nll_loss_forward": _nll_loss_forward}


def _loss(emit: Any, op: Any, out: Any, *args: Any, **kwargs: Any) -> Any:
    """Call the operator of a loss that is elementwise before it is reduced."""
    given = [REDUCTIONS.index(each) if isinstance(each, str) else each for each in (*args, *kwargs.values())]
    while not isinstance(given[-1], Tensor) and given[-1] in (None, 1):
        given.pop()
    return emit(getattr(aten, op.name).default, *given)


@lowered(loss._nll_losses[0])
def _nll(emit: Any, op: Any, out: Any, x: Any, target: Any, weight: Any, ignored: int, reduction: str) -> Any:
    return emit(aten.nll_loss_forward.default, x, target, weight, REDUCTIONS.index(reduction), ignored)[0]


@lowered(loss.cross_entropy)
def _cross_entropy(
    emit: Any, op: Any, out: Any, x: Any, target: Any, weight: Any, ignored: int, reduction: str, smoothing: float
) -> Any:
    if smoothing or target.dtype == x.dtype:
        raise UnsupportedOp
    logarithms = emit(aten._log_softmax.default, x, 1 if x.dim() > 1 else 0, False)
    return _nll(emit, op, out, logarithms, target, weight, ignored, reduction)


@lowered(loss.cross_entropy)
def _cross_entropy_at_once(
    emit: Any, op: Any, out: Any, x: Any, target: Any, weight: Any, ignored: int, reduction: str, smoothing: float
) -> Any:
    given = (weight, REDUCTIONS.index(reduction), ignored, smoothing)
    return emit(aten.cross_entropy_loss.default, x, target, *given)


# Regions of the profiler --------------------------------------------------------------------------


def _enter(name: str, args: str | None = None) -> Any:
    region = record_function(name, args)
    region.__enter__()
    return region


COMPUTES |= {
    "profiler._record_function_enter_new": _enter,
    "profiler._record_function_exit": lambda region: region.__exit__(None, None, None),
}
