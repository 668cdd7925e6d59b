"""Flattening of nested dicts and lists: `{"model": {"weight": x}}` has the entry "model.weight"."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tinytorch.core.tensor import Tensor

Path = tuple[str | int, ...]


def _is_leaf(value: Any) -> bool:
    """Return whether a value is one entry: anything except mappings, and lists that contain tensors or mappings."""
    if isinstance(value, list):
        return not any(isinstance(element, Tensor) or not _is_leaf(element) for element in value)
    return not isinstance(value, Mapping)


def flatten_state_dict(state_dict: Mapping[Any, Any]) -> tuple[dict[str, Any], dict[str, Path]]:
    """Return the entries by name, and for each name its path of keys and indices.

    Raises:
        ValueError: two entries have the same name.
    """
    flat: dict[str, Any] = {}
    paths: dict[str, Path] = {}

    def visit(path: Path, value: Any) -> None:
        children: Iterable[tuple[Any, Any]]
        if isinstance(value, Mapping):
            children = ((str(key), child) for key, child in value.items())
        elif _is_leaf(value):
            name = ".".join(map(str, path))
            if name in flat:
                raise ValueError(f"duplicated flatten key {name}")
            flat[name], paths[name] = value, path
            return
        else:
            children = enumerate(value)
        for key, child in children:
            visit((*path, key), child)

    visit((), dict(state_dict))
    return flat, paths


def set_element(root: Any, path: Path, value: Any) -> None:
    """Set the value at a path, creating the dicts and lists on the way."""
    for i, key in enumerate(path):
        last = i == len(path) - 1
        if isinstance(key, int) and isinstance(root, list):
            root += [None] * (key + 1 - len(root))
            child = root[key]
        else:
            child = root.get(key)
        if last:
            root[key] = value
        elif child is None:
            root[key] = {} if isinstance(path[i + 1], str) else []
        root = root[key]
