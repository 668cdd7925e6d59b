"""Trees of nested containers, flattened to their leaves and restored: `torch.utils._pytree`.

Lists, tuples, named tuples, dictionaries, deques and classes registered by `register_pytree_node` are containers; all
other objects, None too, are leaves.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import itertools
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from tinytorch.core.tensor import Size
from tinytorch.core.warning import warn
from tinytorch.ops.return_types import _Result

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

IsLeaf = Callable[[Any], bool] | None


# Keys ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SequenceKey:
    """The index of an item of a list or tuple.

    Example:
        >>> torch.utils._pytree.SequenceKey(1).get([5, 6])
        6
    """

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        """Return the item."""
        return sequence[self.idx]


@dataclass(frozen=True)
class MappingKey:
    """The key of an item of a dictionary.

    Example:
        >>> torch.utils._pytree.MappingKey("a").get({"a": 5})
        5
    """

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        """Return the item."""
        return mapping[self.key]


@dataclass(frozen=True)
class GetAttrKey:
    """The name of an item of a named tuple.

    Example:
        >>> torch.utils._pytree.GetAttrKey("values").get(torch.tensor([1, 3]).max(0))
        tensor(3)
    """

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        """Return the item."""
        return getattr(obj, self.name)


def keystr(kp: tuple[Any, ...]) -> str:
    """Return a path as text, such as `['a'][0].x`.

    Example:
        >>> from tinytorch.func import pytree
        >>> pytree.keystr((pytree.MappingKey("a"), pytree.SequenceKey(0)))
        "['a'][0]"
    """
    return "".join(map(str, kp))


# Kinds of containers ------------------------------------------------------------------------------


class _Kind(NamedTuple):
    """How containers of one type are flattened and restored."""

    flatten_fn: Callable[[Any], tuple[list[Any], Any]]  # to the items and the context
    unflatten_fn: Callable[[list[Any], Any], Any]
    keys: Callable[[Any, Any], list[Any]] | None  # from the container and the context


def _sequence_keys(container: Any, context: Any) -> list[Any]:
    return [SequenceKey(i) for i in range(len(container))]


def _mapping_kind(kind: Callable[[Any], Any]) -> _Kind:
    return _Kind(
        lambda x: (list(x.values()), list(x)),
        lambda items, keys: kind(zip(keys, items, strict=True)),
        lambda _, keys: [MappingKey(key) for key in keys],
    )


_kinds: dict[Any, _Kind] = {
    list: _Kind(lambda x: (x, None), lambda items, _: items, _sequence_keys),
    tuple: _Kind(lambda x: (list(x), None), lambda items, _: tuple(items), _sequence_keys),
    Size: _Kind(lambda x: (list(x), None), lambda items, _: tuple(items), _sequence_keys),
    dict: _mapping_kind(dict),
    OrderedDict: _mapping_kind(OrderedDict),
    defaultdict: _Kind(
        lambda x: (list(x.values()), [x.default_factory, list(x)]),
        lambda items, context: defaultdict(context[0], zip(context[1], items, strict=True)),
        lambda _, context: [MappingKey(key) for key in context[1]],
    ),
    deque: _Kind(lambda x: (list(x), x.maxlen), lambda items, most: deque(items, maxlen=most), _sequence_keys),
    namedtuple: _Kind(
        lambda x: (list(x), type(x)),
        lambda items, kind: kind(*items),
        lambda _, kind: [GetAttrKey(name) for name in kind._fields],
    ),
}

#: The types whose keys are compared without their order when two trees are traversed together.
_MAPPINGS = (dict, OrderedDict, defaultdict)


def register_pytree_node(
    cls: type[Any],
    flatten_fn: Callable[[Any], tuple[list[Any], Any]],
    unflatten_fn: Callable[[Iterable[Any], Any], Any],
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Callable[[Any], Any] | None = None,
    from_dumpable_context: Callable[[Any], Any] | None = None,
    flatten_with_keys_fn: Callable[[Any], tuple[list[tuple[Any, Any]], Any]] | None = None,
) -> None:
    """Register a class as a container, also for `torch.func`.

    Instances of subclasses are leaves. `flatten_fn` returns the items of an instance and a context, which holds what
    else `unflatten_fn` needs to restore it; `flatten_with_keys_fn` returns pairs of key and item, and the context.
    `serialized_type_name` and the conversions of the context, to an object that JSON can represent and back, are for
    `treespec_dumps`. A class that is registered already, and one conversion without the other, are a ValueError.

    Example:
        >>> from tinytorch.utils import _pytree as pytree
        >>> class Pair:
        ...     def __init__(self, a, b):
        ...         self.a, self.b = a, b
        >>> pytree.register_pytree_node(Pair, lambda p: ([p.a, p.b], None), lambda items, _: Pair(*items))
        >>> pytree.tree_leaves([Pair(1, 2), 3])
        [1, 2, 3]
    """
    if cls in _kinds:
        raise ValueError(f"{cls} is already registered as pytree node.")
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError(f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or registered.")
    keys = None
    if flatten_with_keys_fn is not None:
        with_keys = flatten_with_keys_fn  # (for the type checker: not None)

        def keys(container: Any, context: Any) -> list[Any]:
            return [key for key, _ in with_keys(container)[0]]

    _kinds[cls] = _Kind(flatten_fn, unflatten_fn, keys)
    serialized[cls] = serialized_type_name, to_dumpable_context, from_dumpable_context


#: By type, its serialized name and the conversions of its context, for `treespec_dumps`.
serialized: dict[Any, tuple[str | None, Callable[[Any], Any] | None, Callable[[Any], Any] | None]] = {}


def _kind_of(tree: Any) -> Any:
    """Return the key of `_kinds` for a container, or None for a leaf."""
    kind = type(tree)
    if kind in _kinds:
        return kind
    if issubclass(kind, tuple):
        if issubclass(kind, _Result):
            _kinds[kind] = _Kind(lambda x: (list(x), None), lambda items, _: kind(items), _sequence_keys)
            return kind
        if hasattr(kind, "_fields"):
            return namedtuple
    return None


# Structures ---------------------------------------------------------------------------------------


class TreeSpec:
    """The structure of a tree.

    Args:
        type: the type of the container, `collections.namedtuple` for named tuples, None for a leaf.
        context: what else is needed to restore it: keys, for instance.
        children_specs: the structures of its items.
    """

    __slots__ = ("_children", "context", "num_children", "num_leaves", "num_nodes", "type")

    def __init__(self, type: Any, context: Any, children_specs: list[TreeSpec]) -> None:
        self.type, self.context, self._children = type, context, children_specs
        self.num_children = len(children_specs)
        self.num_nodes = 1 + sum(child.num_nodes for child in children_specs)
        self.num_leaves = 1 if type is None else sum(child.num_leaves for child in children_specs)

    def is_leaf(self) -> bool:
        """Return whether this is the structure of a leaf."""
        return self.type is None

    @property
    def children_specs(self) -> list[TreeSpec]:
        """PyTorch's old name of `children()`."""
        words = "`treespec.children_specs` is deprecated. Use `treespec.child(index)` or `treespec.children()`."
        warn(words, FutureWarning)
        return self._children

    def children(self) -> list[TreeSpec]:
        """Return the structures of the items."""
        return list(self._children)

    def child(self, index: int) -> TreeSpec:
        """Return the structure of an item."""
        return self._children[index]

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, TreeSpec)
            and self.type is other.type
            and self.context == other.context
            and self._children == other._children
        )

    def __hash__(self) -> int:
        return hash((self.type, self.num_leaves, self.num_nodes, tuple(map(hash, self._children))))

    def __repr__(self, indent: int = 2) -> str:
        if self.type is None:
            return "*"
        items = (",\n" + " " * indent).join(child.__repr__(indent + 2) for child in self._children)
        return f"TreeSpec({self.type.__name__}, {self.context}, [{items}])"

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """Return the tree of this structure with other leaves.

        Raises:
            ValueError: the number of leaves differs from that of the structure.

        Example:
            >>> leaves, structure = torch.utils._pytree.tree_flatten({"a": (1, 2)})
            >>> structure.unflatten([5, 6])
            {'a': (5, 6)}
        """
        leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec refers to a pytree that "
                f"holds {self.num_leaves} items ({self})."
            )
        return _build(iter(leaves), self)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """Return the subtrees of `tree` at the places where this structure has leaves.

        Raises:
            ValueError: above them `tree` has another structure.

        Example:
            >>> _, structure = torch.utils._pytree.tree_flatten([0, 0])
            >>> structure.flatten_up_to([(1, 2), 3])
            [(1, 2), 3]
        """
        if self.type is None:
            return [tree]
        kind = _kind_of(tree)
        if self.type in _MAPPINGS and kind in _MAPPINGS:
            keys = self.context[1] if self.type is defaultdict else self.context
            missing, extra = set(keys) - set(tree), set(tree) - set(keys)
            if missing or extra:
                words = f"missing key(s): {missing}; " if missing else ""
                words += f"extra key(s): {extra}; " if extra else ""
                raise ValueError(f"Node keys mismatch; {words.rstrip('; ')}.")
            items = [tree[key] for key in keys]
        else:
            if kind is not self.type:
                actual = type(tree) if kind is None else kind
                raise ValueError(f"Node type mismatch; expected {self.type}, but got {actual}.")
            items, context = _kinds[kind].flatten_fn(tree)
            if len(items) != self.num_children:
                raise ValueError(f"Node arity mismatch; expected {self.num_children}, but got {len(items)}.")
            if kind is not deque and context != self.context:
                raise ValueError(
                    f"Node context mismatch for custom node type {self.type!r}."
                    if kind is not namedtuple
                    else f"Node type mismatch; expected {self.context}, but got {context}."
                )
        parts: list[Any] = []
        for child, item in zip(self._children, items, strict=True):
            parts += child.flatten_up_to(item)
        return parts


class LeafSpec(TreeSpec):
    """The structure of a leaf.

    Example:
        >>> from tinytorch.utils import _pytree as pytree
        >>> pytree.LeafSpec() == pytree.tree_structure(1)
        True
    """

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(None, None, [])


LEAF: TreeSpec = LeafSpec()


# Functions ----------------------------------------------------------------------------------------


def flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], TreeSpec]:
    """Return the leaves of `tree`, in order, and its structure.

    Args:
        is_leaf: a container for which this returns True is treated as a leaf.

    Example:
        >>> torch.utils._pytree.tree_flatten([1, {"a": 2}])
        ([1, 2], TreeSpec(list, None, [*,
          TreeSpec(dict, ['a'], [*])]))
    """
    leaves: list[Any] = []
    return leaves, _flatten_into(tree, is_leaf, leaves)


def _flatten_into(tree: Any, is_leaf: IsLeaf, leaves: list[Any]) -> TreeSpec:
    kind = _kind_of(tree)
    if kind is None or (is_leaf is not None and is_leaf(tree)):
        leaves.append(tree)
        return LEAF
    items, context = _kinds[kind].flatten_fn(tree)
    return TreeSpec(kind, context, [_flatten_into(item, is_leaf, leaves) for item in items])


def unflatten(leaves: Iterable[Any], structure: TreeSpec) -> Any:
    """Return the tree of a structure with other leaves.

    Raises:
        TypeError: `structure` is not a TreeSpec.
        ValueError: the number of leaves differs from that of the structure.

    Example:
        >>> from tinytorch.func.pytree import flatten, unflatten
        >>> unflatten("xy", flatten([1, {"a": 2}])[1])
        ['x', {'a': 'y'}]
    """
    if not isinstance(structure, TreeSpec):
        raise TypeError(f"Expected `treespec` to be an instance of PyTreeSpec but got item of type {type(structure)}.")
    return structure.unflatten(leaves)


def _build(leaves: Iterator[Any], structure: TreeSpec) -> Any:
    if structure.type is None:
        return next(leaves)
    items = [_build(leaves, child) for child in structure._children]
    return _kinds[structure.type].unflatten_fn(items, structure.context)


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf = None) -> Any:
    """Return `tree` with each leaf replaced by `func` of it and of the subtrees that `rests` have in its place.

    Example:
        >>> torch.utils._pytree.tree_map(lambda x, y: x + y, [1, {"a": 2}], [10, {"a": 20}])
        [11, {'a': 22}]
    """
    leaves, structure = flatten(tree, is_leaf)
    return structure.unflatten(map(func, leaves, *[structure.flatten_up_to(rest) for rest in rests]))


def tree_map_(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf = None) -> Any:
    """Call `func` as `tree_map` does, but return `tree` itself.

    Example:
        >>> tree = [torch.ones(1), torch.zeros(1)]
        >>> _ = torch.utils._pytree.tree_map_(lambda x: x.add_(1), tree)
        >>> tree
        [tensor([2.]), tensor([1.])]
    """
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def map_only(type_or_types_or_pred: Any, /) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Return a decorator that applies a function only to values of a type, or for which a predicate holds.

    Raises:
        TypeError: the argument is neither a type, a tuple of types nor a callable.

    Example:
        >>> torch.utils._pytree.tree_map(torch.utils._pytree.map_only(int)(lambda x: x + 1), [1, "a"])
        [2, 'a']
    """
    types = type_or_types_or_pred
    if isinstance(types, (type, tuple)) or not callable(types):
        if not isinstance(types, (type, tuple)) and not hasattr(types, "__args__"):
            raise TypeError("Argument must be a type, a tuple of types, or a callable.")

        def matches(value: Any) -> bool:
            return isinstance(value, types)
    else:
        matches = types

    def decorate(func: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda value: func(value) if matches(value) else value

    return decorate


def tree_map_only(type_or_types_or_pred: Any, /, func: Callable[[Any], Any], tree: Any, is_leaf: IsLeaf = None) -> Any:
    """Return `tree` with `func` applied to the leaves of a type, or for which a predicate holds.

    Example:
        >>> torch.utils._pytree.tree_map_only(int, lambda x: x + 1, [1, "a", (2.5, 3)])
        [2, 'a', (2.5, 4)]
    """
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(type_or_types_or_pred: Any, /, func: Callable[[Any], Any], tree: Any, is_leaf: IsLeaf = None) -> Any:
    """Call `func` as `tree_map_only` does, but return `tree` itself.

    Example:
        >>> tree = [torch.ones(1), 2]
        >>> _ = torch.utils._pytree.tree_map_only_(torch.Tensor, lambda x: x.add_(1), tree)
        >>> tree
        [tensor([2.]), 2]
    """
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_iter(tree: Any, is_leaf: IsLeaf = None) -> Iterator[Any]:
    """Return an iterator over the leaves of a tree.

    Example:
        >>> list(torch.utils._pytree.tree_iter({"a": (1, 2), "b": 3}))
        [1, 2, 3]
    """
    return iter(flatten(tree, is_leaf)[0])


def tree_leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """Return the leaves of a tree.

    Example:
        >>> torch.utils._pytree.tree_leaves({"a": (1, 2), "b": 3})
        [1, 2, 3]
    """
    return flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: IsLeaf = None) -> TreeSpec:
    """Return the structure of a tree.

    Example:
        >>> torch.utils._pytree.tree_structure([1, 2]) == torch.utils._pytree.tree_structure([3, 4])
        True
    """
    return flatten(tree, is_leaf)[1]


def tree_is_leaf(tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Return whether a value is a leaf.

    Example:
        >>> torch.utils._pytree.tree_is_leaf(1), torch.utils._pytree.tree_is_leaf([1])
        (True, False)
    """
    return _kind_of(tree) is None or (is_leaf is not None and is_leaf(tree))


def tree_all(pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Return whether `pred` holds for all leaves.

    Example:
        >>> torch.utils._pytree.tree_all(lambda x: x > 1, {"a": (1, 2), "b": 3})
        False
    """
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Return whether `pred` holds for any leaf.

    Example:
        >>> torch.utils._pytree.tree_any(lambda x: x > 2, {"a": (1, 2), "b": 3})
        True
    """
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(type_or_types: Any, /, pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Return whether `pred` holds for all leaves of a type.

    Example:
        >>> torch.utils._pytree.tree_all_only(int, lambda x: x > 0, [1, "a"])
        True
    """
    return all(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


def tree_any_only(type_or_types: Any, /, pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Return whether `pred` holds for any leaf of a type.

    Example:
        >>> torch.utils._pytree.tree_any_only(int, lambda x: x > 1, [1, "a"])
        False
    """
    return any(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


# Paths --------------------------------------------------------------------------------------------


def tree_leaves_with_path(tree: Any, is_leaf: IsLeaf = None) -> list[tuple[tuple[Any, ...], Any]]:
    """Return pairs of path and leaf.

    Raises:
        ValueError: the class of a container was registered without `flatten_with_keys_fn`.

    Example:
        >>> from tinytorch.utils._pytree import keystr, tree_leaves_with_path
        >>> [(keystr(path), leaf) for path, leaf in tree_leaves_with_path({"a": [1, 2]})]
        [("['a'][0]", 1), ("['a'][1]", 2)]
    """
    kind = _kind_of(tree)
    if kind is None or (is_leaf is not None and is_leaf(tree)):
        return [((), tree)]
    flat, _, keys_of = _kinds[kind]
    if keys_of is None:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {kind}. Please pass a flatten_with_keys_fn argument to "
            "register_pytree_node."
        )
    items, context = flat(tree)
    return [
        ((key, *path), leaf)
        for key, item in zip(keys_of(tree, context), items, strict=True)
        for path, leaf in tree_leaves_with_path(item, is_leaf)
    ]


def tree_flatten_with_path(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[tuple[tuple[Any, ...], Any]], TreeSpec]:
    """Return pairs of path and leaf, and the structure.

    Example:
        >>> leaves, _ = torch.utils._pytree.tree_flatten_with_path({"a": (5, 6)})
        >>> [(torch.utils._pytree.keystr(path), leaf) for path, leaf in leaves]
        [("['a'][0]", 5), ("['a'][1]", 6)]
    """
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf = None) -> Any:
    """Return `tree` with each leaf replaced by `func(path, leaf, …)`; see `tree_map`.

    Example:
        >>> torch.utils._pytree.tree_map_with_path(lambda path, x: torch.utils._pytree.keystr(path), {"a": (5, 6)})
        {'a': ("['a'][0]", "['a'][1]")}
    """
    pairs, structure = tree_flatten_with_path(tree, is_leaf)
    paths, leaves = [path for path, _ in pairs], [leaf for _, leaf in pairs]
    others = [structure.flatten_up_to(rest) for rest in rests]
    return structure.unflatten(map(func, paths, leaves, *others))


# Text ---------------------------------------------------------------------------------------------


class _Star:
    def __repr__(self) -> str:
        return "*"


def describe(structure: TreeSpec) -> str:
    """Return a structure as text, with a star for each leaf: `(*, [*])`."""
    return repr(_build(itertools.repeat(_Star()), structure))


# PyTorch's other names, and further functions -----------------------------------------------------

tree_flatten, tree_unflatten = flatten, unflatten
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

    The fields are by default all parameters of `__init__`, but `drop_field_names`; `serialized_type_name` is that of
    `register_pytree_node`. Names that are not the fields of the dataclass are a ValueError.

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


# Structures as JSON -------------------------------------------------------------------------------


def _json() -> Any:
    return importlib.import_module("json")  # which most programs do not need


def _encode_enum(obj: Any) -> Any:
    if not isinstance(obj, Enum):
        raise TypeError(f"Object of type {type(obj).__name__} is not JSON serializable")
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
    context = (
        _json().dumps(spec.context, default=_encode_enum) if encode_context is None else encode_context(spec.context)
    )
    return {"type": name, "context": context, "children_spec": [_encode(child) for child in spec.children()]}


def _decode(record: Any) -> TreeSpec:
    if record["type"] is None:
        return LEAF
    kind, context = _type_of(record["type"]), record["context"]
    decode_context = serialized[kind][2]
    context = _json().loads(context, object_hook=_decode_enum) if decode_context is None else decode_context(context)
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
    return _json().dumps((1, _encode(treespec)), default=_encode_enum)


def treespec_loads(serialized: str) -> TreeSpec:
    """Return the tree structure that `treespec_dumps` wrote.

    Raises:
        NotImplementedError: a type is not registered.
        ValueError: the text is not JSON, or has an unknown protocol version.

    Example:
        >>> torch.utils._pytree.treespec_loads('[1, {"type": null, "context": null, "children_spec": []}]')
        *
    """
    protocol, record = _json().loads(serialized)
    _check_protocol(protocol)
    return _decode(record)


def _broadcast_to_and_flatten(tree: Any, treespec: TreeSpec, is_leaf: Any = None) -> list[Any] | None:
    """Return the leaves of `tree`, repeated for all leaves of the subtree of `treespec` at the same path.

    None is returned if the structure of `tree` is not a prefix of `treespec`.
    """
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    result: list[Any] = [None] * treespec.num_leaves
    full = unflatten(range(treespec.num_leaves), treespec)

    def fill(x: Any, part: Any) -> None:
        for k in tree_leaves(part, is_leaf):
            result[k] = x

    try:
        tree_map_(fill, tree, full, is_leaf=is_leaf)
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
