"""`save` and `load`: PyTorch's checkpoint files, written and read without PyTorch.

A checkpoint is a zip archive with uncompressed records:

- `archive/data.pkl`: the object as a pickle. A tensor is represented by a call of one of PyTorch's rebuild functions
  (`torch._utils._rebuild_tensor_v2`) on a storage, which is identified by a number;
- `archive/data/<number>`: the bytes of a storage, the memory of which tensors are views;
- `archive/byteorder`, `archive/version`, `archive/.data/serialization_id`: metadata.

The formats before PyTorch 1.6 are in `legacy`.

To write, `saving._Pickler` pickles tensors, dtypes and the like under PyTorch's names and everything else (modules,
optimizers …) as Python does, and `archive._write_archive` writes the file. To read, `archive._Archive` validates all
sizes and offsets in the file, and the pickle is interpreted by one of two unpicklers:

- `weights_only._Reader`, an interpreter of the subset of pickle opcodes that describes data;
- for `weights_only=False`, Python's Unpickler, with PyTorch's names resolved to tinytorch's (`loading._FullUnpickler`).
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
from tinytorch.serialization.storage import get_default_mmap_options, set_default_mmap_options

__all__ = [
    "DEFAULT_PROTOCOL", "PyTorchFileReader", "add_safe_globals", "clear_safe_globals", "get_default_mmap_options",
    "get_safe_globals", "load", "safe_globals", "save", "set_default_mmap_options",
]  # fmt: skip


def normalize_storage_type(storage_type: Any) -> Any:
    """Return the storage class of `tinytorch` with the same name as `storage_type`.

    Example:
        >>> torch.serialization.normalize_storage_type(torch.FloatStorage) is torch.FloatStorage
        True
    """
    return getattr(import_module("tinytorch"), storage_type.__name__)


def __getattr__(name: str) -> Any:
    """Return a private name from a submodule, since in PyTorch such names (`_get_layout`) are in this module."""
    for module in (archive, loading, safe, saving, storage, weights_only):
        if name in vars(module):
            return vars(module)[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
