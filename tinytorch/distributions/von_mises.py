"""The von Mises distribution."""

from __future__ import annotations

import math
from typing import Any

from tinytorch.autograd.grad_mode import no_grad
from tinytorch.core.tensor import Size, Tensor
from tinytorch.distributions import constraints
from tinytorch.distributions.distribution import Distribution
from tinytorch.distributions.utils import alias, broadcast_all, lazy_property
from tinytorch.kernels import dtypes
from tinytorch.ops.create import zeros
from tinytorch.ops.masks import where
from tinytorch.ops.random import rand

__all__ = ["VonMises"]

# Coefficients by ascending power for I0 and I1, below 3.75 and above: Abramowitz and Stegun, 9.8.1 to 9.8.4.
_SMALL = (
    (1.0, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.0360768, 0.0045813),
    (0.5, 0.87890594, 0.51498869, 0.15084934, 0.02658733, 0.00301532, 0.00032411),
)
_LARGE = (
    (0.39894228, 0.01328592, 0.00225319, -0.00157565, 0.00916281, -0.02057706, 0.02635537, -0.01647633, 0.00392377),
    (0.39894228, -0.03988024, -0.00362018, 0.00163801, -0.01031555, 0.02282967, -0.02895312, 0.01787654, -0.00420059),
)


def _polynomial(y: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    value: Any = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        value = coefficient + y * value
    return value


def _log_bessel(x: Tensor, order: int) -> Tensor:
    """Return the logarithm of the modified Bessel function I0 or I1 of x > 0."""
    y = x / 3.75
    y = y * y
    small = _polynomial(y, _SMALL[order])
    if order == 1:
        small = x.abs() * small
    large = x - 0.5 * x.log() + _polynomial(3.75 / x, _LARGE[order]).log()
    return where(x < 3.75, small.log(), large)


class VonMises(Distribution):
    """The von Mises distribution of angles, with mean direction `loc` and concentration `concentration`.

    Example:
        >>> d = torch.distributions.VonMises(torch.tensor([1.0]), torch.tensor([4.0]))
        >>> d.sample((2,)).shape
        torch.Size([2, 1])

    Source:
        Best and Fisher, "Efficient Simulation of the von Mises Distribution", 1979.
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, Size(), validate_args)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        log_prob = self.concentration * (value - self.loc).cos()
        return log_prob - math.log(2 * math.pi) - _log_bessel(self.concentration, 0)

    @lazy_property
    def _proposal_r(self) -> Tensor:
        kappa = self.concentration.double()
        tau = 1 + (1 + 4 * kappa**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
        # For small kappa the formula loses all precision: use a Taylor series.
        return where(kappa < 1e-5, 1 / kappa + kappa, (1 + rho**2) / (2 * rho))

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            kappa, r = self.concentration.double(), self._proposal_r
            x = zeros(shape, dtype=dtypes.float64)
            done = zeros(shape, dtype=dtypes.bool)
            while not done.all():
                u1, u2, u3 = rand((3, *shape), dtype=dtypes.float64).unbind()
                z = (math.pi * u1).cos()
                f = (1 + r * z) / (r + z)
                c = kappa * (r - f)
                accept = ((c * (2 - c) - u2) > 0) | ((c / u2).log() + 1 - c >= 0)
                x = where(accept, (u3 - 0.5).sign() * f.acos(), x)
                done = done | accept
            angle = (x + math.pi + self.loc.double()) % (2 * math.pi) - math.pi
            return angle.to(self.loc.dtype)

    mean = mode = alias("loc")

    @lazy_property
    def variance(self) -> Tensor:
        """The circular variance."""
        return 1 - (_log_bessel(self.concentration, 1) - _log_bessel(self.concentration, 0)).exp()
