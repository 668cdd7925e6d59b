"""Communication hooks that average gradients, in their own dtype or in 16 bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.distributed._reducer import GradBucket
from tinytorch.distributed.collectives import all_reduce
from tinytorch.distributed.futures import Future
from tinytorch.distributed.groups import ProcessGroup, _get_default_group
from tinytorch.kernels import dtypes

__all__ = [
    "allreduce_hook", "bf16_compress_hook", "bf16_compress_wrapper", "fp16_compress_hook", "fp16_compress_wrapper",
]  # fmt: skip

Hook = Callable[[Any, GradBucket], Future[Tensor]]


def _allreduce_fut(process_group: ProcessGroup | None, tensor: Tensor) -> Future[Tensor]:
    """Replace a tensor by its mean over a group; return a future of it."""
    group = _get_default_group() if process_group is None else process_group
    tensor.div_(group.size())
    work = all_reduce(tensor, group=group, async_op=True)
    assert work is not None
    return work.get_future().then(lambda done: done.value()[0])


def allreduce_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Future[Tensor]:
    """Return a future of the mean of the gradients, as `DistributedDataParallel` computes without a hook.

    Example:
        >>> from tinytorch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
        >>> torch.distributed.init_process_group("gloo", rank=0, world_size=1)
        >>> model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
        >>> model.register_comm_hook(None, allreduce_hook)
        >>> torch.distributed.destroy_process_group()
    """
    return _allreduce_fut(process_group, bucket.buffer())


def _compressed(dtype: Any, process_group: ProcessGroup | None, bucket: GradBucket) -> Future[Tensor]:
    buffer = bucket.buffer()
    return _allreduce_fut(process_group, buffer.to(dtype)).then(lambda done: buffer.copy_(done.value()))


def fp16_compress_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Future[Tensor]:
    """Return a future of the mean of the gradients, which are rounded to float16 first."""
    return _compressed(dtypes.float16, process_group, bucket)


def bf16_compress_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Future[Tensor]:
    """Return a future of the mean of the gradients, which are rounded to bfloat16 first."""
    return _compressed(dtypes.bfloat16, process_group, bucket)


def _wrapper(dtype: Any, hook: Hook) -> Hook:
    def wrapped(hook_state: Any, bucket: GradBucket) -> Future[Tensor]:
        gradients = bucket.buffer()
        bucket.set_buffer(gradients.to(dtype))
        return hook(hook_state, bucket).then(lambda done: gradients.copy_(done.value()))

    return wrapped


def fp16_compress_wrapper(hook: Hook) -> Hook:
    """Return a hook that calls another one with the gradients in float16."""
    return _wrapper(dtypes.float16, hook)


def bf16_compress_wrapper(hook: Hook) -> Hook:
    """Return a hook that calls another one with the gradients in bfloat16."""
    return _wrapper(dtypes.bfloat16, hook)
