"""Random tensors from rejection sampling, which draws a varying number of random numbers per element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tinytorch.core.op import op
from tinytorch.core.tensor import Tensor
from tinytorch.kernels import dtypes, implicit, rejection
from tinytorch.kernels import random as kernels
from tinytorch.kernels.checks import check_floating, refused
from tinytorch.ops.arguments import check_tensor, check_tensors, not_derived, not_implemented
from tinytorch.ops.arithmetic import zero_gradient
from tinytorch.ops.random import Generator, _source
from tinytorch.ops.register import public


def _number_drawn(kernel: str, draw: Callable[..., Any], source: kernels.Source, first: Any, *others: Any) -> Any:
    """Return the samples of `draw(source)` in the dtype of `first`; `kernel` is the name for error messages."""
    kind = dtypes.from_numpy_dtype(first.dtype)
    check_floating(kernel, first)
    for other in others:
        if other.dtype != first.dtype:
            found = dtypes.from_numpy_dtype(other.dtype).tensor_name
            raise RuntimeError(f"Found dtype {found} but expected {kind.tensor_name}")
    out = np.empty_like(first, order="C")
    if out.size:
        with source.lock:
            out[...] = draw(source)
    return out


@op(name="Poisson", x=zero_gradient)
def _poisson(x: Any, source: Any) -> Any:
    def draw(source: kernels.Source) -> Any:
        if not x.min() >= 0 or np.isinf(x).any():
            raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
        return rejection.poisson(x.astype(np.float64), source)

    return _number_drawn("poisson_cpu", draw, source, x)


@public()
def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Return Poisson samples with the rates `input`; the gradient is zero.

    Args:
        input: the rates, of floating point.

    Raises:
        RuntimeError: a rate is negative.
        NotImplementedError: the rates are not of floating point.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> torch.poisson(torch.tensor([0.0, 3.0, 30.0]))
        tensor([ 0.,  6., 27.])
    """
    check_tensor(input, "poisson")
    return _poisson(input, _source("poisson", generator))


@op(name="NotImplemented", count=not_implemented("binomial"), p=not_implemented("binomial"))
def _binomial(count: Any, p: Any, source: Any) -> Any:
    first = np.empty_like(count, shape=np.broadcast_shapes(count.shape, p.shape))
    _check_single_or_double("binomial_cpu", first)

    def draw(source: kernels.Source) -> Any:
        n, each = np.broadcast_arrays(count, p)
        return rejection.binomial(n.astype(np.float64), each.astype(np.float64), source)

    return _number_drawn("binomial_cpu", draw, source, first, p)


@public()
def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """Return binomial samples: the number of successes in `count` trials of success probability `prob`.

    Args:
        count: the numbers of trials, of a floating dtype.
        prob: the probabilities, of the same dtype and of a shape that broadcasts with `count`.

    Raises:
        ValueError: `count` or `prob` is not of a floating dtype.
        RuntimeError: the dtypes differ.

    Example:
        >>> torch.binomial(torch.tensor([10.0, 10.0]), torch.tensor([0.0, 1.0]))
        tensor([ 0., 10.])
    """
    check_tensors("binomial", count=count, prob=prob)
    for what, each in (("count", count), ("prob", prob)):
        if not each.dtype.is_floating_point:
            raise ValueError(f"binomial only supports floating-point dtypes for {what}, got: {each.dtype.tensor_name}")
    return _binomial(count, prob, _source("binomial", generator))


def _check_single_or_double(kernel: str, x: Any) -> None:
    """Raise PyTorch's error for dtypes other than float32 and float64."""
    if x.dtype not in (np.float32, np.float64):
        raise refused(kernel, x)


@op(name="StandardGamma", x=lambda g, x, out: g * _standard_gamma_grad(x, out))
def _gamma(x: Any, source: Any) -> Any:
    _check_single_or_double("gamma_cpu", x)
    out = np.empty_like(x, order="C")
    if out.size:
        with source.lock:
            np.copyto(out, rejection.gamma(x, source), casting="same_kind")
        # Like C's fmax: NaN becomes the smallest positive normal number.
        np.fmax(out, np.finfo(x.dtype).tiny, out=out)
    return out


def _standard_gamma(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Return samples of gamma distributions with shape parameters `input` and rate 1.

    The gradient is the derivative of the samples with respect to the shape parameter. PyTorch approximates it to 3 or
    4 digits; here it has full precision (`kernels/implicit.py`).

    Raises:
        NotImplementedError: `input` is neither float32 nor float64.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> torch._standard_gamma(torch.ones(2))
        tensor([2.8824, 0.4546])
    """
    check_tensor(input, "_standard_gamma")
    return _gamma(input, _source("_standard_gamma", generator))


@op(name="StandardGammaGrad", x=not_derived("_standard_gamma_grad"), output=not_derived("_standard_gamma_grad"))
def _gamma_grad(x: Any, output: Any) -> Any:
    _check_single_or_double("_standard_gamma_grad_cpu", x)
    x, output = np.broadcast_arrays(x, output)
    return implicit.gamma(x.astype(np.float64), output.astype(np.float64)).astype(x.dtype)


def _standard_gamma_grad(input: Tensor, output: Tensor) -> Tensor:
    """Return the derivative of gamma samples `output` with respect to their shape parameter `input`.

    Example:
        >>> torch._standard_gamma_grad(torch.ones(1), torch.ones(1))
        tensor([1.1736])
    """
    return _gamma_grad(input, output)


@op(name="NotImplemented", x=not_implemented("_sample_dirichlet"))
def _dirichlet(x: Any, source: Any) -> Any:
    _check_single_or_double("dirichlet", x)
    out = np.empty_like(x, order="C")
    if out.size:
        with source.lock:
            numbers = rejection.gamma(x.astype(np.float64), source)
        numbers = np.fmax(numbers, np.finfo(np.float64).tiny)
        if x.ndim:
            numbers /= np.add.reduce(numbers, -1, keepdims=True)
        else:
            numbers = np.ones(())
        greatest = np.nextafter(x.dtype.type(1), x.dtype.type(0))
        out[...] = np.clip(numbers, np.finfo(x.dtype).tiny, greatest)
    return out


def _sample_dirichlet(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Return samples of Dirichlet distributions, whose concentrations are in the last dimension of `input`.

    Raises:
        NotImplementedError: `input` is neither float32 nor float64.

    Example:
        >>> x = torch._sample_dirichlet(torch.ones(5, 3))
        >>> torch.allclose(x.sum(-1), torch.ones(5))
        True
    """
    check_tensor(input, "_sample_dirichlet")
    return _dirichlet(input, _source("_sample_dirichlet", generator))


@op(
    name="DirichletGrad",
    x=not_implemented("_dirichlet_grad"),
    alpha=not_implemented("_dirichlet_grad"),
    total=not_implemented("_dirichlet_grad"),
)
def _beta_grad(x: Any, alpha: Any, total: Any) -> Any:
    _check_single_or_double("_dirichlet_grad_cpu", x)
    arrays = [each.astype(np.float64) for each in np.broadcast_arrays(x, alpha, total)]
    return implicit.dirichlet(*arrays).astype(x.dtype)


def _dirichlet_grad(x: Tensor, alpha: Tensor, total: Tensor) -> Tensor:
    """Return the derivative by `alpha` of samples `x` of Beta(alpha, total - alpha), divided by 1 - x.

    Example:
        >>> x, one = torch.full((1,), 0.5), torch.ones(1)
        >>> torch._dirichlet_grad(x, one, 2 * one)
        tensor([0.6931])
    """
    return _beta_grad(x, alpha, total)
