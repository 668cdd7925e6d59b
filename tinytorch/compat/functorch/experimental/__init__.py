"""`functorch.experimental`: control flow as functions."""

from tinytorch.functorch.experimental import control_flow  # type: ignore[import-not-found]

__all__ = ["control_flow"]
