"""Samples of `tinytorch.ops.reduce`."""

import math

import numpy as np

import tinytorch
from tests.samples import Sample, booleans, distinct, integers, normal, sample, uniform

x, cube, vector, scalar = normal(3, 4), normal(2, 3, 4), normal(5), np.array(1.7)
none, hollow = np.zeros((0, 3)), np.zeros((2, 0, 3))
counts = integers(3, 4)
small = {kind: np.arange(6).reshape(2, 3).astype(kind) for kind in ("int32", "int8", "uint8", "bool")}
with_zeros = np.array([[0.0, 2.0, 3.0], [4.0, 0.0, 0.0], [1.5, 2.0, -3.0]])
with_nan = np.array([[1.0, np.nan, 3.0], [4.0, 2.0, 0.5]])
ties = np.array([[1.0, 3.0, 3.0], [3.0, 0.0, 0.0]])
large = normal(70, 60, seed=2) + 1  # beyond what is summed as it comes; the sum is not near 0
long = normal(1300, 2, seed=3)

SAMPLES: list[Sample] = []

# Where, over every way to say it: the arguments fit all reductions over several dimensions.
WHERE = [
    {}, {"dim": 0}, {"dim": -1}, {"dim": (0, 1)}, {"dim": [-1]}, {"dim": 0, "keepdim": True},
    {"dim": (-2, 1), "keepdim": True}, {"axis": 1}, {"axis": 0, "keepdims": True},
]  # fmt: skip
for name, inputs in {"sum mean nansum nanmean var std any all": x, "amax amin": distinct(3, 4)}.items():
    for each in name.split():
        SAMPLES += [Sample(each, (inputs,), where) for where in WHERE]
        SAMPLES += [sample(each, cube if each not in ("amax", "amin") else distinct(2, 3, 4), (0, 2))]
SAMPLES += [sample(name, value) for name in ("_is_all_true", "_is_any_true") for value in (counts > 0, hollow > 0)]
SAMPLES += [Sample("logsumexp", (x,), where) for where in WHERE if where]
SAMPLES += [Sample("count_nonzero", (with_zeros,), where) for where in WHERE if "keepdim" not in str(where)]
for name in ["sum", "mean", "prod", "max", "min", "argmax", "argmin", "median"]:
    for inputs in (distinct(3, 4), distinct(2, 3, 4)):
        SAMPLES += [sample(name, inputs, -1), sample(name, inputs, dim=1, keepdim=True), sample(name, inputs, axis=0)]
    SAMPLES += [sample(name, distinct(3, 4)), sample(name, scalar), sample(name, scalar, 0), sample(name, hollow, 0)]
for name in ["sum", "mean", "prod", "nansum", "any", "all", "logsumexp", "cumsum", "cumprod"]:
    SAMPLES += [Sample(name, (none, 0), gradcheck=name != "mean"), sample(name, none, 1)]
for name in ["sum", "mean", "prod", "amax", "amin", "nansum", "norm", "any", "all"]:
    SAMPLES += [sample(name, scalar), sample(name, vector)]
for name in ["sum", "mean", "amax", "any", "all", "count_nonzero"]:
    SAMPLES.append(sample(name, distinct(2, 3, 4), dim=()))

# Hashes: NumPy's names of the arguments are not PyTorch's here.
for where in WHERE:
    if not {"axis", "keepdims"} & {*where}:
        SAMPLES += [Sample("hash_tensor", (inputs,), where) for inputs in (x, with_nan, counts)]
SAMPLES += [sample("hash_tensor", inputs) for inputs in (scalar, vector, cube, ties, *small.values())]
SAMPLES += [sample("hash_tensor", cube, (0, 2), mode=0), sample("hash_tensor", hollow, 0)]

# Integers and booleans.
for kind, inputs in small.items():
    names = "sum prod cumsum cumprod any all count_nonzero nansum max min amax amin"
    for name in names.split():
        given = () if name not in ("cumsum", "cumprod") else (1,)
        SAMPLES.append(sample(name, inputs, *given))
        if kind != "bool":
            SAMPLES.append(sample(name, inputs, 0))
    if kind != "bool":
        SAMPLES += [sample(name, inputs, 1) for name in ("argmax", "argmin", "median")]
    SAMPLES.append(sample("logsumexp", inputs, 1))
SAMPLES += [
    sample("sum", counts, 1, dtype=tinytorch.float32),
    sample("sum", x, dtype=tinytorch.float64),
    sample("sum", x, (0, 1), True, dtype=tinytorch.float64),
    sample("mean", counts, dtype=tinytorch.float64),
    sample("prod", counts, 0, dtype=tinytorch.float32),
    sample("prod", counts, dtype=tinytorch.int32),
    sample("cumsum", counts, 0, dtype=tinytorch.float32),
    sample("cumprod", counts, 0, dtype=tinytorch.float64),
    sample("nansum", with_nan, dtype=tinytorch.float64),
    sample("nanmean", with_nan, dtype=tinytorch.float64),
]

# Sums that are long: in blocks, along every axis.
for where in ({}, {"dim": 0}, {"dim": 1}, {"dim": 1, "keepdim": True}):
    SAMPLES += [Sample("sum", (each,), where, rtol=1e-8, atol=1e-10) for each in (large, long)]
stack = normal(5, 70, 6, seed=4)
for dim in (0, 1, 2, (0, 1), (0, 2), (1, 2), (2, 0)):
    SAMPLES.append(Sample("sum", (stack, dim), {"keepdim": dim == (0, 2)}, rtol=1e-8, atol=1e-10))
SAMPLES += [Sample("mean", (large, 0)), Sample("var", (large, 0)), Sample("norm", (large,))]

# Sums to a size.
for size in ((3, 4), (1, 4), (4,), (3, 1), (1, 1), (1,), ()):
    SAMPLES.append(sample("Tensor.sum_to_size", x, size))
SAMPLES += [sample("Tensor.sum_to_size", cube, 3, 1), sample("Tensor.sum_to_size", cube, [2, 1, 4])]

# Products with zeros: none, one and two in a row.
for name in ("prod", "cumprod"):
    SAMPLES += [sample(name, with_zeros, dim) for dim in (0, 1)]
    SAMPLES += [sample(name, cube, dim) for dim in (0, 1, -1)] + [sample(name, scalar, 0)]
SAMPLES += [sample("prod", with_zeros), sample("prod", with_zeros[0]), sample("prod", np.array(0.0))]
SAMPLES += [sample("prod", with_zeros, 1, True), sample("prod", hollow), sample("cumprod", hollow, 1)]
SAMPLES += [sample("cumsum", cube, dim) for dim in (0, 1, -1)] + [sample("cumsum", scalar, -1)]
SAMPLES += [sample("cumsum", x, axis=1), sample("cumsum", hollow, 1), sample("cumsum", booleans(3, 4), 0)]

# Extremes.
SAMPLES += [
    sample("max", x, normal(4, seed=5)), sample("min", x, other=normal(3, 4, seed=5)),
    sample("max", counts, x), sample("max", distinct(3, 4), dim=1, keepdim=False),
    sample("aminmax", distinct(3, 4)), sample("aminmax", distinct(3, 4), dim=1),
    sample("aminmax", distinct(3, 4), dim=0, keepdim=True), sample("aminmax", scalar),
    sample("argmax", distinct(3, 4), keepdim=True), sample("argmin", distinct(3, 4), 0, True),
    sample("argmax", with_nan), sample("argmin", with_nan, 1), sample("argmax", ties, 1),
]  # fmt: skip
for name in ["cummax", "cummin"]:
    SAMPLES += [sample(name, distinct(3, 4), dim) for dim in (0, -1)] + [sample(name, scalar, 0)]
    SAMPLES += [sample(name, counts, 1), Sample(name, (with_nan, 1), gradcheck=False)]
# At ties the gradient is shared: PyTorch agrees, differences do not exist there.
for name in ["max", "min", "amax", "amin", "median"]:
    SAMPLES.append(Sample(name, (with_nan,), gradcheck=False))
for name in ["max", "min", "median", "nanmedian"]:
    SAMPLES.append(Sample(name, (with_nan, 1), gradcheck=False))
SAMPLES += [Sample("nanmedian", (with_nan,), gradcheck=False), sample("nanmedian", distinct(3, 4))]
SAMPLES += [sample("nanmedian", distinct(3, 4), 1, True), sample("nanmedian", distinct(5), 0)]
SAMPLES += [Sample("median", (none,), gradcheck=False), sample("nanmedian", scalar), sample("median", distinct(6), 0)]
SAMPLES += [Sample(name, (with_nan, 1), gradcheck=False) for name in ("nansum", "nanmean")]
SAMPLES += [Sample(name, (with_nan,), gradcheck=False) for name in ("nansum", "nanmean", "sum", "mean", "prod")]

# Moments.
for name in ["var", "std", "var_mean", "std_mean"]:
    SAMPLES += [
        sample(name, x), sample(name, x, 0), sample(name, x, 0, False), sample(name, x, False),
        sample(name, x, unbiased=False), sample(name, x, 1, True, True),
        sample(name, x, correction=2),
        sample(name, x, dim=(0, 1), correction=0, keepdim=True),
        sample(name, cube, (0, 2), correction=0.5),
        sample(name, x, axis=1, keepdims=True), sample(name, x, None, unbiased=True),
    ]  # fmt: skip

# Norms.
away = np.where(np.abs(x) < 0.2, 0.5, x)
for p in (1, 2, 3, 3.5, 1.5, 0.5, -1, "fro", None, 2.0):
    for given in ((), (0,), ((0, 1), True), (-1, True)):
        SAMPLES.append(sample("norm", away, p, *given))
for p in (math.inf, -math.inf):
    SAMPLES += [sample("norm", distinct(3, 4), p, *given) for given in ((), (1,), ((0, 1), True))]
SAMPLES += [
    sample("norm", away, 0), sample("norm", with_zeros, 0, 1), sample("norm", away, dim=1),
    sample("norm", none),
    sample("norm", none, math.inf, 1), sample("norm", away, p=1, dim=(0, 1), keepdim=True),
    sample("norm", away, dtype=tinytorch.float64), sample("norm", scalar, 1),
]  # fmt: skip
SAMPLES += [
    sample("logsumexp", np.array([1000.0, 1000.0, -1000.0]), 0), sample("logsumexp", cube, (0, 2)),
    Sample("logsumexp", (np.array([-math.inf, -math.inf]), 0), gradcheck=False),
    Sample("logsumexp", (np.array([math.inf, 1.0]), 0), gradcheck=False),
    sample("logsumexp", uniform(3, 4), 1, True),
]  # fmt: skip
