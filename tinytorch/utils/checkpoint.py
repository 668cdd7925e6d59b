"""Activation checkpoints: `checkpoint`, `checkpoint_sequential`. They trade time for memory.

What a checkpointed function saves for backward is not kept; backward runs the function again when it comes there. In
the variant without reentrance hooks on saved tensors do it: each tensor that is saved leaves an empty slot in the
graph, and the first slot that backward asks for makes the function run again and fill all of them.
"""

from __future__ import annotations

import sys
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from tinytorch.amp.autocast_mode import autocast, get_autocast_dtype, is_autocast_enabled
from tinytorch.autograd.api import backward
from tinytorch.autograd.function import Function
from tinytorch.autograd.grad_mode import enable_grad, is_grad_enabled, no_grad
from tinytorch.autograd.saved import saved_tensors_hooks
from tinytorch.core.device import without_cuda
from tinytorch.core.mode import DispatchMode
from tinytorch.core.tensor import Tensor
from tinytorch.nn.modules.container import Sequential
from tinytorch.ops.create import empty
from tinytorch.ops.random import fork_rng, get_rng_state, set_rng_state

__all__ = [
    "CheckpointError", "CheckpointFunction", "check_backward_validity", "checkpoint", "checkpoint_sequential",
    "detach_variable", "get_device_states", "noop_context_fn", "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop", "set_device_states",
]  # fmt: skip

Contexts = tuple[AbstractContextManager[Any], AbstractContextManager[Any]]


class CheckpointError(RuntimeError):
    """The function did not do the same when it ran again.

    Example:
        >>> calls = []
        >>> def f(x):
        ...     calls.append(x)
        ...     return x.sin() if len(calls) == 1 else x * 2
        >>> x = torch.ones(1, requires_grad=True)
        >>> torch.utils.checkpoint.checkpoint(f, x, use_reentrant=False).backward()
        Traceback (most recent call last):
            ...
        tinytorch.utils.checkpoint.CheckpointError: torch.utils.checkpoint: A different number of tensors was saved...
    """


def noop_context_fn() -> Contexts:
    """Return two contexts that do nothing.

    Example:
        >>> from tinytorch.utils.checkpoint import noop_context_fn
        >>> len(noop_context_fn())
        2
    """
    return nullcontext(), nullcontext()


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], Contexts] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """Return `function(*args, **kwargs)`, keeping nothing of it for backward but the arguments.

    Args:
        function: what to run now, and again in backward. It has to do the same both times.
        args, kwargs: its arguments; `kwargs` need `use_reentrant=False`.
        use_reentrant: False, which is recommended, saves through hooks and takes part in everything that autograd
            does. True runs the function under `no_grad` and a backward of its own inside backward: at least one
            tensor among `args` has to require grad, and only `backward()` without `inputs` works.
        context_fn: makes two context managers, for the run now and for the one in backward.
        determinism_check: "default" compares shape, dtype and device of what both runs save; "none" does not.
        debug: let errors tell the ops of both runs.
        early_stop: in backward, stop as soon as everything needed is there.
        preserve_rng_state: let both runs draw the same random numbers.

    Raises:
        ValueError: options that the reentrant variant does not have; an unknown `determinism_check`.
        CheckpointError: in backward, the function saved other tensors than before.

    Example:
        >>> from tinytorch.utils.checkpoint import checkpoint
        >>> x = torch.tensor([0.0, 1.0], requires_grad=True)
        >>> checkpoint(lambda x: x.exp().exp(), x, use_reentrant=False).sum().backward()
        >>> x.grad
        tensor([ 2.7183, 41.1936])
    """
    if use_reentrant is None:
        _warn_of_default("checkpoint")
        use_reentrant = True
    if use_reentrant:
        if kwargs:
            raise ValueError(f"Unexpected keyword arguments: {','.join(kwargs)}")
        if context_fn is not noop_context_fn or debug:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        return CheckpointFunction.apply(function, preserve_rng_state, *args)

    logs = (_Log(), _Log()) if (debug if _debug is None else _debug) else None
    if logs is not None and context_fn is not noop_context_fn:
        raise ValueError("debug=True is incompatible with non-default context_fn")
    if determinism_check not in _FACTS:
        raise ValueError(f"determinism_check should be one of {list(_FACTS)}, but got {determinism_check}")
    forward_context, recompute_context = logs or context_fn()
    if not is_grad_enabled():
        return function(*args, **kwargs)
    state = get_rng_state() if preserve_rng_state else None
    casts = _casts()

    def run_again(*args: Any) -> None:
        with fork_rng(enabled=state is not None), autocast(**casts), recompute_context:
            if state is not None:
                set_rng_state(state)
            function(*args, **kwargs)

    frame = _Frame(run_again, args, early_stop if _early_stop is None else _early_stop, _FACTS[determinism_check], logs)
    with saved_tensors_hooks(frame.pack, frame.unpack), forward_context:
        result = function(*args, **kwargs)
        frame.forward_completed = True
    if not frame.forward_completed:
        raise RuntimeError(
            "torch.utils.checkpoint: the forward context provided by context_fn suppressed an exception raised "
            "during the checkpointed forward. This is not supported because checkpoint cannot return a value for a "
            "failed forward."
        )
    return result


def checkpoint_sequential(
    functions: Any,
    segments: int,
    input: Any,
    use_reentrant: bool | None = None,
    *,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """Return what `functions` make of `input` one after the other, in segments that are checkpointed but for the last.

    Args:
        functions: a `Sequential`, or a list of modules or functions of one argument.
        use_reentrant, preserve_rng_state: as for `checkpoint`.

    Raises:
        ValueError: other arguments.

    Example:
        >>> from tinytorch.utils.checkpoint import checkpoint_sequential
        >>> x = torch.tensor(0.0, requires_grad=True)
        >>> checkpoint_sequential([torch.exp, torch.exp], 2, x, use_reentrant=False).backward()
        >>> x.grad
        tensor(2.7183)
    """
    if use_reentrant is None:
        _warn_of_default("checkpoint_sequential")
        use_reentrant = True
    if kwargs:
        raise ValueError(f"Unexpected keyword arguments: {','.join(kwargs)}")
    steps = list(functions.children()) if isinstance(functions, Sequential) else functions

    def segment(start: int, stop: int) -> Callable[[Any], Any]:
        def run(value: Any) -> Any:
            for step in steps[start:stop]:
                value = step(value)
            return value

        return run

    size = len(steps) // segments
    last = size * (segments - 1)
    for start in range(0, last, size):
        input = checkpoint(
            segment(start, start + size), input, use_reentrant=use_reentrant, preserve_rng_state=preserve_rng_state
        )
    return segment(last, len(steps))(input)


def _warn_of_default(name: str) -> None:
    warnings.warn(
        f"torch.utils.checkpoint.{name}: the use_reentrant parameter should be passed explicitly. Starting in PyTorch "
        "2.9, calling checkpoint without use_reentrant will raise an exception. use_reentrant=False is recommended, "
        "but if you need to preserve the current default behavior, you can pass use_reentrant=True. Refer to docs for "
        "more details on the differences between the two variants.",
        UserWarning,
        stacklevel=3,
    )


# With reentrance ----------------------------------------------------------------------------------


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn if no tensor among `inputs` requires grad.

    Example:
        >>> from tinytorch.utils.checkpoint import check_backward_validity
        >>> check_backward_validity([torch.ones(2, requires_grad=True), 3])
    """
    if not any(each.requires_grad for each in inputs if isinstance(each, Tensor)):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", UserWarning, stacklevel=2)


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return `inputs` with the tensors detached, but requiring grad as before.

    Raises:
        RuntimeError: `inputs` is no tuple.

    Example:
        >>> from tinytorch.utils.checkpoint import detach_variable
        >>> detach_variable((torch.ones(2, requires_grad=True) * 2, 3))
        (tensor([2., 2.], requires_grad=True), 3)
    """
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}")
    return tuple(
        [each.detach().requires_grad_(each.requires_grad) if isinstance(each, Tensor) else each for each in inputs]
    )


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """Return the numbers of the devices on which tensors in `args` are, and the states of their generators.

    The CPU does not count, so that both are empty; `get_rng_state` has its generator's state.

    Example:
        >>> torch.utils.checkpoint.get_device_states(torch.ones(2))
        ([], [])
    """
    return [], []


def set_device_states(devices: Sequence[int], states: Sequence[Tensor], *, device_type: str | None = None) -> None:
    """Set what `get_device_states` returned: there is nothing to set.

    Raises:
        AssertionError: there are devices, which cannot be.

    Example:
        >>> torch.utils.checkpoint.set_device_states(*torch.utils.checkpoint.get_device_states())
    """
    if devices:
        without_cuda()


class CheckpointFunction(Function):
    """The reentrant variant: its backward runs the function again, and backward through that."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        """Return `run_function(*args)` for `(run_function, preserve_rng_state, *args)`."""
        ctx.run_function, ctx.preserve_rng_state, *inputs = args
        check_backward_validity(inputs)
        ctx.casts = _casts()
        if ctx.preserve_rng_state:
            ctx.rng_state = get_rng_state()
        ctx.inputs = [None if isinstance(each, Tensor) else each for each in inputs]
        ctx.places = [k for k, each in enumerate(inputs) if isinstance(each, Tensor)]
        ctx.save_for_backward(*[inputs[k] for k in ctx.places])
        with no_grad():
            return ctx.run_function(*inputs)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Return the gradients of the arguments."""
        inputs = list(ctx.inputs)
        for k, tensor in zip(ctx.places, ctx.saved_tensors, strict=True):
            inputs[k] = tensor
        detached = detach_variable(tuple(inputs))
        with fork_rng(enabled=ctx.preserve_rng_state), enable_grad(), autocast(**ctx.casts):
            if ctx.preserve_rng_state:
                set_rng_state(ctx.rng_state)
            result = ctx.run_function(*detached)
        outputs = (result,) if isinstance(result, Tensor) else result
        pairs = [
            (output, g)
            for output, g in zip(outputs, grad_outputs, strict=False)
            if isinstance(output, Tensor) and output.requires_grad
        ]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        backward([output for output, _ in pairs], [g for _, g in pairs])
        return (None, None, *(each.grad if isinstance(each, Tensor) else None for each in detached))


class _CheckpointFunctionNode(CheckpointFunction._node_class):  # type: ignore[misc]
    __slots__ = ()

    def backward(self, g: Any, create_graph: bool, needed: Any) -> Any:
        if needed is not None:
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` "
                "parameter to .backward(). To resolve this error, you can either set use_reentrant=False, or call "
                ".backward() without passing the `inputs` argument."
            )
        return super().backward(g, create_graph, needed)


_CheckpointFunctionNode.__name__ = CheckpointFunction._node_class.__name__
CheckpointFunction._node_class = _CheckpointFunctionNode


# Without reentrance -------------------------------------------------------------------------------

_early_stop: bool | None = None
_debug: bool | None = None


@contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Overrule `early_stop` of the checkpoints whose forward runs in this context.

    Example:
        >>> from tinytorch.utils.checkpoint import checkpoint, set_checkpoint_early_stop
        >>> x = torch.tensor(1.0, requires_grad=True)
        >>> with set_checkpoint_early_stop(False):
        ...     y = checkpoint(torch.exp, x, use_reentrant=False)
    """
    global _early_stop
    before, _early_stop = _early_stop, enable
    try:
        yield
    finally:
        _early_stop = before


@contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Overrule `debug` of the checkpoints whose forward runs in this context; None leaves it to them.

    Example:
        >>> from tinytorch.utils.checkpoint import checkpoint, set_checkpoint_debug_enabled
        >>> x = torch.tensor(1.0, requires_grad=True)
        >>> with set_checkpoint_debug_enabled(True):
        ...     y = checkpoint(torch.exp, x, use_reentrant=False)
    """
    global _debug
    before, _debug = _debug, enabled
    try:
        yield
    finally:
        _debug = before


def _casts() -> dict[str, Any]:
    """Return the arguments of `autocast` that say how this thread autocasts now: a second run does so, too."""
    return {"device_type": "cpu", "dtype": get_autocast_dtype("cpu"), "enabled": is_autocast_enabled("cpu")}


#: By `determinism_check`: what has to be the same of the tensors that both runs save.
_FACTS: dict[str, Callable[[Tensor], Any]] = {
    "default": lambda x: {"shape": x.shape, "dtype": x.dtype, "device": x.device},
    "none": lambda x: None,
}


class _Slot:
    """What the graph holds in place of a saved tensor: room for one, filled in backward and emptied when it is used."""

    __slots__ = ("__weakref__", "tensor")

    def __init__(self) -> None:
        self.tensor: Any = None


class _Complete(Exception):
    """All slots are filled: the function need not run to its end."""


class _Frame:
    """One call of a checkpointed function: its slots, in order, and how to run it again.

    It knows the slots weakly. They live as long as the part of the graph that holds them, and this knows the frame.
    """

    def __init__(
        self,
        run_again: Callable[..., None],
        args: tuple[Any, ...],
        early_stop: bool,
        facts_of: Callable[[Tensor], Any],
        logs: tuple[_Log, _Log] | None,
    ) -> None:
        self.run_again, self.early_stop, self.facts_of, self.logs = (run_again, early_stop, facts_of, logs)
        self.slots: list[weakref.ref[_Slot]] = []
        self.facts: list[Any] = []
        self.forward_completed = False
        # The arguments are saved as an op saves its inputs, so that a checkpoint around this one takes care of them.
        self.args = [None if isinstance(each, Tensor) else each for each in args]
        self.places = [k for k, each in enumerate(args) if isinstance(each, Tensor)]
        anchor = empty(0, requires_grad=True)
        self.saved = _Save.apply(anchor, *[args[k] for k in self.places]).grad_fn

    def pack(self, x: Tensor) -> _Slot:
        """Return an empty slot for a tensor that is saved."""
        slot = _Slot()
        self.slots.append(weakref.ref(slot))
        self.facts.append(self.facts_of(x))
        return slot

    def unpack(self, slot: _Slot) -> Any:
        """Return the tensor of a slot, which is empty again."""
        if slot.tensor is None:
            try:
                self.fill()
            except CheckpointError as error:
                if self.logs is None:
                    raise
                raise CheckpointError(f"{_told(*self.logs)}\n\n{error}") from error
        tensor, slot.tensor = slot.tensor, None
        if tensor is None:
            raise AssertionError("Something went unexpectedly wrong in activation checkpoint.")
        return tensor

    def fill(self) -> None:
        """Run the function again, and put what it saves into the slots.

        Raises:
            CheckpointError: it did not save as many tensors as before, or others.
        """
        args = list(self.args)
        for k, tensor in zip(self.places, self.saved.saved_tensors, strict=True):
            args[k] = tensor
        count = 0

        def pack(x: Tensor) -> Tensor:
            nonlocal count
            x = x.detach() if x.requires_grad else x
            number, count = count, count + 1
            if number >= len(self.slots):
                if self.forward_completed:
                    raise CheckpointError(
                        "torch.utils.checkpoint: trying to save more tensors during recomputation than during the "
                        f"original forward pass.\n{_TIP}"
                    )
                return x  # a backward inside the function, which has not been to its end yet
            slot = self.slots[number]()
            if slot is not None:
                slot.tensor = x
            if self.early_stop and count == len(self.slots):
                raise _Complete
            return x

        try:
            with saved_tensors_hooks(pack, lambda x: x), enable_grad():
                self.run_again(*args)
        except _Complete:
            pass
        if self.forward_completed or count <= len(self.slots):  # (else as above: nothing to compare with yet)
            self.check(count)

    def check(self, count: int) -> None:
        """Compare what was saved now with what was saved before."""
        if count != len(self.slots):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward and "
                f"recomputation.\nNumber of tensors saved during forward: {len(self.slots)}\n"
                f"Number of tensors saved during recomputation: {count}.\n{_TIP}"
            )
        different = ""
        for number, (reference, facts) in enumerate(zip(self.slots, self.facts, strict=True)):
            slot = reference()
            if slot is not None and self.facts_of(slot.tensor) != facts:
                different += (
                    f"tensor at position {number}:\nsaved metadata: {facts}\n"
                    f"recomputed metadata: {self.facts_of(slot.tensor)}\n"
                )
        if different:
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than "
                f"during the forward pass.\n{different}\n{_TIP}"
            )


class _Save(Function):
    """Saves its inputs."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        ctx.save_for_backward(*args[1:])
        return args[0]

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> None:
        return None


_TIP = (
    "Tip: To see a more detailed error message, either pass `debug=True` to `torch.utils.checkpoint.checkpoint(...)` "
    "or wrap the code block with `with torch.utils.checkpoint.set_checkpoint_debug_enabled(True):` to enable "
    "checkpoint-debug mode globally."
)


class _Log(DispatchMode):
    """Writes down the ops that it sees, each with the line of the program that called it."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __enter__(self) -> Any:
        self.lines.clear()
        return super().__enter__()

    def call(self, op: Any, caller: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of a call, having written it down."""
        name = op.__name__ if isinstance(op, type) else op.name
        place: Any = sys._getframe(1)
        while place.f_globals.get("__name__", "").split(".")[0] == __name__.split(".")[0]:
            place = place.f_back
        self.lines.append(f"{name}  ({place.f_code.co_filename}:{place.f_lineno})")
        return caller(*args, **kwargs)


def _told(forward: _Log, recompute: _Log) -> str:
    return (
        "An error happened while unpacking tensors; dumping logs of latest computation because you passed `debug=True` "
        "to `torch.utils.checkpoint.checkpoint()`.\n\n"
        "Operations executed during the original forward:\n\n" + "\n".join(forward.lines) + "\n\n"
        "Operations executed during recomputation:\n\n" + "\n".join(recompute.lines) + "\n\n"
        "You are seeing this error because you passed `debug=True` to checkpoint and the tensors that were saved in "
        "the original forward and during recomputation differ: compare the operations of both, listed above."
    )
