"""`torch.fx.passes.infra`: the base class of passes."""

from tinytorch.fx.passes.infra import pass_base

__all__ = ["pass_base"]
