"""tinytorch under the name torch: `python -m tinytorch`, `compat.install()`, `as-torch`."""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import textwrap
import venv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinytorch
from tests.oracle import needs_oracle
from tests.programs.runner import SCRIPTS, compare_lines, run
from tinytorch import _version, alias
from tinytorch.__main__ import main

ROOT = str(Path(tinytorch.__file__).parent.parent)
PYTHON = [sys.executable]
DOOR = [sys.executable, "-m", "tinytorch"]


def ran(*command: str, cwd: Any = None, text: str = "", **environment: str) -> tuple[int, str, str]:
    """Run a command outside the checkout with tinytorch importable; return the exit code, the output and the errors."""
    known = {**os.environ, "PYTHONPATH": ROOT, **environment}
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=known, input=text, timeout=300)
    return done.returncode, done.stdout, done.stderr


def written(folder: Path, text: str, name: str = "program.py") -> str:
    (folder / name).write_text(textwrap.dedent(text), "utf-8")
    return str(folder / name)


# Programs run as Python itself runs them ----------------------------------------------------------

PROGRAMS = {
    "arguments": "import sys; print(__name__, __file__, sys.argv, sys.path[0])",
    "exit code": "import sys; print('said', file=sys.stderr); sys.exit(7)",
    "exit with words": "raise SystemExit('no data')",
    "traceback": "def f():\n    1 / 0\nf()",
    "wrong syntax": "x = = 1",
    "interrupted": "import os, signal\nsignal.signal(2, signal.default_int_handler)\nos.kill(os.getpid(), 2)",
    "killed": "import os\nos.kill(os.getpid(), 15)",
    "at exit": "import atexit, threading as t\natexit.register(print, 'bye')\nt.Timer(0.05, print, ['late']).start()",
    "main": "import sys\nclass A: pass\nm = sys.modules['__main__']\nprint(m.A is A, A.__module__, __spec__ is None)",
    "pickled": "import pickle\nclass A: x = 1\nprint(pickle.loads(pickle.dumps(A())).x)",
    "asked": "print(input() + '!')",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_runs_as_with_python(name: str, tmp_path: Path) -> None:
    program = written(tmp_path, PROGRAMS[name])
    for command in (["-X", "dev", program, "a", "-b"], ["-c", PROGRAMS[name], "--help"], ["-m", "program", "a"], ["-"]):
        text = PROGRAMS[name] if command == ["-"] else "words\n"
        if (name, command) == ("asked", ["-"]) or (
            name == "arguments" and "-m" not in command and program not in command
        ):
            continue  # no input is left, and such programs have no file
        ours = ran(*DOOR, *command, cwd=tmp_path, text=text)
        assert ours == ran(*PYTHON, *command, cwd=tmp_path, text=text)


def test_version() -> None:
    assert ran(*DOOR, "--version")[1].startswith(
        f"tinytorch {_version.__version__} (the API of PyTorch 2.13.0), Python 3."
    )


def test_options_of_python_are_kept() -> None:
    code = "import sys; print(sys.flags.optimize, sys.flags.dev_mode, sys.warnoptions)"
    assert ran(sys.executable, "-OX", "dev", "-W", "error", "-um", "tinytorch", "-c", code)[1] == (
        "1 True ['default', 'error']\n"
    )
    code_, out, err = ran(sys.executable, "-m", "tinytorch")
    assert (code_, err) == (2, "") and "usage: python -m tinytorch SCRIPT" in out
    assert ran(sys.executable, "-m", "tinytorch", "--help")[:2] == (0, out)


@pytest.mark.parametrize("module", [
    "tinytorch.__main__", "tinytorch.compiler.sweep.__main__", "tinytorch.inspect.doctor.__main__",
    "tinytorch.distributed.run", "train_fashion_mnist",
])  # fmt: skip
def test_help_fits_on_a_terminal(module: str, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with contextlib.suppress(SystemExit):
        assert importlib.import_module(module).main(["--help"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) > 10 and max(map(len, shown)) <= 80


def test_what_as_torch_does_not_know(capsys: Any) -> None:
    assert main(["as-torch", "--help"]) == 0 and main(["as-torch", "--again"]) == 2
    assert capsys.readouterr().err == "python -m tinytorch as-torch: unknown argument --again\n"


def test_interrupted_by_the_terminal(tmp_path: Path) -> None:
    program = written(tmp_path, "import torch, time\nprint(torch.__name__, flush=True)\ntime.sleep(60)")
    with subprocess.Popen(
        [*DOOR, program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": ROOT},
    ) as process:  # fmt: skip
        assert process.stdout is not None and process.stdout.readline() == "torch\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT
    assert errors.startswith("Traceback (most recent call last):\n  File") and errors.endswith("KeyboardInterrupt\n")
    assert "tinytorch" not in errors


# The name torch -----------------------------------------------------------------------------------

NAMES = """
    import importlib.metadata, importlib.util, pickle, subprocess, sys, multiprocessing
    import torch.nn.functional as F
    import torch, torch.utils.data
    from torch import nn, optim
    from torch.nn.modules.linear import Linear

    class Net(nn.Linear):
        pass

    def there(x):
        return f"{type(x).__name__} {sys.modules['torch'].__name__} {'tinytorch' in sys.modules}"

    if __name__ == "__main__":
        import tinytorch
        print(torch is tinytorch, torch.__name__, F is tinytorch.nn.functional, Linear is nn.Linear)
        print(importlib.metadata.version("torch") == torch.__version__, torch.__version__.partition("+")[0])
        print("tinytorch" in torch.__file__, torch.__spec__.name)
        print([importlib.util.find_spec(name) is not None for name in ("torch", "torch.nn.init", "torch.nothing")])
        for line in ("import torch.nothing", "from torch import nothing", "import torch.ones", "import torch.nn.x.y"):
            try:
                exec(line)
            except ImportError as error:
                print(type(error).__name__, str(error).partition(" (")[0], error.name)
        import functorch
        print(functorch is tinytorch.functorch)
        values = [torch.ones(2), Net(2, 1), nn.ReLU(), torch.float32, torch.optim.SGD]
        print(pickle.loads(pickle.dumps(values)))
        for method in multiprocessing.get_all_start_methods():
            with multiprocessing.get_context(method).Pool(1) as pool:
                print(pool.map(there, values))
        child = subprocess.run([sys.executable, "-c", "import torch; print(torch.__name__)"], capture_output=True)
        print(child.stdout)
        data = torch.utils.data.DataLoader(torch.arange(4), 2, num_workers=1, multiprocessing_context="spawn")
        print(list(data))
"""


def test_the_name(tmp_path: Path) -> None:
    code, out, errors = ran(*DOOR, written(tmp_path, NAMES))
    assert (code, errors) == (0, "")
    lines = out.splitlines()
    assert lines[:8] == [
        "True torch True True",
        f"True {_version.PYTORCH}",
        "True tinytorch",
        "[True, True, False]",
        "ModuleNotFoundError No module named 'torch.nothing' torch.nothing",
        "ImportError cannot import name 'nothing' from 'torch' torch",
        "ModuleNotFoundError No module named 'torch.ones' torch.ones",
        "ModuleNotFoundError No module named 'torch.nn.x' torch.nn.x",
    ]
    assert lines[8] == "True"
    assert lines[9].startswith(
        "[tensor([1., 1.]), Net(in_features=2, out_features=1, bias=True), ReLU(), torch.float32"
    )
    workers = str([f"{each} torch True" for each in ("Tensor", "Net", "ReLU", "dtype", "type")])
    assert lines[10:-2] == [workers] * (len(lines) - 12) and len(lines) >= 13
    assert lines[-2:] == [r"b'torch\n'", "[tensor([0, 1]), tensor([2, 3])]"]


def test_the_name_by_a_call(tmp_path: Path) -> None:
    program = """
        import sys, tinytorch
        assert not [name for name in sys.modules if name.split(".")[0] == "torch"]
        from tinytorch import compat
        assert not [name for name in sys.modules if name.split(".")[0] == "torch"]
        compat.install()
        compat.install()
        import importlib.metadata, multiprocessing, torch
        from torch.nn import Linear
        same = importlib.metadata.version("torch") == torch.__version__
        print(torch is tinytorch, Linear.__name__, sys.path[0], same)
    """
    path = written(tmp_path, program)
    assert ran(*PYTHON, path) == (0, f"True Linear {tmp_path} True\n", "")
    notebook = "import tinytorch\ntinytorch.load_ipython_extension(None)\nimport torch\nprint(torch.__name__)"
    assert ran(*PYTHON, "-c", notebook) == (0, "torch\n", "")
    (tmp_path / "torch").mkdir()  # a folder without a module
    assert ran(*PYTHON, path) == (0, f"True Linear {tmp_path} True\n", "")
    (tmp_path / "torch.py").write_text("ones = 1")
    code, _, errors = ran(*PYTHON, "-c", "import torch, tinytorch.compat as c\nc.install()", cwd=tmp_path)
    assert code == 1 and "RuntimeError: torch has been imported already" in errors
    assert (
        ran(*PYTHON, "-c", "from tinytorch import compat as c\nc.install()\nimport torch; torch.zeros", cwd=tmp_path)[0]
        == 0
    )


def test_torchvisions_place_is_taken_for_programs_alone(tmp_path: Path) -> None:
    site = tmp_path / "site-packages"
    site.mkdir()
    package = """
        import importlib.util
        found = importlib.util.find_spec("torchvision") is not None
        try:
            import torchvision
        except ImportError:
            torchvision = None
        print(found, torchvision)
    """
    written(site, package, "torchpackage.py")
    program = """
        import sys
        sys.meta_path[:] = [each for each in sys.meta_path if "PathFinder" not in str(each)] + [Only]
        import torch, torchpackage
        from torchvision import datasets
        print(datasets.MNIST.__name__)
    """
    hidden = """
        from importlib.machinery import PathFinder
        class Only:  # a path without torchvision
            def find_spec(name, path=None, target=None):
                return None if name == "torchvision" else PathFinder.find_spec(name, path, target)
    """
    path = written(tmp_path, textwrap.dedent(hidden) + textwrap.dedent(program))
    assert ran(*DOOR, path, PYTHONPATH=os.pathsep.join([ROOT, str(site)])) == (0, "False None\nMNIST\n", "")


def test_run_as_modules(tmp_path: Path) -> None:
    """Run modules of torch itself, and the tests of a package that was written for PyTorch."""
    package = tmp_path / "layers"
    package.mkdir()
    written(package, "import torch\ndef double(x): return torch.add(x, x)\n", "__init__.py")
    tests = """
        import torch, pytest
        from layers import double
        @pytest.mark.parametrize("n", [1, 2])
        def test_double(n):
            assert torch.equal(double(torch.ones(n)), torch.full((n,), 2.0))
        def test_wrong():
            assert double(torch.ones(1)) == 3
    """
    written(tmp_path, tests, "test_layers.py")
    code, out, _ = ran(*DOOR, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "2", cwd=tmp_path)
    assert code == 1 and "1 failed, 2 passed" in out
    assert ran(*DOOR, "-m", "torch.utils.collect_env_of_nothing")[0] == 1
    assert ran(*DOOR, "-m", "torch.types") == (0, "", "")


CLASSES = """
    import json, torch, torch.cuda.amp, torch.distributed.algorithms, torch.distributed.fsdp, torch.onnx
    spaces = "nn optim optim.lr_scheduler utils.data distributions autograd amp fx distributed nn.utils.rnn".split()
    spaces += "distributed.algorithms distributed.fsdp linalg onnx.errors overrides".split()
    found = {}
    for space in ["", *spaces]:
        home = eval(f"torch.{space}".rstrip("."))
        for name in dir(home):
            kind = getattr(home, name, None)
            if isinstance(kind, type) and name[0] != "_" and "torch" in kind.__module__:
                found[f"{space}.{name}"] = kind.__module__
    print(json.dumps(found))
"""


@needs_oracle
def test_the_classes_have_pytorchs_modules(tmp_path: Path) -> None:
    path = written(tmp_path, CLASSES)
    ours, theirs = (json.loads(ran(*command, path)[1]) for command in (DOOR, PYTHON))
    shared = ours.keys() & theirs.keys() - {".StorageBase", "distributed.FileStore", "distributed.HashStore"}
    shared -= {"autograd.SavedTensor", "distributed.TCPStore"}  # (whose modules in PyTorch are compiled)
    assert len(shared) > 350
    assert {name: ours[name] for name in shared} == {name: theirs[name] for name in shared}


PICKLES = """
    import pickle, sys, torch
    from torch import nn
    torch.manual_seed(0)
    x = torch.arange(6.0).reshape(2, 3).t()
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.utils.spectral_norm(nn.Linear(2, 2)))
    adam = torch.optim.Adam(net.parameters(), 0.1, amsgrad=True)
    net(x).sum().backward()
    adam.step()
    values = [x, nn.Parameter(x), nn.Buffer(x), x[:0], x.bfloat16(), x.to(torch.complex64).conj(), x.to_sparse(), x > 2]
    values += [x.shape, x.dtype, x.layout, x.device, x.sort(), torch.FloatStorage([1.0]), torch.Generator().get_state()]
    values += [net.eval(), net(x), adam, nn.LSTM(2, 3), nn.LazyLinear(3), nn.TransformerEncoderLayer(2, 1, 2)]
    values += [nn.functional.gelu, nn.functional.relu, torch.einsum, torch.Generator().manual_seed(3).get_state()]
    if len(sys.argv) > 2:
        values = pickle.load(open(sys.argv[2], "rb"))
        net, _, adam, lstm, lazy, layer = values[15:21]
        values += [net(x), adam.step(), lstm.state_dict(), lstm(x)[0], lazy(x), layer.eval()(x[None])]
    else:
        pickle.dump(values, open(sys.argv[1], "wb"))
    print([value for value in values if not callable(value) or isinstance(value, nn.Module)])
"""


@needs_oracle
def test_each_reads_the_others_pickles(tmp_path: Path) -> None:
    path = written(tmp_path, PICKLES)
    for writer in (DOOR, PYTHON):
        assert ran(*writer, path, "file.pickle", cwd=tmp_path, PYTHONWARNINGS="ignore")[0] == 0
        ours, theirs = [
            ran(*reader, path, "", "file.pickle", cwd=tmp_path, PYTHONWARNINGS="ignore") for reader in (DOOR, PYTHON)
        ]
        assert ours == theirs and ours[0] == 0


@needs_oracle
@pytest.mark.parametrize("name", ["learning_with_examples", "llama", "unet_segmentation"])
def test_programs_give_pytorchs_numbers(name: str) -> None:
    path = SCRIPTS / f"{name}.py"
    program = f"import runpy, torch; torch.manual_seed(0); runpy.run_path({str(path)!r}, run_name='__main__')"
    code, out, _ = ran(*DOOR, "-c", program)
    assert code == 0
    compare_lines(out.splitlines(), run(path, "torch").lines)


# A whole environment ------------------------------------------------------------------------------


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """Return a new environment with NumPy, tqdm and tinytorch, and nothing else."""
    venv.create(tmp_path / "env", symlinks=os.name != "nt")
    (site,) = (tmp_path / "env").glob("[Ll]ib/**/site-packages")
    import tqdm

    for module in (np, tqdm):
        folder = Path(module.__file__).parent
        for each in [folder, *folder.parent.glob(f"{folder.name}.libs")]:
            (site / each.name).symlink_to(each)
    (site / "tinytorch.pth").write_text(ROOT)
    return tmp_path / "env"


def in_environment(environment: Path, *command: str) -> tuple[int, str, str]:
    folder = environment / ("Scripts" if os.name == "nt" else "bin")
    # Not in the checkout, from which the package could be imported.
    return ran(str(folder / "python"), *command, cwd=environment, PYTHONPATH="")


def listing(folder: Path) -> dict[str, bytes]:
    return {str(each): each.read_bytes() for each in folder.rglob("*") if each.is_file() and not each.is_symlink()}


def test_as_torch_and_undo(environment: Path) -> None:
    before = listing(environment)
    code, out, errors = in_environment(environment, "-m", "tinytorch", "as-torch")
    assert (code, errors) == (0, "") and out.startswith("written:")
    new = listing(environment).keys() - before.keys()
    stubs = {path for path in new if path.endswith(".pyi")}
    assert {line.strip() for line in out.splitlines()[1:-2]} == new - stubs
    assert out.splitlines()[-2].strip() == f"{len(stubs)} stubs of torch, for type checkers (.pyi)"
    program = (
        "import functorch, torch.nn as nn, importlib.metadata as m, sys; import torch, tinytorch\n"
        "print(torch is tinytorch, m.version('torch') == torch.__version__, functorch.__name__, sys.path.count(''))\n"
        "record = m.distribution('torch').files\nassert all(each.locate().is_file() for each in record), record\n"
        "import base64, hashlib\n"
        "for each in record[:-1]:\n"
        "    digest = base64.urlsafe_b64encode(hashlib.sha256(each.read_binary()).digest()).decode().rstrip('=')\n"
        "    assert (each.hash.value, each.size) == (digest, len(each.read_binary())), each\n"
    )
    assert in_environment(environment, "-c", program) == (0, "True True tinytorch.functorch 1\n", "")
    (environment / "program.py").write_text("import os, torch; print(torch.__name__, os.environ['WORLD_SIZE'])")
    torchrun = next(line.strip() for line in out.splitlines() if line.endswith("torchrun"))
    assert ran(torchrun, str(environment / "program.py"), PYTHONPATH="") == (0, "torch 1\n", "")
    (environment / "program.py").unlink()
    again = in_environment(environment, "-m", "tinytorch", "as-torch")
    assert again == (0, out, "")
    assert in_environment(environment, "-c", "import torch; torch.ones(1)")[0] == 0  # which writes byte code
    code, removed, _ = in_environment(environment, "-m", "tinytorch", "as-torch", "--undo")
    assert code == 0 and removed.splitlines()[1:] == out.splitlines()[1:-1]
    assert listing(environment) == before
    (environment / "pip.conf").write_text("[global]\n")  # of the user
    code, out, errors = in_environment(environment, "-m", "tinytorch", "as-torch")
    assert code == 0 and "pip.conf" not in out and "add 'constraint = file://" in errors
    assert in_environment(environment, "-m", "tinytorch", "as-torch", "--undo")[0] == 0
    assert listing(environment).items() - before.items() == {(str(environment / "pip.conf"), b"[global]\n")}
    assert in_environment(environment, "-m", "tinytorch", "as-torch", "--undo") == (0, "nothing to remove\n", "")
    assert in_environment(environment, "-c", "import torch")[0] == 1


def test_stubs_name_what_there_is() -> None:
    """Every module of `torch` has a stub; each import in it, whose names type checkers see, is one that runs."""
    files = alias.stubs()
    assert files["py.typed"] == ""
    for path, text in files.items():
        for node in ast.parse(text).body:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("torch"):
                for each in node.names:
                    below = f"{node.module}.{each.name}".removeprefix("torch.").replace(".", "/")
                    assert f"{below}/__init__.pyi" in files, path
            elif isinstance(node, ast.ImportFrom):
                assert importlib.util.find_spec(str(node.module)), (path, node.module)
            assert getattr(node, "name", "") != "__getattr__", path  # which any name would satisfy
    names = ast.parse(files["__init__.pyi"]).body
    known = {each.asname for node in names if isinstance(node, ast.ImportFrom) for each in node.names}
    known |= {node.name for node in names if isinstance(node, ast.FunctionDef)}
    known |= {ast.unparse(node.target) for node in names if isinstance(node, ast.AnnAssign)}
    known |= {ast.unparse(node.targets[0]) for node in names if isinstance(node, ast.Assign)}
    assert set(tinytorch.__all__) <= known
    for module in "nn.functional utils.data optim.lr_scheduler cuda.amp distributed futures profiler sparse".split():
        assert f"{module.replace('.', '/')}/__init__.pyi" in files
    assert "from tinytorch.compat.cuda import is_available as is_available\n" in files["cuda/__init__.pyi"]


def test_methods_accept_the_names_of_dimensions_that_the_stub_offers() -> None:
    text = (Path(tinytorch.__file__).parent / "core" / "tensor.pyi").read_text("utf-8")
    offered = 0
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            required = len(node.args.args) - 1 - len(node.args.defaults)
            for name in {"axis", "keepdims"} & {each.arg for each in node.args.kwonlyargs}:
                offered += 1
                try:
                    getattr(tinytorch.ones(2, 3), node.name)(*[0] * required, **{name: 0})
                except Exception as error:  # of other arguments, which are missing or wrong
                    assert f"unexpected keyword argument '{name}'" not in str(error), node.name
    assert offered > 80


def test_as_torch_refuses(environment: Path) -> None:
    (site,) = environment.glob("[Ll]ib/**/site-packages")
    (site / "torch").mkdir()
    (site / "torch" / "__init__.py").write_text("")
    before = listing(environment)
    code, _, errors = in_environment(environment, "-m", "tinytorch", "as-torch")
    assert code == 1 and errors.startswith("PyTorch is installed in this environment: ")
    (site / "torch-2.13.0.dist-info").mkdir()
    (site / "torch-2.13.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.13.0\n")
    for options in ([], ["--undo"]):
        code, _, errors = in_environment(environment, "-m", "tinytorch", "as-torch", *options)
        assert code == 1 and ("is PyTorch" in errors or "PyTorch is installed" in errors)
    assert before.items() <= listing(environment).items()
    for each in (site / "torch-2.13.0.dist-info" / "METADATA", site / "torch" / "__init__.py"):
        each.unlink()
        each.parent.rmdir()
    (site / "tinytorch.pth").unlink()
    folder = str(environment / ("Scripts" if os.name == "nt" else "bin") / "python")
    code, _, errors = ran(folder, "-m", "tinytorch", "as-torch")
    assert code == 1 and "tinytorch is not installed for" in errors
    if os.name == "posix" and os.geteuid():
        (site / "tinytorch.pth").write_text(ROOT)
        site.chmod(0o555)
        before = listing(environment)
        assert in_environment(environment, "-m", "tinytorch", "as-torch")[0] == 1
        assert listing(environment) == before


def test_its_version_is_the_packages() -> None:
    metadata = (alias.FOLDER / "torch.dist-info" / "METADATA").read_text("utf-8")
    assert f"\nVersion: {tinytorch.__version__}\n" in metadata


def test_a_command_that_is_misspelt(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctro", "x.py"]) == 2
    assert capsys.readouterr().err == "doctro: no such file or command; did you mean 'doctor'?\n"
