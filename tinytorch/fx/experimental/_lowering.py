"""Which of ATen's operators compute what an op computes: rules for `make_fx`.

A rule is called with a function that records and runs an operator, the op, its result, and its arguments. It returns
what the operators have computed, or None (or raises `Untold`) if it does not know; then the next rule of the op is
tried.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from tinytorch.core.layout import contiguous_format
from tinytorch.core.tensor import Tensor
from tinytorch.fx._operators import aten

__all__ = ["FUNCTIONS", "LOWERED", "Drawing", "Untold"]

#: The rules by the names of ops; those of "" are for ops without one.
LOWERED: dict[str, list[Callable[..., Any]]] = {}
#: Rules of public functions whose ops have other arguments than ATen's operators.
FUNCTIONS: dict[str, Callable[..., Any]] = {}


class Drawing(NamedTuple):
    """An operator that draws random numbers, and its arguments."""

    target: Any
    args: tuple[Any, ...]


class Untold(Exception):
    """A rule does not know which operators compute a result."""


def _rule(names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(rule: Callable[..., Any]) -> Callable[..., Any]:
        for name in names.split() or [""]:
            LOWERED.setdefault(name, []).append(rule)
        return rule

    return register


def _listed(value: Any) -> list[int]:
    return [value] if isinstance(value, int) else [int(each) for each in value]


@_rule("")
def _same_name(emit: Any, op: Any, out: Any, *args: Any, **kwargs: Any) -> Any:
    if op.name.startswith("_"):
        raise Untold
    positional = list(args)
    while positional and (positional[-1] is None or positional[-1] is False):
        positional.pop()
    plain = (None, False, "none", 1)
    named = {key: value for key, value in kwargs.items() if not any(value is each for each in plain)}
    return emit(getattr(aten, op.name).default, *positional, **named)


@_rule("tril triu")
def _triangle(emit: Any, op: Any, out: Any, x: Any, diagonal: int = 0) -> Any:
    return emit(getattr(aten, op.name).default, x, *[diagonal] * bool(diagonal))


@_rule("add sub mul div")
def _arithmetic(emit: Any, op: Any, out: Any, x: Any, y: Any, *rest: Any, **kwargs: Any) -> Any:
    if not isinstance(x, Tensor):
        x, y = (y, x) if op.name in ("add", "mul") else (x, y)
    named = {key: value for key, value in kwargs.items() if value is not None}
    if op.name == "div" and "rounding_mode" in named:
        return emit(aten.div.Tensor_mode, x, y, **named)
    if rest or not isinstance(x, Tensor):
        raise Untold
    return emit(getattr(aten, op.name).Tensor, x, y, **named)


@_rule("eq ne lt le gt ge bitwise_and bitwise_or bitwise_xor fmod remainder")
def _with_number(emit: Any, op: Any, out: Any, x: Any, y: Any) -> Any:
    return emit(getattr(getattr(aten, op.name), "Tensor" if isinstance(y, Tensor) else "Scalar"), x, y)


@_rule("pow")
def _power(emit: Any, op: Any, out: Any, x: Any, y: Any) -> Any:
    if not isinstance(x, Tensor):
        return emit(aten.pow.Scalar, x, y)
    return emit(aten.pow.Tensor_Tensor if isinstance(y, Tensor) else aten.pow.Tensor_Scalar, x, y)


@_rule("_number_less")
def _reversed_difference(emit: Any, op: Any, out: Any, x: Any, number: Any, alpha: Any = 1) -> Any:
    return emit(aten.rsub.Scalar, x, number) if alpha == 1 else emit(aten.rsub.Scalar, x, number, alpha)


@_rule("sum mean")
def _reduction(
    emit: Any, op: Any, out: Any, x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    packet = getattr(aten, op.name)
    named = {} if dtype is None else {"dtype": dtype}
    if dim is None and not keepdim:
        return emit(packet.default, x, **named)
    dims = list(range(x.dim())) if dim is None else _listed(dim)
    return emit(packet.dim_IntList if op.name == "sum" else packet.dim, x, dims, *[True] * keepdim, **named)


@_rule("_max_dim _min_dim")
def _extremum(emit: Any, op: Any, out: Any, x: Any, dim: Any, keepdim: bool = False, *rest: Any) -> Any:
    return emit(getattr(aten, op.name.split("_")[1]).dim, x, dim, *[True] * bool(keepdim))


@_rule("_max_all _min_all")
def _extremum_of_all(emit: Any, op: Any, out: Any, x: Any, *rest: Any) -> Any:
    return emit(getattr(aten, op.name.split("_")[1]).default, x)


@_rule("amax amin argmax argmin")
def _extremum_along(emit: Any, op: Any, out: Any, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    given = [] if dim is None else [dim if op.name.startswith("arg") else _listed(dim)]
    return emit(getattr(aten, op.name).default, x, *given, *[True] * keepdim)


@_rule("view _unsafe_view")
def _viewed(emit: Any, op: Any, out: Any, x: Any, *rest: Any) -> Any:
    return emit(getattr(aten, op.name).default, x, _listed(out.shape))


@_rule("reshape")
def _reshaped(emit: Any, op: Any, out: Any, x: Any, *rest: Any) -> Any:
    copy = emit(aten.clone.default, x, memory_format=contiguous_format)
    return emit(aten._unsafe_view.default, copy, _listed(out.shape))


@_rule("contiguous")
def _made_contiguous(emit: Any, op: Any, out: Any, x: Any, *rest: Any) -> Any:
    return emit(aten.clone.default, x, memory_format=contiguous_format)


@_rule("clone _clone_in")
def _cloned(emit: Any, op: Any, out: Any, x: Any, *rest: Any, **kwargs: Any) -> Any:
    return emit(aten.clone.default, x)


@_rule("_t")
def _transposed(emit: Any, op: Any, out: Any, x: Any) -> Any:
    return emit(aten.t.default, x)


@_rule("_transpose")
def _swapped(emit: Any, op: Any, out: Any, x: Any, dim0: int, dim1: int) -> Any:
    return emit(aten.transpose.int, x, dim0, dim1)


@_rule("_permute _expand")
def _rearranged(emit: Any, op: Any, out: Any, x: Any, dims: Any, *rest: Any) -> Any:
    return emit(getattr(aten, op.name[1:]).default, x, _listed(dims))


@_rule("_unsqueeze _squeeze")
def _with_another_dim(emit: Any, op: Any, out: Any, x: Any, *dim: Any) -> Any:
    if dim and isinstance(dim[0], tuple):
        return _part(emit, op, out, x, *dim)
    return emit(getattr(aten, op.name[1:]).default, x, *dim)


@_rule("_squeeze_dim _squeeze_dims")
def _squeezed(emit: Any, op: Any, out: Any, x: Any, dim: Any) -> Any:
    one = op.name.endswith("dim")
    return emit(aten.squeeze.dim if one else aten.squeeze.dims, x, dim if one else _listed(dim))


@_rule("_alias")
def _aliased(emit: Any, op: Any, out: Any, x: Any, *rest: Any) -> Any:
    return emit(aten.alias.default, x)


@_rule("_select _slice")
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
            raise Untold
        start, stop = each.start or 0, sys.maxsize if each.stop is None else each.stop
        if each.step not in (None, 1):
            x = emit(aten.slice.Tensor, x, dim, start, stop, each.step)
        elif start or each.stop is not None:
            x = emit(aten.slice.Tensor, x, dim, start, stop)
        dim += 1
    return x


@_rule("_index")
def _indexed(emit: Any, op: Any, out: Any, x: Any, key: Any) -> Any:
    indices = [each if isinstance(each, Tensor) else None for each in key]
    if any(each is not None and mine is None for each, mine in zip(key, indices, strict=True)):
        raise Untold
    return emit(aten.index.Tensor, x, indices)


@_rule("_split")
def _in_pieces(emit: Any, op: Any, out: Any, x: Any, size: Any, dim: int = 0) -> Any:
    if not isinstance(size, int):
        first = size[0] if size else 0
        if any(each != first for each in size[:-1]) or size[-1] > first:
            return _in_given_pieces(emit, op, out, x, size, dim)
        size = first
    return emit(aten.split.Tensor, x, size, *[dim] * bool(dim))


@_rule("_split_with_sizes")
def _in_given_pieces(emit: Any, op: Any, out: Any, x: Any, sizes: Any, dim: int = 0) -> Any:
    return emit(aten.split_with_sizes.default, x, _listed(sizes), *[dim] * bool(dim))


@_rule("_unbind")
def _unbound(emit: Any, op: Any, out: Any, x: Any, dim: int = 0) -> Any:
    return emit(aten.unbind.int, x, *[dim] * bool(dim))


@_rule("_cat _stack")
def _joined(emit: Any, op: Any, out: Any, tensors: Iterable[Any], dim: int = 0) -> Any:
    return emit(getattr(aten, op.name[1:]).default, list(tensors), *[dim] * bool(dim))


@_rule("_softmax _log_softmax")
def _along(emit: Any, op: Any, out: Any, x: Any, dim: int, *rest: Any) -> Any:
    return emit(getattr(aten, op.name).default, x, dim, False)


@_rule("_softmax_grad_along _log_softmax_grad_along")
def _along_backward(emit: Any, op: Any, out: Any, grad: Any, output: Any, dim: int, *rest: Any) -> Any:
    name = op.name.removesuffix("_grad_along")
    return emit(getattr(aten, f"{name}_backward_data").default, grad, output, dim, output.dtype)


@_rule("sigmoid_backward tanh_backward")
def _slope(emit: Any, op: Any, out: Any, grad: Any, output: Any, *rest: Any) -> Any:
    return emit(getattr(aten, op.name).default, grad, output)


@_rule("rest_of_square")
def _rest_of_square(emit: Any, op: Any, out: Any, x: Any) -> Any:
    return emit(aten.mul.Tensor, emit(aten.rsub.Scalar, x, 1), emit(aten.add.Tensor, x, 1))


@_rule("threshold_backward")
def _threshold_backward(emit: Any, op: Any, out: Any, grad: Any, x: Any) -> Any:
    return emit(aten.threshold_backward.default, grad, x, 0)


@_rule("linear")
def _as_matrix_product(emit: Any, op: Any, out: Any, x: Any, weight: Any, bias: Any = None) -> Any:
    turned = emit(aten.t.default, weight)
    rows = x if x.dim() == 2 else emit(aten.view.default, x, [-1 if x.dim() < 2 else _rows(x), x.shape[-1]])
    if bias is None:
        product = emit(aten.mm.default, rows, turned)
    else:
        product = emit(aten.addmm.default, bias, rows, turned)
    return product if x.dim() == 2 else emit(aten.view.default, product, _listed(out.shape))


def _rows(x: Tensor) -> int:
    return x.numel() // max(x.shape[-1], 1)


@_rule("linear")
def _as_linear(emit: Any, op: Any, out: Any, x: Any, weight: Any, bias: Any = None) -> Any:
    return emit(aten.linear.default, x, weight, *([] if bias is None else [bias]))


@_rule("mm")
def _product(emit: Any, op: Any, out: Any, a: Any, b: Any) -> Any:
    return emit(aten.mm.default, a, b)


@_rule("mm")
def _product_with_turned(emit: Any, op: Any, out: Any, a: Any, b: Any) -> Any:
    return emit(aten.mm.default, emit(aten.t.default, a), b)


@_rule("mm")
def _product_by_turned(emit: Any, op: Any, out: Any, a: Any, b: Any) -> Any:
    return emit(aten.mm.default, a, emit(aten.t.default, b))


@_rule("bmm")
def _products(emit: Any, op: Any, out: Any, a: Any, b: Any) -> Any:
    return emit(aten.bmm.default, a, b)


@_rule("bmm")
def _products_with_turned(emit: Any, op: Any, out: Any, a: Any, b: Any) -> Any:
    return emit(aten.bmm.default, emit(aten.transpose.int, a, 1, 2), b)


@_rule("bmm")
def _products_by_turned(emit: Any, op: Any, out: Any, a: Any, b: Any) -> Any:
    return emit(aten.bmm.default, a, emit(aten.transpose.int, b, 1, 2))


@_rule("_convolution")
def _convolved(
    emit: Any, op: Any, out: Any, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int,
    *rest: Any,
) -> Any:  # fmt: skip
    lists = [_listed(each) for each in (stride, padding, dilation)]
    return emit(aten.convolution.default, x, weight, bias, *lists, False, [0] * len(lists[0]), groups)


@_rule("layer_norm")
def _normalized(emit: Any, op: Any, out: Any, x: Any, shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    return emit(aten.native_layer_norm.default, x, _listed(shape), weight, bias, eps)[0]


@_rule("embedding")
def _looked_up(emit: Any, op: Any, out: Any, weight: Any, indices: Any, *rest: Any) -> Any:
    return emit(aten.embedding.default, weight, indices)


@_rule("where")
def _chosen(emit: Any, op: Any, out: Any, condition: Any, x: Any, y: Any) -> Any:
    return emit(aten.where.self, condition, *[_as_tensor(emit, each) for each in (x, y)])


def _as_tensor(emit: Any, value: Any) -> Any:
    return value if isinstance(value, Tensor) else emit(aten.scalar_tensor.default, value)


@_rule("_masked_fill")
def _filled(emit: Any, op: Any, out: Any, x: Any, mask: Any, value: Any) -> Any:
    packet = aten.masked_fill
    return emit(packet.Tensor if isinstance(value, Tensor) else packet.Scalar, x, mask, value)


@_rule("_clamp")
def _limited(emit: Any, op: Any, out: Any, x: Any, low: Any = None, high: Any = None) -> Any:
    return emit(aten.clamp.default, x, low, *([] if high is None else [high]))


@_rule("_clamp_min clamp_min")
def _limited_below(emit: Any, op: Any, out: Any, x: Any, low: Any) -> Any:
    return emit(aten.clamp.default, x, low)


@_rule("_clamp_max clamp_max")
def _limited_above(emit: Any, op: Any, out: Any, x: Any, high: Any) -> Any:
    return emit(aten.clamp.default, x, None, high)


@_rule("spread _spread")
def _spread_out(emit: Any, op: Any, out: Any, x: Any, shape: Any, dim: Any = None, *rest: Any) -> Any:
    dims = sorted([each % len(shape) for each in _listed(dim)]) if dim is not None else []
    for each in dims if x.dim() < len(shape) else ():
        x = emit(aten.unsqueeze.default, x, each)
    return emit(aten.expand.default, x, _listed(shape))


@_rule("_sum_to_size")
def _summed(emit: Any, op: Any, out: Any, x: Any, shape: Any, *rest: Any) -> Any:
    return emit(aten.sum_to_size.default, x, _listed(out.shape))


@_rule("mse_loss binary_cross_entropy_with_logits binary_cross_entropy smooth_l1_loss huber_loss soft_margin_loss")
def _loss(emit: Any, op: Any, out: Any, x: Any, y: Any, *rest: Any, **kwargs: Any) -> Any:
    reduction = next((each for each in (*rest, *kwargs.values()) if isinstance(each, str)), "mean")
    number = ("none", "mean", "sum").index(reduction)
    return emit(getattr(aten, op.name).default, x, y, *[number] * (number != 1))


@_rule("_cross_entropy")
def _cross_entropy(
    emit: Any, op: Any, out: Any, x: Any, target: Any, weight: Any, ignored: int, reduction: str, smoothing: float
) -> Any:
    if smoothing or target.dtype == x.dtype:
        raise Untold
    logarithms = emit(aten._log_softmax.default, x, 1 if x.dim() > 1 else 0, False)
    number = ("none", "mean", "sum").index(reduction)
    return emit(aten.nll_loss_forward.default, logarithms, target, weight, number, ignored)[0]


@_rule("_nll")
def _nll(emit: Any, op: Any, out: Any, x: Any, target: Any, weight: Any, ignored: int, reduction: str) -> Any:
    number = ("none", "mean", "sum").index(reduction)
    return emit(aten.nll_loss_forward.default, x, target, weight, number, ignored)[0]


@_rule("_std _var")
def _spread_of(emit: Any, op: Any, out: Any, x: Any, dim: Any, divisor: Any, keepdim: bool) -> Any:
    dims = None if dim is None else _listed(dim)
    count = x.numel() if dims is None else math.prod([x.shape[each] for each in dims])
    named = {"keepdim": True} if keepdim else {}
    return emit(getattr(aten, op.name[1:]).correction, x, dims, correction=count - divisor, **named)


@_rule("_cross_entropy")
def _cross_entropy_at_once(
    emit: Any, op: Any, out: Any, x: Any, target: Any, weight: Any, ignored: int, reduction: str, smoothing: float
) -> Any:
    given = (weight, ("none", "mean", "sum").index(reduction), ignored, smoothing)
    return emit(aten.cross_entropy_loss.default, x, target, *given)


@_rule("_by_group")
def _group_norm(emit: Any, op: Any, out: Any, x: Any, groups: int, weight: Any, bias: Any, eps: float) -> Any:
    return emit(aten.group_norm.default, x, groups, weight, bias, eps)


@_rule("_flip _repeat")
def _with_list(emit: Any, op: Any, out: Any, x: Any, dims: Any) -> Any:
    return emit(getattr(aten, op.name[1:]).default, x, _listed(dims))


@_rule("_roll")
def _rolled(emit: Any, op: Any, out: Any, x: Any, shifts: Any, dims: Any = ()) -> Any:
    return emit(aten.roll.default, x, _listed(shifts), *([_listed(dims)] if dims else []))


@_rule("_prod")
def _product_along(emit: Any, op: Any, out: Any, x: Any, dim: Any = None, keepdim: bool = False, *rest: Any) -> Any:
    return emit(aten.prod.default, x) if dim is None else emit(aten.prod.dim_int, x, dim, *[True] * keepdim)


@_rule("_addcmul _addcdiv")
def _added(emit: Any, op: Any, out: Any, x: Any, a: Any, b: Any, value: Any = 1) -> Any:
    return emit(getattr(aten, op.name[1:]).default, x, a, b, **({} if value == 1 else {"value": value}))


@_rule("constant_pad")
def _padded(emit: Any, op: Any, out: Any, x: Any, pad: Any, value: Any) -> Any:
    return emit(aten.constant_pad_nd.default, x, _listed(pad), value)


@_rule("_scatter")
def _scattered(emit: Any, op: Any, out: Any, x: Any, dim: int, index: Any, value: Any) -> Any:
    return emit(aten.scatter.src if isinstance(value, Tensor) else aten.scatter.value, x, dim, index, value)


@_rule("_lerp")
def _between(emit: Any, op: Any, out: Any, x: Any, end: Any, weight: Any) -> Any:
    return emit(aten.lerp.Tensor if isinstance(weight, Tensor) else aten.lerp.Scalar, x, end, weight)


@_rule("_diagonal _sort _topk _cummax _cummin")
def _as_given(emit: Any, op: Any, out: Any, x: Any, *rest: Any) -> Any:
    return emit(getattr(aten, op.name[1:]).default, x, *rest)


@_rule("to")
def _converted(emit: Any, op: Any, out: Any, x: Any, *rest: Any, **kwargs: Any) -> Any:
    return emit(aten._to_copy.default, x, dtype=out.dtype)


# Public functions ---------------------------------------------------------------------------------


def _function(names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(rule: Callable[..., Any]) -> Callable[..., Any]:
        for name in names.split():
            FUNCTIONS[name] = rule
        return rule

    return register


def _per_dim(value: Any, dims: int) -> list[int]:
    return [value] * dims if isinstance(value, int) else _listed(value)


@_function("nn.functional.max_pool2d")
def _max_pool(
    emit: Any, out: Any, input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
    ceil_mode: bool = False, return_indices: bool = False,
) -> Any:  # fmt: skip
    if return_indices:
        return None
    given = [_per_dim(kernel_size, 2)]
    given += [_per_dim(stride, 2)] if stride is not None else [[]] if padding or dilation != 1 or ceil_mode else []
    if padding or dilation != 1 or ceil_mode:
        given.append(_per_dim(padding, 2))
    if dilation != 1 or ceil_mode:
        given += [_per_dim(dilation, 2), ceil_mode]  # type: ignore[list-item]
    return emit(aten.max_pool2d_with_indices.default, input, *given)[0]


@_function("nn.functional.avg_pool2d")
def _avg_pool(
    emit: Any, out: Any, input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: Any = None,
) -> Any:  # fmt: skip
    if ceil_mode or not count_include_pad or divisor_override is not None:
        return None
    given = [_per_dim(kernel_size, 2), _per_dim(kernel_size if stride is None else stride, 2)]
    return emit(aten.avg_pool2d.default, input, *given, *([_per_dim(padding, 2)] if padding else []))


@_function("nn.functional.adaptive_avg_pool2d")
def _adaptive_avg_pool(emit: Any, out: Any, input: Any, output_size: Any) -> Any:
    sizes = _per_dim(output_size, 2)
    if sizes == [1, 1]:
        return emit(aten.mean.dim, input, [-1, -2], True)
    return emit(aten._adaptive_avg_pool2d.default, input, sizes)


@_function("nn.functional.batch_norm")
def _batch_norm(
    emit: Any, out: Any, input: Any, running_mean: Any, running_var: Any, weight: Any = None, bias: Any = None,
    training: bool = False, momentum: float = 0.1, eps: float = 1e-5,
) -> Any:  # fmt: skip
    if training:
        return None
    given = (weight, bias, running_mean, running_var, False, momentum, eps)
    return emit(aten.native_batch_norm.default, input, *given)[0]


@_function("nn.functional.scaled_dot_product_attention")
def _attention(emit: Any, out: Any, query: Any, key: Any, value: Any, **options: Any) -> Any:
    named = {name: each for name, each in options.items() if each not in (None, False, 0.0)}
    return (
        None
        if options.get("dropout_p")
        else emit(aten.scaled_dot_product_attention.default, query, key, value, **named)
    )


@_function("nn.functional.dropout")
def _dropout(emit: Any, out: Any, input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    return Drawing(aten.dropout.default, (input, p, True)) if training and not inplace and 0 < p < 1 else None


@_function("bernoulli")
def _bernoulli(emit: Any, out: Any, input: Any, *args: Any, **options: Any) -> Any:
    given = any(each is not None for each in (*args, *options.values()))
    return None if given else Drawing(aten.bernoulli.default, (input,))
