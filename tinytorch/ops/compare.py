"""Elementwise comparison, logic and bit operations."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinytorch.core.complex import OWN
from tinytorch.kernels import arithmetic
from tinytorch.kernels import complex as complexes
from tinytorch.ops.arguments import exemplified

#: Declaration arguments that several ops share.
_OF_TWO: dict[str, Any] = {"x": None, "y": None, "method": True, "in_place": True, "out": "promoted"}
_OF_TENSORS: dict[str, Any] = {"of_tensors": True, "complex": OWN} | _OF_TWO
_OF_BITS: dict[str, Any] = {"operands": "number first"} | _OF_TWO


eq, ne, lt, le, gt, ge = (
    exemplified(
        name, kernel, f"whether `x {sign} y`, elementwise with broadcasting", "torch.tensor([1, 2, 3]), 2", result,
        operands="tensor first", **facts, **_OF_TWO,
    )
    for name, kernel, sign, result, facts in (
        ("eq", np.equal, "==", "[False,  True, False]", {"complex": OWN}),
        ("ne", np.not_equal, "!=", "[ True, False,  True]", {"complex": OWN, "also": "not_equal"}),
        ("lt", np.less, "<", "[ True, False, False]", {"refuses": "lt_cpu", "also": "less"}),
        ("le", np.less_equal, "<=", "[ True,  True, False]", {"refuses": "le_cpu", "also": "less_equal"}),
        ("gt", np.greater, ">", "[False, False,  True]", {"refuses": "gt_cpu", "also": "greater"}),
        ("ge", np.greater_equal, ">=", "[False,  True,  True]", {"refuses": "ge_cpu", "also": "greater_equal"}),
    )
)  # fmt: skip
logical_and, logical_or, logical_xor = (
    exemplified(
        name, kernel, what, "torch.tensor([0, 1, 2]), torch.tensor([1, 0, 3])", result, refuses=f"{name}_cpu",
        **_OF_TENSORS,
    )
    for name, kernel, what, result in (
        ("logical_and", np.logical_and, "whether `x` and `y` are both nonzero", "[False, False,  True]"),
        ("logical_or", np.logical_or, "whether `x` or `y` is nonzero", "[True, True, True]"),
        ("logical_xor", np.logical_xor, "whether exactly one of `x` and `y` is nonzero", "[ True,  True, False]"),
    )
)  # fmt: skip
logical_not = exemplified(
    "logical_not", np.logical_not, "whether `x` is zero", "torch.tensor([0, 1, -2])", "[ True, False, False]",
    refuses="logical_not_cpu", x=None, method=True, in_place=True, out="promoted", complex=OWN,
)  # fmt: skip
bitwise_and, bitwise_or, bitwise_xor = (
    exemplified(
        name, kernel, f"`x {sign} y` of integers or booleans", "torch.tensor([5, 6]), 3", result, **_OF_BITS
    )
    for name, kernel, sign, result in (
        ("bitwise_and", arithmetic.bitwise_and, "&", "[1, 2]"),
        ("bitwise_or", arithmetic.bitwise_or, "|", "[7, 7]"),
        ("bitwise_xor", arithmetic.bitwise_xor, "^", "[6, 5]"),
    )
)  # fmt: skip
bitwise_not = exemplified(
    "bitwise_not", arithmetic.bitwise_not, "`~x` of integers or booleans", "torch.tensor([0, 5])", "[-1, -6]",
    refuses="bitwise_not_cpu", x=None, method=True, in_place=True, out="same",
)  # fmt: skip
bitwise_left_shift = exemplified(
    "bitwise_left_shift", arithmetic.left_shift, "`x << y` of integers", "torch.tensor([1, 3]), 2", "[ 4, 12]",
    refuses="lshift_cpu", **_OF_BITS,
)  # fmt: skip
bitwise_right_shift = exemplified(
    "bitwise_right_shift", arithmetic.right_shift, "`x >> y` of integers: an arithmetic shift, which keeps the sign",
    "torch.tensor([8, -8]), 2", "[ 2, -2]", refuses="rshift_cpu", **_OF_BITS,
)  # fmt: skip
isnan, isinf, isfinite, isposinf, isneginf, isreal = (
    exemplified(name, kernel, what, f"torch.tensor({argument})", result, x=None, method=True, **facts)
    for name, kernel, what, argument, result, facts in (
        ("isnan", np.isnan, "whether each element is NaN", "[1.0, torch.nan]", "[False,  True]", {"complex": OWN}),
        ("isinf", np.isinf, "whether each element is infinite", "[1.0, -torch.inf]", "[False,  True]",
         {"complex": OWN}),
        ("isfinite", np.isfinite, "whether each element is neither NaN nor infinite", "[1.0, torch.inf, torch.nan]",
         "[ True, False, False]", {"complex": OWN}),
        ("isposinf", np.isposinf, "whether each element is plus infinity", "[torch.inf, -torch.inf]", "[ True, False]",
         {"out": "boolean result"}),
        ("isneginf", np.isneginf, "whether each element is minus infinity", "[torch.inf, -torch.inf]",
         "[False,  True]", {"out": "boolean result"}),
        ("isreal", complexes.isreal, "whether the imaginary part is 0", "[1.0, 2.0]", "[True, True]",
         {"complex": OWN}),
    )
)  # fmt: skip
