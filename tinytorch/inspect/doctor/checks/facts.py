"""Facts that hold in every healthy run, whatever the program is about; where one does not hold, a line is wrong.

Those of one step are functions of a `Step`; `Facts` collects them, and those that take several steps to see.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from tinytorch.autograd.profiler import tensors_in
from tinytorch.core.mode import local
from tinytorch.core.names import module_of
from tinytorch.core.tensor import Tensor
from tinytorch.inspect.doctor.causes import found
from tinytorch.inspect.doctor.checks import Check
from tinytorch.inspect.doctor.checks.data import size_of
from tinytorch.inspect.doctor.finding import Finding
from tinytorch.inspect.doctor.limits import LIMITS
from tinytorch.inspect.doctor.place import Place, here
from tinytorch.inspect.doctor.probes import future_compared, rows_compared
from tinytorch.inspect.doctor.shapes import transposition
from tinytorch.inspect.doctor.source import assigned_at, option_at, return_of
from tinytorch.inspect.doctor.watch import array_of, node_of, root_of
from tinytorch.inspect.places import is_library
from tinytorch.nn.modules.batchnorm import _BatchNorm

__all__ = ["Facts"]

_FLAT = ("round", "floor", "ceil", "trunc", "sign", "heaviside", "floor_divide")  # ops whose derivative is zero
_ARITHMETIC = ("add", "sub", "mul", "div", "_clamp", "pow", "neg", "addcmul")
_COMPARISONS = ("eq", "ne", "gt", "ge", "lt", "le")
_LOSSY = ("floor_divide", "to", "round", "floor", "trunc", "_clamp", "remainder")


class Step(NamedTuple):
    """What is seen of one step.

    Attributes:
        trace: its ops.
        loss: from where the backward pass goes.
        inputs: the tensors that models got.
        facts: what was seen before.
    """

    trace: Any
    loss: Any
    inputs: list[Tensor]
    facts: Facts


def _sources(trace: Any, x: Any, most: int = 60) -> Iterator[Any]:
    """Yield the calls that made a tensor, from the last to the first, along the first input of each."""
    seen: set[int] = set()
    while (call := trace.made.get(id(x))) is not None and id(call) not in seen and len(seen) < most:
        seen.add(id(call))
        yield call
        if not call.inputs:
            return
        x = call.inputs[0]


def _reshaped(step: Step) -> Iterator[Finding]:
    for call in step.trace.calls:
        if call.name != "view" or not call.inputs or not isinstance(call.out, Tensor) or _of_library(call):
            continue
        a, b = tuple(call.inputs[0].shape), tuple(call.out.shape)
        if call.inputs[0].numel() < 4 or (order := transposition(a, b)) is None:
            continue
        yield found("reshape-for-transpose", call.place, a=a, b=b, order=tuple(b[k] for k in order), op="view",
                    certain=sorted(a) == sorted(b))  # fmt: skip


def _of_library(call: Any) -> bool:
    return call.owner is not None and module_of(type(call.owner)).startswith("tinytorch.")


def _ignored(step: Step) -> Iterator[Finding]:
    for each in step.trace.losses:
        if each.call.name != "_cross_entropy" or len(each.call.args) < 4:
            continue
        weight, ignored = each.call.args[2:4]
        y = each.target
        if isinstance(weight, Tensor) and y.dtype.is_floating_point is False:
            without = np.flatnonzero(weight._array == 0)
            if ignored not in without and np.isin(y._array, without).any():
                ignored = int(without[np.isin(without, y._array)][0])
        while (made := step.trace.made.get(id(y))) is not None and made.name == "view" and made.inputs:
            y = made.inputs[0]
        labels = array_of(y)
        classes = each.input.shape[1] if each.input.ndim > 1 else 0
        if labels is None or not 0 <= ignored < classes or not (here_ := labels == ignored).any() or here_.all():
            continue
        if labels.ndim > 1 and (_at_an_end(here_, -1) or _at_an_end(here_, 0)):
            continue  # sequences are filled up with it
        tokens = [x for x in step.inputs if x.dtype.is_floating_point is False and x.numel() == labels.size]
        if any(((x._array.reshape(-1) == ignored) == here_.reshape(-1)).mean() > 0.9 for x in tokens):
            continue
        made = step.facts.watch.made_at.get(id(each.call.criterion), each.call.place)
        yield found("class-ignored", option_at(made, "ignore_index"), ignored=ignored, share=here_.mean())


def _at_an_end(mask: Any, axis: int) -> bool:
    """Return whether the marked places are at the beginning or the end of each row."""
    changes = np.abs(np.diff(mask.astype(np.int8), axis=axis)).sum(axis)
    return bool((changes <= 1).all())


def _wrapped(step: Step) -> Iterator[Finding]:
    for call in step.trace.calls:
        if call.name not in ("sub", "add", "mul") or call.module or not isinstance(call.out, Tensor):
            continue
        if call.out is call.args[0]:
            continue  # (in place: what it was is gone)
        out = array_of(call.out)
        if out is None or out.dtype.itemsize > 1 or out.dtype.kind not in "iu" or out.size > 1_000_000:
            continue
        x, y = (array_of(each) if isinstance(each, Tensor) else each for each in call.args[:2])
        if x is None or y is None or not isinstance(y, (int, np.ndarray)) or not isinstance(x, (int, np.ndarray)):
            continue
        if any(isinstance(each, np.ndarray) and each.dtype.kind == "b" for each in (x, y)):
            continue
        exact = {"sub": np.subtract, "add": np.add, "mul": np.multiply}[call.name](
            np.asarray(x).astype(np.int64), np.asarray(y).astype(np.int64)
        )
        wrong = float((exact != out).mean()) if exact.shape == out.shape else 0.0
        if wrong:
            yield found("integers-wrap", call.place, name=call.name, dtype=out.dtype, share=wrong,
                        exact=exact[exact != out][0], got=out[exact != out][0])  # fmt: skip


def _flattened(step: Step) -> Iterator[Finding]:
    flat = [call for call in step.trace.calls if call.name in _FLAT and isinstance(call.out, Tensor)
            and call.out.requires_grad]  # fmt: skip
    if not flat or not isinstance(step.loss, Tensor):
        return
    nodes, waiting = set(), [node_of(step.loss)]
    while waiting:
        node = waiting.pop()
        if node is not None and id(node) not in nodes:
            nodes.add(id(node))
            waiting += [edge[0] for edge in node.next_functions]
    for call in flat:
        if id(node_of(call.out)) in nodes:
            yield found("gradient-lost", call.place, name=call.name)


def _cancelled(step: Step) -> Iterator[Finding]:
    for call in step.trace.calls:
        if call.name != "add" or len(call.inputs) != 2 or not all(x.requires_grad for x in call.inputs):
            continue
        z, difference = call.inputs
        made = step.trace.made.get(id(difference))
        if made is not None and made.name == "sub" and len(made.inputs) == 2 and made.inputs[1] is z:
            yield found("gradient-lost/estimator", call.place)


def _leaked(step: Step) -> Iterator[Finding]:
    for each in step.trace.losses:
        y = array_of(each.target)
        if y is None or y.size < 8:
            continue
        for given in step.inputs:
            x = array_of(given)
            if x is None or x.dtype.kind != y.dtype.kind:
                continue
            if root_of(x) is root_of(y) or _taken(step.trace, each.target, given):
                continue  # (on purpose, or the model computes the loss)
            tokens = each.kind in ("class", "nll") and x.size == y.size > 32 and x.ndim > 1 and len(np.unique(y)) > 4
            if tokens and (x.reshape(-1) == y.reshape(-1)).mean() > LIMITS["targets that are inputs"]:
                made = step.trace.before(each.target)
                yield found("target-in-inputs/copied", made.place if made is not None else each.call.place,
                            count=y.size)  # fmt: skip
            rows = x.reshape(len(x), -1) if x.ndim > 1 else x[:, None]
            if each.kind != "value" or rows.shape[1] < 2 or y.size != len(x) or rows.shape[1] > 10_000 or not y.std():
                continue
            equal = np.flatnonzero((rows == y.reshape(-1, 1)).all(0))
            if len(equal):
                yield found("target-in-inputs/feature", _piece_of(step.trace, given) or each.call.place,
                            feature=equal[-1], count=len(x))  # fmt: skip


def _taken(trace: Any, y: Any, x: Any) -> bool:
    """Return whether a target was selected from the input itself."""
    return any(call.inputs and call.inputs[0] is x for call in _sources(trace, y))


def _piece_of(trace: Any, x: Any) -> Place | None:
    """Return the line that cut the pieces of which a tensor was put together, or else that selected from it first."""
    first, stacked = None, False
    for call in _sources(trace, x):
        if call.module:
            continue
        if stacked:
            return call.place
        stacked = call.name in ("_stack", "_cat", "cat")
        first = call.place
    return first


def _alike(step: Step) -> Iterator[Finding]:
    """Find samples that are all the same although their targets differ."""
    for each in step.trace.losses[-1:]:
        y = array_of(each.target)
        if y is None or y.ndim == 0 or len(y) < 4 or (y.reshape(len(y), -1) == y.reshape(len(y), -1)[:1]).all():
            continue
        same = []
        for given in step.inputs:
            x = array_of(given)
            if x is None or x.ndim < 2 or len(x) != len(y):
                continue
            rows = x.reshape(len(x), -1)
            if (rows != rows[:1]).any():
                return
            same.append(given)
        for given in same[:1]:
            place, shared = step.facts.emptied_by(step.trace, given)
            values = np.unique(array_of(given)[:1])
            value = f"all {values[0]:g}" if len(values) == 1 else "bit for bit"
            yield found("samples-alike/shared" if shared else "samples-alike", place or each.call.place,
                        count=len(given), value=value)  # fmt: skip


def _unweighted(step: Step) -> Iterator[Finding]:
    """Find weights of a softmax that are summed up along another dimension than that along which they sum to 1."""
    for call in step.trace.calls:
        made = step.trace.before(call.inputs[0]) if call.name in ("bmm", "mm", "mv") and len(call.inputs) > 1 else None
        x = array_of(call.inputs[0]) if made is not None and made.name == "_softmax" else None
        if made is None or x is None or x.ndim < 2 or x.size < 4:
            continue
        last = step.trace.maker(call.inputs[0])
        while last is not made and last.name not in ("_transpose", "_permute"):
            last = step.trace.maker(last.inputs[0])
        if last is not made:
            continue  # (transposed weights, as of clusters, are not meant as an average)
        total = x.sum(-1)
        if np.abs(total - 1).max() > 0.05 and float(np.ptp(total)) > 1e-3:
            yield found("softmax-dimension", made.place, dim=made.args[1], low=total.min(), high=total.max())


def _unread(step: Step) -> Iterator[Finding]:
    """Find writes into the copy that an index makes, which nothing reads."""
    copies: dict[int, list[Any]] = {}  # by memory: the call that made it, and the last one that wrote into a part of it
    for call in step.trace.calls:
        for x in call.inputs:
            made, _ = entry = copies.get(id(root_of(x)), [None, None])
            if made is None:
                continue
            writes = call.out is call.args[0] and x is call.out is not made.out
            if call.place[:2] == made.place[:2] and (writes or call.is_view):
                entry[1] = call if writes else entry[1]
            else:
                del copies[id(root_of(x))]
        out = array_of(call.out) if call.name == "_index" and not call.module else None
        if out is not None and not call.out.requires_grad:
            copies[id(root_of(out))] = [call, None]
    for made, written in copies.values():
        if written is not None and written.name in ("_fill", "_copy", "_masked_fill", *_ARITHMETIC):
            yield found("written-to-copy", made.place)


def _merged(step: Step) -> Iterator[Finding]:
    """Find conversions in which different numbers become equal, since the dtype has no more of them."""
    for call in step.trace.calls:
        x = array_of(call.inputs[0]) if call.name == "to" and call.inputs and not call.module else None
        out = array_of(call.out) if x is not None and isinstance(call.out, Tensor) else None
        if x is None or out is None or out.dtype.kind != "f" or not 16 <= x.size < 1e5:
            continue
        if x.dtype.itemsize <= out.dtype.itemsize:
            continue
        before = len(np.unique(x))
        after = min(len(np.unique(out)), int((out == x).mean() * before) if x.dtype.kind in "iu" else before)
        if after < LIMITS["numbers left"] * before:
            yield found("precision-too-low/merged", call.place, before=before, after=after, dtype=out.dtype,
                        largest=np.abs(x).max())  # fmt: skip


def _emptied(step: Step) -> Iterator[Finding]:
    """Find roundings and conversions that turn numbers that vary into a constant."""
    for call in step.trace.calls:
        x = array_of(call.inputs[0]) if call.name in _LOSSY and call.inputs and isinstance(call.out, Tensor) else None
        out = None if x is None or call.out.requires_grad else array_of(call.out)
        if x is None or out is None or x.size < 16 or out.dtype.kind == "b":
            continue
        if (out == out.reshape(-1)[0]).all() and len(np.unique(x)) > 4:
            yield found("values-lost", call.place, name=call.name, count=len(np.unique(x)), value=out.reshape(-1)[0])


def _terms(step: Step) -> Iterator[Finding]:
    """Find losses that add a mean over a batch and a sum over it."""
    calls: list[Any] = []
    waiting = [step.loss]
    while waiting and len(calls) < 12:
        call = step.trace.maker(waiting.pop())
        if call is not None and not isinstance(call.out, (list, tuple)) and call.out.ndim == 0:
            calls.append(call)
            waiting += call.inputs if call.name in ("add", "sub", "mul", "neg") else []
    means = [call for call in calls if call.name == "mean" or "mean" in call.args]
    sums = [call for call in calls if call.name == "sum" and call.inputs and call.args[1:2] in ((None,), ((),), ())
            and not call.inputs[0].is_leaf and call.inputs[0].ndim > 1]  # fmt: skip
    sizes = {x.shape[0] for x in step.inputs if x.ndim}
    if means and len(sums) == 1 and sums[0].inputs[0].shape[0] in sizes:
        yield found("terms-apart", means[0].place, count=sums[0].inputs[0].numel(), line=sums[0].place.number, op="sum",
                    where=sums[0].place)  # fmt: skip


def _hidden(step: Step) -> Iterator[Finding]:
    """Find weights of attention that are zero at all places but those of padding."""
    tokens = [x for x in step.inputs if x.ndim == 2 and not x.dtype.is_floating_point]
    for k, call in enumerate(step.trace.calls if tokens else ()):
        weights: Any = array_of(call.out) if call.name == "_softmax" else None
        for given in tokens if weights is not None and weights.ndim > 1 else ():
            x = array_of(given)
            if x is None or x.shape != (weights.shape[0], weights.shape[-1]):
                continue
            shown = (weights > 0).any(tuple(range(1, weights.ndim - 1)))
            kept, others = x[shown], np.unique(x[~shown])
            if shown.sum(1).max() < 2 or (kept != kept[0]).any() or len(others) < 4 or kept[0] in others:
                continue
            made = [each for each in step.trace.calls[:k] if each.name in _COMPARISONS and each.inputs[0] is given]
            yield found("mask-inverted", (made[-1] if made else call).place, token=kept[0], kept=len(kept),
                        others=len(others))  # fmt: skip


def _scaled(step: Step) -> Iterator[Finding]:
    """Find tables whose columns have very different scales, such as one that is standardised as a whole."""
    for given in step.inputs:
        x = array_of(given)
        if x is None or x.dtype.kind != "f" or x.ndim != 2 or len(x) < 16 or not 1 < x.shape[1] <= 1000:
            continue
        scales = [float(column.std()) for column in x.T.astype(np.float64) if len(np.unique(column)) > 4]
        if len(scales) > 1 and max(scales) > LIMITS["scales of columns"] * min(scales):
            made = [
                call for call in _sources(step.trace, given) if call.name in ("div", "mul") and len(call.inputs) > 1
            ]
            scale = step.trace.maker(made[0].inputs[1]) if made else None
            place = (scale or made[0]).place if made else next(iter(step.facts.watch.models.values())).place
            yield found("inputs-unscaled/columns", place, least=min(scales), most=max(scales))


FACTS: tuple[Callable[[Step], Iterator[Finding]], ...] = (
    _reshaped, _ignored, _wrapped, _flattened, _cancelled, _leaked, _alike, _unweighted, _unread, _merged, _emptied,
    _terms, _hidden, _scaled,
)  # fmt: skip


class Facts(Check):
    """What holds in every healthy run."""

    def __init__(self, doctor: Any) -> None:
        super().__init__(doctor)
        self.steps = 0
        self.seen: dict[Any, list[Any]] = {}  # by cause and line: how often, the suspicion
        self.writes: dict[Any, set[int]] = {}  # by line and memory: the steps
        self.sums: dict[int, list[Any]] = {}  # by data set: itself, checksums
        self.loads: dict[Place, str] = {}
        self.probed: set[str] = set()
        self.single: set[int] = set()  # the sizes of batches with one target for each sample
        self.tokens: Any = None  # those of the last step, if targets are the next ones
        self.probes: list[dict[str, Any]] = []  # what copies have shown
        self.standardised: list[list[Any]] = []  # memory, shape, line, used in training, used without a graph

    # Events -----------------------------------------------------------------------------------------

    def forward_begins(self, info: Any, args: Any) -> None:  # noqa: D102
        roots = [id(root_of(x)) for x in tensors_in(args)] if self.standardised else []
        for entry in self.standardised:
            if id(entry[0]) in roots:
                entry[3 if local.state.grad else 4] = True

    def forward_ends(self, info: Any, args: Any, kwargs: Any, out: Any) -> None:  # noqa: D102
        if self.watch.backwards < 2 or not local.state.grad or not args or not info.parameters:
            return
        x, probe = array_of(args[0]), self.doctor.replay.probe
        if x is None or not x.ndim or len(x) < 4:
            return
        for name, applies, compare in (("rows", len(x) in self.single, rows_compared),
                                       ("future", self.tokens is not None, future_compared)):  # fmt: skip
            if applies and name not in self.probed:
                self.probed.add(name)
                shown = probe(lambda compare=compare: compare(self.watch, info.module, args, kwargs), 10.0)
                self.probes += [shown] if shown else []

    def traced(self, trace: Any, loss: Any, place: Any) -> None:  # noqa: D102
        self.steps += 1
        given = self.watch.given
        step = Step(trace, loss, given, self)
        for each in itertools.chain(*[fact(step) for fact in FACTS]):
            # (The first step shows best where data are from.)
            line = None if each.cause in ("target-in-inputs", "samples-alike", "inputs-unscaled") else each.place
            self.seen.setdefault((each.cause, line), [0, each])[0] += 1
        for each in trace.losses:
            if each.input.ndim and each.target.numel() == each.input.shape[0]:
                self.single.add(each.input.shape[0])
            if given and given[0].ndim == 4:
                self.single.add(given[0].shape[0])
            x, y = (array_of(given[0]) if given else None), array_of(each.target)
            if x is None or y is None or x.dtype != y.dtype or x.size != y.size:
                continue
            if x.ndim > 1 and x.shape[1] > 3 and (x[:, 1:] == y.reshape(x.shape)[:, :-1]).all():
                self.tokens = x
        self._look_at_writes(trace)
        self._look_at_statistics(trace)

    def emptied_by(self, trace: Any, x: Any) -> tuple[Place | None, bool]:
        """Return the line that made samples alike, and whether it gave the same memory for each."""
        last = None
        for call in _sources(trace, x):
            parts = list(tensors_in(call.args[0])) if call.name in ("_stack", "_cat") else []
            if len(parts) > 1 and all(root_of(each) is root_of(parts[0]) for each in parts):
                starts = {each._array.__array_interface__["data"][0] for each in parts}
                if len(starts) == 1:
                    return self._returned_at() or call.place, True
            last = call
            before = array_of(call.inputs[0]) if call.inputs and call.name in _LOSSY else None
            if before is not None and (before != before.reshape(-1)[0]).any():
                return call.place, False
        return (last.place if last is not None else self.watch.tracer.origin(x)), False

    def _returned_at(self) -> Place | None:
        """Return where the data set of the running loader returns a sample."""
        loaders = self.watch.open_loaders
        dataset = getattr(loaders[-1].loader(), "dataset", None) if loaders else None
        method = getattr(type(dataset), "__getitem__", None)
        code = getattr(method, "__code__", None)
        if code is None or is_library(code):
            return None
        return return_of(method)

    def _look_at_writes(self, trace: Any) -> None:
        """Note the lines that calculate in the memory of data."""
        given = {id(root_of(x)) for x in self.watch.given}
        for info in self.watch.open_loaders:
            own = getattr(getattr(info.loader(), "dataset", None), "__dict__", {})
            given |= {id(root_of(x)) for x in tensors_in(list(own.values()))}
        for call in trace.calls:
            if call.name in ("_index", "_slice", "_select") and not call.module and call.inputs:
                out = root_of(call.out) if isinstance(call.out, Tensor) else None
                if id(out) in given:
                    given.add(id(root_of(call.inputs[0])))
        for call in trace.calls:
            if call.name not in _ARITHMETIC or not call.inputs or call.out is not call.args[0]:
                continue
            root = root_of(call.out)
            if root is None or id(root) not in given or call.out.requires_grad or not call.out.dtype.is_floating_point:
                continue
            self.writes.setdefault((call.place, id(root)), set()).add(self.watch.backwards)

    def _look_at_statistics(self, trace: Any) -> None:
        """Note data that are standardised by their own mean and standard deviation, before training."""
        if self.watch.backwards > 1:
            return
        for call in trace.calls:
            if call.name != "div" or len(call.inputs) != 2 or call.module or call.out.requires_grad:
                continue
            top, bottom = (trace.made.get(id(x)) for x in call.inputs)
            if top is None or bottom is None or top.name != "sub" or bottom.name not in ("_std", "add", "_clamp"):
                continue
            bottom = bottom if bottom.name == "_std" else trace.made.get(id(bottom.inputs[0]))
            mean = trace.made.get(id(top.inputs[1])) if len(top.inputs) == 2 else None
            if mean is None or bottom is None or mean.name != "mean" or bottom.name != "_std":
                continue
            x = top.inputs[0]
            if mean.inputs[0] is x and bottom.inputs[0] is x:
                shape = tuple(call.out.shape)
                self.standardised.append([root_of(call.out), shape, call.place, False, False])
        for entry in self.standardised:
            entry[3] |= any(call.name in ("_index", "_slice", "_select") and root_of(call.inputs[0]) is entry[0]
                            for call in trace.calls if call.inputs and not call.module)  # fmt: skip

    def loader_begins(self, info: Any) -> None:  # noqa: D102
        dataset = getattr(info.loader(), "dataset", None)
        if dataset is None or info.epochs > 4:
            return
        tensors = getattr(dataset, "tensors", None) or list(getattr(dataset, "__dict__", {}).values())
        arrays = [x if isinstance(x, np.ndarray) else array_of(x) for x in tensors]
        rows = size_of(info.loader())
        sums = [float(x.sum(dtype=np.float64)) for x in arrays
                if x is not None and x.dtype.kind in "fiu" and x.ndim and len(x) == rows]  # fmt: skip
        self.sums.setdefault(id(dataset), [dataset, []])[1].append(sums)

    def state_loaded(self, module: Any, state: Any) -> None:  # noqa: D102
        names = {name for name, _ in module.named_parameters()} | {name for name, _ in module.named_buffers()}
        if names and len(state) and hasattr(state, "keys") and not names & set(state):
            first, own = next(iter(state)), next(iter(module.state_dict().keys()))
            self.loads[here()] = f"those of the state are like {first!r}, those of the model like {own!r}"

    # At the end -------------------------------------------------------------------------------------

    def finish(self) -> Iterator[Finding]:  # noqa: D102
        for count, each in self.seen.values():
            always = each.cause != "values-lost" or count >= 0.9 * self.steps
            if (count >= min(2, self.steps) and always) or each.cause in ("written-to-copy", "precision-too-low"):
                yield each
        yield from self._of_data()
        yield from self._of_statistics()
        if self.watch.backwards < 3:
            return
        for place, which in self.loads.items():
            yield found("nothing-loaded", place, which=which)
        yield from self._of_modules()
        for shown in self.probes:
            yield found(shown["row"], shown["place"], **shown["words"])

    def _of_data(self) -> Iterator[Finding]:
        """Find data that are written to."""
        often = [place for (place, _), steps in self.writes.items() if len(steps) >= 3]
        proof = "the same memory was written in several of the steps that were looked at"
        for dataset, sums in [] if often else self.sums.values():
            method: Any = getattr(type(dataset), "__getitem__", None)
            if len(sums) > 2 and all(a != b for a, b in itertools.pairwise(sums)) and not is_library(method.__code__):
                often = [next((place for place, _ in self.writes), None) or return_of(method)]
                proof = f"the sum of its numbers was {sums[0][0]:.6g} first, and {sums[1][0]:.6g} an epoch later"
        if often:
            yield found("data-changed", often[0], proof=proof)

    def _of_statistics(self) -> Iterator[Finding]:
        trained = [entry for entry in self.standardised if entry[3]]
        for _, shape, place, training, tested in self.standardised:
            if tested and not training and any(each[1][1:] == shape[1:] for each in trained):
                yield found("own-statistics", place)
        for info in self.watch.models.values():
            for path, module in info.module.named_modules():
                if not isinstance(module, _BatchNorm) or not module.track_running_stats or module.momentum is None:
                    continue
                steps = int(module.num_batches_tracked or 0)
                left = (1 - module.momentum) ** steps
                if steps < 20 or (module.momentum < LIMITS["momentum of statistics"] and left < LIMITS["first values"]):
                    continue
                made = self.watch.made_at.get(id(module))
                yield found("running-statistics", option_at(made, "momentum", 2), model=info.name, path=path,
                            momentum=module.momentum, steps=steps, left=left)  # fmt: skip
                break

    def _of_modules(self) -> Iterator[Finding]:
        for info in self.watch.models.values():
            for path, module in info.module.named_modules():
                each = [id(child) for child in module._modules.values() if child is not None and any(
                    True for _ in child.parameters())]  # fmt: skip
                name = path.rpartition(".")[2]
                if len(set(each)) == len(each) or type(module).__name__ not in ("ModuleList", "Sequential"):
                    continue
                owner = info.module.get_submodule(path.rpartition(".")[0]) if path else info.module
                yield found("module-shared",
                            assigned_at(owner, name) or self.watch.made_at.get(id(module)) or info.place,
                            count=len(each), few=len(set(each)), model=info.name, path=path)  # fmt: skip
