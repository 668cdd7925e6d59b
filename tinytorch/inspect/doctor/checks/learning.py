"""Learning as a whole: rates, gradients by depth, units that are dead or saturated, a loss that stays at chance."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from tinytorch.core.names import module_of
from tinytorch.inspect.doctor.checks import Check
from tinytorch.inspect.doctor.finding import Suspicion, Trial
from tinytorch.inspect.doctor.patches import (
    AddTerm,
    Clip,
    FlipSign,
    Leaky,
    Orthogonal,
    Rate,
    Rectify,
    Reset,
    ScaleGradients,
    Smaller,
)
from tinytorch.inspect.doctor.place import here
from tinytorch.inspect.doctor.source import assigned_at, option_at, value_at
from tinytorch.inspect.doctor.trace import LossCall
from tinytorch.inspect.doctor.watch import array_of, norm_of, value_of

__all__ = ["Activations", "Gradients", "Outcome", "Sign"]


class Gradients(Check):
    """The norms of gradients, weights and updates of each layer, in the steps that are traced."""

    causes = ("gradients-explode", "gradients-vanish")

    def __init__(self, doctor: Any) -> None:
        super().__init__(doctor)
        self.steps: list[int] = []
        self.norms: dict[str, list[tuple[int, float, float, float]]] = {}  # gradient, weight, update
        self.totals: list[tuple[int, float]] = []
        self.before: dict[str, Any] = {}
        self.step_place: Any = None
        self.first: dict[int, Any] = {}  # the first values of recurrent weights
        self.squashed_at: Any = None  # the line that applies a sigmoid or tanh in most layers

    def traced(self, trace: Any, loss: Any, place: Any) -> None:  # noqa: D102
        lines = [call.place for call in trace.calls if call.name in ("sigmoid", "tanh")]
        if self.squashed_at is None and len(lines) >= 3 and lines.count(lines[0]) > len(lines) // 2:
            self.squashed_at = lines[0]

    def _named(self, info: Any) -> list[tuple[str, Any]]:
        ids = info.ids
        found = [(f"{model.name}.{name}", p) for model in self.watch.models.values()
                 for name, p in model.parameters.items() if id(p) in ids]  # fmt: skip
        if not found:
            found = [(f"parameter {k}", p) for k, p in enumerate(info.params)]
        return list({id(p): (name, p) for name, p in found}.values())[:200]

    def step_begins(self, info: Any) -> None:  # noqa: D102
        if not self.watch.tracer.on:
            return
        self.step_place = self.step_place or here()
        self.before = {}
        total = 0.0
        for name, p in self._named(info):
            g, w = array_of(p._grad), array_of(p)
            if g is None or w is None or w.dtype.kind != "f":
                continue
            gradient = norm_of(g)
            total = math.hypot(total, gradient)
            self.before[name] = (w.copy(), gradient, norm_of(w))
        self.totals.append((self.watch.backwards, total))
        if not math.isfinite(total):
            self.doctor.note_broken()

    def step_ends(self, info: Any) -> None:  # noqa: D102
        if not self.before:
            return
        for name, p in self._named(info):
            known = self.before.get(name)
            if known is None or known[0].shape != p._array.shape:
                continue
            update = norm_of(np.subtract(p._array, known[0], out=known[0]))
            self.norms.setdefault(name, []).append((self.watch.backwards, known[1], known[2], update))
        self.before = {}

    def series(self) -> dict[str, Any]:  # noqa: D102
        return {
            name: {"step": [x[0] for x in rows], "gradient": [x[1] for x in rows], "weight": [x[2] for x in rows],
                   "update": [x[3] for x in rows]}
            for name, rows in self.norms.items()
        }  # fmt: skip

    def finish(self) -> Iterator[Suspicion]:  # noqa: D102
        course = self.doctor.course
        if course.adversarial:
            return
        if course.stagnates or course.diverges or max([norm for _, norm in self.totals[:3]], default=0.0) > 1e6:
            yield from self._explode(course)
        if course.stagnates or course.diverges:
            yield from self._vanish(course)

    def _explode(self, course: Any) -> Iterator[Suspicion]:
        norms = [norm for _, norm in self.totals]
        if not norms:
            return
        early = [x for x in norms[:3] if math.isfinite(x)]
        largest = max([x for x in norms if math.isfinite(x)], default=0.0)
        typical = norms[0] if math.isfinite(norms[0]) else math.inf
        if typical < 50 and not (largest > 1e3 and largest > 100 * max(early[:1], default=1)):
            return
        deep = max(self.norms, key=lambda name: max(row[1] for row in self.norms[name]), default="")
        yield Suspicion(
            "gradients-explode",
            f"The norm of the gradient was {early[0] if early else largest:.3g} in the first step and up to "
            f"{largest:.3g} later, most of it in {deep}.",
            self.doctor.initialized_at() or self._declared(deep) or self.step_place,
            "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # before optimizer.step()",
            trials=[Trial(Clip(1.0), "fits", says="with the gradient's norm clipped to 1"),
                    Trial(Clip(0.1), "fits", says="with the gradient's norm clipped to 0.1"),
                    *([Trial(Smaller(0.5), "fits", says="with initial weights half as large")] * (typical > 1e6))],
            rank=5 if typical >= 100 else 6,
        )  # fmt: skip

    def _declared(self, name: str) -> Any:
        """Return the line of a model's class of the program that makes a parameter."""
        for info in self.watch.models.values():
            path = name.removeprefix(info.name + ".")
            if path in info.parameters:
                return assigned_at(info.module.get_submodule(path.rpartition(".")[0]), path.rpartition(".")[2])
        return None

    def _forgets(self) -> Iterator[Suspicion]:
        """Find recurrent layers whose weights make a state small within a few steps."""
        for info in self.watch.models.values():
            for path, module in info.module.named_modules():
                weight = getattr(module, "weight_hh_l0", None)
                if type(module).__name__ != "RNN" or weight is None:
                    continue
                radius = float(np.abs(np.linalg.eigvals(self.first.get(id(weight), weight._array))).max())
                if radius < 0.4:
                    yield Suspicion(
                        "gradients-vanish",
                        f"The recurrent weights of {info.name}.{path} began with a spectral radius of {radius:.2g}: "
                        f"after ten steps a gradient is {radius**10:.1g} of what it was.",
                        self.watch.filled_at(weight) or self.watch.made_at.get(id(module)),
                        "nn.init.orthogonal_(rnn.weight_hh_l0)  # or nn.GRU, nn.LSTM",
                        trials=[Trial(Orthogonal(), "fits", says="with orthogonal recurrent weights")],
                        rank=4,
                    )

    def forward_begins(self, info: Any, args: Any) -> None:  # noqa: D102
        if self.watch.backwards == 0:
            for name, p in info.parameters.items():
                if "weight_hh" in name and id(p) not in self.first:
                    self.first[id(p)] = p._array.copy()

    def _vanish(self, course: Any) -> Iterator[Suspicion]:
        yield from self._forgets()
        rows = [(name, each[min(1, len(each) - 1)]) for name, each in self.norms.items()
                if name.endswith("weight") or "weight_hh" in name or "weight_ih" in name]  # fmt: skip
        if len(rows) < 4:
            return
        first, last = rows[0], rows[-1]
        ratios = [row[1] / max(row[2], 1e-12) for _, row in rows]
        if not ratios[-1] or ratios[0] > 1e-3 * ratios[-1] or ratios[0] == 0:
            return
        yield Suspicion(
            "gradients-vanish",
            f"The gradient of {first[0]} is {first[1][1]:.2g} and that of {last[0]} {last[1][1]:.2g}: relative to the "
            f"weights it shrinks by {ratios[-1] / ratios[0]:.2g} on its way back through {len(rows)} layers.",
            self.squashed_at or self.doctor.initialized_at() or self.doctor.made_of("Sigmoid Tanh Hardtanh Softsign"),
            "nn.ReLU() instead of nn.Sigmoid(), with nn.init.kaiming_normal_; or normalization, or x + block(x)",
            trials=[Trial(Rectify(), "fits", says="with ReLUs and weights of Kaiming's initialization")],
            rank=4,
        )


class Activations(Check):
    """Units that are zero for all inputs, or in the flat parts of their functions."""

    causes = ("relu-dead", "saturation")

    def __init__(self, doctor: Any) -> None:
        super().__init__(doctor)
        self.dead: dict[Any, list[tuple[int, float]]] = {}
        self.flat: dict[Any, list[tuple[int, float]]] = {}
        self.grown: dict[Any, Any] = {}  # the line of the program that multiplies what goes into them

    def traced(self, trace: Any, loss: Any, place: Any) -> None:  # noqa: D102
        ends = set()
        for each in trace.losses:
            made = trace.before(each.input)
            if made is not None:
                ends.add(id(made))
        for call in trace.calls:
            if call.name not in ("relu", "tanh", "sigmoid") or id(call) in ends:
                continue
            out = array_of(call.out)
            if out is None or out.ndim < 2 or out.shape[0] < 4 or not call.out.requires_grad:
                continue
            key = (call.module, call.place, call.name)
            if call.name == "relu":
                units = (out == 0).all(axis=tuple(k for k in range(out.ndim) if k != (1 if out.ndim != 3 else 2)))
                self.dead.setdefault(key, []).append((self.watch.backwards, float(units.mean())))
            else:
                far = np.abs(out) > 0.98 if call.name == "tanh" else np.abs(out - 0.5) > 0.49
                self.flat.setdefault(key, []).append((self.watch.backwards, float(far.mean())))
                if key not in self.grown:
                    self.grown[key] = _grown_at(trace, call)

    def series(self) -> dict[str, Any]:  # noqa: D102
        found = {}
        for table, kind in ((self.dead, "dead"), (self.flat, "saturated")):
            for (module, place, name), rows in table.items():
                found[f"{name} {module or place}"] = {"step": [x[0] for x in rows], kind: [x[1] for x in rows]}
        return found

    def finish(self) -> Iterator[Suspicion]:  # noqa: D102
        course = self.doctor.course
        if course.adversarial:
            return
        dead = {key: rows for key, rows in self.dead.items() if rows[-1][1] > 0.75}
        if dead:
            key = max(dead, key=lambda key: dead[key][-1][1])
            module, place, _ = key
            share, begun = dead[key][-1][1], dead[key][0][1]
            since = "from the beginning" if begun > 0.7 else f"{begun:.0%} in the first step"
            yield Suspicion(
                "relu-dead",
                f"{share:.0%} of the units of the ReLU{' ' + module if module else ''} are zero for all inputs "
                f"({since}): no gradient flows through them.",
                self.doctor.initialized_at() or place,
                "nn.LeakyReLU(0.1)  # or a bias of zero, and a lower learning rate",
                trials=[Trial(Reset(), "learns_better", says="with the usual initial weights"),
                        Trial(Leaky(), "learns_better", says="with leaky ReLUs")][:: 1 if begun > 0.7 else -1],
                certain=share > 0.98 and course.stagnates,
                rank=3 if begun > 0.7 else 5,
            )  # fmt: skip
        flat = {key: rows for key, rows in self.flat.items() if max(rows[0][1], rows[-1][1]) > 0.6}
        if flat:
            key = max(flat, key=lambda key: flat[key][0][1])
            module, place, name = key
            share = max(flat[key][0][1], flat[key][-1][1])
            yield Suspicion(
                "saturation",
                f"{share:.0%} of the outputs of {name}{' in ' + module if module else ''} are in its flat parts, where "
                "its gradient is almost zero.",
                self.doctor.initialized_at() or self.grown[key] or place,
                "nn.init.xavier_uniform_(layer.weight)  # smaller weights, or inputs of mean 0 and deviation 1",
                trials=[Trial(Reset(), "learns_better", says="with the usual initial weights"),
                        Trial(Smaller(0.1), "learns_better", says="with weights a tenth as large")],
                certain=share > 0.95 and course.stagnates,
                rank=4,
            )  # fmt: skip


def _grown_at(trace: Any, call: Any) -> Any:
    """Return the line at which the program multiplies by ten or more what goes into a call; None if none does."""
    for _ in range(6):
        call = trace.maker(call.inputs[0]) if call.inputs else None
        if call is None:
            return None
        if call.name == "mul" and call.inputs and module_of(type(call.owner)).split(".")[0] != "tinytorch":
            before, after = array_of(call.inputs[0]), array_of(call.out)
            if before is not None and after is not None and np.abs(after).mean() >= 10 * np.abs(before).mean() > 0:
                return call.place
    return None


class Sign(Check):
    """A loss that is maximised."""

    causes = ("loss-sign",)

    def __init__(self, doctor: Any) -> None:
        super().__init__(doctor)
        self.negative: dict[Any, int] = {}
        self.steps = 0
        self.made_at: Any = None  # the line that subtracts, or else computes, the loss
        self.subtracts = False

    def traced(self, trace: Any, loss: Any, place: Any) -> None:  # noqa: D102
        self.steps += 1
        last = trace.maker(loss)
        if last is not None:
            self.made_at, self.subtracts = last.place, last.name == "sub" and len(last.inputs) == 2
        for each in trace.losses[-1:]:
            if each.call.name == "sub":
                continue
            made = trace.made.get(id(loss))
            out = array_of(each.call.out)
            if made is None or out is None or out.size != 1 or not trace.leads(each.call.out, loss):
                continue
            value = array_of(loss)
            if value is not None and value.size == 1 and float(out) > 0 > float(value):
                self.negative[made.place] = self.negative.get(made.place, 0) + 1

    def finish(self) -> Iterator[Suspicion]:  # noqa: D102
        course, watch = self.doctor.course, self.watch
        if course.count >= 20 and course.last < -20 * max(abs(course.first), 1.0) and self.made_at is not None:
            other = [Trial(AddTerm(self.made_at), "bounded", says="with the term added")] if self.subtracts else []
            yield Suspicion(
                "loss-sign",
                f"The loss falls without bound, from {course.first:.4g} to {course.last:.4g}: a term of it has the "
                "wrong sign.",
                self.made_at,
                "loss = error + weight * penalty  # or the negative of a likelihood: -log_prob.mean()",
                trials=[*other, Trial(FlipSign(), "bounded", says="with the sign of the loss changed")],
                certain=True,
                rank=2,
            )
            return
        if not course.supervised or course.adversarial or watch.backwards < 5:
            return
        maximizing = [info for info in watch.optimizers.values()
                      if any(group.get("maximize") for group in info.optimizer.param_groups)]  # fmt: skip
        says = "with the sign of the loss changed"
        trials = [Trial(FlipSign(), "flips", says=says), Trial(FlipSign(), "scores_better", says=says)]
        if maximizing:
            yield Suspicion(
                "loss-sign", "The optimizer maximises the loss (maximize=True), which measures an error.",
                maximizing[0].place, "torch.optim.SGD(model.parameters(), lr=...)  # without maximize=True",
                trials=trials, certain=course.last > course.first, rank=1,
            )  # fmt: skip
        elif self.negative:
            place = max(self.negative, key=lambda each: self.negative[each])
            yield Suspicion(
                "loss-sign", "backward() starts from the negative of a loss that measures an error: the steps make "
                "the error larger.", place, "loss.backward()  # of the loss itself, not of -loss",
                trials=trials, certain=True, rank=1,
            )  # fmt: skip
        elif course.diverges or (course.last > 1.5 * course.first > 0):
            yield Suspicion(
                "loss-sign", f"The loss grows from {course.first:.4g} to {course.last:.4g}.",
                watch.updated_at or course.place,
                "w -= lr * w.grad  # the step goes against the gradient", trials=trials[:1], rank=3,
            )  # fmt: skip


class Outcome(Check):
    """A loss that does not fall, or grows, and is not explained by anything else."""

    causes = ("learning-rate-too-high", "learning-rate-too-low", "loss-at-chance")

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
                self.random_at = self._drawn_at(trace, y)

    def _drawn_at(self, trace: Any, y: Any) -> Any:
        """Return the line that drew labels at random, if nothing else was computed from them."""
        used = [call for call in trace.calls if any(each is y for each in call.inputs) and call.name not in
                ("_index", "_slice", "_split", "_select", *LossCall.KINDS) and not call.is_view]  # fmt: skip
        return None if used else self.watch.filled_at(y)

    def finish(self) -> Iterator[Suspicion]:  # noqa: D102
        course, watch = self.doctor.course, self.watch
        if course.adversarial or (watch.backwards < 8 and not course.broken):
            return
        stepped = [info for info in watch.optimizers.values() if info.steps >= 2]
        info = stepped[0] if stepped else None
        place = (option_at(info.place, "lr", 1) if info is not None else self._manual_rate()) or course.place
        rate = info.rate if info is not None else math.nan
        # (The highest: a schedule may begin with small ones.)
        first_rate = max([each for _, each in watch.rates[: max(len(watch.rates) // 2, 1)]], default=rate)
        usual = _usual(info) if info is not None and first_rate > 0 else ()
        if info is None and watch.updated_at is not None and (course.diverges or course.stagnates):
            yield Suspicion(
                "learning-rate-too-high",
                f"The loss begins at {course.first:.4g} and is {course.last:.4g} after {watch.backwards} steps.",
                place,
                "lr = lr / 10",
                trials=[Trial(ScaleGradients(factor), "fits", says=f"with updates {round(1 / factor)} times as small")
                        for factor in (0.1, 0.01, 0.001)],
                rank=5,
            )  # fmt: skip
        low, high = (min(usual), max(usual)) if usual else (0.0, math.inf)
        unruly = course.diverges or (course.spikes and course.stagnates)
        if first_rate > high or not usual:  # (with a usual rate, a loss that does not fall has other causes)
            unruly |= course.spikes or course.stagnates or self._jumps(course)
        if info is not None and (unruly or first_rate > 20 * high) and first_rate > 0.2 * low:
            grows = "is not finite" if course.broken else f"is {course.last:.4g}"
            yield Suspicion(
                "learning-rate-too-high",
                f"The loss begins at {course.first:.4g} and {grows} after {watch.backwards} steps with a rate of "
                f"{first_rate:.3g}.",
                place,
                f"lr={_rounded(first_rate / 10)}",
                trials=[Trial(Rate(factor), "fits", says=f"with a learning rate of {_rounded(first_rate * factor)}",
                              remedy=f"lr={_rounded(first_rate * factor)}")
                        for factor in _factors([x / first_rate for x in usual if x < 0.5 * first_rate], (0.1, 0.01))],
                rank=3 if first_rate > 20 * high else 5,
            )  # fmt: skip
        slow = course.supervised and course.count >= 20 and not course.broken and course.fell < 0.3
        # (PyTorch's quickstart has a tenth of the usual rate, and learns slowly.)
        if info is not None and slow and first_rate < 0.05 * low and (course.count >= 50 or first_rate < 0.01 * low):
            yield Suspicion(
                "learning-rate-too-low",
                f"The loss fell by {max(course.fell, 0):.1%} in {watch.backwards} steps with a rate of "
                f"{first_rate:.3g}.",
                place,
                f"lr={_rounded(first_rate * 100)}",
                trials=[Trial(Rate(factor), "fits", says=f"with a learning rate of {_rounded(first_rate * factor)}",
                              remedy=f"lr={_rounded(first_rate * factor)}")
                        for factor in _factors([x / first_rate for x in usual if x > 2 * first_rate], (10.0, 100.0))],
                rank=5,
            )  # fmt: skip
        chance = math.log(self.classes) if self.classes >= 2 else math.inf
        tail = self.losses[-max(len(self.losses) // 3, 1) :]
        if (
            course.supervised
            and course.count >= 100
            and not first_rate < 0.2 * low  # (with a low rate, it may take longer)
            and not course.broken
            and abs(float(np.mean(tail)) - chance) < 0.05 * chance
            and min(self.losses) > 0.9 * chance
            and course.fell < 0.1
        ):
            drawn = "" if self.random_at is None else "The labels are random numbers. "
            yield Suspicion(
                "loss-at-chance",
                f"{drawn}After {watch.backwards} steps the loss is {float(np.mean(tail)):.4g}; guessing among "
                f"{self.classes} classes gives ln {self.classes} = {chance:.4g}. The model has learned nothing.",
                self.random_at or self.loss_place,
                "# try to overfit one batch; look at inputs and labels side by side",
                certain=True,
                rank=8,
            )

    def _manual_rate(self) -> Any:
        """Return where the rate of a program is written that updates its parameters itself."""
        place = self.watch.updated_at
        if place is None:
            return None
        names = [word for word in re.findall(r"[A-Za-z_]\w*", place.text) if "lr" in word.lower() or "rate" in word]
        found = [value_at(place, name) for name in names]
        return next((each for each in found if each is not None), place)

    def _jumps(self, course: Any) -> bool:
        """Return whether the loss goes up and down by more than it has fallen."""
        values = np.array(course.values[-max(course.count // 2, 1) :])
        return course.count >= 20 and float(values.std()) > max(course.first - course.last, 0) and course.fell < 0.5


def _usual(info: Any) -> tuple[float, ...]:
    """Return the learning rates with which optimizers of a kind usually work."""
    adaptive = "betas" in info.optimizer.defaults or "alpha" in info.optimizer.defaults
    momentum = info.optimizer.defaults.get("momentum")
    return (0.001, 0.01) if adaptive else (0.01, 0.1) if momentum else (0.1, 0.01)


def _factors(first: list[float], then: tuple[float, ...]) -> list[float]:
    """Return factors to try, without those that are almost the same."""
    found: list[float] = []
    for each in (*first, *then):
        if math.isfinite(each) and each > 0 and all(abs(math.log(each / other)) > 0.5 for other in found):
            found.append(each)
    return found


def _rounded(x: float) -> str:
    return f"{x:.2g}"
