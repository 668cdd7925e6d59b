"""`torch.fx.graph_module`: the class of modules that tracing creates; it has no instances."""

from tinytorch.core.tensor import Tensor
from tinytorch.nn.modules.module import Module
from tinytorch.nn.parameter import Parameter

from ..absent import Refused

__all__ = ["GraphModule"]


class GraphModule(Refused, Module):
    """A module created by tracing: it has no instances."""


_CodeOnlyModule = GraphModule
_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"


def _copy_attr(from_module: Module, to_module: Module, target: str) -> None:
    """Copy the parameter or attribute with the dotted name `target` from one module to another."""
    *path, name = target.split(".")
    for part in path:
        source = getattr(from_module, part, None)
        if source is None:
            return
        if not hasattr(to_module, part):
            setattr(to_module, part, Module())
        from_module, to_module = source, getattr(to_module, part)
    value = getattr(from_module, name)
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        to_module.register_buffer(name, value)
    else:
        setattr(to_module, name, value)
