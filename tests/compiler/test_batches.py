"""Saved programs that take batches of any size."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinytorch as torch
from tinytorch import nn


def saved(function: Any, example: Any, folder: Path) -> Callable[..., Any]:
    """Return the function `step` of a program that is saved after a call."""
    compiled = torch.compile(function)
    with torch.no_grad():
        compiled(*example)
    path = folder / "program.py"
    compiled.save(path)
    spec: Any = importlib.util.spec_from_file_location("program", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.step  # type: ignore[no-any-return]


def arrays(x: Any) -> list[Any]:
    return [y for each in x for y in arrays(each)] if isinstance(x, (tuple, list)) else [np.asarray(x)]


class Recurrent(nn.Module):
    def __init__(self, kind: Any) -> None:
        super().__init__()
        self.recurrent = kind(4, 8, 2, batch_first=True)
        self.out = nn.Linear(8, 3)

    def forward(self, x: Any) -> Any:
        y, _ = self.recurrent(x)
        return self.out(y[:, -1]) * torch.ones(x.shape[0], 1) / x.shape[0]


class Means(nn.Module):
    def forward(self, x: Any) -> Any:
        centred = x - x.mean(0)
        loss = nn.functional.cross_entropy(x, torch.zeros(x.shape[0], dtype=torch.long))
        return centred * loss + x.sum() / x.shape[0] + (x * x.shape[0]).mean()


MODELS: dict[str, tuple[Callable[[], Any], Callable[[int], Any]]] = {
    "perceptron": (
        lambda: nn.Sequential(nn.Flatten(), nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 3)),
        lambda n: torch.randn(n, 3, 4),
    ),
    "convolutions": (
        lambda: nn.Sequential(
            nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 5)
        ),
        lambda n: torch.randn(n, 3, 8, 8),
    ),
    "attention": (lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), lambda n: torch.randn(n, 5, 8)),
    "lstm": (lambda: Recurrent(nn.LSTM), lambda n: torch.randn(n, 6, 4)),
    "gru": (lambda: Recurrent(nn.GRU), lambda n: torch.randn(n, 6, 4)),
    "means": (Means, lambda n: torch.randn(n, 5)),
    "tokens": (
        lambda: nn.Sequential(nn.Embedding(7, 4), nn.Flatten(), nn.Linear(12, 2)),
        lambda n: torch.arange(3 * n).reshape(n, 3) % 7,
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_saved_model_takes_any_batch(name: str, tmp_path: Path) -> None:
    make, example = MODELS[name]
    torch.manual_seed(0)
    model = make().eval()
    step = saved(model, [example(4)], tmp_path)
    for n in (4, 1, 2, 7, 33, 4):
        x = example(n)
        found, expected = step(x.numpy()), model(x).detach().numpy()
        assert found.shape == expected.shape and np.allclose(found, expected, atol=1e-5)


def test_results_of_several_arguments_and_shapes(tmp_path: Path) -> None:
    def f(x: Any, y: Any, scale: Any) -> Any:
        joined = torch.cat([x, y], 0)
        return joined * scale, [joined.view(-1, 2).sum(1), x.unsqueeze(1).expand(-1, 3, -1)[:, 1:]]

    step = saved(f, [torch.randn(3, 4), torch.randn(3, 4), torch.randn(4)], tmp_path)
    for n in (1, 2, 3, 9):
        given = [torch.randn(n, 4), torch.randn(n, 4), torch.randn(4)]
        for found, expected in zip(arrays(step(*[x.numpy() for x in given])), arrays(f(*given)), strict=True):
            assert np.array_equal(found, expected)
    with pytest.raises(ValueError, match=r"y: an array of shape \(2, 4\)"):
        step(np.zeros((2, 4), np.float32), np.zeros((3, 4), np.float32), np.zeros(4, np.float32))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: [part.sum() for part in x.chunk(4)],
        lambda x: x.sum() / x.shape[0],
        lambda x: x * 2 if x.shape[0] > 5 else x,
        lambda x: x + torch.arange(x.shape[0]).unsqueeze(1),
        lambda x: x @ x.t() @ x,
        lambda x: (x.sin(), x.shape[0]),
    ],
)
def test_what_depends_on_the_batch_otherwise_is_for_one_size_or_right(function: Any, tmp_path: Path) -> None:
    step = saved(function, [torch.randn(4, 3)], tmp_path)
    for n in (4, 1, 3, 6, 12):
        x = torch.randn(n, 3)
        try:
            found = arrays(step(x.numpy()))
        except ValueError as error:
            assert n != 4 and "an array of shape (4, 3)" in str(error)
            continue
        for a, b in zip(found, arrays(function(x)), strict=True):
            assert np.allclose(a, b, atol=1e-5)
