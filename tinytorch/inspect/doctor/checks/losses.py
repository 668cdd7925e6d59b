"""What goes into a loss: a softmax too many, a logarithm too few, shapes that broadcast, targets it is not made for."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tinytorch.inspect.doctor.causes import found
from tinytorch.inspect.doctor.checks import Check
from tinytorch.inspect.doctor.finding import Finding
from tinytorch.inspect.doctor.source import option_at
from tinytorch.inspect.doctor.watch import array_of, root_of

__all__ = ["ArgumentsOfLoss", "InputOfLoss", "OrderOfLoss", "ShapesOfLoss", "TargetsOfLoss"]


#: Ops that must not come last before a loss of a kind, and the row of what that means.
_WRONG = (
    ("class", "_softmax", "softmax-before-cross-entropy/softmax"),
    ("class", "sigmoid", "softmax-before-cross-entropy/sigmoid"),
    ("logit", "sigmoid _softmax", "sigmoid-before-bce-with-logits"),
    ("value", "tanh sigmoid", "saturation/output"),
    ("value", "relu relu6 hardtanh", "relu-on-logits/values"),
    ("class logit", "relu relu6 hardtanh", "relu-on-logits/scores"),
)
#: Between which numbers the results of activations are.
_RANGES = {"relu": (0.0, math.inf), "tanh": (-1.0, 1.0), "sigmoid": (0.0, 1.0)}


class InputOfLoss(Check):
    """The last op before a loss."""

    def __init__(self, doctor: Any) -> None:
        super().__init__(doctor)
        self.seen: Counter[Any] = Counter()
        self.steps = 0

    def traced(self, trace: Any, loss: Any, place: Any) -> None:  # noqa: D102
        self.steps += 1
        for each in trace.losses:
            made = trace.before(each.input)
            x, y = each.input._array, each.target._array
            if each.kind == "value":
                while made is not None and made.name in ("gather", "_index", "_select", "_slice", "take_along_dim"):
                    made = trace.before(made.inputs[0])  # (the values of the actions that were taken)
                low, high = _RANGES.get(made.name if made is not None else "", (-math.inf, math.inf))
                if not y.size or float(((y < low) | (y > high)).mean()) < 0.05:
                    continue
            name = made.name if made is not None else ""
            if each.kind == "nll" and "log_softmax" not in name:
                total = np.exp(np.minimum(x.astype(np.float64), 50)).sum(1 if x.ndim > 1 else 0) if x.size else 1
                if np.abs(total - 1).max() > 0.05:
                    self.seen["nll", name, made.place if "softmax" in name else each.call.place, "", 0] += 1
            elif made is not None and each.kind != "nll":
                classes = x.shape[1] if each.kind == "class" and x.ndim > 1 else 2
                self.seen[each.kind, name, made.place, made.module, classes] += 1

    def finish(self) -> Iterator[Finding]:  # noqa: D102
        for (kind, name, place, module, classes), count in self.seen.items():
            row = next((row for kinds, names, row in _WRONG if kind in kinds.split() and name in names.split()), None)
            if (row is None and kind != "nll") or (count < 2 and self.steps > 1):
                continue
            made, (low, high) = name.strip("_"), _RANGES.get(name, (0.0, 0.0))
            if row is None:
                got = f"the result of {made}" if made else "numbers"
                yield found("nll-without-log-softmax", place, got=got, count=count, steps=self.steps)
            else:
                yield found(row, place, name=name, made=made, of=f" (in {module})" * bool(module), classes=classes,
                            bound=math.log1p((classes - 1) / math.e), low=low, high=high)  # fmt: skip


class ShapesOfLoss(Check):
    """Predictions and targets, or errors and weights, whose shapes differ, and broadcast to all pairs."""

    def __init__(self, doctor: Any) -> None:
        super().__init__(doctor)
        self.seen: dict[Any, tuple[Any, Any, str]] = {}
        self.pairs: dict[Any, tuple[Any, Any, str]] = {}  # the same of shapes that may be meant so

    def traced(self, trace: Any, loss: Any, place: Any) -> None:  # noqa: D102
        def whole(x: Any) -> Any:
            made = trace.maker(x)
            return made.inputs[0] if made is not None and made.name == "_expand" else x

        for each in trace.losses:
            x, y = whole(each.input), whole(each.target)
            apart = x.shape != y.shape and x.numel() == y.numel() > 1 and {x.ndim, y.ndim} == {1, 2}
            if each.kind == "value" and apart:
                self.seen[each.call.place] = tuple(x.shape), tuple(y.shape), "Predictions and targets"
            elif each.kind == "value" and not each.call.module and x.numel() == y.numel() < _numbers(x.shape, y.shape):
                self.pairs[each.call.place] = tuple(x.shape), tuple(y.shape), each.call.name
        for call in trace.calls:
            if call.name not in ("mul", "div", "add", "sub") or call.module or len(call.inputs) != 2:
                continue
            x, y, out = whole(call.inputs[0]), whole(call.inputs[1]), call.out
            square = out.requires_grad and out.ndim == 2 and out.shape[0] == out.shape[1] > 3
            if not square or {tuple(x.shape), tuple(y.shape)} != {(len(out),), (len(out), 1)}:
                continue
            made = [trace.made.get(id(each)) for each in (x, y)]
            if any(each is not None and each.name == "_unsqueeze" for each in made):
                continue  # all pairs, on purpose
            if any(each.name in ("mean", "sum") and each.inputs and each.inputs[0] is out for each in trace.calls):
                self.seen.setdefault(call.place, (tuple(x.shape), tuple(y.shape), "Tensors"))

    def finish(self) -> Iterator[Finding]:  # noqa: D102
        for place, (x, y, what) in self.seen.items():
            yield found("broadcast-in-loss", place, x=x, y=y, n=max(*x, *y), what=what)
        for place, (x, y, op) in self.pairs.items():
            yield found("broadcast-in-loss/pairs", place, x=x, y=y, n=_numbers(x, y), op=op)


def _numbers(a: Any, b: Any) -> int:
    """Return how many elements there are of two shapes together."""
    return math.prod(np.broadcast_shapes(tuple(a), tuple(b)))


def _addresses(array: Any) -> Any:
    """Return where the elements of an array are, in their order."""
    at = np.full(array.shape, array.__array_interface__["data"][0])
    for k, (size, stride) in enumerate(zip(array.shape, array.strides, strict=True)):
        at += stride * np.arange(size).reshape(-1, *[1] * (array.ndim - 1 - k))
    return at.reshape(-1)


def _places(trace: Any, x: Any) -> Any:
    """Return of which tensor `x`, a vector or a matrix, has the elements or rows, and which; and the last shape of it.

    It is the first one known that has a dimension more.
    """
    rows = np.arange(len(x))  # of x, or their first elements, in what it was made of
    width, seen = x[:1].numel(), 0
    found, shown = (x, rows), ()
    while (call := trace.made.get(id(x))) is not None and call.inputs and call.out is x and seen < 20:
        seen += 1
        a, b = array_of(x), array_of(call.inputs[0])
        if a is None or b is None or b.size > 200_000:
            break
        if call.is_view and root_of(a) is root_of(b):
            order = np.argsort(at := _addresses(b))
            rows = order[np.searchsorted(at[order], _addresses(a)[rows * width])] // width
        elif a.size != b.size and a.shape[:-1] == b.shape[:-1] and call.name in _BY_ROWS and width > 1:
            width = b.shape[-1]  # (a row of each for a row)
        elif a.size != b.size or not (call.is_view or call.name in ("contiguous", "_unsafe_view", "to", *_BY_ROWS)):
            break
        x = call.inputs[0]
        if x.ndim == 2 + (width > 1) and x.shape[-1] == (width if width > 1 else x.shape[-1]):
            found, shown = (x, rows), shown or tuple(x.shape)
    return (*found, shown)


#: Ops that make one row of each row, or one element of each.
_BY_ROWS = ("linear", "relu", "gelu", "tanh", "layer_norm", "dropout", "_dropout", "mul", "add", "div")


class OrderOfLoss(Check):
    """Scores and targets of sequences that are put into one row each, in different orders."""

    def __init__(self, doctor: Any) -> None:
        super().__init__(doctor)
        self.seen: dict[Any, list[Any]] = {}  # by line: steps, shapes, the right order, the share that is right

    def traced(self, trace: Any, loss: Any, place: Any) -> None:  # noqa: D102
        for each in trace.losses:
            if each.kind not in ("class", "nll") or each.input.ndim != 2 or not 8 < len(each.input) < 100_000:
                continue
            targets, j, _ = _places(trace, each.target)
            scores, i, a = _places(trace, each.input) if targets.ndim == 2 else (each.input, j, ())
            if scores.ndim != 3:
                continue
            i, j = np.unravel_index(i, scores.shape[:2]), np.unravel_index(j, targets.shape)
            i, j = [x - x.min() for x in i], [x - x.min() for x in j]
            sizes = [[int(x.max()) + 1 for x in each] for each in (i, j)]
            if sizes[0] != sizes[1]:
                j, sizes[1] = j[::-1], sizes[1][::-1]
            if sizes[0] != sizes[1] or sizes[0][0] == sizes[0][1] or math.prod(sizes[0]) != len(i[0]):
                continue
            own, other = i[0] * sizes[0][1] + i[1], j[0] * sizes[0][1] + j[1]
            if len(np.unique(own)) == len(np.unique(other)) == len(own) and (own != other).any():
                order = np.argsort(other)[own]
                entry = self.seen.setdefault(each.call.place, [0, a, targets.shape, order, each.call.name])
                entry[0] += 1
                entry[3] = max(entry[3], order, key=len)

    def finish(self) -> Iterator[Finding]:  # noqa: D102
        for place, (count, a, b, order, op) in self.seen.items():
            if count > 1:
                share = float((order == np.arange(len(order))).mean())
                yield found("labels-mismatched/positions", place, a=a, b=tuple(b), order=order, op=op, share=share)


class TargetsOfLoss(Check):
    """Targets for which a loss is not made."""

    def __init__(self, doctor: Any) -> None:
        super().__init__(doctor)
        self.outside: dict[Any, tuple[float, float, bool]] = {}  # by line: the range of targets of two classes
        self.single: dict[Any, str] = {}  # lines that apply a softmax to one score
        self.numbers: dict[Any, list[Any]] = {}  # by line: numbers of classes that are compared as values

    def traced(self, trace: Any, loss: Any, place: Any) -> None:  # noqa: D102
        for each in trace.losses:
            y = array_of(each.target)
            if y is None or not y.size:
                continue
            if each.kind in ("logit", "prob") and (y.min() < -0.01 or y.max() > 1.01):
                low, high, few = self.outside.get(each.call.place, (0.0, 1.0, True))
                few &= len(np.unique(y.reshape(-1)[:1000])) <= 20  # labels rather than measurements
                self.outside[each.call.place] = min(low, float(y.min())), max(high, float(y.max())), few
            source = self._labels(trace, each.target) if each.kind == "value" else None
            if source is not None and each.target.numel() <= 4 * source.size:  # (else one-hot codes)
                self.numbers.setdefault(each.call.place, []).append(np.unique(source))
        for call in trace.calls:
            if call.name in ("_log_softmax", "_softmax") and call.inputs and call.out.requires_grad:
                x, dim = call.inputs[0], call.args[1]
                if isinstance(dim, int) and x.ndim and x.shape[dim] == 1 < x.numel():
                    self.single[call.place] = call.name.strip("_")

    @staticmethod
    def _labels(trace: Any, x: Any) -> Any:
        """Return the integers of which targets were made, within a few ops."""
        source = trace.source(x)
        for _ in range(8):
            if source is None or not source.inputs or not source.inputs[0].dtype.is_floating_point:
                break
            source = trace.maker(source.inputs[0])
        array = array_of(source.inputs[0]) if source is not None and source.inputs else None
        return array if array is not None and array.dtype.kind in "iu" and array.ndim <= 2 else None

    def finish(self) -> Iterator[Finding]:  # noqa: D102
        for place, (low, high, few) in self.outside.items():
            yield found("labels-out-of-range/binary" if few else "wrong-loss/measurements", place, low=low, high=high)
        for place, name in self.single.items():
            yield found("wrong-loss/single", place, name=name)
        for place, seen in self.numbers.items():
            values = np.unique(np.concatenate(seen))
            if 3 <= len(values) <= 100 and values[0] == 0 and values[-1] == len(values) - 1:
                yield found("wrong-loss/numbers", place, count=len(values))


_POSITIVE = ("softplus", "exp", "relu", "sigmoid", "abs", "square")  # ops whose results are never negative


def _only(y: Any, *values: float) -> bool:
    return bool(np.isin(y, values).all())


#: What loss modules must not get: the class, a function of the module and its arguments (the last is the op that made
#: the first), the option that is to be changed, and the row of what that means.
_DOMAINS: tuple[tuple[str, Callable[[Any, list[Any]], Any], str, str], ...] = (
    ("CTCLoss", lambda m, a: (a[1] == m.blank).any(), "blank", "blank-in-targets"),
    ("PoissonNLLLoss", lambda m, a: m.log_input and a[-1] in _POSITIVE, "log_input", "log-input/rate"),
    ("KLDivLoss", lambda m, a: a[0].max() > 1e-3 or np.abs(np.exp(a[0]).sum(-1) - 1).max() > 0.05, "reduction",
     "log-input/divergence"),
    ("KLDivLoss", lambda m, a: m.log_target != bool((a[1] <= 0).all()), "log_target", "log-input/target"),
    *[(kind, lambda m, a, at=at: len(a) > at + 1 and _only(a[at], 0, 1) and not _only(a[at], 1), "reduction",
       "wrong-loss/signs")
      for kind, at in (("CosineEmbeddingLoss", 2), ("MarginRankingLoss", 2), ("HingeEmbeddingLoss", 1),
                       ("SoftMarginLoss", 1))],
    ("CrossEntropyLoss", lambda m, a: a[1].dtype.kind == "f" and a[1].ndim == a[0].ndim > 1 < a[0].shape[1]
     and np.abs(a[1].sum(1) - 1).max() > 0.05, "reduction", "wrong-loss/probabilities"),
)  # fmt: skip


class ArgumentsOfLoss(Check):
    """Arguments of loss modules that are not what they take."""

    def __init__(self, doctor: Any) -> None:
        super().__init__(doctor)
        self.seen: dict[int, list[Any]] = {}  # by row: calls with wrong arguments, all calls, the module

    def criterion(self, module: Any, args: Any) -> None:  # noqa: D102
        rows = [k for k, (kind, *_) in enumerate(_DOMAINS) if kind == type(module).__name__]
        arrays = [array_of(each) for each in args]
        if not self.watch.tracer.on or not rows or any(x is None or not x.size for x in arrays[:2]):
            return
        made = self.watch.tracer.trace.before(args[0])
        arrays.append(made.name if made is not None else "")
        for k in rows:
            entry = self.seen.setdefault(k, [0, 0, module])
            entry[0] += bool(_DOMAINS[k][1](module, arrays))
            entry[1] += 1

    def finish(self) -> Iterator[Finding]:  # noqa: D102
        for k, (wrong, count, module) in self.seen.items():
            kind, _, option, row = _DOMAINS[k]
            if wrong > 0.9 * count and count > 1:
                place = option_at(self.watch.made_at.get(id(module)), option)
                yield found(row, place, kind=kind, wrong=wrong, count=count, module=module)
