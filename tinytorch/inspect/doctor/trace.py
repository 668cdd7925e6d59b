"""The ops of one training step: which op made which tensor, at which line, in which module."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

from tinytorch.autograd.profiler import tensors_in
from tinytorch.core.mode import Event, local, on
from tinytorch.core.tensor import Tensor
from tinytorch.inspect import calls
from tinytorch.inspect.doctor.place import Place, here
from tinytorch.nn.parameter import is_lazy

__all__ = ["MOST_ORDERED", "Call", "LossCall", "Trace", "Tracer", "data_of", "loss_of"]

#: How many calls are kept before and in the first step; of a later one, a fifth (it has many time steps, alike).
_MOST = 20_000
#: Elements of a tensor that is kept although no gradient flows through it.
_LARGE = 100_000
#: Elements of a tensor whose elements are put into another order.
MOST_ORDERED = 10_000_000


def data_of(op: Any, args: Any) -> Tensor | None:
    """Return what an op multiplies with a parameter; None if it does not, or that has a graph."""
    multiplies = getattr(op, "multiply_adds", None) is not None or name_of(op) == "mul"
    values = [x for x in args if isinstance(x, Tensor)] if multiplies else []
    given = [x for x in values if not x.requires_grad and x.dtype.is_floating_point and x.numel() > 8]
    return given[0] if given and any(x.is_leaf and x.requires_grad for x in values) else None


def name_of(op: Any) -> str:
    """Return the name of an op, or of what records like one."""
    return str(getattr(op, "name", None) or getattr(op, "__name__", ""))


def loss_of(op: Any) -> str | None:
    """Return the kind of a loss, which a difference may be, too; None for other ops."""
    return "value" if name_of(op) == "sub" else getattr(op, "loss", None)


class Call(calls.Call):
    """A call of an op, with the user's line, and the module whose forward ran.

    Attributes:
        criterion: the loss module that ran, or None.
    """

    __slots__ = ("criterion", "module", "owner", "place")

    place: Place
    module: str
    owner: Any
    criterion: Any

    @property
    def is_view(self) -> bool:
        """Whether the result has values of the first argument, in another shape."""
        return bool(getattr(self.op, "view", False)) or self.name == "clone"


class LossCall:
    """A call of a loss function.

    Attributes:
        kind: what its input has: see `loss` of `core.op.op`.
        input, target: its arguments.
        call: the call of the op.
    """

    def __init__(self, kind: str, input: Tensor, target: Tensor, call: Call) -> None:
        self.kind, self.input, self.target, self.call = kind, input, target, call

    def score(self) -> tuple[str, float] | None:
        """Return how good the predictions are: ("accuracy", share) or ("error", mean squared error), or None."""
        x, y = self.input._array, self.target._array
        if not x.size or not np.isfinite(x).all():
            return None
        if self.kind in ("class", "nll"):
            if x.ndim != y.ndim + 1 or x.shape[1 if x.ndim > 1 else 0] < 2:
                return None
            return "accuracy", float((x.argmax(1 if x.ndim > 1 else 0) == y).mean())
        if x.size != y.size:
            return None
        y = y.reshape(x.shape)
        if self.kind in ("logit", "prob"):
            return "accuracy", float(((x > (0 if self.kind == "logit" else 0.5)) == (y > 0.5)).mean())
        return "error", float(np.square(x.astype(np.float64) - y).mean())


class Trace:
    """The calls since the last backward pass."""

    def __init__(self, first: bool = True) -> None:
        self.first = first
        self.calls: list[Call] = []
        self.made: dict[int, Call] = {}  # by the id of the result
        self.losses: list[LossCall] = []

    def add(self, call: Call) -> None:
        """Keep a call."""
        if len(self.calls) >= (_MOST if self.first else _MOST // 5):
            return
        self.calls.append(call)
        for each in tensors_in(call.out):
            self.made[id(each)] = call
        kind = loss_of(call.op)
        if kind is not None:
            args = call.args
            if len(args) < 2 or not isinstance(args[0], Tensor) or not isinstance(args[1], Tensor):
                return
            x, y = args[:2]
            if call.name == "sub" and y.requires_grad and not x.requires_grad:
                x, y = y, x
            if x.requires_grad and not y.requires_grad and (call.name != "sub" or self._is_output(x)):
                self.losses.append(LossCall(kind, x, y, call))

    def _is_output(self, x: Tensor) -> bool:
        """Return whether a tensor was computed by a model, and is not a parameter."""
        return not x.is_leaf

    def maker(self, x: Any, views: bool = False, casts: bool = False) -> Call | None:
        """Return the call that made a tensor, or the last one before views and changes of dtype."""
        call = self.made.get(id(x))
        while call is not None and ((views and call.is_view) or (casts and call.name == "to")) and call.inputs:
            before = self.made.get(id(call.inputs[0]))
            if before is call:  # an op that writes into its argument
                break
            call = before
        return call

    def leads(self, x: Any, y: Any, depth: int = 4) -> bool:
        """Return whether `y` was computed from `x` by a few ops."""
        if x is y:
            return True
        call = self.made.get(id(y))
        return call is not None and depth > 0 and any(self.leads(x, each, depth - 1) for each in call.inputs)

    def before(self, x: Any) -> Call | None:
        """Return the call that computed a tensor's values, before views and changes of shape."""
        return self.maker(x, views=True, casts=True)

    def source(self, x: Any) -> Call | None:
        """Return the call that made a tensor, before views and changes of shape, but not of dtype."""
        return self.maker(x, views=True)


#: Ops whose results are looked at before training, while the data are prepared.
_EARLY = ("div", "log")
#: Those by which a program updates a parameter itself.
_UPDATES = ("sub", "add", "addcmul", "addcdiv")


class Tracer(calls.Listener):
    """Keeps the calls of ops in the steps that are traced, and hands those of a counterfactual to its patch."""

    kind = Call

    def __init__(self, watch: Any) -> None:
        self.watch = watch
        self.on = False
        self.trace = Trace()
        self.origins: dict[int, tuple[Any, Place]] = {}  # the lines that made large tensors before training, by id

    def origin(self, x: Tensor) -> Place | None:
        """Return the line that made a tensor of data, if that was seen."""
        reference, place = self.origins.get(id(x), (None, None))
        if reference is not None and reference() is x:
            return place
        call = self.trace.made.get(id(x))
        return call.place if call is not None else None

    def __enter__(self) -> Any:
        if not self.on:
            self.on = True
            super().__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        if self.on:
            self.on = False
            super().__exit__(*exc)

    def next_step(self, traced: bool) -> None:
        """Begin a new step."""
        self.trace = Trace(first=False)
        if traced:
            self.__enter__()
        else:
            self.__exit__()

    @on(Event.FILLED)
    def _filled(self, x: Any, **facts: Any) -> None:
        """Notice that a tensor is filled with random numbers."""
        if not self.watch.backwards:
            self.watch.note_filled(x)
        self.watch.drawn |= x.dtype.is_floating_point and x.numel() > 1

    @on(Event.DETACHED, Event.READ)
    def _cut(self, x: Any, alias: Any = None, **facts: Any) -> None:
        """Notice `detach()` and `.data`, `item()`, `tolist()` and the like."""
        watch = self.watch
        if not watch.in_backward and x.requires_grad and not is_lazy(x):
            if watch.patch is not None:
                watch.patch.tell("cut", watch, x, alias)
            watch.tell("cut", x, alias)

    def step(self, node: Any, run: Any) -> Any:
        """Run a node of a backward pass."""
        gradients = run()
        if self.watch.patch is not None:
            self.watch.patch.tell("node", self.watch, node, gradients)
        return gradients

    def listen(self, call: Call) -> Iterator[None]:
        """Keep a call, if a graph is recorded."""
        watch = self.watch
        if watch.in_backward:
            yield
            return
        name, args = call.name, call.args
        if local.state.grad and any([each.requires_grad for each in tensors_in(args)]):
            watch.on_start()
        if watch.patch is not None:
            plain = call.caller
            call.caller = lambda *args, **kwargs: watch.patch.op(watch, name, plain, args, kwargs)
        yield
        out = call.out
        if args and out is args[0] and isinstance(out, Tensor):
            if not watch.backwards:
                watch.note_filled(out)
            elif name in _UPDATES and not local.state.grad and out.is_leaf and out.requires_grad:
                watch.updated_at = watch.updated_at or here()
        early = name in _EARLY and not watch.backwards and watch.early is None and not _is_finite(out)
        if early and all(map(_is_finite, tensors_in(args))):
            watch.early = name, here(), [float(np.abs(each._array).min()) for each in tensors_in(args)]
        ordered = name == "_index" and args[0].numel() <= MOST_ORDERED
        large = isinstance(out, Tensor) and out.numel() > _LARGE and not getattr(call.op, "view", False) and not ordered
        if large and not out.requires_grad and not watch.stack:
            if not watch.backwards and len(self.origins) < _MOST:
                self.origins[id(out)] = (weakref.ref(out), here())
            return  # (a part of the data set, say, which would be kept until the first backward pass)
        call.owner = watch.stack[-1] if watch.stack else None
        call.module, call.criterion = watch.path(), watch.criterion
        call.place = watch.line_of(here(), call.owner)
        self.trace.add(call)


def _is_finite(x: Any) -> bool:
    array = x._array if isinstance(x, Tensor) else np.zeros(0)
    return array.dtype.kind not in "fc" or bool(np.isfinite(array).all())
