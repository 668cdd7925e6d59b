"""Complex numbers, compared with PyTorch's: dtypes, creation, printing, parts, refusals, gradients."""

from __future__ import annotations

import copy
import io
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinytorch
from tests.oracle import FUSED, needs_oracle, torch
from tests.same import compared, of_each, programs, refused

parametrize = pytest.mark.parametrize
KINDS = ("complex64", "complex128")


@compared
def test_dtypes_and_promotion(torch: Any) -> list[Any]:
    names = "bool uint8 int64 float16 bfloat16 float32 float64 complex64 complex128".split()
    kinds = [getattr(torch, name) for name in names]
    found = [str(torch.promote_types(a, b)) for a in kinds for b in (torch.complex64, torch.complex128, a)]
    found += [torch.can_cast(a, b) for a in kinds for b in kinds]
    for kind in kinds:
        for shape in ((), (2,)):
            x = torch.ones(shape).to(kind)
            if kind is torch.float16:
                continue  # (complex32)
            found += [str(torch.result_type(x, 1j)), str(torch.result_type(x, torch.ones((), dtype=torch.cfloat)))]
            found += [str(torch.result_type(x, torch.ones(2, dtype=torch.cfloat)))]
    found += [str(kind.to_real()) for kind in kinds]
    found += [str(kind.to_complex()) for kind in kinds[3:]]
    found += [(kind.is_complex, kind.is_floating_point, kind.is_signed, kind.itemsize) for kind in kinds]
    found += [repr(torch.finfo(torch.complex64)), repr(torch.finfo(torch.cdouble)), torch.cfloat is torch.complex64]
    return found


@compared
def test_the_default_dtype_decides_the_complex_one(torch: Any) -> list[Any]:
    torch.set_default_dtype(torch.float64)
    try:
        return [str(torch.tensor([1j]).dtype), repr(torch.tensor(1 + 2j)), str((torch.arange(2) * 1j).dtype)]
    finally:
        torch.set_default_dtype(torch.float32)


@parametrize("kind", KINDS)
@compared
def test_creation(torch: Any, kind: str) -> list[Any]:
    d = getattr(torch, kind)
    x = torch.tensor([[1 + 2j, 3], [-1j, 0.5]], dtype=d)
    found = [x, torch.zeros(2, dtype=d), torch.ones(2, 1, dtype=d), torch.full((2,), 1 - 1j, dtype=d)]
    found += [torch.eye(2, dtype=d), torch.empty(0, dtype=d), torch.zeros_like(x), torch.ones_like(x)]
    found += [
        torch.full_like(x, 2j), x.new_zeros(2), x.new_full((1,), 1j), x.new_tensor([1, 2]), x.T,
        x[0].item() if x[0].numel() == 1 else x[0, 0].item(), x.tolist(), complex(x[0, 0]), bool(x[0, 1]), x.numpy(),
    ]  # fmt: skip
    found += [torch.as_tensor(np.array([1j, 2])).dtype, torch.from_numpy(np.array([1j, 2], kind)), x.type()]
    found += [x.to(torch.complex64), torch.ones(2).to(d), x.cfloat(), x.cdouble(), x.is_complex(), float(x[0, 1])]
    return [each if isinstance(each, (complex, list, bool, str, float)) else repr(each) for each in found]


@parametrize("kind", KINDS)
@compared(rtol=1e-6 if FUSED else 1e-5)
def test_random_numbers(torch: Any, kind: str) -> Any:
    d = getattr(torch, kind)
    drawn = [torch.randn(3, 20, dtype=d), torch.rand(7, dtype=d), torch.randn_like(torch.zeros(5, dtype=d))]
    drawn += [torch.zeros(4, dtype=d).uniform_(), torch.zeros(40, dtype=d).normal_(0, 3)]
    return drawn, torch.rand(2)


PRINTED = [
    [1 + 2j, 3 - 4j], [1.5 + 2j, 100 - 3e-5j], [1e10 + 2j, complex("nan+nanj")], [complex("inf-infj"), 0j], [],
    [[0.25 - 1j, 2], [3j, 1e-9]], 1.5 - 2j, [-0.0 - 0j, complex(-0.0, -0.0)], list(np.arange(40) * (1 - 0.5j)),
    np.arange(1200) * (0.3 - 1.5j), np.arange(40).reshape(2, 4, 5) * 1j,
]  # fmt: skip


@needs_oracle
@parametrize("values", PRINTED, ids=range(len(PRINTED)))
def test_printing(values: Any) -> None:
    array = np.array(values, np.complex128)
    for kind in KINDS:
        x, y = tinytorch.from_numpy(array.astype(kind)), torch.from_numpy(array.astype(kind))
        assert repr(x) == repr(y) and repr(x.requires_grad_()) == repr(y.requires_grad_())
        if not array.ndim:
            assert f"{x.detach()}" == f"{y.detach()}"


@needs_oracle
def test_files_and_copies() -> None:
    x = tinytorch.randn(3, 2, dtype=tinytorch.cfloat)
    y = torch.from_numpy(x.numpy().copy())
    for theirs, save, load in ((False, tinytorch.save, torch.load), (True, torch.save, tinytorch.load)):
        for value in (y, y.to(torch.complex128).T) if theirs else (x, x.cdouble().T):
            file = io.BytesIO()
            save(value, file)
            file.seek(0)
            loaded = load(file)
            assert str(loaded.dtype) == str(value.dtype)
            np.testing.assert_array_equal(loaded.numpy(), value.numpy())
    for copied in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), x.clone()):
        assert copied.dtype is tinytorch.complex64 and copied.equal(x)


@compared
def test_parts_are_views(torch: Any) -> list[Any]:
    z = torch.tensor([[1 + 2j, 3 - 1j], [0, 1j]])
    z.real[0] = 7
    z.imag.mul_(2)
    torch.view_as_real(z)[1, 1, 0] = 9
    z[1].imag = torch.tensor([4.0, -4.0])
    z.T[0].real = torch.tensor(6.0)
    pairs = torch.arange(6.0).reshape(3, 2)
    torch.view_as_complex(pairs)[0] = 5 - 5j
    found = [z, pairs, z.T.imag, z[:, 1].real, torch.view_as_real(z.T).stride(), z.real.stride(), z.mH, z.H]
    found += [z.adjoint(), z.conj(), z.angle(), z.abs(), z.sgn(), z.isreal(), torch.real(z), torch.imag(z)]
    found += [
        torch.complex(z.real, z.imag), torch.polar(torch.ones(2), torch.ones(2)), torch.ones(2).conj(), z.is_neg(),
    ]  # fmt: skip
    return [repr(each) for each in found]


test_small_programs = of_each(
    programs("""
    # Dtypes and conversions.
    torch.int64.to_complex(); torch.set_default_dtype(torch.complex64); torch.tensor(1j, dtype=torch.float32)
    float(torch.tensor(1j)); int(torch.tensor(1j)); torch.ones(2).fill_(1j); torch.nn.Linear(1, 1).to(torch.int64)
    # Parts.
    setattr(torch.ones(2), "imag", torch.ones(2)); torch.ones(2).imag; torch.view_as_real(torch.ones(2))
    torch.view_as_complex(torch.ones(2, 3)); torch.view_as_complex(torch.ones(2, 2).T)
    torch.view_as_complex(torch.ones(2, 2, dtype=torch.int64)); torch.complex(torch.ones(2), torch.ones(2).double())
    torch.complex(torch.ones(2).long(), torch.ones(2).long())
    # Backward.
    (z * 2).sum().backward(); (z * 2).backward(torch.ones(1)); z.abs().backward(torch.ones(1) * 1j)
    # Sequences and random numbers.
    torch.linspace(0, 1j, 3, dtype=torch.float32); repr(torch.linspace(torch.tensor(1j), 2, 3))
    torch.arange(0, 3, dtype=torch.cfloat); torch.randint(0, 3, (2,), dtype=torch.cfloat)
    torch.randperm(3, dtype=torch.cfloat); torch.arange(0, 3, dtype=torch.cdouble)
    torch.randint(0, 3, (2,), dtype=torch.cdouble); torch.randperm(3, dtype=torch.cdouble)
    torch.normal(torch.tensor([1j]), torch.tensor([1j]))
    # Numbers that real tensors refuse.
    torch.mul(torch.ones(2), 1j, out=torch.empty(2)); torch.ones(2).mul_(1j); torch.add(x, x, alpha=1j)
    torch.addcmul(x, x, x, value=1j); x.addcdiv_(x, x, value=1j)
    torch.ones(2, dtype=torch.int64).masked_fill(torch.tensor([True, False]), torch.tensor(1j))
    torch.isin(torch.tensor([1j]), torch.tensor([1j])); torch.nn.functional.dropout(torch.tensor([1j, 2]))
    torch.nn.init.orthogonal_(torch.empty(2, 2, dtype=torch.cfloat))
    torch.func.jacrev(lambda z: z * z)(torch.tensor([1j])); torch.func.jacfwd(lambda z: z * z)(torch.tensor([1j]))
    torch.convolution(c(1, 1, 3, 3), c(1, 1, 2, 2), None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1)
    # Tolerances.
    torch.testing.assert_close(torch.tensor([1j, 2]), torch.tensor([1j, 2]) + 1e-9)
    torch.testing.assert_close(torch.tensor([1j, 2]), torch.tensor([1j, 2]) + 1e-3)
    torch.testing.assert_close(torch.tensor([1j, 2]), torch.tensor([1j, 2]) + 1j)
""", x=lambda torch: torch.ones(2), z=lambda torch: torch.tensor([1 + 2j], requires_grad=True),
        c=lambda torch: lambda *shape: torch.ones(shape, dtype=torch.cfloat))
)  # fmt: skip


REFUSED = {
    "lt": "c < c", "max": "c.max()", "sort": "c.sort()", "clamp": "c.clamp(min=0)", "floor": "c.floor()",
    "maximum": "torch.maximum(c, c)", "sign": "c.sign()", "relu": "c.relu()", "remainder": "c % 2",
    "argmax": "c.argmax()", "median": "c.median()", "softmax": "torch.softmax(c, 0)", "erf": "c.erf()",
    "topk": "c.topk(1)", "mse_loss": "torch.nn.functional.mse_loss(c, c)", "round": "c.round()",
    "in place": "c.clone().floor_()", "cummax": "c.cummax(0)", "unique": "c.unique()", "atan2": "torch.atan2(c, c)",
}  # fmt: skip


@needs_oracle
@parametrize("name", REFUSED)
def test_functions_without_complex_numbers_refuse_them(name: str) -> None:
    program = compile(REFUSED[name], name, "eval")
    eval(program, {"torch": tinytorch, "c": tinytorch.ones(2)})  # (the function of real numbers was used before)
    with pytest.raises((RuntimeError, NotImplementedError)):
        eval(program, {"torch": torch, "c": torch.tensor([1 + 2j, 3])})
    refused(NotImplementedError, "complex", eval, program, {"torch": tinytorch, "c": tinytorch.tensor([1 + 2j, 3])})


@needs_oracle
def test_gradients_by_pytorchs_convention() -> None:
    z = tinytorch.tensor(3 + 4j, requires_grad=True)
    (z.abs() ** 2).backward()
    assert z.grad.item() == pytest.approx(6 + 8j)

    def program(torch: Any) -> list[Any]:
        x = torch.tensor([1.0, -2.0], requires_grad=True)
        z = torch.tensor([1 + 2j, 0.5 - 1j], requires_grad=True)
        y = (x * z.exp() + z.conj() * x.sin()) / (z - 3j)
        w = y.real.sum() + (y.imag * z.angle()).sum() + (z @ y).abs()
        g, h = torch.autograd.grad(w, (x, z), create_graph=True)
        second = torch.autograd.grad(g.sum() + h.abs().sum(), (x, z))
        return [str(g.dtype), *[each.detach().tolist() for each in (g, h, *second)]]

    ours, theirs = program(tinytorch), program(torch)
    assert ours[0] == theirs[0]
    for mine, other in zip(ours[1:], theirs[1:], strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-5)


WRITES = programs("""
    w.real.mul_(x); w.imag[0].add_(x); torch.view_as_real(w)[..., :1].mul_(x.sin()); z.real.mul_(2)
    w.conj().imag.copy_(x); w.mH[0].mul_(z[1]); w.real.masked_fill_(w.real > 1.5, 2)
    w.T.real.diagonal().mul_(w.imag[0, 0]); torch.view_as_complex(y).mul_(1j); torch.view_as_complex(y)[0].real.exp_()
    torch.view_as_complex(torch.view_as_real(w)[0]).add_(w[1]); w.real.unbind()[0].mul_(2)
""", None, "w", "x", "y", "z")  # fmt: skip


@parametrize("write", WRITES.values(), ids=list(WRITES))
@compared
def test_writes_through_views_of_another_dtype(torch: Any, write: Any) -> Any:
    def program(z: Any, x: Any) -> Any:
        w, y = z * 1, torch.view_as_real(z) * x
        views = [w.imag, torch.view_as_real(w)[1:], torch.view_as_complex(y), y[..., 1], w.conj().T, w, y]
        write(torch, w, x, y, z)
        names.extend([v.grad_fn and v.grad_fn.name() for v in views if not v.is_conj()])
        return [v * (v + 1) for v in views]

    names: list[str] = []
    x = torch.tensor([0.5, -2.0], dtype=torch.float64, requires_grad=True)
    z = torch.tensor([[1 + 2j, 3 - 1j], [2, 1j]], dtype=torch.complex128, requires_grad=True)
    found = program(z, x)
    if torch is tinytorch:
        torch.autograd.gradcheck(program, (z, x), check_forward_ad=True, check_batched_grad=True)
    grads = torch.autograd.grad(sum(v.abs().sum() for v in found), (z, x), create_graph=True)
    return names[:6], found, *grads, *torch.autograd.grad(sum(g.abs().sum() for g in grads), (z, x))


@compared(rtol=1e-6)
def test_writes_in_place_are_recorded(torch: Any) -> Any:
    z = torch.tensor([[1 + 2j, 3 - 1j], [2, 1j]], requires_grad=True)
    y = z * 1
    y[0] *= 1j
    y[:, 1].mul_(y[0, 0].detach().clone())
    y.add_(z.conj(), alpha=2)
    y[1, 0] = z[0, 1]
    (y * y.conj()).real.sum().backward()
    return z.grad


@compared(rtol=1e-9)
def test_gradients_in_each_quadrant(torch: Any) -> Any:
    names = "acos acosh asin asinh atan atanh cosh exp log log1p reciprocal rsqrt sigmoid sinh sqrt tan tanh".split()
    z = torch.tensor([x + y for x in (1.5, -1.5) for y in (0.5j, -0.5j)], dtype=torch.cdouble, requires_grad=True)
    return [torch.autograd.grad(getattr(z, name)().sum().real, z)[0] for name in names]


@compared
def test_out_and_comparisons(torch: Any) -> list[Any]:
    z, out = torch.tensor([1 + 2j, 3 - 1j]), torch.empty(2, dtype=torch.cfloat)
    torch.mul(z, 2j, out=out)
    found = [repr(out), repr(z == torch.tensor([1 + 2j, 0])), repr(z != 3 - 1j), torch.equal(z, z.clone())]
    return [*found, repr(torch.isclose(z, z + 1e-9)), torch.allclose(z, z + 1e-9), torch.allclose(z, z + 1)]


@parametrize("kind", [*KINDS, None])
@parametrize("ends", [(0, 1j, 3), (1 + 1j, 2, 4), (0, 1, 3), (1j, 2, 1), (1j, 2, 0)], ids=str)
@compared
def test_sequences(torch: Any, ends: Any, kind: str | None) -> Any:
    dtype = {} if kind is None else {"dtype": getattr(torch, kind)}
    return [repr(make(*ends, **dtype)) for make in (torch.linspace, torch.logspace)]


@compared(rtol=1e-5)
def test_normal_numbers_of_complex_means(torch: Any) -> list[Any]:
    means, stds = torch.tensor([1j, 2, 3 - 1j]), torch.tensor([1.0, 2.0, 0.5])
    return [torch.normal(means, stds), torch.normal(means, 2.0), torch.rand(2)]


@compared
def test_modules(torch: Any) -> list[Any]:
    nn = torch.nn
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).to(torch.cfloat)
    norm = nn.BatchNorm1d(3).to(torch.cdouble)
    found = [(key, str(value.dtype)) for each in (net, norm) for key, value in each.state_dict().items()]
    found += [str(net.double()[0].weight.dtype), repr(net(torch.ones(1, 3, dtype=torch.cfloat)))]
    file = io.BytesIO()
    torch.save(net.state_dict(), file)
    file.seek(0)
    other = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).to(torch.cfloat)
    found += [str(other.load_state_dict(torch.load(file))), other[0].weight.equal(net[0].weight)]
    found.append(str(net.to(torch.float64)[0].weight.dtype))
    return found


@parametrize("name", ["LSTM", "GRU", "RNN"])
@compared(rtol=1e-8, atol=1e-12)
def test_recurrent_layers(torch: Any, name: str) -> list[Any]:
    torch.manual_seed(0)
    layer = getattr(torch.nn, name)(2, 3, num_layers=2, bidirectional=True, batch_first=True, dtype=torch.cdouble)
    x = torch.randn(2, 4, 2, dtype=torch.cdouble, requires_grad=True)
    lengths = torch.tensor([4, 2])
    packed = torch.nn.utils.rnn.pack_padded_sequence(x.detach(), lengths, batch_first=True)
    outputs = [layer(x)[0], layer(packed)[0].data]
    loss = sum((each.abs() ** 2).sum() for each in outputs)
    loss.backward()
    return [*outputs, x.grad, *(p.grad for p in layer.parameters())]


@compared
def test_parts_are_assigned(torch: Any) -> str:
    z = torch.tensor([1 + 2j, 3 - 1j])
    z.real = torch.tensor([9.0, 8.0])
    z.imag = 1.0
    return repr(z)


@parametrize("reduce", ["sum", "prod", "mean", "amax"])
@compared
def test_scatter_reduce(torch: Any, reduce: str) -> str:
    index, source = torch.tensor([0, 0, 1]), torch.tensor([1 + 1j, 2, 3j])
    return repr(torch.ones(2, dtype=torch.cfloat).scatter_reduce(0, index, source, reduce))


def test_gradients_of_scatter_reduce() -> None:
    index = tinytorch.tensor([0, 0, 1])
    x, source = (tinytorch.randn(n, dtype=tinytorch.cdouble, requires_grad=True) for n in (2, 3))
    for reduce in ("sum", "prod", "mean"):
        for include_self in (True, False):

            def reduced(x: Any, source: Any, reduce: str = reduce, include: bool = include_self) -> Any:
                return x.scatter_reduce(0, index, source, reduce, include_self=include)

            assert tinytorch.autograd.gradcheck(reduced, (x, source), check_forward_ad=True)
            assert tinytorch.autograd.gradgradcheck(reduced, (x, source))


@needs_oracle
def test_compiled_functions_and_autocasting_leave_complex_numbers_alone() -> None:
    def rotated(torch: Any, q: Any, turns: Any) -> Any:
        return torch.view_as_real(torch.view_as_complex(q.reshape(2, 2, 2)) * turns).flatten(1)

    def program(torch: Any, compile: Any) -> list[Any]:
        turns = torch.polar(torch.ones(2), torch.tensor([0.1, 0.2]))
        q = torch.arange(8.0).reshape(2, 4)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            kind = str((turns[None] @ turns[:, None]).dtype)
        return [repr(compile(lambda q, t: rotated(torch, q, t))(q, turns)) for _ in range(2)] + [kind]

    assert program(tinytorch, tinytorch.compile) == program(torch, lambda function: function)


def test_eigenvalues_may_be_the_first_complex_numbers_of_a_program() -> None:
    lines = (
        "import tinytorch as torch", "x = torch.tensor([[1.0, 2.0], [-3.0, 1.0]], requires_grad=True)",
        "vectors = torch.linalg.eig(x).eigenvectors", "(vectors * vectors.conj()).sum().real.backward()",
        "assert x.grad.abs().max() < 1e-6",
    )  # fmt: skip
    subprocess.run([sys.executable, "-c", "\n".join(lines)], check=True, cwd=Path(__file__).parents[2])


@pytest.mark.parametrize("z", ["torch.fft.fft(torch.ones(1))", f"pickle.loads({pickle.dumps(tinytorch.tensor(1j))})"])
def test_other_ops_refuse_the_first_complex_numbers_of_a_program(z: str) -> None:
    command = [sys.executable, "-c", f"import pickle, tinytorch as torch; z = {z}; torch.maximum(z, z)"]
    ended = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True)
    assert "maximum is not supported for complex types" in ended.stderr
