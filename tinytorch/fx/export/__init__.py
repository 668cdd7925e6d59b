"""`torch.export`: models as graphs of the public functions that they call.

`export` calls a model and writes the call down (`tracing`): as an `ExportedProgram` (`exported_program`), whose graph
is one of `torch.fx`; `dynamic_shapes` says which sizes may differ from call to call, and `graph_signature` what the
inputs of the graph are. `saving` writes programs to files.

`tracing` uses the compiler's tracer and a `Transcript` whose sizes are nodes, and compares calls of other sizes with
the graph.
"""

from tinytorch.func.pytree import register_dataclass
from tinytorch.fx.export import dynamic_shapes, exported_program, graph_signature
from tinytorch.fx.export.dynamic_shapes import Dim, ShapesCollection, dims
from tinytorch.fx.export.exported_program import ExportedProgram
from tinytorch.fx.export.exporting import export
from tinytorch.fx.export.graph_signature import ExportGraphSignature
from tinytorch.fx.export.saving import load, save
from tinytorch.fx.export.tracing import ExportError

__all__ = [
    "Dim", "ExportError", "ExportGraphSignature", "ExportedProgram", "ShapesCollection", "dims", "dynamic_shapes",
    "export", "exported_program", "graph_signature", "load", "register_dataclass", "save",
]  # fmt: skip
