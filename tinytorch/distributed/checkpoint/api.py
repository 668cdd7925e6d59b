"""`CheckpointException`: the errors of all ranks."""

from __future__ import annotations

import traceback

__all__ = ["CheckpointException"]

WRAPPED_EXCEPTION = tuple[BaseException, traceback.StackSummary]


class CheckpointException(BaseException):
    """An error while a checkpoint was saved or loaded, raised on all ranks.

    As in PyTorch it is not an `Exception`: `except Exception` does not catch it.

    Args:
        msg: the step that failed.
        failures: for each rank that failed, the error and its traceback.
    """

    def __init__(self, msg: str, failures: dict[int, WRAPPED_EXCEPTION]) -> None:
        super().__init__(msg, failures)
        self._failures = failures

    @property
    def failures(self) -> dict[int, WRAPPED_EXCEPTION]:
        """Return for each rank that failed the error and its traceback."""
        return self._failures

    def __str__(self) -> str:
        text = f"CheckpointException ranks:{self._failures.keys()}\n"
        for rank, (error, stack) in self._failures.items():
            lines = [*stack.format(), *traceback.format_exception_only(type(error), error)]
            text += f"Traceback (most recent call last): (RANK {rank})\n" + "".join(lines)
        return text
