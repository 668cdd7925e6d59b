"""`torch.onnx`: PyTorch's name of `tinytorch.fx.onnx`."""

from tinytorch.fx.onnx import (
    OnnxExporterError,
    ONNXProgram,
    OperatorExportTypes,
    TrainingMode,
    errors,
    export,
    is_in_onnx_export,
    register_custom_op_symbolic,
    select_model_mode_for_export,
    unregister_custom_op_symbolic,
)

from ..named import names_of

__all__ = [
    "ONNXProgram", "OnnxExporterError", "OperatorExportTypes", "TrainingMode", "errors", "export", "is_in_onnx_export",
    "register_custom_op_symbolic", "select_model_mode_for_export", "unregister_custom_op_symbolic",
]  # fmt: skip

globals().update(names_of(__name__))
