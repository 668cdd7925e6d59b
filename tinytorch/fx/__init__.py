"""`torch.fx`: programs as graphs that can be read, changed and run.

`symbolic_trace` runs a module with symbolic values (`proxy`), which receive public calls by `__torch_function__`, and
records a `Graph` of `Node`s (`graph`, `node`). A `GraphModule` runs the Python code of a graph (`_codegen`,
`graph_module`), an `Interpreter` its nodes; `subgraph_rewriter` and `passes/` change it. `_names` has the names that
functions have in PyTorch, so that graphs and code have its text.

`_operators` is `torch.ops.aten`, `_aten` says what these operators compute and which of them an op is, and
`experimental/proxy_tensor` (a mode) records a call as a graph of them. `export/` is `torch.export`, `onnx/` is
`torch.onnx`.
"""

import importlib
from typing import Any

from tinytorch.fx import (
    _pytree,
    experimental,
    graph,
    graph_module,
    immutable_collections,
    interpreter,
    node,
    passes,
    proxy,
    subgraph_rewriter,
)
from tinytorch.fx._symbolic_trace import (
    PH,
    ProxyableClassMeta,
    Tracer,
    is_fx_symbolic_tracing,
    is_fx_tracing,
    symbolic_trace,
    wrap,
)
from tinytorch.fx.graph import CodeGen, Graph
from tinytorch.fx.graph_module import GraphModule
from tinytorch.fx.interpreter import Interpreter, Transformer
from tinytorch.fx.node import Node, has_side_effect, map_arg
from tinytorch.fx.proxy import Proxy
from tinytorch.fx.subgraph_rewriter import replace_pattern

__all__ = [
    "PH", "CodeGen", "Graph", "GraphModule", "Interpreter", "Node", "Proxy", "ProxyableClassMeta", "Tracer",
    "Transformer", "_pytree", "experimental", "graph", "graph_module", "has_side_effect", "immutable_collections",
    "interpreter", "is_fx_symbolic_tracing", "is_fx_tracing", "map_arg", "node", "passes", "proxy",
    "replace_pattern", "subgraph_rewriter", "symbolic_trace", "wrap",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in ("operator_schemas", "traceback"):  # (modules of the table in `compat/named.py`)
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
