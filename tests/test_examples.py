"""The examples as programs: they learn, their losses are PyTorch's, and mistakes are reported."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest

import tinytorch
from benchmarks import models
from tests.distributed import needs_mpi
from tests.oracle import needs_oracle, torch
from tests.test_train_fashion_mnist import write_data
from tinytorch.data import drawn

SMALL = ["--points", "200", "--given", "50", "--width", "16", "--depth", "3", "--log-every", "1"]
EXAMPLES = models.EXAMPLES
pinn = models.load("pinn", "tinytorch")


def losses(output):
    return [float(loss) for loss in re.findall(r"^step +\d+  loss (\S+) ", output, re.MULTILINE)]


def relative_error(output):
    (error,) = re.findall(r"^Relative L2 error: (\d+\.\d+)$", output, re.MULTILINE)
    return float(error)


def start(folder, *arguments):
    """Start the program as users do."""
    return subprocess.Popen(
        [sys.executable, "-u", str(EXAMPLES / "pinn.py"), *arguments], cwd=folder, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_it_learns(capsys):
    pinn.main([*SMALL, "--steps", "500", "--no-plot"])
    output = capsys.readouterr().out
    found = losses(output)
    assert len(found) == 500 and np.mean(found[-50:]) < 0.1 * found[0]
    assert relative_error(output) < 0.5  # the error of u = 0 is 1


@needs_oracle
@pytest.mark.parametrize(("sizes", "steps"), [(SMALL, 100), (["--log-every", "1"], 20)], ids=["small", "by default"])
def test_losses_are_pytorchs(sizes, steps, capsys):
    """With `import torch` in the same program, the first losses and the error agree."""
    outputs = []
    for library in ("tinytorch", "torch"):
        program = models.load("pinn", library)
        assert program.torch is {"tinytorch": tinytorch, "torch": torch}[library]
        program.main([*sizes, "--steps", str(steps), "--seed", "7", "--no-plot"])
        outputs.append(capsys.readouterr().out)
    ours, theirs = map(losses, outputs)
    assert len(ours) == steps
    np.testing.assert_allclose(ours, theirs, rtol=1e-3)
    assert abs(relative_error(outputs[0]) - relative_error(outputs[1])) <= 2e-4


def test_the_learning_rate_falls(monkeypatch):
    rates = []

    def improve(model, optimizer, points, given):
        rates.append(optimizer.param_groups[0]["lr"])
        return 0.0

    monkeypatch.setattr(pinn, "improve", improve)
    args = pinn.parse(["--no-plot", "--steps", "101", "--lr", "0.01"])
    pinn.train(pinn.Network(args.width, args.depth), args)
    assert rates[0] == 0.01 and rates == sorted(rates, reverse=True) and 1e-5 < rates[-1] < 2e-5


def test_residual_of_a_known_function():
    """u = x / (1 + t) satisfies the equation for any viscosity; u = x**2 t does not."""
    t, x = tinytorch.rand(20, 1), tinytorch.rand(20, 1)
    obeys = pinn.residual(lambda t, x: x / (1 + t) + 0 * x**2, t, x)
    np.testing.assert_allclose(obeys.detach().numpy(), 0, atol=1e-6)

    found = pinn.residual(lambda t, x: x**2 * t, t, x).detach().numpy()
    t, x = t.detach().numpy(), x.detach().numpy()
    np.testing.assert_allclose(found, x**2 + x**2 * t * 2 * x * t - pinn.NU * 2 * t, rtol=1e-5)


def test_given_points():
    t, x, u = (each.numpy() for each in pinn.given_points(100))
    assert np.all(t[:50] == 0) and np.all(abs(x[50:]) == 1) and {-1, 1} == set(x[50:].ravel())
    np.testing.assert_allclose(u, np.where(t == 0, -np.sin(np.pi * x), 0), atol=1e-6)


def spectral(times, points):
    """Return the solution at `times` at `points` positions from -1 on, by a Fourier method.

    The fourth-order Runge-Kutta method is applied to the coefficients without their viscous decay.
    """
    x = np.linspace(-1, 1, points, endpoint=False)
    k = np.pi * np.arange(points // 2 + 1)
    smooth = k < k[-1] * 2 / 3  # products of the remaining modes are resolved on the grid
    u, rows, now = np.fft.rfft(-np.sin(np.pi * x)), [], 0.0

    def change(u):
        return smooth * (-0.5j * k) * np.fft.rfft(np.fft.irfft(u) ** 2)

    for time in times:
        steps = int(np.ceil((time - now) * points))
        dt = (time - now) / steps
        half = np.exp(-pinn.NU * k**2 * dt / 2)
        for _ in range(steps):
            a = change(u)
            b = change(half * (u + dt / 2 * a))
            c = change(half * u + dt / 2 * b)
            d = change(half * (half * u + dt * c))
            u = half * (half * (u + dt / 6 * a) + dt / 3 * (b + c)) + dt / 6 * d
        rows.append(np.fft.irfft(u))
        now = time
    return x, np.array(rows)


def test_exact_solution_against_a_spectral_method():
    times = [0.1, 0.3, 0.5, 0.75, 1.0]
    x, expected = spectral(times, 2048)
    found = pinn.exact(*np.meshgrid(times, x, indexing="ij"))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
    x, t = np.linspace(-1, 1, 21), np.linspace(0, 1, 21)  # and on the border
    np.testing.assert_allclose(pinn.exact(np.zeros(21), x), -np.sin(np.pi * x), atol=1e-12)
    for wall in (-1.0, 1.0):
        np.testing.assert_allclose(pinn.exact(t, np.full(21, wall)), 0, atol=1e-12)


def test_exact_solution_against_published_values():
    """Compare the steepest slope and its time with Basdevant et al., Computers & Fluids 14, 1986."""
    t, h = np.linspace(0.5, 0.52, 2001), 1e-5
    slopes = pinn.exact(t, np.full_like(t, h)) / h  # u(t, 0) is 0
    assert slopes.min() == pytest.approx(-152.00516, rel=1e-5)
    assert np.pi * t[slopes.argmin()] == pytest.approx(1.6037, abs=1e-4)


def test_relative_error(monkeypatch):
    """On a grid of 100 x 256, it is 0 for the exact solution and 1 for u = 0."""
    monkeypatch.setattr(pinn, "exact", lambda t, x: t + x)
    assert pinn.relative_error(lambda t, x: t + x) < 1e-6
    assert pinn.relative_error(lambda t, x: 0 * t) == pytest.approx(1)
    grid = pinn.compare(lambda t, x: t - x, np.linspace(0, 1, 100))
    assert {each.shape for each in grid} == {(100, 256)}


def test_the_whole_program(tmp_path):
    """It trains, prints the error and writes a plot."""
    process = start(tmp_path, *SMALL, "--steps", "20", "--out", "burgers.png")
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert len(losses(output)) == 20 and 0 < relative_error(output) < 2
    assert output.endswith("Drew burgers.png\n")
    picture = (tmp_path / "burgers.png").read_bytes()
    assert picture.startswith(b"\x89PNG\r\n\x1a\n") and len(picture) > 20_000
    assert [path.name for path in tmp_path.iterdir()] == ["burgers.png"]


def test_interrupted(tmp_path):
    """Ctrl-C ends only the training: the network is compared with the solution, and the status is 130."""
    process = start(tmp_path, *SMALL, "--steps", "10000000", "--no-plot")
    try:
        for line in process.stdout:
            if line.startswith("step     50 "):
                break
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130 and errors == ""
    steps = re.search(r"\nInterrupted after (\d+) steps\n", output)
    assert steps is not None and int(steps[1]) >= 50 and 0 < relative_error(output) < 2


def refusal(capsys, *arguments):
    """Return the message of the program for invalid arguments."""
    with pytest.raises(SystemExit) as caught:
        pinn.main(list(arguments))
    assert caught.value.code == 2
    return capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(("option", "value", "words"), [
    *[
        (f"--{name}", value, f"argument --{name}: should be above 0 and finite")
        for name in ("steps", "points", "given", "width", "depth", "log-every", "lr")
        for value in ("0", "-1")
    ],
    ("--lr", "nan", "argument --lr: should be above 0 and finite"),
    ("--lr", "inf", "argument --lr: should be above 0 and finite"),
    ("--lr", "fast", "argument --lr: invalid float value: 'fast'"),
    ("--steps", "many", "argument --steps: invalid int value: 'many'"),
    ("--seed", "-1", "argument --seed: should be from 0 to 2**64 - 1"),
    ("--seed", str(2**64), "argument --seed: should be from 0 to 2**64 - 1"),
    ("--viscosity", "0", "unrecognized arguments: --viscosity 0"),
])  # fmt: skip
def test_settings_that_cannot_be(capsys, option, value, words):
    assert words in refusal(capsys, "--no-plot", option, value)


def test_without_matplotlib(capsys, monkeypatch, tmp_path):
    """The missing extra is named before the training; nothing else needs it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    said = refusal(capsys, *SMALL, "--steps", "1")
    assert "the picture needs matplotlib: pip install matplotlib; or --no-plot" in said
    pinn.main([*SMALL, "--steps", "1", "--no-plot"])
    assert relative_error(capsys.readouterr().out) > 0
    monkeypatch.undo()
    said = refusal(capsys, "--out", str(tmp_path / "none" / "pinn.png"))  # noticed before the training
    assert "argument --out: " in said and "No such file or directory" in said
    assert list(tmp_path.iterdir()) == []


#: The examples with options that shorten them; {data} is a folder with a small FashionMNIST.
SHORT = {
    "cnn_fashion_mnist": "--data {data} --epochs 2 --width 4 --batch-size 64 --lr 0.01",
    "char_gpt": "--quick --length 5", "ddp_cnn": "--data {data} --epochs 2 --width 4 --batch-size 64 --lr 0.01",
    "gan_2d": "--quick", "lstm_rows": "--data {data} --epochs 2 --hidden 16 --layers 2 --lr 0.02",
    "vae_fashion_mnist": "--data {data} --epochs 2 --hidden 32 --latent 4 --no-plot",
}  # fmt: skip
PICTURES = [name for name in SHORT if "{data}" in SHORT[name]]
every_example = pytest.mark.parametrize("name", SHORT)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    write_data(folder)
    return str(folder)


def numbers(output):
    """Return the numbers in the lines about epochs and steps, without the seconds at their ends."""
    lines = re.findall(r"^(?:epoch|step) (.*?) +[\d.]+ s$", output, re.MULTILINE)
    assert lines
    found = [[float(each) for each in re.findall(r"[\d.]+(?![\d.])", line)] for line in lines]
    return np.array(found)


def run(name, capsys, arguments, library="tinytorch"):
    """Run an example with a library, and return its output."""
    program = models.load(name, library)
    assert program.torch is {"tinytorch": tinytorch, "torch": torch}[library]
    if library == "torch":
        program.load_data = tensors
    capsys.readouterr()
    program.main(arguments.split())
    return capsys.readouterr().out


def tensors(args):
    """Return a replacement of the examples' `load_data` that works with PyTorch, without torchvision."""
    sets = []
    for train in (True, False):
        ours = tinytorch.data.FashionMNIST(args.data, train=train)
        pictures = torch.from_numpy(ours.data.numpy()).unsqueeze(1) / 255
        labels = torch.from_numpy(ours.targets.numpy())
        sets.append(torch.utils.data.TensorDataset(pictures, labels))
    return *sets, None


@needs_oracle
@every_example
def test_numbers_are_pytorchs(name, data, capsys):
    """With `import torch` in the same program and the same seed, the losses of every line agree."""
    arguments = SHORT[name].format(data=data) + " --seed 5"
    ours = numbers(run(name, capsys, arguments))
    theirs = numbers(run(name, capsys, arguments, library="torch"))
    # Shares are percentages: one image in a hundred, or a few points in ten thousand, may lie on a decision boundary.
    np.testing.assert_allclose(ours, theirs, rtol=2e-3, atol=1.01 if name != "char_gpt" else 0)
    losses_at = {"gan_2d": [1, 2], "char_gpt": [1, 2]}.get(name, [1])
    np.testing.assert_allclose(ours[:, losses_at], theirs[:, losses_at], rtol=2e-3)


#: Options that shorten each example, and the number of programs that `--compile` creates for its step: another one for
#: a smaller last batch. (Not `ddp_cnn`: DistributedDataParallel works by hooks.)
COMPILED = {
    "cnn_fashion_mnist": (SHORT["cnn_fashion_mnist"].replace("64", "60"), 2), "char_gpt": (SHORT["char_gpt"], 1),
    "gan_2d": (SHORT["gan_2d"], 1), "lstm_rows": (SHORT["lstm_rows"] + " --batch-size 60", 2),
    "pinn": (" ".join([*SMALL, "--steps 30 --no-plot"]), 1),
    "vae_fashion_mnist": (SHORT["vae_fashion_mnist"] + " --batch-size 60", 2),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_it_prints_the_same(name, data, capsys, monkeypatch):
    made = []

    def compiled(function):
        made.append(whole(function))
        return made[-1]

    whole = tinytorch.compile
    monkeypatch.setattr(tinytorch, "compile", compiled)
    arguments, programs = COMPILED[name]
    expected, found = (run(name, capsys, arguments.format(data=data) + more) for more in ("", " --compile"))
    assert re.sub(r"[\d.]+ s$", "", found, flags=re.MULTILINE) == re.sub(r"[\d.]+ s$", "", expected, flags=re.MULTILINE)
    (step,) = made
    assert not step.reasons and len(step.variants) == programs


@every_example
def test_help(name, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as caught:
        run(name, capsys, "--help")
    assert caught.value.code in (None, 0)
    said = capsys.readouterr().out
    assert f"python examples/{name}.py --quick" in said and max(map(len, said.splitlines())) <= 80
    for option in re.findall(r"^  (--[a-z-]+)", said, re.MULTILINE):
        assert re.search(rf"^  {option}\b.*\S", said, re.MULTILINE)


@pytest.fixture
def alone(monkeypatch):
    """Make all mirrors unreachable, and generate only a few images."""
    monkeypatch.setattr(tinytorch.data.FashionMNIST, "mirrors", ("http://127.0.0.1:9/",))
    monkeypatch.setattr(drawn, "TRAINING", 300)
    monkeypatch.setattr(drawn, "TEST", 50)


#: Calls of examples, and what they say before they end.
STOPPED = [
    *[(name, f"--lr {value}", "argument --lr: (should be above 0|invalid float value)")
      for name in SHORT for value in ("0", "-1", "nan", "inf", "fast")],
    *[(name, "--data damaged", f"^{name}.py: cannot read the data in ") for name in PICTURES],
    *[(name, "--data . --dataset fashion", rf"^{name}.py: cannot read the data in .+: Connection refused$")
      for name in PICTURES],
    *[(name, "--torchvision --dataset drawn", "--torchvision: not allowed with --dataset drawn") for name in PICTURES],
    ("char_gpt", "--text none.txt", "^cannot read the text: |: cannot read the text: "),
    ("char_gpt", "--text short.txt", "the text should have 1300 characters or more"),
    ("char_gpt", "--heads 3", "--width: should be a multiple of --heads"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "arguments", "words"), STOPPED)
def test_calls_that_cannot_be(name, arguments, words, alone, capsys, tmp_path, monkeypatch):
    """Each mistake is reported in one line."""
    monkeypatch.chdir(tmp_path)
    raw = tmp_path / "damaged" / "FashionMNIST" / "raw"
    raw.mkdir(parents=True)
    for file in ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1"):
        (raw / f"{file}-ubyte").write_bytes(b"damaged")
    (tmp_path / "short.txt").write_text("short")
    plot = " --no-plot" if name.startswith("vae") and "--d" in arguments else ""
    with pytest.raises(SystemExit) as caught:
        run(name, capsys, arguments + plot)
    code = caught.value.code
    assert re.search(words, code if isinstance(code, str) else capsys.readouterr().err) and code in (2, str(code))


@pytest.mark.parametrize(("name", "accuracy"), [("cnn_fashion_mnist", 90), ("ddp_cnn", 50), ("lstm_rows", 50)])
def test_classifiers_learn(name, accuracy, data, capsys):
    """The classes of the small data are easy to distinguish; the accuracy of guessing is a tenth."""
    arguments = SHORT[name].format(data=data).replace("--epochs 2", "--epochs 6")
    found = numbers(run(name, capsys, arguments))
    assert found[-1, 1] < 0.6 * found[0, 1] and found[-1, 2] >= accuracy


@needs_mpi
def test_several_processes(data, tmp_path):
    """Several processes compute what one process computes, also when they resume from its checkpoint."""
    outputs = []
    for processes, epochs, checkpoint in ((1, 2, "none"), (2, 1, "some"), (4, 2, "some")):
        command = [sys.executable, "-m", "tinytorch.distributed.run", "--nproc-per-node", str(processes)]
        arguments = ["--epochs", str(epochs), "--checkpoint", str(tmp_path / checkpoint)]
        ran = subprocess.run(
            [*command, str(EXAMPLES / "ddp_cnn.py"), *SHORT["ddp_cnn"].format(data=data).split(), *arguments],
            env={**os.environ, "PYTHONPATH": str(EXAMPLES.parent)}, capture_output=True, text=True,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr
        outputs.append(numbers(ran.stdout))
    one, two, four = outputs
    assert [len(each) for each in outputs] == [2, 1, 1]
    np.testing.assert_allclose(np.concatenate([two, four]), one, rtol=2e-3, atol=1.01)
    np.testing.assert_allclose([two[0, 1], four[0, 1]], one[:, 1], rtol=2e-3)


@pytest.mark.parametrize("name", PICTURES)
def test_quick_takes_few_pictures(name, data, capsys):
    program = models.load(name, "tinytorch")
    args = program.parse(["--quick", "--data", data, *["--no-plot"] * name.startswith("vae")])
    assert args.epochs == 1
    training_data, test_data, _ = program.load_data(args)
    assert (len(training_data), len(test_data)) == (640, 100)  # all of the small data
    assert isinstance(training_data, tinytorch.utils.data.Subset)


@pytest.mark.parametrize("dataset", ["auto", "drawn"])
@pytest.mark.parametrize("name", PICTURES)
def test_drawn_pictures(name, dataset, alone, capsys, tmp_path, monkeypatch):
    """The notice that images are generated is the first and the last line; they are kept."""
    monkeypatch.chdir(tmp_path)
    arguments = SHORT[name].format(data="data").replace("--epochs 2", "--epochs 1")
    first, *rest, last = run(name, capsys, f"{arguments} --dataset {dataset}").splitlines()
    assert first == last == tinytorch.data.DrawnFashion.notice and len(numbers("\n".join(rest))) == 1
    assert [file.parts[-2:] for file in tmp_path.rglob("*.npy")]


@needs_oracle
def test_pytorch_runs_an_example_on_torchvisions_data(data, capsys):
    """The program runs with `import torch` and no other change."""
    from benchmarks.quickstart_torch import load_torchvision

    load_torchvision()
    program = models.load("lstm_rows", "torch")
    program.main([*SHORT["lstm_rows"].format(data=data).split(), "--torchvision"])
    theirs = numbers(capsys.readouterr().out)
    ours = numbers(run("lstm_rows", capsys, SHORT["lstm_rows"].format(data=data)))
    np.testing.assert_allclose(ours, theirs, rtol=2e-3, atol=1.01)


gpt = models.load("char_gpt", "tinytorch")


def test_gpt_learns_a_text_by_heart(capsys, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("the quick brown fox jumps over the lazy dog. " * 60, encoding="utf-8")
    output = run(
        "char_gpt",
        capsys,
        f"--text {text} --steps 150 --layers 2 --width 32 --context 32 --lr 0.01 --length 90"
        " --temperature 0.2 --log-every 50",
    )
    found = numbers(output)
    assert found[0, 1] > 3 and found[-1, 1] < 0.5 and found[-1, 2] < 0.5
    assert "quick brown fox jumps" in output.split("-" * 32)[1]


def test_gpt_does_not_look_ahead():
    model = gpt.GPT(size=7, context=6, layers=2, heads=2, width=8)
    x = tinytorch.randint(7, (3, 6))
    y = x.clone()
    y[:, 4:] = (y[:, 4:] + 1) % 7
    before, after = model(x).detach().numpy(), model(y).detach().numpy()
    np.testing.assert_allclose(before[:, :4], after[:, :4], atol=1e-6)
    assert np.all(abs(before[:, 4:] - after[:, 4:]).max(axis=-1) > 1e-4)


def test_gpt_batches_and_table():
    x, y = gpt.batch_of(tinytorch.arange(50), 200, 8)
    assert x.shape == y.shape == (200, 8) and tinytorch.equal(y, x + 1)
    assert x[:, 0].min() == 0 and y[:, -1].max() == 49
    model = gpt.GPT(size=7, context=6, layers=1, heads=2, width=8)
    assert model.head.weight is model.characters.weight
    found = tinytorch.summary(model, (1, 6), dtype=tinytorch.int64)
    assert found.total_parameters == 7 * 8 + 6 * 8 + 12 * 8 * 8 + 13 * 8 + 2 * 8


def test_gpt_writes_also_when_interrupted(capsys, monkeypatch):
    program = models.load("char_gpt", "tinytorch")
    improve, calls = program.improve, []

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return improve(*arguments)

    program.improve = interrupted
    with pytest.raises(SystemExit) as caught:
        program.main(["--quick"])
    assert caught.value.code == 130
    output = capsys.readouterr().out
    assert "\nInterrupted after 2 steps\n" in output and len(output.split("-" * 32 + "\n")[1]) == 51


gan = models.load("gan_2d", "tinytorch")


def test_gan_measures():
    def true(noise):
        return gan.true_points(len(noise))

    clouds, inside = gan.measure(true)
    assert clouds == 8
    assert inside == pytest.approx(1 - np.exp(-4.5), abs=0.005)  # as for a normal distribution
    assert gan.measure(lambda noise: gan.centres()[:1].expand(len(noise), 2)) == (1, 1.0)
    assert gan.measure(lambda noise: 0 * noise) == (0, 0.0)


def test_gan_penalty_is_that_of_a_known_critic():
    """For a linear critic w x the penalty is |w|**2, for any points."""
    critic = tinytorch.nn.Linear(2, 1)
    parts = []
    for penalty in (0.0, 1.0):
        tinytorch.manual_seed(0)
        parts.append(gan.critic_loss(critic, tinytorch.nn.Identity(), 16, penalty))
    difference = parts[1] - parts[0]
    assert difference.item() == pytest.approx((critic.weight**2).sum().item() / 2, rel=1e-4)
    (gradient,) = tinytorch.autograd.grad(difference, critic.weight)
    np.testing.assert_allclose(gradient.numpy(), critic.weight.detach().numpy(), rtol=1e-4)


@pytest.mark.parametrize(("name", "arguments", "size"), [
    ("gan_2d", "--quick --out out.png", None),
    ("vae_fashion_mnist", "--quick --data {data} --out out.png", (448, 448)),
])  # fmt: skip
def test_pictures(name, arguments, size, data, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    image = pytest.importorskip("PIL.Image")
    if name == "gan_2d":
        pytest.importorskip("matplotlib")
    assert run(name, capsys, arguments.format(data=data)).endswith("Drew out.png\n")
    with image.open(tmp_path / "out.png") as picture:
        assert picture.format == "PNG" and size in (None, picture.size)
        assert len(set(picture.convert("L").tobytes())) > 20
    assert [path.name for path in tmp_path.iterdir()] == ["out.png"]


def test_the_grid_of_pictures(tmp_path):
    image = pytest.importorskip("PIL.Image")
    vae = models.load("vae_fashion_mnist", "tinytorch")
    pictures = (tinytorch.arange(6) / 5).view(6, 1, 1).expand(6, 28, 28)
    vae.save_grid(tmp_path / "grid.png", pictures, columns=3)
    with image.open(tmp_path / "grid.png") as picture:
        found = np.asarray(picture)[28::56, 28::56]
    np.testing.assert_array_equal(found, [[0, 51, 102], [153, 204, 255]])


@pytest.mark.parametrize(("name", "arguments", "package", "words"), [
    ("gan_2d", "--out out.png", "matplotlib", "pip install matplotlib"),
    ("vae_fashion_mnist", "", "PIL", "pip install pillow; or --no-plot"),
])  # fmt: skip
def test_without_the_extra(name, arguments, package, words, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SystemExit) as caught:
        run(name, capsys, arguments)
    assert caught.value.code == 2 and words in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@every_example
def test_as_a_process(name, data, tmp_path):
    """Run it as users do, in another folder."""
    process = subprocess.run(
        [sys.executable, str(models.EXAMPLES / f"{name}.py"), *SHORT[name].format(data=data).split()], cwd=tmp_path,
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    assert process.stderr == "" and len(numbers(process.stdout)) >= 2 and list(tmp_path.iterdir()) == []
