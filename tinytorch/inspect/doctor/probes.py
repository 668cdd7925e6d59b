"""What the results of a model depend on, found in a copy of the process: other rows, places in the batch, the mode."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from tinytorch.autograd.grad_mode import no_grad
from tinytorch.autograd.profiler import tensors_in
from tinytorch.core.mode import Event, on
from tinytorch.core.tensor import Tensor
from tinytorch.inspect.calls import Call, Listener
from tinytorch.inspect.doctor.limits import LIMITS
from tinytorch.inspect.doctor.place import Place, here, is_users
from tinytorch.nn.modules.batchnorm import _BatchNorm
from tinytorch.nn.modules.module import Module
from tinytorch.ops.random import manual_seed

__all__ = ["future_compared", "modes_compared", "rows_compared"]


def _row(row: str, place: Place, name: str, path: str, **words: Any) -> dict[str, Any]:
    """Return what is wrong: a row of the causes, the line, and the words for it."""
    return {"row": row, "place": place, "words": {"what": name.strip("_") + f" in {path}" * bool(path), **words}}


class _Results(Listener):
    """Keeps the results of all ops of a call, and whether one had a matrix of all pairs among its inputs."""

    def __init__(self, watch: Any, count: int) -> None:
        self.watch, self.count = watch, count
        self.seen: list[tuple[str, Place, str, Any, bool]] = []
        self.random = False
        self.dropped: Place | None = None  # the line at which dropout drew numbers

    @on(Event.FILLED)
    def _filled(self, **facts: Any) -> None:
        """Notice random numbers."""
        self.random = True
        frame = sys._getframe(1)
        while frame.f_back is not None and not is_users(frame):
            if "dropout" in frame.f_code.co_name:
                self.dropped = self.dropped or here()
            frame = frame.f_back

    def listen(self, call: Call) -> Iterator[None]:
        """Keep a copy of the result of a call."""
        yield
        watch = self.watch
        pairs = any(list(x.shape).count(self.count) > 1 for x in call.inputs if x.is_leaf and x.ndim < 4)
        for each in call.outputs[:1]:
            if each.numel() >= self.count and not each.is_sparse:
                owner = watch.stack[-1] if watch.stack else None
                place = watch.line_of(here(), owner)
                self.seen.append((call.name, place, watch.path(), each._array.copy(), pairs))


def _run(watch: Any, module: Module, args: Any, kwargs: Any, count: int, seed: int = 0) -> tuple[Any, _Results]:
    manual_seed(seed)
    results = _Results(watch, count)
    with no_grad(), results:
        out = module(*args, **kwargs)
    first = next((x._array for x in tensors_in(out) if x.numel() >= count), None)
    return first, results


def _with_rows(args: Any, count: int, change: Any) -> Any:
    return tuple([change(x) if isinstance(x, Tensor) and x.ndim and x.shape[0] == count else x for x in args])


def rows_compared(watch: Any, module: Module, args: Any, kwargs: Any) -> dict[str, Any] | None:
    """Return what is wrong with how a model treats the rows of a batch, and where; called in a copy of the process."""
    watch.silence()
    count = args[0].shape[0]
    if any(not isinstance(x, Tensor) or not x.ndim or x.shape[0] != count for x in (*args, *kwargs.values())):
        return None
    module.eval()
    rows = args[0]._array.reshape(count, -1)
    other = next((k for k in range(1, count) if (rows[k] != rows[0]).any()), None)
    if other is None:
        return None

    def first_replaced(x: Tensor) -> Tensor:
        x = x.detach().clone()
        x[0] = x[other]
        return x

    args = _with_rows(args, count, lambda x: x.detach())
    plain, a = _run(watch, module, args, kwargs, count)
    if plain is None or not np.isfinite(plain).all() or plain.shape[0] != count or list(plain.shape).count(count) > 1:
        return None
    if any(x.dtype.kind == "f" and np.isnan(x).any() for *_, x, _ in a.seen):
        return None
    changed, b = _run(watch, module, _with_rows(args, count, first_replaced), kwargs, count)
    flat = (plain != changed).reshape(count, -1)
    others = float(flat[1:].any(1).mean())
    names = [each[0] for each in a.seen]
    blind = not flat.any()  # (a layer may mix what is the same in all samples, and lose the rest)
    if (blind or others > LIMITS["rows that change with another"]) and names == [each[0] for each in b.seen]:
        for (name, place, path, x, pairs), (*_, y, _) in zip(a.seen, b.seen, strict=True):
            if x.shape == y.shape and float((x != y).mean()) > LIMITS["rows that change with another"]:
                share = 1.0 if blind else others
                return None if pairs else _row("samples-mixed/rows", place, name, path, share=share)
        return _unused(a, b) if blind and args[0].numel() > count else None
    if a.random or others or blind:
        return None
    rolled, c = _run(watch, module, _with_rows(args, count, lambda x: x.roll(1, 0)), kwargs, count)
    if _near(np.roll(plain, 1, 0), rolled) or names != [each[0] for each in c.seen]:
        return None
    for (name, place, path, x, pairs), (*_, y, _) in zip(a.seen, c.seen, strict=True):
        if x.shape == y.shape and x.dtype.kind == "f" and not _near(np.sort(x, None), np.sort(y, None)):
            return None if pairs else _row("samples-mixed/places", place, name, path)
    return None


def _unused(a: _Results, b: _Results) -> dict[str, Any] | None:
    """Return the op that loses all that a result depended on: before it results differ, from it on none does."""
    same = [x[3].shape == y[3].shape and np.array_equal(x[3], y[3]) for x, y in zip(a.seen, b.seen, strict=False)]
    last = max([k for k, equal in enumerate(same) if not equal], default=-1)
    if len(a.seen) != len(b.seen) or last + 1 >= len(same) or last < 0:
        return None
    name, place, path, *_ = a.seen[last + 1]
    return _row("input-unused", place, name, path)


def future_compared(watch: Any, module: Module, args: Any, kwargs: Any) -> dict[str, Any] | None:
    """Return what is wrong if the predictions of the next tokens depend on these; called in a copy of the process."""
    watch.silence()
    module.eval()
    x = args[0].detach().clone()
    half = x.shape[1] // 2
    plain, a = _run(watch, module, (x, *args[1:]), kwargs, x.shape[0])
    x = x.clone()
    x[:, half:] = x[:, half:].roll(1, 0)
    changed, b = _run(watch, module, (x, *args[1:]), kwargs, x.shape[0])
    if plain is None or plain.shape != changed.shape or a.random or plain.size % (x.shape[0] * x.shape[1]):
        return None
    rows = [each.reshape(*x.shape[:2], -1)[:, :half] for each in (plain, changed)]
    flat = plain.shape[0] == x.shape[0] * x.shape[1]
    if not (flat or plain.shape[:2] == tuple(x.shape[:2])) or _near(*rows):
        return None
    for (name, place, path, before, _), (*_, after, _) in zip(a.seen, b.seen, strict=False):
        whole = before.shape == after.shape and before.ndim > 2 and before.shape[-3:-1] == tuple(x.shape)
        if whole and not _near(before[..., :half, :], after[..., :half, :]):
            return _row("future-seen", place, name, path)
    return None


def _near(x: Any, y: Any) -> bool:
    size = max(float(np.abs(x).max()), 1e-12)
    return bool(np.abs(x.astype(np.float64) - y).max() < LIMITS["rounding"] * size)


def _apart(a: Any, b: Any) -> float:
    """Return by which part of their size two arrays differ."""
    if a is None or b is None or a.shape != b.shape:
        return float("nan")
    return float(np.abs(a.astype(np.float64) - b).mean() / max(np.abs(a).mean(), 1e-12))


def modes_compared(watch: Any, module: Module, args: Any, kwargs: Any) -> dict[str, Any]:
    """Return how passes over the same batch differ, in training mode and in evaluation mode.

    `acts` says whether training mode changes anything, `always` is the line at which dropout acts in both modes.
    """
    watch.silence()
    means = [x for each in module.modules() if isinstance(each, _BatchNorm) and (x := each.running_mean) is not None]
    before = [x._array.copy() for x in means]
    module.train()
    a, drawn = _run(watch, module, args, kwargs, 1)
    moved = max([float(np.abs(x - y._array).max()) for x, y in zip(before, means, strict=True)], default=0.0)
    b, _ = _run(watch, module, args, kwargs, 1, 1)
    module.eval()
    c, still = _run(watch, module, args, kwargs, 1)
    d, _ = _run(watch, module, args, kwargs, 1, 1)
    return {
        "train": _apart(a, b), "eval": _apart(c, d), "between": _apart(a, c), "moved": moved, "always": still.dropped,
        "acts": moved > 0 or (drawn.dropped is not None and still.dropped is None),
    }  # fmt: skip
