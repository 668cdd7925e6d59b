"""The C files of the native kernels: each family compiles on its own."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import sysconfig
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "build_native.py"


def load_script() -> Any:
    spec = importlib.util.spec_from_file_location("build_native", SCRIPT)
    assert spec and spec.loader
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


if not SCRIPT.exists():
    pytest.skip("this is not a checkout", allow_module_level=True)

build_native = load_script()
COMPILER = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]
HEADER = Path(sysconfig.get_paths()["include"]) / "Python.h"


@pytest.mark.skipif(not shutil.which(COMPILER) or not HEADER.exists(), reason="there is no C compiler for Python")
@pytest.mark.skipif(os.name != "posix", reason="native kernels need pthreads")
@pytest.mark.parametrize("path", build_native.families(), ids=lambda path: path.stem)
def test_a_family_compiles_on_its_own(path: Path) -> None:
    for width in build_native.WIDTHS if build_native.is_x86() else [4]:
        assert build_native.check(path, width) == ""


def test_every_family_is_part_of_the_library() -> None:
    text = (build_native.ROOT / build_native.FOLDER / "families.h").read_text("utf-8")
    families = [path.stem for path in build_native.families()]
    assert sorted(re.findall(r'#include "(\w+)\.c"', text)) == sorted(re.findall(r"(\w+)_kernels", text)) == families


def test_what_is_contracted_is_written_in_the_source() -> None:
    """By flags, Clang for ARM contracts an expression in one tile and not in another: results depend on threads."""
    assert "-ffp-contract" not in build_native.FLAGS
    header = (build_native.ROOT / build_native.FOLDER / "native.h").read_text("utf-8")
    assert "\n#ifdef __clang__\n#pragma STDC FP_CONTRACT ON\n#endif\n" in header
