"""Registration of a module's hooks, and the deprecated backward hooks on a node of the graph."""

from __future__ import annotations

import functools
import weakref
from collections import OrderedDict
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

from tinytorch.autograd.hooks import RemovableHandle
from tinytorch.autograd.pytorch_graph import InnerStep
from tinytorch.core.tensor import Tensor
from tinytorch.core.warning import warn

Hook = Callable[..., Any]
Part = TypeVar("Part", bound=type)

#: The `__module__` of the members of `Module` defined here, for users and pickles.
_HOME = "tinytorch.nn.modules.module"


def of_module(part: Part) -> Part:
    """Give the methods of `part`, a base of `Module`, names that show them as methods of `Module`."""
    for name, member in vars(part).items():
        if isinstance(member, FunctionType):
            member.__module__, member.__qualname__ = _HOME, f"Module.{name}"
    return part


class _WrappedHook:
    """A hook whose first argument is its module, which it references weakly, since the module references the hook."""

    __module__ = _HOME

    def __init__(self, hook: Hook, module: Any = None) -> None:
        self.hook = hook
        functools.update_wrapper(self, hook)
        self.with_module = module is not None
        self.module = weakref.ref(module) if module is not None else None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.module is None:
            return self.hook(*args, **kwargs)
        module = self.module()
        if module is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args, **kwargs)

    def __getstate__(self) -> dict[str, Any]:
        bound = {} if self.module is None else {"module": self.module()}
        return {"hook": self.hook, "with_module": self.with_module, **bound}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["hook"], state.get("module"))  # type: ignore[misc]


def _register(
    hooks: OrderedDict[int, Hook], hook: Hook, prepend: bool = False, **marks: tuple[OrderedDict[int, bool], bool]
) -> RemovableHandle:
    """Register `hook` and return its handle.

    A mark is a table of hooks with a property, and whether `hook` has the property.
    """
    handle = RemovableHandle(hooks, extra_dict=[table for table, _ in marks.values()])
    hooks[handle.id] = hook
    for table, applies in marks.values():
        if applies:
            table[handle.id] = True
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


@of_module
class Hooking:
    """The part of `Module` that registers hooks."""

    _is_full_backward_hook: bool | None
    _forward_hooks: OrderedDict[int, Hook]
    _forward_hooks_with_kwargs: OrderedDict[int, bool]
    _forward_hooks_always_called: OrderedDict[int, bool]
    _forward_pre_hooks: OrderedDict[int, Hook]
    _forward_pre_hooks_with_kwargs: OrderedDict[int, bool]
    _backward_hooks: OrderedDict[int, Hook]
    _backward_pre_hooks: OrderedDict[int, Hook]

    def register_forward_pre_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Run `hook(module, args)` before `forward`; its result, unless None, replaces the arguments.

        With `with_kwargs` it is called as `hook(module, args, kwargs)` and may return `(args, kwargs)`; `prepend` runs
        it before the hooks registered earlier. The result is a handle, whose `remove()` removes the hook.

        Example:
            >>> layer = torch.nn.Identity()
            >>> handle = layer.register_forward_pre_hook(lambda module, args: args[0] + 1)
            >>> layer(torch.zeros(2))
            tensor([1., 1.])
        """
        return _register(
            self._forward_pre_hooks, hook, prepend, with_kwargs=(self._forward_pre_hooks_with_kwargs, with_kwargs)
        )

    def register_forward_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Run `hook(module, args, output)` after `forward`, and return its handle; a result replaces the output.

        With `with_kwargs` it is called as `hook(module, args, kwargs, output)`, with `always_call` also if the call
        raises.

        Example:
            >>> seen = []
            >>> layer = torch.nn.Linear(3, 2)
            >>> handle = layer.register_forward_hook(lambda m, args, out: seen.append(out.shape))
            >>> y = layer(torch.ones(5, 3))
            >>> seen
            [torch.Size([5, 2])]
        """
        return _register(
            self._forward_hooks,
            hook,
            prepend,
            with_kwargs=(self._forward_hooks_with_kwargs, with_kwargs),
            always_call=(self._forward_hooks_always_called, always_call),
        )

    def register_full_backward_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Run `hook(module, grad_output)` when the gradients of the outputs are computed, and return its handle.

        A tuple that it returns replaces `grad_output`.

        Example:
            >>> layer = torch.nn.Linear(1, 1)
            >>> handle = layer.register_full_backward_pre_hook(lambda module, grads: (2 * grads[0],))
            >>> layer(torch.ones(1, requires_grad=True)).backward()
            >>> layer.bias.grad
            tensor([2.])
        """
        return _register(self._backward_pre_hooks, hook, prepend)

    def register_full_backward_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Run `hook(module, grad_input, grad_output)` when the gradients of the inputs are computed; return its handle.

        Both are tuples with an entry per positional argument and per output, None where there is no gradient.

        A tuple that it returns replaces `grad_input`.

        Example:
            >>> layer = torch.nn.ReLU()
            >>> handle = layer.register_full_backward_hook(lambda module, gi, go: print(gi, go))
            >>> layer(torch.tensor([-1.0, 1.0], requires_grad=True)).sum().backward()
            (tensor([0., 1.]),) (tensor([1., 1.]),)
        """
        self._set_backward_hook_kind("full")
        return _register(self._backward_hooks, hook, prepend)

    def register_backward_hook(self, hook: Hook) -> RemovableHandle:
        """Run `hook(module, grad_input, grad_output)` after the last operation (deprecated).

        `grad_input` holds the gradients of the inputs of this one operation; a full backward hook gets those of the
        module.
        """
        self._set_backward_hook_kind("regular")
        return _register(self._backward_hooks, hook)

    def _set_backward_hook_kind(self, kind: str) -> None:
        if self._is_full_backward_hook is (kind != "full"):
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single "
                "Module. Please use only one of them."
            )
        self._is_full_backward_hook = kind == "full"

    def _register_on_node(self, hooks: list[Hook], args: tuple[Any, ...], result: Any) -> None:
        """Register the hooks of `register_backward_hook` on the node of the first tensor in the result."""
        first = result
        while not isinstance(first, Tensor):
            if isinstance(first, dict):
                first = next(v for v in first.values() if isinstance(v, Tensor))
            else:
                first = first[0]
        node = first.grad_fn
        if node is None:
            return
        adapt = _transposing_weight_gradients(node)
        for hook in hooks:
            wrapped = _WrappedHook(hook, self)
            node.register_hook(adapt(wrapped) if adapt else wrapped)
        warning = _incomplete_hook_warning(args, result, node)
        if warning:
            warn(warning, FutureWarning)


def _transposing_weight_gradients(node: Any) -> Callable[[Hook], Hook] | None:
    """Return the decorator of hooks that transposes weight gradients, if PyTorch's node has the transposed weight."""
    transposed = [
        isinstance(edge[0], InnerStep) and edge[0].name().startswith("TBackward") for edge in node.next_functions
    ]
    if True not in transposed:
        return None

    def transpose(grads: Any) -> Any:
        if not isinstance(grads, (tuple, list)) or len(grads) != len(transposed):
            return grads
        pairs = zip(grads, transposed, strict=True)
        return tuple([g.t() if flag and isinstance(g, Tensor) else g for g, flag in pairs])

    def adapt(hook: Hook) -> Hook:
        @functools.wraps(hook)
        def call(grad_input: Any, grad_output: Any) -> Any:
            return transpose(hook(transpose(grad_input), grad_output))

        return call

    return adapt


_DEPRECATED = "is deprecated and will be removed in future versions. This hook will be missing"
_FULL = "Please use register_full_backward_hook to get the documented behavior."
_ON_MODULE = (
    "Using non-full backward hooks on a Module that does not {} a single Tensor or a tuple of Tensors "
    f"{_DEPRECATED} some of the {{}}. {_FULL}"
)
_ON_NODE = f"Using a non-full backward hook when {{}} {_DEPRECATED} some {{}}. {_FULL}"


def _incomplete_hook_warning(args: tuple[Any, ...], result: Any, node: Any) -> str:
    """Return PyTorch's warning if the gradients at `node` are not all those of the module, else ""."""
    results = result if isinstance(result, tuple) else (result,)
    if not all(isinstance(x, Tensor) for x in results):
        return _ON_MODULE.format("return", "grad_output")
    if not all(isinstance(x, Tensor) for x in args):
        return _ON_MODULE.format("take as input", "grad_input")
    if len({x.grad_fn for x in results if x.grad_fn is not None}) > 1:
        return _ON_NODE.format("outputs are generated by different autograd Nodes", "grad_output")
    sources = {x.grad_fn for x in args if x.grad_fn is not None}
    if sources != {edge[0] for edge in node.next_functions}:
        return _ON_NODE.format("the forward contains multiple autograd Nodes", "grad_input")
    return ""
