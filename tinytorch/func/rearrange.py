"""`torch.func.rearrange`: permutes, splits and merges dimensions by a pattern.

Source of the notation: A. Rogozhnikov, "Einops: Clear and Reliable Tensor Manipulations with Einstein-like Notation",
ICLR 2022.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from tinytorch.core.tensor import Tensor
from tinytorch.ops.join import stack

#: Per dimension the names in it: several for a product, none for a dimension of size 1.
Side = list[list[str]]


class DimensionBindError(Exception):
    """The dimensions of a pattern do not fit the sizes of the tensor."""


def rearrange(tensor: Tensor | list[Tensor] | tuple[Tensor, ...], pattern: str, **axes_lengths: int) -> Tensor:
    """Return a tensor with its dimensions rearranged by a pattern, as `einops.rearrange` does.

    The pattern has the names of the dimensions, `->`, and the names of the result's. `(a b)` is one dimension of a * b
    elements, `...` stands for any number of dimensions, `1` and `()` for one of size 1; `axes_lengths` are sizes that
    do not follow from the tensor's. A sequence of tensors is stacked first. The result is a view if the strides allow
    that. A malformed pattern, or another number of dimensions, is a ValueError; other sizes are a DimensionBindError.

    Example:
        >>> images = torch.zeros(8, 3, 4, 6)
        >>> torch.func.rearrange(images, "b c (h p) (w q) -> b (h w) (p q c)", p=2, q=2).shape
        torch.Size([8, 6, 12])
    """
    if not isinstance(tensor, Tensor):
        tensor = stack(tensor)
    left, right = _parsed(pattern, tensor.ndim)
    named = {name for group in left for name in group}
    if axes_lengths.keys() - named:
        raise ValueError(f"Identifiers not found in rearrange expression: {axes_lengths.keys() - named}")
    sizes = _bound(left, tensor.shape, dict(axes_lengths))
    names = [name for group in left for name in group]
    order = [names.index(name) for group in right for name in group]
    permuted = tensor.reshape([sizes[name] for name in names]).permute(order)
    return permuted.reshape([math.prod(sizes[name] for name in group) for group in right])


def _parsed(pattern: str, ndim: int) -> tuple[Side, Side]:
    """Return the two sides of a pattern for a tensor of `ndim` dimensions; the ellipsis becomes the names …0, …1 etc.

    Raises:
        ValueError: the pattern is malformed, or has another number of dimensions.
    """
    if pattern.count("->") != 1:
        raise ValueError("Pattern must contain a single '->' separator")
    parts = [text.replace("...", "…") for text in pattern.split("->")]
    if any("." in text or text.count("…") > 1 for text in parts):
        raise ValueError("Expression may contain dots only inside ellipsis (...)")
    left, right = [_side(text) for text in parts]
    left_names, right_names = [{name for group in side for name in group} for side in (left, right)]
    if "…" in right_names - left_names:
        raise ValueError(f"Ellipsis found in right side, but not left side of a pattern {pattern}")
    if re.search(r"\([^)]*…", parts[0]):
        raise ValueError(f"Ellipsis is parenthesis in the left side is not allowed: {pattern}")
    if left_names != right_names:
        raise ValueError(
            f"Identifiers only on one side of rearrange expression (should be on both): {left_names ^ right_names}"
        )
    ellipsis_dims = ndim - sum(group != ["…"] for group in left)
    if ellipsis_dims < 0 or (ellipsis_dims and "…" not in left_names):
        raise ValueError(
            f"Number of dimensions in pattern ({len(left)}) must be equal to the number of dimensions in the tensor "
            f"({ndim})"
        )
    unnamed = " ".join(f"…{k}" for k in range(ellipsis_dims))
    left, right = [_side(text.replace("…", f" {unnamed} ")) for text in parts]
    return left, right


def _side(text: str) -> Side:
    """Parse one side of a pattern."""
    side: Side = []
    seen: set[str] = set()
    inside = False
    for token in re.findall(r"[()]|…\d*|\w+|\S", text):
        if token in "()":
            if inside == (token == "("):
                raise ValueError(
                    "Axis composition is one-level (brackets inside brackets not allowed)"
                    if inside
                    else f"Imbalanced parentheses in expression: {text!r}"
                )
            inside = token == "("
            if inside:
                side.append([])
            continue
        if not inside:
            side.append([])
        if token.isdigit():
            if token != "1":
                raise ValueError("rearrange only supports unnamed axes of size 1")
            continue
        if not re.match(r"[\w…]", token):
            raise ValueError(f"Unknown character {token!r}")
        if token[0] != "…" and (not token.isidentifier() or "_" in (token[0], token[-1])):
            raise ValueError(f"Invalid axis identifier: {token}")
        if token in seen:
            raise ValueError(f"Indexing expression contains duplicate dimension {token!r}")
        seen.add(token)
        side[-1].append(token)
    if inside:
        raise ValueError(f"Imbalanced parentheses in expression: {text!r}")
    return side


def _bound(left: Side, shape: Sequence[int], sizes: dict[str, int]) -> dict[str, int]:
    """Return the sizes of all names; `sizes` has those passed by the user.

    Raises:
        DimensionBindError: they do not fit the shape.
    """
    for group, size in zip(left, shape, strict=True):
        unknown = [name for name in group if name not in sizes]
        known = math.prod(sizes[name] for name in group if name in sizes)
        if len(unknown) > 1:
            raise DimensionBindError(f"cannot infer the sizes of two dimensions at once {unknown[0]} and {unknown[1]}")
        if unknown:
            if not known or size % known:
                raise DimensionBindError(
                    f"inferred dimension does not evenly fit into larger dimension: {size} vs {tuple(group)}"
                )
            sizes[unknown[0]] = size // known
        elif known != size:
            raise DimensionBindError(
                f"Dimension sizes to do not match ({size} != {known}) when matching dimension pack {tuple(group)}"
            )
    return sizes
