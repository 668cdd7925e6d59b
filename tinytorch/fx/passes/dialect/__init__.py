"""`torch.fx.passes.dialect`: passes for graphs of one kind of operators."""

from tinytorch.fx.passes.dialect import common

__all__ = ["common"]
