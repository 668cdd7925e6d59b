"""Activation checkpointing, which trades time for memory: `checkpoint`, `checkpoint_sequential`.

A checkpointed function does not keep the tensors that it saves for backward; backward runs the function again to
recompute them. The non-reentrant variant uses hooks on saved tensors: each saved tensor is replaced by an empty slot
in the graph, and unpacking the first slot in backward runs the function again, which fills all slots.
"""

from __future__ import annotations

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
from tinytorch.core.mode import Stop, traced_as
from tinytorch.core.tensor import Tensor
from tinytorch.core.warning import warn
from tinytorch.inspect.calls import Call, Listener
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
    """The recomputation in backward saved other tensors than the original forward pass.

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
    """Return two context managers that do nothing."""
    return nullcontext(), nullcontext()


@traced_as("calls")
def checkpoint(
    function: Callable[..., Any], *args: Any, use_reentrant: bool | None = None,
    context_fn: Callable[[], Contexts] = noop_context_fn, determinism_check: str = "default", debug: bool = False,
    early_stop: bool = True, preserve_rng_state: bool = True, **kwargs: Any,
) -> Any:  # fmt: skip
    """Return `function(*args, **kwargs)`, and keep only the arguments for backward, no intermediate tensors.

    Args:
        function: the function, which runs now and again in backward. It has to compute the same both times.
        args, kwargs: its arguments; `kwargs` need `use_reentrant=False`.
        use_reentrant: False, which is recommended, uses hooks on saved tensors and supports all of autograd. True
            runs the function under `no_grad`, and a nested backward pass inside backward: at least one tensor among
            `args` has to require grad, and only `backward()` without `inputs` is supported.
        determinism_check: "default" compares the shapes, dtypes and devices of the tensors that both runs save;
            "none" compares nothing.

    Raises:
        CheckpointError: in backward, the recomputation saved other tensors than the forward pass.

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

    logs = (_OpLog(), _OpLog()) if _chosen("debug", debug) else None
    if logs is not None and context_fn is not noop_context_fn:
        raise ValueError("debug=True is incompatible with non-default context_fn")
    if determinism_check not in _METADATA:
        raise ValueError(f"determinism_check should be one of {list(_METADATA)}, but got {determinism_check}")
    forward_context, recompute_context = logs or context_fn()
    if not is_grad_enabled():
        return function(*args, **kwargs)
    state = get_rng_state() if preserve_rng_state else None
    autocast_options = _autocast_options()

    def recompute(*args: Any) -> None:
        with fork_rng(enabled=state is not None), autocast(**autocast_options), recompute_context:
            if state is not None:
                set_rng_state(state)
            function(*args, **kwargs)

    frame = _Frame(recompute, args, _chosen("early_stop", early_stop), _METADATA[determinism_check], logs)
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
    """Apply `functions` to `input` in sequence, split into segments; all segments but the last are checkpointed.

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
    warn(
        f"torch.utils.checkpoint.{name}: the use_reentrant parameter should be passed explicitly. Starting in PyTorch "
        "2.9, calling checkpoint without use_reentrant will raise an exception. use_reentrant=False is recommended, "
        "but if you need to preserve the current default behavior, you can pass use_reentrant=True. Refer to docs for "
        "more details on the differences between the two variants.",
        UserWarning,
    )


# The reentrant variant ----------------------------------------------------------------------------


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn if no tensor among `inputs` requires grad."""
    if not any(x.requires_grad for x in inputs if isinstance(x, Tensor)):
        warn("None of the inputs have requires_grad=True. Gradients will be None", UserWarning)


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return `inputs` with all tensors detached; `requires_grad` stays as it is.

    Example:
        >>> from tinytorch.utils.checkpoint import detach_variable
        >>> detach_variable((torch.ones(2, requires_grad=True) * 2, 3))
        (tensor([2., 2.], requires_grad=True), 3)
    """
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}")
    return tuple([x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs])


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """Return the indices of the accelerators that hold tensors in `args`, and the states of their generators.

    Both lists are empty, since the only device is the CPU; `get_rng_state` returns the state of its generator.

    Example:
        >>> torch.utils.checkpoint.get_device_states(torch.ones(2))
        ([], [])
    """
    return [], []


def set_device_states(devices: Sequence[int], states: Sequence[Tensor], *, device_type: str | None = None) -> None:
    """Restore the states that `get_device_states` returned; for the CPU there are none.

    Example:
        >>> torch.utils.checkpoint.set_device_states(*torch.utils.checkpoint.get_device_states())
    """
    if devices:
        without_cuda()


class CheckpointFunction(Function):
    """The reentrant variant: its backward runs the function again, and a nested backward pass through that graph."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        """Return `run_function(*inputs)`, where `args` is `(run_function, preserve_rng_state, *inputs)`."""
        ctx.run_function, ctx.preserve_rng_state, *inputs = args
        check_backward_validity(inputs)
        ctx.autocast_options = _autocast_options()
        if ctx.preserve_rng_state:
            ctx.rng_state = get_rng_state()
        ctx.inputs, ctx.positions = _without_tensors(inputs)
        ctx.save_for_backward(*[inputs[k] for k in ctx.positions])
        with no_grad():
            return ctx.run_function(*inputs)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Return the gradients of the arguments."""
        detached = detach_variable(tuple(_with_tensors(ctx.inputs, ctx.positions, ctx.saved_tensors)))
        with fork_rng(enabled=ctx.preserve_rng_state), enable_grad(), autocast(**ctx.autocast_options):
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
        return (None, None, *(x.grad if isinstance(x, Tensor) else None for x in detached))


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


# The non-reentrant variant ------------------------------------------------------------------------

#: What `set_checkpoint_early_stop` and `set_checkpoint_debug_enabled` set for all checkpoints; None: nothing.
_overriding: dict[str, bool | None] = {"early_stop": None, "debug": None}


def _chosen(option: str, value: bool) -> bool:
    overriding = _overriding[option]
    return value if overriding is None else overriding


@contextmanager
def _override(option: str, value: bool | None) -> Iterator[None]:
    before, _overriding[option] = _overriding[option], value
    try:
        yield
    finally:
        _overriding[option] = before


def set_checkpoint_early_stop(enable: bool) -> AbstractContextManager[None]:
    """Override `early_stop` of all checkpoints whose forward pass runs in this context.

    Example:
        >>> from tinytorch.utils.checkpoint import checkpoint, set_checkpoint_early_stop
        >>> x = torch.tensor(1.0, requires_grad=True)
        >>> with set_checkpoint_early_stop(False):
        ...     y = checkpoint(torch.exp, x, use_reentrant=False)
    """
    return _override("early_stop", enable)


def set_checkpoint_debug_enabled(enabled: bool | None) -> AbstractContextManager[None]:
    """Override `debug` of all checkpoints whose forward pass runs in this context; None overrides nothing.

    Example:
        >>> from tinytorch.utils.checkpoint import checkpoint, set_checkpoint_debug_enabled
        >>> x = torch.tensor(1.0, requires_grad=True)
        >>> with set_checkpoint_debug_enabled(True):
        ...     y = checkpoint(torch.exp, x, use_reentrant=False)
    """
    return _override("debug", enabled)


def _autocast_options() -> dict[str, Any]:
    """Return the arguments of `autocast` that restore the current state of autocasting in the recomputation."""
    return {"device_type": "cpu", "dtype": get_autocast_dtype("cpu"), "enabled": is_autocast_enabled("cpu")}


def _without_tensors(args: Sequence[Any]) -> tuple[list[Any], list[int]]:
    """Return the arguments with None in place of each tensor, and the positions of the tensors."""
    positions = [k for k, x in enumerate(args) if isinstance(x, Tensor)]
    return [None if isinstance(x, Tensor) else x for x in args], positions


def _with_tensors(args: Sequence[Any], positions: Sequence[int], tensors: Sequence[Any]) -> list[Any]:
    """Return the arguments with the tensors at their positions: the inverse of `_without_tensors`."""
    result = list(args)
    for k, tensor in zip(positions, tensors, strict=True):
        result[k] = tensor
    return result


#: By `determinism_check`: the properties of saved tensors that have to be equal in both runs.
_METADATA: dict[str, Callable[[Tensor], Any]] = {
    "default": lambda x: {"shape": x.shape, "dtype": x.dtype, "device": x.device},
    "none": lambda x: None,
}


class _Slot:
    """The placeholder of a saved tensor in the graph: filled by the recomputation, and emptied when it is unpacked."""

    __slots__ = ("__weakref__", "tensor")

    def __init__(self) -> None:
        self.tensor: Any = None


class _StopRecomputation(Stop):
    """All slots are filled, so the rest of the function need not run."""


class _Frame:
    """One call of a checkpointed function: its slots in the order of saving, and the function that recomputes them.

    The frame holds weak references to the slots. A slot lives as long as the node that saved it, and the node's hooks
    keep the frame alive.
    """

    def __init__(
        self,
        recompute: Callable[..., None],
        args: tuple[Any, ...],
        early_stop: bool,
        metadata_of: Callable[[Tensor], Any],
        logs: tuple[_OpLog, _OpLog] | None,
    ) -> None:
        self.recompute, self.early_stop, self.metadata_of, self.logs = (recompute, early_stop, metadata_of, logs)
        self.slots: list[weakref.ref[_Slot]] = []
        self.metadata: list[Any] = []
        self.forward_completed = False
        # A node saves the arguments, as an op saves its inputs: then the hooks of an outer checkpoint see them, too.
        self.args, self.positions = _without_tensors(args)
        anchor = empty(0, requires_grad=True)
        self.saved = _Save.apply(anchor, *[args[k] for k in self.positions]).grad_fn

    def pack(self, x: Tensor) -> _Slot:
        """Return an empty slot in place of a saved tensor."""
        slot = _Slot()
        self.slots.append(weakref.ref(slot))
        self.metadata.append(self.metadata_of(x))
        return slot

    def unpack(self, slot: _Slot) -> Any:
        if slot.tensor is None:
            try:
                self.fill()
            except CheckpointError as error:
                if self.logs is None:
                    raise
                raise CheckpointError(f"{_debug_message(*self.logs)}\n\n{error}") from error
        tensor, slot.tensor = slot.tensor, None
        if tensor is None:
            raise AssertionError("Something went unexpectedly wrong in activation checkpoint.")
        return tensor

    def fill(self) -> None:
        """Run the function again, and put the tensors that it saves into the slots."""
        args = _with_tensors(self.args, self.positions, self.saved.saved_tensors)
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
                return x  # a backward pass inside the function, whose forward pass is not complete yet
            slot = self.slots[number]()
            if slot is not None:
                slot.tensor = x
            if self.early_stop and count == len(self.slots):
                raise _StopRecomputation
            return x

        try:
            with saved_tensors_hooks(pack, lambda x: x), enable_grad():
                self.recompute(*args)
        except _StopRecomputation:
            pass
        if self.forward_completed or count <= len(self.slots):  # otherwise the forward pass has not saved them yet
            self.check(count)

    def check(self, count: int) -> None:
        """Compare the `count` tensors that the recomputation saved with those of the forward pass."""
        if count != len(self.slots):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward and "
                f"recomputation.\nNumber of tensors saved during forward: {len(self.slots)}\n"
                f"Number of tensors saved during recomputation: {count}.\n{_TIP}"
            )
        different = ""
        for number, (reference, metadata) in enumerate(zip(self.slots, self.metadata, strict=True)):
            slot = reference()
            if slot is not None and self.metadata_of(slot.tensor) != metadata:
                different += (
                    f"tensor at position {number}:\nsaved metadata: {metadata}\n"
                    f"recomputed metadata: {self.metadata_of(slot.tensor)}\n"
                )
        if different:
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than "
                f"during the forward pass.\n{different}\n{_TIP}"
            )


class _Save(Function):
    """A node that only saves its inputs."""

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


class _OpLog(Listener):
    """Logs all ops, each with the line of the program that called it."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __enter__(self) -> Any:
        self.lines.clear()
        return super().__enter__()

    def listen(self, call: Call) -> Iterator[None]:
        line = call.line
        self.lines.append(f"{call.name}  ({line.file}:{line.number})")
        yield


def _debug_message(forward: _OpLog, recompute: _OpLog) -> str:
    return (
        "An error happened while unpacking tensors; dumping logs of latest computation because you passed `debug=True` "
        "to `torch.utils.checkpoint.checkpoint()`.\n\n"
        "Operations executed during the original forward:\n\n" + "\n".join(forward.lines) + "\n\n"
        "Operations executed during recomputation:\n\n" + "\n".join(recompute.lines) + "\n\n"
        "You are seeing this error because you passed `debug=True` to checkpoint and the tensors that were saved in "
        "the original forward and during recomputation differ: compare the operations of both, listed above."
    )
