"""The rules by which ops compute whole batches inside of `vmap`; declarations name them (`batch="leading"`).

A rule gets a `Call`, whose batched tensors have all examples along a first dimension, and returns the results with such
a dimension, and is declared by `@_rule(NAME)`. Most rules are about where the op's own dimensions are: "elementwise"
aligns the shapes of the examples, "along" shifts arguments that are dimensions, "folded" makes the batch part of the
first dimension.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinytorch.core.declaration import DIMENSIONS, Op, signature
from tinytorch.core.mode import local
from tinytorch.core.supplied import batching
from tinytorch.core.tensor import Tensor
from tinytorch.kernels import dtypes, places
from tinytorch.kernels import shape as shapes
from tinytorch.kernels.checks import counted

__all__ = ["RULES", "Call", "NoRule", "padded", "per_example", "rule_of", "without_rule"]


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

    def align(self, core: Callable[[int], int] = lambda i: 0, whole: bool = True) -> None:
        """Make the numbers of dimensions of all tensors equal, apart from the op's own, the last `core` of each.

        `whole`: a tensor that is not batched is copied for all examples; else broadcasting does so.
        """
        more = {i: self.rank(i) - core(i) for i in self.tensors()}
        if min(more.values()) < 0:
            raise NoRule
        for i, own in more.items():
            if whole or self.which[i]:
                x = self.whole(i)
                self.values[i], self.which[i] = padded(x, x.ndim + max(more.values()) - own), True


def padded(x: Any, ndim: int) -> Any:
    """Return a batched tensor with dimensions of one element inserted after the first, up to `ndim` in all."""
    return x if x.ndim >= ndim else x.reshape(x.shape[0], *(1,) * (ndim - x.ndim), *x.shape[1:])


def rule_of(op: Op) -> Callable[[Call], Any]:
    """Return the rule of an op."""
    batch = op.batch
    if isinstance(batch, str):
        return functools.partial(product, axes=batch) if "->" in batch else RULES[batch]
    return _no_rule


def _no_rule(call: Call) -> Any:
    raise NoRule


def without_rule(ops: Sequence[Op]) -> list[Op]:
    """Return those ops that are called once per example."""
    return [op for op in ops if op.batch is None]


RULES: dict[str, Callable[[Call], Any]] = {}


def _rule(name: str) -> Callable[[Any], Any]:
    def declare(function: Any) -> Any:
        RULES[name] = function
        return function

    return declare


def per_example(*read: str, dynamic: str | None = None) -> Callable[[Any], Any]:
    """Return a decorator that declares whose elements a function reads outside of ops: arguments by name, or all.

    Where one of them is batched, `vmap` calls the function once per example; this is asked before it does anything.
    If the shape of the result depends on elements, `vmap` refuses it: `dynamic` is PyTorch's name of it, for the error.
    """

    def declare(function: Any) -> Any:
        names = signature(function)[0]

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if local.state.modes is not None:
                given = dict(zip(names, args, strict=False)) | kwargs
                read_here = [each for name, each in given.items() if not read or name in read]
                made = batching.of_batched(call, read_here, args, kwargs, dynamic)
                if made is not NotImplemented:
                    return made
            return function(*args, **kwargs)

        return call

    return declare


# Elements -----------------------------------------------------------------------------------------


@_rule("elementwise")
def elementwise(call: Call) -> Any:
    """Align the shapes of the examples; what is not batched is broadcast."""
    tensors = call.tensors()
    if len(tensors) == 1:
        return call.run()
    rank = max([call.rank(i) for i in tensors])
    expanded = not call.op.broadcasts or bool(call.op.operands and not is_ufunc(call.op))
    _promote(call, tensors, expanded)
    call.align(whole=expanded)
    target: Any = call.target
    if call.caller.writes and call.values[0] is not target:
        raise RuntimeError(
            f"output with shape {list(target.shape[1:])} doesn't match the broadcast shape of {rank} dimensions"
        )
    return call.run()


def is_ufunc(op: Op) -> bool:
    """Return whether a kernel is a ufunc of NumPy; others may need operands of one shape."""
    return isinstance(getattr(op.kernel, "ufunc", op.kernel), np.ufunc)


def _promote(call: Call, tensors: list[int], expanded: bool) -> None:
    """Cast operands of which an example is 0-d: these decide the dtype only if their category is the higher one.

    `expanded`: also one that is not batched is not 0-d any more when the op is called.
    """
    ranks = {i: call.rank(i) for i in tensors if call.op.arguments[i] not in ("condition", "mask")}
    if len({call.values[i]._array.dtype for i in tensors}) == 1 or all(
        [rank or not (expanded or call.which[i]) for i, rank in ranks.items()]
    ):
        return
    target = dtypes.result_dtype(*[(call.values[i].dtype, 2 if rank else 1) for i, rank in ranks.items()])
    for i in ranks:
        x = call.values[i]
        if x.dtype is not target and not (i == 0 and call.caller.writes):
            call.values[i] = x.to(target)


# Dimensions ---------------------------------------------------------------------------------------


def _shifted(dim: Any, rank: int) -> Any:
    """Return a dimension of an example as one of the batch."""
    if isinstance(dim, (tuple, list)):
        return tuple([_shifted(each, rank) for each in dim])
    dim = operator.index(dim)
    counted(dim, max(rank, 1))
    return dim + 1 if dim >= 0 else dim


@_rule("along")
@_rule("over")
def along(call: Call) -> Any:
    """Shift the dimensions among the arguments, of an op that treats all other dimensions alike.

    Those of an op that says "over" are a tuple.
    """
    op, values = call.op, call.values
    tensors = call.tensors()
    ranks = [call.rank(i) for i in tensors]
    rank = max(ranks)
    names = [name for name in DIMENSIONS if name in op.position]
    several = len(tensors) > 1
    if call.caller.writes and (call.rank(0) < rank or (rank == 0 and names)):
        raise NoRule
    if several:
        if not op.broadcasts and len(set(ranks)) > 1:
            raise NoRule
        if op.broadcasts:
            _promote(call, tensors, True)
        call.align()
    if "shape" in op.position:  # (of the result: the gradient of an op whose dimensions these are)
        return _in_shape(call, names)
    keepdim = "keepdim" in op.position and values[op.position["keepdim"]]
    scalar = rank == 0 and bool(names)
    if scalar:
        for i in tensors:
            values[i] = values[i].unsqueeze(-1)
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
            dim = 0
        values[at] = _shifted(dim, 1 if everything else rank)
        if op.batch == "over" and type(values[at]) is int:
            values[at] = (values[at],)
    if keepdim and (scalar or everything):
        values[op.position["keepdim"]] = False
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


#: The number of dimensions of an example of the arguments of ops of stacks of matrices; of others it is 2.
_CORES = {"pivots": 1, "tau": 1}


@_rule("leading")
@_rule("attention")
@_rule("same shape")
@_rule("stacks")
def leading(call: Call) -> Any:
    """Call an op that takes any number of leading dimensions, the same for all tensors unless it broadcasts them.

    The ops of "stacks" of matrices and vectors broadcast the dimensions before these.
    """
    op, values, stacks = call.op, call.values, call.op.batch == "stacks"
    if op.name == "view_as_complex" and values[0].ndim == 1 and call.size:
        op.caller(values[0][0])  # (raises its error)
    if stacks and any([ours for i, ours in enumerate(call.which) if i not in op.inputs]):
        raise NoRule
    vector = stacks and "vector" in op.position and call.of("vector")
    cores = {i: (_CORES.get(op.arguments[i], 2) if stacks else 0) for i in call.tensors()}
    if vector:
        cores[op.position["y"]] = 1
    alike = {call.shape(i) if op.batch == "same shape" else call.rank(i) - core for i, core in cores.items()}
    if len(alike) > 1 and ("driver" in op.position or not (stacks or op.broadcasts or op.batch == "attention")):
        raise NoRule
    if len(cores) > 1:
        call.align(cores.__getitem__)
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


@_rule("sized")
def sized(call: Call) -> Any:
    """Call an op that is given the shape of its result, or by how much the examples are expanded or repeated."""
    x, which = call.values[0], next(name for name in ("shape", "sizes", "repeats") if name in call.op.position)
    sizes = tuple(call.of(which))
    if which == "shape":
        if any([type(n) is int and n < 0 for n in sizes]):
            sizes = shapes.inferred(math.prod(x.shape[1:]), sizes)
    else:
        if which == "sizes" and len(sizes) < x.ndim - 1:
            raise RuntimeError(
                f"expand(torch.FloatTensor{{{list(x.shape[1:])}}}, size={list(sizes)}): the number of sizes provided "
                f"({len(sizes)}) must be greater or equal to the number of dimensions in the tensor ({x.ndim - 1})"
            )
        call.values[0] = padded(x, len(sizes) + 1)
    call.values[call.op.position[which]] = (1 if which == "repeats" else call.size, *sizes)
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


def product(call: Call, axes: str) -> Any:
    """Multiply matrices, vectors, or stacks of matrices, whose axes the op declares: "ik,kj->ij"."""
    x, y = call.values
    of_x, of_y = map(bool, call.which)
    x_axes, y_axes = axes.partition("->")[0].split(",")
    lead = len(x_axes) - 2  # (of stacks)
    if (call.rank(0), call.rank(1)) != (len(x_axes), len(y_axes)) or x._array.dtype != y._array.dtype or not x.numel():
        raise NoRule  # (the op raises its error for one example)
    rows, columns = "i" in x_axes, "j" in y_axes  # (else it is a vector)
    x = x.mT if rows and x_axes[-1] == "i" else x
    y = y.mT if columns and y_axes[-1] == "k" else y
    if x.shape[-1] != y.shape[-2 if columns else -1] or (lead > 0 and x.shape[of_x:-2] != y.shape[of_y:-2]):
        raise NoRule
    if of_x and not (of_y or rows):
        return x @ y  # (the vectors of all examples are a matrix)
    if of_y and not (of_x or columns):
        return y @ (x.mT if rows else x)
    x, y = x if rows else x.unsqueeze(-2), y if columns else y.unsqueeze(-1)
    out = x @ y if of_x else (y.mT @ x.mT).mT
    out = out if rows else out.squeeze(-2)
    return out if columns else out.squeeze(-1)


@_rule("linear")
def linear(call: Call) -> Any:
    """Apply layers: one to all examples at once, or to each example its own."""
    x, weight, bias = call.values
    of_x, of_weight, of_bias = map(bool, call.which)
    if not of_weight and not of_bias:
        return call.run()
    shape = call.shape(0)
    if not shape or shape[-1] != call.shape(1)[-1] or (of_weight and call.rank(1) == 1) or not x.numel():
        raise NoRule
    if of_weight:
        rows = x.reshape(*(call.size,) * of_x, math.prod(shape[:-1]), shape[-1])
        out = (rows @ weight.mT).reshape(call.size, *shape[:-1], weight.shape[1])
    else:
        out = call.op.caller(x, weight, None)
    if bias is None:
        return out
    return out + (padded(bias, out.ndim + (not of_x and not of_weight)) if of_bias else bias)


# More dimensions ----------------------------------------------------------------------------------


@_rule("rolled")
def rolled(call: Call) -> Any:
    """Roll along dimensions; without any, the examples flattened."""
    x, shifts, dims = call.values
    if dims:
        return along(call)
    return call.op.caller(x.reshape(call.size, math.prod(x.shape[1:])), shifts, (1,)).reshape(x.shape)


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


# Indices ------------------------------------------------------------------------------------------


def _places(call: Call) -> tuple[tuple[Any, ...], bool, Any]:
    """Return the indices of all examples at once, whether any differ, and where their dimensions go in an example.

    The latter are None, or (places in the result for all examples, where the result is as that of one example).
    """
    at = call.op.position["indices"]
    arrays, which = list(call.values[at]), call.which[at] or [False] * len(call.values[at])
    used = [k for k, each in enumerate(arrays) if each is not None]
    for k in used:
        if arrays[k].dtype.kind == "b":
            if which[k]:
                raise RuntimeError(DYNAMIC_MASK)
            raise NoRule
    rank = max([arrays[k].ndim - which[k] for k in used])
    first, adjacent = used[0], used[-1] - used[0] + 1 == len(used)
    if adjacent and not any(which):
        return (None, *arrays), False, None
    key = [_aligned(each, rank + 1) if ours else each for each, ours in zip(arrays, which, strict=True)]
    # (The indexed dimensions come first in the result, as they are not adjacent to that of the batch.)
    moved = adjacent and first
    back = (tuple(range(1, rank + 1)), tuple(range(first + 1, first + 1 + rank))) if moved else None
    return (_numbers(call.size, rank), *key), any(which), back


def _numbers(size: int, rank: int) -> Any:
    """Return the numbers of the examples as an index array of `rank` further dimensions."""
    return np.arange(size).reshape(size, *(1,) * rank)


def _aligned(array: Any, ndim: int) -> Any:
    """Return a batched index array with dimensions inserted, which is batched at outer levels, too, if it was."""
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
    key, differ, back = _places(call)
    if differ and not call.which[0]:
        out = call.op.caller(call.values[0], key[1:])
        return out if back is None else out.movedim(back[1][0] - 1, 0)
    out = call.op.caller(call.whole(0), key)
    return out if back is None else out.movedim(*back)


@_rule("index put")
def index_put(call: Call) -> Any:
    """Write at indices of the examples."""
    key, _, back = _places(call)
    given = [each.ndim for each in key if each is not None]
    y = call.values[2] if call.which[2] else call.values[2].unsqueeze(0)
    y = padded(y, call.rank(0) + max(given) - len(given) + 1)  # (of an example: its rank and that of the result)
    call.values = [call.whole(0), key, y if back is None else y.movedim(*back[::-1]), call.values[3]]
    return call.run()


@_rule("rows")
def rows(call: Call) -> Any:
    """Read or write rows along a dimension, at the same places in all examples; read ones at places of each."""
    op, values = call.op, call.values
    dim, which = call.of("dim"), call.of("index")
    shape = tuple(call.of("shape")) if "shape" in op.position else call.shape(0)
    if not shape or (call.which[op.position["index"]] and (op.name != "index_select" or which.ndim == 1)):
        raise NoRule
    if call.which[op.position["index"]]:
        x, dim = call.whole(0), _shifted(dim, len(shape)) % (len(shape) + 1)
        chosen = which.reshape(call.size, *(1,) * (dim - 1), which.shape[1], *(1,) * (len(shape) - dim))
        return x.gather(dim, chosen.expand(*x.shape[:dim], which.shape[1], *x.shape[dim + 1 :]).to(dtypes.int64))
    values[op.position["dim"]] = _shifted(dim, len(shape))
    if "shape" in op.position:
        values[op.position["shape"]] = (call.size, *shape)
    values[0] = call.whole(0)
    if "source" in op.position:
        at = op.position["source"]
        values[at] = call.whole(at)
        if values[at].ndim != values[0].ndim:
            raise NoRule
    if "value" in op.position and call.which[op.position["value"]]:
        raise NoRule
    return call.run()


@_rule("put back")
def put_back(call: Call) -> Any:
    """Add at indices of zeros of a shape."""
    key, _, back = _places(call)
    x = call.whole(0)
    return call.op.caller(x if back is None else x.movedim(*back[::-1]), (call.size, *call.of("shape")), key)


@_rule("embedding")
def embedding(call: Call) -> Any:
    """Look up rows of weights, which may differ between the examples."""
    weight, padding = call.values[0], call.values[2]
    if not call.which[0]:
        return call.run()
    if padding is not None and padding >= 0:
        raise NoRule
    call.values[0], call.values[1] = weight.flatten(0, 1), _apart(call.whole(1), weight.shape[1])
    return call.run()


def _apart(which: Any, count: int) -> Any:
    """Return the indices of rows of all examples, each of which has `count`, one after the other."""
    starts = Tensor.new_tensor(which, np.arange(len(which)) * count)
    return which + starts.reshape(len(which), *(1,) * (which.ndim - 1))


@_rule("embedding gradient")
def embedding_gradient(call: Call) -> Any:
    """Add rows into zeros."""
    op = call.op
    count, which, padding = call.of("count"), call.whole(op.position["indices"]), call.of("padding_idx")
    g = call.whole(0)
    if padding is not None and padding >= 0:
        g = g * (which != padding).unsqueeze(-1).to(g.dtype)
    out = op.caller(g, call.size * count, _apart(which, count), -1, call.of("scale_grad_by_freq"))
    return out.reshape(call.size, count, *out.shape[1:])


# Losses -------------------------------------------------------------------------------------------


@_rule("loss")
@_rule("classes")
def loss(call: Call) -> Any:
    """Compute the losses of all elements, and reduce those of each example.

    Losses over classes, the first dimension of a vector and the second of other scores, are also those of labels.
    """
    values, at, reduction, labels = call.values, call.op.position, call.of("reduction"), False
    values[at["reduction"]] = "none"
    if call.op.batch == "loss":
        call.align()
        losses = call.run()
    else:
        x, target, weight = call.whole(at["x"]), call.whole(at["target"]), call.of("weight")
        labels, vector = not target.is_floating_point(), x.ndim == 2
        if call.which[at["weight"]] or not x.numel() or target.ndim != x.ndim - labels:
            raise NoRule
        values[at["x"]], values[at["target"]] = [each if vector else each.flatten(0, 1) for each in (x, target)]
        losses = call.run()
        losses = losses if vector else losses.unflatten(0, (call.size, x.shape[1]))
    if reduction == "none":
        return losses
    losses = losses.reshape(call.size, math.prod(losses.shape[1:]))
    if reduction == "sum" or not labels:
        return losses.sum(1) if reduction == "sum" else losses.mean(1)
    kept = target != call.of("ignore_index")
    counts = kept.to(losses.dtype) if weight is None else weight[target.where(kept, target.new_zeros(()))] * kept
    count = counts.reshape(call.size, math.prod(counts.shape[1:])).sum(1)
    return losses.sum(1) / count.masked_fill(count == 0, math.nan)


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
    bias = None if of_w or of_b else b
    if of_w and (of_x or rest["groups"] != 1 or op.name != "_convolution"):
        rest["groups"] *= call.size
        flat = w.reshape(call.size * w.shape[1], *w.shape[2:])
        out = _without_channels(run(_with_channels(call.whole(0)), flat, None, **rest), call.size)
    elif of_w:  # the weights as one, of more channels
        out = _without_channels(run(x, w.reshape(call.size * w.shape[1], *w.shape[2:]), None, **rest), call.size)
    elif not of_x:
        out = run(x, w, bias, **rest).unsqueeze(0)
    elif not x.shape[1] * call.size:
        raise NoRule
    else:
        out = run(x.flatten(0, 1), w, bias, **rest).unflatten(0, (call.size, x.shape[1]))
    if b is None or bias is not None:
        return out
    b = call.whole(2)
    return out + b.reshape(call.size, 1, b.shape[1], *(1,) * (out.ndim - 3))


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
    factors = {i: call.values[i] for i in call.tensors() if i}
    if not any([call.which[i] for i in factors]):
        return call.run()
    for i in factors:
        call.values[i] = None
    out = call.run()
    out = out if call.which[0] else out.unsqueeze(0)
    for i, each in factors.items():
        each = padded(each, out.ndim) if call.which[i] else each
        out = out * each if call.op.arguments[i] == "weight" else out + each
    return out


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


@_rule("of type")
def of_type(call: Call) -> Any:
    """Return what depends on the shape and the dtype of an example alone."""
    x = call.values[0]
    if not call.size or any(call.which[1:]):
        raise NoRule
    call.values[0] = x.select(0, 0)
    return _each(call.op.caller(*call.values), lambda out: out.unsqueeze(0).expand(call.size, *out.shape))


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
