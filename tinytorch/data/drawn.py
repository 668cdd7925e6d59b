"""`DrawnFashion`: a synthetic image dataset, procedurally drawn pictures of clothes.

A garment is composed of polygons and ellipses, with a random texture (the cloth) and random dimensions. A shape is
represented by the signed distance of every pixel to its border, in pixels, positive inside; a distance between -1/2 and
1/2 means that the pixel is partly covered.

The same seed gives the same bytes on every processor: random bits come from NumPy's bit generators, whose streams are
fixed, and are converted to numbers here; and only correctly rounded floating-point operations are used (no sines, no
matrix products, no sums along an axis, whose order in NumPy depends on the processor).
"""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Callable
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from tinytorch.core.tensor import wrap
from tinytorch.data.vision import DownloadError, FashionMNIST, Pictures, read_idx

__all__ = ["DrawnFashion", "fashion_or_drawn"]

Array = np.ndarray[Any, Any]
Number = float | Array  # one number for all pictures of a block, or an array (B,)
Point = tuple[Number, Number]

TRAINING, TEST = 60_000, 10_000  # pictures, as of FashionMNIST
SIDE = 28  # pixels
BLOCK = 100  # number of pictures drawn at once: their arrays fit in the processor's cache
MEASURES = 64  # number of random numbers per picture
WORDS = (4 * MEASURES + 2 * SIDE * SIDE) // 8  # 64-bit words per picture, for random numbers and grain


class DrawnFashion(Pictures):
    """A synthetic replacement for FashionMNIST without a network, with the same numbers of pictures and classes.

    There are 60,000 training and 10,000 test pictures of 28×28 bytes, with balanced classes in random order.
    They are drawn when the dataset is created (in three seconds, or 0.5 for the test set) and kept in memory;
    no file is read or written. Cut, size, position, slope, cloth, brightness and grain are random. Four pictures
    in ten show dark clothes on a white background, the others bright clothes on black, so that a linear model,
    for which these are opposites, learns little.

    Accuracies are not comparable with those on FashionMNIST. Measured test accuracies follow; in each pair, a linear
    model and the quickstart's model (784-512-512-10, of `train_fashion_mnist.py`) were trained in the same way:

    | | drawn | FashionMNIST |
    |---|---|---|
    | linear, as the quickstart: SGD, lr 1e-3, 5 epochs | 46.6 % | 71.6 % |
    | quickstart | 65.5 % | 64.9 % |
    | linear, Adam, lr from 1e-3 to 0, 10 epochs, shuffled | 52.2 % | 84.3 % |
    | quickstart's model, so trained | 96.6 % | 90.0 % |
    | `examples/cnn_fashion_mnist.py` | 99.3 % | 92 % |

    Args:
        train: whether to draw the training samples, or else the test samples, which use another stream of
            random numbers.
        transform, target_transform: as for FashionMNIST.
        root, download: unused, for compatibility with FashionMNIST.
        seed: the seed of the random numbers, a nonnegative integer. The same seed gives the same pictures
            on any machine. torch's random generators are not used.

    Attributes:
        data, targets, classes: as for FashionMNIST.
        notice: a line for programs that print accuracies, which says that the dataset is not FashionMNIST.

    Raises:
        TypeError: `seed` is not an integer.
        ValueError: `seed` is negative.

    Example:
        >>> from tinytorch.data import DataLoader, DrawnFashion
        >>> from tinytorch.data.transforms import ToTensor
        >>> clothes = DrawnFashion(train=False, transform=ToTensor())
        >>> images, labels = next(iter(DataLoader(clothes, batch_size=64)))
        >>> images.shape, labels.shape
        (torch.Size([64, 1, 28, 28]), torch.Size([64]))
        >>> [clothes.classes[label] for label in labels[:4]]
        ['Pullover', 'Shirt', 'Sneaker', 'T-shirt/top']
    """

    classes = FashionMNIST.classes
    notice: ClassVar[str] = "These are drawn pictures, not FashionMNIST: accuracy and loss are not FashionMNIST's."

    def __init__(
        self,
        root: str | os.PathLike[str] | None = None,
        train: bool = True,
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[Any], Any] | None = None,
        download: bool = False,
        *,
        seed: int = 0,
    ) -> None:
        self.root = None
        self.train = train
        self.transform = transform
        self.target_transform = target_transform
        self.seed = operator.index(seed)
        if self.seed < 0:
            raise ValueError(f"seed should not be negative, but got {seed}")
        images, labels = draw(self.seed, 0 if train else 1, TRAINING if train else TEST)
        self.data, self.targets = wrap(images), wrap(labels)

    def extra_repr(self) -> str:
        """Return the lines of `repr` with seed and split."""
        return f"Seed: {self.seed}\n{super().extra_repr()}"


def fashion_or_drawn(
    root: str | os.PathLike[str] | None, which: Literal["auto", "fashion", "drawn"] = "auto"
) -> type[FashionMNIST] | type[DrawnFashion]:
    """Return FashionMNIST if it is available, or else DrawnFashion.

    Args:
        root: the folder of FashionMNIST's files, as for FashionMNIST.
        which: "fashion" or "drawn" to select a class. With "auto", FashionMNIST if its files are in `root` or can be
            downloaded, which is tried; otherwise DrawnFashion, and the reason is printed to standard error. Without
            a network the attempt takes at most ten seconds.

    Raises:
        RuntimeError: with "auto", if files exist, but are damaged.
        OSError: with "auto", if files exist, but cannot be read.
        ValueError: `which` has another value.

    Example:
        >>> from tinytorch.data import fashion_or_drawn
        >>> Fashion = fashion_or_drawn("data", "drawn")
        >>> Fashion(root="data", train=False, download=True)
        Dataset DrawnFashion
            Number of datapoints: 10000
            Seed: 0
            Split: Test
    """
    if which == "drawn":
        return DrawnFashion
    if which == "auto":
        try:
            FashionMNIST(root, train=False, download=True)
        except DownloadError as error:
            if len(error.found) == len(FashionMNIST.resources):
                raise  # all files exist, but one is damaged
            for path in error.found:
                read_idx(path, ndim=3 if "idx3" in os.path.basename(path) else 1)
            for mirror, why in error.failures:
                print(f"FashionMNIST cannot be downloaded from {mirror}: {why}", file=sys.stderr)
            return DrawnFashion
    elif which != "fashion":
        raise ValueError(f"which should be 'auto', 'fashion' or 'drawn', but got {which!r}")
    return FashionMNIST


# Drawing ------------------------------------------------------------------------------------------


class _Block:
    """A block of pictures of one kind of garment, which are drawn together.

    Arrays of pixels have the shape (rows, columns, B), so that random numbers per picture, (B,), broadcast,
    and inner loops are long.
    """

    def __init__(self, words: Array) -> None:
        """Create empty pictures from random `words`, (B, WORDS)."""
        count = len(words)
        octets = words.astype("<u8", copy=False).view(np.uint8)  # (B, 8 WORDS)
        measures = np.ascontiguousarray(octets[:, : 4 * MEASURES]).view("<u4").T  # (MEASURES, B)
        self._random = iter((measures >> 8).astype(np.float32) / 2**24)  # exact, in [0, 1)
        grain = octets[:, 4 * MEASURES :].reshape(count, 2, SIDE, SIDE).astype(np.int16)
        grain = np.ascontiguousarray((grain[:, 0] + grain[:, 1]).transpose(1, 2, 0))
        self.grain = grain.astype(np.float32) / 255 - 1  # in [-1, 1], with a triangular distribution
        self.pixels = np.zeros((SIDE, SIDE, count), np.float32)
        steps = np.arange(SIDE, dtype=np.float32) - (SIDE - 1) / 2
        self.column, self.row = steps[None, :, None], steps[:, None, None]

    # Random parameters

    def number(self, low: Number, high: Number) -> Array:
        """Return a random number for each picture, (B,)."""
        return low + (high - low) * next(self._random)

    def chance(self, share: float) -> Array:
        """Return a bool for each picture, (B,), which is true with probability `share`."""
        return next(self._random) < share

    def place(self, slant: float = 0.08, tilt: float = 0.0) -> None:
        """Draw a random affine map from the coordinates of shapes (pixels from the centre) to those of pixels.

        Vertical lines are slanted by a slope of at most `slant`, horizontal ones by `tilt`.
        """
        wide = self.number(0.97, 1.13)
        high = wide * self.number(0.94, 1.06)
        lean, rise = self.number(-slant, slant), self.number(-tilt, tilt)
        # x = self.x[0] * column + self.x[1] * row + self.x[2], and likewise y.
        self.x = 1 / wide, -lean / wide, self.number(-1.1, 1.1)
        self.y = -rise / high, 1 / high, self.number(-1.1, 1.1)
        self.size = np.minimum(wide, high)

    def weave(self, patterned: float = 0.5) -> None:
        """Draw a random cloth, (28, 28, B), with brightness, stripes or checks, light, folds and grain."""
        pattern = self.number(0, 4 / patterned)  # 0: vertical, 1, 2: horizontal, 3: diagonal stripes, else plain
        stripe = 1 / self.number(2.5, 7), self.number(0, 1), self.number(0.1, 0.35)
        frequency, phase, strength = stripe
        along = np.where(pattern < 1, 1, np.where(pattern < 3, 0, 0.7)).astype(np.float32)
        down = np.where(pattern < 1, 0, np.where(pattern < 3, 1, 0.7)).astype(np.float32)
        cloth = self._wave(along * frequency, down * frequency, phase)
        cloth *= np.where(pattern < 4, strength, 0)
        checked = self.chance(0.6) & (pattern < 1)
        cloth += self._wave(0 * frequency, frequency, phase) * np.where(checked, strength, 0)
        folds = self._wave(self.number(-0.09, 0.09), self.number(-0.05, 0.05), self.number(0, 1))
        folds *= self.number(0, 0.25)
        cloth += folds
        cloth += self.column * self.number(-0.012, 0.012) + self.row * self.number(-0.012, 0.012)
        cloth += self.grain * self.number(0.03, 0.28)
        cloth += 1
        cloth *= self.number(0.7, 1.0)
        self.cloth = cloth
        self.shade = self.number(0, 0.35)  # at the borders

    def _wave(self, along: Array, down: Array, phase: Array) -> Array:
        """Return a triangular wave of amplitude 1, with `along` and `down` periods per pixel."""
        wave = along * self.column + (down * self.row + phase)
        wave -= np.floor(wave)
        wave -= 0.5
        np.abs(wave, out=wave)
        wave *= 4
        wave -= 1
        return wave

    # Shapes

    def polygon(self, *corners: Point) -> Array:
        """Return the signed distance of the pixels to a convex polygon with clockwise corners."""
        inside = None
        for (x0, y0), (x1, y1) in zip(corners, [*corners[1:], corners[0]], strict=True):
            nx, ny = y0 - y1, x1 - x0
            along = nx * self.x[0] + ny * self.y[0]
            down = nx * self.x[1] + ny * self.y[1]
            start = nx * (self.x[2] - x0) + ny * (self.y[2] - y0)
            unit = 1 / np.sqrt(along * along + down * down + 1e-6)
            edge = (along * unit) * self.column + ((down * unit) * self.row + start * unit)
            inside = edge if inside is None else np.minimum(inside, edge, out=inside)
        assert inside is not None
        return inside

    def box(self, left: Number, top: Number, right: Number, bottom: Number) -> Array:
        """Return the signed distance of the pixels to a rectangle."""
        return self.polygon((left, top), (right, top), (right, bottom), (left, bottom))

    def line(self, x0: Number, y0: Number, x1: Number, y1: Number, width: Number) -> Array:
        """Return the signed distance of the pixels to a thick line."""
        dx, dy = x1 - x0, y1 - y0
        half = width / (2 * np.sqrt(dx * dx + dy * dy + 1e-6))
        a, b = dy * half, dx * half
        return self.polygon((x0 + a, y0 - b), (x1 + a, y1 - b), (x1 - a, y1 + b), (x0 - a, y0 + b))

    def ellipse(self, x: Number, y: Number, rx: Number, ry: Number) -> Array:
        """Return the approximate signed distance of the pixels to an ellipse."""
        across, down = (
            (plane[0] / r) * self.column + ((plane[1] / r) * self.row + (plane[2] - middle) / r)
            for plane, middle, r in ((self.x, x, rx), (self.y, y, ry))
        )
        across *= across
        down *= down
        across += down
        np.subtract(1, across, out=across)
        across *= np.minimum(rx, ry) * self.size / 2
        return across

    def both(self, *corners: Point) -> Array:
        """Return the signed distance of the pixels to the union of a polygon and its mirror image."""
        mirrored = self.polygon(*((-x, y) for x, y in reversed(corners)))
        return np.maximum(self.polygon(*corners), mirrored, out=mirrored)

    # Painting

    def sew(self, inside: Array, tone: Number = 1.0, where: Array | None = None) -> None:
        """Paint a shape with the cloth, scaled by `tone` and darker at its border, in the pictures `where`."""
        shade = np.clip(1.6 - inside, 0, 1)
        shade *= self.shade
        np.subtract(1, shade, out=shade)
        shade *= self.cloth
        shade *= tone
        self._cover(inside, shade, where)

    def dye(self, inside: Array, tone: Number, where: Array | None = None) -> None:
        """Paint a shape with the cloth, as `sew` does, without shade at its border."""
        self._cover(inside, self.cloth * tone, where)

    def cut(self, inside: Array, where: Array | None = None) -> None:
        """Remove a shape, down to the background."""
        self._cover(inside, 0.0, where)

    def _cover(self, inside: Array, value: Number, where: Array | None) -> None:
        share = inside + 0.5
        np.clip(share, 0, 1, out=share)
        if where is not None:
            share *= where
        share *= value - self.pixels
        self.pixels += share

    def develop(self) -> Array:
        """Return the pictures as bytes (B, 28, 28), four in ten of them inverted."""
        pixels = np.clip(self.pixels, 0, 1, out=self.pixels)
        np.abs(pixels - self.chance(0.4), out=pixels)
        pixels *= 255
        pixels += 0.5
        return pixels.astype(np.uint8).transpose(2, 0, 1)


# Garments: x to the right and y downwards, in pixels from the centre ------------------------------


class _Top(NamedTuple):
    """The dimensions of a T-shirt, pullover, shirt or coat: half widths and vertical positions."""

    neck: Array
    shoulder: Array
    hip: Array
    top: Array  # at the neck
    drop: Array  # from there to the shoulders
    hem: Array


def _top(d: _Block, hem: Point, flare: Point, neck: Point = (1.9, 3.4)) -> _Top:
    shoulder = d.number(4.8, 6.4)
    return _Top(
        d.number(*neck), shoulder, shoulder + d.number(*flare),
        d.number(-12.2, -10.8), d.number(0.8, 2.0), d.number(*hem),
    )  # fmt: skip


def _torso(d: _Block, cut: _Top) -> Array:
    n, s, w, t, h = cut.neck, cut.shoulder, cut.hip, cut.top, cut.hem
    y = t + cut.drop
    return d.polygon((-n, t), (n, t), (s, y), (w, h), (-w, h), (-s, y))


def _short_sleeves(d: _Block, cut: _Top, length: Number) -> Array:
    x, y = cut.shoulder, cut.top + cut.drop
    out, fall = d.number(0.7, 1.0) * length, d.number(0.4, 0.9) * length
    wide = d.number(3.2, 4.8)
    return d.both(
        (x - 1.5, y - 0.4), (x + out, y + fall),
        (x + out - 0.8 * wide, y + fall + 0.6 * wide), (x - 1.5, y + wide + 0.5),
    )  # fmt: skip


def _long_sleeves(d: _Block, cut: _Top, out: Point, end: Number) -> Array:
    x, y = cut.shoulder, cut.top + cut.drop
    wide, cuff = d.number(2.0, 3.0), x + d.number(*out)
    return d.both(
        (x - 1.5, y - 0.4), (x + 0.6, y + 0.6), (cuff, end),
        (cuff - wide, end + d.number(0, 0.8)), (x - 1.5, y + d.number(4.5, 6.0)),
    )  # fmt: skip


def _print(d: _Block, share: float) -> None:
    """Paint a spot on the chest of a share of the garments."""
    x, y, size = d.number(-1, 1), d.number(-5, 0), d.number(1.5, 3.5)
    spot = d.ellipse(x, y, size, size * d.number(0.5, 1.2))
    d.dye(spot, d.number(0.3, 1.6), d.chance(share))


def _t_shirt(d: _Block) -> None:
    cut = _top(d, hem=(6.5, 11), flare=(-0.6, 0.8))
    bare = d.chance(0.12)  # a top without sleeves
    long, tone = ~bare & d.chance(0.06), d.number(0.85, 1)
    d.sew(_short_sleeves(d, cut, d.number(5, 8)), tone, ~bare & ~long)
    d.sew(_long_sleeves(d, cut, (2.5, 5), cut.hem - d.number(0, 4)), tone, long)
    d.sew(_torso(d, cut))
    d.cut(d.ellipse(0, cut.top - 0.3, cut.neck + 0.5 * bare, d.number(1.2, 4) + 1.5 * bare))
    armholes = (d.ellipse(side * (cut.shoulder + 0.6), cut.top + 3.2, 2.0, 3.6) for side in (-1, 1))
    d.cut(np.maximum(*armholes), bare)
    _print(d, 0.3)


def _trouser(d: _Block) -> None:
    waist, top, hem = d.number(2.8, 4.2), d.number(-13, -11.5), d.number(10.5, 13)
    hip, crotch = waist + d.number(0.3, 1.4), d.number(-6, -2.5)
    ankle, half = d.number(1.5, 4), d.number(0.9, 2)
    legs = d.both((0.1, crotch - 3), (hip - 0.2, crotch - 3), (ankle + half, hem), (ankle - half, hem))
    seat = d.polygon((-waist, top), (waist, top), (hip, crotch), (-hip, crotch))
    d.sew(np.maximum(legs, seat))
    d.dye(d.line(0, top + 2, 0, crotch, 0.8), d.number(0.5, 0.9))
    d.dye(d.box(-waist, top, waist, top + 1.4), d.number(0.6, 1.2))


def _pullover(d: _Block) -> None:
    cut = _top(d, hem=(8, 11), flare=(-0.6, 0.8))
    d.sew(_long_sleeves(d, cut, (2.5, 5), cut.hem - d.number(0, 4)), d.number(0.85, 1))
    d.sew(_torso(d, cut))
    ribbed = d.number(0.75, 1.1)
    d.dye(d.box(-cut.hip, cut.hem - 1.8, cut.hip, cut.hem), ribbed, d.chance(0.7))
    n, y = cut.neck, cut.top - np.maximum(d.number(-2, 2.2), 0)  # some have a high collar
    d.sew(d.polygon((-n, y), (n, y), (n + 0.9, cut.top + 1.6), (-n - 0.9, cut.top + 1.6)), ribbed)
    d.cut(d.ellipse(0, y - 0.3, 0.9 * n, d.number(1.2, 2.6)))
    _print(d, 0.2)


def _dress(d: _Block) -> None:
    cut = _Top(
        d.number(1.6, 2.8), d.number(3.2, 5), d.number(2.4, 4),  # neck, shoulder, waist
        d.number(-13, -11.5), d.number(0.5, 1.5), d.number(-4, 1),
    )  # fmt: skip
    kind = d.number(0, 1)
    short = _short_sleeves(d, cut, d.number(2, 6))
    d.sew(short, d.number(0.85, 1), kind < 0.3)
    d.sew(_long_sleeves(d, cut, (2, 5), d.number(2, 6)), d.number(0.85, 1), kind > 0.85)
    waist, y, hem = cut.hip, cut.hem, d.number(9.5, 13)
    wide = waist + d.number(0.6, 5)
    skirt = d.polygon((-waist, y - 0.5), (waist, y - 0.5), (wide, hem), (-wide, hem))
    d.sew(np.maximum(_torso(d, cut), skirt, out=skirt))
    d.cut(d.ellipse(0, cut.top - 0.3, cut.neck, d.number(1.5, 4.5)))
    d.dye(d.box(-waist, y - 0.6, waist, y + 0.7), d.number(0.4, 1.2), d.chance(0.4))


def _coat(d: _Block) -> None:
    cut = _top(d, hem=(9.5, 13), flare=(-0.2, 1.8))
    n, top, hem = cut.neck, cut.top, cut.hem
    d.sew(_long_sleeves(d, cut, (2, 4), d.number(5.5, 9.5)), d.number(0.85, 1))
    d.sew(_torso(d, cut))
    dark, middle, end = d.number(0.3, 0.85), d.number(-0.8, 0.8), top + d.number(4, 9)
    d.dye(d.line(middle, end, middle, hem, d.number(0.7, 1.5)), dark, d.chance(0.85))
    d.dye(d.polygon((-n, top - 0.2), (n, top - 0.2), (middle, end)), d.number(0.5, 1.1))
    lapel, turned = d.number(0.8, 1.1), d.chance(0.8)
    d.sew(d.polygon((-n, top), (middle, end), (-n - 1.6, top + 3.5)), lapel, turned)
    d.sew(d.polygon((n, top), (n + 1.6, top + 3.5), (middle, end)), lapel, turned)
    belt = d.number(0, 3)
    d.dye(d.box(-cut.hip, belt, cut.hip, belt + 1.4), dark, d.chance(0.25))


def _shirt(d: _Block) -> None:
    cut = _top(d, hem=(9.5, 12.5), flare=(-1, 0.2), neck=(1.8, 2.8))
    n, top, hem = cut.neck, cut.top, cut.hem
    short, tone = d.chance(0.2), d.number(0.85, 1)
    d.sew(_long_sleeves(d, cut, (2, 4.5), hem - d.number(0, 4)), tone, ~short)
    d.sew(_short_sleeves(d, cut, d.number(3.5, 7.5)), tone, short)
    d.sew(_torso(d, cut))
    d.cut(d.ellipse(0, hem + 0.9, 0.45 * cut.hip, d.number(0.8, 2)))  # longer at the sides
    end = top + d.number(2, 4.5)
    d.cut(d.polygon((-n, top - 0.6), (n, top - 0.6), (0, end)))
    collar, pointed = d.number(0.85, 1.15), d.chance(0.8)
    d.sew(d.polygon((-n, top - 0.8), (0, end), (-n - 0.6, top + 2.6)), collar, pointed)
    d.sew(d.polygon((n, top - 0.8), (n + 0.6, top + 2.6), (0, end)), collar, pointed)
    buttoned = d.line(0, end, 0, hem - 0.5, 1.1)
    d.dye(buttoned, d.number(0.75, 1.15), d.chance(0.8))


def _sole(d: _Block, toe: Array, heel: Array, y: Array, thick: Array, lift: Number) -> Array:
    """Return the shape of a sole from the toe, on the left, to the lifted heel."""
    ball = 0.6 * toe + 0.4 * heel
    front = d.polygon((toe, y - thick), (ball, y - thick), (ball, y), (toe + 0.6, y))
    back = d.polygon((ball - 0.3, y - thick), (heel, y - thick - lift), (heel, y - lift), (ball - 0.3, y))
    return np.maximum(front, back, out=front)


def _sandal(d: _Block) -> None:
    toe, heel = d.number(-13, -11), d.number(10, 12.5)
    length, ball = heel - toe, 0.6 * toe + 0.4 * heel
    y, thick = d.number(7.5, 11), d.number(1.2, 2.6)
    flat = d.chance(0.2)
    lift = np.where(flat, d.number(0, 1), d.number(4, 9))
    wedge, tone, wide = d.chance(0.4), d.number(0.6, 1.1), d.number(1.0, 2.2)
    d.sew(d.polygon((ball, y), (heel, y - lift), (heel, y), (ball + 1, y)), tone, wedge)
    top = y - lift - 0.5
    stiletto = d.polygon((heel - wide, top), (heel, top), (heel - 0.3, y), (heel - 0.3 - 0.7 * wide, y))
    d.sew(stiletto, tone, ~wedge)
    d.sew(_sole(d, toe, heel, y, thick, lift), d.number(0.6, 1.1))
    # An upper with gaps, between which are straps.
    high, instep, arch = d.number(4, 8), d.number(-4, 1), y - thick - 0.35 * lift
    back = y - lift - thick
    upper = d.polygon(
        (toe + 0.4, y - thick), (toe + 1.5, y - thick - 2), (instep, arch - d.number(4, 7.5)),
        (heel - 1.2, back - high), (heel, back - high + 0.5), (heel - 0.2, back + 0.8),
        (ball, y - thick + 0.6),
    )  # fmt: skip
    d.sew(upper)
    middle = (instep + heel) / 2
    hole = heel - instep
    level = back - high * d.number(0.2, 0.5)
    d.cut(d.ellipse(middle + 0.5, level, hole * d.number(0.28, 0.4), high * d.number(0.5, 0.8)), d.chance(0.85))
    level = back - high - d.number(0.8, 2.5)
    d.cut(d.ellipse(middle, level, hole * d.number(0.3, 0.5), 0.4 * high), d.chance(0.6))
    upper -= d.number(-1, 1.6)  # the region of the gaps: some leave a rim
    for place, share in ((0.05, 0.5), (0.17, 0.8), (0.29, 0.8), (0.41, 0.5)):
        x = toe + place * length + d.number(0, 1)
        gap = d.line(x, y - thick - 0.6, x + d.number(1, 3.5), y - thick - 9.6, d.number(1, 2.4))
        d.cut(np.minimum(gap, upper, out=gap), d.chance(share))


def _sneaker(d: _Block) -> None:
    toe, heel = d.number(-13, -11), d.number(10, 12.5)
    y, thick, high = d.number(4.5, 7.5), d.number(1.2, 2.4), d.number(6.5, 11) + 2.5 * d.chance(0.1)
    vamp, throat = d.number(2.2, 3.8), d.number(-3, 1.5)
    d.sew(
        d.polygon(
            (toe + 0.4, y - vamp), (toe + 2.5, y - vamp - 1.2), (throat, y - high),
            (heel - 1, y - high), (heel, y - thick), (heel, y), (toe + 0.3, y),
        )
    )  # fmt: skip
    middle, length = (throat + heel) / 2 + 0.8, heel - throat
    d.cut(d.ellipse(middle, y - high - 0.3, 0.42 * length, d.number(1, 2.6)))
    sole = _sole(d, toe, heel + 0.3, y + 0.6, thick, 0)
    d.sew(sole, d.number(0.4, 1.6))
    bright = d.number(0.4, 1.5)
    for place in (0, 0.33, 0.66):  # laces
        x, top = toe + 3.5 + place * (throat - toe - 2.5), y - vamp - place * (high - vamp)
        d.dye(d.line(x, top - 0.2, x + 1.6, top + 2, 0.8), bright)
    x = d.number(0, 4)
    stripe = d.line(x, y - thick, x + d.number(1.5, 4), y - high + 2, d.number(0.8, 2))
    d.dye(stripe, bright, d.chance(0.5))


def _bag(d: _Block) -> None:
    wide, bottom, top = d.number(8, 12.5), d.number(9, 12.5), d.number(-6, 0)
    narrow = wide - d.number(-0.5, 2.5)
    rx, ry, strap = wide * d.number(0.35, 0.85), (top + 13) * d.number(0.5, 1), d.number(0.8, 1.8)
    handle = d.ellipse(0, top + 0.5, rx, ry)
    hole = d.ellipse(0, top + 0.5, np.maximum(rx - strap, 0.5), np.maximum(ry - strap, 0.5))
    np.minimum(handle, -hole, out=handle)
    np.minimum(handle, d.box(-16, -16, 16, top + 1), out=handle)
    d.sew(handle, d.number(0.5, 1.1), d.chance(0.85))
    d.sew(
        d.polygon(
            (-narrow, top), (narrow, top), (wide, bottom - 1), (wide - 1, bottom),
            (1 - wide, bottom), (-wide, bottom - 1),
        )
    )  # fmt: skip
    flap = top + (bottom - top) * d.number(0.25, 0.6)
    shape = d.polygon((-wide, top), (wide, top), (0.85 * wide, flap), (-0.85 * wide, flap))
    d.sew(shape, d.number(0.75, 1.15), d.chance(0.5))
    clasp = d.number(0.6, 1.3)
    d.dye(d.ellipse(0, flap, clasp, clasp), d.number(0.3, 1.6), d.chance(0.6))


def _ankle_boot(d: _Block) -> None:
    toe, heel, y = d.number(-12.5, -10), d.number(7.5, 10.5), d.number(9.5, 12)
    top, wide, vamp = y - d.number(14, 22), d.number(8, 10), d.number(3, 4.5)
    thick, lift = d.number(0.8, 1.8), np.where(d.chance(0.4), d.number(2.5, 5), d.number(0.5, 1.5))
    front, instep = heel - wide, y - d.number(7, 9.5)
    foot = d.polygon(
        (toe, y - 0.5 * vamp), (toe + 1.5, y - vamp), (front + 0.5, instep),
        (heel, instep - 1), (heel, y - lift), (toe + 0.5, y),
    )  # fmt: skip
    shaft = d.polygon(
        (front + d.number(-0.8, 0.8), top), (heel + d.number(-0.8, 0.8), top),
        (heel, instep + 3), (front + 1, instep + 3),
    )  # fmt: skip
    d.sew(np.maximum(foot, shaft, out=foot))
    tone = d.number(0.3, 1.2)
    d.sew(_sole(d, toe, heel, y, thick, lift), tone)
    d.sew(
        d.polygon(
            (heel - d.number(2, 5), y - lift - 0.3), (heel, y - lift - 0.3),
            (heel, y), (heel - d.number(1.5, 3.5), y),
        ),
        tone,
    )  # fmt: skip
    x = front + wide * d.number(0.3, 0.7)
    d.dye(d.line(x, top + 1, x, instep, 0.9), d.number(0.4, 1.4), d.chance(0.4))
    d.dye(d.box(front - 1, top, heel + 1, top + 1.5), d.number(0.5, 1.2), d.chance(0.4))


#: By label: the function that draws the garment, its largest tilt, and the share with a pattern.
GARMENTS: tuple[tuple[Callable[[_Block], None], float, float], ...] = (
    (_t_shirt, 0, 0.5), (_trouser, 0, 0.2), (_pullover, 0, 0.5), (_dress, 0, 0.5), (_coat, 0, 0.5),
    (_sandal, 0.1, 0.1), (_shirt, 0, 0.6), (_sneaker, 0.1, 0.15), (_bag, 0.05, 0.5),
    (_ankle_boot, 0.05, 0.1),
)  # fmt: skip


def draw(seed: int, split: int, count: int, block: int = BLOCK) -> tuple[Array, Array]:
    """Return N = `count` pictures, uint8 (N, 28, 28), and labels, int64 (N,), with balanced classes in random order.

    `split` selects one of the two sets of a seed: 0 for training, 1 for test. `block`, the number of pictures drawn at
    once, affects only memory and time.
    """

    def stream(number: int) -> np.random.PCG64:
        return np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(split, number)))

    classes = len(GARMENTS)
    order = np.argsort(stream(classes).random_raw(count), kind="stable")
    labels = order % classes
    pictures = np.empty((count, SIDE, SIDE), np.uint8)
    for label, (garment, tilt, patterned) in enumerate(GARMENTS):
        bits, places = stream(label), np.flatnonzero(labels == label)
        for start in range(0, len(places), block):
            where = places[start : start + block]
            drawing = _Block(bits.random_raw(len(where) * WORDS).reshape(len(where), WORDS))
            drawing.place(tilt=tilt)
            drawing.weave(patterned)
            garment(drawing)
            pictures[where] = drawing.develop()
    return pictures, labels.astype(np.int64, copy=False)
