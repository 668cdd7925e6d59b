"""`torch.fx`: programs as graphs that can be read, changed and run.

`symbolic_trace` runs a module with symbolic values (`proxy`), and records a `Graph` of `Node`s (`graph`, `node`); a
`GraphModule` runs the Python code of a graph (`_codegen`, `graph_module`), an `Interpreter` its nodes. `_names` has
the names that functions have in PyTorch. `passes/` and `subgraph_rewriter` change graphs.

Where to add what:

- What an operator of `torch.ops.aten` computes, or which of them an op is (for `make_fx`): a line in its family in
  `_aten.py`; `tests/fx/test_make_fx.py` compares with PyTorch.
- How a public function is written as ONNX: a rule in the file of its family in `onnx/ops/`; its samples test it.
- How a program is recorded as a graph of public functions (`torch.export`): `export/tracing.py`.

The docstrings of `_aten.py` and of `onnx/ops/__init__.py` show how a rule looks.
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
    if name in ("_compatibility", "operator_schemas", "traceback"):  # (modules of the table `compat/names.txt`)
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
