"""Programs that are saved run where there is NumPy and nothing else, and give the same bits."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
import warnings
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinytorch as torch
from tests.compiler.saving import SAVED
from tests.compiler.test_programs import difference
from tinytorch import nn

#: Runs all programs of a folder where no framework can be imported.
ALONE = """
import importlib.util, pathlib, pickle, sys

class Refuses:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("tinytorch", "torch", "ml_dtypes", "tqdm"):
            raise ImportError(name)

sys.meta_path.insert(0, Refuses())
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.py")):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    given = pickle.loads(path.with_suffix(".pickle").read_bytes())[0]
    results = []
    for call in given:
        results.append(pickle.loads(pickle.dumps(module.step(*call))))
    kinds = [getattr(module, kind, {}) for kind in ("parameters", "buffers", "others")]
    kept = [array.tobytes() for arrays in kinds for array in arrays.values()]
    path.with_suffix(".found").write_bytes(pickle.dumps((results, kept)))
assert not {name.partition(".")[0] for name in sys.modules} & {"tinytorch", "torch", "ml_dtypes", "tqdm"}
"""


def run(*arguments: Any, **environment: str) -> None:
    done = subprocess.run(
        [sys.executable, *map(str, arguments)], capture_output=True, text=True, env={**os.environ, **environment}
    )
    assert not done.returncode, done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with what was saved, what it gives where it was compiled, and what it gives alone."""
    made = tmp_path_factory.mktemp("saved")
    run("-m", "tests.compiler.saving", made, TINYTORCH_NATIVE="0", PYTHONPATH=str(Path(__file__).parents[2]))
    run("-I", "-c", ALONE, made)
    return made


def shown(x: Any) -> Any:
    """Return a result as something to compare, bit for bit."""
    if isinstance(x, (np.ndarray, np.generic)):
        return type(x).__name__, str(x.dtype), x.shape, x.tobytes()
    if isinstance(x, dict):
        return [(key, shown(each)) for key, each in x.items()]
    if isinstance(x, (tuple, list)):
        return type(x).__name__, [shown(each) for each in x]
    return type(x).__name__, repr(x)


@pytest.mark.parametrize("name", SAVED)
def test_alone_it_gives_the_same_bits(name: str, folder: Path) -> None:
    _, expected, stay = pickle.loads((folder / f"{name}.pickle").read_bytes())
    found, kept = pickle.loads((folder / f"{name}.found").read_bytes())
    assert not difference(shown(expected), shown(found))
    assert not Counter(stay) - Counter(kept)


@pytest.mark.parametrize("name", SAVED)
def test_the_text_is_tidy(name: str, folder: Path) -> None:
    text = (folder / f"{name}.py").read_text("utf-8")
    imported = re.findall(r"^ *(?:import|from) (\w+)", text, re.MULTILINE)
    assert set(imported) <= {*sys.stdlib_module_names, "numpy"}
    assert not re.search(r"[ \t]$|\n\n\n\n", text, re.MULTILINE)
    for word in ("tinytorch.", "._array", "wrap(", "Any", "noqa", "fmt:", "@twin", "local.state"):
        assert word not in text, word
    definitions = re.findall(r"^(?:def|class) (\w+)", text, re.MULTILINE)
    assert len(definitions) == len(set(definitions))


def test_the_users_lines_are_comments(folder: Path) -> None:
    text = (folder / "quickstart_sgd.py").read_text("utf-8")
    for line in ("# pred = model(X)", "# loss.backward()", "# optimizer.step()", "    sgd_step()", "def step(X, y):"):
        assert line in text
    assert "X: an array of shape (16, 4, 6), float32." in text


def module(path: Path) -> dict[str, Any]:
    scope: dict[str, Any] = {"__file__": str(path), "__name__": "saved"}
    exec(compile(path.read_text("utf-8"), str(path), "exec"), scope)
    return scope


def test_weights_are_those_of_the_time_of_saving(tmp_path: Path) -> None:
    model = nn.Linear(3, 2)
    compiled = torch.compile(model)
    compiled(torch.ones(1, 3))
    with torch.no_grad():
        model.weight.fill_(2.0)
        model.bias.zero_()
    compiled.save(tmp_path / "linear.py")
    made = module(tmp_path / "linear.py")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["linear.npz", "linear.py"]
    assert made["step"](np.ones((1, 3), np.float32)).tolist() == [[6.0, 6.0]]
    made["parameters"]["bias"][:] = 1
    assert made["step"](np.ones((1, 3), np.float32)).tolist() == [[7.0, 7.0]]
    assert model.bias.tolist() == [0.0, 0.0]


def test_kernels_are_copies_of_whole_modules(folder: Path) -> None:
    root = Path(torch.__file__).parent / "kernels"
    packages = set()
    for name in ("quickstart_sgd", "quickstart_momentum", "lstm"):
        with zipfile.ZipFile(folder / f"{name}.npz") as file:
            modules = {each: file.read(each).decode() for each in file.namelist() if each.endswith(".py")}
        (package,) = {each.partition("/")[0] for each in modules}
        packages.add(package)
        needed = {"parallel", "native/__init__", *(("rnn", "products") if name == "lstm" else ())}
        assert {f"{package}/{each}.py" for each in needed} <= modules.keys()
        for path, text in modules.items():
            assert text == (root / path.partition("/")[2]).read_text("utf-8")
            assert "from tinytorch" not in re.sub(r">>> .*", "", text)
            assert "_native.abi3" not in path
    assert len(packages) == 2  # of the same kernels there is one package


def test_a_file_that_is_written_anew_is_read_anew(tmp_path: Path) -> None:
    x = torch.arange(12.0).reshape(3, 4)
    for function in (
        lambda x: torch.softmax(x, 1),
        lambda x: torch.cat([x.t(), x.t()]).sum(0),
        lambda x: torch.relu(x) + 1,
    ):
        compiled = torch.compile(function)
        expected = compiled(x)
        compiled.save(tmp_path / "again.py")
        given = module(tmp_path / "again.py")["step"](x.numpy())
        np.testing.assert_allclose(given, expected.numpy(), rtol=1e-6)


def test_threads_of_a_saved_program_are_silent(tmp_path: Path) -> None:
    x = torch.zeros(1 << 20)
    compiled = torch.compile(lambda x: x.log())
    compiled(x)
    compiled.save(tmp_path / "log.py")
    step = module(tmp_path / "log.py")["step"]
    with warnings.catch_warnings(record=True) as caught:
        assert np.isneginf(step(x.numpy())).all()
    assert not caught


def test_training_goes_on_in_the_module_alone(tmp_path: Path) -> None:
    function, calls = SAVED["quickstart_adam"]()
    function(*calls[0])
    function.save(tmp_path / "step.py")
    made = module(tmp_path / "step.py")
    losses = [[function(*call) for call in calls], [made["step"](*[x.numpy() for x in call]) for call in calls]]
    np.testing.assert_allclose(*losses, rtol=1e-4)  # (native kernels may round otherwise)
    made["adam_groups"][0]["lr"] = 0.0
    before = made["parameters"]["1.weight"].copy()
    made["step"](*[x.numpy() for x in calls[0]])
    assert (made["parameters"]["1.weight"] == before).all()
    assert not any(each is not None for each in made["gradients"].values())


def test_gradients_are_by_name(tmp_path: Path) -> None:
    model = nn.Linear(3, 1)

    @torch.compile
    def step(x: Any) -> Any:
        model.zero_grad()
        model(x).sum().backward()

    x = torch.arange(6.0).reshape(2, 3)
    step(x)
    step(x)
    step.save(tmp_path / "step.py")
    made = module(tmp_path / "step.py")
    assert made["step"](x.numpy()) is None
    assert made["gradients"]["weight"].tolist() == [[3.0, 5.0, 7.0]]


def test_gradients_are_added_up_by_name(folder: Path) -> None:
    made = module(folder / "accumulated.py")
    before = {name: x.copy() for name, x in made["gradients"].items()}
    made["step"](np.zeros((4, 3), np.float32))
    assert (made["gradients"]["weight"] == before["weight"]).all()
    assert (made["gradients"]["bias"] == before["bias"] + 8 * made["parameters"]["bias"]).all()


class Words(nn.Module):
    """A model with a tied weight, statistics, and tensors that no state dict has."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.norm, self.out = nn.Embedding(7, 4), nn.BatchNorm1d(4), nn.Linear(4, 7)
        self.out.weight = self.words.weight
        self.register_buffer("place", torch.randn(4), persistent=False)
        self.scale = torch.ones(4)

    def forward(self, x: Any) -> Any:
        return self.out(self.norm(self.words(x) * self.scale + self.place))


def of_a_model(compiled: bool) -> tuple[Any, nn.Module, tuple[Any, Any]]:
    model, loss_fn = Words(), nn.CrossEntropyLoss(weight=torch.rand(7))
    optimizer = torch.optim.Adam(model.parameters())
    called = torch.compile(model) if compiled else model

    @torch.compile
    def step(x: Any, y: Any) -> Any:
        loss = loss_fn(called(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    return step, model, (torch.arange(5), torch.arange(5))


@pytest.mark.parametrize("compiled", [False, True])
def test_names_are_those_of_the_state_dict(compiled: bool, tmp_path: Path) -> None:
    step, model, given = of_a_model(compiled)
    names = list(model.state_dict())
    start = {name: x.clone() for name, x in model.state_dict().items()}
    losses = [step(*given) for _ in range(3)]
    step.save(tmp_path / "step.py")
    made = module(tmp_path / "step.py")
    trained = [name for name, _ in model.named_parameters()]  # of the tied weight, the first name
    assert list(made["parameters"]) == list(made["adam_state"]) == made["adam_groups"][0]["params"] == trained
    assert sorted(made["buffers"]) == sorted(
        ["loss_fn.weight", *[name for name, _ in Words().norm.named_buffers("norm")]]
    )
    assert sorted(made["others"]) == ["place", "scale"]
    state = made["state_dict"]()
    assert sorted(state) == sorted(["loss_fn.weight", *names])
    assert state["out.weight"] is state["words.weight"]
    with pytest.raises(KeyError, match=r"loss_fn\.weight"):
        made["load_state_dict"](start)
    made["load_state_dict"]({**state, **start, "unknown": 0})
    for each in made["adam_state"].values():
        for x in each.values():
            x[...] = 0
    np.testing.assert_allclose([made["step"](*[x.numpy() for x in given]) for _ in range(3)], losses, rtol=1e-4)
    found = model.load_state_dict({name: torch.from_numpy(x) for name, x in made["state_dict"]().items()}, strict=False)
    assert found == ([], ["loss_fn.weight"])


def test_names_of_several_models_begin_with_those_of_the_models(tmp_path: Path) -> None:
    first, models = nn.Linear(2, 2), [nn.Linear(2, 2), nn.ModuleDict({'a "b"': nn.Linear(2, 2, bias=False)})]
    weight = torch.ones(2, requires_grad=True)

    @torch.compile
    def step(x: Any) -> Any:
        return models[1]['a "b"'](models[0](first(x))) * weight  # type: ignore[index]

    x = torch.ones(1, 2)
    expected = step(x)
    step.save(tmp_path / "step.py")
    made = module(tmp_path / "step.py")
    of_two = ["first.weight", "first.bias", "models_0.weight", "models_0.bias"]
    assert list(made["parameters"]) == [*of_two, 'models_1.a "b".weight', "weight"]
    np.testing.assert_allclose(made["step"](x.numpy()), expected.detach().numpy(), rtol=1e-6)


def test_weights_that_share_memory_go_on_sharing_it(tmp_path: Path) -> None:
    layers = [nn.Linear(2, 2, bias=False) for _ in range(2)]
    layers[1].weight = nn.Parameter(layers[0].weight.detach())
    compiled = torch.compile(nn.Sequential(*layers))
    compiled(torch.ones(1, 2))
    compiled.save(tmp_path / "shared.py")
    made = module(tmp_path / "shared.py")
    assert made["parameters"]["0.weight"] is made["parameters"]["1.weight"]


@pytest.mark.parametrize("mode", ["default", "inference"])
def test_a_program_takes_other_weights(mode: str, tmp_path: Path) -> None:
    models = [nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU()).eval() for _ in range(2)]
    compiled, x = torch.compile(models[0], mode=mode), torch.randn(4, 2, 5, 5)
    with torch.no_grad():
        compiled(x)
        compiled.save(tmp_path / "cnn.py")
        made = module(tmp_path / "cnn.py")
        made["step"](x.numpy())
        made["load_state_dict"](models[1].state_dict())
        np.testing.assert_allclose(made["step"](x.numpy()), models[1](x).numpy(), 1e-5, 1e-6)
    with pytest.raises(ValueError, match=r"0\.bias: an array of shape \(3,\) is needed, not one of shape \(1,\)"):
        made["load_state_dict"]({**models[1].state_dict(), "0.bias": np.zeros(1)})


def test_what_is_given_must_be_like_what_was_given(tmp_path: Path) -> None:
    compiled = torch.compile(lambda x: x * 2)
    compiled(torch.zeros(2, 3))
    compiled.save(tmp_path / "double.py")
    step = module(tmp_path / "double.py")["step"]
    assert step(np.ones((3, 2), np.float32).T).tolist() == [[2.0] * 3] * 2
    with pytest.raises(ValueError, match=r"x: an array of shape \(n, 3\) and dtype float32 is needed"):
        step(np.ones((3, 2), np.float32))
    with pytest.raises(ValueError, match="dtype float64"):
        step(np.ones((2, 3)))
    # Python's numbers have the default dtype, as in `torch.tensor`.
    doubled = step([[1.0, 2.0, 3.0], (4, 5, 6)])
    assert doubled.dtype == np.float32 and doubled.tolist() == [[2.0, 4.0, 6.0], [8.0, 10.0, 12.0]]
    with pytest.raises(ValueError, match=r"x: .* dtype float32 is needed, not one of shape \(2, 3\) and dtype int64"):
        step([[1, 2, 3], [4, 5, 6]])


def test_errors(tmp_path: Path) -> None:
    compiled = torch.compile(lambda x: x + 1)
    with pytest.raises(RuntimeError, match="no program to be saved: call it first"):
        compiled.save(tmp_path / "f.py")
    compiled(torch.zeros(2))
    with pytest.raises(ValueError, match=r"f: the name of a module ends in \.py"):
        compiled.save(tmp_path / "f")
    with pytest.raises(ValueError, match=r"my-model.py: no program can import .*; my_model\.py, say, is one"):
        compiled.save(tmp_path / "my-model.py")
    decides = torch.compile(lambda x: x * float(x.sum()))
    decides(torch.zeros(2))
    with pytest.raises(RuntimeError, match="value is read by Python"):
        decides.save(tmp_path / "f.py")
    assert not [*tmp_path.iterdir()]


def test_a_scheduler_is_not_saved(tmp_path: Path) -> None:
    w = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)

    @torch.compile
    def step(x: Any) -> Any:
        (w * x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        scheduler.step()

    step(torch.ones(2))
    step(torch.ones(2))
    with pytest.raises(RuntimeError, match="the step of a scheduler, ExponentialLR, is no function of arrays"):
        step.save(tmp_path / "step.py")
    assert not [*tmp_path.iterdir()]


def test_numbers_that_numpy_has_not_are_not_saved(tmp_path: Path) -> None:
    pytest.importorskip("ml_dtypes")
    w = torch.ones(2, dtype=torch.bfloat16)
    compiled = torch.compile(lambda x: x * w)
    compiled(torch.ones(2, dtype=torch.bfloat16))
    with pytest.raises(RuntimeError, match="arrays of bfloat16, which NumPy has not"):
        compiled.save(tmp_path / "f.py")
