"""A group of one process, which needs no MPI: values and errors as with PyTorch's gloo; and stores."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

import tinytorch
import tinytorch.distributed as dist
from tests.oracle import needs_oracle, torch
from tests.same import compared, expressions, refused


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    made = [dist] + ([torch.distributed] if torch is not None else [])
    for each in made:
        each.init_process_group("gloo", rank=0, world_size=1, store=each.HashStore())
    yield
    for each in made:
        if each.is_initialized():
            each.destroy_process_group()


CALLS = """
    d.all_reduce(x), x; d.all_reduce(x, d.ReduceOp.AVG), x; d.all_reduce(x, d.ReduceOp.MAX), x
    d.all_reduce(x, op=d.ReduceOp.BAND); d.all_reduce(i, op=d.ReduceOp.BXOR), i; d.all_reduce(i, op=d.ReduceOp.AVG)
    d.all_reduce([x]); d.all_reduce(x, "sum"); d.all_reduce(x, async_op=True).wait(), x
    d.all_reduce(x, async_op=True).get_future().then(lambda f: f.value()[0] * 2).wait(); d.reduce(x, 0), x
    d.reduce(x, 1); d.broadcast(x, 0), x; d.broadcast(x, 5); d.broadcast(x); d.broadcast(x, src=0, group_src=0)
    d.all_gather([y], x), y; d.all_gather([y, y], x); d.all_gather([torch.ones(3)], x)
    d.all_gather([torch.ones(2, 2).double()], x); d.all_gather([3], x); d.gather(x, [y]), y; d.gather(x)
    d.scatter(y, [x]), y; d.scatter(y); d.scatter(y, [x, x]); d.reduce_scatter(y, [x]), y; d.reduce_scatter(y, [x, x])
    d.all_to_all([y], [x]), y; d.all_to_all_single(y, x), y; d.all_to_all_single(y, x, [1], [2])
    d.all_to_all_single(y, x, [2], [1]); d.send(x, 0); d.P2POp(d.all_reduce, x, 0); d.batch_isend_irecv([1])
    d.barrier(); d.barrier(async_op=True).wait(); d.monitored_barrier()
    objects(lambda them: d.all_gather_object(them, {1: 2})); objects(lambda them: d.gather_object("a", them))
    objects(lambda them: d.broadcast_object_list(them, 0)); objects(lambda them: d.scatter_object_list(them, ["a"], 0))
    d.scatter_object_list([], ["a"], 0); d.scatter_object_list([None], ["a", "b"], 0)
    d.get_rank(), d.get_world_size(), d.get_backend(), d.is_initialized(), d.get_pg_count()
    d.get_rank(-100), d.get_world_size(-100); d.get_process_group_ranks(None), d.get_process_group_ranks(d.group.WORLD)
    d.get_global_rank(d.group.WORLD, 0), d.get_group_rank(d.group.WORLD, 0)
    d.group.WORLD.rank(), d.group.WORLD.size(), d.group.WORLD.name(); d.group.WORLD is d.GroupMember.WORLD
    d.get_rank(d.new_group([0])), d.get_pg_count(); d.new_group([0, 1]); d.new_group([0, 0])
    d.get_world_size(d.new_subgroups(1)[0]); d.new_subgroups(2); d.new_subgroups_by_enumeration([])
    d.new_subgroups_by_enumeration([[0], [0]]); d.init_process_group("gloo", rank=0, world_size=1)
    d.destroy_process_group(3); d.destroy_process_group(-100), d.is_initialized()
    d.destroy_process_group(d.group.WORLD), d.is_initialized(); d.get_node_local_rank(3)
    d.is_available(), d.is_torchelastic_launched()
    d.supports_complex(d.ReduceOp.SUM), d.supports_complex(d.ReduceOp.MAX)
"""


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")
@pytest.mark.parametrize("line", expressions(CALLS))
@compared
def test_a_group_of_one(t: Any, line: str) -> Any:
    def objects(function: Any) -> list[Any]:
        them = [None]
        function(them)
        return them

    names = {"x": t.arange(4.0).reshape(2, 2) + 1, "y": t.zeros(2, 2), "i": t.tensor([1, 2])}
    return eval(line, {"torch": t, "d": t.distributed, "objects": objects, **names})


def test_no_mpi_is_loaded_for_one_process() -> None:
    program = """
import sys, tinytorch as torch, tinytorch.distributed as dist
dist.init_process_group(rank=0, world_size=1)
x = torch.ones(2)
dist.all_reduce(x)
dist.destroy_process_group()
assert not any(name.startswith("mpi4py") for name in sys.modules)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


STORES = """
    s.set("a", "1"), s.get("a"), s.check(["a"]), s.check(["a", "b"]), s.check([]); s.set("a", b"2"), s.get("a")
    s.add("n", 2), s.add("n", -5), s.get("n"), s.add("m", 0)
    s.compare_set("k", "", "first"), s.compare_set("k", "wrong", "x"), s.compare_set("k", "first", "y"), s.get("k")
    s.compare_set("none", "expected", "x"), s.check(["none"]); s.append("p", "po"), s.append("p", "tato"), s.get("p")
    s.multi_set(["a", "b"], ["1", "2"]), s.multi_get(["b", "a"]); s.set("a", "1"), s.wait(["a"])
    s.set_timeout(timedelta(milliseconds=50)), s.timeout
"""


@pytest.mark.parametrize("kind", ["HashStore()", "FileStore(path, 1)", "TCPStore('127.0.0.1', 0, 1, True)", "Prefix"])
@pytest.mark.parametrize("line", expressions(STORES))
@compared
def test_stores(t: Any, kind: str, line: str, tmp_path: Any) -> Any:
    d = t.distributed
    path = str(tmp_path / t.__name__)
    made = d.PrefixStore("p", d.HashStore()) if kind == "Prefix" else eval(f"d.{kind}", {"d": d, "path": path})
    return eval(line, {"s": made, "timedelta": timedelta})


@pytest.mark.parametrize("line", ['s.wait(["a", "b"], timedelta(milliseconds=50))', 's.get("none")'])
@compared
def test_values_that_do_not_come(t: Any, line: str) -> Any:
    store = t.distributed.HashStore()
    store.set_timeout(timedelta(milliseconds=50))
    return eval(line, {"s": store, "timedelta": timedelta})


def test_deleted_keys() -> None:
    store = dist.TCPStore("127.0.0.1", 0, 1, True)
    store.set("a", "1")
    assert store.num_keys() == 2 and store.delete_key("a") and not store.delete_key("a")


def test_a_store_that_others_reach() -> None:
    master = dist.TCPStore("127.0.0.1", 0, 2, True, timedelta(seconds=20), wait_for_workers=False)
    other = dist.TCPStore("127.0.0.1", master.port, 2, False, timedelta(seconds=20))
    waiting = threading.Thread(target=lambda: other.set("got", master.get("a") + other.get("a")))
    waiting.start()
    other.set("a", bytes(range(256)))
    waiting.join()
    assert master.get("got") == bytes(range(256)) * 2

    def count() -> None:
        for _ in range(200):
            other.add("n", 1)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert master.add("n", 0) == 800
    refused(dist.DistStoreError, "invalid literal", other.add, "a", 1)
    refused(dist.DistNetworkError, "failed to listen", dist.TCPStore, "127.0.0.1", master.port, 1, True)


def test_a_store_that_nobody_serves() -> None:
    with pytest.raises(dist.DistNetworkError, match="timed out while trying to connect"):
        dist.TCPStore("127.0.0.1", 1, 2, False, timedelta(milliseconds=100))
    with pytest.raises(dist.DistNetworkError, match="1/2 clients joined"):
        dist.TCPStore("127.0.0.1", 0, 2, True, timedelta(milliseconds=100))


def test_a_file_that_several_processes_write(tmp_path: Any) -> None:
    program = """
import sys, tinytorch.distributed as dist
store = dist.FileStore(sys.argv[1], 2)
for _ in range(100):
    store.add("n", 1)
"""
    command = [sys.executable, "-c", program, str(tmp_path / "store")]
    for each in [subprocess.Popen(command) for _ in range(2)]:
        assert each.wait() == 0
    assert dist.FileStore(str(tmp_path / "store"), 2).get("n") == b"200"


@needs_oracle
def test_names_of_the_errors() -> None:
    for name in ("DistError", "DistBackendError", "DistNetworkError", "DistStoreError"):
        theirs, ours = getattr(torch.distributed, name), getattr(dist, name)
        assert [each.__name__ for each in theirs.__mro__] == [each.__name__ for each in ours.__mro__]


def test_an_exchange_counts_as_a_write() -> None:
    x = tinytorch.ones(2, requires_grad=True)
    y = x * 1
    z = y * y
    dist.all_reduce(y)
    refused(RuntimeError, "modified by an inplace operation", z.sum().backward)
