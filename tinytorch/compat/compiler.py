"""`torch.compile` and `torch.compiler`: nothing is compiled, functions run as they are.

PyTorch's `compile` changes the speed of a program, not its results; so a program that calls it runs unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Sized
from typing import Any, cast

from tinytorch.core.tensor import Tensor
from tinytorch.func.pytree import flatten
from tinytorch.nn.modules.module import Module

from .absent import Idle, answering

__all__ = [
    "allow_in_graph", "assume_constant_result", "compile", "cudagraph_mark_step_begin", "disable",
    "is_compiling", "is_dynamo_compiling", "is_exporting", "list_backends", "reset", "set_stance",
]  # fmt: skip


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    name: str | None = None,
    disable: bool = False,
    recompile_limit: int | None = None,
    isolate_recompiles: bool = False,
    shapes_spec: Any = None,
) -> Any:
    """Return the function itself, or a module that calls the one given. Without one, return a decorator that does so.

    Args:
        fullgraph, dynamic, backend, mode, options, name, disable, recompile_limit, isolate_recompiles, shapes_spec:
            have no effect.

    Raises:
        RuntimeError: both `mode` and `options` are given.
        AssertionError: `model` cannot be called.

    Example:
        >>> @torch.compile(mode="max-autotune")
        ... def f(x):
        ...     return x * 2
        >>> f(torch.ones(1))
        tensor([2.])
    """
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if model is None:
        return lambda model: compile(model)
    if not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")
    return OptimizedModule(model) if isinstance(model, Module) else model


class OptimizedModule(Module):
    """What `compile` returns for a module: it calls the module, and has its attributes, parameters and mode.

    As in PyTorch the module is `_orig_mod`, and names in `state_dict` begin with that.

    Example:
        >>> compiled = torch.compile(torch.nn.Linear(2, 3))
        >>> list(compiled.state_dict()), compiled.in_features
        (['_orig_mod.weight', '_orig_mod.bias'], 2)
    """

    _orig_mod: Module

    def __init__(self, mod: Module) -> None:
        super().__init__()
        self._modules["_orig_mod"] = mod

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the module does."""
        return self._orig_mod(*args, **kwargs)

    @property
    def training(self) -> bool:
        """Whether the module is in training mode."""
        return self._modules["_orig_mod"].training  # type: ignore[union-attr]

    @training.setter
    def training(self, value: bool) -> None:
        module = self.__dict__.get("_modules", {}).get("_orig_mod")
        if module is not None:  # the base class sets it before there is one
            module.training = value

    def __getattr__(self, name: str) -> Any:
        modules = self.__dict__.get("_modules", {})
        if name == "_orig_mod" or "_orig_mod" not in modules:
            return super().__getattr__(name)
        return getattr(modules["_orig_mod"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__ or hasattr(type(self), name):
            object.__setattr__(self, name, value)
        else:
            setattr(self._orig_mod, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._orig_mod, name)

    def __len__(self) -> int:
        return len(cast(Sized, self._orig_mod))


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Return the function itself, or a decorator that does so: it is not compiled in any case.

    Example:
        >>> @torch.compiler.disable
        ... def f(x):
        ...     return x * 2
        >>> f(torch.ones(1))
        tensor([2.])
    """
    return (lambda fn: fn) if fn is None else fn


_disable_dynamo = disable


def allow_in_graph(fn: Any) -> Any:
    """Return the function, or the sequence of functions, itself.

    Example:
        >>> f = torch.compiler.allow_in_graph(torch.exp)
        >>> f(torch.zeros(1))
        tensor([1.])
    """
    return fn


def assume_constant_result(fn: Any) -> Any:
    """Return the function itself.

    Example:
        >>> @torch.compiler.assume_constant_result
        ... def sizes():
        ...     return 2, 3
        >>> sizes()
        (2, 3)
    """
    return fn


is_dynamo_compiling = is_exporting = is_compiling = answering("is_compiling", lambda: False, "Return False.")
reset = answering("reset", lambda: None, "Forget what was compiled: nothing was.")
cudagraph_mark_step_begin = answering(
    "cudagraph_mark_step_begin", lambda: None, "Mark the start of a step: there are no recorded ones."
)
list_backends = answering("list_backends", lambda exclude_tags=(): [], "Return the names of compilers: there are none.")


def set_stance(stance: str = "default", **options: Any) -> Any:
    """Take how PyTorch is to compile; nothing is compiled. Also a context manager and decorator.

    Example:
        >>> with torch.compiler.set_stance("force_eager"):
        ...     y = torch.ones(2) * 2
    """
    return _Stance()


class _Stance(Idle):
    def __call__(self, fn: Any) -> Any:
        return fn


# Control flow -------------------------------------------------------------------------------------


def cond(
    pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: tuple[Any, ...] | list[Any] = ()
) -> Any:
    """Return `true_fn(*operands)` if `pred` holds, else `false_fn(*operands)`.

    Args:
        pred: a bool, or a tensor of one element.
        operands: nested tuples, lists and dicts of tensors.

    Raises:
        RuntimeError: `operands` is something else.

    Example:
        >>> x = torch.ones(2)
        >>> torch.cond(x.sum() > 1, lambda x: x + 1, lambda x: x - 1, (x,))
        tensor([2., 2.])
    """
    if not isinstance(pred, (bool, int, float, Tensor)):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if isinstance(pred, Tensor) and pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    _check_operands("operands", operands)
    return true_fn(*operands) if pred else false_fn(*operands)


def while_loop(
    cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: tuple[Any, ...] | list[Any]
) -> Any:
    """Run `values = body_fn(*values)` while `cond_fn(*values)` holds, and return the values.

    Args:
        cond_fn: returns a bool, or a tensor of one element.
        body_fn: returns as many values as it is given.

    Raises:
        RuntimeError: `body_fn` returns another number of values.

    Example:
        >>> torch.while_loop(lambda i: i < 3, lambda i: (i + 1,), (torch.tensor(0),))
        (tensor(3),)
    """
    values = carried_inputs
    while cond_fn(*values):
        made = body_fn(*values)
        if not isinstance(made, (tuple, list)) or len(made) != len(values):
            raise RuntimeError(
                f"body_fn should return a tuple of {len(values)} values, as many as carried_inputs, but got {made!r}"
            )
        values = made
    return tuple(values)


def _check_operands(name: str, operands: Any) -> None:
    leaves = flatten(operands)[0] if isinstance(operands, (tuple, list)) else None
    if leaves is None or not all(isinstance(each, (Tensor, int)) for each in leaves):
        raise RuntimeError(
            f"Expect {name} to be a tuple of possibly nested dict/list/tuple that only consists of tensor leaves, but "
            f"got {operands}."
        )
