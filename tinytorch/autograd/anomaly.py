"""Anomaly detection: which line of the forward pass is behind a NaN, or an error, in the backward pass.

Source: PyTorch's `torch.autograd.detect_anomaly`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from tinytorch.autograd.saved import nodes_of
from tinytorch.core.graph import Start
from tinytorch.core.mode import DispatchMode, Event, local, on
from tinytorch.core.supplied import inspect
from tinytorch.core.warning import users_frame, warn

__all__ = ["detect_anomaly", "is_anomaly_check_nan_enabled", "is_anomaly_enabled", "set_detect_anomaly"]

_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep
#: The beginnings of the file names of an op's own frames, which are not shown.
_OWN_FRAMES = tuple([_PACKAGE + folder + os.sep for folder in ("core", "autograd", "ops")])


class Anomaly(DispatchMode):
    """Stores on each node the stack of the call that created it, and checks the gradients that it returns.

    It also stores the line of the last write into each memory, for the error about a saved value that was changed.
    """

    def __init__(self, check_nan: bool) -> None:
        self.check_nan = check_nan
        self._finite: Any = inspect.nonfinite("record") if check_nan else None  # what explains a NaN
        self._evaluating: Any = None  # the node whose backward runs now
        self._writes: dict[int, tuple[Any, str, int]] = {}  # by the id of a version counter: it, file and line

    def call(self, op: Any, caller: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of a call, having stored the caller's stack on the new nodes."""
        finite, writes = self._finite, getattr(caller, "writes", False)
        before = finite.overwritten(args[0]) if finite is not None and writes else None
        result = caller(*args, **kwargs)
        if finite is not None:
            finite.look(op, args, kwargs, result, before)
        if writes and args:
            self.before_write(args[0])
        for node in nodes_of(result):
            if "traceback_" not in node.metadata:
                node.metadata["traceback_"] = _stack()
                if self._evaluating is not None:
                    node.metadata["parent_"] = self._evaluating
        return result

    @on(Event.WRITES)
    def before_write(self, x: Any) -> None:
        """Store the user's line that writes into a tensor."""
        cell = getattr(x, "_cell", None)
        if cell is not None:
            frame = users_frame()
            self._writes[id(cell)] = cell, frame.f_code.co_filename, frame.f_lineno

    def place_of_write(self, cell: Any) -> str:
        """Return "file:line: text" of the last write into a memory; "" if none was seen."""
        if id(cell) not in self._writes:
            return ""
        import linecache  # slow to import, seldom needed

        _, file, line = self._writes[id(cell)]
        return f"{file}:{line}: {linecache.getline(file, line).strip()}"

    def step(self, node: Any, run: Callable[[], Any]) -> Any:
        """Return the gradients of a node's inputs.

        Raises:
            RuntimeError: a gradient has a NaN; a warning shows the stack of the node, as for any other error.
        """
        before, self._evaluating = self._evaluating, node
        try:
            grads = run()
            if self.check_nan and not isinstance(node, Start):
                self._finite.reach(node)
                for k, g in enumerate(grads):
                    if g is not None and np.isnan(g._array).any():
                        error = RuntimeError(f"Function '{node.name()}' returned nan values in its {k}th output.")
                        origin = self._finite.explain_gradient(node, k, g, run)
                        if origin:
                            error.add_note(origin)
                        raise error
        except Exception:
            _report(node)
            raise
        finally:
            self._evaluating = before
        return grads


def _stack() -> list[str]:
    """Return the formatted frames of the caller's code, the latest last."""
    import traceback  # slow to import, seldom needed

    frames = traceback.extract_stack()
    while frames and frames[-1].filename.startswith(_OWN_FRAMES):
        frames.pop()
    return traceback.format_list(frames)


def _report(node: Any) -> None:
    """Warn with the stack of a node, and with those of the nodes during whose backward it was created."""
    metadata = node.metadata
    missing = "No forward pass information available."

    def text(consequence: str, otherwise: str) -> str:
        lines = metadata.get("traceback_")
        return otherwise if lines is None else f"Traceback of forward call that {consequence}:\n{''.join(lines)}"

    more = f"{missing} Enable detect anomaly during forward pass for more information."
    _warn(f"Error detected in {node.name()}. {text('caused the error', more)}")
    while (node := metadata.get("parent_")) is not None:
        metadata = node.metadata
        shown = text("induced the previous calculation", missing)
        _warn(f"\n\nPrevious calculation was induced by {node.name()}. {shown}")


def _warn(text: str) -> None:
    """Warn; where warnings are errors, print instead: the error that the text explains is the one to be raised."""
    try:
        warn(text, UserWarning)
    except UserWarning:
        print(f"Warning: {text}", file=sys.stderr)


def _current() -> Anomaly | None:
    return next((mode for mode in local.state.modes or () if isinstance(mode, Anomaly)), None)


def is_anomaly_enabled() -> bool:
    """Return whether anomaly detection is on in this thread.

    Example:
        >>> torch.is_anomaly_enabled()
        False
    """
    return _current() is not None


def is_anomaly_check_nan_enabled() -> bool:
    """Return whether anomaly detection, if on, checks for NaN (the default).

    Example:
        >>> torch.is_anomaly_check_nan_enabled()
        True
    """
    current = _current()
    return True if current is None else current.check_nan


class set_detect_anomaly:
    """Switch anomaly detection on or off in this thread; as a context manager, until its end.

    Args:
        check_nan: raise an error for NaN in the gradients; otherwise only other errors are explained.

    Example:
        >>> with torch.autograd.set_detect_anomaly(True):
        ...     torch.is_anomaly_enabled()
        True
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._before = _current()
        _switch(Anomaly(check_nan) if mode else None)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        _switch(self._before)


def _switch(anomaly: Anomaly | None) -> None:
    current = _current()
    if current is not None:
        current.__exit__()
    if anomaly is not None:
        anomaly.__enter__()


class detect_anomaly(set_detect_anomaly):
    """Inside, backward raises at the first node that returns a NaN, and shows the line of the forward pass behind it.

    Every op then stores its stack, which is slow: a warning says that this is for debugging only.

    Example:
        >>> import warnings
        >>> x = torch.tensor(0.0, requires_grad=True)
        >>> with warnings.catch_warnings(action="ignore"):  # the warning shows the line `y = ...`
        ...     with torch.autograd.detect_anomaly():
        ...         y = (x * 0).sqrt() * x
        ...         y.backward()
        Traceback (most recent call last):
        RuntimeError: Function 'SqrtBackward0' returned nan values in its 0th output.
    """

    def __init__(self, check_nan: bool = True) -> None:
        warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for "
            "debugging."
        )
        self._check_nan = check_nan

    def __enter__(self) -> None:
        super().__init__(True, self._check_nan)
