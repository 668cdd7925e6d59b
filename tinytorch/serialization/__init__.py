"""`save` and `load`: PyTorch's checkpoint files, written and read without PyTorch.

A checkpoint is a zip archive whose records are stored, not compressed:

- `archive/data.pkl`: the object as a pickle, in which each tensor stands as the call of one of
  PyTorch's rebuild functions (`torch._utils._rebuild_tensor_v2`) on a storage, given by its number;
- `archive/data/<number>`: the bytes of a storage, the memory that one or more tensors are views of;
- `archive/byteorder`, `archive/version`, `archive/.data/serialization_id`: facts about the file.

The formats before 1.6 are in `legacy`.

Writing is `saving._Pickler`, which puts PyTorch's names for tensors and what belongs to them, and
pickles everything else (whole modules, optimizers …) as Python does, then `archive._write_archive`.
Reading is `archive._Archive`, which trusts no number in the file, then one of two:

- `weights_only._Reader`, a small machine for the part of the pickle language that describes data;
- for `weights_only=False`, Python's own Unpickler with PyTorch's names found here (`loading._Trusting`).
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tinytorch.serialization import archive, loading, safe, saving, storage, weights_only
from tinytorch.serialization.archive import PyTorchFileReader
from tinytorch.serialization.loading import MAP_LOCATION as MAP_LOCATION
from tinytorch.serialization.loading import load
from tinytorch.serialization.safe import add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals
from tinytorch.serialization.saving import DEFAULT_PROTOCOL, save
from tinytorch.serialization.storage import Storage as Storage

__all__ = [
    "DEFAULT_PROTOCOL", "PyTorchFileReader", "add_safe_globals", "clear_safe_globals", "get_safe_globals", "load",
    "safe_globals", "save",
]  # fmt: skip


def normalize_storage_type(storage_type: Any) -> Any:
    """Return the class of storages that `torch` has under a class's name.

    Example:
        >>> torch.serialization.normalize_storage_type(torch.FloatStorage) is torch.FloatStorage
        True
    """
    return getattr(import_module("tinytorch"), storage_type.__name__)


def __getattr__(name: str) -> Any:
    """Return a private name from the module that has it: programs know it from here, as PyTorch's `_get_layout`."""
    for part in (archive, loading, safe, saving, storage, weights_only):
        if name in vars(part):
            return vars(part)[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
