"""Tools for inspection: profiles, summaries and drawings of models, plots, and timings."""

from importlib import import_module as _import_module

#: By public name, the module that defines it, which is imported when the name is first asked for.
_DEFINED_IN = {"draw": "drawing"}


def __getattr__(name: str) -> object:
    if name not in _DEFINED_IN:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(_import_module(f"{__name__}.{_DEFINED_IN[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_DEFINED_IN})
