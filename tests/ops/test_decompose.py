"""Linear algebra: errors, results that are no samples, gradients on symmetric input (values: `tests/samples`)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinytorch
from tests.same import compared, of_each, programs, same_as_pytorch
from tests.samples import normal
from tests.samples.decompose import positive, spread_out
from tinytorch.autograd import gradcheck, gradgradcheck
from tinytorch.kernels import decompose as kernels


def tensor(array: Any) -> Any:
    return tinytorch.tensor(array, requires_grad=True)


def symmetric(x: Any) -> Any:
    return (x + x.mH) / 2


def complex_normal(*shape: int, seed: int = 0) -> Any:
    return normal(*shape, seed=seed) + 0.5j * normal(*shape, seed=seed + 7)


def hermitian(*shape: int) -> Any:
    """Return Hermitian positive-definite matrices with well separated eigenvalues."""
    skew = normal(*shape, seed=7) / 10
    return positive(*shape) + 1j * (skew - skew.swapaxes(-1, -2))


OF_SYMMETRIC: dict[str, Callable[[Any], Any]] = {
    "cholesky": lambda a: tinytorch.linalg.cholesky(a),
    "cholesky upper": lambda a: tinytorch.linalg.cholesky(a, upper=True),
    "cholesky_ex": lambda a: tinytorch.linalg.cholesky_ex(a).L,
    "eigvalsh": lambda a: tinytorch.linalg.eigvalsh(a),
    "eigvalsh U": lambda a: tinytorch.linalg.eigvalsh(a, "U"),
    "eigh": lambda a: [part * part.conj() for part in tinytorch.linalg.eigh(a)],
    "pinv": lambda a: tinytorch.linalg.pinv(a, hermitian=True),
    "lobpcg": lambda a: [part * part.conj() for part in tinytorch.lobpcg(a, 1)],
    "cholesky_inverse": lambda a: tinytorch.cholesky_inverse(tinytorch.linalg.cholesky(a)),
    "cholesky_inverse upper": lambda a: tinytorch.cholesky_inverse(
        tinytorch.linalg.cholesky(a, upper=True), upper=True
    ),
    "cholesky_solve": lambda a: tinytorch.cholesky_solve(a * a, tinytorch.linalg.cholesky(a)),
    "cholesky_solve upper": lambda a: tinytorch.cholesky_solve(
        a * a, tinytorch.linalg.cholesky(a, upper=True), upper=True
    ),
}


@pytest.mark.parametrize("matrices", [positive, hermitian])
@pytest.mark.parametrize("name", OF_SYMMETRIC)
def test_gradients_on_symmetric_input(name: str, matrices: Any) -> None:
    def run(x: Any) -> Any:
        found = OF_SYMMETRIC[name](symmetric(x))
        return tuple(found) if isinstance(found, list) else found

    for shape in ((3, 3), (2, 3, 3)):
        x = tensor(matrices(*shape))
        assert gradcheck(run, (x,), check_forward_ad=True) and gradgradcheck(run, (x,), atol=1e-4)


OF_GENERAL: dict[str, Callable[[Any], Any]] = {
    f"cond {p}": lambda a, p=p: tinytorch.linalg.cond(a, p)  # type: ignore[misc]
    for p in ("fro", 1, -1, math.inf, -math.inf)
}
OF_GENERAL |= {"vander": lambda a: tinytorch.vander(a[0], 4), "kron": lambda a: tinytorch.kron(a[0], a)}


@pytest.mark.parametrize("name", OF_GENERAL)
def test_gradients_that_pytorch_does_not_give(name: str) -> None:
    x = tensor(spread_out(3, 3) + 2 * np.eye(3))
    assert gradcheck(OF_GENERAL[name], (x,)) and gradgradcheck(OF_GENERAL[name], (x,), atol=1e-4)


@pytest.mark.parametrize("factor", [1, 1 - 2j])
def test_gradient_of_the_determinant_of_a_singular_matrix(factor: Any) -> None:
    x = tensor(np.array([[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [3.0, 1.0, 0.0]]) * factor)
    assert tinytorch.det(x) == 0 and gradcheck(tinytorch.det, (x,))
    if factor != 1:
        return
    (g,) = tinytorch.autograd.grad(tinytorch.det(x), x)
    np.testing.assert_allclose(g.numpy()[:, 2], [-1, 5, -3], atol=1e-12)


@pytest.mark.parametrize("shape", [(100, 100), (2, 120, 60), (60, 120), (0, 3, 3), (3, 0)])
def test_lu_of_several_blocks(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).standard_normal(shape)
    factors, pivots, info = kernels.lu(x)
    m, n = shape[-2:]
    k = min(m, n)
    lower = np.tril(factors[..., :k], -1) + np.eye(m, k)
    rows = kernels.permutation(pivots, m)
    np.testing.assert_allclose(
        lower @ np.triu(factors[..., :k, :]), np.take_along_axis(x, rows[..., None], -2), atol=1e-12
    )
    assert np.abs(lower).max(initial=0) <= 1 and not info.any()


@pytest.mark.parametrize("upper", [False, True])
def test_triangular_of_several_blocks(upper: bool) -> None:
    a = np.random.default_rng(0).standard_normal((2, 130, 130)) / 10 + 3 * np.eye(130)
    b = np.random.default_rng(1).standard_normal((130, 3))
    x = kernels.triangular(a, b, upper, False)
    np.testing.assert_allclose((np.triu if upper else np.tril)(a) @ x, np.stack([b, b]), atol=1e-10)


@pytest.mark.parametrize("n", [1, 2, 5, 20])
def test_ldl(n: int) -> None:
    x = np.random.default_rng(n).standard_normal((3, n, n))
    a = x + x.swapaxes(-1, -2)
    b = np.random.default_rng(0).standard_normal((3, n, 2))
    factors, pivots, _ = kernels.ldl(a, False)
    np.testing.assert_allclose(a @ kernels.ldl_solve(factors, pivots, b, False), b, atol=1e-8)


@pytest.mark.parametrize("is_hermitian", [False, True])
@pytest.mark.parametrize("n", [1, 2, 5, 20])
def test_complex_ldl(n: int, is_hermitian: bool) -> None:
    x = np.random.default_rng(n).standard_normal((3, n, n, 2)).view(np.complex128)[..., 0]
    a = x + x.swapaxes(-1, -2)
    if is_hermitian:
        a = x + x.swapaxes(-1, -2).conj()

    def program(torch: Any) -> Any:
        factors, pivots = torch.linalg.ldl_factor(torch.tensor(a), hermitian=is_hermitian)
        b = torch.arange(2 * n, dtype=torch.complex128).reshape(n, 2)
        return factors, pivots, torch.linalg.ldl_solve(factors, pivots, b, hermitian=is_hermitian)

    same_as_pytorch(program, rtol=1e-7, atol=1e-7)


A = [[1.0, 2.0], [2.0, 4.0]]
ERRORS = {
    **programs("""
    torch.linalg.inv(torch.zeros(2, 2)); torch.linalg.inv(torch.stack([torch.eye(2), torch.zeros(2, 2)]))
    torch.linalg.inv_ex(torch.zeros(2, 2), check_errors=True); torch.linalg.cholesky(-torch.eye(2))
    torch.linalg.cholesky(torch.stack([torch.eye(2), torch.tensor([[1.0, 2], [2, 1]])]))
    torch.linalg.solve(torch.zeros(2, 2), torch.ones(2)); torch.linalg.solve(torch.ones(2, 3), torch.ones(2))
    torch.linalg.solve(torch.eye(2), torch.ones(3)); torch.linalg.solve(torch.eye(2), torch.ones(2).double())
    torch.linalg.solve(torch.ones(3, 2, 2), torch.ones(4, 2, 1))
    torch.linalg.solve_triangular(torch.eye(2), torch.ones(3, 1), upper=True)
    torch.linalg.solve_triangular(torch.eye(2), torch.ones(2), upper=True); torch.linalg.lu_factor(torch.zeros(2, 2))
    torch.linalg.lu(torch.eye(2), pivot=False); torch.linalg.lu(torch.empty(0, 3), pivot=False)
    torch.linalg.lu_factor(torch.empty(2, 3, 0), pivot=False); torch.linalg.qr(torch.eye(2), "x")
    torch.linalg.qr(torch.ones(2, 2, requires_grad=True), "r").R.sum().backward(); torch.linalg.eigh(torch.eye(2), "X")
    torch.linalg.matrix_norm(torch.eye(2), 3); torch.linalg.matrix_norm(torch.eye(2), "x")
    torch.linalg.matrix_norm(torch.eye(2), "fro", (0, 0)); torch.linalg.norm(torch.ones(2, 2, 2), 2)
    torch.linalg.norm(torch.ones(2), "nuc"); torch.norm(torch.ones(2, 2, 2), "nuc")
    torch.linalg.cond(torch.eye(2), "x"); torch.linalg.cond(torch.ones(2, 3), 1)
    torch.linalg.matrix_power(torch.ones(2, 3), 2); torch.linalg.matrix_power(torch.ones(2, 2).long(), -1)
    torch.linalg.lstsq(torch.ones(3, 2), torch.ones(4, 1))
    torch.linalg.lstsq(torch.ones(3, 2), torch.ones(3, 1), driver="x")
    torch.linalg.householder_product(torch.ones(2, 3), torch.ones(3))
    torch.linalg.vecdot(torch.arange(3), torch.arange(3)); torch.linalg.cross(torch.ones(2, 2), torch.ones(2, 2))
    torch.linalg.cross(torch.ones(2, 3), torch.ones(3)); torch.geqrf(torch.eye(2).requires_grad_()).a.sum().backward()
    torch.ormqr(torch.ones(3, 2), torch.ones(2), torch.ones(2, 3))
    torch.ormqr(torch.eye(3), input2=torch.ones(3), input3=torch.ones(3, 2))
    torch.lu(torch.eye(2), out=(torch.empty(0), torch.empty(0, dtype=torch.int32)))
    torch.lu(torch.eye(2), out=[torch.empty(2, 2), torch.empty(1, dtype=torch.int32)])
    torch.lu(torch.eye(2), get_infos=True, out=(torch.empty(2, 2), torch.empty(2, dtype=torch.int32)))
    torch.cholesky_solve(torch.ones(3, 1), torch.eye(2)); torch.cholesky_inverse(torch.ones(2, 3))
    torch.lu_unpack(torch.eye(2), torch.tensor([1, 2])); torch.cdist(torch.ones(2, 3), torch.ones(2, 2))
    torch.cdist(torch.ones(2, 3), torch.ones(2, 3), p=-1); torch.cdist(torch.ones(2, 3).long(), torch.ones(2, 3).long())
    torch.cdist(torch.ones(2), torch.ones(2)); torch.cdist(torch.ones(2, 3), torch.ones(2, 3), compute_mode="x")
    torch.pdist(torch.ones(3)); torch.dist(torch.arange(3), torch.arange(3))
    torch.trapezoid(torch.ones(3), torch.ones(2)); torch.trapezoid(torch.tensor(1.0)); torch.cov(torch.ones(2, 2, 2))
    torch.cov(torch.ones(2, 3), fweights=torch.ones(3)); torch.cov(torch.ones(2, 3), aweights=-torch.ones(3))
    torch.cov(torch.ones(2, 3), fweights=torch.ones(2).long()); torch.vander(torch.ones(2, 2))
    torch.renorm(torch.ones(2, 2), -1, 0, 1); torch.renorm(torch.ones(2), 2, 0, 1)
    torch.pca_lowrank(torch.ones(2, 3), q=9); torch.linalg.vander(torch.ones(2, 1))
    torch.linalg.vander(torch.ones(3).half()); torch.linalg.solve(torch.eye(2), torch.tensor(1.0))
    torch.linalg.solve(torch.eye(2).half(), torch.ones(2).half())
    torch.linalg.solve(torch.eye(2), torch.ones(2), left=False)
    torch.linalg.solve_triangular(torch.eye(2).long(), torch.eye(2), upper=True)
    torch.linalg.lstsq(torch.ones(3, 2), torch.ones(4, 3, 1))
    torch.linalg.householder_product(torch.eye(2).long(), torch.ones(2).long())
    torch.linalg.cross(torch.eye(3).bool(), torch.eye(3).bool()); torch.linalg.cross(torch.eye(3), 3)
    torch.linalg.norm(torch.ones(2, 2, 2), "nuc")
    torch.linalg.lu_solve(torch.eye(2), torch.ones(3).int(), torch.eye(2))
    torch.linalg.lu_solve(torch.ones(2, 3, 3), torch.ones(3).int(), torch.eye(3))
    torch.linalg.lu_solve(torch.eye(2), torch.ones(2).int(), torch.eye(2).double())
    torch.linalg.ldl_solve(torch.eye(2), torch.ones(2), torch.eye(2))
    torch.linalg.ldl_solve(torch.eye(2), torch.ones(3).int(), torch.eye(2))
    torch.linalg.ldl_solve(torch.eye(2), torch.ones(2).int(), torch.eye(2).double())
    torch.linalg.ldl_factor(torch.eye(2).requires_grad_()).LD.sum().backward(); torch.cholesky(torch.eye(2).long())
    torch.cholesky_inverse(torch.zeros(2, 2)); torch.cholesky_solve(torch.eye(2).long(), torch.eye(2).long())
    torch.geqrf(torch.eye(2).long()); torch.ormqr(torch.eye(3), torch.ones(3), torch.ones(2, 3, 3))
    torch.ormqr(torch.eye(3), torch.ones(3), torch.eye(3).double())
    torch.ormqr(torch.ones(2, 3, 3), torch.ones(4, 3), torch.ones(2, 3, 3))
    torch.lu_unpack(torch.tensor(1.0), torch.ones(1).int()); torch.lobpcg(torch.eye(2))
    torch.chain_matmul(torch.ones(3), torch.ones(3)); torch.linalg.multi_dot([torch.eye(2), torch.eye(2).double()])
"""),
    **{str(k): each for k, each in enumerate([
        lambda torch, f=f, x=x: getattr(torch.linalg, f)(x(torch))  # type: ignore[misc]
        for f in (
            "inv", "det", "slogdet", "cholesky", "eigh", "eigvalsh", "svd", "svdvals", "qr", "lu", "lu_factor",
            "pinv", "matrix_rank", "matrix_norm", "cond", "matrix_exp",
        )
        for x in (
            lambda torch: torch.ones(3), lambda torch: 3, lambda torch: torch.ones(2, 2, dtype=torch.int64),
        )
    ])},
    **{str(k): each for k, each in enumerate([
        lambda torch, f=f: getattr(torch.linalg, f)(torch.ones(2, 3))  # type: ignore[misc]
        for f in ("inv", "det", "slogdet", "cholesky", "eigh", "matrix_exp")
    ])},
    **{str(k): each for k, each in enumerate([
        lambda torch, f=f: getattr(torch.linalg, f)(torch.eye(2).half())  # type: ignore[misc]
        for f in ("inv", "det", "slogdet", "cholesky", "eigh", "svd", "qr", "lu", "pinv", "matrix_rank")
    ])},
    **{str(k): each for k, each in enumerate([
        lambda torch, f=f: getattr(torch.linalg, f)(torch.full((2, 2), math.nan))  # type: ignore[misc]
        for f in ("cholesky", "svd", "svdvals", "eigh", "eigvalsh", "pinv", "matrix_rank", "cond")
    ])},
    **{str(k): each for k, each in enumerate([
        lambda torch, f=f: getattr(torch.linalg, f)(3)  # type: ignore[misc]
        for f in ("vander", "tensorinv")
    ])},
}  # fmt: skip


test_errors = of_each(ERRORS)


RESULTS = {
    **programs("""
    torch.linalg.inv_ex(torch.stack([torch.eye(2), torch.zeros(2, 2)])).info
    torch.linalg.solve_ex(torch.tensor(A), torch.ones(2, 1)).info
    tuple(torch.linalg.cholesky_ex(torch.tensor([[4.0, 4], [4, 1]]))); tuple(torch.linalg.lu_factor_ex(torch.tensor(A)))
    torch.linalg.slogdet(torch.zeros(2, 2)); torch.logdet(-torch.eye(3))
    torch.linalg.svdvals(torch.tensor(A).double())[0]; torch.linalg.lstsq(torch.eye(3)[:, :2] + 1, torch.ones(3))
    torch.linalg.lstsq(torch.eye(3)[:, :2] + 1, torch.ones(3, 1), driver="gelsd")
    torch.linalg.lstsq(torch.eye(3)[:, :2] + 1, torch.ones(3, 1), driver="gels")
    torch.linalg.cond(torch.zeros(2, 2), 1); torch.linalg.matrix_norm(torch.eye(2).half(), 1)
    torch.linalg.solve_triangular(torch.tensor([[0.0, 1], [0, 1]]), torch.ones(2, 1), upper=True)
    torch.linalg.pinv(torch.eye(3, dtype=torch.float64), atol=torch.tensor(0.5))
    torch.linalg.ldl_factor_ex(torch.tensor(A)).info; torch.linalg.LinAlgError.__mro__[1] is RuntimeError
    type(torch.slogdet(torch.eye(2))).__name__; repr(torch.linalg.qr(torch.tensor([[2.0]]))).replace("-", "")
    [tuple(each.shape) for each in torch.svd_lowrank(torch.ones(2, 5, 3), q=2)]
    torch.svd_lowrank(torch.arange(12.0).reshape(4, 3), q=2)[1]
    torch.svd_lowrank(torch.arange(12.0).reshape(3, 4), q=3, M=torch.ones(4))[1][:2]
    torch.pca_lowrank(torch.arange(12.0).reshape(4, 3) ** 2, q=2)[1]
    torch.pca_lowrank(torch.arange(12.0).reshape(4, 3), q=2, center=False)[1]; torch.cov(torch.tensor(1.0))
    torch.cov(torch.ones(2, 3), correction=5); torch.corrcoef(torch.ones(3))
    torch.matrix_power(torch.ones(2, 2, requires_grad=True), 0).detach()
    torch.renorm(torch.arange(6.0).reshape(2, 3).half(), 1, 1, 2.0); torch.linalg.ldl_factor_ex(torch.zeros(0, 0))
    torch.linalg.ldl_factor(torch.zeros(2, 0, 0))
    torch.linalg.ldl_solve(torch.zeros(0, 0), torch.zeros(0).int(), torch.zeros(0, 5))
    torch.linalg.vander(torch.tensor(3), N=3)
    torch.linalg.solve_triangular(torch.eye(2), torch.ones(2, 1).double(), upper=True); torch.lu(torch.zeros(2, 2))
    torch.linalg.lstsq(torch.eye(3, requires_grad=True), torch.ones(3)).residuals.requires_grad
""", {"A": A}),
    "0": lambda torch: torch.autograd.grad(
        torch.linalg.slogdet(torch.eye(2).requires_grad_().clone())[0], torch.ones(1, requires_grad=True),
        allow_unused=True,
    ),
}  # fmt: skip


@pytest.mark.parametrize("k", RESULTS)
def test_results(k: int) -> None:
    # (svd_lowrank and corrcoef of rank 1: what is below the rounding of the largest does not count.)
    same_as_pytorch(RESULTS[k], rtol=1e-4, atol=1e-4)


# Of a (n, n) positive-definite, b (n, 2), c (n, n) any: results, of which strides and nodes are compared.
LAYOUTS: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "inv": lambda torch, a, b, c: [torch.linalg.inv(c), *torch.linalg.inv_ex(c.mT)],
    "cholesky": lambda torch, a, b, c: [
        part
        for upper in (False, True)
        for part in (torch.cholesky(a, upper), *torch.linalg.cholesky_ex(a, upper=upper))
    ],
    "cholesky_solve": lambda torch, a, b, c: [
        *[torch.cholesky_solve(b, c, upper) for upper in (False, True)],
        *[torch.cholesky_inverse(c, upper) for upper in (False, True)],
    ],
    "qr": lambda torch, a, b, c: [*torch.linalg.qr(c), *torch.linalg.qr(b, "complete"), *torch.geqrf(b.detach())],
    "svd": lambda torch, a, b, c: [*torch.linalg.svd(b), *torch.svd(c), *torch.svd(c, compute_uv=False)],
    "eigh": lambda torch, a, b, c: torch.linalg.eigh(a),
    "lu": lambda torch, a, b, c: [
        *torch.linalg.lu(b), *torch.linalg.lu_factor_ex(b), *torch.lu_unpack(*torch.linalg.lu_factor(b.mT)),
    ],
    "lu_solve": lambda torch, a, b, c: [
        torch.linalg.lu_solve(*torch.linalg.lu_factor(c), b if left else b.mT, left=left, adjoint=adjoint)
        for left in (True, False)
        for adjoint in (True, False)
    ],
    "ldl": lambda torch, a, b, c: [
        *torch.linalg.ldl_factor(a), torch.linalg.ldl_solve(*torch.linalg.ldl_factor(a), b),
    ],
    "solve": lambda torch, a, b, c: [
        torch.linalg.solve(c, b), torch.linalg.solve(c, b.mT, left=False), torch.linalg.solve(c, b[..., 0]),
        torch.linalg.solve_ex(c, b.mT, left=False).result,
    ],
    "triangular": lambda torch, a, b, c: [
        torch.linalg.solve_triangular(c, b, upper=True), torch.linalg.solve_triangular(c, b, upper=False),
        torch.linalg.solve_triangular(c, b.mT, upper=True, left=False), *torch.triangular_solve(b, c, transpose=True),
    ],
    "lstsq": lambda torch, a, b, c: [
        torch.linalg.lstsq(b, c).solution, torch.linalg.lstsq(b.mT, b.mT).solution,
        torch.linalg.lstsq(b, c[..., 0], driver="gelsd").residuals,
    ],
    "householder": lambda torch, a, b, c: [
        torch.linalg.householder_product(c / 4, b[..., 0]), torch.ormqr(c / 4, b[..., 0], b),
        torch.ormqr(c / 4, b[..., 0], b.mT, False, True),
    ],
    "products": lambda torch, a, b, c: [
        torch.linalg.cross(b[..., :3, :], b[..., :3, :], dim=-2), torch.linalg.vecdot(a, c), torch.kron(b, c),
        b[..., :, 0] @ c if c.ndim == 2 else c @ c, torch.trace(c.reshape(-1, 4)), torch.linalg.multi_dot([c[0]] * 2),
    ],
    "powers": lambda torch, a, b, c: [torch.linalg.matrix_power(c.mT, n) for n in (0, 1, -1, 2)],
    "norms": lambda torch, a, b, c: [
        f(b, order, keepdim=keepdim) if f is torch.linalg.matrix_norm else f(c, order)
        for f in (torch.linalg.matrix_norm, torch.linalg.cond)
        for order in ("nuc", 2, -2)
        for keepdim in (True, False)
    ],
    "norms by sums": lambda torch, a, b, c: [
        torch.linalg.matrix_norm(b, order, keepdim=keepdim)
        for order in ("fro", 1, -1, math.inf, -math.inf)
        for keepdim in (True, False)
    ],
}  # fmt: skip


@pytest.mark.parametrize("kind", ["float64", "complex128"])
@pytest.mark.parametrize("batch", [(), (2,)])
@pytest.mark.parametrize("name", LAYOUTS)
@compared
def test_strides_and_nodes(torch: Any, name: str, batch: tuple[int, ...], kind: str) -> Any:
    arrays = positive(*batch, 4, 4), normal(*batch, 4, 2), spread_out(*batch, 4, 4, seed=1)
    tensors = [torch.tensor(x.tolist(), dtype=getattr(torch, kind), requires_grad=True) for x in arrays]
    return [
        (tuple(part.shape), part.stride(), part.grad_fn and part.grad_fn.name())
        for part in LAYOUTS[name](torch, *tensors)
    ]


def test_old_solvers() -> None:
    def program(torch: Any) -> Any:
        found = []
        for flags in ((True, True, True), (False, False, False), (True, False, False)):
            a, b = (torch.tensor(x.tolist(), requires_grad=True) for x in (spread_out(3, 3), normal(3, 2)))
            with warnings.catch_warnings():  # (PyTorch warns twice, and again in backward)
                warnings.simplefilter("ignore")
                solution, copy = torch.triangular_solve(b, a, *flags)
                ((solution**2).sum() + (copy**3).sum()).backward()
            found += [solution, copy, a.grad, b.grad]
        return found

    def wrong(torch: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return torch.triangular_solve(torch.eye(2), torch.eye(2).double())

    same_as_pytorch(program, rtol=1e-4, atol=1e-4)
    same_as_pytorch(wrong)


NORMS = [
    lambda torch, v: [
        torch.norm_except_dim(v), torch.norm_except_dim(v, 1, 2), torch.norm_except_dim(v=v, pow=3, dim=-2),
    ],
    lambda torch, v: [torch.norm_except_dim(v, 2, -1), torch.norm_except_dim(v, 0, 1), torch.norm_except_dim(v.half())],
    lambda torch, v: [torch.norm_except_dim(v[0, 0]), torch.norm_except_dim(v[0, 0, 0], 2, -1)],
    lambda torch, v: torch.norm_except_dim(v[0, 0, 0]), lambda torch, v: torch.norm_except_dim(v, 2, 3),
    lambda torch, v: torch.norm_except_dim(v, 2.5),
]  # fmt: skip


@pytest.mark.parametrize("norms", NORMS)
@compared(rtol=1e-3)
def test_norm_except_dim(torch: Any, norms: Any) -> Any:
    v = (torch.arange(24.0).reshape(2, 3, 4) - 9).requires_grad_()
    found = norms(torch, v)
    for each in found if isinstance(found, list) else [found]:
        each.sum().backward()
    return found, v.grad


DEPRECATED: dict[str, Callable[[Any], Any]] = {
    "qr": lambda torch: torch.qr(torch.tensor([[2.0, 1.0], [1.0, 3.0]])).R.abs(),
    "cholesky": lambda torch: torch.cholesky(torch.eye(2) * 4, upper=True),
    "lu": lambda torch: torch.lu(torch.tensor([[2.0, 1.0], [4.0, 3.0]])),
    "lu_solve": lambda torch: torch.lu_solve(torch.ones(2, 1), *torch.linalg.lu_factor(torch.eye(2) * 2)),
    "triangular_solve": lambda torch: torch.triangular_solve(
        torch.ones(2, 1), torch.tensor([[2.0, 0.0], [1.0, 4.0]]), upper=False, transpose=True
    ),
    "nuclear_norm": lambda torch: torch.nuclear_norm(torch.eye(2)),
    "frobenius_norm": lambda torch: torch.frobenius_norm(torch.eye(2), dim=1),
    "cross": lambda torch: torch.cross(torch.eye(3), torch.ones(3, 3)),
}


@pytest.mark.parametrize("name", DEPRECATED)
def test_old_names_warn(name: str) -> None:
    with pytest.warns(UserWarning, match=f"torch.{name}"):
        DEPRECATED[name](tinytorch)
    same_as_pytorch(DEPRECATED[name])


# Of a (n, n), b (n, 2) complex, r (n, n) real: results that do not depend on the phases of vectors.
OF_COMPLEX: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "svd": lambda torch, a, b, r: [
        part
        for x in (a, b, b.mT)
        for U, S, Vh in [torch.linalg.svd(x, full_matrices=False)]
        for part in (U @ Vh, (U * (S / 4).exp()[..., None, :]) @ U.mH, (Vh.mH * S[..., None, :]) @ Vh, S)
    ],
    "svd old": lambda torch, a, b, r: [U @ V.mH for U, _, V in [torch.svd(b)]],
    "eigh": lambda torch, a, b, r: [
        (vectors * (values / 8).exp()[..., None, :]) @ vectors.mH
        for triangle in "LU"
        for values, vectors in [torch.linalg.eigh(a @ a.mH, triangle)]
    ],
    "eig": lambda torch, a, b, r: [
        vectors @ torch.diag_embed((values / 2).exp()) @ torch.linalg.inv(vectors)
        for x in (a, r)
        for values, vectors in [torch.linalg.eig(x)]
    ],
    "eig, magnitudes": lambda torch, a, b, r: [
        (values * vectors.abs().sum(-2)).sum(-1) for x in (a, r) for values, vectors in [torch.linalg.eig(x)]
    ],
    "eigvals": lambda torch, a, b, r: [(torch.linalg.eigvals(x) ** 3).sum(-1) for x in (a, r)],
    "qr": lambda torch, a, b, r: [*torch.linalg.qr(a), *torch.linalg.qr(b), *torch.linalg.qr(b.mH)],
    "cholesky": lambda torch, a, b, r: [torch.linalg.cholesky(a @ a.mH, upper=upper) for upper in (False, True)],
    "cholesky_solve": lambda torch, a, b, r: [
        solved
        for upper in (False, True)
        for factor in [torch.linalg.cholesky(a @ a.mH, upper=upper)]
        for solved in (torch.cholesky_solve(b, factor, upper=upper), torch.cholesky_inverse(factor, upper=upper))
    ],
    "lu_solve": lambda torch, a, b, r: [
        torch.linalg.lu_solve(*torch.linalg.lu_factor(a), b if left else b.mH, left=left, adjoint=adjoint)
        for left in (True, False)
        for adjoint in (True, False)
    ],
    "determinants": lambda torch, a, b, r: [torch.det(a), torch.logdet(a), *torch.linalg.slogdet(a)],
    "pinv": lambda torch, a, b, r: [torch.linalg.pinv(b), torch.linalg.pinv(a + a.mH, hermitian=True)],
    "lstsq": lambda torch, a, b, r: [
        *torch.linalg.lstsq(b, a, driver="gels")[:2], torch.linalg.lstsq(b.mT, b.mT).solution,
    ],
    "reflections": lambda torch, a, b, r: [
        torch.linalg.householder_product(b, a[..., 0, :2]),
        *[
            torch.ormqr(b, a[..., 0, :2], a, left, transpose)
            for left in (True, False)
            for transpose in (True, False)
        ],
    ],
    "triangular": lambda torch, a, b, r: [
        torch.linalg.solve_triangular(a, b if left else b.mH, upper=upper, left=left)
        for left in (True, False)
        for upper in (True, False)
    ],
    "norms": lambda torch, a, b, r: [
        *[torch.linalg.matrix_norm(b, order) for order in ("fro", "nuc", 2, -2, 1, math.inf)],
        *[torch.linalg.vector_norm(b, order, -1) for order in (0, 0.5, 1, 1.5, 2, 3, math.inf, -math.inf)],
    ],
    "products": lambda torch, a, b, r: [
        torch.linalg.vecdot(a, r.to(a.dtype)), torch.linalg.cross(a[..., :3], a.mT[..., :3]), torch.linalg.vander(a),
        torch.linalg.matrix_power(a, 3), torch.linalg.matrix_power(a, -2), torch.matrix_exp(a), torch.linalg.inv(a),
        torch.linalg.solve(a, b), torch.linalg.solve(a, b.mH, left=False), torch.linalg.cond(a, 2),
    ],
}  # fmt: skip


def complex_operands(*batch: int) -> list[Any]:
    a = complex_normal(*batch, 4, 4, seed=1) + np.diag([3, 1, -1, -3])
    return [a, complex_normal(*batch, 4, 2), spread_out(*batch, 4, 4) @ np.diag([3.0, 2.0, 1.0, 0.5])]


@pytest.mark.parametrize("kind", ["complex64", "complex128"])
@pytest.mark.parametrize("batch", [(), (2,)])
@pytest.mark.parametrize("name", OF_COMPLEX)
def test_complex_results_and_gradients(name: str, batch: tuple[int, ...], kind: str) -> None:
    real = kind.replace("complex", "").replace("64", "float32").replace("128", "float64")

    def program(torch: Any) -> Any:
        inputs = [
            torch.tensor(x, dtype=getattr(torch, kind if x.dtype.kind == "c" else real)).requires_grad_()
            for x in complex_operands(*batch)
        ]
        results = OF_COMPLEX[name](torch, *inputs)
        total = sum(
            part.abs().square().sum().double()
            + (part * torch.linspace(-1, 1, max(part.shape[-1:] or (1,)))).sum().real.double()
            for part in results
        )
        total.backward()
        return [part.resolve_conj() for part in results], [x.grad for x in inputs]

    tolerance = 1e-8 if kind == "complex128" else 2e-2
    same_as_pytorch(program, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", OF_COMPLEX)
def test_complex_derivatives(name: str) -> None:
    def run(*inputs: Any) -> Any:
        return tuple(OF_COMPLEX[name](tinytorch, *inputs))

    inputs = [tensor(x) for x in complex_operands()]
    assert gradcheck(run, inputs, check_forward_ad=True, fast_mode=True, atol=1e-4, rtol=1e-3)
    assert gradgradcheck(run, inputs, fast_mode=True, atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("name", ["svd", "eigh", "eig", "real eig", "qr", "slogdet"])
@compared(rtol=1e-7, atol=1e-7)
def test_complex_tangents(torch: Any, name: str) -> Any:
    """The phases of vectors turn as in PyTorch's forward mode, where they depend on the phases of the vectors alone."""
    a, _, r = (torch.tensor(x) for x in complex_operands())
    function = getattr(torch.linalg, name.split()[-1])
    x = {"real eig": r, "eigh": a @ a.mH}.get(name, a)
    with warnings.catch_warnings(), torch.autograd.forward_ad.dual_level():
        warnings.simplefilter("ignore")  # (PyTorch's own use of torch.jit)
        direction = x.roll(1, 0)
        direction = direction + direction.mH if name == "eigh" else direction
        parts = function(torch.autograd.forward_ad.make_dual(x, direction))
        pairs = [torch.autograd.forward_ad.unpack_dual(part) for part in parts]
    if name == "slogdet":
        return pairs[0].tangent, pairs[1].tangent
    if name == "qr":
        return [pair.tangent for pair in pairs]
    if name == "svd":
        pairs[-1] = torch.autograd.forward_ad.unpack_dual(parts[-1].mH.resolve_conj())
    return [(pair.primal.mH @ pair.tangent).abs() for pair in pairs if pair.primal.ndim > 1]


OF_EIGENVALUES = programs("""
    torch.linalg.eig(torch.tensor([[0.0, 1.0], [-1.0, 0.0]])); torch.linalg.eig(torch.eye(2, dtype=torch.float64))
    torch.linalg.eig(torch.zeros(2, 0, 0)); torch.linalg.eigvals(torch.zeros(0, 3, 3, dtype=torch.complex128))
    torch.linalg.eigvals(torch.eye(2), out=torch.empty(0, dtype=torch.complex128))
    torch.linalg.eigvals(torch.eye(2), out=torch.empty(0))
    torch.linalg.eig(torch.eye(2), out=(torch.empty(0, dtype=torch.complex64), torch.empty(0, dtype=torch.complex64)))
    torch.linalg.eig(torch.full((2, 2), math.nan)); torch.linalg.eig(torch.full((2, 2), complex(0, math.inf)))
    torch.linalg.eig(torch.eye(2).long()); torch.linalg.eig(torch.ones(2, 3)); torch.linalg.eig(torch.ones(3))
    torch.linalg.eig(3)
    # Functions of the phases of vectors.
    torch.linalg.eig(torch.tensor([[1j, 2], [3, 4]], requires_grad=True))[1].sum().real.backward()
    torch.linalg.eigh(torch.tensor([[1, 2j], [-2j, 4]], requires_grad=True))[1].sum().real.backward()
    torch.linalg.svd(torch.tensor([[1j, 2], [3, 4]], requires_grad=True))[0].sum().real.backward()
    torch.linalg.svd(torch.tensor([[1j, 2], [3, 4]], requires_grad=True))[2].sum().real.backward()
    torch.linalg.qr(torch.eye(2, dtype=torch.cfloat, requires_grad=True), "r").R.abs().sum().backward()
    torch.linalg.matrix_norm(torch.eye(2, dtype=torch.cfloat), dtype=torch.float64)
    torch.linalg.vector_norm(torch.ones(2), dtype=torch.complex64)
    torch.linalg.vector_norm(torch.ones(2, dtype=torch.cfloat), dtype=torch.complex128)
    torch.linalg.pinv(torch.eye(2), rtol=torch.tensor(0.5j))
    torch.linalg.cholesky(torch.tensor([[1.0, 2j], [-2j, 1.0]]))
    torch.linalg.cholesky_ex(torch.tensor([[4.0, 4j], [-4j, 1.0]]))
    torch.linalg.inv(torch.zeros(2, 2, dtype=torch.cfloat))
    torch.linalg.lu_factor(torch.tensor([[1, 1.2 + 1.2j], [3j, 1 + 2.5j]])).pivots
    torch.linalg.lu_factor(torch.tensor([[3, 1], [2.2 + 2.2j, 1]])).pivots
    torch.cdist(torch.ones(2, 2) * 1j, torch.ones(2, 2) * 1j)
""", {"math": math})  # fmt: skip


test_eigenvalues_and_errors_of_complex_matrices = of_each(OF_EIGENVALUES, rtol=1e-5, atol=1e-5)


def test_eigenvalues_on_the_meta_device() -> None:
    values, vectors = tinytorch.linalg.eig(tinytorch.empty(5, 3, 3, device="meta"))
    assert (values.shape, vectors.shape) == ((5, 3), (5, 3, 3))
    assert values.dtype is vectors.dtype is tinytorch.complex64


def test_lobpcg_solves_the_generalised_problem() -> None:
    a, b = (tinytorch.tensor(positive(6, 6, seed=k)) for k in (0, 1))
    for largest in (True, False):
        values, vectors = tinytorch.lobpcg(a, 2, b, largest=largest)
        np.testing.assert_allclose((a @ vectors).numpy(), (b @ vectors * values).numpy(), atol=1e-9)
        assert bool(values[0] > values[1]) is largest
