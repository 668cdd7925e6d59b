"""Work with `torch.vmap` and `torch.func`, with tinytorch or PyTorch, from the same source code.

Each function creates its data, equal for both libraries, and returns a function that returns a dictionary of tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Task = Callable[[], Any]


def _numbers(torch: Any, *shape: int, scale: float = 1.0, seed: int = 0) -> Any:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape, np.float32) * np.float32(scale))


def _parameters(torch: Any, net: Any) -> dict[str, Any]:
    """Return parameters that are equal for both libraries."""
    found = net.named_parameters()
    return {name: _numbers(torch, *p.shape, scale=0.05, seed=k) for k, (name, p) in enumerate(found)}


def _per_sample(torch: Any, net: Any, *shape: int) -> Task:
    """Return the task of the gradients of each of 64 samples."""
    params, X = _parameters(torch, net), _numbers(torch, 64, *shape)
    y = torch.from_numpy(np.random.default_rng(1).integers(0, 10, 64))

    def loss(params: Any, x: Any, y: Any) -> Any:
        out = torch.func.functional_call(net, params, (x.unsqueeze(0),))
        return torch.nn.functional.cross_entropy(out, y.unsqueeze(0))

    gradients = torch.vmap(torch.func.grad(loss), (None, 0, 0))
    return lambda: gradients(params, X, y)


def per_sample_mlp(torch: Any) -> Task:
    """The gradients of each sample, of a perceptron 784-256-128-10."""
    nn = torch.nn
    layers = nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10)
    return _per_sample(torch, nn.Sequential(*layers), 784)


def per_sample_cnn(torch: Any) -> Task:
    """The gradients of each sample, of a network of two convolutions."""
    nn = torch.nn
    layers = (
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(32 * 49, 10),
    )  # fmt: skip
    return _per_sample(torch, nn.Sequential(*layers), 1, 28, 28)


def jacobian(torch: Any) -> Task:
    """The Jacobian of a perceptron 32-64-64-32."""
    nn = torch.nn
    net = nn.Sequential(nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 32))
    params, x = _parameters(torch, net), _numbers(torch, 32)
    rows = torch.func.jacrev(lambda x: torch.func.functional_call(net, params, (x,)))
    return lambda: {"jacobian": rows(x)}


def hessian(torch: Any) -> Task:
    """The Hessian of a loss by 200 parameters."""
    X, y, w = _numbers(torch, 64, 9), _numbers(torch, 64, 1, seed=1), _numbers(torch, 200, scale=0.1, seed=2)

    def loss(w: Any) -> Any:
        hidden = torch.tanh(X @ w[:180].reshape(9, 20))
        return ((hidden @ w[180:].reshape(20, 1) - y) ** 2).mean()

    matrix = torch.func.hessian(loss)
    return lambda: {"hessian": matrix(w)}


def ensemble(torch: Any) -> Task:
    """100 perceptrons 64-64-64-10 on the same 32 inputs."""
    nn = torch.nn
    nets = [
        nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)) for _ in range(100)
    ]
    params, buffers = torch.func.stack_module_state(nets)
    params = {name: _numbers(torch, *p.shape, scale=0.1, seed=k) for k, (name, p) in enumerate(params.items())}
    X = _numbers(torch, 32, 64)

    def call(params: Any, buffers: Any, X: Any) -> Any:
        return torch.func.functional_call(nets[0], (params, buffers), (X,))

    outputs = torch.vmap(call, (0, 0, None))
    return lambda: {"outputs": outputs(params, buffers, X)}
