"""A module called with other tensors in place of its own: `torch.func.functional_call`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.nn.modules.module import Module
from tinytorch.nn.utils._named_member_accessor import NamedMemberAccessor

Tensors = dict[str, Tensor]


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: Tensors | Sequence[Tensors],
    args: Any = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other tensors in place of its parameters and buffers; afterwards it has its own again.

    Args:
        module: the module to call.
        parameter_and_buffer_dicts: by name ("layer.weight") the tensors to use, or several dictionaries with distinct
            names. What the module assigns to such a name during the call is entered in the dictionary.
        args, kwargs: the positional arguments, a tuple or a single one; and the keyword arguments.
        tie_weights: what the module shares under several names stays shared: a tensor for one is used for all.
        strict: the names must be exactly those of the module's parameters and buffers.

    Returns:
        What the module returns.

    Raises:
        RuntimeError: with `strict`, a name is missing or unexpected.
        ValueError: the dictionaries share a name; shared parameters are given different tensors.
        AttributeError: a name leads to no submodule.

    Example:
        >>> model = torch.nn.Linear(2, 1)
        >>> weights = {"weight": torch.tensor([[1.0, 2.0]]), "bias": torch.tensor([0.5])}
        >>> torch.func.functional_call(model, weights, torch.tensor([1.0, 1.0]))
        tensor([3.5000])
    """
    if args is None:
        args = ()
    elif not isinstance(args, tuple):
        args = (args,)
    given = _merged(parameter_and_buffer_dicts)
    with replaced(module, given, tie_weights, strict):
        return module(*args, **(kwargs or {}))


def _merged(dicts: Any) -> Tensors:
    """Return one dictionary for all."""
    if isinstance(dicts, dict):
        return dicts
    if not isinstance(dicts, Sequence):
        raise ValueError(
            f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {type(dicts)}"
        )
    if not all(isinstance(each, dict) for each in dicts):
        raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
    names = [name for each in dicts for name in each]
    repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if repeated:
        raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
    return {name: tensor for each in dicts for name, tensor in each.items()}


@contextmanager
def replaced(module: Module, given: Tensors, tie_weights: bool, strict: bool) -> Iterator[None]:
    """Put tensors in place of a module's own; on exit put these back, and what was there into `given`."""
    own: Tensors = dict(module.named_parameters(remove_duplicate=False))
    own.update(module.named_buffers(remove_duplicate=False))
    used = _tied(own, given) if tie_weights else given
    if strict:
        problems = [
            f"{what} key(s): {', '.join(map(repr, sorted(names)))}."
            for what, names in (("Unexpected", used.keys() - own), ("Missing", own.keys() - used))
            if names
        ]
        if problems:
            raise RuntimeError(f"Error(s) in reparametrizing for {module._get_name()}:\n\t" + "\n\t".join(problems))
    accessor = NamedMemberAccessor(module)
    before, _ = accessor.swap_tensors_dict(used, allow_missing=True)
    try:
        yield
    finally:
        after, _ = accessor.swap_tensors_dict(before, allow_missing=True)
        given.update({name: after[name] for name in given if name in after})


def _tied(own: Tensors, given: Tensors) -> Tensors:
    """Return `given` with each tensor under all the names that the module has for the one it replaces."""
    names: dict[int, list[str]] = {}
    for name, tensor in own.items():
        names.setdefault(id(tensor), []).append(name)
    used = dict(given)
    for name in given.keys() & own:
        tied = names[id(own[name])]
        if len({id(given[each]) for each in tied if each in given}) > 1:
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(tied)}, which are tied. Consider using "
                "tie_weights=False"
            )
        used.update(dict.fromkeys(tied, given[name]))
    return used
