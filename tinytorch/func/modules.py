"""Modules as functions of their parameters: `functional_call`, `stack_module_state` … (floor 4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.nn.modules.batchnorm import _BatchNorm
from tinytorch.nn.modules.module import Module
from tinytorch.ops.shape import stack

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
        args: the positional arguments: a tuple, or a single argument.
        kwargs: the keyword arguments.
        tie_weights: what the module shares under several names stays shared: a tensor for one is used for all.
        strict: the names must be exactly those of the module's parameters and buffers.

    Returns:
        What the module returns.

    Raises:
        RuntimeError: with `strict`, a name is missing or unexpected.
        ValueError: the dictionaries share a name; shared parameters are given different tensors.
        AttributeError: a name leads to no submodule.

    Example:
        >>> import tinytorch as torch
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
    with _replaced(module, given, tie_weights, strict):
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
        raise ValueError(
            f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous"
        )
    return {name: tensor for each in dicts for name, tensor in each.items()}


@contextmanager
def _replaced(module: Module, given: Tensors, tie_weights: bool, strict: bool) -> Iterator[None]:
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
            raise RuntimeError(
                f"Error(s) in reparametrizing for {module._get_name()}:\n\t" + "\n\t".join(problems)
            )
    before: dict[str, Any] = {}
    try:
        for name, tensor in used.items():
            before[name] = _swap(module, name, tensor)
        yield
    finally:
        after = {name: _swap(module, name, tensor) for name, tensor in before.items()}
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


_NOTHING: Any = object()


def _swap(module: Module, path: str, tensor: Any) -> Any:
    """Put a tensor (or nothing) at a path and return what was there."""
    *above, name = path.split(".")
    for each in above:
        if not hasattr(module, each):
            raise AttributeError(f"{module._get_name()} has no attribute `{each}`")
        module = getattr(module, each)
        if not isinstance(module, Module):
            raise TypeError(f"submodule `{each}`: {module} is not an instance of torch.nn.Module")
    if tensor is not _NOTHING and tensor is not None and not isinstance(tensor, Tensor):
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    if not name:
        raise KeyError('tensor name can\'t be empty string ""')
    for table in (module._parameters, module._buffers):
        if name in table:
            before: Any = table[name]
            if tensor is _NOTHING:
                del table[name]
            else:
                table[name] = tensor
            return before
    before = getattr(module, name, _NOTHING)
    if before is not _NOTHING and before is not None and not isinstance(before, Tensor):
        raise TypeError(f"attribute `{name}`: {before} is not an instance of torch.Tensor")
    if tensor is not _NOTHING:
        setattr(module, name, tensor)
    elif before is not _NOTHING:
        delattr(module, name)
    return before


def stack_module_state(models: Sequence[Module]) -> tuple[Tensors, Tensors]:
    """Return the parameters and the buffers of several modules of one class, each stacked along a new first dimension.

    The stacked parameters are new leaves.

    Args:
        models: the modules.

    Returns:
        (parameters by name, buffers by name).

    Raises:
        RuntimeError: there are no modules; they differ in class, in training mode, or in a parameter's
            `requires_grad`.

    Example:
        >>> import tinytorch as torch
        >>> params, buffers = torch.func.stack_module_state([torch.nn.Linear(2, 3) for _ in range(5)])
        >>> params["weight"].shape, buffers
        (torch.Size([5, 3, 2]), {})
    """
    if len(models) == 0:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({model.training for model in models}) > 1:
        raise RuntimeError(
            "stack_module_state: Expected all models to have the same training/eval mode."
        )
    if any(type(model) is not type(models[0]) for model in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    return (
        _stacked([dict(model.named_parameters()) for model in models]),
        _stacked([dict(model.named_buffers()) for model in models]),
    )


def _stacked(states: list[Tensors]) -> Tensors:
    stacked = {}
    for name in states[0]:
        tensors = [state[name] for state in states]
        tracked = {tensor.requires_grad for tensor in tensors}
        if len(tracked) > 1:
            raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
        whole = stack(tensors)
        stacked[name] = whole.detach().requires_grad_() if tracked == {True} else whole
    return stacked


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Let each batch normalization in `root` use the statistics of its batch only, and keep none: in place.

    A transform of a module that is in training mode needs this: what is written to running statistics during the
    transform would leave it.

    Args:
        root: the module; it may be a batch normalization itself.

    Returns:
        `root`.

    Example:
        >>> import tinytorch as torch
        >>> torch.func.replace_all_batch_norm_modules_(torch.nn.BatchNorm1d(2)).running_mean is None
        True
    """
    for module in root.modules():
        if isinstance(module, _BatchNorm):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
