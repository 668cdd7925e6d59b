"""`Reducer` averages the gradients of `DistributedDataParallel` over the processes during backward, in buckets.

Each gradient is copied into its bucket as soon as it is accumulated. When a bucket and all before it are full, MPI
starts to sum it over the processes while backward continues with earlier layers; each further gradient gives MPI a
chance to make progress. At the end of backward the reducer waits for the sums and copies them back.
"""

from __future__ import annotations

import collections
import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinytorch.core.graph import AccumulateGrad, leaf_edge
from tinytorch.core.mode import local
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.distributed.futures import Future
from tinytorch.distributed.groups import ProcessGroup
from tinytorch.distributed.mpi import mpi
from tinytorch.distributed.objects import all_gather_object
from tinytorch.distributed.work import DistBackendError, Work, poll

__all__ = ["GradBucket"]

Array = np.ndarray[Any, Any]

_MARKED_TWICE = (
    "Expected to mark a variable ready only once. This error is caused by one of the following reasons: 1) Use of a "
    "module parameter outside the `forward` function. Please make sure model parameters are not shared across multiple "
    "concurrent forward-backward passes. or try to use _set_static_graph() as a workaround if this module graph does "
    "not change during training loop.2) Reused parameters in multiple reentrant backward passes. For example, if you "
    "use multiple `checkpoint` functions to wrap the same part of your model, it would result in the same set of "
    "parameters been used by different reentrant backward passes multiple times, and hence marking a variable ready "
    "multiple times. DDP does not support such use cases in default. You can try to use _set_static_graph() as a "
    "workaround if your module graph does not change over iterations."
)
_UNFINISHED = "Expected to have finished reduction in the prior iteration before starting a new one. "
_UNUSED = (
    "This error indicates that your module has parameters that were not used in producing loss. You can enable unused "
    "parameter detection by passing the keyword argument `find_unused_parameters=True` to "
    "`torch.nn.parallel.DistributedDataParallel`, and by \nmaking sure all `forward` function outputs participate in "
    "calculating loss. "
)
_UNUSED_OUTPUTS = (
    "This error indicates that your module has parameters that were not used in producing loss. Since "
    "`find_unused_parameters=True` is enabled, this likely  means that not all `forward` outputs participate in "
    "computing loss. You can fix this by making sure all `forward` function outputs participate in calculating loss. "
)
_CHANGED = (
    "Your training graph has changed in this iteration, e.g., one parameter is {} in first iteration, but then got {} "
    "in the second iteration. this is not compatible with static_graph set to True."
)


def after_backward(callback: Callable[[], None]) -> None:
    """Call a function at the end of the backward pass that is running in this thread."""
    callbacks = local.state.callbacks
    assert callbacks is not None, "no backward pass is running"
    callbacks.append(callback)


class GradBucket:
    """The gradients of some parameters, the argument of a hook of `DistributedDataParallel.register_comm_hook`."""

    def __init__(self, index: int, is_last: bool, buffer: Tensor, parameters: Sequence[Tensor]) -> None:
        self._index, self._is_last, self._buffer, self._parameters = index, is_last, buffer, list(parameters)

    def index(self) -> int:
        """Return the bucket's index: buckets are reduced in this order."""
        return self._index

    def is_last(self) -> bool:
        """Return whether it is the last bucket of the backward pass."""
        return self._is_last

    def buffer(self) -> Tensor:
        """Return the concatenated gradients, `(n,)`."""
        return self._buffer

    def set_buffer(self, buffer: Tensor) -> None:
        """Replace the tensor of `buffer()`."""
        self._buffer = buffer

    def parameters(self) -> list[Tensor]:
        """Return the parameters."""
        return self._parameters

    def gradients(self) -> list[Tensor]:
        """Return for each parameter its gradient, a view of `buffer()` with the parameter's shape."""
        parts = self._buffer.split([p.numel() for p in self._parameters])
        return [part.view(p.shape) for part, p in zip(parts, self._parameters, strict=True)]


class _Bucket:
    """The memory for gradients of one dtype, and the state of their reduction."""

    def __init__(self, index: int, numbers: Sequence[int], parameters: Sequence[Tensor]) -> None:
        self.index, self.numbers, self.parameters = index, numbers, parameters
        self.buffer = wrap(np.zeros(sum(p.numel() for p in parameters), parameters[0]._array.dtype))
        self.grads = GradBucket(index, False, self.buffer, parameters).gradients()
        self.pending = 0  # gradients that are not in the bucket yet
        self.summed: Array = self.buffer._array  # the array that MPI sums
        self.test: Callable[[], Any] | None = None  # returns whether the sum is complete
        self.future: Future[Any] | None = None  # the result of a communication hook


#: Buckets of reducers that were freed during a reduction: MPI may still write into them.
_abandoned: list[Any] = []


class Reducer:
    """Averages the gradients of parameters over the processes of a group in each backward pass.

    Args:
        parameters: the parameters that require grad, in the model's order, the same on all ranks.
        group: the process group.
        limits: the sizes of the buckets in bytes; the last one holds for all further buckets.
        finds_unused: search the graph of each forward pass for parameters that will get no gradient.
        as_views: let `.grad` be a view of the bucket.
    """

    def __init__(
        self,
        parameters: Sequence[Tensor],
        group: ProcessGroup,
        limits: Sequence[int],
        finds_unused: bool,
        as_views: bool,
    ) -> None:
        self.parameters, self.group = list(parameters), group
        self.finds_unused, self.as_views, self.static = finds_unused, as_views, False
        self.hook: tuple[Callable[..., Any], Any] | None = None
        self.buckets: list[_Bucket] = []
        self._number = self._check_and_number(limits)
        self._comm: Any = group.copies[self._number] if group.comm is not None else None
        self._places: dict[int, tuple[_Bucket, int]] = {}  # for each parameter's number: its bucket and its index there
        for index, numbers in enumerate(_in_buckets(self.parameters, limits)):
            bucket = _Bucket(index, numbers, [self.parameters[k] for k in numbers])
            self.buckets.append(bucket)
            self._places.update({k: (bucket, position) for position, k in enumerate(numbers)})
        self._expecting = self._began = False  # gradients are to be reduced; the first one has been accumulated
        self._unfinished = False  # True from the first gradient until all are reduced
        self._missing: set[int] = set()  # parameters without a gradient yet
        self._unused: list[int] = []  # parameters that will get no gradient
        self._used = np.zeros(len(self.parameters), np.int32)  # for each parameter, the number of ranks with a gradient
        self._used_test: Callable[[], Any] | None = None
        self._next = 0  # the bucket to be reduced next
        self._in_progress: collections.deque[Callable[[], Any]] = collections.deque()
        self._joining: tuple[Work, bool] | None = None
        self._divisor = 1.0
        # With a static graph: the number of calls of each parameter's hook in a backward pass, counted in the first
        # one, and the remaining calls in this one.
        self._times = self._remaining = np.zeros(len(self.parameters), np.int64)
        self._knows_times = False
        reference = weakref.ref(self)
        self._handles = [
            p.register_post_accumulate_grad_hook(functools.partial(_arrived, reference, k))
            for k, p in enumerate(self.parameters)
        ]

    def _check_and_number(self, limits: Sequence[int]) -> int:
        """Check that the models are the same on all ranks; return the index of a communicator for this reducer.

        MPI has a limited number of communicators: one whose reducers are freed on all ranks is used again.
        """
        own = [(tuple(p.shape), tuple(p.stride()), str(p.dtype)) for p in self.parameters]
        settings = (list(limits), self.finds_unused)
        gathered: list[Any] = [None] * self.group.size()
        all_gather_object(gathered, (own, settings, sorted(self.group.free_copies)), self.group)
        for rank, (params, _, _) in enumerate(gathered):
            if len(params) != len(own):
                raise RuntimeError(
                    f"DDP expects same model across all ranks, but Rank {self.group.rank()} has {len(own)} params, "
                    f"while rank {rank} has inconsistent {len(params)} params."
                )
        for rank, (params, others, _) in enumerate(gathered):
            for k, (param, first) in enumerate(zip(params, gathered[0][0], strict=True)):
                for what, actual, expected in zip(("sizes", "strides", "dtype"), param, first, strict=True):
                    if actual != expected:
                        value = list(actual) if isinstance(actual, tuple) else actual
                        raise RuntimeError(
                            f"[{rank}]: params[{k}] in this process with {what} {value} appears not to match {what} of "
                            "the same param in process 0."
                        )
            if others != gathered[0][1]:
                raise RuntimeError(
                    f"DDP expects the same arguments on all ranks, but rank 0 has (bucket sizes in bytes, "
                    f"find_unused_parameters) = {gathered[0][1]}, while rank {rank} has {others}"
                )
        free = set.intersection(*[set(indices) for _, _, indices in gathered])
        if free:
            self.group.free_copies.discard(number := min(free))
            return number
        if self.group.comm is not None:
            self.group.copies.append(self.group.comm.Dup())
        return len(self.group.copies) - 1

    def __del__(self) -> None:
        if not hasattr(self, "_handles"):  # the constructor raised an error: the models differ
            return
        self.remove_hooks()
        if self._in_progress:
            _abandoned.append((self.buckets, list(self._in_progress), self._used))
        elif not self._unfinished and self._comm is not None:
            self.group.free_copies.add(self._number)

    def remove_hooks(self) -> None:
        """Remove the hooks of the parameters."""
        for handle in self._handles:
            handle.remove()

    # A step ---------------------------------------------------------------------------------------

    def prepare_for_backward(self, outputs: Sequence[Tensor]) -> None:
        """Prepare to reduce the gradients of a backward pass that starts at a model's outputs."""
        self.check_finished()
        self._expecting, self._began, self._next = True, False, 0
        self._missing = set(range(len(self.parameters)))
        for bucket in self.buckets:
            bucket.pending, bucket.test, bucket.future = len(bucket.parameters), None, None
        if self.static:
            self._remaining = self._times.copy()
        elif self.finds_unused:
            reached = _reached(outputs)
            self._unused = [k for k, p in enumerate(self.parameters) if id(p) not in reached]

    def check_finished(self) -> None:
        """Raise an error if a backward pass has not reached all parameters."""
        if not self._unfinished:
            return
        if self.static:
            reason = _CHANGED.format("used", "unused").replace("Your", "This error indicates that your", 1)
        else:
            reason = _UNUSED_OUTPUTS if self.finds_unused else _UNUSED
        missing = " ".join(map(str, sorted(self._missing)))
        raise RuntimeError(
            f"{_UNFINISHED}{reason}\nParameter indices which did not receive grad for rank {self.group.rank()}: "
            f"{missing}"
        )

    def _rebuild_buckets(self) -> bool:
        """Return False: buckets are never rebuilt; Lightning calls this method."""
        return False

    def join(self, work: Work, divide_by_initial_size: bool) -> None:
        """Store a work handle whose result is the number of processes that take part in this step (see `Join`)."""
        if self._joining is not None:  # there was no backward pass
            self._joining[0].wait()
        self._joining = work, divide_by_initial_size

    def arrived(self, k: int) -> None:
        """Reduce the gradient of parameter k, which backward has just accumulated."""
        if self.finds_unused or self.static:
            # Also inside `no_sync`: gradients accumulated there are reduced later.
            if not self._knows_times and self.parameters[k]._grad is not None:
                self._used[k] = 1
            if self.static:
                if not self._knows_times:
                    self._times[k] += self._expecting
                    return
                if self._expecting:
                    if not self._times[k]:
                        raise RuntimeError(_CHANGED.format("unused", "used"))
                    self._remaining[k] -= 1
                    if self._remaining[k] > 0:
                        return
        if not self._expecting:
            return
        if not self._began:
            self._begin()
            for unused in self._unused:
                self._take(unused)
        self._take(k)
        if self._next == len(self.buckets):
            if self.finds_unused and not self.static:
                self._reduce_used()
            after_backward(self._finish)

    def reduce_all(self) -> None:
        """Reduce all gradients at the end of the first backward pass with a static graph: its hooks are counted now."""
        self._knows_times = True
        self._unused = list(np.flatnonzero(self._times == 0))
        self._begin()
        self._reduce_used()
        for k in range(len(self.parameters)):
            self._take(k)
        self._finish()

    def _begin(self) -> None:
        self._began = self._unfinished = True
        divisor = float(self.group.size())
        if self._joining is not None:
            (work, divide_by_initial_size), self._joining = self._joining, None
            work.wait()
            divisor = divisor if divide_by_initial_size else float(work.result()[0])
        self._divisor = 1.0 if self.hook else divisor

    def _take(self, k: int) -> None:
        """Copy the gradient of parameter k, divided, into its bucket; start to reduce the buckets that are full."""
        if k not in self._missing:
            raise RuntimeError(_MARKED_TWICE)
        self._missing.discard(k)
        bucket, position = self._places[k]
        leaf, part = self.parameters[k], bucket.grads[position]
        grad = leaf._grad
        if grad is None:
            part._array[...] = 0
        else:
            np.multiply(grad._array, 1 / self._divisor, out=part._array, casting="same_kind")
            if self.as_views:
                leaf._grad = part
        bucket.pending -= 1
        if not bucket.pending:
            while self._next < len(self.buckets) and not self.buckets[self._next].pending:
                self._reduce(self.buckets[self._next])
                self._next += 1
        while self._in_progress and self._in_progress[0]():  # (MPI makes progress only inside its functions)
            self._in_progress.popleft()

    def _reduce(self, bucket: _Bucket) -> None:
        """Start to sum a bucket over all processes."""
        if self.hook is not None:
            hook, state = self.hook
            last = bucket.index == len(self.buckets) - 1
            bucket.future = hook(state, GradBucket(bucket.index, last, bucket.buffer, bucket.parameters))
            if not isinstance(bucket.future, Future):
                raise RuntimeError(
                    "DDP communication hook's callback must return a torch.futures.Future object, but got "
                    f"{type(bucket.future).__name__}"
                )
            bucket.test = bucket.future.done
        elif self._comm is not None:
            # (MPI has no 16-bit floats)
            array = bucket.buffer._array
            bucket.summed = array.astype(np.float32) if array.dtype.itemsize == 2 else array
            bucket.test = self._sum(bucket.summed)
        if bucket.test is not None:
            self._in_progress.append(bucket.test)

    def _sum(self, numbers: Array) -> Callable[[], Any]:
        return self._comm.Iallreduce(mpi().IN_PLACE, numbers, mpi().SUM).Test

    def _reduce_used(self) -> None:
        if self._comm is not None:
            self._used_test = self._sum(self._used)
            self._in_progress.append(self._used_test)

    def _finish(self) -> None:
        """Wait for the sums, and store them in the parameters' `.grad`."""
        self._expecting = False
        counted = self.finds_unused or self.static
        self._complete_used()
        for bucket in self.buckets:
            self._complete(bucket)
            for k, leaf, part in zip(bucket.numbers, bucket.parameters, bucket.grads, strict=True):
                if not counted or self._used[k]:
                    self._store(leaf, part)
        self._in_progress.clear()
        self._unfinished = False
        if not self.static:
            self._used[:] = 0

    def _complete_used(self) -> None:
        if self._used_test is not None:
            self._wait(self._used_test, "the parameters that are used")
            self._used_test = None

    def _complete(self, bucket: _Bucket) -> None:
        """Wait for a bucket's sum, and store it in the bucket."""
        if bucket.future is not None:
            result = bucket.future.wait()
            if not isinstance(result, Tensor):
                raise RuntimeError(f"Unable to cast {result} to Tensor")
            if result is not bucket.buffer:
                bucket.buffer._array[...] = result._array.reshape(-1)
        elif bucket.test is not None:
            self._wait(bucket.test, f"gradients (bucket {bucket.index} of {len(self.buckets)})")
            if bucket.summed is not bucket.buffer._array:
                bucket.buffer._array[...] = bucket.summed

    def _wait(self, test: Callable[[], Any], what: str) -> None:
        rank, seconds = self.group.global_rank, self.group.seconds
        operation = f"[rank {rank}] DistributedDataParallel's all_reduce of {what}"
        late = (
            f"{operation} did not end within {seconds:g} s: another rank is late, has died, or runs another number of "
            "backward passes, or another model"
        )

        def ready() -> Any:
            self.group.advance()  # another rank may wait for a communication that this one has queued
            return test()

        try:
            poll(ready, seconds, lambda: late)
        except DistBackendError:
            raise
        except RuntimeError as error:  # MPI's own
            raise DistBackendError(f"{operation}: {error}") from error

    def _store(self, leaf: Tensor, part: Tensor) -> None:
        grad = leaf._grad
        if self.as_views:
            leaf._grad = part
            part._bump()
        elif grad is None:
            leaf._grad = wrap(np.empty_like(leaf._array))
            leaf._grad._array[...] = part._array
        else:
            grad._array[...] = part._array
            grad._bump()

    def answer(self) -> None:
        """Contribute zeros to the reductions of the processes that have not joined (see `Join`)."""
        self._next = 0
        for bucket in self.buckets:
            bucket.buffer._array[...] = 0
            bucket.test = bucket.future = None
            self._reduce(bucket)
        if self.finds_unused and not self.static:
            self._reduce_used()
            self._complete_used()
            self._used[:] = 0
        for bucket in self.buckets:
            self._complete(bucket)
        self._in_progress.clear()


def _arrived(reducer: weakref.ref[Reducer], k: int, leaf: Tensor) -> None:
    """The hook of a parameter; it does not keep the reducer alive."""
    target = reducer()
    if target is not None:
        target.arrived(k)


def _in_buckets(parameters: Sequence[Tensor], limits: Sequence[int]) -> list[list[int]]:
    """Return the parameters' numbers for each bucket: the last parameters first, as in backward, one dtype a bucket."""
    full: list[list[int]] = []
    filling: dict[Any, list[list[int]]] = {}  # for each dtype, its buckets
    sizes: dict[Any, int] = {}  # for each dtype, the size of its last bucket in bytes
    for k in reversed(range(len(parameters))):
        dtype, array = parameters[k].dtype, parameters[k]._array
        buckets = filling.setdefault(dtype, [[]])
        buckets[-1].append(k)
        sizes[dtype] = sizes.get(dtype, 0) + array.nbytes
        if sizes[dtype] >= limits[min(len(buckets), len(limits)) - 1]:
            full.append(buckets[-1])
            buckets.append([])
            sizes[dtype] = 0
    return full + [buckets[-1] for buckets in filling.values() if buckets[-1]]


def _reached(outputs: Sequence[Tensor]) -> set[int]:
    """Return the ids of the leaves that backward reaches from the outputs."""
    leaves: set[int] = set()
    seen: set[Any] = set()
    roots = [output for output in outputs if output.requires_grad]
    nodes: list[Any] = [(root._current()._edge or leaf_edge(root))[0] for root in roots]
    while nodes:
        node = nodes.pop()
        if node in seen:
            continue
        seen.add(node)
        if isinstance(node, AccumulateGrad):
            leaves.add(id(node.variable))
        nodes += [edge[0] for edge in node.edges if edge is not None]
    return leaves
