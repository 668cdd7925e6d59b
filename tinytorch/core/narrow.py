"""8-bit floats (`float8_e4m3fn` ...): all ops refuse them, as in PyTorch, but views and those declared with `moves`."""

from __future__ import annotations

from typing import Any

from tinytorch.core.kernel_guards import KernelGuards
from tinytorch.kernels import dtypes
from tinytorch.kernels.checks import tensor_name


def _refusal(name: str, value: Any) -> NotImplementedError | None:
    kind: Any = getattr(value, "dtype", None)
    if getattr(kind, "itemsize", 0) != 1 or kind.kind not in dtypes.FLOATS:
        return None
    return NotImplementedError(f"\"{name.strip('_')}\" not implemented for '{tensor_name(value)}'")


_guards = KernelGuards(_refusal)
#: Makes a generated function refuse 8-bit floats.
guard_kernels = _guards.add

dtypes.on_float8.append(_guards.begin)
