"""Samples of `tinytorch.ops.index`."""

import numpy as np

from tests.samples import Sample, booleans, distinct, integers, normal, sample

x, m, v, s = normal(2, 3, 4), normal(3, 4), normal(4), np.array(1.5)
pair, twice = np.array([1, 0]), np.array([0, 1, 1, 0, 1])
mask2, mask3 = booleans(2, 3), booleans(2, 3, 4)
everything = slice(None)

SAMPLES: list[Sample] = [
    sample("Tensor.__getitem__", x, key)
    for key in [
        # Basic: views.
        0, -1, (1, 2), (0, 1, 3), (), ..., (..., 0), (0, ...), (everything, 1), slice(1, None), slice(None, -1),
        (everything, slice(0, 3, 2)), (slice(5, 9),), None, (None, 0, None), (0, None, slice(1, 3), 2), (..., None),
        (slice(1), ..., slice(1, 2)), (everything, everything), (1, everything, slice(None, None, 3)),
        # By tensors, lists, arrays: copies.
        pair, twice, (pair, pair), (everything, twice), (..., twice), (twice, everything, twice),
        (0, everything, twice),
        (twice, 1), (everything, 0, twice), (twice, None), (None, twice), (twice, None, twice), (pair[:, None], pair),
        np.array([[0, 1], [1, 1]]), np.array([-1, 0]), np.array([], np.int64), (twice, slice(1, 3)), np.array(1),
        (np.array(1), everything, twice), [0, 1], ([0, 1], [1, 2]), [True, False], range(2), [], pair.astype(np.int32),
        (slice(0, 1), pair, pair), (everything, np.array([[0, 2], [1, 1]]), 0),
        # By masks.
        mask3, mask2, mask2[:, 0], (everything, mask2[0]), (mask2, 0), (mask2, slice(1, 3)), (None, mask2),
        (mask2[:, 0], pair[:1]), (pair, np.array([True, False, True])), np.zeros((2, 3), bool),
        True, False, (True, pair), (0, True), np.array(True), (everything, False), (pair, everything, True),
    ]
]  # fmt: skip
SAMPLES += [
    sample("Tensor.__getitem__", s, ...),
    sample("Tensor.__getitem__", s, None),
    sample("Tensor.__getitem__", s, ()),
    sample("Tensor.__getitem__", s, True),
    sample("Tensor.__getitem__", v, (2, ...)),
    sample("Tensor.__getitem__", np.asfortranarray(x), (everything, twice)),
    sample("Tensor.__getitem__", np.asfortranarray(x), (slice(1), 2)),
]
# Writing by index.
SAMPLES += [
    Sample("index_put", (x, (twice[:2],), normal(2, 3, 4)), in_place=True),
    Sample("index_put", (x, (pair, pair), s), in_place=True),
    Sample("index_put", (x, (pair[:, None], np.array([0, 2])), normal(4)), in_place=True),
    Sample("index_put", (x, (mask2,), normal(1, 4)), in_place=True),
    Sample("index_put", (x, (mask3,), s), in_place=True),
    Sample("index_put", (x, (twice,), normal(5, 3, 4), True), in_place=True),
    Sample("index_put", (x, (twice, twice), normal(5, 4)), {"accumulate": True}, in_place=True),
    Sample("index_put", (x, (mask2,), s, True), in_place=True),
    Sample("index_put", (x, (np.array([-1, 1]),), normal(4), True), in_place=True),
]
# Rows.
for dim, index in ((0, twice), (1, np.array([2, 0, 2])), (-1, np.array([3]))):
    sizes = list(x.shape)
    sizes[dim] = len(index)
    rows, few = normal(*sizes), np.unique(index)
    SAMPLES += [
        sample("index_select", x, dim, index),
        sample("index_select", x, dim, index.astype(np.int32)),
        Sample("index_add", (x, dim, index, rows), in_place=True),
        Sample("index_add", (x, dim, index, rows), {"alpha": 2.5}, in_place=True),
        Sample("index_copy", (x, dim, few, np.take(rows, np.arange(len(few)), dim)), in_place=True),
        Sample("index_fill", (x, dim, index, 2.5), in_place=True),
        Sample("index_fill", (x, dim, index, np.array(2.5)), in_place=True),
    ]
SAMPLES += [
    sample("index_select", x, 0, np.array(1)),
    sample("index_select", x, 1, np.array([], np.int64)),
    sample("index_select", s, 0, np.array([0])),
    sample("index_select", x, index=pair, dim=0),
    sample("index_select", integers(3, 2), 0, pair),
    Sample("index_add", (integers(3, 2), 0, pair, integers(2, 2)), in_place=True),
    Sample("index_add", (s, 0, np.array([0]), np.array(2.0)), in_place=True),
    Sample("index_fill", (integers(3, 2), 0, np.array([-1]), 7.7), in_place=True),
    Sample("index_copy", (s, 0, np.array([0]), np.array([2.0])), in_place=True),
]
# Gather and scatter.
along0, along2 = integers(3, 3, 4, low=0, high=2), integers(2, 2, 3, low=0, high=4)
few2 = np.argsort(normal(2, 3, 4), axis=2)[:, :2, :3]  # distinct places
SAMPLES += [
    sample("gather", x, 0, along0),
    sample("gather", x, -1, along2),
    sample("gather", x, 2, along2.astype(np.int32)),
    sample("gather", m, 1, np.array([[0], [3], [3]])),
    sample("gather", v, 0, np.array([3, 3, 0])),
    sample("gather", v, 0, np.array([], np.int64)),
    sample("gather", s, 0, np.array(0)),
    sample("gather", s, 0, np.array([0, 0])),
    Sample("scatter", (x, 2, few2, normal(2, 2, 3)), in_place=True),
    Sample("scatter", (integers(2, 3, 4), -1, few2, integers(2, 3, 4, seed=1)), in_place=True),
    Sample("scatter", (x, 2, along2, 1.5), in_place=True),
    Sample("scatter", (x, 2, along2), {"value": 1.5}, in_place=True),
    Sample("scatter", (v, 0, np.array([], np.int64), 1.5), in_place=True),
    Sample("scatter", (integers(2, 3, 4), 2, along2, 3), {"reduce": "add"}, in_place=True),
    Sample("scatter", (integers(2, 3), 1, np.array([[0, 1]]), 3), {"reduce": "multiply"}, in_place=True),
    Sample("scatter", (integers(2, 3), 1, np.array([[0, 1]]), integers(1, 2)), in_place=True),
    Sample("scatter", (s, 0, np.array(0), 2.5), in_place=True),
    Sample("scatter_add", (x, 0, along0, normal(3, 3, 4)), in_place=True),
    Sample("scatter_add", (x, -1, along2, normal(2, 2, 3)), in_place=True),
    Sample("scatter_add", (v, 0, twice, normal(5)), in_place=True),
    Sample("scatter_add", (s, 0, np.array(0), np.array(2.0)), in_place=True),
    *[
        Sample("scatter_reduce", (m, 1, integers(3, 4, low=0, high=4), distinct(3, 4), how), in_place=True)
        for how in ("sum", "mean", "amax", "amin", "prod")
    ],
    *[
        Sample("scatter_reduce", (m, 1, integers(3, 4, low=0, high=4), distinct(3, 4), how), {"include_self": False})
        for how in ("sum", "mean", "amax", "amin", "prod")
    ],
    sample("scatter_reduce", integers(4), 0, twice, integers(5), "mean"),
    sample("scatter_reduce", integers(4), 0, twice, integers(5), "amax", include_self=False),
    sample("take", x, np.array([[0, 23], [-1, 5]])),
    sample("take", s, np.array([0, 0])),
    Sample("put", (x, np.array([3, 22]), normal(2))),
    Sample("put", (x, np.array([3, 3]), normal(2), True)),
    sample("take_along_dim", x, along2[:, :1, :3].repeat(3, 1), 2),
    sample("take_along_dim", x, np.array([[[0, 3, 3, 1]]]), 2),
    sample("take_along_dim", v, np.array([3, 1, 1])),
]
# Masks.
SAMPLES += [
    Sample("masked_fill", (x, mask3, 2.5), in_place=True),
    Sample("masked_fill", (x, mask2[1][:, None], np.array(2.5)), in_place=True),
    Sample("masked_fill", (v, booleans(3, 4), 2.5)),
    Sample("masked_fill", (integers(3, 4), booleans(3, 4), 2.5), in_place=True),
    Sample("masked_fill", (s, np.array(True), -np.inf), gradcheck=False, in_place=True),
    sample("masked_select", x, mask3), sample("masked_select", x, mask2[1][:, None]),
    sample("masked_select", v, booleans(3, 4)), sample("masked_select", s, np.array(True)),
    sample("masked_select", v, np.zeros(4, bool)), Sample("masked_scatter", (x, mask3, normal(24)), in_place=True),
    Sample("masked_scatter", (x, mask2[1][:, None], normal(30)), in_place=True),
    sample("masked_scatter", v, booleans(3, 4), normal(3, 4)), sample("where", mask3, x, x + 1),
    sample("where", mask3, x, v), sample("where", booleans(4), s, x), sample("where", mask3, x, 2.5),
    sample("where", mask3, 2, x), sample("where", mask3, 2, 3), sample("where", mask3, 2.5, 3),
    sample("where", booleans(4), integers(4), v), sample("where", booleans(4), integers(4), 2.5),
    sample("where", booleans(4), integers(4), np.array(2.5)),
    sample("where", booleans(4), integers(4).astype(np.int32), True), sample("where", mask2),
    sample("Tensor.where", x, mask3, x + 1), sample("nonzero", mask3), sample("nonzero", integers(3, 4)),
    sample("nonzero", s), sample("nonzero", np.zeros((0, 2))), sample("nonzero", mask2, as_tuple=True),
    sample("nonzero", s, as_tuple=True), sample("argwhere", mask2),
]  # fmt: skip
# Sorting.
d = distinct(3, 5)
ties, odd = np.array([2.0, 1.0, 2.0, 1.0, 3.0]), np.array([1.0, np.nan, np.inf, -np.inf, np.nan])
for name in ("sort", "argsort"):
    SAMPLES += [
        sample(name, d),
        sample(name, d, 0),
        sample(name, d, -1, True) if name == "argsort" else sample(name, d, -1, descending=True),
        sample(name, d, dim=0, descending=True),
        sample(name, s),
        sample(name, d, stable=True),
        sample(name, normal(0, 3)),
        sample(name, normal(3, 0)),
        Sample(name, (ties,), {"stable": True}, gradcheck=False),
        Sample(name, (ties,), {"stable": True, "descending": True}, gradcheck=False),
        sample(name, integers(4, 5), stable=True),
        sample(name, booleans(6), stable=True),
        Sample(name, (odd,), {"stable": True}, gradcheck=False),
        Sample(name, (odd,), {"stable": True, "descending": True}, gradcheck=False),
    ]
SAMPLES += [
    sample("msort", d),
    sample("topk", d, 2),
    sample("topk", d, 2, 0),
    sample("topk", d, 5, dim=-1, largest=False),
    sample("topk", d, 0),
    sample("topk", d, 3, axis=1, sorted=True),
    sample("topk", s, 1),
    sample("topk", distinct(2, 100), 3),
    sample("topk", distinct(2, 100), 3, largest=False),
    sample("topk", distinct(100, 2), 3, 0),
    Sample("topk", (odd[:4], 2), gradcheck=False),
    sample("topk", np.arange(7), 3),
]
for array in (integers(4, 5), np.array([], np.int64), booleans(4, 4)):
    SAMPLES += [
        sample("unique", array),
        sample("unique", array, return_inverse=True),
        sample("unique", array, return_counts=True),
        sample("unique", array, True, True, True),
        sample("unique_consecutive", array, return_inverse=True, return_counts=True),
    ]
rows2 = np.array([[1, 2], [0, 5], [1, 2], [1, 2]])
SAMPLES += [
    sample("unique", rows2, dim=0, return_inverse=True, return_counts=True),
    sample("unique", rows2, dim=1),
    sample("unique", np.zeros((0, 3), np.int64), dim=0),
    sample("unique_consecutive", rows2, dim=0, return_inverse=True, return_counts=True),
    sample("unique_consecutive", rows2, dim=1),
    sample("unique_consecutive", np.array([1, 1, 2, 2, 1]), return_inverse=True, return_counts=True),
]
# Counting and searching.
SAMPLES += [
    sample("bincount", np.array([0, 3, 3, 1])),
    sample("bincount", np.array([0, 3, 3, 1]), minlength=7),
    sample("bincount", np.array([0, 3, 3, 1]), np.array([1, 2, 3, 4])),
    sample("bincount", np.array([], np.int64), minlength=2),
    sample("bincount", np.array([0, 3], np.int32)),
]
SAMPLES += [
    sample("isin", integers(3, 4), np.array([1, 2])),
    sample("isin", integers(3, 4), 2, invert=True),
    sample("isin", 2, integers(4)),
    sample("unravel_index", np.array([3, 7]), (2, 4)),
]
