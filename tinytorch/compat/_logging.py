"""`torch._logging`: what PyTorch's compiler logs; nothing is compiled, so nothing is logged."""

from __future__ import annotations

import functools
import logging
from typing import Any

__all__ = ["getArtifactLogger", "set_logs", "warning_once"]


def set_logs(*, modules: dict[str, Any] | None = None, **settings: Any) -> None:
    """Do nothing: PyTorch chooses here what its compiler logs.

    Example:
        >>> torch._logging.set_logs(graph_breaks=True)
    """


def getArtifactLogger(module_qname: str, artifact_name: str) -> logging.Logger:
    """Return the logger of a part of a module."""
    return logging.getLogger(f"{module_qname}.__{artifact_name}")


@functools.lru_cache(None)
def warning_once(logger_obj: logging.Logger, *args: Any, **kwargs: Any) -> None:
    """Log a warning, the first time that it is asked for."""
    logger_obj.warning(*args, **kwargs)
