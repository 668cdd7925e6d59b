"""The model of what several processes cost: its formulas, the fit, and that the program runs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from benchmarks import scaling
from tests.distributed import ROOT, needs_mpi


def test_the_ring() -> None:
    assert scaling.ring(1, 1e9, 1.0, 1.0) == 0 and scaling.ring(2, 100, 0.0, 50.0) == pytest.approx(2)
    assert scaling.ring(4, 100, 0.5, 1e30) == pytest.approx(3)


def test_the_fit_finds_what_made_the_times() -> None:
    times = {(n, size): scaling.ring(n, size, 2e-5, 1.5e9) for n in (2, 3, 4) for size in (2**12, 2**20, 2**24)}
    a, b = scaling.fit(times)
    assert a == pytest.approx(2e-5) and b == pytest.approx(1.5e9)


def test_a_step() -> None:
    """Exchanges hide behind the backward pass as far as they fit; what cannot is the last bucket's."""

    def seconds(rate: float, bucket: float) -> float:
        return scaling.step(3.0, 100 * scaling.MB, lambda size: size / scaling.MB * rate, bucket * scaling.MB)

    assert seconds(0.0, 25) == 3
    assert seconds(0.01, 25) == pytest.approx(3 + 24 * 0.01)  # the last bucket: 100 = 1 + 3 * 25 + 24
    assert seconds(0.01, 1000) == pytest.approx(3 + 99 * 0.01)
    assert seconds(1.0, 25) == pytest.approx(1 + 2 / 100 + 100)  # the line is never idle
    many = scaling.step(3.0, 100 * scaling.MB, lambda size: 0.5, scaling.MB)
    assert many == pytest.approx(1 + 2 / 100 + 50)  # small buckets cost messages
    assert seconds(0.01, 5) < seconds(0.01, 25) < seconds(0.01, 1000)


def test_predictions(capsys: pytest.CaptureFixture[str]) -> None:
    scaling.predict()
    lines = capsys.readouterr().out.splitlines()
    assert sum("Gb/s" in line for line in lines) == 13
    row = next(line for line in lines if line.startswith("ResNet-50") and "100 Gb/s" in line)
    assert all(0 < int(each.rstrip("%")) <= 100 for each in row.split()[3:] if each != "/")


@needs_mpi
def test_the_program() -> None:
    command = [sys.executable, "-m", "benchmarks.scaling", "--processes", "2", "--times", "2"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert "GB/s" in ran.stdout and "predicted" in ran.stdout and "GPT-2" in ran.stdout
