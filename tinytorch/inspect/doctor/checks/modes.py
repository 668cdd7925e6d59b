"""Training and evaluation: models tested or trained in the wrong mode, or random where they must not be."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from types import FrameType
from typing import Any

from tinytorch.autograd import function
from tinytorch.autograd.profiler import tensors_in
from tinytorch.core.mode import local
from tinytorch.inspect.doctor.causes import found
from tinytorch.inspect.doctor.checks import Check
from tinytorch.inspect.doctor.finding import Finding
from tinytorch.inspect.doctor.place import here
from tinytorch.inspect.doctor.probes import modes_compared
from tinytorch.inspect.doctor.source import line_with
from tinytorch.inspect.doctor.watch import node_of
from tinytorch.nn.modules.batchnorm import _BatchNorm
from tinytorch.nn.modules.dropout import _DropoutNd
from tinytorch.nn.modules.module import Module

__all__ = ["Modes"]


def _acting(module: Module) -> list[str]:
    """Return the paths of the layers that do something else in training mode."""
    return [
        path for path, each in module.named_modules()
        if (isinstance(each, _DropoutNd) and each.p > 0)
        or (isinstance(each, _BatchNorm) and each.track_running_stats and each.momentum is not None)
    ]  # fmt: skip


def _holds_tensors(node: Any) -> bool:
    """Return whether a node has saved tensors, which a backward pass through it frees."""
    plan = getattr(node, "plan", None)  # (some nodes, such as those of writes into views, have none)
    return plan is not None and plan.holds_tensors and bool(node.saved)


def _in_function() -> bool:
    """Return whether an `autograd.Function` runs, such as a checkpoint: what it calls records no graph of its own."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") != function.__name__:
        frame = frame.f_back
    return frame is not None


class Modes(Check):
    """Calls of models whose results are for no backward pass, and the mode of those that are."""

    def __init__(self, doctor: Any) -> None:
        super().__init__(doctor)
        self.tests: dict[Any, list[Any]] = {}  # by line and mode: calls, the model, what a probe showed
        self.last: Any = None
        self.repeated: Counter[bool] = Counter()  # by mode: tests of the input that was tested before
        self.waiting: list[Any] = []  # results since the last backward pass
        self.used: set[Any] = set()  # lines whose results backward passes use
        self.unused: Counter[Any] = Counter()
        self.unsure: list[Any] = []  # calls with a graph, in the running iteration over a loader
        self.pending: Any = None  # the last call for a graph
        self.trained: Counter[bool] = Counter()  # steps, by mode
        self.wrong: Any = None  # a model that is trained in evaluation mode, and what a probe showed

    def forward_ends(self, info: Any, args: Any, kwargs: Any, out: Any) -> None:  # noqa: D102
        if not info.parameters:
            return
        call, loaders = (info, args, kwargs, here()), self.watch.open_loaders
        if local.state.grad:
            self.pending = call
        if local.state.grad and info.module.training:
            self._await(call, out)
            if loaders and not loaders[-1].backwards and self.watch.backwards and len(self.unsure) < 3:
                self.unsure.append((loaders[-1], call))
            return
        again = (args[0] if args else None, self.watch.backwards)
        self.repeated[info.module.training] += self.last is not None and all(
            a is b or (isinstance(a, int) and a == b) for a, b in zip(again, self.last, strict=True))  # fmt: skip
        self.last = again
        if not info.module.training or not _in_function():
            self._test(call)

    def _await(self, call: Any, out: Any) -> None:
        """Remember a result that the next backward pass may use, or not: then it was not for training."""
        if len(self.waiting) >= 20 or not self.watch.backwards or call[3] in self.used:
            return
        node = next((node for each in tensors_in(out) if (node := node_of(each)) is not None), None)
        for _ in range(5):  # to a node that a backward pass leaves without its saved tensors
            if node is None or _holds_tensors(node):
                break
            node = next((edge[0] for edge in node.next_functions if edge[0] is not None), None)
        if _holds_tensors(node):
            self.waiting.append((node, call))

    def backward_ends(self, loss: Any, place: Any) -> None:  # noqa: D102
        for node, call in self.waiting:
            if node.saved is None:
                self.used.add(call[3])
            else:
                self.unused[call[3]] += 1
                if self.unused[call[3]] > 1 and call[3] not in self.used:
                    self._test(call)
        self.waiting.clear()

    def loader_ends(self, info: Any) -> None:  # noqa: D102
        if self.unsure and self.unsure[0][0] is info and not info.backwards:
            for _, call in self.unsure:
                self._test(call)
        self.unsure.clear()

    def _test(self, call: Any) -> None:
        """Note a call that is for no backward pass, and try in a copy what it depends on."""
        info, args, kwargs, place = call
        loaders = self.watch.open_loaders
        tests = bool(loaders) and not loaders[-1].backwards
        entry = self.tests.setdefault((place, info.module.training), [0, info, None, tests])
        entry[0] += 1
        if entry[2] is None and self.watch.backwards and self._trains(info):
            entry[2] = self.doctor.replay.probe(lambda: modes_compared(self.watch, info.module, args, kwargs)) or {}

    def _trains(self, info: Any) -> bool:
        ids = {id(p) for p in info.parameters.values()}
        return any(each.ids & ids for each in self.watch.optimizers.values()) or not self.watch.optimizers

    def step_ends(self, info: Any) -> None:  # noqa: D102
        if self.pending is None:
            return
        model, args, kwargs, place = self.pending
        self.pending = None
        training = model.module.training
        self.trained[training] += 1
        if not training and self.wrong is None and any(id(p) in info.ids for p in model.parameters.values()):
            shown = self.doctor.replay.probe(lambda: modes_compared(self.watch, model.module, args, kwargs))
            tested = model.calls.get((False, False), 0) or self.trained[True]
            self.wrong = (model, shown or {}, tested, place)

    def finish(self) -> Iterator[Finding]:  # noqa: D102
        several = self.doctor.course.adversarial and len(self.watch.optimizers) > 1
        for (place, training), (count, info, shown, tests) in self.tests.items():
            if not self._trains(info) or not shown or (several and not tests):
                continue
            if self.repeated[training] > 3 and self.repeated[training] > 0.4 * count:
                continue  # many passes over one batch: dropout is meant to act
            layers = _acting(info.module)
            if training and shown["acts"] and place not in self.used:
                names = ", ".join([f"{info.name}.{path}" for path in layers[:3]]) or "dropout"
                yield found("eval-missing", place, model=info.name, count=count, layers=names, **shown)
            elif shown["always"] is not None:
                yield found("functional-dropout-always", shown["always"], model=info.name, count=count, **shown)
        if self.wrong is not None and self.trained[False] >= 3:
            model, shown, tested, place = self.wrong
            layers = _acting(model.module)
            if not tested or not shown or not shown["acts"]:
                return
            yield found("train-missing", line_with(place, r"\.eval\(\)|\.train\(False\)") or place, model=model.name,
                        count=self.trained[False], others=self.trained[True], layers=", ".join(layers[:3]) or "dropout",
                        **shown)  # fmt: skip
