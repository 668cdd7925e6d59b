"""`torch.cuda.random`: a GPU's generator, which is not available; seeding has no effect."""

from ..absent import (
    get_rng_state_all,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
    without_cuda,
)

__all__ = [
    "get_rng_state", "get_rng_state_all", "initial_seed", "manual_seed", "manual_seed_all", "seed", "seed_all",
    "set_rng_state", "set_rng_state_all",
]  # fmt: skip

get_rng_state = initial_seed = without_cuda
