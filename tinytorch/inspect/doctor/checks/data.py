"""Data: not scaled, not shuffled, always the same batch, labels out of range, time lost in loading."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from tinytorch.core.mode import local
from tinytorch.core.tensor import Tensor
from tinytorch.inspect.doctor.checks import Check
from tinytorch.inspect.doctor.finding import Suspicion, Trial
from tinytorch.inspect.doctor.patches import FirstOrder, Normalise, Restore, SameIndex, SameOrder, Shuffle, UnitTargets
from tinytorch.inspect.doctor.place import here, is_users, place_of
from tinytorch.inspect.doctor.source import option_at
from tinytorch.inspect.doctor.trace import tensors_of
from tinytorch.inspect.doctor.watch import array_of

__all__ = ["Batches", "Errors", "Labels", "OneSample", "Orders", "Scale", "SlowLoader"]


class Scale(Check):
    """Inputs of a model whose numbers are large, or of very different sizes."""

    causes = ("inputs-unscaled",)

    def __init__(self, doctor: Any) -> None:
        super().__init__(doctor)
        self.seen: dict[int, tuple[Any, float, float, float, Any]] = {}

    def forward_begins(self, info: Any, args: Any) -> None:  # noqa: D102
        if id(info) in self.seen or not args or not self.watch.tracer.on:
            return
        x = array_of(args[0])
        if x is None or x.dtype.kind != "f" or not x.size or (isinstance(args[0], Tensor) and args[0].requires_grad):
            return
        columns = x.reshape(len(x), -1).astype(np.float64) if x.ndim > 1 else x.reshape(-1, 1).astype(np.float64)
        if not np.isfinite(columns).all():
            return
        largest = float(np.abs(columns).max())
        sizes = columns.std(0) if x.ndim == 2 else columns.std(keepdims=True)
        self.seen[id(info)] = (info, largest, float(sizes.max()), float(columns.mean()), here())

    def finish(self) -> Iterator[Suspicion]:  # noqa: D102
        course = self.doctor.course
        if not course.supervised or course.adversarial:
            return
        for info, largest, deviation, mean, place in self.seen.values():
            if largest <= 20 or (deviation < 8 and abs(mean) < 20):
                continue
            yield Suspicion(
                "inputs-unscaled",
                f"The inputs of {info.name} are as large as {largest:.4g} (standard deviation {deviation:.4g}, mean "
                f"{mean:.4g}); layers are initialized for inputs of about 1.",
                place,
                "x = (x - mean) / std  # of the training data; x / 255 for images",
                trials=[Trial(Normalise(), "learns_better", says="with inputs of mean 0 and standard deviation 1")],
                rank=3,
            )


def _selected(call: Any) -> Any:
    """Return which rows of a tensor a call selects, by an index of integers or a slice; None for any other call."""
    if (
        not call.inputs
        or not call.inputs[0].ndim
        or not isinstance(call.args[1] if len(call.args) > 1 else None, tuple)
    ):
        return None
    if call.name == "_index" and len(call.args[1]) == 1:
        index = call.args[1][0]
        return index if isinstance(index, np.ndarray) and index.dtype.kind == "i" and index.ndim == 1 else None
    if call.name == "_slice" and isinstance(call.out, Tensor) and call.out.ndim == call.inputs[0].ndim:
        rows = call.args[1][0] if call.args[1] else None
        if isinstance(rows, slice) and call.out.shape[1:] == call.inputs[0].shape[1:]:
            return np.arange(len(call.inputs[0]))[rows]
    return None


def _labels(batch: Any) -> Any:
    """Return the array of the labels of a batch: its last tensor of one dimension."""
    found = [array for x in tensors_of(batch) if (array := array_of(x)) is not None and array.ndim == 1]
    return found[-1] if found and isinstance(batch, (list, tuple)) else None


class Orders(Check):
    """Labels that come sorted, and inputs and labels in different orders."""

    causes = ("data-unshuffled", "labels-mismatched")

    def __init__(self, doctor: Any) -> None:
        super().__init__(doctor)
        self.batches: dict[int, list[Any]] = {}
        self.steps: list[Any] = []
        self.pairs: dict[Any, int] = {}
        self.selections: dict[Any, tuple[int, bool]] = {}
        self.labelled = False  # whether a loss has one target for each sample
        self.last: Any = None

    def batch(self, info: Any, batch: Any) -> None:  # noqa: D102
        loader = info.loader()
        if self.last is not None and self.last is not info:
            key = (id(self.last), id(info))
            if self.watch.backwards == self.last_backwards:
                self.pairs[key] = self.pairs.get(key, 0) + 1
        self.last, self.last_backwards = info, self.watch.backwards
        if loader is None or info.epochs > 1:
            return
        labels = _labels(batch)
        if labels is not None:
            self.batches.setdefault(id(info), []).append(labels)

    def traced(self, trace: Any, loss: Any, place: Any) -> None:  # noqa: D102
        self._look_at_selections(trace)
        for each in trace.losses:
            self.labelled |= each.target.ndim > 0 and each.target.numel() == each.target.shape[0]
        if len(self.steps) < 30:
            for each in trace.losses[-1:]:
                y = array_of(each.target)
                if each.kind in ("class", "nll") and y is not None and y.ndim == 1:
                    chosen = [call.place for call in trace.calls if not call.module and _selected(call) is not None]
                    self.steps.append((y.copy(), each.input.shape[-1], chosen[0] if chosen else each.call.place))

    def _look_at_selections(self, trace: Any) -> None:
        """Compare the selections of inputs and of labels in one step."""
        chosen = [(call, index) for call in trace.calls if not call.module
                  and (index := _selected(call)) is not None and len(index) > 3]  # fmt: skip
        for each in trace.losses:
            made = trace.made.get(id(each.target))
            while made is not None and _selected(made) is None and (made.is_view or made.name == "to") and made.inputs:
                made = trace.made.get(id(made.inputs[0]))
            mine = _selected(made) if made is not None else None
            if mine is None or len(mine) <= 3:
                continue
            source = made.inputs[0]
            # (Two slices are different ones on purpose, as the next tokens of a text; integers may be an index.)
            others = [index for call, index in chosen if call is not made and len(index) == len(mine)
                      and len(call.inputs[0]) == len(source) and call.inputs[0].dtype.is_floating_point
                      and not made.name == call.name == "_slice"]  # fmt: skip
            if any(np.array_equal(mine, other) for other in others):
                continue
            if not others and (mine == np.arange(len(mine))).all():
                continue
            reorders = (
                not others and len(mine) == len(source) and len(np.unique(mine)) == len(mine) and source.ndim == 1
            )
            if others or (reorders and not self._batch_is_reordered(trace, each, mine)):
                count = self.selections.get(made.place, (0, False))[0]
                self.selections[made.place] = (count + 1, bool(others))

    @staticmethod
    def _batch_is_reordered(trace: Any, each: Any, index: Any) -> bool:
        return any(call.name in ("gather", "index_select", "embedding") for call in trace.calls if not call.module)

    def finish(self) -> Iterator[Suspicion]:  # noqa: D102
        for place, (count, two) in self.selections.items():
            if count >= 3 and self.doctor.course.supervised:
                patch = SameIndex if two else FirstOrder
                yield Suspicion(
                    "labels-mismatched",
                    "Labels are selected in an order of their own in each step, other than that of the inputs: they "
                    "belong to other inputs.",
                    place,
                    "index = torch.randint(len(x), (32,))\nx_batch, y_batch = x[index], y[index]",
                    trials=[Trial(patch(), "learns_better", says="with one order for both"),
                            Trial(patch(), "scores_better", says="with one order for both")],
                    certain=count >= 4 and two,
                    rank=1,
                )  # fmt: skip
        if not self.selections:
            yield from self._sorted()
        yield from self._mismatched()

    def _sorted(self) -> Iterator[Suspicion]:
        watch = self.watch
        for info in watch.loaders.values():
            batches = self.batches.get(id(info))
            loader = info.loader()
            if not batches or len(batches) < 4 or not info.backwards or loader is None:
                continue
            every = np.concatenate(batches)
            values = np.unique(every)
            if every.dtype.kind == "f" and len(values) > 20:
                if len(every) > 20 and abs(np.corrcoef(np.arange(len(every)), every)[0, 1]) > 0.9:
                    few = f"they go from {every[0]:.4g} to {every[-1]:.4g} in order"
                else:
                    continue
            else:
                if not 2 <= len(values) <= max(len(every) // 8, 2):
                    continue
                same = float(np.mean([np.max(np.unique(b, return_counts=True)[1]) / len(b) for b in batches]))
                frequent = max(np.unique(every, return_counts=True)[1]) / len(every)
                if same < 0.75 or same < frequent + 0.2 or min(len(b) for b in batches[:-1]) < 4:
                    continue
                few = f"{same:.0%} of the labels of a batch are the same"
            yield Suspicion(
                "data-unshuffled",
                f"The training data come sorted by their labels: {few}, so each step unlearns what the others taught.",
                option_at(watch.loader_made.get(id(loader), info.place), "shuffle", 2),
                "DataLoader(data, batch_size=..., shuffle=True)",
                trials=[Trial(Shuffle(), "exam_better", "loader", says="with shuffle=True"),
                        Trial(Shuffle(), "exam_better", "first", says="with shuffle=True")],
                certain=True,
                rank=2,
            )  # fmt: skip
            return
        if any(info.backwards for info in watch.loaders.values()) or len(self.steps) < 4:
            return
        shares = [np.max(np.unique(y, return_counts=True)[1]) / len(y) for y, _, _ in self.steps if len(y) >= 4]
        classes = self.steps[0][1]
        labels = np.concatenate([y for y, _, _ in self.steps])
        changes = len(np.unique(labels)) > 1 or self.doctor.course.values[0] > 100 * self.doctor.course.last
        if len(shares) >= 4 and min(shares) > 0.9 and classes > 1 and changes:
            yield Suspicion(
                "data-unshuffled",
                "All labels of a batch are the same: the training data are sorted by their labels.",
                self.steps[0][2],
                "order = torch.randperm(len(x))\nx, y = x[order], y[order]  # before each epoch",
                certain=True,
                rank=2,
            )

    def _mismatched(self) -> Iterator[Suspicion]:
        watch, course = self.watch, self.doctor.course
        for (first, second), count in self.pairs.items():
            infos = {id(info): info for info in watch.loaders.values()}
            a, b = infos.get(first), infos.get(second)
            if a is None or b is None or count < 4 or count < 0.5 * max(a.batches, 1):
                continue
            one, two = a.loader(), b.loader()
            if one is None or two is None or _length(one) != _length(two) or not (_shuffles(one) or _shuffles(two)):
                continue
            yield Suspicion(
                "labels-mismatched",
                "Inputs and labels come from two loaders that are read together, each in a random order of its own: "
                "the labels belong to other inputs.",
                watch.loader_made.get(id(one if _shuffles(one) else two), a.place),
                "DataLoader(TensorDataset(x, y), shuffle=True)  # one loader gives pairs",
                trials=[Trial(SameOrder(), "learns_better", "loader", says="with the same order for both")],
                certain=False,
                rank=1,
            )
        if not self.labelled or course.adversarial:
            return
        for place, (what, changes) in watch.reordered.items():
            patch = Restore({id(out): index for out, _, index in changes})
            yield Suspicion(
                "labels-mismatched",
                f"{what} here, without the other half of the data: labels and inputs no longer belong together.",
                place,
                "order = torch.randperm(len(x))\nx, y = x[order], y[order]",
                trials=[Trial(patch, "scores_better", says="with the first order kept"),
                        Trial(patch, "learns_better", says="with the first order kept")],
                rank=2,
            )  # fmt: skip


def _length(loader: Any) -> int:
    try:
        return len(loader.dataset)
    except TypeError:
        return -1


def _shuffles(loader: Any) -> bool:
    return "Random" in type(loader.sampler).__name__


class Labels(Check):
    """Labels that never occur, and losses that do not suit them."""

    causes = ("class-missing", "wrong-loss")

    def __init__(self, doctor: Any) -> None:
        super().__init__(doctor)
        self.counts: dict[Any, list[Any]] = {}
        self.as_numbers: dict[Any, list[Any]] = {}
        self.outside: dict[Any, tuple[float, float, bool]] = {}  # by line: the range of targets of two classes
        self.single: dict[Any, str] = {}  # lines that apply a softmax to one score
        self.made: dict[int, Any] = {}  # by loader: the line that made its labels
        self.loaded: dict[int, list[Any]] = {}  # labels, and their number, in the first iterations over loaders

    def batch(self, info: Any, batch: Any) -> None:  # noqa: D102
        if info.epochs > 1:
            return
        labels = _labels(batch)
        if labels is not None and labels.dtype.kind in "iu":
            entry = self.loaded.setdefault(id(info), [info, set(), 0])
            entry[1].update(np.unique(labels).tolist())
            entry[2] += labels.size

    def loader_begins(self, info: Any) -> None:  # noqa: D102
        dataset = getattr(info.loader(), "dataset", None)
        tensors = getattr(dataset, "tensors", None) or list(getattr(dataset, "__dict__", {}).values())
        for each in tensors_of(list(tensors)):
            place = self.watch.tracer.origin(each) if each.ndim == 1 and not each.dtype.is_floating_point else None
            if place is not None:
                self.made.setdefault(id(info), place)

    def traced(self, trace: Any, loss: Any, place: Any) -> None:  # noqa: D102
        for each in trace.losses:
            y = array_of(each.target)
            if y is None or not y.size:
                continue
            if each.kind in ("class", "nll") and y.ndim == 1 and y.dtype.kind in "iu" and each.input.ndim == 2:
                made = trace.made.get(id(each.target))
                while made is not None and made.is_view and made.inputs[0].ndim < 2:
                    made = trace.made.get(id(made.inputs[0]))
                if made is not None and made.is_view:
                    continue  # (tokens of sequences: those for padding and the beginning are never predicted)
                entry = self.counts.setdefault(each.call.place, [each.input.shape[1], set(), 0])
                entry[1].update(np.unique(y).tolist())
                entry[2] = max(entry[2], y.size)
            elif each.kind == "value":
                self._number(trace, each, y)
            if each.kind in ("logit", "prob") and (y.min() < -0.01 or y.max() > 1.01):
                low, high, few = self.outside.get(each.call.place, (0.0, 1.0, True))
                few &= len(np.unique(y.reshape(-1)[:1000])) <= 20  # labels rather than measurements
                self.outside[each.call.place] = min(low, float(y.min())), max(high, float(y.max())), few
        for call in trace.calls:
            if call.name in ("_log_softmax", "_softmax") and call.inputs and call.out.requires_grad:
                x, dim = call.inputs[0], call.args[1]
                if isinstance(dim, int) and x.ndim and x.shape[dim] == 1 < x.numel():
                    self.single[call.place] = call.name.strip("_")

    def _number(self, trace: Any, each: Any, y: Any) -> None:
        source = trace.source(each.target)
        for _ in range(8):
            if source is None or not source.inputs or not source.inputs[0].dtype.is_floating_point:
                break
            source = trace.maker(source.inputs[0])
        from_labels = self._is_labels(source.inputs[0]) if source is not None and source.inputs else False
        if source is None or not from_labels:
            return
        values = np.unique(array_of(source.inputs[0]))
        if each.target.numel() > 4 * source.inputs[0].numel():
            return  # one-hot codes
        self.as_numbers.setdefault(each.call.place, []).append(
            (values, tuple(each.input.shape), tuple(each.target.shape))
        )

    @staticmethod
    def _is_labels(x: Any) -> bool:
        array = array_of(x)
        return array is not None and array.dtype.kind in "iu" and array.ndim <= 2

    def finish(self) -> Iterator[Suspicion]:  # noqa: D102
        for place, (low, high, few) in self.outside.items():
            remedy = "y = (y > 0).float()  # 0 and 1" if low < 0 else f"y = y / {high:.4g}"
            if not few:
                remedy = "loss = F.mse_loss(pred, y)  # for measurements"
            yield Suspicion(
                "labels-out-of-range" if few else "wrong-loss",
                f"The targets of a binary cross entropy are between {low:.4g} and {high:.4g}: they must be "
                "probabilities, from 0 to 1, else the loss has no lower bound.",
                place,
                remedy + "  # or F.cross_entropy, for several classes",
                trials=[Trial(UnitTargets(low, high), judge, says="with targets from 0 to 1")
                        for judge in ("scores_better", "bounded")],
                certain=True,
                rank=1,
            )  # fmt: skip
        for place, name in self.single.items():
            yield Suspicion(
                "wrong-loss",
                f"The {name} of one score for each sample is {'0' if 'log' in name else '1'}, whatever the score is: "
                "the loss does not depend on the model.",
                place,
                "F.binary_cross_entropy_with_logits(scores.squeeze(1), y.float())",
                certain=True,
                proven=f"the results of this {name} were the same in every step, and their gradient is zero",
                rank=2,
            )
        for place, seen in self.as_numbers.items():
            values = np.unique(np.concatenate([each[0] for each in seen]))
            shape = seen[0][1]
            if not 3 <= len(values) <= 100 or values[0] != 0 or values[-1] != len(values) - 1:
                continue
            evidence = [f"the predictions have the shape {shape}, the targets {seen[0][2]}"]
            yield Suspicion(
                "wrong-loss",
                f"The targets of this loss are the numbers of {len(values)} classes (0 to {len(values) - 1}), compared "
                "as if class 2 lay between 1 and 3; a classifier is trained by cross_entropy.",
                place,
                f"nn.Linear(..., {len(values)})  # a score for each class\nloss = F.cross_entropy(scores, y)",
                evidence,
                certain=True,
                rank=3,
            )
        for place, (classes, seen_labels, count) in self.counts.items():
            loaded = [labels for info, labels, _ in self.loaded.values() if info.backwards and info.finished]
            every = set().union(*loaded) if loaded else set()
            if loaded and seen_labels <= every:
                seen_labels = every
                count = max(count, *[number for info, _, number in self.loaded.values() if info.backwards])
            missing = sorted(set(range(classes)) - seen_labels)
            if not missing or classes > 50 or len(missing) > classes // 2 or count < 20 * classes:
                continue
            yield Suspicion(
                "class-missing",
                f"Of {classes} classes, {', '.join(map(str, missing[:5]))} never occurred among the labels of "
                "the training data.",
                next(
                    (
                        self.made[key]
                        for key, (info, labels, _) in self.loaded.items()
                        if key in self.made and info.backwards and len(labels) == classes - len(missing)
                    ),
                    place,
                ),
                f"nn.Linear(..., {classes - len(missing)})  # or data of all classes",
                certain=True,
                rank=5,
            )


class Batches(Check):
    """The first batch of a loader, again and again."""

    causes = ("same-batch-again",)

    def __init__(self, doctor: Any) -> None:
        super().__init__(doctor)
        self.first: dict[int, list[Any]] = {}
        self.given: list[Any] = []  # the arguments of models in this step
        self.rows: dict[int, list[Any]] = {}  # by source: itself, the line that selects, the rows, the steps, how many
        self.steps = 0
        self.fetched: list[list[Any]] = []  # of loaders that gave one batch: loader, inputs, line, steps with them
        self.evaluates = False  # whether a model got other data in `no_grad`

    def batch(self, info: Any, batch: Any) -> None:  # noqa: D102
        entry = self.first.setdefault(id(info), [info, None, 0, 0, None])
        tensor = next(tensors_of(batch), None)
        x = array_of(tensor)
        if x is None:
            return
        entry[4] = entry[4] or here()
        if entry[3] == 0 and len(self.fetched) < 8:
            self.fetched.append([info, tensor, entry[4], 0])
        elif entry[3] == 1:  # a loader that goes on need not have its first batch kept
            self.fetched = [each for each in self.fetched if each[0] is not info]
        part = x.reshape(-1)[:64].copy()
        entry[3] += 1
        if entry[1] is not None and part.shape == entry[1].shape and np.array_equal(part, entry[1]):
            entry[2] += 1
        entry[1] = entry[1] if entry[1] is not None else part

    def forward_begins(self, info: Any, args: Any) -> None:  # noqa: D102
        x = array_of(args[0]) if args else None
        if x is not None and self.fetched:
            self._count(args[0])
        if self.watch.tracer.on and len(self.given) < 100:
            self.given += [each for each in tensors_of(args) if not each.is_leaf or not each.requires_grad]

    def _count(self, x: Any) -> None:
        """Count the calls of a model for a graph with a batch that was fetched once."""
        once = next((entry for entry in self.fetched if entry[1] is x), None)
        if local.state.grad and once is not None:
            once[3] += 1
        self.evaluates |= not local.state.grad and once is None

    def _fetched_once(self) -> Iterator[Suspicion]:
        """Find a batch that was fetched before the loop, by a program that tests its model on other data."""
        for info, _, place, steps in self.fetched:
            number = _batches_in(info.loader())
            if not self.evaluates or steps < max(20, 0.9 * self.watch.backwards) or number < 2:
                continue
            yield Suspicion(
                "same-batch-again",
                f"All {steps} steps used one batch, the first of {number}: it was fetched before the loop.",
                place,
                "for x, y in loader:  # instead of next(iter(loader)) before the loop\n    ...",
                certain=True,
                proven=f"the model got the same tensor in {steps} steps; {number - 1} batches were never loaded",
                rank=2,
            )

    def traced(self, trace: Any, loss: Any, place: Any) -> None:  # noqa: D102
        self.steps += 1
        seen = set()  # what models got, or is a part of it
        for x in self.given:
            while (made := trace.made.get(id(x))) is not None and made.is_view and _selected(made) is None:
                x = made.inputs[0]
            seen.add(id(x))
        self.given = []
        for call in trace.calls:
            if call.module or not call.inputs or call.inputs[0].requires_grad:
                continue
            rows, source = _selected(call), call.inputs[0]
            if rows is None or not 2 <= len(rows) <= len(source) // 2 or (seen and id(call.out) not in seen):
                continue
            if id(source) not in self.rows and len(self.rows) >= 64:
                continue
            used = self.rows.setdefault(id(source), [source, call.place, set(), set(), len(rows)])
            used[2].add(rows.tobytes())
            used[3].add(self.steps)

    def _slices(self) -> Iterator[Suspicion]:
        for source, place, rows, steps, count in self.rows.values():
            if len(rows) > 1 or len(steps) < 5 or len(steps) < self.steps or (source.is_leaf and source.requires_grad):
                continue
            yield Suspicion(
                "same-batch-again",
                f"Each step that was looked at used the same rows of the data, which have {source.shape[0]}.",
                place,
                "for i in range(0, len(x), 32):\n    x_batch, y_batch = x[i : i + 32], y[i : i + 32]",
                certain=True,
                proven=f"the rows were the same {len(steps)} times; {source.shape[0] - count} others never occurred",
                rank=3,
            )
            return

    def finish(self) -> Iterator[Suspicion]:  # noqa: D102
        yield from self._slices()
        yield from self._fetched_once()
        for info, _, same, count, place in self.first.values():
            number = _batches_in(info.loader())
            if count < 5 or same < count - 1 or info.backwards < 4 or number < 2 or info.epochs < 5:
                continue
            yield Suspicion(
                "same-batch-again",
                f"Each of {count} steps used the first batch of {number}: a new iterator was made each time.",
                place,
                "for x, y in loader:  # instead of next(iter(loader)) in a loop\n    ...",
                certain=True,
                proven=f"the {count} batches were equal, while the loader has {number}; an iterator made once gives "
                "them all",
                rank=2,
            )


def _batches_in(loader: Any) -> int:
    """Return the number of batches of a loader; 0 if it is not known, or there is no loader any more."""
    try:
        return 0 if loader is None else len(loader)
    except TypeError:
        return 0


class SlowLoader(Check):
    """Time lost in loading."""

    causes = ("loader-slow",)

    def __init__(self, doctor: Any) -> None:
        super().__init__(doctor)
        self.slow: dict[int, Any] = {}

    def batch(self, info: Any, batch: Any) -> None:  # noqa: D102
        if info.batches == 4 and info.waited > 4 * 0.004 and id(info) not in self.slow:
            self.slow[id(info)] = self.doctor.replay.probe(lambda: _slowest_line(info.loader()), 5.0)

    def finish(self) -> Iterator[Suspicion]:  # noqa: D102
        watch = self.watch
        for info in watch.loaders.values():
            loader = info.loader()
            whole = watch.seconds()
            if loader is None or info.backwards < 5 or info.waited < max(0.5, 0.4 * whole):
                continue
            per_batch = info.waited / max(info.batches, 1)
            if per_batch < 0.004:
                continue
            yield Suspicion(
                "loader-slow",
                f"{info.waited:.1f} of {whole:.1f} seconds were spent waiting for batches, {1000 * per_batch:.0f} ms "
                "for each.",
                self.slow.get(id(info)) or info.place,
                "DataLoader(data, num_workers=2, persistent_workers=True)  # or prepare the data once, in __init__",
                certain=True,
                proven=f"with batches in memory, the same steps would take {whole - info.waited:.1f} s",
                rank=6,
            )


class OneSample(Check):
    """Batch norm that is trained by batches of one sample."""

    causes = ("batch-norm-batch-of-one",)

    def __init__(self, doctor: Any) -> None:
        super().__init__(doctor)
        self.counts: dict[Any, list[int]] = {}

    def traced(self, trace: Any, loss: Any, place: Any) -> None:  # noqa: D102
        for call in trace.calls:
            if call.name == "_by_batch" and call.inputs and "InstanceNorm" not in type(call.owner).__name__:
                entry = self.counts.setdefault((call.place, call.module), [0, 0])
                entry[0] += call.inputs[0].shape[0] == 1
                entry[1] += 1

    def finish(self) -> Iterator[Suspicion]:  # noqa: D102
        for (place, module), (ones, count) in self.counts.items():
            if ones >= 5 and ones > 0.9 * count:
                loaders = [each for each in self.watch.loaders.values() if each.backwards]
                made = self.watch.loader_made.get(id(loaders[0].loader())) if loaders else None
                yield Suspicion(
                    "batch-norm-batch-of-one",
                    f"{module} is trained by batches of one sample: the statistics of batch norm are those of this "
                    "sample, and differ from the averages that evaluation uses.",
                    option_at(made, "batch_size", 1) or place,
                    "DataLoader(data, batch_size=32)  # or nn.GroupNorm, which does not depend on the batch",
                    certain=True,
                    rank=3,
                )
                return


def _slowest_line(loader: Any) -> Any:
    """Return the line of the program that takes most of the time in which a batch is loaded, with what it calls.

    It is one of the method that loads a sample, or, if that line hands the sample on to a function of the program that
    is given it (a transform), one of that function.
    """
    times: dict[Any, float] = {}
    begun: dict[Any, tuple[Any, float]] = {}  # by frame: the line that runs, and since when

    def trace(frame: Any, event: str, argument: Any) -> Any:
        if not is_users(frame):
            return None
        now = time.perf_counter()
        line, since = begun.pop(frame, (None, now))
        if line is not None:
            times[line] = times.get(line, 0.0) + now - since
        if event != "return":
            begun[frame] = (place_of(frame), now)
        return trace

    sys.settrace(trace)
    try:
        if loader.batch_size is None:
            next(iter(loader))
        else:
            samples = [loader.dataset[k] for k in range(min(len(loader.dataset), loader.batch_size))]
            loader.collate_fn(samples)
    finally:
        sys.settrace(None)
    outer = [place for place in times if place.function in ("__getitem__", "__getitems__", "__iter__")]
    slowest = max(outer or times, key=lambda place: times[place], default=None)
    inner = [place for place in times if place.function in ("__call__", "forward", "<lambda>")]
    if slowest is not None and inner and "transform" in slowest.text:
        deeper = max(inner, key=lambda place: times[place])
        return deeper if times[deeper] > 0.5 * times[slowest] else slowest
    return slowest


class Errors(Check):
    """What an error says of the data."""

    causes = ("labels-out-of-range", "batch-norm-batch-of-one")

    def _loader_place(self) -> Any:
        loaders = self.watch.open_loaders
        return self.watch.loader_made.get(id(loaders[-1].loader())) if loaders else None

    def finish(self) -> Iterator[Suspicion]:  # noqa: D102
        error = self.doctor.error
        text = str(error or "")
        place = self.doctor.error_place()
        if isinstance(error, IndexError) and "out of bounds" in text and "Target" in text:
            yield Suspicion(
                "labels-out-of-range",
                f"The program failed: {text} Labels must be from 0 to the number of classes less 1.",
                place,
                "y = y - y.min()  # labels from 0\nnn.Linear(..., int(y.max()) + 1)  # or as many outputs as classes",
                certain=True,
                proven="the loss names the label for which there is no score",
                rank=0,
            )
        elif isinstance(error, ValueError) and "more than 1 value per channel" in text:
            yield Suspicion(
                "batch-norm-batch-of-one",
                f"The program failed: {text}. Batch norm needs more than one sample to compute a variance; the last "
                "batch of an epoch may have one.",
                self._loader_place() or place,
                "DataLoader(data, batch_size=..., drop_last=True)",
                certain=True,
                proven="the batch that failed has one sample, and batches of more did not fail",
                rank=0,
            )
