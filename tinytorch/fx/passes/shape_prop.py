"""`torch.fx.passes.shape_prop`: the shapes and dtypes of a graph's values."""

from __future__ import annotations

import traceback
from typing import Any, NamedTuple

from tinytorch.core.layout import channels_last, channels_last_3d, contiguous_format, memory_format
from tinytorch.core.tensor import Size, Tensor
from tinytorch.fx.interpreter import Interpreter
from tinytorch.fx.node import Node, map_aggregate
from tinytorch.kernels.dtypes import dtype

__all__ = ["ShapeProp", "TensorMetadata"]


class TensorMetadata(NamedTuple):
    """What is known of a tensor in a graph."""

    shape: Size
    dtype: dtype
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: memory_format | None
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(result: Tensor, include_contiguity: bool = True) -> TensorMetadata:
    """Return what is known of a tensor."""
    layout = None
    for each in (contiguous_format, channels_last, channels_last_3d) if include_contiguity else ():
        dims = {channels_last: 4, channels_last_3d: 5}.get(each)
        if dims in (None, result.dim()) and result.is_contiguous(memory_format=each):
            layout = each
            break
    return TensorMetadata(result.shape, result.dtype, result.requires_grad, result.stride(), layout, False, {})


class ShapeProp(Interpreter):
    """Runs a graph, and notes shapes and dtypes of its values as `node.meta["tensor_meta"]`, types as `meta["type"]`.

    Example:
        >>> module = torch.fx.symbolic_trace(torch.nn.Linear(2, 3))
        >>> y = torch.fx.passes.shape_prop.ShapeProp(module).propagate(torch.ones(4, 2))
        >>> [node.meta["tensor_meta"].shape for node in module.graph.nodes if node.name == "linear"]
        [torch.Size([4, 3])]
    """

    def __init__(self, gm: Any, fake_mode: Any = None) -> None:
        super().__init__(gm)
        self.fake_mode = fake_mode

    def run_node(self, n: Node) -> Any:
        """Return the value of a node, and note what is known of it."""
        try:
            result = super().run_node(n)
        except Exception as error:
            traceback.print_exc()
            raise RuntimeError(f"ShapeProp error for: node={n.format_node()} with meta={n.meta}") from error
        found: list[TensorMetadata] = []

        def metadata(value: Any) -> Any:
            if not isinstance(value, Tensor):
                return value
            found.append(_extract_tensor_metadata(value))
            return found[-1]

        meta = map_aggregate(result, metadata)
        if found:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Run the graph with arguments; return its result."""
        return super().run(*args)
