"""Suppression of NumPy's floating-point warnings for this package's calls only; PyTorch gives no such warnings.

`np.errstate` would add half a microsecond to each operation, and `np.seterr` would silence users' NumPy calls, too. A
warnings filter costs nothing, but filters that are added later take precedence (pytest's "error"), and if the package
is imported inside a `catch_warnings` block (pytest's collection), the end of the block removes the filter. So the
filter is moved to the front whenever filters change: the module `warnings` then calls a function that it looks up by
name.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

__all__ = ["keep_silent"]


def keep_silent() -> None:
    """Ignore floating-point warnings of this package's modules from here on, whatever other filters say."""
    warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"tinytorch\.")
    ours = warnings.filters[0]
    for name in ("_filters_mutated", "_filters_mutated_lock_held"):  # before Python 3.14, and since
        if notify := getattr(warnings, name, None):
            setattr(warnings, name, _first(ours, notify))


def _first(ours: object, notify: Callable[[], None]) -> Callable[[], None]:
    def mutated() -> None:
        filters: Any = getattr(warnings, "_get_filters", lambda: warnings.filters)()
        if not filters or filters[0] is not ours:
            filters[:] = [ours, *[entry for entry in filters if entry is not ours]]
        notify()

    return mutated
