"""Schedulers of learning rates: before the optimizer's step, or too often."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tinytorch.inspect.doctor.checks import Check
from tinytorch.inspect.doctor.finding import Suspicion, Trial
from tinytorch.inspect.doctor.patches import FixedRate, PerEpoch
from tinytorch.inspect.doctor.place import here
from tinytorch.optim import lr_scheduler

__all__ = ["Schedules"]


class _Seen:
    def __init__(self, scheduler: Any, place: Any) -> None:
        self.scheduler, self.place = scheduler, place
        self.calls = self.early = 0
        self.optimizer_steps: list[int] = []
        self.rates: list[float] = []


def _shifted(rates: list[float]) -> str:
    """Say which rates were used too early."""
    first = next((k for k in range(1, len(rates)) if rates[k] != rates[0]), None)
    if first is None:
        return ""
    if first == 1:
        return f"no step used the first rate, {rates[0]:.4g}: the first one used {rates[1]:.4g}"
    return (
        f"the rate {rates[0]:.4g} was used for {first - 1} periods, then {rates[first]:.4g}; in the other order the "
        f"first is used for {first}"
    )


class Schedules(Check):
    """The order and the number of the steps of schedulers and optimizers."""

    causes = ("scheduler-before-optimizer", "scheduler-too-often")

    def __init__(self, doctor: Any) -> None:
        super().__init__(doctor)
        self.seen: dict[int, _Seen] = {}

    def scheduled(self, scheduler: Any) -> None:  # noqa: D102
        known = self.seen.get(id(scheduler))
        if known is None:
            known = self.seen[id(scheduler)] = _Seen(scheduler, here())
        info = self.watch.info_of(scheduler.optimizer)
        known.calls += 1
        if len(known.optimizer_steps) < 100_000:
            known.optimizer_steps.append(info.steps)
            known.rates.append(info.rate)

    def finish(self) -> Iterator[Suspicion]:  # noqa: D102
        for known in self.seen.values():
            info = self.watch.info_of(known.scheduler.optimizer)
            name = type(known.scheduler).__name__
            steps = known.optimizer_steps
            plateau = isinstance(known.scheduler, lr_scheduler.ReduceLROnPlateau)
            if info.steps >= 2 and len(steps) >= 2 and steps[0] == 0 and steps[1] > 0 and not plateau:
                yield Suspicion(
                    "scheduler-before-optimizer",
                    f"{name}.step() was called before the first optimizer.step(): the first learning rate of the "
                    "schedule was never used.",
                    known.place,
                    "optimizer.step()\nscheduler.step()  # after the optimizer",
                    certain=True,
                    proven=_shifted(known.rates),
                    rank=2,
                )
            yield from self._too_often(known, info, name)

    def _too_often(self, known: _Seen, info: Any, name: str) -> Iterator[Suspicion]:
        watch = self.watch
        loaders = [each for each in watch.loaders.values() if each.backwards]
        epochs = max([each.finished for each in loaders], default=0)
        if known.calls < 10 or known.calls < 0.8 * info.steps or info.steps < 2 * max(epochs, 1):
            return
        rates = known.rates
        highest = max(rates)
        tiny = sum(1 for rate in rates if rate < 0.01 * highest) / len(rates)
        period = getattr(known.scheduler, "T_max", 0)
        repeats = isinstance(known.scheduler, lr_scheduler.CosineAnnealingLR) and known.calls > 2.5 * period > 0
        if tiny < 0.4 and not repeats:
            return
        every = max(round(info.steps / max(epochs, 1)), 2) if epochs > 1 else max(info.steps // 4, 2)
        if repeats:
            text = (
                f"{name}.step() was called {known.calls} times, once for each batch, but its period is {period} steps: "
                f"the learning rate went up and down {known.calls // period} times."
            )
        else:
            text = (
                f"{name}.step() was called {known.calls} times, once for each batch: the learning rate fell from "
                f"{highest:.3g} to {min(rates):.3g}, and was below a hundredth of its first value in {tiny:.0%} of the "
                "steps."
            )
        yield Suspicion(
            "scheduler-too-often",
            text,
            known.place,
            "for epoch in range(epochs):\n    for x, y in loader:\n        ...\n        optimizer.step()\n"
            "    scheduler.step()  # once an epoch",
            trials=[
                Trial(PerEpoch(every), "learns_better", says=f"with a scheduler's step every {every} batches"),
                Trial(FixedRate(), "learns_better", says="with the first learning rate kept"),
            ],
            certain=repeats and epochs > 1,
            rank=2,
        )
