"""Transforms of images with torchvision's names: ToTensor, Normalize, Compose, Lambda.

A transform is any callable of one image. One that can work on many images at once says so by a second method,
`__batch__(images)`, which returns what stacking the results of the single calls would give:

- one that begins with raw images takes an array (N, H, W) or (N, H, W, C) and returns a Tensor (N, C, H, W);
- one that comes after it takes and returns a Tensor (N, C, H, W). It may write into it: the batch is a fresh one.

Datasets of raw arrays (`FashionMNIST`) use it; other transforms are called image by image.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinytorch.core.tensor import Tensor, wrap
from tinytorch.data.dataset import has_last_word
from tinytorch.kernels.dtypes import get_default_dtype
from tinytorch.ops.create import as_tensor, from_numpy

__all__ = ["Compose", "Lambda", "Normalize", "ToTensor"]

Transform = Callable[[Any], Any]

#: The element types of Pillow's modes that are not bytes.
_PIL_DTYPES = {"I": np.int32, "F": np.float32, "I;16" if sys.byteorder == "little" else "I;16B": np.int16}


class ToTensor:
    """Turns an image into a tensor (C, H, W); bytes become numbers 0 … 1.

    Takes a Pillow image or a NumPy array (H, W) or (H, W, C). Bytes are uint8 arrays and Pillow's
    modes L, LA, P, RGB, YCbCr, RGBA, CMYK and 1; other element types keep their type and values.

    Raises:
        TypeError: the image is neither a Pillow image nor an array.
        ValueError: the array has not 2 or 3 dimensions.

    Example:
        >>> import numpy as np
        >>> from tinytorch.data.transforms import ToTensor
        >>> ToTensor()(np.array([[0, 51], [102, 255]], dtype=np.uint8))
        tensor([[[0.0000, 0.2000],
                 [0.4000, 1.0000]]])
    """

    def __call__(self, pic: Any) -> Tensor:
        """Return the image as a tensor (C, H, W)."""
        if isinstance(pic, np.ndarray):
            if pic.ndim not in (2, 3):
                raise ValueError(f"pic should be 2/3 dimensional. Got {pic.ndim} dimensions.")
            image = pic if pic.ndim == 3 else pic[:, :, None]  # (H, W, C)
        elif hasattr(pic, "getbands"):  # what Pillow's images have, and nothing else does
            image = np.array(pic, _PIL_DTYPES.get(pic.mode, np.uint8))
            if pic.mode == "1":
                image *= 255
            image = image.reshape(pic.size[1], pic.size[0], len(pic.getbands()))
        else:
            raise TypeError(f"pic should be PIL Image or ndarray. Got {type(pic)}")
        return _scaled(image.transpose(2, 0, 1))  # (C, H, W)

    def __batch__(self, images: np.ndarray[Any, Any]) -> Tensor:
        if not isinstance(images, np.ndarray):
            raise TypeError(f"pic should be PIL Image or ndarray. Got {type(images)}")
        if images.ndim == 3:
            images = images[..., None]  # (N, H, W, C)
        return _scaled(images.transpose(0, 3, 1, 2))  # (N, C, H, W)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}()"


def _scaled(image: np.ndarray[Any, Any]) -> Tensor:
    """Return bytes as numbers 0 … 1 (of the default dtype), and everything else as it is."""
    if image.dtype != np.uint8:
        return from_numpy(np.ascontiguousarray(image))
    # Divided, not multiplied by 1/255: the products are off by a rounding error here and there.
    scaled = image.astype(get_default_dtype().numpy, order="C")
    scaled /= 255
    return wrap(scaled)


class Normalize:
    """Shifts and scales each channel: (x - mean[channel]) / std[channel].

    Args:
        mean, std: one number per channel, or one for all.
        inplace: whether to write the result into the image that is given.

    Raises:
        TypeError: the image is no tensor, or no floating-point one.
        ValueError: it has fewer than 3 dimensions, or a `std` is zero.

    Example:
        >>> from tinytorch.data.transforms import Normalize
        >>> Normalize(mean=(0.5,), std=(0.5,))(torch.tensor([[[0.0, 0.5, 1.0]]]))
        tensor([[[-1.,  0.,  1.]]])
    """

    def __init__(self, mean: float | Sequence[float], std: float | Sequence[float], inplace: bool = False) -> None:
        self.mean = mean
        self.std = std
        self.inplace = inplace

    def __call__(self, tensor: Tensor) -> Tensor:
        """Return the image (..., C, H, W) normalized."""
        return self._normalize(tensor, self.inplace)

    def __batch__(self, images: Tensor) -> Tensor:
        return self._normalize(images, inplace=True)

    def _normalize(self, image: Tensor, inplace: bool) -> Tensor:
        if not isinstance(image, Tensor):
            raise TypeError(f"img should be Tensor Image. Got {type(image)}")
        if not image.is_floating_point():
            raise TypeError(f"Input tensor should be a float tensor. Got {image.dtype}.")
        if image.ndim < 3:
            raise ValueError(
                f"Expected tensor to be a tensor image of size (..., C, H, W). Got tensor.size() = {image.size()}"
            )
        mean, std = (as_tensor(numbers, dtype=image.dtype) for numbers in (self.mean, self.std))
        if (std == 0).any():
            raise ValueError(f"std evaluated to zero after conversion to {image.dtype}, leading to division by zero.")
        # One number per channel: (C,) -> (C, 1, 1)
        mean, std = (per.view(-1, 1, 1) if per.ndim == 1 else per for per in (mean, std))
        if not inplace:
            image = image.clone()
        return image.sub_(mean).div_(std)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}(mean={self.mean}, std={self.std})"


class Compose:
    """Transforms one after the other.

    Example:
        >>> from tinytorch.data.transforms import Compose, Lambda, ToTensor
        >>> Compose([ToTensor(), Lambda(lambda x: x.flatten())])
        Compose(
            ToTensor()
            Lambda()
        )
    """

    def __init__(self, transforms: Sequence[Transform]) -> None:
        self.transforms = transforms

    def __call__(self, img: Any) -> Any:
        """Return what the last transform returns."""
        for transform in self.transforms:
            img = transform(img)
        return img

    def __repr__(self) -> str:
        lines = "".join(f"\n    {transform}" for transform in self.transforms)
        return f"{self.__class__.__name__}({lines}\n)"


class Lambda:
    """A function as a transform.

    Raises:
        TypeError: `lambd` is not callable.

    Example:
        >>> from tinytorch.data.transforms import Lambda
        >>> Lambda(lambda x: 2 * x)(3)
        6
    """

    def __init__(self, lambd: Transform) -> None:
        if not callable(lambd):
            raise TypeError(f"Argument lambd should be callable, got {type(lambd).__name__!r}")
        self.lambd = lambd

    def __call__(self, img: Any) -> Any:
        """Return what the function returns."""
        return self.lambd(img)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}()"


def split(transform: Transform | None) -> tuple[list[Transform], list[Transform]]:
    """Return a transform's steps: those that work on a batch of raw images, then the others.

    Only the beginning counts. What comes after the first step without a `__batch__` is called image
    by image, so that random transforms draw in the same order as if all were called image by image.
    """
    steps = [] if transform is None else _steps(transform)
    whole: list[Transform] = []
    for step in steps:
        if not has_last_word(type(step), "__batch__", "__call__"):
            break
        whole.append(step.__batch__)  # type: ignore[attr-defined]
    return whole, steps[len(whole) :]


def _steps(transform: Transform) -> list[Transform]:
    if type(transform) is not Compose:  # a subclass may call its transforms in a way of its own
        return [transform]
    return [step for part in transform.transforms for step in _steps(part)]
