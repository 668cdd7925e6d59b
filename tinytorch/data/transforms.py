"""Transforms of images with torchvision's names: ToTensor, Normalize, Compose, RandomCrop and others.

A transform is a callable that maps one image. A transform that can process many images at once has a second method,
`__batch__(images)`, which returns the stacked results of the single calls:

- the first transform of raw images takes an array (N, H, W) or (N, H, W, C) and returns a Tensor (N, C, H, W);
- later transforms take and return a Tensor (N, C, H, W). They may write to it, since it is a new tensor.

Datasets of raw arrays (`FashionMNIST`) use it; other transforms are called image by image. The operations on images are
in `images`. Random transforms draw the same numbers as torchvision's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinytorch.core.tensor import Tensor
from tinytorch.data import images as functional
from tinytorch.data.dataset import is_not_shadowed
from tinytorch.data.images import InterpolationMode
from tinytorch.kernels import dtypes
from tinytorch.nn.modules.module import Module
from tinytorch.ops.random import rand, randint

__all__ = [
    "CenterCrop", "Compose", "ConvertImageDtype", "Grayscale", "InterpolationMode", "Lambda", "Normalize",
    "PILToTensor", "Pad", "RandomCrop", "RandomHorizontalFlip", "RandomVerticalFlip", "Resize", "ToPILImage",
    "ToTensor",
]  # fmt: skip

Transform = Callable[[Any], Any]


class _ReprMixin:
    """Defines `repr` by the attributes named in `_repr_names`."""

    _repr_names: tuple[str, ...] = ()

    def __repr__(self) -> str:
        settings = ", ".join([f"{name}={getattr(self, name)}" for name in self._repr_names])
        return f"{self.__class__.__name__}({settings})"


class ToTensor(_ReprMixin):
    """Convert an image to a tensor (C, H, W); bytes are scaled to [0, 1].

    The image is a Pillow image or a NumPy array (H, W) or (H, W, C). Bytes are uint8 arrays and Pillow's
    modes L, LA, P, RGB, YCbCr, RGBA, CMYK and 1; other dtypes keep their dtype and values.

    Example:
        >>> import numpy as np
        >>> from tinytorch.data.transforms import ToTensor
        >>> ToTensor()(np.array([[0, 51], [102, 255]], dtype=np.uint8))
        tensor([[[0.0000, 0.2000],
                 [0.4000, 1.0000]]])
    """

    def __call__(self, pic: Any) -> Tensor:
        """Return the image as a tensor (C, H, W)."""
        return functional.to_tensor(pic)

    def __batch__(self, images: np.ndarray[Any, Any]) -> Tensor:
        if not isinstance(images, np.ndarray):
            raise TypeError(f"pic should be PIL Image or ndarray. Got {type(images)}")
        if images.ndim == 3:
            images = images[..., None]  # (N, H, W, C)
        return functional.scale_bytes(images.transpose(0, 3, 1, 2))  # (N, C, H, W)


class Normalize(_ReprMixin):
    """Normalize the channels: (x - mean[channel]) / std[channel].

    Args:
        mean, std: one number per channel, or one for all.
        inplace: whether to write the result to the input.

    Example:
        >>> from tinytorch.data.transforms import Normalize
        >>> Normalize(mean=(0.5,), std=(0.5,))(torch.tensor([[[0.0, 0.5, 1.0]]]))
        tensor([[[-1.,  0.,  1.]]])
    """

    _repr_names = ("mean", "std")

    def __init__(self, mean: float | Sequence[float], std: float | Sequence[float], inplace: bool = False) -> None:
        self.mean = mean
        self.std = std
        self.inplace = inplace

    def __call__(self, tensor: Tensor) -> Tensor:
        """Return the image (..., C, H, W) normalized."""
        return functional.normalize(tensor, self.mean, self.std, self.inplace)

    def __batch__(self, images: Tensor) -> Tensor:
        return functional.normalize(images, self.mean, self.std, inplace=True)


class Compose:
    """A composition of transforms, which are applied one after the other.

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
        """Return the result of the last transform."""
        for transform in self.transforms:
            img = transform(img)
        return img

    def __repr__(self) -> str:
        lines = "".join(f"\n    {transform}" for transform in self.transforms)
        return f"{self.__class__.__name__}({lines}\n)"


class Lambda(_ReprMixin):
    """A function as a transform.

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
        """Return the result of the function."""
        return self.lambd(img)


# Transforms of single images ----------------------------------------------------------------------


class PILToTensor(_ReprMixin):
    """Convert a Pillow image to a tensor (C, H, W) with the same values."""

    def __call__(self, pic: Any) -> Tensor:
        """Return the image as a tensor."""
        return functional.pil_to_tensor(pic)


class ToPILImage:
    """Convert a tensor (C, H, W) or an array (H, W, C) to a Pillow image; see `images.to_pil_image`."""

    def __init__(self, mode: str | None = None) -> None:
        self.mode = mode

    def __call__(self, pic: Any) -> Any:
        """Return the Pillow image."""
        return functional.to_pil_image(pic, self.mode)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({'' if self.mode is None else f'mode={self.mode}'})"


class ConvertImageDtype(Module):
    """Convert an image to another dtype, scaled so that white stays white; see `images.convert_image_dtype`."""

    def __init__(self, dtype: dtypes.dtype) -> None:
        super().__init__()
        self.dtype = dtype

    def forward(self, image: Tensor) -> Tensor:
        """Return the image in the dtype."""
        return functional.convert_image_dtype(image, self.dtype)


class Resize(Module):
    """Resize images.

    Example:
        >>> from tinytorch.data.transforms import Resize
        >>> Resize(10)(torch.rand(3, 20, 30)).shape
        torch.Size([3, 10, 15])
    """

    def __init__(
        self,
        size: int | Sequence[int],
        interpolation: Any = InterpolationMode.BILINEAR,
        max_size: int | None = None,
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        if not isinstance(size, (int, Sequence)):
            raise TypeError(f"Size should be int or sequence. Got {type(size)}")
        if isinstance(size, Sequence) and len(size) not in (1, 2):
            raise ValueError("If size is a sequence, it should have 1 or 2 values")
        self.size, self.max_size, self.antialias = size, max_size, antialias
        self.interpolation = functional.mode_of(interpolation) if isinstance(interpolation, int) else interpolation

    def forward(self, img: Any) -> Any:
        """Return the resized image."""
        return functional.resize(img, self.size, self.interpolation, self.max_size, self.antialias)

    def __repr__(self) -> str:
        mode = self.interpolation.value
        detail = f"(size={self.size}, interpolation={mode}, max_size={self.max_size}, antialias={self.antialias})"
        return f"{self.__class__.__name__}{detail}"


class CenterCrop(_ReprMixin, Module):
    """Crop images to a central rectangle, (height, width), or square."""

    _repr_names = ("size",)

    def __init__(self, size: int | Sequence[int]) -> None:
        super().__init__()
        self.size = functional.pair(size)

    def forward(self, img: Any) -> Any:
        """Return the central part of the image."""
        return functional.center_crop(img, self.size)


class Pad(_ReprMixin, Module):
    """Pad images."""

    _repr_names = ("padding", "fill", "padding_mode")

    def __init__(self, padding: int | Sequence[int], fill: Any = 0, padding_mode: str = "constant") -> None:
        super().__init__()
        functional.check_padding(padding, fill, padding_mode)
        self.padding, self.fill, self.padding_mode = padding, fill, padding_mode

    def forward(self, img: Any) -> Any:
        """Return the padded image."""
        return functional.pad(img, self.padding, self.fill, self.padding_mode)


class Grayscale(_ReprMixin, Module):
    """Convert images to greyscale, with 1 or 3 equal channels."""

    _repr_names = ("num_output_channels",)

    def __init__(self, num_output_channels: int = 1) -> None:
        super().__init__()
        self.num_output_channels = num_output_channels

    def forward(self, img: Any) -> Any:
        """Return the image in greyscale."""
        return functional.rgb_to_grayscale(img, self.num_output_channels)


class RandomCrop(_ReprMixin, Module):
    """Crop images at a random position.

    Args:
        pad_if_needed: whether to pad an image that is smaller than the crop.

    Example:
        >>> from tinytorch.data.transforms import RandomCrop
        >>> _ = torch.manual_seed(0)
        >>> RandomCrop(2, padding=1)(torch.arange(9).view(1, 3, 3))
        tensor([[[0, 0],
                 [2, 0]]])
    """

    _repr_names = ("size", "padding")

    def __init__(
        self,
        size: int | Sequence[int],
        padding: int | Sequence[int] | None = None,
        pad_if_needed: bool = False,
        fill: Any = 0,
        padding_mode: str = "constant",
    ) -> None:
        super().__init__()
        self.size, self.padding, self.pad_if_needed = functional.pair(size), padding, pad_if_needed
        self.fill, self.padding_mode = fill, padding_mode

    @staticmethod
    def get_params(img: Any, output_size: tuple[int, int]) -> tuple[int, int, int, int]:
        """Return the top, left, height and width of a random crop."""
        (_, rows, columns), (height, width) = functional.get_dimensions(img), output_size
        if rows < height or columns < width:
            raise ValueError(
                f"Required crop size {(height, width)} is larger than input image size {(rows, columns)}"
            )  # fmt: skip
        if (rows, columns) == (height, width):
            return 0, 0, rows, columns
        top, left = (int(randint(0, margin + 1, (1,)).item()) for margin in (rows - height, columns - width))
        return top, left, height, width

    def forward(self, img: Any) -> Any:
        """Return the cropped image."""
        if self.padding is not None:
            img = functional.pad(img, self.padding, self.fill, self.padding_mode)
        if self.pad_if_needed:
            _, rows, columns = functional.get_dimensions(img)
            for missing in ([self.size[1] - columns, 0], [0, self.size[0] - rows]):
                if max(missing) > 0:
                    img = functional.pad(img, missing, self.fill, self.padding_mode)
        return functional.crop(img, *self.get_params(img, self.size))


class RandomHorizontalFlip(_ReprMixin, Module):
    """Flip images horizontally with the probability `p`.

    Example:
        >>> from tinytorch.data.transforms import RandomHorizontalFlip
        >>> RandomHorizontalFlip(p=1.0)(torch.tensor([[1, 2]]))
        tensor([[2, 1]])
    """

    _repr_names = ("p",)

    _flip = staticmethod(functional.hflip)

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = p

    def forward(self, img: Any) -> Any:
        """Return the image, flipped or not."""
        return self._flip(img) if rand(1).item() < self.p else img


class RandomVerticalFlip(RandomHorizontalFlip):
    """Flip images vertically with the probability `p`."""

    _flip = staticmethod(functional.vflip)


def split(transform: Transform | None) -> tuple[list[Transform], list[Transform]]:
    """Return the leading steps of a transform that can process batches of raw images, and the remaining steps.

    All steps after the first one without `__batch__` are called image by image, so that random transforms draw the
    same numbers as if all steps were.
    """
    steps = [] if transform is None else _steps(transform)
    batched: list[Transform] = []
    for step in steps:
        if not is_not_shadowed(type(step), "__batch__", "__call__"):
            break
        batched.append(step.__batch__)  # type: ignore[attr-defined]
    return batched, steps[len(batched) :]


def _steps(transform: Transform) -> list[Transform]:
    if type(transform) is not Compose:  # a subclass may call its transforms differently
        return [transform]
    return [step for part in transform.transforms for step in _steps(part)]
