"""Normalisation by the statistics of batches, instances and groups of channels.

Each op has one joint formula for input, weight and bias. The mean and scale that it takes from the forward pass
are a cache: under `create_graph` the formula is Tensor code that recomputes them from the input.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from tinytorch.core.mode import Event, Stop, local
from tinytorch.core.op import op
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.core.view import count_write
from tinytorch.kernels import dtypes, norm
from tinytorch.kernels import layer_norm as layer_norms
from tinytorch.kernels.checks import check_floating
from tinytorch.kernels.silence import quietly
from tinytorch.ops.arguments import op_of
from tinytorch.ops.batch_rules import per_example
from tinytorch.ops.register import public


def _wide(x: Tensor) -> Tensor:
    """Return 16-bit floats as float32, differentiably."""
    return x.float() if x._array.dtype.itemsize == 2 else x


_OF_GRADIENTS: dict[str, Any] = {"outputs": 3, "g": None, "x": None, "weight": None, "mean": None, "scale": None}
_batch_norm_grad = op_of(norm.batch_norm_grad, batch="channels", name="NativeBatchNormBackward", **_OF_GRADIENTS)
_group_norm_grad = op_of(norm.group_norm_grad, batch="channels", name="NativeGroupNormBackward", **_OF_GRADIENTS)
_layer_norm_grad = op_of(
    layer_norms.layer_norm_grad, name="NativeLayerNormBackward", batch=lambda *given: _of_batch(*given), **_OF_GRADIENTS
)
_rms_norm_grad = op_of(
    layer_norms.rms_norm_grad, name="RmsNormBackward", outputs=2, g=None, x=None, weight=None, scale=None,
    batch=lambda g, needs, x, count, weight, scale: _of_batch(g, needs, x, count, weight, None, scale),
)  # fmt: skip


def _chosen(needs: tuple[bool, ...], grads: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
    x, weight, bias = [grad if need else None for grad, need in zip(grads, needs, strict=True)]
    return x, weight, bias


def _channelwise(weight: Tensor, ndim: int) -> Tensor:
    """Return a weight (C,) in a shape that broadcasts with (N, C, *)."""
    return weight.reshape([1, weight._array.size, *[1] * (ndim - 2)])


def _from_normal(
    g: Tensor, normal: Tensor, scale: Tensor, weight: Tensor | None, dims: Sequence[int], needs: tuple[bool, ...]
) -> tuple[Any, Any, Any]:
    """Return the gradients in Tensor code, given the normalised input and 1 / sqrt(variance + eps).

    `normal` has the shape of `g`, (N, C, *), or the channels in groups; `dims` are those of the statistics.
    """
    grad = grad_weight = grad_bias = None
    ndim = g.ndim
    samples = [0, *range(2, ndim)]
    if needs[0]:
        slope = (g if weight is None else g * _channelwise(weight, ndim)).reshape(normal.shape)
        middle = normal * (slope * normal).mean(dims, keepdim=True)
        grad = ((slope - slope.mean(dims, keepdim=True) - middle) * scale).reshape(g.shape)
    if needs[1]:
        grad_weight = (g * normal.reshape(g.shape)).sum(samples)
    if needs[2]:
        grad_bias = g.sum(samples)
    return grad, grad_weight, grad_bias


def _normalised(x: Tensor, dims: Sequence[int], eps: float) -> tuple[Tensor, Tensor]:
    difference = x - x.mean(dims, keepdim=True)
    spread = (difference * difference).mean(dims, keepdim=True).add(eps)
    scale = (spread if eps else spread.masked_fill(spread == 0, np.inf)).rsqrt()
    return difference * scale, scale


# Batch normalisation ------------------------------------------------------------------------------


def _batch_rule(g: Any, needs: tuple[bool, ...], x: Tensor, weight: Any, eps: float, mean: Any, scale: Any) -> Any:
    upstream = g[0]
    if mean is not None:
        return _chosen(needs, _batch_norm_grad(upstream, x, weight, mean, scale, needs[0]))
    dims = [0, *range(2, x.ndim)]
    normal, differentiable = _normalised(_wide(x), dims, eps)
    return _from_normal(_wide(upstream), normal, differentiable, weight, dims, needs)


_by_batch = op_of(
    norm.by_batch,
    batch="channels",
    joint=_batch_rule,
    inputs=("x", "weight", "bias"),
    outputs=3,
    nondiff=(1, 2),
    residuals=("mean", "scale"),
    name="NativeBatchNorm",
)


def _given_rule(
    g: Tensor, needs: tuple[bool, ...], x: Tensor, weight: Any, mean: Tensor, variance: Tensor, eps: float
) -> Any:
    grad = grad_weight = grad_bias = None
    samples = [0, *range(2, x.ndim)]
    scale = (_wide(variance) + eps).rsqrt()
    upstream = _wide(g)
    if needs[0]:
        grad = upstream * _channelwise(scale if weight is None else scale * weight, x.ndim)
    if needs[1]:
        difference = _wide(x) - _channelwise(_wide(mean), x.ndim)
        grad_weight = (upstream * difference).sum(samples) * scale
    if needs[2]:
        grad_bias = upstream.sum(samples)
    return grad, grad_weight, grad_bias, None, None


_by_given = op_of(
    norm.by_given,
    batch="channels",
    joint=_given_rule,
    inputs=("x", "weight", "bias", "mean", "variance"),
    mean=None,
    variance=None,
    name="NativeBatchNorm",
)


def _check_size(name: str, tensor: Tensor | None, channels: int) -> None:
    if tensor is not None and tensor._array.size != channels:
        raise RuntimeError(f"{name} should contain {channels} elements not {tensor._array.size}")
    if tensor is not None and tensor._array.ndim != 1 and name.startswith("running"):
        raise RuntimeError(f"TensorAccessor expected 1 dims but tensor has {tensor._array.ndim} ({name})")


def _check_parameters(input: Tensor, parameters: Sequence[Tensor | None]) -> None:
    """Raise PyTorch's error unless all parameters have the input's dtype, or float32 for an input of 16 bits."""
    kinds = {each._array.dtype for each in parameters if each is not None}
    if kinds <= {input._array.dtype}:
        return
    if input._array.dtype.itemsize == 2 and kinds == {np.dtype(np.float32)}:
        return
    if input._array.dtype.itemsize == 8:
        raise RuntimeError("mixed dtype (CPU): all inputs must share same datatype.")
    raise RuntimeError("mixed dtype (CPU): expect parameter to have scalar type of Float")


def _kind_of_statistics(input: Tensor, *parameters: Tensor | None) -> dtypes.dtype:
    """Return the dtype in which PyTorch returns statistics: the parameters' dtype, without parameters the input's."""
    kinds = [each.dtype for each in parameters if each is not None]
    return kinds[0] if kinds else input.dtype


def _flat(tensor: Any) -> Any:
    """Return a parameter as a vector: PyTorch checks only its number of elements."""
    return tensor if tensor is None or tensor._array.ndim == 1 else tensor.reshape(-1)


def _batch_norm(input: Tensor, weight: Any, bias: Any, *options: Any) -> Tensor:
    """Return the normalised input. Of an empty one nothing is checked: as in PyTorch, other ops give its graph."""
    if input._array.size:
        return _with_statistics(input, weight, bias, *options)[0]
    out = input.clone()
    if weight is not None:
        out = out * weight.select(0, 0)
    return out if bias is None else out + bias.select(0, 0)


def _with_statistics(
    input: Tensor, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, momentum: Any,
    eps: float,
) -> tuple[Tensor, Tensor | None, Tensor | None]:  # fmt: skip
    """Return the normalised input; in training also mean and (biased) variance of the batch."""
    channels = input.size(1)
    for name, running in (("running_mean", running_mean), ("running_var", running_var)):
        if running is None and not training:
            raise RuntimeError(f"{name} must be defined in evaluation mode")
        if running is not None and running.requires_grad and local.state.grad:
            raise RuntimeError(
                f"The function 'native_batch_norm' is not differentiable with respect to argument '{name}'. This "
                "input cannot have requires_grad True."
            )
        _check_size(name, running, channels)
    _check_size("weight", weight, channels)
    _check_size("bias", bias, channels)
    if (running_mean is None) != (running_var is None):
        raise ValueError("running_mean and running_var must either both be None or neither be None")
    check_floating("batch_norm", input._array)
    if training and not input._array.size:
        shape = list(input._array.shape)
        raise RuntimeError(f"input tensor must have at least one element, but got input_sizes = {shape}")
    _check_parameters(input, (weight, bias, running_mean, running_var))
    moved = [each for each in (running_mean, running_var) if training and each is not None]
    if hasattr(input, "_level") and not all(hasattr(each, "_level") for each in moved):  # (inside of `vmap`)
        raise RuntimeError(
            "Batch norm got a batched tensor as input while the running_mean or running_var, which will be updated in "
            "place, were not batched.\nIf you are using a module and do not need eval mode, please set "
            "`track_running_stats` to be False.If you are using a prebuilt module and do not need eval mode, please "
            "see the functorch website for resources on how to patch your module to work with vmap"
        )
    weight, bias = _flat(weight), _flat(bias)
    if not training:
        out: Tensor = _by_given(input, weight, bias, _flat(running_mean), _flat(running_var), eps)
        return out, None, None

    def update(mean: Tensor, variance: Tensor) -> None:
        if running_mean is not None:
            _batch_norm_update_stats(running_mean._array, mean._array, 0, momentum)
            _batch_norm_update_stats(running_var._array, variance._array, input._array.size // channels, momentum)

    try:
        found: tuple[Tensor, Tensor, Tensor] = _by_batch(input, weight, bias, eps)
    except Stop as stop:  # PyTorch's kernel has updated the statistics when a hook sees what it saves
        update(*stop.result[1:])
        raise
    update(*found[1:])
    return found


@per_example("array")
def _batch_norm_update_stats(array: Any, new: Any, count: int, momentum: float) -> None:
    """Update a running statistic as `norm.move` does; as in PyTorch, this does not increment the version."""
    for mode in local.state.modes or ():
        mode.event(Event.WROTE, function=norm.move, array=array, args=(new, count, momentum), counts=False)
    norm.move(array, new, count, momentum)


def _check_momentum(name: str, momentum: Any) -> float:
    if not isinstance(momentum, (int, float)):
        raise TypeError(f"{name}(): argument 'momentum' (position 7) must be float, not {type(momentum).__name__}")
    return momentum


@public()
def batch_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None,
    training: bool, momentum: float, eps: float, cudnn_enabled: bool,
) -> Tensor:  # fmt: skip
    """Return `input` normalised per channel; `nn.functional.batch_norm` has the arguments in a different order.

    `cudnn_enabled` is ignored.

    Example:
        >>> x = torch.tensor([[1.0], [3.0]])
        >>> torch.batch_norm(x, None, None, None, None, True, 0.1, 0.0, False)
        tensor([[-1.],
                [ 1.]])

    Source: Ioffe and Szegedy, "Batch Normalization: Accelerating Deep Network Training by Reducing Internal Covariate
        Shift", 2015.
    """
    momentum = _check_momentum("batch_norm", momentum)
    return _batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)


@public()
def native_batch_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None,
    training: bool, momentum: float, eps: float,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Return the result of `batch_norm`, and the batch's mean and `1 / sqrt(variance + eps)` (empty in evaluation).

    Example:
        >>> x = torch.tensor([[1.0], [3.0]])
        >>> torch.native_batch_norm(x, None, None, None, None, True, 0.1, 3.0)[2]
        tensor([0.5000])
    """
    momentum = _check_momentum("native_batch_norm", momentum)
    out, mean, variance = _with_statistics(input, weight, bias, running_mean, running_var, training, momentum, eps)
    kind = _kind_of_statistics(input, weight, bias, running_mean, running_var)
    if mean is None or variance is None:
        none = np.zeros_like(input._array, dtype=kind.numpy, shape=0)
        return out, wrap(none), wrap(none.copy())
    return out, mean.to(kind), (variance + eps).rsqrt().to(kind)


# Instance and group normalisation -----------------------------------------------------------------


@public()
def instance_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None,
    use_input_stats: bool, momentum: float, eps: float, cudnn_enabled: bool,
) -> Tensor:  # fmt: skip
    """Return `input` with each channel of each sample normalised; see `nn.functional.instance_norm`.

    Without `use_input_stats` it normalises by the running statistics, which are updated otherwise.

    Example:
        >>> x = torch.tensor([[[1.0, 3.0], [5.0, 5.0]]])
        >>> torch.instance_norm(x, None, None, None, None, True, 0.1, 0.0001, False)
        tensor([[[-1.0000,  1.0000],
                 [ 0.0000,  0.0000]]])

    Source: Ulyanov et al., "Instance Normalization: The Missing Ingredient for Fast Stylization", 2016.
    """
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError("Expected running_mean and running_var to be defined when use_input_stats is false")
    momentum = _check_momentum("instance_norm", momentum)
    samples, channels = input.size(0), input.size(1)
    # The instances are channels of one sample.
    shape = (1, samples * channels, *input._array.shape[2:])

    def repeated(each: Tensor | None) -> Tensor | None:
        return None if each is None else each.repeat(samples)

    per_mean, per_var = repeated(running_mean), repeated(running_var)
    instances = input.contiguous().reshape(shape)
    out = _batch_norm(instances, repeated(weight), repeated(bias), per_mean, per_var, use_input_stats, momentum, eps)
    if use_input_stats and samples:
        for running, each in ((running_mean, per_mean), (running_var, per_var)):
            if running is not None and each is not None:
                _instance_norm_update_stats(running._array, each._array)
                count_write(running)
    return out.view(input.shape)


@per_example("array")
def _instance_norm_update_stats(array: Any, of_samples: Any) -> None:
    array[...] = quietly(np.mean, of_samples.reshape(of_samples.size // max(array.size, 1), *array.shape), 0)


def _group_rule(
    g: Tensor, needs: tuple[bool, ...], x: Tensor, groups: int, weight: Any, eps: float, mean: Any, scale: Any
) -> Any:
    if mean is not None:
        return _chosen(needs, _group_norm_grad(g, x, weight, mean, scale, needs[0]))
    samples = x._array.shape[0]
    grouped = _wide(x).reshape([samples, groups, x._array.size // (samples * groups) if samples else 0])
    normal, differentiable = _normalised(grouped, [2], eps)
    return _from_normal(_wide(g), normal, differentiable, weight, [2], needs)


_by_group = op_of(
    norm.by_group,
    batch="channels",
    joint=_group_rule,
    inputs=("x", "weight", "bias"),
    residuals=("mean", "scale"),
    name="NativeGroupNorm",
)


@public()
def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-05,
    cudnn_enabled: bool = True,
) -> Tensor:  # fmt: skip
    """Return `input` with each group of channels of each sample normalised.

    Example:
        >>> torch.group_norm(torch.tensor([[1.0, 3.0, 5.0, 5.0]]), 2)
        tensor([[-1.0000,  1.0000,  0.0000,  0.0000]])

    Source: Wu and He, "Group Normalization", 2018.
    """
    shape = [*input._array.shape]
    if len(shape) < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {len(shape)}")
    groups = operator.index(num_groups)
    if groups <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {groups}")
    if shape[1] % groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{shape} and num_groups={groups}"
        )
    for name, each in (("weight", weight), ("bias", bias)):
        if each is not None and each._array.shape != (shape[1],):
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of "
                f"shape {[*each._array.shape]} and input of shape {shape}"
            )
    check_floating("GroupNormKernelImpl", input._array)
    _check_parameters(input, (weight, bias))
    return _by_group(input, groups, weight, bias, eps)


@public()
def native_group_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, N: int, C: int, HxW: int, group: int, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the result of `group_norm`, and each group's mean and `1 / sqrt(variance + eps)`, shape (N, group).

    The input has N samples of C channels of HxW elements.

    Example:
        >>> x = torch.tensor([[1.0, 3.0, 5.0, 5.0]])
        >>> torch.native_group_norm(x, None, None, 1, 4, 1, 2, 0.01)[1]
        tensor([[2., 5.]])
    """
    out = group_norm(input.reshape(N, C, HxW), group, weight, bias, eps).reshape(input.shape)
    values = _wide(input).reshape(N, group, -1 if N else 0)
    mean = values.mean(2) if values.numel() else values.sum(2)  # (of nothing: 0, as in PyTorch)
    scale = (values - mean.unsqueeze(2)).square().mean(2).add(eps).rsqrt()
    kind = _kind_of_statistics(input, weight, bias)
    return out, mean.to(kind), scale.to(kind)


def check_normalized_shape(
    name: str, input: Tensor, given: Any, weight: Tensor | None, bias: Tensor | None, start: str
) -> tuple[int, ...]:
    """Return the normalised shape, after checking it and the shapes of weight and bias."""
    if not isinstance(given, (tuple, list)):
        raise TypeError(
            f"{name}(): argument 'normalized_shape' (position 2) must be tuple of ints, not {type(given).__name__}"
        )
    shape = tuple(given)
    if not shape:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
            "normalized_shape = []"
        )
    for what, each in (("weight", weight), ("bias", bias)):
        if each is not None and each.shape != shape:
            raise RuntimeError(
                f"Expected {what} to be of same shape as normalized_shape, but got {what} of shape "
                f"{list(each.shape)} and normalized_shape = {list(shape)}"
            )
    if input.ndim < len(shape) or input.shape[-len(shape) :] != shape:
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape {start}{', '.join(map(str, shape))}], "
            f"but got input of size{list(input.shape)}"
        )
    for each in (weight, bias):
        if (
            each is not None
            and name != "rms_norm"
            and each.dtype != input.dtype
            and (input.dtype.itemsize != 2 or each.dtype is not dtypes.float32)
        ):
            raise RuntimeError(f"mixed dtype (CPU): expect parameter to have scalar type of {input.dtype.tensor_name}")
    return shape


@public()
def native_layer_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the result of `layer_norm`, and mean and `1 / sqrt(variance + eps)`; normalised dimensions have length 1.

    Example:
        >>> torch.native_layer_norm(torch.tensor([[1.0, 3.0]]), (2,), None, None, 3.0)[1:]
        (tensor([[2.]]), tensor([[0.5000]]))
    """
    shape = check_normalized_shape("layer_norm", input, normalized_shape, weight, bias, "[*, ")
    dims = [*range(input.ndim - len(shape), input.ndim)]
    values = _wide(input.detach())
    mean = values.mean(dims, keepdim=True) if values.numel() else values.sum(dims, keepdim=True)
    scale = (values - mean).square().mean(dims, keepdim=True).add(eps).rsqrt()
    out: Tensor = layer_norm(input, shape, weight, bias, eps)
    kind = _kind_of_statistics(input, weight, bias)
    return out, mean.to(kind), scale.to(kind)


# Normalisation over the last dimensions ------------------------------------------------------------


def _over_last(
    g: Tensor, needs: Any, normal: Tensor, scale: Tensor, weight: Any, count: int, centred: bool
) -> tuple[Any, Any, Any]:
    """Return the gradients in Tensor code, given the normalised input and the factor that normalises."""
    dims, leading = tuple(range(-count, 0)), tuple(range(g.ndim - count))
    grad = grad_weight = grad_bias = None
    if needs[0]:
        slope = g if weight is None else g * weight
        middle = normal * (slope * normal).mean(dims, keepdim=True)
        grad = ((slope - slope.mean(dims, keepdim=True) if centred else slope) - middle) * scale
    if needs[1]:
        grad_weight = (g * normal).sum(leading) if leading else g * normal
    if centred and needs[2]:
        grad_bias = g.sum(leading) if leading else g
    return grad, grad_weight, grad_bias


def _of_batch(g: Tensor, needs: Any, x: Tensor, count: int, weight: Any, mean: Any, scale: Any) -> Any:
    """Return what `_layer_norm_grad` and `_rms_norm_grad` return, without a mean, by which `vmap` computes them."""
    shape = (*x.shape[: x.ndim - count], *(1,) * count)
    scale = scale.reshape(shape)
    normal = (x if mean is None else x - mean.reshape(shape)) * scale
    found = _over_last(g, needs, normal, scale, weight, count, mean is not None)
    return found if mean is not None else found[:2]


def _layer_norm_rule(
    g: Tensor, needs: Any, x: Tensor, normalized_shape: Any, weight: Any, eps: float, mean: Any, scale: Any
) -> Any:
    count = len(normalized_shape)
    if mean is not None:
        return _layer_norm_grad(g, needs, x, count, weight, mean, scale)
    # Under create_graph the gradients are computed differentiably from the input; the engine casts them.
    if x._array.dtype.itemsize == 2:
        g, x = g.float(), x.float()
    return _over_last(g, needs, *_normalised(x, tuple(range(x.ndim - count, x.ndim)), eps), weight, count, True)


@op(
    layer_norms.layer_norm_over, batch="layer norm",
    joint=_layer_norm_rule, inputs=("x", "weight", "bias"), residuals=("mean", "scale"),
    name="NativeLayerNorm",
)  # fmt: skip
def layer_norm(x: Any, normalized_shape: tuple[int, ...], weight: Any, bias: Any, eps: float) -> Any:
    """Return `(x - mean) / sqrt(variance + eps) * weight + bias` over the last dimensions."""


def _rms_norm_rule(g: Tensor, needs: Any, x: Tensor, count: int, weight: Any, eps: float, scale: Any) -> Any:
    if scale is not None:
        return _rms_norm_grad(g, needs, x, count, weight, scale)
    scale = ((x * x).mean(tuple(range(-count, 0)), keepdim=True) + eps).rsqrt()
    return _over_last(g, needs, x * scale, scale, weight, count, False)[:2]


rms_norm = op(batch="layer norm", joint=_rms_norm_rule, inputs=("x", "weight"), residuals=("scale",), name="Mul")(
    layer_norms.rms_norm
)
