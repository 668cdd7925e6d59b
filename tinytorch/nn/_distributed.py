"""Names of `torch.nn` that `tinytorch.distributed` defines.

It is built on nn, so nn imports them only when a program asks for them: `tests/test_structure.py` knows this table.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

from tinytorch.core.supplied import left_out

#: By name, the module that defines it; `distributed`, in `nn.parallel`, is the module itself.
DEFINED_IN = {
    "DistributedDataParallel": "tinytorch.distributed.data_parallel",
    "SyncBatchNorm": "tinytorch.distributed.sync_batchnorm",
    "distributed": "tinytorch.distributed.data_parallel",
}


def lazy_names(module: str, *names: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for a module that has some of the names of the table."""

    def get(name: str) -> Any:
        if name not in names:
            raise left_out.error(module, name)
        defining = importlib.import_module(DEFINED_IN[name])
        return getattr(defining, name, defining)

    return get, lambda: sorted({*vars(sys.modules[module]), *names})
