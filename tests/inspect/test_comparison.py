"""`inspect.compare` names the first layer at which two models part, also against activations that PyTorch has saved."""

from __future__ import annotations

import copy
import inspect as python_inspect
import re
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinytorch as torch
from tests.oracle import needs_oracle
from tests.oracle import torch as pytorch
from tinytorch import inspect, nn
from tinytorch.inspect.comparison import compare

X = torch.linspace(-1, 1, 12).reshape(4, 3)


class Net(nn.Module):
    def __init__(self, lib: Any = nn) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU())
        self.drop = nn.Dropout(0.5)
        self.head = nn.Linear(8, 2)
        self.scale = 1.0

    def forward(self, x: Any) -> Any:
        h = self.drop(self.body(x)) * self.scale
        return self.head(h)


def pair() -> tuple[Net, Net]:
    torch.manual_seed(0)
    model = Net()
    return model, copy.deepcopy(model)


def test_equal_models_agree_also_with_dropout_and_batch_norm() -> None:
    a, b = pair()
    before = a.body[1].running_mean.clone()
    state = torch.get_rng_state()
    report = inspect.compare(a, b, X)
    assert report and report.first is None and not report.notes
    assert [layer.path for layer in report.layers] == ["body.0", "body.1", "body.2", "body", "drop", "head", ""]
    assert str(report) == "the models agree: 7 layers are equal"
    assert torch.equal(a.body[1].running_mean, before) and torch.equal(torch.get_rng_state(), state)
    assert a.body[1].num_batches_tracked == 0


def test_a_parameter_that_differs() -> None:
    a, b = pair()
    with torch.no_grad():
        b.head.weight[1, 2] += 0.25
    report = inspect.compare(a, b, X)
    assert not report and report.first is not None
    assert (report.first.path, report.first.type, report.first.state) == ("head", "Linear", "different")
    assert report.first.reason == "its inputs are equal; parameter weight differs by 0.25"
    k = report.first.position
    assert report.first.values == (a(X)[0, 0].item(), 0) or k[1] == 1
    assert "the models part at head (Linear)" in str(report) and "equal before: body.0" in str(report)


def test_a_buffer_a_setting_and_a_mode_that_differ() -> None:
    a, b = pair()
    a.eval(), b.eval()
    b.body[1].running_var += 1
    assert "buffer running_var differs by 1" in inspect.compare(a, b, X).first.reason
    a, b = pair()
    b.body[1].eps = 0.1
    report = inspect.compare(a, b, X)
    assert report.first.path == "body.1" and "the settings are (8, eps=1e-05" in report.first.reason
    a, b = pair()
    b.body[1].eval()
    assert "one is in training mode, and the other is not" in inspect.compare(a, b, X).first.reason
    b.eval()
    assert "the first model is in training mode" in str(inspect.compare(a, b, X))


def test_code_between_layers_and_after_them() -> None:
    a, b = pair()
    b.scale = 2.0
    report = inspect.compare(a, b, X)
    assert report.first.path == "head"
    assert (
        report.first.reason
        == "its inputs differ already, and all layers before are equal: look at the code, after drop"
    )

    class After(Net):
        def forward(self, x: Any) -> Any:
            return super().forward(x) + 1

    c = After()
    c.load_state_dict(a.state_dict())
    report = inspect.compare(a, c, X)
    assert (report.first.path, report.first.type) == ("", "Net")
    assert report.first.reason.startswith("its inputs are equal; the classes are Net and After")


def test_other_structures() -> None:
    a = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))

    class Other(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.act, self.last = nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)
            self.extra = nn.Identity()

        def forward(self, x: Any) -> Any:
            return self.last(self.extra(self.act(self.first(x))))

    b = Other()
    for mine, theirs in ((a[0], b.first), (a[2], b.last)):
        theirs.load_state_dict(mine.state_dict())
    report = inspect.compare(a, b, X)
    assert report, report
    assert [(layer.path, layer.other) for layer in report.layers[:3]] == [("0", "first"), ("1", "act"), ("2", "last")]
    assert report.notes == ["only in the second model: extra"]
    with torch.no_grad():
        b.last.bias += 1
    report = inspect.compare(a, b, X)
    assert (report.first.path, report.first.other) == ("2", "last")
    assert "2 (Linear), last in the second model" in str(report)
    longer = nn.Sequential(*copy.deepcopy(a), nn.ReLU())
    assert inspect.compare(a, longer, X).first.reason == "its inputs are equal, but only one of the models has 3"
    wide = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2))
    report = inspect.compare(a, wide, X)
    assert (report.first.path, report.first.state) == ("0", "another shape")
    assert "parameter weight is (4, 3) and (5, 3)" in report.first.reason


def test_layers_that_are_called_several_times_and_outputs_that_are_tuples() -> None:
    class Twice(nn.Module):
        def __init__(self, factor: float) -> None:
            super().__init__()
            self.layer, self.rnn, self.factor = nn.Linear(3, 3), nn.LSTM(3, 3), factor

        def forward(self, x: Any) -> Any:
            y = self.layer(self.layer(x) * self.factor)
            return self.rnn(y)[0]

    a, b = Twice(1.0), Twice(1.5)
    b.load_state_dict(a.state_dict())
    report = inspect.compare(a, b, X)
    assert report.first.path == "layer#2" and "look at the code, after layer" in report.first.reason
    b.factor = 1.0
    assert inspect.compare(a, b, X)
    with torch.no_grad():
        b.rnn.weight_hh_l0 += 1
    assert inspect.compare(a, b, X).first.path == "rnn"


def test_tolerances_and_inputs() -> None:
    a, b = pair()
    with torch.no_grad():
        b.head.bias += 1e-5
    assert inspect.compare(a, b, X)
    assert not inspect.compare(a, b, X, rtol=1e-7)
    assert inspect.compare(a, b, X, rtol=0, atol=1e-4)
    assert inspect.compare(a.half(), b.half(), X.half())

    class Sum(nn.Module):
        def forward(self, x: Any, y: Any = 0) -> Any:
            return x + y

    assert inspect.compare(Sum(), Sum(), (X, X)) and inspect.compare(Sum(), Sum(), {"x": X, "y": X})
    nothing = torch.tensor([torch.nan, torch.inf, 1.0])
    assert inspect.compare(Sum(), Sum(), nothing)

    class Broken(Sum):
        def forward(self, x: Any, y: Any = 0) -> Any:
            return torch.where(x == 1, torch.nan, x)

    assert not inspect.compare(Sum(), Broken(), nothing)


def test_wrong_arguments(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="model_b should be a Module, but got int"):
        inspect.compare(Net(), 3, X)  # type: ignore[arg-type]
    np.savez(tmp_path / "other.npz", weight=np.zeros(3))
    with pytest.raises(ValueError, match="has the entry 'weight'"):
        inspect.compare(Net(), tmp_path / "other.npz", X)


def test_html() -> None:
    a, b = pair()
    with torch.no_grad():
        b.head.bias += 1
    page = inspect.compare(a, b, X)._repr_html_()
    assert "the models part at head (Linear)" in page and "parameter bias differs by 1" in page


# Activations from PyTorch --------------------------------------------------------------------------


def script() -> str:
    """Return the lines of the docstring that save activations."""
    text = python_inspect.getdoc(compare) or ""
    return textwrap.dedent(re.search(r"save there::\n\n(.*?)\n\n(?=\S)", text, re.DOTALL)[1])  # type: ignore[index]


def save(lib: Any, model: Any, x: Any) -> None:
    exec(script(), {"torch": lib, "numpy": np, "model": model, "input": x})


def model_of(lib: Any) -> Any:
    nn = lib.nn

    class Model(nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.GELU(), nn.AvgPool2d(2))
            self.rnn = nn.LSTM(16, 8, batch_first=True)
            self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
            self.norm = nn.LayerNorm(8)
            self.head = nn.Linear(8, 3)

        def forward(self, x: Any) -> Any:
            h = self.conv(x)
            h = self.rnn(h.flatten(2))[0]
            h = self.norm(h + self.attention(h, h, h)[0])
            return self.head(h.mean(1))

    return Model().eval()


def test_the_script_is_short_and_runs_with_this_library(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(script().split("\n")) <= 12
    model, x = model_of(torch), torch.randn(2, 1, 8, 8)
    save(torch, copy.deepcopy(model), x)
    report = inspect.compare(model, "activations.npz", x)
    assert report and all(layer.state == "equal" for layer in report.layers)
    with torch.no_grad():
        model.norm.bias += 1
    report = inspect.compare(model, "activations.npz", x)
    assert report.first is not None and report.first.path == "norm"
    assert "its weights or its settings differ" in report.first.reason


@needs_oracle
def test_activations_from_pytorch(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    theirs = model_of(pytorch)
    x = np.random.default_rng(0).random((2, 1, 8, 8), dtype=np.float32)
    save(pytorch, theirs, pytorch.from_numpy(x))
    pytorch.save(theirs.state_dict(), "weights.pth")
    ours = model_of(torch)
    ours.load_state_dict(torch.load("weights.pth"))
    report = inspect.compare(ours, "activations.npz", torch.from_numpy(x))
    assert report, report
    assert [layer.path for layer in report.layers if layer.state == "equal"][-3:] == ["norm", "head", ""]
    ours.conv[1].eps = 0.5
    report = inspect.compare(ours, Path("activations.npz"), torch.from_numpy(x))
    assert report.first is not None and (report.first.path, report.first.type) == ("conv.1", "BatchNorm2d")
