"""`torch.nn.attention`: the selection of attention kernels, which has no effect: there is only one kernel here."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator

__all__ = ["WARN_FOR_UNFUSED_KERNELS", "SDPBackend", "sdpa_kernel"]

WARN_FOR_UNFUSED_KERNELS = False


class SDPBackend(enum.IntEnum):
    """PyTorch's attention kernels and their numbers.

    Example:
        >>> torch.nn.attention.SDPBackend.MATH.name, int(torch.nn.attention.SDPBackend.MATH)
        ('MATH', 0)
    """

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextlib.contextmanager
def sdpa_kernel(backends: list[SDPBackend] | SDPBackend, set_priority: bool = False) -> Iterator[dict[str, object]]:
    """Select attention kernels in a `with` block; has no effect.

    Example:
        >>> from tinytorch.nn.attention import SDPBackend, sdpa_kernel
        >>> x = torch.ones(1, 1, 2)
        >>> with sdpa_kernel(SDPBackend.MATH):
        ...     torch.nn.functional.scaled_dot_product_attention(x, x, x)
        tensor([[[1., 1.]]])
    """
    if not isinstance(backends, (list, SDPBackend)):
        raise AssertionError(
            "Backend must be an instance of SDPBackend or a list of SDPBackend instances, got "
            f"{type(backends).__name__}"
        )
    yield {}
