"""`torch.fx.traceback`: what nodes that are recorded from now on get as their `meta`."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

__all__ = [
    "annotate", "annotate_fn", "format_stack", "get_current_meta", "has_preserved_node_meta", "preserve_node_meta",
    "reset_grad_fn_seq_nr", "set_current_meta", "set_grad_fn_seq_nr", "set_stack_trace",
]  # fmt: skip

F = TypeVar("F", bound=Callable[..., Any])


class _State:
    """The `meta` that new nodes get, and whether they get it."""

    def __init__(self) -> None:
        self.meta: dict[str, Any] = {}
        self.preserves = False


_state = _State()


@contextlib.contextmanager
def preserve_node_meta(enable: bool = True) -> Iterator[None]:
    """Give nodes that are recorded in a `with` block the `meta` of the node that runs (`fx.Interpreter`)."""
    before = _state.preserves, _state.meta
    _state.preserves, _state.meta = enable, dict(_state.meta)
    try:
        yield
    finally:
        _state.preserves, _state.meta = before


def has_preserved_node_meta() -> bool:
    """Return whether `preserve_node_meta` is in effect."""
    return _state.preserves


@contextlib.contextmanager
def annotate(annotation_dict: dict[str, Any]) -> Iterator[None]:
    """Give nodes that are recorded in a `with` block entries in `meta["custom"]`.

    Example:
        >>> with torch.fx.traceback.annotate({"stage": 1}):
        ...     torch.fx.traceback.get_current_meta()["custom"]
        {'stage': 1}
    """
    before = _state.meta
    _state.meta = {**before, "custom": {**before.get("custom", {}), **annotation_dict}}
    try:
        yield
    finally:
        _state.meta = before


def annotate_fn(annotation_dict: dict[str, Any]) -> Callable[[F], F]:
    """Return a decorator that runs a function inside `annotate`."""

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def annotated(*args: Any, **kwargs: Any) -> Any:
            with annotate(annotation_dict):
                return function(*args, **kwargs)

        return annotated  # type: ignore[return-value]

    return decorate


@contextlib.contextmanager
def set_current_meta(node: Any, pass_name: str = "") -> Iterator[None]:
    """Let new nodes have the `meta` of a node in a `with` block, if `preserve_node_meta` is in effect."""
    if not (_state.preserves and node.meta):
        yield
        return
    before = _state.meta
    _state.meta = dict(node.meta)
    try:
        yield
    finally:
        _state.meta = before


def get_current_meta() -> dict[str, Any]:
    """Return the `meta` that new nodes get."""
    return _state.meta


def set_stack_trace(stack: list[str]) -> None:
    """Set the stack trace that new nodes get, if `preserve_node_meta` is in effect."""
    if _state.preserves and stack:
        _state.meta["stack_trace"] = "".join(stack)


def format_stack() -> list[str]:
    """Return the stack trace that new nodes get, as a list of texts."""
    return [_state.meta.get("stack_trace", "")]


def set_grad_fn_seq_nr(seq_nr: int) -> None:
    """Note the number of the gradient node that runs, if `preserve_node_meta` is in effect."""
    if _state.preserves:
        _state.meta["grad_fn_seq_nr"] = [*_state.meta.get("grad_fn_seq_nr", []), seq_nr]
        _state.meta["in_grad_fn"] = _state.meta.get("in_grad_fn", 0) + 1


def reset_grad_fn_seq_nr() -> None:
    """Undo the last `set_grad_fn_seq_nr`."""
    running = _state.meta.get("in_grad_fn", 0)
    if _state.preserves and running:
        _state.meta["in_grad_fn"] = running - 1
        _state.meta["grad_fn_seq_nr"] = _state.meta["grad_fn_seq_nr"][:-1]
