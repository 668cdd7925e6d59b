"""`torch.export.export`: a model as a graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tinytorch.func.pytree import flatten, unflatten
from tinytorch.fx.export.dynamic_shapes import CANDIDATES, dynamic_sizes, leaf_names, names_of, other_leaves
from tinytorch.fx.export.exported_program import ExportedProgram
from tinytorch.fx.export.tracing import Difference, ExportError, Follows, Traced, difference, joined, traced
from tinytorch.nn.modules.module import Module


def export(
    mod: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None = None, *, dynamic_shapes: Any = None,
    strict: bool = False, preserve_module_call_signature: tuple[str, ...] = (),
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:  # fmt: skip
    """Return a model as a graph of the public functions that it calls.

    The model is called: once, and with other sizes in the place of the dynamic ones. If these calls do different
    things, that is an error, which names the line.

    Args:
        mod: the module.
        args, kwargs: arguments of a call.
        dynamic_shapes: which sizes of the arguments may differ: for each argument, by name or in order, None or a dict
            with a `Dim` for each such dimension; containers of tensors have containers of dicts.
        strict: has no effect, nor have the other arguments.

    Raises:
        ExportError: the model cannot be exported: a tensor's value decides what is done, say.
        ValueError: `mod` is no module.

    Example:
        >>> batch = torch.export.Dim("batch")
        >>> program = torch.export.export(torch.nn.Linear(3, 2), (torch.ones(4, 3),), dynamic_shapes=({0: batch},))
        >>> program.module()(torch.ones(9, 3)).shape
        torch.Size([9, 2])
    """
    if not isinstance(mod, Module):
        raise ValueError(f"Expected `mod` to be an instance of `torch.nn.Module`, got {type(mod)}.")
    if not isinstance(args, tuple):
        raise ExportError(f"Expecting `args` to be a tuple of example positional inputs, got {type(args)}")
    return exported(mod, args, dict(kwargs or {}), dynamic_shapes, lambda function: False)


def exported(
    model: Any, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic_shapes: Any, follows: Follows
) -> ExportedProgram:  # fmt: skip
    """Return the exported form of a module or function.

    Args:
        follows: whether the source of a function is followed, instead of writing a call of it down.
    """
    names = names_of(model, args, kwargs)
    values = [*args, *kwargs.values()]
    sizes = dynamic_sizes(names, values, dynamic_shapes)
    leaves, structure = flatten((args, kwargs))
    own = leaf_names(names, values)
    # (A size of 1 is like those of other tensors, and is broadcast: what a model does for it may be a special case.)
    ones = [each for each in sizes if leaves[each.leaf].shape[each.dim] == 1]
    larger = other_leaves(leaves, ones, lambda n: n + 1) if ones else None
    try:
        first = traced(model, *unflatten(larger or leaves, structure), own, follows)  # type: ignore[call-arg]
        leaves = larger or leaves
    except Exception:
        if larger is None:
            raise
        first = traced(model, args, kwargs, own, follows)
    others: list[Traced] = []
    failed: list[Difference] = []
    error: Exception | None = None
    for candidate in CANDIDATES if sizes else ():
        new = other_leaves(leaves, sizes, candidate)
        if new is None:
            continue
        try:
            other = traced(model, *unflatten(new, structure), own, follows)  # type: ignore[call-arg]
        except Exception as refused:  # sizes that the model does not allow
            error = refused
            continue
        found = difference(first, other)
        if found is None:
            others.append(other)
        else:
            failed.append(found)
        if len(others) + sum(not each.bound for each in failed) >= 2:
            break
    violated = [each for each in failed if not each.bound]
    if sizes and (violated or not others):
        if not any(each.required for each in sizes):
            sizes = []  # they are static, then
            others = []
        elif violated or failed:
            raise ExportError(f"Constraints violated! {(violated or failed)[0].reason}")
        else:
            words = f": {type(error).__name__}: {error}" if error is not None else ", or none was tried"
            raise ExportError(
                f"Constraints violated! The model does not run with other dynamic sizes{words}"
            ) from error
    joined(first, others)
    return ExportedProgram(model, first, args, kwargs, names, sizes)
