"""`make_fx`: the text of graphs of ATen's operators as PyTorch writes it, their results, and what is refused."""

from __future__ import annotations

import importlib
import random
from typing import Any

import pytest

import tinytorch
import tinytorch.fx
from tests.fx.programs import ramp
from tests.same import compared, of_each, programs, refused, same_as_pytorch


def make_fx(t: Any, *args: Any, **options: Any) -> Any:
    return importlib.import_module(f"{t.__name__}.fx.experimental.proxy_tensor").make_fx(*args, **options)


def text(t: Any, program: Any, *inputs: Any) -> str:
    """Return the code of a recorded call; it is checked that the code computes the same, also for other numbers."""
    module = make_fx(t, program)(*inputs)
    module.graph.lint()
    for factor in (1, -2):
        given = [each * factor for each in inputs]
        for one, other in zip(leaves(module(*given)), leaves(program(*given)), strict=True):
            assert t.equal(one, other)
    code: str = module.code
    return code


def leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for each in value.values() for leaf in leaves(each)]
    if isinstance(value, (list, tuple)):
        return [leaf for each in value for leaf in leaves(each)]
    return [value]


#: Programs of `t`, and of a matrix and a vector, whose text is PyTorch's.
PROGRAMS = programs("""
    x + 1; (1 - x, 2 * x, x / 2, x - v, x * v, -x); (x**2, x**0.5, 2**x)
    (x > 0, x <= v, x == 1, ~(x > 0), x.abs(), x.sign())
    (x.sum(), x.sum(1), x.sum(0, keepdim=True), x.mean(), x.mean((0, 1)), x.amax(1), x.argmax(1)); x.max(1)
    (x.max(), x.min(), x.std(0), x.var(1, keepdim=True), x.prod(1))
    (x.view(4, 3), x.reshape(2, 6), x.torch(), x.transpose(0, 1), x.permute(1, 0), x.torch().reshape(-1))
    (x[1], x[:, 1:3], x[0, 2], x[:, None], x[..., ::2], x[1:, 0])
    (x.unsqueeze(0), x[None].squeeze(0), x.expand(2, 3, 4), x.flatten(), x.contiguous().clone())
    (x.split(2, 1), x.chunk(2), x.unbind(0), torch.cat([x, x], 1), torch.stack([x, x]))
    (torch.mm(x, x.torch()), torch.mv(x, v), torch.dot(v, v), torch.addmm(x @ x.torch(), x, x.torch()))
    (torch.relu(x), torch.sigmoid(x), torch.tanh(x), x.exp(), x.abs().log(), x.sin().cos(), x.rsqrt())
    (torch.nn.functional.silu(x), torch.nn.functional.gelu(x), torch.nn.functional.relu(x))
    (x.softmax(1), x.log_softmax(0), x.clamp(0, 1), x.cumsum(0), x.tril(), x.triu())
    (x.to(torch.float64), x.int(), (x > 0).float())
    (torch.ones_like(x) * x, torch.zeros(4) + x, torch.ones(3, 4) * x, torch.full((4,), 2.0) * x)
    torch.nn.functional.layer_norm(x, (4,)); torch.nn.functional.linear(x, x); torch.nn.functional.linear(x, x, v[:3])
    torch.nn.functional.max_pool2d(x[None], 2); torch.nn.functional.avg_pool2d(x[None], 2, 1, 1)
    torch.nn.functional.conv2d(x.view(1, 1, 3, 4), torch.ones(1, 1, 3, 3), torch.ones(1), padding=1)
    (torch.nn.functional.mse_loss(x, x * 2), torch.nn.functional.mse_loss(x, x * 2, reduction="sum"))
    (torch.nn.functional.huber_loss(x, x * 2, delta=0.5), torch.nn.functional.soft_margin_loss(x, x, reduction="none"))
    torch.nn.functional.binary_cross_entropy_with_logits(x, x, reduction="sum"); torch.nn.functional.l1_loss(x, x)
    torch.std_mean(x, 1); (x.add(v, alpha=2), torch.sub(x, v, alpha=0.5), torch.var_mean(x, 0, keepdim=True)[1])
    (torch.xlogy(v, 2.0), torch.copysign(x, -1.0), torch.copysign(x, v), torch.maximum(x, v), torch.fmod(x, 2))
    (torch.lerp(x, x * 2, 0.25), torch.nn.functional.max_pool2d(x[None, None], 2, dilation=2))
    torch.where(x > 0, x, x * 2); x.masked_fill(x > 0, 0.0); {"a": x, "b": [x + 1, v]}
    torch.func.vjp(torch.sin, x)[1](x)
""", {}, "x", "v")  # fmt: skip


@pytest.mark.parametrize("number", PROGRAMS)
@compared
def test_text_and_results(t: Any, number: int) -> str:
    return text(t, lambda x, v: PROGRAMS[number](t, x, v), ramp(t, 3, 4), ramp(t, 4))


def written(t: Any) -> Any:
    def program(x: Any) -> Any:
        y = x.clone()
        y.add_(1).mul_(x)
        y[0].copy_(x[1])
        y.relu_()
        return y

    module = make_fx(t, program)(ramp(t, 3, 4))
    module.graph.eliminate_dead_code()
    return module.code.replace("\n    detach = torch.ops.aten.detach.default(relu_);  detach = None", ""), module(
        ramp(t, 3, 4) * 2
    )


def of_module(t: Any) -> Any:
    t.manual_seed(0)
    net = t.nn.Sequential(t.nn.Linear(4, 3), t.nn.ReLU(), t.nn.Linear(3, 2))
    module = make_fx(t, net)(ramp(t, 5, 4))
    lines = [line for line in module.code.splitlines() if "aten.detach" not in line]  # (PyTorch saves a result so)
    return lines, module(ramp(t, 2, 4) * 0 + 1)[:1], sorted(module.state_dict())


def of_containers(t: Any) -> Any:
    def program(pair: Any, options: Any) -> Any:
        return {"sum": pair[0] + pair[1], "scaled": options["scale"] * pair[0]}

    given = ((ramp(t, 3), ramp(t, 3)), {"scale": ramp(t, 3)})
    module = make_fx(t, program)(*given)
    return module.code, module(*given)


def drawn(t: Any) -> Any:
    module = make_fx(t, lambda x: t.rand_like(x) + t.randn(4) + x)(ramp(t, 3, 4))
    t.manual_seed(3)
    once = module(ramp(t, 3, 4))
    t.manual_seed(3)
    return module.code, once, t.equal(once, module(ramp(t, 3, 4)))


def refusals(t: Any) -> Any:
    try:
        make_fx(t, lambda x: x if x.sum() > 0 else -x)(ramp(t, 3))
    except RuntimeError as error:
        return str(error)[:80]
    return None


test_programs = of_each([written, of_module, of_containers, drawn, refusals])


def gradients(t: Any) -> list[Any]:
    functional = t.nn.functional
    weight = ramp(t, 5, 4)
    return [
        t.func.grad(lambda x: functional.linear(x, weight).sin().sum()),
        t.func.grad(lambda x: (x.softmax(1) * x.sigmoid() * x.tanh()).mean() - x.log_softmax(0).sum()),
        t.func.grad(lambda x: ((x / 99).asin().exp() * x).mean()),
        t.func.grad(lambda x: (x.t() @ x).relu().amax(1).sum()),
        lambda x: t.func.vjp(lambda y: y.tanh() @ y.t(), x)[0],
        lambda x: t.autograd.grad((x * x).sum(), x.requires_grad_()) if x.requires_grad else x.sum(0),
    ]


@pytest.mark.parametrize("number", range(6))
@compared(rtol=1e-5, atol=1e-6)
def test_gradients_are_recorded(t: Any, number: int) -> Any:
    function = gradients(t)[number]
    module = make_fx(t, function)(ramp(t, 3, 4))
    return module(ramp(t, 3, 4) / 2), function(ramp(t, 3, 4) / 2)


@pytest.mark.parametrize("seed", range(20))
def test_random_programs(seed: int) -> None:
    """A recorded program computes what it computes, for other numbers too."""
    torch = tinytorch
    functional = torch.nn.functional
    draw = random.Random(seed)
    steps = [
        lambda x, y: x + y, lambda x, y: x * y, lambda x, y: torch.relu(x), lambda x, y: x @ y.t() @ y,
        lambda x, y: x.softmax(-1), lambda x, y: functional.layer_norm(x, x.shape[-1:]), lambda x, y: x - x.mean(0),
        lambda x, y: torch.where(x > y, x, y), lambda x, y: torch.cat([x, y])[: x.shape[0]], lambda x, y: x.t().t(),
        lambda x, y: functional.linear(x, y.t() @ y), lambda x, y: x.clamp(-1, 1), lambda x, y: x.flip(0).cumsum(1),
        lambda x, y: functional.gelu(x).roll(1, 0), lambda x, y: x / (1 + y.abs()), lambda x, y: x.clone().tanh_(),
    ]  # fmt: skip
    chosen = [(draw.choice(steps), draw.randrange(3), draw.randrange(3)) for _ in range(8)]

    def program(a: Any, b: Any) -> Any:
        values = [a, b, a * 0.5]
        for step, i, j in chosen:
            values.append(step(values[-1 - i], values[-1 - j]))
        return values[-1]

    inputs = [ramp(torch, 4, 4), ramp(torch, 4, 4).t() * 2]
    module = make_fx(torch, program)(*inputs)
    module.graph.lint()
    for factor in (1, 3):
        given = [each * factor for each in inputs]
        assert torch.equal(module(*given), program(*given))


@pytest.mark.parametrize(("program", "words"), [
    (lambda torch, x: torch.nn.functional.rrelu(x, training=True), "make_fx"),
    (lambda torch, x: x * torch.empty_like(x).uniform_(), "not recorded|make_fx"),
    (lambda torch, x: torch.linalg.svd(x)[1], "make_fx: no operators of ATen"),
    (lambda torch, x: torch.nn.functional.batch_norm(x, None, None, training=True), "make_fx: no operators"),
])  # fmt: skip
def test_what_is_not_recorded_is_refused(program: Any, words: str) -> None:
    torch = tinytorch
    refused(NotImplementedError, words, lambda: make_fx(torch, lambda x: program(torch, x))(ramp(torch, 3, 4)))


def test_modes() -> None:
    torch = tinytorch
    refused(NotImplementedError, "symbolic sizes", make_fx, torch, torch.sin, tracing_mode="symbolic")
    refused(ValueError, "Unexpected tracing type", make_fx, torch, torch.sin, tracing_mode="unknown")
    table = {torch.ops.aten.sin.default: torch.cos}
    refused(NotImplementedError, "a decomposition of", lambda: make_fx(torch, lambda x: x.sin(), table)(ramp(torch, 3)))


def operators(t: Any) -> Any:
    aten = t.ops.aten
    both = (aten.add, aten.add.Tensor, aten.relu.default)
    shown = [(repr(each), str(each), each.__name__, each.__module__) for each in both]
    x = ramp(t, 3, 4)
    ran = [
        aten.slice.Tensor(x, 1, 1, 3), aten.select.int(x, 0, 1), aten.rsub.Scalar(x, 2), aten._softmax(x, 1, False),
        aten.index.Tensor(x, [None, t.tensor([0, 2])]), aten._to_copy(x, dtype=t.float64), aten.t(x), aten.alias(x),
        aten.convolution(x[None, None], t.ones(1, 1, 2, 2), None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1),
        aten.embedding(x, t.tensor([0, 2])), aten.mse_loss(x, x * 2, 2), aten.constant_pad_nd(x, [1, 1], 2.0),
        aten.native_layer_norm(x, [4], None, None, 1e-5)[0], aten._unsafe_view(x, [4, 3]), aten.scalar_tensor(2.5),
        aten.nll_loss_forward(x, t.tensor([0, 1, 2]), None, 1, -100), aten.sum_to_size(x, [1, 4]),
        aten.cross_entropy_loss(x, t.tensor([0, 1, 2]), None, 1, -100, 0.0), aten._log_softmax(x, 1, False),
        aten.native_batch_norm(x, None, None, t.zeros(4), t.ones(4), False, 0.1, 1e-5)[0],
        aten.huber_loss(x, x * 2, 1, 0.5), aten.binary_cross_entropy_with_logits(x, x.abs(), None, None, 2),
        aten.max_pool2d_with_indices(x[None], [2, 2])[0], aten._adaptive_avg_pool2d(x[None], [2, 2]),
        aten.convolution(x[None, None], t.ones(1, 1, 2, 2), None, [1, 1], [0, 0], [1, 1], True, [0, 0], 1),
    ]  # fmt: skip
    graph = t.fx.symbolic_trace(lambda x: aten.relu(aten.add.Tensor(x, 1))).graph
    written = t.fx.symbolic_trace(lambda x: aten.add_.Tensor(x, 1)).graph
    impure = [node.is_impure() for node in (*graph.nodes, *written.nodes)]
    return shown, ran, str(graph), impure, aten.add.Tensor.overloadpacket is aten.add, aten.add.Tensor.name()


def test_operators() -> None:
    same_as_pytorch(operators)


def test_operators_without_implementation() -> None:
    refused(NotImplementedError, "no operator profiler::unknown", tinytorch.ops.profiler.unknown)
    with pytest.raises(AttributeError, match="has no attribute"):
        tinytorch.ops.aten.add.Tensor.unknown  # noqa: B018
    region = tinytorch.ops.profiler._record_function_enter_new("region")
    tinytorch.ops.profiler._record_function_exit(region)


@compared
def test_custom_operators_are_recorded(t: Any) -> Any:
    library = t.library.Library("tests_fx", "DEF")
    library.define("double(Tensor x) -> Tensor")
    library.impl("double", lambda x: x * 2, "CompositeExplicitAutograd")
    module = t.fx.symbolic_trace(lambda x: t.ops.tests_fx.double(x) + 1)
    return module.code, module(ramp(t, 3))
