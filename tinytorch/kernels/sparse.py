"""Sparse matrices as arrays: their entries by rows, and the products that `torch.sparse` computes with them.

A matrix is described by where its entries are; their values are an array beside it, in the order in which the user gave
them. `Rows` sorts the places by rows once; it is kept by the tensor, so a graph's adjacency matrix is sorted only once.

Source: Saad, Iterative Methods for Sparse Linear Systems, section 3.4 (the format CSR).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .intp import as_intp
from .native import twin

Array = np.ndarray[Any, Any]

#: How many products of an entry and an element of a row `multiply` keeps in memory at a time.
BLOCK = 1 << 18


class Rows:
    """The places of a matrix's entries, sorted by rows.

    Attributes:
        rows, columns: of each entry, in the order of the values.
        shape: the number of rows and of columns.
        order: the positions of the values, sorted by rows; None if the values are sorted already.
        start: where each row begins in that order, and the end: the length is the number of rows and one.
        sorted_columns: the column of each entry, in that order.
    """

    __slots__ = ("_across", "columns", "order", "rows", "shape", "sorted_columns", "start")

    def __init__(self, rows: Array, columns: Array, shape: tuple[int, int], start: Array | None = None) -> None:
        self.rows, self.columns, self.shape = rows, columns, shape
        self.order: Array | None = None
        self._across: Rows | None = None
        if start is None:
            if not is_sorted(rows):
                self.order = np.argsort(rows, kind="stable")
            start = np.zeros(shape[0] + 1, np.int64)
            np.cumsum(np.bincount(as_intp(rows), minlength=shape[0]), out=start[1:])
        self.start = start
        self.sorted_columns = columns if self.order is None else columns[self.order]

    @property
    def across(self) -> Rows:
        """The transposed matrix, of the same values."""
        if self._across is None:
            self._across = Rows(self.columns, self.rows, self.shape[::-1])
            self._across._across = self
        return self._across


def entries(x: Any) -> Any:
    """Return a view of the values, which are then those of a sparse tensor."""
    return x[...]


def is_sorted(numbers: Array) -> bool:
    """Return whether numbers do not decrease."""
    return bool((numbers[1:] >= numbers[:-1]).all())


def linear(indices: Array, sizes: tuple[int, ...]) -> Array:
    """Return the number of each place: its position in the dense tensor of the sparse dimensions.

    Args:
        indices: shape (dimensions, entries).
        sizes: the length of each dimension.
    """
    if len(sizes) == 1:
        return indices[0]
    if not sizes:
        return np.zeros(indices.shape[1], np.int64)
    if math.prod(sizes) >= 2**63:
        raise RuntimeError("a sparse tensor of more than 2 ** 63 elements is not supported")
    numbers = indices[0].astype(np.int64)
    for row, size in zip(indices[1:], sizes[1:], strict=True):
        numbers = numbers * size + row
    return numbers


def compressed_lines(start: Array, plain: Array) -> Array:
    """Return the line of each entry of a tensor in a compressed format, shape (batch ..., entries); see `places`."""
    lines = np.tile(np.arange(start.shape[-1] - 1), math.prod(start.shape[:-1]))
    return np.repeat(lines, as_intp(np.diff(start, axis=-1).reshape(-1))).reshape(plain.shape)


def places(start: Array, plain: Array, by_rows: bool, blocksize: tuple[int, int] | None = None) -> Array:
    """Return the indices of the elements that a tensor in a compressed format stores, in the order of its values.

    Args:
        start: where each line begins among the entries, and the end: shape (batch ..., lines + 1).
        plain: the place of each entry in its line: shape (batch ..., entries).
        by_rows: whether lines are rows, rather than columns.
        blocksize: the height and width of an entry that is a block.

    Returns:
        An array of shape (dimensions of the batch + 2, elements).
    """
    batch, nnz = plain.shape[:-1], plain.shape[-1]
    line = compressed_lines(start, plain).reshape(-1)
    flat = plain.reshape(-1).astype(np.int64, copy=False)
    row, column = (line, flat) if by_rows else (flat, line)
    if blocksize is not None:
        height, width = blocksize
        each = (len(flat), height, width)
        row = np.broadcast_to((row[:, None] * height + np.arange(height))[:, :, None], each).reshape(-1)
        column = np.broadcast_to((column[:, None] * width + np.arange(width))[:, None, :], each).reshape(-1)
        nnz *= height * width
    outer = [np.repeat(index, nnz) for index in np.indices(batch).reshape(len(batch), math.prod(batch))]
    return np.stack([*outer, row, column])


def distinct(numbers: Array) -> tuple[Array, Array]:
    """Return the position of the first entry of each distinct number, in their order, and the number's rank per entry.

    Args:
        numbers: the places of entries.
    """
    order = np.argsort(numbers, kind="stable")
    in_order = numbers[order]
    new = np.ones(len(numbers), bool)
    new[1:] = in_order[1:] != in_order[:-1]
    rank = np.empty(len(numbers), np.int64)
    rank[order] = np.cumsum(new) - 1
    return order[new], rank


def ranges(begin: Array, lengths: Array) -> Array:
    """Return the numbers of several ranges, one range after the other."""
    total = np.cumsum(lengths)
    if not len(total) or not total[-1]:
        return np.zeros(0, np.int64)
    return np.arange(total[-1]) + np.repeat(begin - total + lengths, as_intp(lengths))


def multiply(values: Array, dense: Array, rows: Rows) -> Array:
    """Return the product of a sparse matrix and a dense one.

    Args:
        values: the entries of the sparse matrix, shape (entries,).
        dense: shape (columns, width).
        rows: where the entries are.
    """
    if rows.order is not None:
        values = values[rows.order]
    return by_rows(values, rows.sorted_columns, rows.start, dense)


@twin
def by_rows(values: Array, columns: Array, start: Array, dense: Array) -> Array:
    """Return the product of a matrix in the format CSR and a dense one.

    Args:
        values: the entries, row by row.
        columns: their columns.
        start: where each row begins, and the end.
        dense: shape (columns, width).
    """
    count, width = len(start) - 1, dense.shape[1]
    kind = np.float32 if values.dtype.itemsize == 2 and values.dtype.kind not in "iu" else values.dtype
    out = np.zeros_like(dense, shape=(count, width), dtype=kind)
    if not len(values) or not width:
        return out.astype(values.dtype, copy=False)
    filled = np.flatnonzero(start[1:] > start[:-1])
    begin, end = start[filled], start[filled + 1]
    step = max(1, BLOCK // width)
    first = 0
    while first < len(filled):  # some rows at a time, so that the products stay in the cache
        last = max(first + 1, int(np.searchsorted(end, begin[first] + step, "right")))
        part = slice(int(begin[first]), int(end[last - 1]))
        products = dense[columns[part]].astype(kind, copy=False)
        products = products * values[part, None] if products is dense else np.multiply(
            products, values[part, None].astype(kind, copy=False), out=products
        )  # fmt: skip
        out[filled[first:last]] = np.add.reduceat(products, as_intp(begin[first:last] - part.start), axis=0)
        first = last
    return out.astype(values.dtype, copy=False)


def sampled(x: Array, y: Array, rows: Rows) -> Array:
    """Return the elements of `x @ y.T` at the places of a sparse matrix.

    Args:
        x, y: shapes (rows, width) and (columns, width).
        rows: where the entries are.
    """
    count, step = len(rows.rows), max(1, BLOCK // max(1, x.shape[1]))
    out = np.empty_like(x, shape=(count,))
    for first in range(0, count, step):
        part = slice(first, first + step)
        out[part] = np.einsum("ek,ek->e", x[rows.rows[part]], y[rows.columns[part]])
    return out


def add_entries(target: Array, indices: Array, values: Array) -> None:
    """Add the entries of a sparse tensor to a dense array, in place.

    Args:
        target: the dense array.
        indices: shape (sparse dimensions, entries).
        values: shape (entries, length of each dense dimension ...).
    """
    np.add.at(target, tuple(indices), values.astype(target.dtype, copy=False))
