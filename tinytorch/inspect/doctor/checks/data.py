"""Data: not scaled, not shuffled, always the same batch, labels out of range, time lost in loading."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tinytorch.core.tensor import Tensor
from tinytorch.inspect.doctor.checks import Check
from tinytorch.inspect.doctor.finding import Suspicion, Trial
from tinytorch.inspect.doctor.patches import Normalise, Restore, SameOrder, Shuffle
from tinytorch.inspect.doctor.place import here
from tinytorch.inspect.doctor.trace import tensors_of
from tinytorch.inspect.doctor.watch import array_of

__all__ = ["Batches", "Errors", "Labels", "Orders", "Scale", "SlowLoader"]


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
        self.place: Any = None
        self.reordered: list[Any] = []
        self.pairs: dict[Any, int] = {}
        self.last: Any = None

    def batch(self, info: Any, batch: Any) -> None:  # noqa: D102
        loader = info.loader()
        if self.last is not None and self.last is not info and not self.last.backwards == -1:
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
        if len(self.steps) < 5:
            for each in trace.losses[-1:]:
                y = array_of(each.target)
                if each.kind in ("class", "nll") and y is not None and y.ndim == 1:
                    self.steps.append((y.copy(), each.input.shape[-1], each.call.place))

    def finish(self) -> Iterator[Suspicion]:  # noqa: D102
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
                watch.loader_made.get(id(loader), info.place),
                "DataLoader(data, batch_size=..., shuffle=True)",
                trials=[Trial(Shuffle(), "exam_better", "loader", says="with shuffle=True"),
                        Trial(Shuffle(), "exam_better", "first", says="with shuffle=True")],
                certain=True,
                rank=2,
            )  # fmt: skip
            return
        if any(info.backwards for info in watch.loaders.values()) or len(self.steps) < 4:
            return
        same = [np.max(np.unique(y, return_counts=True)[1]) / len(y) for y, _, _ in self.steps if len(y) >= 4]
        classes = self.steps[0][1]
        if len(same) >= 4 and min(same) > 0.9 and classes > 1:
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
                a.place,
                "DataLoader(TensorDataset(x, y), shuffle=True)  # one loader gives pairs",
                trials=[Trial(SameOrder(), "learns_better", "loader", says="with the same order for both")],
                certain=False,
                rank=1,
            )
        if not course.supervised or course.adversarial:
            return
        for place, (out, source, index, what) in watch.reordered.items():
            yield Suspicion(
                "labels-mismatched",
                f"{what} here, without the other half of the data: labels and inputs no longer belong together.",
                place,
                "order = torch.randperm(len(x))\nx, y = x[order], y[order]",
                trials=[Trial(Restore(id(out), id(source), index), "scores_better", says="with the first order kept"),
                        Trial(Restore(id(out), id(source), index), "learns_better", says="with the first order kept")],
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

    def traced(self, trace: Any, loss: Any, place: Any) -> None:  # noqa: D102
        for each in trace.losses:
            y = array_of(each.target)
            if y is None or not y.size:
                continue
            if each.kind in ("class", "nll") and y.ndim == 1 and y.dtype.kind in "iu" and each.input.ndim == 2:
                entry = self.counts.setdefault(each.call.place, [each.input.shape[1], set(), 0])
                entry[1].update(np.unique(y).tolist())
                entry[2] += y.size
            elif each.kind == "value":
                self._number(trace, each, y)

    def _number(self, trace: Any, each: Any, y: Any) -> None:
        made = trace.before(each.target)
        source = made
        while source is not None and source.inputs and source.inputs[0].dtype.is_floating_point:
            source = trace.maker(source.inputs[0])
        from_labels = (
            self._is_labels(source.inputs[0]) if source is not None and source.inputs else False
        )
        if source is None or not from_labels:
            return
        values = np.unique(array_of(source.inputs[0]))
        if each.target.numel() > 4 * source.inputs[0].numel():
            return  # one-hot codes
        self.as_numbers.setdefault(each.call.place, []).append((values, tuple(each.input.shape), tuple(each.target.shape)))

    @staticmethod
    def _is_labels(x: Any) -> bool:
        array = array_of(x)
        return array is not None and array.dtype.kind in "iu" and array.ndim <= 2

    def finish(self) -> Iterator[Suspicion]:  # noqa: D102
        for place, seen in self.as_numbers.items():
            values = np.unique(np.concatenate([each[0] for each in seen]))
            shape = seen[0][1]
            if not 3 <= len(values) <= 100 or values[0] != 0 or values[-1] != len(values) - 1:
                continue
            columns = shape[-1] if len(shape) > 1 else 1
            evidence = [f"the predictions have the shape {shape}, the targets {seen[0][2]}"]
            yield Suspicion(
                "wrong-loss",
                f"The targets of this loss are the numbers of {len(values)} classes (0 to {len(values) - 1}), compared "
                "as if class 2 lay between 1 and 3; a classifier is trained by cross_entropy.",
                place,
                f"nn.Linear(..., {len(values)})  # a score for each class\nloss = F.cross_entropy(scores, y)",
                evidence,
                certain=columns > 1 or self.doctor.course.fell < 0.8,
                rank=3,
            )
        for place, (classes, seen_labels, count) in self.counts.items():
            missing = sorted(set(range(classes)) - seen_labels)
            if not missing or classes > 50 or len(missing) > classes // 2 or count < 40 * classes:
                continue
            yield Suspicion(
                "class-missing",
                f"Of {classes} classes, {', '.join(map(str, missing[:5]))} never occurred among the {count} labels that "
                "were looked at.",
                place,
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
        self.inputs: list[Any] = []

    def batch(self, info: Any, batch: Any) -> None:  # noqa: D102
        entry = self.first.setdefault(id(info), [info, None, 0, 0, None])
        x = next((array_of(each) for each in tensors_of(batch)), None)
        if x is None:
            return
        part = x.reshape(-1)[:64].copy()
        entry[3] += 1
        if entry[1] is not None and part.shape == entry[1].shape and np.array_equal(part, entry[1]):
            entry[2] += 1
        entry[1] = entry[1] if entry[1] is not None else part
        entry[4] = entry[4] or here()

    def finish(self) -> Iterator[Suspicion]:  # noqa: D102
        for info, _, same, count, place in self.first.values():
            loader = info.loader()
            if loader is None or count < 5 or same < count - 1 or info.backwards < 4:
                continue
            try:
                number = len(loader)
            except TypeError:
                continue
            if number < 2 or info.epochs < 5:
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


class SlowLoader(Check):
    """Time lost in loading."""

    causes = ("loader-slow",)

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
                _slow_place(loader) or info.place,
                "DataLoader(data, num_workers=2, persistent_workers=True)  # or prepare the data once, in __init__",
                certain=True,
                proven=f"with batches in memory, the same steps would take {whole - info.waited:.1f} s",
                rank=6,
            )


def _slow_place(loader: Any) -> Any:
    return None


class Errors(Check):
    """What an error says of the data."""

    causes = ("labels-out-of-range", "batch-norm-batch-of-one")

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
                place,
                "DataLoader(data, batch_size=..., drop_last=True)",
                certain=True,
                proven="the batch that failed has one sample, and batches of more did not fail",
                rank=0,
            )


