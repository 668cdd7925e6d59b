"""`torch.onnx.errors`: why a model cannot be written as ONNX."""

from __future__ import annotations

from typing import Any


class OnnxExporterWarning(UserWarning):
    """A warning of the exporter."""


class OnnxExporterError(RuntimeError):
    """A model cannot be written as ONNX.

    Example:
        >>> issubclass(torch.onnx.errors.UnsupportedOperatorError, torch.onnx.OnnxExporterError)
        True
    """


class UnsupportedOperatorError(OnnxExporterError):
    """ONNX has no expression for a function, or for the way in which it is called."""

    def __init__(
        self, name: str, version: int, supported_version: int | None = None, where: str = "", reason: str = ""
    ) -> None:
        self.name, self.version, self.supported_version, self.where = name, version, supported_version, where
        said = f"{where}: " if where else ""
        said += f"Exporting the operator '{name}' to ONNX opset version {version} is not supported"
        if supported_version is not None:
            said += f". Support for this operator was added in version {supported_version}, try exporting with this one"
        super().__init__(f"{said}: {reason}" if reason else said)


class SymbolicValueError(OnnxExporterError):
    """A value cannot be an argument of an operator of ONNX: where a number is needed, say."""

    def __init__(self, msg: str, value: Any = None) -> None:
        self.value = value
        super().__init__(msg)


__all__ = ["OnnxExporterError", "OnnxExporterWarning", "SymbolicValueError", "UnsupportedOperatorError"]
