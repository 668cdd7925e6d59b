"""`split_module`, passes, the structure of arguments, and normalized arguments, against PyTorch's."""

from __future__ import annotations

import copy
import importlib
from collections import namedtuple
from collections.abc import Callable
from typing import Any

from tests.fx.programs import named, net, ramp, shown
from tests.same import compared, of_each

Program = Callable[[Any], Any]
Pair = namedtuple("Pair", "first second")


def of(t: Any, name: str) -> Any:
    return importlib.import_module(f"{t.__name__}.fx.{name}")


def traced(t: Any) -> Any:
    t.manual_seed(0)
    return t.fx.symbolic_trace(net(t))


def parts(t: Any, number_of: Any, **options: Any) -> Any:
    module = traced(t)
    paths: dict[str, str] = {}
    made = of(t, "passes.split_module").split_module(module, module, number_of, paths, **options)
    made.graph.lint()
    below = [(name, shown(each)) for name, each in made.named_children() if hasattr(each, "graph")]
    x = ramp(t, 2, 4)
    return (
        shown(made), below, paths, made(x), module(x), sorted(made.meta["partition_names"]), sorted(made.state_dict()),
    )  # fmt: skip


def in_many(t: Any) -> Any:
    names = ["linear", "mul", "add", "sub", "layers_0", "layers_1", "sum_1"]
    return parts(t, lambda node: names.index(node.name) // 2, partition_affix="part", keep_original_node_name=True)


def several_results(t: Any) -> Any:
    def f(x: Any, y: Any = 2) -> Any:
        a, b = x + 1, x * y
        return a.relu() + b, a - b, {"x": x}

    module = t.fx.symbolic_trace(f)
    number_of = lambda node: 0 if node.name in ("add", "mul") else 1  # noqa: E731
    made = of(t, "passes.split_module").split_module(module, module, number_of)
    return shown(made), shown(made.submod_0), shown(made.submod_1), made(ramp(t, 3))


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


def normalized(t: Any) -> Any:
    F, schemas = t.nn.functional, t.fx.operator_schemas
    made = [
        schemas.normalize_function(F.relu, (1,)),
        schemas.normalize_function(F.relu, (1,), normalize_to_only_use_kwargs=True),
        schemas.normalize_function(F.dropout, (1,), {"p": 0.1}), schemas.normalize_function(lambda x, y=2: x, (1,)),
        schemas.normalize_function(lambda *x: x, (1,)),
    ]  # fmt: skip
    module = traced(t)
    layer = module.graph.find_nodes(op="call_module")[0]
    return (
        [each and (each.args, each.kwargs) for each in made],
        str(layer.normalized_arguments(module)),
        str(layer.normalized_arguments(module, normalize_to_only_use_kwargs=True)),
    )


def types(t: Any) -> Any:
    schemas = t.fx.operator_schemas
    hints = [
        schemas.create_type_hint(x) for x in ([int, int], [int, bool], (float, float), [], [int, str], int, (bool, int))
    ]
    fits = [
        schemas.type_matches(*pair)
        for pair in (
            (int, int), (int, float), (t.Tensor | int, int), (list[int], int), (list[int], list[int]),
            (list[int], tuple[int, int]), (int | str, str), (list[int], tuple[str, ...]),
            (float, bool), (object, int), (int, t.float32.__class__),
        )
    ]  # fmt: skip
    return [str(each) for each in hints], fits


PROGRAMS = named(
    in_many, several_results, a_pass, structures, registered, normalized, types,
    in_two=lambda t: parts(t, lambda node: 1 if "layers" in node.name or node.name == "sum_1" else 0),
    in_order=lambda t: parts(t, lambda node: int(node.name in ("layers_1", "sum_1")), tuple_return=True),
    in_their_order=lambda t: parts(
        t, lambda node: int(node.op == "call_module" or "sum" in node.name) if node.name > "m" else 7,
        keep_original_order=True, keep_original_input_name=False,
    ),
)  # fmt: skip
REFUSED = named(
    in_a_circle=lambda t: parts(t, lambda node: int(node.name == "mul")),
    no_pass=lambda t: of(t, "passes.infra.pass_base").PassBase(),
    missing_module=lambda t: t.fx.operator_schemas.normalize_module(t.nn.Module(), "nothing", ()),
)


test_passes_are_those_of_pytorch = of_each(PROGRAMS)


test_errors_are_those_of_pytorch = of_each(REFUSED, to_the_word=True)


@compared
def test_a_part_can_be_copied(t: Any) -> Any:
    module = traced(t)
    made = of(t, "passes.split_module").split_module(module, module, lambda node: int(node.name == "sum_1"))
    return copy.deepcopy(made)(ramp(t, 2, 4))
