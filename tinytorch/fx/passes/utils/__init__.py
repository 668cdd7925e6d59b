"""`torch.fx.passes.utils`: finding patterns in graphs."""

from tinytorch.fx.passes.utils import matcher_utils

__all__ = ["matcher_utils"]
