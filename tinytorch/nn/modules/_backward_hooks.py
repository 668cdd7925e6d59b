"""Full backward hooks of a module, run by identity functions before and after its call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tinytorch.autograd.function import Function
from tinytorch.autograd.grad_mode import is_grad_enabled
from tinytorch.core.tensor import Tensor
from tinytorch.core.warning import warn

Grads = tuple[Tensor | None, ...]
Transform = Callable[[Grads], Grads]


class BackwardHookFunction(Function):
    """The identity on any number of tensors; its backward applies `transform` to their gradients."""

    @staticmethod
    def forward(ctx: Any, transform: Transform, materialize: bool, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.transform = transform
        ctx.set_materialize_grads(materialize)
        ctx.mark_non_differentiable(*(t for t in tensors if not t.requires_grad))
        return tensors

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> Any:
        """Return the transformed gradients."""
        return (None, None, *ctx.transform(grads))


class BackwardHooks:
    """The backward hooks of one call of a module, run by an identity before the call and one after it.

    In backward, the identity after the call comes first: it runs the pre-hooks and keeps the gradients of the outputs.
    The identity before the call comes last: it runs the hooks on the gradients of inputs and outputs.

    Args:
        module: the first argument of the hooks.
        hooks: `hook(module, grad_input, grad_output)`, in the order in which they run.
        pre_hooks: `hook(module, grad_output)`, in the order in which they run.
    """

    def __init__(self, module: Any, hooks: list[Any], pre_hooks: list[Any]) -> None:
        self.module = module
        self.hooks = hooks
        self.pre_hooks = pre_hooks
        self.inputs: list[int] = []  # positions of the tensors among the arguments, if any requires grad
        self.outputs: list[int] = []
        self.n_inputs = 0
        self.n_outputs = 0
        self.grad_outputs: Grads | None = None

    def before(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the arguments of the call, passed through the identity before it."""
        self.n_inputs = len(args)
        # As in PyTorch, hooks get zeros for an unused input, but None for an unused output.
        self.inputs, args = _through_identity(args, self._on_grad_inputs, materialize=True)
        return args

    def after(self, result: Any) -> Any:
        """Return the result of the call, passed through the identity after it."""
        results = result if isinstance(result, tuple) else (result,)
        self.n_outputs = len(results)
        self.outputs, results = _through_identity(results, self._on_grad_outputs, materialize=False)
        return results if isinstance(result, tuple) else results[0]

    def _on_grad_outputs(self, grads: Grads) -> Grads:
        grad_outputs = _scatter(self.outputs, grads, self.n_outputs)
        for pre_hook in self.pre_hooks:
            replaced = pre_hook(self.module, grad_outputs)
            if replaced is None:
                continue
            if len(replaced) != self.n_outputs:
                raise RuntimeError(
                    "Backward pre hook returned an invalid number of grad_output, got "
                    f"{len(replaced)}, but expected {self.n_outputs}"
                )
            grad_outputs = replaced
        if self.inputs:
            self.grad_outputs = grad_outputs
        else:
            self._run_without_inputs(grad_outputs)
        return tuple(grad_outputs[i] for i in self.outputs)

    def _run_without_inputs(self, grad_outputs: Grads) -> None:
        """Run the hooks now: no input requires grad, so there is no identity before the call."""
        warn(
            "Full backward hook is firing when gradients are computed with respect to module "
            "outputs since no inputs require gradients."
        )
        grad_inputs = (None,) * self.n_inputs
        for hook in self.hooks:
            replaced = hook(self.module, grad_inputs, grad_outputs)
            if replaced is not None and not (isinstance(replaced, tuple) and all(grad is None for grad in replaced)):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always "
                    "return None or None for all gradients."
                )

    def _on_grad_inputs(self, grads: Grads) -> Grads:
        if self.grad_outputs is None:  # the gradient did not flow through the outputs of this call
            return grads
        grad_inputs = _scatter(self.inputs, grads, self.n_inputs)
        for hook in self.hooks:
            replaced = hook(self.module, grad_inputs, self.grad_outputs)
            if replaced is None:
                continue
            if len(replaced) != self.n_inputs:
                raise RuntimeError(
                    f"Backward hook returned an invalid number of grad_input, got {len(replaced)}, "
                    f"but expected {self.n_inputs}"
                )
            grad_inputs = replaced
        self.grad_outputs = None
        return tuple(grad_inputs[i] for i in self.inputs)


def _through_identity(
    values: tuple[Any, ...], transform: Transform, materialize: bool
) -> tuple[list[int], tuple[Any, ...]]:
    """Return the positions of the tensors, and `values` with the tensors passed through the identity.

    If gradients are disabled, or no tensor requires grad, there are no positions and `values` are returned unchanged.
    """
    positions = [i for i, value in enumerate(values) if isinstance(value, Tensor)]
    if not (is_grad_enabled() and any(values[i].requires_grad for i in positions)):
        return [], values
    outputs = BackwardHookFunction.apply(transform, materialize, *(values[i] for i in positions))
    replaced = list(values)
    for i, tensor in zip(positions, outputs, strict=True):
        replaced[i] = tensor
    result_type = type(values)
    return positions, tuple(replaced) if result_type is tuple else result_type(*replaced)  # (a named tuple)


def _scatter(positions: Sequence[int], grads: Grads, size: int) -> Grads:
    """Return a tuple of `size` with the gradients at their positions and None elsewhere."""
    scattered: list[Tensor | None] = [None] * size
    for i, grad in zip(positions, grads, strict=True):
        scattered[i] = grad
    return tuple(scattered)
