"""The first number that is not finite: which op made it, of which values, and what would have kept it finite."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from tinytorch.inspect.doctor.checks import Check
from tinytorch.inspect.doctor.finding import Suspicion, Trial
from tinytorch.inspect.doctor.patches import Stable, Watching

__all__ = ["NotFinite"]


class _Kind(NamedTuple):
    cause: str
    what: str
    remedy: str
    says: str


def _kind(found: dict[str, Any]) -> _Kind | None:
    """Return what went wrong in an op."""
    name, least, ranges = found["name"], found["least"], found["ranges"]
    if not ranges:
        return None
    low, high = ranges[0]
    if name in ("exp", "expm1", "exp2", "sinh", "cosh") and not found["backward"]:
        return _Kind(
            "overflow", f"{name} of {high:.4g} is beyond the largest float32, 3.4e38",
            "torch.log_softmax(x, dim=-1)  # or logsumexp, or x - x.max(): the largest exponent is then 0",
            f"with the argument of {name} kept below 80",
        )  # fmt: skip
    if name in ("log", "log2", "log10", "log1p"):
        where = "zero" if low == 0 or (name == "log1p" and low == -1) else f"{low:.4g}"
        return _Kind(
            "log-of-zero", f"{name} of {where} is not finite",
            "torch.log(p.clamp(min=1e-8))  # or log_softmax, logsigmoid, xlogy: they need no logarithm of zero",
            f"with the argument of {name} kept above 1e-8",
        )  # fmt: skip
    if name in ("sqrt", "rsqrt", "_norm") or (name == "pow" and any(0 < abs(n) < 1 for n in found["numbers"])):
        if low < 0:
            what = f"the root of {low:.4g} is not a number"
        elif found["backward"]:
            what = f"the gradient of {name.strip('_')} at zero is infinite"
        else:
            what = f"{name.strip('_')} of zero is not finite"
        return _Kind("sqrt-at-zero", what, "torch.sqrt(x + 1e-12)", "with the argument kept above 1e-8")
    if name in ("div", "reciprocal", "remainder") or (name == "pow" and any(n < 0 for n in found["numbers"])):
        divisor = least[-1] if name == "div" else least[0]
        if divisor < 1e-30 or found["backward"]:
            return _Kind(
                "division-by-zero", "a divisor is zero" if divisor == 0 else f"a divisor is {divisor:.3g}",
                "x / (y + 1e-8)  # or x / y.clamp(min=1e-8)", "with divisors kept away from zero by 1e-8",
            )  # fmt: skip
    return None


class NotFinite(Check):
    """Runs the steps before the first loss that is not finite again, and looks at every op."""

    causes = ("overflow", "log-of-zero", "division-by-zero", "sqrt-at-zero")
    found: dict[str, Any] | None = None

    def finish(self) -> Iterator[Suspicion]:  # noqa: D102
        doctor = self.doctor
        step = doctor.broken_at
        if not step:
            return
        for start in dict.fromkeys((doctor.before(step), "first")):
            copy = doctor.replay.copies.get(start)
            if copy is None:
                continue
            result = doctor.run(start, [Watching()], step - copy.backwards + 1)[0]
            if result and ("op" in result or "step" in result):
                break
        else:
            return
        self.found = result
        early = self.watch.early
        if early is not None and "op" not in result and step <= 2:
            name, place, least = early
            which = "divisor" if name == "div" else "argument"
            yield Suspicion(
                "division-by-zero" if name == "div" else "log-of-zero",
                f"The loss is not finite at step {step}, since the data are not: {name} gave numbers that are not "
                f"finite before training (its smallest {which} is {least[-1]:.3g}).",
                place,
                "x / (y + 1e-8)" if name == "div" else "torch.log(x.clamp(min=1e-8))",
                certain=True,
                proven="the arguments of this line are finite, its result is not, and no other op made such numbers",
                rank=1,
            )
        if "op" not in result:
            return
        op = result["op"]
        kind = _kind(op)
        if kind is None:
            return
        place = op["place"]
        values = ", ".join([f"between {low:.4g} and {high:.4g}" for low, high in op["ranges"]])
        inside = f" in {op['module']}" if op["module"] else ""
        direction = "in the backward pass of" if op["backward"] else "in"
        yield Suspicion(
            kind.cause,
            f"The loss is not finite at step {step}: {kind.what} ({direction} {op['name'].strip('_')}{inside}).",
            place,
            kind.remedy,
            [f"its inputs were {values}"],
            [Trial(Stable(op["name"], place), "finite", "before", step, says=kind.says)],
            certain=op["ranges"][0][1] < 1e6,
            rank=1,
        )
