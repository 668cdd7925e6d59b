"""Differentiable collectives: their backward communicates the gradients in the opposite direction.

All processes have to call backward, too, and in the same order.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
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


class _Communication(Function):
    """Calls a function that communicates; backward calls another one with the gradients."""

    @staticmethod
    def forward(ctx: Any, run: Callable[..., Any], back: Callable[..., Any], *tensors: Tensor) -> Any:
        ctx.back = back
        return run(*tensors)

    @staticmethod
    def backward(ctx: Any, *gs: Tensor) -> Any:
        return None, None, *ctx.back(*gs)


@functools.cache
def _node(name: str) -> Any:
    """Return the class of a function's nodes, which have the name that they have in PyTorch."""
    return type(name, (_Communication,), {})


def _copied(collective: Callable[..., Any], tensor: Tensor, *args: Any) -> Tensor:
    """Return a copy of a tensor, after a collective has written into it."""
    result = tensor.clone()
    collective(result, *args)
    return result


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
    group = _group(group)

    def back(g: Tensor) -> list[Tensor]:
        total = reduce(g, src, group=group)
        return [total if get_rank() == src else zeros_like(total)]

    return _node("_Broadcast").apply(lambda x: _copied(collectives.broadcast, x, src, group), back, tensor)


def gather(tensor: Tensor, dst: int = 0, group: Group = None) -> tuple[Tensor, ...]:
    """Return the tensors of all ranks on rank `dst`, and zeros on the others."""
    group = _group(group)

    def run(x: Tensor) -> tuple[Tensor, ...]:
        results = [zeros_like(x) for _ in range(get_world_size(group))]
        collectives.gather(x, results if get_rank() == dst else None, dst, group)
        return tuple(results)

    return _node("_Gather").apply(run, lambda *gs: [scatter(gs, dst, group)], tensor)


def scatter(tensors: Sequence[Tensor], src: int = 0, group: Group = None) -> Tensor:
    """Return this rank's tensor in the list of rank `src`; the other ranks pass lists of the same shapes."""
    group = _group(group)

    def run(*given: Tensor) -> Tensor:
        result = zeros_like(given[0])
        collectives.scatter(result, given if get_rank() == src else None, src, group)
        return result

    return _node("_Scatter").apply(run, lambda g: gather(g, src, group), *tensors)


def reduce(tensor: Tensor, dst: int, op: Any = ReduceOp.SUM, group: Group = None) -> Tensor:
    """Return the sum (or another reduction) of all ranks' tensors on rank `dst`, and the input on the others."""
    group = _group(group)
    run = functools.partial(_copied, collectives.reduce)
    return _node("_Reduce").apply(lambda x: run(x, dst, op, group), lambda g: [broadcast(g, dst, group)], tensor)


def reduce_scatter(output: Tensor, input_list: Sequence[Tensor], op: Any = ReduceOp.SUM, group: Group = None) -> Tensor:
    """Return the sum (or another reduction) of all ranks' tensors for this rank, and store it in `output`."""
    group = _group(group)

    def run(*given: Tensor) -> Tensor:
        result = empty_like(output)
        collectives.reduce_scatter(result, given, op, group)
        output.copy_(result)
        return result

    return _node("_Reduce_Scatter").apply(run, lambda g: all_gather(g, group), *input_list)


def all_gather(tensor: Tensor, group: Group = None) -> tuple[Tensor, ...]:
    """Return the tensors of all ranks; the gradient of a rank's tensor is the sum of its gradients on all ranks."""
    group = _group(group)

    def run(x: Tensor) -> tuple[Tensor, ...]:
        results = [empty_like(x) for _ in range(get_world_size(group))]
        collectives.all_gather(results, x, group)
        return tuple(results)

    def back(*gs: Tensor) -> list[Tensor]:
        return [stack(all_to_all([empty_like(g) for g in gs], gs, group)).sum(0)]

    return _node("_AllGather").apply(run, back, tensor)


def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: Group = None
) -> tuple[Tensor, ...]:
    """Send a tensor to each rank; return the received tensors, which the output list gets, too."""
    group, inputs = _group(group), [x.detach() for x in input_tensor_list]

    def run(*given: Tensor) -> tuple[Tensor, ...]:
        collectives.all_to_all(output_tensor_list, given, group)
        return tuple([output.detach() for output in output_tensor_list])

    def back(*gs: Tensor) -> tuple[Tensor, ...]:
        return all_to_all([empty_like(x) for x in inputs], gs, group)

    return _node("_AlltoAll").apply(run, back, *input_tensor_list)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: Group = None,
) -> Tensor:
    """Send a part of a tensor to each rank; return the received parts, concatenated, which `output` gets, too."""
    group, plain = _group(group), input.detach()

    def run(x: Tensor) -> Tensor:
        collectives.all_to_all_single(output, x, output_split_sizes, input_split_sizes, group)
        return output.detach()

    def back(g: Tensor) -> list[Tensor]:
        return [all_to_all_single(empty_like(plain), g, input_split_sizes, output_split_sizes, group)]

    return _node("_AlltoAllSingle").apply(run, back, input)


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Group = None) -> Tensor:
    """Return the sum (or another reduction) of all ranks' tensors; backward reduces the gradients likewise."""
    group = _group(group)
    run = functools.partial(_copied, collectives.all_reduce)
    return _node("_AllReduce").apply(lambda x: run(x, op, group), lambda g: [all_reduce(g, op, group)], tensor)
