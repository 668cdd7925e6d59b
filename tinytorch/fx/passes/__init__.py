"""`torch.fx.passes`: what is computed of graphs, or made of them."""

from tinytorch.fx.passes import (
    annotate_getitem_nodes,
    graph_drawer,
    operator_support,
    param_fetch,
    shape_prop,
    split_module,
    split_utils,
    tools_common,
)

__all__ = [
    "annotate_getitem_nodes", "graph_drawer", "operator_support", "param_fetch", "shape_prop", "split_module",
    "split_utils", "tools_common",
]  # fmt: skip
