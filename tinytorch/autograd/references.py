"""How many references to a gradient the walk itself holds: found out, since that is Python's affair."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from tinytorch.core import graph
from tinytorch.core.engine import walk
from tinytorch.core.graph import Node, Start, leaf_edge
from tinytorch.core.tensor import Tensor, wrap

__all__ = ["count_own_references"]


class _Count:
    """Stands for a number of references, and takes the first that it is compared with."""

    found = -1

    def __eq__(self, count: object) -> bool:
        if isinstance(count, int):
            self.found = count
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
    before = graph.own_references, graph.own_references_of_array
    found = set()
    try:
        for others, others_of_array in ((0, 0), (1, 0), (0, 1), (2, 3)):
            graph.own_references, graph.own_references_of_array = count, count_of_array = (_Count(), _Count())
            leaf: Tensor = wrap(np.zeros(1))
            leaf._requires_grad = True
            walk(_Shared((leaf_edge(leaf),), (others, others_of_array, [])), False, False)
            found.add((count.found - others, count_of_array.found - others_of_array))
    finally:
        graph.own_references, graph.own_references_of_array = before
    own, own_of_array = found.pop()
    # At most: the walk's variable, the arguments of two calls and of the function that counts; the tensor's slot, one
    # variable and that argument.
    clear = not found and 1 <= own <= 4 and 1 <= own_of_array <= 3
    return (own, own_of_array) if clear else (-1, -1)


graph.own_references, graph.own_references_of_array = count_own_references()
