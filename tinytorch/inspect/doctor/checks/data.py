"""Data: which samples are seen, in which order, with which labels, and on which scale."""

from __future__ import annotations

import functools
import pickle
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from tinytorch.autograd.profiler import tensors_in
from tinytorch.core.mode import local
from tinytorch.core.tensor import Tensor
from tinytorch.inspect.doctor.causes import found
from tinytorch.inspect.doctor.checks import Check
from tinytorch.inspect.doctor.finding import Finding
from tinytorch.inspect.doctor.limits import LIMITS
from tinytorch.inspect.doctor.place import Place, here
from tinytorch.inspect.doctor.source import option_at
from tinytorch.inspect.doctor.trace import MOST_ORDERED, data_of
from tinytorch.inspect.doctor.watch import array_of, root_of

__all__ = ["Errors", "Inputs", "Labels", "Pairs", "Repeats"]


def size_of(loader: Any, batches: bool = False) -> int:
    """Return the number of samples of a loader, or of batches; -1 if it is not known, or the loader is gone."""
    try:
        return -1 if loader is None else len(loader if batches else loader.dataset)
    except (TypeError, AttributeError):
        return -1


def selected(call: Any) -> Any:
    """Return which rows of a tensor a call selects, by an index of integers or a slice; None for any other call."""
    index = call.args[1] if len(call.args) > 1 and call.inputs and call.inputs[0].ndim else None
    if not isinstance(index, tuple) or not index or not isinstance(call.out, Tensor):
        return None
    if call.name == "_index" and len(index) == 1:
        rows = index[0]
        return rows if isinstance(rows, np.ndarray) and rows.dtype.kind == "i" and rows.ndim == 1 else None
    rows = call.name == "_slice" and call.out.ndim == call.inputs[0].ndim and isinstance(index[0], slice)
    return np.arange(len(call.inputs[0]))[index[0]] if rows and call.out.shape[1:] == call.inputs[0].shape[1:] else None


def rows_of(trace: Any, x: Any) -> tuple[Any, Any, Place | None]:
    """Return of which tensor the rows of a tensor were taken, which of its rows, and the last line that chose some."""
    rows, place, random, seen = None, None, None, 0
    while (call := trace.made.get(id(x))) is not None and call.inputs and call.inputs[0] is not x and seen < 60:
        seen += 1
        source = call.inputs[0]
        index = None if call.module else selected(call)
        if index is not None:
            rows = index if rows is None else index[rows] if rows.max(initial=-1) < len(index) else None
            place = place or call.place
            random = random or (call.place if call.name == "_index" else None)
            if rows is None:
                break
        elif not source.ndim or not isinstance(call.out, Tensor) or not call.out.ndim or len(source) != len(call.out):
            break
        x = source
    return x, rows, random or place


class Pairs(Check):
    """Inputs and targets that are put into different orders."""

    def __init__(self, doctor: Any) -> None:
        super().__init__(doctor)
        self.apart: dict[Any, list[Any]] = {}  # by line: steps, the share of rows that still belong together
        self.last: Any = None
        self.together: Counter[Any] = Counter()  # pairs of loaders that are read one after the other
        self.steps = 0

    def batch(self, info: Any, batch: Any) -> None:  # noqa: D102
        now = (info, self.watch.backwards)
        if self.last is not None and self.last[0] is not info and self.last[1] == now[1]:
            self.together[self.last[0], info] += 1
        self.last = now

    def loader_begins(self, info: Any) -> None:  # noqa: D102
        tensors = getattr(getattr(info.loader(), "dataset", None), "tensors", ())
        if len(tensors) == 2 and info.epochs == 1:
            self._compare(self.watch.tracer.trace, *tensors)

    def traced(self, trace: Any, loss: Any, place: Any) -> None:  # noqa: D102
        self.steps += 1
        for each in trace.losses[-1:]:
            for x in self.watch.given:
                self._compare(trace, x, each.target)

    def _compare(self, trace: Any, x: Tensor, y: Tensor) -> None:
        """Note inputs and targets whose rows are other ones of data of the same length."""
        (of_x, a, at_x), (of_y, b, at_y) = rows_of(trace, x), rows_of(trace, y)
        if of_x is of_y or of_x.shape[:1] != of_y.shape[:1] or of_x.numel() < 8 or (a is None and b is None):
            return
        if not of_x.ndim or len(of_x) < 8:
            return
        if max(of_x.numel(), of_y.numel()) > MOST_ORDERED:
            return  # (it is not known how they were made)
        whole = np.arange(len(of_x))
        a, b = whole if a is None else a, whole if b is None else b
        if len(a) != len(b) or len(a) < 4 or np.array_equal(a, b):
            return
        # (Two slices are other ones on purpose, as the next tokens of a text.)
        if any((np.diff(each) == 1).all() for each in (a, b)) and all((np.diff(each) == 1).all() for each in (a, b)):
            return
        for call in trace.calls:  # (mixtures of samples have the targets of both)
            if not call.module and selected(call) is not None and call.inputs[0].dtype.is_floating_point:
                source, rows, _ = rows_of(trace, call.out)
                if source is not of_y and rows is not None and np.array_equal(rows, b):
                    return
        # (A slice may be another one on purpose, now and then; two random orders are not.)
        sure = not any((np.diff(each) > 0).all() for each in (a, b))
        entry = self.apart.setdefault(at_y or at_x, [0, float((a == b).mean()), self.watch.backwards])
        entry[0] += 3 if sure else 1

    def finish(self) -> Iterator[Finding]:  # noqa: D102
        course = self.doctor.course
        if not course.supervised or course.adversarial:
            return
        for place, (count, share, first) in self.apart.items():
            if share < 0.5 and (count >= min(3, self.steps) or not first):
                yield found("labels-mismatched/orders", place, share=share)
        for (a, b), count in self.together.items():
            one, two = a.loader(), b.loader()
            random = [each for each in (a, b) if "Random" in type(getattr(each.loader(), "sampler", None)).__name__]
            if count < 4 or count < 0.5 * max(a.batches, 1) or size_of(one) != size_of(two) or not random:
                continue
            yield found("labels-mismatched/loaders", random[0].made, count=count)
            return


class Labels(Check):
    """Labels that come sorted, and classes that never come."""

    def __init__(self, doctor: Any) -> None:
        super().__init__(doctor)
        self.loaded: dict[int, list[Any]] = {}  # by loader: itself, the labels of batches in the first iteration
        self.made: dict[int, Any] = {}  # by loader: the line that made its labels
        self.steps: list[Any] = []  # labels, in the steps that were traced, and the line that chose them
        self.seen: dict[Any, list[Any]] = {}  # by number of classes and line: their labels
        self.sequences = False  # whether labels are parts of sequences, of which some are never predicted

    def loader_begins(self, info: Any) -> None:  # noqa: D102
        dataset = getattr(info.loader(), "dataset", None)
        tensors = getattr(dataset, "tensors", None) or list(getattr(dataset, "__dict__", {}).values())
        for each in tensors_in(list(tensors)):
            place = self.watch.tracer.origin(each) if each.ndim == 1 and not each.dtype.is_floating_point else None
            if place is not None:
                self.made.setdefault(id(info), place)

    def batch(self, info: Any, batch: Any) -> None:  # noqa: D102
        labels = [y for x in tensors_in(batch) if (y := array_of(x)) is not None and y.ndim == 1]
        if info.epochs == 1 and labels and isinstance(batch, (list, tuple)):
            self.loaded.setdefault(id(info), [info, []])[1].append(labels[-1])

    def traced(self, trace: Any, loss: Any, place: Any) -> None:  # noqa: D102
        for each in trace.losses[-1:]:
            y = array_of(each.target)
            if each.kind not in ("class", "nll") or y is None or y.ndim != 1 or each.input.ndim != 2:
                continue
            made = trace.made.get(id(each.target))
            self.sequences |= made is not None and made.is_view and bool(made.inputs) and made.inputs[0].ndim > 1
            chosen = [call.place for call in trace.calls if not call.module and selected(call) is not None]
            self.seen.setdefault((each.input.shape[1], each.call.place), []).append(y.copy())
            self.steps.append((y.copy(), chosen[0] if chosen else each.call.place))

    def finish(self) -> Iterator[Finding]:  # noqa: D102
        loaded = [(info, batches) for info, batches in self.loaded.values() if info.backwards]
        for info, batches in loaded:
            yield from self._sorted(batches, option_at(info.made, "shuffle", 2), LIMITS["labels of one kind"])
        if not loaded and len(self.steps) >= 4:
            fell = self.doctor.course.first > 100 * self.doctor.course.last
            yield from self._sorted([y for y, _ in self.steps], self.steps[0][1], 0.9, fell)
        yield from self._missing(loaded)

    def _sorted(self, batches: Any, place: Any, least: float, fell: bool = False) -> Iterator[Finding]:
        every = np.concatenate(batches)
        values, counts = np.unique(every, return_counts=True)
        if len(batches) < 4 or min(len(y) for y in batches[:-1]) < 4:
            return
        if every.dtype.kind == "f" and len(values) > 20:
            if abs(np.corrcoef(np.arange(len(every)), every)[0, 1]) < 0.9:
                return
            few = f"they go from {every[0]:.4g} to {every[-1]:.4g} in order"
        else:
            shares = [np.max(np.unique(y, return_counts=True)[1]) / len(y) for y in batches]
            same = float(np.mean(shares) if least < 0.9 else min(shares))
            if same < least or not (fell or 2 <= len(values) <= max(len(every) // 8, 2)):
                return
            if not fell and same < max(counts) / len(every) + 0.2:
                return
            few = f"{same:.0%} of the labels of a batch are the same"
        yield found("data-unshuffled", place, few=few, count=len(batches))

    def _missing(self, loaded: Any) -> Iterator[Finding]:
        """Find classes that no label names."""
        for (classes, place), seen in self.seen.items():
            labels, count = set(np.concatenate(seen).tolist()), max(map(len, seen))
            for info, batches in loaded:
                every = np.concatenate(batches)
                if every.dtype.kind in "iu" and info.finished and labels <= set(every.tolist()):
                    labels, count = set(every.tolist()), len(every)
                    place = self.made.get(id(info), place)
            missing = sorted(set(range(classes)) - labels)
            few = len(missing) > classes // 2 or count < 20 * classes  # (labels, to say that one is missing)
            if missing and not few and 1 < classes <= 50 and not self.sequences:
                yield found("class-missing", place, classes=classes, missing=", ".join(map(str, missing[:5])),
                            count=classes - len(missing))  # fmt: skip


def _mark(arrays: Any) -> bytes:
    """Return some elements of arrays, to tell them from others; nothing if all are the same number."""
    parts = [array.reshape(-1)[:: max(array.size // 64, 1)] for array in arrays]
    return b"" if all((part == part[:1]).all() for part in parts) else b"".join(part.tobytes() for part in parts)


class Repeats(Check):
    """Which samples the steps use: all of them, or the same few again."""

    def __init__(self, doctor: Any) -> None:
        super().__init__(doctor)
        self.inputs: Counter[bytes] = Counter()  # marks of what models got for a graph
        self.others = False  # whether a model got other data in `no_grad`
        self.rows: dict[int, list[Any]] = {}  # by data: them, the line, the choices, samples, their number, steps
        self.loaded: dict[int, list[Any]] = {}  # by loader: it, the marks of batches, samples ...
        self.seeds: dict[Place, list[Any]] = {}  # by line: seeds, the first inputs after each, steps, whether drawn
        self.after_seed: Place | None = None
        self.given: tuple[Any, int] = (None, 0)  # the memory of the last input, and its version
        self.seed: tuple[int, str, Any, bytes] = (0, "", None, b"")  # its function, the state, and as it was then
        self.steps = 0

    def seeded(self, name: str, seed: int, state: Any) -> None:  # noqa: D102
        self.after_seed, self.watch.drawn = here(), False
        self.seed = seed, name, state, pickle.dumps(state())

    def batch(self, info: Any, batch: Any) -> None:  # noqa: D102
        arrays = [array for x in tensors_in(batch) if (array := array_of(x)) is not None and array.ndim]
        if not arrays:
            return
        entry = self.loaded.setdefault(id(info), [info, Counter(), set(), 0, here()])
        entry[1][_mark(arrays)] += 1
        count = len(arrays[0])
        if info.epochs == 1 and entry[3] < 1000:
            parts = [array.reshape(count, -1) for array in arrays if len(array) == count]
            entry[2].update(hash(tuple([part[k].tobytes() for part in parts])) for k in range(count))
            entry[3] += count

    def forward_begins(self, info: Any, args: Any) -> None:  # noqa: D102
        given = [x for x in tensors_in(args) if x.is_leaf or not x.requires_grad]
        array = array_of(given[0]) if given else None
        if array is None:
            return
        first = _mark([array])
        if not local.state.grad:
            self.others |= first not in self.inputs
        elif info.parameters:
            if len(self.inputs) < 10_000:
                self.inputs[first] += 1
            given_now = root_of(array), given[0]._version
            if self.after_seed is not None:
                seed, name, state, fresh = self.seed
                # (What is in the same memory as before was not drawn anew.)
                old = given_now[0] is self.given[0] and given_now[1] == self.given[1]
                if pickle.dumps(state()) != fresh and not old:
                    entry = self.seeds.setdefault(self.after_seed, [[], [], [], False, name])
                    entry[0].append(seed)
                    entry[1].append(first)
                    entry[2].append((id(info), self.watch.backwards))
                    entry[3] |= self.watch.drawn
                self.after_seed = None
            self.given = given_now
            self.watch.drawn = False

    def traced(self, trace: Any, loss: Any, place: Any) -> None:  # noqa: D102
        self.steps += 1
        seen = set()  # what models got, or is a part of it
        for x in self.watch.given:
            while (made := trace.made.get(id(x))) is not None and made.is_view and selected(made) is None:
                x = made.inputs[0]
            seen.add(id(x))
        for call in trace.calls:
            rows = None if call.module or not call.inputs or call.inputs[0].requires_grad else selected(call)
            if rows is None or not 2 <= len(rows) <= len(call.inputs[0]) // 2 or (seen and id(call.out) not in seen):
                continue
            if id(call.inputs[0]) in self.rows or len(self.rows) < 64:
                used = self.rows.setdefault(id(call.inputs[0]), [call.inputs[0], call.place, set(), set(), 0, set()])
                used[2].add(rows.tobytes())
                used[3].update(rows.tolist())
                used[4] += len(rows)
                used[5].add(self.steps)

    def finish(self) -> Iterator[Finding]:  # noqa: D102
        watch = self.watch
        for source, place, choices, samples, count, steps in self.rows.values():
            every = len(choices) == 1 and len(steps) >= max(5, self.steps)
            few = count >= 50 and len(samples) < LIMITS["chosen samples"] * min(count, len(source)) and len(choices) > 2
            if every or few:
                yield found("same-batch-again/rows" if every else "samples-repeated/rows", place, steps=len(steps),
                            few=len(samples), number=len(source), others=len(source) - len(samples))  # fmt: skip
                break
        for info, firsts, distinct, count, place in self.loaded.values():
            loader = info.loader()
            batches, number, steps = size_of(loader, True), size_of(loader), sum(firsts.values())
            same, used = self.inputs.most_common(1)[0] if self.inputs else (b"", 0)
            # (An iterator that is gone through gives more than one batch, be they equal or not.)
            anew = max(firsts.values()) >= max(steps - 1, 5) and info.backwards >= 4 and info.epochs >= steps - 1
            once = steps == 1 and self.others and used >= max(20, 0.9 * watch.backwards)
            if batches > 1 and ((anew and b"" not in firsts) or (once and same)):
                yield found(f"same-batch-again/{'iterator' if anew else 'fetched'}", place, steps=max(steps, used),
                            number=batches, others=batches - 1)  # fmt: skip
                continue
            least = LIMITS["distinct samples"]
            if info.backwards and count >= 50 and len(distinct) < least * min(count, number):
                there = self.doctor.replay.probe(functools.partial(_distinct, loader.dataset, min(count, number)), 5.0)
                if len(distinct) < least * (there or 0):  # (else the data themselves are alike)
                    sampler = option_at(info.made, "sampler" if loader.sampler else "batch_sampler")
                    yield found("samples-repeated/loader", sampler, count=count, few=len(distinct), number=number,
                                there=there)  # fmt: skip
        for place, (seeds, first, steps, drawn, name) in self.seeds.items():
            each_step = len(first) >= 0.8 * (watch.backwards - 1)
            models = {model for model, _ in steps}  # (several models may be trained from the same beginning)
            again = len(set(seeds)) == len(set(first)) == len(models) == 1 and first[0]
            if again and len(first) >= 3 and len(set(steps)) > 2 and (each_step or drawn):
                row = "same-batch-again/seeded" if each_step else "seeded-again"
                yield found(row, place, seed=seeds[0], count=len(seeds), name=name)


def _distinct(dataset: Any, count: int) -> int:
    """Return how many of some samples of a data set differ; called in a copy of the process."""
    places = np.linspace(0, len(dataset) - 1, count).astype(int)
    return len({tuple([x._array.tobytes() for x in tensors_in(dataset[int(k)])]) for k in places})


class Inputs(Check):
    """Inputs whose numbers are large, and batches of one sample for batch norm."""

    def __init__(self, doctor: Any) -> None:
        super().__init__(doctor)
        self.seen: dict[int, tuple[str, float, float, float, Any]] = {}  # by model: its name, what it got, a line
        self.norms: dict[Any, list[int]] = {}  # by line and module: batches of one sample, all
        self.kept: dict[Any, list[Any]] = {}  # by model, shape, and whether for a graph: inputs, and a line

    def forward_begins(self, info: Any, args: Any) -> None:  # noqa: D102
        x = array_of(args[0]) if args else None
        if x is not None and x.dtype.kind == "f" and x.ndim > 1 and x.size and not args[0].requires_grad:
            kept = self.kept.setdefault((id(info), x.shape[1:], local.state.grad), [info, here()])
            if len(kept) < 12:
                kept.append(x.reshape(len(x), -1)[:: max(len(x) // 100, 1)].astype(np.float64))
        if args and not args[0].requires_grad and self.watch.tracer.on and id(info) not in self.seen:
            self._look_at(x, id(info), info.name, here())

    def largest(self) -> float:
        """Return the largest number that a model got."""
        return max((largest for _, largest, *_ in self.seen.values()), default=0.0)

    def _look_at(self, x: Any, key: int, name: str, place: Place) -> None:
        # (Bytes of two dimensions or more are images.)
        image = x is not None and x.dtype == np.uint8 and x.ndim > 1
        if x is None or not (image or x.dtype.kind == "f") or not x.size or not np.isfinite(x).all():
            return
        columns = x.reshape(len(x), -1).astype(np.float64) if x.ndim > 1 else x.reshape(-1, 1).astype(np.float64)
        sizes = columns.std(0) if x.ndim == 2 else columns.std(keepdims=True)
        self.seen[key] = name, float(np.abs(columns).max()), float(sizes.max()), float(columns.mean()), place

    def traced(self, trace: Any, loss: Any, place: Any) -> None:  # noqa: D102
        for call in trace.calls:
            if not self.watch.models and 0 not in self.seen and (x := data_of(call.op, call.args)) is not None:
                self._look_at(array_of(x), 0, "the network", call.place)
            if call.name == "_by_batch" and call.inputs and "InstanceNorm" not in type(call.owner).__name__:
                entry = self.norms.setdefault((call.place, call.module), [0, 0])
                entry[0] += call.inputs[0].shape[0] == 1
                entry[1] += 1

    def finish(self) -> Iterator[Finding]:  # noqa: D102
        course = self.doctor.course
        for name, largest, deviation, mean, place in self.seen.values():
            large = largest > LIMITS["largest input"] and (deviation >= 8 or abs(mean) >= 20)
            if large and course.supervised and not course.adversarial:
                yield found("inputs-unscaled", place, model=name, largest=largest, deviation=deviation, mean=mean)
        yield from self._differ()
        for (place, module), (ones, count) in self.norms.items():
            if ones >= 5 and ones > 0.9 * count:
                made = next((each.made for each in self.watch.loaders.values() if each.backwards), None)
                yield found("batch-norm-batch-of-one", option_at(made, "batch_size", 1) or place, module=module)
                return

    def _differ(self) -> Iterator[Finding]:
        """Find test data on another scale than the training data."""
        for (model, shape, grad), (info, place, *kept) in self.kept.items():
            if grad or (model, shape, True) not in self.kept or self.doctor.course.adversarial:
                continue
            trained, tested = np.concatenate(self.kept[model, shape, True][2:]), np.concatenate(kept)
            if min(len(trained), len(tested)) < 16:
                continue
            wide, other = float(trained.std()), float(tested.std())
            shift = float(np.abs(trained.mean() - tested.mean())) / max(wide, 1e-12)
            ratio = max(other, 1e-12) / max(wide, 1e-12)
            if max(ratio, 1 / ratio, 1 + shift) > LIMITS["scale of test data"]:
                yield found("inputs-differ", place, model=info.name, mean=tested.mean(), deviation=other,
                            own=trained.mean(), wide=wide, count=len(tested))  # fmt: skip
                return


class Errors(Check):
    """What an error says of the data."""

    def finish(self) -> Iterator[Finding]:  # noqa: D102
        error, place, loaders = str(self.doctor.error or ""), self.doctor.error_place(), self.watch.open_loaders
        if "out of bounds" in error and "Target" in error:
            yield found("labels-out-of-range/error", place, error=error)
        if "more than 1 value per channel" in error:
            yield found("batch-norm-batch-of-one/error", loaders[-1].made if loaders else place, error=error)
