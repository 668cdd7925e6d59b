"""The doctor: right causes at right lines, exact repetition, programs left undisturbed."""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tinytorch
from benchmarks.faults import __main__ as corpus
from benchmarks.faults import patches
from tinytorch.inspect import doctor as package
from tinytorch.inspect.doctor import Doctor, judging
from tinytorch.inspect.doctor.__main__ import main
from tinytorch.inspect.doctor.causes import causes as all_causes
from tinytorch.inspect.doctor.checks import Check
from tinytorch.nn.modules import module as modules
from tinytorch.nn.modules.module import Module
from tinytorch.optim.optimizer import Optimizer

ROOT = Path(tinytorch.__file__).parents[1]
PATH = os.pathsep.join([str(ROOT / "tinytorch" / "compat" / "as_torch"), str(ROOT)])
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="copies of a process are made by fork")


def diagnose(tmp_path: Path, text: str, *options: str) -> tuple[int, dict, str, str]:
    """Return the exit code, the report, the program's output and the errors of the doctor on a program."""
    program = tmp_path / "program.py"
    program.write_text(text, "utf-8")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": PATH}
    command = [sys.executable, "-m", "tinytorch.inspect.doctor", "--json", "--quiet", *options, str(program)]
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    lines = run.stdout.splitlines()
    return run.returncode, json.loads(lines[-1]), "\n".join(lines[:-1]), run.stderr


HEALTHY = """
import random
import numpy as np
import torch
from torch import nn
torch.manual_seed(0)
random.seed(0)
np.random.seed(0)
x = torch.randn(400, 6)
y = (x[:, :3].sum(1) > 0).long()
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=20, shuffle=True)
for epoch in range(5):
    model.train()
    for a, b in loader:
        scale = 1 + 0.1 * random.random() + 0.1 * float(np.random.rand())
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(a * scale), b)
        loss.backward()
        optimizer.step()
    print(f"{loss.item():.6f}")
"""


def test_a_healthy_program_has_no_finding(tmp_path):
    code, report, output, errors = diagnose(tmp_path, HEALTHY)
    assert (code, report["findings"], report["error"], report["notes"]) == (0, [], None, []), errors
    first, printed = report["curves"][0]["losses"][0], float(report["standing"].split()[4])
    assert math.isclose(printed, first, rel_tol=1e-3) and "(the mean of the last 10) in 100 steps" in report["standing"]
    assert 0 < report["tried_for"] < 290
    assert (
        report["guess"] > 0.6
        and {"with one batch in all steps", "with no dropout"}
        <= {each["says"] for each in report["tried"] if each["steps"]}
        and "best constant guess has" in report["standing"]
    )
    assert report["backwards"] == 100 and len(report["curves"][0]["losses"]) == 100
    plain = subprocess.run(
        [sys.executable, str(tmp_path / "program.py")], capture_output=True, text=True, check=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": PATH},
    )  # fmt: skip
    assert output == plain.stdout.rstrip("\n")  # the same losses: watching changes no number
    assert set(report["layers"]) >= {"Sequential.0.weight", "relu Sequential.1"}


def layers_called_one_by_one() -> None:
    model = tinytorch.nn.Sequential(*[tinytorch.nn.Linear(4, 4) for _ in range(12)])
    x = tinytorch.randn(8, 4)
    kept = x
    for layer in model:
        kept = layer(kept)
    optimizer = tinytorch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        optimizer.zero_grad()
        (model(x) - x).square().mean().backward()
        optimizer.step()
    assert kept.requires_grad


def checkpoints_that_compute_again() -> None:
    model = tinytorch.nn.Sequential(tinytorch.nn.Linear(4, 4), tinytorch.nn.Dropout(0.3), tinytorch.nn.Linear(4, 1))
    optimizer = tinytorch.optim.Adam(model.parameters(), lr=0.01)
    x = tinytorch.randn(8, 4, requires_grad=True)
    for _ in range(12):
        optimizer.zero_grad()
        tinytorch.utils.checkpoint.checkpoint(model, x, use_reentrant=True).square().mean().backward()
        optimizer.step()


def sparse_gradients() -> None:
    table = tinytorch.nn.Embedding(20, 4, sparse=True)
    optimizer = tinytorch.optim.SparseAdam(table.parameters(), lr=0.05)
    for _ in range(12):
        optimizer.zero_grad()
        table(tinytorch.randint(0, 20, (16,))).square().mean().backward()
        optimizer.step()


def gradients_cleared_by_zeros() -> None:
    model = tinytorch.nn.Linear(4, 1)
    x = tinytorch.randn(32, 4)
    for _ in range(12):
        tinytorch.nn.functional.mse_loss(model(x), x[:, :1]).backward()
        with tinytorch.no_grad():
            for p in model.parameters():
                p -= 0.1 * p.grad
                p.grad.data.zero_()


HABITS = [layers_called_one_by_one, checkpoints_that_compute_again, sparse_gradients, gradients_cleared_by_zeros]


@pytest.mark.parametrize("train", HABITS)
def test_uncommon_habits_are_no_mistakes(train):
    tinytorch.manual_seed(0)
    with Doctor(show=False) as doctor:
        train()
    assert doctor.findings == [] and not [note for note in doctor.notes if "failed" in note]
    assert ("12 updates by the program itself" if train is gradients_cleared_by_zeros else "") in doctor.text()


def test_the_report_is_a_page(tmp_path):
    diagnose(tmp_path, HEALTHY.replace("print(", "print('<b>' and "), "--report", "run.html")
    text = (tmp_path / "run.html").read_text("utf-8")
    assert text.startswith("<!doctype html>") and text.count("<polyline") >= 2
    assert "No findings" in text.replace("finding in", "findings in") and "prefers-color-scheme: dark" in text
    assert "http://" not in text and "https://" not in text and "<script" not in text  # self-contained


def test_a_page_escapes_and_shows_findings():
    finding = {"cause": "overflow", "proven": True, "text": "a < b", "proof": "with x", "remedy": "<i>", "file": "<p>",
               "line": 3, "source": "x = '<script>'"}  # fmt: skip
    report = {"findings": [finding], "notes": ["<n>"], "exact": True, "backwards": 3, "seconds": 1.0,
              "curves": [{"file": "a/b.py", "line": 3, "steps": [1, 2, 3], "losses": [1.0, None, 2.0], "seconds": []}],
              "rates": [[1, 0.1], [2, 0.1]], "layers": {}, "error": "E: <e>"}  # fmt: skip
    text = package.page.page(report, "<t>")
    assert "<script>" not in text and "<p>:3" not in text and "&lt;script&gt;" in text and "1 not finite" in text
    for escaped in ("a &lt; b", "&lt;i&gt;", "&lt;n&gt;", "&lt;e&gt;", "&lt;t&gt;", "with x", "b.py:3"):
        assert escaped in text
    assert "proven" in text and "polyline" in text


@needs_fork
def test_steps_are_taken_again_bit_for_bit(tmp_path):
    """With random numbers of three generators, dropout and shuffled data; files and output are left alone."""
    text = HEALTHY.replace("loss = nn.functional.cross_entropy(model(a * scale), b)",
                           "loss = nn.functional.cross_entropy(model(a * scale).softmax(1), b)")  # fmt: skip
    text = text.replace(
        "        optimizer.step()\n", "        optimizer.step()\n        log.write('x')\n        log.flush()\n"
    )
    text = text.replace("for epoch", "log = open('log.txt', 'a')\nfor epoch", 1)
    code, report, output, _ = diagnose(tmp_path, text)
    assert code == 1 and report["exact"] is True
    assert report["findings"][0]["cause"] == "softmax-before-cross-entropy"
    assert len(output.splitlines()) == 5
    assert (tmp_path / "log.txt").read_text() == "x" * 100


@needs_fork
def test_a_copy_ends_before_it_writes_a_file(tmp_path):
    text = HEALTHY.replace("model(a * scale)", "model(a * scale).softmax(1)").replace(
        "        optimizer.step()\n",
        "        optimizer.step()\n        with open('count.txt', 'a') as file:\n            file.write('x')\n",
    )
    _, report, _, _ = diagnose(tmp_path, text)
    assert [each["cause"] for each in report["findings"]] == ["softmax-before-cross-entropy"]
    assert (tmp_path / "count.txt").read_text() == "x" * 100


#: Programs of the corpus that are run here: one of each kind of proof.
SOME = """
    zero_grad_missing_functions zero_grad_missing_scratch eval_missing_dropout softmax_layer broadcast_mse
    layers_in_list best_is_alias exp_overflows labels_from_one scheduler_before_optimizer

    fault_017_first_batch_only fault_027_activations_hooked fault_031_data_of_mu fault_051_sum_of_test_losses
    fault_071_kl_with_zero_targets fault_082_old_head_optimized fault_105_zeros_by_hand
""".split()


@needs_fork
@pytest.mark.parametrize("name", SOME)
def test_mistakes_are_found(name, tmp_path):
    paths = [path for folder in corpus.FOLDERS for path in patches.files(folder, tmp_path)]
    path = next(path for path in paths if path.stem == name)
    (cause,), lines = corpus.truth(path)
    row = corpus.row(name, [cause], lines, corpus.diagnose(path, [], 280))
    assert row["said"] == cause and row["near"], corpus.shown(row)


WRONG = """class F(torch.autograd.Function):
    forward = staticmethod(lambda ctx, x: (ctx.save_for_backward(x), x.sin())[1])
    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0].sin()
model.register_forward_hook(lambda *a: F.apply(a[2])); loader ="""
AVERAGED = """average = nn.BatchNorm1d(6).eval()
for p, q in zip(average.parameters(), nn.BatchNorm1d(6).parameters()):
    p.data.lerp_(q.data + 1, 0.5)
average(x); loader ="""
LOOP, CALL, ADAM = "for a, b in loader:\n", "model(a * scale)", "torch.optim.Adam(model.parameters(), lr=0.01)"


@needs_fork
@pytest.mark.parametrize(
    "cause, old, new",
    [
        ("class-ignored", f"{CALL}, b", f"{CALL}, b, ignore_index=1"),
        ("samples-repeated", "shuffle=True", "sampler=[0, 1, 2] * 130"),
        ("data-changed", LOOP, f"{LOOP}        x.add_(0.01)\n"),
        ("samples-mixed", "nn.Linear(16, 2))", "nn.Linear(16, 2), nn.LogSoftmax(0))"),
        ("integers-wrap", LOOP, f"{LOOP}        a = ((50 * a.abs()).to(torch.uint8) - 60).float() / 50\n"),
        ("reshape-for-transpose", CALL, "model(a.reshape(6, 20).t())"),
        ("softmax-dimension", f"{CALL}, b", "(torch.softmax(a @ a.t(), 0) @ model(a)), b"),
        ("written-to-copy", LOOP, f"{LOOP}        a[a[:, 0] > 0][:, 1] = 0.0\n"),
        ("precision-too-low", LOOP, f"{LOOP}        a = a + ((1.7e9 + a.double()).float() - 1.7e9)\n"),
        ("running-statistics", "nn.Dropout(0.2)", "nn.BatchNorm1d(16, momentum=0.99)"),
        ("running-statistics", "loader =", AVERAGED),
        (
            "attribute-of-module",
            "loader =",
            "model[0].weight.requires_grad_(False); model[0].requires_grad = True; loader =",
        ),
        ("backward-wrong", "loader =", WRONG),
        ("graph-cut", f"{CALL}, b)", f"{CALL}, b) + torch.autograd.grad(model(x).sum(), model[0].weight)[0].norm()"),
        ("module-shared", "    print(", "    models = [model.eval()] * 2; [m(x) for m in models]; print("),
        ("inputs-unscaled", CALL, "model(a * scale * torch.logspace(0, -4, 6))"),
        ("class-weights-inverted", f"{CALL}, b", f"{CALL}, b * (a[:, 3] > 0.5), torch.tensor([0.85, 0.15])"),
        ("option-harmful", ADAM, "torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=1.0)"),
        (
            "gradients-clipped",
            "optimizer.step()",
            "nn.utils.clip_grad_norm_(model.parameters(), 1e-4); optimizer.step()",
        ),
    ],
)
def test_what_no_table_knows_is_found(cause, old, new, tmp_path):
    text = HEALTHY.replace(ADAM, "torch.optim.SGD(model.parameters(), lr=0.5)") if "clip" in cause else HEALTHY
    line = text[: text.index(old)].count("\n") + 1 + new.count("\n", 0, -1)
    _, report, _, errors = diagnose(tmp_path, text.replace(old, new), "--seconds", "4")
    assert report["findings"] and report["findings"][0]["cause"] == cause, (report["findings"], errors)
    assert abs(report["findings"][0]["line"] - line) <= 1


SCRATCH = """
import numpy as np
import torch
torch.manual_seed(0)
x = torch.rand(40, 2) * 2 - 1
y = x[:, :1] * 2 - x[:, 1:]
w, v = (torch.randn(2, 16) * 0.5).requires_grad_(), (torch.randn(16, 1) * 0.3).requires_grad_()
for step in range(60):
    h = torch.tanh(x @ w)
    loss = ((h @ v - y) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        for p in (w, v):
            p -= 0.1 * p.grad
            p.grad = None
"""


@needs_fork
@pytest.mark.parametrize(
    "cause, old, new",
    [
        ("", "0.5", "0.5"),
        ("update-lost", "p -= 0.1 *", "p = p - 0.1 *"),
        ("update-lost", "p -= 0.1 *", "p.data - 0.1 *"),
        ("graph-cut", "torch.tanh(x @ w)", "torch.tensor(np.tanh((x @ w).detach().numpy()))"),
        ("broadcast-in-loss", "- y)", "- y.T)"),
        ("targets-unscaled", "y = ", "y = 1e5 + 2e4 * "),
        ("inputs-unscaled", "x @ w", "(400 * x) @ w"),
    ],
)
def test_programs_without_modules(cause, old, new, tmp_path):
    _, report, _, errors = diagnose(tmp_path, SCRATCH.replace(old, new))
    causes = [each["cause"] for each in report["findings"]]
    assert causes[:1] == [cause] * bool(cause), (report["findings"], errors)
    line = SCRATCH[: SCRATCH.index(old)].count("\n") + 1
    assert not cause or report["findings"][0]["line"] == line
    if not cause:  # (all data in each step: one batch in all steps would be the same)
        assert {each["says"] for each in report["tried"]} == {
            f"with updates {much} as large" for much in ("a third", "three times")
        }


@needs_fork
@pytest.mark.parametrize(
    "new, expected",
    [
        ("x = torch.zeros(400, 6); np.random.seed(0)", ["samples-alike"]),
        ("x = torch.cat([torch.zeros(400, 300), x], 1)", []),
    ],
)
def test_equal_elements_are_not_the_same_batch(new, expected, tmp_path):
    text = HEALTHY.replace("model =", f"{new}\nmodel =", 1).replace("nn.Linear(6,", "nn.Linear(x.shape[1],")
    _, report, _, errors = diagnose(tmp_path, text)
    assert [each["cause"] for each in report["findings"]] == expected, (report["findings"], errors)


def test_the_corpus_is_marked(tmp_path):
    known = set(all_causes())
    for folder, least in zip(corpus.FOLDERS, (75, 195), strict=True):
        paths = patches.files(folder, tmp_path / folder.name)
        marked = {path: corpus.truth(path) for path in paths if not path.stem.startswith("healthy")}
        assert len(marked) >= least
        for path, (causes, lines) in marked.items():
            assert causes and set(causes) <= known and lines, path


def test_the_programs_of_the_corpus_are_made(tmp_path):
    for folder, least in zip((*corpus.FOLDERS, patches.HEALTHY), (79, 255, 22), strict=True):
        paths = patches.files(folder, tmp_path / folder.name)
        assert len(paths) >= least
        for path in paths:
            compile(path.read_text("utf-8"), path.name, "exec")


@pytest.mark.parametrize(
    "changes, message",
    [
        (["2-c"], "line 2 of the base is 'b': '2-c'"),
        (["2-"], "line 2 of the base is 'b'"),
        (["2-b "], "line 2 of the base is 'b'"),
        (["3-c", "2-b"], "out of order: '2-b'"),
        (["2+x", "2-b"], "out of order"),
        (["2-b", "2-b"], "out of order"),
        (["0-a"], "out of order"),
        (["4-"], "the base has 3 lines"),
        (["4+x"], "the base has 3 lines"),
        (["-b"], "not a change: '-b'"),
        (["2 b"], "not a change"),
    ],
)
def test_a_wrong_patch_is_refused(changes, message, tmp_path):
    with pytest.raises(ValueError, match=re.escape(message)):
        patches.apply("a\nb\nc\n", changes)
    (tmp_path / "base.py").write_text("a\nb\nc\n", "utf-8")
    table = "".join(f"{line}\n" for line in ("=== new.py: base.py", *changes))
    (tmp_path / "patches.txt").write_text(patches.NOTE + table, "utf-8")
    with pytest.raises(ValueError, match="patches.txt: new.py: " + re.escape(message)):
        patches.programs(tmp_path)


def test_programs_are_added_to_the_tables(tmp_path):
    base = "".join(f"step({k})\n" for k in range(20))
    (tmp_path / "base.py").write_text(base, "utf-8")
    folder = tmp_path / "made"
    folder.mkdir()

    def added(name: str, text: str) -> str:
        (folder / name).write_text(text, "utf-8")
        said = patches.add(tmp_path, folder / name)
        assert patches.programs(tmp_path)[name] == text
        return said

    changed = base.replace("step(7)\n", "").replace("step(19)\n", "step(20)\n\nend()\n")
    assert added("new.py", changed) == "=== new.py: base.py"
    assert (tmp_path / "patches.txt").read_text("utf-8") == (
        f"{patches.NOTE}=== new.py: base.py\n8-step(7)\n20-step(19)\n20+step(20)\n20+\n20+end()\n"
    )
    assert added("a.py", "begin()\n" + base) == "=== a.py: base.py"
    assert added("other.py", "one()\n\ntwo()\n") == "=== other.py"
    assert added("a.py", "# another program\n") == "=== a.py"
    assert added("new.py", "# another program\n") == "=== new.py" and not (tmp_path / "patches.txt").exists()
    assert list(patches.programs(tmp_path)) == ["a.py", "new.py", "other.py"]
    with pytest.raises(ValueError, match=r"base\.py is a file of"):
        patches.add(tmp_path, tmp_path / "base.py")


def test_exit_codes(tmp_path):
    assert diagnose(tmp_path, "raise KeyError('nothing to do with training')")[0] == 2
    assert diagnose(tmp_path, "raise SystemExit(3)")[0] == 2
    assert diagnose(tmp_path, "raise SystemExit(0)")[0] == 0
    code, report, _, errors = diagnose(tmp_path, "import torch\ntorch.nn.functional.cross_entropy(torch.zeros(2, 3), "
                                       "torch.tensor([0, 3]))\n")  # fmt: skip
    assert code == 1 and report["findings"][0]["cause"] == "labels-out-of-range"
    assert report["findings"][0]["line"] == 2 and "IndexError" in errors


@pytest.mark.parametrize(("arguments", "said"), [
    (["none.py"], "can't open file '{}none.py': [Errno 2] No such file or directory\n"),
    (["."], "can't find '__main__' module in '.'\n"), (["-m", "none"], "No module named none\n"),
    (["--report", "no/a.html", "b.py"], "can't write the report: [Errno 2] No such file or directory: 'no/a.html'\n"),
])  # fmt: skip
def test_what_cannot_be_run(arguments, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    monkeypatch.setattr(sys, "argv", [])
    try:
        status = main(arguments)
    except SystemExit as end:
        status = end.code
    assert (status, capsys.readouterr().err) == (2, f"python -m tinytorch doctor: {said.format(f'{tmp_path}{os.sep}')}")
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("text", ["def f(:", "def f():\n    1 / 0\nf()"])
def test_errors_of_a_program_are_shown_as_python_shows_them(text, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(text, "utf-8")
    commands = [[sys.executable, *options, str(program)] for options in ([], ["-m", "tinytorch.inspect.doctor"])]
    plain, ours = [subprocess.run(command, cwd=ROOT, capture_output=True, text=True) for command in commands]
    report = "doctor: no findings (0 backward passes" if "f()" in text else ""
    assert ours.stderr.startswith(plain.stderr + report) and ours.returncode == 2
    assert bool(report) or ours.stderr == plain.stderr


def test_steps_end_the_program(tmp_path):
    code, report, output, _ = diagnose(tmp_path, HEALTHY, "--steps", "30")
    assert (code, report["backwards"], len(output.splitlines())) == (0, 30, 1)


def test_a_block_leaves_the_library_as_it_was():
    names = ("backward", "detach", "numpy", "item", "tolist", "requires_grad", "data")

    def members() -> list[Any]:
        found = [*vars(Module).values(), *vars(Optimizer).values(), *[vars(tinytorch.Tensor)[name] for name in names]]
        functions = [getattr(each, "fget", each) for each in found]
        files = [getattr(getattr(each, "__code__", None), "co_filename", "") for each in functions]
        return [file for file in files if file.endswith("watch.py")]

    assert not members()
    with Doctor(show=False) as doctor:
        assert len(members()) == 4
        with pytest.raises(RuntimeError, match="another doctor"), Doctor(show=False):
            pass
        model = tinytorch.nn.Linear(2, 1)
        optimizer = tinytorch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(10):
            loss = model(tinytorch.ones(4, 2)).square().mean()
            loss.backward()
            optimizer.step()
    assert not members() and not modules._global_forward_hooks and not modules._global_forward_pre_hooks
    assert [each.cause for each in doctor.findings] == ["zero_grad-missing"]
    assert "zero_grad" in str(doctor.findings[0]) and doctor.findings[0].place is not None
    assert doctor.findings[0].place.text == "loss.backward()"


def test_errors_of_the_block_pass():
    out = io.TextIOWrapper(io.BytesIO())
    with contextlib.redirect_stdout(out), pytest.raises(ZeroDivisionError), Doctor(show=False) as doctor:
        print("words")
        raise ZeroDivisionError
    assert out.buffer.getvalue() == b"words\n"  # before the report
    assert isinstance(doctor.error, ZeroDivisionError) and doctor.findings == []


def test_a_check_that_fails_does_not_end_the_program(monkeypatch):
    class Broken(Check):
        def backward_begins(self, loss, place):
            raise LookupError("here")

    monkeypatch.setattr(package.doctor, "all_checks", lambda: [Broken])
    with Doctor(show=False) as doctor:
        x = tinytorch.ones(2, requires_grad=True)
        x.sum().backward()
        x.sum().backward()
    assert len(doctor.notes) == 1 and "Broken.backward_begins failed: LookupError: here" in doctor.notes[0]
    assert doctor.watch.backwards == 2


def result(values, scores=None):
    return {"values": values, "places": ["p"] * len(values), "scores": scores or [None] * len(values)}


def test_judges():
    falls, stays = [1 - 0.04 * k for k in range(20)], [1.0 + 0.01 * (k % 2) for k in range(20)]
    assert "0.3" in judging.judged("learns_better", result(stays), result(falls), "with x")
    assert not judging.judged("learns_better", result(falls), result(stays), "with x")
    assert not judging.judged("learns_better", result(falls), result(falls), "with x")
    assert not judging.judged("learns_better", result(falls), None, "with x")
    assert judging.judged("fits", result(stays), result(falls), "with x")
    broken = [1.0, math.nan]
    assert "finite" in judging.judged("finite", result(broken), result([1.0, 2.0]), "with x")
    assert not judging.judged("finite", result([1.0, 2.0]), result([1.0, 2.0]), "with x")
    assert not judging.judged("finite", result(broken), result(broken), "with x")
    good, poor = [("accuracy", 0.9)] * 20, [("accuracy", 0.5)] * 20
    assert "90.0%" in judging.judged("scores_better", result(stays, poor), result(stays, good), "with x")
    assert not judging.judged("scores_better", result(stays, good), result(stays, poor), "with x")
    slightly = [0.9 * x for x in stays]
    assert not judging.judged("learns_better", result(stays), result(slightly), "with x")
    assert "in 100% of the last 10" in judging.judged("learns_better", result(stays), result(slightly), "with x", True)
    assert not judging.judged("learns_better", result(slightly), result(stays), "with x", True)
    down = [-(2.0**k) for k in range(20)]
    assert judging.judged("bounded", result(down), result(falls), "with x")
    assert not judging.judged("bounded", result(down), result(down), "with x")
    up = [1 + k for k in range(20)]
    assert judging.judged("flips", result(up), result(falls), "with x")
    assert not judging.judged("flips", result(falls), result(falls), "with x")


@needs_fork
def test_a_probe_changes_nothing_here():
    from tinytorch.inspect.doctor.replay import Replay

    replay = Replay(lambda order: None)
    if replay.hindrance():
        pytest.skip(replay.hindrance())
    numbers: list[int] = []
    state = random.getstate()
    replay.probe(lambda: numbers.append(1))
    state = random.getstate()
    assert numbers == [] and random.getstate() == state
    random.setstate(state)
    expected = random.random()
    random.setstate(state)
    assert replay.probe(random.random) == expected
    assert replay.probe(lambda: 1 / 0) is None
    replay.close()
