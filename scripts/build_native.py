#!/usr/bin/env python
"""Build the native kernels (tinytorch/kernels/native): for wheels, as hatchling's hook; by hand, in this checkout.

    python scripts/build_native.py [FLAG ...]
    python scripts/build_native.py --check

The first command needs a C compiler, setuptools and NumPy; the flags go to the compiler and the linker. The second one
compiles nothing, but checks the syntax of every kernel family on its own, for every instruction set. Where there is no
compiler, or it fails, a wheel has no native kernels, and computes the same with NumPy. `TINYTORCH_NATIVE=0` builds such
a wheel anywhere. A note beside the library, which `torch.__config__.show()` shows, says what was done.

All sources with long loops are compiled at `-O3`. At `-O2` the compiler takes two thirds of the time, but convolutions,
attention, transforms and quantized layers take 1.4 to 3 times theirs: loops over a tile are not unrolled. Of the
families that are as fast at `-O2` (elementary functions, arithmetic, pooling), the compiler would save a twentieth.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # by hand
    BuildHookInterface = object

ROOT = Path(__file__).resolve().parent.parent
FOLDER = "tinytorch/kernels/native"
NOTE = "build.txt"  # the file beside the sources that says how the library was built, or why there is none
SOURCES = "avx512 avx2 baseline module call walk methods threads".split()  # what takes longest comes first
#: (No `-ffp-contract`: native.h says what is contracted.)
FLAGS = """
    -std=gnu11 -O3 -fno-math-errno -fno-trapping-math
    -fno-asynchronous-unwind-tables -fvisibility=hidden -Wall -Wextra -Wno-psabi -Wno-missing-field-initializers
"""
#: Sources without long loops are made smaller.
SMALLER = {"methods": "-Os", "call": "-O2", "walk": "-O2"}
LIMITED_API = ("Py_LIMITED_API", "0x030B0000")  # of Python 3.11
#: The vector width of each instruction set, and the flags that select it.
WIDTHS = {4: "", 8: "-mavx2 -mfma", 16: "-mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma"}


def is_x86() -> bool:
    """Return whether this is an x86 processor of 64 bits."""
    return sysconfig.get_platform().endswith(("x86_64", "amd64"))


def wanted() -> bool:
    """Return whether to build: on systems with pthreads, with a Python that has a stable ABI."""
    posix = os.name == "posix" and sys.platform not in ("emscripten", "wasi")
    return posix and os.environ.get("TINYTORCH_NATIVE") != "0" and not sysconfig.get_config_var("Py_GIL_DISABLED")


def unwanted() -> str:
    """Return why nothing is built."""
    if os.environ.get("TINYTORCH_NATIVE") == "0":
        return "omitted by TINYTORCH_NATIVE=0"
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return "omitted: this Python has no global interpreter lock, and no stable ABI"
    return f"omitted: they are not built for {sys.platform}"


def compiler() -> list[str]:
    """Return the command of the C compiler."""
    return shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")


def built() -> str:
    """Return in one line when and by what the library is built."""
    lines = subprocess.run([*compiler(), "--version"], capture_output=True, text=True).stdout.splitlines()
    when = time.strftime("%Y-%m-%d %H:%M", time.gmtime(float(os.environ.get("SOURCE_DATE_EPOCH") or time.time())))
    return f"built {when} UTC by {' '.join([*lines[:1], *FLAGS.split()])}"


def failure(error: Exception) -> str:
    """Return in one line why building failed."""
    command = compiler()[0]
    if shutil.which(command) is None:
        return f"no C compiler was found ({command})"
    return f"building them failed: {' '.join(str(error).split()) or type(error).__name__}"


def digest(flags: list[str]) -> str:
    """Return what tells from which sources, and by which command, a library is built: the library contains it."""
    found = hashlib.sha256(
        " ".join([*compiler(), FLAGS, str(SMALLER), *flags, sysconfig.get_platform(), *LIMITED_API]).encode()
    )
    for path in sorted((ROOT / FOLDER).glob("*.[ch]")):
        found.update(path.read_bytes())
    return f"sources {found.hexdigest()}"


def existing() -> Path | None:
    """Return the library beside the sources if it was built from them as they are, by the same command."""
    for path in (ROOT / FOLDER).glob("_native.*.so"):
        if digest([]).encode() in path.read_bytes():
            return path
    return None


def build(into: Path, flags: list[str]) -> Path:
    """Build the library into a folder, and return its path."""
    import numpy as np
    from setuptools import Distribution, Extension
    from setuptools.command.build_ext import build_ext

    class Builder(build_ext):
        """Compiles the sources side by side, where setuptools has one wait for the other."""

        def build_extensions(self) -> None:
            one_after_the_other = self.compiler.compile

            def compile(sources: list[str], extra_postargs: list[str], **options: Any) -> list[str]:
                def one(source: str) -> list[str]:
                    more = SMALLER.get(Path(source).stem, "-O3")
                    made: list[str] = one_after_the_other([source], extra_postargs=[*extra_postargs, more], **options)
                    return made

                with ThreadPoolExecutor(os.cpu_count()) as pool:
                    return [path for paths in pool.map(one, sources) for path in paths]

            self.compiler.compile = compile
            super().build_extensions()

    native = ROOT / FOLDER
    # With SSE2 alone, GCC 12 moves 8 bytes by an MMX register and does not reset the x87 unit: its next result, in
    # NumPy's remainder for example, is NaN.
    no_mmx = ["-mno-mmx"] if is_x86() else []
    extension = Extension(
        "_native",
        [os.path.relpath(native / f"{name}.c") for name in SOURCES],
        include_dirs=[np.get_include()],
        depends=[str(path) for path in native.glob("*.[ch]")],
        libraries=["m"],
        define_macros=[LIMITED_API, ("SOURCES", f'"{digest(flags)}"')],
        py_limited_api=True,
        extra_compile_args=["-g0", "-pthread", *FLAGS.split(), *no_mmx, *flags],
        # Symbols, 22 kB of a wheel, are for debuggers.
        extra_link_args=["-pthread", *(flags or (["-s"] if sys.platform == "linux" else []))],
    )
    distribution = Distribution({"ext_modules": [extension], "cmdclass": {"build_ext": Builder}})
    command: Any = distribution.get_command_obj("build_ext")
    with tempfile.TemporaryDirectory() as scratch:
        command.force, command.build_lib, command.build_temp = True, str(into), scratch
        command.ensure_finalized()
        command.run()
    return Path(command.get_ext_fullpath("_native"))


def families() -> list[Path]:
    """Return the C files of the kernel families, which families.h includes."""
    return sorted(path for path in (ROOT / FOLDER).glob("*.c") if path.stem not in SOURCES)


def check(path: Path, width: int) -> str:
    """Return the compiler's errors and warnings for a kernel family on its own, with vectors of `width` floats."""
    import numpy as np

    includes = [f"-I{folder}" for folder in (np.get_include(), sysconfig.get_paths()["include"])]
    macros = ["-D{}={}".format(*macro) for macro in (LIMITED_API, ("WIDTH", width))]
    flags = ["-fsyntax-only", "-Werror", *FLAGS.split(), *WIDTHS[width].split()]
    command = [*compiler(), *flags, *includes, *macros, str(path)]
    return subprocess.run(command, capture_output=True, text=True).stderr


class NativeBuildHook(BuildHookInterface):  # type: ignore[misc, valid-type]
    """Puts the library into a wheel, and beside its sources for `pip install -e`."""

    def dependencies(self) -> list[str]:
        """Return what building it needs."""
        return ["setuptools>=77", "numpy>=2.1"] if wanted() and not existing() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the library; without a compiler, go on without."""
        if self.target_name != "wheel":
            return
        self.scratch = tempfile.TemporaryDirectory()
        into = ROOT / FOLDER if version == "editable" else Path(self.scratch.name)
        library, known = None, ROOT / FOLDER / NOTE
        try:
            if not wanted():
                note = unwanted()
            elif library := existing():
                before = known.read_text("utf-8").strip() if known.exists() else "built before"
                note = f"reused, {before.removeprefix('reused, ')}"
            else:
                note, library = built(), build(into, [])
        except Exception as error:
            note = failure(error)
        (into / NOTE).write_text(f"{note}\n", "utf-8")
        if version != "editable":
            build_data["force_include"][str(into / NOTE)] = f"{FOLDER}/{NOTE}"
        if library is None:
            self.app.display_warning(f"without native kernels, which only make it faster: {note}")
            return
        self.app.display_info(f"with native kernels: {note}")
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["pure_python"] = False
        build_data["tag"] = f"cp311-abi3-{platform}"
        if version != "editable":
            build_data["force_include"][str(library)] = f"{FOLDER}/{library.name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the library that has been built outside of the checkout."""
        if hasattr(self, "scratch"):
            self.scratch.cleanup()


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        sys.exit("".join(check(path, width) for path in families() for width in (WIDTHS if is_x86() else [4])) or None)
    print(build(ROOT / FOLDER, sys.argv[1:]))
    (ROOT / FOLDER / NOTE).write_text(f"{' '.join([built(), *sys.argv[1:]])}\n", "utf-8")
