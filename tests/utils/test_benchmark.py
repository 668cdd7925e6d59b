"""`torch.utils.benchmark`: the measurements and their representation, against PyTorch."""

from __future__ import annotations

import importlib
import itertools
import pickle
import re
from typing import Any

import pytest

import tinytorch
from tests.same import compared, same_as_pytorch
from tinytorch.inspect import benchmark

TIMES = {
    "one": [0.25], "two": [1.0, 3.0], "steady": [1.0, 1.01, 1.02, 1.03, 1.04], "fluctuating": [1.0, 1.1, 1.15, 1.3],
    "wild": [1.0, 5.0, 2.0, 9.0, 0.5, 0.1],
}  # fmt: skip
TASKS: dict[str, dict[str, Any]] = {
    "plain": {"stmt": "x + 1", "setup": "pass"},
    "labelled": {"stmt": "x", "setup": "x = 1", "label": "Sum", "sub_label": "4x8", "description": "of floats"},
    "lines": {"stmt": "x\ny", "setup": "a\nb", "sub_label": "two", "num_threads": 3},
}


def shown(torch: Any, made: Any) -> str:
    return re.sub(r"<.*>", "<>", repr(made))


def of(torch: Any) -> Any:
    return importlib.import_module(f"{torch.__name__}.utils.benchmark")


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("scale", [1.0, 1e-4, 3e-6])
@compared
def test_measurements(torch: Any, times: str, task: str, scale: float) -> list[Any]:
    b = of(torch)
    made = b.Measurement(10, [time * scale for time in TIMES[times]], b.TaskSpec(**TASKS[task]))
    numbers = [made.median, made.mean, made.iqr, made.significant_figures, made.has_warnings]
    names = [made.title, made.as_row_name, made.stmt, made.num_threads, made.task_spec.setup_str()]
    merged = b.Measurement.merge([made, made])
    return [*numbers, *names, shown(torch, made), [shown(torch, each) for each in merged]]


@pytest.mark.parametrize("arguments", [{"stmt": 3}, {"language": "fortran"}, {"global_setup": "int x;"}], ids=str)
def test_refused(arguments: dict[str, Any]) -> None:
    same_as_pytorch(lambda torch: of(torch).Timer(**arguments))


def test_numbers_as_text() -> None:
    def program(torch: Any) -> list[Any]:
        b = of(torch)
        units = [b.select_unit(10.0**k * 2.5) for k in range(-10, 3)]
        return [units, [b.unit_to_english(u) for u, _ in units]]

    same_as_pytorch(program)
    trimmed = [benchmark.trim_sigfig(x, 2) for x in (3.14159, -12345.0, 0.00123456)]
    assert trimmed == [3.1, -12000.0, 0.0012]


def ticking() -> Any:
    """Return a clock that advances by a second at each call."""
    return itertools.count().__next__


def test_the_statement_is_run_and_timed() -> None:
    done: list[int] = []
    timer = benchmark.Timer(
        """
        done.append(k)
        """,
        setup="k = 2", timer=ticking(), globals={"done": done}, label="Append",
    )  # fmt: skip
    made = timer.timeit(300)
    assert done == [2] * 303 and made.raw_times == [1.0] and made.number_per_run == 300
    assert made.times == [1 / 300] and made.title == "Append"
    blocked = timer.blocked_autorange(min_run_time=0.5)
    assert blocked.raw_times == [1.0] and blocked.number_per_run == 1
    assert pickle.loads(pickle.dumps(blocked)) == blocked
    seen: list[Any] = []
    adaptive = timer.adaptive_autorange(min_run_time=2.0, callback=lambda number, time: seen.append((number, time)))
    assert len(adaptive.raw_times) == 4 == len(seen) and adaptive.iqr == 0
    with pytest.raises(NotImplementedError):
        timer.repeat()


def test_threads_are_put_back() -> None:
    before = tinytorch.get_num_threads()
    counts: list[int] = []
    names = {"note": lambda: counts.append(tinytorch.get_num_threads())}
    benchmark.Timer("note()", globals=names, num_threads=before + 1).timeit(2)
    assert set(counts) == {before + 1} and tinytorch.get_num_threads() == before


def grid(b: Any, missing: int = 0, **given: Any) -> list[Any]:
    """Return measurements for a table of two statements, two descriptions and two numbers of threads."""
    made = []
    for times, label in ((1, "add"), (3, "multiply")):
        for ratio, way in ((1, "eager"), (6.5, "slow")):
            for threads in (1, 4):
                task: dict[str, Any] = {"label": "Sums", "sub_label": label, "description": way}
                spec = b.TaskSpec("x + 1", "pass", **(task | {"num_threads": threads} | given))
                seconds = [each * times * ratio / threads for each in (1e-4, 1.1e-4, 1.2e-4, 0.9e-4)]
                made.append(b.Measurement(10, seconds, spec))
    return made[: len(made) - missing]


def task(b: Any, seconds: list[float], **given: Any) -> Any:
    fields = {"stmt": "x", "setup": "pass", "label": "L", "description": "d"} | given
    return b.Measurement(1, seconds, b.TaskSpec(**fields))


WILD = [1e-3, 5e-3, 1e-2, 3e-3]
TABLES: dict[str, Any] = {
    "a grid": grid, "merged": lambda b: grid(b) + grid(b), "with a gap": lambda b: grid(b, missing=2),
    "environments": lambda b: grid(b, env="new") + grid(b, env="older one"),
    "no label": lambda b: [task(b, [1.0, 1.2], label=None)],
    "two labels": lambda b: [task(b, [1e-3]), task(b, [2e-6], label="M")],
    "fluctuating": lambda b: [task(b, WILD), task(b, [1e-3, 1e-3], stmt="steady")],
    "far apart": lambda b: [task(b, [1e-9]), task(b, [2e-3], stmt="long")],
    "close": lambda b: [task(b, [each * 1e-3], stmt=str(each)) for each in (1, 1.005, 1.05, 1.5, 2, 5)],
    "none": lambda b: [],
}  # fmt: skip
SETTINGS: dict[str, Any] = {
    "plain": lambda c: None, "trimmed": lambda c: c.trim_significant_figures(), "by columns": lambda c: c.colorize(),
    "by rows": lambda c: c.colorize(rowwise=True), "warnings": lambda c: c.highlight_warnings(),
    "all": lambda c: (c.trim_significant_figures(), c.colorize(), c.highlight_warnings()),
}  # fmt: skip


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("table", TABLES)
@compared
def test_compare(torch: Any, table: str, setting: str, capsys: Any) -> Any:
    compare = of(torch).Compare(TABLES[table](of(torch)))
    SETTINGS[setting](compare)
    compare.extend_results(iter([]) if table == "none" else [])
    compare.print()
    return str(compare), capsys.readouterr().out


def test_compare_takes_measurements_alone() -> None:
    same_as_pytorch(lambda torch: of(torch).Compare([1]))
    same_as_pytorch(lambda torch: of(torch).ordered_unique([2, 1, 2, 3, 1]))
    same_as_pytorch(lambda torch: task(of(torch), []).mean)


def test_compare_of_what_a_timer_measured() -> None:
    timer = benchmark.Timer("x + 1", globals={"x": 1}, label="Sum", description="ints")
    text = str(benchmark.Compare([timer.timeit(3), timer.blocked_autorange(min_run_time=0.01)]))
    assert "- Sum -" in text and text.count("x + 1") == 1 and "ints" in text
