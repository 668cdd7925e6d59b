"""The saved values of a node under PyTorch's names (`_saved_self`, `_raw_saved_self`), and hooks on saved tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tinytorch.autograd.hooks import add_hook as add_hook
from tinytorch.autograd.pytorch_graph import always_shown_as, argument_shown, class_shown, saved_name
from tinytorch.autograd.pytorch_graph import inputs_shown as inputs_shown
from tinytorch.autograd.pytorch_graph import next_functions as next_functions
from tinytorch.autograd.pytorch_graph import node_name as node_name
from tinytorch.core.device import cpu, device
from tinytorch.core.graph import FREED, Node
from tinytorch.core.node import PACKED, PLAIN, SHAPE, TENSORS, OpNode
from tinytorch.core.op import Op
from tinytorch.core.tensor import wrap
from tinytorch.kernels import dtypes

__all__ = ["InputMetadata", "SavedTensor"]


def input_metadata(node: Node) -> tuple[InputMetadata, ...]:
    """Return the shape and dtype of each gradient that a node receives: one for each output."""
    shapes, kinds = (node.shape, node.dtype) if node.outputs > 1 else ((node.shape,), (node.dtype,))
    return tuple(
        [InputMetadata(list(shape), dtypes.from_numpy_dtype(kind)) for shape, kind in zip(shapes, kinds, strict=True)]
    )


def shown(node: OpNode) -> Any:
    """Return an op's node, whose class then has the members `_saved_*` (`__getattr__` would slow all attributes)."""
    cls: Any = class_shown(node)
    if "_saves" not in cls.__dict__:
        cls._saves = True
        for source, name in _names_of_saved(node.op).items():
            setattr(cls, f"_saved_{name}", property(functools.partial(_saved_value, name=name)))
            if source[0] in TENSORS:
                setattr(cls, f"_raw_saved_{name}", property(functools.partial(_raw_saved_value, name=name)))
        if always_shown_as(cls):
            cls.shown_as_it_is = True
    if cls is not type(node):
        node.__class__ = cls
    return node


def _saved_sources(node: OpNode) -> dict[str, tuple[tuple[int, Any], int | None]]:
    """Return, by PyTorch's name, the source of each value that the formulas need, and its index in `saved` or None."""
    sources = [source[1] if source[0] == PACKED else source for source in node.plan.sources]
    if (PLAIN, None) in sources:  # a view op's
        sources = [(SHAPE, 0), *[(PLAIN, i) for i in range(1, len(sources))]]
    by_name: dict[str, tuple[tuple[int, Any], int | None]] = {}
    for source, name in _names_of_saved(node.op).items():
        if source not in sources and (PLAIN, source[1]) in sources:
            source = (PLAIN, source[1])  # the argument was a number
        by_name[name] = source, sources.index(source) if source in sources else None
    return by_name


def _names_of_saved(op: Op) -> dict[tuple[int, Any], str]:
    """Return, by source (see `Plan`), PyTorch's names of the values that formulas need if all inputs are tensors."""
    tensors = dict.fromkeys(op.inputs, True)
    wanted = {op._source(want, tensors) for wants in op.wants.values() for want in wants}
    names = {source: saved_name(op, source) for source in wanted}
    return {source: name for source, name in names.items() if name is not None}


class InputMetadata(NamedTuple):
    """The shape and dtype of a gradient that a node receives."""

    shape: list[int]
    dtype: dtypes.dtype
    device: device = cpu
    is_nested_tensor: bool = False
    is_cpp_nested_tensor: bool = False


def _saved_value(node: OpNode, name: str) -> Any:
    """Return a saved value of a node: a tensor or a plain value."""
    (kind, position), k = _saved_sources(node)[name]
    if k is None:
        return None
    if node.saved is None:
        raise RuntimeError(FREED)
    item = node.saved[k]
    if kind in TENSORS:
        tensor = node._unpack(node.plan.sources[k], item, True)
        return tensor.detach() if name == "indices" else tensor
    if name == "other" and position in node.op.inputs:
        return wrap(np.asarray(item))
    return argument_shown(node.op, name, item)


def _raw_saved_value(node: OpNode, name: str) -> SavedTensor:
    return SavedTensor(node, _saved_sources(node)[name][1])


class SavedTensor:
    """A tensor that a node has saved, such as `grad_fn._raw_saved_self`; it takes hooks.

    Example:
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> y = x.pow(2)
        >>> y.grad_fn._raw_saved_self.register_hooks(lambda t: t.double(), lambda t: t.float())
        >>> y.sum().backward()
        >>> x.grad
        tensor([2., 4.])
    """

    def __init__(self, node: Any = None, index: int | None = None) -> None:
        if node is None:
            raise RuntimeError("Trying to create a SavedTensor object from Python is forbidden.")
        self._node, self._index = node, index

    @property
    def data(self) -> Any:
        """The saved object: the result of a pack hook, or the tensor."""
        item = self._node.saved[self._index]
        return item[0] if callable(item[1]) else self._node.saved_alone(self._index)

    @property
    def unpack_hook(self) -> Callable[[Any], Any] | None:
        """The hook that returns a tensor for `data`, or None."""
        item = self._node.saved[self._index]
        return item[1] if callable(item[1]) else None

    def register_hooks(self, pack_hook: Any = None, unpack_hook: Any = None) -> None:
        """Replace the saved tensor by `pack_hook(tensor)`; backward calls `unpack_hook` on that."""
        if not (callable(pack_hook) and callable(unpack_hook)):
            raise TypeError("register_hooks(): incompatible function arguments: pass two callables")
        node, k = self._node, self._index
        if k is not None and node.saved is None:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of the "
                "graph are freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need "
                "to backward through the graph a second time or if you need to access saved variables after calling "
                "backward."
            )
        if k is None or node.saved[k] is None:
            raise RuntimeError("Calling register_hooks on a saved tensor with value None is forbidden")
        if callable(node.saved[k][1]):
            raise RuntimeError(
                "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of "
                "hooks is allowed at a time."
            )
        node.pack_one(k, pack_hook, unpack_hook)
