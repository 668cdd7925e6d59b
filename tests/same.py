"""Run a program with tinytorch and with PyTorch, and compare results, errors and warnings.

`same_as_pytorch(program)` accepts error messages that contain most words of PyTorch's, and compares only the classes of
warnings; `same_to_the_word(program)` requires the same messages. `@compared` makes
a test of a program.
"""

from __future__ import annotations

import functools
import inspect
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinytorch
from tests.oracle import needs_oracle, torch


class Raised:
    """An error that a program raised."""

    def __init__(self, error: BaseException) -> None:
        self.kind = type(error).__name__
        self.text = in_pytorchs_name(str(error))

    def __repr__(self) -> str:
        return f"{self.kind}: {self.text}"


def in_pytorchs_name(text: str) -> str:
    """Return a text with PyTorch's name in place of tinytorch's."""
    return text.replace("tinytorch", "torch")


def ended(call: Callable[[], Any]) -> tuple[Any, list[warnings.WarningMessage]]:
    """Return the result of a call, or the error that it raised, and its warnings."""
    result: Any
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = call()
        except Exception as error:  # any class, since it is compared
            result = Raised(error)
    return result, caught


def outcome(program: Callable[[Any], Any], library: Any, to_the_word: bool = False) -> tuple[Any, list[str]]:
    """Return the result or the error of a program, and the classes of its warnings (with the start of the messages)."""
    library.manual_seed(0)
    result, caught = ended(lambda: program(library))
    shown = [warning.category.__name__ for warning in caught]
    if to_the_word:
        texts = [in_pytorchs_name(str(warning.message))[:50] for warning in caught]
        shown = [f"{name}: {text}" for name, text in zip(shown, texts, strict=True)]
    return result, shown


def expressions(table: str) -> list[str]:
    """Return the expressions of a table: one per line, or several with semicolons between."""
    lines = [line for line in table.splitlines() if not line.strip().startswith("#")]
    return [each.strip() for line in lines for each in line.split(";") if each.strip()]


def programs(
    table: str, scope: dict[str, Any] | None = None, /, *arguments: str, **made: Callable[[Any], Any]
) -> dict[str, Callable[..., Any]]:
    """Return, by its text, a function of `torch` and of further arguments for each expression of a table.

    The expressions may use the names of the scope, and those `made` anew of the library for each call.
    """

    def program_of(text: str) -> Callable[..., Any]:
        def program(torch: Any, *values: Any) -> Any:
            names = {name: make(torch) for name, make in made.items()} | dict(zip(arguments, values, strict=True))
            return eval(text, {**(scope or {}), "torch": torch, **names})

        return program

    return {text: program_of(text) for text in expressions(table)}


def words(text: str) -> set[str]:
    return set(re.findall(r"[a-z_]{4,}", text.lower()))


def compare(ours: Any, theirs: Any, rtol: float, atol: float, where: str = "result", to_the_word: bool = False) -> None:
    """Assert that two outcomes are the same; modules are compared by their representation."""
    if isinstance(theirs, Raised) or isinstance(ours, Raised):
        assert isinstance(theirs, Raised) and isinstance(ours, Raised), f"{where}: {ours!r} against {theirs!r}"
        assert ours.kind == theirs.kind, f"{where}: {ours!r} against {theirs!r}"
        if to_the_word:
            assert ours.text == theirs.text, f"{where}: {ours!r} against {theirs!r}"
        # Our message must contain most words of PyTorch's first sentence.
        sentence = re.split(r"\.\s|\n", theirs.text)[0]
        missing = words(sentence) - words(ours.text)
        assert len(missing) <= 0.4 * len(words(sentence)), f"{where}: {ours.text!r} lacks {missing} of {theirs.text!r}"
    elif isinstance(theirs, (list, tuple)):
        assert isinstance(ours, (list, tuple)) and len(ours) == len(theirs), f"{where}: {ours!r} against {theirs!r}"
        for k, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
            compare(mine, other, rtol, atol, f"{where}[{k}]", to_the_word)
    elif isinstance(theirs, dict):
        assert list(ours) == list(theirs), where
        for key in theirs:
            compare(ours[key], theirs[key], rtol, atol, f"{where}[{key!r}]", to_the_word)
    elif isinstance(theirs, torch.Tensor):
        assert isinstance(ours, tinytorch.Tensor), f"{where}: {ours!r}"
        assert str(ours.dtype) == str(theirs.dtype), f"{where}: {ours.dtype} against {theirs.dtype}"
        assert tuple(ours.shape) == tuple(theirs.shape), where
        assert ours.requires_grad == theirs.requires_grad, f"{where}: requires_grad {ours.requires_grad}"
        assert ours.is_leaf == theirs.is_leaf, f"{where}: is_leaf {ours.is_leaf}"
        mine, other = [x.detach().resolve_conj().resolve_neg().numpy() for x in (ours, theirs)]
        np.testing.assert_allclose(mine, other, rtol, atol, err_msg=where)
    elif isinstance(theirs, np.ndarray):
        np.testing.assert_allclose(ours, theirs, rtol, atol, err_msg=where)
    elif isinstance(theirs, float):
        assert isinstance(ours, float), f"{where}: {ours!r}"
        np.testing.assert_allclose(ours, theirs, rtol, atol, err_msg=where)
    elif isinstance(theirs, (torch.dtype, torch.device)):
        assert str(ours) == str(theirs), where
    elif isinstance(theirs, (str, torch.nn.Module)):
        mine, other = in_pytorchs_name(str(ours)), str(theirs)
        assert mine == other, f"{where}: {mine!r} against {other!r}"
    else:
        assert ours == theirs, f"{where}: {ours!r} against {theirs!r}"


def same_as_pytorch(program: Callable[[Any], Any], rtol: float = 1e-5, atol: float = 1e-7) -> None:
    """Assert that `program(torch)` returns, warns and raises the same with tinytorch as with PyTorch."""
    _same(program, rtol, atol, False)


def same_to_the_word(program: Callable[[Any], Any], rtol: float = 2e-5, atol: float = 3e-6) -> None:
    """Assert the same, and that errors and warnings have PyTorch's messages."""
    _same(program, rtol, atol, True)


def _same(program: Callable[[Any], Any], rtol: float, atol: float, to_the_word: bool) -> None:
    ours, our_warnings = outcome(program, tinytorch, to_the_word)
    theirs, their_warnings = outcome(program, torch, to_the_word)
    compare(ours, theirs, rtol, atol, to_the_word=to_the_word)
    assert our_warnings == their_warnings, f"warnings: {our_warnings} against {their_warnings}"


def refused(error: Any, words: str, call: Callable[..., Any], *args: Any, **options: Any) -> None:
    """Assert that a call raises an error whose message has the words (a regular expression)."""
    with pytest.raises(error, match=words):
        call(*args, **options)


def compared(program: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Make a test of a program: `program(torch, **parameters)` is compared, with the options of `same_as_pytorch`.

    `to_the_word=True` compares as `same_to_the_word`. Without PyTorch the test is skipped.
    """
    if program is None:
        return functools.partial(compared, **options)
    same = same_to_the_word if options.pop("to_the_word", False) else same_as_pytorch

    def test(*values: Any, **parameters: Any) -> None:
        same(lambda library: program(library, *values, **parameters), **options)

    _, *parameters = inspect.signature(program).parameters.values()
    functools.update_wrapper(test, program)
    vars(test)["__signature__"] = inspect.Signature(parameters)
    del vars(test)["__wrapped__"]
    return needs_oracle(test)


def of_each(table: Any, **options: Any) -> Any:
    """Make a test of each program of a table, by its name, or of a list, by that of the function: see `compared`."""
    names = list(table) if isinstance(table, dict) else [getattr(each, "__name__", None) for each in table]
    cases = table.values() if isinstance(table, dict) else table

    @pytest.mark.parametrize("program", list(cases), ids=names)
    @compared(**options)
    def test(torch: Any, program: Callable[[Any], Any]) -> Any:
        return program(torch)

    return test
