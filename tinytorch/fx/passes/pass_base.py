"""`torch.fx.passes.infra.pass_base`: passes, which change graph modules."""

from __future__ import annotations

import abc
from typing import NamedTuple

from tinytorch.fx.graph_module import GraphModule

__all__ = ["PassBase", "PassResult"]


class PassResult(NamedTuple):
    """The result of a pass: the graph module, and whether it was changed."""

    graph_module: GraphModule
    modified: bool


class PassBase(abc.ABC):
    """A pass: subclasses implement `call`, and may check the graph before and after it.

    Example:
        >>> from tinytorch.fx.passes.infra.pass_base import PassBase, PassResult
        >>> class Clean(PassBase):
        ...     def call(self, graph_module):
        ...         return PassResult(graph_module, graph_module.graph.eliminate_dead_code())
        >>> Clean()(torch.fx.symbolic_trace(lambda x: x + 1)).modified
        False
    """

    def __call__(self, graph_module: GraphModule) -> PassResult | None:
        """Run the checks and the pass; return its result."""
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abc.abstractmethod
    def call(self, graph_module: GraphModule) -> PassResult | None:
        """Change the graph module."""

    def requires(self, graph_module: GraphModule) -> None:  # noqa: B027
        """Check the graph module before the pass."""

    def ensures(self, graph_module: GraphModule) -> None:  # noqa: B027
        """Check the graph module after the pass."""
