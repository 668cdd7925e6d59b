"""An array as the text that PyTorch prints for a tensor: arrays in, text out.

The text is made in three steps. `_shown` converts the array to nested lists of Python numbers, with
`...` where a long dimension is abbreviated. `_float_format` chooses one format for all numbers that
are shown, so that they line up. `_body` arranges the formatted numbers in rows. `format_tensor` adds
the frame: `tensor(`, and the suffixes (`dtype=...`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from . import dtypes
from .meta import is_meta
from .silence import quiet

_PROFILES: dict[str, dict[str, Any]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}
_options: dict[str, Any] = {**_PROFILES["default"], "sci_mode": None}


def set_printoptions(
    precision: int | None = None, threshold: float | None = None, edgeitems: int | None = None,
    linewidth: int | None = None, profile: str | None = None, sci_mode: bool | None = None,
) -> None:  # fmt: skip
    """Set how tensors are printed; options that are None keep their value, except `sci_mode`.

    Args:
        precision: digits after the decimal point, 4 at first.
        threshold: a tensor of more elements than this is shown by its edges only, 1000 at first.
        edgeitems: how many elements are shown at either end of a long dimension, 3 at first.
        linewidth: characters per line, 80 at first.
        profile: "default", "short" or "full" (never abbreviated), which set the four options above.
        sci_mode: whether to write 1.0000e+00; None lets the magnitudes decide. Every call sets it, as in PyTorch.

    Example:
        >>> torch.set_printoptions(precision=2)
        >>> torch.tensor([1.12345])
        tensor([1.12])
        >>> torch.set_printoptions(profile="default")
    """
    if profile is not None:
        _options.update(_PROFILES.get(profile, {}))
    options = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    _options.update({name: value for name, value in options.items() if value is not None})
    _options["sci_mode"] = sci_mode


def get_printoptions() -> dict[str, Any]:
    """Return the options of printing as the keyword arguments of `set_printoptions`.

    Example:
        >>> from tinytorch.kernels.printing import get_printoptions
        >>> get_printoptions()["precision"]
        4
    """
    return dict(_options)


@contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """Set the options of `set_printoptions` inside a `with` block, and restore the previous ones after it.

    Example:
        >>> with torch._tensor_str.printoptions(precision=2):
        ...     print(torch.tensor([1 / 3]))
        tensor([0.33])
    """
    before = get_printoptions()
    set_printoptions(**options)
    try:
        yield
    finally:
        set_printoptions(**before)


@quiet
def format_tensor(
    array: np.ndarray[Any, Any], dtype: dtypes.dtype, *, name: str = "tensor", requires_grad: bool = False,
    grad_fn: str | None = None, device: str | None = None, tangent: str | None = None, contents: str | None = None,
) -> str:  # fmt: skip
    """Return PyTorch's `repr` of a tensor that holds `array`, character for character.

    Args:
        dtype: the dtype of the elements; it is printed unless the elements imply it.
        name: the text before the bracket: "tensor", or the name of a subclass.
        requires_grad: whether to print `requires_grad=True` if there is no `grad_fn`.
        grad_fn: the name of the node that produced the tensor, such as "AddBackward0".
        device: the device if it is not the default one, such as "cuda:0".
        tangent: the text of a dual tensor's tangent.
        contents: a text to print in place of the elements.

    Example:
        >>> import numpy as np
        >>> from tinytorch.kernels import dtypes
        >>> format_tensor(np.array([1.0, 2.5]), dtypes.float64, requires_grad=True)
        'tensor([1.0000, 2.5000], dtype=torch.float64, requires_grad=True)'
    """
    prefix = name + "("
    suffixes = [] if device is None else [f"device='{device}'"]
    if is_meta(array):
        text = "..."
        suffixes = ["device='meta'", f"size={array.shape}"]
        explicit = dtype is not dtypes.get_default_dtype()  # no element hints at the type
    elif array.size == 0:
        text = "[]" if contents is None else contents
        if array.ndim != 1:
            suffixes.append(f"size={array.shape}")
        explicit = dtype is not dtypes.get_default_dtype()  # no element hints at the type
    else:
        text = _format_elements(array, dtype, indent=len(prefix)) if contents is None else contents
        if not _options["edgeitems"]:
            suffixes.append(f"size={array.shape}")
        default = dtypes.get_default_dtype()
        explicit = dtype not in (default, default.to_complex(), dtypes.int64, dtypes.bool)
    if explicit:
        suffixes.append(f"dtype={dtype}")
    if grad_fn is not None:
        suffixes.append(f"grad_fn=<{grad_fn}>")
    elif requires_grad:
        suffixes.append("requires_grad=True")
    if tangent is not None:
        suffixes.append(f"tangent={tangent}")
    return _join_suffixes(prefix + text, suffixes, indent=len(prefix)) + ")"


def format_sparse(
    parts: list[tuple[str, np.ndarray[Any, Any], dtypes.dtype]], suffixes: list[str], newline: bool
) -> str:
    """Return PyTorch's `repr` of a sparse tensor.

    Args:
        parts: the name, the array and the dtype of each tensor that it consists of.
        suffixes: what follows them: "nnz=3".
        newline: whether the suffixes start on a line of their own.
    """
    indent, texts = len("tensor("), []
    for name, array, dtype in parts:
        prefix = f"{name}=tensor("
        text = _format_elements(array, dtype, indent + len(prefix)) if array.size else f"[], size={array.shape}"
        texts.append(f"{prefix}{text})")
    text = "tensor(" + (",\n" + " " * indent).join(texts)
    if newline:
        text, suffixes = f"{text},\n{' ' * indent}{suffixes[0]}", suffixes[1:]
    return _join_suffixes(text, suffixes, indent) + ")"


def _format_elements(array: np.ndarray[Any, Any], dtype: dtypes.dtype, indent: int) -> str:
    cut = array.size > _options["threshold"]
    values: list[Any] = []
    shown = _shown(array, dtype, cut, values)
    write: Callable[[Any], str]
    if dtype.is_complex:
        width, write = _complex_format(values)
        return _body(shown, array.ndim, indent, width, write)
    if dtype.is_floating_point:
        width, write = _float_format(values)
    else:
        width, write = max((len(str(value)) for value in values), default=1), str
    return _body(shown, array.ndim, indent, width, lambda value: write(value).rjust(width))


def _shown(array: np.ndarray[Any, Any], dtype: dtypes.dtype, cut: bool, values: list[Any]) -> Any:
    """Return the elements to show as nested lists, with `...` for omitted ones; append them to `values`.

    Only the edges of a large array are converted, so that printing it takes little time.
    """
    edge = _options["edgeitems"]
    if array.ndim == 0 or not cut:
        # float64 holds every narrower float exactly, and `tolist` makes it Python's own.
        plain = array.astype(np.float64) if dtype.is_floating_point else array
        values.extend(plain.reshape(-1).tolist())
        return plain.tolist()
    n = array.shape[0]
    if n <= 2 * edge:
        return [_shown(array[i, ...], dtype, cut, values) for i in range(n)]
    first = [_shown(array[i, ...], dtype, cut, values) for i in range(edge)]
    last = [_shown(array[i, ...], dtype, cut, values) for i in range(n - edge, n)]
    return [*first, ..., *last]


def _float_format(values: list[float]) -> tuple[int, Callable[[float], str]]:
    """Return the width of a column and the function that formats a number, chosen for all `values`.

    Zeros, infinities and NaN affect neither the notation nor the width: as in PyTorch, they are
    wider than their column if they are longer than the other numbers.
    """
    precision, scientific = _options["precision"], _options["sci_mode"]
    telling = [value for value in values if math.isfinite(value) and value != 0]
    if not telling:
        return 1, _write_whole
    magnitudes = [abs(value) for value in telling]
    low, high = min(magnitudes), max(magnitudes)
    if scientific is None:
        scientific = high / low > 1000.0 or high > 1.0e8 or low < 1.0e-4
    write: Callable[[float], str]
    if scientific:
        write = f"{{:.{precision}e}}".format
    elif all(value.is_integer() for value in telling):
        write = _write_whole
    else:
        write = f"{{:.{precision}f}}".format
    return max(len(write(value)) for value in telling), write


def _complex_format(values: list[complex]) -> tuple[int, Callable[[complex], str]]:
    """Return the width of a column and the function that formats a complex number, chosen for all `values`.

    The real and the imaginary parts each have their own format; imaginary parts are not aligned.
    """
    real_width, real = _float_format([value.real for value in values])
    imaginary_width, imaginary = _float_format([value.imag for value in values])

    def write(value: complex) -> str:
        text = imaginary(value.imag)
        sign = "" if text[0] in "+-" else "+"
        return f"{real(value.real).rjust(real_width)}{sign}{text}j"

    return real_width + imaginary_width + 1, write


def _write_whole(value: float) -> str:
    return f"{value:.0f}." if math.isfinite(value) else f"{value:.0f}"


def _body(shown: Any, ndim: int, indent: int, width: int, write: Callable[[Any], str]) -> str:
    """Return the numbers in brackets: vectors are wrapped at the line width, rows separated by ndim - 1 newlines."""
    if ndim == 0:
        return write(shown)
    if ndim == 1:
        # In a vector the ellipsis has a space before it, unless it is the only entry.
        ellipsis = " ..." if len(shown) > 1 else "..."
        cells = [ellipsis if value is ... else write(value) for value in shown]
        per_line = max(1, (_options["linewidth"] - indent) // (width + 2))
        lines = [", ".join(cells[i : i + per_line]) for i in range(0, len(cells), per_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"
    rows = ["..." if row is ... else _body(row, ndim - 1, indent + 1, width, write) for row in shown]
    return "[" + ("," + "\n" * (ndim - 1) + " " * (indent + 1)).join(rows) + "]"


def _join_suffixes(text: str, suffixes: list[str], indent: int) -> str:
    """Append the suffixes, each on a new line if the last line would become too long."""
    length = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if length + len(suffix) + 2 > _options["linewidth"]:
            text += ",\n" + " " * indent + suffix
            length = indent + len(suffix)
        else:
            text += ", " + suffix
            length += len(suffix) + 2
    return text
