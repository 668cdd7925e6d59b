"""`torch.distributed`: processes on one machine or several that exchange tensors by MPI.

`groups` has the process groups and ranks; `collectives`, `messages` (point to point) and `objects` exchange data, and
`work` has the handle of an operation in progress. `run` and `worker` start and end processes, `rendezvous` connects
them. `data_parallel` and `sync_batchnorm` define layers of `torch.nn`, which `nn` imports on first use
(`nn/_distributed.py`).
`checkpoint/` `optim/` `algorithms/` `nn/` are as in PyTorch.
"""

from __future__ import annotations

import importlib
from typing import Any

from tinytorch.distributed import collectives, groups, messages, objects, stores, work
from tinytorch.distributed.collectives import *  # noqa: F403
from tinytorch.distributed.collectives import _broadcast_coalesced as _broadcast_coalesced
from tinytorch.distributed.groups import *  # noqa: F403
from tinytorch.distributed.groups import _get_default_group as _get_default_group
from tinytorch.distributed.groups import _new_process_group_helper as _new_process_group_helper
from tinytorch.distributed.groups import _rank_not_in_group as _rank_not_in_group
from tinytorch.distributed.groups import get_global_rank as _get_global_rank  # noqa: F401  (its older name)
from tinytorch.distributed.messages import *  # noqa: F403
from tinytorch.distributed.objects import *  # noqa: F403
from tinytorch.distributed.stores import *  # noqa: F403
from tinytorch.distributed.work import *  # noqa: F403

__all__ = [name for module in (collectives, groups, messages, objects, stores, work) for name in module.__all__]


def __getattr__(name: str) -> Any:
    if not name.startswith("_"):
        try:
            if name in ("DeviceMesh", "init_device_mesh"):
                return getattr(importlib.import_module("tinytorch.distributed.device_mesh"), name)
            if name == "GradBucket":
                return importlib.import_module("tinytorch.distributed._reducer").GradBucket
            return importlib.import_module(f"tinytorch.distributed.{name}")
        except ModuleNotFoundError:
            pass
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
