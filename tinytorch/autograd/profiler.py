"""`torch.autograd.profiler`: how long each op and each step backward took.

A profile is a dispatch mode: it notes every call of an op, and makes events of the notes only when these are asked
for. Functions that consist of ops (`F.softmax`, a layer) show as these; what the engine or a kernel does without an
op, such as filling a new tensor, does not show. Only the thread that entered the profile is seen.

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
import warnings
from collections.abc import Callable, Iterator, Mapping
from time import perf_counter_ns
from typing import Any

import numpy as np

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

__all__ = ["EventList", "FunctionEvent", "emit_itt", "emit_nvtx", "profile", "record_function"]

_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep


# Recording ----------------------------------------------------------------------------------------


class _Notes:
    """What is noted of a call besides its time, if asked for."""

    __slots__ = ("memory", "shape", "shapes", "stack")

    def __init__(self, shapes: list[list[int]], stack: list[str]) -> None:
        self.shapes, self.stack = shapes, stack
        self.shape: tuple[int, ...] = ()  # the result's
        self.memory = 0


class Recorder(DispatchMode):
    """Notes calls, steps and ranges: `records`, in the order in which they started.

    A record is (subject, caller, start, end, notes): an op and its caller; or a name and `BACKWARD` or `USER`.
    """

    def __init__(self, shapes: bool, memory: bool, stack: bool) -> None:
        self.records: list[Any] = []
        self._shapes, self._memory, self._stack = shapes, memory, stack
        self._noting = shapes or memory or stack
        self._functions: dict[Any, Any] = {}
        self.started = self.stopped = 0
        self.thread = threading.get_ident()

    def start(self) -> None:
        """Begin to record in this thread."""
        self.started = perf_counter_ns()
        self.__enter__()

    def stop(self) -> None:
        """End it."""
        self.__exit__()
        self.stopped = perf_counter_ns()

    def call(self, op: Any, caller: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of a call, whose time is noted."""
        run, given = caller, args
        if isinstance(op, type):
            run, given = self._in_sight(op)._call, args[1]
        notes = self._note(given, kwargs) if self._noting else None
        place = self.open(op, caller, notes)
        try:
            result = run(*args, **kwargs)
        finally:
            self.close(place)
        if notes is not None:
            notes.shape = getattr(result, "shape", ())
            if self._memory and run is caller:
                notes.memory = allocated(result, (*args, *kwargs.values()))
        return result

    def step(self, node: Any, run: Callable[[], Any]) -> Any:
        """Return the result of a step backward, whose time is noted."""
        if isinstance(node, Start):
            return run()
        place = self.open(node.name(), BACKWARD)
        try:
            return run()
        finally:
            self.close(place)

    def open(self, subject: Any, caller: Any, notes: _Notes | None = None) -> int:
        """Note that something begins now, and return the place of its record."""
        records = self.records
        records.append((subject, caller, perf_counter_ns(), None, notes))
        return len(records) - 1

    def close(self, place: int) -> None:
        """Note that it ends now; what has not ended when the recording stops ends with that."""
        if not self.stopped:
            end = perf_counter_ns()
            subject, caller, start, _, notes = self.records[place]
            self.records[place] = (subject, caller, start, end, notes)

    def _in_sight(self, function: Any) -> Any:
        """Return a custom Function whose `forward`, which is made of ops, is seen too."""
        found = self._functions.get(function)
        if found is None:

            def forward(*args: Any) -> Any:
                with self:
                    return function.forward(*args)

            found = self._functions[function] = type(function)(
                function.__name__, (function,), {"forward": staticmethod(forward)}
            )
        return found

    def _note(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Notes:
        given = (*args, *kwargs.values()) if self._shapes else ()
        shapes = [list(each._array.shape) if isinstance(each, Tensor) else [] for each in given]
        return _Notes(shapes, _stack() if self._stack else [])


def _current() -> Recorder | None:
    return next((mode for mode in local.state.modes or () if isinstance(mode, Recorder)), None)


def tensors_in(value: Any) -> Iterator[Tensor]:
    """Give the tensors in nested lists, tuples and dicts."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple, Mapping)):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from tensors_in(each)


def allocated(result: Any, given: Any) -> int:
    """Return the bytes of a result that are new memory, not that of an argument."""
    arrays = [tensor._array for tensor in tensors_in(given)]
    size = 0
    for tensor in tensors_in(result):
        if not any(np.may_share_memory(tensor._array, array) for array in arrays):
            size += tensor._array.nbytes
    return size


def _stack() -> list[str]:
    """Return the lines of the caller's code, the innermost first."""
    frame: Any = sys._getframe()
    lines = []
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(_PACKAGE):
            lines.append(f"{code.co_filename}({frame.f_lineno}): {code.co_name}")
        frame = frame.f_back
    return lines


# From records to events ---------------------------------------------------------------------------

#: Ops whose names are not PyTorch's.
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
    if not name[0].isalpha() or name in ("kernel", "spread"):  # the node's name is PyTorch's
        known = re.fullmatch(r"(\w+?)Backward(?:s|\d+)(\w*)", op.node_class.__name__)
        name = re.sub(r"(?<=.)(?=[A-Z])", "_", known[1] + known[2]).lower() if known else name.strip("_")
    return f"aten::{name}_" if caller.writes else f"aten::{name}"


def _events(recorder: Recorder, origin: int, with_flops: bool) -> Iterator[FunctionEvent]:
    """Yield the events that a recorder noted, with times since `origin`."""
    number = 0
    for subject, caller, start, end, notes in recorder.records:
        span = ((start - origin) / 1000, ((end or recorder.stopped) - origin) / 1000)
        if caller == BACKWARD:
            around = f"autograd::engine::evaluate_function: {subject}"
            yield FunctionEvent(number, around, recorder.thread, *span)
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
        if notes is not None:
            event.input_shapes, event.stack = notes.shapes, notes.stack
            event.cpu_memory_usage = event.self_cpu_memory_usage = notes.memory
            event.flops = _flops(name, notes) if with_flops else 0
        yield event
        number += 1


def _flops(name: str, notes: _Notes) -> int:
    """Return the floating-point operations of a call, of the kinds that PyTorch counts."""
    shapes = notes.shapes
    if name in ("aten::mul", "aten::add"):
        return math.prod(shapes[0])
    if name in ("aten::mm", "aten::bmm", "aten::linear"):
        factors = shapes[:2]
    elif name in ("aten::addmm", "aten::baddbmm"):
        factors = shapes[1:3]
    else:
        return 0
    # The root of (m k) (k n) (m n) is m k n, however the factors are transposed.
    batch = notes.shape[0] if "bmm" in name else 1
    whole = math.prod(factors[0]) * math.prod(factors[1]) * math.prod(notes.shape)
    return 2 * math.isqrt(whole // max(batch, 1))


# What users see -----------------------------------------------------------------------------------


class profile:
    """Inside, every op and every step backward of this thread is timed (a context manager).

    Args:
        enabled: False to do nothing.
        use_cuda, use_device: warn that the device is not available, as PyTorch does without it.
        record_shapes: note the shapes of the arguments, for `key_averages(group_by_input_shape=True)`.
        with_flops: count the floating-point operations of matrix products, `mul` and `add`.
        profile_memory: note the bytes that ops allocate for their results. (What is freed is not subtracted.)
        with_stack: note the lines of the caller's code.
        with_modules: accepted; as in PyTorch it matters to TorchScript only.
        use_kineto, use_cpu, post_processing_timeout_s: checked as in PyTorch, and otherwise of no effect.
        experimental_config, activity_filters: left out.
        acc_events: keep events when the profiler is started again.
        custom_trace_id_callback: gives the trace its id.

    Raises:
        RuntimeError: it is entered a second time, or inside another profile.

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
        self._recorders: list[Recorder] = []
        self._function_events: EventList | None = None
        self.entered = False
        self.record_shapes = record_shapes or with_flops
        self.with_flops, self.profile_memory = with_flops, profile_memory
        self.with_stack, self.with_modules = with_stack, with_modules
        self.use_device: str | None = None  # whatever was asked for
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
            warnings.warn(text, FutureWarning, stacklevel=2)
            use_device = "cuda"
        if not use_cpu and not use_kineto:
            raise AssertionError("Device-only events supported only with Kineto (use_kineto=True)")
        if use_device in ("cuda", "xpu", "hpu", "mtia"):
            device = use_device.upper()
            warnings.warn(f"{device} is not available, disabling {device} profiling", stacklevel=2)
        elif use_device is not None:
            warnings.warn(f"The {use_device} is not a valid device option.", stacklevel=2)
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
        self._recorders.append(Recorder(self.record_shapes, self.profile_memory, self.with_stack))
        self._recorders[-1].start()

    @property
    def function_events(self) -> EventList:
        """All events in the order of their starts; none before the end of the profile."""
        if self._function_events is None:
            found: list[FunctionEvent] = []
            if self._finished:
                origin = self._recorders[0].started
                for recorder in self._recorders:
                    found += nested(_events(recorder, origin, self.with_flops))
            self._function_events = EventList(found, profile_memory=self.profile_memory, with_flops=self.with_flops)
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
            >>> [each.key for each in profile.key_averages()]
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
        """The sum of all self times: the microseconds that were spent inside events."""
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
    """Give what runs inside a name of its own in the profile of this thread, if there is one.

    A context manager (`with record_function("load"):`) and a decorator (`@record_function("load")`); `args` is kept.

    Raises:
        RuntimeError: the name is no string.

    Example:
        >>> with torch.autograd.profiler.profile() as prof:
        ...     with torch.autograd.profiler.record_function("twice"):
        ...         _ = torch.ones(3) * 2
        >>> [(event.name, event.cpu_parent.name if event.cpu_parent else None) for event in prof.function_events]
        [('twice', None), ('aten::mul', 'twice')]
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self.args = name, args
        self._open: list[tuple[Recorder | None, int]] = []  # (a function may call itself)

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
        recorder, place = self._open.pop()
        if recorder is not None:
            recorder.close(place)


class emit_nvtx:
    """Mark every op for NVIDIA's tools: there is no GPU here, and entering it says so, as in PyTorch.

    Args:
        enabled: False to do nothing.

    Raises:
        AssertionError: it is entered.

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
    """Mark every op for Intel's VTune: left out.

    Raises:
        NotImplementedError: it is entered.

    Example:
        >>> with torch.autograd.profiler.emit_itt(enabled=False):
        ...     y = torch.ones(2) * 2
    """

    def _refuse(self) -> None:
        raise NotImplementedError("emit_itt: tinytorch cannot mark ops for VTune; use torch.profiler.profile")
