"""PyTorch's name, `torch.overrides`, for `tinytorch.ops.overrides` (floor 4)."""

from tinytorch.ops.overrides import (
    BaseTorchFunctionMode,
    TorchFunctionMode,
    get_ignored_functions,
    get_overridable_functions,
    handle_torch_function,
    has_torch_function,
    is_tensor_like,
    is_tensor_method_or_property,
    resolve_name,
    wrap_torch_function,
)

__all__ = [
    "BaseTorchFunctionMode", "TorchFunctionMode", "get_ignored_functions", "get_overridable_functions",
    "handle_torch_function", "has_torch_function", "is_tensor_like", "is_tensor_method_or_property", "resolve_name",
    "wrap_torch_function",
]  # fmt: skip
