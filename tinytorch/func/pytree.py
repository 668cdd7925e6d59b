"""Containers of containers, taken apart into their leaves and put together again (floor 4).

Lists, tuples, named tuples and dictionaries are containers; all else, None too, is a leaf.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tinytorch.return_types import _Result

#: None for a leaf; else (the type, the keys or what else it is made of, the parts' structures).
Structure = tuple[type, Any, tuple[Any, ...]] | None


def flatten(tree: Any) -> tuple[list[Any], Structure]:
    """Return the leaves of `tree`, in order, and its structure.

    Example:
        >>> from tinytorch.func.pytree import flatten
        >>> flatten([1, {"a": 2}])[0]
        [1, 2]
    """
    kind = type(tree)
    made_of: Any = None
    if kind in (dict, OrderedDict):
        made_of, items = tuple(tree), tree.values()
    elif kind is defaultdict:
        made_of, items = (tree.default_factory, tuple(tree)), tree.values()
    elif kind in (list, tuple) or hasattr(kind, "_fields") or issubclass(kind, _Result):
        items = tree
    else:
        return [tree], None
    leaves, parts = [], []
    for item in items:
        more, part = flatten(item)
        leaves += more
        parts.append(part)
    return leaves, (kind, made_of, tuple(parts))


def unflatten(leaves: Iterable[Any], structure: Structure) -> Any:
    """Return the tree of a structure with other leaves.

    Example:
        >>> from tinytorch.func.pytree import flatten, unflatten
        >>> unflatten("xy", flatten([1, {"a": 2}])[1])
        ['x', {'a': 'y'}]
    """
    return _build(iter(leaves), structure)


def _build(leaves: Iterator[Any], structure: Structure) -> Any:
    if structure is None:
        return next(leaves)
    kind, made_of, parts = structure
    items = [_build(leaves, part) for part in parts]
    if kind is defaultdict:
        factory, keys = made_of
        return defaultdict(factory, zip(keys, items, strict=True))
    if made_of is not None:
        return kind(zip(made_of, items, strict=True))
    return kind(*items) if hasattr(kind, "_fields") else kind(items)


def tree_map(function: Callable[[Any], Any], tree: Any) -> Any:
    """Return `tree` with `function` of each leaf in its place."""
    leaves, structure = flatten(tree)
    return unflatten(map(function, leaves), structure)


class _Star:
    def __repr__(self) -> str:
        return "*"


def describe(structure: Structure) -> str:
    """Return a structure as text, with a star for each leaf: `(*, [*])`."""
    return repr(unflatten(itertools.repeat(_Star()), structure))
