"""`autograd.Function` inside of `vmap`: by its own rule (its `vmap`), or by running it on batched tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from tinytorch.autograd.function import Function, FunctionCtx
from tinytorch.core.mode import local
from tinytorch.core.names import module_of
from tinytorch.core.tensor import Tensor
from tinytorch.ops.batching import Batch, batched, mapped, physical, wrapped

__all__ = ["VmapInfo", "by_rule", "function_of_batch"]


class VmapInfo(NamedTuple):
    """What the `vmap` of a Function is told: the number of examples, and how random numbers are drawn."""

    batch_size: int
    randomness: str


def function_of_batch(
    level: Batch, function: type[Function], caller: Callable[..., Any], node: Any, args: tuple[Any, ...]
) -> Any:
    """Return the batched outputs of a Function, some of whose arguments are batched.

    Raises:
        RuntimeError: it does not support `vmap`.
    """
    own = function.vmap is not Function.vmap
    name = function.__name__
    if function.generate_vmap_rule and own:
        raise RuntimeError(
            f"You tried to vmap over {name}, but it has both generate_vmap_rule=True and an overridden vmap "
            "staticmethod. Please set generate_vmap_rule=False or delete the overridden vmap staticmethod to avoid "
            "ambiguity."
        )
    if not own and not function.generate_vmap_rule:
        if module_of(function).partition(".")[0] == "tinytorch":
            return level.per_example(lambda *given: caller(type(node)(), given), args, {})
        if function.setup_context is Function.setup_context:
            raise RuntimeError(
                "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it "
                "must override the setup_context staticmethod. For more details, please see "
                "https://pytorch.org/docs/main/notes/extending.func.html"
            )
        raise RuntimeError(
            f"You tried to vmap over {name}, but it does not have vmap support. Please override and implement the vmap "
            "staticmethod or set generate_vmap_rule=True. For more details, please see "
            "https://pytorch.org/docs/main/notes/extending.func.html"
        )
    if own:
        return _by_rule(level, function.vmap, args, {}, name)
    return _generated(level, function, args)


def by_rule(rule: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], name: str) -> Any:
    """Return the result of a rule, at the innermost level at which an argument is batched.

    Returns:
        NotImplemented if none is.
    """
    for level in reversed(local.state.modes or ()):
        if isinstance(level, Batch) and level._has_ours((args, kwargs)):
            with level._outside():
                return _by_rule(level, rule, args, kwargs, name)
    return NotImplemented


def _by_rule(level: Batch, rule: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], name: str) -> Any:
    in_dims = mapped(lambda x: 0 if level._is_ours(x) else None, args)
    given, named = mapped(lambda x: x._under if level._is_ours(x) else x, (args, kwargs))
    result = rule(VmapInfo(level.size, level.randomness), in_dims, *given, **named)
    if not isinstance(result, tuple) or len(result) != 2:
        raise RuntimeError(f"Expected the vmap rule of {name} to return a tuple of two elements: (output, out_dims)")
    outputs, out_dims = result
    several = isinstance(outputs, tuple)
    outs = outputs if several else (outputs,)
    dims = out_dims if isinstance(out_dims, tuple) else (out_dims,) * len(outs)
    made = [
        x if dim is None or not isinstance(x, Tensor) else batched(x.movedim(dim, 0), level)
        for x, dim in zip(outs, dims, strict=True)
    ]
    return tuple(made) if several else made[0]


class _Context(FunctionCtx):
    """The `ctx` of a Function that runs on batched tensors."""

    to_save: tuple[Any, ...] = ()
    non_differentiable: tuple[Any, ...] = ()
    needs_input_grad: tuple[bool, ...] = ()
    materialize_grads = True

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        return self.to_save


@contextmanager
def _inside(level: Batch) -> Iterator[None]:
    """Switch a level on, as the innermost mode."""
    state = local.state
    modes = state.modes
    if level not in (modes or ()):
        state.modes = (*(modes or ()), level)
    try:
        yield
    finally:
        state.modes = modes


def _generated(level: Batch, function: type[Function], args: tuple[Any, ...]) -> Any:
    """Run a Function on batched tensors, as a Function of the tensors under them."""
    places = [k for k, x in enumerate(args) if isinstance(x, Tensor) and (level._is_ours(x) or x.requires_grad)]
    inner = _Context()
    several = False
    whole = list(args)
    for k in places:
        whole[k] = physical(args[k], level)
        if level.tracked is not None and level._is_tracked(args[k]):
            whole[k] = level._lifted(args[k])._under

    class Vmapped(Function):
        @staticmethod
        def forward(ctx: Any, *tensors: Any) -> Any:
            nonlocal several
            given = list(args)
            for k, x in zip(places, tensors, strict=True):
                given[k] = batched(x, level)
            needed = iter(ctx.needs_input_grad)
            inner.needs_input_grad = tuple([k in places and next(needed) for k in range(len(args))])
            with _inside(level):
                if function.setup_context is Function.setup_context:
                    outputs = function.forward(inner, *given)
                else:
                    outputs = function.forward(*given)
                    function.setup_context(inner, tuple(given), outputs)
                several = isinstance(outputs, tuple)
                outs = outputs if several else (outputs,)
                made = [physical(x, level) if isinstance(x, Tensor) else x for x in outs]
            constant = inner.non_differentiable
            fixed = [x for x, out in zip(made, outs, strict=True) if any(out is each for each in constant)]
            if fixed:
                ctx.mark_non_differentiable(*fixed)
            ctx.set_materialize_grads(inner.materialize_grads)
            return tuple(made)

        @staticmethod
        def backward(ctx: Any, *gs: Any) -> Any:
            with _inside(level):
                vectors = [None if g is None else wrapped(g, level) for g in gs]
                grads = function.backward(inner, *vectors)
                grads = grads if isinstance(grads, tuple) else (grads,)
                return tuple([None if grads[k] is None else physical(grads[k], level) for k in places])

    Vmapped.__name__ = Vmapped.__qualname__ = function.__name__
    result = Vmapped.apply(*[whole[k] for k in places])
    made = [batched(x, level) if isinstance(x, Tensor) else x for x in result]
    return tuple(made) if several else made[0]
