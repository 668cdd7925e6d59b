"""Reductions: errors, dtypes, warnings, accuracy (values are in `tests/samples/reduce.py`)."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest

import tinytorch
from tests.oracle import needs_oracle, torch
from tests.same import refused
from tinytorch.kernels import reduce as kernels
from tinytorch.ops import return_types

FLOATS = (tinytorch.float16, tinytorch.float32, tinytorch.float64)
INTEGERS = (tinytorch.bool, tinytorch.uint8, tinytorch.int8, tinytorch.int16, tinytorch.int32, tinytorch.int64)


def ones(*shape: int, dtype: Any = tinytorch.float32) -> Any:
    return tinytorch.from_numpy(np.ones(shape, dtype.numpy))


# Dimensions --------------------------------------------------------------------------------------

OVER_SEVERAL = ["sum", "mean", "amax", "amin", "var", "std", "nansum", "nanmean", "any", "all", "logsumexp", "norm"]
OVER_ONE = ["max", "min", "median", "nanmedian", "prod", "argmax", "argmin", "cumsum", "cumprod", "cummax", "cummin"]


@pytest.mark.parametrize("name", OVER_SEVERAL + OVER_ONE)
@pytest.mark.parametrize(("dim", "shown"), [(2, "[-2, 1], but got 2"), (-3, "[-2, 1], but got -3")])
def test_dimension_out_of_range(name: str, dim: int, shown: str) -> None:
    with pytest.raises(IndexError) as caught:
        getattr(ones(2, 3), name)(dim=dim)
    assert f"Dimension out of range (expected to be in range of {shown})" in str(caught.value)


@pytest.mark.parametrize("name", OVER_SEVERAL + OVER_ONE)
def test_dimension_out_of_range_of_a_scalar(name: str) -> None:
    refused(IndexError, r"expected to be in range of \[-1, 0\], but got 1", getattr(ones(), name), dim=1)


@pytest.mark.parametrize("name", OVER_SEVERAL)
@pytest.mark.parametrize("dim", [(0, 0), (0, -2), [1, -1]])
def test_dimension_given_twice(name: str, dim: Any) -> None:
    with pytest.raises(RuntimeError, match=r"dim [01] appears multiple times in the list of dims"):
        getattr(ones(2, 3), name)(dim=dim)


@pytest.mark.parametrize("name", ["sum", "mean", "amax", "var", "any"])
@pytest.mark.parametrize("dim", [1.5, "a"])
def test_dimension_of_a_wrong_type(name: str, dim: Any) -> None:
    refused(TypeError, "received an invalid combination of arguments - got", getattr(ones(2, 3), name), dim=dim)


@pytest.mark.parametrize("name", ["max", "min", "median", "prod"])
@pytest.mark.parametrize("dim", [(0, 1), 0.5, "a"])
def test_one_dimension_only(name: str, dim: Any) -> None:
    refused(TypeError, "received an invalid combination of arguments - got", getattr(ones(2, 3), name), dim=dim)


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_cumulative_ops_need_one_dimension(name: str) -> None:
    refused(TypeError, 'missing 1 required positional arguments: "dim"', getattr(ones(2), name))
    refused(TypeError, r"argument 'dim' .* must be int, not tuple", getattr(ones(2), name), (0,))


@pytest.mark.parametrize("name", ["max", "min", "median", "var", "std", "norm", "prod", "aminmax", "nanmean"])
def test_of_no_tensor(name: str) -> None:
    with pytest.raises(TypeError, match=r"argument 'input' \(position 1\) must be Tensor, not list"):
        getattr(tinytorch, name)([1.0])


# No elements -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["max", "min", "amax", "amin"])
def test_extreme_of_nothing(name: str) -> None:
    text = rf"{name}\(\): Expected reduction dim to be specified for input.numel\(\) == 0. Specify"
    refused(RuntimeError, text, getattr(ones(0, 3), name))


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_index_of_nothing(name: str) -> None:
    with pytest.raises(IndexError, match=rf"{name}\(\): Expected reduction dim to be specified for input.numel\(\)"):
        getattr(ones(0, 3), name)()


@pytest.mark.parametrize("name", ["max", "min", "amax", "amin", "argmax", "argmin", "median"])
def test_extreme_along_an_empty_dimension(name: str) -> None:
    with pytest.raises(IndexError, match=rf"{name}\(\): Expected reduction dim 0 to have non-zero size"):
        getattr(ones(0, 3), name)(dim=0)


def test_aminmax_of_nothing() -> None:
    refused(RuntimeError, "cannot compute aminmax over an empty dimension", ones(0).aminmax)
    refused(IndexError, "Expected reduction dim 0 to have non-zero size", ones(0, 2).aminmax, dim=0)


@pytest.mark.parametrize(
    ("dim", "where"), [(None, "on an empty tensor because the"), (0, "on the dimension 0 because this dimension is")]
)
@pytest.mark.parametrize("p", [float("inf"), -float("inf"), -1])
def test_norm_without_identity(p: float, dim: int | None, where: str) -> None:
    refused(RuntimeError, f"cannot compute the {p:g} norm {where}", ones(0, 3).norm, p, dim)


# Types -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integers_are_summed_as_int64(dtype: Any) -> None:
    x = ones(2, 3, dtype=dtype)
    for name in ("sum", "prod", "nansum"):
        assert getattr(x, name)().dtype is tinytorch.int64
        assert getattr(x, name)(dim=1).dtype is tinytorch.int64
    for name in ("cumsum", "cumprod"):
        assert getattr(x, name)(0).dtype is tinytorch.int64
    assert ones(300, dtype=dtype).sum().item() == 300


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_floats_keep_their_dtype(dtype: Any) -> None:
    x = ones(2, 3, dtype=dtype)
    for name in [
        "sum", "mean", "prod", "amax", "var", "std", "norm", "nansum", "nanmean", "logsumexp", "cumsum", "cumprod",
    ]:  # fmt: skip
        given = (0,) if name in ("logsumexp", "cumsum", "cumprod") else ()
        assert getattr(x, name)(*given).dtype is dtype


def test_the_default_dtype_of_logsumexp() -> None:
    assert ones(2, dtype=tinytorch.int64).logsumexp(0).dtype is tinytorch.float32


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_mean_needs_floats(dtype: Any) -> None:
    text = rf"could not infer output dtype. Input dtype .* floating .*Got: {dtype.tensor_name}"
    refused(RuntimeError, text, ones(2, dtype=dtype).mean)
    refused(RuntimeError, r"Optional dtype must be .* floating point .*Got: Long", ones(2).mean, dtype=tinytorch.int64)


def test_other_ops_that_need_floats() -> None:
    x = ones(2, dtype=tinytorch.int64)
    for name in ("var", "std", "var_mean", "std_mean"):
        with pytest.raises(RuntimeError, match="std and var only support floating point and complex dtypes"):
            getattr(tinytorch, name)(x)
    refused(RuntimeError, r"Expected a floating point or complex tensor as input. Got Long", x.norm)
    refused(RuntimeError, "expected input to have floating point or complex dtype but got Long", x.nanmean)


def test_ops_that_refuse_booleans() -> None:
    x = ones(2, dtype=tinytorch.bool)
    for name in ("argmax", "argmin"):
        refused(RuntimeError, rf"{name}\(\): does not support bool input", getattr(x, name))
    for name in ("median", "nanmedian"):
        refused(NotImplementedError, "not implemented for 'Bool'", getattr(x, name))


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "nansum", "cumsum", "cumprod"])
def test_dtype_of_a_wrong_type(name: str) -> None:
    given = (0,) if name.startswith("cum") else ()
    with pytest.raises(TypeError, match=rf"{name}\(\): argument 'dtype' must be torch.dtype, not str"):
        getattr(ones(2), name)(*given, dtype="float")


def test_gradients_have_the_dtype_of_the_input() -> None:
    x = ones(3).requires_grad_()
    x.sum(dtype=tinytorch.float64).backward()
    assert x.grad.dtype is tinytorch.float32


# Accuracy ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(100_000,), (40_000, 3), (3, 40_000), (2000, 6, 5), (6, 2000, 5), (300, 700)])
@pytest.mark.parametrize("layout", ["C", "F", "gaps"])
def test_sums_of_float32_are_as_good_as_pairwise(shape: tuple[int, ...], layout: str) -> None:
    exact = np.random.default_rng(0).random(shape)
    x = np.asarray(exact, np.float32, order="F" if layout == "F" else "C")
    if layout == "gaps":
        wide = np.zeros((*shape, 2), np.float32)
        wide[..., 0] = x
        x = wide[..., 0]
    exact = x.astype(np.float64)
    axes = [None, *range(len(shape)), tuple(range(len(shape)))[:2], tuple(range(len(shape)))[-2:]]
    for axis in axes:
        each = (axis,) if isinstance(axis, int) else axis
        for keep in (False, True):
            got, want = kernels.total(x, each, keep), exact.sum(axis=axis, keepdims=keep)
            assert got.dtype == np.float32
            assert got.shape == want.shape
            np.testing.assert_allclose(got, want, rtol=1e-6)


def test_sums_of_float16_are_kept_in_float32() -> None:
    x = np.full((5000, 2), 0.1, np.float16)
    np.testing.assert_allclose(kernels.total(x, (0,)), x.astype(np.float64).sum(0), rtol=1e-3)
    # The sum is beyond the largest float16, the mean is not.
    assert tinytorch.from_numpy(np.full(100, 60000.0, np.float16)).mean().item() == 60000.0


def test_cumulative_sums_of_float32_are_accurate() -> None:
    x = np.full(1_000_000, 0.1, np.float32)
    total = tinytorch.from_numpy(x).cumsum(0).numpy()[-1]
    assert total == pytest.approx(x.astype(np.float64).sum(), rel=1e-7)


# Variance ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["var", "std", "var_mean", "std_mean"])
@pytest.mark.parametrize("shape", [(), (1,), (0,), (0, 3)])
def test_too_few_degrees_of_freedom_warn(name: str, shape: tuple[int, ...]) -> None:
    text = rf"{name}\(\): degrees of freedom is <= 0. Correction should be strictly less than"
    with pytest.warns(UserWarning, match=text):
        result = getattr(tinytorch, name)(ones(*shape))
    assert np.isnan((result[0] if isinstance(result, tuple) else result).item())


def test_the_warning_names_the_callers_line() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ones(1).var()
    assert [each.filename for each in caught] == [__file__]


def test_more_correction_than_elements() -> None:
    with pytest.warns(UserWarning, match="degrees of freedom"):
        assert np.isinf(tinytorch.tensor([1.0, 2.0]).var(correction=3).item())


def test_unbiased_and_correction_contradict() -> None:
    refused(TypeError, "both unbiased and correction", ones(2).var, 0, True, correction=1)


@pytest.mark.parametrize("name", ["var", "std"])
def test_no_dimensions_are_all(name: str) -> None:
    # No sample: PyTorch's gradient for dim=() is infinite.
    gradients = []
    for dim in ((), None):
        x = tinytorch.from_numpy(np.random.default_rng(0).random((2, 3))).requires_grad_()
        result = getattr(x, name)(dim=dim)
        assert result.shape == ()
        result.backward()
        gradients.append(x.grad.numpy())
    np.testing.assert_array_equal(*gradients)
    assert np.isfinite(gradients[0]).all()


def test_the_gradient_of_std_at_zero_is_zero() -> None:
    x = ones(3).requires_grad_()
    x.std().backward()
    assert x.grad.tolist() == [0, 0, 0]


# Norms -------------------------------------------------------------------------------------------


def test_norm_refuses_what_it_does_not_know() -> None:
    refused(RuntimeError, r"linalg.matrix_norm: Order foo not supported.", ones(2, 2).norm, "foo")


@pytest.mark.parametrize("p", [1, 1.5, 2, 3, float("inf")])
def test_the_subgradient_of_a_norm_at_zero_is_zero(p: float) -> None:
    x = tinytorch.from_numpy(np.zeros(3)).requires_grad_()
    x.norm(p).backward()
    assert x.grad.tolist() == [0, 0, 0]


def test_the_count_of_what_is_not_zero_gives_no_gradient() -> None:
    x = ones(3).requires_grad_()
    x.norm(0).backward()
    assert x.grad is None


# Ties and choices --------------------------------------------------------------------------------


@needs_oracle
@pytest.mark.parametrize("call", [
    "max()", "min()", "amax()", "amin(1)", "amax((0, 1))", "max(1)[0]", "min(0).values", "median()",
    "norm(float('inf'))", "aminmax().max",
])  # fmt: skip
def test_gradients_at_ties(call: str) -> None:
    ties = np.array([[1.0, 3.0, 3.0], [3.0, -3.0, 0.0], [1.0, 1.0, 0.0]])
    gradients = []
    for library in (tinytorch, torch):
        x = library.from_numpy(ties.copy()).requires_grad_()
        eval(f"x.{call}", {"x": x}).sum().backward()
        gradients.append(x.grad.numpy())
    np.testing.assert_allclose(*gradients)


def test_the_first_of_equals_is_chosen() -> None:
    x = tinytorch.tensor([[1.0, 3.0, 3.0], [0.0, 0.0, 0.0]])
    assert x.max(1).indices.tolist() == x.argmax(1).tolist() == [1, 0]
    assert x.min(1).indices.tolist() == x.argmin(1).tolist() == [0, 0]


def test_indices_take_no_part_in_the_graph() -> None:
    values, indices = ones(2, 3).requires_grad_().max(1)
    assert values.requires_grad
    assert not indices.requires_grad
    assert indices.dtype is tinytorch.int64
    assert not ones(2).requires_grad_().argmax().requires_grad


def test_names_of_the_nodes() -> None:
    x = ones(2, 3).requires_grad_()
    for name, result in {
        "Sum": x.sum(), "Mean": x.mean(), "Amax": x.amax(), "Max": x.max(1)[0], "Var": x.var(),
        "Std": x.std(0), "LinalgVectorNorm": x.norm(), "Logsumexp": x.logsumexp(0),
        "Cumsum": x.cumsum(0), "Prod": x.prod(), "Median": x.median(),
    }.items():  # fmt: skip
        assert result.grad_fn.name() == f"{name}Backward0"
    for name, result in {
        "Sum": x.sum(0), "Mean": x.mean(0), "Max": x.max(), "Min": x.min(), "Median": x.median(0)[0], "Prod": x.prod(0),
    }.items():  # fmt: skip
        assert result.grad_fn.name() == f"{name}Backward1"


# Sum to a size -----------------------------------------------------------------------------------


def test_sum_to_size_errors() -> None:
    refused(TypeError, 'missing 1 required positional arguments: "size"', ones(2, 3).sum_to_size)
    for size in ((2, 4), (5, 2, 3), (3, 3)):
        refused(RuntimeError, r"size \{\[.*\]\} is not expandable to size \{\[2, 3\]\}", ones(2, 3).sum_to_size, size)


# Results with names ------------------------------------------------------------------------------


def test_results_have_names_and_pytorchs_repr() -> None:
    result = tinytorch.tensor([[1.0, 2.0]]).max(1)
    assert isinstance(result, return_types.max)
    assert isinstance(result, tuple)
    values, indices = result
    assert values is result.values is result[0]
    assert indices is result.indices is result[1]
    assert repr(result) == "torch.return_types.max(\nvalues=tensor([2.]),\nindices=tensor([1]))"
    assert repr(tinytorch.tensor([1.0, 2.0]).aminmax()) == (
        "torch.return_types.aminmax(\nmin=tensor(1.),\nmax=tensor(2.))"
    )


def test_results_are_pickled() -> None:
    again = pickle.loads(pickle.dumps(tinytorch.tensor([[1.0, 2.0]]).max(1)))
    assert type(again) is return_types.max
    assert again.indices.tolist() == [1]


def test_every_result_type_is_exported() -> None:
    assert return_types.__all__ == sorted(return_types.__all__)
    for name in return_types.__all__:
        assert getattr(return_types, name)((1, 2))[1] == 2


@needs_oracle
@pytest.mark.parametrize("call", [
    "torch.hash_tensor(x, mode=1)", "torch.hash_tensor(x, 2)", "torch.hash_tensor(x, (0, 0))",
    "torch.hash_tensor(3)", "torch.hash_tensor(torch.empty(0))", "torch.hash_tensor(torch.empty(0, 3), 0)",
    "torch.hash_tensor(x, out=torch.empty(0))", "torch.hash_tensor(x.to(torch.uint64))",
    "torch.hash_tensor(x.to(torch.uint16))",
])  # fmt: skip
def test_hashes_that_fail(call: str) -> None:
    caught = []
    for library in (torch, tinytorch):
        with pytest.raises((TypeError, IndexError, RuntimeError, NotImplementedError)) as error:
            eval(call, {"torch": library, "x": library.ones(2, 3)})
        caught.append((error.type, str(error.value)))
    assert caught[0] == caught[1]


@needs_oracle
def test_hashes() -> None:
    values = [0.0, -0.0, 1.5, float("nan"), float("-inf"), 3e-40]
    for dtype in ("float16", "bfloat16", "float32", "float64", "int8", "uint8", "int64", "bool"):
        ours, theirs = (m.tensor([5, 0, 3, 127]).to(getattr(m, dtype)) for m in (tinytorch, torch))
        assert ours.hash_tensor().item() == theirs.hash_tensor().item()
    for value in values:
        assert tinytorch.hash_tensor(tinytorch.tensor(value)).item() == torch.hash_tensor(torch.tensor(value)).item()
    out = tinytorch.empty(0, dtype=tinytorch.uint64)
    x = tinytorch.ones(2, 3, requires_grad=True)
    assert tinytorch.hash_tensor(x.detach(), 0, out=out) is out and out.shape == (3,)
    assert not tinytorch.hash_tensor(x).requires_grad
    assert tinytorch.hash_tensor(x.to("meta"), 1).dtype is tinytorch.uint64
