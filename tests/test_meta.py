"""Tensors on the meta device, beside what tests/faces/devices.py compares for every sample."""

from __future__ import annotations

import copy
import io
import pickle
import subprocess
import sys

import numpy as np
import pytest

import tinytorch
from tests.oracle import needs_oracle, torch
from tinytorch import nn
from tinytorch.core.native import definition_of
from tinytorch.core.op import op
from tinytorch.kernels.meta import MetaArray, NoData


@needs_oracle
@pytest.mark.filterwarnings("ignore:TypedStorage")
def test_creation_printing_and_errors_are_those_of_pytorch() -> None:
    calls = """
        lib.empty(2, 3, device="meta")
        lib.zeros(2, dtype=lib.int64, device="meta")
        lib.tensor([1.0, 2.0], device="meta")
        lib.arange(5, device="meta")
        lib.randn(2, device=lib.device("meta"), requires_grad=True)
        lib.empty_strided((2, 3), (1, 2), device="meta").stride()
        lib.empty(2, device="meta").untyped_storage()
        lib.empty(2, device="meta").data_ptr()
        lib.empty(2, device="meta").type()
        lib.empty(2**40, device="meta").sum()
        lib.empty(2**40, 2**22, device="meta")
        lib.empty(2, device="meta") + lib.ones(())
        lib.empty(2, device="meta").to("meta").fill_(3)
        lib.empty(2, device="meta").new_zeros(3)
        lib.empty(2, device="meta").copy_(lib.ones(2))
        lib.empty_like(lib.empty(2, device="meta"), device="cpu").device
        lib.ones(2).to("meta").requires_grad_().mul(2)
        lib.nn.Linear(3, 2, device="meta").weight
        lib.nn.utils.skip_init(lib.nn.Linear, 3, 2).weight.device
        lib.nn.Linear(3, 2, device="meta").to_empty(device="cpu").weight.device
        lib.nn.Linear(3, 2).to("meta").bias
        lib.nn.Linear(3, 2, device="meta").to("cpu")
        lib.empty(2, device="meta").cpu()
        lib.empty(2, device="meta").tolist()
        lib.empty(2, device="meta").numpy()
        lib.empty(2, device="meta").sum().item()
        bool(lib.empty(1, device="meta"))
        float(lib.empty(1, device="meta"))
        lib.empty(2, device="meta").storage().data_ptr()
        lib.empty(2, device="meta").share_memory_()
        lib.Generator("meta")
    """
    for text in filter(None, map(str.strip, calls.split("\n"))):
        outcomes = []
        for library in (tinytorch, torch):
            try:
                outcomes.append(repr(eval(text, {"lib": library})))
            except Exception as error:  # of any class: it is compared
                assert isinstance(error, (RuntimeError, TypeError))
                outcomes.append(str(error))
        assert outcomes[0] == outcomes[1], text


def test_the_default_device() -> None:
    with tinytorch.device("meta"):
        made = [
            tinytorch.empty(2),
            tinytorch.tensor(1.0),
            tinytorch.rand(2),
            tinytorch.as_tensor([1]),
            nn.Linear(2, 2).weight,
        ]
        assert all(x.is_meta for x in made)
        assert not tinytorch.from_numpy(np.ones(2)).is_meta
    assert not tinytorch.empty(2).is_meta
    tinytorch.set_default_device("meta")
    try:
        assert tinytorch.get_default_device() == tinytorch.device("meta") and tinytorch.zeros(2).is_meta
    finally:
        tinytorch.set_default_device(None)


def test_elements_are_never_made_up() -> None:
    x, real = tinytorch.empty(2, 3, device="meta"), tinytorch.ones(2, 3)
    first, optimizer = tinytorch.tensor([0]), tinytorch.optim.SGD([real], 0.1)
    writes = [
        lambda: real.copy_(x),
        lambda: real.add_(x),
        lambda: real.__setitem__(0, x[0]),
        lambda: real.__setitem__(first, x[:1]),
        lambda: real.index_put_((first,), x[:1]),
        lambda: real.addcmul_(x, x),
        lambda: real.mul_(tinytorch.tensor(2.0, device="meta")),
        lambda: real.fill_(tinytorch.tensor(2.0, device="meta")),
        lambda: real.masked_fill_(x > 0, 3.0),
        lambda: tinytorch.add(x, x, out=real),
        lambda: tinytorch.cat([x[:1], x[1:]], out=real),
        lambda: setattr(real, "grad", x) or optimizer.step(),
        lambda: real.data.copy_(x),
        x.tolist,
    ]
    mixed = [
        lambda: x + real,
        lambda: real @ x.t(),
        lambda: x @ real.t(),
        lambda: real[0].dot(x[0]),
        lambda: nn.functional.linear(real, x),
        lambda: nn.functional.linear(x, real),
        lambda: real.lerp(x, 0.5),
        lambda: real[tinytorch.tensor([0], device="meta")],
        lambda: tinytorch.cat([real, x]),
        lambda: tinytorch.cat([x, real]),
        lambda: tinytorch.stack([real, x]),
        lambda: nn.Linear(3, 2)(x),
    ]
    for compute in writes:
        with pytest.raises(RuntimeError):
            compute()
        real.grad = None
    for compute in mixed:
        with pytest.raises(RuntimeError, match="meta"):
            compute()
    assert (real == 1).all()


def test_parameters_are_initialized() -> None:
    init = tinytorch.nn.init
    weight = tinytorch.nn.Parameter(tinytorch.empty(3, 2, device="meta"))
    for name in ("normal_", "uniform_", "trunc_normal_", "kaiming_uniform_", "xavier_normal_", "orthogonal_", "zeros_"):
        assert getattr(init, name)(weight) is weight and weight.is_leaf and weight.grad_fn is None


def test_parameters_are_assigned() -> None:
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)).to("meta")
    state = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)).state_dict()
    model.load_state_dict(state)
    assert model[0].weight.is_meta
    model.load_state_dict(state, assign=True)
    assert not any(x.is_meta for x in model.state_dict().values())
    assert model[0].weight.data_ptr() == state["0.weight"].data_ptr()


def test_copies_pickles_and_files() -> None:
    x = tinytorch.empty(3, 4, device="meta").t().requires_grad_()
    buffer = io.BytesIO()
    tinytorch.save({"x": x, "y": nn.Parameter(x.detach())}, buffer)
    loaded = tinytorch.load(io.BytesIO(buffer.getvalue()))
    for other in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), loaded["x"], loaded["y"]):
        assert other.is_meta and other.stride() == (1, 4) and other.requires_grad
    buffer = io.BytesIO()
    tinytorch.save(tinytorch.ones(5), buffer)
    assert tinytorch.load(io.BytesIO(buffer.getvalue()), map_location="meta").is_meta


def test_it_takes_no_memory_and_little_time() -> None:
    program = """
import resource, tinytorch as torch
with torch.device("meta"):
    layer = torch.nn.TransformerEncoderLayer(12288, 96, 49152, batch_first=True)  # of GPT-3: 7 GB in float32
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    loss = layer(torch.empty(8, 2048, 12288, requires_grad=True)).sum()
    loss.backward()
assert layer.linear1.weight.grad.is_meta
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(run.stdout) < 100_000  # kB


def test_a_note_names_the_line_that_reads() -> None:
    with pytest.raises(RuntimeError) as caught:
        tinytorch.empty(1, device="meta").item()
    assert any("test_meta.py:" in note and "device='cpu'" in note for note in caught.value.__notes__)


def test_views_share_memory_and_versions() -> None:
    x = tinytorch.zeros(4, 6, device="meta")
    part = x[1:, ::2]
    assert isinstance(part._array, MetaArray) and part._base is x and part.storage_offset() == 6
    part.add_(1)
    assert x._version == 1 and tinytorch.empty(2, device="meta")._array.base is not None


@pytest.mark.parametrize(("device", "times"), [("cpu", 1), ("meta", 2)])  # (by NumPy's rules, and on zeros)
def test_a_call_asks_for_arrays_without_data_before_its_kernel_runs(device: str, times: int) -> None:
    calls = []

    def reads(x):
        calls.append(x)
        raise NoData

    with pytest.raises(NoData):
        definition_of(op(x=None)(reads))(tinytorch.ones(2, device=device))
    assert len(calls) == times
