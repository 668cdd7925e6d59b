"""Keep what PyTorch gives, in tests/kept: for new samples, and for all programs that fast tests compare with PyTorch.

python scripts/make_kept.py             # of new samples
python scripts/make_kept.py --programs  # and of programs, by running their tests
"""

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

from tests.kept import of_samples, write  # noqa: E402


def of_programs() -> None:
    """Run the tests that compare programs, and write the outcomes of PyTorch, a file for each folder."""
    compares = re.compile("from tests.(same|data.programs) import")
    tests = [str(path) for path in ROOT.glob("tests/**/test_*.py") if compares.search(path.read_text("utf-8"))]
    found: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "worksteal", "--tier", "fast", *tests]
        subprocess.run(command, cwd=ROOT, env={**os.environ, "TINYTORCH_KEEP": folder}, check=True)
        for path in Path(folder).iterdir():
            with open(path, "rb") as file:
                while file.peek(1):
                    key, outcome = pickle.load(file)
                    found.setdefault(key.split("/")[1].partition("::")[0], {})[key] = outcome
    for name, outcomes in found.items():
        write(f"programs/{name}", dict(sorted(outcomes.items())))


if __name__ == "__main__":
    of_samples.update()
    if "--programs" in sys.argv:
        of_programs()
