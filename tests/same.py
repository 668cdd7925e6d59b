"""Run a program with tinytorch and with PyTorch, and compare results, errors and warnings.

`same_as_pytorch(program)` accepts error messages that contain most words of PyTorch's, and compares only the classes of
warnings; `same_to_the_word(program)` requires the same messages. `@compared` makes a test of a program. Where PyTorch
is not installed, its outcome is taken from a file (tests/kept).
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import pickle
import re
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinytorch
from tests.kept import Numbers, Raised, read
from tests.oracle import torch


def in_pytorchs_name(text: str) -> str:
    """Return a text with PyTorch's name in place of tinytorch's."""
    return text.replace("tinytorch", "torch")


def raised(error: BaseException) -> Raised:
    """Return the class and the message of an error."""
    return Raised(type(error).__name__, in_pytorchs_name(str(error)))


def ended(call: Callable[[], Any]) -> tuple[Any, list[warnings.WarningMessage]]:
    """Return the result of a call, or the error that it raised, and its warnings."""
    result: Any
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = call()
        except Exception as error:  # any class, since it is compared
            result = raised(error)
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


def plain(value: Any) -> Any:
    """Return a result of PyTorch as something that can be kept: with `Numbers` for tensors, and texts of modules."""
    if isinstance(value, (Raised, Numbers)):
        return value
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if torch is None:  # it has been kept
        return value
    if isinstance(value, torch.Tensor):
        array = value.detach().resolve_conj().resolve_neg().numpy()
        return Numbers(str(value.dtype), array, value.requires_grad, value.is_leaf)
    return str(value) if isinstance(value, (torch.dtype, torch.device, torch.nn.Module)) else value


def compare(ours: Any, theirs: Any, rtol: float, atol: float, where: str = "result", to_the_word: bool = False) -> None:
    """Assert that two outcomes are the same; modules are compared by their representation."""
    _compare(ours, plain(theirs), rtol, atol, where, to_the_word)


def _compare(ours: Any, theirs: Any, rtol: float, atol: float, where: str, to_the_word: bool) -> None:
    if isinstance(theirs, Raised) or isinstance(ours, Raised):
        assert isinstance(theirs, Raised) and isinstance(ours, Raised), f"{where}: {ours!r} against {theirs!r}"
        assert ours.kind == theirs.kind, f"{where}: {ours!r} against {theirs!r}"
        if to_the_word:
            assert ours.text == theirs.text, f"{where}: {ours!r} against {theirs!r}"
        # Our message must contain most words of PyTorch's first sentence.
        sentence = re.split(r"\.\s|\n", theirs.text)[0]
        missing = words(sentence) - words(ours.text)
        assert len(missing) <= 0.4 * len(words(sentence)), f"{where}: {ours.text!r} lacks {missing} of {theirs.text!r}"
    elif isinstance(theirs, Numbers):
        assert isinstance(ours, tinytorch.Tensor), f"{where}: {ours!r}"
        assert str(ours.dtype) == theirs.dtype, f"{where}: {ours.dtype} against {theirs.dtype}"
        assert tuple(ours.shape) == theirs.array.shape, where
        assert ours.requires_grad == theirs.requires_grad, f"{where}: requires_grad {ours.requires_grad}"
        assert ours.is_leaf == theirs.is_leaf, f"{where}: is_leaf {ours.is_leaf}"
        mine = ours.detach().resolve_conj().resolve_neg().numpy()
        np.testing.assert_allclose(mine, theirs.array, rtol, atol, err_msg=where)
    elif isinstance(theirs, list):
        assert isinstance(ours, (list, tuple)) and len(ours) == len(theirs), f"{where}: {ours!r} against {theirs!r}"
        for k, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
            _compare(mine, other, rtol, atol, f"{where}[{k}]", to_the_word)
    elif isinstance(theirs, dict):
        assert list(ours) == list(theirs), where
        for key in theirs:
            _compare(ours[key], theirs[key], rtol, atol, f"{where}[{key!r}]", to_the_word)
    elif isinstance(theirs, np.ndarray):
        np.testing.assert_allclose(ours, theirs, rtol, atol, err_msg=where)
    elif isinstance(theirs, float):
        assert isinstance(ours, float), f"{where}: {ours!r}"
        np.testing.assert_allclose(ours, theirs, rtol, atol, err_msg=where)
    elif isinstance(theirs, str):
        mine = in_pytorchs_name(str(ours))
        assert mine == theirs, f"{where}: {mine!r} against {theirs!r}"
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
    theirs, their_warnings = _of_pytorch(program, to_the_word)
    if torch is None and "needs ml_dtypes" in str(ours):
        pytest.skip("bfloat16 and 8-bit floats need the extra bf16")
    _compare(ours, theirs, rtol, atol, "result", to_the_word)
    assert our_warnings == their_warnings, f"warnings: {our_warnings} against {their_warnings}"


_calls: Counter[str] = Counter()  # of each test: it may compare several programs


def _of_pytorch(program: Callable[[Any], Any], to_the_word: bool) -> Any:
    """Return PyTorch's outcome: by a call, or what was kept of one. TINYTORCH_KEEP names a folder to keep it in."""
    test = os.environ["PYTEST_CURRENT_TEST"].rpartition(" ")[0]
    _calls[test] += 1
    key = f"{test} {_calls[test]}"
    if torch is None:
        kept = read(f"programs/{key.split('/')[1].partition('::')[0]}").get(key)
        return kept or pytest.skip("PyTorch (the oracle) is not installed, and its outcome is not kept")
    result, shown = outcome(program, torch, to_the_word)
    found = plain(result), shown
    if folder := os.environ.get("TINYTORCH_KEEP"):
        with contextlib.suppress(Exception), open(Path(folder, f"{os.getpid()}.pickle"), "ab") as file:
            file.write(pickle.dumps((key, found)))  # (what cannot be pickled, cannot be kept)
    return found


def refused(error: Any, words: str, call: Callable[..., Any], *args: Any, **options: Any) -> None:
    """Assert that a call raises an error whose message has the words (a regular expression)."""
    with pytest.raises(error, match=words):
        call(*args, **options)


def compared(program: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Make a test of a program: `program(torch, **parameters)` is compared, with the options of `same_as_pytorch`.

    `to_the_word=True` compares as `same_to_the_word`.
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
    return test


def of_each(table: Any, **options: Any) -> Any:
    """Make a test of each program of a table, by its name, or of a list, by that of the function: see `compared`."""
    names = list(table) if isinstance(table, dict) else [getattr(each, "__name__", None) for each in table]
    cases = table.values() if isinstance(table, dict) else table

    @pytest.mark.parametrize("program", list(cases), ids=names)
    @compared(**options)
    def test(torch: Any, program: Callable[[Any], Any]) -> Any:
        return program(torch)

    return test
