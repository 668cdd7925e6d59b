"""The workloads of some rows as JAX programs: the same networks, initial weights, losses and steps, under `jax.jit`.

`models.py` and `tasks.py` implement the same workloads; only the random points differ, which JAX draws itself.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

import tinytorch
from benchmarks import models

Work = Callable[[], Any]


def array(x: Any) -> Any:
    """Return a tensor as a JAX array."""
    return jnp.asarray(x.detach().numpy())


def weights(*sizes: int) -> list[tuple[Any, Any]]:
    """Return the initial weights and biases of linear layers for seed 0."""
    tinytorch.manual_seed(0)
    layers = [tinytorch.nn.Linear(*shape) for shape in itertools.pairwise(sizes)]
    return [(array(layer.weight), array(layer.bias)) for layer in layers]


def network(params: Any, x: Any, activation: Callable[[Any], Any]) -> Any:
    """Return the output of linear layers for `x`, with an activation between them."""
    for w, b in params[:-1]:
        x = activation(x @ w.T + b)
    w, b = params[-1]
    return x @ w.T + b


def sgd(lr: float) -> tuple[Any, Any]:
    """Return two functions for gradient descent: one that creates its state, and one that takes a step."""

    def update(params: Any, state: Any, grads: Any) -> Any:
        return jax.tree.map(lambda p, g: p - lr * g, params, grads), state

    return lambda params: 0, update


def adam(lr: float) -> tuple[Any, Any]:
    """Return two functions for Adam: one that creates its state, and one that takes a step."""

    def start(params: Any) -> Any:
        return jnp.zeros(()), jax.tree.map(jnp.zeros_like, params), jax.tree.map(jnp.zeros_like, params)

    def update(params: Any, state: Any, grads: Any) -> Any:
        k, m, v = state[0] + 1, state[1], state[2]
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, grads)
        size, root = lr / (1 - 0.9**k), jnp.sqrt(1 - 0.999**k)
        return jax.tree.map(lambda p, m, v: p - size * m / (jnp.sqrt(v) / root + 1e-8), params, m, v), (k, m, v)

    return start, update


def stepping(loss: Callable[..., Any], params: Any, optimizer: tuple[Any, Any], *data: Any) -> Work:
    """Return a function that takes a training step: one compiled function, which overwrites parameters and state."""
    start, update = optimizer

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def step(params: Any, state: Any, *data: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(params, *data)
        return value, *update(params, state, grads)

    now = [params, start(params)]

    def work() -> Any:
        value, *now[:] = step(*now, *data)
        jax.block_until_ready(now)
        return value

    return work


def micro_mlp() -> Work:
    """2-16-16-1 on a hundred points."""
    X = array(models.data(tinytorch, 100, 2)[0])
    params = weights(2, 16, 16, 1)
    return stepping(
        lambda p, x, y: ((network(p, x, jnp.tanh) - y) ** 2).mean(), params, sgd(0.1), X, X.prod(1)[:, None]
    )


def mlp(batch: int, optimizer: tuple[Any, Any]) -> Work:
    """The quickstart's model."""
    X, y = map(array, models.data(tinytorch, batch, 1, 28, 28))

    def loss(params: Any, x: Any, y: Any) -> Any:
        logits = network(params, x.reshape(len(x), -1), jax.nn.relu)
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], 1).mean()

    return stepping(loss, weights(784, 512, 512, 10), optimizer, X, y)


def pinn(points: int = 256, width: int = 64, depth: int = 2) -> Work:
    """`examples/pinn.py`: second derivatives of a small network, at new points in each step."""
    example = models.load("pinn", "tinytorch")
    settings = example.parse(["--no-plot"])

    def u(params: Any, t: Any, x: Any) -> Any:
        return network(params, jnp.stack([t, x], -1), jnp.tanh)[..., 0]

    def residual(params: Any, t: Any, x: Any) -> Any:
        value, (u_t, u_x) = jax.value_and_grad(u, (1, 2))(params, t, x)
        return u_t + value * u_x - example.NU * jax.grad(jax.grad(u, 2), 2)(params, t, x)

    def random_points(key: Any, n: int) -> Any:
        t, x = jax.random.uniform(key, (2, n))
        return t, 2 * x - 1

    def loss(params: Any, keys: Any) -> Any:
        t, x = random_points(keys[0], points)
        equation = jax.vmap(residual, (None, 0, 0))(params, t, x)
        t, x = random_points(keys[1], settings.given)
        first = jnp.arange(settings.given) < settings.given // 2
        t, x = jnp.where(first, 0, t), jnp.where(first, x, jnp.sign(x))
        given = u(params, t, x) + jnp.sin(jnp.pi * x)
        return (equation**2).mean() + example.WEIGHT * (given**2).mean()

    start, update = adam(settings.lr)

    @functools.partial(jax.jit, donate_argnums=(0, 1, 2))
    def step(params: Any, state: Any, key: Any) -> Any:
        key, *keys = jax.random.split(key, 3)
        value, grads = jax.value_and_grad(loss)(params, keys)
        return value, *update(params, state, grads), key

    params = weights(2, *[width] * depth, 1)
    now = [params, start(params), jax.random.key(0)]

    def work() -> Any:
        value, *now[:] = step(*now)
        jax.block_until_ready(now)
        return value

    return work


def chain() -> Work:
    """A hundred small multiplications in a row, and backward."""
    x, w = jnp.ones((8, 8)), jnp.full((8, 8), 0.99)

    def product(x: Any, w: Any) -> Any:
        y = x
        for _ in range(100):
            y = y * w
        return y.sum()

    gradients = jax.jit(jax.grad(product, (0, 1)))
    return lambda: jax.block_until_ready(gradients(x, w))


def decide() -> Work:
    """One decision of a small network, 16-64-64-4."""
    x, params = array(models.data(tinytorch, 1, 16)[0]), weights(16, 64, 64, 4)
    run = jax.jit(lambda params, x: network(params, x, jax.nn.relu))
    return lambda: jax.block_until_ready(run(params, x))


#: By the names that the rows have in `work.py`.
WORK: dict[str, Callable[[], Work]] = {
    "chain": chain,
    "micro-mlp": micro_mlp,
    "pinn": pinn,
    "pinn-2000": functools.partial(pinn, 2000, 20, 4),
    "step": lambda: mlp(64, sgd(1e-3)),
    "step-adam": lambda: mlp(64, adam(1e-3)),
    "step-256": lambda: mlp(256, sgd(1e-3)),
    "step-256-adam": lambda: mlp(256, adam(1e-3)),
    "decide": decide,
}
