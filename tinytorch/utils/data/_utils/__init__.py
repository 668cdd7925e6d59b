"""Where programs import the parts of a `DataLoader` from; `worker` and `fetch` are `tinytorch.data.worker`."""

import sys

from tinytorch.data import worker
from tinytorch.data.worker import MP_STATUS_CHECK_INTERVAL, ExceptionWrapper
from tinytorch.utils.data._utils import collate, pin_memory

__all__ = ["MP_STATUS_CHECK_INTERVAL", "ExceptionWrapper", "collate", "fetch", "pin_memory", "worker"]

HAS_NUMPY = True
IS_WINDOWS = sys.platform == "win32"
python_exit_status = False
fetch = worker
