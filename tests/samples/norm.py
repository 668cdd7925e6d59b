"""Samples of normalisation by batches, instances and groups."""

from __future__ import annotations

from tests.samples import Sample, normal, sample

w, b = normal(3), normal(3, seed=1)
flat, line, image = normal(5, 3), normal(4, 3, 5), normal(2, 3, 4, 5) + 2
wide = normal(2, 3, 6, 7)  # from 32 places on, channels are rows
groups = normal(2, 6, 7) + 1
w6, b6 = normal(6), normal(6, seed=1)
F = "nn.functional."

SAMPLES: list[Sample] = [
    sample(F + "batch_norm", flat, None, None, training=True),
    sample(F + "batch_norm", flat, None, None, w, b, True),
    sample(F + "batch_norm", line, None, None, w, None, True, 0.1, 0.1),
    sample(F + "batch_norm", image, None, None, w, b, True),
    sample(F + "batch_norm", wide, None, None, w, b, True),
    sample(F + "batch_norm", wide, None, None, None, b, True),
    sample("batch_norm", wide, w, b, None, None, True, 0.1, 1e-5, False),
    sample(F + "group_norm", groups, 1, w6, b6),
    Sample(F + "group_norm", (groups, 2, w6, b6), atol=1e-10),  # x * factor + summand, rounded
    sample(F + "group_norm", groups, 6, w6),
    sample(F + "group_norm", groups, 3),
    sample(F + "group_norm", normal(2, 6, 6, 6), 3, w6, b6, 0.1),
    sample(F + "group_norm", normal(2, 6), 2, w6, b6),
    Sample("group_norm", (groups, 3, None, b6), backward=False),  # PyTorch fails there
    sample("group_norm", normal(0, 6, 2), 3, w6, b6),
    sample(F + "instance_norm", line),
    sample(F + "instance_norm", line, None, None, w, b),
    sample(F + "instance_norm", wide, None, None, w, b, True, 0.1, 0.1),
    sample("instance_norm", image, w, None, None, None, True, 0.1, 1e-5, False),
    sample(F + "local_response_norm", normal(2, 6, 4), 3),
    sample(F + "local_response_norm", normal(2, 6, 3, 2), 2, 0.1, 0.5, 2.0),
    sample(F + "local_response_norm", normal(2, 2, 4), 5, 1.0),
    sample("native_layer_norm", line, (5,), normal(5), normal(5, seed=1), 1e-5),
    sample("native_layer_norm", line, (3, 5), None, None, 0.1),
]
