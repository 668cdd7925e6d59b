"""`torch.onnx`: exporting models is not implemented; packages can register conversions, without effect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from ..absent import answering
from ..named import names_of

__all__ = ["export", "is_in_onnx_export", "register_custom_op_symbolic", "unregister_custom_op_symbolic"]

is_in_onnx_export = answering("is_in_onnx_export", lambda: False, "Return False.")


def export(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise NotImplementedError: exporting models is not implemented."""
    raise NotImplementedError("torch.onnx.export: tinytorch writes no ONNX models")


def register_custom_op_symbolic(
    symbolic_name: str, symbolic_fn: Callable[..., Any], opset_version: int, **options: Any
) -> None:
    """Do nothing: in PyTorch it registers the conversion of an operator."""


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Do nothing: in PyTorch it removes the conversion of an operator."""


globals().update(names_of(__name__))
