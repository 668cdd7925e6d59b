"""Probability distributions (`torch.distributions`): sampling, reparameterized gradients, densities, divergences."""

# ruff: noqa: F403

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

# PyTorch has a file for each distribution: other names of the files here (`tinytorch.compat` makes modules of them).
exp_family = distribution
independent = transformed_distribution = composed
beta = cauchy = chi2 = continuous_bernoulli = dirichlet = exponential = fishersnedecor = gamma = continuous
generalized_pareto = laplace = normal = studentT = uniform = von_mises = continuous
bernoulli = binomial = categorical = geometric = mixture_same_family = multinomial = negative_binomial = discrete
one_hot_categorical = poisson = relaxed_bernoulli = relaxed_categorical = discrete
lkj_cholesky = lowrank_multivariate_normal = multivariate_normal = wishart = multivariate
gumbel = half_cauchy = half_normal = inverse_gamma = kumaraswamy = log_normal = logistic_normal = transformed
pareto = weibull = transformed

if not TYPE_CHECKING:  # (type checkers export starred names, unless an `__all__` that they cannot evaluate hides them)
    _FILES = composed, continuous, discrete, distribution, kl, multivariate, transformed, transforms
    __all__ = sorted(["biject_to", "transform_to", *(name for file in _FILES for name in file.__all__)])
