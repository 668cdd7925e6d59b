"""`SparseCOO` and `SparseCSR`: where a tensor's entries are, and a dense tensor of their values.

The values are an ordinary tensor, through which gradients flow: a function of sparse tensors computes the values of its
result by ordinary operations, and everything else about the result from the places of the entries. What the engine asks
of a tensor that requires grad, a sparse tensor answers by its values. So the graph has nodes of dense tensors only, and
there are derivatives of every order.
"""

from __future__ import annotations

import copy
from typing import Any, NoReturn, cast

import numpy as np

from tinytorch.core.device import cpu
from tinytorch.core.graph import leaf_edge
from tinytorch.core.layout import NoArray, layout, sparse_coo, sparse_csr
from tinytorch.core.tensor import Size, Tensor, wrap
from tinytorch.kernels import dtypes, printing
from tinytorch.kernels.reduce import axis_of
from tinytorch.kernels.sparse import Rows, distinct, is_sorted, linear
from tinytorch.sparse.rules import is_sparse, of_sparse

__all__ = ["SparseCOO", "SparseCSR", "SparseTensor", "csr_of", "dense_of", "is_sparse", "sparse_parts"]

Array = Any


class SparseTensor(Tensor):
    """A tensor of which only some elements, its *entries*, are stored. The others are zeros.

    The common interface of the two layouts; a function that has a rule for sparse tensors (`sparse/rules.py`) is
    defined for both by `_held`, `_with` and `_rows`.
    """

    # _held   the values of the entries: a tensor of shape (entries, length of each dense dimension ...)
    # _size   the shape
    # _kept   the places sorted by rows, once they have been needed
    __slots__ = ("_held", "_kept", "_size")

    _held: Tensor
    _size: Size
    _kept: Rows | None

    __module__ = "tinytorch"

    # The layouts ------------------------------------------------------------------------------------

    def _with(self, values: Tensor) -> Any:
        """Return a tensor with entries of the same places and other values."""
        raise NotImplementedError

    def _places(self) -> Array:
        """Return the indices of the entries, shape (sparse dimensions, entries)."""
        raise NotImplementedError

    def _rows(self) -> Rows:
        """Return the places of a matrix's entries by rows."""
        raise NotImplementedError

    def _unique(self) -> Any:
        """Return the tensor with one entry at each place."""
        raise NotImplementedError

    # What the engine, and functions that do not read elements, ask of a tensor ------------------------

    @property
    def _array(self) -> NoReturn:
        raise NoArray(f"a tensor of layout {self.layout} has no dense memory: convert it by to_dense()")

    _exposed = _memory = _array

    @property
    def _edge(self) -> Any:  # type: ignore[override]
        held = self._held
        return (held._edge or leaf_edge(held)) if held._requires_grad else None

    _requires_grad = property(lambda self: self._held._requires_grad)
    _cell = property(lambda self: self._held._cell)
    _view = property(lambda self: None)
    _hooks = property(lambda self: None)
    _accumulator = property(lambda self: None)

    def _current(self) -> Tensor:
        return self

    @property
    def shape(self) -> Size:
        """The length of each dimension."""
        return self._size

    dtype = property(lambda self: self._held.dtype)
    device = property(lambda self: cpu)
    is_cpu = property(lambda self: True)
    is_meta = is_inference = property(lambda self: False)
    is_sparse = property(lambda self: self.layout is sparse_coo)
    is_sparse_csr = property(lambda self: self.layout is sparse_csr)
    ndim = property(lambda self: len(self._size))
    itemsize = property(lambda self: self._held.itemsize)
    grad_fn = property(lambda self: self._held.grad_fn)
    is_leaf = property(lambda self: self._held._edge is None)
    retains_grad = property(lambda self: False)
    output_nr = property(lambda self: 0)
    _version = property(lambda self: self._held._version)
    _base = property(lambda self: None)
    T = property(lambda self: of_sparse("T", (self,), {}))
    mT = H = property(lambda self: of_sparse("t", (self,), {}))
    data = property(lambda self: self._with(self._held.detach()))

    @property
    def requires_grad(self) -> bool:
        """Whether operations on this tensor are recorded."""
        return self._held.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self._held.requires_grad = value

    @property
    def grad(self) -> Any:
        """The gradient that `backward` has accumulated: a sparse tensor with entries where this one has them."""
        return None if self._held.grad is None else self._as_gradient(self._held.grad)

    @grad.setter
    def grad(self, g: Any) -> None:
        if g is not None:
            if not is_sparse(g) or g.layout is not self.layout or g._held.shape != self._held.shape:
                raise RuntimeError("the gradient of a sparse tensor must have the layout and the entries of the tensor")
            g = g._held
        self._held.grad = g

    @grad.deleter
    def grad(self) -> None:
        self._held.grad = None

    _grad = property(lambda self: self.grad)

    def _as_gradient(self, values: Tensor) -> Any:
        """Return the gradient of this tensor, given that of its values."""
        return self._with(values)

    def size(self, dim: int | None = None) -> Any:
        """Return the shape, or the length of a dimension."""
        return self._size if dim is None else self._size[axis_of(dim, len(self._size), "size")]

    def numel(self) -> int:
        """Return the number of elements, zeros included."""
        return self._size.numel()

    def dim(self) -> int:
        """Return the number of dimensions."""
        return len(self._size)

    nelement, ndimension = numel, dim

    def element_size(self) -> int:
        """Return the bytes of an element."""
        return self.itemsize

    def is_floating_point(self) -> bool:
        """Return whether the elements are floats."""
        return self.dtype.is_floating_point

    def is_complex(self) -> bool:
        """Return False."""
        return False

    def is_signed(self) -> bool:
        """Return whether the elements may be negative."""
        return self._held.is_signed()

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Return False: there is no memory that could be contiguous."""
        return False

    def is_pinned(self, device: Any = None) -> Any:
        """Return False."""
        return False

    def get_device(self) -> int:
        """Return -1."""
        return -1

    def is_same_size(self, other: Any) -> bool:
        """Return whether another tensor has the same shape."""
        return self._size == other.shape

    def dense_dim(self) -> Any:
        """Return the number of dense dimensions: those of the values."""
        return self._held._array.ndim - 1

    def sparse_dim(self) -> Any:
        """Return the number of sparse dimensions."""
        return len(self._size) - self.dense_dim()

    def _nnz(self, *args: Any, **kwargs: Any) -> Any:
        return len(self._held._array)

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Set `requires_grad` in place and return the tensor."""
        self._held.requires_grad_(requires_grad)
        return self

    def detach(self) -> Any:
        """Return a tensor with the same entries that does not require grad."""
        return self._with(self._held.detach())

    def detach_(self) -> Any:
        """Remove this tensor from the graph."""
        self._held.detach_()
        return self

    def __len__(self) -> int:
        if not self._size:
            raise TypeError("len() of a 0-d tensor")
        return self._size[0]

    def __bool__(self) -> bool:
        if self.numel() != 1:
            what = "no values" if self.numel() == 0 else "more than one value"
            raise RuntimeError(f"Boolean value of Tensor with {what} is ambiguous")
        return bool(dense_of(self))

    def __format__(self, spec: str) -> str:
        return object.__format__(self, spec)

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        raise TypeError("Cannot assign to a sparse tensor")

    def numpy(self, *, force: bool = False) -> NoReturn:
        """Raise TypeError: there is no dense array."""
        kind = "Sparse" if self.layout is sparse_coo else "SparseCsr"
        raise TypeError(f"can't convert {kind} layout tensor to numpy. Use Tensor.to_dense() first.")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        self.numpy()

    def _deep_values(self, memo: dict[int, Any]) -> Tensor:
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the "
                "moment."
            )
        return copy.deepcopy(self._held, memo)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        made = memo[id(self)] = self._with(self._deep_values(memo))
        made.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return made

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return (_rebuild_sparse, (*sparse_parts(self), self.requires_grad, self.__dict__))

    # Text -------------------------------------------------------------------------------------------

    def _parts(self) -> list[tuple[str, Tensor]]:
        """Return the names and the tensors of what `repr` shows."""
        raise NotImplementedError

    def __repr__(self, *, tensor_contents: str | None = None) -> str:  # type: ignore[override]
        parts = [(name, part._array, part.dtype) for name, part in self._parts()]
        suffixes = [f"size={tuple(self._size)}", f"nnz={self._nnz()}"]
        kind = self.dtype
        if kind not in (dtypes.get_default_dtype(), dtypes.int64, dtypes.bool):
            suffixes.append(f"dtype={kind}")
        suffixes.append(f"layout={self.layout}")
        edge = self._held._edge
        if edge is not None:
            suffixes.append(f"grad_fn=<{type(edge[0].shown()).__name__}>")
        elif self._held._requires_grad:
            suffixes.append("requires_grad=True")
        return printing.format_sparse(parts, suffixes, self.layout is sparse_coo)


class SparseCOO(SparseTensor):
    """A sparse tensor in the format COO: for every entry its index in each sparse dimension, and its value.

    There may be several entries at one place, whose values are to be added; `coalesce` adds them.
    """

    # _where       the indices of the entries, shape (sparse dimensions, entries), int64
    # _coalesced   whether there is one entry at each place, and the places are sorted
    __slots__ = ("_coalesced", "_where")

    _where: Array
    _coalesced: bool

    __module__ = "tinytorch"
    layout = property(lambda self: sparse_coo)

    @classmethod
    def of(cls, where: Array, values: Tensor, size: Any, coalesced: bool = False) -> SparseCOO:
        """Return a tensor, without checks.

        Args:
            where: the indices of the entries, shape (sparse dimensions, entries).
            values: their values, shape (entries, length of each dense dimension ...).
            size: the shape.
            coalesced: whether the places are sorted and distinct.
        """
        made: SparseCOO = object.__new__(cls)
        made._where, made._held, made._size, made._coalesced = where, values, Size(size), coalesced
        made._kept = None
        return made

    def _with(self, values: Tensor) -> SparseCOO:
        made = SparseCOO.of(self._where, values, self._size, self._coalesced)
        made._kept = self._kept
        return made

    def _become(self, other: SparseCOO) -> SparseCOO:
        """Replace the entries by those of another tensor, in place."""
        self._where, self._held, self._coalesced, self._kept = other._where, other._held, other._coalesced, other._kept
        self._size = other._size
        return self

    def _as_gradient(self, values: Tensor) -> SparseCOO:
        # Entries at one place have the same gradient, that of their sum: it is shown once.
        if self._coalesced:
            return self._with(values)
        first, rank = distinct(self._numbers())
        once = values._array[first]
        if len(once) != len(values._array) and np.array_equal(once[rank], values._array):
            return SparseCOO.of(self._where[:, first], wrap(once), self._size, True)
        return self._with(values)

    def _places(self) -> Array:
        return self._where

    def _numbers(self) -> Array:
        """Return the place of each entry as one number."""
        return linear(self._where, self._size[: len(self._where)])

    def _rows(self) -> Rows:
        if self._kept is None:
            shape = cast("tuple[int, int]", tuple(self._size))
            self._kept = Rows(self._where[0], self._where[1], shape)
        return self._kept

    def _unique(self) -> SparseCOO:
        return self if self._coalesced else self.coalesce()

    def coalesce(self) -> SparseCOO:
        """Return the tensor with the entries sorted, and one entry at each place: the sum of those that were there.

        Example:
            >>> x = torch.sparse_coo_tensor([[1, 0, 1]], [1.0, 2.0, 3.0], (3,))
            >>> x.coalesce()
            tensor(indices=tensor([[0, 1]]),
                   values=tensor([2., 4.]),
                   size=(3,), nnz=2, layout=torch.sparse_coo)
        """
        if self._coalesced:
            return self
        numbers = self._numbers()
        if is_sorted(numbers) and (numbers[1:] != numbers[:-1]).all():
            return SparseCOO.of(self._where, self._held, self._size, True)
        first, rank = distinct(numbers)
        return SparseCOO.of(self._where[:, first], summed(self._held, rank, len(first)), self._size, True)

    def is_coalesced(self, *args: Any, **kwargs: Any) -> Any:
        """Return whether the places of the entries are known to be sorted and distinct."""
        return self._coalesced

    def _coalesced_(self, value: bool) -> SparseCOO:
        self._coalesced = value
        return self

    def indices(self) -> Tensor:
        """Return the indices of the entries of a coalesced tensor, shape (sparse dimensions, entries)."""
        self._check_coalesced("indices")
        return self._indices()

    def values(self) -> Tensor:
        """Return the values of a coalesced tensor's entries; gradients flow through them."""
        self._check_coalesced("values")
        return _shown(self._held)

    def _check_coalesced(self, what: str) -> None:
        if not self._coalesced:
            raise RuntimeError(f"Cannot get {what} on an uncoalesced tensor, please call .coalesce() first")

    def _indices(self) -> Tensor:
        return cast(Tensor, wrap(self._where))

    def _values(self) -> Tensor:
        return self._held.detach()

    def _parts(self) -> list[tuple[str, Tensor]]:
        return [("indices", self._indices()), ("values", self._values())]

    def crow_indices(self) -> NoReturn:
        """Raise RuntimeError: this is not the format CSR."""
        raise RuntimeError("crow_indices expected sparse row compressed tensor layout but got Sparse")

    def col_indices(self) -> NoReturn:
        """Raise RuntimeError: this is not the format CSR."""
        raise RuntimeError("col_indices expected sparse row compressed tensor layout but got Sparse")

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        made = super().__deepcopy__(memo)
        if made._where is self._where:
            made._where = self._where.copy()
        return made


class SparseCSR(SparseTensor):
    """A sparse matrix in the format CSR: where each row begins, and for every entry its column and its value."""

    # _crow, _col   where each row begins, with the end; the columns of the entries
    __slots__ = ("_col", "_crow")

    _crow: Array
    _col: Array

    __module__ = "tinytorch"
    layout = property(lambda self: sparse_csr)

    @classmethod
    def of(cls, crow: Array, col: Array, values: Tensor, size: Any) -> SparseCSR:
        """Return a matrix, without checks.

        Args:
            crow: where each row begins among the entries, and the end: one number more than there are rows.
            col: the column of each entry.
            values: the values of the entries.
            size: the shape.
        """
        made: SparseCSR = object.__new__(cls)
        made._crow, made._col, made._held, made._size, made._kept = crow, col, values, Size(size), None
        return made

    def _with(self, values: Tensor) -> SparseCSR:
        made = SparseCSR.of(self._crow, self._col, values, self._size)
        made._kept = self._kept
        return made

    def _become(self, other: SparseCSR) -> SparseCSR:
        self._crow, self._col, self._held, self._kept = other._crow, other._col, other._held, other._kept
        return self

    def _rows(self) -> Rows:
        if self._kept is None:
            rows = np.repeat(np.arange(len(self._crow) - 1), np.diff(self._crow))
            shape = cast("tuple[int, int]", tuple(self._size))
            start, columns = (each.astype(np.int64, copy=False) for each in (self._crow, self._col))
            self._kept = Rows(rows, columns, shape, start)
        return self._kept

    def _places(self) -> Array:
        rows = self._rows()
        return np.stack([rows.rows, rows.columns])

    def _unique(self) -> SparseCSR:
        return self

    def crow_indices(self) -> Tensor:
        """Return where each row begins among the entries, and the end."""
        return cast(Tensor, wrap(self._crow))

    def col_indices(self) -> Tensor:
        """Return the column of each entry."""
        return cast(Tensor, wrap(self._col))

    def values(self) -> Tensor:
        """Return the values of the entries; gradients flow through them."""
        return _shown(self._held)

    def coalesce(self) -> NoReturn:
        """Raise RuntimeError: this is not the format COO."""
        raise RuntimeError("coalesce expected sparse coordinate tensor layout but got SparseCsr")

    def is_coalesced(self) -> NoReturn:
        """Raise RuntimeError: this is not the format COO."""
        raise RuntimeError("is_coalesced expected sparse coordinate tensor layout but got SparseCsr")

    def indices(self) -> NoReturn:
        """Raise RuntimeError: this is not the format COO."""
        raise RuntimeError("indices expected sparse coordinate tensor layout but got SparseCsr")

    def _parts(self) -> list[tuple[str, Tensor]]:
        return [
            ("crow_indices", self.crow_indices()), ("col_indices", self.col_indices()), ("values", self._held.detach()),
        ]  # fmt: skip


# Conversions ----------------------------------------------------------------------------------------


def _shown(values: Tensor) -> Tensor:
    """Return the values of a tensor for its user: in the graph, but not the leaf that the gradient belongs to."""
    return values.view_as(values) if values.requires_grad else values.detach()


def summed(values: Tensor, index: Array, count: int) -> Tensor:
    """Return `count` rows: each is the sum of the rows of `values` for which `index` has its number."""
    return values.new_zeros((count, *values.shape[1:])).index_add(0, wrap(index), values)


def dense_of(x: SparseTensor) -> Any:
    """Return a sparse tensor as a dense one."""
    where, values = x._places(), x._held
    count = len(where)
    numbers = linear(where, x._size[:count])
    rows = Size(x._size[:count]).numel()
    kind = x.dtype
    if kind is dtypes.bool:
        return dense_of(x._with(values.to(dtypes.uint8))) != 0
    return summed(values, numbers, rows).reshape(x._size)


def csr_of(x: SparseCOO) -> SparseCSR:
    """Return a matrix in the format CSR."""
    if len(x._where) != 2 or x.dense_dim():
        raise RuntimeError(
            "coo_to_sparse_csr: conversion from Sparse to SparseCsr for input tensors with sparse_dim()!=2 is not "
            "supported"
        )
    x = x.coalesce()
    rows = x._rows()
    return SparseCSR.of(rows.start, rows.columns, x._held, x._size)


def sparse_parts(x: Any) -> tuple[layout, tuple[Any, ...]]:
    """Return a sparse tensor's layout, and what PyTorch's files say of it: indices, values, size ..."""
    values = x._held.detach()
    if isinstance(x, SparseCOO):
        return sparse_coo, (x._indices(), values, x._size, x._coalesced)
    return sparse_csr, (x.crow_indices(), x.col_indices(), values, x._size)


def _rebuild_sparse(kind: layout, parts: tuple[Any, ...], requires_grad: bool, attributes: dict[str, Any]) -> Any:
    """Return the sparse tensor that a pickle describes."""
    arrays = [part._array for part in parts[: 1 if kind is sparse_coo else 2]]
    made: Any
    if kind is sparse_coo:
        made = SparseCOO.of(arrays[0], *parts[1:])
    else:
        made = SparseCSR.of(arrays[0], arrays[1], *parts[2:])
    made.requires_grad_(requires_grad)
    made.__dict__.update(attributes)
    return made


# Members --------------------------------------------------------------------------------------------


class _Ruled:
    """A member of Tensor as a member of sparse tensors: a method calls the rule with its name, or names itself."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        member = getattr(Tensor, self._name)
        if instance is None:
            return member
        if not callable(member):
            return member.__get__(instance, owner) if hasattr(member, "__get__") else member
        name = self._name

        def method(*args: Any, **kwargs: Any) -> Any:
            return of_sparse(name, (instance, *args), kwargs)

        method.__name__ = name
        return method


#: Members of Tensor that sparse tensors have as they are.
_KEPT = frozenset(
    """
    __module__ __doc__ __reduce_ex__ __dict__ __weakref__ __slots__ __hash__ __new__ __dir__ __array_priority__
    __init_subclass__ __torch_function__ names name backward register_hook _is_view is_distributed is_nested
    is_quantized is_cuda is_mps is_xpu is_mkldnn is_ipu is_maia is_mtia is_vulkan is_xla grad_dtype volatile _bump
    _cdata
    """.split()
)


def _complete(cls: type[SparseTensor]) -> None:
    """Give the class a member for every member of Tensor."""
    own = {name for each in cls.__mro__ if each is not Tensor and each is not object for name in vars(each)}
    for name in list(vars(Tensor)):
        if name not in own and name not in _KEPT:
            setattr(cls, name, _Ruled(name))


_complete(SparseTensor)
