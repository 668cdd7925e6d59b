"""Partitioner, fuser, splitting by tags, constant folding and other passes against PyTorch's, on random graphs too."""

from __future__ import annotations

import importlib
import operator
import pickle
import random
import sys
from typing import Any

import pytest

import tinytorch
import tinytorch.fx
from tests.fx.programs import net, ramp, shown
from tests.oracle import needs
from tests.same import compared, of_each, same_as_pytorch


def of(t: Any, name: str) -> Any:
    return importlib.import_module(f"{t.__name__}.fx.{name}")


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


@pytest.mark.parametrize("seed", range(40))
@compared
def test_partitions_of_random_graphs(t: Any, seed: int) -> Any:
    module = random_module(t, seed)
    support = of(t, "passes.operator_support")
    draw = random.Random(seed)
    names = draw.sample(["_operator.add", "_operator.mul", "torch.sub", "torch.relu", "torch.sin", "tanh"], 4)
    supported = support.OperatorSupport(dict.fromkeys(names))
    only = support.chain(supported, support.create_op_support(lambda modules, node: node.op != "get_attr"))
    made = of(t, "passes.infra.partitioner").CapabilityBasedPartitioner(
        module, only, allows_single_node_partition=bool(seed % 2), skip_horizontal_fusion=seed % 3 == 0,
        non_compute_ops=["torch.sub"] if seed % 4 == 0 else None,
    )  # fmt: skip
    groups = made.propose_partitions()
    told = [str(list(group.nodes)) for group in groups]
    made.remove_bookend_non_compute_ops(groups)
    groups = [group for group in groups if all(node.op != "output" for node in group.nodes) and group.nodes]
    after = [str(list(group.nodes)) for group in groups]
    return told, after, run(t, made.fuse_partitions(groups))


@pytest.mark.parametrize("seed", range(20))
@compared
def test_splitting_random_graphs_by_tags(t: Any, seed: int) -> Any:
    module = random_module(t, seed)
    tags, place = ["first", "second", "third"], 0
    draw = random.Random(seed)
    for node in module.graph.nodes:
        place = min(2, place + (draw.randrange(5) == 0))
        node.tag = tags[place]
    split = of(t, "passes.split_utils").split_by_tags
    made, paths = split(module, tags, return_fqn_mapping=True, return_tuple=bool(seed % 2))
    return run(t, made), paths


@pytest.mark.parametrize("seed", range(20))
@compared
def test_constants_of_random_graphs(t: Any, seed: int) -> Any:
    module = random_module(t, seed, 20)
    plain = module(*inputs(t))
    made = of(t, "experimental.const_fold").split_const_subgraphs(module)
    constants = made.const_subgraph_module
    return plain, made(*inputs(t)), shown(made), None if constants is None else shown(constants)


@pytest.mark.parametrize("seed", range(20))
@compared
def test_equal_calls_and_sorting(t: Any, seed: int) -> Any:
    module = random_module(t, seed, 30)
    once = of(t, "passes.dialect.common.cse_pass").CSEPass()(module)
    tools = of(t, "passes.tools_common")
    seen = [run(t, once.graph_module), once.modified]
    draw = random.Random(seed)
    nodes = [node for node in module.graph.nodes if node.op not in ("placeholder", "output")]
    for _ in range(4):
        draw.choice(nodes).prepend(draw.choice(nodes))
    for sort in (tools.stable_topological_sort, tools.legalize_graph):
        seen.append(str(sort(module).graph))
    return seen


def fused(t: Any) -> Any:
    module = t.fx.symbolic_trace(net(t))
    nodes = {node.name: node for node in module.graph.nodes}
    groups = [dict.fromkeys([nodes["mul"], nodes["add"]]), dict.fromkeys([nodes["layers_0"], nodes["layers_1"]])]
    made = of(t, "passes.utils.fuser_utils").fuse_by_partitions(module, groups, "part_", always_return_tuple=True)
    compare = of(t, "passes.utils.common").compare_graphs
    return shown(made), shown(made.part_0), compare(made.graph, made.graph), compare(made.graph, made.part_0.graph)


def circle(t: Any) -> Any:
    module = t.fx.symbolic_trace(lambda x: (x + 1) * (x + 1).relu())
    nodes = {node.name: node for node in module.graph.nodes}
    group = dict.fromkeys([nodes["add_1"], nodes["mul"]])
    of(t, "passes.utils.fuser_utils").fuse_by_partitions(module, [group])


def untagged(t: Any) -> Any:
    of(t, "passes.split_utils").split_by_tags(t.fx.symbolic_trace(lambda x: x + 1), ["a"])


def backwards(t: Any) -> Any:
    module = t.fx.symbolic_trace(lambda x: (x + 1) * 2)
    for node in module.graph.nodes:
        node.tag = "second" if node.name == "add" else "first"
    of(t, "passes.split_utils").split_by_tags(module, ["first", "second"])


def unknown_layer(t: Any) -> Any:
    of(t, "passes.param_fetch").extract_attrs_for_lowering(t.nn.Tanh())


test_errors = of_each([circle, untagged, backwards], to_the_word=True)


def supports(t: Any) -> Any:
    support, prop = of(t, "passes.operator_support"), of(t, "passes.shape_prop")
    module = t.fx.symbolic_trace(net(t))
    prop.ShapeProp(module).propagate(ramp(t, 2, 4))
    floats = support.OperatorSupport({
        "_operator.mul": (([t.float32], [t.float64]), {}), "torch.nn.modules.linear.Linear": (([t.float32],), {}),
        "sum": ((None,), {"dim": [t.int64]}), "_operator.add": None,
    })  # fmt: skip
    others = support.OpSupports.decline_if_input_dtype(t.float64)
    named = support.OpSupports.decline_if_node_in_names({"mul"})
    modules = dict(module.named_modules())
    target = of(t, "passes.tools_common").get_node_target
    calls = [node for node in module.graph.nodes if node.op.startswith("call")]
    kinds = (floats, others, named, support.any_chain(floats, named), support.chain(floats, named))
    return [
        (node.name, target(modules, node), [each.is_node_supported(modules, node) for each in kinds]) for node in calls
    ]


def fetched(t: Any) -> Any:
    layers = t.nn.Sequential(t.nn.Conv2d(1, 2, 3), t.nn.BatchNorm2d(2), t.nn.ReLU(), t.nn.MaxPool2d(2))
    module = t.fx.symbolic_trace(layers)
    of(t, "passes.param_fetch").lift_lowering_attrs_to_nodes(module)
    found = [node.attrs_for_lowering for node in module.graph.nodes if node.op == "call_module"]
    return [{key: value for key, value in each.items() if not hasattr(value, "shape")} for each in found]


def annotated(t: Any) -> Any:
    def program(x: Any, y: Any) -> Any:
        return x[0], x[1], y[1]

    graph = t.fx.symbolic_trace(program).graph
    x, y = graph.find_nodes(op="placeholder")
    x.type, y.type = tuple[int, float], list[bool]
    of(t, "passes.annotate_getitem_nodes").annotate_getitem_nodes(graph)
    note = of(t, "annotate").annotate
    noted = t.fx.symbolic_trace(lambda x: note(x + 1, int)).code
    return [str(node.type) for node in graph.nodes], noted, note(3, int)


def sources(t: Any) -> Any:
    match = of(t, "passes.utils.source_matcher_utils")
    module = t.fx.symbolic_trace(net(t))
    for node in module.graph.nodes:
        if node.name in ("linear", "mul"):
            node.meta["source_fn_stack"] = [("one", t.nn.Linear)]
        if node.name == "add":
            node.meta["torch_fn"] = ("two", "x.add")
    found = match.get_source_partitions(module.graph, [t.nn.Linear, "add"])
    told = [
        (key if isinstance(key, str) else key.__name__, [str([p.nodes, p.input_nodes, p.output_nodes]) for p in each])
        for key, each in found.items()
    ]
    one, two = found[t.nn.Linear][0], found["add"][0]
    connected = match.check_subgraphs_connected
    return told, connected(one, two), connected(two, one)


test_programs = of_each([fused, supports, fetched, annotated, sources])


def lazy(t: Any) -> Any:
    lazily = of(t, "_lazy_graph_module")
    with lazily._use_lazy_graph_module(True):
        with lazily._force_skip_lazy_graph_module(), lazily._use_lazy_graph_module(True):
            plain = type(t.fx.symbolic_trace(lambda x: x + 1)).__mro__[1].__name__
        module = t.fx.symbolic_trace(lambda x: x.sin())
        seen = [plain, module._needs_recompile(), "sin" in module.code, module._needs_recompile()]
        next(iter(module.graph.find_nodes(op="call_method", target="sin"))).target = "cos"
        module.recompile()
        again = t.fx.symbolic_trace(module)
        seen += [module._needs_recompile(), again._needs_recompile(), again(ramp(t, 3)), str(again)]
        copied = lazily._LazyGraphModule.from_graphmodule(module)
    return [*seen, copied is module, type(t.fx.symbolic_trace(lambda x: x + 1)).__mro__[1].__name__]


def test_lazy_modules() -> None:
    same_as_pytorch(lazy)


def test_lazy_modules_are_pickled() -> None:
    lazily = of(tinytorch, "_lazy_graph_module")
    with lazily._use_lazy_graph_module(True):
        module = tinytorch.fx.symbolic_trace(tinytorch.nn.ReLU())
        assert isinstance(pickle.loads(pickle.dumps(module)), lazily._LazyGraphModule)


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


@needs("pydot")
@compared
def test_pictures(t: Any) -> Any:
    t.manual_seed(0)
    module = t.fx.symbolic_trace(net(t))
    of(t, "passes.shape_prop").ShapeProp(module).propagate(ramp(t, 2, 4))
    drawer = of(t, "passes.graph_drawer").FxGraphDrawer
    return [
        drawer(module, "net").get_dot_graph().to_string(),
        drawer(module, "net", True, True, False, normalize_args=True).get_main_dot_graph().to_string(),
    ]


def test_pictures_need_pydot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydot", None)
    drawer = tinytorch.fx.passes.graph_drawer.FxGraphDrawer
    with pytest.raises(RuntimeError, match="requires the pydot package"):
        drawer(tinytorch.fx.symbolic_trace(lambda x: x + 1), "sum")
