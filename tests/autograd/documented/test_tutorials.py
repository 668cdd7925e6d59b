"""PyTorch's tutorials on autograd: the statements they make, as programs."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import pytest

from tests.autograd.documented import Page
from tests.oracle import needs_oracle
from tests.same import same_as_pytorch

PAGE = Page()
section = PAGE.section


# Automatic Differentiation with torch.autograd ------------------------------------------------------

basics = section("Automatic Differentiation with torch.autograd")


@basics
def one_layer(torch: Any) -> Any:
    torch.manual_seed(0)
    x, y = torch.ones(5), torch.zeros(3)
    w = torch.randn(5, 3, requires_grad=True)
    b = torch.randn(3, requires_grad=True)
    z = torch.matmul(x, w) + b
    loss = torch.nn.functional.binary_cross_entropy_with_logits(z, y)
    names = z.grad_fn.name(), loss.grad_fn.name()
    loss.backward()
    return names, loss, w.grad, b.grad


@basics
def disabling_by_no_grad_and_detach(torch: Any) -> Any:
    w = torch.ones(5, 3, requires_grad=True)
    with torch.no_grad():
        a = torch.ones(5) @ w
    return a.requires_grad, (torch.ones(5) @ w).detach().requires_grad


@basics
def jacobian_products_accumulate(torch: Any) -> Any:
    inp = torch.eye(4, 5, requires_grad=True)
    out = (inp + 1).pow(2).t()
    found = []
    for _ in range(2):
        out.backward(torch.ones_like(out), retain_graph=True)
        found.append(inp.grad.clone())
    inp.grad.zero_()
    out.backward(torch.ones_like(out), retain_graph=True)
    return found, inp.grad


# A Gentle Introduction to torch.autograd ------------------------------------------------------------

gentle = section("A Gentle Introduction to torch.autograd")


@gentle
def a_vector_valued_function(torch: Any) -> Any:
    a = torch.tensor([2.0, 3.0], requires_grad=True)
    b = torch.tensor([6.0, 4.0], requires_grad=True)
    q = 3 * a**3 - b**2
    q.backward(gradient=torch.tensor([1.0, 1.0]))
    return a.grad == 9 * a**2, b.grad == -2 * b, a.grad


@gentle
def the_graph_excludes_what_needs_no_gradient(torch: Any) -> Any:
    x, y = torch.rand(5, 5), torch.rand(5, 5)
    z = torch.rand((5, 5), requires_grad=True)
    return (x + y).requires_grad, (x + z).requires_grad


@gentle
def finetuning_a_new_last_layer(torch: Any) -> Any:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2))
    for p in model.parameters():
        p.requires_grad = False
    model[2] = torch.nn.Linear(3, 5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    before = [p.detach().clone() for p in model.parameters()]
    for _ in range(2):
        optimizer.zero_grad()
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()
    after = list(model.parameters())
    return [torch.equal(a, b) for a, b in zip(before, after, strict=True)], after[2], after[3]


# The Fundamentals of Autograd -----------------------------------------------------------------------

fundamentals = section("The Fundamentals of Autograd")


@fundamentals
def a_curve_and_its_slope(torch: Any) -> Any:
    a = torch.linspace(0.0, 2.0 * math.pi, steps=25, requires_grad=True)
    b = torch.sin(a)
    c = 2 * b
    d = c + 1
    out = d.sum()
    out.backward()
    return a.grad, b, d.grad_fn.next_functions[0][0].next_functions[0][0].name(), a.grad_fn


@fundamentals
def how_tensors_print(torch: Any) -> Any:
    a = torch.linspace(0.0, 1.0, steps=3, requires_grad=True)
    return [repr(t) for t in (a, a.sin(), 2 * a, a + 1, a.sum(), a.detach(), a[0], a.view(3, 1))]


@fundamentals
def a_tiny_model_trains(torch: Any) -> Any:
    torch.manual_seed(0)

    class Tiny(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = torch.nn.Linear(20, 10), torch.nn.Linear(10, 4)

        def forward(self, x: Any) -> Any:
            return self.last(torch.relu(self.first(x)))

    x, wanted = torch.randn(8, 20), torch.randn(8, 4)
    model = Tiny()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    before = model.last.weight.detach().clone(), model.last.weight.grad
    for _ in range(5):
        (wanted - model(x)).pow(2).sum().backward()
    optimizer.step()
    found = model.last.weight.grad.clone()
    optimizer.zero_grad()
    return before, found, model.last.weight, model.last.weight.grad


@fundamentals
def switching_off_and_on(torch: Any) -> Any:
    a = torch.ones(2, 3, requires_grad=True)
    first = 2 * a
    a.requires_grad = False
    return first, 2 * a, a


@fundamentals
def writing_to_a_leaf(torch: Any) -> Any:
    torch.linspace(0.0, 1.0, steps=3, requires_grad=True).sin_()


@fundamentals
def a_computation_of_unknown_length(torch: Any) -> Any:
    x = torch.tensor([0.3, -0.2, 0.1], requires_grad=True)
    y = x * 2
    while y.detach().norm() < 1000:
        y = y * 2
    y.backward(torch.tensor([0.1, 1.0, 0.0001]))
    return y, x.grad


@fundamentals
def the_functional_interface(torch: Any) -> Any:
    f = torch.autograd.functional

    def double(x: Any, y: Any) -> Any:
        return 2 * torch.exp(x) + 3 * y

    scalars = (torch.tensor([0.5]), torch.tensor([0.25]))
    vectors = (torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0.4, 0.5, 0.6]))

    def power(x: Any) -> Any:
        y = x * 2
        while y.detach().norm() < 1000:
            y = y * 2
        return y

    x, v = torch.tensor([0.3, -0.2, 0.1]), torch.tensor([0.1, 1.0, 0.0001])
    return f.jacobian(double, scalars), f.jacobian(double, vectors), f.vjp(power, x, v=v)


# Understanding requires_grad, retain_grad, leaf and non-leaf tensors --------------------------------

leaves = section("Understanding requires_grad, retain_grad, Leaf, and Non-leaf Tensors")


def network(torch: Any) -> Any:
    x, y = torch.ones(1, 3), torch.ones(1, 2)
    w = torch.ones(3, 2, requires_grad=True)
    b = torch.ones(1, 2, requires_grad=True)
    z = (x @ w) + b
    predicted = torch.nn.functional.relu(z)
    return x, y, w, b, z, predicted, torch.nn.functional.mse_loss(predicted, y)


@leaves
def which_are_leaves(torch: Any) -> Any:
    return [(t.is_leaf, t.requires_grad, t.retains_grad) for t in network(torch)]


@leaves
def which_get_a_gradient(torch: Any) -> Any:
    tensors = network(torch)
    tensors[-1].backward()
    return [t.grad for t in tensors[:4]], tensors[4].grad  # the last one with a warning


@leaves
def which_get_a_gradient_when_retained(torch: Any) -> Any:
    tensors = network(torch)
    for t in tensors[2:]:
        t.retain_grad()
    tensors[-1].backward()
    return [(t.grad, t.retains_grad) for t in tensors]


@leaves
def backward_where_nothing_requires_grad(torch: Any) -> Any:
    x, w, b = torch.ones(1, 3), torch.ones(3, 2), torch.ones(1, 2)
    torch.nn.functional.mse_loss(torch.relu(x @ w + b), torch.ones(1, 2)).backward()


@leaves
def retaining_where_nothing_requires_grad(torch: Any) -> Any:
    torch.ones(1, 3).retain_grad()


@leaves
def the_summary_table(torch: Any) -> Any:
    """By (is_leaf, requires_grad, retains_grad): what requires_grad_ and retain_grad do."""

    def cases() -> list[Any]:
        retained = torch.ones(2, requires_grad=True) * 2
        retained.retain_grad()
        return [torch.ones(2), torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True) * 2, retained]

    found = []
    for k in range(4):
        for act in (lambda t: t.requires_grad_(), lambda t: t.requires_grad_(False), lambda t: t.retain_grad()):
            t = cases()[k]
            try:
                act(t)
            except RuntimeError as error:
                found.append(type(error).__name__)
            else:
                found.append((t.is_leaf, t.requires_grad, t.retains_grad))
    return found


# Visualizing Gradients ------------------------------------------------------------------------------

visualizing = section("Visualizing Gradients")


def deep(torch: Any) -> Any:
    torch.manual_seed(0)
    layers = [layer for _ in range(6) for layer in (torch.nn.Linear(8, 8), torch.nn.Sigmoid())]
    return torch.nn.Sequential(*layers, torch.nn.Linear(8, 1))


@visualizing
def by_hooks_on_modules(torch: Any) -> Any:
    """Forward hooks that retain the gradient of each layer's output."""
    model = deep(torch)
    kept: dict[str, Any] = {}

    def hook(name: str, module: Any, args: Any, output: Any) -> None:
        output.retain_grad()
        kept[name] = output

    handles = [
        layer.register_forward_hook(functools.partial(hook, name))
        for name, layer in model.named_modules()
        if isinstance(layer, torch.nn.Linear)
    ]
    model(torch.ones(4, 8)).mean().backward()
    for handle in handles:
        handle.remove()
    return {name: t.grad.abs().mean().item() for name, t in kept.items()}


@visualizing
def by_hooks_on_tensors(torch: Any) -> Any:
    model = deep(torch)
    found: dict[str, float] = {}

    def hook(name: str, module: Any, args: Any, output: Any) -> None:
        output.register_hook(lambda g: found.update({name: g.abs().mean().item()}))

    for name, layer in model.named_children():
        layer.register_forward_hook(functools.partial(hook, name))
    model(torch.ones(4, 8)).mean().backward()
    return found


@visualizing
def by_backward_hooks_of_modules(torch: Any) -> Any:
    model = deep(torch)
    found: dict[str, Any] = {}
    for name, layer in model.named_children():
        layer.register_full_backward_hook(lambda m, gi, go, name=name: found.update({name: go[0].norm().item()}))
    model(torch.ones(4, 8, requires_grad=True)).mean().backward()
    return found


@visualizing
def a_write_in_place_after_a_backward_hook(torch: Any) -> Any:
    """A hook retains the gradient of what is written over: as seen by the tensor in the end."""
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU(inplace=True))
    with torch.no_grad():
        model[0].weight.copy_(torch.tensor([[1.0, 2.0], [-3.0, 1.0]]))
        model[0].bias.zero_()
    kept = []
    model[0].register_forward_hook(lambda m, a, out: (out.retain_grad(), kept.append(out))[0])
    (model(torch.ones(1, 2)) * 3).sum().backward()
    return kept[0].grad, kept[0]


# Forward-mode Automatic Differentiation -------------------------------------------------------------

forward = section("Forward-mode Automatic Differentiation (tutorial)")


@forward
def a_directional_derivative(torch: Any) -> Any:
    fw = torch.autograd.forward_ad
    torch.manual_seed(0)
    primal, tangent, plain = (torch.randn(3, 3) for _ in range(3))
    with fw.dual_level():
        dual = fw.make_dual(primal, tangent)
        same = fw.unpack_dual(dual).tangent is tangent
        other = fw.unpack_dual(fw.make_dual(primal, tangent.T)).tangent
        out = dual**2 + plain**2
        jvp = fw.unpack_dual(out).tangent
    return same, other is tangent, other, jvp, fw.unpack_dual(out).tangent


@forward
def of_a_module(torch: Any) -> Any:
    fw = torch.autograd.forward_ad
    torch.manual_seed(0)
    model, x = torch.nn.Linear(3, 3), torch.randn(4, 3)
    params = dict(model.named_parameters())
    tangents = {name: torch.rand_like(p) for name, p in params.items()}
    with fw.dual_level():
        for name, p in params.items():
            delattr(model, name)
            setattr(model, name, fw.make_dual(p, tangents[name]))
        first = fw.unpack_dual(model(x)).tangent
    fresh = torch.nn.Linear(3, 3)
    with fw.dual_level():
        duals = {name: fw.make_dual(p, tangents[name]) for name, p in params.items()}
        second = fw.unpack_dual(torch.func.functional_call(fresh, duals, x)).tangent
    return first.detach(), torch.allclose(first, second)


@forward
def by_func_jvp(torch: Any) -> Any:
    torch.manual_seed(0)
    a, b, s, t = (torch.randn(3, 3) for _ in range(4))

    def fn(x: Any, y: Any) -> Any:
        return x**2 + y**2

    return (torch.func.jvp(fn, (a, b), (s, t)), torch.func.jvp(functools.partial(fn, y=b), (a,), (s,)))


# Jacobians, Hessians, hvp, vhp, and more ------------------------------------------------------------

jacobians = section("Jacobians, Hessians, hvp, vhp, and more")


def predict(torch: Any) -> Any:
    return lambda weight, bias, x: torch.nn.functional.linear(x, weight, bias).tanh()


def layer(torch: Any, rows: int = 4, columns: int = 3) -> Any:
    torch.manual_seed(0)
    return torch.randn(rows, columns), torch.randn(rows), torch.randn(columns)


@jacobians
def row_by_row(torch: Any) -> Any:
    w, b, x = layer(torch)
    x.requires_grad_()
    y = predict(torch)(w, b, x)
    return torch.stack([torch.autograd.grad(y, x, v, retain_graph=True)[0] for v in torch.eye(4)])


@jacobians
def jacrev_and_jacfwd(torch: Any) -> Any:
    inputs = layer(torch)
    f = predict(torch)
    return (
        torch.func.jacrev(f, argnums=2)(*inputs),
        torch.func.jacfwd(f, argnums=2)(*inputs),
        torch.func.jacrev(f, argnums=(0, 1))(*inputs),
    )


@jacobians
def hessians_in_three_ways(torch: Any) -> Any:
    inputs = layer(torch)
    f, jacfwd, jacrev = predict(torch), torch.func.jacfwd, torch.func.jacrev
    return (
        torch.func.hessian(f, argnums=2)(*inputs),
        jacfwd(jacfwd(f, argnums=2), argnums=2)(*inputs),
        jacrev(jacrev(f, argnums=2), argnums=2)(*inputs),
    )


@jacobians
def hessian_vector_products(torch: Any) -> Any:
    func = torch.func
    x, t = torch.linspace(-1, 1, 5), torch.linspace(0, 2, 5)

    def f(x: Any) -> Any:
        return x.sin().sum()

    _, vjp = func.vjp(func.grad(f), x)
    return func.jvp(func.grad(f), (x,), (t,))[1], vjp(t)


# Hooks for autograd saved tensors -------------------------------------------------------------------

saved = section("Hooks for autograd saved tensors")


@saved
def what_a_graph_keeps(torch: Any) -> Any:
    a = torch.tensor([1.0, 2.0], requires_grad=True)
    b = torch.tensor([3.0, 4.0], requires_grad=True)
    y = a * b
    return y.grad_fn._saved_self is a, y.grad_fn._saved_other is b


@saved
def hooks_on_part_of_a_graph(torch: Any) -> Any:
    count = []
    x = torch.ones(3, requires_grad=True)
    y = x.exp()
    with torch.autograd.graph.saved_tensors_hooks(
        lambda t: (count.append(t.numel()), t.numpy(force=True).copy())[1], torch.from_numpy
    ):
        z = y.exp()
    (z * y).sum().backward()
    return x.grad, count


@saved
def checkpointing(torch: Any) -> Any:
    torch.manual_seed(0)
    block = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Tanh(), torch.nn.Linear(3, 3))
    x = torch.ones(2, 3, requires_grad=True)
    y = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)
    y.sum().backward()
    return y, x.grad, [p.grad for p in block.parameters()]


@saved
def checkpointing_again(torch: Any) -> Any:
    x = torch.ones(2, 3, requires_grad=True)
    y = torch.utils.checkpoint.checkpoint(lambda x: (x.exp() * x).sin(), x, use_reentrant=True)
    y.sum().backward()
    return y, x.grad


@needs_oracle
@pytest.mark.parametrize("program", PAGE.programs)
def test_same_as_pytorch(program: Callable[[Any], Any]) -> None:
    same_as_pytorch(program)
