"""The arena: one block of memory for all buffers of a program, which use the same places one after the other."""

from __future__ import annotations

from typing import Any

from tinytorch.compiler.recorder import Value

ALIGNMENT = 64  # bytes: a line of the cache


class Arena:
    """The buffers of a program, with the steps in which they are used; `planned` gives each one its place."""

    def __init__(self) -> None:
        self._buffers: dict[str, list[Any]] = {}  # by name: size, shape, name of the dtype, first and last step

    def begin(self, name: str, value: Value, dtype: str, step: int) -> None:
        """Note a buffer that a step writes to first."""
        size = -(-value.size * value.dtype.itemsize // ALIGNMENT) * ALIGNMENT
        self._buffers[name] = [size, value.size * value.dtype.itemsize, value.shape, dtype, step, None]

    def end(self, name: str, step: int) -> None:
        """Note the last step that uses a buffer."""
        self._buffers[name][-1] = step

    def planned(self, name: str) -> tuple[int, list[str]]:
        """Return the size of the arena in bytes, and the lines that make it and its buffers.

        The largest buffers come first; each gets the lowest place that no buffer has at the same time.
        """
        placed: list[tuple[int, int, int, float]] = []  # first and last byte, first and last step
        lines, total = [], 0
        for each, (size, length, sizes, dtype, begin, last) in sorted(
            self._buffers.items(), key=lambda item: -item[1][0]
        ):
            end = float("inf") if last is None else last
            at = 0
            for first, past, since, until in sorted(placed):
                if since <= end and begin <= until and first < at + size and at < past:
                    at = past
            placed.append((at, at + size, begin, end))
            total = max(total, at + size)
            lines.append(f"{each} = {name}[{at} : {at + length}].view({dtype}).reshape({sizes})")
        return total, [f"{name} = np.empty({total}, np.uint8)", *lines] if lines else []


__all__ = ["Arena"]
