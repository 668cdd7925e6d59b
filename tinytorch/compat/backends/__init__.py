"""`torch.backends`: which libraries are available, and their settings."""

import contextlib
from collections.abc import Iterator

from ..backends import cpu, cuda, cudnn, mha, mkl, mkldnn, mps, openmp, opt_einsum

__all__ = ["cpu", "cuda", "cudnn", "mha", "mkl", "mkldnn", "mps", "openmp", "opt_einsum"]

fp32_precision = "none"
_may_change = [True]


def disable_global_flags() -> None:
    """Let `flags_frozen` return True outside `__allow_nonbracketed_mutation`; settings can still be changed.

    Example:
        >>> torch.backends.disable_global_flags()
        >>> with torch.backends.__allow_nonbracketed_mutation():
        ...     torch.backends.flags_frozen()
        False
    """
    _may_change[0] = False


def flags_frozen() -> bool:
    """Return whether `disable_global_flags` is in effect here."""
    return not _may_change[0]


@contextlib.contextmanager
def __allow_nonbracketed_mutation() -> Iterator[None]:
    """Return a context in which `flags_frozen` returns False."""
    before, _may_change[0] = _may_change[0], True
    try:
        yield
    finally:
        _may_change[0] = before
