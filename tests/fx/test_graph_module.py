"""`GraphModule`: code, changes, copies, pickles and folders, against PyTorch's."""

from __future__ import annotations

import copy
import importlib
import io
import operator
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tinytorch
import tinytorch.fx
from tests.fx.programs import named, net, ramp, shown
from tests.same import of_each, refused

Program = Callable[[Any], Any]


def module_of(t: Any) -> Any:
    t.manual_seed(0)
    return t.fx.symbolic_trace(net(t))


def texts(t: Any) -> Any:
    module = module_of(t)
    return (
        str(module), repr(module), module.print_readable(print_output=False), type(module).__name__, module._get_name(),
    )  # fmt: skip


def readable(t: Any) -> Any:
    module = module_of(t)
    shapes(t, module)
    return module.print_readable(print_output=False, include_stride=True, include_device=True)


def shapes(t: Any, module: Any) -> None:
    importlib.import_module(f"{t.__name__}.fx.passes.shape_prop").ShapeProp(module).propagate(ramp(t, 2, 4))


def nested(t: Any) -> Any:
    inner = t.fx.symbolic_trace(t.nn.Sequential(t.nn.ReLU()))
    graph = t.fx.Graph()
    graph.output(graph.call_module("part.inner", (graph.placeholder("x"),)))
    module = t.fx.GraphModule({"part.inner": inner}, graph, "Outer")
    flat = t.fx.GraphModule({"inner": inner}, renamed_target(graph, "inner"), "Flat")
    return str(module), module.print_readable(False), flat.print_readable(False), module(ramp(t, 3))


def renamed_target(graph: Any, target: str) -> Any:
    made = copy.deepcopy(graph)
    made.find_nodes(op="call_module")[0].target = target
    return made


def from_a_dict(t: Any) -> Any:
    graph = t.fx.Graph()
    x = graph.placeholder("x")
    w = graph.get_attr("deep.weight")
    b = graph.get_attr("deep.shift")
    graph.output(graph.call_function(t.add, (graph.call_module("deep.layer", (x,)), graph.call_method("mul", (w, b)))))
    parts = {"deep.layer": t.nn.ReLU(), "deep.weight": t.nn.Parameter(t.ones(2)), "deep.shift": t.ones(2)}
    module = t.fx.GraphModule(parts, graph)
    return shown(module), module(ramp(t, 2)), list(module.state_dict()), [name for name, _ in module.named_modules()]


def from_a_lacking_dict(t: Any) -> Any:
    graph = t.fx.Graph()
    graph.output(graph.call_module("layer", (graph.placeholder("x"),)))
    return t.fx.GraphModule({}, graph)


def no_graph(t: Any) -> Any:
    module_of(t).graph = 3


def training(t: Any) -> Any:
    model = net(t).eval()
    module = t.fx.symbolic_trace(model)
    return module.training, module.train().training, sorted(dict(module.named_parameters())), list(module.state_dict())


def submodules(t: Any) -> Any:
    module = module_of(t)
    added = [module.add_submodule("new.deep.layer", t.nn.ReLU()), module.add_submodule("weight.layer", t.nn.ReLU())]
    deleted = [
        module.delete_submodule(name) for name in ("layers.1", "layers.9", "weight", "nothing.at.all", "new.deep")
    ]
    names = [name for name, _ in module.named_modules()]
    module.add_submodule("more", t.nn.Sequential(t.nn.ReLU()))
    module.delete_all_unused_submodules()
    return added, deleted, names, [name for name, _ in module.named_modules()]


def unused(t: Any) -> Any:
    module = module_of(t)
    module.graph.output_node().args = (module.graph.find_nodes(op="get_attr")[0],)
    module.graph.eliminate_dead_code()
    module.delete_all_unused_submodules()
    module.recompile()
    return shown(module), [name for name, _ in module.named_modules()], str(module())


def copies(t: Any) -> Any:
    module = module_of(t)
    module.meta["key"] = [1]
    module.graph.output_node().meta["a"] = 1
    deep, flat = copy.deepcopy(module), copy.copy(module)
    with t.no_grad():
        deep.weight.mul_(2)
    x = ramp(t, 2, 4)
    shared = [
        flat.weight is module.weight, deep.weight is module.weight, deep.meta is module.meta,
        deep.graph is module.graph,
    ]  # fmt: skip
    return (
        shown(deep), shown(flat), module(x), deep(x), flat(x), shared, deep.meta, type(deep).__name__,
        deep.graph.output_node().meta,
    )  # fmt: skip


def pickles(t: Any) -> Any:
    module = module_of(t)
    made = pickle.loads(pickle.dumps(module))
    file = io.BytesIO()
    t.save(module, file)
    file.seek(0)
    loaded = t.load(file, weights_only=False)
    x = ramp(t, 2, 4)
    return shown(made), shown(loaded), made(x), loaded(x), module(x), made.training, type(made).__name__


class Scaling(tinytorch.fx.Tracer):
    """A tracer that a pickle refers to."""


def trees(t: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _trees(t)


def _trees(t: Any) -> Any:
    PH = t.fx.PH
    module = t.fx.symbolic_trace(lambda x: {"a": x["b"] + 1, "c": [x["b"]]}, concrete_args={"x": {"b": PH}})
    made = pickle.loads(pickle.dumps(module))
    deep = copy.deepcopy(module)
    x = {"b": ramp(t, 2)}
    return (
        shown(made), made(x), deep(x), shown(deep), t.fx.Interpreter(module).run(x),
        t.fx.Transformer(module).transform()(x),
    )  # fmt: skip


def errors_of_calls(t: Any) -> Any:
    module = t.fx.symbolic_trace(lambda x, y: t.cat([x, y]))
    return module(t.ones(2))


def errors_in_code(t: Any) -> Any:
    module = t.fx.symbolic_trace(lambda x: x.foo)
    try:
        module(1)
    except AttributeError as error:
        return str(error), type(error).__name__


def methods_of_tensor(t: Any) -> Any:
    graph = t.fx.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(t.Tensor.relu, (graph.call_function(t.Tensor.add, (x, 1)),)))
    module = t.fx.GraphModule({}, graph)
    return shown(module), module(ramp(t, 3)), copy.deepcopy(module)(ramp(t, 3))


def replaced_graph(t: Any) -> Any:
    module = module_of(t)
    other = t.fx.symbolic_trace(lambda x: x * 2)
    module.graph = other.graph
    return shown(module), module(ramp(t, 2)), module.graph.owning_module is module


PROGRAMS = named(
    texts, readable, nested, from_a_dict, training, submodules, unused, copies, pickles,
    trees, errors_in_code, replaced_graph, methods_of_tensor,
)  # fmt: skip
REFUSED = named(
    from_a_lacking_dict, no_graph, errors_of_calls, from_nothing=lambda t: t.fx.GraphModule(3, t.fx.Graph())
)


test_modules_are_those_of_pytorch = of_each(PROGRAMS)


test_errors_are_those_of_pytorch = of_each(REFUSED, to_the_word=True)


def test_a_pickle_keeps_the_class_of_the_tracer() -> None:
    model = net(tinytorch)
    module = tinytorch.fx.GraphModule(model, Scaling().trace(model), "Scaled")
    made = pickle.loads(pickle.dumps(module))
    assert made._tracer_cls is Scaling and made.code == module.code


def test_a_failing_line_of_generated_code_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    module = tinytorch.fx.symbolic_trace(lambda x: x[0] + 1)
    with pytest.raises(TypeError):
        module(3)
    text = capsys.readouterr().err
    assert "Call using an FX-traced Module, line 5 of the traced Module's generated forward function:" in text
    assert "getitem = x[0];  x = None" in text and "~~~ <--- HERE" in text


def test_a_graph_module_writes_no_folder(tmp_path: Path) -> None:
    refused(NotImplementedError, "by pickle", module_of(tinytorch).to_folder, tmp_path)


def test_a_graph_module_is_compiled_and_again_after_changes() -> None:
    module = tinytorch.fx.symbolic_trace(net(tinytorch))
    x = ramp(tinytorch, 2, 4)
    compiled = tinytorch.compile(module)
    for _ in range(3):
        assert (compiled(x) == module(x)).all()
    assert "0 ran as Python" in str(compiled.explain())
    for node in module.graph.find_nodes(op="call_function", target=operator.sub):
        node.target = operator.add
    before = module(x)
    module.recompile()
    assert (module(x) != before).any()
    for _ in range(3):
        assert (compiled(x) == module(x)).all()
