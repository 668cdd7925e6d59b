"""no_grad, enable_grad, inference mode and its tensors: programs run by both libraries."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.autograd.programs import Program, Programs, leaf, made, tried
from tests.same import same_as_pytorch

PROGRAMS = Programs()


@pytest.mark.parametrize("program", PROGRAMS)
def test_same_as_pytorch(program: Program) -> None:
    same_as_pytorch(program)


def state(torch: Any) -> Any:
    return torch.is_grad_enabled(), torch.is_inference_mode_enabled(), (leaf(torch) * 2).requires_grad


def contexts(torch: Any) -> list[Callable[[], Any]]:
    return [
        torch.enable_grad, torch.no_grad, torch.inference_mode, lambda: torch.inference_mode(False),
        lambda: torch.set_grad_enabled(True), lambda: torch.set_grad_enabled(False),
    ]  # fmt: skip


@PROGRAMS
class Modes:
    def every_nesting_of_three(torch):
        found = []
        for a in contexts(torch):
            for b in contexts(torch):
                for c in contexts(torch):
                    with a():
                        with b():
                            with c():
                                found += state(torch), (leaf(torch) * 2).is_inference()
                            found += state(torch)
                        found += state(torch)
                    found += state(torch)
        return found

    def results(torch):
        x, found = leaf(torch), []
        for context in contexts(torch):
            with context():
                fresh, y = torch.ones(2, requires_grad=True), x * 2
                parameter = torch.nn.Parameter(torch.ones(2))
                with torch.enable_grad():
                    z = x * 2
            found.append([(t, t.grad_fn is None, t.is_inference()) for t in (y, z, fresh, parameter, x * 2)])
        return found

    def as_decorators(torch):
        def inside():
            return state(torch)

        found = []
        for decorate in (
            torch.enable_grad(), torch.no_grad(), torch.inference_mode(), torch.inference_mode(False),
            torch.inference_mode(mode=True), torch.no_grad, torch.enable_grad, torch.inference_mode,
        ):  # fmt: skip
            decorated = decorate(inside)
            found.append((decorated.__name__, decorated(), state(torch)))
            for context in (torch.no_grad, torch.inference_mode):
                with context():
                    found.append((decorated(), state(torch)))
        return found + [(torch.set_grad_enabled(flag)(inside)(), state(torch)) for flag in (True, False)]

    def decorated_generators(torch):
        @torch.no_grad()
        def steps():
            for _ in range(3):
                yield torch.is_grad_enabled()

        @torch.enable_grad()
        def other():
            got = yield torch.is_grad_enabled()
            yield got, torch.is_grad_enabled()
            return "end"

        found = [(inside, torch.is_grad_enabled()) for inside in steps()]
        with torch.no_grad():
            each = other()
            found += [next(each), each.send(5)]
            try:
                next(each)
            except StopIteration as stop:
                return found, stop.value, torch.is_grad_enabled()

    def decorated_methods_and_recursion(torch):
        seen = []

        class Model:
            @torch.no_grad()
            def predict(self, x):
                """Return the prediction."""
                return x * 2

            @torch.inference_mode()
            def infer(self, x):
                return x * 2

            @classmethod
            @torch.no_grad()
            def of_class(cls, x):
                return x * 2

        @torch.no_grad()
        def down(n):
            seen.append(torch.is_grad_enabled())
            if n:
                down(n - 1)
            seen.append(torch.is_grad_enabled())

        x, model = leaf(torch), Model()
        down(3)
        return (
            model.predict(x), model.infer(x).is_inference(), Model.of_class(x), model.predict.__name__,
            model.predict.__doc__, seen, torch.is_grad_enabled(),
        )  # fmt: skip

    def decorating_a_class(torch):
        @torch.no_grad()
        class Seen:
            def __init__(self):
                self.made = torch.is_grad_enabled()

            def asked(self):
                return torch.is_grad_enabled()

        return Seen().made, Seen().asked()

    def an_error_ends_them(torch):
        def fail(context):
            with context():
                raise ValueError("inside")

        return tried(*[lambda context=each: fail(context) for each in contexts(torch)]), state(torch)

    def as_functions(torch):
        found = []
        for flag in (True, False, True):
            torch.set_grad_enabled(flag)
            found.append(state(torch))
        return found

    def threads_start_in_the_default_mode(torch):
        found = []
        for context in (torch.no_grad, torch.inference_mode):
            with context():
                thread = threading.Thread(target=lambda: found.append((state(torch), torch.ones(1).is_inference())))
                thread.start()
                thread.join()
        return found

    def names(torch):
        return [
            getattr(torch.autograd, name) is getattr(torch, name)
            for name in ("no_grad", "enable_grad", "set_grad_enabled", "inference_mode")
        ], torch.autograd.grad_mode.no_grad is torch.no_grad

    def multithreading(torch):
        switch, asked = torch.autograd.set_multithreading_enabled, torch.autograd.is_multithreading_enabled
        seen = [asked()]
        with switch(False):
            x = leaf(torch)
            (x * x).sum().backward()
            seen += [asked(), x.grad]
            switch(True)
            seen.append(asked())
        switch(False)
        seen.append(asked())
        switch(True)
        return [*seen, asked(), torch.autograd.grad_mode.set_multithreading_enabled.__name__]


@PROGRAMS
class NoGrad:
    def results_are_constants_later(torch):
        x = leaf(torch)
        with torch.no_grad():
            y = x * x
        (y * x).sum().backward()
        return x.grad, y

    def leaves_may_be_written_to(torch):
        w = leaf(torch)
        for _ in range(3):
            (w * w).sum().backward()
            with torch.no_grad():
                w -= 0.1 * w.grad
                w.grad = None
        return w, w._version, torch.nn.init.constant_(torch.empty(2, requires_grad=True), 2.0)

    def a_leaf_that_was_saved_is_written_to(torch):
        w = leaf(torch)
        y = (w * w).sum()
        with torch.no_grad():
            w.sub_(0.1)
        y.backward()

    def a_write_to_a_result_keeps_its_history(torch):
        x = leaf(torch)
        y, z = x * 2, x * 1
        with torch.no_grad():
            y.add_(5)
            z[:1].mul_(2)
        (y + z).sum().backward()
        return y, z, x.grad, y.grad_fn.name()

    def backward(torch):
        x = leaf(torch)
        y = (x * 2).sum()
        with torch.no_grad():
            y.backward()
        return x.grad

    def views(torch):
        x = leaf(torch)
        with torch.no_grad():
            made_inside = [x[:2], x.detach(), x.view(2)]
        return made_inside, [(v._is_view(), v._base is x) for v in made_inside]

    def views_written_to_outside(torch):
        x = torch.ones(2, 3, requires_grad=True)
        y = x * 2
        with torch.no_grad():
            part, of_leaf, (row, _) = y[0], x[0], (x * 1).unbind()
        return tried(
            lambda: part.add_(1), lambda: part.mul_(x[0]), lambda: (y, part), lambda: row.mul_(2),
            lambda: of_leaf.mul_(2), lambda: x,
        )  # fmt: skip

    def several_views_written_to_inside(torch):
        a, b = torch.ones(2, 3).unbind(0)
        with torch.no_grad():
            a.add_(1)
        return a, b

    def requires_grad_set_inside(torch):
        with torch.no_grad():
            y = (torch.ones(2) * 2).requires_grad_()
        return y, (y * 2).requires_grad

    def numpy(torch):
        x = leaf(torch)
        with torch.no_grad():
            return x.numpy(), np.asarray(x)

    def linearized(torch):
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch's tracing gives some
            y, push = torch.func.linearize(torch.sin, torch.zeros(2))
            found = y, push(torch.ones(2))
        _, vjp = torch.func.vjp(torch.func.grad(lambda x: x.sin().sum()), torch.linspace(-1, 1, 5))
        return found, vjp(torch.linspace(0, 2, 5))

    def write_under_hooks(torch):
        x = torch.tensor(0.5, requires_grad=True)
        y = x.tanh()
        with torch.autograd.graph.save_on_cpu(), torch.no_grad():
            y.mul_(2)
        return torch.autograd.grad(y, x)


def ones(torch: Any, *shape: int, **options: Any) -> Any:
    """Return an inference tensor."""
    with torch.inference_mode():
        return torch.ones(*(shape or (2,)), **options)


PROGRAMS.add(
    "inference tensors",
    is_inference=lambda torch: (torch.is_inference(ones(torch)), torch.is_inference(torch.ones(1))),
    version=lambda torch: ones(torch)._version,
    saved=lambda torch: leaf(torch) * ones(torch),
    saved_as_other=lambda torch: ones(torch) * leaf(torch),
    saved_by_mm=lambda torch: torch.mm(leaf(torch)[None], ones(torch, 2, 1)),
    not_saved=lambda torch: (lambda z: (z, z.is_inference(), z.sum().backward()))(leaf(torch) + ones(torch)),
    used_outside=lambda torch: (lambda z: (z, z.is_inference(), z._version))(ones(torch) * 2),
    cloned=lambda torch: (lambda y: (y.is_inference(), y, (leaf(torch) * y).sum().backward()))(ones(torch).clone()),
    cloned_leaf=lambda torch: (lambda z: ((z * z).sum().backward(), z.grad))(ones(torch).clone().requires_grad_()),
    add_=lambda torch: ones(torch).add_(1),
    setitem=lambda torch: ones(torch).__setitem__(0, 5.0),
    copy_=lambda torch: ones(torch).copy_(torch.zeros(2)),
    written_in_no_grad=lambda torch: torch.no_grad()(lambda: ones(torch).mul_(3))(),
    requires_grad_=lambda torch: ones(torch).requires_grad_(),
    requires_grad=lambda torch: setattr(ones(torch), "requires_grad", True),
    leaf=lambda torch: (lambda y: (y.requires_grad, y.is_leaf))(ones(torch, requires_grad=True)),
    leaf_used=lambda torch: (ones(torch, requires_grad=True) + 1).sum(),
    views=lambda torch: [v(ones(torch, 2, 2)).is_inference() for v in (
        lambda y: y[0], lambda y: y.t(), lambda y: y.view(4), lambda y: y.detach())],
    parameters=lambda torch: torch.inference_mode()(
        lambda: [(p.is_inference(), p.requires_grad) for p in torch.nn.Linear(2, 1).parameters()])(),
    in_a_function=lambda torch: made(
        torch, forward=lambda ctx, x, y: (ctx.save_for_backward(y), x * y)[1],
        backward=lambda ctx, g: (g * ctx.saved_tensors[0], None),
    ).apply(leaf(torch), ones(torch)).sum().backward(),
)  # fmt: skip


def inside(call: Callable[[Any, Any, Any], Any]) -> Program:
    """Return a program that calls with a leaf and a result in inference mode, and looks at all of them."""

    def program(torch):
        x = leaf(torch)
        y = x * 2
        square = (y * y).sum()
        with torch.inference_mode():
            result = call(torch, x, y)
        several = result if isinstance(result, (list, tuple)) else [result]
        kinds = [t.is_inference() for t in several if isinstance(t, torch.Tensor)]
        return result, x, x._version, y, y._version, kinds, tried(lambda: square.backward(), lambda: x.grad)

    return program


PROGRAMS.add(
    "inference mode",
    inside,
    an_op=lambda torch, x, y: x * x,
    recording=lambda torch, x, y: torch.enable_grad()(lambda: [(x.sin() * torch.zeros(2).add_(x)).sum(), y.mul_(2)])(),
    turned_off=lambda torch, x, y: torch.inference_mode(mode=False)(lambda: [x * 2, torch.ones(2)])(),
    a_leaf=lambda torch, x, y: [torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True) * 2],
    views=lambda torch, x, y: [x[0], x.view(2), y[0], torch.ones(2)[0]],
    conversions=lambda torch, x, y: [x.double(), x.float(), x.float() is x],
    numpy=lambda torch, x, y: [x.numpy(), torch.ones(2).numpy().sum()],
    resized=lambda torch, x, y: torch.ones(4, requires_grad=True).resize_(2, 2).shape,
    a_write_to_a_leaf=lambda torch, x, y: x.add_(1),
    a_write_to_what_is_saved=lambda torch, x, y: y.add_(1),
    a_write_to_a_view=lambda torch, x, y: y[:1].add_(1).tolist(),
    backward=lambda torch, x, y: y.sum().backward(),
    a_model=lambda torch, x, y: torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())(x[None]).clone(),
)


@PROGRAMS
class InferenceMode:
    def backward_in_it(torch):
        x = leaf(torch)
        y, z = (x * x).sum(), x.sum()
        with torch.inference_mode():
            y.backward()
            w = z * 2
        return x.grad, tried(lambda: w.backward())

    def views_made_inside_and_written_to_outside(torch):
        x, constant = torch.ones(2, 2, requires_grad=True), torch.ones(2, 2)
        with torch.inference_mode():
            views = [each[0] for each in (x, x * 1, constant.add_(1))]
        return tried(*[lambda v=v: v.add_(1) for v in views]), constant, constant._version, constant.is_inference()

    def a_view_made_outside_and_written_to_inside(torch):
        y = torch.ones(3, requires_grad=True) * 1
        v = y[:2]
        with torch.inference_mode():
            v.add_(1)
        return y, v, y._version, y.grad_fn.name(), v.grad_fn.name()


def test_evaluation_mode_is_no_mode_of_autograd() -> None:
    import tinytorch as torch

    model = torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.Linear(2, 1))
    with torch.no_grad():
        assert (model[0](torch.ones(64)) == 0).any()
    assert [m.training for m in model.eval().modules()] == [False] * 3
    model(torch.ones(3, 2)).sum().backward()
    assert model[1].weight.grad.tolist() == [[3, 3]] and torch.is_grad_enabled()
    assert [m.training for m in model.train().modules()] == [True] * 3
    assert [m.training for m in model.train(False).modules()] == [False] * 3
