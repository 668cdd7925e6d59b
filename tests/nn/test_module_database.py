"""PyTorch's own samples of its modules: values, gradients, states, texts and errors are the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.oracle import needs_oracle, package


@needs_oracle
def test_pytorchs_samples() -> None:
    package("expecttest")
    run = subprocess.run(
        [sys.executable, "-m", "tests.nn.module_database"],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
    )
    lines = run.stdout.splitlines()
    assert run.returncode == 0, run.stderr
    assert lines[-1].endswith(" samples") and int(lines[-1].split()[0]) > 500
    assert not lines[:-1], run.stdout
