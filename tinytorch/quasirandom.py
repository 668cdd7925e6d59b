"""`torch.quasirandom`: Sobol sequences."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinytorch.core.tensor import Tensor, wrap
from tinytorch.kernels import dtypes, sobol
from tinytorch.kernels.checks import refused
from tinytorch.kernels.dtypes import dtype as Dtype
from tinytorch.ops.create import empty
from tinytorch.ops.random import Generator, randint

__all__ = ["SobolEngine"]


class SobolEngine:
    """Draws the points of a Sobol sequence, which fill the unit cube more evenly than random points.

    The points, and the scrambling of a seed, are those of PyTorch. They need direction numbers, of which tinytorch has
    those of the first 1,111 dimensions; it takes those of further dimensions from SciPy, if SciPy is installed.

    Args:
        seed: the seed of the scrambling; by default the default generator draws it.

    Raises:
        NotImplementedError: `dimension` is above 1,111, and SciPy is not installed.

    Example:
        >>> engine = torch.quasirandom.SobolEngine(dimension=5)
        >>> engine.draw(3)
        tensor([[0.0000, 0.0000, 0.0000, 0.0000, 0.0000],
                [0.5000, 0.5000, 0.5000, 0.5000, 0.5000],
                [0.7500, 0.2500, 0.2500, 0.2500, 0.7500]])
    """

    MAXBIT = sobol.BITS
    MAXDIM = sobol.DIMENSIONS

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if dimension > self.MAXDIM or dimension < 1:
            raise ValueError(f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]")
        if not isinstance(dimension, (int, np.integer)):
            raise TypeError(f"SobolEngine(): dimension must be int, not {type(dimension).__name__}")
        self.seed, self.scramble, self.dimension = seed, scramble, dimension
        directions, shift = sobol.direction_numbers(int(dimension)), np.zeros(dimension, np.int64)
        if scramble:
            directions, shift = self._scrambled(directions)
        self.sobolstate: Tensor = wrap(directions)
        self.shift: Tensor = wrap(shift)
        self.quasi = self.shift.clone()
        self._first_point: Tensor = (self.quasi / 2**self.MAXBIT).reshape(1, -1)
        self.num_generated = 0

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: Dtype | None = None) -> Tensor:
        """Return the next `n` points of the sequence, shape (n, dimension).

        Args:
            dtype: float32 or float64; by default the default dtype.

        Example:
            >>> torch.quasirandom.SobolEngine(2, scramble=True, seed=0).draw(2)
            tensor([[0.4751, 0.5925],
                    [0.5788, 0.0371]])
        """
        kind = dtypes.get_default_dtype() if dtype is None else dtype
        first = self.num_generated == 0
        if first and n == 1:
            result = self._first_point.to(kind)
        else:
            result = self._following(n - 1 if first else n, max(self.num_generated - 1, 0), kind, first)
        self.num_generated += n
        if out is not None:
            out.resize_as_(result).copy_(result)
            return out
        return result

    def _following(self, n: int, index: int, kind: Dtype, with_first: bool) -> Tensor:
        """Return the `n` points after point number `index`, with the first point before them if `with_first`."""
        if not isinstance(n, (int, np.integer)):
            raise TypeError(f"_sobol_engine_draw(): argument 'n' (position 2) must be int, not {type(n).__name__}")
        if kind not in (dtypes.float32, dtypes.float64):
            raise refused("_sobol_engine_draw", np.empty(0, kind.numpy))
        empty(n, self.dimension, device="meta")  # raises an error for a negative number
        points = sobol.draw(self.quasi._array, n, self.sobolstate._array, index)
        result = np.empty((n + with_first, self.dimension), kind.numpy)
        np.multiply(points, kind.numpy.type(2.0**-self.MAXBIT), out=result[int(with_first) :], casting="unsafe")
        if with_first:
            result[0] = self._first_point._array[0]
        if n:
            self.quasi = wrap(points[-1].copy())
        made: Tensor = wrap(result)
        return made

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: Dtype | None = None) -> Tensor:
        """Return the next `2**m` points of the sequence, shape (2**m, dimension); other arguments as for `draw`.

        Raises:
            ValueError: the number of points drawn so far, and by this call, is not a power of 2.
        """
        n: Any = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                "The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: "
                f"n={self.num_generated}+2**{m}={total}. If you still want to do this, please use "
                "'SobolEngine.draw()' instead."
            )
        return self.draw(n=n, out=out, dtype=dtype)

    def reset(self) -> SobolEngine:
        """Go back to the first point; return the engine."""
        self.quasi.copy_(self.shift)
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Skip `n` points; return the engine."""
        first = self.num_generated == 0
        index, count = max(self.num_generated - 1, 0), n - 1 if first else n
        self.quasi = wrap(sobol.forwarded(self.quasi._array, count, self.sobolstate._array, index))
        self.num_generated += n
        return self

    def _scrambled(self, directions: Any) -> tuple[Any, Any]:
        """Return scrambled direction numbers and the shift, from PyTorch's random numbers."""
        generator = None
        if self.seed is not None:
            generator = Generator()
            generator.manual_seed(self.seed)
        bits = self.MAXBIT
        shift = randint(2, (self.dimension, bits), generator=generator, device="cpu")._array @ (1 << np.arange(bits))
        matrices = randint(2, (self.dimension, bits, bits), generator=generator, device="cpu")._array
        return sobol.scrambled(directions, matrices), shift

    def __repr__(self) -> str:
        shown = [f"dimension={self.dimension}"]
        shown += ["scramble=True"] if self.scramble else []
        shown += [] if self.seed is None else [f"seed={self.seed}"]
        return f"{self.__class__.__name__}({', '.join(shown)})"
