"""`torch.func.functional_call`: a call of a module with given tensors instead of its parameters and buffers."""

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
    """Call a module with given tensors instead of its parameters and buffers, which are restored afterwards.

    The tensors are given by name ("layer.weight"), in a dictionary or several with distinct names; if the module
    assigns to such a name during the call, the dictionary receives the new tensor. `args` is a tuple or a single
    argument. With `tie_weights` a tensor given for one name of a shared parameter is used for all its names; with
    `strict` the names must be exactly those of the module.

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
    tensors = _merged(parameter_and_buffer_dicts)
    with swapped_tensors(module, tensors, tie_weights, strict):
        return module(*args, **(kwargs or {}))


def _merged(dicts: Any) -> Tensors:
    if isinstance(dicts, dict):
        return dicts
    if not isinstance(dicts, Sequence):
        raise ValueError(
            f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {type(dicts)}"
        )
    if not all(isinstance(tensors, dict) for tensors in dicts):
        raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
    names = [name for tensors in dicts for name in tensors]
    repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if repeated:
        raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
    return {name: tensor for tensors in dicts for name, tensor in tensors.items()}


@contextmanager
def swapped_tensors(module: Module, tensors: Tensors, tie_weights: bool, strict: bool) -> Iterator[None]:
    """Swap `tensors` into a module; on exit restore its tensors, and store those assigned meanwhile in `tensors`."""
    own: Tensors = dict(module.named_parameters(remove_duplicate=False))
    own.update(module.named_buffers(remove_duplicate=False))
    used = _tied(own, tensors) if tie_weights else tensors
    if strict:
        problems = [
            f"{problem} key(s): {', '.join(map(repr, sorted(names)))}."
            for problem, names in (("Unexpected", used.keys() - own), ("Missing", own.keys() - used))
            if names
        ]
        if problems:
            raise RuntimeError(f"Error(s) in reparametrizing for {module._get_name()}:\n\t" + "\n\t".join(problems))
    accessor = NamedMemberAccessor(module)
    originals, _ = accessor.swap_tensors_dict(used, allow_missing=True)
    try:
        yield
    finally:
        current, _ = accessor.swap_tensors_dict(originals, allow_missing=True)
        tensors.update({name: current[name] for name in tensors if name in current})


def _tied(own: Tensors, tensors: Tensors) -> Tensors:
    """Return `tensors`, extended by all further names of the members that they replace."""
    names: dict[int, list[str]] = {}
    for name, tensor in own.items():
        names.setdefault(id(tensor), []).append(name)
    used = dict(tensors)
    for name in tensors.keys() & own:
        tied = names[id(own[name])]
        if len({id(tensors[alias]) for alias in tied if alias in tensors}) > 1:
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(tied)}, which are tied. Consider using "
                "tie_weights=False"
            )
        used.update(dict.fromkeys(tied, tensors[name]))
    return used
