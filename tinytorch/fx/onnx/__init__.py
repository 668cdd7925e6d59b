"""`torch.onnx`: models written as ONNX.

`export` calls a model and writes the call down as a graph of public functions (`torch.export`), not of ATen's
operators; `writing` writes the graph as an ONNX model (`program`), with the help of a table (`builder`, `ops/`).
Functions that the table lacks are followed if they consist of others. The package `onnx` is imported when a model is
written.
"""

from tinytorch.fx.onnx import errors
from tinytorch.fx.onnx.errors import OnnxExporterError
from tinytorch.fx.onnx.exporting import (
    OperatorExportTypes,
    TrainingMode,
    export,
    is_in_onnx_export,
    register_custom_op_symbolic,
    select_model_mode_for_export,
    unregister_custom_op_symbolic,
)
from tinytorch.fx.onnx.program import ONNXProgram

__all__ = [
    "ONNXProgram", "OnnxExporterError", "OperatorExportTypes", "TrainingMode", "errors", "export", "is_in_onnx_export",
    "register_custom_op_symbolic", "select_model_mode_for_export", "unregister_custom_op_symbolic",
]  # fmt: skip
