"""The examples as programs: they learn, PyTorch's losses come out, mistakes are told."""

from __future__ import annotations

import re
import signal
import subprocess
import sys

import numpy as np
import pytest

import tinytorch
from benchmarks import pinn_step
from tests.oracle import needs_oracle, torch

SMALL = ["--points", "200", "--given", "50", "--width", "16", "--depth", "3", "--log-every", "1"]
pinn = pinn_step.load("tinytorch")


def losses(output):
    return [float(loss) for loss in re.findall(r"^step +\d+  loss (\S+) ", output, re.MULTILINE)]


def relative_error(output):
    (error,) = re.findall(r"^Relative L2 error: (\d+\.\d+)$", output, re.MULTILINE)
    return float(error)


def start(folder, *arguments):
    """Start the program as users do."""
    return subprocess.Popen(
        [sys.executable, "-u", str(pinn_step.SCRIPT), *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


# What it learns ----------------------------------------------------------------------------------


def test_it_learns(capsys):
    pinn.main([*SMALL, "--steps", "500", "--no-plot"])
    output = capsys.readouterr().out
    found = losses(output)
    assert len(found) == 500
    assert np.mean(found[-50:]) < 0.1 * found[0]
    assert relative_error(output) < 0.5  # that of u = 0 is 1


@needs_oracle
@pytest.mark.parametrize(
    ("sizes", "steps"), [(SMALL, 100), (["--log-every", "1"], 20)], ids=["small", "by default"]
)
def test_losses_are_pytorchs(sizes, steps, capsys):
    """The program's text with `import torch`: the first losses, and the error, agree."""
    outputs = []
    for library in ("tinytorch", "torch"):
        program = pinn_step.load(library)
        assert program.torch is {"tinytorch": tinytorch, "torch": torch}[library]
        program.main([*sizes, "--steps", str(steps), "--seed", "7", "--no-plot"])
        outputs.append(capsys.readouterr().out)
    ours, theirs = map(losses, outputs)
    assert len(ours) == steps
    np.testing.assert_allclose(ours, theirs, rtol=1e-3)
    assert abs(relative_error(outputs[0]) - relative_error(outputs[1])) <= 2e-4


def test_the_learning_rate_falls(monkeypatch):
    rates = []

    def improve(model, optimizer, points, given):
        rates.append(optimizer.param_groups[0]["lr"])
        return 0.0

    monkeypatch.setattr(pinn, "improve", improve)
    args = pinn.parse(["--no-plot", "--steps", "101", "--lr", "0.01"])
    pinn.train(pinn.Network(args.width, args.depth), args)
    assert rates[0] == 0.01
    assert rates == sorted(rates, reverse=True)
    assert 1e-5 < rates[-1] < 2e-5


def test_residual_of_a_known_function():
    """u = x / (1 + t) obeys the equation for any viscosity; u = x**2 t does not."""
    t, x = tinytorch.rand(20, 1), tinytorch.rand(20, 1)
    obeys = pinn.residual(lambda t, x: x / (1 + t) + 0 * x**2, t, x)
    np.testing.assert_allclose(obeys.detach().numpy(), 0, atol=1e-6)

    found = pinn.residual(lambda t, x: x**2 * t, t, x).detach().numpy()
    t, x = t.detach().numpy(), x.detach().numpy()
    np.testing.assert_allclose(found, x**2 + x**2 * t * 2 * x * t - pinn.NU * 2 * t, rtol=1e-5)


def test_given_points():
    t, x, u = (each.numpy() for each in pinn.given_points(100))
    assert np.all(t[:50] == 0)
    assert np.all(abs(x[50:]) == 1)
    assert {-1, 1} == set(x[50:].ravel())
    np.testing.assert_allclose(u, np.where(t == 0, -np.sin(np.pi * x), 0), atol=1e-6)


# The exact solution ------------------------------------------------------------------------------


def spectral(times, points):
    """Return the solution at `times` on `points` places from -1, by a Fourier method.

    Runge and Kutta's fourth order, on the coefficients without their decay by viscosity.
    """
    x = np.linspace(-1, 1, points, endpoint=False)
    k = np.pi * np.arange(points // 2 + 1)
    smooth = k < k[-1] * 2 / 3  # products of what is left stay on the grid
    u, rows, now = np.fft.rfft(-np.sin(np.pi * x)), [], 0.0

    def change(u):
        return smooth * (-0.5j * k) * np.fft.rfft(np.fft.irfft(u) ** 2)

    for time in times:
        steps = int(np.ceil((time - now) * points))
        dt = (time - now) / steps
        half = np.exp(-pinn.NU * k**2 * dt / 2)
        for _ in range(steps):
            a = change(u)
            b = change(half * (u + dt / 2 * a))
            c = change(half * u + dt / 2 * b)
            d = change(half * (half * u + dt * c))
            u = half * (half * (u + dt / 6 * a) + dt / 3 * (b + c)) + dt / 6 * d
        rows.append(np.fft.irfft(u))
        now = time
    return x, np.array(rows)


def test_exact_solution_against_a_spectral_method():
    times = [0.1, 0.3, 0.5, 0.75, 1.0]
    x, expected = spectral(times, 2048)
    found = pinn.exact(*np.meshgrid(times, x, indexing="ij"))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


def test_exact_solution_against_published_values():
    """Its steepest slope and when it comes: Basdevant et al., Computers & Fluids 14, 1986."""
    t, h = np.linspace(0.5, 0.52, 2001), 1e-5
    slopes = pinn.exact(t, np.full_like(t, h)) / h  # u(t, 0) is 0
    assert slopes.min() == pytest.approx(-152.00516, rel=1e-5)
    assert np.pi * t[slopes.argmin()] == pytest.approx(1.6037, abs=1e-4)


def test_exact_solution_on_the_border():
    x = np.linspace(-1, 1, 21)
    np.testing.assert_allclose(pinn.exact(np.zeros(21), x), -np.sin(np.pi * x), atol=1e-12)
    t = np.linspace(0, 1, 21)
    for wall in (-1.0, 1.0):
        np.testing.assert_allclose(pinn.exact(t, np.full(21, wall)), 0, atol=1e-12)


def test_relative_error(monkeypatch):
    """On a grid of 100 x 256: 0 for the solution itself, and 1 for none."""
    monkeypatch.setattr(pinn, "exact", lambda t, x: t + x)
    assert pinn.relative_error(lambda t, x: t + x) < 1e-6
    assert pinn.relative_error(lambda t, x: 0 * t) == pytest.approx(1)
    grid = pinn.compare(lambda t, x: t - x, np.linspace(0, 1, 100))
    assert {each.shape for each in grid} == {(100, 256)}


# As a process ------------------------------------------------------------------------------------


def test_the_whole_program(tmp_path):
    """It trains, tells the error and leaves a picture."""
    process = start(tmp_path, *SMALL, "--steps", "20", "--out", "burgers.png")
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert len(losses(output)) == 20
    assert 0 < relative_error(output) < 2
    assert output.endswith("Drew burgers.png\n")
    picture = (tmp_path / "burgers.png").read_bytes()
    assert picture.startswith(b"\x89PNG\r\n\x1a\n")
    assert len(picture) > 20_000
    assert [path.name for path in tmp_path.iterdir()] == ["burgers.png"]


def test_interrupted(tmp_path):
    """Ctrl-C ends the training only: what was learned is compared, and the status is 130."""
    process = start(tmp_path, *SMALL, "--steps", "10000000", "--no-plot")
    try:
        for line in process.stdout:
            if line.startswith("step     50 "):
                break
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert errors == ""
    steps = re.search(r"\nInterrupted after (\d+) steps\n", output)
    assert steps is not None
    assert int(steps[1]) >= 50
    assert 0 < relative_error(output) < 2


# Mistakes ----------------------------------------------------------------------------------------


def refusal(capsys, *arguments):
    """Return what the program says when it refuses its arguments."""
    with pytest.raises(SystemExit) as caught:
        pinn.main(list(arguments))
    assert caught.value.code == 2
    return capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        *[
            (f"--{name}", value, f"argument --{name}: should be above 0 and finite")
            for name in ("steps", "points", "given", "width", "depth", "log-every", "lr")
            for value in ("0", "-1")
        ],
        ("--lr", "nan", "argument --lr: should be above 0 and finite"),
        ("--lr", "inf", "argument --lr: should be above 0 and finite"),
        ("--lr", "fast", "argument --lr: invalid float value: 'fast'"),
        ("--steps", "many", "argument --steps: invalid int value: 'many'"),
        ("--seed", "-1", "argument --seed: should be from 0 to 2**64 - 1"),
        ("--seed", str(2**64), "argument --seed: should be from 0 to 2**64 - 1"),
        ("--viscosity", "0", "unrecognized arguments: --viscosity 0"),
    ],
)
def test_settings_that_cannot_be(capsys, option, value, words):
    assert words in refusal(capsys, "--no-plot", option, value)


def test_without_matplotlib(capsys, monkeypatch, tmp_path):
    """The extra is named before the training, and nothing else needs it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    said = refusal(capsys, *SMALL, "--steps", "1")
    assert "the picture needs matplotlib: pip install 'tinytorch[plot]'; or --no-plot" in said
    pinn.main([*SMALL, "--steps", "1", "--no-plot"])
    assert relative_error(capsys.readouterr().out) > 0
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_noticed_before_training(capsys, tmp_path):
    said = refusal(capsys, "--out", str(tmp_path / "none" / "pinn.png"))
    assert "argument --out: " in said
    assert "No such file or directory" in said
