"""`load`: data only, or with `weights_only=False` whatever Python's Unpickler makes of the file."""

from __future__ import annotations

import importlib
import io
import os
import pickle
import reprlib
import sys
from collections.abc import Callable
from typing import IO, Any

import numpy as np

from tinytorch.core.device import device
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.kernels import dtypes
from tinytorch.ops.random import Generator
from tinytorch.serialization.archive import _Archive, _damaged
from tinytorch.serialization.storage import Storage, _address, _refuse_location, _StorageType
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
        NotImplementedError: the file has the format before 1.6.
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

    def unpickle(program: bytes, storages: _StorageReader) -> Any:
        if weights_only:
            return _Reader(storages.load).read(program)
        module = pickle if pickle_module is None else pickle_module
        unpickler = type("_Unpickler", (_Trusting, module.Unpickler), {})
        reader = unpickler(io.BytesIO(program), **{"encoding": "utf-8", **pickle_load_args})
        reader.storages = storages
        return reader.load()

    if isinstance(f, (str, os.PathLike)):
        path = os.fspath(f)
        if path.endswith(".safetensors"):
            return _load_safetensors(path)
        with open(path, "rb") as file:
            return _load(file, map_location, unpickle, bool(mmap))
    for method in ("read", "seek", "tell"):
        if not hasattr(f, method):
            raise AttributeError(
                f"'{type(f).__name__}' object has no attribute '{method}'. You can only torch.load from a file that is "
                "seekable. Please pre-load the data into a buffer like io.BytesIO and try to load from it instead."
            )
    if mmap:
        raise ValueError("f must be a file path in order to use the mmap argument")
    return _load(f, map_location, unpickle, False)


def _load(file: IO[bytes], map_location: Any, unpickle: Callable[[bytes, _StorageReader], Any], mapped: bool) -> Any:
    start = file.tell()
    head = file.read(len(_LEGACY_MAGIC))
    file.seek(start)
    if not head:
        raise EOFError("Ran out of input")
    if head.startswith(_LEGACY_MAGIC):
        raise NotImplementedError(
            "load: the file has PyTorch's legacy format (before 1.6, or with "
            "_use_new_zipfile_serialization=False). Load it with PyTorch and save it again."
        )
    if not head.startswith(b"PK\3\4"):
        raise pickle.UnpicklingError(
            f"Weights only load failed. The file is no checkpoint: it begins with {head[:8]!r}, "
            "which is neither a zip archive nor PyTorch's legacy format."
        )
    archive = _Archive(file)
    if "constants.pkl" in archive:
        raise RuntimeError(
            "Cannot use ``weights_only=True`` with TorchScript archives passed to ``torch.load``: "
            "they hold programs, which tinytorch cannot run."
        )
    storages = _StorageReader(archive, map_location, mapped)
    return unpickle(archive.read("data.pkl"), storages)


#: What a file in the format before zip archives begins with: the pickle of a long number.
_LEGACY_MAGIC = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."


def _load_safetensors(path: str) -> dict[str, Tensor]:
    try:
        from safetensors.numpy import load_file  # type: ignore[import-not-found,unused-ignore]
    except ImportError as error:
        raise RuntimeError(
            "Attempting to load a safetensors file but safetensors is not installed. "
            "Please install safetensors with: pip install safetensors"
        ) from error
    return {name: wrap(array) for name, array in load_file(path).items()}


class _StorageReader:
    """Gets storages from an archive, each once, onto the device that `map_location` says."""

    def __init__(self, archive: _Archive, map_location: Any, mapped: bool) -> None:
        self.archive = archive
        self.map_location = map_location
        self.loaded: dict[str, tuple[Storage, Storage]] = {}
        self.swapped = False
        self.map: Any = None
        if "byteorder" in archive:
            order = archive.read("byteorder")
            if order not in (b"little", b"big"):
                raise ValueError(f"Unknown endianness type: {order.decode(errors='replace')}")
            self.swapped = order.decode() != sys.byteorder
        else:
            self.swapped = sys.byteorder != "little"  # what PyTorch assumes
        if mapped:
            import mmap

            # A private copy on write: the tensors are writable, the file is safe.
            self.map = mmap.mmap(archive.file.fileno(), 0, access=mmap.ACCESS_COPY)

    def load(self, identity: Any) -> Storage:
        """Return the storage that the pickle names: ("storage", type, key, location, length)."""
        if type(identity) is not tuple or len(identity) != 5 or identity[0] != "storage":
            raise pickle.UnpicklingError(
                f"Unknown typename for persistent_load, expected 'storage' but got {reprlib.repr(identity)}"
            )
        _, kind, key, location, numel = identity
        if type(kind) is not _StorageType or type(key) is not str or type(location) is not str:
            raise pickle.UnpicklingError(f"a storage is described by {reprlib.repr(identity)}")
        if type(numel) is not int or numel < 0:
            raise pickle.UnpicklingError(f"storage {key} has an impossible length: {reprlib.repr(numel)}")
        if key not in self.loaded:
            read = self.read(kind.dtype, key, numel)
            self.loaded[key] = (read, self.restore(read, location))
        read, restored = self.loaded[key]
        if read.dtype is not kind.dtype or read.array.size != numel:
            raise RuntimeError(_damaged(f"storage {key} is described in two ways"))
        return restored

    def read(self, dtype: dtypes.dtype, key: str, numel: int) -> Storage:
        name, size = f"data/{key}", self.archive.size(f"data/{key}")
        if size // dtype.itemsize != numel:
            raise RuntimeError(
                _damaged(
                    f"failed reading file {name}: {size} bytes are not {numel} of {dtype}, "
                    "so the storage has the wrong size"
                )
            )
        if self.map is None:
            array = self.archive.read_into(name, np.empty(numel, dtype.numpy))
        else:
            array = np.frombuffer(self.map, np.uint8, size, self.archive.offset(name))
            array = array[: numel * dtype.itemsize]
            aligned = _address(array) % dtype.itemsize == 0
            array = (array if aligned else array.copy()).view(dtype.numpy)
        if self.swapped:
            array = array.byteswap()
        return Storage(array, dtype, key)

    def restore(self, storage: Storage, location: str) -> Storage:
        mapping = self.map_location
        if isinstance(mapping, dict):
            location = str(mapping.get(location, location))
        elif isinstance(mapping, (str, device)):
            location = str(mapping)
        elif mapping is not None:
            result = mapping(storage, location)
            if result is not None:
                if not isinstance(result, Storage):
                    raise TypeError(
                        "load: map_location must return the storage that it was given, or None, "
                        f"but returned {type(result).__name__}"
                    )
                return result
        if location != "cpu":
            _refuse_location(location)
        return storage


# Unpickling with weights_only=False ---------------------------------------------------------------


class _Trusting:
    """What Python's Unpickler needs besides, to read a checkpoint of any objects."""

    storages: _StorageReader

    def persistent_load(self, identity: Any) -> Any:
        """Return the storage that the pickle names, as the user would see it."""
        return self.storages.load(identity).as_users_see_it(identity[1].untyped)

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
