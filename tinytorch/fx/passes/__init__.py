"""`torch.fx.passes`: what is computed of graphs, or made of them.

`shape_prop` notes shapes, `cse_pass` removes equal calls, `pass_manager` runs passes in order, `matcher_utils` finds a
pattern in a graph. PyTorch has the last three in folders, whose names answer (`compat/names.txt`).
"""

from tinytorch.fx.passes import shape_prop

__all__ = ["shape_prop"]
