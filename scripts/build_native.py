"""Build the native kernels (tinytorch/kernels/native): for wheels, as hatchling's hook; by hand, in this checkout.

    python scripts/build_native.py [FLAG ...]

needs a C compiler, setuptools and NumPy; the flags go to the compiler and the linker. Where there is no compiler, or
it fails, a wheel has no native kernels, and computes the same with NumPy. `TINYTORCH_NATIVE=0` makes one anywhere.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # by hand
    BuildHookInterface = object

ROOT = Path(__file__).resolve().parent.parent
FOLDER = "tinytorch/kernels/native"
SOURCES = "module pool baseline avx2 avx512".split()
FLAGS = """
    -std=gnu11 -O3 -ffp-contract=fast -fno-math-errno -fno-trapping-math
    -fvisibility=hidden -Wall -Wextra -Wno-psabi -Wno-missing-field-initializers
"""


def wanted() -> bool:
    """Return whether to try: on systems with pthreads, with a Python that has a stable ABI."""
    there = os.name == "posix" and sys.platform not in ("emscripten", "wasi")
    return there and os.environ.get("TINYTORCH_NATIVE") != "0" and not sysconfig.get_config_var("Py_GIL_DISABLED")


def build(into: Path, flags: list[str]) -> Path:
    """Build the library into a folder, and return its path."""
    import numpy as np
    from setuptools import Distribution, Extension

    native = ROOT / FOLDER
    # GCC 12 moves 8 bytes by an MMX register where there is only SSE2, and leaves it so: the next number of x87, in
    # NumPy's remainder, say, is NaN.
    without = ["-mno-mmx"] if sysconfig.get_platform().endswith(("x86_64", "amd64")) else []
    extension = Extension(
        "_native",
        [os.path.relpath(native / f"{name}.c") for name in SOURCES],
        include_dirs=[np.get_include()],
        depends=[str(path) for path in native.glob("*.[ch]")],
        define_macros=[("Py_LIMITED_API", "0x030B0000")],
        py_limited_api=True,
        extra_compile_args=["-g0", "-pthread", *FLAGS.split(), *without, *flags],
        extra_link_args=["-pthread", *flags],
    )
    command: Any = Distribution({"ext_modules": [extension]}).get_command_obj("build_ext")
    with tempfile.TemporaryDirectory() as scratch:
        command.force, command.build_lib, command.build_temp = True, str(into), scratch
        command.ensure_finalized()
        command.run()
    return Path(command.get_ext_fullpath("_native"))


class NativeBuildHook(BuildHookInterface):  # type: ignore[misc, valid-type]
    """Puts the library into a wheel, and beside its sources for `pip install -e`."""

    def dependencies(self) -> list[str]:
        """Return what building it needs."""
        return ["setuptools>=77", "numpy>=2.1"] if wanted() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the library; without a compiler, go on without."""
        if self.target_name != "wheel" or not wanted():
            return
        self.scratch = tempfile.TemporaryDirectory()
        into = ROOT / FOLDER if version == "editable" else Path(self.scratch.name)
        try:
            library = build(into, [])
        except Exception as error:
            self.app.display_warning(f"without native kernels, which only make it faster: {error}")
            return
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["pure_python"] = False
        build_data["tag"] = f"cp311-abi3-{platform}"
        if version != "editable":
            build_data["force_include"][str(library)] = f"{FOLDER}/{library.name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was built apart."""
        if hasattr(self, "scratch"):
            self.scratch.cleanup()


if __name__ == "__main__":
    print(build(ROOT / FOLDER, sys.argv[1:]))
