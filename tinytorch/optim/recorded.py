"""`Tensors`: what a step of `kernels/optim.py` uses to compute with tensors, so that gradients flow through it."""

from __future__ import annotations

from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.kernels.optim import pull_of, pulled
from tinytorch.ops.arithmetic import maximum, sign
from tinytorch.ops.masks import where
from tinytorch.ops.transcendental import sqrt

State = dict[str, Any]


class Tensors:
    """What a step uses to compute with tensors, as `kernels.optim.Arrays` is for arrays."""

    sqrt, maximum, where, sign = map(staticmethod, (sqrt, maximum, where, sign))

    @staticmethod
    def number(value: Any) -> Any:
        """Return an option as a scalar: a number unchanged, a tensor of one element without dimensions."""
        return value.reshape(()) if isinstance(value, Tensor) else value

    @staticmethod
    def constant(x: Tensor) -> Tensor:
        """Return a copy of `x` outside of its graph."""
        return x.detach().clone()

    @staticmethod
    def count(state: State) -> float:
        """Return the number of this step, after counting it."""
        state["step"]._array += 1
        return float(state["step"])

    @staticmethod
    def put(state: State, name: str, value: Any) -> None:
        """Set a scalar of the state."""
        if isinstance(value, Tensor):
            state[name] = value
        else:
            state[name]._array[...] = value

    @classmethod
    def step(
        cls, made: Any, numbers: tuple[Any, ...], p: Tensor, g: Tensor, state: State, group: State, *names: str | None
    ) -> Tensor:
        """Return the updated parameter by a formula and its numbers, and replace the buffers that have `names`."""
        buffers = [None if name is None else state.get(name) for name in names]
        updated, *buffers = made(cls, *numbers)(*pulled(p, g, *pull_of(group, cls.number)), *buffers)
        state.update({name: x for name, x in zip(names, buffers, strict=True) if name is not None})
        return updated
