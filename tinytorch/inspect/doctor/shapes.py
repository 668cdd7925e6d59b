"""Shapes of a reshape: whether it keeps the order of dimensions, or stands where a transpose was meant."""

from __future__ import annotations

import itertools

__all__ = ["transposition"]


def _clean(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """Return whether a reshape from `a` to `b` only splits dimensions and joins neighbours."""
    i = j = 0
    while i < len(a) and j < len(b):
        first, second, m, n = a[i], b[j], 1, 1
        while first != second:
            if first < second:
                if i + m >= len(a):
                    return False
                first *= a[i + m]
                m += 1
            else:
                if j + n >= len(b):
                    return False
                second *= b[j + n]
                n += 1
        if m > 1 and n > 1:
            return False
        i, j = i + m, j + n
    return True


def transposition(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return in which order of its dimensions `b` would be a clean reshape of `a`; None if it is one, or none would do.

    Example:
        >>> transposition((32, 10, 3), (32, 3, 10)), transposition((32, 10), (32, 2, 5)), transposition((4, 6), (3, 8))
        ((0, 2, 1), None, None)
    """
    wide = [k for k, size in enumerate(b) if size != 1]
    own = tuple([size for size in a if size != 1])
    if len(own) < 2 or not 2 <= len(wide) <= 5 or 0 in a or _clean(own, tuple([b[k] for k in wide])):
        return None
    for order in itertools.permutations(wide):
        if _clean(own, tuple([b[k] for k in order])):
            return (*order, *[k for k in range(len(b)) if k not in wide])
    return None
