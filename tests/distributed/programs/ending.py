"""A program of several ranks, which ends in one of many ways: `ending.py HOW`."""

import os
import signal
import sys
import time

import tinytorch as torch
import tinytorch.distributed as dist

how = sys.argv[1]
dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
total = torch.tensor([float(rank)])
dist.all_reduce(total)
print(f"rank {rank} of {world_size}: {total.item():g}", flush=True)
if how == "once" and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" and rank == 1:
    raise ValueError("not at the first time")
if how == "again":
    dist.destroy_process_group()
    dist.init_process_group("gloo")
dist.barrier()  # until all have said it
if rank == 1:
    if how == "raise":
        raise ValueError("a word to be seen")
    if how == "exit":
        sys.exit(3)
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "silent":
        os._exit(0)
if how == "sleep":
    time.sleep(60)
dist.barrier()
