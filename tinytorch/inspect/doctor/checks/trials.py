"""What is found by trying: steps taken again with an option at its usual value, gradients as computed, other rates ...

No cause need be guessed for these: they are tried where the loss is no better than half of a constant guess's, or where
a number is far from what is usual (`limits`).
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator
from statistics import median, mode
from typing import Any, NamedTuple

import numpy as np

from tinytorch.data.sampler import SequentialSampler
from tinytorch.inspect.doctor.checks import Check
from tinytorch.inspect.doctor.checks.facts import return_of
from tinytorch.inspect.doctor.finding import Suspicion, Trial
from tinytorch.inspect.doctor.limits import LIMITS
from tinytorch.inspect.doctor.patches import (
    Defaults,
    FixedRate,
    NoDropout,
    NormaliseLayers,
    OneBatch,
    Patch,
    Rate,
    Reset,
    ScaleScores,
    ShareOfStep,
    Shuffle,
    Unchanged,
)
from tinytorch.inspect.doctor.place import Place
from tinytorch.inspect.doctor.source import option_at
from tinytorch.inspect.doctor.watch import array_of, norm_of
from tinytorch.nn.modules.dropout import _DropoutNd

__all__ = ["Guess", "Trials"]


class Guess(Check):
    """The loss of the best constant prediction, from the targets of the steps that were traced."""

    def __init__(self, doctor: Any) -> None:
        super().__init__(doctor)
        self.kind = ""
        self.targets: list[Any] = []

    def traced(self, trace: Any, loss: Any, place: Any) -> None:  # noqa: D102
        value = array_of(loss)
        if value is None or value.size != 1 or len(self.targets) >= 64 or not trace.losses:
            return
        each = trace.losses[-1]
        x, y = array_of(each.input), array_of(each.target)
        if x is None or y is None or not y.size:
            return
        kind = {"class": "class", "nll": "class", "logit": "two", "prob": "two"}.get(each.kind, "")
        if not kind and x.size == y.size and x.shape == y.shape:
            apart = np.abs(x.astype(np.float64) - y)
            sizes = {"square": float(np.square(apart).mean()), "apart": float(apart.mean())}
            kind = next((k for k, size in sizes.items() if math.isclose(size, float(value), rel_tol=1e-3)), "")
        elif kind and each.call.out is not loss:
            kind = ""
        if kind and kind in (self.kind, self.kind or kind):
            self.kind = kind
            self.targets.append(y.copy())

    def value(self) -> float | None:
        """Return that loss; None if it is not known what the loss is."""
        if not self.targets:
            return None
        shapes = {each.shape[1:] for each in self.targets if each.ndim}
        whole = len(shapes) == 1 and all(each.ndim for each in self.targets)
        y = np.concatenate(self.targets if whole else [each.reshape(-1) for each in self.targets]).astype(np.float64)
        if self.kind == "class":
            y = y[y >= 0]
            shares = np.unique(y, return_counts=True)[1] / max(y.size, 1)
            return float(-(shares * np.log(shares)).sum())
        if self.kind == "two":
            p = np.clip(y.mean(0), 1e-12, 1 - 1e-12)
            return float(-(p * np.log(p) + (1 - p) * np.log(1 - p)).mean())
        middle = y.mean(0) if self.kind == "square" else np.median(y, 0)
        return float((np.square(y - middle) if self.kind == "square" else np.abs(y - middle)).mean())


class Row(NamedTuple):
    """A trial that needs no guess of a cause: what is said, what is changed."""

    says: str
    patch: Patch


class Trials(Check):
    """What helps when it is tried."""

    causes = (
        "gradients-clipped", "option-harmful", "gradients-summed", "rate-never-reached", "scores-flat",
        "initialization", "dropout-too-strong", "layer-inputs-unscaled",
    )  # fmt: skip

    def __init__(self, doctor: Any) -> None:
        super().__init__(doctor)
        self.computed = 0.0  # the norm of the gradients after the backward pass
        self.left: list[tuple[float, Place]] = []  # what share of it was left before a step, and who changed it
        self.since = 0
        self.per_step: list[int] = []
        self.divided = False
        self.summed: tuple[int, Place] | None = None  # of how many samples the loss is the sum, and the line
        self.spread: list[tuple[float, Place | None]] = []  # of scores
        self.backward_place: Any = None

    def _norm(self) -> float:
        every = {id(p): p for info in self.watch.optimizers.values() for p in info.params}
        arrays = [array_of(p._grad) for p in every.values() if p._grad is not None]
        return math.hypot(*[norm_of(each) for each in arrays if each is not None and each.dtype.kind == "f"])

    def backward_ends(self, loss: Any, place: Any) -> None:  # noqa: D102
        self.since += 1
        self.backward_place = place
        self.computed = self._norm() if self.watch.tracer.on else 0.0

    def step_begins(self, info: Any) -> None:  # noqa: D102
        if self.since and len(self.per_step) < 1000:
            self.per_step.append(self.since)
        self.since = 0
        if not self.watch.tracer.on or not self.computed:
            return
        own = {id(p._grad) for p in info.params if p._grad is not None}
        changed = [call.place for call in self.watch.tracer.trace.calls
                   if call.args and call.out is call.args[0] and id(call.out) in own]  # fmt: skip
        if changed:
            self.left.append((self._norm() / self.computed, changed[0]))

    def traced(self, trace: Any, loss: Any, place: Any) -> None:  # noqa: D102
        made = trace.maker(loss)
        self.divided |= made is not None and made.name in ("div", "mul")
        for each in trace.losses[-1:]:
            if "sum" in each.call.args and each.call.out is loss and each.input.ndim:
                made = self.watch.made_at.get(id(each.call.criterion), each.call.place)
                self.summed = max(each.input.shape[0], 2), made
            x = array_of(each.input)
            if each.kind == "class" and x is not None and x.size:
                call = trace.before(each.input)
                self.spread.append((float(x.std(1 if x.ndim > 1 else 0).mean()), call.place if call else None))

    def finish(self) -> Iterator[Suspicion]:  # noqa: D102
        course, watch = self.doctor.course, self.watch
        stepped = [info for info in watch.optimizers.values() if info.steps >= 3]
        if course.adversarial or watch.backwards < 8:
            return
        yield from self._clipped()
        if self.per_step and (count := mode(self.per_step)) > 1 and not self.divided:
            yield Suspicion(
                "gradients-summed",
                f"Each step adds up the gradients of {count} backward passes, whose losses are not divided by {count}: "
                "it is that many times as long.",
                self.backward_place, f"(loss / {count}).backward()", rank=3,
                trials=[Trial(ShareOfStep(count), "learns_better", says=f"with the gradients divided by {count}")],
            )  # fmt: skip
        if self.summed is not None:
            count, place = self.summed
            yield Suspicion(
                "gradients-summed",
                f"The loss is the sum over a batch of {count} samples, and no mean: its gradient is that many times as "
                "large, and so are the steps.",
                option_at(place, "reduction"), 'reduction="mean"  # the default', rank=4,
                trials=[Trial(ShareOfStep(count), "learns_better", says=f"with the gradients divided by {count}")],
            )  # fmt: skip
        yield from self._scores()
        yield from self._dropout()
        for info in stepped:
            yield from self._options(info)
            yield from self._rate(info)
        if self.doctor.stuck and stepped:
            yield from self._others(stepped[0])

    def _clipped(self) -> Iterator[Suspicion]:
        if len(self.left) < 2 or median(share for share, _ in self.left) > LIMITS["share of a clipped gradient"]:
            return
        share, place = self.left[-1]
        yield Suspicion(
            "gradients-clipped",
            f"Of the norm of the gradients, {share:.2g} is left when the optimizer steps: this line makes them small.",
            option_at(place, "max_norm", 1), "clip_grad_norm_(model.parameters(), 1.0)  # or more", rank=3,
            trials=[Trial(Unchanged(), "learns_better", says="with the gradients as they were computed")],
        )  # fmt: skip

    def _scores(self) -> Iterator[Suspicion]:
        sizes = [size for size, _ in self.spread]
        if len(sizes) > 3 and max(sizes) < LIMITS["spread of scores"] and self.doctor.stuck:
            yield Suspicion(
                "scores-flat",
                f"The scores of the classes differ by {max(sizes):.2g} at most (standard deviation), so that all "
                "classes stay almost as likely.",
                self.spread[-1][1], "scores / temperature  # not times; or larger weights, a larger rate", rank=5,
                trials=[Trial(ScaleScores(factor), "scores_better", says=f"with scores {factor:g} times as large")
                        for factor in (10.0, 100.0)],
            )  # fmt: skip

    def _options(self, info: Any) -> Iterator[Suspicion]:
        group = info.optimizer.param_groups[0]
        name = type(info.optimizer).__name__
        for option, parameter in inspect.signature(type(info.optimizer)).parameters.items():
            value, usual = group.get(option), parameter.default
            if value == usual or not _odd(option, value):
                continue
            yield Suspicion(
                "option-harmful",
                f"{name} works with {option}={_plain(value)}, where {_plain(usual)} is usual.",
                option_at(info.place, option), f"{option}={_plain(usual)}", rank=3,
                trials=[Trial(Defaults(option, usual), judge, says=f"with {option}={_plain(usual)}")
                        for judge in ("learns_better", "scores_better")],
            )  # fmt: skip

    def _rate(self, info: Any) -> Iterator[Suspicion]:
        given = float(info.optimizer.param_groups[0].get("initial_lr", 0.0))
        used = max([rate for _, rate in self.watch.rates], default=0.0)
        if not 0 < used < LIMITS["share of the rate"] * given or info.steps < 20:
            return
        place = self.watch.scheduler_at
        function = next(iter(getattr(self.watch.scheduler, "lr_lambdas", ())), None)
        yield Suspicion(
            "rate-never-reached",
            f"The optimizer was made with a rate of {given:.3g}, but the schedule gave it {used:.3g} at most.",
            return_of(function) if getattr(function, "__code__", None) else place,
            "return factor  # LambdaLR multiplies the first rate by it", rank=3,
            trials=[Trial(FixedRate(), "learns_better", says=f"with a rate of {given:.3g}")],
        )  # fmt: skip

    def _others(self, info: Any) -> Iterator[Suspicion]:
        watch = self.watch
        rates = option_at(info.place, "lr", 1)
        said = self.doctor.standing()
        for factor, says in ((1 / 3, "a third of the"), (0.1, "a tenth of the"), (3.0, "three times the"), (10.0, "ten "
                             "times the")):  # fmt: skip
            yield Suspicion(
                "learning-rate-too-high" if factor < 1 else "learning-rate-too-low", f"{said} Another rate helps.",
                rates, f"lr={info.rate * factor:.2g}", rank=6,
                trials=[Trial(Rate(factor), "fits", says=f"with {says} learning rate")],
            )  # fmt: skip
        yield Suspicion(
            "layer-inputs-unscaled", f"{said} The layers get inputs of very different sizes.",
            next((each.place for each in watch.models.values()), None),
            "nn.LayerNorm(n)  # between the layers; or x = (x - mean) / std", rank=6,
            trials=[Trial(NormaliseLayers(), "fits", says="with the input of each layer normalised")],
        )  # fmt: skip
        if (place := self.doctor.initialized_at()) is not None:
            yield Suspicion(
                "initialization", f"{said} The program sets the first weights itself.", place,
                "# leave the layers as they are made, or nn.init.kaiming_normal_", rank=5,
                trials=[Trial(Reset(), "fits", says="with the usual initial weights")],
            )  # fmt: skip

    def _dropout(self) -> Iterator[Suspicion]:
        for model in self.watch.models.values():
            for path, each in model.module.named_modules():
                if isinstance(each, _DropoutNd) and LIMITS["share left out"] < each.p < 1:
                    yield Suspicion(
                        "dropout-too-strong",
                        f"{model.name}.{path} leaves out {each.p:.0%} of what it gets: p is the share that is dropped.",
                        option_at(self.watch.made_at.get(id(each)), "p", 0), f"nn.Dropout({1 - each.p:.2g})", rank=4,
                        trials=[Trial(NoDropout(), "learns_better", says="without dropout")],
                    )  # fmt: skip
                    return

    def panel(self) -> list[Row]:
        """Return the trials whose results are reported when nothing was found."""
        watch = self.watch
        rows = [Row("a third of the learning rate", Rate(1 / 3)), Row("three times the rate", Rate(3.0)),
                Row("one batch in all steps", OneBatch())]  # fmt: skip
        groups = [group for info in watch.optimizers.values() for group in info.optimizer.param_groups]
        if any(group.get("weight_decay") for group in groups):
            rows.append(Row("no weight decay", Defaults("weight_decay", 0.0)))
        if self.left:
            rows.append(Row("the gradients as computed", Unchanged()))
        if any(isinstance(each, _DropoutNd) for info in watch.models.values() for each in info.module.modules()):
            rows.append(Row("no dropout", NoDropout()))
        loaders = [loader for info in watch.loaders.values() if info.backwards and (loader := info.loader())]
        if any(isinstance(getattr(each, "sampler", None), SequentialSampler) for each in loaders):
            rows.append(Row("the data shuffled", Shuffle()))
        if watch.models:
            rows.append(Row("the input of each layer normalised", NormaliseLayers()))
        return rows


def _odd(option: str, value: Any) -> bool:
    """Return whether an option is far from what is usual."""
    if option == "weight_decay":
        return bool(value > LIMITS["weight decay"])
    if option == "betas":
        return bool(value[0] >= value[1])
    return option == "momentum" and not 0 <= value < 0.99


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
