"""Compiled functions that are saved: `python -m tests.compiler.saving FOLDER` writes each, and what it gives."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import tinytorch as torch
import tinytorch.nn.functional as F
from tinytorch import nn

#: What a function is called with, in turn.
Calls = list[tuple[Any, ...]]
SAVED: dict[str, Callable[[], tuple[Any, Calls]]] = {}


def saved(make: Callable[[], tuple[Any, Calls]]) -> Callable[[], tuple[Any, Calls]]:
    """Note a function that returns what is compiled and its calls."""
    SAVED[make.__name__] = make
    return make


def inference(model: nn.Module, *shape: int) -> tuple[Any, Calls]:
    model.eval()
    compiled = torch.compile(model)
    return torch.no_grad()(compiled), [(torch.randn(*shape),) for _ in range(3)]


@saved
def mlp() -> tuple[Any, Calls]:
    return inference(nn.Sequential(nn.Flatten(), nn.Linear(12, 30), nn.ReLU(), nn.Linear(30, 5)), 7, 3, 4)


@saved
def quantized() -> tuple[Any, Calls]:
    model = nn.Sequential(nn.Linear(12, 30), nn.ReLU(), nn.Sequential(nn.Linear(30, 5, bias=False)))
    return inference(torch.ao.quantization.quantize_dynamic(model, {nn.Linear}), 7, 3, 12)


@saved
def of_16_bits() -> tuple[Any, Calls]:
    layers = [nn.Linear(12, 30), nn.Linear(30, 5)]
    quantize = torch.ao.quantization.quantize_dynamic
    model = nn.Sequential(
        *[
            quantize(nn.Sequential(layer), dtype=dtype)
            for layer, dtype in zip(layers, (torch.float16, torch.bfloat16), strict=True)
        ]
    )
    return inference(model, 9, 12)


@saved
def large_mlp() -> tuple[Any, Calls]:
    return inference(nn.Sequential(nn.Linear(784, 512), nn.GELU(), nn.Linear(512, 600), nn.Softmax(-1)), 512, 784)


@saved
def with_a_graph() -> tuple[Any, Calls]:
    compiled = torch.compile(nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2)))
    return compiled, [(torch.randn(3, 4),) for _ in range(2)]


@saved
def cnn() -> tuple[Any, Calls]:
    layers = [nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)]
    model = nn.Sequential(*layers, nn.Conv2d(8, 8, 3, groups=2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4))
    model(torch.randn(4, 3, 12, 12))  # statistics
    return inference(model, 4, 3, 12, 12)


class Last(nn.Module):
    """The last output of an LSTM."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.out = nn.LSTM(5, 9, num_layers=2, batch_first=True), nn.Linear(9, 3)

    def forward(self, x: Any) -> Any:
        return self.out(self.lstm(x)[0][:, -1])


@saved
def lstm() -> tuple[Any, Calls]:
    return inference(Last(), 6, 8, 5)


class Block(nn.Module):
    """A transformer's block on embedded words."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.norm = nn.Embedding(20, 16), nn.LayerNorm(16)
        self.attention, self.mlp = nn.Linear(16, 48), nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))

    def forward(self, words: Any) -> Any:
        x = self.words(words)
        q, k, v = [each.unflatten(-1, (4, 4)).transpose(1, 2) for each in self.attention(self.norm(x)).chunk(3, -1)]
        x = x + F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        return torch.softmax(x + self.mlp(self.norm(x)), -1)


@saved
def transformer() -> tuple[Any, Calls]:
    block = Block().eval()
    return torch.no_grad()(torch.compile(block)), [(torch.randint(0, 20, (3, 7)),) for _ in range(3)]


def training(model: Any, make: Callable[..., Any], *shape: int, classes: int = 4) -> tuple[Any, Calls]:
    loss_fn, optimizer = nn.CrossEntropyLoss(), make(model.parameters())

    @torch.compile
    def step(X: Any, y: Any) -> Any:
        pred = model(X)
        loss = loss_fn(pred, y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    return step, [(torch.randn(*shape), torch.randint(0, classes, shape[:1])) for _ in range(20)]


def quickstart(make: Callable[..., Any]) -> tuple[Any, Calls]:
    model = nn.Sequential(nn.Flatten(), nn.Linear(24, 40), nn.ReLU(), nn.Linear(40, 40), nn.ReLU(), nn.Linear(40, 4))
    return training(model, make, 16, 4, 6)


OPTIMIZERS: dict[str, Callable[..., Any]] = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-3),
    "adam": torch.optim.Adam,
    "amsgrad": lambda p: torch.optim.Adam(p, lr=torch.tensor(1e-2), amsgrad=True, maximize=True),
    "adamw": lambda p: torch.optim.AdamW(p, lr=1e-2, weight_decay=0.1),
    "rmsprop": lambda p: torch.optim.RMSprop(p, momentum=0.5, centered=True),
    "adagrad": torch.optim.Adagrad,
    "adadelta": torch.optim.Adadelta,
    "adamax": torch.optim.Adamax,
    "nadam": torch.optim.NAdam,
    "radam": torch.optim.RAdam,
    "asgd": torch.optim.ASGD,
    "rprop": torch.optim.Rprop,
}
for _name, _make in OPTIMIZERS.items():
    SAVED[f"quickstart_{_name}"] = lambda make=_make: quickstart(make)  # type: ignore[misc]


@saved
def groups() -> tuple[Any, Calls]:
    model = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 4))

    def make(parameters: Any) -> Any:
        weights, biases = ([p for p in model.parameters() if p.ndim == n] for n in (2, 1))
        return torch.optim.AdamW([{"params": weights}, {"params": biases, "weight_decay": 0.0, "lr": 0.05}])

    return training(model, make, 6, 5)


@saved
def schedule() -> tuple[Any, Calls]:
    def make(parameters: Any) -> Any:
        optimizer = torch.optim.SGD(parameters, lr=0.1)
        torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)  # its steps are nobody's
        return optimizer

    return quickstart(make)


@saved
def convolutions() -> tuple[Any, Calls]:
    layers = [nn.Conv2d(2, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.3), nn.Flatten()]
    return training(nn.Sequential(*layers, nn.Linear(54, 4)), torch.optim.Adam, 8, 2, 8, 8)


@saved
def recurrent() -> tuple[Any, Calls]:
    return training(Last(), torch.optim.Adam, 6, 8, 5, classes=3)


@saved
def attentive() -> tuple[Any, Calls]:
    layer = nn.TransformerEncoderLayer(12, 3, 20, batch_first=True)
    model = nn.Sequential(layer, nn.Flatten(), nn.Linear(60, 4))
    return training(model, torch.optim.AdamW, 6, 5, 12)


@saved
def accumulated() -> tuple[Any, Calls]:
    model = nn.Linear(3, 2)
    (model(torch.ones(1, 3)) ** 2).sum().backward()

    def step(x: Any) -> Any:
        loss = (model(x) ** 2).sum()
        loss.backward()
        return loss.detach() * 2, loss.item()

    return torch.compile(step), [(torch.randn(4, 3),) for _ in range(4)]


@saved
def a_leaf_that_is_given() -> tuple[Any, Calls]:
    def step(x: Any) -> Any:
        (gradient,) = torch.autograd.grad((x.sin() * x).sum(), x)
        return gradient

    return torch.compile(step), [(torch.randn(3, 2, requires_grad=True),) for _ in range(2)]


@saved
def structures() -> tuple[Any, Calls]:
    table = torch.randn(5, 3)

    def f(x: Any, options: Any) -> Any:
        values, places = x.max(1)
        both = x * options["scale"] + table
        pair = [both.t(), (x * 2)[1:, ::2]]
        return (
            {"sums": [both.sum(0), both.sum()], "pair": pair, "n": 3, "none": None},
            (values, places),
            x.mean().item(),
        )

    return torch.compile(f), [(torch.randn(5, 3), {"scale": torch.randn(3)}) for _ in range(3)]


@saved
def layouts() -> tuple[Any, Calls]:
    turned, picked, wide = torch.randn(6, 4).t(), torch.randn(8, 12)[::2, 1::2], torch.randn(2, 3, 4).permute(2, 0, 1)

    def f(x: Any) -> Any:
        return x @ turned, x @ picked, wide.sum(0) @ x[:3], x[:, :2].t() @ x

    return torch.compile(f), [(torch.randn(4, 4),) for _ in range(2)]


@saved
def random() -> tuple[Any, Calls]:
    def f(x: Any) -> Any:
        noise = torch.rand(4, 3) + torch.randn(4, 3) * torch.randn(20).sum()
        return F.dropout(x, 0.4) + noise, torch.randint(0, 9, (5,))

    return torch.compile(f), [(torch.randn(4, 3),) for _ in range(3)]


@saved
def what_is_written_to() -> tuple[Any, Calls]:
    total = nn.Module()
    total.register_buffer("count", torch.zeros(3))

    def f(x: Any) -> Any:
        total.count.add_(x.sum(0))
        mask = torch.zeros(3, 3)
        mask[1] = x[0]
        x = x.masked_fill(x > 1, 0.5)
        return total.count * 2, mask, torch.cat([x, x.long()]), x.gather(1, x.argsort(1))

    return torch.compile(f), [(torch.randn(2, 3),) for _ in range(3)]


def arrays(x: Any) -> Any:
    """Return a result with arrays for tensors."""
    if isinstance(x, torch.Tensor):
        return x.detach().numpy().copy()
    if isinstance(x, dict):
        return {key: arrays(each) for key, each in x.items()}
    if isinstance(x, (list, tuple)):
        made = [arrays(each) for each in x]
        return made if isinstance(x, list) else tuple(made)
    return x


def flat(x: Any) -> list[Any]:
    """Return the arrays that a program is given for arguments."""
    if isinstance(x, (tuple, dict)):
        return [array for each in (x.values() if isinstance(x, dict) else x) for array in flat(each)]
    return [x]


def program_of(function: Any) -> Any:
    """Return what has `save`."""
    return function if hasattr(function, "save") else function.__wrapped__


def main(folder: Path) -> None:
    """Write all."""
    for name, make in SAVED.items():
        torch.manual_seed(3)
        function, calls = make()
        for call in calls[:2]:
            function(*call)
        program = program_of(function)
        program.save(folder / f"{name}.py")
        given = [flat(arrays(call)) for call in calls]
        results = [arrays(function(*call)) for call in calls]
        compiled = getattr(program, "_compiled", program)
        assert len(compiled.variants) == 1, f"{name}: {program.explain()}"
        scope = compiled.variants[0].enter.__globals__
        stay = [scope[f"t{k}"] for k, each in enumerate(compiled.variants[0].inputs) if each.stays]
        kept = [x.detach().numpy().tobytes() for x in stay]
        with open(folder / f"{name}.pickle", "wb") as file:
            pickle.dump((given, results, kept), file)


if __name__ == "__main__":
    np.seterr(all="ignore")
    main(Path(sys.argv[1]))
