"""`torch.fx.graph_module`: the class of a module made of a trace, of which there are no objects."""

from tinytorch.core.tensor import Tensor
from tinytorch.nn.modules.module import Module
from tinytorch.nn.parameter import Parameter

from ..absent import Refused

__all__ = ["GraphModule"]


class GraphModule(Refused, Module):
    """A module made of a trace: there are none."""


_CodeOnlyModule = GraphModule
_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"


def _copy_attr(from_module: Module, to_module: Module, target: str) -> None:
    """Give a module the parameter or attribute of another that is there by the dotted name `target`."""
    *way, name = target.split(".")
    for each in way:
        source = getattr(from_module, each, None)
        if source is None:
            return
        if not hasattr(to_module, each):
            setattr(to_module, each, Module())
        from_module, to_module = source, getattr(to_module, each)
    value = getattr(from_module, name)
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        to_module.register_buffer(name, value)
    else:
        setattr(to_module, name, value)
