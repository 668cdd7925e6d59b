"""`torch.torch_version`: versions that compare with strings and tuples."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from typing import Any

from tinytorch import _version

__all__ = ["TorchVersion"]

# The format of Python's versions (PEP 440), as far as PyTorch's and tinytorch's versions need it.
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
    """Return the sort key of a version; None for a text that is not a version."""
    match = _FORM.fullmatch(text.strip())
    if match is None:
        return None
    release = [int(part) for part in match["release"].split(".")]
    while release and not release[-1]:
        release.pop()
    post = match["post"] if match["post"] is not None else match["implicit"]
    if match["stage"] is not None:
        stage = (_STAGES[match["stage"].lower()], int(match["number"] or 0))
    else:  # a development version of a release comes before its first stage
        stage = (-1, 0) if match["dev"] is not None and post is None else (_LATEST, 0)
    dev = (0, int(match["dev"] or 0)) if match["dev"] is not None else (1, 0)
    local = [
        (1, int(part), "") if part.isdecimal() else (0, 0, part.lower())
        for part in re.split(r"[-_.]", match["local"] or "")
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
    """A version as a string, which compares as a version with strings and tuples of numbers.

    Example:
        >>> version = torch.torch_version.TorchVersion("2.13.0")
        >>> version > "2.9", version >= (2, 13), version.split(".")[0]
        (True, True, '2')

    Source: the same class of PyTorch; PEP 440 for the order.
    """

    __slots__ = ()

    def _order(self, other: Any) -> int | None:
        """Return -1, 0 or 1 if this version is before, equal to or after `other`; None if `other` is not a version."""
        if not isinstance(other, str):
            if not isinstance(other, Iterable):
                return None
            other = ".".join(str(part) for part in other)
        key, other_key = _key(self), _key(other)
        a, b = (str(self), str(other)) if key is None or other_key is None else (key, other_key)
        return (a > b) - (a < b)  # type: ignore[operator]

    __eq__, __lt__, __le__, __gt__, __ge__ = map(
        _by_order, (operator.eq, operator.lt, operator.le, operator.gt, operator.ge)
    )
    __hash__ = str.__hash__


#: The version of PyTorch that tinytorch follows, which programs compare with; tinytorch's own is its local part.
VERSION = TorchVersion(f"{_version.PYTORCH}+tinytorch{_version.__version__}")
