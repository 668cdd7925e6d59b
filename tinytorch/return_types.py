"""What functions with several results return: tuples whose parts have names (floor 0)."""

from __future__ import annotations

import operator
from typing import Any

__all__ = [
    "aminmax", "cummax", "cummin", "kthvalue", "max", "median", "min", "mode", "nanmedian", "sort",
    "topk",
]  # fmt: skip


class _Result(tuple[Any, ...]):
    """A tuple whose parts have names too; made of a sequence of the parts."""

    __slots__ = ()
    _names: tuple[str, ...] = ()

    def __repr__(self) -> str:
        parts = ",\n".join(f"{name}={part!r}" for name, part in zip(self._names, self, strict=True))
        return f"torch.return_types.{type(self).__name__}(\n{parts})"


def _result(name: str, first: str = "values", second: str = "indices") -> Any:
    parts = {each: property(operator.itemgetter(i)) for i, each in enumerate((first, second))}
    doc = f"What `{name}` returns: `{first}` and `{second}`."
    own = {"__slots__": (), "__module__": __name__, "__doc__": doc, "_names": tuple(parts)}
    return type(name, (_Result,), {**own, **parts})


aminmax = _result("aminmax", "min", "max")
cummax = _result("cummax")
cummin = _result("cummin")
kthvalue = _result("kthvalue")
max = _result("max")
median = _result("median")
min = _result("min")
mode = _result("mode")
nanmedian = _result("nanmedian")
sort = _result("sort")
topk = _result("topk")
