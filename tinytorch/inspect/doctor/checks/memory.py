"""What is kept too long, or not kept at all: states that are aliases, losses with their graphs, growing lists."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from tinytorch.autograd.profiler import tensors_in
from tinytorch.core.names import module_of
from tinytorch.core.tensor import Tensor
from tinytorch.inspect.doctor.causes import found
from tinytorch.inspect.doctor.checks import Check
from tinytorch.inspect.doctor.finding import Finding
from tinytorch.inspect.doctor.limits import LIMITS
from tinytorch.inspect.doctor.place import Place, frame_here, place_of
from tinytorch.inspect.doctor.source import changed_at, line_with
from tinytorch.inspect.doctor.watch import array_of, node_of, root_of

__all__ = ["Kept"]


def _variables() -> Iterator[tuple[str, Any, Place]]:
    """Yield the name and the value of each variable, and of each attribute of an object of the program, and a line."""
    frame: Any = frame_here()
    seen: set[int] = set()
    while frame is not None:
        places = frame.f_globals if frame.f_code.co_name == "<module>" else {**frame.f_globals, **frame.f_locals}
        for name, value in list(places.items()):
            if name.startswith("__") or id(value) in seen:
                continue
            seen.add(id(value))
            yield name, value, place_of(frame)
            module = module_of(type(value))
            if hasattr(value, "__dict__") and not isinstance(value, type) and module != "builtins" and not (
                module.startswith(("tinytorch", "numpy", "tqdm"))):  # fmt: skip
                for key, inner in list(vars(value).items())[:50]:
                    yield key, inner, place_of(frame)
        frame = frame.f_back


def _arrays(value: Any) -> Iterator[Any]:
    """Yield the arrays in an entry of a list."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _arrays(each)
    elif isinstance(value, dict):
        yield from _arrays(list(value.values()))
    elif (array := array_of(value)) is not None:
        yield array


def _length(node: Any, most: int = 50_000) -> int:
    """Return the number of nodes before a node."""
    seen: set[int] = set()
    nodes = [node]
    while nodes and len(seen) < most:
        each = nodes.pop()
        if each is not None and id(each) not in seen:
            seen.add(id(each))
            nodes += [edge[0] for edge in each.next_functions]
    return len(seen)


class Kept(Check):
    """The variables of the program, looked at now and then: what grows, and what has the memory of parameters."""

    def __init__(self, doctor: Any) -> None:
        super().__init__(doctor)
        self.sizes: dict[str, list[Any]] = {}  # by variable: the step, entries with graphs, entries, bytes
        self.lines: dict[str, Any] = {}
        self.scalars: set[str] = set()  # the variables that keep numbers
        self.aliases: dict[str, list[Any]] = {}  # by variable: the state, the first values, the step, a line
        self.changed: dict[str, tuple[float, int, Any]] = {}
        self.calls = 0  # of models since the last backward pass
        self.next = 20

    def forward_ends(self, info: Any, args: Any, kwargs: Any, out: Any) -> None:  # noqa: D102
        self.calls += 1
        if self.calls in (16, 32, 64, 128, 256) and self.watch.backwards:
            self._look()

    def backward_ends(self, loss: Any, place: Any) -> None:  # noqa: D102
        self.calls = 0
        if self.watch.backwards >= self.next:
            self.next += 20 if self.next < 200 else 100
            self._look()

    def state_loaded(self, module: Any, state: Any) -> None:  # noqa: D102
        self._look_at_states()
        for name, (kept, some, since, place) in self.aliases.items():
            if kept is state:
                change = max([float(np.abs(array.reshape(-1)[:16] - some[key]).max()) for key in some
                              if (array := array_of(kept[key])) is not None], default=0.0)  # fmt: skip
                if change and self.watch.backwards > since:
                    self.changed[name] = (change, self.watch.backwards - since, place)

    def _look_at_states(self) -> None:
        """Note states whose tensors have the memory of parameters."""
        own = {id(root_of(p)) for info in self.watch.models.values() for p in info.parameters.values()}
        for name, value, place in _variables():
            if not isinstance(value, dict) or not value or name in ("_parameters", "_buffers"):
                continue
            if name in self.aliases and self.aliases[name][0] is value:
                continue
            tensors = {key: x for key, x in value.items() if isinstance(x, Tensor) and x.dtype.is_floating_point}
            alias = [id(root_of(x)) in own or x.ndim == 0 or "running" in str(key) for key, x in tensors.items()]
            if tensors and all(alias) and not any(x.requires_grad for x in tensors.values()):
                some = {key: array.reshape(-1)[:16].copy() for key, x in tensors.items()
                        if (array := array_of(x)) is not None and array.size}  # fmt: skip
                self.aliases[name] = [value, some, self.watch.backwards, place]

    def _look(self) -> None:
        self._look_at_states()
        for name, value, place in _variables():
            entries: list[Any] = []
            if isinstance(value, Tensor) and (node := node_of(value)) is not None:
                graphs, count, size = _length(node), 1, 0
                entries = [value]
            elif isinstance(value, (list, dict)) and len(value) > 5:
                entries = list(value.values() if isinstance(value, dict) else value)
                some = [entries[k] for k in sorted({0, len(entries) // 3, len(entries) // 2, len(entries) - 1})]
                graphs = len(entries) if all(
                    any(node_of(x) is not None for x in tensors_in(each)) for each in some) else 0  # fmt: skip
                roots = [{id(root): root.nbytes for root in map(root_of, _arrays(each))} for each in some]
                own = [sum(size for key, size in each.items() if sum(key in other for other in roots) == 1)
                       for each in roots]  # fmt: skip
                count, size = len(entries), int(min(own) * len(entries))
            else:
                continue
            if {x.numel() for x in tensors_in(entries[-1])} == {1}:
                self.scalars.add(name)
            rows = self.sizes.setdefault(name, [])
            step = (self.watch.backwards, self.calls)
            if not rows or rows[-1][0] != step:
                rows.append((step, graphs, count, size))
                self.lines.setdefault(name, changed_at(name, place.file, place.function) or place)

    def finish(self) -> Iterator[Finding]:  # noqa: D102
        for name, (change, since, line) in self.changed.items():
            yield found("state-dict-alias", line_with(line, rf"\b{name}\b *=.*state_dict\(\)") or line, name=name,
                        steps=since, change=change)  # fmt: skip
        for name, rows in self.sizes.items():
            if rows[-1][0][0] > rows[0][0][0]:  # (else an evaluation is looked at, in which calls are counted)
                rows = list({row[0][0]: row for row in rows}.values())
            grows = [a[1:3] < b[1:3] and a[2] <= b[2] for a, b in itertools.pairwise(rows)]
            (first, *_, few, _), (last, graphs, many, size) = rows[0], rows[-1]
            passes = last[0] - first[0] if last[0] > first[0] else last[1] - first[1]
            if len(rows) < 2 or not all(grows) or last[0] < 0.7 * self.watch.backwards:
                continue
            large = size > LIMITS["bytes kept"] and many - few >= 0.6 * passes and len(rows) > 2
            kept = graphs >= max(many, 6) and (many > few or graphs > rows[0][1] + passes)
            if not large and not kept:
                continue
            row = "memory-grows/bytes" if not kept else "loss-kept-with-graph" if name in self.scalars else (
                "memory-grows/graphs")  # fmt: skip
            freed = self._freed(name)
            yield found(row, self.lines[name], name=name, count=many, steps=last[0], size=size / 1e6, freed=freed,
                        proven=freed > 5)  # fmt: skip

    def _freed(self, name: str) -> int:
        """Return how many objects are freed in a copy of the process without the variable's values."""

        def cut() -> int:
            gc.collect()
            before = len(gc.get_objects())
            for each, value, _ in _variables():
                if each == name and isinstance(value, (list, dict)):
                    value.clear()
                elif each == name and isinstance(value, Tensor):
                    value.detach_()
            gc.collect()
            return before - len(gc.get_objects())

        return self.doctor.replay.probe(cut) or 0
