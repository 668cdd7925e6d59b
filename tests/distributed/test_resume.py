"""Training that goes on with another number of processes: the same samples in the same order, the same weights."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.distributed import needs_mpi, run


def trained(processes: int, what: str, folder: Path) -> tuple[list[list[str]], list[float]]:
    """Return the samples of each step, and the weights at the end."""
    ran = run("resume.py", processes, what, folder)
    assert ran.returncode == 0, ran.stderr
    lines = [line.split() for line in ran.stdout.splitlines()]
    weights = [list(map(float, line[1:])) for line in lines if line[0] == "weights"]
    return [line[1:] for line in lines if line[0] == "samples"], weights[0] if weights else []


@needs_mpi
def test_another_number_of_processes_goes_on(tmp_path: Path) -> None:
    steps, weights = trained(1, "whole", tmp_path)
    assert len(steps) == 20 and sorted(int(each) for step in steps[10:] for each in step) == list(range(120))
    begun, _ = trained(2, "stop", tmp_path)
    assert begun == steps[:14]
    for processes in (1, 3, 4):
        rest, found = trained(processes, "go on", tmp_path)
        assert rest == steps[14:] and found == pytest.approx(weights, abs=1e-5)
