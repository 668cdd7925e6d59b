"""Tools for inspection: profiles, summaries of models, timings, and what explains a program that goes wrong.

The functions below are imported when they are first used. The modules that define them have other names than the
functions, since a module of a function's name would hide it.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tinytorch.inspect.comparison import compare as compare
    from tinytorch.inspect.explanation import explain as explain
    from tinytorch.inspect.finite import NonFiniteError as NonFiniteError
    from tinytorch.inspect.finite import nonfinite as nonfinite
    from tinytorch.inspect.reproduction import reproducible as reproducible
    from tinytorch.inspect.watching import watch as watch

#: The module of each name.
_WHERE = {
    "NonFiniteError": "finite", "compare": "comparison", "explain": "explanation", "nonfinite": "finite",
    "reproducible": "reproduction", "watch": "watching",
}  # fmt: skip


def __getattr__(name: str) -> object:
    if name not in _WHERE:
        raise AttributeError(f"module 'tinytorch.inspect' has no attribute '{name}'")
    found = globals()[name] = getattr(_import_module(f"tinytorch.inspect.{_WHERE[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE})
