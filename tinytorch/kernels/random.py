"""PyTorch's CPU random numbers, bit for bit: the generator, and the distributions that fill arrays.

PyTorch draws 32-bit words from MT19937, the Mersenne Twister; NumPy has the same engine. The numbers
computed from the words equal those of PyTorch's x86 build to the last bit, for which the formulas do not suffice:

- Its compiler fuses `x * y + z` into one operation that rounds once (`_fma32`, `_fma64`).
- 16 or more float32 normals are computed with Cephes's single-precision log, sine and cosine, which round
  differently from the C library's (`_log32`, `_cos_sin32`); float64 ones with the C library's (`_libm`).
- An array is filled in the order of its memory, not of its indices (`_fill`).

PyTorch's results depend on the machine in one case: on Intel processors `bernoulli_(p)` with a number
for `p` (and so dropout) and `exponential_` draw from a generator of Intel's MKL. Here the results on
every machine are those of PyTorch on all other processors.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from .checks import check_floating
from .intp import as_int64
from .native import twin

Array = Any

_MASK24 = (1 << 24) - 1
_MASK53 = (1 << 53) - 1
_BLOCK = 1 << 16  # numbers drawn at a time, so that the temporaries stay in the processor's cache
_FEW = 4  # up to so many are computed as Python numbers, which is faster than calling NumPy

# The layout of the bytes of `torch.get_rng_state()`, a legacy C struct.
_STATE = np.dtype(
    [
        ("seed", "<u8"),
        ("left", "<i4"),  # words until the engine generates the next 624, plus one
        ("seeded", "<i4"),
        ("next", "<u8"),  # which of the 624 words comes next
        ("words", "<u8", 624),
        ("normal_x", "<f8"),
        ("normal", "<f8"),  # the second of a pair of normals, kept for the next call
        ("normal_rho", "<f8"),
        ("has_normal", "<i4"),
        ("padding", "<i4"),
        ("normal32", "<f4"),
        ("has_normal32", "<i4"),
    ]
)
STATE_BYTES = _STATE.itemsize  # 5056


class Source:
    """The generator: MT19937, its seed, and the cached second normal of a pair.

    Attributes:
        seed: the last seed, 0 <= seed < 2**64 (the engine uses the lower 32 bits).
        shift: a number that is added to each seed that is set (see `tinytorch.compiler.sweep`).
        normal: the second normal of a pair, to be returned next, or None.
        lock: held while an array is filled, so that its numbers are consecutive in the stream.
    """

    __slots__ = ("_bits", "_fresh", "_numbers", "lock", "normal", "seed", "shift")

    def __init__(self, seed: int) -> None:
        self.lock = threading.RLock()  # held while an array is filled
        self._bits: Any = None  # created at the first draw: importing `numpy.random` takes 15 ms
        self.shift = 0
        self.reseed(seed)

    def reseed(self, seed: int) -> None:
        """Start again from `seed`."""
        self.seed = seed = (seed + self.shift) % 2**64
        self.normal: float | None = None
        # Nothing has been drawn: PyTorch's state distinguishes this from "all 624 words are used".
        self._fresh = True
        if self._bits is not None:
            self._numbers.seed(seed & 0xFFFFFFFF)

    def _engine(self) -> Any:
        if self._bits is None:
            self._bits = np.random.MT19937(0)
            self._numbers = np.random.RandomState(self._bits)
            self._numbers.seed(self.seed & 0xFFFFFFFF)
        return self._bits

    def mark(self) -> tuple[Any, bool]:
        """Return the state of the engine, for `restore`."""
        return self._engine().state, self._fresh

    def restore(self, mark: tuple[Any, bool], drawn: int = 0) -> None:
        """Restore the engine's state at `mark`, and advance it by `drawn` words."""
        self._engine().state, self._fresh = mark
        if drawn:
            self._bits.random_raw(drawn, output=False)
            self._fresh = False

    def words(self, n: int) -> Array:
        """Return the next n 32-bit words, as uint32."""
        engine = self._engine()
        self._fresh = False
        if n < 1024:  # an eighth of the overhead, but the words are 64 bits wide
            return engine.random_raw(n).astype(np.uint32)
        return drawn_words(np.empty(n, np.uint32), self)

    def words64(self, n: int) -> Array:
        """Return the next n 64-bit words, each of two 32-bit ones, the upper half first."""
        engine = self._engine()
        self._fresh = False
        if n < 1024:
            halves = engine.random_raw(2 * n)
            return halves[::2] << 32 | halves[1::2]
        return drawn_words(np.empty(n, np.uint64), self)

    def one(self, double: bool) -> float:
        """Return the next number of `doubles` or `floats` as a Python float."""
        word = (self._bits or self._engine()).random_raw
        self._fresh = False
        if double:
            return ((word() << 32 | word()) & _MASK53) * 2.0**-53
        return (word() & _MASK24) * 2.0**-24

    def few(self, n: int, double: bool = False) -> list[float]:
        """Return the next n numbers of `floats` or `doubles` as Python floats."""
        if double:
            return [(word & _MASK53) * 2.0**-53 for word in self.few_words64(n)]
        return [(word & _MASK24) * 2.0**-24 for word in self.few_words(n)]

    def few_words(self, n: int) -> list[int]:
        """Return the next n 32-bit words as Python ints."""
        word = self._engine().random_raw
        self._fresh = False
        return [word() for _ in range(n)]

    def few_words64(self, n: int) -> list[int]:
        """Return the next n 64-bit words as Python ints."""
        word = self._engine().random_raw
        self._fresh = False
        return [word() << 32 | word() for _ in range(n)]

    def floats(self, n: int) -> Array:
        """Return the next n float32 in [0, 1): 24 bits of a word each."""
        words = self.words(n)
        words &= _MASK24
        numbers = words.view(np.int32).astype(np.float32)  # signed integers convert faster
        numbers *= 2.0**-24
        return numbers

    def doubles(self, n: int) -> Array:
        """Return the next n float64 in [0, 1): 53 bits of two words each."""
        words = self.words64(n)
        words &= _MASK53
        numbers = words.view(np.int64).astype(np.float64)
        numbers *= 2.0**-53
        return numbers

    def state(self) -> Array:
        """Return the state as PyTorch's bytes, an uint8 array of `STATE_BYTES`."""
        engine = self._engine().state["state"]
        drawn = 0 if self._fresh else engine["pos"]
        state = np.zeros((), _STATE)
        state["seed"], state["seeded"] = self.seed, 1
        state["next"], state["left"] = drawn, 1 if self._fresh else 625 - drawn
        state["words"] = engine["key"]
        if self.normal is not None:
            state["normal"], state["has_normal"] = self.normal, 1
        return np.frombuffer(state.tobytes(), np.uint8).copy()

    def set_state(self, state: Array) -> None:
        """Set the state to one returned by `state`, or by PyTorch.

        Raises:
            RuntimeError: the bytes are not a generator's state.
        """
        if state.size != STATE_BYTES:
            raise RuntimeError(
                f"Expected a CPUGeneratorImplState of size {STATE_BYTES} but found the input RNG "
                f"state size to be {state.size}"
            )
        fields = np.frombuffer(state.tobytes(), _STATE)[0]
        left, position = int(fields["left"]), int(fields["next"])
        if fields["seeded"] != 1 or not 0 < left <= 624 or position > 624:
            raise RuntimeError("Invalid mt19937 state")
        self._engine().state = {
            "bit_generator": "MT19937",
            "state": {"key": fields["words"].astype(np.uint32), "pos": 624 if left == 1 else position},
        }
        self.seed = int(fields["seed"])
        self._fresh = left == 1 and position == 0
        self.normal = float(fields["normal"]) if fields["has_normal"] else None


@twin
def drawn_words(out: Array, source: Source) -> Array:
    """Return an array of unsigned integers of 32 or 64 bits, filled with words."""
    source._engine()
    out[...] = source._numbers.randint(0, 1 << 8 * out.itemsize, out.size, out.dtype)
    return out


# Filling ------------------------------------------------------------------------------------------


def _fill(out: Array, make: Callable[[int], Array], few: Callable[[int], list[Any]] | None = None) -> None:
    """Fill `out` with the numbers that `make(n)` returns for one piece after another, in the order of its memory.

    Args:
        out: the array to fill.
        make: returns the next n numbers.
        few: returns the same numbers as a list of Python numbers, which are stored without rounding; or None.
    """
    contiguous = out.flags.c_contiguous
    if few is not None and 0 < out.size <= _FEW and contiguous:
        if out.size == 1:
            out.fill(few(1)[0])
        else:
            out.flat = few(out.size)
        return
    in_memory = out if contiguous else _memory_order(out)
    contiguous = contiguous or in_memory.flags.c_contiguous
    flat = in_memory.reshape(-1) if contiguous else np.empty_like(out, shape=out.size)
    half = out.itemsize == 2
    for start in range(0, flat.size, _BLOCK):
        piece = flat[start : start + _BLOCK]
        numbers = make(piece.size)
        if half and numbers.dtype == np.float64:
            numbers = numbers.astype(np.float32)  # PyTorch rounds twice
        piece[...] = numbers
    if not contiguous:
        in_memory[...] = flat.reshape(in_memory.shape)


def _memory_order(out: Array, like: Array | None = None) -> Array:
    """Return `out` transposed so that its elements are in the order of its memory (of that of `like`)."""
    strides = (out if like is None else like).strides
    return out.transpose(sorted(range(out.ndim), key=lambda dim: -strides[dim]))


def _fma32(x: Array, y: Array, z: Array) -> Array:
    """Return x * y + z of float32, rounded once: the product is exact in float64."""
    wide = np.multiply(x, y, dtype=np.float64)
    wide += z
    return wide.astype(np.float32)


def _split(x: Array) -> tuple[Array, Array]:
    """Return float64 x as high + low, with so few bits that products are exact (Veltkamp)."""
    scaled = x * 134217729.0  # 2**27 + 1
    high = scaled - (scaled - x)
    return high, x - high


def _sum(x: Array, y: Array) -> tuple[Array, Array]:
    """Return x + y rounded, and the rounding error (Knuth)."""
    total = x + y
    back = total - x
    return total, (x - (total - back)) + (y - back)


def _fma64(x: Array, y: Any, z: Any) -> Array:
    """Return x * y + z of float64 rounded once.

    Product and sums are computed with their errors; the last but one sum is rounded to odd, so that
    the last one is rounded correctly in case of a tie (Boldo and Melquiond, Emulation of FMA and
    correctly rounded sums, 2008).
    """
    product = x * y
    (x_high, x_low), (y_high, y_low) = _split(x), _split(y)
    error = ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low
    small, smaller = _sum(error, z)
    large, rest = _sum(product, small)
    rest, lost = _sum(smaller, rest)
    bits = rest.view(np.int64)
    even = (lost != 0) & (bits & 1 == 0)
    bits += np.where((lost > 0) == (rest > 0), even, -even.astype(np.int64))
    out = large + rest
    return np.where(out == 0, product + z, out)  # (a zero's sign)


def fused(x: Array, y: Any, z: Any) -> Array:
    """Return x * y + z rounded once, for float32 or float64 x."""
    return _fma64(x, y, z) if x.dtype == np.float64 else _fma32(x, y, z)


def _scale(x: Array, y: float, z: float) -> Array:
    """Return x * y + z rounded once."""
    # If one of the two operations is exact, fusing changes nothing; above 1e290 `_split` would overflow.
    if y == 1 or z == 0 or abs(y) > 1e290:
        return x * y + z
    return fused(x, y, z)


def _libm(function: Callable[[float], float], x: Array) -> Array:
    """Return `function` of each x, by the C library: NumPy's sometimes differs in the last bit."""
    return np.fromiter(map(function, x.tolist()), np.float64, x.size)


def _map(out: Array, function: Callable[[float], float], fast: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Return the function to map numbers for `out`: NumPy's, or for float64, where they differ, the C library's."""
    return (lambda x: _libm(function, x)) if out.dtype == np.float64 else fast


# Distributions of floating-point numbers ----------------------------------------------------------


@twin
def uniform(out: Array, source: Source, low: float = 0.0, high: float = 1.0) -> None:
    """Fill `out` with numbers of [low, high)."""
    kind = out.dtype
    double = kind == np.float64
    draw = source.doubles if double else source.floats
    if low == 0 and high == 1 and kind.itemsize > 2:
        if out.size == 1:
            out.fill(source.one(double))
        else:
            _fill(out, draw, lambda n: source.few(n, double))
        return
    wide = np.promote_types(kind, np.float32).type  # float16 is computed in float32
    width, start = float(wide(high) - wide(low)), float(wide(low))
    low, high = kind.type(low), kind.type(high)

    def make(n: int) -> Array:
        numbers = _scale(draw(n), width, start).astype(kind, copy=False)
        if start != 0 or kind.itemsize == 2:  # numbers rounded up to `high` become `low`
            numbers[numbers == high] = low
        return numbers

    _fill(out, make)


@twin
def normal(out: Array, source: Source, mean: float = 0.0, std: float = 1.0) -> None:
    """Fill `out` with normally distributed numbers, by the method of Box and Muller.

    Contiguous arrays of at least 16 numbers are filled in blocks of 16, others in pairs.
    """
    if out.size >= 16 and out.flags.c_contiguous:
        _normal_blocks(out.reshape(-1), source, mean, std)
    else:
        _fill(out, lambda n: _scale(_normal_pairs(source, n), std, mean))


def normal_each(mean: Any, std: Any, source: Source) -> Array:
    """Return normal numbers of the given means and standard deviations, at least one of which is an array."""
    arrays = [each for each in (mean, std) if hasattr(each, "dtype")]
    shape = np.broadcast_shapes(*(each.shape for each in arrays))
    out = np.empty_like(arrays[0], shape=shape, order="C")
    if getattr(std, "dtype", out.dtype).kind == "c" and hasattr(std, "dtype"):
        raise RuntimeError("normal expects standard deviation to be non-complex")
    least = std.min() if hasattr(std, "dtype") and std.size else 0.0 if hasattr(std, "dtype") else std
    if not least >= 0:
        if hasattr(std, "dtype"):
            raise RuntimeError("normal expects all elements of std >= 0.0")
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    if not out.size:
        return out
    if out.dtype.kind == "c":
        parts = np.empty_like(out.real, shape=(*out.shape, 2), order="C")
        with source.lock:
            normal(parts, source)
        out.real[...], out.imag[...] = parts[..., 0] / math.sqrt(2), parts[..., 1] / math.sqrt(2)
        return (out * std + mean).astype(out.dtype, copy=False)
    check_floating("normal_kernel_cpu", out)
    if hasattr(std, "dtype"):
        with source.lock:
            normal(out, source)
        np.multiply(out, std, out=out, casting="same_kind")
    else:
        with source.lock:
            normal(out, source, 0.0, std)
    np.add(out, mean, out=out, casting="same_kind")
    return out


def _normal_pairs(source: Source, n: int) -> Array:
    """Return n standard normals as float64; a second normal that is left over is kept in `source`."""
    waiting = [] if source.normal is None else [source.normal]
    pairs = (n - len(waiting) + 1) // 2
    if n <= _FEW:
        for _ in range(pairs):
            u, v = source.few(2, double=True)
            r = math.sqrt(-2 * math.log1p(-v))
            waiting += [r * math.cos(2 * math.pi * u), r * math.sin(2 * math.pi * u)]
        source.normal = waiting[n] if len(waiting) > n else None
        return np.array(waiting[:n])
    angle, radius = source.doubles(2 * pairs).reshape(pairs, 2).T if pairs else np.empty((2, 0))
    radius = np.sqrt(-2 * _libm(math.log1p, -radius))
    angle = 2 * math.pi * angle
    numbers = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).ravel()
    numbers = np.concatenate([waiting, numbers])
    source.normal = float(numbers[-1]) if numbers.size > n else None
    return numbers[:n]


def _normal_blocks(out: Array, source: Source, mean: float, std: float) -> None:
    """Fill flat `out` with blocks of 16 normals, each computed from 16 uniforms.

    If the size is no multiple of 16, the last 16 numbers are drawn again as one block. (Float32 and float64 first draw
    the uniforms of the incomplete block, and discard them.)
    """
    draw, transform = source.floats, box_muller
    if out.dtype == np.float64:
        draw, transform = source.doubles, _box_muller64
    else:
        mean, std = float(np.float32(mean)), float(np.float32(std))
    rest = out.size % 16
    end = out.size - rest
    for start in range(0, end, _BLOCK):
        n = min(_BLOCK, end - start)
        u = draw(n)
        last = rest and start + n == end
        if last:
            if out.itemsize >= 4:
                draw(rest)
            u = np.concatenate([u, draw(16)])
        numbers = _scale(transform(u), std, mean)
        out[start : start + n] = numbers[:n]
        if last:
            out[-16:] = numbers[n:]


def _box_muller64(u: Array) -> Array:
    """Return normals from float64 uniforms: of each 16 the first 8 give radii, the last 8 angles."""
    first, last = np.moveaxis(u.reshape(-1, 2, 8), 1, 0)
    radius = np.sqrt(-2 * _libm(math.log, (1 - first).ravel())).reshape(-1, 8)
    angle = 2 * math.pi * last
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).ravel()


@twin
def box_muller(u: Array) -> Array:
    """Return normals from float32 uniforms, as `_box_muller64`; `u` is flat, and its size a multiple of 16."""
    # Half a block, 8 floats, is viewed as 2 items of 16 bytes, which NumPy copies fastest.
    halves = u.view(np.complex128).reshape(-1, 2, 2)
    radius = 1 - np.ascontiguousarray(halves[:, 0]).view(np.float32).ravel()
    angle = halves[:, 1].copy().view(np.float32).ravel()
    radius = _log32(radius)
    radius *= -2
    np.sqrt(radius, radius)
    angle *= np.float32(2 * math.pi)
    both = _cos_sin32(angle)  # (2, N/2)
    both *= radius
    out = np.empty_like(halves)
    out[...] = both.view(np.complex128).reshape(2, -1, 2).swapaxes(0, 1)
    return out.view(np.float32).ravel()


def _coefficients(*values: float) -> list[float]:
    """Return numbers rounded to float32, as Python floats."""
    return [float(np.float32(value)) for value in values]


# Polynomials of Cephes (Moshier, single precision: logf, sinf, cosf).
_LOG = _coefficients(
    7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
    -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
)  # fmt: skip
_COS = _coefficients(2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
_SIN = _coefficients(-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
_COS_SIN = [np.array([[cos], [sin]]) for cos, sin in zip(_COS, _SIN, strict=True)]
_PI_4 = _coefficients(0.78515625, 2.4187564849853515625e-4, 3.77489497744594108e-8)  # three parts
_ROOT_HALF_BITS = 0x3F3504F3  # of float32 sqrt(1/2)


def _polynomial32(coefficients: list[Any], x: Array, y: Array) -> Array:
    """Return the polynomial of float32 x, highest coefficient first, in y; each step rounds once."""
    wide_x = x.astype(np.float64)
    wide = wide_x * coefficients[0]
    wide += coefficients[1]
    y[...] = wide
    for coefficient in coefficients[2:]:
        wide[...] = y
        wide *= wide_x
        wide += coefficient
        y[...] = wide
    return y


def _log32(u: Array) -> Array:
    """Return the logarithm of float32 u in (0, 1]; overwrites u."""
    # u = (1 + x) 2^e with sqrt(1/2) <= 1 + x < sqrt(2)
    bits = u.view(np.int32)
    e = bits - _ROOT_HALF_BITS
    e >>= 23
    bits -= e << 23
    x = u
    x -= 1
    e = e.astype(np.float32)
    z = x * x
    # log(1 + x) = x - x^2 / 2 + x^3 p(x)
    y = _polynomial32(_LOG, x, np.empty_like(x))
    y *= x
    y = _fma32(y, z, e * np.float32(-2.12194440e-4))  # ln 2 = 0.693359375 - 2.1219e-4
    z *= 0.5
    y -= z
    x += y
    e *= 0.693359375  # exact
    x += e
    return x


def _cos_sin32(x: Array) -> Array:
    """Return the cosine and sine, (2, N), of float32 x in [0, 2 pi]; overwrites x."""
    # x = octant * pi/4 + rest, |rest| <= pi/4, with an even octant.
    octant = (x * np.float32(4 / math.pi)).astype(np.int32)
    octant += 1
    octant &= -2
    multiple = octant.astype(np.float32)
    x -= multiple * _PI_4[0]  # this product and the next are exact
    x -= multiple * _PI_4[1]
    x = _fma32(multiple, -_PI_4[2], x)
    z = x * x
    # cos = 1 - z/2 + z^2 p(z), sin = x + x z q(z)
    y = _polynomial32(_COS_SIN, z, np.empty_like(x, shape=(2, x.size)))
    y *= z
    y = _fma32(y, np.stack([z, x]), np.stack([z * -0.5, x]))
    y[0] += 1
    # In octants 2 and 6 sine and cosine are exchanged; sine is negative from 4 on, cosine in 2 and 4.
    cos, sin = bits = y.view(np.int32)
    swap = cos ^ sin
    swap &= (octant << 30) >> 31
    bits ^= swap
    sin ^= (octant & 4) << 29
    cos ^= (octant + 2 & 4) << 29
    return y


def exponential(out: Array, source: Source, rate: float = 1.0) -> None:
    """Fill `out` with exponentially distributed numbers of the given rate."""
    log1p = _map(out, math.log1p, np.log1p)
    _fill(out, lambda n: -1 / rate * log1p(-source.doubles(n)))


def cauchy(out: Array, source: Source, median: float = 0.0, sigma: float = 1.0) -> None:
    """Fill `out` with numbers of the Cauchy distribution."""
    tan = _map(out, math.tan, np.tan)
    _fill(out, lambda n: _scale(tan(math.pi * (source.doubles(n) - 0.5)), sigma, median))


def log_normal(out: Array, source: Source, mean: float = 1.0, std: float = 2.0) -> None:
    """Fill `out` with numbers whose logarithms are normally distributed."""
    exp = _map(out, math.exp, np.exp)
    _fill(out, lambda n: exp(_scale(_normal_pairs(source, n), std, mean)))


def geometric(out: Array, source: Source, p: float) -> None:
    """Fill `out` with the number of trials until the first success, of probability p."""
    scale = math.log(1 - p)
    _fill(out, lambda n: np.ceil(np.log(source.doubles(n)) / scale))


# Integers -----------------------------------------------------------------------------------------


@twin
def integers(out: Array, source: Source, low: int, count: int) -> None:
    """Fill `out` with integers of [low, low + count); if `count` is 2**28 or more, from 64-bit words."""
    exact = out.dtype.kind in "iu"
    if count >= 1 << 28:
        few = (lambda n: [word % count + low for word in source.few_words64(n)]) if exact else None
        _fill(out, lambda n: _shifted(source.words64(n) % np.uint64(count), low), few)
    else:
        few = (lambda n: [word % count + low for word in source.few_words(n)]) if exact else None
        _fill(out, lambda n: _shifted(source.words(n) % np.uint32(count), low), few)


def _shifted(numbers: Array, low: int) -> Array:
    """Return unsigned integers plus `low` as int64, which wraps around."""
    numbers = numbers.astype(np.int64)
    numbers += low
    return numbers


def full_range(out: Array, source: Source) -> None:
    """Fill `out` with integers of [-2**63, 2**63)."""
    _fill(out, lambda n: source.words64(n).view(np.int64))


def integers_of_dtype(out: Array, source: Source, digits: int) -> None:
    """Fill `out` with integers from 0 to the greatest of its dtype, 2**digits for floats.

    Args:
        digits: bits of the dtype's numbers: of the value (without sign), or of the mantissa.
    """
    count = (1 << digits) + (out.dtype.kind not in "biu")
    if out.dtype.itemsize == 8:
        _fill(out, lambda n: source.words64(n) % np.uint64(count))
    else:
        _fill(out, lambda n: source.words(n) % np.uint32(count))


@twin
def bernoulli(out: Array, source: Source, p: float) -> None:
    """Fill `out` with ones, each with probability p, and zeros."""
    # u < p for u = k / 2^53 is computed as k < p 2^53, which float64 represents exactly.
    bound = np.uint64(math.ceil(p * 2.0**53))
    _fill(out, lambda n: (source.words64(n) & np.uint64(_MASK53)) < bound)


@twin
def bernoulli_each(out: Array, source: Source, p: Array) -> None:
    """Fill `out` with ones, with the probabilities `p`, floats that can be expanded to its shape, and zeros."""
    check_floating("bernoulli_tensor_cpu_p_", p)
    if p.size and not (p.min() >= 0 and p.max() <= 1):
        raise RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true, but got false: probabilities are in [0, 1]")
    if p.shape != out.shape:
        try:
            p = np.broadcast_to(p, out.shape)
        except ValueError:
            raise RuntimeError(
                f"The expanded size of the tensor {list(out.shape)} must match the existing size "
                f"{list(p.shape)}: bernoulli_ needs a probability for each element"
            ) from None
    in_memory = _memory_order(out)
    draw = source.doubles if p.dtype == np.float64 else source.floats
    in_memory[...] = draw(out.size).reshape(in_memory.shape) < _memory_order(p, like=out)


def bernoulli_like(x: Array, p: Array, source: Source) -> Array:
    """Return an array like `x` of ones, with the probabilities `p`, and zeros."""
    out = np.empty_like(x, order="C")
    if out.size:
        with source.lock:
            bernoulli_each(out, source, p)
    return out


def fill(x: Array) -> Array:
    """Raise NotImplementedError: this is the kernel of ops that record a random fill, which has happened."""
    raise NotImplementedError("a random fill stands for a write that has happened")


@twin
def permutation(out: Array, source: Source) -> None:
    """Fill `out` with a random order of 0 … n-1; of several rows, in the last dimension, the first index runs first."""
    n = out.shape[-1]
    if n >= 214748364:  # there PyTorch draws 64-bit words in another order
        raise NotImplementedError("randperm of 214748364 or more numbers")
    rows = np.moveaxis(out.T, 0, -1)
    for at in np.ndindex(rows.shape[:-1]):
        rows[at] = shuffled(source.words(n - 1)) if n > 1 else 0


@twin
def shuffled(words: Array) -> Array:
    """Return 0 … n-1 shuffled by n - 1 random words, as int64.

    It is the shuffle of Fisher and Yates: step i = 0, 1, … swaps place i with a place j[i] >= i. A loop over the steps
    is slow in Python, so all are computed together. The content of place s at step s was put there by the last step
    i < s with j[i] = s, and is the content of place i at step i. These links are followed for all steps at once, by
    pointer doubling, which gives the content of each place at its step. The result of step i, the content of place
    j[i], was put there by the previous step with the same j.
    """
    n = len(words) + 1
    places = np.arange(n, dtype=np.int64)
    j = places.copy()
    j[:-1] += words % np.arange(n, 1, -1, dtype=np.uint32)
    moved = np.flatnonzero(j != places)
    held = places.copy()
    held[j[moved]] = moved  # of steps with the same j the last one counts
    while True:
        further = held[held]
        if np.array_equal(further, held):
            break
        held = further
    # Sort the steps by (j, step): each comes right after the previous step with the same j.
    bits = n.bit_length()
    order = np.sort((j << bits) | places)
    step, picked = order & ((1 << bits) - 1), order >> bits
    same = np.flatnonzero(picked[1:] == picked[:-1])
    stays = step == picked
    picked[same + 1] = held[step[same]]
    picked[stays] = held[step[stays]]  # a step with j[i] = i leaves the content in its place
    result = np.empty_like(places)
    result[step] = picked
    return result


def multinomial(weights: Array, n: int, replacement: bool, source: Source) -> Array:
    """Return n indices per row of weights, (rows, categories) or (categories,).

    They are drawn in proportion to the weights. With replacement they are looked up in the
    cumulative weights. Without, they are the indices of the n greatest p / e, with exponentially
    distributed e: the first n of events that happen at these rates.

    Raises:
        RuntimeError: a weight is not finite or negative, or those of a row are all zero.
    """
    if weights.size and not (weights.min() >= 0 and weights.max() < np.inf):
        if not replacement or n == 1:
            raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
        first = weights[~((weights >= 0) & (weights < np.inf))][0]
        what = "= infinity or NaN" if first > 0 else "< 0"
        raise RuntimeError(f"invalid multinomial distribution (encountering probability entry {what})")
    if not (weights.sum(-1) > 0).all():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    with source.lock:
        return _indices(weights, n, replacement, source)


def _indices(p: Array, n: int, replacement: bool, source: Source) -> Array:
    if not replacement or n == 1:
        # The draws are in the order of p's memory (for expanded memory, in that of its indices).
        transposed = p.ndim == 2 and 0 < p.strides[0] < p.strides[1]
        waits = np.empty_like(p, order="F" if transposed else "C")
        exponential(waits, source)
        speed = p / waits
        if n == 1:
            return as_int64(speed.argmax(-1, keepdims=True))
        return as_int64(np.argsort(-speed, -1, kind="stable")[..., :n].copy("C"))
    rows = np.ascontiguousarray(p.astype(np.promote_types(p.dtype, np.float32), copy=False))
    return picks(rows.reshape(-1, p.shape[-1]), n, source).reshape(*p.shape[:-1], n)


@twin
def picks(rows: Array, n: int, source: Source) -> Array:
    """Return n indices per row, drawn with replacement in proportion to the row's weights."""
    drawn = np.empty((len(rows), n), np.int64)
    for row, indices in zip(rows, drawn, strict=True):
        cumulative = np.add.accumulate(row)
        cumulative /= cumulative[-1]
        cumulative[-1] = 1
        indices[...] = np.searchsorted(cumulative.astype(np.float64), source.doubles(n))
    return drawn
