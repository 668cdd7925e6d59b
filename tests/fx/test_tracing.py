"""`symbolic_trace`, `Tracer`, `Proxy` and `wrap`: graphs, code, results and errors, against PyTorch's."""

from __future__ import annotations

import inspect
import math
import operator
import types
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Optional

import pytest

import tinytorch
import tinytorch.fx
from tests import declared
from tests.fx.programs import model, named, net, ramp, shown, traced
from tests.oracle import needs_oracle, torch
from tests.same import of_each

Program = Callable[[Any], Any]
Pair = namedtuple("Pair", "first second")


@dataclass
class Both:
    """A dataclass that is passed to functions."""

    left: Any
    right: int


def operators(t: Any) -> Any:
    def f(x: Any, y: Any) -> Any:
        a = (x + y) * 2 - y / 3 + (1 - x) + 2**x + y % 3
        b = (x > y) | (x <= 0) & ~(y == 1) ^ (x != y)
        return (
            a, b, -x, +y, abs(x), x @ y.t(), x // 2, 7 // (y + 9), (x < 1, x >= 2), 5 / (x + 3), 3 @ x if False else x,
        )  # fmt: skip

    return traced(t, f, ramp(t, 3, 3), ramp(t, 3, 3) + 0.1)


def in_place_operators(t: Any) -> Any:
    def f(x: Any) -> Any:
        y = x * 2
        y += x
        y *= 3
        y -= 1
        y /= 2
        return y

    return traced(t, f, ramp(t, 3))


def indexing(t: Any) -> Any:
    def f(x: Any) -> Any:
        return x[0], x[0, 1:, None, ...], x[:, ::2], x[..., -1], x[x[:, 0] > 0], x[[0, 1]], x[1][0]

    return traced(t, f, ramp(t, 3, 4))


def writing_an_item(t: Any) -> Any:
    def f(x: Any) -> Any:
        x[0] = 1
        return x

    return traced(t, f)


def unpacking(t: Any) -> Any:
    def f(x: Any) -> Any:
        a, b = x.split(2)
        (c, d), e = (t.chunk(a, 2), b)
        return a + b, c, d, e

    return traced(t, f, ramp(t, 4))


def attributes(t: Any) -> Any:
    def f(x: Any) -> Any:
        rows, columns = x.shape
        return x.view(columns, rows), x.T, x.dtype, x.shape[0] + 1, x.size(), x.ndim * 2

    return traced(t, f, ramp(t, 2, 3))


def methods(t: Any) -> Any:
    def f(x: Any) -> Any:
        return x.sum(dim=1, keepdim=True).relu_().view(-1).to(t.float64).clamp(min=0).permute(0)

    return traced(t, f, ramp(t, 2, 3))


def functions_of_torch(t: Any) -> Any:
    F = t.nn.functional

    def f(x: Any) -> Any:
        y = F.relu(x) + F.gelu(x, approximate="tanh") + F.silu(x, inplace=False) + t.relu(x) + F.softplus(x)
        y = F.softmax(y, -1) + F.log_softmax(y, dim=1) + F.dropout(y, 0.0, training=False) + F.logsigmoid(y)
        y = F.layer_norm(y, (4,)) + F.pad(y, (1, 1))[:, 1:-1] + t.cat([y, y], 1)[:, :4] + t.stack((y, y))[0]
        y = y + t.einsum("ij,kj->ik", y, t.ones(4, 4)) + t.where(y > 0, y, t.zeros_like(y)) + t.threshold(y, 0.1, 0.2)
        y = y + F.threshold(y, 0.1, 0.2) + F.hardtanh(y) + F.leaky_relu(y, 0.2) + F.elu(y) + F.normalize(y, dim=1)
        return (
            y, t.linalg.norm(y), t.fft.fft(y), t.special.expm1(y), t.split(y, 2, dim=1), t.max(y, 1).values, t.norm(y),
        )  # fmt: skip

    return traced(t, f, ramp(t, 4, 4))


def functions_of_images(t: Any) -> Any:
    F = t.nn.functional

    def f(x: Any, w: Any) -> Any:
        y = F.max_pool2d(F.conv2d(x, w, padding=1), 2) + F.avg_pool2d(x, 2) + F.adaptive_avg_pool2d(x, (4, 4))
        y = F.interpolate(y, scale_factor=2.0, mode="bilinear", align_corners=False) + F.pixel_shuffle(x, 1)
        y = F.batch_norm(y, t.zeros(2), t.ones(2)) + F.group_norm(y, 1) + F.unfold(y, 1).view(1, 2, 8, 8)
        return F.upsample(y, scale_factor=2), F.grid_sample(y, t.zeros(1, 8, 8, 2), align_corners=False)

    return traced(t, f, ramp(t, 1, 2, 8, 8), ramp(t, 2, 2, 3, 3))


def lists_of_operands(t: Any) -> Any:
    F = t.nn.functional

    def f(x: Any, y: Any) -> Any:
        a = t.einsum("ij,jk", (x, y)), t.einsum(x, [0, 1], y, [1, 2], [0, 2]), t.meshgrid([x[0], y[0]])
        b = t.meshgrid(x[0], y[0], indexing="ij"), t.block_diag(x, y), t.atleast_1d([x, y]), t.atleast_2d(x)
        c = t.atleast_3d(x, y), t.cartesian_prod(x[0], y[0]), t.broadcast_tensors(x, y), t.chain_matmul(x, y)
        return a, b, c, F.max_pool2d(x[None], 2, return_indices=True), t.tensordot(x, y, 2), t.cdist(x, y)

    return traced(t, f)


def tensors_and_proxies(t: Any) -> Any:
    def f(x: Any) -> Any:
        ones = t.ones(3)
        a = ones - x, ones // x, ones % x, ones == x, ones != x, ones < x, ones**x, ones.add_(x), ones @ x, ones & x
        return a, ones[x], ones.to(x), ones.view(x.size(0)), t.zeros(3, device=x.device), t.arange(x.shape[0]), x.item()

    return traced(t, f)


def inside_contexts(t: Any) -> Any:
    def f(x: Any) -> Any:
        with t.no_grad(), t.autocast("cpu"):
            return x @ x, t.is_tensor(x), t.is_floating_point(x), t.numel(x), isinstance(x, t.Tensor)

    return traced(t, f)


def losses(t: Any) -> Any:
    F = t.nn.functional

    def f(x: Any, y: Any) -> Any:
        a = F.mse_loss(x, y) + F.l1_loss(x, y, reduction="sum") + F.smooth_l1_loss(x, y)
        a = a + F.cross_entropy(x, y.softmax(1))
        return a + F.nll_loss(x, t.tensor([0, 1])) + F.binary_cross_entropy_with_logits(x, y) + F.kl_div(x, y)

    return traced(t, f)


def annotations(t: Any) -> Any:
    def f(x: t.Tensor, n: int = 2, names: Optional[list[str]] = None, *, scale: float = 1.0) -> t.Tensor:  # type: ignore[name-defined] # noqa: UP045
        return x * n * scale

    f.__annotations__ = {
        "x": t.Tensor, "n": int, "names": Optional[list[str]], "scale": float, "return": t.Tensor,  # noqa: UP045
    }  # fmt: skip
    return traced(t, f, ramp(t, 2))


def unions(t: Any) -> Any:
    def f(x: Any, y: Any) -> Any:
        return x + y

    f.__annotations__ = {"x": t.Tensor | int, "y": dict[str, t.Tensor] | None, "return": tuple[t.Tensor, ...]}
    return traced(t, f)


def stars(t: Any) -> Any:
    def f(x: Any, *args: Any, y: int = 2, **kwargs: Any) -> Any:
        return x + args[0] + kwargs["z"] * y

    return traced(t, f)


def names(t: Any) -> Any:
    def f(input: Any, self: Any, sum: Any, torch: Any, x_1: Any, x: Any, inf: Any) -> Any:
        return input + self + sum + torch + x_1 + x + x.x_1 + inf

    return traced(t, f)


def a_module_twice(t: Any) -> Any:
    layer = t.nn.Linear(2, 2)
    return traced(t, t.nn.Sequential(layer, t.nn.ReLU(), layer), ramp(t, 2, 2))


def lists_of_modules(t: Any) -> Any:
    def forward(self, x):  # type: ignore[no-untyped-def]
        for layer in self.layers:
            x = layer(x)
        return self.named["a"](x) + self.named["b-c"](x)

    layers = t.nn.ModuleList([t.nn.Linear(2, 2) for _ in range(3)])
    named = t.nn.ModuleDict({"a": t.nn.ReLU(), "b-c": t.nn.Tanh()})
    return traced(t, model(t, forward, layers=layers, named=named), ramp(t, 2, 2))


def meta_of_nodes(t: Any) -> Any:
    module = t.fx.symbolic_trace(net(t))
    return [
        [(key, [(k, (path, kind.__name__)) for k, (path, kind) in value.items()]) for key, value in node.meta.items()]
        for node in module.graph.nodes
    ]


def every_layer(t: Any) -> Any:
    class All(t.fx.Tracer):  # type: ignore[misc, name-defined]
        def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
            return False

    model = t.nn.Sequential(
        t.nn.Linear(2, 2), t.nn.BatchNorm1d(2), t.nn.LayerNorm(2), t.nn.ReLU(), t.nn.Dropout(0.1)
    ).eval()
    tracer = All()
    graph = tracer.trace(model)
    module = t.fx.GraphModule(model, graph, "All")
    return shown(module), module(ramp(t, 3, 2)), sorted((k, v[0]) for k, v in tracer.node_name_to_scope.items())


def shapes_of_parameters(t: Any) -> Any:
    def forward(self, x):  # type: ignore[no-untyped-def]
        w = self.weight
        sizes = w.shape[0] == 3 and w.dim() == 2 and w.size() == (3, 2) and w.ndim == 2
        return x @ w if sizes and w.numel() == w.nelement() == 6 else x

    shaped = model(t, forward, weight=t.nn.Parameter(t.ones(3, 2)))
    return str(t.fx.Tracer(param_shapes_constant=True).trace(shaped))


def buffers(t: Any) -> Any:
    class Buffers(t.fx.Tracer):  # type: ignore[misc, name-defined]
        proxy_buffer_attributes = True

    return str(Buffers().trace(net(t))), str(t.fx.Tracer().trace(net(t)))


def own_arguments(t: Any) -> Any:
    class Own(t.fx.Tracer):  # type: ignore[misc, name-defined]
        def create_arg(self, a: Any) -> Any:
            return super().create_arg(list(a) if isinstance(a, set) else a)

    return str(Own().trace(lambda x: t.cat({x, 1} if False else [x], 0) + len({1, 2})))


def function_autowrapped(t: Any) -> Any:
    def scaled(x: Any) -> Any:
        return math.sqrt(x) * x

    return traced(t, lambda x: math.sqrt(x.size(0)) * x + math.pi, ramp(t, 4))


def function_autowrapped_too(t: Any) -> Any:
    space: dict[str, Any] = {"t": t}
    exec("def g(x):\n    return x.sum() * 2\ndef f(x):\n    return g(x) + 1\n", space)
    graph = t.fx.Tracer(autowrap_functions=(space["g"],)).trace(space["f"])
    return str(graph), str(t.fx.Tracer().trace(space["f"])), space["g"](t.ones(2))


WRAPPED = """
def counted(x):
    return len(x) + 1

def g(x, y):
    return x * y

torch.fx.wrap("len")
torch.fx.wrap("g")

@torch.fx.wrap
def h(x, *, scale=2):
    return x * scale

def f(x):
    return g(x, len(x)) + h(x, scale=3) + len([1, 2]) + counted(x)
"""


def module_of(t: Any, source: str, name: str = "wrapping") -> types.ModuleType:
    """Return a module with a source."""
    made = types.ModuleType(name)
    made.torch = t  # type: ignore[attr-defined]
    exec(compile(source, "<source>", "exec"), made.__dict__)
    return made


def wrapped(t: Any) -> Any:
    module = module_of(t, WRAPPED)
    result = traced(t, module.f, ramp(t, 3))
    return result, "len" in vars(module), module.g.__name__, module.f(t.ones(2))


def concrete_arguments(t: Any) -> Any:
    def f(x: Any, flag: bool, n: Any = None) -> Any:
        return x * 2 if flag else x + n

    first = traced(t, f, concrete_args={"flag": True, "n": None})
    module = t.fx.symbolic_trace(f, concrete_args={"flag": False, "n": 3})
    return first, shown(module), module(t.ones(2), False, 3)


def concrete_argument_is_checked(t: Any) -> Any:
    module = t.fx.symbolic_trace(lambda x, n: x + n, concrete_args={"n": 3})
    return module(t.ones(2), 4)


def concrete_containers(t: Any) -> Any:
    def f(x: Any, pair: Any) -> Any:
        return {"sum": x["a"] + x["b"][0], "pair": pair[0] * pair[1]}

    PH = t.fx.PH
    module = t.fx.symbolic_trace(f, concrete_args={"x": {"a": PH, "b": [PH]}, "pair": (PH, 2)})
    return shown(module), module({"a": t.ones(2), "b": [t.ones(2)]}, (t.ones(2), 2)), repr(PH)


def concrete_tuples(t: Any) -> Any:
    def f(*args: Any) -> Any:
        return args

    return str(t.fx.Tracer().trace(lambda x, y: x + y, concrete_args=(t.fx.PH, 2)))


def assertion_recorded(t: Any) -> Any:
    class Asserting(t.fx.Tracer):  # type: ignore[misc, name-defined]
        trace_asserts = True

    def f(x: Any) -> Any:
        assert x.shape[0] == 2
        assert x.dim() == 1, "one dimension"
        return x + 1

    graph = Asserting().trace(f)
    module = t.fx.GraphModule({}, graph)
    module.graph.eliminate_dead_code()
    return str(graph).replace("tinytorch", "torch"), module(t.ones(2)), str(module.graph)


def torch_assert(t: Any) -> Any:
    def f(x: Any) -> Any:
        t._assert(x.shape[0] == 2, "two rows")
        return x + 1

    module = t.fx.symbolic_trace(f)
    kept = module.graph.eliminate_dead_code()
    return shown(module), kept, module(t.ones(2))


def a_foreign_parameter(t: Any) -> Any:
    weight = t.nn.Parameter(t.ones(2))
    return traced(t, lambda x: x + weight)


def a_foreign_module(t: Any) -> Any:
    layer = t.nn.Linear(2, 2)
    return traced(t, lambda x: layer(x))


def two_tracers(t: Any) -> Any:
    first, second = t.fx.Graph(), t.fx.Graph()
    x, y = [t.fx.Proxy(each.placeholder("x")) for each in (first, second)]
    try:
        t.add(x, y)
    except RuntimeError as error:
        return str(error).partition("[")[0]


def proxies(t: Any) -> Any:
    graph = t.fx.Graph()
    x = t.fx.Proxy(graph.placeholder("x"))
    y = x.foo.bar(1)(2) + x.size
    found = repr(x), repr(y), type(x.shape).__name__, str(graph), x == x, hash(x) == hash(x)
    return [each for each in found if isinstance(each, (str, bool))]


def mutable_operations(t: Any) -> Any:
    class Functional(t.fx.Tracer):  # type: ignore[misc, name-defined]
        check_mutable_operations = True

    return Functional().trace(lambda x: t.relu_(x))


def stack_traces(t: Any) -> Any:
    class Recording(t.fx.Tracer):  # type: ignore[misc, name-defined]
        record_stack_traces = True

    class Plain(t.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return (x + 1).relu()

    graph = Recording().trace(Plain())
    return [(node.stack_trace or "").split("\n")[:2] for node in graph.nodes], str(graph)


def proxyable(t: Any) -> Any:
    class Box(metaclass=t.fx.ProxyableClassMeta):
        def __init__(self, x: Any, y: Any) -> None:
            self.x, self.y = x, y

        def total(self) -> Any:
            return self.x + self.y

    box = Box(1, 2)
    return str(t.fx.symbolic_trace(lambda x: (Box(x, 1).total(), box.total())).graph).replace("tinytorch", "torch")


def while_tracing(t: Any) -> Any:
    seen = []

    def f(x: Any) -> Any:
        seen.append(t.fx._symbolic_trace.is_fx_tracing())
        return x

    t.fx.symbolic_trace(f)
    return seen, t.fx._symbolic_trace.is_fx_tracing()


def traced_method(t: Any) -> Any:
    two = model(t, lambda self, x: x)
    type(two).other = lambda self, x: x + 2
    tracer = t.fx.Tracer()
    tracer.traced_func_name = "other"
    first = str(tracer.trace(two))
    tracer.traced_func_name = "third"
    return first, tracer.trace(two)


PROGRAMS = named(
    operators, in_place_operators, indexing, unpacking, attributes, methods, functions_of_torch, functions_of_images,
    losses, annotations, unions, stars, names, a_module_twice, lists_of_modules, meta_of_nodes, every_layer, buffers,
    own_arguments, function_autowrapped, function_autowrapped_too, wrapped, concrete_arguments, concrete_containers,
    concrete_tuples, assertion_recorded, torch_assert, two_tracers, stack_traces, proxyable,
    while_tracing, writing_an_item, lists_of_operands, tensors_and_proxies, inside_contexts,
    shapes_of_parameters, mutable_operations, proxies,
    shifts=lambda t: traced(t, lambda x: (x << 1, x >> 1, 1 << x, 8 >> x, 1 | x, 3 & x, 5 ^ x), t.arange(4)),
    tensor_first=lambda t: traced(t, lambda x: t.ones(3) + x * t.arange(3) - t.ones(3).mul(x), ramp(t, 3)),
    made_of_sizes=lambda t: traced(
        t, lambda x: (x.new_zeros(x.size(0)), x.repeat(x.shape[0], 1), x.reshape(x.shape[0], -1)), ramp(t, 3)
    ),
    containers=lambda t: traced(t, lambda x: {"a": [x, (x + 1, {"b": 2})], "c": None, "d": slice(0, 1)}, ramp(t, 2)),
    a_named_tuple=lambda t: traced(t, lambda x: Pair(x, x + 1), ramp(t, 2)),
    a_dataclass=lambda t: traced(t, lambda x: Both(x, 1)), no_parameters=lambda t: traced(t, lambda: t.ones(2))[:3],
    defaults=lambda t: traced(t, lambda x, y=3, z=(1, 2), name="a", kind=t.float32: x + y, ramp(t, 2)),
    odd_numbers=lambda t: traced(
        t, lambda x: (x + math.inf, x * math.nan, x.to(t.device("cpu")), x.to(t.float64), x + 2j), ramp(t, 2)
    ),
    modules=lambda t: traced(t, net(t), ramp(t, 2, 4)),
    nested_trace=lambda t: traced(
        t, model(t, lambda self, x: self.inner(x) + 1, inner=t.fx.symbolic_trace(
            t.nn.Sequential(t.nn.Linear(2, 2), t.nn.ReLU()))), ramp(t, 2, 2)
    ),
)  # fmt: skip
REFUSED = named(
    concrete_argument_is_checked, a_foreign_parameter, a_foreign_module, traced_method,
    wrap_elsewhere=lambda t: t.fx.wrap("len"), wrap_of_no_function=lambda t: t.fx.wrap(3),
    too_few_concrete=lambda t: t.fx.Tracer().trace(lambda x, y: x + y, concrete_args=(t.fx.PH,)),
    torch_assert_fails=lambda t: t.fx.symbolic_trace(lambda x: t._assert(x.shape[0] == 2, "two rows"))(t.ones(3)),
    control_flow_on_a_parameter=lambda t: traced(
        t, model(t, lambda self, x: x if self.w.shape[0] == 3 else -x, w=t.nn.Parameter(t.ones(3, 2)))
    ),
    branch=lambda t: traced(t, lambda x: x if x.sum() > 0 else -x),
    loop=lambda t: traced(t, lambda x: [each for each in x]), star_call=lambda t: traced(t, lambda x: t.cat(*x)),
    star_star_call=lambda t: traced(t, lambda x: dict(**x)), length=lambda t: traced(t, lambda x: len(x)),
    a_range=lambda t: traced(t, lambda x: [k for k in range(x.size(0))]),
    keys_that_are_refused=lambda t: traced(t, lambda x: {x: 1}),
    arguments_that_are_refused=lambda t: traced(t, lambda x: x.foo(object)),
)  # fmt: skip


test_programs_are_recorded_as_in_pytorch = of_each(PROGRAMS, rtol=1e-4, atol=1e-6)


test_errors_are_those_of_pytorch = of_each(REFUSED, to_the_word=True)


def called(t: Any, name: str, count: int) -> str | None:
    """Return the graph and code of a function that is called with symbolic values; None if it refuses them."""
    graph = t.fx.Graph()
    tracer = t.fx.proxy.GraphAppendingTracer(graph)
    values = [t.fx.Proxy(graph.placeholder(f"p{k}"), tracer) for k in range(count)]
    try:
        operator.attrgetter(name)(t)(*values)
    except (TypeError, ValueError, RuntimeError):
        return None
    return f"{graph}{graph.python_code('self').src}"


#: Functions that PyTorch defines in private modules or under private names, or whose arguments it rearranges.
DIFFERENT = """
    _segment_reduce autograd.backward autograd.grad dsmm lobpcg nn.functional.grouped_mm pca_lowrank segment_reduce spmm
    svd_lowrank sym_sqrt sym_sum
""".split()


@needs_oracle
@pytest.mark.filterwarnings("ignore")
def test_every_function_is_recorded_by_pytorchs_name_and_with_its_arguments() -> None:
    compared = 0
    wrong = {}
    for name, function in declared.FUNCTIONS.items():
        try:
            operator.attrgetter(name)(torch)
            parameters = inspect.signature(function).parameters.values()
        except (AttributeError, ValueError):
            continue
        required = [
            p for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
        theirs = called(torch, name, len(required) or 1)
        if theirs is None or name in DIFFERENT:
            continue
        compared += 1
        ours = called(tinytorch, name, len(required) or 1)
        if ours != theirs:
            wrong[name] = ours, theirs
    assert not wrong and compared > 700


def test_a_trace_leaves_no_replacement_behind() -> None:
    module = tinytorch.nn.Module
    before = module.__call__, module.__getattr__
    with pytest.raises(tinytorch.fx.proxy.TraceError):
        tinytorch.fx.symbolic_trace(lambda x: x if x else None)
    tinytorch.fx.symbolic_trace(net(tinytorch))
    assert (module.__call__, module.__getattr__) == before and not tinytorch.fx.is_fx_tracing()


def test_a_trace_in_a_trace() -> None:
    for program in (net(tinytorch), lambda x: (tinytorch.fx.symbolic_trace(lambda y: y + 1), x * tinytorch.ones(2))[1]):
        tinytorch.fx.Transformer(tinytorch.fx.symbolic_trace(program)).transform()

    class Own(tinytorch.Tensor):
        pass

    tinytorch.fx.symbolic_trace(net(tinytorch))
    assert type(Own([1.0]) + 1) is Own


def test_proxies_without_a_trace_are_asked_too() -> None:
    graph = tinytorch.fx.Graph()
    x = tinytorch.fx.Proxy(graph.placeholder("x"))
    tinytorch.fx.symbolic_trace(lambda y: y + 1)
    assert tinytorch.relu(x).sum().node.graph is graph
    assert [node.name for node in graph.nodes] == ["x", "relu", "sum_1"]
