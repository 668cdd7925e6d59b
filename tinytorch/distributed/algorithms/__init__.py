"""`torch.distributed.algorithms`: other ways than the mean of all gradients at each step; and uneven inputs."""

from tinytorch.distributed.algorithms.join import Join, Joinable, JoinHook

__all__ = ["Join", "JoinHook", "Joinable"]
