"""`torch.distributed.algorithms`: communication hooks, model averaging, and training with uneven inputs."""

from tinytorch.distributed.algorithms.join import Join, Joinable, JoinHook

__all__ = ["Join", "JoinHook", "Joinable"]
