"""Distributions of counts and categories, their continuous relaxations, and mixtures, whose component is a category."""

from __future__ import annotations

from typing import Any, Self

from tinytorch.autograd.grad_mode import no_grad
from tinytorch.core.tensor import Size, Tensor
from tinytorch.distributions import constraints
from tinytorch.distributions.composed import TransformedDistribution
from tinytorch.distributions.constraints import MixtureSameFamilyConstraint
from tinytorch.distributions.continuous import Gamma
from tinytorch.distributions.distribution import Distribution, ExponentialFamily, _meet
from tinytorch.distributions.transforms import ExpTransform, SigmoidTransform
from tinytorch.distributions.utils import (
    ProbsOrLogits,
    alias,
    broadcast_all,
    checked,
    clamp_probs,
    formula,
    lazy_property,
    logits_to_probs,
    method,
    probs_to_logits,
)
from tinytorch.kernels import dtypes, limits
from tinytorch.kernels.limits import finfo
from tinytorch.nn.functional import binary_cross_entropy_with_logits, logsigmoid, one_hot
from tinytorch.ops.create import empty, full, full_like, ones_like, tensor, zeros, zeros_like
from tinytorch.ops.join import broadcast_tensors
from tinytorch.ops.random import apart, bernoulli, multinomial, rand
from tinytorch.ops.rejection import binomial, poisson
from tinytorch.ops.sequences import arange, eye

__all__ = [
    "Bernoulli", "Binomial", "Categorical", "Geometric", "MixtureSameFamily", "Multinomial", "NegativeBinomial",
    "OneHotCategorical", "OneHotCategoricalStraightThrough", "Poisson", "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
]  # fmt: skip


class Bernoulli(ProbsOrLogits, ExponentialFamily):
    """The distribution of a value that is one with probability `probs` (or log odds `logits`), and else zero.

    Example:
        >>> torch.distributions.Bernoulli(torch.tensor([0.0, 1.0])).sample()
        tensor([0., 1.])
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._set_param(probs, logits)
        super().__init__(self._param.size(), validate_args=validate_args)

    mean = alias("probs")

    @property
    def mode(self) -> Tensor:
        mode = (self.probs >= 0.5).to(self.probs)
        mode[self.probs == 0.5] = float("nan")
        return mode

    variance = formula(lambda self: self.probs * (1 - self.probs))

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        with no_grad():
            return bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none")

    entropy = method(lambda self: binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none"))

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._shape_support(arange(2, dtype=self._param.dtype), expand)

    _natural_params: Any = formula(lambda self: (self.probs.logit(),))
    _log_normalizer = method(lambda self, x: x.exp().log1p())


class Geometric(ProbsOrLogits, Distribution):
    """The number of failures before the first success, in trials with success probability `probs`.

    Example:
        >>> torch.distributions.Geometric(0.25).mean
        tensor(3.)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._set_param(probs, logits)
        super().__init__(self._param.size(), validate_args=validate_args)
        if self._validate_args and probs is not None:
            value = self.probs
            valid = value > 0
            if not valid.all():
                raise ValueError(
                    f"Expected parameter probs ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                    f"{self!r} to be positive but found invalid values:\n{value.detach()[~valid]}"
                )

    mean = formula(lambda self: 1.0 / self.probs - 1.0)
    mode = formula(lambda self: zeros_like(self.probs))
    variance = formula(lambda self: (1.0 / self.probs - 1.0) / self.probs)

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        dtype = self.probs.dtype
        with no_grad():
            u = apart(empty(shape, dtype=dtype)).uniform_(finfo(dtype).tiny, 1)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        value, probs = broadcast_all(value, self.probs)
        probs = probs.masked_fill((probs == 1) & (value == 0), 0)
        return value * (-probs).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        cross_entropy = binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")
        return cross_entropy / self.probs


class Binomial(ProbsOrLogits, Distribution):
    """The number of successes in `total_count` trials with success probability `probs` (or log odds `logits`).

    Example:
        >>> torch.distributions.Binomial(5, torch.tensor([0.0, 1.0])).sample()
        tensor([0., 5.])
    """

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True

    def __init__(
        self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        (self.total_count,) = self._set_param(probs, logits, total_count)
        self.total_count = self.total_count.type_as(self._param)
        super().__init__(self._param.size(), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self.total_count)

    mean = formula(lambda self: self.total_count * self.probs)
    mode = formula(lambda self: ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count))
    variance = formula(lambda self: self.total_count * self.probs * (1 - self.probs))

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        log_coefficient = (
            (self.total_count + 1).lgamma() - (value + 1).lgamma() - (self.total_count - value + 1).lgamma()
        )
        # log(1 + exp(logits)), written so that autograd's gradient at logits = 0 is 1/2.
        positive = (self.logits.clamp(min=0) + self.logits - self.logits.clamp(max=0)) / 2
        log_norm = positive + (-self.logits.abs()).exp().log1p()
        return value * self.logits + log_coefficient - self.total_count * log_norm

    def _count(self, function: str) -> int:
        count = int(self.total_count.max())
        if not self.total_count.min() == count:
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{function}`.")
        return count

    def entropy(self) -> Tensor:
        self._count("entropy")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = arange(1 + self._count("enumerate_support"), dtype=self._param.dtype)
        return self._shape_support(values, expand)


class NegativeBinomial(ProbsOrLogits, Distribution):
    """The number of successes before `total_count` failures, in trials with success probability `probs`.

    Example:
        >>> torch.distributions.NegativeBinomial(3, torch.tensor(0.5)).mean
        tensor(3.)
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(
        self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        (self.total_count,) = self._set_param(probs, logits, total_count)
        self.total_count = self.total_count.type_as(self._param)
        super().__init__(self._param.size(), validate_args=validate_args)

    mean = formula(lambda self: self.total_count * self.logits.exp())
    mode = formula(lambda self: ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0))
    variance = formula(lambda self: self.mean / (-self.logits).sigmoid())

    @lazy_property
    def _gamma(self) -> Gamma:
        # Not validated, since the rate is infinite for a probability of zero.
        return Gamma(self.total_count, (-self.logits).exp(), validate_args=False)

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        with no_grad():
            return poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        powers = self.total_count * logsigmoid(-self.logits) + value * logsigmoid(self.logits)
        total = self.total_count + value
        log_norm = -total.lgamma() + (1.0 + value).lgamma() + self.total_count.lgamma()
        return powers - log_norm.masked_fill(total == 0.0, 0.0)


class Poisson(ExponentialFamily):
    """The Poisson distribution with mean `rate`.

    Example:
        >>> torch.distributions.Poisson(0.0).sample((2,))
        tensor([0., 0.])
    """

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.size(), validate_args=validate_args)

    mean = variance = alias("rate")
    mode = formula(lambda self: self.rate.floor())

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        with no_grad():
            return poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        rate, value = broadcast_all(self.rate, value)
        return value.xlogy(rate) - rate - (value + 1).lgamma()

    _natural_params: Any = formula(lambda self: (self.rate.log(),))
    _log_normalizer = method(lambda self, x: x.exp())


class Categorical(ProbsOrLogits, Distribution):
    """The distribution of an index from 0 to K - 1.

    Args:
        probs: the probabilities, (..., K); they are normalized to sum to one.
        logits: alternatively, unnormalized log probabilities.

    Example:
        >>> torch.distributions.Categorical(torch.tensor([0.0, 1.0, 0.0])).sample((2,))
        tensor([1, 1])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _copied = ("_given", "_num_events")

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._check_exclusive(probs, logits)
        if probs is not None:
            if probs.dim() < 1:
                raise ValueError("`probs` parameter must be at least one-dimensional.")
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            if logits.dim() < 1:
                raise ValueError("`logits` parameter must be at least one-dimensional.")
            self.logits = logits - logits.logsumexp(-1, keepdim=True)
        self._num_events = self._param.size()[-1]
        super().__init__(Size(self._param.size()[:-1]), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self._num_events - 1)

    @lazy_property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self) -> Tensor:
        """The probabilities."""
        return logits_to_probs(self.logits)

    mean = formula(lambda self: full(self._extended_shape(), float("nan"), dtype=self.probs.dtype))
    variance = mean
    mode = formula(lambda self: self.probs.argmax(-1))

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        if not isinstance(sample_shape, Size):
            sample_shape = Size(sample_shape)
        rows = self.probs.reshape(-1, self._num_events)
        samples = multinomial(rows, sample_shape.numel(), True).T
        return samples.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        index, logits = value.long().unsqueeze(-1), self.logits
        if index.shape[:-1] != logits.shape[:-1]:
            index, logits = broadcast_tensors(index, logits)
            index = index[..., :1]
        return logits.gather(-1, index).squeeze(-1)

    def entropy(self) -> Tensor:
        logits = self.logits.clamp(min=limits.finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._shape_support(arange(self._num_events, dtype=dtypes.int64), expand)


class CategoricalBased(Distribution):
    """Base class of distributions that wrap a `Categorical`."""

    _categorical: Categorical
    _components: tuple[str, ...] = ("_categorical",)
    logits = alias("_categorical.logits", "The logarithms of the probabilities.")
    probs = alias("_categorical.probs", "The probabilities.")

    @property
    def param_shape(self) -> Size:
        """The shape of the probabilities."""
        return self._categorical.param_shape


class OneHotCategorical(CategoricalBased):
    """The categorical distribution over one-hot vectors; the arguments are those of `Categorical`.

    Example:
        >>> torch.distributions.OneHotCategorical(torch.tensor([0.0, 1.0, 0.0])).sample()
        tensor([0., 1., 0.])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._categorical = Categorical(probs, logits)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    _param = alias("_categorical._param")
    mean = alias("_categorical.probs")
    mode = formula(lambda self: one_hot(self._categorical.mode, self._event_shape[-1]).to(self.probs))
    variance = formula(lambda self: self._categorical.probs * (1 - self._categorical.probs))

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        indices = self._categorical.sample(Size(sample_shape))
        return one_hot(indices, self._categorical._num_events).to(self.probs)

    log_prob = checked(lambda self, value: self._categorical.log_prob(value.max(-1)[1]))
    entropy = method(lambda self: self._categorical.entropy())

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self.event_shape[0]
        values = eye(n, dtype=self._param.dtype)
        values = values.view((n,) + (1,) * len(self.batch_shape) + (n,))
        return values.expand((n,) + self.batch_shape + (n,)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """`OneHotCategorical` with straight-through gradients: samples have the gradient of the probabilities.

    Source:
        Bengio, Léonard and Courville, "Estimating or Propagating Gradients Through Stochastic Neurons for
        Conditional Computation", 2013.

    Example:
        >>> p = torch.tensor([0.0, 1.0], requires_grad=True)
        >>> torch.distributions.OneHotCategoricalStraightThrough(p).rsample().requires_grad
        True
    """

    has_rsample = True

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        samples = self.sample(sample_shape)
        probs = self._categorical.probs  # a cached tensor, to which the gradient goes
        return samples + (probs - probs.detach())


class Multinomial(CategoricalBased):
    """The distribution of the counts of each category in `total_count` draws.

    Args:
        total_count: the number of draws, an int.
        probs, logits: as for `Categorical`.

    Example:
        >>> torch.distributions.Multinomial(3, torch.tensor([0.0, 1.0])).sample()
        tensor([0., 3.])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    _copied = ("total_count",)
    _components = ("_categorical", "_binomial")

    def __init__(
        self, total_count: int = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        self._binomial = Binomial(total_count=total_count, probs=self.probs)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        return constraints.multinomial(self.total_count)

    mean = formula(lambda self: self.probs * self.total_count)
    variance = formula(lambda self: self.total_count * self.probs * (1 - self.probs))

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        sample_shape = Size(sample_shape)
        draws = self._categorical.sample(Size((self.total_count,)) + sample_shape)
        draws = draws.movedim(0, -1)
        counts = zeros(self._extended_shape(sample_shape), dtype=draws.dtype)
        counts.scatter_add_(-1, draws, ones_like(draws))
        return counts.type_as(self.probs)

    def entropy(self) -> Tensor:
        n = tensor(self.total_count)
        values = self._binomial.enumerate_support(expand=False)[1:]
        weights = self._binomial.log_prob(values).exp() * (values + 1).lgamma()
        return (n * self._categorical.entropy() - (n + 1).lgamma()) + weights.sum([0, -1])

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        logits, value = broadcast_all(self.logits, value)
        log_coefficient = (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1)
        # A count of zero contributes nothing, also if the category has probability zero.
        logits = logits.masked_fill((value == 0) & (logits == -float("inf")), 0)
        return log_coefficient + (logits * value).sum(-1)


class LogitRelaxedBernoulli(ProbsOrLogits, Distribution):
    """The distribution of the log odds of a `RelaxedBernoulli` variable.

    Source:
        Maddison, Mnih and Teh, "The Concrete Distribution", 2017.

    Example:
        >>> from tinytorch.distributions.discrete import LogitRelaxedBernoulli
        >>> LogitRelaxedBernoulli(torch.tensor(0.5), probs=torch.tensor([0.5])).batch_shape
        torch.Size([1])
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    _copied = ("_given", "temperature")

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.temperature = temperature
        self._set_param(probs, logits)
        super().__init__(self._param.size(), validate_args=validate_args)

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        u = clamp_probs(rand(shape, dtype=probs.dtype))
        return (u.log() - (-u).log1p() + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        logits, value = broadcast_all(self.logits, value)
        difference = logits - value.mul(self.temperature)
        return self.temperature.log() + difference - 2 * difference.exp().log1p()


class RelaxedBernoulli(TransformedDistribution):
    """A continuous distribution on (0, 1) that approaches `Bernoulli` as the temperature goes to 0.

    Source:
        Maddison, Mnih and Teh, "The Concrete Distribution", 2017; Jang, Gu and Poole, "Categorical
        Reparametrization with Gumbel-Softmax", 2017.

    Example:
        >>> d = torch.distributions.RelaxedBernoulli(torch.tensor(0.1), probs=torch.tensor([0.5]))
        >>> d.rsample().shape
        torch.Size([1])
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)

    temperature: Any = alias("base_dist.temperature", "The temperature.")
    logits = alias("base_dist.logits", "The log odds.")
    probs = alias("base_dist.probs", "The probabilities.")


class ExpRelaxedCategorical(CategoricalBased):
    """The distribution of the logarithm of a `RelaxedOneHotCategorical` variable.

    Source:
        Maddison, Mnih and Teh, "The Concrete Distribution", 2017.

    Example:
        >>> from tinytorch.distributions.discrete import ExpRelaxedCategorical
        >>> ExpRelaxedCategorical(torch.tensor(0.5), probs=torch.ones(3)).event_shape
        torch.Size([3])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.real_vector  # the logarithms of a point of the simplex
    has_rsample = True
    _copied = ("temperature",)

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        u = clamp_probs(rand(self._extended_shape(sample_shape), dtype=self.logits.dtype))
        gumbels = -((-(u.log())).log())
        scores = (self.logits + gumbels) / self.temperature
        return scores - scores.logsumexp(-1, keepdim=True)

    def log_prob(self, value: Tensor) -> Tensor:
        k = self._categorical._num_events
        self._check_sample(value)
        logits, value = broadcast_all(self.logits, value)
        log_scale = full_like(self.temperature, float(k)).lgamma() - self.temperature.log().mul(-(k - 1))
        score = logits - value.mul(self.temperature)
        score = (score - score.logsumexp(-1, keepdim=True)).sum(-1)
        return score + log_scale


class RelaxedOneHotCategorical(TransformedDistribution):
    """A continuous distribution on the simplex that approaches `OneHotCategorical` as the temperature goes to 0.

    Source:
        Maddison, Mnih and Teh, "The Concrete Distribution", 2017; Jang, Gu and Poole, "Categorical
        Reparametrization with Gumbel-Softmax", 2017.

    Example:
        >>> d = torch.distributions.RelaxedOneHotCategorical(torch.tensor(0.5), probs=torch.ones(3))
        >>> d.rsample().shape
        torch.Size([3])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    temperature: Any = alias("base_dist.temperature", "The temperature.")
    logits = alias("base_dist.logits", "The logarithms of the probabilities.")
    probs = alias("base_dist.probs", "The probabilities.")


class MixtureSameFamily(Distribution):
    """A mixture whose components are indexed by the last batch dimension of `component_distribution`.

    Args:
        mixture_distribution: a `Categorical` over the components.

    Example:
        >>> d = torch.distributions
        >>> mixture = d.Categorical(torch.ones(2))
        >>> d.MixtureSameFamily(mixture, d.Normal(torch.tensor([0.0, 4.0]), 1.0)).mean
        tensor(2.)
    """

    arg_constraints: dict[str, Any] = {}
    _copied = ("_num_component", "_event_ndims")
    _components = ("_component_distribution",)

    def __init__(
        self, mixture_distribution: Categorical, component_distribution: Distribution, validate_args: bool | None = None
    ) -> None:
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(" The Mixture distribution needs to be an  instance of torch.distributions.Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution need to be an instance of torch.distributions.Distribution")
        mixture_shape = mixture_distribution.batch_shape
        batch_shape = component_distribution.batch_shape[:-1]
        if not _meet(mixture_shape, batch_shape):
            raise ValueError(
                f"`mixture_distribution.batch_shape` ({mixture_shape}) is not compatible with "
                f"`component_distribution.batch_shape`({batch_shape})"
            )
        n, components = mixture_distribution.logits.shape[-1], component_distribution.batch_shape[-1]
        if n != components:
            raise ValueError(
                f"`mixture_distribution component` ({n}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({components})"
            )
        self._num_component = n
        event_shape = component_distribution.event_shape
        self._event_ndims = len(event_shape)
        super().__init__(batch_shape=Size(batch_shape), event_shape=event_shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Self:
        new = super().expand(batch_shape, _instance)
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        return new

    @constraints.dependent_property
    def support(self) -> Any:
        return MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Categorical:
        """The distribution over the components."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The components."""
        return self._component_distribution

    @property
    def mean(self) -> Tensor:
        probs = self._pad_mixture_dimensions(self.mixture_distribution.probs)
        return (probs * self.component_distribution.mean).sum(-1 - self._event_ndims)

    @property
    def variance(self) -> Tensor:
        # The law of total variance.
        probs = self._pad_mixture_dimensions(self.mixture_distribution.probs)
        dim = -1 - self._event_ndims
        within = (probs * self.component_distribution.variance).sum(dim)
        difference = self.component_distribution.mean - self._pad(self.mean)
        return within + (probs * difference.pow(2.0)).sum(dim)

    def cdf(self, x: Tensor) -> Tensor:
        cdf = self.component_distribution.cdf(self._pad(x))
        return (cdf * self.mixture_distribution.probs).sum(-1)

    def log_prob(self, x: Tensor) -> Tensor:
        self._check_sample(x)
        log_prob = self.component_distribution.log_prob(self._pad(x))
        weights = self.mixture_distribution.logits.log_softmax(-1)
        return (log_prob + weights).logsumexp(-1)

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        with no_grad():
            dim = len(sample_shape) + len(self.batch_shape)
            component = self.mixture_distribution.sample(sample_shape)
            component = component.reshape(component.shape + (1,) * (self._event_ndims + 1))
            samples = self.component_distribution.sample(sample_shape)
            shape = samples.shape[:dim] + (1,) + self.event_shape
            return samples.gather(dim, component.expand(shape)).squeeze(dim)

    _pad = method(lambda self, x: x.unsqueeze(-1 - self._event_ndims))

    def _pad_mixture_dimensions(self, x: Tensor) -> Tensor:
        missing = len(self.batch_shape) - len(self.mixture_distribution.batch_shape)
        shape = x.shape[:-1] + (1,) * missing + x.shape[-1:] + (1,) * self._event_ndims
        return x.reshape(shape)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
