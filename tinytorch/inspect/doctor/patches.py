"""What a counterfactual changes in the steps that it takes again: `CHANGES` has a row for each change.

A patch is pickled, sent to a copy of the process, and there told of what the program does (see `Watch`). Layers,
optimizers and lines have the same names in the copy. Every patch notes the losses of its steps in `result`.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tinytorch.autograd.grad_mode import no_grad
from tinytorch.autograd.profiler import tensors_in
from tinytorch.core.facts import subject
from tinytorch.core.mode import local, set_grad
from tinytorch.core.tensor import Tensor
from tinytorch.data.dataloader import DataLoader
from tinytorch.data.sampler import BatchSampler, RandomSampler, SequentialSampler
from tinytorch.inspect.doctor.place import Place, here
from tinytorch.inspect.doctor.shapes import transposition
from tinytorch.inspect.doctor.trace import data_of, loss_of
from tinytorch.kernels import dtypes
from tinytorch.nn import functional as F
from tinytorch.nn.init import kaiming_normal_, orthogonal_
from tinytorch.nn.modules.dropout import _DropoutNd
from tinytorch.nn.utils.clip_grad import clip_grad_norm_
from tinytorch.ops.create import tensor
from tinytorch.ops.random import get_rng_state, set_rng_state

__all__ = ["CHANGES", "Patch", "leaves"]


class Patch:
    """A change of the steps that are taken again, by the name of its row in `CHANGES`; "" changes nothing.

    Attributes:
        result: what was seen: "values", the loss of each backward pass; "places", the line of each; "scores", how good
            the predictions were; and what the change adds.
        own: what the change remembers.
    """

    def __init__(self, name: str = "", *options: Any) -> None:
        self.name, self.options = name, options
        self.result: dict[str, Any] = {"values": [], "places": [], "scores": []}
        self.own: dict[Any, Any] = {}

    @property
    def traces(self) -> bool:
        """Whether it needs to see every op; else some steps are traced for their scores."""
        return "op" in CHANGES[self.name]

    def tell(self, where: str, *args: Any) -> None:
        """Let the change act where the program is."""
        change = CHANGES[self.name].get(where)
        if change is not None:
            change(self, *args)

    def changed(self, where: str, watch: Any, value: Any, *args: Any) -> Any:
        """Return what the change makes of a value."""
        change = CHANGES[self.name].get(where)
        return value if change is None else change(self, watch, value, *args)

    def op(self, watch: Any, name: str, caller: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of an op."""
        change = CHANGES[self.name].get("op")
        return caller(*args, **kwargs) if change is None else change(self, watch, name, caller, args, kwargs)

    def note(self, watch: Any, value: float, place: Place) -> None:
        """Note a backward pass."""
        scores = (each.score() for each in reversed(watch.tracer.trace.losses))
        self.result["values"].append(value)
        self.result["places"].append(place)
        self.result["scores"].append(next((score for score in scores if score is not None), None))
        self.tell("noted", watch, value)


def leaves(loss: Any) -> list[Tensor]:
    """Return the tensors into whose `grad` a backward pass from `loss` accumulates."""
    found: dict[int, Tensor] = {}
    seen: dict[int, Any] = {}  # (kept, so that no other node gets the same id)
    nodes: list[Any] = [loss.grad_fn] if isinstance(loss, Tensor) and loss.grad_fn is not None else []
    while nodes:
        node = nodes.pop()
        if node is None or id(node) in seen:
            continue
        seen[id(node)] = node
        variable = getattr(node, "variable", None)
        if isinstance(variable, Tensor):
            found[id(variable)] = variable
        nodes += [edge[0] for edge in node.next_functions]
    return list(found.values())


def _params(optimizer: Any) -> list[Tensor]:
    return [p for group in optimizer.param_groups for p in group["params"]]


def _clear(patch: Patch, watch: Any, optimizer: Any) -> None:
    for p in _params(optimizer):
        p.grad = None


def _clear_all(patch: Patch, watch: Any, loss: Any) -> Any:
    for p in leaves(loss) if not watch.optimizers else ():
        p.grad = None
    return loss


# Gradients and rates --------------------------------------------------------------------------------


def _every(watch: Any) -> list[Tensor]:
    return list({id(p): p for info in watch.optimizers.values() for p in info.params}.values())


def _note_cleared(patch: Patch, watch: Any, loss: Any) -> Any:
    for p in _every(watch):
        if p._grad is None or not p._grad._array.any():
            patch.own[id(p), "before"] = patch.own.get(id(p), 0.0)
    return loss


def _keep_gradients(patch: Patch, watch: Any) -> None:
    for p in _every(watch):
        if p._grad is not None:
            patch.own[id(p)] = p._grad._array + patch.own.pop((id(p), "before"), 0.0)


def _give_gradients(patch: Patch, watch: Any, optimizer: Any) -> None:
    for p in _params(optimizer):
        gradient = patch.own.pop(id(p), None)
        if gradient is not None:
            p.grad = p.detach().clone() if p._grad is None else p._grad
            p.grad._array[...] = gradient


def _step(patch: Patch, watch: Any) -> None:
    optimizer = list(watch.optimizers.values())[patch.options[0]].optimizer
    optimizer.step()
    _clear(patch, watch, optimizer)


def _note_leaves(patch: Patch, watch: Any, loss: Any) -> Any:
    patch.own["leaves"] = leaves(loss)
    return loss


def _scale_leaves(patch: Patch, watch: Any) -> None:
    for p in patch.own["leaves"]:
        if p._grad is not None:
            p._grad._array[...] *= patch.options[0]


def _scale_step(patch: Patch, watch: Any, optimizer: Any) -> None:
    for p in _params(optimizer):
        if p._grad is not None:
            p._grad._array[...] *= patch.options[0]


def _clip(patch: Patch, watch: Any, optimizer: Any) -> None:
    clip_grad_norm_(_params(optimizer), patch.options[0])


def _set_rate(patch: Patch, watch: Any, optimizer: Any) -> None:
    patch.own["rates"] = [group["lr"] for group in optimizer.param_groups]
    for group in optimizer.param_groups:
        group["lr"] = group["lr"] * patch.options[0] if patch.options else group.get("initial_lr", group["lr"])


def _reset_rate(patch: Patch, watch: Any, optimizer: Any) -> None:
    for group, rate in zip(optimizer.param_groups, patch.own["rates"], strict=False):
        group["lr"] = rate


def _set_option(patch: Patch, watch: Any, optimizer: Any) -> None:
    option, value = patch.options
    for group in optimizer.param_groups:
        if option in group:
            group[option] = value


def _flip_loss(patch: Patch, watch: Any, loss: Any) -> Any:
    groups = [group for info in watch.optimizers.values() for group in info.optimizer.param_groups]
    maximizes = patch.own.setdefault("maximizes", any(group.get("maximize") for group in groups))
    return loss if maximizes else -loss


# Parameters -----------------------------------------------------------------------------------------


def _missing(patch: Patch, watch: Any, optimizer: Any) -> None:
    known = {id(p) for p in [*_every(watch), *_params(optimizer)]}
    missing = [p for p in patch.own["leaves"] if id(p) not in known]
    if missing:
        optimizer.add_param_group({"params": missing})


def _modules(watch: Any) -> list[Any]:
    return [module for info in watch.models.values() for module in info.module.modules()]


def _train_tensors(patch: Patch, watch: Any) -> None:
    for module in _modules(watch):
        for value in vars(module).values():
            if isinstance(value, Tensor) and value.dtype.is_floating_point and not value._array.any():
                value.requires_grad_(True)


def _unfreeze(patch: Patch, watch: Any) -> None:
    known = {id(p) for p in _every(watch)}
    for info in watch.models.values():
        frozen = [p for p in info.module.parameters() if not p.requires_grad]
        for p in frozen:
            p.requires_grad_(True)
        new = [p for p in frozen if id(p) not in known]
        if new and watch.optimizers:
            next(iter(watch.optimizers.values())).optimizer.add_param_group({"params": new})


def _draws(change: Callable[[Patch, Any], None]) -> Callable[[Patch, Any], None]:
    """Return a change that takes random numbers, and leaves the generator as it was."""

    def draw(patch: Patch, watch: Any, *args: Any) -> None:
        state = get_rng_state()
        with no_grad():
            change(patch, watch)
        set_rng_state(state)

    return draw


@_draws
def _reset(patch: Patch, watch: Any) -> None:
    for info in watch.models.values():
        for path, module in info.module.named_modules():
            if hasattr(module, "reset_parameters") and (not patch.options or path in patch.options[0]):
                module.reset_parameters()


@_draws
def _reset_leaves(patch: Patch, watch: Any) -> None:
    if not watch.models and not patch.own.get("done"):
        patch.own["done"] = True
        for p in patch.own["leaves"]:
            if p.ndim > 1:
                p.normal_(0, 1 / math.sqrt(p.shape[0]))
            else:
                p.zero_()


@_draws
def _smaller(patch: Patch, watch: Any) -> None:
    for info in watch.models.values():
        for p in info.parameters.values():
            p.mul_(patch.options[0])


@_draws
def _orthogonal(patch: Patch, watch: Any) -> None:
    for info in watch.models.values():
        for name, p in info.parameters.items():
            if "weight_hh" in name:
                orthogonal_(p)


@_draws
def _kaiming(patch: Patch, watch: Any) -> None:
    for info in watch.models.values():
        for p in info.parameters.values():
            if p.ndim > 1:
                kaiming_normal_(p, nonlinearity="relu")
            else:
                p.zero_()


@_draws
def _unshare(patch: Patch, watch: Any) -> None:
    for module in _modules(watch):
        seen: set[int] = set()
        for name, each in list(module._modules.items()):
            if id(each) in seen and each is not None:
                own = module._modules[name] = copy.deepcopy(each)
                for part in own.modules():
                    if hasattr(part, "reset_parameters"):
                        part.reset_parameters()
            seen.add(id(each))


def _no_dropout(patch: Patch, watch: Any) -> None:
    for module in _modules(watch):
        if isinstance(module, _DropoutNd):
            module.p = 0.0


def _double(patch: Patch, watch: Any) -> None:
    for info in watch.models.values():
        info.module.double()


def _mode(patch: Patch, watch: Any, args: Any, module: Any) -> Any:
    if local.state.grad:
        module.train(patch.options[0])
    return args


# Data -----------------------------------------------------------------------------------------------


def _double_inputs(patch: Patch, watch: Any, args: Any, module: Any) -> Any:
    return tuple([x.double() if isinstance(x, Tensor) and x.dtype.is_floating_point else x for x in args])


def _normalise(patch: Patch, watch: Any, args: Any, module: Any) -> Any:
    if args and isinstance(args[0], Tensor) and args[0].dtype == dtypes.uint8 and args[0].ndim > 1:
        args = (args[0].float(), *args[1:])  # an image
    if not args or not isinstance(args[0], Tensor) or not args[0].dtype.is_floating_point:
        return args
    key = module if isinstance(module, Place) else id(module)
    x, known = args[0], patch.own.get(key)
    with no_grad():
        if known is None:
            if not patch.options and float(x.abs().max()) <= 10:
                return args
            along = [0] if x.ndim == 2 and x.shape[0] >= 8 else [0, 1] if x.ndim == 3 else list(range(x.ndim))
            known = x.mean(along, keepdim=True), x.std(along, keepdim=True).clamp(min=1e-6)
            patch.own[key] = known
        return ((x - known[0]) / known[1], *args[1:])


def _normalise_data(patch: Patch, watch: Any, name: str, caller: Any, args: Any, kwargs: Any) -> Any:
    x = None if watch.models else data_of(subject(caller), args)
    if x is not None:
        given = _normalise(patch, watch, (x,), here())[0]
        args = tuple([given if each is x else each for each in args])
    return caller(*args, **kwargs)


def _first_inputs(patch: Patch, watch: Any, args: Any, module: Any) -> Any:
    if not local.state.grad or any(x.requires_grad for x in tensors_in(args)):  # (a state of a recurrent layer, say)
        return args
    step, count = patch.own.get("call", (0, 0))
    count = count + 1 if step == watch.backwards else 0
    patch.own["call"] = watch.backwards, count
    known = patch.own.setdefault((id(module), count), args)
    shapes = [[getattr(x, "shape", None) for x in each] for each in (known, args)]
    return known if shapes[0] == shapes[1] else args


def _first_targets(patch: Patch, watch: Any, name: str, caller: Any, args: Any, kwargs: Any) -> Any:
    pair = list(tensors_in(args[:2])) if loss_of(subject(caller)) and not watch.stack else []
    if len(pair) == 2 and pair[0].requires_grad and not pair[0].is_leaf and not pair[1].requires_grad:
        y = patch.own.setdefault(f"{name} {here()}", args[1])
        if y.shape == args[1].shape:
            args = (args[0], y, *args[2:])
    return caller(*args, **kwargs)


def _shuffle(patch: Patch, watch: Any, loader: Any) -> Any:
    if not isinstance(loader.sampler, SequentialSampler) or loader.batch_size is None:
        return loader
    other = object.__new__(DataLoader)
    other.__dict__.update(loader.__dict__)
    sampler = RandomSampler(loader.dataset)
    other.__dict__.update(sampler=sampler, batch_sampler=BatchSampler(sampler, loader.batch_size, loader.drop_last))
    return other


# Ops ------------------------------------------------------------------------------------------------


def _at_line(change: Callable[..., Any]) -> Callable[..., Any]:
    """Return the change of the calls of the op `patch.options[0]` at the line `patch.options[1]`."""

    def op(patch: Patch, watch: Any, name: str, caller: Any, args: Any, kwargs: Any) -> Any:
        if name == patch.options[0]:
            line = here()
            made = watch.line_of(line, watch.stack[-1] if watch.stack else None)
            if patch.options[1][:2] in (line[:2], made[:2]):
                return change(patch, caller, args, kwargs)
        return caller(*args, **kwargs)

    return op


def _transposed(patch: Patch, caller: Any, args: Any, kwargs: Any) -> Any:
    out = caller(*args, **kwargs)
    order = transposition(tuple(args[0].shape), tuple(out.shape))
    if order is None:
        return out
    return args[0].reshape([out.shape[k] for k in order]).permute([order.index(k) for k in range(len(order))])


def _passed(patch: Patch, caller: Any, args: Any, kwargs: Any) -> Any:
    return args[0] + (caller(*args, **kwargs) - args[0]).detach()


def _aligned(patch: Patch, caller: Any, args: Any, kwargs: Any) -> Any:
    x, y, *rest = args
    if x.numel() == y.numel():
        x, y = (x.reshape(y.shape), y) if y.requires_grad else (x, y.reshape(x.shape))
    return caller(x, y, *rest, **kwargs)


def _reordered(patch: Patch, caller: Any, args: Any, kwargs: Any) -> Any:
    x, y, *rest = args
    order = patch.options[2]
    return caller(x, y[tensor(order)] if len(y) == len(order) else y, *rest, **kwargs)


def _predictions_scaled(patch: Patch, caller: Any, args: Any, kwargs: Any) -> Any:
    mean, deviation = patch.options[2:4]
    scaled = [x * deviation + mean if isinstance(x, Tensor) and x.requires_grad else x for x in args]
    return caller(*scaled, **kwargs)


def _in_ops(names: tuple[str, ...], change: Callable[[Patch, Any, Any], Any]) -> Callable[..., Any]:
    """Return the change of the results of ops in a forward pass: `change(patch, out, args)`."""

    def op(patch: Patch, watch: Any, name: str, caller: Any, args: Any, kwargs: Any) -> Any:
        if name in names and watch.stack and local.state.grad:
            return change(patch, caller, args)
        return caller(*args, **kwargs)

    return op


def _normalised(patch: Patch, caller: Any, args: Any) -> Any:
    x = args[0]
    return caller((x - x.mean()) / (x.std() + 1e-6) if x.numel() > 1 else x, *args[1:])


def _scale_scores(patch: Patch, watch: Any, name: str, caller: Any, args: Any, kwargs: Any) -> Any:
    if loss_of(subject(caller)) in ("class", "logit"):
        args = (args[0] * patch.options[0], *args[1:])
    return caller(*args, **kwargs)


def _away(x: Tensor, least: float = 1e-8) -> Tensor:
    """Return `x` with small elements replaced by `least`."""
    return x.where(x.abs() > least, x.new_full((), least))


#: The range in which the result and the gradient of a function are finite.
_RANGES = {
    **dict.fromkeys(("exp", "expm1", "sinh", "cosh", "exp2"), (-80.0, 80.0)),
    **dict.fromkeys(("log", "log2", "log10", "sqrt", "rsqrt"), (1e-8, None)), "log1p": (-1 + 1e-6, None),
    **dict.fromkeys(("asin", "acos", "atanh", "erfinv"), (-1 + 1e-6, 1 - 1e-6)),
}  # fmt: skip


def _stable(patch: Patch, caller: Any, args: Any, kwargs: Any) -> Any:
    """Run an op with its argument kept within the range in which its result and gradient are finite."""
    name, (x, *rest) = patch.options[0], args
    if name in _RANGES:
        x = x.clamp(*_RANGES[name])
    elif name == "reciprocal":
        x = _away(x)
    elif name == "div" and isinstance(rest[0], Tensor):
        rest[0] = _away(rest[0])
    elif name == "pow":
        x = x.clamp(min=1e-8) if isinstance(rest[0], Tensor) or rest[0] != int(rest[0]) else _away(x)
    elif name in ("_norm", "norm"):
        x = _away(x, 1e-12)
    return caller(x, *rest, **kwargs)


# What leaves the graph ------------------------------------------------------------------------------


def _note_cut(patch: Patch, watch: Any, x: Any, alias: Any) -> Any:
    if (watch.stack or local.state.grad) and x.numel() > 1:
        patch.own.setdefault("cuts", []).append((x, alias))
    return None


def _forget_cuts(patch: Patch, watch: Any) -> None:
    patch.own.pop("cuts", None)


def _keep_graph(patch: Patch, watch: Any, name: str, caller: Any, args: Any, kwargs: Any) -> Any:
    cuts = patch.own.get("cuts", ())

    def whole(each: Any) -> Any:
        if isinstance(each, Tensor) and not each.requires_grad:
            for x, alias in cuts:
                if each is alias or (x.shape == each.shape and np.array_equal(x._array, each._array)):
                    return x
        return each

    if cuts:
        args = tuple([type(each)(map(whole, each)) if type(each) in (list, tuple) else whole(each) for each in args])
    inside = watch.stack and watch.stack[0].training and watch.root_recorded
    recorded = any(x.requires_grad and not x.is_leaf for x in tensors_in(args))
    if local.state.grad or not (inside or (recorded and here().function in patch.options[0])):
        return caller(*args, **kwargs)
    before = set_grad(True)
    try:
        return caller(*args, **kwargs)
    finally:
        set_grad(before)


# The first number that is not finite ----------------------------------------------------------------


def _begin_step(patch: Patch, watch: Any, value: float) -> None:
    if not math.isfinite(value) and "op" not in patch.result and patch.own.get("aside") is not None:
        patch.result["op"] = patch.own["aside"]
    patch.own["aside"] = None
    patch.own["lines"] = {
        id(each.grad_fn): call for call in watch.tracer.trace.calls for each in tensors_in(call.out)
        if each.grad_fn is not None
    }  # fmt: skip


def _look(patch: Patch, watch: Any, name: str, caller: Any, args: Any, kwargs: Any) -> Any:
    """Find the first op whose result is not finite although its inputs are."""
    out = caller(*args, **kwargs)
    if watch.in_backward or "op" in patch.result:
        return out
    for each in tensors_in(out):
        if not each.dtype.is_floating_point or _is_finite(each):
            continue
        inputs = list(tensors_in(args))
        masks = name == "exp"  # (the exponential of minus infinity is zero: it is a mask)
        if name.strip("_") in ("fill", "where", "masked_fill") or not all(_is_finite(x, masks) for x in inputs):
            return out
        if masks and not (each._array == math.inf).any():
            return out
        found = _described(watch, name, inputs, args, here(), watch.path(), False)
        if not each.requires_grad:  # it may be meant, or never be used
            patch.own["aside"] = patch.own.get("aside") or found
        else:
            patch.result["op"] = found
        return out
    return out


def _look_back(patch: Patch, watch: Any, node: Any, gradients: Any) -> None:
    """Look at the gradients that a node of the backward pass has computed."""
    call = patch.own.get("lines", {}).get(id(node))
    if "op" in patch.result or call is None or all(map(_is_finite, tensors_in(gradients))):
        return
    if all(map(_is_finite, call.inputs)):
        patch.result["op"] = _described(watch, call.name, call.inputs, call.args, call.place, call.module, True)


def _look_at_parameters(patch: Patch, watch: Any, optimizer: Any) -> None:
    if "op" not in patch.result and not all(map(_is_finite, _params(optimizer))):
        patch.result.setdefault("step", watch.backwards)


def _described(watch: Any, name: str, inputs: Any, args: Any, place: Place, module: str, back: bool) -> dict[str, Any]:
    return {
        "name": name, "place": place, "module": module, "backward": back, "step": watch.backwards,
        "ranges": [(float(x.min()), float(x.max())) if x.numel() else (math.nan, math.nan) for x in inputs],
        "least": [float(np.abs(x._array).min()) if x.numel() else math.nan for x in inputs],
        "numbers": [each for each in args if isinstance(each, (int, float))],
    }  # fmt: skip


def _is_finite(x: Tensor, masked: bool = False) -> bool:
    """Return whether all elements are finite, or minus infinity if `masked`."""
    array = x._array
    if array.dtype.kind not in "fc" or np.isfinite(array).all():
        return True
    return masked and bool((np.isfinite(array) | (array == -math.inf)).all())


_SCALES: dict[str, Callable[..., Any]] = {
    "op": _at_line(_predictions_scaled), "loss": lambda patch, watch, loss: loss / patch.options[4]}  # fmt: skip

#: What is changed, by the name of a change and where it acts: `what(patch, watch, ...)`. "loss", "forward" and "loader"
#: return what takes the place of the loss, the arguments of a model, a loader; "op" returns the result of an op.
CHANGES: dict[str, dict[str, Callable[..., Any]]] = {
    "": {},
    "clear": {"step_ends": _clear, "loss": _clear_all},
    "as-computed": {"loss": _note_cleared, "backward_ends": _keep_gradients, "step_begins": _give_gradients,
                    "step_ends": _clear},
    "step": {"backward_ends": _step},  # options: the number of the optimizer
    "scale": {"loss": _note_leaves, "backward_ends": _scale_leaves},  # a factor
    "scale-step": {"step_begins": _scale_step},  # a factor
    "clip": {"step_begins": _clip},  # a norm
    "rate": {"step_begins": _set_rate, "step_ends": _reset_rate},  # a factor, or nothing for the first rate
    "option": {"step_begins": _set_option},  # its name and value
    "sign": {"loss": _flip_loss, "step_begins": lambda patch, watch, optimizer: [
        group.update(maximize=False) for group in optimizer.param_groups if group.get("maximize")]},
    "add-parameters": {"loss": _note_leaves, "step_begins": _missing, "step_ends": _clear},
    "train-tensors": {"start": _train_tensors, "loss": _note_leaves, "step_begins": _missing, "step_ends": _clear},
    "unfreeze": {"start": _unfreeze},
    "reset": {"start": _reset, "loss": _note_leaves, "backward_ends": _reset_leaves},  # the paths of layers, or nothing
    "smaller": {"start": _smaller},  # a factor
    "orthogonal": {"start": _orthogonal},
    "rectify": {"start": _kaiming, "op": _in_ops(("sigmoid", "tanh"), lambda patch, caller, args: F.relu(args[0]))},
    "leaky": {"op": _in_ops(("relu",), lambda patch, caller, args: F.leaky_relu(args[0], 0.1))},
    "normalise-layers": {"op": _in_ops(("linear", "Convolution"), _normalised)},
    "unshare": {"start": _unshare, "loss": _note_leaves, "step_begins": _missing},
    "no-dropout": {"start": _no_dropout},
    "float64": {"start": _double, "forward": _double_inputs},
    "mode": {"forward": _mode},  # whether it is that of training
    "normalise": {"forward": _normalise, "op": _normalise_data},  # an option: small numbers, too
    "one-batch": {"forward": _first_inputs, "op": _first_targets},
    "shuffle": {"loader": _shuffle},
    # The losses stay those of the program's targets; their gradients are those of targets with mean 0 and deviation 1.
    # Options: the name and the line of an op, the mean, the deviation, and by what the loss is divided.
    "scale-targets": _SCALES,
    "scale-both": {"forward": _normalise, **_SCALES},
    "leave-out": {"op": _at_line(lambda patch, caller, args, kwargs: args[0])},  # the name and the line of an op
    "no-term": {"op": _at_line(lambda patch, caller, args, kwargs: caller(*args, **kwargs) * 0.0)},
    "transpose": {"op": _at_line(_transposed)},
    "align": {"op": _at_line(_aligned)},
    "reorder": {"op": _at_line(_reordered)},  # the name and the line of an op, and the order of its targets
    "pass-gradient": {"op": _at_line(_passed)},
    "scale-scores": {"op": _scale_scores},  # a factor
    "stable": {"op": _at_line(_stable)},  # the name and the line of an op
    "keep-graph": {"cut": _note_cut, "backward_ends": _forget_cuts, "op": _keep_graph},  # functions with `no_grad`
    "look": {"noted": _begin_step, "op": _look, "node": _look_back, "step_ends": _look_at_parameters},
}  # fmt: skip
