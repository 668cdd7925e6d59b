"""Samples of `tinytorch.ops.linalg.products`."""

import numpy as np

from tests.samples import Sample, integers, normal, sample

a, b, v, w = normal(2, 3), normal(3, 4), normal(3), normal(3, seed=1)
stack, other = normal(5, 2, 3), normal(5, 3, 4)
scalar = np.array(1.7)
counts, factors, numbers = integers(2, 3), integers(3, 4), integers(3)

SAMPLES: list[Sample] = []

# matmul: vectors, matrices, stacks that broadcast, sizes of 0 and 1.
for x, y in (
    (a, b), (a, v), (v, b), (v, w), (stack, other), (stack, b), (stack, v), (v, other), (a, other),
    (stack, normal(1, 3, 4)), (normal(2, 1, 2, 3), other), (normal(2, 1, 2, 3), normal(4, 3, 2)),
    (normal(2, 5, 3, 4), normal(4)), (normal(3), normal(2, 5, 3, 4)),
    (normal(2, 5, 3, 4), normal(4, 2)),
    (np.zeros((0, 3)), b), (np.zeros((2, 0)), np.zeros((0, 4))), (np.zeros(0), np.zeros(0)),
    (np.zeros((5, 2, 0)), np.zeros((5, 0, 4))), (np.zeros((5, 2, 0)), np.zeros((0, 4))),
    (np.zeros((0, 2, 3)), b), (normal(1, 1), normal(1, 1, seed=1)), (normal(4, 1), normal(1, 4)),
    (counts, factors), (counts, numbers), (numbers, numbers),
    (integers(5, 2, 3), integers(5, 3, 4)),
    (counts.astype(np.uint8), factors.astype(np.uint8)),
):  # fmt: skip
    SAMPLES.append(sample("matmul", x, y))
SAMPLES += [
    sample("matmul", a, other=b), sample("matmul", np.asfortranarray(a), np.asfortranarray(b)),
    sample("Tensor.__matmul__", a, b), sample("Tensor.matmul", stack, b), sample("matmul", a.T, a),
    sample("mm", a, b), sample("mm", a.T, a), sample("spmm", a, b), sample("dsmm", a, b),
    sample("mm", counts, factors),
    sample("Tensor.mm", a, mat2=b),
    sample("bmm", stack, other), sample("bmm", stack, stack.swapaxes(1, 2)),
    sample("bmm", stack[:0], other[:0]),
    sample("mv", a, v), sample("mv", b.T, v), sample("mv", counts, numbers), sample("mv", a, vec=v),
    sample("dot", v, w), sample("dot", numbers, numbers), sample("vdot", v, w),
    sample("inner", v, w), sample("inner", a, v), sample("inner", a, normal(4, 3)),
    sample("inner", stack, a),
    sample("inner", v, stack), sample("inner", scalar, a), sample("inner", counts, numbers),
    sample("outer", v, normal(4)), sample("outer", numbers, v), sample("ger", v, w),
    sample("outer", v, v[:0]),
]  # fmt: skip

# Products added to something; beta 0 leaves out even NaN.
nan = np.full(4, np.nan)
for scales in ({}, {"beta": 2}, {"alpha": -1.5}, {"beta": 0.5, "alpha": 3}, {"beta": 0}):
    SAMPLES += [
        Sample("addmm", (normal(2, 4), a, b), scales, in_place=True),
        Sample("addmm", (normal(4), a, b), scales),
        Sample("addmv", (normal(2), a, v), scales, in_place=True),
        Sample("addbmm", (normal(2, 4), stack, other), scales, in_place=True, atol=1e-10),
        Sample("baddbmm", (normal(5, 2, 4), stack, other), scales, in_place=True),
        Sample("baddbmm", (normal(4), stack, other), scales),
        Sample("addr", (normal(3, 3), v, w), scales, in_place=True),
    ]
SAMPLES += [
    sample("addmm", nan, a, b, beta=0),
    sample("addmv", nan[:2], a, v, beta=0),
    sample("baddbmm", nan, stack, other, beta=0),
    sample("addr", nan[:3], v, w, beta=0),
    sample("addmm", scalar, a, b), sample("addmm", normal(2, 1), a, b),
    sample("addmv", scalar, a, v),
    sample("addmm", integers(4), counts, factors),
    sample("addmm", integers(4), counts, factors, beta=2, alpha=3),
    sample("addbmm", integers(4), integers(5, 2, 3), integers(5, 3, 4)),
    sample("addmm", normal(4), np.asfortranarray(a), np.asfortranarray(b)),
    sample("Tensor.addmm", normal(4), a, b),
]  # fmt: skip

SAMPLES += [
    sample("tensordot", a, b, 1), sample("tensordot", a, a), sample("tensordot", a, a, dims=0),
    sample("tensordot", a, b, ([1], [0])), sample("tensordot", stack, other, dims=([0, 2], [0, 1])),
    sample("tensordot", stack, other, ([-1], [-2])),
    sample("tensordot", stack, other, ([2, 0], [1, 0])),
    sample("tensordot", normal(1, 3), normal(3, 4), ([0], [0])), sample("tensordot", v, w, 1),
    sample("tensordot", normal(2, 3), normal(1, 3), ([0, 1], [0, 1])),
    sample("tensordot", counts, factors, 1),
]  # fmt: skip

square, ones = normal(3, 3), normal(1, 3)
EQUATIONS = {
    "ij,jk->ik": (a, b), "ij,jk": (a, b), "ba": (a,), "ij->ji": (a,), "ii": (square,),
    "ii->i": (square,),
    "iij->j": (normal(3, 3, 2),), "iji->ij": (normal(3, 2, 3),), "iiij->ij": (normal(2, 2, 2, 3),),
    "ij->": (a,), "ij->j": (a,), "ij,j->": (a, v), "i,i": (v, w), "i,j->ji": (v, w),
    "i,j,k->kij": (v, w, normal(2)),
    "ij,ij->ij": (a, a), "ij,ij->i": (a, a), "ij,ij": (a, a), "ij,kj->ik": (a, a),
    "ij,i->j": (a, v[:2]),
    "bij,bjk->bik": (stack, other), "bij,jk->kbi": (stack, b), "bij,bik->jk": (stack, stack),
    "bhij,bjk->bhik": (normal(2, 5, 3, 4), normal(2, 4, 3)), "ij,jk,kl->il": (a, b, normal(4, 2)),
    "bi,bj,bk->ijk": (a, a, a), "i,i,i->i": (v, w, v), "i,i,i->": (v, w, v), ",ij": (scalar, a),
    "ijk,kl->i": (other, normal(4, 2)),
    "...ij,...jk": (stack, other), "...ij,jk->...ik": (stack, b), "b...,b...->...": (stack, stack),
    "...": (a,),
    "...->...": (a,), "...i->i": (stack,), "i...->...i": (stack,), "ij->i...": (a,),
    "...i,...i->...": (stack, a),
    "ij...,jk...->ik...": (normal(2, 3, 4), normal(3, 2, 4)), "ij,ij->...ij": (a, a),
    " i j , j k -> i k ": (a, b),
    "Ab,bA->A": (a, a.T),
}  # fmt: skip
SAMPLES += [sample("einsum", equation, *operands) for equation, operands in EQUATIONS.items()]
SAMPLES += [
    # Dimensions of length 1 broadcast.
    sample("einsum", "ij,ij->ij", ones, a), sample("einsum", "ij,ij->", ones, a),
    sample("einsum", "ij,ij,ij->j", ones, ones, a),
    sample("einsum", "ij,jk->ik", np.zeros((0, 3)), b),
    sample("einsum", "ij,jk->ik", np.zeros((2, 0)), np.zeros((0, 4))),
    sample("einsum", "ij,j->i", counts, numbers),
    # Lists in place of letters; operands in one sequence.
    sample("einsum", a, [0, 1], b, [1, 2], [0, 2]), sample("einsum", a, [0, 1], b, [1, 30]),
    sample("einsum", a, [1, 0]),
    sample("einsum", stack, [..., 1], b, [1, 2], [..., 2]), sample("einsum", "ij,jk->ik", [a, b]),
]  # fmt: skip

SAMPLES += [sample("trace", normal(3, 3)), sample("trace", normal(2, 4)), sample("trace", integers(3, 3))]
