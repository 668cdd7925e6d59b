"""Samples of `tinytorch.ops.statistics`."""

import numpy as np

from tests.samples import Sample, booleans, distinct, integers, normal, sample, uniform

d, few = distinct(3, 5), integers(4, 6, low=0, high=3)
grid = normal(3, 4, 5)
holes = d.copy()
holes[0, 1] = holes[2, 0] = holes[2, 4] = np.nan
s = np.array(1.5)

SAMPLES: list[Sample] = []
# One element along a dimension.
for dim in (0, 1, -1):
    SAMPLES += [
        sample("kthvalue", d, 2, dim),
        sample("kthvalue", d, 3, dim, keepdim=True),
        Sample("mode", (few.astype(np.float64), dim), gradcheck=False),
        sample("mode", few, dim, keepdim=True),
    ]
SAMPLES += [
    sample("kthvalue", d, 4),
    sample("kthvalue", d, k=1, axis=0, keepdims=True),
    sample("kthvalue", s, 1),
    sample("kthvalue", np.zeros((0, 3)), 2),
    sample("kthvalue", np.array([5, 3, 9]), 3),
    Sample("kthvalue", (np.array([3.0, np.nan, 2.0]), 3), gradcheck=False),
    sample("mode", d),
    sample("mode", s),
    sample("mode", booleans(7)),
    sample("mode", np.zeros((0, 3))),
]
# Quantiles.
for how in ("linear", "lower", "higher", "midpoint", "nearest"):
    SAMPLES += [
        sample("quantile", d, 0.3, interpolation=how),
        sample("quantile", d, np.array([0.11, 0.4, 0.93]), 0, interpolation=how),
        sample("quantile", d, np.array(0.62), -1, True, interpolation=how),
        Sample("quantile", (holes, 0.3, 1), {"interpolation": how}, gradcheck=False),
        Sample(
            "nanquantile", (holes, np.array([0.11, 0.83]), 1), {"interpolation": how, "keepdim": True}, gradcheck=False
        ),
    ]
SAMPLES += [
    sample("quantile", d, np.array([0.2, 0.7]), keepdim=True),
    sample("quantile", s, 0.4),
    sample("quantile", s, 0.4, 0, keepdim=True),
    sample("quantile", d, 1, 0),
    sample("quantile", d, 0, 1),
    sample("nanquantile", d, 0.37),
    sample("nanquantile", d, np.array([0.37, 0.6]), 0),
    Sample("nanquantile", (holes, 0.5), gradcheck=False),
    Sample("nanquantile", (np.full(3, np.nan), 0.5), gradcheck=False),
]
# Histograms. (Edges are in the dtype of the input, which rounds them.)
many = uniform(200, low=-2.0, high=2.0)
SAMPLES += [
    sample("histc", many, 10),
    sample("histc", many, bins=7, min=-1, max=1.5),
    sample("histc", np.array([1.0, 1.0]), 4),
    sample("histc", np.array([]), 4),
    sample("histc", holes, 4, -1, 1),
    sample("histc", grid, 5),
    sample("histc", s, 3),
    Sample("histogram", (many, 10), backward=False),
    Sample("histogram", (many,), {"bins": 7, "range": (-1.0, 1.5)}, backward=False),
    Sample("histogram", (many, np.array([-1.0, 0.0, 0.25, 2.0])), backward=False),
    Sample(
        "histogram",
        (many, np.array([-1.0, 0.0, 0.25, 2.0])),
        {"weight": uniform(200, seed=1), "density": True},
        backward=False,
    ),
    Sample("histogram", (grid, 4), {"density": True}, backward=False),
    Sample("histogram", (np.array([]), 4), backward=False),
    Sample("histogram", (np.array([1.0, 1.0]), 4), backward=False),
    Sample("histogramdd", (many.reshape(100, 2), [3, 4]), backward=False),
    Sample("histogramdd", (many.reshape(100, 2), 3), {"density": True}, backward=False),
    Sample("histogramdd", (many.reshape(100, 2), [3, 4], [-1.0, 1.0, 0.0, 2.0], uniform(100, seed=1)), backward=False),
    Sample("histogramdd", (many.reshape(5, 20, 2), [np.array([-1.0, 0.0, 1.0]), np.array([0.0, 0.5])]), backward=False),
]
# Differences.
SAMPLES += [
    sample("diff", d),
    sample("diff", d, 2, 0),
    sample("diff", d, 0),
    sample("diff", d, 7),
    sample("diff", d, 1, 1, normal(3, 1), normal(3, 2)),
    sample("diff", d, dim=0, append=normal(1, 5)),
    sample("diff", integers(6)),
    sample("diff", booleans(6)),
    sample("diff", np.array([1, 3, 2], np.uint8)),
    sample("diff", np.zeros((0, 2))),
    sample("gradient", grid),
    sample("gradient", grid, spacing=0.5),
    sample("gradient", grid, spacing=[0.5, 2.0, 3.0], edge_order=2),
    sample("gradient", grid, dim=1, edge_order=2),
    sample("gradient", grid, dim=(2, 0), spacing=(2, 0.25)),
    sample("gradient", grid, spacing=(np.array([0.0, 1.0, 4.0]),), dim=0),
    sample("gradient", grid, spacing=(np.array([0.0, 1.0, 4.0, 4.5]),), dim=(1,), edge_order=2),
    sample("gradient", normal(2, 2)),
    sample("gradient", np.array([1, 4, 9, 16])),
    sample("gradient", normal(3), edge_order=2),
    sample("combinations", d[0]),
    sample("combinations", d[0], 3),
    sample("combinations", d[0], 1),
    sample("combinations", d[0], r=2, with_replacement=True),
    sample("combinations", np.arange(3), 0),
    sample("combinations", np.arange(3), 4),
]
# Segments.
lengths, offsets = np.array([2, 0, 1]), np.array([0, 2, 2, 3])
rows = np.array([[1, 4], [5, 0], [2, 3]])
for how in ("sum", "mean", "max", "min", "prod"):
    finite = [Sample("segment_reduce", (d, how), {"lengths": np.array([2, 1])})]
    empty = [
        Sample("segment_reduce", (d, how), {"lengths": lengths}),
        Sample("segment_reduce", (d, how), {"offsets": offsets}),
        Sample("segment_reduce", (d, how), {"lengths": rows, "axis": 1}),
    ]
    for each in empty:
        each.gradcheck = how in ("sum", "prod")  # of nothing the others are not finite
    SAMPLES += [
        *finite,
        *empty,
        sample("segment_reduce", d, how, lengths=lengths, initial=0.5),
        sample("segment_reduce", grid, how, lengths=np.array([1, 2]), initial=1),
    ]
zeros = np.array([2.0, 0.0, 3.0, 0.0, 0.0, 4.0])
SAMPLES += [
    sample("segment_reduce", zeros, "prod", lengths=np.array([3, 2, 1])),
    sample("segment_reduce", d[0], "sum", lengths=np.array([2, 1]), unsafe=True),
]
# Rows combined with rows.
x, index, source = normal(4, 3), np.array([2, 0, 2, 2]), distinct(4, 3)
for how in ("prod", "mean", "amax", "amin"):
    for include_self in (True, False):
        SAMPLES.append(
            Sample("index_reduce", (x, 0, index, source, how), {"include_self": include_self}, in_place=True)
        )
SAMPLES += [
    sample("index_reduce", x, 1, np.array([1, 1]), normal(4, 2), "prod"),
    sample("index_reduce", integers(4, 3), 0, index.astype(np.int32), integers(4, 3), "mean"),
    sample("index_reduce", x, 0, np.array([], np.int64), np.zeros((0, 3)), "amax"),
    sample("index_reduce", zeros, 0, np.array([0, 0, 1, 2, 1, 5]), zeros[::-1].copy(), "prod"),
]
square = zeros.reshape(2, 3)
for include_self in (True, False):
    SAMPLES += [
        Sample(
            "scatter_reduce",
            (zeros, 0, np.array([0, 0, 1, 2, 1, 5]), zeros[::-1].copy(), "prod"),
            {"include_self": include_self},
            in_place=True,
        ),
        sample(
            "scatter_reduce", square.copy(), -1, np.array([[0, 0, 2], [2, 2, 0]]), square.copy(), "prod",
            include_self=include_self,
        ),
    ]  # fmt: skip
# What has no derivative.
SAMPLES += [
    Sample("unique", (few.astype(np.float64),), {"return_inverse": True}, backward=False),
    Sample("unique", (few.astype(np.float64),), {"dim": 0, "return_counts": True}, backward=False),
    Sample("unique_consecutive", (np.sort(few.astype(np.float64), axis=0),), backward=False),
    Sample("unique_consecutive", (np.array(3),), {"return_inverse": True}, backward=False),
    Sample("bincount", (np.array([0, 3, 3, 1]), uniform(4)), backward=False),
    sample("bincount", np.array([], np.int64), np.array([]), 3),
    sample("nonzero_static", few, size=40),
    sample("nonzero_static", few, size=3, fill_value=7),
    sample("nonzero_static", np.array(1), size=2),
]
# Searching.
ladder, wanted = np.sort(normal(3, 6), axis=-1), normal(3, 4, seed=2)
SAMPLES += [
    sample("searchsorted", ladder, wanted),
    sample("searchsorted", ladder, ladder, right=True),
    sample("searchsorted", ladder, ladder, side="right", out_int32=True),
    sample("searchsorted", ladder[0].copy(), wanted),
    sample("searchsorted", ladder[:, ::-1].copy(), wanted, sorter=np.argsort(ladder[:, ::-1], axis=-1)),
    sample("searchsorted", np.array([1, 3, 5]), wanted),
    sample("searchsorted", np.array([1, 3, 5]), 3.5),
    sample("searchsorted", np.array([1.0, 3.0, np.nan]), np.array([np.nan, 6.0, 3.0])),
    sample("searchsorted", np.array([]), wanted),
    sample("searchsorted", np.zeros((3, 0)), wanted),
    sample("bucketize", wanted, ladder[1].copy()),
    sample("bucketize", 3, np.array([1, 3, 5]), right=True),
    sample("bucketize", 2.5, np.array([1, 3, 5]), out_int32=True),
]
# Bags of rows.
table, ids, starts = normal(5, 3), np.array([0, 4, 4, 1, 2]), np.array([0, 2, 2])
bag = "nn.functional.embedding_bag"
for mode in ("sum", "mean", "max"):
    SAMPLES += [
        sample(bag, ids, table, starts, mode=mode),
        sample(bag, ids[:4].reshape(2, 2).copy(), table, mode=mode),
        sample(bag, ids, table, starts, mode=mode, padding_idx=4),
        sample(bag, ids, table, np.array([0, 3, 5]), mode=mode, include_last_offset=True),
        Sample(
            "embedding_bag",
            (table, ids, starts, False, ("sum", "mean", "max").index(mode)),
            select=lambda results: results[0],
        ),
    ]
SAMPLES += [
    # (By frequency it is no gradient, but what PyTorch says it is.)
    Sample(bag, (ids, table, starts), {"mode": "sum", "scale_grad_by_freq": True}, gradcheck=False),
    sample(bag, ids, table, starts, mode="sum", per_sample_weights=normal(5)),
    sample("embedding", table, ids),
    Sample("embedding", (table, ids, 4, True), gradcheck=False),
]
