"""What `DistributedDataParallel` does with gradients: `Reducer` averages them, bucket by bucket, during backward.

A gradient is copied into its bucket as soon as it is there. A bucket that is full, after those before it, is summed
over all processes by MPI while backward goes on with earlier layers: each further gradient lets MPI move some more.
When the walk has ended the sums are waited for and copied back.
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
    """Some parameters' gradients, as a communication hook gets them (`DistributedDataParallel.register_comm_hook`)."""

    def __init__(self, index: int, is_last: bool, buffer: Tensor, parameters: Sequence[Tensor]) -> None:
        self._index, self._is_last, self._buffer, self._parameters = index, is_last, buffer, list(parameters)

    def index(self) -> int:
        """Return which bucket it is: buckets are reduced in this order."""
        return self._index

    def is_last(self) -> bool:
        """Return whether it is the last one of the backward pass."""
        return self._is_last

    def buffer(self) -> Tensor:
        """Return the gradients one after the other, `(n,)`."""
        return self._buffer

    def set_buffer(self, buffer: Tensor) -> None:
        """Have another tensor in the place of `buffer()`."""
        self._buffer = buffer

    def parameters(self) -> list[Tensor]:
        """Return the parameters."""
        return self._parameters

    def gradients(self) -> list[Tensor]:
        """Return by parameter the part of `buffer()` that is its gradient, in its shape."""
        parts = self._buffer.split([each.numel() for each in self._parameters])
        return [part.view(each.shape) for part, each in zip(parts, self._parameters, strict=True)]


class _Bucket:
    """Memory for gradients of one dtype, and how far their reduction is."""

    def __init__(self, index: int, numbers: Sequence[int], parameters: Sequence[Tensor]) -> None:
        self.index, self.numbers, self.parameters = index, numbers, parameters
        self.buffer = wrap(np.zeros(sum(each.numel() for each in parameters), parameters[0]._array.dtype))
        self.grads = GradBucket(index, False, self.buffer, parameters).gradients()
        self.waiting = 0  # gradients that have not come
        self.summed: Array = self.buffer._array  # by MPI
        self.test: Callable[[], Any] | None = None  # returns whether the sum is there
        self.future: Future[Any] | None = None  # what a communication hook returned


#: Buckets that nobody will wait for, which MPI may still write into.
_abandoned: list[Any] = []


class Reducer:
    """Averages the gradients of parameters over the processes of a group, each time that backward fills them.

    Args:
        parameters: those that require grad, in the model's order: the same on all ranks.
        group: the processes.
        limits: the sizes of buckets in bytes, the last one for all further ones.
        finds_unused: look at each forward pass for parameters without gradients.
        as_views: let `.grad` be parts of the buckets.

    Raises:
        RuntimeError: the parameters are not the same on all ranks.
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
        self._comm: Any = group.further[self._number] if group.comm is not None else None
        self._places: dict[int, tuple[_Bucket, int]] = {}  # by the parameter's number: the bucket, and where in it
        for index, numbers in enumerate(_in_buckets(self.parameters, limits)):
            bucket = _Bucket(index, numbers, [self.parameters[k] for k in numbers])
            self.buckets.append(bucket)
            self._places.update({k: (bucket, position) for position, k in enumerate(numbers)})
        self._expecting = self._began = False  # whether gradients are to be reduced; whether the first has come
        self._unfinished = False  # from the first gradient on until all is reduced
        self._missing: set[int] = set()  # parameters without a gradient yet
        self._unused: list[int] = []  # parameters that will not get one
        self._used = np.zeros(len(self.parameters), np.int32)  # ranks that have a gradient of it
        self._used_test: Callable[[], Any] | None = None
        self._next = 0  # the bucket to be reduced next
        self._under_way: collections.deque[Callable[[], Any]] = collections.deque()
        self._joining: tuple[Work, bool] | None = None
        self._divisor = 1.0
        # With a static graph: how often each parameter's hook runs, known after the first backward, and has yet to run.
        self._times = self._remaining = np.zeros(len(self.parameters), np.int64)
        self._knows_times = False
        me = weakref.ref(self)
        self._handles = [
            each.register_post_accumulate_grad_hook(functools.partial(_arrived, me, k))
            for k, each in enumerate(self.parameters)
        ]

    def _check_and_number(self, limits: Sequence[int]) -> int:
        """Return the number of a communicator that all ranks have for this, if their models are the same.

        Those of reducers that are gone on all ranks are used again: MPI has not many.
        """
        mine = [(tuple(p.shape), tuple(p.stride()), str(p.dtype)) for p in self.parameters]
        settings = (list(limits), self.finds_unused)
        everyone: list[Any] = [None] * self.group.size()
        all_gather_object(everyone, (mine, settings, sorted(self.group.unused)), self.group)
        for rank, (theirs, _, _) in enumerate(everyone):
            if len(theirs) != len(mine):
                raise RuntimeError(
                    f"DDP expects same model across all ranks, but Rank {self.group.rank()} has {len(mine)} params, "
                    f"while rank {rank} has inconsistent {len(theirs)} params."
                )
        for rank, (theirs, others, _) in enumerate(everyone):
            for k, (param, first) in enumerate(zip(theirs, everyone[0][0], strict=True)):
                for what, is_, expected in zip(("sizes", "strides", "dtype"), param, first, strict=True):
                    if is_ != expected:
                        shown = list(is_) if isinstance(is_, tuple) else is_
                        raise RuntimeError(
                            f"[{rank}]: params[{k}] in this process with {what} {shown} appears not to match {what} of "
                            "the same param in process 0."
                        )
            if others != everyone[0][1]:
                raise RuntimeError(
                    f"DDP expects the same arguments on all ranks, but rank 0 has (bucket sizes in bytes, "
                    f"find_unused_parameters) = {everyone[0][1]}, while rank {rank} has {others}"
                )
        again = set.intersection(*[set(unused) for _, _, unused in everyone])
        if again:
            self.group.unused.discard(number := min(again))
            return number
        if self.group.comm is not None:
            self.group.further.append(self.group.comm.Dup())
        return len(self.group.further) - 1

    def __del__(self) -> None:
        if not hasattr(self, "_handles"):  # the models differ
            return
        self.remove_hooks()
        if self._under_way:
            _abandoned.append((self.buckets, list(self._under_way), self._used))
        elif not self._unfinished and self._comm is not None:
            self.group.unused.add(self._number)

    def remove_hooks(self) -> None:
        """Let go of the parameters."""
        for handle in self._handles:
            handle.remove()

    # A step ---------------------------------------------------------------------------------------

    def prepare_for_backward(self, outputs: Sequence[Tensor]) -> None:
        """Expect gradients: those of a backward pass from a model's outputs.

        Raises:
            RuntimeError: the last backward pass did not reach all parameters.
        """
        self.check_finished()
        self._expecting, self._began, self._next = True, False, 0
        self._missing = set(range(len(self.parameters)))
        for bucket in self.buckets:
            bucket.waiting, bucket.test, bucket.future = len(bucket.parameters), None, None
        if self.static:
            self._remaining = self._times.copy()
        elif self.finds_unused:
            reached = _reached(outputs)
            self._unused = [k for k, each in enumerate(self.parameters) if id(each) not in reached]

    def check_finished(self) -> None:
        """Raise an error if a backward pass has not reached all parameters."""
        if not self._unfinished:
            return
        if self.static:
            about = _CHANGED.format("used", "unused").replace("Your", "This error indicates that your", 1)
        else:
            about = _UNUSED_OUTPUTS if self.finds_unused else _UNUSED
        which = " ".join(map(str, sorted(self._missing)))
        raise RuntimeError(
            f"{_UNFINISHED}{about}\nParameter indices which did not receive grad for rank {self.group.rank()}: {which}"
        )

    def _rebuild_buckets(self) -> bool:
        """Return False: the buckets are as they were made (Lightning asks)."""
        return False

    def join(self, work: Work, divide_by_initial_size: bool) -> None:
        """Take a work whose result is how many processes take part in this step (see `Join`)."""
        if self._joining is not None:  # there was no backward pass
            self._joining[0].wait()
        self._joining = work, divide_by_initial_size

    def arrived(self, k: int) -> None:
        """Take the gradient of parameter k: backward has just accumulated it."""
        if self.finds_unused or self.static:
            # Also while nothing is reduced (`no_sync`): what came then is reduced later.
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
        """Reduce all gradients: the first time with a static graph, which parameters it has being known only now."""
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
            (work, by_initial_size), self._joining = self._joining, None
            work.wait()
            divisor = divisor if by_initial_size else float(work.result()[0])
        self._divisor = 1.0 if self.hook else divisor

    def _take(self, k: int) -> None:
        """Copy the gradient of parameter k into its bucket, divided; reduce the buckets that are full."""
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
        bucket.waiting -= 1
        if not bucket.waiting:
            while self._next < len(self.buckets) and not self.buckets[self._next].waiting:
                self._reduce(self.buckets[self._next])
                self._next += 1
        while self._under_way and self._under_way[0]():  # (MPI moves data only while it is called)
            self._under_way.popleft()

    def _reduce(self, bucket: _Bucket) -> None:
        """Begin to sum a bucket over all processes."""
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
            # (MPI knows no floats of 16 bits)
            array = bucket.buffer._array
            bucket.summed = array.astype(np.float32) if array.dtype.itemsize == 2 else array
            bucket.test = self._sum(bucket.summed)
        if bucket.test is not None:
            self._under_way.append(bucket.test)

    def _sum(self, numbers: Array) -> Callable[[], Any]:
        test: Callable[[], Any] = self._comm.Iallreduce(mpi().IN_PLACE, numbers, mpi().SUM).Test
        return test

    def _reduce_used(self) -> None:
        if self._comm is not None:
            self._used_test = self._sum(self._used)
            self._under_way.append(self._used_test)

    def _finish(self) -> None:
        """Wait for the sums, and put them where the optimizer looks for them."""
        self._expecting = False
        counted = self.finds_unused or self.static
        if self._used_test is not None:
            self._wait(self._used_test, "the parameters that are used")
            self._used_test = None
        for bucket in self.buckets:
            self._complete(bucket)
            for k, leaf, part in zip(bucket.numbers, bucket.parameters, bucket.grads, strict=True):
                if not counted or self._used[k]:
                    self._put(leaf, part)
        self._under_way.clear()
        self._unfinished = False
        if not self.static:
            self._used[:] = 0

    def _complete(self, bucket: _Bucket) -> None:
        """Wait for a bucket's sum, and have it in the bucket."""
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
        about = f"[rank {rank}] DistributedDataParallel's all_reduce of {what}"
        late = (
            f"{about} did not end within {seconds:g} s: another rank is late, has died, or runs another number of "
            "backward passes, or another model"
        )

        def ready() -> Any:
            self.group.advance()  # another rank may wait for what this one has begun
            return test()

        try:
            poll(ready, seconds, lambda: late)
        except DistBackendError:
            raise
        except RuntimeError as error:  # MPI's own
            raise DistBackendError(f"{about}: {error}") from error

    def _put(self, leaf: Tensor, part: Tensor) -> None:
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
        """Take part, with zeros, in what the processes do that have not joined (see `Join`)."""
        self._next = 0
        for bucket in self.buckets:
            bucket.buffer._array[...] = 0
            bucket.test = bucket.future = None
            self._reduce(bucket)
        if self.finds_unused and not self.static:
            self._reduce_used()
            assert self._used_test is not None
            self._wait(self._used_test, "the parameters that are used")
            self._used_test = None
            self._used[:] = 0
        for bucket in self.buckets:
            self._complete(bucket)
        self._under_way.clear()


def _arrived(reducer: weakref.ref[Reducer], k: int, leaf: Tensor) -> None:
    """Be the hook of a parameter, which does not keep the reducer alive."""
    found = reducer()
    if found is not None:
        found.arrived(k)


def _in_buckets(parameters: Sequence[Tensor], limits: Sequence[int]) -> list[list[int]]:
    """Return the numbers of parameters by bucket: the last first, as backward comes to them, each dtype by itself."""
    full: list[list[int]] = []
    filling: dict[Any, list[list[int]]] = {}  # by dtype, the buckets so far
    sizes: dict[Any, int] = {}  # of the last of them, in bytes
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
    """Return the ids of the leaves that backward from the outputs comes to."""
    leaves: set[int] = set()
    seen: set[Any] = set()
    wanted = [each for each in outputs if each.requires_grad]
    nodes: list[Any] = [(each._current()._edge or leaf_edge(each))[0] for each in wanted]
    while nodes:
        node = nodes.pop()
        if node in seen:
            continue
        seen.add(node)
        if isinstance(node, AccumulateGrad):
            leaves.add(id(node.variable))
        nodes += [edge[0] for edge in node.edges if edge is not None]
    return leaves
