"""The state of a thread (is a graph recorded? which modes are on?), and `DispatchMode`, the base of modes.

The state is one small object per thread, `local.state`; an op reads it once per call. Every feature that observes ops
(forward mode, hooks on saved tensors, anomaly detection, the profiler, the compiler's recorder) is a `DispatchMode`,
and costs nothing while it is off.
"""

from __future__ import annotations

import enum
import functools
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, TypeGuard, TypeVar, cast

from tinytorch.core.supplied import bits
from tinytorch.kernels import silence

F = TypeVar("F")


class State:
    """The state of a thread that ops read.

    Attributes:
        grad: whether a graph is recorded.
        inference: whether new tensors are inference tensors.
        asked: the last setting of `enable_grad` or `no_grad` inside inference mode, where no graph is recorded.
        autocast: the `Autocast` mode of the thread; None while autocasting is off.
        modes: the `DispatchMode`s that are on, the innermost last; None if there are none.
        callbacks: functions to call when the running backward pass has ended; None while none runs.
        depth: how many walks backward run in this thread, each called by a node or hook of the one before.
        witness: the mode to which a witnessed function (`Caller.witnessed`) reports what it computes, while it runs.
        run: the innermost `Run` of a function that a transform of `torch.func` differentiates; None outside of them.
        quietly: calls its first argument, a kernel, with the others: see `kernels/silence.py`.
        watch: the look ahead (`graph.Watch`) of the walk in Python that runs in this thread, or None.
        trial: what takes warnings and gives random numbers while calls are tried that nobody may notice; else None.
    """

    __slots__ = (
        "asked",
        "autocast",
        "callbacks",
        "depth",
        "grad",
        "inference",
        "modes",
        "quietly",
        "run",
        "trial",
        "watch",
        "witness",
    )

    modes: tuple[DispatchMode, ...] | None
    callbacks: list[Callable[[], Any]] | None

    def __init__(self) -> None:
        self.grad = True
        self.inference = False
        self.asked = False
        self.autocast: Any = None
        self.modes = self.callbacks = None
        self.witness: Witness | None = None
        self.run: Run | None = None
        self.quietly = silence.runner()
        self.trial: Any = None
        self.watch: Any = None
        self.depth = 0


class _Runs:
    """How many runs have begun, in all threads; a version counter holds the count of when its memory was new."""

    __slots__ = ("begun", "lock")

    def __init__(self) -> None:
        self.begun, self.lock = 0, threading.Lock()


runs = _Runs()


class Run:
    """A run of a function that a transform differentiates: it must not write to tensors that it captures.

    Attributes:
        number: memory of before the run has a lower one in its version counter.
        cells: the version counters of the function's arguments, by id: it may write to these.
        active: whether the function is running.
    """

    active = False

    def __init__(self, *arguments: Any) -> None:
        self.cells: dict[int, Any] = {}
        for each in arguments:
            self.take(each)
        with runs.lock:
            runs.begun += 1
            self.number = runs.begun

    def take(self, x: Any) -> None:
        """Let the function write to a tensor, which is one of its arguments."""
        self.cells[id(x._cell)] = x._cell

    @contextmanager
    def running(self) -> Iterator[None]:
        """Let this be the innermost run of the thread."""
        state = local.state
        outer, state.run, self.active = state.run, self, True
        try:
            yield
        finally:
            state.run, self.active = outer, False

    def check(self, x: Any) -> None:
        """Raise PyTorch's error for a write to a captured tensor."""
        cell = x._cell
        if cell is not None and cell[1] < self.number and id(cell) not in self.cells:
            raise RuntimeError(
                "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call in-place "
                "operation that would mutate a captured Tensor. This is not supported; please rewrite the function "
                "being transformed to explicitly accept the mutated Tensor(s) as inputs."
            )


class PerThread(threading.local):
    """A base of what is kept per thread, which a call takes along to another stack."""

    def __new__(cls) -> Any:
        """Return the one object of a class, and note it."""
        made = super().__new__(cls)
        _per_thread.append(made)
        return made


_per_thread: list[PerThread] = []


def on_another_stack(call: Callable[[], Any]) -> Any:
    """Return the result of a call that runs in a thread of its own, as if it were this one: its stack is empty."""
    states = [(each, dict(vars(each))) for each in _per_thread]
    ended: list[Any] = []

    def run() -> None:
        for each, state in states:
            vars(each).update(state)
        try:
            ended.extend((call(), None))
        except BaseException as error:  # any class: it is raised again
            ended.extend((None, error))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    result, error = ended
    ended.clear()
    if error is None:
        return result
    try:
        raise error
    finally:
        del error  # (which refers to this frame)


@contextmanager
def unnoticed(trial: Any) -> Iterator[None]:
    """Let a `with` block run in the state of a new thread: no mode of the thread sees it.

    Args:
        trial: the only mode, which also takes warnings (`warned`) and gives random numbers (`source`).
    """
    before, grad = [(each, dict(vars(each))) for each in _per_thread], local.state.grad
    local.state = State()
    local.state.grad, local.state.modes, local.state.trial = grad, (trial,), trial
    try:
        for each, _ in before:
            if each is not local:
                vars(each).clear()
                each.__init__()  # type: ignore[misc]
        yield
    finally:
        for each, state in before:
            vars(each).clear()
            vars(each).update(state)


class _Local(PerThread):
    def __init__(self) -> None:
        self.state = State()
        self.multithreading = True


local = _Local()


class _FunctionModes:
    """How many `TorchFunctionMode`s are on, in all threads: while there are none, only arguments' classes matter."""

    __slots__ = ("lock", "on")

    def __init__(self) -> None:
        self.on, self.lock = 0, threading.Lock()


function_modes = _FunctionModes()
#: Classes that are known to override and to receive nothing; the elements of lists and tuples are looked at.
plain: set[type] = {int, float, bool, type(None), str, slice, type(Ellipsis)}


class Event(enum.Enum):
    """What happens to tensors besides calls of ops and nodes that run backward; the facts of a kind stand first.

    A write `counts` if it increments the tensor's version.
    """

    READ = enum.auto()  # x, truth: Python reads the values of a tensor, or its truth value alone
    WRITES = enum.auto()  # x: something other than an op will write into a tensor
    WROTE = enum.auto()  # function, array, args, counts: `function(array, *args)` writes, which is no op
    COPIED = enum.auto()  # array, copy: something other than an op has copied an array
    KNOWN = enum.auto()  # x: a tensor's elements depend on shapes and dtypes alone
    MADE = enum.auto()  # x: a creation function has returned a tensor
    DRAWS = enum.auto()  # source: an op, or a fill, will draw random numbers from a source
    FILLED = enum.auto()  # x, kernel, args: `kernel(array, *args)` will fill a tensor with random numbers
    DETACHED = enum.auto()  # x, alias: the tensor `alias`, on the memory of `x`, is no part of the graph
    FORGOTTEN = enum.auto()  # x: a tensor is detached from the graph in place (`detach_`)


def on(*kinds: Event) -> Callable[[F], F]:
    """Return a decorator of the method of a mode that takes the facts of certain events."""

    def declare(method: F) -> F:
        cast(Any, method).takes_events = kinds
        return method

    return declare


class DispatchMode:
    """A context manager that receives what happens in its thread: calls of ops, nodes run backward, and other events.

    While a mode handles a call it is off, and the ops that it calls are received by the modes outside it: modes nest as
    levels.
    """

    sees_leaves = True  # whether its `step` receives the nodes of leaves, whose gradients are then copied

    _methods: ClassVar[dict[Event, Callable[..., None]]] = {}

    def __init_subclass__(cls) -> None:
        """Collect the methods that take events."""
        own = {kind: each for each in vars(cls).values() for kind in getattr(each, "takes_events", ())}
        cls._methods = cls._methods | own

    def __enter__(self) -> Any:
        state = local.state
        modes = state.modes or ()
        # Autocasting stays the innermost mode: the other modes see the arguments that it has converted.
        inner = len(modes) - (state.autocast is not None and state.autocast in modes[-1:])
        state.modes = (*modes[:inner], self, *modes[inner:])
        return self

    def __exit__(self, *exc: object) -> None:
        state = local.state
        state.modes = tuple([mode for mode in state.modes or () if mode is not self]) or None

    def call(self, op: Any, caller: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return `caller(*args, **kwargs)`, a call of `op` (an `Op`, or a subclass of `Function`)."""
        return caller(*args, **kwargs)

    def step(self, node: Any, run: Callable[[], Any]) -> Any:
        """Return `run()`, the gradients of the inputs of `node`, which a backward pass has reached."""
        return run()

    def event(self, kind: Event, **facts: Any) -> None:
        """Notice an event, by the method that is declared for its kind (`on`)."""
        method = self._methods.get(kind)
        if method is not None:
            method(self, **facts)

    def unseen(self, run: Callable[[], Any]) -> Any:
        """Return `run()`, of which this mode receives nothing."""
        state = local.state
        modes = state.modes
        state.modes = tuple([mode for mode in modes or () if mode is not self]) or None
        try:
            return run()
        finally:
            state.modes = modes


class ForwardLevel(DispatchMode):
    """A level of forward mode: it computes derivatives of the calls that it sees."""

    def tangent(self, x: Any) -> Any:
        """Return the tangent of a tensor at this level, or None."""
        return None


class BatchLevel(DispatchMode):
    """A level of `vmap`; `transforms` says whether `torch.func.vmap` has entered it."""

    transforms = False

    def apart(self, x: Any) -> Any:
        """Return a new tensor that will be filled with random numbers, or the one that takes its place."""
        raise NotImplementedError

    def fills(self, x: Any, again: Callable[..., Any], args: tuple[Any, ...]) -> bool:
        """Return whether this level fills a tensor with random numbers itself.

        Args:
            x: the tensor.
            again: `again(x, *args)` fills a tensor, and returns it.
            args: the arguments of the kernel.
        """
        raise NotImplementedError


class Witness(DispatchMode):
    """A mode to which witnessed functions (`Caller.witnessed`) report the kernels that they run."""

    def computed(self, op: Any, values: tuple[Any, ...], arrays: tuple[Any, ...], results: list[Any]) -> None:
        """Notice that a call has computed `op.kernel(*arrays)`.

        Args:
            op: the op.
            values: the arguments of the call: tensors, numbers, ...
            arrays: the arguments of the kernel, by the op's signature.
            results: the arrays that the kernel returned, residuals last.
        """

    def laid(self, array: Any, copy: Any, operands: list[Any]) -> None:
        """Notice that the result `array` of a call was replaced by `copy`: `arranged(array, *operands)`."""

    def writes(self, op: Any, values: tuple[Any, ...], arrays: Any, kernel: Any) -> None:
        """Notice that a call will write into its first argument.

        Args:
            op, values, arrays: as in `computed`.
            kernel: the function that writes into the first of `arrays`; None if the result of `op.kernel` is copied.
        """

    def overwrites(self, array: Any, copy: Any) -> None:
        """Notice that a call has copied the array that it will write into, for its formulas."""


class Stop(Exception):
    """Raised by a hook of a mode to end the function that calls an op; `result` is what the op has returned."""

    result: Any = None


def dispatch(op: Any, caller: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Hand a call to the innermost mode."""
    state = local.state
    modes = state.modes
    assert modes is not None
    given = (*args, *kwargs.values())
    if not plain.issuperset(map(type, given)) and any(map(is_lazy, elements(given))):
        return bits.resolving(caller, args, kwargs)
    state.modes = modes[:-1] or None
    try:
        return modes[-1].call(op, caller, args, kwargs)
    finally:
        state.modes = modes


def is_lazy(x: Any) -> TypeGuard[Any]:
    """Return whether a tensor is a lazy conjugate or negative; modes receive calls of other tensors alone."""
    return hasattr(type(x), "_conjugated")


def without_bits(x: Any) -> Any:
    """Return a tensor in memory of its own if it is a lazy conjugate or negative, else `x`."""
    return bits.resolved(x) if is_lazy(x) else x


def innermost(x: Any) -> Any:
    """Return the tensor that has the memory, and the place in the graph, of a lazy or a batched one."""
    while (under := getattr(x, "_under", None)) is not None:
        x = under
    return x


def elements(args: Iterable[Any]) -> Iterator[Any]:
    """Yield arguments, and the elements of those that are sequences."""
    for each in args:
        if isinstance(each, (list, tuple)):
            yield from each
        else:
            yield each


def in_vmap() -> bool:
    """Return whether a level of `vmap` is on in this thread."""
    return any([isinstance(mode, BatchLevel) for mode in local.state.modes or ()])


def tangents_of(x: Any) -> list[Any]:
    """Return the tangents of a tensor at the levels of forward mode at which it has one, the innermost first."""
    levels = [mode for mode in reversed(local.state.modes or ()) if isinstance(mode, ForwardLevel)]
    return [tangent for level in levels if (tangent := level.tangent(x)) is not None]


def tell_of_reading(x: Any, truth: bool = False) -> None:
    """Notify the modes that Python reads the values of a tensor, or only its truth value."""
    for mode in local.state.modes or ():
        mode.event(Event.READ, x=x, truth=truth)


def dispatch_step(node: Any, run: Callable[[], Any]) -> Any:
    """Run the backward of a node inside the `step` of every mode; modes also receive the ops in it."""
    for mode in local.state.modes or ():
        run = functools.partial(mode.step, node, run)
    return run()


def arriving(run: Any) -> Any:
    """Return the gradient that a node gets, of several outputs a list, from the `run` of a mode's `step`."""
    while isinstance(inner := run.args[-1], functools.partial):
        run = inner  # (several modes are on)
    return run.args[0]


def set_grad(mode: bool) -> bool:
    """Set the value of `is_grad_enabled` and return the previous one; in inference mode it has no other effect."""
    state = local.state
    if state.inference:
        before, state.asked = state.asked, mode
    else:
        before, state.grad = state.grad, mode
    return before


@contextmanager
def recording(on: bool) -> Iterator[None]:
    """Enable or disable recording in a `with` block: `enable_grad` and `no_grad` for internal use."""
    before = set_grad(on)
    try:
        yield
    finally:
        set_grad(before)


def traced_as(policy: str, registry: Any = None) -> Callable[[F], F]:
    """Return a decorator that declares how `torch.compile` treats a function while it traces a call.

    A module or package declares the policy of all the functions and classes in it by a global, `__traced_as__`.

    Args:
        policy: "op", "pure" or another one: `compiler/policy.py` says what they mean.
        registry: a dictionary of functions on which the result of a trusted function depends.
    """

    def declare(function: F) -> F:
        declared: Any = function
        declared.__traced_as__, declared.__traced_registry__ = policy, registry
        return function

    return declare


def short(name: str, *others: Any) -> Callable[[F], F]:
    """Return a decorator that declares the twin of a function: its name in methods.c, and what it calls."""

    def declare(function: F) -> F:
        declared: Any = function
        declared.twin = function, name, others  # (`functools.wraps` copies it to functions that have none)
        return function

    return declare


def alike(op: Any) -> Callable[[F], F]:
    """Return a decorator that declares: an op computes each call of the function that has no error and no mode."""

    def declare(function: F) -> F:
        declared: Any = function
        declared.twin = function, op
        return function

    return declare
