"""`differentiable=True`: gradients through steps, compared with PyTorch's."""

from __future__ import annotations

import pytest

import tinytorch
from tests.same import compared, same_as_pytorch

OPTIONS = [
    ("SGD", {"lr": 0.1}), ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.5, "dampening": 0.3, "maximize": True}), ("Adam", {}),
    ("Adam", {"amsgrad": True, "weight_decay": 0.1}), ("Adam", {"maximize": True}), ("AdamW", {"amsgrad": True}),
    ("Adamax", {}), ("Adamax", {"weight_decay": 0.1, "maximize": True}), ("NAdam", {}),
    ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}), ("RAdam", {}),
    ("RAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True}), ("RMSprop", {}),
    ("RMSprop", {"momentum": 0.9, "centered": True, "weight_decay": 0.1}), ("Rprop", {}),
    ("Rprop", {"lr": 0.5, "maximize": True}), ("Adagrad", {}),
    ("Adagrad", {"lr_decay": 0.1, "weight_decay": 0.1, "maximize": True}), ("Adadelta", {"weight_decay": 0.1}),
    ("ASGD", {}), ("ASGD", {"t0": 1, "lambd": 0.1, "weight_decay": 0.1}),
]  # fmt: skip
NAMES = sorted({name for name, _ in OPTIONS})


@pytest.mark.parametrize("steps", [1, 2, 8])
@pytest.mark.parametrize(("name", "options"), OPTIONS, ids=str)
def test_gradients_flow_through_the_steps(name, options, steps):
    def program(torch):
        start = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64, requires_grad=True)
        a = torch.tensor([1.0, -0.5, 0.3], dtype=torch.float64, requires_grad=True)
        p = start.clone()
        optimizer = getattr(torch.optim, name)([p], differentiable=True, **options)
        for _ in range(steps):
            loss = ((p * a).sum() - 1) ** 2 + (p**3).sum() * 0.1
            (p.grad,) = torch.autograd.grad(loss, p, create_graph=True)
            optimizer.step()
        kept = {k: v for k, v in optimizer.state[p].items() if k != "step"}
        return p, torch.autograd.grad((p * p).sum(), [start, a], allow_unused=True), kept

    # PyTorch's Adam computes `beta2**step` in float32 here.
    same_as_pytorch(program, rtol=1e-4 if name.startswith("Adam") else 1e-8)


@pytest.mark.parametrize(("name", "options"), OPTIONS, ids=str)
def test_the_step_is_the_one_that_is_not_recorded(name, options):
    reached = []
    for differentiable in (False, True):
        p = tinytorch.tensor([0.5, -1.0, 2.0], dtype=tinytorch.float64)
        make = getattr(tinytorch.optim, name)
        optimizer = make([p], differentiable=differentiable, **options)
        for k in range(10):
            p.grad = tinytorch.sin(p.detach() * 3 + k)
            optimizer.step()
        reached.append([p, *optimizer.state[p].values()])
    for ours, recorded in zip(*reached, strict=True):
        tinytorch.testing.assert_close(recorded, ours)


@pytest.mark.parametrize(
    ("name", "options"),
    [("SGD", {"lr": 0.1}), ("Adam", {"lr": 0.1}), ("Adam", {"lr": 0.1, "betas": (0.9, 0.99)})],
    ids=str,
)
@compared(rtol=1e-3)
def test_gradients_of_rates(torch, name, options):
    def leaf(value):
        return torch.tensor(value, dtype=torch.float64, requires_grad=True)

    lr = leaf(options["lr"])
    betas = tuple(map(leaf, options.get("betas", ())))
    given = {"lr": lr} | ({"betas": betas} if betas else {})
    p = leaf([0.5, -1.0, 2.0]).clone()
    optimizer = getattr(torch.optim, name)([p], differentiable=True, **given)
    for _ in range(3):
        loss = (p.sum() - 2) ** 2
        (p.grad,) = torch.autograd.grad(loss, p, create_graph=True)
        optimizer.step()
    return loss, torch.autograd.grad(loss, (lr, *betas))


@compared
def test_gradient_of_weight_decay(torch):
    # PyTorch's own writes the decay into `p.grad`: one step shows no difference.
    decay = torch.tensor(0.1, dtype=torch.float64, requires_grad=True)
    p = torch.tensor([0.5, -1.0], dtype=torch.float64).clone()
    optimizer = torch.optim.SGD([p], lr=0.1, weight_decay=decay, differentiable=True)
    p.grad = torch.ones(2, dtype=torch.float64)
    optimizer.step()
    return p, torch.autograd.grad(p.sum(), decay)


@pytest.mark.parametrize("name", NAMES)
@compared
def test_a_leaf_cannot_be_stepped(torch, name):
    p = torch.ones(2, requires_grad=True)
    p.grad = torch.ones(2)
    getattr(torch.optim, name)([p], differentiable=True).step()


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad"])
def test_not_fused(name):
    same_as_pytorch(lambda torch: getattr(torch.optim, name)([torch.ones(1)], fused=True, differentiable=True))
