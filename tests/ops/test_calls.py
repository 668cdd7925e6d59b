"""Calls that are rare and legal, as PyTorch's own tests make them, against PyTorch."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import numpy as np
import pytest

from tests.oracle import needs_oracle
from tests.same import compared, expressions, same_to_the_word

#: Makers of sequences, written into what is named: the numbers go in, whatever the shape; or it is resized in place.
MAKERS = (
    "linspace(0, 3, 4)", "arange(0, 4)", "logspace(0, 3, 4)", "range(0, 3)", "zeros(4)", "ones((2, 2))",
    "full((4,), 2.0)", "eye(2)", "normal(1.0, 0.0, (4,))", "randint(5, 6, (4,))",
)  # fmt: skip
TARGETS = {
    "part": lambda torch: (b := torch.zeros(2, 3), b.narrow(1, 1, 2)),
    "short": lambda torch: (b := torch.zeros(7), b[1:3]), "expanded": lambda torch: (b := torch.zeros(1), b.expand(4)),
    "empty": lambda torch: (b := torch.zeros(0), b), "transposed": lambda torch: (b := torch.zeros(2, 2).t(), b),
    "column": lambda torch: (b := torch.zeros(4, 2), b[:, 0]),
}  # fmt: skip


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
@compared
def test_made_into_out(torch: Any, maker: str, target: str) -> Any:
    base, out = TARGETS[target](torch)
    result = eval(f"torch.{maker[:-1]}, out=out)", {"torch": torch, "out": out})
    return result is out, out, base, out.stride(), out.storage_offset()


CALLS = """
    torch.add(x, 2, x); x.add(2, x); x.clone().add_(2, x); torch.sub(x, 2, x); x.clone().sub_(2, x)
    torch.addcmul(x, 2, x, x); x.addcmul(2, x, x); x.clone().addcmul_(2, x, x); torch.addcdiv(x, 2, x, x)
    x.clone().addcdiv_(2, x, x); torch.add(torch.tensor(True), torch.tensor(True), True)
    torch.add(x, x, alpha=torch.tensor(3.0)); torch.add(x, x, alpha=torch.tensor([3.0]))
    torch.add(x, x, alpha=np.float64(3)); torch.add(x, x, alpha=np.float32(3)); torch.add(x, x, alpha=True)
    torch.sub(x, x, alpha=np.float64(3)); torch.addcmul(x, x, x, value=torch.tensor(3.0))
    torch.addcmul(x, x, x, value=np.float64(3)); torch.addcdiv(x, x, x, value=torch.tensor([3.0]))
    torch.addcdiv(x, x, x, value=np.float64(3)); torch.add(x1=x, x2=x); torch.nn.functional.celu(x, np.float64(0.5))
    torch.nn.functional.leaky_relu(x, np.float32(0.5)); torch.nn.functional.hardshrink(x, torch.tensor(0.5))
    torch.autograd.grad(torch.nn.functional.celu(y := x.clone().requires_grad_(), np.float64(0.5)).sum(), y)
    torch.autograd.grad(torch.nn.functional.leaky_relu(y := x.clone().requires_grad_(), np.float64(0.5)).sum(), y)
    delattr(x, "data"); x.clone().add_(x, alpha=torch.tensor(3.0)); x.clone().add_(x, alpha=np.float64(3))
    x.clone().addcmul_(x, x, value=torch.tensor(3.0)); x.clone().addcdiv_(x, x, value=torch.tensor(3.0))
    torch.rsub(x, x, alpha=np.float64(3)); torch.tensor_split(m, torch.tensor(1.1))
    torch.tensor_split(m, torch.rand(5)); torch.tensor_split(m, torch.tensor([[1]]))
    torch.broadcast_shapes((-1, 2), (1, 2)); torch.broadcast_shapes(-1, 2)
    torch.zeros(6).resize_as_(torch.zeros(3, 2).t(), memory_format=torch.preserve_format).stride()
    torch.zeros(120).resize_as_(last, memory_format=torch.preserve_format).stride()
    torch.zeros(6).resize_(2, 3, memory_format=torch.preserve_format); x.__dlpack__(stream=object())
    x.__dlpack__(stream=1); torch.from_dlpack(torch.ones(2, dtype=torch.bfloat16)).float()
    torch.from_dlpack(torch.ones(2, dtype=torch.bfloat16, requires_grad=True))
    torch.unique_consecutive(torch.empty(0, 3), return_inverse=True, return_counts=True)
    torch.unique_consecutive(torch.empty(0, 3), return_inverse=True, return_counts=True, dim=0)
    torch.unique(torch.tensor([nan, 1.0, nan]), return_inverse=True, return_counts=True, dim=0)
    torch.unique(torch.tensor([[nan, 1], [nan, 1], [2, 3]]), return_inverse=True, return_counts=True, dim=0)
    torch.unique(torch.tensor([[2, 3], [nan, 1], [2, 3]]), return_inverse=True, return_counts=True, dim=0)
    torch.unique(torch.tensor([[2, nan], [1, 1], [2, 0]]), return_inverse=True, return_counts=True, dim=1)
    torch.tensor(endless); torch.as_tensor(endless); torch.tensor(endless[:0]); x.new(size=(3, 4)).shape; x.new([1, 2])
    x.apply_(lambda each: "a"); x.apply_(lambda each: each + 1); x.map_(x, lambda a, b: "a"); torch.device(-1)
    torch.device("cpu", -1); torch.device("cpu", "0"); torch.device("cpu:01"); torch.device("cpu:0")
    torch.device(torch.device("cuda:1")); torch.device(torch.device("cpu:0"), 0)
    x.layout is torch.strided; torch.add(x1=x, x2=x); torch.add(a=x, other=2, alpha=3); torch.exp(x1=x); torch.sum(a=m)
    torch.sum(x=m, axis=0, keepdims=True); torch.sum(x=m, axis=0, out=torch.zeros(4))
    torch.exp(a=x, out=torch.zeros(2)); torch.maximum(x1=x, x2=x, out=torch.zeros(2)); torch.mm(a=m, mat2=m)
    torch.matmul(x1=m, x2=m); torch.argmax(a=m, axis=1, keepdims=True); torch.exp(x, a=x); torch.maximum(x1=x)
    torch.frobenius_norm(m, axis=1, keepdims=True); torch.pow(self=2, exponent=x); torch.remainder(self=2, other=x)
    torch.repeat_interleave(x, 2, axis=0); torch.repeat_interleave(repeats=torch.tensor([0, 2, 1]))
    torch.gradient(m, axis=1)
    torch.trapezoid(m, axis=0), torch.trapz(m, axis=0), torch.cumulative_trapezoid(m, axis=0)
    torch.split_with_sizes(m, [1, 3], axis=1)
    torch.unsafe_chunk(m, 2, axis=1), torch.unsafe_split_with_sizes(m, [1, 3], axis=1)
    torch.select_scatter(m, x.new_ones(4), axis=1, index=0)
    torch.zeros(1, 2).squeeze_(axis=0).shape, torch.zeros(2).unsqueeze_(axis=0).shape; x.copy_(other=torch.zeros(2))
    m.sum_to_size(size=(1, 4)); torch.isin(element=2, test_elements=x), torch.isin(elements=x, test_element=1)
    torch.cholesky_solve(x.view(2, 1), input2=torch.eye(2)); torch.orgqr(torch.ones(2, 1), input2=torch.ones(1))
    torch.polygamma(np.int64(1), x), torch.polygamma(torch.tensor(1), x), x.mvlgamma(np.int64(1))
    torch.polygamma(True, x); torch.mvlgamma(x, True)
    torch.tril_indices(2, 3, dtype=None, requires_grad=False, pin_memory=False)
    torch.triu_indices(2, 3, dtype=torch.int32); torch.tril_indices(2, 3, dtype=torch.float32)
    torch.triu_indices(2, 2, requires_grad=True); m.flip(True); m.flip([True]); m.permute([True, 0]); m.tile(True)
    m.roll(1, False); m.tril(True); m.triu(False); torch.tensor_split(m, True)
    torch.nonzero(m, as_tuple=True, out=torch.zeros(0, dtype=torch.int64))
    torch.nonzero(m, as_tuple=False, out=torch.zeros(0, dtype=torch.int64)); torch.nonzero(m, as_tuple=True, out=None)
    torch.nonzero(a=m); torch.nonzero(m, as_tuple=1); torch.nonzero(m, as_tuple=None); m.nonzero(as_tuple="a")
    m.nonzero(out=torch.zeros(0, dtype=torch.int64))
    m.max(dim=torch.tensor(1)), torch.min(m, dim=torch.tensor(0), keepdim=True), m.max(torch.tensor(1.0))
    torch.frobenius_norm(m, np.int64(1), True); torch.avg_pool1d(m, np.int64(2), np.int64(1))
    torch.histogramdd(m[:, :2], np.int64(2)).hist; torch.rot90(m, torch.tensor(1))
    m.scatter(1, torch.tensor([[0], [1]]), value=torch.tensor(9.0))
    m.clone().scatter_(1, torch.tensor([[0], [1]]), value=torch.tensor(9.0))
    torch.add(x, np.float64(0.5), alpha=2), torch.add(x, np.int64(1), alpha=2), torch.sub(x, np.bool_(True), alpha=2)
    torch.lerp(x, x, np.float64(0.5)), x.lerp(x, np.int64(1))
    torch.promote_types(float, torch.int64), torch.can_cast(int, torch.float32), torch.can_cast(float, bool)
    torch.promote_types(str, torch.int64); torch.finfo(float).eps, torch.iinfo(int).max
    torch.nn.LayerNorm(np.int64(2))(x), torch.nn.RMSNorm(np.int64(2))(x); torch.addcdiv(2, x, x); torch.cov(2)
    torch.corrcoef(None); torch.trapz(2); torch.arange(4).view(dtype=float), torch.arange(4).view(dtype=bool).shape
    m.clone().fill_diagonal_(torch.tensor(1)); torch.pdist(2); torch.unsafe_chunk(2, 2); torch.adjoint(2)
    torch.argsort(2)
"""


def evaluate(text: str, torch: Any) -> Any:
    endless: list[Any] = []
    endless.append(endless)
    names = {
        "torch": torch, "np": np, "nan": float("nan"), "x": torch.ones(2), "m": torch.zeros(4, 4),
        "last": torch.zeros(2, 3, 4, 5).to(memory_format=torch.channels_last), "endless": endless,
    }  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the older calls: once in a process, in both
        return eval(text, names)


@pytest.mark.parametrize("text", expressions(CALLS))
@compared
def test_same_as_pytorch(torch: Any, text: str) -> Any:
    return evaluate(text, torch)


#: Calls whose arguments do not fit the signature: the errors are PyTorch's to the word.
WRONG = """
    torch.add(x, q=1); torch.maximum(x, 2); torch.maximum(x); x.mm(3); m.sum(0, keepdim="a"); torch.median(1)
    x.expand_as(1); x.equal(2); x.dist(1); x.heaviside(1); m.cumsum("a"); m.cumsum(); torch.linalg.solve(m); m.topk()
    torch.special.zeta(1, 2); m.topk("a"); torch.nn.functional.linear(x, 1); torch.nn.functional.gelu("a"); torch.exp()
    m.index_select("a", x); m.index_select(0); torch.kron(1, x); torch.diff("a"); x.take(1); torch.cdist(m, 1)
    torch.allclose(x, 1); torch.bincount(1); m.flatten("a"); m.roll(); m.unfold("a", 1, 1); torch.poisson(1)
    m.gather(0, 1); torch.transpose(m, 0); m.transpose(0, "a"); torch.transpose(m, 0, 1, 2); torch.exp(x, a=x)
    m.gather(dim="a", index=x); m.cross(1)
"""


@pytest.mark.parametrize("text", expressions(WRONG))
def test_wrong_arguments(text: str) -> None:
    same_to_the_word(lambda torch: evaluate(text, torch))


ALONG = """
    x.sum(d) x.mean(d) x.amax(d) x.amin(d) x.std(d) x.var(d) x.prod(d) x.logsumexp(d) x.nansum(d) x.nanmean(d)
    x.max(d)[0] x.min(d)[0] x.median(d)[0] x.mode(d)[0] x.cumsum(d) x.cumprod(d) x.cummax(d)[0] x.logcumsumexp(d)
    x.softmax(d) x.log_softmax(d) x.sort(d)[0] x.topk(1,d)[0] x.kthvalue(1,d)[0] x.flip(d) x.roll(1,d) x.unbind(d)[0]
    x.select(d,0) x.narrow(d,0,1) x.unsqueeze(d) x.transpose(d,0) x.split(1,d)[0] x.chunk(2,d)[1] torch.cat([x,x],d)
    torch.stack([x,x],d) x.index_select(d,torch.tensor([0])) x.quantile(0.5,d) x.diff(1,d) x.renorm(2,d,1.0)
    x.norm(2,(d,)) torch.linalg.vector_norm(x,2,d) torch.nn.functional.normalize(x,2.0,d) x.unfold(d,2,1)
    x.repeat_interleave(2,d) x.movedim(d,0) x.gather(d,torch.tensor([[0],[0]])) torch.var_mean(x,d)[0]
    x.aminmax(dim=d)[0]
"""


@pytest.mark.parametrize("kind", ["np.int64(1)", "np.int32(-1)", "torch.tensor(1)"])
@pytest.mark.parametrize("text", ALONG.split())
@compared
def test_a_dimension_that_is_no_int_of_pythons(torch: Any, text: str, kind: str) -> Any:
    if text in ("x.max(d)[0]", "x.min(d)[0]") and kind.startswith("torch"):
        text = text[:8]  # of two tensors
    x = (torch.arange(6.0).reshape(2, 3).sin() + 2).requires_grad_()
    result = eval(text, {"torch": torch, "x": x, "d": eval(kind, {"torch": torch, "np": np})})
    (result * result).sum().backward()
    return result, x.grad


@needs_oracle
@pytest.mark.parametrize("name", ["eig", "lstsq", "matrix_rank", "solve", "symeig"])
def test_functions_that_pytorch_took_away(name: str) -> None:
    for library in (importlib.import_module(each) for each in ("tinytorch", "torch")):
        with pytest.raises(RuntimeError, match="deprecated since version"):
            getattr(library, name)(*[library.eye(2)] * (2 if name in ("lstsq", "solve") else 1))
