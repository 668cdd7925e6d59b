"""Steps of optimizers: a parameter's array and its state, changed in place.

`adam_update(p, g, state, group)`, and so on, are the steps of the classes in `optim/`: they update the parameter `p`,
given its gradient `g`, the dict of its state (arrays; "step" and other scalars have no dimensions), and the options.

The arguments `sign, stays, decay` of a step, its `pull`, are the sign of the gradient (-1 to maximize), the factor of
the parameter before the step (decoupled weight decay), and the factor of the parameter in the gradient (weight decay).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np

from tinytorch.kernels.dtypes import from_numpy_dtype
from tinytorch.kernels.limits import finfo
from tinytorch.kernels.native import twin

Array = Any

#: Elements updated at a time: few enough that the pieces of parameter, gradient, buffers and
#: scratch stay in the cache, and enough that the overhead of a call is negligible.
#: Adam on 12 million float32, measured: whole arrays 22.6 ms, 2**16 14.7 ms, 2**14 17.4 ms.
BLOCK = 2**16
#: Below this many elements the overhead of calls dominates.
SMALL = 2**12


def blocks(*arrays: Any, scratch: int, pull: tuple[float, float, float] = (1, 1, 0)) -> Iterator[tuple[Any, ...]]:
    """Yield matching pieces of `arrays`, each time with `scratch` temporary arrays of their shape.

    The pieces are views: writing into them writes into the arrays. With a `pull`, the first two arrays are a parameter
    and its gradient; the pull is applied, and the adjusted gradient yielded in place of the gradient. It is written
    into the first temporary array, unless it equals the gradient.
    """
    first = arrays[0]
    if first.size < SMALL or not all(a.flags.c_contiguous for a in arrays):
        # Too small to gain from blocks, or (rarely, a transposed view) without a common order in memory.
        yield _pulled((*arrays, *[np.empty_like(first) for _ in range(scratch)]), scratch, pull)
        return
    temporaries = [np.empty_like(first, shape=(min(BLOCK, first.size),)) for _ in range(scratch)]
    flat = [a.reshape(-1) for a in arrays]
    for start in range(0, first.size, BLOCK):
        cut = [a[start : start + BLOCK] for a in flat]
        yield _pulled((*cut, *[a[: cut[0].size] for a in temporaries]), scratch, pull)


def _pulled(pieces: tuple[Any, ...], scratch: int, pull: tuple[float, float, float]) -> tuple[Any, ...]:
    if pull == (1, 1, 0):
        return pieces
    sign, stays, decay = pull
    p, g, *rest = pieces
    d, s = rest[len(rest) - scratch :][:2]
    if sign < 0:
        g = np.negative(g, out=d)
    if stays != 1:
        np.multiply(p, stays, out=p)
    if decay:
        g = np.add(g, np.multiply(p, decay, out=s), out=d)
    return p, g, *rest


def decay_rule(group: dict[str, Any]) -> tuple[float, float, float]:
    """Return a group's `maximize` and weight decay as a pull."""
    sign, weight_decay = -1.0 if group["maximize"] else 1.0, float(group["weight_decay"])
    if group.get("decoupled_weight_decay"):
        return sign, 1 - float(group["lr"]) * weight_decay, 0.0
    return sign, 1.0, weight_decay


@twin
def sgd(
    p: Array, g: Array, buffer: Array | None, sign: float, stays: float, decay: float,
    lr: float, momentum: float, entering: float, nesterov: bool, starts: bool,
) -> None:  # fmt: skip
    """Make a step of SGD; `entering` is the factor of the gradient in the buffer, which `starts` as the gradient."""
    arrays = [p, g] if buffer is None else [p, g, buffer]
    for p, g, *optional, d, s in blocks(*arrays, scratch=2, pull=(sign, stays, decay)):
        # `g` is the adjusted gradient (the gradient or `d`); `s` holds products.
        for b in optional:
            if starts:
                np.copyto(b, g)
            else:
                np.multiply(b, momentum, out=b)
                np.add(b, g if entering == 1 else np.multiply(g, entering, out=s), out=b)
            g = np.add(g, np.multiply(b, momentum, out=s), out=d) if nesterov else b
        np.subtract(p, np.multiply(g, lr, out=s), out=p)


@twin
def adam(
    p: Array, g: Array, m: Array, v: Array, greatest: Array | None, sign: float, stays: float, decay: float,
    entering: float, beta2: float, entering_square: float, scale: float, eps: float,
) -> None:  # fmt: skip
    """Make a step of Adam: update the averages `m`, `v` of gradient and square; subtract `scale * m / (√v + eps)`."""
    arrays = [array for array in (p, g, m, v, greatest) if array is not None]
    for p, g, m, v, *optional, _, s in blocks(*arrays, scratch=2, pull=(sign, stays, decay)):
        # `s` holds intermediate results.
        np.subtract(g, m, out=s)
        np.add(m, np.multiply(s, entering, out=s), out=m)
        np.multiply(np.square(g, out=s), entering_square, out=s)
        np.add(np.multiply(v, beta2, out=v), s, out=v)
        for w in optional:
            v = np.maximum(w, v, out=w)
        np.add(np.sqrt(v, out=s), eps, out=s)
        np.multiply(np.divide(m, s, out=s), scale, out=s)
        np.subtract(p, s, out=p)


@twin
def rmsprop(
    p: Array, g: Array, v: Array, m: Array | None, b: Array | None, sign: float, stays: float, decay: float,
    lr: float, alpha: float, entering: float, eps: float, momentum: float,
) -> None:  # fmt: skip
    """Make a step of RMSprop, centered if there is an average `m`, with momentum if there is a buffer `b`."""
    centered, arrays = m is not None, [array for array in (p, g, v, m, b) if array is not None]
    for p, g, v, *optional, _, s in blocks(*arrays, scratch=2, pull=(sign, stays, decay)):
        # `s` holds intermediate results.
        np.multiply(np.square(g, out=s), entering, out=s)
        np.add(np.multiply(v, alpha, out=v), s, out=v)
        if centered:
            m = optional[0]
            np.subtract(g, m, out=s)
            np.add(m, np.multiply(s, entering, out=s), out=m)
            np.subtract(v, np.square(m, out=s), out=s)
            np.sqrt(s, out=s)
        else:
            np.sqrt(v, out=s)
        np.divide(g, np.add(s, eps, out=s), out=s)
        if b is not None:
            buffer = optional[-1]
            np.add(np.multiply(buffer, momentum, out=buffer), s, out=buffer)
            np.multiply(buffer, lr, out=s)
        else:
            np.multiply(s, lr, out=s)
        np.subtract(p, s, out=p)


# The steps of the classes ------------------------------------------------------------------------


def _counted(state: dict[str, Any]) -> float:
    """Return the number of the step, after counting it."""
    step = state["step"]
    step += 1
    return float(step)


def sgd_update(p: Array, g: Array, state: dict[str, Any], group: dict[str, Any]) -> None:
    """Make a step of SGD."""
    lr, momentum, dampening = float(group["lr"]), float(group["momentum"]), float(group["dampening"])
    buffer, starts = None, False
    if momentum:
        buffer = state.get("momentum_buffer")
        starts = buffer is None
        if starts:
            buffer = state["momentum_buffer"] = np.empty_like(p)
    sgd(p, g, buffer, *decay_rule(group), lr, momentum, 1 - dampening, bool(group["nesterov"]), starts)


def adam_update(p: Array, g: Array, state: dict[str, Any], group: dict[str, Any]) -> None:
    """Make a step of Adam and AdamW, by the group's options."""
    lr, eps = float(group["lr"]), float(group["eps"])
    beta1, beta2 = map(float, group["betas"])
    t = _counted(state)
    # Both bias corrections are folded into two scalars, which saves a pass over the arrays: with
    # c = sqrt(1 - beta2**t),  lr * m' / (sqrt(v') + eps)  =
    # lr * c / (1 - beta1**t) * m / (sqrt(v) + eps * c).
    c = (1 - beta2**t) ** 0.5
    scale, eps = lr * c / (1 - beta1**t), eps * c

    greatest = state["max_exp_avg_sq"] if group["amsgrad"] else None
    m, v = state["exp_avg"], state["exp_avg_sq"]
    adam(p, g, m, v, greatest, *decay_rule(group), 1 - beta1, beta2, 1 - beta2, scale, eps)


def adamax_update(p: Array, g: Array, state: dict[str, Any], group: dict[str, Any]) -> None:
    """Make a step of Adamax."""
    lr, eps = float(group["lr"]), float(group["eps"])
    beta1, beta2 = map(float, group["betas"])
    scale = lr / (1 - beta1 ** _counted(state))
    arrays = p, g, state["exp_avg"], state["exp_inf"]
    for p, g, m, u, _, s in blocks(*arrays, scratch=2, pull=decay_rule(group)):
        # `s` holds intermediate results.
        np.subtract(g, m, out=s)
        np.add(m, np.multiply(s, 1 - beta1, out=s), out=m)
        np.add(np.abs(g, out=s), eps, out=s)
        np.maximum(np.multiply(u, beta2, out=u), s, out=u)
        np.subtract(p, np.multiply(np.divide(m, u, out=s), scale, out=s), out=p)


def nadam_update(p: Array, g: Array, state: dict[str, Any], group: dict[str, Any]) -> None:
    """Make a step of NAdam."""
    lr, eps = float(group["lr"]), float(group["eps"])
    beta1, beta2 = map(float, group["betas"])
    t, product = _counted(state), state["mu_product"]

    def momentum(t: float) -> float:
        return beta1 * (1 - 0.5 * 0.96 ** (t * group["momentum_decay"]))

    now, then = momentum(t), momentum(t + 1)
    product *= now
    so_far = float(product)
    # The bias correction of v is folded into the scalars, as in Adam.
    c = (1 - beta2**t) ** 0.5
    of_g, of_m = lr * (1 - now) / (1 - so_far) * c, lr * then / (1 - so_far * then) * c
    eps *= c
    arrays = p, g, state["exp_avg"], state["exp_avg_sq"]
    for p, g, m, v, d, s, r in blocks(*arrays, scratch=3, pull=decay_rule(group)):
        # `g` may be the same array as `d`; `s` and `r` hold intermediate results.
        np.subtract(g, m, out=s)
        np.add(m, np.multiply(s, 1 - beta1, out=s), out=m)
        np.multiply(np.square(g, out=s), 1 - beta2, out=s)
        np.add(np.multiply(v, beta2, out=v), s, out=v)
        np.add(np.sqrt(v, out=s), eps, out=s)
        np.multiply(g, of_g, out=d)
        np.add(d, np.multiply(m, of_m, out=r), out=d)
        np.subtract(p, np.divide(d, s, out=d), out=p)


def rectification(t: float, beta1: float, beta2: float) -> tuple[float, float | None]:
    """Return the factor of `m` in step t, and the rectification factor if the adaptive rate is used, or None."""
    correction = 1 - beta2**t
    longest = 2 / (1 - beta2) - 1
    length = longest - 2 * t * beta2**t / correction
    factor = None
    if length > 5:
        ratio = (length - 4) * (length - 2) * longest
        factor = (correction * ratio / ((longest - 4) * (longest - 2) * length)) ** 0.5
    return 1 / (1 - beta1**t), factor


def radam_update(p: Array, g: Array, state: dict[str, Any], group: dict[str, Any]) -> None:
    """Make a step of RAdam."""
    lr, eps = float(group["lr"]), float(group["eps"])
    beta1, beta2 = map(float, group["betas"])
    t = _counted(state)
    scale, factor = rectification(t, beta1, beta2)
    scale *= lr
    if factor is not None:
        scale *= factor
    arrays = p, g, state["exp_avg"], state["exp_avg_sq"]
    for p, g, m, v, _, s in blocks(*arrays, scratch=2, pull=decay_rule(group)):
        # `s` holds intermediate results.
        np.subtract(g, m, out=s)
        np.add(m, np.multiply(s, 1 - beta1, out=s), out=m)
        np.multiply(np.square(g, out=s), 1 - beta2, out=s)
        np.add(np.multiply(v, beta2, out=v), s, out=v)
        if factor is not None:
            np.divide(m, np.add(np.sqrt(v, out=s), eps, out=s), out=s)
            np.multiply(s, scale, out=s)
        else:
            np.multiply(m, scale, out=s)
        np.subtract(p, s, out=p)


def adadelta_update(p: Array, g: Array, state: dict[str, Any], group: dict[str, Any]) -> None:
    """Make a step of Adadelta."""
    lr, eps, rho = float(group["lr"]), float(group["eps"]), float(group["rho"])
    _counted(state)
    arrays = p, g, state["square_avg"], state["acc_delta"]
    for p, g, v, a, d, s in blocks(*arrays, scratch=2, pull=decay_rule(group)):
        # `g` may be the same array as `d`; `s` holds intermediate results.
        np.multiply(np.square(g, out=s), 1 - rho, out=s)
        np.add(np.multiply(v, rho, out=v), s, out=v)
        np.divide(g, np.sqrt(np.add(v, eps, out=s), out=s), out=d)
        np.multiply(d, np.sqrt(np.add(a, eps, out=s), out=s), out=d)
        np.multiply(np.square(d, out=s), 1 - rho, out=s)
        np.add(np.multiply(a, rho, out=a), s, out=a)
        np.subtract(p, np.multiply(d, lr, out=d), out=p)


def adagrad_update(p: Array, g: Array, state: dict[str, Any], group: dict[str, Any]) -> None:
    """Make a step of Adagrad."""
    lr, eps = float(group["lr"]), float(group["eps"])
    scale = lr / (1 + (_counted(state) - 1) * group["lr_decay"])
    arrays = p, g, state["sum"]
    for p, g, total, _, s in blocks(*arrays, scratch=2, pull=decay_rule(group)):
        # `s` holds intermediate results.
        np.add(total, np.square(g, out=s), out=total)
        np.add(np.sqrt(total, out=s), eps, out=s)
        np.subtract(p, np.multiply(np.divide(g, s, out=s), scale, out=s), out=p)


def rmsprop_update(p: Array, g: Array, state: dict[str, Any], group: dict[str, Any]) -> None:
    """Make a step of RMSprop."""
    lr, eps = float(group["lr"]), float(group["eps"])
    alpha, momentum = float(group["alpha"]), float(group["momentum"])
    _counted(state)
    m = state["grad_avg"] if group["centered"] else None
    b = state["momentum_buffer"] if momentum > 0 else None
    rmsprop(p, g, state["square_avg"], m, b, *decay_rule(group), lr, alpha, 1 - alpha, eps, momentum)


def rprop_update(p: Array, g: Array, state: dict[str, Any], group: dict[str, Any]) -> None:
    """Make a step of Rprop."""
    (shrink, grow), (least, greatest) = group["etas"], group["step_sizes"]
    maximize = group["maximize"]
    _counted(state)
    arrays = p, g, state["prev"], state["step_size"]
    for p, g, last, size, s in blocks(*arrays, scratch=1):
        # `s` holds the products, then the factors; the sign of NaN is 0, as in PyTorch.
        np.multiply(g, last, out=s)
        if maximize:  # the gradient is minus g
            np.negative(s, out=s)
        more, less = s > 0, s < 0
        s.fill(1)
        np.copyto(s, grow, where=more)
        np.copyto(s, shrink, where=less)
        np.multiply(size, s, out=size)
        np.minimum(np.maximum(size, least, out=size), greatest, out=size)
        if maximize:
            np.negative(g, out=last)
        else:
            np.copyto(last, g)
        np.copyto(last, 0, where=less)
        np.copysign(size, last, out=s)
        np.subtract(p, s, out=p, where=np.abs(last) > 0)


def asgd_update(p: Array, g: Array, state: dict[str, Any], group: dict[str, Any]) -> None:
    """Make a step of ASGD."""
    lr, lambd, alpha = (float(group[name]) for name in ("lr", "lambd", "alpha"))
    eta, mu = state["eta"], state["mu"]
    t, rate, share = _counted(state), float(eta), float(mu)
    arrays = p, g, state["ax"]
    for p, g, average, _, s in blocks(*arrays, scratch=2, pull=decay_rule(group)):
        # `s` holds intermediate results.
        np.multiply(p, 1 - lambd * rate, out=p)
        np.subtract(p, np.multiply(g, rate, out=s), out=p)
        if share == 1:
            np.copyto(average, p)
        else:
            np.multiply(np.subtract(p, average, out=s), share, out=s)
            np.add(average, s, out=average)
    eta[...] = lr / (1 + lambd * lr * t) ** alpha
    mu[...] = 1 / max(1, t - group["t0"])


def adafactor_update(p: Array, g: Array, state: dict[str, Any], group: dict[str, Any]) -> None:
    """Make a step of Adafactor."""
    lr, weight_decay, bound = float(group["lr"]), float(group["weight_decay"]), group["d"]
    least, smallest = group["eps"]
    if least is None:
        least = finfo(from_numpy_dtype(p.dtype)).eps
    t = _counted(state)
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


def muon_update(p: Array, g: Array, state: dict[str, Any], group: dict[str, Any]) -> None:
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


def sparse_adam_update(p: Array, g: Array, state: dict[str, Any], group: dict[str, Any]) -> NoReturn:
    """Raise PyTorch's error for a dense gradient."""
    raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
