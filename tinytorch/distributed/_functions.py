"""Batch normalisation by the statistics of several processes' batches."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinytorch.autograd.function import Function, once_differentiable
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.distributed.collectives import all_gather_into_tensor, all_reduce
from tinytorch.kernels import norm
from tinytorch.kernels.activation import widened
from tinytorch.kernels.shape import formatted
from tinytorch.ops.nn.norm import _move


class SyncBatchNorm(Function):
    """Normalises like `batch_norm` in training, over what all processes of a group have, however much each has.

    Backward, the input's gradient depends on all processes' gradients. The parameters' are those of this process: they
    are averaged like all others.
    """

    @staticmethod
    def forward(
        ctx: Any, input: Tensor, weight: Any, bias: Any, running_mean: Any, running_var: Any, eps: float,
        momentum: float, group: Any, size: int,
    ) -> Tensor:  # fmt: skip
        """Return the normalised input; the running statistics move."""
        x = input._array
        values = norm.places(widened(x))
        samples, channels, count = values.shape
        mine, everyone = np.zeros(2 * channels + 1), np.empty((size, 2 * channels + 1))
        if samples * count:
            mine[:] = np.concatenate([*norm.batch_statistics(values), [[samples * count]]], axis=None)
        all_gather_into_tensor(wrap(everyone), wrap(mine), group)
        means, variances, counts = np.split(everyone, [channels, 2 * channels], axis=1)
        total = max(float(counts.sum()), 1.0)
        mean = (counts * means).sum(0) / total
        variance = (counts * (variances + np.square(means - mean))).sum(0) / total
        if running_mean is not None:
            _move(running_mean._array, mean, 0, momentum)
            _move(running_var._array, variance * (total / max(total - 1, 1)), 0, momentum)
        ctx.group, ctx.total = group, total
        ctx.mean = mean.astype(values.dtype).reshape(1, -1)
        ctx.scale = (1 / np.sqrt(variance + eps)).astype(values.dtype).reshape(1, -1)
        ctx.save_for_backward(input, weight)
        factors = norm.factors(ctx.mean, ctx.scale, *[each if each is None else each._array for each in (weight, bias)])
        out: Tensor = wrap(formatted(norm.scaled(values, *factors, x.dtype).reshape(x.shape), x))
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> Any:
        """Return the gradients of input, weight and bias."""
        input, weight = ctx.saved_tensors
        x = input._array

        def across(sums: Any) -> Any:
            all_reduce(wrap(sums), group=ctx.group)
            return sums, ctx.total

        upstream, values = norm.places(widened(g._array)), norm.places(widened(x))
        factor = None if weight is None else widened(weight._array)
        wanted = ctx.needs_input_grad
        found = norm.batch_gradients(upstream, values, factor, ctx.mean, ctx.scale, wanted[0], x.dtype, across)
        grads = [wrap(each) if need else None for each, need in zip(found, wanted[:3], strict=True)]
        if grads[0] is not None:
            grads[0] = grads[0].reshape(x.shape)
        return (*grads, *[None] * 6)
