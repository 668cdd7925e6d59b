"""What processes do with tensors together, against NumPy; and what happens when they do not do the same."""

from __future__ import annotations

import importlib.util

import pytest

from tests.distributed import needs_mpi, run

DTYPES = ["float16", "float32", "float64", "int64", "bool", "uint8", "int32"]
DTYPES += ["bfloat16"] if importlib.util.find_spec("ml_dtypes") else []


@needs_mpi
@pytest.mark.parametrize("processes", [2, 3, 4])
def test_every_collective_with_every_dtype(processes: int) -> None:
    ran = run("collectives.py", processes, *DTYPES)
    assert ran.returncode == 0, ran.stderr
    counts = [int(line.split()[1]) for line in ran.stdout.splitlines()]
    assert len(counts) == processes and min(counts) > 1000


#: By case, what the errors of the two ranks say ("" where the rank has none).
DISAGREEING = {
    "shape": "rank 0 calls all_reduce(float32 (100,) SUM); rank 1 calls all_reduce(float32 (200,) SUM)",
    "order": "rank 0 calls all_reduce(float32 (2, 3) SUM); rank 1 calls all_reduce(float32 (3, 2) SUM)",
    "dtype": "rank 0 calls all_reduce(float32 (100,) SUM); rank 1 calls all_reduce(float64 (100,) SUM)",
    "operation": "rank 0 calls all_reduce(float32 (100,) SUM); rank 1 calls all_reduce(float32 (100,) MAX)",
    "collective": "rank 0 calls all_reduce(float32 (100,) SUM); rank 1 calls broadcast(float32 (100,) from 0)",
    "barrier": "rank 0 calls all_reduce(float32 (100,) SUM); rank 1 calls barrier()",
    "root": "rank 0 calls broadcast(float32 (100,) from 0); rank 1 calls broadcast(float32 (100,) from 1)",
    "destroyed": "rank 0 calls all_reduce(float32 (100,) SUM); rank 1 calls destroy_process_group()",
    "group": "rank 0 calls new_group([0]); rank 1 calls new_group([0, 1])",
    "object": "rank 0 calls all_gather_object(); rank 1 calls all_reduce(float32 (100,) SUM)",
    "async": "rank 0 calls all_reduce(float32 (10,) SUM); rank 1 calls all_reduce(float32 (9,) SUM)",
}
ALONE = {
    "uneven": "RuntimeError of rank 1: [rank 1] all_to_all: rank 0 sends 4 bytes, where the output has 8",
    "late": "DistBackendError of rank 0: [rank 0] all_reduce did not end within 1 s: another rank is late, has died",
    "late barrier": "DistBackendError of rank 0: [rank 0] barrier did not end within 0.5 s: another rank is late",
    "late monitored": "DistBackendError of rank 0: [Rank 0]: Rank 1 failed to pass monitoredBarrier in 500 ms",
    "late send": "DistBackendError of rank 0: [rank 0] recv did not end within 1 s: another rank is late, has died",
    "message of another dtype": "rank 1: [rank 1] recv: rank 0 sends 100 of float32, where this rank receives 50 of f",
    "message of another size": "DistBackendError of rank 1: [rank 1] recv: ",
    "longer tensor": "rank 1: [rank 1] recv: rank 0 sends 100 of float32, where this rank receives 101 of float32",
}


@needs_mpi
@pytest.mark.parametrize("case", [*DISAGREEING, *ALONE])
def test_ranks_that_do_not_do_the_same(case: str) -> None:
    ran = run("disagreeing.py", 2, case, timeout=10)
    assert ran.returncode and "went on" not in ran.stdout, ran.stdout + ran.stderr
    for rank in (0, 1) if case in DISAGREEING else ():
        assert (
            f"of rank {rank}: [rank {rank}] the ranks of a group must call the same: {DISAGREEING[case]}" in ran.stdout
        )
    assert ALONE.get(case, "") in ran.stdout, ran.stdout + ran.stderr
