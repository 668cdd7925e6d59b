"""Calls that are rare and legal, as PyTorch's own tests make them, against PyTorch."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from tests.oracle import needs_oracle
from tests.same import same_as_pytorch

#: Makers of sequences, written into what is named: the numbers go in, whatever the shape; or it is resized in place.
MAKERS = (
    "linspace(0, 3, 4)", "arange(0, 4)", "logspace(0, 3, 4)", "range(0, 3)", "zeros(4)", "ones((2, 2))",
    "full((4,), 2.0)", "eye(2)", "normal(1.0, 0.0, (4,))", "randint(5, 6, (4,))",
)  # fmt: skip
TARGETS = {
    "part": lambda torch: (b := torch.zeros(2, 3), b.narrow(1, 1, 2)),
    "short": lambda torch: (b := torch.zeros(7), b[1:3]),
    "expanded": lambda torch: (b := torch.zeros(1), b.expand(4)),
    "empty": lambda torch: (b := torch.zeros(0), b),
    "transposed": lambda torch: (b := torch.zeros(2, 2).t(), b),
    "column": lambda torch: (b := torch.zeros(4, 2), b[:, 0]),
}


@needs_oracle
@pytest.mark.parametrize(
    ("maker", "target"),
    [
        (maker, target)
        for maker in MAKERS
        for target in TARGETS
        # There PyTorch grows the memory of the one element, for all tensors on it (docs/differences.md).
        if not (target == "expanded" and maker.startswith(("ones", "eye")))
    ],
)
def test_made_into_out(maker: str, target: str) -> None:
    def program(torch: Any) -> Any:
        base, out = TARGETS[target](torch)
        result = eval(f"torch.{maker[:-1]}, out=out)", {"torch": torch, "out": out})
        return result is out, out, base, out.stride(), out.storage_offset()

    same_as_pytorch(program)


CALLS = """
    torch.add(x, 2, x)
    x.add(2, x)
    x.clone().add_(2, x)
    torch.sub(x, 2, x)
    x.clone().sub_(2, x)
    torch.addcmul(x, 2, x, x)
    x.addcmul(2, x, x)
    x.clone().addcmul_(2, x, x)
    torch.addcdiv(x, 2, x, x)
    x.clone().addcdiv_(2, x, x)
    torch.add(torch.tensor(True), torch.tensor(True), True)
    torch.add(x, x, alpha=torch.tensor(3.0))
    torch.add(x, x, alpha=torch.tensor([3.0]))
    torch.add(x, x, alpha=np.float64(3))
    torch.add(x, x, alpha=np.float32(3))
    torch.add(x, x, alpha=True)
    torch.sub(x, x, alpha=np.float64(3))
    torch.addcmul(x, x, x, value=torch.tensor(3.0))
    torch.addcmul(x, x, x, value=np.float64(3))
    torch.addcdiv(x, x, x, value=torch.tensor([3.0]))
    torch.addcdiv(x, x, x, value=np.float64(3))
    x.clone().add_(x, alpha=torch.tensor(3.0))
    x.clone().add_(x, alpha=np.float64(3))
    x.clone().addcmul_(x, x, value=torch.tensor(3.0))
    x.clone().addcdiv_(x, x, value=torch.tensor(3.0))
    torch.rsub(x, x, alpha=np.float64(3))
    torch.tensor_split(m, torch.tensor(1.1))
    torch.tensor_split(m, torch.rand(5))
    torch.tensor_split(m, torch.tensor([[1]]))
    torch.broadcast_shapes((-1, 2), (1, 2))
    torch.broadcast_shapes(-1, 2)
    torch.zeros(6).resize_as_(torch.zeros(3, 2).t(), memory_format=torch.preserve_format).stride()
    torch.zeros(120).resize_as_(last, memory_format=torch.preserve_format).stride()
    torch.zeros(6).resize_(2, 3, memory_format=torch.preserve_format)
    x.__dlpack__(stream=object())
    x.__dlpack__(stream=1)
    torch.from_dlpack(torch.ones(2, dtype=torch.bfloat16)).float()
    torch.from_dlpack(torch.ones(2, dtype=torch.bfloat16, requires_grad=True))
    torch.unique_consecutive(torch.empty(0, 3), return_inverse=True, return_counts=True)
    torch.unique_consecutive(torch.empty(0, 3), return_inverse=True, return_counts=True, dim=0)
    torch.unique(torch.tensor([nan, 1.0, nan]), return_inverse=True, return_counts=True, dim=0)
    torch.unique(torch.tensor([[nan, 1], [nan, 1], [2, 3]]), return_inverse=True, return_counts=True, dim=0)
    torch.unique(torch.tensor([[2, 3], [nan, 1], [2, 3]]), return_inverse=True, return_counts=True, dim=0)
    torch.unique(torch.tensor([[2, nan], [1, 1], [2, 0]]), return_inverse=True, return_counts=True, dim=1)
    torch.tensor(endless)
    torch.as_tensor(endless)
    torch.tensor(endless[:0])
    x.new(size=(3, 4)).shape
    x.new([1, 2])
    x.apply_(lambda each: "a")
    x.apply_(lambda each: each + 1)
    x.map_(x, lambda a, b: "a")
    torch.device(-1)
    torch.device("cpu", -1)
    torch.device("cpu", "0")
    torch.device("cpu:01")
    torch.device("cpu:0")
    x.layout is torch.strided
"""


def evaluate(text: str, torch: Any) -> Any:
    endless: list[Any] = []
    endless.append(endless)
    names = {
        "torch": torch,
        "np": np,
        "nan": float("nan"),
        "x": torch.ones(2),
        "m": torch.zeros(4, 4),
        "last": torch.zeros(2, 3, 4, 5).to(memory_format=torch.channels_last),
        "endless": endless,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the older calls: once in a process, in both
        return eval(text, names)


@needs_oracle
@pytest.mark.parametrize("text", [each.strip() for each in CALLS.strip().splitlines()])
def test_same_as_pytorch(text: str) -> None:
    same_as_pytorch(lambda torch: evaluate(text, torch))
