"""`torch.fx._pytree`: flattens arguments by the structure that a trace has recorded."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

from tinytorch.func.pytree import TreeSpec, flatten

__all__ = ["SUPPORTED_NODES", "register_pytree_flatten_spec", "tree_flatten_spec"]

Items = Callable[[Any, TreeSpec], list[Any]]

#: By type of container, the function that returns its items in the order of a structure.
SUPPORTED_NODES: dict[type, Items] = {}


def register_pytree_flatten_spec(cls: type, flatten_fn_spec: Items, flatten_fn_exact_match_spec: Any = None) -> None:
    """Register how a container is flattened by a structure; `flatten_fn_exact_match_spec` has no effect."""
    SUPPORTED_NODES[cls] = flatten_fn_spec


def tree_flatten_spec(pytree: Any, spec: TreeSpec) -> list[Any]:
    """Return the leaves of a tree in the order of a structure, which may have fewer items than the tree.

    Example:
        >>> from tinytorch.utils._pytree import tree_flatten
        >>> _, spec = tree_flatten({"b": 0, "a": [0, 0]})
        >>> torch.fx._pytree.tree_flatten_spec({"a": [1, 2], "b": 3}, spec)
        [3, 1, 2]
    """
    if spec.is_leaf():
        return [pytree]
    items = SUPPORTED_NODES.get(spec.type)
    if items is None:
        leaves, found = flatten(pytree)
        if found != spec:
            raise RuntimeError(f"Real spec {found} of object {pytree} is different from expected spec {spec}.")
        return leaves
    children = zip(items(pytree, spec), spec.children(), strict=False)
    return [leaf for item, each in children for leaf in tree_flatten_spec(item, each)]


def _dict_flatten_spec(d: dict[Any, Any], spec: TreeSpec) -> list[Any]:
    return [d[key] for key in spec.context]


def _list_flatten_spec(d: Any, spec: TreeSpec) -> list[Any]:
    return [d[k] for k in range(spec.num_children)]


register_pytree_flatten_spec(dict, _dict_flatten_spec)
for _kind in (list, tuple, namedtuple):
    register_pytree_flatten_spec(_kind, _list_flatten_spec)  # type: ignore[arg-type]
