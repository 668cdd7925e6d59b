"""Workloads other than training, with tinytorch or PyTorch: small ops, inference, data loading, statistics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import models

Task = Callable[[], Any]
TIMES = 1000  # ops per call, so that the overhead of the measurement is negligible


# Small ops ----------------------------------------------------------------------------------------


def _two(torch: Any) -> tuple[Any, Any]:
    a, b = (torch.ones(8, 8, requires_grad=True) for _ in range(2))
    return a, b


def forward(torch: Any) -> Task:
    """One small multiplication, whose time is the overhead of an op."""
    a, b = _two(torch)

    def work() -> None:
        for _ in range(TIMES):
            a * b

    return work


def backward(torch: Any) -> Task:
    """One small multiplication and its backward pass."""
    a, b = _two(torch)
    g = torch.ones(8, 8)

    def work() -> None:
        for _ in range(TIMES):
            (a * b).backward(g)
        a.grad = b.grad = None

    return work


def no_grad(torch: Any) -> Task:
    """One small multiplication that is not recorded."""
    a, b = _two(torch)

    def work() -> None:
        with torch.no_grad():
            for _ in range(TIMES):
                a * b

    return work


def chain(torch: Any) -> Task:
    """A sequence of a hundred small multiplications, and its backward pass."""
    x = torch.ones(8, 8, requires_grad=True)
    w = torch.full((8, 8), 0.99, requires_grad=True)

    def work() -> None:
        y = x
        for _ in range(100):
            y = y * w
        y.sum().backward()
        x.grad = w.grad = None

    return work


# Inference ----------------------------------------------------------------------------------------


def _inference(torch: Any, model: Any, X: Any) -> Task:
    def work() -> Any:
        with torch.no_grad():
            return model(X)

    return work


def small_mlp(torch: Any) -> Task:
    """Inference of a small network, 16-64-64-4, for one input."""
    nn = torch.nn
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))
    return _inference(torch, model.eval(), models.data(torch, 1, 16)[0])


def resnet(torch: Any) -> Task:
    """Inference of the residual network for 32 images."""
    return _inference(torch, models.resnet_of(torch).eval(), models.data(torch, 32, 3, 32, 32)[0])


def generate(torch: Any) -> Task:
    """Generation of 16 characters by the GPT of `models.gpt`."""
    example = models.load("char_gpt", torch.__name__)
    torch.manual_seed(0)
    model = example.GPT(size=65, context=64, layers=4, heads=4, width=128).eval()
    start = torch.from_numpy(np.random.default_rng(0).integers(0, 65, (1, 48)))

    def work() -> Any:
        text = start
        with torch.no_grad():
            for _ in range(16):
                probabilities = model(text[:, -64:])[:, -1].softmax(-1)
                text = torch.cat([text, torch.multinomial(probabilities, 1)], 1)
        return text

    return work


# Data and statistics ------------------------------------------------------------------------------


def loader(torch: Any, workers: int = 0) -> Task:
    """An epoch over 1,024 uint8 images, randomly cropped, flipped and normalized, in shuffled batches of 64.

    Args:
        workers: processes that load the batches; they are started by each epoch.
    """
    data = torch.utils.data
    images = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (1024, 3, 32, 32), dtype=np.uint8))
    mean, std = (torch.tensor(values).view(3, 1, 1) for values in ([0.49, 0.48, 0.45], [0.25, 0.24, 0.26]))

    class Images(data.Dataset):  # type: ignore[misc, name-defined]
        def __len__(self) -> int:
            return len(images)

        def __getitem__(self, i: int) -> tuple[Any, int]:
            x = images[i].float() / 255
            x = torch.nn.functional.pad(x, (4, 4, 4, 4))
            top, left = torch.randint(0, 9, (2,)).tolist()
            x = x[:, top : top + 32, left : left + 32]
            if torch.rand(1).item() < 0.5:
                x = x.flip(-1)
            return (x - mean) / std, i % 10

    torch.manual_seed(0)
    context = "fork" if workers else None  # (for the others the class would have to be a module's)
    batches = data.DataLoader(
        Images(), batch_size=64, shuffle=True, num_workers=workers, multiprocessing_context=context
    )

    def work() -> Any:
        total = 0
        for X, _ in batches:
            total = total + X.mean()
        return total

    return work


def clusters(torch: Any) -> Task:
    """Four steps of k-means, with 4,000 points in 16 dimensions and 32 centres."""
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
    """Classification of 500 points by their ten nearest neighbours among 2,000 points."""
    points, classes = models.data(torch, 2000, 32)
    queries = points[:500] + 0.01

    def work() -> Any:
        nearest = torch.cdist(queries, points).topk(10, largest=False).indices
        votes = torch.nn.functional.one_hot(classes[nearest], 10).sum(1)
        return votes.argmax(1)

    return work
