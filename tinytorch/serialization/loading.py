"""`load`: data only, or with `weights_only=False` whatever Python's Unpickler makes of the file."""

from __future__ import annotations

import importlib
import io
import os
import pickle
import sys
from collections.abc import Callable
from typing import IO, Any

from tinytorch.core.device import device
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.ops.random import Generator
from tinytorch.serialization.archive import _Archive
from tinytorch.serialization.legacy import _load_legacy
from tinytorch.serialization.storage import _StorageReader, _StorageType
from tinytorch.serialization.weights_only import _BUILDERS, _VALUES, _Reader

MAP_LOCATION = Callable[[Any, str], Any] | device | str | dict[str, str] | None  # for annotations


def load(
    f: str | os.PathLike[str] | IO[bytes],
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Return the object that PyTorch's `torch.save` or `save` has written.

    No code from the file runs, unless `weights_only` is False: then the file may call any function
    with any arguments, so do that only with files that you trust.

    Args:
        f: a path, or a file opened for reading bytes that can seek, such as `io.BytesIO`.
        map_location: "cpu" or `device("cpu")` for files that were saved on another device; also a
            dict from location to location, or a function of (storage, location).
        pickle_module: whose `Unpickler` reads, with `weights_only=False`; None means `pickle`.
        weights_only: True, which is what None means if there is no `pickle_module`: data only.
            False unpickles whatever the file holds, such as a whole module. PyTorch's classes are
            found under the same names here, all others are imported as `pickle` does it.
        mmap: map the file into memory instead of reading it: bytes are read when they are used
            (and not checked), and writes to the tensors do not reach the file. `f` must be a path.
        **pickle_load_args: for the `Unpickler`, such as `encoding`; of no effect for data only.

    Raises:
        pickle.UnpicklingError: the file names a function or class that is not data, or is no checkpoint.
        AttributeError, ModuleNotFoundError: with `weights_only=False`, there is no such class.
        RuntimeError: the file is damaged, or was saved on a device that is not there.

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
        unpickler = type("_Unpickler", (_Trusting, module.Unpickler), {})
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


class _Trusting:
    """What Python's Unpickler needs besides, to read a checkpoint of any objects."""

    storages: _StorageReader

    def persistent_load(self, identity: Any) -> Any:
        """Return the storage that the pickle names, as the user would see it."""
        return self.storages.load(identity)

    def find_class(self, module: str, name: str) -> Any:
        """Return what a name means: PyTorch's are looked for here, others are imported."""
        full = f"{module}.{name}"
        if full in _TRUSTED:
            return _TRUSTED[full]
        if module in _COMPILED:
            module, prefix = _COMPILED[module]
            name = name.removeprefix(prefix)
        elif module == "torch" or module.startswith("torch."):
            module = _home_of(f"tiny{module}", name)
        return super().find_class(module, name)  # type: ignore[misc]


def _home_of(module: str, name: str) -> str:
    """Return the module that has `name`: the given one, or else the nearest above it that has."""
    place = module
    while place:
        try:
            found: Any = importlib.import_module(place)
            for part in name.split("."):
                found = getattr(found, part)
            return place
        except (ModuleNotFoundError, AttributeError):
            place = place.rpartition(".")[0]
    return module


class _PickledGenerator(Generator):
    """A generator of PyTorch, until its state is there."""

    def __setstate__(self, state: Any) -> None:
        self.set_state(state[-1])  # (seed, offset, state): the state holds the seed
        self.__class__ = Generator  # type: ignore[assignment]


def _rebuild_any_type(function: Any, cls: Any, arguments: Any, state: Any) -> Any:
    made = function(*arguments)
    if type(made) is not cls:
        made = made.as_subclass(cls)
    _Reader.set_state(made, state)
    return made


#: Where functions of PyTorch's compiled modules are here, and what their names begin with there.
_COMPILED = {
    "torch._C._nn": ("tinytorch.nn.functional", ""),
    "torch._C._linalg": ("tinytorch.linalg", "linalg_"),
    "torch._C._special": ("tinytorch.special", "special_"),
}
#: The names that mean something else here than what is at their place; `sys.modules["tinytorch"]`
#: has the functions that PyTorch keeps in a class.
_TRUSTED: dict[str, Any] = {
    **{name: value for name, value in _BUILDERS.items() if name.startswith(("torch._utils.", "torch.serialization."))},
    "torch._tensor._rebuild_from_type_v2": _rebuild_any_type,
    "torch._C.TensorBase": Tensor,
    "torch._C._VariableFunctionsClass": sys.modules["tinytorch"],
    "torch._C._VariableFunctions": sys.modules["tinytorch"],
    "torch._C.Generator": _PickledGenerator,
    **{name: value for name, value in _VALUES.items() if isinstance(value, _StorageType)},
}
