"""What exists for other devices, older programs and private names of PyTorch: nothing in the house imports it.

`tinytorch/__init__.py` has this folder searched for submodules of the package, so `compat/cuda/` is `tinytorch.cuda`
and has that name alone: `tinytorch.compat` itself has no submodules, so nothing is imported twice. What it has is
`install`, by which `torch` means tinytorch.
"""

from tinytorch.alias import install as install

__path__ = []
