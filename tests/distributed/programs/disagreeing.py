"""Ranks that do not do the same: `python disagreeing.py CASE`. Each rank prints its error, and none goes on."""

from __future__ import annotations

import sys
import time
from datetime import timedelta

import tinytorch as torch
import tinytorch.distributed as dist

dist.init_process_group("gloo", timeout=timedelta(seconds=1))
first = dist.get_rank() == 0
x = torch.ones(100)
dist.all_reduce(x)

CASES = {
    "shape": lambda: dist.all_reduce(torch.ones(100 if first else 200)),
    "order": lambda: dist.all_reduce(torch.ones(2, 3) if first else torch.ones(3, 2)),
    "dtype": lambda: dist.all_reduce(torch.ones(100, dtype=torch.float32 if first else torch.float64)),
    "operation": lambda: dist.all_reduce(x, dist.ReduceOp.SUM if first else dist.ReduceOp.MAX),
    "collective": lambda: dist.all_reduce(x) if first else dist.broadcast(x, 0),
    "barrier": lambda: dist.all_reduce(x) if first else dist.barrier(),
    "root": lambda: dist.broadcast(x, 0 if first else 1),
    "destroyed": lambda: dist.all_reduce(x) if first else dist.destroy_process_group(),
    "group": lambda: dist.new_group([0] if first else [0, 1]),
    "object": lambda: dist.all_gather_object([None, None], 1) if first else dist.all_reduce(x),
    "async": lambda: [dist.all_reduce(x, async_op=True), dist.all_reduce(x[: 9 + first], async_op=True)][1].wait(),
    "uneven": lambda: dist.all_to_all([torch.empty(2), torch.empty(2)], [torch.ones(2), torch.ones(3 - 2 * first)]),
    "late": lambda: dist.all_reduce(x) if first else time.sleep(30),
    "late barrier": lambda: dist.barrier(timeout=timedelta(seconds=0.5)) if first else time.sleep(30),
    "late monitored": lambda: dist.monitored_barrier(timeout=timedelta(seconds=0.5)) if first else time.sleep(30),
    "late send": lambda: dist.recv(x, 1) if first else time.sleep(30),
    "message of another dtype": lambda: dist.send(x, 1) if first else dist.recv(torch.empty(50, dtype=torch.float64)),
    "message of another size": lambda: dist.send(x, 1) if first else dist.recv(torch.empty(99)),
    "longer tensor": lambda: dist.send(x, 1) if first else dist.recv(torch.empty(101)),
}
try:
    CASES[sys.argv[1]]()
except Exception as error:
    print(f"{type(error).__name__} of rank {dist.get_rank()}: {error}", flush=True)
    time.sleep(0.3)  # the other rank has its error, too
    raise
if sys.argv[1] not in ("uneven", "longer tensor") and "message" not in sys.argv[1]:  # where only one of them knows
    print("went on", flush=True)
dist.barrier()
