"""Parameters that are not trained: hidden in lists, forgotten, frozen, cut off, or of another model."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from tinytorch.core.mode import local
from tinytorch.core.tensor import Tensor
from tinytorch.inspect.doctor.checks import Check
from tinytorch.inspect.doctor.checks.gradients import without_backward
from tinytorch.inspect.doctor.finding import Suspicion, Trial
from tinytorch.inspect.doctor.patches import AddParameters, KeepGraph, Reset, TrainTensors, Unfreeze, leaves
from tinytorch.inspect.doctor.place import frame_here, here
from tinytorch.inspect.doctor.source import assigned_at
from tinytorch.inspect.doctor.trace import tensors_of
from tinytorch.inspect.doctor.watch import array_of, node_of
from tinytorch.nn.modules.module import Module
from tinytorch.nn.parameter import Parameter

__all__ = ["Symmetric", "Untrained"]


def _hidden(module: Module) -> Iterator[tuple[str, Module | Tensor]]:
    """Yield what a module uses and does not register: layers in lists, tuples and dicts, and plain tensors."""
    registered = {id(each) for each in module.modules()} | {id(p) for p in module.parameters()}
    for path, each in module.named_modules():
        for name, value in vars(each).items():
            if isinstance(value, Tensor) and value.requires_grad and value.is_leaf and id(value) not in registered:
                yield f"{path + '.' if path else ''}{name}", value
            if name.startswith("_") or not isinstance(value, (list, tuple, dict)):
                continue
            entries = value.items() if isinstance(value, dict) else enumerate(value)
            for key, entry in entries:
                parts = entry if isinstance(entry, (list, tuple)) else [entry]
                for part in parts:
                    if isinstance(part, (Module, Parameter)) and id(part) not in registered:
                        yield f"{path + '.' if path else ''}{name}[{key!r}]", part


def _equal(x: Tensor, array: Any) -> bool:
    own = array_of(x)
    return own is not None and np.array_equal(own.reshape(-1), array.reshape(-1))


class Untrained(Check):
    """Which parameters get gradients, and which of them optimizers have."""

    causes = ("layers-in-list", "parameters-forgotten", "optimizer-of-other-model", "graph-cut", "frozen-by-mistake",
              "step-without-backward")  # fmt: skip

    def __init__(self, doctor: Any) -> None:
        super().__init__(doctor)
        self.got: dict[int, bool] = {}  # by the id of a parameter: whether a backward pass has given it a gradient
        self.hidden: dict[int, list[tuple[str, Any]]] = {}
        self.start: dict[int, Any] = {}  # the first values of parameters
        self.started: dict[int, Any] = {}  # these parameters, whose ids no others may get
        self.loaded: set[int] = set()
        self.bare: dict[Any, int] = {}  # backward passes from tensors that nothing computed, by line
        self.cuts: dict[tuple[Any, str], list[Any]] = {}
        self.outputs: list[tuple[Any, Any]] = []  # the last outputs of models
        self.cut_now: list[tuple[Any, str, Any, bool]] = []  # what was cut since the last steps that were traced
        self.returned: dict[tuple[Any, str], int] = {}  # steps in which a loss used values that were cut, by line
        self.cut_outputs: dict[tuple[Any, str], Any] = {}  # the models whose outputs were cut, by line
        self.unrecorded: dict[Any, set[int]] = {}  # lines in `no_grad` whose results losses use, and the steps
        self.used_as_well: set[tuple[Any, str]] = set()  # lines that cut what was used with its graph, too
        self.straight_through = False  # whether a difference is cut off and added, as in z + (q - z).detach()
        self.steps = 0

    def forward_begins(self, info: Any, args: Any) -> None:  # noqa: D102
        if id(info) in self.hidden:
            return
        self.hidden[id(info)] = list(_hidden(info.module))
        for p in self._parameters(info):
            self.started[id(p)] = p
            self.start.setdefault(id(p), p._array.reshape(-1)[:32].copy())

    def _parameters(self, info: Any) -> Iterator[Any]:
        yield from info.parameters.values()
        for _, part in self.hidden.get(id(info), ()):
            yield from part.parameters() if isinstance(part, Module) else [part]

    def backward_begins(self, loss: Any, place: Any) -> None:  # noqa: D102
        if isinstance(loss, Tensor) and node_of(loss) is None and loss.ndim == 0:
            self.bare[place] = self.bare.get(place, 0) + 1

    def backward_ends(self, loss: Any, place: Any) -> None:  # noqa: D102
        self.outputs.clear()  # (they have graphs)
        if not self.watch.tracer.on:
            self.cut_now.clear()
        if self.watch.backwards > 40 and not self.watch.tracer.on:
            return
        for info in self.watch.models.values():
            for p in self._parameters(info):
                if p._grad is not None:
                    self.got[id(p)] = True

    def state_loaded(self, module: Any, state: Any) -> None:  # noqa: D102
        self.loaded.update(id(p) for p in module.parameters())

    def cut(self, x: Any, out: Any, how: str) -> None:  # noqa: D102
        stack = self.watch.stack
        place = here()
        entry = self.cuts.setdefault((place, how), [0, bool(stack), x.is_leaf])
        entry[0] += 1
        made, views = self.watch.tracer.trace.made, [x]  # (x may be a row of an output)
        while (call := made.get(id(views[-1]))) is not None and call.is_view and call.inputs:
            views.append(call.inputs[0])
        info = next((i for i, out in self.outputs for y in tensors_of(out) if any(y is each for each in views)), None)
        if info is not None:
            self.cut_outputs[place, how] = info
        if how != "item()" and not x.is_leaf and len(self.cut_now) < 50:
            inside = bool(stack) or isinstance(frame_here().f_locals.get("self"), Module)
            self.cut_now.append((place, how, x, inside))

    def forward_ends(self, info: Any, args: Any, kwargs: Any, out: Any) -> None:  # noqa: D102
        if self.watch.tracer.on and local.state.grad:
            self.outputs = [*self.outputs[-3:], (info, out)]

    def traced(self, trace: Any, loss: Any, place: Any) -> None:  # noqa: D102
        self.steps += 1
        for where, how, x, inside in self.cut_now:
            array = array_of(x)
            if array is None or array.size < 2:
                continue
            inputs = [each for call in trace.calls if call.name != "detach" for each in call.inputs]
            made = trace.made.get(id(x))
            if made is not None and made.name == "sub":
                self.straight_through |= any(call.name == "add" and any(each is part for part in made.inputs)
                                             for call in trace.calls for each in call.inputs)  # fmt: skip
            if any(each is x for each in inputs):
                self.used_as_well.add((where, how))
            inputs = [each for each in inputs if each is not x]
            back = any(not each.requires_grad and each.numel() == array.size and _equal(each, array) for each in inputs)
            if back and inside:
                self.returned[where, how] = self.returned.get((where, how), 0) + 1
        self.cut_now = self.cut_now[-10:] if len(self.watch.optimizers) > 1 else []
        self._look_at_no_grad(trace)

    def _look_at_no_grad(self, trace: Any) -> None:
        """Find results of `no_grad`, of what has a graph, that a later call with a graph uses."""
        made: dict[int, Any] = {}
        for call in trace.calls:
            if not isinstance(call.out, Tensor):
                continue
            if call.out.requires_grad:
                for each in call.inputs:
                    if id(each) in made:
                        self.unrecorded.setdefault(made[id(each)], set()).add(self.steps)
                continue
            if not call.out.dtype.is_floating_point or call.module or call.name in ("detach", "clone"):
                continue
            if any(each.requires_grad and not each.is_leaf for each in call.inputs):
                made[id(call.out)] = call.place
            else:
                place = next((made[id(each)] for each in call.inputs if id(each) in made), None)
                if place is not None:
                    made[id(call.out)] = place

    def _models(self) -> list[Any]:
        """Return the models that are trained, without those that are parts of others."""
        found = [info for info in self.watch.models.values() if info.parameters]
        parts = {id(each) for info in found for each in info.module.modules() if each is not info.module}
        return [info for info in found if id(info.module) not in parts]

    def finish(self) -> Iterator[Suspicion]:  # noqa: D102
        watch = self.watch
        optimizers = list(watch.optimizers.values())
        owned = set(itertools.chain(*[info.ids for info in optimizers]))
        stepped = [info for info in optimizers if info.steps >= 2]
        models = self._models()
        error = str(self.doctor.error or "")
        cut_by_error = "does not require grad" in error
        if cut_by_error:
            yield from self._no_graph()
            return
        for place, count in self.bare.items():
            if count >= 3 and count > 0.8 * watch.backwards:
                cuts = [
                    (key, entry) for key, entry in self.cuts.items() if key[1] in ("item()", "detach()", "tolist()")
                ]
                cuts = [(key, entry) for key, entry in cuts if entry[0] >= min(count, 4)]
                yield Suspicion(
                    "graph-cut",
                    f"{count} backward passes began at a tensor that nothing computed: it was made of a number, and "
                    "its graph ends there, so no parameter got a gradient.",
                    cuts[0][0][0] if cuts else place,
                    "loss = loss_fn(model(x), y)  # without item() and torch.tensor(...)\nloss.backward()",
                    certain=True,
                    proven="" if any(self.got.values()) else "after all these passes no parameter has a gradient",
                    rank=1,
                )
                return
        if watch.backwards < 3 or not optimizers:
            return
        hidden_ids: set[int] = set()
        for info in models:
            yield from self._in_lists(info, owned, hidden_ids)
        if not stepped:
            return
        reasons = [*self._other_model(stepped, models, owned)]
        for info in models:
            if not reasons:
                reasons += self._forgotten(info, owned, stepped, hidden_ids)
            reasons += self._cut_off(info, owned, stepped)
        if not reasons and not self.watch.updated_at:
            reasons += self._returned()
        yield from reasons
        if not reasons:
            yield from [without_backward(info, info.idle) for info in stepped
                        if info.steps >= 3 and info.idle >= 0.85 * info.steps
                        and any(p.requires_grad for p in info.params)]  # fmt: skip
        for info in models:
            yield from self._frozen(info, owned, stepped)
            yield from self._zero_tensors(info)

    def _in_lists(self, info: Any, owned: set[int], hidden_ids: set[int]) -> Iterator[Suspicion]:
        parts = [(path, part) for path, part in self.hidden.get(id(info), ())]
        lost = []
        for path, part in parts:
            params = list(part.parameters()) if isinstance(part, Module) else [part]
            missing = [p for p in params if id(p) not in owned and self.got.get(id(p))]
            if missing:
                lost.append((path, part, missing))
                hidden_ids.update(map(id, missing))
        if not lost:
            return
        path = lost[0][0]
        attribute = path.partition("[")[0]
        owner = info.module.get_submodule(attribute.rpartition(".")[0])
        name = attribute.rpartition(".")[2]
        count = sum(p.numel() for *_, missing in lost for p in missing)
        whole = sum(p.numel() for p in info.parameters.values()) + count
        if not isinstance(lost[0][1], (Module, Parameter)):
            yield Suspicion(
                "parameters-forgotten",
                f"{info.name}.{path} is a tensor that requires a gradient, but no nn.Parameter, so parameters() does "
                "not contain it: it gets gradients and is never updated.",
                assigned_at(owner, name) or info.place,
                f"self.{name} = nn.Parameter(...)",
                trials=[Trial(AddParameters(), "learns_better", says="with it in the optimizer")],
                certain=True,
                rank=1,
            )
            return
        kind = "ModuleDict" if isinstance(getattr(owner, name), dict) else "ModuleList"
        if isinstance(lost[0][1], Parameter):
            kind = kind.replace("Module", "Parameter")
        yield Suspicion(
            "layers-in-list",
            f"{info.name}.{path} and {len(lost) - 1} more layers are in a plain {type(getattr(owner, name)).__name__}, "
            f"so parameters() does not contain them: {count} of {whole} weights get gradients and are never updated.",
            assigned_at(owner, name) or info.place,
            f"self.{name} = nn.{kind}(...)",
            trials=[Trial(AddParameters(), "learns_better", says="with these parameters in the optimizer")],
            certain=True,
            rank=1,
        )

    def _other_model(self, stepped: list[Any], models: list[Any], owned: set[int]) -> Iterator[Suspicion]:
        for optimizer in stepped:
            if optimizer.idle < 0.85 * optimizer.steps or any(p._grad is not None for p in optimizer.params):
                continue
            others = [m for m in models if any(self.got.get(id(p)) and id(p) not in owned and self._untouched(p)
                                               for p in m.parameters.values())]  # fmt: skip
            if not others:
                continue
            yield Suspicion(
                "optimizer-of-other-model",
                f"None of the {len(optimizer.params)} parameters of {type(optimizer.optimizer).__name__} had a "
                f"gradient in its steps, while those of {others[0].name} did and belong to no optimizer: it was made "
                "for another model, or before the model or a layer of it was replaced.",
                optimizer.place,
                "optimizer = torch.optim.SGD(model.parameters(), lr=...)  # of the model that is trained",
                trials=[Trial(AddParameters(), "learns_better", says="with the parameters of the trained model")],
                certain=True,
                rank=1,
            )

    def _forgotten(self, info: Any, owned: set[int], stepped: list[Any], hidden: set[int]) -> Iterator[Suspicion]:
        params = info.parameters
        mine = any(id(p) in owned for p in params.values())
        if any(id(p) in self.loaded for p in params.values()):
            return
        lost = {name: p for name, p in params.items()
                if p.requires_grad and id(p) not in owned and self.got.get(id(p)) and self._untouched(p)}  # fmt: skip
        if not lost:
            return
        layers = list(dict.fromkeys(name.rpartition(".")[0] for name in lost))
        share = sum(p.numel() for p in lost.values()) / sum(p.numel() for p in params.values())
        yield Suspicion(
            "parameters-forgotten",
            f"{len(lost)} parameters of {info.name} ({', '.join(layers[:3])}{', ...' * (len(layers) > 3)}; {share:.0%} "
            "of its weights) get gradients, but no optimizer has them: they keep their random initial values.",
            stepped[0].place,
            "optimizer = torch.optim.SGD(model.parameters(), lr=...)\n"
            "# or, if they are not to be trained: layer.requires_grad_(False)",
            trials=[Trial(AddParameters(), "learns_better", says="with these parameters in the optimizer")],
            certain=mine and stepped[0].steps >= 30,
            rank=2,
        )

    def _untouched(self, p: Any) -> bool:
        before = self.start.get(id(p))
        return before is not None and np.array_equal(before, p._array.reshape(-1)[:32])

    def _no_graph(self) -> Iterator[Suspicion]:
        """Explain the error that a loss does not require grad."""
        place = self.doctor.error_place()
        models = self._models()
        frozen = [p for info in models for p in info.parameters.values() if not p.requires_grad]
        total = [p for info in models for p in info.parameters.values()]
        cuts = sorted(self.cuts.items(), key=lambda item: (-item[1][1], -item[1][0]))
        cuts = [(key, entry) for key, entry in cuts if key[1] in ("detach()", ".data", "numpy()", "item()", "tolist()")]
        if total and len(frozen) == len(total):
            yield Suspicion(
                "frozen-by-mistake",
                f"backward() failed, since all {len(total)} parameters have requires_grad=False.",
                self.watch.frozen_at.get(id(frozen[0])) or place,
                "for p in model.fc.parameters():\n    p.requires_grad_(True)",
                certain=True,
                proven="no parameter of the models requires a gradient, so no loss can",
                rank=1,
            )
            return
        where, how = cuts[0][0] if cuts else (place, "")
        yield Suspicion(
            "graph-cut",
            "backward() failed, since the loss does not depend on the parameters in a way that is recorded"
            + (f": {how} cut the graph." if how else ": it was computed in no_grad, or from numbers."),
            where,
            "loss = loss_fn(model(x), y)  # without detach(), .data, item() or torch.tensor(...) in between",
            certain=True,
            rank=1,
        )

    def _cut_off(self, info: Any, owned: set[int], stepped: list[Any]) -> Iterator[Suspicion]:
        params = {name: p for name, p in info.parameters.items() if p.requires_grad and id(p) in owned}
        lost = {name: p for name, p in params.items() if not self.got.get(id(p)) and self._untouched(p)}
        got = [p for p in params.values() if self.got.get(id(p))]
        if not lost or not info.calls.get((True, True), 0) + info.calls.get((False, True), 0):
            return
        inside = [(key, entry) for key, entry in self.cuts.items()
                  if key[1] in ("detach()", ".data", "numpy()", "tolist()") and not entry[2]
                  and (entry[1] or self._cuts_output(key, info))]  # fmt: skip
        no_grad = self.watch.unrecorded.get(id(info))
        if not inside and not no_grad:
            return
        layers = list(dict.fromkeys(name.rpartition(".")[0] for name in lost))
        if inside:
            (place, how), _ = max(inside, key=lambda item: item[1][0])
            text = f"{how} in the forward pass cuts the graph"
        else:
            assert no_grad is not None
            place, text = no_grad, "a part of the forward pass runs in no_grad"
        meant = bool(got) and all(id(p) in self.loaded for p in lost.values())
        yield Suspicion(
            "graph-cut",
            f"{len(lost)} parameters of {info.name} ({', '.join(layers[:3])}) never got a gradient: {text}.",
            place,
            "x = self.layer(x)  # without detach(), .data, no_grad or numpy() before the loss",
            trials=[Trial(KeepGraph(), "learns_better", says="with the graph kept")],
            certain=not meant,
            rank=1,
        )

    def _zero_tensors(self, info: Any) -> Iterator[Suspicion]:
        """Find tensors that are attributes of a module, and zero: as parameters they would be trained."""
        for path, module in info.module.named_modules():
            for name, value in vars(module).items():
                if isinstance(value, Tensor) and value.dtype.is_floating_point and value.ndim > 0 and value.numel() > 1:
                    if value.requires_grad or value._array.any():
                        continue
                    yield Suspicion(
                        "parameters-forgotten",
                        f"{info.name}.{path + '.' if path else ''}{name} is a tensor of zeros, and no nn.Parameter: "
                        "parameters() does not contain it, and it stays zero.",
                        assigned_at(module, name) or info.place,
                        f"self.{name} = nn.Parameter(...)",
                        trials=[Trial(TrainTensors(), "learns_better", says="with it trained")],
                        rank=2,
                    )

    def _cuts_output(self, key: tuple[Any, str], info: Any) -> bool:
        """Return whether a line cuts the output of a model that is not used in another way."""
        return self.cut_outputs.get(key) is info and key not in self.used_as_well

    def _returned(self) -> Iterator[Suspicion]:
        """Find values that a model computes, takes out of the graph and goes on with."""
        if self.doctor.course.adversarial:
            return
        lines = [place for place, steps in self.unrecorded.items() if len(steps) >= max(3, 0.6 * self.steps)]
        if lines:
            yield Suspicion(
                "graph-cut",
                "What is computed here from the model's outputs runs in no_grad, and the loss goes on with it: no "
                "gradient flows through it.",
                min(lines, key=lambda place: place.number),
                "# without `with torch.no_grad():` around what the loss depends on",
                trials=[
                    Trial(
                        KeepGraph(frozenset(each.function for each in lines)),
                        "learns_better",
                        says="with the graph kept",
                    )
                ],
                rank=1,
            )
        for (place, how), count in self.returned.items():
            if count < 3 or count < 0.6 * self.steps or self.straight_through:
                continue
            yield Suspicion(
                "graph-cut",
                f"{how} in the forward pass takes values out of the graph, and the loss goes on with them: what "
                "computed them gets no gradient by this way.",
                place,
                "x = self.layer(x)  # without detach(), .data, numpy() or tolist() before the loss",
                trials=[Trial(KeepGraph(), "learns_better", says="with the graph kept")],
                certain=how in ("numpy()", "tolist()"),
                rank=1,
            )

    def _frozen(self, info: Any, owned: set[int], stepped: list[Any]) -> Iterator[Suspicion]:
        if not self.doctor.course.supervised or self.doctor.course.adversarial:
            return
        mine = [p for p in info.parameters.values() if id(p) in owned and p.requires_grad]
        fixed = {name: p for name, p in info.parameters.items() if not p.requires_grad and p.ndim > 1}
        frozen = {name: p for name, p in fixed.items() if id(p) not in self.loaded and self._untouched(p)}
        if not frozen or not mine:
            return
        layers = [name.rpartition(".")[0] for name in frozen]
        modules = dict(info.module.named_modules())
        kinds = [type(modules[each]).__name__ for each in layers if each in modules]
        if any("Embedding" in kind for kind in kinds):
            return
        yield Suspicion(
            "frozen-by-mistake",
            f"{len(frozen)} weights of {info.name} ({', '.join(layers[:3])}) have requires_grad=False although they "
            "were neither loaded nor trained: random values stay in them.",
            self.watch.frozen_at.get(id(next(iter(frozen.values())))) or info.place,
            "p.requires_grad_(True)",
            trials=[Trial(Unfreeze(), "learns_better", says="with these weights trained, too,")],
            certain=next(reversed(frozen)) == [name for name, p in info.parameters.items() if p.ndim > 1][-1],
            rank=2,
        )


def _alike(p: Tensor) -> tuple[bool, bool]:
    """Return whether the rows of a matrix of weights are all the same, and whether its columns are."""
    array = p._array.reshape(len(p._array), -1)
    scale = max(float(np.abs(array).max()), 1e-12)
    rows = float(np.abs(array - array[:1]).max()) < 1e-3 * scale or not array.any()
    return rows and len(array) > 1, array.shape[1] > 1 and float(np.abs(array - array[:, :1]).max()) < 1e-3 * scale


class Symmetric(Check):
    """Layers whose units all begin with the same weights, and so stay the same."""

    causes = ("weights-symmetric",)

    def __init__(self, doctor: Any) -> None:
        super().__init__(doctor)
        self.seen: dict[int, list[tuple[str, Any, tuple[bool, bool]]]] = {}
        self.matrices: list[tuple[Any, tuple[bool, bool], Any]] | None = None  # of a program without modules

    def forward_begins(self, info: Any, args: Any) -> None:  # noqa: D102
        if id(info) in self.seen:
            return
        found = self.seen[id(info)] = []
        for name, p in info.parameters.items():
            if p.ndim < 2 or not name.endswith("weight") or not p.requires_grad or p.numel() <= 4:
                continue
            alike = _alike(p)
            owner = name.rpartition(".")[0]
            if "Embedding" not in type(info.module.get_submodule(owner)).__name__:
                alike = alike[0], False  # (the columns belong to inputs, which differ)
            if any(alike):
                found.append((owner, p, alike))

    def backward_begins(self, loss: Any, place: Any) -> None:  # noqa: D102
        if self.matrices is not None or self.watch.models:
            return
        found = [(p, _alike(p)) for p in leaves(loss) if p.ndim == 2 and p.numel() > 4]
        self.matrices = [(p, alike, self.watch.leaf_at(p) or place) for p, alike in found if any(alike)]
        self.count = len(found)

    def finish(self) -> Iterator[Suspicion]:  # noqa: D102
        watch = self.watch
        if watch.backwards < 3:
            return
        owned = set(itertools.chain(*[info.ids for info in watch.optimizers.values()]))
        for info in list(watch.models.values()):
            found = [each for each in self.seen.get(id(info), ()) if id(each[1]) in owned]
            still = [(path, p) for path, p, before in found if _both(before, _alike(p))]
            weights = [name for name, p in info.parameters.items() if p.ndim > 1]
            if not still or len(weights) < 2:
                continue  # one layer alone may begin with zeros: its outputs have different targets
            path, p = still[0]
            yield self._suspicion(
                f"{info.name}.{', '.join(path for path, _ in still[:3])}", p, watch.filled_at(p)
                or watch.made_at.get(id(info.module.get_submodule(path)), info.place),
                Reset([path for path, *_ in found]),
            )  # fmt: skip
        for p, before, place in self.matrices or ():
            if self.count > 1 and _both(before, _alike(p)):
                yield self._suspicion("a matrix", p, place, Reset())
                return

    def _suspicion(self, name: str, p: Any, place: Any, patch: Any) -> Suspicion:
        value = "zero" if not p._array.any() else "the same"
        return Suspicion(
            "weights-symmetric",
            f"All units of {name} began with the same weights and are the same after {self.watch.backwards} steps "
            f"({value}): the layer computes one feature, or none.",
            place,
            "nn.init.kaiming_uniform_(layer.weight)  # random numbers, or leave the layer as it is made",
            trials=[Trial(patch, "learns_better", says="with random initial weights")],
            certain=True,
            rank=1,
        )


def _both(before: tuple[bool, bool], after: tuple[bool, bool]) -> bool:
    """Return whether rows, or columns, were all the same both times."""
    return any(a and b for a, b in zip(before, after, strict=True))
