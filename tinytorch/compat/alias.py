"""The name `torch`: how a program that was written for PyTorch imports tinytorch by that name.

`install` sets the name up in a process, `as_torch` in an environment. Processes that `python -m tinytorch` starts (see
`__main__.py`) have the folder `as_torch` on their path; its modules, which `as_torch` copies into an environment, call
`install`.
"""

from __future__ import annotations

import ast
import base64
import hashlib
import importlib
import importlib.metadata
import importlib.util
import os
import re
import subprocess
import sys
import sysconfig
from contextlib import suppress
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import tinytorch
from tinytorch.compat import AliasFinder
from tinytorch.compat.names import elsewhere, names_of, packages, read
from tinytorch.core import names
from tinytorch.core.warning import warn
from tinytorch.ops.register import Builtin, functions

__all__ = ["FOLDER", "as_torch", "install", "load_ipython_extension", "undo"]

#: A folder that stands for PyTorch on Python's path: its modules, and the metadata that packaging tools read.
FOLDER = Path(__file__).parent / "as_torch"
_PACKAGES = ("torch", "functorch")
PACKAGE = Path(tinytorch.__file__).parent
#: By module of PyTorch's, "" being `torch` itself, the modules of ours whose public classes belong to it there, and
#: single classes, where that is another module.
# fmt: off
_BELONGING = {
    "": (
        "absent.OutOfMemoryError checks distributed.futures jit.ScriptModule kernels.dtypes kernels.limits legacy "
        "named ops.storage serialization.PyTorchFileReader streams"
    ),
    "_C": (
        "kernels.decompose._LinAlgError ops.overrides.DisableTorchFunction "
        "ops.overrides.DisableTorchFunctionSubclass ops.random.Generator"
    ),
    "_C._distributed_c10d": "distributed._reducer",
    "_ops": "fx._operators",
    "_subclasses.fake_tensor": "_subclasses",
    "_utils": "data.worker.ExceptionWrapper",
    "accelerator": "absent.device_index",
    "autograd.anomaly_mode": "autograd.anomaly",
    "autograd.graph": "autograd.saved core.graph.Node",
    "cuda": "absent.StreamContext absent.device_of",
    "cuda.streams": "cuda.Event cuda.Stream",
    "distributed": "distributed.work",
    "distributed.algorithms.ddp_comm_hooks": "distributed.comm_hooks",
    "distributed.algorithms.ddp_comm_hooks.post_localSGD_hook": "distributed.comm_hooks.PostLocalSGDState",
    "distributed.algorithms.ddp_comm_hooks.powerSGD_hook": "distributed.comm_hooks.PowerSGDState",
    "distributed.algorithms.join": "distributed._join",
    "distributed.algorithms.model_averaging.averagers": "distributed.averaging",
    "distributed.checkpoint.api": "distributed.checkpoint.utils.CheckpointException",
    "distributed.checkpoint.default_planner": (
        "distributed.checkpoint.planners.DefaultLoadPlanner distributed.checkpoint.planners.DefaultSavePlanner"
    ),
    "distributed.checkpoint.stateful": "distributed.checkpoint.utils.Stateful",
    "distributed.distributed_c10d": (
        "distributed.groups distributed.messages distributed.stores.PrefixStore distributed.stores.Store "
        "distributed.work.Work"
    ),
    "distributed.elastic.multiprocessing.errors": "distributed.errors",
    "distributed.fsdp": (
        "distributed.fsdp.CPUOffloadPolicy distributed.fsdp.FSDPModule distributed.fsdp.MixedPrecisionPolicy "
        "distributed.fsdp.OffloadPolicy"
    ),
    "distributed.fsdp.api": "distributed.fsdp",
    "distributed.fsdp.fully_sharded_data_parallel": (
        "distributed.fsdp.FullyShardedDataParallel distributed.fsdp.OptimStateKeyType"
    ),
    "distributed.tensor.placement_types": "distributed.placements",
    "distributions.bernoulli": "distributions.discrete.Bernoulli",
    "distributions.beta": "distributions.continuous.Beta",
    "distributions.binomial": "distributions.discrete.Binomial",
    "distributions.categorical": "distributions.discrete.Categorical",
    "distributions.cauchy": "distributions.continuous.Cauchy",
    "distributions.chi2": "distributions.continuous.Chi2",
    "distributions.continuous_bernoulli": "distributions.continuous.ContinuousBernoulli",
    "distributions.dirichlet": "distributions.continuous.Dirichlet",
    "distributions.exp_family": "distributions.distribution.ExponentialFamily",
    "distributions.exponential": "distributions.continuous.Exponential",
    "distributions.fishersnedecor": "distributions.continuous.FisherSnedecor",
    "distributions.gamma": "distributions.continuous.Gamma",
    "distributions.generalized_pareto": "distributions.continuous.GeneralizedPareto",
    "distributions.geometric": "distributions.discrete.Geometric",
    "distributions.gumbel": "distributions.transformed.Gumbel",
    "distributions.half_cauchy": "distributions.transformed.HalfCauchy",
    "distributions.half_normal": "distributions.transformed.HalfNormal",
    "distributions.independent": "distributions.composed.Independent",
    "distributions.inverse_gamma": "distributions.transformed.InverseGamma",
    "distributions.kumaraswamy": "distributions.transformed.Kumaraswamy",
    "distributions.laplace": "distributions.continuous.Laplace",
    "distributions.lkj_cholesky": "distributions.multivariate.LKJCholesky",
    "distributions.log_normal": "distributions.transformed.LogNormal",
    "distributions.logistic_normal": "distributions.transformed.LogisticNormal",
    "distributions.lowrank_multivariate_normal": "distributions.multivariate.LowRankMultivariateNormal",
    "distributions.mixture_same_family": "distributions.discrete.MixtureSameFamily",
    "distributions.multinomial": "distributions.discrete.Multinomial",
    "distributions.multivariate_normal": "distributions.multivariate.MultivariateNormal",
    "distributions.negative_binomial": "distributions.discrete.NegativeBinomial",
    "distributions.normal": "distributions.continuous.Normal",
    "distributions.one_hot_categorical": (
        "distributions.discrete.OneHotCategorical "
        "distributions.discrete.OneHotCategoricalStraightThrough"
    ),
    "distributions.pareto": "distributions.transformed.Pareto",
    "distributions.poisson": "distributions.discrete.Poisson",
    "distributions.relaxed_bernoulli": (
        "distributions.discrete.LogitRelaxedBernoulli "
        "distributions.discrete.RelaxedBernoulli"
    ),
    "distributions.relaxed_categorical": (
        "distributions.discrete.ExpRelaxedCategorical "
        "distributions.discrete.RelaxedOneHotCategorical"
    ),
    "distributions.studentT": "distributions.continuous.StudentT",
    "distributions.transformed_distribution": "distributions.composed.TransformedDistribution",
    "distributions.uniform": "distributions.continuous.Uniform",
    "distributions.von_mises": "distributions.continuous.VonMises",
    "distributions.weibull": "distributions.transformed.Weibull",
    "distributions.wishart": "distributions.multivariate.Wishart",
    "export.dynamic_shapes": "fx.export.dynamic_shapes",
    "export.exported_program": "fx.export.exported_program",
    "export.graph_signature": "fx.export.graph_signature",
    "fx.graph": "fx._codegen",
    "fx.passes.infra.pass_base": "fx.passes.pass_base",
    "nn.parallel.data_parallel": "nn.modules.parallel",
    "onnx": "fx.onnx.errors.OnnxExporterError fx.onnx.program",
    "onnx.errors": "fx.onnx.errors",
    "optim": "optim.adafactor.Adafactor optim.muon.Muon",
    "overrides": "ops.overrides",
    "profiler": "inspect.profiler",
    "serialization": "serialization.storage",
    "sparse": "sparse.invariants",
    "storage": "ops.storage.TypedStorage ops.storage.UntypedStorage",
    "utils._pytree": "func.pytree",
    "utils.data._utils.collate": "data.collate.default_collate data.collate.default_convert",
    "utils.data._utils.worker": "data.worker",
    "utils.data.dataloader": "data.dataloader",
    "utils.data.dataset": "data.dataset",
    "utils.data.sampler": "data.sampler",
    "utils.hooks": "autograd.hooks",
}
# fmt: on
_HOMES = {own: home for home, listed in _BELONGING.items() for own in listed.split()}


class _Alias(AliasFinder):
    """Finds a package of ours, and its submodules, under another package's name."""

    def __init__(self, name: str, own: str) -> None:
        super().__init__(lambda fullname: own + fullname[len(name) :] if self._is_alias(fullname) else None)
        self.name, self.own = name, own

    def _is_alias(self, fullname: str) -> bool:
        is_submodule = fullname.startswith(f"{self.name}.") and sys.modules[self.name] is sys.modules.get(self.own)
        return fullname == self.name or is_submodule


class _ProgramAlias(_Alias):
    """An alias for programs only: an installed package that finds torchvision relies on all of it."""

    def _is_alias(self, fullname: str) -> bool:
        frame: Any = sys._getframe()
        finders = ("tinytorch", "tinytorch.compat")
        while frame and ("importlib" in frame.f_code.co_filename or frame.f_globals.get("__package__") in finders):
            frame = frame.f_back
        packages = ("site-packages", "dist-packages")
        by_package = bool(frame) and not set(packages).isdisjoint(Path(frame.f_code.co_filename).parts)
        return super()._is_alias(fullname) and not (by_package and fullname == self.name)


def _name(own: str, module: ModuleType) -> None:
    """Give a module its name below `torch`, and what it defines the name of the module that defines it in PyTorch."""
    sys.modules[f"torch{own.removeprefix('tinytorch')}"] = module
    for value in list(vars(module).values()):
        if isinstance(value, type | FunctionType | Builtin):
            _call(value)


def _call(value: Any) -> None:
    root, _, own = value.__module__.partition(".")
    if root == "tinytorch":
        names.renamed[id(value)] = value.__module__
        home = _HOMES.get(own, own) if isinstance(value, type) and value.__name__[0] != "_" else own
        value.__module__ = f"torch.{_HOMES.get(f'{own}.{value.__qualname__}', home)}".rstrip(".")


class _Naming:
    """Finds the modules of the package by the other finders, and names what they define once their code has run."""

    def find_spec(self, fullname: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the specification of a module of the package; None for any other module."""
        if not fullname.startswith("tinytorch."):
            return None
        others = [finder for finder in sys.meta_path if finder is not self]
        specs = (finder.find_spec(fullname, path, target) for finder in others)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is not None and spec.loader is not None and not isinstance(spec.loader, AliasFinder):
            loader: Any = _NamingLoader(spec.loader)
            spec.loader = loader
        return spec


class _NamingLoader:
    """The loader of a module of the package, after which its classes and functions get their names in `torch`."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module's code."""
        self._loader.exec_module(module)
        _name(module.__name__, module)


_BEFORE = [_Alias("torch", "tinytorch"), _Alias("functorch", "tinytorch.functorch")]
_AFTER = [_ProgramAlias("torchvision", "tinytorch.torchvision")]  # the installed torchvision has precedence


def install() -> None:
    """Make `torch`, and each `torch.x`, names of tinytorch and its modules in this process and those that it spawns.

    The names hold for all modules imported afterwards. `torchvision` is the installed package, or the part of it that
    tinytorch implements. `torch.__name__` is then "torch"; modules keep their files. A second call has no effect.

    Raises:
        RuntimeError: PyTorch has been imported already.

    Example:
        >>> import subprocess, sys
        >>> program = "from tinytorch import compat; compat.install(); import torch.nn; print(torch.nn.ReLU())"
        >>> print(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout)
        ReLU()
        <BLANKLINE>
    """
    if _BEFORE[0] in sys.meta_path:
        return
    if "torch" in sys.modules:
        raise RuntimeError("torch has been imported already, and is PyTorch: call tinytorch.compat.install() before")
    spec = importlib.util.find_spec("torch")  # from the path: the aliases are not installed yet
    ours = (FOLDER / "torch" / "__init__.py").read_bytes()
    if spec is None or not spec.has_location or Path(str(spec.origin)).read_bytes() != ours:
        sys.path.insert(1, str(FOLDER))  # for spawned processes, and for packaging's search of metadata
    tinytorch.__name__ = "torch"
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "tinytorch":
            _name(name, module)
    for function in functions.values():
        _call(function)
    sys.meta_path[:] = [*_BEFORE, _Naming(), *sys.meta_path, *_AFTER]
    importlib.import_module("multiprocessing.connection")  # programs use it without importing it: PyTorch imports it


def load_ipython_extension(ipython: Any) -> None:
    """Call `compat.install` for a notebook that says `%load_ext tinytorch`."""
    install()


# An environment -----------------------------------------------------------------------------------


def _installed() -> list[importlib.metadata.Distribution]:
    """Return the distributions named torch, without the one in `FOLDER`."""
    distributions = importlib.metadata.distributions(name="torch")
    return [distribution for distribution in distributions if Path(str(distribution.locate_file(""))) != FOLDER]


def _is_ours(distribution: importlib.metadata.Distribution) -> bool:
    return "tinytorch" in distribution.version


def as_torch() -> list[Path]:
    """Write a distribution named torch into the environment, whose module `torch` is tinytorch; return its files.

    The environment's `pip.conf` gets a constraint that makes pip keep this distribution. Without it pip would install
    PyTorch for a package that requires a later version; with it pip chooses an earlier version of that package.

    Raises:
        RuntimeError: PyTorch is installed, or tinytorch is not installed.
    """
    if all(map(_is_ours, _installed())):
        undo()  # of another version, perhaps
    site = Path(sysconfig.get_path("purelib"))
    existing = [str(distribution.locate_file("torch")) for distribution in _installed()]
    existing += [str(site / name) for name in _PACKAGES if (site / name).exists()]
    if existing:
        raise RuntimeError(f"PyTorch is installed in this environment: {existing[0]}. Take a new one, or remove it")
    if subprocess.run([sys.executable, "-EPc", "import tinytorch"], capture_output=True).returncode:
        raise RuntimeError(f"tinytorch is not installed for {sys.executable}: install it there before")

    settings = Path(sys.prefix, "pip.ini" if os.name == "nt" else "pip.conf")
    metadata = (FOLDER / "torch.dist-info" / "METADATA").read_text("utf-8")
    version = f"{tinytorch.__version__}"
    info = f"torch-{version}.dist-info"
    contents = {f"{name}/__init__.py": (FOLDER / name / "__init__.py").read_text("utf-8") for name in _PACKAGES}
    contents |= {f"torch/{path}": text for path, text in stubs().items()}
    contents[f"{info}/METADATA"] = metadata
    contents[f"{info}/WHEEL"] = "Wheel-Version: 1.0\nGenerator: tinytorch\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    contents[f"{info}/INSTALLER"] = "tinytorch\n"
    contents[f"{info}/constraints.txt"] = f"torch=={version}\n"
    constraint = (site / info / "constraints.txt").as_uri()  # (pip splits paths at spaces)
    if settings.exists():
        warn(f"to keep pip from fetching PyTorch, add 'constraint = {constraint}' to {settings}")
    else:
        contents[os.path.relpath(settings, site)] = f"[global]\nconstraint = {constraint}\n"
    program = Path(sysconfig.get_path("scripts"), "torchrun")
    if os.name != "nt":
        text = f"#!{sys.executable}\nfrom tinytorch.distributed.run import main\n\nmain()\n"
        contents[os.path.relpath(program, site)] = text
    contents[f"{info}/RECORD"] = "".join([f"{path},{_hash(text)}\n" for path, text in contents.items()])
    contents[f"{info}/RECORD"] += f"{info}/RECORD,,\n"
    written = []
    try:
        for path, text in contents.items():
            (site / path).parent.mkdir(parents=True, exist_ok=True)
            written.append(Path(os.path.normpath(site / path)))
            written[-1].write_text(text, "utf-8", newline="\n")
            if text.startswith("#!"):
                written[-1].chmod(0o755)
    except BaseException:
        _remove(written)
        raise
    return written


# Types --------------------------------------------------------------------------------------------


def stubs() -> dict[str, str]:
    """Return the files, by path, by which type checkers and editors know `torch` and each `torch.x` as tinytorch.

    A stub imports the names of the module of tinytorch, whose sources have the types and the docstrings.
    """
    targets = {".".join(path): own for path, own in _modules().items()}
    files = {"py.typed": ""}
    for path, own in {"": "tinytorch", **targets}.items():
        name = path.replace(".", "/")
        children = sorted(each.rpartition(".")[2] for each in targets if path and each.rpartition(".")[0] == path)
        text = _root_stub(targets) if not path else _stub(own, path, children)
        files[f"{name}/__init__.pyi".lstrip("/")] = text  # (in a folder of its own pyright misses no source)
    return files


def _modules() -> dict[tuple[str, ...], str]:
    """Return the modules of `torch`, as parts of their names, with those of tinytorch; "" where there is no file."""
    found: dict[tuple[str, ...], str] = {}
    for root, package in ((PACKAGE, "tinytorch"), (FOLDER.parent, "tinytorch.compat")):
        for file in root.rglob("*.py"):
            parts = file.relative_to(root).with_suffix("").parts
            parts = parts[:-1] if parts[-1] == "__init__" else parts
            hidden = not parts or parts[0] in (*tinytorch._HIDDEN, "as_torch") or parts[-1].startswith("__")
            if not hidden:
                found.setdefault(parts, ".".join((package, *parts)))
    renamed = {path: f"tinytorch.{own}" for path, own in read().renamed().items()}
    for path in packages():
        found.setdefault(tuple(path.split(".")), renamed.get(path, ""))
    return dict(sorted(found.items()))


def _root_stub(targets: dict[str, str]) -> str:
    """Return the stub of `torch`: that of tinytorch, but with the stubs here as its submodules."""
    top = [path for path in targets if "." not in path]
    lines = (PACKAGE / "__init__.pyi").read_text("utf-8").splitlines()
    bound = re.compile(r"(?:from [\w.]+ import \w+ as )?(\w+)(?: = _\1|: Any)?")
    kept = [line for line in lines if not ((match := bound.fullmatch(line)) and match[1] in top)]
    return "\n".join([*kept[1:], *(f"from torch import {name} as {name}" for name in top), ""])


def _stub(own: str, path: str, children: list[str]) -> str:
    """Return the stub of `torch.{path}`: the names of the module `own`, and submodules."""
    lines = [f"from torch.{path} import {child} as {child}" for child in children]
    known = set(children)
    spec = importlib.util.find_spec(own) if own else None
    if spec is not None and spec.origin:
        tree = ast.parse(Path(spec.origin).read_text("utf-8"))
        bound = [name for node in tree.body for name in _bound(node)]
        private = [name for name in bound if re.match(r"_[A-Za-z]", name)]
        listed = [node.value for node in tree.body if isinstance(node, ast.Assign) and "__all__" in _bound(node)]
        if any(not isinstance(each, ast.List) or not all(map(_is_constant, each.elts)) for each in listed):
            private += [each for each in importlib.import_module(own).__all__ if each not in children]  # computed
        lines += [f"from {own} import *", *(f"from {own} import {each} as {each}" for each in dict.fromkeys(private))]
        known |= {*bound, *private}
    path = read().equal.get(path, path)
    homes = elsewhere(path)
    others = [name for name in names_of(f"tinytorch.{path}") if name not in known and name != "__getattr__"]
    for name in others:
        home, _, old = homes.get(name, "").rpartition(".")
        lines.append(imported(in_files(home), old, name) if old else f"{name}: Any")
    return "".join(f"{line}\n" for line in ["from typing import Any", *lines])


def imported(module: str, old: str, name: str) -> str:
    """Return the lines of a stub by which a module exports an object of another one (only `x as x` exports)."""
    if old == name:
        return f"from {module} import {name} as {name}"
    return f"from {module} import {old} as _{name}\n{name} = _{name}"


def in_files(path: str) -> str:
    """Return the name that a module below `tinytorch` has for those who read files."""
    root = path.partition(".")[0]
    below = ".compat" if any(FOLDER.parent.glob(f"{root}.py")) else ""
    return f"tinytorch{below}.{path}".rstrip(".")


def _is_constant(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant)


def _bound(node: ast.stmt) -> list[str]:
    """Return the names of the functions, classes and values that a statement defines."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _hash(text: str) -> str:
    """Return the hash and the length of a file, as a wheel's record has them."""
    data = text.encode()
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
    return f"sha256={digest},{len(data)}"


def undo() -> list[Path]:
    """Remove from the environment the files that `as_torch` wrote; return their paths.

    Raises:
        RuntimeError: the installed distribution named torch is PyTorch.
    """
    removed = []
    for distribution in _installed():
        if not _is_ours(distribution):
            raise RuntimeError(f"what is installed here is PyTorch: {distribution.locate_file('torch')}")
        removed += [Path(os.path.normpath(path.locate())) for path in distribution.files or []]
    _remove(removed)
    return removed


def _remove(files: list[Path]) -> None:
    """Remove files, their byte code, and the folders that are empty then."""
    for file in files:
        for path in [file, *file.parent.glob(f"__pycache__/{file.stem}.*.pyc")]:
            path.unlink(missing_ok=True)
    for folder in sorted({folder for file in files for folder in _folders(file)}, key=_depth, reverse=True):
        with suppress(OSError):  # not empty, or not present
            folder.rmdir()


def _depth(path: Path) -> int:
    return len(path.parts)


def _folders(file: Path) -> list[Path]:
    """Return the folders that may be empty without a file: its own, those of stubs above it, and that of byte code."""
    stubs = [each for each in file.parents if _PACKAGES[0] in each.parts] if file.suffix == ".pyi" else []
    return [file.parent / "__pycache__", file.parent, *stubs]
