"""Resizing layers, pixels and grids against PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.same import same_as_pytorch

IMAGE = np.random.default_rng(0).standard_normal((2, 4, 6, 5))


@pytest.mark.parametrize(
    "make",
    [
        lambda nn: nn.Upsample(scale_factor=2),
        lambda nn: nn.Upsample(scale_factor=(2, 3), mode="bilinear"),
        lambda nn: nn.Upsample(size=(9, 4), mode="bicubic", align_corners=True),
        lambda nn: nn.Upsample(scale_factor=1.7, mode="bilinear", recompute_scale_factor=True),
        lambda nn: nn.UpsamplingNearest2d(scale_factor=2),
        lambda nn: nn.UpsamplingBilinear2d(size=(9, 4)),
        lambda nn: nn.PixelShuffle(2),
        lambda nn: nn.ChannelShuffle(2),
    ],
)
def test_layers(make: Any) -> None:
    def program(torch: Any) -> Any:
        layer = make(torch.nn)
        x = torch.tensor(IMAGE, requires_grad=True)
        out = layer(x)
        (out * out).sum().backward()
        return repr(layer), list(layer.state_dict()), out, x.grad

    same_as_pytorch(program)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "nearest", "nearest-exact"])
def test_images_of_bytes(mode: str) -> None:
    image = np.random.default_rng(1).integers(0, 256, (2, 3, 16, 17)).astype(np.uint8)
    smooth = mode.startswith("bi")
    for size in (7, 32, (16, 40), (33, 5)):
        for corners in (None, True) if smooth else (None,):
            for antialias in (False, True) if smooth else (False,):
                same_as_pytorch(
                    lambda torch, size=size, corners=corners, antialias=antialias: torch.nn.functional.interpolate(
                        torch.tensor(image), size, None, mode, corners, None, antialias
                    )
                )


@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "area", "nearest"])
def test_infinities_stay_where_they_are(mode: str) -> None:
    x = IMAGE.copy()
    x[0, 0, 2, 3], x[1, 2, 0, 0] = np.inf, np.nan
    for size in (12, 4):  # (where the length stays the same PyTorch makes NaN of an infinity)
        same_as_pytorch(lambda torch, size=size: torch.nn.functional.interpolate(torch.tensor(x), size, mode=mode))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision(dtype: str) -> None:
    def program(torch: Any) -> Any:
        x = torch.tensor(IMAGE).to(getattr(torch, dtype))
        F = torch.nn.functional
        outs = [
            F.interpolate(x, scale_factor=2),
            F.interpolate(x, 9, mode="bilinear"),
            F.pad(x, (1, 1, 1, 1), "reflect"),
        ]
        return [out.dtype for out in outs], [out.float() for out in outs]

    same_as_pytorch(program, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize(
    "call",
    [
        lambda F, x: F.interpolate(x),
        lambda F, x: F.interpolate(x, 4, 2.0),
        lambda F, x: F.interpolate(x, 4, mode="linear"),
        lambda F, x: F.interpolate(x, 4, mode="oblique"),
        lambda F, x: F.interpolate(x[0, 0], 4),
        lambda F, x: F.interpolate(x, 0),
        lambda F, x: F.interpolate(x, scale_factor=0.01),
        lambda F, x: F.interpolate(x.long(), 4),
        lambda F, x: F.interpolate(x[:, :0], 4),
        lambda F, x: F.interpolate(x, 4, align_corners=True),
        lambda F, x: F.interpolate(x, 4, antialias=True),
        lambda F, x: F.interpolate(x, 4, mode="lanczos"),
        lambda F, x: F.interpolate(x, 4, recompute_scale_factor=True),
        lambda F, x: F.interpolate(x, (1,)),
        lambda F, x: F.interpolate(x, (4.5, 3)),
        lambda F, x: F.interpolate(x, scale_factor=(1.5,)),
        lambda F, x: F.upsample(x, scale_factor=2),
        lambda F, x: F.upsample_bilinear(x, scale_factor=2),
        lambda F, x: F.upsample_nearest(x, scale_factor=2),
        lambda F, x: F.grid_sample(x, x[:, 0, :, :2].reshape(2, 2, 3, 2)),
        lambda F, x: F.grid_sample(x, x, align_corners=True),
        lambda F, x: F.grid_sample(x, x[:1], align_corners=True),
        lambda F, x: F.grid_sample(x, x, mode="oblique"),
        lambda F, x: F.grid_sample(x, x, padding_mode="oblique"),
        lambda F, x: F.affine_grid(x[:, 0, :2, :3], (2, 1, 3, 3)),
        lambda F, x: F.affine_grid(x[:, 0, :2, :3], (2, 1, 3), True),
        lambda F, x: F.affine_grid(x[:, 0, :2, :3], (2, 1, 0, 3), True),
        lambda F, x: F.affine_grid(x[:, 0, :2, :3].long(), (2, 1, 3, 3), True),
    ],
)
def test_results_warnings_and_errors(call: Any) -> None:
    same_as_pytorch(lambda torch: call(torch.nn.functional, torch.tensor(IMAGE)))


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_points_that_are_not_finite(mode: str, padding: str) -> None:
    def program(torch: Any) -> Any:
        x, outs = torch.tensor(IMAGE), []
        places = ["nan", "inf"] if mode == "bicubic" or padding != "zeros" else ["-1e10"]  # (PyTorch's result for the
        for place in places:  # rest depends on the position in a vector)
            grid = torch.linspace(-1.2, 1.2, 24).reshape(2, 3, 2, 2).double()
            grid[0, 1, 0, 1] = grid[1, 2, 1, 0] = float(place)
            for dtype in (torch.float32, torch.float64):
                outs.append(torch.nn.functional.grid_sample(x.to(dtype), grid.to(dtype), mode, padding, True))
        return outs

    same_as_pytorch(program, rtol=1e-4, atol=1e-4)
