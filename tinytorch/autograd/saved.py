"""Hooks on the tensors that a graph saves for backward. Their public names are in `autograd.graph`.

Each context manager is a dispatch mode that, after a call, packs the saved tensors of the call's node. Source: "Hooks
for saved tensors" of PyTorch's autograd notes.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tinytorch.core.mode import DispatchMode, Event, PerThread, Stop, local, on

__all__ = ["allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks", "save_on_cpu", "saved_tensors_hooks"]


class _Disabled(PerThread):
    message: str | None = None


_disabled = _Disabled()


class saved_tensors_hooks(DispatchMode):
    """Inside, ops save the result of `pack_hook(tensor)` rather than the tensor; backward calls `unpack_hook` on it.

    If contexts are nested, the innermost applies. Both hooks run with recording off.

    Args:
        pack_hook: takes a tensor that an op saves, and returns any object.
        unpack_hook: takes that object, and returns a tensor of the same values.

    Raises:
        RuntimeError: inside `disable_saved_tensors_hooks`; or `pack_hook` writes to the tensor.

    Example:
        >>> x = torch.ones(3, requires_grad=True)
        >>> with torch.autograd.graph.saved_tensors_hooks(lambda t: t.numpy(force=True), torch.from_numpy):
        ...     y = (x * x).sum()
        >>> y.backward()
        >>> x.grad
        tensor([2., 2., 2.])
    """

    def __init__(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def __enter__(self) -> Any:
        if not (callable(self.pack_hook) and callable(self.unpack_hook)):
            raise TypeError("saved_tensors_hooks: both hooks must be callable")
        if _disabled.message is not None:
            raise RuntimeError(_disabled.message)
        return super().__enter__()

    def call(self, op: Any, caller: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of a call, having packed the saved tensors of its node."""
        state = local.state
        others = state.modes or ()
        # (`dispatch` restores the modes.)
        state.modes = tuple([m for m in others if not isinstance(m, saved_tensors_hooks)]) or None
        older = nodes_of(args)
        result = caller(*args, **kwargs)
        try:
            for node in nodes_of(result):
                if node not in older:  # (a write that is not recorded returns the output of an older node)
                    node.pack(self.pack_hook, self.unpack_hook)
        except Stop as stop:
            stop.result = result
            raise
        return result


def nodes_of(result: Any) -> set[Any]:
    """Return the nodes of the tensors of a result."""
    values = result if isinstance(result, (tuple, list)) else (result,)
    edges = [getattr(value, "_edge", None) for value in values]
    return {edge[0] for edge in edges if edge is not None}


@contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Inside, entering `saved_tensors_hooks` raises RuntimeError with this message; so does this context inside of it.

    Example:
        >>> with torch.autograd.graph.disable_saved_tensors_hooks("not here"):
        ...     with torch.autograd.graph.save_on_cpu():
        ...         pass
        Traceback (most recent call last):
        RuntimeError: not here
    """
    if any(isinstance(mode, saved_tensors_hooks) for mode in local.state.modes or ()):
        raise RuntimeError(error_message)
    before = _disabled.message
    _disabled.message = error_message
    try:
        yield
    finally:
        _disabled.message = before


class save_on_cpu(saved_tensors_hooks):
    """Keep saved tensors on the CPU until backward needs them. All tensors are on the CPU, so nothing changes.

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> with torch.autograd.graph.save_on_cpu():
        ...     y = (x * x).sum()
        >>> y.backward()
        >>> x.grad
        tensor([2., 2.])
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(lambda tensor: (tensor.device, tensor.cpu()), lambda item: item[1].to(item[0]))


class _Handle:
    """A saved tensor; once its memory is written to, the copy from before the write (`cloned`)."""

    __slots__ = ("__weakref__", "cloned", "tensor")

    def __init__(self, tensor: Any) -> None:
        self.tensor, self.cloned = tensor, False


class _AllowMutationOnSavedContext:
    """The tensors saved inside `allow_mutation_on_saved_tensors`."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        #: By id of a version counter, the tensors saved on that memory.
        self._saved: dict[int, weakref.WeakSet[_Handle]] = {}
        self._known: weakref.WeakSet[_Handle] = weakref.WeakSet()

    @property
    def original(self) -> dict[Any, Any]:
        """The saved tensors whose memory was not written to since."""
        return {handle: handle.tensor for handle in self._known if not handle.cloned}

    @property
    def cloned(self) -> dict[Any, Any]:
        """The copies of the saved tensors whose memory was written to."""
        return {handle: handle.tensor for handle in self._known if handle.cloned}


class allow_mutation_on_saved_tensors(saved_tensors_hooks):
    """Inside, tensors saved for backward may be written to in place: they are copied before the write.

    Forward and backward must both run inside. The object that `with` binds has `clear()`, which forgets all saved
    tensors, and `original` and `cloned`, the saved tensors not yet or already written to.

    Raises:
        AssertionError: (in backward) the graph was recorded in a context that has ended, or was cleared.

    Example:
        >>> x = torch.zeros(2, requires_grad=True)
        >>> with torch.autograd.graph.allow_mutation_on_saved_tensors():
        ...     y = x.clone()
        ...     z = y.sin()
        ...     _ = y.add_(5)
        ...     z.sum().backward()
        >>> x.grad
        tensor([1., 1.])
    """

    def __init__(self) -> None:
        super().__init__(self._pack, self._unpack)
        self._context = _AllowMutationOnSavedContext()

    def __enter__(self) -> Any:
        if any(isinstance(mode, type(self)) for mode in local.state.modes or ()):
            raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
        super().__enter__()
        return self._context

    def __exit__(self, *exc: object) -> None:
        super().__exit__(*exc)
        self._context.clear()

    def call(self, op: Any, caller: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Copy the saved tensors that a write in place would change, then pack as all saved-tensor hooks do."""
        if getattr(caller, "writes", False):
            self.before_write(args[0])
        return super().call(op, caller, args, kwargs)

    @on(Event.WRITES)
    def before_write(self, x: Any) -> None:
        """Copy the tensors saved on the memory of a tensor that will be written to."""
        for handle in self._context._saved.pop(id(x._cell), ()):
            handle.tensor, handle.cloned = handle.tensor.clone(), True

    def _pack(self, tensor: Any) -> _Handle:
        handle = _Handle(tensor.detach())
        self._context._saved.setdefault(id(tensor._cell), weakref.WeakSet()).add(handle)
        self._context._known.add(handle)
        return handle

    def _unpack(self, handle: _Handle) -> Any:
        if handle not in self._context._known:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in which the graph was "
                "originally recorded."
            )
        return handle.tensor
