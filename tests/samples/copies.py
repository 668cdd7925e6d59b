"""Samples of copies of views, replaced views, shuffles and borders."""

from __future__ import annotations

from tests.samples import Sample, integers, normal, sample

x = normal(3, 4)
ints = integers(3, 4)
cube = normal(2, 3, 4)

SAMPLES: list[Sample] = [
    sample("alias_copy", x), sample("as_strided_copy", x, (2, 2), (1, 2)),
    sample("as_strided_copy", x, (2, 2), (4, 1), 1), sample("diagonal_copy", x, 1),
    sample("diagonal_copy", cube, 0, 1, 2), sample("expand_copy", normal(3, 1), (2, 3, 4)),
    sample("narrow_copy", x, 1, 1, 2), sample("permute_copy", cube, (2, 0, 1)), sample("select_copy", x, 0, -1),
    sample("slice_copy", x), sample("slice_copy", x, 1, 0, 100, 2), sample("slice_copy", x, 1, -2),
    sample("split_copy", x, 2), sample("split_with_sizes_copy", x, (1, 2)), sample("squeeze_copy", normal(1, 2, 1)),
    sample("squeeze_copy", normal(1, 2, 1), 0), sample("squeeze_copy", normal(1, 2, 1), (0, 2)), sample("t_copy", x),
    sample("t_copy", ints), sample("transpose_copy", cube, 0, 2), sample("unbind_copy", x), sample("unbind_copy", x, 1),
    sample("unfold_copy", x, 1, 2, 1), sample("unsqueeze_copy", x, 1), sample("view_copy", x, (3, 2, 2)),
    sample("detach_copy", ints), sample("select_scatter", x, normal(4), 0, 1),
    sample("select_scatter", cube, normal(2, 4), 1, -1), sample("select_scatter", ints, integers(4), 0, 1),
    sample("slice_scatter", x, normal(2, 4), 0, 1, 3), sample("slice_scatter", x, normal(3, 2), 1, step=2),
    sample("slice_scatter", x, normal(3, 4)), sample("diagonal_scatter", x, normal(3)),
    sample("diagonal_scatter", x, normal(2), -1), sample("diagonal_scatter", cube, normal(3, 2), 0, 0, 2),
    sample("unsafe_chunk", x, 2), sample("unsafe_chunk", x, 3, 1), sample("unsafe_split", x, 2),
    sample("unsafe_split_with_sizes", x, (1, 2)), sample("constant_pad_nd", x, (1, 2)),
    sample("constant_pad_nd", x, (1, 0, -1, 2), 1.5), sample("constant_pad_nd", ints, (1, 1), 1.5),
    sample("pixel_shuffle", normal(2, 8, 2, 3), 2), sample("pixel_shuffle", normal(9, 1, 2), 3),
    sample("pixel_unshuffle", normal(2, 2, 4, 6), 2), sample("pixel_unshuffle", normal(1, 3, 3), 3),
    sample("channel_shuffle", normal(2, 6, 2), 2), sample("channel_shuffle", normal(1, 6, 2, 2), 3),
    Sample("native_channel_shuffle", (normal(2, 6, 2), 3), backward=False),
]  # fmt: skip
