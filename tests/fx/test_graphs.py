"""`Graph` and `Node`: construction, changes, checks, names, printing and pickles, against PyTorch's."""

from __future__ import annotations

import copy
import operator
import pickle
import sys
from collections.abc import Callable
from typing import Any

import pytest

import tinytorch
import tinytorch.fx
from tests.fx.programs import model, named, net, ramp, shown
from tests.same import of_each

Program = Callable[[Any], Any]


def small(t: Any) -> Any:
    """Return a graph, and its nodes by name."""
    graph = t.fx.Graph()
    x = graph.placeholder("x")
    y = graph.placeholder("y", type_expr=int, default_value=3)
    a = graph.call_function(t.add, (x, y), {"alpha": 2})
    b = graph.call_method("relu", (a,))
    c = graph.call_function(t.cat, ([b, (a, x)],), {"dim": 0})
    graph.output({"first": b, "rest": [a, c]})
    return graph, {node.name: node for node in graph.nodes}


def built(t: Any) -> Any:
    graph, _ = small(t)
    graph.lint()
    return str(graph), graph.python_code("self").src, len(graph.nodes), [repr(node) for node in reversed(graph.nodes)]


def facts(t: Any) -> Any:
    graph, _ = small(t)
    return [
        (
            node.op, str(node.args), str(node.kwargs), str(list(node.users)), str(node.all_input_nodes), str(node.next),
            str(node.prev), node.is_impure(), node.format_node(), node.meta, node.stack_trace,
        )
        for node in graph.nodes
    ]  # fmt: skip


def order(t: Any) -> Any:
    graph, _ = small(t)
    listed = list(graph.nodes)
    before = [(a < b, a > b, a <= b, a >= b) for a in listed for b in listed]
    listed[0].prepend(listed[4])
    return before, [a < b for a in graph.nodes for b in graph.nodes], [node.name for node in graph.nodes]


def moved(t: Any) -> Any:
    graph, n = small(t)
    n["add"].append(n["cat"])
    n["x"].append(n["relu"])
    return [node.name for node in graph.nodes], graph.lint()


def arguments(t: Any) -> Any:
    graph, n = small(t)
    add, relu, cat = n["add"], n["relu"], n["cat"]
    add.update_arg(1, 5)
    add.update_kwarg("alpha", 3)
    relu.insert_arg(1, n["x"])
    cat.args = ((n["x"], slice(n["x"], None)),)
    cat.kwargs = {"dim": n["y"]}
    cat.replace_input_with(n["x"], add)
    users = {name: str(list(node.users)) for name, node in n.items()}
    return str(graph), users, type(cat.args[0]).__name__, type(cat.kwargs).__name__


def replaced(t: Any) -> Any:
    graph, n = small(t)
    with graph.inserting_after(n["add"]):
        new = graph.call_function(t.sub, (n["add"], 1))
    changed = n["add"].replace_all_uses_with(new, lambda user: user is not new)
    n["x"].meta["a"] = 1
    n["y"].replace_all_uses_with(new, delete_user_cb=lambda user: False, propagate_meta=False)
    return (
        str(graph), str(changed), str(n["x"].replace_all_uses_with(n["y"], propagate_meta=True)), str(graph),
        n["y"].meta,
    )  # fmt: skip


def meta_is_not_overwritten(t: Any) -> Any:
    _, n = small(t)
    n["y"].meta["a"] = 1
    n["x"].replace_all_uses_with(n["y"], propagate_meta=True)


def inserted(t: Any) -> Any:
    graph, n = small(t)
    with graph.inserting_before(n["relu"]):
        graph.call_function(operator.neg, (n["add"],), name="negative")
        with graph.inserting_before():
            graph.placeholder("w")
        graph.call_method("abs", (n["add"],), type_expr=t.Tensor)
    with graph.inserting_after():
        graph.call_function(len, (n["x"],))
    return str(graph), graph.python_code("self").src


def erased(t: Any) -> Any:
    graph, n = small(t)
    n["output"].args = (n["relu"],)
    graph.erase_node(n["cat"])
    graph.erase_node(n["cat"])
    return str(graph), len(graph.nodes), str(list(n["x"].users)), [node.name for node in graph.nodes]


def erased_while_used(t: Any) -> Any:
    graph, n = small(t)
    graph.erase_node(n["add"])


def erased_from_another(t: Any) -> Any:
    (first, _), (_, n) = small(t), small(t)
    n["output"].args = ()
    first.erase_node(n["cat"])


def moved_to_another(t: Any) -> Any:
    (_, m), (_, n) = small(t), small(t)
    m["x"].append(n["y"])


def inserted_in_another(t: Any) -> Any:
    (graph, _), (_, n) = small(t), small(t)
    with graph.inserting_before(n["x"]):
        pass


def iterated_while_changed(t: Any) -> Any:
    graph, _ = small(t)
    seen = []
    for node in graph.nodes:
        seen.append(node.name)
        if node.op == "call_method":
            with graph.inserting_after(node):
                new = graph.call_function(t.neg, (node,))
            node.replace_all_uses_with(new, lambda user, new=new: user is not new)
    return seen, str(graph)


def found(t: Any) -> Any:
    graph, _ = small(t)
    wanted = ({"op": "call_function", "target": t.add}, {"op": "placeholder"}, {"op": "call_method", "target": "abs"})
    return [str(graph.find_nodes(**each)) for each in wanted]


def copied(t: Any) -> Any:
    graph, n = small(t)
    n["relu"].meta["seen"] = [1]
    other = t.fx.Graph()
    mapping: dict[Any, Any] = {}
    result = other.graph_copy(graph, mapping)
    again = other.node_copy(n["relu"], lambda node: mapping[node])
    other.output(result)
    deep = copy.deepcopy(graph)
    return str(other), str(result), again.meta, str(deep), [node.meta for node in deep.nodes], deep.lint()


def pickled(t: Any) -> Any:
    graph, n = small(t)
    n["relu"].meta["seen"] = 1
    made = pickle.loads(pickle.dumps(graph))
    made.lint()
    with made.inserting_before(made.output_node()):
        made.call_function(t.add, (1, 2))
    return str(made), [node.meta for node in made.nodes]


def dead_code(t: Any) -> Any:
    def f(x: Any) -> Any:
        unused = x + 1
        unused = unused * 2
        t.rand(x.shape[0]) if False else None
        x[0].add_(1)
        return x * 3

    graph = t.fx.symbolic_trace(f).graph
    first = graph.eliminate_dead_code()
    return first, str(graph), graph.eliminate_dead_code()


def impure(t: Any) -> Any:
    graph = t.fx.Graph()
    x = graph.placeholder("x")
    graph.call_function(t.rand, (2,))
    graph.call_function(t._assert, (x, "text"))
    graph.call_function(operator.setitem, (x, 0, 1))
    graph.call_function(t.manual_seed, (0,))
    graph.call_function(t.bernoulli, (x,))
    graph.call_method("add_", (x, 1))
    graph.output(x)
    impure = [node.is_impure() for node in graph.nodes]
    return impure, graph.eliminate_dead_code(), [node.name for node in graph.nodes]


def impure_modules(t: Any) -> Any:
    graph = t.fx.Graph()
    x = graph.placeholder("x")
    for name in ("a", "b"):
        graph.call_module(name, (x,))
    graph.output(x)
    printing = model(t, lambda self, x: x)
    type(printing)._is_impure = True
    module = t.fx.GraphModule({"a": printing, "b": t.nn.ReLU()}, graph)
    module.graph.eliminate_dead_code()
    return str(module.graph)


def own_impurity(t: Any) -> Any:
    graph, n = small(t)
    n["output"].args = (n["x"],)
    graph.eliminate_dead_code(lambda node: node.op in ("output", "call_method", "placeholder"))
    return str(graph)


def side_effects(t: Any) -> Any:
    @t.fx.has_side_effect
    def show(x: Any) -> None:
        print(x)

    graph = t.fx.Graph()
    graph.call_function(show, (graph.placeholder("x"),))
    graph.output(None)
    graph.eliminate_dead_code()
    return [node.name for node in graph.nodes]


def lint_of_order(t: Any) -> Any:
    graph, n = small(t)
    n["x"].prepend(n["add"])
    graph.lint()


def lint_of_graphs(t: Any) -> Any:
    (graph, n), (_, m) = small(t), small(t)
    n["relu"].args = (m["add"],)
    graph.lint()


def lint_of_names(t: Any) -> Any:
    graph, n = small(t)
    n["relu"].name = "add"
    graph.lint()


def lint_of_targets(t: Any) -> Any:
    module = t.fx.symbolic_trace(net(t))
    next(iter(module.graph.find_nodes(op="call_module"))).target = "layers.7"
    module.graph.lint()


def lint_of_modules(t: Any) -> Any:
    module = t.fx.symbolic_trace(net(t))
    next(iter(module.graph.find_nodes(op="call_module"))).target = "linear.weight"
    module.graph.lint()


def immutable_dict(t: Any) -> Any:
    small(t)[1]["cat"].kwargs["dim"] = 1


def immutables(t: Any) -> Any:
    from importlib import import_module

    made = import_module(f"{t.__name__}.fx.immutable_collections")
    items, named = made.immutable_list([1, 2]), made.immutable_dict(a=1)
    tree = t.utils._pytree.tree_map(lambda x: x + 1, (items, named))
    return (
        items == [1, 2], named == {"a": 1}, pickle.loads(pickle.dumps((items, named))), hash(items) == hash((1, 2)),
        [type(each).__name__ for each in tree], [*items, 3], {**named}, copy.deepcopy(named), items[:1],
    )  # fmt: skip


def mapped(t: Any) -> Any:
    _, n = small(t)
    node = n["cat"]
    names = []
    result = t.fx.map_arg(node.args, lambda x: names.append(x.name) or x.name)
    other = t.fx.node.map_aggregate([1, (2, {"a": slice(1, 2)})], lambda x: None if x is None else x * 2)
    return names, result, other, type(other).__name__


def names(t: Any) -> Any:
    graph = t.fx.Graph()
    wanted = [
        "x", "x", "x_1", "x_1", "x_7", "x_2", "1a", "a b-c", "", "class", "len", "sum_1", "sum", "torch", "_", "x_01",
        "inf", "fooBar", "ReLU", "HTTPServer", "device", "x_1_1", "x_1", "é", "print_2", "None", "self", "pytree",
        "a_b_3", "a_b",
    ]  # fmt: skip
    made = [graph.create_node("placeholder", "x", name=name).name for name in wanted]
    others = [graph.call_method(name, (1,)).name for name in ("__add__", "fooBar", "relu_", "ReLU", "sum", "x")]
    functions = [
        graph.call_function(f).name for f in (len, operator.add, t.sum, t.nn.functional.gelu, t.Tensor.add, t.where)
    ]
    return made, others, functions


def renamed(t: Any) -> Any:
    graph, n = small(t)
    n["add"]._rename("total")
    n["relu"]._rename("total")
    n["cat"].name = "glued"
    return str(graph), graph.python_code("self").src


def own_code(t: Any) -> Any:
    class ListIn(t.fx.CodeGen):  # type: ignore[misc, name-defined]
        def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
            return f"def forward(self, args_list){maybe_return_annotation}:\n    {', '.join(free_vars)} = args_list"

        def additional_globals(self) -> list[tuple[str, Any]]:
            return [("List", list)]

        def process_inputs(self, *inputs: Any) -> Any:
            return inputs[0]

    module = t.fx.symbolic_trace(lambda x, y: x + y)
    module.graph.set_codegen(ListIn())
    module.recompile()
    result = module([t.ones(1), t.ones(1)])
    return module.code, result, t.fx.Interpreter(module).run([t.ones(1), t.ones(1)]), str(copy.deepcopy(module).code)


def attributes_that_are_missing(t: Any) -> Any:
    module = t.fx.symbolic_trace(net(t))
    with module.graph.inserting_before(module.graph.output_node()):
        module.graph.get_attr("nothing")
        module.graph.get_attr("weight")
        module.graph.get_attr("layers.5.weight")


def modules_that_are_missing(t: Any) -> Any:
    module = t.fx.symbolic_trace(net(t))
    with module.graph.inserting_before(module.graph.output_node()):
        module.graph.call_module("nothing.at.all", (1,))


def tensors_in_code(t: Any) -> Any:
    graph = t.fx.Graph()
    x = graph.placeholder("x", default_value=t.float32)
    kind = graph.call_method("to", (x, t.float64), {"memory_format": t.contiguous_format, "device": t.device("cpu")})
    graph.output(
        (kind, t.Size([1, 2]), [1.5, True, None, "a'b"], {"k": (1,)}, slice(None), ..., 2j, float("-inf"), float("nan"))
    )
    return str(graph).replace("tinytorch", "torch"), graph.python_code("self").src


def in_place_code(t: Any) -> Any:
    graph = t.fx.Graph()
    x = graph.placeholder("x")
    y = graph.call_function(operator.iadd, (x, 1))
    z = graph.call_function(operator.setitem, (y, 0, 2))
    w = graph.call_function(operator.imatmul, (y, y))
    graph.output(graph.call_function(getattr, (w, "a b")), type_expr=t.Tensor)
    graph.call_function(getattr, (z, "x", None))
    return graph.python_code("root").src


def tables(t: Any) -> Any:
    import contextlib
    import io

    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        t.fx.symbolic_trace(lambda x: x.relu() + 1).graph.print_tabular()
    return text.getvalue()


PROGRAMS = named(
    built, facts, order, moved, arguments, replaced, inserted, erased, iterated_while_changed, found, copied, pickled,
    dead_code, impure, impure_modules, own_impurity, side_effects, immutables, mapped, names, renamed,
    own_code, attributes_that_are_missing, tensors_in_code, in_place_code,
)  # fmt: skip
REFUSED = named(
    meta_is_not_overwritten, erased_while_used, erased_from_another, moved_to_another, inserted_in_another,
    lint_of_order, lint_of_graphs, lint_of_names, lint_of_targets, lint_of_modules, modules_that_are_missing,
    immutable_dict, found_without_target=lambda t: small(t)[0].find_nodes(op="call_function"),
    wrong_target=lambda t: t.fx.Graph().create_node("call_function", "relu"),
    wrong_text=lambda t: t.fx.Graph().create_node("call_method", 3),
    wrong_operation=lambda t: t.fx.Graph().create_node("call", "relu"),
    wrong_arguments=lambda t: t.fx.Graph().create_node("call_method", "relu", [1]),
    argument_beyond=lambda t: small(t)[1]["add"].insert_arg(5, 1),
    immutable_list=lambda t: small(t)[1]["cat"].args[0].append(1),
)  # fmt: skip


test_graphs_are_those_of_pytorch = of_each(PROGRAMS)


test_errors_are_those_of_pytorch = of_each(REFUSED, to_the_word=True)


def test_a_table_needs_tabulate(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    graph = tinytorch.fx.symbolic_trace(lambda x: x + 1).graph
    monkeypatch.setitem(sys.modules, "tabulate", None)
    with pytest.raises(ImportError):
        graph.print_tabular()
    assert "`print_tabular` relies on the library `tabulate`, which could not be found" in capsys.readouterr().out


def test_a_graph_can_be_run_after_changes() -> None:
    module = tinytorch.fx.symbolic_trace(net(tinytorch))
    x = ramp(tinytorch, 2, 4)
    for node in module.graph.find_nodes(op="call_function", target=operator.sub):
        node.target = operator.add
    assert shown(module)[2].count(" - ") == 1
    module.recompile()
    assert " - " not in module.code
    model = net(tinytorch)
    model.load_state_dict(module.state_dict(), strict=False)
    model.constant = -model.constant
    assert (module(x) == model(x)).all()
