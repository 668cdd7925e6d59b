"""Lazy conjugates and negatives: views that share memory, with PyTorch's bits and errors; tests/faces has the ops."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinytorch
from tests.oracle import needs_oracle, torch

# Views and writes, compared with PyTorch ------------------------------------------------------------

VIEWS: dict[str, Callable[[Any, int], Any]] = {
    "conj": lambda x, n: x.conj(),
    "neg": lambda x, n: x._neg_view(),
    "real": lambda x, n: x.real,
    "imag": lambda x, n: x.imag if x.is_complex() else x,
    "t": lambda x, n: x.transpose(0, -1) if x.dim() else x,
    "T": lambda x, n: x.T if x.dim() == 2 else x,
    "mH": lambda x, n: x.mH if x.dim() > 1 else x,
    "adjoint": lambda x, n: x.adjoint() if x.dim() > 1 else x,
    "flatten": lambda x, n: x.reshape(-1),
    "unsqueeze": lambda x, n: x.unsqueeze(n % (x.dim() + 1)),
    "squeeze": lambda x, n: x.squeeze(),
    "half": lambda x, n: x[: 1 + n % x.shape[0]] if x.dim() and x.shape[0] else x,
    "select": lambda x, n: x[n % x.shape[0]] if x.dim() and x.shape[0] else x,
    "steps": lambda x, n: x[..., ::2] if x.dim() else x,
    "new": lambda x, n: x[None],
    "diagonal": lambda x, n: x.diagonal() if x.dim() > 1 else x,
    "strided": lambda x, n: x.as_strided((2,), (1,)) if x.numel() > 2 and x.is_contiguous() else x,
    "split": lambda x, n: x.split(1)[0] if x.dim() and x.shape[0] else x,
    "detach": lambda x, n: x.detach(),
    "contiguous": lambda x, n: x.contiguous(),
    "resolve": lambda x, n: x.resolve_conj().resolve_neg(),
    "to": lambda x, n: x.to(x.dtype),
    "permute": lambda x, n: x.permute(*range(x.dim())[::-1]),
}
WRITES: dict[str, Callable[[Any, Any, int], Any]] = {
    "mul": lambda x, y, n: x.mul_(2 + n if not x.is_complex() else 2 + n * 1j),
    "add": lambda x, y, n: x.add_(y.sum() if x.is_complex() == y.is_complex() else n),
    "add itself": lambda x, y, n: x.add_(x),
    "iadd": lambda x, y, n: x.__iadd__(n),
    "copy": lambda x, y, n: x.copy_(y.sum() if x.is_complex() or not y.is_complex() else n),
    "item": lambda x, y, n: x.__setitem__(n % x.shape[0] if x.dim() and x.shape[0] else ..., n),
    "mask": lambda x, y, n: x.__setitem__(x.abs() > 1, n),
    "zero": lambda x, y, n: x.zero_(),
    "fill": lambda x, y, n: x.fill_(n if not x.is_complex() else 1j * n),
    "index_fill": lambda x, y, n: x.index_fill_(0, x.new_zeros(1).abs().long(), 3) if x.dim() and x.shape[0] else x,
    "conj_physical": lambda x, y, n: x.conj_physical_(),
    "negative": lambda x, y, n: x.neg_(),
}


def told(x: Any, base: Any) -> Any:
    """Return what can be told of a tensor."""
    plain = x.detach().resolve_conj().resolve_neg().numpy()
    stride = [step for step, length in zip(x.stride(), x.shape, strict=True) if length > 1]
    return (
        plain, x.is_conj(), x.is_neg(), tuple(x.shape), stride, x._version,
        (x.data_ptr() - base.data_ptr()) if x.numel() and x.untyped_storage().data_ptr() == base.data_ptr() else None,
        x.requires_grad, x.is_leaf, x._base is None, x.is_contiguous(), x.storage_offset(),
    )  # fmt: skip


def program(library: Any, seed: int, recorded: bool) -> list[Any]:
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((3, 4)) + 1j * rng.standard_normal((3, 4))
    leaf = library.tensor(values, requires_grad=recorded)
    base = leaf * 1 if recorded else leaf
    tensors, seen = [base, base.conj()], []
    for _ in range(8):
        x, y = (tensors[k] for k in rng.integers(len(tensors), size=2))
        n = int(rng.integers(5))
        if rng.random() < 0.6:
            name = rng.choice([each for each in VIEWS if not (recorded and each == "split")])  # (writes are errors)
            tensors.append(VIEWS[name](x, n))
        else:
            name = rng.choice(list(WRITES))
            try:
                WRITES[name](x, y, n)
            except RuntimeError as error:
                seen.append(type(error))
        seen.extend([told(each, base) for each in tensors])
    if recorded:
        total = 0
        for k, each in enumerate(tensors):
            if each.requires_grad:
                each = each.abs().square() * (k + 1)
                total = total + (each * library.arange(1, each.numel() + 1).reshape(each.shape)).sum()
        if isinstance(total, library.Tensor):
            found = library.autograd.grad(total, [leaf, *[x for x in tensors if x.requires_grad]], allow_unused=True)
            seen.extend([g if g is None else g.resolve_conj().resolve_neg().numpy() for g in found])
    return seen


@needs_oracle
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("recorded", [False, True])
def test_random_programs(recorded: bool) -> None:
    for seed in range(300):
        ours, theirs = program(tinytorch, seed, recorded), program(torch, seed, recorded)
        for have, want in zip(ours, theirs, strict=True):
            if isinstance(want, tuple):
                np.testing.assert_allclose(have[0], want[0], rtol=1e-9, atol=1e-9, err_msg=f"program {seed}")
                assert have[1:] == want[1:], f"program {seed}"
            elif isinstance(want, np.ndarray):
                np.testing.assert_allclose(have, want, rtol=1e-9, atol=1e-9, err_msg=f"program {seed}")
            else:
                assert have is want


# Everything else -----------------------------------------------------------------------------------


@needs_oracle
@pytest.mark.parametrize(
    "run",
    [
        lambda torch, c: c.numpy(), lambda torch, c: np.asarray(c), lambda torch, c: c.imag.numpy(),
        lambda torch, c: torch.view_as_real(c), lambda torch, c: c.view(torch.float32),
        lambda torch, c: c.imag.view(torch.int32), lambda torch, c: np.from_dlpack(c),
        lambda torch, c: torch._neg_view(torch.ones(1, dtype=torch.bool)) + 1,
        lambda torch, c: (c.resolve_conj().requires_grad_().conj()).mul_(2), lambda torch, c: c.detach_(),
    ],
)  # fmt: skip
def test_errors(run: Any) -> None:
    raised = []
    for library in (tinytorch, torch):
        with pytest.raises((RuntimeError, TypeError, BufferError)) as caught:
            run(library, library.tensor([[1 + 2j, 3j], [1, 2]]).conj())
        raised.append(caught.value)
    assert type(raised[0]) is type(raised[1]) or isinstance(raised[0], type(raised[1]))
    assert str(raised[0]).startswith(str(raised[1])[:40])


def test_copies_and_files_keep_the_elements() -> None:
    x = tinytorch.tensor([1 + 2j, 3j])
    c = x.conj()
    assert type(c).__name__ == "Tensor" and repr(c) == "tensor([1.-2.j, 0.-3.j])"
    for made in (pickle.loads(pickle.dumps(c)), copy.copy(c)):
        assert made.is_conj() and tinytorch.equal(made, c)
    made = copy.deepcopy(c)
    assert not made.is_conj() and tinytorch.equal(made, c) and made.data_ptr() != x.data_ptr()
    shared = copy.copy(c)
    shared.zero_()
    assert not x.any() and c._version == 0


@needs_oracle
@pytest.mark.parametrize("legacy", [False, True])
def test_files_agree_with_pytorch(legacy: bool) -> None:
    for save, load in ((torch, tinytorch), (tinytorch, torch), (tinytorch, tinytorch)):
        x = save.tensor([[1 + 2j, 3j, 4], [1, 2j, 5]])
        file = io.BytesIO()
        save.save([x, x.t()[1:].conj(), save.ones(2)._neg_view()], file, _use_new_zipfile_serialization=not legacy)
        file.seek(0)
        whole, part, negative = load.load(file)
        assert part.is_conj() and not part.is_neg() and negative.is_neg()
        np.testing.assert_array_equal(part.resolve_conj().numpy(), x.t()[1:].resolve_conj().numpy().conj())
        np.testing.assert_array_equal(negative.resolve_neg().numpy(), [-1, -1])
        part.zero_()  # one memory
        np.testing.assert_array_equal(whole.numpy(), [[1 + 2j, 0, 0], [1, 0, 0]])


def test_out_and_functions_that_write() -> None:
    x = tinytorch.tensor([1 + 2j, 3j])
    out = x.conj()
    assert tinytorch.add(x, 1j, out=out) is out
    assert x.tolist() == [1 - 3j, -4j]
    y = tinytorch.tensor([1.0, -2.0])
    assert tinytorch.relu_(y._neg_view()).tolist() == [0.0, 2.0]
    assert y.tolist() == [0.0, -2.0]
    tinytorch.nn.init.constant_(y._neg_view(), 3.0)
    assert y.tolist() == [-3.0, -3.0]
    with tinytorch.inference_mode():
        z = tinytorch.tensor([1j])
        z.conj().mul_(2)
        assert z.tolist() == [2j]


def test_gradients_are_plain() -> None:
    x = tinytorch.tensor([1 + 2j, 3j], requires_grad=True)
    x.backward(tinytorch.tensor([1j, 2j]).conj())
    assert not x.grad.is_conj() and x.grad.tolist() == [-1j, -2j]
    x.grad = tinytorch.tensor([1j, 2j]).conj()
    x.backward(tinytorch.tensor([1j, 2j]))
    assert x.grad.is_conj() and x.grad.tolist() == [0, 0]
    leaf = x.detach().conj().requires_grad_()
    leaf.abs().square().sum().backward()
    assert leaf.is_leaf and tinytorch.allclose(leaf.grad, 2 * leaf.detach())
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        leaf.mul_(2)
    with tinytorch.no_grad():
        leaf.mul_(2)
    parameter = tinytorch.nn.Parameter(x.detach().conj())
    assert isinstance(parameter, tinytorch.nn.Parameter) and tinytorch.equal(parameter.detach(), x.detach().conj())


def test_modes_see_plain_tensors() -> None:
    x = tinytorch.tensor([1 + 2j, 3j])
    forward = tinytorch.autograd.forward_ad
    with forward.dual_level():
        dual = forward.make_dual(x, tinytorch.tensor([1j, 1]))
        assert forward.unpack_dual(dual.conj() * 2).tangent.tolist() == [-2j, 2]
        dual = forward.make_dual(x.conj(), tinytorch.tensor([1j, 1]).conj())
        assert forward.unpack_dual(dual * 2).tangent.tolist() == [-2j, 2]
    compiled = tinytorch.compile(lambda x, y: x.conj() * x + y)
    for k in range(3):
        assert tinytorch.allclose(compiled(x + k, x.conj()), (x + k).conj() * (x + k) + x.conj())
    assert tinytorch.compile(lambda x: (x.conj().mul_(2j), x)[1])(x + 0).tolist() == [4 - 2j, 6]
    meta = x.to("meta").conj()
    assert meta.is_conj() and (meta * 2).device.type == "meta" and meta[:1].is_conj()
    assert tinytorch.equal(tinytorch.func.vmap(lambda x: x.conj() * 2)(x), x.conj() * 2)
