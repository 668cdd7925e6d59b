"""`SparseCOO` and `SparseCompressed`: where a tensor's entries are, and a dense tensor of their values.

The values are an ordinary tensor, through which gradients flow: a function of sparse tensors computes the values of its
result by ordinary operations, and everything else about the result from the places of the entries. What the engine asks
of a tensor that requires grad, a sparse tensor answers by its values. So the graph has nodes of dense tensors only, and
there are derivatives of every order.
"""

from __future__ import annotations

import copy
import math
from typing import Any, NoReturn, cast

import numpy as np

from tinytorch.core.device import cpu
from tinytorch.core.graph import leaf_edge
from tinytorch.core.layout import NoArray, layout, sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr
from tinytorch.core.tensor import Size, Tensor, wrap
from tinytorch.kernels import dtypes, printing
from tinytorch.kernels.intp import as_intp
from tinytorch.kernels.reduce import axis_of
from tinytorch.kernels.sparse import Rows, distinct, is_sorted, linear, places
from tinytorch.ops.overrides import disabled
from tinytorch.sparse.rules import is_sparse, of_sparse, received

__all__ = [
    "BACKENDS", "BY_ROWS", "OF_BLOCKS", "SparseCOO", "SparseCompressed", "SparseTensor", "compressed_like",
    "compressed_of", "dense_of", "gradient_of_values", "is_sparse", "sparse_parts",
]  # fmt: skip

Array = Any

#: The compressed layouts whose lines are rows, and those whose entries are blocks.
BY_ROWS, OF_BLOCKS = (sparse_csr, sparse_bsr), (sparse_bsr, sparse_bsc)
#: The layouts by PyTorch's names in messages.
BACKENDS = {
    sparse_coo: "Sparse", sparse_csr: "SparseCsr", sparse_csc: "SparseCsc", sparse_bsr: "SparseBsr",
    sparse_bsc: "SparseBsc",
}  # fmt: skip


def _constant(value: Any) -> Any:
    """Return a method that returns a constant."""

    def method(self: Any, device: Any = None) -> Any:
        return value

    return method


class SparseTensor(Tensor):
    """A tensor of which only some elements, its *entries*, are stored. The others are zeros.

    The common interface of the two classes; a function that has a rule for sparse tensors (`sparse/rules.py`) is
    defined for both by `_held` and `_with`, by `_places` and `_flat`, or by `_rows`.
    """

    # _held   the values of the entries: a tensor of shape (entries, length of each dense dimension ...) or, of entries
    #         that are blocks and of batches, of more dimensions
    # _size   the shape
    # _kept   the places sorted by rows, once they have been needed
    __slots__ = ("_held", "_kept", "_size")

    _held: Tensor
    _size: Size
    _kept: Rows | None

    __module__ = "tinytorch"
    __torch_function__: Any = disabled  # (a subclass of Tensor, but not a user's)
    _receives = staticmethod(received)

    # The layouts ------------------------------------------------------------------------------------

    def _with(self, values: Tensor) -> Any:
        """Return a tensor with entries of the same places and other values."""
        raise NotImplementedError

    def _become(self, other: Any) -> Any:
        """Replace the entries by those of another tensor, in place."""
        raise NotImplementedError

    def _places(self) -> Array:
        """Return the indices of the elements that are stored, shape (dimensions but dense ones, elements)."""
        raise NotImplementedError

    @property
    def _flat(self) -> Tensor:
        """The values in the order of `_places`, shape (elements, length of each dense dimension ...)."""
        return self._held

    def _with_flat(self, values: Tensor) -> Any:
        """Return a tensor with entries of the same places, given its values in the order of `_places`."""
        return self._with(values)

    def _backend(self) -> str:
        """Return the layout's name in PyTorch's messages."""
        return BACKENDS[self.layout]

    def _rows(self) -> Rows:
        """Return the places of a matrix's entries by rows, in the order of `_flat`."""
        raise NotImplementedError

    def _unique(self) -> Any:
        """Return the tensor with one entry at each place."""
        raise NotImplementedError

    # What the engine, and functions that do not read elements, ask of a tensor ------------------------

    @property
    def _array(self) -> NoReturn:
        raise NoArray(f"a tensor of layout {self.layout} has no dense memory: convert it by to_dense()")

    _memory = _array

    @property
    def _edge(self) -> Any:  # type: ignore[override]
        held = self._held
        return (held._edge or leaf_edge(held)) if held._requires_grad else None

    _requires_grad = property(lambda self: self._held._requires_grad)
    _cell = property(lambda self: self._held._cell, lambda self, cell: setattr(self._held, "_cell", cell))
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
    is_meta = property(lambda self: False)
    is_sparse = property(lambda self: self.layout is sparse_coo)
    is_sparse_csr = property(lambda self: self.layout is sparse_csr)
    ndim = property(lambda self: len(self._size))
    itemsize = property(lambda self: self._held.itemsize)
    grad_fn = property(lambda self: self._held.grad_fn)
    is_leaf = property(lambda self: self._held._edge is None)
    retains_grad = property(lambda self: self._held.retains_grad)
    output_nr = property(lambda self: 0)
    _version = property(lambda self: self._held._version)
    _base = property(lambda self: None)
    T = property(lambda self: of_sparse("T", (self,), {}))
    H = property(lambda self: of_sparse("H", (self,), {}))
    mT = property(lambda self: of_sparse("mT", (self,), {}))
    mH = property(lambda self: of_sparse("mH", (self,), {}))
    nbytes = property(lambda self: of_sparse("nbytes", (self,), {}))
    real = property(lambda self: of_sparse("real", (self,), {}))
    imag = property(lambda self: self._with(self._held.imag))

    @property
    def data(self) -> Any:
        """The tensor outside of the graph; assigning replaces the entries."""
        return self._with(self._held.detach())

    @data.setter
    def data(self, other: Any) -> None:
        if not is_sparse(other) or other.layout is not self.layout:
            raise RuntimeError(
                "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have incompatible tensor "
                "type."
            )
        requires_grad = self.requires_grad
        self._become(other.detach())
        self.requires_grad_(requires_grad)

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

    def register_hook(self, hook: Any) -> Any:
        """Run `hook(grad)` when the gradient, a sparse tensor, is computed; what it returns replaces the gradient."""
        model = self.detach()

        def of_values(g: Tensor) -> Tensor | None:
            changed = hook(model._as_gradient(g))
            return None if changed is None else gradient_of_values(model, changed)

        return self._held.register_hook(of_values)

    def register_post_accumulate_grad_hook(self, hook: Any) -> Any:
        """Run `hook(tensor)` after `backward` has brought `.grad` of this leaf up to date."""
        return self._held.register_post_accumulate_grad_hook(lambda _: hook(self))

    def retain_grad(self) -> None:
        """Let `backward` keep the `.grad` of this tensor, which is no leaf."""
        self._held.retain_grad()

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

    #: There is no memory, conjugates and negatives are computed, and inference mode does not mark sparse tensors.
    is_conj = is_neg = is_inference = is_pinned = _constant(False)
    storage_offset, get_device = _constant(0), _constant(-1)

    def is_floating_point(self) -> bool:
        """Return whether the elements are floats."""
        return self.dtype.is_floating_point

    def is_complex(self) -> bool:
        """Return whether the elements are complex."""
        return self.dtype.is_complex

    def is_signed(self) -> bool:
        """Return whether the elements may be negative."""
        return self._held.is_signed()

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Return False: there is no memory that could be contiguous; of the formats but COO PyTorch does not say it."""
        if self.layout is not sparse_coo:
            raise RuntimeError(f"Sparse {self._backend()[6:].upper()} tensors do not have is_contiguous")
        return False

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
        raise TypeError(f"can't convert {self._backend()} layout tensor to numpy. Use Tensor.to_dense() first.")

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

    # Text -------------------------------------------------------------------------------------------

    def _parts(self) -> list[tuple[str, Tensor]]:
        """Return the names and the tensors of what `repr` shows."""
        raise NotImplementedError

    def __repr__(self, *, tensor_contents: str | None = None) -> str:  # type: ignore[override]
        parts = [(name, part._array, part.dtype) for name, part in self._parts()]
        suffixes = [f"size={tuple(self._size)}", f"nnz={self._nnz()}"]
        kind = self.dtype
        default = dtypes.get_default_dtype()
        if kind not in (default, dtypes.int64, dtypes.bool) and not (kind.is_complex and kind.to_real() is default):
            suffixes.append(f"dtype={kind}")
        suffixes.append(f"layout={self.layout}")
        edge = self._held._edge
        if edge is not None:
            suffixes.append(f"grad_fn=<{type(edge[0].shown()).__name__}>")
        elif self._held._requires_grad:
            suffixes.append("requires_grad=True")
        text = printing.format_sparse(parts, suffixes, self.layout is sparse_coo)
        return f"Parameter containing:\n{text}" if "_is_param" in self.__dict__ else text


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
        made._where, made._held, made._size = where, values, Size(size)
        made._coalesced = coalesced or where.shape[1] < 2
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

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        made = super().__deepcopy__(memo)
        if made._where is self._where:
            made._where = self._where.copy()
        return made


class SparseCompressed(SparseTensor):
    """A sparse tensor in one of the formats CSR, CSC, BSR and BSC: matrices, or batches of them.

    The *lines* of a matrix are its rows (CSR, BSR) or its columns (CSC, BSC). A tensor consists of where each line
    begins among the entries, and for every entry its place in the line and its value. In the formats BSR and BSC an
    entry is a block of elements, and lines are lines of blocks. Matrices of one batch have the same number of entries.
    """

    # _format   the layout
    # _start    where each line begins, with the end: shape (batch ..., lines + 1)
    # _plain    the place of each entry in its line: shape (batch ..., entries)
    # _held     the values: shape (batch ..., entries, height and width of a block, length of each dense dimension ...)
    __slots__ = ("_format", "_plain", "_start")

    _format: Any
    _start: Array
    _plain: Array

    __module__ = "tinytorch"
    layout = property(lambda self: self._format)

    @classmethod
    def of(cls, kind: Any, start: Array, plain: Array, values: Tensor, size: Any) -> SparseCompressed:
        """Return a tensor, without checks.

        Args:
            kind: the layout.
            start: where each line begins among the entries, and the end.
            plain: the place of each entry in its line.
            values: the values of the entries.
            size: the shape.
        """
        made: SparseCompressed = object.__new__(cls)
        made._format, made._start, made._plain, made._held, made._size = kind, start, plain, values, Size(size)
        made._kept = None
        return made

    def _with(self, values: Tensor) -> SparseCompressed:
        made = SparseCompressed.of(self._format, self._start, self._plain, values, self._size)
        made._kept = self._kept
        return made

    def _become(self, other: SparseCompressed) -> SparseCompressed:
        self._start, self._plain, self._held, self._kept = other._start, other._plain, other._held, other._kept
        self._size = other._size
        return self

    _by_rows = property(lambda self: self._format in BY_ROWS)
    _of_blocks = property(lambda self: self._format in OF_BLOCKS)
    _batch_dim = property(lambda self: self._start.ndim - 1)

    @property
    def _blocksize(self) -> tuple[int, int] | None:
        at = self._start.ndim
        return cast("tuple[int, int]", tuple(self._held.shape[at : at + 2])) if self._of_blocks else None

    def dense_dim(self) -> Any:
        """Return the number of dense dimensions."""
        return self._held.ndim - self._start.ndim - 2 * self._of_blocks

    def sparse_dim(self) -> Any:
        """Return 2: rows and columns."""
        return 2

    def _nnz(self, *args: Any, **kwargs: Any) -> Any:
        return int(self._plain.shape[-1])

    @property
    def _flat(self) -> Tensor:
        count = self._held.ndim - self.dense_dim()
        return self._held if count == 1 else self._held.reshape(-1, *self._held.shape[count:])

    def _with_flat(self, values: Tensor) -> SparseCompressed:
        return self._with(values.reshape(self._held.shape))

    def _rows(self) -> Rows:
        if self._kept is None:
            shape = cast("tuple[int, int]", tuple(self._size))
            rows, columns = self._places()
            start = self._start.astype(np.int64, copy=False)
            if self._of_blocks:
                self._kept = Rows(rows, columns, shape)
            elif self._by_rows:
                self._kept = Rows(rows, columns, shape, start)
            else:
                self._kept = Rows(columns, rows, shape[::-1], start).across
        return self._kept

    def _places(self) -> Array:
        return places(self._start, self._plain, self._by_rows, self._blocksize)

    def _unique(self) -> SparseCompressed:
        return self

    def crow_indices(self) -> Tensor:
        """Return where each row (of blocks) begins among the entries, and the end."""
        return self._indices_of("crow_indices", True, self._start)

    def col_indices(self) -> Tensor:
        """Return the column (of blocks) of each entry."""
        return self._indices_of("col_indices", True, self._plain)

    def ccol_indices(self) -> Tensor:
        """Return where each column (of blocks) begins among the entries, and the end."""
        return self._indices_of("ccol_indices", False, self._start)

    def row_indices(self) -> Tensor:
        """Return the row (of blocks) of each entry."""
        return self._indices_of("row_indices", False, self._plain)

    def _indices_of(self, name: str, by_rows: bool, indices: Array) -> Tensor:
        if self._by_rows is not by_rows:
            raise _not_of(name, self)
        return cast(Tensor, wrap(indices))

    def values(self) -> Tensor:
        """Return the values of the entries; gradients flow through them."""
        return _shown(self._held)

    def _parts(self) -> list[tuple[str, Tensor]]:
        names = ("crow_indices", "col_indices") if self._by_rows else ("ccol_indices", "row_indices")
        arrays: list[Tensor] = [wrap(self._start), wrap(self._plain), self._held.detach()]
        return list(zip((*names, "values"), arrays, strict=True))

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        made = super().__deepcopy__(memo)
        if made._start is self._start:
            made._start, made._plain = self._start.copy(), self._plain.copy()
        return made


def _not_of(name: str, x: SparseTensor) -> RuntimeError:
    """Return PyTorch's error for a member that another layout has."""
    kind = {"crow": "row compressed", "col_": "row compressed"}.get(name[:4], "coordinate")
    if name in ("ccol_indices", "row_indices"):
        kind = "column compressed"
    return RuntimeError(f"{name} expected sparse {kind} tensor layout but got {x._backend()}")


def _absent(name: str) -> Any:
    def method(self: Any) -> NoReturn:
        raise _not_of(name, self)

    return method


for _class, _names in (
    (SparseCOO, "crow_indices col_indices ccol_indices row_indices"),
    (SparseCompressed, "coalesce is_coalesced indices"),
):
    for _name in _names.split():
        setattr(_class, _name, _absent(_name))


# Conversions ----------------------------------------------------------------------------------------


def _shown(values: Tensor) -> Tensor:
    """Return the values of a tensor for its user: in the graph, but not the leaf that the gradient belongs to."""
    return values.view_as(values) if values.requires_grad else values.detach()


def summed(values: Tensor, index: Array, count: int) -> Tensor:
    """Return `count` rows: each is the sum of the rows of `values` for which `index` has its number."""
    return values.new_zeros((count, *values.shape[1:])).index_add(0, wrap(index), values)


def gradient_of_values(x: SparseTensor, g: Any) -> Tensor:
    """Return the gradient of a sparse tensor's values, given that of the tensor, dense or sparse."""
    if g.shape != x._size:
        raise RuntimeError(
            f"Mismatch in shape: the gradient has a shape of {g.shape} and the sparse tensor has a shape of {x._size}."
        )
    values: Tensor = of_sparse("_at_places", (g, x), {})._held
    return values if values.dtype is x.dtype else values.to(x.dtype)


def dense_of(x: SparseTensor) -> Any:
    """Return a sparse tensor as a dense one."""
    where, values = x._places(), x._flat
    count = len(where)
    numbers = linear(where, x._size[:count])
    rows = Size(x._size[:count]).numel()
    kind = x.dtype
    if kind is dtypes.bool:
        return dense_of(x._with(x._held.to(dtypes.uint8))) != 0
    return summed(values, numbers, rows).reshape(x._size)


def compressed_of(
    x: SparseCOO, kind: layout, blocksize: tuple[int, int] | None = None, batch: int = 0, index: Any = np.int64
) -> SparseCompressed:
    """Return a tensor in a compressed format.

    Args:
        x: the tensor in the format COO, whose sparse dimensions are those of the batch, the rows and the columns.
        kind: the layout.
        blocksize: the height and width of a block, for the layouts `sparse_bsr` and `sparse_bsc`.
        batch: the number of dimensions of the batch.
        index: the dtype of the indices.

    Raises:
        RuntimeError: the matrices of the batch have different numbers of entries.
    """
    if len(x._where) != 2 + batch:
        name, backend = str(kind).removeprefix("torch."), BACKENDS[kind]
        raise RuntimeError(
            f"coo_to_{name}: conversion from Sparse to {backend} for input tensors with sparse_dim()!=2 is not "
            "supported"
        )
    x = x.coalesce()
    by_rows = kind in BY_ROWS
    *outer, rows, columns = x._where
    height, width = blocksize or (1, 1)
    row, column = (rows, columns) if blocksize is None else (rows // height, columns // width)
    sizes = x._size[batch] // height if height else 0, x._size[batch + 1] // width if width else 0
    line, plain = (row, column) if by_rows else (column, row)
    lines, length = sizes if by_rows else sizes[::-1]
    numbers = linear(np.stack([*outer, line, plain]), (*x._size[:batch], lines, length))
    values = x._held
    if blocksize is None:
        first = None if is_sorted(numbers) else np.argsort(numbers, kind="stable")
        values = values if first is None else values.index_select(0, wrap(first))
    else:
        first, rank = distinct(numbers)
        at = (rank * height + rows % height) * width + columns % width
        values = summed(values, at, len(first) * height * width)
    if first is not None:
        plain, numbers = plain[first], numbers[first]
    matrices = math.prod(x._size[:batch])
    line_of = as_intp(numbers // length if length else numbers)
    counts = np.bincount(line_of, minlength=matrices * lines).reshape(matrices, lines)
    totals = counts.sum(axis=1)
    if (totals != totals[:1]).any():
        raise RuntimeError("Expect the same number of specified elements per batch.")
    start = np.zeros((matrices, lines + 1), index)
    np.cumsum(counts, axis=1, out=start[:, 1:])
    outer_shape, blocks = tuple(x._size[:batch]), () if blocksize is None else blocksize
    nnz = int(totals[0]) if matrices else 0
    if batch or blocks:
        values = values.reshape(*outer_shape, nnz, *blocks, *x._held.shape[1:])
    made = SparseCompressed.of(
        kind, start.reshape(*outer_shape, lines + 1), plain.reshape(*outer_shape, nnz).astype(index, copy=False),
        values, x._size,
    )  # fmt: skip
    if kind is sparse_csr and not batch and not x.dense_dim() and x._kept is not None:
        made._kept = x._kept
    return made


def compressed_like(x: SparseCOO, model: SparseCompressed) -> SparseCompressed:
    """Return a tensor in the compressed format, and with the blocks, of another."""
    return compressed_of(x, model._format, model._blocksize, model._batch_dim, model._start.dtype)


def sparse_parts(x: Any) -> tuple[layout, tuple[Any, ...]]:
    """Return a sparse tensor's layout, and what PyTorch's files say of it: indices, values, size ..."""
    values = x._held.detach()
    if isinstance(x, SparseCOO):
        return sparse_coo, (x._indices(), values, x._size, x._coalesced)
    return x.layout, (wrap(x._start), wrap(x._plain), values, x._size)


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
            return type(member).__get__(member, instance, owner) if hasattr(member, "__get__") else member
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
    _cdata _repr_html_
    """.split()
)


def _complete(cls: type[SparseTensor]) -> None:
    """Give the class a member for every member of Tensor."""
    own = {name for each in cls.__mro__ if each is not Tensor and each is not object for name in vars(each)}
    for name in list(vars(Tensor)):
        if name not in own and name not in _KEPT:
            setattr(cls, name, _Ruled(name))


_complete(SparseTensor)
