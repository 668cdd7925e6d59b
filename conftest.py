"""Which tests run when, and how examples in docstrings are run: they find the package as `torch`."""

import doctest
import fnmatch
import importlib.util
import json
import logging
import os
import time
import traceback
import types
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import tinytorch
import tinytorch.nn  # before a test of a part of it makes pytest import that part alone

ROOT = Path(__file__).parent
PACKAGE = Path(tinytorch.__file__).parent


class _Failing(logging.Handler):
    """Lets tests fail where there is an error of the compiler: the program runs as Python then, and would pass them."""

    def emit(self, record: logging.LogRecord) -> None:
        """Fail."""
        pytest.fail(record.getMessage())


logging.getLogger("tinytorch.compiler.recorder").addHandler(_Failing(logging.ERROR))

#: Each tier has the tests of those before it. CONTRIBUTING.md says what each is for.
TIERS = ("fast", "ci", "nightly")
#: The files and tests that are not in the fast tier, by patterns of their names. The last pattern that matches decides.
TIER_OF: dict[str, str] = {
    # Processes are started.
    "tests/compiler/test_cache.py::test_processes*": "ci",
    "tests/data/test_torchvision_installed.py": "nightly",
    "tests/data/test_vision.py::test_a_slow_download*": "ci",
    "tests/data/test_workers.py": "ci",
    "tests/data/test_workers.py::test_persistent_workers_stay_the_same_processes": "fast",
    "tests/distributed/*": "ci",
    "tests/distributed/test_alone.py": "fast",
    "tests/distributed/test_checkpoint.py": "nightly",
    "tests/distributed/test_resume.py": "nightly",
    "tests/distributed/test_run.py": "nightly",
    "tests/distributed/test_scaling.py": "nightly",
    "tests/distributed/test_zero.py": "nightly",
    "tests/fx/test_graph_module.py::test_a_folder*": "ci",
    "tests/fx/test_torchvision.py": "nightly",
    "tests/inspect/test_notes.py::test_errors_that_nobody*": "ci",
    "tests/kernels/test_native_sources.py": "ci",
    "tests/kernels/test_processors.py::test_blas*": "ci",
    "tests/ops/test_batching.py::test_nearly*": "ci",
    "tests/test_alias.py": "nightly",
    "tests/test_alias.py::test_options_of_python_are_kept": "fast",
    "tests/test_atomic.py::*kill*": "ci",
    "tests/test_atomic.py::*processes*": "ci",
    "tests/test_examples.py::test_as_a_process*": "ci",
    "tests/test_examples.py::test_interrupted": "ci",
    "tests/test_examples.py::test_the_whole_program": "ci",
    "tests/test_imported_names.py": "ci",
    "tests/test_meta.py::test_it_takes_no_memory*": "ci",
    "tests/test_narrow.py::test_results_are_the_same*": "nightly",
    "tests/test_package.py::test_types_of_results*": "ci",
    "tests/test_portability.py": "nightly",
    "tests/test_train_fashion_mnist.py::test_interrupted": "ci",
    "tests/test_train_fashion_mnist.py::test_statuses*": "ci",
    "tests/test_warnings.py": "nightly",
    "tests/website/*": "ci",
    # Programs are compiled: drawn ones, and all samples and scripts.
    "tests/compiler/test_backward.py": "ci",
    "tests/compiler/test_batches.py": "ci",
    "tests/compiler/test_checked.py": "ci",
    "tests/compiler/test_distributions.py": "ci",
    "tests/compiler/test_models.py": "ci",
    "tests/compiler/test_random.py": "ci",
    "tests/compiler/test_samples.py": "ci",
    "tests/compiler/test_save.py::test_alone_it_gives_the_same_bits*": "nightly",
    "tests/compiler/test_save.py::test_kernels_are_copies*": "ci",
    "tests/compiler/test_save.py::test_the_text_is_tidy*": "ci",
    "tests/compiler/test_save.py::test_the_users_lines*": "ci",
    "tests/compiler/test_scripts.py": "ci",
    "tests/compiler/test_sizes.py": "ci",
    "tests/compiler/test_sweep.py": "ci",
    # All samples are called, and their forms with sizes of 0.
    "tests/test_uninitialized.py": "ci",
    # Programs are trained, or graphs are large.
    "tests/autograd/test_deep_graphs.py": "ci",
    "tests/autograd/test_picture.py::*nodes": "nightly",
    "tests/autograd/test_references.py::test_random_programs*": "ci",
    "tests/data/test_drawn.py": "nightly",
    "tests/data/test_drawn.py::test_the_same_seed*": "fast",
    "tests/data/test_torchvision_ops.py::*gradients*": "ci",
    "tests/inspect/test_doctor.py": "ci",
    "tests/inspect/test_remedies.py::test_random_models*": "ci",
    "tests/inspect/test_plots.py::test_everything_in_one_figure*": "ci",
    "tests/kernels/test_blocks.py": "ci",
    "tests/nn/test_rnn.py::test_gradients_of_first_and_second_order*": "ci",
    "tests/ops/test_decompose.py::test_gradients_on_symmetric_input*": "ci",
    "tests/test_benchmarks.py": "ci",
    "tests/test_coverage.py": "ci",
    "tests/test_docs.py::test_lessons*": "ci",
    "tests/test_train_fashion_mnist.py::test_the_task*": "nightly",
    "tests/test_train_fashion_mnist.py::test_without_a_network": "ci",
}

#: Modules that only hand on what others write, and modules that have another name than their path says: of the latter
#: `tests/test_docs.py` runs the examples.
NOT_LOOKED_AT = ("__init__.py", "linalg.py", "special.py", "fft.py", "nn/functional/__init__.py", "compat")
#: The optional package that the examples of a module need.
NEEDED = {"fx/onnx/exporting.py": "onnx", "inspect/plots.py": "matplotlib"}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that chooses the tests."""
    parser.addoption(
        "--tier", choices=TIERS, help="which tests run: by default fast; if files are named, all of their tests"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Choose the tier and the turn, in the environment, from which the processes of pytest-xdist take them."""
    if not hasattr(config, "workerinput"):
        named = config.args_source is config.ArgsSource.ARGS
        os.environ["TINYTORCH_TIER"] = config.option.tier or ("nightly" if named else "fast")
        os.environ.setdefault("TINYTORCH_TURN", str(int(time.time()) // 86400))


def pytest_report_header() -> str:
    """Report what was chosen."""
    tier, turn = os.environ["TINYTORCH_TIER"], os.environ["TINYTORCH_TURN"]
    return f"tier: {tier}" + (f", TINYTORCH_TURN={turn}" if tier == "ci" else "")


def tier_of(name: str) -> int:
    """Return the number of the first tier that has a test, or any test of a file."""
    names = name, name.partition("::")[0]
    found = [tier for pattern, tier in TIER_OF.items() if any(fnmatch.fnmatchcase(each, pattern) for each in names)]
    return TIERS.index(found[-1]) if found else 0


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of later tiers."""
    limit = TIERS.index(os.environ["TINYTORCH_TIER"])
    later = [item for item in items if tier_of(item.nodeid) > limit]
    if later:
        config.hook.pytest_deselected(items=later)
        items[:] = [item for item in items if tier_of(item.nodeid) <= limit]


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out files of later tiers; and look for examples where they are written, if what they need is installed."""
    if collection_path.is_relative_to(ROOT):
        name = collection_path.relative_to(ROOT).as_posix()
        later = tier_of(name) > TIERS.index(os.environ["TINYTORCH_TIER"])
        if later and not any(pattern.startswith(f"{name}::") for pattern in TIER_OF):  # some of its tests are earlier
            return True
    missing = [file for file, package in NEEDED.items() if importlib.util.find_spec(package) is None]
    return True if collection_path in [PACKAGE / each for each in (*NOT_LOOKED_AT, *missing)] else None


@pytest.fixture(autouse=True, scope="session")
def torch_in_examples(doctest_namespace: dict[str, Any]) -> None:
    """Let docstrings begin with what they are about."""
    doctest_namespace["torch"] = tinytorch


def _without_notes(kind: Any, value: Any) -> list[str]:
    """Return the lines of an exception without its notes."""
    lines = traceback.TracebackException(kind, value, None)
    lines.__notes__ = None  # type: ignore[attr-defined]
    return list(lines.format_exception_only())


@pytest.fixture(autouse=True, scope="session")
def notes_of_errors_in_examples() -> None:
    """Compare the messages of errors in examples: `doctest` takes the last line for it, also that of a note."""
    shown = types.SimpleNamespace(**{**vars(traceback), "format_exception_only": _without_notes})
    doctest.traceback = shown  # type: ignore[attr-defined]


#: How long the tests of each folder took, in seconds of one process; and how long pytest needed to begin.
SECONDS: Counter[str] = Counter()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add the time of a test to that of its folder; the files beside the folders of tests/ count together."""
    first, *others = report.nodeid.partition("::")[0].split("/")[:-1]
    SECONDS["/".join([first, *others[:1]]) if first == "tests" else first] += report.duration


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the times of the folders into the file that TINYTORCH_SECONDS names; scripts/budget compares them."""
    path = os.environ.get("TINYTORCH_SECONDS")
    if path and not hasattr(session.config, "workerinput"):
        Path(path).write_text(json.dumps(SECONDS), "utf-8")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say in one line per reason how many tests were skipped: without PyTorch there are more than a thousand."""
    reasons = Counter(str(report.longrepr[-1]) for report in terminalreporter.stats.get("skipped", ()))
    if reasons:
        terminalreporter.section("skipped tests")
    for reason, number in reasons.most_common():
        terminalreporter.write_line(f"{number} skipped: {reason.removeprefix('Skipped: ')}")
