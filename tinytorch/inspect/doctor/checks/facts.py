"""Facts that hold in every healthy run, whatever the program is about; where one does not hold, a line is wrong.

Those of one step are functions of a `Step`; `Facts` collects them, and those that take several steps to see.
"""

from __future__ import annotations

import ast
import functools
import gc
import inspect
import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from tinytorch.core.mode import local
from tinytorch.core.names import module_of
from tinytorch.core.tensor import Tensor
from tinytorch.inspect.doctor.checks import Check
from tinytorch.inspect.doctor.finding import Suspicion, Trial
from tinytorch.inspect.doctor.limits import LIMITS
from tinytorch.inspect.doctor.patches import EveryClass, PassThrough, Separate, Transposed, Unshared
from tinytorch.inspect.doctor.place import Place, here
from tinytorch.inspect.doctor.rows import rows_compared
from tinytorch.inspect.doctor.shapes import transposition
from tinytorch.inspect.doctor.source import assigned_at, option_at, tree_of
from tinytorch.inspect.doctor.trace import tensors_of
from tinytorch.inspect.doctor.watch import array_of, node_of, root_of
from tinytorch.inspect.places import is_library
from tinytorch.nn.modules.batchnorm import _BatchNorm

__all__ = ["Facts", "return_of"]

_FLAT = ("round", "floor", "ceil", "trunc", "sign", "heaviside", "floor_divide")  # ops whose derivative is zero
_ARITHMETIC = ("add", "sub", "mul", "div", "_clamp", "pow", "neg", "addcmul")
_LOSSY = ("floor_divide", "to", "round", "floor", "trunc", "_clamp", "remainder")

#: How many samples of a loader are compared.
_SOME = 1000


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


def _reshaped(step: Step) -> Iterator[Suspicion]:
    for call in step.trace.calls:
        if call.name != "view" or not call.inputs or not isinstance(call.out, Tensor) or _of_library(call):
            continue
        a, b = tuple(call.inputs[0].shape), tuple(call.out.shape)
        if call.inputs[0].numel() < 4 or (order := transposition(a, b)) is None:
            continue
        yield Suspicion(
            "reshape-for-transpose",
            f"A tensor of shape {a} is reshaped to {b}: the sizes change places but the elements do not, so that "
            "those of different samples, times or channels are mixed.",
            call.place,
            f"x.permute(...)  # or reshape to {tuple(b[k] for k in order)}, then permute",
            trials=[Trial(Transposed("view", call.place), judge, says="with the dimensions permuted instead")
                    for judge in ("learns_better", "scores_better")],
            certain=sorted(a) == sorted(b),
            rank=2,
        )  # fmt: skip


def _of_library(call: Any) -> bool:
    return call.owner is not None and module_of(type(call.owner)).startswith("tinytorch.")


def _ignored(step: Step) -> Iterator[Suspicion]:
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
        yield Suspicion(
            "class-ignored",
            f"The loss ignores class {ignored}, which {here_.mean():.0%} of the labels have: nothing teaches the model "
            f"to predict it ({classes} classes).",
            option_at(step.facts.watch.made_at.get(id(each.call.criterion), each.call.place), "ignore_index"),
            "nn.CrossEntropyLoss()  # ignore_index is for labels that stand for no class, such as -100 or 255",
            trials=[Trial(EveryClass(), "scores_better", says="with no class ignored")],
            certain=True,
            rank=1,
        )


def _at_an_end(mask: Any, axis: int) -> bool:
    """Return whether the marked places are at the beginning or the end of each row."""
    changes = np.abs(np.diff(mask.astype(np.int8), axis=axis)).sum(axis)
    return bool((changes <= 1).all())


def _wrapped(step: Step) -> Iterator[Suspicion]:
    for call in step.trace.calls:
        if call.name not in ("sub", "add", "mul") or call.module or not isinstance(call.out, Tensor):
            continue
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
            yield Suspicion(
                "integers-wrap",
                f"{call.name} of {out.dtype} wraps around for {wrong:.1%} of the elements: {exact[exact != out][0]} "
                f"becomes {out[exact != out][0]}.",
                call.place,
                "a.float() - b.float()  # convert before calculating",
                certain=True,
                proven="the exact results are out of the range of the dtype",
                rank=1,
            )


def _flattened(step: Step) -> Iterator[Suspicion]:
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
            yield Suspicion(
                "gradient-lost",
                f"{call.name} has a derivative of zero everywhere: what is before it gets no gradient.",
                call.place,
                f"x + (x.{call.name}() - x).detach()  # or leave {call.name} to the evaluation",
                trials=[Trial(PassThrough(call.name, call.place), judge, says=f"with a gradient through {call.name}")
                        for judge in ("learns_better", "scores_better")],
                rank=2,
            )  # fmt: skip


def _cancelled(step: Step) -> Iterator[Suspicion]:
    for call in step.trace.calls:
        if call.name != "add" or len(call.inputs) != 2 or not all(x.requires_grad for x in call.inputs):
            continue
        z, difference = call.inputs
        made = step.trace.made.get(id(difference))
        if made is not None and made.name == "sub" and len(made.inputs) == 2 and made.inputs[1] is z:
            yield Suspicion(
                "gradient-lost",
                "z + (q - z) is q, and its gradient with respect to z is zero: it is a straight-through estimator "
                "without its detach().",
                call.place,
                "z + (q - z).detach()",
                trials=[Trial(Separate("add", call.place), "learns_better", says="with the difference detached")],
                certain=True,
                rank=1,
            )


def _leaked(step: Step) -> Iterator[Suspicion]:
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
                yield Suspicion(
                    "target-in-inputs",
                    "The targets are the inputs at the same places: the model learns to copy, and not to predict.",
                    made.place if made is not None else each.call.place,
                    "x, y = tokens[:, :-1], tokens[:, 1:]  # each target is the next token",
                    certain=True,
                    proven=f"all {y.size} targets of a step equal its inputs",
                    rank=1,
                )
            rows = x.reshape(len(x), -1) if x.ndim > 1 else x[:, None]
            if each.kind != "value" or rows.shape[1] < 2 or y.size != len(x) or rows.shape[1] > 10_000 or not y.std():
                continue
            equal = np.flatnonzero((rows == y.reshape(-1, 1)).all(0))
            if len(equal):
                yield Suspicion(
                    "target-in-inputs",
                    f"Feature {equal[-1]} of the inputs is the target itself: the model need only copy it.",
                    _piece_of(step.trace, given) or each.call.place,
                    "x = series[t - width : t]  # what is known before the target",
                    certain=True,
                    proven=f"the feature equals the target in all {len(x)} samples of each step",
                    rank=1,
                )


def _taken(trace: Any, y: Any, x: Any) -> bool:
    """Return whether a target was selected from the input itself."""
    return any(call.inputs and call.inputs[0] is x for call in _sources(trace, y))


def _piece_of(trace: Any, x: Any) -> Place | None:
    """Return the line that cut the pieces of which a tensor was put together, or else that selected from it first."""
    found, stacked = None, False
    for call in _sources(trace, x):
        if call.module:
            continue
        if stacked:
            return call.place
        stacked = call.name in ("_stack", "_cat", "cat")
        found = call.place
    return found


def _mispaired(step: Step) -> Iterator[Suspicion]:
    """Find inputs and targets that were put into two orders."""
    for each in step.trace.losses:
        own = _order(step.trace, each.target)
        others = [found for x in step.inputs if (found := _order(step.trace, x)) is not None]
        others = [(call, index) for call, index in others if own is not None and len(index) == len(own[1])]
        if own is None or not others or any(np.array_equal(index, own[1]) for _, index in others):
            continue
        if own[0].inputs[0] is not others[0][0].inputs[0]:
            yield Suspicion(
                "labels-mismatched",
                "Inputs and targets are put into two different orders: the targets belong to other inputs.",
                own[0].place,
                "order = torch.randperm(len(x))\nx, y = x[order], y[order]",
                certain=True,
                proven=f"{(own[1] == others[0][1]).mean():.0%} of the pairs still belong together",
                rank=1,
            )


def _order(trace: Any, x: Any) -> Any:
    """Return the call that put into another order what a tensor was taken from, and the order."""
    for call in _sources(trace, x):
        index = call.args[1][0] if call.name == "_index" and len(call.args[1]) == 1 else None
        if not isinstance(index, np.ndarray) or index.dtype.kind != "i" or index.ndim != 1 or len(index) < 8:
            continue
        if len(index) == len(call.inputs[0]) and len(np.unique(index)) == len(index):
            return call, index
    return None


def _alike(step: Step) -> Iterator[Suspicion]:
    """Find samples that are all the same although their targets differ."""
    for each in step.trace.losses[-1:]:
        y = array_of(each.target)
        if y is None or y.ndim == 0 or len(y) < 4 or (y.reshape(len(y), -1) == y.reshape(len(y), -1)[:1]).all():
            continue
        found = []
        for given in step.inputs:
            x = array_of(given)
            if x is None or x.ndim < 2 or len(x) != len(y):
                continue
            rows = x.reshape(len(x), -1)
            if (rows != rows[:1]).any():
                return
            found.append(given)
        for given in found[:1]:
            place, shared = step.facts.emptied_by(step.trace, given)
            yield Suspicion(
                "samples-alike",
                "All samples of a batch are the same while their targets differ"
                + (": they share one memory, which the next sample overwrites." if shared else "."),
                place or each.call.place,
                "return self.buffer.clone(), target" if shared else "# look at the inputs: print(x.std(0))",
                certain=True,
                proven=f"the {len(given)} inputs of each step that was looked at are equal",
                rank=1,
            )


FACTS: tuple[Callable[[Step], Iterator[Suspicion]], ...] = (
    _reshaped, _ignored, _wrapped, _flattened, _cancelled, _leaked, _alike, _mispaired,
)  # fmt: skip


class Facts(Check):
    """What holds in every healthy run."""

    causes = (
        "reshape-for-transpose", "class-ignored", "integers-wrap", "gradient-lost", "target-in-inputs",
        "samples-alike", "samples-repeated", "data-changed", "running-statistics", "samples-mixed", "nothing-loaded",
        "default-shared", "module-shared", "blank-in-targets", "log-input", "seeded-again", "own-statistics",
        "labels-mismatched", "same-batch-again",
    )  # fmt: skip

    def __init__(self, doctor: Any) -> None:
        super().__init__(doctor)
        self.steps = 0
        self.found: dict[Any, list[Any]] = {}  # by cause and line: how often, the suspicion
        self.inputs: list[Tensor] = []
        self.lossy: dict[Place, list[int]] = {}  # by line: calls that made data constant, all calls
        self.writes: dict[Any, list[Any]] = {}  # by line and memory: the steps, whether models got it
        self.rows: dict[int, list[Any]] = {}  # by loader: it, distinct samples, how many, the line
        self.chosen: dict[int, list[Any]] = {}  # by data: them, the line, the samples, how many, the choices
        self.sums: dict[int, list[Any]] = {}  # by data set: itself, checksums
        self.loads: dict[Place, str] = {}
        self.probed = False
        self.single: set[int] = set()  # the sizes of batches with one target for each sample
        self.mixed: Any = None
        self.seeds: dict[Place, list[Any]] = {}  # by line: seeds, the first inputs after each, steps
        self.after_seed: Place | None = None
        self.seed = 0
        self.drawn = False
        self.standardised: list[list[Any]] = []  # memory, shape, line, used in training, used without a graph
        self.shared: dict[Any, Any] = {}

    def _note(self, each: Suspicion) -> None:
        # (The first step shows best where data are from.)
        place = None if each.cause in ("target-in-inputs", "samples-alike", "labels-mismatched") else each.place
        self.found.setdefault((each.cause, place), [0, each])[0] += 1

    # Events -----------------------------------------------------------------------------------------

    def forward_begins(self, info: Any, args: Any) -> None:  # noqa: D102
        given = [x for x in tensors_of(args) if x.is_leaf or not x.requires_grad]
        if local.state.grad and self.watch.tracer.on:
            self.inputs += given[: max(8 - len(self.inputs), 0)]
        if self.standardised:
            self._note_standardised(given)
        if self.after_seed is not None and local.state.grad and given:
            array = array_of(given[0])
            if array is not None:
                entry = self.seeds[self.after_seed]
                entry[0].append(self.seed)
                entry[1].append(array.reshape(-1)[:64].copy())
                entry[2].append((id(info), self.watch.backwards))
                entry[3] |= self.drawn
            self.after_seed = None
        self.drawn = False

    def forward_ends(self, info: Any, args: Any, kwargs: Any, out: Any) -> None:  # noqa: D102
        if self.probed or self.watch.backwards < 2 or not local.state.grad or not args or not info.parameters:
            return
        x = array_of(args[0])
        if x is None or not x.ndim or len(x) < 4 or len(x) not in self.single:
            return
        self.probed = True
        self.mixed = self.doctor.replay.probe(lambda: rows_compared(self.watch, info.module, args, kwargs), 10.0)

    def traced(self, trace: Any, loss: Any, place: Any) -> None:  # noqa: D102
        self.steps += 1
        step = Step(trace, loss, self.inputs, self)
        for fact in FACTS:
            for each in fact(step):
                self._note(each)
        for each in trace.losses:
            if each.target.numel() == each.input.shape[0] if each.input.ndim else False:
                self.single.add(each.input.shape[0])
            if self.inputs and self.inputs[0].ndim == 4:
                self.single.add(self.inputs[0].shape[0])
        self._look_at_writes(trace)
        self._look_at_statistics(trace)
        self._look_at_losses_of_values(trace)
        self.inputs = []
        if self.watch.backwards >= 16 and not self.shared:
            self.shared = _shared_defaults()

    def _look_at_losses_of_values(self, trace: Any) -> None:
        """Count the calls at each line that turn data that vary into a constant."""
        for call in trace.calls:
            if call.name not in _LOSSY or call.module or not call.inputs or not isinstance(call.out, Tensor):
                continue
            x, out = array_of(call.inputs[0]), array_of(call.out)
            if x is None or out is None or x.size < 16 or call.out.requires_grad or out.dtype.kind == "b":
                continue
            counts = self.lossy.setdefault(call.place, [0, 0])
            counts[1] += 1
            counts[0] += (x != x.reshape(-1)[0]).any() and bool((out == out.reshape(-1)[0]).all())

    def emptied_by(self, trace: Any, x: Any) -> tuple[Place | None, bool]:
        """Return the line that made samples alike, and whether it gave the same memory for each."""
        last = None
        for call in _sources(trace, x):
            parts = list(tensors_of(call.args[0])) if call.name in ("_stack", "_cat") else []
            if len(parts) > 1 and all(root_of(each) is root_of(parts[0]) for each in parts):
                starts = {each._array.__array_interface__["data"][0] for each in parts}
                if len(starts) == 1:
                    return self._returned_at() or call.place, True
            last = call
            before = array_of(call.inputs[0]) if call.inputs and call.name in _LOSSY else None
            if before is not None and (before != before.reshape(-1)[0]).any():
                return call.place, False
        lossy = [place for place, (some, every) in self.lossy.items() if some == every > 0]
        return (lossy[0] if lossy else last.place if last is not None else self.watch.tracer.origin(x)), False

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
        given = {id(root_of(x)) for x in self.inputs}
        for info in self.watch.open_loaders:
            own = getattr(getattr(info.loader(), "dataset", None), "__dict__", {})
            given |= {id(root_of(x)) for x in tensors_of(list(own.values()))}
        for call in trace.calls:
            if call.name in ("_index", "_slice", "_select") and not call.module and call.inputs:
                out = root_of(call.out) if isinstance(call.out, Tensor) else None
                if id(out) in given:
                    given.add(id(root_of(call.inputs[0])))
                    self._look_at_choice(call)
        for call in trace.calls:
            if call.name not in _ARITHMETIC or not call.inputs or call.out is not call.args[0]:
                continue
            root = root_of(call.out)
            if root is None or id(root) not in given or call.out.requires_grad or not call.out.dtype.is_floating_point:
                continue
            entry = self.writes.setdefault((call.place, id(root)), [root, set()])
            entry[1].add(self.watch.backwards)

    def _look_at_choice(self, call: Any) -> None:
        """Note which samples of data that the program keeps are chosen for a step."""
        index = call.args[1][0] if call.name == "_index" and len(call.args[1]) == 1 else None
        if isinstance(index, np.ndarray) and index.dtype.kind == "i" and index.ndim == 1 and len(self.chosen) < 64:
            entry = self.chosen.setdefault(id(call.inputs[0]), [call.inputs[0], call.place, set(), 0, set()])
            entry[2].update(index.tolist())
            entry[3] += len(index)
            entry[4].add(index.tobytes())

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

    def _note_standardised(self, given: list[Tensor]) -> None:
        roots = [id(root_of(x)) for x in given]
        for entry in self.standardised:
            if id(entry[0]) in roots:
                entry[3 if local.state.grad else 4] = True

    def batch(self, info: Any, batch: Any) -> None:  # noqa: D102
        tensor = next(tensors_of(batch), None)
        x = array_of(tensor)
        if x is None or not x.ndim or info.epochs > 1:
            return
        entry = self.rows.setdefault(id(info), [info, set(), 0, here()])
        if entry[2] < _SOME:
            arrays = [array for each in tensors_of(batch) if (array := array_of(each)) is not None and array.ndim]
            parts = [array.reshape(len(x), -1) for array in arrays if len(array) == len(x)]
            entry[1].update(hash(tuple([part[k].tobytes() for part in parts])) for k in range(len(x)))
            entry[2] += len(x)

    def loader_begins(self, info: Any) -> None:  # noqa: D102
        dataset = getattr(info.loader(), "dataset", None)
        if dataset is None or info.epochs > 4:
            return
        tensors = getattr(dataset, "tensors", None) or list(getattr(dataset, "__dict__", {}).values())
        arrays = [x if isinstance(x, np.ndarray) else array_of(x) for x in tensors]
        rows = _length(info.loader())
        sums = [float(x.sum(dtype=np.float64)) for x in arrays
                if x is not None and x.dtype.kind in "fiu" and x.ndim and len(x) == rows]  # fmt: skip
        self.sums.setdefault(id(dataset), [dataset, []])[1].append(sums)

    def state_loaded(self, module: Any, state: Any) -> None:  # noqa: D102
        names = {name for name, _ in module.named_parameters()} | {name for name, _ in module.named_buffers()}
        if names and len(state) and hasattr(state, "keys") and not names & set(state):
            first, own = next(iter(state)), next(iter(module.state_dict().keys()))
            self.loads[here()] = f"those of the state are like {first!r}, those of the model like {own!r}"

    def seeded(self, seed: int) -> None:  # noqa: D102
        self.after_seed, self.seed, self.drawn = here(), seed, False
        self.seeds.setdefault(self.after_seed, [[], [], [], False])

    def filled(self, x: Any) -> None:  # noqa: D102
        self.drawn |= x.dtype.is_floating_point and x.numel() > 1

    def criterion(self, module: Any, args: Any) -> None:  # noqa: D102
        kind, made = type(module).__name__, self.watch.made_at.get(id(module))
        if made is None or len(args) < 2:
            return
        if kind == "CTCLoss" and isinstance(args[1], Tensor) and (args[1]._array == module.blank).any():
            self._note(Suspicion(
                "blank-in-targets",
                f"Targets contain {module.blank}, the index of the blank, which stands for no label.",
                option_at(made, "blank", 0), "nn.CTCLoss(blank=...)  # an index that no label has", certain=True,
                proven=f"{(args[1]._array == module.blank).mean():.0%} of the labels are {module.blank}", rank=1,
            ))  # fmt: skip
        if kind == "PoissonNLLLoss" and module.log_input and self.watch.tracer.on:
            call = self.watch.tracer.trace.before(args[0])
            if call is not None and call.name in ("softplus", "exp", "relu", "sigmoid", "abs", "square"):
                self._note(Suspicion(
                    "log-input",
                    f"PoissonNLLLoss takes the logarithm of the rate, but gets the result of {call.name}, which is "
                    "never negative: the rate itself.",
                    made, "nn.PoissonNLLLoss(log_input=False)", certain=True,
                    proven=f"all inputs are from {args[0]._array.min():.3g} up: no rate below 1 can be predicted",
                    rank=1,
                ))  # fmt: skip

    # At the end -------------------------------------------------------------------------------------

    def finish(self) -> Iterator[Suspicion]:  # noqa: D102
        for count, each in self.found.values():
            if count >= min(2, self.steps) or each.cause == "labels-mismatched":
                yield each
        yield from self._of_samples()
        yield from self._of_statistics()
        if self.watch.backwards < 3:
            return
        for place, which in self.loads.items():
            yield Suspicion(
                "nothing-loaded", f"load_state_dict(strict=False) has loaded nothing: no name agrees; {which}.", place,
                "model.load_state_dict({name.removeprefix('...'): x for name, x in state.items()})  # strict",
                certain=True, proven="no parameter and no buffer of the model is in the state", rank=1,
            )  # fmt: skip
        for (place, name), count in self.shared.items():
            yield Suspicion(
                "default-shared",
                f"The default of `{name}` is one object for all calls: {count} objects have it and change it.",
                place, f"def f(..., {name}=None):\n    {name} = [] if {name} is None else {name}", certain=True,
                proven=f"it is empty in the source, and what {count} objects added is in it", rank=1,
            )  # fmt: skip
        yield from self._of_modules()
        if self.mixed:
            yield Suspicion(
                "samples-mixed", self.mixed["text"], self.mixed["place"],
                "# the batch is the first dimension: dim=1, batch_first=True, ...", certain=True,
                proven=self.mixed["proof"], rank=1,
            )  # fmt: skip

    def _of_samples(self) -> Iterator[Suspicion]:
        watch = self.watch
        for info, distinct, count, place in self.rows.values():
            loader = info.loader()
            number = _length(loader)
            if not info.backwards or count < 50 or number < 1 or self._are_alike():
                continue
            if len(distinct) >= LIMITS["distinct samples"] * min(count, number):
                continue
            there = self.doctor.replay.probe(functools.partial(_distinct, loader.dataset, min(count, number)), 5.0)
            if len(distinct) >= LIMITS["distinct samples"] * (there or 0):
                continue  # (the data themselves are alike)
            made = watch.loader_made.get(id(loader), place)
            yield Suspicion(
                "samples-repeated",
                f"The first {count} samples were {len(distinct)} different ones, again and again, of a data set of "
                f"{number}.",
                option_at(made, "sampler" if loader.batch_sampler is None or loader.sampler else "batch_sampler"),
                "DataLoader(data, batch_size=..., shuffle=True)", certain=True,
                proven=f"of as many samples of the data set itself, {there} differ", rank=2,
            )  # fmt: skip
        for source, place, samples, count, choices in self.chosen.values():
            if count >= 50 and len(samples) < LIMITS["chosen samples"] * min(count, len(source)) and len(choices) > 2:
                yield Suspicion(
                    "samples-repeated",
                    f"Of {count} samples that were chosen in the steps seen, {len(samples)} differ, of {len(source)}.",
                    place, "index = torch.randperm(len(x))[:32]  # anew in each step", certain=True,
                    proven=f"{len(source) - len(samples)} samples never occurred in these steps", rank=3,
                )  # fmt: skip
                break
        for (place, _), (_, steps) in self.writes.items():
            if len(steps) >= 3:
                yield Suspicion(
                    "data-changed",
                    "The data themselves are changed here, in place, in each step: what is added stays in them.",
                    place, "x = x + noise  # a new tensor, rather than x += noise", certain=True,
                    proven=f"the same memory was written in {len(steps)} of the steps that were looked at", rank=1,
                )  # fmt: skip
                return
        for dataset, sums in self.sums.values():
            if len(sums) > 2 and all(a != b for a, b in itertools.pairwise(sums)):
                method = getattr(type(dataset), "__getitem__", None)
                where = next((place for place, _ in self.writes), None)
                if method is None or is_library(method.__code__):
                    continue
                yield Suspicion(
                    "data-changed", "The numbers of the data set are other ones in each epoch: reading changes them.",
                    where or return_of(method), "x = self.x[i].clone()  # before it is changed", certain=True,
                    proven=f"their sum was {sums[0][0]:.6g} before the first epoch and {sums[1][0]:.6g} before the "
                    "second", rank=2,
                )  # fmt: skip
        for place, (seeds, first, steps, drawn) in self.seeds.items():
            each_step = len(first) >= 0.8 * (watch.backwards - 1)
            if len(first) < 3 or len(set(seeds)) > 1 or len(set(steps)) < 3 or not (drawn or each_step):
                continue
            if len({model for model, _ in steps}) > 1:
                continue  # (several models are trained, each from the same beginning)
            if all(each.shape == first[0].shape and np.array_equal(each, first[0]) for each in first):
                yield Suspicion(
                    "same-batch-again" if each_step else "seeded-again",
                    f"A generator was seeded with {seeds[0]} {len(seeds)} times: the samples that are drawn are the "
                    "same each time.",
                    place, "generator.manual_seed(seed + epoch)  # or once, before the loop", certain=True,
                    proven=f"the first batches after {len(first)} of these calls are equal", rank=2,
                )  # fmt: skip

    def _are_alike(self) -> bool:
        return any(cause == "samples-alike" for cause, _ in self.found)

    def _of_statistics(self) -> Iterator[Suspicion]:
        trained = [entry for entry in self.standardised if entry[3]]
        for _, shape, place, training, tested in self.standardised:
            if tested and not training and any(each[1][1:] == shape[1:] for each in trained):
                yield Suspicion(
                    "own-statistics",
                    "The test data are standardised by their own mean and deviation, the training data by theirs: the "
                    "same number means another thing in each.",
                    place, "x_test = (x_test - mean) / std  # those of the training data", certain=True,
                    proven="both lines take the mean and the deviation of what they change", rank=3,
                )  # fmt: skip
        for info in self.watch.models.values():
            for path, module in info.module.named_modules():
                if not isinstance(module, _BatchNorm) or not module.track_running_stats or module.momentum is None:
                    continue
                steps = int(module.num_batches_tracked or 0)
                left = (1 - module.momentum) ** steps
                if steps < 20 or (module.momentum < LIMITS["momentum of statistics"] and left < LIMITS["first values"]):
                    continue
                made = self.watch.made_at.get(id(module))
                yield Suspicion(
                    "running-statistics",
                    f"The running statistics of {info.name}.{path} have momentum {module.momentum:g}, the weight of "
                    "the newest batch: "
                    + ("they are those of the last batch alone." if module.momentum > 0.5 else
                       f"after {steps} batches {left:.0%} of them are still the values before training."),
                    option_at(made, "momentum", 2), "momentum=0.1  # the weight of the new batch", certain=True,
                    rank=3,
                )  # fmt: skip
                break

    def _of_modules(self) -> Iterator[Suspicion]:
        for info in self.watch.models.values():
            for path, module in info.module.named_modules():
                each = [id(child) for child in module._modules.values() if child is not None and any(
                    True for _ in child.parameters())]  # fmt: skip
                name = path.rpartition(".")[2]
                if len(set(each)) == len(each) or type(module).__name__ not in ("ModuleList", "Sequential"):
                    continue
                owner = info.module.get_submodule(path.rpartition(".")[0]) if path else info.module
                yield Suspicion(
                    "module-shared",
                    f"{len(each)} entries of {info.name}{'.' + path if path else ''} are {len(set(each))} module(s): "
                    "they share their weights.",
                    assigned_at(owner, name) or self.watch.made_at.get(id(module)) or info.place,
                    "nn.ModuleList([make() for _ in range(n)])  # rather than [module] * n",
                    trials=[Trial(Unshared(), "learns_better", says="with a module of its own for each entry")],
                    rank=2,
                )


def _distinct(dataset: Any, count: int) -> int:
    """Return how many of some samples of a data set differ; called in a copy of the process."""
    places = np.linspace(0, len(dataset) - 1, count).astype(int)
    return len({tuple([x._array.tobytes() for x in tensors_of(dataset[int(k)])]) for k in places})


def _length(loader: Any) -> int:
    try:
        return len(loader.dataset)
    except (TypeError, AttributeError):
        return -1


def return_of(function: Any) -> Place:
    """Return the last line of a function that returns something."""
    code = function.__code__
    place = Place(code.co_filename, code.co_firstlineno, code.co_name)
    for node in ast.walk(tree_of(code.co_filename)):
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name and node.lineno >= code.co_firstlineno:
            lines = [each.lineno for each in ast.walk(node) if isinstance(each, ast.Return)]
            return place._replace(number=max(lines, default=node.lineno))
    return place


def _shared_defaults() -> dict[Any, int]:
    """Return the mutable defaults of functions of the program that several objects have, with how many have each."""
    objects = gc.get_objects()
    found: dict[Any, int] = {}
    for function in [each for each in objects if inspect.isfunction(each)]:
        values = function.__defaults__ or ()
        if not any(isinstance(each, (list, dict, set)) and each for each in values) or is_library(function.__code__):
            continue
        code = function.__code__
        names = code.co_varnames[: code.co_argcount][-len(values) :]
        for name, value in zip(names, values, strict=True):
            if not isinstance(value, (list, dict, set)) or not value or not _empty_in_source(function, name):
                continue
            owners = [each for each in objects if not isinstance(each, type) and hasattr(type(each), "__dict__")
                      and module_of(type(each)) == "__main__"
                      and any(own is value for own in getattr(each, "__dict__", {}).values())]  # fmt: skip
            if len(owners) > 1:
                found[Place(code.co_filename, code.co_firstlineno, code.co_name), name] = len(owners)
    return found


def _empty_in_source(function: Any, name: str) -> bool:
    code = function.__code__
    for node in ast.walk(tree_of(code.co_filename)):
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name and node.lineno == code.co_firstlineno:
            named = [*node.args.posonlyargs, *node.args.args]
            for argument, default in zip(named[::-1], node.args.defaults[::-1], strict=False):
                if argument.arg == name:
                    return not getattr(default, "elts", None) and not getattr(default, "keys", None)
    return False
