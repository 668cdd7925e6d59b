"""What goes into a loss: a softmax too many, a logarithm too few, shapes that broadcast, labels."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tinytorch.inspect.doctor.checks import Check
from tinytorch.inspect.doctor.finding import Suspicion, Trial
from tinytorch.inspect.doctor.patches import LinearOutput, LogInput, MatchShapes, NoSoftmax

__all__ = ["InputOfLoss", "ShapesOfLoss"]


_JUDGES = ("scores_better", "learns_better")


class _Seen(NamedTuple):
    kind: str
    made: str  # the op that made the input
    place: Any
    loss_place: Any
    module: str
    classes: int


class _Wrong(NamedTuple):
    """An op that must not come last before a loss of a kind."""

    kind: str
    made: str
    cause: str
    text: str
    remedy: str
    rank: int = 1


_SCORES = "The scores went through {made}{of} before the loss: scores below zero are lost, and an output that is zero "
_WRONG = (
    _Wrong("class", "_softmax", "softmax-before-cross-entropy",
           "The predictions went through softmax{of} before cross_entropy, which applies log_softmax itself: the loss "
           "of {classes} classes cannot fall below {bound}, and the gradients are small.",
           "return self.fc(x)  # scores, without softmax\nloss = F.cross_entropy(scores, y)"),
    _Wrong("class", "sigmoid", "softmax-before-cross-entropy",
           "The predictions went through sigmoid{of} before cross_entropy, which takes any numbers: scores between 0 "
           "and 1 cannot tell classes apart by more than a factor of e.",
           "return self.fc(x)  # scores, without sigmoid", 2),
    _Wrong("logit", "sigmoid _softmax", "sigmoid-before-bce-with-logits",
           "The predictions went through {made}{of} before binary_cross_entropy_with_logits, which applies a sigmoid "
           "itself: no probability below 0.5 is possible.",
           "loss = F.binary_cross_entropy_with_logits(scores, y)  # scores without sigmoid"),
    _Wrong("value", "tanh sigmoid", "saturation",
           "The predictions went through {made}{of} before the loss, but many targets are outside its range, from "
           "{low} to {high}: it is driven into its flat parts.",
           "return scale * torch.tanh(x)  # or predictions without it"),
    _Wrong("value", "relu relu6 hardtanh", "relu-on-logits",
           "The predictions went through {made}{of} before the loss: targets below zero cannot be reached, and an "
           "output that is zero for all samples gets no gradient.", "return self.fc(x)  # predictions, without relu"),
    *[_Wrong(kind, "relu relu6 hardtanh", "relu-on-logits", _SCORES + "for all samples gets no gradient.",
             "return self.fc(x)  # scores, without relu") for kind in ("class", "logit")],
)  # fmt: skip


class InputOfLoss(Check):
    """The last op before a loss."""

    causes = ("softmax-before-cross-entropy", "sigmoid-before-bce-with-logits", "nll-without-log-softmax",
              "relu-on-logits", "saturation")  # fmt: skip
    #: Between which numbers the results of activations are.
    RANGES: ClassVar[dict[str, tuple[float, float]]] = {
        "relu": (0.0, math.inf), "tanh": (-1.0, 1.0), "sigmoid": (0.0, 1.0),
    }  # fmt: skip

    def __init__(self, doctor: Any) -> None:
        super().__init__(doctor)
        self.seen: dict[_Seen, int] = {}
        self.steps = 0
        self.wrong_nll: dict[Any, tuple[str, int, Any]] = {}

    def traced(self, trace: Any, loss: Any, place: Any) -> None:  # noqa: D102
        self.steps += 1
        for each in trace.losses:
            made = trace.before(each.input)
            if each.kind == "nll" and (made is None or "log_softmax" not in made.name):
                x = each.input._array
                total = np.exp(np.minimum(x.astype(np.float64), 50)).sum(1 if x.ndim > 1 else 0) if x.size else 1
                if np.abs(total - 1).max() > 0.05:
                    name = made.name if made is not None else ""
                    count = self.wrong_nll.get(each.call.place, ("", 0, None))[1]
                    where = made.place if made is not None and "softmax" in name else each.call.place
                    self.wrong_nll[each.call.place] = (name, count + 1, where)
            if each.kind == "value":
                made = _selected_from(trace, made)
                low, high = self.RANGES.get(made.name if made is not None else "", (-math.inf, math.inf))
                y = each.target._array
                if not y.size or float(((y < low) | (y > high)).mean()) < 0.05:
                    continue
            if made is None or each.kind not in ("class", "logit", "value"):
                continue
            classes = each.input.shape[1] if each.kind == "class" and each.input.ndim > 1 else 2
            key = _Seen(each.kind, made.name, made.place, each.call.place, made.module, classes)
            self.seen[key] = self.seen.get(key, 0) + 1

    def finish(self) -> Iterator[Suspicion]:  # noqa: D102
        for seen, count in self.seen.items():
            row = next((row for row in _WRONG if row.kind == seen.kind and seen.made in row.made.split()), None)
            if row is None or (count < 2 and self.steps > 1):
                continue
            made, low, high = seen.made.strip("_"), *self.RANGES.get(seen.made, (0.0, 0.0))
            patch = LinearOutput(seen.module, seen.place) if row.kind == "value" else NoSoftmax(seen.made)
            bound = math.log1p((seen.classes - 1) / math.e)
            yield Suspicion(
                row.cause,
                row.text.format(
                    made=made, of=_of(seen.module), classes=seen.classes, bound=f"{bound:.3g}", low=f"{low:g}",
                    high=f"{high:g}",
                ),
                seen.place,
                row.remedy,
                [f"the loss is at {seen.loss_place}"] if seen.loss_place != seen.place else [],
                [Trial(patch, judge, says=f"without this {made}") for judge in _JUDGES],
                certain=True,
                rank=row.rank,
            )  # fmt: skip
        for place, (name, count, where) in self.wrong_nll.items():
            if count < 2 and self.steps > 1:
                continue
            got = f"the result of {name.strip('_')}" if name else "numbers"
            yield Suspicion(
                "nll-without-log-softmax",
                f"nll_loss takes log-probabilities, but got {got}, whose exponentials do not sum to 1: the loss falls "
                "without bound and is no likelihood.",
                where if "softmax" in name else place,
                "loss = F.nll_loss(F.log_softmax(scores, dim=1), y)  # or F.cross_entropy(scores, y)",
                trials=[Trial(LogInput(), "scores_better", says="with log_softmax")],
                certain=True,
                rank=1,
            )


def _selected_from(trace: Any, call: Any) -> Any:
    """Return the call whose result's elements were selected, such as the values of the actions that were taken."""
    while call is not None and call.name in ("gather", "_index", "_select", "_slice", "take_along_dim"):
        call = trace.before(call.inputs[0])
    return call


def _of(module: str) -> str:
    return f" (in {module})" if module else ""


class ShapesOfLoss(Check):
    """Predictions and targets whose shapes differ, and broadcast."""

    causes = ("broadcast-in-loss",)

    def __init__(self, doctor: Any) -> None:
        super().__init__(doctor)
        self.seen: dict[Any, tuple[tuple[int, ...], tuple[int, ...], int]] = {}
        self.products: dict[Any, tuple[tuple[int, ...], tuple[int, ...]]] = {}  # of errors and weights, by line

    def traced(self, trace: Any, loss: Any, place: Any) -> None:  # noqa: D102
        for each in trace.losses:
            if each.kind != "value":
                continue
            x, y = (self._whole(trace, t) for t in (each.input, each.target))
            if x.shape != y.shape and x.numel() == y.numel() > 1 and {x.ndim, y.ndim} == {1, 2}:
                count = self.seen.get(each.call.place, (0, 0, 0))[2]
                self.seen[each.call.place] = (tuple(x.shape), tuple(y.shape), count + 1)

        for call in trace.calls:
            if call.name not in ("mul", "div", "add", "sub") or call.module or len(call.inputs) != 2:
                continue
            x, y = (self._whole(trace, t) for t in call.inputs)
            square = call.out.requires_grad and call.out.ndim == 2 and call.out.shape[0] == call.out.shape[1] > 3
            if not square or {tuple(x.shape), tuple(y.shape)} != {(len(call.out),), (len(call.out), 1)}:
                continue
            made = [trace.made.get(id(each)) for each in (x, y)]
            if any(each is not None and each.name == "_unsqueeze" for each in made):
                continue  # all pairs, on purpose
            if any(each.name in ("mean", "sum") and each.inputs and each.inputs[0] is call.out for each in trace.calls):
                self.products[call.place] = (tuple(x.shape), tuple(y.shape))

    @staticmethod
    def _whole(trace: Any, x: Any) -> Any:
        made = trace.maker(x)
        return made.inputs[0] if made is not None and made.name == "_expand" else x

    def finish(self) -> Iterator[Suspicion]:  # noqa: D102
        for place, (x, y) in self.products.items():
            if place not in self.seen:
                yield Suspicion(
                    "broadcast-in-loss",
                    f"Tensors of shapes {x} and {y} were broadcast to ({max(*x, *y)}, {max(*x, *y)}) before the mean: "
                    "every element of one is combined with every element of the other.",
                    place,
                    "weight.squeeze(1) * error",
                    certain=True,
                    rank=1,
                )
        for place, (x, y, _) in self.seen.items():
            n = max(*x, *y)
            remedy = "loss = F.mse_loss(pred.squeeze(1), y)" if len(x) == 2 else "loss = F.mse_loss(pred, y.squeeze(1))"
            yield Suspicion(
                "broadcast-in-loss",
                f"Predictions of shape {x} and targets of shape {y} were broadcast to ({n}, {n}): every prediction is "
                "compared with every target, and the best the model can do is the mean of all targets.",
                place,
                remedy,
                trials=[Trial(MatchShapes(), "scores_better", says="with targets of the shape of the predictions"),
                        Trial(MatchShapes(), "learns_better", says="with targets of the shape of the predictions")],
                certain=True,
                rank=1,
            )  # fmt: skip
