"""The playground without a browser: its Python part run natively, its examples, its files and its links."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from io import BytesIO
from itertools import groupby
from pathlib import Path

import pytest

from scripts.website.executed import steps
from scripts.website.playground import files, runtime
from tests.website.serving import needs_pyodide, pyodide

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")
ROOT = files.ROOT
RUN_JS = ROOT / "scripts" / "website" / "theme" / "assets" / "run.js"

#: Runs programs in a process of its own, since there `torch` means tinytorch afterwards.
DRIVER = """
import json, sys
from scripts.website.playground.runtime import Runtime
folder, *programs = json.load(sys.stdin)
messages, results = [], []
def post(message, data):
    messages.append({**json.loads(message), "bytes": None if data is None else len(data)})
runtime = Runtime(post, folder)
for program in programs:
    messages.clear()
    right, line = runtime.run(program, 60)
    results.append({"right": right, "line": line, "messages": list(messages)})
print(json.dumps(results))
"""


class Outcome:
    """What a program gave to the page."""

    def __init__(self, right, line, messages):
        self.right, self.line, self.messages = right, line, messages

    def of(self, kind):
        return [each for each in self.messages if each["kind"] == kind]

    def text(self, *streams):
        return "".join(each["text"] for each in self.of("output") if not streams or each["stream"] in streams)

    def curves(self):
        found = {}
        for each in self.of("points"):
            for name, points in each["curves"].items():
                found.setdefault(name, []).extend(points)
        return found


def outcomes(folder, *programs):
    """Run programs one after the other, as the worker does."""
    run = subprocess.run(
        [sys.executable, "-c", DRIVER],
        input=json.dumps([str(folder), *programs]),
        capture_output=True, text=True, cwd=ROOT, timeout=200,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    return [Outcome(**each) for each in json.loads(run.stdout.splitlines()[-1])]


# The Python part ---------------------------------------------------------------------------------

TRAINING = """
import torch
from torch import nn
from tqdm import tqdm

model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in tqdm(range(20)):
    loss = (model(torch.ones(4, 2)) - 3).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(torch.__name__, loss.item() < 0.01)
torch.save(model.state_dict(), "model.pth")
model.weight
"""

OTHER_CURVES = """
import math
import torch
from torch.utils.tensorboard import SummaryWriter

with SummaryWriter("runs/1") as writer:
    for step in range(3):
        writer.add_scalar("accuracy", torch.tensor(0.5), 10 * step)
        writer.add_scalars("rate", {"first": math.nan}, step)
        x = torch.ones(1, requires_grad=True)
        y = torch.ones(2, requires_grad=True)
        critic = 2 * x
        critic.backward()
        torch.autograd.backward(y.sum())
        y.backward(torch.ones(2))
writer.add_histogram("weights", y, 0)
"""

TWO_LOSSES = """
import torch

def step(loss):
    loss.backward()

x = torch.ones(1, requires_grad=True)
for k in range(3):
    step(2 * x)
    step(3 * x)
other = x * 4
other.backward()
for k in range(2):
    other = x * 5
    other.backward()
"""

ERRORS = """
import torch
from torch import nn

def forward():
    return nn.Sequential(nn.Linear(2, 3))(torch.ones(4, 5))

forward()
"""

SESSION = """>>> import torch
>>> x = torch.ones(2)
>>> x
tensor([1., 1.])
>>> x @ torch.ones(3)
Traceback (most recent call last):
RuntimeError: inconsistent tensor size
>>> for i in range(2):
...     print(i)
0
1
>>> y
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """Return the outcomes of some programs by their names, all run by one runtime."""
    programs = {
        "training": TRAINING,
        "again": TRAINING,
        "curves": OTHER_CURVES,
        "two": TWO_LOSSES,
        "error": ERRORS,
        "syntax": "x = 1\ny = (\n",
        "session": SESSION,
        "stopped": "print('before', end='')\nraise KeyboardInterrupt\n",
        "left": "import sys\nsys.exit('cannot read')\n",
        "left well": "import sys, torch\ntorch.set_default_dtype(torch.float64)\nsys.exit()\n",
        "fresh": "import sys, torch\nprint(torch.ones(1).dtype, 'model' in globals(), sys.argv)\n"
        "print(*torch.load('model.pth'))\n",
        "flood": "for k in range(20_000):\n    print(k)\n",
        "bar": "import sys\nsys.stderr.write('\\r 50%')\nsys.stderr.flush()\nprint('x', end=' ')\nprint(input())\n",
        "quiet": "import torch\ntorch.ones(2);\n",
        "pickled": "import torch\nclass Net(torch.nn.Module):\n    pass\n\ntorch.save(Net(), 'runs/net.pth')\n"
        "torch.load('runs/net.pth', weights_only=False)",
    }
    folder = tmp_path_factory.mktemp("home")
    (folder / "runs").mkdir()
    return dict(zip(programs, outcomes(folder, *programs.values()), strict=True))


def test_a_training_prints_draws_and_saves(ran):
    outcome = ran["training"]
    assert (outcome.right, outcome.line) == (True, 0)
    assert outcome.text("stdout") == "torch True\n"
    assert "\r100%|" in outcome.text("stderr") and "Warning" not in outcome.text("stderr")
    (points,) = [outcome.curves()["loss"]]
    assert [x for x, _ in points] == list(range(1, 21)) and points[-1][1] < 0.01 < points[0][1]
    (file,) = outcome.of("file")
    assert file["name"] == "model.pth" and file["size"] == file["bytes"] > 500
    (shown,) = outcome.of("display")
    assert "Parameter" in shown["html"] and "<div" in shown["html"]


def test_a_program_gives_the_same_each_time(ran):
    assert ran["again"].curves() == ran["training"].curves()
    assert len(ran["again"].of("file")) == 1  # it was written again


def test_curves_have_the_names_of_their_losses_and_of_scalars(ran):
    outcome = ran["curves"]
    curves = outcome.curves()
    assert curves.pop("accuracy") == [[0, 0.5], [10, 0.5], [20, 0.5]]
    assert curves.pop("critic") == [[1, 2.0], [2, 2.0], [3, 2.0]]
    assert curves.pop("rate/first") == [[0, None], [1, None], [2, None]]
    assert curves.pop("y") == [[1, 2.0], [2, 2.0], [3, 2.0]]
    assert not curves
    assert not outcome.right
    assert "NotImplementedError: SummaryWriter.add_histogram: the playground draws scalars" in outcome.text("stderr")


def test_a_function_that_takes_steps_for_two_losses_draws_two_curves(ran):
    curves = ran["two"].curves()
    assert {name: [y for _, y in points] for name, points in curves.items()} == {
        "loss": [2.0] * 3, "loss (line 10)": [3.0] * 3, "other": [4.0], "other (line 15)": [5.0] * 2,
    }  # fmt: skip


def test_an_error_is_shown_with_its_notes_and_its_line(ran):
    outcome = ran["error"]
    assert (outcome.right, outcome.line) == (False, 6)
    text = outcome.text("stderr")
    assert "in 0: Linear(in_features=2" in text and "remedy: nn.Linear(5, 3)" in text
    assert "runtime.py" not in text and text.count("  File ") == 2
    assert (ran["syntax"].right, ran["syntax"].line) == (False, 2)
    assert "SyntaxError: '(' was never closed" in ran["syntax"].text("stderr")


def test_a_session_goes_on_after_an_error(ran):
    outcome = ran["session"]
    assert (outcome.right, outcome.line) == (False, 12)
    streams = [each["stream"] for each in outcome.of("output")]
    assert [name for name, _ in groupby(streams)] == ["prompt", "stdout", "prompt", "stderr"] * 2
    assert outcome.text("stdout") == "tensor([1., 1.])\n0\n1\n"
    assert ">>> for i in range(2):\n...     print(i)\n" in outcome.text("prompt")
    assert "RuntimeError: inconsistent tensor size" in outcome.text("stderr")
    assert "NameError: name 'y' is not defined" in outcome.text("stderr")


def test_a_program_may_be_stopped_or_leave(ran):
    assert (ran["stopped"].right, ran["stopped"].text()) == (False, "before\nStopped.\n")
    assert (ran["left"].right, ran["left"].text()) == (False, "cannot read\n")
    assert (ran["left well"].right, ran["left well"].text()) == (True, "")


def test_each_program_is_a_new_one_in_the_same_folder(ran):
    text = ran["fresh"].text("stdout")
    assert text == "torch.float32 False ['program.py']\nweight bias\n"


def test_a_flood_of_output_is_posted_in_few_messages(ran):
    outcome = ran["flood"]
    assert len(outcome.messages) < 400
    assert outcome.text() == "".join(f"{k}\n" for k in range(20_000))


def test_a_text_is_shown_when_its_line_ends_or_when_it_is_flushed(ran):
    outcome = ran["bar"]
    assert outcome.of("output")[0] == {"kind": "output", "stream": "stderr", "text": "\r 50%", "bytes": None}
    assert outcome.text("stdout") == "x " and "EOFError" in outcome.text("stderr")
    assert not ran["quiet"].messages


def test_classes_of_a_program_can_be_saved(ran):
    outcome = ran["pickled"]
    assert outcome.right and outcome.text() == "Net()\n"
    assert [each["name"] for each in outcome.of("file")] == ["runs/net.pth"]


def test_figures_are_shown(tmp_path):
    pytest.importorskip("matplotlib")
    program = "from matplotlib import pyplot as plt\nplt.plot([1, 2])\nplt.show()\nprint('then')\nplt.plot([2, 1]);"
    curves = "from tinytorch import inspect\ninspect.plot_curves({'loss': [2.0, 1.0]})"
    shown, value = outcomes(tmp_path, program, curves)
    assert [each["kind"] for each in shown.messages] == ["display", "output", "display"]
    assert all(each["svg"].startswith("<svg") for each in shown.of("display") + value.of("display"))
    assert value.right and not value.text()


def test_large_files_are_named_without_their_bytes(tmp_path):
    program = "from scripts.website.playground import runtime\nruntime.LARGEST = 10\n"
    program += "with open('a.bin', 'wb') as file:\n    file.write(bytes(11))\n"
    (outcome,) = outcomes(tmp_path, program)
    assert [(each["size"], each["bytes"]) for each in outcome.of("file")] == [(11, None)]


# The files ---------------------------------------------------------------------------------------


def test_examples_run(tmp_path):
    examples = {each["title"]: each["code"] for each in files.examples()}
    drawn = examples["FashionMNIST, drawn"]
    assert drawn.count("sys.argv[1:] = ") == 1
    fewer = "from tinytorch.data import drawn\n\ndrawn.TRAINING, drawn.TEST = 640, 320\n"
    begin = 'if __name__ == "__main__":'
    examples["FashionMNIST, drawn"] = drawn.replace(begin, f"{fewer}\n{begin}")
    examples = {title: re.sub(r'"--steps", "\d+"', '"--steps", "20"', code) for title, code in examples.items()}
    found = dict(zip(examples, outcomes(tmp_path, *examples.values()), strict=True))
    note = found.pop("An error and its note")
    assert note.line and "remedy: nn.Linear(1352, 16)" in note.text("stderr")
    for title, outcome in found.items():
        assert outcome.right, f"{title}: {outcome.text()}"
        assert max(map(len, outcome.curves().values())) >= 10, title
    assert {each["name"] for each in found["FashionMNIST, drawn"].of("file")} == {"model.pth", "model.checkpoint.pth"}
    assert "epoch 12: loss 0.2" in found["Quickstart"].text("stdout")
    assert found["Two spirals"].text() == "tensor(1.)\n"


@pytest.mark.parametrize("page", [*(ROOT / "docs").rglob("*.md")], ids=lambda page: page.stem)
def test_buttons_of_a_page(page):
    text = page.read_text("utf-8")
    marked, parts = files.with_buttons(text)
    runnable = [step for step in steps(text) if step.kind == "run"]
    names = re.findall(r"^ *``` \{ \.python \.(run(?:-\d+)?) \}$", marked, re.MULTILINE)
    assert names.count("run") == sum(step.kind == "raises" for step in steps(text))
    assert [parts[int(name[4:])] for name in names if name != "run"] == [step.text for step in runnable]
    compile("\n\n".join(parts), page.name, "exec")


def test_the_places_are_in_one_file():
    config = json.loads((files.FOLDER / "config.json").read_text("utf-8"))
    assert config["pyodide"].endswith("/")
    made = files.written()
    for archive in config["archives"]:
        assert zipfile.ZipFile(BytesIO(made[f"playground/{archive}"])).testzip() is None
    said = json.loads(made["playground/config.json"])
    assert said["kernels"] is None or f"playground/{said['kernels']}" in made
    wanted = {
        "x = 1\nimport matplotlib.pyplot as plt": ["matplotlib"], "from PIL import Image": ["pillow"],
        "figure = inspect.plot_curves(history)": ["matplotlib"], "inspect.plot_curves(history)": ["matplotlib"],
        "def f():\n    from scipy import x\n    inspect.plot_curves(history)\nno_plot = True": [],
    }  # fmt: skip
    for code, packages in wanted.items():
        assert packages == [name for name, p in config["optional"].items() if re.search(p, code, re.MULTILINE)]
    for each in files.examples():  # (their plots are not asked for)
        assert not any(re.search(p, each["code"], re.MULTILINE) for p in config["optional"].values())
    for name in ("page.md", "playground.js", "worker.js", "runtime.py", "playground.css"):
        addresses = re.findall(r"https?://[^\s\"')]+", (files.FOLDER / name).read_text("utf-8"))
        assert set(addresses) <= {"http://localhost:8000/playground.html."}, name
    assert "http" not in RUN_JS.read_text("utf-8")


def test_kernels_that_were_built_are_a_part_of_the_site_unless_they_are_old(monkeypatch, tmp_path, caplog):
    library = tmp_path / "_native.abi3.so"
    monkeypatch.setattr(files, "KERNELS", library)
    monkeypatch.setattr(files, "ROOT", tmp_path)
    folder = tmp_path / "tinytorch" / "kernels" / "native"
    folder.mkdir(parents=True)
    (folder / "sums.c").write_text("")
    assert files.configuration()["kernels"] is None
    library.write_bytes(b"wasm")
    os.utime(folder / "sums.c", (10, 10))
    assert files.configuration()["kernels"] == "_native.abi3.so" and not caplog.records
    os.utime(library, (5, 5))
    assert files.configuration()["kernels"] is None and "is older than its sources" in caplog.text


def test_the_archives_are_all_that_tinytorch_needs_besides_numpy(tmp_path):
    made = files.written()
    for name in ("tinytorch.zip", "tqdm.zip"):
        zipfile.ZipFile(BytesIO(made[f"playground/{name}"])).extractall(tmp_path)
    import numpy

    (tmp_path / "numpy").symlink_to(Path(numpy.__file__).parent)
    libraries = Path(numpy.__file__).parent.with_name("numpy.libs")
    if libraries.exists():
        (tmp_path / "numpy.libs").symlink_to(libraries)
    (tmp_path / "playground_runtime.py").write_text(made["playground/runtime.py"])
    program = f"""
import sys
sys.path = [{str(tmp_path)!r}, *(path for path in sys.path if "site-packages" not in path)]
import playground_runtime
def post(message, data):
    print(message, file=sys.__stdout__)
runtime = playground_runtime.Runtime(post, {str(tmp_path / "home")!r})
runtime.warm()
assert runtime.run("import torch\\nprint(torch.quasirandom.SobolEngine(2).draw(1))")[0]
assert runtime.run("import torchvision, functorch")[0]
import tinytorch, tqdm
print(tinytorch.__file__, tqdm.__file__)
"""
    command = [sys.executable, "-S", "-E", "-c", program]
    run = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines()[-1] == f"{tmp_path / 'tinytorch/__init__.py'} {tmp_path / 'tqdm/__init__.py'}"


IN_NODE = """
import fs from "node:fs"
import {pathToFileURL} from "node:url"
const {folder, site, programs} = JSON.parse(fs.readFileSync(0, "utf8"))
const {loadPyodide} = await import(pathToFileURL(`${folder}/pyodide.mjs`))
const pyodide = await loadPyodide({indexURL: folder + "/"})
await pyodide.loadPackage("numpy", {messageCallback() {}})
const packages = pyodide.runPython("import sysconfig; sysconfig.get_path('purelib')")
for (const name of ["tinytorch.zip", "tqdm.zip"]) {
  pyodide.unpackArchive(new Uint8Array(fs.readFileSync(`${site}/${name}`)), "zip", {extractDir: packages})
}
pyodide.FS.writeFile(`${packages}/playground_runtime.py`, fs.readFileSync(`${site}/runtime.py`, "utf8"))
let messages = []
const post = (message, data) => messages.push({...JSON.parse(message), bytes: data ? data.toJs().length : null})
const runtime = pyodide.pyimport("playground_runtime").Runtime(post, "/playground")
runtime.warm()
const results = programs.map(program => {
  messages = []
  const [right, line] = runtime.run(program, 60).toJs()
  return {right, line, messages}
})
console.log(JSON.stringify(results))
"""


@needs_node
@needs_pyodide
def test_python_in_node_computes_what_it_computes_here(tmp_path):
    for name, content in files.written().items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
    (tmp_path / "run.mjs").write_text(IN_NODE)
    programs = [files.examples()[0]["code"], ERRORS]
    given = {"folder": str(pyodide()), "site": str(tmp_path / "playground"), "programs": programs}
    command = ["node", str(tmp_path / "run.mjs")]
    run = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, timeout=200)
    assert run.returncode == 0, run.stderr[-2000:]
    theirs = [Outcome(**each) for each in json.loads(run.stdout.splitlines()[-1])]
    (tmp_path / "home").mkdir()
    ours = outcomes(tmp_path / "home", *programs)
    assert theirs[0].right and theirs[0].text() == ours[0].text()
    (mine,), (other,) = ours[0].curves().values(), theirs[0].curves().values()
    assert [round(y, 3) for _, y in mine[:20]] == [round(y, 3) for _, y in other[:20]]
    assert [each["name"] for each in theirs[0].of("file")] == ["model.pth"]
    assert theirs[1].line == ours[1].line and "remedy: nn.Linear(5, 3)" in theirs[1].text("stderr")


# Links -------------------------------------------------------------------------------------------

LONG = "\n".join(f"x{k} = {k * k}" for k in range(2000))
PROGRAMS = ["", "x = 1\n", "print('\u00e4\u6f22\U0001f600')\n", TRAINING, LONG]


@needs_node
@pytest.mark.parametrize("path", [RUN_JS, *files.FOLDER.glob("*.js")], ids=lambda path: path.name)
def test_scripts_have_no_error_of_syntax(path):
    subprocess.run(["node", "--check", str(path)], check=True, timeout=60)


@needs_node
def test_a_link_holds_a_program():
    ours = [urlsafe_b64encode(zlib.compress(code.encode(), wbits=-15)).decode().rstrip("=") for code in PROGRAMS]
    damaged = ["", "#", "#code=", "#code=%%", f"#code={ours[3][:40]}", "#code=AAAA", "#other=abc", f"#code={ours[1]}&x"]
    script = f"""
require("vm").runInThisContext(require("fs").readFileSync({json.dumps(str(RUN_JS))}, "utf8"))
const {{programs, ours, damaged}} = JSON.parse(require("fs").readFileSync(0, "utf8"));
(async () => {{
  const links = await Promise.all(programs.map(programLink.encode))
  const back = await Promise.all(links.map(programLink.decode))
  const read = await Promise.all(ours.map(link => programLink.decode("#code=" + link)))
  const nothing = await Promise.all(damaged.map(programLink.decode))
  console.log(JSON.stringify({{links, back, read, nothing}}))
}})()
"""
    given = json.dumps({"programs": PROGRAMS, "ours": ours, "damaged": damaged})
    run = subprocess.run(["node", "-e", script], input=given, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    assert found["back"] == found["read"] == PROGRAMS
    assert found["nothing"] == [None] * len(damaged)
    for link, code in zip(found["links"], PROGRAMS, strict=True):
        assert re.fullmatch(r"#code=[\w-]+", link)
        text = link.removeprefix("#code=")
        assert zlib.decompress(urlsafe_b64decode(text + "=" * (-len(text) % 4)), wbits=-15).decode() == code
    assert len(found["links"][-1]) < len(PROGRAMS[-1])


def test_messages_are_json(tmp_path):
    said = []
    outlet = runtime.Outlet(lambda message, data: said.append(json.loads(message)), burst=2, rate=0.0)
    for k in range(5):
        outlet.write("stdout", f"{k}\n")
    outlet.write("stderr", "odd: \x00\u2028")
    outlet.point("loss", 1, float("inf"))
    outlet.flush()
    texts = [(each["stream"], each["text"]) for each in said if each["kind"] == "output"]
    assert texts == [("stdout", "0\n"), ("stdout", "1\n"), ("stdout", "2\n3\n4\n"), ("stderr", "odd: \x00\u2028")]
    assert [each["curves"] for each in said if each["kind"] == "points"] == [{"loss": [[1, None]]}]
