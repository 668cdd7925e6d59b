"""`add_notes`: adds notes to an error, and removes the package's frames from its traceback."""

from __future__ import annotations

import dis
import inspect
import re
from types import CodeType, FrameType
from typing import Any

from tinytorch.core.mode import local, unnoticed
from tinytorch.core.names import module_of
from tinytorch.core.notes import Note, shows_all, with_cells
from tinytorch.inspect.mistakes.failure import Failure, described, module_text
from tinytorch.inspect.mistakes.places import made_at
from tinytorch.inspect.mistakes.remedies import facts_of, remedies_of
from tinytorch.inspect.mistakes.stack import Step, entries_of, is_raised, joined, steps_of
from tinytorch.inspect.mistakes.trial import Trial, is_users
from tinytorch.ops.overrides import ASKING

__all__ = ["add_notes"]


def add_notes(error: BaseException, frame: Any = None) -> None:
    """Add notes to an error, unless it has some, and end its traceback at the user's line.

    Args:
        error: the error.
        frame: the frame of the package that the error leaves, whose callers still run; None for an uncaught error.
    """
    known = any(isinstance(note, Note) for note in getattr(error, "__notes__", ()))
    if not known and frame is not None and _is_usual(frame.f_back):
        return
    steps = steps_of(entries_of(error), None if frame is None else frame.f_back)
    users = [k for k, step in enumerate(steps) if step.users]
    if not users:
        return
    user = users[-1]
    if any(step.file.startswith("<doctest ") for step in steps):
        return  # doctest takes the last line of what is printed for the message
    if not known:
        trial, modes = Trial(), local.state.modes or ()
        with unnoticed(trial):
            notes = notes_of(Failure(error, steps, user, trial, modes))
        for note in notes:
            error.add_note(Note(f"  {with_cells(note)}"))
    if not shows_all():
        _shorten(error, steps, user)
        _shorten_context(error)


#: How often errors have left the package at a place of the user's code.
_counts: dict[tuple[CodeType, int], int] = {}
#: From how many on errors at a place are part of how the program works: notes would only take time.
USUAL = 50


def _is_usual(caller: FrameType) -> bool:
    """Return whether many errors have left the package at this place, so that the program expects them."""
    place = caller.f_code, caller.f_lasti
    if len(_counts) > 1000:
        _counts.clear()
    _counts[place] = count = _counts.get(place, 0) + 1
    return count > USUAL


def _shorten(error: BaseException, steps: list[Step], user: int) -> None:
    """Remove the package's frames from a traceback, unless the error looks like a fault of the package.

    That is an error for which there is no remedy, and which no `raise` statement raised, far inside of the package.
    """
    inner = steps[user + 1 :]
    plain = not inner or is_raised(inner[-1]) or inner[-1].code.co_name in _ENTRANCES
    plain = plain or _is_direct(inner) or any(word not in _OWN for word in _KINDS.findall(str(error)))
    named = [note for note in getattr(error, "__notes__", ()) if isinstance(note, Note)]
    if not plain and not any(note.startswith("  remedy") for note in named):
        return
    entries = [
        step.entry
        for k, step in enumerate(steps)
        if step.entry is not None
        and (step.users or not step.ours)
        and not (k > user and (named or any(each.ours for each in inner)))
    ]
    error.__traceback__ = joined(entries)


#: The types that messages name: those of objects that are not the package's own are the user's.
_KINDS = re.compile(r"(?:^|type )'(\w+)'")
_OWN = ("NoneType", "Tensor", "Parameter", "tuple", "list", "dict", "int", "float", "str", "method", "function")


def _is_direct(inner: list[Step]) -> bool:
    """Return whether the function that the user called failed itself, or a constructor, rather than one further in."""
    codes = [step.code for step in inner if step.code not in ASKING and not step.code.co_name.startswith("<")]
    return len(codes) <= 1 or all(code.co_name in ("__init__", "__new__") for code in codes)


#: The functions that call others with the user's arguments: where these do not fit is the user's line.
_ENTRANCES = ("_call_impl", "_call_with_hooks", "call", "called", "run")


def _shorten_context(error: BaseException) -> None:
    """Hide the error during whose handling another was raised, if both were raised in the package alone."""
    context = error.__context__
    if context is None or error.__suppress_context__ or error.__cause__ is not None:
        return
    entries = entries_of(context)
    if entries and all(step.ours for step in steps_of(entries, None)):
        error.__suppress_context__ = True


def notes_of(failure: Failure) -> list[str]:
    """Return the notes on a failed call."""
    notes = []
    if failure.module is not None:
        text = module_text(failure.module)
        place = made_at(failure)
        named = f"in {failure.path}: {text}" if failure.path else f"in {text}"
        notes.append(named + (place and f", made at {place}"))
        given = _changed(failure.module.forward, failure.given)
        if given:
            notes.append("given " + ", ".join([f"{name}: {described(value)}" for name, value in given.items()]))
    facts, remedies = facts_of(failure), remedies_of(failure)
    if failure.inside or failure.function is not None or facts or remedies:
        looked_up = dis.opname[failure.user.code.co_code[failure.user.place]].startswith(("IMPORT_", "LOAD_"))
        if not (failure.calls_module or looked_up) and failure.name.rpartition(".")[2][:1].strip("_"):
            given = _changed(failure.function, failure.arguments)
            shown = ", ".join([f"{name}={described(value)}" for name, value in given.items()])
            notes.append(f"calling {failure.name}({shown})")
        text = failure.user.text()
        place = f"{failure.user.file}:{failure.user.line}"
        notes.append(f"at {place}: {text}" if text else f"at {place}")
        signature = signature_of(failure)
        if signature:
            notes.append(f"its arguments: {signature}")
    notes += facts
    return notes + remedies


def _changed(function: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call that are not the default values."""
    try:
        defaults = {name: each.default for name, each in inspect.signature(function).parameters.items()}
    except (TypeError, ValueError):
        defaults = {}
    found = {}
    for name, value in arguments.items():
        default = defaults.get(name)
        plain = type(value) is type(default) and isinstance(value, (int, float, str, tuple))
        if value is not default and not (plain and value == default):
            found[name] = value
    return found


#: What errors about wrong arguments say.
_WRONG = (
    "unexpected keyword",
    "positional argument",
    "multiple values",
    "invalid combination",
    "required keyword-only",
)


def signature_of(failure: Failure) -> str:
    """Return the signature of the function that was called with wrong arguments; "" for other errors."""
    function = failure.function
    if not isinstance(failure.error, TypeError) or not any(word in failure.text for word in _WRONG) or not function:
        return ""
    if module_of(function).startswith("numpy"):
        return ""  # (what it called has other arguments)
    try:
        signature = inspect.signature(function.forward if failure.calls_module else function)
    except (TypeError, ValueError):
        return ""
    return f"{failure.name.rpartition('.')[2]}{_plain(signature, is_users(function))}"


def _plain(signature: inspect.Signature, users: bool) -> str:
    """Return a signature without annotations and `self`; in the package `x` is what PyTorch calls `input`."""
    parameters = []
    for each in signature.parameters.values():
        if each.name != "self":
            shown = each.replace(
                annotation=inspect.Parameter.empty, name="input" if each.name == "x" and not users else each.name
            )
            if "<" in repr(each.default) and each.default is not inspect.Parameter.empty:
                shown = shown.replace(default=...)
            parameters.append(shown)
    text = str(signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty))
    return text.replace("=Ellipsis", "=...")
