"""A program that starts its processes itself: `spawning.py HOW START_METHOD WHERE`."""

import os
import signal
import subprocess
import sys

import tinytorch as torch
import tinytorch.distributed as dist
import tinytorch.multiprocessing as mp


def work(rank: int, world_size: int, how: str, where: str) -> None:
    if not where.startswith(("tcp", "file")):
        os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = where.split(":")
    dist.init_process_group("gloo", where if "//" in where else None, rank=rank, world_size=world_size)
    total = torch.tensor([float(rank)])
    dist.all_reduce(total)
    code = "import os; print(*[name for name in os.environ if name.startswith('PMI')])"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    sys.stdout.write(f"rank {rank}: {total.item():g} {said!r}\n")
    sys.stdout.flush()
    dist.barrier()
    if rank == 1:
        if how == "raise":
            raise ValueError("a word to be seen")
        if how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if how == "silent":
            os._exit(0)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(work, (3, sys.argv[1], sys.argv[3]), 3, start_method=sys.argv[2])
