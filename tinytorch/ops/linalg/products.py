"""Products of matrices and vectors, and functions composed of them.

Each product belongs to a family that is closed under differentiation. With `N` for an operand as it is and `T` for a
transposed operand, the gradients of `x y` (NN) are `g yT` (NT) and `xT g` (TN), and those of NT, TN and TT are again in
the family. So no formula transposes a Tensor, derivatives of every order cost one product each, and every gradient is
contiguous: that of a weight can become its `.grad` without a copy.

Operands of wrong sizes, numbers of dimensions or dtypes raise RuntimeError, as in PyTorch.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinytorch.core.complex import HOLOMORPHIC, OWN
from tinytorch.core.mode import alike, short
from tinytorch.core.op import Op, op, pointwise
from tinytorch.core.tensor import Tensor, received
from tinytorch.core.warning import warn
from tinytorch.kernels import dtypes, products
from tinytorch.kernels.checks import counted, tensor_name
from tinytorch.kernels.products import check_bmm, check_dot, check_mm, check_mv
from tinytorch.ops import autocast
from tinytorch.ops.arguments import check_elements, op_of, renamed, unless_empty
from tinytorch.ops.arithmetic import _older_call, mul
from tinytorch.ops.complex import conjugate
from tinytorch.ops.register import public
from tinytorch.ops.shape import _unsafe_view

# The families -------------------------------------------------------------------------------------


def _products(place: int, dim: int = -1) -> Any:
    """Return the number of multiply-adds of a product that sums over a dimension of the argument at a place."""
    return lambda out, *args: math.prod(out) * (args[place][dim] if args[place] else 1)


_product = functools.partial(pointwise, linear=True, complex=HOLOMORPHIC, multiply_adds=_products(0))
_turned = functools.partial(_product, multiply_adds=_products(0, -2))  # (the first factor is transposed)
mm_nt: Any = _product("mm", products.mm_nt, batch="ik,jk->ij", x=lambda g, y: mm_nn(g, y), y=lambda g, x: mm_tn(g, x))
mm_tn: Any = _turned("mm", products.mm_tn, batch="ki,kj->ij", x=lambda g, y: mm_nt(y, g), y=lambda g, x: mm_nn(x, g))
# The same products with a column-major result, so that the gradient of a column-major operand (`weight.t()`) has the
# memory layout of the operand.
_mm_nt_columns: Any = _product(
    "mm", products.mm_nt_columns, batch="ik,jk->ij", x=lambda g, y: mm_nn(g, y), y=lambda g, x: mm_tn(g, x)
)
_mm_tn_columns: Any = _turned(
    "mm", products.mm_tn_columns, batch="ki,kj->ij", x=lambda g, y: mm_nt(y, g), y=lambda g, x: mm_nn(x, g)
)
# By whether the first and the second operand are row-major.
_MM: dict[tuple[bool, bool], Any] = {
    (x_rows, y_rows): _product(
        "mm",
        products.mm,
        batch="ik,kj->ij",
        x=(lambda g, y: mm_nt(g, y)) if x_rows else (lambda g, y: _mm_nt_columns(g, y)),
        y=(lambda g, x: mm_tn(x, g)) if y_rows else (lambda g, x: _mm_tn_columns(x, g)),
    )
    for x_rows in (True, False)
    for y_rows in (True, False)
}
mm_nn: Any = _MM[True, True]

_of_batches = functools.partial(
    _product, "bmm", products.bmm, batch="bik,bkj->bij", x=lambda g, y: _bmm_nt(g, y), y=lambda g, x: _bmm_tn(x, g)
)
_bmm: Any = _of_batches()
# The batched product of `matmul`, whose last step in PyTorch is a view that restores the leading dimensions.
_stacks: Any = renamed(_of_batches(), "UnsafeViewBackward0")
_bmm_nt: Any = _product(
    "bmm", products.bmm_nt, batch="bik,bjk->bij", x=lambda g, y: _bmm(g, y), y=lambda g, x: _bmm_tn(g, x)
)
_bmm_tn: Any = _turned(
    "bmm", products.bmm_tn, batch="bki,bkj->bij", x=lambda g, y: _bmm_nt(y, g), y=lambda g, x: _bmm(x, g)
)

# The products of groups (`nn.functional.grouped_mm`): each gradient is one again.
grouped_mm: Any = op_of(
    products.grouped_mm,
    a=lambda g, b, offs: grouped_mm(g, b.mT, offs),
    b=lambda g, a, offs: grouped_mm(a.mT, g, offs),
    offs=None,
)

_mv: Any = _product("mv", products.mv, batch="ik,k->i", x=lambda g, y: _outer(g, y), y=lambda g, x: _mv_t(x, g))
_mv_t: Any = _turned("mv", products.mv_t, batch="ki,k->i", x=lambda g, y: _outer(y, g), y=lambda g, x: _mv(x, g))
# The product of a vector and a matrix by `matmul`, whose last step in PyTorch removes the vector's added dimension.
_vm: Any = renamed(
    _product("squeeze", products.vm, batch="k,kj->j", x=lambda g, y: _mv(y, g), y=lambda g, x: _outer(x, g)),
    "SqueezeBackward4",
)
_outer: Any = _product(
    "outer",
    np.multiply.outer,
    batch=lambda x, y: x.reshape(*x.shape, *[1] * y.ndim) * y,
    x=lambda g, y: _mv(g, y),
    y=lambda g, x: _mv_t(g, x),
    multiply_adds=None,
)
_of_vectors = functools.partial(
    _product, "dot", products.dot, batch="k,k->", refuses="dot", x=lambda g, y: g * y, y=lambda g, x: g * x
)
_dot_product: Any = _of_vectors()

#: The ops of two matrices, of a matrix and a vector, of two vectors, and of two stacks of matrices: see methods.c.
_MATRICES, _NO_MATRICES = tuple(_MM.values()), (None,) * len(_MM)
_ALL_PRODUCTS = (*_MATRICES, _mv, _dot_product, _stacks)


# Products -----------------------------------------------------------------------------------------


@public(also="linalg.matmul", method=True, out="exact")
@short("matmul", *_ALL_PRODUCTS)
def matmul(input: Tensor, other: Tensor) -> Tensor:
    """Return the matrix product, `input @ other`.

    For two vectors it is the scalar product; for a matrix and a vector, `(n, m) @ (m,) -> (n,)`; for two matrices,
    `(n, m) @ (m, p) -> (n, p)`. Operands with more dimensions are batches of matrices, whose leading dimensions
    broadcast: the result is `(..., n, p)`, without `n` or `p` if that operand is a vector.

    Example:
        >>> torch.matmul(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([1.0, 10.0]))
        tensor([21., 43.])
    """
    if autocast.on:
        input, other = autocast.lowered(input, other)
    if type(input) is not Tensor or type(other) is not Tensor:
        made = received("matmul", matmul, (input, other), {})
        if made is not NotImplemented:
            return made
    a, b = input._array, other._array
    m, n = a.ndim, b.ndim
    if m == 2 == n:  # the most common case, inlined
        if a.dtype is not b.dtype or a.shape[1] != b.shape[0]:
            check_mm(a, b)
        x_rows = a.flags.c_contiguous or not a.flags.f_contiguous
        y_rows = b.flags.c_contiguous or not b.flags.f_contiguous
        return _MM[x_rows, y_rows](input, other)
    if not m or not n:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {m}D and {n}D")
    if n == 1 and m <= 2:
        if a.dtype is not b.dtype or a.shape[-1] != len(b):
            (check_dot if m == 1 else check_mv)(a, b)
        return (_dot_product if m == 1 else _mv)(input, other)
    if n == 1:
        return _unsafe_view(mv(_flattened(input), other), a.shape[:-1])
    if m == 1:
        if n == 2:
            check_mm(a.reshape(1, len(a)), b)
            return _vm(input, other)
        return _unsafe_view(matmul(input.unsqueeze(0), other).contiguous(), (*b.shape[:-2], b.shape[-1]))
    if n == 2:  # one large product instead of many small ones
        return _unsafe_view(matmul(_flattened(input), other), (*a.shape[:-1], b.shape[1]))
    check_bmm(a, b, same_batch=False)
    return _stacks(input, other)


def _flattened(x: Tensor) -> Tensor:
    shape = x._array.shape
    return x.reshape((math.prod(shape[:-1]), shape[-1]))


@public(method=True, out="exact")
@public("dsmm", also="spmm")
@short("matmul", *_MATRICES, None, None, None)
def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """Return the product of two matrices, `(n, m)` and `(m, p)`.

    Example:
        >>> torch.mm(torch.ones(2, 3), torch.ones(3, 1))
        tensor([[3.],
                [3.]])
    """
    if autocast.on:
        input, mat2 = autocast.lowered(input, mat2)
    made = received("mm", mm, (input, mat2), {})
    if made is not NotImplemented:
        return made
    a, b = input._array, mat2._array
    if a.ndim != 2:
        raise RuntimeError("self must be a matrix")
    if b.ndim != 2:
        raise RuntimeError("mat2 must be a matrix")
    return matmul(input, mat2)


@public(method=True, out="exact")
@short("matmul", *_NO_MATRICES, None, None, _bmm)
def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """Return the products of two batches of matrices, `(b, n, m)` and `(b, m, p)`.

    Example:
        >>> torch.bmm(torch.ones(5, 2, 3), torch.ones(5, 3, 4)).shape
        torch.Size([5, 2, 4])
    """
    if autocast.on:
        input, mat2 = autocast.lowered(input, mat2)
    a, b = input._array, mat2._array
    check_bmm(a, b, same_batch=True)
    return _bmm(input, mat2)


@public(method=True, out="exact")
@short("matmul", *_NO_MATRICES, _mv, None, None)
def mv(input: Tensor, vec: Tensor) -> Tensor:
    """Return the product of a matrix `(n, m)` and a vector `(m,)`.

    Example:
        >>> torch.mv(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([1.0, 1.0]))
        tensor([3., 7.])
    """
    check_mv(input._array, vec._array)
    return _mv(input, vec)


@public(method=True, out="dot")
@short("matmul", *_NO_MATRICES, None, _dot_product, None)
def dot(input: Tensor, tensor: Tensor) -> Tensor:
    """Return the scalar product of two vectors.

    Example:
        >>> torch.dot(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
        tensor(11.)
    """
    check_dot(input._array, tensor._array)
    return _dot_product(input, tensor)


_vdot_product: Any = renamed(_of_vectors(), "VdotBackward0")
_conj_dot: Any = renamed(
    op_of(
        products.vdot,
        batch=lambda x, y: (x.conj() * y).sum(),
        complex=OWN,
        x=lambda g, y: conjugate(g) * y,
        y=lambda g, x: g * x,
    ),
    "VdotBackward0",
)


@public(method=True, out="dot")
def vdot(input: Tensor, other: Tensor) -> Tensor:
    """Return the scalar product of two vectors, the first one conjugated; for real numbers it is `dot`.

    Example:
        >>> torch.vdot(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
        tensor(11.)
    """
    check_dot(input._array, other._array)
    return (_conj_dot if input._array.dtype.kind == "c" else _vdot_product)(input, other)


@public(method=True, out="tensordot")
def inner(input: Tensor, other: Tensor) -> Tensor:
    """Return the scalar products along the last dimension: `(*A, m)`, `(*B, m)` give `(*A, *B)`.

    Example:
        >>> torch.inner(torch.ones(2, 3), torch.ones(3))
        tensor([3., 3.])
    """
    a, b = input._array, other._array
    if not a.ndim or not b.ndim:
        return mul(input, other)
    if a.shape[-1] != b.shape[-1]:
        raise RuntimeError(
            "inner() the last dimension must match on both input tensors but got shapes "
            f"{list(a.shape)} and {list(b.shape)}"
        )
    return tensordot(input, other, dims=([-1], [-1]))


@public(also="ger", method=True, out="promoted")
def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """Return the outer product of two vectors, `(n,)` and `(m,)`, as a matrix `(n, m)`.

    Example:
        >>> torch.outer(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
        tensor([[3., 4.],
                [6., 8.]])
    """
    for x, name in ((input, "self"), (vec2, "vec2")):
        if x._array.ndim != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {name}, but got {x._array.ndim}-D")
    return mul(input.unsqueeze(1), vec2)


# Products with an addend: addmm and its relatives -------------------------------------------------


def _times(t: Any, factor: Any) -> Any:
    return t if factor == 1 else t * factor


def _weighted(x: Any, product: Any, beta: Any, alpha: Any) -> Any:
    """Return `beta * x + alpha * product` in Tensor code; each factor may differ between the examples of a batch."""
    product = product if type(alpha) is int and alpha == 1 else product * alpha
    if not isinstance(beta, Tensor) and beta == 0:
        return product
    return (x if type(beta) is int and beta == 1 else x * beta) + product


@public(method=True, in_place=True, out="exact", autocast="op")
@op(
    products.addmm,
    batch=lambda x, a, b, beta, alpha: _weighted(x, a @ b, beta, alpha),
    complex=HOLOMORPHIC,
    refuses=unless_empty("addmm_impl_cpu_"),
    multiply_adds=_products(1),
    x=lambda g, beta: _times(g, beta),
    mat1=lambda g, mat2, alpha: _times(mm_nt(g, mat2), alpha),
    mat2=lambda g, mat1, alpha: _times(mm_tn(mat1, g), alpha),
    broadcasts=True,
)
def addmm(x: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """Return `beta * x + alpha * (mat1 @ mat2)` for matrices `(n, m)` and `(m, p)`; with `beta` 0, `x` is ignored.

    Example:
        >>> torch.addmm(torch.tensor([1.0, 2.0]), torch.ones(1, 3), torch.ones(3, 2))
        tensor([[4., 5.]])
    """


@public(method=True, in_place="function", out="exact")
@op(
    products.addmv,
    batch=lambda x, a, b, beta, alpha: _weighted(x, a @ b, beta, alpha),
    complex=HOLOMORPHIC,
    refuses=unless_empty("addmv_impl_cpu"),
    multiply_adds=_products(1),
    x=lambda g, beta: _times(g, beta),
    mat=lambda g, vec, alpha: _times(_outer(g, vec), alpha),
    vec=lambda g, mat, alpha: _times(_mv_t(mat, g), alpha),
    broadcasts=True,
)
def addmv(x: Any, mat: Any, vec: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """Return `beta * x + alpha * (mat @ vec)`, `(n, m)` and `(m,)`; with `beta` 0, `x` is ignored.

    Example:
        >>> torch.addmv(torch.ones(2), torch.ones(2, 3), torch.ones(3), alpha=2)
        tensor([7., 7.])
    """


@public(method=True, in_place=True, out="exact", autocast="op")
@op(
    products.baddbmm,
    batch=lambda x, a, b, beta, alpha: _weighted(x, a @ b, beta, alpha),
    complex=HOLOMORPHIC,
    refuses=unless_empty("baddbmm"),
    multiply_adds=_products(1),
    x=lambda g, beta: _times(g, beta),
    batch1=lambda g, batch2, alpha: _times(_bmm_nt(g, batch2), alpha),
    batch2=lambda g, batch1, alpha: _times(_bmm_tn(batch1, g), alpha),
    broadcasts=True,
)
def baddbmm(x: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """Return `beta * x + alpha * (batch1 @ batch2)`, `(b, n, m)` and `(b, m, p)`; with `beta` 0, `x` is ignored.

    Example:
        >>> torch.baddbmm(torch.ones(1), torch.ones(2, 1, 3), torch.ones(2, 3, 1)).flatten()
        tensor([4., 4.])
    """


@public(method=True, in_place=True, out="addbmm", autocast="op")
@op(
    products.addbmm,
    batch=lambda x, a, b, beta, alpha: _weighted(x, (a @ b).sum(0), beta, alpha),
    complex=HOLOMORPHIC,
    multiply_adds=lambda out, x, batch1, *rest: math.prod(out) * batch1[0] * batch1[2],
    refuses=unless_empty("addmm_impl_cpu_"),
    x=lambda g, beta: _times(g, beta),
    batch1=lambda g, batch2, alpha: _times(_bmm_nt(g, batch2), alpha),
    batch2=lambda g, batch1, alpha: _times(_bmm_tn(batch1, g), alpha),
    broadcasts=True,
)
def addbmm(x: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """Return `beta * x + alpha * sum(batch1 @ batch2)`, `(b, n, m)` and `(b, m, p)`; with `beta` 0, `x` is ignored.

    Example:
        >>> torch.addbmm(torch.ones(1), torch.ones(2, 1, 3), torch.ones(2, 3, 1))
        tensor([[7.]])
    """


@public(method=True, in_place=True, out="promoted")
@op(
    products.addr,
    batch=lambda x, a, b, beta, alpha: _weighted(x, a.unsqueeze(1) * b, beta, alpha),
    complex=HOLOMORPHIC,
    refuses="addr_cpu",
    x=lambda g, beta: _times(g, beta),
    vec1=lambda g, vec2, alpha: _times(_mv(g, vec2), alpha),
    vec2=lambda g, vec1, alpha: _times(_mv_t(g, vec1), alpha),
    broadcasts=True,
)
def addr(x: Any, vec1: Any, vec2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """Return `beta * x + alpha * outer(vec1, vec2)`, `(n,)` and `(m,)`; with `beta` 0, `x` is ignored.

    Example:
        >>> torch.addr(torch.zeros(2, 2), torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
        tensor([[3., 4.],
                [6., 8.]])
    """


def _also_as_before(made: Op) -> None:
    """Let an op like `addmm` be called as in early versions of PyTorch.

    The factors stood before what they are factors of: `addmm(beta, x, alpha, mat1, mat2)`, and without `alpha`; with
    the method's tensor in front, `(x, beta, alpha, mat1, mat2)`.
    """
    usual = made.bind

    def bind(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        tensors = tuple([each for each in args if isinstance(each, Tensor)])
        if len(args) > 3 == len(tensors) and not kwargs and isinstance(args[-2], Tensor):
            numbers = dict(
                zip(("beta", "alpha"), [each for each in args if not isinstance(each, Tensor)], strict=False)
            )
            shown = ", ".join([f"Number {each}" for each in numbers])
            both = ", ".join([f"Tensor {each}" for each in made.arguments[1:3]])
            _older_call(made.name, f"{shown}, {both}", f"{both}, *, Number beta = 1, Number alpha = 1")
            return usual(tensors, numbers)
        return usual(args, kwargs)

    made.bind = bind  # type: ignore[method-assign]


for _op in (addmm, addmv, baddbmm, addbmm, addr):
    _also_as_before(_op.op)

# Contractions -------------------------------------------------------------------------------------


@public(python=True, out="tensordot")
def tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> Tensor:
    """Return the contraction of `a` and `b` over pairs of dimensions.

    The result has the remaining dimensions of `a`, then those of `b`.

    Args:
        dims: the number of last dimensions of `a` that are paired with the first dimensions of `b`; or two lists of
            dimensions of equal length.

    Example:
        >>> torch.tensordot(torch.ones(2, 3, 4), torch.ones(3, 4, 5)).shape
        torch.Size([2, 5])
    """
    x, y = a._array, b._array
    if isinstance(dims, Tensor):
        dims = dims.tolist() if dims.numel() > 1 else int(dims)
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(x.ndim, y.ndim):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        dims = (range(x.ndim - dims, x.ndim), range(dims))
    pair = [list(side) for side in dims]
    if len(pair[0]) != len(pair[1]):
        raise RuntimeError("both dimension lists should have same length")
    if x.dtype != y.dtype:
        raise RuntimeError("both inputs should have same dtype")
    dims_a, dims_b = ([counted(dim, t.ndim) for dim in side] for side, t in zip(pair, (x, y), strict=True))
    for i, j in zip(dims_a, dims_b, strict=True):
        m, n = x.shape[i], y.shape[j]
        if m == n:
            continue
        if n == 1:
            a = a.sum(i, keepdim=True, dtype=a.dtype)
        elif m == 1:
            b = b.sum(j, keepdim=True, dtype=b.dtype)
        else:
            raise RuntimeError(
                "contracted dimensions need to match, but first "
                f"has size {m} in dim {i} and second has size {n} in dim {j}"
            )
    x, y = a._array, b._array
    free_a = [i for i in range(x.ndim) if i not in dims_a]
    free_b = [j for j in range(y.ndim) if j not in dims_b]
    inner_size = math.prod([x.shape[i] for i in dims_a])
    rows, columns = [x.shape[i] for i in free_a], [y.shape[j] for j in free_b]
    p, q = a.permute(free_a + dims_a), b.permute(dims_b + free_b)
    if math.prod(rows) * math.prod(columns) != 1:
        shape = math.prod(rows), inner_size, math.prod(columns)
        product = mm(p.reshape(shape[:2]), q.reshape(shape[1:]))
    elif p.is_contiguous() and q.is_contiguous():
        product = dot(p.reshape(-1), q.reshape(-1))
    else:  # one number from strided memory: PyTorch supports dtypes here for which it has no `dot`
        product = (p.reshape(-1) * q.reshape(-1)).sum(dtype=a.dtype)
    return product.reshape(rows + columns)


@public(python=True)
def einsum(*args: Any) -> Tensor:
    """Return the sum of products that an equation in Einstein notation describes.

    The equation has a term per operand, with a letter per dimension; `...` stands for further dimensions, which
    broadcast. Letters that are missing in the output are summed over; a letter that occurs twice in a term takes the
    diagonal. Without `->`, the output has the letters that occur once, in alphabetical order.

    Args:
        *args: the equation, then the operands (or one sequence of them); or the sublist format: each operand followed
            by its list of numbers, and optionally the list of the output at the end.

    Example:
        >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> torch.einsum("ii", x), torch.einsum("ij,kj->ik", x, x)
        (tensor(5.), tensor([[ 5., 11.],
                [11., 25.]]))
    """
    terms, output, operands = parsed_equation(*args)
    check_elements(operands, 1)
    shapes = tuple([tuple(each.shape) for each in operands])
    steps, result = _steps_of(terms, output, shapes, autocast.on and autocast.active())
    values: dict[int, Any] = dict(enumerate(operands))
    for number, run, used in steps:
        values[number] = run(*[values.pop(k) for k in used])
    return values[result]


class _Sketch:
    """What stands for a tensor while the steps of `einsum` are found: its number, its shape, and the steps so far."""

    def __init__(self, number: int, shape: Sequence[int], steps: list[Any]) -> None:
        self.number, self.shape, self.steps = number, shape, steps

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def then(self, run: Any, shape: Sequence[int], *others: _Sketch) -> _Sketch:
        """Return the result of a step, `run` of this tensor and others, which are not used again."""
        made = _Sketch(-1 - len(self.steps), shape, self.steps)
        self.steps.append((made.number, run, (self.number, *[each.number for each in others])))
        return made

    def permute(self, order: list[int]) -> _Sketch:
        return self.then(lambda x: x.permute(order), [self.shape[k] for k in order])

    def reshape(self, shape: Sequence[int]) -> _Sketch:
        return self.then(lambda x: x.reshape(shape), shape)

    def without(self, dims: Sequence[int], run: Any) -> _Sketch:
        """Return the result of a step that removes dimensions."""
        return self.then(run, [n for k, n in enumerate(self.shape) if k not in dims])

    def times(self, other: _Sketch, run: Any = operator.mul) -> _Sketch:
        """Return the elementwise product."""
        return self.then(run, [m if n == 1 else n for m, n in zip(self.shape, other.shape, strict=True)], other)


@functools.lru_cache(256)
def _steps_of(terms: Any, output: Any, shapes: tuple[tuple[int, ...], ...], casting: bool) -> tuple[list[Any], int]:
    """Return the steps that compute `einsum`, and the number of its result; operands are numbered from 0.

    A step is the number of its result, a function, and the numbers of the function's arguments.
    """
    steps: list[Any] = []
    terms, target, operands = equation_of(terms, output, [_Sketch(k, shape, steps) for k, shape in enumerate(shapes)])
    operands = [_diagonals(term, operand, k) for k, (term, operand) in enumerate(zip(terms, operands, strict=True))]
    terms = [list(dict.fromkeys(term)) for term in terms]
    _check_lengths(terms, operands)
    term, result = _summed(terms[0], operands[0], {*target, *(letter for later in terms[1:] for letter in later)})
    for k in range(1, len(operands)):
        needed = {*target, *(letter for later in terms[k + 1 :] for letter in later)}
        term, result = _contracted(term, result, terms[k], operands[k], needed, target, casting)
    if term != target:
        result = result.permute([term.index(letter) for letter in target])
    return steps, result.number


def equation_of(terms: Any, output: Any, operands: list[Any]) -> tuple[list[Any], list[Any], list[Any]]:
    """Return the letters of the dimensions of each operand of `einsum`, those of the output, and the operands.

    The dimensions of ellipses are letters too, numbered from the last: ("...", 0).
    """
    terms, output = [list(term) for term in terms], None if output is None else list(output)
    rest = 0  # the largest number of dimensions that an ellipsis stands for
    for k, (term, operand) in enumerate(zip(terms, operands, strict=True)):
        named = len(term) - (... in term)
        if ... in term:
            if named > operand.ndim:
                raise RuntimeError(_subscripts_error(named, operand, k, "but"))
            rest = max(rest, operand.ndim - named)
        elif named != operand.ndim:
            raise RuntimeError(_subscripts_error(named, operand, k, "and no ellipsis was given"))
    if output is None:
        letters = [letter for term in terms for letter in term if letter is not ...]
        output = [letter for letter in sorted(set(letters)) if letters.count(letter) == 1]
        output = [..., *output] if any(... in term for term in terms) else output
    terms_and_operands = list(zip(terms, operands, strict=True))
    terms = [_expanded(term, operand.ndim - len(term) + 1) for term, operand in terms_and_operands]
    _check_output(output, terms)
    return terms, _expanded(output, rest), operands


def _subscripts_error(named: int, operand: Any, k: int, end: str) -> str:
    relation = "is more than" if end == "but" else "does not match"
    return (
        f"einsum(): the number of subscripts in the equation ({named}) {relation} the number of dimensions "
        f"({operand.ndim}) for operand {k}{'' if end == 'but' else ' ' + end}"
    )


def parsed_equation(*args: Any) -> tuple[Any, Any, list[Tensor]]:
    """Return the terms, the term of the output (None if it is missing), and the operands."""
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one operand and its "
            "subscripts list"
        )
    if not isinstance(args[0], str):
        terms = tuple([_sublist(numbers) for numbers in args[1::2]])
        output = _sublist(args[-1]) if len(args) % 2 else None
        return terms, output, list(args[: len(args) // 2 * 2 : 2])
    equation, operands = args[0], list(args[1:])
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = list(operands[0])
    terms, output = _parsed(equation)
    if len(operands) != len(terms):
        relation = "fewer" if len(operands) < len(terms) else "more"
        raise RuntimeError(f"einsum(): {relation} operands were provided than specified in the equation")
    return terms, output, operands


@functools.lru_cache(256)
def _parsed(equation: str) -> tuple[tuple[Any, ...], tuple[Any, ...] | None]:
    """Return the terms of an equation, and that of the output."""
    left, arrow, right = equation.partition("->")
    parts = left.split(",")
    terms = [_letters(part, sum(len(each) + 1 for each in parts[:k]), f"operand {k}") for k, part in enumerate(parts)]
    return tuple(terms), _letters(right, len(left) + 2, "output") if arrow else None


def _letters(text: str, start: int, where: str) -> tuple[Any, ...]:
    letters: list[Any] = []
    i = 0
    while i < len(text):
        letter = text[i]
        if letter == ".":
            if ... in letters:
                relative = "but an" if where == "output" else "for which an"
                raise RuntimeError(
                    f"einsum(): found '.' for {where} {relative} ellipsis "
                    f"{'(...) ' if where == 'output' else ''}was already found"
                )
            if text[i : i + 3] != "...":
                raise RuntimeError(f"einsum(): found '.' for {where} that is not part of any ellipsis")
            letters.append(...)
            i += 2
        elif letter.isascii() and letter.isalpha():
            letters.append(letter)
        elif letter != " ":
            raise RuntimeError(
                f"einsum(): invalid subscript given at index {start + i} in the equation string, subscripts must be in "
                "[a-zA-Z]"
            )
        i += 1
    return tuple(letters)


def _sublist(numbers: Sequence[Any]) -> tuple[Any, ...]:
    """Return the letters of a sublist: 0 … 25 are A … Z, then a … z."""
    letters: list[Any] = []
    for number in numbers:
        if number is ...:
            letters.append(...)
        elif 0 <= number < 52:
            letters.append(chr(number + 65) if number < 26 else chr(number + 71))
        else:
            raise ValueError(
                f"einsum(): subscript in subscript list is not within the valid range [0, 52), but is {number}"
            )
    return tuple(letters)


def _expanded(term: list[Any], rest: int) -> list[Any]:
    """Return a term with its ellipsis replaced by `rest` dimensions, numbered from the last."""
    if ... not in term:
        return term
    i = term.index(...)
    return [*term[:i], *[("...", back) for back in range(rest - 1, -1, -1)], *term[i + 1 :]]


def _check_output(output: list[Any], terms: list[list[Any]]) -> None:
    for letter in output:
        if letter is ...:
            continue
        if output.count(letter) > 1:
            raise RuntimeError(f"einsum(): output subscript {letter} appears more than once in the output")
        if not any(letter in term for term in terms):
            raise RuntimeError(
                f"einsum(): output subscript {letter} does not appear in the equation for any input operand"
            )


def _diagonals(term: list[Any], x: _Sketch, k: int) -> _Sketch:
    """Return the diagonals of an operand over dimensions with the same letter."""
    term = list(term)
    for letter in dict.fromkeys(term):
        while term.count(letter) > 1:
            i = term.index(letter)
            j = term.index(letter, i + 1)
            if x.shape[i] != x.shape[j]:
                raise RuntimeError(
                    f"einsum(): subscript {letter} is repeated for operand {k} but the sizes don't match, {x.shape[j]} "
                    f"!= {x.shape[i]}"
                )
            x = x.without([j], lambda x, i=i, j=j: x.diagonal(0, i, j).movedim(-1, i))
            del term[j]
    return x


def _check_lengths(terms: list[list[Any]], operands: list[Any]) -> None:
    """Raise PyTorch's error if dimensions with the same letter have lengths that do not broadcast."""
    lengths: dict[Any, int] = {}
    for k, (term, operand) in enumerate(zip(terms, operands, strict=True)):
        for letter, length in zip(term, operand.shape, strict=True):
            seen = lengths.get(letter, 1)
            if length != seen and 1 not in (length, seen):
                name = "..." if isinstance(letter, tuple) else letter
                raise RuntimeError(
                    f"einsum(): subscript {name} has size {length} for operand {k} which does not broadcast with "
                    f"previously seen size {seen}"
                )
            lengths[letter] = length if seen == 1 else seen


def _summed(term: list[Any], x: _Sketch, needed: set[Any]) -> tuple[list[Any], _Sketch]:
    """Return an operand and its term, summed over the dimensions whose letters are not needed any more."""
    dims = [i for i, letter in enumerate(term) if letter not in needed]
    if dims:
        x = x.without(dims, lambda x: x.sum(dims))  # (integers as int64)
    return [letter for letter in term if letter in needed], x


def _contracted(
    left: list[Any], x: _Sketch, right: list[Any], y: _Sketch, needed: set[Any], target: list[Any], casting: bool
) -> tuple[list[Any], _Sketch]:
    """Return the term and the value of the product of two operands, summed over letters that are not needed any more.

    The order of dimensions in memory is PyTorch's, which depends on the term `target` of the output: first the batch
    dimensions, then those of the operand whose first free letter comes first in the output.
    """
    # A dimension of length 1 that broadcasts is removed from the product.
    shared = [letter for letter in left if letter in right]
    ones_x = {letter for letter in shared if x.shape[left.index(letter)] == 1}
    ones_y = {letter for letter in shared if y.shape[right.index(letter)] == 1}
    left, x = _squeezed(left, x, ones_x - ones_y)
    right, y = _squeezed(right, y, ones_y - ones_x)
    left, x = _summed(left, x, needed | set(right))
    right, y = _summed(right, y, needed | set(left))
    lengths = {**dict(zip(left, x.shape, strict=True)), **dict(zip(right, y.shape, strict=True))}
    batch = [letter for letter in left if letter in right and letter in needed]
    inner = [letter for letter in left if letter in right and letter not in needed]
    rows = [letter for letter in left if letter not in right]
    columns = [letter for letter in right if letter not in left]
    if batch + rows + columns != target:
        positions = {letter: k for k, letter in enumerate(target)}

        def rank(letter: Any) -> int:
            return positions.get(letter, len(positions))

        batch, rows, columns = (sorted(letters, key=rank) for letters in (batch, rows, columns))
        if not inner and (rows or columns):
            return _outer_product(left, x, right, y, target, lengths)
        if rows and columns and rank(columns[0]) < rank(rows[0]):
            left, x, rows, right, y, columns = right, y, columns, left, x, rows
    b, n, m, p = ([lengths[letter] for letter in letters] for letters in (batch, rows, inner, columns))

    def checked(function: Any) -> Any:
        def run(x: Tensor, y: Tensor) -> Any:
            if x.dtype is not y.dtype:
                raise RuntimeError(f"expected scalar type {tensor_name(x._array)} but found {tensor_name(y._array)}")
            return function(x, y)

        return run if inner and not casting else function

    x, y = _permuted(x, left, batch + rows + inner), _permuted(y, right, batch + inner + columns)
    # Without inner or without free dimensions the product is elementwise (but under autocasting, sums are products).
    if not inner or not (rows or columns or casting):
        right_shape = b + [1] * len(n) + m + p
        product = x.reshape(b + n + m + [1] * len(p)).times(y.reshape(right_shape), checked(operator.mul))
        if inner:
            dims = [len(b) + i for i in range(len(m))]
            product = product.without(dims, lambda x: x.sum(dims, dtype=x.dtype))
        return batch + rows + columns, product
    bs, ns, ms, ps = (math.prod(lengths) for lengths in (b, n, m, p))
    if batch:
        product = x.reshape((bs, ns, ms)).then(checked(Tensor.bmm), (bs, ns, ps), y.reshape((bs, ms, ps)))
    else:
        product = x.reshape((ns, ms)).then(checked(Tensor.mm), (ns, ps), y.reshape((ms, ps)))
    return batch + rows + columns, product.reshape(b + n + p)


def _permuted(x: _Sketch, term: list[Any], order: list[Any]) -> _Sketch:
    return x if term == order else x.permute([term.index(letter) for letter in order])


def _outer_product(
    left: list[Any], x: _Sketch, right: list[Any], y: _Sketch, target: list[Any], lengths: dict[Any, int]
) -> tuple[list[Any], _Sketch]:
    """Return the term and the value of the product of two operands without a sum."""
    term = [letter for letter in target if letter in lengths]
    term += [letter for letter in lengths if letter not in target]
    factors = []
    for letters, t in ((left, x), (right, y)):
        t = t.permute([letters.index(letter) for letter in term if letter in letters])
        factors.append(t.reshape([lengths[letter] if letter in letters else 1 for letter in term]))
    return term, factors[0].times(factors[1])


def _squeezed(term: list[Any], x: _Sketch, letters: set[Any]) -> tuple[list[Any], _Sketch]:
    """Return the term and the operand without the dimensions of some letters, which have length 1."""
    if letters:
        dims = tuple([i for i, letter in enumerate(term) if letter in letters])
        x = x.without(dims, lambda x: x.squeeze(dims))
    return [letter for letter in term if letter not in letters], x


@public(python=True, out="chain_matmul")
def chain_matmul(*matrices: Tensor) -> Tensor:
    """Return the product of matrices, computed in the order with the fewest multiplications."""
    warn(
        "torch.chain_matmul is deprecated and will be removed in a future PyTorch release. Use torch.linalg.multi_dot "
        "instead, which accepts a list of two or more tensors rather than multiple parameters.",
        once=True,
    )
    for matrix in matrices:
        if isinstance(matrix, Tensor) and matrix.ndim != 2:
            raise RuntimeError(f"Tensor dimension is {matrix.ndim}, expected 2 instead.")
    return matrices[0] if len(matrices) == 1 else multi_dot(matrices)


@public("linalg.multi_dot", out="chain_matmul")
def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """Return the product of two or more matrices, computed in the order with the fewest multiplications.

    The first and the last may be vectors.

    Source: the dynamic program of Cormen, Leiserson, Rivest and Stein, "Introduction to Algorithms", section 14.2.

    Example:
        >>> torch.linalg.multi_dot([torch.ones(3), torch.ones(3, 4), torch.ones(4)])
        tensor(12.)
    """
    count = len(tensors)
    if count < 2:
        raise RuntimeError("multi_dot(): expected at least 2 tensors but got " + str(count))
    chain = list(tensors)
    check_elements(chain)
    first, last = chain[0].ndim == 1, chain[-1].ndim == 1
    if first:
        chain[0] = chain[0].unsqueeze(0)
    if last:
        chain[-1] = chain[-1].unsqueeze(-1)
    for k, matrix in enumerate(chain):
        if matrix._array.dtype != chain[0]._array.dtype:
            first_name, name = (dtypes.C_NAMES.get(t.dtype.name) for t in (chain[0], matrix))
            raise RuntimeError(
                "multi_dot(): all tensors must have be the same dtype but tensor 0 is "
                f"{first_name} and tensor {k} {name}"
            )
        if matrix.ndim != 2:
            expected = "1D or 2D" if k in (0, count - 1) else "2D"
            raise RuntimeError(f"multi_dot(): tensor {k} must be {expected} but got {matrix.ndim}D")
        if k and chain[k - 1].shape[1] != matrix.shape[0]:
            raise RuntimeError(
                f"multi_dot(): tensors {k - 1} and {k} with shapes {list(tensors[k - 1].shape)} and "
                f"{list(tensors[k].shape)} cannot be multiplied"
            )
    product = _multiplied(chain)
    rows, columns = product.shape
    return product.view(([] if first else [rows]) + ([] if last else [columns]))


@functools.lru_cache(4096)
def _order(sizes: tuple[int, ...]) -> tuple[int, int]:
    """Return the least number of multiplications for a chain of matrices, and how many are multiplied first."""
    if len(sizes) == 2:
        return 0, 0
    return min(
        (_order(sizes[: k + 1])[0] + _order(sizes[k:])[0] + sizes[0] * sizes[k] * sizes[-1], k)
        for k in range(1, len(sizes) - 1)
    )


def _multiplied(chain: list[Tensor]) -> Tensor:
    if len(chain) == 1:
        return chain[0]
    _, k = _order((chain[0].shape[0], *[matrix.shape[1] for matrix in chain]))
    return mm(_multiplied(chain[:k]), _multiplied(chain[k:]))


def _operator(reflected: bool) -> Callable[[Any, Any], Any]:
    """Return the method of Python's operator `@`, which returns NotImplemented for an operand that is not a tensor."""

    def multiply(self: Tensor, other: Any) -> Any:
        if not isinstance(other, Tensor):
            return NotImplemented
        return matmul(other, self) if reflected else matmul(self, other)

    return multiply


operator_matmul, operator_rmatmul = short("matmul", *_ALL_PRODUCTS)(_operator(False)), _operator(True)


_trace = op_of(
    products.trace,
    batch=lambda x: x.diagonal().sum(),
    complex=OWN,
    refuses="trace",
    x=lambda g, x_shape: _diagonal_of(g, x_shape),
)
_diagonal_of = op_of(
    products.diagonal_matrix,
    batch=lambda x, shape: x * x.new_tensor(np.eye(*shape)),
    complex=OWN,
    name="TraceBackward",
    x=lambda g: _trace(g),
)


@public(method=True, autocast="float32")
@alike(_trace)
def trace(input: Tensor) -> Tensor:
    """Return the sum of the diagonal of a matrix.

    Example:
        >>> torch.trace(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
        tensor(5.)
    """
    return _trace(input)
