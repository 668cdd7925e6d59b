"""Listening to a program at the seams that every training loop has: modules, losses, backward, optimizers, data.

Calls of modules and steps of optimizers are heard by hooks that PyTorch has for them, ops and reads of tensors by a
mode (`trace`), in some steps alone. What has no hook is replaced while a `Watch` is installed: `backward`, iterations
over a `DataLoader`, `load_state_dict`, `manual_seed`, and what makes a module, an optimizer or a loader.
"""

from __future__ import annotations

import functools
import importlib
import math
import random
import time
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from tinytorch.autograd.profiler import tensors_in
from tinytorch.core.layout import NoArray
from tinytorch.core.mode import in_vmap, local
from tinytorch.core.names import module_of
from tinytorch.core.tensor import Tensor
from tinytorch.data.dataloader import DataLoader
from tinytorch.data.dataset import IterableDataset
from tinytorch.inspect.doctor.place import Place, here
from tinytorch.inspect.doctor.trace import Tracer
from tinytorch.nn.modules import module as modules
from tinytorch.nn.modules.loss import _Loss
from tinytorch.nn.modules.module import Module
from tinytorch.nn.parameter import is_lazy
from tinytorch.ops.random import Generator
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


@dataclass(eq=False)
class OptimizerInfo:
    """An optimizer: where it was made, its steps, and the backward pass after which it last stepped."""

    optimizer: Optimizer
    place: Place | None = None
    steps: int = 0
    step_place: Place | None = None
    closure: bool = False  # whether its last step got a closure, which calls `backward`
    last_backward: int = 0

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


@dataclass(eq=False)
class LoaderInfo:
    """A `DataLoader`, and how the program iterates over it."""

    loader: Any  # a weak reference
    kept: Any
    place: Place
    made: Place
    epochs: int = 0  # iterations begun
    finished: int = 0
    batches: int = 0
    backwards: int = 0  # backward passes while it was the innermost loader


@dataclass
class Curve:
    """The losses of one line that calls `backward`."""

    steps: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    times: list[float] = field(default_factory=list)


class Watch:
    """What was heard of a program so far, and the events that the checks receive.

    Args:
        checks: the checks; each receives the events of which it has a method.
        on_start: called before each forward pass of a model for a graph, and before each backward pass.
        on_backward: called after each backward pass.
    """

    #: What checks are told of, if they have a method of the name, and what it gets.
    EVENTS: ClassVar[dict[str, str]] = {
        "forward_begins": "info, args: a call of a model (`ModelInfo`)",
        "forward_ends": "info, args, kwargs, out: its result",
        "traced": "trace, loss, place: the ops of a step (`Trace`), in some steps, before its backward pass",
        "backward_begins": "loss, place", "backward_ends": "loss, place",
        "step_begins": "info: an optimizer (`OptimizerInfo`) is about to step", "step_ends": "info: it has stepped",
        "loader_begins": "info: an iteration over a `DataLoader` (`LoaderInfo`)", "batch": "info, batch",
        "loader_ends": "info", "state_loaded": "module, state: `load_state_dict(state)`",
        "cut": "x, alias: values of `x` left the graph, as the tensor `alias`, or as numbers if it is None",
        "differentiated": "gradients: of `autograd.grad`, without a graph",
        "seeded": "name, seed, state: of a generator", "criterion": "module, args: the call of a loss module",
    }  # fmt: skip

    def __init__(self, checks: list[Any], on_start: Callable[[], None], on_backward: Callable[[], None]) -> None:
        self.on_start, self.on_backward = on_start, on_backward
        self.events: dict[str, list[Callable[..., None]]] = {
            event: [getattr(each, event) for each in checks if hasattr(each, event)] for event in self.EVENTS
        }
        self.failures: list[str] = []  # of checks
        self.stack: list[Module] = []  # the modules whose forward runs, from the one that the program called
        self.criterion: Module | None = None  # the loss module that runs
        self.backwards = 0
        self.curves: dict[Place, Curve] = {}
        self.models: dict[int, ModelInfo] = {}
        self.optimizers: dict[int, OptimizerInfo] = {}
        self.loaders: dict[int, LoaderInfo] = {}
        self.open_loaders: list[LoaderInfo] = []
        self.made_at: dict[int, Place] = {}  # layers of the library, optimizers and loaders, by id
        self.updated_at: Place | None = None  # where the program itself updates a parameter
        self.updates = 0  # how often its own parameters had changed from one backward pass to the next
        self.early: tuple[str, Place, list[float]] | None = None  # the first op that was not finite before training
        self.given: list[Tensor] = []  # the tensors that models got for a graph, in a step that is traced
        self.unrecorded: dict[int, Place] = {}  # where a layer ran in `no_grad` inside of a model, by id of its info
        self._filled: dict[int, tuple[Any, Place]] = {}  # where memory was filled with numbers, by the array's id
        self.called: set[int] = set()  # the ids of modules whose forward ran
        self.loaded: set[int] = set()  # the ids of parameters that were loaded
        self.kinds: dict[str, int] = {}  # of loss functions
        self.classes = 0  # those among which a loss of classes that is the whole loss chooses
        self.rates: list[tuple[int, float]] = []
        self.patch: Any = None  # in a counterfactual: what is changed
        self.always = False  # whether every step is traced
        self.started = time.perf_counter()
        self.tracer = Tracer(self)
        self._undo: list[Callable[[], None]] = []
        self.in_backward = self.drawn = False  # (whether random numbers were drawn, for checks to reset)
        self.root_recorded = False  # whether the running model was called with a graph being recorded

    # Installing ---------------------------------------------------------------------------------------

    def install(self) -> None:
        """Begin to listen."""
        autograd: Any = importlib.import_module("tinytorch.autograd")
        handles = [
            modules.register_module_forward_pre_hook(self._enters),
            modules.register_module_forward_hook(self._leaves, with_kwargs=True, always_call=True),
            register_optimizer_step_pre_hook(self._step_begins),
            register_optimizer_step_post_hook(self._step_ends),
        ]
        self._undo += [handle.remove for handle in handles]
        listens: tuple[tuple[Any, str, Callable[..., Any]], ...] = (
            *[(owner, "__init__", self._makes) for owner in (Module, Optimizer, DataLoader)],
            (Module, "load_state_dict", self._loads), (DataLoader, "__iter__", self._iterates),
            (Tensor, "backward", self._goes_back), (autograd, "backward", self._goes_back),
            (autograd, "grad", self._differentiates), (Generator, "manual_seed", self._seeds),
            (np.random, "seed", functools.partial(self._seeds_globally, "np.random.seed", np.random.get_state)),
            (random, "seed", functools.partial(self._seeds_globally, "random.seed", random.getstate)),
        )  # fmt: skip
        for owner, name, advice in listens:
            self._replace(owner, name, advice)
        self.tracer.__enter__()

    def _replace(self, owner: Any, name: str, advice: Callable[..., Any]) -> None:
        """Let calls of a function go to `advice`, which gets the function and the arguments."""
        before, own = getattr(owner, name), name in vars(owner)

        @functools.wraps(before)
        def call(*args: Any, **kwargs: Any) -> Any:
            return advice(before, *args, **kwargs)

        setattr(owner, name, call)
        self._undo.append(lambda: setattr(owner, name, before) if own else delattr(owner, name))

    def become(self, patch: Any) -> None:
        """Go on as a counterfactual: no check is told of anything, and every step is traced."""
        self.patch, self.always = patch, patch.traces
        self.silence()
        self.curves.clear()
        self.backwards = 0
        self.tracer.next_step(True)
        patch.tell("start", self)

    def silence(self) -> None:
        """Tell checks of nothing more: this is a copy of the process."""
        for receivers in self.events.values():
            receivers.clear()

    def remove(self) -> None:
        """Put back what was replaced."""
        self.tracer.__exit__()
        while self._undo:
            self._undo.pop()()

    def tell(self, event: str, *args: Any) -> None:
        """Hand an event to the checks."""
        for receive in self.events[event]:
            try:
                with np.errstate(all="ignore"):  # (numbers that overflow are the program's)
                    receive(*args)
            except Exception as error:  # a check that fails must not end the program
                self.events[event] = [each for each in self.events[event] if each is not receive]
                self.failures.append(f"{receive.__qualname__} failed: {type(error).__name__}: {error}")

    # Modules ------------------------------------------------------------------------------------------

    def _makes(self, plain: Any, made: Any, *args: Any, **kwargs: Any) -> None:
        if not isinstance(made, Module) or module_of(type(made)).startswith("tinytorch."):
            self.made_at[id(made)] = here()
        plain(made, *args, **kwargs)
        if isinstance(made, Optimizer):
            self.optimizers[id(made)] = OptimizerInfo(made, self.made_at[id(made)])

    def line_of(self, place: Place, owner: Any) -> Place:
        """Return where a layer of the library was made, if its forward runs; else the line that is being executed."""
        if owner is not None and module_of(type(owner)).startswith("tinytorch."):
            return self.made_at.get(id(owner), place)
        return place

    def _enters(self, module: Module, args: Any) -> Any:
        stack = self.stack
        self.called.add(id(module))
        if stack:
            if self.tracer.on and self.root_recorded and not local.state.grad and module._parameters:
                self.unrecorded.setdefault(id(self.models.get(id(stack[0]))), here())
            stack.append(module)
            return None
        if in_vmap() or self.in_backward:  # (a backward pass may compute again what was not saved)
            return None
        if isinstance(module, _Loss):
            self.tell("criterion", module, args)
            self.criterion = module
            return None
        info = self.models.get(id(module))
        if info is None or info.module is not module or (self.tracer.on and not info.is_current()):
            info = self.models[id(module)] = ModelInfo(module, here())
        self.root_recorded = local.state.grad
        if self.root_recorded and info.parameters:
            self.on_start()
        key = (module.training, self.root_recorded)
        info.calls[key] = info.calls.get(key, 0) + 1
        if self.patch is not None:
            args = self.patch.changed("forward", self, args, module)
        if self.root_recorded and self.tracer.on and len(self.given) < 16:
            self.given += [x for x in tensors_in(args) if x.is_leaf or not x.requires_grad]
        self.tell("forward_begins", info, args)
        stack.append(module)
        return args

    def _leaves(self, module: Module, args: Any, kwargs: Any, out: Any) -> None:
        if module is self.criterion:
            self.criterion = None
        if not self.stack or self.stack[-1] is not module:
            return
        self.stack.pop()
        if not self.stack and out is not None:
            self.tell("forward_ends", self.models[id(module)], args, kwargs, out)

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

    def path(self) -> str:
        """Return the path of the module whose forward runs, such as `Net.layers.0`; "" outside of all modules."""
        if not self.stack:
            return ""
        info = self.models.get(id(self.stack[0]))
        path = info.paths.get(id(self.stack[-1]), type(self.stack[-1]).__name__) if info else ""
        return ".".join([each for each in (type(self.stack[0]).__name__, path) if each])

    def _loads(self, plain: Any, module: Module, state: Any, *args: Any, **kwargs: Any) -> Any:
        self.loaded.update(id(p) for p in module.parameters())
        self.tell("state_loaded", module, state)
        return plain(module, state, *args, **kwargs)

    def _seeds(self, plain: Any, generator: Any, seed: int) -> Any:
        out = plain(generator, seed)
        self.tell("seeded", "generator.manual_seed", seed, generator._source.state)
        return out

    def _seeds_globally(self, name: str, state: Callable[[], Any], plain: Any, seed: Any = None, *args: Any) -> None:
        plain(seed, *args)
        if isinstance(seed, (int, np.integer)):
            self.tell("seeded", name, seed, state)

    # Steps --------------------------------------------------------------------------------------------

    def _goes_back(self, plain: Any, loss: Any, *args: Any, **kwargs: Any) -> Any:
        if self.in_backward:  # one calls the other
            return plain(loss, *args, **kwargs)
        self.on_start()
        place, value = here(), value_of(loss)
        curve = self.curves.setdefault(place, Curve())
        self.backwards += 1
        curve.steps.append(self.backwards)
        curve.values.append(math.nan if value is None else value)
        curve.times.append(self.seconds())
        if self.patch is not None:
            self.patch.note(self, curve.values[-1], place)
            loss = self.patch.changed("loss", self, loss)
        if self.open_loaders:
            self.open_loaders[-1].backwards += 1
        self.tell("backward_begins", loss, place)
        if self.tracer.on:
            for each in self.tracer.trace.losses:
                self.kinds[each.kind] = self.kinds.get(each.kind, 0) + 1
                if each.call.out is loss and each.kind in ("class", "nll"):
                    self.classes = each.input.shape[-1 if each.input.ndim < 2 else 1]
            self.tell("traced", self.tracer.trace, loss, place)
        self.given = []
        self.in_backward = True
        try:
            out = plain(loss, *args, **kwargs)
        finally:
            self.in_backward = False
        self.tell("backward_ends", loss, place)
        if self.patch is not None:
            self.patch.tell("backward_ends", self)
        often = self.backwards % 4 == 0 if self.patch is not None else _sampled(self.backwards)
        self.tracer.next_step(self.always or often or self.backwards < 6)
        self.on_backward()
        return out

    def _differentiates(self, plain: Any, *args: Any, **kwargs: Any) -> Any:
        gradients = plain(*args, **kwargs)
        if not self.in_backward:
            self.tell("differentiated", gradients)
        return gradients

    def info_of(self, optimizer: Optimizer) -> OptimizerInfo:
        """Return what is known of an optimizer."""
        info = self.optimizers.get(id(optimizer))
        if info is None or info.optimizer is not optimizer:
            info = self.optimizers[id(optimizer)] = OptimizerInfo(optimizer)
        return info

    def _step_begins(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        info = self.info_of(optimizer)
        info.closure = len(args) > 1 or bool(kwargs)
        info.step_place = info.step_place or here()
        if self.patch is not None:
            self.patch.tell("step_begins", self, optimizer)
        self.tell("step_begins", info)

    def _step_ends(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        info = self.info_of(optimizer)
        info.steps += 1
        info.last_backward = self.backwards
        if len(self.rates) < 100_000:
            self.rates.append((self.backwards, info.rate))
        if self.patch is not None:
            self.patch.tell("step_ends", self, optimizer)
        self.tell("step_ends", info)

    # Data ---------------------------------------------------------------------------------------------

    def _iterates(self, plain: Any, loader: Any) -> Any:
        info = self.loaders.get(id(loader))
        if info is None or info.loader() is not loader:
            made = self.made_at.get(id(loader), here())
            kept = loader if len(self.loaders) < _KEPT else None  # (a function that has returned no longer keeps it)
            info = self.loaders[id(loader)] = LoaderInfo(weakref.ref(loader), kept, here(), made)
        info.epochs += 1
        self.tell("loader_begins", info)
        if self.patch is not None:
            loader = self.patch.changed("loader", self, loader)
        if loader.num_workers and not isinstance(loader.dataset, IterableDataset):  # workers cannot be copied
            fetch = object.__new__(type(loader))
            fetch.__dict__.update(loader.__dict__)
            fetch.__dict__.update(num_workers=0, timeout=0, persistent_workers=False)
            loader = fetch
        return _Batches(self, info, plain(loader))

    def seconds(self) -> float:
        """Return the time since the watch was made."""
        return time.perf_counter() - self.started


class _Batches:
    """The iterator of a loader, which tells of each batch."""

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
        if info in watch.open_loaders:
            watch.open_loaders.remove(info)
        try:
            batch = next(self._batches)
        except StopIteration:
            info.finished += 1
            watch.tell("loader_ends", info)
            raise
        info.batches += 1
        watch.open_loaders.append(info)
        watch.tell("batch", info, batch)
        return batch


def _sampled(step: int) -> bool:
    """Return whether the step after the given number of backward passes is traced: seldom, but all along the way."""
    return step % 100 == 99 or step & (step - 1) == 0
