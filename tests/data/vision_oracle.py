"""torchvision, the oracle of the image tests; as with PyTorch, CI may say that it must be there."""

from __future__ import annotations

import sys
import types
from typing import Any

import pytest

from tests.oracle import REQUIRED


def _import() -> Any:
    try:
        import torchvision
    except ImportError:
        if REQUIRED:
            raise
        return None
    except RuntimeError:
        # A torchvision without compiled operators for this PyTorch fails at describing them. Its
        # datasets and transforms, all that these tests use, are plain Python.
        sys.modules["torchvision._meta_registrations"] = types.ModuleType("_meta_registrations")
        import torchvision
    import torchvision.datasets
    import torchvision.transforms

    return torchvision


torchvision = _import()

#: Marks a test that compares with torchvision.
needs_torchvision = pytest.mark.skipif(torchvision is None, reason="torchvision (the oracle) is not installed")
