"""`torch._dynamo.eval_frame`: where programs look for the class of what `torch.compile` returns (floor 4)."""

from ..compiler import OptimizedModule

__all__ = ["OptimizedModule"]
