"""`torch.fx.passes.utils`: finding patterns in graphs, and making modules of parts of them."""

from tinytorch.fx.passes.utils import matcher_utils
from tinytorch.fx.passes.utils.common import HolderModule, compare_graphs, lift_subgraph_as_module

__all__ = ["HolderModule", "compare_graphs", "lift_subgraph_as_module", "matcher_utils"]
