"""PyTorch's note "Autograd mechanics", section by section (its kinks are in `test_kinks.py`)."""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.autograd.documented import Page
from tests.oracle import needs_oracle
from tests.same import same_as_pytorch

PAGE = Page()
section = PAGE.section


# How autograd encodes the history -------------------------------------------------------------------

history = section("How autograd encodes the history")


@history
def the_graph_is_made_anew_in_every_iteration(torch: Any) -> Any:
    x = torch.tensor([0.5, -0.25], requires_grad=True)
    found = []
    for k in range(4):
        y = x
        while y.norm() < k + 1:  # control flow of Python
            y = y * 2
        y.sum().backward()
        found.append((x.grad.clone(), y.grad_fn is not None))
        x.grad = None
    return found


@history
def roots_and_leaves(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    w = torch.ones(2)
    y = (x * w).exp().sum()
    names = []
    node = y.grad_fn
    while node is not None:
        names.append((node.name(), len(node.next_functions), [k for _, k in node.next_functions]))
        node = node.next_functions[0][0]
    return names


@history
def grad_fn_is_the_entry_point(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    y = x * 3
    g = y.grad_fn(torch.ones(2))
    accumulate = y.grad_fn.next_functions[0][0]
    return g, accumulate.variable is x, isinstance(y.grad_fn, torch.autograd.graph.Node)


@history
def a_tensor_used_twice(torch: Any) -> Any:
    x = torch.tensor(3.0, requires_grad=True)
    y = x * x + x
    y.backward()
    return x.grad, [n.name() for n, _ in y.grad_fn.next_functions]


@history
def the_same_grad_fn_for_the_same_tensor(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    a, b = (y + 1).grad_fn, (y + 2).grad_fn
    left, right = a.next_functions[0][0], b.next_functions[0][0]
    leaf = (x + 1).grad_fn.next_functions[0][0]
    return left is right, left is y.grad_fn, leaf is (x + 2).grad_fn.next_functions[0][0]


# Saved tensors --------------------------------------------------------------------------------------

saved = section("Saved tensors")


@saved
def the_square_saves_its_input(torch: Any) -> Any:
    x = torch.tensor([1.0, -2.0, 3.0], requires_grad=True)
    y = x.pow(2)
    return x.equal(y.grad_fn._saved_self), x is y.grad_fn._saved_self


@saved
def exp_saves_its_result(torch: Any) -> Any:
    x = torch.tensor([1.0, -2.0, 3.0], requires_grad=True)
    y = x.exp()
    return y.equal(y.grad_fn._saved_result), y is y.grad_fn._saved_result


@saved
def the_packed_result_shares_memory(torch: Any) -> Any:
    x = torch.tensor([1.0, -2.0, 3.0], requires_grad=True)
    y = x.exp()
    kept = y.grad_fn._saved_result
    return kept.data_ptr() == y.data_ptr(), kept.requires_grad, kept.grad_fn is y.grad_fn


@saved
def a_product_saves_both_inputs(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = torch.tensor([3.0, 4.0], requires_grad=True)
    node = (x * y).grad_fn
    return node._saved_self is x, node._saved_other is y


@saved
def a_frozen_factor_means_that_the_other_is_not_saved(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    w = torch.tensor([3.0, 4.0])
    node = (x * w).grad_fn
    return node._saved_self, node._saved_other


@saved
def access_after_backward(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x.pow(2)
    y.sum().backward()
    return y.grad_fn._saved_self


@saved
def second_backward(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x.pow(2).sum()
    y.backward()
    y.backward()


@saved
def second_backward_where_nothing_is_saved(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = (x + 1).sum()
    y.backward()
    y.backward()
    return x.grad


@saved
def retained_graph(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x.pow(2).sum()
    y.backward(retain_graph=True)
    y.backward()
    return x.grad


# Setting requires_grad ------------------------------------------------------------------------------

requires = section("Setting requires_grad")


@requires
def default_is_false_unless_a_parameter(torch: Any) -> Any:
    data = torch.ones(2)
    return data.requires_grad, torch.nn.Parameter(data).requires_grad


@requires
def an_operation_is_recorded_if_one_input_requires_grad(torch: Any) -> Any:
    x, y = torch.ones(2), torch.ones(2)
    z = torch.ones(2, requires_grad=True)
    a = x + y
    b = a + z
    return a, b, a.grad_fn is None, b.grad_fn.name()


@requires
def only_leaves_get_a_gradient(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    w = torch.ones(2)
    y = x * w
    (y * y).sum().backward()
    return x.grad, w.grad, y.grad


@requires
def non_leaves_cannot_be_switched_off(torch: Any) -> Any:
    y = torch.ones(2, requires_grad=True) * 2
    y.requires_grad = True  # is it already: nothing
    y.requires_grad = False


@requires
def non_leaves_cannot_be_switched_off_by_method(torch: Any) -> Any:
    (torch.ones(2, requires_grad=True) * 2).requires_grad_(False)


@requires
def freezing_parts_of_a_model(torch: Any) -> Any:
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    model[0].requires_grad_(False)
    model(torch.ones(5, 3)).sum().backward()
    return [(p.requires_grad, p.grad) for p in model.parameters()]


@requires
def a_module_sets_all_its_parameters(torch: Any) -> Any:
    model = torch.nn.Linear(2, 2)
    first = [p.requires_grad for p in model.parameters()]
    returned = model.requires_grad_(False) is model
    return first, returned, [p.requires_grad for p in model.parameters()]


@requires
def a_frozen_leaf_between(torch: Any) -> Any:
    w = torch.tensor([2.0], requires_grad=True)
    h = w * 3
    w.requires_grad_(False)  # after the recording: the graph stays, but the leaf ...
    h.backward()
    return w.grad


@requires
def integers_cannot(torch: Any) -> Any:
    return torch.ones(2, dtype=torch.int64).requires_grad_()


@requires
def integers_cannot_by_attribute(torch: Any) -> Any:
    x = torch.tensor([1, 2])
    x.requires_grad = False
    x.requires_grad = True


@requires
def integers_cannot_by_constructor(torch: Any) -> Any:
    return torch.tensor([1, 2], requires_grad=True)


@requires
def factories_take_it(torch: Any) -> Any:
    return [
        torch.zeros(2, requires_grad=True),
        torch.ones(2, requires_grad=True),
        torch.full((2,), 3.0, requires_grad=True),
        torch.arange(2.0, requires_grad=True),
        torch.linspace(0, 1, 3, requires_grad=True),
        torch.eye(2, requires_grad=True),
        torch.randn(2, requires_grad=True),
        torch.rand(2, requires_grad=True),
        torch.zeros_like(torch.ones(2), requires_grad=True),
        torch.ones(2).new_zeros(3, requires_grad=True),
        torch.ones(2).new_tensor([1.0], requires_grad=True),
    ]


@requires
def like_functions_do_not_inherit_it(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    return torch.zeros_like(x), torch.empty_like(x).requires_grad, x.new_ones(2), torch.rand_like(x)


@requires
def conversions_to_integers_drop_it(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    return x.long(), x.int(), x.bool(), x.to(torch.int8), x.double()


@requires
def a_shape_question_does_not_need_it(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    return x.shape, x.dim(), x.numel(), x.size(0)


# Grad modes -----------------------------------------------------------------------------------------

modes = section("Grad Modes")


@modes
def the_table(torch: Any) -> Any:
    """Excluded from the graph; used in grad mode later."""
    found = []
    for context in (torch.enable_grad, torch.no_grad, torch.inference_mode):
        x = torch.ones(2, requires_grad=True)
        with context():
            y = x * 2
        found.append((y, y.is_inference(), y.grad_fn is None))
    return found


@modes
def every_nesting_of_three(torch: Any) -> Any:
    contexts = [
        torch.enable_grad,
        torch.no_grad,
        torch.inference_mode,
        lambda: torch.inference_mode(False),
        lambda: torch.set_grad_enabled(True),
        lambda: torch.set_grad_enabled(False),
    ]
    found = []

    def state() -> Any:
        found.append((torch.is_grad_enabled(), torch.is_inference_mode_enabled()))

    for a in contexts:
        for b in contexts:
            for c in contexts:
                with a():
                    with b():
                        with c():
                            state()
                        state()
                    state()
                state()
    return found


@modes
def results_in_every_nesting_of_two(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    contexts = [torch.no_grad, torch.inference_mode, lambda: torch.inference_mode(False)]
    found = []
    for a in [*contexts, torch.enable_grad]:
        for b in contexts:
            with a(), b():
                y = x * 2
            found.append((y.requires_grad, y.is_inference()))
    return found


@modes
def every_mode_as_a_decorator(torch: Any) -> Any:
    def state() -> Any:
        return torch.is_grad_enabled(), torch.is_inference_mode_enabled()

    found = []
    for decorate in (
        torch.enable_grad(),
        torch.no_grad(),
        torch.inference_mode(),
        torch.inference_mode(False),
        torch.inference_mode(mode=True),
        torch.no_grad,
        torch.enable_grad,
        torch.inference_mode,
    ):
        inside = decorate(state)
        found.append((inside.__name__, inside(), state()))
        with torch.no_grad():
            found.append((inside(), state()))
        with torch.inference_mode():
            found.append((inside(), state()))
    for flag in (True, False):
        inside = torch.set_grad_enabled(flag)(state)
        found.append((inside(), state()))
    return found


@modes
def decorated_generators_keep_the_mode_to_themselves(torch: Any) -> Any:
    @torch.no_grad()
    def steps() -> Any:
        for _ in range(3):
            yield torch.is_grad_enabled()

    return [(inside, torch.is_grad_enabled()) for inside in steps()]


@modes
def a_decorated_generator_under_another_mode(torch: Any) -> Any:
    @torch.enable_grad()
    def steps() -> Any:
        got = yield torch.is_grad_enabled()
        yield got, torch.is_grad_enabled()
        return "end"

    with torch.no_grad():
        each = steps()
        first = next(each)
        second = each.send(5)
        try:
            next(each)
        except StopIteration as stop:
            return first, second, stop.value, torch.is_grad_enabled()


@modes
def decorated_methods(torch: Any) -> Any:
    class Model:
        @torch.no_grad()
        def predict(self, x: Any) -> Any:
            """Return the prediction."""
            return x * 2

        @torch.inference_mode()
        def infer(self, x: Any) -> Any:
            return x * 2

        @classmethod
        @torch.no_grad()
        def of_class(cls, x: Any) -> Any:
            return x * 2

    x = torch.ones(2, requires_grad=True)
    model = Model()
    return (
        model.predict(x),
        model.infer(x).is_inference(),
        Model.of_class(x),
        model.predict.__name__,
        model.predict.__doc__,
    )


@modes
def recursion_through_a_decorator(torch: Any) -> Any:
    seen = []

    @torch.no_grad()
    def down(n: int) -> None:
        seen.append(torch.is_grad_enabled())
        if n:
            down(n - 1)
        seen.append(torch.is_grad_enabled())

    down(3)
    return seen, torch.is_grad_enabled()


@modes
def an_exception_restores_the_mode(torch: Any) -> Any:
    found = []
    for context in (torch.no_grad, torch.inference_mode, lambda: torch.set_grad_enabled(False)):
        try:
            with context():
                raise ValueError("inside")
        except ValueError:
            found.append((torch.is_grad_enabled(), torch.is_inference_mode_enabled()))
    return found


@modes
def set_grad_enabled_as_a_function(torch: Any) -> Any:
    x = torch.tensor([1.0], requires_grad=True)
    is_train = False
    with torch.set_grad_enabled(is_train):
        y = x * 2
    found = [y.requires_grad]
    torch.set_grad_enabled(True)
    found.append((x * 2).requires_grad)
    torch.set_grad_enabled(False)
    found.append((x * 2).requires_grad)
    torch.set_grad_enabled(True)
    return found


@modes
def a_thread_starts_in_the_default_mode(torch: Any) -> Any:
    found = []
    with torch.no_grad():
        thread = threading.Thread(target=lambda: found.append(torch.is_grad_enabled()))
        thread.start()
        thread.join()
    with torch.inference_mode():
        thread = threading.Thread(
            target=lambda: found.append((torch.is_inference_mode_enabled(), torch.ones(1).is_inference()))
        )
        thread.start()
        thread.join()
    return found


# Default mode ---------------------------------------------------------------------------------------


@section("Default Mode (Grad Mode)")
def the_only_mode_where_requires_grad_takes_effect(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        a = x * 2
        fresh = torch.ones(2, requires_grad=True)
        parameter = torch.nn.Parameter(torch.ones(2))
    return x * 2, a, fresh, parameter.requires_grad


# No-grad mode ---------------------------------------------------------------------------------------

no_grad = section("No-grad Mode")


@no_grad
def results_are_used_in_grad_mode_later(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with torch.no_grad():
        y = x * x
    (y * x).sum().backward()
    return x.grad, y


@no_grad
def the_update_of_an_optimizer(torch: Any) -> Any:
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    for _ in range(3):
        (w * w).sum().backward()
        with torch.no_grad():
            w -= 0.1 * w.grad
            w.grad = None
    return w


@no_grad
def a_write_to_a_leaf_outside(torch: Any) -> Any:
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    w -= 0.1


@no_grad
def initialisation_is_not_recorded(torch: Any) -> Any:
    w = torch.empty(3, 3, requires_grad=True)
    torch.nn.init.constant_(w, 2.0)
    return w, w._version


@no_grad
def views_made_inside_and_written_to_outside(torch: Any) -> Any:
    x = torch.ones(3, requires_grad=True)
    y = x * 1
    with torch.no_grad():
        v = y[:2]
    v.mul_(2)
    return y


@no_grad
def several_views_made_inside_and_written_to_outside(torch: Any) -> Any:
    x = torch.ones(3, requires_grad=True)
    y = x * 1
    with torch.no_grad():
        a, _b, _c = y.unbind()
    a.mul_(2)
    return y


@no_grad
def views_of_leaves_made_inside_and_written_to_outside(torch: Any) -> Any:
    x = torch.ones(3, requires_grad=True)
    with torch.no_grad():
        v = x[:2]
    v.mul_(2)
    return x


@no_grad
def views_made_and_written_to_inside(torch: Any) -> Any:
    x = torch.ones(3, requires_grad=True)
    y = x * 1
    with torch.no_grad():
        y[:2].mul_(2)
    y.sum().backward()
    return y, x.grad


@no_grad
def a_write_to_a_result_inside_keeps_its_history(torch: Any) -> Any:
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    with torch.no_grad():
        y.add_(5)
    y.sum().backward()
    return y, x.grad, y.grad_fn.name()


@no_grad
def backward_inside(torch: Any) -> Any:
    x = torch.ones(3, requires_grad=True)
    y = (x * 2).sum()
    with torch.no_grad():
        y.backward()
    return x.grad


@no_grad
def views_inside_do_not_require_grad(torch: Any) -> Any:
    x = torch.ones(3, requires_grad=True)
    with torch.no_grad():
        v = x[:2]
        w = x.detach()
        t = x.view(3)
    return v, w, t, v._is_view(), v._base is x


@no_grad
def requires_grad_set_inside(torch: Any) -> Any:
    with torch.no_grad():
        y = torch.ones(2) * 2
        y.requires_grad_()
    return y, (y * 2).requires_grad


# Inference mode -------------------------------------------------------------------------------------

inference = section("Inference Mode")


@inference
def the_example_of_its_docstring(torch: Any) -> Any:
    x = torch.ones(1, 2, 3, requires_grad=True)
    with torch.inference_mode():
        y = x * x
    found = [y.requires_grad, y.is_inference()]

    @torch.inference_mode()
    def func(x: Any) -> Any:
        return x * x

    out = func(x)

    @torch.inference_mode()
    def doubler(x: Any) -> Any:
        return x * 2

    return [*found, out.requires_grad, doubler(x).requires_grad]


@inference
def no_version_counter(torch: Any) -> Any:
    with torch.inference_mode():
        y = torch.ones(2)
    return y._version


@inference
def cannot_be_saved_for_backward(torch: Any) -> Any:
    with torch.inference_mode():
        y = torch.ones(2)
    return y * torch.ones(2, requires_grad=True)


@inference
def cannot_be_saved_for_backward_as_a_result(torch: Any) -> Any:
    with torch.inference_mode():
        y = torch.ones(2)
    x = torch.ones(2, requires_grad=True)
    return torch.mm(x[None], y[:, None])


@inference
def can_be_used_where_it_is_not_saved(torch: Any) -> Any:
    with torch.inference_mode():
        y = torch.ones(2)
    x = torch.ones(2, requires_grad=True)
    z = x + y
    z.sum().backward()
    return z, x.grad, z.is_inference()


@inference
def functional_operations_outside_make_normal_tensors(torch: Any) -> Any:
    with torch.inference_mode():
        y = torch.ones(2)
    z = y * 2
    return z, z.is_inference(), z._version, y.clone().is_inference(), y.detach().is_inference()


@inference
def a_clone_can_be_recorded(torch: Any) -> Any:
    with torch.inference_mode():
        y = torch.tensor([2.0, 3.0])
    z = y.clone().requires_grad_()
    (z * z).sum().backward()
    return z.grad


@inference
def writing_outside(torch: Any) -> Any:
    with torch.inference_mode():
        y = torch.ones(2)
    y.add_(1)


@inference
def writing_by_index_outside(torch: Any) -> Any:
    with torch.inference_mode():
        y = torch.ones(2)
    y[0] = 5.0


@inference
def writing_outside_with_copy(torch: Any) -> Any:
    with torch.inference_mode():
        y = torch.ones(2)
    y.copy_(torch.zeros(2))


@inference
def writing_outside_in_no_grad(torch: Any) -> Any:
    with torch.inference_mode():
        y = torch.ones(2)
    with torch.no_grad():
        y.mul_(3)
    return y


@inference
def writing_inside_to_a_normal_tensor(torch: Any) -> Any:
    x = torch.ones(2)
    with torch.inference_mode():
        x.add_(1)
    return x, x._version, x.is_inference()


@inference
def writing_inside_to_a_leaf(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    with torch.inference_mode():
        x.add_(1)
    return x, x.is_inference(), x._version


@inference
def writing_inside_to_a_saved_tensor(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    h = x * 2
    y = (h * h).sum()
    with torch.inference_mode():
        h.add_(1)
    y.backward()


@inference
def views_outside_of_inference_tensors(torch: Any) -> Any:
    with torch.inference_mode():
        y = torch.ones(2, 2)
    return (y[0].is_inference(), y.t().is_inference(), y.view(4).is_inference(), y.detach().is_inference())


@inference
def views_inside_of_normal_tensors(torch: Any) -> Any:
    x = torch.ones(2, 2)
    with torch.inference_mode():
        v = x[0]
        w = x.view(4)
    return v.is_inference(), w.is_inference(), v.requires_grad


@inference
def views_inside_of_leaves_written_to_outside(torch: Any) -> Any:
    x = torch.ones(2, 2, requires_grad=True)
    with torch.inference_mode():
        v = x[0]
    v.add_(1)


@inference
def views_inside_of_results_written_to_outside(torch: Any) -> Any:
    x = torch.ones(2, 2, requires_grad=True) * 1
    with torch.inference_mode():
        v = x[0]
    v.add_(1)


@inference
def views_inside_of_plain_tensors_written_to_outside(torch: Any) -> Any:
    x = torch.ones(2, 2)
    with torch.inference_mode():
        v = x[0]
    v.add_(1)
    return x, v, x._version


@inference
def requires_grad_outside(torch: Any) -> Any:
    with torch.inference_mode():
        y = torch.ones(2)
    y.requires_grad_()


@inference
def requires_grad_attribute_outside(torch: Any) -> Any:
    with torch.inference_mode():
        y = torch.ones(2)
    y.requires_grad = True


@inference
def requires_grad_inside(torch: Any) -> Any:
    with torch.inference_mode():
        y = torch.ones(2, requires_grad=True)
        z = y * 2
    return y.requires_grad, y.is_leaf, z.requires_grad


@inference
def a_leaf_made_inside_used_outside(torch: Any) -> Any:
    with torch.inference_mode():
        y = torch.ones(2, requires_grad=True)
    return (y + 1).sum()


@inference
def backward_in_inference_mode(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    y = (x * x).sum()
    with torch.inference_mode():
        y.backward()
    return x.grad


@inference
def backward_of_a_result_made_inside(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    with torch.inference_mode():
        y = (x * x).sum()
    y.backward()


@inference
def mode_false_inside(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    with torch.inference_mode(), torch.inference_mode(mode=False):
        y = x * 2
        z = torch.ones(2)
    return y, y.is_inference(), z.is_inference(), z._version


@inference
def converted_inside(torch: Any) -> Any:
    x = torch.ones(2)
    with torch.inference_mode():
        return x.double().is_inference(), x.float().is_inference(), x.float() is x, x.numpy().sum()


@inference
def a_parameter_made_inside(torch: Any) -> Any:
    with torch.inference_mode():
        layer = torch.nn.Linear(2, 1)
    return layer.weight.is_inference(), layer.weight.requires_grad


@inference
def a_custom_function_saves_one(torch: Any) -> Any:
    class Keep(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            ctx.save_for_backward(y)
            return x * y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.saved_tensors[0], None

    with torch.inference_mode():
        y = torch.ones(2)
    Keep.apply(torch.ones(2, requires_grad=True), y).sum().backward()


@inference
def a_model_evaluated(torch: Any) -> Any:
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
    with torch.inference_mode():
        y = model(torch.ones(4, 2))
    return y.clone(), y.is_inference(), model[0].weight.requires_grad


# Evaluation mode ------------------------------------------------------------------------------------

evaluation = section("Evaluation Mode (nn.Module.eval())")


@evaluation
def it_is_no_mode_of_autograd(torch: Any) -> Any:
    model = torch.nn.Linear(2, 1).eval()
    y = model(torch.ones(3, 2))
    y.sum().backward()
    return y.requires_grad, model.weight.grad, torch.is_grad_enabled()


@evaluation
def no_grad_does_not_switch_dropout_off(torch: Any) -> Any:
    model = torch.nn.Dropout(0.5)
    with torch.no_grad():
        trained = model(torch.ones(8))
    model.eval()
    return trained, model(torch.ones(8)), model.training


@evaluation
def train_false_is_eval(torch: Any) -> Any:
    model = torch.nn.Sequential(torch.nn.Dropout(), torch.nn.Linear(1, 1))
    first = [m.training for m in model.modules()]
    model.train(False)
    second = [m.training for m in model.modules()]
    model.train()
    return first, second, [m.training for m in model.modules()]


# In-place operations with autograd ------------------------------------------------------------------

in_place = section("In-place operations with autograd")


@in_place
def a_value_needed_for_a_gradient_is_overwritten(torch: Any) -> Any:
    x = torch.ones(3, requires_grad=True)
    y = x.exp()
    z = y.sum()
    y.mul_(2)
    z.backward()


@in_place
def the_graph_is_rewritten(torch: Any) -> Any:
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    before = y.grad_fn.name()
    y.add_(1)
    y.mul_(3)
    y.sum().backward()
    return before, y.grad_fn.name(), x.grad, y


@in_place
def of_a_view_the_base_too(torch: Any) -> Any:
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    v = y[1:]
    v.mul_(5)
    y.sum().backward()
    return y.grad_fn.name(), v.grad_fn.name(), x.grad, v._base is y


@in_place
def of_a_base_the_views_too(torch: Any) -> Any:
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    v = y[1:]
    y.mul_(5)
    v.sum().backward()
    return y.grad_fn.name(), v.grad_fn.name(), x.grad


@in_place
def a_leaf(torch: Any) -> Any:
    torch.ones(3, requires_grad=True).add_(1)


@in_place
def a_view_of_a_leaf(torch: Any) -> Any:
    torch.ones(3, requires_grad=True)[0].add_(1)


@in_place
def an_index_of_a_leaf(torch: Any) -> Any:
    torch.ones(3, requires_grad=True)[0] = 1


@in_place
def a_leaf_that_does_not_require_grad_yet(torch: Any) -> Any:
    x = torch.ones(3)
    y = torch.ones(3, requires_grad=True)
    x.mul_(y)
    x.sum().backward()
    return x, y.grad, x.is_leaf


@in_place
def outputs_of_one_node_with_several(torch: Any) -> Any:
    x = torch.ones(4, requires_grad=True) * 1
    a, b = x.split(2)
    a.mul_(2)
    return b


@in_place
def outputs_of_unbind(torch: Any) -> Any:
    x = torch.ones(2, 2, requires_grad=True) * 1
    for row in x:
        row.add_(1)


@in_place
def outputs_of_chunk(torch: Any) -> Any:
    x = torch.ones(4, requires_grad=True) * 1
    x.chunk(2)[0].zero_()


@in_place
def a_tensor_expanded(torch: Any) -> Any:
    torch.ones(1, requires_grad=True).expand(3).clone().add_(1)
    (torch.ones(1, requires_grad=True) * 1).expand(3).add_(1)


@in_place
def writes_through_detach(torch: Any) -> Any:
    x = torch.ones(3, requires_grad=True)
    y = x.exp()
    y.detach().zero_()
    y.sum().backward()


@in_place
def writes_through_data_go_unnoticed(torch: Any) -> Any:
    x = torch.ones(3, requires_grad=True)
    y = x * 1
    z = y * y
    y.data.zero_()
    z.sum().backward()
    return x.grad, y._version


@in_place
def relu_in_place(torch: Any) -> Any:
    x = torch.tensor([-1.0, 2.0], requires_grad=True)
    y = (x * 3).relu_()
    y.sum().backward()
    return y, x.grad


@in_place
def relu_in_place_of_a_saved_result(torch: Any) -> Any:
    x = torch.tensor([-1.0, 2.0], requires_grad=True)
    y = x.tanh()
    torch.nn.functional.relu(y, inplace=True).sum().backward()


# In-place correctness checks ------------------------------------------------------------------------

checks = section("In-place correctness checks")


@checks
def the_counter_counts_writes(torch: Any) -> Any:
    x = torch.ones(2)
    found = [x._version]
    x.add_(1)
    found.append(x._version)
    x[0] = 5
    found.append(x._version)
    v = x[:1]
    v.mul_(2)
    found += [x._version, v._version]
    x.detach().zero_()
    found.append(x._version)
    x.data.add_(1)
    found.append(x._version)
    with torch.no_grad():
        x.copy_(torch.zeros(2))
    found.append(x._version)
    x.requires_grad_()
    found.append(x._version)
    return found


@checks
def the_message_names_the_versions(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    h = x * 2
    y = h**2
    h += 1
    h += 1
    y.sum().backward()


@checks
def the_message_names_shape_and_node(torch: Any) -> Any:
    x = torch.ones(2, 3, requires_grad=True)
    y = x.sigmoid()
    y += 1
    try:
        y.sum().backward()
    except RuntimeError as error:
        text = str(error)
        return [w in text for w in ("[torch.FloatTensor [2, 3]]", "output 0 of Sigmoid", "version 1", "version 0")]


@checks
def a_write_before_the_save_is_fine(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    h = x * 2
    h += 1
    (h * h).sum().backward()
    return x.grad


@checks
def a_write_after_backward_is_fine(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    h = x * 2
    (h * h).sum().backward()
    h += 1
    return x.grad, h


@checks
def what_is_not_saved_may_be_written_to(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    h = x * 2
    y = h + 1
    h.zero_()
    y.sum().backward()
    return x.grad


@checks
def a_write_through_a_view_is_noticed(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    h = x * 2
    y = (h * h).sum()
    h[0] = 0
    y.backward()


@checks
def only_the_written_one_of_two(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    a, b = x * 2, x * 3
    y, z = (a * a).sum(), (b * b).sum()
    a.zero_()
    z.backward()
    g = x.grad.clone()
    try:
        y.backward()
    except RuntimeError as error:
        return g, "modified by an inplace operation" in str(error)


@checks
def the_optimizer_wrote_between(torch: Any) -> Any:
    w = torch.tensor([2.0], requires_grad=True)
    loss = (w * w).sum()
    optimizer = torch.optim.SGD([w], lr=0.1)
    loss.backward(retain_graph=True)
    optimizer.step()
    loss.backward()


@checks
def in_a_custom_function(torch: Any) -> Any:
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 2 * g * ctx.saved_tensors[0]

    h = torch.ones(2, requires_grad=True) * 2
    y = Square.apply(h)
    h.add_(1)
    y.sum().backward()


@checks
def what_the_accessor_says(torch: Any) -> Any:
    h = torch.ones(2, requires_grad=True) * 2
    y = h.pow(2)
    h.add_(1)
    return y.grad_fn._saved_self


@checks
def a_dirty_argument_counts(torch: Any) -> Any:
    class AddOne(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            x.add_(1)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    h = torch.ones(2, requires_grad=True) * 2
    before = h._version
    z = AddOne.apply(h)
    z.sum().backward()
    return before, h._version, z is h, h.grad_fn is z.grad_fn


# Multithreaded autograd -----------------------------------------------------------------------------

threads = section("Multithreaded Autograd")


def in_threads(count: int, work: Callable[[], None]) -> None:
    each = [threading.Thread(target=work) for _ in range(count)]
    for thread in each:
        thread.start()
    for thread in each:
        thread.join()


@threads
def the_train_function_of_the_note(torch: Any) -> Any:
    found = []

    def train() -> None:
        x = torch.ones(5, 5, requires_grad=True)
        y = (x + 3) * (x + 4) * 0.5
        y.sum().backward()
        found.append(x.grad)

    in_threads(4, train)
    return found


@threads
def grad_is_deterministic_on_shared_inputs(torch: Any) -> Any:
    x = torch.ones(3, requires_grad=True)
    found = []
    in_threads(4, lambda: found.append(torch.autograd.grad((x * x).sum(), x)[0]))
    return found, x.grad


@threads
def a_graph_shared_is_freed_by_the_first(torch: Any) -> Any:
    h = torch.ones(3, requires_grad=True).exp()
    found = []

    def work() -> None:
        try:
            (h * h).sum().backward()
            found.append("done")
        except RuntimeError as error:
            found.append("second time" in str(error))

    for _ in range(2):
        in_threads(1, work)
    return found


@threads
def a_graph_shared_and_retained(torch: Any) -> Any:
    x = torch.ones(3, requires_grad=True)
    h = x.exp()
    found = []
    in_threads(4, lambda: found.append(torch.autograd.grad(h.sum(), x, retain_graph=True)[0]))
    return found


@threads
def hooks_in_threads(torch: Any) -> Any:
    x = torch.ones(1, requires_grad=True)
    seen = []
    x.register_hook(lambda g: seen.append(g.item()))
    in_threads(4, lambda: (x * 2).sum().backward())
    return seen, x.grad


# Hooks for saved tensors ----------------------------------------------------------------------------

saved_hooks = section("Hooks for saved tensors")


@saved_hooks
def to_disk(torch: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        names = []

        def pack(tensor: Any) -> str:
            name = os.path.join(folder, f"{len(names)}.pt")
            names.append(name)
            torch.save(tensor, name)
            return name

        x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
        with torch.autograd.graph.saved_tensors_hooks(pack, torch.load):
            y = x.pow(2) * x
        y.sum().backward()
        return x.grad, len(names)


@saved_hooks
def pack_is_called_once_and_unpack_at_each_access(torch: Any) -> Any:
    calls = []

    def pack(t: Any) -> Any:
        calls.append("pack")
        return t.detach()

    def unpack(t: Any) -> Any:
        calls.append("unpack")
        return t

    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = x.pow(2)
    y.sum().backward(retain_graph=True)
    kept = y.grad_fn._saved_self
    y.sum().backward()
    return calls, kept, x.grad


@saved_hooks
def what_they_pack(torch: Any) -> Any:
    seen = []

    def pack(t: Any) -> Any:
        seen.append((tuple(t.shape), t.requires_grad))
        return t.detach()

    x = torch.ones(2, 3, requires_grad=True)
    w = torch.ones(3, 2)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        x.exp()
        x @ w
        x * x
        x + x
        x.sum()
        x.max()
        x.tanh()
        (x * 2).relu()
        x / x
    return seen


@saved_hooks
def any_object_can_be_packed(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    for pack, unpack in (
        (lambda t: t.tolist(), torch.tensor),
        (lambda t: ("number", t.detach()), lambda item: item[1]),
        (lambda t: t.detach() * 2, lambda t: t / 2),
    ):
        with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            y = (x * x).sum()
        y.backward()
    return x.grad


@saved_hooks
def metadata_of_what_is_unpacked_is_ignored(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t.requires_grad_(False)):
        y = (x**3).sum()
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    return g, torch.autograd.grad(g.sum(), x)


@saved_hooks
def writing_to_the_input_of_pack(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach().add_(1), lambda t: t):
        return (x * 2) ** 2


@saved_hooks
def unpack_returns_no_tensor(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: 5):
        y = (x * x).sum()
    y.backward()


@saved_hooks
def unpack_returns_another_shape(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t[:1]):
        y = (x * x).sum()
    y.backward()
    return x.grad


registering = section("Registering hooks for a saved tensor")


@registering
def on_one_saved_tensor(torch: Any) -> Any:
    calls = []

    def pack(t: Any) -> Any:
        calls.append("pack")
        return t.detach() * 2

    def unpack(t: Any) -> Any:
        calls.append("unpack")
        return t / 2

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x.pow(2)
    y.grad_fn._raw_saved_self.register_hooks(pack, unpack)
    at_once = list(calls)
    kept = y.grad_fn._saved_self
    y.sum().backward()
    return at_once, kept, x.grad, calls


@registering
def twice_on_one_saved_tensor(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x.pow(2)
    y.grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t)
    y.grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t)


@registering
def not_callable(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    x.pow(2).grad_fn._raw_saved_self.register_hooks(5, 6)


@registering
def after_release(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x.pow(2)
    raw = y.grad_fn._raw_saved_self
    y.sum().backward()
    raw.register_hooks(lambda t: t, lambda t: t)


@registering
def access_after_release(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x.pow(2)
    y.sum().backward()
    return type(y.grad_fn._raw_saved_self).__name__


defaults = section("Registering default hooks for saved tensors")


@defaults
def by_size(torch: Any) -> Any:
    kept = []

    def pack(t: Any) -> Any:
        if t.numel() < 4:
            return t.detach()
        kept.append(t.detach().clone())
        return len(kept) - 1

    def unpack(item: Any) -> Any:
        return item if isinstance(item, torch.Tensor) else kept[item]

    x, y = torch.ones(3, requires_grad=True), torch.ones(5, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        z = x.exp().sum() * y.exp().sum()
    z.backward()
    return x.grad, y.grad, len(kept)


@defaults
def thread_local(torch: Any) -> Any:
    seen = []
    x = torch.ones(3, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: seen.append(1), lambda t: t):
        in_threads(1, lambda: x.exp())
    return seen


# Backward hooks execution ---------------------------------------------------------------------------

fired = section("Whether a particular hook will be fired")


def with_hooks(torch: Any) -> Any:
    """Return leaf, intermediate and result with a hook of each kind, and the record that they write."""
    seen: list[str] = []
    x = torch.tensor(2.0, requires_grad=True)
    y = x * 3
    z = y * y

    def note(name: str) -> Callable[..., None]:
        return lambda *_: seen.append(name)

    for name, tensor in (("y", y), ("z", z)):
        tensor.grad_fn.register_hook(note(f"{name} post"))
        tensor.grad_fn.register_prehook(note(f"{name} pre"))
        tensor.register_hook(note(f"{name} tensor"))
    x.register_hook(note("x tensor"))
    x.register_post_accumulate_grad_hook(note("x accumulated"))
    return x, y, z, seen


@fired
def all_of_them_in_backward(torch: Any) -> Any:
    x, _y, z, seen = with_hooks(torch)
    z.backward()
    return seen, x.grad


@fired
def in_grad_of_the_leaf(torch: Any) -> Any:
    x, _y, z, seen = with_hooks(torch)
    return torch.autograd.grad(z, x), seen, x.grad


@fired
def in_grad_of_the_intermediate_its_node_does_not_run(torch: Any) -> Any:
    _x, y, z, seen = with_hooks(torch)
    return torch.autograd.grad(z, y), seen


@fired
def in_grad_of_both_it_does(torch: Any) -> Any:
    x, y, z, seen = with_hooks(torch)
    return torch.autograd.grad(z, [x, y]), seen


@fired
def in_backward_with_inputs_all_run(torch: Any) -> Any:
    x, y, z, seen = with_hooks(torch)
    z.backward(inputs=[y])
    return seen, x.grad, y.grad


@fired
def in_backward_with_the_leaf_as_input(torch: Any) -> Any:
    x, _y, z, seen = with_hooks(torch)
    z.backward(inputs=[x])
    return seen, x.grad


@fired
def in_backward_with_the_result_as_input(torch: Any) -> Any:
    x, _y, z, seen = with_hooks(torch)
    z.backward(inputs=[z])
    return seen, z.grad, x.grad


@fired
def in_grad_of_the_result_itself(torch: Any) -> Any:
    _x, _y, z, seen = with_hooks(torch)
    return torch.autograd.grad(z, z), seen


@fired
def not_for_what_gets_no_gradient(torch: Any) -> Any:
    x = torch.tensor(2.0, requires_grad=True)
    w = torch.tensor(2.0, requires_grad=True)
    seen: list[int] = []
    w.register_hook(lambda g: seen.append(1))
    w.register_post_accumulate_grad_hook(lambda p: seen.append(2))
    (x * w.detach()).backward()
    return seen


order = section("The order in which the different hooks are fired")


@order
def of_all_kinds(torch: Any) -> Any:
    x = torch.tensor(2.0, requires_grad=True)
    y = x * 3
    seen = []
    y.grad_fn.register_hook(lambda a, b: seen.append(("post", a[0].item(), b[0].item())))
    y.grad_fn.register_prehook(lambda g: seen.append(("pre", g[0].item(), y.grad is None)))
    y.retain_grad()
    y.register_hook(lambda g: seen.append(("tensor", g.item(), y.grad is None)))
    (y * y).backward()
    return seen, y.grad


@order
def each_sees_what_the_one_before_returned(torch: Any) -> Any:
    x = torch.tensor(2.0, requires_grad=True)
    y = x * 3
    seen = []

    def times(k: float) -> Any:
        def hook(g: Any) -> Any:
            seen.append((k, g.item()))
            return g * k

        return hook

    y.register_hook(times(2.0))
    y.register_hook(times(3.0))
    y.grad_fn.register_prehook(lambda g: (g[0] * 5,))
    y.retain_grad()
    y.register_hook(times(7.0))
    y.grad_fn.register_hook(lambda a, b: (a[0] * 11, None) if len(a) == 2 else (a[0] * 11,))
    y.backward()
    return seen, y.grad, x.grad


@order
def of_a_leaf(torch: Any) -> Any:
    x = torch.tensor(2.0, requires_grad=True)
    seen = []
    x.register_post_accumulate_grad_hook(lambda p: seen.append(("accumulated", p.grad.item())))
    x.register_hook(lambda g: seen.append(("tensor", g.item(), x.grad is None)))
    node = (x * 1).grad_fn.next_functions[0][0]
    node.register_prehook(lambda g: seen.append(("pre", g[0].item(), x.grad is None)))
    node.register_hook(lambda a, b: seen.append(("post", len(a), b[0].item(), x.grad is None)))
    (x * 3).backward()
    return seen, x.grad


@order
def retain_grad_sees_later_hooks(torch: Any) -> Any:
    x = torch.tensor(2.0, requires_grad=True)
    y = x * 3
    y.retain_grad()
    y.register_hook(lambda g: g * 10)
    y.backward()
    return y.grad, x.grad


@order
def a_removed_hook_is_skipped(torch: Any) -> Any:
    x = torch.tensor(2.0, requires_grad=True)
    a = x.register_hook(lambda g: g * 2)
    x.register_hook(lambda g: g * 3)
    a.remove()
    (x * 1).backward()
    return x.grad


@order
def of_several_outputs(torch: Any) -> Any:
    x = torch.arange(4.0, requires_grad=True)
    a, b = x.split(2)
    seen = []
    b.register_hook(lambda g: seen.append("b"))
    a.register_hook(lambda g: seen.append("a"))
    a.grad_fn.register_prehook(lambda gs: seen.append(("pre", [g is None for g in gs])))
    (a.sum() + b.sum()).backward()
    return seen, x.grad


@order
def of_one_of_several_outputs(torch: Any) -> Any:
    x = torch.arange(4.0, requires_grad=True)
    a, b = x.split(2)
    seen = []
    b.register_hook(lambda g: seen.append("b"))
    a.register_hook(lambda g: seen.append("a"))
    a.grad_fn.register_prehook(lambda gs: seen.append(("pre", [g is None for g in gs])))
    a.sum().backward()
    return seen, x.grad


special = section("Special hooks")


@special
def multi_grad_hook_with_all(torch: Any) -> Any:
    seen = []
    a, b, c = (torch.tensor(float(k), requires_grad=True) for k in (1, 2, 3))
    handle = torch.autograd.graph.register_multi_grad_hook(
        (a, b, c), lambda gs: seen.append([None if g is None else g.item() for g in gs])
    )
    (a * b).backward(inputs=(a, b))
    (a * b * c).backward()
    handle.remove()
    (a * b * c).backward()
    return seen


@special
def multi_grad_hook_with_any(torch: Any) -> Any:
    seen = []
    a, b = (torch.tensor(float(k), requires_grad=True) for k in (1, 2))
    torch.autograd.graph.register_multi_grad_hook((a, b), lambda g: seen.append(g.item()), mode="any")
    (a * b).backward()
    (a * 3).backward()
    return seen


@special
def multi_grad_hook_with_another_mode(torch: Any) -> Any:
    a = torch.tensor(1.0, requires_grad=True)
    torch.autograd.graph.register_multi_grad_hook((a,), lambda g: None, mode="some")


@special
def module_full_backward_hook(torch: Any) -> Any:
    torch.manual_seed(0)
    seen = []
    layer = torch.nn.Linear(2, 3)
    layer.register_full_backward_hook(
        lambda m, gi, go: seen.append(([g is None for g in gi], [tuple(g.shape) for g in go]))
    )
    x = torch.ones(4, 2, requires_grad=True)
    y = layer(x)
    name = y.grad_fn.name()
    y.sum().backward()
    return seen, x.grad, name


@special
def module_full_backward_hook_replaces(torch: Any) -> Any:
    layer = torch.nn.Tanh()
    layer.register_full_backward_hook(lambda m, gi, go: (gi[0] * 10,))
    layer.register_full_backward_pre_hook(lambda m, go: (go[0] * 2,))
    x = torch.zeros(2, requires_grad=True)
    layer(x).sum().backward()
    return x.grad


@special
def module_full_backward_hook_without_gradient_of_inputs(torch: Any) -> Any:
    seen = []
    layer = torch.nn.Linear(2, 3)
    layer.register_full_backward_hook(lambda m, gi, go: seen.append([g is None for g in gi]))
    layer(torch.ones(4, 2)).sum().backward()
    return seen


@special
def module_full_backward_hook_and_a_write_in_place(torch: Any) -> Any:
    layer = torch.nn.Linear(2, 3)
    layer.register_full_backward_hook(lambda m, gi, go: None)
    y = layer(torch.ones(4, 2, requires_grad=True))
    y.add_(1)


modified = section("Behavior of Tensor hooks when Tensor is modified in-place")


@modified
def the_example_of_the_note(torch: Any) -> Any:
    seen = []
    t = torch.tensor(1.0, requires_grad=True).sin()
    t.cos_()
    t.register_hook(lambda g: seen.append(g.item()))
    t.backward()
    return seen


@modified
def registered_before(torch: Any) -> Any:
    seen = []
    t = torch.tensor(1.0, requires_grad=True).sin()
    t.register_hook(lambda g: seen.append(("before", round(g.item(), 5))))
    t.cos_()
    t.register_hook(lambda g: seen.append(("after", round(g.item(), 5))))
    t.backward()
    return seen


@modified
def retain_grad_moves_on(torch: Any) -> Any:
    t = torch.tensor(1.0, requires_grad=True).sin()
    t.retain_grad()
    t.cos_()
    t.backward()
    return t.grad, t.retains_grad


@modified
def retain_grad_twice_moves_on(torch: Any) -> Any:
    x = torch.tensor(1.0, requires_grad=True)
    t = x.sin()
    t.retain_grad()
    t.cos_()
    t.retain_grad()
    t.mul_(3)
    (t * 2).backward()
    return t.grad, x.grad


@modified
def a_base_modified_through_a_view(torch: Any) -> Any:
    seen = []
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: seen.append(("before", g.tolist())))
    y[0].mul_(5)
    y.register_hook(lambda g: seen.append(("after", g.tolist())))
    (y * 3).sum().backward()
    return seen, x.grad


@modified
def a_leaf_that_becomes_a_result(torch: Any) -> Any:
    seen = []
    t = torch.ones(2, requires_grad=True)
    t.register_hook(lambda g: seen.append(g.tolist()))
    with torch.no_grad():
        t.mul_(3)
    (t * 2).sum().backward()
    return seen, t.grad


@modified
def a_leaf_without_gradient_that_becomes_a_result(torch: Any) -> Any:
    seen = []
    x = torch.ones(2, requires_grad=True)
    t = torch.ones(2)
    t.mul_(x)
    t.register_hook(lambda g: seen.append(g.tolist()))
    t.retain_grad()
    (t * 2).sum().backward()
    return seen, t.grad, x.grad


@no_grad
def numpy_of_what_requires_grad(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        return x.numpy(), np.asarray(x)


@inference
def numpy_of_what_requires_grad_inside(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    with torch.inference_mode():
        return x.numpy()


@no_grad
def numpy_outside(torch: Any) -> Any:
    return torch.ones(2, requires_grad=True).numpy()


@inference
def a_view_written_to_inside(torch: Any) -> Any:
    y = torch.ones(3, requires_grad=True) * 1
    v = y[:2]
    with torch.inference_mode():
        v.add_(1)
    return y, v, y._version


@in_place
def second_derivatives_through_written_views(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * x
    y[0] = x[1] ** 3
    y[1:].mul_(x[0])
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    return g, torch.autograd.grad(g.pow(2).sum(), x)


@in_place
def a_value_given_to_a_plain_tensor(torch: Any) -> Any:
    v = torch.ones(1, requires_grad=True)
    x = torch.zeros(3)
    x[1] = v
    x.sum().backward()
    return x, v.grad, x.grad_fn.name()


@in_place
def data_replaced(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    y = (x * x).sum()
    x.data = torch.full((2,), 5.0)
    y.backward()
    return x.grad


@in_place
def a_gradient_reset(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    x.sum().backward()
    x.grad.detach_()
    x.grad.zero_()
    return x.grad


@order
def a_hook_that_removes_itself(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    seen = []
    handle = x.register_hook(lambda g: (seen.append(1), handle.remove())[1])
    x.sum().backward()
    x.sum().backward()
    return seen


@order
def a_hook_that_registers_another(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    seen = []
    y.register_hook(lambda g: (x.register_hook(lambda g: seen.append("x")), None)[1])
    y.sum().backward()
    return seen


@order
def an_exception_in_a_hook_restores_everything(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    handle = y.register_hook(lambda g: 1 / 0)
    with contextlib.suppress(ZeroDivisionError):
        y.sum().backward()
    handle.remove()
    return torch.is_grad_enabled(), (x * 3).requires_grad, x.grad


@order
def pre_hooks_of_wrong_length(torch: Any) -> Any:
    y = torch.ones(2, requires_grad=True) * 2
    y.grad_fn.register_prehook(lambda g: ())
    y.sum().backward()


@order
def post_hooks_of_wrong_length(torch: Any) -> Any:
    y = torch.ones(2, requires_grad=True).exp()
    y.grad_fn.register_hook(lambda a, b: (a[0], a[0]))
    y.sum().backward()


@fired
def after_accumulation_but_not_in_grad(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    seen = []
    x.register_post_accumulate_grad_hook(lambda p: seen.append(1))
    torch.autograd.grad(x.sum(), x)
    x.sum().backward(inputs=[x])
    return seen


@fired
def retain_grad_in_grad(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.retain_grad()
    torch.autograd.grad((y * y).sum(), x)
    return y.grad


@modified
def an_edge_taken_before(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    edge = torch.autograd.graph.get_gradient_edge(y)
    y.mul_(3)
    return torch.autograd.grad(y.sum(), [edge, x])


@needs_oracle
@pytest.mark.parametrize("program", PAGE.programs)
def test_same_as_pytorch(program: Callable[[Any], Any]) -> None:
    same_as_pytorch(program)
