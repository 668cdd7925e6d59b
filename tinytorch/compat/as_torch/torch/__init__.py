"""The name `torch` on Python's path: from here on `torch` and all `torch.x` are tinytorch and its modules."""

import sys

try:
    from tinytorch import compat
except ModuleNotFoundError:  # `python -m tinytorch` in a checkout that is not installed
    sys.path.append(__file__.rsplit("tinytorch", 1)[0])
    from tinytorch import compat

del sys.modules[__name__]
compat.install()
