"""A training step of `examples/pinn.py`, with tinytorch or with PyTorch: the same program's text."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

from benchmarks import models

SCRIPT = models.EXAMPLES / "pinn.py"


def load(library: str) -> ModuleType:
    """Return the example as a module that imports `library` ("torch") in tinytorch's place."""
    return models.load("pinn", library)


def make(library: str, points: int, width: int) -> Callable[[], object]:
    """Return what takes one step, with the example's defaults but for the sizes."""
    pinn = load(library)
    settings = pinn.parse(["--no-plot", "--points", str(points), "--width", str(width)])
    pinn.torch.manual_seed(0)
    model = pinn.Network(settings.width, settings.depth)
    optimizer = pinn.torch.optim.Adam(model.parameters(), lr=settings.lr)
    return lambda: pinn.improve(model, optimizer, settings.points, settings.given)
