"""What looks at calls and graphs: the names of arguments, arrays and their memory, nodes, the calls of modules."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from tinytorch.autograd.function import forward_seen
from tinytorch.autograd.grad_mode import no_grad
from tinytorch.autograd.hooks import RemovableHandle
from tinytorch.autograd.profiler import _name as _profiled_name
from tinytorch.autograd.profiler import tensors_in
from tinytorch.core.declaration import Op
from tinytorch.core.graph import Node
from tinytorch.core.layout import NoArray
from tinytorch.core.mode import DispatchMode
from tinytorch.core.tensor import Tensor
from tinytorch.inspect.places import Line, users_line
from tinytorch.nn.modules.module import Module

__all__ = [
    "Call", "Listener", "ModuleTracer", "array_of", "call_once", "name_of_op", "named_arguments", "nodes_behind",
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


class Call:
    """A call of an op, or of a user's `Function`, as a `Listener` gets it.

    Attributes:
        op, caller, args, kwargs: as in `DispatchMode.call`; `caller` may be replaced before it runs.
        out: what it has returned, after the call.
    """

    __slots__ = ("args", "caller", "kwargs", "op", "out")

    def __init__(self, op: Any, caller: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.op, self.caller, self.args, self.kwargs = op, caller, args, kwargs
        self.out: Any = None

    @property
    def name(self) -> str:
        """The op's own name (`name_of_op` returns PyTorch's), or that of the `Function`."""
        return str(getattr(self.op, "name", None) or self.op.__name__)

    @property
    def values(self) -> tuple[Any, ...]:
        """The arguments by the op's signature."""
        return self.op.bind(self.args, self.kwargs)

    @property
    def inputs(self) -> list[Tensor]:
        """The tensors among the arguments."""
        return list(tensors_in((self.args, self.kwargs)))

    @property
    def outputs(self) -> list[Tensor]:
        """The tensors in the result."""
        return list(tensors_in(self.out))

    @property
    def writes(self) -> bool:
        """Whether it writes into its first argument."""
        return bool(getattr(self.caller, "writes", False))

    @property
    def line(self) -> Line:
        """The user's line, while the call runs."""
        return users_line(sys._getframe(1))


class Listener(DispatchMode):
    """A mode that listens to the calls of ops; `follows` says whether also to those in a `Function` of the user's."""

    follows = False
    kind = Call

    def call(self, op: Any, caller: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of a call, around which `listen` runs."""
        if self.follows and isinstance(op, type):
            caller = forward_seen(self, op)._call
        call = self.kind(op, caller, args, kwargs)
        listening = self.listen(call)
        next(listening)
        call.out = call.caller(*args, **kwargs)
        next(listening, None)
        return call.out

    def listen(self, call: Any) -> Iterator[None]:
        """Run up to a `yield` before a call, and go on after it."""
        raise NotImplementedError


class ModuleTracer(Listener):
    """A listener that also calls `_begin` and `_end` around each call of a module of a model.

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
