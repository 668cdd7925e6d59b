"""Warnings name the line of the user's call, whichever way the call takes, and come as often as PyTorch's."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

import tinytorch
from tinytorch.core import warning

#: Statements that warn, each on one line.
WARNING = """
F.softmax(x)
F.softmin(x)
F.log_softmax(x)
nn.Softmax()(x)
nn.Softmin()(x)
nn.LogSoftmax()(x)
nn.Sequential(nn.Linear(3, 3), nn.Softmax())(x)
torch.tensor(x)
torch.tensor([numpy.ones(2), numpy.ones(2)])
F.l1_loss(x, x[:1])
F.mse_loss(x, x[:1])
F.smooth_l1_loss(x, x[:1])
F.huber_loss(x, x[:1])
nn.L1Loss()(x, x[:1])
nn.MSELoss()(x, x[:1])
nn.SmoothL1Loss()(x, x[:1])
nn.MSELoss(size_average=False)
nn.MSELoss(reduce=False)
F.mse_loss(x, x, size_average=True)
F.mse_loss(x, x, reduction="elementwise_mean")
F.kl_div(x, x)
F.upsample(image, scale_factor=2)
F.upsample_nearest(image, scale_factor=2)
F.upsample_bilinear(image, scale_factor=2)
F.grid_sample(image, torch.zeros(1, 2, 2, 2))
F.affine_grid(torch.zeros(1, 2, 3), [1, 1, 2, 2])
F.dropout2d(torch.zeros(2, 3))
F.dropout3d(torch.zeros(2, 3))
nn.init.xavier_uniform(torch.zeros(2, 2))
nn.init.normal(torch.zeros(2, 2))
nn.init.kaiming_uniform_(torch.zeros(0, 2))
nn.LSTM(2, 2, dropout=0.5)
nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 1), 1)
nn.Hardtanh(min_value=-2.0)
nn.utils.clip_grad_norm(parameters(), 1.0)
nn.utils.weight_norm(nn.Linear(2, 2))
nn.Linear(2, 2).state_dict({}, "")
torch.zeros(2, 2, 2).T
torch.zeros(()).H
torch.std(torch.zeros(1))
torch.var(torch.zeros(1))
torch.zeros(1).std()
torch.zeros(1).var()
torch.var_mean(torch.zeros(1))
torch.cov(torch.zeros(1, 1))
torch.add(x, 2, x)
torch.lu(square)
torch.qr(square)
torch.chain_matmul(square, square)
torch.meshgrid(torch.ones(2), torch.ones(2))
x[byte]
torch.where(byte, x, x)
torch.arange(3).resize(3)
x.resize(6)
x.resize_as(x)
torch.add(x, x, out=torch.zeros(2))
torch.from_numpy(frozen())
torch.range(0, 1)
torch.cross(torch.eye(3), torch.eye(3))
x.scatter(0, torch.zeros(1, 1, dtype=torch.int64), x, reduce="add")
torch.frombuffer(b"1234", dtype=torch.uint8)
torch.zeros(()).mT
torch.zeros(()).mH
torch.zeros(()).T
torch.range(0, 2)
float(leaf)
(leaf * 2).grad
x.storage()
torch.set_default_tensor_type("torch.FloatTensor")
torch.set_float32_matmul_precision("none")
torch.cuda.amp.GradScaler()
torch.cuda.amp.autocast()
torch.cpu.amp.autocast()
torch.amp.GradScaler("cuda")
torch.autocast("cpu", dtype=torch.float64)
torch.autograd.backward([(leaf * 2).sum()], grad_variables=[torch.ones(())])
(leaf * 2).sum().backward(create_graph=True)
torch.autograd.grad((leaf * 2).sum(), leaf, only_inputs=False)
torch.utils.checkpoint.checkpoint(torch.sin, leaf)
torch.utils.checkpoint.checkpoint(torch.sin, x, use_reentrant=True)
torch.distributions.Normal(0.0, 1.0).sample_n(2)
torch.optim.lr_scheduler.StepLR(optimizer(), 1).step()
torch.optim.lr_scheduler.StepLR(stepped(), 1).step(1)
stepping().step(3)
torch.utils.data.DataLoader([1], num_workers=99)
torch.utils.data.ConcatDataset([[1]]).cummulative_sizes
torch.testing.assert_allclose(x, x)
torch.profiler.schedule(wait=0, warmup=0, active=1)
torch.autograd.profiler.profile(use_cuda=True)
torch.ones(1).expand(3).masked_fill_(torch.tensor([True, False, True]), 2.0)
torch.ones(1).expand(3).index_put_((torch.tensor([True, False, True]),), torch.tensor(2.0))
functools.partial(F.softmax)(x)
list(map(F.softmax, [x]))
sorted([x], key=lambda each: F.softmax(each).sum())
torch.no_grad()(F.softmax)(x)
torch.nn.utils.stateless.functional_call(nn.Linear(3, 3), {}, (x,))
torch.nn.TripletMarginLoss(size_average=True)
torch._check_is_size(3)
"""
SETUP = """
import functools, warnings
import numpy
nn, F = torch.nn, torch.nn.functional
x, square, image = torch.ones(2, 3), torch.eye(2), torch.zeros(1, 1, 2, 2)
byte, leaf = torch.ones(2, 3, dtype=torch.uint8), torch.ones(1, requires_grad=True)
def parameters(): return [nn.Parameter(torch.zeros(2))]
def optimizer(): return torch.optim.SGD(parameters(), 0.1)
def stepped():
    made = optimizer()
    made.step()
    return made
def stepping():
    made = optimizer()
    scheduler = torch.optim.lr_scheduler.StepLR(made, 1)
    made.step()
    return scheduler
def frozen():
    array = numpy.ones(2)
    array.flags.writeable = False
    return array
"""
#: Calls each statement of a file and prints, by line, its error and the warnings that it caused.
PROGRAM = """
import ast, importlib, json, sys, warnings
name, path, setup = sys.argv[1:]
torch = importlib.import_module(name)
for each in "amp.autocast_mode cpu.amp cuda.amp distributions func nn.utils.stateless optim profiler testing".split():
    importlib.import_module(f"{name}.{each}")
for each in "utils.checkpoint utils.data".split():
    importlib.import_module(f"{name}.{each}")
scope = {"torch": torch, "__name__": "program"}
exec(setup, scope)
result = []
for node in ast.parse(open(path).read()).body:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exec(compile(ast.Module([node], []), path, "exec"), scope)
    result.append([node.lineno, [[each.filename, each.lineno, each.category.__name__] for each in caught]])
print(json.dumps(result))
"""
STATEMENTS = [line for line in WARNING.strip().splitlines() for _ in range(2)]


def warned(library: str, folder: Path) -> list[Any]:
    """Return, by statement, its line and the warnings: their files, lines and classes. Each statement runs twice."""
    path = folder / "program.py"
    path.write_text("\n".join(STATEMENTS))
    command = [sys.executable, "-c", PROGRAM, library, str(path), SETUP]
    run = subprocess.run(command, capture_output=True, text=True)
    assert not run.returncode, run.stderr
    found: list[Any] = json.loads(run.stdout)
    return found


def test_warnings_name_the_line_of_the_user(tmp_path: Path) -> None:
    path = str(tmp_path / "program.py")
    for statement, (line, found) in zip(STATEMENTS, warned("tinytorch", tmp_path), strict=True):
        assert [each[:2] for each in found] == [[path, line]] * len(found), statement
        assert found or statement == STATEMENTS[line - 2], statement  # at the second line some come once


def test_warnings_are_as_many_as_those_of_pytorch(tmp_path: Path) -> None:
    ours, theirs = (
        [[each[2] for each in found] for _, found in warned(name, tmp_path)] for name in ("tinytorch", "torch")
    )
    for statement, mine, of_pytorch in zip(STATEMENTS, ours, theirs, strict=True):
        assert mine == of_pytorch, statement


TWO_LINES = """
import tinytorch as torch
for _ in range(2):
    torch.nn.functional.softmax(torch.ones(2))
    torch.nn.Softmax()(torch.ones(2))
"""


def test_each_faulty_line_is_shown_once(tmp_path: Path) -> None:
    """(By Python's default filter, which looks into the registry of the user's module.)"""
    path = tmp_path / "program.py"
    path.write_text(TWO_LINES)
    run = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=True)
    shown = [line for line in run.stderr.splitlines() if "UserWarning" in line]
    assert [line.partition(": UserWarning")[0] for line in shown] == [f"{path}:4", f"{path}:5"]


def test_errors_are_raised_at_the_line_of_the_user(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(TWO_LINES)
    run = subprocess.run([sys.executable, "-W", "error::UserWarning", str(path)], capture_output=True, text=True)
    assert run.returncode == 1
    assert f'File "{path}", line 4' in run.stderr and "UserWarning: Implicit dimension choice" in run.stderr


def test_warnings_that_come_once_can_be_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warning, "issued", set())
    x = tinytorch.zeros(2, 2, 2)

    def number() -> int:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert x.T.shape == x.T.shape == (2, 2, 2)
        return len(caught)

    assert number() == 1 and number() == 0
    tinytorch.set_warn_always(True)
    try:
        assert number() == 2
    finally:
        tinytorch.set_warn_always(False)


def test_no_other_warning_counts_calls() -> None:
    """What a user's call causes is issued by `warn`, which finds the user's line; deprecations may name ours."""
    for path in Path(tinytorch.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            text = ast.unparse(node) if isinstance(node, ast.Call) else ""
            assert not text.startswith("warnings.warn(") or "DeprecationWarning" in text, f"{path}:{node.lineno}"
