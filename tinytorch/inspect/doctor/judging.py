"""Comparing the steps of a counterfactual with the same steps unchanged."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = ["judged", "score", "series", "tail"]

Result = dict[str, Any]


def series(result: Result, place: Any = None) -> tuple[list[float], list[Any]]:
    """Return the losses and the scores of the line that calls `backward` most often, or of `place`."""
    places = result["places"]
    if not places:
        return [], []
    chosen = place if place in places else max(set(places), key=places.count)
    keep = [k for k, each in enumerate(places) if each == chosen]
    return [result["values"][k] for k in keep], [result["scores"][k] for k in keep]


def tail(values: list[float]) -> float:
    """Return the mean of the last quarter."""
    part = values[-max(len(values) // 4, 1) :]
    return float(np.mean(part)) if part else math.nan


def score(kind: str, scores: list[Any]) -> tuple[float, float] | None:
    """Return the mean score of a kind in the last quarter of the steps, and its error; None if that is not known.

    Args:
        kind: "accuracy", or "error" for the mean squared error.
        scores: those of all steps, each with its kind.
    """
    part = [each for each in scores[-max(len(scores) // 4, 1) :] if each is not None]
    if not part or part[0][0] != kind:
        return None
    values = [each[1] for each in part]
    return float(np.mean(values)), float(np.std(values)) / math.sqrt(len(values))


def judged(judge: str, control: Result | None, other: Result | None, says: str, certain: bool = False) -> str:
    """Return a sentence that says what was proven, or "".

    Args:
        judge: the name of a judge, one of the functions below; "" for a trial that is to prove nothing.
        control: what was seen of the steps unchanged.
        other: what was seen of the steps with something changed.
        says: what was changed.
        certain: whether the mistake is certain: then it is enough that the change helps in almost all steps.
    """
    if not judge or other is None or (control is None and judge != "alone"):
        return ""
    known = {"learns_better": learns_better, "scores_better": scores_better, "finite": finite, "fits": fits,
             "flips": flips, "bounded": bounded}  # fmt: skip
    proof = known[judge](control or {}, other, says)
    if not proof and certain and judge in ("learns_better", "fits"):
        proof = steadily_better(control or {}, other, says)
    return proof


def steadily_better(control: Result, other: Result, says: str) -> str:
    """Prove that the same loss is lower in almost all steps of the second half, if not by much."""
    a, b = series(control)[0], series(other)[0]
    n = min(len(a), len(b))
    if n < 10 or not all(map(math.isfinite, [*a[:n], *b[:n]])):
        return ""
    x, y = np.array(a[n // 2 : n]), np.array(b[n // 2 : n])
    share = float((y < x).mean())
    if share < 0.9 or x.mean() - y.mean() < 0.05 * abs(x.mean()):
        return ""
    return (
        f"{says} the loss is lower in {share:.0%} of the last {len(x)} steps, {y.mean():.4g} rather than {x.mean():.4g}"
    )


def bounded(control: Result, other: Result, says: str) -> str:
    """Prove that a loss that falls without bound no longer does."""
    a, b = series(control)[0], series(other)[0]
    n = min(len(a), len(b))
    if n < 10 or not all(map(math.isfinite, b[:n])):
        return ""
    x, y, size = tail(a[:n]), tail(b[:n]), max(abs(a[0]), abs(b[0]), 1.0)
    if (x < -5 * size or not math.isfinite(x)) and abs(y) < 2 * size:
        return f"{says} the loss after the same {n} steps is {y:.4g} rather than {x:.4g}"
    return ""


def finite(control: Result, other: Result, says: str) -> str:
    """Prove that the losses are finite where they were not."""
    a, b = control["values"], other["values"]
    bad = next((k for k, x in enumerate(a) if not math.isfinite(x)), None)
    broken = bad is not None or "op" in control or "step" in control
    if not broken or len(b) < len(a) or not all(math.isfinite(x) for x in b):
        return ""
    return f"{says} the same {len(b)} steps are finite (loss {b[-1]:.4g})"


def scores_better(control: Result, other: Result, says: str) -> str:
    """Prove that predictions become better; the losses may be of different functions."""
    _, a = series(control)
    values, b = series(other)
    n = min(len(a), len(b))
    if n < 3 or not all(math.isfinite(x) for x in values):
        return ""
    one, two = score("accuracy", a[:n]), score("accuracy", b[:n])
    if one is not None and two is not None:
        (x, noise), (y, other_noise) = one, two
        clear = y - x > 2 * math.hypot(noise, other_noise)
        if clear and (y - x > 0.04 or (y > x + 0.01 and (1 - y) < 0.7 * (1 - x))):
            return f"{says} the accuracy after the same {n} steps is {y:.1%} rather than {x:.1%}"
    one, two = score("error", a[:n]), score("error", b[:n])
    if one is not None and two is not None and two[0] < 0.8 * one[0]:
        return f"{says} the mean squared error after the same {n} steps is {two[0]:.4g} rather than {one[0]:.4g}"
    return ""


def learns_better(control: Result, other: Result, says: str) -> str:
    """Prove that the same loss falls clearly further."""
    a, _ = series(control)
    b, _ = series(other)
    n = min(len(a), len(b))
    if n < 3 or not all(math.isfinite(x) for x in b):
        return ""
    if not all(math.isfinite(x) for x in a):
        return f"{says} the loss stays finite and is {b[-1]:.4g} after {n} steps" if tail(b) < b[0] else ""
    a, b = a[:n], b[:n]
    first, x, y = float(np.mean(a[: max(n // 20, 1)])), tail(a), tail(b)
    start = max(first, float(np.mean(b[:1])))
    noise = float(np.std(a[-max(n // 4, 2) :])) / math.sqrt(max(n // 4, 1))
    if y >= x - 3 * noise:
        return scores_better(control, other, says)
    gained, would = start - x, start - y
    further = y < 0.75 * x if x > 0 and y >= 0 else would > 1.5 * abs(gained)
    if further and would > 0.05 * abs(start):
        return f"{says} the loss after the same {n} steps is {y:.4g} rather than {x:.4g}"
    return scores_better(control, other, says)


def fits(control: Result, other: Result, says: str) -> str:
    """Prove that a loss that does not fall does."""
    a, _ = series(control)
    b, _ = series(other)
    n = min(len(a), len(b))
    if n < 10 or not all(math.isfinite(x) for x in b):
        return ""
    first, x, y = min(a[0], float(np.mean(a[: max(n // 20, 1)]))), tail(a[:n]), tail(b[:n])
    if not math.isfinite(x):
        return f"{says} the loss stays finite and is {y:.4g} after {n} steps" if y < first else ""
    if (first - y > 4 * max(first - x, 0) and y < 0.7 * x) or (0 < y < 0.2 * x and y < 0.5 * first):
        return f"{says} the loss after the same {n} steps is {y:.4g} rather than {x:.4g}"
    better = scores_better(control, other, says)
    return better if first - y > 3 * max(first - x, 0) or not math.isfinite(first) else ""


def flips(control: Result, other: Result, says: str) -> str:
    """Prove that an error falls if the sign of the loss is changed, and grows if not."""
    a, _ = series(control)
    b, _ = series(other)
    n = min(len(a), len(b))
    if n < 3 or not all(math.isfinite(x) for x in b):
        return ""
    x, y, first = abs(tail(a[:n])) if all(map(math.isfinite, a[:n])) else math.inf, abs(tail(b[:n])), abs(b[0])
    if y < 0.8 * first and x > 1.2 * abs(a[0]):
        return f"{says} the error falls from {first:.4g} to {y:.4g} in {n} steps rather than growing to {x:.4g}"
    return ""
