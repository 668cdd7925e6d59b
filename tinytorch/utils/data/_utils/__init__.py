"""Where programs import the parts of a `DataLoader` from."""

from tinytorch.utils.data._utils import collate, worker

__all__ = ["collate", "worker"]
