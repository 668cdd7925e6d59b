"""`torch.fx.passes`: what is computed of graphs, or made of them."""

from tinytorch.fx.passes import shape_prop, split_module

__all__ = ["shape_prop", "split_module"]
