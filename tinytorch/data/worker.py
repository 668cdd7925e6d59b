"""Worker processes of the `DataLoader`: what they run, and how they are started, fed and ended.

Each worker has two channels of its own to the main process: one for tasks (indices) and one for results. A worker
answers its tasks in their order, so that the main process knows which channel the next batch comes from; no lock is
shared, and a worker that dies harms no other. A result is a pickle with its arrays beside it (protocol 5). Where it is
large and the system has `memfd_create`, it travels in a file without a name that lies in memory: the worker does not
wait for the main process to read, and nothing is left over when either of them is killed.
"""

from __future__ import annotations

import contextlib
import copyreg
import io
import itertools
import os
import pickle
import random
import struct
import sys
import time
import traceback
import warnings
import weakref
from collections import ChainMap, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinytorch.core.tensor import Tensor
from tinytorch.data.collate import is_default
from tinytorch.data.dataset import batch_reader, read_samples
from tinytorch.kernels.parallel import set_num_threads
from tinytorch.ops.random import manual_seed

__all__ = ["ExceptionWrapper", "Job", "WorkerInfo", "Workers", "create_fetcher", "get_worker_info"]

MP_STATUS_CHECK_INTERVAL = 5.0  # seconds between looks whether the main process lives, and for workers to end
_LARGE = 1 << 15  # bytes from which on a message goes through memory, not through the channel


# In a worker --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """What `get_worker_info` tells in a worker.

    Args:
        id: the worker's number, from 0.
        num_workers: how many there are.
        seed: what the random generators of this worker were seeded with.
        dataset: this process's copy of the dataset.
        rng: None; generators of a worker that is a thread in PyTorch.
        worker_method: "multiprocessing".
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: Any = None
    worker_method: str | None = "multiprocessing"


_worker_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """Return which worker of a `DataLoader` this process is; None in the main process.

    An `IterableDataset` asks it to give each worker a part of its own.

    Example:
        >>> torch.utils.data.get_worker_info() is None
        True
        >>> class Range(torch.utils.data.IterableDataset):
        ...     def __iter__(self):
        ...         info = torch.utils.data.get_worker_info()
        ...         start, step = (0, 1) if info is None else (info.id, info.num_workers)
        ...         return iter(range(start, 6, step))
        >>> list(torch.utils.data.DataLoader(Range(), batch_size=3))
        [tensor([0, 1, 2]), tensor([3, 4, 5])]
    """
    return _worker_info


class _BaseDatasetFetcher:
    """From an index, or a list of indices, to a batch: in the main process or in a worker. PyTorch's names.

    Args:
        auto_collation: whether samples are joined into batches.
        collate_fn: from the samples to a batch.
        drop_last: whether to leave out a last, smaller batch of a stream.
    """

    def __init__(self, dataset: Any, auto_collation: bool, collate_fn: Callable[[Any], Any], drop_last: bool) -> None:
        self.dataset = dataset
        self.auto_collation = auto_collation
        self.collate_fn = collate_fn
        self.drop_last = drop_last

    def fetch(self, possibly_batched_index: Any) -> Any:
        """Return the batch of these indices."""
        raise NotImplementedError


class _MapDatasetFetcher(_BaseDatasetFetcher):
    """Fetches samples by their indices."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        whole = self.auto_collation and is_default(self.collate_fn)
        self._read_batch = batch_reader(self.dataset) if whole else None

    def fetch(self, possibly_batched_index: Any) -> Any:
        if self._read_batch is not None and type(possibly_batched_index) is list:
            batch = self._read_batch(possibly_batched_index)
            if batch is not NotImplemented:
                return batch
        index = possibly_batched_index
        return self.collate_fn(read_samples(self.dataset, index) if self.auto_collation else self.dataset[index])


class _IterableDatasetFetcher(_BaseDatasetFetcher):
    """Takes the next samples of a stream; raises StopIteration at its end."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.dataset_iter = iter(self.dataset)
        self.ended = False

    def fetch(self, possibly_batched_index: Any) -> Any:
        if self.ended:  # a stream that has ended is not asked again
            raise StopIteration
        if not self.auto_collation:
            return self.collate_fn(next(self.dataset_iter))
        wanted = len(possibly_batched_index)
        data = list(itertools.islice(self.dataset_iter, wanted))
        self.ended = len(data) < wanted
        if not data or (self.ended and self.drop_last):
            raise StopIteration
        return self.collate_fn(data)


def create_fetcher(kind: int, *making: Any) -> _BaseDatasetFetcher:
    """Return what fetches: of a stream where `kind` is 1, by indices where it is 0."""
    return _IterableDatasetFetcher(*making) if kind else _MapDatasetFetcher(*making)


@dataclass(frozen=True, slots=True)
class Job:
    """What all workers of a `DataLoader` are told.

    Args:
        count: how many they are.
        making: the arguments of `create_fetcher`.
        base_seed: the seed of worker 0.
        init_fn: the user's `worker_init_fn`, called in each worker with its number.
    """

    count: int
    making: tuple[Any, ...]
    base_seed: int
    init_fn: Callable[[int], Any] | None


class _Words(str):
    """A message that KeyError shows as it is, line by line."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class ExceptionWrapper:
    """An exception (the one that is being handled), to be raised again in another process. PyTorch's names.

    `where` says in its message where it was caught.
    """

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        kind: Any
        kind, error, trace = sys.exc_info() if exc_info is None else exc_info
        self.exc_type = kind
        self._name = kind.__name__
        self.exc_msg = "".join(traceback.format_exception(kind, error, trace))
        self.where = where

    def reraise(self) -> None:
        """Raise an exception of that class that tells its story; RuntimeError where the class does not take a text."""
        message = f"Caught {self._name} {self.where}.\nOriginal {self.exc_msg}"
        message = _Words(message) if self.exc_type is KeyError else message
        try:
            if self.exc_type is not KeyError and getattr(self.exc_type, "message", None):
                error = self.exc_type(message=message)
            else:
                error = self.exc_type(message)
        except Exception:
            raise RuntimeError(message) from None
        raise error


def _seed(base_seed: int, worker: int) -> None:
    """Seed the random generators of a worker, each in a stream of its own."""
    random.seed(base_seed + worker)
    manual_seed(base_seed + worker)
    # NumPy's generator is Python's: with the same seed it would give the same numbers.
    np.random.seed(_generate_state(base_seed, worker))


def _generate_state(base_seed: int, worker_id: int) -> Any:
    """Return a worker's seed for NumPy: four words."""
    words = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    return np.random.SeedSequence(words).generate_state(4)


def _work(tasks: Any, results: Any, job: Job, worker: int) -> None:
    """Answer tasks until told to end: what a worker process runs, with the channels of its tasks and of its results."""
    for others in list(_alive):  # a forked process holds the main process's ends of the channels
        others.forget()
    # Ctrl-C reaches all processes, and the main one tells of it; a channel that is closed says that it has gone.
    with contextlib.suppress(KeyboardInterrupt, EOFError, BrokenPipeError, ConnectionError):
        _answer(tasks, results, job, worker)


def _answer(tasks: Any, results: Any, job: Job, worker: int) -> None:
    global _worker_info
    parent = os.getppid()
    where = f"in DataLoader worker process {worker}"
    set_num_threads(1)
    _seed(job.base_seed, worker)
    is_stream, dataset = job.making[:2]
    _worker_info = WorkerInfo(worker, job.count, job.base_seed + worker, dataset)
    fetcher: _BaseDatasetFetcher | None = None
    failure: ExceptionWrapper | None = None
    ready = ended = False
    try:
        if job.init_fn is not None:
            job.init_fn(worker)
        ready = True
        fetcher = create_fetcher(*job.making)
    except Exception:
        failure = ExceptionWrapper(where=where)

    while True:
        while not tasks.poll(MP_STATUS_CHECK_INTERVAL):
            if os.getppid() != parent:
                return
        task = pickle.loads(tasks.recv_bytes())
        if task is None:
            return
        number, indices = task
        if number is None:  # a new epoch
            ended = False
            if ready:
                try:
                    fetcher, failure = create_fetcher(*job.making), None
                except Exception:
                    failure = ExceptionWrapper(where=where)
            _send(results, (None, None))
            continue
        if ended:
            continue
        answer: Any
        if fetcher is None or failure is not None:
            answer = failure
        else:
            try:
                answer = fetcher.fetch(indices)
            except Exception as error:
                if is_stream and isinstance(error, StopIteration):
                    answer, ended = _END, True
                else:
                    answer = ExceptionWrapper(where=where)
        try:
            _send(results, (number, answer))
        except (BrokenPipeError, ConnectionError):
            raise
        except Exception:  # what cannot be pickled
            failed = answer if isinstance(answer, ExceptionWrapper) else ExceptionWrapper(where=where)
            with contextlib.suppress(Exception):
                pickle.dumps(failed)
                _send(results, (number, failed))
                continue
            failed.exc_type = RuntimeError  # a class that has no name in the main process
            _send(results, (number, failed))
        del answer, task, indices


# Messages -----------------------------------------------------------------------------------------


class _End:
    """Says that a worker's stream has ended."""

    def __reduce__(self) -> str:
        return "_END"


_END = _End()


def _reduced(x: Tensor) -> Any:
    if x.requires_grad and not x.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support "
            "crossing process boundaries.  If you just want to transfer the data, call detach() on the tensor before "
            "serializing (e.g., putting it on the queue)."
        )
    return x.__reduce_ex__(5)


_REDUCED: Any = ChainMap({Tensor: _reduced}, copyreg.dispatch_table)


def _send(channel: Any, value: Any) -> None:
    """Send a value, with its arrays beside the pickle.

    The message is the number of parts (negative: they are in a file, which follows), their sizes, and the parts.
    """
    buffers: list[pickle.PickleBuffer] = []
    pickled = io.BytesIO()
    pickler = pickle.Pickler(pickled, 5, buffer_callback=buffers.append)
    pickler.dispatch_table = _REDUCED
    pickler.dump(value)
    parts = [pickled.getbuffer(), *(buffer.raw() for buffer in buffers)]
    sizes = [part.nbytes for part in parts]
    if sum(sizes) >= _LARGE:
        file = _in_memory(parts)
        if file is not None:
            from multiprocessing import reduction

            try:
                channel.send_bytes(struct.pack(f"={len(sizes) + 1}q", -len(sizes), *sizes))
                reduction.send_handle(channel, file, 0)  # the number is only for Windows
            finally:
                os.close(file)
            return
    head = struct.pack(f"={len(sizes) + 1}q", len(sizes), *sizes)
    channel.send_bytes(b"".join((head, *parts)))


def _in_memory(parts: Sequence[memoryview]) -> int | None:
    """Return a file in memory that holds the parts, or None where there is none to be had."""
    if not hasattr(os, "memfd_create"):
        return None
    file = -1
    try:
        file = os.memfd_create("tinytorch")
        for part in parts:
            done = 0
            while done < part.nbytes:
                done += os.write(file, part[done:])
    except OSError:
        if file >= 0:
            os.close(file)
        return None
    return file


def _receive(channel: Any) -> Any:
    """Return the value that was sent. Its arrays own their memory."""
    message = memoryview(channel.recv_bytes())
    (count,) = struct.unpack_from("=q", message)
    sizes = struct.unpack_from(f"={abs(count)}q", message, 8)
    parts = [np.empty(size, np.uint8) for size in sizes]
    if count < 0:
        from multiprocessing import reduction

        with open(reduction.recv_handle(channel), "rb", buffering=0) as file:
            file.seek(0)
            for part in parts:
                view, done = part.data, 0
                while done < view.nbytes:
                    got = file.readinto(view[done:])
                    if not got:
                        raise EOFError
                    done += got
    else:
        start = 8 * (count + 1)
        for part in parts:
            part[:] = np.frombuffer(message, np.uint8, part.size, start)
            start += part.size
    return pickle.loads(parts[0].data, buffers=parts[1:])


# In the main process ------------------------------------------------------------------------------


def _held_by(channel: Any) -> int:
    """Return how many bytes a channel takes, at the least, while nobody reads from it."""
    fcntl: Any
    try:
        import fcntl

        held: int = fcntl.fcntl(channel.fileno(), fcntl.F_GETPIPE_SZ)
    except (ImportError, AttributeError, OSError):  # not on Linux
        return 1 << 13  # what Windows is asked for; elsewhere it is more
    return held


class Workers:
    """The worker processes of one iterator, seen from the main process."""

    def __init__(self, context: Any, job: Job) -> None:
        self.processes: list[Any] = []
        #: Whether a worker takes tasks: not after its stream ended, until the next epoch, nor when it has died.
        self.active: list[bool] = []
        self._tasks: list[Any] = []
        self._results: list[Any] = []
        self._ahead: list[int] = []  # for each worker the bytes of tasks that it is sent ahead
        self._sent: list[deque[int]] = []  # the sizes of tasks without an answer
        self._waiting: list[deque[bytes]] = []  # and the tasks that are yet to be sent
        _alive.add(self)
        # Ends them when this object dies. It is no `__del__`, which the collector may call after that of the channels:
        # what it holds, the channels too, outlives this object. Python's own exit ends daemon processes.
        self._end = weakref.finalize(self, _end, os.getpid(), self.processes, self._tasks, self._results)
        self._end.atexit = False
        try:
            for worker in range(job.count):
                self._start(context, worker, job)
        except BaseException:
            self.shut_down()
            raise

    def _start(self, context: Any, worker: int, job: Job) -> None:
        its_tasks, tasks = context.Pipe(duplex=False)
        results, its_results = context.Pipe(duplex=True)  # a socket, which can carry files
        self._tasks.append(tasks)
        self._ahead.append(_held_by(tasks) // 2)
        self._results.append(results)
        process = context.Process(target=_work, args=(its_tasks, its_results, job, worker), daemon=True)
        try:
            process.start()
        except (TypeError, AttributeError, pickle.PicklingError):
            warnings.warn(
                "Got pickle error when attempting to start a worker Process. This might be because the worker Process "
                "arguments are not picklable. Python 3.14+ changed the multiprocessing start method in non-Mac POSIX "
                "platforms to 'forkserver', which requires the worker Process arguments to be picklable. You can also "
                "try multiprocessing.set_start_method('fork').",
                stacklevel=2,
            )
            raise
        finally:
            # The worker alone holds these ends: when it dies, the other end notices.
            its_tasks.close()
            its_results.close()
        self.processes.append(process)
        self.active.append(True)
        self._sent.append(deque())
        self._waiting.append(deque())

    def put(self, worker: int, number: int, indices: Any) -> None:
        """Give a worker a task."""
        self._waiting[worker].append(pickle.dumps((number, indices), 5))
        self._feed(worker)

    def _feed(self, worker: int) -> None:
        """Send tasks that wait, so few that sending never has to wait for a worker that waits for us to read."""
        waiting, sent = self._waiting[worker], self._sent[worker]
        ahead = self._ahead[worker]
        while waiting and (not sent or sum(sent) + len(waiting[0]) <= ahead):
            message = waiting.popleft()
            sent.append(len(message))
            # A worker that has died is told of where its answer is missed.
            with contextlib.suppress(BrokenPipeError, ConnectionError):
                self._tasks[worker].send_bytes(message)

    def get(self, workers: Iterable[int], timeout: float) -> tuple[int, int | None, Any]:
        """Return the next answer of one of these workers: (worker, task number, batch or failure).

        Raises:
            RuntimeError: there is none within `timeout` seconds (if it is not 0), or a worker has died.
        """
        if not self._end.alive:
            raise AssertionError("the workers of this iterator have been shut down")
        channels = {self._results[worker]: worker for worker in workers}
        for channel, worker in channels.items():
            with contextlib.suppress(EOFError, ConnectionError):
                if channel.poll(0):
                    return self._read(channel, worker)
        from multiprocessing.connection import wait

        watched = {process.sentinel: worker for worker, process in enumerate(self.processes) if self.active[worker]}
        ready = wait([*channels, *watched], timeout or None)
        dead = [watched[each] for each in ready if isinstance(each, int)]
        for each in ready:
            if not isinstance(each, int):
                worker = channels[each]
                try:
                    return self._read(each, worker)
                except (EOFError, ConnectionError):
                    dead = dead if worker in dead else [*dead, worker]
        if not dead:
            raise RuntimeError(f"DataLoader timed out after {timeout} seconds")
        for worker in dead:
            self.active[worker] = False
            self.processes[worker].join(MP_STATUS_CHECK_INTERVAL)
        pids = ", ".join(str(self.processes[worker].pid) for worker in dead)
        codes = ", ".join(str(self.processes[worker].exitcode) for worker in dead)
        raise RuntimeError(
            f"DataLoader worker (pid(s) {pids}) exited unexpectedly with exit code(s) {codes}. "
            "Rerunning with num_workers=0 may give a better error trace."
        )

    def _read(self, channel: Any, worker: int) -> tuple[int, int | None, Any]:
        try:
            number, answer = _receive(channel)
        except (EOFError, ConnectionError):
            raise
        except Exception:  # an object that cannot be made here; the message itself has been read
            self._answered(worker)
            raise
        self._answered(worker)
        return worker, number, answer

    def _answered(self, worker: int) -> None:
        if self._sent[worker]:
            self._sent[worker].popleft()
        self._feed(worker)

    def ended(self, answer: Any) -> bool:
        """Return whether an answer says that the worker's stream has ended."""
        return answer is _END

    def finish(self, worker: int) -> None:
        """Let a worker end, as its stream has."""
        self.active[worker] = False
        with contextlib.suppress(OSError):
            self._tasks[worker].send_bytes(pickle.dumps(None))

    def resume(self, timeout: float) -> None:
        """Begin a new epoch with the same processes: what was asked for in the last one is thrown away."""
        for worker in range(len(self.processes)):
            self.active[worker] = True
            self._waiting[worker].clear()
            with contextlib.suppress(BrokenPipeError, ConnectionError):
                self._tasks[worker].send_bytes(pickle.dumps((None, None)))
        for worker in range(len(self.processes)):
            while self.get([worker], timeout)[1] is not None:
                pass
            self._sent[worker].clear()

    def forget(self) -> None:
        """Close the channels, in a forked process: they are the main process's."""
        self._end.detach()
        for channel in (*self._tasks, *self._results):
            channel.close()

    def shut_down(self) -> None:
        """End the processes and wait until they have: those that are busy may finish their batch, within 5 seconds."""
        self._end()


def _end(owner: int, processes: list[Any], tasks: list[Any], results: list[Any]) -> None:
    """Shut down the workers that the process `owner` has started."""
    if owner != os.getpid():
        return
    for channel in tasks:
        with contextlib.suppress(OSError):
            channel.send_bytes(pickle.dumps(None))
    for channel in (*tasks, *results):
        channel.close()  # so that a worker that waits to send ends as well
    deadline = time.monotonic() + MP_STATUS_CHECK_INTERVAL
    try:
        for process in processes:
            process.join(max(deadline - time.monotonic(), 0))
    finally:
        for process in processes:
            if process.is_alive():
                process.terminate()
                process.join(1)
            if process.is_alive():
                process.kill()
                process.join()


#: The workers that this process has started; a worker that is forked closes what it inherits of them.
_alive: weakref.WeakSet[Workers] = weakref.WeakSet()
