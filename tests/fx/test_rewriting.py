"""`replace_pattern` and the matcher, against PyTorch's."""

from __future__ import annotations

import copy
import importlib
from collections.abc import Callable
from typing import Any

from tests.fx.programs import model, named, net, ramp, shown
from tests.same import of_each

Program = Callable[[Any], Any]


def told(matches: Any) -> Any:
    return [(str(each.anchor), [(str(k), str(v)) for k, v in each.nodes_map.items()]) for each in matches]


def replaced(t: Any, program: Any, pattern: Any, replacement: Any, *inputs: Any) -> Any:
    module = t.fx.symbolic_trace(program)
    matches = t.fx.replace_pattern(module, pattern, replacement)
    module.graph.lint()
    return told(matches), shown(module), module(*inputs) if inputs else None


def several(t: Any) -> Any:
    def f(x: Any) -> Any:
        y = t.neg(x) + t.relu(x)
        z = t.neg(y) + t.relu(y)
        return t.neg(z) + t.relu(z) + x

    return replaced(t, f, lambda x: t.neg(x) + t.relu(x), lambda x: x.abs() * 3, ramp(t, 3))


def used_elsewhere(t: Any) -> Any:
    def f(x: Any) -> Any:
        y = t.neg(x)
        return t.relu(y) + y

    return replaced(t, f, lambda x: t.relu(t.neg(x)), lambda x: x * 2, ramp(t, 3))


def several_results(t: Any) -> Any:
    def pattern(x: Any, y: Any) -> Any:
        a = x + y
        return t.relu(a), t.neg(a)

    def replacement(x: Any, y: Any) -> Any:
        return x * 2, y * 3

    def f(x: Any, y: Any) -> Any:
        a = x + y
        return t.relu(a) * t.neg(a)

    return replaced(t, f, pattern, replacement, ramp(t, 3), t.ones(3))


def keywords(t: Any) -> Any:
    def pattern(x: Any) -> Any:
        return t.nn.functional.softmax(x, dim=1)

    def f(x: Any) -> Any:
        return t.nn.functional.softmax(x, 1) + t.nn.functional.softmax(x, 0)

    return replaced(t, f, pattern, lambda x: t.relu(x), ramp(t, 2, 2))


def result_twice(t: Any) -> Any:
    def f(x: Any) -> Any:
        y = t.relu(x)
        return y, y + 1

    return replaced(t, f, lambda x: t.relu(x), lambda x: x.sigmoid() * 2, ramp(t, 2))


def modules(t: Any) -> Any:
    module = t.fx.symbolic_trace(net(t))
    pattern = model(t, lambda self, x: self.linear(x), linear=t.nn.Linear(4, 4))
    scale = t.nn.Parameter(t.ones(4))
    replacement = model(t, lambda self, x: self.other(x) * self.scale, other=t.nn.Tanh(), scale=scale)
    matches = t.fx.replace_pattern(module, t.fx.symbolic_trace(pattern), t.fx.symbolic_trace(replacement))
    names = [name for name, _ in module.named_modules()]
    return told(matches), shown(module), names, sorted(dict(module.named_parameters()))


def with_filters(t: Any) -> Any:
    rewriter = importlib.import_module(f"{t.__name__}.fx.subgraph_rewriter")
    module = t.fx.symbolic_trace(lambda x: (x + 1) * (x + 2) * (x + 3))

    def odd(match: Any, graph: Any, pattern: Any) -> bool:
        return all(node.args[1] % 2 for node in match.nodes_map.values() if node.op == "call_function")

    found = rewriter.replace_pattern_with_filters(
        module, lambda x: x + 7, lambda x: x - 1, match_filters=[odd], ignore_literals=True
    )
    again = rewriter.replace_pattern_with_filters(module, lambda x: x + 2, lambda x: x / 2, [lambda *_: False])
    return told(found), [str(each.replacements) for each in found], again, shown(module)


def by_a_callback(t: Any) -> Any:
    rewriter = importlib.import_module(f"{t.__name__}.fx.subgraph_rewriter")
    module = t.fx.symbolic_trace(lambda x: (x + 1) * (x + 2))

    def make(match: Any, graph: Any, pattern: Any) -> Any:
        number = next(iter(match.nodes_map.values())).args[1]
        return t.fx.symbolic_trace(lambda x: x - number).graph

    found = rewriter.replace_pattern_with_filters(
        module, lambda x: x + 7, ignore_literals=True, replacement_callback=make
    )
    return [str(each.replacements) for each in found], shown(module)


def by_nothing(t: Any) -> Any:
    rewriter = importlib.import_module(f"{t.__name__}.fx.subgraph_rewriter")
    return rewriter.replace_pattern_with_filters(t.fx.symbolic_trace(lambda x: x + 1), lambda x: x + 1)


def matched(t: Any) -> Any:
    matcher = importlib.import_module(f"{t.__name__}.fx.passes.utils.matcher_utils")
    graph = t.fx.symbolic_trace(lambda x, y: t.relu(x + y) + t.relu(y + x)).graph
    pattern = t.fx.symbolic_trace(lambda a, b: t.relu(a + b)).graph
    found = matcher.SubgraphMatcher(pattern).match(graph)
    whole = matcher.SubgraphMatcher(copy.deepcopy(graph), match_output=True, match_placeholder=True).match(graph)
    return [(str(m.placeholder_nodes), str(m.returning_nodes), str(m.nodes_map)) for m in [*found, *whole]]


def matched_in_a_circle(t: Any) -> Any:
    def f(x: Any) -> Any:
        a = t.relu(x)
        return t.neg(t.abs(a) + 0) + a

    def pattern(x: Any, y: Any) -> Any:
        a = t.relu(x)
        return a, t.neg(y)

    return replaced(t, f, pattern, lambda x, y: (x, y))


def empty_pattern(t: Any) -> Any:
    matcher = importlib.import_module(f"{t.__name__}.fx.passes.utils.matcher_utils")
    return matcher.SubgraphMatcher(t.fx.Graph())


def dead_pattern(t: Any) -> Any:
    def pattern(x: Any) -> Any:
        x + 1
        return x * 2

    return t.fx.replace_pattern(t.fx.symbolic_trace(lambda x: x * 2), pattern, lambda x: x)


PROGRAMS = named(
    several, used_elsewhere, several_results, keywords, result_twice, modules, with_filters, by_a_callback, matched,
    matched_in_a_circle,
    one=lambda t: replaced(
        t, lambda x, y: t.relu(x + y) * 2, lambda a, b: a + b, lambda a, b: t.sub(b, a), t.ones(2), ramp(t, 2)
    ),
    overlapping=lambda t: replaced(t, lambda x: x + 1 + 1 + 1 + 1, lambda x: x + 1 + 1, lambda x: x * 5, ramp(t, 3)),
    literals=lambda t: replaced(t, lambda x: (x + 1) * (x + 2), lambda x: x + 1, lambda x: x - 1, ramp(t, 3)),
    literal_for_a_parameter=lambda t: replaced(t, lambda x: x + 1, lambda x, y: x + y, lambda x, y: x * y, ramp(t, 3)),
    same_parameter=lambda t: replaced(
        t, lambda x, y: x * x + x * y, lambda x: x * x, lambda x: x**2, ramp(t, 3), ramp(t, 3)
    ),
    lists=lambda t: replaced(
        t, lambda x, y: t.cat([x, y]) + t.cat([x, x]), lambda x: t.cat([x, x]), lambda x: x.repeat(2), t.ones(2),
        t.ones(2),
    ),
    is_the_result=lambda t: replaced(t, lambda x: t.relu(x), lambda x: t.relu(x), lambda x: x.sigmoid(), ramp(t, 2)),
    nothing_found=lambda t: replaced(t, lambda x: x + 1, lambda x: x * 2, lambda x: x, ramp(t, 2)),
    grown=lambda t: replaced(
        t, lambda x: t.relu(t.relu(t.relu(x))), lambda x: t.relu(x), lambda x: x.relu(), ramp(t, 2)
    ),
)  # fmt: skip
REFUSED = named(
    by_nothing, empty_pattern, dead_pattern,
    other_parameters=lambda t: t.fx.replace_pattern(
        t.fx.symbolic_trace(lambda x: x + 1), lambda x: x + 1, lambda x, y: x + y
    ),
    other_results=lambda t: t.fx.replace_pattern(
        t.fx.symbolic_trace(lambda x: x + 1), lambda x: x + 1, lambda x: (x, x)
    ),
)  # fmt: skip


test_patterns_are_replaced_as_in_pytorch = of_each(PROGRAMS)


test_errors_are_those_of_pytorch = of_each(REFUSED, to_the_word=True)
