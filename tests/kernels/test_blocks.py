"""What is done in blocks, or shared among threads, for large arrays only: here for small ones, too.

The sizes at which the kernels take these ways are set to a few elements, and random calls are compared with PyTorch as
`tests/ops/test_random_calls.py` and `tests/nn/test_random_calls.py` do. So are operators' own samples.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tinytorch
from tests.conftest import PROFILE, seeded
from tests.nn import test_random_calls as of_nn
from tests.ops import test_random_calls as of_ops
from tests.oracle import needs_oracle
from tests.same import same_as_pytorch
from tinytorch.kernels import activation, conv, indexing, parallel, reduce, rnn, special

#: By module the sizes, and what they are here.
SIZES: dict[Any, dict[str, int]] = {
    activation: {"_MANY": 2},
    conv: {"_COLUMNS": 40},
    indexing: {"_SMALL": 4},
    reduce: {"_SMALL": 3, "_WIDE": 3},
    rnn: {"_WIDE": 1, "_LONG": 1},
    special: {"_BLOCK": 4},
}


@pytest.fixture(scope="module", autouse=True)
def small_blocks() -> Iterator[None]:
    """Let everything be large."""
    with pytest.MonkeyPatch.context() as patch:
        for module, sizes in SIZES.items():
            for name, size in sizes.items():
                patch.setattr(module, name, size)
        for name, module in list(sys.modules.items()):
            if name.startswith("tinytorch"):
                for size in ("LARGE", "BLOCK"):
                    if isinstance(vars(module).get(size), int):
                        patch.setattr(module, size, 4)
        threads = parallel.get_threads()
        parallel.set_threads(2)
        yield
        parallel.set_threads(threads)


quickly = settings(max_examples=10_000 if PROFILE == "long" else 400, suppress_health_check=list(HealthCheck))


@needs_oracle
def test_ops() -> None:
    of_ops.agree(range(1_000_000, 1_000_000 + quickly.max_examples))


@needs_oracle
@quickly
@seeded
@given(st.sampled_from(of_nn.CALLS), st.randoms(use_true_random=False))
def test_nn(call: Callable[[of_nn.Program], str], rng: random.Random) -> None:
    of_nn.agree(of_nn.text_of(call, rng))


def test_everything_is_large() -> None:
    """The sizes are those that the kernels ask: a function that is no ufunc sees pieces of four elements."""
    seen: list[int] = []

    def twice(x: Any) -> Any:
        seen.append(x.size)
        return 2 * x

    x = tinytorch.arange(16.0)
    assert parallel.threaded(twice)(x._array).tolist() == (2 * x).tolist()
    assert max(seen) == 4


FORMATS = [
    lambda x, torch: x.contiguous(memory_format=torch.channels_last),
    lambda x, torch: x.clone(memory_format=torch.channels_last),
    lambda x, torch: x.to(memory_format=torch.channels_last),
    lambda x, torch: x.to(torch.float64, memory_format=torch.channels_last),
    lambda x, torch: x.half(memory_format=torch.channels_last),
    lambda x, torch: torch.empty_like(x, memory_format=torch.channels_last).fill_(1),
]


@needs_oracle
@pytest.mark.parametrize("call", FORMATS)
def test_memory_formats(call: Callable[[Any, Any], Any]) -> None:
    def program(torch: Any) -> Any:
        x = torch.arange(120.0).reshape(2, 3, 4, 5).requires_grad_()
        out = call(x, torch)
        (grad,) = torch.autograd.grad(out.double().square().sum(), x)
        return [out, out.stride(), grad]

    same_as_pytorch(program)
