"""Worker processes of the `DataLoader`: their main loop, their start and end, and the messages between processes.

A worker has two channels to the main process, one for tasks (indices) and one for results, which it shares with no
other worker: there is no shared lock, and a worker that dies does not affect others. A worker processes its tasks in
order, so the main process knows which channel the next batch comes from. A result is a pickle with out-of-band buffers
(protocol 5). If it is large and the system has `memfd_create`, it is passed as an anonymous file in memory: the worker
does not wait for the main process to read it, and nothing is left behind if a process is killed.
"""

from __future__ import annotations

import contextlib
import copyreg
import functools
import io
import itertools
import os
import pickle
import random
import struct
import sys
import time
import traceback
import weakref
from collections import ChainMap, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinytorch.core.tensor import Tensor, _unpickle
from tinytorch.core.warning import warn
from tinytorch.data.collate import is_default
from tinytorch.data.dataset import batch_reader, read_samples
from tinytorch.kernels.parallel import set_num_threads
from tinytorch.ops.random import manual_seed

__all__ = ["ExceptionWrapper", "Job", "WorkerInfo", "Workers", "create_fetcher", "get_worker_info", "missing_processes"]

MP_STATUS_CHECK_INTERVAL = 5.0  # seconds between checks that the main process lives; time for workers to exit
_LARGE = 1 << 15  # messages of at least so many bytes are passed as a file in memory, not through the channel


# In a worker --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """The result of `get_worker_info` in a worker.

    Args:
        id: the worker's number, from 0.
        num_workers: the number of workers.
        seed: the seed of this worker's random generators.
        dataset: this process's copy of the dataset.
        rng: None; for PyTorch's workers that are threads.
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
    """Return information about the worker process that calls it, or None in the main process.

    An `IterableDataset` uses it to divide the samples among the workers.

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
    """Loads the batch of an index, or a list of indices, in the main process or in a worker (PyTorch's names)."""

    def __init__(self, dataset: Any, auto_collation: bool, collate_fn: Callable[[Any], Any], drop_last: bool) -> None:
        self.dataset = dataset
        self.auto_collation = auto_collation
        self.collate_fn = collate_fn
        self.drop_last = drop_last

    def fetch(self, possibly_batched_index: Any) -> Any:
        """Return the batch of these indices."""
        raise NotImplementedError


class _MapDatasetFetcher(_BaseDatasetFetcher):
    """Fetches samples by index."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        by_batch = self.auto_collation and is_default(self.collate_fn)
        self._read_batch = batch_reader(self.dataset) if by_batch else None

    def fetch(self, possibly_batched_index: Any) -> Any:
        if self._read_batch is not None and type(possibly_batched_index) is list:
            batch = self._read_batch(possibly_batched_index)
            if batch is not NotImplemented:
                return batch
        index = possibly_batched_index
        return self.collate_fn(read_samples(self.dataset, index) if self.auto_collation else self.dataset[index])


class _IterableDatasetFetcher(_BaseDatasetFetcher):
    """Fetches the next samples of a stream; raises StopIteration at its end."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.dataset_iter = iter(self.dataset)
        self.ended = False

    def fetch(self, possibly_batched_index: Any) -> Any:
        if self.ended:  # do not advance an iterator that has ended
            raise StopIteration
        if not self.auto_collation:
            return self.collate_fn(next(self.dataset_iter))
        size = len(possibly_batched_index)
        data = list(itertools.islice(self.dataset_iter, size))
        self.ended = len(data) < size
        if not data or (self.ended and self.drop_last):
            raise StopIteration
        return self.collate_fn(data)


def create_fetcher(kind: int, *args: Any) -> _BaseDatasetFetcher:
    """Return the fetcher of an IterableDataset (`kind` 1) or of a map-style dataset (`kind` 0)."""
    return _IterableDatasetFetcher(*args) if kind else _MapDatasetFetcher(*args)


@dataclass(frozen=True, slots=True)
class Job:
    """The configuration of all workers of a `DataLoader`.

    Args:
        count: the number of workers.
        fetcher_args: the arguments of `create_fetcher`.
        base_seed: the seed of worker 0.
        init_fn: the user's `worker_init_fn`, called in every worker with its number.
    """

    count: int
    fetcher_args: tuple[Any, ...]
    base_seed: int
    init_fn: Callable[[int], Any] | None


class _RawMessage(str):
    """A message that KeyError prints unquoted, with its line breaks."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class ExceptionWrapper:
    """The exception that is being handled, to be re-raised in another process. The names are PyTorch's.

    `where` becomes part of the message, and tells where it was caught.
    """

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        kind: Any
        kind, error, trace = sys.exc_info() if exc_info is None else exc_info
        self.exc_type = kind
        self._name = kind.__name__
        self.exc_msg = "".join(traceback.format_exception(kind, error, trace))
        self.where = where

    def reraise(self) -> None:
        """Raise an exception of the same class, with the original traceback in its message; or else a RuntimeError."""
        message = f"Caught {self._name} {self.where}.\nOriginal {self.exc_msg}"
        message = _RawMessage(message) if self.exc_type is KeyError else message
        try:
            if self.exc_type is not KeyError and getattr(self.exc_type, "message", None):
                error = self.exc_type(message=message)
            else:
                error = self.exc_type(message)
        except Exception:
            raise RuntimeError(message) from None
        raise error


def _seed(base_seed: int, worker: int) -> None:
    """Seed the random generators of a worker, each with an independent stream."""
    random.seed(base_seed + worker)
    manual_seed(base_seed + worker)
    # NumPy's generator is the same as Python's: with the same seed it would return the same numbers.
    np.random.seed(_generate_state(base_seed, worker))


def _generate_state(base_seed: int, worker_id: int) -> Any:
    """Return a worker's seed for NumPy, of four words."""
    words = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    return np.random.SeedSequence(words).generate_state(4)


def _work(tasks: Any, results: Any, job: Job, worker: int) -> None:
    """Run a worker process: receive tasks from one channel and send results to another, until told to exit."""
    for workers in list(_alive):  # a forked process inherits the main process's ends of the channels
        workers.forget()
    # Ctrl-C reaches all processes, and is reported by the main one. A closed channel means that the main one has ended.
    with contextlib.suppress(KeyboardInterrupt, EOFError, BrokenPipeError, ConnectionError):
        _process_tasks(tasks, results, job, worker)


def _process_tasks(tasks: Any, results: Any, job: Job, worker: int) -> None:
    global _worker_info
    parent = os.getppid()
    where = f"in DataLoader worker process {worker}"
    set_num_threads(1)
    _seed(job.base_seed, worker)
    is_stream, dataset = job.fetcher_args[:2]
    _worker_info = WorkerInfo(worker, job.count, job.base_seed + worker, dataset)
    fetcher: _BaseDatasetFetcher | None = None
    failure: ExceptionWrapper | None = None
    ready = ended = False
    try:
        if job.init_fn is not None:
            job.init_fn(worker)
        ready = True
        fetcher = create_fetcher(*job.fetcher_args)
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
                    fetcher, failure = create_fetcher(*job.fetcher_args), None
                except Exception:
                    failure = ExceptionWrapper(where=where)
            _send(results, (None, None))
            continue
        if ended:
            continue
        result: Any
        if fetcher is None or failure is not None:
            result = failure
        else:
            try:
                result = fetcher.fetch(indices)
            except Exception as error:
                if is_stream and isinstance(error, StopIteration):
                    result, ended = _END, True
                else:
                    result = ExceptionWrapper(where=where)
        try:
            _send(results, (number, result))
        except (BrokenPipeError, ConnectionError):
            raise
        except Exception:  # the result cannot be pickled
            failed = result if isinstance(result, ExceptionWrapper) else ExceptionWrapper(where=where)
            with contextlib.suppress(Exception):
                pickle.dumps(failed)
                _send(results, (number, failed))
                continue
            failed.exc_type = RuntimeError  # the class of the exception cannot be pickled
            _send(results, (number, failed))
        del result, task, indices


# Messages -----------------------------------------------------------------------------------------


class _End:
    """Marks the end of a worker's stream."""

    def __reduce__(self) -> str:
        return "_END"


_END = _End()


def _reduce_tensor(x: Tensor) -> Any:
    if x.requires_grad and not x.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support "
            "crossing process boundaries.  If you just want to transfer the data, call detach() on the tensor before "
            "serializing (e.g., putting it on the queue)."
        )
    return _unpickle, (Tensor, x._array, x.requires_grad, x.__dict__)  # (the pickler passes arrays on without a copy)


_DISPATCH_TABLE: Any = ChainMap({Tensor: _reduce_tensor}, copyreg.dispatch_table)


def _send(channel: Any, value: Any) -> None:
    """Send a value as a pickle with out-of-band buffers.

    The message consists of the number of parts (negative if they are in a file, which is sent next), their sizes, and
    the parts.
    """
    buffers: list[pickle.PickleBuffer] = []
    pickled = io.BytesIO()
    pickler = pickle.Pickler(pickled, 5, buffer_callback=buffers.append)
    pickler.dispatch_table = _DISPATCH_TABLE
    pickler.dump(value)
    parts = [pickled.getbuffer(), *(buffer.raw() for buffer in buffers)]
    sizes = [part.nbytes for part in parts]
    if sum(sizes) >= _LARGE:
        file = _memory_file(parts)
        if file is not None:
            from multiprocessing import reduction

            try:
                channel.send_bytes(struct.pack(f"={len(sizes) + 1}q", -len(sizes), *sizes))
                reduction.send_handle(channel, file, 0)  # the process id is used on Windows only
            finally:
                os.close(file)
            return
    head = struct.pack(f"={len(sizes) + 1}q", len(sizes), *sizes)
    channel.send_bytes(b"".join((head, *parts)))


def _memory_file(parts: Sequence[memoryview]) -> int | None:
    """Return the descriptor of a file in memory that contains the parts, or None if not available."""
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
    """Receive a value. Its arrays own their memory."""
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
                    size = file.readinto(view[done:])
                    if not size:
                        raise EOFError
                    done += size
    else:
        start = 8 * (count + 1)
        for part in parts:
            part[:] = np.frombuffer(message, np.uint8, part.size, start)
            start += part.size
    return pickle.loads(parts[0].data, buffers=parts[1:])


# In the main process ------------------------------------------------------------------------------


def _capacity(channel: Any) -> int:
    """Return a lower bound of the bytes that a channel can buffer while nobody reads from it."""
    fcntl: Any
    try:
        import fcntl

        capacity: int = fcntl.fcntl(channel.fileno(), fcntl.F_GETPIPE_SZ)
    except (ImportError, AttributeError, OSError):  # not on Linux
        return 1 << 13  # the size on Windows; it is larger elsewhere
    return capacity


@functools.cache
def missing_processes() -> str:
    """Return why this Python cannot start processes; an empty text where it can."""
    if sys.platform in ("emscripten", "wasi"):
        return f"there are none on {sys.platform}"
    try:
        import multiprocessing.connection  # noqa: F401  (the part of it that is written in C may be missing)
    except ImportError as error:
        return str(error)
    return ""


class Workers:
    """The worker processes of one iterator, managed by the main process."""

    def __init__(self, context: Any, job: Job) -> None:
        self.processes: list[Any] = []
        #: Whether a worker accepts tasks: not if it has died, nor from the end of its stream until the next epoch.
        self.active: list[bool] = []
        self._tasks: list[Any] = []
        self._results: list[Any] = []
        self._limits: list[int] = []  # for each worker, the largest number of bytes of unprocessed tasks to send
        self._sent: list[deque[int]] = []  # for each worker, the sizes of sent tasks without a result
        self._queued: list[deque[bytes]] = []  # for each worker, the tasks that are not sent yet
        _alive.add(self)
        # Shuts the workers down when this object dies. Unlike `__del__`, a finalizer keeps the channels alive.
        # At exit Python itself ends daemon processes.
        self._end = weakref.finalize(self, _end, os.getpid(), self.processes, self._tasks, self._results)
        self._end.atexit = False
        try:
            for worker in range(job.count):
                self._start(context, worker, job)
        except BaseException:
            self.shut_down()
            raise

    def _start(self, context: Any, worker: int, job: Job) -> None:
        worker_tasks, tasks = context.Pipe(duplex=False)
        results, worker_results = context.Pipe(duplex=True)  # a socket, which can transfer files
        self._tasks.append(tasks)
        self._limits.append(_capacity(tasks) // 2)
        self._results.append(results)
        process = context.Process(target=_work, args=(worker_tasks, worker_results, job, worker), daemon=True)
        try:
            process.start()
        except (TypeError, AttributeError, pickle.PicklingError):
            warn(
                "Got pickle error when attempting to start a worker Process. This might be because the worker Process "
                "arguments are not picklable. Python 3.14+ changed the multiprocessing start method in non-Mac POSIX "
                "platforms to 'forkserver', which requires the worker Process arguments to be picklable. You can also "
                "try multiprocessing.set_start_method('fork')."
            )
            raise
        finally:
            # Only the worker keeps these ends open: when it dies, the other ends report it.
            worker_tasks.close()
            worker_results.close()
        self.processes.append(process)
        self.active.append(True)
        self._sent.append(deque())
        self._queued.append(deque())

    def put(self, worker: int, number: int, indices: Any) -> None:
        """Assign a task to a worker."""
        self._queued[worker].append(pickle.dumps((number, indices), 5))
        self._send_queued(worker)

    def _send_queued(self, worker: int) -> None:
        """Send queued tasks up to the limit: sending must not block, which is a deadlock if the worker blocks, too."""
        queued, sent = self._queued[worker], self._sent[worker]
        limit = self._limits[worker]
        while queued and (not sent or sum(sent) + len(queued[0]) <= limit):
            message = queued.popleft()
            sent.append(len(message))
            # If the worker has died, `get` reports it.
            with contextlib.suppress(BrokenPipeError, ConnectionError):
                self._tasks[worker].send_bytes(message)

    def get(self, workers: Iterable[int], timeout: float) -> tuple[int, int | None, Any]:
        """Return the next result of one of these workers, as (worker, task number, batch or ExceptionWrapper).

        Raises:
            RuntimeError: there is no result within `timeout` seconds (if it is not 0), or a worker has died.
        """
        if not self._end.alive:
            raise AssertionError("the workers of this iterator have been shut down")
        channels = {self._results[worker]: worker for worker in workers}
        for channel, worker in channels.items():
            with contextlib.suppress(EOFError, ConnectionError):
                if channel.poll(0):
                    return self._read(channel, worker)
        from multiprocessing.connection import wait

        sentinels = {process.sentinel: worker for worker, process in enumerate(self.processes) if self.active[worker]}
        ready = wait([*channels, *sentinels], timeout or None)
        dead = [sentinels[handle] for handle in ready if isinstance(handle, int)]
        for channel in ready:
            if not isinstance(channel, int):
                worker = channels[channel]
                try:
                    return self._read(channel, worker)
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
            number, result = _receive(channel)
        except (EOFError, ConnectionError):
            raise
        except Exception:  # an object that cannot be unpickled here; the message itself has been read
            self._mark_answered(worker)
            raise
        self._mark_answered(worker)
        return worker, number, result

    def _mark_answered(self, worker: int) -> None:
        if self._sent[worker]:
            self._sent[worker].popleft()
        self._send_queued(worker)

    def ended(self, result: Any) -> bool:
        """Return whether a result marks the end of the worker's stream."""
        return result is _END

    def finish(self, worker: int) -> None:
        """Let a worker exit after its stream has ended."""
        self.active[worker] = False
        with contextlib.suppress(OSError):
            self._tasks[worker].send_bytes(pickle.dumps(None))

    def resume(self, timeout: float) -> None:
        """Start a new epoch with the same processes; outstanding results of the last one are discarded."""
        for worker in range(len(self.processes)):
            self.active[worker] = True
            self._queued[worker].clear()
            with contextlib.suppress(BrokenPipeError, ConnectionError):
                self._tasks[worker].send_bytes(pickle.dumps((None, None)))
        for worker in range(len(self.processes)):
            while self.get([worker], timeout)[1] is not None:
                pass
            self._sent[worker].clear()

    def forget(self) -> None:
        """Close the channels in a forked process, which inherits them from the main process."""
        self._end.detach()
        for channel in (*self._tasks, *self._results):
            channel.close()

    def shut_down(self) -> None:
        """Shut down the processes and wait for them; a busy process has five seconds to finish its batch."""
        self._end()


def _end(owner: int, processes: list[Any], tasks: list[Any], results: list[Any]) -> None:
    """Shut down the workers, if this is the process that started them (`owner`)."""
    if owner != os.getpid():
        return
    for channel in tasks:
        with contextlib.suppress(OSError):
            channel.send_bytes(pickle.dumps(None))
    for channel in (*tasks, *results):
        channel.close()  # so that a worker that is blocked in sending ends, too
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


#: The `Workers` of this process, whose channels a forked worker closes.
_alive: weakref.WeakSet[Workers] = weakref.WeakSet()
