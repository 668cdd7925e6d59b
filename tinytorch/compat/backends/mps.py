"""Apple's GPUs: not available."""

from ..absent import answering

__all__ = ["is_available", "is_built"]

is_available = answering("is_available", lambda: False, "Return False: tinytorch runs on the CPU.")
is_built = answering("is_built", lambda: False, "Return False.")
