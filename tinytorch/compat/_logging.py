"""`torch._logging`: the logs of PyTorch's compiler; tinytorch's writes none."""

from __future__ import annotations

import functools
import logging
from typing import Any

__all__ = ["getArtifactLogger", "set_logs", "warning_once"]


def set_logs(*, modules: dict[str, Any] | None = None, **settings: Any) -> None:
    """Do nothing: in PyTorch it selects what the compiler logs.

    Example:
        >>> torch._logging.set_logs(graph_breaks=True)
    """


def getArtifactLogger(module_qname: str, artifact_name: str) -> logging.Logger:
    """Return the logger for an artifact of a module."""
    return logging.getLogger(f"{module_qname}.__{artifact_name}")


@functools.lru_cache(None)
def warning_once(logger_obj: logging.Logger, *args: Any, **kwargs: Any) -> None:
    """Log a warning the first time it is called with these arguments."""
    logger_obj.warning(*args, **kwargs)
