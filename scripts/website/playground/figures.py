"""A backend of matplotlib whose windows are the page of the playground (matplotlib imports it when it is used)."""

from __future__ import annotations

import importlib
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg as FigureCanvas

__all__ = ["FigureCanvas", "show"]

_runtime = importlib.import_module(__name__.replace("figures", "runtime"))  # (modules have other names in the worker)


def show(*args: Any, **kwargs: Any) -> None:
    """Show the open figures, and close them (`pyplot.show`)."""
    _runtime.show_figures()
