"""`nn.functional` beside PyTorch: errors, warnings, in place, masks, weights, second order."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinytorch
from tests.same import same_as_pytorch
from tinytorch.nn import functional as functional

parametrize = pytest.mark.parametrize


def normal(t: Any, *shape: int) -> Any:
    """Return normal numbers of a fixed seed, float32, as a leaf that requires grad."""
    numbers = np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)
    return t.tensor(numbers).requires_grad_()


def ones(t: Any, *shape: int) -> Any:
    return t.ones(*shape)


# Errors and warnings ------------------------------------------------------------------------------

PROGRAMS = {
    "linear, 2-D": lambda t, f: f.linear(ones(t, 64, 784), ones(t, 100, 10).t(), None),
    "linear, shapes": lambda t, f: f.linear(ones(t, 64, 784), ones(t, 10, 100)),
    "linear, shapes with bias": lambda t, f: f.linear(ones(t, 64, 784), ones(t, 10, 100), ones(t, 10)),
    "linear, shapes of 3-D": lambda t, f: f.linear(ones(t, 2, 3, 4), ones(t, 5, 6)),
    "linear, shapes of a vector": lambda t, f: f.linear(ones(t, 4), ones(t, 5, 6)),
    "linear, 0-D": lambda t, f: f.linear(t.tensor(1.0), ones(t, 5, 6)),
    "linear, weight of 3-D": lambda t, f: f.linear(ones(t, 3, 4), ones(t, 2, 3, 4)),
    "linear, bias too long": lambda t, f: f.linear(ones(t, 3, 4), ones(t, 5, 4), ones(t, 6)),
    "linear, bias of a vector weight": lambda t, f: f.linear(ones(t, 3, 4), ones(t, 4), ones(t, 3)),
    "linear, dtypes": lambda t, f: f.linear(ones(t, 2, 3, 4).double(), ones(t, 5, 4), ones(t, 5)),
    "linear, dtype of the bias": lambda t, f: f.linear(ones(t, 3, 4), ones(t, 5, 4), ones(t, 5).double()),
    "linear, integers": lambda t, f: f.linear(ones(t, 3, 4).long(), ones(t, 5, 4).long(), ones(t, 5).long()),
    "linear, short integers": lambda t, f: f.linear(
        t.tensor([[300, 7], [300, 301]], dtype=t.int16), t.tensor([[300, 1]], dtype=t.int16)
    ),
    "linear, bias of 2-D for a vector": lambda t, f: f.linear(normal(t, 4), normal(t, 5, 4), normal(t, 1, 5)),
    "linear, truth values": lambda t, f: f.linear(ones(t, 3, 4).bool(), ones(t, 5, 4).bool()),
    "bilinear, sizes": lambda t, f: f.bilinear(ones(t, 3, 2), ones(t, 3, 4), ones(t, 5, 3, 4)),
    "softmax of integers": lambda t, f: f.softmax(t.tensor([1, 2]), 0),
    "softmax of integers, dtype": lambda t, f: f.softmax(t.tensor([1, 2]), 0, dtype=t.float32),
    "softmax to integers": lambda t, f: f.softmax(t.tensor([1.0, 2]), 0, dtype=t.int64),
    "softmax, no such dimension": lambda t, f: f.softmax(ones(t, 3), 1),
    "softmax, 0-D, no such dimension": lambda t, f: f.softmax(t.tensor(1.0), 1),
    "softmax, no dimension": lambda t, f: f.softmax(ones(t, 3)),
    "softmax, no dimension of 2": lambda t, f: f.softmax(normal(t, 2, 3)),
    "softmax, no dimension of 3": lambda t, f: f.softmax(normal(t, 2, 3, 4)),
    "softmin, no dimension": lambda t, f: f.softmin(normal(t, 2, 3)),
    "log_softmax, no dimension": lambda t, f: f.log_softmax(normal(t, 2, 3)),
    "log_softmax of integers": lambda t, f: f.log_softmax(t.tensor([1, 2]), 0),
    "torch.softmax, no dimension": lambda t, f: t.softmax(ones(t, 3)),
    "softmax, float64": lambda t, f: f.softmax(normal(t, 3), 0, dtype=t.float64),
    "celu of alpha 0": lambda t, f: f.celu(ones(t, 3), 0.0),
    "hardtanh, bounds": lambda t, f: f.hardtanh(ones(t, 3), 2.0, 1.0),
    "hardtanh, equal bounds": lambda t, f: f.hardtanh(ones(t, 3), 0.5, 0.5),
    "softshrink, negative": lambda t, f: f.softshrink(ones(t, 3), -1.0),
    "gelu, unknown": lambda t, f: f.gelu(ones(t, 3), approximate="x"),
    "glu, odd": lambda t, f: f.glu(ones(t, 3)),
    "glu, 0-D": lambda t, f: f.glu(t.tensor(1.0)),
    "glu, no such dimension": lambda t, f: f.glu(ones(t, 4), 1),
    "prelu, parameters": lambda t, f: f.prelu(ones(t, 3, 2), ones(t, 3)),
    "prelu, parameters of a vector": lambda t, f: f.prelu(ones(t, 3), ones(t, 3)),
    "prelu, dtypes": lambda t, f: f.prelu(ones(t, 3, 2), ones(t, 2).double()),
    "prelu, 0-D": lambda t, f: f.prelu(t.tensor(1.0), ones(t, 2)),
    "prelu, weight of 2-D": lambda t, f: f.prelu(ones(t, 3, 2), ones(t, 1, 2)),
    "cross_entropy, label too large": lambda t, f: f.cross_entropy(ones(t, 3, 10), t.tensor([1, 2, 10])),
    "cross_entropy, label negative": lambda t, f: f.cross_entropy(ones(t, 3, 10), t.tensor([1, 2, -1])),
    "cross_entropy, float labels": lambda t, f: f.cross_entropy(ones(t, 3, 10), t.tensor([1.0, 2, 3])),
    "cross_entropy, int32 labels": lambda t, f: f.cross_entropy(ones(t, 3, 10), t.tensor([1, 2, 3]).int()),
    "cross_entropy, bool labels": lambda t, f: f.cross_entropy(ones(t, 3, 10), t.tensor([1, 0, 1]).bool()),
    "cross_entropy, batch": lambda t, f: f.cross_entropy(ones(t, 3, 10), t.tensor([1, 2])),
    "cross_entropy, labels of 2-D": lambda t, f: f.cross_entropy(ones(t, 3, 10), t.ones(3, 2).long()),
    "cross_entropy, integer probabilities": lambda t, f: f.cross_entropy(ones(t, 3, 4), t.ones(3, 4).long()),
    "cross_entropy, one sample, labels": lambda t, f: f.cross_entropy(ones(t, 10), t.tensor([3, 2])),
    "cross_entropy, one sample, label of 2-D": lambda t, f: f.cross_entropy(ones(t, 10), t.tensor([[3]])),
    "cross_entropy, 0-D": lambda t, f: f.cross_entropy(t.tensor(3.0), t.tensor(0)),
    "cross_entropy, no label": lambda t, f: f.cross_entropy(ones(t, 3, 10), t.tensor(0)),
    "cross_entropy, 3-D": lambda t, f: f.cross_entropy(ones(t, 2, 5, 3), ones(t, 2, 4).long()),
    "cross_entropy, 3-D and 3-D": lambda t, f: f.cross_entropy(ones(t, 2, 5, 3), ones(t, 2, 3, 4).long()),
    "cross_entropy, 3-D and 1-D": lambda t, f: f.cross_entropy(ones(t, 2, 5, 3), ones(t, 2).long()),
    "cross_entropy, 4-D": lambda t, f: f.cross_entropy(ones(t, 2, 5, 3, 3), ones(t, 2, 3, 4).long()),
    "cross_entropy, 4-D and 2-D": lambda t, f: f.cross_entropy(ones(t, 2, 5, 3, 3), ones(t, 2, 3).long()),
    "cross_entropy, weight": lambda t, f: f.cross_entropy(ones(t, 3, 4), t.tensor([1, 2, 3]), ones(t, 3)),
    "cross_entropy, weight's dtype": lambda t, f: f.cross_entropy(
        ones(t, 3, 4), t.tensor([1, 2, 3]), ones(t, 4).double()
    ),
    "cross_entropy, weight's gradient": lambda t, f: f.cross_entropy(ones(t, 3, 4), t.tensor([1, 2, 3]), normal(t, 4)),
    "cross_entropy, weight of probabilities": lambda t, f: f.cross_entropy(ones(t, 3, 4), ones(t, 3, 4), ones(t, 3)),
    "cross_entropy, reduction": lambda t, f: f.cross_entropy(ones(t, 3, 4), t.tensor([1, 2, 3]), reduction="x"),
    "cross_entropy, smoothing": lambda t, f: f.cross_entropy(ones(t, 3, 4), t.tensor([1, 2, 3]), label_smoothing=1.5),
    "cross_entropy, negative smoothing": lambda t, f: f.cross_entropy(
        normal(t, 3, 4), t.tensor([1, 2, 3]), label_smoothing=-0.5
    ),
    "cross_entropy, smoothing of probabilities": lambda t, f: f.cross_entropy(
        ones(t, 3, 4), ones(t, 3, 4), label_smoothing=1.5
    ),
    "cross_entropy, ignored probabilities": lambda t, f: f.cross_entropy(ones(t, 3, 4), ones(t, 3, 4), ignore_index=2),
    "cross_entropy, integers": lambda t, f: f.cross_entropy(ones(t, 3, 4).long(), t.tensor([1, 2, 3])),
    "cross_entropy, nothing": lambda t, f: f.cross_entropy(ones(t, 0, 3), t.ones(0).long()),
    "cross_entropy, no class": lambda t, f: f.cross_entropy(ones(t, 3, 0), t.zeros(3).long()),
    "cross_entropy, size_average": lambda t, f: f.cross_entropy(
        normal(t, 3, 4), t.tensor([1, 2, 3]), size_average=False
    ),
    "cross_entropy, not reduced": lambda t, f: f.cross_entropy(normal(t, 3, 4), t.tensor([1, 2, 3]), reduce=False),
    "cross_entropy, reduced": lambda t, f: f.cross_entropy(normal(t, 3, 4), t.tensor([1, 2, 3]), reduce=True),
    "nll_loss, label too large": lambda t, f: f.nll_loss(ones(t, 3, 4), t.tensor([1, 2, 4])),
    "nll_loss, batch": lambda t, f: f.nll_loss(ones(t, 3, 4), t.tensor([1, 2])),
    "nll_loss, float labels": lambda t, f: f.nll_loss(ones(t, 3, 4), t.tensor([1.0, 2, 3])),
    "nll_loss, integers": lambda t, f: f.nll_loss(ones(t, 3, 4).long(), t.tensor([1, 2, 3])),
    "nll_loss, 0-D": lambda t, f: f.nll_loss(t.tensor(1.0), t.tensor([1, 2, 3])),
    "nll_loss, weight": lambda t, f: f.nll_loss(ones(t, 3, 4), t.tensor([1, 2, 3]), ones(t, 3)),
    "nll_loss, size_average": lambda t, f: f.nll_loss(normal(t, 3, 4), t.tensor([1, 2, 3]), size_average=True),
    "mse_loss, integers": lambda t, f: f.mse_loss(t.tensor([1]), t.tensor([1])),
    "mse_loss, integer input": lambda t, f: f.mse_loss(t.tensor([1, 2, 3]), normal(t, 3)),
    "mse_loss, promoted": lambda t, f: f.mse_loss(normal(t, 3), ones(t, 3).double()),
    "mse_loss, reduction": lambda t, f: f.mse_loss(ones(t, 3), ones(t, 3), reduction="x"),
    "mse_loss, nothing": lambda t, f: f.mse_loss(ones(t, 0), ones(t, 0)),
    "mse_loss, weight": lambda t, f: f.mse_loss(ones(t, 3), ones(t, 3), weight=ones(t, 1)),
    "mse_loss, size_average": lambda t, f: f.mse_loss(normal(t, 3), ones(t, 3), size_average=False),
    "l1_loss, weight": lambda t, f: f.l1_loss(ones(t, 3), ones(t, 3), weight=ones(t, 1)),
    "l1_loss, integers": lambda t, f: f.l1_loss(t.tensor([1, 2]), t.tensor([3, 2]), reduction="none"),
    "huber_loss, weight": lambda t, f: f.huber_loss(ones(t, 3), ones(t, 3), weight=ones(t, 1)),
    "huber_loss, delta": lambda t, f: f.huber_loss(ones(t, 3), ones(t, 3), delta=0),
    "huber_loss, reduction": lambda t, f: f.huber_loss(ones(t, 3), ones(t, 3), reduction="x"),
    "smooth_l1_loss, beta": lambda t, f: f.smooth_l1_loss(ones(t, 3), ones(t, 3), beta=-1),
    "smooth_l1_loss, integers": lambda t, f: f.smooth_l1_loss(t.tensor([1]), t.tensor([1])),
    "binary_cross_entropy, range": lambda t, f: f.binary_cross_entropy(t.tensor([1.5]), ones(t, 1)),
    "binary_cross_entropy, NaN": lambda t, f: f.binary_cross_entropy(t.tensor([float("nan")]), ones(t, 1)),
    "binary_cross_entropy, target's range": lambda t, f: f.binary_cross_entropy(ones(t, 1), t.tensor([2.0])),
    "binary_cross_entropy, size": lambda t, f: f.binary_cross_entropy(ones(t, 3, 1), ones(t, 3)),
    "binary_cross_entropy, dtype": lambda t, f: f.binary_cross_entropy(ones(t, 1), t.tensor([1])),
    "binary_cross_entropy, weight": lambda t, f: f.binary_cross_entropy(ones(t, 2), ones(t, 2), ones(t, 1)),
    "binary_cross_entropy, gradient of the weight": lambda t, f: f.binary_cross_entropy(
        ones(t, 2), ones(t, 2), normal(t, 2)
    ),
    "with_logits, size": lambda t, f: f.binary_cross_entropy_with_logits(ones(t, 3, 1), ones(t, 3)),
    "with_logits, integer target": lambda t, f: f.binary_cross_entropy_with_logits(ones(t, 3), t.ones(3).long()),
    "with_logits, integer input": lambda t, f: f.binary_cross_entropy_with_logits(t.ones(3).long(), ones(t, 3)),
    "with_logits, pos_weight": lambda t, f: f.binary_cross_entropy_with_logits(
        ones(t, 3, 2), ones(t, 3, 2), pos_weight=ones(t, 3)
    ),
    "with_logits, gradient of the weight": lambda t, f: f.binary_cross_entropy_with_logits(
        ones(t, 2), ones(t, 2), normal(t, 2)
    ),
    "with_logits, gradient of pos_weight": lambda t, f: f.binary_cross_entropy_with_logits(
        ones(t, 2), ones(t, 2), pos_weight=normal(t, 2)
    ),
    "soft_margin_loss, gradient of the target": lambda t, f: f.soft_margin_loss(ones(t, 3), normal(t, 3)),
    "kl_div, mean": lambda t, f: f.kl_div(normal(t, 3, 2), ones(t, 3, 2)),
    "kl_div, reduction": lambda t, f: f.kl_div(ones(t, 3), ones(t, 3), reduction="x"),
    "kl_div, size_average": lambda t, f: f.kl_div(normal(t, 3, 2), ones(t, 3, 2), size_average=False),
    "kl_div, target of zeros": lambda t, f: f.kl_div(normal(t, 3, 2), t.zeros(3, 2), reduction="sum"),
    "poisson_nll_loss, reduction": lambda t, f: f.poisson_nll_loss(ones(t, 3), ones(t, 3), reduction="x"),
    "gaussian_nll_loss, negative": lambda t, f: f.gaussian_nll_loss(ones(t, 3), ones(t, 3), -ones(t, 3)),
    "gaussian_nll_loss, negative number": lambda t, f: f.gaussian_nll_loss(ones(t, 3), ones(t, 3), -1.0),
    "gaussian_nll_loss, size": lambda t, f: f.gaussian_nll_loss(ones(t, 3), ones(t, 3), ones(t, 2)),
    "gaussian_nll_loss, reduction": lambda t, f: f.gaussian_nll_loss(ones(t, 3), ones(t, 3), 1.0, reduction="x"),
    "gaussian_nll_loss, small": lambda t, f: gradients(
        t, lambda x: f.gaussian_nll_loss(normal(t, 3), ones(t, 3), x * x * 1e-9), normal(t, 3)
    ),
    "cosine_embedding_loss, 1-D": lambda t, f: f.cosine_embedding_loss(ones(t, 3), ones(t, 3), ones(t, 3)),
    "cosine_embedding_loss, 2-D": lambda t, f: f.cosine_embedding_loss(ones(t, 3, 2), ones(t, 3, 2), t.tensor(1)),
    "cosine_embedding_loss, targets": lambda t, f: f.cosine_embedding_loss(ones(t, 3, 2), ones(t, 3, 2), ones(t, 3, 2)),
    "cosine_embedding_loss, zeros": lambda t, f: f.cosine_embedding_loss(
        t.zeros(2, 3), t.zeros(2, 3), t.tensor([1, -1]), reduction="none"
    ),
    "margin_ranking_loss, sizes": lambda t, f: f.margin_ranking_loss(ones(t, 3), ones(t, 3, 1), ones(t, 3)),
    "triplet_margin_loss, sizes": lambda t, f: f.triplet_margin_loss(ones(t, 3), ones(t, 3, 1), ones(t, 3)),
    "triplet_margin_loss, margin": lambda t, f: f.triplet_margin_loss(ones(t, 3), ones(t, 3), ones(t, 3), margin=-1),
    "triplet with distance, margin": lambda t, f: f.triplet_margin_with_distance_loss(
        ones(t, 3), ones(t, 3), ones(t, 3), margin=-1
    ),
    "triplet with distance": lambda t, f: f.triplet_margin_with_distance_loss(
        normal(t, 3, 2), ones(t, 3, 2), ones(t, 3, 2), distance_function=lambda a, b: ((a - b) ** 2).sum(-1)
    ),
    "multi_margin_loss, p": lambda t, f: f.multi_margin_loss(ones(t, 3, 2), t.tensor([0, 1, 1]), p=3),
    "one_hot, negative": lambda t, f: f.one_hot(t.tensor([-1])),
    "one_hot, too large": lambda t, f: f.one_hot(t.tensor([3]), 2),
    "one_hot, no class": lambda t, f: f.one_hot(t.tensor([1]), 0),
    "one_hot, floats": lambda t, f: f.one_hot(t.tensor([3.0])),
    "one_hot, int32": lambda t, f: f.one_hot(t.tensor([3]).int()),
    "one_hot, nothing": lambda t, f: f.one_hot(t.tensor([]).long()),
    "embedding, floats": lambda t, f: f.embedding(ones(t, 3), ones(t, 3, 2)),
    "embedding, too large": lambda t, f: f.embedding(t.tensor([3]), ones(t, 3, 2)),
    "embedding, negative": lambda t, f: f.embedding(t.tensor([-1]), ones(t, 3, 2)),
    "embedding, padding": lambda t, f: f.embedding(t.tensor([1]), ones(t, 3, 2), padding_idx=5),
    "embedding, weight": lambda t, f: f.embedding(t.tensor([1]), ones(t, 3)),
    "layer_norm, shape": lambda t, f: f.layer_norm(ones(t, 3, 2), (3,)),
    "layer_norm, number": lambda t, f: f.layer_norm(ones(t, 3, 2), 2),
    "layer_norm, no shape": lambda t, f: f.layer_norm(ones(t, 3, 2), ()),
    "layer_norm, weight": lambda t, f: f.layer_norm(ones(t, 3, 2), (2,), ones(t, 3)),
    "layer_norm, bias": lambda t, f: f.layer_norm(ones(t, 3, 2), (2,), None, ones(t, 3)),
    "layer_norm, dtype": lambda t, f: f.layer_norm(ones(t, 3, 2), (2,), ones(t, 2).double()),
    "layer_norm, integers": lambda t, f: f.layer_norm(t.ones(3, 2).long(), (2,)),
    "rms_norm, shape": lambda t, f: f.rms_norm(ones(t, 3, 2), (3,)),
    "rms_norm, weight": lambda t, f: f.rms_norm(ones(t, 3, 2), (2,), ones(t, 3)),
    "pad, odd": lambda t, f: f.pad(ones(t, 3), (1, 2, 3)),
    "pad, too many": lambda t, f: f.pad(ones(t, 3), (1, 2, 3, 4)),
    "pad, too much cut off": lambda t, f: f.pad(ones(t, 3), (-2, -2)),
    "pad, mode": lambda t, f: f.pad(ones(t, 1, 1, 3), (1, 2), mode="x"),
    "pad, reflect too far": lambda t, f: f.pad(ones(t, 1, 1, 3), (3, 0), mode="reflect"),
    "pad, around twice": lambda t, f: f.pad(ones(t, 1, 1, 3), (4, 0), mode="circular"),
    "pad, integers with a float": lambda t, f: f.pad(t.tensor([1, 2]), (1, 1), value=3.5),
    "normalize, no such dimension": lambda t, f: f.normalize(ones(t, 3)),
    "normalize, out": lambda t, f: f.normalize(ones(t, 3, 2), out=t.zeros(3, 2)),
    "cosine_similarity, shapes": lambda t, f: f.cosine_similarity(ones(t, 3, 2), ones(t, 3, 3)),
    "cosine_similarity, zeros": lambda t, f: f.cosine_similarity(t.zeros(3, 2), ones(t, 3, 2)),
    "pairwise_distance, shapes": lambda t, f: f.pairwise_distance(ones(t, 3, 2), ones(t, 3, 3)),
    "attention, mask and causal": lambda t, f: f.scaled_dot_product_attention(
        ones(t, 3, 2), ones(t, 3, 2), ones(t, 3, 2), ones(t, 3, 3), is_causal=True
    ),
    "attention, nothing to attend to": lambda t, f: f.scaled_dot_product_attention(
        normal(t, 3, 2), ones(t, 3, 2), ones(t, 3, 2), t.tensor([[True, False, True], [False] * 3, [True] * 3])
    ),
    "dropout, probability": lambda t, f: f.dropout(ones(t, 3), 1.5),
    "dropout, negative probability": lambda t, f: f.dropout(ones(t, 3), -0.5),
    "dropout1d, probability": lambda t, f: f.dropout1d(ones(t, 3, 3), 1.5),
    "dropout1d of 1-D": lambda t, f: f.dropout1d(ones(t, 3)),
    "alpha_dropout, probability": lambda t, f: f.alpha_dropout(ones(t, 3), 1.5),
    "rrelu of integers": lambda t, f: f.rrelu(t.tensor([1, -2]), training=True),
}

for _name in [
    "celu",
    "elu",
    "gelu",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "leaky_relu",
    "logsigmoid",
    "mish",
    "rrelu",
    "selu",
    "silu",
    "softplus",
    "glu",
]:
    PROGRAMS[f"{_name} of integers"] = lambda t, f, name=_name: getattr(f, name)(t.tensor([1, -2]))
for _name in ["hardtanh", "relu6", "softshrink"]:
    PROGRAMS[f"{_name} of truth values"] = lambda t, f, name=_name: getattr(f, name)(t.tensor([True]))
for _name in ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"]:
    PROGRAMS[f"{_name}, sizes that broadcast"] = lambda t, f, name=_name: getattr(f, name)(
        normal(t, 3, 1), normal(t, 3)
    )
    PROGRAMS[f"{_name}, sizes that do not"] = lambda t, f, name=_name: getattr(f, name)(normal(t, 3, 2), normal(t, 3))


@parametrize("name", PROGRAMS)
def test_results_errors_and_warnings(name: str) -> None:
    same_as_pytorch(lambda t: PROGRAMS[name](t, t.nn.functional))


# Gradients ----------------------------------------------------------------------------------------


def gradients(t: Any, f: Any, *inputs: Any) -> list[Any]:
    """Return a function's value, its gradients, and the gradients of a mixture of these."""
    out = f(*inputs)
    weights = t.linspace(-1, 2, out.numel(), dtype=out.dtype).reshape(out.shape)
    first = t.autograd.grad((out * weights).sum(), inputs, create_graph=True)
    mixed = sum((g * t.linspace(1, -2, g.numel(), dtype=g.dtype).reshape(g.shape)).sum() for g in first)
    if not mixed.requires_grad:
        second = [t.zeros_like(x) for x in inputs]
    else:
        second = t.autograd.grad(mixed, inputs, allow_unused=True, materialize_grads=True)
    return [out, *[g.detach() for g in first], *second]


def double(t: Any, *shape: int, seed: int = 0) -> Any:
    return t.tensor(np.random.default_rng(seed).standard_normal(shape)).requires_grad_()


CLASS_CASES = [
    (shape, ignored, reduction, weighted)
    for shape, ignored, reduction, weighted in itertools.product(
        [(5, 4), (2, 4, 3), (2, 4, 3, 2), (4,)], [None, -100, 1], ["mean", "sum", "none"], [False, True]
    )
]


@parametrize("name", ["nll_loss", "cross_entropy", "smoothed cross_entropy"])
@parametrize(("shape", "ignored", "reduction", "weighted"), CLASS_CASES, ids=str)
def test_losses_over_classes(
    name: str, shape: tuple[int, ...], ignored: int | None, reduction: str, weighted: bool
) -> None:
    labels = np.random.default_rng(1).integers(0, 4, shape[:1] + shape[2:] if len(shape) > 1 else ())
    if ignored is not None and labels.ndim:
        labels.reshape(-1)[::3] = ignored

    def program(t: Any) -> list[Any]:
        options: dict[str, Any] = {"reduction": reduction}
        if weighted:
            options["weight"] = t.tensor([0.5, 2.0, 0.0, 1.5], dtype=t.float64)
        if ignored is not None:
            options["ignore_index"] = ignored
        if name.startswith("smoothed"):
            options["label_smoothing"] = 0.2
        loss = getattr(t.nn.functional, name.removeprefix("smoothed "))
        return gradients(t, lambda x: loss(x, t.tensor(labels), **options), double(t, *shape))

    same_as_pytorch(program, 1e-9, 1e-12)


@parametrize("reduction", ["mean", "sum", "none"])
@parametrize("p", [1, 2])
def test_weighted_multi_margin_loss(reduction: str, p: int) -> None:
    def program(t: Any) -> list[Any]:
        x, weight = double(t, 5, 4), t.tensor([0.5, 2.0, 0.3, 1.5], dtype=t.float64)
        labels = t.tensor([3, 1, 0, 2, 3])
        loss = t.nn.functional.multi_margin_loss(x, labels, p, 0.8, weight, reduction=reduction)
        (loss * loss).sum().backward()
        return [loss, x.grad]

    same_as_pytorch(program, 1e-9, 1e-12)


@parametrize("reduction", ["mean", "sum", "none"])
@parametrize("smoothing", [0.0, 0.2])
def test_all_labels_ignored(reduction: str, smoothing: float) -> None:
    def program(t: Any) -> list[Any]:
        x = double(t, 3, 4)
        labels = t.tensor([-100, -100, -100])
        loss = t.nn.functional.cross_entropy(x, labels, reduction=reduction, label_smoothing=smoothing)
        loss.sum().backward()
        return [loss, x.grad]

    same_as_pytorch(program)


@parametrize("reduction", ["mean", "sum", "none"])
@parametrize("options", [{}, {"label_smoothing": 0.3}, {"ignore_index": 1}], ids=str)
@parametrize("name", ["cross_entropy", "nll_loss"])
def test_gradients_of_losses_over_classes_are_those_of_the_numbers(
    name: str, options: dict[str, Any], reduction: str
) -> None:
    if name == "nll_loss":
        options = {key: value for key, value in options.items() if key != "label_smoothing"}
    weight = tinytorch.tensor([0.5, 2.0, 0.3, 1.5], dtype=tinytorch.float64)
    labels = tinytorch.tensor([3, 1, 0])

    def loss(x: Any) -> Any:
        return getattr(functional, name)(x, labels, weight, reduction=reduction, **options)

    assert tinytorch.autograd.gradcheck(loss, (double(tinytorch, 3, 4),))
    assert tinytorch.autograd.gradgradcheck(loss, (double(tinytorch, 3, 4),))


@parametrize("reduction", ["mean", "sum", "none"])
def test_weighted_binary_cross_entropies(reduction: str) -> None:
    def program(t: Any) -> list[Any]:
        f, out = t.nn.functional, []
        x, y = (double(t, 3, 4), t.linspace(0.1, 0.9, 12, dtype=t.float64).reshape(3, 4).requires_grad_())
        wide, low = (t.linspace(0.5, 2, 4, dtype=t.float64), t.linspace(1, 3, 3, dtype=t.float64).reshape(3, 1))
        for weight in (wide, low):
            out += gradients(
                t, lambda x, y, w=weight: f.binary_cross_entropy(x.sigmoid(), y, w, reduction=reduction), x, y
            )
        for options in ({"weight": wide}, {"pos_weight": wide}, {"weight": low, "pos_weight": wide}):
            out += gradients(
                t, lambda x, y, o=options: f.binary_cross_entropy_with_logits(x, y, reduction=reduction, **o), x, y
            )
        return out

    same_as_pytorch(program, 1e-9, 1e-12)


def test_bce_with_logits_of_two_dtypes() -> None:
    """The result is of the target's dtype, and the gradient of the scores'."""

    def program(t: Any) -> Any:
        f, out = t.nn.functional, []
        kinds = (t.float64, t.float32, t.float16, t.bfloat16)
        for scores, targets, factor in itertools.product(kinds, kinds, (None, t.float32)):
            for options in ({}, {"reduction": "none"}, {"reduction": "sum"}):
                x = t.tensor([0.5, -0.5, 2.0], dtype=scores, requires_grad=True)
                y = t.tensor([0.0, 1.0, 0.5], dtype=targets)
                for name in () if factor is None else ("weight", "pos_weight"):
                    options = {**options, name: t.tensor([1.0, 2.0, 3.0], dtype=factor)}
                loss = f.binary_cross_entropy_with_logits(x, y, **options)
                loss.sum().backward()
                out.append((loss.dtype == targets, x.grad.dtype == scores))
                low = min(t.finfo(scores).bits, t.finfo(targets).bits) == 16
                out.append(None if low else (loss.double(), x.grad.double()))
        return out

    same_as_pytorch(program, 1e-5, 1e-6)


def test_the_weights_gradient_has_the_weights_layout() -> None:
    x, weight, bias = double(tinytorch, 2, 6, 4), double(tinytorch, 3, 4), double(tinytorch, 3)
    functional.linear(x, weight, bias).sum().backward()
    assert weight.grad.is_contiguous()
    np.testing.assert_allclose(bias.grad.numpy(), [12.0] * 3)


def test_linear_keeps_only_what_it_needs() -> None:
    x, weight = double(tinytorch, 2, 4), double(tinytorch, 3, 4)
    kept = functional.linear(x, weight.detach()).grad_fn.saved
    assert not any(item[0] is x for item in kept if isinstance(item, tuple))
    kept = functional.linear(x.detach(), weight).grad_fn.saved
    assert not any(item[0] is weight for item in kept if isinstance(item, tuple))


# In place -----------------------------------------------------------------------------------------

IN_PLACE = {
    "relu": {},
    "relu6": {},
    "threshold": {"threshold": 0.1, "value": 2.0},
    "hardtanh": {"min_val": -0.5},
    "hardsigmoid": {},
    "hardswish": {},
    "leaky_relu": {"negative_slope": 0.2},
    "rrelu": {"training": True},
    "elu": {"alpha": 0.7},
    "selu": {},
    "celu": {"alpha": 0.7},
    "silu": {},
    "mish": {},
    "dropout": {},
    "alpha_dropout": {"training": True},
    "dropout1d": {},
}


@parametrize("name", IN_PLACE)
def test_in_place(name: str) -> None:
    def program(t: Any) -> list[Any]:
        leaf = normal(t, 6, 5)
        x = leaf * 2
        out = getattr(t.nn.functional, name)(x, inplace=True, **IN_PLACE[name])
        assert out is x
        (out * out).sum().backward()
        return [x, leaf.grad]

    same_as_pytorch(program)
    same_as_pytorch(lambda t: getattr(t.nn.functional, name)(normal(t, 2, 3), inplace=True, **IN_PLACE[name]))


@parametrize(
    ("name", "args"),
    [
        ("relu_", ()),
        ("threshold_", (0.1, 2.0)),
        ("hardtanh_", (-0.5, 0.5)),
        ("leaky_relu_", (0.2,)),
        ("rrelu_", ()),
        ("elu_", (0.7,)),
        ("selu_", ()),
        ("celu_", (0.7,)),
    ],
)
def test_names_with_an_underscore(name: str, args: tuple[Any, ...]) -> None:
    def program(t: Any) -> list[Any]:
        x = normal(t, 3, 4).detach()
        return [getattr(t.nn.functional, name)(x, *args), x]

    same_as_pytorch(program)


# Random numbers -----------------------------------------------------------------------------------

RANDOM = {
    "dropout": lambda f, x: f.dropout(x),
    "dropout, rarely": lambda f, x: f.dropout(x, 0.1),
    "dropout, float64": lambda f, x: f.dropout(x.double(), 0.3),
    "dropout, transposed": lambda f, x: f.dropout(x.transpose(0, 2), 0.3),
    "dropout, sliced": lambda f, x: f.dropout(x[:, ::2], 0.3),
    "dropout, always": lambda f, x: f.dropout(x, 1.0),
    "dropout, never": lambda f, x: f.dropout(x, 0.0),
    "dropout1d": lambda f, x: f.dropout1d(x, 0.4),
    "dropout1d, one sample": lambda f, x: f.dropout1d(x[0], 0.4),
    "dropout2d": lambda f, x: f.dropout2d(x.unsqueeze(-1), 0.4),
    "dropout2d of 3-D": lambda f, x: f.dropout2d(x, 0.4),
    "dropout2d of 2-D": lambda f, x: f.dropout2d(x[0], 0.4),
    "dropout2d of 1-D": lambda f, x: f.dropout2d(x[0, 0], 0.4),
    "dropout2d, evaluation": lambda f, x: f.dropout2d(x.unsqueeze(-1), 0.4, False),
    "dropout3d": lambda f, x: f.dropout3d(x[..., None, None], 0.4),
    "dropout3d, one sample": lambda f, x: f.dropout3d(x[..., None], 0.4),
    "dropout3d of 2-D": lambda f, x: f.dropout3d(x[0], 0.4),
    "alpha_dropout": lambda f, x: f.alpha_dropout(x, 0.3, True),
    "alpha_dropout, always": lambda f, x: f.alpha_dropout(x, 1.0, True),
    "alpha_dropout, evaluation": lambda f, x: f.alpha_dropout(x, 0.3),
    "rrelu": lambda f, x: f.rrelu(x, training=True),
    "gumbel_softmax": lambda f, x: f.gumbel_softmax(x, 0.7),
    "gumbel_softmax, hard": lambda f, x: f.gumbel_softmax(x, hard=True, dim=1),
    "gumbel_softmax, eps": lambda f, x: f.gumbel_softmax(x, eps=1e-8),
    "attention with dropout": lambda f, x: f.scaled_dot_product_attention(x, x, x, dropout_p=0.4),
}


@parametrize("name", RANDOM)
def test_random_numbers_are_pytorchs(name: str) -> None:
    def program(t: Any) -> list[Any]:
        x = normal(t, 3, 8, 5)
        out = RANDOM[name](t.nn.functional, x)
        if out.requires_grad:
            (out * t.linspace(-1, 2, out.numel()).reshape(out.shape)).sum().backward()
        return [out, x.grad, t.rand(1)]

    same_as_pytorch(program, 1e-4, 1e-6)


def test_dropout_in_evaluation_is_its_input() -> None:
    x = normal(tinytorch, 3)
    assert functional.dropout(x, 0.5, False) is x
    assert functional.dropout(x, 0.0) is x


# Other dtypes, and what else there is -------------------------------------------------------------

HALF = {
    "linear": lambda t, f, x: f.linear(x, normal(t, 5, 4).half(), normal(t, 5).half()),
    "softmax": lambda t, f, x: f.softmax(x * 8, 1),
    "log_softmax": lambda t, f, x: f.log_softmax(x * 8, 1),
    "cross_entropy": lambda t, f, x: f.cross_entropy(x * 8, t.tensor([1, 2, 3])),
    "nll_loss": lambda t, f, x: f.nll_loss(x, t.tensor([1, 2, 3])),
    "mse_loss": lambda t, f, x: f.mse_loss(x * 50, -x),
    "leaky_relu": lambda t, f, x: f.leaky_relu(x, 0.5),
    "hardtanh": lambda t, f, x: f.hardtanh(x),
    "layer_norm": lambda t, f, x: f.layer_norm(x * 50, (4,)),
}


@parametrize("name", HALF)
def test_half_precision(name: str) -> None:
    def program(t: Any) -> list[Any]:
        x = normal(t, 3, 4).detach().half().requires_grad_()
        out = HALF[name](t, t.nn.functional, x)
        out.float().sum().backward()
        return [out, x.grad]

    same_as_pytorch(program, 2e-3, 2e-3)


def test_infinities_and_nan() -> None:
    def program(t: Any) -> list[Any]:
        f, inf, nan = t.nn.functional, float("inf"), float("nan")
        x = t.tensor([0.0, -0.0, inf, -inf, nan, 1e30, -1e30, 3.0, -3.0, 0.5, -0.5, 6.0, 20.0, 20.5])
        names = (
            "relu6 hardtanh hardsigmoid hardswish leaky_relu elu selu celu silu mish "
            "logsigmoid softplus "
            "softsign hardshrink softshrink"
        )
        out = []
        for name in names.split():
            leaf = x.clone().requires_grad_()
            y = getattr(f, name)(leaf)
            y.backward(t.ones_like(y))
            out += [y, leaf.grad]
        return out

    same_as_pytorch(program)


def test_embedding_scales_long_rows_down() -> None:
    def program(t: Any) -> list[Any]:
        out = []
        for norm in (1.0, 2.0):
            weight = normal(t, 5, 3).detach()
            out += [t.nn.functional.embedding(t.tensor([0, 3, 3]), weight, max_norm=0.7, norm_type=norm), weight]
        return out

    same_as_pytorch(program)


def test_gradients_of_an_embedding_that_are_not_those_of_the_numbers() -> None:
    def program(t: Any) -> list[Any]:
        f, numbers, weight = t.nn.functional, t.tensor([[0, 1, 1], [4, 1, 4]]), double(t, 5, 3)
        scaled = f.embedding(numbers, weight, -1, scale_grad_by_freq=True).sin()
        return [
            *gradients(t, lambda w: f.embedding(numbers, w, padding_idx=1).sin(), weight),
            # (PyTorch's second derivative forgets the scale.)
            t.autograd.grad(scaled.sum(), weight)[0],
        ]

    same_as_pytorch(program, 1e-9, 1e-12)


def test_names_of_the_nodes() -> None:
    def program(t: Any) -> list[str]:
        f, x, labels = t.nn.functional, normal(t, 3, 4), t.tensor([1, 2, 3])
        results = [
            f.linear(x, ones(t, 5, 4), ones(t, 5)),
            f.cross_entropy(x, labels),
            f.nll_loss(x, labels),
            f.mse_loss(x, ones(t, 3, 4)),
            f.smooth_l1_loss(x, ones(t, 3, 4)),
            f.huber_loss(x, ones(t, 3, 4)),
            f.softmax(x, 1),
            f.log_softmax(x, 1),
            f.gelu(x),
            f.silu(x),
            f.elu(x),
            f.selu(x),
            f.relu6(x),
            f.leaky_relu(x),
            f.logsigmoid(x),
            f.softplus(x),
            f.mish(x),
            f.hardswish(x),
            f.dropout(x),
            f.layer_norm(x, (4,)),
            f.binary_cross_entropy_with_logits(x, ones(t, 3, 4)),
            f.l1_loss(x, ones(t, 3, 4)),
        ]
        return [each.grad_fn.name() for each in results]

    same_as_pytorch(program)


def test_public_names_are_sorted_and_pytorchs() -> None:
    assert functional.__all__ == sorted(functional.__all__)


@parametrize("name", functional.__all__)
def test_every_public_name_is_in_pytorch(name: str) -> None:
    def program(t: Any) -> bool:
        return callable(getattr(t.nn.functional, name))

    same_as_pytorch(program)


UNUSUAL: dict[str, Callable[[Any], Any]] = {
    "one variance for all samples": lambda t: t.nn.functional.gaussian_nll_loss(
        double(t, 4, 3), double(t, 4, 3), t.full((1, 3), 0.5, dtype=t.float64)
    ),
    "one variance for a channel's neighbours": lambda t: t.nn.GaussianNLLLoss(reduction="none")(
        double(t, 2, 3, 4), double(t, 2, 3, 4), t.full((2, 1, 4), 0.5, dtype=t.float64)
    ),
    "variances of two lengths of 1": lambda t: t.nn.functional.gaussian_nll_loss(
        double(t, 2, 3, 4), double(t, 2, 3, 4), t.ones(1, 1, 4, dtype=t.float64)
    ),
    "batch_norm, eps 0 in training": lambda t: t.nn.functional.batch_norm(
        double(t, 4, 3), None, None, training=True, eps=0.0
    ),
    "batch_norm, negative eps": lambda t: t.nn.BatchNorm1d(3, eps=-1.0).eval()(t.zeros(4, 3)),
    "batch_norm, eps 0": lambda t: t.nn.BatchNorm1d(3, eps=0.0).eval()(t.ones(4, 3)),
    "fractional pool, samples of another dtype": lambda t: t.nn.FractionalMaxPool2d(
        2, output_ratio=0.5, _random_samples=t.full((1, 3, 2), 0.5, dtype=t.float64)
    )(t.ones(1, 3, 6, 6)),
    **{
        f"multi_margin_loss {shape} {labels} {dtype}": lambda t, shape=shape, labels=labels, dtype=dtype: (
            t.nn.functional.multi_margin_loss(t.ones(shape), t.zeros(labels, dtype=getattr(t, dtype)))
        )
        for shape, labels, dtype in [
            ((5, 4), (3,), "int64"), ((5, 4), (5, 1), "int64"), ((5,), (1,), "int64"), ((5,), (), "int64"),
            ((5,), (2,), "int64"), ((), (), "int64"), ((4, 0), (4,), "int64"),
            ((2, 3, 4), (2,), "int64"), ((1, 4), (), "int64"), ((2, 4), (2,), "int32"), ((2, 4), (2,), "float32"),
        ]
    },
    "multi_margin_loss, no such label": lambda t: t.nn.functional.multi_margin_loss(
        t.ones(2, 4), t.tensor([1, 4])
    ),
    "multi_margin_loss, too few weights": lambda t: t.nn.functional.multi_margin_loss(
        t.ones(2, 4), t.tensor([1, 3]), weight=t.ones(3)
    ),
}  # fmt: skip


@parametrize("name", UNUSUAL)
def test_unusual_arguments(name: str) -> None:
    same_as_pytorch(UNUSUAL[name])
