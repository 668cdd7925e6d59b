"""Where the elements of an array lie in memory: owners, places (sizes, strides, offset), views and writes by place."""

from __future__ import annotations

from typing import Any

import numpy as np

from .meta import copied

Array = Any


def storage(x: Array) -> Array:
    """Return the array that owns the memory of `x`."""
    owner = x
    while owner.base is not None:
        base = owner.base
        if not isinstance(base, np.ndarray):
            base = getattr(base, "base", None)  # `as_strided` puts an object between a view and its array
            if not isinstance(base, np.ndarray):
                break
        owner = base
    return owner


def storage_offset(x: Array) -> int:
    """Return how many elements of its memory come before the first element of `x`."""
    return (_address(x) - _address(storage(x))) // int(x.itemsize)


def _address(x: Array) -> int:
    address: int = x.__array_interface__["data"][0]
    return address


def element_strides(x: Array) -> list[int]:
    """Return the strides in elements; of a new array without elements, for which NumPy has zeros, those of PyTorch."""
    if x.size or any(x.strides):
        return [step // x.itemsize for step in x.strides]
    strides, step = [], 1
    for length in reversed(x.shape):
        strides.append(step)
        step *= max(length, 1)
    return strides[::-1]


# Where an array's elements lie in a block of memory: sizes, strides, and the offset of the first, all in elements.
Place = tuple[tuple[int, ...], tuple[int, ...], int]


def place(x: Array, base: Array) -> Place:
    """Return where `x` lies in the memory of `base`; the offset is from the first element of `base`."""
    size = x.itemsize
    offset = 0 if x is base or not x.size else (_address(x) - _address(base)) // size
    return x.shape, tuple([step // size for step in x.strides]), offset


def same(x: Array, y: Array) -> bool:
    """Return whether two arrays are views of the same elements in the same order."""
    return (
        x.shape == y.shape
        and _address(x) == _address(y)
        and all([a == b or n == 1 for a, b, n in zip(x.strides, y.strides, x.shape, strict=True)])
    )


def checked_place(x: Array, size: tuple[int, ...], stride: tuple[int, ...], offset: int) -> Place:
    """Return a place with its offset from the first element of `x`, given one with its offset from that of the memory.

    Raises:
        RuntimeError: strides are negative, do not match the sizes, or leave the memory.
    """
    if len(size) != len(stride):
        raise RuntimeError("mismatch in length of strides and shape")
    if min(stride, default=0) < 0:
        raise RuntimeError(
            f"as_strided: Negative strides are not supported at the moment, got strides: {[*map(int, stride)]}"
        )
    available = storage(x).nbytes
    if 0 in size:  # without elements any offset is allowed
        offset = min(offset, available // x.itemsize)
    needed = end((size, stride, offset)) * x.itemsize
    if needed > available or offset < 0:
        raise RuntimeError(
            f"setStorage: sizes {[*map(int, size)]}, strides {list(stride)}, storage offset {offset}, and itemsize "
            f"{x.itemsize} requiring a storage size of {needed} are out of bounds for storage of size {available}"
        )
    return size, stride, offset - storage_offset(x)


def at(x: Array, where: Place) -> Array:
    """Return the view at a place in the memory of `x`, whose offset is from the first element of `x`."""
    try:
        if x.flags.c_contiguous:
            return _window(x, where)
    except ValueError:
        pass
    memory = storage(x).ravel("K").view(x.dtype)  # a view, since the owner is dense
    return _window(memory, _from(-storage_offset(x), where))


def strided(x: Array, place: Place, whole: Place) -> Array:
    """Return the view at `place`; `whole`, where `x` itself lies, is for the gradient alone."""
    return at(x, place)


def _window(memory: Array, where: Place) -> Array:
    """Return a view of contiguous memory by place.

    Raises:
        ValueError: the place reaches beyond the memory.
    """
    shape, strides, first = where
    size = memory.itemsize
    start = 0 if 0 in shape else first * size
    steps = [step * size for step in strides]
    if type(memory) is np.ndarray:
        try:
            return np.ndarray(shape, memory.dtype, memory, start, steps)
        except TypeError as error:  # NumPy's for memory that is too small
            raise ValueError(str(error)) from None
    if not 0 <= first <= end(where) <= memory.size:
        raise ValueError("the place reaches beyond the memory")
    flat = memory.reshape(-1)[start // size :]
    return np.lib.stride_tricks.as_strided(flat, shape, steps).view(type(memory))


def overlaps(where: Place) -> bool:
    """Return whether two elements of a place may be one element in memory."""
    shape, strides, _ = where
    reach = 0
    for step, length in sorted(zip(strides, shape, strict=True)):
        if length > 1:
            if step <= reach:
                return 0 not in shape
            reach += step * (length - 1)
    return False


def restrided(x: Array, source: Place, target: Place) -> Array:
    """Return the elements at `target` of zeroed memory to which `x` was added at `source`."""
    try:
        if _fills(x, source):  # `x` can serve as the memory
            return _window(x, _from(source[2], target)).copy()
    except ValueError:
        pass
    memory, start = _memory(x, source, target)
    if overlaps(source):
        np.add.at(memory, _places(_from(start, source)), x)
    else:
        _window(memory, _from(start, source))[...] = x
    result = _window(memory, _from(start, target))
    return result if result.size == memory.size else result.copy()


def replaced(x: Array, y: Array, whole: Place, part: Place) -> Array:
    """Return a copy of `x`, which lies at `whole` in memory, with `y` written at `part` of that memory."""
    try:
        if _fills(x, whole):
            result = x.copy()
            _window(result, _from(whole[2], part))[...] = copied(y, x)
            return result
    except ValueError:
        pass
    memory, start = _memory(x, whole, part)
    result = _window(memory, _from(start, whole))
    result[...] = x
    _window(memory, _from(start, part))[...] = copied(y, x)
    return result


def _fills(x: Array, where: Place) -> bool:
    """Return whether `x` is contiguous with the strides of the place `where`."""
    return x.flags.c_contiguous and where[1] == tuple([step // x.itemsize for step in x.strides])


def shares(where: Place, like: Array) -> Array:
    """Return per element of a place how many elements share its location in memory, in the dtype of `like`."""
    memory, start = _memory(like, where)
    places = _places(_from(start, where))
    np.add.at(memory, places, 1)
    return memory[places]


def _memory(like: Array, *places: Place) -> tuple[Array, int]:
    """Return zeros that cover all the places, and the offset of the first of them."""
    filled = [where for where in places if 0 not in where[0]]
    start = min([where[2] for where in filled], default=0)
    last = max([end(where) for where in filled], default=0)
    return np.zeros(last - start, like.dtype, like=like), start


def end(where: Place) -> int:
    """Return the offset after the last element."""
    shape, strides, first = where
    if 0 in shape:
        return first
    return first + 1 + sum([(n - 1) * step for n, step in zip(shape, strides, strict=True)])


def _from(start: int, where: Place) -> Place:
    """Return a place with its offset counted from `start`."""
    return where[0], where[1], where[2] - start


def _places(where: Place) -> Array:
    """Return the index of each element."""
    shape, strides, first = where
    index = np.full(shape, first)
    for axis, (length, step) in enumerate(zip(shape, strides, strict=True)):
        index += (step * np.arange(length)).reshape([-1 if d == axis else 1 for d in range(len(shape))])
    return index


def is_dense(array: Any) -> bool:
    """Return whether the elements fill a block of memory without gaps, in any order of axes."""
    expected = array.itemsize
    for stride, length in sorted(zip(array.strides, array.shape, strict=True)):
        if length != 1:
            if stride != expected:
                return False
            expected *= length
    return True
