"""`torchvision.transforms`, the part that tinytorch implements."""

# ruff: noqa: F403

from __future__ import annotations

from typing import NoReturn

from tinytorch.data.transforms import *
from tinytorch.data.transforms import __all__ as __all__

from .. import missing as _missing
from . import functional as functional


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(_missing(name))
