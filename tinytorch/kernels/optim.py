"""Steps of optimizers: a parameter's array and its state, changed in place.

`adam_update(p, g, state, group)`, and so on, are the steps of the classes in `optim/`: they update the parameter `p`,
given its gradient `g`, the dict of its state (arrays; "step" and other scalars have no dimensions), and the options.
Elementwise steps also take several parameters whose scalars agree: lists in the place of all other arrays.

A step is written once, with operators and with functions of its last argument `on`: `Arrays`, which writes the results
into the arrays, or `optim.recorded.Tensors`, so that gradients flow through the step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from inspect import Parameter, Signature
from itertools import repeat
from typing import Any, NoReturn

import numpy as np

from .dtypes import from_numpy_dtype
from .limits import finfo
from .native import twin

Array = Any
State = dict[str, Any]
#: Returns the new parameter and the new buffers, from the parameter, its gradient and the buffers.
Formula = Callable[..., tuple[Any, ...]]

#: Elements updated at a time: few enough that the pieces of parameter, gradient, buffers and
#: intermediate results stay in the cache, and enough that the overhead of a call is negligible.
#: Adamax on a million float32, measured without its twin: 2**13 8.3 ms, 2**14 3.2 ms, 2**15 2.8 ms, 2**16 4.6 ms.
BLOCK = 2**15
#: Below this many elements the overhead of calls dominates.
SMALL = 2**12


def blocks(arrays: list[Array]) -> Iterator[list[Array]]:
    """Yield matching pieces of `arrays`: views, so that writing into them writes into the arrays."""
    first = arrays[0]
    if first.size < SMALL or not all(a.flags.c_contiguous for a in arrays):
        # Too small to gain from blocks, or (rarely, a transposed view) without a common order in memory.
        yield arrays
        return
    flat = [a.reshape(-1) for a in arrays]
    for start in range(0, first.size, BLOCK):
        yield [a[start : start + BLOCK] for a in flat]


def pull_of(group: State, number: Callable[[Any], Any] = float) -> tuple[float, Any, Any]:
    """Return the *pull* of a group's options: `sign, stays, decay`.

    That is the sign of the gradient (-1 to maximize), the factor of the parameter before the step (decoupled weight
    decay), and the factor of the parameter in the gradient (weight decay).
    """
    sign, weight_decay = -1.0 if group.get("maximize") else 1.0, group.get("weight_decay", 0)
    if weight_decay == 0:
        return sign, 1.0, 0.0
    if group.get("decoupled_weight_decay"):
        return sign, 1 - number(group["lr"]) * number(weight_decay), 0.0
    return sign, 1.0, number(weight_decay)


def pulled(p: Any, g: Any, sign: float, stays: Any, decay: Any) -> tuple[Any, Any]:
    """Apply a pull to a parameter and its gradient."""
    if sign < 0:
        g = -g
    if decay != 0:
        g = g + p * decay
    # (A tensor that is 1 has a gradient.)
    return (p, g) if isinstance(stays, int | float) and stays == 1 else (p * stays, g)


def write(formula: Formula, arrays: tuple[Array | None, ...], pull: tuple[float, float, float]) -> None:
    """Write a formula's results into the first of `arrays`, the parameter, and those after the second, the gradient."""
    there = [array is not None for array in arrays]
    for pieces in blocks([array for array in arrays if array is not None]):
        rest = iter(pieces)
        p, g, *buffers = (next(rest) if each else None for each in there)
        results = formula(*pulled(p, g, *pull), *buffers)
        for piece, result in zip((p, *buffers), results, strict=True):
            if piece is not None:
                piece[...] = result


class Arrays:
    """What a step uses to compute with arrays."""

    number = float
    sqrt, maximum, where = np.sqrt, np.maximum, np.where

    @staticmethod
    def sign(x: Array) -> Array:
        """Return the signs of the elements, as PyTorch does: that of NaN is 0."""
        return np.subtract(x > 0, x < 0, dtype=x.dtype)

    @staticmethod
    def constant(x: Array) -> Array:
        """Return `x`: arrays have no graph."""
        return x

    @staticmethod
    def count(state: State) -> float:
        """Return the number of this step, after counting it."""
        step = state["step"]
        step += 1
        return float(step)

    @staticmethod
    def put(state: State, name: str, value: float) -> None:
        """Set a scalar of the state."""
        state[name][...] = value

    @staticmethod
    def step(
        made: Any, numbers: tuple[Any, ...], p: Array, g: Array, state: State, group: State, *names: str | None
    ) -> None:
        """Update a parameter, and the buffers of the state that have `names`, by a formula and its numbers.

        None stands for a buffer that the step does without. A buffer that is not there begins with this step; for
        several parameters that is a KeyError, before any is updated.
        """
        for name in names:
            if name is not None and state.get(name) is None:
                if isinstance(p, list):
                    raise KeyError(name)
                state[name] = np.empty_like(p)
        buffers = [None if name is None else state[name] for name in names]
        made.kernel(p, g, *buffers, *pull_of(group), *numbers)


def step(arrays: str) -> Callable[[Callable[..., Formula]], Any]:
    """Return a decorator for a function of `on` and numbers that returns a formula of `arrays`.

    Its attribute `kernel` is the step on arrays: a function of the arrays, the pull and the numbers, which may have a
    twin.
    """
    names = arrays.split()

    def decorate(made: Any) -> Any:
        def definition(*arguments: Any) -> None:
            buffers, pull, numbers = (
                arguments[: len(names)], arguments[len(names) : len(names) + 3], arguments[len(names) + 3 :]
            )  # fmt: skip
            if isinstance(buffers[0], list):
                for own in zip(*[repeat(None) if each is None else each for each in buffers], strict=False):
                    made.kernel(*own, *pull, *numbers)
            else:
                write(made(Arrays, *numbers), buffers, pull)

        definition.__name__ = made.__name__
        numbers = made.__code__.co_varnames[1 : made.__code__.co_argcount]
        parameters = (*names, "sign", "stays", "decay", *numbers)
        definition.__signature__ = Signature([Parameter(x, Parameter.POSITIONAL_ONLY) for x in parameters])  # type: ignore[attr-defined]
        made.kernel = twin(definition)
        return made

    return decorate


# The steps ---------------------------------------------------------------------------------------


@step("p g buffer")
def sgd(on: Any, lr: Any, momentum: Any, entering: Any, nesterov: bool, starts: bool) -> Formula:
    """Return the formula of SGD; `entering` is the factor of the gradient in the buffer, which `starts` as it."""

    def formula(p: Any, g: Any, b: Any) -> tuple[Any, ...]:
        if b is not None or starts:
            b = on.constant(g) if starts else b * momentum + g * entering
            g = g + b * momentum if nesterov else b
        return p - g * lr, b

    return formula


def sgd_update(p: Array, g: Array, state: State, group: State, on: Any = Arrays) -> Any:
    """Make a step of SGD."""
    lr, momentum, dampening = on.number(group["lr"]), on.number(group["momentum"]), on.number(group["dampening"])
    name = None if momentum == 0 else "momentum_buffer"
    starts = name is not None and state.get(name) is None
    numbers = lr, momentum, 1 - dampening, bool(group["nesterov"]), starts
    return on.step(sgd, numbers, p, g, state, group, name)


def moments(g: Any, m: Any, v: Any, entering: Any, beta2: Any, entering_square: Any) -> tuple[Any, Any]:
    """Return the averages of the gradient and of its square, moved by a gradient."""
    return m + (g - m) * entering, v * beta2 + g * g * entering_square


@step("p g m v greatest")
def adam(on: Any, entering: Any, beta2: Any, entering_square: Any, scale: Any, eps: Any) -> Formula:
    """Return the formula of Adam: it updates the averages of gradient and square, and subtracts their ratio."""

    def formula(p: Any, g: Any, m: Any, v: Any, greatest: Any) -> tuple[Any, ...]:
        m, v = moments(g, m, v, entering, beta2, entering_square)
        if greatest is not None:
            greatest = on.maximum(greatest, v)
        return p - m / (on.sqrt(v if greatest is None else greatest) + eps) * scale, m, v, greatest

    return formula


def adam_update(p: Array, g: Array, state: State, group: State, on: Any = Arrays) -> Any:
    """Make a step of Adam and AdamW, by the group's options."""
    lr, eps, beta1, beta2 = map(on.number, (group["lr"], group["eps"], *group["betas"]))
    t = on.count(state)
    # Both bias corrections are folded into two scalars, which saves a pass over the arrays: with
    # c = sqrt(1 - beta2**t),  lr * m' / (sqrt(v') + eps)  =
    # lr * c / (1 - beta1**t) * m / (sqrt(v) + eps * c).
    c = (1 - beta2**t) ** 0.5
    numbers = 1 - beta1, beta2, 1 - beta2, lr * c / (1 - beta1**t), eps * c
    names = "exp_avg", "exp_avg_sq", "max_exp_avg_sq" if group["amsgrad"] else None
    return on.step(adam, numbers, p, g, state, group, *names)


@step("p g v m b")
def rmsprop(on: Any, lr: Any, alpha: Any, entering: Any, eps: Any, momentum: Any) -> Formula:
    """Return the formula of RMSprop, centered if there is an average `m`, with momentum if there is a buffer `b`."""

    def formula(p: Any, g: Any, v: Any, m: Any, b: Any) -> tuple[Any, ...]:
        v = variance = v * alpha + g * g * entering
        if m is not None:
            m = m + (g - m) * entering
            variance = v - m * m
        g = g / (on.sqrt(variance) + eps)
        if b is not None:
            g = b = b * momentum + g
        return p - g * lr, v, m, b

    return formula


def rmsprop_update(p: Array, g: Array, state: State, group: State, on: Any = Arrays) -> Any:
    """Make a step of RMSprop."""
    lr, alpha, eps, momentum = (on.number(group[name]) for name in ("lr", "alpha", "eps", "momentum"))
    on.count(state)
    numbers = lr, alpha, 1 - alpha, eps, momentum
    names = "square_avg", "grad_avg" if group["centered"] else None, "momentum_buffer" if momentum > 0 else None
    return on.step(rmsprop, numbers, p, g, state, group, *names)


@step("p g m u")
def adamax(on: Any, entering: Any, beta2: Any, eps: Any, scale: Any) -> Formula:
    """Return the formula of Adamax."""

    def formula(p: Any, g: Any, m: Any, u: Any) -> tuple[Any, ...]:
        m = m + (g - m) * entering
        u = on.maximum(u * beta2, abs(g) + eps)
        return p - m / u * scale, m, u

    return formula


def adamax_update(p: Array, g: Array, state: State, group: State, on: Any = Arrays) -> Any:
    """Make a step of Adamax."""
    lr, eps, beta1, beta2 = map(on.number, (group["lr"], group["eps"], *group["betas"]))
    numbers = 1 - beta1, beta2, eps, lr / (1 - beta1 ** on.count(state))
    return on.step(adamax, numbers, p, g, state, group, "exp_avg", "exp_inf")


@step("p g m v")
def nadam(on: Any, entering: Any, beta2: Any, entering_square: Any, of_g: Any, of_m: Any, eps: Any) -> Formula:
    """Return the formula of NAdam; `of_g` and `of_m` are the factors of gradient and average in the step."""

    def formula(p: Any, g: Any, m: Any, v: Any) -> tuple[Any, ...]:
        m, v = moments(g, m, v, entering, beta2, entering_square)
        return p - (g * of_g + m * of_m) / (on.sqrt(v) + eps), m, v

    return formula


def nadam_update(p: Array, g: Array, state: State, group: State, on: Any = Arrays) -> Any:
    """Make a step of NAdam."""
    lr, eps, beta1, beta2 = map(on.number, (group["lr"], group["eps"], *group["betas"]))
    t = on.count(state)
    now, then = (beta1 * (1 - 0.5 * 0.96 ** (time * group["momentum_decay"])) for time in (t, t + 1))
    on.put(state, "mu_product", state["mu_product"] * now)
    so_far = on.number(state["mu_product"])
    # The bias correction of v is folded into the scalars, as in Adam.
    c = (1 - beta2**t) ** 0.5
    of_g, of_m = lr * (1 - now) / (1 - so_far) * c, lr * then / (1 - so_far * then) * c
    numbers = 1 - beta1, beta2, 1 - beta2, of_g, of_m, eps * c
    return on.step(nadam, numbers, p, g, state, group, "exp_avg", "exp_avg_sq")


@step("p g m v")
def radam(on: Any, entering: Any, beta2: Any, entering_square: Any, eps: Any, scale: Any, rectified: bool) -> Formula:
    """Return the formula of RAdam."""

    def formula(p: Any, g: Any, m: Any, v: Any) -> tuple[Any, ...]:
        m, v = moments(g, m, v, entering, beta2, entering_square)
        return p - (m / (on.sqrt(v) + eps) if rectified else m) * scale, m, v

    return formula


def radam_update(p: Array, g: Array, state: State, group: State, on: Any = Arrays) -> Any:
    """Make a step of RAdam."""
    lr, eps, beta1, beta2 = map(on.number, (group["lr"], group["eps"], *group["betas"]))
    t = on.count(state)
    correction, longest = 1 - beta2**t, 2 / (1 - beta2) - 1
    length = longest - 2 * t * beta2**t / correction
    scale, rectified = lr / (1 - beta1**t), length > 5
    if rectified:
        ratio = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
        scale = scale * (correction * ratio) ** 0.5
    numbers = 1 - beta1, beta2, 1 - beta2, eps, scale, rectified
    return on.step(radam, numbers, p, g, state, group, "exp_avg", "exp_avg_sq")


@step("p g v a")
def adadelta(on: Any, rho: Any, entering: Any, eps: Any, lr: Any) -> Formula:
    """Return the formula of Adadelta."""

    def formula(p: Any, g: Any, v: Any, a: Any) -> tuple[Any, ...]:
        v = v * rho + g * g * entering
        d = g / on.sqrt(v + eps) * on.sqrt(a + eps)
        return p - d * lr, v, a * rho + d * d * entering

    return formula


def adadelta_update(p: Array, g: Array, state: State, group: State, on: Any = Arrays) -> Any:
    """Make a step of Adadelta."""
    rho, eps, lr = (on.number(group[name]) for name in ("rho", "eps", "lr"))
    on.count(state)
    return on.step(adadelta, (rho, 1 - rho, eps, lr), p, g, state, group, "square_avg", "acc_delta")


@step("p g total")
def adagrad(on: Any, eps: Any, scale: Any) -> Formula:
    """Return the formula of Adagrad."""

    def formula(p: Any, g: Any, total: Any) -> tuple[Any, ...]:
        total = total + g * g
        return p - g / (on.sqrt(total) + eps) * scale, total

    return formula


def adagrad_update(p: Array, g: Array, state: State, group: State, on: Any = Arrays) -> Any:
    """Make a step of Adagrad."""
    eps, lr, lr_decay = (on.number(group[name]) for name in ("eps", "lr", "lr_decay"))
    return on.step(adagrad, (eps, lr / (1 + (on.count(state) - 1) * lr_decay)), p, g, state, group, "sum")


@step("p g last size")
def rprop(on: Any, shrink: float, grow: float, least: float, greatest: float) -> Formula:
    """Return the formula of Rprop."""

    def formula(p: Any, g: Any, last: Any, size: Any) -> tuple[Any, ...]:
        product = g * last
        size = on.where(product > 0, size * grow, on.where(product < 0, size * shrink, size)).clip(least, greatest)
        g = on.where(product < 0, 0.0, g)
        return p - on.sign(g) * size, g, size

    return formula


def rprop_update(p: Array, g: Array, state: State, group: State, on: Any = Arrays) -> Any:
    """Make a step of Rprop."""
    on.count(state)
    return on.step(rprop, (*group["etas"], *group["step_sizes"]), p, g, state, group, "prev", "step_size")


@step("p g average")
def asgd(on: Any, kept: Any, rate: Any, share: float) -> Formula:
    """Return the formula of ASGD."""

    def formula(p: Any, g: Any, average: Any) -> tuple[Any, ...]:
        p = p * kept - g * rate
        return p, p if share == 1 else average + (p - average) * share

    return formula


def asgd_update(p: Array, g: Array, state: State, group: State, on: Any = Arrays) -> Any:
    """Make a step of ASGD."""
    lr, lambd, alpha = (on.number(group[name]) for name in ("lr", "lambd", "alpha"))
    t, rate, share = on.count(state), float(state["eta"]), float(state["mu"])
    updated = on.step(asgd, (1 - lambd * rate, rate, share), p, g, state, group, "ax")
    on.put(state, "eta", float(lr / (1 + lambd * lr * t) ** alpha))
    on.put(state, "mu", 1 / max(1, t - group["t0"]))
    return updated


def adafactor_update(p: Array, g: Array, state: State, group: State) -> None:
    """Make a step of Adafactor."""
    lr, weight_decay, bound = float(group["lr"]), float(group["weight_decay"]), group["d"]
    least, smallest = group["eps"]
    if least is None:
        least = finfo(from_numpy_dtype(p.dtype)).eps
    t = Arrays.count(state)
    weight = t ** group["beta2_decay"]
    # Squares of half precision overflow: they are computed in float32, as in PyTorch.
    wide = np.result_type(p.dtype, np.float32) if p.dtype.kind == "f" else np.dtype(np.float32)

    length = max(smallest, _root_mean_square(p, wide)) * min(lr, t**-0.5)
    if weight_decay:
        np.multiply(p, 1 - lr * weight_decay, out=p)
    u = np.square(g, out=np.empty_like(g, wide))
    if g.ndim > 1:
        rows, columns = state["row_var"], state["col_var"]
        rows += (u.mean(-1, keepdims=True) - rows) * weight
        columns += (u.mean(-2, keepdims=True) - columns) * weight
        mean = np.maximum(rows.mean(-2, keepdims=True, dtype=wide), least)
        np.multiply(rows, columns / mean, out=u)
    else:
        variance = state["variance"]
        variance += (u - variance) * weight
        np.copyto(u, variance)
    np.sqrt(np.maximum(u, least * least, out=u), out=u)
    np.divide(g, u, out=u)
    length /= max(1.0, _root_mean_square(u, wide) / bound)
    np.multiply(u, -length if not group["maximize"] else length, out=u)
    p[...] = p + u


def _root_mean_square(array: Any, dtype: Any) -> float:
    flat = array.reshape(-1).astype(dtype, copy=False)
    return float(np.sqrt(flat @ flat)) / max(flat.size, 1) ** 0.5


def muon_update(p: Array, g: Array, state: State, group: State) -> None:
    """Make a step of Muon."""
    if g.ndim != 2:
        raise ValueError("Param gradient must be a 2D matrix")
    lr, weight_decay, momentum = float(group["lr"]), float(group["weight_decay"]), float(group["momentum"])
    b = state["momentum_buffer"]
    b += (g - b) * (1 - momentum)
    # As in PyTorch's lerp, the interpolation starts from the nearer end.
    ahead = b - (b - g) * (1 - momentum) if momentum >= 0.5 else g + (b - g) * momentum
    o = orthogonal(ahead if group["nesterov"] else b, group["ns_coefficients"], group["ns_steps"], group["eps"])
    rows, columns = p.shape
    rate = lr
    if group["adjust_lr_fn"] == "match_rms_adamw":
        rate *= 0.2 * math.sqrt(max(rows, columns))
    elif columns:
        rate *= math.sqrt(max(1, rows / columns))
    np.multiply(p, 1 - lr * weight_decay, out=p)
    p -= (o * np.float32(rate)).astype(p.dtype, copy=False)


def orthogonal(matrix: Any, coefficients: Any, steps: int, eps: float) -> Any:
    """Return an approximation of the orthogonal matrix nearest to `matrix`, by Newton-Schulz iterations.

    The result is a float32 array whose values are representable in bfloat16. The arguments are those of `Muon`.
    """
    if steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = (np.float32(value) for value in coefficients)
    tall = matrix.shape[0] > matrix.shape[1]
    x = _rounded((matrix.T if tall else matrix).astype(np.float32))
    norm = _rounded(np.sqrt(np.vdot(x, x)).reshape(1))
    x = _rounded(x / np.maximum(norm, _rounded(np.array([eps], np.float32))))
    for _ in range(steps):
        y = _rounded(x @ x.T)
        x = _rounded(a * x + _rounded(b * y + c * (y @ y)) @ x)
    return x.T if tall else x


def _rounded(x: Any) -> Any:
    """Return float32 numbers rounded to bfloat16, which keeps the upper half of their bits."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    near = (bits + (((bits >> 16) & 1) + np.uint32(0x7FFF))) & np.uint32(0xFFFF0000)
    result = near.view(np.float32)
    return np.where(np.isnan(x), x, result)


def sparse_adagrad_update(p: Array, at: tuple[Array, ...], g: Array, total: Array, rate: float, eps: float) -> None:
    """Make a step of Adagrad for some elements or rows.

    Args:
        p: the parameter.
        at: the indices of the rows in each of the first dimensions, without repetitions.
        g: their gradients.
        total: the sums of squared gradients, of the shape of `p`.
        rate: the learning rate of this step.
        eps: added to the denominator.
    """
    sums = total[at] + np.square(g)
    total[at] = sums
    p[at] -= g / (np.sqrt(sums) + eps) * np.asarray(rate, p.dtype)


def lazy_adam_update(
    p: Array, at: tuple[Array, ...], g: Array, m: Array, v: Array, t: int, group: dict[str, Any]
) -> None:
    """Make a step of SparseAdam: one of Adam, for some elements or rows.

    Args:
        p: the parameter.
        at: the indices of the rows in each of the first dimensions, without repetitions.
        g: their gradients.
        m, v: the running averages of the gradient and of its square, of the shape of `p`.
        t: the number of this step.
        group: the options.
    """
    lr, eps = float(group["lr"]), float(group["eps"])
    beta1, beta2 = map(float, group["betas"])
    first, second = m[at], v[at]
    first += (g - first) * (1 - beta1)
    second += (np.square(g) - second) * (1 - beta2)
    m[at], v[at] = first, second
    size = lr * (1 - beta2**t) ** 0.5 / (1 - beta1**t)
    p[at] -= first / (np.sqrt(second) + eps) * np.asarray(size, p.dtype)


def sparse_adam_update(p: Array, g: Array, state: State, group: State) -> NoReturn:
    """Raise PyTorch's error for a dense gradient."""
    raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
