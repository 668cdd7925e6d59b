"""NumPy's floating-point warnings, of which PyTorch gives none: this package's own calls stay silent, users' do not.

`np.errstate` around each operation would cost it half a microsecond, and `np.seterr` would silence users' own NumPy. A
warnings filter costs nothing, but later ones go before it (pytest's "error"), and where the package is imported inside
of a `catch_warnings` (pytest's collection) its end takes the filter away. So it is put first again whenever filters
change: the module `warnings` tells itself of that by a function that it looks up by name.
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
        if tell := getattr(warnings, name, None):
            setattr(warnings, name, _first(ours, tell))


def _first(ours: object, tell: Callable[[], None]) -> Callable[[], None]:
    def mutated() -> None:
        filters: Any = getattr(warnings, "_get_filters", lambda: warnings.filters)()
        if not filters or filters[0] is not ours:
            filters[:] = [ours, *[each for each in filters if each is not ours]]
        tell()

    return mutated
