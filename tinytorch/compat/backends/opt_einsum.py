"""The package opt_einsum, which would choose the order of products in `einsum`: not used."""

from ..absent import answering

__all__ = ["enabled", "get_opt_einsum", "is_available", "strategy"]

enabled = False
strategy: str | None = None
is_available = answering("is_available", lambda: False, "Return False.")
get_opt_einsum = answering("get_opt_einsum", lambda: None, "Return None: the package is not used.")
