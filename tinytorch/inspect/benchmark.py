"""`torch.utils.benchmark`: timing of statements."""

from __future__ import annotations

import dataclasses
import math
import statistics
import sys
import textwrap
import timeit
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from tinytorch.kernels import parallel

__all__ = [
    "Compare", "Measurement", "TaskSpec", "Timer", "ordered_unique", "select_unit", "set_torch_threads",
    "trim_sigfig", "unit_to_english",
]  # fmt: skip

_UNITS = {"ns": (1e-9, "nanosecond"), "us": (1e-6, "microsecond"), "ms": (1e-3, "millisecond"), "s": (1.0, "second")}


def select_unit(t: float) -> tuple[str, float]:
    """Return a suitable unit for a time in seconds, and the length of the unit in seconds.

    Example:
        >>> from tinytorch.utils.benchmark import select_unit
        >>> select_unit(2.5e-5)
        ('us', 1e-06)
    """
    unit = {-3: "ns", -2: "us", -1: "ms"}.get(math.floor(math.log10(t) / 3), "s")
    return unit, _UNITS[unit][0]


def unit_to_english(u: str) -> str:
    """Return the name of a unit: "us" is a microsecond.

    Example:
        >>> from tinytorch.utils.benchmark import unit_to_english
        >>> unit_to_english("us")
        'microsecond'
    """
    return _UNITS[u][1]


def trim_sigfig(x: float, n: int) -> float:
    """Return a number rounded to `n` significant digits.

    Example:
        >>> from tinytorch.utils.benchmark import trim_sigfig
        >>> trim_sigfig(1234.5, 2)
        1200.0
    """
    return float(f"{x:.{n - 1}e}")


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    """Return the distinct elements, in the order of their first occurrence.

    Example:
        >>> from tinytorch.utils.benchmark import ordered_unique
        >>> ordered_unique("banana")
        ['b', 'a', 'n']
    """
    return list(dict.fromkeys(elements))


@contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """Set the number of threads to `n` for a `with` block.

    Example:
        >>> from tinytorch.utils.benchmark import set_torch_threads
        >>> with set_torch_threads(1):
        ...     torch.get_num_threads()
        1
    """
    before = parallel.get_num_threads()
    parallel.set_num_threads(n)
    try:
        yield
    finally:
        parallel.set_num_threads(before)


@dataclasses.dataclass(init=True, repr=False, eq=True, frozen=True)
class TaskSpec:
    """A measured statement, its environment, and its labels."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label, or else the statement."""
        sub_label = self.sub_label
        if self.label is None and "\n" in self.stmt:
            suffix = f" ({sub_label})" if sub_label else ""
            return f"stmt:{suffix}\n{textwrap.indent(self.stmt, '  ')}"
        return (self.stmt if self.label is None else self.label) + (f": {sub_label}" if sub_label else "")

    def setup_str(self) -> str:
        """Return a description of the setup."""
        if self.setup in ("", "pass"):
            return ""
        if "\n" in self.setup:
            return f"setup:\n{textwrap.indent(self.setup, '  ')}"
        return f"setup: {self.setup}"

    def summarize(self) -> str:
        """Return the title, description and setup as text."""
        parts = [self.title, self.description or "", self.setup_str()]
        return "\n".join(f"{part}\n" if "\n" in part else part for part in parts if part)


@dataclasses.dataclass(init=True, repr=False)
class Measurement:
    """The measured times of a statement; print it for a summary.

    Args:
        number_per_run: number of executions per measurement.
        raw_times: the measured times, in seconds.
        task_spec: the measured task, whose fields are also attributes of the measurement.

    Example:
        >>> from tinytorch.utils.benchmark import Measurement, TaskSpec
        >>> Measurement(1, [1.0, 2.0, 3.0, 4.0], TaskSpec("x + 1", "pass")).median
        2.5
    """

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    def __getattr__(self, name: str) -> Any:
        if name in TaskSpec.__dataclass_fields__ and "task_spec" in self.__dict__:
            return getattr(self.task_spec, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def times(self) -> list[float]:
        """The times per execution.

        Example:
            >>> from tinytorch.utils.benchmark import Measurement, TaskSpec
            >>> Measurement(2, [1.0, 2.0], TaskSpec("x + 1", "pass")).times
            [0.5, 1.0]
        """
        return [time / self.number_per_run for time in self.raw_times]

    def _quantile(self, q: float) -> float:
        times = sorted(self.times)
        position = q * (len(times) - 1)
        low = math.floor(position)
        high = min(low + 1, len(times) - 1)
        return times[low] + (times[high] - times[low]) * (position - low)

    @property
    def median(self) -> float:
        """The median time.

        Example:
            >>> from tinytorch.utils.benchmark import Measurement, TaskSpec
            >>> Measurement(1, [1.0, 2.0, 3.0, 4.0], TaskSpec("x + 1", "pass")).median
            2.5
        """
        return self._quantile(0.5)

    @property
    def mean(self) -> float:
        """The mean time.

        Example:
            >>> from tinytorch.utils.benchmark import Measurement, TaskSpec
            >>> Measurement(1, [1.0, 2.0, 3.0, 4.0], TaskSpec("x + 1", "pass")).mean
            2.5
        """
        return statistics.fmean(self.times) if self.raw_times else -1.0

    @property
    def iqr(self) -> float:
        """The interquartile range of the times.

        Example:
            >>> from tinytorch.utils.benchmark import Measurement, TaskSpec
            >>> Measurement(1, [1.0, 2.0, 3.0, 4.0], TaskSpec("x + 1", "pass")).iqr
            1.5
        """
        return self._quantile(0.75) - self._quantile(0.25)

    @property
    def significant_figures(self) -> int:
        """The estimated number of significant digits of the median."""
        times = sorted(self.times)
        middle = times[len(times) // 4 : math.ceil(3 * len(times) / 4)]
        width = max(1.645 * statistics.pstdev(middle) / math.sqrt(len(middle)), 25e-9)
        return min(max(math.floor(math.log10(self.median / width)), 1), 4)

    def meets_confidence(self, threshold: float = 0.1) -> bool:
        """Return whether the interquartile range is less than `threshold` times the median."""
        return self.iqr / self.median < threshold

    @property
    def _warnings(self) -> list[str]:
        if not self.raw_times or self.meets_confidence():
            return []
        return [
            f"  WARNING: Interquartile range is {self.iqr / self.median * 100:.1f}% of the median measurement.",
            "           This could indicate system fluctuation."
            if self.meets_confidence(0.25)
            else "           This suggests significant environmental influence.",
        ]

    @property
    def has_warnings(self) -> bool:
        """Whether the times vary a lot."""
        return bool(self._warnings)

    @property
    def title(self) -> str:
        """The label, or else the statement.

        Example:
            >>> from tinytorch.utils.benchmark import Measurement, TaskSpec
            >>> Measurement(1, [1.0, 2.0, 3.0, 4.0], TaskSpec("x + 1", "pass")).title
            'x + 1'
        """
        return self.task_spec.title

    @property
    def as_row_name(self) -> str:
        """The name of a row in a table."""
        return self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]"

    def __repr__(self) -> str:
        n = len(self.raw_times)
        unit, scale = select_unit(self.median)
        median = f"  {'Median: ' if n > 1 else ''}{self.median / scale:.2f} {unit}"
        lines = [object.__repr__(self), self.task_spec.summarize(), median]
        if n >= 4:
            low, high = self._quantile(0.25) / scale, self._quantile(0.75) / scale
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit} ({low:.2f} to {high:.2f})")
        threads = self.task_spec.num_threads
        lines.append(
            f"  {n} measurement{'s' if n > 1 else ''}, {self.number_per_run} runs "
            f"{'per measurement,' if n > 1 else ','} {threads} thread{'s' if threads > 1 else ''}"
        )
        return "\n".join([*lines, *self._warnings]).strip()

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """Return one measurement per task, with the times per execution of all its measurements."""
        groups: dict[TaskSpec, list[float]] = {}
        for measurement in measurements:
            groups.setdefault(measurement.task_spec, []).extend(measurement.times)
        return [Measurement(1, times, task) for task, times in groups.items()]


class Timer:
    """Measures the time of a statement, by default on one thread.

    Args:
        stmt, setup: sources: of the statement, and of what is executed once before each measurement.
        timer: a function that returns the time in seconds.
        globals: the names that the statement may use; "torch" is added.
        label, sub_label, description, env: labels of the measurement.

    Raises:
        ValueError: the statement is not a string, or `global_setup` is not empty.
        NotImplementedError: the language is C++.

    Example:
        >>> from tinytorch.utils import benchmark
        >>> timer = benchmark.Timer("x + 1", globals={"x": torch.ones(10)})
        >>> measurement = timer.timeit(100)
        >>> measurement.number_per_run, measurement.median > 0
        (100, True)
    """

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timeit.default_timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: str = "python",
    ) -> None:
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        if language in ("cpp", "c++"):
            raise NotImplementedError("torch.utils.benchmark.Timer: C++ is not compiled here")
        if language not in ("py", "python"):
            raise ValueError(f"Invalid language `{language}`.")
        if global_setup:
            raise ValueError(
                f"global_setup is C++ only, got `{global_setup}`. Most likely this code can simply be moved to `setup`."
            )
        self._globals = {"torch": sys.modules["tinytorch"], **(globals or {})}
        stmt, setup = (textwrap.dedent(text).removeprefix("\n").rstrip() for text in (stmt, setup))
        self._timer = timeit.Timer(stmt, setup, timer, self._globals)
        self._task_spec = TaskSpec(stmt, setup, global_setup, label, sub_label, description, env, num_threads)

    def _time(self, number: int) -> float:
        return max(self._timer.timeit(number), 1e-9)

    def timeit(self, number: int = 1000000) -> Measurement:
        """Measure `number` executions once, after a warm-up of a hundredth as many.

        Example:
            >>> import tinytorch.utils.benchmark
            >>> timer = torch.utils.benchmark.Timer("x + 1", globals={"x": torch.ones(2)})
            >>> timer.timeit(10).median > 0
            True
        """
        with set_torch_threads(self._task_spec.num_threads):
            self._time(max(number // 100, 2))
            return Measurement(number, [self._time(number)], self._task_spec)

    def repeat(self, repeat: int = -1, number: int = -1) -> None:
        """Raise NotImplementedError, as in PyTorch: use `blocked_autorange`."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    autorange = repeat

    def _executions_per_block(self, min_time: float) -> int:
        """Return a number of executions that takes so long that the overhead of timing is negligible."""
        overhead = statistics.median(self._time(0) for _ in range(5))
        number = 1
        while number < 2**31 // 10:
            taken = self._time(number)
            if taken > min_time or (overhead <= 1e-4 * taken and taken >= min_time / 1000):
                break
            number *= 10
        return number

    def blocked_autorange(
        self, callback: Callable[[int, float], Any] | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Measure blocks of executions, so large that the overhead of timing is negligible, for `min_run_time` seconds.

        Args:
            callback: called after each measurement with the number of executions and the time.

        Example:
            >>> import tinytorch.utils.benchmark
            >>> timer = torch.utils.benchmark.Timer("x + 1", globals={"x": torch.ones(2)})
            >>> timer.blocked_autorange(min_run_time=0.001).median > 0
            True
        """
        return self._measure(min_run_time, min_run_time, lambda times: True, None, callback)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable[[int, float], Any] | None = None,
    ) -> Measurement:
        """Measure as `blocked_autorange` does, until the times vary little.

        Args:
            threshold: stop when the interquartile range is less than `threshold` times the median.
            min_run_time, max_run_time: minimum and maximum total time, in seconds.
            callback: as for `blocked_autorange`.
        """

        def steady(times: list[float]) -> bool:
            return len(times) > 3 and Measurement(1, times, self._task_spec).meets_confidence(threshold)

        return self._measure(0.05, min_run_time, steady, max_run_time, callback)

    def _measure(
        self,
        block_time: float,
        min_time: float,
        is_done: Callable[[list[float]], bool],
        max_time: float | None,
        callback: Callable[[int, float], Any] | None,
    ) -> Measurement:
        times: list[float] = []
        with set_torch_threads(self._task_spec.num_threads):
            number = self._executions_per_block(block_time)
            while sum(times) < min_time or not is_done(times):
                times.append(self._time(number))
                if callback is not None:
                    callback(number, times[-1])
                if max_time is not None and sum(times) > max_time:
                    break
        return Measurement(number, times, self._task_spec)


# Tables -------------------------------------------------------------------------------------------

# Escape sequences of terminals for times up to a multiple of the best time.
_GOOD_COLOURS = ((1.01, "\033[92m\033[1m"), (1.1, "\033[34m\033[1m"))
_BAD, _VERY_BAD, _PLAIN = "\033[2m\033[91m", "\033[31m\033[1m", "\033[0m\033[0m"
_JITTER = 100e-9  # a difference in seconds that is not significant


def _coloured(text: str, time: float, best: float) -> str:
    if time <= best + _JITTER:
        return f"{_GOOD_COLOURS[0][1]}{text}{_PLAIN}"
    for ratio, colour in _GOOD_COLOURS:
        if time <= best * ratio:
            return f"{colour}{text}{_PLAIN}"
    if time >= best * 2:
        return f"{_VERY_BAD if time >= best * 5 else _BAD}{text}{_PLAIN}"
    return text


class _Table:
    """A table of measurements of one label, with a row per task and number of threads and a column per description."""

    def __init__(self, compare: Compare, results: list[Measurement]) -> None:
        self.compare = compare
        self.label = results[0].label or ""
        self.unit, self.scale = select_unit(min(result.median for result in results))
        rows = ordered_unique([self._row_key(result) for result in results])
        self.rows = sorted(rows, key=lambda row: row[:2])
        self.columns = ordered_unique([result.description for result in results])
        self.cells = {(self._row_key(result), result.description): result for result in results}
        self.environments = ordered_unique([result.env for result in results])
        self.fluctuates = any(result.has_warnings for result in results)

    @staticmethod
    def _row_key(result: Measurement) -> tuple[int, Any, str]:
        return result.num_threads, result.env, result.as_row_name

    def _column(self, description: str) -> list[str]:
        """Return the cells of a column as text of equal width."""
        cells = [self.cells.get((row, description)) for row in self.rows]
        results = [result for result in cells if result is not None]
        warn = self.compare._highlight_warnings and any(result.has_warnings for result in results)
        digits = [math.ceil(math.log10(result.median / self.scale)) for result in results]
        decimals = 1
        if self.compare._trim_significant_figures:
            pairs = zip(results, digits, strict=True)
            decimals = min(max(result.significant_figures - before, 0) for result, before in pairs)
        width = max(digits) + decimals + (decimals > 0)
        texts = []
        for cell in cells:
            if cell is None:
                texts.append(" " * (len(f"{1:>{width}.{decimals}f}") + 7 * warn))
                continue
            value = cell.median / self.scale
            if self.compare._trim_significant_figures:
                value = trim_sigfig(value, cell.significant_figures)
            spread = f" (! {cell.iqr / cell.median * 100:.0f}%)" if cell.has_warnings else ""
            texts.append(f"{value:>{width}.{decimals}f}" + (f"{spread:>7}" if warn else ""))
        return texts

    def _row_names(self) -> list[str]:
        """Return the first column, with the tasks, and the environments if there is more than one."""
        show_env = len(self.environments) > 1
        width = max(len(env) for env in self.environments) + 4 if show_env else 4
        names, previous = [], None
        for threads, env, name in self.rows:
            prefix = f"({env})" if show_env and previous != (threads, env) else ""
            names.append("  " + prefix.ljust(width) + name)
            previous = threads, env
        return names

    def _best(self, row: tuple[int, Any, str], description: str) -> float:
        """Return the smallest time in the row or column of a cell."""
        if self.compare._colorize == "rowwise":
            keys = [(row, column) for column in self.columns]
        else:
            keys = [(other, description) for other in self.rows if other[0] == row[0]]
        return min(self.cells[key].median for key in keys if key in self.cells)

    def render(self) -> str:
        titles = ["", *[column or "" for column in self.columns]]
        texts = [self._row_names(), *[self._column(column) for column in self.columns]]
        widths = [max(map(len, [title, *cells])) for title, cells in zip(titles, texts, strict=True)]
        lines = ["  |  ".join([title.center(w) for title, w in zip(titles, widths, strict=True)])]
        width, threads = len(lines[0]), None
        for row, (name, *cells) in zip(self.rows, zip(*texts, strict=True), strict=True):
            if row[0] != threads:
                threads = row[0]
                lines.append(f"{threads} threads: ".ljust(width, "-"))
            parts = [name.ljust(widths[0])]
            for description, text, w in zip(self.columns, cells, widths[1:], strict=True):
                text, result = text.center(w), self.cells.get((row, description))
                if self.compare._colorize and result is not None:
                    text = _coloured(text, result.median, self._best(row, description))
                parts.append(text)
            lines.append("  |  ".join(parts))
        lines = [f"[{f' {self.label} '.center(width - 2, '-')}]", *lines, ""]
        lines.append(f"Times are in {unit_to_english(self.unit)}s ({self.unit}).")
        if self.compare._highlight_warnings and self.fluctuates:
            lines.append("(! XX%) Measurement has high variance, where XX is the IQR / median * 100.")
        return "\n".join(lines) + "\n"


class Compare:
    """Tables of measurements, one per label, which can be printed or converted to a string.

    The rows are tasks (`sub_label`, or else the statement) and numbers of threads; the columns are descriptions.

    Args:
        results: the measurements; those of the same task are merged.

    Raises:
        ValueError: an element is not a Measurement.

    Example:
        >>> from tinytorch.utils.benchmark import Compare, Measurement, TaskSpec
        >>> task = TaskSpec("x + 1", "pass", label="Sums", description="eager")
        >>> print(Compare([Measurement(1, [0.5, 0.5], task)]))
        [------- Sums ------]
                     |  eager
        1 threads: ----------
              x + 1  |  500.0
        <BLANKLINE>
        Times are in milliseconds (ms).
        <BLANKLINE>
    """

    def __init__(self, results: list[Measurement]) -> None:
        self._results: list[Measurement] = []
        self.extend_results(results)
        self._trim_significant_figures = False
        self._colorize: str | None = None
        self._highlight_warnings = False

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Add measurements.

        Raises:
            ValueError: an element is not a Measurement.
        """
        results = list(results)
        for result in results:
            if not isinstance(result, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(result)} instead.")
        self._results.extend(results)

    def trim_significant_figures(self) -> None:
        """Show only significant digits."""
        self._trim_significant_figures = True

    def colorize(self, rowwise: bool = False) -> None:
        """Show the best times of each column (or row) in green and bad ones in red."""
        self._colorize = "rowwise" if rowwise else "columnwise"

    def highlight_warnings(self) -> None:
        """Mark measurements with a high variance."""
        self._highlight_warnings = True

    def print(self) -> None:
        """Print the tables."""
        print(self)

    def __str__(self) -> str:
        groups: dict[Any, list[Measurement]] = {}
        for result in Measurement.merge(self._results):
            groups.setdefault(result.label, []).append(result)
        return "\n".join([_Table(self, group).render() for group in groups.values()])
