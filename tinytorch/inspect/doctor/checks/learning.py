"""Layers: the norms of their gradients, weights and updates, and units that are dead or saturated."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from tinytorch.core.names import module_of
from tinytorch.inspect.doctor.causes import found
from tinytorch.inspect.doctor.checks import Check
from tinytorch.inspect.doctor.checks.data import Inputs
from tinytorch.inspect.doctor.finding import Finding
from tinytorch.inspect.doctor.limits import LIMITS
from tinytorch.inspect.doctor.place import here
from tinytorch.inspect.doctor.source import assigned_at
from tinytorch.inspect.doctor.watch import array_of, norm_of

__all__ = ["Activations", "Gradients"]


class Gradients(Check):
    """The norms of gradients, weights and updates of each layer, in the steps that are traced."""

    def __init__(self, doctor: Any) -> None:
        super().__init__(doctor)
        self.norms: dict[str, list[tuple[int, float, float, float]]] = {}  # gradient, weight, update
        self.totals: list[float] = []
        self.before: dict[str, Any] = {}
        self.step_place: Any = None
        self.first: dict[int, Any] = {}  # the first values of recurrent weights
        self.squashed_at: Any = None  # the line that applies a sigmoid or tanh in most layers

    def traced(self, trace: Any, loss: Any, place: Any) -> None:  # noqa: D102
        lines = [call.place for call in trace.calls if call.name in ("sigmoid", "tanh")]
        if self.squashed_at is None and len(lines) >= 3 and lines.count(lines[0]) > len(lines) // 2:
            self.squashed_at = lines[0]

    def forward_begins(self, info: Any, args: Any) -> None:  # noqa: D102
        if self.watch.backwards == 0:
            for name, p in info.parameters.items():
                if "weight_hh" in name:
                    self.first.setdefault(id(p), p._array.copy())

    def _named(self, info: Any) -> list[tuple[str, Any]]:
        ids = info.ids
        every = [(f"{model.name}.{name}", p) for model in self.watch.models.values()
                 for name, p in model.parameters.items() if id(p) in ids]  # fmt: skip
        every = every or [(f"parameter {k}", p) for k, p in enumerate(info.params)]
        return list({id(p): (name, p) for name, p in every}.values())[:200]

    def step_begins(self, info: Any) -> None:  # noqa: D102
        self.before = {}
        if not self.watch.tracer.on:
            return
        self.step_place = self.step_place or here()
        for name, p in self._named(info):
            g, w = array_of(p._grad), array_of(p)
            if g is not None and w is not None and w.dtype.kind == "f":
                self.before[name] = (w.copy(), norm_of(g), norm_of(w))
        self.totals.append(math.hypot(*[gradient for _, gradient, _ in self.before.values()]))
        if not math.isfinite(self.totals[-1]):
            self.doctor.note_broken()

    def step_ends(self, info: Any) -> None:  # noqa: D102
        for name, p in self._named(info) if self.before else ():
            known = self.before.get(name)
            if known is not None and known[0].shape == p._array.shape:
                update = norm_of(np.subtract(p._array, known[0], out=known[0]))
                self.norms.setdefault(name, []).append((self.watch.backwards, known[1], known[2], update))
        self.before = {}

    def series(self) -> dict[str, Any]:  # noqa: D102
        names = ("step", "gradient", "weight", "update")
        return {
            name: {each: [row[k] for row in rows] for k, each in enumerate(names)} for name, rows in self.norms.items()
        }

    def finish(self) -> Iterator[Finding]:  # noqa: D102
        course = self.doctor.course
        poor = course.stagnates or course.diverges
        if course.adversarial or not self.totals:
            return
        if poor or max(self.totals[:3]) > 1e6:
            yield from self._explode()
        if poor:
            yield from self._forgets()
            yield from self._vanish()

    def _explode(self) -> Iterator[Finding]:
        finite = [x for x in self.totals if math.isfinite(x)]
        first = self.totals[0] if math.isfinite(self.totals[0]) else math.inf
        largest = max(finite, default=0.0)
        if first < 50 and not (largest > 1e3 and largest > 100 * max(first, 1)):
            return
        deep = max(self.norms, key=lambda name: max(row[1] for row in self.norms[name]), default="")
        weight = next((assigned_at(info.module.get_submodule(name.rpartition(".")[0]), name.rpartition(".")[2])
                       for info in self.watch.models.values() for name in info.parameters
                       if f"{info.name}.{name}" == deep), None)  # fmt: skip
        begun, course, usual = self.doctor.initialized_at(), self.doctor.course, self.doctor.untrained
        large = any(each.largest() > LIMITS["largest input"] for each in self.doctor.checks if isinstance(each, Inputs))
        wild = not large and usual and course.begin > 1000 * usual
        yield found("gradients-explode/first" if wild else "gradients-explode", begun or weight or self.step_place,
                    first=first, largest=largest, deep=deep, begin=course.begin, usual=usual,
                    rank=5 if first >= 50 else 6)  # fmt: skip

    def _forgets(self) -> Iterator[Finding]:
        """Find recurrent layers whose weights make a state small within a few steps."""
        for info in self.watch.models.values():
            for path, module in info.module.named_modules():
                weight = getattr(module, "weight_hh_l0", None)
                if type(module).__name__ != "RNN" or weight is None:
                    continue
                radius = float(np.abs(np.linalg.eigvals(self.first.get(id(weight), weight._array))).max())
                if radius < LIMITS["spectral radius"]:
                    place = self.watch.filled_at(weight) or self.watch.made_at.get(id(module))
                    yield found("gradients-vanish/recurrent", place, model=info.name, path=path, radius=radius,
                                left=radius**10)  # fmt: skip

    def _vanish(self) -> Iterator[Finding]:
        rows = [(name, each[min(1, len(each) - 1)]) for name, each in self.norms.items()
                if name.endswith("weight") or "weight_hh" in name or "weight_ih" in name]  # fmt: skip
        ratios = [row[1] / max(row[2], 1e-12) for _, row in rows]
        if len(rows) < 4 or not 0 < ratios[0] <= 1e-3 * ratios[-1]:
            return
        (first, one), (last, other) = rows[0], rows[-1]
        made = self.doctor.made_of("Sigmoid Tanh Hardtanh Softsign")
        place = self.squashed_at or self.doctor.initialized_at() or made
        yield found("gradients-vanish/layers", place, first=first, last=last, one=one[1], other=other[1],
                    ratio=ratios[-1] / ratios[0], count=len(rows))  # fmt: skip


class Activations(Check):
    """Units that are zero for all inputs, or in the flat parts of their functions."""

    def __init__(self, doctor: Any) -> None:
        super().__init__(doctor)
        self.shares: dict[Any, list[tuple[int, float]]] = {}  # by module, line and op: of units without a gradient
        self.grown: dict[Any, Any] = {}  # the line of the program that multiplies what goes into them

    def traced(self, trace: Any, loss: Any, place: Any) -> None:  # noqa: D102
        ends = {id(trace.before(each.input)) for each in trace.losses}
        for call in trace.calls:
            out = array_of(call.out) if call.name in ("relu", "tanh", "sigmoid") and id(call) not in ends else None
            if out is None or out.ndim < 2 or out.shape[0] < 4 or not call.out.requires_grad:
                continue
            if call.name == "relu":
                flat = (out == 0).all(axis=tuple(k for k in range(out.ndim) if k != (1 if out.ndim != 3 else 2)))
            else:
                flat = np.abs(out) > 0.98 if call.name == "tanh" else np.abs(out - 0.5) > 0.49
            key = (call.module, call.place, call.name)
            self.shares.setdefault(key, []).append((self.watch.backwards, float(flat.mean())))
            if key not in self.grown:
                self.grown[key] = _grown_at(trace, call)

    def series(self) -> dict[str, Any]:  # noqa: D102
        return {
            f"{name} {module or place}": {"step": [x[0] for x in rows],
                                          "dead" if name == "relu" else "saturated": [x[1] for x in rows]}
            for (module, place, name), rows in self.shares.items()
        }  # fmt: skip

    def finish(self) -> Iterator[Finding]:  # noqa: D102
        course = self.doctor.course
        rows = {
            "relu-dead": {key: (rows[-1][1], rows[0][1]) for key, rows in self.shares.items() if key[2] == "relu"},
            "saturation/units": {key: (max(rows[0][1], rows[-1][1]), rows[0][1]) for key, rows in self.shares.items()
                                 if key[2] != "relu"},
        }  # fmt: skip
        for row, table in rows.items():
            key = max(table, key=lambda key: table[key], default=None)
            most, sure = LIMITS[row]
            if key is None or table[key][0] <= most or course.adversarial:
                continue
            (module, place, name), (share, begun) = key, table[key]
            early = row == "relu-dead" and begun > 0.7
            each = found(row, self.doctor.initialized_at() or self.grown[key] or place, share=share, begun=begun,
                         name=name, module=f" in {module}" * bool(module), certain=share > sure and course.stagnates,
                         rank=3 if early else None)  # fmt: skip
            if row == "relu-dead" and not early:
                each.trials.reverse()
            yield each


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
