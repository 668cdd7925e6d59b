"""`torch.utils.module_tracker`: which modules a program is in, forward or backward."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from tinytorch.autograd.graph import register_multi_grad_hook
from tinytorch.autograd.profiler import tensors_in
from tinytorch.autograd.variable import Variable
from tinytorch.core.mode import local
from tinytorch.nn.modules.module import Module, register_module_forward_hook, register_module_forward_pre_hook

__all__ = ["ModuleTracker"]


class ModuleTracker:
    """A context manager that knows the modules whose forward or backward runs.

    Attributes:
        parents: the names of these modules, such as "Net.layers.0", and "Global".

    Example:
        >>> from tinytorch.utils.module_tracker import ModuleTracker
        >>> layer = torch.nn.Linear(2, 2)
        >>> handle = layer.register_forward_pre_hook(lambda *_: print(sorted(tracker.parents)))
        >>> with ModuleTracker() as tracker:
        ...     y = torch.nn.Sequential(layer)(torch.ones(2))
        ['Global', 'Sequential', 'Sequential.0']
    """

    def __init__(self) -> None:
        self.parents = {"Global"}
        self._names: WeakKeyDictionary[Module, str] = WeakKeyDictionary()
        self._handles: list[Any] = []

    @property
    def is_bw(self) -> bool:
        """Whether a backward pass runs."""
        return local.state.callbacks is not None

    def __enter__(self) -> ModuleTracker:
        self._handles += [register_module_forward_pre_hook(self._begin), register_module_forward_hook(self._end)]
        return self

    def __exit__(self, *error: object) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def _begin(self, module: Module, args: Any) -> None:
        if module not in self._names:
            top = type(module).__name__
            for path, each in module.named_modules():
                self._names.setdefault(each, f"{top}.{path}".rstrip("."))
        self._watch(args, self.parents.discard, self._names[module])
        self.parents.add(self._names[module])

    def _end(self, module: Module, args: Any, output: Any) -> None:
        self.parents.discard(self._names[module])
        self._watch(output, self._begin_backward, self._names[module])

    def _begin_backward(self, name: str) -> None:
        if len(self.parents) == 1:
            Variable._execution_engine.queue_callback(lambda: self.parents.intersection_update({"Global"}))
        self.parents.add(name)

    def _watch(self, value: Any, call: Any, name: str) -> None:
        """Call `call(name)` when the gradients of the tensors in a value have been computed."""
        if tensors := [x for x in tensors_in(value) if x.requires_grad]:
            self._handles.append(register_multi_grad_hook(tensors, lambda gradients: call(name)))
