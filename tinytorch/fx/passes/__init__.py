"""`torch.fx.passes`: `shape_prop` notes shapes, `pass_base` is the interface of passes, which change graph modules."""

from tinytorch.fx.passes import shape_prop

__all__ = ["shape_prop"]
