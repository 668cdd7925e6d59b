"""`torch.backends.mps`: Apple's GPUs, which are not available."""

from ..absent import answering, refusing

__all__ = ["is_available", "is_built", "is_macos13_or_newer", "is_macos_or_newer"]

is_available = answering("is_available", lambda: False, "Return False: tinytorch runs on the CPU.")
is_built = answering("is_built", lambda: False, "Return False.")
is_macos_or_newer = is_macos13_or_newer = refusing(
    RuntimeError, "Cannot execute isOnMacOSorNewer() without MPS backend."
)
