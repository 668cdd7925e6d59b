"""PyTorch's page "Automatic differentiation package - torch.autograd", section by section."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

from tests.autograd.documented import Page
from tests.oracle import needs_oracle
from tests.same import same_as_pytorch

PAGE = Page()
section = PAGE.section


def differentiably(y: Any) -> None:
    """Run `y.backward(create_graph=True)`, of whose reference cycle PyTorch warns in its first call only."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y.backward(create_graph=True)


# backward -------------------------------------------------------------------------------------------

backward = section("backward")


@backward
def of_several_tensors(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    torch.autograd.backward([x * 2, (x * 3).sum()], [torch.tensor([1.0, 10.0]), None])
    return x.grad


@backward
def of_a_tuple(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    torch.autograd.backward((x.sum(), x.prod()))
    return x.grad


@backward
def of_an_iterator(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    torch.autograd.backward(iter([x.sum(), x.prod()]))
    return x.grad


@backward
def of_no_tensors(torch: Any) -> Any:
    return torch.autograd.backward([])


@backward
def without_a_gradient_for_several_elements(torch: Any) -> Any:
    torch.autograd.backward(torch.ones(2, requires_grad=True) * 2)


@backward
def with_a_gradient_of_wrong_shape(torch: Any) -> Any:
    torch.autograd.backward(torch.ones(2, requires_grad=True) * 2, torch.ones(3))


@backward
def with_a_gradient_that_could_be_broadcast(torch: Any) -> Any:
    torch.autograd.backward(torch.ones(2, requires_grad=True) * 2, torch.tensor(1.0))


@backward
def with_too_many_gradients(torch: Any) -> Any:
    torch.autograd.backward(torch.ones(2, requires_grad=True) * 2, [torch.ones(2), torch.ones(2)])


@backward
def with_a_gradient_of_another_dtype(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    torch.autograd.backward(x * 2, torch.ones(2, dtype=torch.float64))
    return x.grad


@backward
def with_a_gradient_of_integers(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    torch.autograd.backward(x * 2, torch.ones(2, dtype=torch.int64))
    return x.grad


@backward
def with_a_number_as_gradient(torch: Any) -> Any:
    torch.autograd.backward((torch.ones(2, requires_grad=True) * 2).sum(), 2.0)


@backward
def of_what_does_not_require_grad(torch: Any) -> Any:
    torch.autograd.backward(torch.ones(2).sum())


@backward
def of_a_leaf(torch: Any) -> Any:
    x = torch.tensor(2.0, requires_grad=True)
    x.backward()
    x.backward(torch.tensor(5.0))
    return x.grad


@backward
def of_a_list_as_method(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    (x * 2).backward([1.0, 2.0])


@backward
def of_integers(torch: Any) -> Any:
    torch.ones(2, requires_grad=True).argmax().backward()


@backward
def with_grad_variables(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    torch.autograd.backward(x * 2, grad_variables=torch.ones(2))
    return x.grad


@backward
def with_grad_variables_and_grad_tensors(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    torch.autograd.backward(x * 2, torch.ones(2), grad_variables=torch.ones(2))


@backward
def with_inputs(torch: Any) -> Any:
    a, b = torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)
    torch.autograd.backward(a * b, inputs=[a])
    return a.grad, b.grad


@backward
def with_one_tensor_as_inputs(torch: Any) -> Any:
    a, b = torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)
    torch.autograd.backward(a * b, inputs=b)
    return a.grad, b.grad


@backward
def with_no_inputs(torch: Any) -> Any:
    a = torch.tensor(2.0, requires_grad=True)
    torch.autograd.backward(a * a, inputs=[])


@backward
def with_inputs_that_are_not_leaves(torch: Any) -> Any:
    a = torch.tensor(2.0, requires_grad=True)
    b = a * 3
    torch.autograd.backward(b * b, inputs=[b])
    return a.grad, b.grad, b.retains_grad


@backward
def with_inputs_that_do_not_require_grad(torch: Any) -> Any:
    a = torch.tensor(2.0, requires_grad=True)
    torch.autograd.backward(a * a, inputs=[torch.tensor(1.0)])


@backward
def with_inputs_outside_the_graph(torch: Any) -> Any:
    a, b = torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)
    torch.autograd.backward(a * a, inputs=[b])
    return a.grad, b.grad


@backward
def accumulates(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    for _ in range(3):
        (x * x).sum().backward()
    return x.grad


@backward
def with_create_graph(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    differentiably((x**3).sum())
    first = x.grad
    x.grad = None
    first.sum().backward()
    return first, x.grad


@backward
def with_create_graph_and_a_graph_not_retained(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = (x**3).sum()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y.backward(create_graph=True, retain_graph=False)
    y.backward()


@backward
def with_a_gradient_that_requires_grad(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    v = torch.tensor([3.0, 4.0], requires_grad=True)
    (g,) = torch.autograd.grad(x * x, x, v, create_graph=True)
    return torch.autograd.grad(g.sum(), [x, v])


@backward
def with_a_gradient_that_requires_grad_and_no_graph(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    v = torch.tensor([3.0, 4.0], requires_grad=True)
    (x * 2).backward(v)
    return x.grad, v.grad


# grad -----------------------------------------------------------------------------------------------

grad = section("grad")


@grad
def of_one_input(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    return torch.autograd.grad((x * x).sum(), x), x.grad


@grad
def of_several_outputs_and_inputs(torch: Any) -> Any:
    a, b = torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)
    return torch.autograd.grad([a * b, a + b], [a, b], [torch.tensor(1.0), torch.tensor(10.0)])


@grad
def of_intermediates(torch: Any) -> Any:
    a = torch.tensor(2.0, requires_grad=True)
    b = a * 3
    c = b * b
    return torch.autograd.grad(c, [c, b, a])


@grad
def of_an_input_given_twice(torch: Any) -> Any:
    a = torch.tensor(2.0, requires_grad=True)
    return torch.autograd.grad(a * a, [a, a])


@grad
def of_an_unused_input(torch: Any) -> Any:
    a, b = torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)
    return torch.autograd.grad(a * a, [a, b])


@grad
def of_an_unused_input_allowed(torch: Any) -> Any:
    a, b = torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)
    return torch.autograd.grad(a * a, [a, b], allow_unused=True)


@grad
def of_an_unused_input_materialized(torch: Any) -> Any:
    a, b = torch.tensor(2.0, requires_grad=True), torch.tensor([3.0, 4.0], requires_grad=True)
    return torch.autograd.grad(a * a, [a, b], materialize_grads=True)


@grad
def materialized_but_not_allowed(torch: Any) -> Any:
    a = torch.tensor(2.0, requires_grad=True)
    return torch.autograd.grad(a * a, [a], allow_unused=False, materialize_grads=True)


@grad
def materialized_with_create_graph(torch: Any) -> Any:
    a, b = torch.tensor(2.0, requires_grad=True), torch.tensor([3.0, 4.0], requires_grad=True)
    return torch.autograd.grad(a * a, [a, b], create_graph=True, materialize_grads=True)


@grad
def of_inputs_that_do_not_require_grad(torch: Any) -> Any:
    a = torch.tensor(2.0, requires_grad=True)
    return torch.autograd.grad(a * a, torch.tensor(1.0))


@grad
def of_outputs_that_do_not_require_grad(torch: Any) -> Any:
    a = torch.tensor(2.0, requires_grad=True)
    return torch.autograd.grad(torch.tensor(1.0), a)


@grad
def of_no_inputs(torch: Any) -> Any:
    a = torch.tensor(2.0, requires_grad=True)
    return torch.autograd.grad(a * a, [])


@grad
def only_inputs_false(torch: Any) -> Any:
    a = torch.tensor(2.0, requires_grad=True)
    return torch.autograd.grad(a * a, a, only_inputs=False)


@grad
def of_many_elements_without_grad_outputs(torch: Any) -> Any:
    a = torch.ones(2, requires_grad=True)
    return torch.autograd.grad(a * a, a)


@grad
def of_high_order(torch: Any) -> Any:
    x = torch.tensor(2.0, requires_grad=True)
    y = x**5
    found = []
    for _ in range(5):
        (y,) = torch.autograd.grad(y, x, create_graph=True)
        found.append(y.detach())
    return found


@grad
def by_an_edge(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x.exp()
    edge = torch.autograd.graph.get_gradient_edge(y)
    return torch.autograd.grad((y * y).sum(), [edge, torch.autograd.graph.get_gradient_edge(x)])


@grad
def from_an_edge(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x.exp().sum()
    edge = torch.autograd.graph.get_gradient_edge(y)
    return torch.autograd.grad(edge, x)


@grad
def from_an_edge_with_a_gradient(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x.exp()
    edge = torch.autograd.graph.get_gradient_edge(y)
    return torch.autograd.grad(edge, x, torch.tensor([1.0, 10.0]))


@grad
def batched(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    return torch.autograd.grad(x * x, x, torch.eye(2), is_grads_batched=True)


@grad
def does_not_touch_grad(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    x.grad = torch.ones(2)
    old = x.grad
    torch.autograd.grad((x * x).sum(), x)
    return x.grad is old, x.grad


@grad
def a_gradient_without_a_graph_does_not_require_grad(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (g,) = torch.autograd.grad((x * x).sum(), x)
    return g, g.grad_fn is None


@grad
def a_gradient_that_is_constant_has_no_graph(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (g,) = torch.autograd.grad((x * 2).sum(), x, create_graph=True)
    return g.requires_grad, g.detach()


# Default gradient layouts ---------------------------------------------------------------------------

layouts = section("Default gradient layouts")


def strides_of_grad(torch: Any, parameter: Any, *gradients: Any) -> Any:
    """Return the strides of `.grad` after these gradients arrived, one by one."""
    p = parameter.detach().requires_grad_()
    found = [p.stride()]
    for g in gradients:
        p.backward(g)
        found.append((p.grad.stride(), p.grad.clone(memory_format=torch.contiguous_format)))
    return found


@layouts
def dense_parameters_give_their_strides(torch: Any) -> Any:
    base = torch.arange(24.0)
    g = torch.arange(24.0)
    return [
        strides_of_grad(torch, base.view(4, 6), g.view(4, 6)),
        strides_of_grad(torch, base.view(4, 6).t(), g.view(6, 4)),
        strides_of_grad(torch, base.view(2, 3, 4).permute(2, 0, 1), g.view(4, 2, 3)),
        strides_of_grad(torch, base.view(2, 3, 4).permute(1, 2, 0), g.view(3, 4, 2)),
    ]


@layouts
def gradients_with_other_strides(torch: Any) -> Any:
    base = torch.arange(24.0)
    g = torch.arange(24.0)
    return [
        strides_of_grad(torch, base.view(4, 6), g.view(6, 4).t()),
        strides_of_grad(torch, base.view(4, 6).t(), g.view(4, 6).t()),
        strides_of_grad(torch, base.view(4, 6), torch.tensor(2.0).expand(4, 6)),
        strides_of_grad(torch, base.view(4, 6).t(), torch.tensor(2.0).expand(6, 4)),
        strides_of_grad(torch, base.view(4, 6), torch.ones(8, 12)[::2, ::2]),
    ]


@layouts
def others_give_rows(torch: Any) -> Any:
    base = torch.arange(24.0)
    return [
        strides_of_grad(torch, base[::2], torch.ones(12)),
        strides_of_grad(torch, base.view(4, 6)[:, :3], torch.ones(4, 3)),
        strides_of_grad(torch, base.view(4, 6)[:, :3].t(), torch.ones(3, 4)),
        strides_of_grad(torch, base[:1].expand(3), torch.ones(3)),
        strides_of_grad(torch, base[:4].view(4, 1).expand(4, 3), torch.ones(4, 3)),
    ]


@layouts
def a_weight_used_transposed(torch: Any) -> Any:
    w = torch.arange(6.0).view(2, 3).requires_grad_()
    (torch.ones(4, 3) @ w.t()).sum().backward()
    v = torch.arange(6.0).view(2, 3).t().requires_grad_()
    (torch.ones(4, 3) @ v).sum().backward()
    return w.grad.stride(), w.grad, v.stride(), v.grad.stride(), v.grad


@layouts
def a_sum_gives_a_full_gradient(torch: Any) -> Any:
    x = torch.ones(3, 4, requires_grad=True)
    x.sum().backward()
    y = torch.ones(4, 3).t().requires_grad_()
    y.sum().backward()
    return x.grad.stride(), y.grad.stride(), x.grad.is_contiguous()


@layouts
def accumulation_is_in_place(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    (x * 2).sum().backward()
    old = x.grad
    pointer = old.data_ptr()
    (x * 3).sum().backward()
    return x.grad is old, x.grad.data_ptr() == pointer, old, old._version


@layouts
def accumulation_in_place_keeps_strides(torch: Any) -> Any:
    base = torch.arange(24.0)
    return [
        strides_of_grad(torch, base.view(4, 6), torch.ones(4, 6), torch.ones(6, 4).t()),
        strides_of_grad(torch, base.view(4, 6).t(), torch.ones(6, 4), torch.ones(6, 4)),
    ]


@layouts
def with_create_graph_grad_is_replaced(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (x * x).sum().backward()
    old = x.grad
    differentiably((x**3).sum())
    new = x.grad
    result = new is old, old, new, new.grad_fn.name()
    x.grad = None
    return result


@layouts
def with_create_graph_from_none(torch: Any) -> Any:
    x = torch.ones(4, 6).t().requires_grad_()
    differentiably((x**3).sum())
    g, x.grad = x.grad, None
    return g.stride(), g.requires_grad, g.grad_fn is not None


@layouts
def after_create_graph_without(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    differentiably((x**3).sum())
    old = x.grad
    (x * x).sum().backward()
    new, x.grad = x.grad, None
    return new is old, new.requires_grad, new.detach()


@layouts
def the_gradient_given_is_not_taken_over(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    v = torch.tensor([1.0, 2.0])
    x.backward(v)
    shared = x.grad.data_ptr() == v.data_ptr()
    x.grad.zero_()
    return shared, v


@layouts
def two_leaves_never_share_a_gradient(torch: Any) -> Any:
    a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    (a + b).sum().backward()
    a.grad.mul_(5)
    return b.grad, a.grad


@layouts
def grad_does_not_require_grad(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    (x * x).sum().backward()
    return x.grad, x.grad.is_leaf, x.grad.grad_fn is None


@layouts
def zero_grad_of_a_model(torch: Any) -> Any:
    model = torch.nn.Linear(2, 1)
    model(torch.ones(1, 2)).sum().backward()
    model.zero_grad()
    first = model.weight.grad
    model(torch.ones(1, 2)).sum().backward()
    old = model.weight.grad
    model.zero_grad(set_to_none=False)
    return first, model.weight.grad is old, old


@layouts
def zero_grad_of_an_optimizer(torch: Any) -> Any:
    w = torch.ones(4, 6).t().requires_grad_()
    optimizer = torch.optim.SGD([w], lr=0.1)
    w.sum().backward()
    optimizer.zero_grad(set_to_none=False)
    kept = w.grad.stride(), w.grad.clone()
    optimizer.zero_grad()
    return kept, w.grad


manual = section("Manual gradient layouts")


@manual
def strides_assigned_before_are_kept(torch: Any) -> Any:
    x = torch.ones(4, 6, requires_grad=True)
    x.grad = torch.zeros(6, 4).t()
    mine = x.grad
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch finds that slow, and says so once
        (x * 2).sum().backward()
    return x.grad is mine, x.grad.stride(), x.grad.contiguous()


@manual
def assigned_with_another_shape(torch: Any) -> Any:
    torch.ones(2, requires_grad=True).grad = torch.ones(3)


@manual
def assigned_with_another_dtype(torch: Any) -> Any:
    torch.ones(2, requires_grad=True).grad = torch.ones(2, dtype=torch.float64)


@manual
def assigned_what_is_no_tensor(torch: Any) -> Any:
    torch.ones(2, requires_grad=True).grad = 5


@manual
def assigned_itself(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    x.grad = x


@manual
def deleted(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    x.grad = torch.ones(2)
    del x.grad
    return x.grad


@manual
def assigned_where_nothing_requires_grad(torch: Any) -> Any:
    x = torch.ones(2)
    x.grad = torch.ones(2)
    return x.grad, x.requires_grad


@manual
def assigned_a_gradient_that_requires_grad(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    x.grad = torch.ones(2, requires_grad=True)
    (x * 2).sum().backward()
    return x.grad.requires_grad, x.grad.detach()


@manual
def a_view_assigned(torch: Any) -> Any:
    everything = torch.zeros(5)
    a, b = torch.ones(2, requires_grad=True), torch.ones(3, requires_grad=True)
    a.grad, b.grad = everything[:2], everything[2:]
    (a.sum() * 2 + b.sum() * 3).backward()
    return everything


# Variable (deprecated) ------------------------------------------------------------------------------

variable = section("Variable (deprecated)")


@variable
def returns_tensors(torch: Any) -> Any:
    x = torch.autograd.Variable(torch.ones(2))
    y = torch.autograd.Variable(torch.ones(2), requires_grad=True)
    return type(x) is torch.Tensor, x, y, isinstance(y, torch.autograd.Variable)


@variable
def its_methods_are_those_of_tensors(torch: Any) -> Any:
    x = torch.autograd.Variable(torch.ones(2), requires_grad=True)
    x.register_hook(lambda g: g * 2)
    (x * 3).sum().backward()
    return x.grad, x.detach(), x.data


@variable
def data_is_data(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    shared = x.data.data_ptr() == x.data_ptr()
    x.data = torch.zeros(3)
    return shared, x, x.data.requires_grad, x._version


@variable
def factories_instead(torch: Any) -> Any:
    torch.manual_seed(0)
    return torch.randn((2, 3, 4), requires_grad=True)


# Tensor autograd functions --------------------------------------------------------------------------


@section("Tensor.grad")
def none_by_default(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    return x.grad, torch.ones(2).grad


@section("Tensor.grad")
def of_a_result_warns(torch: Any) -> Any:
    return (torch.ones(2, requires_grad=True) * 2).grad


@section("Tensor.requires_grad")
def that_it_is_true_does_not_mean_that_grad_is_filled(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.sum().backward()
    return y.requires_grad, y.is_leaf, y.grad, x.grad


@section("Tensor.requires_grad_")
def the_example_of_its_docstring(torch: Any) -> Any:
    saved_weights = [0.1, 0.2, 0.3, 0.25]
    loaded_weights = torch.tensor(saved_weights)
    weights = loaded_weights * 2  # preprocess
    weights.requires_grad_()
    out = weights.pow(2).sum()
    out.backward()
    return weights.grad, weights


@section("Tensor.is_leaf")
def the_example_of_its_docstring_leaf(torch: Any) -> Any:
    a = torch.rand(10, requires_grad=True)
    c = torch.rand(10, requires_grad=True) + 2
    d = torch.rand(10) + 2
    e = torch.rand(10).requires_grad_()
    f = torch.rand(10, requires_grad=True).double()
    g = torch.rand(10).double().requires_grad_()
    h = torch.rand(10, requires_grad=True).to("cpu")
    return [(t.is_leaf, t.requires_grad) for t in (a, c, d, e, f, g, h)]


tensor_backward = section("Tensor.backward")


@tensor_backward
def with_gradient_as_keyword(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    (x * 2).backward(gradient=torch.tensor([1.0, 2.0]), retain_graph=True)
    return x.grad


@tensor_backward
def with_inputs_as_keyword(torch: Any) -> Any:
    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    (x * y).sum().backward(inputs=[x])
    return x.grad, y.grad


@tensor_backward
def of_one_element_in_two_dimensions(torch: Any) -> Any:
    x = torch.ones(1, 1, requires_grad=True)
    (x * 2).backward()
    return x.grad


@tensor_backward
def returns_none(torch: Any) -> Any:
    return torch.ones(1, requires_grad=True).sum().backward()


detach = section("Tensor.detach")


@detach
def never_requires_grad(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    y = (x * 2).detach()
    return y, y.grad_fn is None, y._base is None


@detach
def shares_memory(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    y = x.detach()
    y[0] = 5
    return x, y.data_ptr() == x.data_ptr(), x._version


@detach
def in_the_middle_of_a_graph(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    (y * y.detach()).sum().backward()
    return x.grad


@detach
def a_write_to_it_breaks_backward(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x.exp()
    y.detach().zero_()
    y.sum().backward()


@detach
def resize_of_it(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    y = x.detach()
    z = y.unsqueeze(0)
    z += 1
    return x, z.shape


@detach
def forward_gradients_are_cut(torch: Any) -> Any:
    fw = torch.autograd.forward_ad
    with fw.dual_level():
        x = fw.make_dual(torch.ones(2), torch.ones(2))
        return fw.unpack_dual(x.detach()).tangent is None, fw.unpack_dual(x * 2).tangent


detach_ = section("Tensor.detach_")


@detach_
def makes_a_leaf(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    z = y.detach_()
    return z is y, y, y.is_leaf, y.grad_fn


@detach_
def of_what_is_a_leaf_already(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    return x.detach_(), x.requires_grad


@detach_
def of_a_view(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True) * 1
    x[0].detach_()


@detach_
def of_a_view_of_a_plain_tensor(torch: Any) -> Any:
    x = torch.ones(2)
    return x[0].detach_()


@detach_
def does_not_change_what_was_computed(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    z = y * 3
    y.detach_()
    z.sum().backward()
    return x.grad, z


hooks = section("Tensor.register_hook")


@hooks
def the_example_of_its_docstring_hook(torch: Any) -> Any:
    v = torch.tensor([0.0, 0.0, 0.0], requires_grad=True)
    h = v.register_hook(lambda grad: grad * 2)
    v.backward(torch.tensor([1.0, 2.0, 3.0]))
    first = v.grad.clone()
    h.remove()
    v.backward(torch.tensor([1.0, 2.0, 3.0]))
    return first, v.grad


@hooks
def where_nothing_requires_grad(torch: Any) -> Any:
    torch.ones(2).register_hook(lambda g: g)


@hooks
def that_returns_another_shape(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    x.register_hook(lambda g: torch.ones(3))
    x.sum().backward()


@hooks
def that_returns_another_dtype(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    x.register_hook(lambda g: g.double())
    x.sum().backward()


@hooks
def that_returns_no_tensor(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    x.register_hook(lambda g: 5)
    x.sum().backward()


@hooks
def that_raises(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)

    def hook(g: Any) -> Any:
        raise KeyError("mine")

    x.register_hook(hook)
    x.sum().backward()


@hooks
def as_a_context(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    with x.register_hook(lambda g: g * 10):
        x.sum().backward()
    x.sum().backward()
    return x.grad


@hooks
def the_mode_in_which_they_run(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    seen = []
    x.register_hook(lambda g: seen.append((torch.is_grad_enabled(), g.requires_grad)))
    (x * x).sum().backward()
    torch.autograd.grad((x * x).sum(), x, create_graph=True)
    return seen


@hooks
def one_sum_for_a_leaf_used_twice(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    seen = []
    x.register_hook(lambda g: seen.append(g.tolist()))
    (x * 2 + x * 3).sum().backward()
    return seen


@hooks
def clipping(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 100
    y.register_hook(lambda g: g.clamp(-0.5, 0.5))
    (y * y).sum().backward()
    return x.grad


@hooks
def that_are_differentiated(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    y.register_hook(lambda g: g * y)
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    return g, torch.autograd.grad(g.sum(), x)


after = section("Tensor.register_post_accumulate_grad_hook")


@after
def of_a_result(torch: Any) -> Any:
    (torch.ones(2, requires_grad=True) * 2).register_post_accumulate_grad_hook(lambda p: None)


@after
def where_nothing_requires_grad_post(torch: Any) -> Any:
    torch.ones(2).register_post_accumulate_grad_hook(lambda p: None)


@after
def several_of_them(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    seen = []
    x.register_post_accumulate_grad_hook(lambda p: seen.append((1, p is x, torch.is_grad_enabled())))
    x.register_post_accumulate_grad_hook(lambda p: seen.append((2, p.grad.tolist())))
    x.sum().backward()
    return seen


@after
def freeing_the_gradient_at_once(torch: Any) -> Any:
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
    optimizers = {p: torch.optim.SGD([p], lr=0.1) for p in model.parameters()}

    def step(p: Any) -> None:
        optimizers[p].step()
        optimizers[p].zero_grad()

    for p in model.parameters():
        p.register_post_accumulate_grad_hook(step)
    for _ in range(3):
        model(torch.ones(4, 2)).sum().backward()
    return [(p.detach(), p.grad) for p in model.parameters()]


retain = section("Tensor.retain_grad")


@retain
def of_a_result_retained(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    before = y.retains_grad
    y.retain_grad()
    y.retain_grad()
    (y * y).sum().backward()
    return before, y.retains_grad, y.grad, x.retains_grad


@retain
def of_a_leaf_nothing(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    x.retain_grad()
    return x.retains_grad


@retain
def where_nothing_requires_grad_retain(torch: Any) -> Any:
    torch.ones(2).retain_grad()


@retain
def accumulates_retained(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    y.retain_grad()
    y.sum().backward(retain_graph=True)
    first = y.grad
    y.sum().backward()
    return y.grad, y.grad is first, first


# Function and its context ---------------------------------------------------------------------------

function = section("Function")


@function
def the_example_of_its_docstring_function(torch: Any) -> Any:
    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, i: Any) -> Any:
            result = i.exp()
            ctx.save_for_backward(result)
            return result

        @staticmethod
        def backward(ctx: Any, grad_output: Any) -> Any:
            (result,) = ctx.saved_tensors
            return grad_output * result

    x = torch.tensor([0.0, 1.0], requires_grad=True)
    y = Exp.apply(x)
    y.sum().backward()
    return y, y.grad_fn.name(), x.grad, type(y.grad_fn).__name__


@function
def cannot_be_called(torch: Any) -> Any:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

    Twice()(torch.ones(2))


@function
def without_forward(torch: Any) -> Any:
    class Empty(torch.autograd.Function):
        pass

    Empty.apply(torch.ones(2))


@function
def without_backward(torch: Any) -> Any:
    class Half(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

    Half.apply(torch.ones(2, requires_grad=True)).sum().backward()


@function
def with_backward_and_vjp(torch: Any) -> Any:
    class Both(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

        @staticmethod
        def vjp(ctx: Any, g: Any) -> Any:
            return g

    Both.apply(torch.ones(2, requires_grad=True)).sum().backward()


@function
def with_vjp_alone(torch: Any) -> Any:
    class Named(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def vjp(ctx: Any, g: Any) -> Any:
            return g * 2

    x = torch.ones(2, requires_grad=True)
    Named.apply(x).sum().backward()
    return x.grad


@function
def with_keyword_arguments(torch: Any) -> Any:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

    Twice.apply(x=torch.ones(2))


@function
def that_returns_no_tensor_at_all(torch: Any) -> Any:
    class Strange(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return 5

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    return Strange.apply(torch.ones(2, requires_grad=True))


def returning(torch: Any, answer: Callable[[Any], Any], inputs: int = 1) -> Any:
    """Differentiate a function of `inputs` tensors whose backward returns `answer(g)`."""

    class Any_(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *xs: Any) -> Any:
            return sum(xs) * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return answer(g)

    xs = [torch.ones(2, requires_grad=True) for _ in range(inputs)]
    Any_.apply(*xs).sum().backward()
    return [x.grad for x in xs]


@function
def too_few_gradients(torch: Any) -> Any:
    return returning(torch, lambda g: g, 2)


@function
def too_many_gradients(torch: Any) -> Any:
    return returning(torch, lambda g: (g, g))


@function
def too_many_gradients_that_are_none(torch: Any) -> Any:
    return returning(torch, lambda g: (g, None, None))


@function
def none_as_gradient(torch: Any) -> Any:
    return returning(torch, lambda g: (g, None), 2)


@function
def a_gradient_of_wrong_shape(torch: Any) -> Any:
    return returning(torch, lambda g: torch.ones(3))


@function
def a_gradient_to_be_summed(torch: Any) -> Any:
    return returning(torch, lambda g: torch.ones(4, 2))


@function
def a_gradient_of_another_dtype(torch: Any) -> Any:
    return returning(torch, lambda g: g.double())


@function
def a_gradient_that_is_a_number(torch: Any) -> Any:
    return returning(torch, lambda g: 5.0)


@function
def a_list_of_gradients(torch: Any) -> Any:
    return returning(torch, lambda g: [g, g], 2)


@function
def an_input_returned_as_it_is(torch: Any) -> Any:
    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 10

    x = torch.ones(2, requires_grad=True)
    y = Same.apply(x)
    y.sum().backward()
    return y is x, y.grad_fn.name(), x.grad, y.data_ptr() == x.data_ptr()


@function
def a_view_returned(torch: Any) -> Any:
    class First(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x[:1]

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return torch.cat([g, torch.zeros(1)])

    x = torch.ones(2, requires_grad=True)
    y = First.apply(x)
    y.sum().backward()
    return y, x.grad, y._is_view()


@function
def a_view_returned_and_written_to(torch: Any) -> Any:
    class First(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x[:1]

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return torch.cat([g, torch.zeros(1)])

    First.apply(torch.ones(2, requires_grad=True)).add_(1)


@function
def an_input_returned_and_written_to(torch: Any) -> Any:
    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    Same.apply(torch.ones(2, requires_grad=True) * 1).add_(1)


@function
def in_no_grad(torch: Any) -> Any:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        y = Twice.apply(x)
    return y, Twice.apply(x.detach())


@function
def recording_inside(torch: Any) -> Any:
    seen = []

    class Look(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            seen.append((torch.is_grad_enabled(), x.requires_grad, (x * 2).requires_grad))
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            seen.append((torch.is_grad_enabled(), g.requires_grad))
            return g * 2

    x = torch.ones(2, requires_grad=True)
    Look.apply(x).sum().backward()
    torch.autograd.grad(Look.apply(x).sum(), x, create_graph=True)
    return seen


@function
def a_jvp_of_its_own(torch: Any) -> Any:
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(x: Any) -> Any:
            return x**3

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 3 * ctx.saved_tensors[0] ** 2 * g

        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            return 3 * ctx.saved_tensors[0] ** 2 * t

    fw = torch.autograd.forward_ad
    with fw.dual_level():
        y = Cube.apply(fw.make_dual(torch.tensor([2.0, 3.0]), torch.tensor([1.0, 10.0])))
        return fw.unpack_dual(y).tangent


@function
def no_jvp(torch: Any) -> Any:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    fw = torch.autograd.forward_ad
    with fw.dual_level():
        Twice.apply(fw.make_dual(torch.ones(2), torch.ones(2)))


context = section("Context method mixins")


@context
def needs_input_grad(torch: Any) -> Any:
    seen = []

    class Look(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
            seen.append(ctx.needs_input_grad)
            return a + b

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            seen.append(ctx.needs_input_grad)
            return g, None, None, None

    Look.apply(torch.ones(2, requires_grad=True), torch.ones(2), 5, None).sum().backward()
    return seen


@context
def saving_what_is_no_tensor(torch: Any) -> Any:
    class Bad(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x, 5)
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    Bad.apply(torch.ones(2, requires_grad=True))


@context
def saving_none(torch: Any) -> Any:
    class Fine(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x, None)
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, nothing = ctx.saved_tensors
            assert nothing is None
            return g * x

    x = torch.ones(2, requires_grad=True)
    Fine.apply(x).sum().backward()
    return x.grad


@context
def saved_tensors_after_they_were_freed(torch: Any) -> Any:
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 2 * g * ctx.saved_tensors[0]

    y = Square.apply(torch.ones(2, requires_grad=True)).sum()
    y.backward()
    y.backward()


@context
def saved_variables_is_deprecated(torch: Any) -> Any:
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 2 * g * ctx.saved_variables[0]

    x = torch.ones(2, requires_grad=True)
    Square.apply(x).sum().backward()
    return x.grad


@context
def mark_dirty_of_its_docstring(torch: Any) -> Any:
    class Inplace(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            x_npy = x.numpy()
            x_npy += 1
            ctx.mark_dirty(x)
            return x

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, grad_output: Any) -> Any:
            return grad_output

    a = torch.tensor(1.0, requires_grad=True, dtype=torch.double).clone()
    b = a * a
    Inplace.apply(a)  # would lead to wrong gradients, but the engine detects the write
    b.backward()


@context
def mark_dirty_of_a_leaf(torch: Any) -> Any:
    class Inplace(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            return x.add_(1)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    Inplace.apply(torch.ones(2, requires_grad=True))


@context
def mark_dirty_of_a_view(torch: Any) -> Any:
    class Inplace(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    x = torch.ones(3, requires_grad=True)
    y = x * 1
    Inplace.apply(y[:2])
    y.sum().backward()
    return x.grad, y


@context
def mark_dirty_without_returning_it(torch: Any) -> Any:
    class Inplace(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    Inplace.apply(torch.ones(2, requires_grad=True) * 1)


@context
def mark_non_differentiable_of_its_docstring(torch: Any) -> Any:
    class Sort(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            sorted_, idx = x.sort()
            ctx.mark_non_differentiable(idx)
            ctx.save_for_backward(x, idx)
            return sorted_, idx

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, g1: Any, g2: Any) -> Any:  # still must accept two gradients
            x, idx = ctx.saved_tensors
            grad_input = torch.zeros_like(x)
            grad_input.index_add_(0, idx, g1)
            return grad_input

    x = torch.tensor([3.0, 1.0, 2.0], requires_grad=True)
    y, i = Sort.apply(x)
    (y * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
    return y, i, x.grad


@context
def outputs_of_integers_need_no_mark(torch: Any) -> Any:
    class Two(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2, x.argsort()

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            return g * 2

    x = torch.tensor([3.0, 1.0, 2.0], requires_grad=True)
    y, i = Two.apply(x)
    y.sum().backward()
    return y, i, x.grad


@context
def set_materialize_grads_of_its_docstring(torch: Any) -> Any:
    seen = []

    class SimpleFunc(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.clone(), x.clone()

        @staticmethod
        def backward(ctx: Any, g1: Any, g2: Any) -> Any:
            seen.append(g2)
            return g1 + g2  # no check for None necessary

    class Func(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.set_materialize_grads(False)
            ctx.save_for_backward(x)
            return x.clone(), x.clone()

        @staticmethod
        def backward(ctx: Any, g1: Any, g2: Any) -> Any:
            (x,) = ctx.saved_tensors
            grad_input = torch.zeros_like(x)
            seen.append(g2)
            if g1 is not None:  # we must check for None now
                grad_input += g1
            if g2 is not None:
                grad_input += g2
            return grad_input

    a = torch.tensor(1.0, requires_grad=True)
    b, _ = SimpleFunc.apply(a)
    b.backward()
    c, _ = Func.apply(a)
    c.backward()
    return a.grad, seen


@context
def save_for_backward_of_its_docstring(torch: Any) -> Any:
    class Func(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any, z: int) -> Any:
            w = x * z
            out = x * y + y * z + w * y
            ctx.save_for_backward(x, y, w, out)
            ctx.z = z  # z is not a tensor
            return out

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, grad_out: Any) -> Any:
            x, y, w, _out = ctx.saved_tensors
            z = ctx.z
            gx = grad_out * (y + y * z)
            gy = grad_out * (x + z + w)
            return gx, gy, None

    a = torch.tensor(1.0, requires_grad=True, dtype=torch.double)
    b = torch.tensor(2.0, requires_grad=True, dtype=torch.double)
    d = Func.apply(a, b, 4)
    d.backward()
    return d, a.grad, b.grad


@context
def save_for_forward_of_its_docstring(torch: Any) -> Any:
    class Func(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any, z: int) -> Any:
            ctx.save_for_backward(x, y)
            ctx.save_for_forward(x, y)
            ctx.z = z
            return x * y * z

        @staticmethod
        def jvp(ctx: Any, x_t: Any, y_t: Any, _: Any) -> Any:
            x, y = ctx.saved_tensors
            z = ctx.z
            return z * (y * x_t + x * y_t)

        @staticmethod
        def vjp(ctx: Any, grad_out: Any) -> Any:
            x, y = ctx.saved_tensors
            z = ctx.z
            return z * grad_out * y, z * grad_out * x, None

    fw = torch.autograd.forward_ad
    a = torch.tensor(1.0, requires_grad=True, dtype=torch.double)
    t = torch.tensor(1.0, dtype=torch.double)
    b = torch.tensor(2.0, requires_grad=True, dtype=torch.double)
    c = 4
    with fw.dual_level():
        a_dual = fw.make_dual(a, t)
        d = Func.apply(a_dual, b, c)
        tangent = fw.unpack_dual(d).tangent
    return d.detach(), tangent.detach()


utilities = section("Custom Function utilities")


@utilities
def once_differentiable(torch: Any) -> Any:
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, g: Any) -> Any:
            return 2 * g * ctx.saved_tensors[0]

    x = torch.ones(2, requires_grad=True)
    (g,) = torch.autograd.grad(Square.apply(x).sum(), x, create_graph=True)
    torch.autograd.grad(g.sum(), x)


@utilities
def once_differentiable_used_once(torch: Any) -> Any:
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, g: Any) -> Any:
            return 2 * g * ctx.saved_tensors[0]

    x = torch.ones(2, requires_grad=True)
    Square.apply(x).sum().backward()
    return x.grad


@utilities
def inplace_function(torch: Any) -> Any:
    class AddOne(torch.autograd.function.InplaceFunction):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            return x.add_(1)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    x = torch.ones(2, requires_grad=True)
    y = AddOne.apply(x * 1)
    y.sum().backward()
    return y, x.grad


# Locally disabling gradient computation -------------------------------------------------------------

disabling = section("Locally disabling gradient computation")


@disabling
def no_grad_of_its_docstring(torch: Any) -> Any:
    x = torch.tensor([1.0], requires_grad=True)
    with torch.no_grad():
        y = x * 2

    @torch.no_grad()
    def doubler(x: Any) -> Any:
        return x * 2

    @torch.no_grad()
    def tripler(x: Any) -> Any:
        return x * 3

    with torch.no_grad():  # factory functions are not affected
        a = torch.nn.Parameter(torch.rand(10))
    return y, doubler(x), tripler(x), a.requires_grad


@disabling
def enable_grad_of_its_docstring(torch: Any) -> Any:
    x = torch.tensor([1.0], requires_grad=True)
    with torch.no_grad(), torch.enable_grad():
        y = x * 2
    y.backward()

    @torch.enable_grad()
    def doubler(x: Any) -> Any:
        return x * 2

    with torch.no_grad():
        z = doubler(x)

    @torch.enable_grad()
    def tripler(x: Any) -> Any:
        return x * 3

    with torch.no_grad():
        w = tripler(x)
    return y, x.grad, z, w


@disabling
def set_grad_enabled_of_its_docstring(torch: Any) -> Any:
    x = torch.tensor([1.0], requires_grad=True)
    found = []
    for is_train in (False, True):
        with torch.set_grad_enabled(is_train):
            found.append(x * 2)
    for flag in (True, False):
        _ = torch.set_grad_enabled(flag)
        found.append(x * 2)
    torch.set_grad_enabled(True)
    return found


@disabling
def is_grad_enabled_and_its_like(torch: Any) -> Any:
    found = [torch.is_grad_enabled(), torch.is_inference_mode_enabled()]
    with torch.no_grad():
        found += [torch.is_grad_enabled(), torch.is_inference_mode_enabled()]
    with torch.inference_mode():
        found += [torch.is_grad_enabled(), torch.is_inference_mode_enabled()]
    return found


@disabling
def is_inference(torch: Any) -> Any:
    with torch.inference_mode():
        return torch.is_inference(torch.ones(1))


@disabling
def modes_in_autograd_too(torch: Any) -> Any:
    return [
        torch.autograd.no_grad is torch.no_grad,
        torch.autograd.enable_grad is torch.enable_grad,
        torch.autograd.set_grad_enabled is torch.set_grad_enabled,
        torch.autograd.inference_mode is torch.inference_mode,
        torch.autograd.grad_mode.no_grad is torch.no_grad,
    ]


@disabling
def set_multithreading_enabled(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    with torch.autograd.set_multithreading_enabled(False):
        (x * x).sum().backward()
    return x.grad, torch.autograd.grad_mode.set_multithreading_enabled.__name__


# Debugging and anomaly detection --------------------------------------------------------------------

anomaly = section("Debugging and anomaly detection")


@anomaly
def the_example_of_its_docstring_anomaly(torch: Any) -> Any:
    class MyFunc(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, inp: Any) -> Any:
            return inp.clone()

        @staticmethod
        def backward(ctx: Any, gO: Any) -> Any:
            raise RuntimeError("Some error in backward")

    def run_fn(a: Any) -> Any:
        return MyFunc.apply(a).sum()

    inp = torch.rand(10, 10, requires_grad=True)
    with torch.autograd.detect_anomaly():
        out = run_fn(inp)
        out.backward()


@anomaly
def not_a_number_in_backward(torch: Any) -> Any:
    x = torch.tensor([-1.0], requires_grad=True)
    with torch.autograd.detect_anomaly():
        x.sqrt().backward()


@anomaly
def not_a_number_unchecked(torch: Any) -> Any:
    x = torch.tensor([-1.0], requires_grad=True)
    with torch.autograd.detect_anomaly(check_nan=False):
        x.sqrt().backward()
    return x.grad


@anomaly
def not_a_number_without_detection(torch: Any) -> Any:
    x = torch.tensor([-1.0], requires_grad=True)
    x.sqrt().backward()
    return x.grad


@anomaly
def set_as_a_function(torch: Any) -> Any:
    found = [torch.is_anomaly_enabled()]
    torch.autograd.set_detect_anomaly(True)
    found += [torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()]
    torch.autograd.set_detect_anomaly(False)
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        found += [torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()]
    return [*found, torch.is_anomaly_enabled()]


@anomaly
def nested(torch: Any) -> Any:
    found = []
    with torch.autograd.detect_anomaly():
        with torch.autograd.set_detect_anomaly(False):
            found.append(torch.is_anomaly_enabled())
        found.append(torch.is_anomaly_enabled())
    return [*found, torch.is_anomaly_enabled()]


@anomaly
def a_write_in_place(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    with torch.autograd.detect_anomaly():
        y = x.exp()
        y.add_(1)
        y.sum().backward()


@anomaly
def metadata_holds_the_traceback(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    with torch.autograd.detect_anomaly():
        y = x * 2
    return sorted(y.grad_fn.metadata), (x * 2).grad_fn.metadata


# Autograd graph -------------------------------------------------------------------------------------

graph = section("Autograd graph")


@graph
def the_example_of_the_page(torch: Any) -> Any:
    a = torch.tensor([0.0, 0.0, 0.0], requires_grad=True)
    b = a.exp()
    return (
        isinstance(b.grad_fn, torch.autograd.graph.Node),
        torch.allclose(b.grad_fn._saved_result, b),
        {"_saved_result", "_raw_saved_result", "metadata", "name", "next_functions", "register_hook"}
        <= set(dir(b.grad_fn)),
    )


@graph
def name(torch: Any) -> Any:
    a = torch.tensor([0.0, 0.0, 0.0], requires_grad=True)
    b = a.clone()
    return b.grad_fn.name(), (b + 1).grad_fn.name()


@graph
def metadata(torch: Any) -> Any:
    b = torch.ones(2, requires_grad=True).clone()
    b.grad_fn.metadata["key"] = 5
    return b.grad_fn.metadata


@graph
def next_functions(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    w = torch.ones(2)
    return [(n if n is None else n.name(), k) for n, k in (x * w + x).grad_fn.next_functions]


@graph
def register_hook_of_its_docstring(torch: Any) -> Any:
    a = torch.tensor([0.0, 0.0, 0.0], requires_grad=True)
    b = a.clone()
    handle = b.grad_fn.register_hook(lambda gI, gO: (gO[0] * 2,))
    b.sum().backward(retain_graph=True)
    first = a.grad
    handle.remove()
    a.grad = None
    b.sum().backward(retain_graph=True)
    return first, a.grad


@graph
def register_prehook_of_its_docstring(torch: Any) -> Any:
    a = torch.tensor([0.0, 0.0, 0.0], requires_grad=True)
    b = a.clone()
    handle = b.grad_fn.register_prehook(lambda gI: (gI[0] * 2,))
    b.sum().backward(retain_graph=True)
    first = a.grad
    handle.remove()
    a.grad = None
    b.sum().backward(retain_graph=True)
    return first, a.grad


@graph
def increment_version(torch: Any) -> Any:
    x = torch.ones(2)
    torch.autograd.graph.increment_version(x)
    torch.autograd.graph.increment_version([x, x])
    with torch.inference_mode():
        y = torch.ones(2)
    torch.autograd.graph.increment_version(y)
    return x._version


@graph
def increment_version_is_noticed(torch: Any) -> Any:
    h = torch.ones(2, requires_grad=True) * 2
    y = (h * h).sum()
    torch.autograd.graph.increment_version(h)
    y.backward()


@graph
def saved_tensors_hooks_of_its_docstring(torch: Any) -> Any:
    seen = []

    def pack_hook(x: Any) -> Any:
        seen.append(("Packing", x.tolist(), x.requires_grad, x.grad_fn and x.grad_fn.name()))
        return x.detach()

    def unpack_hook(x: Any) -> Any:
        seen.append(("Unpacking", x.tolist()))
        return x

    a = torch.ones(5, requires_grad=True)
    b = torch.ones(5, requires_grad=True) * 2
    with torch.autograd.graph.saved_tensors_hooks(pack_hook, unpack_hook):
        y = a * b
    y.sum().backward()
    return seen, a.grad


@graph
def saved_tensors_hooks_nested(torch: Any) -> Any:
    seen = []

    def hook(name: str) -> Any:
        return lambda t: (seen.append(name), t.detach())[1]

    x = torch.ones(2, requires_grad=True)
    hooks = torch.autograd.graph.saved_tensors_hooks
    with hooks(hook("outer"), lambda t: t):
        with hooks(hook("inner"), lambda t: t):
            x.exp()
        x.exp()
    x.exp()
    return seen


@graph
def saved_tensors_hooks_and_a_custom_function(torch: Any) -> Any:
    seen = []

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 2 * g * ctx.saved_tensors[0]

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(
        lambda t: (seen.append("pack"), t.detach())[1], lambda t: (seen.append("unpack"), t)[1]
    ):
        y = Square.apply(x)
    y.sum().backward()
    return seen, x.grad


@graph
def saved_tensors_hooks_and_double_backward(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    w = torch.tensor([3.0, 4.0], requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t):
        y = (x * x * w).exp().sum()
    gs = torch.autograd.grad(y, [x, w], create_graph=True)
    return gs, torch.autograd.grad(gs[0].sum() + gs[1].sum(), [x, w])


@graph
def saved_tensors_hooks_inside_backward(torch: Any) -> Any:
    seen = []
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = (x * x * x).sum()
    with torch.autograd.graph.saved_tensors_hooks(lambda t: (seen.append("pack"), t.detach())[1], lambda t: t):
        (g,) = torch.autograd.grad(y, x, create_graph=True)
    return torch.autograd.grad(g.sum(), x), len(seen) > 0


@graph
def save_on_cpu_of_its_docstring(torch: Any) -> Any:
    a = torch.full((5,), 2.0, requires_grad=True)
    b = torch.full((5,), 3.0, requires_grad=True)
    c = torch.full((5,), 4.0, requires_grad=True)
    prod_1 = a * b
    with torch.autograd.graph.save_on_cpu():
        prod_2 = prod_1 * c
    (prod_2 * a).sum().backward()
    return a.grad, b.grad, c.grad


@graph
def disable_saved_tensors_hooks_of_its_docstring(torch: Any) -> Any:
    message = "saved tensors default hooks are disabled"
    with torch.autograd.graph.disable_saved_tensors_hooks(message), torch.autograd.graph.save_on_cpu():
        pass


@graph
def disable_saved_tensors_hooks_inside(torch: Any) -> Any:
    with torch.autograd.graph.save_on_cpu(), torch.autograd.graph.disable_saved_tensors_hooks("not now"):
        pass


@graph
def disable_saved_tensors_hooks_ends(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    with torch.autograd.graph.disable_saved_tensors_hooks("not now"):
        y = x * x
    with torch.autograd.graph.save_on_cpu():
        z = x * x
    (y + z).sum().backward()
    return x.grad


@graph
def register_multi_grad_hook_of_its_docstring(torch: Any) -> Any:
    seen = []
    a = torch.rand(2, 3, requires_grad=True)
    b = torch.rand(2, 3, requires_grad=True)
    c = a * b
    d = a * b

    def fn(grads: Any) -> None:
        seen.append([g is not None for g in grads])

    torch.autograd.graph.register_multi_grad_hook((a, b, c, d), fn)
    c.sum().backward(retain_graph=True)
    c.sum().backward(inputs=(a, b), retain_graph=True)
    return seen


@graph
def allow_mutation_on_saved_tensors_of_its_docstring(torch: Any) -> Any:
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        a = torch.ones(2, 3, requires_grad=True)
        b = a.clone()
        out = (b**2).sum()
        b.sin_()
        out.sum().backward()
        return a.grad


@graph
def allow_mutation_through_a_view(torch: Any) -> Any:
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        a = torch.ones(2, 3, requires_grad=True)
        b = a.clone()
        out = (b * b).sum()
        b[0].zero_()
        out.backward()
        return a.grad, b


@graph
def allow_mutation_outside(torch: Any) -> Any:
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        a = torch.ones(2, 3, requires_grad=True)
        out = (a.clone() ** 2).sum()
    out.backward()


@graph
def get_gradient_edge(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    y = x.split(1)
    edge = torch.autograd.graph.get_gradient_edge(y[1])
    leaf = torch.autograd.graph.get_gradient_edge(x)
    return (
        edge.node is y[1].grad_fn,
        edge.output_nr,
        leaf.node.name(),
        leaf.output_nr,
        isinstance(edge, torch.autograd.graph.GradientEdge),
    )


@graph
def get_gradient_edge_without_gradient(torch: Any) -> Any:
    torch.autograd.graph.get_gradient_edge(torch.ones(2))


# Forward-mode automatic differentiation -------------------------------------------------------------

forward = section("Forward-mode Automatic Differentiation")


@forward
def make_and_unpack(torch: Any) -> Any:
    fw = torch.autograd.forward_ad
    x, t = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
    with fw.dual_level():
        dual = fw.make_dual(x, t)
        primal, tangent = fw.unpack_dual(dual)
        return primal, tangent, tangent is t, type(fw.unpack_dual(dual)).__name__, dual


@forward
def of_what_has_no_tangent(torch: Any) -> Any:
    fw = torch.autograd.forward_ad
    with fw.dual_level():
        return fw.unpack_dual(torch.ones(2)).tangent


@forward
def tangents_are_gone_with_the_level(torch: Any) -> Any:
    fw = torch.autograd.forward_ad
    with fw.dual_level():
        dual = fw.make_dual(torch.ones(2), torch.ones(2))
        y = dual * 2
    found = fw.unpack_dual(y, level=0).tangent
    with fw.dual_level():
        return found, fw.unpack_dual(y).tangent, fw.unpack_dual(dual).tangent


@forward
def outside_a_level(torch: Any) -> Any:
    torch.autograd.forward_ad.make_dual(torch.ones(2), torch.ones(2))


@forward
def unpacked_outside_a_level(torch: Any) -> Any:
    return torch.autograd.forward_ad.unpack_dual(torch.ones(2)).tangent


@forward
def nested_levels(torch: Any) -> Any:
    fw = torch.autograd.forward_ad
    with fw.dual_level(), fw.dual_level():
        pass


@forward
def enter_and_exit(torch: Any) -> Any:
    fw = torch.autograd.forward_ad
    level = fw.enter_dual_level()
    dual = fw.make_dual(torch.tensor([2.0]), torch.tensor([3.0]))
    y = fw.unpack_dual(dual**2).tangent
    fw.exit_dual_level()
    return level, y


@forward
def exit_without_enter(torch: Any) -> Any:
    torch.autograd.forward_ad.exit_dual_level()


@forward
def of_another_shape(torch: Any) -> Any:
    fw = torch.autograd.forward_ad
    with fw.dual_level():
        fw.make_dual(torch.ones(2), torch.ones(3))


@forward
def of_another_dtype(torch: Any) -> Any:
    fw = torch.autograd.forward_ad
    with fw.dual_level():
        fw.make_dual(torch.ones(2), torch.ones(2, dtype=torch.float64))


@forward
def of_primals_that_are_integers(torch: Any) -> Any:
    fw = torch.autograd.forward_ad
    with fw.dual_level():
        fw.make_dual(torch.tensor([1, 2]), torch.ones(2))


@forward
def of_a_dual_tensor_again(torch: Any) -> Any:
    fw = torch.autograd.forward_ad
    with fw.dual_level():
        dual = fw.make_dual(torch.ones(2), torch.ones(2))
        again = fw.make_dual(dual, torch.full((2,), 5.0))
        return fw.unpack_dual(again).tangent, fw.unpack_dual(dual).tangent


@forward
def through_writes_in_place(torch: Any) -> Any:
    fw = torch.autograd.forward_ad
    with fw.dual_level():
        x = fw.make_dual(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 1.0]))
        y = x * 3
        y[0] = 5.0
        y.mul_(x)
        y += 1
        return fw.unpack_dual(y)


@forward
def through_views(torch: Any) -> Any:
    fw = torch.autograd.forward_ad
    with fw.dual_level():
        x = fw.make_dual(torch.arange(6.0), torch.arange(6.0) * 10)
        y = x.view(2, 3).t()[1:]
        z = x * 1
        z[:2].mul_(2)
        return fw.unpack_dual(y.contiguous()), fw.unpack_dual(z)


@forward
def written_into_a_plain_tensor(torch: Any) -> Any:
    fw = torch.autograd.forward_ad
    with fw.dual_level():
        x = fw.make_dual(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 1.0]))
        y = torch.zeros(2)
        y.copy_(x)
        z = torch.zeros(2)
        z[1] = x[0]
        return fw.unpack_dual(y), fw.unpack_dual(z)


@forward
def in_no_grad_it_still_flows(torch: Any) -> Any:
    fw = torch.autograd.forward_ad
    with fw.dual_level(), torch.no_grad():
        x = fw.make_dual(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 1.0]))
        return fw.unpack_dual(x * x).tangent


@forward
def not_in_inference_mode(torch: Any) -> Any:
    fw = torch.autograd.forward_ad
    with fw.dual_level(), torch.inference_mode():
        x = fw.make_dual(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 1.0]))
        return fw.unpack_dual(x * x).tangent


@forward
def over_reverse(torch: Any) -> Any:
    fw = torch.autograd.forward_ad
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with fw.dual_level():
        dual = fw.make_dual(x, torch.tensor([1.0, 0.0]))
        (g,) = torch.autograd.grad((dual**3).sum(), dual, create_graph=True)
        primal, tangent = fw.unpack_dual(g)
        return primal.detach(), tangent.detach()


@forward
def reverse_over_forward(torch: Any) -> Any:
    fw = torch.autograd.forward_ad
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    t = torch.tensor([1.0, 10.0], requires_grad=True)
    with fw.dual_level():
        tangent = fw.unpack_dual(fw.make_dual(x, t).exp()).tangent
    return torch.autograd.grad(tangent.sum(), [x, t])


@forward
def comparisons_and_indices_have_none(torch: Any) -> Any:
    fw = torch.autograd.forward_ad
    with fw.dual_level():
        x = fw.make_dual(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 1.0]))
        return [fw.unpack_dual(y).tangent for y in (x > 1, x.argmax(), x.long(), torch.zeros_like(x))]


@forward
def of_many_operations(torch: Any) -> Any:
    fw = torch.autograd.forward_ad
    torch.manual_seed(0)
    a, t = torch.rand(3, 3) + 0.5, torch.rand(3, 3)
    b = torch.rand(3, 3)
    found = []
    with fw.dual_level():
        x = fw.make_dual(a, t)
        for y in (
            x.exp(), x.log(), x.sin(), x.sqrt(), x.tanh(), x.sigmoid(), x.relu(), x.abs(), x / b, b / x, x @ b, b @ x,
            x**2, x**b, 2**x, x.sum(0), x.mean(), x.prod(), x.max(), x.max(1)[0], x.amax(0), x.min(), x.std(),
            x.var(1), x.norm(), x.softmax(1), x.log_softmax(0), x.logsumexp(1), x.cumsum(0), x.cumprod(1),
            torch.cat([x, b]), torch.stack([x, b]), torch.where(x > 1, x, b), x.clamp(0.6, 1.2), x.sort(0)[0],
            x[torch.tensor([0, 2])], x.gather(1, torch.tensor([[0], [1], [2]])), x.masked_fill(x > 1, 0.0), x.t(),
            x.expand(2, 3, 3), x.flip(0), x.roll(1), x.tril(), x.diagonal(),
            torch.nn.functional.linear(x, b), torch.nn.functional.gelu(x), torch.nn.functional.layer_norm(x, (3,)),
            torch.nn.functional.mse_loss(x, b), torch.nn.functional.cross_entropy(x, torch.tensor([0, 1, 2])),
            torch.einsum("ij,jk->ik", x, b), torch.outer(x[0], x[1]), torch.dot(x[0], b[0]), torch.maximum(x, b),
        ):  # fmt: skip
            found.append(tuple(fw.unpack_dual(y)))
    return found


# Functional higher level API ------------------------------------------------------------------------

functional = section("Functional higher level API")


def exp_reducer(x: Any) -> Any:
    return x.exp().sum(dim=1)


def exp_adder(x: Any, y: Any) -> Any:
    return 2 * x.exp() + 3 * y


def pow_reducer(x: Any) -> Any:
    return x.pow(3).sum()


def pow_adder_reducer(x: Any, y: Any) -> Any:
    return (2 * x.pow(2) + 3 * y.pow(2)).sum()


@functional
def jacobian(torch: Any) -> Any:
    f = torch.autograd.functional
    inputs = torch.rand(2, 2)
    pair = (torch.rand(2), torch.rand(2))
    return (
        f.jacobian(exp_reducer, inputs),
        f.jacobian(exp_reducer, inputs, create_graph=True),
        f.jacobian(exp_adder, pair),
    )


@functional
def hessian(torch: Any) -> Any:
    f = torch.autograd.functional
    inputs = torch.rand(2, 2)
    pair = (torch.rand(2), torch.rand(2))
    return (
        f.hessian(pow_reducer, inputs),
        f.hessian(pow_reducer, inputs, create_graph=True),
        f.hessian(pow_adder_reducer, pair),
    )


@functional
def vjp(torch: Any) -> Any:
    f = torch.autograd.functional
    inputs, v = torch.rand(4, 4), torch.ones(4)
    pair, vector = (torch.rand(2), torch.rand(2)), torch.ones(2)
    return (
        f.vjp(exp_reducer, inputs, v),
        f.vjp(exp_reducer, inputs, v, create_graph=True),
        f.vjp(exp_adder, pair, vector),
    )


@functional
def jvp(torch: Any) -> Any:
    f = torch.autograd.functional
    inputs, v = torch.rand(4, 4), torch.ones(4, 4)
    pair, vectors = (torch.rand(2), torch.rand(2)), (torch.ones(2), torch.ones(2))
    return (
        f.jvp(exp_reducer, inputs, v),
        f.jvp(exp_reducer, inputs, v, create_graph=True),
        f.jvp(exp_adder, pair, vectors),
    )


@functional
def vhp(torch: Any) -> Any:
    f = torch.autograd.functional
    inputs, v = torch.rand(2, 2), torch.ones(2, 2)
    pair, vectors = (torch.rand(2), torch.rand(2)), (torch.zeros(2), torch.ones(2))
    return (
        f.vhp(pow_reducer, inputs, v),
        f.vhp(pow_reducer, inputs, v, create_graph=True),
        f.vhp(pow_adder_reducer, pair, vectors),
    )


@functional
def hvp(torch: Any) -> Any:
    f = torch.autograd.functional
    inputs, v = torch.rand(2, 2), torch.ones(2, 2)
    pair, vectors = (torch.rand(2), torch.rand(2)), (torch.zeros(2), torch.ones(2))
    return (
        f.hvp(pow_reducer, inputs, v),
        f.hvp(pow_reducer, inputs, v, create_graph=True),
        f.hvp(pow_adder_reducer, pair, vectors),
    )


@functional
def a_lambda_captures_the_rest(torch: Any) -> Any:
    def f(x: Any, constant: Any, flag: bool = False) -> Any:
        return x * constant if flag else x

    constant = torch.tensor([2.0, 3.0])
    return torch.autograd.functional.jacobian(lambda x: f(x, constant, flag=True), torch.ones(2))


@functional
def strict(torch: Any) -> Any:
    return torch.autograd.functional.jacobian(lambda x: torch.ones(2), torch.ones(2), strict=True)


@functional
def not_strict(torch: Any) -> Any:
    return torch.autograd.functional.jacobian(lambda x: torch.ones(2), torch.ones(2))


@functional
def hessian_of_a_linear_function_strict(torch: Any) -> Any:
    return torch.autograd.functional.hessian(lambda x: x.sum(), torch.ones(2), strict=True)


@functional
def vectorized(torch: Any) -> Any:
    f = torch.autograd.functional
    x = torch.rand(2, 2)
    return f.jacobian(exp_reducer, x, vectorize=True), f.hessian(pow_reducer, x, vectorize=True)


@functional
def forward_strategy(torch: Any) -> Any:
    f = torch.autograd.functional
    x = torch.rand(2, 2)
    return (
        f.jacobian(exp_reducer, x, vectorize=True, strategy="forward-mode"),
        f.hessian(pow_reducer, x, vectorize=True, outer_jacobian_strategy="forward-mode"),
    )


@functional
def without_v(torch: Any) -> Any:
    torch.autograd.functional.vjp(exp_reducer, torch.ones(2, 2))


@functional
def v_of_wrong_size(torch: Any) -> Any:
    torch.autograd.functional.vjp(exp_reducer, torch.ones(2, 2), torch.ones(3))


@functional
def a_function_that_returns_no_tensor(torch: Any) -> Any:
    torch.autograd.functional.jacobian(lambda x: 5, torch.ones(2))


@functional
def an_input_that_is_no_tensor(torch: Any) -> Any:
    torch.autograd.functional.jacobian(lambda x: x, 5)


@functional
def a_hessian_of_many_outputs(torch: Any) -> Any:
    torch.autograd.functional.hessian(lambda x: x * 2, torch.ones(2))


# Numerical gradient checking ------------------------------------------------------------------------

check = section("Numerical gradient checking")


@check
def gradcheck(torch: Any) -> Any:
    torch.manual_seed(0)
    x = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    w = torch.randn(2, 4, dtype=torch.float64, requires_grad=True)
    return (
        torch.autograd.gradcheck(lambda x, w: (x @ w).tanh(), (x, w)),
        torch.autograd.gradcheck(lambda x, w: (x @ w).tanh(), (x, w), fast_mode=True),
        torch.autograd.gradgradcheck(lambda x, w: (x @ w).tanh(), (x, w)),
    )


@check
def check_forward_mode(torch: Any) -> Any:
    x = torch.tensor([0.5, 1.5], dtype=torch.float64, requires_grad=True)
    return torch.autograd.gradcheck(lambda x: x.exp(), (x,), check_forward_ad=True)


def wrong(torch: Any) -> Any:
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 3

    return Wrong.apply


@check
def a_wrong_gradient(torch: Any) -> Any:
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    torch.autograd.gradcheck(wrong(torch), (x,))


@check
def a_wrong_gradient_as_an_answer(torch: Any) -> Any:
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    return torch.autograd.gradcheck(wrong(torch), (x,), raise_exception=False)


@check
def a_kink(torch: Any) -> Any:
    x = torch.tensor([0.0], dtype=torch.float64, requires_grad=True)
    return torch.autograd.gradcheck(lambda x: x.abs(), (x,), raise_exception=False)


@check
def overlapping_memory(torch: Any) -> Any:
    x = torch.ones(1, dtype=torch.float64).expand(3).requires_grad_()
    return torch.autograd.gradcheck(lambda x: x * 2, (x,), raise_exception=False)


@check
def single_precision_warns(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    return torch.autograd.gradcheck(lambda x: x * 2, (x,), raise_exception=False)


@check
def nothing_requires_grad(torch: Any) -> Any:
    torch.autograd.gradcheck(lambda x: x * 2, (torch.ones(2, dtype=torch.float64),))


@check
def a_gradient_of_none_passes(torch: Any) -> Any:
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    return torch.autograd.gradcheck(lambda x: (x * 2, torch.ones(2)), (x,))


# Profiler -------------------------------------------------------------------------------------------


@section("Profiler")
def it_lets_the_program_run(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    with torch.autograd.profiler.profile() as prof:
        y = (x * 2).sum()
        y.backward()
    return x.grad, len(prof.key_averages()) > 0


@section("Profiler")
def record_function(torch: Any) -> Any:
    with torch.autograd.profiler.record_function("label"):
        return torch.ones(2) * 2


@function
def that_differentiates_inside(torch: Any) -> Any:
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            with torch.enable_grad():
                ctx.x = x.detach().requires_grad_()
                ctx.y = ctx.x**2
            return ctx.y.detach()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            ctx.y.backward(g)
            return ctx.x.grad

    x = torch.tensor([3.0], requires_grad=True)
    Square.apply(x).backward()
    return x.grad


@function
def that_returns_other_things_too(torch: Any) -> Any:
    class Odd(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2, None, "word"

        @staticmethod
        def backward(ctx: Any, g: Any, _0: Any, _1: Any) -> Any:
            return g * 2

    x = torch.ones(2, requires_grad=True)
    y, nothing, word = Odd.apply(x)
    y.sum().backward()
    return x.grad, nothing, word


@function
def that_returns_one_tensor_twice(torch: Any) -> Any:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x * 2
            return y, y

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            return g * 2 + h * 20

    x = torch.ones(2, requires_grad=True)
    a, b = Twice.apply(x)
    (a + b * 3).sum().backward()
    return x.grad, a is b


@context
def what_ctx_is(torch: Any) -> Any:
    seen = []

    class Look(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.note = 3
            seen.append(isinstance(ctx, torch.autograd.function.FunctionCtx))
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            seen.append((ctx.note, isinstance(ctx, torch.autograd.graph.Node), type(ctx).__name__))
            return g * 2

    Look.apply(torch.ones(2, requires_grad=True)).sum().backward()
    return seen


@forward
def of_copies_and_conversions(torch: Any) -> Any:
    fw = torch.autograd.forward_ad
    with fw.dual_level():
        x = fw.make_dual(torch.ones(2), torch.ones(2))
        several = (x.clone(), x.detach(), x.data, x.double(), x.to(torch.float32), x.contiguous())
        return [fw.unpack_dual(y).tangent for y in several]


@forward
def of_mixed_dtypes_and_broadcasts(torch: Any) -> Any:
    fw = torch.autograd.forward_ad
    with fw.dual_level():
        x = fw.make_dual(torch.ones(2), torch.tensor([1.0, 2.0]))
        several = (x * torch.ones(2, dtype=torch.float64), x * 2.5, x + torch.arange(2), x + torch.ones(3, 2), 1 / x)
        return [tuple(fw.unpack_dual(y)) for y in several]


@forward
def a_dual_tensor_written_to(torch: Any) -> Any:
    fw = torch.autograd.forward_ad
    x = torch.ones(2)
    with fw.dual_level():
        dual = fw.make_dual(x, torch.ones(2))
        dual.mul_(3)
        return x, tuple(fw.unpack_dual(dual)), fw.unpack_dual(x).tangent


@anomaly
def a_forward_pass_before_the_context(torch: Any) -> Any:
    y = torch.tensor([-1.0], requires_grad=True).sqrt()
    with torch.autograd.detect_anomaly():
        y.backward()


@anomaly
def infinity_is_no_anomaly(torch: Any) -> Any:
    x = torch.tensor([0.0], requires_grad=True)
    with torch.autograd.detect_anomaly():
        x.sqrt().sum().backward()
    return x.grad


@graph
def a_node_called(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    accumulate = y.grad_fn.next_functions[0][0]
    accumulate(torch.ones(2))
    accumulate(torch.ones(2))
    return y.grad_fn(torch.tensor([1.0, 2.0])), x.grad


@graph
def next_functions_of_many(torch: Any) -> Any:
    x, y = torch.ones(2, requires_grad=True), torch.ones(2)
    several = (torch.cat([x, y, x]), torch.where(y > 0, x, y), y - x, x**y, x @ y)
    return [[(n and n.name(), k) for n, k in t.grad_fn.next_functions] for t in several]


@graph
def next_functions_of_a_number_less_a_tensor(torch: Any) -> Any:
    node = (2 - torch.ones(2, requires_grad=True)).grad_fn
    return node.name(), [n and n.name() for n, _ in node.next_functions]


@graph
def names_of_nodes(torch: Any) -> Any:
    F = torch.nn.functional
    x, y = torch.ones(2, 4, requires_grad=True), torch.full((2, 4), 0.5, requires_grad=True)
    several = (
        torch.sgn(x), torch.sign(x), torch.rad2deg(x), torch.deg2rad(x), torch.log1p(x), torch.round(x, decimals=1),
        torch.rsub(x, y), torch.rsub(x, 2.0), torch.rsub(x, y, alpha=2), torch.add(x, y, alpha=2),
        torch.sub(x, y, alpha=2), torch.div(x, y, rounding_mode="floor"), torch.floor_divide(x, y),
        torch.clamp(x, 0.0, 1.0), torch.clamp_min(x, 0.0), torch.clamp_max(x, 1.0), torch.clamp(x, y, y + 1),
        torch.lerp(x, y, 0.3), torch.addcmul(x, x, y, value=2), torch.addcdiv(x, x, y, value=2),
        F.celu(x), F.selu(x), F.elu(x), F.rrelu(x), F.rrelu(x, training=True), F.leaky_relu(x), F.relu6(x), F.glu(x),
        F.prelu(x, torch.ones(1)), F.hardsigmoid(x), F.softshrink(x), F.margin_ranking_loss(x, y, x, reduction="none"),
    )  # fmt: skip
    return [t.grad_fn.name() for t in several], [len(t.grad_fn.next_functions) for t in several]


@graph
def positive_is_the_tensor_itself(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    return +x is x, torch.positive(x) is x, x.positive() is x


@graph
def positive_of_booleans(torch: Any) -> Any:
    return +torch.tensor([True])


@graph
def backward_into_an_edge_and_from_one(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    y = (x * 2).sum()
    edge = torch.autograd.graph.get_gradient_edge
    torch.autograd.backward(y, inputs=[edge(x)], retain_graph=True)
    torch.autograd.backward(edge(y))
    return x.grad


@functional
def inside_no_grad(torch: Any) -> Any:
    f = torch.autograd.functional
    with torch.no_grad():
        return f.jacobian(lambda x: x**2, torch.ones(2)), f.hvp(lambda x: (x**3).sum(), torch.ones(2), torch.ones(2))


@functional
def inputs_keep_their_gradient(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    return torch.autograd.functional.jacobian(lambda t: t**2, x), x.grad


@functional
def several_inputs_and_outputs(torch: Any) -> Any:
    return torch.autograd.functional.jacobian(lambda x, y: (x * y, x + y), (torch.ones(2), torch.full((2,), 3.0)))


@needs_oracle
@pytest.mark.parametrize("program", PAGE.programs)
def test_same_as_pytorch(program: Callable[[Any], Any]) -> None:
    same_as_pytorch(program)
