"""`torch.nn.grad`: gradients of convolutions with respect to input and weight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.nn.modules.utils import _ntuple
from tinytorch.ops.nn.conv import _conv_input, _conv_weight

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]


def _check_sizes(
    n: int,
    input: Sequence[int],
    weight: Sequence[int],
    grad: Tensor,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
) -> tuple[Any, ...]:
    """Return the settings as tuples of length `n`; raise an error unless the sizes are those of such a convolution."""
    stride, padding, dilation = map(_ntuple(n), (stride, padding, dilation))
    if len(input) == len(weight) == n + 2:
        lengths = [
            (length + 2 * p - d * (k - 1) - 1) // s + 1
            for length, k, s, p, d in zip(input[2:], weight[2:], stride, padding, dilation, strict=True)
        ]
        if input[1] == weight[1] * groups and grad.shape == (input[0], weight[0], *lengths):
            return stride, padding, dilation, groups
    raise RuntimeError(
        f"conv{n}d: no convolution of an input of size {list(input)} and a weight of size {list(weight)} with "
        f"stride={stride}, padding={padding}, dilation={dilation} and groups={groups} has an output of size "
        f"{list(grad.shape)}"
    )


def _conv_input_function(n: int) -> Any:
    def gradient(
        input_size: Sequence[int],
        weight: Tensor,
        grad_output: Tensor,
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
    ) -> Tensor:
        """Return the gradient of a convolution with respect to its input.

        Shapes: weight (C_out, C_in / groups, *), gradient (N, C_out, *) -> `input_size`, (N, C_in, *).

        Example:
            >>> x, w = torch.ones(1, 1, 3, requires_grad=True), torch.tensor([[[1.0, 2.0]]])
            >>> g = torch.tensor([[[1.0, 10.0]]])
            >>> torch.nn.grad.conv1d_input(x.shape, w, g)
            tensor([[[ 1., 12., 20.]]])
        """
        settings = _check_sizes(n, input_size, weight.shape, grad_output, stride, padding, dilation, groups)
        return _conv_input(grad_output, weight, None, tuple(input_size[2:]), *settings)

    return _with_name(f"conv{n}d_input", gradient)


def _conv_weight_function(n: int) -> Any:
    def gradient(
        input: Tensor,
        weight_size: Sequence[int],
        grad_output: Tensor,
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
    ) -> Tensor:
        """Return the gradient of a convolution with respect to its weight.

        Shapes: input (N, C_in, *), gradient (N, C_out, *) -> `weight_size`, (C_out, C_in / groups, *).

        Example:
            >>> x, g = torch.tensor([[[1.0, 2.0, 3.0]]]), torch.tensor([[[1.0, 10.0]]])
            >>> torch.nn.grad.conv1d_weight(x, (1, 1, 2), g)
            tensor([[[21., 32.]]])
        """
        settings = _check_sizes(n, input.shape, weight_size, grad_output, stride, padding, dilation, groups)
        return _conv_weight(input, grad_output, tuple(weight_size[2:]), *settings)

    return _with_name(f"conv{n}d_weight", gradient)


def _with_name(name: str, function: Any) -> Any:
    function.__name__ = function.__qualname__ = name
    return function


conv1d_input, conv2d_input, conv3d_input = (_conv_input_function(n) for n in (1, 2, 3))
conv1d_weight, conv2d_weight, conv3d_weight = (_conv_weight_function(n) for n in (1, 2, 3))
