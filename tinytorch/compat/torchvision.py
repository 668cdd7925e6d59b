"""The part of torchvision that tinytorch implements; it is `torchvision` where that package is not installed.

tinytorch also runs the whole of torchvision, installed without PyTorch: `pip install --no-deps torchvision pillow`.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Any, NoReturn

from tinytorch._atomic import replacing
from tinytorch.autograd.grad_mode import no_grad
from tinytorch.core.tensor import Tensor
from tinytorch.data.images import pillow, png
from tinytorch.kernels import dtypes
from tinytorch.ops.join import stack

__all__ = ["datasets", "transforms", "utils"]

datasets: Any
transforms: Any
utils: Any

__version__ = "0.28.0"


def missing(name: str) -> str:
    """Return the message of the error for a name that is not implemented (compat's finder raises it for modules)."""
    return (
        f"tinytorch has of torchvision the commonest datasets, transforms and utils, and no {name!r}: install "
        "torchvision, without PyTorch, by `pip install --no-deps torchvision pillow`"
    )


def _refuse(name: str) -> NoReturn:
    raise AttributeError(missing(name))


__getattr__ = _refuse


# `torchvision.utils`: images in a grid, and in a file -----------------------------------------------


def _make_grid(
    tensor: Any,
    nrow: int = 8,
    padding: int = 2,
    normalize: bool = False,
    value_range: tuple[float, float] | None = None,
    scale_each: bool = False,
    pad_value: float = 0.0,
) -> Tensor:
    """Return a grid of images as one image (C, H, W); grey images get three equal channels.

    Args:
        tensor: images (B, C, H, W), or a list of images (C, H, W); a single image, (C, H, W) or (H, W), gets no border.

    Example:
        >>> from tinytorch.torchvision.utils import make_grid
        >>> make_grid(torch.rand(5, 1, 10, 10), nrow=3).shape
        torch.Size([3, 26, 38])
    """
    if not isinstance(tensor, (Tensor, list)):
        raise TypeError(f"tensor or list of tensors expected, got {type(tensor)}")
    if isinstance(tensor, list):
        for image in tensor:
            if not isinstance(image, Tensor):
                raise TypeError(f"tensor or list of tensors expected, got a list containing {type(image)}")
        tensor = stack(tensor)
    images: Any = tensor[(None,) * (4 - tensor.ndim)]
    if images.size(1) == 1:
        images = images.expand(-1, 3, -1, -1)
    if normalize:
        if value_range is not None and not isinstance(value_range, tuple):
            raise TypeError("value_range has to be a tuple (min, max) if specified. min and max are numbers")
        images = images.clone()
        for part in images if scale_each else [images]:
            low, high = value_range or (part.min().item(), part.max().item())
            part.clamp_(low, high).sub_(low).div_(max(high - low, 1e-5))
    count, channels, height, width = images.shape
    if count == 1:
        return images[0]
    columns = min(nrow, count)
    size = (-(-count // columns) * (height + padding) + padding, columns * (width + padding) + padding)
    grid = images.new_full((channels, *size), pad_value)
    for k, image in enumerate(images):
        top, left = (
            place * (side + padding) + padding for place, side in zip(divmod(k, columns), (height, width), strict=True)
        )
        grid[:, top : top + height, left : left + width] = image
    return grid


def _save_image(tensor: Any, fp: Any, format: str | None = None, **kwargs: Any) -> None:
    """Write an image, or a grid of images, to a file; 0 is black and 1 white.

    Args:
        format: the file's format, such as "png"; by default the suffix of the path.

    Raises:
        ImportError: the format is not PNG, and Pillow is not installed.
    """
    with no_grad():
        grid = _make_grid(tensor, **kwargs)
        pixels = grid.mul(255).add_(0.5).clamp_(0, 255).permute(1, 2, 0).to(dtypes.uint8).numpy()
    kind = format or os.path.splitext(os.fspath(fp))[1][1:] if not hasattr(fp, "write") else format or ""
    if kind.lower() != "png" or find_spec("PIL") is not None:
        pillow(f"save_image writes {kind or 'this'} by Pillow").fromarray(pixels).save(fp, format=format)
    elif hasattr(fp, "write"):
        fp.write(png(pixels))
    else:
        with replacing(fp) as file:
            file.write(png(pixels))
