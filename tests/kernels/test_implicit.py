"""The gradients of gamma samples: a whole shape parameter is no exception."""

from __future__ import annotations

import numpy as np
import pytest

from tinytorch.kernels import implicit


@pytest.mark.parametrize("alpha", [1.0, 2.0, 3.0, 5.0, 30.0])
def test_gamma_is_continuous_at_whole_numbers(alpha: float) -> None:
    x = np.array([0.01, 0.5, 1.0, 2.0, 2.6, 3.5, 5.0, 8.0, 20.0, 40.0])
    near = [implicit.gamma_slope(np.full_like(x, alpha + step), x) for step in (-1e-7, 0.0, 1e-7)]
    np.testing.assert_allclose(near[1], (near[0] + near[2]) / 2, rtol=1e-9)


def test_gamma_of_shape_one() -> None:
    """At α = 1 the density's derivative by α is exp(-t) (log t + Euler's constant), summed by the midpoint rule."""
    t = (np.arange(400_000) + 0.5) * (3.0 / 400_000)
    gamma_constant = 0.5772156649015329
    integral = np.sum(np.exp(-t) * (np.log(t) + gamma_constant)) * (3.0 / 400_000)
    expected = -integral / np.exp(-3.0)
    found = implicit.gamma_slope(np.array([1.0]), np.array([3.0]))[0]
    np.testing.assert_allclose(found, expected, rtol=1e-4)
