"""Samples of `tinytorch.ops.fft` and `tinytorch.ops.stft`."""

import numpy as np

from tests.samples import Sample, integers, normal, sample

x, wide, cube = normal(5), normal(3, 4), normal(2, 3, 4)
spectrum = normal(3) + 1j * normal(3, seed=1)
window, short = np.array([0.5, 1.0, 0.75, 0.25]), np.array([0.5, 1.0, 0.25])

SAMPLES: list[Sample] = []

for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    full = f"fft.{name}"
    SAMPLES += [
        sample(full, x), sample(full, x, 3), sample(full, x, 8, norm="ortho"), sample(full, x, 2),
        sample(full, wide, dim=0), sample(full, wide, 5, 0, "forward"), sample(full, cube, dim=1, norm="backward"),
        sample(full, wide, n=1, norm="ortho"), sample(full, integers(2, 3)), sample(full, normal(4), norm="forward"),
        sample(full, np.array([True, False, True])),
    ]  # fmt: skip
for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    two, several = f"fft.{name}2", f"fft.{name}n"
    SAMPLES += [
        sample(two, wide), sample(two, cube, (2, 5)), sample(two, cube, dim=(0, 2), norm="ortho"),
        sample(two, cube, (3, 4), (2, 0), "forward"), sample(two, integers(2, 3)),
        sample(several, cube), sample(several, wide, s=(4, 3), norm="ortho"), sample(several, cube, dim=(2, 0)),
        sample(several, cube, dim=-2), sample(several, cube, (2, -1), norm="forward"), sample(several, x, 4),
        sample(several, cube, (2, 2, 5), (1, 2, 0), "backward"),
    ]  # fmt: skip
SAMPLES += [
    sample("fft.fftn", wide, dim=()), sample("fft.ifftn", np.array(1.5)),
    sample("fft.irfft", spectrum), sample("fft.irfft", spectrum, 5), sample("fft.hfft", spectrum),
    sample("fft.fftshift", x), sample("fft.fftshift", cube, (0, 2)), sample("fft.ifftshift", wide),
    sample("fft.ifftshift", wide, dim=1), sample("fft.fftshift", integers(2, 3), -1),
]  # fmt: skip

for options in (
    {}, {"onesided": False}, {"normalized": True}, {"center": False}, {"hop_length": 2}, {"hop_length": 3},
    {"pad_mode": "constant"}, {"pad_mode": "replicate"}, {"pad_mode": "circular"},
):  # fmt: skip
    if "onesided" not in options:
        SAMPLES.append(sample("stft", normal(9), 4, window=window, return_complex=True, **options))
    SAMPLES.append(sample("Tensor.stft", normal(2, 7), 4, window=window, return_complex=True, **options))
SAMPLES += [
    sample("stft", normal(9), 4, 2, 3, short, return_complex=True),
    sample("stft", normal(9), 5, 2, 3, short, False, return_complex=True),
    sample("stft", normal(9), 6, 2, 4, window, center=False, return_complex=True, align_to_window=True),
    sample("stft", normal(9), 6, 2, 4, window, center=False, return_complex=True, align_to_window=False),
]

frames = normal(3, 5) + 1j * normal(3, 5, seed=1)
both = normal(2, 4, 3) + 1j * normal(2, 4, 3, seed=1)
for options in ({}, {"normalized": True}, {"hop_length": 2}, {"length": 2}, {"center": False}, {"onesided": True}):
    SAMPLES.append(sample("istft", frames, 4, window=window, **options))
SAMPLES += [
    sample("istft", both, 4, window=window), sample("Tensor.istft", both, 4, window=window, return_complex=True),
    sample("istft", both, 4, 1, window=window, onesided=False, center=False),
    sample("istft", normal(3, 5) + 0j, 5, 2, 3, short), sample("istft", normal(4, 5) + 0j, 6, 1, 3, short),
]  # fmt: skip
