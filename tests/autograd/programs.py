"""Tables of programs that both libraries run, and what they are written with."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

from tests.same import ended

Program = Callable[[Any], Any]


class Programs(list[Any]):
    """Functions of the library, as parameters of a test: of a class, or given one by one."""

    def __call__(self, section: type) -> type:
        """Enter the functions of a class."""
        self.add(section.__name__, **{name: each for name, each in vars(section).items() if callable(each)})
        return section

    def add(self, section: str, run: Callable[[Any], Program] | None = None, /, **programs: Any) -> None:
        """Enter programs, or what `run` makes programs of."""
        self += [pytest.param(run(p) if run else p, id=f"{section}-{name}") for name, p in programs.items()]


def leaf(torch: Any, *values: float, dtype: str = "float32") -> Any:
    """Return a vector that requires grad, of 1 and 2 by default."""
    return torch.tensor(values or (1.0, 2.0), dtype=getattr(torch, dtype), requires_grad=True)


def tried(*calls: Callable[[], Any]) -> list[Any]:
    """Return what each call gives or raises, and the classes of its warnings."""
    return [(result, [each.category.__name__ for each in caught]) for result, caught in map(ended, calls)]


def made(torch: Any, **members: Any) -> Any:
    """Return a `Function` of these static methods and attributes."""
    body = {name: staticmethod(each) if callable(each) else each for name, each in members.items()}
    return type("Mine", (torch.autograd.Function,), body)


def with_create_graph(y: Any) -> None:
    """Run `y.backward(create_graph=True)`, of whose reference cycle PyTorch warns in its first call only."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y.backward(create_graph=True)


def listed(gradients: Any) -> Any:
    """Return gradients as a hook gets them without tensors in them."""
    return [None if g is None else g.tolist() for g in gradients]
