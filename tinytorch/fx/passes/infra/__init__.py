"""`torch.fx.passes.infra`: passes, their order, and parts of graphs that a backend can run."""

from tinytorch.fx.passes.infra import partitioner, pass_base, pass_manager

__all__ = ["partitioner", "pass_base", "pass_manager"]
