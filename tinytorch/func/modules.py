"""Modules as functions of their parameters: `functional_call`, `stack_module_state` …."""

from __future__ import annotations

from collections.abc import Sequence

from tinytorch.nn.modules.batchnorm import _BatchNorm
from tinytorch.nn.modules.module import Module
from tinytorch.nn.utils._functional_call import Tensors
from tinytorch.ops.join import stack


def stack_module_state(models: Sequence[Module]) -> tuple[Tensors, Tensors]:
    """Return the parameters and the buffers of several modules of one class, each stacked along a new first dimension.

    The stacked parameters, by name, are new leaves. Without modules, or where they differ in class, in training mode or
    in a parameter's `requires_grad`, a RuntimeError is raised.

    Example:
        >>> params, buffers = torch.func.stack_module_state([torch.nn.Linear(2, 3) for _ in range(5)])
        >>> params["weight"].shape, buffers
        (torch.Size([5, 3, 2]), {})
    """
    if len(models) == 0:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({model.training for model in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
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
        tensor = stack(tensors)
        stacked[name] = tensor.detach().requires_grad_() if tracked == {True} else tensor
    return stacked


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Let all batch normalizations in `root` use the statistics of the batch only, in place, and return `root`.

    Needed before a module in training mode is transformed: its writes to running statistics would leave the transform.

    Example:
        >>> torch.func.replace_all_batch_norm_modules_(torch.nn.BatchNorm1d(2)).running_mean is None
        True
    """
    for module in root.modules():
        if isinstance(module, _BatchNorm):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
