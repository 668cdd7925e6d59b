"""Training and evaluation mode: `eval()` forgotten, `train()` forgotten, dropout that heeds neither."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

import numpy as np

from tinytorch.autograd import function
from tinytorch.autograd.grad_mode import no_grad
from tinytorch.core.mode import local
from tinytorch.inspect.doctor.checks import Check
from tinytorch.inspect.doctor.finding import Suspicion
from tinytorch.inspect.doctor.patches import HonourTraining
from tinytorch.inspect.doctor.place import here
from tinytorch.inspect.doctor.trace import tensors_of
from tinytorch.inspect.doctor.watch import node_of
from tinytorch.nn.modules.batchnorm import _BatchNorm
from tinytorch.nn.modules.dropout import _DropoutNd
from tinytorch.nn.modules.module import Module

__all__ = ["EvaluationMode", "FunctionalDropout", "TrainingMode"]


def _acting(module: Module) -> tuple[list[str], list[str]]:
    """Return the paths of the layers of dropout, and of batch norm, that are in training mode."""
    drops, norms = [], []
    for path, each in module.named_modules():
        if not each.training:
            continue
        if isinstance(each, _DropoutNd) and each.p > 0:
            drops.append(path)
        elif isinstance(each, _BatchNorm) and each.track_running_stats and each.momentum is not None:
            norms.append(path)
    return drops, norms


def _first_array(out: Any) -> Any:
    for each in tensors_of(out):
        if each.dtype.is_floating_point:
            return each.detach()._array.astype(np.float64)
    return None


def _apart(a: Any, b: Any) -> float:
    """Return by which part of their size two arrays differ."""
    if a is None or b is None or a.shape != b.shape:
        return float("nan")
    return float(np.abs(a - b).mean() / max(np.abs(a).mean(), 1e-12))


def _modes_compared(watch: Any, module: Module, args: Any, kwargs: Any) -> dict[str, float]:
    """Return how passes over the same batch differ, in training mode and in evaluation mode."""
    for receivers in watch.events.values():
        receivers.clear()
    means = [each.running_mean for each in module.modules() if isinstance(each, _BatchNorm)]
    with no_grad():
        module.train()
        stats = [x._array.copy() for x in means if x is not None]
        a, b = (_first_array(module(*args, **kwargs)) for _ in range(2))
        after = [x._array for x in means if x is not None]
        moved = max([float(np.abs(x - y).max()) for x, y in zip(stats, after, strict=True)], default=0.0)
        module.eval()
        stats = [x.copy() for x in after]
        c, d = (_first_array(module(*args, **kwargs)) for _ in range(2))
        still = max([float(np.abs(x - y).max()) for x, y in zip(stats, after, strict=True)], default=0.0)
    return {"train": _apart(a, b), "eval": _apart(c, d), "between": _apart(a, c), "moved": moved, "still": still}


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


class EvaluationMode(Check):
    """A model that is tested in training mode."""

    causes = ("eval-missing",)

    def __init__(self, doctor: Any) -> None:
        super().__init__(doctor)
        self.seen: dict[Any, list[Any]] = {}  # by line: calls, model, layers, what a probe showed
        self.last: Any = None
        self.repeated = self.last_backwards = 0
        self.functional = False  # whether `F.dropout` acted in this call
        self.waiting: list[Any] = []  # results since the last backward pass
        self.used: set[Any] = set()  # lines whose results backward passes use
        self.unused: dict[Any, int] = {}
        self.unsure: list[Any] = []  # calls with a graph, in the running iteration over a loader

    def forward_begins(self, info: Any, args: Any) -> None:  # noqa: D102
        self.functional = False

    def dropped(self, x: Any, p: float, training: bool) -> None:  # noqa: D102
        stack = self.watch.stack
        self.functional |= training and p > 0 and bool(stack) and not isinstance(stack[-1], _DropoutNd)

    def forward_ends(self, info: Any, args: Any, kwargs: Any, out: Any) -> None:  # noqa: D102
        module = info.module
        if not module.training or not info.parameters:
            return
        if local.state.grad:
            self._await(info, args, kwargs, out)
            loaders = self.watch.open_loaders
            if loaders and not loaders[-1].backwards and self.watch.backwards and len(self.unsure) < 3:
                self.unsure.append((loaders[-1], info, args, kwargs, here()))
            return
        if args and args[0] is self.last and self.watch.backwards == self.last_backwards:
            self.repeated += 1
        self.last, self.last_backwards = args[0] if args else None, self.watch.backwards
        if not _in_function():
            self._suspect(info, args, kwargs, here())

    def _await(self, info: Any, args: Any, kwargs: Any, out: Any) -> None:
        """Remember a result that the next backward pass may use, or not: then it was not for training."""
        if len(self.waiting) >= 20 or not self.watch.backwards or (where := here()) in self.used:
            return
        node = next((node for each in tensors_of(out) if (node := node_of(each)) is not None), None)
        for _ in range(5):  # to a node that a backward pass leaves without its saved tensors
            if node is None or _holds_tensors(node):
                break
            node = next((edge[0] for edge in node.next_functions if edge[0] is not None), None)
        if _holds_tensors(node):
            self.waiting.append((node, info, args, kwargs, where))

    def backward_ends(self, loss: Any, place: Any) -> None:  # noqa: D102
        for node, info, args, kwargs, where in self.waiting:
            if node.saved is None:
                self.used.add(where)
            else:
                self.unused[where] = self.unused.get(where, 0) + 1
                if self.unused[where] > 1 and where not in self.used:
                    self._suspect(info, args, kwargs, where)
        self.waiting.clear()

    def _suspect(self, info: Any, args: Any, kwargs: Any, place: Any) -> None:
        entry = self.seen.get(place)
        if entry is None:
            drops, norms = _acting(info.module)
            if self.functional:
                drops.append("")
            entry = self.seen[place] = [0, info, drops, norms, None, self._tests()]
        entry[0] += 1
        if (entry[2] or entry[3]) and entry[4] is None and self._trained(info) and self.watch.backwards:
            entry[4] = self.doctor.replay.probe(lambda: _modes_compared(self.watch, info.module, args, kwargs)) or {}

    def loader_ends(self, info: Any) -> None:  # noqa: D102
        if self.unsure and self.unsure[0][0] is info and not info.backwards:
            for _, model, args, kwargs, place in self.unsure:
                self._suspect(model, args, kwargs, place)
        self.unsure.clear()

    def _tests(self) -> bool:
        """Return whether an iteration over data is going on in which there was no backward pass."""
        loaders = self.watch.open_loaders
        return bool(loaders) and not loaders[-1].backwards

    def _trained(self, info: Any) -> bool:
        ids = {id(p) for p in info.parameters.values()}
        return any(each.ids & ids for each in self.watch.optimizers.values()) or not self.watch.optimizers

    def finish(self) -> Iterator[Suspicion]:  # noqa: D102
        several = (
            sum(1 for info in self.watch.optimizers.values() if info.steps > 2) > 1 and self.doctor.course.adversarial
        )
        for place, (count, info, drops, norms, shown, tests) in self.seen.items():
            if place in self.used or not (drops or norms) or not self._trained(info) or (several and not tests):
                continue
            if self.repeated > 0.5 * count and self.repeated > 3:
                continue  # many passes over one batch: dropout is meant to act
            layers = ", ".join([f"{info.name}.{path}" if path else info.name for path in (drops + norms)[:3]])
            proof = ""
            if shown:
                if drops and shown["train"] > 1e-6 and shown["eval"] < 1e-9:
                    proof = (
                        f"two passes over the same test batch differ by {shown['train']:.1%}; after {info.name}.eval() "
                        "they are equal"
                    )
                elif norms and shown["moved"] > 0 and shown["still"] == 0:
                    proof = (
                        f"a pass over the test batch changes the running mean by {shown['moved']:.3g}, and the outputs "
                        f"differ by {shown['between']:.1%} from those of evaluation mode, in which nothing changes"
                    )
            kinds = " and ".join((["dropout"] if drops else []) + (["batch norm"] if norms else []))
            yield Suspicion(
                "eval-missing",
                f"{info.name} was tested in training mode, {count} times: {kinds} ({layers}) acted as in training.",
                place,
                "model.eval()\nwith torch.no_grad():\n    ...\nmodel.train()",
                certain=True,
                proven=proof,
                rank=2,
            )


class TrainingMode(Check):
    """A model that is trained in evaluation mode after a test."""

    causes = ("train-missing",)

    def __init__(self, doctor: Any) -> None:
        super().__init__(doctor)
        self.evals: dict[int, Any] = {}  # by the id of a module: where it was set to evaluation mode
        self.pending: Any = None
        self.in_train = self.in_eval = 0
        self.wrong: list[Any] = []

    def mode_set(self, module: Any, mode: bool, before: bool) -> None:  # noqa: D102
        if mode:
            self.evals.pop(id(module), None)
        elif not self.watch.models or (id(module) in self.watch.models and id(module) not in self.evals):
            self.evals[id(module)] = here()

    def forward_ends(self, info: Any, args: Any, kwargs: Any, out: Any) -> None:  # noqa: D102
        if local.state.grad and info.parameters:
            self.pending = (info, args, kwargs, info.module.training)

    def step_ends(self, info: Any) -> None:  # noqa: D102
        if self.pending is None:
            return
        model, args, kwargs, training = self.pending
        self.pending = None
        if training:
            self.in_train += 1
            return
        place = self.evals.get(id(model.module))
        self.in_eval += 1
        if place is None or self.wrong:
            return
        drops = [each for each in model.module.modules() if isinstance(each, _DropoutNd) and each.p > 0]
        norms = [each for each in model.module.modules() if isinstance(each, _BatchNorm) and each.track_running_stats]
        if not any(each in info.ids for each in map(id, model.parameters.values())):
            return
        tested = model.calls.get((False, False), 0) or self.in_train
        shown = self.doctor.replay.probe(lambda: _modes_compared(self.watch, model.module, args, kwargs))
        self.wrong = [place, model, bool(drops), bool(norms), tested, shown]

    def finish(self) -> Iterator[Suspicion]:  # noqa: D102
        if not self.wrong or self.in_eval < 3:
            return
        place, model, drops, norms, tested, shown = self.wrong
        if not tested:
            return
        kinds = " and ".join((["dropout"] if drops or not norms else []) + (["batch norm"] if norms else []))
        if not (drops or norms) and not (shown and shown["between"] > 1e-6):
            return  # the model does the same in both modes
        proof = ""
        if shown and shown["between"] > 1e-6:
            proof = (
                f"after {model.name}.train(), {kinds} act: the outputs for a training batch differ by "
                f"{shown['between']:.1%} from those of evaluation mode"
            )
        yield Suspicion(
            "train-missing",
            f"{model.name} took {self.in_eval} training steps in evaluation mode, after {self.in_train} in training "
            f"mode: eval() was not undone, so {kinds} did nothing.",
            place,
            "model.train()  # at the beginning of each epoch",
            certain=True,
            proven=proof,
            rank=2,
        )


class FunctionalDropout(Check):
    """`F.dropout` without `training=self.training`, or a layer of dropout that is made in `forward`."""

    causes = ("functional-dropout-always",)

    def __init__(self, doctor: Any) -> None:
        super().__init__(doctor)
        self.here: Any = None
        self.seen: dict[Any, list[Any]] = {}
        self.last: Any = None
        self.repeated = self.calls = self.last_backwards = 0

    def forward_begins(self, info: Any, args: Any) -> None:  # noqa: D102
        self.here = None

    def dropped(self, x: Any, p: float, training: bool) -> None:  # noqa: D102
        stack = self.watch.stack
        if not (training and stack and p > 0) or (stack[0].training and local.state.grad):
            return
        owner = stack[-1]
        if isinstance(owner, _DropoutNd):
            info = self.watch.models.get(id(stack[0]))
            if info is None or id(owner) in info.paths:
                return
        elif owner.training and stack[0].training:
            return
        self.here = here()

    def forward_ends(self, info: Any, args: Any, kwargs: Any, out: Any) -> None:  # noqa: D102
        if self.here is None:
            return
        self.calls += 1
        if args and args[0] is self.last and self.watch.backwards == self.last_backwards:
            self.repeated += 1
        self.last, self.last_backwards = args[0] if args else None, self.watch.backwards
        entry = self.seen.setdefault(self.here, [0, info, None])
        entry[0] += 1
        if entry[2] is None:
            entry[2] = self.doctor.replay.probe(lambda: self._twice(info.module, args, kwargs)) or {}

    def _twice(self, module: Module, args: Any, kwargs: Any) -> dict[str, float]:
        for receivers in self.watch.events.values():
            receivers.clear()
        with no_grad():
            a, b = (_first_array(module(*args, **kwargs)) for _ in range(2))
            self.watch.patch = HonourTraining()
            c, d = (_first_array(module(*args, **kwargs)) for _ in range(2))
        return {"always": _apart(a, b), "honoured": _apart(c, d)}

    def finish(self) -> Iterator[Suspicion]:  # noqa: D102
        if self.repeated > 0.4 * self.calls and self.repeated > 2:
            return  # many passes over one batch: dropout is meant to act
        for place, (count, info, shown) in self.seen.items():
            proof = ""
            if shown and shown["always"] > 1e-6 and shown["honoured"] < 1e-9:
                proof = (
                    f"in evaluation mode two passes over the same batch differ by {shown['always']:.1%}; with "
                    "training=self.training they are equal"
                )
            yield Suspicion(
                "functional-dropout-always",
                f"Dropout acted in {count} calls of {info.name} in evaluation mode: F.dropout acts whenever its "
                "argument `training` is true, as it is by default.",
                place,
                "F.dropout(x, p, training=self.training)  # or a layer nn.Dropout made in __init__",
                certain=True,
                proven=proof,
                rank=2,
            )
