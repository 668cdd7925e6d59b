"""Worker processes of the DataLoader: batches, draws, errors and ends are PyTorch's, and none is left over."""

from __future__ import annotations

import gc
import itertools
import multiprocessing
import os
import pickle
import random
import re
import signal
import subprocess
import sys
import time
import warnings
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest

import tinytorch
from tests.data.programs import assert_same, plain, state
from tests.oracle import needs_oracle
from tests.turns import quarter
from tinytorch.data.worker import ExceptionWrapper, _receive, _send

pytestmark = [
    pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="the datasets are not pickled"),
    pytest.mark.filterwarnings("ignore:This DataLoader will create"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning"),
]

Pair = namedtuple("Pair", "x y")


@pytest.fixture(autouse=True)
def no_process_is_left():
    yield
    if multiprocessing.active_children():  # what an exception's traceback still holds
        gc.collect()
    assert not multiprocessing.active_children()


def load(library, dataset, batch_size=1, num_workers=2, **options):
    options.setdefault("multiprocessing_context", "fork")
    return library.utils.data.DataLoader(dataset, batch_size, num_workers=num_workers, **options)


class Each:
    """A dataset of `function(index)`."""

    def __init__(self, function, n=7):
        self.function, self.n = function, n

    def __getitem__(self, index):
        return self.function(index)

    def __len__(self):
        return self.n


def streams(library, lengths, told=None):
    """Return an IterableDataset of which worker k reads `lengths[k]` samples."""

    class Stream(library.utils.data.IterableDataset):
        def __iter__(self):
            info = library.utils.data.get_worker_info()
            return iter(range(100 * info.id, 100 * info.id + lengths[info.id]))

        def __len__(self):
            return told

    return Stream()


def tensors(library, n=11):
    return library.utils.data.TensorDataset(library.arange(2 * n).reshape(n, 2), library.arange(n))


LOADERS = {
    "batches": lambda t: load(t, tensors(t), 4),
    "one worker": lambda t: load(t, tensors(t), 4, num_workers=1),
    "drop_last": lambda t: load(t, tensors(t), 4, drop_last=True),
    "shuffle": lambda t: load(t, tensors(t), 2, shuffle=True),
    "shuffle, generator": lambda t: load(t, tensors(t), 4, shuffle=True, generator=t.Generator().manual_seed(9)),
    "prefetch": lambda t: load(t, tensors(t), 1, prefetch_factor=1, shuffle=True),
    "prefetch far": lambda t: load(t, tensors(t), 1, prefetch_factor=50, shuffle=True),
    "persistent": lambda t: load(t, tensors(t), 2, shuffle=True, persistent_workers=True),
    "batch_sampler": lambda t: load(t, tensors(t), batch_sampler=[[0], [2, 1], [3]]),
    "an eager sampler": lambda t: load(t, tensors(t), None, sampler=Eager(t)),
    "no batches": lambda t: load(t, tensors(t), None),
    "collate_fn": lambda t: load(t, tensors(t), 4, collate_fn=len),
    "pairs": lambda t: load(t, Each(lambda i: Pair(t.full((3,), i), {"y": str(i)})), 2),
    "large batches": lambda t: load(t, Each(lambda i: t.arange(20000) * i, 3), 2, shuffle=True),
    "a subset": lambda t: load(t, t.utils.data.random_split(tensors(t), [7, 4])[0], 2),
    "a timeout": lambda t: load(t, tensors(t), 4, timeout=20),
    "torch.rand in workers": lambda t: load(t, Each(lambda i: t.rand(2)), 2),
    "random in workers": lambda t: load(t, Each(lambda i: random.random()), 2),
    "NumPy in workers": lambda t: load(t, Each(lambda i: np.random.rand(3)), 2),
    "persistent, torch.rand": lambda t: load(t, Each(lambda i: t.rand(2)), persistent_workers=True),
    "seed": lambda t: load(t, Each(lambda i: (t.utils.data.get_worker_info().seed, t.initial_seed()))),
    "worker_init_fn": lambda t: load(t, Each(lambda i: t.rand(1)), worker_init_fn=t.manual_seed),
    "threads": lambda t: load(t, Each(lambda i: t.get_num_threads()), 4),
    "a matrix product": lambda t: load(t, Each(lambda i: t.ones(300, 300) @ t.ones(300, 3)), 4),
    "streams": lambda t: load(t, streams(t, [5, 5]), 2),
    "streams that end early": lambda t: load(t, streams(t, [2, 9]), 2),
    "an empty stream": lambda t: load(t, streams(t, [0, 5]), 2),
    "streams, drop_last": lambda t: load(t, streams(t, [3, 5]), 2, drop_last=True),
    "streams, no batches": lambda t: load(t, streams(t, [1, 3]), None),
    "streams, persistent": lambda t: load(t, streams(t, [5, 1]), 2, persistent_workers=True),
}


class Eager:
    """A sampler that draws when its iterator is made."""

    def __init__(self, library):
        self.library = library

    def __iter__(self):
        return iter(self.library.randperm(5).tolist())


@needs_oracle
@pytest.mark.parametrize("name", LOADERS)
def test_two_epochs_and_what_follows_are_as_in_pytorch(name: str) -> None:
    def program(library):
        library.manual_seed(5)
        loader = LOADERS[name](library)
        first, after_first = list(loader), state(library)
        return first, after_first, list(loader), state(library), loader.prefetch_factor

    assert_same(program)


@needs_oracle
def test_worker_info_is_pytorchs() -> None:
    def program(library):
        dataset = Each(None, 4)

        def sample(index):
            info = library.utils.data.get_worker_info()
            try:
                info.id = 3
            except AttributeError:
                return (info.id, info.num_workers, info.dataset is not None, info.worker_method)
            raise AssertionError("it can be changed")

        dataset.function = sample
        assert library.utils.data.get_worker_info() is None
        return list(load(library, dataset))

    assert_same(program)


class TwoArguments(Exception):
    def __init__(self, a, b):
        super().__init__(a, b)


class WithMessage(Exception):
    message = "no"

    def __init__(self, message):
        super().__init__(message)


def fails(kind, *args):
    def sample(index):
        if index == 1:
            raise kind(*args)
        return index

    return sample


FAILURES = {
    "ValueError": lambda t: load(t, Each(fails(ValueError, "this is wrong"))),
    "KeyError": lambda t: load(t, Each(fails(KeyError, "a key"))),
    "two arguments": lambda t: load(t, Each(fails(TwoArguments, 1, 2))),
    "message": lambda t: load(t, Each(fails(WithMessage, "the message"))),
    "index": lambda t: load(t, [1, 2, 3], sampler=[0, 7]),
    "worker_init_fn": lambda t: load(t, [1, 2, 3], worker_init_fn=fails(OSError, "no file")),
    "collate_fn": lambda t: load(t, [1, None]),
    "a stream": lambda t: load(t, t.utils.data.ChainDataset([[1, 2]])),
}


@needs_oracle
@pytest.mark.parametrize("name", FAILURES)
def test_what_a_worker_raises_is_raised_in_the_main_process(name: str) -> None:
    def program(library):
        seen = []
        batches = iter(FAILURES[name](library))
        while True:
            try:
                seen.append(next(batches))
            except Exception as error:
                lines = str(error).splitlines()
                seen.append((type(error).__name__, lines[:2], lines[-1]))
                batches._shutdown_workers()  # else PyTorch's end 10 seconds later
                return seen

    assert_same(program)


@needs_oracle
def test_the_batches_after_a_failure_are_there() -> None:
    def program(library):
        batches = iter(load(library, Each(fails(ValueError, "this"))))
        first = next(batches)
        with pytest.raises(ValueError, match="Caught ValueError in DataLoader worker process 1"):
            next(batches)
        return first, list(batches)

    assert_same(program)


def test_an_exception_class_without_a_name_is_a_runtime_error() -> None:
    class Hidden(Exception):
        pass

    with pytest.raises(RuntimeError, match=r"Caught Hidden in DataLoader worker process 1(.|\n)*why"):
        list(load(tinytorch, Each(fails(Hidden, "why"))))


def test_workers_end_that_the_garbage_collector_finds() -> None:
    gc.disable()  # but for when this test says
    try:
        batches = iter(load(tinytorch, [1, 2, 3]))
        channel = batches._pool._results[0]
        cycle = [batches]
        cycle.append(cycle)
        del batches
        gc.collect()  # puts what only the cycle leads to behind the channel, in the collector's order
        del channel, cycle
        gc.collect()
    finally:
        gc.enable()
    assert not multiprocessing.active_children()


def test_a_batch_that_cannot_be_pickled_is_an_error() -> None:
    w = tinytorch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="non-leaf tensor"):
        list(load(tinytorch, Each(lambda i: w * i)))


def test_workers_end_with_an_iterator_that_is_garbage() -> None:
    """The collector calls the channels' finalizers before the workers', if the channels are older."""
    fork = multiprocessing.get_context("fork")
    channels = [fork.Pipe(duplex) for _ in range(2) for duplex in (False, True)]

    class Context(type(fork)):
        def Pipe(self, duplex=True):
            return channels.pop(0)

    batches = iter(load(tinytorch, [1, 2, 3], multiprocessing_context=Context()))
    next(batches)
    batches.itself = batches
    del batches
    gc.collect()
    assert not multiprocessing.active_children()


@needs_oracle
@pytest.mark.parametrize("how", ["exit", "kill"])
def test_a_worker_that_dies(how: str) -> None:
    def sample(index):
        if index == 1:
            os._exit(3) if how == "exit" else os.kill(os.getpid(), signal.SIGKILL)
        return index

    def program(library):
        batches = iter(load(library, Each(sample)))
        try:
            list(batches)
        finally:
            batches._shutdown_workers()

    start = time.monotonic()
    assert_same(program, "exited unexpectedly")
    assert time.monotonic() - start < 10


@needs_oracle
def test_timeout_is_pytorchs() -> None:
    def program(library):
        batches = iter(load(library, Each(lambda i: time.sleep(0.6) or i, 2), timeout=0.1))
        try:
            next(batches)
        finally:
            batches._shutdown_workers()

    assert_same(program, "DataLoader timed out after 0.1 seconds")


ERRORS = {
    "context": (
        lambda t: load(t, [1], multiprocessing_context="thread"),
        f"should specify a valid start method in {multiprocessing.get_all_start_methods()}",
    ),
    "context type": (
        lambda t: load(t, [1], multiprocessing_context=3),
        "should be a valid context object or a string specifying the start method",
    ),
    "set later": (
        lambda t: setattr(t.utils.data.DataLoader([1]), "multiprocessing_context", "fork"),
        "can only be used with multi-process loading",
    ),
}


@needs_oracle
@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_pytorchs(name: str) -> None:
    make, words = ERRORS[name]
    assert_same(make, words)


def test_no_prefetching_is_an_error() -> None:
    with pytest.raises(AssertionError, match="prefetch_factor must be greater than 0"):
        iter(load(tinytorch, [1], prefetch_factor=0))


def test_an_iterator_cannot_be_pickled_nor_used_after_its_workers() -> None:
    batches = iter(load(tinytorch, [1, 2, 3]))
    with pytest.raises(NotImplementedError, match="cannot be pickled"):
        pickle.dumps(batches)
    next(batches)
    batches._shutdown_workers()
    assert next(batches, None) is None  # as in PyTorch


@needs_oracle
def test_warnings_are_pytorchs() -> None:
    def program(library):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            load(library, [1], num_workers=1000)
            loader = load(library, streams(library, [2, 2], told=3))
            len(loader)
            list(loader)
        return [(w.category.__name__, re.sub("0x[0-9a-f]+", "", str(w.message))) for w in caught]

    assert_same(program)


@needs_oracle
def test_without_an_order_all_batches_come() -> None:
    def program(library):
        loader = load(library, Each(lambda i: i, 20), 3, in_order=False, shuffle=True)
        return sorted(x for batch in loader for x in batch.tolist())

    assert_same(program)


def test_without_an_order_a_slow_worker_holds_nothing_up() -> None:
    loader = load(tinytorch, Each(lambda i: time.sleep(0.5 * (i == 0)) or i, 6), in_order=False)
    order = [int(batch) for batch in loader]
    assert order[0] != 0 and sorted(order) == list(range(6))


def test_persistent_workers_stay_the_same_processes() -> None:
    loader = load(tinytorch, Each(lambda i: os.getpid()), persistent_workers=True)
    first = {int(pid) for pid in loader}
    for _ in loader:  # an epoch that is broken off: the next one starts anew
        break
    assert {int(pid) for pid in loader} == first and len(first) == 2
    assert len(list(loader)) == 7
    assert os.getpid() not in first
    del loader  # they end with the loader


def test_a_loop_that_ends_early_leaves_no_process() -> None:
    for _ in load(tinytorch, Each(lambda i: tinytorch.zeros(100000), 50)):
        break
    assert not multiprocessing.active_children()


def test_loaders_side_by_side() -> None:
    one, two = iter(load(tinytorch, [1, 2, 3])), iter(load(tinytorch, [4, 5, 6]))
    pairs = [(int(a), int(b)) for a, b in zip(one, two, strict=True)]
    assert pairs == [(1, 4), (2, 5), (3, 6)]


def test_many_indices_and_large_answers_do_not_block_each_other() -> None:
    """What a channel holds is bounded: with both full, each process would wait for the other."""
    n = 400_000
    loader = load(tinytorch, Each(None, n), n // 40, collate_fn=lambda x: "x" * 300_000, prefetch_factor=20)
    loader.dataset.function = int
    assert [len(x) for x in loader] == [300_000] * 40


@pytest.mark.skipif(sys.platform != "linux", reason="the size of a channel cannot be chosen")
def test_channels_that_hold_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """As some systems' do; the main process must not wait for a worker that waits for it."""
    import fcntl

    class Narrow(type(multiprocessing.get_context("fork"))):
        def Pipe(self, duplex=True):
            ends = super().Pipe(duplex)
            if not duplex:
                fcntl.fcntl(ends[1].fileno(), fcntl.F_SETPIPE_SZ, 4096)
            return ends

    monkeypatch.delattr(os, "memfd_create")
    loader = load(
        tinytorch, Each(int, 30_000), 1500, collate_fn=lambda x: "x" * 300_000, prefetch_factor=10,
        multiprocessing_context=Narrow(),
    )  # fmt: skip
    assert [len(x) for x in loader] == [300_000] * 20


def test_work_that_is_shared_among_threads_goes_on_in_workers() -> None:
    """The main process's threads are not there after a fork."""

    def sample(index):
        x = tinytorch.full((600, 600), float(index))
        return (x @ x).sum() + x.sqrt().exp().sum()

    before = [sample(index).item() for index in range(4)]
    loader = load(tinytorch, Each(sample, 4))
    assert [batch.item() for batch in loader] == pytest.approx(before)


def test_a_batch_may_be_written_to() -> None:
    for batch in load(tinytorch, Each(lambda i: tinytorch.ones(20000)), 2):
        batch.add_(1)
        assert batch.sum().item() == 2 * batch.numel()


def test_other_start_methods() -> None:
    dataset = tinytorch.utils.data.TensorDataset(tinytorch.arange(5))
    for context in ("spawn", "forkserver", multiprocessing.get_context("spawn")):
        loader = load(tinytorch, dataset, 2, num_workers=1, multiprocessing_context=context)
        assert loader.multiprocessing_context.get_start_method() in ("spawn", "forkserver")
        assert [batch[0].tolist() for batch in loader] == [[0, 1], [2, 3], [4]]


@pytest.fixture
def forkserver():
    """Have processes started as by default on Linux from Python 3.14 on."""
    before = multiprocessing.get_start_method()
    multiprocessing.set_start_method("forkserver", force=True)
    yield
    multiprocessing.set_start_method(before, force=True)


def test_the_start_method_that_became_the_default(forkserver: None) -> None:
    dataset = tinytorch.utils.data.TensorDataset(tinytorch.arange(5))
    loader = tinytorch.utils.data.DataLoader(dataset, 2, num_workers=2, persistent_workers=True)
    for _ in range(2):
        assert [batch[0].tolist() for batch in loader] == [[0, 1], [2, 3], [4]]


@needs_oracle
def test_what_cannot_be_pickled_is_told(forkserver: None) -> None:
    def program(library):
        loader = library.utils.data.DataLoader([1], num_workers=1, collate_fn=lambda x: x)
        with (
            pytest.warns(UserWarning, match="changed the multiprocessing start method") as told,
            pytest.raises((AttributeError, pickle.PicklingError)) as raised,
        ):
            iter(loader)
        return str(told[0].message), raised.type.__name__

    assert_same(program)


@pytest.mark.parametrize("in_memory", [True, False])
def test_messages(in_memory: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not in_memory:  # as on systems without such files
        monkeypatch.delattr(os, "memfd_create", raising=False)
    one, other = multiprocessing.Pipe()
    large = tinytorch.arange(6000) if not in_memory else tinytorch.arange(100_000)
    values = [None, (1, tinytorch.zeros(0)), {"x": tinytorch.arange(5), "y": ["text"]}, large]
    for value in values:
        _send(one, value)
        assert plain(_receive(other)) == plain(value)
    one.close()
    other.close()


def test_failure_keeps_the_class() -> None:
    try:
        raise ValueError("this")
    except ValueError:
        failure = pickle.loads(pickle.dumps(ExceptionWrapper(where="here")))
    with pytest.raises(ValueError, match=r"Caught ValueError here.\nOriginal Traceback"):
        failure.reraise()


PROGRAM = """
import os, sys, time
import tinytorch as torch
class Slow:
    def __len__(self): return 100
    def __getitem__(self, i): time.sleep(0.01); return i
if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(
        Slow(), 2, num_workers=2, persistent_workers=True, multiprocessing_context=sys.argv[2]
    )
    it = iter(loader)
    next(it), next(it)  # one of each worker: both are up
    print(*(w.pid for w in it._workers), flush=True)
    if sys.argv[1] == "wait": time.sleep(60)
"""


def lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize(
    ("method", "how"), quarter(list(itertools.product(["fork", "spawn", "forkserver"], ["exit", "interrupt", "kill"])))
)
def test_workers_end_with_the_program(method: str, how: str, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    program = subprocess.Popen(
        [sys.executable, "-W", "ignore", str(path), "exit" if how == "exit" else "wait", method],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )
    assert program.stdout is not None
    pids = [int(word) for word in program.stdout.readline().split()]
    assert len(pids) == 2
    if how == "interrupt":
        os.killpg(program.pid, signal.SIGINT)  # as Ctrl-C does
    if how == "kill":
        program.kill()
    _, errors = program.communicate(timeout=20)
    if how == "exit":
        assert program.returncode == 0 and not errors
    if how == "interrupt":
        assert errors.count("Traceback") == 1 and "KeyboardInterrupt" in errors
    until = time.monotonic() + 12
    while any(map(lives, pids)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(map(lives, pids))
