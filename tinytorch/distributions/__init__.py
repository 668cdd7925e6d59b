"""Probability distributions (`torch.distributions`): sampling, reparameterized gradients, densities, divergences."""

from tinytorch.distributions import constraints, kl, transforms, utils  # noqa: F401  (public names)
from tinytorch.distributions.bernoulli import Bernoulli
from tinytorch.distributions.beta import Beta
from tinytorch.distributions.binomial import Binomial
from tinytorch.distributions.categorical import Categorical
from tinytorch.distributions.cauchy import Cauchy
from tinytorch.distributions.chi2 import Chi2
from tinytorch.distributions.constraint_registry import biject_to, transform_to
from tinytorch.distributions.continuous_bernoulli import ContinuousBernoulli
from tinytorch.distributions.dirichlet import Dirichlet
from tinytorch.distributions.distribution import Distribution
from tinytorch.distributions.exp_family import ExponentialFamily
from tinytorch.distributions.exponential import Exponential
from tinytorch.distributions.fishersnedecor import FisherSnedecor
from tinytorch.distributions.gamma import Gamma
from tinytorch.distributions.generalized_pareto import GeneralizedPareto
from tinytorch.distributions.geometric import Geometric
from tinytorch.distributions.gumbel import Gumbel
from tinytorch.distributions.half_cauchy import HalfCauchy
from tinytorch.distributions.half_normal import HalfNormal
from tinytorch.distributions.independent import Independent
from tinytorch.distributions.inverse_gamma import InverseGamma
from tinytorch.distributions.kl import kl_divergence, register_kl
from tinytorch.distributions.kumaraswamy import Kumaraswamy
from tinytorch.distributions.laplace import Laplace
from tinytorch.distributions.lkj_cholesky import LKJCholesky
from tinytorch.distributions.log_normal import LogNormal
from tinytorch.distributions.logistic_normal import LogisticNormal
from tinytorch.distributions.lowrank_multivariate_normal import LowRankMultivariateNormal
from tinytorch.distributions.mixture_same_family import MixtureSameFamily
from tinytorch.distributions.multinomial import Multinomial
from tinytorch.distributions.multivariate_normal import MultivariateNormal
from tinytorch.distributions.negative_binomial import NegativeBinomial
from tinytorch.distributions.normal import Normal
from tinytorch.distributions.one_hot_categorical import OneHotCategorical, OneHotCategoricalStraightThrough
from tinytorch.distributions.pareto import Pareto
from tinytorch.distributions.poisson import Poisson
from tinytorch.distributions.relaxed_bernoulli import RelaxedBernoulli
from tinytorch.distributions.relaxed_categorical import RelaxedOneHotCategorical
from tinytorch.distributions.studentT import StudentT
from tinytorch.distributions.transformed_distribution import TransformedDistribution
from tinytorch.distributions.transforms import *  # noqa: F403
from tinytorch.distributions.transforms import __all__ as _transforms
from tinytorch.distributions.uniform import Uniform
from tinytorch.distributions.von_mises import VonMises
from tinytorch.distributions.weibull import Weibull
from tinytorch.distributions.wishart import Wishart

__traced_as__ = "trusted"  # by `torch.compile`

__all__ = [
    "Bernoulli", "Beta", "Binomial", "Categorical", "Cauchy", "Chi2", "ContinuousBernoulli", "Dirichlet",
    "Distribution", "Exponential", "ExponentialFamily", "FisherSnedecor", "Gamma", "GeneralizedPareto", "Geometric",
    "Gumbel", "HalfCauchy", "HalfNormal", "Independent", "InverseGamma", "Kumaraswamy", "LKJCholesky", "Laplace",
    "LogNormal", "LogisticNormal", "LowRankMultivariateNormal", "MixtureSameFamily", "Multinomial",
    "MultivariateNormal", "NegativeBinomial", "Normal", "OneHotCategorical", "OneHotCategoricalStraightThrough",
    "Pareto", "Poisson", "RelaxedBernoulli", "RelaxedOneHotCategorical", "StudentT", "TransformedDistribution",
    "Uniform", "VonMises", "Weibull", "Wishart", "biject_to", "kl_divergence", "register_kl", "transform_to",
]  # fmt: skip
__all__ += _transforms
__all__.sort()
