"""PyTorch's name, `torch.utils.data._utils.worker`, for `tinytorch.data.worker`."""

from tinytorch.data.worker import WorkerInfo, get_worker_info

__all__ = ["WorkerInfo", "get_worker_info"]
