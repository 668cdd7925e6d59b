"""`Interpreter`, `Transformer` and `ShapeProp`, against PyTorch's."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from tests.fx.programs import named, net, ramp, shown
from tests.same import of_each

Program = Callable[[Any], Any]


def module_of(t: Any) -> Any:
    t.manual_seed(0)
    return t.fx.symbolic_trace(net(t))


def run(t: Any) -> Any:
    module, x = module_of(t), ramp(t, 2, 4)
    keeping = t.fx.Interpreter(module, garbage_collect_values=False)
    return t.fx.Interpreter(module).run(x), keeping.run(x), [(str(k), v) for k, v in keeping.env.items()]


def swapped(t: Any) -> Any:
    class Swap(t.fx.Interpreter):  # type: ignore[misc, name-defined]
        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            return t.neg(*args, **kwargs) if target is t.sigmoid else super().call_function(target, args, kwargs)

        def call_method(self, target: Any, args: Any, kwargs: Any) -> Any:
            return args[0].sigmoid() if target == "neg" else super().call_method(target, args, kwargs)

    return Swap(t.fx.symbolic_trace(lambda x: t.sigmoid(x).neg())).run(ramp(t, 3))


def nodes_run(t: Any) -> Any:
    seen = []

    class Seeing(t.fx.Interpreter):  # type: ignore[misc, name-defined]
        def run_node(self, n: Any) -> Any:
            result = super().run_node(n)
            seen.append((n.name, n.op, sorted(map(str, self.env))))
            return result

    Seeing(module_of(t)).run(ramp(t, 2, 4))
    return seen


def from_the_middle(t: Any) -> Any:
    module = module_of(t)
    nodes = {node.name: node for node in module.graph.nodes}
    return t.fx.Interpreter(module).run(ramp(t, 2, 4), initial_env={nodes["sub"]: t.ones(1, 4)})


def defaults(t: Any) -> Any:
    module = t.fx.symbolic_trace(lambda x, y=2, *args: x + y)
    return t.fx.Interpreter(module).run(1), t.fx.Interpreter(module).run(1, 5, 6)


def own_graph(t: Any) -> Any:
    graph = t.fx.Graph()
    graph.output(graph.call_module("linear", (graph.placeholder("x"),)))
    t.manual_seed(0)
    return t.fx.Interpreter(net(t), graph=graph).run(ramp(t, 2, 4))


def argument_missing(t: Any) -> Any:
    try:
        t.fx.Interpreter(t.fx.symbolic_trace(lambda x, y: x + y)).run(1)
    except RuntimeError as error:
        return str(error).partition("\nUse tlparse")[0]


def key_error(t: Any) -> Any:
    try:
        t.fx.Interpreter(t.fx.symbolic_trace(lambda x: x["a"])).run({})
    except RuntimeError as error:
        return str(error).partition("\nUse tlparse")[0], type(error.__cause__).__name__


def attribute_missing(t: Any) -> Any:
    graph = t.fx.Graph()
    graph.output(graph.get_attr("layers.5.weight"))
    return t.fx.Interpreter(net(t), graph=graph).fetch_attr("layers.5.weight")


def value_missing(t: Any) -> Any:
    graph = t.fx.Graph()
    x = graph.placeholder("x")
    y = graph.call_function(t.relu, (x,))
    x.prepend(y)
    graph.output(y)
    interpreter = t.fx.Interpreter(t.nn.Module(), graph=graph)
    interpreter.extra_traceback = False
    return interpreter.run(1)


def transformed(t: Any) -> Any:
    class Swap(t.fx.Transformer):  # type: ignore[misc, name-defined]
        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            return super().call_function(t.sub if target.__name__ == "add" else target, args, kwargs)

        def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
            return super().call_module(target, args, kwargs) * 2

    module = module_of(t)
    made = Swap(module).transform()
    plain = t.fx.Transformer(module).transform()
    with_default = t.fx.Transformer(t.fx.symbolic_trace(lambda x, y=2, *args: x + y)).transform()
    return shown(made), made(ramp(t, 2, 4)), shown(plain), plain(ramp(t, 2, 4)), shown(with_default)


def entered(t: Any) -> Any:
    class Entering(t.fx.Transformer):  # type: ignore[misc, name-defined]
        def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
            return args[0] if target == "layers.1" else super().call_module(target, args, kwargs)

    made = Entering(module_of(t)).transform()
    return shown(made), [node.meta.get("nn_module_stack") is not None for node in made.graph.nodes]


def shape_prop(t: Any) -> Any:
    passes = importlib.import_module(f"{t.__name__}.fx.passes.shape_prop")
    module = t.fx.symbolic_trace(lambda x: (x.permute(0, 2, 3, 1), x.split(1), x.shape, {"a": x.long()}))
    result = passes.ShapeProp(module).propagate(ramp(t, 2, 3, 4, 5))
    metas = []
    for node in module.graph.nodes:
        meta = node.meta.get("tensor_meta")
        metas.append((node.name, str(meta).replace("tinytorch", "torch"), node.meta["type"].__name__))
    images = passes._extract_tensor_metadata(t.ones(2, 3, 4, 5).to(memory_format=t.channels_last))
    return result[0], metas, str(images), passes.TensorMetadata._fields, type(meta).__name__


def shape_prop_fails(t: Any) -> Any:
    passes = importlib.import_module(f"{t.__name__}.fx.passes.shape_prop")
    try:
        passes.ShapeProp(t.fx.symbolic_trace(lambda x: t.cat([x, x[0]]))).propagate(t.ones(2, 2))
    except RuntimeError as error:
        return str(error).partition("\nUse tlparse")[0], type(error.__cause__).__name__


def preserved(t: Any) -> Any:
    module = module_of(t)
    for node in module.graph.nodes:
        node.meta["custom"] = {"from": node.name}
        node.stack_trace = f'File "a.py", line 1, in f\n    {node.name}'
    made = t.fx.Transformer(module).transform()
    return [(node.name, node.meta.get("custom"), node.stack_trace) for node in made.graph.nodes]


PROGRAMS = named(
    run, swapped, nodes_run, from_the_middle, defaults, own_graph, argument_missing, key_error, transformed,
    entered, shape_prop, preserved, shape_prop_fails,
)  # fmt: skip
REFUSED = named(attribute_missing, value_missing)


test_graphs_run_as_in_pytorch = of_each(PROGRAMS)


test_errors_are_those_of_pytorch = of_each(REFUSED, to_the_word=True)
