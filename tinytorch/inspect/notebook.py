"""How notebooks show tensors and summaries: HTML in the colours of the page around it, light or dark.

`Tensor._repr_html_` shows what `repr` does not: the range, a histogram, and images of the matrices in the tensor. Only
a sample of a large tensor is read, and no op is called, so no graph is recorded.
"""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tinytorch.autograd.picture import XML, printable
from tinytorch.core import layout
from tinytorch.core.mode import local
from tinytorch.core.names import module_of
from tinytorch.core.supplied import declare_members
from tinytorch.core.tensor import Tensor
from tinytorch.kernels import dtypes
from tinytorch.kernels.meta import is_meta

__all__ = ["Row", "escaped", "size_text", "table"]

_SAMPLE = 200_000  # elements that are read of a larger tensor
_FEW = 12  # elements up to which there is no histogram
_SHOWN = 100  # elements up to which the values are shown at once
_IMAGES, _SIDE = 8, 128  # images that are shown, and their largest side
_BINS = 48

_STYLE = """<style>
.tt-card{font:12px/1.5 ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;color:inherit;max-width:46em}
.tt-card *{box-sizing:border-box}
.tt-card .tt-chips{display:flex;flex-wrap:wrap;gap:4px 6px;margin:4px 0}
.tt-card .tt-chips span{border:1px solid rgba(128,128,128,.45);border-radius:4px;padding:0 6px;overflow-wrap:anywhere}
.tt-card .tt-chips .tt-main{background:rgba(76,141,214,.2);border-color:rgba(76,141,214,.7)}
.tt-card .tt-chips .tt-alarm{background:rgba(217,83,60,.2);border-color:rgba(217,83,60,.8)}
.tt-card .tt-parts{display:flex;flex-wrap:wrap;gap:8px 20px;align-items:flex-end;margin:6px 0}
.tt-card figure{margin:0}
.tt-card figure>svg{display:block;border-bottom:1px solid rgba(128,128,128,.6)}
.tt-card figcaption{display:flex;justify-content:space-between;gap:1em;opacity:.75;font-size:11px}
.tt-card img{display:block;image-rendering:pixelated;border:1px solid rgba(128,128,128,.45)}
.tt-card .tt-images{display:flex;flex-wrap:wrap;gap:4px}
.tt-card summary{cursor:pointer}
.tt-card pre{margin:2px 0;padding:0;overflow-x:auto;font:inherit;background:none;color:inherit}
.tt-card.tt-table{max-width:60em}
.tt-table .tt-row{display:grid;grid-template-columns:minmax(0,1fr) 13em 9em 10em;padding:1px 4px}
.tt-table .tt-row>*{text-align:right;white-space:nowrap;overflow:hidden;text-overflow:ellipsis}
.tt-table .tt-row>:first-child{text-align:left}
@media(max-width:560px){.tt-table .tt-row{grid-template-columns:minmax(0,1fr) 9.5em 7em}
.tt-table .tt-row>:nth-child(4){display:none}}
.tt-table .tt-head{border-bottom:1px solid rgba(128,128,128,.6);opacity:.75}
.tt-table .tt-row:not(.tt-head):hover{background:rgba(128,128,128,.14)}
.tt-table details>summary{list-style:none}
.tt-table .tt-sum{opacity:.65}
.tt-table details>summary::-webkit-details-marker{display:none}
.tt-table details>summary>:first-child::before{content:'\u25b8 ';opacity:.7}
.tt-table details[open]>summary>:first-child::before{content:'\u25be '}
.tt-table .tt-leaf>:first-child::before{content:'\u00a0 '}
.tt-table .tt-foot{border-top:1px solid rgba(128,128,128,.6);padding:3px 4px}
.tt-table .tt-bar{background:linear-gradient(#4c8dd6,#4c8dd6) no-repeat bottom right}
</style>"""


def escaped(value: Any) -> str:
    """Return an object's text for HTML.

    Example:
        >>> from tinytorch.inspect.notebook import escaped
        >>> escaped("List<int>")
        'List&lt;int&gt;'
    """
    return printable(str(value)).translate(XML)


# Tensors ------------------------------------------------------------------------------------------


def _repr_html_(self: Tensor) -> str | None:
    """Return how notebooks show the tensor; None, for its `repr`, inside of modes and if a subclass has its own."""
    theirs = [cls for cls in type(self).__mro__ if module_of(cls).partition(".")[0] not in (_LIBRARY, "builtins")]
    if local.state.modes or any(name in vars(cls) for cls in theirs for name in ("__repr__", "__torch_function__")):
        return None
    array = _array_of(self)
    chips = [f'<span class="tt-main">{escaped(text)}</span>' for text in (type(self).__name__, list(self.shape))]
    chips += [f"<span>{escaped(text)}</span>" for text in _facts(self, array)]
    parts: list[str] = []
    if array is not None and array.size:
        sample = _sampled(array)
        chips += _statistics(sample, array)
        if array.size > _FEW and array.dtype != bool:
            parts.append(_histogram(sample, array.dtype.kind in "iu"))
        parts.append(_images(array, self.dtype) if tuple(array.shape) == tuple(self.shape) else "")
    shown = self.numel() <= _SHOWN
    values = f"<details{' open' * shown}><summary>values</summary><pre>{_lines(repr(self))}</pre></details>"
    return (
        f'{_STYLE}<div class="tt-card"><div class="tt-chips">{"".join(chips)}</div>'
        f'<div class="tt-parts">{"".join(parts)}</div>{values}</div>'
    )


_LIBRARY = __name__.partition(".")[0]


def _array_of(x: Tensor) -> Any:
    """Return the elements as an array, for a sparse tensor those that it stores; None if there are none."""
    if x.layout is not layout.strided:
        x = x._values() if x.layout is layout.sparse_coo else x.values()
    array = x._array
    return array if isinstance(array, np.ndarray) and not is_meta(array) else None


def _facts(x: Tensor, array: Any) -> list[str]:
    found = [x.dtype.name]
    if x.layout is not layout.strided:
        found.append(f"{str(x.layout).rpartition('.')[2]}, {0 if array is None else len(array):,} stored")
    if x.device.type != "cpu":
        found.append(f"device {x.device}")
    try:
        node = x.grad_fn
        grad_fn = None if node is None else type(node).__name__
    except RuntimeError:  # a view that a write to its base has invalidated
        grad_fn = "Invalid"
    if grad_fn is not None:
        found.append(f"grad_fn {grad_fn}")
    elif x.requires_grad:
        found.append("requires_grad")
    found.append(size_text((x.numel() if array is None else array.size) * x.dtype.itemsize, ".3g"))
    return found


def size_text(count: int, form: str = ".2f") -> str:
    """Return a number of bytes with its unit."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:{form}} {unit}"
    return f"{count} B"


def _sampled(array: Any) -> Any:
    """Return elements as float64, or bool: all, or of a large array a random sample; the magnitudes of complex ones."""
    if array.size > _SAMPLE:
        places = np.random.default_rng(0).integers(0, array.size, _SAMPLE)  # (a stream of its own)
        array = array[np.unravel_index(places, array.shape)]
    array = array.reshape(-1)
    if array.dtype == bool:
        return array
    return np.abs(array).astype(np.float64) if array.dtype.kind == "c" else array.astype(np.float64)


def _statistics(sample: Any, array: Any) -> list[str]:
    """Return chips with the range and the mean of the finite elements, and the numbers of the others."""
    of_all = "" if len(sample) == array.size else f" of {len(sample):,} sampled"
    if sample.dtype == bool:
        return [f"<span>{int(sample.sum()):,} true{of_all}</span>"]
    finite = sample[np.isfinite(sample)]
    chips = []
    if len(finite):
        with np.errstate(all="ignore"):
            figures = [("min", finite.min()), ("max", finite.max()), ("mean", finite.mean()), ("std", finite.std())]
        chips += [f"<span>{name}{' |x|' * (array.dtype.kind == 'c')} {figure:.4g}</span>" for name, figure in figures]
    for name, count in (("NaN", np.isnan(sample).sum()), ("inf", np.isinf(sample).sum())):
        if count:
            chips.append(f'<span class="tt-alarm">{int(count):,} {name}{of_all}</span>')
    if of_all:
        chips.append(f"<span>figures{of_all}</span>")
    return chips


def _histogram(sample: Any, whole: bool) -> str:
    """Return a histogram of the finite elements; with a bar per number where there are few whole ones."""
    finite = sample[np.isfinite(sample)]
    if not len(finite):
        return ""
    low, high = float(finite.min()), float(finite.max())
    if not math.isfinite(high - low) or high == low:
        return ""
    few = whole and high - low < _BINS
    bins = round(high - low) + 1 if few else _BINS
    counts, _ = np.histogram(finite, bins, (low - 0.5, high + 0.5) if few else (low, high))
    tallest, full, height = counts.max(), _BINS * 5, 52
    width = full / bins
    bars = "".join(
        f'<rect x="{k * width:.4g}" y="{height - bar:.1f}" width="{width - 1:.4g}" height="{bar:.1f}"/>'
        for k, bar in enumerate(counts / tallest * (height - 2))
        if bar
    )
    zero = (0 - low) / (high - low) * full
    mark = f'<path d="M{zero:.1f} 0V{height}" stroke="currentColor" stroke-dasharray="2 2" opacity=".6"/>'
    return (
        f'<figure><svg width="{full}" height="{height}" role="img"><title>histogram</title>'
        f'<g fill="#4c8dd6">{bars}</g>{mark * (low < 0 < high and not few)}</svg>'
        f"<figcaption><span>{low:.3g}</span><span>{high:.3g}</span></figcaption></figure>"
    )


# Images -------------------------------------------------------------------------------------------


def _images(array: Any, dtype: dtypes.dtype) -> str:
    """Return the matrices in an array as images; (3, H, W) and (N, 3, H, W) in colours, if it looks like images."""
    if array.ndim < 2 or min(array.shape[-2:]) < 4 or array.dtype.kind == "c":
        return ""
    whole = array.reshape(-1, *array.shape[-2:]) if array.ndim == 2 else array
    coloured = array.ndim in (3, 4) and array.shape[-3] == 3 and min(array.shape[-2:]) >= 8
    shape = array.shape[:-3] if coloured else array.shape[:-2]
    count = math.prod(shape)
    step = max(1, math.ceil(max(array.shape[-2:]) / _SIDE))
    parts = [
        (whole if array.ndim == 2 else array)[(*np.unravel_index(k, shape), ...)] if shape else array
        for k in range(min(count, _IMAGES))
    ]
    parts = [part[..., ::step, ::step].astype(np.float64) for part in parts]
    finite = [part[np.isfinite(part)] for part in parts]
    low = min([float(part.min()) for part in finite if part.size] or [0.0])
    high = max([float(part.max()) for part in finite if part.size] or [0.0])
    if coloured:
        top = 255.0 if dtype is dtypes.uint8 else 1.0
        if low >= 0 and high <= top:
            low, high = 0.0, top
        pictures = [np.moveaxis(_scaled(part, low, high), 0, -1) for part in parts]
    else:
        pictures = [_shaded(part, low, high) for part in parts]
    scale = max(1, min(8, (96 if count > 1 else 160) // max(parts[0].shape[-2:])))
    shown = "".join(
        f'<img width="{picture.shape[1] * scale}" height="{picture.shape[0] * scale}" alt="" src="{_png(picture)}">'
        for picture in pictures
    )
    caption = f"{len(parts)} of {count:,}" if count > len(parts) else ""
    caption += f"{', ' * bool(caption)}one pixel in {step}" if step > 1 else ""
    return f'<figure><div class="tt-images">{shown}</div><figcaption>{caption}</figcaption></figure>'


def _scaled(part: Any, low: float, high: float) -> Any:
    """Return bytes from 0 for `low` to 255 for `high`; NaN is 0."""
    span = high - low
    scaled = (part - low) / span if span > 0 and math.isfinite(span) else np.full_like(part, 0.5)
    return (np.nan_to_num(np.clip(scaled, 0, 1)) * 255 + 0.5).astype(np.uint8)


def _shaded(part: Any, low: float, high: float) -> Any:
    """Return a matrix as colours: greys, or blue for negative and red for positive numbers; NaN is magenta."""
    if low < 0 < high:
        most = max(-low, high)
        strength = _scaled(np.abs(part), 0.0, most)[..., None] / 255.0
        ends = np.where((part < 0)[..., None], [32.0, 84.0, 168.0], [178.0, 40.0, 40.0])
        colours = (245.0 + (ends - 245.0) * strength).astype(np.uint8)
    else:
        colours = np.repeat(_scaled(part, low, high)[..., None], 3, -1)
    colours[np.isnan(part)] = (255, 0, 255)
    return colours


def _png(picture: Any) -> str:
    """Return an array (height, width, 3) of bytes as a data address with a PNG file."""
    height, width, _ = picture.shape

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = np.concatenate([np.zeros((height, 1), np.uint8), picture.reshape(height, -1)], 1)  # 0: no filter
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    file = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows.tobytes())) + chunk(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + file).decode()


def _lines(text: str) -> str:
    return "\n".join(escaped(line) for line in text.split("\n"))


# Tables -------------------------------------------------------------------------------------------


class Row:
    """A row of a table: its cells, the part that its third cell is of the total, and the rows below it."""

    __slots__ = ("cells", "open", "rows", "share")

    def __init__(self, cells: Sequence[str], share: float, rows: Iterable[Row], open: bool) -> None:
        self.cells, self.share, self.rows, self.open = cells, share, list(rows), open

    def html(self, depth: int) -> str:
        """Return the row, and those below it, which a click shows or hides; then its numbers are sums of theirs."""
        first, shape, *numbers = map(escaped, self.cells)
        bar = f' class="tt-bar" style="background-size:{self.share * 100:.1f}% 2px"' if self.share and depth else ""
        cells = f'<span style="padding-left:{depth * 1.3:g}em" title="{first}">{first}</span>'
        cells += f'<span title="{shape}">{shape}</span>'
        for k, number in enumerate(numbers):
            text = f'<span class="tt-sum">{number}</span>' if self.rows else number
            cells += f"<span{bar * (k == 0)}>{text}</span>"
        if not self.rows:
            return f'<div class="tt-row tt-leaf">{cells}</div>'
        below = "".join(row.html(depth + 1) for row in self.rows)
        return f'<details{" open" * self.open}><summary class="tt-row">{cells}</summary>{below}</details>'


def table(head: Sequence[str], rows: Iterable[Row], foot: str) -> str:
    """Return a table of four columns, whose rows are a tree, as HTML."""
    heads = "".join(f"<span>{escaped(cell)}</span>" for cell in head)
    body = "".join(row.html(0) for row in rows)
    return (
        f'{_STYLE}<div class="tt-card tt-table"><div class="tt-row tt-head">{heads}</div>{body}'
        f'<div class="tt-foot">{escaped(foot)}</div></div>'
    )


declare_members({"_repr_html_": _repr_html_}, listed=False)
