"""Differentiable collectives: their backward communicates the gradients in the opposite direction.

All processes have to call backward, too, and in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tinytorch.autograd.function import Function
from tinytorch.core.tensor import Tensor
from tinytorch.distributed import collectives
from tinytorch.distributed.groups import ReduceOp, _get_default_group, get_rank, get_world_size
from tinytorch.ops.create import empty_like, zeros_like
from tinytorch.ops.join import stack

__all__ = [
    "all_gather", "all_reduce", "all_to_all", "all_to_all_single", "broadcast", "gather", "reduce", "reduce_scatter",
    "scatter",
]  # fmt: skip

Group = Any


def _group(group: Group) -> Group:
    return _get_default_group() if group is None else group


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Group, tensor: Tensor) -> Tensor:
        ctx.src, ctx.group = src, group
        result = tensor.clone()
        collectives.broadcast(result, src, group)
        return result

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        total = _Reduce.apply(ctx.src, ReduceOp.SUM, ctx.group, g)
        return None, None, total if get_rank() == ctx.src else zeros_like(total)


class _Reduce(Function):
    @staticmethod
    def forward(ctx: Any, dst: int, op: Any, group: Group, tensor: Tensor) -> Tensor:
        ctx.dst, ctx.group = dst, group
        result = tensor.clone()
        collectives.reduce(result, dst, op, group)
        return result

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return None, None, None, _Broadcast.apply(ctx.dst, ctx.group, g)


class _Gather(Function):
    @staticmethod
    def forward(ctx: Any, dst: int, group: Group, tensor: Tensor) -> tuple[Tensor, ...]:
        ctx.dst, ctx.group = dst, group
        results = [zeros_like(tensor) for _ in range(get_world_size(group))]
        collectives.gather(tensor, results if get_rank() == dst else None, dst, group)
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *gs: Tensor) -> Any:
        return None, None, _Scatter.apply(ctx.dst, ctx.group, *gs)


class _Scatter(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Group, *tensors: Tensor) -> Tensor:
        ctx.src, ctx.group = src, group
        result = zeros_like(tensors[0])
        collectives.scatter(result, tensors if get_rank() == src else None, src, group)
        return result

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return None, None, *_Gather.apply(ctx.src, ctx.group, g)


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx: Any, op: Any, group: Group, output: Tensor, *tensors: Tensor) -> Tensor:
        ctx.group = group
        result = empty_like(output)
        collectives.reduce_scatter(result, tensors, op, group)
        output.copy_(result)
        return result

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return None, None, None, *_AllGather.apply(ctx.group, g)


class _AllGather(Function):
    @staticmethod
    def forward(ctx: Any, group: Group, tensor: Tensor) -> tuple[Tensor, ...]:
        ctx.group = group
        results = [empty_like(tensor) for _ in range(get_world_size(group))]
        collectives.all_gather(results, tensor, group)
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *gs: Tensor) -> Any:
        return None, stack(_AllToAll.apply(ctx.group, [empty_like(g) for g in gs], *gs)).sum(0)


class _AllToAll(Function):
    @staticmethod
    def forward(ctx: Any, group: Group, outputs: Sequence[Tensor], *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.group, ctx.inputs = group, [tensor.detach() for tensor in tensors]
        collectives.all_to_all(outputs, tensors, group)
        return tuple([output.detach() for output in outputs])

    @staticmethod
    def backward(ctx: Any, *gs: Tensor) -> Any:
        return None, None, *_AllToAll.apply(ctx.group, [empty_like(x) for x in ctx.inputs], *gs)


class _AllToAllSingle(Function):
    @staticmethod
    def forward(ctx: Any, group: Group, output: Tensor, output_sizes: Any, input_sizes: Any, input: Tensor) -> Tensor:
        ctx.group, ctx.input, ctx.sizes = group, input.detach(), (input_sizes, output_sizes)
        collectives.all_to_all_single(output, input, output_sizes, input_sizes, group)
        return output.detach()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return None, None, None, None, _AllToAllSingle.apply(ctx.group, empty_like(ctx.input), *ctx.sizes, g)


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, op: Any, group: Group, tensor: Tensor) -> Tensor:
        ctx.op, ctx.group = op, group
        result = tensor.clone()
        collectives.all_reduce(result, op, group)
        return result

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return None, None, _AllReduce.apply(ctx.op, ctx.group, g)


def broadcast(tensor: Tensor, src: int, group: Group = None) -> Tensor:
    """Return the tensor of rank `src`; its gradient is the sum of the gradients of all ranks.

    Args:
        tensor: of the same shape and dtype on all ranks.
        src: the source's global rank.
        group: the process group; all processes if None.

    Example:
        >>> from tinytorch.distributed.nn import broadcast
        >>> torch.distributed.init_process_group("gloo", rank=0, world_size=1)
        >>> broadcast(torch.ones(2), 0)
        tensor([1., 1.])
        >>> torch.distributed.destroy_process_group()
    """
    return _Broadcast.apply(src, _group(group), tensor)


def gather(tensor: Tensor, dst: int = 0, group: Group = None) -> tuple[Tensor, ...]:
    """Return the tensors of all ranks on rank `dst`, and zeros on the others."""
    return _Gather.apply(dst, _group(group), tensor)


def scatter(tensors: Sequence[Tensor], src: int = 0, group: Group = None) -> Tensor:
    """Return this rank's tensor in the list of rank `src`; the other ranks pass lists of the same shapes."""
    return _Scatter.apply(src, _group(group), *tensors)


def reduce(tensor: Tensor, dst: int, op: Any = ReduceOp.SUM, group: Group = None) -> Tensor:
    """Return the sum (or another reduction) of all ranks' tensors on rank `dst`, and the input on the others."""
    return _Reduce.apply(dst, op, _group(group), tensor)


def reduce_scatter(output: Tensor, input_list: Sequence[Tensor], op: Any = ReduceOp.SUM, group: Group = None) -> Tensor:
    """Return the sum (or another reduction) of all ranks' tensors for this rank, and store it in `output`."""
    return _ReduceScatter.apply(op, _group(group), output, *input_list)


def all_gather(tensor: Tensor, group: Group = None) -> tuple[Tensor, ...]:
    """Return the tensors of all ranks; the gradient of a rank's tensor is the sum of its gradients on all ranks."""
    return _AllGather.apply(_group(group), tensor)


def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: Group = None
) -> tuple[Tensor, ...]:
    """Send a tensor to each rank; return the received tensors, which the output list gets, too."""
    return _AllToAll.apply(_group(group), output_tensor_list, *input_tensor_list)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: Group = None,
) -> Tensor:
    """Send a part of a tensor to each rank; return the received parts, concatenated, which `output` gets, too."""
    return _AllToAllSingle.apply(_group(group), output, output_split_sizes, input_split_sizes, input)


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Group = None) -> Tensor:
    """Return the sum (or another reduction) of all ranks' tensors; backward reduces the gradients likewise."""
    return _AllReduce.apply(op, _group(group), tensor)
