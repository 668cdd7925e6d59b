"""Arrays without data, of tensors on the meta device: their shape, dtype and strides are what NumPy would compute.

A `MetaArray` is an array on reserved address space: pages of zeros that are never written, and so take no memory. Views
of it are NumPy's own views. NumPy hands its functions to the class (`__array_ufunc__`, `__array_function__`), which
runs them on *corners*, arrays whose dimensions are cut to two elements, for the dtype and the order of dimensions in
memory of the result, and derives its shape by the rule of the function's family: elementwise, reduction, product, and
so on. A function without such a rule runs on zeros of the full shape. Kernels are called with these arrays as they
are; where one reads an element, `NoData` is raised, and the op runs the kernel once more, on zeros (`on_zeros`).
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib import stride_tricks

__all__ = [
    "MetaArray", "NoData", "NotCopied", "WithoutElements", "check_all", "copied", "empty", "is_meta",
    "known", "like", "on_zeros", "within",
]  # fmt: skip


class NoData(RuntimeError):
    """An element of an array without data is read; a note names the line of the user's code, and the remedy."""

    text = "Tensor.item() cannot be called on meta tensors"

    def __init__(self, text: str = "") -> None:
        super().__init__(text or self.text)
        frame: Any = sys._getframe(1)
        while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("tinytorch", "numpy"):
            frame = frame.f_back
        if frame is not None:
            self.add_note(
                f"{frame.f_code.co_filename}:{frame.f_lineno}: a tensor on the meta device has no numbers. Compute "
                "them on the CPU (`device='cpu'` where the tensor is created), or after the weights are loaded."
            )


class NotCopied(NoData, NotImplementedError):
    """Elements of an array without data are copied."""

    text = "Cannot copy out of meta tensor; no data!"


# Memory -------------------------------------------------------------------------------------------


@functools.cache
def reserved() -> memoryview:
    """Return address space that reads as zeros and cannot be written, as much of it as the system reserves."""
    try:
        import mmap
    except ImportError:  # this Python has no such module
        return memoryview(bytes(1 << 20))
    options, system = {}, vars(mmap)  # (other systems lack some of its names)
    if "MAP_ANONYMOUS" in system:
        without_reserve = system.get("MAP_NORESERVE", 0x4000)  # (0x4000 on Linux, where older Pythons lack the name)
        flags = system["MAP_PRIVATE"] | system["MAP_ANONYMOUS"] | without_reserve
        options = {"flags": flags, "prot": system["PROT_READ"]}
    for bits in (46, 42, 38, 34):
        try:
            return memoryview(mmap.mmap(-1, 1 << bits, **options)).toreadonly()
        except (OSError, OverflowError, ValueError, MemoryError):
            continue
    return memoryview(bytes(1 << 20))


class _Next:
    """The offset at which the next array begins, so that different arrays share no memory."""

    offset = 0


def empty(shape: tuple[int, ...], dtype: Any, strides: tuple[int, ...] | None = None) -> MetaArray:
    """Return an array without data; by default it is contiguous."""
    dtype = np.dtype(dtype)
    if strides is None:
        strides = _strides(shape, range(len(shape)), dtype.itemsize)
    size = 0 if 0 in shape else sum([(n - 1) * step for n, step in zip(shape, strides, strict=True)]) + dtype.itemsize
    memory = reserved()
    if size > len(memory):  # only its shape is of use: NumPy does not check the memory of such a view
        one = np.ndarray.__new__(MetaArray, (), dtype, memory)
        whole: Any = stride_tricks.as_strided(one, shape, strides, subok=True)
        return whole
    start = _Next.offset
    if start + size > len(memory):
        start = 0
    _Next.offset = -(-(start + size) // 64) * 64
    return np.ndarray.__new__(MetaArray, shape, dtype, memory[start : start + max(size, dtype.itemsize)], 0, strides)


def _strides(shape: tuple[int, ...], order: Any, itemsize: int) -> tuple[int, ...]:
    """Return the strides of dense memory; `order` has the dimensions from the outermost to the innermost."""
    strides, step = [0] * len(shape), itemsize
    for dim in reversed(order):
        strides[dim] = step
        step *= max(shape[dim], 1)
    return tuple(strides)


def like(array: Any, shape: tuple[int, ...] | None = None) -> MetaArray:
    """Return an array without data with the dtype and the order of dimensions in memory of `array`.

    Args:
        array: an array, or a NumPy scalar.
        shape: the shape, of as many dimensions; by default that of `array`, whose strides are then kept.
    """
    if shape is None:
        made = empty(array.shape, array.dtype, tuple(map(abs, array.strides)))
        backwards = tuple([slice(None, None, -1 if step < 0 else None) for step in array.strides])
        return made if min(array.strides, default=0) >= 0 else made[backwards]
    order = sorted(range(len(shape)), key=lambda dim: -abs(array.strides[dim]))
    return empty(shape, array.dtype, _strides(shape, order, array.dtype.itemsize))


def is_meta(x: Any) -> bool:
    """Return whether `x` is an array without data."""
    return isinstance(x, MetaArray)


def copied(x: Any, to: Any) -> Any:
    """Return `x`, elements of which are copied to the array `to` by an operation that does not ask this class.

    Raises:
        NotCopied: only `x` has no data.
    """
    if type(x) is MetaArray and type(to) is not MetaArray:
        raise NotCopied
    return x


def check_all(x: Any, *others: Any) -> None:
    """Raise NotCopied if `x` is an array of numbers and another array has no data."""
    if MetaArray in map(type, others) and type(x) is not MetaArray:
        raise NotCopied


def known(condition: Any, *arrays: Any) -> bool:
    """Return the truth value of a condition on elements; False where there are no elements to read.

    Args:
        condition: a boolean, a number, or an array of one element; or a function of `arrays` that returns it.
        arrays: whose elements the function reads.
    """
    if arrays:
        condition = arrays[0] if any([isinstance(x, WithoutElements) for x in arrays]) else condition(*arrays)
    return not isinstance(condition, WithoutElements) and bool(condition)


def within(x: Any, low: int, end: int) -> bool:
    """Return whether all elements of an array are in [low, end); True where there are no elements to read."""
    return not x.size or isinstance(x, WithoutElements) or bool(low <= x.min() and x.max() < end)


# Functions ----------------------------------------------------------------------------------------


def _mapped(change: Callable[[Any], Any], x: Any) -> Any:
    """Return arguments or results with all elements of lists, tuples and dicts changed."""
    if isinstance(x, (tuple, list)):
        parts = [_mapped(change, each) for each in x]
        return parts if isinstance(x, list) else tuple(parts) if type(x) is tuple else type(x)(*parts)
    return {key: _mapped(change, each) for key, each in x.items()} if type(x) is dict else change(x)


def _zeros(x: Any) -> Any:
    if not isinstance(x, MetaArray):
        return x
    if x.nbytes > len(reserved()):
        raise NoData(f"a tensor of shape {x.shape} on the meta device is too large for this function")
    return x.view(np.ndarray)


def _ones(x: Any) -> Any:
    """Return an identity matrix, or ones, in the place of an array without data."""
    if not isinstance(x, MetaArray):
        return x
    made = np.empty_like(x.view(np.ndarray), subok=False)
    made[...] = np.eye(*x.shape[-2:], dtype=x.dtype) if x.ndim > 1 and x.dtype.kind == "f" else 1
    return made


def _empty_result(x: Any) -> Any:
    """Return an array without data in the place of an array; views of zeros stay views."""
    if isinstance(x, np.generic):
        return empty((), x.dtype)
    if not isinstance(x, np.ndarray):
        return x
    owner = x
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    return x.view(MetaArray) if owner.base is reserved().obj else like(x)


_plain = functools.partial(_mapped, _zeros)  # the same memory as ordinary arrays: zeros
_without_data = functools.partial(_mapped, _empty_result)


def on_zeros(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what a function returns for zeros, as arrays without data; or, where it divides by zero, for ones."""
    with np.errstate(all="ignore"):
        try:
            return _without_data(function(*_plain(args), **_plain(kwargs)))
        except (ArithmeticError, np.linalg.LinAlgError, RuntimeError) as error:
            if not _is_of_zeros(error):
                raise
            return _without_data(function(*_mapped(_ones, args), **_mapped(_ones, kwargs)))


def _is_of_zeros(error: Exception) -> bool:
    """Return whether an error is about the elements, which are zeros: a division, or a singular matrix."""
    return any(word in type(error).__name__ + str(error) for word in ("LinAlgError", "ZeroDivision"))


def _corner(x: Any) -> Any:
    """Return an array with its dimensions cut to two elements, which has the same order in memory."""
    if isinstance(x, np.ndarray):
        return x.view(np.ndarray)[(slice(0, 2),) * x.ndim] if x.ndim else x.view(np.ndarray)
    return x


def _is_written(out: Any) -> bool:
    """Return whether results go to arrays without data, where nothing happens; NoData for other arrays."""
    if not isinstance(out, tuple):
        out = (out,)
    outs = [each for each in out if each is not None]
    if any([not isinstance(each, MetaArray) for each in outs]):
        raise NotCopied
    return bool(outs)


def _finished(result: Any, out: Any) -> Any:
    """Return `out` if it is passed, after checking that the result fits, else the result."""
    if out is None or not _is_written(out):
        return result
    outs = out if isinstance(out, tuple) else (out,)
    results = result if isinstance(result, tuple) else (result,)
    for target, each in zip(outs, results, strict=True):
        if target is not None and np.broadcast_shapes(target.shape, each.shape) != target.shape:
            shapes = f"non-broadcastable output operand with shape {target.shape}"
            raise ValueError(f"{shapes} doesn't match the broadcast shape {each.shape}")
    return outs[0] if len(outs) == 1 else outs


def _elementwise(function: Any, operands: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the results of a function of elements that broadcasts its operands."""
    shapes = [x.shape for x in operands if isinstance(x, np.ndarray)]
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        return on_zeros(function, operands, kwargs)  # raises the error
    with np.errstate(all="ignore"):
        results = function(*map(_corner, operands), **kwargs)
    if isinstance(results, tuple):
        return tuple([like(each, shape) for each in results])
    return like(results, shape)


def _axes(axis: Any, ndim: int) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(ndim))
    return np.lib.array_utils.normalize_axis_tuple(axis, ndim) if ndim else ()


def _reduced(function: Any, x: Any, axis: Any, keepdims: bool, kwargs: dict[str, Any]) -> Any:
    """Return the result of a reduction of `x` along some dimensions."""
    axes = _axes(axis, x.ndim)
    named = {"axis": axis} | ({"keepdims": True} if keepdims else {})
    with np.errstate(all="ignore"):
        if 0 in x.shape:
            result = function(x.view(np.ndarray), **named, **kwargs)
        else:
            result = function(_corner(x), **named, **kwargs)
    shape = [1 if dim in axes else n for dim, n in enumerate(x.shape) if keepdims or dim not in axes]
    return like(result, tuple(shape))


def _product(function: Any, a: Any, b: Any, shape: tuple[int, ...]) -> Any:
    """Return the product of matrices or vectors, of a known shape."""
    try:
        result = function(_corner(a), _corner(b))
    except ValueError:
        return on_zeros(function, (a, b), {})  # raises the error
    return empty(shape, result.dtype)


def _matmul(a: Any, b: Any, **kwargs: Any) -> Any:
    if min(a.ndim, b.ndim) == 0 or a.shape[-1] != b.shape[-2 if b.ndim > 1 else -1]:
        return on_zeros(np.matmul, (a, b), kwargs)  # raises the error
    rows, columns = a.shape[-2:-1], b.shape[-1:] if b.ndim > 1 else ()
    return _product(np.matmul, a, b, (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), *rows, *columns))


def _dot(a: Any, b: Any, out: Any = None) -> Any:
    a, b = [x if isinstance(x, np.ndarray) else np.asarray(x) for x in (a, b)]
    if a.ndim == 0 or b.ndim == 0:
        return np.multiply(a, b)
    if a.shape[-1] != b.shape[-2 if b.ndim > 1 else -1]:
        return on_zeros(np.dot, (a, b), {})  # raises the error
    shape = (*a.shape[:-1], *b.shape[:-2], *(b.shape[-1:] if b.ndim > 1 else ()))
    return _finished(_product(np.dot, a, b, shape), out)


def _concatenate(arrays: Any, axis: Any = 0, out: Any = None, **kwargs: Any) -> Any:
    first = arrays[0]
    if axis is None or any([x.ndim != first.ndim for x in arrays]):
        return on_zeros(np.concatenate, (arrays, axis), kwargs)
    (dim,) = _axes(axis, first.ndim)
    alike = {(*x.shape[:dim], *x.shape[dim + 1 :]) for x in arrays}
    result = np.concatenate([_corner(x) for x in arrays], axis, **kwargs)
    if len(alike) > 1:
        return on_zeros(np.concatenate, (arrays, axis), kwargs)  # raises the error
    length = sum([x.shape[dim] for x in arrays])
    return _finished(like(result, (*first.shape[:dim], length, *first.shape[dim + 1 :])), out)


def _where(condition: Any, *choices: Any) -> Any:
    if not choices:
        raise NotCopied("the places of elements are not known of a tensor on the meta device")
    return _elementwise(np.where, (condition, *choices), {})


def _copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    if not isinstance(dst, MetaArray):
        raise NotCopied
    np.broadcast_shapes(dst.shape, np.shape(src), np.shape(where))
    if np.broadcast_shapes(dst.shape, np.shape(src)) != dst.shape:
        raise ValueError(f"could not broadcast input array from shape {np.shape(src)} into shape {dst.shape}")


def _changes(array: Any, *args: Any, **kwargs: Any) -> None:
    """Do nothing, as there are no elements to change; NoData where the elements of another array would change."""
    _is_written(array)


def _created(function: Any) -> Callable[..., Any]:
    """Return the rule of a function that creates an array like another one, or of a shape."""

    def create(prototype: Any, *args: Any, **kwargs: Any) -> Any:
        shape = kwargs.pop("shape", None)
        if isinstance(prototype, np.ndarray):
            if not isinstance(prototype, MetaArray):  # only a value is one without data
                return on_zeros(function, (prototype, *args), kwargs)
            result = function(_corner(prototype), *_plain(args), **kwargs)
            if shape is None:
                return like(result, prototype.shape)
            shape = (shape,) if isinstance(shape, int) else tuple(shape)
            if len(shape) == prototype.ndim and kwargs.get("order", "K") in "KA":
                return like(result, shape)
            order = range(len(shape)) if kwargs.get("order", "K") != "F" else range(len(shape))[::-1]
            return empty(shape, result.dtype, _strides(shape, order, result.dtype.itemsize))
        kwargs.pop("like", None)
        shape = (prototype,) if isinstance(prototype, (int, np.integer)) else tuple(prototype)
        result = function((0,) * len(shape), *_plain(args), **kwargs)
        return empty(shape, result.dtype)

    return create


def _einsum(subscripts: str, *operands: Any, **kwargs: Any) -> Any:
    terms, _, result = subscripts.replace(" ", "").partition("->")
    if "..." in subscripts or "->" not in subscripts:
        return on_zeros(np.einsum, (subscripts, *operands), kwargs)
    pairs = zip(terms.split(","), operands, strict=True)
    sizes = {name: n for term, x in pairs for name, n in zip(term, x.shape, strict=True)}
    return empty(tuple([sizes[name] for name in result]), np.result_type(*[x.dtype for x in operands]))


def _of_elements(*args: Any, **kwargs: Any) -> Any:
    """Raise NotCopied: the shape of the result depends on the elements."""
    raise NotCopied("the shape of the result depends on the elements, which a tensor on the meta device does not have")


#: The rules of NumPy's functions, besides those of ufuncs; other functions run on zeros of the full shape.
_RULES: dict[Any, Callable[..., Any]] = {
    **{each: _of_elements for each in (
        np.nonzero, np.flatnonzero, np.argwhere, np.unique, np.unique_values, np.unique_counts, np.unique_inverse,
        np.unique_all, np.extract, np.compress, np.bincount, np.intersect1d, np.union1d, np.setdiff1d,
    )},
    **{each: _changes for each in (np.put, np.put_along_axis, np.place, np.putmask, np.fill_diagonal)},
    np.dot: _dot, np.concatenate: _concatenate, np.where: _where, np.copyto: _copyto, np.einsum: _einsum,
    **{each: _created(each) for each in (
        np.empty, np.zeros, np.ones, np.full, np.empty_like, np.zeros_like, np.ones_like, np.full_like,
    )},
}  # fmt: skip
#: Functions in Python whose steps are functions and methods of arrays again.
_COMPOSED = {np.stack, np.vstack, np.hstack, np.tensordot, np.mean, np.sum, np.max, np.min, np.prod, np.any, np.all}
#: Functions of shapes, dtypes and memory alone.
OF_METADATA = {
    np.may_share_memory, np.shares_memory, np.can_cast, np.result_type, np.ndim, np.shape, np.size, np.iscomplexobj,
    np.isrealobj, np.min_scalar_type, np.common_type,
}  # fmt: skip


class WithoutElements(np.ndarray):
    """An array of which only the shape, dtype and strides are known: one without data, or a batched one of `vmap`."""

    __slots__ = ()


class MetaArray(WithoutElements):
    """An array without data."""

    __slots__ = ()
    #: By which methods of other arrays (`a.dot`), that hand no function to this class, return its type.
    __array_priority__ = 1e6

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        out = kwargs.pop("out", None)
        if out is not None:
            _is_written(out)
        if method == "at":
            return _is_written(inputs[0]) and None
        where = kwargs.get("where")
        if isinstance(where, np.ndarray):
            kwargs["where"] = True
        if method == "__call__" and ufunc is np.matmul:
            result = _matmul(*inputs, **kwargs)
        elif method == "__call__" and ufunc.signature is None:
            result = _elementwise(ufunc, inputs, kwargs)
        elif method == "reduce":
            axis, keepdims = kwargs.pop("axis", inputs[1] if len(inputs) > 1 else 0), kwargs.pop("keepdims", False)
            result = _reduced(ufunc.reduce, inputs[0], axis, keepdims, kwargs)
        elif method == "accumulate":
            result = like(ufunc.accumulate(_corner(inputs[0]), *inputs[1:], **kwargs), inputs[0].shape)
        else:
            result = on_zeros(getattr(ufunc, method), inputs, kwargs)
        return _finished(result, out)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        rule = _RULES.get(func)
        if rule is not None:
            return rule(*args, **kwargs)
        if func in _COMPOSED:
            return super().__array_function__(func, types, args, kwargs)
        if func in OF_METADATA:
            return func(*_plain(args), **_plain(kwargs))
        out = kwargs.pop("out", None)
        result = on_zeros(func, args, kwargs)
        if isinstance(result, bool):
            raise NoData
        return _finished(result, out)

    # Elements -------------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Any:
        if any(
            [isinstance(each, MetaArray) and each.dtype == bool for each in (key if type(key) is tuple else (key,))]
        ):
            _of_elements()
        return on_zeros(np.ndarray.__getitem__, (self, key), {})

    def __setitem__(self, key: Any, value: Any) -> None:
        part = on_zeros(np.ndarray.__getitem__, (self, key), {})
        shape = np.shape(value)
        while len(shape) > part.ndim and shape[0] == 1:
            shape = shape[1:]
        if np.broadcast_shapes(part.shape, shape) != part.shape:
            raise ValueError(f"could not broadcast input array from shape {np.shape(value)} into shape {part.shape}")

    def item(self, *args: Any) -> Any:
        """Raise NoData."""
        if self.size != 1 and not args:
            raise ValueError("can only convert an array of size 1 to a Python scalar")
        raise NoData

    def _is_read(self, *args: Any, **kwargs: Any) -> Any:
        raise NoData

    __bool__ = __int__ = __float__ = __index__ = __complex__ = __contains__ = _is_read

    def _is_copied(self, *args: Any, **kwargs: Any) -> Any:
        raise NotCopied

    tolist = tobytes = tofile = dump = dumps = nonzero = _is_copied

    def _is_changed(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing: there are no elements."""

    fill = sort = partition = put = _is_changed

    def __iter__(self) -> Any:
        return (self[k] for k in range(len(self)))

    # Copies ---------------------------------------------------------------------------------------

    def reshape(self, *shape: Any, order: str = "C", **kwargs: Any) -> Any:  # type: ignore[override]
        """Return a view, where the strides allow it, or a new array."""
        plain: Any = self.view(np.ndarray)
        sizes: Any = shape[0] if len(shape) == 1 else shape
        try:
            return plain.reshape(sizes, order=order, copy=False).view(MetaArray)
        except ValueError as error:
            if "copy" not in str(error) or kwargs.get("copy") is False:
                raise
        sizes = (sizes,) if isinstance(sizes, int) else tuple(sizes)
        rest = math.prod([n for n in sizes if n != -1])
        return empty(tuple([self.size // rest if n == -1 else n for n in sizes]), self.dtype)

    def ravel(self, order: str = "C") -> Any:  # type: ignore[override]
        """Return the elements in one dimension."""
        if order in "KA":
            dims = sorted(range(self.ndim), key=lambda dim: -self.strides[dim])
            return self.transpose(dims).reshape(-1)
        return self.reshape(-1, order=order)

    def flatten(self, order: str = "C") -> Any:  # type: ignore[override]
        """Return a copy in one dimension."""
        return empty((self.size,), self.dtype)

    def resize(self, *args: Any, **kwargs: Any) -> None:
        """Raise ValueError: the memory of an array without data has no other size."""
        raise ValueError("an array without data cannot be resized")

    def dot(self, b: Any, out: Any = None) -> Any:
        """Return the product."""
        return _dot(self, b, out)

    def __copy__(self) -> Any:
        return self.copy("K")

    def __deepcopy__(self, memo: Any) -> Any:
        return like(self)

    def __reduce__(self) -> Any:
        return empty, (self.shape, self.dtype, self.strides)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.__reduce__()

    def __repr__(self) -> str:
        return f"MetaArray(shape={self.shape}, dtype={self.dtype})"

    __str__ = __repr__


def _method_of_reduction(method: Any, x: MetaArray, axis: Any = None, *args: Any, **kwargs: Any) -> Any:
    if args:
        return on_zeros(method, (x, axis, *args), kwargs)
    out, keepdims = kwargs.pop("out", None), kwargs.pop("keepdims", False)
    if not isinstance(kwargs.get("where", True), bool):
        kwargs["where"] = True
    return _finished(_reduced(method, x, axis, keepdims, kwargs), out)


def _method_of_same_shape(method: Any, x: MetaArray, *args: Any, **kwargs: Any) -> Any:
    out = kwargs.pop("out", None)
    result = method(_corner(x), *[_corner(each) for each in args], **kwargs)
    if result.ndim != x.ndim:
        return on_zeros(method, (x, *args), kwargs)
    return _finished(like(result, x.shape), out)


def _method_on_zeros(method: Any, *args: Any, **kwargs: Any) -> Any:
    return on_zeros(method, args, kwargs)


def _method(name: str, rule: Callable[..., Any]) -> Any:
    """Return a method of NumPy's arrays, by the rule of its family."""
    method = getattr(np.ndarray, name)

    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        return rule(method, *args, **kwargs)

    return call


for _rule, _names in (
    (_method_of_reduction, "sum prod max min any all mean var std argmax argmin"),
    (_method_of_same_shape, "copy cumsum cumprod argsort round conj conjugate"),
    (_method_on_zeros, "clip take repeat trace choose compress searchsorted argpartition diagonal"),
):
    for _name in _names.split():
        setattr(MetaArray, _name, _method(_name, _rule))


def _astype(
    self: MetaArray, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True
) -> Any:
    """Return an array of another dtype."""
    if not copy and self.dtype == dtype:
        return self
    return like(_corner(self).astype(dtype, order, casting), self.shape)


MetaArray.astype = _astype  # type: ignore[method-assign, assignment]
