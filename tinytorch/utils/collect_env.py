"""`torch.utils.collect_env`: what a report of a bug says of the machine (`python -m tinytorch.utils.collect_env`)."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys

import numpy as np

from tinytorch._version import PYTORCH, __version__
from tinytorch.kernels import native

__all__ = ["get_pretty_env_info", "main"]
_PACKAGES = (
    "ipython lightning ml_dtypes mpi4py onnx pillow safetensors tensorboardx torch torchvision tqdm transformers"
)


def libraries() -> list[str]:
    """Return the versions of Python, NumPy and BLAS, and the native kernels' instruction set, or why there are none."""
    blas = (np.show_config(mode="dicts") or {}).get("Build Dependencies", {}).get("blas", {})
    return [
        f"Python {sys.version.split()[0]}",
        f"NumPy {np.__version__}",
        f"BLAS {blas.get('name', 'unknown')} {blas.get('version', '')}".rstrip(),
        f"native kernels: {native.instructions or 'none'} ({native.absence() or native.build() or 'built by hand'})",
    ]


def get_pretty_env_info() -> str:
    """Return the versions, the system and the packages that a report of a bug should name.

    Example:
        >>> from tinytorch.utils import collect_env
        >>> print(collect_env.get_pretty_env_info())
        tinytorch ..., in ...
        the API of PyTorch ...
        ...
    """
    lines = [f"tinytorch {__version__}, in {os.path.dirname(os.path.dirname(os.path.abspath(__file__)))}"]
    lines += [f"the API of PyTorch {PYTORCH}", *libraries(), f"system: {platform.platform()}, {os.cpu_count()} CPUs"]
    variables = [f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith("TINYTORCH_")]
    found = {str(each.metadata["Name"]).lower(): each.version for each in importlib.metadata.distributions()}
    packages = [f"{name} {found[name]}" for name in _PACKAGES.split() if name in found]
    return "\n".join(
        [*lines, f"variables: {', '.join(variables) or 'none'}", f"packages: {', '.join(packages) or 'none'}"]
    )


def main() -> None:
    """Print the report."""
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
