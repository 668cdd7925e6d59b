"""What looks at calls and graphs: the names of arguments, arrays and their memory, nodes, the calls of modules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tinytorch.autograd.grad_mode import no_grad
from tinytorch.autograd.hooks import RemovableHandle
from tinytorch.autograd.profiler import _name as _profiled_name
from tinytorch.core.declaration import Op
from tinytorch.core.graph import Node
from tinytorch.core.layout import NoArray
from tinytorch.core.mode import DispatchMode
from tinytorch.nn.modules.module import Module

__all__ = [
    "ModuleTracer", "array_of", "call_once", "name_of_op", "named_arguments", "nodes_behind", "owner_of",
    "run_function",
]  # fmt: skip


def name_of_op(op: Any) -> str:
    """Return PyTorch's name of an op, or that of the `forward` of a `Function`."""
    if not isinstance(op, Op):
        return f"{op.__name__}.forward"
    name = _profiled_name(op, op.caller).removeprefix("aten::")
    return op.name.strip("_") if name.startswith("mkldnn") else name


def named_arguments(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call by name."""
    numbered = {f"argument {k}": value for k, value in enumerate(args)}
    if not isinstance(op, Op):
        return numbered
    try:
        values = op.bind(args, kwargs)
    except Exception:  # (an op whose form in place has other arguments)
        return numbered | kwargs
    names = ("input", "other")[: op.operands] if op.operands else op.arguments
    return {"input" if name == "x" else name: value for name, value in zip(names, values, strict=False)}


def array_of(x: Any) -> Any:
    """Return the array of a tensor; None of one that has none."""
    try:
        return x._array
    except (AttributeError, NoArray):
        return None


def owner_of(array: Any) -> Any:
    """Return the array that owns the memory of an array, as far as NumPy knows."""
    while isinstance(base := getattr(array, "base", None), np.ndarray):
        array = base
    return array


def run_function(mode: DispatchMode, function: Any, args: tuple[Any, ...]) -> Any:
    """Return the result of a call of a user's `Function`, as a mode gets it; the mode sees what its `forward` calls."""
    node, arguments = args

    def forward(*given: Any) -> Any:
        DispatchMode.__enter__(mode)
        try:
            return function.forward(*given)
        finally:
            DispatchMode.__exit__(mode)

    return function._recorded(node, arguments, forward, function.setup_context)


def nodes_behind(roots: Iterable[Node]) -> dict[Node, None]:
    """Return the nodes of the graph behind some nodes, and these."""
    found = dict.fromkeys(roots)
    stack = list(found)
    while stack:
        for edge in stack.pop().edges:
            if edge is not None and edge[0] not in found:
                found[edge[0]] = None
                stack.append(edge[0])
    return found


class ModuleTracer(DispatchMode):
    """A mode that also calls `_begin` and `_end` around each call of a module of a model.

    Attributes:
        paths: the paths of the modules.
    """

    def __init__(self, model: Module) -> None:
        self.paths = {module: path for path, module in model.named_modules()}
        self._handles: list[RemovableHandle] = []

    def __enter__(self) -> Any:
        for module in self.paths:
            self._handles.append(module.register_forward_pre_hook(self._begin, prepend=True, with_kwargs=True))
            self._handles.append(module.register_forward_hook(self._end, always_call=True, with_kwargs=True))
        super().__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        super().__exit__(*exc)
        for handle in self._handles:
            handle.remove()

    def _begin(self, module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        raise NotImplementedError

    def _end(self, module: Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> Any:
        raise NotImplementedError


def call_once(model: Module, mode: DispatchMode, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Call a model in evaluation mode and without gradients, while `mode` is on; restore its modes."""
    training = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with no_grad(), mode:
            model(*args, **kwargs)
    finally:
        for module, setting in training:
            module.training = setting
