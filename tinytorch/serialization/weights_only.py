"""An interpreter of the subset of pickle opcodes that describes data.

It looks names up in an allowlist (`_ALLOWED`) instead of importing them, so that a file cannot execute code.
"""

from __future__ import annotations

import collections
import math
import pickle
import reprlib
import sys
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import IO, Any, NoReturn, cast

import numpy as np

from tinytorch.core.device import device
from tinytorch.core.layout import layout, sparse_coo
from tinytorch.core.tensor import Size, Tensor, wrap
from tinytorch.kernels import dtypes, meta
from tinytorch.nn.parameter import Parameter
from tinytorch.ops.bits import bit_view
from tinytorch.ops.storage import TypedStorage, UntypedStorage
from tinytorch.serialization.archive import _damaged
from tinytorch.serialization.safe import _BLOCKED, _safe
from tinytorch.serialization.storage import _StorageType
from tinytorch.sparse.construct import sparse_compressed_tensor, sparse_coo_tensor

# Functions that files may call -------------------------------------------------------------------


def _rebuild_tensor(storage: Any, offset: Any, shape: Any, strides: Any) -> Tensor:
    """Return a view of `storage`, after checking that it is within bounds."""
    numbers = (offset, *shape, *strides)
    if type(storage) is not TypedStorage or not all(type(n) is int and n >= 0 for n in numbers):
        raise pickle.UnpicklingError("a tensor is not described by a storage and whole numbers")
    if len(shape) != len(strides):
        raise RuntimeError(_damaged(f"a tensor has sizes {shape} but strides {strides}"))
    array = storage._array
    size = array.itemsize
    last = offset + sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))
    needed = last + 1 if math.prod(shape) else 0
    if needed > array.size:
        raise RuntimeError(
            f"setStorage: sizes {list(shape)}, strides {list(strides)}, storage offset {offset}, and itemsize {size} "
            f"requiring a storage size of {needed * size} are out of bounds for storage of size {array.nbytes}"
        )
    if not needed:
        return cast(Tensor, wrap(np.empty(shape, array.dtype)))
    steps = tuple(stride * size for stride in strides)
    if meta.is_meta(array):
        return cast(Tensor, wrap(meta.empty(tuple(shape), array.dtype, steps)))
    memory = array.view(np.uint8)  # bfloat16 arrays do not support the buffer protocol
    view: np.ndarray[Any, Any] = np.ndarray(shape, array.dtype, memory.data, offset * size, steps)
    return cast(Tensor, wrap(view))


def _rebuild_tensor_v2(
    storage: Any, offset: Any, shape: Any, strides: Any, requires_grad: Any, backward_hooks: Any, metadata: Any = None
) -> Tensor:
    tensor = _rebuild_tensor(storage, offset, shape, strides)
    if metadata:
        if type(metadata) is not dict or not metadata.keys() <= {"conj", "neg"}:
            raise pickle.UnpicklingError(f"a tensor has unknown metadata: {reprlib.repr(metadata)}")
        tensor = bit_view(tensor, bool(metadata.get("conj")), bool(metadata.get("neg")))
    tensor.requires_grad = requires_grad
    return tensor


def _rebuild_tensor_v3(storage: Any, *arguments: Any) -> Tensor:
    *others, kind = arguments[:6]
    if type(storage) is not UntypedStorage or kind not in dtypes.STORED:
        raise pickle.UnpicklingError("a tensor is not described by bytes and a dtype")
    return _rebuild_tensor_v2(TypedStorage(wrap_storage=storage, dtype=kind), *others)


def _rebuild_meta_tensor_no_storage(dtype: Any, size: Any, stride: Any, requires_grad: Any) -> Tensor:
    if dtype not in dtypes.STORED or not all(type(n) is int and n >= 0 for n in (*size, *stride)):
        raise pickle.UnpicklingError("a tensor on the meta device is not described by a dtype and whole numbers")
    tensor = wrap(meta.empty(tuple(size), dtype.numpy, tuple([step * dtype.itemsize for step in stride])))
    tensor.requires_grad = requires_grad
    return cast(Tensor, tensor)


def _rebuild_sparse_tensor(kind: Any, data: Any) -> Any:
    if type(data) is not tuple or not all(type(part) is Tensor for part in data[: 2 if kind is sparse_coo else 3]):
        raise pickle.UnpicklingError("a sparse tensor is not described by tensors")
    if kind is sparse_coo:
        indices, values, size, *coalesced = data  # (older files do not say whether it is coalesced)
        known = bool(coalesced and coalesced[0])
        return sparse_coo_tensor(indices, values, size, is_coalesced=known, check_invariants=True)
    return sparse_compressed_tensor(*data, layout=kind, check_invariants=True)


def _rebuild_parameter(data: Any, requires_grad: Any, backward_hooks: Any) -> Parameter:
    if type(data) is not Tensor:
        raise pickle.UnpicklingError(f"a parameter is made from a {type(data).__name__}")
    return cast(Parameter, Parameter(data, requires_grad))


def _rebuild_parameter_with_state(data: Any, requires_grad: Any, hooks: Any, state: Any) -> Any:
    return _set_attributes(_rebuild_parameter(data, requires_grad, hooks), state)


def _rebuild_from_type_v2(function: Any, cls: Any, arguments: Any, state: Any) -> Any:
    # PyTorch would convert to any class; here the result of the function has the class already.
    if function not in (_rebuild_tensor_v2, _rebuild_tensor_v3) or cls is not Tensor:
        raise pickle.UnpicklingError("only a plain Tensor can be rebuilt with attributes")
    return _set_attributes(function(*arguments), state)


def _set_attributes(obj: Any, state: Any) -> Any:
    """Set new attributes of `obj`; a file must not replace methods or attributes of its class."""
    if type(state) is not dict:
        raise pickle.UnpicklingError(f"the state of a {type(obj).__name__} must be a dict")
    for name in state:
        if type(name) is not str or hasattr(type(obj), name):
            raise pickle.UnpicklingError(f"a {type(obj).__name__} has its own {reprlib.repr(name)}")
    obj.__dict__.update(state)
    return obj


def _ordered_dict(pairs: Any = ()) -> OrderedDict[Any, Any]:
    result: OrderedDict[Any, Any] = OrderedDict()
    for key, value in pairs:  # Python 2 wrote a list of pairs
        result[_checked_key(key)] = value
    return result


def _counter(counts: Any = None) -> Counter[Any]:
    if counts is not None and type(counts) is not dict:
        raise pickle.UnpicklingError("a Counter is made from a dict")
    return Counter(counts)


def _set(items: Any = ()) -> set[Any]:
    return {_checked_key(item) for item in items}


def _size(lengths: Any) -> Size:
    if type(lengths) is not tuple or not all(type(length) is int for length in lengths):
        raise pickle.UnpicklingError("a Size is made from a tuple of ints")
    return Size(lengths)


def _encode(text: Any, encoding: Any = "latin1") -> bytes:
    if type(text) is not str or encoding not in ("latin1", "latin-1"):
        raise pickle.UnpicklingError("bytes are written as text in latin1 only")
    return text.encode("latin1")


def _bytearray(content: Any = b"", encoding: Any = "latin-1") -> bytearray:
    # Not Python's `bytearray`, since bytearray(10**12) would allocate the memory.
    return bytearray(content if type(content) is bytes else _encode(content, encoding))


def _complex(real: Any, imag: Any) -> complex:
    if type(real) is not float or type(imag) is not float:
        raise pickle.UnpicklingError("a complex number is made from two floats")
    return complex(real, imag)


def _get_layout(name: Any) -> layout:
    value = getattr(sys.modules["tinytorch"], name.rpartition(".")[2], None)
    if type(value) is not layout:
        raise pickle.UnpicklingError(f"there is no layout {reprlib.repr(name)}")
    return value


#: The meaning of names in a file: functions that build data from validated arguments ...
_BUILDERS: dict[str, Callable[..., Any]] = {
    "torch._utils._rebuild_tensor": _rebuild_tensor,
    "torch._utils._rebuild_tensor_v2": _rebuild_tensor_v2,
    "torch._utils._rebuild_tensor_v3": _rebuild_tensor_v3,
    "torch._utils._rebuild_meta_tensor_no_storage": _rebuild_meta_tensor_no_storage,
    "torch._utils._rebuild_sparse_tensor": _rebuild_sparse_tensor,
    "torch._utils._rebuild_parameter": _rebuild_parameter,
    "torch._utils._rebuild_parameter_with_state": _rebuild_parameter_with_state,
    "torch._tensor._rebuild_from_type_v2": _rebuild_from_type_v2,
    "torch.Size": _size,
    "torch.device": device,
    "torch.serialization._get_layout": _get_layout,
    "collections.OrderedDict": _ordered_dict,
    "collections.Counter": _counter,
    "builtins.set": _set,
    "builtins.bytearray": _bytearray,
    "builtins.complex": _complex,
    "_codecs.encode": _encode,
}
for _name, _builder in _BUILDERS.items():
    if _name.startswith(("torch._utils.", "torch.serialization.")):  # whose public place is that of PyTorch's
        _builder.__module__ = f"tiny{_name.rpartition('.')[0]}"
#: ... and values.
_VALUES: dict[str, Any] = {
    "torch.Tensor": Tensor,
    "torch.nn.parameter.Parameter": Parameter,
    **{f"torch.{dtype.name}": dtype for dtype in dtypes.STORED},
    **{f"torch.{dtype.tensor_name}Storage": _StorageType(dtype) for dtype in dtypes.ALL},
    "torch.storage.UntypedStorage": _StorageType(dtypes.uint8, untyped=True),
}
#: The classes that builders stand for: as values their names mean the class.
_BUILT_CLASSES: dict[Any, Any] = {
    _size: Size, _ordered_dict: OrderedDict, _counter: Counter, _set: set, _bytearray: bytearray, _complex: complex
}  # fmt: skip
_ALLOWED: dict[str, Any] = {
    **{name: _BUILT_CLASSES.get(builder, builder) for name, builder in _BUILDERS.items()},
    **_VALUES,
}

_LITERALS = frozenset({
    "INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT",
    "STRING", "BINSTRING", "SHORT_BINSTRING", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8",
    "BYTEARRAY8", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8",
})  # fmt: skip
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_EMPTY: dict[str, Callable[[], Any]] = {"EMPTY_LIST": list, "EMPTY_DICT": dict, "EMPTY_TUPLE": tuple, "EMPTY_SET": set}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


# The interpreter ---------------------------------------------------------------------------------


class _Reader:
    """Interprets the opcodes of a pickle that builds data.

    Python's Unpickler lets a pickle call any object on its stack and set its attributes; here REDUCE, NEWOBJ and
    BUILD accept only the builders in the allowlist.
    """

    def __init__(self, load_storage: Callable[[Any], Any]) -> None:
        self.load_storage = load_storage
        self.outside: Exception | None = None
        self.trusted = dict(_safe)
        builders = (*_BUILDERS.values(), *self.trusted.values())
        self.builders = [(_BUILT_CLASSES.get(builder, builder), builder) for builder in builders]

    def read(self, program: bytes | IO[bytes]) -> Any:
        """Return the object that the pickle describes, or the next one in a file."""
        try:
            return self.run(program)
        except pickle.UnpicklingError as error:
            raise pickle.UnpicklingError(f"Weights only load failed. {error}") from None
        except (RuntimeError, ImportError, MemoryError):
            raise  # the message is informative
        except Exception as error:  # invalid arguments of a builder, or an invalid stack, by damaged bytes
            if error is self.outside:
                raise
            raise pickle.UnpicklingError(
                f"Weights only load failed. The pickle is damaged: {type(error).__name__}: {error}"
            ) from error

    def run(self, program: bytes | IO[bytes]) -> Any:
        """Interpret the opcodes, with a stack of values, the stacks saved by MARK, and the memo."""
        import pickletools

        stack: list[Any] = []
        saved: list[list[Any]] = []
        memo: dict[int, Any] = {}
        for opcode, argument, _ in pickletools.genops(program):
            name = opcode.name
            if name in _LITERALS:
                stack.append(argument)
            elif name in ("BINPUT", "LONG_BINPUT", "PUT"):
                memo[argument] = stack[-1]  # type: ignore[index]
            elif name == "MEMOIZE":
                memo[len(memo)] = stack[-1]
            elif name in ("BINGET", "LONG_BINGET", "GET"):
                stack.append(memo[argument])  # type: ignore[index]
            elif name in _CONSTANTS:
                stack.append(_CONSTANTS[name])
            elif name in _EMPTY:
                stack.append(_EMPTY[name]())
            elif name == "MARK":
                saved.append(stack)
                stack = []
            elif name in ("TUPLE", "LIST", "DICT", "APPENDS", "SETITEMS", "ADDITEMS", "POP_MARK"):
                items, stack = stack, saved.pop()
                if name == "TUPLE":
                    stack.append(tuple(items))
                elif name == "LIST":
                    stack.append(items)
                elif name == "DICT":
                    stack.append({})
                if name in ("DICT", "SETITEMS"):
                    self.set_items(stack[-1], items)
                elif name == "APPENDS":
                    self.extend(stack[-1], items)
                elif name == "ADDITEMS":
                    self.add(stack[-1], items)
            elif name in _TUPLES:
                items = [stack.pop() for _ in range(_TUPLES[name])]
                stack.append(tuple(reversed(items)))
            elif name == "APPEND":
                item = stack.pop()
                self.extend(stack[-1], [item])
            elif name == "SETITEM":
                value, key = stack.pop(), stack.pop()
                self.set_items(stack[-1], [key, value])
            elif name == "POP":
                stack.pop()
            elif name == "GLOBAL":
                stack.append(self.find(*cast(str, argument).split(" ", 1)))
            elif name == "STACK_GLOBAL":
                attribute, module = stack.pop(), stack.pop()
                stack.append(self.find(module, attribute))
            elif name == "BINPERSID":
                stack.append(self.storage(stack.pop()))
            elif name == "REDUCE":
                arguments, function = stack.pop(), stack.pop()
                stack.append(self.call(function, arguments))
            elif name == "NEWOBJ":
                arguments, cls = stack.pop(), stack.pop()
                stack.append(self.make(cls, arguments))
            elif name == "BUILD":
                state = stack.pop()
                self.build(stack[-1], state)
            elif name == "STOP":
                return stack.pop()
            elif name not in ("PROTO", "FRAME"):
                self.refuse(f"Unsupported operand {name}: it does not describe data.")
        raise EOFError("Ran out of input")

    def storage(self, identity: Any) -> TypedStorage | UntypedStorage:
        """Return a storage; errors of the file system and of `map_location` are passed on unchanged."""
        try:
            return self.load_storage(identity)
        except Exception as error:
            self.outside = error
            raise

    def find(self, module: Any, name: Any) -> Any:
        """Return the value of a global name, if it is in the allowlist."""
        if type(module) is not str or type(name) is not str:
            raise TypeError("a global is named by two strings")
        if module == "__builtin__":  # Python 2's name, which protocol 2 writes
            module = "builtins"
        full = f"{module}.{name}"
        if full in _ALLOWED:
            return _ALLOWED[full]
        if module in _BLOCKED:
            self.refuse(
                f"Unsupported global: GLOBAL {full} was not an allowed global by default. "
                f"Trying to load unsupported GLOBAL {full} whose module {module} is blocked."
            )
        for alias in (full, f"tiny{full}" if full.startswith("torch.") else full):
            if alias in self.trusted:
                return self.trusted[alias]
        full = full.removeprefix("builtins.")
        self.refuse(
            f"Unsupported global: GLOBAL {full} was not an allowed global by default. Please use "
            f"`torch.serialization.add_safe_globals([{full}])` or the `torch.serialization.safe_globals([{full}])` "
            "context manager to allowlist this global if you trust this class/function."
        )

    def call(self, function: Any, arguments: Any) -> Any:
        """Return `function(*arguments)` for a function in the allowlist."""
        builder = next((builder for value, builder in self.builders if value is function), None)
        if builder is None:
            self.refuse(f"Trying to call reduce for unrecognized function {reprlib.repr(function)}")
        if type(arguments) is not tuple:
            raise TypeError("arguments must be a tuple")
        return builder(*arguments)

    def make(self, cls: Any, arguments: Any) -> Any:
        """Return a new instance of an allowlisted class, without calling `__init__`."""
        if not any(cls is trusted for trusted in self.trusted.values()):
            self.refuse(
                "Can only create new object for nn.Parameter or classes allowlisted via "
                f"`add_safe_globals` but got {reprlib.repr(cls)}"
            )
        return cls.__new__(cls, *arguments)

    def build(self, obj: Any, state: Any) -> None:
        """Set the attributes of an OrderedDict (`_metadata`), or of an instance of an allowlisted class."""
        kind = np.dtype if isinstance(obj, np.dtype) else type(obj)
        if kind is OrderedDict:
            _set_attributes(obj, state)
        elif any(kind is trusted for trusted in self.trusted.values()):
            self.set_state(obj, state)
        else:
            self.refuse(
                "Can only build Tensor, Parameter, OrderedDict or types allowlisted via "
                f"`add_safe_globals`, but got {kind}"
            )

    @staticmethod
    def set_state(obj: Any, state: Any) -> None:
        """Set the state of an instance, as in unpickling."""
        if hasattr(obj, "__setstate__"):
            obj.__setstate__(state)
            return
        slots = None
        if isinstance(state, tuple) and len(state) == 2:
            state, slots = state
        if state:
            obj.__dict__.update(state)
        for name, value in (slots or {}).items():
            setattr(obj, name, value)

    def extend(self, target: Any, items: list[Any]) -> None:
        """Append to a list."""
        if type(target) is not list:
            self.refuse(f"Can only append to lists, but got {type(target)}")
        target.extend(items)

    def set_items(self, target: Any, items: list[Any]) -> None:
        """Set items of a dict, from alternating keys and values."""
        if type(target) not in (dict, OrderedDict, Counter, collections.defaultdict):
            self.refuse(f"Can only set items of dicts, but got {type(target)}")
        for key, value in zip(items[::2], items[1::2], strict=True):
            target[_checked_key(key)] = value

    def add(self, target: Any, items: list[Any]) -> None:
        """Add to a set."""
        if type(target) is not set:
            self.refuse(f"Can only add to sets, but got {type(target)}")
        target.update(_checked_key(item) for item in items)

    def refuse(self, reason: str) -> NoReturn:
        """Raise the error for a file that contains more than data."""
        raise pickle.UnpicklingError(
            "This file can still be loaded, if you trust its source: (1) with `weights_only=False` "
            "(the default of `torch.load` is True since PyTorch 2.6), which can result in "
            "arbitrary code execution; or (2) as the following message says.\n"
            f"WeightsUnpickler error: {reason}"
        )


def _checked_key(key: Any) -> Any:
    """Return `key` if it is safe to hash; hashing a deeply nested or self-repeating tuple may take forever."""
    seen, pending = 0, [key]
    while pending:
        item = pending.pop()
        if isinstance(item, tuple):
            seen += 1 + len(item)
            if seen > 1000:
                raise pickle.UnpicklingError("a key is too large a tuple")
            pending.extend(item)
    return key
