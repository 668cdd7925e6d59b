"""`torch.fx.passes.operator_support`: which nodes a backend can run."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tinytorch.fx.node import Node
from tinytorch.fx.passes.shape_prop import TensorMetadata
from tinytorch.fx.passes.tools_common import CALLABLE_NODE_OPS, get_node_target
from tinytorch.kernels.dtypes import dtype
from tinytorch.nn.modules.module import Module

__all__ = ["OpSupports", "OperatorSupport", "OperatorSupportBase", "any_chain", "chain", "create_op_support"]

TargetTypeName = str
SupportedArgumentDTypes = tuple[Sequence[Sequence[dtype]], dict[str, Sequence[dtype]]] | None
SupportDict = Mapping[TargetTypeName, SupportedArgumentDTypes]
IsNodeSupported = Callable[[Mapping[str, Module], Node], bool]


class OperatorSupportBase(abc.ABC):
    """Tells whether a backend can run a node."""

    @abc.abstractmethod
    def is_node_supported(self, submodules: Mapping[str, Module], node: Node) -> bool:
        """Return whether the node is supported.

        Args:
            submodules: the modules by their paths.
            node: the node.
        """


class OperatorSupport(OperatorSupportBase):
    """Supports the targets of a table.

    Args:
        support_dict: by names as `get_node_target` returns them: the dtypes of positional and of keyword arguments, as
            a pair of a sequence and a dict; None for any.

    Example:
        >>> from tinytorch.fx.passes.operator_support import OperatorSupport
        >>> support = OperatorSupport({"torch.relu": None})
        >>> graph = torch.fx.symbolic_trace(lambda x: torch.relu(x) + 1).graph
        >>> [support.is_node_supported({}, node) for node in graph.nodes if node.op == "call_function"]
        [True, False]
    """

    _support_dict: SupportDict

    def __init__(self, support_dict: SupportDict | None = None) -> None:
        self._support_dict = support_dict or {}

    def is_node_supported(self, submodules: Mapping[str, Module], node: Node) -> bool:
        """Return whether the node's target is in the table, with the dtypes of the node's arguments."""
        if node.op not in CALLABLE_NODE_OPS:
            return True
        target = get_node_target(submodules, node)
        if target not in self._support_dict:
            return False
        dtypes = self._support_dict[target]
        if dtypes is None:
            return True
        given = list(zip(dtypes[0], node.args, strict=False))
        given += [(allowed, node.kwargs[name]) for name, allowed in dtypes[1].items() if name in node.kwargs]
        return all(
            allowed is None or not isinstance(value, Node) or _get_arg_dtype(value) in allowed
            for allowed, value in given
        )


def create_op_support(is_node_supported: IsNodeSupported) -> OperatorSupportBase:
    """Return an object that tells what a function tells."""

    class FunctionalOperatorSupport(OperatorSupportBase):
        def is_node_supported(self, submodules: Mapping[str, Module], node: Node) -> bool:
            return is_node_supported(submodules, node)

    return FunctionalOperatorSupport()


def chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """Return an object that tells whether all others support a node."""
    return create_op_support(
        lambda submodules, node: all(each.is_node_supported(submodules, node) for each in op_support)
    )


def any_chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """Return an object that tells whether one of others supports a node."""
    return create_op_support(
        lambda submodules, node: any(each.is_node_supported(submodules, node) for each in op_support)
    )


class OpSupports:
    """Conditions, for `chain`."""

    @classmethod
    def decline_if_input_dtype(cls, dtype: dtype) -> OperatorSupportBase:
        """Return an object that supports nodes without an argument of a dtype."""
        return create_op_support(
            lambda submodules, node: all(_get_arg_dtype(each) != dtype for each in node.all_input_nodes)
        )

    @classmethod
    def decline_if_node_in_names(cls, disallow_set: set[str]) -> OperatorSupportBase:
        """Return an object that supports nodes with other names."""
        return create_op_support(lambda submodules, node: node.name not in disallow_set)


def _get_arg_dtype(arg: Node) -> Any:
    """Return the dtype of a node's value, as `ShapeProp` has found out; the type of a value that is no tensor."""
    meta = arg.meta.get("tensor_meta")
    return meta.dtype if isinstance(meta, TensorMetadata) else arg.meta["type"]
