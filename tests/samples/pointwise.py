"""Samples of `tinytorch.ops.arithmetic`, `compare` and `transcendental`."""

import numpy as np

from tests.samples import Sample, booleans, distinct, integers, normal, sample, uniform

x, y = normal(3, 4), normal(3, 4, seed=1)
positive, bounded = uniform(3, 4, low=0.3, high=2.5), uniform(3, 4, low=-0.9, high=0.9)
away = np.where(np.abs(x) < 0.2, 0.5, x)  # from zero

# Functions of one tensor, with inputs in their domains; [0] and [1] in all: 0-d and empty.
UNARY = {
    "exp exp2 expm1 sin cos sinh cosh tanh sigmoid asinh atan erf erfc square neg positive sinc deg2rad rad2deg": x,
    "log log2 log10 sqrt rsqrt reciprocal": positive,
    "log1p": positive - 0.25,
    "tan asin acos atanh": bounded,
    "acosh": positive + 1.1,
    "abs sign sgn relu frac": away,
    "floor ceil trunc round": distinct(3, 4),
    "nan_to_num": x,
}
SAMPLES: list[Sample] = []
for names, inputs in UNARY.items():
    for name in names.split():
        for each in (inputs, inputs[0, 0][...], inputs[:0], integers(2, 3, low=1, high=3)):
            if name in ("asin", "acos", "atanh", "frac") and each.dtype == np.int64:
                continue  # outside the domain
            SAMPLES.append(Sample(name, (np.array(each),), in_place=each.dtype == np.float64 and name != "positive"))

# Functions of two, over ways to broadcast.
BINARY = {
    "add sub mul": (x, y),
    "div true_divide": (x, positive),
    "maximum minimum fmax fmin": (distinct(3, 4), distinct(3, 4, seed=3) + 0.07),
    "atan2 hypot logaddexp": (away, positive),
    "pow": (positive, y),
    "xlogy": (x, positive),
    "copysign": (away, np.where(np.abs(y) < 0.2, -0.5, y)),
    "remainder fmod floor_divide": (distinct(3, 4) * 5, positive + 1.4),
}
for names, (a, b) in BINARY.items():
    for name in names.split():
        in_place = name not in ("maximum", "minimum", "fmax", "fmin", "logaddexp", "xlogy")
        for left, right, kept in (
            (a, b, True), (a, b[0], True), (a[:, :1], b[:1], False), (a[0], b, False), (a, b[0, 0][...], True),
            (a[0, 0][...], b[0, 0][...], True), (a[:, :0], b[:, :0], True),
        ):  # fmt: skip
            SAMPLES.append(
                Sample(
                    name, (np.array(left), np.array(right)), backward=name != "floor_divide",
                    in_place=in_place and kept and name != "floor_divide",
                )
            )  # fmt: skip

for name in "add sub mul div floor_divide remainder fmod".split():
    SAMPLES += [
        Sample(name, (x, 2.5), backward=name != "floor_divide", in_place=name != "floor_divide"),
        Sample(name, (x, 3), backward=name != "floor_divide", in_place=name != "floor_divide"),
        sample(name, integers(3, 4), 3),
        sample(name, integers(3, 4), 2.5),
        sample(name, integers(3, 4), integers(4, low=1, high=5)),
        sample(name, integers(3, 4).astype(np.int32), integers(4, low=1, high=5)),
        Sample(name, (integers(3, 4, low=1), y[0]), backward=name != "floor_divide"),
    ]
SAMPLES += [Sample("pow", (positive, each), in_place=True) for each in (0, 1, 2, 3, 0.5, -1, -2, -0.5, 2.7)]
SAMPLES += [
    sample("pow", x, 3), Sample("pow", (np.array([0.0, 1.0, 2.0]), np.array([0.0, 2.0, 3.0])), gradcheck=False),
    sample("pow", integers(3), 2), sample("pow", integers(3, low=0), integers(3, low=0, high=4)), sample("pow", 2, y),
    sample("pow", integers(3, low=0), 0.5), sample("float_power", positive.astype(np.float64), 2.5),
    Sample("add", (x, y), {"alpha": 2.5}, in_place=True), Sample("sub", (x, y), {"alpha": 2}, in_place=True),
    sample("rsub", x, y), sample("rsub", x, y[0], alpha=2.5), sample("rsub", x, 2.5), sample("rsub", x, 3, alpha=2),
    sample("rsub", integers(3, 4), 2.5), sample("add", x, integers(4), alpha=2.5),
    sample("sub", integers(3, 4), integers(4), alpha=3), sample("xlogy", x, 1.5), sample("xlogy", 1.5, positive),
    Sample("div", (distinct(3, 4), positive), {"rounding_mode": "floor"}, in_place=True),
    Sample("div", (distinct(3, 4), positive), {"rounding_mode": "trunc"}, in_place=True),
    sample("div", integers(3, 4), 3, rounding_mode="trunc"), sample("div", integers(3, 4), 3, rounding_mode="floor"),
    Sample("round", (distinct(3, 4),), {"decimals": 1}, in_place=True),
    Sample("clamp", (distinct(3, 4), -0.6, 0.9), in_place=True),
    Sample("clamp", (distinct(3, 4),), {"min": -0.6}, in_place=True),
    Sample("clamp", (distinct(3, 4),), {"max": 0.6}, in_place=True),
    sample("clamp", distinct(3, 4), distinct(4, seed=2) - 0.57, distinct(3, 4, seed=3) + 0.63),
    sample("clamp", distinct(3, 4), distinct(4, seed=2) + 0.07),
    sample("clamp", distinct(3, 4), None, distinct(4, seed=2) + 0.07), sample("clamp", integers(3, 4), -2, 2),
    sample("clamp", integers(3, 4), -1.5), sample("clamp_min", distinct(3, 4), 0.1),
    sample("clamp_max", distinct(3, 4), 0.1), sample("clamp_min", distinct(3, 4), distinct(4, seed=2) + 0.07),
    sample("clamp_max", integers(3, 4), 1), sample("clamp_max", distinct(3, 4), distinct(4, seed=2) + 0.07),
    sample("clamp_min", integers(3, 4), 1.5), sample("nan_to_num", np.array([1.0, np.nan, np.inf, -np.inf])),
    sample("nan_to_num", np.array([1.0, np.nan, np.inf, -np.inf]), 7.0, 8.0, 9.0),
    Sample("lerp", (x, y, 0.3), in_place=True), Sample("lerp", (x, y, 0.7), in_place=True),
    Sample("lerp", (x, y, bounded), in_place=True), sample("lerp", x, y, np.array(0.6)),
    Sample("addcmul", (x, y, positive), {"value": 0.5}, in_place=True),
    Sample("addcdiv", (x, y, positive), {"value": 0.5}, in_place=True), sample("addcmul", x, y[0], positive[:, :1]),
    sample("addcdiv", x, y[0], positive[:, :1]),
]  # fmt: skip
# Where a function has no derivative, or is none: at bounds, at ties, of infinities, of NaN.
SPECIAL = np.array([-np.inf, -3.0, -2.0, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 2.0, 3.0, np.inf, np.nan])
pairs = [each.ravel() for each in np.meshgrid(SPECIAL, SPECIAL)]
SAMPLES += [Sample(name, (SPECIAL,), gradcheck=False) for names in UNARY for name in names.split()]
SAMPLES += [
    Sample(name, tuple(pairs), gradcheck=False, backward=name != "floor_divide")
    for names in BINARY
    for name in names.split()
    if name not in ("remainder", "fmod", "floor_divide")
]
SAMPLES += [
    Sample(name, args, gradcheck=False)
    for each in (-np.inf, -2, -0.5, 0, 0.5, 1, 2, 3, np.inf)
    for name, args in (("pow", (SPECIAL, each)), ("Tensor.__rpow__", (SPECIAL, each)))
]
SAMPLES += [
    Sample("clamp", (SPECIAL, *bounds), gradcheck=False)
    for bounds in ((-1.0, 2.0), (None, 0.5), (0.5,), (2.0, -1.0), (SPECIAL[::-1].copy(), np.ones(13)))
]
SAMPLES += [
    Sample("lerp", (*pairs, 0.3), gradcheck=False),
    Sample("lerp", (*pairs, 0.7), gradcheck=False),
    Sample("addcmul", (*pairs, pairs[0]), gradcheck=False),
    Sample("addcdiv", (*pairs, pairs[0]), gradcheck=False),
]
# Comparison and logic.
odd = np.array([1.0, np.nan, np.inf, -np.inf, 0.0, -0.0])
for name in "eq ne lt le gt ge logical_and logical_or logical_xor".split():
    SAMPLES += [
        sample(name, x, y[0]), sample(name, integers(3, 4), integers(4, seed=1)), sample(name, odd, odd[::-1].copy()),
        sample(name, booleans(3, 4), booleans(4)), sample(name, integers(3), x[0, :3]),
    ]  # fmt: skip
for name in "eq ne lt le gt ge".split():
    SAMPLES += [sample(name, x, 0.0), sample(name, integers(3, 4), 1), sample(name, integers(3, 4), 1.5)]
for name in "bitwise_and bitwise_or bitwise_xor".split():
    SAMPLES += [
        sample(name, integers(3, 4), integers(4, seed=1)), sample(name, booleans(3, 4), booleans(4, seed=1)),
        sample(name, integers(3, 4), 6),
    ]  # fmt: skip
SAMPLES += [
    sample("bitwise_not", integers(3)), sample("bitwise_not", booleans(3)), sample("logical_not", x),
    sample("logical_not", booleans(3)), sample("bitwise_left_shift", integers(3, low=0), 2),
    sample("bitwise_right_shift", integers(3, low=0), 1),
]  # fmt: skip
SAMPLES += [sample(name, odd) for name in "isnan isinf isfinite isposinf isneginf isreal signbit".split()]
SAMPLES += [
    sample("isclose", odd, odd), sample("isclose", odd, odd, equal_nan=True), sample("isclose", x, x + 1e-7),
    sample("allclose", x, x + 1e-9), sample("allclose", x, x + 1e-3), sample("allclose", x, x + 1e-3, atol=1e-2),
    sample("equal", x, x), sample("equal", x, y), sample("equal", x, x[0]),
]  # fmt: skip
