"""Whether the rows of a batch depend on each other, or on their places in it: found by changing one, and the order."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinytorch.autograd.grad_mode import no_grad
from tinytorch.core.mode import DispatchMode
from tinytorch.core.tensor import Tensor
from tinytorch.inspect.doctor.limits import LIMITS
from tinytorch.inspect.doctor.place import Place, here
from tinytorch.inspect.doctor.trace import name_of, tensors_of
from tinytorch.nn.modules.module import Module
from tinytorch.ops.random import manual_seed

__all__ = ["rows_compared"]


class _Results(DispatchMode):
    """Keeps the results of all ops of a call, and whether one had a matrix of all pairs among its inputs."""

    def __init__(self, watch: Any, count: int) -> None:
        self.watch, self.count = watch, count
        self.seen: list[tuple[str, Place, str, Any, bool]] = []
        self.random = False

    def filled(self, x: Any, kernel: Any, args: tuple[Any, ...]) -> None:
        """Notice random numbers."""
        self.random = True

    def call(self, op: Any, caller: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run an op and keep a copy of its result."""
        out = caller(*args, **kwargs)
        watch = self.watch
        pairs = any(list(x.shape).count(self.count) > 1 for x in tensors_of(args) if x.is_leaf and x.ndim < 4)
        for each in list(tensors_of(out))[:1]:
            if each.numel() >= self.count and not each.is_sparse:
                owner = watch.stack[-1] if watch.stack else None
                place = watch.line_of(here(), owner)
                self.seen.append((name_of(op), place, watch.path(), each._array.copy(), pairs))
        return out


def _run(watch: Any, module: Module, args: Any, kwargs: Any, count: int) -> tuple[Any, _Results]:
    manual_seed(0)
    results = _Results(watch, count)
    with no_grad(), results:
        out = module(*args, **kwargs)
    first = next((x._array for x in tensors_of(out) if x.numel() >= count), None)
    return first, results


def _with_rows(args: Any, count: int, change: Any) -> Any:
    return tuple([change(x) if isinstance(x, Tensor) and x.ndim and x.shape[0] == count else x for x in args])


def rows_compared(watch: Any, module: Module, args: Any, kwargs: Any) -> dict[str, Any] | None:
    """Return what is wrong with how a model treats the rows of a batch, and where; called in a copy of the process."""
    for receivers in watch.events.values():
        receivers.clear()
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
    changed, b = _run(watch, module, _with_rows(args, count, first_replaced), kwargs, count)
    flat = (plain != changed).reshape(count, -1)
    others = float(flat[1:].any(1).mean())
    names = [each[0] for each in a.seen]
    blind = not flat.any()  # (a layer may mix what is the same in all samples, and lose the rest)
    if (blind or others > LIMITS["rows that change with another"]) and names == [each[0] for each in b.seen]:
        for (name, place, path, x, pairs), (*_, y, _) in zip(a.seen, b.seen, strict=True):
            if x.shape == y.shape and float((x != y).mean()) > LIMITS["rows that change with another"]:
                return None if pairs else {
                    "place": place,
                    "text": f"{name.strip('_')}{' in ' + path if path else ''} mixes the samples of a batch: the "
                    "prediction for one depends on the others.",
                    "proof": "with one sample replaced, its own output stays the same, but others change in this layer"
                    if blind else f"with one sample replaced, the outputs of {others:.0%} of the others changed, too",
                }  # fmt: skip
        return None
    if a.random or others or blind:
        return None
    rolled, c = _run(watch, module, _with_rows(args, count, lambda x: x.roll(1, 0)), kwargs, count)
    if _near(np.roll(plain, 1, 0), rolled) or names != [each[0] for each in c.seen]:
        return None
    for (name, place, path, x, pairs), (*_, y, _) in zip(a.seen, c.seen, strict=True):
        if x.shape == y.shape and x.dtype.kind == "f" and not _near(np.sort(x, None), np.sort(y, None)):
            return None if pairs else {
                "place": place,
                "text": f"The prediction for a sample depends on its place in the batch, by {name.strip('_')}"
                f"{' in ' + path if path else ''}.",
                "proof": "the same samples in another order get other outputs",
            }  # fmt: skip
    return None


def _near(x: Any, y: Any) -> bool:
    size = max(float(np.abs(x).max()), 1e-12)
    return bool(np.abs(x.astype(np.float64) - y).max() < LIMITS["rounding"] * size)
