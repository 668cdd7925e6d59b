"""`torch.nn.attention`: which kernel `scaled_dot_product_attention` may use. There is one here, whatever is chosen."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator

__all__ = ["WARN_FOR_UNFUSED_KERNELS", "SDPBackend", "sdpa_kernel"]

WARN_FOR_UNFUSED_KERNELS = False


class SDPBackend(enum.IntEnum):
    """PyTorch's kernels of attention, by its numbers.

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
    """Choose among kernels of attention, in a `with` block: accepted, without an effect.

    Args:
        backends: one or a list.
        set_priority: whether their order is that of preference.

    Raises:
        AssertionError: `backends` is neither.

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
