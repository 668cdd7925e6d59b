"""`torch.fx.immutable_collections`: the lists and dicts among the arguments of nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from tinytorch.func.pytree import register_pytree_node
from tinytorch.fx._pytree import _dict_flatten_spec, _list_flatten_spec, register_pytree_flatten_spec

__all__ = ["immutable_dict", "immutable_list"]

_REMEDY = """If you are attempting to modify the kwargs or args of a torch.fx.Node object,
instead create a new copy of it and assign the copy to the node:

    new_args = ...  # copy and mutate args
    node.args = new_args"""


def _refusing(*methods: str) -> Callable[[type], type]:
    """Return a decorator that makes these methods of a class raise TypeError."""

    def refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(f"{type(self).__name__!r} object does not support mutation. {_REMEDY}")

    def decorate(cls: type) -> type:
        for name in methods:
            setattr(cls, name, refuse)
        return cls

    return decorate


@_refusing(
    "__delitem__", "__iadd__", "__imul__", "__setitem__", "append", "clear", "extend", "insert", "pop", "remove",
    "reverse", "sort",
)  # fmt: skip
class immutable_list(list):  # type: ignore[type-arg]
    """A list that cannot be changed, with a hash.

    Example:
        >>> items = torch.fx.immutable_collections.immutable_list([1, 2])
        >>> try:
        ...     items.append(3)
        ... except TypeError as error:
        ...     print(str(error).partition(".")[0])
        'immutable_list' object does not support mutation
    """

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (tuple(self),)


@_refusing("__delitem__", "__ior__", "__setitem__", "clear", "pop", "popitem", "setdefault", "update")
class immutable_dict(dict):  # type: ignore[type-arg]
    """A dict that cannot be changed, with a hash.

    Example:
        >>> torch.fx.immutable_collections.immutable_dict(a=1)
        {'a': 1}
    """

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (tuple(self.items()),)


def _dict_of(values: Iterable[Any], keys: Any) -> Any:
    return immutable_dict(zip(keys, values, strict=True))


register_pytree_node(
    immutable_list, lambda items: (list(items), None), lambda items, _: immutable_list(items),
    serialized_type_name="torch.fx.immutable_collections.immutable_list",
)  # fmt: skip
register_pytree_node(
    immutable_dict, lambda items: (list(items.values()), list(items)), _dict_of,
    serialized_type_name="torch.fx.immutable_collections.immutable_dict",
)  # fmt: skip
register_pytree_flatten_spec(immutable_list, _list_flatten_spec)
register_pytree_flatten_spec(immutable_dict, _dict_flatten_spec)
