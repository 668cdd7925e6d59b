"""`torch.fx.experimental`: the tracer that records assertions."""

from tinytorch.fx.experimental import rewriter

__all__ = ["rewriter"]
