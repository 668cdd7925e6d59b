"""How examples in docstrings are run: they find the package as `torch`."""

import doctest
import importlib.util
import traceback
import types
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import tinytorch
import tinytorch.nn  # before a test of a part of it makes pytest import that part alone

PACKAGE = Path(tinytorch.__file__).parent

#: Modules that only hand on what others write, and modules that have another name than their path says: of the latter
#: `tests/test_docs.py` runs the examples.
NOT_LOOKED_AT = ("__init__.py", "linalg.py", "special.py", "fft.py", "nn/functional/__init__.py", "compat")
#: The optional package that the examples of a module need.
NEEDED = {"fx/onnx/exporting.py": "onnx", "inspect/plots.py": "matplotlib"}


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Look for examples where they are written, and nowhere twice, if the package that they need is installed."""
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


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say in one line per reason how many tests were skipped: without PyTorch there are more than a thousand."""
    reasons = Counter(str(report.longrepr[-1]) for report in terminalreporter.stats.get("skipped", ()))
    if reasons:
        terminalreporter.section("skipped tests")
    for reason, number in reasons.most_common():
        terminalreporter.write_line(f"{number} skipped: {reason.removeprefix('Skipped: ')}")
