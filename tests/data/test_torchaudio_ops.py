"""torchaudio's compiled operators: against their definitions, written as loops and as sums over all paths."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import tinytorch

for name in ("_torchaudio", "libtorchaudio"):
    tinytorch.ops.load_library(f"/somewhere/torchaudio/lib/{name}.abi3.so")
OPS = tinytorch.ops.torchaudio


def test_what_the_package_asks_for_at_import() -> None:
    assert tinytorch.ops._torchaudio.is_align_available() is True
    assert tinytorch.ops._torchaudio.cuda_version() is None
    with pytest.raises(OSError, match="compiled for PyTorch"):
        tinytorch.ops.load_library("/somewhere/torchaudio/lib/torchaudio_prefixctc.abi3.so")


# Recursive filters --------------------------------------------------------------------------------


def filtered(x: Any, flipped: Any, y: Any) -> Any:
    """Each sample is the input's less the weighted outputs before it."""
    order = flipped.shape[1]
    y = y.astype(np.float64)
    for b, c, t in itertools.product(*map(range, x.shape)):
        y[b, c, t + order - 1] = x[b, c, t] - flipped[c] @ y[b, c, t : t + order]
    return y


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("time", "order"), [(1, 1), (5, 3), (200, 4), (130, 70), (64, 2), (0, 2)])
def test_recursive_filter(time: int, order: int, dtype: str) -> None:
    rng = np.random.default_rng(time)
    x = rng.normal(size=(2, 3, time)).astype(dtype)
    a = (rng.normal(size=(3, order)) / (2 * order)).astype(dtype)
    y = rng.normal(size=(2, 3, time + order - 1)).astype(dtype)
    out = tinytorch.tensor(y)
    OPS._lfilter_core_loop(tinytorch.tensor(x), tinytorch.tensor(a), out)
    np.testing.assert_allclose(out.numpy(), filtered(x, a, y), 1e-4, 1e-5)


def test_an_infinite_sample_does_not_reach_those_before_it() -> None:
    x = np.ones((1, 1, 100))
    x[0, 0, 50] = np.inf
    y = tinytorch.zeros(1, 1, 101, dtype=tinytorch.float64)
    OPS._lfilter_core_loop(tinytorch.tensor(x), tinytorch.tensor([[0.5, 1.0]], dtype=tinytorch.float64), y)
    np.testing.assert_allclose(y.numpy()[0, 0, 1:51], 2 / 3 + (-0.5) ** np.arange(50) / 3)
    assert not y[0, 0, 51:].isfinite().any()


def test_overdrive() -> None:
    rng = np.random.default_rng(0)
    waveform, temp, out = rng.normal(size=(3, 2, 150))
    last_in, last_out = rng.normal(size=(2, 2))
    tensors = [tinytorch.tensor(x) for x in (waveform, temp, last_in, last_out, out)]
    OPS._overdrive_core_loop(*tensors)
    for t in range(150):
        last_out = temp[:, t] - last_in + 0.995 * last_out
        last_in = temp[:, t]
        out[:, t] = waveform[:, t] * 0.5 + last_out * 0.75
    for ours, expected in zip(tensors[2:], (last_in, last_out, out), strict=True):
        np.testing.assert_allclose(ours.numpy(), expected)


# Alignments ---------------------------------------------------------------------------------------


def scores(*shape: int, dtype: Any = np.float32) -> Any:
    x = np.random.default_rng(sum(shape)).normal(size=shape)
    return (x - np.log(np.exp(x).sum(-1, keepdims=True))).astype(dtype)


@pytest.mark.parametrize("labels", [[1, 2], [1, 1], [2], [1, 2, 1]])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_path_is_the_most_probable_of_all(labels: list[int], dtype: str) -> None:
    x = scores(1, 5, 3, dtype=dtype)
    targets = tinytorch.tensor([labels], dtype=tinytorch.int32)
    path, same = OPS.forced_align(
        tinytorch.tensor(x), targets, tinytorch.tensor([5]), tinytorch.tensor([len(labels)]), 0
    )
    candidates = [
        each for each in itertools.product(range(3), repeat=5) if [k for k, _ in itertools.groupby(each) if k] == labels
    ]
    best = max(candidates, key=lambda each: x[0, range(5), each].astype(np.float64).sum())
    assert path.tolist() == [list(best)] and path.dtype is tinytorch.int32
    assert same.equal(tinytorch.tensor(x))


def test_targets_that_do_not_fit() -> None:
    x, two = tinytorch.tensor(scores(1, 2, 3)), tinytorch.tensor([2])
    with pytest.raises(
        RuntimeError, match=r"too long for CTC.* length: 2, targets length: 2, and number of repeats: 1"
    ):
        OPS.forced_align(x, tinytorch.tensor([[1, 1]]), two, two, 0)
    with pytest.raises(RuntimeError, match=r"blank must be within \[0, num classes\)"):
        OPS.forced_align(x, tinytorch.tensor([[1, 2]]), two, two, 3)


def loss_of_all_paths(x: Any, labels: Any, normalize: bool) -> float:
    """Sum the probabilities of all orders of blanks (class 0, a step in time) and labels, a blank last."""
    time, count, _ = x.shape
    if normalize:
        x = x - np.log(np.exp(x).sum(-1, keepdims=True))
    total = 0.0
    for chosen in itertools.combinations(range(time + count - 2), count - 1):
        t = u = 0
        logarithm = 0.0
        for step in range(time + count - 2):
            emits = step in chosen
            logarithm += x[t, u, labels[u] if emits else 0]
            t, u = t + (not emits), u + emits
        total += math.exp(logarithm + x[t, u, 0])
    return -math.log(total)


@pytest.mark.parametrize("normalize", [True, False])
def test_the_loss_of_a_transducer_and_its_gradient(normalize: bool) -> None:
    x = scores(2, 4, 3, 4) + 0.3 * normalize
    targets = np.array([[1, 3], [2, 1]], np.int32)
    sizes = [(4, 2), (3, 1)]
    lengths = [tinytorch.tensor(each, dtype=tinytorch.int32) for each in zip(*sizes, strict=True)]
    losses, gradient = OPS.rnnt_loss_forward(
        tinytorch.tensor(x), tinytorch.tensor(targets), *lengths, 0, -1.0, normalize
    )
    for b, (time, count) in enumerate(sizes):
        part = x[b, :time, : count + 1].astype(np.float64)
        assert losses[b].item() == pytest.approx(loss_of_all_paths(part, targets[b], normalize), 1e-5)
        expected = np.zeros_like(x[b])
        for place in np.ndindex(part.shape):
            values = []
            for step in (1e-5, -1e-5):
                moved = part.copy()
                moved[place] += step
                values.append(loss_of_all_paths(moved, targets[b], normalize))
            expected[place] = (values[0] - values[1]) / 2e-5
        np.testing.assert_allclose(gradient[b].numpy(), expected, 1e-3, 1e-5)
    clamped = OPS.rnnt_loss_forward(tinytorch.tensor(x), tinytorch.tensor(targets), *lengths, 0, 0.1, normalize)[1]
    assert clamped.equal(gradient.clamp(-0.1, 0.1))
