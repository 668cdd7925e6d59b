"""What is kept too long, or not kept at all: states that are aliases, losses with their graphs, growing lists."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from types import FrameType
from typing import Any

import numpy as np

from tinytorch.core.tensor import Tensor
from tinytorch.inspect.doctor.checks import Check
from tinytorch.inspect.doctor.finding import Suspicion
from tinytorch.inspect.doctor.place import Place, frame_here, here
from tinytorch.inspect.doctor.source import changed_at
from tinytorch.inspect.doctor.trace import tensors_of
from tinytorch.inspect.doctor.watch import array_of

__all__ = ["KeptGraphs", "StateAliases"]


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
        self.frame_code: Any = None
        self.place: Any = None
        self.last: Any = None

    def backward_ends(self, loss: Any, place: Any) -> None:  # noqa: D102
        self.place = place
        node = loss.grad_fn if isinstance(loss, Tensor) else None
        if node is None:
            return
        self._add(self.nodes, node)
        if self.watch.backwards % 20 == 0:
            self.count()

    def forward_ends(self, info: Any, args: Any, kwargs: Any, out: Any) -> None:  # noqa: D102
        found = [each for each in tensors_of(out) if each.grad_fn is not None]
        if found:
            for each in {id(x): x for x in (found[0], found[-1])}.values():  # (the last may be a recurrent state)
                self._add(self.outputs, each.grad_fn)

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
        kept: set[int] = {id(each()) for each in (*self.nodes, *self.outputs)}
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
        elif isinstance(value, (list, dict)) and len(value) > 5:
            values = list(value.values() if isinstance(value, dict) else value)[-200:]
            held = [x for each in values for x in (each if isinstance(each, (list, tuple)) else [each])
                    if isinstance(x, Tensor) and x.grad_fn is not None]  # fmt: skip
            if len(held) < 5:
                return None
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
        if len(self.alive) < 1:
            return
        step, losses, outputs = self.alive[-1]
        if max(losses, outputs) < 0.6 * step or max(losses, outputs) < 15 or not self.lines:
            return
        name, place = next(iter(self.lines.items()))
        cause = "loss-kept-with-graph" if losses >= 0.6 * step else "memory-grows"
        what = "losses" if cause == "loss-kept-with-graph" else "outputs of the model"
        yield Suspicion(
            cause,
            f"The graphs of {max(losses, outputs)} {what} were still in memory after {step} steps, kept by the "
            f"variable `{name}`: memory grows with every step.",
            place,
            f"{name} += loss.item()  # or {name}.append(loss.item()); x.detach() keeps a tensor without its graph",
            certain=True,
            proven=self._proof(name),
            rank=2,
        )

    def _proof(self, name: str) -> str:
        """Cut the kept graphs in a copy of the process and count again."""

        def cut() -> tuple[int, int]:
            before = sum(1 for each in (*self.nodes, *self.outputs) if each() is not None)
            for each in gc.get_objects():
                if isinstance(each, Tensor) and each.grad_fn is not None and not each._is_view():
                    each.detach_()
            gc.collect()
            return before, sum(1 for each in (*self.nodes, *self.outputs) if each() is not None)

        counts = self.doctor.replay.probe(cut)
        if counts and counts[0] > 10 and counts[1] < 0.2 * counts[0]:
            return f"with the tensors in `{name}` detached, {counts[0] - counts[1]} of {counts[0]} graphs are freed"
        return ""


def _own(value: Any) -> bool:
    module = type(value).__module__
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
