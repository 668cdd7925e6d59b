"""`load`: reads checkpoints, by default only data, with `weights_only=False` arbitrary pickles."""

from __future__ import annotations

import importlib
import io
import os
import pickle
import sys
from collections.abc import Callable
from typing import IO, Any

from tinytorch.core.device import device
from tinytorch.core.tensor import Tensor, _rebuild_from_type_v2, wrap
from tinytorch.ops.random import Generator
from tinytorch.serialization.archive import _Archive
from tinytorch.serialization.legacy import _load_legacy
from tinytorch.serialization.storage import _StorageReader, _StorageType
from tinytorch.serialization.weights_only import _BUILDERS, _VALUES, _Reader

MAP_LOCATION = Callable[[Any, str], Any] | device | str | dict[str, str] | None  # a type, for annotations


def load(
    f: str | os.PathLike[str] | IO[bytes],
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Return an object written by `save` or by PyTorch's `torch.save`.

    No code from the file is executed, unless `weights_only` is False: then the file can call any function
    with any arguments, so this must only be used for trusted files.

    Args:
        map_location: "cpu" or `device("cpu")` for files that were saved on another device; also a
            dict from location to location, or a function of (storage, location).
        weights_only: True (the meaning of None without a `pickle_module`) to allow data only. False to
            unpickle arbitrary objects, such as a whole module; PyTorch's classes are replaced by
            tinytorch's of the same names, all others are imported as by `pickle`.
        mmap: map the file into memory instead of reading it: bytes are read on access (without
            verifying checksums), and writes to the tensors do not change the file. `f` must be a path.

    Raises:
        pickle.UnpicklingError: the file refers to a function or class that is not data, or is not a checkpoint.
        AttributeError, ModuleNotFoundError: with `weights_only=False`, a class does not exist.
        RuntimeError: the file is damaged, or was saved on a device that is not available.

    Example:
        >>> import io
        >>> buffer = io.BytesIO()
        >>> torch.save([torch.zeros(2), "text"], buffer)
        >>> torch.load(io.BytesIO(buffer.getvalue()), map_location="cpu")
        [tensor([0., 0.]), 'text']
    """
    weights_only = pickle_module is None if weights_only is None else bool(weights_only)
    if weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")

    def unpickle(program: bytes | IO[bytes], storages: _StorageReader) -> Any:
        if weights_only:
            return _Reader(storages.load).read(program)
        file = io.BytesIO(program) if isinstance(program, bytes) else program
        module = pickle if pickle_module is None else pickle_module
        unpickler = type("_Unpickler", (_FullUnpickler, module.Unpickler), {})
        reader = unpickler(file, **{"encoding": "utf-8", **pickle_load_args})
        reader.storages = storages
        return reader.load()

    if isinstance(f, (str, os.PathLike)):
        path = os.fspath(f)
        if path.endswith(".safetensors"):
            return _load_safetensors(path)
        with open(path, "rb") as file:
            return _load(file, map_location, unpickle, weights_only, path if mmap else None)
    for method in ("read", "seek", "tell"):
        if not hasattr(f, method):
            raise AttributeError(
                f"'{type(f).__name__}' object has no attribute '{method}'. You can only torch.load from a file that is "
                "seekable. Please pre-load the data into a buffer like io.BytesIO and try to load from it instead."
            )
    return _load(f, map_location, unpickle, weights_only, "" if mmap else None)


def _load(
    file: IO[bytes], map_location: Any, unpickle: Callable[..., Any], weights_only: bool, mapped: str | None
) -> Any:
    start = file.tell()
    head = file.read(4)
    file.seek(start)
    if head != b"PK\3\4":
        if mapped is not None:
            raise RuntimeError(
                "mmap can only be used with files saved with `torch.save("
                f"{mapped + ', ' if mapped else ''}_use_new_zipfile_serialization=True), "
                "please torch.save your checkpoint with this option in order to use mmap."
            )
        if not head:
            raise EOFError("Ran out of input")
        return _load_legacy(file, map_location, unpickle, weights_only)
    if mapped == "":
        raise ValueError("f must be a file path in order to use the mmap argument")
    archive = _Archive(file)
    if "constants.pkl" in archive:
        raise RuntimeError(
            "Cannot use ``weights_only=True`` with TorchScript archives passed to ``torch.load``: "
            "they hold programs, which tinytorch cannot run."
        )
    storages = _StorageReader(archive, map_location, mapped is not None)
    return unpickle(archive.read("data.pkl"), storages)


def _load_from_bytes(b: bytes) -> Any:
    """Return the object in the bytes of a file: pickles of a storage call this."""
    return load(io.BytesIO(b), weights_only=False)


_load_from_bytes.__module__ = "tinytorch.storage"  # its public place


def _load_safetensors(path: str) -> dict[str, Tensor]:
    try:
        from safetensors.numpy import load_file  # type: ignore[import-not-found,unused-ignore]
    except ImportError as error:
        raise RuntimeError(
            "Attempting to load a safetensors file but safetensors is not installed. "
            "Please install safetensors with: pip install safetensors"
        ) from error
    return {name: wrap(array) for name, array in load_file(path).items()}


# Unpickling with weights_only=False ---------------------------------------------------------------


class _FullUnpickler:
    """A mixin for Python's Unpickler that resolves storages and PyTorch's names."""

    storages: _StorageReader

    def persistent_load(self, identity: Any) -> Any:
        """Return the storage for a persistent id."""
        return self.storages.load(identity)

    def find_class(self, module: str, name: str) -> Any:
        """Resolve a global name: PyTorch's names in tinytorch, all others by import."""
        full = f"{module}.{name}"
        if full in _SPECIAL_NAMES:
            return _SPECIAL_NAMES[full]
        if module in _COMPILED:
            module, prefix = _COMPILED[module]
            name = name.removeprefix(prefix)
        elif module == "torch" or module.startswith("torch."):
            module = _defining_module(f"tiny{module}", name)
        return super().find_class(module, name)  # type: ignore[misc]


def _defining_module(module: str, name: str) -> str:
    """Return `module` if it has the attribute `name`, else its nearest parent that has it."""
    candidate = module
    while candidate:
        try:
            value: Any = importlib.import_module(candidate)
            for part in name.split("."):
                value = getattr(value, part)
            return candidate
        except (ModuleNotFoundError, AttributeError):
            candidate = candidate.rpartition(".")[0]
    return module


#: For PyTorch's compiled modules, the corresponding module here, and a prefix of the names to remove.
_COMPILED = {
    "torch._C._nn": ("tinytorch.nn.functional", ""),
    "torch._C._linalg": ("tinytorch.linalg", "linalg_"),
    "torch._C._special": ("tinytorch.special", "special_"),
}
#: Names that are not resolved by their module. `sys.modules["tinytorch"]` has the functions that PyTorch defines in a
#: class.
_SPECIAL_NAMES: dict[str, Any] = {
    **{name: value for name, value in _BUILDERS.items() if name.startswith(("torch._utils.", "torch.serialization."))},
    "torch._tensor._rebuild_from_type_v2": _rebuild_from_type_v2,
    "torch._C.TensorBase": Tensor,
    "torch._C._VariableFunctionsClass": sys.modules["tinytorch"],
    "torch._C._VariableFunctions": sys.modules["tinytorch"],
    "torch._C.Generator": Generator,
    **{name: value for name, value in _VALUES.items() if isinstance(value, _StorageType)},
}
