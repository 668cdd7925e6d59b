"""What is found by trying: steps taken again with an option at its usual value, gradients as computed, other rates ...

No cause need be guessed for these: they are tried where the loss is no better than half of a constant guess's, or where
a number is far from what is usual (`limits`).
"""

from __future__ import annotations

import gc
import inspect
import math
import re
from collections.abc import Iterator
from statistics import median, mode
from typing import Any

import numpy as np

from tinytorch.core.tensor import Tensor
from tinytorch.data.sampler import SequentialSampler
from tinytorch.inspect.doctor.causes import found
from tinytorch.inspect.doctor.checks import Check
from tinytorch.inspect.doctor.checks.data import Repeats
from tinytorch.inspect.doctor.finding import Finding, Trial
from tinytorch.inspect.doctor.limits import LIMITS
from tinytorch.inspect.doctor.patches import Patch
from tinytorch.inspect.doctor.place import Place
from tinytorch.inspect.doctor.source import line_with, option_at, return_of, value_at
from tinytorch.inspect.doctor.watch import array_of, norm_of, value_of
from tinytorch.nn.modules.batchnorm import _BatchNorm
from tinytorch.nn.modules.dropout import _DropoutNd
from tinytorch.optim import lr_scheduler

__all__ = ["Guess", "Rates", "Schedules", "Sign", "Trials"]


class Guess(Check):
    """The loss of the best constant prediction, from the targets of the steps that were traced."""

    def __init__(self, doctor: Any) -> None:
        super().__init__(doctor)
        self.kind = ""
        self.targets: list[Any] = []
        self.most = 1.0  # the share of the most frequent class
        self.call: Any = None  # the name and the line of the op that compares predictions with targets
        self.made: Any = None  # the line that made the targets

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
        elif kind and (each.call.out is not loss or each.call.name == "smoothed_cross_entropy" or any(
                isinstance(weight, Tensor) for weight in each.call.args[2:])):  # fmt: skip
            kind = ""
        if kind and kind in (self.kind, self.kind or kind):
            self.kind, self.call = kind, (each.call.name, each.call.place)
            self.made = self.made or (trace.before(each.target) or each.call).place
            self.targets.append(y.copy())

    def value(self) -> float | None:
        """Return that loss; None if it is not known what the loss is."""
        if not self.targets:
            return None
        shapes = {each.shape[1:] for each in self.targets if each.ndim}
        whole = len(shapes) == 1 and all(each.ndim for each in self.targets)
        # (If they are one sample, its elements are what is learned.)
        first = self.targets[0]
        whole = whole and (len(first) > 1 or first.size == 1 or any((each != first).any() for each in self.targets))
        y = np.concatenate(self.targets if whole else [each.reshape(-1) for each in self.targets]).astype(np.float64)
        if self.kind == "class":
            y = y[y >= 0]
            shares = np.unique(y, return_counts=True)[1] / max(y.size, 1)
            self.most = float(shares.max(initial=0.0))
            return float(-(shares * np.log(shares)).sum())
        if self.kind == "two":
            p = np.clip(y.mean(0), 1e-12, 1 - 1e-12)
            self.most = float(np.maximum(p, 1 - p).mean())
            return float(-(p * np.log(p) + (1 - p) * np.log(1 - p)).mean())
        middle = y.mean(0) if self.kind == "square" else np.median(y, 0)
        return float((np.square(y - middle) if self.kind == "square" else np.abs(y - middle)).mean())

    def finish(self) -> Iterator[Finding]:  # noqa: D102
        course, guess = self.doctor.course, self.doctor.guess
        if self.kind not in ("square", "apart") or not guess or course.adversarial:
            return
        y = np.concatenate([each.reshape(-1) for each in self.targets]).astype(np.float64)
        mean, deviation, (low, high) = float(y.mean()), float(y.std()), LIMITS["scale of targets"]
        if low < max(abs(mean), deviation) < high or not (self.doctor.poor or course.broken):
            return
        for row in ("targets-unscaled", "targets-unscaled/both"):
            yield found(row, self.made, mean=mean, deviation=deviation, op=self.call[0], where=self.call[1],
                        guess=guess)  # fmt: skip


class Trials(Check):
    """What helps when it is tried."""

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
        self.kept: tuple[Any, Any] | None = None  # a parameter of low precision before a step
        self.signs: list[int] = []  # how many signs the elements of all gradients have
        self.still: list[float] = []  # the shares of its elements that steps leave as they are

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
        gradients = [x for p in info.params if (x := array_of(p._grad)) is not None and x.dtype.kind == "f"]
        signs = {sign for x in gradients for sign in (1, -1) if (x * sign > 0).any()}
        if sum(np.count_nonzero(x) for x in gradients) > 100:
            self.signs.append(len(signs))
        low = next((p for p in info.params if p.dtype.itemsize < 4 and p._grad is not None), None)
        self.kept = None if low is None else (low, low._array.copy())

    def step_ends(self, info: Any) -> None:  # noqa: D102
        if self.kept is not None:
            p, before = self.kept
            moves = p._grad._array != 0
            self.still.append(float((p._array == before)[moves].mean()) if moves.any() else 0.0)
            self.kept = None

    def traced(self, trace: Any, loss: Any, place: Any) -> None:  # noqa: D102
        made = trace.maker(loss)
        self.divided |= made is not None and made.name in ("div", "mul")
        for each in trace.losses[-1:]:
            if "sum" in each.call.args and each.call.out is loss and each.input.ndim:
                made_at = self.watch.made_at.get(id(each.call.criterion), each.call.place)
                self.summed = max(each.input.shape[0], 2), made_at
            x = array_of(each.input)
            if each.kind == "class" and x is not None and x.size:
                call = trace.before(each.input)
                self.spread.append((float(x.std(1 if x.ndim > 1 else 0).mean()), call.place if call else None))

    def finish(self) -> Iterator[Finding]:  # noqa: D102
        course, watch, doctor = self.doctor.course, self.watch, self.doctor
        stepped = [info for info in watch.optimizers.values() if info.steps >= 3]
        if course.adversarial or watch.backwards < 8:
            return
        if len(self.left) > 1 and median(share for share, _ in self.left) < LIMITS["share of a clipped gradient"]:
            share, place = self.left[-1]
            yield found("gradients-clipped", option_at(place, "max_norm", 1), share=share)
        count = mode(self.per_step) if self.per_step and not self.divided else 1
        if count > 1:
            yield found("gradients-summed/passes", self.backward_place, count=count, factor=1 / count)
        if self.summed is not None:
            count, place = self.summed
            yield found("gradients-summed/samples", option_at(place, "reduction"), count=count, factor=1 / count)
        sizes = [size for size, _ in self.spread]
        if len(sizes) > 3 and max(sizes) < LIMITS["spread of scores"] and doctor.stuck:
            yield found("scores-flat", self.spread[-1][1], spread=max(sizes))
        yield from self._modules()
        yield from self._made_again()
        if len(self.signs) > 3 and set(self.signs) == {1}:
            place = line_with(self.backward_place, r"register_\w*hook\(|clamp|clip") or self.backward_place
            yield found("gradients-one-sided", place, steps=len(self.signs))
        for info in stepped:
            yield from self._options(info)
        if len(self.still) > 3 and median(self.still) > LIMITS["steps that change nothing"]:
            place = line_with(stepped[0].place, r"float16|bfloat16|\.half\(") or stepped[0].place
            yield found("precision-too-low/steps", place, share=median(self.still))
        if doctor.stuck and stepped:
            yield from self._others(stepped[0])

    def _made_again(self) -> Iterator[Finding]:
        """Find optimizers that are made anew, which forgets their momenta."""
        kinds: dict[Any, list[Any]] = {}
        for info in self.watch.optimizers.values():
            if info.steps:
                kinds.setdefault((info.place, frozenset(info.ids)), []).append(info)
        for (place, _), infos in kinds.items():
            remembers = "betas" in infos[0].optimizer.defaults or infos[0].optimizer.defaults.get("momentum")
            if len(infos) > 4 and remembers and max(info.steps for info in infos) < 3:
                call = rf"(?<!def )\b{place.function}\("  # (a function may make it)
                place = line_with(place, call, infos[-1].step_place) or place
                yield found("optimizer-made-again", place, count=len(infos), most=max(info.steps for info in infos))

    def _options(self, info: Any) -> Iterator[Finding]:
        group = info.optimizer.param_groups[0]
        for option, parameter in inspect.signature(type(info.optimizer)).parameters.items():
            value, usual = group.get(option), parameter.default
            if value == usual or not _odd(option, value):
                continue
            yield found("option-harmful", option_at(info.place, option), name=type(info.optimizer).__name__,
                        default=usual, option=option, value=_plain(value), usual=_plain(usual))  # fmt: skip

    def _others(self, info: Any) -> Iterator[Finding]:
        rates, standing = option_at(info.place, "lr", 1), self.doctor.standing()
        if (place := self.doctor.initialized_at()) is not None:
            yield found("initialization", place, standing=standing)
        for factor in (1 / 3, 0.1, 3.0, 10.0):
            row = f"learning-rate-too-{'high' if factor < 1 else 'low'}/other"
            yield found(row, rates, standing=standing, factor=factor, rate=info.rate * factor)
        model = next((each.place for each in self.watch.models.values()), None)
        yield found("layer-inputs-unscaled", model, standing=standing)

    def _modules(self) -> Iterator[Finding]:
        for model in self.watch.models.values():
            for path, each in model.module.named_modules():
                if isinstance(each, _DropoutNd) and LIMITS["share left out"] < each.p < 1:
                    yield found("dropout-too-strong", option_at(self.watch.made_at.get(id(each)), "p", 0),
                                model=model.name, path=path, share=each.p, rest=1 - each.p)  # fmt: skip
                    return

    def panel(self) -> list[tuple[str, Patch]]:
        """Return the trials whose results are reported when nothing was found: what is said, and what is changed."""
        watch = self.watch
        modules = [each for info in watch.models.values() for each in info.module.modules()]
        groups = [group for info in watch.optimizers.values() for group in info.optimizer.param_groups]
        loaders = [loader for info in watch.loaders.values() if info.backwards and (loader := info.loader())]
        dropout = any(isinstance(each, _DropoutNd) for each in modules)
        decays = any(group.get("weight_decay") for group in groups)
        several = any(len(each.inputs) > 1 for each in self.doctor.checks if isinstance(each, Repeats))
        stepped = any(info.steps for info in watch.optimizers.values())
        sequential = any(isinstance(getattr(each, "sampler", None), SequentialSampler) for each in loaders)
        rows = (
            (stepped, "a third of the learning rate", Patch("rate", 1 / 3)),
            (stepped, "three times the rate", Patch("rate", 3.0)),
            (watch.updates and not stepped, "updates a third as large", Patch("scale", 1 / 3)),
            (watch.updates and not stepped, "updates three times as large", Patch("scale", 3.0)),
            (several, "one batch in all steps", Patch("one-batch")),
            (decays, "no weight decay", Patch("option", "weight_decay", 0.0)),
            (self.left, "the gradients as computed", Patch("as-computed")),
            (dropout, "no dropout", Patch("no-dropout")),
            (sequential, "the data shuffled", Patch("shuffle")),
            (modules, "the input of each layer normalised", Patch("normalise-layers")),
            (dropout or any(isinstance(each, _BatchNorm) for each in modules), "evaluation mode", Patch("mode", False)),
            (modules, "numbers of 64 bits", Patch("float64")),
        )  # fmt: skip
        return [(says, patch) for applies, says, patch in rows if applies]


def _odd(option: str, value: Any) -> bool:
    """Return whether an option is far from what is usual."""
    if option == "weight_decay":
        return bool(value > LIMITS["weight decay"])
    if option == "betas":
        return bool(value[0] >= value[1])
    if option == "eps":
        return bool(value > LIMITS["eps"])
    return option == "momentum" and not 0 <= value < 0.99


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


class Sign(Check):
    """A loss that is maximised."""

    def __init__(self, doctor: Any) -> None:
        super().__init__(doctor)
        self.negative: Any = None  # the line that makes a positive loss negative
        self.made_at: Any = None  # the line that computes the loss

    def traced(self, trace: Any, loss: Any, place: Any) -> None:  # noqa: D102
        last = trace.maker(loss)
        self.made_at = self.made_at if last is None else last.place
        for each in trace.losses[-1:]:
            out, value = value_of(each.call.out), value_of(loss)
            if out is None or value is None or each.call.name == "sub" or last is None:
                continue
            if out > 0 > value and trace.leads(each.call.out, loss):
                self.negative = last.place

    def finish(self) -> Iterator[Finding]:  # noqa: D102
        course, watch = self.doctor.course, self.watch
        infos = [info for info in watch.optimizers.values()
                 if any(group.get("maximize") for group in info.optimizer.param_groups)]  # fmt: skip
        learns = course.supervised and not course.adversarial and watch.backwards >= 5
        for applies, row, place, certain in (
            (course.count >= 20 and course.last < -20 * max(abs(course.first), 1.0), "unbounded", self.made_at, True),
            (learns and infos, "maximized", infos[0].place if infos else None, course.last > course.first),
            (learns and self.negative, "negative", self.negative, True),
            (learns and (course.diverges or course.last > 1.5 * course.first > 0), "grows",
             watch.updated_at or course.place, False),
        ):  # fmt: skip
            if applies:
                yield found(f"loss-sign/{row}", place, certain=certain, first=course.begin, last=course.last)
                return


class Rates(Check):
    """A loss that does not fall, or grows, and is not explained by anything else."""

    def __init__(self, doctor: Any) -> None:
        super().__init__(doctor)
        self.classes = 0
        self.loss_place: Any = None
        self.losses: list[float] = []  # of the loss function, in the steps that were traced
        self.random_at: Any = None  # the line that drew the labels at random

    def traced(self, trace: Any, loss: Any, place: Any) -> None:  # noqa: D102
        for each in trace.losses[-1:]:
            if each.kind in ("class", "nll") and each.input.ndim == 2:
                self.classes = each.input.shape[1]
            elif each.kind in ("logit", "prob"):
                self.classes = 2
            self.loss_place = each.call.place
            if (value := value_of(each.call.out)) is not None:
                self.losses.append(value)
            if self.random_at is None and each.kind in ("class", "nll"):
                y = each.target
                while (made := trace.made.get(id(y))) is not None and made.inputs and made.inputs[0] is not y:
                    y = made.inputs[0]
                used = [call for call in trace.calls if any(x is y for x in call.inputs) and not call.is_view
                        and call.name not in ("_index", "_slice", "_split", "_select", each.call.name)]  # fmt: skip
                self.random_at = None if used else self.watch.filled_at(y)

    def finish(self) -> Iterator[Finding]:  # noqa: D102
        course, watch = self.doctor.course, self.watch
        if course.adversarial or (watch.backwards < 8 and not course.broken):
            return
        info = next((each for each in watch.optimizers.values() if each.steps >= 2), None)
        place = (option_at(info.place, "lr", 1) if info is not None else self._manual_rate()) or course.place
        # (The highest: a schedule may begin with small ones.)
        rate = max([each for _, each in watch.rates[: max(len(watch.rates) // 2, 1)]], default=0.0)
        usual = _usual(info) if info is not None and rate > 0 else ()
        low, high = (min(usual), max(usual)) if usual else (0.0, math.inf)
        unruly = course.diverges or (course.spikes and course.stagnates)
        if rate > high or not usual:  # (with a usual rate, a loss that does not fall has other causes)
            unruly |= course.spikes or course.stagnates or course.jumps
        slow = course.supervised and course.count >= 20 and not course.broken and course.fell < 0.3
        words = {"first": course.begin, "steps": watch.backwards, "rate": rate,
                 "now": "is not finite" if course.broken else f"is {course.last:.4g}"}  # fmt: skip
        if info is None and watch.updated_at is not None and (course.diverges or course.stagnates):
            yield found("learning-rate-too-high/own", place, **words)
        # (PyTorch's quickstart has a tenth of the usual rate, and learns slowly.)
        for applies, cause, first, then in (
            ((unruly or rate > 20 * high) and rate > 0.2 * low, "learning-rate-too-high",
             [x for x in usual if x < 0.5 * rate], (0.1, 0.01)),
            (slow and rate < 0.05 * low and (course.count >= 50 or rate < 0.01 * low), "learning-rate-too-low",
             [x for x in usual if x > 2 * rate], (10.0, 100.0)),
        ):  # fmt: skip
            if info is None or not applies:
                continue
            factors: list[float] = []
            for each in (*[x / rate for x in first if rate], *then):  # those that are not almost the same
                if all(abs(math.log(each / other)) > 0.5 for other in factors):
                    factors.append(each)
            trials = [Trial(Patch("rate", factor), "fits", says=f"with a learning rate of {rate * factor:.2g}",
                            remedy=f"lr={rate * factor:.2g}") for factor in factors]  # fmt: skip
            yield found(cause, place, better=rate * then[0], trials=trials, rank=3 if rate > 20 * high else 5, **words)
        chance = math.log(self.classes) if self.classes >= 2 else math.inf
        tail = float(np.mean(self.losses[-max(len(self.losses) // 3, 1) :])) if self.losses else 0.0
        flat = abs(tail - chance) < 0.05 * chance and min(self.losses, default=0.0) > 0.9 * chance and course.fell < 0.1
        # (With a low rate, it may take longer.)
        if flat and course.supervised and course.count >= 100 and not rate < 0.2 * low and not course.broken:
            drawn = "" if self.random_at is None else "The labels are random numbers. "
            yield found("loss-at-chance", self.random_at or self.loss_place, drawn=drawn, steps=watch.backwards,
                        tail=tail, classes=self.classes, chance=chance)  # fmt: skip

    def _manual_rate(self) -> Any:
        """Return where the rate of a program is written that updates its parameters itself."""
        place = self.watch.updated_at
        names = re.findall(r"[A-Za-z_]\w*", place.text) if place is not None else []
        found = [value_at(place, name) for name in names if "lr" in name.lower() or "rate" in name]
        return next((each for each in found if each is not None), place)


def _usual(info: Any) -> tuple[float, ...]:
    """Return the learning rates with which optimizers of a kind usually work."""
    adaptive = "betas" in info.optimizer.defaults or "alpha" in info.optimizer.defaults
    return (0.001, 0.01) if adaptive else (0.01, 0.1) if info.optimizer.defaults.get("momentum") else (0.1, 0.01)


class Schedules(Check):
    """The rates that a schedule gave, and the scheduler's steps between those of the optimizer."""

    def __init__(self, doctor: Any) -> None:
        super().__init__(doctor)
        self.schedulers: dict[int, Any] = {}  # by the id of the optimizer's info
        self.early: dict[int, float] = {}  # the rates before schedulers that stepped before the optimizer
        self.rates: dict[int, list[float]] = {}

    def step_begins(self, info: Any) -> None:  # noqa: D102
        if info.steps < 3 and id(info) not in self.schedulers:
            known = [owner for each in gc.get_referrers(info.optimizer)
                     for owner in ([each] if isinstance(each, lr_scheduler.LRScheduler) else gc.get_referrers(each)
                                   if isinstance(each, dict) and "last_epoch" in each else ())
                     if isinstance(owner, lr_scheduler.LRScheduler)]  # fmt: skip
            inner = {id(each) for owner in known for each in getattr(owner, "_schedulers", ())}
            known = [each for each in known if id(each) not in inner and hasattr(each, "last_epoch")]
            if known:
                self.schedulers[id(info)] = known[0]
                first = info.optimizer.param_groups[0].get("initial_lr", info.rate)
                stepped = known[0]._step_count == 2 if hasattr(known[0], "_step_count") else False
                if info.steps == 0 and stepped and not isinstance(known[0], lr_scheduler.ReduceLROnPlateau):
                    self.early[id(info)] = first
        rates = self.rates.setdefault(id(info), [])
        if len(rates) < 100_000:
            rates.append(info.rate)

    def finish(self) -> Iterator[Finding]:  # noqa: D102
        for info in list(self.watch.optimizers.values()):
            scheduler, rates = self.schedulers.get(id(info)), self.rates.get(id(info), [])
            if scheduler is None or info.steps < 2:
                continue
            place = line_with(info.step_place, r"^(?!.*\w*opt\w*\.step\().*\.step\(") or info.step_place
            name = type(scheduler).__name__
            if id(info) in self.early and scheduler.last_epoch > 1:
                yield found("scheduler-before-optimizer", place, name=name, rate=rates[0], first=self.early[id(info)])
            yield from self._too_often(info, scheduler, name, place, rates)
            yield from self._never_reached(info, scheduler, place, rates)

    def _too_often(self, info: Any, scheduler: Any, name: str, place: Any, rates: list[float]) -> Iterator[Finding]:
        calls, highest = scheduler.last_epoch, max(rates)
        epochs = max([each.finished for each in self.watch.loaders.values() if each.backwards], default=0)
        tiny = float(np.mean([rate < LIMITS["share of the first rate"] * highest for rate in rates]))
        period = getattr(scheduler, "T_max", 0)
        repeats = isinstance(scheduler, lr_scheduler.CosineAnnealingLR) and calls > 2.5 * period > 0
        if calls < 10 or calls < 0.8 * info.steps or info.steps < 2 * max(epochs, 1) or (tiny < 0.4 and not repeats):
            return
        what = f"the rate fell from {highest:.3g} to {min(rates):.3g}, below a hundredth in {tiny:.0%} of the steps"
        if repeats:
            what = f"its period is {period} steps: the learning rate went up and down {calls // period} times"
        yield found("scheduler-too-often", place, name=name, count=calls, what=what, certain=repeats and epochs > 1)

    def _never_reached(self, info: Any, scheduler: Any, place: Any, rates: list[float]) -> Iterator[Finding]:
        given, used = float(info.optimizer.param_groups[0].get("initial_lr", 0.0)), max(rates)
        if not 0 < used < LIMITS["share of the rate"] * given or info.steps < 20 or self.doctor.course.adversarial:
            return
        function = next(iter(getattr(scheduler, "lr_lambdas", ())), None)
        yield found("rate-never-reached", return_of(function) if getattr(function, "__code__", None) else place,
                    given=given, used=used)  # fmt: skip
