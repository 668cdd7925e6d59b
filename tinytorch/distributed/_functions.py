"""The autograd function of `SyncBatchNorm`: batch normalisation by the statistics of several processes' batches."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinytorch.autograd.function import Function, once_differentiable
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.distributed.collectives import all_gather_into_tensor, all_reduce
from tinytorch.kernels import norm
from tinytorch.kernels.activation import widened
from tinytorch.kernels.shape import formatted
from tinytorch.ops.nn.norm import _batch_norm_update_stats


class SyncBatchNorm(Function):
    """`batch_norm` in training over the batches of all processes of a group, whose sizes may differ.

    The input's gradient depends on the gradients of all processes. The gradients of weight and bias are those of this
    process; `DistributedDataParallel` averages them like those of all parameters.
    """

    @staticmethod
    def forward(
        ctx: Any, input: Tensor, weight: Any, bias: Any, running_mean: Any, running_var: Any, eps: float,
        momentum: float, group: Any, size: int,
    ) -> Tensor:  # fmt: skip
        """Return the normalised input, and update the running statistics."""
        x = input._array
        values = norm.places(widened(x))
        samples, channels, count = values.shape
        local, gathered = np.zeros(2 * channels + 1), np.empty((size, 2 * channels + 1))
        if samples * count:
            local[:] = np.concatenate([*norm.batch_statistics(values), [[samples * count]]], axis=None)
        all_gather_into_tensor(wrap(gathered), wrap(local), group)
        means, variances, counts = np.split(gathered, [channels, 2 * channels], axis=1)
        total = max(float(counts.sum()), 1.0)
        mean = (counts * means).sum(0) / total
        variance = (counts * (variances + np.square(means - mean))).sum(0) / total
        if running_mean is not None:
            _batch_norm_update_stats(running_mean._array, mean, 0, momentum)
            _batch_norm_update_stats(running_var._array, variance * (total / max(total - 1, 1)), 0, momentum)
        ctx.group, ctx.total = group, total
        ctx.mean = mean.astype(values.dtype).reshape(1, -1)
        ctx.scale = (1 / np.sqrt(variance + eps)).astype(values.dtype).reshape(1, -1)
        ctx.save_for_backward(input, weight)
        parameters = [p if p is None else p._array for p in (weight, bias)]
        factors = norm.factors(ctx.mean, ctx.scale, *parameters)
        return wrap(formatted(norm.scaled(values, *factors, x.dtype).reshape(x.shape), x))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> Any:
        """Return the gradients of input, weight and bias."""
        input, weight = ctx.saved_tensors
        x = input._array

        def over_processes(sums: Any) -> Any:
            all_reduce(wrap(sums), group=ctx.group)
            return sums, ctx.total

        upstream, values = norm.places(widened(g._array)), norm.places(widened(x))
        factor = None if weight is None else widened(weight._array)
        needed = ctx.needs_input_grad
        arrays = norm.gradients(upstream, values, factor, ctx.mean, ctx.scale, needed[0], x.dtype, over_processes)
        grads = [wrap(array) if need else None for array, need in zip(arrays, needed[:3], strict=True)]
        if grads[0] is not None:
            grads[0] = grads[0].reshape(x.shape)
        return (*grads, *[None] * 6)
