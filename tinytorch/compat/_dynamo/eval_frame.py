"""`torch._dynamo.eval_frame`: where programs look for the class of what `torch.compile` returns."""

from ..compiler import OptimizedModule

__all__ = ["OptimizedModule"]
