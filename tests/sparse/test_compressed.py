"""Sparse tensors in the formats CSR, CSC, BSR and BSC, batches of them, and gradients of sparse tensors themselves."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import numpy as np
import pytest

import tinytorch
from tests import oracle
from tests.samples import all_samples
from tests.turns import in_turn

torch = oracle.module()
pytestmark = [oracle.needs_oracle, pytest.mark.filterwarnings("ignore:.*[Ss]parse.*:UserWarning")]

FORMATS = ("csr", "csc", "bsr", "bsc")
#: Shapes of batches, matrices and dense dimensions, and the number of the last.
SHAPES = {"matrix": ((4, 6), 0), "batch": ((2, 4, 6), 0), "hybrid": ((4, 6, 2), 1), "both": ((3, 4, 6, 2), 1)}


def dense(t: Any, *size: int, seed: int = 0, filled: bool = False) -> Any:
    """Return a random tensor of which about half of the elements are 0."""
    draw = np.random.default_rng(seed)
    values = draw.standard_normal(size)
    return t.from_numpy(values if filled else np.where(draw.random(size) < 0.5, 0.0, values))


def sparse(x: Any, form: str, dense_dim: int = 0, blocksize: tuple[int, int] = (2, 3)) -> Any:
    if form == "coo":
        return x.to_sparse(x.dim() - dense_dim)
    blocks = {"blocksize": blocksize} if form[0] == "b" else {}
    return getattr(x, f"to_sparse_{form}")(dense_dim=dense_dim, **blocks)


def parts(x: Any) -> Any:
    """Return a result as plain values and arrays."""
    if isinstance(x, (list, tuple)):
        return [parts(each) for each in x]
    if not hasattr(x, "layout"):
        return x
    name = str(x.layout)
    head: list[Any] = [name, str(x.dtype), tuple(x.shape), x.requires_grad]
    x = x.detach()
    if name == "torch.strided":
        return [*head, x.numpy()]
    if name == "torch.sparse_coo":
        x = x.coalesce()
        return [*head, x.indices().numpy(), x.values().numpy()]
    rows = name in ("torch.sparse_csr", "torch.sparse_bsr")
    indices = [x.crow_indices(), x.col_indices()] if rows else [x.ccol_indices(), x.row_indices()]
    return [*head, *[each.numpy() for each in indices], x.values().numpy()]


def assert_alike(mine: Any, theirs: Any) -> None:
    if isinstance(theirs, list):
        assert len(mine) == len(theirs)
        for x, y in zip(mine, theirs, strict=True):
            assert_alike(x, y)
    elif isinstance(theirs, np.ndarray):
        assert mine.dtype == theirs.dtype and mine.shape == theirs.shape
        np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-12)
    else:
        assert mine == theirs


def compare(call: Any) -> None:
    assert_alike(*[parts(call(t)) for t in (tinytorch, torch)])


#: Functions of a tensor in each format; "batch" and "hybrid" name those that PyTorch has for such tensors, too.
CALLS = {
    "itself": lambda t, x: x,
    "to_dense": lambda t, x: x.to_dense(),
    "to_sparse": lambda t, x: x.to_sparse(),
    "clone": lambda t, x: x.clone(),
    "detach": lambda t, x: [x.detach(), t.detach(x)],
    "float": lambda t, x: x.float(),
    "to": lambda t, x: x.to(t.int32),
    "neg": lambda t, x: -x,
    "sin": lambda t, x: x.sin(),
    "relu": lambda t, x: t.relu(x),
    "scaled": lambda t, x: x * 3,
    "sum of two": lambda t, x: x + x,
    "sum": lambda t, x: x.sum(),
    "zeros_like": lambda t, x: t.zeros_like(x),
    "full_like": lambda t, x: t.full_like(x, 2.5),
    "fill_": lambda t, x: x.fill_(3),
    "zero_": lambda t, x: x.zero_(),
    "copy_": lambda t, x: (x * 2).copy_(x),
    "sparse_mask": lambda t, x: t.ones(x.shape).double().sparse_mask(x),
    "resize_as_": lambda t, x: x.resize_as_sparse_(x.clone()),
    "pickle": lambda t, x: pickle.loads(pickle.dumps(x)),
    "repr": lambda t, x: repr(x),
    "parameter": lambda t, x: [isinstance(t.nn.Parameter(x), t.nn.Parameter), t.nn.Parameter(x)],
    "members": lambda t, x: [
        x.sparse_dim(), x.dense_dim(), x._nnz(), x.numel(), len(x), x.is_sparse, x.is_sparse_csr, x.is_leaf,
    ],
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", CALLS)
def test_functions(name: str, form: str, shape: str) -> None:
    size, dense_dim = SHAPES[shape]
    draws = {"filled": shape in ("batch", "both")}  # (the matrices of a batch have as many entries)
    compare(lambda t: CALLS[name](t, sparse(dense(t, *size, **draws), form, dense_dim)))


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("target", ["coo", *FORMATS])
@pytest.mark.parametrize("shape", SHAPES)
def test_conversions(shape: str, target: str, form: str) -> None:
    def convert(t: Any) -> Any:
        size, dense_dim = SHAPES[shape]
        x = sparse(dense(t, *size, filled=dense_dim + 2 < len(size)), form, dense_dim)
        arguments = [(2, 3)] if target[0] == "b" else []
        try:
            return getattr(x, f"to_sparse_{target}")(*arguments)
        except RuntimeError as error:
            return str(error)[:60]

    compare(convert)


@pytest.mark.parametrize("form", FORMATS)
def test_transposition_and_selection(form: str) -> None:
    compare(lambda t: sparse(dense(t, 4, 6), form).t())
    compare(lambda t: sparse(dense(t, 4, 6), form).mT)
    compare(lambda t: sparse(dense(t, 2, 4, 6, filled=True), form).transpose(1, 2))
    compare(lambda t: sparse(dense(t, 2, 4, 6, filled=True), form)[1])
    compare(lambda t: sparse(dense(t, 4, 6, 2), form, 1)[..., 0])
    for wrong in (
        lambda t: sparse(dense(t, 2, 4, 6, filled=True), form).transpose(0, 1),
        lambda t: sparse(dense(t, 4, 6, 2), form, 1).transpose(0, 1),
        lambda t: sparse(dense(t, 2, 4, 6, filled=True), form).select(1, 0),
        lambda t: sparse(dense(t, 2, 4, 6, filled=True), form).t(),
    ):
        messages = []
        for t in (tinytorch, torch):
            with pytest.raises(RuntimeError) as caught:
                wrong(t)
            messages.append(str(caught.value)[:50])
        assert messages[0] == messages[1]


@pytest.mark.parametrize("form", ["coo", *FORMATS])
def test_products(form: str) -> None:
    def program(t: Any) -> list[Any]:
        x, d = sparse(dense(t, 4, 4), form, 0, (2, 2)), dense(t, 4, 3, seed=1)
        if form == "bsc":  # PyTorch has no products with the format BSC on the left, nor BSR on the right
            return [d.t() @ x, t.addmm(t.ones(3, 4).double(), d.t(), x, beta=0.5, alpha=2)]
        results = [t.addmm(t.ones(4, 3).double(), x, d, beta=0.5, alpha=2), t.mm(x, d, out=t.zeros(4, 3).double())]
        return [*results, x @ d, x.mv(d[:, 0])]

    compare(program)
    x = sparse(dense(tinytorch, 4, 6), form)
    d = dense(tinytorch, 6, 3, seed=1)
    if form != "bsc":
        np.testing.assert_allclose((x @ d).numpy(), (x.to_dense() @ d).numpy())
        np.testing.assert_allclose((d.t() @ x.t()).numpy(), (x.to_dense() @ d).t().numpy())


@pytest.mark.parametrize("form", ["coo", *FORMATS])
def test_gradients(form: str) -> None:
    where = (dense(tinytorch, 4, 6) != 0).numpy()

    def program(t: Any) -> list[Any]:
        d = dense(t, 4, 6).requires_grad_()
        (sparse(d, form).to_dense() ** 2).sum().backward()
        if form not in ("coo", "csr"):  # PyTorch cannot accumulate gradients in the other formats
            return [d.grad.to_dense() * t.from_numpy(where)]
        x = sparse(dense(t, 4, 6), form).requires_grad_()
        (x.to_dense() ** 2).sum().backward()
        return [d.grad.to_dense() * t.from_numpy(where), x.grad]

    compare(program)
    x = sparse(dense(tinytorch, 4, 6), form).requires_grad_()
    for _ in range(2):
        (x.to_dense() ** 2).sum().backward()
    assert x.grad.layout is x.layout
    np.testing.assert_allclose(x.grad.to_dense().numpy(), 4 * x.detach().to_dense().numpy())
    copied = copy.deepcopy(x)
    with tinytorch.no_grad():
        copied.mul_(0)
    assert copied.is_leaf and (x.detach().to_dense().numpy() == dense(tinytorch, 4, 6).numpy()).all()


def test_derivatives_through_blocks() -> None:
    def loss(values: Any, d: Any) -> Any:
        return tinytorch.sparse_bsr_tensor([0, 1, 2], [1, 0], values, (4, 6)) @ d

    values, d = dense(tinytorch, 2, 2, 3, filled=True), dense(tinytorch, 6, 2, filled=True)
    inputs = (values.requires_grad_(), d.requires_grad_())
    assert tinytorch.autograd.gradcheck(loss, inputs)
    assert tinytorch.autograd.gradgradcheck(loss, inputs)


def test_hooks_and_backward_of_sparse_tensors() -> None:
    def program(t: Any) -> list[Any]:
        seen: list[Any] = []
        x = sparse(dense(t, 4, 6), "coo").requires_grad_()
        x.register_hook(seen.append)
        x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.clone()))
        (x.to_dense() ** 2).sum().backward()
        y = x * 2
        y.register_hook(lambda g: g * 3)
        y.retain_grad()
        y.to_dense().sum().backward()
        (given,) = t.autograd.grad(x.abs(), x, sparse(dense(t, 4, 6), "coo"))
        return [*seen, x.grad, y.grad, given, y.retains_grad]

    compare(program)


@pytest.mark.parametrize("form", ["coo", *FORMATS])
def test_backward_from_a_sparse_tensor(form: str) -> None:
    d = dense(tinytorch, 4, 6).requires_grad_()
    g = dense(tinytorch, 4, 6, seed=5, filled=True)
    x = sparse(d, form)
    x.backward(g)
    ones = (x * 0).detach().to_dense() if form == "coo" else tinytorch.full_like(x.detach(), 1).to_dense()
    stored = dense(tinytorch, 4, 6).ne(0) if form == "coo" else ones.ne(0)
    assert_alike(parts(d.grad), parts(g * stored))
    with pytest.raises(RuntimeError, match="implicitly created only for scalar outputs"):
        sparse(d, form).backward()


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("batch", [False, True])
def test_constructors_and_files(form: str, batch: bool) -> None:
    def build(t: Any, **options: Any) -> Any:
        start, plain = [0, 1, 3], [1, 0, 2]
        values = t.arange(1.0, 4.0)
        if form[0] == "b":
            values = values.view(3, 1, 1) * t.ones(1, 2)
        size = {"csr": (2, 3), "csc": (3, 2), "bsr": (2, 6), "bsc": (3, 4)}[form]
        if batch:
            start, plain, values, size = [start] * 2, [plain] * 2, t.stack([values] * 2), (2, *size)
        return getattr(t, f"sparse_{form}_tensor")(start, plain, values, size, **options)

    compare(lambda t: [build(t), build(t, dtype=t.float64, requires_grad=True), repr(build(t))])
    for save, load, make in ((tinytorch.save, torch.load, tinytorch), (torch.save, tinytorch.load, torch)):
        for weights_only in (True, False):
            file = io.BytesIO()
            save(build(make), file)
            file.seek(0)
            assert_alike(parts(load(file, weights_only=weights_only)), parts(build(torch)))


#: Calls whose errors are PyTorch's.
ERRORS = (
    "t.ones(4, 6).to_sparse_bsr((3, 4))",
    "t.ones(4, 6).to_sparse_bsr((2,))",
    "t.ones(4, 6).to_sparse(layout=t.sparse_bsr)",
    "t.eye(4).to_sparse_csr().to_sparse(1)",
    "t.eye(4).to_sparse_bsr((2, 2)).to_sparse_csr()",
    "t.eye(4).to_sparse_bsr((2, 2)).to_sparse_bsr((1, 2))",
    "t.stack([t.eye(2), t.ones(2, 2)]).to_sparse_csr()",
    "t.eye(4).to_sparse_csr().ccol_indices()",
    "t.eye(4).to_sparse_csc().crow_indices()",
    "t.eye(4).to_sparse_bsc((2, 2)).indices()",
    "t.eye(4).to_sparse_csc().numpy()",
    "t.empty(5, layout=t.sparse_csr)",
    "t.empty(4, 4, layout=t.sparse_bsr)",
    "t.sparse_csc_tensor([0, 1, 2], [0, 2], [1.0, 2.0], (2, 2), check_invariants=True)",
    "t.sparse_csc_tensor([0, 1], [0, 1], [1.0, 2.0], (2, 2), check_invariants=True)",
    "t.sparse_bsr_tensor([0, 1], [0], t.ones(1, 2, 2), (3, 3), check_invariants=True)",
    "t.sparse_bsr_tensor([0, 1], [0], t.ones(1, 2), (2, 2), check_invariants=True)",
    "t.sparse_compressed_tensor([0, 1], [0], t.ones(1), (1, 1))",
    "t.eye(3).to_sparse().sparse_resize_((2, 2), 2, 0)",
    "t.eye(3).to_sparse().sparse_resize_((3, 3), 1, 1)",
    "t.eye(3).to_sparse().sparse_resize_((3, 3), 1, 0)",
    "t.smm(t.eye(3).to_sparse(), t.ones(4, 2))",
    "t.sparse.mm(t.eye(3).to_sparse_csr(), t.ones(3, 2), 'prod')",
    "t.sparse.spdiags(t.ones(2, 3), t.tensor([0, 0]), (3, 3))",
    "t.sparse.spdiags(t.ones(2, 3), t.tensor([0]), (3, 3))",
    "t.testing.assert_close(t.eye(3).to_sparse(), t.eye(3).to_sparse() * 2)",
    "t.testing.assert_close(t.eye(3).to_sparse(), t.ones(3, 3).to_sparse())",
    "t.testing.assert_close(t.eye(3).to_sparse_csr(), t.eye(3).to_sparse())",
    *[f"t.eye(4).to_sparse_{form}{call}" for form in ("csr()", "csc()", "bsr((2, 2))", "bsc((2, 2))") for call in (
        ".T", ".any()", ".norm()", ".square()", ".nan_to_num_()", ".is_contiguous()", " ** 2", " / 2", " // 2",
        ".float_power(2)", ".div_(2)", ".div(2, rounding_mode='floor')", " - t.eye(4).to_sparse()")],
    *[f"t.eye(4).to_sparse_csc(){e}" for e in ("*t.ones(4, 4)", "*t.eye(4).to_sparse()", "+t.eye(4).to_sparse_csc()")],
    "t.eye(4).to_sparse_bsc((2, 2)) @ t.ones(4)", "t.eye(4).to_sparse_csr().to_sparse_csr(0)",
)  # fmt: skip


@pytest.mark.parametrize("text", ERRORS)
def test_errors(text: str) -> None:
    errors = []
    for t in (tinytorch, torch):
        with pytest.raises(Exception) as caught:
            eval(text, {"t": t})
        errors.append(caught.value)
    assert isinstance(errors[0], type(errors[1]))
    mine, theirs = (" ".join(str(each).split()) for each in errors)
    assert mine[:20] == theirs[:20]


#: Calls of other functions, with PyTorch's results.
OTHERS = {
    "smm": lambda t: t.smm(dense(t, 4, 4).to_sparse(), dense(t, 4, 3, seed=1)),
    "hspmm": lambda t: t.hspmm(dense(t, 4, 4).to_sparse(), dense(t, 4, 3, seed=1)),
    "sspaddmm": lambda t: t.sspaddmm(
        dense(t, 4, 3).to_sparse(), dense(t, 4, 4).to_sparse(), dense(t, 4, 3, seed=1), beta=2, alpha=3
    ),
    "bmm": lambda t: t.bmm(dense(t, 2, 4, 4).to_sparse(), dense(t, 2, 4, 3, seed=1)),
    "spdiags": lambda t: t.sparse.spdiags(t.arange(9.0).reshape(3, 3), t.tensor([0, -1, 2]), (3, 4)),
    "spdiags as csr": lambda t: t.sparse.spdiags(
        t.arange(8.0).reshape(2, 4), t.tensor([-2, 1]), (6, 4), layout=t.sparse_csr
    ),
    "sampled_addmm of a batch": lambda t: t.sparse.sampled_addmm(
        dense(t, 2, 4, 4, filled=True).to_sparse_csr(), dense(t, 2, 4, 3), dense(t, 2, 3, 4, seed=1), beta=2
    ),
    "csr @ csc": lambda t: (dense(t, 4, 6).to_sparse_csr() @ dense(t, 6, 4, seed=1).to_sparse_csc()).to_dense(),
    "narrow_copy": lambda t: dense(t, 4, 6).to_sparse().narrow_copy(1, 2, 3),
    "sparse_resize_": lambda t: dense(t, 4, 6).to_sparse().sparse_resize_((5, 7), 2, 0),
    "sparse_resize_and_clear_": lambda t: dense(t, 4, 6).to_sparse().sparse_resize_and_clear_((2, 3, 1), 2, 1),
    "cat of dense dimensions": lambda t: t.cat([dense(t, 4, 6).to_sparse(1), dense(t, 4, 2, seed=1).to_sparse(1)], 1),
    "zeros": lambda t: t.zeros(2, 3, layout=t.sparse_csc),
    "sparse_mask of a sparse tensor": lambda t: (
        dense(t, 4, 6).to_sparse().sparse_mask(dense(t, 4, 6, seed=1).to_sparse())
    ),
    "div floor": lambda t: t.div(dense(t, 4, 6).to_sparse(), 0.3, rounding_mode="floor"),
    "complex sum": lambda t: (dense(t, 4, 6) * (1 + 2j)).to_sparse().sum(),
    "complex values": lambda t: t.sparse_coo_tensor(t.tensor([[0, 2]]), t.tensor([1j, 2]), (3,)).to_dense(),
    "gradient set to zero": lambda t: _zeroed(t),
    "coo to csr indices": lambda t: t._convert_indices_from_coo_to_csr(t.tensor([0, 0, 2]), 4),
    "csr to coo indices": lambda t: t._convert_indices_from_csr_to_coo(t.tensor([0, 2, 2, 3]), t.tensor([1, 2, 0])),
}  # fmt: skip


def _zeroed(t: Any) -> Any:
    x = dense(t, 4, 6).to_sparse().requires_grad_()
    (x.to_dense() ** 2).sum().backward()
    x.grad.zero_()
    return x.grad.to_dense()


@pytest.mark.parametrize("name", OTHERS)
def test_other_functions(name: str) -> None:
    compare(OTHERS[name])


@pytest.mark.parametrize("reduce", ["sum", "mean", "amax", "amin"])
def test_reduced_products(reduce: str) -> None:
    def program(t: Any) -> list[Any]:
        x, d = dense(t, 5, 4).to_sparse_csr().requires_grad_(), dense(t, 4, 3, seed=1, filled=True).requires_grad_()
        out = t.sparse.mm(x, d, reduce)
        (out**2).sum().backward()
        return [out, x.grad, d.grad]

    compare(program)


def test_the_switch_of_invariants() -> None:
    def unsorted() -> Any:
        return tinytorch.sparse_csr_tensor([0, 2], [1, 0], [1.0, 2.0], (1, 2))

    switch = tinytorch.sparse.check_sparse_tensor_invariants
    assert not switch.is_enabled() and unsorted()._nnz() == 2
    with switch():
        assert switch.is_enabled()
        with pytest.raises(RuntimeError, match="sorted and distinct"):
            unsorted()
        with switch(False):
            unsorted()
    assert not switch.is_enabled()
    with pytest.raises(RuntimeError, match="sorted and distinct"):
        switch()(unsorted)()
    try:
        switch.enable()
        with pytest.raises(RuntimeError, match="sorted and distinct"):
            unsorted()
    finally:
        switch.disable()
    outer = switch()
    with outer, pytest.raises(RuntimeError, match="already activated"), outer:
        pass


def test_assert_close_compares_every_layout() -> None:
    for form in ("coo", *FORMATS):
        x = sparse(dense(tinytorch, 4, 6), form)
        tinytorch.testing.assert_close(x, x.clone())
        tinytorch.testing.assert_close(x, x.to_dense(), check_layout=False)
        with pytest.raises(AssertionError, match="layout"):
            tinytorch.testing.assert_close(x, x.to_dense())
        with pytest.raises(AssertionError, match=f"Sparse {form.upper()} values are not close"):
            tinytorch.testing.assert_close(x, x * 2)


def test_subclasses_of_tensor_leave_sparse_tensors_alone() -> None:
    """A program that defines a subclass turns `__torch_function__` on; sparse tensors are no user's subclass."""

    class Named(tinytorch.Tensor):
        pass

    assert isinstance(tinytorch.ones(2).as_subclass(Named), Named)
    x = tinytorch.eye(3).to_sparse()
    assert type(tinytorch.dsmm(x, tinytorch.ones(3, 2))) is tinytorch.Tensor
    assert not hasattr(x, "__cuda_array_interface__")


#: Functions to which PyTorch passes sparse tensors through although nothing in them is meant for it, or whose results
#: differ because PyTorch's are wrong (`mul` of two broadcast tensors).
PASSED_THROUGH = frozenset(
    """
    addr diff embedding gru_cell linalg.cond lstm_cell mul nn.functional.dropout nn.functional.pad
    nn.functional.scaled_dot_product_attention repeat_interleave rnn_relu_cell rnn_tanh_cell Tensor.sum_to_size
    trapezoid trapz
    """.split()
)


def test_samples_of_all_functions() -> None:
    """A function of a sparse matrix has PyTorch's result, or raises an error where it or PyTorch has none."""
    alike = refused = 0
    for each in in_turn(all_samples()):
        if not (each.args and isinstance(each.args[0], np.ndarray)):
            continue
        if each.args[0].ndim != 2 or each.args[0].dtype.kind != "f" or each.name in PASSED_THROUGH:
            continue
        results = []
        for t in (tinytorch, torch):
            t.manual_seed(0)
            first, *others = (_tensors(t, value) for value in each.args)
            function = t
            for name in each.name.split("."):
                function = getattr(function, name)
            try:
                options = {name: _tensors(t, value) for name, value in each.kwargs.items()}
                results.append(parts(function(first.to_sparse(), *others, **options)))
            except Exception as error:
                results.append(error)
        mine, theirs = results
        if isinstance(theirs, Exception):
            assert not isinstance(mine, Exception) or isinstance(mine, (type(theirs), RuntimeError)), str(each)
            refused += 1
        else:
            assert not isinstance(mine, Exception), f"{each}: {mine}"
            assert_alike(mine, theirs)
            alike += 1
    share = len(in_turn(all_samples())) / len(all_samples())
    assert alike > 80 * share and refused > 900 * share


def _tensors(t: Any, value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return t.from_numpy(value.copy())
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(_tensors(t, each) for each in value)
    return value
