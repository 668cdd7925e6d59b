"""The handles of hooks."""

from __future__ import annotations

import itertools
import weakref
from collections import OrderedDict
from typing import Any

from tinytorch.core.graph import Hook, Node, hooks_of_leaf
from tinytorch.core.tensor import Tensor

__all__ = ["RemovableHandle", "add_hook", "keep_tensor_hooks"]


class RemovableHandle:
    """The handle of a registered hook: `remove()` removes the hook. Also a context manager.

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> with x.register_hook(lambda g: g * 10):
        ...     (x * 2).sum().backward()
        >>> x.grad
        tensor([20., 20.])
    """

    _ids = itertools.count()

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None) -> None:
        self.id = next(RemovableHandle._ids)
        self._dicts = [weakref.ref(hooks_dict)]
        extras = extra_dict if isinstance(extra_dict, list) else [extra_dict]
        self._dicts += [weakref.ref(extra) for extra in extras if extra is not None]

    @property
    def hooks_dict_ref(self) -> Any:
        """A weak reference to the dictionary that the hook is in."""
        return self._dicts[0]

    def remove(self) -> None:
        """Remove the hook; a second call does nothing."""
        for reference in self._dicts:
            hooks = reference()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __getstate__(self) -> Any:
        hooks, *others = [reference() for reference in self._dicts]
        return hooks, self.id, tuple(others)

    def __setstate__(self, state: Any) -> None:
        # A handle that is copied or unpickled together with the dictionaries is a handle of the copies.
        hooks, self.id, *others = state
        dicts = hooks if isinstance(hooks, list) else [hooks]  # (former pickles have a list of all)
        dicts += (others and others[0]) or ()
        self._dicts = [weakref.ref(OrderedDict() if hooks is None else hooks) for hooks in dicts]
        RemovableHandle._ids = itertools.count(max(next(RemovableHandle._ids), self.id + 1))

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


def add_hook(hooks: OrderedDict[int, Hook], fn: Hook) -> RemovableHandle:
    """Add a hook to a dictionary of hooks and return its handle."""
    handle = RemovableHandle(hooks)
    hooks[handle.id] = fn
    return handle


def keep_tensor_hooks(tensor: Tensor, node: Node, number: int) -> None:
    """Let a result that becomes a leaf (`detach_`) keep its tensor hooks, which its former node shares."""
    hooks = None if node.hooks is None else node.hooks.tensor.get(number)
    if tensor._hooks is not None:
        tensor._hooks.tensor.clear()  # hooks from when it was a leaf before
    if hooks:
        hooks_of_leaf(tensor).tensor[0] = hooks
