"""`LBFGS`: limited-memory BFGS, a quasi-Newton method, with an optional line search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinytorch.autograd.grad_mode import enable_grad, no_grad
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.kernels.complex import reals
from tinytorch.optim.optimizer import Optimizer, Params, check, pick

__all__ = ["LBFGS"]

#: Constants of the Wolfe conditions: `SUFFICIENT_DECREASE` of the first (Armijo), `CURVATURE` of the second.
SUFFICIENT_DECREASE, CURVATURE = 1e-4, 0.9


class LBFGS(Optimizer):
    """Limited-memory BFGS: steps along `-H @ g`, where `H` is estimated from the last steps and gradients.

    `step` makes up to `max_iter` iterations, and calls its closure several times. With
    `line_search_fn="strong_wolfe"` the length of an iteration's move satisfies the strong Wolfe conditions; without
    a line search it is `lr` (less in the first). Only one parameter group is supported.

    A step ends when no element of the gradient is larger than `tolerance_grad`, or no parameter, nor the loss, changes
    by more than `tolerance_change`; and after `max_eval` calls of the closure, by default 5/4 of `max_iter`. `H` is
    estimated from `history_size` moves. `lr` is the first guess of the line search.

    Example:
        >>> w = torch.tensor([3.0, -4.0], requires_grad=True)
        >>> optimizer = torch.optim.LBFGS([w], line_search_fn="strong_wolfe")
        >>> def closure():
        ...     optimizer.zero_grad()
        ...     loss = ((w - 1) ** 2 * torch.tensor([1.0, 5.0])).sum()
        ...     loss.backward()
        ...     return loss
        >>> loss = optimizer.step(closure)  # before the step
        >>> loss, w.detach().allclose(torch.ones(2))
        (tensor(129., grad_fn=<SumBackward0>), True)

    Source:
        Nocedal and Wright, Numerical Optimization, 2nd edition, algorithms 7.4 and 7.5 (two loops),
        3.5 and 3.6 and equation 3.59 (line search).
    """

    __traced_as__ = "refused"  # by `torch.compile`: a step calls a closure

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        check(lr=lr)
        if max_eval is None:
            max_eval = max_iter * 5 // 4
        names = "lr max_iter max_eval tolerance_grad tolerance_change history_size line_search_fn"
        super().__init__(params, pick(locals(), names))
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    @no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Make up to `max_iter` iterations; return the loss before the first. `closure` is as for `Optimizer.step`.

        Example:
            >>> x = torch.tensor([3.0], requires_grad=True)
            >>> optimizer = torch.optim.LBFGS([x], lr=1.0)
            >>> def closure():
            ...     optimizer.zero_grad()
            ...     loss = (x - 1).square().sum()
            ...     loss.backward()
            ...     return loss
            >>> optimizer.step(closure)
            tensor(4., grad_fn=<SumBackward0>)
            >>> x.detach()
            tensor([1.])
        """
        if closure is None:
            raise TypeError("LBFGS.step() missing 1 required positional argument: 'closure'")
        if len(self.param_groups) != 1:
            raise AssertionError(f"Expected exactly one param_group, but got {len(self.param_groups)}")
        errors = np.geterr()

        def evaluated() -> Any:
            with enable_grad(), np.errstate(**errors):  # the user's function, in the user's state
                return closure()

        with np.errstate(all="ignore"):
            return self._minimize(evaluated)

    def _minimize(self, closure: Callable[[], Any]) -> Any:
        (group,) = self.param_groups
        params = group["params"]
        rate, tolerance = group["lr"], group["tolerance_change"]
        lr = float(rate) if isinstance(rate, Tensor) else rate
        search = group["line_search_fn"]
        state = self.state[params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)

        def evaluate() -> tuple[Any, Any]:
            state["func_evals"] += 1
            loss = closure()
            return loss, _flat_gradient(params)

        before = state["func_evals"]
        first, g = evaluate()
        loss = _value(first)
        if not g.size:
            raise RuntimeError("max(): Expected reduction dim to be specified for input.numel() == 0")
        if _max_abs(g) <= group["tolerance_grad"]:
            return first

        history = _History(state, group["history_size"])
        d = _array(state.get("d"))
        t: Any = _number(state.get("t"))
        last_g, last_loss = _array(state.get("prev_flat_grad")), state.get("prev_loss")
        for iteration in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            if state["n_iter"] == 1:
                history.clear()
                d = -g
                t = min(1.0, 1.0 / np.abs(g).sum()) * lr
            else:
                history.add(g - last_g, d * t)
                d = history.direction(g)
                t = lr
            last_g, last_loss = g.copy(), loss
            slope = g @ d
            if slope > -tolerance:
                break
            small = False
            if search is not None:
                if search != "strong_wolfe":
                    raise RuntimeError("only 'strong_wolfe' is supported")
                start = [p._array.copy() for p in params]

                def at(t: Any, start: list[Any] = start, d: Any = d) -> _Point:
                    _move(params, d, t)
                    loss, g = evaluate()
                    _restore(params, start)
                    return _Point(t, _value(loss), g, g @ d)

                most = group["max_eval"] - (state["func_evals"] - before)
                point = strong_wolfe(at, _Point(0, loss, g, slope), t, _max_abs(d), most)
                loss, g, t = point.loss, point.g, point.t
                _move(params, d, t)
                small = _max_abs(g) <= group["tolerance_grad"]
            else:
                _move(params, d, t)
                if iteration != group["max_iter"]:
                    # After the last iteration the next call of `step` evaluates the loss.
                    new, g = evaluate()
                    loss = _value(new)
                    small = _max_abs(g) <= group["tolerance_grad"]
            if (
                small
                or state["func_evals"] - before >= group["max_eval"]
                or _max_abs(d * t) <= tolerance
                or abs(loss - last_loss) < tolerance
            ):
                break
        state["d"] = wrap(d)
        if isinstance(rate, Tensor):  # then `t` is the rate or computed from it
            alone = search is None and state["n_iter"] > 1
            t = wrap(np.asarray(t, (rate if alone else params[0])._array.dtype))
        state["t"] = wrap(np.asarray(t, g.dtype)) if isinstance(t, np.generic) else t
        history.save()
        state["prev_flat_grad"] = wrap(last_g)
        state["prev_loss"] = last_loss
        return first


class _History:
    """The last changes `y` of the gradient and `s` of the parameters, oldest first."""

    def __init__(self, state: dict[str, Any], size: int) -> None:
        self.size = size
        self.ys, self.steps = (list(map(_array, state.get(k) or ())) for k in ("old_dirs", "old_stps"))
        self.inverses = [_array(value)[()] for value in state.get("ro") or ()]
        scale = state.get("H_diag", 1)
        self.scale: Any = _number(scale)
        self.state = state

    def clear(self) -> None:
        self.ys, self.steps, self.inverses, self.scale = [], [], [], 1

    def add(self, y: Any, s: Any) -> None:
        """Add a move, if the curvature along it is positive."""
        ys = y @ s
        if ys > 1e-10:
            if len(self.ys) == self.size:
                for values in (self.ys, self.steps, self.inverses):
                    values.pop(0)
            self.ys.append(y)
            self.steps.append(s.astype(y.dtype, copy=False))
            self.inverses.append(1 / ys)
            self.scale = ys / (y @ y)

    def direction(self, g: Any) -> Any:
        """Return `-H @ g`, by the two-loop recursion over the history."""
        saved = self.state.setdefault("al", [None] * self.size)
        q = -g
        pairs = list(zip(self.ys, self.steps, self.inverses, strict=True))
        factors = []
        for y, s, inverse in reversed(pairs):
            factors.append((s @ q) * inverse)
            q -= factors[-1] * y
        factors.reverse()
        q *= self.scale
        for (y, s, inverse), factor in zip(pairs, factors, strict=True):
            q += (factor - (y @ q) * inverse) * s
        saved[: len(factors)] = [wrap(np.asarray(factor, q.dtype)) for factor in factors]
        return q

    def save(self) -> None:
        """Write the history to the optimizer's state."""
        state = self.state
        state["old_dirs"] = [wrap(y) for y in self.ys]
        state["old_stps"] = [wrap(s) for s in self.steps]
        state["ro"] = [wrap(np.asarray(inverse)) for inverse in self.inverses]
        scale = self.scale
        state["H_diag"] = wrap(np.asarray(scale)) if isinstance(scale, np.generic) else scale


@dataclass(eq=False)
class _Point:
    """A point along the search direction: distance, loss, gradient and directional derivative."""

    t: Any
    loss: float
    g: Any
    slope: Any


def strong_wolfe(at: Callable[[Any], _Point], start: _Point, t: Any, size: float, most: int) -> _Point:
    """Return a point along a direction that satisfies the strong Wolfe conditions, or else the best one evaluated.

    `at` evaluates the point at a distance, first at the guess `t`, and then up to `most` times; `start` is the point at
    0, and `size` the largest absolute element of the direction.
    """

    def too_high(point: _Point) -> bool:
        return bool(point.loss > start.loss + SUFFICIENT_DECREASE * point.t * start.slope)

    def flat(point: _Point) -> bool:
        return bool(abs(point.slope) <= -CURVATURE * start.slope)

    # Bracketing: move forward until an acceptable point lies between two points.
    last, point = start, at(t)
    tries = 0
    bracket = None
    while tries < most:
        if too_high(point) or (tries > 1 and point.loss >= last.loss):
            bracket = [last, point]
            break
        if flat(point):
            return point
        if point.slope >= 0:
            bracket = [last, point]
            break
        lower, upper = point.t + 0.01 * (point.t - last.t), point.t * 10
        last, point = point, at(_cubic_minimum(last, point, lower, upper))
        tries += 1
    if bracket is None:
        bracket = [start, point]

    # Zoom: shrink the bracket. `low` is the end with the lower loss.
    low, high = bracket if bracket[0].loss <= bracket[1].loss else bracket[::-1]
    stuck = False
    while tries < most and not abs(high.t - low.t) * size < 1e-9:
        left, right = min(low.t, high.t), max(low.t, high.t)
        # The ends in the order of their evaluation, as in algorithm 3.6.
        t = _cubic_minimum(bracket[0], bracket[1], left, right)
        # Twice close to an end, or beyond it: move a tenth of the way in, so that the bracket shrinks.
        margin = 0.1 * (right - left)
        if min(right - t, t - left) < margin:
            if stuck or t >= right or t <= left:
                t = right - margin if abs(t - right) < abs(t - left) else left + margin
                stuck = False
            else:
                stuck = True
        else:
            stuck = False
        point = at(t)
        tries += 1
        if too_high(point) or point.loss >= low.loss:
            bracket[bracket.index(high)] = point
            low, high = bracket if bracket[0].loss <= bracket[1].loss else bracket[::-1]
            continue
        if flat(point):
            return point
        where = bracket.index(low)
        if point.slope * (high.t - low.t) >= 0:
            bracket[1 - where] = high = low
        bracket[where] = low = point
    return low


def _cubic_minimum(one: _Point, two: _Point, lower: Any, upper: Any) -> Any:
    """Return the minimum, within bounds, of the cubic through two points with their slopes."""
    left, right = (one, two) if one.t <= two.t else (two, one)
    a = one.slope + two.slope - 3 * (one.loss - two.loss) / (one.t - two.t)
    square = a**2 - one.slope * two.slope
    if not square >= 0:
        return (lower + upper) / 2
    b = np.sqrt(square)
    width = right.t - left.t
    t = right.t - width * ((right.slope + b - a) / (right.slope - left.slope + 2 * b))
    return min(max(t, lower), upper)


def _flat_gradient(params: list[Tensor]) -> Any:
    """Return the gradients as one flat array, with zeros for missing ones."""
    gradients = [p._grad.to_dense() if p._grad is not None and p._grad.is_sparse else p._grad for p in params]
    return np.concatenate([
        reals(np.zeros_like(p._array) if g is None else g._array).reshape(-1)
        for p, g in zip(params, gradients, strict=True)
    ])  # fmt: skip


def _move(params: list[Tensor], d: Any, t: Any) -> None:
    start = 0
    for p in params:
        array = reals(p._array)
        array += (d[start : start + array.size] * t).reshape(array.shape)
        p._bump()
        start += array.size


def _restore(params: list[Tensor], arrays: list[Any]) -> None:
    for p, array in zip(params, arrays, strict=True):
        p._array[...] = array
        p._bump()


def _max_abs(array: Any) -> float:
    return float(np.abs(array).max())


def _value(loss: Any) -> float:
    return float(loss.detach() if isinstance(loss, Tensor) else loss)


def _array(value: Any) -> Any:
    return value._array if isinstance(value, Tensor) else value


def _number(value: Any) -> Any:
    return value._array[()] if isinstance(value, Tensor) else value
