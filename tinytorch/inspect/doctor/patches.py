"""What a counterfactual changes in the steps that it takes again.

A patch is pickled, sent to a copy of the process, and there told of what the program does (see `Watch`). Layers,
optimizers and lines have the same names in the copy. Every patch notes the losses of its steps in `result`.
"""

from __future__ import annotations

import copy
import itertools
import math
from typing import Any

import numpy as np

from tinytorch.autograd.grad_mode import no_grad
from tinytorch.core.mode import local, set_grad
from tinytorch.core.tensor import Tensor
from tinytorch.data.dataloader import DataLoader
from tinytorch.data.sampler import BatchSampler, RandomSampler, SequentialSampler
from tinytorch.inspect.doctor.place import Place, here
from tinytorch.inspect.doctor.shapes import transposition
from tinytorch.inspect.doctor.trace import LossCall, tensors_of
from tinytorch.nn import functional as F
from tinytorch.nn.init import kaiming_normal_, orthogonal_
from tinytorch.nn.modules.module import Module
from tinytorch.nn.utils.clip_grad import clip_grad_norm_
from tinytorch.ops.random import Generator, get_rng_state, set_rng_state
from tinytorch.optim.optimizer import Optimizer

__all__ = [
    "AddParameters", "AddTerm", "AtLine", "Clip", "Defaults", "EveryClass", "FirstOrder", "FixedRate", "FlipSign",
    "HonourTraining", "KeepGraph", "Leaky", "LinearOutput", "LogInput", "MatchShapes", "NoDropout", "NoSoftmax",
    "Normalise", "NormaliseLayers", "OneBatch", "Orthogonal", "PassThrough", "Patch", "PerEpoch", "Rate", "Rectify",
    "Reset", "Restore", "SameIndex", "SameOrder", "ScaleGradients", "ScaleScores", "Separate", "ShareOfStep",
    "Shuffle", "Smaller", "Stable", "StepAfterBackward", "TrainTensors", "Transposed", "Unchanged", "Unfreeze",
    "UnitTargets", "Unshared", "Watching", "ZeroAfterStep", "ZeroGradients", "leaves",
]  # fmt: skip


class Patch:
    """Changes nothing: the control, and the base of all patches.

    Attributes:
        result: what was seen: "values", the loss of each backward pass; "places", the line of each; "scores", how good
            the predictions were; and what a patch adds.
    """

    in_backward = False  # whether `node` is told of the nodes of a backward pass

    @property
    def traces(self) -> bool:
        """Whether it needs to see every op; else some steps are traced for their scores."""
        return self.in_backward or type(self).op is not Patch.op

    def __init__(self) -> None:
        self.result: dict[str, Any] = {"values": [], "places": [], "scores": []}
        self.seen: list[Any] = []  # the batches of these steps

    def start(self, watch: Any) -> None:
        """Change what there is when the copy goes on."""

    def note(self, watch: Any, value: float, place: Place) -> None:
        """Note a backward pass."""
        score = None
        for each in reversed(watch.tracer.trace.losses):
            score = each.score()
            if score is not None:
                break
        if watch.last_root is not None and watch.tracer.trace.losses:
            module, args, kwargs, out = watch.last_root
            found = watch.tracer.trace.losses[-1]
            if isinstance(out, Tensor) and out.shape == found.input.shape and found.kind != "value":
                self.seen.append((module, args, kwargs, found.target._array.copy(), found.kind))
        self.result["values"].append(value)
        self.result["places"].append(place)
        self.result["scores"].append(score)

    def examine(self) -> None:
        """Note how good the predictions for all batches seen are at the end."""
        scores = []
        every = max(len(self.seen) // 40, 1)
        for module, args, kwargs, target, kind in self.seen[::every]:
            with no_grad():
                module.eval()
                out = module(*args, **kwargs)._array
            if kind in ("class", "nll"):
                scores.append(float((out.argmax(1) == target).mean()) if out.ndim == target.ndim + 1 else 0.0)
            else:
                scores.append(float(((out > (0 if kind == "logit" else 0.5)) == (target > 0.5)).mean()))
        if scores:
            self.result["exam"] = float(np.mean(scores))

    def op(self, watch: Any, op: Any, caller: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of an op."""
        return caller(*args, **kwargs)

    def forward(self, watch: Any, module: Module, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """Return the arguments of a model that the program calls."""
        return args, kwargs

    def backward_begins(self, watch: Any, loss: Any) -> Any:
        """Return the tensor from which the backward pass goes."""
        return loss

    def backward_ends(self, watch: Any, loss: Any) -> None:
        """Notice the end of a backward pass."""

    def step_begins(self, watch: Any, optimizer: Optimizer) -> None:
        """Notice that an optimizer is about to step."""

    def step_ends(self, watch: Any, optimizer: Optimizer) -> None:
        """Notice that an optimizer has stepped."""

    def skips_zeroing(self, watch: Any, target: Any) -> bool:
        """Return whether a call of `zero_grad` has no effect."""
        return False

    def skips_schedule(self, watch: Any, scheduler: Any) -> bool:
        """Return whether a scheduler's step has no effect."""
        return False

    def skips_dropout(self, watch: Any, training: bool) -> bool:
        """Return whether a call of `dropout` returns its input."""
        return False

    def cut(self, watch: Any, x: Tensor, how: str) -> bool:
        """Return whether `x.detach()` or the like returns `x` itself."""
        return False

    def loader(self, watch: Any, loader: Any) -> Any:
        """Return the loader that is iterated over."""
        return loader


def _clear(optimizer: Any) -> None:
    for group in optimizer.param_groups:
        for p in group["params"]:
            p.grad = None


def leaves(loss: Any) -> list[Tensor]:
    """Return the tensors into whose `grad` a backward pass from `loss` accumulates."""
    found: dict[int, Tensor] = {}
    seen: set[int] = set()
    nodes: list[Any] = [loss.grad_fn] if isinstance(loss, Tensor) and loss.grad_fn is not None else []
    while nodes:
        node = nodes.pop()
        if node is None or id(node) in seen:
            continue
        seen.add(id(node))
        variable = getattr(node, "variable", None)
        if isinstance(variable, Tensor):
            found[id(variable)] = variable
        nodes += [edge[0] for edge in node.next_functions]
    return list(found.values())


class ZeroGradients(Patch):
    """Clears the gradients that a step has used before the next backward pass."""

    def __init__(self, manual: bool = False) -> None:
        super().__init__()
        self.manual = manual

    def step_ends(self, watch: Any, optimizer: Optimizer) -> None:  # noqa: D102
        _clear(optimizer)

    def backward_begins(self, watch: Any, loss: Any) -> Any:  # noqa: D102
        if self.manual:
            for p in leaves(loss):
                p.grad = None
        return loss


class ZeroAfterStep(Patch):
    """Lets gradients be cleared after the step alone."""

    def skips_zeroing(self, watch: Any, target: Any) -> bool:  # noqa: D102
        return True

    def step_ends(self, watch: Any, optimizer: Optimizer) -> None:  # noqa: D102
        _clear(optimizer)


class StepAfterBackward(Patch):
    """Steps the optimizers that have gradients after each backward pass, and clears the gradients."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    def backward_ends(self, watch: Any, loss: Any) -> None:  # noqa: D102
        optimizer = list(watch.optimizers.values())[self.number].optimizer
        optimizer.step()
        _clear(optimizer)


class NoSoftmax(Patch):
    """Gives a loss the input of the op `names` rather than its result."""

    def __init__(self, *names: str) -> None:
        super().__init__()
        self.names = names

    def op(self, watch: Any, op: Any, caller: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: D102
        if LossCall.KINDS.get(getattr(op, "name", ""), "") in ("class", "nll", "logit"):
            made = watch.tracer.trace.before(args[0])
            if made is not None and made.name in self.names and made.inputs[0].requires_grad:
                x = made.inputs[0]
                args = (x if x.shape == args[0].shape else x.reshape(args[0].shape), *args[1:])
        return caller(*args, **kwargs)


class LinearOutput(Patch):
    """Leaves out the last activation of a model: that of a module, or at a line."""

    def __init__(self, module: str, place: Place) -> None:
        super().__init__()
        self.module, self.place = module, place

    def op(self, watch: Any, op: Any, caller: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: D102
        if getattr(op, "name", "") in ("relu", "relu6", "hardtanh", "tanh", "sigmoid") and watch.path() == self.module:
            place = watch.line_of(here(), watch.stack[-1] if watch.stack else None)
            if place[:2] == self.place[:2]:
                return args[0]
        return caller(*args, **kwargs)


class LogInput(Patch):
    """Gives `nll_loss` the log_softmax of its input, or the logarithm of probabilities."""

    def op(self, watch: Any, op: Any, caller: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: D102
        if LossCall.KINDS.get(getattr(op, "name", "")) == "nll":
            made = watch.tracer.trace.before(args[0])
            x = made.inputs[0].reshape(args[0].shape) if made is not None and "softmax" in made.name else args[0]
            args = (F.log_softmax(x, 1 if x.ndim > 1 else 0), *args[1:])
        return caller(*args, **kwargs)


class MatchShapes(Patch):
    """Gives the target of a loss the shape of the predictions, where both have the same number of elements."""

    def op(self, watch: Any, op: Any, caller: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: D102
        if LossCall.KINDS.get(getattr(op, "name", "")) == "value" and len(list(tensors_of(args[:2]))) == 2:
            x, y = (self._whole(watch, each) for each in args[:2])
            if x.shape != y.shape and x.numel() == y.numel():
                if y.requires_grad and not x.requires_grad:
                    x = x.reshape(y.shape)
                else:
                    y = y.reshape(x.shape)
                args = (x, y, *args[2:])
        return caller(*args, **kwargs)

    @staticmethod
    def _whole(watch: Any, x: Tensor) -> Tensor:
        made = watch.tracer.trace.maker(x)
        return made.inputs[0] if made is not None and made.name == "_expand" else x


class ScaleGradients(Patch):
    """Multiplies the gradients of a program that updates its parameters itself."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor
        self._leaves: list[Tensor] = []

    def backward_begins(self, watch: Any, loss: Any) -> Any:  # noqa: D102
        self._leaves = leaves(loss)
        return loss

    def backward_ends(self, watch: Any, loss: Any) -> None:  # noqa: D102
        for p in self._leaves:
            if p._grad is not None:
                p._grad._array[...] *= self.factor


class Clip(Patch):
    """Clips the norm of the gradients before each step."""

    def __init__(self, norm: float = 1.0) -> None:
        super().__init__()
        self.norm = norm

    def step_begins(self, watch: Any, optimizer: Optimizer) -> None:  # noqa: D102
        clip_grad_norm_([p for group in optimizer.param_groups for p in group["params"]], self.norm)


class Rate(Patch):
    """Multiplies the learning rate."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor
        self._before: list[Any] = []

    def step_begins(self, watch: Any, optimizer: Optimizer) -> None:  # noqa: D102
        self._before = [group["lr"] for group in optimizer.param_groups]
        for group in optimizer.param_groups:
            group["lr"] = group["lr"] * self.factor

    def step_ends(self, watch: Any, optimizer: Optimizer) -> None:  # noqa: D102
        for group, rate in zip(optimizer.param_groups, self._before, strict=False):
            group["lr"] = rate


class FixedRate(Rate):
    """Keeps the learning rate that the optimizer had first, whatever schedulers do."""

    def __init__(self) -> None:
        super().__init__(1.0)

    def start(self, watch: Any) -> None:  # noqa: D102
        self._first = {
            id(o.optimizer): [g.get("initial_lr", g["lr"]) for g in o.optimizer.param_groups]
            for o in watch.optimizers.values()
        }

    def step_begins(self, watch: Any, optimizer: Optimizer) -> None:  # noqa: D102
        super().step_begins(watch, optimizer)
        for group, rate in zip(optimizer.param_groups, self._first.get(id(optimizer), ()), strict=False):
            group["lr"] = rate


class PerEpoch(Patch):
    """Lets schedulers step when a loader has come to its end, or after `every` steps."""

    def __init__(self, every: int) -> None:
        super().__init__()
        self.every, self._calls = every, 0

    def skips_schedule(self, watch: Any, scheduler: Any) -> bool:  # noqa: D102
        self._calls += 1
        return self._calls % self.every != 0


class Normalise(Patch):
    """Subtracts the mean from the inputs of a model, and divides by the standard deviation, both of the first batch."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[int, tuple[Any, Any]] = {}

    def forward(self, watch: Any, module: Module, args: Any, kwargs: Any) -> tuple[Any, Any]:  # noqa: D102
        if not args or not isinstance(args[0], Tensor) or not args[0].dtype.is_floating_point:
            return args, kwargs
        x = args[0]
        with no_grad():
            known = self._known.get(id(module))
            if known is None:
                if float(x.abs().max()) <= 10:
                    return args, kwargs
                along = [0] if x.ndim == 2 and x.shape[0] >= 8 else [0, 1] if x.ndim == 3 else list(range(x.ndim))
                deviation = x.std(along, keepdim=True)
                known = x.mean(along, keepdim=True), deviation.clamp(min=1e-6)
                self._known[id(module)] = known
            x = (x - known[0]) / known[1]
        return (x, *args[1:]), kwargs


class Shuffle(Patch):
    """Shuffles the data of loaders that read them in order."""

    def loader(self, watch: Any, loader: Any) -> Any:  # noqa: D102
        if not isinstance(loader.sampler, SequentialSampler) or loader.batch_size is None:
            return loader
        return shuffled(loader)


def shuffled(loader: Any, generator: Any = None) -> Any:
    """Return a loader of the same data that shuffles them."""
    other = object.__new__(DataLoader)
    other.__dict__.update(loader.__dict__)
    sampler = RandomSampler(loader.dataset, generator=generator)
    other.__dict__.update(sampler=sampler, batch_sampler=BatchSampler(sampler, loader.batch_size, loader.drop_last))
    return other


class SameOrder(Patch):
    """Gives all loaders of data of the same length the same random order."""

    def __init__(self) -> None:
        super().__init__()
        self._epochs: dict[int, int] = {}

    def loader(self, watch: Any, loader: Any) -> Any:  # noqa: D102
        if not isinstance(loader.sampler, (RandomSampler, SequentialSampler)) or loader.batch_size is None:
            return loader
        epoch = self._epochs[id(loader)] = self._epochs.get(id(loader), 0) + 1
        generator = Generator()
        generator.manual_seed(epoch)
        return shuffled(loader, generator)


class Leaky(Patch):
    """Lets ReLUs pass a tenth of negative values."""

    def op(self, watch: Any, op: Any, caller: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: D102
        if getattr(op, "name", "") == "relu" and local.state.grad:
            return F.leaky_relu(args[0], 0.1)
        return caller(*args, **kwargs)


class Reset(Patch):
    """Gives layers the initial values that their classes choose, and matrices of a program without modules random ones.

    Args:
        paths: the layers; all if None.
    """

    def __init__(self, paths: list[str] | None = None) -> None:
        super().__init__()
        self.paths = paths
        self._done = False

    def start(self, watch: Any) -> None:  # noqa: D102
        state = get_rng_state()
        with no_grad():
            for info in watch.models.values():
                for path, module in info.module.named_modules():
                    if hasattr(module, "reset_parameters") and (self.paths is None or path in self.paths):
                        module.reset_parameters()
        set_rng_state(state)

    def backward_ends(self, watch: Any, loss: Any) -> None:  # noqa: D102
        if watch.models or self._done:
            return
        self._done = True
        state = get_rng_state()
        with no_grad():
            for p in leaves(loss):
                self.change(p)
        set_rng_state(state)

    def change(self, p: Tensor) -> None:
        """Give a tensor that the program updates itself another value."""
        if p.ndim > 1:
            p.normal_(0, 1 / math.sqrt(p.shape[0]))
        else:
            p.zero_()


class Orthogonal(Patch):
    """Gives recurrent layers orthogonal weights for their states."""

    def start(self, watch: Any) -> None:  # noqa: D102
        state = get_rng_state()
        for info in watch.models.values():
            for name, p in info.parameters.items():
                if "weight_hh" in name:
                    orthogonal_(p)
        set_rng_state(state)


class Rectify(Reset):
    """Replaces sigmoid and tanh by ReLU, with weights of Kaiming's initialization."""

    def start(self, watch: Any) -> None:  # noqa: D102
        state = get_rng_state()
        with no_grad():
            for info in watch.models.values():
                for p in info.parameters.values():
                    if p.ndim > 1:
                        kaiming_normal_(p, nonlinearity="relu")
                    else:
                        p.zero_()
        set_rng_state(state)

    def op(self, watch: Any, op: Any, caller: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: D102
        if getattr(op, "name", "") in ("sigmoid", "tanh") and watch.stack and local.state.grad:
            return F.relu(args[0])
        return caller(*args, **kwargs)


class Restore(Patch):
    """Writes tensors back into those that were made of them by changing the order.

    Args:
        indices: by the id of a tensor that was made: the right order, None for that of the source.
    """

    def __init__(self, indices: dict[int, Any]) -> None:
        super().__init__()
        self.indices = indices

    def start(self, watch: Any) -> None:  # noqa: D102
        for out, source in watch.kept_orders:
            if id(out) in self.indices:
                index = self.indices[id(out)]
                out._array[...] = source._array if index is None else source._array[index]


class SameIndex(Patch):
    """Uses the random order of a step's first selection for all selections of that step."""

    def __init__(self) -> None:
        super().__init__()
        self._last: Any = None
        self._step = -1

    def op(self, watch: Any, op: Any, caller: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: D102
        name = getattr(op, "name", "")
        if name not in ("_index", "_slice") or watch.stack or len(args[1]) != 1:
            return caller(*args, **kwargs)
        index, fresh = args[1][0], self._step == watch.backwards and self._last is not None
        if isinstance(index, np.ndarray) and index.dtype.kind == "i" and index.ndim == 1:
            if fresh and self._last.shape == index.shape:
                args = (args[0], (self._last,), *args[2:])
            else:
                self._last, self._step = index, watch.backwards
        elif fresh and isinstance(index, slice) and len(args[0]) > int(self._last.max(initial=0)):
            out = caller(*args, **kwargs)
            return args[0][self._last.tolist()] if len(out) == len(self._last) else out
        return caller(*args, **kwargs)


class FirstOrder(Patch):
    """Undoes the reordering of labels within a step."""

    def op(self, watch: Any, op: Any, caller: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: D102
        if getattr(op, "name", "") == "_index" and not watch.stack and args[0].ndim == 1 and len(args[1]) == 1:
            index = args[1][0]
            if isinstance(index, np.ndarray) and index.dtype.kind == "i" and len(index) == len(args[0]):
                args = (args[0], (np.arange(len(index)),), *args[2:])
        return caller(*args, **kwargs)


class Smaller(Reset):
    """Multiplies all initial weights by a factor."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def start(self, watch: Any) -> None:  # noqa: D102
        with no_grad():
            for info in watch.models.values():
                for p in info.parameters.values():
                    self.change(p)

    def change(self, p: Tensor) -> None:  # noqa: D102
        p.mul_(self.factor)


class Stable(Patch):
    """Keeps the argument of an op at a line within the range in which its result and gradient are finite."""

    def __init__(self, name: str, place: Place) -> None:
        super().__init__()
        self.name, self.place = name, place

    def op(self, watch: Any, op: Any, caller: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: D102
        name = getattr(op, "name", "")
        if name == self.name and here()[:2] == self.place[:2]:
            args = self.changed(name, args)
        return caller(*args, **kwargs)

    @staticmethod
    def changed(name: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return arguments within the range."""
        x, *rest = args
        if name in ("exp", "expm1", "sinh", "cosh", "exp2"):
            return (x.clamp(-80, 80), *rest)
        if name in ("log", "log2", "log10", "sqrt", "rsqrt"):
            return (x.clamp(min=1e-8), *rest)
        if name == "log1p":
            return (x.clamp(min=-1 + 1e-6), *rest)
        if name in ("asin", "acos", "atanh", "erfinv"):
            return (x.clamp(-1 + 1e-6, 1 - 1e-6), *rest)
        if name == "reciprocal":
            return (_away(x), *rest)
        if name == "div" and isinstance(rest[0], Tensor):
            return (x, _away(rest[0]), *rest[1:])
        if name == "pow" and not isinstance(x, Tensor):
            return (x, rest[0].clamp(-80, 80))
        if name == "pow":
            return (x.clamp(min=1e-8) if isinstance(rest[0], Tensor) or rest[0] != int(rest[0]) else _away(x), *rest)
        if name in ("_norm", "norm"):
            return (_away(x, 1e-12), *rest)
        return args


def _away(x: Tensor, least: float = 1e-8) -> Tensor:
    """Return `x` with small elements replaced by `least`."""
    return x.where(x.abs() > least, x.new_full((), least))


class AddParameters(Patch):
    """Gives the optimizer that steps next parameters that it lacks: all that got a gradient and belong to none."""

    def __init__(self) -> None:
        super().__init__()
        self._leaves: list[Tensor] = []

    def backward_begins(self, watch: Any, loss: Any) -> Any:  # noqa: D102
        self._leaves = leaves(loss)
        return loss

    def step_begins(self, watch: Any, optimizer: Optimizer) -> None:  # noqa: D102
        known = set(itertools.chain(*[info.ids for info in watch.optimizers.values()]))
        known.update(id(p) for group in optimizer.param_groups for p in group["params"])
        missing = [p for p in self._leaves if id(p) not in known]
        if missing:
            optimizer.add_param_group({"params": missing})

    def step_ends(self, watch: Any, optimizer: Optimizer) -> None:  # noqa: D102
        _clear(optimizer)  # (the program may clear the gradients of a model of which the parameters are no part)


class TrainTensors(AddParameters):
    """Trains tensors that are attributes of modules, but no parameters, and zero."""

    def start(self, watch: Any) -> None:  # noqa: D102
        for info in watch.models.values():
            for module in info.module.modules():
                for value in vars(module).values():
                    if isinstance(value, Tensor) and value.dtype.is_floating_point and not value._array.any():
                        value.requires_grad_(True)


class FlipSign(Patch):
    """Minimises what the program maximises."""

    def backward_begins(self, watch: Any, loss: Any) -> Any:  # noqa: D102
        return loss if self._maximizes(watch) else -loss

    def step_begins(self, watch: Any, optimizer: Optimizer) -> None:  # noqa: D102
        for group in optimizer.param_groups:
            if group.get("maximize"):
                group["maximize"] = False

    @staticmethod
    def _maximizes(watch: Any) -> bool:
        groups = [group for info in watch.optimizers.values() for group in info.optimizer.param_groups]
        found = getattr(watch, "patch_maximizes", None)
        if found is None:
            found = watch.patch_maximizes = any(group.get("maximize") for group in groups)
        return bool(found)


class AddTerm(Patch):
    """Adds the second term of a loss that a line subtracts."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.place = place

    def op(self, watch: Any, op: Any, caller: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: D102
        if getattr(op, "name", "") == "sub" and isinstance(args[1], Tensor) and here()[:2] == self.place[:2]:
            args = (args[0], -args[1], *args[2:])
        return caller(*args, **kwargs)


class UnitTargets(Patch):
    """Gives binary cross entropies targets from 0 to 1: the signs of negative ones, or a part of the largest."""

    def __init__(self, low: float, high: float) -> None:
        super().__init__()
        self.low, self.high = low, high

    def op(self, watch: Any, op: Any, caller: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: D102
        if LossCall.KINDS.get(getattr(op, "name", "")) in ("logit", "prob"):
            y = args[1]
            y = (y > 0).to(y.dtype) if self.low < 0 else y / self.high
            args = (args[0], y, *args[2:])
        return caller(*args, **kwargs)


class KeepGraph(Patch):
    """Undoes what cuts the graph in a model's forward pass: `detach()`, `.data`, `no_grad`, `tolist()`."""

    def __init__(self, functions: frozenset[str] = frozenset()) -> None:
        super().__init__()
        self.functions = functions  # where `no_grad` is undone for what has a graph
        self._taken: list[Tensor] = []  # what was made a list or an array in this step

    def cut(self, watch: Any, x: Tensor, how: str) -> bool:  # noqa: D102
        if how in ("numpy()", "tolist()") and local.state.grad and x.numel() > 1:
            self._taken.append(x)
        return how in ("detach()", ".data") and bool(watch.stack or local.state.grad)

    def backward_ends(self, watch: Any, loss: Any) -> None:  # noqa: D102
        self._taken.clear()

    def _whole(self, each: Any) -> Any:
        """Return the tensor with its graph whose values an argument has."""
        if isinstance(each, Tensor) and not each.requires_grad:
            for x in self._taken:
                if x.shape == each.shape and np.array_equal(x._array, each._array):
                    return x
        return each

    def op(self, watch: Any, op: Any, caller: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: D102
        if self._taken:
            args = tuple([self._whole(each) for each in args])
        inside = watch.stack and watch.stack[0].training and watch.root_recorded
        if local.state.grad:
            return caller(*args, **kwargs)
        if not inside and not (
            self.functions
            and any(each.requires_grad and not each.is_leaf for each in tensors_of(args))
            and here().function in self.functions
        ):
            return caller(*args, **kwargs)
        before = set_grad(True)
        try:
            return caller(*args, **kwargs)
        finally:
            set_grad(before)


class Unfreeze(Patch):
    """Trains the parameters of models that do not require a gradient."""

    def start(self, watch: Any) -> None:  # noqa: D102
        known = set(itertools.chain(*[info.ids for info in watch.optimizers.values()]))
        for info in watch.models.values():
            frozen = [p for p in info.module.parameters() if not p.requires_grad]
            for p in frozen:
                p.requires_grad_(True)
            new = [p for p in frozen if id(p) not in known]
            if new and watch.optimizers:
                next(iter(watch.optimizers.values())).optimizer.add_param_group({"params": new})


class HonourTraining(Patch):
    """Lets dropout act in training mode alone."""

    def skips_dropout(self, watch: Any, training: bool) -> bool:  # noqa: D102
        return not local.state.grad or not all(each.training for each in watch.stack[:1])


class Watching(Patch):
    """Finds the first op, forward or backward, whose result is not finite although its inputs are."""

    in_backward = True
    _aside: dict[str, Any] | None = None  # the first op of this step that was not finite, on tensors without a graph

    def note(self, watch: Any, value: float, place: Place) -> None:  # noqa: D102
        super().note(watch, value, place)
        if not math.isfinite(value) and "op" not in self.result and self._aside is not None:
            self.result["op"] = self._aside
        self._aside = None
        trace = watch.tracer.trace
        self._lines = {
            id(each.grad_fn): call for call in trace.calls for each in tensors_of(call.out) if each.grad_fn is not None
        }

    def op(self, watch: Any, op: Any, caller: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: D102
        out = caller(*args, **kwargs)
        if not watch._in_backward and "op" not in self.result:
            self._look(watch, getattr(op, "name", ""), args, out)
        return out

    def _look(self, watch: Any, name: str, args: Any, out: Any) -> None:
        for each in tensors_of(out):
            if _finite(each) or not each.dtype.is_floating_point:
                continue
            inputs = list(tensors_of(args))
            # (The exponential of minus infinity is zero: it is a mask.)
            if name.strip("_") in ("fill", "where", "masked_fill") or not all(
                _finite(x, name == "exp") for x in inputs
            ):
                return
            if name == "exp" and not _infinite(each):
                return
            found = self._described(watch, name, inputs, args, here(), watch.path(), False)
            if not each.requires_grad:  # it may be meant, or never be used
                self._aside = self._aside or found
                return
            self.result["op"] = found

    def _described(
        self, watch: Any, name: str, inputs: list[Tensor], args: Any, place: Place, module: str, backward: bool
    ) -> dict[str, Any]:
        ranges = [(float(x.min()), float(x.max())) if x.numel() else (math.nan, math.nan) for x in inputs]
        least = [float(np.abs(x._array).min()) if x.numel() else math.nan for x in inputs]
        made = [watch.tracer.trace.before(x) for x in inputs]
        return {
            "name": name, "place": place, "module": module, "backward": backward, "ranges": ranges, "least": least,
            "made": [(each.name, each.place) if each is not None else None for each in made],
            "numbers": [each for each in args if isinstance(each, (int, float))],
            "step": watch.backwards, "shapes": [tuple(x.shape) for x in inputs],
            "leaf": [x.is_leaf and x.requires_grad for x in inputs],
        }  # fmt: skip

    def node(self, watch: Any, node: Any, gradients: Any) -> None:
        """Look at the gradients that a node of the backward pass has computed."""
        if "op" in self.result:
            return
        for each in tensors_of(gradients):
            if not _finite(each):
                call = self._lines.get(id(node))
                if call is not None:
                    inputs = call.inputs
                    if all(_finite(x) for x in inputs):
                        self.result["op"] = self._described(
                            watch, call.name, inputs, call.args, call.place, call.module, True
                        )
                return

    def step_ends(self, watch: Any, optimizer: Optimizer) -> None:  # noqa: D102
        if "op" in self.result or "step" in self.result:
            return
        for group in optimizer.param_groups:
            for p in group["params"]:
                if not _finite(p):
                    self.result["step"] = watch.backwards
                    return


def _finite(x: Tensor, masked: bool = False) -> bool:
    """Return whether all elements are finite, or minus infinity if `masked`."""
    array = x._array
    if array.dtype.kind not in "fc" or np.isfinite(array).all():
        return True
    return masked and bool((np.isfinite(array) | (array == -math.inf)).all())


def _infinite(x: Tensor) -> bool:
    return bool((x._array == math.inf).any())


class AtLine(Patch):
    """Changes the calls of an op at a line.

    Args:
        name: the name of the op.
        place: the line.
    """

    def __init__(self, name: str, place: Place) -> None:
        super().__init__()
        self.name, self.place = name, place

    def op(self, watch: Any, op: Any, caller: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of an op."""
        if getattr(op, "name", "") == self.name and here()[:2] == self.place[:2]:
            return self.instead(caller, args, kwargs)
        return caller(*args, **kwargs)

    def instead(self, caller: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of a call at the line."""
        return caller(*args, **kwargs)


class Transposed(AtLine):
    """Permutes the dimensions where a line reshapes."""

    def instead(self, caller: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: D102
        out = caller(*args, **kwargs)
        order = transposition(tuple(args[0].shape), tuple(out.shape))
        if order is None:
            return out
        back = [order.index(k) for k in range(len(order))]
        return args[0].reshape([out.shape[k] for k in order]).permute(back)


class PassThrough(AtLine):
    """Lets the gradient pass an op whose derivative is zero, as if it returned its input."""

    def instead(self, caller: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: D102
        x = args[0]
        return x + (caller(*args, **kwargs) - x).detach()


class Separate(AtLine):
    """Takes the second term of a sum as a constant: `z + (q - z).detach()`."""

    def instead(self, caller: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: D102
        return caller(args[0], args[1].detach(), *args[2:], **kwargs)


class ScaleScores(Patch):
    """Multiplies the scores that a loss of classes gets."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def op(self, watch: Any, op: Any, caller: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: D102
        if LossCall.KINDS.get(getattr(op, "name", "")) in ("class", "logit"):
            args = (args[0] * self.factor, *args[1:])
        return caller(*args, **kwargs)


class EveryClass(Patch):
    """Lets a loss of classes ignore none of them."""

    def op(self, watch: Any, op: Any, caller: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: D102
        if getattr(op, "name", "") == "_cross_entropy":
            args = (*args[:2], None, -100, *args[4:])
        return caller(*args, **kwargs)


class Defaults(Patch):
    """Gives optimizers the usual value of an option: of weight decay, of momenta."""

    def __init__(self, option: str, value: Any) -> None:
        super().__init__()
        self.option, self.value = option, value

    def step_begins(self, watch: Any, optimizer: Optimizer) -> None:  # noqa: D102
        for group in optimizer.param_groups:
            if self.option in group:
                group[self.option] = self.value


class Unchanged(Patch):
    """Gives optimizers the gradients that the backward passes computed, whatever the program does to them after."""

    def __init__(self) -> None:
        super().__init__()
        self._computed: list[tuple[Tensor, Any]] = []

    def backward_ends(self, watch: Any, loss: Any) -> None:  # noqa: D102
        every = {id(p): p for info in watch.optimizers.values() for p in info.params}
        self._computed = [(p, p._grad._array.copy()) for p in every.values() if p._grad is not None]

    def step_begins(self, watch: Any, optimizer: Optimizer) -> None:  # noqa: D102
        for p, gradient in self._computed:
            if p._grad is not None and p._grad.shape == gradient.shape:
                p._grad._array[...] = gradient
        self._computed = []


class ShareOfStep(Patch):
    """Divides the gradients of a step by the number of backward passes that made them."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    def step_begins(self, watch: Any, optimizer: Optimizer) -> None:  # noqa: D102
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p._grad is not None:
                    p._grad._array[...] /= self.count


class NoDropout(Patch):
    """Leaves dropout out."""

    def skips_dropout(self, watch: Any, training: bool) -> bool:  # noqa: D102
        return True


class NormaliseLayers(Patch):
    """Gives each layer inputs of mean 0 and standard deviation 1."""

    def op(self, watch: Any, op: Any, caller: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: D102
        name = getattr(op, "name", "")
        if watch.stack and (name == "linear" or "conv" in name) and args[0].numel() > 1 and local.state.grad:
            x = args[0]
            args = ((x - x.mean()) / (x.std() + 1e-6), *args[1:])
        return caller(*args, **kwargs)


class OneBatch(Patch):
    """Gives the model the first batch in each step: what is left shows whether it can learn that by heart."""

    def __init__(self) -> None:
        super().__init__()
        self._inputs: dict[int, Any] = {}
        self._targets: dict[str, Any] = {}

    def forward(self, watch: Any, module: Module, args: Any, kwargs: Any) -> tuple[Any, Any]:  # noqa: D102
        if not local.state.grad:
            return args, kwargs
        known = self._inputs.setdefault(id(module), (args, kwargs))
        shapes = [[getattr(x, "shape", None) for x in each[0]] for each in (known, (args, kwargs))]
        return known if shapes[0] == shapes[1] else (args, kwargs)

    def op(self, watch: Any, op: Any, caller: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: D102
        name = getattr(op, "name", "")
        pair = list(tensors_of(args[:2])) if LossCall.KINDS.get(name) and not watch.stack else []
        if len(pair) == 2 and pair[0].requires_grad and not pair[1].requires_grad:
            y = self._targets.setdefault(f"{name} {here()}", args[1])
            if y.shape == args[1].shape:
                args = (args[0], y, *args[2:])
        return caller(*args, **kwargs)


class Unshared(AddParameters):
    """Gives each entry of a list of modules that has one several times a module of its own."""

    def start(self, watch: Any) -> None:  # noqa: D102
        state = get_rng_state()
        for info in watch.models.values():
            for module in info.module.modules():
                seen: set[int] = set()
                for name, each in list(module._modules.items()):
                    if id(each) in seen and each is not None:
                        own = module._modules[name] = copy.deepcopy(each)
                        for part in own.modules():
                            if hasattr(part, "reset_parameters"):
                                part.reset_parameters()
                    seen.add(id(each))
        set_rng_state(state)
