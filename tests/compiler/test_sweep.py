"""`torch.func.sweep`, and `python -m tinytorch sweep`: each run is the program's own run with that seed."""

import contextlib
import csv
import functools
import io
import logging
import math
import os
import random
import re
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import tinytorch as torch
import tinytorch.nn.functional as F
from tinytorch import nn
from tinytorch.compiler.sweep import scheduler, together
from tinytorch.compiler.sweep.script import Script, planned
from tinytorch.core.mode import local


def curves(make, seeds, steps, **settings):
    """Return the losses of runs one after the other."""
    found = []
    for seed in seeds:
        torch.manual_seed(seed)
        random.seed(seed)
        np.random.seed(seed)
        step = make(**settings)
        found.append([step().item() for _ in range(steps)])
    return found


def trained(model, optimizer, loss_of):
    def step():
        loss = loss_of(model)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return step


def mlp(optimizer="SGD", lr=1e-2, **options):
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1))
    made = getattr(torch.optim, optimizer)(model.parameters(), lr=lr, **options)
    x, y = torch.randn(32, 6), torch.randn(32, 1)
    return trained(model, made, lambda model: F.mse_loss(model(x), y))


def noisy():
    model = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.GELU(), nn.Dropout(0.3), nn.Linear(16, 4))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)

    def loss_of(model):
        x, y = torch.randn(24, 6), torch.randint(0, 4, (24,))
        return F.cross_entropy(model(x), y, label_smoothing=0.1)

    return trained(model, optimizer, loss_of)


def convolutions():
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 3)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9, nesterov=True, weight_decay=1e-3)
    x, y = torch.randn(8, 1, 8, 8), torch.randint(0, 3, (8,))
    return trained(model, optimizer, lambda model: F.cross_entropy(model(x), y))


def physics():
    model = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    def loss_of(model):
        t = torch.rand(16, 1).requires_grad_()
        u = model(t)
        (slope,) = torch.autograd.grad(u.sum(), t, create_graph=True)
        return ((slope + u) ** 2).mean() + (model(torch.zeros(1, 1)) - 1).square().sum()

    return trained(model, optimizer, loss_of)


def policy():
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-2)
    states = torch.randn(16, 4)

    def loss_of(model):
        choices = torch.distributions.Categorical(logits=model(states))
        actions = choices.sample()
        returns = (actions == (states[:, 0] > 0).long()).float()
        return -(choices.log_prob(actions) * (returns - returns.mean())).mean()

    return trained(model, optimizer, loss_of)


class Attention(nn.Module):
    def __init__(self, width=16, heads=2):
        super().__init__()
        self.embedding, self.heads = nn.Embedding(11, width), heads
        self.norm, self.all, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, 11)

    def forward(self, x):
        x = self.embedding(x)
        b, t, c = x.shape
        parts = self.all(self.norm(x)).split(c, 2)
        q, k, v = [part.view(b, t, self.heads, c // self.heads).transpose(1, 2) for part in parts]
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, c)
        return self.out(torch.cat([x, y], 2)[:, :, c // 2 : -c // 2] + y)


def attention():
    model = Attention()
    optimizer = torch.optim.NAdam(model.parameters(), lr=1e-2)

    def loss_of(model):
        tokens = torch.randint(0, 11, (3, 8))
        return F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())

    return trained(model, optimizer, loss_of)


def recurrent():
    model, head = nn.LSTM(3, 8, batch_first=True), nn.Linear(8, 1)
    optimizer = torch.optim.Adagrad([*model.parameters(), *head.parameters()], lr=1e-2)
    x, y = torch.randn(4, 6, 3), torch.randn(4, 1)
    return trained(model, optimizer, lambda model: F.l1_loss(head(model(x)[0][:, -1]), y))


def mixed():
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    data, weights, generator = torch.randn(32, 4), torch.rand(8), torch.Generator().manual_seed(7)

    def loss_of(model):
        x = data[torch.randperm(32)[:8]]
        x = torch.lerp(x, x[torch.randperm(8, generator=generator)], torch.rand(1))
        kept = torch.multinomial(weights, 4, out=torch.empty(4, dtype=torch.int64))
        return model(x[kept]).square().mean()

    return trained(model, optimizer, loss_of)


def of_other_streams():
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    x = torch.tensor([[random.random(), np.random.rand()] for _ in range(8)], dtype=torch.float32)
    return trained(model, optimizer, lambda model: model(x).square().mean())


MAKES = [mlp, noisy, convolutions, physics, policy, attention, recurrent, mixed, of_other_streams]


@pytest.mark.parametrize("make", MAKES, ids=lambda make: make.__name__)
def test_runs_are_those_of_their_seeds(make):
    runs = torch.func.sweep(make, seeds=4, steps=12, progress=False)
    assert [run.losses for run in runs] == curves(make, range(4), 12)
    assert all(run.together == 1 and not run.reason for run in runs)
    assert len({tuple(run.losses) for run in runs}) == 4


@pytest.mark.parametrize(
    "optimizer", ["SGD", "Adam", "AdamW", "Adamax", "RAdam", "Adadelta", "Rprop", "ASGD", "Adafactor"]
)
def test_settings(optimizer):
    runs = torch.func.sweep(mlp, seeds=[3, 5], steps=8, progress=False, optimizer=optimizer, lr=[1e-3, 1e-2])
    assert [(run.settings["lr"], run.seed) for run in runs] == [(1e-3, 3), (1e-3, 5), (1e-2, 3), (1e-2, 5)]
    for run in runs:
        assert [run.losses] == curves(mlp, [run.seed], 8, **run.settings)
    assert runs.best.final == min(run.final for run in runs)


def test_threads_where_there_are_no_greenlets(monkeypatch):
    monkeypatch.setattr("tinytorch.compiler.sweep.scheduler.greenlet", None)
    runs = torch.func.sweep(noisy, seeds=3, steps=8, progress=False)
    assert [run.losses for run in runs] == curves(noisy, range(3), 8)
    with torch.no_grad():
        runs = torch.func.sweep(guarded, seeds=3, steps=8, progress=False)
    assert [run.losses for run in runs] == curves(guarded, range(3), 8)
    assert not local.state.modes and local.state.grad


def guarded():
    """Return a step whose graph break lies inside blocks that change the state of a thread."""
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(4, 2)

    def step():
        with torch.no_grad():
            scale = model(x).square().mean()
            print(end="")
            scale = scale * 2
        loss = model(x).square().mean() * scale
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return step


def test_states_of_a_thread_are_the_runs_own():
    runs = torch.func.sweep(guarded, seeds=3, steps=8, progress=False)
    assert [run.losses for run in runs] == curves(guarded, range(3), 8)


def test_a_scheduler_and_accumulated_gradients():
    def make():
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
        x = torch.randn(8, 4)

        def step():
            loss = model(x[:4]).square().mean()
            loss.backward()
            loss = model(x[4:]).square().mean()
            loss.backward()
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            return loss

        return step

    runs = torch.func.sweep(make, seeds=3, steps=9, progress=False)
    assert [run.losses[1::2] for run in runs] == curves(make, range(3), 9)
    assert all(run.together == 1 for run in runs)


def test_gradients_and_models_are_the_runs_own():
    models = {}

    def make(number):
        model = nn.Linear(3, 2)
        models[number] = model
        x = torch.randn(5, 3)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        return trained(model, optimizer, lambda model: model(x).square().sum())

    torch.func.sweep(make, seeds=[7], steps=6, progress=False, number=[0, 1, 2])
    swept = [(m.weight.detach().clone(), m.weight.grad.clone(), m.bias.grad.clone()) for m in models.values()]
    for number in range(3):
        torch.manual_seed(7)
        step = make(number)
        for _ in range(6):
            step()
        model = models[number]
        for mine, single in zip(swept[number], (model.weight, model.weight.grad, model.bias.grad), strict=True):
            assert torch.equal(mine, single.detach())


def test_memory_that_others_know_stays_in_place():
    views = {}

    def make(number):
        model = nn.Linear(3, 1)
        views[number] = model.weight.detach()  # shares memory
        x = torch.randn(5, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        step = trained(model, optimizer, lambda model: model(x).square().sum())

        def checked():
            loss = step()
            return loss

        views[number] = (views[number], model)
        return checked

    runs = torch.func.sweep(make, seeds=[1], steps=5, progress=False, number=[0, 1])
    assert all(run.together == 1 for run in runs)
    for view, model in views.values():
        assert torch.equal(view, model.weight.detach())


def test_parameters_that_others_know_and_an_optimizer_that_is_not_elementwise():
    views = []

    def make():
        model = nn.Linear(3, 2)
        views.append((model.weight.detach(), model))
        x = torch.randn(5, 3)
        optimizer = torch.optim.Adafactor(model.parameters(), lr=0.1)
        return trained(model, optimizer, lambda model: model(x).square().sum())

    runs = torch.func.sweep(make, seeds=2, steps=6, progress=False)
    assert [run.losses for run in runs] == curves(make, range(2), 6)
    for view, model in views:
        assert torch.equal(view, model.weight.detach())
    assert all(run.together == 1 for run in runs)


def test_a_model_that_runs_share():
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def make():
        x = torch.randn(5, 3)
        return trained(model, optimizer, lambda model: model(x).square().sum())

    runs = torch.func.sweep(make, seeds=2, steps=5, progress=False)
    assert all(run.together == 0 for run in runs) and "several runs" in runs[0].reason
    assert model.weight.grad is not None


def test_the_state_of_an_optimizer_may_be_replaced():
    def make():
        model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
        optimizer = torch.optim.SGD(model[0].parameters(), lr=0.05)
        x, seen = torch.randn(5, 3), []
        step = torch.compile(trained(model, optimizer, lambda model: model(x).square().sum()))

        def whole():
            seen.append(1)
            if len(seen) == 4:  # (a buffer begins)
                optimizer.param_groups[0]["momentum"] = 0.9
            if len(seen) == 7:
                optimizer.load_state_dict(optimizer.state_dict())
            if len(seen) == 9:
                optimizer.add_param_group({"params": list(model[1].parameters()), "momentum": 0.5})
            if len(seen) == 11:
                optimizer.state.clear()
            return step()

        return whole

    runs = torch.func.sweep(make, seeds=3, steps=14, progress=False)
    assert [run.losses for run in runs] == curves(make, range(3), 14)


def test_stacks_are_kept_while_nothing_changes(monkeypatch):
    def make():
        model = nn.Linear(3, 1)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
        x = torch.randn(5, 3)
        return torch.compile(trained(model, optimizer, lambda model: model(x).square().sum()))

    built = []

    class Counted(scheduler.Joint):
        def __init__(self, *given):
            built.append(1)
            super().__init__(*given)

    monkeypatch.setattr(scheduler, "Joint", Counted)
    torch.func.sweep(make, seeds=3, steps=14, progress=False)
    assert len(built) == 1


def test_step_counts_that_differ():
    def make():
        model = nn.Linear(3, 1)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
        x, seen = torch.randn(5, 3), []
        late = torch.initial_seed() % 2
        step = torch.compile(trained(model, optimizer, lambda model: model(x).square().sum()))

        def whole():
            seen.append(1)
            if len(seen) == 4 + late:
                for state in optimizer.state.values():
                    state["step"] += 3
            return step()

        return whole

    runs = torch.func.sweep(make, seeds=3, steps=8, progress=False)
    assert [run.losses for run in runs] == curves(make, range(3), 8)


def test_an_interrupt_ends_all_runs():
    def make():
        step, seen = mlp(), []

        def whole():
            seen.append(1)
            if len(seen) == 3:
                raise KeyboardInterrupt
            return step()

        return whole

    with pytest.raises(KeyboardInterrupt):
        torch.func.sweep(make, seeds=3, steps=8, progress=False)


def test_a_value_that_decides():
    def make():
        model = nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x = torch.randn(4, 2)

        def step():
            loss = model(x).square().mean()
            if loss > 0.5:
                loss = loss * 2
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss

        return step

    runs = torch.func.sweep(make, seeds=6, steps=10, progress=False)
    assert [run.losses for run in runs] == curves(make, range(6), 10)


def test_a_step_in_parts_is_not_repeated_in_part():
    def make():
        model = nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x, seen = torch.randn(4, 2), []

        def step():
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            seen.append(loss.item())
            optimizer.step()
            return loss

        return step

    runs = torch.func.sweep(make, seeds=3, steps=9, progress=False)
    assert [run.losses for run in runs] == curves(make, range(3), 9)


def test_runs_of_other_shapes_go_their_own_way():
    def make(width):
        model = nn.Sequential(nn.Linear(2, width), nn.ReLU(), nn.Linear(width, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x = torch.randn(4, 2)
        return trained(model, optimizer, lambda model: model(x).square().mean())

    runs = torch.func.sweep(make, seeds=2, steps=6, progress=False, width=[3, 3, 5])
    assert [run.losses for run in runs] == [
        losses for width in (3, 3, 5) for losses in curves(make, range(2), 6, width=width)
    ]
    assert all(run.together == 1 for run in runs)
    runs = torch.func.sweep(make, seeds=1, steps=6, progress=False, width=[3, 3, 5])
    assert [run.together for run in runs] == [1, 1, 0]
    assert "the shape" in runs[2].reason and "the shape" in str(runs)


def test_a_run_that_fails():
    def make(size):
        model = nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x = torch.randn(4, size)
        return trained(model, optimizer, lambda model: model(x).square().mean())

    runs = torch.func.sweep(make, seeds=2, steps=4, progress=False, size=[3, 4])
    assert [run.error is None for run in runs] == [True, True, False, False]
    assert "mat1 and mat2 shapes cannot be multiplied" in str(runs)
    assert math.isnan(runs[2].final)
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        torch.func.sweep(make, seeds=2, steps=4, progress=False, size=4)


def test_arguments():
    with pytest.raises(ValueError, match="no seeds"):
        torch.func.sweep(mlp, seeds=[], steps=1)
    with pytest.raises(ValueError, match="no values of lr"):
        torch.func.sweep(mlp, seeds=1, steps=1, lr=[])


def test_a_program_that_trains_to_the_end():
    def train(epochs):
        model = nn.Linear(4, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        data = torch.utils.data.TensorDataset(torch.randn(20, 4), torch.randint(0, 2, (20,)))
        for _epoch in range(epochs):
            for x, y in torch.utils.data.DataLoader(data, batch_size=8, shuffle=True):
                loss = F.cross_entropy(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        return loss.item()

    runs = torch.func.sweep(train, seeds=3, progress=False, epochs=5)
    for run in runs:
        torch.manual_seed(run.seed)
        assert run.result == train(5) == pytest.approx(run.final)
        assert len(run.losses) == 15


def test_table_csv_and_plot(tmp_path):
    runs = torch.func.sweep(mlp, seeds=2, steps=5, progress=False, lr=[1e-3, 1e-2])
    lines = str(runs).splitlines()
    assert len(lines) == 5 and lines[0].split() == ["run", "lr", "seed", "final", "best", "steps", "together", "curve"]
    runs.csv(tmp_path / "curves.csv")
    with open(tmp_path / "curves.csv") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 20
    assert [float(row["loss"]) for row in rows if row["run"] == "2"] == runs[2].losses
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        with pytest.raises(ImportError, match="pip install matplotlib"):
            runs.plot(tmp_path / "curves.png")
    else:
        runs.plot(tmp_path / "curves.png")
        assert (tmp_path / "curves.png").stat().st_size > 1000


# Scripts ------------------------------------------------------------------------------------------

LOOP = """
    import tinytorch as torch
    from tinytorch import nn

    lr = 1e-2
    torch.manual_seed(4)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    x = torch.randn(16, 4)
    count = 0
    for epoch in range(12):
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        count += 1
        if epoch % 5 == 0:
            print(epoch, loss.item())
    assert count == 12 and epoch == 11
    result = loss.item()
"""

FUNCTION = """
    import argparse
    import tinytorch as torch
    from tinytorch.utils.data import DataLoader, TensorDataset

    def main():
        parser = argparse.ArgumentParser()
        parser.add_argument("--lr", type=float, default=0.1)
        options = parser.parse_args()
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=options.lr)
        data = TensorDataset(torch.randn(40, 4), torch.randint(0, 3, (40,)))
        loss_fn = torch.nn.CrossEntropyLoss()
        for epoch in range(4):
            for batch, (x, y) in enumerate(DataLoader(data, batch_size=16, shuffle=True)):
                loss = loss_fn(model(x), y)
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                if batch % 2 == 0:
                    print(f"{loss.item():.4f} {batch}/{len(data)}")

    if __name__ == "__main__":
        main()
"""


def swept(tmp_path, text, *arguments):
    """Return the rows of the curves of a script's sweep, and what it prints."""
    path = tmp_path / "train.py"
    path.write_text(textwrap.dedent(text))
    command = [sys.executable, "-m", "tinytorch", "sweep", "--csv", str(tmp_path / "c.csv"), *arguments, str(path)]
    made = subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ, "COLUMNS": "200"})
    assert made.returncode == 0, made.stderr
    with open(tmp_path / "c.csv") as file:
        return list(csv.DictReader(file)), made.stdout


def losses_of(rows, run):
    return [float(row["loss"]) for row in rows if row["run"] == str(run)]


def test_a_loop_outside_of_functions(tmp_path):
    rows, shown = swept(tmp_path, LOOP, "--seeds", "3", "--set", "lr=1e-2,1e-3")
    assert shown.count("100%") == 6 and "0 0." not in shown
    scope = {}
    exec(compile(textwrap.dedent(LOOP), "train.py", "exec"), scope)
    assert losses_of(rows, 0)[-1] == scope["result"]
    text = textwrap.dedent(LOOP).replace("manual_seed(4)", "manual_seed(6)").replace("1e-2", "1e-3")
    exec(compile(text, "train.py", "exec"), scope)
    assert losses_of(rows, 5)[-1] == scope["result"]


def test_a_function_with_options(tmp_path):
    rows, shown = swept(tmp_path, FUNCTION, "--seeds", "0,2", "--set", "lr=0.1,0.5", "--show", "1")
    assert len(rows) == 4 * 12 and "/40" in shown and shown.count("/40") == 8
    scope = {"__name__": "functions"}
    exec(compile(textwrap.dedent(FUNCTION), "train.py", "exec"), scope)
    assert len({tuple(losses_of(rows, run)) for run in range(4)}) == 4


def test_constants_of_a_script():
    script = Script(
        "x.py", "lr = 1e-3\ndef f(a, lr=0.1): g(lr=0.5, b={'lr': 2})\nother = lr\nclass C:\n    lr: float = 3\n"
    )
    assert len(script.places("lr")) == 5
    changed = script.with_settings({"lr": "7"})
    assert changed.file == "x.py [lr=7]"
    assert changed.text == "lr = 7\ndef f(a, lr=7): g(lr=7, b={'lr': 7})\nother = lr\nclass C:\n    lr: float = 7\n"
    with pytest.raises(ValueError, match="neither an option --size nor a constant named size"):
        script.with_settings({"size": "7"})


def test_reasons_have_the_line(tmp_path):
    path = tmp_path / "train.py"
    text = textwrap.dedent(LOOP).replace("model(x)", "model(x[: 4 + int(size() * 9)])")
    text = text.replace("count = 0", "import random\ndef size(): return random.random()\ncount = 0")
    path.write_text(text)
    ((_, _, body),) = planned(str(path), [], {}, [{}])
    runs = together([(seed, {}, body) for seed in range(2)], progress=False)
    assert all(len(run.losses) == 12 for run in runs)
    for run in runs:
        assert run.together == 1 or "train.py" in run.reason, (run.together, run.reason)


# Scripts as people write them ---------------------------------------------------------------------

HEAD = """
import tinytorch as torch
from tinytorch import nn, optim
from tinytorch.nn import functional as F
from tinytorch.utils.data import DataLoader, TensorDataset
torch.manual_seed(1)
x = torch.randn(48, 6)
y = (x[:, 0] > 0).long()
loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2))
"""

PRINTS = """
optimizer = optim.RMSprop(model.parameters(), lr=1e-3)
for t in range(60):
    loss = F.cross_entropy(model(x), y)
    if t % 20 == 19:
        print(t, loss.item())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

EPOCHS = """
import argparse
def train(args, model, loader, optimizer, epoch):
    model.train()
    total = 0
    for batch_idx, (data, target) in enumerate(loader):
        optimizer.zero_grad()
        loss = F.nll_loss(F.log_softmax(F.dropout(model(data), 0.1, model.training), 1), target)
        loss.backward()
        total += loss.item()
        optimizer.step()
        if batch_idx % args.log_interval == 0:
            print(f"{epoch} {100. * batch_idx / len(loader):.0f}% {loss.item():.6f} {total / (batch_idx + 1)}")
@torch.no_grad()
def test(model, loader):
    model.eval()
    print(sum((model(data).argmax(1) == target).sum().item() for data, target in loader))
def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.5)
    parser.add_argument("--log-interval", type=int, default=2)
    args = parser.parse_args()
    optimizer = optim.Adadelta(model.parameters(), lr=args.lr)
    scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.7)
    for epoch in range(1, 10):
        train(args, model, loader, optimizer, epoch)
        test(model, loader)
        scheduler.step()
if __name__ == "__main__":
    main()
"""

METERS = """
import logging, time
from tqdm import tqdm
class Meter:
    def __init__(self):
        self.sum = self.count = 0
    def update(self, value, n=1):
        self.sum, self.count = self.sum + value * n, self.count + n
    def __str__(self):
        return f"{self.sum / self.count:.4f}"
class Trainer:
    def __init__(self):
        self.optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        self.history, self.best = [], 1e9
    def epoch(self, number):
        meter, end, bar = Meter(), time.time(), tqdm(loader, leave=False)
        for images, labels in bar:
            loss = F.cross_entropy(model(images), labels)
            meter.update(loss.item(), images.size(0))
            bar.set_postfix(loss=loss.item())
            self.optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            self.optimizer.step()
            end = time.time() - end
        self.history.append(float(loss.detach()))
        logging.getLogger("t").info("epoch %d", number)
        if self.history[-1] < self.best:
            self.best, self.saved = self.history[-1], {k: v.clone() for k, v in model.state_dict().items()}
        print(number, meter, self.best)
trainer = Trainer()
for number in range(9):
    trainer.epoch(number)
"""

BY_HAND = """
weights = [nn.Parameter(torch.randn(6, 8)), nn.Parameter(torch.zeros(8, 2))]
running, losses, lr = torch.zeros(8), [], 0.1
for i in range(60):
    ix = torch.randint(0, 48, (16,))
    h = x[ix] @ weights[0]
    with torch.no_grad():
        running = 0.9 * running + 0.1 * h.mean(0)
    loss = F.cross_entropy(torch.tanh(h) @ weights[1], y[ix])
    for p in weights:
        p.grad = None
    loss.backward()
    rate = lr if i < 40 else lr / 10
    for p in weights:
        p.data += -rate * p.grad
    losses.append(loss.log10().item())
    if losses[-1] < -5:
        break
def shown():
    return running.sum().item(), losses
print(shown(), i)
"""

PHASES = """
import copy
optimizer, best = optim.Adam(model.parameters(), lr=0.01), 0.0
for epoch in range(9):
    for phase in ["train", "val"]:
        model.train(phase == "train")
        corrects = 0
        for inputs, labels in loader:
            optimizer.zero_grad()
            with torch.set_grad_enabled(phase == "train"):
                outputs = model(inputs)
                _, preds = torch.max(outputs, 1)
                loss = F.cross_entropy(outputs, labels)
                if phase == "train":
                    loss.backward()
                    optimizer.step()
            corrects += torch.sum(preds == labels.data)
        if phase == "val" and corrects.double() / 48 > best:
            best, kept = corrects.double() / 48, copy.deepcopy(model.state_dict())
    print(f"{epoch} {best:.4f}")
"""

RECURRENT = """
rnn, head, lr, best = nn.LSTM(6, 8, batch_first=True), nn.Linear(8, 2), 0.5, None
parameters = [*rnn.parameters(), *head.parameters()]
def train():
    total, hidden = 0.0, (torch.zeros(1, 8, 8), torch.zeros(1, 8, 8))
    for batch, i in enumerate(range(0, 48 - 8, 8)):
        data, target = x[i : i + 8, None], y[i : i + 8]
        hidden = tuple(h.detach() for h in hidden)
        output, hidden = rnn(data, hidden)
        loss = F.cross_entropy(head(output[:, -1]), target)
        for p in parameters:
            p.grad = None
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 0.25)
        for p in parameters:
            p.data.add_(p.grad, alpha=-lr)
        total += loss.item()
        if batch % 2 == 0 and batch > 0:
            print(epoch, batch, lr, total)
    return total
try:
    for epoch in range(1, 13):
        value = train()
        if best is None or value < best - 0.03:
            best = value
        else:
            lr /= 4.0
except KeyboardInterrupt:
    pass
"""


class Shown(io.StringIO):
    """What each run prints."""

    def __init__(self):
        super().__init__()
        self.texts, self.scheduler = {}, None

    def write(self, text):
        run = self.scheduler.current
        self.texts.setdefault(run and run.number, []).append(text)


def made(bodies):
    shown = Shown()

    def chosen(scheduler):
        shown.scheduler = scheduler
        for run in scheduler.runs:
            run.arguments = ["train.py"]

    with contextlib.redirect_stdout(shown):
        runs = together([(seed, {}, body) for seed, body in bodies], False, chosen)
    return list(runs), ["".join(shown.texts[k]) for k in range(len(runs))]


@pytest.mark.parametrize("text", [PRINTS, EPOCHS, METERS, BY_HAND, PHASES, RECURRENT])
def test_scripts_that_log_run_together(tmp_path, text):
    path = tmp_path / "train.py"
    path.write_text(HEAD + text)
    ((_, _, body),) = planned(str(path), [], {}, [{}])
    runs, texts = made([(seed, body) for seed in range(3)])
    for run, shown in zip(runs, texts, strict=True):
        plain = functools.partial(exec, compile(HEAD + text, str(path), "exec"), {"__name__": "__main__"})
        (single,), (printed,) = made([(run.seed, plain)])
        assert run.losses == single.losses and len(run.losses) > 50 and shown == printed
        assert run.together >= 0.9, run.reason


def test_an_error_of_the_sweep_itself_does_not_reach_the_user(monkeypatch, caplog):
    def broken(*given):
        raise ZeroDivisionError("a fault")

    monkeypatch.setattr(scheduler, "Joint", broken)
    monkeypatch.setattr(logging.getLogger("tinytorch.compiler.recorder"), "handlers", [])  # (they fail the test)
    runs = torch.func.sweep(mlp, seeds=3, steps=6, progress=False)
    assert [run.losses for run in runs] == curves(mlp, range(3), 6)
    assert sum("a fault" in record.getMessage() for record in caplog.records) == 1
    assert all(run.together == 0 and "a fault" in run.reason for run in runs)


def test_the_bar_counts_the_steps_of_all_runs(capfd):
    torch.func.sweep(mlp, seeds=3, steps=6)
    assert re.match(r"3 runs: 18 steps in 00:0\d, .* steps/s, together=100%", capfd.readouterr().err)
    torch.func.sweep(lambda: None, seeds=2)
    assert re.match(r"2 runs: 0 steps in 00:0\d, together=0%", capfd.readouterr().err)
