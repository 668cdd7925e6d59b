"""Training steps of a convolutional network, a character GPT and an LSTM, with tinytorch or with PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def load(name: str, library: str) -> ModuleType:
    """Return an example as a module that imports `library` ("torch") in tinytorch's place."""
    script = EXAMPLES / f"{name}.py"
    module = ModuleType(name)
    module.__file__ = str(script)
    source = script.read_text(encoding="utf-8").replace("tinytorch", library)
    exec(compile(source, str(script), "exec"), module.__dict__)
    return module


def data(torch: Any, *shape: int, classes: int = 10) -> tuple[Any, Any]:
    """Return inputs of a shape, and their classes: the same for each library."""
    rng = np.random.default_rng(0)
    X = torch.from_numpy(rng.random(shape, dtype=np.float32))
    return X, torch.from_numpy(rng.integers(0, classes, shape[0]))


def step_of(torch: Any, model: Any, X: Any, y: Any) -> Callable[[], object]:
    """Return what takes a step of Adam."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loss_fn = torch.nn.CrossEntropyLoss()

    def step() -> None:
        loss = loss_fn(model(X), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def alone(model: Any) -> Any:
    """Return a model as it is: on one process."""
    return model


def mlp(torch: Any, batch: int = 256, wrap: Callable[[Any], Any] = alone) -> Callable[[], object]:
    """The quickstart's model."""
    nn = torch.nn
    torch.manual_seed(0)
    layers = nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)
    return step_of(torch, wrap(nn.Sequential(nn.Flatten(), *layers)), *data(torch, batch, 1, 28, 28))


def cnn(torch: Any, batch: int = 64, wrap: Callable[[Any], Any] = alone) -> Callable[[], object]:
    """Two convolutions, of 32 and 64 channels, and two linear layers, on pictures of 28 x 28."""
    nn = torch.nn
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64 * 7 * 7, 128),
        nn.ReLU(),
        nn.Linear(128, 10),
    )
    return step_of(torch, wrap(model), *data(torch, batch, 1, 28, 28))


def gpt(torch: Any, batch: int = 12, context: int = 64, wrap: Callable[[Any], Any] = alone) -> Callable[[], object]:
    """The model of `examples/char_gpt.py`: 4 layers, 128 wide, and AdamW."""
    example = load("char_gpt", torch.__name__)
    torch.manual_seed(0)
    model = wrap(example.GPT(size=65, context=context, layers=4, heads=4, width=128))
    optimizer = example.optimizer_of(model, lr=1e-3)
    text = torch.from_numpy(np.random.default_rng(0).integers(0, 65, (batch, context + 1)))
    return lambda: example.improve(model, optimizer, text[:, :-1], text[:, 1:])


def lstm(torch: Any, batch: int = 64, hidden: int = 128) -> Callable[[], object]:
    """The model of `examples/lstm_rows.py`: 28 rows of 28 pixels through an LSTM."""
    torch.manual_seed(0)
    model = load("lstm_rows", torch.__name__).Network(hidden, layers=1)
    return step_of(torch, model, *data(torch, batch, 1, 28, 28))
