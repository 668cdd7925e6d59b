"""Matrix products: errors, dtypes, memory layout (values are in `tests/samples/linalg.py`)."""

from __future__ import annotations

import operator
import re
from typing import Any

import numpy as np
import pytest

import tinytorch
from tests.oracle import torch
from tests.same import compared, expressions, refused
from tinytorch.kernels import products
from tinytorch.ops.linalg import products as linalg


def ones(*shape: int, dtype: Any = np.float32) -> Any:
    return tinytorch.from_numpy(np.ones(shape, dtype))


SHAPES = [
    ("matmul", (2, 3), (4, 5), "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)"),
    ("mm", (2, 3), (4, 5), "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)"),
    ("matmul", (3,), (4, 5), "mat1 and mat2 shapes cannot be multiplied (1x3 and 4x5)"),
    ("matmul", (5, 2, 3), (4, 5), "mat1 and mat2 shapes cannot be multiplied (10x3 and 4x5)"),
    ("matmul", (2, 3), (4,), "size mismatch, got input (2), mat (2x3), vec (4)"),
    ("matmul", (5, 2, 3), (4,), "size mismatch, got input (10), mat (10x3), vec (4)"),
    ("mv", (2, 3), (4,), "size mismatch, got input (2), mat (2x3), vec (4)"),
    ("matmul", (3,), (4,), "inconsistent tensor size, expected tensor [3] and src [4] to have the same number"),
    ("dot", (3,), (4,), "inconsistent tensor size, expected tensor [3] and src [4] to have the same number"),
    ("matmul", (5, 2, 3), (5, 4, 3), "size for first two dimensions of batch2 tensor to be: [5, 3] but got: [5, 4]."),
    ("matmul", (4,), (5, 3, 3), "size for first two dimensions of batch2 tensor to be: [5, 4] but got: [5, 3]."),
    ("matmul", (5, 2, 3), (4, 3, 4), "tensor a (5) must match the size of tensor b (4) at non-singleton dimension 0"),
    ("matmul", (2, 3, 2, 3), (5, 3, 4), "a (3) must match the size of tensor b (5) at non-singleton dimension 1"),
    ("matmul", (), (2, 3), "both arguments to matmul need to be at least 1D, but they are 0D and 2D"),
    ("matmul", (2, 3), (), "both arguments to matmul need to be at least 1D, but they are 2D and 0D"),
    ("mm", (3,), (3, 2), "self must be a matrix"), ("mm", (2, 3), (3,), "mat2 must be a matrix"),
    ("bmm", (2, 3), (5, 3, 4), "batch1 must be a 3D tensor"), ("bmm", (5, 2, 3), (3, 4), "batch2 must be a 3D tensor"),
    ("bmm", (5, 2, 3), (4, 3, 4), "first two dimensions of batch2 tensor to be: [5, 3] but got: [4, 3]."),
    ("bmm", (5, 2, 3), (1, 3, 4), "first two dimensions of batch2 tensor to be: [5, 3] but got: [1, 3]."),
    ("mv", (3,), (3,), "vector + matrix @ vector expected, got 1, 1, 1"),
    ("mv", (2, 3), (3, 3), "vector + matrix @ vector expected, got 1, 2, 2"),
    ("dot", (2, 3), (3,), "1D tensors expected, but got 2D and 1D tensors"),
    ("inner", (2, 3), (4,), "the last dimension must match on both input tensors but got shapes [2, 3] and [4]"),
    ("outer", (2, 3), (3,), "outer: Expected 1-D argument self, but got 2-D"),
    ("outer", (3,), (), "outer: Expected 1-D argument vec2, but got 0-D"),
]  # fmt: skip


def assert_refused(words: str, name: str, *shapes: Any, change: Any = lambda x: x) -> None:
    """Assert that products of ones are refused, in these words, and by PyTorch too."""
    for library in (tinytorch, *([torch] if torch else [])):
        *first, last = map(library.ones, shapes)
        refused(RuntimeError, re.escape(words), getattr(library, name), *first, change(last))


@pytest.mark.parametrize(("name", "x", "y", "words"), SHAPES)
def test_shapes_that_do_not_fit(name: str, x: Any, y: Any, words: str) -> None:
    assert_refused(words, name, x, y)


ADDED = [
    ("addmm", (5,), (2, 3), (3, 4), "The expanded size of the tensor (4) must match the existing size (5)"),
    ("addmm", (2, 2, 4), (2, 3), (3, 4), "the number of sizes provided (2) must be greater or equal to"),
    ("addmm", (4,), (3,), (3, 4), "mat1 must be a matrix, got 1-D tensor"),
    ("addmm", (4,), (2, 3), (3,), "mat2 must be a matrix, got 1-D tensor"),
    ("addmm", (4,), (2, 3), (4, 4), "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x4)"),
    ("addmv", (3,), (2, 3), (3,), "size mismatch, got input (3), mat (2x3), vec (3)"),
    ("addmv", (2,), (2, 3), (4,), "size mismatch, got input (2), mat (2x3), vec (4)"),
    ("addmv", (2,), (3,), (3,), "vector + matrix @ vector expected, got 1, 1, 1"),
    ("addbmm", (3,), (5, 2, 3), (5, 3, 4), "The expanded size of the tensor (4) must match the existing size (3)"),
    ("baddbmm", (3,), (5, 2, 3), (5, 3, 4), "The expanded size of the tensor (4) must match the existing size (3)"),
    ("baddbmm", (4,), (5, 2, 3), (5, 4, 4), "of batch2 tensor to be: [5, 3] but got: [5, 4]."),
    ("baddbmm", (4,), (2, 3), (5, 3, 4), "batch1 must be a 3D tensor"),
]


@pytest.mark.parametrize(("name", "x", "y", "z", "words"), ADDED)
def test_sums_that_do_not_fit(name: str, x: Any, y: Any, z: Any, words: str) -> None:
    assert_refused(words, name, x, y, z)


DTYPES = [
    ("matmul", (2, 3), (3, 4), "expected m1 and m2 to have the same dtype, but got: float != double"),
    ("mm", (2, 3), (3, 4), "expected m1 and m2 to have the same dtype, but got: float != double"),
    ("matmul", (5, 2, 3), (3, 4), "expected m1 and m2 to have the same dtype, but got: float != double"),
    ("matmul", (5, 2, 3), (5, 3, 4), "expected scalar type Float but found Double"),
    ("bmm", (5, 2, 3), (5, 3, 4), "expected scalar type Float but found Double"),
    ("mv", (2, 3), (3,), "addmv input tensors must have the same dtype, but got Double, Float, and Double"),
    ("dot", (3,), (3,), "dot : expected both vectors to have same dtype, but found Float and Double"),
    ("tensordot", (2, 3), (2, 3), "both inputs should have same dtype"),
]


@pytest.mark.parametrize(("name", "x", "y", "words"), DTYPES)
def test_dtypes_that_differ(name: str, x: Any, y: Any, words: str) -> None:
    assert_refused(words, name, x, y, change=lambda each: each.double())


def test_other_sums_that_are_refused() -> None:
    refused(RuntimeError, r"\[5, 3\] but got: \[5, 4\]", tinytorch.addbmm, ones(2, 4), ones(5, 2, 3), ones(5, 4, 4))
    x, y = ones(2, 3), ones(3, 4)
    with pytest.raises(RuntimeError, match="self and mat2 must have the same dtype, but got Double and Float"):
        tinytorch.addmm(ones(4, dtype=np.float64), x, y)
    with pytest.raises(RuntimeError, match="addmv input tensors must have the same dtype, but got Double, Float, and"):
        tinytorch.addmv(ones(2, dtype=np.float64), x, ones(3))
    for name in ("addbmm", "baddbmm"):
        with pytest.raises(RuntimeError, match="Double"):
            getattr(tinytorch, name)(ones(4, dtype=np.float64), ones(5, 2, 3), ones(5, 3, 4))


@pytest.mark.parametrize(("x", "y"), [((2, 3), (3, 4)), ((2, 3), (3,)), ((3,), (3,)), ((5, 2, 3), (5, 3, 4))])
def test_booleans_are_not_multiplied(x: Any, y: Any) -> None:
    with pytest.raises(NotImplementedError, match="not implemented for 'Bool'"):
        ones(*x, dtype=np.bool_) @ ones(*y, dtype=np.bool_)


def test_what_is_no_tensor() -> None:
    with pytest.raises(TypeError, match=r"matmul\(\): argument 'other' \(position 2\) must be Tensor, not int"):
        tinytorch.matmul(ones(2, 3), 3)
    with pytest.raises(TypeError, match=r"mm\(\): argument 'input' \(position 1\) must be Tensor, not list"):
        tinytorch.mm([1.0], ones(2, 3))
    for right in (3, [1.0, 2.0]):
        refused(TypeError, "unsupported operand type", operator.matmul, ones(2, 3), right)
    refused(TypeError, "unsupported operand type", lambda: 3 @ ones(2, 3))


@pytest.mark.parametrize(("x", "y"), [((9, 2000), (2000, 3)), ((2, 9, 2000), (2, 2000, 3)), ((9, 2000), (2000,))])
def test_half_is_summed_as_float32(x: Any, y: Any) -> None:
    a, b = (np.random.default_rng(0).random(shape).astype(np.float16) for shape in (x, y))
    result = tinytorch.from_numpy(a) @ tinytorch.from_numpy(b)
    assert result.dtype is tinytorch.float16
    np.testing.assert_allclose(result.numpy(), a.astype(np.float64) @ b.astype(np.float64), rtol=1e-3)


def test_integers_of_a_sum_take_whole_factors() -> None:
    x = ones(2, 2, dtype=np.int64)
    assert tinytorch.addmm(x, x, x, beta=1.5, alpha=2.7).tolist() == [[5, 5], [5, 5]]


@pytest.mark.parametrize("call", ["x @ w", "x @ w.t()", "w @ x", "w.t() @ x", "w.t() @ w.t()", "w @ w.t()"])
def test_gradients_are_laid_out_as_their_operand(call: str) -> None:
    x, w = (tinytorch.from_numpy(np.random.default_rng(0).random((4, 4))).requires_grad_() for _ in range(2))
    result = eval(call, {"x": x, "w": w})
    (g,) = tinytorch.autograd.grad(result.sum(), [w])
    assert g.numpy().flags.c_contiguous


@pytest.mark.parametrize("shape", [(40, 30, 20), (3, 40, 30, 20)])
def test_operands_that_blas_cannot_read(shape: tuple[int, ...]) -> None:
    wide = np.random.default_rng(0).random((*shape, 2))
    *_, n, m = shape
    x, y = wide[..., 0], np.random.default_rng(1).random((m, n, 3))[..., 0]
    np.testing.assert_allclose(
        (tinytorch.from_numpy(x) @ tinytorch.from_numpy(y)).numpy(), x.copy() @ y.copy(), rtol=1e-12
    )
    every = np.broadcast_to(np.float64(2), shape)
    stack = np.random.default_rng(1).random((*shape[:-2], m, n))
    np.testing.assert_allclose(products.bmm(every, stack), every.copy() @ stack, rtol=1e-12)


def test_names_of_the_nodes() -> None:
    x, v = ones(3, 3).requires_grad_(), ones(3).requires_grad_()
    for name, result in {
        "Mm": x @ x, "Mv": x @ v, "Dot": v @ v, "Addmm": tinytorch.addmm(v, x, x),
        "Addmv": tinytorch.addmv(v, x, v),
    }.items():  # fmt: skip
        assert result.grad_fn.name() == f"{name}Backward0"


EQUATIONS = [
    ("ij,jk->il", [(2, 3), (3, 4)], "output subscript l does not appear in the equation for any input operand"),
    ("ij,jk->ik", [(2, 3)], "fewer operands were provided than specified in the equation"),
    ("ij", [(2, 3), (3, 4)], "more operands were provided than specified in the equation"),
    ("ijk", [(2, 3)], "the number of subscripts in the equation (3) does not match the number of dimensions (2)"),
    ("i", [(2, 3)], "the number of subscripts in the equation (1) does not match the number of dimensions (2)"),
    ("...ijk", [(2, 3)], "the number of subscripts in the equation (3) is more than the number of dimensions (2)"),
    ("ii", [(2, 3)], "subscript i is repeated for operand 0 but the sizes don't match, 3 != 2"),
    ("ij,jk->ik", [(2, 3), (4, 5)], "subscript j has size 4 for operand 1 which does not broadcast"),
    ("ij->ii", [(2, 3)], "output subscript i appears more than once in the output"),
    ("i1", [(2, 3)], "invalid subscript given at index 1 in the equation string, subscripts must be in [a-zA-Z]"),
    ("ij-ik", [(2, 3)], "invalid subscript given at index 2 in the equation string"),
    ("..ij", [(2, 3)], "found '.' for operand 0 that is not part of any ellipsis"),
    ("......ij", [(2, 3)], "found '.' for operand 0 for which an ellipsis was already found"),
    ("ij->...ij...", [(2, 3)], "found '.' for output but an ellipsis (...) was already found"),
]


@pytest.mark.parametrize(("equation", "shapes", "words"), EQUATIONS)
def test_equations_that_do_not_fit(equation: str, shapes: Any, words: str) -> None:
    for library in (tinytorch, *([torch] if torch else [])):
        refused(RuntimeError, re.escape(words), library.einsum, equation, *map(library.ones, shapes))


def test_einsum_without_operands() -> None:
    refused(ValueError, "must specify the equation string and at least one operand", tinytorch.einsum, "ij")
    refused(ValueError, "not within the valid range", tinytorch.einsum, ones(2, 3), [0, 60])
    with pytest.raises(RuntimeError, match="expected scalar type Float but found Double"):
        tinytorch.einsum("ij,jk", ones(2, 3), ones(3, 2, dtype=np.float64))


PAIRS = [
    (([1], [1]), "need to match, but first has size 3 in dim 1 and second has size 4 in dim 1"),
    (([0, 1], [1]), "both dimension lists should have same length"),
    (3, "tensordot expects dims < ndim_a or ndim_b, but got dims=3"),
    (-1, "tensordot expects dims >= 0, but got dims=-1"),
    (([5], [0]), "Dimension out of range (expected to be in range of [-2, 1], but got 5)"),
]


@pytest.mark.parametrize(("dims", "words"), PAIRS)
def test_tensordot_of_dimensions_that_do_not_fit(dims: Any, words: str) -> None:
    for library in (tinytorch, *([torch] if torch else [])):
        error = IndexError if "range" in words else RuntimeError
        refused(error, re.escape(words), library.tensordot, library.ones(2, 3), library.ones(3, 4), dims)


@pytest.mark.parametrize("kind", ["float16", "float32", "float64"])
@compared
def test_infinities_times_a_matrix_of_one_zero_are_nan(torch: Any, kind: str) -> list[Any]:
    infinite, linear = torch.full((2, 1), np.inf, dtype=getattr(torch, kind)), torch.nn.functional.linear
    zero = torch.zeros(1, 1, dtype=infinite.dtype)
    found = [
        infinite @ zero, zero @ infinite.T, infinite @ zero[0], linear(infinite, zero, zero[0]), linear(zero, infinite),
        torch.tensordot(infinite, zero, 1),
    ]  # fmt: skip
    return [each.isnan() for each in found]


@pytest.mark.parametrize("call", expressions("""
    v, v, 1; v, w[::2], 1; v[None], v, 1; v[None], w[::2], 1; w[None, ::2], v[:, None], 1; m, m, 2; m, m.T, 2
    m, m, ([0, 1], [1, 0]); m.T, m.T, ([1, 0], [1, 0]); v, w[::2], 0; m, w[:4:2], 1
"""))  # fmt: skip
@compared(to_the_word=True)
def test_tensordot_of_booleans_is_computed_as_the_memory_lies(torch: Any, call: str) -> Any:
    v, m = torch.tensor([True, False, True]), torch.tensor([[True, False], [True, True]])
    w = torch.tensor([True, True, False, True, True, False])
    return eval(f"torch.tensordot({call})", {"torch": torch, "v": v, "w": w, "m": m})


def test_tensordot_takes_its_dimensions_from_a_tensor() -> None:
    pairs = tinytorch.from_numpy(np.array([[0, 1], [0, 1]]))
    assert tinytorch.tensordot(ones(2, 3), ones(2, 3), pairs).item() == 6


def test_chains_are_multiplied_in_the_best_order() -> None:
    assert linalg._order((10, 100, 5, 50)) == (7500, 2)  # (75,000 multiplications in the other order)
    assert linalg.multi_dot([ones(10, 100), ones(100, 5), ones(5, 50)]).tolist() == [[500.0] * 50] * 10


@pytest.mark.parametrize(
    ("shapes", "result"),
    [([(3,), (3, 4), (4, 2)], (2,)), ([(2, 3), (3, 4), (4,)], (2,)), ([(3,), (3,)], ()), ([(3,), (3, 4), (4,)], ())],
)
def test_chains_may_end_in_vectors(shapes: Any, result: tuple[int, ...]) -> None:
    assert linalg.multi_dot([ones(*shape) for shape in shapes]).shape == result


def test_chains_that_do_not_fit() -> None:
    refused(RuntimeError, r"multi_dot\(\): expected at least 2 tensors but got 1", linalg.multi_dot, [ones(2, 3)])
    with pytest.raises(RuntimeError, match=r"tensors 0 and 1 with shapes \[2, 3\] and \[2, 3\] cannot be multiplied"):
        linalg.multi_dot([ones(2, 3), ones(2, 3)])
    refused(RuntimeError, r"tensor 1 must be 2D but got 1D", linalg.multi_dot, [ones(2, 3), ones(3), ones(3, 2)])
    refused(RuntimeError, r"tensor 0 must be 1D or 2D but got 3D", linalg.multi_dot, [ones(2, 3, 3), ones(3, 2)])


def test_chain_matmul_is_deprecated() -> None:
    with pytest.warns(UserWarning, match="torch.chain_matmul is deprecated"):
        assert tinytorch.chain_matmul(ones(2, 3), ones(3, 4)).tolist() == [[3.0] * 4] * 2
    with pytest.warns(UserWarning, match="torch.chain_matmul is deprecated"):
        assert tinytorch.chain_matmul(ones(2, 3)).tolist() == [[1.0] * 3] * 2
