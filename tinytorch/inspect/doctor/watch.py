"""Observing a program at the seams that every training loop has: modules, losses, backward, optimizers, data.

While a `Watch` is installed, some attributes of the library's classes are replaced by functions that tell it of each
call; `remove` puts them back, and nothing else of the library knows of it. Ops are observed in some steps alone (see
`trace`).
"""

from __future__ import annotations

import functools
import importlib
import math
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

from tinytorch.core.layout import NoArray
from tinytorch.core.mode import in_vmap, local
from tinytorch.core.names import module_of
from tinytorch.core.tensor import Tensor
from tinytorch.data import dataloader
from tinytorch.data.dataset import IterableDataset
from tinytorch.inspect.doctor.place import Place, frame_here, here, place_of
from tinytorch.inspect.doctor.source import assigned_at, value_at
from tinytorch.inspect.doctor.trace import Tracer, tensors_of
from tinytorch.nn import functional as F
from tinytorch.nn.modules import loss as losses
from tinytorch.nn.modules.module import Module
from tinytorch.nn.parameter import is_lazy
from tinytorch.ops.random import Generator
from tinytorch.optim import lr_scheduler
from tinytorch.optim.optimizer import Optimizer, register_optimizer_step_post_hook, register_optimizer_step_pre_hook

__all__ = [
    "LoaderInfo", "ModelInfo", "OptimizerInfo", "Watch", "array_of", "node_of", "norm_of", "root_of", "value_of",
]  # fmt: skip


def array_of(x: Any) -> Any:
    """Return the array of a dense tensor; None for any other object."""
    if not isinstance(x, Tensor):
        return None
    try:
        array = x._array
    except (NoArray, RuntimeError, NotImplementedError):
        return None
    return array if isinstance(array, np.ndarray) else None


def root_of(x: Any) -> Any:
    """Return the array that owns the memory of an array or a dense tensor; None for any other object."""
    array = x if isinstance(x, np.ndarray) else array_of(x)
    while array is not None and isinstance(array.base, np.ndarray):
        array = array.base
    return array


def node_of(x: Tensor) -> Any:
    """Return `x.grad_fn` at a lower cost: without the members that are only looked at by people."""
    edge = x._current()._edge
    return None if edge is None else edge[0]


def norm_of(array: Any) -> float:
    """Return the Euclidean norm of an array of real numbers."""
    flat = array.reshape(-1)
    square = float(flat.dot(flat)) if array.dtype.itemsize >= 4 else 0.0
    if not 1e-30 < square < 1e30:  # in the array's dtype, the squares may be too small or too large
        square = float(np.square(flat, dtype=np.float64).sum())
    return math.sqrt(square)


def value_of(x: Any) -> float | None:
    """Return the number in a tensor of one real element, else None."""
    array = array_of(x)
    if array is None or array.size != 1 or array.dtype.kind not in "fiu":
        return None
    return float(array.reshape(-1)[0])


#: How many loaders are kept; a program that makes one for each epoch makes the same again.
_KEPT = 16


class ModelInfo:
    """A module that the program calls itself.

    Attributes:
        module: the module.
        name: the name of its class.
        place: where it was first called.
        paths: the dotted path of each module in it, by id.
        parameters: its parameters, by name.
        calls: how often it was called, by (training, whether a graph was recorded).
    """

    def __init__(self, module: Module, place: Place) -> None:
        self.module, self.place = module, place
        self.name = type(module).__name__
        self.paths = {id(each): path for path, each in module.named_modules()}
        self.parameters = {name: p for name, p in module.named_parameters() if not is_lazy(p)}
        self.calls: dict[tuple[bool, bool], int] = {}

    def is_current(self) -> bool:
        """Return whether the module still has the parameters that it had."""
        now = [id(p) for p in self.module.parameters() if not is_lazy(p)]
        return now == [id(p) for p in self.parameters.values()]


class OptimizerInfo:
    """An optimizer: where it was made, its steps, and the backward pass after which it last stepped."""

    def __init__(self, optimizer: Optimizer, place: Place | None) -> None:
        self.optimizer, self.place = optimizer, place
        self.steps = 0
        self.step_place: Place | None = None
        self.closure = False  # whether its last step got a closure, which calls `backward`
        self.last_backward = 0
        self.idle = 0  # steps after backward passes that gave none of its parameters a gradient, which nothing cleared

    @property
    def params(self) -> list[Tensor]:
        """Its parameters."""
        return [p for group in self.optimizer.param_groups for p in group["params"]]

    @property
    def ids(self) -> set[int]:
        """The ids of its parameters."""
        return {id(p) for p in self.params}

    @property
    def rate(self) -> float:
        """The learning rate of its first group."""
        return float(self.optimizer.param_groups[0].get("lr", math.nan))


class LoaderInfo:
    """A `DataLoader`, and how the program iterates over it.

    Args:
        loader: the loader.
        place: the line that iterates over it.
        keep: whether to keep the loader, which a function that has returned no longer does.
    """

    def __init__(self, loader: Any, place: Place, keep: bool) -> None:
        self.loader, self.place = weakref.ref(loader), place
        self._kept = loader if keep else None
        self.epochs = 0  # iterations begun
        self.finished = 0
        self.batches = 0
        self.waited = 0.0  # seconds in which a batch was loaded
        self.backwards = 0  # backward passes while it was the innermost loader


class Curve:
    """The losses of one line that calls `backward`."""

    def __init__(self) -> None:
        self.steps: list[int] = []
        self.values: list[float] = []
        self.times: list[float] = []


class Watch:
    """What was seen of a program so far, and the events that the checks receive.

    Args:
        checks: the checks; each receives the events of which it has a method.
        on_start: called before the first forward pass of a model ("first") and before the first iteration over data
            ("loader").
        on_backward: called after each backward pass.
    """

    #: What checks are told of, if they have a method of the name, and what it gets.
    EVENTS: ClassVar[dict[str, str]] = {
        "forward_begins": "info, args: a call of a model (`ModelInfo`)",
        "forward_ends": "info, args, kwargs, out: its result",
        "traced": "trace, loss, place: the ops of a step (`Trace`), in some steps, before its backward pass",
        "backward_begins": "loss, place", "backward_ends": "loss, place",
        "step_begins": "info: an optimizer (`OptimizerInfo`) is about to step", "step_ends": "info: it has stepped",
        "zeroed": "target: `zero_grad` of an optimizer or a module", "scheduled": "scheduler: its step",
        "loader_begins": "info: an iteration over a `DataLoader` (`LoaderInfo`)", "batch": "info, batch",
        "loader_ends": "info", "dropped": "x, p, training: a call of a function `dropout`",
        "cut": "x, out, how: `out` was taken from `x` without its graph, by `detach()`, `.data`, `item()` ...",
        "mode_set": "module, mode, before: `module.train(mode)`", "state_taken": "module, state: of `state_dict()`",
        "state_loaded": "module, state: `load_state_dict(state)`", "made_optimizer": "info", "seeded": "seed",
        "filled": "x: a tensor is filled with random numbers, in the steps that are traced",
        "criterion": "module, args: the call of a loss module",
    }  # fmt: skip

    def __init__(self, checks: list[Any], on_start: Callable[[str], None], on_backward: Callable[[], None]) -> None:
        self.on_start, self.on_backward = on_start, on_backward
        self.events: dict[str, list[Callable[..., None]]] = {
            event: [getattr(each, event) for each in checks if hasattr(each, event)] for event in self.EVENTS
        }
        self.failures: list[str] = []  # of checks
        self.stack: list[Module] = []
        self.criterion: Module | None = None  # the loss module that runs
        self.backwards = 0
        self.curves: dict[Place, Curve] = {}
        self.models: dict[int, ModelInfo] = {}
        self.replaced: list[ModelInfo] = []  # what was known of models before their layers were replaced
        self.optimizers: dict[int, OptimizerInfo] = {}
        self.loaders: dict[int, LoaderInfo] = {}
        self.open_loaders: list[LoaderInfo] = []
        self.owners: dict[int, tuple[ModelInfo, str]] = {}  # of parameters, by id
        self.updated_at: Place | None = None  # where the program itself updates a parameter
        self.early: tuple[str, Place, list[float]] | None = None  # the first op that was not finite before training
        self.last_root: Any = None  # in a counterfactual: the last call of a model
        self.loader_made: dict[int, Place] = {}  # loaders, by id
        self.kept_orders: list[tuple[Tensor, Tensor]] = []  # tensors made by changing an order, and of what
        self._orders: list[tuple[str, Place, Tensor, Tensor, Any]] = []
        self.unrecorded: dict[int, Place] = {}  # where a layer ran in `no_grad` inside of a model, by id of its info
        self.frozen_at: dict[int, Place] = {}  # where `requires_grad` of a tensor was set to False
        self._filled: dict[int, tuple[Any, Place]] = {}  # where memory was filled with numbers, by the array's id
        self.kinds: dict[str, int] = {}  # of loss functions
        self.classes = 0  # those among which a loss of classes that is the whole loss chooses
        self.made_at: dict[int, Place] = {}  # layers of the library, by id
        self.rates: list[tuple[int, float]] = []
        self.patch: Any = None  # in a counterfactual: what is changed
        self.always = False  # whether every step is traced
        self.started = self.began = time.perf_counter()
        self.tracer = Tracer(self)
        self._undo: list[Callable[[], None]] = []
        self._scheduling = 0
        self.scheduler: Any = None  # the last one that stepped, and where
        self.scheduler_at: Place | None = None
        self._in_backward = False
        self.root_recorded = False  # whether the running model was called with a graph being recorded

    # Installing ---------------------------------------------------------------------------------------

    def install(self) -> None:
        """Begin to observe."""
        autograd: Any = importlib.import_module("tinytorch.autograd")
        listens: tuple[tuple[Any, str, Callable[..., Any]], ...] = (
            ((Module,), "__init__", self._new_module),
            ((Module,), "__call__", self._call),
            ((Module,), "train", self._train),
            ((Module,), "state_dict", self._state_dict),
            ((Module,), "load_state_dict", self._load_state_dict),
            ((Module, *_with(Optimizer, "zero_grad")), "zero_grad", self._zero_grad),
            ((Tensor, autograd), "backward", self._backward),
            *[((Tensor,), name, functools.partial(self._cut, f"{name}()"))
              for name in ("detach", "numpy", "item", "tolist")],
            ((Tensor,), "data", functools.partial(self._cut, ".data")),
            ((Tensor,), "requires_grad_", self._freeze),
            ((Tensor,), "requires_grad", self._freeze),
            ((Optimizer,), "__init__", self._new_optimizer),
            (_with(lr_scheduler.LRScheduler, "step"), "step", self._schedule),
            ((dataloader.DataLoader,), "__init__", self._new_loader),
            ((dataloader.DataLoader,), "__iter__", self._iterate),
            ((Generator,), "manual_seed", self._seed),
            *[((F,), name, self._dropout) for name in ("dropout", "dropout1d", "dropout2d", "dropout3d")],
        )  # fmt: skip
        for owners, name, advice in listens:
            for owner in owners:
                self._replace(owner, name, advice)
        handles = [
            register_optimizer_step_pre_hook(
                lambda optimizer, args, kwargs: self._step_begins(optimizer, args, kwargs)
            ),
            register_optimizer_step_post_hook(lambda optimizer, args, kwargs: self._step_ends(optimizer)),
        ]
        self._undo += [handle.remove for handle in handles]
        self.tracer.__enter__()

    def become(self, patch: Any) -> None:
        """Go on as a counterfactual: no check is told of anything, and every step is traced."""
        self.patch, self.always = patch, patch.traces
        for receivers in self.events.values():
            receivers.clear()
        self.curves.clear()
        self.backwards = 0
        self.tracer.next_step(True)
        patch.start(self)

    def remove(self) -> None:
        """Put back everything that was replaced."""
        self.tracer.__exit__()
        while self._undo:
            self._undo.pop()()

    def _replace(self, owner: Any, name: str, advice: Callable[..., Any]) -> None:
        """Let calls of an attribute go to `advice`, which gets what was there and the arguments.

        Of a property it is what reads `data`, and what writes `requires_grad`.
        """
        before, own = getattr(owner, name), name in vars(owner)
        value: Any
        if isinstance(before, property) or not callable(before):
            flag = vars(owner)[name]
            read, write = flag.__get__, flag.__set__
            if name == "data":
                read = _advised(advice, read)
            else:
                write = _advised(advice, write)
            value, before = property(read, write, doc=flag.__doc__), flag
        else:
            before = vars(owner).get(name, before)
            value = _advised(advice, before)
        setattr(owner, name, value)
        self._undo.append(lambda: setattr(owner, name, before) if own else delattr(owner, name))

    def tell(self, event: str, *args: Any) -> None:
        """Hand an event to the checks."""
        for receive in self.events[event]:
            try:
                receive(*args)
            except Exception as error:  # a check that fails must not end the program
                self.events[event] = [each for each in self.events[event] if each is not receive]
                self.failures.append(f"{receive.__qualname__} failed: {type(error).__name__}: {error}")

    # Modules ------------------------------------------------------------------------------------------

    def _new_module(self, plain: Any, module: Module, *args: Any, **kwargs: Any) -> None:
        if module_of(type(module)).startswith("tinytorch."):
            self.made_at[id(module)] = here()
        plain(module, *args, **kwargs)

    def line_of(self, place: Place, owner: Any) -> Place:
        """Return where a layer of the library was made, if its forward runs; else the line that is being executed."""
        if owner is not None and module_of(type(owner)).startswith("tinytorch."):
            return self.made_at.get(id(owner), place)
        return place

    def _call(self, plain: Any, module: Module, *args: Any, **kwargs: Any) -> Any:
        stack = self.stack
        if not stack:
            return self._root_call(plain, module, args, kwargs)
        if self.tracer.on and self.root_recorded and not local.state.grad and module._parameters:
            self.unrecorded.setdefault(id(self.models.get(id(stack[0]))), here())
        stack.append(module)
        try:
            return plain(module, *args, **kwargs)
        finally:
            stack.pop()

    def _root_call(self, plain: Any, module: Module, args: Any, kwargs: Any) -> Any:
        # (A backward pass may compute again what was not saved.)
        if in_vmap() or self._in_backward:
            return plain(module, *args, **kwargs)
        if isinstance(module, losses._Loss):
            self.tell("criterion", module, args)
            self.criterion = module
            try:
                return plain(module, *args, **kwargs)
            finally:
                self.criterion = None
        info = self.models.get(id(module))
        if info is not None and info.module is module and self.tracer.on and not info.is_current():
            self.replaced.append(info)  # a layer was replaced, or added
            info = None
        if info is None or info.module is not module:
            info = self.models[id(module)] = ModelInfo(module, here())
            for name, p in info.parameters.items():
                known = self.owners.get(id(p))
                if known is None or len(known[0].parameters) < len(info.parameters):
                    self.owners[id(p)] = (info, name)
        recording = local.state.grad
        if recording and info.parameters:
            self.on_start("first")
        key = (module.training, recording)
        info.calls[key] = info.calls.get(key, 0) + 1
        if self.patch is not None:
            args, kwargs = self.patch.forward(self, module, args, kwargs)
        self.tell("forward_begins", info, args)
        self.stack.append(module)
        self.root_recorded = recording
        try:
            out = plain(module, *args, **kwargs)
        finally:
            self.stack.pop()
        if self.patch is not None and recording:
            self.last_root = (module, args, kwargs, out)
        self.tell("forward_ends", info, args, kwargs, out)
        return out

    def note_filled(self, x: Tensor) -> None:
        """Note the line that fills a tensor with numbers."""
        root = root_of(x)
        if root is not None:
            self._filled[id(root)] = (weakref.ref(root), here())

    def filled_at(self, x: Any) -> Place | None:
        """Return the line that filled a tensor with numbers, all the same or random ones, before training."""
        root = root_of(x)
        reference, place = self._filled.get(id(root), (None, None))
        return place if reference is not None and reference() is root else None

    def note_update(self, x: Any) -> None:
        """Note the line at which the program itself updates a parameter."""
        if self.updated_at is None and isinstance(x, Tensor) and x.is_leaf and x.requires_grad:
            self.updated_at = here()

    def note_early(self, name: str, args: Any, out: Tensor) -> None:
        """Note the first op, before training, whose result is not finite although its arguments are."""
        if self.early is None and not _is_finite(out) and all(map(_is_finite, tensors_of(args))):
            self.early = (name, here(), [float(np.abs(each._array).min()) for each in tensors_of(args)])

    def leaf_at(self, p: Tensor) -> Place | None:
        """Return the line that assigns the variable which is a tensor, if a running function has one."""
        frame: Any = frame_here()
        while frame is not None:
            for name, value in [*frame.f_locals.items(), *frame.f_globals.items()]:
                found = None
                if value is p and not name.startswith("__"):
                    found = value_at(place_of(frame), name)
                elif module_of(type(value)) == "__main__" and hasattr(value, "__dict__"):
                    attribute = next((key for key, each in vars(value).items() if each is p), "")
                    found = assigned_at(value, attribute) if attribute else None
                if found is not None:
                    return found
            frame = frame.f_back
        return None

    def path(self) -> str:
        """Return the path of the module whose forward runs, such as `Net.layers.0`; "" outside of all modules."""
        if not self.stack:
            return ""
        info = self.models.get(id(self.stack[0]))
        path = info.paths.get(id(self.stack[-1]), type(self.stack[-1]).__name__) if info else ""
        return ".".join([each for each in (type(self.stack[0]).__name__, path) if each])

    def _train(self, plain: Any, module: Module, mode: bool = True) -> Any:
        before = module.training
        out = plain(module, mode)
        self.tell("mode_set", module, mode, before)
        return out

    def _state_dict(self, plain: Any, module: Module, *args: Any, **kwargs: Any) -> Any:
        out = plain(module, *args, **kwargs)
        if not args and not kwargs.get("prefix"):
            self.tell("state_taken", module, out)
        return out

    def _load_state_dict(self, plain: Any, module: Module, state: Any, *args: Any, **kwargs: Any) -> Any:
        self.tell("state_loaded", module, state)
        return plain(module, state, *args, **kwargs)

    def _dropout(self, plain: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
        training = kwargs.get("training", args[1] if len(args) > 1 else True)
        if self.patch is not None and self.patch.skips_dropout(self, training):
            return input
        if self.events["dropped"]:
            self.tell("dropped", input, kwargs.get("p", args[0] if args else 0.5), training)
        return plain(input, *args, **kwargs)

    def _cut(self, how: str, plain: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        if not self.tracer.on or self._in_backward or not x.requires_grad:
            return plain(x, *args, **kwargs)
        if self.patch is not None and self.patch.cut(self, x, how):
            return x
        out = plain(x, *args, **kwargs)
        self.tell("cut", x, out, how)
        return out

    def _seed(self, plain: Any, generator: Any, seed: int) -> Any:
        self.tell("seeded", seed)
        return plain(generator, seed)

    def _freeze(self, plain: Any, x: Any, requires_grad: bool = True) -> Any:
        if not requires_grad and x.is_leaf:
            self.frozen_at[id(x)] = here()
        return plain(x, requires_grad)

    # Steps --------------------------------------------------------------------------------------------

    def _backward(self, plain: Any, loss: Any, *args: Any, **kwargs: Any) -> Any:
        if self._in_backward:  # one calls the other
            return plain(loss, *args, **kwargs)
        return self._run_backward(plain, loss, args, kwargs)

    def _run_backward(self, plain: Any, loss: Any, args: Any, kwargs: Any) -> Any:
        self.on_start("first")
        place = here()
        value = value_of(loss)
        curve = self.curves.get(place)
        if curve is None:
            curve = self.curves[place] = Curve()
        self.backwards += 1
        curve.steps.append(self.backwards)
        curve.values.append(math.nan if value is None else value)
        curve.times.append(time.perf_counter() - self.began)
        if self.patch is not None:
            self.patch.note(self, curve.values[-1], place)
            loss = self.patch.backward_begins(self, loss)
        if self.open_loaders:
            self.open_loaders[-1].backwards += 1
        self.tell("backward_begins", loss, place)
        if self.tracer.on:
            for each in self.tracer.trace.losses:
                self.kinds[each.kind] = self.kinds.get(each.kind, 0) + 1
                if each.call.out is loss and each.kind in ("class", "nll"):
                    self.classes = each.input.shape[-1 if each.input.ndim < 2 else 1]
            self.tell("traced", self.tracer.trace, loss, place)
        self._in_backward = True
        try:
            out = plain(loss, *args, **kwargs)
        finally:
            self._in_backward = False
        self.tell("backward_ends", loss, place)
        if self.patch is not None:
            self.patch.backward_ends(self, loss)
        often = self.backwards % 4 == 0 if self.patch is not None else _sampled(self.backwards)
        self.tracer.next_step(self.always or often or self.backwards < 6)
        self.on_backward()
        return out

    def info_of(self, optimizer: Optimizer) -> OptimizerInfo:
        """Return what is known of an optimizer."""
        info = self.optimizers.get(id(optimizer))
        if info is None or info.optimizer is not optimizer:
            info = self.optimizers[id(optimizer)] = OptimizerInfo(optimizer, None)
        return info

    def _new_optimizer(self, plain: Any, optimizer: Optimizer, *args: Any, **kwargs: Any) -> None:
        plain(optimizer, *args, **kwargs)
        info = self.optimizers[id(optimizer)] = OptimizerInfo(optimizer, here())
        self.tell("made_optimizer", info)

    def _step_begins(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        info = self.info_of(optimizer)
        info.closure = len(args) > 1 or bool(kwargs)
        if info.step_place is None:
            info.step_place = here()
        if self.patch is not None:
            self.patch.step_begins(self, optimizer)
        self.tell("step_begins", info)

    def _step_ends(self, optimizer: Optimizer) -> None:
        info = self.info_of(optimizer)
        info.steps += 1
        info.last_backward = self.backwards
        if len(self.rates) < 100_000:
            self.rates.append((self.backwards, info.rate))
        if self.patch is not None:
            self.patch.step_ends(self, optimizer)
        self.tell("step_ends", info)

    def _zero_grad(self, plain: Any, target: Any, *args: Any, **kwargs: Any) -> None:
        if self.patch is not None and self.patch.skips_zeroing(self, target):
            return
        self.tell("zeroed", target)
        plain(target, *args, **kwargs)

    def _schedule(self, plain: Any, scheduler: Any, *args: Any, **kwargs: Any) -> Any:
        inner = self._scheduling or getattr(scheduler, "_is_initial", False) or not hasattr(scheduler, "optimizer")
        if not inner:
            if self.patch is not None and self.patch.skips_schedule(self, scheduler):
                return None
            self.scheduler, self.scheduler_at = scheduler, self.scheduler_at or here()
            self.tell("scheduled", scheduler)
        self._scheduling += 1
        try:
            return plain(scheduler, *args, **kwargs)
        finally:
            self._scheduling -= 1

    # Data ---------------------------------------------------------------------------------------------

    def _new_loader(self, plain: Any, loader: Any, *args: Any, **kwargs: Any) -> None:
        plain(loader, *args, **kwargs)
        self.loader_made[id(loader)] = here()

    def note_order(self, name: str, args: tuple[Any, ...], out: Any) -> None:
        """Note a call, before training, that may have changed the order of data."""
        source, index = args[0], None
        if name == "_index":
            index = args[1][0] if isinstance(args[1], tuple) and len(args[1]) == 1 else None
            if not (isinstance(index, np.ndarray) and index.ndim == 1 and index.dtype.kind == "i" and len(index) > 15):
                return
            if len(np.unique(index)) < len(index) or (np.diff(index) > 0).all():
                return
        out = out[0] if isinstance(out, tuple) else out
        if isinstance(source, Tensor) and source.ndim and source.shape[0] > 15 and source.numel() < 10_000_000:
            self._orders.append((name, here(), out, source, index))
            self.kept_orders.append((out, source))

    @property
    def reordered(self) -> dict[Place, tuple[str, list[tuple[Tensor, Tensor, Any]]]]:
        """What was reordered apart from what belongs to it, by line: in words, and results, sources, right indices."""
        found: dict[Place, tuple[str, list[tuple[Tensor, Tensor, Any]]]] = {}

        def add(place: Place, says: str, out: Tensor, source: Tensor, index: Any) -> None:
            found.setdefault(place, (says, []))[1].append((out, source, index))

        for name, place, out, source, index in self._orders:
            if name != "_index":
                if source.ndim == 1:
                    add(place, f"Labels are reordered ({name})", out, source, None)
                continue
            others = [each for each in self._orders if each[0] == "_index" and each[3] is not source
                      and len(each[3]) == len(source) and len(each[4]) == len(index)]  # fmt: skip
            if any(np.array_equal(each[4], index) for each in others):
                continue
            if others and source.ndim <= 1:
                add(place, "Labels are put into an order of their own", out, source, others[0][4])
            elif not others and len(index) == len(source):
                add(place, "Data are put into another order", out, source, None)
        return found

    def _iterate(self, plain: Any, loader: Any) -> Any:
        self.on_start("loader")
        info = self.loaders.get(id(loader))
        if info is None or info.loader() is not loader:
            info = self.loaders[id(loader)] = LoaderInfo(loader, here(), len(self.loaders) < _KEPT)
        info.epochs += 1
        self.tell("loader_begins", info)
        if self.patch is not None:
            loader = self.patch.loader(self, loader)
        return _Batches(self, info, self._inner(plain, loader))

    @staticmethod
    def _inner(plain: Any, loader: Any) -> Any:
        """Return the iterator of a loader, which loads in this process: workers cannot be copied."""
        if loader.num_workers and not isinstance(loader.dataset, IterableDataset):
            fetch = object.__new__(type(loader))
            fetch.__dict__.update(loader.__dict__)
            fetch.__dict__.update(num_workers=0, timeout=0, persistent_workers=False)
            loader = fetch
        return plain(loader)

    def seconds(self) -> float:
        """Return the time since the watch was made."""
        return time.perf_counter() - self.started


class _Batches:
    """The iterator of a loader, which notes how long each batch takes."""

    def __init__(self, watch: Watch, info: LoaderInfo, batches: Any) -> None:
        self._watch, self._info, self._batches = watch, info, batches

    def __iter__(self) -> Iterator[Any]:
        return self

    def __len__(self) -> int:
        return len(self._batches)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batches, name)

    def __next__(self) -> Any:
        watch, info = self._watch, self._info
        begin = time.perf_counter()
        try:
            batch = next(self._batches)
        except StopIteration:
            info.finished += 1
            if info in watch.open_loaders:
                watch.open_loaders.remove(info)
            watch.tell("loader_ends", info)
            raise
        info.waited += time.perf_counter() - begin
        info.batches += 1
        if not watch.open_loaders or watch.open_loaders[-1] is not info:
            if info in watch.open_loaders:
                watch.open_loaders.remove(info)
            watch.open_loaders.append(info)
        watch.tell("batch", info, batch)
        return batch


def _advised(advice: Callable[..., Any], plain: Any) -> Any:
    """Return a function in the place of `plain` that calls `advice(plain, ...)`."""

    @functools.wraps(plain)
    def call(*args: Any, **kwargs: Any) -> Any:
        return advice(plain, *args, **kwargs)

    return call


def _is_finite(x: Tensor) -> bool:
    array = array_of(x)
    return array is None or array.dtype.kind not in "fc" or bool(np.isfinite(array).all())


def _sampled(step: int) -> bool:
    """Return whether the step after the given number of backward passes is traced: seldom, but all along the way."""
    return step % 100 == 99 or step & (step - 1) == 0


def _with(cls: type, name: str) -> list[Any]:
    """Return a class and its subclasses that define a method themselves."""
    found, classes = [], [cls]
    while classes:
        each = classes.pop()
        if name in each.__dict__ and each not in found:
            found.append(each)
        classes += each.__subclasses__()
    return found
