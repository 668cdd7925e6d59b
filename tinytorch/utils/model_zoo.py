"""`torch.utils.model_zoo`: the older name of a function of `torch.hub` (floor 4)."""

from tinytorch.hub import load_state_dict_from_url as load_url

__all__ = ["load_url"]
