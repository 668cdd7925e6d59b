"""Plots of a training, by matplotlib: its curves, the confusion of classes, and the most confident mistakes.

Each function returns a new figure, which `savefig` writes to a file and notebooks show, or plots into a given one. None
of them uses pyplot, so no window is opened and no setting of the program changes.
"""

from __future__ import annotations

import functools
import importlib.util
import io
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tinytorch._atomic import check_writable

__all__ = ["check_plot", "plot_classifier", "plot_confusion", "plot_curves", "plot_mistakes"]


def check_plot(path: str | os.PathLike[str] | None = None) -> None:
    """Raise an error now if a plot could not be made later, after the training.

    Args:
        path: the file that the plot will be saved to; its format follows from its name (.png, .svg, .pdf ...).

    Raises:
        ImportError: matplotlib is not installed.
        ValueError: matplotlib does not write files with such a name.
        OSError: the folder of the file does not exist, or is not writable.

    Example:
        >>> from tinytorch import inspect
        >>> inspect.check_plot("curves.png")
    """
    if sys.modules.get("matplotlib", ...) is None or not importlib.util.find_spec("matplotlib"):
        raise ImportError("plots need matplotlib (the extra `plot`): pip install matplotlib")
    if path is None:
        return
    from matplotlib.backend_bases import FigureCanvasBase

    known = FigureCanvasBase.get_supported_filetypes()
    suffix = os.path.splitext(os.fspath(path))[1].lower().lstrip(".")
    if suffix not in known:
        raise ValueError(f"a plot is saved as .png, .svg or .pdf, not as {os.fspath(path)!r}")
    check_writable(path)


def plot_curves(history: Mapping[str, Sequence[float]], figure: Any = None) -> Any:
    """Return a figure with the curves of a training.

    Names that end in the same word share a panel: "training loss" and "test loss" are two curves of the panel "loss".

    Args:
        history: by name, the values of each epoch.
        figure: the figure, or part of one, to plot into; by default a new one.

    Raises:
        ImportError: matplotlib is not installed.
        ValueError: there are no values.

    Example:
        >>> from tinytorch import inspect
        >>> figure = inspect.plot_curves({"training loss": [1.2, 0.7], "test loss": [0.9, 0.8], "accuracy": [0.6, 0.7]})
        >>> [panel.get_title() for panel in figure.axes]
        ['loss', 'accuracy']
        >>> figure.savefig("curves.png")  # doctest: +SKIP
    """
    panels: dict[str, dict[str, Sequence[float]]] = {}
    for name, values in history.items():
        *first, last = name.split() or [""]
        if len(values):
            panels.setdefault(last, {})[" ".join(first)] = values
    if not panels:
        raise ValueError("plot_curves(): there are no values")
    figure = figure if figure is not None else _new_figure(4.5 * len(panels), 3.6)
    for axes, (title, curves) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True):
        for k, (label, values) in enumerate(curves.items()):
            epochs = range(1, len(values) + 1)
            axes.plot(epochs, values, _STYLES[k % len(_STYLES)], label=label, color=_COLOURS[k % len(_COLOURS)])
        axes.set_title(title)
        axes.set_xlabel("epoch")
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        values = [value for each in curves.values() for value in each]
        if title == "accuracy" and min(values) >= 0 and max(values) <= 1:
            from matplotlib.ticker import PercentFormatter

            axes.yaxis.set_major_formatter(PercentFormatter(1))
        if any(curves):
            axes.legend(frameon=False)
    return figure


def plot_confusion(predictions: Any, targets: Any, classes: Sequence[str] | None = None, figure: Any = None) -> Any:
    """Return a figure that counts, for each class (rows), what its examples were taken for (columns).

    The shade of a cell is its share of the row.

    Args:
        predictions: the predicted classes, (N,).
        targets: the actual classes, (N,).
        classes: the names of the classes; by default their numbers.
        figure: the figure, or part of one, to plot into; by default a new one.

    Raises:
        ImportError: matplotlib is not installed.
        ValueError: the numbers of predictions and targets differ, or there are none.

    Example:
        >>> from tinytorch import inspect
        >>> figure = inspect.plot_confusion(torch.tensor([0, 1, 1]), torch.tensor([0, 1, 0]), ["cat", "dog"])
        >>> [cell.get_text() for cell in figure.axes[0].texts]
        ['1', '1', '1']
    """
    guessed, actual = _array(predictions).reshape(-1), _array(targets).reshape(-1)
    if guessed.shape != actual.shape or not guessed.size:
        raise ValueError(
            f"plot_confusion(): expected as many predictions as targets, but got {guessed.size} and {actual.size}"
        )
    names = _names(classes, max(guessed.max(), actual.max()) + 1)
    n = len(names)
    counts = np.bincount(actual.astype(np.int64) * n + guessed.astype(np.int64), minlength=n * n).reshape(n, n)
    share = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    side = max(3.6, 1.5 + 0.36 * n)
    figure = figure if figure is not None else _new_figure(side + 0.4, side)
    axes = figure.subplots()
    axes.imshow(share, cmap="Blues", vmin=0, vmax=1)
    axes.set_xticks(range(n), names, rotation=45 if max(map(len, names)) > 2 else 0, ha="right")
    axes.set_yticks(range(n), names)
    axes.set_xlabel("predicted")
    axes.set_ylabel("actual")
    axes.set_title(f"{np.trace(counts) / counts.sum():.1%} of {counts.sum():,} right")
    axes.spines[:].set_visible(False)
    if n <= _MOST_CELLS:
        for row, column in np.argwhere(counts):
            colour = "white" if share[row, column] > 0.5 else "black"
            size = 8 if n <= 12 else 6
            axes.text(column, row, counts[row, column], ha="center", va="center", color=colour, fontsize=size)
    return figure


def plot_mistakes(
    images: Any, scores: Any, targets: Any, classes: Sequence[str] | None = None, figure: Any = None, *, count: int = 10
) -> Any:
    r"""Return a figure of the images that a classifier was most certain of, and wrong about.

    Args:
        images: the images, (N, 1, H, W), (N, 3, H, W) or (N, H, W).
        scores: the scores of the classes before softmax, (N, C).
        targets: the actual classes, (N,).
        classes: the names of the classes; by default their numbers.
        figure: the figure, or part of one, to plot into; by default a new one.
        count: the number of images.

    Raises:
        ImportError: matplotlib is not installed.
        ValueError: the shapes do not match.

    Example:
        >>> from tinytorch import inspect
        >>> scores = torch.tensor([[4.0, 0.0], [0.0, 2.0], [3.0, 0.0]])
        >>> figure = inspect.plot_mistakes(torch.rand(3, 1, 8, 8), scores, torch.tensor([1, 0, 0]))
        >>> [panel.get_title() for panel in figure.axes]
        ['0 (98.2%)\nis 1', '1 (88.1%)\nis 0']
    """
    pictures, logits, actual = _array(images), _array(scores), _array(targets).reshape(-1)
    if pictures.ndim == 3:
        pictures = pictures[:, None]
    if logits.ndim != 2 or pictures.ndim != 4 or not len(pictures) == len(logits) == len(actual):
        raise ValueError(
            "plot_mistakes(): expected images (N, C, H, W), scores (N, classes) and targets (N,), but got "
            f"{pictures.shape}, {logits.shape} and {actual.shape}"
        )
    names = _names(classes, logits.shape[1])
    logits = logits.astype(np.float64)
    powers = np.exp(logits - logits.max(1, keepdims=True))
    certainty = (powers / powers.sum(1, keepdims=True)).max(1)
    guessed = logits.argmax(1)
    (wrong,) = np.nonzero(guessed != actual)
    chosen = wrong[np.argsort(-certainty[wrong], kind="stable")][:count]
    columns = min(5, max(1, len(chosen)))
    rows = max(1, -(-len(chosen) // columns))
    figure = figure if figure is not None else _new_figure(1.9 * columns, 2.3 * rows)
    if not len(chosen):
        figure.text(0.5, 0.5, "no mistakes", ha="center")
        return figure
    panels = figure.subplots(rows, columns, squeeze=False).reshape(-1)
    for axes, k in zip(panels, chosen, strict=False):
        picture = np.moveaxis(pictures[k], 0, -1).astype(np.float64)
        low, high = picture.min(), picture.max()
        if low < 0 or high > 1:  # normalised, or bytes
            picture = (picture - low) / max(high - low, 1e-12)
        grey = picture.shape[-1] == 1
        axes.imshow(picture[..., 0] if grey else picture, cmap="gray" if grey else None, vmin=0, vmax=1)
        axes.set_title(f"{names[guessed[k]]} ({certainty[k]:.1%})\nis {names[int(actual[k])]}", fontsize=9)
    for axes in panels:
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_color("#999999")
    for axes in panels[len(chosen) :]:
        axes.remove()
    return figure


def plot_classifier(
    images: Any,
    scores: Any,
    targets: Any,
    classes: Sequence[str] | None = None,
    history: Mapping[str, Sequence[float]] | None = None,
) -> Any:
    """Return a figure of all that `plot_curves`, `plot_confusion` and `plot_mistakes` show of a classifier.

    Args:
        images, scores, targets, classes: as in `plot_mistakes`.
        history: as in `plot_curves`; without it there are no curves.

    Raises:
        ImportError: matplotlib is not installed.
        ValueError: the shapes do not match.

    Example:
        >>> from tinytorch import inspect
        >>> scores, targets = torch.rand(20, 3), torch.arange(20) % 3
        >>> figure = inspect.plot_classifier(torch.rand(20, 1, 8, 8), scores, targets, history={"loss": [1.2, 1.1]})
        >>> figure.savefig("classifier.png")  # doctest: +SKIP
    """
    history = {name: values for name, values in (history or {}).items() if len(values)}
    panels = len({name.split()[-1] for name in history})
    figure = _new_figure(11.5, 8.2 + 3.6 * bool(panels))
    parts = figure.subfigures(1 + bool(panels), 1, height_ratios=[3.4, 8.2] if panels else None, squeeze=False)[:, 0]
    if panels:
        plot_curves(history, parts[0])
    matrix, mistakes = parts[-1].subfigures(2, 1, height_ratios=[5.2, 4.4])
    plot_confusion(_array(scores).argmax(1), targets, classes, matrix)
    mistakes.suptitle("the most confident mistakes", fontsize=11)
    plot_mistakes(images, scores, targets, classes, mistakes)
    return figure


_COLOURS = ("#4c78a8", "#e4572e", "#3a9a5c", "#8e6bbf")
_STYLES = ("o-", "s-", "^-", "D-")
_MOST_CELLS = 20  # classes up to which the cells of a matrix are numbered


@functools.cache
def _figure_class() -> Any:
    """Return matplotlib's class of figures, as notebooks show it without pyplot."""
    check_plot()
    from matplotlib.figure import Figure

    def png(self: Any) -> bytes:
        """Return the figure as notebooks show it."""
        file = io.BytesIO()
        self.savefig(file, format="png")
        return file.getvalue()

    return type("Figure", (Figure,), {"_repr_png_": png})


def _new_figure(width: float, height: float) -> Any:
    figure = _figure_class()(figsize=(width, height), layout="constrained", dpi=120)
    figure.get_layout_engine().set(w_pad=0.1, h_pad=0.1)
    return figure


def _array(x: Any) -> Any:
    """Return a tensor, or what NumPy makes an array of, as an array."""
    return np.asarray(x.detach().cpu() if hasattr(x, "detach") else x)


def _names(classes: Sequence[str] | None, count: int) -> list[str]:
    names = [str(k) for k in range(count)] if classes is None else list(classes)
    if len(names) < count:
        raise ValueError(f"expected the names of at least {count} classes, but got {len(names)}")
    return names
