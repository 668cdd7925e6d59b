"""`torch.fx.experimental`: further tracers, and what is computed of graphs."""

from tinytorch.fx.experimental import const_fold, rewriter

__all__ = ["const_fold", "rewriter"]
