"""backward, grad, leaves, retain_grad, hooks, modes, views and writes in place: programs run by both libraries."""

from __future__ import annotations

import gc
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinytorch
from tests.oracle import needs_oracle, torch
from tests.same import same_as_pytorch
from tinytorch.autograd.gradcheck import GradcheckError

PROGRAMS: list[Callable[[Any], Any]] = []


def program(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Enter a program in the list."""
    PROGRAMS.append(function)
    return function


@program
def leaves_and_non_leaves(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    z = y.sum()
    w = torch.ones(2)
    v = w * 3
    return [(t.is_leaf, t.requires_grad, t.grad_fn is None, t.output_nr) for t in (x, y, z, w, v)]


@program
def names_of_nodes(torch: Any) -> Any:
    x = torch.ones(2, 3, requires_grad=True)
    w = torch.ones(3, 2, requires_grad=True)
    results = [
        x + 1,
        x - x,
        x * x,
        x / 2,
        -x,
        x**2,
        x.exp(),
        x.log(),
        x.sqrt(),
        x.sin(),
        x.tanh(),
        x.sigmoid(),
        x.relu(),
        x.abs(),
        x.sum(),
        x.mean(),
        x.sum(0),
        x.mean(1),
        x.max(),
        x.max(0)[0],
        x.prod(),
        x.var(),
        x.std(),
        x @ w,
        x.t(),
        x.view(6),
        x.reshape(3, 2),
        x.unsqueeze(0),
        x[None].squeeze(0),
        x.transpose(0, 1),
        x.permute(1, 0),
        x[0],
        x[:, 1],
        x[0, 1],
        x[torch.tensor([0])],
        x.expand(2, 2, 3),
        torch.cat([x, x]),
        torch.stack([x, x]),
        x.clone(),
        x.double(),
        x.clamp(0, 1),
        torch.where(x > 0, x, x),
        x.gather(0, torch.zeros(1, 3, dtype=torch.long)),
        x.norm(),
        x.softmax(1),
        x.log_softmax(1),
        x.logsumexp(1),
        x.masked_fill(x > 0, 1.0),
        x.cumsum(0),
        x.split(1)[0],
        x.unbind(0)[0],
        x.flatten(),
        x.tril(),
        x.repeat(2, 1),
        x.index_select(0, torch.tensor([0])),
        x.mm(w),
        torch.maximum(x, x),
        torch.minimum(x, x),
        x.min(),
        x.amax(0),
        torch.addmm(torch.ones(2), x, w),
        x.flip(0),
    ]
    return [r.grad_fn.name() for r in results]


@program
def walking_next_functions(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    y = (x * 2 + x).sum()
    seen, stack = [], [(y.grad_fn, 0)]
    while stack:
        node, depth = stack.pop()
        if node is None:
            seen.append((None, depth))
            continue
        seen.append((node.name(), depth))
        stack += [(n, depth + 1) for n, _ in node.next_functions]
    a = y.grad_fn.next_functions[0][0].next_functions[1][0]
    return seen, a.variable is x, type(a).__name__


@program
def accumulation(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    for _ in range(3):
        (x * x).sum().backward()
    first = x.grad.clone()
    x.grad.zero_()
    (x * 3).sum().backward()
    return first, x.grad


@program
def grad_is_not_shared_between_leaves(torch: Any) -> Any:
    a = torch.ones(2, requires_grad=True)
    b = torch.ones(2, requires_grad=True)
    (a + b).sum().backward()
    a.grad.zero_()
    return a.grad, b.grad


@program
def grad_is_not_the_given_gradient(torch: Any) -> Any:
    a = torch.ones(2, requires_grad=True)
    g = torch.tensor([1.0, 2.0])
    (a + 0).backward(g)
    a.grad.zero_()
    a.backward(g)
    a.grad.mul_(5)
    return a.grad, g


@program
def second_backward_is_an_error(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = (x * x).sum()
    y.backward()
    y.backward()


@program
def second_backward_without_saved_tensors(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = (x + x).sum()
    y.backward()
    y.backward()
    return x.grad


@program
def retain_graph(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    return x.grad


@program
def shared_part_is_freed(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    h = x.exp()
    a, b = h.sum(), (h * h).sum()
    a.backward()
    b.backward()


@program
def implicit_scalar(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    (x * 2).backward()


@program
def one_element_is_enough(torch: Any) -> Any:
    x = torch.ones(1, 1, requires_grad=True)
    (x * 2).backward()
    return x.grad


@program
def nothing_requires_grad(torch: Any) -> Any:
    torch.ones(2).sum().backward()


@program
def wrong_shape_of_gradient(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    (x * 2).backward(torch.ones(3))


@program
def gradient_of_another_dtype(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    (x * 2).backward(torch.ones(2, dtype=torch.float64))
    return x.grad


@program
def no_tensor_as_gradient(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    (x * 2).backward(3.0)


@program
def several_roots(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y, z = x * 2, (x * x).sum()
    torch.autograd.backward([y, z], [torch.ones(2), None])
    return x.grad


@program
def a_root_that_leads_to_another(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    z = (y * 3).sum()
    torch.autograd.backward([y, z], [torch.ones(2), None])
    return x.grad


@program
def backward_inputs(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    w = torch.ones(2, requires_grad=True)
    h = x * w
    (h * h).sum().backward(inputs=[w, h])
    return x.grad, w.grad, h.grad


@program
def backward_with_create_graph(torch: Any) -> Any:
    x = torch.tensor(2.0, requires_grad=True)
    (x**3).backward(create_graph=True)
    g = x.grad
    x.grad = None
    g.backward()
    result = x.grad
    x.grad = None
    return g.detach(), g.requires_grad, result


@program
def grad_function(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = torch.tensor([3.0, 4.0], requires_grad=True)
    return torch.autograd.grad((x * y).sum(), [x, y]), x.grad


@program
def grad_of_non_leaf(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    h = x * 2
    return torch.autograd.grad((h * h).sum(), h)


@program
def grad_through_one_target_to_another(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    h = x * 2
    return torch.autograd.grad((h * h).sum(), [h, x])


@program
def grad_of_itself(torch: Any) -> Any:
    x = torch.tensor(3.0, requires_grad=True)
    y = x * 2
    return torch.autograd.grad(y, [y, x])


@program
def grad_with_respect_to_twice_the_same(torch: Any) -> Any:
    x = torch.tensor(3.0, requires_grad=True)
    return torch.autograd.grad(x * x, [x, x])


@program
def grad_of_unused(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    z = torch.ones(2, requires_grad=True)
    return torch.autograd.grad(x.sum(), [x, z])


@program
def grad_allow_unused(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    z = torch.ones(2, requires_grad=True)
    return torch.autograd.grad(x.sum(), [x, z], allow_unused=True)


@program
def grad_materialized(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    z = torch.ones(2, requires_grad=True)
    return torch.autograd.grad(x.sum(), [x, z], materialize_grads=True)


@program
def grad_materialized_but_not_allowed(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    return torch.autograd.grad(x.sum(), [x], allow_unused=False, materialize_grads=True)


@program
def grad_of_what_requires_none(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    return torch.autograd.grad(x.sum(), torch.ones(2))


@program
def grad_of_nothing(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    return torch.autograd.grad(x.sum(), [])


@program
def grad_twice_is_an_error(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    y = (x * x).sum()
    torch.autograd.grad(y, x)
    torch.autograd.grad(y, x)


@program
def higher_orders(torch: Any) -> Any:
    x = torch.tensor(1.5, requires_grad=True)
    y = (x.sin() * x.exp() / (1 + x**2)).tanh()
    found = []
    for _ in range(5):
        (y,) = torch.autograd.grad(y, x, create_graph=True)
        found.append(y.item())
    return found


@program
def vector_jacobian_product(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 2
    while y.norm() < 100:
        y = y * 2
    y.backward(torch.tensor([0.1, 1.0, 0.0001]))
    return x.grad


@program
def retain_grad(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    y.retain_grad()
    y.retain_grad()
    (y * y).sum().backward()
    return y.grad, y.retains_grad, x.retains_grad


@program
def grad_of_non_leaf_warns(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    y.sum().backward()
    return y.grad


@program
def retain_grad_without_requires_grad(torch: Any) -> Any:
    torch.ones(2).retain_grad()


@program
def changing_requires_grad_of_a_non_leaf(torch: Any) -> Any:
    y = torch.ones(2, requires_grad=True) * 2
    y.requires_grad = False


@program
def requires_grad_of_integers(torch: Any) -> Any:
    torch.ones(2, dtype=torch.int64).requires_grad_()


@program
def tensor_of_integers_requires_grad(torch: Any) -> Any:
    torch.tensor([1, 2], requires_grad=True)


@program
def freezing(torch: Any) -> Any:
    w = torch.ones(2, requires_grad=True)
    b = torch.ones(2, requires_grad=True)
    w.requires_grad_(False)
    (w * 2 + b).sum().backward()
    return w.grad, b.grad


@program
def hooks_of_tensors(torch: Any) -> Any:
    seen = []
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    x.register_hook(lambda g: seen.append(("x", g.tolist())))
    h = y.register_hook(lambda g: g * 10)
    y.register_hook(lambda g: seen.append(("y", g.tolist())))
    y.sum().backward(retain_graph=True)
    h.remove()
    y.sum().backward()
    return seen, x.grad


@program
def hook_on_what_requires_no_grad(torch: Any) -> Any:
    torch.ones(2).register_hook(lambda g: g)


@program
def hook_sees_the_sum(torch: Any) -> Any:
    seen = []
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    x.register_hook(lambda g: seen.append(g.tolist()))
    (x * 2 + x * 3).sum().backward()
    return seen


@program
def hook_that_returns_no_tensor(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    x.register_hook(lambda g: "a")
    x.sum().backward()


@program
def hook_and_retain_grad(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 7)
    y.sum().backward()
    return y.grad, x.grad


@program
def post_accumulate_hook(torch: Any) -> Any:
    seen = []
    x = torch.ones(2, requires_grad=True)
    x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.tolist()))
    (x * 2).sum().backward()
    (x * 2).sum().backward()
    return seen


@program
def post_accumulate_hook_of_non_leaf(torch: Any) -> Any:
    (torch.ones(2, requires_grad=True) * 2).register_post_accumulate_grad_hook(lambda p: None)


@program
def hooks_of_nodes(torch: Any) -> Any:
    seen = []
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.grad_fn.register_hook(
        lambda gi, go: seen.append(("post", [None if g is None else g.tolist() for g in gi], [g.tolist() for g in go]))
    )
    y.grad_fn.register_prehook(lambda go: (go[0] * 3,))
    y.sum().backward()
    return seen, x.grad


@program
def no_grad(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        y = x * 2
        with torch.enable_grad():
            z = x * 2
    with torch.set_grad_enabled(False):
        w = x * 2
    return y, z, w, torch.is_grad_enabled()


@program
def no_grad_decorators(torch: Any) -> Any:
    @torch.no_grad()
    def f(x):
        return x * 2

    @torch.no_grad
    def g(x):
        return x * 2

    @torch.no_grad()
    def h(x):
        for _ in range(2):
            got = yield x * 2
            assert got is None

    @torch.set_grad_enabled(False)
    def k(x):
        return x * 2

    x = torch.ones(2, requires_grad=True)
    states = [torch.is_grad_enabled()]
    values = []
    for value in h(x):
        states.append(torch.is_grad_enabled())
        values.append(value)
    return f(x), g(x), k(x), states, values, f.__name__


@program
def no_grad_ends_with_an_error(torch: Any) -> Any:
    try:
        with torch.no_grad():
            raise KeyError
    except KeyError:
        pass
    return torch.is_grad_enabled()


@program
def inference_mode(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    with torch.inference_mode():
        y = x * 2
        state = torch.is_inference_mode_enabled(), torch.is_grad_enabled()
    return y, y.is_inference(), x.is_inference(), state


@program
def enable_grad_in_inference_mode(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    y = x.clone()
    with torch.inference_mode(), torch.enable_grad():
        z = (x.sin() * torch.zeros(2).add_(x)).sum()
        y.mul_(2)
        state = torch.is_inference_mode_enabled(), torch.is_grad_enabled()
    return z, y, y.grad_fn.name(), z.is_inference(), state


@program
def write_without_recording_under_hooks(torch: Any) -> Any:
    x = torch.tensor(0.5, requires_grad=True)
    y = x.tanh()
    with torch.autograd.graph.save_on_cpu(), torch.no_grad():
        y.mul_(2)
    return torch.autograd.grad(y, x)


@program
def linearize_without_recording(torch: Any) -> Any:
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's tracing gives some
        y, push = torch.func.linearize(torch.sin, torch.zeros(2))
        return y, push(torch.ones(2))


@program
def forward_jacobian_is_lists(torch: Any) -> Any:
    x = torch.ones(2)
    found = torch.autograd.functional.jacobian(lambda x: (x, x * 2), (x,), vectorize=True, strategy="forward-mode")
    return type(found).__name__, type(found[0]).__name__, found


@program
def inference_tensor_saved(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    with torch.inference_mode():
        y = torch.ones(2)
    return (x * y).sum()


@program
def inference_tensor_version(torch: Any) -> Any:
    with torch.inference_mode():
        y = torch.ones(2)
    return y._version


@program
def inference_tensor_written_outside(torch: Any) -> Any:
    with torch.inference_mode():
        y = torch.ones(2)
    y.add_(1)


@program
def inference_tensor_cloned(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    with torch.inference_mode():
        y = torch.ones(2)
    (x * y.clone()).sum().backward()
    return x.grad


@program
def detach_shares_memory(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    d = x.detach()
    d[0] = 5
    return x, d, d.requires_grad, x._version, d._version


@program
def detach_notices_writes(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    z = y * y
    y.detach().zero_()
    z.sum().backward()


@program
def data_does_not_notice_writes(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    z = y * y
    y.data.zero_()
    z.sum().backward()
    return x.grad, x._version


@program
def data_assigned(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    x.data = torch.tensor([3.0, 4.0])
    (x * x).sum().backward()
    return x, x.grad


@program
def detach_in_place(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.detach_()
    return y, y.is_leaf


@program
def detach_in_place_of_a_view(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    y = (x * 2)[0]
    y.detach_()


@program
def in_place_on_a_leaf(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    x.add_(1)


@program
def in_place_on_a_view_of_a_leaf(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    x[0] = 1.0


@program
def in_place_on_a_leaf_under_no_grad(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        x.add_(1)
        x -= 0.5
    return x, x._version


@program
def augmented_assignment_to_a_leaf(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    x += 1


@program
def in_place_on_a_non_leaf(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    y.add_(1)
    y.mul_(x)
    y.exp_()
    y.sum().backward()
    return x.grad, y._version, y.grad_fn.name()


@program
def saved_input_written_to(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    z = y * y
    y.add_(1)
    z.sum().backward()


@program
def saved_output_written_to(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x.exp()
    y.add_(1)
    y.sum().backward()


@program
def unsaved_output_written_to(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x + 1
    y.add_(1)
    y.sum().backward()
    return x.grad


@program
def leaf_saved_then_written_under_no_grad(torch: Any) -> Any:
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    y = (w * w).sum()
    with torch.no_grad():
        w.sub_(0.1)
    y.backward()


@program
def in_place_on_a_view(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 2
    v = y[:2]
    v.mul_(3)
    y.sum().backward()
    return x.grad, y._version, v._version, v._base is y


@program
def in_place_on_a_view_with_a_gradient(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    w = torch.tensor([5.0, 6.0], requires_grad=True)
    y = x * 2
    y[1:].mul_(w)
    (y * y).sum().backward()
    return x.grad, w.grad, y.grad_fn.name()


@program
def assigned_slices(torch: Any) -> Any:
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    y = torch.zeros(2, 3)
    y[0, :2] = w
    y[1] = w.sum()
    (y * torch.arange(6.0).view(2, 3)).sum().backward()
    return y, w.grad, y.requires_grad, y.is_leaf


@program
def other_views_follow(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 2
    a, b = y[:2], y.view(3, 1)
    a.mul_(10)
    before = b.grad_fn.name()
    (b * b).sum().backward()
    return x.grad, isinstance(before, str)


@program
def views_of_views(torch: Any) -> Any:
    x = torch.arange(6.0).requires_grad_()
    y = (x * 1).view(2, 3)
    v = y.t()[1]
    v.add_(x[:2])
    y[0].mul_(2)
    (y**2).sum().backward()
    return x.grad, y, v


@program
def base_written_then_view_read(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 2
    v = y[1:]
    y.mul_(x)
    v.sum().backward()
    return x.grad, v


@program
def base_that_gets_a_gradient_later(torch: Any) -> Any:
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    base = torch.zeros(3)
    other, view = base[0], base[1:]
    view.copy_(w)
    return base, other, view, other.requires_grad


@program
def expanded_memory_cannot_be_written(torch: Any) -> Any:
    torch.ones(1).expand(3).add_(1)


@program
def outputs_of_unbind_cannot_be_written(torch: Any) -> Any:
    x = torch.ones(2, 3, requires_grad=True)
    a, _ = (x * 2).unbind(0)
    a.add_(1)


@program
def outputs_of_unbind_written_under_no_grad(torch: Any) -> Any:
    a, b = torch.ones(2, 3).unbind(0)
    with torch.no_grad():
        a.add_(1)
    return a, b


@program
def view_made_under_no_grad_written(torch: Any) -> Any:
    x = torch.ones(2, 3, requires_grad=True)
    y = x * 2
    with torch.no_grad():
        v = y[0]
    v.add_(1)
    v.mul_(x[0])


@program
def in_place_of_a_wrong_shape(torch: Any) -> Any:
    torch.ones(3).add_(torch.ones(2, 3))


@program
def in_place_of_a_wrong_dtype(torch: Any) -> Any:
    torch.ones(3, dtype=torch.int64).add_(0.5)


@program
def in_place_on_its_own_saved_input(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    y.mul_(y)
    y.sum().backward()


@program
def retain_grad_follows_a_write(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    y.retain_grad()
    y.mul_(3)
    (y * y).sum().backward()
    return y.grad, x.grad


@program
def numpy_of_what_requires_grad(torch: Any) -> Any:
    torch.ones(2, requires_grad=True).numpy()


@program
def grad_assigned(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    x.grad = torch.tensor([5.0, 5.0])
    x.sum().backward()
    return x.grad


@program
def grad_assigned_of_a_wrong_shape(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    x.grad = torch.ones(3)


@program
def grad_assigned_of_a_wrong_type(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    x.grad = 3


@program
def deepcopy_of_a_non_leaf(torch: Any) -> Any:
    import copy

    copy.deepcopy(torch.ones(2, requires_grad=True) * 2)


@program
def deepcopy_of_a_leaf(torch: Any) -> Any:
    import copy

    x = torch.ones(2, requires_grad=True)
    x.sum().backward()
    y = copy.deepcopy(x)
    y.data.add_(1)
    return x, y, y.grad


@program
def broadcasting(torch: Any) -> Any:
    x = torch.tensor([[1.0], [2.0]], requires_grad=True)
    y = torch.tensor([3.0, 4.0, 5.0], requires_grad=True)
    s = torch.tensor(2.0, requires_grad=True)
    (x * y + s).pow(2).sum().backward()
    return x.grad, y.grad, s.grad


@program
def mixed_dtypes(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = torch.tensor([3.0, 4.0], dtype=torch.float64, requires_grad=True)
    z = (x * y).sum()
    z.backward()
    return z.dtype, x.grad, y.grad


@program
def several_losses_on_one_graph(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    h = x.exp()
    a, b = h.sum(), (h * h).sum()
    a.backward(retain_graph=True)
    b.backward()
    return x.grad


@program
def adversarial_step(torch: Any) -> Any:
    x = torch.tensor([1.0, -2.0], requires_grad=True)
    w = torch.tensor([0.5, 0.25], requires_grad=True)
    loss = (x * w).sum().sigmoid().log()
    (g,) = torch.autograd.grad(loss, x)
    adversarial = (x + 0.1 * g.sign()).detach()
    (adversarial * w).sum().backward()
    return adversarial, x.grad, w.grad


@program
def jacobian_by_rows(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = torch.stack([x.sum(), (x * x).sum(), x.prod()])
    rows = [torch.autograd.grad(y[i], x, retain_graph=True)[0] for i in range(3)]
    return torch.stack(rows)


@program
def hessian_by_double_backward(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    (g,) = torch.autograd.grad((x**3).sum() + x.prod(), x, create_graph=True)
    return torch.stack([torch.autograd.grad(g[i], x, retain_graph=True)[0] for i in range(3)])


@program
def gradient_penalty(torch: Any) -> Any:
    w = torch.tensor([[0.5, -1.0], [2.0, 0.3]], requires_grad=True)
    x = torch.tensor([[1.0, 2.0]], requires_grad=True)
    out = (x @ w).tanh().sum()
    (g,) = torch.autograd.grad(out, x, create_graph=True)
    ((g.norm(2) - 1) ** 2).backward()
    return w.grad


@program
def a_function_of_ones_own(torch: Any) -> Any:
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.save_for_backward(x)
            ctx.factor = factor
            return x * x * factor

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x * g * ctx.factor, None

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = Square.apply(x, 3.0)
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (gg,) = torch.autograd.grad(g.sum(), x)
    return y, y.grad_fn.name(), g, gg


@program
def a_function_with_setup_context(torch: Any) -> Any:
    class Two(torch.autograd.Function):
        @staticmethod
        def forward(x, y):
            return x * y, (x > y)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.mark_non_differentiable(output[1])

        @staticmethod
        def backward(ctx, g, _):
            x, y = ctx.saved_tensors
            return g * y, g * x if ctx.needs_input_grad[1] else None

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = torch.tensor([3.0, 1.0])
    product, larger = Two.apply(x, y)
    product.sum().backward()
    return product, larger, x.grad


@program
def a_function_with_a_wrong_number_of_gradients(torch: Any) -> Any:
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * y

        @staticmethod
        def backward(ctx, g):
            return g

    x = torch.ones(2, requires_grad=True)
    F.apply(x, x).sum().backward()


@program
def a_function_with_a_wrong_shape(torch: Any) -> Any:
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return torch.ones(7)

    x = torch.ones(2, requires_grad=True)
    F.apply(x).sum().backward()


@program
def a_function_that_writes_in_place(torch: Any) -> Any:
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = torch.ones(2, requires_grad=True)
    y = x * 3
    z = F.apply(y)
    z.sum().backward()
    return x.grad, z is y, y._version


@program
def once_differentiable(torch: Any) -> Any:
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, g):
            return 2 * ctx.saved_tensors[0] * g

    x = torch.ones(2, requires_grad=True)
    (g,) = torch.autograd.grad(F.apply(x).sum(), x, create_graph=True)
    torch.autograd.grad(g.sum(), x)


@program
def backward_inside_a_hook(torch: Any) -> Any:
    w = torch.tensor(2.0, requires_grad=True)
    x = torch.tensor(3.0, requires_grad=True)

    def hook(g):
        with torch.enable_grad():
            (w * w).backward()
        return g

    y = x * x
    y.register_hook(hook)
    y.backward()
    return w.grad, x.grad


@needs_oracle
@pytest.mark.parametrize("each", PROGRAMS, ids=lambda each: each.__name__)
def test_same_as_pytorch(each: Callable[[Any], Any]) -> None:
    same_as_pytorch(each)


def test_a_graph_of_100000_ops_goes_backward() -> None:
    x = tinytorch.ones(1, requires_grad=True)
    y = x
    for _ in range(100_000):
        y = y * 1.0
    y.backward()
    assert x.grad.item() == 1.0
    (g,) = tinytorch.autograd.grad(x * 2, x)  # freeing the deep graph must not recurse either
    del y
    assert g.item() == 2.0


def tensors_alive() -> int:
    kinds = (tinytorch.Tensor, tinytorch.autograd.graph.Node)
    return sum(issubclass(type(each), kinds) for each in gc.get_objects())


def test_memory_dies_without_the_garbage_collector() -> None:
    from tinytorch import nn

    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
    optimizer = tinytorch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x, labels = tinytorch.randn(5, 4), tinytorch.tensor([0, 1, 2, 0, 1])

    def step() -> None:
        loss = nn.functional.cross_entropy(model(x), labels)
        h = model(x)
        h[0] = h[1] * 2  # views and writes in place, hooks and double backward must not make cycles either
        h.register_hook(lambda g: g * 2)
        (g,) = tinytorch.autograd.grad(h.sum(), model[0].weight, create_graph=True)
        optimizer.zero_grad()
        (loss + (g * g).sum()).backward()
        optimizer.step()

    for _ in range(5):  # in the first steps the optimizer plans, and keeps that
        step()
    gc.collect()
    gc.disable()
    try:
        before = tensors_alive()
        for _ in range(1000):
            step()
        assert tensors_alive() == before
    finally:
        gc.enable()


def test_backward_frees_saved_tensors_as_it_walks() -> None:
    import weakref

    x = tinytorch.ones(3, requires_grad=True)
    h = x.exp()
    saved = weakref.ref(h._array)
    y = (h * h).sum()
    del h
    assert saved() is not None
    y.backward()
    assert saved() is None


def test_threads_have_their_own_mode_and_share_leaves() -> None:
    x = tinytorch.zeros(1000, requires_grad=True)
    found: list[bool] = []

    def work() -> None:
        found.append(tinytorch.is_grad_enabled())
        for _ in range(50):
            (x * 1.0).sum().backward()

    with tinytorch.no_grad():
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == [True] * 4
    np.testing.assert_array_equal(x.grad.numpy(), np.full(1000, 200.0, np.float32))


def batches(lib: Any) -> dict[str, Any]:
    """Return calls of `grad` with a batch of vectors."""
    x, unused = lib.tensor([1.0, 2.0, 3.0], requires_grad=True), lib.ones(1, requires_grad=True)
    y, eye = x**3, lib.eye(3)

    def grad(outputs: Any, inputs: Any, vectors: Any, **options: Any) -> Any:
        return lambda: lib.autograd.grad(outputs, inputs, vectors, is_grads_batched=True, **options)

    return {
        "rows": grad(y, x, eye),
        "two outputs": grad((y, y.sum()), x, (eye, lib.ones(3))),
        "unused": grad(y, (x, unused), eye, allow_unused=True),
        "materialized": grad(y, (x, unused), eye, materialize_grads=True),
        "second order": lambda: lib.autograd.grad(grad(y, x, eye, create_graph=True)()[0].sum(), x),
        "no batch": grad(y, x, lib.ones(3)),
        "wrong shape": grad(y, x, lib.ones(2, 2)),
        "different sizes": grad((y, y * 2), x, (eye, lib.ones(2, 3))),
        "no vectors": grad(y.sum(), x, None),
    }


@needs_oracle
@pytest.mark.parametrize("name", batches(tinytorch))
def test_a_batch_of_vectors(name: str) -> None:
    if name in ("different sizes", "no vectors"):  # PyTorch's words are about vmap
        with pytest.raises(ValueError):
            batches(torch)[name]()
        with pytest.raises(ValueError, match="is_grads_batched=True"):
            batches(tinytorch)[name]()
    else:
        same_as_pytorch(lambda lib: batches(lib)[name]())


def test_gradcheck_finds_a_wrong_gradient() -> None:
    class Wrong(tinytorch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 3

    x = tinytorch.randn(3, dtype=tinytorch.float64, requires_grad=True)
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        tinytorch.autograd.gradcheck(Wrong.apply, x)
    assert not tinytorch.autograd.gradcheck(Wrong.apply, x, raise_exception=False)
    with pytest.raises(ValueError, match="require gradient"):
        tinytorch.autograd.gradcheck(lambda x: x * 2, x.detach())


@needs_oracle
def test_the_hooks_of_a_root_run_though_it_leads_to_no_input() -> None:
    def program(torch: Any) -> Any:
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        y, other = x * 3, x.exp()
        y.retain_grad()
        seen: list[Any] = []
        y.register_hook(lambda g: seen.append(g.clone()))
        first, rest = (x * 2).split(1)
        first.retain_grad()
        torch.autograd.grad(y.sum(), other, allow_unused=True)
        torch.autograd.grad(y, other, torch.ones(2), allow_unused=True)
        torch.autograd.grad(first, other, torch.ones(1), allow_unused=True)
        torch.autograd.grad([y, first], other, [torch.ones(2), torch.ones(1)], allow_unused=True)
        y.backward(torch.ones(2), inputs=[other])
        return [y.grad, seen, first.grad, rest.requires_grad, x.grad]

    same_as_pytorch(program)


def hooked(torch: Any, hook: Callable[[Any], Any]) -> Any:
    """Return a leaf, and a sum of it whose backward calls a hook."""
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(hook)
    return x, y.sum()


CALLBACKS: dict[str, Callable[..., Any]] = {}


def callback(program: Callable[..., Any]) -> Callable[..., Any]:
    CALLBACKS[program.__name__] = program
    return program


@callback
def at_the_end_in_order(torch: Any, queue: Any, log: list[Any]) -> None:
    x, total = hooked(torch, lambda g: (queue(lambda: log.append(x.grad)), queue(lambda: log.append("last")), None)[-1])
    x.register_hook(lambda g: log.append("leaf"))
    total.backward()


@callback
def of_the_walk_inside(torch: Any, queue: Any, log: list[Any]) -> None:
    def outer(g: Any) -> None:
        queue(lambda: log.append("outer"))
        with torch.enable_grad():
            hooked(torch, lambda g: queue(lambda: log.append("inner")))[1].backward()
        log.append("between")

    hooked(torch, outer)[1].backward()


@callback
def from_a_callback(torch: Any, queue: Any, log: list[Any]) -> None:
    hooked(torch, lambda g: queue(lambda: (log.append(1), queue(lambda: log.append(2)))))[1].backward()


@callback
def that_raises(torch: Any, queue: Any, log: list[Any]) -> None:
    def fail() -> None:
        raise ValueError("failed")

    x, total = hooked(torch, lambda g: (queue(fail), queue(lambda: log.append("not called")), None)[-1])
    with pytest.raises(ValueError, match="failed"):
        total.backward()
    (x * 3).sum().backward()
    log.append(x.grad)


@callback
def after_a_hook_that_raises(torch: Any, queue: Any, log: list[Any]) -> None:
    def fail(g: Any) -> None:
        queue(lambda: log.append("not called"))
        raise ValueError("failed")

    with pytest.raises(ValueError, match="failed"):
        hooked(torch, fail)[1].backward()
    hooked(torch, lambda g: None)[1].backward()
    queue(lambda: None)


@callback
def of_grad_and_its_mode(torch: Any, queue: Any, log: list[Any]) -> None:
    for create_graph in (True, False):
        x, total = hooked(torch, lambda g: queue(lambda: log.append(torch.is_grad_enabled())))
        torch.autograd.grad(total, x, create_graph=create_graph)


@callback
def outside_of_a_walk(torch: Any, queue: Any, log: list[Any]) -> None:
    queue(lambda: None)


@needs_oracle
@pytest.mark.parametrize("name", CALLBACKS)
def test_callbacks_at_the_end_of_a_walk(name: str) -> None:
    def program(torch: Any) -> Any:
        log: list[Any] = []
        CALLBACKS[name](torch, torch.autograd.Variable._execution_engine.queue_callback, log)
        return log

    same_as_pytorch(program)
