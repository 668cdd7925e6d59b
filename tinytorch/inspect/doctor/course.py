"""How training went: the main curve of losses, and which kind of training it was."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = ["Course"]


class Course:
    """A summary of what a watch has seen.

    Attributes:
        values: the finite losses of the line that called `backward` most often.
        place: that line.
        count: how many there were.
        begin: the first of them.
        first, last: the mean of the first and of the last of them.
        broken: whether one was not finite.
        supervised: whether the predictions of a model were compared with targets, by a loss function or a difference.
        chance: the loss of guessing among the classes, inf if that is not known or not the loss.
        adversarial: whether optimizers train several models by several losses.
    """

    def __init__(self, watch: Any, kinds: dict[str, int]) -> None:
        curves = watch.curves
        self.place = max(curves, key=lambda place: len(curves[place].values)) if curves else None
        every = curves[self.place].values if self.place is not None else []
        self.values = [x for x in every if math.isfinite(x)]
        self.broken = any(not math.isfinite(x) for curve in curves.values() for x in curve.values)
        self.count = n = len(self.values)
        self.begin = self.values[0] if n else math.nan
        # (If the first steps make the loss much larger, the mean of them is no beginning.)
        self.first = min(self.values[0], float(np.mean(self.values[: max(n // 20, 1)]))) if n else math.nan
        self.last = float(np.mean(self.values[-max(n // 10, 1) :])) if n else math.nan
        self.kinds = kinds
        self.supervised = bool(kinds)
        self.chance = math.log(watch.classes) if watch.classes >= 2 else math.inf
        stepped = [info for info in watch.optimizers.values() if info.steps]
        apart = [info for info in stepped if not any(each.ids & info.ids for each in stepped if each is not info)]
        alive = [info for info in apart if info.last_backward > 0.8 * watch.backwards]
        self.adversarial = len(alive) > 1 and len(curves) > 1

    @property
    def fell(self) -> float:
        """By which part of its first value the loss fell."""
        return (self.first - self.last) / max(abs(self.first), 1e-12)

    @property
    def stagnates(self) -> bool:
        """Whether the loss did not fall by a seventh of its first value, or to what guessing gives at most."""
        guessing = self.first > 2 * self.chance and self.last > 0.85 * self.chance
        return self.broken or self.fell < 0.15 or guessing

    @property
    def spikes(self) -> bool:
        """Whether the loss grew to a multiple of its first value at any time."""
        return self.count > 0 and self.first > 0 and max(self.values) > 5 * self.first

    @property
    def diverges(self) -> bool:
        """Whether the loss grew to a multiple of its first value, or beyond all numbers."""
        return self.broken or (self.first > 0 and self.last > 3 * self.first)

    @property
    def jumps(self) -> bool:
        """Whether the loss goes up and down by more than it has fallen."""
        values = np.array(self.values[-max(self.count // 2, 1) :])
        return self.count >= 20 and float(values.std()) > max(self.first - self.last, 0) and self.fell < 0.5
