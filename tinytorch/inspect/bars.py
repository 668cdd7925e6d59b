"""`progress`: a bar on a terminal, and one line where the output goes into a file or a pipe."""

from __future__ import annotations

import functools
import io
import sys
from typing import Any

from tinytorch.core.terminal import columns

__all__ = ["progress"]


def progress(iterable: Any = None, *, disable: bool = False, **options: Any) -> Any:
    """Return a bar of tqdm, which counts the items of `iterable`, or the calls of `update`.

    On a terminal it is drawn and erased at the end. Elsewhere (a file, a pipe, a log), it is not drawn; when it is
    closed it prints one line with the count, the time, the rate, and what `set_postfix` last said.

    Args:
        iterable: what is iterated over; None for a bar that `update` advances.
        disable: whether to show neither.
        **options: arguments of tqdm: `total`, `desc`, `unit`, `leave` (default False), `file` (default stderr) ...

    Returns:
        the bar, which is iterable, and a context manager.

    Example:
        >>> import sys
        >>> from tinytorch import inspect
        >>> with inspect.progress(range(3), unit=" batches", desc="epoch 1", file=sys.stdout) as bar:
        ...     for step in bar:
        ...         bar.set_postfix(loss=0.5)
        epoch 1: 3/3 batches in 00:00, ... batches/s, loss=0.5
    """
    # (tqdm is not imported by programs that show no bar.)
    from tqdm import tqdm

    file = options.setdefault("file", sys.stderr)
    drawn = disable or getattr(file, "isatty", bool)()
    options.setdefault("leave", False)
    if width := columns(file):
        options.setdefault("ncols", width - 3)  # (the ^C of a keyboard stays in the line, which can be erased then)
    return (tqdm if drawn else _line_class())(iterable, disable=disable, **options)


@functools.cache
def _line_class() -> Any:
    from tqdm import tqdm

    class Line(tqdm):  # type: ignore[misc]
        """A bar that is not drawn, and prints a line when it is closed."""

        def display(self, *args: Any, **kwargs: Any) -> None:
            """Do nothing: there is no terminal."""

        refresh = clear = display

        def close(self) -> None:
            """Print the line."""
            if self.disable:
                return
            name = self.desc.removesuffix(": ")
            count = "{n_fmt}/{total_fmt}" if self.total else "{n_fmt}"
            unit = {"it": ""}.get(self.unit, f"{'' if self.unit_scale else ' '}{self.unit.strip()}")
            form = f"{count}{unit} in {{elapsed}}{', {rate_fmt}' * bool(self.n)}{{postfix}}"
            # (Without a rate tqdm shows the mean one.)
            told = {**self.format_dict, "bar_format": form, "prefix": "", "rate": None, "ncols": None}
            line = self.format_meter(**told)
            text = f"{name}: {line}" if name else line
            self.leave = False
            self.fp, file = io.StringIO(), self.fp  # (tqdm erases its bar)
            super().close()
            print(text, file=file, flush=True)

    return Line
