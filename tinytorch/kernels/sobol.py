"""Sobol sequences: direction numbers, points and scrambling, on arrays.

The direction numbers are those of S. Joe and F. Y. Kuo, "Constructing Sobol sequences with better two-dimensional
projections", SIAM J. Sci. Comput. 30, 2635-2654 (2008): their table `new-joe-kuo-6.21201`, of which `sobol.bin` holds
the dimensions with polynomials of degree at most 13 (`scripts/make_sobol.py` wrote it). For further ones the table is
read from SciPy's files, if SciPy is installed.

In the recurrence of P. Bratley and B. L. Fox (Algorithm 659, ACM Trans. Math. Softw. 14, 88-100, 1988) a dimension has
a primitive polynomial over the integers modulo 2 and as many initial numbers as the polynomial's degree; point n is the
sum modulo 2 (XOR) of the direction numbers at the bits of the Gray code of n.
"""

from __future__ import annotations

import functools
import importlib.util
from pathlib import Path
from typing import Any

import numpy as np

Array = Any

BITS = 30  # of a coordinate
DIMENSIONS = 21201  # of the published table
#: By degree, the number of primitive polynomials, each of which belongs to a dimension.
COUNTS = (1, 1, 1, 2, 2, 6, 6, 18, 16, 48, 60, 176, 144, 630)
OWN = sum(COUNTS)  # 1111 dimensions are in `sobol.bin`

_FILE = Path(__file__).with_name("sobol.bin")


def packed(polynomials: Array, initial: Array) -> bytes:
    """Return the numbers of the first dimensions as `sobol.bin` holds them.

    Args:
        polynomials: of each dimension the polynomial, one bit per coefficient, in ascending order.
        initial: of each dimension the initial numbers, shape (dimensions, 18); number j is odd and below 2^(j + 1).

    A row has the coefficients of the polynomial except the first and last, which are 1, and the bits of the initial
    numbers except the last bit, which is 1, too.
    """
    bits, first = [], 0
    for degree, count in enumerate(COUNTS):
        rows = slice(first, first + count)
        fields = [(polynomials[rows] >> 1, degree - 1), *[(initial[rows, j] >> 1, j) for j in range(degree)]]
        columns = [(field >> place) & 1 for field, width in fields for place in range(width)]
        if columns:
            bits.append(np.stack(columns, 1).astype(np.uint8).ravel())
        first += count
    return np.packbits(np.concatenate(bits)).tobytes()


@functools.cache
def _own() -> tuple[Array, Array]:
    """Return the polynomials and initial numbers that `packed` wrote."""
    bits = np.unpackbits(np.frombuffer(_FILE.read_bytes(), np.uint8))
    polynomials, initial = np.ones(OWN, np.int64), np.zeros((OWN, 18), np.int64)
    first = read = 0
    for degree, count in enumerate(COUNTS):
        rows, widths = slice(first, first + count), [max(degree - 1, 0), *range(degree)]
        block = bits[read : read + count * sum(widths)].reshape(count, sum(widths)).astype(np.int64)
        fields = [part @ (1 << np.arange(part.shape[1])) for part in np.split(block, np.cumsum(widths)[:-1], 1)]
        if degree:
            polynomials[rows] = (1 << degree) | (fields[0] << 1) | 1
            initial[rows, :degree] = np.stack([2 * field + 1 for field in fields[1:]], 1)
        first, read = first + count, read + block.size
    initial[0, 0] = 1
    return polynomials, initial


@functools.cache
def _table() -> tuple[Array, Array]:
    """Return the polynomials and initial numbers of all dimensions, from SciPy's files.

    Raises:
        NotImplementedError: SciPy is not installed, or its file has another form.
    """
    spec = importlib.util.find_spec("scipy")
    file = Path(spec.origin).parent / "stats" / "_sobol_direction_numbers.npz" if spec and spec.origin else None
    if file is None or not file.exists():
        raise NotImplementedError(
            f"SobolEngine: tinytorch has the direction numbers of {OWN} dimensions, and reads those of further ones "
            "from SciPy's files, which are not installed: pip install scipy"
        )
    with np.load(file) as read:
        polynomials, initial = read["poly"].astype(np.int64), read["vinit"].astype(np.int64)
    own = _own()
    if not (np.array_equal(polynomials[:OWN], own[0]) and np.array_equal(initial[:OWN], own[1])):
        raise NotImplementedError(f"SobolEngine: {file} has not the numbers of the table new-joe-kuo-6.21201")
    return polynomials, initial


def direction_numbers(dimensions: int) -> Array:
    """Return the direction numbers, as int64 of shape (dimensions, BITS): number j has its last bit at BITS - 1 - j."""
    polynomials, initial = (each[:dimensions] for each in (_own() if dimensions <= OWN else _table()))
    degrees = np.frexp(polynomials)[1] - 1
    numbers = np.ones((dimensions, BITS), np.int64)
    for degree in range(1, int(degrees.max()) + 1):
        rows = degrees == degree
        m, coefficients = numbers[rows], polynomials[rows]
        m[:, :degree] = initial[rows, :degree]
        for j in range(degree, BITS):
            m[:, j] = m[:, j - degree]
            for i in range(1, degree + 1):
                m[:, j] ^= (((coefficients >> (degree - i)) & 1) << i) * m[:, j - i]
        numbers[rows] = m
    return numbers << np.arange(BITS - 1, -1, -1)


def draw(last: Array, count: int, directions: Array, index: int) -> Array:
    """Return the `count` points after point number `index`, as int64 of shape (count, dimensions).

    Args:
        last: point number `index`.
    """
    after = np.arange(index, index + count)
    lowest = np.frexp((~after & (after + 1)).astype(np.float64))[1] - 1  # the lowest bit that is 0
    points = directions.T[lowest]
    if count:
        points[0] ^= last
        np.bitwise_xor.accumulate(points, 0, out=points)
    return points


def forwarded(last: Array, count: int, directions: Array, index: int) -> Array:
    """Return point number `index + count`; the arguments are those of `draw`."""
    end = index + max(count, 0)
    changed = (index ^ index >> 1) ^ (end ^ end >> 1)
    bits = [bit for bit in range(BITS) if changed >> bit & 1]
    return last ^ np.bitwise_xor.reduce(directions[:, bits], 1)


def scrambled(directions: Array, matrices: Array) -> Array:
    """Return direction numbers multiplied by matrices modulo 2: a linear matrix scramble, as A. Owen's.

    Args:
        matrices: of each dimension a lower triangular matrix of bits, shape (dimensions, BITS, BITS); its diagonal
            counts as 1. The first row and column belong to the highest bit.
    """
    places = np.arange(BITS - 1, -1, -1)
    lower = np.tril(matrices, -1).astype(np.float32) + np.eye(BITS, dtype=np.float32)
    bits = ((directions[:, :, None] >> places) & 1).astype(np.float32)
    products = (bits @ lower.swapaxes(1, 2)).astype(np.int64) & 1
    return products @ (1 << places)
