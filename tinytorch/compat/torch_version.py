"""`torch.torch_version`: versions that compare with texts and tuples."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["TorchVersion"]

# Python's form of versions (PEP 440), as far as PyTorch's and ours need it.
_FORM = re.compile(
    r"v?(?P<release>\d+(?:\.\d+)*)"
    r"(?:[-_.]?(?P<stage>a|b|c|rc|alpha|beta|pre|preview)[-_.]?(?P<number>\d*))?"
    r"(?:[-_.]?(?:post|rev|r)[-_.]?(?P<post>\d*)|-(?P<implicit>\d+))?"
    r"(?:[-_.]?dev[-_.]?(?P<dev>\d*))?"
    r"(?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?",
    re.IGNORECASE,
)
_STAGES = {"a": 0, "alpha": 0, "b": 1, "beta": 1, "c": 2, "rc": 2, "pre": 2, "preview": 2}
_LATEST = 9


def _key(text: str) -> tuple[Any, ...] | None:
    """Return what versions are ordered by; None for a text that is no version."""
    found = _FORM.fullmatch(text.strip())
    if found is None:
        return None
    release = [int(part) for part in found["release"].split(".")]
    while release and not release[-1]:
        release.pop()
    post = found["post"] if found["post"] is not None else found["implicit"]
    if found["stage"] is not None:
        stage = (_STAGES[found["stage"].lower()], int(found["number"] or 0))
    else:  # a development version of a release comes before its first stage
        stage = (-1, 0) if found["dev"] is not None and post is None else (_LATEST, 0)
    dev = (0, int(found["dev"] or 0)) if found["dev"] is not None else (1, 0)
    local = [
        (1, int(part), "") if part.isdecimal() else (0, 0, part.lower())
        for part in re.split(r"[-_.]", found["local"] or "")
        if part
    ]
    return tuple(release), stage, -1 if post is None else int(post or 0), dev, tuple(local)


def _by_order(holds: Callable[[int, int], bool]) -> Any:
    """Return a method that compares a version with another by their order."""

    def compare(self: TorchVersion, other: Any) -> Any:
        order = self._order(other)
        return NotImplemented if order is None else holds(order, 0)

    return compare


class TorchVersion(str):
    """A version as text, which is compared as versions are, with texts or tuples of numbers.

    Example:
        >>> version = torch.torch_version.TorchVersion("2.13.0")
        >>> version > "2.9", version >= (2, 13), version.split(".")[0]
        (True, True, '2')

    Source: the same class of PyTorch; PEP 440 for the order.
    """

    __slots__ = ()

    def _order(self, other: Any) -> int | None:
        """Return -1, 0 or 1 as this version is before, at or after another; None where it is none."""
        if not isinstance(other, str):
            if not isinstance(other, Iterable):
                return None
            other = ".".join(str(part) for part in other)
        mine, its = _key(self), _key(other)
        a, b = (str(self), str(other)) if mine is None or its is None else (mine, its)
        return (a > b) - (a < b)  # type: ignore[operator]

    __eq__, __lt__, __le__, __gt__, __ge__ = map(
        _by_order, (operator.eq, operator.lt, operator.le, operator.gt, operator.ge)
    )
    __hash__ = str.__hash__
