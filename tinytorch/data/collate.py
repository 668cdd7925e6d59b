"""Collation of a list of samples into a batch."""

from __future__ import annotations

import collections.abc
import copy
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from tinytorch.core.names import module_of
from tinytorch.core.tensor import Tensor
from tinytorch.kernels import dtypes
from tinytorch.ops.create import as_tensor, from_numpy, tensor
from tinytorch.ops.join import stack

__all__ = ["collate", "default_collate", "default_collate_fn_map", "default_convert"]

#: A map from a type, or a tuple of types, to the function that collates a list of such samples.
CollateFunctions = dict[Any, Callable[..., Any]]

NON_NUMERIC = "SUO"  # NumPy's codes of the kinds of dtype that no tensor can hold: text and objects
np_str_obj_array_pattern = re.compile(r"[SaUO]")  # the same, as programs find it in PyTorch


def default_collate(batch: Any) -> Any:
    """Return a list of samples as one batch, with a new first dimension. The type of the first sample decides how.

    Tensors and NumPy arrays are stacked, numbers become a tensor, strings stay a list, and mappings,
    namedtuples, tuples and lists are collated entry by entry (tuples become a list, as in PyTorch).
    Tensors of PyTorch, which torchvision's datasets return, are converted without copying.

    Example:
        >>> torch.utils.data.default_collate([(0, "a"), (1, "b")])
        [tensor([0, 1]), ('a', 'b')]
        >>> torch.utils.data.default_collate([{"x": 0.5}, {"x": 1.5}])
        {'x': tensor([0.5000, 1.5000], dtype=torch.float64)}
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)


def default_convert(data: Any) -> Any:
    """Return a sample with the NumPy arrays and PyTorch tensors in it converted to tensors.

    This is the collate function of a `DataLoader` that does not batch (`batch_size=None`).

    Example:
        >>> import numpy as np
        >>> torch.utils.data.default_convert({"x": np.array([0, 1]), "y": "text"})
        {'x': tensor([0, 1]), 'y': 'text'}
    """
    if isinstance(data, Tensor):
        return data
    if isinstance(data, np.ndarray):
        return data if data.dtype.kind in NON_NUMERIC else as_tensor(data)
    if isinstance(data, np.generic) and not isinstance(data, (str, bytes)):
        return as_tensor(data)
    if is_foreign_tensor(data):
        return from_foreign(data)
    if isinstance(data, collections.abc.Mapping):
        return _like_mapping(data, {key: default_convert(data[key]) for key in data})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(default_convert(value) for value in data))
    if isinstance(data, collections.abc.Sequence) and not isinstance(data, (str, bytes)):
        return _like_sequence(data, [default_convert(value) for value in data])
    return data


def collate(batch: Any, *, collate_fn_map: CollateFunctions | None = None) -> Any:
    """Collate samples as `default_collate` does, with a custom table of functions for the leaves.

    Args:
        collate_fn_map: a map from a type (or tuple of types) to a function `f(batch, *, collate_fn_map)` that collates
            samples of the type or a subclass; the first match is used. Containers without a match are collated entry
            by entry.

    Example:
        >>> from tinytorch.data.collate import collate
        >>> collate([("a", "b"), ("c", "d")], collate_fn_map={str: lambda b, **_: "+".join(b)})
        ['a+c', 'b+d']
    """

    def join(samples: Any) -> Any:
        return collate(samples, collate_fn_map=collate_fn_map)

    first = batch[0]
    kind = type(first)
    table = collate_fn_map or {}
    if kind in table:
        return table[kind](batch, collate_fn_map=collate_fn_map)
    for known in table:
        if isinstance(first, known):
            return table[known](batch, collate_fn_map=collate_fn_map)
    if is_foreign_tensor(first):
        return join([from_foreign(sample) for sample in batch])
    if isinstance(first, collections.abc.Mapping):
        return _like_mapping(first, {key: join([sample[key] for sample in batch]) for key in first})
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return kind(*map(join, zip(*batch, strict=False)))
    if isinstance(first, collections.abc.Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        return _like_sequence(first, [join(column) for column in zip(*batch, strict=True)])
    raise _unknown(kind)


def _unknown(kind: Any) -> TypeError:
    return TypeError(
        f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {kind}"
    )


# Containers: the result has the type of the samples, if that type can be filled -----------------


def _like_mapping(like: Any, entries: dict[Any, Any]) -> Any:
    try:
        if isinstance(like, collections.abc.MutableMapping):
            # A copy keeps other attributes, such as the factory of a defaultdict.
            clone = copy.copy(like)
            clone.update(entries)
            return clone
        return type(like)(entries)
    except TypeError:  # the type cannot be copied, or constructed from a dict
        return entries


def _like_sequence(like: Any, entries: list[Any]) -> Any:
    if isinstance(like, tuple):
        return entries  # PyTorch's choice: a batch of tuples is a list
    try:
        if isinstance(like, collections.abc.MutableSequence):
            clone = copy.copy(like)
            for i, entry in enumerate(entries):
                clone[i] = entry
            return clone
        return type(like)(entries)
    except TypeError:  # the type (such as range) cannot be copied, or constructed from a list
        return entries


# Leaves -------------------------------------------------------------------------------------------


def collate_tensor_fn(batch: Any, *, collate_fn_map: CollateFunctions | None = None) -> Any:
    """Return the stacked tensors."""
    return stack(batch, 0)


def collate_numpy_array_fn(batch: Any, *, collate_fn_map: CollateFunctions | None = None) -> Any:
    """Return arrays as tensors, collated."""
    if batch[0].dtype.kind in NON_NUMERIC:
        raise _unknown(batch[0].dtype)
    return collate([as_tensor(array) for array in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch: Any, *, collate_fn_map: CollateFunctions | None = None) -> Tensor:
    """Return NumPy scalars as a tensor."""
    return as_tensor(batch)


def collate_float_fn(batch: Any, *, collate_fn_map: CollateFunctions | None = None) -> Tensor:
    """Return floats as a float64 tensor."""
    return tensor(batch, dtype=dtypes.float64)


def collate_int_fn(batch: Any, *, collate_fn_map: CollateFunctions | None = None) -> Tensor:
    """Return integers as a tensor."""
    return tensor(batch)


def collate_str_fn(batch: Any, *, collate_fn_map: CollateFunctions | None = None) -> Any:
    """Return strings unchanged."""
    return batch


#: The functions that `default_collate` uses, by type; it may be extended in place.
default_collate_fn_map: CollateFunctions = {
    Tensor: collate_tensor_fn,
    np.ndarray: collate_numpy_array_fn,
    (np.bool_, np.number, np.object_): collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}
_BUILT_IN = dict(default_collate_fn_map)


def is_default(collate_fn: Callable[..., Any]) -> bool:
    """Return whether `collate_fn` is `default_collate`, with an unmodified `default_collate_fn_map`."""
    return collate_fn is default_collate and default_collate_fn_map == _BUILT_IN


# Tensors of PyTorch, from torchvision's transforms and datasets ------------------------------------


def is_foreign_tensor(value: Any) -> bool:
    """Return whether `value` is a tensor of PyTorch, by the name of its class (without importing torch)."""
    names = ((module_of(base), base.__name__) for base in type(value).__mro__)
    return ("torch", "Tensor") in names


def from_foreign(value: Any) -> Tensor:
    """Return a tensor that shares memory with a tensor of PyTorch, detached from its graph."""
    return from_numpy(value.detach().numpy())
