"""Elementwise functions of sparse tensors, and those that keep or copy entries.

A function of one tensor has a rule if it maps 0 to 0. If it is not linear, entries at one place are added first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinytorch.core.layout import NoArray, sparse_coo, sparse_csr
from tinytorch.core.mode import local
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.core.view import count_write
from tinytorch.kernels import dtypes
from tinytorch.kernels.indexing import ranks
from tinytorch.kernels.sparse import add_entries, distinct, is_sorted, linear
from tinytorch.ops.join import cat as cat_dense
from tinytorch.sparse.rules import is_sparse, rule, unsupported
from tinytorch.sparse.tensors import BACKENDS, OF_BLOCKS, SparseCompressed, SparseCOO, compressed_like, dense_of, summed

# Functions of one tensor ----------------------------------------------------------------------------

#: Functions that map 0 to 0; `alias=name` where the method of the values has another name.
_OF_VALUES = """
    abs absolute=abs __abs__=abs sign sgn sqrt tan tanh sin sinh asin asinh atan atanh arcsin=asin arcsinh=asinh
    arctan=atan arctanh=atanh relu nn.functional.relu=relu trunc fix=trunc ceil floor round erf erfinv expm1 log1p
    isnan isinf isposinf isneginf signbit deg2rad rad2deg frac
"""
_LINEAR = """
    neg negative=neg __neg__=neg positive __pos__=positive conj=conj conj_physical=conj_physical resolve_conj=positive
    resolve_neg=positive
"""


def _of_values(method: str) -> Any:
    def function(self: Any, *args: Any, **kwargs: Any) -> Any:
        x = self._unique()
        return x._with(getattr(x._held, method)(*args, **kwargs))

    return function


def _linear(method: str) -> Any:
    return lambda self: self._with(getattr(self._held, method)())


def _in_place(method: str, linear_in_values: bool) -> Any:
    def function(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not linear_in_values and self.layout is sparse_coo and not self._coalesced:
            raise RuntimeError(f"{method}_ requires coalesced input")
        getattr(self._held, f"{method}_")(*args, **kwargs)
        return self

    return function


for _names, _make, _is_linear in ((_OF_VALUES, _of_values, False), (_LINEAR, _linear, True)):
    for _name in _names.split():
        _name, _, _method = _name.partition("=")
        rule(_name)(_make(_method or _name))
        if hasattr(Tensor, f"{_name}_"):
            rule(f"{_name}_")(_in_place(_method or _name, _is_linear))

rule("nn.functional.tanhshrink")(lambda input: input - input.tanh())
rule("nan_to_num", of=(sparse_coo,))(_of_values("nan_to_num"))
rule("nan_to_num_", of=(sparse_coo,))(_in_place("nan_to_num", False))
rule("square", of=(sparse_coo,), error=unsupported)(_of_values("square"))
rule("square_", of=(), error=unsupported)(_in_place("square", False))
rule("round_", of=(sparse_coo, sparse_csr), error=unsupported)(_in_place("round", False))

#: Conversions of the dtype.
for _name in "bfloat16 bool byte cdouble cfloat char double float half int long short".split():
    rule(_name)(_linear(_name))


@rule("to")
def to(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Return the tensor in another dtype."""
    args = tuple(each._held if is_sparse(each) else each for each in args)
    values = self._held.to(*args, **kwargs)
    return self if values is self._held else self._with(values)


@rule("type", "typename")
def type_of(self: Any, dtype: Any = None, **options: Any) -> Any:
    """Return the name of the tensor's type, or the tensor in another dtype."""
    if dtype is not None:
        kind = dtype.replace("torch.sparse.", "torch.") if isinstance(dtype, str) else dtype
        return self._with(self._held.type(kind))
    if self.layout is not sparse_coo:
        raise RuntimeError("Unimplemented backend SparseCsrCPU")
    return f"torch.sparse.{self.dtype.tensor_name}Tensor"


rule("type_as")(lambda self, other: self._with(self._held.to(other.dtype)))


@rule("stride")
def stride(self: Any, dim: int | None = None) -> Any:
    """Return zeros for the format COO, as PyTorch does; the other formats have no strides."""
    if self.layout is not sparse_coo:
        raise RuntimeError(f"{self._backend()[:6]} {self._backend()[6:].upper()} tensors do not have strides")
    return (0,) * self.ndim if dim is None else 0


@rule("nbytes")
def nbytes(self: Any) -> int:
    """Return the bytes that all elements would need; of the format COO PyTorch does not say it."""
    if self.layout is sparse_coo:
        raise RuntimeError(
            "nbytes is not defined for sparse tensors.  If you want the size of the constituent tensors, "
            "add the nbytes of the indices and values.  If you want the size of the  equivalent dense tensor, multiply "
            "numel() by element_size()"
        )
    return int(self.numel() * self.itemsize)


rule("angle", of=set(BACKENDS) - {sparse_coo})(_linear("angle"))  # (PyTorch has it for the compressed formats)
rule("cuda")(lambda self, *args, **options: self._held.cuda(*args, **options))  # (an error: there are no GPUs)
rule("cpu", "share_memory_")(lambda self, **options: self)


def _member(name: str) -> Any:
    def function(self: Any, *args: Any) -> Any:
        found = getattr(self, name)
        return found(*args) if callable(found) else found

    return function


#: Functions that the classes of sparse tensors have as members.
for _name in "numel is_floating_point is_complex is_signed is_same_size is_inference is_conj is_neg detach".split():
    rule(_name)(_member(_name))


@rule("clone")
def clone(self: Any, *, memory_format: Any = None) -> Any:
    """Return a copy of the tensor."""
    made = self._with(self._held.clone())
    if self.layout is sparse_coo:
        made._where = self._where.copy()
    else:
        made._start, made._plain = self._start.copy(), self._plain.copy()
    return made


@rule("zero_")
def zero_(self: Any) -> Any:
    """Remove all entries."""
    held = self._held.detach().zero_()  # (also for a `.grad`, which shares these values)
    if self.layout is sparse_coo:
        return self._become(SparseCOO.of(self._where[:, :0], held[:0], self._size, True))
    start, plain = np.zeros_like(self._start), self._plain[..., :0]
    return self._become(SparseCompressed.of(self.layout, start, plain, held.narrow(self._batch_dim, 0, 0), self._size))


@rule("copy_")
def copy_(self: Any, other: Any, non_blocking: bool = False) -> Any:
    """Take the entries of another sparse tensor."""
    if not (is_sparse(self) and is_sparse(other)) or self.layout is not other.layout:
        kinds = [f"torch.{'sparse.' * is_sparse(x)}{x.dtype.tensor_name}Tensor" for x in (self, other)]
        raise RuntimeError(
            "copy_() between dense and sparse Tensors is not implemented! Found self type = "
            f"{kinds[0]} and src type = {kinds[1]}"
        )
    copied = other.clone()
    return self._become(copied._with(copied._held.to(self.dtype)))


rule("real")(lambda self: self._with(self._held.real) if self.is_complex() else self)


@rule("float_power", of=(sparse_coo,), error=unsupported)
def float_power(self: Any, exponent: Any) -> Any:
    """Return the elements, as float64, raised to a number other than 0."""
    return power(self.to(dtypes.complex128 if self.is_complex() else dtypes.float64), exponent)


@rule("pow", "__pow__", of=(sparse_coo,), error=unsupported)
def power(self: Any, exponent: Any) -> Any:
    """Return the elements raised to a number other than 0."""
    if not is_sparse(self) or isinstance(exponent, Tensor):
        raise NoArray("pow of a sparse tensor needs a number as the exponent")
    if exponent == 0:
        raise RuntimeError("pow: cannot raise to zeroth power on sparse tensor; it would make the result tensor dense")
    x = self._unique()
    return x._with(x._held**exponent)


# Multiplication and division ------------------------------------------------------------------------


def _is_scalar(x: Any) -> bool:
    return not isinstance(x, Tensor) or (not is_sparse(x) and not x._array.ndim)


def _check_product(x: Any, other: Any) -> None:
    """Raise PyTorch's errors for the products that it lacks: of the compressed formats, it has those of CSR."""
    others = [each.layout for each in (x, other) if is_sparse(each) and each.layout is not sparse_coo]
    if others and (others[0] is not sparse_csr or x.layout is sparse_coo):
        raise RuntimeError(f"Expected result Tensor to be of format CSR, but got {BACKENDS[others[0]]}")
    if others and other.shape != x.shape:
        sizes = f"self has size {list(other.shape)} but mask has size {list(x.shape)}"
        raise RuntimeError(f"sparse_mask(): operands have incompatible sizes; {sizes}")


@rule("mul", "multiply", "__mul__", "__rmul__")
def mul(self: Any, other: Any) -> Any:
    """Return the product with a number, with a dense tensor, or with a sparse one."""
    if not is_sparse(self):
        self, other = other, self
    if _is_scalar(other):
        return self._with(self._held * other)
    _check_product(self, other)
    if not is_sparse(other):
        at = tuple(wrap(row) for row in self._places())
        return self._with_flat(self._flat * other.expand(self._size)[at])
    if self._size != other._size or self.dense_dim() != other.dense_dim():
        raise NoArray(f"mul of sparse tensors of the sizes {list(self._size)} and {list(other._size)} is not supported")
    if self.layout is not sparse_coo:
        return compressed_like(mul(self.to_sparse_coo(), other.to_sparse_coo()), self)
    other = other._unique()
    count = self.sparse_dim()
    mine, theirs = [linear(x._places(), x._size[:count]) for x in (self, other)]
    order: Any = None
    if not is_sorted(theirs):
        order = np.argsort(theirs, kind="stable")
        theirs = theirs[order]
    found: Any = np.searchsorted(theirs, mine)
    common = np.flatnonzero(theirs[np.minimum(found, len(theirs) - 1)] == mine) if len(theirs) else found[:0]
    at = found[common] if order is None else order[found[common]]
    values = self._held.index_select(0, wrap(common)) * other._held.index_select(0, wrap(at))
    return SparseCOO.of(self._where[:, common], values, self._size, self._coalesced)


@rule("mul_", "multiply_", "__imul__")
def mul_(self: Any, other: Any) -> Any:
    """Multiply in place."""
    if not is_sparse(self):
        _check_product(other.to_sparse_coo(), other)
        return self.mul_(dense_of(other))
    if _is_scalar(other):
        self._held.mul_(other)
        return self
    return self._become(mul(self, other))


def _divisor(other: Any) -> None:
    if not _is_scalar(other):
        raise RuntimeError(
            f"Sparse division requires a scalar or zero-dim dense tensor divisor (got shape {list(other.shape)} for "
            "divisor)"
        )


@rule("div", "divide", "true_divide", "__truediv__", "__div__", of=(sparse_coo,), error=unsupported)
def div(self: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    """Return the quotient with a number."""
    if not is_sparse(self):
        raise NoArray("division by a sparse tensor is not supported")
    _divisor(other)
    if rounding_mode is None:
        return self._with(self._held / other)
    x = self._unique()
    return x._with(x._held.div(other, rounding_mode=rounding_mode))


rule("floor_divide", "__floordiv__", of=(sparse_coo,))(lambda self, other: div(self, other, rounding_mode="floor"))


@rule("div_", "divide_", "__itruediv__", of=(sparse_coo,), error=unsupported)
def div_(self: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    """Divide by a number in place."""
    if not is_sparse(self):
        raise NoArray("division by a sparse tensor is not supported")
    _divisor(other)
    if rounding_mode is not None:
        return self._become(div(self, other, rounding_mode=rounding_mode))
    self._held.div_(other)
    return self


# Addition -------------------------------------------------------------------------------------------

_SPARSE_AND_DENSE = "add(sparse, dense) is not supported. Use add(dense, sparse) instead."


def sum_of_sparse(x: Any, y: Any, alpha: Any) -> Any:
    """Return `x + alpha * y`."""
    if x._size != y._size:
        raise RuntimeError(
            f"add: expected sizes of 'self' and 'other' to match, but {list(x._size)} != {list(y._size)}"
        )
    if x.layout is not y.layout:
        raise NoArray(f"add of tensors of the layouts {x.layout} and {y.layout} is not supported")
    if x.layout is not sparse_coo:
        theirs = y._held if type(alpha) is int and alpha == 1 else y._held * alpha
        if x._held.shape == y._held.shape and all(
            np.array_equal(*each) for each in ((x._start, y._start), (x._plain, y._plain))
        ):
            return x._with(x._held + theirs)
        return compressed_like(sum_of_sparse(x.to_sparse_coo(), y.to_sparse_coo(), alpha), x)
    if x.sparse_dim() != y.sparse_dim():
        raise RuntimeError(
            f"add: expected 'self' and 'other' to have same density, but 'self' has {x.sparse_dim()} sparse dimensions "
            f"while 'other' has {y.sparse_dim()} sparse dimensions"
        )
    theirs = y._held if type(alpha) is int and alpha == 1 else y._held * alpha
    if x._where is y._where or np.array_equal(x._where, y._where):
        return x._with(x._held + theirs)
    kind = dtypes.promote_types(x.dtype, theirs.dtype)
    values = cat_dense([x._held.to(kind), theirs.to(kind)])
    where, coalesced = np.concatenate([x._where, y._where], axis=1), False
    numbers = x._numbers(), y._numbers()
    if is_sorted(numbers[0]) and is_sorted(numbers[1]):
        # As in PyTorch, the entries are merged: of several at one place, the first two, the second two ...
        place = np.concatenate(numbers)
        turn = np.concatenate([ranks(each) for each in numbers])
        depth = int(turn.max(initial=0)) + 1
        first, rank = distinct(place * depth + turn)
        where, coalesced = where[:, first], x._coalesced and y._coalesced
        values = summed(values, rank, len(first))
    made = SparseCOO.of(where, values, x._size, coalesced)
    return made.coalesce() if made._nnz() > made.numel() else made


def _checked_sum(x: Any, y: Any, alpha: Any) -> Any:
    """Return `x + alpha * y` if PyTorch has it: of the formats CSC, BSR and BSC only of a tensor and itself."""
    if x.layout not in (sparse_coo, sparse_csr) and x is not y:
        raise RuntimeError(f"crow_indices expected sparse row compressed tensor layout but got {x._backend()}")
    return sum_of_sparse(x, y, alpha)


@rule("add", "__add__")
def add(self: Any, other: Any, alpha: Any = 1) -> Any:
    """Return `self + alpha * other`: of two sparse tensors, or of a dense and a sparse one."""
    if is_sparse(self) and is_sparse(other):
        return _checked_sum(self, other, alpha)
    if is_sparse(self):
        if self.layout is sparse_coo or not isinstance(other, Tensor):
            raise RuntimeError(_SPARSE_AND_DENSE)
        _check_size(other, self)
        return dense_of(self).add(other, alpha=alpha)
    return _dense_and_sparse(self, other, alpha)


def _check_size(dense: Tensor, sparse: Any) -> None:
    if sparse.layout in OF_BLOCKS:
        raise unsupported("add", sparse)
    if dense.shape != sparse._size:
        raise RuntimeError(
            f"add: expected 'self' and 'other' to have same size, but self has size {list(dense.shape)} while other "
            f"has size {list(sparse._size)} (FYI: dense-sparse addition does not currently support broadcasting)"
        )


def _dense_and_sparse(dense: Any, sparse: Any, alpha: Any) -> Tensor:
    """Return the sum of a dense tensor and a sparse one of its size."""
    if not isinstance(dense, Tensor):
        raise RuntimeError(_SPARSE_AND_DENSE)
    _check_size(dense, sparse)
    if _is_recorded(dense, sparse) or dense.dtype is not sparse.dtype or not dense.ndim:
        return dense.add(dense_of(sparse), alpha=alpha)
    return _add_into(dense.clone(), sparse, alpha)


rule("__radd__")(lambda self, other: add(other, self))


def _is_recorded(*tensors: Tensor) -> bool:
    """Return whether an operation on the tensors is recorded."""
    return local.state.grad and any(x.requires_grad for x in tensors)


def _add_into(dense: Tensor, sparse: Any, alpha: Any) -> Tensor:
    """Add the entries of a sparse tensor to a dense one in place, outside the graph."""
    values = sparse._flat.detach()
    if not (type(alpha) is int and alpha == 1):
        values = values * alpha
    add_entries(dense._array, sparse._places(), values._array)
    count_write(dense)
    return dense


@rule("add_", "__iadd__")
def add_(self: Any, other: Any, alpha: Any = 1) -> Any:
    """Add in place."""
    if is_sparse(self):
        if not is_sparse(other):
            raise RuntimeError(_SPARSE_AND_DENSE)
        return self._become(_checked_sum(self, other, alpha))
    _check_size(self, other)
    if _is_recorded(self, other) or self.dtype is not other.dtype or not self.ndim:
        return self.add_(dense_of(other), alpha=alpha)
    return _add_into(self, other, alpha)


@rule("sub", "subtract", "__sub__", of=(sparse_coo,), error=unsupported)
def sub(self: Any, other: Any, alpha: Any = 1) -> Any:
    """Return `self - alpha * other`."""
    if is_sparse(self) and not is_sparse(other):
        raise RuntimeError(_SPARSE_AND_DENSE)
    return add(self, other, alpha=-alpha)


_of_coo = {"of": (sparse_coo,), "error": unsupported}
rule("__rsub__", **_of_coo)(lambda self, other: add(other, self, alpha=-1))
rule("sub_", "subtract_", "__isub__", **_of_coo)(lambda self, other, alpha=1: add_(self, other, alpha=-alpha))
