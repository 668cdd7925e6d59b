"""The statements in pyproject.toml are true. (scripts/check_package tests the wheel itself.)"""

from __future__ import annotations

import functools
import io
import re
import tomllib
import zipfile
from pathlib import Path

import pytest

import tinytorch
from tests import typed_program

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = Path(tinytorch.__file__).parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]

#: The name by which the code uses a package, if it differs from the distribution's.
CALLED = {
    "pillow": "PIL",
    "mkdocs-material": "mkdocs",  # (its theme)
    "pytest-xdist": "pytest -n",
    "mpich": "mpi4py",  # (mpi4py loads it)
}


@functools.cache
def texts() -> dict[Path, str]:
    """Return the files that may mention packages, with their text."""
    folders = [PACKAGE, *(ROOT / name for name in ("benchmarks", "examples", "scripts", "tests"))]
    found = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    found += [*ROOT.glob("*.py"), *ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]
    return {path: path.read_text("utf-8") for path in found if path.suffix not in (".bin", ".npz", ".pyc", ".so")}


def names(requirements: list[str]) -> set[str]:
    return {re.match(r"[\w-]+", each)[0] for each in requirements}  # type: ignore[index]


@pytest.mark.parametrize("extra", sorted({*EXTRAS} - {"course"}))  # (whose program opens the notebooks)
def test_an_extra_names_what_is_used(extra: str) -> None:
    for name in names(EXTRAS[extra]):
        called = CALLED.get(name, name)
        use = re.compile(
            rf'^ *(import|from) {called}\b|(importorskip|package)\("{called}\b|python -m {called}\b', re.MULTILINE
        )
        assert any(use.search(text) for text in texts().values() if called in text), name


def test_the_name_of_the_distribution_stands_in_one_place() -> None:
    """The distribution may have to be renamed, unlike the package that is imported: no file may rely on its name."""
    name = re.escape(PROJECT["name"])
    installed = re.compile(rf"pip install [^\n`]*(?<![\w/.]){name}\b|\b{name}\[[a-z]")
    if name != tinytorch.__name__:
        installed = re.compile(name)
    assert [path for path, text in texts().items() if installed.search(text)] == []


def test_the_wheel_is_as_small_as_it_is_said_to_be() -> None:
    with zipfile.ZipFile(io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as wheel:
        for path in PACKAGE.rglob("*.py*"):
            if path.suffix != ".pyc":
                wheel.write(path)
        size = sum(each.compress_size for each in wheel.infolist())
    assert 0.8e6 < size < 2.0e6
    assert PROJECT["description"].endswith("a wheel of about three megabytes.")
    assert "a wheel of about three megabytes" in (ROOT / "README.md").read_text("utf-8")


def test_the_program_that_type_checkers_read_runs() -> None:
    assert 0 <= typed_program.train() < 100


def test_types_of_results_are_known() -> None:
    api = pytest.importorskip("mypy.api")
    found = api.run([f"--config-file={ROOT / 'pyproject.toml'}", typed_program.__file__])
    assert found[2] == 0, found[0]
