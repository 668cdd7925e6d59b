"""`call_for_per_sample_grads`: separate gradients for the samples of a batch."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tinytorch.autograd.function import Function
from tinytorch.core.tensor import Tensor
from tinytorch.nn.modules.batchnorm import _NormBase
from tinytorch.nn.modules.module import Module
from tinytorch.nn.utils._functional_call import functional_call
from tinytorch.ops.create import zeros_like
from tinytorch.ops.join import cat
from tinytorch.ops.shape import narrow

__all__ = ["call_for_per_sample_grads"]


class _ForSample(Function):
    """The identity on a parameter; its backward adds the gradient of one sample to `grad_sample`."""

    @staticmethod
    def forward(ctx: Any, parameter: Tensor, index: int, count: int, scale: int) -> Tensor:
        ctx.settings = parameter, index, count, scale
        return parameter.detach()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        parameter, index, count, scale = ctx.settings
        if getattr(parameter, "grad_sample", None) is None:
            zero = zeros_like(parameter, requires_grad=False).unsqueeze(0)
            parameter.grad_sample = zero.repeat(count, *[1] * parameter.ndim)
        parameter.grad_sample[index] += g * scale
        return None, None, None, None


def _map_tensors(function: Callable[[Tensor], Any], tree: Any) -> Any:
    if isinstance(tree, (list, tuple)):
        return type(tree)([_map_tensors(function, item) for item in tree])
    if isinstance(tree, dict):
        return {key: _map_tensors(function, item) for key, item in tree.items()}
    return function(tree) if isinstance(tree, Tensor) else tree


def call_for_per_sample_grads(
    module: Module, *, batch_size: int | None = None, loss_reduction: str = "sum", batch_first: bool = True
) -> Callable[..., Any]:
    """Return a function that calls a module so that backward stores per-sample gradients in `grad_sample`.

    The parameters' `grad_sample` has the shape (batch, *shape of the parameter); their `grad` stays None. It is
    not vectorized: the module runs once per sample.

    The number of samples is by default that of the tensors among the arguments, in the first dimension, or in the
    second without `batch_first`. With `loss_reduction="mean"` the gradients are multiplied by it.

    Example:
        >>> from tinytorch.nn.utils._per_sample_grad import call_for_per_sample_grads
        >>> layer = torch.nn.Linear(2, 1)
        >>> call_for_per_sample_grads(layer)(torch.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
        >>> layer.weight.grad_sample
        tensor([[[1., 2.]],
                [[3., 4.]]])
    """
    if loss_reduction not in ("sum", "mean"):
        raise RuntimeError(f"Expected loss_reduction argument to be sum or mean, got {loss_reduction}")
    if not isinstance(module, Module):
        raise RuntimeError(f"Module passed must be nn.Module, got {type(module).__name__}")
    if batch_size is not None and not isinstance(batch_size, int):
        raise RuntimeError(f"Batch size passed must be None or an integer, got {type(batch_size).__name__}")
    if batch_size is not None and batch_size < 1:
        raise RuntimeError(f"Batch size must be positive, got {batch_size}")
    for parameter in module.parameters():
        if getattr(parameter, "grad_sample", None) is not None:
            raise RuntimeError(
                "Current Expanded Weights accumulates the gradients, which will be incorrect for multiple calls "
                f"without clearing gradients. Please clear out the grad_sample parameter of {parameter}"
            )
    dim = 0 if batch_first else 1

    def count_samples(args: Any) -> int:
        sizes: list[int] = []
        _map_tensors(lambda x: sizes.append(x.shape[dim]), args)
        if not sizes and batch_size is None:
            raise RuntimeError(
                "Unable to find a tensor in the passed args and kwargs. They may not be pytree-able and so "
                "ExpandedWeights cannot compute the batch size from the inputs. Please specify it explicitly"
            )
        count = sizes[0] if batch_size is None else batch_size
        for other in sizes:
            if other != count and batch_size is None:
                raise RuntimeError(
                    f"When computing batch size, found at least one input with batch size {count} and one with batch "
                    f"size {other}. Please specify it explicitly using the batch size kwarg in "
                    "call_for_per_sample_grads"
                )
            if other != count:
                raise RuntimeError(
                    "Expected ExpandedWeights to have batch size matching input but got input batch size of "
                    f"{other} with ExpandedWeight of batch size {count}"
                )
        return count

    @functools.wraps(module.forward)
    def call(*args: Any, **kwargs: Any) -> Any:
        count = count_samples((args, kwargs))
        if any(isinstance(layer, _NormBase) and layer.training for layer in module.modules()):
            raise RuntimeError("Expanded Weights encountered but cannot handle function batch_norm")
        results = []
        for k in range(count):
            parameters = {
                name: _ForSample.apply(p, k, count, count if loss_reduction == "mean" else 1) if p.requires_grad else p
                for name, p in module.named_parameters()
            }
            sample = _map_tensors(functools.partial(narrow, dim=dim, start=k, length=1), (args, kwargs))
            results.append(functional_call(module, parameters, *sample))
        if isinstance(results[0], Tensor):
            return cat(results, dim)
        return type(results[0])(cat(parts, dim) for parts in zip(*results, strict=True))

    return call
