"""Work that is no training, with tinytorch or with PyTorch: small ops, trained models at work, data, statistics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import models

Task = Callable[[], Any]
TIMES = 1000  # an op in a call, so that the clock and the loop's call do not count


# Small ops ----------------------------------------------------------------------------------------


def _two(torch: Any) -> tuple[Any, Any]:
    a, b = (torch.ones(8, 8, requires_grad=True) for _ in range(2))
    return a, b


def forward(torch: Any) -> Task:
    """One small multiplication: what an operation costs beside its arithmetic."""
    a, b = _two(torch)

    def work() -> None:
        for _ in range(TIMES):
            a * b

    return work


def backward(torch: Any) -> Task:
    """The same, and back."""
    a, b = _two(torch)
    g = torch.ones(8, 8)

    def work() -> None:
        for _ in range(TIMES):
            (a * b).backward(g)
        a.grad = b.grad = None

    return work


def no_grad(torch: Any) -> Task:
    """The same, not recorded."""
    a, b = _two(torch)

    def work() -> None:
        with torch.no_grad():
            for _ in range(TIMES):
                a * b

    return work


def chain(torch: Any) -> Task:
    """A hundred small multiplications in a row."""
    x = torch.ones(8, 8, requires_grad=True)
    w = torch.full((8, 8), 0.99, requires_grad=True)

    def work() -> None:
        y = x
        for _ in range(100):
            y = y * w
        y.sum().backward()
        x.grad = w.grad = None

    return work


# Trained models at work ---------------------------------------------------------------------------


def _without(torch: Any, model: Any, X: Any) -> Task:
    def work() -> Any:
        with torch.no_grad():
            return model(X)

    return work


def small_mlp(torch: Any) -> Task:
    """One decision of a small network, 16-64-64-4."""
    nn = torch.nn
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))
    return _without(torch, model.eval(), models.data(torch, 1, 16)[0])


def resnet(torch: Any) -> Task:
    """The residual network, on 32 pictures."""
    return _without(torch, models.resnet_of(torch).eval(), models.data(torch, 32, 3, 32, 32)[0])


def generate(torch: Any) -> Task:
    """The GPT of `models.gpt` writes 16 letters."""
    example = models.load("char_gpt", torch.__name__)
    torch.manual_seed(0)
    model = example.GPT(size=65, context=64, layers=4, heads=4, width=128).eval()
    start = torch.from_numpy(np.random.default_rng(0).integers(0, 65, (1, 48)))

    def work() -> Any:
        text = start
        with torch.no_grad():
            for _ in range(16):
                odds = model(text[:, -64:])[:, -1].softmax(-1)
                text = torch.cat([text, torch.multinomial(odds, 1)], 1)
        return text

    return work


# Data and statistics ------------------------------------------------------------------------------


def loader(torch: Any) -> Task:
    """An epoch of 1,024 pictures of bytes, each cut, mirrored and normalized, in batches of 64, shuffled."""
    data = torch.utils.data
    pictures = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (1024, 3, 32, 32), dtype=np.uint8))
    mean, std = (torch.tensor(each).view(3, 1, 1) for each in ([0.49, 0.48, 0.45], [0.25, 0.24, 0.26]))

    class Pictures(data.Dataset):  # type: ignore[misc, name-defined]
        def __len__(self) -> int:
            return len(pictures)

        def __getitem__(self, i: int) -> tuple[Any, int]:
            x = pictures[i].float() / 255
            x = torch.nn.functional.pad(x, (4, 4, 4, 4))
            top, left = torch.randint(0, 9, (2,)).tolist()
            x = x[:, top : top + 32, left : left + 32]
            if torch.rand(1).item() < 0.5:
                x = x.flip(-1)
            return (x - mean) / std, i % 10

    torch.manual_seed(0)
    batches = data.DataLoader(Pictures(), batch_size=64, shuffle=True)

    def work() -> Any:
        total = 0
        for X, _ in batches:
            total = total + X.mean()
        return total

    return work


def clusters(torch: Any) -> Task:
    """A step of k-means: 4,000 points of 16 numbers, 32 centres."""
    points = models.data(torch, 4000, 16)[0]

    def work() -> Any:
        centres = points[:32]
        for _ in range(4):
            nearest = torch.cdist(points, centres).argmin(1)
            count = torch.bincount(nearest, minlength=32).clamp(min=1)
            centres = torch.zeros(32, 16).index_add(0, nearest, points) / count[:, None]
        return centres

    return work


def neighbours(torch: Any) -> Task:
    """The ten nearest of 2,000 points to each of 500, and the commonest class among them."""
    points, classes = models.data(torch, 2000, 32)
    asked = points[:500] + 0.01

    def work() -> Any:
        nearest = torch.cdist(asked, points).topk(10, largest=False).indices
        votes = torch.nn.functional.one_hot(classes[nearest], 10).sum(1)
        return votes.argmax(1)

    return work
