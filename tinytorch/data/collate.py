"""Collation: how a list of samples becomes a batch."""

from __future__ import annotations

import collections.abc
import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from tinytorch.core.tensor import Tensor
from tinytorch.kernels import dtypes
from tinytorch.ops.create import as_tensor, from_numpy, tensor
from tinytorch.ops.join import stack

__all__ = ["collate", "default_collate", "default_collate_fn_map", "default_convert"]

#: From a type, or a tuple of types, to the function that joins a list of such samples.
CollateFunctions = dict[Any, Callable[..., Any]]

NOT_NUMBERS = "SUO"  # NumPy's codes of the array kinds that no tensor can hold: text and objects


def default_collate(batch: Any) -> Any:
    """Return the samples of a list as one batch, with a new first dimension. The first one's type decides.

    Tensors and NumPy arrays are stacked, numbers become a tensor, text stays a list, and mappings,
    namedtuples, tuples and lists are collated entry by entry (a tuple gives a list, as in PyTorch).
    PyTorch's own tensors, which a torchvision dataset gives, are taken without a copy of each.

    Raises:
        TypeError: samples of a type that cannot be collated.
        RuntimeError: tensors of different shapes, or sequences of different lengths.

    Example:
        >>> torch.utils.data.default_collate([(0, "a"), (1, "b")])
        [tensor([0, 1]), ('a', 'b')]
        >>> torch.utils.data.default_collate([{"x": 0.5}, {"x": 1.5}])
        {'x': tensor([0.5000, 1.5000], dtype=torch.float64)}
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)


def default_convert(data: Any) -> Any:
    """Return a sample with the NumPy arrays in it (and PyTorch's tensors) turned into tensors.

    This is the collate function of a `DataLoader` that does not batch (`batch_size=None`).

    Example:
        >>> import numpy as np
        >>> torch.utils.data.default_convert({"x": np.array([0, 1]), "y": "text"})
        {'x': tensor([0, 1]), 'y': 'text'}
    """
    if isinstance(data, Tensor):
        return data
    if isinstance(data, np.ndarray):
        return data if data.dtype.kind in NOT_NUMBERS else as_tensor(data)
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
    """Return the samples joined, like `default_collate`, with your own table for the leaves.

    Args:
        collate_fn_map: for a type (or tuple of types), a function `f(batch, *, collate_fn_map)` that joins samples of
            it; subclasses count, the first match wins. Containers are looked into where no entry matches.

    Raises:
        TypeError: neither the table nor the containers know the type.

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


# The containers: the result is of the sample's own type where that type can be filled ------------


def _like_mapping(like: Any, entries: dict[Any, Any]) -> Any:
    try:
        if isinstance(like, collections.abc.MutableMapping):
            # A copy that is filled anew keeps what else it holds (a defaultdict's factory).
            clone = copy.copy(like)
            clone.update(entries)
            return clone
        return type(like)(entries)
    except TypeError:  # a type that cannot be copied, or made from a dict
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
    except TypeError:  # a type that cannot be copied, or made from a list (range)
        return entries


# The leaves ---------------------------------------------------------------------------------------


def collate_tensor_fn(batch: Any, *, collate_fn_map: CollateFunctions | None = None) -> Any:
    """Return tensors stacked.

    Example:
        >>> from tinytorch.data.collate import collate_tensor_fn
        >>> collate_tensor_fn([torch.zeros(2), torch.ones(2)])
        tensor([[0., 0.],
                [1., 1.]])
    """
    return stack(batch, 0)


def collate_numpy_array_fn(batch: Any, *, collate_fn_map: CollateFunctions | None = None) -> Any:
    """Return arrays as tensors, collated."""
    if batch[0].dtype.kind in NOT_NUMBERS:
        raise _unknown(batch[0].dtype)
    return collate([as_tensor(array) for array in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch: Any, *, collate_fn_map: CollateFunctions | None = None) -> Tensor:
    """Return NumPy's numbers as a tensor."""
    return as_tensor(batch)


def collate_float_fn(batch: Any, *, collate_fn_map: CollateFunctions | None = None) -> Tensor:
    """Return floats as a tensor of float64.

    Example:
        >>> from tinytorch.data.collate import collate_float_fn
        >>> collate_float_fn([1.0, 2.0])
        tensor([1., 2.], dtype=torch.float64)
    """
    return tensor(batch, dtype=dtypes.float64)


def collate_int_fn(batch: Any, *, collate_fn_map: CollateFunctions | None = None) -> Tensor:
    """Return integers as a tensor.

    Example:
        >>> from tinytorch.data.collate import collate_int_fn
        >>> collate_int_fn([1, 2])
        tensor([1, 2])
    """
    return tensor(batch)


def collate_str_fn(batch: Any, *, collate_fn_map: CollateFunctions | None = None) -> Any:
    """Return texts as they are.

    Example:
        >>> from tinytorch.data.collate import collate_str_fn
        >>> collate_str_fn(["a", "b"])
        ['a', 'b']
    """
    return batch


#: What `default_collate` does with each type; extend it in place to teach it a type of your own.
default_collate_fn_map: CollateFunctions = {
    Tensor: collate_tensor_fn,
    np.ndarray: collate_numpy_array_fn,
    (np.bool_, np.number, np.object_): collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}
_AS_DELIVERED = dict(default_collate_fn_map)


def is_default(collate_fn: Callable[..., Any]) -> bool:
    """Return whether `collate_fn` is `default_collate` as delivered."""
    return collate_fn is default_collate and default_collate_fn_map == _AS_DELIVERED


# PyTorch's tensors, which a torchvision transform or dataset gives --------------------------------


def is_foreign_tensor(value: Any) -> bool:
    """Return whether `value` is a tensor of PyTorch, told by its name (no import)."""
    names = ((base.__module__, base.__name__) for base in type(value).__mro__)
    return ("torch", "Tensor") in names


def from_foreign(value: Any) -> Tensor:
    """Return PyTorch's tensor as a tensor on the same memory, without its graph."""
    return from_numpy(value.detach().numpy())
