"""`torch.fx.passes`: what is computed of graphs, or made of them."""

from tinytorch.fx.passes import infra, shape_prop

__all__ = ["infra", "shape_prop"]
