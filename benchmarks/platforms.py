"""python -m benchmarks.platforms [WHEEL] [options]: what an installation takes on this platform, and when it trains.

Makes new virtual environments, installs the wheel into them (built from this checkout if none is given) from files
that have been downloaded before, and measures: the size of the wheel and of what is installed, the seconds of `pip
install`, of `import`, and from the start of Python to the end of the first training step, and those of later steps.
The model is that of the quickstart, with a batch of 64 random images. Times are medians; the table shows where.

It needs Python's standard library and pip. `--python` names another Python, also with the command of an emulator
before it, or `--pyodide` a folder with Pyodide, which Node.js runs. `--torch` measures PyTorch in the same way.
"""

from __future__ import annotations

import argparse
import atexit
import functools
import importlib.util
import json
import os
import platform
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import page

#: What the measured Python runs, after `library` and `started` have been set.
PROBE = """
import importlib, json, platform, sys, time
begin = time.perf_counter()
import numpy
of_numpy = time.perf_counter() - begin
torch = importlib.import_module(library)
of_all = time.perf_counter() - begin
nn = torch.nn
torch.manual_seed(0)
model = nn.Sequential(
    nn.Flatten(), nn.Linear(28 * 28, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)
)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
images, labels = torch.rand(64, 1, 28, 28), torch.randint(0, 10, (64,))
def step():
    begin = time.perf_counter()
    loss = nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return time.perf_counter() - begin, loss.item()
losses = [step()[1]]
first = time.time() - started
later = []
for _ in range(20):
    seconds, loss = step()
    later.append(seconds)
    losses.append(loss)
kernels = None
if library == "tinytorch":
    from tinytorch.kernels import native
    kernels = native.instructions
answer = json.dumps({
    "python": platform.python_version(), "numpy": numpy.__version__, "kernels": kernels, "import": of_all,
    "import_numpy": of_numpy, "first": first, "step": sorted(later)[10], "losses": losses,
})
"""


def prober(library: str, started: float) -> str:
    """Return the program that is measured."""
    return f"library, started = {library!r}, {started!r}\n{PROBE}"


def probed(python: Sequence[str], library: str = "tinytorch", folder: str | None = None) -> dict[str, Any]:
    """Return what the probe measures in a new process of a Python."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    code = f"{prober(library, time.time())}\nprint(answer)"
    done = subprocess.run([*python, "-c", code], cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{shlex.join(python)} failed:\n{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def middle(probes: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return one answer of several: medians of what are times."""
    times = {
        name: statistics.median(each[name] for each in probes) for name in ("import", "import_numpy", "first", "step")
    }
    return probes[0] | times


def size(folder: Path) -> int:
    """Return the size of all files in a folder, in bytes."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file() and not file.is_symlink())


@functools.cache
def copy_of_pip() -> str:
    """Return the folder of a copy of pip: where it is, it would find what is installed beside it."""
    found = importlib.util.find_spec("pip")
    if found is None or found.origin is None:
        raise RuntimeError("pip is needed: python -m ensurepip, or the system's package of it")
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder)
    return str(shutil.copytree(Path(found.origin).parent, Path(folder) / "pip"))


def pip(python: Sequence[str], *arguments: Any) -> None:
    """Run this Python's pip in another Python, which need not have one."""
    command = [*python, copy_of_pip(), "--disable-pip-version-check", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{shlex.join(command)} failed:\n{done.stdout}{done.stderr}")


def environment(python: Sequence[str], folder: Path, system: bool) -> list[str]:
    """Make an empty virtual environment, and return the command of its Python."""
    options = ["--without-pip", *["--system-site-packages"] * system]
    subprocess.run([*python, "-m", "venv", *options, str(folder)], check=True)
    return [*python[:-1], str(folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))]


def installed(
    python: Sequence[str], what: Sequence[str], wheels: Path, library: str, repeats: int, system: bool
) -> dict[str, Any]:
    """Install from a folder of wheels into new environments, and return what was measured."""
    seconds, probes = [], []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as scratch:
            inside = environment(python, Path(scratch) / "venv", system)
            begin = time.perf_counter()
            pip(inside, "install", "--quiet", "--no-index", "--find-links", wheels, *what)
            seconds.append(time.perf_counter() - begin)
            for _ in range(repeats):
                probes.append(probed(inside, library, scratch))
            packages = next(path for path in (Path(scratch) / "venv").rglob("site-packages") if path.is_dir())
            sizes = {"own": size(packages / library), "all": size(packages)}
    return middle(probes) | {"install": statistics.median(seconds), "installed": sizes}


def in_pyodide(folder: Path, wheel: Path, wheels: Path, repeats: int) -> dict[str, Any]:
    """Unpack the wheels in Pyodide, which Node.js runs, and return what was measured: in new processes each."""
    script, probes = Path(__file__).with_name("pyodide.mjs"), []
    files = [
        file for file in sorted(wheels.iterdir()) if file.suffix == ".whl" and not file.name.startswith("tinytorch-")
    ]
    for _ in range(repeats):
        command = ["node", script, folder.resolve(), *files, wheel]
        code = prober("tinytorch", time.time())
        done = subprocess.run([str(part) for part in command], input=code, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"Pyodide failed:\n{done.stderr[-3000:]}")
        probes.append(json.loads(done.stdout.splitlines()[-1]))
    return middle(probes) | {"install": statistics.median(probe["install"] for probe in probes)}


def measured(options: argparse.Namespace, wheels: Path) -> dict[str, Any]:
    """Return the row of a platform."""
    python = shlex.split(options.python)
    library, wheel = ("torch" if options.torch else "tinytorch"), options.wheel
    if wheel is None and not options.torch:
        pip([sys.executable], "wheel", "--quiet", "--no-deps", "--wheel-dir", wheels, page.ROOT)
        wheel = next(str(path) for path in wheels.glob("tinytorch-*.whl"))
    what = [options.torch, "numpy"] if options.torch else [wheel]
    if options.wheels:
        for file in Path(options.wheels).glob("*.whl"):
            shutil.copy(file, wheels)
    else:
        pip(python, "download", "--quiet", "--only-binary", ":all:", "--dest", wheels, *what)
    path = next(wheels.glob("torch-*.whl")) if options.torch else Path(wheel).resolve()
    if options.pyodide:
        row = in_pyodide(Path(options.pyodide), path, wheels, options.repeats)
    else:
        row = installed(python, what, wheels, library, options.repeats, options.system)
    losses = row.pop("losses")
    if not losses[-1] < losses[0]:
        raise RuntimeError(f"the model has not learned: its losses are {losses}")
    machine = f"{page.processor()}, {os.cpu_count()} cores"
    facts = {"library": library, "wheel": path.stat().st_size, "machine": machine, "note": options.note}
    return row | facts | page.now()


def main() -> int:
    """Measure, print the row, and keep it if asked to."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.platforms", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    option = parser.add_argument
    option("wheel", nargs="?", help="the wheel of tinytorch; without it, one is built")
    option("--name", default=f"{platform.machine()}, {platform.system()}", help="of the row (%(default)s)")
    option("--note", default="", help="what else is to be said of the platform")
    option("--python", default=sys.executable, metavar="COMMAND", help="the Python to measure (this one)")
    option("--system", action="store_true", help="the environments see the packages of that Python, as its NumPy")
    option("--wheels", metavar="FOLDER", help="wheels of what tinytorch needs, in place of a download")
    option("--pyodide", metavar="FOLDER", help="measure Pyodide, whose files are there; needs Node.js and --wheels")
    option("--repeats", type=int, default=3, help="installations, and runs of each (3)")
    option("--torch", nargs="?", const="torch", metavar="torch==VERSION", help="measure PyTorch instead")
    option("--save", action="store_true", help="keep the row in benchmarks/results.json, and write docs/performance.md")
    option("--add", nargs="+", metavar="FILE", help="measure nothing: keep rows that were printed on other machines")
    options = parser.parse_args()
    if options.pyodide and not options.wheels:
        parser.error("argument --pyodide: needs --wheels, a folder with Pyodide's NumPy and with tqdm")
    rows: page.Rows = {}
    if options.add:
        for file in options.add:
            rows |= json.loads(Path(file).read_text("utf-8").splitlines()[-1])
    else:
        with tempfile.TemporaryDirectory() as folder:
            rows[options.name] = measured(options, Path(folder))
        print(json.dumps(rows))
    if options.save or options.add:
        before = page.kept().get("platforms", {"rows": {}})["rows"]
        page.save("platforms", {}, rows, list(before | rows))
        page.write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
