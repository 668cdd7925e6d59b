"""The quickstart program: its losses are PyTorch's, its files survive interruptions, and mistakes are reported."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import tinytorch
import train_fashion_mnist
from tests.distributed import needs_mpi
from tests.oracle import needs_oracle, torch
from tinytorch.data import drawn

SCRIPT = Path(train_fashion_mnist.__file__)
DATA = os.environ.get("TINYTORCH_DATA", "")
needs_data = pytest.mark.skipif(
    not os.path.isdir(os.path.join(DATA, "FashionMNIST", "raw")),
    reason="TINYTORCH_DATA does not name a folder with FashionMNIST",
)
TRAINING, TEST = 640, 100  # images of the small data


def write_idx(path, array):
    head = np.array([0x0800 + array.ndim, *array.shape], ">u4").tobytes()
    path.write_bytes(head + array.tobytes())


def write_data(folder):
    """Write a FashionMNIST of few images that are easy to classify: each class has another bright row."""
    raw = folder / "FashionMNIST" / "raw"
    raw.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for prefix, n in ("train", TRAINING), ("t10k", TEST):
        labels = rng.integers(0, 10, n, dtype=np.uint8)
        pictures = rng.integers(0, 50, (n, 28, 28), dtype=np.uint8)
        pictures[np.arange(n), 2 * labels + 4] = 255
        write_idx(raw / f"{prefix}-images-idx3-ubyte", pictures)
        write_idx(raw / f"{prefix}-labels-idx1-ubyte", labels)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    write_data(folder)
    return str(folder)


@pytest.fixture
def train(data, tmp_path, monkeypatch, capsys):
    """Return a function that runs the program in an empty folder, and returns its output."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments, folder=data):
        capsys.readouterr()
        train_fashion_mnist.main(["--data", str(folder), "--no-progress", *map(str, arguments)])
        return capsys.readouterr().out

    return run


@pytest.fixture
def fails(train, capsys):
    """Return a function that runs the program with invalid arguments, and returns its error message."""

    def run(*arguments, **options):
        with pytest.raises(SystemExit) as caught:
            train(*arguments, **options)
        assert caught.value.code == 2
        said = capsys.readouterr().err
        assert "Traceback" not in said
        return said

    return run


def losses(output):
    return [float(value) for value in re.findall(r"^loss: (\S+)", output, re.MULTILINE)]


def evaluations(output):
    found = re.findall(r"Accuracy: ([\d.]+)%, Avg loss: ([\d.]+)", output)
    return [(float(accuracy), float(loss)) for accuracy, loss in found]


def test_a_folder_that_cannot_be_written(train, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    monkeypatch.setattr(train_fashion_mnist.tempfile, "mkdtemp", lambda prefix: str(tmp_path))
    assert f"Saved model state to {tmp_path / 'model.pth'}\n" in train("--epochs", "1")


@needs_data
def test_losses_are_pytorchs_on_the_real_data(train):
    output = train("--epochs", 1, folder=DATA)
    expected = [2.305311, 2.298351, 2.277986, 2.275867, 2.254384, 2.230112, 2.230498, 2.198090, 2.203434, 2.172683]
    np.testing.assert_allclose(losses(output), expected, atol=2e-5, rtol=0)
    ((accuracy, loss),) = evaluations(output)
    assert accuracy == 49.5 and abs(loss - 2.162513) < 2e-5
    assert 'Predicted: "Ankle boot", Actual: "Ankle boot"' in output


@needs_oracle
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_losses_are_pytorchs(train, data, momentum):
    """The same model in PyTorch, trained on the bytes of the files, has the same losses in each epoch."""
    batch = 32
    options = ["--lr", 0.01, "--momentum", momentum, "--batch-size", batch, "--seed", 3]
    output = train("--epochs", 3, *options)

    raw = Path(data) / "FashionMNIST" / "raw"

    def read(name, head, shape):
        array = np.frombuffer(raw.joinpath(name).read_bytes()[head:], np.uint8).reshape(shape)
        return torch.from_numpy(array.copy())

    X, y = (read("train-images-idx3-ubyte", 16, (-1, 784)) / 255, read("train-labels-idx1-ubyte", 8, -1))
    X_test, y_test = (read("t10k-images-idx3-ubyte", 16, (-1, 784)) / 255, read("t10k-labels-idx1-ubyte", 8, -1))
    torch.manual_seed(3)
    model = torch.nn.Sequential(
        torch.nn.Linear(784, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10)
    )
    loss_fn = torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=momentum)
    expected, expected_tests = [], []
    for _ in range(3):
        for i, (a, b) in enumerate(zip(X.split(batch), y.long().split(batch), strict=True)):
            optimizer.zero_grad()
            loss = loss_fn(model(a), b)
            loss.backward()
            optimizer.step()
            if i % 100 == 0:
                expected.append(loss.item())
        with torch.no_grad():
            right = (model(X_test).argmax(1) == y_test).double().mean().item()
            batches = zip(X_test.split(batch), y_test.long().split(batch), strict=True)
            mean = np.mean([loss_fn(model(a), b).item() for a, b in batches])
        expected_tests.append((100 * right, mean))
    np.testing.assert_allclose(losses(output), expected, atol=2e-5, rtol=0)
    np.testing.assert_allclose(evaluations(output), expected_tests, atol=6e-5, rtol=0)


def test_what_is_printed(train):
    output = train("--epochs", 2, "--lr", 0.1)
    network = repr(train_fashion_mnist.NeuralNetwork())
    assert output.startswith(f"Using cpu device\n{network}\nEpoch 1\n{'-' * 31}\nloss: ")
    assert network.startswith("NeuralNetwork(\n  (flatten): Flatten(start_dim=1, end_dim=-1)\n  (linear_relu_stack): ")
    assert re.search(
        r"\nloss: \d\.\d{6}  \[   64/  640\]\n"
        r"Test Error: \n Accuracy: \d+\.\d%, Avg loss: \d\.\d{6} \n\nEpoch 2\n-{31}\n",
        output,
    )
    assert "\nDone!\nSaved model state to model.pth\n" in output
    predictions = re.findall(r'^Predicted: "(.+)", Actual: "(.+)"$', output, re.MULTILINE)
    assert len(predictions) == 10
    assert {name for pair in predictions for name in pair} <= set(tinytorch.data.FashionMNIST.classes)


def test_it_learns(train):
    output = train("--epochs", 12, "--lr", 0.03)
    (first, *_, last) = evaluations(output)
    assert last[0] > 95 > first[0]


def test_evaluate_gives_what_training_ended_with(train):
    end = train("--epochs", 2, "--lr", 0.1, "--save", "mine.pth").partition("Epoch 2")[2]
    output = train("--evaluate", "mine.pth")
    assert evaluations(output) == evaluations(end)
    assert re.findall("Predicted.*", output) == re.findall("Predicted.*", end) and losses(output) == []
    assert sorted(os.listdir()) == ["mine.checkpoint.pth", "mine.pth"]


def test_resume_goes_on_as_if_it_had_not_stopped(train):
    options = ["--lr", 0.05, "--momentum", 0.9]
    whole = train("--epochs", 3, *options, "--save", "whole.pth")
    train("--epochs", 1, *options, "--save", "part.pth")
    rest = train("--epochs", 3, *options, "--save", "rest.pth", "--resume", "part.checkpoint.pth")
    assert "Resuming after epoch 1\nEpoch 2\n" in rest and losses(rest) == losses(whole)[1:]
    assert evaluations(rest) == evaluations(whole)[1:]
    one, other = tinytorch.load("whole.pth"), tinytorch.load("rest.pth")
    assert all(tinytorch.equal(one[name], other[name]) for name in one)


@needs_mpi
def test_several_processes(data, tmp_path):
    """Several processes compute what one process computes; only the first one prints and saves."""
    outputs = []
    for processes in (1, 2):
        (tmp_path / str(processes)).mkdir()
        command = [sys.executable, "-m", "tinytorch.distributed.run", "--nproc-per-node", str(processes), str(SCRIPT)]
        arguments = ["--data", data, "--epochs", "2", "--lr", "0.1", "--momentum", "0.5", "--no-progress"]
        environment = {**os.environ, "PYTHONPATH": str(SCRIPT.parent)}
        ran = subprocess.run(
            [*command, *arguments], cwd=tmp_path / str(processes), env=environment, capture_output=True, text=True
        )
        assert ran.returncode == 0, ran.stderr
        outputs.append(ran.stdout)
    one, two = outputs
    assert re.sub(r"[\d.]+", "", one) == re.sub(r"[\d.]+", "", two) and "Epoch 2" in two
    assert losses(two) == pytest.approx(losses(one), abs=1e-4)
    models = [tinytorch.load(tmp_path / str(n) / "model.pth") for n in (1, 2)]
    for name, value in models[0].items():
        np.testing.assert_allclose(models[1][name].numpy(), value.numpy(), atol=1e-4)
    odd = subprocess.run(
        [*command, *arguments, "--batch-size", "63"], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert odd.returncode and "cannot use these settings: 2 processes cannot share a batch of 63" in odd.stderr


@needs_oracle
def test_pytorch_loads_the_model(train):
    train("--epochs", 1, "--lr", 0.1)
    state = torch.load("model.pth", weights_only=True)
    assert list(state) == [f"linear_relu_stack.{i}.{n}" for i in (0, 2, 4) for n in ("weight", "bias")]
    ours = tinytorch.load("model.pth")
    assert all(np.array_equal(ours[name].numpy(), state[name].numpy()) for name in state)


@needs_oracle
def test_data_through_torchvision(train, monkeypatch):
    from benchmarks.quickstart_torch import load_torchvision

    load_torchvision()
    output = train("--epochs", 1, "--torchvision")
    assert losses(output) == losses(train("--epochs", 1))
    assert evaluations(output) == evaluations(train("--evaluate", "model.pth", "--torchvision"))


@pytest.mark.parametrize("installed", [True, False])
def test_data_through_torchvision_without_pytorch(train, data, installed):
    if installed and find_spec("torchvision") is None:
        pytest.skip("torchvision is not installed")
    program = f"""
import runpy, sys
from importlib.machinery import PathFinder
plain, hidden = PathFinder.find_spec, {set() if installed else {"torchvision", "PIL"}}
PathFinder.find_spec = lambda name, *more: None if name.partition(".")[0] in hidden else plain(name, *more)
runpy.run_path({str(SCRIPT)!r})["main"]()
import tinytorch
assert sys.modules["torch"] is tinytorch
assert (sys.modules["torchvision"] is sys.modules.get("tinytorch.torchvision")) is not {installed}
"""
    expected = train("--epochs", 1)
    options = ["--data", data, "--epochs", "1", "--torchvision", "--no-progress"]
    known = {**os.environ, "PYTHONPATH": str(SCRIPT.parent)}
    done = subprocess.run([sys.executable, "-c", program, *options], capture_output=True, text=True, env=known)
    assert done.returncode == 0, done.stderr
    assert losses(done.stdout) == losses(expected) and evaluations(done.stdout) == evaluations(expected)


def test_files_that_are_no_models(fails):
    Path("words.pth").write_text("no model at all")
    assert "cannot load the model 'words.pth': " in fails("--evaluate", "words.pth")
    tinytorch.save(tinytorch.nn.Linear(3, 2).state_dict(), "other.pth")
    said = fails("--evaluate", "other.pth")
    assert "Missing key(s)" in said and "Unexpected key(s)" in said
    tinytorch.save(train_fashion_mnist.NeuralNetwork().state_dict(), "model.pth")
    assert "cannot resume from 'model.pth': this is no checkpoint" in fails("--resume", "model.pth")


@pytest.mark.parametrize(("options", "words"), [
    ("--batch-size 0", "batch_size"), ("--lr -1", "Invalid learning rate: -1.0"),
    ("--momentum -1", "Invalid momentum value: -1.0"), ("--epochs -1", "--epochs should not be negative"),
    ("--epochs many", "invalid int value: 'many'"), ("--device quantum", "cannot use --device quantum: "),
    ("--dataset photographed", "invalid choice: 'photographed'"), ("--speed 11", "unrecognized arguments"),
    ("--dataset drawn --torchvision", "--torchvision: not allowed with --dataset drawn"),
])  # fmt: skip
def test_settings_that_cannot_be(fails, options, words):
    assert words in fails(*options.split())


def test_damaged_data(fails, tmp_path):
    folder = tmp_path / "damaged"
    write_data(folder)
    pictures = folder / "FashionMNIST" / "raw" / "train-images-idx3-ubyte"
    pictures.write_bytes(pictures.read_bytes()[:-100])
    said = fails(folder=folder)
    assert "cannot read the data in " in said and "train-images-idx3-ubyte" in said


NOTICE = tinytorch.data.DrawnFashion.notice


@pytest.fixture
def alone(monkeypatch):
    """Make all mirrors unreachable, and generate only a few images."""
    monkeypatch.setattr(tinytorch.data.FashionMNIST, "mirrors", ("http://127.0.0.1:9/",))
    monkeypatch.setattr(drawn, "TRAINING", TRAINING)
    monkeypatch.setattr(drawn, "TEST", TEST)


@pytest.mark.parametrize("dataset", ["auto", "drawn"])
def test_drawn_pictures(train, alone, tmp_path, dataset):
    """The program works as with FashionMNIST, except for notices at the beginning and the end."""
    options = ["--dataset", dataset]
    output = train("--epochs", 2, "--lr", 0.1, *options, folder="data")
    assert output.startswith(f"{NOTICE}\nUsing cpu device\n") and output.endswith(f'"\n{NOTICE}\n')
    assert len(evaluations(output)) == 2
    assert sorted(os.listdir()) == ["data", "model.checkpoint.pth", "model.pth"]
    again = train("--evaluate", "model.pth", *options, folder="data")
    assert again.startswith(f"{NOTICE}\nUsing cpu device\n") and again.endswith(f'"\n{NOTICE}\n')
    assert evaluations(again) == evaluations(output)[1:]
    assert re.findall("Predicted.*", again) == re.findall("Predicted.*", output)
    rest = train("--epochs", 3, "--resume", "model.checkpoint.pth", *options, folder="data")
    assert "Resuming after epoch 2\nEpoch 3\n" in rest and rest.count(NOTICE) == 2


def test_why_they_are_drawn(train, alone, capsys):
    train_fashion_mnist.main(["--data", "data", "--no-progress", "--epochs", "0"])
    said = "Error downloading train-images-idx3-ubyte.gz: Connection refused\n"
    assert capsys.readouterr().err.startswith(f"{said}Pictures of clothes are drawn")
    train_fashion_mnist.main(["--data", "data", "--no-progress", "--epochs", "0"])
    assert capsys.readouterr().err == f"{said}Drawn pictures of clothes are used, instead of FashionMNIST.\n"
    Path("file").write_text("no folder")
    assert train("--epochs", 0, folder="file/data").startswith(NOTICE)
    assert NOTICE not in train("--epochs", 0)  # (there are data on disk)
    assert NOTICE not in train("--epochs", 0, "--dataset", "fashion")


def test_fashion_mnist_insisted_on(fails, alone, tmp_path):
    said = fails("--dataset", "fashion", folder="data")
    assert said == (
        "train_fashion_mnist.py: cannot read the data in 'data': "
        "Error downloading train-images-idx3-ubyte.gz: Connection refused\n"
    )
    assert os.listdir() == []


def test_the_task_is_neither_easy_nor_hopeless(tmp_path, monkeypatch, capsys):
    """The accuracy of the quickstart model is 60 to 90 %, and that of a linear model is clearly lower."""
    monkeypatch.chdir(tmp_path)
    options = ["--data", "data", "--dataset", "drawn", "--no-progress"]
    train_fashion_mnist.main(options)
    output = capsys.readouterr().out
    epochs = np.reshape(losses(output), (5, 10)).mean(axis=1)
    assert np.all(np.diff(epochs) < 0) and 60 <= evaluations(output)[-1][0] <= 90

    class Linear(train_fashion_mnist.NeuralNetwork):
        def __init__(self):
            super().__init__()
            self.linear_relu_stack = tinytorch.nn.Linear(28 * 28, 10)

    monkeypatch.setattr(train_fashion_mnist, "NeuralNetwork", Linear)
    train_fashion_mnist.main(options)
    assert evaluations(capsys.readouterr().out)[-1][0] < 55


def start(folder, *arguments, **options):
    command = [sys.executable, "-u", str(SCRIPT), *arguments]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True, **options)


def read_until(process, words):
    for line in process.stdout:
        if words in line:
            return
    pytest.fail(f"ended with {process.wait()} before it printed {words!r}")


def test_interrupted(data, tmp_path):
    """Ctrl-C during training: status 130, the progress bar is removed, no traceback, and the files are unchanged."""
    tinytorch.save(train_fashion_mnist.NeuralNetwork().state_dict(), tmp_path / "model.pth")
    before = (tmp_path / "model.pth").read_bytes()

    import pty
    import termios

    terminal, its_end = pty.openpty()  # standard error is a terminal, so that a bar is shown
    termios.tcsetwinsize(its_end, (24, 80))
    process = start(tmp_path, "--data", data, "--epochs", "100000", stderr=its_end)
    os.close(its_end)
    try:
        read_until(process, "Epoch 3")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    finally:
        process.kill()
    shown = b""
    while True:
        try:
            chunk = os.read(terminal, 65536)
        except OSError:  # raised when the other side of the terminal is closed
            break
        if not chunk:
            break
        shown += chunk
    os.close(terminal)
    shown = shown.decode()
    assert process.returncode == 130 and "batch" in shown and "accuracy=" in shown
    # The last line of the bar is erased before the message.
    assert re.search(r"\r *\r[\r\n]*Interrupted\. [^\r\n]*\r\n$", shown) and "Traceback" not in shown

    assert (tmp_path / "model.pth").read_bytes() == before
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"model.pth", "model.checkpoint.pth"}  # no temporary files
    checkpoint = tinytorch.load(tmp_path / "model.checkpoint.pth")
    assert checkpoint["epoch"] >= 2


def test_statuses_of_the_process(data, tmp_path):
    process = start(tmp_path, "--data", data, "--epochs", "1", stderr=subprocess.PIPE)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    assert len(errors.splitlines()) == 1 and "10/10 batch" in errors  # a line, and no bar, without a terminal
    assert output.endswith('"\n')
    process = start(tmp_path, "--data", data, "--evaluate", "none.pth", stderr=subprocess.PIPE)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert errors.startswith("train_fashion_mnist.py: cannot load the model 'none.pth'")


def test_without_a_network(tmp_path):
    """Run it as users do, in an empty folder, with a proxy that does not exist in place of the network."""
    proxy = dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9")
    environment = {**os.environ, **proxy, "no_proxy": "", "TINYTORCH_DATA": "data"}
    process = start(tmp_path, "--epochs", "1", stderr=subprocess.PIPE, env=environment)
    output, errors = process.communicate(timeout=600)
    assert process.returncode == 0 and output.startswith(NOTICE) and output.endswith(f"{NOTICE}\n")
    first, _, _ = errors.splitlines()  # why, what is drawn, and the epoch
    assert first.startswith("Error downloading train-images-idx3-ubyte.gz: ") and len(first) <= 100
    assert sorted(os.listdir(tmp_path)) == ["data", "model.checkpoint.pth", "model.pth"]


def test_the_plot_has_the_curves_of_all_epochs(train, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    plotted = []
    original = tinytorch.inspect.plot_classifier
    monkeypatch.setattr(tinytorch.inspect, "plot_classifier", lambda *args: plotted.append(args) or original(*args))
    output = train("--epochs", 2, "--lr", 0.1)
    output += train("--epochs", 3, "--lr", 0.1, "--resume", "model.checkpoint.pth", "--plot", "curves.png")
    assert output.count("Plotted curves.png") == 1 and Path("curves.png").read_bytes()[:4] == b"\x89PNG"
    ((images, scores, targets, classes, history),) = plotted
    assert images.shape == (TEST, 1, 28, 28) and scores.shape == (TEST, 10) and len(classes) == 10
    assert {name: len(values) for name, values in history.items()} == dict.fromkeys(train_fashion_mnist.FIGURES, 3)
    printed = evaluations(output)
    assert [100 * value for value in history["test accuracy"]] == pytest.approx([value for value, _ in printed])
    assert history["test loss"] == pytest.approx([value for _, value in printed], abs=1e-5)
    right = (scores.argmax(1) == targets).float().mean().item()
    assert right == pytest.approx(history["test accuracy"][-1])

    train("--evaluate", "model.pth", "--plot", "only.svg")
    assert "<svg" in Path("only.svg").read_text("utf-8") and plotted[-1][-1] == {}


def test_a_plot_that_cannot_be_made_is_noticed_before_training(fails, monkeypatch):
    pytest.importorskip("matplotlib")
    assert "cannot plot to 'curves.abc': a plot is saved as .png" in fails("--plot", "curves.abc")
    assert "No such file or directory" in fails("--plot", "none/curves.png")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "plots need matplotlib (the extra `plot`): pip install matplotlib" in fails("--plot", "curves.png")
    assert not any(Path().iterdir())


def test_a_line_per_epoch_where_no_bar_is_shown(data, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    train_fashion_mnist.main(["--data", data, "--epochs", "2"])
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert all(re.fullmatch(r"10/10 batch in \d\d:\d\d, .*batch/s, accuracy=.*%, loss=.*", line) for line in lines)
