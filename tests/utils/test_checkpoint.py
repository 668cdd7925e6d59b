"""`torch.utils.checkpoint`: both variants, against PyTorch."""

from __future__ import annotations

import gc
import weakref
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

import tinytorch
from tests.same import compared, expressions
from tinytorch.utils.checkpoint import CheckpointError, checkpoint, checkpoint_sequential

parametrize = pytest.mark.parametrize
both = parametrize("reentrant", [False, True], ids=["saved", "reentrant"])


def saved(library: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
    """Return the result of a call under the non-reentrant variant."""
    return library.utils.checkpoint.checkpoint(function, *args, use_reentrant=False, **kwargs)


def reentrant(library: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
    return library.utils.checkpoint.checkpoint(function, *args, use_reentrant=True, **kwargs)


def leaf(torch: Any, *shape: int) -> Any:
    return torch.randn(shape, dtype=torch.float64, requires_grad=True)


@both
@compared
def test_gradients_and_dropout_masks_are_those_without(torch: Any, reentrant: bool) -> Any:
    nn = torch.nn
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(0.5), nn.Linear(8, 3), nn.Softmax(-1))
    x = torch.randn(5, 4, requires_grad=True)
    seen = []
    for checkpointed in (False, True):
        torch.manual_seed(3)
        net.zero_grad()
        x.grad = None
        run = torch.utils.checkpoint.checkpoint
        out = run(net, x, use_reentrant=reentrant) if checkpointed else net(x)
        drawn = [torch.rand(2)]
        out.pow(2).sum().backward()
        drawn.append(torch.rand(2))
        seen.append([out.detach(), drawn, x.grad, [each.grad for each in net.parameters()]])
    without, with_checkpoint = seen
    assert torch.equal(without[0], with_checkpoint[0]) and torch.equal(without[2], with_checkpoint[2])
    return seen, torch.get_rng_state()


@both
@compared
def test_without_the_random_state_the_second_run_draws_on(torch: Any, reentrant: bool) -> Any:
    x = torch.ones(20, requires_grad=True)
    y = torch.utils.checkpoint.checkpoint(torch.nn.Dropout(), x, use_reentrant=reentrant, preserve_rng_state=False)
    y.sum().backward()
    return y.detach(), x.grad, torch.rand(2)


@both
@compared
def test_the_function_runs_once_forward_and_once_in_each_backward(torch: Any, reentrant: bool) -> Any:
    calls = []

    def function(x: Any, y: Any) -> Any:
        calls.append((x.requires_grad, torch.is_grad_enabled()))
        return (x * y).sin().exp()

    x, y = leaf(torch, 3), leaf(torch, 3)
    out = torch.utils.checkpoint.checkpoint(function, x, y, use_reentrant=reentrant)
    count = [len(calls)]
    out.sum().backward(retain_graph=True)
    count.append(len(calls))
    out.sum().backward()
    count.append(len(calls))
    return count, calls, x.grad, y.grad, type(out.grad_fn).__name__


CALLS = expressions("""
    # A second backward needs `retain_graph`; an argument that was written to before backward is noticed.
    [y := run(torch.sin, x).sum(), y.backward(), y.backward()]
    [y := x * 2, out := run(torch.sin, y), y.detach().mul_(2), out.sum().backward()]
    # Nothing requires grad, or nothing is recorded; an error in the function comes through.
    [out := run(layer, torch.ones(2)), out.requires_grad and out.sum().backward(), layer.weight.grad, layer.bias.grad]
    torch.no_grad()(lambda: run(torch.exp, x))(); run(lambda x: {}["mine"], x)
""")


@both
@parametrize("call", CALLS)
@compared
def test_calls(torch: Any, call: str, reentrant: bool) -> Any:
    run = partial(torch.utils.checkpoint.checkpoint, use_reentrant=reentrant)
    result = eval(call, {"torch": torch, "x": leaf(torch, 3), "layer": torch.nn.Linear(2, 2), "run": run})
    return [each for each in result if each is not None][-2:] if isinstance(result, list) else result


@both
@compared
def test_several_outputs_and_arguments_of_all_kinds(torch: Any, reentrant: bool) -> Any:
    def function(x: Any, factor: float, index: Any, nothing: None, flag: bool, y: Any) -> Any:
        assert nothing is None and flag is True
        return x[index] * factor, (x * y).tanh(), index + 1, "text"

    x, y = leaf(torch, 4), leaf(torch, 4)
    index = torch.tensor([0, 2, 2])
    a, b, c, d = torch.utils.checkpoint.checkpoint(function, x, 2.5, index, None, True, y, use_reentrant=reentrant)
    b.sum().backward()
    return a.detach(), b.detach(), c, d, x.grad, y.grad, a.requires_grad, c.requires_grad


@both
@parametrize("name", ["grad", "inputs"])
@compared
def test_gradients_of_some_inputs_only(torch: Any, reentrant: bool, name: str) -> Any:
    x, y = leaf(torch, 3), leaf(torch, 3)
    out = torch.utils.checkpoint.checkpoint(lambda x, y: (x * y).sin(), x, y, use_reentrant=reentrant).sum()
    if name == "grad":
        return torch.autograd.grad(out, x)
    out.backward(inputs=[y])
    return x.grad, y.grad


@both
@compared
def test_writes_in_place_and_views_in_the_function(torch: Any, reentrant: bool) -> Any:
    def function(x: Any) -> Any:
        y = x.sin()
        y.mul_(2)
        y[1:].add_(x[:2].exp())
        return y.t() if y.ndim == 2 else y.view(3, 1)

    x = leaf(torch, 3)
    out = torch.utils.checkpoint.checkpoint(function, x, use_reentrant=reentrant)
    out.cos().sum().backward()
    return out.detach(), x.grad


@both
@compared
def test_a_custom_function_inside(torch: Any, reentrant: bool) -> Any:
    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, factor: float) -> Any:
            out = x.exp() * factor
            ctx.save_for_backward(x, out)
            return out

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, out = ctx.saved_tensors
            return g * out + 0 * x, None

    x = leaf(torch, 3)
    run = torch.utils.checkpoint.checkpoint
    out = run(lambda x: Scaled.apply(x.sin(), 3.0).cos(), x, use_reentrant=reentrant)
    out.sum().backward()
    return out.detach(), x.grad


@both
@compared
def test_in_a_chain(torch: Any, reentrant: bool) -> Any:
    run = torch.utils.checkpoint.checkpoint
    x = leaf(torch, 3)
    y = x * 2
    for _ in range(3):
        y = run(lambda y: y.sin() * y, y, use_reentrant=reentrant)
    y.sum().backward()
    return y.detach(), x.grad


@parametrize("reentrant", [False, True, None])
@parametrize("segments", [1, 2, 3, 5])
@compared
def test_checkpoint_sequential(torch: Any, reentrant: bool | None, segments: int) -> Any:
    nn, calls = torch.nn, []
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Dropout(0.3), nn.Linear(4, 2), nn.Sigmoid())
    for number, each in enumerate(net):
        each.register_forward_hook(lambda *_, number=number: calls.append(number))
    x = torch.randn(5, 3, requires_grad=True)
    run = torch.utils.checkpoint.checkpoint_sequential
    with pytest.raises(ValueError, match="Unexpected keyword arguments: other"):
        run(net, 2, x, use_reentrant=False, other=1)
    out = run(net, segments, x, reentrant)
    out.sum().backward()
    as_list = run(list(net), segments, x, use_reentrant=reentrant, preserve_rng_state=False)
    return out.detach(), as_list.detach(), x.grad, net[0].weight.grad, calls


@compared
def test_the_variant_is_to_be_named(torch: Any) -> Any:
    x = leaf(torch, 2)
    out = torch.utils.checkpoint.checkpoint(torch.exp, x)
    return type(out.grad_fn).__name__


@parametrize("options", [
    {"use_reentrant": True, "factor": 2}, {"use_reentrant": True, "debug": True},
    {"use_reentrant": True, "context_fn": lambda: None}, {"use_reentrant": False, "determinism_check": "strict"},
    {"use_reentrant": False, "debug": True, "context_fn": lambda: None}, {"use_reentrant": False, "nothing": 1},
], ids=lambda options: "-".join(options))  # fmt: skip
@compared
def test_options_that_are_refused(torch: Any, options: Any) -> Any:
    torch.utils.checkpoint.checkpoint(lambda x: x.exp(), leaf(torch, 2), **options)


@compared
def test_the_helpers(torch: Any) -> Any:
    from importlib import import_module

    module = import_module(f"{torch.__name__}.utils.checkpoint")
    x = leaf(torch, 2)
    module.check_backward_validity([x.detach(), 3])
    a, b, c = module.detach_variable((x * 2, x.detach(), "text"))
    assert issubclass(module.CheckpointError, RuntimeError)
    return a, b, c, len(module.noop_context_fn()), module.detach_variable([x])


@compared
def test_second_derivatives(torch: Any) -> Any:
    def function(x: Any, y: Any) -> Any:
        return saved(torch, lambda x: (x.tanh() @ y).exp(), x)

    x, w = leaf(torch, 3), leaf(torch, 3)
    out = saved(torch, lambda x: (x.sin() * w).exp() * x, x * 2)
    (first,) = torch.autograd.grad(out.sum(), x, create_graph=True)
    second = torch.autograd.grad(first.pow(2).sum(), [x, w])
    first.sum().backward()
    inputs = (leaf(torch, 2, 2), leaf(torch, 2, 2))
    checks = torch.autograd.gradcheck(function, inputs), torch.autograd.gradgradcheck(function, inputs)
    return first, second, x.grad, w.grad, checks


@compared
def test_keyword_arguments_and_structures(torch: Any) -> Any:
    def function(pair: Any, *, other: Any, power: int = 1) -> Any:
        return {"out": (pair[0].sin() * other) ** power, "in": pair}

    x, y, z = (leaf(torch, 3) for _ in range(3))
    out = saved(torch, function, [x, y], other=z, power=2)
    (out["out"].sum() + out["in"][1].sum()).backward()
    return sorted(out), x.grad, y.grad, z.grad


@parametrize("early", [True, False])
@compared
def test_it_stops_when_all_is_there(torch: Any, early: bool) -> Any:
    steps = []

    def function(x: Any) -> Any:
        steps.append("start")
        y = x.sin()
        steps.append("sin")
        y = y.cos()
        steps.append("cos")
        y = y + 1
        steps.append("add")
        return y

    x = leaf(torch, 3)
    saved(torch, function, x, early_stop=early).sum().backward()
    with torch.utils.checkpoint.set_checkpoint_early_stop(not early):
        y = saved(torch, function, x, early_stop=early).sum()
    steps.append("backward")
    y.backward()
    return steps, x.grad


@parametrize("early", [True, False])
@compared
def test_nested(torch: Any, early: bool) -> Any:
    calls = []

    def inner(x: Any) -> Any:
        calls.append("inner")
        return torch.nn.functional.dropout(x.sin(), 0.5).exp()

    def middle(x: Any) -> Any:
        calls.append("middle")
        return saved(torch, inner, x.cos(), early_stop=early).cos()

    def outer(x: Any) -> Any:
        calls.append("outer")
        y = saved(torch, middle, x.exp(), early_stop=early)
        return (saved(torch, inner, y, early_stop=early) * x).tanh()

    x = leaf(torch, 3)
    out = saved(torch, outer, x, early_stop=early)
    calls.append("backward")
    out.sum().backward(retain_graph=True)
    calls.append("backward")
    out.sum().backward()
    return out.detach(), x.grad, calls, torch.rand(2)


@compared
def test_nested_with_reentrant_inside(torch: Any) -> Any:
    x = leaf(torch, 3)
    out = saved(torch, lambda x: reentrant(torch, torch.sin, x.exp()).cos(), x)
    out.sum().backward()
    return x.grad


@parametrize("early", [True, False])
@parametrize("retain", [True, False])
@compared
def test_backward_inside_the_function(torch: Any, early: bool, retain: bool) -> Any:
    def function(x: Any) -> Any:
        z = x.sin().cos()
        (g,) = torch.autograd.grad(z.sum(), x, retain_graph=retain)
        return (x.cos() * g + z if retain else x.cos() * g).exp()

    x = leaf(torch, 3)
    saved(torch, function, x, early_stop=early).sum().backward()
    return x.grad


@parametrize("early", [True, False])
@parametrize("change", ["fewer", "more", "shape", "dtype"])
@compared
def test_a_function_that_changes_is_found_out(torch: Any, change: str, early: bool) -> Any:
    again = False

    def function(x: Any) -> Any:
        if not again:
            return x.sin().exp().sum()
        if change == "fewer":
            return x.exp().sum()
        if change == "more":  # (not detected if the recomputation stops as soon as all slots are filled)
            return x.sin().exp().cos().sum()
        return (x[:2] if change == "shape" else x.float()).sin().exp().sum()

    x = leaf(torch, 3)
    out = saved(torch, function, x, early_stop=early)
    again = True
    out.backward()
    return x.grad


def test_without_the_determinism_check_other_shapes_are_not_looked_at() -> None:
    again = False
    x = tinytorch.ones(3, requires_grad=True)

    def function(x: Any) -> Any:
        return x.sin() if not again else x.double().sin()

    out = checkpoint(function, x, use_reentrant=False, determinism_check="none")
    again = True
    out.sum().backward()
    assert tinytorch.allclose(x.grad, x.detach().cos())


@parametrize("overrule", [False, True])
def test_debug_tells_the_ops_of_both_runs(overrule: bool) -> None:
    again = False

    def function(x: Any) -> Any:
        return x.exp() if again else x.sin().cos()

    x = tinytorch.ones(3, requires_grad=True)
    with tinytorch.utils.checkpoint.set_checkpoint_debug_enabled(True if overrule else None):
        out = checkpoint(function, x, use_reentrant=False, debug=not overrule)
    again = True
    with pytest.raises(CheckpointError, match="different number of tensors") as caught:
        out.sum().backward()
    first, second = str(caught.value).split("executed during recomputation:")
    assert "sin  (" in first and "cos  (" in first and "exp  (" in second and __file__ in first


@compared
def test_contexts_are_entered_around_the_runs(torch: Any) -> Any:
    events = []

    @contextmanager
    def noted(name: str) -> Any:
        events.append(f"enter {name}")
        yield
        events.append(f"exit {name}")

    def function(x: Any) -> Any:
        events.append("run")
        return x.sin() + 1

    x = leaf(torch, 3)
    out = saved(torch, function, x, context_fn=lambda: (noted("forward"), noted("again")), early_stop=False)
    events.append("backward")
    out.sum().backward()
    return events


@compared
def test_a_context_must_not_swallow_errors(torch: Any) -> Any:
    from contextlib import nullcontext, suppress

    def function(x: Any) -> Any:
        raise KeyError

    saved(torch, function, leaf(torch, 2), context_fn=lambda: (suppress(KeyError), nullcontext()))


@compared
def test_part_of_the_graph_at_a_time(torch: Any) -> Any:
    x, y = leaf(torch, 3), leaf(torch, 3)
    a, b = saved(torch, lambda x, y: (x.sin().exp(), (x * y).cos()), x, y)
    (gx,) = torch.autograd.grad(a.sum(), x)
    b.sum().backward()
    return gx, x.grad, y.grad


@compared
def test_hooks_on_saved_tensors_around_a_checkpoint_see_its_arguments(torch: Any) -> Any:
    seen = []

    def pack(x: Any) -> Any:
        seen.append(("pack", tuple(x.shape)))
        return x

    def unpack(x: Any) -> Any:
        seen.append(("unpack", tuple(x.shape)))
        return x

    x, y = leaf(torch, 3), leaf(torch, 2, 1)
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        out = saved(torch, lambda x, y: (x * y).sin().exp(), x, y)
    out.sum().backward()
    return seen, x.grad, y.grad


def living(function: Any) -> int:
    """Return the number of intermediate tensors that are alive after the forward pass of a deep function."""
    references = []

    def deep(x: Any) -> Any:
        for _ in range(10):
            x = x.sin()
            references.append(weakref.ref(x._array))
        return x

    x = tinytorch.ones(1000, requires_grad=True)
    out = function(deep, x).sum()
    count = sum(each() is not None for each in references)
    out.backward()
    assert x.grad is not None
    del out
    assert not any(each() is not None for each in references), "backward leaves nothing behind"
    return count


@both
def test_values_in_between_do_not_live_on(reentrant: bool) -> None:
    gc.disable()  # memory must be freed without the garbage collector
    try:
        assert living(lambda function, x: function(x)) >= 9
        assert living(lambda function, x: checkpoint(function, x, use_reentrant=reentrant)) <= 1
    finally:
        gc.enable()


@both
def test_a_sequence_of_segments_keeps_their_inputs_only(reentrant: bool) -> None:
    references: list[Any] = []

    def step(x: Any) -> Any:
        y = x.sin()
        references.append(weakref.ref(y._array))
        return y

    x = tinytorch.ones(100, requires_grad=True)
    out = checkpoint_sequential([step] * 12, 4, x, use_reentrant=reentrant)
    # The outputs of the three segments, and the tensors that the last one saved: two intermediate ones and its output.
    assert sum(each() is not None for each in references) == 6
    out.sum().backward()
    expected = x.detach().requires_grad_()
    step_by_step = expected
    for _ in range(12):
        step_by_step = step_by_step.sin()
    step_by_step.sum().backward()
    assert tinytorch.equal(x.grad, expected.grad)


def test_what_was_recomputed_is_let_go_as_it_is_used() -> None:
    alive: list[int] = []
    references: list[Any] = []

    def function(x: Any) -> Any:
        for _ in range(5):
            x = x.sin()
            references.append(weakref.ref(x._array))
            if x.requires_grad:
                x.register_hook(lambda g: alive.append(sum(each() is not None for each in references)))
        return x

    x = tinytorch.ones(10, requires_grad=True)
    checkpoint(function, x, use_reentrant=False).sum().backward(retain_graph=True)
    assert alive[-1] < alive[1]


@both
@parametrize("enabled", [False, True])
@compared(rtol=0.02, atol=0.01)
def test_the_second_run_casts_as_the_first(torch: Any, reentrant: bool, enabled: bool) -> Any:
    seen = []

    def function(x: Any, y: Any) -> Any:
        z = torch.mm(x, y)
        seen.append(z.dtype)
        return torch.mm(z, z)

    x, y = (torch.randn(3, 3, requires_grad=True) for _ in range(2))
    with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
        out = torch.utils.checkpoint.checkpoint(function, x, y, use_reentrant=reentrant)
    out.float().sum().backward()
    return seen, x.grad, y.grad


@both
@compared
def test_the_second_run_does_not_cast_though_backward_does(torch: Any, reentrant: bool) -> Any:
    seen = []

    def function(x: Any) -> Any:
        seen.append(torch.mm(x, x).dtype)
        return torch.mm(x, x).exp()

    x = torch.randn(3, 3, requires_grad=True)
    out = torch.utils.checkpoint.checkpoint(function, x, use_reentrant=reentrant).sum()
    with torch.autocast("cpu", torch.bfloat16):
        out.backward()
    return seen, x.grad.dtype


@compared
def test_running_statistics_of_the_last_layer(torch: Any) -> Any:
    net = torch.nn.BatchNorm1d(1)
    saved(torch, net, torch.tensor([[1.0], [3.0]], requires_grad=True)).sum().backward()
    return list(net.buffers())
