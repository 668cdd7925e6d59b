"""Probability distributions (`torch.distributions`): sampling, reparameterized gradients, densities, divergences."""

# ruff: noqa: F403

import importlib
from typing import TYPE_CHECKING

from tinytorch.distributions import composed, continuous, discrete, distribution, kl, multivariate, transformed
from tinytorch.distributions import constraints as constraints
from tinytorch.distributions import transforms as transforms
from tinytorch.distributions import utils as utils
from tinytorch.distributions.composed import *
from tinytorch.distributions.constraint_registry import biject_to as biject_to
from tinytorch.distributions.constraint_registry import transform_to as transform_to
from tinytorch.distributions.continuous import *
from tinytorch.distributions.discrete import *
from tinytorch.distributions.distribution import *
from tinytorch.distributions.kl import *
from tinytorch.distributions.multivariate import *
from tinytorch.distributions.transformed import *
from tinytorch.distributions.transforms import *

__traced_as__ = "trusted"  # by `torch.compile`

if not TYPE_CHECKING:  # (type checkers export starred names, unless an `__all__` that they cannot evaluate hides them)
    _FILES = composed, continuous, discrete, distribution, kl, multivariate, transformed, transforms
    __all__ = sorted(["biject_to", "transform_to", *(name for file in _FILES for name in file.__all__)])

    def __getattr__(name):
        # PyTorch has a file for each distribution: those names are other names of the files here (`tinytorch.compat`).
        try:
            return importlib.import_module(f"{__name__}.{name}")
        except ModuleNotFoundError:
            raise importlib.import_module("tinytorch.ops.left_out").error(__name__, name) from None
