"""Reductions: errors, dtypes, warnings, accuracy (values are in `tests/samples/reduce.py`)."""

from __future__ import annotations

import itertools
import pickle
import warnings
from typing import Any

import numpy as np
import pytest

import tinytorch
from tests.same import compared, expressions, refused
from tinytorch.kernels import reduce as kernels
from tinytorch.ops import return_types

FLOATS = (tinytorch.float16, tinytorch.float32, tinytorch.float64)
INTEGERS = (tinytorch.bool, tinytorch.uint8, tinytorch.int8, tinytorch.int16, tinytorch.int32, tinytorch.int64)


def ones(*shape: int, dtype: Any = tinytorch.float32) -> Any:
    return tinytorch.from_numpy(np.ones(shape, dtype.numpy))


OVER_SEVERAL = "sum mean amax amin var std nansum nanmean any all logsumexp norm "
OVER_ONE = "max min median nanmedian prod argmax argmin cumsum cumprod cummax cummin"


COMBINATION = "received an invalid combination of arguments - got"
DTYPE = r"NAME\(\): argument 'dtype' must be torch.dtype, not str"

#: Names of functions, a call of one, its error and words of it; `NAME` is the name, `x` ones(2, 3), `empty` ones(0, 3).
REFUSED: list[tuple[str, str, Any, str]] = [
    (OVER_SEVERAL + OVER_ONE, "x.NAME(dim=2)", IndexError, r"Dimension out of range \(.*of \[-2, 1\], but got 2\)"),
    (OVER_SEVERAL + OVER_ONE, "x.NAME(dim=-3)", IndexError, r"Dimension out of range \(.*of \[-2, 1\], but got -3\)"),
    (OVER_SEVERAL + OVER_ONE, "ones().NAME(dim=1)", IndexError, r"expected to be in range of \[-1, 0\], but got 1"),
    *[(OVER_SEVERAL, f"x.NAME(dim={dim})", RuntimeError, "dim [01] appears multiple times in the list of dims")
      for dim in ("(0, 0)", "(0, -2)", "[1, -1]")],
    *[("sum mean amax var any", f"x.NAME(dim={dim})", TypeError, COMBINATION) for dim in ("1.5", "'a'")],
    *[("max min median prod", f"x.NAME(dim={dim})", TypeError, COMBINATION) for dim in ("(0, 1)", "0.5", "'a'")],
    ("cumsum cumprod", "x.NAME()", TypeError, 'missing 1 required positional arguments: "dim"'),
    ("cumsum cumprod", "x.NAME((0,))", TypeError, r"argument 'dim' .* must be int, not tuple"),
    ("max min median var std norm prod aminmax nanmean", "torch.NAME([1.0])", TypeError,
     r"argument 'input' \(position 1\) must be Tensor, not list"),
    ("max min amax amin", "empty.NAME()", RuntimeError,
     r"NAME\(\): Expected reduction dim to be specified for input.numel\(\) == 0. Specify"),
    ("argmax argmin", "empty.NAME()", IndexError, r"NAME\(\): Expected reduction dim to be specified for input.numel"),
    ("max min amax amin argmax argmin median", "empty.NAME(dim=0)", IndexError,
     r"NAME\(\): Expected reduction dim 0 to have non-zero size"),
    ("aminmax", "ones(0).NAME()", RuntimeError, "cannot compute aminmax over an empty dimension"),
    ("aminmax", "empty.NAME(dim=0)", IndexError, "Expected reduction dim 0 to have non-zero size"),
    *[("norm", f"empty.NAME(float('{p}'), {dim})", RuntimeError, f"cannot compute the {p} norm {where}")
      for p in ("inf", "-inf", "-1")
      for dim, where in ((None, "on an empty tensor because"), (0, "on the dimension 0 because this dimension is"))],
    ("norm", "ones(2, 2).NAME('foo')", RuntimeError, "linalg.matrix_norm: Order foo not supported."),
    ("mean", "x.NAME(dtype=torch.int64)", RuntimeError, r"Optional dtype must be .* floating point .*Got: Long"),
    ("var std var_mean std_mean", "torch.NAME(ints)", RuntimeError, "std and var only support floating point and"),
    ("norm", "ints.NAME()", RuntimeError, r"Expected a floating point or complex tensor as input. Got Long"),
    ("nanmean", "ints.NAME()", RuntimeError, "expected input to have floating point or complex dtype but got Long"),
    ("argmax argmin", "bools.NAME()", RuntimeError, r"NAME\(\): does not support bool input"),
    ("median nanmedian", "bools.NAME()", NotImplementedError, "not implemented for 'Bool'"),
    ("sum mean prod nansum", "x.NAME(dtype='float')", TypeError, DTYPE),
    ("cumsum cumprod", "x.NAME(0, dtype='float')", TypeError, DTYPE),
    ("sin abs erf", "torch.NAME(x, x)", TypeError, "takes 1 positional argument but 2 were given"),
    ("argmax sort nansum amax", "ones(2, dtype=torch.complex64) is x.NAME(1j)", TypeError, "must be int, not complex"),
    ("hardshrink", "torch.NAME(x, 1j)", RuntimeError, "value cannot be converted to type float without overflow"),
    ("var std", "x.NAME(0, True, correction=1)", TypeError, "both unbiased and correction"),
    ("sum_to_size", "x.NAME()", TypeError, 'missing 1 required positional arguments: "size"'),
    *[("sum_to_size", f"x.NAME({size})", RuntimeError, r"size \{\[.*\]\} is not expandable to size \{\[2, 3\]\}")
      for size in ("(2, 4)", "(5, 2, 3)", "(3, 3)")],
]  # fmt: skip


@pytest.mark.parametrize(("names", "call", "error", "words"), REFUSED, ids=[each[1] for each in REFUSED])
def test_refusals(names: str, call: str, error: Any, words: str) -> None:
    known = {
        "torch": tinytorch, "ones": ones, "x": ones(2, 3), "empty": ones(0, 3), "ints": ones(2, dtype=tinytorch.int64),
        "bools": ones(2, dtype=tinytorch.bool),
    }  # fmt: skip
    for name in names.split():
        refused(error, words.replace("NAME", name), eval, call.replace("NAME", name), known)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integers_are_summed_as_int64(dtype: Any) -> None:
    x = ones(2, 3, dtype=dtype)
    for name, *given in (("sum",), ("prod",), ("nansum",), ("sum", 1), ("prod", 1), ("cumsum", 0), ("cumprod", 0)):
        assert getattr(x, name)(*given).dtype is tinytorch.int64
    assert ones(300, dtype=dtype).sum().item() == 300
    refused(RuntimeError, rf"could not infer output dtype. Input dtype .* floating .*Got: {dtype.tensor_name}", x.mean)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_floats_keep_their_dtype(dtype: Any) -> None:
    x = ones(2, 3, dtype=dtype)
    for name in "sum mean prod amax var std norm nansum nanmean".split():
        assert getattr(x, name)().dtype is dtype
    for name in "logsumexp cumsum cumprod".split():
        assert getattr(x, name)(0).dtype is dtype


def test_other_dtypes() -> None:
    assert ones(2, dtype=tinytorch.int64).logsumexp(0).dtype is tinytorch.float32
    x = ones(3).requires_grad_()
    x.sum(dtype=tinytorch.float64).backward()
    assert x.grad.dtype is tinytorch.float32


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
            assert got.dtype == np.float32 and got.shape == want.shape
            np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("name", ["sum", "mean", "var", "norm", "logsumexp"])
@pytest.mark.parametrize("shape", [(32, 30), (300, 70), (5, 17, 40), (1, 8), (8, 33, 1), (7, 1, 8, 100)])
def test_a_sum_depends_on_memory_alone(name: str, shape: tuple[int, ...]) -> None:
    order = tuple(range(len(shape)))[::-1]
    for x in (tinytorch.randn(shape), tinytorch.randn(*shape[:-1], 2 * shape[-1])[..., ::2]):
        for dims in [*[(d,) for d in order if shape[d] > 1], *itertools.combinations(order, 2)]:
            turned = getattr(x.permute(order), name)(dim=[x.ndim - 1 - d for d in dims])
            np.testing.assert_array_equal(getattr(x, name)(dim=dims).numpy(), turned.numpy().T)


def test_sums_of_float16_are_kept_in_float32() -> None:
    x = np.full((5000, 2), 0.1, np.float16)
    np.testing.assert_allclose(kernels.total(x, (0,)), x.astype(np.float64).sum(0), rtol=1e-3)
    # The sum is beyond the largest float16, the mean is not.
    assert tinytorch.from_numpy(np.full(100, 60000.0, np.float16)).mean().item() == 60000.0


def test_cumulative_sums_of_float32_are_accurate() -> None:
    x = np.full(1_000_000, 0.1, np.float32)
    total = tinytorch.from_numpy(x).cumsum(0).numpy()[-1]
    assert total == pytest.approx(x.astype(np.float64).sum(), rel=1e-7)


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


def test_subgradients_at_zero() -> None:
    for call in ("x.std()", "x.norm(1)", "x.norm(1.5)", "x.norm(2)", "x.norm(3)", "x.norm(float('inf'))"):
        x = ones(3).requires_grad_() if "std" in call else tinytorch.zeros(3, requires_grad=True)
        eval(call, {"x": x}).backward()
        assert x.grad.tolist() == [0, 0, 0], call
    x = ones(3).requires_grad_()
    x.norm(0).backward()  # the count of what is not zero gives no gradient
    assert x.grad is None


@pytest.mark.parametrize("call", [
    "max()", "min()", "amax()", "amin(1)", "amax((0, 1))", "max(1)[0]", "min(0).values", "median()",
    "norm(float('inf'))", "aminmax().max",
])  # fmt: skip
@compared
def test_gradients_at_ties(torch: Any, call: str) -> Any:
    x = torch.tensor([[1.0, 3.0, 3.0], [3.0, -3.0, 0.0], [1.0, 1.0, 0.0]], requires_grad=True)
    eval(f"x.{call}", {"x": x}).sum().backward()
    return x.grad


def test_the_first_of_equals_is_chosen() -> None:
    x = tinytorch.tensor([[1.0, 3.0, 3.0], [0.0, 0.0, 0.0]])
    assert x.max(1).indices.tolist() == x.argmax(1).tolist() == [1, 0]
    assert x.min(1).indices.tolist() == x.argmin(1).tolist() == [0, 0]


def test_indices_take_no_part_in_the_graph() -> None:
    values, indices = ones(2, 3).requires_grad_().max(1)
    assert values.requires_grad and not indices.requires_grad and indices.dtype is tinytorch.int64
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


def test_results_have_names_and_pytorchs_repr() -> None:
    result = tinytorch.tensor([[1.0, 2.0]]).max(1)
    values, indices = result
    assert isinstance(result, return_types.max) and isinstance(result, tuple)
    assert values is result.values is result[0] and indices is result.indices is result[1]
    assert repr(result) == "torch.return_types.max(\nvalues=tensor([2.]),\nindices=tensor([1]))"
    shown = "torch.return_types.aminmax(\nmin=tensor(1.),\nmax=tensor(2.))"
    assert repr(tinytorch.tensor([1.0, 2.0]).aminmax()) == shown
    again = pickle.loads(pickle.dumps(result))
    assert type(again) is return_types.max and again.indices.tolist() == [1]


def test_every_result_type_is_exported() -> None:
    assert return_types.__all__ == sorted(return_types.__all__)
    for name in return_types.__all__:
        assert getattr(return_types, name)((1, 2))[1] == 2


@pytest.mark.parametrize("call", expressions("""
    torch.hash_tensor(x, mode=1); torch.hash_tensor(x, 2); torch.hash_tensor(x, (0, 0)); torch.hash_tensor(3)
    torch.hash_tensor(torch.empty(0)); torch.hash_tensor(torch.empty(0, 3), 0); x.to(torch.uint64).hash_tensor()
    torch.hash_tensor(x, out=torch.empty(0)); torch.hash_tensor(x.to(torch.uint16))
"""))  # fmt: skip
@compared(to_the_word=True)
def test_hashes_that_fail(torch: Any, call: str) -> Any:
    return eval(call, {"torch": torch, "x": torch.ones(2, 3)})


@compared
def test_hashes(torch: Any) -> Any:
    kinds = "float16 bfloat16 float32 float64 int8 uint8 int64 bool".split()
    found = [torch.tensor([5, 0, 3, 127]).to(getattr(torch, kind)).hash_tensor().item() for kind in kinds]
    for value in (0.0, -0.0, 1.5, float("nan"), float("-inf"), 3e-40):
        found.append(torch.hash_tensor(torch.tensor(value)).item())
    out, x = torch.empty(0, dtype=torch.uint64), torch.ones(2, 3, requires_grad=True)
    found += [torch.hash_tensor(x.detach(), 0, out=out) is out, out.shape, torch.hash_tensor(x).requires_grad]
    return [*found, torch.hash_tensor(x.to("meta"), 1).dtype]
