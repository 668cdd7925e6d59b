"""Run the doctor on the programs of the corpus and count what it found.

python -m benchmarks.faults                       the corpus, the healthy programs, the examples, those of the tests
python -m benchmarks.faults zero_grad softmax     programs whose names contain one of these
python -m benchmarks.faults --folder DIR          the programs of a folder
python -m benchmarks.faults --healthy             programs without a mistake alone
python -m benchmarks.faults NAME --write DIR      write programs of the corpus to DIR, and run none

The corpus are the programs in `programs`, written with the doctor, and those in `others`, written by people who had not
seen it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.faults import patches

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = [Path(__file__).resolve().parent / name for name in ("programs", "others")]
#: Healthy programs with the arguments that make them short.
WITH_ARGUMENTS = {
    "examples/char_gpt.py": ["--quick"], "examples/gan_2d.py": ["--quick"], "examples/lstm_rows.py": ["--quick"],
    "examples/cnn_fashion_mnist.py": ["--quick"], "examples/vae_fashion_mnist.py": ["--quick"],
    "examples/pinn.py": ["--steps", "300", "--no-plot"],
    "train_fashion_mnist.py": ["--epochs", "1", "--dataset", "drawn", "--no-progress"],
}  # fmt: skip
#: How far from the marked line a finding may point: a missing line belongs between two.
NEAR = 2


def truth(program: Path) -> tuple[list[str], list[int]]:
    """Return the causes and the lines that a program's text names, of which each is a right answer.

    A program that is healthy names none.
    """
    lines = program.read_text("utf-8").splitlines()
    causes = next((line.partition("# cause:")[2].split(",") for line in lines[:5] if line.startswith("# cause:")), [])
    marked = [k for k, text in enumerate(lines, 1) if text.rstrip().endswith("# <- fault")]
    return [cause.strip() for cause in causes], marked


def diagnose(program: Path, arguments: list[str], timeout: float) -> dict[str, Any]:
    """Return the doctor's report on a program, with the seconds that it took."""
    begin = time.perf_counter()
    folders = [str(ROOT / "tinytorch" / "compat" / "as_torch"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    path = os.pathsep.join(folders)
    # (The programs are small: several threads would only wait for each other.)
    environment = {
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        **os.environ,
        "PYTHONPATH": path,
        "TINYTORCH_DATA": os.environ.get("TINYTORCH_DATA", "data"),
    }
    command = [sys.executable, "-m", "tinytorch.inspect.doctor", "--json", "--quiet", str(program), *arguments]
    with tempfile.TemporaryDirectory() as folder:
        try:
            run = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True, timeout=timeout, check=False
            )
            report = json.loads(run.stdout.splitlines()[-1])
            report["errors"] = run.stderr
        except (subprocess.TimeoutExpired, IndexError, json.JSONDecodeError) as error:
            said = getattr(error, "stderr", None) or (run.stderr if "run" in locals() else "")
            report = {"findings": [], "error": f"{type(error).__name__}", "errors": str(said), "notes": []}
    report["took"] = time.perf_counter() - begin
    return report


def row(name: str, causes: list[str], lines: list[int], report: dict[str, Any]) -> dict[str, Any]:
    """Return what is counted of a report."""
    findings = report["findings"]
    first = findings[0] if findings else {}
    at = first.get("line")
    return {
        "name": name, "cause": causes[0], "said": first.get("cause"), "right": first.get("cause") in causes,
        "line": lines[0] if lines else None, "at": at,
        "near": at is not None and any(abs(at - line) <= NEAR for line in lines),
        "exact": at in lines, "proven": bool(first.get("proven")), "seconds": report["took"],
        "others": [each["cause"] for each in findings[1:]], "error": report.get("error"),
        "repeated": report.get("exact"),
        "watched": report.get("seconds", 0.0), "notes": report.get("notes", []),
    }  # fmt: skip


def shown(one: dict[str, Any]) -> str:
    """Return a row as a line of text."""
    marks = "".join(("c" if one["right"] else "-", "l" if one["near"] else "-", "p" if one["proven"] else "-"))
    other = "" if one["right"] else f" (said {one['said']})"
    line = "" if one["near"] else f" line {one['at']} not {one['line']}"
    also = f" also {', '.join(one['others'])}" if one["others"] else ""
    error = f" {one['error'].splitlines()[0]}" if one["error"] else ""
    return f"{marks} {one['name']}: {one['cause']}{other}{line}{also}{error} {one['seconds']:.1f} s"


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser("python -m benchmarks.faults", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("names", nargs="*", help="parts of the names of programs")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--healthy", action="store_true", help="programs without a mistake alone")
    parser.add_argument("--faults", action="store_true", help="programs with a mistake alone")
    parser.add_argument("--timeout", type=float, default=120.0)
    parser.add_argument("--json", metavar="FILE", help="write the rows")
    parser.add_argument("--write", type=Path, metavar="DIR", help="write the programs there, run none")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as scratch:
        return measure(options, Path(scratch))


def measure(options: argparse.Namespace, scratch: Path) -> int:
    """Run the programs that the options choose, those of the tables in the folder `scratch`; return the exit code."""

    def chosen(path: Path) -> bool:
        return not options.names or any(name in path.stem for name in options.names)

    rows = []
    healthy: list[Path] = []
    folders = [options.folder.resolve()] if options.folder else FOLDERS
    everything = [path for folder in folders for path in patches.files(folder, scratch / folder.name)]
    unmarked = [] if options.folder else patches.files(patches.HEALTHY, scratch / "healthy")
    if options.write:
        options.write.mkdir(parents=True, exist_ok=True)
        for program in filter(chosen, everything + unmarked):
            shutil.copy(program, options.write)
        return 0
    for program in filter(chosen, everything):
        causes, lines = truth(program)
        if not causes:
            healthy.append(program)
        elif not options.healthy:
            rows.append(row(program.stem, causes, lines, diagnose(program, [], options.timeout)))
            print(shown(rows[-1]), flush=True)
    if not options.folder:
        healthy += unmarked
        healthy += sorted((ROOT / "tests" / "programs" / "scripts").glob("*.py"))
        healthy += [ROOT / name for name in WITH_ARGUMENTS]
    false = []
    ran = 0
    for program in () if options.faults else filter(chosen, healthy):
        known = next((given for name, given in WITH_ARGUMENTS.items() if ROOT / name == program), [])
        report = diagnose(program, known, options.timeout)
        ran += 1
        notes = [each for each in report.get("notes", []) if "failed" in each or "reproducible" in each]
        if report["findings"] or report.get("error") or notes:
            said = [f"{each['cause']} (line {each['line']}{', proven' if each['proven'] else ''})"
                    for each in report["findings"]]  # fmt: skip
            error = f" {report['error']} {report['errors'][-300:]}" if report.get("error") else ""
            print(f"healthy: {program.stem}: {', '.join(said)}{error} {notes or ''} {report['took']:.1f} s", flush=True)
            if report["findings"]:
                false.append(program.stem)
    count = max(len(rows), 1)
    print(
        f"{len(rows)} mistakes: right cause first {sum(x['right'] for x in rows) / count:.0%}, right line "
        f"{sum(x['right'] and x['near'] for x in rows) / count:.0%} (exactly "
        f"{sum(x['right'] and x['exact'] for x in rows) / count:.0%}), proven "
        f"{sum(x['right'] and x['proven'] for x in rows) / count:.0%}; "
        f"{len(false)} of {ran} healthy programs with a finding"
    )
    if options.json:
        Path(options.json).write_text(json.dumps(rows, indent=1), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
