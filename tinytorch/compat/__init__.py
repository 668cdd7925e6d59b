"""What exists for other devices, older programs and private names of PyTorch: nothing else in the package imports it.

A file of this folder is a submodule of `tinytorch` itself: `compat/cuda/__init__.py` is `tinytorch.cuda`, and
`tinytorch.compat.cuda` is another name of the same module. `Finder`, which Python asks for submodules of `tinytorch`
that it has not found, looks in three places:

| a module that is | is found in |
|---|---|
| another name of a module | `RENAMED` |
| a file of this folder | the folder |
| only names that tinytorch does not implement | the table in `named.py`, which is read then |

`install` makes `torch` another name of tinytorch (`alias.py`).
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

FOLDER = __file__.rpartition("__init__")[0]
__path__ = []  # so that no file of the folder is imported twice, under two names

#: PyTorch's names of modules that have another name here.
RENAMED = {
    "_tensor": "core.tensor",
    "__future__": "nn.modules._conversion",
    "distributed.constants": "distributed",
    "distributed.distributed_c10d": "distributed",
    "export.dynamic_shapes": "fx.export.dynamic_shapes",
    "export.exported_program": "fx.export.exported_program",
    "export.graph_signature": "fx.export.graph_signature",
    "futures": "distributed.futures",
    "fx.passes.infra.pass_manager": "fx.passes.pass_manager",
    "fx.passes.utils.matcher_utils": "fx.passes.matcher_utils",
    "nn._reduction": "nn.functional.reduction",
    "nn.parallel.distributed": "distributed.data_parallel",
    "onnx.errors": "fx.onnx.errors",
    "profiler": "inspect.profiler",
    "quantization": "ao.quantization",
    "return_types": "ops.return_types",
    "utils._contextlib": "autograd.grad_mode",
    "utils.data._utils.fetch": "data.worker",
    "utils.data._utils.worker": "data.worker",
}
#: PyTorch has a file for each distribution: those files with their classes, by the module that has them here.
DISTRIBUTIONS = {
    "composed": "independent Independent, transformed_distribution TransformedDistribution",
    "continuous": """
        beta Beta, cauchy Cauchy, chi2 Chi2, continuous_bernoulli ContinuousBernoulli, dirichlet Dirichlet,
        exponential Exponential, fishersnedecor FisherSnedecor, gamma Gamma, generalized_pareto GeneralizedPareto,
        laplace Laplace, normal Normal, studentT StudentT, uniform Uniform, von_mises VonMises
    """,
    "discrete": """
        bernoulli Bernoulli, binomial Binomial, categorical Categorical, geometric Geometric,
        mixture_same_family MixtureSameFamily, multinomial Multinomial, negative_binomial NegativeBinomial,
        one_hot_categorical OneHotCategorical OneHotCategoricalStraightThrough, poisson Poisson,
        relaxed_bernoulli LogitRelaxedBernoulli RelaxedBernoulli,
        relaxed_categorical ExpRelaxedCategorical RelaxedOneHotCategorical
    """,
    "distribution": "exp_family ExponentialFamily",
    "multivariate": """
        lkj_cholesky LKJCholesky, lowrank_multivariate_normal LowRankMultivariateNormal,
        multivariate_normal MultivariateNormal, wishart Wishart
    """,
    "transformed": """
        gumbel Gumbel, half_cauchy HalfCauchy, half_normal HalfNormal, inverse_gamma InverseGamma,
        kumaraswamy Kumaraswamy, log_normal LogNormal, logistic_normal LogisticNormal, pareto Pareto, weibull Weibull
    """,
}
#: By the name of a class here, the module that has it in PyTorch.
HOMES = {
    f"distributions.{own}.{name}": f"distributions.{file}"
    for own, files in DISTRIBUTIONS.items()
    for file, *names in map(str.split, files.split(","))
    for name in names
}
RENAMED |= {file: own.rpartition(".")[0] for own, file in HOMES.items()}


class AliasFinder:
    """Finds a module under another name: the same module object then stands under both names in `sys.modules`.

    Not derived from `importlib.abc`, whose import is slow.

    Args:
        target: returns the module's own name, given the other one; None for names that this finder does not know.
    """

    def __init__(self, target: Callable[[str], str | None]) -> None:
        self._target = target

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the specification of a module under its other name."""
        name = self._target(fullname)
        if name is None:
            return None
        from importlib.util import find_spec  # imports more than most programs need

        original = find_spec(name)
        if original is None:
            return None
        loader: Any = self
        spec = ModuleSpec(fullname, loader, origin=original.origin, loader_state=original)
        spec.submodule_search_locations = original.submodule_search_locations
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module, imported under its own name."""
        return importlib.import_module(spec.loader_state.name)

    def exec_module(self, module: ModuleType) -> None:
        """Restore the module's own specification: its code has run already."""
        spec: Any = module.__spec__
        while isinstance(spec.loader, AliasFinder):  # (a name of `torch` may be one of another name here)
            spec = spec.loader_state
        module.__spec__ = spec

    def get_code(self, fullname: str) -> Any:
        """Return the module's code, for `python -m`."""
        spec = self.find_spec(fullname)
        assert spec is not None
        original = spec.loader_state
        return original.loader.get_code(original.name)


def _own_name(fullname: str) -> str | None:
    package, _, name = fullname.partition(".")
    name = RENAMED.get(name) or (name[7:] if name.startswith("compat.") else "")
    return f"tinytorch.{name}" if package == "tinytorch" and name else None


class Finder(AliasFinder):
    """Finds the submodules of `tinytorch` whose names are not the paths of files (see the head of this module)."""

    def __init__(self) -> None:
        super().__init__(_own_name)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the specification of a submodule of `tinytorch`; None for any other module.

        Raises:
            ImportError: the submodule is one of torchvision's that is not implemented.
        """
        package, _, name = fullname.partition(".")
        if package != "tinytorch":
            return None
        spec = super().find_spec(fullname)
        if spec is None and "." not in name:
            spec = PathFinder.find_spec(fullname, [FOLDER])
        if spec is None or spec.loader is None:  # (a folder without modules has no loader)
            spec = importlib.import_module("tinytorch.named").find_spec(fullname)
        if spec is None and name.startswith("torchvision."):
            torchvision = importlib.import_module("tinytorch.torchvision")
            raise ImportError(torchvision.missing(name.removeprefix("torchvision.")), name=fullname)
        return spec


sys.meta_path.append(Finder())


def __getattr__(name: str) -> Any:
    if name == "install":
        return importlib.import_module("tinytorch.alias").install
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
