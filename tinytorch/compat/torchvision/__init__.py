"""The part of torchvision that tinytorch implements; it is `torchvision` where that package is not installed.

tinytorch also runs the whole of torchvision, installed without PyTorch: `pip install --no-deps torchvision pillow`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["datasets", "transforms", "utils"]

__version__ = "0.28.0"


def missing(name: str) -> str:
    """Return the message of the error for a name that is not implemented (compat's finder raises it for modules)."""
    return (
        f"tinytorch has of torchvision the commonest datasets, transforms and utils, and no {name!r}: install "
        "torchvision, without PyTorch, by `pip install --no-deps torchvision pillow`"
    )


def __getattr__(name: str) -> Any:
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(missing(name))
