"""`torch.fx.passes.param_fetch`: notes on nodes the attributes of the layers that they call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tinytorch.fx.graph_module import GraphModule
from tinytorch.nn.modules.activation import ReLU
from tinytorch.nn.modules.batchnorm import BatchNorm2d
from tinytorch.nn.modules.conv import Conv2d
from tinytorch.nn.modules.linear import Linear
from tinytorch.nn.modules.module import Module
from tinytorch.nn.modules.pooling import AdaptiveAvgPool2d, MaxPool2d
from tinytorch.ops.members import typename

__all__ = ["default_matching", "extract_attrs_for_lowering", "lift_lowering_attrs_to_nodes"]


def default_matching(name: str, target_version: int) -> str:
    """Return the name itself: attributes have the same names in all versions."""
    return name


#: The attributes of each layer, with the version of the layer that has them.
module_fetch_book: dict[type, tuple[int, list[str], Callable[[str, int], str]]] = {
    Linear: (1, ["weight", "bias"], default_matching),
    Conv2d: (
        1, ["weight", "bias", "kernel_size", "stride", "padding", "dilation", "groups", "padding_mode"],
        default_matching,
    ),
    BatchNorm2d: (2, ["weight", "bias", "running_mean", "running_var", "eps"], default_matching),
    AdaptiveAvgPool2d: (1, [], default_matching),
    MaxPool2d: (
        1, ["kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode"], default_matching,
    ),
    ReLU: (1, ["inplace"], default_matching),
}  # fmt: skip


def extract_attrs_for_lowering(mod: Module) -> dict[str, Any]:
    """Return the attributes of a layer, and its type's name as `name`.

    Raises:
        RuntimeError: the type is not in `module_fetch_book`, or with another version.
    """
    name = typename(mod)
    if type(mod) not in module_fetch_book:
        raise RuntimeError(f"{name} is not in the module_fetch_book yet, please add it to the module_fetch_book")
    version, attributes, matching = module_fetch_book[type(mod)]
    if version < mod._version:
        raise RuntimeError(
            f"Fetcher version {version} try to fetch {name} version {mod._version}, please upgrade the "
            "module_fetch_book"
        )
    return {"name": name, **{each: getattr(mod, matching(each, mod._version)) for each in attributes}}


def lift_lowering_attrs_to_nodes(fx_module: GraphModule) -> None:
    """Give each node that calls a layer the layer's attributes as `attrs_for_lowering`, also in modules inside.

    Args:
        fx_module: the graph module.

    Example:
        >>> from tinytorch.fx.passes.param_fetch import lift_lowering_attrs_to_nodes
        >>> module = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.ReLU()))
        >>> lift_lowering_attrs_to_nodes(module)
        >>> next(iter(module.graph.find_nodes(op="call_module", target="0"))).attrs_for_lowering["inplace"]
        False
    """
    modules = dict(fx_module.named_modules())
    for node in fx_module.graph.nodes:
        if node.op == "call_module":
            module = modules[str(node.target)]
            if isinstance(module, GraphModule):
                lift_lowering_attrs_to_nodes(module)
            else:
                node.attrs_for_lowering = extract_attrs_for_lowering(module)
