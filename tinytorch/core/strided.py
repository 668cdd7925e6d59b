"""Parts of a memory, by their place in it: a view by place, and a family of ops closed under differentiation."""

from __future__ import annotations

from typing import Any

from tinytorch.core.op import op
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.kernels import places


def _strided_x(g: Tensor, place: places.Place, whole: places.Place) -> Any:
    g = restrided(g, place, whole)
    # Elements of `x` that share a place in memory share its gradient.
    return g / wrap(places.shares(whole, g._array)) if places.overlaps(whole) else g


#: `strided(x, place, whole)` is what lies at `place` in the memory of `x`, as seen from its first element; `x` itself
#: is the `whole`.
strided = op(name="AsStrided", view=True, x=_strided_x)(lambda x, place, whole: places.at(x, place))
#: `restrided(x, source, target)` is what lies at `target` in a memory of zeros to which `x` was added at `source`.
restrided = op(name="AsStridedBackward", x=lambda g, source, target: restrided(g, target, source))(
    lambda x, source, target: places.restrided(x, source, target)
)


@op(x=lambda g, whole, part: copy_slices(g, 0.0, whole, part), y=lambda g, whole, part: restrided(g, whole, part))
def copy_slices(x: Any, y: Any, whole: places.Place, part: places.Place) -> Any:
    """Return `x`, which lies at `whole` in some memory, with `y` written at `part` of that memory."""
    return places.replaced(x, y, whole, part)
