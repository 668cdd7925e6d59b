"""Samples of `tinytorch.ops.shape`."""

import numpy as np

import tinytorch
from tests.samples import Sample, booleans, integers, normal, sample

x, m, v = normal(2, 3, 4), normal(3, 4), normal(4)
s, empty, thin = np.array(1.5), normal(0, 3), normal(1, 3, 1)
ints = integers(2, 3)

# Views in another shape.
SAMPLES: list[Sample] = [
    # (The tests bring samples into other orders in memory too, so no dimensions are joined here.)
    sample("Tensor.view", x, 2, 3, 2, 2),
    sample("Tensor.view", x, (2, 1, -1, 4)),
    sample("Tensor.view", v, -1),
    sample("Tensor.view", s, 1, 1),
    sample("Tensor.view", s, ()),
    sample("Tensor.view", empty, 3, 0, 2),
    sample("Tensor.view_as", v, normal(2, 2)),
    sample("reshape", x, (3, -1)),
    sample("reshape", s, (1,)),
    sample("reshape", empty, (0,)),
    sample("reshape", np.asfortranarray(x), (6, 4)),
    sample("Tensor.reshape", x, 4, 6),
    sample("Tensor.reshape_as", x, normal(8, 3)),
    sample("flatten", x),
    sample("flatten", x, 1),
    sample("flatten", x, 0, -2),
    sample("flatten", s),
    sample("flatten", v),
    sample("flatten", empty),
    sample("ravel", x),
    sample("ravel", np.asfortranarray(x)),
    sample("ravel", s),
    sample("ravel", empty),
    sample("unflatten", x, 2, (2, 2)),
    sample("unflatten", x, -1, (-1, 2)),
    sample("squeeze", thin),
    sample("squeeze", thin, 0),
    sample("squeeze", thin, -1),
    sample("squeeze", thin, 1),
    sample("squeeze", thin, (0, 2)),
    sample("squeeze", thin, ()),
    sample("squeeze", s, 0),
    sample("squeeze", thin, axis=0),
    sample("unsqueeze", x, 0),
    sample("unsqueeze", x, -1),
    sample("unsqueeze", x, dim=2),
    sample("unsqueeze", s, axis=0),
]
# Views in another order.
SAMPLES += [
    sample("transpose", x, 0, 2),
    sample("transpose", x, -1, 1),
    sample("transpose", s, 0, -1),
    sample("swapaxes", x, 0, 1),
    sample("swapdims", x, 0, 1),
    sample("t", m),
    sample("t", v),
    sample("t", s),
    sample("permute", x, (2, 0, 1)),
    sample("permute", x, (-1, 0, 1)),
    sample("Tensor.permute", x, 1, 0, 2),
    sample("movedim", x, 0, -1),
    sample("movedim", x, (0, 1), (2, 0)),
    sample("movedim", s, (), ()),
    sample("moveaxis", x, 2, 0),
    sample("adjoint", x),
    sample("real", x),
]
# Views of a part.
SAMPLES += [
    sample("narrow", x, 1, 1, 2), sample("narrow", x, -1, -2, 1), sample("narrow", x, 0, 0, 0),
    sample("select", x, 1, 2), sample("select", x, -1, -1), sample("select", v, 0, 1),
    sample("Tensor.expand", normal(2, 1), 3, 2, 4), sample("Tensor.expand", normal(2, 1), (-1, 3)),
    sample("Tensor.expand", normal(2, 1)[:, ::2], -1, 3), sample("Tensor.expand", s, 2, 3),
    sample("Tensor.expand", empty, 2, -1, 3), sample("Tensor.expand_as", normal(3, 1), normal(2, 3, 2)),
    sample("broadcast_to", v, (2, 4)), sample("diagonal", m), sample("diagonal", m, 1), sample("diagonal", m, -1),
    sample("diagonal", x, 0, 2, 0), sample("diagonal", x, 1, -2, -1), sample("diagonal", m, 9),
    sample("Tensor.unfold", v, 0, 2, 1), sample("Tensor.unfold", x, -1, 2, 2), sample("Tensor.unfold", x, 1, 3, 1),
    sample("Tensor.unfold", x, 1, 0, 1), sample("Tensor.unfold", s, 0, 1, 1), sample("as_strided", x, (2, 2), (1, 2)),
    sample("as_strided", x, (2, 3), (4, 1), 5), sample("as_strided", x, (2, 0), (4, 1)),
    sample("as_strided", x, (), (), 3),
]  # fmt: skip
# Several views at once.
SAMPLES += [
    sample("split", normal(5, 2), 2),
    sample("split", x, 1, 2),
    sample("split", x, [1, 2], 1),
    sample("split", x, [0, 2], dim=0),
    sample("split", empty, 2),
    sample("split", x, 3, -1),
    sample("split_with_sizes", x, (3, 1), -1),
    sample("chunk", normal(5, 2), 2),
    sample("chunk", normal(5, 2), 4),
    sample("chunk", x, 3, -1),
    sample("chunk", empty, 3),
    sample("tensor_split", normal(5, 2), 3),
    sample("tensor_split", normal(5, 2), (1, 4)),
    sample("tensor_split", normal(5, 2), (3, 1)),
    sample("tensor_split", x, 2, -1),
    sample("hsplit", x, 3),
    sample("hsplit", v, 2),
    sample("vsplit", x, (1,)),
    sample("dsplit", x, 2),
    sample("unbind", x),
    sample("unbind", x, -1),
    sample("unbind", v),
    sample("unbind", empty),
]
# Copies.
SAMPLES += [
    sample("clone", x), sample("clone", np.asfortranarray(x)), sample("clone", s), sample("Tensor.contiguous", x),
    sample("Tensor.contiguous", np.asfortranarray(x)), sample("cat", [x, x[:1], x]),
    sample("cat", (x, normal(2, 3, 1)), -1), sample("cat", [normal(0), x], 1), sample("cat", [normal(0), v]),
    sample("cat", [x]), sample("cat", [v, integers(3)]), sample("cat", [ints, booleans(2, 3)], dim=1),
    sample("cat", [m, m], axis=1), sample("concat", [m, m]), sample("concatenate", [m, m]), sample("stack", [m, m + 1]),
    sample("stack", [m, m + 1], -1), sample("stack", [m, m + 1], dim=1), sample("stack", [s, np.array(2.5)]),
    sample("stack", [v, integers(4)]), sample("hstack", [m, m]), sample("hstack", [s, v]), sample("vstack", [v, m]),
    sample("row_stack", [v, v]), sample("dstack", [m, m]), sample("dstack", [s, s]),
    sample("column_stack", [v, normal(4, 2), v]), sample("block_diag", m, v, s, normal(2, 2)),
    sample("Tensor.repeat", m, 2, 3), sample("Tensor.repeat", m, (2, 1, 2)), sample("Tensor.repeat", m, 0, 1),
    sample("Tensor.repeat", s, 3), sample("tile", m, (2,)), sample("tile", m, (2, 1, 2)),
    sample("Tensor.tile", m, 2, 2), sample("repeat_interleave", m, 2), sample("repeat_interleave", m, 2, 1),
    sample("repeat_interleave", m, 0, 1), sample("repeat_interleave", s, 3),
    sample("repeat_interleave", m, np.array([1, 0, 3]), 0), sample("repeat_interleave", m, np.array([2]), -1),
    sample("repeat_interleave", m, np.array([1, 0, 3]), dim=0, output_size=4),
    sample("repeat_interleave", np.array([1, 0, 3])), sample("flip", x, (0, -1)), sample("flip", x, ()),
    sample("flip", s, (0,)), sample("Tensor.flip", x, 1), sample("fliplr", m), sample("flipud", v),
    sample("roll", x, 1), sample("roll", x, 2, 1), sample("roll", x, (1, -1), (0, 2)), sample("roll", s, 1),
    *[sample("rot90", x, k) for k in (0, 1, 2, 3, -1)], sample("rot90", x, 1, (2, 1)), sample("tril", x),
    sample("tril", m, 1), sample("triu", x, -1), sample("triu", ints), sample("diag", m), sample("diag", m, -1),
    sample("diag", v), sample("diag", v, 1), sample("diag_embed", m), sample("diag_embed", m, -1),
    sample("diag_embed", m, 1, 0, -2), sample("diagflat", m, 1), sample("meshgrid", v, normal(3), indexing="ij"),
    sample("meshgrid", v, normal(3), normal(2), indexing="xy"), sample("meshgrid", [v, s], indexing="xy"),
    sample("cartesian_prod", v, normal(3)), sample("cartesian_prod", v),
    sample("broadcast_tensors", x, v, normal(3, 1)), sample("atleast_1d", s), sample("atleast_1d", s, v),
    sample("atleast_2d", v), sample("atleast_2d", [s, v, m]), sample("atleast_3d", s, v, m, x),
]  # fmt: skip
# Other dtypes.
for name in ("float", "double", "half", "int", "long", "short", "char", "byte", "bool"):
    SAMPLES += [sample(f"Tensor.{name}", x), sample(f"Tensor.{name}", ints), sample(f"Tensor.{name}", booleans(3))]
SAMPLES = [
    # Half precision and numerical differentiation do not go together.
    Sample(each.name, each.args, gradcheck=False) if each.name in ("Tensor.half", "Tensor.float") else each
    for each in SAMPLES
]
SAMPLES += [
    sample("Tensor.to", x, tinytorch.float64),
    sample("Tensor.to", x, tinytorch.float64, copy=True),
    sample("Tensor.to", x, "cpu"),
    sample("Tensor.to", x, "cpu", tinytorch.int32),
    sample("Tensor.to", ints, dtype=tinytorch.float64),
    sample("Tensor.to", ints, x),
    sample("Tensor.type_as", x, ints),
    sample("Tensor.cpu", x),
    sample("Tensor.size", x),
    sample("Tensor.size", x, -1),
    sample("numel", x),
    sample("is_floating_point", x),
    sample("is_floating_point", ints),
    sample("is_complex", x),
    sample("Tensor.is_signed", ints),
    sample("Tensor.element_size", x),
    sample("Tensor.dim", x),
]
