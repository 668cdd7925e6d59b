"""`torch.linalg`: norms and products of matrices (floor 4)."""

from tinytorch.ops.linalg import matmul
from tinytorch.ops.reduce import vector_norm

__all__ = ["matmul", "vector_norm"]
