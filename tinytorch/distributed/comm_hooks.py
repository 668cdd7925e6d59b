"""Communication hooks of `DistributedDataParallel`: what is exchanged of the gradients, and how.

The modules below `torch.distributed.algorithms.ddp_comm_hooks` have them by PyTorch's paths: `compat/names.txt`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinytorch.core.tensor import Tensor
from tinytorch.distributed._reducer import GradBucket
from tinytorch.distributed.collectives import all_reduce
from tinytorch.distributed.futures import Future
from tinytorch.distributed.groups import ProcessGroup, _get_default_group, new_subgroups
from tinytorch.kernels import dtypes
from tinytorch.linalg import qr
from tinytorch.ops.create import empty, zeros
from tinytorch.ops.join import cat, stack
from tinytorch.ops.random import randn
from tinytorch.random import fork_rng, manual_seed

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


def fp16_compress_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Future[Tensor]:
    """Return a future of the mean of the gradients, which are rounded to float16 first."""
    return fp16_compress_wrapper(allreduce_hook)(process_group, bucket)


def bf16_compress_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Future[Tensor]:
    """Return a future of the mean of the gradients, which are rounded to bfloat16 first."""
    return bf16_compress_wrapper(allreduce_hook)(process_group, bucket)


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


def noop_hook(_: Any, bucket: GradBucket) -> Future[Tensor]:
    """Return a future of the process's own gradients, to measure the cost of communication."""
    future: Future[Tensor] = Future()
    future.set_result(bucket.buffer())
    return future


# Local SGD: gradients are averaged over all processes at first, and over subgroups later ------------


class PostLocalSGDState:
    """The settings and the step count of `post_localSGD_hook`."""

    def __init__(
        self,
        process_group: ProcessGroup | None,
        subgroup: ProcessGroup | None,
        start_localSGD_iter: int,
        post_local_gradient_allreduce: bool = True,
    ) -> None:
        self.process_group, self.subgroup, self.start_localSGD_iter = process_group, subgroup, start_localSGD_iter
        self.post_local_gradient_allreduce = post_local_gradient_allreduce
        self.iter = 0


def post_localSGD_hook(state: PostLocalSGDState, bucket: GradBucket) -> Future[Tensor]:
    """Return a future of the mean of the gradients, over all processes or over a subgroup.

    The parameters have to be averaged periodically, by a `PeriodicModelAverager`.

    Source:
        Lin et al., "Don't Use Large Mini-Batches, Use Local SGD", 2020.
    """
    if state.iter < state.start_localSGD_iter:
        state.iter += bucket.is_last()
        return _allreduce_fut(state.process_group, bucket.buffer())
    if not state.post_local_gradient_allreduce:
        return noop_hook(None, bucket)
    if state.subgroup is None:
        state.subgroup, _ = new_subgroups()
    return _allreduce_fut(state.subgroup, bucket.buffer())


# PowerSGD: gradients are averaged in a low-rank approximation, which is less data to send -----------


class PowerSGDState:
    """The settings of `powerSGD_hook`, and its state between steps.

    `compression_stats_logging_frequency` has no effect.

    Example:
        >>> from tinytorch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook
        >>> torch.distributed.init_process_group("gloo", rank=0, world_size=1)
        >>> model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))
        >>> model.register_comm_hook(PowerSGDState(None, matrix_approximation_rank=2), powerSGD_hook)
        >>> torch.distributed.destroy_process_group()
    """

    def __init__(
        self,
        process_group: ProcessGroup | None,
        matrix_approximation_rank: int = 1,
        start_powerSGD_iter: int = 1000,
        min_compression_rate: float = 2,
        use_error_feedback: bool = True,
        warm_start: bool = True,
        orthogonalization_epsilon: float = 0,
        random_seed: int = 0,
        compression_stats_logging_frequency: int = 10_000,
        batch_tensors_with_same_shape: bool = False,
    ) -> None:
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError(
                "Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is enabled, because PowerSGD "
                "can only be applied after the first two iterations in DDP."
            )
        self.process_group = process_group
        self.matrix_approximation_rank, self.start_powerSGD_iter = matrix_approximation_rank, start_powerSGD_iter
        self.min_compression_rate, self.orthogonalization_epsilon = min_compression_rate, orthogonalization_epsilon
        self.use_error_feedback, self.warm_start = use_error_feedback, warm_start
        self.batch_tensors_with_same_shape = batch_tensors_with_same_shape
        self.compression_stats_logging_frequency = max(1, compression_stats_logging_frequency)
        self.rng = np.random.RandomState(random_seed)
        # For each bucket: the error of the last approximation, and the factors P and Q of all its gradients.
        self.error_dict: dict[int, Tensor] = {}
        self.p_memory_dict: dict[int, Tensor] = {}
        self.q_memory_dict: dict[int, Tensor] = {}
        self.iter = 0
        self.total_numel_before_compression = self.total_numel_after_compression = 0

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "process_group"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.process_group = _get_default_group()

    def maybe_increase_iter(self, bucket: GradBucket) -> None:
        """Increase the step count at the last bucket of a step."""
        self.iter += bucket.is_last()

    def compression_stats(self) -> tuple[float, int, int]:
        """Return the compression rate, and the numbers of elements before and after compression."""
        before, after = self.total_numel_before_compression, self.total_numel_after_compression
        return before / after if after > 0 else 0, before, after


def _orthogonalize(matrices: Tensor, epsilon: float = 0) -> None:
    """Orthonormalize the columns of each matrix, `(N, rows, columns)`, in place."""
    columns = matrices.shape[2]
    if columns > 2 and matrices.dtype not in (dtypes.float16, dtypes.bfloat16):
        matrices.copy_(qr(matrices).Q)
        return
    for i in range(columns):  # Gram-Schmidt
        column, rest = matrices[:, :, i : i + 1], matrices[:, :, i + 1 :]
        column /= column.norm(dim=1, keepdim=True) + epsilon
        rest -= (column * rest).sum(1, keepdim=True) * column


def _average_low_rank(
    state: PowerSGDState, index: int, matrices: Sequence[Tensor], group: ProcessGroup, epsilon: float
) -> None:
    """Replace matrices, `(N, rows, columns)` each, by approximations of their means: one step of power iteration."""
    ranks = [min(*matrix.shape[1:], state.matrix_approximation_rank) for matrix in matrices]
    shapes = [
        [(matrix.shape[0], matrix.shape[1 + side], rank) for matrix, rank in zip(matrices, ranks, strict=True)]
        for side in (0, 1)
    ]
    fresh = not state.warm_start or index not in state.p_memory_dict
    parts = []
    for memory, side in zip((state.p_memory_dict, state.q_memory_dict), shapes, strict=True):
        sizes = [math.prod(shape) for shape in side]
        if fresh:
            memory[index] = empty(sum(sizes), dtype=matrices[0].dtype if matrices else None)
        parts.append([part.view(shape) for part, shape in zip(memory[index].split(sizes), side, strict=True)])
    ps, qs = parts
    if fresh:
        with fork_rng(devices=[]):
            manual_seed(state.rng.randint(1_000_000_000))
            for q in qs:
                q.copy_(randn(*q.shape, dtype=q.dtype))
    for q in qs:
        _orthogonalize(q, epsilon)
    for matrix, p, q in zip(matrices, ps, qs, strict=True):
        p.copy_(matrix @ q)
    all_reduce(state.p_memory_dict[index], group=group)
    for matrix, p, q in zip(matrices, ps, qs, strict=True):
        _orthogonalize(p, epsilon)
        q.copy_(matrix.transpose(1, 2) @ p)
    all_reduce(state.q_memory_dict[index], group=group)
    state.q_memory_dict[index].div_(group.size())
    for matrix, p, q in zip(matrices, ps, qs, strict=True):
        matrix.copy_(p @ q.transpose(1, 2))
    if not state.warm_start:
        state.p_memory_dict.clear()
        state.q_memory_dict.clear()


def _add_error(state: PowerSGDState, index: int, gradients: Tensor) -> Tensor | None:
    """Add the error of the last approximation to the gradients; return a copy of the sum."""
    if not state.use_error_feedback:
        return None
    if index in state.error_dict:
        gradients.add_(state.error_dict[index])
    return gradients.clone()


def powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future[Tensor]:
    """Return a future of an approximate mean of the gradients.

    Each gradient, as a matrix M, is approximated by P Q^T, whose factors are summed over the processes: P = M Q for
    a random Q (or the last step's), orthonormalized, then Q = M^T P. Gradients that would not become smaller are
    averaged exactly. The error of the approximation is added to the next step's gradients.

    Source:
        Vogels et al., "PowerSGD: Practical Low-Rank Gradient Compression for Distributed Optimization", 2019.
    """
    group = _get_default_group() if state.process_group is None else state.process_group
    gradients, index = bucket.buffer(), bucket.index()
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return _allreduce_fut(group, gradients)
    exact = _add_error(state, index, gradients)
    by_shape: dict[Any, list[Tensor]] = {}
    others: list[Tensor] = []
    for gradient in bucket.gradients():
        matrix = gradient.view(gradient.shape[0], -1) if gradient.dim() else gradient.view(1, 1)
        rank = min(*matrix.shape, state.matrix_approximation_rank)
        compressed = sum(matrix.shape) * rank
        smaller = compressed * state.min_compression_rate < matrix.numel()
        by_shape.setdefault(matrix.shape, []).append(matrix) if smaller else others.append(gradient)
        state.total_numel_before_compression += matrix.numel()
        state.total_numel_after_compression += compressed if smaller else matrix.numel()
    if others:
        flat = cat([gradient.reshape(-1) for gradient in others])
        all_reduce(flat, group=group)
        flat.div_(group.size())
        for gradient, part in zip(others, flat.split([gradient.numel() for gradient in others]), strict=True):
            gradient.copy_(part.view_as(gradient))
    if state.batch_tensors_with_same_shape:
        batches = [stack(matrices) for matrices in by_shape.values()]
    else:
        batches = [matrix.unsqueeze(0) for matrices in by_shape.values() for matrix in matrices]
    _average_low_rank(state, index, batches, group, state.orthogonalization_epsilon)
    if state.batch_tensors_with_same_shape:
        for matrices, batch in zip(by_shape.values(), batches, strict=True):
            for matrix, approximated in zip(matrices, batch, strict=True):
                matrix.copy_(approximated)
    if exact is not None:
        state.error_dict[index] = exact - gradients
    state.maybe_increase_iter(bucket)
    return noop_hook(None, bucket)


def batched_powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future[Tensor]:
    """Return a future of an approximate mean of the gradients, with the bucket as one square matrix.

    It is faster than `powerSGD_hook`, and less accurate.
    """
    group = _get_default_group() if state.process_group is None else state.process_group
    gradients, index = bucket.buffer(), bucket.index()
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return _allreduce_fut(group, gradients)
    side = math.ceil(math.sqrt(gradients.numel()))
    padded = cat([gradients, zeros(side * side - gradients.numel(), dtype=gradients.dtype)])
    state.total_numel_before_compression += gradients.numel()
    state.total_numel_after_compression += side * state.matrix_approximation_rank * 2
    exact = _add_error(state, index, padded)
    _average_low_rank(state, index, [padded.view(1, side, side)], group, 0)
    if exact is not None:
        state.error_dict[index] = exact - padded
    gradients.copy_(padded[: gradients.numel()])
    state.maybe_increase_iter(bucket)
    return noop_hook(None, bucket)
