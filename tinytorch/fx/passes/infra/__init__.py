"""`torch.fx.passes.infra`: passes and their order."""

from tinytorch.fx.passes.infra import pass_base, pass_manager

__all__ = ["pass_base", "pass_manager"]
