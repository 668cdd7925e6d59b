"""`Tensor`: an array, and its place in the graph (floor 2). No mathematics: `methods.py` binds the ops."""

from __future__ import annotations

import copy
import warnings
import weakref
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from tinytorch.core import dtypes, graph
from tinytorch.core.device import cpu, device
from tinytorch.core.mode import local
from tinytorch.core.view import USUAL, needs_grad, refresh

if TYPE_CHECKING:
    from tinytorch.core.view import View

__all__ = ["Size", "Tensor", "is_inference", "is_tensor"]


class Size(tuple[int, ...]):
    """The shape of a tensor: a tuple of ints that prints as PyTorch's and counts elements.

    Example:
        >>> import tinytorch as torch
        >>> torch.zeros(2, 3).shape, torch.zeros(2, 3).shape.numel()
        (torch.Size([2, 3]), 6)
    """

    __module__ = "tinytorch"

    __slots__ = ()

    def numel(self) -> int:
        """Return the number of elements that a tensor of this shape has."""
        count = 1
        for length in self:
            count *= length
        return count

    def __getitem__(self, key: Any) -> Any:
        item = tuple.__getitem__(self, key)
        return Size(item) if isinstance(key, slice) else item

    def __add__(self, other: Any) -> Size:
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


class Tensor:
    """A multi-dimensional array of one dtype that can take part in automatic differentiation.

    Make one with `tensor`, `zeros`, `randn` …; `Tensor(2, 3)` and `Tensor([1.0])` are PyTorch's legacy constructor.

    Attributes (each as in PyTorch): `shape`, `dtype`, `device`, `requires_grad`, `grad`, `grad_fn`, `is_leaf`.

    Example:
        >>> import tinytorch as torch
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> (x * x).sum().backward()
        >>> x.grad
        tensor([2., 4.])
    """

    # _array        the elements; perhaps a NumPy view of other tensors' memory
    # _cell         [version]: a list of one number, shared by all tensors on the same memory, counted up by every
    #               write in place; None for inference tensors. (A list, since it is the cheapest object there is.)
    # _requires_grad, _edge   leaf: (bool, None); result of recorded ops: (True, (node, output number))
    # _grad         the accumulated gradient
    # _view         a `View`: of which base this is a view, and how; None for others
    # _hooks        a leaf's `Hooks`, or None
    # _accumulator  weak reference to the leaf's AccumulateGrad, or None
    __slots__ = (
        "__dict__",
        "__weakref__",
        "_accumulator",
        "_array",
        "_cell",
        "_edge",
        "_grad",
        "_hooks",
        "_requires_grad",
        "_view",
    )

    _array: Any
    _cell: list[int] | None
    _requires_grad: bool
    _edge: graph.Edge | None
    _grad: Tensor | None
    _view: View | None
    _hooks: graph.Hooks | None
    _accumulator: Any

    __module__ = "tinytorch"  # where users find it
    __array_priority__ = 1000  # `ndarray * tensor` is Tensor's to answer

    is_cuda = is_sparse = is_quantized = is_meta = is_mps = is_xpu = is_mkldnn = is_nested = False
    is_cpu = True
    layout = "torch.strided"
    names: Any = None

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Make a tensor PyTorch's legacy way: from sizes (memory as it comes), from data, or from another tensor."""
        return legacy_new(cls, args, kwargs)

    # What it is -----------------------------------------------------------------------------------

    @property
    def shape(self) -> Size:
        """The length of each dimension."""
        return Size(self._array.shape)

    @property
    def dtype(self) -> dtypes.dtype:
        """The element type."""
        return dtypes.from_numpy_dtype(self._array.dtype)

    @property
    def device(self) -> device:
        """Where the elements live."""
        return cpu

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        ndim: int = self._array.ndim
        return ndim

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        size: int = self._array.itemsize
        return size

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        size: int = self._array.size * self._array.itemsize
        return size

    # Its place in the graph -----------------------------------------------------------------------

    def _current(self) -> Tensor:
        """Return self with `_edge` up to date: a view looks whether its memory was written to since."""
        if self._view is not None:
            refresh(self)
        return self

    @property
    def requires_grad(self) -> bool:
        """Whether operations on this tensor are recorded; can be set on leaves of floating point."""
        view = self._view
        if view is None:
            return self._requires_grad
        if (
            view.kind == USUAL
        ):  # (others cannot follow a write, and say so where their edge is needed)
            refresh(self)
        return needs_grad(self)

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if not isinstance(value, (bool, np.bool_)):
            raise RuntimeError("requires_grad must be a bool")
        if self._edge is not None:
            hint = (
                " If you want to use a computed variable in a subgraph that doesn't require differentiation use "
                "var_no_grad = var.detach()."
            )
            raise RuntimeError(
                f"you can only change requires_grad flags of leaf variables.{'' if value else hint}"
            )
        if value and not self.dtype.is_floating_point:
            raise RuntimeError(
                "only Tensors of floating point and complex dtype can require gradients"
            )
        if value and self._cell is None and not local.state.inference:
            raise RuntimeError(
                "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed."
            )
        self._requires_grad = bool(value)
        view = self._view
        if view is not None:
            if value and not view.own:
                self._accumulator = None  # from now on it takes up its gradient
            view.own = bool(value)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Set `requires_grad` in place and return self.

        Example:
            >>> import tinytorch as torch
            >>> torch.zeros(2).requires_grad_()
            tensor([0., 0.], requires_grad=True)
        """
        if requires_grad and not self.dtype.is_floating_point:
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
        if self._edge is None or not requires_grad:
            self.requires_grad = requires_grad
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded operation made this tensor (all that do not require grad are leaves)."""
        return self._current()._edge is None

    @property
    def grad_fn(self) -> graph.Node | None:
        """The node that made this tensor, or None for a leaf."""
        edge = self._current()._edge
        return None if edge is None else edge[0].shown()  # type: ignore[no-any-return]

    @property
    def output_nr(self) -> int:
        """Which output of `grad_fn` this is."""
        return 0 if self._edge is None else self._edge[1]

    @property
    def grad(self) -> Tensor | None:
        """The gradient that `backward` accumulated, of the same shape; None before the first."""
        g = self._grad
        if g is None and self._edge is not None and not self.retains_grad:
            warnings.warn(
                "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute "
                "won't be populated during autograd.backward(). If you indeed want the .grad field to be populated "
                "for a non-leaf Tensor, use .retain_grad() on the non-leaf Tensor. If you access the non-leaf "
                "Tensor by mistake, make sure you access the leaf Tensor instead. See "
                "github.com/pytorch/pytorch/pull/30531 for more informations.",
                UserWarning,
                stacklevel=2,
            )
        return g

    @grad.setter
    def grad(self, g: Tensor | None) -> None:
        if g is not None:
            if not isinstance(g, Tensor):
                raise TypeError(
                    f"assigned grad expected to be a Tensor or None but got grad of type {type(g).__name__}"
                )
            if g is self:
                raise RuntimeError("can't assign Variable as its own grad")
            if g._array.dtype != self._array.dtype:
                raise RuntimeError(
                    f"attempting to assign a gradient with dtype '{g.dtype}' to a tensor with dtype '{self.dtype}'. "
                    "Please ensure that the gradient and the tensor have the same dtype"
                )
            if g._array.shape != self._array.shape:
                raise RuntimeError(
                    f"attempting to assign a gradient of size '{list(g._array.shape)}' to a tensor of size "
                    f"'{list(self._array.shape)}'. Please ensure that the gradient and the tensor are the same size"
                )
        self._grad = g

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """Return the type's name ("torch.FloatTensor"), or with `dtype` the tensor converted to it.

        Example:
            >>> import tinytorch as torch
            >>> torch.zeros(1).type(), torch.zeros(1).type(torch.int64)
            ('torch.FloatTensor', tensor([0]))
        """
        if dtype is None:
            return f"torch.{self.dtype.tensor_name}Tensor"
        return self.to(named_type(dtype))

    @property
    def retains_grad(self) -> bool:
        """Whether this non-leaf keeps its `.grad` (`retain_grad` was called)."""
        if self._edge is None:
            return False
        node, number = self._edge
        return node.hooks is not None and number in node.hooks.retain

    def retain_grad(self) -> None:
        """Keep `.grad` of this non-leaf in `backward`; nothing happens for leaves, which keep it anyway.

        Raises:
            RuntimeError: the tensor does not require grad.

        Example:
            >>> import tinytorch as torch
            >>> x = torch.ones(2, requires_grad=True)
            >>> y = x * 3
            >>> y.retain_grad()
            >>> y.sum().backward()
            >>> y.grad
            tensor([1., 1.])
        """
        if not needs_grad(self):
            raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
        if self._edge is not None:
            node, number = self._current()._edge  # type: ignore[misc]
            node._own_hooks().retain[number] = weakref.ref(self)

    def register_hook(self, hook: Any) -> graph.RemovableHandle:
        """Run `hook(grad)` whenever this tensor's gradient is computed; what it returns replaces the gradient.

        Returns:
            A handle whose `remove()` takes the hook away.

        Raises:
            RuntimeError: the tensor does not require grad.

        Example:
            >>> import tinytorch as torch
            >>> x = torch.ones(2, requires_grad=True)
            >>> handle = x.register_hook(lambda g: g * 2)
            >>> x.sum().backward()
            >>> x.grad
            tensor([2., 2.])
        """
        if not self.requires_grad:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        hooks, number = self._place_of_hooks()
        return graph.add_hook(hooks.tensor.setdefault(number, graph.OrderedDict()), hook)

    def register_post_accumulate_grad_hook(self, hook: Any) -> graph.RemovableHandle:
        """Run `hook(tensor)` after `backward` has brought `.grad` of this leaf up to date.

        Raises:
            RuntimeError: the tensor does not require grad, or is no leaf.

        Example:
            >>> import tinytorch as torch
            >>> x = torch.ones(2, requires_grad=True)
            >>> handle = x.register_post_accumulate_grad_hook(lambda p: print("grad of", p.shape))
            >>> x.sum().backward()
            grad of torch.Size([2])
        """
        if not self.requires_grad:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if not self.is_leaf:
            raise RuntimeError(
                "post accumulate grad hooks cannot be registered on non-leaf tensors"
            )
        return graph.add_hook(self._place_of_hooks()[0].accumulated, hook)

    def _place_of_hooks(self) -> tuple[graph.Hooks, int]:
        edge = self._current()._edge
        if edge is not None:
            return edge[0]._own_hooks(), edge[1]
        return graph.hooks_of_leaf(self), 0

    # Memory ---------------------------------------------------------------------------------------

    @property
    def _version(self) -> int:
        """How often this memory was written to in place."""
        if self._cell is None:
            raise RuntimeError("Inference tensors do not track version counter.")
        return self._cell[0]

    def _bump(self) -> None:
        """Count a write to `_array` that went past the ops (optimizers, random fills)."""
        if self._cell is not None:
            self._cell[0] += 1

    @property
    def _base(self) -> Tensor | None:
        return None if self._view is None else self._view.base

    def _is_view(self) -> bool:
        return self._view is not None

    def is_inference(self) -> bool:
        """Return whether this tensor was made in `inference_mode` (and so can never be part of a graph)."""
        return self._cell is None

    def detach(self) -> Tensor:
        """Return a tensor on the same memory that does not require grad; writes to either show in both.

        Example:
            >>> import tinytorch as torch
            >>> x = torch.ones(2, requires_grad=True)
            >>> x.detach()
            tensor([1., 1.])
        """
        made = self.data
        made._cell = self._cell
        return made

    def detach_(self) -> Tensor:
        """Cut this tensor off from what made it: it becomes a leaf that does not require grad.

        Raises:
            RuntimeError: it is a view, whose base would not know.
        """
        if local.state.inference:
            return self  # as PyTorch's, which is not looked at there
        if self._view is not None:
            raise RuntimeError(
                "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) "
                "for training, and gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and "
                "hence detach_() cannot be called on these gradients. To fix this error, please refer to the "
                "Optimizer.zero_grad() function in torch/optim/optimizer.py as the solution."
            )
        if self._edge is not None:
            graph.keep_tensor_hooks(self, *self._edge)
        self._edge, self._requires_grad = None, False
        for mode in local.state.modes or ():
            mode.forget(self)
        return self

    @property
    def data(self) -> Tensor:
        """The same memory as a tensor of its own, unknown to autograd; assigning swaps the memory.

        Prefer `detach()`, which notices writes that would make gradients wrong.
        """
        # (Tangents belong to arrays: where there may be any, the new tensor gets an array of its own.)
        array = self._array
        made: Tensor = wrap(array if local.state.modes is None else array.view())
        made._cell = None if self._cell is None else [0]
        return made

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
        if self._requires_grad and not value.dtype.is_floating_point:
            raise RuntimeError(
                "data set to a tensor that requires gradients must be floating point or complex dtype"
            )
        self._array = value._array

    @data.deleter
    def data(self) -> None:
        raise RuntimeError("Deleting tensor data is not allowed. Delete tensor instead!")

    def numpy(self, *, force: bool = False) -> Any:
        """Return the elements as a NumPy array on the same memory.

        Args:
            force: the same as `detach().cpu().numpy()`.

        Raises:
            RuntimeError: the tensor requires grad, and operations are recorded (use `detach()` first).

        Example:
            >>> import tinytorch as torch
            >>> torch.arange(3).numpy()
            array([0, 1, 2])
        """
        if self.requires_grad and not force and local.state.grad:
            raise RuntimeError(
                "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
            )
        return self._array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        array = self.numpy()
        if copy:
            return np.array(array, dtype=dtype)
        return array if dtype is None else array.astype(dtype, copy=False)

    # As Python's values ---------------------------------------------------------------------------

    def item(self) -> Any:
        """Return the only element as a Python number.

        Raises:
            RuntimeError: there is more than one element, or none.

        Example:
            >>> import tinytorch as torch
            >>> torch.tensor([2.5]).item()
            2.5
        """
        if self._array.size != 1:
            raise RuntimeError(
                f"a Tensor with {self._array.size} elements cannot be converted to Scalar"
            )
        return self._array.item()

    def tolist(self) -> Any:
        """Return the elements as nested lists of Python numbers; a number for a 0-d tensor."""
        return self._array.tolist()

    def __len__(self) -> int:
        if self._array.ndim == 0:
            raise TypeError("len() of a 0-d tensor")
        length: int = self._array.shape[0]
        return length

    def __bool__(self) -> bool:
        if self._array.size != 1:
            what = "no values" if self._array.size == 0 else "more than one value"
            raise RuntimeError(f"Boolean value of Tensor with {what} is ambiguous")
        return bool(self._array.item())

    def __float__(self) -> float:
        self._warn_of_a_scalar()
        return float(self._only())

    def __int__(self) -> int:
        return int(self._only())

    def __complex__(self) -> complex:
        self._warn_of_a_scalar()
        return complex(self._only())

    def _only(self) -> Any:
        if self._array.size != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        return self.item()

    def _warn_of_a_scalar(self) -> None:
        if self.requires_grad:
            warnings.warn(
                "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\n"
                "Consider using tensor.detach() first.",
                UserWarning,
                stacklevel=3,
            )

    def __index__(self) -> int:
        if self._array.size != 1 or self._array.dtype.kind not in "iub":
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self._array.item())

    def __hash__(self) -> int:
        return id(self)

    def __iter__(self) -> Iterator[Tensor]:
        if self._array.ndim == 0:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    def __reversed__(self) -> Tensor:
        flipped: Tensor = self.flip(0) if self._array.ndim else self
        return flipped

    def __format__(self, spec: str) -> str:
        if self._array.ndim == 0 and type(self) is Tensor:
            return self.item().__format__(spec)
        return object.__format__(self, spec)

    # Copies and pickles ---------------------------------------------------------------------------

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the "
                "moment.  If you were attempting to deepcopy a module, this may be because of a torch.nn.utils."
                "weight_norm usage, see https://github.com/pytorch/pytorch/pull/103001"
            )
        if id(self) in memo:
            found: Tensor = memo[id(self)]
            return found
        made = wrap(_copied(self._array, memo), type(self))
        memo[id(self)] = made
        made._requires_grad = self._requires_grad
        made.__dict__.update(copy.deepcopy(self.__dict__, memo))
        if self._grad is not None:
            made._grad = copy.deepcopy(self._grad, memo)
        return made

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        # A result comes back as a leaf: a pickle holds no graph.
        return (_unpickle, (type(self), self._array, self.requires_grad, self.__dict__))

    def __dir__(self) -> Iterable[str]:
        return sorted(set(object.__dir__(self)) - {"__cuda_array_interface__"})  # as PyTorch's

    if TYPE_CHECKING:  # methods.py binds the ops; `_tensor.pyi` lists them

        def __getattr__(self, name: str) -> Any: ...


def _copied(array: Any, memo: dict[int, Any]) -> Any:
    """Return a deep copy of an array; copies of what shares memory share it, too."""
    whole = array
    while type(getattr(whole, "base", None)) is np.ndarray:
        whole = whole.base
    if whole is array and id(whole) not in memo:  # (what shares it may come)
        memo[id(whole)] = copied = array.copy("K")
        return copied
    memory = copy.deepcopy(whole, memo)
    if memory.strides != whole.strides or not memory.flags.forc:
        return array.copy("K")
    offset = array.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    return np.ndarray(array.shape, array.dtype, memory, offset, array.strides)


def wrap(array: Any, cls: type[Tensor] = Tensor) -> Any:
    """Return `array` as a tensor on the same memory, a leaf that does not require grad."""
    made = object.__new__(cls)
    made._array = array
    made._cell = None if local.state.inference else [0]
    made._requires_grad = False
    made._edge = made._grad = made._view = made._hooks = made._accumulator = None
    return made


def _unpickle(
    cls: type[Tensor], array: Any, requires_grad: bool, attributes: dict[str, Any]
) -> Tensor:
    made: Tensor = wrap(array, cls)
    made._requires_grad = requires_grad
    made.__dict__.update(attributes)
    return made


def is_tensor(obj: Any, /) -> bool:
    """Return whether `obj` is a Tensor.

    Example:
        >>> import tinytorch as torch
        >>> torch.is_tensor(torch.zeros(1)), torch.is_tensor([0.0])
        (True, False)
    """
    return isinstance(obj, Tensor)


def is_inference(input: Tensor) -> bool:
    """Return whether a tensor was made in `inference_mode`: the function form of `Tensor.is_inference`."""
    return input.is_inference()


def named_type(name: Any) -> dtypes.dtype:
    """Return the dtype that `Tensor.type` is given: a dtype, "torch.FloatTensor", or a typed constructor."""
    if isinstance(name, str):
        for kind in dtypes.ALL:
            if name in (f"torch.{kind.tensor_name}Tensor", f"torch.{kind.name}"):
                return kind
        raise ValueError(f"invalid type: '{name}'")
    if name is Tensor:
        return dtypes.get_default_dtype()
    return dtypes.as_dtype(getattr(name, "dtype", name))


def legacy_new(
    cls: type[Tensor], args: Any, kwargs: Any, dtype: dtypes.dtype | None = None
) -> Tensor:
    """Make a tensor as `Tensor(...)` and `FloatTensor(...)` do: sizes, nested lists, or a tensor to alias."""
    kind = dtypes.get_default_dtype() if dtype is None else dtype
    for unknown in kwargs.keys() - {"device", "dtype"}:
        raise TypeError(f"new() got an unexpected keyword argument '{unknown}'")
    if not args:
        return _wrapped(np.empty(0, kind.numpy), cls)
    first = args[0]
    if len(args) == 1 and isinstance(first, Tensor):
        if first.dtype is not kind and dtype is not None:
            raise TypeError(f"expected {kind} (got {first.dtype})")
        made: Tensor = first.detach()
        return made if cls is Tensor else _wrapped(made._array, cls)
    if len(args) == 1 and isinstance(first, Size):
        args = tuple(first)
    elif len(args) == 1 and isinstance(first, (list, tuple, np.ndarray)):
        return _wrapped(np.array(_numbers(first), dtype=kind.numpy), cls)
    if all(isinstance(size, (int, np.integer)) and not isinstance(size, bool) for size in args):
        return _wrapped(np.empty(args, kind.numpy), cls)
    return _refuse_new(args)


def _numbers(value: Any) -> Any:
    """Return nested sequences with each tensor in them as an array."""
    if isinstance(value, (list, tuple)):
        return [_numbers(each) for each in value]
    return value._array if isinstance(value, Tensor) else value


def _wrapped(array: Any, cls: type[Tensor]) -> Tensor:
    made: Tensor = wrap(array, cls)
    return made


def _refuse_new(args: Any) -> NoReturn:
    kinds = ", ".join(type(each).__name__ for each in args)
    raise TypeError(f"new(): data must be a sequence or sizes must be ints (got {kinds})")
