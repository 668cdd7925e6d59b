"""The checks of the doctor, one class for each mistake: what it watches, what it suspects, and what would prove it.

A new check is a subclass of `Check` in a module of this folder; nothing else names it.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any, ClassVar

from tinytorch.core.names import module_of
from tinytorch.inspect.doctor.finding import Suspicion

__all__ = ["Check", "all_checks"]


class Check:
    """The base of checks: it ignores every event, and suspects nothing.

    Attributes:
        causes: the names of the causes that it finds.
        doctor: the doctor, with `doctor.watch`, which knows models, optimizers, loaders and losses.
    """

    causes: ClassVar[tuple[str, ...]] = ()
    _classes: ClassVar[list[type[Check]]] = []

    def __init__(self, doctor: Any) -> None:
        self.doctor = doctor

    def __init_subclass__(cls) -> None:
        Check._classes.append(cls)

    @property
    def watch(self) -> Any:
        """The doctor's `Watch`."""
        return self.doctor.watch

    # Events, which `Watch` tells of -----------------------------------------------------------------

    def forward_begins(self, info: Any, args: Any) -> None:
        """Notice a call of a model (`ModelInfo`)."""

    def forward_ends(self, info: Any, args: Any, kwargs: Any, out: Any) -> None:
        """Notice the result of a model."""

    def traced(self, trace: Any, loss: Any, place: Any) -> None:
        """Notice the ops of a step (`Trace`), in some steps, before the backward pass from `loss`."""

    def backward_begins(self, loss: Any, place: Any) -> None:
        """Notice a backward pass that begins."""

    def backward_ends(self, loss: Any, place: Any) -> None:
        """Notice a backward pass that has ended."""

    def step_begins(self, info: Any) -> None:
        """Notice that an optimizer (`OptimizerInfo`) is about to step."""

    def step_ends(self, info: Any) -> None:
        """Notice that an optimizer has stepped."""

    def zeroed(self, target: Any) -> None:
        """Notice a call of `zero_grad` of an optimizer or a module."""

    def scheduled(self, scheduler: Any) -> None:
        """Notice the step of a scheduler."""

    def loader_begins(self, info: Any) -> None:
        """Notice an iteration over a `DataLoader` (`LoaderInfo`)."""

    def batch(self, info: Any, batch: Any) -> None:
        """Notice a batch of a loader."""

    def loader_ends(self, info: Any) -> None:
        """Notice the end of an iteration."""

    def dropped(self, function: Any, x: Any, p: float, training: bool) -> None:
        """Notice a call of a function `dropout`."""

    def cut(self, x: Any, out: Any, how: str) -> None:
        """Notice that `out` was taken from `x` without its graph, by `detach()`, `.data`, `item()` ..."""

    def mode_set(self, module: Any, mode: bool, before: bool) -> None:
        """Notice `module.train(mode)`."""

    def state_taken(self, module: Any, state: Any) -> None:
        """Notice `state = module.state_dict()`."""

    def state_loaded(self, module: Any, state: Any) -> None:
        """Notice `module.load_state_dict(state)`."""

    def made_optimizer(self, info: Any) -> None:
        """Notice a new optimizer."""

    def seeded(self, seed: int) -> None:
        """Notice that a generator of random numbers is seeded."""

    def filled(self, x: Any) -> None:
        """Notice that a tensor is filled with random numbers, in the steps that are traced."""

    def criterion(self, module: Any, args: Any) -> None:
        """Notice the call of a loss module."""

    # At the end -------------------------------------------------------------------------------------

    def finish(self) -> Iterator[Suspicion]:
        """Yield suspicions."""
        yield from ()

    def series(self) -> dict[str, Any]:
        """Return curves for the report, by name."""
        return {}


def all_checks() -> list[type[Check]]:
    """Return the classes of all checks."""
    for info in sorted(pkgutil.iter_modules(__path__), key=lambda info: info.name):
        importlib.import_module(f"{__name__}.{info.name}")
    return [each for each in Check._classes if module_of(each).startswith(__name__)]
