"""The first number that is not finite: which op made it, of which values, and what would have kept it finite."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tinytorch.inspect.doctor.causes import found
from tinytorch.inspect.doctor.checks import Check
from tinytorch.inspect.doctor.finding import Finding
from tinytorch.inspect.doctor.patches import Patch

__all__ = ["NotFinite"]

_CAUSES = {
    **dict.fromkeys(("exp", "expm1", "exp2", "sinh", "cosh"), "overflow"),
    **dict.fromkeys(("log", "log2", "log10", "log1p"), "log-of-zero"),
    **dict.fromkeys(("sqrt", "rsqrt", "_norm"), "sqrt-at-zero"),
    **dict.fromkeys(("div", "reciprocal", "remainder"), "division-by-zero"),
}  # fmt: skip


def _cause(op: dict[str, Any], least: float) -> str | None:
    """Return what went wrong in an op."""
    powers = op["numbers"] if op["name"] == "pow" else ()
    cause = "sqrt-at-zero" if any(0 < abs(n) < 1 for n in powers) else "division-by-zero" if any(
        n < 0 for n in powers) else _CAUSES.get(op["name"])  # fmt: skip
    if (cause == "overflow" and op["backward"]) or not op["ranges"]:
        return None
    return None if cause == "division-by-zero" and least >= 1e-30 and not op["backward"] else cause


class NotFinite(Check):
    """Runs the steps before the first loss that is not finite again, and looks at every op."""

    def finish(self) -> Iterator[Finding]:  # noqa: D102
        doctor, result = self.doctor, None
        step = doctor.broken_at
        for start in dict.fromkeys((doctor.before(step), "first")) if step else ():
            copy = doctor.replay.copies.get(start)
            if copy is not None and not (result and ("op" in result or "step" in result)):
                result = doctor.run(start, [Patch("look")], step - copy.backwards + 1)[0]
        if not result:
            return
        if self.watch.early is not None and "op" not in result and step <= 2:
            name, place, lowest = self.watch.early
            row = "division-by-zero/data" if name == "div" else "log-of-zero/data"
            yield found(row, place, step=step, name=name, least=lowest[-1])
        op = result.get("op")
        least = 0.0 if op is None or not op["least"] else op["least"][-1 if op["name"] == "div" else 0]
        if op is None or (cause := _cause(op, least)) is None:
            return
        (low, high), name = op["ranges"][0], op["name"].strip("_")
        where = f"in {'the backward pass of ' * op['backward']}{name}" + f" in {op['module']}" * bool(op["module"])
        yield found(cause, op["place"], step=step, name=name, op=op["name"], low=low, high=high, least=least,
                    where=where, certain=high < 1e6)  # fmt: skip
