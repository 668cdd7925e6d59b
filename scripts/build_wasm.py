#!/usr/bin/env python
"""Build the native kernels for Pyodide (WebAssembly with vectors of 128 bits): prints where the library is.

    pip install ziglang numpy
    python scripts/build_wasm.py FOLDER

The library is `FOLDER/_native.abi3.so`, for Pyodide with Python 3.11 or later: copy it into `tinytorch/kernels/native/`
of the tree, or of the wheel, that the page loads. The compiler is Zig's Clang. Headers of Python and NumPy for 32 bits
are made from those of this Python, in which sizes are replaced; the library uses the stable ABI alone.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import numpy as np
from build_native import FLAGS, FOLDER, LIMITED_API, ROOT, SOURCES

ZIG = [sys.executable, "-m", "ziglang"]
#: What all browsers and Node.js 20 have; with more, the library would not load there.
FEATURES = "mvp+simd128+bulk_memory+sign_ext+nontrapping_fptoint+mutable_globals"


def headers(into: Path) -> list[Path]:
    """Write headers for 32 bits into a folder, and return the folders to include."""
    python, numpy = into / "python", into / "numpy"
    shutil.copytree(sysconfig.get_paths()["include"], python)
    shutil.copytree(Path(np.get_include()) / "numpy", numpy / "numpy")
    config = Path(sysconfig.get_config_h_filename()).read_text("utf-8")
    config = re.sub(r"(#define (?:SIZE|ALIGN)OF_(?:LONG|VOID_P|SIZE_T|PTHREAD_T|UINTPTR_T)) 8", r"\1 4", config)
    (python / "pyconfig.h").write_text(config.replace("#define HAVE_GCC_UINT128_T 1", ""), "utf-8")
    path = numpy / "numpy" / "_numpyconfig.h"
    config = re.sub(r"(#define NPY_SIZEOF_(?:LONG|PY_INTPTR_T|INTP|UINTP)) 8", r"\1 4", path.read_text("utf-8"))
    path.write_text(config.replace("NPY_NO_SMP 0", "NPY_NO_SMP 1"), "utf-8")
    return [python, numpy]


def build(into: Path) -> Path:
    """Build the library into a folder, and return its path."""
    into.mkdir(parents=True, exist_ok=True)
    library = into / "_native.abi3.so"
    with tempfile.TemporaryDirectory() as scratch:
        includes = [f"-I{folder}" for folder in headers(Path(scratch))]
        flags = [*FLAGS.split(), "-g0", "-fPIC", "-fno-sanitize=all", "-target", "wasm32-wasi", f"-mcpu={FEATURES}"]
        objects = []
        for name in SOURCES:
            objects.append(f"{scratch}/{name}.o")
            source = str(ROOT / FOLDER / f"{name}.c")
            command = [*ZIG, "cc", *flags, "-D{}={}".format(*LIMITED_API), *includes, "-c", source, "-o", objects[-1]]
            subprocess.run(command, check=True)
        link = "wasm-ld -shared --experimental-pic --no-entry --allow-undefined -Bsymbolic --export=PyInit__native"
        link += " --unresolved-symbols=import-dynamic"
        subprocess.run([*ZIG, *link.split(), *objects, "-o", str(library)], check=True)
    return library


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(build(Path(sys.argv[1])))
