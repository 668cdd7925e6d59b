"""Activations and softmax of `nn.functional`; their ops are in `ops/nn/activation.py`."""

from __future__ import annotations

import functools
import inspect
import math
from typing import Any

import numpy as np

from tinytorch.core.mode import alike, short
from tinytorch.core.op import in_place, op
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.core.warning import warn
from tinytorch.kernels.checks import check_floating
from tinytorch.kernels.reduce import axis_of
from tinytorch.ops import transcendental as _transcendental  # (declares `relu_`, too)
from tinytorch.ops.arguments import check_tensor, renamed
from tinytorch.ops.batch_rules import per_example
from tinytorch.ops.create import zeros_like
from tinytorch.ops.nn import activation as ops
from tinytorch.ops.random import apart
from tinytorch.ops.register import public

# Activations --------------------------------------------------------------------------------------


def _in_place_backward1(caller: Any, **formulas: Any) -> Any:
    """Return the in-place form of an op, perhaps with other formulas; PyTorch's node is called "...Backward1"."""
    declared = caller.op
    name = declared.node_class.__name__.replace("Backward0", "Backward1")
    return in_place(
        renamed(
            op(declared.kernel, batch="elementwise", **(formulas or declared.formulas))(inspect.unwrap(caller)), name
        )
    )


def _positive(name: str, slope: float) -> float:
    """Return the slope of negative numbers; PyTorch's in-place backward tells them by the sign of the result."""
    if slope < 0:
        raise RuntimeError(
            f"In-place {name} backward calculation is triggered with a negative slope which is not supported. This is "
            "caused by calling in-place forward function with a negative slope, please call out-of-place version "
            "instead."
        )
    return slope


_celu_in_place = _in_place_backward1(
    ops.celu, x=lambda g, x, alpha: ops._elu_grad(g, x, _positive("elu", float(alpha)), 1.0, 1.0 / float(alpha))
)
_elu_in_place = _in_place_backward1(
    ops.elu, x=lambda g, x, alpha, scale: ops._elu_grad(g, x, _positive("elu", alpha), scale, 1.0)
)
_hardsigmoid_in_place = in_place(ops.hardsigmoid)
_hardswish_in_place = in_place(ops.hardswish)
_hardtanh_in_place = in_place(ops.hardtanh)
_leaky_relu_in_place, _mean_rrelu_in_place = (
    _in_place_backward1(
        ops.leaky_relu,
        x=lambda g, x, negative_slope: ops._leaky_relu_grad(g, x, _positive("leakyReLu", negative_slope)),
    )
    for _ in range(2)
)
_mish_in_place = in_place(ops.mish)
_rrelu_in_place = _in_place_backward1(ops.rrelu)
renamed(_mean_rrelu_in_place, _rrelu_in_place.op.node_class.__name__)
_silu_in_place = in_place(ops.silu)
_threshold_in_place = _in_place_backward1(ops.threshold)

#: The constants of `selu` and `alpha_dropout` (Klambauer et al.): mean 0 and variance 1 are a fixed point.
SELU_ALPHA = 1.6732632423543772848170429916717
SELU_SCALE = 1.0507009873554804934193349852946


@public("nn.functional.relu")
@short("activation", _transcendental.relu)
def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return `max(input, 0)`, elementwise; in place if `inplace`.

    Example:
        >>> torch.nn.functional.relu(torch.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """
    try:
        return input.relu_() if inplace else input.relu()
    except AttributeError:
        check_tensor(input, "relu")
        raise


@public("nn.functional.relu6")
def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Return `min(max(input, 0), 6)`, elementwise; in place if `inplace`.

    Example:
        >>> torch.nn.functional.relu6(torch.tensor([-1.0, 2.0, 10.0]))
        tensor([0., 2., 6.])
    """
    return hardtanh(input, 0.0, 6.0, inplace)


def _numbers(name: str, **numbers: Any) -> list[Any]:
    """Return numeric arguments as numbers; 0-dimensional tensors are converted."""
    values = []
    for position, (argument, value) in enumerate(numbers.items(), 2):
        tensor = isinstance(value, Tensor)
        if (tensor and (value._array.ndim or value.requires_grad)) or (
            not tensor and not isinstance(value, (int, float, np.number, np.bool_))
        ):
            raise TypeError(
                f"{name}(): argument '{argument}' (position {position}) must be Number, not {type(value).__name__}"
            )
        values.append(value.item() if tensor else value)
    return values


@public(out="promoted")
@public("nn.functional.threshold")
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """Return `input` where it is greater than `threshold`, else `value`; in place if `inplace`.

    Example:
        >>> torch.nn.functional.threshold(torch.tensor([0.5, 1.5]), 1.0, -1.0)
        tensor([-1.0000,  1.5000])
    """
    if type(threshold) is not float or type(value) is not float:
        threshold, value = _numbers("threshold", threshold=threshold, value=value)
    return (_threshold_in_place if inplace else ops.threshold)(input, threshold, value)


@public("nn.functional.hardtanh")
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """Return `min(max(input, min_val), max_val)`, elementwise; in place if `inplace`.

    Example:
        >>> torch.nn.functional.hardtanh(torch.tensor([-2.0, 0.5, 2.0]))
        tensor([-1.0000,  0.5000,  1.0000])
    """
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    if type(min_val) is not float or type(max_val) is not float:
        min_val, max_val = _numbers("hardtanh", min_val=min_val, max_val=max_val)
    return (_hardtanh_in_place if inplace else ops.hardtanh)(input, min_val, max_val)


@public("nn.functional.hardsigmoid", listed=False)
@short("activation", ops.hardsigmoid)
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """Return `min(max(input + 3, 0), 6) / 6`, elementwise; in place if `inplace`.

    Example:
        >>> torch.nn.functional.hardsigmoid(torch.tensor([-4.0, 0.0, 1.5]))
        tensor([0.0000, 0.5000, 0.7500])
    """
    return (_hardsigmoid_in_place if inplace else ops.hardsigmoid)(input)


@public("nn.functional.hardswish", listed=False)
@short("activation", ops.hardswish)
def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """Return `input * min(max(input + 3, 0), 6) / 6`, elementwise; in place if `inplace`.

    Example:
        >>> torch.nn.functional.hardswish(torch.tensor([-4.0, 1.5, 4.0]))
        tensor([-0.0000,  1.1250,  4.0000])

    Source: Howard et al., "Searching for MobileNetV3", 2019.
    """
    return (_hardswish_in_place if inplace else ops.hardswish)(input)


@public("nn.functional.leaky_relu")
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Return `max(input, 0) + negative_slope * min(input, 0)`, elementwise; in place if `inplace`.

    Example:
        >>> torch.nn.functional.leaky_relu(torch.tensor([-1.0, 2.0]), 0.1)
        tensor([-0.1000,  2.0000])
    """
    if type(negative_slope) is not float:
        (negative_slope,) = _numbers("leaky_relu", negative_slope=negative_slope)
    return (_leaky_relu_in_place if inplace else ops.leaky_relu)(input, negative_slope)


@public(also="nn.functional.rrelu")
@per_example()
def rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """Return `input` where it is positive, else `a * input`; in place if `inplace`.

    In training, every `a` is drawn from [lower, upper); otherwise it is their mean.

    Example:
        >>> torch.nn.functional.rrelu(torch.tensor([-1.0, 2.0]), 0.1, 0.3)
        tensor([-0.2000,  2.0000])

    Source: Xu et al., "Empirical Evaluation of Rectified Activations in Convolutional Network", 2015.
    """
    for which, bound in (("lower", lower), ("upper", upper)):
        if not math.isfinite(bound):
            raise RuntimeError(f"rrelu: {which} bound must be finite, got {bound:g}")
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    check_floating("leaky_relu_cpu", input._array)
    if inplace and not training:
        return _mean_rrelu_in_place(input, (lower + upper) / 2)
    slopes = np.ones_like(input._array)
    if training:
        negative = input._array <= 0
        drawn = np.empty_like(slopes, dtype=np.float64, shape=np.count_nonzero(negative))
        slopes[negative] = wrap(drawn).uniform_(lower, upper)._array
    else:
        slopes[~(input._array > 0)] = (lower + upper) / 2
    return (_rrelu_in_place if inplace else ops.rrelu)(input, slopes)


@public("nn.functional.elu")
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return `max(input, 0) + min(alpha * (exp(input) - 1), 0)`; in place if `inplace`.

    Example:
        >>> torch.nn.functional.elu(torch.tensor([-1.0, 2.0]))
        tensor([-0.6321,  2.0000])

    Source: Clevert et al., "Fast and Accurate Deep Network Learning by Exponential Linear Units (ELUs)", 2015.
    """
    if type(alpha) is not float:
        (alpha,) = _numbers("elu", alpha=alpha)
    return (_elu_in_place if inplace else ops.elu)(input, alpha)


@public(also="nn.functional.selu")
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return `scale * elu(input, alpha)`, with constants that preserve mean 0 and variance 1.

    Example:
        >>> torch.nn.functional.selu(torch.tensor([-1.0, 1.0]))
        tensor([-1.1113,  1.0507])

    Source: Klambauer et al., "Self-Normalizing Neural Networks", 2017.
    """
    return (_elu_in_place if inplace else ops.elu)(input, SELU_ALPHA, SELU_SCALE)


@public(also="nn.functional.celu")
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return `max(input, 0) + min(alpha * (exp(input / alpha) - 1), 0)`; in place if `inplace`.

    Example:
        >>> torch.nn.functional.celu(torch.tensor([-1.0, 2.0]), 0.5)
        tensor([-0.4323,  2.0000])

    Source: Barron, "Continuously Differentiable Exponential Linear Units", 2017.
    """
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    if type(alpha) is not float:
        (alpha,) = _numbers("celu", alpha=alpha)
    return (_celu_in_place if inplace else ops.celu)(input, alpha)


@public("nn.functional.silu")
@short("activation", ops.silu)
def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return `input * sigmoid(input)`, also known as swish, elementwise; in place if `inplace`.

    Example:
        >>> torch.nn.functional.silu(torch.tensor([-1.0, 2.0]))
        tensor([-0.2689,  1.7616])

    Source: Elfwing et al., "Sigmoid-Weighted Linear Units for Neural Network Function Approximation", 2017.
    """
    return (_silu_in_place if inplace else ops.silu)(input)


@public("nn.functional.mish")
@short("activation", ops.mish)
def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """Return `input * tanh(softplus(input))`, elementwise; in place if `inplace`.

    Example:
        >>> torch.nn.functional.mish(torch.tensor([-1.0, 2.0]))
        tensor([-0.3034,  1.9440])

    Source: Misra, "Mish: A Self Regularized Non-Monotonic Neural Activation Function", 2019.
    """
    return (_mish_in_place if inplace else ops.mish)(input)


@public("nn.functional.glu")
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """Return `a * sigmoid(b)`, where a and b are the halves of `input` along `dim`.

    Example:
        >>> torch.nn.functional.glu(torch.tensor([1.0, 2.0, 0.0, 100.0]))
        tensor([0.5000, 2.0000])

    Source: Dauphin et al., "Language Modeling with Gated Convolutional Networks", 2016.
    """
    if input.ndim == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    check_floating("glu_cpu", input._array)
    axis = axis_of(dim, input.ndim, "glu")
    length = input.shape[axis]
    if length % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {axis} is size {length}")
    return ops.glu(input, axis)


@public("nn.functional.softsign")
def softsign(input: Tensor) -> Tensor:
    """Return `input / (1 + |input|)`, elementwise.

    Example:
        >>> torch.nn.functional.softsign(torch.tensor([-1.0, 3.0]))
        tensor([-0.5000,  0.7500])
    """
    return ops.softsign(input) if input.is_floating_point() else input / (input.abs() + 1)


@public("nn.functional.tanhshrink")
def tanhshrink(input: Tensor) -> Tensor:
    """Return `input - tanh(input)`, elementwise.

    Example:
        >>> torch.nn.functional.tanhshrink(torch.tensor([0.0, 2.0]))
        tensor([0.0000, 1.0360])
    """
    return ops.tanhshrink(input) if input.is_floating_point() else input - input.tanh()


@public("nn.functional.tanh", listed=False)
@alike(_transcendental.tanh)
def tanh(input: Tensor) -> Tensor:
    """Return the hyperbolic tangent; prefer `torch.tanh`.

    Example:
        >>> torch.nn.functional.tanh(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 0.7616])
    """
    try:
        return input.tanh()
    except AttributeError:
        check_tensor(input, "tanh")
        raise


@public("nn.functional.sigmoid", listed=False)
@alike(_transcendental.sigmoid)
def sigmoid(input: Tensor) -> Tensor:
    """Return `1 / (1 + exp(-input))`; prefer `torch.sigmoid`.

    Example:
        >>> torch.nn.functional.sigmoid(torch.tensor([0.0, 2.0]))
        tensor([0.5000, 0.8808])
    """
    try:
        return input.sigmoid()
    except AttributeError:
        check_tensor(input, "sigmoid")
        raise


# Softmax ------------------------------------------------------------------------------------------


@public("nn.functional.softmax")
def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Return `exp(input) / sum(exp(input))` along `dim`: positive numbers that add up to 1.

    Omitting `dim` is deprecated. `dtype` is what `input` is converted to first.

    Example:
        >>> torch.nn.functional.softmax(torch.tensor([[0.0, 0.0], [1.0, 3.0]]), dim=1)
        tensor([[0.5000, 0.5000],
                [0.1192, 0.8808]])
    """
    if dim is None:
        dim = _softmax_dim("softmax", input)
    return ops._softmax(input if dtype is None else input.to(dtype), dim)


@public("nn.functional.softmin")
def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Return `softmax(-input)` along `dim`; arguments as `softmax`.

    Example:
        >>> torch.nn.functional.softmin(torch.tensor([1.0, 3.0]), dim=0)
        tensor([0.8808, 0.1192])
    """
    if dim is None:
        dim = _softmax_dim("softmin", input)
    return ops.softmax(-input, dim, dtype)


@public("nn.functional.log_softmax")
def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Return `log(softmax(input))`, computed without underflow; arguments as `softmax`.

    Example:
        >>> torch.nn.functional.log_softmax(torch.tensor([0.0, 1000.0]), dim=0)
        tensor([-1000.,     0.])
    """
    if dim is None:
        dim = _softmax_dim("log_softmax", input)
    return ops._log_softmax(input if dtype is None else input.to(dtype), dim)


def _softmax_dim(name: str, input: Tensor) -> int:
    warn(f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.")
    return 0 if input.ndim in (0, 1, 3) else 1


@public("nn.functional.gumbel_softmax")
def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """Return a sample of the Gumbel-Softmax distribution: `softmax((logits + noise) / tau)`.

    The logits are unnormalised log-probabilities; samples approach one-hot vectors as `tau` decreases. `hard` returns
    one-hot vectors with the gradient of the soft sample; `eps` is ignored, as in PyTorch.

    Example:
        >>> torch.nn.functional.gumbel_softmax(torch.zeros(2, 5), hard=True).sum(-1)
        tensor([1., 1.])

    Source: Jang et al., "Categorical Reparameterization with Gumbel-Softmax", 2016.
    """
    if eps != 1e-10:
        warn("`eps` parameter is deprecated and has no effect.")
    noise = -apart(wrap(np.empty_like(logits._array, order="C"))).exponential_().log()
    soft = ops.softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    value = soft.detach()
    return zeros_like(value).scatter(dim, value.argmax(dim, True), 1) - value + soft


# In place -----------------------------------------------------------------------------------------


def _in_place(function: Any, name: str) -> Any:
    """Declare the in-place version of a function whose last parameter is `inplace`."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs, inplace=True)

    signature = inspect.signature(function)
    call.__signature__ = signature.replace(parameters=list(signature.parameters.values())[:-1])  # type: ignore[attr-defined]
    call.__name__ = call.__qualname__ = f"{function.__name__}_"
    call.__doc__ = f"In-place version of `{function.__name__}`."
    return public(name, also=f"nn.functional.{call.__name__}", binds=False)(call)


relu_ = _in_place(relu, "")
threshold_ = _in_place(threshold, "threshold_")
hardtanh_ = _in_place(hardtanh, "")
leaky_relu_ = _in_place(leaky_relu, "")
rrelu_ = _in_place(rrelu, "rrelu_")
elu_ = _in_place(elu, "")
selu_ = _in_place(selu, "selu_")
celu_ = _in_place(celu, "celu_")
