"""A training step of `examples/pinn.py`, with tinytorch or with PyTorch: the same program's text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

SCRIPT = Path(__file__).resolve().parent.parent / "examples" / "pinn.py"


def load(library: str) -> ModuleType:
    """Return the example as a module that imports `library` ("torch") in tinytorch's place."""
    module = ModuleType(SCRIPT.stem)
    source = SCRIPT.read_text(encoding="utf-8").replace("tinytorch", library)
    exec(compile(source, str(SCRIPT), "exec"), module.__dict__)
    return module


def make(library: str, points: int, width: int) -> Callable[[], object]:
    """Return what takes one step, with the example's defaults but for the sizes."""
    pinn = load(library)
    settings = pinn.parse(["--no-plot", "--points", str(points), "--width", str(width)])
    pinn.torch.manual_seed(0)
    model = pinn.Network(settings.width, settings.depth)
    optimizer = pinn.torch.optim.Adam(model.parameters(), lr=settings.lr)
    return lambda: pinn.improve(model, optimizer, settings.points, settings.given)
