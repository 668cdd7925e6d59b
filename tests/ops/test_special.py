"""Special functions beyond the samples: digits, regions and their seams, dtypes, errors, names."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pytest

import tinytorch
from tests.oracle import needs_oracle, torch
from tests.same import compared, of_each, programs, same_as_pytorch

RANDOM = np.random.default_rng(7)
LINE = np.concatenate(
    [np.linspace(-12, 30, 2501), RANDOM.uniform(-150, 150, 500), 10.0 ** RANDOM.uniform(-12, 12, 500)]
)
UNIT = np.concatenate([RANDOM.uniform(-1, 1, 800), 1 - 10.0 ** RANDOM.uniform(-16, 0, 400), [0.0, 1.0, -1.0, 1.5]])
SHARES = np.concatenate(
    [RANDOM.uniform(0, 1, 800), 10.0 ** RANDOM.uniform(-300, 0, 400), [0.0, 1.0, 2.0, math.exp(-2)]]
)
ENDS = np.array([-np.inf, np.inf, np.nan, 0.0, -0.0, 1e-300, -1e-300, 1.0, 2.0, 10.0])


def both(name: str, *arrays: Any) -> tuple[Any, Any]:
    """Return what a function of both libraries makes of arrays."""
    results = []
    for library in (tinytorch, torch):
        found = library
        for part in name.split("."):
            found = getattr(found, part)
        arguments = [library.from_numpy(each) if isinstance(each, np.ndarray) else each for each in arrays]
        results.append(found(*arguments).numpy())
    return results[0], results[1]


#: By function: arguments, and how far results may be from PyTorch's.
VALUES = [
    ("lgamma", LINE, 1e-14, 1e-14), ("digamma", LINE, 1e-13, 4e-14), ("erfinv", UNIT, 1e-15, 0),
    ("special.ndtri", SHARES, 2e-15, 1e-15), ("special.erfcx", LINE, 2e-15, 0),
    ("special.log_ndtr", LINE, 1e-13, 0), ("special.i0", LINE, 2e-15, 0), ("special.i0e", LINE, 2e-15, 0),
    ("special.i1", LINE, 3e-15, 0), ("special.i1e", LINE, 3e-15, 0), ("special.modified_bessel_k0", LINE, 3e-15, 0),
    ("special.modified_bessel_k1", LINE, 3e-15, 0), ("special.scaled_modified_bessel_k0", LINE, 3e-15, 0),
    ("special.scaled_modified_bessel_k1", LINE, 3e-15, 0), ("special.spherical_bessel_j0", LINE, 1e-14, 1e-15),
    ("special.entr", LINE, 1e-15, 0), ("special.ndtr", LINE, 1e-10, 2e-16), ("logit", SHARES, 1e-14, 1e-15),
]  # fmt: skip


@pytest.mark.parametrize(("name", "x", "rtol", "atol"), VALUES, ids=[name for name, *_ in VALUES])
def test_some_values(name: str, x: Any, rtol: float, atol: float) -> None:
    def program(torch: Any) -> Any:
        function = functools.reduce(getattr, name.split("."), torch)
        return function(torch.from_numpy(np.concatenate([x[::37], ENDS])))

    same_as_pytorch(program, rtol, atol)


@needs_oracle
@pytest.mark.parametrize(("name", "x", "rtol", "atol"), VALUES, ids=[name for name, *_ in VALUES])
def test_values_in_float64_and_float32(name: str, x: Any, rtol: float, atol: float) -> None:
    for each in (x, ENDS):
        ours, theirs = both(name, each)
        np.testing.assert_allclose(ours, theirs, rtol, atol)
    with np.errstate(over="ignore"):
        single = x.astype(np.float32)
    ours, theirs = both(name, single)
    assert ours.dtype == np.float32
    # Where the result leaves float32, PyTorch's intermediate results do so earlier.
    inside = np.isfinite(theirs) & (np.abs(theirs) > 1e-37)
    np.testing.assert_allclose(ours[inside], theirs[inside], 5e-5, 1e-5)


@pytest.mark.parametrize(("name", "points"), [
    # From the tables of the NIST Digital Library of Mathematical Functions' companion, 16 digits.
    ("bessel_j0", {0.0: 1.0, 1.0: 0.7651976865579666, 5.52: -2.6578369480081305e-05, 1e9: 2.4687471886269195e-05}),
    ("bessel_j1", {0.0: 0.0, 1.0: 0.4400505857449335, 7.02: 0.0013240892649782612, 20.0: 0.06683312417584991}),
    ("bessel_y0", {1.0: 0.08825696421567697, 7.09: 0.001184734219057389, 20.0: 0.06264059680938384}),
    ("bessel_y1", {1.0: -0.7812128213002887, 5.43: -0.00010854438364879486, 1e9: -2.4687471888874407e-05}),
    ("airy_ai", {0.0: 0.355028053887817, -2.5: -0.11232506769296609, -12.3: -0.2874720802564416}),
])  # fmt: skip
def test_digits_that_pytorch_does_not_have(name: str, points: dict[float, float]) -> None:
    """PyTorch's Bessel functions are off by up to 1e-6, its Airy function by 3e-6 left of -2."""
    x = tinytorch.tensor(list(points), dtype=tinytorch.float64)
    ours = getattr(tinytorch.special, name)(x).numpy()
    np.testing.assert_allclose(ours, list(points.values()), rtol=1e-12, atol=1e-16)


def test_identities_of_bessel_functions() -> None:
    """Wronskians (DLMF 10.5.2, 10.28.2), on both sides of every seam."""
    special = tinytorch.special
    x = tinytorch.from_numpy(np.concatenate([np.linspace(0.01, 12, 1201), np.linspace(12, 100, 89)]))
    j = special.bessel_j1(x) * special.bessel_y0(x) - special.bessel_j0(x) * special.bessel_y1(x)
    np.testing.assert_allclose((j * math.pi * x / 2).numpy(), 1, rtol=1e-13)
    k0, k1 = special.scaled_modified_bessel_k0(x), special.scaled_modified_bessel_k1(x)
    i = special.i0e(x) * k1 + special.i1e(x) * k0
    np.testing.assert_allclose((i * x).numpy(), 1, rtol=1e-13)


@pytest.mark.parametrize(("name", "seams"), [
    ("lgamma", (0.5, 1.5, 2.5, 4.5, 10, -0.5)), ("digamma", (1, 2, 4.5, 10)),
    ("special.erfcx", (-1, 1)), ("special.log_ndtr", (-1,)), ("special.i1e", (8,)), ("special.bessel_j0", (5,)),
    ("special.bessel_y1", (5,)), ("special.modified_bessel_k0", (2,)), ("special.airy_ai", (-5, -1.5, 2)),
    ("special.ndtri", (math.exp(-2), 1 - math.exp(-2), math.exp(-8), math.exp(-50))),
    ("erfinv", tuple(math.sqrt(-math.expm1(-w)) for w in (2.75, 6.25))),
])  # fmt: skip
def test_pieces_meet(name: str, seams: tuple[float, ...]) -> None:
    function = tinytorch
    for part in name.split("."):
        function = getattr(function, part)
    for seam in seams:
        sides = [np.nextafter(seam, seam - 1), seam, np.nextafter(seam, seam + 1)]
        low, at, high = function(tinytorch.tensor(sides, dtype=tinytorch.float64)).tolist()  # type: ignore[operator]
        assert low == pytest.approx(high, rel=5e-14, abs=2e-15)
        assert at == pytest.approx(high, rel=5e-14, abs=2e-15)


@needs_oracle
@pytest.mark.parametrize("name", ["igamma", "igammac"])
def test_incomplete_gamma(name: str) -> None:
    axis = np.concatenate([ENDS, RANDOM.uniform(0, 60, 60), 10.0 ** RANDOM.uniform(-3, 5, 60)])
    a, x = (each.ravel() for each in np.meshgrid(axis, axis))
    ours, theirs = both(name, a, x)
    np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-9)
    ours, theirs = both(name, a.astype(np.float32), x.astype(np.float32))
    np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=3e-4)


def test_incomplete_gamma_for_large_arguments() -> None:
    """Digits (from 40-digit arithmetic) that PyTorch loses: it has about 1e-9 there."""
    a = tinytorch.tensor([297.6679939471327, 345.8322606908232, 20.5], dtype=tinytorch.float64)
    x = tinytorch.tensor([230.23976880819143, 414.8024776621, 25.0], dtype=tinytorch.float64)
    below, above = tinytorch.igamma(a, x), tinytorch.igammac(a, x)
    np.testing.assert_allclose((below + above).numpy(), 1, rtol=1e-15)
    # The recurrence P(a + 1, x) = P(a, x) - x^a exp(-x) / gamma(a + 1) (DLMF 8.8.5).
    step = tinytorch.exp(a * tinytorch.log(x) - x - tinytorch.lgamma(a + 1))
    np.testing.assert_allclose((below - step).numpy(), tinytorch.igamma(a + 1, x).numpy(), rtol=1e-9, atol=2e-13)


@needs_oracle
@pytest.mark.parametrize("n", [2, 3, 5, 20])
def test_polygamma_and_zeta(n: int) -> None:
    x = LINE[(LINE > -60) & (LINE < 1e6)]
    for each in (x, ENDS):
        ours, theirs = both("special.zeta", np.full_like(each, n + 1), each)
        # Between the poles of odd orders large terms cancel, down to the atol.
        np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-9)
        mine, other = (tinytorch.polygamma(n, tinytorch.from_numpy(each)), torch.polygamma(n, torch.from_numpy(each)))
        np.testing.assert_allclose(mine.numpy(), other.numpy(), rtol=1e-11, atol=1e-9 * math.factorial(n))


def test_trigamma_has_all_digits() -> None:
    """Of 1, 1/2 and 10 (DLMF 5.15); PyTorch's has eight. At poles it is infinite; PyTorch's 1e32."""
    x = tinytorch.tensor([1.0, 0.5, 2.0, -3.0, -0.5], dtype=tinytorch.float64)
    exact = [math.pi**2 / 6, math.pi**2 / 2, math.pi**2 / 6 - 1, math.inf, math.pi**2 / 2 + 4]
    np.testing.assert_allclose(tinytorch.polygamma(1, x).numpy(), exact, rtol=4e-16)


UNARY = (
    "lgamma digamma erfinv logit angle i0 special.i0e special.i1 special.i1e special.entr special.ndtr special.ndtri "
    "special.log_ndtr special.erfcx special.bessel_j0 special.airy_ai special.spherical_bessel_j0 special.expit "
    "special.modified_bessel_k0 special.scaled_modified_bessel_k1 special.gammaln special.psi"
).split()


def at(library: Any, name: str) -> Any:
    for part in name.split("."):
        library = getattr(library, part)
    return library


@pytest.mark.parametrize("dtype", "float16 bfloat16 bool uint8 int32 int64 float32".split())
@pytest.mark.parametrize("name", UNARY)
def test_dtypes_of_one(name: str, dtype: str) -> None:
    def program(library: Any) -> Any:
        out = at(library, name)(library.tensor([0, 1, 1]).to(getattr(library, dtype)))
        return out.dtype, out.float()

    # (PyTorch computes these of 16-bit floats in their own precision.)
    same_as_pytorch(program, rtol=1e-2 if name in ("special.i0e", "special.ndtr") else 1e-5)


@pytest.mark.parametrize("dtype", "float16 bfloat16 bool uint8 int32 int64 float32 float64".split())
@pytest.mark.parametrize(
    "name",
    "igamma igammac logaddexp2 heaviside nextafter ldexp gcd lcm special.xlog1py special.zeta "
    "special.chebyshev_polynomial_t special.hermite_polynomial_he".split(),
)
def test_dtypes_of_two(name: str, dtype: str) -> None:
    for other in (dtype, "int64", "float32"):
        if name == "heaviside" and other != dtype:
            continue

        def program(library: Any, other: str = other) -> Any:
            x = library.tensor([2, 1, 0]).to(getattr(library, dtype))
            y = library.tensor([1, 2, 1]).to(getattr(library, other))
            out = at(library, name)(x, y)
            return out.dtype, out.double()

        same_as_pytorch(program, rtol=1e-5)


test_behaves_as_pytorch = of_each(
    {
        **programs(
            """
    torch.polygamma(-1, torch.ones(2)); torch.polygamma(1.5, torch.ones(2)); torch.ones(2).polygamma(-1)
    torch.polygamma(2, input=torch.ones(2)); torch.mvlgamma(torch.ones(2), 0); torch.mvlgamma(torch.ones(2), 4)
    torch.special.multigammaln(torch.ones(2), p=1); torch.igamma(torch.ones(2), 1.0); torch.igamma(1.0, torch.ones(2))
    torch.heaviside(torch.ones(2), torch.tensor(1)); torch.heaviside(torch.ones(2), 1.0)
    torch.heaviside(input=torch.tensor([-1.0, 0.0, math.nan, 2.0]), values=torch.tensor([5.0]))
    torch.heaviside(torch.zeros(2, requires_grad=True), torch.ones(2)).sum().backward()
    torch.igamma(torch.ones(2, requires_grad=True), torch.ones(2)).sum().backward()
    torch.igammac(torch.ones(2, requires_grad=True), torch.ones(2)).sum().backward()
    torch.special.zeta(torch.ones(2, requires_grad=True), torch.ones(2)).sum().backward()
    torch.special.bessel_j0(torch.ones(2, requires_grad=True))
    torch.special.legendre_polynomial_p(torch.ones(2, requires_grad=True), 2); torch.gcd(torch.ones(2), torch.ones(2))
    torch.gcd(torch.tensor([1, 2]), 3); torch.nextafter(torch.ones(2), torch.ones(2).double())
    torch.ldexp(torch.ones(2), 2); torch.ones(2).ldexp_(torch.tensor([1, -2])); torch.tensor([1.0, 2.0]).float_power_(2)
    torch.tensor([1.0, 2.0]).double().float_power_(2); torch.tensor([1j]).float_power_(2)
    torch.tensor([1j, 2]).cdouble().float_power_(2.5); torch.tensor([1.0, 2.0]).double().float_power_(2j)
    torch.tensor([1j, 2]).cdouble().float_power_(torch.tensor([1, 2]))
    torch.ones(1).cdouble().float_power_(torch.tensor([2j]))
    torch.tensor([1.0, 2.0]).double().float_power_(torch.tensor([2, 3]))
    torch.logit(torch.tensor([-1.0, 0.0, 0.3, 1.0, 2.0, math.nan, math.inf]), -1)
    torch.tensor([0.2, 0.7]).logit_(eps=0.3); torch.logit_(torch.tensor([0.2, 0.7]))
    torch.logcumsumexp(torch.tensor([1, 2]), 0); torch.logcumsumexp(torch.ones(2), 1)
    torch.logcumsumexp(torch.tensor([math.inf, -math.inf, 1.0, math.nan, 2.0]), 0)
    torch.logcumsumexp(torch.tensor([-math.inf, -math.inf, 1.0]), dim=0)
    torch.logcumsumexp(torch.tensor([1.0, 2.0]).half(), 0).float()
    torch.logcumsumexp(torch.tensor([1.0, 2.0]).bfloat16(), 0).float(); torch.frexp(torch.tensor([1, 2]))
    tuple(torch.frexp(torch.tensor([0.0, 1.0, -3.0, math.inf, -math.inf, math.nan])))
    [each.float() for each in torch.tensor([6.0, 0.3]).bfloat16().frexp()]; torch.frexp(torch.ones(2)).exponent
    repr(torch.frexp(torch.ones(2))); torch.angle(torch.tensor([-1.0, -0.0, 0.0, math.nan, math.inf, -math.inf]))
    torch.imag(torch.ones(2)); [torch.is_conj(torch.ones(2)), torch.ones(2).is_neg()]
    torch.tensor([1.0, 5.0]).clamp_max_(2.0); torch.tensor([1.0, 5.0]).clamp_min_(torch.tensor([3.0, 2.0]))
    torch.clamp_max_(torch.tensor([1.0, 5.0]), 2); torch.tensor([1, 5]).lgamma_()
    torch.tensor([1, 5]).gcd_(torch.tensor([4, 10])); torch.tensor([1, 0]).heaviside_(torch.tensor([4, 10]))
    torch.tensor([1.0, 0.5]).polygamma_(2); torch.tensor([1.0, 0.5]).mvlgamma_(1)
    torch.tensor([1.0, 0.5]).igamma_(torch.tensor([1.0, 0.5])); torch.logaddexp2(torch.ones(2), 1.0)
    torch.special.softmax(torch.tensor([1.0, 2.0]), 0, dtype=torch.float64)
    torch.special.round(torch.tensor([1.24, 2.5]), decimals=1)
    torch.lgamma(torch.tensor([1.0, 2.5]), out=torch.empty(2)); torch.special.zeta(2.0, torch.tensor([1.0, 2.5]))
    torch.lgamma(2.0); torch.special.i0e(2.0)
""",
            {"math": math},
        ),
        "0": lambda torch: [
            f(x) is x
            for x in [torch.ones(2)]
            for f in (
                torch.conj, torch.real, torch.conj_physical, torch.resolve_conj, torch.resolve_neg, torch.positive,
                torch.Tensor.conj, torch.Tensor.conj_physical_, torch.Tensor.resolve_neg,
            )
        ],
        "1": lambda torch: torch.logaddexp2(
            torch.tensor([math.inf, -math.inf, math.inf, math.nan, 1.0]),
            torch.tensor([math.inf, -math.inf, -math.inf, 1.0, 2.0]),
        ),
    }
)  # fmt: skip


@needs_oracle
def test_torch_special_has_all_names() -> None:
    helpers = {"Tensor", "common_args", "multi_dim_common", "torch"}
    names = {each for each in dir(torch.special) if not each.startswith("_")} - helpers
    assert set(tinytorch.special.__all__) == names


OTHERS = "special.xlog1py special.zeta logaddexp2 ldexp igamma frexp logcumsumexp".split()


@pytest.mark.parametrize("name", [*UNARY, *OTHERS])
@compared
def test_nodes_have_pytorch_s_names(torch: Any, name: str) -> Any:
    if name == "special.ndtr":  # a product there, less accurate for negative numbers
        return None
    x = torch.tensor([0.5, 0.7], requires_grad=True)
    if name == "logcumsumexp":
        out = torch.logcumsumexp(x, 0)
    elif name == "frexp":
        out = torch.frexp(x)[0]
    else:
        out = at(torch, name)(*[x] if name in UNARY else (x, torch.tensor([1.5, 2.5])))
    return out.grad_fn and out.grad_fn.name()


def test_cumulative_logarithms_of_zero_gradients() -> None:
    """The sums are taken of logarithms of the gradients; also of gradients that are 0 they have derivatives."""
    x = tinytorch.tensor([0.3, -1000.0, 2.0, 900.0], dtype=tinytorch.float64, requires_grad=True)
    out = tinytorch.logcumsumexp(x, 0)
    g = tinytorch.tensor([1.0, 0.0, -2.0, 0.0], dtype=tinytorch.float64, requires_grad=True)
    (slope,) = tinytorch.autograd.grad(out, x, g, create_graph=True)
    (back,) = tinytorch.autograd.grad(slope.sum(), g)
    assert tinytorch.isfinite(slope).all()
    np.testing.assert_allclose(back.detach().numpy(), 1)  # the softmax that each output's gradient is sums to 1
