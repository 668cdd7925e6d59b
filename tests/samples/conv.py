"""Samples of convolutions, transposed convolutions, and the columns of images."""

from __future__ import annotations

from tests.samples import Sample, integers, normal, sample

F = "nn.functional."

image, wide = normal(2, 3, 5, 6), normal(2, 4, 6, 5)
w, w_few, b = normal(4, 3, 3, 2), normal(2, 3, 1, 2), normal(4)
grouped, depthwise = normal(6, 2, 3, 3), normal(4, 1, 3, 3)
signal, volume = normal(2, 3, 8), normal(1, 2, 4, 5, 4)


def near(name: str, *args: object, **kwargs: object) -> Sample:
    """Return a sample whose sums are compared with those of another order."""
    return Sample(name, args, kwargs, atol=1e-10)


SAMPLES: list[Sample] = [
    near("conv2d", image, w, b), near("conv2d", image, w), near("conv2d", image, w, b, 2),
    near("conv2d", image, w, b, (2, 3), (1, 2), (2, 1)), near("conv2d", image, w, b, padding=2, dilation=2),
    near("conv2d", image, w, padding=(3, 3), stride=(3, 1)),
    near("conv2d", image, normal(4, 3, 3, 5), b, padding="same"), near("conv2d", image, w, padding="valid"),
    near("conv2d", image, normal(4, 3, 3, 3), b, padding="same", dilation=2),
    near("conv2d", wide, grouped, normal(6), 1, 1, 1, 2), near("conv2d", wide, grouped, None, 2, 1, 1, 2),
    near("conv2d", wide, depthwise, b, 1, 1, 1, 4), near("conv2d", wide, depthwise, b, (2, 1), 1, 2, 4),
    near("conv2d", wide, normal(8, 1, 3, 2), normal(8), 2, 1, 1, 4), near("conv2d", image, normal(4, 3, 1, 1), b),
    near("conv2d", normal(1, 3, 8, 9), normal(2, 3, 1, 1), normal(2)),
    near("conv2d", normal(1, 4, 8, 8), normal(2, 2, 1, 1), groups=2),
    near("conv2d", image, normal(2, 3, 2, 2), None, 2), near("conv2d", image, normal(2, 3, 1, 1), None, 2),
    near("conv2d", image, normal(2, 3, 5, 6)), near("conv2d", image, normal(2, 3, 5, 6), normal(2), 2),
    near("conv2d", normal(3, 5, 6), w, b), near("conv2d", image[:0], w, b),
    near("conv2d", image, w_few, stride=[1, 2], padding=[0, 1]), near("conv2d", image.transpose(0, 1, 3, 2), w, b),
    sample("conv2d", integers(2, 3, 5, 5), integers(4, 3, 3, 3), integers(4)),
    sample("conv2d", integers(2, 2, 5, 5), integers(2, 1, 3, 3), groups=2),
    sample("conv2d", integers(1, 2, 5, 5).astype("uint8"), integers(2, 2, 3, 3).astype("uint8")),
    near("conv1d", signal, normal(4, 3, 3), b), near("conv1d", signal, normal(4, 3, 3), b, 2, 1, 2),
    near("conv1d", signal, normal(4, 3, 5), padding="same"),
    near("conv1d", signal, normal(3, 1, 3), groups=3, padding=1),
    near("conv1d", normal(3, 8), normal(4, 3, 3), b, (2,)), sample("conv1d", integers(2, 3, 8), integers(4, 3, 3)),
    near("conv3d", volume, normal(3, 2, 2, 3, 2), normal(3)),
    near("conv3d", volume, normal(3, 2, 2, 3, 2), normal(3), (1, 2, 3), (1, 0, 2), (2, 1, 1)),
    near("conv3d", volume, normal(4, 1, 2, 2, 2), None, 1, 1, 1, 2),
    near("conv3d", volume, normal(2, 2, 3, 3, 3), padding="same"), near("conv3d", volume[0], normal(3, 2, 2, 3, 2)),
    near("conv_transpose2d", image, normal(3, 4, 3, 2), b),
    near("conv_transpose2d", image, normal(3, 4, 3, 2), None, 2, 1, 1),
    near("conv_transpose2d", image, normal(3, 2, 3, 3), normal(2), (2, 3), (1, 2), (1, 2), 1, 2),
    near("conv_transpose2d", wide, normal(4, 3, 3, 3), normal(6), 2, 1, 1, 2),
    near("conv_transpose2d", wide, depthwise, b, 2, 1, 0, 4),
    near("conv_transpose2d", wide, normal(4, 2, 2, 2), groups=4),
    near("conv_transpose2d", image, normal(3, 4, 1, 1), b),
    near("conv_transpose2d", normal(1, 3, 8, 8), normal(3, 4, 1, 1), b),
    near("conv_transpose2d", image, normal(3, 2, 2, 2), None, 3),
    near("conv_transpose2d", image, normal(3, 2, 2, 2), padding=2),
    near("conv_transpose2d", normal(3, 5, 6), normal(3, 4, 3, 2), b),
    near("conv_transpose2d", image[:0], normal(3, 4, 3, 2), b),
    sample("conv_transpose2d", integers(2, 3, 5, 5), integers(3, 4, 3, 3)),
    near("conv_transpose1d", signal, normal(3, 4, 3), b),
    near("conv_transpose1d", signal, normal(3, 4, 3), b, 3, 1, 2, 1, 2),
    near("conv_transpose1d", normal(3, 8), normal(3, 4, 3), b, 2),
    near("conv_transpose3d", volume, normal(2, 3, 2, 3, 2), normal(3)),
    near("conv_transpose3d", volume, normal(2, 2, 2, 2, 2), None, 2, 1, 1, 2),
    near("conv_transpose3d", volume[0], normal(2, 3, 2, 1, 2), None, (1, 2, 1)),
    near("convolution", image, w, b, [2, 1], [1, 1], [1, 1], False, [0, 0], 1),
    near("convolution", image, normal(3, 4, 3, 2), b, [2, 1], [1, 1], [1, 1], True, [1, 0], 1),
    near(F + "conv2d", image, w, b), sample(F + "unfold", image, 3),
    sample(F + "unfold", image, (2, 3), (2, 1), (1, 2), (1, 2)), sample(F + "unfold", image[0], 2, stride=2),
    sample(F + "unfold", image[:0], 2), sample(F + "unfold", image > 0, 2), sample(F + "fold", normal(2, 18, 9), 5, 3),
    sample(F + "fold", normal(2, 12, 20), (5, 6), (2, 3), (2, 1), (1, 2), (1, 2)),
    sample(F + "fold", normal(12, 4), 4, 2, stride=2), sample(F + "fold", normal(2, 12, 4)[:0], 4, 2, stride=2),
]  # fmt: skip
