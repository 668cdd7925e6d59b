#!/usr/bin/env python
"""Keep what PyTorch gives, in tests/kept: for new samples, and for the programs that fast tests compare with PyTorch.

python scripts/make_kept.py                                   # of new samples
python scripts/make_kept.py --programs                        # and of programs, by running their tests
python scripts/make_kept.py --programs tests/ops/test_fft.py  # of the programs in some test files
"""

import argparse
import os
import pickle
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.kept import of_samples, read, write  # noqa: E402


def all_files() -> list[str]:
    """Return the test files that compare programs."""
    compares = re.compile("from tests.(same|data.programs) import")
    paths = [path for path in ROOT.glob("tests/**/test_*.py") if compares.search(path.read_text("utf-8"))]
    return [path.relative_to(ROOT).as_posix() for path in paths]


def of_programs(tests: list[str]) -> None:
    """Run test files, and write the outcomes of PyTorch, a file for each folder."""
    found: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "worksteal", "--tier", "fast", *tests]
        subprocess.run(command, cwd=ROOT, env={**os.environ, "TINYTORCH_KEEP": folder}, check=True)
        for path in Path(folder).iterdir():
            with open(path, "rb") as file:
                while file.peek(1):
                    key, outcome = pickle.load(file)
                    found.setdefault(key.split("/")[1].partition("::")[0], {})[key] = outcome
    others = set(all_files()) - set(tests)
    for name, outcomes in found.items():
        before = read(f"programs/{name}")
        kept = {key: before.get(key) for key in before.outcomes if key.partition("::")[0] in others}
        write(f"programs/{name}", dict(sorted({**kept, **outcomes}.items())))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", nargs="*", metavar="TEST", help="test files (default: all that compare)")
    options = parser.parse_args()
    of_samples.update()
    if options.programs is not None:
        of_programs(options.programs or all_files())
