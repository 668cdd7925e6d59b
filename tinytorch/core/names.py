"""The names of the package's modules, which are those of `torch` where a program calls the package so."""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["module_of", "renamed"]

_PACKAGE = __name__.partition(".")[0]
#: By the id of a class or function whose `__module__` is a module of `torch` (`compat.install`), its module here.
renamed: dict[int, str] = {}


def module_of(x: Any) -> str:
    """Return the name of the module that defines an object or its class, "" if it tells of none.

    For what this package defines it is the package's own name for the module, whatever programs call it.
    """
    known = renamed.get(id(x)) or (None if isinstance(x, type) else renamed.get(id(type(x))))
    if known is not None:
        return known
    module = getattr(x, "__module__", None)
    if not isinstance(module, str):
        return ""
    root, dot, rest = module.partition(".")
    return f"{_PACKAGE}{dot}{rest}" if root == sys.modules[_PACKAGE].__name__ else module
