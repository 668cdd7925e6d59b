"""Groups, checks, closures, hooks, saving and loading of `Optimizer`."""

from __future__ import annotations

import copy
import gc
import importlib
import pickle
import weakref

import numpy as np
import pytest

import tinytorch
from tests.oracle import torch
from tests.same import compared, refused, same_as_pytorch
from tinytorch import nn
from tinytorch.optim import SGD, Adam, AdamW, Optimizer
from tinytorch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook, required


def weight(values=(1.0, 2.0), module=tinytorch):
    return module.tensor(values, requires_grad=True)


def ready(optimizer_class=SGD, **options):
    """Return a parameter with a gradient of ones, and its optimizer."""
    p = weight()
    p.grad = tinytorch.ones(2)
    return p, optimizer_class([p], **options)


def required_of(module):
    return importlib.import_module(f"{module.__name__}.optim.optimizer").required


def with_gradient(optimizer_class, module, p):
    p.grad = module.ones(2)
    return optimizer_class([p], {})


#: A call, with `o` for `torch.optim`, its error and words of that.
BAD = [
    ("o.SGD([])", ValueError, "optimizer got an empty parameter list"),
    ("o.SGD(w)", TypeError, "an iterable of Tensors or dicts, but got torch.FloatTensor"),
    ("o.SGD([1.5])", TypeError, "can only optimize Tensors, but one of the params is float"),
    ("o.SGD([np.ones(2)])", TypeError, "can only optimize Tensors, but one of the params is numpy.ndarray"),
    ('o.SGD("ab")', TypeError, "can only optimize Tensors, but one of the params is str"),
    ("o.SGD([w * 2])", ValueError, "can't optimize a non-leaf Tensor"),
    ('o.SGD([{"params": {w}}])', TypeError, "need to be organized in ordered collections"),
    ('o.SGD([{"params": w}, {"params": [w]}])', ValueError, "some parameters appear in more than one parameter group"),
    ('o.SGD([{"params": w}, w])', TypeError, "param_group must be a dict"),
    ('o.SGD([("w", w), w])', ValueError, "with/without names. Some param names are missing"),
    ('o.SGD([{"params": [("w", w)]}, {"params": [w.detach()]}])',
     ValueError, "cannot add param group without names to the optimizer"),
    ('o.SGD([{"params": [w]}, {"params": [("w", w.detach())]}])',
     ValueError, "cannot add param group with names to the optimizer"),
    ('o.SGD([{"lr": 1.0}])', KeyError, "params"),
    ('o.Optimizer([w], {"lr": required_of(m)})',
     ValueError, "didn't specify a value of required optimization parameter lr"),
    ("with_gradient(o.Optimizer, m, w).step()", NotImplementedError, ""),
    ("o.SGD([w], lr=-1)", ValueError, "Invalid learning rate: -1"),
    ('o.SGD([w], lr="fast")', TypeError, "not supported between instances of 'str' and"),
    ("o.SGD([w], lr=m.ones(2))", ValueError, "Tensor lr must be 1-element"),
    ("o.SGD([w], momentum=-0.5)", ValueError, "Invalid momentum value: -0.5"),
    ("o.SGD([w], weight_decay=-0.5)", ValueError, "Invalid weight_decay value: -0.5"),
    ("o.SGD([w], nesterov=True)", ValueError, "requires a momentum and zero dampening"),
    ("o.SGD([w], momentum=0.9, dampening=0.1, nesterov=True)", ValueError, "requires a momentum and zero dampening"),
    ("o.SGD([w], fused=True, foreach=True)", RuntimeError, "`fused` and `foreach` cannot be `True` together."),
    ("o.SGD([w], 0.1, 0, 0, 0, False, True)", TypeError, "positional argument"),
    ("o.Adam([w], lr=-1)", ValueError, "Invalid learning rate: -1"),
    ('o.Adam([w], lr=float("nan"))', ValueError, "Invalid learning rate: nan"),
    ("o.Adam([w], lr=m.ones(2))", ValueError, "Tensor lr must be 1-element"),
    ("o.Adam([w], lr=m.tensor(1.0), foreach=True)", ValueError, "lr as a Tensor is not supported for capturable=False"),
    ("o.Adam([w], eps=-1)", ValueError, "Invalid epsilon value: -1"),
    ("o.Adam([w], betas=(1.0, 0.9))", ValueError, "Invalid beta parameter at index 0: 1.0"),
    ("o.Adam([w], betas=(0.9, -0.1))", ValueError, "Invalid beta parameter at index 1: -0.1"),
    ("o.Adam([w], betas=(0, 0.9))", ValueError, "betas must be either both floats or both Tensors"),
    ("o.Adam([w], betas=(m.tensor(0.5), 0.9))", ValueError, "betas must be either both floats or both Tensors"),
    ("o.Adam([w], weight_decay=-1)", ValueError, "Invalid weight_decay value: -1"),
    ("o.AdamW([w], lr=-1)", ValueError, "Invalid learning rate: -1"),
    ("o.AdamW([w], fused=True, foreach=True)", RuntimeError, "`fused` and `foreach` cannot be `True` together."),
    ('o.SGD([w]).load_state_dict({"state": {}, "param_groups": []})',
     ValueError, "a different number of parameter groups"),
    ('o.SGD([w]).load_state_dict({"state": {}, "param_groups": [{"params": [0, 1]}]})',
     ValueError, "a parameter group that doesn't match the size of optimizer's group"),
    ("o.SGD([w]).load_state_dict({})", KeyError, "param_groups"),
    ('o.SGD([w]).load_state_dict({"param_groups": [{"params": [0]}]})', KeyError, "state"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "words"), BAD, ids=[call for call, _, _ in BAD])
def test_bad_input(call, error, words):
    for module in (tinytorch, *([torch] if torch else [])):
        names = {"m": module, "o": module.optim, "w": weight(module=module), "np": np}
        with pytest.raises(error) as caught:
            eval(call, {**names, "required_of": required_of, "with_gradient": with_gradient})
        assert words in str(caught.value)


def test_capturable_is_for_accelerators():
    p, optimizer = ready(Adam, capturable=True)
    refused(AssertionError, "capturable", optimizer.step)
    assert p.tolist() == [1.0, 2.0]


def test_duplicates_are_warned_of():
    p = weight()
    with pytest.warns(UserWarning, match="parameter group with duplicate parameters") as caught:
        optimizer = SGD([p, p], lr=1.0)
    assert len(caught) == 1
    p.grad = tinytorch.ones(2)
    optimizer.step()
    assert p.tolist() == [-1.0, 0.0]  # once per entry, as in PyTorch


def test_retained_gradient_of_a_non_leaf_may_be_optimized():
    p = weight() * 2
    p.retain_grad()
    optimizer = SGD([p], lr=1.0)
    p.sum().backward()
    optimizer.step()
    assert p.tolist() == [1.0, 3.0]


def test_groups_take_the_defaults_they_do_not_give():
    a, b, c = weight(), weight(), weight()
    optimizer = SGD([{"params": a}, {"params": [b], "lr": 0.5}], lr=0.25)
    optimizer.add_param_group({"params": iter([c]), "momentum": 0.75})
    assert [g["lr"] for g in optimizer.param_groups] == [0.25, 0.5, 0.25]
    assert [g["momentum"] for g in optimizer.param_groups] == [0, 0, 0.75]
    assert [g["params"][0] is p for g, p in zip(optimizer.param_groups, (a, b, c), strict=True)]
    for p in (a, b, c):
        p.grad = tinytorch.ones(2)
    optimizer.step()
    assert [p.tolist() for p in (a, b, c)] == [[0.75, 1.75], [0.5, 1.5], [0.75, 1.75]]


def test_a_refused_group_is_not_added():
    a, b = weight(), weight()
    optimizer = SGD([a])
    for bad in ({"params": [b, a]}, {"params": [b, b * 2]}, {"params": [("b", b)]}):
        refused(ValueError, r"param|leaf", optimizer.add_param_group, bad)
        assert len(optimizer.param_groups) == 1


def test_named_parameters():
    model = nn.Linear(2, 1)
    optimizer = SGD(model.named_parameters(), lr=0.1)
    group = optimizer.param_groups[0]
    assert group["param_names"] == ["weight", "bias"] and group["params"][0] is model.weight
    saved = optimizer.state_dict()
    assert saved["param_groups"][0]["param_names"] == ["weight", "bias"]

    # A file's names replace the names; where it has none, they stay.
    saved["param_groups"][0]["param_names"] = ["w", "b"]
    optimizer.load_state_dict(saved)
    assert optimizer.param_groups[0]["param_names"] == ["w", "b"]
    del saved["param_groups"][0]["param_names"]
    optimizer.load_state_dict(saved)
    assert optimizer.param_groups[0]["param_names"] == ["w", "b"]


def test_a_closure_is_recorded_even_without_grad():
    p, optimizer = ready(lr=0.5)

    def closure():
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    with tinytorch.no_grad():
        loss = optimizer.step(closure)
    assert loss.item() == 5.0 and p.tolist() == [0.0, 0.0] and optimizer.step() is None


def test_a_step_updates_in_place_and_is_seen_by_the_version_check():
    p, optimizer = ready(lr=1.0)
    view, version = p.detach(), p._version
    loss = (p * p).sum()
    optimizer.step()
    assert view.tolist() == [0.0, 1.0] and p._version > version
    refused(RuntimeError, "modified by an inplace operation", loss.backward)


def test_parameters_without_gradient_are_left_alone():
    p, q = weight(), weight()
    for make in (SGD, Adam, AdamW):
        optimizer = make([p, q], lr=1.0, weight_decay=0.5)
        p.grad = tinytorch.ones(2)
        optimizer.step()
        assert q.tolist() == [1.0, 2.0] and q not in optimizer.state


@pytest.mark.filterwarnings("ignore:Using backward")
def test_zero_grad():
    p, optimizer = ready()
    grad = p.grad
    optimizer.zero_grad(set_to_none=False)
    assert p.grad is grad and grad.tolist() == [0.0, 0.0]
    for to_none in (True, False):
        optimizer.zero_grad(set_to_none=to_none)
        assert p.grad is None
    (p**3).sum().backward(create_graph=True)
    assert p.grad.requires_grad
    optimizer.zero_grad(set_to_none=False)  # lets go of the graph of the gradient
    assert not p.grad.requires_grad and p.grad.tolist() == [0.0, 0.0]


def test_an_optimizer_in_pytorchs_way():
    """Overriding `step`, with Tensor code: hooks are called once, also through `super().step()`."""

    class Descent(Optimizer):
        def __init__(self, params, lr=required):
            super().__init__(params, {"lr": lr})

        @tinytorch.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    p.add_(p.grad, alpha=-group["lr"])
                    self.state[p]["seen"] = True

    class Halving(Descent):
        def step(self, closure=None):
            super().step(closure)
            for group in self.param_groups:
                group["lr"] /= 2

    p = weight()
    p.grad = tinytorch.ones(2)
    optimizer, calls = Halving([p], lr=1.0), []
    optimizer.register_step_post_hook(lambda *args: calls.append(args))
    optimizer.step()
    optimizer.step()
    assert p.tolist() == [-0.5, 0.5] and len(calls) == 2
    assert optimizer.state_dict()["state"] == {0: {"seen": True}}


def test_step_hooks():
    p, optimizer = ready(lr=1.0)
    seen = []

    def before(opt, args, kwargs):
        seen.append(("before", opt is optimizer, args[0] is optimizer, len(args), kwargs))

    def after(opt, args, kwargs):
        seen.append(("after", p.tolist()))

    handles = [optimizer.register_step_pre_hook(before), optimizer.register_step_post_hook(after)]
    optimizer.step()
    assert seen == [("before", True, True, 1, {}), ("after", [0.0, 1.0])]
    for handle in handles:
        handle.remove()
    optimizer.step()
    assert len(seen) == 2


def test_a_pre_hook_may_replace_the_arguments():
    _, optimizer = ready()
    optimizer.register_step_pre_hook(lambda opt, args, kwargs: ((opt, lambda: 7.0), {}))
    assert optimizer.step() == 7.0
    optimizer.register_step_pre_hook(lambda opt, args, kwargs: "nonsense")
    refused(RuntimeError, r"must return None or a tuple of \(new_args, new_kwargs", optimizer.step)


def test_hooks_of_all_optimizers():
    _, one = ready()
    _, other = ready(Adam)
    seen = []
    with (
        register_optimizer_step_pre_hook(lambda opt, *_: seen.append(("before", opt))),
        register_optimizer_step_post_hook(lambda opt, *_: seen.append(("after", opt))),
    ):
        one.step()
        other.step()
    one.step()
    assert seen == [("before", one), ("after", one), ("before", other), ("after", other)]


def test_state_dict_hooks():
    _, optimizer = ready()
    seen = []
    optimizer.register_state_dict_pre_hook(lambda opt: seen.append("second"))
    optimizer.register_state_dict_pre_hook(lambda opt: seen.append("first"), prepend=True)
    optimizer.register_state_dict_post_hook(lambda opt, state: {**state, "extra": len(state)})
    optimizer.register_state_dict_post_hook(lambda opt, state: state.update(more=1), prepend=True)
    assert set(optimizer.state_dict()) == {"state", "param_groups", "extra", "more"}
    assert optimizer.state_dict()["extra"] == 3 and seen == ["first", "second"] * 2


def test_load_state_dict_hooks():
    _, optimizer = ready(lr=0.5)
    _, other = ready(lr=0.25)
    saved = optimizer.state_dict()
    seen = []

    def rename(opt, state):
        return {"state": state["state"], "param_groups": state.pop("groups")}

    other.register_load_state_dict_pre_hook(rename)
    other.register_load_state_dict_post_hook(lambda opt: seen.append(opt.param_groups[0]["lr"]))
    other.register_load_state_dict_post_hook(lambda opt: seen.append("first"), prepend=True)
    given = {"state": saved["state"], "groups": saved["param_groups"]}
    other.load_state_dict(given)
    assert seen == ["first", 0.5]
    assert set(given) == {"state", "groups"}  # the hook had a copy


def stepped(optimizer_class=Adam, **options):
    p, optimizer = ready(optimizer_class, **options)
    optimizer.step()
    return p, optimizer


def test_a_loaded_state_is_taken_over():
    _, optimizer = stepped()
    _, other = ready(Adam)
    saved = optimizer.state_dict()
    other.load_state_dict(saved)
    other.step()
    other.param_groups[0]["lr"] = 7.0
    assert optimizer.param_groups[0]["lr"] == 1e-3 and saved["state"][0]["step"].item() == 2.0
    np.testing.assert_allclose(saved["state"][0]["exp_avg"].numpy(), 0.19, rtol=1e-6)


LOADED = {name: {"momentum": 0.9} if name == "SGD" else {} for name in (
    "SGD", "Adam", "AdamW", "Adagrad", "RMSprop", "NAdam", "RAdam", "Adamax", "Adadelta", "ASGD", "Rprop", "Adafactor",
)}  # fmt: skip


@pytest.mark.parametrize("shapes", [[(3,), (2, 2)], [(120, 80)]], ids=["small", "large"])
@pytest.mark.parametrize("name", LOADED)
def test_optimizers_that_share_a_state(name, shapes):
    def program(torch):
        first = [torch.full(shape, 2.0).requires_grad_() for shape in shapes]
        second = [torch.full(shape, 3.0).requires_grad_() for shape in shapes]
        make = getattr(torch.optim, name)
        a, b = (make(each, lr=0.1, **LOADED[name]) for each in (first, second))

        def step(optimizer, params):
            optimizer.zero_grad()
            sum((p.sin() + p * p).sum() for p in params).backward()
            optimizer.step()

        step(a, first)
        b.load_state_dict(a.state_dict())
        step(b, second)
        out = [copy.deepcopy(a.state_dict())]
        for _ in range(3):
            step(a, first)
            step(b, second)
        half = [p.detach().half().requires_grad_() for p in first]
        c = make(half, lr=0.1, **LOADED[name])
        c.load_state_dict(a.state_dict())
        return out, a.state_dict(), b.state_dict(), c.state_dict(), first, second

    same_as_pytorch(program, 1e-4, 1e-6)


def test_a_refused_state_changes_nothing():
    p, optimizer = stepped()
    before = copy.deepcopy(optimizer.state_dict())
    q = weight()
    other = Adam([{"params": [p]}, {"params": [q]}]).state_dict()
    refused(ValueError, "2, and the optimizer has 1", optimizer.load_state_dict, other)
    assert optimizer.state_dict()["param_groups"] == before["param_groups"]
    assert optimizer.state[p]["step"].item() == 1.0


def test_what_loading_keeps():
    _, optimizer = stepped()
    p = tinytorch.ones(2, dtype=tinytorch.float64, requires_grad=True)
    other = Adam([p])
    saved = optimizer.state_dict()
    saved["state"]["global"] = {"note": "kept"}
    other.load_state_dict(saved)
    assert other.state[p]["exp_avg"].dtype is tinytorch.float64  # that of the parameter; the step keeps its own
    assert other.state[p]["step"].dtype is tinytorch.float32
    assert other.state["global"] == other.state_dict()["state"]["global"] == {"note": "kept"}
    _, adamw = ready(AdamW)
    adamw.load_state_dict(optimizer.state_dict())
    assert adamw.param_groups[0]["decoupled_weight_decay"] is True


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))])
def test_copies_and_pickles(duplicate):
    p, optimizer = stepped(SGD, lr=0.5, momentum=0.5)
    optimizer.register_step_pre_hook(lambda *_: pytest.fail("hooks are not copied"))
    twin = duplicate(optimizer)
    (q,) = twin.param_groups[0]["params"]
    assert q is not p and twin.state[q]["momentum_buffer"].tolist() == [1.0, 1.0]
    q.grad = tinytorch.ones(2)
    twin.step()
    assert (p.tolist(), q.tolist()) == ([0.5, 1.5], [-0.25, 0.75])


def test_representation():
    _, optimizer = ready(lr=0.5)
    assert repr(optimizer) == (
        "SGD (\nParameter Group 0\n    dampening: 0\n    differentiable: False\n    foreach: None\n"
        "    fused: None\n    lr: 0.5\n    maximize: False\n    momentum: 0\n    nesterov: False\n"
        "    weight_decay: 0\n)"
    )


def test_memory_goes_without_the_collector():
    gc.collect()
    gc.disable()
    try:
        p, optimizer = stepped()
        gone = weakref.ref(optimizer)
        del p, optimizer
        assert gone() is None
    finally:
        gc.enable()


@compared
def test_options_that_pytorch_keeps_in_another_form(torch):
    a, b = torch.ones(2, requires_grad=True), torch.ones(3, requires_grad=True)
    groups = [{"params": [a]}, {"params": [b], "initial_accumulator_value": 1.0}]
    adagrad = torch.optim.Adagrad(groups, initial_accumulator_value=0.25)
    adam = torch.optim.Adam([a], betas=[0.8, 0.9])
    one = torch.tensor([0.5])
    tensors = torch.optim.Adam([a], betas=(one, one)).defaults["betas"]
    muon = torch.optim.Muon([torch.ones(2, 2, requires_grad=True)])
    muon.load_state_dict(muon.state_dict())
    muon.add_param_group({"params": [torch.ones(2, 3, requires_grad=True)]})
    return (
        [state["sum"] for state in adagrad.state.values()],
        adam.param_groups[0]["betas"], list(tensors), list(muon.param_groups[1]),
    )  # fmt: skip


@compared
def test_fused_is_capturable(torch):
    p = torch.ones(2, requires_grad=True)
    p.grad = torch.ones(2)
    torch.optim.Adam([p], fused=True, capturable=True).step()
    return p


@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
@pytest.mark.parametrize("lr", [1, 0.5, "tensor"])
@compared
def test_state_of_lbfgs(torch, lr, dtype):
    kind = getattr(torch, dtype)
    p = torch.ones(2, dtype=kind, requires_grad=True)
    rate = torch.tensor([0.5], dtype=kind) if lr == "tensor" else lr
    optimizer = torch.optim.LBFGS([p], lr=rate, max_iter=2)

    def closure():
        optimizer.zero_grad()
        loss = ((p - 3) ** 2).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    state = optimizer.state[p]
    return (
        [str(each.dtype) for name in ("al", "old_stps", "ro") for each in state.get(name, ()) if each is not None],
        type(state["t"]).__name__, float(state["t"]), str(getattr(state["t"], "dtype", None)),
    )  # fmt: skip


@pytest.mark.parametrize("more", [False, True])
@compared
def test_what_lbfgs_cannot_step(torch, more):
    p = torch.ones(2 if more else 0, requires_grad=True)
    optimizer = torch.optim.LBFGS([p])
    if more:
        optimizer.add_param_group({"params": [torch.ones(1, requires_grad=True)]})

    def closure():
        loss = (p * p).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
