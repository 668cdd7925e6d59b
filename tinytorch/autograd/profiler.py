"""`torch.autograd.profiler`: the time of each op and of each node's backward.

A profile is a dispatch mode: it records every call of an op, and converts the records to events when these are asked
for. A function that is composed of ops (a layer, for example) appears as these ops; work of the engine or of a kernel
without an op, such as filling a new tensor, does not appear. Only the thread that entered the profile is recorded.

Source: PyTorch's `torch.autograd.profiler`.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from time import perf_counter_ns
from typing import Any

import numpy as np

from tinytorch.autograd.function import forward_seen
from tinytorch.autograd.profiler_util import (
    BACKWARD,
    FUNCTION,
    USER,
    EventList,
    FunctionEvent,
    FunctionEventAvg,
    nested,
)
from tinytorch.core.graph import Start
from tinytorch.core.mode import DispatchMode, local
from tinytorch.core.tensor import Tensor
from tinytorch.core.warning import warn

__all__ = ["EventList", "FunctionEvent", "emit_itt", "emit_nvtx", "profile", "record_function"]

_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep


# Recording ----------------------------------------------------------------------------------------


class _Details:
    """What is recorded of a call besides its time, on request."""

    __slots__ = ("memory", "shape", "shapes", "stack")

    def __init__(self, shapes: list[list[int]], stack: list[str]) -> None:
        self.shapes, self.stack = shapes, stack
        self.shape: tuple[int, ...] = ()  # the result's
        self.memory = 0


class EventRecorder(DispatchMode):
    """Records calls, backward steps and user ranges in `records`, in the order in which they started.

    A record is (subject, caller, start, end, details); subject and caller are an op and its caller, or a name and
    `BACKWARD` or `USER`.
    """

    def __init__(self, shapes: bool, memory: bool, stack: bool) -> None:
        self.records: list[Any] = []
        self._shapes, self._memory, self._stack = shapes, memory, stack
        self._detailed = shapes or memory or stack
        self.started = self.stopped = 0
        self.thread = threading.get_ident()

    def start(self) -> None:
        """Start recording in this thread."""
        self.started = perf_counter_ns()
        self.__enter__()

    def stop(self) -> None:
        """Stop recording."""
        self.__exit__()
        self.stopped = perf_counter_ns()

    def call(self, op: Any, caller: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of a call, having recorded its time."""
        run, arguments = caller, args
        if isinstance(op, type):
            run, arguments = forward_seen(self, op)._call, args[1]
        details = self._details_of(arguments, kwargs) if self._detailed else None
        index = self.open(op, caller, details)
        try:
            result = run(*args, **kwargs)
        finally:
            self.close(index)
        if details is not None:
            details.shape = getattr(result, "shape", ())
            if self._memory and run is caller:
                details.memory = allocated(result, (*args, *kwargs.values()))
        return result

    def step(self, node: Any, run: Callable[[], Any]) -> Any:
        """Return the gradients of a node's backward, having recorded its time."""
        if isinstance(node, Start):
            return run()
        index = self.open(node.name(), BACKWARD)
        try:
            return run()
        finally:
            self.close(index)

    def open(self, subject: Any, caller: Any, details: _Details | None = None) -> int:
        """Add a record that starts now, and return its index."""
        records = self.records
        records.append((subject, caller, perf_counter_ns(), None, details))
        return len(records) - 1

    def close(self, index: int) -> None:
        """End a record now; records that are open when the recording stops end with it."""
        if not self.stopped:
            end = perf_counter_ns()
            subject, caller, start, _, details = self.records[index]
            self.records[index] = (subject, caller, start, end, details)

    def _details_of(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Details:
        arguments = (*args, *kwargs.values()) if self._shapes else ()
        shapes = [list(x._array.shape) if isinstance(x, Tensor) else [] for x in arguments]
        return _Details(shapes, _stack() if self._stack else [])


def _current() -> EventRecorder | None:
    return next((mode for mode in local.state.modes or () if isinstance(mode, EventRecorder)), None)


def tensors_in(value: Any) -> Iterator[Tensor]:
    """Yield the tensors in nested lists, tuples and dicts."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple, Mapping)):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from tensors_in(item)


def allocated(result: Any, arguments: Any) -> int:
    """Return the bytes of a result whose memory is not that of an argument."""
    arrays = [tensor._array for tensor in tensors_in(arguments)]
    size = 0
    for tensor in tensors_in(result):
        if not any(np.may_share_memory(tensor._array, array) for array in arrays):
            size += tensor._array.nbytes
    return size


def _stack() -> list[str]:
    """Return the caller's frames as text, the innermost first."""
    frame: Any = sys._getframe()
    lines = []
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(_PACKAGE):
            lines.append(f"{code.co_filename}({frame.f_lineno}): {code.co_name}")
        frame = frame.f_back
    return lines


# From records to events ---------------------------------------------------------------------------

#: PyTorch's names of ops whose own names differ.
_NAMES = {
    "constant_pad": "constant_pad_nd",
    "_cross_entropy": "cross_entropy_loss",
    "_gru_layer": "gru",
    "_lstm_layer": "mkldnn_rnn_layer",
    "_rnn_layer": "rnn_layer",
    "kept": "where",
    "logsigmoid": "log_sigmoid",
}


@functools.cache
def _name(op: Any, caller: Any) -> str:
    """Return PyTorch's name of an op, with an underscore for its in-place form."""
    name = _NAMES.get(op.name, op.name)
    if not name[0].isalpha() or name in ("kernel", "spread"):  # take PyTorch's name from the node
        match = re.fullmatch(r"(\w+?)Backward(?:s|\d+)(\w*)", op.node_class.__name__)
        name = re.sub(r"(?<=.)(?=[A-Z])", "_", match[1] + match[2]).lower() if match else name.strip("_")
    return f"aten::{name}_" if caller.writes else f"aten::{name}"


def _events(recorder: EventRecorder, origin: int, with_flops: bool) -> Iterator[FunctionEvent]:
    """Yield the events of a recorder, with times relative to `origin`."""
    number = 0
    for subject, caller, start, end, details in recorder.records:
        span = ((start - origin) / 1000, ((end or recorder.stopped) - origin) / 1000)
        if caller == BACKWARD:
            enclosing = f"autograd::engine::evaluate_function: {subject}"
            yield FunctionEvent(number, enclosing, recorder.thread, *span)
            yield FunctionEvent(number + 1, subject, recorder.thread, *span, scope=BACKWARD)
            number += 2
            continue
        if caller == USER:
            name, scope = re.sub(r"^ProfilerStep#.*", "ProfilerStep*", subject), USER
        elif isinstance(subject, type):
            name, scope = subject.__name__, FUNCTION
        else:
            name, scope = _name(subject, caller), FUNCTION
        event = FunctionEvent(
            number, name, recorder.thread, *span, scope=scope, trace_name=subject if scope == USER else None
        )
        if details is not None:
            event.input_shapes, event.stack = details.shapes, details.stack
            event.cpu_memory_usage = event.self_cpu_memory_usage = details.memory
            event.flops = _flops(subject, details.shapes, details.shape) if with_flops else 0
        yield event
        number += 1


#: The products that PyTorch's profiler and its counter of operations know.
COUNTED = ("mm", "bmm", "addmm", "baddbmm", "linear")


def _flops(op: Any, shapes: list[list[int]], out: Sequence[int]) -> int:
    """Return the number of floating-point operations of a call, for the ops that PyTorch counts."""
    name = getattr(op, "name", "")
    if name in ("mul", "add"):
        return math.prod(shapes[0])
    return 2 * op.multiply_adds(out, *shapes) if name in COUNTED else 0


# Public classes -----------------------------------------------------------------------------------


class profile:
    """A context manager that times every op and every backward step of this thread.

    Args:
        use_cuda, use_device: warn that the device is not available, as PyTorch does without it.
        record_shapes: record the shapes of the arguments, for `key_averages(group_by_input_shape=True)`.
        with_flops: count the floating-point operations of matrix products, `mul` and `add`.
        profile_memory: record the bytes that ops allocate for their results (freed memory is not subtracted).
        with_stack: record the caller's stack.
        with_modules, use_kineto, use_cpu, post_processing_timeout_s: checked as in PyTorch, without effect.
        experimental_config, activity_filters: not supported.
        acc_events: keep the events when the profiler is started again.
        custom_trace_id_callback: returns the id of the trace.

    Raises:
        RuntimeError: the profile is entered a second time, or inside another profile.

    Example:
        >>> x = torch.ones(64, 512, requires_grad=True)
        >>> with torch.autograd.profiler.profile(profile_memory=True) as prof:
        ...     x.relu().sum().backward()
        >>> for average in prof.key_averages()[:2]:
        ...     print(average.key, average.count, average.cpu_memory_usage)
        aten::relu 1 131072
        aten::sum 1 4
        >>> print(prof.key_averages().table(sort_by="self_cpu_time_total"))  # doctest: +SKIP
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        experimental_config: Any = None,
        acc_events: bool = False,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
        activity_filters: Any = None,
    ) -> None:
        self.enabled = enabled
        self._recorders: list[EventRecorder] = []
        self._function_events: EventList | None = None
        self.entered = False
        self.record_shapes = record_shapes or with_flops
        self.with_flops, self.profile_memory = with_flops, profile_memory
        self.with_stack, self.with_modules = with_stack, with_modules
        self.use_device: str | None = None  # whatever the argument
        self.use_cpu, self.acc_events = use_cpu, acc_events
        self.custom_trace_id_callback = custom_trace_id_callback
        self.trace_id = ""
        if not enabled:
            return
        if experimental_config is not None or activity_filters:
            raise NotImplementedError(
                "profile: experimental_config and activity_filters are settings of PyTorch's C++ profiler, which "
                "tinytorch does not have"
            )
        if use_cuda:
            text = "The attribute `use_cuda` will be deprecated soon, please use ``use_device = 'cuda'`` instead."
            warn(text, FutureWarning)
            use_device = "cuda"
        if not use_cpu and not use_kineto:
            raise AssertionError("Device-only events supported only with Kineto (use_kineto=True)")
        if use_device in ("cuda", "xpu", "hpu", "mtia"):
            device = use_device.upper()
            warn(f"{device} is not available, disabling {device} profiling")
        elif use_device is not None:
            warn(f"The {use_device} is not a valid device option.")
        if not use_cpu:
            raise AssertionError("No activities specified for the profiler")
        if post_processing_timeout_s is not None and post_processing_timeout_s < 0:
            raise ValueError("post_processing_timeout_s must be non-negative")

    def __enter__(self) -> Any:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self._prepare_trace()
        self._start_trace()
        return self

    def __exit__(self, *exc: object) -> None:
        if self.enabled:
            self._recorders[-1].stop()
            self._function_events = None

    def _prepare_trace(self) -> None:
        self.entered = True
        make = self.custom_trace_id_callback
        self.trace_id = make() if make is not None else os.urandom(16).hex().upper()

    def _start_trace(self) -> None:
        if _current() is not None:
            raise RuntimeError("Profiler is already enabled on this thread.")
        if not self.acc_events:
            self._recorders.clear()
        self._recorders.append(EventRecorder(self.record_shapes, self.profile_memory, self.with_stack))
        self._recorders[-1].start()

    @property
    def function_events(self) -> EventList:
        """All events in the order of their start times; none before the end of the profile."""
        if self._function_events is None:
            events: list[FunctionEvent] = []
            if self._finished:
                origin = self._recorders[0].started
                for recorder in self._recorders:
                    events += nested(_events(recorder, origin, self.with_flops))
            self._function_events = EventList(events, profile_memory=self.profile_memory, with_flops=self.with_flops)
        return self._function_events

    @property
    def _finished(self) -> bool:
        return bool(self._recorders and self._recorders[-1].stopped)

    def __str__(self) -> str:
        return self._shown(str)

    def __repr__(self) -> str:
        return self._shown(repr)

    def _shown(self, text_of: Callable[[Any], str]) -> str:
        finished = self._finished or self._function_events is not None
        return text_of(self.function_events) if finished else "<unfinished torch.autograd.profile>"

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int | None = 75,
        max_name_column_width: int | None = 55,
        max_shapes_column_width: int | None = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
    ) -> str:
        """Return a table of all events; see `EventList.table`."""
        return self.function_events.table(
            sort_by, row_limit, max_src_column_width, max_name_column_width, max_shapes_column_width, header,
            top_level_events_only,
        )  # fmt: skip

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """Return the averages of the events by name; see `EventList.key_averages`.

        Example:
            >>> with torch.autograd.profiler.profile() as profile:
            ...     y = torch.ones(2).exp()
            >>> [average.key for average in profile.key_averages()]
            ['aten::exp']
        """
        return self.function_events.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def total_average(self) -> FunctionEventAvg:
        """Return the sum over all events.

        Example:
            >>> with torch.autograd.profiler.profile() as profile:
            ...     y = torch.ones(2).exp()
            >>> profile.total_average().count
            1
        """
        return self.function_events.total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """The sum of all self times, in microseconds."""
        return self.function_events.self_cpu_time_total

    def export_chrome_trace(self, path: str, metadata: dict[str, Any] | None = None) -> None:
        """Write a trace for chrome://tracing or Perfetto.

        Raises:
            AssertionError: the profile has not ended.
        """
        if not self._finished:
            raise AssertionError("Expected profiling results")
        self.function_events.export_chrome_trace(path, {"trace_id": self.trace_id, **(metadata or {})})

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write the stacks of the events with their times; see `EventList.export_stacks`.

        Raises:
            AssertionError: the profile was made without `with_stack=True`.
        """
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        self.function_events.export_stacks(path, metric)


class record_function(contextlib.ContextDecorator):
    """Record the code inside under a name in the profile of this thread, if there is one.

    A context manager (`with record_function("load"):`) and a decorator (`@record_function("load")`); `args` is stored.

    Raises:
        RuntimeError: the name is not a string.

    Example:
        >>> with torch.autograd.profiler.profile() as prof:
        ...     with torch.autograd.profiler.record_function("twice"):
        ...         _ = torch.ones(3) * 2
        >>> [(event.name, event.cpu_parent.name if event.cpu_parent else None) for event in prof.function_events]
        [('twice', None), ('aten::mul', 'twice')]
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self.args = name, args
        self._open: list[tuple[EventRecorder | None, int]] = []  # (a decorated function may be recursive)

    def __enter__(self) -> record_function:
        if not isinstance(self.name, str):
            raise RuntimeError(
                "profiler::_record_function_enter_new() Expected a value of type 'str' for argument 'name' but "
                f"instead found type '{type(self.name).__name__}'."
            )
        recorder = _current()
        self._open.append((recorder, recorder.open(self.name, USER) if recorder else 0))
        return self

    def __exit__(self, *exc: object) -> None:
        if not self._open:
            raise AssertionError("Expected record to be set")
        recorder, index = self._open.pop()
        if recorder is not None:
            recorder.close(index)


class emit_nvtx:
    """Mark every op for NVIDIA's tools: raises an error, as PyTorch does without a GPU.

    Args:
        enabled: False to do nothing.

    Raises:
        AssertionError: (when entered) there is no GPU.

    Example:
        >>> with torch.autograd.profiler.emit_nvtx(enabled=False):
        ...     y = torch.ones(2) * 2
    """

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled, self.record_shapes = enabled, record_shapes

    def __enter__(self) -> None:
        if self.enabled:
            self._refuse()

    def __exit__(self, *exc: object) -> None:
        pass

    def _refuse(self) -> None:
        raise AssertionError("Torch not compiled with CUDA enabled")


class emit_itt(emit_nvtx):
    """Mark every op for Intel's VTune: not supported.

    Raises:
        NotImplementedError: (when entered) always.

    Example:
        >>> with torch.autograd.profiler.emit_itt(enabled=False):
        ...     y = torch.ones(2) * 2
    """

    def _refuse(self) -> None:
        raise NotImplementedError("emit_itt: tinytorch cannot mark ops for VTune; use torch.profiler.profile")
