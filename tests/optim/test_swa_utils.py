"""Averaged models: the same averages, states and errors as PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest

from tests.same import compared, of_each, same_as_pytorch


def model_of(t):
    class Model(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = t.nn.Linear(3, 2)
            self.register_buffer("seen", t.zeros(2))
            self.register_buffer("count", t.tensor(0))

        def forward(self, x):
            return self.layer(x) + self.seen

    return Model()


def averaged(t, steps=6, **options):
    from importlib import import_module

    utils = import_module(f"{t.__name__}.optim.swa_utils")
    options = {k: v(t, utils) if callable(v) else v for k, v in options.items()}
    model = model_of(t)
    average = utils.AveragedModel(model, **options)
    rng = np.random.default_rng(0)
    path = []
    for step in range(steps):
        for value in (*model.parameters(), model.seen):
            value.data.copy_(t.from_numpy(rng.standard_normal(tuple(value.shape)).astype("f")))
        model.count += step
        average.update_parameters(model)
        path.append({k: v.clone() for k, v in average.state_dict().items()})
    return path, average(t.ones(1, 3)).detach(), [p.requires_grad for p in average.parameters()]


OPTIONS = {
    "mean": {}, "mean, buffers": {"use_buffers": True}, "mean by function": {"avg_fn": lambda t, u: u.get_swa_avg_fn()},
    "mean by lists": {"multi_avg_fn": lambda t, u: u.get_swa_multi_avg_fn()},
    "ema by function": {"avg_fn": lambda t, u: u.get_ema_avg_fn(0.9)},
    "ema by lists": {"multi_avg_fn": lambda t, u: u.get_ema_multi_avg_fn(0.3)},
    "ema by lists, buffers": {"multi_avg_fn": lambda t, u: u.get_ema_multi_avg_fn(), "use_buffers": True},
    "own": {"avg_fn": lambda t, u: lambda a, p, n: 0.25 * a + 0.75 * p},
    "own lists": {
        "multi_avg_fn": lambda t, u: lambda a, p, n: [x.mul_(0.5).add_(y) for x, y in zip(a, p, strict=True)]
    },
    "device": {"device": lambda t, u: t.device("cpu")},
}  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_averages(options):
    same_as_pytorch(lambda t: averaged(t, **options))


test_errors = of_each([
    lambda t: t.optim.swa_utils.get_ema_avg_fn(1.5), lambda t: t.optim.swa_utils.get_ema_avg_fn(-0.1),
    lambda t: [t.optim.swa_utils.get_ema_avg_fn(decay)(t.ones(1), t.zeros(1), 1) for decay in (0.0, 1.0)],
    lambda t: t.optim.swa_utils.get_ema_multi_avg_fn(-0.5),
    lambda t: t.optim.swa_utils.AveragedModel(t.nn.Linear(1, 1), avg_fn=max, multi_avg_fn=max),
])  # fmt: skip


@compared
def test_a_training_with_swa(t):
    t.manual_seed(0)
    model = t.nn.Linear(4, 1)
    optimizer = t.optim.SGD(model.parameters(), lr=0.1)
    utils = t.optim.swa_utils
    average = utils.AveragedModel(model)
    scheduler = utils.SWALR(optimizer, swa_lr=0.05, anneal_epochs=3)
    x = t.randn(16, 4)
    for epoch in range(8):
        optimizer.zero_grad()
        (model(x) - x[:, :1]).square().mean().backward()
        optimizer.step()
        if epoch > 2:
            average.update_parameters(model)
            scheduler.step()
    utils.update_bn([x], average)
    return list(average.parameters()), average.n_averaged, scheduler.get_last_lr()


@compared
def test_update_bn(t):
    t.manual_seed(0)
    model = t.nn.Sequential(t.nn.Linear(3, 4), t.nn.BatchNorm1d(4, momentum=0.3))
    model.eval()
    batches = [t.randn(5, 3) for _ in range(3)]
    t.optim.swa_utils.update_bn([(b, 0) for b in batches], model, t.device("cpu"))
    return model[1].running_mean, model[1].running_var, model[1].momentum, model.training
