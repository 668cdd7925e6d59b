"""8-bit floats: stored, moved, converted, printed and saved as by PyTorch; nothing computes with them."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

import tinytorch
from tests.oracle import needs_oracle, torch
from tests.same import compared, programs

KINDS = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")


@needs_oracle
@pytest.mark.parametrize("kind", KINDS)
def test_conversion_of_every_number(kind: str) -> None:
    rng = np.random.default_rng(0)
    spread = (rng.standard_normal(50_000) * np.exp2(rng.integers(-25, 25, 50_000))).astype(np.float32)
    edges = np.float32([0.0, -0.0, np.inf, -np.inf, np.nan, 448, 464, 465, 480, 57344, 61439, 61440, 65536, 240, 248])
    every = np.arange(2**16, dtype=np.uint16).view(np.float16)
    for values in (every, spread, edges, spread.astype(np.float64) * (1 + 1e-10), np.arange(-500, 500)):
        ours, theirs = (
            library.tensor(values).to(getattr(library, kind)).view(library.uint8).numpy()
            for library in (tinytorch, torch)
        )
        np.testing.assert_array_equal(ours, theirs)
    bits = np.arange(256, dtype=np.uint8)
    for target in ("float32", "float16", "bfloat16", "float64"):
        ours, theirs = (
            library.tensor(bits).view(getattr(library, kind)).to(getattr(library, target)).double().numpy()
            for library in (tinytorch, torch)
        )
        np.testing.assert_array_equal(ours, theirs)


def written(x: Any, key: Any, value: Any) -> Any:
    x[key] = value
    return x


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("run", programs("""
    x; x[0]; x[[0, 2]]; x[1:]; torch.cat([x, x]); torch.stack([x, x]); x.repeat(2); x.reshape(3, 1).t(); x.roll(1)
    x.expand(2, 3).contiguous(); torch.nn.functional.pad(x, (1, 1)); torch.zeros_like(x)
    torch.where(torch.tensor([True, False, True]), x, x.flatten()); x.index_select(0, torch.tensor([2, 0]))
    x.fill_(3.3); x.zero_(); torch.ones(2, dtype=x.dtype); x.view(torch.int8); torch.full((2,), 1.7, dtype=x.dtype)
    torch.full((2,), 1e6, dtype=x.dtype); torch.tensor([1.0, 500.0, 1e9, float("inf")], dtype=x.dtype)
    x.copy_(torch.tensor([500.0, 1e6, 1.0])); torch.ones(3).copy_(x); written(x, 0, 500.0)
    written(x, slice(2), torch.tensor([500.0, 1.0]))
    [x.tolist(), x[0].item(), x.element_size(), x.type(), x.is_floating_point()]; repr(torch.finfo(x.dtype))
    x.requires_grad_(); x.to("meta").dtype.itemsize; x + torch.ones(3); torch.promote_types(x.dtype, torch.float32)
    torch.arange(3, dtype=x.dtype); torch.randn(3, dtype=x.dtype); x.sin(); x + x; x.add_(1); x.sum(); x.sort()
    x.relu()
""", {"written": written}, "x").values())  # fmt: skip
@compared
def test_what_tensors_do(library: Any, run: Any, kind: str) -> Any:
    made = run(library, library.tensor([1.0, 2.5, -3.0]).to(getattr(library, kind)))
    return [repr(made), made.requires_grad] if isinstance(made, library.Tensor) else made


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_computes_with_them(kind: str) -> None:
    pytest.importorskip("ml_dtypes")
    x = tinytorch.ones(2, 2).to(getattr(tinytorch, kind))
    for run in (lambda: x * 2.0, lambda: x @ x, lambda: x.exp_(), lambda: x.mean(), lambda: x.cumsum(0)):
        with pytest.raises(NotImplementedError, match="not implemented for 'Float8_e"):
            run()
    y = tinytorch.ones(2, requires_grad=True)
    y.to(x.dtype).float().sum().backward()
    assert y.grad.tolist() == [1.0, 1.0]


@needs_oracle
@pytest.mark.parametrize("kind", KINDS)
def test_files(kind: str) -> None:
    for save, load in ((torch, tinytorch), (tinytorch, torch), (tinytorch, tinytorch)):
        file = io.BytesIO()
        save.save({"x": save.tensor([1.0, 2.5, -3.0]).to(getattr(save, kind))[1:]}, file)
        file.seek(0)
        found = load.load(file)["x"]
        assert found.dtype is getattr(load, kind) and found.float().tolist() == [2.5, -3.0]
