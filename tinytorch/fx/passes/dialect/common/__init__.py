"""`torch.fx.passes.dialect.common`: passes for graphs of functions without side effects."""

from tinytorch.fx.passes.dialect.common import cse_pass

__all__ = ["cse_pass"]
