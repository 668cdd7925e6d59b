"""Ops on parts of a memory given by their location (shape, strides, offset); the family is closed under gradients."""

from __future__ import annotations

from typing import Any

from tinytorch.core.complex import OWN
from tinytorch.core.op import op
from tinytorch.core.tensor import Tensor, constant
from tinytorch.kernels import places


def _strided_x(g: Tensor, place: places.Place, whole: places.Place) -> Any:
    g = restrided(g, place, whole)
    # Elements of `x` that share a location in memory share the gradient of that location.
    return g / constant(places.shares(whole, g._array)) if places.overlaps(whole) else g


#: `strided(x, place, whole)` is the view at location `place` in the memory of `x`, relative to its first element;
#: `whole` is the location of `x` itself.
strided = op(batch="strided", name="AsStrided", view=True, x=_strided_x)(places.strided)
strided.op.name = "_strided"
#: `restrided(x, source, target)` is the part at `target` of a memory of zeros to which `x` was added at `source`.
restrided = op(
    batch="placed in memory",
    name="AsStridedBackward",
    complex=OWN,
    x=lambda g, source, target: restrided(g, target, source),
)(places.restrided)
restrided.op.name = "_restrided"


@op(
    places.replaced,
    batch="placed in memory",
    complex=OWN,
    x=lambda g, whole, part: copy_slices(g, 0.0, whole, part),
    y=lambda g, whole, part: restrided(g, whole, part),
)
def copy_slices(x: Any, y: Any, whole: places.Place, part: places.Place) -> Any:
    """Return a copy of `x`, whose location in its memory is `whole`, with `y` written at location `part`."""
