"""`Distribution`, the base class of all distributions."""

from __future__ import annotations

from typing import Any, Self

from tinytorch.autograd import grad
from tinytorch.autograd.grad_mode import no_grad
from tinytorch.core.tensor import Size, Tensor
from tinytorch.core.warning import warn
from tinytorch.distributions import constraints
from tinytorch.distributions.utils import Formulas, lazy_property

__all__ = ["Distribution", "ExponentialFamily"]


class Distribution(Formulas):
    """A probability distribution, or a batch of them.

    Args:
        validate_args: whether to check parameters and values; the default is set by `set_default_validate_args`.

    Example:
        >>> d = torch.distributions.Normal(torch.zeros(3), 1.0)
        >>> d.batch_shape, d.event_shape, d.sample((2,)).shape
        (torch.Size([3]), torch.Size([]), torch.Size([2, 3]))
    """

    has_rsample: Any = False
    has_enumerate_support: Any = False
    _validate_args = __debug__

    # Attributes that `expand` copies unchanged, beside the parameters in `arg_constraints`.
    _copied: Any = ()
    # Attributes that are distributions, of which `expand` expands the leading batch dimensions.
    _components: Any = ()
    # The class of this package whose parameters `expand` expands, and their constraints: its `arg_constraints`
    # unless it says otherwise. A program's subclass may have other `arg_constraints`.
    _family: Any = None
    _expanded_params: Any = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__module__.startswith(f"{__package__}."):
            cls._family = cls
            if "arg_constraints" in vars(cls):
                cls._expanded_params = vars(cls).get("_expanded_params", vars(cls)["arg_constraints"])

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Set whether distributions check their arguments by default.

        Example:
            >>> distributions = torch.distributions
            >>> distributions.Distribution.set_default_validate_args(False)
            >>> unchecked = distributions.Bernoulli(probs=torch.tensor(2.0))
            >>> distributions.Distribution.set_default_validate_args(True)
        """
        if value not in [True, False]:
            raise ValueError
        Distribution._validate_args = value

    def __init__(self, batch_shape: Any = Size(), event_shape: Any = Size(), validate_args: bool | None = None) -> None:
        self._batch_shape = batch_shape
        self._event_shape = event_shape
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            try:
                arg_constraints = self.arg_constraints
            except NotImplementedError:
                arg_constraints = {}
                warn(
                    f"{self.__class__} does not define `arg_constraints`. Please set "
                    "`arg_constraints = {}` or initialize the distribution with "
                    "`validate_args=False` to turn off validation."
                )
            for name, constraint in arg_constraints.items():
                if constraints.is_dependent(constraint):
                    continue
                if name not in self.__dict__ and isinstance(_class_attribute(type(self), name), lazy_property):
                    continue  # computed from another parameter, which is checked
                value = getattr(self, name)
                if not constraint.check(value)._is_all_true():
                    raise ValueError(
                        f"Expected parameter {name} ({type(value).__name__} of shape "
                        f"{tuple(value.shape)}) of distribution {self!r} to satisfy the constraint "
                        f"{constraint!r}, but found invalid values:\n{value}"
                    )
        super().__init__()

    def expand(self, batch_shape: Any, _instance: Any = None) -> Self:
        """Return a distribution with its batch dimensions expanded to `batch_shape`.

        Example:
            >>> torch.distributions.Normal(0.0, 1.0).expand((2, 3)).batch_shape
            torch.Size([2, 3])
        """
        if self._expanded_params is None:
            raise NotImplementedError
        new = self._get_checked_instance(self._family, _instance)
        batch_shape = Size(batch_shape)
        for name, constraint in self._expanded_params.items():
            if name in self.__dict__:
                value = self.__dict__[name]
                event_dim = 0 if constraints.is_dependent(constraint) else constraint.event_dim
                event = value.shape[value.dim() - event_dim :]
                new.__dict__[name] = value.expand(batch_shape + event)
        for name in self._copied:
            if name in self.__dict__:
                new.__dict__[name] = self.__dict__[name]
        for name in self._components:
            part = self.__dict__[name]
            new.__dict__[name] = part.expand(batch_shape + part.batch_shape[len(self._batch_shape) :])
        Distribution.__init__(new, batch_shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @property
    def batch_shape(self) -> Size:
        """The shape of the batch of distributions."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one sample of one distribution."""
        return self._event_shape

    @property
    def arg_constraints(self) -> dict[str, Any]:
        """The constraints of the parameters, by name."""
        raise NotImplementedError

    @property
    def support(self) -> Any:
        """The constraint of the samples."""
        raise NotImplementedError

    @property
    def mean(self) -> Tensor:
        """The mean."""
        raise NotImplementedError

    @property
    def mode(self) -> Tensor:
        """The most probable value."""
        raise NotImplementedError(f"{self.__class__} does not implement mode")

    @property
    def variance(self) -> Tensor:
        """The variance."""
        raise NotImplementedError

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        """Return samples, (*sample_shape, *batch_shape, *event_shape), without gradients.

        Example:
            >>> torch.distributions.Bernoulli(torch.tensor([0.0, 1.0])).sample((2,))
            tensor([[0., 1.],
                    [0., 1.]])
        """
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        """Return reparameterized samples, which are differentiable functions of the parameters.

        Example:
            >>> mean = torch.tensor(0.0, requires_grad=True)
            >>> torch.distributions.Normal(mean, 1.0).rsample((3,)).sum().backward()
            >>> mean.grad
            tensor(3.)
        """
        raise NotImplementedError

    def sample_n(self, n: int) -> Tensor:
        """Return n samples (deprecated: `sample((n,))`).

        Example:
            >>> import warnings
            >>> with warnings.catch_warnings():
            ...     warnings.simplefilter("ignore")
            ...     torch.distributions.Normal(0.0, 1.0).sample_n(3).shape
            torch.Size([3])
        """
        warn("sample_n(n) will be deprecated. Use .sample((n,)) instead.", FutureWarning)
        return self.sample(Size((n,)))

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the log density or log probability of `value`.

        Example:
            >>> torch.distributions.Uniform(0.0, 2.0).log_prob(torch.tensor(1.0))
            tensor(-0.6931)
        """
        raise NotImplementedError

    def cdf(self, value: Tensor) -> Tensor:
        """Return the cumulative distribution function, P(X <= value).

        Example:
            >>> torch.distributions.Uniform(0.0, 2.0).cdf(torch.tensor([0.5, 1.0]))
            tensor([0.2500, 0.5000])
        """
        raise NotImplementedError

    def icdf(self, value: Tensor) -> Tensor:
        """Return the quantile function at `value`, the inverse of `cdf`.

        Example:
            >>> torch.distributions.Uniform(0.0, 2.0).icdf(torch.tensor([0.25, 0.5]))
            tensor([0.5000, 1.0000])
        """
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Return all values of a discrete distribution along a new first dimension, expanded to the batch if `expand`.

        Example:
            >>> torch.distributions.Bernoulli(torch.tensor([0.5, 0.5])).enumerate_support()
            tensor([[0., 0.],
                    [1., 1.]])
        """
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """Return the entropy in nats.

        Example:
            >>> torch.distributions.Uniform(0.0, 1.0).entropy()
            tensor(0.)
        """
        raise NotImplementedError

    def perplexity(self) -> Tensor:
        """Return exp(entropy).

        Example:
            >>> torch.distributions.Categorical(logits=torch.zeros(4)).perplexity()
            tensor(4.)
        """
        return self.entropy().exp()

    def _extended_shape(self, sample_shape: Any = Size()) -> Size:
        if not isinstance(sample_shape, Size):
            sample_shape = Size(sample_shape)
        return Size(sample_shape + self._batch_shape + self._event_shape)

    def _validate_sample(self, value: Any) -> None:
        """Raise ValueError if `value` cannot be a sample of this distribution."""
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        event = value.shape[len(value.shape) - len(self._event_shape) :]
        if event != self._event_shape:
            raise ValueError(
                f"The right-most size of value must match event_shape: {value.shape} vs {self._event_shape}."
            )
        expected = self._batch_shape + self._event_shape
        if not _meet(value.shape, expected):
            raise ValueError(f"Value is not broadcastable with batch_shape+event_shape: {value.shape} vs {expected}.")
        try:
            support = self.support
        except NotImplementedError:
            warn(
                f"{self.__class__} does not define `support` to enable sample validation. Please "
                "initialize the distribution with `validate_args=False` to turn off validation."
            )
            return
        if not support.check(value)._is_all_true():
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the "
                f"support ({support!r}) of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def _check_sample(self, value: Any) -> None:
        if self._validate_args:
            self._validate_sample(value)

    def _shape_support(self, values: Tensor, expand: bool) -> Tensor:
        """Return a vector `values` along a first dimension, with batch dimensions of length one or expanded."""
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1,) + self._batch_shape) if expand else values

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        """Return `_instance`, or a new object for `expand` to fill; raise if a subclass changed `__init__`."""
        if _instance is None and type(self).__init__ != cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(
                f"Subclass {self.__class__.__name__} of {cls.__name__} that defines a custom "
                "__init__ method must also define a custom .expand() method."
            )
        return self.__new__(type(self)) if _instance is None else _instance

    def __repr__(self) -> str:
        names = [name for name in self.arg_constraints if name in self.__dict__]
        values = [self.__dict__[name] for name in names]
        shown = (value if value.numel() == 1 else value.size() for value in values)
        args = ", ".join(f"{name}: {value}" for name, value in zip(names, shown, strict=True))
        return f"{type(self).__name__}({args})"


def _meet(one: Size, other: Size) -> bool:
    """Return whether tensors of two shapes are broadcast with each other."""
    return one == other or all(n == m or 1 in (n, m) for n, m in zip(reversed(one), reversed(other), strict=False))


def _class_attribute(cls: type, name: str) -> Any:
    for base in cls.__mro__:
        if name in base.__dict__:
            return base.__dict__[name]
    return None


class ExponentialFamily(Distribution):
    """A distribution of an exponential family, with density exp(<t(x), θ> - F(θ) + k(x)).

    A subclass defines the natural parameters θ as `_natural_params`, F as `_log_normalizer` and the mean of k as
    `_mean_carrier_measure`. The entropy is computed from them.

    Example:
        >>> isinstance(torch.distributions.Normal(0.0, 1.0), torch.distributions.ExponentialFamily)
        True

    Source:
        Nielsen and Nock, "Entropies and Cross-entropies of Exponential Families", 2010.
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Any) -> Tensor:
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> float:
        raise NotImplementedError

    def _normalized(self) -> tuple[list[Tensor], Tensor, tuple[Tensor, ...]]:
        """Return θ, F(θ) and ∇F(θ), the mean of t."""
        params = [param.detach().requires_grad_() for param in self._natural_params]
        normalizer = self._log_normalizer(*params)
        return params, normalizer, grad(normalizer.sum(), params, create_graph=True)

    def entropy(self) -> Tensor:
        """Return the entropy, F(θ) - <θ, ∇F(θ)> minus the mean of k."""
        params, normalizer, gradients = self._normalized()
        result: Any = -self._mean_carrier_measure + normalizer
        for param, gradient in zip(params, gradients, strict=True):
            result = result - (param * gradient).reshape(self._batch_shape + (-1,)).sum(-1)
        return result
