"""Functions of `nn.functional`: bilinear forms, embeddings, one-hot vectors, dropout, normalisation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tinytorch.core.mode import alike, tell_of_reading
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.core.warning import warn
from tinytorch.kernels import dtypes, layouts, limits
from tinytorch.kernels.checks import check_floating, refused, require
from tinytorch.kernels.shape import channels_last
from tinytorch.nn.functional.activation import SELU_ALPHA, SELU_SCALE
from tinytorch.ops.arguments import check_tensor
from tinytorch.ops.autocast import raised
from tinytorch.ops.linalg import products
from tinytorch.ops.nn import embedding as _embedding
from tinytorch.ops.nn import norm as _norm
from tinytorch.ops.nn.linear import linear
from tinytorch.ops.nn.norm import check_normalized_shape
from tinytorch.ops.nn.padding import pad
from tinytorch.ops.nn.pool import avg_pool2d, avg_pool3d
from tinytorch.ops.nn.versions import versions
from tinytorch.ops.random import apart
from tinytorch.ops.register import public

# Linear -------------------------------------------------------------------------------------------


@public(binds=False, also="nn.functional.bilinear")
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return `input1 @ weight[k] @ input2 + bias[k]` for all output features k.

    Shapes: (*, in1), (*, in2), (out, in1, in2) and (out,) -> (*, out).

    Example:
        >>> weight = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])
        >>> torch.nn.functional.bilinear(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]), weight)
        tensor([11.])
    """
    arguments = {"input1": input1, "input2": input2, "weight": weight, "bias": bias}
    tensors = {name: tensor for name, tensor in arguments.items() if tensor is not None}
    if len({tensor.dtype for tensor in tensors.values()}) > 1:
        listed = ", ".join(f"{name}: {tensor.dtype}" for name, tensor in tensors.items())
        raise RuntimeError(f"All tensors must have the same dtype, got {listed}")
    if not input1.ndim or not input2.ndim:
        raise IndexError("Dimension specified as -1 but tensor has no dimensions")
    if input1.ndim != input2.ndim:
        raise RuntimeError(f"bilinear(): input dimensions do not match: got {input1.ndim} and {input2.ndim}")
    for dim, (a, b) in enumerate(zip(input1.shape[:-1], input2.shape[:-1], strict=True)):
        if a != b:
            raise RuntimeError(f"bilinear(): input batch dimensions do not match at dim {dim}: got {a} and {b}")
    for k, input in ((1, input1), (2, input2)):
        if input.shape[-1] != weight.shape[k]:
            raise RuntimeError(
                f"bilinear(): input{k} size does not match weight size: got {input.shape[-1]} but expected "
                f"{weight.shape[k]}"
            )
    outputs, first, second = weight.shape
    if bias is not None and bias.shape != (outputs,):
        raise RuntimeError(
            f"bilinear(): bias size does not match weight size: got {bias.numel()} but expected {outputs}"
        )
    # (*, in1) x (out * in2, in1) -> (*, out, in2), then a contraction over in2 with the second input.
    rows = linear(input1, weight.permute(0, 2, 1).reshape(outputs * second, first))
    products = rows.reshape(*input1.shape[:-1], outputs, second) * input2.unsqueeze(-2)
    out: Tensor = products.sum(-1, dtype=input1.dtype)
    return out if bias is None else out + bias


_GROUPED = ("Float", "BFloat16", "Half")


@public("nn.functional.grouped_mm", listed=False)
def grouped_mm(
    mat_a: Tensor, mat_b: Tensor, *, offs: Tensor | None = None, bias: Tensor | None = None, out_dtype: Any = None
) -> Tensor:
    """Return the products of groups of rows (or columns) with a matrix each, as in a mixture of experts.

    Args:
        mat_a, mat_b: tensors of float32, bfloat16 or float16:
            (m, k) and (groups, k, n): `offs` divides the rows; the result is (m, n).
            (groups, m, k) and (k, n): `offs` divides the columns; the result is (m, n).
            (m, k) and (k, n): `offs` divides the terms of the sums; the result is (groups, m, n).
            (groups, m, k) and (groups, k, n), without `offs`: as `torch.bmm`.
        offs: where each group ends, (groups,) of int32. What comes after the last group is 0.
        bias: not supported, as in PyTorch.
        out_dtype: the dtype of the result, which must be that of `mat_a`.

    Example:
        >>> x, experts = torch.ones(3, 2), torch.stack([torch.eye(2), 2 * torch.eye(2)])
        >>> torch.nn.functional.grouped_mm(x, experts, offs=torch.tensor([1, 3], dtype=torch.int32))
        tensor([[1., 1.],
                [2., 2.],
                [2., 2.]])
    """
    for name, x in (("mat_a", mat_a), ("mat_b", mat_b)):
        check_tensor(x, "grouped_mm", name)
        require(
            x.dtype.tensor_name in _GROUPED,
            f"Expected {name} to be Float32, BFloat16 or Float16 matrix, got {x.dtype.tensor_name}",
        )
    for name, x in (("mat_a", mat_a), ("mat_b", mat_b)):
        require(x.ndim in (2, 3), f"{name} has to be 2 or 3d")
    stacks = [x.shape[0] for x in (mat_a, mat_b) if x.ndim == 3]
    if stacks:
        require(mat_a.shape[-1] == mat_b.shape[-2], "contraction dimension of mat_a and mat_b must match")
    require(
        (offs is None) is (len(stacks) == 2),
        "Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d",
    )
    if offs is not None:
        require(offs.ndim == 1, "offs has to be 1D")
        require(offs.dtype is dtypes.int32, "Offsets have to be int32")
        require(not stacks or stacks == [len(offs)], "matrix batch sizes have to match")
    else:
        require(stacks[0] == stacks[1], "batched dimension has to match")
    first, second = (dtypes.C_NAMES[x.dtype.name] for x in (mat_a, mat_b))
    require(first == second, f"expected m1 and m2 to have the same dtype, but got: {first} != {second}")
    require(bias is None, "Bias not supported yet")
    require(out_dtype in (None, mat_a.dtype), "Grouped gemm output dtype must match `mat_a` dtype")
    result: Tensor = products.grouped_mm(mat_a, mat_b, offs)
    return result


# Embeddings and one-hot vectors -------------------------------------------------------------------


@public("nn.functional.embedding")
def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Return the rows of `weight` at the indices in `input`.

    Shapes: integers (*) and (rows, D) -> (*, D). The row `padding_idx` gets no gradient. Rows whose `norm_type`-norm is
    larger than `max_norm` are scaled down first, in place; `scale_grad_by_freq` divides a row's gradient by its
    occurrences; with `sparse` the gradient is a sparse tensor.

    Example:
        >>> weight = torch.tensor([[1.0, 1.5], [2.0, 2.5]])
        >>> torch.nn.functional.embedding(torch.tensor([1, 0, 1]), weight)
        tensor([[2.0000, 2.5000],
                [1.0000, 1.5000],
                [2.0000, 2.5000]])
    """
    if padding_idx is not None:
        if not -weight.shape[0] <= padding_idx < weight.shape[0]:
            raise AssertionError("Padding_idx must be within num_embeddings")
        padding_idx %= weight.shape[0]
    if max_norm is not None:
        _embedding.embedding_renorm_(weight, input, max_norm, norm_type)
    return _embedding.embedding(weight, input, -1 if padding_idx is None else padding_idx, scale_grad_by_freq, sparse)


@public("nn.functional.embedding_bag")
def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Return the sum, mean or maximum of the rows of `weight` for every bag of indices; zeros for an empty bag.

    Shapes: integers (bags, L), or (N,) with `offsets` (bags,), and (rows, D) -> (bags, D). The mode is "sum", "mean" or
    "max"; `per_sample_weights`, of the shape of `input`, are for "sum" alone. The last offset is the end of the last
    bag if `include_last_offset`; the index `padding_idx` is left out of its bags. Other arguments as for `embedding`.

    Example:
        >>> weight = torch.arange(6.0).view(3, 2)
        >>> torch.nn.functional.embedding_bag(torch.tensor([[0, 1], [2, 2]]), weight, mode="sum")
        tensor([[ 2.,  4.],
                [ 8., 10.]])
    """
    if weight.dtype is dtypes.int64 and input.is_floating_point():
        warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, ...)` is "
            "deprecated, and should now be `embedding_bag(input, weight, ...)`."
        )
        weight, input = input, weight
    if per_sample_weights is not None and input.shape != per_sample_weights.shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must have the "
            f"same shape as the input ({input.shape})"
        )
    if input.ndim == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length "
                f"sequences. However, found offsets of type {type(offsets)}"
            )
        bags, length = input.shape
        offsets = wrap(np.full(bags, length, np.int64, like=input._array).cumsum() - length).to(input.dtype)
        input = input.reshape(-1)
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)
    elif input.ndim != 1:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.ndim}")
    elif not isinstance(offsets, Tensor):
        raise ValueError("offsets has to be a 1D Tensor but got None")
    elif offsets.ndim != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if max_norm is not None:
        _embedding.embedding_renorm_(weight, input, max_norm, norm_type)
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' (got "
            f"mode='{mode}'). Please open a feature request on GitHub."
        )
    if padding_idx is not None and not -weight.shape[0] <= padding_idx < weight.shape[0]:
        raise RuntimeError(
            f"padding_idx must be within the number of embeddings, -{weight.shape[0]} through {weight.shape[0] - 1}, "
            f"but got {padding_idx}"
        )
    padding = None if padding_idx is None else padding_idx % weight.shape[0]
    result = _embedding.embedding_bag(
        weight, input, offsets, scale_grad_by_freq, ("sum", "mean", "max").index(mode), sparse,
        per_sample_weights, include_last_offset, padding,
    )  # fmt: skip
    return result[0]


@public("nn.functional.one_hot", binds=False)
@alike(_embedding.one_hot)
def one_hot(input: Tensor, num_classes: int = -1) -> Tensor:
    """Return one-hot vectors: zeros, with a one at the index of the label.

    Shapes: int64 labels (*) -> int64 (*, num_classes); -1 stands for the largest label plus one.

    Example:
        >>> torch.nn.functional.one_hot(torch.tensor([0, 2]))
        tensor([[1, 0, 0],
                [0, 0, 1]])
    """
    labels = input._array
    if labels.size == 0 and num_classes <= 0:
        raise RuntimeError("Can not infer total number of classes from empty tensor.")
    if labels.size and num_classes == -1:
        if hasattr(input, "_under"):
            raise RuntimeError(
                "When vmap-ing torch.nn.functional.one_hot, please provide an explicit positive num_classes argument."
            )
        tell_of_reading(input)
        num_classes = max(int(labels.max()) + 1, 0)
    return _embedding.one_hot(input, num_classes)


# Dropout ------------------------------------------------------------------------------------------


@public("nn.functional.dropout")
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Return `input` with elements zeroed with probability `p`, and the others divided by `1 - p`.

    Without `training`, `input` is returned.

    Example:
        >>> sorted(set(torch.nn.functional.dropout(torch.ones(100), 0.75).tolist()))
        [0.0, 4.0]

    Source:
        Hinton et al., "Improving neural networks by preventing co-adaptation of feature detectors", 2012; Srivastava et
        al., "Dropout: A Simple Way to Prevent Neural Networks from Overfitting", 2014.
    """
    check_tensor(input, "dropout")
    return _dropped(input, p, training, inplace, channels=False)


@versions("nn.functional.dropout{}d", 1, 2, 3)
def _channel_dropout(n: int, input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Return `input`, (N, C) and {n} more dimensions, with whole channels dropped; arguments as `dropout`.

    Example:
        >>> channels = torch.nn.functional.{name}(torch.ones(1, 100, {1}))
        >>> set(channels.flatten().tolist()) == {{0.0, 2.0}}
        True
    """
    _check_probability(p)
    known = input.ndim in (n + 1, n + 2)
    if n == 1 and not known:
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.ndim}D input. Note that dropout1d exists to "
            "provide channel-wise dropout on inputs with 1 spatial dimension, a channel dimension, and an optional "
            "batch dimension (i.e. 2D or 3D inputs)."
        )
    if not known:
        warn(
            f"dropout{n}d: Received a {input.ndim}-D input to dropout{n}d, which is deprecated and will result in an "
            "error in a future release. To retain the behavior and silence this warning, please use dropout instead. "
            f"Note that dropout{n}d exists to provide channel-wise dropout on inputs with {n} spatial dimensions, a "
            f"channel dimension, and an optional batch dimension (i.e. {n + 1}D or {n + 2}D inputs)."
        )
    if n == 2 and input.ndim == 3:
        warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is "
            "desired - input is interpreted as shape (N, C, L), where C is the channel dim. This behavior will change "
            "in a future release to interpret the input as one without a batch dimension, i.e. shape (C, H, W). To "
            "maintain the 1D channel-wise dropout behavior, please switch to using dropout1d instead."
        )
    return _channels_dropped(input, p, training, inplace, n == 2 or input.ndim == n + 2)


dropout1d, dropout2d, dropout3d = _channel_dropout.values()


@public("nn.functional.alpha_dropout")
def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Return `input` with random elements set to the negative limit of `selu`, rescaled to preserve mean and variance.

    Arguments as `dropout`, but `training` is False by default, as in PyTorch.

    Example:
        >>> torch.nn.functional.alpha_dropout(torch.ones(2))
        tensor([1., 1.])

    Source: Klambauer et al., "Self-Normalizing Neural Networks", 2017.
    """
    return _alpha_dropped(input, p, training, inplace, channels=False)


@public("nn.functional.feature_alpha_dropout")
def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Return `input`, (N, C, *), with whole channels dropped as by `alpha_dropout`; arguments as there.

    Example:
        >>> torch.nn.functional.feature_alpha_dropout(torch.ones(1, 2))
        tensor([[1., 1.]])

    Source: Klambauer et al., "Self-Normalizing Neural Networks", 2017.
    """
    _check_probability(p)
    if input.ndim < 2 and p and training and input._array.size:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    return _alpha_dropped(input, p, training, inplace, channels=True)


def _check_probability(p: float) -> None:
    if p < 0 or p > 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def _keep_mask(input: Tensor, p: float, training: bool, channels: bool) -> Tensor | None:
    """Return a mask of the elements, or of the channels (N, C, 1, ...), that is 0 with probability `p`, else 1.

    It is None where nothing is dropped.
    """
    _check_probability(p)
    array = input._array
    if not training or p == 0 or not array.size:
        return None
    if array.dtype.kind == "c":
        raise refused("bernoulli_scalar_cpu_", array)
    shape = (*array.shape[:2], *[1] * (array.ndim - 2)) if channels else array.shape
    if p == 1:
        return wrap(np.zeros_like(array, shape=()))
    # In the order of the input in memory, in which the random numbers are drawn; for channels that of the dimensions.
    mask: Tensor = wrap(np.empty_like(array, shape=shape, order="C") if channels else layouts.empty_like(array))
    return apart(mask).bernoulli_(1 - p)


def _dropped(input: Tensor, p: float, training: bool, inplace: bool, channels: bool) -> Tensor:
    """Return `input` times a mask of elements or channels, of zeros and `1 / (1 - p)`."""
    mask = _keep_mask(input, p, training, channels)
    if mask is None:
        return input
    if p < 1:
        mask.div_(1 - p)
    return input.mul_(mask) if inplace else input * mask


def _alpha_dropped(input: Tensor, p: float, training: bool, inplace: bool, channels: bool) -> Tensor:
    """Return `input` with the dropped elements or channels set to the limit of `selu`, scaled and shifted."""
    kept = _keep_mask(input, p, training, channels)
    if kept is None:
        return input
    if p == 1:
        return input.mul_(kept) if inplace else input * kept
    alpha = SELU_ALPHA * SELU_SCALE
    a = 1 / math.sqrt((alpha * alpha * p + 1) * (1 - p))
    shift = (kept - 1) * (alpha * a) + alpha * a * p
    return input.mul_(kept * a).add_(shift) if inplace else input * (kept * a) + shift


def _channels_dropped(input: Tensor, p: float, training: bool, inplace: bool, batched: bool = True) -> Tensor:
    if not batched:
        if inplace:
            return _channels_dropped(input.unsqueeze_(0), p, training, True).squeeze_(0)
        return _channels_dropped(input.unsqueeze(0), p, training, False).squeeze(0)
    if input.ndim < 2 and training and p > 0 and input._array.size:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    return _dropped(input, p, training, inplace, channels=True)


# Normalisation ------------------------------------------------------------------------------------


@public(also="nn.functional.layer_norm")
def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Return `(input - mean) / sqrt(variance + eps) * weight + bias`, over the last dimensions.

    Shapes: (*, *normalized_shape), and `normalized_shape` for weight and bias. Mean and (biased) variance are taken
    over these last dimensions.

    Example:
        >>> torch.nn.functional.layer_norm(torch.tensor([[1.0, 2.0, 3.0]]), (3,))
        tensor([[-1.2247,  0.0000,  1.2247]])

    Source: Ba et al., "Layer Normalization", 2016.
    """
    try:
        shape = check_normalized_shape("layer_norm", input, normalized_shape, weight, bias, "[*, ")
    except AttributeError:
        check_tensor(input, "layer_norm")
        raise
    return _norm.layer_norm(input, shape, weight, bias, eps)


@public(also="nn.functional.rms_norm")
def rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """Return `input / sqrt(mean(input ** 2) + eps) * weight`, the mean over the last dimensions.

    Shapes as for `layer_norm`; `eps` is by default the dtype's machine epsilon.

    Example:
        >>> torch.nn.functional.rms_norm(torch.tensor([[3.0, 4.0]]), (2,))
        tensor([[0.8485, 1.1314]])

    Source: Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019.
    """
    shape = check_normalized_shape("rms_norm", input, normalized_shape, weight, None, "[*")
    if weight is not None and weight.dtype is not input.dtype:
        warn(
            f"Mismatch dtype between input and weight: input dtype = {input.dtype}, weight dtype = {weight.dtype}, "
            "Cannot dispatch to fused implementation."
        )
    if input._array.dtype.kind == "c":
        eps, input = limits.finfo(input.dtype).eps if eps is None else eps, input.contiguous()
        normal = input * ((input * input).mean(tuple(range(-len(shape), 0)), keepdim=True) + eps).rsqrt()
        return normal if weight is None else normal * weight
    check_floating("rms_norm", input._array)
    x = input.float() if input._array.dtype.itemsize == 2 else input
    if not x._array.flags.c_contiguous and not channels_last(x._array):
        x = x.contiguous()
    eps = limits.finfo(x.dtype).eps if eps is None else eps
    same_dtype = weight is None or weight.dtype is x.dtype
    out: Tensor = _norm.rms_norm(x, len(shape), weight if same_dtype else None, eps)
    if weight is not None and not same_dtype:
        out = out * weight
    return out if out.dtype is input.dtype else out.to(input.dtype)


@public("nn.functional.batch_norm")
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Return `(input - mean) / sqrt(variance + eps) * weight + bias` for every channel.

    Shapes: (N, C, *), and (C,) for the others. In training mean and variance are those of the batch, and the running
    statistics are moved towards them in place, with the weight `momentum`; otherwise the running statistics are used.

    Example:
        >>> mean, var = torch.zeros(1), torch.ones(1)
        >>> x = torch.tensor([[1.0], [3.0]])
        >>> torch.nn.functional.batch_norm(x, mean, var, training=True)
        tensor([[-1.0000],
                [ 1.0000]])
        >>> mean
        tensor([0.2000])

    Source:
        Ioffe and Szegedy, "Batch Normalization: Accelerating Deep Network Training by Reducing Internal Covariate
        Shift", 2015.
    """
    if training:
        shape = input.shape
        if math.prod((*shape[:1], *shape[2:])) == 1:  # (an empty batch is let through, as in PyTorch)
            raise ValueError(f"Expected more than 1 value per channel when training, got input size {shape}")
        if eps <= 0:
            raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    elif eps < 0:
        raise ValueError(f"batch_norm eps must be non-negative, but got {eps}")
    return _norm.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, True)


@public("nn.functional.instance_norm")
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Return `input` with every channel of every sample normalised by the mean and variance of that channel.

    Without `use_input_stats` it normalises by the running statistics; otherwise these are updated in place, if there
    are any. Shapes as for `batch_norm`.

    Example:
        >>> torch.nn.functional.instance_norm(torch.tensor([[[1.0, 3.0], [5.0, 5.0]]]))
        tensor([[[-1.0000,  1.0000],
                 [ 0.0000,  0.0000]]])

    Source: Ulyanov et al., "Instance Normalization: The Missing Ingredient for Fast Stylization", 2016.
    """
    if use_input_stats and math.prod(input.shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.shape}")
    return _norm.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, True)


@public("nn.functional.group_norm")
def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Return `input` with every group of channels of every sample normalised.

    The channels are divided into `num_groups`; shapes as for `batch_norm`.

    Example:
        >>> torch.nn.functional.group_norm(torch.tensor([[1.0, 3.0, 5.0, 5.0]]), 2)
        tensor([[-1.0000,  1.0000,  0.0000,  0.0000]])

    Source: Wu and He, "Group Normalization", 2018.
    """
    if input.ndim < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.ndim}")
    shape = input.shape
    if shape[0] * shape[1] // num_groups * math.prod(shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {list(shape)}")
    return _norm.group_norm(input, num_groups, weight, bias, eps)


@public("nn.functional.normalize", out="promoted")
def normalize(
    input: Tensor, p: float = 2.0, dim: int | Sequence[int] = 1, eps: float = 1e-12, out: Tensor | None = None
) -> Tensor:
    """Return `input / max(norm(input), eps)`, the p-norm along `dim`.

    `dim` is the dimension, or the dimensions, of the vectors.

    Example:
        >>> torch.nn.functional.normalize(torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
        tensor([[0.6000, 0.8000],
                [0.0000, 0.0000]])
    """
    result: Tensor = input / input.norm(p, dim, True).clamp(min=eps)
    return result if out is None else out.copy_(result)


@public("nn.functional.local_response_norm")
def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """Return `input / (k + alpha * mean(input ** 2)) ** beta`, the mean over `size` neighbouring channels.

    Shape: (N, C, *); the channels are padded with zeros, and `size // 2` of those in the mean precede the channel.

    Example:
        >>> x = torch.tensor([[[1.0], [2.0]]])
        >>> torch.nn.functional.local_response_norm(x, 2, alpha=2.0, beta=1.0).flatten()
        tensor([0.5000, 0.3333])

    Source: Krizhevsky et al., "ImageNet Classification with Deep Convolutional Neural Networks", 2012, section 3.3.
    """
    if input.ndim < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {input.ndim} dimensions)")
    if size <= 0:
        raise RuntimeError(f"kernel size should be greater than zero, but got {size}")
    if not input.numel():
        return input
    squares, around = (input * input).unsqueeze(1), [size // 2, (size - 1) // 2]
    if input.ndim == 3:
        mean = avg_pool2d(pad(squares, [0, 0, *around]), (size, 1), 1)
    else:
        (squares,) = raised(squares)  # (as `avg_pool3d` is computed under autocasting)
        mean = avg_pool3d(pad(squares.flatten(4), [0, 0, 0, 0, *around]), (size, 1, 1), 1)
    return input / mean.view(input.shape).mul(alpha).add(k).pow(beta)
