"""`torchvision.transforms.functional`, the part that tinytorch implements."""

# ruff: noqa: F403

from __future__ import annotations

from typing import NoReturn

from tinytorch.data.images import *
from tinytorch.data.images import __all__ as __all__

from .. import missing as _missing


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(_missing(name))
