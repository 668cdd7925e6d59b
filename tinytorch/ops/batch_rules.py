"""The rules by which ops compute whole batches inside of `vmap`; declarations name them (`batch="leading"`).

A rule gets a `Call`, whose batched tensors have all examples along a first dimension, and returns the results with such
a dimension, and is declared by `@_rule(NAME)`. Most rules are about where the op's own dimensions are: "elementwise"
aligns the shapes of the examples, "along" shifts arguments that are dimensions, "folded" makes the batch part of the
first dimension.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinytorch.core.declaration import DIMENSIONS, Op
from tinytorch.core.supplied import batching
from tinytorch.core.tensor import Tensor
from tinytorch.kernels import dtypes, places
from tinytorch.kernels import shape as shapes
from tinytorch.ops.nn.padding import pad

__all__ = ["RULES", "STEPS", "Call", "NoRule", "padded", "rule_of", "without_rule"]


class NoRule(Exception):
    """Raised by a rule for arguments that it has none for: the op is called once per example."""


class Call:
    """A call of an op on all examples.

    Attributes:
        op: the op.
        caller: its function, out of place or in place.
        size: the number of examples.
        values: the arguments in the signature's order.
        which: per argument whether it is batched; of a sequence with batched elements a list.
        written: whether the call has written into its first argument.
    """

    __slots__ = ("caller", "op", "size", "target", "values", "which", "written")

    def __init__(self, op: Op, caller: Any, size: int) -> None:
        self.op, self.caller, self.size = op, caller, size
        self.written = False

    def set(self, values: list[Any], which: list[Any]) -> None:
        """Set the arguments."""
        self.values, self.which, self.target = values, which, values[0] if values else None

    def run(self, values: Any = None) -> Any:
        """Call the op on tensors of all examples: in place, if the first of them is the argument itself."""
        values = self.values if values is None else values
        op, caller = self.op, self.caller
        if caller.writes:
            if values[0] is self.target:
                self.written = True
            else:
                caller = op.caller
        count = op.positional
        if len(values) == count:
            return caller(*values)
        return caller(*values[:count], **dict(zip(op.arguments[count:], values[count:], strict=True)))

    def rank(self, i: int) -> int:
        """Return the number of dimensions of one example of a tensor."""
        ndim: int = self.values[i].ndim
        return ndim - 1 if self.which[i] else ndim

    def shape(self, i: int) -> tuple[int, ...]:
        """Return the shape of one example of a tensor."""
        shape = tuple(self.values[i].shape)
        return shape[1:] if self.which[i] else shape

    def whole(self, i: int) -> Any:
        """Return a tensor with all examples, copies of it if it is not batched."""
        x = self.values[i]
        return x if self.which[i] or not isinstance(x, Tensor) else x.unsqueeze(0).expand(self.size, *x.shape)

    def of(self, name: str) -> Any:
        """Return an argument by its name."""
        return self.values[self.op.position[name]]

    def tensors(self) -> list[int]:
        """Return the positions of the tensors."""
        return [i for i in self.op.inputs if isinstance(self.values[i], Tensor)]

    def is_batched(self, *names: str) -> tuple[bool, ...]:
        """Return which of the arguments with these names are batched."""
        return tuple([bool(self.which[self.op.position[name]]) for name in names])


def padded(x: Any, ndim: int) -> Any:
    """Return a batched tensor with dimensions of one element inserted after the first, up to `ndim` in all."""
    return x if x.ndim >= ndim else x.reshape(x.shape[0], *(1,) * (ndim - x.ndim), *x.shape[1:])


def rule_of(op: Op) -> Callable[[Call], Any] | None:
    """Return the rule of an op, or None."""
    return None if op.batch is None else _no_rule if callable(op.batch) else RULES[op.batch]


def without_rule(ops: Sequence[Op]) -> list[Op]:
    """Return those ops that are called once per example."""
    return [op for op in ops if op.batch is None]


RULES: dict[str, Callable[[Call], Any]] = {}


def _rule(name: str) -> Callable[[Any], Any]:
    def declare(function: Any) -> Any:
        RULES[name] = function
        return function

    return declare


# Elements -----------------------------------------------------------------------------------------


@_rule("elementwise")
def elementwise(call: Call) -> Any:
    """Align the shapes of the examples; what is not batched is broadcast."""
    values, which = call.values, call.which
    tensors = call.tensors()
    if len(tensors) == 1:
        return call.run()
    ranks = [call.rank(i) for i in tensors]
    rank = max(ranks)
    kinds = {values[i]._array.dtype for i in tensors}
    expanded = not call.op.broadcasts or bool(call.op.operands and not is_ufunc(call.op))
    if len(kinds) > 1:
        _promote(call, tensors, ranks, expanded)
    if expanded:
        for i in tensors:
            values[i] = call.whole(i)
            which[i] = True
    for i, own in zip(tensors, ranks, strict=True):
        if own < rank and which[i]:
            values[i] = padded(values[i], rank + 1)
    target: Any = call.target
    if call.caller.writes and values[0] is not target:
        raise RuntimeError(
            f"output with shape {list(target.shape[1:])} doesn't match the broadcast shape of {rank} dimensions"
        )
    return call.run()


def is_ufunc(op: Op) -> bool:
    """Return whether a kernel is a ufunc of NumPy; others may need operands of one shape."""
    return isinstance(getattr(op.kernel, "ufunc", op.kernel), np.ufunc)


def _promote(call: Call, tensors: list[int], ranks: list[int], expanded: bool) -> None:
    """Cast operands of which an example is 0-d: these decide the dtype only if their category is the higher one.

    `expanded`: also one that is not batched is not 0-d any more when the op is called.
    """
    operands = [
        (i, rank) for i, rank in zip(tensors, ranks, strict=True) if call.op.arguments[i] not in ("condition", "mask")
    ]
    if all([rank or not (expanded or call.which[i]) for i, rank in operands]):
        return
    target = dtypes.result_dtype(*[(call.values[i].dtype, 2 if rank else 1) for i, rank in operands])
    for i, _ in operands:
        x = call.values[i]
        if x.dtype is not target and not (i == 0 and call.caller.writes):
            call.values[i] = x.to(target)


# Dimensions ---------------------------------------------------------------------------------------


def _shifted(dim: Any, rank: int) -> Any:
    """Return a dimension of an example as one of the batch."""
    if isinstance(dim, (tuple, list)):
        return tuple([_shifted(each, rank) for each in dim])
    dim = operator.index(dim)
    bound = max(rank, 1)
    if not -bound <= dim < bound:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-bound}, {bound - 1}], but got {dim})")
    return dim + 1 if dim >= 0 else dim


@_rule("along")
def along(call: Call) -> Any:
    """Shift the dimensions among the arguments, of an op that treats all other dimensions alike."""
    op, values = call.op, call.values
    tensors = call.tensors()
    ranks = [call.rank(i) for i in tensors]
    rank = max(ranks)
    names = [name for name in DIMENSIONS if name in op.position]
    if call.caller.writes and (call.rank(0) < rank or (rank == 0 and names)):
        raise NoRule
    several = len(tensors) > 1
    if several and not op.broadcasts and len(set(ranks)) > 1:
        raise NoRule
    for i, own in zip(tensors, ranks, strict=True):
        if several:
            values[i] = call.whole(i)
        if own < rank and op.broadcasts:
            values[i] = padded(values[i], rank + 1)
    if several and len({values[i]._array.dtype for i in tensors}) > 1 and 0 in ranks and op.broadcasts:
        _promote(call, tensors, ranks, True)
    if "shape" in op.position:  # (of the result: the gradient of an op whose dimensions these are)
        return _in_shape(call, names)
    keepdim = "keepdim" in op.position and values[op.position["keepdim"]]
    scalar = rank == 0 and bool(names)
    if scalar:
        for i in tensors:
            values[i] = values[i].unsqueeze(-1)
        if keepdim:
            values[op.position["keepdim"]] = False
    everything = False
    for name in names:
        at = op.position[name]
        dim = values[at]
        empty = isinstance(dim, (tuple, list)) and not dim
        everything = dim is None or (empty and name == "dim" and op.name not in ("any", "all"))
        if everything:  # all elements of an example
            if several:
                raise NoRule
            (i,) = tensors
            values[i] = values[i].reshape(call.size, math.prod(values[i].shape[1:]))
            values[at] = 1
            if "keepdim" in op.position:
                values[op.position["keepdim"]] = False
        else:
            values[at] = _shifted(dim, rank)
    if "key" in op.position:
        _shift_key(call)
    result = call.run()
    if everything and keepdim:
        return _each(result, lambda out: out.reshape(call.size, *(1,) * rank))
    if scalar:
        return _each(result, lambda out: out.squeeze(-1) if out.ndim > 1 else out)
    return result


def _shift_key(call: Call) -> None:
    at = call.op.position["key"]
    key = call.values[at]
    call.values[at] = (slice(None), *(key if type(key) is tuple else (key,)))


def _in_shape(call: Call, names: list[str]) -> Any:
    """Call an op whose dimensions are those of a shape among its arguments."""
    op, values = call.op, call.values
    shape = tuple(values[op.position["shape"]])
    if not shape and names:
        if len(call.tensors()) > 1:
            raise NoRule
        return call.whole(0).reshape(call.size)
    values[op.position["shape"]] = (call.size, *shape)
    for name in names:
        dim = values[op.position[name]]
        everything = dim is None or (isinstance(dim, (tuple, list)) and not dim)
        values[op.position[name]] = tuple(range(1, len(shape) + 1)) if everything else _shifted(dim, len(shape))
    if "key" in op.position:
        _shift_key(call)
    return call.run()


def _each(result: Any, function: Callable[[Any], Any]) -> Any:
    """Return a result with a function applied to each tensor in it."""
    if isinstance(result, Tensor):
        return function(result)
    if result is None:
        return None
    return type(result)([_each(each, function) for each in result])


@_rule("leading")
def leading(call: Call) -> Any:
    """Call an op that takes any number of leading dimensions; examples of one rank get them as they are."""
    values = call.values
    tensors = call.tensors()
    if call.op.name == "view_as_complex" and values[0].ndim == 1 and call.size:
        call.op.caller(values[0][0])  # (raises its error)
    if len(tensors) > 1:
        ranks = [call.rank(i) for i in tensors]
        for i, own in zip(tensors, ranks, strict=True):
            values[i] = call.whole(i)
            if own < max(ranks):
                if not call.op.broadcasts:
                    raise NoRule
                values[i] = padded(values[i], max(ranks) + 1)
    return _with_batch(call, call.run())


def _with_batch(call: Call, result: Any) -> Any:
    """Give an output without elements, such as residuals that were not computed, the dimension that it lacks."""
    if call.op.outputs == 1:
        return result
    return _each(result, lambda out: out if out.numel() or out.ndim > 1 else out.expand(call.size, *out.shape))


@_rule("folded")
def folded(call: Call) -> Any:
    """Make the batch part of the first dimension, along which the op works on each entry alone."""
    values = call.values
    tensors = call.tensors()
    lengths = {call.shape(i)[0] if call.rank(i) else -1 for i in tensors}
    if len(lengths) > 1 or -1 in lengths:
        raise NoRule
    (length,) = lengths
    if not length * call.size:
        raise NoRule
    for i in tensors:
        x = call.whole(i)
        values[i] = x.reshape(call.size * length, *x.shape[2:])
    return _each(call.run(), lambda out: out.reshape(call.size, length, *out.shape[1:]))


# Views --------------------------------------------------------------------------------------------


@_rule("view")
def view(call: Call) -> Any:
    """Call an op that views its elements in another shape."""
    x, shape = call.values[0], call.of("shape")
    at = call.op.position["shape"]
    shape = tuple(shape)
    if any([type(n) is int and n < 0 for n in shape]):
        shape = shapes.inferred(math.prod(x.shape[1:]), shape)
    call.values[at] = (call.size, *shape)
    return call.run()


@_rule("expand")
def expand(call: Call) -> Any:
    """Expand the examples."""
    x, sizes = call.values[0], tuple(call.of("sizes"))
    if len(sizes) < x.ndim - 1:
        raise RuntimeError(
            f"expand(torch.FloatTensor{{{list(x.shape[1:])}}}, size={list(sizes)}): the number of sizes provided "
            f"({len(sizes)}) must be greater or equal to the number of dimensions in the tensor ({x.ndim - 1})"
        )
    if x.ndim - 1 < len(sizes):
        x = x.view(x.shape[0], *(1,) * (len(sizes) - x.ndim + 1), *x.shape[1:])
    call.values[0], call.values[call.op.position["sizes"]] = x, (call.size, *sizes)
    return call.run()


@_rule("permute")
def permute(call: Call) -> Any:
    """Permute the dimensions of the examples."""
    rank, dims = call.rank(0), tuple(call.of("dims"))
    if len(dims) != rank:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {rank} is not equal to len(dims) = {len(dims)}"
        )
    call.values[1] = (0, *[_shifted(dim, rank) % (rank + 1) for dim in dims])
    return call.run()


@_rule("unsqueeze")
def unsqueeze(call: Call) -> Any:
    """Insert a dimension into the examples."""
    call.values[1] = _shifted(call.values[1], call.rank(0) + 1)
    return call.run()


@_rule("squeeze")
def squeeze(call: Call) -> Any:
    """Remove the dimensions of one element of the examples, or those of given dimensions."""
    x = call.values[0]
    if "dim" in call.op.position:
        _shifted(call.of("dim"), x.ndim - 1)
        dims: tuple[int, ...] = (call.of("dim"),)
    elif "dims" in call.op.position:
        dims = tuple(call.of("dims"))
    else:
        dims = tuple(range(x.ndim - 1))
    if x.ndim == 1:
        return x.view(x.shape)
    return x.squeeze(tuple([_shifted(dim, x.ndim - 1) for dim in dims]))


@_rule("t")
def t(call: Call) -> Any:
    """Transpose matrices."""
    x = call.values[0]
    return x.transpose(1, 2) if x.ndim == 3 else x.view(x.shape)


@_rule("strided")
def strided(call: Call) -> Any:
    """View the memory of the examples by a place in that of one."""
    x, (shape, strides, offset), _ = call.values
    own = x._memory
    if type(own) is not np.ndarray or any(step < 0 for step in strides):
        raise NoRule
    step = own.strides[0] // own.itemsize
    reach = sum([(n - 1) * at // own.itemsize for n, at in zip(own.shape[1:], own.strides[1:], strict=True)])
    if own.size and 0 not in shape and not 0 <= offset <= places.end((shape, strides, offset)) - 1 <= reach:
        raise RuntimeError(
            f"result = tensor.as_strided({list(shape)}, {list(strides)}, ...) reaches beyond the memory of one example "
            f"of shape {list(own.shape[1:])}. This is not supported inside of vmap, please try to rewrite the "
            "`as_strided` call as a sequence of PyTorch view operations"
        )
    if not own.size and 0 not in shape:
        raise RuntimeError("as_strided of an example without elements. This is not supported inside of vmap")
    full = (tuple(own.shape), tuple([each // own.itemsize for each in own.strides]), 0)
    return call.op.caller(x, ((call.size, *shape), (step, *strides), offset), full)


# Sequences ----------------------------------------------------------------------------------------


@_rule("sequence")
def sequence(call: Call) -> Any:
    """Join tensors along a dimension; those that are not batched are copied."""
    op, values = call.op, call.values
    xs, which = values[0], call.which[0]
    ranks = [x.ndim - bool(ours) for x, ours in zip(xs, which, strict=True)]
    dim = values[op.position["dim"]]
    stacks = op.name == "_stack"
    whole = [x if ours else x.unsqueeze(0).expand(call.size, *x.shape) for x, ours in zip(xs, which, strict=True)]
    rank = max(ranks)
    if not stacks and min(ranks) != rank:  # (an empty vector may be joined with anything)
        whole = [x for x, own in zip(whole, ranks, strict=True) if own == rank or x.numel()]
        if any([x.ndim - 1 != rank for x in whole]):
            raise NoRule
    values[0] = whole
    values[op.position["dim"]] = _shifted(dim, rank + stacks)
    return call.run()


# Products -----------------------------------------------------------------------------------------


def _matrices(x_turned: bool, y_turned: bool) -> Callable[[Call], Any]:
    """Return the rule of a product of matrices, or of stacks of them, of which some are transposed."""

    def rule(call: Call) -> Any:
        x, y = call.values
        of_x, of_y = map(bool, call.which)
        _check_product(call, *((2,) if call.op.name == "mm" else (max(call.rank(0), 3),)))
        x, y = x.mT if x_turned else x, y.mT if y_turned else y
        size = call.size
        if x.shape[-1] != y.shape[-2]:
            raise NoRule
        if call.op.name == "mm":
            if of_x and of_y:
                return x @ y
            if of_x:
                return (x.reshape(size * x.shape[1], x.shape[2]) @ y).reshape(size, x.shape[1], y.shape[1])
            return (y.mT.reshape(size * y.shape[2], y.shape[1]) @ x.mT).reshape(size, y.shape[2], x.shape[0]).mT
        lead = tuple(x.shape[of_x:-2])
        if lead != tuple(y.shape[of_y:-2]):
            raise NoRule
        if of_x and of_y:
            many = size * math.prod(lead)
            out = x.reshape(many, *x.shape[-2:]) @ y.reshape(many, *y.shape[-2:])
            return out.reshape(size, *lead, *out.shape[1:])
        x = x.reshape(*(size,) * of_x, math.prod(lead), *x.shape[-2:])
        y = y.reshape(*(size,) * of_y, math.prod(lead), *y.shape[-2:])
        out = _rows_of_all(x, y) if of_x else _rows_of_all(y.mT, x.mT).mT
        return out.reshape(size, *lead, *out.shape[-2:])

    return rule


for _name, _x_turned, _y_turned in (("", False, False), ("_nt", False, True), ("_tn", True, False)):
    RULES[f"mm{_name}"] = RULES[f"bmm{_name}"] = _matrices(_x_turned, _y_turned)


def _rows_of_all(x: Any, y: Any) -> Any:
    """Return the products of batched stacks of matrices `x` and a stack `y` that is not batched."""
    size, many, rows, inner = x.shape
    out = x.transpose(0, 1).reshape(many, size * rows, inner) @ y
    return out.reshape(many, size, rows, y.shape[2]).transpose(0, 1)


def _check_product(call: Call, *ranks: int) -> None:
    """Leave products that the op refuses to the op, which raises its error for one example."""
    x, y = call.values
    if (call.rank(0), call.rank(1)) != (ranks * 2)[:2] or x._array.dtype != y._array.dtype or not x.numel():
        raise NoRule


@_rule("mv")
def mv(call: Call) -> Any:
    """Multiply matrices and vectors."""
    _check_product(call, 2, 1)
    x, y = call.values
    if not call.which[0]:
        return y @ x.mT
    return (x @ y.unsqueeze(2)).squeeze(2) if call.which[1] else x @ y


@_rule("mv_t")
def mv_t(call: Call) -> Any:
    """Multiply transposed matrices and vectors."""
    call.values[0] = call.values[0].mT
    return mv(call)


@_rule("vm")
def vm(call: Call) -> Any:
    """Multiply vectors and matrices."""
    call.values = [call.values[1].mT, call.values[0]]
    call.which = [call.which[1], call.which[0]]
    return mv(call)


@_rule("dot")
def dot(call: Call) -> Any:
    """Multiply vectors."""
    _check_product(call, 1, 1)
    x, y = call.values
    if call.which[0] and call.which[1]:
        return (x.unsqueeze(1) @ y.unsqueeze(2)).reshape(call.size)
    return x @ y if call.which[0] else y @ x


@_rule("outer")
def outer(call: Call) -> Any:
    """Multiply all pairs of elements of two tensors."""
    x, y = call.whole(0), call.whole(1)
    rank = y.ndim - 1
    return x.reshape(*x.shape, *(1,) * rank) * y.reshape(call.size, *(1,) * (x.ndim - 1), *y.shape[1:])


@_rule("linear")
def linear(call: Call) -> Any:
    """Apply layers: one to all examples at once, or to each example its own."""
    x, weight, bias = call.values
    of_x, of_weight, of_bias = map(bool, call.which)
    if not of_weight and not of_bias:
        return call.run()
    if call.shape(0)[-1] != call.shape(1)[-1] or not x.ndim:
        raise NoRule
    if not of_weight:
        out = call.op.caller(x, weight, None)
        if bias is not None and not of_x:
            return out + padded(bias, out.ndim + 1)
    elif weight.ndim == 2 or not x.numel() or not weight.numel():  # the weight of one example is a vector
        raise NoRule
    else:
        shape, n = call.shape(0), weight.shape[1]
        if of_x:
            rows = x.reshape(call.size, math.prod(shape[:-1]), shape[-1])
        else:
            rows = x.reshape(1, math.prod(shape[:-1]), shape[-1]).expand(call.size, -1, -1)
        if bias is not None and call.rank(2) == 1 and bias._array.dtype == rows._array.dtype:
            out = call.whole(2).unsqueeze(1).baddbmm(rows, weight.mT)
            return out.reshape(call.size, *shape[:-1], n)
        out = (rows @ weight.mT).reshape(call.size, *shape[:-1], n)
    if bias is None:
        return out
    return out + (padded(bias, out.ndim) if of_bias else bias)


# Rules by other ops -------------------------------------------------------------------------------

#: Rules that compute an op by others, which are called on the batched tensors: they read as if of one example.
STEPS: dict[Any, Callable[..., Any]] = {}


def _steps(name: str) -> Callable[[Any], Any]:
    def declare(function: Any) -> Any:
        STEPS[name] = function
        RULES[name] = _no_rule
        return function

    return declare


def _no_rule(call: Call) -> Any:
    raise NoRule


def _weighted(x: Any, product: Any, beta: Any, alpha: Any) -> Any:
    product = product if type(alpha) is int and alpha == 1 else product * alpha
    if not isinstance(beta, Tensor) and beta == 0:
        return product
    return (x if type(beta) is int and beta == 1 else x * beta) + product


@_steps("addmm")
def addmm(x: Any, a: Any, b: Any, beta: Any, alpha: Any) -> Any:
    """X * beta + (a @ b) * alpha."""
    return _weighted(x, a @ b, beta, alpha)


@_steps("addbmm")
def addbmm(x: Any, a: Any, b: Any, beta: Any, alpha: Any) -> Any:
    """The same with the sum of the products of a stack."""
    return _weighted(x, (a @ b).sum(0), beta, alpha)


@_steps("addr")
def addr(x: Any, a: Any, b: Any, beta: Any, alpha: Any) -> Any:
    """The same with an outer product."""
    return _weighted(x, a.unsqueeze(1) * b.unsqueeze(0), beta, alpha)


# More dimensions ----------------------------------------------------------------------------------


@_rule("over")
def over(call: Call) -> Any:
    """As "along", for an op whose dimensions are a tuple."""
    at = call.op.position["dim"]
    dim, rank = call.values[at], call.rank(0)
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        call.values[at] = tuple(range(rank)) if rank else (0,)
    elif isinstance(dim, int):
        call.values[at] = (dim,)
    return along(call)


@_rule("rolled")
def rolled(call: Call) -> Any:
    """Roll along dimensions; without any, the examples flattened."""
    x, shifts, dims = call.values
    if not dims:
        flat = x.reshape(call.size, math.prod(x.shape[1:]))
        return call.op.caller(flat, shifts, (1,)).reshape(x.shape)
    return along(call)


@_rule("repeated")
def repeated(call: Call) -> Any:
    """Repeat the examples."""
    x, repeats = call.values[0], tuple(call.of("repeats"))
    call.values[0] = padded(x, len(repeats) + 1)
    call.values[call.op.position["repeats"]] = (1, *repeats)
    return call.run()


@_rule("summed to")
def summed_to(call: Call) -> Any:
    """Sum the examples to a size."""
    x, size = call.values[0], tuple(call.of("size"))
    extra = x.ndim - 1 - len(size)
    if extra > 0:
        x = x.sum(tuple(range(1, extra + 1)))
    dims = tuple([k + 1 for k, (have, want) in enumerate(zip(x.shape[1:], size, strict=True)) if have != want])
    return x.sum(dims, True) if dims else x if extra > 0 else x.clone()


@_rule("cloned")
def cloned(call: Call) -> Any:
    """Copy the examples."""
    name = str(call.of("memory_format"))
    if "channels_last" in name:
        raise RuntimeError(
            "NYI: querying is_contiguous inside of vmap for memory_format other than torch.contiguous_format. NYI: "
            "Tensor.clone(memory_format) inside vmap is only supported with memory_format torch.preserve_format or "
            f"torch.contiguous_format (got {name})"
        )
    return call.run()


@_rule("rectified")
def rectified(call: Call) -> Any:
    """Apply slopes per channel, the second dimension."""
    op = call.op
    weight = op.position["weight"]
    ranks = {i: call.rank(i) for i in call.tensors() if i != weight}
    rank = max(ranks.values())
    for i, own in ranks.items():
        if own != rank:
            raise NoRule
        call.values[i] = call.whole(i)
    call.values[weight] = padded(call.whole(weight), rank + 1)
    if op.outputs != 1:
        raise NoRule
    return call.run()


# Indices ------------------------------------------------------------------------------------------


def _steps_of(size: int, rank: int) -> Any:
    """Return the numbers of the examples as an index array of `rank` further dimensions."""
    return np.arange(size).reshape(size, *(1,) * rank)


def _index_facts(call: Call) -> tuple[list[Any], list[bool], int, int, bool]:
    """Return the index arrays, which are batched, the rank of their result, and where it is in one example.

    Returns:
        (arrays, which, rank, the first indexed dimension, whether the indexed dimensions are adjacent).
    """
    at = call.op.position["indices"]
    arrays, which = list(call.values[at]), call.which[at] or [False] * len(call.values[at])
    for each, ours in zip(arrays, which, strict=True):
        if each is not None and each.dtype.kind == "b":
            if ours:
                raise RuntimeError(DYNAMIC_MASK)
            raise NoRule
    ranks = [each.ndim - ours for each, ours in zip(arrays, which, strict=True) if each is not None]
    used = [k for k, each in enumerate(arrays) if each is not None]
    return arrays, which, max(ranks), used[0], used[-1] - used[0] + 1 == len(used)


def _aligned(arrays: list[Any], which: list[bool], rank: int) -> list[Any]:
    """Return index arrays that broadcast to a rank; those that are batched at outer levels, too, as such."""
    return [_aligned_one(each, rank + 1) if ours else each for each, ours in zip(arrays, which, strict=True)]


def _aligned_one(array: Any, ndim: int) -> Any:
    if hasattr(array, "under"):  # (a view of this array is no longer that of a batched tensor)
        return padded(batching.batched(array.under, array.level), ndim)._array
    return padded(array, ndim)


DYNAMIC = (
    "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over {}. "
    "Please voice your support in https://github.com/pytorch/functorch/issues/256"
)
DYNAMIC_MASK = DYNAMIC.format("indexing with a boolean mask")


@_rule("dynamic")
def dynamic(call: Call) -> Any:
    """Raise PyTorch's error: the shape of the result depends on the elements."""
    raise RuntimeError(DYNAMIC.format(f"aten::{call.op.name.strip('_')}"))


@_rule("index")
def index(call: Call) -> Any:
    """Index the examples by arrays, which may differ between them."""
    x = call.values[0]
    arrays, which, rank, first, adjacent = _index_facts(call)
    caller = call.op.caller
    if not any(which):
        out = caller(x, (None, *arrays))
        return out if adjacent else out.movedim(rank, 0)
    arrays = _aligned(arrays, which, rank)
    if not call.which[0]:
        out = caller(x, tuple(arrays))
        return out.movedim(first, 0) if adjacent and first else out
    out = caller(x, (_steps_of(call.size, rank), *arrays))
    if adjacent and first:  # (the indexed dimensions come first in the result, as they are not adjacent any more)
        return out.movedim(tuple(range(1, rank + 1)), tuple(range(first + 1, first + 1 + rank)))
    return out


@_rule("index put")
def index_put(call: Call) -> Any:
    """Write at indices of the examples."""
    values = call.values
    arrays, which, rank, first, adjacent = _index_facts(call)
    x, y = call.whole(0), values[2]
    shape, ours = tuple(x.shape[1:]), call.which[2]
    arrays = _aligned(arrays, which, rank)
    bounds = np.broadcast_shapes(
        *[a.shape[1:] if o else a.shape for a, o in zip(arrays, which, strict=True) if a is not None]
    )
    used = [k for k, each in enumerate(arrays) if each is not None]
    rest = [n for k, n in enumerate(shape) if k not in used]
    before = first if adjacent else 0
    target = (*rest[:before], *bounds, *rest[before:])
    if not any(which) and adjacent:
        y = padded(y, len(target) + 1) if ours else y
        call.values = [x, (None, *arrays), y, values[3]]
        return call.run()
    if ours:
        y = padded(y, len(target) + 1).expand(call.size, *target)
    else:
        y = y.expand(target).unsqueeze(0).expand(call.size, *target)
    if before:
        y = y.movedim(tuple(range(before + 1, before + 1 + rank)), tuple(range(1, rank + 1)))
    call.values = [x, (_steps_of(call.size, rank), *arrays), y, values[3]]
    return call.run()


@_rule("rows")
def rows(call: Call) -> Any:
    """Select rows along a dimension."""
    x, dim, which = call.values
    if not call.which[2]:
        call.values[1] = _shifted(dim, call.rank(0))
        if x.ndim == 1:
            raise NoRule
        return call.run()
    if which.ndim == 1 or call.rank(0) == 0:
        raise NoRule
    dim = dim % call.rank(0)
    if not call.which[0]:
        out = x.index_select(dim, which.reshape(which.numel()))
        return out.unflatten(dim, tuple(which.shape)).movedim(dim, 0)
    shape = (*x.shape[: dim + 1], which.shape[1], *x.shape[dim + 2 :])
    chosen = which.reshape(call.size, *(1,) * dim, which.shape[1], *(1,) * (x.ndim - dim - 2)).expand(shape)
    return x.gather(dim + 1, chosen.to(dtypes.int64))


@_rule("rows added")
def rows_added(call: Call) -> Any:
    """Write rows along a dimension, at the same places in all examples."""
    op, values = call.op, call.values
    if call.which[op.position["index"]] or call.rank(0) == 0:
        raise NoRule
    values[op.position["dim"]] = _shifted(call.of("dim"), call.rank(0))
    for name in ("x", "source"):
        if name in op.position:
            values[op.position[name]] = call.whole(op.position[name])
    if "value" in op.position and call.which[op.position["value"]]:
        raise NoRule
    if "source" in op.position and call.values[op.position["source"]].ndim != values[0].ndim:
        raise NoRule
    return call.run()


@_rule("rows back")
def rows_back(call: Call) -> Any:
    """Write rows into zeros of a shape, at the same places in all examples."""
    if call.which[call.op.position["index"]] or not call.of("shape"):
        raise NoRule
    shape = tuple(call.of("shape"))
    call.values[call.op.position["shape"]] = (call.size, *shape)
    call.values[call.op.position["dim"]] = _shifted(call.of("dim"), len(shape))
    return call.run()


@_rule("put back")
def put_back(call: Call) -> Any:
    """Add at indices of zeros of a shape."""
    shape = tuple(call.of("shape"))
    arrays, which, rank, first, adjacent = _index_facts(call)
    x = call.whole(0)
    if not any(which) and adjacent:
        return call.op.caller(x, (call.size, *shape), (None, *arrays))
    if adjacent and first:
        x = x.movedim(tuple(range(first + 1, first + 1 + rank)), tuple(range(1, rank + 1)))
    return call.op.caller(x, (call.size, *shape), (_steps_of(call.size, rank), *_aligned(arrays, which, rank)))


@_rule("take")
def take(call: Call) -> Any:
    """Take elements by their number."""
    x, which = call.values
    if not call.which[0]:
        return call.run()
    count = math.prod(x.shape[1:])
    which = call.whole(1)
    flat = which.reshape(call.size, math.prod(which.shape[1:]))
    if not count:
        raise NoRule
    return x.reshape(call.size, count).gather(1, flat.where(flat >= 0, flat + count)).reshape(which.shape)


@_rule("embedding")
def embedding(call: Call) -> Any:
    """Look up rows of weights, which may differ between the examples."""
    weight, which, padding, _ = call.values
    if not call.which[0]:
        return call.run()
    if padding is not None and padding >= 0:
        raise NoRule
    length = weight.shape[1]
    which = call.whole(1)
    starts = Tensor.new_tensor(which, np.arange(call.size) * length).reshape(call.size, *(1,) * (which.ndim - 1))
    call.values[0], call.values[1] = weight.reshape(call.size * length, *weight.shape[2:]), which + starts
    return call.run()


@_rule("embedding gradient")
def embedding_gradient(call: Call) -> Any:
    """Add rows into zeros."""
    op = call.op
    count, which, padding = call.of("count"), call.whole(op.position["indices"]), call.of("padding_idx")
    g = call.whole(0)
    if padding is not None and padding >= 0:
        g = g * (which != padding).unsqueeze(-1).to(g.dtype)
    starts = Tensor.new_tensor(which, np.arange(call.size) * count).reshape(call.size, *(1,) * (which.ndim - 1))
    out = op.caller(g, call.size * count, which + starts, -1, call.of("scale_grad_by_freq"))
    return out.reshape(call.size, count, *out.shape[1:])


# Losses -------------------------------------------------------------------------------------------


def _reduced(losses: Any, call: Call, reduction: str) -> Any:
    """Return the mean or sum of the losses of each example."""
    if reduction == "none":
        return losses
    flat = losses.reshape(call.size, math.prod(losses.shape[1:]))
    return flat.mean(1) if reduction == "mean" else flat.sum(1)


@_rule("loss")
def loss(call: Call) -> Any:
    """Compute the losses of all elements, and reduce those of each example."""
    reduction = call.of("reduction")
    call.values[call.op.position["reduction"]] = "none"
    main = [call.op.position[name] for name in ("x", "y") if name in call.op.position]
    rank = max([call.rank(i) for i in main])
    for i in main:
        call.values[i] = padded(call.whole(i), rank + 1)
    for i in call.tensors():
        if i not in main and call.which[i]:
            call.values[i] = padded(call.values[i], rank + 1)
    return _reduced(call.run(), call, reduction)


@_rule("classes")
def classes(call: Call) -> Any:
    """Compute losses over classes, along the first dimension of a vector and the second of other scores."""
    op, values = call.op, call.values
    reduction, ignored = call.of("reduction"), call.of("ignore_index")
    x, target = call.whole(op.position["x"]), call.whole(op.position["target"])
    weight = call.of("weight")
    if call.which[op.position["weight"]] or not x.numel():
        raise NoRule
    labels = not target.is_floating_point()
    vector = x.ndim == 2
    if labels and target.ndim != x.ndim - 1:
        raise NoRule
    if not labels and target.ndim != x.ndim:
        raise NoRule
    flat = x if vector else x.reshape(-1, *x.shape[2:])
    of_all = target if vector else target.reshape(-1, *target.shape[2:])
    values[op.position["x"]], values[op.position["target"]] = flat, of_all
    values[op.position["reduction"]] = "none"
    losses = call.run()
    if not vector:
        losses = losses.reshape(call.size, x.shape[1], *losses.shape[1:])
    if reduction == "none":
        return losses
    total = losses.reshape(call.size, math.prod(losses.shape[1:])).sum(1)
    if reduction == "sum":
        return total
    if not labels:
        return total / (math.prod(losses.shape[1:]) or 1)
    kept = target != ignored
    if weight is None:
        counts = kept.to(total.dtype)
    else:
        counts = weight[target.where(kept, target.new_zeros(()))] * kept
    count = counts.reshape(call.size, math.prod(counts.shape[1:])).sum(1)
    return total / count.masked_fill(count == 0, math.nan)


@_steps("nll gradient")
def nll_gradient(g: Any, x: Any, target: Any, weight: Any, ignore_index: int, reduction: str) -> Any:
    """Minus the weight of each label, at its place."""
    dim = 0 if x.ndim == 1 else 1
    kept = target != ignore_index
    safe = target.where(kept, target.new_zeros(()))
    share = kept.to(x.dtype) if weight is None else weight[safe] * kept
    if reduction == "mean":
        total = share.sum()
        g = g / total.masked_fill(total == 0, math.nan)
    places, values = safe.unsqueeze(dim).to(dtypes.int64), (-share * g).masked_fill(~kept, 0).unsqueeze(dim)
    return x.new_zeros(x.shape).scatter(dim, places, values)


# Convolutions -------------------------------------------------------------------------------------


def _with_channels(x: Any) -> Any:
    """Return (B, N, C, ...) as (N, B * C, ...)."""
    x = x.transpose(0, 1)
    return x.reshape(x.shape[0], x.shape[1] * x.shape[2], *x.shape[3:])


def _without_channels(x: Any, size: int) -> Any:
    """Return (N, B * C, ...) as (B, N, C, ...)."""
    return x.unflatten(1, (size, x.shape[1] // size)).transpose(0, 1)


@_rule("convolution")
def convolution(call: Call) -> Any:
    """Convolve: examples of one weight as samples of one convolution; those of their own weights as groups."""
    op, values = call.op, call.values
    x, w, b = values[:3]
    of_x, of_w, of_b = map(bool, call.which[:3])
    run, rest = op.caller, dict(zip(op.arguments[3:], values[3:], strict=True))
    if not of_w:
        bias = None if of_b else b
        if of_x:
            if not x.shape[1] * call.size:
                raise NoRule
            out = run(x.reshape(call.size * x.shape[1], *x.shape[2:]), w, bias, **rest)
            out = out.unflatten(0, (call.size, x.shape[1]))
        else:
            out = run(x, w, bias, **rest).unsqueeze(0)
        if of_b:
            out = out + b.reshape(call.size, 1, b.shape[1], *(1,) * (out.ndim - 3))
        return out
    groups = rest["groups"]
    if not of_x and groups == 1 and op.name == "_convolution":  # the weights as one, of more channels
        out = run(x, w.reshape(call.size * w.shape[1], *w.shape[2:]), None, **rest)
    else:
        rest["groups"] = groups * call.size
        flat = w.reshape(call.size * w.shape[1], *w.shape[2:])
        out = run(_with_channels(call.whole(0)), flat, None, **rest)
    out = _without_channels(out, call.size)
    if b is not None:
        b = call.whole(2)
        out = out + b.reshape(call.size, 1, b.shape[1], *(1,) * (out.ndim - 3))
    return out


@_rule("convolution weight")
def convolution_weight(call: Call) -> Any:
    """Compute gradients of weights: of one weight per example, as groups."""
    values = call.values
    x, y = call.whole(0), call.whole(1)
    groups = call.op.position["groups"]
    values[0], values[1] = _with_channels(x), _with_channels(y)
    values[groups] = values[groups] * call.size
    out = call.run()
    return out.unflatten(0, (call.size, out.shape[0] // call.size))


# Normalisations -----------------------------------------------------------------------------------


@_rule("layer norm")
def layer_norm(call: Call) -> Any:
    """Normalise over the last dimensions; scales that differ between examples are applied afterwards."""
    op, values = call.op, call.values
    own = [i for i in call.tensors() if i and call.which[i]]
    if not own:
        return call.run()
    factors = {op.arguments[i]: (values[i], i in own) for i in call.tensors() if i}
    for i in call.tensors():
        if i:
            values[i] = None
    out = call.run()
    if not call.which[0]:
        out = out.unsqueeze(0)
    rank = out.ndim
    for name, (each, ours) in factors.items():
        each = padded(each, rank) if ours else each
        out = out * each if name == "weight" else out + each
    return out


@_steps("layer norm gradient")
def layer_norm_gradient(g: Any, needs: Any, x: Any, count: int, weight: Any, mean: Any, scale: Any) -> Any:
    """The gradients of `layer_norm` in Tensor code."""
    dims, leading_dims = tuple(range(-count, 0)), tuple(range(x.ndim - count))
    shape = (*x.shape[: x.ndim - count], *(1,) * count)
    scale = scale.reshape(shape)
    normal = (x - mean.reshape(shape)) * scale
    of_x = of_weight = of_bias = None
    if needs[0]:
        slope = g if weight is None else g * weight
        of_x = (slope - slope.mean(dims, True) - normal * (slope * normal).mean(dims, True)) * scale
    if needs[1]:
        of_weight = (g * normal).sum(leading_dims) if leading_dims else g * normal
    if needs[2]:
        of_bias = g.sum(leading_dims) if leading_dims else g
    return of_x, of_weight, of_bias


@_steps("rms norm gradient")
def rms_norm_gradient(g: Any, needs: Any, x: Any, count: int, weight: Any, scale: Any) -> Any:
    """The gradients of `rms_norm` in Tensor code."""
    dims, leading_dims = tuple(range(-count, 0)), tuple(range(x.ndim - count))
    scale = scale.reshape(*x.shape[: x.ndim - count], *(1,) * count)
    of_x = of_weight = None
    if needs[0]:
        slope = g if weight is None else g * weight
        of_x = (slope - x * scale * scale * (slope * x).mean(dims, True)) * scale
    if needs[1]:
        of_weight = g * x * scale
        of_weight = of_weight.sum(leading_dims) if leading_dims else of_weight
    return of_x, of_weight


@_rule("channels")
def channels(call: Call) -> Any:
    """Make the batch part of the channels, each of which is normalised alone."""
    op, values = call.op, call.values
    main = [op.position[name] for name in ("g", "x") if name in op.position]
    size = call.size
    for i in call.tensors():
        x = call.whole(i)
        if i in main:
            values[i] = _with_channels(x)
        elif x.ndim == 3:  # statistics (1, C)
            values[i] = x.transpose(0, 1).reshape(x.shape[1], size * x.shape[2])
        else:
            values[i] = x.reshape(size * x.shape[1])
    if "groups" in op.position:
        values[op.position["groups"]] *= size
    result = call.run()
    parts = list(result) if isinstance(result, tuple) else [result]
    for k, each in enumerate(parts):
        if each is not None and each.ndim > 1:
            parts[k] = _without_channels(each, size)
        elif each is not None and each.numel():
            parts[k] = each.reshape(size, each.shape[0] // size)
        elif each is not None:
            parts[k] = each.unsqueeze(0).expand(size, *each.shape)
    return tuple(parts) if isinstance(result, tuple) else parts[0]


@_rule("attention")
def attention(call: Call) -> Any:
    """Attend: any number of leading dimensions."""
    rank = max([call.rank(i) for i in call.tensors()])
    for i in call.tensors():
        if call.which[i] or call.op.arguments[i] in ("query", "key", "value", "g", "weights", "out"):
            call.values[i] = padded(call.whole(i), rank + 1)
    return call.run()


# Others -------------------------------------------------------------------------------------------


@_rule("filled")
def filled(call: Call) -> Any:
    """Fill with a number, which may differ between the examples."""
    x, value = call.values
    if not call.which[1]:
        return call.run()
    x = call.whole(0)
    return value.reshape(call.size, *(1,) * (x.ndim - 1)).to(x.dtype).expand(x.shape).clone()


@_rule("masked fill")
def masked_fill(call: Call) -> Any:
    """Fill where a mask is true with a number, which may differ between the examples."""
    if not call.which[2]:
        return elementwise(call)
    x, mask, value = [call.whole(i) if isinstance(call.values[i], Tensor) else call.values[i] for i in range(3)]
    rank = max(x.ndim, mask.ndim)
    return padded(value, rank).to(x.dtype).where(padded(mask, rank), padded(x, rank))


@_rule("diagonal matrix")
def diagonal_matrix(call: Call) -> Any:
    """A matrix with a number on its diagonal."""
    x, (m, n) = call.values
    return x.reshape(call.size, 1, 1) * x.new_tensor(np.eye(m, n))


@_rule("of type")
def of_type(call: Call) -> Any:
    """Return what depends on the shape and the dtype of an example alone."""
    x = call.values[0]
    if not call.size or any(call.which[1:]):
        raise NoRule
    call.values[0] = x.select(0, 0)
    return _each(call.op.caller(*call.values), lambda out: out.unsqueeze(0).expand(call.size, *out.shape))


#: The number of dimensions of an example of the arguments of ops of stacks of matrices; of others it is 2.
_CORES = {"pivots": 1, "tau": 1}


@_rule("stacks")
def stacks(call: Call) -> Any:
    """Call an op of stacks of matrices and vectors, whose leading dimensions broadcast."""
    if any([self_batched for i, self_batched in enumerate(call.which) if i not in call.op.inputs]):
        raise NoRule
    cores = {i: _CORES.get(call.op.arguments[i], 2) for i in call.tensors()}
    if "vector" in call.op.position and call.of("vector"):
        cores[call.op.position["y"]] = 1
    more = {i: call.rank(i) - core for i, core in cores.items()}
    if min(more.values()) < 0 or ("driver" in call.op.position and len(set(more.values())) > 1):
        raise NoRule
    for i, own in more.items():
        x = call.whole(i)
        call.values[i] = padded(x, x.ndim + max(more.values()) - own)
    return _with_batch(call, call.run())


@_rule("same shape")
def same_shape(call: Call) -> Any:
    """Call an op of tensors of one shape."""
    if len({call.shape(i) for i in call.tensors()}) > 1:
        raise NoRule
    return leading(call)


@_rule("soft targets")
def soft_targets(call: Call) -> Any:
    """Compute targets, which depend on the scores' shape alone."""
    position = call.op.position
    if call.which[position["target"]] or call.which[position["weight"]] or not call.size:
        raise NoRule
    return of_type(call)


@_steps("prelu gradient")
def prelu_gradient(g: Any, x: Any, weight: Any) -> Any:
    """The gradients of both arguments."""
    above = x > 0
    return g.where(above, g * weight), (g * x).masked_fill(above, 0)


@_rule("unmasked")
def unmasked(call: Call) -> Any:
    """Write elements into zeros where a mask is true, the same for all examples."""
    x, shape, mask = call.values
    if call.which[2] or not call.which[0]:
        raise NoRule
    full = np.broadcast_shapes(tuple(shape), tuple(mask.shape))
    chosen = x.new_tensor(np.arange(math.prod(full))).reshape(full)[mask.expand(full)].to(dtypes.int64)
    out = x.new_zeros((call.size, math.prod(full)))
    return out.index_copy(1, chosen, x.reshape(call.size, len(chosen))).reshape(call.size, *full)


@_rule("placed in memory")
def placed_in_memory(call: Call) -> Any:
    """Call an op of places in memory: each example has a memory of its own."""
    op, values = call.op, call.values
    names = [name for name in ("source", "target", "whole", "part") if name in op.position]
    given = {name: call.of(name) for name in names}
    if any([offset < 0 or min(strides, default=0) < 0 for _, strides, offset in given.values()]):
        raise NoRule
    length = max([places.end(where) for where in given.values()])
    for name, (shape, strides, offset) in given.items():
        values[op.position[name]] = ((call.size, *shape), (length, *strides), offset)
    for i in call.tensors():
        x = call.whole(i)
        if op.arguments[i] == "y":
            x = padded(x, len(given["part"][0]) + 1)
        values[i] = x
    return op.caller(*values)


@_steps("taken back")
def taken_back(x: Any, shape: Any, index: Any) -> Any:
    """Zeros with elements added at places of the flattened array."""
    count = math.prod(shape)
    at = index.reshape(index.numel())
    at = at.where(at >= 0, at + count)
    return x.new_zeros((count,)).scatter_add(0, at, x.reshape(x.numel())).reshape(tuple(shape))


@_steps("block diagonal")
def block_diagonal(xs: Any) -> Any:
    """The matrix with matrices on its diagonal."""
    if len({x.dtype for x in xs}) > 1:
        return NotImplemented
    blocks = [x if x.ndim == 2 else x.reshape((1, 1, *x.shape)[-2:]) for x in xs]
    m, n = (sum([block.shape[i] for block in blocks]) for i in (0, 1))
    total, row, column = None, 0, 0
    for block in blocks:
        rows_of, columns_of = block.shape
        around = (column, n - column - columns_of, row, m - row - rows_of)
        part = pad(block, around)
        total = part if total is None else total + part
        row, column = row + rows_of, column + columns_of
    return total


@_steps("filled sum")
def filled_sum(x: Any, dim: int, index: Any) -> Any:
    """The sum of rows, each counted once."""
    if type(index) is not Tensor:
        return NotImplemented
    return x.index_select(dim, (index % max(x.shape[dim], 1)).unique()).sum() if x.ndim else x.clone()


@_rule("integer product")
def integer_product(call: Call) -> Any:
    """Multiply matrices of integers: the rows of all examples at once."""
    x, y = call.values
    if call.which[1] or x.ndim != 3:
        raise NoRule
    return call.op.caller(x.reshape(-1, x.shape[2]), y).reshape(call.size, x.shape[1], y.shape[1])
