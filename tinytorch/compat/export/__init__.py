"""`torch.export`: PyTorch's name of `tinytorch.fx.export`."""

from tinytorch.fx.export import (
    Dim,
    ExportedProgram,
    ExportError,
    ExportGraphSignature,
    ShapesCollection,
    dims,
    dynamic_shapes,
    export,
    exported_program,
    graph_signature,
    load,
    register_dataclass,
    save,
)

__all__ = [
    "Dim", "ExportError", "ExportGraphSignature", "ExportedProgram", "ShapesCollection", "dims", "dynamic_shapes",
    "export", "exported_program", "graph_signature", "load", "register_dataclass", "save",
]  # fmt: skip
