"""Random sequences of changes of a graph: text, code, users and order stay those of PyTorch's."""

from __future__ import annotations

import copy
import operator
import pickle
import random
from typing import Any

import pytest

import tinytorch
import tinytorch.fx
from tests.same import compared

NAMES = "x x_1 sum add_2 len class a.b a_b_7 1 fooBar _ self torch x__1 ü input".split()
METHODS = "relu sum __add__ fooBar view add_".split()


def argument(draw: random.Random, nodes: list[Any], depth: int = 0) -> Any:
    """Return a random argument of a node."""
    kind = draw.randrange(9)
    if kind < 4 and nodes:
        return draw.choice(nodes)
    if kind == 4 and depth < 2:
        return [argument(draw, nodes, depth + 1) for _ in range(draw.randrange(3))]
    if kind == 5 and depth < 2:
        return tuple([argument(draw, nodes, depth + 1) for _ in range(draw.randrange(3))])
    if kind == 6 and depth < 2:
        return {name: argument(draw, nodes, depth + 1) for name in draw.sample("abc", draw.randrange(3))}
    if kind == 7:
        return slice(argument(draw, nodes, 2), None, draw.choice([None, 2]))
    return draw.choice([1, 2.5, None, True, "text", float("inf"), ...])


def insert(t: Any, draw: random.Random, graph: Any, known: list[Any]) -> None:
    """Insert a random node that uses known ones."""
    functions = [
        t.relu, t.nn.functional.relu, operator.add, operator.getitem, getattr, len, t.linalg.norm, t.Tensor.add,
    ]  # fmt: skip
    kind = draw.randrange(5)
    values = [argument(draw, known) for _ in range(draw.randrange(1, 3))]
    if kind == 0:
        graph.placeholder(draw.choice(NAMES))
    elif kind == 1:
        graph.get_attr(draw.choice(NAMES))
    elif kind == 2:
        graph.call_method(draw.choice(METHODS), tuple(values))
    else:
        options = {"out": argument(draw, known)} if draw.randrange(3) == 0 else {}
        function = draw.choice(functions)
        if function in (operator.add, operator.getitem, getattr):
            values = [*values, "name"][:2]
        name = draw.choice(NAMES) if draw.randrange(3) == 0 else None
        graph.create_node("call_function", function, tuple(values), options, name)


def change(t: Any, draw: random.Random, graph: Any) -> Any:
    """Change a graph at random; return what the change returns, as text."""
    nodes = list(graph.nodes)
    kind = draw.randrange(12)
    if not nodes or kind < 5:
        if not nodes or kind < 3:
            return insert(t, draw, graph, nodes)
        place = draw.randrange(len(nodes))
        if kind == 3:
            with graph.inserting_before(nodes[place]):
                return insert(t, draw, graph, nodes[:place])
        with graph.inserting_after(nodes[place]):
            return insert(t, draw, graph, nodes[: place + 1])
    node, other = draw.choice(nodes), draw.choice(nodes)
    if kind == 5:
        return str(node.replace_all_uses_with(other, lambda user: user is not other))
    if kind == 6 and not node.users:
        return graph.erase_node(node)
    if kind == 7 and node.args:
        return node.update_arg(draw.randrange(len(node.args)), argument(draw, nodes))
    if kind == 8 and node.op == "call_function":
        return node.update_kwarg(draw.choice("abc"), argument(draw, nodes))
    if kind == 9:
        return node._rename(draw.choice(NAMES))
    if kind == 10:
        return draw.choice([node.prepend, node.append])(other)
    if kind == 11 and node.op == "call_function":
        return node.insert_arg(draw.randrange(len(node.args) + 1), argument(draw, nodes))
    return str(node.replace_input_with(other, node.next if node.next.op != "root" else other))


def told(graph: Any) -> Any:
    """Return all that is seen of a graph."""
    code = "" if any(len(node.args) < 1 for node in graph.nodes if node.op == "call_method") else code_of(graph)
    return (
        str(graph), code, [(node.name, str(list(node.users)), str(node.all_input_nodes)) for node in graph.nodes],
        [a < b for a, b in zip(graph.nodes, reversed(graph.nodes), strict=True)], len(graph.nodes),
    )  # fmt: skip


def code_of(graph: Any) -> str:
    try:
        text: str = graph.python_code("self").src
    except (IndexError, TypeError, RecursionError) as error:
        return type(error).__name__
    return text


@pytest.mark.parametrize("seed", range(60))
@compared
def test_random_changes(t: Any, seed: int) -> Any:
    draw = random.Random(seed)
    graph = t.fx.Graph()
    results = []
    for _ in range(40):
        results.append(change(t, draw, graph))
    seen = told(graph)
    errors = []
    for check in (graph.lint, lambda: copy.deepcopy(graph), lambda: graph.eliminate_dead_code(lambda node: False)):
        try:
            check()
        except (RuntimeError, KeyError) as error:
            errors.append((type(error).__name__, str(error).partition("\n")[0]))
    return results, seen, errors, told(graph)


@pytest.mark.parametrize("seed", range(5))
def test_random_graphs_are_pickled(seed: int) -> None:

    draw = random.Random(seed)
    graph = tinytorch.fx.Graph()
    for _ in range(30):
        insert(tinytorch, draw, graph, list(graph.nodes))
    assert str(pickle.loads(pickle.dumps(graph))) == str(graph)
