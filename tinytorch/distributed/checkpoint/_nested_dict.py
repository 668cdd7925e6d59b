"""Entries of nested dicts and lists by one name each: `{"model": {"weight": x}}` has "model.weight"."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tinytorch.core.tensor import Tensor

Path = tuple[str | int, ...]


def _is_leaf(value: Any) -> bool:
    """Return whether a value is one entry: all but mappings, and lists with tensors or mappings in them."""
    if isinstance(value, list):
        return not any(isinstance(each, Tensor) or not _is_leaf(each) for each in value)
    return not isinstance(value, Mapping)


def flatten_state_dict(state_dict: Mapping[Any, Any]) -> tuple[dict[str, Any], dict[str, Path]]:
    """Return the entries by name, and by name the path of keys and numbers that leads there.

    Raises:
        ValueError: two entries would have the same name.
    """
    flat: dict[str, Any] = {}
    paths: dict[str, Path] = {}

    def visit(path: Path, value: Any) -> None:
        children: Iterable[tuple[Any, Any]]
        if isinstance(value, Mapping):
            children = ((str(key), each) for key, each in value.items())
        elif _is_leaf(value):
            name = ".".join(map(str, path))
            if name in flat:
                raise ValueError(f"duplicated flatten key {name}")
            flat[name], paths[name] = value, path
            return
        else:
            children = enumerate(value)
        for key, each in children:
            visit((*path, key), each)

    visit((), dict(state_dict))
    return flat, paths


def set_element(root: Any, path: Path, value: Any) -> None:
    """Put a value where a path leads, making the dicts and lists on the way."""
    for i, key in enumerate(path):
        last = i == len(path) - 1
        if isinstance(key, int) and isinstance(root, list):
            root += [None] * (key + 1 - len(root))
            there = root[key]
        else:
            there = root.get(key)
        if last:
            root[key] = value
        elif there is None:
            root[key] = {} if isinstance(path[i + 1], str) else []
        root = root[key]


def unflatten_state_dict(state_dict: Mapping[str, Any], mapping: Mapping[str, Path]) -> dict[str, Any]:
    """Return what `flatten_state_dict` has taken apart."""
    nested: dict[str, Any] = {}
    for name, value in state_dict.items():
        set_element(nested, mapping[name], value)
    return nested
