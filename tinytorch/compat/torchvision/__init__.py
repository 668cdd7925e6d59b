"""What tinytorch has of torchvision, which is found under that name where torchvision is not installed.

All the rest it has, too, if torchvision is installed without PyTorch: `pip install --no-deps torchvision pillow`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

__all__ = ["datasets", "transforms", "utils"]

__version__ = "0.28.0"


def missing(name: str) -> str:
    """Return the words of the error for what is not here."""
    return (
        f"tinytorch has of torchvision the commonest datasets, transforms and utils, and no {name!r}: install "
        "torchvision, without PyTorch, by `pip install --no-deps torchvision pillow`"
    )


class _Missing:
    """What is asked for a module of torchvision that nothing else has found."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> None:
        package, _, rest = name.removeprefix("tinytorch.").partition(".")
        if package != "torchvision" or not rest or sys.modules.get(name[: -len(rest) - 1]) is not sys.modules[__name__]:
            return None
        raise ImportError(missing(rest), name=name)


sys.meta_path.append(_Missing)


def __getattr__(name: str) -> Any:
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(missing(name))
