"""PyTorch's own samples of its operators: everything that can be seen of a call is the same, or known to differ.

Compared are values, dtypes, shapes, strides, `requires_grad`, the names of the nodes, gradients and (in float32 and
complex128) second gradients, in six more dtypes, as methods and in place; and of wrong uses the class and the words of
the error. See `tests/opinfo.py`. HYPOTHESIS_PROFILE=long runs all samples, else a few of each entry are run.
"""

from __future__ import annotations

import re

import pytest

from tests.conftest import PROFILE
from tests.opinfo import DATABASE, findings
from tests.turns import quarter

#: Samples of each entry in a usual run.
FEW = {
    "float32": 16, "method": 3, "in place": 3, "int64": 4, "bool": 3, "bfloat16": 4, "float16": 4, "complex64": 3,
    "complex128": 6, "errors": 0,
}  # fmt: skip

#: By reason what differs: patterns of entries, and of what `findings` calls the differences. An entry that no longer
#: differs is an error, but in lines with an asterisk, which only some samples, machines or states of memory show.
KNOWN = {
    "tinytorch leaves out complex numbers of 16 bits": """
        chalf : .* (missing|raises)
        complex|view_as_complex : float16 raises
    """,
    "the class of a sparse tensor is a subclass of Tensor": """
        to_sparse : .* type
    """,
    "tinytorch leaves out what compiles to other devices": """
        jiterator_.* : .* missing
    """,
    "private to PyTorch, or an operator of its compiler": """
        _(batch_norm_with_update|chunk_cat|native_batch_norm_legit|softmax_backward_data) : .* missing
        _(unsafe_masked_index|unsafe_masked_index_put_accumulate|upsample_bilinear2d_aa) : .* missing
        native_dropout_backward|slice : .* missing
        torch[.]_scaled_mm.* : .* missing
        torch[.]ops[.]aten[.]_safe_softmax.default : .* raises
        max_pool2d_with_indices_backward : .* raises
    """,
    "PyTorch leaves open which of equal elements is chosen, and sorts unstably": """
        *argsort|kthvalue|mode|sort|topk : (int64|bool|bfloat16|float16) values
        *msort : (bfloat16|float16) gradient values
    """,
    "memory that nobody has written": """
        *empty|empty_(like|permuted|strided)|new_empty|new_empty_strided : .* values
    """,
    "strides along dimensions of length 1": """
        expand_as : .* strides
        *linalg.eigh : (float32|complex64|complex128) strides
        *linalg.eig : (float32|float64|complex64|complex128) strides
        *linalg.matrix_norm|nn.functional.max_pool2d : .* strides
        *mH : complex(64|128) strides
    """,
    "rounding: gradients of gradients of products of many steps": """
        *svd_lowrank|pca_lowrank : complex128 second gradient values
    """,
    "PyTorch has no gradient, or NaN": """
        *istft : complex(64|128) gradient
        *renorm : complex(64|128) gradient values
        masked.logaddexp : float32 second gradient values
    """,
    "rounding in 16 bits; what is discontinuous takes another branch": """
        *grid_sampler_2d : (bfloat16|float16) (gradient )?values
        *nn.functional.grid_sample : (bfloat16|float16) (gradient )?values
        *matrix_exp : (bfloat16|float16) values
        *grid_sampler_3d : (bfloat16|float16) gradient values
        *native_layer_norm : bfloat16 gradient values
        *nn.functional.normalize : (bfloat16|float16) gradient values
    """,
    "PyTorch is off, or overflows in 16 bits": """
        as_strided_scatter : .* gradient values
        *cholesky_inverse|cholesky_solve : .* gradient values
        *cov : complex(64|128) values
        *scatter_reduce/(amax|amin) : .* gradient values
        *nn.functional.soft_margin_loss : float16 values
    """,
    "PyTorch refuses what can be computed": """
        acosh|asinh|atanh : in place gradient passes
        special.i1|special.i1e : (bfloat16|float16) gradient passes
        *nn.functional.scaled_dot_product_attention : .* second gradient passes
        gather|__r(add|mul|and|or|xor)__ : errors passes
        linalg.householder_product|ormqr : .* gradient
        lu : .* type
        to_sparse : complex(64|128) passes
    """,
    "the name of the node: composed of other operators": """
        acosh|addcdiv|addcmul|asinh|atanh|conj_physical : in place node
        combinations|diff|einsum|trapezoid|trapz|cumulative_trapezoid : .* node
        __rmatmul__|matmul|cdist|quantile|nanquantile|renorm|special.ndtr : .* node
        _segment_reduce/.*|native_group_norm|grid_sampler_[23]d : .* node
        nn.functional.(bilinear|cross_entropy|embedding_bag|grid_sample|pad/circular) : .* node
        nn.functional.(pairwise_distance|pdist|pixel_unshuffle|scaled_dot_product_attention) : .* node
        nn.functional.linear_cross_entropy.* : .* node
        *stft : .* node
    """,
    "the name of the node: composed of convolutions of the real and imaginary parts": """
        nn.functional.conv(_transpose)?[123]d : complex(64|128) node
    """,
    "the name of the node: PyTorch has another one for numbers, or for tensors": """
        copysign|fmod|remainder|__rmod__ : .* node
    """,
}


def lines() -> list[tuple[str, str, bool]]:
    """Return the lines of `KNOWN`: a pattern of entries, one of differences, and whether they always show."""
    result = []
    for table in KNOWN.values():
        for line in table.strip().splitlines():
            entries, _, differences = line.strip().partition(" : ")
            result.append((entries.removeprefix("*"), differences, not entries.startswith("*")))
    return result


@pytest.mark.parametrize("name", quarter(list(DATABASE)))
def test_entry(name: str) -> None:
    found = findings(name, None if PROFILE == "long" else FEW)
    known = [line for line in lines() if re.fullmatch(line[0], name)]
    new = {
        difference: text
        for difference, text in found.items()
        if not any(re.fullmatch(pattern, difference) for _, pattern, _ in known)
    }
    assert not new, "tinytorch / PyTorch:\n" + "\n".join(f"{k}: {new[k]}" for k in new)
    for entries, pattern, always in known:
        if always:
            same = not any(re.fullmatch(pattern, difference) for difference in found)
            assert not same, f"{name} no longer differs: take it out of '{entries} : {pattern}'"


def test_known_entries_exist() -> None:
    for entries, _, _ in lines():
        for pattern in entries.split("|") if "(" not in entries else [entries]:
            assert any(re.fullmatch(pattern, name) for name in DATABASE), pattern
