"""How many references to a gradient the walk backward itself holds, which depends on the version of Python."""

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
    """Compares equal to any number of references, and stores it."""

    value = -1

    def __eq__(self, count: object) -> bool:
        if isinstance(count, int):
            self.value = count
        return True

    __hash__ = None  # type: ignore[assignment]


class _Shared(Start):
    """Gives a leaf a new gradient; `saved` is (further references to it, to its array, a list for them)."""

    __slots__ = ()

    def without_gradient(self, create_graph: bool, needed: set[Node] | None) -> Any:
        references, references_of_array, holder = self.saved
        g: Tensor = wrap(np.zeros(1))
        holder += [g] * references + [g._array] * references_of_array
        return (g,)


def count_own_references() -> tuple[int, int]:
    """Return how many references to a gradient and to its array there are while only the walk holds them.

    Whether variables and arguments own references or borrow them depends on Python (3.14 borrows most). So the
    references are counted in walks with a known number of further references to the gradient. It is (-1, -1), which no
    count equals, if the counts are inconsistent, if there are more references than variables (a debugger may keep
    copies of these), or if Python runs without the GIL, where other threads may change a count while it is read.
    """
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return -1, -1
    counts = set()
    state = local.state
    modes, state.modes = state.modes, None
    try:
        for further, further_of_array in ((0, 0), (1, 0), (0, 1), (2, 3)):
            leaf: Tensor = wrap(np.zeros(1))
            leaf._requires_grad = True
            edge = leaf_edge(leaf)
            gradients, arrays = edge[0].own_references = (_Count(), _Count())  # type: ignore[attr-defined]
            # (With targets: a walk without them may not run in Python.)
            walk(_Shared((edge,), (further, further_of_array, [])), False, False, [edge])
            counts.add((gradients.value - further, arrays.value - further_of_array))
    finally:
        state.modes = modes
    own_references, own_of_array = counts.pop()
    # At most: the walk's variable, and the arguments of `backward`, `_owned` and `getrefcount`; of the array, the
    # tensor's slot, a variable and that argument.
    consistent = not counts and 1 <= own_references <= 4 and 1 <= own_of_array <= 3
    return (own_references, own_of_array) if consistent else (-1, -1)
