"""Passes, the structure of arguments, and normalized arguments, against PyTorch's."""

from __future__ import annotations

import importlib
import operator
import random
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import pytest

import tinytorch
import tinytorch.fx
from tests.fx.programs import named, net, ramp, shown
from tests.same import compared, of_each, same_as_pytorch

Program = Callable[[Any], Any]
Pair = namedtuple("Pair", "first second")


def of(t: Any, name: str) -> Any:
    return importlib.import_module(f"{t.__name__}.fx.{name}")


def traced(t: Any) -> Any:
    t.manual_seed(0)
    return t.fx.symbolic_trace(net(t))


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


def random_module(t: Any, seed: int, count: int = 14) -> Any:
    """Return a graph module of random functions, methods, layers and parameters of two arguments."""
    draw = random.Random(seed)
    graph = t.fx.Graph()
    root = t.nn.Module()
    t.manual_seed(seed)
    root.layer, root.weight = t.nn.Linear(3, 3), t.nn.Parameter(t.rand(3))
    nodes = [graph.placeholder("a"), graph.placeholder("b")]
    for _ in range(count):
        kind, x, y = draw.randrange(8), draw.choice(nodes), draw.choice(nodes)
        if kind < 3:
            made = graph.call_function(draw.choice([operator.add, operator.mul, t.sub]), (x, y))
        elif kind < 5:
            made = graph.call_function(draw.choice([t.relu, t.sin, t.neg]), (x,))
        elif kind == 5:
            made = graph.call_method(draw.choice(["tanh", "abs"]), (x,))
        elif kind == 6:
            made = graph.call_module("layer", (x,))
        else:
            made = graph.get_attr("weight")
        nodes.append(made)
    unused = [node for node in nodes[2:] if not node.users] or nodes[-1:]
    graph.output(tuple(unused) if draw.randrange(2) else unused[0])
    module = t.fx.GraphModule(root, graph)
    module.graph.eliminate_dead_code()
    module.recompile()
    return module


def inputs(t: Any) -> list[Any]:
    return [ramp(t, 2, 3), ramp(t, 2, 3).flip(0) * 2]


def run(t: Any, module: Any) -> Any:
    module.graph.lint()
    below = [shown(child) for _, child in module.named_children() if hasattr(child, "graph")]
    return shown(module), below, module(*inputs(t))


@pytest.mark.parametrize("seed", range(20))
@compared
def test_equal_calls_of_random_graphs(t: Any, seed: int) -> Any:
    module = random_module(t, seed, 30)
    once = of(t, "passes.dialect.common.cse_pass").CSEPass()(module)
    return run(t, once.graph_module), once.modified


def passes(t: Any) -> Any:
    infra = of(t, "passes.infra.pass_manager")
    order: list[str] = []

    def first(module: Any) -> Any:
        order.append("first")

    def second(module: Any) -> Any:
        order.append("second")
        return of(t, "passes.infra.pass_base").PassResult(module, len(order) < 3)

    wrapped = infra.pass_result_wrapper(first)
    manager = infra.PassManager([second], steps=2, run_checks_after_each_pass=True)
    manager.add_pass(wrapped)
    manager.add_constraint(infra.this_before_that_pass_constraint(wrapped, second))
    manager.add_checks(lambda module: order.append("check"))
    result = manager(t.fx.symbolic_trace(lambda x: x + 1))
    return order, result.modified, [each.__name__ for each in manager.passes]


def test_pass_manager() -> None:
    same_as_pytorch(passes)


@pytest.mark.parametrize(("break_it", "error", "words"), [
    (lambda infra: infra.PassManager().add_checks(lambda a, b: None), TypeError, "one variable"),
    (lambda infra: infra.PassManager([lambda module: 3])(None), Exception, "'<lambda>' pass after the following"),
    (
        lambda infra: infra.PassManager(
            [len, print],
            [
                infra.this_before_that_pass_constraint(len, print), infra.this_before_that_pass_constraint(print, len),
            ],
        ).solve_constraints(),
        RuntimeError, "Circular dependency",
    ),
    (
        lambda infra: infra.PassManager(
            [len, print], [infra.this_before_that_pass_constraint(print, len)]
        ).validate_constraints(),
        RuntimeError, "schedule constraint violated",
    ),
])  # fmt: skip
def test_errors_of_pass_managers(break_it: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        break_it(of(tinytorch, "passes.infra.pass_manager"))
