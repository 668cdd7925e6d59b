"""The table of names of what is not there: PyTorch has each, and what is used says why it is not there."""

from __future__ import annotations

import enum
import importlib
import inspect
import pickle
import pkgutil
import subprocess
import sys
import types
import warnings
from pathlib import Path
from typing import Any

import pytest

import tinytorch
from tests.oracle import needs_oracle
from tests.same import same_as_pytorch
from tinytorch import compat
from tinytorch.compat import names

ROOT = Path(tinytorch.__file__).parent
MODULES = sorted(set(names.read().rows) - {"named"})
#: What PyTorch has depends on what is installed; the names of other packages.
OTHER = ("backends.opt_einsum", "functorch.", "torchvision", "version")
#: Modules that show more here than in PyTorch: one row of the table is for several modules.
SHARED = {"distributed._composable.fsdp", "distributed.fsdp.api", "distributed.fsdp.fully_sharded_data_parallel"}
LACKING = {"RemoteModule", "fuse_modules_qat"}


def of(torch: Any, path: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # old names
        return importlib.import_module(f"{torch.__name__}.{path}")


@needs_oracle
@pytest.mark.parametrize("path", [path for path in MODULES if not path.startswith(OTHER)])
def test_pytorch_has_the_names(path: str) -> None:
    import torch

    rows = names.read().rows[path]
    others = {each.partition("=")[0] for row in rows if row.kind in ("of", "from") for each in row.names}
    ours, theirs = of(tinytorch, path), of(torch, path)
    for name, value in names.names_of(f"tinytorch.{path}").items():
        mine = getattr(ours, name)  # (another object, if another test has imported the module anew)
        settable = not callable(value) and not isinstance(value, types.ModuleType)
        assert mine is value or settable or (type(mine), mine.__name__) == (type(value), value.__name__)
        if name in others or isinstance(value, types.ModuleType):
            continue
        if (path in SHARED or name in LACKING) and not hasattr(theirs, name):
            continue
        other = getattr(theirs, name)
        if inspect.isclass(value) and issubclass(value, enum.Enum):
            assert [(each.name, each.value) for each in value] == [(each.name, each.value) for each in other], name
        elif inspect.isclass(value) and issubclass(value, BaseException):
            assert value.__base__.__name__ in [each.__name__ for each in other.__mro__], name
        elif not inspect.isclass(value) and not callable(value) and not isinstance(value, types.SimpleNamespace):
            assert type(value) is type(other), name


@pytest.mark.parametrize("path", MODULES)
def test_what_is_used_says_why_it_is_not_there(path: str) -> None:
    module, table = of(tinytorch, path), names.read()
    for entry, reason in [
        (name, table.equal[row.beside]) for row in table.rows[path] if row.kind == "missing" for name in row.names
    ]:
        owner, dot, method = entry.partition(".")
        value = getattr(getattr(module, owner), method) if dot else getattr(module, owner)
        with pytest.raises(NotImplementedError, match=rf"torch\.{path}\.{entry}: {reason}"):
            value(1, a=2)
        if inspect.isclass(value):
            assert not isinstance(tinytorch.ones(1), value)
            assert issubclass(type("Derived", (value,), {}), value)
            assert pickle.loads(pickle.dumps(value)) is value


def test_files_of_compat_are_submodules_of_the_package() -> None:
    files = {file.name for file in pkgutil.iter_modules([compat.FOLDER])}
    assert {"cuda", "backends", "names", "_C"} <= files and not files & {path.name for path in ROOT.iterdir()}
    for name in sorted(files):
        module = of(tinytorch, name)
        assert module.__name__ == f"tinytorch.{name}" and Path(module.__file__).is_relative_to(compat.FOLDER)
        assert importlib.import_module(f"tinytorch.compat.{name}") is module


def test_a_renamed_module_is_the_module_itself() -> None:
    for name in names.read().renamed():
        assert not (ROOT / name.replace(".", "/")).with_suffix(".py").exists()
    # (In another process: an import enters the module into its package, as `torch.device`, in place of the class.)
    program = """
import importlib, sys, tinytorch.compat.names
for name, target in tinytorch.compat.names.read().renamed().items():
    module = importlib.import_module(f"tinytorch.{name}")
    assert module is sys.modules[f"tinytorch.{target}"] and module.__name__ == f"tinytorch.{target}", name
    assert module.__spec__.name == module.__name__, name
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_what_answers() -> None:
    torch = tinytorch
    assert torch.distributed.rpc.is_available() is False and torch.mtia.is_available() is False
    assert of(torch, "fx._compatibility").compatibility(is_backward_compatible=True)(len) is len
    assert issubclass(torch.jit.TracerWarning, Warning)
    assert of(torch, "distributed._tensor").DTensor is of(torch, "distributed.tensor").DTensor
    assert of(torch, "distributed.distributed_c10d") is torch.distributed
    assert torch.utils.data.functional_datapipe("shuffle")(len) is len
    with pytest.raises(NotImplementedError, match="no data pipes"):
        type("Pipe", (torch.utils.data.IterDataPipe,), {})()
    with pytest.raises(ModuleNotFoundError):
        of(torch, "distributed.nothing")
    with pytest.raises(AttributeError):
        torch.distributed.nothing  # noqa: B018


def test_decorators_of_contexts() -> None:
    def program(torch: Any) -> Any:
        found: list[Any] = []

        class Context(of(torch, "utils._contextlib")._DecoratorContextManager):
            def __init__(self, number: int) -> None:
                self.number = number

            def __enter__(self) -> None:
                found.append(self.number)

            def __exit__(self, *exc: object) -> None:
                found.append(-self.number)

            def clone(self) -> Any:
                return Context(self.number + 1)

        @Context(3)
        def number() -> int:
            return 5

        @Context(7)
        def numbers() -> Any:
            yield 1

        return [number(), number(), list(numbers()), found, type(torch.no_grad().clone()).__name__]

    same_as_pytorch(program)


def functorch(torch: Any) -> Any:
    return importlib.import_module("functorch" if torch.__name__ == "torch" else "tinytorch.functorch")


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("norm", [False, True])
def test_modules_as_functions(norm: bool) -> None:
    def program(torch: Any) -> Any:
        own = functorch(torch)
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(2, 3), *([torch.nn.BatchNorm1d(3)] if norm else []))
        make = own.make_functional_with_buffers if norm else own.make_functional
        x = torch.tensor([[1.0, 2.0], [0.5, -1.0]])
        found = []
        for detached in (False, True):
            function, *state = make(model, disable_autograd_tracking=detached)
            found += [function.param_names, [p.requires_grad for p in state[0]], len(state), function(*state, x)]
            found.append(state[0][0] is not model[0].weight)
        double = tuple(2 * p for p in state[0])
        return [*found, function(double, *state[1:], x), own.make_functional(model) if norm else 0]

    same_as_pytorch(program, 1e-5, 1e-5)


ENSEMBLES: list[Any] = [
    lambda torch: [torch.nn.Linear(2, 3) for _ in range(3)],
    lambda torch: [],
    lambda torch: [torch.nn.Linear(2, 3), torch.nn.ReLU()],
    lambda torch: [torch.nn.Linear(2, 3).eval(), torch.nn.Linear(2, 3)],
]


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("models", ENSEMBLES)
def test_ensembles(models: Any) -> None:
    def program(torch: Any) -> Any:
        torch.manual_seed(1)
        function, params, buffers = functorch(torch).combine_state_for_ensemble(models(torch))
        out = functorch(torch).vmap(function, (0, 0, None))(params, buffers, torch.ones(2))
        return [out.detach(), [p.shape == q.shape for p, q in zip(params, params, strict=True)], len(buffers)]

    same_as_pytorch(program, 1e-5, 1e-5)


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("name", "functionalize grad vmap grad_and_value".split())
def test_old_transforms(name: str) -> None:
    def program(torch: Any) -> Any:
        return getattr(functorch(torch), name)(lambda x: (x * x * x).sum())(torch.tensor([1.0, 2.0]))

    same_as_pytorch(program)  # the number of warnings, too


def test_old_functions_of_modules_warn() -> None:
    with pytest.warns(FutureWarning, match="functional_call"):
        functorch(tinytorch).make_functional(tinytorch.nn.ReLU())
