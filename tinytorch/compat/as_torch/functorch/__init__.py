"""The name `functorch`, of a package that comes with PyTorch."""

import importlib
import sys

sys.modules[__name__] = importlib.import_module("torch.functorch")
