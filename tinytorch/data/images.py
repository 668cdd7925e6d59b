"""Operations on Pillow images and tensors (…, C, H, W): the commonest of `torchvision.transforms.functional`.

Operations on a Pillow image return a Pillow image. Pillow is imported only to create an image from a tensor or array.
"""

from __future__ import annotations

import struct
import sys
import zlib
from enum import Enum
from typing import Any, cast

import numpy as np

from tinytorch.core.tensor import Tensor, wrap
from tinytorch.kernels import dtypes
from tinytorch.nn.functional.resampling import interpolate
from tinytorch.ops.create import as_tensor, from_numpy
from tinytorch.ops.nn.padding import pad as _padded

__all__ = [
    "InterpolationMode", "center_crop", "convert_image_dtype", "crop", "get_dimensions", "get_image_num_channels",
    "get_image_size", "hflip", "normalize", "pad", "pil_to_tensor", "resize", "rgb_to_grayscale", "to_grayscale",
    "to_pil_image", "to_tensor", "vflip",
]  # fmt: skip

#: The dtypes of Pillow's modes whose elements are not bytes.
_PIL_DTYPES = {"I": np.int32, "F": np.float32, "I;16" if sys.byteorder == "little" else "I;16B": np.int16}


class InterpolationMode(Enum):
    """Interpolation modes of `resize`; the last three are for Pillow images only."""

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


#: Pillow's constants of the interpolation modes.
_RESAMPLING = {"nearest": 0, "lanczos": 1, "bilinear": 2, "bicubic": 3, "box": 4, "hamming": 5, "nearest-exact": 0}


def mode_of(interpolation: Any) -> InterpolationMode:
    """Return an interpolation mode, passed as such or as Pillow's constant."""
    if isinstance(interpolation, int):
        interpolation = InterpolationMode(next(k for k, number in _RESAMPLING.items() if number == interpolation))
    if not isinstance(interpolation, InterpolationMode):
        raise TypeError(
            "Argument interpolation should be a InterpolationMode or a corresponding Pillow integer constant"
        )  # fmt: skip
    return interpolation


# Properties of images -----------------------------------------------------------------------------


def is_pil(image: Any) -> bool:
    """Return whether `image` is a Pillow image, by a method that only these have."""
    return hasattr(image, "getbands")


def _check_image(image: Any) -> Any:
    """Return `image`; raise TypeError if it is not an image."""
    if isinstance(image, Tensor):
        if image.ndim < 2:
            raise TypeError("Tensor is not a torch image.")
    elif not is_pil(image):
        raise TypeError(f"Unexpected type: img should be PIL Image or Tensor. Got {type(image)}")
    return image


def pillow(what: str, remedy: str = "") -> Any:
    """Return the module `PIL.Image`, or raise an error that tells what needs it, and the remedy."""
    try:
        from PIL import Image
    except ModuleNotFoundError:
        raise ImportError(f"{what}, and Pillow is not installed: pip install pillow{remedy}") from None
    return Image


def get_dimensions(img: Any) -> list[int]:
    """Return [channels, height, width].

    Example:
        >>> from tinytorch.data.images import get_dimensions
        >>> get_dimensions(torch.zeros(3, 4, 5))
        [3, 4, 5]
    """
    if isinstance(_check_image(img), Tensor):
        return [1 if img.ndim == 2 else img.shape[-3], *img.shape[-2:]]
    return [len(img.getbands()), img.height, img.width]


def get_image_size(img: Any) -> list[int]:
    """Return [width, height]."""
    return get_dimensions(img)[:0:-1]


def get_image_num_channels(img: Any) -> int:
    """Return the number of channels."""
    return get_dimensions(img)[0]


# Conversion ---------------------------------------------------------------------------------------


def _from_pil(image: Any, dtype: Any) -> np.ndarray[Any, Any]:
    """Return a Pillow image as an array (C, H, W)."""
    array = np.array(image, dtype)
    if image.mode == "1" and dtype is not None:
        array *= 255
    return array.reshape(image.size[1], image.size[0], len(image.getbands())).transpose(2, 0, 1)


def scale_bytes(image: np.ndarray[Any, Any]) -> Tensor:
    """Return bytes scaled to [0, 1] in the default dtype, and other dtypes unchanged."""
    if image.dtype != np.uint8:
        return from_numpy(np.ascontiguousarray(image))
    # Divided, since products with 1/255 may have rounding errors.
    numbers = image.astype(dtypes.get_default_dtype().numpy, order="C")
    numbers /= 255
    return wrap(numbers)


def to_tensor(pic: Any) -> Tensor:
    """Return a Pillow image or an array (H, W) or (H, W, C) as a tensor (C, H, W); bytes are scaled to [0, 1]."""
    if isinstance(pic, np.ndarray):
        if pic.ndim not in (2, 3):
            raise ValueError(f"pic should be 2/3 dimensional. Got {pic.ndim} dimensions.")
        return scale_bytes((pic if pic.ndim == 3 else pic[:, :, None]).transpose(2, 0, 1))
    if not is_pil(pic):
        raise TypeError(f"pic should be PIL Image or ndarray. Got {type(pic)}")
    return scale_bytes(_from_pil(pic, _PIL_DTYPES.get(pic.mode, np.uint8)))


def pil_to_tensor(pic: Any) -> Tensor:
    """Return a Pillow image as a tensor (C, H, W) with the same values."""
    if not is_pil(pic):
        raise TypeError(f"pic should be PIL Image. Got {type(pic)}")
    return from_numpy(np.ascontiguousarray(_from_pil(pic, None)))


def to_pil_image(pic: Any, mode: str | None = None) -> Any:
    """Return a tensor (C, H, W) or (H, W), or an array (H, W, C) or (H, W), as a Pillow image.

    Args:
        pic: an image with 1 to 4 channels; floating-point values are in [0, 1].
        mode: Pillow's mode, by default "L", "LA", "RGB" or "RGBA".

    Raises:
        ImportError: Pillow is not installed.
    """
    if not isinstance(pic, (Tensor, np.ndarray)):
        raise TypeError(f"pic should be Tensor or ndarray. Got {type(pic)}.")
    if pic.ndim not in (2, 3):
        raise ValueError(f"pic should be 2/3 dimensional. Got {pic.ndim} dimensions.")
    if isinstance(pic, Tensor):
        if pic.is_floating_point() and mode != "F":
            pic = pic.mul(255).byte()
        array = pic.numpy() if pic.ndim == 2 else pic.numpy().transpose(1, 2, 0)
    else:
        array = pic
    array = array[:, :, None] if array.ndim == 2 else array
    channels = array.shape[2]
    if channels > 4:
        raise ValueError(f"pic should not have > 4 channels. Got {channels} channels.")
    if channels == 1:
        array = array[:, :, 0]
        modes = {"u1": "L", "i4": "I", "f4": "F", "i2": "I;16" if sys.byteorder == "little" else "I;16B"}
        expected = modes.get(array.dtype.str[1:])
        if mode is not None and mode != expected:
            raise ValueError(
                f"Incorrect mode ({mode}) supplied for input type {array.dtype}. Should be {expected}"
            )  # fmt: skip
        mode = expected
    else:
        permitted = {2: ["LA"], 3: ["RGB", "YCbCr", "HSV"], 4: ["RGBA", "CMYK", "RGBX"]}[channels]
        if mode is not None and mode not in permitted:
            raise ValueError(f"Only modes {permitted} are supported for {channels}D inputs")
        mode = (mode or permitted[0]) if array.dtype == np.uint8 else None
    if mode is None:
        raise TypeError(f"Input type {array.dtype} is not supported")
    size = array.shape[1], array.shape[0]
    return pillow("this makes a Pillow image").frombuffer(mode, size, array.tobytes(), "raw", mode, 0, 1)


def _white(dtype: Any) -> int:
    return 1 if dtype.is_floating_point or dtype is dtypes.bool else int(np.iinfo(dtype.numpy).max)


def convert_image_dtype(image: Tensor, dtype: Any = dtypes.float32) -> Tensor:
    """Return an image in another dtype, scaled so that white stays white.

    Raises:
        RuntimeError: the precision of the floating-point dtype is too low for the integer dtype.

    Example:
        >>> from tinytorch.data.images import convert_image_dtype
        >>> convert_image_dtype(torch.tensor([[0, 51, 255]], dtype=torch.uint8))
        tensor([[0.0000, 0.2000, 1.0000]])
    """
    if not isinstance(image, Tensor):
        raise TypeError("Input img should be Tensor Image")
    if image.dtype is dtype:
        return image
    if image.is_floating_point():
        if dtype.is_floating_point:
            return image.to(dtype)
        if (image.dtype.itemsize, dtype.itemsize) in ((4, 4), (4, 8), (8, 8)):
            raise RuntimeError(f"The cast from {image.dtype} to {dtype} cannot be performed safely.")
        return image.mul(_white(dtype) + 1.0 - 1e-3).to(dtype)
    before, after = _white(image.dtype), _white(dtype)
    if dtype.is_floating_point:
        return image.to(dtype) / before
    if before > after:
        return image.div((before + 1) // (after + 1), rounding_mode="floor").to(dtype)
    return image.to(dtype) * ((after + 1) // (before + 1))


def normalize(tensor: Tensor, mean: Any, std: Any, inplace: bool = False) -> Tensor:
    """Return (x - mean[channel]) / std[channel] of an image (…, C, H, W); see `transforms.Normalize`."""
    if not isinstance(tensor, Tensor):
        raise TypeError(f"img should be Tensor Image. Got {type(tensor)}")
    if not tensor.is_floating_point():
        raise TypeError(f"Input tensor should be a float tensor. Got {tensor.dtype}.")
    if tensor.ndim < 3:
        raise ValueError(
            f"Expected tensor to be a tensor image of size (..., C, H, W). Got tensor.size() = {tensor.size()}"
        )
    mean, std = (as_tensor(numbers, dtype=tensor.dtype) for numbers in (mean, std))
    if (std == 0).any():
        raise ValueError(f"std evaluated to zero after conversion to {tensor.dtype}, leading to division by zero.")
    # One number per channel: (C,) -> (C, 1, 1)
    mean, std = (value.view(-1, 1, 1) if value.ndim == 1 else value for value in (mean, std))
    if not inplace:
        tensor = tensor.clone()
    return tensor.sub_(mean).div_(std)


def png(pixels: np.ndarray[Any, Any]) -> bytes:
    """Return an array (H, W, 1 to 4 channels) of bytes as a PNG file."""
    height, width, channels = pixels.shape
    color_type = {1: 0, 2: 4, 3: 2, 4: 6}[channels]  # grey, grey and alpha, RGB, RGBA
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], 1)  # 0: no filter
    header = struct.pack(">IIBBBBB", width, height, 8, color_type, 0, 0, 0)
    data = b"\x89PNG\r\n\x1a\n"
    for name, chunk in {b"IHDR": header, b"IDAT": zlib.compress(rows.tobytes()), b"IEND": b""}.items():
        data += struct.pack(">I", len(chunk)) + name + chunk + struct.pack(">I", zlib.crc32(name + chunk))
    return data


# Geometry -----------------------------------------------------------------------------------------


def hflip(img: Any) -> Any:
    """Return the image flipped horizontally."""
    return img.flip(-1) if isinstance(_check_image(img), Tensor) else img.transpose(0)


def vflip(img: Any) -> Any:
    """Return the image flipped vertically."""
    return img.flip(-2) if isinstance(_check_image(img), Tensor) else img.transpose(1)


def crop(img: Any, top: int, left: int, height: int, width: int) -> Any:
    """Return a rectangle of the image, which is black outside of the image.

    Example:
        >>> from tinytorch.data.images import crop
        >>> crop(torch.tensor([[1, 2], [3, 4]]), 1, 0, 2, 2)
        tensor([[3, 4],
                [0, 0]])
    """
    if not isinstance(_check_image(img), Tensor):
        return img.crop((left, top, left + width, top + height))
    below, right = top + height - img.shape[-2], left + width - img.shape[-1]
    part = img[..., max(top, 0) : max(top + height, 0), max(left, 0) : max(left + width, 0)]
    outside = [max(-left, 0), max(right, 0), max(-top, 0), max(below, 0)]
    return _padded(part, outside) if any(outside) else part


def center_crop(img: Any, output_size: Any) -> Any:
    """Return a central rectangle, (height, width) or a square, which is black outside of the image."""
    height, width = pair(output_size)
    _, rows, columns = get_dimensions(img)
    missing = max(width - columns, 0), max(height - rows, 0)
    if any(missing):
        img = pad(img, [*(n // 2 for n in missing), *((n + 1) // 2 for n in missing)])
        _, rows, columns = get_dimensions(img)
        if (rows, columns) == (height, width):
            return img
    return crop(img, round((rows - height) / 2), round((columns - width) / 2), height, width)


def pair(size: Any) -> tuple[int, int]:
    """Return a size, which may be one number, as (height, width)."""
    if isinstance(size, (int, float)):
        return int(size), int(size)
    if len(size) not in (1, 2):
        raise ValueError("Please provide only two dimensions (h, w) for size.")
    return size[0], size[-1]


def check_padding(padding: Any, fill: Any, padding_mode: str) -> None:
    """Check the arguments of `pad`."""
    if not isinstance(padding, (int, float, tuple, list)):
        raise TypeError("Got inappropriate padding arg")
    if not isinstance(fill, (int, float, tuple, list, str)) and fill is not None:
        raise TypeError("Got inappropriate fill arg")
    if padding_mode not in ("constant", "edge", "reflect", "symmetric"):
        raise ValueError("Padding mode should be either constant, edge, reflect or symmetric")
    if isinstance(padding, (tuple, list)) and len(padding) not in (1, 2, 4):
        raise ValueError(f"Padding must be an int or a 1, 2, or 4 element tuple, not a {len(padding)} element tuple")


def pad(img: Any, padding: Any, fill: Any = 0, padding_mode: str = "constant") -> Any:
    """Return the image with padding.

    Args:
        padding: its width, or [left and right, top and bottom], or [left, top, right, bottom].
        fill: the value of its pixels; for Pillow images also one per channel.
        padding_mode: "constant", "edge" (repeat the border), "reflect" (without the border) or "symmetric" (with it).

    Example:
        >>> from tinytorch.data.images import pad
        >>> pad(torch.tensor([[1, 2]]), [1, 0], padding_mode="edge")
        tensor([[1, 1, 2, 2]])
    """
    check_padding(padding, fill, padding_mode)
    sides = (padding,) if isinstance(padding, (int, float)) else tuple(padding)
    left, top, right, bottom = sides * (4 // len(sides))
    if not isinstance(_check_image(img), Tensor):
        return _padded_pil(img, (left, top, right, bottom), fill, padding_mode)
    if padding_mode == "constant":
        if not isinstance(fill or 0, (int, float)):
            raise TypeError("Got inappropriate fill arg")
        return _padded(img, [left, right, top, bottom], value=float(fill or 0))
    if padding_mode == "symmetric" and img.ndim < 3:
        raise RuntimeError("Symmetric padding of N-D tensors are not supported yet")
    mode = cast(Any, padding_mode)
    rows = np.pad(np.arange(img.shape[-2]), (top, bottom), mode)
    columns = np.pad(np.arange(img.shape[-1]), (left, right), mode)
    return img[..., wrap(rows)[:, None], wrap(columns)]


def _padded_pil(image: Any, sides: tuple[int, ...], fill: Any, padding_mode: str) -> Any:
    if padding_mode == "constant":
        from PIL import ImageOps

        bands = len(image.getbands())
        if isinstance(fill or 0, (int, float)) and bands > 1:
            fill = (fill or 0,) * bands
        if isinstance(fill, (tuple, list)):
            if len(fill) not in (1, bands):
                raise ValueError(
                    "The number of elements in 'fill' does not match the number of channels of the image "
                    f"({len(fill)} != {bands})"
                )
            fill = tuple(fill) * (bands // len(fill))
            fill = fill[0] if bands == 1 else fill
        padded = ImageOps.expand(image, border=sides, fill=fill or 0)
    else:
        left, top, right, bottom = sides
        array, mode = np.asarray(image), cast(Any, padding_mode)
        ends = [(top, bottom), (left, right), (0, 0)][: array.ndim]
        padded = pillow("this pads a Pillow image").fromarray(np.pad(array, ends, mode))
    if image.mode == "P":
        padded.putpalette(image.getpalette())
    return padded


def resize(
    img: Any,
    size: Any,
    interpolation: Any = InterpolationMode.BILINEAR,
    max_size: int | None = None,
    antialias: bool | None = True,
) -> Any:
    """Return the image resized.

    Args:
        size: (height, width), or the length of the shorter side.
        antialias: whether to apply antialiasing when downsampling. Pillow images always use it.

    Example:
        >>> from tinytorch.data.images import resize
        >>> resize(torch.rand(3, 20, 30), 10).shape
        torch.Size([3, 10, 15])
    """
    mode = mode_of(interpolation).value
    _, rows, columns = get_dimensions(img)
    sizes = [size] if isinstance(size, int) else list(size)
    if len(sizes) not in (1, 2):
        raise ValueError(f"Size must be an int or a 1 or 2 element tuple/list, not a {len(sizes)} element tuple/list")
    if max_size is not None and len(sizes) != 1:
        raise ValueError(
            "max_size should only be passed if size specifies the length of the smaller edge, i.e. size should be an "
            "int or a sequence of length 1 in torchscript mode."
        )
    if len(sizes) == 1:
        short, long = sorted((rows, columns))
        shorter, longer = sizes[0], int(sizes[0] * long / short)
        if max_size is not None:
            if max_size <= shorter:
                raise ValueError(
                    f"max_size = {max_size} must be strictly greater than the requested size for the smaller edge "
                    f"size = {size}"
                )
            if longer > max_size:
                shorter, longer = int(max_size * shorter / longer), max_size
        sizes = [longer, shorter] if columns <= rows else [shorter, longer]
    if sizes == [rows, columns]:
        return img
    if not isinstance(img, Tensor):
        return img.resize(sizes[::-1], _RESAMPLING[mode])
    batch = img if img.ndim >= 4 else img[None]
    if img.dtype not in (dtypes.float32, dtypes.float64):
        batch = batch.float()
    smooth = mode in ("bilinear", "bicubic")
    options: Any = {"align_corners": False, "antialias": bool(antialias)} if smooth else {}
    result = interpolate(batch, size=sizes, mode=mode, **options)
    if mode == "bicubic" and img.dtype is dtypes.uint8:
        result = result.clamp(0, 255)
    if not img.is_floating_point():
        result = result.round()
    return (result if img.ndim >= 4 else result[0]).to(img.dtype)


# Colours ------------------------------------------------------------------------------------------


def rgb_to_grayscale(img: Any, num_output_channels: int = 1) -> Any:
    """Return a colour image (…, 3, H, W) converted to greyscale, with 1 or 3 equal channels.

    Example:
        >>> from tinytorch.data.images import rgb_to_grayscale
        >>> rgb_to_grayscale(torch.tensor([1.0, 0.0, 0.0]).view(3, 1, 1))
        tensor([[[0.2989]]])
    """
    if not isinstance(img, Tensor):
        return to_grayscale(img, num_output_channels)
    if img.ndim < 3:
        raise TypeError(f"Input image tensor should have at least 3 dimensions, but found {img.ndim}")
    channels = img.shape[-3]
    if channels not in (1, 3):
        raise TypeError(f"Input image tensor permitted channel values are [1, 3], but found {channels}")
    if num_output_channels not in (1, 3):
        raise ValueError("num_output_channels should be either 1 or 3")
    grey = img
    if channels == 3:
        red, green, blue = img.unbind(-3)
        grey = (0.2989 * red + 0.587 * green + 0.114 * blue).to(img.dtype).unsqueeze(-3)
    return grey if num_output_channels == 1 else grey.expand(img.shape)  # a single channel stays single


def to_grayscale(img: Any, num_output_channels: int = 1) -> Any:
    """Return a Pillow image converted to greyscale, with 1 or 3 equal channels."""
    if not is_pil(img):
        raise TypeError("Input should be PIL Image")
    if num_output_channels not in (1, 3):
        raise ValueError("num_output_channels should be either 1 or 3")
    grey = img.convert("L")
    return grey if num_output_channels == 1 else grey.convert("RGB")
