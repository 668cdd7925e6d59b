"""Facts that later folders add to the declarations of ops: `extend(op, onnx=rule)`.

A declaration (`core/op.py`) says what is known where the op is declared. What only a later folder can say, such as how
a call is written as ONNX, is a field that this folder fills, by the op itself and not by its name. Functions that are
composed of ops, and kernels, have these fields too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tinytorch.core.declaration import Op

__all__ = ["FIELDS", "extend", "fact", "rule", "subject"]

#: What each field says of an op or function, or of a kernel.
FIELDS = {
    "aten": "the rules, tried in order, that find the operators of ATen which compute it (`fx/_aten.py`)",
    "onnx": "the rule that writes a call as ONNX (`fx/onnx/ops`)",
    "lowering": "of a kernel: the calls of NumPy that compiled programs have in its place (`compiler/lowering.py`)",
    "inference": "of a kernel: how programs for inference change its step (`compiler/inference.py`)",
    "joint": "of a kernel: how its steps of several runs become one (`compiler/sweep/joint.py`)",
}
_facts: dict[str, dict[Any, Any]] = {field: {} for field in FIELDS}


def subject(function: Any) -> Any:
    """Return what has the facts about a function: its op, which all its forms share, else what wrappers call."""
    while True:
        op = function if isinstance(function, Op) else getattr(function, "op", None)
        if isinstance(op, Op):
            return op
        inner = getattr(function, "__wrapped__", None)
        if inner is None:
            return function
        function = inner


def _key(function: Any) -> Any:
    """Return under what the facts about a function stand; ops of one name, such as one for each dtype, have one."""
    known = subject(function)
    return known.name if isinstance(known, Op) else known


def extend(*functions: Any, **facts: Any) -> None:
    """Add facts to the declarations of ops, functions or kernels; the fields are those of `FIELDS`.

    Raises:
        TypeError: there is no such field, or another fact has been given.
    """
    for field, value in facts.items():
        if field not in FIELDS:
            raise TypeError(f"{field}= is no field of a declaration; the fields are {', '.join(FIELDS)}")
        for function in functions:
            key = _key(function)
            if _facts[field].setdefault(key, value) is not value:
                raise TypeError(f"two facts {field}= are given of {key}")


def rule(field: str, *functions: Any) -> Callable[[Any], Any]:
    """Return a decorator that makes a function the fact of this field."""

    def enter(function: Any) -> Any:
        extend(*functions, **{field: function})
        return function

    return enter


def fact(function: Any, field: str) -> Any:
    """Return the fact about an op, function or kernel; None if none is given."""
    try:
        return _facts[field].get(_key(function))
    except TypeError:  # it has no hash
        return None
