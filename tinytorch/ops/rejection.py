"""Random tensors from rejection sampling, which draws a varying number of random numbers per element."""

from __future__ import annotations

from typing import Any

from tinytorch.core.op import op
from tinytorch.core.tensor import Tensor
from tinytorch.kernels import rejection
from tinytorch.ops.arguments import not_derived, not_implemented, op_of
from tinytorch.ops.arithmetic import zero_gradient
from tinytorch.ops.random import Generator, _source
from tinytorch.ops.register import public

_poisson = op_of(rejection.poisson, batch="random", x=zero_gradient)


@public()
def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Return Poisson samples with the rates `input`, of a floating dtype; the gradient is zero.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> torch.poisson(torch.tensor([0.0, 3.0, 30.0]))
        tensor([ 0.,  6., 27.])
    """
    return _poisson(input, _source("poisson", generator))


_binomial = op_of(
    rejection.binomial,
    batch="random",
    name="NotImplemented",
    count=not_implemented("binomial"),
    p=not_implemented("binomial"),
)


@public()
def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """Return binomial samples: the number of successes in `count` trials of success probability `prob`.

    The two have one floating dtype, and shapes that broadcast.

    Example:
        >>> torch.binomial(torch.tensor([10.0, 10.0]), torch.tensor([0.0, 1.0]))
        tensor([ 0., 10.])
    """
    for what, each in (("count", count), ("prob", prob)):
        if not each.dtype.is_floating_point:
            raise ValueError(f"binomial only supports floating-point dtypes for {what}, got: {each.dtype.tensor_name}")
    return _binomial(count, prob, _source("binomial", generator))


_gamma = op_of(
    rejection.gamma, batch="random", name="StandardGamma", x=lambda g, x, out: g * _standard_gamma_grad(x, out)
)


def _standard_gamma(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Return samples of gamma distributions with shape parameters `input`, float32 or float64, and rate 1.

    The gradient is the derivative of the samples with respect to the shape parameter. PyTorch approximates it to 3 or 4
    digits; here it has full precision (`kernels/implicit.py`).

    Example:
        >>> _ = torch.manual_seed(0)
        >>> torch._standard_gamma(torch.ones(2))
        tensor([2.8824, 0.4546])
    """
    return _gamma(input, _source("_standard_gamma", generator))


@op(
    rejection.gamma_grad, batch="elementwise", name="StandardGammaGrad",
    x=not_derived("_standard_gamma_grad"), output=not_derived("_standard_gamma_grad"),
)  # fmt: skip
def _standard_gamma_grad(x: Any, output: Any) -> Any:
    """Return the derivative of gamma samples `output` with respect to their shape parameter `input`.

    Example:
        >>> torch._standard_gamma_grad(torch.ones(1), torch.ones(1))
        tensor([1.1736])
    """


_dirichlet = op_of(rejection.dirichlet, batch="random", name="NotImplemented", x=not_implemented("_sample_dirichlet"))


def _sample_dirichlet(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Return samples of Dirichlet distributions, whose concentrations are in the last dimension of `input`.

    Example:
        >>> x = torch._sample_dirichlet(torch.ones(5, 3))
        >>> torch.allclose(x.sum(-1), torch.ones(5))
        True
    """
    return _dirichlet(input, _source("_sample_dirichlet", generator))


@op(
    rejection.beta_grad, batch="elementwise", name="DirichletGrad",
    x=not_implemented("_dirichlet_grad"), alpha=not_implemented("_dirichlet_grad"),
    total=not_implemented("_dirichlet_grad"),
)  # fmt: skip
def _dirichlet_grad(x: Any, alpha: Any, total: Any) -> Any:
    """Return the derivative by `alpha` of samples `x` of Beta(alpha, total - alpha), divided by 1 - x.

    Example:
        >>> x, one = torch.full((1,), 0.5), torch.ones(1)
        >>> torch._dirichlet_grad(x, one, 2 * one)
        tensor([0.6931])
    """
