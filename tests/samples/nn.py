"""Samples of `ops.nn` and `nn.functional`.

Weights of classes and elements that cannot require grad are in `tests/nn/test_functional.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.samples import Sample, booleans, distinct, integers, normal, sample, uniform

F = "nn.functional."


def labels(*shape: int, classes: int, ignored: int | None = None) -> np.ndarray:
    """Return class labels, some of them `ignored`."""
    found = integers(*shape, low=0, high=classes)
    return found if ignored is None else np.where(np.arange(found.size).reshape(shape) % 3 == 1, ignored, found)


def probabilities(*shape: int, dim: int = 1) -> np.ndarray:
    """Return positive numbers that add up to 1 along `dim`."""
    raw = uniform(*shape, low=0.1)
    return np.round(raw / raw.sum(dim, keepdims=True), 12)  # the same on every processor


def signs(*shape: int) -> np.ndarray:
    """Return 1.0 and -1.0."""
    return np.where(booleans(*shape), 1.0, -1.0)


def at(name: str, *args: Any, **kwargs: Any) -> Sample:
    """Return a sample of a function of `nn.functional`."""
    return sample(F + name, *args, **kwargs)


LINEAR = [
    at("linear", normal(4, 3), normal(5, 3), normal(5)),
    at("linear", normal(4, 3), normal(5, 3)),
    at("linear", normal(3), normal(5, 3), normal(5)),
    at("linear", normal(2, 4, 3), normal(5, 3), normal(5)),
    at("linear", normal(2, 1, 2, 3), normal(5, 3)),
    at("linear", normal(4, 3), normal(3)),
    at("linear", normal(3), normal(3)),
    at("linear", normal(2, 4, 3), normal(3)),
    at("linear", normal(4, 3), normal(5, 3), normal(1)),
    at("linear", normal(4, 3), normal(5, 3), normal()),
    at("linear", normal(4, 3), normal(5, 3), normal(1, 5)),
    at("linear", normal(0, 3), normal(5, 3), normal(5)),
    at("linear", normal(2, 0), normal(5, 0), normal(5)),
    at("linear", normal(0, 2, 3), normal(5, 3), normal(5)),
    at("linear", normal(4, 3), normal(1, 3), normal(1)),
    at("bilinear", normal(4, 3), normal(4, 2), normal(5, 3, 2), normal(5)),
    at("bilinear", normal(2, 4, 3), normal(2, 4, 2), normal(5, 3, 2)),
    at("bilinear", normal(3), normal(2), normal(5, 3, 2)),
]

# `distinct` numbers are a/4 + 0.075: never at a kink of the functions below.
WIDE = distinct(6, 8)  # from about -6 to 6
SPECIAL = np.array([-np.inf, -7, -6, -3, -1, -0.5, -0.0, 0.0, 0.5, 1, 3, 6, 7, 20, 21, np.inf, np.nan])
ACTIVATIONS = [
    case
    for name, variants in {
        "relu": [{}],
        "relu6": [{}],
        "hardtanh": [{}, {"min_val": -2.0, "max_val": 0.5}],
        "hardsigmoid": [{}],
        "hardswish": [{}],
        "leaky_relu": [{}, {"negative_slope": 0.2}, {"negative_slope": 1.5}, {"negative_slope": -0.3}],
        "rrelu": [{}, {"lower": 0.1, "upper": 0.5}],
        "elu": [{}, {"alpha": 0.5}],
        "selu": [{}],
        "celu": [{}, {"alpha": 0.5}, {"alpha": 2.0}],
        "silu": [{}],
        "mish": [{}],
        "gelu": [{}, {"approximate": "tanh"}],
        "softsign": [{}],
        "tanhshrink": [{}],
        "tanh": [{}],
        "sigmoid": [{}],
        "logsigmoid": [{}],
        "softplus": [{}, {"beta": 2.0}, {"beta": 3.0, "threshold": 5.0}],
        "hardshrink": [{}, {"lambd": 1.0}],
        "softshrink": [{}, {"lambd": 1.0}, {"lambd": 0.0}],
        "threshold": [{"threshold": 0.3, "value": 2.0}, {"threshold": -1.0, "value": -5.0}],
    }.items()
    for variant in variants
    for case in (
        # The tail of gelu is a difference of nearly equal numbers.
        Sample(F + name, (WIDE,), variant, atol=1e-10 if name == "gelu" else 1e-11),
        at(name, np.array(0.4), **variant),
        at(name, np.array(-1.3), **variant),
        at(name, normal(0, 3), **variant),
    )
] + [
    sample(F + "softplus", np.array([100.0, -100.0, 1000.0])),
    sample(F + "logsigmoid", np.array([800.0, -800.0])),
    sample(F + "elu", np.array([800.0, -800.0])),
    sample(F + "mish", np.array([800.0, -800.0, 19.0])),
    # At their kinks, of infinities and NaN:
    *[
        Sample(F + name, (SPECIAL,), kwargs, gradcheck=False)
        for name in """
            celu elu hardshrink hardsigmoid hardswish hardtanh leaky_relu logsigmoid mish relu relu6 rrelu selu silu
            softplus softshrink softsign tanhshrink threshold
        """.split()
        for kwargs in ({"threshold": 1.0, "value": 5.0} if name == "threshold" else {},)
    ],
    Sample(F + "leaky_relu", (SPECIAL, 0.0), gradcheck=False),
    Sample(F + "prelu", (SPECIAL, np.array([0.25])), gradcheck=False),
    Sample(F + "glu", (SPECIAL[:, None].repeat(2, 1),), gradcheck=False),
    Sample(F + "gelu", (SPECIAL[1:-2],), atol=1e-10),
    at("relu", integers(3, 4)),
    at("relu6", integers(3, 4)),
    at("hardtanh", integers(3, 4), -2, 2),
    at("threshold", integers(3, 4), 1, 5),
    at("softsign", integers(3, 4)),
    at("tanhshrink", integers(3, 4)),
    at("glu", normal(3, 4)),
    at("glu", normal(4, 3), 0),
    at("glu", normal(2, 4, 3), dim=-2),
    at("glu", normal(0, 4)),
    at("prelu", distinct(3, 4), normal(1)),
    at("prelu", distinct(3, 4), normal(4)),
    at("prelu", distinct(2, 3, 4), normal(3)),
    at("prelu", distinct(5), normal(1)),
    at("prelu", np.array(-1.3), normal(1)),
    at("prelu", distinct(3, 4), normal()),
    at("prelu", normal(0, 4), normal(4)),
    sample("prelu", distinct(3, 4), normal(4)),
    sample("celu", WIDE, 0.5),
    sample("selu", WIDE),
    sample("threshold", WIDE, 0.3, 2.0),
    sample("hardshrink", WIDE),
    sample("Tensor.prelu", distinct(3, 4), normal(4)),
    sample("Tensor.hardshrink", WIDE, 1.0),
]

SOFTMAX = [
    case
    for name in ("softmax", "log_softmax", "softmin")
    for case in (
        at(name, normal(3, 4), dim=1),
        at(name, normal(3, 4), dim=0),
        at(name, normal(2, 3, 4), dim=-2),
        at(name, 100 * normal(3, 4), dim=-1),
        at(name, normal(), dim=0),
        at(name, normal(), dim=-1),
        at(name, normal(1), dim=0),
        at(name, normal(0), dim=0),
        at(name, normal(3, 0), dim=1),
        at(name, normal(0, 3), dim=1),
    )
] + [
    case
    for name in ("softmax", "log_softmax")
    for case in (
        sample(name, normal(3, 4), 1),
        sample(name, normal(3, 4), dim=-2),
        sample(f"Tensor.{name}", normal(3, 4), -1),
        sample(f"Tensor.{name}", normal(3, 4), dim=0),
        Sample(F + name, (np.array([[0.0, -np.inf], [-np.inf, -np.inf]]),), {"dim": 1}, gradcheck=False),
    )
]

CLASSES = [
    case
    for name in ("cross_entropy", "nll_loss")
    for reduction in ("mean", "sum", "none")
    for case in (
        at(name, normal(5, 4), labels(5, classes=4), reduction=reduction),
        at(name, normal(5, 4), labels(5, classes=4, ignored=-100), reduction=reduction),
        at(name, normal(5, 4), labels(5, classes=4, ignored=2), ignore_index=2, reduction=reduction),
        at(name, normal(2, 4, 3), labels(2, 3, classes=4), reduction=reduction),
        at(name, normal(2, 4, 3, 2, 1), labels(2, 3, 2, 1, classes=4), reduction=reduction),
        at(name, normal(4), labels(classes=4), reduction=reduction),
        at(name, normal(5, 4), labels(5, classes=4).astype(np.uint8), reduction=reduction),
        Sample(F + name, (normal(0, 4), labels(0, classes=4)), {"reduction": reduction}, gradcheck=False),
        Sample(F + name, (normal(2, 4), np.array([-100, -100])), {"reduction": reduction}, gradcheck=False),
    )
] + [
    case
    for reduction in ("mean", "sum", "none")
    for case in (
        at("cross_entropy", normal(5, 4), labels(5, classes=4), label_smoothing=0.1, reduction=reduction),
        at("cross_entropy", normal(5, 4), labels(5, classes=4), label_smoothing=1.0, reduction=reduction),
        at(
            "cross_entropy",
            normal(5, 4),
            labels(5, classes=4, ignored=-1),
            ignore_index=-1,
            label_smoothing=0.3,
            reduction=reduction,
        ),
        at("cross_entropy", normal(2, 4, 3, 2), labels(2, 3, 2, classes=4), reduction=reduction),
        at("cross_entropy", normal(2, 4, 3), labels(2, 3, classes=4), label_smoothing=0.2, reduction=reduction),
        at("cross_entropy", normal(4), labels(classes=4), label_smoothing=0.2, reduction=reduction),
        at("cross_entropy", 100 * normal(5, 4), labels(5, classes=4), reduction=reduction),
        at("cross_entropy", normal(5, 4), probabilities(5, 4), reduction=reduction),
        at("cross_entropy", normal(5, 4), probabilities(5, 4), uniform(4), reduction=reduction),
        at(
            "cross_entropy",
            normal(2, 4, 3),
            probabilities(2, 4, 3),
            uniform(4),
            label_smoothing=0.1,
            reduction=reduction,
        ),
        at("cross_entropy", normal(4), probabilities(4, dim=0), reduction=reduction),
    )
]

ELEMENTS = (
    [
        case
        for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
        for reduction in ("mean", "sum", "none")
        for case in (
            at(name, distinct(3, 4), distinct(3, 4, seed=1) + 0.1, reduction=reduction),
            at(name, normal(), np.array(0.2), reduction=reduction),
            Sample(F + name, (normal(0, 3), normal(0, 3)), {"reduction": reduction}, gradcheck=False),
        )
    ]
    + [
        case
        for reduction in ("mean", "sum", "none")
        for case in (
            at("mse_loss", normal(3, 4), normal(3, 4, seed=1), reduction=reduction, weight=uniform(3, 4)),
            at("l1_loss", distinct(3, 4), distinct(3, 4, seed=1) + 0.1, reduction=reduction, weight=uniform(3, 4)),
            at("huber_loss", distinct(3, 4), distinct(3, 4, seed=1) + 0.1, reduction, 0.7, uniform(3, 4)),
            at("smooth_l1_loss", distinct(3, 4), distinct(3, 4, seed=1) + 0.1, reduction=reduction, beta=0.7),
            at("smooth_l1_loss", distinct(3, 4), distinct(3, 4, seed=1) + 0.1, reduction=reduction, beta=0.0),
            at("huber_loss", distinct(3, 4), distinct(3, 4, seed=1) + 0.1, reduction=reduction, delta=2.0),
            at("binary_cross_entropy", uniform(3, 4, low=0.1, high=0.9), uniform(3, 4, seed=1), reduction=reduction),
            Sample(
                F + "binary_cross_entropy",
                (np.array([0.0, 1.0, 0.0, 1.0]), np.array([0.0, 1.0, 1.0, 0.0])),
                {"reduction": reduction},
                gradcheck=False,
            ),
            at("binary_cross_entropy_with_logits", normal(3, 4), uniform(3, 4), reduction=reduction),
            at("soft_margin_loss", normal(3, 4), np.where(booleans(3, 4), 1, -1), reduction=reduction),
            *[
                Sample(F + name, (SPECIAL, SPECIAL[::-1].copy()), {"reduction": reduction}, gradcheck=False)
                for name in ("huber_loss", "l1_loss", "mse_loss", "smooth_l1_loss")
            ],
            at("poisson_nll_loss", normal(3, 4), uniform(3, 4, high=4.0), reduction=reduction),
            at("poisson_nll_loss", normal(3, 4), uniform(3, 4, high=4.0), full=True, reduction=reduction),
            at("poisson_nll_loss", uniform(3, 4, low=0.5), uniform(3, 4), log_input=False, reduction=reduction),
            at("gaussian_nll_loss", normal(3, 4), normal(3, 4, seed=1), uniform(3, 4, low=0.2), reduction=reduction),
            at("gaussian_nll_loss", normal(3, 4), normal(3, 4, seed=1), uniform(3, low=0.2), reduction=reduction),
            at(
                "gaussian_nll_loss",
                normal(3, 4),
                normal(3, 4, seed=1),
                uniform(3, 1, low=0.2),
                True,
                reduction=reduction,
            ),
            at("gaussian_nll_loss", normal(3, 4), normal(3, 4, seed=1), 0.5, reduction=reduction),
            at("cosine_embedding_loss", normal(3, 4), normal(3, 4, seed=1), signs(3), reduction=reduction),
            at("cosine_embedding_loss", normal(4), normal(4, seed=1), np.array(-1.0), -0.9, reduction=reduction),
            at("margin_ranking_loss", normal(3), normal(3, seed=1), signs(3), 0.1, reduction=reduction),
            at("hinge_embedding_loss", distinct(3, 4), signs(3, 4), 1.0, reduction=reduction),
            at("triplet_margin_loss", normal(3, 4), normal(3, 4, seed=1), normal(3, 4, seed=2), reduction=reduction),
            at(
                "triplet_margin_loss",
                normal(3, 4),
                normal(3, 4, seed=1),
                normal(3, 4, seed=2),
                2.0,
                3,
                swap=True,
                reduction=reduction,
            ),
            at(
                "triplet_margin_with_distance_loss",
                normal(3, 4),
                normal(3, 4, seed=1),
                normal(3, 4, seed=2),
                reduction=reduction,
            ),
            at("multi_margin_loss", normal(5, 4), labels(5, classes=4), reduction=reduction),
            at("multi_margin_loss", normal(5, 4), labels(5, classes=4), 2, 0.7, reduction=reduction),
            at("multi_margin_loss", normal(4), labels(classes=4), reduction=reduction),
            at(
                "multilabel_margin_loss",
                normal(3, 4),
                np.array([[3, 0, -1, 1], [1, 2, 0, 3], [-1, 0, 0, 0]]),
                reduction=reduction,
            ),
            at("multilabel_soft_margin_loss", normal(3, 4), booleans(3, 4).astype(float), reduction=reduction),
            at(
                "multilabel_soft_margin_loss",
                normal(3, 4),
                booleans(3, 4).astype(float),
                uniform(4),
                reduction=reduction,
            ),
        )
    ]
    + [
        case
        for reduction in ("sum", "none", "batchmean")
        for case in (
            at("kl_div", normal(3, 4), probabilities(3, 4), reduction=reduction),
            at("kl_div", normal(3, 4), np.round(np.log(probabilities(3, 4)), 12), reduction=reduction, log_target=True),
        )
    ]
    + [at("kl_div", normal(), uniform(), reduction="batchmean")]
)

OTHERS = [
    at("normalize", normal(3, 4)),
    at("normalize", normal(3, 4), p=1.0, dim=0),
    at("normalize", normal(3, 4), p=3.0, dim=-1),
    Sample(F + "normalize", (np.zeros((2, 3)),), gradcheck=False),
    at("cosine_similarity", normal(3, 4), normal(3, 4, seed=1)),
    at("cosine_similarity", normal(3, 4), normal(4), dim=-1),
    at("cosine_similarity", normal(3, 4), normal(3, 1), dim=0),
    sample("cosine_similarity", normal(3, 4), normal(3, 4, seed=1), 0),
    at("pairwise_distance", normal(3, 4), normal(3, 4, seed=1)),
    at("pairwise_distance", normal(3, 4), normal(4), 1.0, 1e-3, True),
    at("pairwise_distance", normal(4), normal(4, seed=1), p=3.0),
    sample("pairwise_distance", normal(3, 4), normal(3, 4, seed=1)),
    at("one_hot", labels(5, classes=4)),
    at("one_hot", labels(2, 3, classes=4), 6),
    at("one_hot", labels(classes=4)),
    at("one_hot", labels(0, classes=4), 3),
    at("embedding", labels(2, 3, classes=5), normal(5, 3)),
    at("embedding", labels(classes=5), normal(5, 3)),
    at("embedding", labels(0, classes=5), normal(5, 3)),
    at("embedding", np.array([3, 0, 3], dtype=np.int32), normal(5, 3)),
    at("layer_norm", normal(3, 4), [4]),
    at("layer_norm", normal(3, 4), [4], normal(4), normal(4, seed=1)),
    at("layer_norm", normal(2, 3, 4), [3, 4], normal(3, 4), normal(3, 4, seed=1), 0.1),
    at("layer_norm", normal(2, 3, 4), [4], normal(4)),
    at("layer_norm", normal(4), [4], None, normal(4, seed=1)),
    at("layer_norm", normal(0, 4), [4], normal(4), normal(4, seed=1)),
    at("rms_norm", normal(3, 4), [4]),
    at("rms_norm", normal(2, 3, 4), [3, 4], normal(3, 4), 0.1),
    at("pad", normal(3, 4), (1, 2)),
    at("pad", normal(3, 4), (1, 0, 2, 1), value=1.5),
    at("pad", normal(3, 4), (-1, 2, 0, -1), "constant", 0.5),
    at("pad", normal(3, 4), ()),
    at("pad", normal(0, 3), (1, 1, 1, 1)),
    at("pad", integers(3), (1, 2), value=7),
    at("pad", normal(2, 3, 4), (1, 2), mode="reflect"),
    at("pad", normal(2, 3, 4), (3, 1), mode="replicate"),
    at("pad", normal(2, 3, 4), (3, 1), mode="circular"),
    at("pad", normal(1, 2, 4, 5), (1, 2, 3, 1), mode="reflect"),
    at("pad", normal(1, 2, 4, 5), (1, 2, 3, 1), mode="replicate"),
    at("scaled_dot_product_attention", normal(2, 3, 4), normal(2, 5, 4), normal(2, 5, 2)),
    at("scaled_dot_product_attention", normal(2, 3, 4), normal(2, 3, 4, seed=1), normal(2, 3, 2), is_causal=True),
    at("scaled_dot_product_attention", normal(2, 3, 4), normal(2, 5, 4), normal(2, 5, 2), normal(3, 5)),
    at(
        "scaled_dot_product_attention",
        normal(2, 3, 4),
        normal(2, 5, 4),
        normal(2, 5, 2),
        np.tri(3, 5, dtype=bool),
        scale=0.3,
    ),
    at("scaled_dot_product_attention", normal(1, 4, 3, 2), normal(1, 2, 5, 2), normal(1, 2, 5, 2), enable_gqa=True),
    at("dropout", normal(3, 4), 0.5, False),
    at("dropout", normal(3, 4), 0.0),
    at("dropout", normal(3, 4), 1.0),
]

SAMPLES: list[Sample] = LINEAR + ACTIVATIONS + SOFTMAX + CLASSES + ELEMENTS + OTHERS
