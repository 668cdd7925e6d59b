"""The results of a profile: events, averages of events, and tables. `autograd.profiler` records them.

Source: PyTorch's `torch.autograd.profiler_util`, whose names and formats these are.
"""

from __future__ import annotations

import enum
import math
import os
from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["DeviceType", "EventList", "FormattedTimesMixin", "FunctionEvent", "FunctionEventAvg", "Interval"]

#: The kinds of events: values of PyTorch's `RecordScope`.
FUNCTION, BACKWARD, USER = 0, 1, 7

_COLUMN = 12  # the width of a column of numbers


class DeviceType(enum.Enum):
    """The device of an event: here always the CPU."""

    CPU = 0
    CUDA = 1


class Interval:
    """A time range in microseconds since the start of the profile."""

    def __init__(self, start: float, end: float) -> None:
        self.start, self.end = start, end

    def elapsed_us(self) -> float:
        """Return the length."""
        return self.end - self.start


def _formatted_time(name: str) -> property:
    """Return a property that formats a time with its unit."""
    return property(lambda self: _format_time(getattr(self, name)), doc=f"`{name}` with its unit.")


class FormattedTimesMixin:
    """The attributes that events and averages share: times in microseconds, and constants for other devices."""

    count: int
    cpu_time_total: float
    self_cpu_time_total: float
    cpu_memory_usage: int
    self_cpu_memory_usage: int
    input_shapes: Any
    stack: list[str]
    flops: int
    cpu_parent: FunctionEvent | None
    is_user_annotation: bool
    scope: int

    device_type = DeviceType.CPU
    device_time = device_time_total = self_device_time_total = 0.0
    device_memory_usage = self_device_memory_usage = 0
    use_device: str | None = None
    node_id = -1
    is_async = is_remote = is_legacy = False
    overload_name = ""

    @property
    def cpu_time(self) -> float:
        """The time of one call on average."""
        return self.cpu_time_total / self.count if self.count else 0.0

    cpu_time_str = _formatted_time("cpu_time")
    cpu_time_total_str = _formatted_time("cpu_time_total")
    self_cpu_time_total_str = _formatted_time("self_cpu_time_total")


class FunctionEvent(FormattedTimesMixin):
    """One call of an op, one step backward, or one `record_function`.

    Attributes:
        id, name: the number and the name, which is also `key`. `trace_name` also has the number of a profiler step.
        time_range: an `Interval` in microseconds.
        cpu_parent, cpu_children: the enclosing event, and the events directly inside this one.
        cpu_time_total, self_cpu_time_total: the duration in microseconds, and the duration without that of children.
        cpu_memory_usage, self_cpu_memory_usage: the bytes allocated, with and without those of children.
        input_shapes: per argument its shape, [] for a non-tensor; [] if shapes were not recorded.
        stack: the caller's frames, the innermost first; [] if stacks were not recorded.
        flops: the number of floating-point operations, for the ops that PyTorch counts.
        scope: 0 for a function, 1 for a step backward, 7 for `record_function`.

    Example:
        >>> with torch.autograd.profiler.profile() as profile:
        ...     y = torch.ones(2).exp()
        >>> event = profile.function_events[-1]
        >>> event.name, event.cpu_time_total >= event.self_cpu_time_total
        ('aten::exp', True)
    """

    def __init__(
        self,
        id: int,
        name: str,
        thread: int,
        start_us: float,
        end_us: float,
        *,
        node_id: int = -1,
        sequence_nr: int = -1,
        fwd_thread: int | None = None,
        trace_name: str | None = None,
        input_shapes: list[list[int]] | None = None,
        stack: list[str] | None = None,
        scope: int = FUNCTION,
        cpu_memory_usage: int = 0,
        flops: int = 0,
    ) -> None:
        self.id, self.name, self.thread, self.scope = id, name, thread, scope
        self.node_id, self.sequence_nr, self.fwd_thread = node_id, sequence_nr, fwd_thread
        self.trace_name = trace_name or name
        self.time_range = Interval(start_us, end_us)
        self.cpu_time_total = self.self_cpu_time_total = end_us - start_us
        self.cpu_memory_usage = self.self_cpu_memory_usage = cpu_memory_usage
        self.input_shapes, self.stack, self.flops = input_shapes or [], stack or [], flops
        self.is_user_annotation = scope == USER
        self.count = 1
        self.cpu_parent: FunctionEvent | None = None
        self.cpu_children: list[FunctionEvent] = []

    @property
    def key(self) -> str:
        """The name, by which events are grouped."""
        return self.name

    def append_cpu_child(self, child: FunctionEvent) -> None:
        """Add an event that is directly inside this one."""
        child.cpu_parent = self
        self.cpu_children.append(child)
        self.self_cpu_time_total -= child.cpu_time_total

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} overload_name={self.overload_name} "
            f"device_type={self.device_type} node_id={self.node_id} cpu_time={self.cpu_time_str} "
            f"start_us={self.time_range.start} end_us={self.time_range.end} "
            f"cpu_children={[child.id for child in self.cpu_children]} {self.use_device}_time=0.000us "
            f"name={self.name} thread={self.thread} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage} {self.use_device}_memory_usage=0 "
            f"is_async={self.is_async} is_remote={self.is_remote} seq_nr=-1 is_legacy={self.is_legacy}>"
        )


class FunctionEventAvg(FormattedTimesMixin):
    """The sum of all events of one name; `cpu_time` is the mean per call.

    The attributes are those of `FunctionEvent`, with `key` for the name and `count` for the number of calls.

    Example:
        >>> with torch.autograd.profiler.profile() as profile:
        ...     y = torch.ones(2).exp()
        >>> (average,) = [x for x in profile.key_averages() if x.key == "aten::exp"]
        >>> average.count
        1
    """

    def __init__(self) -> None:
        self.key: str | None = None
        self.count = self.cpu_memory_usage = self.self_cpu_memory_usage = self.flops = 0
        self.cpu_time_total = self.self_cpu_time_total = 0.0
        self.input_shapes, self.stack = None, []
        self.cpu_parent = None
        self.cpu_children: list[FunctionEvent] = []
        self.is_user_annotation, self.scope = False, FUNCTION

    def add(self, other: FunctionEvent | FunctionEventAvg) -> FunctionEventAvg:
        """Add an event, or an average, with the same key; the first one sets the key."""
        if self.key is None:
            self.key, self.input_shapes, self.stack = other.key, other.input_shapes, other.stack
            self.cpu_parent, self.cpu_children = other.cpu_parent, other.cpu_children
            self.is_user_annotation, self.scope = other.is_user_annotation, other.scope
        if other.key != self.key:
            raise AssertionError(f"Expected keys to match, but got {other.key} vs {self.key}")
        self.count += other.count
        self.cpu_time_total += other.cpu_time_total
        self.self_cpu_time_total += other.self_cpu_time_total
        self.cpu_memory_usage += other.cpu_memory_usage
        self.self_cpu_memory_usage += other.self_cpu_memory_usage
        self.flops += other.flops
        return self

    __iadd__ = add

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str}  self_cuda_time=0.000us cuda_time=0.000us "
            f"input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage} cuda_memory_usage=0>"
        )


class EventList(list[Any]):
    """A list of events in the order of their start times, or of averages.

    Example:
        >>> with torch.autograd.profiler.profile() as profile:
        ...     y = torch.ones(2).exp()
        >>> type(profile.function_events).__name__, profile.function_events[-1].name
        ('EventList', 'aten::exp')
    """

    def __init__(
        self,
        events: Iterable[Any] = (),
        *,
        use_device: str | None = None,
        profile_memory: bool = False,
        with_flops: bool = False,
    ) -> None:
        super().__init__(events)
        self._use_device, self._profile_memory, self._with_flops = (use_device, profile_memory, with_flops)

    def __str__(self) -> str:
        return self.table()

    @property
    def self_cpu_time_total(self) -> float:
        """The sum of all self times, in microseconds.

        Example:
            >>> with torch.autograd.profiler.profile() as profile:
            ...     y = torch.ones(2).exp()
            >>> profile.function_events.self_cpu_time_total > 0
            True
        """
        return sum(event.self_cpu_time_total for event in self)

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int | None = 75,
        max_name_column_width: int | None = 55,
        max_shapes_column_width: int | None = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """Return a table with a row per entry.

        Args:
            sort_by: the attribute to sort by, in descending order, such as "self_cpu_time_total" or "count".
            row_limit: the maximal number of rows; -1 for all.
            time_unit: "s", "ms" or "us" for all times; by default chosen by the magnitude of each time.

        Raises:
            AttributeError: the entries have no attribute `sort_by`.

        Example:
            >>> with torch.autograd.profiler.profile() as prof:
            ...     _ = torch.ones(3).exp()
            >>> table = prof.key_averages().table(sort_by="self_cpu_time_total")
            >>> table.splitlines()[-1].split(": ")[0]
            'Self CPU time total'
        """
        if not self:
            return ""
        events = list(self)
        if sort_by is not None:
            attribute = sort_by.replace("cuda", "device").replace("xpu", "device")
            events.sort(key=lambda event: getattr(event, attribute), reverse=True)
        columns = self._columns(events, max_src_column_width, max_name_column_width, max_shapes_column_width, time_unit)
        rule = "".join("-" * width + "  " for _, width, _, _ in columns)
        line = "".join(f"{{: {align}{width}}}  " for _, width, align, _ in columns)
        lines = []
        if header is not None:
            lines += ["=" * (len(rule) - 2), header]
        if top_level_events_only:
            lines += ["=" * (len(rule) - 2), "This report only display top-level ops statistics"]
            events = [event for event in events if event.cpu_parent is None]
        lines += [rule, line.format(*[title for title, _, _, _ in columns]), rule]
        for event in events if row_limit < 0 else events[:row_limit]:
            lines.append(line.format(*[cell(event) for _, _, _, cell in columns]))
            if any(title == "Source Location" for title, _, _, _ in columns):
                empty = [""] * (len(columns) - 1)
                rest = [_trimmed_path(entry, columns[-1][1]) for entry in event.stack[1:]]
                lines += [line.format(*empty, entry) for entry in [*rest, ""]]
        lines += [rule, f"Self CPU time total: {_format_time(self.self_cpu_time_total, time_unit)}"]
        return "\n".join(lines) + "\n"

    def _columns(
        self, events: list[Any], max_src: int | None, max_name: int | None, max_shapes: int | None, unit: str | None
    ) -> list[tuple[str, int, str, Callable[[Any], Any]]]:
        """Return the columns: title, width, alignment, and the function from an event to its cell."""

        def name(event: Any) -> str:
            cut = max_name is not None and len(event.key) >= max_name - 3
            return event.key[: max_name - 3] + "..." if cut and max_name is not None else event.key

        def longest(texts: Iterable[str], limit: int | None) -> int:
            width = max(map(len, texts)) + 4
            return width if limit is None else min(width, limit)

        total = self.self_cpu_time_total
        columns: list[tuple[str, int, str, Callable[[Any], Any]]] = [
            ("Name", longest([event.key for event in events], max_name), ">", name),
            ("Self CPU %", _COLUMN, ">", lambda e: _percentage(e.self_cpu_time_total, total)),
            ("Self CPU", _COLUMN, ">", lambda e: _format_time(e.self_cpu_time_total, unit)),
            ("CPU total %", _COLUMN, ">", lambda e: _percentage(e.cpu_time_total, total)),
            ("CPU total", _COLUMN, ">", lambda e: _format_time(e.cpu_time_total, unit)),
            ("CPU time avg", _COLUMN, ">", lambda e: _format_time(e.cpu_time, unit)),
        ]
        if self._profile_memory:
            columns += [
                ("CPU Mem", _COLUMN, ">", lambda e: _format_memory(e.cpu_memory_usage)),
                ("Self CPU Mem", _COLUMN, ">", lambda e: _format_memory(e.self_cpu_memory_usage)),
            ]
        columns.append(("# of Calls", _COLUMN, ">", lambda e: e.count))
        if any(event.input_shapes for event in events):
            width = longest([str(event.input_shapes) for event in events], max_shapes)
            columns.append(("Input Shapes", width, ">", lambda e: str(e.input_shapes)[:width]))
        counted = [event.flops for event in events if event.flops > 0]
        if self._with_flops and counted:
            power = min(int(math.log10(min(counted)) / 3), 5)
            scale = 1000**power
            columns.append((
                f"Total {['', 'K', 'M', 'G', 'T', 'P'][power]}FLOPs", _COLUMN, ">",
                lambda e: f"{e.flops / scale:8.3f}" if e.flops else "--",
            ))  # fmt: skip
        lines = [entry for event in events for entry in event.stack]
        if lines:
            source = longest(lines, max_src)
            columns.append(
                ("Source Location", source, "<", lambda e: _trimmed_path(e.stack[0], source) if e.stack else "")
            )
        return columns

    def key_averages(
        self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """Return the list of averages, one for each name.

        Args:
            group_by_input_shapes: group also by the shapes of the arguments.
            group_by_stack_n: group also by that many innermost frames of the stack.
            group_by_overload_name: accepted, without effect: overloads have no names here.

        Example:
            >>> with torch.autograd.profiler.profile() as profile:
            ...     y = torch.ones(2).exp()
            >>> [average.key for average in profile.function_events.key_averages()]
            ['aten::exp']
        """
        averages: dict[tuple[Any, ...], FunctionEventAvg] = {}
        for event in self:
            shapes = str(event.input_shapes) if group_by_input_shapes else ""
            stack = tuple(event.stack[:group_by_stack_n])
            key = (event.key, event.is_user_annotation, shapes, stack)
            averages.setdefault(key, FunctionEventAvg()).add(event)
        for average in averages.values():
            average.stack = average.stack[:group_by_stack_n]
            if not group_by_input_shapes:
                average.input_shapes = ""
        return EventList(
            averages.values(),
            use_device=self._use_device,
            profile_memory=self._profile_memory,
            with_flops=self._with_flops,
        )

    def total_average(self) -> FunctionEventAvg:
        """Return the sum over all events, with the key "Total".

        Example:
            >>> with torch.autograd.profiler.profile() as profile:
            ...     y = torch.ones(2).exp()
            >>> profile.function_events.total_average().key
            'Total'
        """
        total = FunctionEventAvg()
        for event in self:
            total.add(event)
            total.key = None
        total.key = "Total"
        return total

    def export_chrome_trace(self, path: str, metadata: dict[str, Any] | None = None) -> None:
        """Write a trace in Chrome's JSON format, for chrome://tracing or Perfetto.

        Args:
            path: the file, compressed if its name ends in ".gz".
            metadata: further entries of the file.
        """
        import gzip  # (slow to import and seldom needed, as is json)
        import json

        process = os.getpid()
        named = {"ph": "M", "name": "process_name", "ts": 0, "pid": process, "tid": 0}
        trace = [{**named, "args": {"name": "python"}}]
        for k, event in enumerate(self):
            args: dict[str, Any] = {"Ev Idx": k}
            if event.input_shapes:
                args["Input Dims"] = event.input_shapes
            if event.stack:
                args["Call stack"] = ";".join(reversed(event.stack))
            trace.append({
                "ph": "X", "cat": "user_annotation" if event.is_user_annotation else "cpu_op",
                "name": event.trace_name, "pid": process, "tid": event.thread,
                "ts": event.time_range.start, "dur": event.time_range.elapsed_us(), "args": args,
            })  # fmt: skip
        content = {
            "schemaVersion": 1, **(metadata or {}), "displayTimeUnit": "ms", "traceEvents": trace, "traceName": path,
        }  # fmt: skip
        opener: Any = gzip.open if path.endswith(".gz") else open
        with opener(path, "wt") as file:
            json.dump(content, file)

    def export_stacks(self, path: str, metric: str) -> None:
        """Write the stacks of the events with their times, in the format of flame graph tools.

        Args:
            path: the file; a line has the frames of a stack, the outermost first, and the microseconds.
            metric: "self_cpu_time_total", or the same for another device, whose times are 0.

        Raises:
            ValueError: another metric.
        """
        metrics = [f"self_{device}_time_total" for device in ("cpu", "cuda", "xpu", "privateuse1")]
        if metric not in metrics:
            raise ValueError(f"metric should be one of: {metrics}")
        with open(path, "w", encoding="utf-8") as file:
            for event in self:
                spent = int(event.self_cpu_time_total) if metric == metrics[0] else 0
                if event.stack and spent > 0:
                    frames = [entry.translate(_UNSAFE) for entry in reversed(event.stack)]
                    file.write(f"{';'.join(frames)} {spent}\n")


_UNSAFE = str.maketrans(" ;\t\n", "____")


def nested(events: Iterable[FunctionEvent]) -> list[FunctionEvent]:
    """Return events, which are in the order of their start times, having set their parents and children.

    An event that is the only child of an event of the same name is merged into that, as in PyTorch.
    """
    entered: list[FunctionEvent] = []
    enclosing: list[FunctionEvent] = []
    for event in events:
        span = event.time_range
        while enclosing and (span.start >= enclosing[-1].time_range.end or span.end > enclosing[-1].time_range.end):
            enclosing.pop()
        if enclosing:
            enclosing[-1].append_cpu_child(event)
        enclosing.append(event)
        entered.append(event)
    for event in reversed(entered):
        if event.cpu_parent is not None:
            event.cpu_parent.cpu_memory_usage += event.cpu_memory_usage
    return [event for event in entered if not _merged_into_parent(event)]


def _merged_into_parent(event: FunctionEvent) -> bool:
    """Merge an event into its parent, if it is the only child and has the same name; return whether it was merged."""
    parent = event.cpu_parent
    if parent is None or parent.name != event.name or len(parent.cpu_children) > 1:
        return False
    parent.cpu_children = event.cpu_children
    parent.self_cpu_time_total += event.self_cpu_time_total
    parent.self_cpu_memory_usage += event.self_cpu_memory_usage
    for child in event.cpu_children:
        child.cpu_parent = parent
    return True


def _format_time(microseconds: float, unit: str | None = None) -> str:
    if unit == "s" or (unit is None and microseconds >= 1e6):
        return f"{microseconds / 1e6:.3f}s"
    if unit == "ms" or (unit is None and microseconds >= 1e3):
        return f"{microseconds / 1e3:.3f}ms"
    return f"{microseconds:.3f}us"


def _percentage(part: float, total: float) -> str:
    return f"{part * 100 / total:.2f}%" if total else "NaN"


def _format_memory(size: int) -> str:
    for power, unit in ((3, "GB"), (2, "MB"), (1, "KB")):
        if abs(size) >= 1024**power:
            return f"{size / 1024**power:.2f} {unit}"
    return f"{size} B"


def _trimmed_path(path: str, width: int) -> str:
    return path if len(path) <= width else "..." + path[len(path) - width + 3 :]
