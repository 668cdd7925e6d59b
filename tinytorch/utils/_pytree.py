"""PyTorch's name, `torch.utils._pytree`, for `tinytorch.func.pytree`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tinytorch.func.pytree import (
    GetAttrKey,
    MappingKey,
    SequenceKey,
    TreeSpec,
    _kind_of,
    _kinds,
    keystr,
    map_only,
    register_pytree_node,
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
    "GetAttrKey", "LeafSpec", "MappingKey", "PyTree", "SUPPORTED_NODES", "SequenceKey", "TreeSpec", "keystr",
    "map_only", "register_pytree_node", "tree_all", "tree_all_only", "tree_any", "tree_any_only", "tree_flatten",
    "tree_flatten_with_path", "tree_is_leaf", "tree_iter", "tree_leaves", "tree_leaves_with_path", "tree_map",
    "tree_map_", "tree_map_only", "tree_map_only_", "tree_map_with_path", "tree_structure", "tree_unflatten",
]  # fmt: skip

_register_pytree_node = register_pytree_node

PyTree = Any
SUPPORTED_NODES = _kinds  # of each type of container, how it is taken apart and put together


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


def _get_node_type(tree: Any) -> Any:
    """Return the type by which `SUPPORTED_NODES` knows a container, or a leaf's own."""
    kind = _kind_of(tree)
    return type(tree) if kind is None else kind


def _dict_flatten(d: dict[Any, Any]) -> tuple[list[Any], list[Any]]:
    """Return the values and the keys of a dictionary: packages register their own kinds of it with this."""
    return list(d.values()), list(d)


def _dict_flatten_with_keys(d: dict[Any, Any]) -> tuple[list[tuple[MappingKey, Any]], list[Any]]:
    """Return the values of a dictionary, each with the key that leads to it, and the keys."""
    return [(MappingKey(key), value) for key, value in d.items()], list(d)


def _dict_unflatten(values: Iterable[Any], context: list[Any]) -> dict[Any, Any]:
    """Return the dictionary of some values and keys."""
    return dict(zip(context, values, strict=True))
