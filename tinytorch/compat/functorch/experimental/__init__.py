"""`functorch.experimental`: control flow as functions."""

from tinytorch.functorch.experimental import control_flow

__all__ = ["control_flow"]
