"""`torch.profiler`: profiling of a training loop by a schedule of steps. `autograd.profiler` records the events.

Source: PyTorch's `torch.profiler`.
"""

from __future__ import annotations

import enum
import os
import time
from collections.abc import Callable, Iterable
from typing import Any

from tinytorch.autograd import profiler as _autograd_profiler
from tinytorch.autograd.profiler import record_function
from tinytorch.autograd.profiler_util import DeviceType, EventList
from tinytorch.core.warning import warn

__all__ = [
    "DeviceType", "ProfilerAction", "ProfilerActivity", "kineto_available", "profile", "record_function", "schedule",
    "supported_activities", "tensorboard_trace_handler",
]  # fmt: skip


class ProfilerActivity(enum.Enum):
    """Activities that can be profiled; only the CPU is supported.

    Example:
        >>> with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        ...     y = torch.ones(2) * 2
        >>> [event.key for event in profile.key_averages()]
        ['aten::mul']
    """

    CPU = 0
    XPU = 1
    CUDA = 2
    HPU = 3
    MTIA = 4
    PrivateUse1 = 5


class ProfilerAction(enum.Enum):
    """The action of a profiler in a step.

    Example:
        >>> schedule = torch.profiler.schedule(wait=1, warmup=1, active=1)
        >>> [schedule(step).name for step in range(3)]
        ['NONE', 'WARMUP', 'RECORD_AND_SAVE']
    """

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


_RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


def supported_activities() -> set[ProfilerActivity]:
    """Return the supported activities.

    Example:
        >>> torch.profiler.supported_activities() == {torch.profiler.ProfilerActivity.CPU}
        True
    """
    return {ProfilerActivity.CPU}


def kineto_available() -> bool:
    """Return False: PyTorch's C++ profiler is not available.

    Example:
        >>> torch.profiler.kineto_available()
        False
    """
    return False


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """Return a schedule, a function from the number of a step to a `ProfilerAction`.

    A cycle has `wait` steps that are not profiled, `warmup` steps whose events are discarded, and `active` steps. There
    are `repeat` cycles (0: no limit) after `skip_first` steps, the first without `wait` if `skip_first_wait` is not 0.

    Raises:
        AssertionError: an argument is negative, or `active` is 0.

    Example:
        >>> plan = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
        >>> [plan(step).name for step in range(5)]
        ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    if wait < 0 or warmup < 0 or active <= 0 or repeat < 0 or skip_first < 0:
        raise AssertionError(
            f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup} (need >= 0), "
            f"active={active} (need > 0), repeat={repeat} (need >= 0), skip_first={skip_first} (need >= 0)."
        )
    if warmup == 0:
        warn("Profiler won't be using warmup, this can skew profiler results")
    cycle = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return ProfilerAction.NONE
        step += (wait if skip_first_wait else 0) - skip_first
        place = step % cycle
        if place < wait or (repeat > 0 and step >= repeat * cycle):
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if place < cycle - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False, use_python_export: bool = False
) -> Callable[[profile], None]:
    """Return a function for `on_trace_ready` that writes every trace to a new file in a folder, which is made.

    The file names begin with `worker_name`, by default the names of host and process.

    Raises:
        RuntimeError: the folder cannot be created.
    """

    def write(prof: profile) -> None:
        import socket  # imported lazily, since it is slow

        try:
            os.makedirs(dir_name, exist_ok=True)
        except OSError as error:
            raise RuntimeError(f"Can't create directory: {dir_name}") from error
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        suffix = ".gz" if use_gzip else ""
        name = f"{worker}.{time.time_ns()}.pt.trace.json{suffix}"
        prof.export_chrome_trace(os.path.join(dir_name, name))

    return write


#: The options that the profiler of the autograd gets, too.
_PASSED_ON = (
    "record_shapes", "with_flops", "profile_memory", "with_stack", "with_modules", "experimental_config", "acc_events",
    "custom_trace_id_callback", "post_processing_timeout_s",
)  # fmt: skip


class _Shown:
    """Whether the warning that events are cleared was issued, which happens once."""

    cleared = False


class profile:
    """Profile the ops of this thread, all of them or by a schedule of steps; a context manager.

    Args:
        activities: a collection of `ProfilerActivity`; by default the CPU, the only one supported.
        schedule: a function from the number of a step to a `ProfilerAction`; `step()` ends a step.
        on_trace_ready: called with this profiler at the end of each cycle.
        record_shapes, profile_memory, with_stack, with_flops, with_modules, acc_events, custom_trace_id_callback: see
            `torch.autograd.profiler.profile`. `execution_trace_observer` is not supported.

    Raises:
        AssertionError: there are no activities, or none that is supported.

    Example:
        >>> def show(prof):
        ...     print(prof.step_num, [(event.key, event.count) for event in prof.key_averages()])
        >>> plan = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
        >>> with torch.profiler.profile(schedule=plan, on_trace_ready=show) as prof:
        ...     for _ in range(6):
        ...         _ = torch.ones(3).exp()
        ...         prof.step()
        4 [('ProfilerStep*', 2), ('aten::exp', 2)]
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:
        requested = list(supported_activities() if activities is None else activities)
        if use_cuda is not None:
            warn("`use_cuda` is deprecated, use `activities` argument instead", FutureWarning)
        if any(isinstance(activity, dict) for activity in requested) or execution_trace_observer is not None:
            raise NotImplementedError(
                "torch.profiler.profile: activities with filters and execution_trace_observer need PyTorch's C++ "
                "profiler, which tinytorch does not have"
            )
        if not any(isinstance(activity, ProfilerActivity) for activity in requested):
            raise AssertionError("No valid profiler activities found")
        for k, activity in enumerate(requested):
            if not isinstance(activity, ProfilerActivity):
                raise TypeError(f"Expected ProfilerActivity or dict, got {type(activity)}")
            if activity in requested[:k]:
                raise ValueError(f"Activity {activity} specified more than once")
        self.activities = set(requested)
        self.record_shapes, self.profile_memory, self.with_stack = (record_shapes, profile_memory, with_stack)
        self.with_flops, self.with_modules, self.acc_events = with_flops, with_modules, acc_events
        self.experimental_config = experimental_config
        self.custom_trace_id_callback = custom_trace_id_callback
        self.post_processing_timeout_s = post_processing_timeout_s
        self.profiler: _autograd_profiler.profile | None = None
        self._metadata: dict[str, str] = {}  # key -> JSON
        self.schedule = schedule or (lambda step: ProfilerAction.RECORD)
        self.record_steps = schedule is not None
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self.step_rec_fn: record_function | None = None
        self.current_action = self.schedule(0)

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start profiling, as entering `with` does."""
        self._transition(ProfilerAction.NONE, self.current_action)
        self._open_step()

    def stop(self) -> None:
        """Stop profiling, as leaving `with` does."""
        self._close_step()
        self._transition(self.current_action, None)

    def step(self) -> None:
        """Start the next step of the schedule.

        Example:
            >>> with torch.profiler.profile() as profile:
            ...     for _ in range(2):
            ...         y = torch.ones(2).exp()
            ...         profile.step()
            >>> profile.step_num
            2
        """
        self._close_step()
        before, self.current_action = self.current_action, self.schedule(self.step_num + 1)
        self.step_num += 1
        self._transition(before, self.current_action)
        self._open_step()

    def _open_step(self) -> None:
        if self.record_steps:
            self.step_rec_fn = record_function(f"ProfilerStep#{self.step_num}")
            self.step_rec_fn.__enter__()

    def _close_step(self) -> None:
        if self.step_rec_fn is not None:
            self.step_rec_fn.__exit__(None, None, None)
            self.step_rec_fn = None

    def _transition(self, before: ProfilerAction, after: ProfilerAction | None) -> None:
        """Change from one action to the next, which is None at the end."""
        ends_cycle = before is ProfilerAction.RECORD_AND_SAVE
        continues = before is ProfilerAction.RECORD and after in _RECORDING
        if (before, after) in _INCORRECT:
            assert after is not None
            warn(f"Incorrect schedule: {before.name} followed by {after.name}")
        if before in _RECORDING and not continues:
            self.stop_trace()
            if (ends_cycle or after is None) and self.on_trace_ready is not None:
                self.on_trace_ready(self)
        if after in (*_RECORDING, ProfilerAction.WARMUP) and (ends_cycle or before is ProfilerAction.NONE):
            self.prepare_trace()
        if after in _RECORDING and not continues:
            self.start_trace()

    def prepare_trace(self) -> None:
        """Prepare for recording."""
        if self.profiler is not None and not self.acc_events and not _Shown.cleared:
            _Shown.cleared = True
            warn(
                "Warning: Profiler clears events at the end of each cycle. Only events from the current cycle will "
                "be reported. To keep events across cycles, set acc_events=True."
            )
        if self.profiler is None or not self.acc_events:
            others = {activity.name for activity in self.activities - {ProfilerActivity.CPU}}
            self.profiler = _autograd_profiler.profile(
                use_cpu=ProfilerActivity.CPU in self.activities,
                use_device=min(others, key=_PRECEDENCE.index).lower() if others else None,
                use_kineto=True,
                **{name: getattr(self, name) for name in _PASSED_ON},
            )
        self.profiler._prepare_trace()

    def start_trace(self) -> None:
        """Start recording."""
        self._get_profiler("starting trace")._start_trace()

    def stop_trace(self) -> None:
        """Stop recording."""
        self._get_profiler("stopping trace").__exit__(None, None, None)

    def _get_profiler(self, what: str) -> _autograd_profiler.profile:
        if self.profiler is None:
            raise AssertionError(f"Profiler must be initialized before {what}")
        return self.profiler

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """Return the averages of the events by name; see `EventList.key_averages`.

        Example:
            >>> with torch.profiler.profile() as profile:
            ...     y = torch.ones(2).exp()
            >>> [event.key for event in profile.key_averages()]
            ['aten::exp']
        """
        return self._get_profiler("getting key averages").key_averages(
            group_by_input_shape, group_by_stack_n, group_by_overload_name
        )

    def events(self) -> EventList:
        """Return all events, ordered by their start.

        Example:
            >>> with torch.profiler.profile() as profile:
            ...     y = torch.ones(2).exp()
            >>> [event.name for event in profile.events()]
            ['aten::exp']
        """
        return self._get_profiler("accessing events").function_events

    def export_chrome_trace(self, path: str, use_python_export: bool = False) -> None:
        """Write a trace for chrome://tracing or Perfetto, compressed if `path` ends in ".gz"."""
        import json  # imported lazily, since it is slow

        metadata = {key: json.loads(value) for key, value in self._metadata.items()}
        self._get_profiler("exporting chrome trace").export_chrome_trace(path, metadata)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write the stacks of the events with their times; requires `with_stack=True`."""
        self._get_profiler("exporting stacks").export_stacks(path, metric)

    def export_memory_timeline(self, path: str, device: str | None = None) -> None:
        """Not supported, since deallocations are not recorded.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(
            "export_memory_timeline: tinytorch records what ops allocate, not when it is freed; profile_memory=True "
            "shows it in key_averages()"
        )

    def add_metadata(self, key: str, value: str) -> None:
        """Add a string to the metadata of trace files."""
        import json  # imported lazily, since it is slow

        self._metadata[key] = json.dumps(value)

    def add_metadata_json(self, key: str, value: str) -> None:
        """Add a JSON value to the metadata of trace files."""
        self._metadata[key] = value

    preset_metadata_json = add_metadata_json

    def set_custom_trace_id_callback(self, callback: Callable[[], str]) -> None:
        """Set the function that returns the id of a trace."""
        self.custom_trace_id_callback = callback

    def get_trace_id(self) -> str | None:
        """Return the id of the current trace."""
        return None if self.profiler is None else self.profiler.trace_id


#: Invalid transitions between actions.
_INCORRECT = {
    (ProfilerAction.WARMUP, ProfilerAction.NONE),
    (ProfilerAction.RECORD, ProfilerAction.NONE),
    (ProfilerAction.RECORD, ProfilerAction.WARMUP),
}
#: If there are several devices, the first of these is profiled.
_PRECEDENCE = ("CUDA", "XPU", "MTIA", "HPU", "PrivateUse1")
