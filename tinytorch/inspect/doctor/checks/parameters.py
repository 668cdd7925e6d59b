"""Parameters and their gradients: what each step of an optimizer found, and why a parameter stays as it is."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from tinytorch.autograd.profiler import tensors_in
from tinytorch.core.mode import local
from tinytorch.core.tensor import Tensor
from tinytorch.inspect.doctor.causes import found
from tinytorch.inspect.doctor.checks import Check
from tinytorch.inspect.doctor.finding import Finding
from tinytorch.inspect.doctor.limits import LIMITS
from tinytorch.inspect.doctor.patches import leaves
from tinytorch.inspect.doctor.place import frame_here, here
from tinytorch.inspect.doctor.source import assigned_at, in_one_loop, line_with, variable_at
from tinytorch.inspect.doctor.watch import array_of, node_of, root_of
from tinytorch.nn.modules.module import Module
from tinytorch.nn.parameter import Parameter

__all__ = ["Gradients", "Symmetric", "Untrained", "Unwritten"]


_BROKEN = b"not finite"


def _first(p: Any) -> bytes | None:
    """Return the first elements of a tensor's gradient as bytes; None if it has none or they are zero."""
    array = array_of(p._grad)
    if array is None or not array.size:
        return None
    part = array.reshape(-1)[:256] if array.flags.c_contiguous else array.flat[:256]
    data: bytes = part.tobytes() if np.isfinite(part).all() else _BROKEN
    return data if data.strip(b"\0\x80") else None  # (0x80 begins the zero with a sign)


def _which(p: Any) -> Any:
    """Return what identifies a tensor's gradient until something replaces it or writes to it; None if it has none."""
    g = p._grad
    return None if g is None else (id(g), g._version)


class _State:
    """What became of the gradients of an optimizer, or of a program's own tensors, judged by a few of them."""

    def __init__(self, params: list[Any]) -> None:
        params = [p for p in params if p.requires_grad] or params
        self.params = [params[k] for k in sorted({0, len(params) // 2, len(params) - 1})]
        self.used: list[Any] = [None] * len(self.params)  # which gradients the last step has used
        self.held: list[Any] = list(self.used)  # those of them that the running backward pass may add to
        self.stale = False  # whether a backward pass has added to gradients used before
        self.filled = self.cleared = False  # whether a backward pass since the last step gave gradients; and lost them
        self.backwards = self.filled_times = self.dropped = 0  # backward passes since the last step; of all time
        self.fresh = 0  # those that did not begin with gradients used before
        self.values: list[Any] = []  # of tensors that the program changes itself
        self.steps = 0
        self.kinds: Counter[str] = Counter()  # what steps found

    def any(self) -> bool:
        """Return whether there is a gradient."""
        return any(map(_first, self.params))

    def unused(self) -> list[Any]:
        """Return the gradients that the last step has used and that nobody has changed since."""
        return [_first(p) if used is not None and used == _which(p) else None
                for p, used in zip(self.params, self.used, strict=True)]  # fmt: skip

    def stepped(self) -> None:
        """Begin anew after a step."""
        self.used = [_which(p) for p in self.params]
        self.stale = self.filled = self.cleared = False
        self.backwards = 0


class Gradients(Check):
    """What became of gradients between the steps that should use them."""

    def __init__(self, doctor: Any) -> None:
        super().__init__(doctor)
        self.states: dict[int, _State] = {}  # by the id of the optimizer's info; 0 for the program's own tensors
        self.backward_place: Any = None
        self.forwards = 0  # calls of models, for a graph, since the last step
        self.of_inputs = False  # whether the last input of a model requires a gradient, as for an attack

    def state(self, info: Any) -> _State:
        """Return what is known of an optimizer's gradients."""
        if id(info) not in self.states:
            self.states[id(info)] = _State(info.params)
        return self.states[id(info)]

    def forward_begins(self, info: Any, args: Any) -> None:  # noqa: D102
        self.of_inputs = any(each.requires_grad for each in tensors_in(args))
        self.forwards += local.state.grad

    def backward_begins(self, loss: Any, place: Any) -> None:  # noqa: D102
        self.backward_place = place
        watch = self.watch
        if not watch.optimizers and 0 not in self.states and (changed := leaves(loss)):
            self.states[0] = _State(changed)
        if 0 in self.states and not watch.optimizers:
            own = self.states[0]
            if self._updated(own):
                self._steps(own, False)
                own.stepped()
        for state in [*map(self.state, watch.optimizers.values()), *[s for key, s in self.states.items() if not key]]:
            state.held = state.unused()
            if not state.any():
                state.stale = False
                if state.filled and state.backwards:
                    state.cleared = True
                    state.dropped += not self.of_inputs

    def _updated(self, own: _State) -> bool:
        """Return whether the program's own parameters have changed since the last backward pass began, and count it."""
        before, own.values = own.values, [p._array.reshape(-1)[:64].tobytes() for p in own.params]
        changed = bool(before) and before != own.values
        self.watch.updates += changed
        return changed

    def backward_ends(self, loss: Any, place: Any) -> None:  # noqa: D102
        for state in self.states.values():
            state.backwards += 1
            state.fresh += not any(state.held)
            state.stale |= any(held is not None and (now := _first(p)) is not None and (held != now)
                               for held, p in zip(state.held, state.params, strict=True))  # fmt: skip
            if any(p._grad is not None for p in state.params) and state.any():
                state.filled_times += not state.filled or state.cleared
                state.filled, state.cleared = True, False

    def _steps(self, state: _State, closure: bool, info: Any = None) -> None:
        """Note what a step finds, unless it is not finite and cannot be compared."""
        if any(_first(p) == _BROKEN for p in state.params):
            return
        state.steps += 1
        if not state.any():
            if closure:
                return
            if state.filled:
                state.kinds["cleared"] += 1
            elif not state.backwards and self.forwards:
                state.kinds["without"] += 1
            elif state.backwards and info is not None:
                state.kinds["idle"] += all(p._grad is None for p in info.params)
                state.kinds["frozen"] += not any(p.requires_grad for p in info.params)
        elif state.stale:
            state.kinds["stale"] += 1
        elif not state.backwards and self.forwards and not closure and any(state.unused()):
            state.kinds["without"] += 1

    def step_begins(self, info: Any) -> None:  # noqa: D102
        self._steps(self.state(info), info.closure, info)

    def step_ends(self, info: Any) -> None:  # noqa: D102
        state = self.state(info)
        self.forwards = 0
        if info.closure and state.backwards and state.filled and not state.any():
            state.kinds["cleared"] += 1  # (the closure cleared what it had computed)
        state.stepped()

    def finish(self) -> Iterator[Finding]:  # noqa: D102
        if 0 in self.states and not self.watch.optimizers:
            self._updated(self.states[0])
        for number, info in enumerate([*self.watch.optimizers.values(), None]):
            state = self.states.get(0 if info is None else id(info))
            row = self._row(state, info) if state is not None else None
            if state is None or row is None:
                continue
            place, kind = self.backward_place, row.partition("/")[2]
            if row.startswith("zero_grad-misplaced"):
                place = line_with(place, r"\.zero_grad\(", info.step_place) or info.step_place
            elif kind == "stale" and info and 2 < state.kinds[kind] < state.steps - 2:  # cleared, but too seldom
                place = line_with(place, r"\.zero_grad\(", place) or place
            elif kind == "frozen":
                place = line_with(place, r"requires_grad(_\(False| *= *False)") or info.place
            elif kind in ("without", "none"):
                place = info.step_place or place
            yield found(row, place, count=state.kinds[kind], steps=state.steps, dropped=state.dropped,
                        filled=state.filled_times, name=type(info.optimizer).__name__ if info else "the program",
                        backwards=self.watch.backwards, number=number,
                        proven=kind != "without" or not any(map(_first, info.params)))  # fmt: skip

    def _row(self, state: _State, info: Any) -> str | None:
        """Return what steps found in almost all cases."""
        most = LIMITS["almost all steps"]
        often = [kind for kind, count in state.kinds.items() if count >= most * max(state.steps - (kind == "stale"), 1)]
        again = state.kinds["stale"] > 5 * state.fresh if info is None else "stale" in often
        if info is None or (again and state.steps >= 3):
            return "zero_grad-missing/stale" if again and state.steps >= 3 else None
        if "cleared" in often and state.steps >= 2:
            return "zero_grad-misplaced/cleared"
        others = [each for each in self.watch.optimizers.values() if each is not info and each.steps]
        alone = not info.closure and not any(each.ids & info.ids for each in others)
        lost = state.steps >= 2 and state.dropped > max(0.7 * state.filled_times, 2 * state.steps)
        if lost and alone and in_one_loop(self.backward_place, info.step_place):
            return "zero_grad-misplaced/dropped"
        for kind, row in (("frozen", "frozen-by-mistake/frozen"), ("without", "step-without-backward/without")):
            if kind in often and state.steps >= 3:
                return row
        few = info.steps <= 0.1 * state.filled_times and state.filled_times >= 5
        return "step-missing/none" if few and alone else None


def _hidden(module: Module) -> Iterator[tuple[str, Module | Tensor]]:
    """Yield what a module uses and does not register: layers in lists, tuples and dicts, and plain tensors."""
    registered = {id(each) for each in module.modules()} | {id(p) for p in module.parameters()}
    for path, each in module.named_modules():
        prefix = path + "." if path else ""
        for name, value in vars(each).items():
            if isinstance(value, Tensor) and value.requires_grad and value.is_leaf and id(value) not in registered:
                yield prefix + name, value
            if name.startswith("_") or not isinstance(value, (list, tuple, dict)):
                continue
            for key, entry in value.items() if isinstance(value, dict) else enumerate(value):
                for part in entry if isinstance(entry, (list, tuple)) else [entry]:
                    if isinstance(part, (Module, Parameter)) and id(part) not in registered:
                        yield f"{prefix}{name}[{key!r}]", part


#: Ops without a derivative, whose results are often used as if they had one.
_HARD = ("argmax", "gt", "lt", "ge", "le", "topk", "argsort", "searchsorted", "bucketize")


class Unwritten(Check):
    """Parameters that nothing writes to, although the program computes what they should become."""

    def __init__(self, doctor: Any) -> None:
        super().__init__(doctor)
        self.first: list[tuple[Tensor, Any]] | None = None  # the parameters of the first step, and copies of them
        self.gradients: list[tuple[Tensor, Any]] = []  # those parameters with the gradients that they got last
        self.dropped: Counter[Any] = Counter()  # by line: how often the new values of a parameter were computed

    def backward_begins(self, loss: Any, place: Any) -> None:  # noqa: D102
        if self.first is None:
            changed = [] if self.watch.optimizers else leaves(loss)
            self.first = [(p, p._array.copy()) for p in changed if array_of(p) is not None]

    def backward_ends(self, loss: Any, place: Any) -> None:  # noqa: D102
        self.gradients = [(p, p._grad) for p, _ in self.first or () if p._grad is not None]

    def traced(self, trace: Any, loss: Any, place: Any) -> None:  # noqa: D102
        for call in trace.calls if len(self.dropped) < 50 else ():
            roots = {id(root_of(x)): x for x in call.inputs} if call.args and call.out is not call.args[0] else {}
            for p, g in self.gradients if len(roots) > 1 else ():
                x = roots.pop(id(root_of(p)), None)
                if x is not None and x.shape == p.shape and any(
                        root_of(y) is root_of(g) or trace.leads(g, y) for y in roots.values()):  # fmt: skip
                    self.dropped[call.place] += 1

    def finish(self) -> Iterator[Finding]:  # noqa: D102
        watch, first = self.watch, self.first or []
        if watch.backwards < 3 or not self.dropped or any(info.steps for info in watch.optimizers.values()):
            return
        if all(np.array_equal(p._array, before) for p, before in first):
            yield found("update-lost", self.dropped.most_common(1)[0][0], backwards=watch.backwards, count=len(first))


class Untrained(Check):
    """Which parameters get gradients, and which of them optimizers have."""

    def __init__(self, doctor: Any) -> None:
        super().__init__(doctor)
        self.got: set[int] = set()  # the ids of parameters to which a backward pass has given a gradient
        self.hidden: dict[int, list[tuple[str, Any]]] = {}
        self.start: dict[int, tuple[Any, Any]] = {}  # parameters with their first values
        self.bare: Counter[Any] = Counter()  # backward passes from tensors that nothing computed, by line
        self.cuts: Counter[Any] = Counter()  # by line: how often values left the graph
        self.inside: set[Any] = set()  # of these lines, those in the forward pass of a model, or that cut its output
        self.outputs: list[Any] = []  # the last ones of models
        self.cut_now: list[tuple[Any, Any, Any, Any]] = []  # what was cut since the last steps that were traced
        self.own: dict[int, Any] = {}  # the parameters of a program without modules, of the steps that were traced
        self.behind: dict[Any, set[int]] = {}  # by line: the ids of those whose results became numbers there
        self.returned: dict[Any, set[int]] = {}  # by line: the steps whose loss used values that were cut there
        self.numbers: set[Any] = set()  # of these lines, those that took numbers
        self.used_as_well: set[Any] = set()  # lines that cut what was used with its graph, too
        self.steps = 0
        self.hard: list[Any] = []  # the lines of ops of the first step whose results have no gradient

    def forward_begins(self, info: Any, args: Any) -> None:  # noqa: D102
        if id(info) not in self.hidden:
            self.hidden[id(info)] = list(_hidden(info.module))
            for p in self._parameters(info):
                self.start.setdefault(id(p), (p, p._array.reshape(-1)[:32].copy()))

    def _parameters(self, info: Any) -> Iterator[Any]:
        yield from info.parameters.values()
        for _, part in self.hidden.get(id(info), ()):
            yield from part.parameters() if isinstance(part, Module) else [part]

    def backward_begins(self, loss: Any, place: Any) -> None:  # noqa: D102
        if isinstance(loss, Tensor) and node_of(loss) is None and loss.ndim == 0:
            self.bare[place] += 1

    def backward_ends(self, loss: Any, place: Any) -> None:  # noqa: D102
        self.outputs.clear()  # (they have graphs)
        if not self.watch.tracer.on:
            self.cut_now.clear()
        self.got.update(key for key, p in self.own.items() if p._grad is not None)
        if self.watch.backwards <= 40 or self.watch.tracer.on:
            self.got.update(id(p) for info in self.watch.models.values() for p in self._parameters(info)
                            if p._grad is not None)  # fmt: skip

    def cut(self, x: Any, alias: Any) -> None:  # noqa: D102
        place, made, views = here(), self.watch.tracer.trace.made, [x]  # (x may be a row of an output)
        self.cuts[place] += 1
        while (call := made.get(id(views[-1]))) is not None and call.is_view and call.inputs:
            views.append(call.inputs[0])
        inside = bool(self.watch.stack) or isinstance(frame_here().f_locals.get("self"), Module)
        if (inside and not x.is_leaf) or any(y is each for y in tensors_in(self.outputs) for each in views):
            self.inside.add(place)
        if alias is None and x.numel() > 1:
            self.numbers.add(place)
        if x.numel() > 1 and not x.is_leaf and len(self.cut_now) < 50:
            self.cut_now.append((place, x, inside, alias))

    def forward_ends(self, info: Any, args: Any, kwargs: Any, out: Any) -> None:  # noqa: D102
        if self.watch.tracer.on and local.state.grad:
            self.outputs = [*self.outputs[-3:], out]

    def traced(self, trace: Any, loss: Any, place: Any) -> None:  # noqa: D102
        self.steps += 1
        inputs = [each for call in trace.calls if call.name != "detach" for each in call.inputs]
        if not self.watch.models:
            self.own.update((id(x), x) for x in inputs if x.is_leaf and x.requires_grad)
        for where, x, inside, alias in self.cut_now:
            if self.own and not any(each is alias for each in inputs):
                self.behind.setdefault(where, set()).update(map(id, leaves(x)))
            array = array_of(x)
            made = trace.made.get(id(x))
            if array is None or (made is not None and made.name == "sub" and any(
                    call.name == "add" and any(each is part for part in made.inputs)
                    for call in trace.calls for each in call.inputs)):  # fmt: skip
                continue  # (a difference is cut off and added, as in z + (q - z).detach())
            if any(each is x for each in inputs):
                self.used_as_well.add(where)
            same = [each for each in inputs if each is not x and not each.requires_grad and each.numel() == array.size]
            if inside and any(np.array_equal(array_of(each).reshape(-1), array.reshape(-1)) for each in same):
                self.returned.setdefault(where, set()).add(self.steps)
        self.cut_now = self.cut_now[-10:] if len(self.watch.optimizers) > 1 else []
        self._look_at_no_grad(trace)
        if self.steps == 1:
            calls = [call for call in trace.calls if call.name in _HARD]
            self.hard = [each.place for each in calls if any(x.requires_grad and not x.is_leaf for x in each.inputs)]

    def _look_at_no_grad(self, trace: Any) -> None:
        """Find results of `no_grad`, of what has a graph, that a later call with a graph uses."""
        made: dict[int, Any] = {}
        for call in trace.calls:
            if not isinstance(call.out, Tensor):
                continue
            known = [made[id(each)] for each in call.inputs if id(each) in made]
            if call.out.requires_grad:
                for where in known:
                    self.returned.setdefault(where, set()).add(self.steps)
            elif call.out.dtype.is_floating_point and not call.module and call.name not in ("detach", "clone"):
                if any(each.requires_grad and not each.is_leaf for each in call.inputs):
                    made[id(call.out)] = call.place
                elif known:
                    made[id(call.out)] = known[0]

    def _models(self) -> list[Any]:
        """Return the models that are trained, without those that are parts of others."""
        every = [info for info in self.watch.models.values() if info.parameters]
        parts = {id(each) for info in every for each in info.module.modules() if each is not info.module}
        return [info for info in every if id(info.module) not in parts]

    def _untouched(self, p: Any) -> bool:
        known = self.start.get(id(p))
        return known is not None and np.array_equal(known[1], p._array.reshape(-1)[:32])

    # At the end -------------------------------------------------------------------------------------

    def finish(self) -> Iterator[Finding]:  # noqa: D102
        watch, models = self.watch, self._models()
        if "does not require grad" in str(self.doctor.error or ""):
            yield self._no_graph(models)
            return
        for place, count in self.bare.items():
            if count >= 3 and count > 0.8 * watch.backwards:
                line = next((line for line, often in self.cuts.items() if often >= min(count, 4)), place)
                yield found("graph-cut/leaf", line, count=count, proven=not self.got)
                return
        lost = self.own.keys() - self.got
        for place, ids in self.behind.items():
            if ids and ids <= lost and (watch.backwards > 2 or self.doctor.error is not None):
                shapes = ", ".join(str(tuple(self.own[key].shape)) for key in self.own if key in ids)
                yield found("graph-cut/numbers", place, count=len(ids), steps=watch.backwards, shapes=shapes)
                return
        optimizers = list(watch.optimizers.values())
        owned = set(itertools.chain(*[info.ids for info in optimizers]))
        stepped = [info for info in optimizers if info.steps >= 2]
        if watch.backwards < 3 or not stepped:
            return
        gradients = next((each for each in self.doctor.checks if isinstance(each, Gradients)), None)
        idle = [info for info in stepped if gradients and info.steps >= 3
                and gradients.state(info).kinds["idle"] >= LIMITS["almost all steps"] * info.steps]  # fmt: skip
        reasons: list[Finding] = []
        for info in models:
            reasons += self._not_owned(info, owned, stepped, idle)
            reasons += self._cut_off(info, owned)
        if not reasons and not watch.updated_at:
            reasons += self._returned()
        if not reasons:
            alive = [info for info in idle if any(p.requires_grad for p in info.params)]
            reasons += [found("step-without-backward/without", info.step_place, name=type(info.optimizer).__name__,
                              count=info.steps) for info in alive]  # fmt: skip
        yield from reasons
        for info in models:
            yield from self._frozen(info, owned)
            yield from self._zero_tensors(info)
            yield from self._uncalled(info, owned)

    def _not_owned(self, info: Any, owned: set[int], stepped: Any, idle: Any) -> Iterator[Finding]:
        """Find parameters that get gradients, and that no optimizer has."""
        lost = []
        for path, part in self.hidden.get(id(info), ()):
            params = list(part.parameters()) if isinstance(part, Module) else [part]
            lost += [(path, part, p) for p in params if id(p) not in owned and id(p) in self.got]
        if lost:
            path, part, _ = lost[0]
            owner = info.module.get_submodule(path.partition("[")[0].rpartition(".")[0])
            name = path.partition("[")[0].rpartition(".")[2]
            kind = type(getattr(owner, name)).__name__
            new = ("Module" if isinstance(part, Module) else "Parameter") + ("Dict" if kind == "dict" else "List")
            row = "layers-in-list" if isinstance(part, (Module, Parameter)) else "parameters-forgotten/tensor"
            yield found(row, assigned_at(owner, name) or info.place, model=info.name, path=path, kind=kind,
                        attribute=name, new=new, count=sum(p.numel() for *_, p in lost))  # fmt: skip
        params = info.parameters
        rest = {name: p for name, p in params.items() if p.requires_grad and id(p) not in owned and id(p) in self.got
                and self._untouched(p)}  # fmt: skip
        others = [each for each in idle if all(p._grad is None for p in each.params)]
        if rest and others:
            yield found("optimizer-of-other-model", others[0].place, count=len(others[0].params), model=info.name,
                        name=type(others[0].optimizer).__name__)  # fmt: skip
        elif rest and not any(id(p) in self.watch.loaded for p in params.values()):
            share = sum(p.numel() for p in rest.values()) / sum(p.numel() for p in params.values())
            yield found("parameters-forgotten/optimizer", stepped[0].place, count=len(rest), model=info.name,
                        share=share, layers=_layers(rest),
                        certain=any(id(p) in owned for p in params.values()) and stepped[0].steps >= 30)  # fmt: skip

    def _no_graph(self, models: list[Any]) -> Finding:
        """Explain the error that a loss does not require grad."""
        place = self.doctor.error_place()
        every = [p for info in models for p in info.parameters.values()]
        if every and not any(p.requires_grad for p in every):
            where = line_with(place, r"requires_grad(_\(False| *= )") or place
            return found("frozen-by-mistake/error", where, count=len(every))
        lines = sorted(self.cuts, key=lambda line: (line not in self.inside, -self.cuts[line]))
        return found("graph-cut/error", lines[0] if lines else place)

    def _cut_off(self, info: Any, owned: set[int]) -> Iterator[Finding]:
        """Find parameters that optimizers have, and that never get a gradient, behind a line that cuts the graph."""
        params = {name: p for name, p in info.parameters.items() if p.requires_grad and id(p) in owned}
        lost = {name: p for name, p in params.items() if id(p) not in self.got and self._untouched(p)}
        if not lost or not info.calls.get((True, True), 0) + info.calls.get((False, True), 0):
            return
        lines = sorted(self.inside - self.used_as_well, key=lambda line: -self.cuts[line])
        place = lines[0] if lines else self.watch.unrecorded.get(id(info)) or next(iter(self.hard), None)
        if place is not None:
            meant = any(id(p) in self.got for p in params.values()) and all(
                id(p) in self.watch.loaded for p in lost.values())  # fmt: skip
            yield found("graph-cut/behind", place, count=len(lost), model=info.name, layers=_layers(lost),
                        certain=not meant, functions=frozenset())  # fmt: skip

    def _returned(self) -> Iterator[Finding]:
        """Find values that a model computes, takes out of the graph and goes on with."""
        lines = [place for place, steps in self.returned.items() if len(steps) >= max(3, 0.6 * self.steps)]
        if lines and not self.doctor.course.adversarial:
            place = min(lines, key=lambda place: (place not in self.inside, place.number))
            functions = frozenset(each.function for each in lines)
            yield found("graph-cut/returned", place, certain=place in self.numbers, functions=functions)

    def _zero_tensors(self, info: Any) -> Iterator[Finding]:
        """Find tensors that are attributes of a module, and zero: as parameters they would be trained."""
        for path, module in info.module.named_modules():
            for name, value in vars(module).items():
                if not isinstance(value, Tensor) or not value.dtype.is_floating_point or value.ndim == 0:
                    continue
                if value.numel() > 1 and not value.requires_grad and not value._array.any():
                    yield found("parameters-forgotten/zero", assigned_at(module, name) or info.place, model=info.name,
                                path=f"{path}.{name}".lstrip("."), attribute=name)  # fmt: skip

    def _uncalled(self, info: Any, owned: set[int]) -> Iterator[Finding]:
        """Find entries of a list of modules that are never called, while others are."""
        for path, module in info.module.named_modules():
            if type(module).__name__ not in ("ModuleList", "ModuleDict") or self.watch.backwards < 20:
                continue
            used, idle = [], []
            for name, each in module.named_children():
                params = list(each.parameters())
                if any(id(x) in self.watch.called for x in each.modules()) or any(id(p) in self.got for p in params):
                    used.append(name)
                elif any(id(p) in owned for p in params):
                    idle.append(name)
            if used and idle:
                owner, name = info.module.get_submodule(path.rpartition(".")[0]), path.rpartition(".")[2]
                place = line_with(info.place, rf"lambda.*\b{name}\[") or assigned_at(owner, name) or info.place
                yield found("modules-unused", place, model=info.name, path=path, names=", ".join(idle),
                            steps=self.watch.backwards)  # fmt: skip

    def _frozen(self, info: Any, owned: set[int]) -> Iterator[Finding]:
        """Find random weights that do not require a gradient."""
        course, matrices = self.doctor.course, {name: p for name, p in info.parameters.items() if p.ndim > 1}
        frozen = [name for name, p in matrices.items()
                  if not p.requires_grad and id(p) not in self.watch.loaded and self._untouched(p)]  # fmt: skip
        mine = any(id(p) in owned and p.requires_grad for p in info.parameters.values())
        kinds = [_kind(info, name) for name in frozen]
        meant = any("Embedding" in kind for kind in kinds) or course.adversarial or not course.supervised
        if frozen and mine and not meant:
            place = line_with(info.place, r"requires_grad(_\(False| *= )") or info.place
            yield found("frozen-by-mistake/random", place, count=len(frozen), model=info.name, layers=_layers(frozen),
                        certain=frozen[-1] == list(matrices)[-1])  # fmt: skip


def _kind(info: Any, name: str) -> str:
    """Return the name of the class of the layer that has a parameter."""
    return type(info.module.get_submodule(name.rpartition(".")[0])).__name__


def _layers(names: Iterable[str]) -> str:
    """Return the names of the first layers of some parameters."""
    return ", ".join(list(dict.fromkeys(name.rpartition(".")[0] for name in names))[:3])


def _alike(p: Tensor, columns: bool = True) -> tuple[bool, bool]:
    """Return whether the rows of a matrix of weights are all the same, and whether its columns are."""
    array = p._array.reshape(len(p._array), -1)
    near = 1e-3 * max(float(np.abs(array).max()), 1e-12)
    return (
        len(array) > 1 and float(np.abs(array - array[:1]).max()) < near,
        columns and array.shape[1] > 1 and float(np.abs(array - array[:, :1]).max()) < near,
    )


class Symmetric(Check):
    """Layers whose units all begin with the same weights, and so stay the same."""

    def __init__(self, doctor: Any) -> None:
        super().__init__(doctor)
        self.seen: dict[int, list[Any]] = {}  # by model: paths, matrices, what was alike, the line
        self.leaves: list[Any] | None = None  # of a program without modules

    def forward_begins(self, info: Any, args: Any) -> None:  # noqa: D102
        if id(info) not in self.seen:
            self.seen[id(info)] = [
                (name.rpartition(".")[0], p, alike, info)
                for name, p in info.parameters.items()
                if p.ndim > 1
                and p.requires_grad
                and p.numel() > 4
                # (Columns belong to inputs, which differ, but for an embedding.)
                and any(alike := _alike(p, "Embedding" in _kind(info, name)))
            ]

    def backward_begins(self, loss: Any, place: Any) -> None:  # noqa: D102
        if self.leaves is None and not self.watch.models:
            matrices = [p for p in leaves(loss) if p.ndim == 2 and p.numel() > 4]
            self.leaves = [("", p, alike, variable_at(p) or place) for p in matrices if any(alike := _alike(p))]
            self.leaves = self.leaves if len(matrices) > 1 else []

    def finish(self) -> Iterator[Finding]:  # noqa: D102
        watch = self.watch
        owned = set(itertools.chain(*[info.ids for info in watch.optimizers.values()]))
        for rows in [*self.seen.values(), self.leaves or []]:
            still = [row for row in rows if any(a and b for a, b in zip(row[2], _alike(row[1]), strict=True))]
            still = [row for row in still if id(row[1]) in owned or not row[0]]
            if watch.backwards < 3 or not still:
                continue
            path, p, _, info = still[0]
            place, name = info, "a matrix"
            if rows is not self.leaves:
                if len([p for p in info.parameters.values() if p.ndim > 1]) < 2:
                    continue  # one layer alone may begin with zeros: its outputs have different targets
                place = watch.filled_at(p) or watch.made_at.get(id(info.module.get_submodule(path)), info.place)
                name = f"{info.name}.{', '.join(row[0] for row in still[:3])}"
            yield found("weights-symmetric", place, name=name, steps=watch.backwards, paths=[row[0] for row in rows],
                        value="the same" if p._array.any() else "zero")  # fmt: skip
