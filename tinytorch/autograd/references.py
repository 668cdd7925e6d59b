"""How many references to a gradient the walk itself holds: found out, since that is Python's affair."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from tinytorch.core.engine import walk
from tinytorch.core.graph import Node, Start, leaf_edge
from tinytorch.core.mode import local
from tinytorch.core.tensor import Tensor, wrap

__all__ = ["count_own_references"]


class _Count:
    """Stands for a number of references, and takes the first that it is compared with."""

    value = -1

    def __eq__(self, count: object) -> bool:
        if isinstance(count, int):
            self.value = count
        return True

    __hash__ = None  # type: ignore[assignment]


class _Shared(Start):
    """Gives a leaf a new gradient; `saved` is how often to keep that and its array, and a list to keep them in."""

    __slots__ = ()

    def without_gradient(self, create_graph: bool, needed: set[Node] | None) -> Any:
        """Return the gradient."""
        others, others_of_array, kept = self.saved
        g: Tensor = wrap(np.zeros(1))
        kept += [g] * others + [g._array] * others_of_array
        return (g,)


def count_own_references() -> tuple[int, int]:
    """Return how many references to a gradient and to its array there are while only the walk holds them.

    Variables and arguments have references of their own, or borrow them, as it pleases Python (3.14 borrows most). So
    they are counted in walks whose gradients are held a known number of times: all have to fit. It is (-1, -1) where
    they do not, or there are more than there are variables (a debugger may keep copies of those), or another thread
    may be changing a count while it is read.
    """
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return -1, -1
    counts = set()
    state = local.state
    modes, state.modes = state.modes, None
    try:
        for others, others_of_array in ((0, 0), (1, 0), (0, 1), (2, 3)):
            leaf: Tensor = wrap(np.zeros(1))
            leaf._requires_grad = True
            edge = leaf_edge(leaf)
            count, count_of_array = edge[0].own_references = (_Count(), _Count())  # type: ignore[attr-defined]
            walk(_Shared((edge,), (others, others_of_array, [])), False, False)
            counts.add((count.value - others, count_of_array.value - others_of_array))
    finally:
        state.modes = modes
    own, own_of_array = counts.pop()
    # At most: the walk's variable, the arguments of two calls and of the function that counts; the tensor's slot, one
    # variable and that argument.
    consistent = not counts and 1 <= own <= 4 and 1 <= own_of_array <= 3
    return (own, own_of_array) if consistent else (-1, -1)
