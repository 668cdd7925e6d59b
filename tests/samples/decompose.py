"""Samples of `tinytorch.ops.linalg.factor` and `tinytorch.ops.linalg.matrices`.

Vectors that LAPACK gives up to their sign or phase are compared by their squared magnitudes. What reads one triangle
only has its gradients checked in `tests/ops/test_decompose.py`, on symmetric input: numerical differentiation would
change one triangle.
"""

from typing import Any

import numpy as np

from tests.samples import Sample, integers, normal, sample


def rounded(x: np.ndarray) -> np.ndarray:
    """Return multiples of 1/1024: their products have no rounding errors, so they are the same on every processor."""
    return np.round(x * 1024) / 1024


def spread_out(*shape: int, seed: int = 0) -> np.ndarray:
    """Return matrices with singular values between about 1 and 2, no two of them near."""
    m, n = shape[-2:]
    u, _, vh = np.linalg.svd(normal(*shape, seed=seed), full_matrices=False)
    return rounded((u * np.linspace(2, 1, min(m, n))) @ vh)


def positive(*shape: int, seed: int = 0) -> np.ndarray:
    """Return symmetric positive-definite matrices with well separated eigenvalues."""
    x = spread_out(*shape, seed=seed)
    return x @ x.swapaxes(-1, -2)


def squared(result: Any) -> Any:
    return [part * part.conj() for part in result]


def leading(count: int) -> Any:
    """Return the function that takes the first parts of a result."""
    return lambda result: [result[k] for k in range(count)]


one, stack, deep = spread_out(3, 3), spread_out(2, 3, 3), spread_out(2, 1, 3, 3)
tall, wide = spread_out(4, 3), spread_out(2, 3, 4)
spd, spds = positive(3, 3), positive(2, 3, 3)
nothing, no_stack = np.zeros((0, 0)), np.zeros((0, 3, 3))
symmetric = stack + stack.swapaxes(-1, -2)
upper, lower = np.triu(one) + 2 * np.eye(3), np.tril(stack) + 2 * np.eye(3)

SAMPLES: list[Sample] = []

for name in ("linalg.inv", "inverse", "Tensor.inverse", "linalg.det", "det", "Tensor.det", "linalg.slogdet",
             "slogdet", "Tensor.slogdet", "linalg.matrix_exp", "matrix_exp"):  # fmt: skip
    SAMPLES += [sample(name, each) for each in (one, stack, nothing, no_stack)]
SAMPLES += [
    sample("logdet", spd), sample("logdet", spds), sample("Tensor.logdet", spd),
    Sample("linalg.inv_ex", (stack,), select=leading(1)),
    Sample("linalg.matrix_exp", (normal(2, 3, 3) * [[[4.0]], [[0.1]]],), rtol=1e-8),
]  # fmt: skip

# Systems.
for left, right in (
    (one, normal(3)), (one, normal(3, 2)), (stack, normal(2, 3)), (stack, normal(3)), (stack, normal(2, 3, 4)),
    (stack, normal(3, 2)), (one, normal(2, 3, 2)), (deep, normal(2, 3, 2)), (nothing, np.zeros((0, 2))),
    (one, np.zeros((3, 0))), (no_stack, np.zeros((0, 3, 2))),
):  # fmt: skip
    SAMPLES.append(sample("linalg.solve", left, right))
SAMPLES += [
    sample("linalg.solve", one, normal(2, 3), left=False), sample("linalg.solve", stack, normal(4, 3), left=False),
    Sample("linalg.solve_ex", (one, normal(3, 2)), select=leading(1)),
    Sample("linalg.solve_ex", (stack, normal(2, 4, 3)), {"left": False}, select=leading(1)),
]  # fmt: skip
for flag in (False, True):
    SAMPLES += [
        sample("linalg.solve_triangular", upper, normal(3, 2), upper=True, unitriangular=flag),
        sample("linalg.solve_triangular", lower, normal(3, 2), upper=False, unitriangular=flag),
        sample("linalg.solve_triangular", upper, normal(2, 4, 3), upper=True, left=False, unitriangular=flag),
        sample("linalg.solve_triangular", lower, normal(4, 3), upper=False, left=False, unitriangular=flag),
        sample("linalg.solve_triangular", one + np.eye(3) * 3, normal(3, 2), upper=flag),
        sample("linalg.solve_triangular", nothing, np.zeros((0, 2)), upper=flag),
    ]

# Norms.
cube = normal(2, 3, 4)
for order in ("fro", "nuc", 2, -2, 1, -1, float("inf"), -float("inf")):
    SAMPLES += [
        sample("linalg.matrix_norm", cube, order),
        sample("linalg.matrix_norm", cube, order, (0, 2), True),
        sample("linalg.norm", tall, order),
        # (PyTorch cannot differentiate its own result for the others.)
        Sample("linalg.cond", (one, order), backward=order in (2, -2, "nuc")),
    ]
SAMPLES += [
    sample("linalg.norm", cube), sample("linalg.norm", normal(3), 3), sample("linalg.norm", tall, 1, 0, True),
    sample("linalg.norm", cube, "nuc", (0, 1)), sample("linalg.norm", cube, 2, (-1, 0), keepdim=True),
    sample("linalg.matrix_norm", nothing), sample("linalg.matrix_norm", nothing, 2),
    sample("linalg.matrix_norm", nothing, 1),
    sample("linalg.cond", tall), sample("linalg.cond", stack), sample("linalg.cond", nothing),
    sample("linalg.vector_norm", cube, 3, (0, 2)),
]  # fmt: skip

# Singular values and eigenvalues.
for each in (one, tall, wide, nothing, np.zeros((2, 0, 3))):
    SAMPLES += [sample("linalg.svdvals", each), Sample("linalg.svd", (each, False), select=squared)]
SAMPLES += [
    Sample("linalg.svd", (one,), select=squared),
    Sample("linalg.svd", (tall,), select=lambda parts: squared([parts[0][..., :3], *parts[1:]])),
    Sample("linalg.eigh", (spd,), select=squared, gradcheck=False, hermitian=True),
    Sample("linalg.eigh", (symmetric, "U"), select=squared, gradcheck=False, hermitian=True),
    Sample("linalg.eigh", (nothing,), select=squared),
    Sample("linalg.eigvalsh", (spds,), gradcheck=False, hermitian=True),
    Sample("linalg.eigvalsh", (symmetric,), {"UPLO": "U"}, gradcheck=False, hermitian=True),
    Sample("linalg.eig", (one,), select=squared),
    Sample("linalg.eig", (stack,), select=leading(1)),
    Sample("linalg.eig", (stack,), select=squared),
    Sample("linalg.eig", (nothing,), select=squared),
    sample("linalg.eigvals", one),
    sample("linalg.eigvals", stack),
    sample("linalg.eigvals", no_stack),
]

# Cholesky.
for triangle in (False, True):
    SAMPLES += [
        Sample("linalg.cholesky", (spds,), {"upper": triangle}, gradcheck=False, hermitian=True),
        Sample("linalg.cholesky_ex", (spd,), {"upper": triangle}, gradcheck=False, hermitian=True, select=leading(1)),
    ]
SAMPLES += [sample("linalg.cholesky", nothing), sample("linalg.cholesky", no_stack)]

# QR and LU.
SAMPLES += [Sample("linalg.qr", (each,), select=squared) for each in (one, tall, wide, np.zeros((0, 3)))]
SAMPLES += [
    Sample("linalg.qr", (one, "complete"), select=squared),
    Sample("linalg.qr", (wide, "complete"), select=squared),
    Sample("linalg.qr", (tall, "complete"), select=squared, backward=False, gradcheck=False),
    Sample("linalg.qr", (tall, "r"), select=squared, backward=False, gradcheck=False),
]
for each in (one, stack, tall, wide, nothing, no_stack):
    SAMPLES += [
        Sample("linalg.lu_factor", (each,), select=leading(1)),
        Sample("linalg.lu_factor_ex", (each,), select=leading(1)),
        sample("linalg.lu", each),
    ]
factors = rounded(np.linalg.qr(one)[1]) + np.tril(one, -1) / 4
pivots = np.array([2, 3, 3], np.int32)
for flag in (False, True):
    SAMPLES += [
        sample("linalg.lu_solve", factors, pivots, normal(3, 2), adjoint=flag),
        sample("linalg.lu_solve", factors, pivots, normal(2, 4, 3), left=False, adjoint=flag),
    ]
SAMPLES += [
    Sample("linalg.ldl_factor", (symmetric,), gradcheck=False, backward=False),
    Sample("linalg.ldl_factor", (symmetric,), {"hermitian": True}, gradcheck=False, backward=False, hermitian=True),
    Sample("linalg.ldl_solve", (np.eye(3) * 2, np.array([1, 2, 3], np.int32), normal(3, 2)),
           gradcheck=False, backward=False),
    Sample("linalg.ldl_solve", (symmetric, np.array([[-2, -2, 3], [2, -3, -3]], np.int32), normal(3, 2)),
           {"hermitian": True}, gradcheck=False, backward=False, hermitian=True),
]  # fmt: skip

# Pseudoinverses, least squares.
for each in (one, tall, wide):
    SAMPLES += [
        Sample("linalg.pinv", (each,), rtol=1e-8, atol=1e-10), Sample("pinverse", (each,), rtol=1e-8, atol=1e-10),
        sample("linalg.matrix_rank", each),
        Sample("linalg.lstsq", (each, normal(*each.shape[:-1], 2)), select=leading(1)),
    ]  # fmt: skip
low_rank = rounded(normal(4, 2)) @ rounded(normal(2, 3))
SAMPLES += [
    Sample("linalg.pinv", (low_rank,), {"rtol": 1e-6}, rtol=1e-7),
    sample("linalg.pinv", one, atol=0.1, rtol=0.1), sample("linalg.pinv", stack, atol=0.1),
    Sample("linalg.pinv", (spd,), {"hermitian": True}, gradcheck=False, hermitian=True),
    sample("linalg.pinv", np.zeros((0, 3))), sample("linalg.pinv", np.zeros((2, 3, 0))),
    sample("linalg.matrix_rank", low_rank, rtol=1e-6),
    Sample("linalg.matrix_rank", (spd,), {"hermitian": True}, hermitian=True),
    sample("linalg.matrix_rank", np.stack([np.eye(3), np.zeros((3, 3))])), sample("linalg.matrix_rank", stack, 1.2),
    Sample("linalg.lstsq", (tall, normal(4, 2)), {"driver": "gels"}, select=leading(2)),
    Sample("linalg.lstsq", (tall, normal(4, 2)), {"driver": "gelsd"}, select=leading(2)),
    Sample("linalg.lstsq", (spread_out(2, 4, 3), normal(2, 4)), select=leading(1)),
    Sample("linalg.lstsq", (spread_out(2, 4, 3), normal(2, 4, 2)), {"driver": "gelss"}, select=leading(4)),
]  # fmt: skip

# Powers and products.
SAMPLES += [sample("linalg.matrix_power", stack, n) for n in (0, 1, 2, 3, 5, -1, -3)]
SAMPLES += [
    sample("matrix_power", integers(3, 3), 3), sample("Tensor.matrix_power", one, 2),
    sample("linalg.householder_product", tall / 4, normal(3)),
    sample("linalg.householder_product", spread_out(2, 4, 3) / 4, normal(2, 2)),
    sample("linalg.vecdot", normal(2, 3), normal(3)),
    sample("linalg.vecdot", normal(2, 3), normal(2, 3, seed=1), dim=0),
    sample("linalg.cross", normal(2, 3), normal(2, 3, seed=1)),
    sample("linalg.cross", normal(3, 2), normal(3, 2), dim=0),
    sample("linalg.cross", normal(2, 3), normal(1, 3)), sample("linalg.cross", integers(2, 3), integers(2, 3, seed=1)),
    sample("linalg.diagonal", cube), sample("linalg.diagonal", cube, offset=1, dim1=0, dim2=1),
    sample("linalg.vander", normal(3)), sample("linalg.vander", normal(2, 3), N=5),
    sample("linalg.vander", integers(3), N=2),
    sample("linalg.tensorinv", spread_out(6, 6).reshape(2, 3, 6), 2),
    sample("linalg.tensorinv", spread_out(6, 6).reshape(6, 3, 2), ind=1),
    sample("linalg.tensorsolve", spread_out(6, 6).reshape(2, 3, 3, 2), normal(2, 3)),
    sample("linalg.tensorsolve", spread_out(6, 6).reshape(2, 3, 3, 2), normal(3, 2), dims=(0, 2)),
    sample("linalg.multi_dot", [normal(2, 3), normal(3, 4), normal(4, 2)]),
]  # fmt: skip

# Top-level names that PyTorch has not deprecated (these warn: see tests/ops/test_decompose.py).
chol = rounded(np.linalg.cholesky(spds))
SAMPLES += [
    Sample("svd", (tall,), select=squared), Sample("Tensor.svd", (wide,), select=squared),
    Sample("svd", (tall, False), select=lambda parts: squared([parts[0][..., :3], *parts[1:]])),
    sample("svd", tall, compute_uv=False),
    # (In PyTorch the triangle that is not read has a gradient, too.)
    Sample("cholesky_solve", (normal(2, 3, 2), chol), backward=False, hermitian=True),
    Sample("cholesky_solve", (normal(3, 2), chol[0].T.copy(), True), backward=False, hermitian=True),
    Sample("cholesky_inverse", (chol[0],), backward=False, hermitian=True),
    Sample("cholesky_inverse", (chol.swapaxes(1, 2).copy(),), {"upper": True}, backward=False, hermitian=True),
    sample("lu_unpack", factors, pivots), sample("lu_unpack", factors, pivots, unpack_pivots=False),
    Sample("lu_unpack", (factors, pivots), {"unpack_data": False}, backward=False),
    Sample("geqrf", (tall,), backward=False, gradcheck=False),
    Sample("geqrf", (wide,), backward=False, gradcheck=False),
    sample("orgqr", tall / 4, normal(3)), sample("ormqr", tall / 4, normal(3), normal(4, 2)),
    sample("ormqr", tall / 4, normal(3), normal(2, 4), False),
    sample("Tensor.ormqr", tall / 4, normal(3), normal(4, 2)),
    sample("ormqr", spread_out(2, 4, 3) / 4, normal(2, 3), normal(2, 4, 2), True, True),
    sample("kron", normal(2, 3), normal(3, 1, seed=1)),
    sample("kron", np.array(2.0), normal(2, 2)), sample("Tensor.kron", integers(2, 3), normal(2, 2)),
    sample("cross", normal(3, 2), normal(3, 2, seed=1), 0),
    sample("Tensor.cross", normal(2, 3), normal(2, 3, seed=1), dim=1),
    sample("norm", tall, "nuc"), sample("norm", cube, "nuc", (0, 2), True), sample("norm", cube, "fro", (0, 2)),
    sample("Tensor.norm", tall, "nuc"), sample("norm", tall, p=3, dim=1),
    sample("dist", normal(2, 3), normal(3)), sample("Tensor.dist", normal(2, 3), normal(2, 3, seed=1), 3),
    sample("dist", normal(2, 3), normal(3), float("inf")),
    Sample("renorm", (cube, 2, 0, 1.5), in_place=True), Sample("renorm", (cube, 1, -1, 2.0), in_place=True),
    Sample("renorm", (cube, 3.0, 1, 100.0), in_place=True),
]  # fmt: skip

# Distances.
for p in (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, float("inf")):
    SAMPLES += [
        sample("cdist", normal(3, 2), normal(4, 2, seed=1), p),
        sample("cdist", normal(2, 3, 4), normal(2, 2, 4, seed=1), p=p),
        sample("pdist", normal(4, 3), p), sample("pdist", normal(3, 2), p=p),
    ]  # fmt: skip
SAMPLES += [
    Sample("cdist", (normal(30, 2), normal(4, 2, seed=1)), rtol=1e-7, atol=1e-8),
    Sample("cdist", (normal(2, 3, 2), normal(4, 2, seed=1)),
           {"compute_mode": "use_mm_for_euclid_dist"}, rtol=1e-7, atol=1e-8),
    sample("cdist", normal(3, 2), normal(4, 2, seed=1), 2.0, "donot_use_mm_for_euclid_dist"),
    Sample("cdist", (normal(3, 2), normal(3, 2)), gradcheck=False),  # zeros on the diagonal
    sample("cdist", np.zeros((0, 3)), normal(2, 3)), sample("cdist", np.zeros((2, 0)), np.zeros((3, 0))),
    sample("pdist", normal(1, 3)), Sample("pdist", (np.zeros((0, 3)),), backward=False),
]  # fmt: skip

# Integrals.
points = np.sort(normal(3))
for rule in ("trapezoid", "trapz", "cumulative_trapezoid"):
    SAMPLES += [
        sample(rule, normal(2, 3)), sample(rule, normal(2, 3), dx=0.5), sample(rule, normal(2, 3), points),
        sample(rule, normal(2, 3), dim=0), sample(rule, normal(2, 3), normal(2, 3, seed=1), dim=0),
        sample(rule, normal(2, 3, 4), points, dim=1), sample(rule, integers(2, 3)), sample(rule, normal(1)),
    ]  # fmt: skip
SAMPLES.append(sample("trapezoid", normal(2, 3, 4), normal(3, 4)))

# Covariances.
SAMPLES += [
    sample("cov", normal(3, 5)), sample("cov", normal(5)), sample("Tensor.cov", normal(3, 5), correction=0),
    sample("cov", normal(2, 3), fweights=np.array([1, 2, 3])), sample("cov", integers(3, 5)),
    Sample("cov", (normal(2, 3),), {"aweights": np.array([0.5, 1.0, 2.0])}),
    Sample("cov", (normal(2, 3),), {"fweights": np.array([1, 2, 3]), "aweights": np.array([0.5, 1.0, 2.0])}),
    sample("corrcoef", normal(3, 5)), sample("Tensor.corrcoef", normal(2, 4)),
    sample("corrcoef", normal(5)),
    # (PyTorch cannot differentiate its own result.)
    Sample("vander", (normal(3),), backward=False), Sample("vander", (normal(3), 2), backward=False),
    Sample("vander", (normal(3),), {"N": 5, "increasing": True}, backward=False),
    sample("vander", integers(3)), sample("vander", normal(3), 1), sample("vander", normal(3), 0),
]  # fmt: skip
