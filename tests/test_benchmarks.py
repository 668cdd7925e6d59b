"""The benchmarks time the same work on each side: the losses agree, with native kernels and without."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinytorch
from benchmarks import inference, models, small
from benchmarks.work import WORK
from tests.oracle import needs_oracle
from tests.same import compare
from tests.turns import quarter

ROOT = Path(__file__).resolve().parent.parent
TRAINING = quarter(
    [name for name, work in WORK.items() if getattr(work.make, "func", work.make).__module__ == models.__name__]
)
REST = ["decide", "classify", "generate", "loader", "clusters", "neighbours"]


def losses(torch: Any, name: str) -> list[float]:
    step = WORK[name].make(torch)
    return [torch.as_tensor(step()).item() for _ in range(20)]


def same(ours: list[float], theirs: list[float]) -> None:
    """Compare losses: the first ones up to rounding, whose effect grows from step to step by batch norm and Adam."""
    np.testing.assert_allclose(ours[:5], theirs[:5], 5e-5)
    np.testing.assert_allclose(ours, theirs, 5e-2)


@pytest.fixture(scope="module")
def without() -> dict[str, list[float]]:
    """Return the losses of all rows in a process without native kernels."""
    code = "from tests.test_benchmarks import *; print(json.dumps({n: losses(tinytorch, n) for n in TRAINING}))"
    environment = os.environ | {"TINYTORCH_NATIVE": "0"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    found: dict[str, list[float]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", TRAINING)
def test_losses_are_those_without_native_kernels(name: str, without: dict[str, list[float]]) -> None:
    same(losses(tinytorch, name), without[name])


@needs_oracle
@pytest.mark.parametrize("name", TRAINING)
def test_losses_are_pytorchs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    # On a processor without AVX-512, oneDNN's convolutions in `dcgan` have an error of 6e-5 (ours 3e-7).
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", False)
    same(losses(tinytorch, name), losses(torch, name))


@needs_oracle
@pytest.mark.parametrize("name", REST)
def test_results_are_pytorchs(name: str) -> None:
    import torch

    ours, theirs = (np.asarray(WORK[name].make(library)()) for library in (tinytorch, torch))
    np.testing.assert_allclose(ours, theirs, 1e-4, 1e-6)


@needs_oracle
@pytest.mark.parametrize("kind", small.CALLS)
def test_calls_on_small_tensors_do_what_pytorchs_do(kind: str) -> None:
    import torch

    def result(scope: dict[str, Any], call: str) -> Any:
        scope["torch"].manual_seed(0)
        return (exec if "with " in call or " = " in call else eval)(call, scope)

    ours, theirs = (small.names(library) for library in (tinytorch, torch))
    for call in small.CALLS[kind]:
        found = result(ours, call), result(theirs, call)
        if "empty" not in call:
            compare(*found, 1e-4, 1e-5, call)


@needs_oracle
@pytest.mark.parametrize("name", ["resnet50", "mobilenet_v2", "efficientnet_b0", "convnext_tiny"])
def test_models_for_inference_give_what_pytorchs_give(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(inference.MODELS, name, inference.MODELS[name]._replace(shape=(1, 3, 64, 96)))
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    ours, theirs = (inference.task(library, name) for library in ("tinytorch", "torch"))
    expected = theirs().numpy()
    for _ in range(2):
        np.testing.assert_allclose(ours().numpy(), expected, 1e-4, 2e-5 * np.abs(expected).max())


@needs_oracle
@pytest.mark.parametrize("first", [True, False])
def test_a_transformer_for_inference_gives_what_pytorchs_gives(first: bool) -> None:
    import torch

    x, found = np.random.default_rng(0).standard_normal((2, 9, 64)).astype(np.float32), []
    for library in (tinytorch, torch):
        library.manual_seed(0)
        layer = inference._layer(library, 64, 4, first, 1e-6).eval()
        if library is tinytorch:
            layer = library.compile(layer, mode="inference")
        with library.no_grad():
            found.append([layer(library.from_numpy(x)).numpy() for _ in range(2)][1])
    np.testing.assert_allclose(*found, 1e-4, 1e-5)


def benchmarks(*arguments: str) -> Any:
    command = [sys.executable, "-m", "benchmarks", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)


def test_a_table_is_printed() -> None:
    """Only that the program runs is tested, not the measured times."""
    run = benchmarks("chain", "op", "--turns", "1")
    assert run.returncode == 0, run.stderr
    head, *rows = [line for line in run.stdout.splitlines() if not line.startswith(("PyTorch is", "There are"))]
    assert head.split() == ["ours", "without", "PyTorch", "ratio", "memory", "aim", "ok"]
    rows = [line for line in rows if not line.startswith("geometric mean")]
    assert len(rows) == 2
    for row in rows:
        assert re.search(r" (yes|NO|-)$", row)


def test_a_table_of_small_calls_is_printed() -> None:
    run = benchmarks("small", "x * y", "steps", "--turns", "1")
    assert run.returncode == 0, run.stderr
    head, *rows = run.stdout.splitlines()
    assert head.split() == ["us", "ours", "PyTorch", "ratio", "kind"]
    kinds = [row.rpartition("  ")[2] for row in rows if re.search(r" [\d.]+ +[\d.-]+ +[\d.-]+  \w+$", row)]
    assert sorted(kinds) == ["arithmetic", *["steps"] * len(small.CALLS["steps"])]
    assert "no such call or kind: x y" in benchmarks("small", "x y").stderr


def test_a_table_of_compilers_is_printed() -> None:
    """Columns that are not installed, or fail, are left out."""
    columns = ["--columns", "compiled,eager,JAX", "--jax", sys.executable + "-that-is-not-there"]
    run = benchmarks("chain", "step-256", "--compile", "--turns", "1", *columns)
    assert run.returncode == 0, run.stderr
    head, *rows = [line for line in run.stdout.splitlines() if not line.startswith(("PyTorch is", "There are"))]
    assert head.split()[:5] == ["compiled", "eager", "PyTorch", "torch.compile", "JAX"]
    assert [row.split("  ")[0] for row in rows] == [WORK[name].what for name in ("chain", "step-256")]
    number = r"[\d.]+"
    for row in rows:
        assert re.search(rf" {number} +{number} +- +- +- +ms +- +{number} +- +-$", row), row
    assert "chain: JAX: " in run.stderr
    assert "there are compiled, eager" in benchmarks("--compile", "--columns", "ours").stderr


def test_jax_does_the_same_work() -> None:
    pytest.importorskip("jax", exc_type=ImportError)
    from benchmarks import compiled, jax_work

    assert list(jax_work.WORK) == compiled.JAX
    for name in ("micro-mlp", "step", "step-adam"):
        work = jax_work.WORK[name]()
        np.testing.assert_allclose([float(work()) for _ in range(20)], losses(tinytorch, name), 1e-3)
    np.testing.assert_allclose(jax_work.decide()(), np.asarray(WORK["decide"].make(tinytorch)()), 1e-4, 1e-6)
    for name in ("pinn", "pinn-2000"):  # whose random points differ
        work = jax_work.WORK[name]()
        found, ours = np.mean([float(work()) for _ in range(20)]), np.mean(losses(tinytorch, name))
        assert 0.5 < found / ours < 2


def test_quantized_layers_are_measured(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from benchmarks import quantized

    monkeypatch.setattr(quantized, "BLOCK", ((12, 5), (7, 3)))
    monkeypatch.setattr(quantized, "HEAD", (4, 9))
    monkeypatch.setattr(quantized, "WEIGHTS", 1)
    quantized.print_layers()
    rows = capsys.readouterr().out.splitlines()[2:]
    assert [row.split(" | ")[:2] for row in rows] == [
        [f"| {layer}", rows] for layer in ("12 → 5", "7 → 3", "4 → 9") for rows in ("1", "8", "64")
    ]
    assert all(re.search(r"(\| [\d.]+ times as fast ){3}\|$", row) for row in rows), rows


def test_rows_are_named() -> None:
    run = benchmarks("speed")
    assert run.returncode == 2
    assert f"no such row: speed (there are process, import, inference, ddp, {', '.join(WORK)})" in run.stderr


def test_models_of_other_packages_are_counted() -> None:
    from benchmarks import coverage

    torch: Any = tinytorch
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3, 2))
    whole, line = coverage.covered(torch, model, lambda batch, length: {"x": torch.randn(batch, 3)})
    assert whole and line == "2 programs, ran 4, recorded 3, Python 0, graph breaks 0"

    whole, line = coverage.trained(torch, model, lambda batch, length: {"x": torch.randn(batch, 3)})
    assert whole and line == "1 programs, ran 5, recorded 1, Python 0, graph breaks 0"

    class Printing(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            y = x * 2
            print(end="")
            return y + 1

    whole, line = coverage.covered(torch, Printing(), lambda batch, length: {"x": torch.randn(batch, 3)})
    assert not whole and "graph breaks 1" in line
