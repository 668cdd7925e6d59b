"""`torch.utils._pytree`: PyTorch's names for `tinytorch.func.pytree`, and tree structures as JSON."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import json
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Iterable
from enum import Enum
from typing import Any

from tinytorch.core.tensor import Size
from tinytorch.func.pytree import (
    LEAF,
    GetAttrKey,
    LeafSpec,
    MappingKey,
    SequenceKey,
    TreeSpec,
    _Kind,
    _kind_of,
    _kinds,
    describe,
    keystr,
    map_only,
    register_pytree_node,
    serialized,
    tree_all,
    tree_all_only,
    tree_any,
    tree_any_only,
    tree_flatten_with_path,
    tree_is_leaf,
    tree_iter,
    tree_leaves,
    tree_leaves_with_path,
    tree_map,
    tree_map_,
    tree_map_only,
    tree_map_only_,
    tree_map_with_path,
    tree_structure,
)
from tinytorch.func.pytree import flatten as tree_flatten
from tinytorch.func.pytree import unflatten as tree_unflatten

__all__ = [
    "GetAttrKey", "LeafSpec", "MappingKey", "PyTree", "PyTreeSpec", "SUPPORTED_NODES", "SequenceKey", "TreeSpec",
    "arg_tree_leaves", "is_constant_class", "is_namedtuple", "is_namedtuple_class", "is_namedtuple_instance",
    "is_structseq", "is_structseq_class", "is_structseq_instance", "key_get", "keystr", "map_only",
    "register_constant", "register_dataclass", "register_pytree_node", "tree_all", "tree_all_only", "tree_any",
    "tree_any_only", "tree_flatten", "tree_flatten_with_path", "tree_is_leaf", "tree_iter", "tree_leaves",
    "tree_leaves_with_path", "tree_map", "tree_map_", "tree_map_only", "tree_map_only_", "tree_map_with_path",
    "tree_structure", "tree_unflatten", "treespec_dict", "treespec_dumps", "treespec_leaf", "treespec_loads",
    "treespec_pprint", "treespec_tuple",
]  # fmt: skip

_register_pytree_node = register_pytree_node

Context = PyTree = Any
SUPPORTED_NODES = _kinds  # by type of container: the functions that flatten and unflatten it


def _get_node_type(tree: Any) -> Any:
    """Return the key of a container in `SUPPORTED_NODES`, or the type of a leaf."""
    kind = _kind_of(tree)
    return type(tree) if kind is None else kind


def treespec_leaf() -> TreeSpec:
    """Return the structure of a leaf."""
    return LEAF


def treespec_tuple(iterable: Iterable[TreeSpec] = (), /) -> TreeSpec:
    """Return the structure of a tuple whose items have the given structures."""
    return TreeSpec(tuple, None, list(iterable))


def treespec_dict(mapping: Any = (), /, **named: TreeSpec) -> TreeSpec:
    """Return the structure of a dictionary whose values have the given structures."""
    items = dict(mapping, **named)
    return TreeSpec(dict, list(items), list(items.values()))


def arg_tree_leaves(*args: Any, **named: Any) -> list[Any]:
    """Return the leaves of all arguments."""
    return tree_leaves((args, list(named.values())))


def key_get(obj: Any, kp: Iterable[Any]) -> Any:
    """Return the item of a tree at a path of keys."""
    for key in kp:
        obj = key.get(obj)
    return obj


def is_namedtuple_class(cls: Any) -> bool:
    """Return whether a class is a named tuple type."""
    return (
        isinstance(cls, type) and issubclass(cls, tuple) and isinstance(getattr(cls, "_fields", None), tuple)
        and callable(getattr(cls, "_make", None)) and callable(getattr(cls, "_asdict", None))
    )  # fmt: skip


def is_structseq_class(cls: Any) -> bool:
    """Return whether a class is a struct sequence (C's named tuple), such as `time.struct_time`."""
    return isinstance(cls, type) and issubclass(cls, tuple) and isinstance(getattr(cls, "n_unnamed_fields", None), int)


def is_namedtuple(obj: Any) -> bool:
    """Return whether an object is a named tuple or a named tuple type."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_structseq(obj: Any) -> bool:
    """Return whether an object is a struct sequence or a struct sequence type."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def is_namedtuple_instance(obj: Any) -> bool:
    """Return whether an object is a named tuple."""
    return is_namedtuple_class(type(obj))


def is_structseq_instance(obj: Any) -> bool:
    """Return whether an object is a struct sequence."""
    return is_structseq_class(type(obj))


def register_dataclass(
    cls: type[Any], *, field_names: list[str] | None = None, drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:  # fmt: skip
    """Register a dataclass as a container of its fields; fields that are None belong to the structure.

    Args:
        cls: the class.
        field_names: the fields, by default all parameters of `__init__`.
        drop_field_names: fields that are left out.
        serialized_type_name: see `register_pytree_node`.

    Raises:
        ValueError: `field_names` are not the fields of the dataclass.

    Example:
        >>> from dataclasses import dataclass
        >>> @dataclass
        ... class Point:
        ...     x: int
        ...     y: int
        >>> torch.utils._pytree.register_dataclass(Point)
        >>> torch.utils._pytree.tree_map(lambda x: x + 1, Point(1, 2))
        Point(x=2, y=3)
    """
    if dataclasses.is_dataclass(cls):
        dropped = drop_field_names or ()
        fields = [field.name for field in dataclasses.fields(cls) if field.init and field.name not in dropped]
        field_names = field_names or fields
        missing, unexpected = set(fields) - set(field_names), set(field_names) - set(fields)
        if missing or unexpected:
            details = f"Missing fields in `field_names`: {missing}. " if missing else ""
            details += f"Unexpected fields in `field_names`: {unexpected}." if unexpected else ""
            raise ValueError(f"field_names does not include all dataclass fields.\n{details}")
    elif field_names is None:
        raise ValueError(
            f"field_names must be specified with a list of all fields used to initialize {cls}, "
            "as it is not a dataclass."
        )
    names = field_names

    def flatten(obj: Any) -> tuple[list[Any], Any]:
        present = [name for name in names if getattr(obj, name) is not None]
        return [getattr(obj, name) for name in present], [present, [name for name in names if name not in present]]

    register_pytree_node(
        cls, flatten, lambda items, context: cls(**dict(zip(context[0], items)), **dict.fromkeys(context[1])),  # noqa: B905
        serialized_type_name=serialized_type_name,
        flatten_with_keys_fn=lambda x: ([(GetAttrKey(n), getattr(x, n)) for n in flatten(x)[1][0]], None),
    )  # fmt: skip


CONSTANT_NODES: set[type[Any]] = set()


def register_constant(cls: type[Any]) -> None:
    """Register a class whose instances belong to the structure of a tree; it must define `__eq__` and `__hash__`."""
    for name in ("__eq__", "__hash__"):
        if getattr(cls, name) in (None, getattr(object, name)):
            raise TypeError(f"register_constant(cls) expects `cls` to have a non-default `{name}` implementation.")
    register_pytree_node(cls, lambda x: ([], x), lambda _, x: x, flatten_with_keys_fn=lambda x: ([], x))
    CONSTANT_NODES.add(cls)


def is_constant_class(cls: type[Any]) -> bool:
    """Return whether a class was registered by `register_constant`."""
    return isinstance(cls, type) and cls in CONSTANT_NODES


def _register_namedtuple(cls: type[Any], *, serialized_type_name: str) -> None:
    """Register the name of a named tuple type in the output of `treespec_dumps`."""
    serialized[cls] = serialized_type_name, None, None


def _deregister_pytree_node(cls: type[Any]) -> None:
    """Remove the registration of a class."""
    del _kinds[cls], serialized[cls]
    CONSTANT_NODES.discard(cls)


# Tree structures as JSON --------------------------------------------------------------------------


class _Encoder(json.JSONEncoder):
    def default(self, obj: Any) -> Any:
        if not isinstance(obj, Enum):
            return super().default(obj)
        return {"__enum__": True, "fqn": f"{type(obj).__module__}:{type(obj).__qualname__}", "name": obj.name}


def _decode_enum(record: dict[str, Any]) -> Any:
    if "__enum__" not in record:
        return record
    module, _, name = record["fqn"].partition(":")
    return functools.reduce(getattr, name.split("."), importlib.import_module(module))[record["name"]]  # type: ignore[index]


def _name_of(kind: Any) -> str:
    if kind not in serialized and is_namedtuple(kind):
        raise NotImplementedError(
            f"Can't serialize TreeSpec of namedtuple class {kind} because we didn't register a serializated_type_name. "
            "Please register using `_register_namedtuple`."
        )
    if kind not in serialized:
        raise NotImplementedError(f"Serializing {kind} in pytree is not registered.")
    name = serialized[kind][0]
    if name is None:
        raise NotImplementedError(
            f"No registered serialization name for {kind} found. Please update your _register_pytree_node call with a "
            "`serialized_type_name` kwarg."
        )
    return name


def _type_of(name: str) -> Any:
    for kind, (registered_name, _, _) in reversed(serialized.items()):
        if registered_name == name:
            return kind
    raise NotImplementedError(f"Deserializing {name} in pytree is not registered.")


def _decode_defaultdict(record: dict[str, Any]) -> Any:
    module = importlib.import_module(record["default_factory_module"])
    return [getattr(module, record["default_factory_name"]), record["dict_context"]]


_builtin: tuple[Any, ...] = (list, tuple, dict, deque, OrderedDict)
serialized.update({
    **{kind: (f"{kind.__module__}.{kind.__name__}", None, None) for kind in _builtin},
    Size: ("torch.Size", None, None),
    namedtuple: ("collections.namedtuple", _name_of, _type_of),
    defaultdict: ("collections.defaultdict", lambda context: {
        "default_factory_module": context[0].__module__, "default_factory_name": context[0].__qualname__,
        "dict_context": context[1],
    }, _decode_defaultdict),
})  # fmt: skip


def _encode(spec: TreeSpec) -> dict[str, Any]:
    if spec.type is None:
        return {"type": None, "context": None, "children_spec": []}
    name, encode_context = _name_of(spec.type), serialized[spec.type][1]
    context = json.dumps(spec.context, cls=_Encoder) if encode_context is None else encode_context(spec.context)
    return {"type": name, "context": context, "children_spec": [_encode(child) for child in spec.children()]}


def _decode(record: Any) -> TreeSpec:
    if record["type"] is None:
        return LEAF
    kind, context = _type_of(record["type"]), record["context"]
    decode_context = serialized[kind][2]
    context = json.loads(context, object_hook=_decode_enum) if decode_context is None else decode_context(context)
    return TreeSpec(kind, context, [_decode(child) for child in record["children_spec"]])


def _check_protocol(protocol: int) -> None:
    if protocol != 1:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [1]")


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """Return a tree structure as JSON, which PyTorch can read, too.

    Raises:
        TypeError: `treespec` is not a tree structure, or the context of a container cannot be written as JSON.
        NotImplementedError: a type has no `serialized_type_name`.
        ValueError: a protocol other than 1.

    Example:
        >>> text = torch.utils._pytree.treespec_dumps(torch.utils._pytree.tree_structure([1, (2,)]))
        >>> torch.utils._pytree.treespec_loads(text)
        TreeSpec(list, None, [*,
          TreeSpec(tuple, None, [*])])
    """
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"Expected `treespec` to be an instance of PyTreeSpec but got item of type {type(treespec)}.")
    _check_protocol(1 if protocol is None else protocol)
    return json.dumps((1, _encode(treespec)), cls=_Encoder)


def treespec_loads(serialized: str) -> TreeSpec:
    """Return the tree structure that `treespec_dumps` wrote.

    Raises:
        NotImplementedError: a type is not registered.
        ValueError: the text is not JSON, or has an unknown protocol version.

    Example:
        >>> torch.utils._pytree.treespec_loads('[1, {"type": null, "context": null, "children_spec": []}]')
        *
    """
    protocol, record = json.loads(serialized)
    _check_protocol(protocol)
    return _decode(record)


def _broadcast_to_and_flatten(tree: Any, treespec: TreeSpec, is_leaf: Any = None) -> list[Any] | None:
    """Return the leaves of `tree`, repeated for all leaves of the subtree of `treespec` at the same path.

    None is returned if the structure of `tree` is not a prefix of `treespec`.
    """
    result: list[Any] = []
    full = tree_unflatten([0] * treespec.num_leaves, treespec)
    try:
        tree_map_(lambda x, part: result.extend([x] * len(tree_leaves(part, is_leaf))), tree, full, is_leaf=is_leaf)
    except ValueError:
        return None
    return result


def _is_leaf(tree: Any, is_leaf: Any = None) -> bool:
    return tree_is_leaf(tree, is_leaf)


def _functions(kind: _Kind) -> Any:
    keys: Any = kind.keys

    def flatten_with_keys(container: Any) -> Any:
        items, context = kind.flatten_fn(container)
        return list(zip(keys(container, context), items, strict=True)), context

    return kind.flatten_fn, flatten_with_keys, kind.unflatten_fn


# PyTorch's private names of the functions for built-in containers, by which packages register containers of their own.
_list_flatten, _list_flatten_with_keys, _list_unflatten = _functions(_kinds[list])
_tuple_flatten, _tuple_flatten_with_keys, _tuple_unflatten = _functions(_kinds[tuple])
_dict_flatten, _dict_flatten_with_keys, _dict_unflatten = _functions(_kinds[dict])
_odict_flatten, _, _odict_unflatten = _functions(_kinds[OrderedDict])
_ordereddict_flatten, _ordereddict_flatten_with_keys, _ordereddict_unflatten = _functions(_kinds[OrderedDict])
_defaultdict_flatten, _defaultdict_flatten_with_keys, _defaultdict_unflatten = _functions(_kinds[defaultdict])
_deque_flatten, _deque_flatten_with_keys, _deque_unflatten = _functions(_kinds[deque])
_namedtuple_flatten, _namedtuple_flatten_with_keys, _namedtuple_unflatten = _functions(_kinds[namedtuple])
pytree_to_str, str_to_pytree, treespec_pprint = treespec_dumps, treespec_loads, describe
_is_namedtuple_instance, _private_register_pytree_node = is_namedtuple_instance, register_pytree_node
PyTreeSpec, NodeDef, _LEAF_SPEC = TreeSpec, _Kind, LEAF
BUILTIN_TYPES, STANDARD_DICT_TYPES = frozenset(_kinds), frozenset({dict, OrderedDict, defaultdict})
