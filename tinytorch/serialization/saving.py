"""`save`: pickles tensors under PyTorch's names, and all other objects as Python does."""

from __future__ import annotations

import codecs
import io
import os
import pickle
import sys
from collections import OrderedDict
from collections.abc import Callable
from contextlib import nullcontext
from types import FunctionType
from typing import IO, Any, ClassVar, NoReturn, cast

import numpy as np

from tinytorch._atomic import replacing
from tinytorch.core import mode
from tinytorch.core.device import device
from tinytorch.core.layout import layout
from tinytorch.core.tensor import Size, Tensor, _rebuild_from_type_v2, wrap
from tinytorch.kernels import dtypes
from tinytorch.kernels.places import element_strides
from tinytorch.nn.parameter import Parameter
from tinytorch.ops.storage import TypedStorage, UntypedStorage
from tinytorch.serialization.archive import _write_archive
from tinytorch.serialization.legacy import _write_legacy
from tinytorch.serialization.loading import _load_from_bytes
from tinytorch.serialization.storage import Storage, _address
from tinytorch.serialization.weights_only import (
    _BUILDERS,
    _get_layout,
    _rebuild_meta_tensor_no_storage,
    _rebuild_parameter,
    _rebuild_parameter_with_state,
    _rebuild_sparse_tensor,
    _rebuild_tensor_v2,
    _rebuild_tensor_v3,
)
from tinytorch.sparse.tensors import is_sparse, sparse_parts

DEFAULT_PROTOCOL = 2  # pickle protocol


def save(
    obj: Any,
    f: str | os.PathLike[str] | IO[bytes],
    pickle_module: Any = pickle,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Write `obj` to a file that `load` and PyTorch's `torch.load` can read.

    A file at a path is replaced atomically, also if the process is killed: the bytes are written to a temporary file
    and synchronized to the disk before it gets its name. What a killed process leaves behind is removed by the
    next `save` to the directory. Tensors that share memory also share it in the file.

    Args:
        obj: preferably a `state_dict()`, or other data: tensors and parameters, numbers, strings, bytes,
            None, dtypes, devices, sizes, and dicts, lists, tuples and sets of them. Other objects that
            can be pickled are saved, too, such as a module or an optimizer; `load` then needs
            `weights_only=False`, and classes that can be imported under the same names.
        pickle_protocol: 2, which PyTorch requires for `weights_only=True`; 3 to 5 also work with `load`.
        _use_new_zipfile_serialization: False for PyTorch's format before 1.6, a sequence of pickles and bytes.

    Raises:
        pickle.PicklingError: `obj` contains an object that cannot be pickled by name, such as a
            lambda. Nothing is written then.
        RuntimeError: the parent directory does not exist, the file cannot be opened, or there is not
            enough space. An existing file is then unchanged.
        OSError: `f.write` writes fewer bytes than it is passed, or raises.

    Example:
        >>> import io
        >>> buffer = io.BytesIO()
        >>> torch.save({"epoch": 3, "weight": torch.ones(2)}, buffer)
        >>> torch.load(io.BytesIO(buffer.getvalue()))
        {'epoch': 3, 'weight': tensor([1., 1.])}
    """
    if not isinstance(f, (str, os.PathLike)) and not hasattr(f, "write"):
        raise AttributeError("expected 'f' to be string, path, or a file-like object with a 'write' attribute")
    if pickle_module is not None and pickle_module is not pickle:
        raise NotImplementedError("save: pickle_module other than pickle is not supported")
    if pickle_protocol not in (2, 3, 4, 5):
        raise ValueError(f"save: pickle_protocol must be 2, 3, 4 or 5, got {pickle_protocol}")
    # Pickle before any file is opened, so that errors leave files unchanged.
    pickled = io.BytesIO()
    pickler = _Pickler(pickled, pickle_protocol)
    pickler.legacy = not _use_new_zipfile_serialization
    pickler.dump(obj)
    if pickler.legacy:
        with replacing(os.fspath(f)) if isinstance(f, (str, os.PathLike)) else nullcontext(f) as file:
            _write_legacy(file, pickled.getvalue(), pickler.storages.values(), pickle_protocol)
        return
    records: list[tuple[str, Any]] = [("data.pkl", pickled.getvalue())]
    if not _disable_byteorder_record:
        records.append(("byteorder", sys.byteorder.encode()))
    records += [(f"data/{s.key}", s.array.view(np.uint8)) for s in pickler.storages.values()]
    records.append(("version", b"3\n"))
    if isinstance(f, (str, os.PathLike)):
        _write_file(os.fspath(f), records)
        return
    _write_archive(f.write, records)
    if hasattr(f, "flush"):
        f.flush()


class _Global:
    """A name to write to the pickle, such as torch._utils._rebuild_tensor_v2, which need not exist here."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name

    def __call__(self, *args: Any) -> NoReturn:
        """Raise NotImplementedError; the method exists because picklers require functions to be callable."""
        raise NotImplementedError(f"{self.module}.{self.name} is a name for files")


#: What files call the functions that rebuild objects.
_FUNCTIONS = {
    **{builder: _Global(*name.rsplit(".", 1)) for name, builder in _BUILDERS.items() if name.startswith("torch.")},
    _rebuild_from_type_v2: _Global("torch._tensor", "_rebuild_from_type_v2"),
}
_TENSOR, _SIZE, _DEVICE = (_Global("torch", name) for name in ("Tensor", "Size", "device"))
#: The dtypes of which PyTorch has no typed storages.
_BYTES_ONLY = (*dtypes.UNSIGNED, *dtypes.FLOAT8)
_DTYPES = {dtype: _Global("torch", dtype.name) for dtype in dtypes.STORED}
_UNTYPED = _Global("torch.storage", "UntypedStorage")
#: Classes that PyTorch also accepts with `weights_only`.
_CLASSES: dict[Any, _Global] = {
    Tensor: _TENSOR,
    Parameter: _Global("torch.nn.parameter", "Parameter"),
    Size: _SIZE,
    device: _DEVICE,
}
_STORAGES = {dtype: _Global("torch", dtype.tensor_name + "Storage") for dtype in dtypes.ALL}


# The pickler in Python, since the one in C cannot write names that cannot be imported.
class _Pickler(pickle._Pickler):
    """Pickles tensors under PyTorch's names, and collects their storages."""

    legacy = False

    def __init__(self, file: IO[bytes], protocol: int) -> None:
        super().__init__(file, protocol)
        self.protocol = protocol
        self.storages: dict[tuple[int, int], Storage] = {}

    def persistent_id(self, obj: Any) -> Any:
        """Return the persistent id of a storage, or None for other objects."""
        kind: Any = None
        if isinstance(obj, UntypedStorage):
            kind, obj = _UNTYPED, self.keep(obj._array, dtypes.uint8)
        elif isinstance(obj, TypedStorage):
            obj = self.keep(obj._array, obj.dtype)
        if isinstance(obj, Storage):
            identity = ("storage", kind or _STORAGES[obj.dtype], obj.key, "cpu", obj.array.size)
            return (*identity, None) if self.legacy else identity
        return None

    def reducer_override(self, obj: Any) -> Any:
        """Return the function and arguments that rebuild `obj`, or NotImplemented to pickle it as Python does."""
        kind: Any = type(obj)
        if kind is bytes and self.protocol < 3:
            # As in Python, but also for b"", for which Python would write a call of `bytes`.
            return codecs.encode, (obj.decode("latin1"), "latin1")
        found = _reduced(obj, self.kept)
        if found is not None:
            return found
        if kind is Size:
            return _SIZE, (tuple(obj),)
        if kind is device:
            return _DEVICE, ((obj.type,) if obj.index is None else (obj.type, obj.index))
        if kind is layout:
            return _get_layout, (repr(obj),)
        return NotImplemented

    def kept(self, memory: np.ndarray[Any, Any], dtype: dtypes.dtype, untyped: bool) -> Any:
        """Return what stands for a storage in the pickle: it has a persistent id."""
        storage = self.keep(memory, dtype)
        return storage.to_public(untyped) if untyped else storage

    def keep(self, memory: np.ndarray[Any, Any], dtype: dtypes.dtype) -> Storage:
        """Return the storage for `memory`, a vector; the same one for all tensors in it."""
        # Empty arrays share no memory, but may have equal addresses.
        key = (_address(memory), memory.nbytes) if memory.nbytes else (id(memory), 0)
        storage = self.storages.get(key)
        if storage is None:
            name = str(len(self.storages))
            storage = self.storages[key] = Storage(memory, dtype, name)
        elif storage.dtype is not dtype:
            raise RuntimeError("Cannot save multiple tensors or storages that view the same data as different types")
        return storage

    def save_name(self, name: _Global | dtypes.dtype) -> None:
        """Write a global name without importing it."""
        if isinstance(name, dtypes.dtype):
            return self.save(_DTYPES[name])  # type: ignore[attr-defined]
        self.write(pickle.GLOBAL + f"{name.module}\n{name.name}\n".encode())  # type: ignore[attr-defined]
        return self.memoize(name)  # type: ignore[attr-defined]

    def save_function(self, function: Any) -> None:
        """Write a function's name; for an op its public name, not that of the module that defines it."""
        if function in _FUNCTIONS:
            return self.save(_FUNCTIONS[function])  # type: ignore[attr-defined]
        name = getattr(function, "__name__", "")
        home = sys.modules.get(function.__module__)
        package = sys.modules["tinytorch"]
        if getattr(home, name, None) is not function and getattr(package, name, None) is function:
            return self.save(_Global("tinytorch", name))  # type: ignore[attr-defined]
        return self.save_global(function)

    def save_global(self, obj: Any, name: str | None = None) -> None:
        """Write the name of a function or class; if it cannot be imported, raise the error of the pickler in C."""
        if isinstance(obj, type) and obj in _CLASSES:
            return self.save(_CLASSES[obj])  # type: ignore[attr-defined]
        try:
            return super().save_global(obj, name)  # type: ignore[misc]
        except pickle.PicklingError:
            # Before Python 3.14 this is an AttributeError for local objects.
            pickle.dumps(obj)
            raise

    dispatch: ClassVar[Any] = {
        **pickle._Pickler.dispatch,
        FunctionType: save_function,
        _Global: save_name,
        dtypes.dtype: save_name,
    }


# Tensors in pickles -------------------------------------------------------------------------------


def reduced(obj: Any) -> tuple[Any, ...]:
    """Return the function and the arguments by which a pickle rebuilds a tensor or a storage: those of PyTorch."""
    if isinstance(obj, (UntypedStorage, TypedStorage)):
        file = io.BytesIO()
        save(obj, file, _use_new_zipfile_serialization=False)
        return _load_from_bytes, (file.getvalue(),)
    found = _reduced(obj, lambda memory, dtype, untyped: Storage(memory, dtype, "").to_public(untyped))
    if found is None:
        raise TypeError(f"cannot pickle {type(obj).__name__!r} object")
    return found


def _reduced(obj: Any, keep: Callable[..., Any]) -> tuple[Any, ...] | None:
    """Return how to rebuild a tensor that does not say so itself; None for other objects.

    `keep` returns what stands for a storage, given its memory, its dtype and whether it is one of bytes.
    """
    kind: Any = type(obj)
    if isinstance(obj, Parameter) and kind.__reduce_ex__ is Parameter.__reduce_ex__:
        arguments: tuple[Any, ...] = (wrap(obj._array), obj.requires_grad, OrderedDict())
        if not obj.__dict__:
            return _rebuild_parameter, arguments
        return _rebuild_parameter_with_state, (*arguments, obj.__dict__)
    rebuild: Any
    if mode.is_lazy(obj):
        rebuild, arguments = _described(obj._under, keep)
        bits = {name: True for name, bit in (("conj", obj._conjugated), ("neg", obj._negated)) if bit}
        *described, _, hooks = arguments
        arguments, kind = (*described, obj.requires_grad, hooks, bits), Tensor
    elif is_sparse(obj):
        return _rebuild_sparse_tensor, sparse_parts(obj)
    elif isinstance(obj, Tensor) and kind.__reduce_ex__ is Tensor.__reduce_ex__:
        rebuild, arguments = _described(obj, keep)
    else:
        return None
    if kind is Tensor and not obj.__dict__:
        return rebuild, arguments
    return _rebuild_from_type_v2, (rebuild, kind, arguments, obj.__dict__)


def _described(x: Tensor, keep: Callable[..., Any]) -> tuple[Any, tuple[Any, ...]]:
    """Return the function and arguments that rebuild a plain tensor of the elements."""
    shape = tuple(x._array.shape)
    if x.is_meta:
        return _rebuild_meta_tensor_no_storage, (x.dtype, shape, _element_strides(x._array), x.requires_grad)
    array = x._array
    memory, strides = _memory(array), _element_strides(array)
    if memory is None or strides is None:
        # PyTorch cannot represent this view (negative strides): copy it.
        array = array.astype(array.dtype.newbyteorder("="), order="C")
        memory, strides = array.reshape(-1), _element_strides(array)
    offset = (_address(array) - _address(memory)) // array.itemsize if array.size else 0
    if x.dtype in _BYTES_ONLY:  # PyTorch has no typed storages for them
        storage = keep(memory.view(np.uint8), dtypes.uint8, True)
        return _rebuild_tensor_v3, (storage, offset, shape, strides, x.requires_grad, OrderedDict(), x.dtype)
    storage = keep(memory, x.dtype, False)
    return _rebuild_tensor_v2, (storage, offset, shape, strides, x.requires_grad, OrderedDict())


def _memory(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | None:
    """Return the whole memory of which `array` is a view, as a vector of its dtype, or None if that is impossible."""
    root, base = array, cast(Any, array)
    while (base := getattr(base, "base", None)) is not None:  # also through the helper objects of as_strided
        if isinstance(base, np.ndarray):
            root = base
    # The owner may have any order of dimensions in memory (channels last, Fortran).
    owner = root.transpose(sorted(range(root.ndim), key=lambda d: -root.strides[d]))
    if not owner.flags.c_contiguous or not array.dtype.isnative:
        return None
    memory = owner.reshape(-1)
    if memory.dtype != array.dtype:
        byte_offset = _address(array) - _address(memory)
        if memory.nbytes % array.itemsize or byte_offset % array.itemsize:
            return None
        memory = memory.view(np.uint8).view(array.dtype)
    return memory


def _element_strides(array: np.ndarray[Any, Any]) -> tuple[int, ...] | None:
    """Return the strides in elements, or None if PyTorch cannot represent them."""
    if not array.size and not any(array.strides):
        return tuple(element_strides(array))
    strides = []
    for length, stride in zip(array.shape, array.strides, strict=True):
        if length <= 1 and (stride < 0 or stride % array.itemsize):
            stride = array.itemsize  # irrelevant for a dimension of length 1
        if stride < 0 or stride % array.itemsize:
            return None
        strides.append(stride // array.itemsize)
    return tuple(strides)


def _write_file(path: str, records: list[tuple[str, Any]]) -> None:
    parent = os.path.dirname(path)
    if not os.path.isdir(parent or os.curdir):
        raise RuntimeError(f"Parent directory {parent} does not exist.")
    if not path or os.path.isdir(path):
        raise RuntimeError(f"invalid file name: {path!r} is no name of a file")
    failure = "open file failed with strerror"
    try:
        with replacing(path) as file:
            failure = "file write failed"
            _write_archive(file.write, records)
    except OSError as error:
        raise RuntimeError(f"{failure}: {error.strerror or error}, file path: {path}") from error
