"""`Tensor`: an array, and its edge in the graph. `members.txt` says which modules declare its other members."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from tinytorch.core import graph
from tinytorch.core.device import cpu, device, meta
from tinytorch.core.layout import strided
from tinytorch.core.mode import Event, elements, local, plain, runs, short, traced_as
from tinytorch.core.supplied import complete, saving
from tinytorch.kernels import dtypes
from tinytorch.kernels.meta import MetaArray

if TYPE_CHECKING:
    from tinytorch.core.view import View

__all__ = ["Size", "Tensor", "is_tensor"]


class Size(tuple[int, ...]):
    """The shape of a tensor: a tuple of ints that prints as PyTorch's and counts elements.

    Example:
        >>> torch.zeros(2, 3).shape, torch.zeros(2, 3).shape.numel()
        (torch.Size([2, 3]), 6)
    """

    __module__ = "tinytorch"

    __slots__ = ()

    def __new__(cls, lengths: Any = (), /) -> Size:
        """Return the size of these lengths; tensors of one integer are lengths, too."""
        if type(lengths) is not Size and (type(lengths) is not tuple or any([type(n) is not int for n in lengths])):
            lengths = [_length(k, each) for k, each in enumerate(lengths)]
        return tuple.__new__(cls, lengths)

    def numel(self) -> int:
        """Return the number of elements that a tensor of this shape has."""
        count = 1
        for length in self:
            count *= length
        return count

    def __getitem__(self, key: Any) -> Any:
        item = tuple.__getitem__(self, key)
        return tuple.__new__(Size, item) if isinstance(key, slice) else item

    def __add__(self, other: Any) -> Size:
        if type(other) is Size:
            return tuple.__new__(Size, tuple.__add__(self, other))
        return Size(tuple.__add__(self, tuple(other)))

    def __radd__(self, other: Any) -> Size:
        return Size(tuple.__add__(tuple(other), self))

    def __mul__(self, count: Any) -> Size:
        return Size(tuple.__mul__(self, count))

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (Size, (tuple(self),))


def _length(k: int, length: Any) -> int:
    """Return an element of a Size as an integer, or raise PyTorch's error."""
    if isinstance(length, int) and not isinstance(length, bool):
        return length  # perhaps one of a class that follows what is computed of a size
    try:
        return int(operator.index(length))
    except (TypeError, ValueError):
        raise TypeError(f"torch.Size() takes an iterable of 'int' (item {k} is '{type(length).__name__}')") from None


@complete
class Tensor:
    """A multi-dimensional array of one dtype that can take part in automatic differentiation.

    Make one with `tensor`, `zeros`, `randn` …; `Tensor(2, 3)` and `Tensor([1.0])` are PyTorch's legacy constructor.

    Attributes (each as in PyTorch): `shape`, `dtype`, `device`, `requires_grad`, `grad`, `grad_fn`, `is_leaf`.

    Example:
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> (x * x).sum().backward()
        >>> x.grad
        tensor([2., 4.])
    """

    # _array        the elements; perhaps a NumPy view of other tensors' memory
    # _cell         [version, run]: a list shared by all tensors on the same memory; None for inference tensors. Every
    #               in-place write increments the version; `run` is the last `Run` that had begun when the memory was
    #               new. (A list is the cheapest mutable object.)
    #               Once `.data` has been read there is a third number: how often.
    # _requires_grad, _edge   leaf: (bool, None); result of recorded ops: (True, (node, output number))
    # _grad         the accumulated gradient
    # _view         for a view its `View`: the base and the location in its memory; None for other tensors
    # _hooks        a leaf's `Hooks`, or None
    # _accumulator  weak reference to the leaf's AccumulateGrad, or None
    # Another name of `_array`, which lazy conjugates and negatives answer differently (`ops/bits.py`):
    # _memory       the memory, for what tells of addresses and strides and reads no elements
    __slots__ = (
        "__dict__", "__weakref__", "_accumulator", "_array", "_cell", "_edge", "_grad", "_hooks", "_requires_grad",
        "_view",
    )  # fmt: skip

    _array: Any
    _memory: Any
    _cell: list[int] | None
    _requires_grad: bool
    _edge: graph.Edge | None
    _grad: Tensor | None
    _view: View | None
    _hooks: graph.Hooks | None
    _accumulator: Any

    __module__ = "tinytorch"  # where users find it
    __array_priority__ = 1000  # `ndarray * tensor` is Tensor's to answer

    is_cuda = is_sparse = is_quantized = is_mps = is_xpu = is_mkldnn = is_nested = property(lambda _: False)
    is_cpu = property(lambda self: type(self._array) is not MetaArray)
    is_meta = property(lambda self: type(self._array) is MetaArray)
    layout = property(lambda _: strided)
    names: Any = None
    #: How a class of tensors that have no ordinary array computes a call in its own way: a function of the name of the
    #: op or of the public function, of the function of tensors, and of the arguments; it returns NotImplemented for
    #: calls that are like those of other tensors.
    _receives: Any = None

    @property
    @short("shape")
    def shape(self) -> Size:
        """The length of each dimension."""
        return tuple.__new__(Size, self._array.shape)

    @property
    @short("dtype")
    def dtype(self) -> dtypes.dtype:
        """The element type."""
        return dtypes.from_numpy_dtype(self._array.dtype)

    @property
    @short("device", cpu)
    def device(self) -> device:
        """Where the elements live: on the CPU, or "meta" if there are none."""
        return meta if type(self._array) is MetaArray else cpu

    def _bump(self) -> None:
        """Count a write to `_array` that was not an op (optimizers, random fills)."""
        if self._cell is not None:
            self._cell[0] += 1

    def __hash__(self) -> int:
        return id(self)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        # The result of an op is unpickled as a leaf: a pickle holds no graph.
        return saving.reduced(self)


plain.add(Tensor)

Tensor._memory = vars(Tensor)["_array"]


def wrap(array: Any, cls: type[Tensor] = Tensor, shares: bool = False, state: Any = None) -> Any:
    """Return `array` as a tensor on the same memory, a leaf that does not require grad: all slots are set here.

    Args:
        array, cls: the array, and the class of the tensor.
        shares: whether the caller sets the version counter: that of the memory's other tensors.
        state: the thread's state, if the caller has it.
    """
    if state is None:
        state = local.state
    out = _new(cls)
    out._array = array
    out._cell = None if shares or state.inference else [0, runs.begun]
    out._requires_grad = False
    out._edge = out._grad = out._view = out._hooks = out._accumulator = None
    return out


_new: Any = object.__new__


def received(name: str, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what the class of an argument makes of a call (see `Tensor._receives`), or NotImplemented."""
    for each in elements((*args, *kwargs.values())):
        if isinstance(each, Tensor) and each._receives is not None:
            made = each._receives(name, function, args, kwargs)
            if made is not NotImplemented:
                return made
    return NotImplemented


def constant(array: Any) -> Any:
    """Return `array`, whose elements depend only on shapes and dtypes, as a tensor."""
    made = wrap(array)
    for mode in local.state.modes or ():
        mode.event(Event.KNOWN, x=made)
    return made


def _rebuild_from_type_v2(function: Any, cls: Any, arguments: Any, state: Any) -> Any:
    """Return what a function of a pickle rebuilds, as a tensor of a class and with its attributes."""
    tensor = function(*arguments)
    if type(tensor) is not cls:
        tensor = tensor.as_subclass(cls)
    if hasattr(tensor, "__setstate__"):
        tensor.__setstate__(state)
        return tensor
    state, slots = state if isinstance(state, tuple) else (state, None)
    tensor.__dict__.update(state or {})
    for name, value in (slots or {}).items():
        setattr(tensor, name, value)
    return tensor


_rebuild_from_type_v2.__module__ = "tinytorch._tensor"  # its public place


def _unpickle(cls: type[Tensor], array: Any, requires_grad: bool, attributes: dict[str, Any]) -> Tensor:
    """Return a tensor on an array: what messages between processes say, and the pickles of former versions."""
    made: Tensor = wrap(array, cls)
    made._requires_grad = requires_grad
    made.__dict__.update(attributes)
    return made


@traced_as("pure")
def is_tensor(obj: Any, /) -> bool:
    """Return whether `obj` is a Tensor.

    Example:
        >>> torch.is_tensor(torch.zeros(1)), torch.is_tensor([0.0])
        (True, False)
    """
    return isinstance(obj, Tensor)
