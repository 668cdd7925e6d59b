"""What is kept too long, or not kept at all: states that are aliases, losses with their graphs, growing lists."""

from __future__ import annotations

import gc
import itertools
import weakref
from collections.abc import Iterator
from types import FrameType
from typing import Any

import numpy as np

from tinytorch.core.names import module_of
from tinytorch.core.tensor import Tensor
from tinytorch.inspect.doctor.checks import Check
from tinytorch.inspect.doctor.finding import Suspicion
from tinytorch.inspect.doctor.place import Place, frame_here, here
from tinytorch.inspect.doctor.source import changed_at
from tinytorch.inspect.doctor.trace import tensors_of
from tinytorch.inspect.doctor.watch import array_of, node_of, root_of

__all__ = ["Collections", "KeptGraphs", "StateAliases"]


class StateAliases(Check):
    """`best = model.state_dict()`, which goes on changing with the model."""

    causes = ("state-dict-alias",)

    def __init__(self, doctor: Any) -> None:
        super().__init__(doctor)
        self.taken: list[list[Any]] = []  # reference, place, backwards, copies of some elements, model's class
        self.found: dict[Any, tuple[str, float, int]] = {}  # by line: those that were loaded
        self.places: list[Any] = []  # where states were taken
        self.loads: dict[Any, int] = {}  # how often one of them was loaded, by the line that took it
        self.kept: dict[Any, tuple[str, float, int]] = {}

    def state_taken(self, module: Any, state: Any) -> None:  # noqa: D102
        try:
            reference = weakref.ref(state)
        except TypeError:
            return
        some = {name: array.reshape(-1)[:16].copy() for name, x in state.items()
                if (array := array_of(x)) is not None and array.dtype.kind == "f" and array.size}  # fmt: skip
        for reference_, place, at, before, owner in self.taken:
            kept = reference_()
            if kept is not None and owner is module and place == here():
                self._compare(kept, place, at, before, owner, self.kept)
        self.taken = [each for each in self.taken if each[0]() is not None][-20:]
        self.taken.append([reference, here(), self.watch.backwards, some, module])
        self.places.append(here())

    def state_loaded(self, module: Any, state: Any) -> None:  # noqa: D102
        for reference, place, at, some, owner in self.taken:
            if reference() is state and owner is module:
                self._compare(state, place, at, some, owner, self.found)
                self.loads[place] = self.loads.get(place, 0) + 1

    def _compare(self, state: Any, place: Any, at: int, some: Any, owner: Any, found: dict[Any, Any]) -> None:
        """Note by how much a kept state has changed with the model."""
        since = self.watch.backwards - at
        own = dict(owner.named_parameters())
        change = 0.0
        for name, before in some.items():
            now, mine = array_of(state.get(name)), array_of(own.get(name))
            if now is None or mine is None or not np.shares_memory(now, mine):
                continue
            change = max(change, float(np.abs(now.reshape(-1)[:16] - before).max()))
        if since > 0 and change > 0:
            found[place] = (type(owner).__name__, change, since)

    def finish(self) -> Iterator[Suspicion]:  # noqa: D102
        for place, times in self.loads.items():
            # (A state that is loaded each time that it was taken is a way of changing parameters.)
            if place in self.kept and times == 1 and self.places.count(place) > 1:
                self.found.setdefault(place, self.kept[place])
        for place, (name, change, since) in self.found.items():
            yield Suspicion(
                "state-dict-alias",
                f"The state of {name} that was kept here refers to the parameters themselves: {since} steps later "
                "it holds the weights of that time, and loading it changes nothing.",
                place,
                "best = copy.deepcopy(model.state_dict())",
                certain=True,
                proven=f"the kept values have changed by up to {change:.3g} since they were taken, as the model's did; "
                "those of a copy would not have",
                rank=1,
            )


class KeptGraphs(Check):
    """Losses and predictions that are kept with the graphs that computed them."""

    causes = ("loss-kept-with-graph", "memory-grows")

    def __init__(self, doctor: Any) -> None:
        super().__init__(doctor)
        self.nodes: list[Any] = []  # weak references to the last nodes of graphs
        self.outputs: list[Any] = []
        self.alive: list[tuple[int, int, int]] = []
        self.lines: dict[str, Any] = {}
        self.unused: list[Any] = []  # the last nodes of outputs that no backward pass followed
        self.waiting: list[Any] = []  # those before the last backward pass
        self.since: list[Any] = []  # those of the outputs since the last backward pass
        self.ending = [0, 0, 1]  # how many of the last outputs are there, after which backward pass, of how many
        self.kept = 0  # how many of the unused ones were still there, when the next backward pass had ended
        self.scalars: set[str] = set()  # the variables that keep numbers

    def backward_ends(self, loss: Any, place: Any) -> None:  # noqa: D102
        node = node_of(loss) if isinstance(loss, Tensor) else None
        if node is None:
            return
        self._add(self.nodes, node)
        if self.watch.backwards % 20 == 0:
            self.count()
        if self.waiting:
            self.unused += self.waiting
            self._look_at_unused()
        # Several passes, as of an evaluation; or as of an episode, of which this pass makes use: look at the next one.
        self.waiting = self.since[:-1] if len(self.since) >= 3 else []
        self.since = []

    def _look_at_unused(self) -> None:
        """Look for what keeps the graphs of an evaluation."""
        alive = [node for each in self.unused if (node := each()) is not None]
        if len(alive) < 6 or len(alive) <= 0.8 * len(self.unused):
            return
        inner = set().union(*[_graph(node, 400) - {id(node)} for node in alive])
        ends = sum(1 for node in alive if id(node) not in inner)  # (layers called one by one make one graph)
        if ends >= 6:
            self.kept = ends
            self._find(frame_here())

    def forward_ends(self, info: Any, args: Any, kwargs: Any, out: Any) -> None:  # noqa: D102
        found = [node for each in tensors_of(out) if (node := node_of(each)) is not None]
        if found:
            self._add(self.outputs, found[0])
            if found[-1] is not found[0]:  # (the last may be a recurrent state)
                self._add(self.outputs, found[-1])
            self._add(self.since, found[0])
            count = len(self.since)
            if count >= 16 and count & (count - 1) == 0 and self.watch.backwards:
                self.ending = [sum(1 for each in self.since if each() is not None), self.watch.backwards, count]
                if self.ending[0] > 0.8 * count:
                    self._find(frame_here())

    def _add(self, kept: list[Any], node: Any) -> None:
        try:
            kept.append(weakref.ref(node))
        except TypeError:
            return

    def count(self) -> None:
        """Count the graphs that are still there, and look for what keeps them while they are."""
        self.nodes = [each for each in self.nodes if each() is not None]
        self.outputs = [each for each in self.outputs if each() is not None]
        self.alive.append((self.watch.backwards, len(self.nodes), len(self.outputs)))
        if len(self.nodes) > 10 or len(self.outputs) > 10:
            self._find(frame_here())

    def _find(self, frame: FrameType) -> None:
        """Find the variables that keep graphs, and the lines that add to them."""
        kept: set[int] = {id(each()) for each in (*self.nodes, *self.outputs, *self.unused, *self.since)}
        depth = 0
        current: FrameType | None = frame
        while current is not None and depth < 8:
            places = (
                {**current.f_globals, **current.f_locals} if current.f_code.co_name != "<module>" else current.f_globals
            )
            for name, value in list(places.items()):
                if name.startswith("__"):
                    continue
                line = self._keeps(name, value, kept, current)
                if line is not None:
                    self.lines.setdefault(name, line)
            current, depth = current.f_back, depth + 1

    def _keeps(self, name: str, value: Any, kept: set[int], frame: FrameType) -> Place | None:
        held: list[Any] = []
        if isinstance(value, Tensor):
            if value.grad_fn is None or len(_graph(value.grad_fn, 400) & kept) < 5:
                return None
            held = [value]
            self.scalars.update([name] * (value.numel() == 1))
        elif isinstance(value, (list, dict)) and len(value) > 5:
            values = list(value.values() if isinstance(value, dict) else value)[-200:]
            held = [x for each in values for x in (each if isinstance(each, (list, tuple)) else [each])
                    if isinstance(x, Tensor) and x.grad_fn is not None]  # fmt: skip
            if len(held) < 5:
                return None
            self.scalars.update([name] * all(each.numel() == 1 for each in held))
        elif hasattr(value, "__dict__") and not isinstance(value, type) and _own(value):
            for key, inner in list(vars(value).items())[:50]:
                if not isinstance(inner, (Tensor, list, dict)):
                    continue
                found = self._keeps(key, inner, kept, frame)
                if found is not None:
                    return found
            return None
        else:
            return None
        file, function = frame.f_code.co_filename, frame.f_code.co_name
        return changed_at(name, file, function) or Place(file, frame.f_lineno, function)

    def finish(self) -> Iterator[Suspicion]:  # noqa: D102
        if not self.lines:
            return
        step, losses, outputs = self.alive[-1] if self.alive else (0, 0, 0)
        name, place = next(iter(self.lines.items()))
        last = self.ending[0] if self.ending[1] == self.watch.backwards and self.ending[0] > 0.8 * self.ending[2] else 0
        counts = [each[2] for each in self.alive]
        if max(losses, outputs) >= max(0.6 * step, 15) or (
            len(counts) > 3 and outputs >= 15 and all(a < b for a, b in itertools.pairwise(counts))
        ):
            count, what = max(losses, outputs), f"after {step} steps"
            scalar = losses >= 0.6 * step
        elif max(self.kept, last) >= 6:
            count, what = max(self.kept, last), "of an evaluation, after which nothing calls backward(),"
            scalar = name in self.scalars
        else:
            return
        yield Suspicion(
            "loss-kept-with-graph" if scalar else "memory-grows",
            f"The graphs of {count} {'losses' if scalar else 'outputs of the model'} {what} were still in memory, kept "
            f"by the variable `{name}`: memory grows with every step.",
            place,
            f"{name} += loss.item()  # or {name}.append(loss.item()); x.detach() keeps a tensor without its graph",
            certain=True,
            proven=self._proof(name),
            rank=2,
        )

    def _proof(self, name: str) -> str:
        """Cut the kept graphs in a copy of the process and count again."""

        def cut() -> tuple[int, int]:
            every = (*self.nodes, *self.outputs, *self.unused, *self.since)
            before = sum(1 for each in every if each() is not None)
            for each in gc.get_objects():
                if isinstance(each, Tensor) and each.grad_fn is not None and not each._is_view():
                    each.detach_()
            gc.collect()
            return before, sum(1 for each in every if each() is not None)

        counts = self.doctor.replay.probe(cut)
        if counts and counts[0] > 5 and counts[1] < 0.2 * counts[0]:
            return f"with the tensors in `{name}` detached, {counts[0] - counts[1]} of {counts[0]} graphs are freed"
        return ""


class Collections(Check):
    """Lists and dicts that grow by tensors in every step."""

    causes = ("memory-grows",)

    def __init__(self, doctor: Any) -> None:
        super().__init__(doctor)
        self.sizes: dict[str, list[tuple[int, int, int]]] = {}  # by variable: step, entries, bytes
        self.lines: dict[str, Any] = {}
        self.freed: dict[str, int] = {}

    def backward_ends(self, loss: Any, place: Any) -> None:  # noqa: D102
        step = self.watch.backwards
        if step % 20 or (step > 200 and step % 100):
            return
        frame: FrameType | None = frame_here()
        while frame is not None:
            names = frame.f_globals if frame.f_code.co_name == "<module>" else {**frame.f_globals, **frame.f_locals}
            for name, value in list(names.items()):
                if isinstance(value, (list, dict)) and len(value) >= 10 and not name.startswith("__"):
                    self._measure(name, value, frame, step)
            frame = frame.f_back

    def _measure(self, name: str, value: Any, frame: FrameType, step: int) -> None:
        entries = list(value.values()) if isinstance(value, dict) else value
        some = [entries[k] for k in sorted({0, len(entries) // 3, len(entries) // 2, len(entries) - 1})]
        roots = [{id(root): root.nbytes for root in map(root_of, _arrays(each))} for each in some]
        own = [sum(size for key, size in each.items() if sum(key in other for other in roots) == 1) for each in roots]
        size = int(min(own) * len(entries))
        rows = self.sizes.setdefault(name, [])
        if rows and rows[-1][0] == step:
            return
        rows.append((step, len(entries), size))
        if name not in self.lines:
            file, function = frame.f_code.co_filename, frame.f_code.co_name
            self.lines[name] = changed_at(name, file, function) or Place(file, frame.f_lineno, function)
        if size > _LARGE and name not in self.freed:
            self.freed[name] = self.doctor.replay.probe(lambda: _freed(value)) or 0

    def finish(self) -> Iterator[Suspicion]:  # noqa: D102
        for name, rows in self.sizes.items():
            (first, few, _), (last, many, size) = rows[0], rows[-1]
            grows = all(a[1] < b[1] for a, b in itertools.pairwise(rows))
            if len(rows) < 3 or not grows or size <= _LARGE or many - few < 0.6 * (last - first):
                continue
            if last < 0.7 * self.watch.backwards:
                continue
            freed = self.freed.get(name, 0)
            yield Suspicion(
                "memory-grows",
                f"`{name}` had {many} entries after {last} steps, which take {size / 1e6:.0f} MB, and grows with every "
                "step.",
                self.lines[name],
                f"{name}.append(x.mean().item())  # numbers rather than tensors, or the last few alone",
                certain=True,
                proven=f"without its entries {freed / 1e6:.0f} MB were freed at that time"
                if freed > _LARGE / 2
                else "",
                rank=2,
            )


#: Bytes in a list from which on it is worth mentioning.
_LARGE = 8_000_000


def _arrays(value: Any) -> Iterator[Any]:
    """Yield the arrays in an entry of a list."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, Tensor):
        array = array_of(value)
        if array is not None:
            yield array
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _arrays(each)
    elif isinstance(value, dict):
        yield from _arrays(list(value.values()))


def _freed(value: Any) -> int:
    """Return how many bytes are freed if a list or dict is emptied; called in a copy of the process."""
    roots = {id(root): (weakref.ref(root), root.nbytes) for root in map(root_of, _arrays(value))}
    value.clear()
    gc.collect()
    return sum(size for reference, size in roots.values() if reference() is None)


def _own(value: Any) -> bool:
    module = module_of(type(value))
    return module != "builtins" and not module.startswith(("tinytorch", "numpy", "tqdm"))


def _graph(node: Any, most: int) -> set[int]:
    """Return the ids of nodes before a node, up to a number of them."""
    seen: set[int] = set()
    nodes = [node]
    while nodes and len(seen) < most:
        each = nodes.pop(0)
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        nodes += [edge[0] for edge in each.next_functions]
    return seen
