"""PyTorch's name, `torch.utils.model_zoo`, for loading weights from the internet."""

from tqdm import tqdm

from tinytorch.hub import load_state_dict_from_url as load_url

__all__ = ["load_url", "tqdm"]
