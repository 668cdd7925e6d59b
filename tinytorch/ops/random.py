"""Random tensors, with the same numbers as PyTorch for the same seed.

Every function draws from `default_generator` or from the argument `generator`. Random fills depend on no tensor, and
samples whose probabilities or means are tensors have zero gradients with respect to these, as in PyTorch.

To add a random function: write a kernel in `kernels/random.py` that draws PyTorch's numbers in PyTorch's order. A
function that returns a new tensor fills a `blank` tensor with `_filled`, like `rand`; an in-place method calls `_fill`,
like `normal_`; a function of tensors that get zero gradients is an `op`, like `poisson` in `rejection.py`. The names
in `torch.random` are exported by `tinytorch/random.py`.
"""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tinytorch.core.complex import OWN
from tinytorch.core.deterministic import mode as deterministic
from tinytorch.core.device import as_device, cpu, defaults
from tinytorch.core.device import device as Device
from tinytorch.core.inplace import record_write
from tinytorch.core.mode import BatchLevel, Event, local, short, tell_of_reading, traced_as
from tinytorch.core.op import Op, op
from tinytorch.core.tensor import Tensor, constant, wrap
from tinytorch.core.view import check_recorded, check_write
from tinytorch.core.warning import warn
from tinytorch.kernels import dtypes, layouts
from tinytorch.kernels import random as kernels
from tinytorch.kernels.checks import check_floating, refused
from tinytorch.kernels.dtypes import dtype as Dtype
from tinytorch.kernels.limits import limits_of
from tinytorch.kernels.meta import is_meta
from tinytorch.kernels.silence import cast, quietly
from tinytorch.ops.arguments import named, op_of
from tinytorch.ops.arithmetic import zero_gradient
from tinytorch.ops.complex import view_as_real
from tinytorch.ops.create import blank, blank_like, finished, is_index, number, plain, shape_of, written
from tinytorch.ops.register import public

__all__ = ["Generator", "default_generator"]


@traced_as("refused")  # (one that a call makes would be the same in each call of a program)
class Generator:
    """A random number generator with an independent state.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> torch.rand(2, generator=generator)
        tensor([0.4963, 0.7682])
    """

    def __init__(self, device: Any = "cpu") -> None:
        self.device: Device = as_device(device)
        if self.device.type == "meta":
            raise RuntimeError("META device type not an accelerator.")
        self._source = kernels.Source(67280421310721)  # PyTorch's seed of a new generator

    def manual_seed(self, seed: int) -> Generator:
        """Reset the generator to `seed`, -2**63 <= seed < 2**64, and return self.

        Example:
            >>> generator = torch.Generator().manual_seed(3)
            >>> generator.initial_seed()
            3
        """
        if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)):
            raise RuntimeError(f"manual_seed expected a long, but got {type(seed).__name__}")
        if not -(2**63) <= seed < 2**64:
            raise ValueError("Overflow when unpacking long long: a seed is in [-2**63, 2**64)")
        self._source.reseed(int(seed) % 2**64)
        return self

    def seed(self) -> int:
        """Reset the generator to a random seed from the operating system, and return the seed."""
        seed = int.from_bytes(os.urandom(8), "little")
        self._source.reseed(seed)
        return seed

    def initial_seed(self) -> int:
        """Return the seed to which this generator was last reset.

        Example:
            >>> torch.Generator().manual_seed(5).initial_seed()
            5
        """
        return self._source.seed

    def get_state(self) -> Tensor:
        """Return the state, a uint8 tensor with PyTorch's bytes.

        Example:
            >>> generator = torch.Generator().manual_seed(0)
            >>> generator.get_state().shape, generator.get_state().dtype
            (torch.Size([5056]), torch.uint8)
        """
        return finished(self._source.state())

    def set_state(self, new_state: Tensor) -> Generator:
        """Set the state to one that `get_state` returned, a uint8 tensor, and return self.

        Example:
            >>> generator = torch.Generator().manual_seed(0)
            >>> state = generator.get_state()
            >>> x = torch.rand(2, generator=generator)
            >>> torch.equal(torch.rand(2, generator=generator.set_state(state)), x)
            True
        """
        if not isinstance(new_state, Tensor):
            raise TypeError(f"expected a torch.ByteTensor, but got {type(new_state).__name__}")
        if new_state.dtype is not dtypes.uint8:
            raise TypeError("RNG state must be a torch.ByteTensor")
        self._source.set_state(new_state._array)
        return self

    def get_offset(self) -> int:
        """Raise RuntimeError: offsets are for generators of other devices."""
        raise RuntimeError("CPU Generator does not use offset")

    def set_offset(self, offset: int) -> Generator:
        """Raise RuntimeError: offsets are for generators of other devices."""
        raise RuntimeError("CPU Generator does not use offset")

    def clone_state(self) -> Generator:
        """Return a new generator in the same state.

        Example:
            >>> first = torch.Generator().manual_seed(0)
            >>> second = first.clone_state()
            >>> torch.equal(torch.rand(2, generator=first), torch.rand(2, generator=second))
            True
        """
        return Generator(self.device).set_state(self.get_state())

    def __reduce__(self) -> tuple[Any, ...]:
        return Generator, (self.device,), (self.initial_seed(), None, self.get_state())

    def __setstate__(self, state: Any) -> None:
        if isinstance(state, dict):  # of tinytorch 0.1
            self.__init__(state["device"])  # type: ignore[misc]
            self._source.set_state(state["state"])
        else:
            self.set_state(state[-1])  # (seed, offset, state): the state contains the seed


default_generator = Generator()
default_generator.seed()


def _short(name: str, kernel: Any, *numbers: Any, of_bounds: bool = False) -> Any:
    """Declare the twin of a random function: see methods.c; `numbers` are those that the kernel gets by default."""
    options = (of_bounds, dtypes.default, defaults, cpu, deterministic)
    return short(name, *options, default_generator, kernel, *numbers)


def _source(name: str, generator: Generator | None) -> kernels.Source:
    """Return what a function draws from, once for each op or fill that draws: modes notice the draw."""
    if generator is None:
        source = default_generator._source if local.state.trial is None else local.state.trial.source
    elif not isinstance(generator, Generator):
        raise TypeError(f"{name}(): argument 'generator' must be torch.Generator, not {type(generator).__name__}")
    else:
        source = generator._source
    for mode in local.state.modes or ():
        mode.event(Event.DRAWS, source=source)
    return source


@public(binds=True, asks="nobody", traced="refused")
def manual_seed(seed: int) -> Generator:
    """Reset the default generator to `seed`, -2**63 <= seed < 2**64, and return the generator.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> torch.rand(2)
        tensor([0.4963, 0.7682])
    """
    return default_generator.manual_seed(int(seed))


@public(binds=True, asks="nobody", traced="refused")
def seed() -> int:
    """Reset the default generator to a random seed from the operating system, and return the seed.

    Example:
        >>> torch.seed() == torch.initial_seed()
        True
    """
    return default_generator.seed()


@public(binds=True, asks="nobody", traced="refused")
def initial_seed() -> int:
    """Return the seed to which the default generator was last reset.

    Example:
        >>> _ = torch.manual_seed(7)
        >>> torch.initial_seed()
        7
    """
    return default_generator.initial_seed()


@public(binds=True, asks="nobody", traced="refused")
def get_rng_state() -> Tensor:
    """Return the state of the default generator, a uint8 tensor with PyTorch's bytes.

    Example:
        >>> state = torch.get_rng_state()
        >>> x = torch.rand(2)
        >>> torch.set_rng_state(state)
        >>> torch.equal(torch.rand(2), x)
        True
    """
    return default_generator.get_state()


@public(binds=True, asks="nobody", traced="refused")
def set_rng_state(new_state: Tensor) -> None:
    """Set the state of the default generator to one that `get_rng_state` returned.

    Example:
        >>> torch.set_rng_state(torch.get_rng_state())
    """
    default_generator.set_state(new_state)


@contextmanager
def fork_rng(
    devices: Any = None,
    enabled: bool = True,
    _caller: str = "fork_rng",
    _devices_kw: str = "devices",
    device_type: str | None = None,
) -> Iterator[None]:
    """Restore the state of the default generator at the end of the block.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> with torch.random.fork_rng():
        ...     _ = torch.rand(100)
        >>> torch.rand(2)
        tensor([0.4963, 0.7682])
    """
    if device_type is not None:
        as_device(device_type)
    if not enabled:
        yield
        return
    if devices:
        raise AssertionError("Torch not compiled with CUDA enabled")
    state = default_generator.get_state()
    try:
        yield
    finally:
        default_generator.set_state(state)


def thread_safe_generator() -> Generator | None:
    """Return None, which stands for the default generator.

    In PyTorch, worker threads of a data loader get their own generators; data loaders here have no worker threads.

    Example:
        >>> torch.rand(3, generator=torch.random.thread_safe_generator()).shape
        torch.Size([3])
    """
    return None


# Filling a tensor in place ------------------------------------------------------------------------


def _fill_op(name: str) -> Op:
    """Return the op that represents a random fill in the graph; the overwritten tensor gets a zero gradient."""
    made: Op = op(batch="random", x=zero_gradient, name=name)(kernels.fill).op
    return made


_UNIFORM, _NORMAL, _LOG_NORMAL = map(_fill_op, ("UniformBackward0", "NormalBackward0", "LogNormalBackward0"))
_EXPONENTIAL, _CAUCHY = map(_fill_op, ("ExponentialBackward0", "CauchyBackward0"))
_RANDOM, _BERNOULLI, _GEOMETRIC = map(_fill_op, ("RandomBackward0", "BernoulliBackward2", "GeometricBackward0"))


def apart(x: Tensor) -> Tensor:
    """Return a new tensor that will be filled with random numbers, which may differ between the examples of `vmap`."""
    for mode in reversed(local.state.modes or ()):
        x = mode.apart(x) if isinstance(mode, BatchLevel) else x
    return x


def _fill(made: Op, x: Tensor, kernel: Callable[..., None], *args: Any, inputs: tuple[Any, ...] = ()) -> Tensor:
    """Fill `x` in place by `kernel(array, *args)` and record the fill, with further differentiable `inputs`."""
    if x._array.itemsize == 1 and x.dtype in dtypes.FLOAT8:
        raise refused("normal_kernel_cpu", x._array)
    for mode in reversed(local.state.modes or ()):
        if isinstance(mode, BatchLevel) and mode.fills(
            x, lambda x, *args: _fill(made, x, kernel, *args, inputs=inputs), args
        ):
            return x
    for mode in local.state.modes or ():
        mode.event(Event.KNOWN, x=x)
    if local.state.modes is not None:
        x.zero_()  # a mode sees that the old values and their tangent are gone
        if x._cell is not None:
            x._cell[0] -= 1  # zero_ and the fill count as one write
    for mode in local.state.modes or ():
        mode.event(Event.FILLED, x=x, kernel=kernel, args=args)
    tensors = (x, *map(plain, inputs))
    edges = made.edges_of(tensors) if local.state.grad else None
    check_write(x, edges is not None)
    if x._array.size and not is_meta(x._array):
        with args[0].lock:
            quietly(kernel, x._array, *args)
    x._bump()
    if edges is not None:
        record_write(made, edges, (*tensors, None)[: len(made.arguments)], x)
    return x


def _filled(made: Op, x: Tensor, new: bool, kernel: Callable[..., None], *args: Any) -> Tensor:
    """Fill `x` like `_fill`, without recording or checks if `x` is new and no mode is active."""
    if not new or local.state.modes is not None or x._array.itemsize == 1:
        return _fill(made, apart(x) if new else x, kernel, *args)
    if x._array.size and not is_meta(x._array):
        with args[0].lock:
            quietly(kernel, x._array, *args)
    return x


def _real(name: str, argument: str, position: int, value: Any) -> float:
    """Return a number as float, or raise PyTorch's TypeError."""
    try:
        return float(number(name, argument, position, value))
    except TypeError:
        kind = type(value).__name__
        raise TypeError(f"{name}(): argument '{argument}' (position {position}) must be float, not {kind}") from None


def _integer(name: str, argument: str, position: int, value: Any) -> int:
    """Return a 64-bit integer as int, or raise PyTorch's TypeError."""
    if type(value) is int and -(2**63) <= value < 2**63:
        return value
    if isinstance(value, Tensor):
        tell_of_reading(value)
        value = value._array.item() if value._array.size == 1 and value._array.dtype.kind in "iu" else value
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        kind = type(value).__name__
        raise TypeError(f"{name}(): argument '{argument}' (position {position}) must be int, not {kind}")
    if not -(2**63) <= value < 2**63:
        raise ValueError("Overflow when unpacking long long")
    return int(value)


def _check_dtype(x: Tensor, kernel: str) -> None:
    if x.dtype in dtypes.UNSIGNED or x.dtype.is_complex:
        raise refused(kernel, x._array)


_C_NAMES = {**dtypes.C_NAMES, "int16": "short", "int64": "long"}


@public("", method="uniform_")
@_short("refill", kernels.uniform, 0, 1, of_bounds=True)
def uniform_(x: Tensor, *args: Any, generator: Generator | None = None, **bounds: Any) -> Tensor:
    """Fill in place with numbers uniformly distributed in [from, to): `uniform_(from=0, to=1)`.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> torch.empty(3).uniform_(-1, 1)
        tensor([-0.0075,  0.5364, -0.8230])
    """
    low, high = _bounds("uniform_", args, bounds, (0.0, 1.0))
    low, high = _real("uniform_", "from", 1, low), _real("uniform_", "to", 2, high)
    if x._array.dtype.kind == "c":
        uniform_(_parts(x), low, high, generator=generator)
        return x
    check_floating("check_uniform_bounds", x._array)
    limit = limits_of(x.dtype)[1]
    for name, value in (("from", low), ("to", high)):
        if not -limit <= value <= limit:
            raise RuntimeError(f"{name} is out of bounds for {_C_NAMES[x.dtype.name]}")
    if low > high:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}")
    if high - low > limit:
        raise RuntimeError(
            f"uniform_ expects to-from <= std::numeric_limits<{x.dtype.tensor_name}>::max(), but "
            f"found to={high:g} and from={low:g} which result in to-from to exceed the limit"
        )
    return _fill(_UNIFORM, x, kernels.uniform, _source("uniform_", generator), low, high)


def _parts(x: Tensor) -> Tensor:
    """Return the real and imaginary parts of a complex tensor, to be written in place."""
    if local.state.grad and x.requires_grad:
        check_recorded(x)
        raise NotImplementedError("random numbers are not written to a complex tensor that requires grad")
    parts: Tensor = view_as_real(x.detach())
    return parts


def _bounds(name: str, args: tuple[Any, ...], bounds: dict[str, Any], defaults: tuple[Any, Any]) -> tuple[Any, Any]:
    """Return the arguments `from` (a reserved word, so no parameter can have this name) and `to`."""
    values = dict(zip(("from", "to"), defaults, strict=True))
    given = dict(zip(("from", "to"), args, strict=False))
    if len(args) > 2 or given.keys() & bounds.keys() or bounds.keys() - values.keys():
        kinds = [type(each).__name__ for each in args]
        kinds += [f"{key}={type(each).__name__}" for key, each in bounds.items()]
        raise TypeError(f"{name}() received an invalid combination of arguments - got ({', '.join(kinds)})")
    values |= given | bounds
    return values["from"], values["to"]


@public("", method="normal_")
@_short("refill", kernels.normal, 0, 1)
def normal_(x: Tensor, mean: float = 0, std: float = 1, *, generator: Generator | None = None) -> Tensor:
    """Fill in place with normally distributed numbers. RuntimeError if `std` is negative.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> torch.empty(3).normal_()
        tensor([ 1.5410, -0.2934, -2.1788])
    """
    mean, std = _real("normal_", "mean", 1, mean), _real("normal_", "std", 2, std)
    if not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    if x._array.dtype.kind == "c":  # (each part has half of the variance)
        normal_(_parts(x), mean, std / math.sqrt(2), generator=generator)
        return x
    if x._array.size:
        check_floating("normal_kernel_cpu", x._array)
    return _fill(_NORMAL, x, kernels.normal, _source("normal_", generator), mean, std)


@public("", method="log_normal_")
def log_normal_(x: Tensor, mean: float = 1, std: float = 2, *, generator: Generator | None = None) -> Tensor:
    """Fill in place with log-normal samples: their logarithms have mean `mean` and standard deviation `std`.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> torch.empty(3).log_normal_(0, 1)
        tensor([4.6692, 0.7457, 0.1132])
    """
    mean, std = _real("log_normal_", "mean", 1, mean), _real("log_normal_", "std", 2, std)
    if not std > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
    if x._array.size:
        check_floating("log_normal_cpu", x._array)
    return _fill(_LOG_NORMAL, x, kernels.log_normal, _source("log_normal_", generator), mean, std)


@public("", method="exponential_")
def exponential_(x: Tensor, lambd: float = 1, *, generator: Generator | None = None) -> Tensor:
    """Fill in place with exponentially distributed numbers, of density lambd exp(-lambd x), for positive `lambd`.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> torch.empty(2).exponential_() >= 0
        tensor([True, True])
    """
    lambd = _real("exponential_", "lambd", 1, lambd)
    if not lambd > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd:g}")
    _check_continuous("Exponential", x, x.dtype.tensor_name)
    return _fill(_EXPONENTIAL, x, kernels.exponential, _source("exponential_", generator), lambd)


@public("", method="cauchy_")
def cauchy_(x: Tensor, median: float = 0, sigma: float = 1, *, generator: Generator | None = None) -> Tensor:
    """Fill in place with samples of the Cauchy distribution with the given median and positive scale `sigma`.

    Example:
        >>> torch.empty(2).cauchy_().shape
        torch.Size([2])
    """
    median, sigma = _real("cauchy_", "median", 1, median), _real("cauchy_", "sigma", 2, sigma)
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    _check_continuous("Cauchy", x, _C_NAMES[x.dtype.name])
    return _fill(_CAUCHY, x, kernels.cauchy, _source("cauchy_", generator), median, sigma)


def _check_continuous(what: str, x: Tensor, kind: str) -> None:
    if not x.dtype.is_floating_point:
        raise RuntimeError(
            f"{what} distribution is a continuous probability distribution. dtype must be a "
            f"floating point but you specified {kind}"
        )


@public("", method="geometric_")
def geometric_(x: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Fill in place with geometric samples: the number of trials up to the first success, of probability p in (0, 1).

    Example:
        >>> (torch.empty(100).geometric_(0.5) >= 1).all()
        tensor(True)
    """
    p = _real("geometric_", "p", 1, p)
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    if x.dtype in dtypes.LACKING and x._array.size:
        raise refused("geometric_cpu", x._array)
    return _fill(_GEOMETRIC, x, kernels.geometric, _source("geometric_", generator), p)


@public("", method="random_")
def random_(x: Tensor, *args: Any, generator: Generator | None = None, **bounds: Any) -> Tensor:
    """Fill in place with random integers in [from, to): `random_()`, `random_(to)`, `random_(from, to)`.

    Without bounds, or with None for `to`, the range is up to the maximum of an integer dtype, or up to 2**(bits of the
    mantissa) for a floating dtype. RuntimeError: from >= to, or a bound is out of the range of the dtype.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> torch.zeros(4, dtype=torch.int64).random_(10)
        tensor([4, 9, 3, 0])
    """
    source = _source("random_", generator)
    if not args and not bounds:
        _check_dtype(x, "random_kernel_cpu")
        return _fill(_RANDOM, x, kernels.integers_of_dtype, source, _digits(x.dtype))
    if len(args) == 1 and not bounds:
        args = (0, *args)
    low, high = _bounds("random_", args, bounds, (0, None))
    low = _integer("random_", "from", 1, low)
    if high is not None:
        return _integers(x, source, low, _integer("random_", "to", 2, high))
    if low == -(2**63):
        if x.dtype not in (dtypes.int64, dtypes.float64, dtypes.float32, dtypes.bfloat16):
            raise RuntimeError("random_full_64_bits_range_kernel_cpu handles only int64, double, float and bfloat16")
        return _fill(_RANDOM, x, kernels.full_range, source)
    last = (1 << _digits(x.dtype)) - (not x.dtype.is_floating_point)
    if x.dtype.is_floating_point:
        low = _representable_from(low, x.dtype)
    _check_range(low, last, x.dtype)
    return _fill(_RANDOM, x, kernels.integers, source, low, last - low + 1)


def _digits(kind: Dtype) -> int:
    """Return the number of bits of a dtype without the sign; for floating dtypes the bits of the mantissa."""
    if kind.is_floating_point:
        return {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}[kind.name]
    return 1 if kind is dtypes.bool else int(limits_of(kind)[1]).bit_length()


def _integers(x: Tensor, source: kernels.Source, low: int, high: int, new: bool = False) -> Tensor:
    """Fill `x` with random integers in [low, high); for `new` see `_filled`."""
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    kind = x.dtype
    if kind.is_floating_point:
        low, high = _representable_from(low, kind), _representable_to(high, kind)
        if low >= high:
            raise RuntimeError(
                "random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, but "
                f"got from={low} >= to={high}"
            )
    _check_range(low, high - 1, kind)
    return _filled(_RANDOM, x, new, kernels.integers, source, low, high - low)


def _rounded(value: int, kind: Dtype) -> int:
    """Return `value` rounded to floating dtype `kind`; out of int64's range the minimum, as C's cast gives on x86."""
    real = float(cast(np.float64(value), kind.numpy))
    return int(real) if abs(real) < 2.0**63 else -(2**63)


# A floating dtype rounds integers beyond the mantissa's range; the bounds move inwards so that no
# rounded number is outside [from, to).
def _representable_from(low: int, kind: Dtype) -> int:
    rounded = _rounded(low + 1, kind)
    if rounded < low:
        return rounded + (1 << (abs(low + 1).bit_length() - _digits(kind)))
    return low


def _representable_to(high: int, kind: Dtype) -> int:
    rounded = _rounded(high - 1, kind)
    if rounded >= high:
        return rounded - (1 << (abs(high - 1).bit_length() - _digits(kind)))
    return high


def _check_range(low: int, last: int, kind: Dtype) -> None:
    """Raise an error if a bound is out of the dtype's range; warn if the dtype rounds integers in the range."""
    least, greatest = limits_of(kind)
    if least <= low <= last <= greatest and not kind.is_floating_point:
        return
    name = _C_NAMES[kind.name]
    for what, value in (("from", low), ("to - 1", last)):
        if not least <= value <= greatest:
            raise RuntimeError(f"{what} is out of bounds for {name}")
    digits = _digits(kind)
    for what, value in (("from", low), ("to - 1", last)):
        if kind.is_floating_point and abs(value) > 1 << digits:
            warn(
                f"{what} is out of bounds [-(2^{digits}), 2^{digits}]. Due to precision limitations {name} can "
                "support discrete uniform distribution only within this range. This warning will become an error in "
                "version 1.7 release, please fix the code in advance"
            )


@public("", method="bernoulli_")
def bernoulli_(x: Tensor, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Fill in place with Bernoulli samples: each element is 1 with probability p, else 0.

    `p` is a number, or a floating tensor that can be expanded to the shape of `x`; RuntimeError if not in [0, 1].

    Example:
        >>> _ = torch.manual_seed(0)
        >>> torch.empty(4).bernoulli_(0.5)
        tensor([0., 0., 1., 0.])
    """
    source = _source("bernoulli_", generator)
    _check_dtype(x, f"bernoulli_{'tensor_cpu_self' if isinstance(p, Tensor) else 'scalar_cpu'}_")
    if not isinstance(p, Tensor):
        p = _real("bernoulli_", "p", 1, p)
        if not 0 <= p <= 1:
            raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
        return _fill(_BERNOULLI, x, kernels.bernoulli, source, p)

    return _fill(_bernoulli_each.op, x, kernels.bernoulli_each, source, p._array, inputs=(p,))


@op(
    kernels.bernoulli_like, batch="random", name="Bernoulli",
    x=zero_gradient, p=lambda g, p_shape: constant(np.zeros_like(g._array, shape=p_shape)),
)  # fmt: skip
def _bernoulli_each(x: Any, p: Any, source: Any) -> Any:
    """Return an array like `x` of Bernoulli samples with the probabilities `p`."""


# New tensors --------------------------------------------------------------------------------------


@public(method=True)
@_short("bernoulli", kernels.bernoulli_each, _bernoulli_each)
def bernoulli(
    input: Tensor, p: float | None = None, *, generator: Generator | None = None, out: Tensor | None = None
) -> Tensor:
    """Return Bernoulli samples with the probabilities `input`; the gradient is zero.

    `p` is one probability for all elements, used instead of `input`.

    Example:
        >>> torch.bernoulli(torch.tensor([0.0, 1.0]))
        tensor([0., 1.])
    """
    if p is not None:
        return bernoulli_(apart(wrap(np.empty_like(input._array, order="C"))), p, generator=generator)
    if out is not None:
        return bernoulli_(blank(input.shape, out, None), input.detach(), generator=generator)
    return _bernoulli_each(input, input, _source("bernoulli", generator))


@public(listed=False, traced="draws")
@_short("random_normals", kernels.normal)
def normal(
    mean: Any,
    std: Any = 1.0,
    size: Sequence[int] | None = None,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: Dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Return normal samples z * std + mean, of the broadcast shape of mean and standard deviation.

    The gradient is zero; mean + std * randn_like(std) is differentiable. `size`, `dtype` and the following arguments
    are for a mean and a standard deviation that are numbers. RuntimeError: a standard deviation is negative.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> torch.normal(torch.tensor([0.0, 100.0]), 1.0)
        tensor([ 1.5410, 99.7066])
    """
    tensors = isinstance(mean, Tensor), isinstance(std, Tensor)
    if not any(tensors):
        if size is None:
            raise TypeError(
                f"normal() received an invalid combination of arguments - got ({type(mean).__name__}, "
                f"{type(std).__name__}): size is needed where neither is a tensor"
            )
        made = blank(shape_of("normal", (), size), out, dtype, device, layout)
        made = apart(made) if out is None else made
        return _requiring(normal_(made, mean, std, generator=generator), requires_grad, out)
    if size is not None:
        raise TypeError(
            f"normal() received an invalid combination of arguments - got ({type(mean).__name__}, "
            f"{type(std).__name__}, {type(size).__name__}): the tensors tell the shape"
        )
    mean = mean if tensors[0] else _real("normal", "mean", 1, mean)
    std = std if tensors[1] else _real("normal", "std", 2, std)
    source = _source("normal", generator)
    drawn: Tensor = _NORMAL_EACH[tensors](mean, std, source)
    return drawn if out is None else written(blank(drawn._array.shape, out, None), drawn._array)


#: The op for each combination of tensors among (mean, std): PyTorch has an overload for each.
_NORMAL_EACH: dict[tuple[bool, bool], Any] = {
    which: op_of(
        kernels.normal_each,
        batch="random",
        complex=OWN,
        name=f"NormalBackward{k}",
        mean=lambda g, mean_shape: constant(np.zeros_like(g._array, shape=mean_shape)),
        std=lambda g, std_shape: constant(np.zeros_like(g._array, shape=std_shape)),
    )
    for k, which in enumerate(((True, False), (False, True), (True, True)), 1)
}


def _requiring(made: Tensor, requires_grad: bool, out: Tensor | None = None) -> Tensor:
    """Return a filled tensor with `requires_grad` set: a leaf that requires grad cannot be filled in place."""
    if requires_grad:
        return finished(made._array, True)
    if out is None and made._cell is not None:
        made._cell[0] = 0  # filling a new tensor does not count as a write
    return made


def _distributed(name: str, op: Op, kernel: Any, fill: Any, check: Any, what: str, example: str) -> tuple[Any, Any]:
    """Return the public functions `name` and `name_like`, whose results the method `fill` writes in place.

    `op` and `kernel` are those of the method; `check` refuses the dtypes that it refuses.
    """

    def of_size(
        *sizes: Any,
        size: Sequence[int] | None = None,
        generator: Generator | None = None,
        out: Tensor | None = None,
        dtype: Dtype | None = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        pin_memory: bool = False,
    ) -> Tensor:
        made = blank(shape_of(name, sizes, size), out, dtype, device, layout)
        if made._array.dtype.kind == "c":
            made = apart(made) if out is None else made
            return _requiring(fill(made, generator=generator), requires_grad, out)
        check(made._array)
        return _requiring(_filled(op, made, out is None, kernel, _source(name, generator)), requires_grad, out)

    def like(
        input: Tensor,
        *,
        generator: Generator | None = None,
        dtype: Dtype | None = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        memory_format: Any = None,
        pin_memory: bool = False,
    ) -> Tensor:
        made = blank_like(f"{name}_like", input, dtype, device, layout, False, memory_format)
        return _requiring(fill(apart(made), generator=generator), requires_grad)

    def published(made: Any, name: str, end: str, argument: str, twin: str) -> Any:
        doc = f"""Return {what}{end}.

    `generator` is the random number generator, by default `default_generator`; the others are as for `zeros`.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> torch.{name}({argument})
        tensor({example})
    """
        short = _short(twin, kernel, 0, 1)
        return public(listed=False, traced="draws")(short(named(made, name, doc)))

    end = ", with the shape and dtype of `input`"
    of_zeros = published(like, f"{name}_like", end, "torch.zeros(3)", "random_like")
    return published(of_size, name, "", "3", "random_of_size"), of_zeros


rand, rand_like = _distributed(
    "rand", _UNIFORM, kernels.uniform, uniform_, functools.partial(check_floating, "check_uniform_bounds"),
    "numbers uniformly distributed in [0, 1)", "[0.4963, 0.7682, 0.0885]",
)  # fmt: skip
randn, randn_like = _distributed(
    "randn", _NORMAL, kernels.normal, normal_,
    lambda array: check_floating("normal_kernel_cpu", array) if array.size else None,
    "normally distributed numbers of mean 0 and variance 1", "[ 1.5410, -0.2934, -2.1788]",
)  # fmt: skip


@public(listed=False, traced="draws")
@_short("random_integers", kernels.integers)
def randint(
    *args: Any,
    low: int = 0,
    high: int | None = None,
    size: Sequence[int] | None = None,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: Dtype | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Return random integers in [low, high): `randint(high, size)` or `randint(low, high, size)`.

    The dtype is by default int64; RuntimeError if a bound is out of its range, or low >= high. The other arguments are
    as for `rand`.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> torch.randint(3, 10, (4,))
        tensor([7, 6, 3, 5])
    """
    given = list(args)
    if size is None and given and len(given) + (high is not None) >= 2:
        size = given.pop()
        if not isinstance(size, (tuple, list)):
            raise TypeError(
                f"randint(): argument 'size' (position {len(args)}) must be tuple of ints, not {type(size).__name__}"
            )
    if given:
        *rest, high = given if high is None else [*given, high]
        if rest:
            (low,) = rest[:1]
    if size is None or high is None or len(given) > 2:
        kinds = ", ".join(type(each).__name__ for each in args)
        raise TypeError(f"randint() received an invalid combination of arguments - got ({kinds})")
    low, high = (_integer("randint", "low", 1, low), _integer("randint", "high", 1 + (len(given) > 1), high))
    kind = dtypes.int64 if dtype is None and out is None else dtype
    made = blank(shape_of("randint", (), size), out, kind, device, layout)
    if made._array.dtype.kind == "c":
        raise RuntimeError("check_random_bounds handles only integral, floating-point and boolean types")
    made = _integers(made, _source("randint", generator), low, high, out is None)
    return _requiring(made, requires_grad, out)


@public(listed=False, traced="draws")
@_short("random_order", kernels.permutation)
def randperm(
    n: int,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: Dtype | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Return a random permutation of the integers 0 … n-1, by default of int64; the other arguments are as for `rand`.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> torch.randperm(4)
        tensor([0, 1, 3, 2])
    """
    if not is_index(n):
        raise TypeError(f"randperm(): argument 'n' (position 1) must be int, not {type(n).__name__}")
    n = int(n)
    kind = dtypes.int64 if dtype is None else dtypes.as_dtype(dtype)
    kind = kind if out is None else out.dtype
    made = blank(shape_of("randperm", (n,)), out, dtype if out is not None else kind, device, layout)
    if kind in dtypes.LACKING or kind.is_complex:
        raise refused("randperm", made._array)
    if kind.is_floating_point and n > (1 << _digits(kind)) + 1:
        raise RuntimeError(f"n cannot be greater than {(1 << _digits(kind)) + 1} for {kind.tensor_name} type.")
    if not kind.is_floating_point and n - 1 > limits_of(kind)[1]:
        raise RuntimeError(f"value cannot be converted to type {kind.name}_t without overflow")
    made = _filled(_RANDOM, made, out is None, kernels.permutation, _source("randperm", generator))
    return _requiring(made, requires_grad, out)


def _bound(name: str, value: Any) -> int:
    """Return a bound of `randint_like`, an int or a 0-d tensor, as int."""
    if isinstance(value, Tensor):
        if value.ndim:
            raise RuntimeError(f"{name} must be a scalar tensor and on CPU")
        value = int(value.item())
    return _integer("randint_like", name, 2, value)


@public(listed=False, traced="draws")
def randint_like(
    input: Tensor,
    *args: Any,
    low: int = 0,
    high: int | None = None,
    generator: Generator | None = None,
    dtype: Dtype | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    memory_format: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """Return random integers in [low, high) with the shape of `input`: `randint_like(input, [low,] high)`.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> torch.randint_like(torch.zeros(3), 10)
        tensor([4., 9., 3.])
    """
    if len(args) == 1 and high is None:
        high = args[0]
    elif args:
        low, high = args if len(args) == 2 else (args[0], high)
    low, high = _bound("low", low), _bound("high", high)
    made = blank_like("randint_like", input, dtype, device, layout, False, memory_format)
    return _requiring(_integers(apart(made), _source("randint_like", generator), low, high), requires_grad)


@public(method=True)
def multinomial(
    input: Tensor,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return int64 indices, (num_samples,) or (rows, num_samples), drawn with probability proportional to the weights.

    The weights `input` are (categories,) or (rows, categories); a row need not sum to one. `replacement`: an index can
    be drawn again. RuntimeError: a weight is negative or not finite, the weights of a row sum to zero, or there are
    fewer than `num_samples` categories to draw from without replacement.

    Example:
        >>> torch.multinomial(torch.tensor([0.0, 3.0, 0.0]), 2, replacement=True)
        tensor([1, 1])
    """
    n = _integer("multinomial", "num_samples", 2, num_samples)
    if input._array.ndim not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if not input.dtype.is_floating_point:
        raise RuntimeError(f"multinomial only supports floating-point dtypes for input, got: {input.dtype.tensor_name}")
    if out is not None and out.dtype is not dtypes.int64:
        raise RuntimeError(f"multinomial expects Long tensor out, got: {out.dtype.tensor_name}")
    if n <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    categories = input._array.shape[-1]
    if not replacement and n > categories:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    if categories > 1 << 24:
        raise RuntimeError("number of categories cannot exceed 2^24")
    if input.is_meta:
        chosen: Tensor = wrap(np.empty((*input._array.shape[:-1], n), np.int64, like=input._array))
    else:
        chosen = _multinomial(input, n, bool(replacement), _source("multinomial", generator))
    return chosen if out is None else written(blank(chosen._array.shape, out, None), chosen._array)


_multinomial = op_of(kernels.multinomial, batch="random", name="multinomial", weights=None)


@public()
def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """Return `input` with elements zeroed with probability p and the rest divided by 1 - p, and a mask of the rest.

    False for `train` returns a copy of `input` and a mask of True.

    Example:
        >>> torch.native_dropout(torch.ones(2), 0.5, False)
        (tensor([1., 1.]), tensor([True, True]))
    """
    if not input._array.size:
        return input, wrap(np.empty_like(input._array))
    mask: Tensor = wrap(layouts.empty_like(input._array, np.bool_))
    if train is False:
        mask._array[...] = True
        return input.clone(), mask
    if not input.dtype.is_floating_point:
        raise RuntimeError(f"result type Float can't be cast to the desired output type {input.dtype.tensor_name}")
    mask = apart(mask).bernoulli_(1 - p)
    return input * mask * (0.0 if p == 1 else 1 / (1 - p)), mask
