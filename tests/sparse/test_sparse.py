"""Sparse tensors in the formats COO and CSR: values, layouts, gradients, text and errors are PyTorch's."""

from __future__ import annotations

import copy
import io
import pickle
import warnings
from typing import Any

import numpy as np
import pytest

import tinytorch
from tests import oracle

torch = oracle.module()
pytestmark = [oracle.needs_oracle, pytest.mark.filterwarnings("ignore:.*[Ss]parse.*:UserWarning")]

KINDS = ("coalesced", "uncoalesced", "csr")


def made(t: Any, kind: str, size: tuple[int, int] = (5, 4), seed: int = 0, count: int = 9) -> Any:
    """Return a random matrix in a format; an uncoalesced one has several entries at some places."""
    draw = np.random.default_rng(seed)
    numbers = draw.integers(0, size[0] * size[1], count)
    if kind != "uncoalesced":
        numbers = np.unique(numbers)
    where = np.stack(np.unravel_index(numbers, size))
    values = draw.standard_normal(len(numbers))
    x = t.sparse_coo_tensor(t.from_numpy(where), t.from_numpy(values), size)
    return x if kind == "uncoalesced" else x.coalesce() if kind == "coalesced" else x.to_sparse_csr()


def dense(t: Any, *size: int, seed: int = 1) -> Any:
    return t.from_numpy(np.random.default_rng(seed).standard_normal(size))


def parts(x: Any) -> Any:
    """Return a tensor as layout, dtype, shape and arrays; a tensor in the format COO is coalesced first."""
    if not hasattr(x, "layout"):
        return x
    x = x.detach()
    head = [str(x.layout), str(x.dtype), tuple(x.shape)]
    name = str(x.layout)
    if name == "torch.sparse_coo":
        x = x.coalesce()
        return [*head, x.indices().tolist(), x.values().numpy()]
    if name == "torch.sparse_csr":
        return [*head, x.crow_indices().tolist(), x.col_indices().tolist(), x.values().numpy()]
    return [*head, x.numpy()]


def assert_alike(mine: Any, theirs: Any, rtol: float = 1e-10) -> None:
    if isinstance(mine, (list, tuple)):
        assert len(mine) == len(theirs)
        for x, y in zip(mine, theirs, strict=True):
            assert_alike(x, y, rtol)
        return
    a, b = parts(mine), parts(theirs)
    if not isinstance(a, list):
        assert a == b
        return
    assert len(a) == len(b)
    for x, y in zip(a, b, strict=True):
        if isinstance(x, np.ndarray):
            np.testing.assert_allclose(x, y, rtol=1e-6 if x.dtype == np.float32 else rtol, atol=1e-12)
        else:
            assert x == y


#: Calls of both formats, and of the format COO alone.
BOTH = {
    "mm": lambda t, x: x.mm(dense(t, 4, 3)),
    "matmul": lambda t, x: x @ dense(t, 4, 3),
    "matmul with a vector": lambda t, x: x @ dense(t, 4),
    "mv": lambda t, x: x.mv(dense(t, 4)),
    "torch.mm": lambda t, x: t.mm(x, dense(t, 4, 3)),
    "spmm": lambda t, x: t.spmm(x, dense(t, 4, 3)),
    "sparse.mm": lambda t, x: t.sparse.mm(x, dense(t, 4, 3)),
    "dense @ sparse": lambda t, x: dense(t, 3, 5) @ x,
    "dense.mm(sparse)": lambda t, x: dense(t, 3, 5).mm(x),
    "vector @ sparse": lambda t, x: dense(t, 5) @ x,
    "parameter @ sparse": lambda t, x: t.nn.Parameter(dense(t, 3, 5)) @ x,
    "addmm": lambda t, x: t.addmm(dense(t, 5, 3, seed=2), x, dense(t, 4, 3), beta=0.5, alpha=2),
    "method addmm": lambda t, x: dense(t, 5, 3, seed=2).addmm(x, dense(t, 4, 3)),
    "sparse.addmm": lambda t, x: t.sparse.addmm(dense(t, 3), x, dense(t, 4, 3)),
    "linear": lambda t, x: t.nn.functional.linear(dense(t, 2, 4), x),
    "add": lambda t, x: x + x,
    "add scaled": lambda t, x: t.add(x, x, alpha=3),
    "dense + sparse": lambda t, x: dense(t, 5, 4) + x,
    "dense.add_": lambda t, x: dense(t, 5, 4).add_(x, alpha=-2),
    "dense +=": lambda t, x: dense(t, 5, 4).__iadd__(x),
    "parameter + sparse": lambda t, x: t.nn.Parameter(dense(t, 5, 4)) + x,
    "mul number": lambda t, x: x * 2.5,
    "number mul": lambda t, x: 2 * x,
    "mul 0-d": lambda t, x: x * t.tensor(3.0).double(),
    "mul dense": lambda t, x: x * dense(t, 5, 4),
    "dense mul": lambda t, x: dense(t, 5, 4) * x,
    "mul sparse": lambda t, x: x * x,
    "mul_": lambda t, x: x.clone().mul_(3),
    "neg": lambda t, x: -x,
    "abs": lambda t, x: abs(x),
    "torch.sin": lambda t, x: t.sin(x),
    "relu": lambda t, x: t.nn.functional.relu(x),
    "tanh": lambda t, x: x.tanh(),
    "sign": lambda t, x: x.sign(),
    "isnan": lambda t, x: x.isnan(),
    "neg_": lambda t, x: x.clone().neg_(),
    "sum": lambda t, x: x.sum(),
    "sum kept": lambda t, x: x.sum(1, keepdim=True),
    "to_dense": lambda t, x: x.to_dense(),
    "to float": lambda t, x: x.float(),
    "to dtype": lambda t, x: x.to(t.float32),
    "bool": lambda t, x: x.bool(),
    "clone": lambda t, x: x.clone(),
    "detach": lambda t, x: x.detach(),
    "zeros_like": lambda t, x: t.zeros_like(x),
    "zero_": lambda t, x: x.clone().zero_(),
    "sparse_mask": lambda t, x: dense(t, 5, 4).sparse_mask(x),
    "select": lambda t, x: x.select(0, 1),
    "select a column": lambda t, x: x.select(1, -1),
    "row": lambda t, x: x[2],
    "element": lambda t, x: x[2, 1],
    "unbind": lambda t, x: list(x.unbind()),
    "to_sparse_csr": lambda t, x: x.to_sparse_csr(),
    "to_sparse_coo": lambda t, x: x.to_sparse_coo(),
    "_nnz": lambda t, x: x._nnz(),
    "members": lambda t, x: (
        x.is_sparse, x.is_sparse_csr, str(x.layout), tuple(x.shape), x.ndim, x.numel(), x.sparse_dim(), x.dense_dim(),
        x.is_leaf, x.requires_grad, x.grad, isinstance(x, t.Tensor), t.is_tensor(x), len(x), str(x.device), x.itemsize,
    ),
}  # fmt: skip
COO = {
    "sparse @ sparse": lambda t, x: t.sparse.mm(x, made(t, "uncoalesced", (4, 6), 3, 11)),
    "add another": lambda t, x: x + made(t, "coalesced", seed=4),
    "sub": lambda t, x: x - made(t, "coalesced", seed=4),
    "dense - sparse": lambda t, x: dense(t, 5, 4) - x,
    "dense.sub_": lambda t, x: dense(t, 5, 4).sub_(x),
    "mul another": lambda t, x: (x * made(t, "coalesced", seed=4)).to_dense(),  # (PyTorch may keep entries of value 0)
    "mul broadcast": lambda t, x: x * dense(t, 4),
    "div": lambda t, x: x / 3,
    "floor_divide": lambda t, x: x // 0.5,
    "pow": lambda t, x: x**2,
    "torch.pow": lambda t, x: t.pow(x, 3),
    "sparse.sum": lambda t, x: t.sparse.sum(x),
    "sparse.sum of rows": lambda t, x: t.sparse.sum(x, 1),
    "sparse.sum of all": lambda t, x: t.sparse.sum(x, [0, 1]),
    "sparse.sum dtype": lambda t, x: t.sparse.sum(x, 0, dtype=t.float32),
    "softmax": lambda t, x: t.sparse.softmax(x, 1),
    "softmax of columns": lambda t, x: t.sparse.softmax(x, 0, dtype=t.float32),
    "log_softmax": lambda t, x: t.sparse.log_softmax(x, -1),
    "t": lambda t, x: x.t(),
    "T": lambda t, x: x.T,
    "transpose": lambda t, x: t.transpose(x, 0, 1),
    "permute": lambda t, x: x.permute(1, 0),
    "unsqueeze": lambda t, x: x.unsqueeze(1),
    "index_select": lambda t, x: x.index_select(0, t.tensor([3, 0, 3])),
    "index_select of columns": lambda t, x: t.index_select(x, 1, t.tensor([1, 1, 2])),
    "cat": lambda t, x: t.cat([x, x], 1),
    "stack": lambda t, x: t.stack([x, x]),
    "norm": lambda t, x: x.norm(),
    "coalesce": lambda t, x: x.coalesce(),
    "is_coalesced": lambda t, x: [
        x.is_coalesced(), (x * 2).is_coalesced(), x.t().is_coalesced(), x.abs().is_coalesced(),
        (x + made(t, "coalesced", seed=4)).is_coalesced(), x.neg().is_coalesced(),
    ],
    "_indices": lambda t, x: x._indices(),
    "_values": lambda t, x: x._values(),
    "type": lambda t, x: x.type(),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [*BOTH, *COO])
def test_functions(name: str, kind: str) -> None:
    if kind == "csr" and name not in BOTH:
        pytest.skip("a function of the format COO")
    call = {**BOTH, **COO}[name]
    assert_alike(call(tinytorch, made(tinytorch, kind)), call(torch, made(torch, kind)))


#: Losses of a sparse matrix and a dense one. PyTorch has no formula for some, or none for the format CSR.
LOSSES = {
    "sparse.mm": lambda t, x, d: (t.sparse.mm(x, d) ** 2).sum(),
    "to_dense": lambda t, x, d: (x.to_dense() ** 2).sum() + d.sum(),
    "scaled": lambda t, x, d: ((x * 3).to_dense() ** 2).sum() + d.sum(),
    "neg": lambda t, x, d: ((-x).to_dense() ** 2).sum() + d.sum(),
    "abs": lambda t, x, d: x.abs().to_dense().sum() + d.sum(),
    "sparse.addmm": lambda t, x, d: (t.sparse.addmm(d[:1, :], x, d) ** 2).sum(),
    "double": lambda t, x, d: (t.sparse.mm(x + x, d) ** 2).sum(),
    "pow": lambda t, x, d: ((x**2).to_dense() ** 2).sum() + d.sum(),
    "softmax": lambda t, x, d: (t.sparse.softmax(x, 1).to_dense() ** 2).sum() + d.sum(),
    "log_softmax": lambda t, x, d: (t.sparse.log_softmax(x, 0).to_dense() ** 2).sum() + d.sum(),
    "sparse.sum": lambda t, x, d: t.sparse.sum(x) ** 2 + d.sum(),
    "sparse.sum of rows": lambda t, x, d: (t.sparse.sum(x, 1).to_dense() ** 2).sum() + d.sum(),
    "values": lambda t, x, d: (x.coalesce().values() ** 2).sum() + d.sum(),
    "transposed": lambda t, x, d: (t.sparse.mm(x.t(), t.sparse.mm(x, d)) ** 2).sum(),
}


NOT_OF_CSR = ("pow", "softmax", "log_softmax", "sparse.sum", "sparse.sum of rows", "values", "transposed")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", LOSSES)
def test_gradients(name: str, kind: str) -> None:
    if kind == "csr" and name in NOT_OF_CSR:
        pytest.skip("not a function of the format CSR")
    gradients = []
    for t in (tinytorch, torch):
        x, d = made(t, kind).requires_grad_(), dense(t, 4, 3).requires_grad_()
        LOSSES[name](t, x, d).backward()
        gradients.append((x.grad, d.grad))
    for mine, theirs in zip(*gradients, strict=True):
        assert_alike(mine, theirs)


@pytest.mark.parametrize("kind", ["coo", "csr"])
def test_gradients_of_the_values(kind: str) -> None:
    results = []
    for t in (tinytorch, torch):
        values = dense(t, 3).requires_grad_()
        if kind == "coo":
            x = t.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], values, (2, 3))
        else:
            x = t.sparse_csr_tensor([0, 1, 3], [2, 0, 2], values, (2, 3))
        assert not x.is_leaf and x.requires_grad
        (x @ dense(t, 3, 2)).pow(2).sum().backward()
        results.append((repr(x), values.grad.numpy()))
    assert results[0][0] == results[1][0]
    np.testing.assert_allclose(results[0][1], results[1][1])


def test_gradients_accumulate_and_grad_returns_sparse_ones() -> None:
    for kind in ("coalesced", "csr"):
        results = []
        for t in (tinytorch, torch):
            x = made(t, kind).requires_grad_()
            for _ in range(2):
                t.sparse.mm(x, dense(t, 4, 3)).sum().backward()
            (g,) = t.autograd.grad(t.sparse.mm(x, dense(t, 4, 3)).sum(), [x])
            results.append((x.grad, g))
        assert_alike(*[each[0] for each in results])
        assert_alike(*[each[1] for each in results])


def test_a_gradient_through_to_sparse_is_dense() -> None:
    grads = []
    for t in (tinytorch, torch):
        x = dense(t, 3, 4).requires_grad_()
        ((x.to_sparse() * 2).to_dense() ** 2).sum().backward()
        grads.append(x.grad)
    assert_alike(*grads)


def test_derivatives_of_second_order() -> None:
    where = tinytorch.tensor([[0, 1, 1], [2, 0, 2]])

    def loss(values: Any, d: Any) -> Any:
        return tinytorch.sparse.mm(tinytorch.sparse_coo_tensor(where, values, (2, 3)), d) ** 2

    values, d = dense(tinytorch, 3).requires_grad_(), dense(tinytorch, 3, 2).requires_grad_()
    assert tinytorch.autograd.gradcheck(loss, (values, d))
    assert tinytorch.autograd.gradgradcheck(loss, (values, d))


#: Expressions whose text must be PyTorch's.
TEXTS = (
    "t.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3))",
    "t.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3, 4, 5])",
    "t.sparse_coo_tensor([[0, 1], [2, 4]], [[1, 2], [3, 4.0]])",
    "t.sparse_coo_tensor([[0]], 5.0, (2,))",
    "t.sparse_coo_tensor(size=(2, 3))",
    "t.sparse_coo_tensor((2, 3), dtype=t.int64)",
    "t.sparse_coo_tensor([[0], [1]], [1], (2, 3), dtype=t.float64, requires_grad=True)",
    "t.sparse_coo_tensor(t.arange(2000).view(1, -1), t.arange(2000.0), (2000,))",
    "t.sparse_csr_tensor([0, 1, 3], [2, 0, 2], [3.0, 4.0, 5.0], (2, 3))",
    "t.sparse_csr_tensor([0, 1, 2], [1, 0], [1.0, 2.0])",
    "t.sparse_csr_tensor(t.tensor([0, 1, 2], dtype=t.int32), t.tensor([1, 0], dtype=t.int32), [1.0, 2.0])",
    "t.sparse_csr_tensor([0, 1, 3], [2, 0, 2], [3.0, 4.0, 5.0], (2, 3), dtype=t.float64, requires_grad=True)",
    "t.sparse_compressed_tensor([0, 1, 2], [0, 1], [1.0, 2.0], layout=t.sparse_csr)",
    "t.eye(3).to_sparse()",
    "t.ones(2, 3).to_sparse(1)",
    "t.tensor(2.0).to_sparse()",
    "t.eye(2).to_sparse(layout=t.sparse_csr)",
    "t.eye(3).to_sparse().requires_grad_() * 2",
    "t.eye(3).to_sparse().half()",
    "t.zeros(2, 2).to_sparse_csr()",
    "t.sparse.FloatTensor(t.tensor([[0, 1]]), t.tensor([1.0, 2.0]), t.Size([4]))",
    "t.sparse.FloatTensor(2, 3)",
    "t.sparse.FloatTensor()",
    "t.sparse.LongTensor(t.tensor([[0, 1]]), t.tensor([1, 2]))",
    "[isinstance(t.eye(2).to_sparse(), c) for c in (t.sparse.FloatTensor, t.FloatTensor, t.sparse.DoubleTensor)]",
    "t.sparse.sampled_addmm(t.sparse_csr_tensor([0, 1, 2], [1, 0], [1.0, 2.0]), t.ones(2, 2), t.ones(2, 2), beta=2)",
    "t.sparse.sum(t.sparse_coo_tensor([[0, 2, 0]], t.arange(6.0).view(3, 2), (3, 2)), 0)",
    "t.sparse.sum(t.sparse_coo_tensor([[0, 2, 0]], t.arange(6.0).view(3, 2), (3, 2)), 1)",
    "t.sparse.softmax(t.sparse_coo_tensor([[0, 2, 0]], t.arange(6.0).view(3, 2), (3, 2)), 0)",
    "t.sparse.softmax(t.sparse_coo_tensor([[0, 2, 0]], t.arange(6.0).view(3, 2), (3, 2)), 1)",
    "t.sparse_coo_tensor([[0, 2, 0]], t.arange(6.0).view(3, 2), (3, 2)).to_dense()",
    "t.sparse_coo_tensor([[0, 2, 0]], t.arange(6.0).view(3, 2), (3, 2)).coalesce()",
    "t.sparse_coo_tensor([[0, 2, 0]], t.arange(6.0).view(3, 2), (3, 2))[0]",
)


@pytest.mark.parametrize("text", TEXTS)
def test_text(text: str) -> None:
    assert repr(eval(text, {"t": tinytorch})) == repr(eval(text, {"t": torch}))


#: Calls that raise an error of PyTorch's class and words; `check` makes PyTorch check what tinytorch always checks.
ERRORS = (
    "t.sparse_coo_tensor([[-1], [0]], [1.0], (2, 3), check_invariants=True)",
    "t.sparse_coo_tensor([[0], [3]], [1.0], (2, 3), check_invariants=True)",
    "t.sparse_coo_tensor([[0], [1]], [1.0], (2,))",
    "t.sparse_coo_tensor([[0, 1], [1, 1]], [1.0], (2, 3))",
    "t.sparse_coo_tensor(t.tensor([0]), t.tensor([1.0]), (2,))",
    "t.sparse_coo_tensor([[0, 1]], [[1, 2], [3, 4.0]], (2, 3))",
    "t.sparse_coo_tensor([[1, 0], [0, 1]], [1.0, 2.0], (2, 3), is_coalesced=True, check_invariants=True)",
    "t.sparse_csr_tensor([0, 1], [1, 0], [1.0, 2.0], (2, 3), check_invariants=True)",
    "t.sparse_csr_tensor([1, 1, 2], [1, 0], [1.0, 2.0], (2, 3), check_invariants=True)",
    "t.sparse_csr_tensor([0, 1, 1], [1, 0], [1.0, 2.0], (2, 3), check_invariants=True)",
    "t.sparse_csr_tensor([0, 1, 2], [1, 3], [1.0, 2.0], (2, 3), check_invariants=True)",
    "t.sparse_csr_tensor([0, 1, 2], [1, -1], [1.0, 2.0], (2, 3), check_invariants=True)",
    "t.sparse_csr_tensor([0, 1, 2], [1, 0], [1.0], (2, 3), check_invariants=True)",
    "t.sparse_csr_tensor([0, 2, 2], [1, 0], [1.0, 2.0], (2, 3), check_invariants=True)",
    "t.sparse_csr_tensor([0, 1, 2], [1, 0], [1.0, 2.0], (3,), check_invariants=True)",
    "t.ones(2, 3).to_sparse(3)",
    "t.ones(2, 3).to_sparse(0)",
    "t.ones(2).coalesce()",
    "made(t, 'uncoalesced').indices()",
    "made(t, 'uncoalesced').values()",
    "made(t, 'uncoalesced').abs_()",
    "made(t, 'coalesced').crow_indices()",
    "made(t, 'csr').indices()",
    "made(t, 'csr').coalesce()",
    "made(t, 'coalesced') + 1",
    "made(t, 'coalesced') + dense(t, 5, 4)",
    "made(t, 'coalesced') + made(t, 'coalesced', (4, 5))",
    "made(t, 'coalesced') / made(t, 'coalesced')",
    "made(t, 'coalesced') ** 0",
    "made(t, 'coalesced') @ dense(t, 5, 2)",
    "made(t, 'csr') @ dense(t, 5, 2)",
    "made(t, 'coalesced') @ dense(t, 4, 2).float()",
    "made(t, 'coalesced').mv(dense(t, 5))",
    "made(t, 'coalesced') @ made(t, 'coalesced')",
    "made(t, 'coalesced') @ made(t, 'csr', (4, 5))",
    "made(t, 'coalesced').numpy()",
    "made(t, 'csr').numpy()",
    "bool(made(t, 'coalesced'))",
    "made(t, 'coalesced').__setitem__((0, 0), 1.0)",
    "made(t, 'coalesced').to_sparse(1)",
    "made(t, 'coalesced').to_dense(dtype=t.float32)",
    "made(t, 'coalesced').select(0, 7)",
    "made(t, 'coalesced').norm(dim=0)",
    "setattr(t.ones(3, 3, requires_grad=True), 'grad', t.eye(2).to_sparse())",
)
#: Functions without a rule.
REFUSED = (
    "t.exp(made(t, 'coalesced'))", "made(t, 'coalesced').exp()", "made(t, 'coalesced').cumsum(0)",
    "t.softmax(made(t, 'coalesced'), 1)", "made(t, 'coalesced') == made(t, 'coalesced')",
    "made(t, 'coalesced') > 1", "t.where(made(t, 'coalesced'), 1.0, 2.0)", "made(t, 'coalesced').mean()",
    "made(t, 'coalesced').view(4, 5)", "t.cos(made(t, 'csr'))", "t.equal(made(t, 'csr'), made(t, 'csr'))",
    "made(t, 'coalesced')[t.tensor([0])]", "t.nn.functional.dropout(made(t, 'coalesced'))",
    "t.nn.functional.softmax(made(t, 'coalesced'), 1)", "made(t, 'coalesced')[:1]", "t.trace(made(t, 'coalesced'))",
    "t.allclose(made(t, 'coalesced'), made(t, 'coalesced'))", "made(t, 'coalesced') % 2",
    "t.ones_like(made(t, 'coalesced'))",
    "t.logical_not(made(t, 'coalesced'))", "t.nonzero(made(t, 'coalesced'))", "t.sigmoid(made(t, 'coalesced'))",
    "t.ones(5, 4).copy_(made(t, 'coalesced'))",
)  # fmt: skip


@pytest.mark.parametrize("text", ERRORS)
def test_errors(text: str) -> None:
    errors = []
    for t in (tinytorch, torch):
        with pytest.raises(Exception) as caught:
            eval(text, {"t": t, "made": made, "dense": dense})
        errors.append(caught.value)
    assert isinstance(errors[0], type(errors[1]))
    mine, theirs = (" ".join(str(each).split()) for each in errors)
    assert mine[:30] == theirs[:30]


def test_rows_that_end_before_they_begin_are_refused() -> None:
    """PyTorch reads outside of the memory for them, and names one of several conditions."""
    with pytest.raises(RuntimeError, match="crow_indices"):
        tinytorch.sparse_csr_tensor([0, 2, 1], [1], [1.0], (2, 3))


@pytest.mark.parametrize("text", REFUSED)
def test_functions_without_a_rule_say_so(text: str) -> None:
    with pytest.raises((NotImplementedError, RuntimeError)):
        eval(text, {"t": torch, "made": made, "dense": dense})
    with pytest.raises((NotImplementedError, RuntimeError), match=r"sparse|Sparse"):
        eval(text, {"t": tinytorch, "made": made, "dense": dense})


MEMBERS = frozenset(vars(tinytorch.Tensor))  # before other tests add any


def test_every_member_of_tensor_has_a_rule_or_refuses() -> None:
    """No method of Tensor takes a sparse tensor for a dense one: it has a rule, or raises an error."""
    from tinytorch.sparse.rules import RULES
    from tinytorch.sparse.tensors import _KEPT, SparseCOO, SparseTensor

    x = made(tinytorch, "coalesced")
    defined = {
        name for cls in (SparseCOO, SparseTensor) for name, each in vars(cls).items() if not hasattr(each, "_name")
    }
    apart = {"imag", "__cuda_array_interface__"}  # they raise errors of their own
    refused = 0
    for name in sorted(MEMBERS - _KEPT - defined - set(RULES) - apart):
        with pytest.raises(NotImplementedError):
            getattr(x, name)()
        refused += 1
    assert refused > 400


def test_left_out_functions_say_so() -> None:
    with pytest.raises(NotImplementedError, match="spsolve"):
        tinytorch.sparse.spsolve()
    with pytest.raises(NotImplementedError, match="meta"):
        tinytorch.empty(2, 3, layout=tinytorch.sparse_coo, device="meta")


@pytest.mark.parametrize("kind", KINDS)
def test_files_pickles_and_copies(kind: str) -> None:
    x, theirs = made(tinytorch, kind), made(torch, kind)
    for original, load, save in ((x, torch.load, tinytorch.save), (theirs, tinytorch.load, torch.save)):
        for weights_only in (True, False):
            file = io.BytesIO()
            save({"x": original}, file)
            file.seek(0)
            loaded = load(file, weights_only=weights_only)["x"]
            assert_alike(*((loaded, theirs) if load is tinytorch.load else (x, loaded)))
            if kind != "csr":
                assert loaded.is_coalesced() == theirs.is_coalesced()
    x.requires_grad_()
    assert copy.deepcopy(x).requires_grad and not pickle.loads(pickle.dumps(x)).requires_grad  # as in PyTorch
    for copied in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert copied.is_leaf
        assert_alike(copied, theirs)
        with tinytorch.no_grad():
            copied.mul_(0)
    assert_alike(x, theirs)
    with pytest.raises(RuntimeError, match="graph leaves"):
        copy.deepcopy(x * 2)


def test_values_share_memory() -> None:
    x = made(tinytorch, "coalesced")
    x.values().mul_(2)
    assert_alike(x, made(torch, "coalesced") * 2)


def test_three_sparse_dimensions() -> None:
    for call in (
        lambda t, x: t.sparse.sum(x, (0, 2)), lambda t, x: t.sparse.sum(x, 1), lambda t, x: x.transpose(0, 2),
        lambda t, x: t.sparse.softmax(x, 2), lambda t, x: x.select(1, 0), lambda t, x: x.to_dense(),
        lambda t, x: x.index_select(2, t.tensor([2, 2])),
    ):  # fmt: skip
        results = []
        for t in (tinytorch, torch):
            x = t.sparse_coo_tensor([[0, 1, 1], [1, 0, 0], [2, 1, 2]], [1.0, 2.0, 3.0], (2, 2, 3))
            results.append(call(t, x))
        assert_alike(*results)


@pytest.mark.parametrize("seed", range(30))
def test_random_products(seed: int) -> None:
    draw = np.random.default_rng(seed)
    n, m, p = (int(each) for each in draw.integers(1, 40, 3))
    kind, count = KINDS[seed % 3], int(draw.integers(0, 200))
    results = []
    for t in (tinytorch, torch):
        x, d = made(t, kind, (n, m), seed, count).requires_grad_(), dense(t, m, p, seed=seed).requires_grad_()
        out = t.sparse.mm(x, d)
        (out * dense(t, n, p, seed=seed + 1)).sum().backward()
        results.append((out, x.grad, d.grad))
    for mine, theirs in zip(*results, strict=True):
        assert_alike(mine, theirs)


# Programs -----------------------------------------------------------------------------------------


def gcn(t: Any, kind: str) -> list[float]:
    """Train a graph network of two layers; return the losses."""
    draw = np.random.default_rng(0)
    ends = draw.integers(0, 60, (2, 200))
    loops = np.arange(60)
    where = np.concatenate([ends, ends[::-1], np.stack([loops, loops])], axis=1)
    ones = t.ones(where.shape[1])
    adjacency = t.sparse_coo_tensor(t.from_numpy(where), ones, (60, 60)).coalesce()
    degree = t.sparse.sum(adjacency, 1).to_dense() ** -0.5
    row, column = adjacency.indices()
    weights = degree[row] * adjacency.values() * degree[column]
    adjacency = t.sparse_coo_tensor(adjacency.indices(), weights, (60, 60))
    if kind == "csr":
        adjacency = adjacency.to_sparse_csr()
    features = t.from_numpy(draw.standard_normal((60, 8)).astype(np.float32))
    labels = t.from_numpy(draw.integers(0, 3, 60))
    t.manual_seed(0)
    first, second = t.nn.Linear(8, 16), t.nn.Linear(16, 3)
    optimizer = t.optim.Adam([*first.parameters(), *second.parameters()], lr=0.01)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        hidden = t.relu(t.sparse.mm(adjacency, first(features)))
        loss = t.nn.functional.cross_entropy(adjacency @ second(hidden), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("kind", ["coo", "csr"])
def test_a_graph_network_trains_as_with_pytorch(kind: str) -> None:
    mine = gcn(tinytorch, kind)
    assert mine[-1] < mine[0] - 0.05
    np.testing.assert_allclose(mine, gcn(torch, kind), atol=1e-4)


def embedding(t: Any, optimizer: str, bag: bool = False, **options: Any) -> tuple[list[float], Any, Any]:
    """Train an embedding with sparse gradients; return the losses, the table and the kinds of the state."""
    t.manual_seed(0)
    table = t.nn.EmbeddingBag(12, 4, sparse=True) if bag else t.nn.Embedding(12, 4, sparse=True, padding_idx=0)
    words = t.tensor([[1, 2, 3], [3, 3, 5], [0, 7, 2], [5, 1, 0]])
    targets = t.tensor([0, 1, 2, 3])
    steps = getattr(t.optim, optimizer)(table.parameters(), lr=0.1, **options)
    losses = []
    for step in range(20):
        steps.zero_grad()
        chosen = [step % 4, (step + 1) % 4]
        logits = table(words[chosen]) if bag else table(words[chosen]).mean(1)
        loss = t.nn.functional.cross_entropy(logits, targets[chosen])
        loss.backward()
        assert table.weight.grad.is_sparse
        steps.step()
        losses.append(loss.item())
    state = {name: getattr(x, "layout", x) for name, x in steps.state[table.weight].items()}
    return losses, table.weight.detach().numpy(), {name: str(x) for name, x in state.items()}


@pytest.mark.parametrize("bag", [False, True])
@pytest.mark.parametrize(
    ("optimizer", "options"),
    [
        ("SparseAdam", {}), ("SparseAdam", {"betas": (0.5, 0.9), "maximize": True}), ("SGD", {}),
        ("SGD", {"momentum": 0.9}), ("SGD", {"momentum": 0.9, "nesterov": True}), ("SGD", {"maximize": True}),
        ("SGD", {"momentum": 0.5, "dampening": 0.25}), ("Adagrad", {}), ("Adagrad", {"lr_decay": 0.1}),
        ("Adagrad", {"maximize": True, "initial_accumulator_value": 0.5}),
    ],
)  # fmt: skip
def test_an_embedding_trains_as_with_pytorch(optimizer: str, options: dict[str, Any], bag: bool) -> None:
    mine, theirs = (embedding(t, optimizer, bag, **options) for t in (tinytorch, torch))
    np.testing.assert_allclose(mine[0], theirs[0], atol=1e-4)
    np.testing.assert_allclose(mine[1], theirs[1], atol=1e-4)
    assert mine[2] == theirs[2]


@pytest.mark.parametrize(
    ("optimizer", "options"),
    [
        *[(name, {}) for name in "Adam AdamW RMSprop Adamax NAdam RAdam ASGD Adadelta Rprop Adafactor Muon".split()],
        ("SGD", {"weight_decay": 0.1}), ("SGD", {"fused": True}), ("Adagrad", {"weight_decay": 0.1}),
        ("Adagrad", {"fused": True}),
    ],
)  # fmt: skip
def test_other_optimizers_refuse_sparse_gradients(optimizer: str, options: dict[str, Any]) -> None:
    errors = []
    for t in (tinytorch, torch):
        table = t.nn.Embedding(4, 2, sparse=True)
        steps = getattr(t.optim, optimizer)(table.parameters(), **options)
        before = table.weight.detach().clone()
        table(t.tensor([1])).sum().backward()
        with pytest.raises(RuntimeError) as caught:
            steps.step()
        assert (table.weight == before).all()
        errors.append(str(caught.value))
    assert errors[0] == errors[1]


def test_many_tables_under_adagrad() -> None:
    """Adagrad updates small parameters together: those with sparse gradients are left out of that."""
    tables = []
    for t in (tinytorch, torch):
        t.manual_seed(0)
        layers = [t.nn.Embedding(4, 2, sparse=True), t.nn.Embedding(4, 2), t.nn.Linear(2, 2)]
        optimizer = t.optim.Adagrad([p for layer in layers for p in layer.parameters()], lr=0.1)
        for step in range(4):
            optimizer.zero_grad()
            index = t.tensor([step % 4, 1])
            layers[2](layers[0](index) * layers[1](index)).pow(2).sum().backward()
            optimizer.step()
        tables.append([p.detach().numpy() for layer in layers for p in layer.parameters()])
    for mine, theirs in zip(*tables, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)


def test_gradients_of_a_table() -> None:
    def program(t: Any) -> list[Any]:
        seen = []
        t.manual_seed(0)
        table = t.nn.Embedding(5, 2, sparse=True)
        table(t.tensor([[1, 3], [1, 1]])).sum().backward()
        seen.append(table.weight.grad.clone())
        assert not table.weight.grad.is_coalesced()
        table(t.tensor([[1, 2]])).sum().backward()  # sparse + sparse
        seen.append(table.weight.grad.clone())
        table.weight.pow(2).sum().backward()  # sparse + dense
        seen.append(table.weight.grad.clone())
        table(t.tensor([4])).sum().backward()  # dense + sparse
        seen.append(table.weight.grad.clone())
        table.zero_grad()
        (table(t.tensor([1, 2])).sum() + table.weight.pow(2).sum() + table(t.tensor([2])).sum()).backward()
        seen.append(table.weight.grad.clone())
        table.zero_grad()
        (table(t.tensor([1, 2])).sum() + table(t.tensor([2, 0])).sum() * 3).backward()
        seen.append(table.weight.grad.clone())
        weight = t.nn.Parameter(t.ones(4, 2))
        t.nn.functional.embedding(t.tensor([1, 0, 1]), weight * 2, padding_idx=0, sparse=True).sum().backward()
        seen.append(weight.grad)
        (g,) = t.autograd.grad(table(t.tensor([3, 3])).pow(2).sum(), [table.weight])
        seen.append(g)
        grads = []
        handle = table.weight.register_hook(lambda g: grads.append(g))
        table(t.tensor([3])).sum().backward()
        handle.remove()
        table.zero_grad(set_to_none=False)
        seen += [grads[0], table.weight.grad]
        return seen

    for mine, theirs in zip(program(tinytorch), program(torch), strict=True):
        assert_alike(mine, theirs)


@pytest.mark.parametrize("mode", ["sum", "mean"])
@pytest.mark.parametrize("options", [{}, {"padding_idx": 1}, {"include_last_offset": True}])
def test_gradients_of_bags(mode: str, options: dict[str, Any]) -> None:
    grads = []
    for t in (tinytorch, torch):
        weight = t.nn.Parameter(dense(t, 6, 3))
        factors = dense(t, 5).requires_grad_() if mode == "sum" else None
        offsets = t.tensor([0, 2, 2, 5] if options.get("include_last_offset") else [0, 2, 2])
        out = t.nn.functional.embedding_bag(
            t.tensor([1, 4, 1, 0, 5]), weight, offsets, mode=mode, sparse=True, per_sample_weights=factors, **options
        )
        out.pow(2).sum().backward()
        grads.append([weight.grad, *([] if factors is None else [factors.grad])])
    for mine, theirs in zip(*grads, strict=True):
        assert_alike(mine, theirs)


def test_what_sparse_embeddings_refuse() -> None:
    for t in (tinytorch, torch):
        table = t.nn.Embedding(5, 2, sparse=True, scale_grad_by_freq=True)
        with pytest.raises(RuntimeError, match="scale_grad_by_freq not supported with sparse"):
            table(t.tensor([1, 2])).sum().backward()
        with pytest.raises((RuntimeError, ValueError), match="max mode does not support sparse"):
            t.nn.EmbeddingBag(5, 2, sparse=True, mode="max")(t.tensor([[1, 2]]))
        with pytest.raises(ValueError, match="Sparse params at indices"):
            t.optim.SparseAdam([t.eye(2).to_sparse().requires_grad_()])
        weight = t.ones(2, requires_grad=True)
        weight.sum().backward()
        with pytest.raises(RuntimeError, match="SparseAdam does not support dense gradients"):
            t.optim.SparseAdam([weight]).step()


def test_no_warnings() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        repr(made(tinytorch, "csr") @ tinytorch.ones(4, 2).double())
