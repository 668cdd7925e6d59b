"""Every collective with every dtype, against NumPy; prints how many results were compared."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import tinytorch as torch
import tinytorch.distributed as dist

Array = Any
Op = dist.ReduceOp
SHAPES = [(), (0,), (5,), (3, 4), (40_000,)]

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
compared = 0


def drawn(dtype: Any, shape: tuple[int, ...], seed: int) -> list[Any]:
    """Return the tensors of all ranks: the same on each of them."""
    rng = np.random.default_rng(seed)
    arrays = [rng.integers(0, 2 if dtype is torch.bool else 7, shape) for _ in range(size)]
    return [torch.tensor(each).to(dtype) for each in arrays]


def plain(tensor: Any) -> Array:
    """Return an array that NumPy computes with and compares."""
    return tensor.float().numpy() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor.numpy()


def same(found: Any, wanted: Array, what: object) -> None:
    """Compare a tensor with an array that was computed in its dtype, or in float32 for the halves."""
    global compared
    expected = torch.tensor(np.asarray(wanted)).to(found.dtype)
    assert found.shape == expected.shape and torch.equal(found, expected), (what, rank, found, expected)
    compared += 1


REDUCTIONS: dict[Any, Callable[[list[Array]], Array]] = {
    Op.SUM: lambda xs: np.sum(xs, 0, dtype=xs[0].dtype), Op.PRODUCT: lambda xs: np.prod(xs, 0, dtype=xs[0].dtype),
    Op.MIN: lambda xs: np.min(xs, 0), Op.MAX: lambda xs: np.max(xs, 0),
    Op.AVG: lambda xs: np.mean(xs, 0, dtype=xs[0].dtype), Op.BAND: np.bitwise_and.reduce, Op.BOR: np.bitwise_or.reduce,
    Op.BXOR: np.bitwise_xor.reduce,
}  # fmt: skip


def reductions(dtype: Any) -> Iterator[tuple[Any, Callable[[list[Array]], Array]]]:
    """Yield those that a dtype has."""
    for op, function in REDUCTIONS.items():
        if dtype.is_floating_point != (op in (Op.BAND, Op.BOR, Op.BXOR)) and (dtype.is_floating_point or op != Op.AVG):
            yield op, function


def reducing(dtype: Any, shape: tuple[int, ...], op: Any, function: Callable[[list[Array]], Array]) -> None:
    """Compare `all_reduce`, `reduce`, `reduce_scatter` and `reduce_scatter_tensor`."""
    what = dtype, shape, op
    xs = drawn(dtype, shape, 1)
    total = function([plain(each) for each in xs])
    mine = xs[rank].clone()
    dist.all_reduce(mine, op)
    same(mine, total, ("all_reduce", *what))

    mine = xs[rank].clone()
    work = dist.all_reduce(mine, op, async_op=True)
    other = xs[rank].clone()
    dist.all_reduce(other, op)
    assert work.wait() and work.is_completed() and work.result()[0] is mine
    same(mine, total, ("all_reduce, async", *what))
    same(other, total, ("all_reduce, meanwhile", *what))

    if shape == (3, 4):
        mine = xs[rank].t().contiguous().t()[:, ::2]
        dist.all_reduce(mine, op)
        same(mine, total[:, ::2], ("all_reduce, strided", *what))

    mine = xs[rank].clone()
    dist.reduce(mine, size - 1, op)
    if rank == size - 1:
        same(mine, total, ("reduce", *what))

    parts = [drawn(dtype, shape, 10 + k) for k in range(size)]  # by destination, by rank
    wanted = function([plain(each) for each in parts[rank]])
    out = torch.empty(shape, dtype=dtype)
    dist.reduce_scatter(out, [each[rank] for each in parts], op)
    same(out, wanted, ("reduce_scatter", *what))
    out = torch.empty(shape, dtype=dtype)
    dist.reduce_scatter_tensor(out, torch.stack([each[rank] for each in parts]), op)
    same(out, wanted, ("reduce_scatter_tensor", *what))


def moving(dtype: Any, shape: tuple[int, ...]) -> None:
    """Compare what only moves tensors."""
    what = dtype, shape
    xs = drawn(dtype, shape, 2)
    arrays = [plain(each) for each in xs]
    for src in range(size):
        mine = xs[rank].clone()
        dist.broadcast(mine, src)
        same(mine, arrays[src], ("broadcast", *what))

    outs = [torch.empty(shape, dtype=dtype) for _ in range(size)]
    dist.all_gather(outs, xs[rank])
    for out, array in zip(outs, arrays, strict=True):
        same(out, array, ("all_gather", *what))
    out = torch.empty((size, *shape), dtype=dtype)
    dist.all_gather_into_tensor(out, xs[rank])
    same(out, np.stack(arrays), ("all_gather_into_tensor", *what))

    outs = [torch.empty(shape, dtype=dtype) for _ in range(size)]
    dist.gather(xs[rank], outs if rank == 1 else None, 1)
    if rank == 1:
        for out, array in zip(outs, arrays, strict=True):
            same(out, array, ("gather", *what))
    out = torch.empty(shape, dtype=dtype)
    dist.scatter(out, xs if rank == 1 else None, 1)
    same(out, arrays[rank], ("scatter", *what))

    rows = [drawn(dtype, shape, 20 + k) for k in range(size)]  # by sender, by receiver
    outs = [torch.empty(shape, dtype=dtype) for _ in range(size)]
    dist.all_to_all(outs, rows[rank])
    for k, out in enumerate(outs):
        same(out, plain(rows[k][rank]), ("all_to_all", *what))
    out = torch.empty((size, *shape), dtype=dtype)
    dist.all_to_all_single(out, torch.stack(rows[rank]))
    same(out, np.stack([plain(each[rank]) for each in rows]), ("all_to_all_single", *what))

    after, before = (rank + 1) % size, (rank - 1) % size
    out = torch.empty(shape, dtype=dtype)
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, xs[rank], after), dist.P2POp(dist.irecv, out, before)]):
        work.wait()
    same(out, arrays[before], ("isend, irecv", *what))
    if rank == 0:
        dist.send(xs[0], 1, tag=3)
    elif rank == 1:
        out = torch.empty(shape, dtype=dtype)
        assert dist.recv(out, tag=3) == 0
        same(out, arrays[0], ("recv from anybody", *what))


def uneven() -> None:
    """Compare parts of different lengths."""
    # Rank r sends k + 1 rows to rank k.
    ends = np.cumsum([0] + [k + 1 for k in range(size)])
    mine = torch.arange(int(ends[-1]) * 2).reshape(-1, 2) + 100 * rank
    out = torch.empty(size * (rank + 1), 2, dtype=torch.int64)
    dist.all_to_all_single(out, mine, [rank + 1] * size, [k + 1 for k in range(size)])
    wanted = np.concatenate([mine.numpy()[ends[rank] : ends[rank + 1]] + 100 * (k - rank) for k in range(size)])
    same(out, wanted, "all_to_all_single, uneven")


def objects() -> None:
    """Compare what moves objects."""
    found: list[Any] = [None] * size
    dist.all_gather_object(found, {"rank": rank, "text": "ü" * rank})
    assert found == [{"rank": k, "text": "ü" * k} for k in range(size)]
    found = [None] * size
    dist.gather_object(rank, found if rank == 1 else None, dst=1)
    assert found == (list(range(size)) if rank == 1 else [None] * size)
    some = ["a", torch.ones(2), {1: 2}] if rank == 1 else [None] * 3
    dist.broadcast_object_list(some, src=1)
    assert some[0] == "a" and torch.equal(some[1], torch.ones(2)) and some[2] == {1: 2}
    own: list[Any] = [None]
    dist.scatter_object_list(own, [f"for {k}" for k in range(size)] if rank == 0 else None, src=0)
    assert own == [f"for {rank}"]
    if rank == 1:
        dist.send_object_list(["x", 3], dst=0)
    elif rank == 0:
        pair: list[Any] = [None, None]
        assert dist.recv_object_list(pair) == 1 and pair == ["x", 3]


def groups() -> None:
    """Compare exchanges of some of the processes."""
    ends = dist.new_group([size - 1, 0])
    odd = dist.new_group([1])
    x = torch.tensor([rank + 1.0])
    if rank in (0, size - 1):
        dist.all_reduce(x, group=ends)
        same(x, np.array([size + 1.0]), "subgroup")
        assert dist.get_process_group_ranks(ends) == [0, size - 1]
        y = torch.tensor([rank])
        dist.broadcast(y, src=size - 1, group=ends)
        same(y, np.array([size - 1]), "broadcast in a subgroup, by the rank among all")
        y = torch.tensor([rank])
        dist.broadcast(y, group=ends, group_src=0)
        same(y, np.array([0]), "broadcast in a subgroup, by the rank in it")
        assert dist.get_global_rank(ends, 1) == size - 1 and dist.get_group_rank(ends, size - 1) == 1
    if rank == 1:
        assert dist.get_world_size(odd) == 1 and dist.get_rank(odd) == 0
        y = torch.ones(2)
        dist.all_reduce(y, group=odd)
        same(y, np.ones(2), "alone")
    else:
        assert odd is dist.GroupMember.NON_GROUP_MEMBER and dist.get_rank(odd) == -1
    backwards = dist.new_group(list(range(size))[::-1], sort_ranks=False)
    assert dist.get_rank(backwards) == size - 1 - rank
    mine, every = dist.new_subgroups(1)
    assert dist.get_process_group_ranks(mine) == [rank] and len(every) == size
    dist.barrier()
    dist.monitored_barrier()
    z = [torch.full((2,), float(rank)), torch.full((3,), rank)]
    dist.all_reduce_coalesced(z)
    same(z[0], np.full(2, sum(range(size)), np.float32), "all_reduce_coalesced")
    same(z[1], np.full(3, sum(range(size))), "all_reduce_coalesced")
    future = dist.all_reduce(torch.ones(2), async_op=True).get_future().then(lambda done: done.value()[0] * 10)
    same(future.wait(), np.full(2, 10.0 * size, np.float32), "future")


for dtype in (getattr(torch, name) for name in sys.argv[1:]):
    for shape in SHAPES:
        for op, function in reductions(dtype):
            reducing(dtype, shape, op, function)
        moving(dtype, shape)
uneven()
objects()
groups()
print("compared", compared, flush=True)
dist.destroy_process_group()
assert not dist.is_initialized()
dist.init_process_group()  # and once more
dist.barrier()
dist.destroy_process_group()
