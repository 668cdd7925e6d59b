"""Passes and the structure of arguments, against PyTorch's."""

from __future__ import annotations

import importlib
from collections import namedtuple
from collections.abc import Callable
from typing import Any

from tests.fx.programs import named
from tests.same import of_each

Program = Callable[[Any], Any]
Pair = namedtuple("Pair", "first second")


def of(t: Any, name: str) -> Any:
    return importlib.import_module(f"{t.__name__}.fx.{name}")


def a_pass(t: Any) -> Any:
    base = of(t, "passes.infra.pass_base")
    seen = []

    class Clean(base.PassBase):  # type: ignore[misc, name-defined]
        def requires(self, graph_module: Any) -> None:
            seen.append("before")

        def ensures(self, graph_module: Any) -> None:
            seen.append("after")

        def call(self, graph_module: Any) -> Any:
            return base.PassResult(graph_module, graph_module.graph.eliminate_dead_code())

    result = Clean()(t.fx.symbolic_trace(lambda x: (x + 1, x * 2)[0]))
    return seen, result.modified, result._fields, str(result.graph_module.graph)


def structures(t: Any) -> Any:
    tree, own = t.utils._pytree, t.fx._pytree
    values = {"b": [1, (2, 3)], "a": 4}
    leaves, spec = tree.tree_flatten(values)
    more = {"a": 4, "c": 5, "b": [1, (2, 3)]}
    return leaves, own.tree_flatten_spec(more, spec), own.tree_flatten_spec(7, tree.tree_flatten(1)[1])


class Box:
    """A container of the program."""

    def __init__(self, items: list[Any]) -> None:
        self.items = items


def registered(t: Any) -> Any:
    kind = type("Box", (Box,), {})
    tree, own = t.utils._pytree, t.fx._pytree
    tree.register_pytree_node(kind, lambda box: (box.items, None), lambda items, _: kind(list(items)))
    _, spec = tree.tree_flatten(kind([1, 2]))
    plain = own.tree_flatten_spec(kind([3, 4]), spec)
    try:
        own.tree_flatten_spec(kind([3, 4, 5]), spec)
    except RuntimeError as error:
        text = str(error).partition(" ")[0]
    own.register_pytree_flatten_spec(kind, lambda box, spec: box.items[::-1])
    return plain, own.tree_flatten_spec(kind([3, 4]), spec), text


PROGRAMS = named(a_pass, structures, registered)
REFUSED = named(no_pass=lambda t: of(t, "passes.infra.pass_base").PassBase())


test_passes_are_those_of_pytorch = of_each(PROGRAMS)


test_errors_are_those_of_pytorch = of_each(REFUSED, to_the_word=True)
