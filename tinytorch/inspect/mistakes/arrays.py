"""Functions of NumPy and of other libraries that are called with tensors.

Which of torch's functions does what one of NumPy's does is found by calling them: the results are compared with NumPy's
of the same values. What computes nothing with which a program goes on, such as a plot, gets tensors without a graph.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from difflib import SequenceMatcher
from typing import Any

import numpy as np

from tinytorch.core.names import module_of
from tinytorch.core.tensor import Tensor
from tinytorch.inspect.mistakes.failure import Failure, operand, with_texts
from tinytorch.inspect.mistakes.running import NAMES, evaluated, statements_from, works
from tinytorch.inspect.mistakes.trial import Failed, Unknown, tensors_in
from tinytorch.ops.register import functions

__all__ = ["of_library", "of_numpy"]

#: NumPy's functions that are not called again: they concern files, or the state of the process.
_NOT_CALLED = re.compile("random|save|load|from|set|memmap|print|err|test|show|info")
#: NumPy's functions that make arrays of something else: that is what is wanted, where nothing is differentiated.
_ARRAYS = ("array", "asarray", "asanyarray", "ascontiguousarray", "copy")
#: How many elements the operands have, at most, of which all of torch's functions are called, not only those that are
#: called alike.
MOST = 1 << 14
#: How the operands of NumPy's function are given to torch's, and how the call ends: from the smallest change.
_CHANGES: tuple[tuple[Callable[[Any], str], str], ...] = (
    (lambda value: "{}", ")"),
    (lambda value: "{}", ").values"),
    (lambda value: "{}", ", dim=0)"),
    (lambda value: "{}", ", correction=0)"),
    (lambda value: "torch.tensor({})" if type(value) in (int, float) else "{}", ")"),
    (lambda value: "torch.stack({})" if type(value) is list else "{}", ")"),
    (lambda value: "{}.float()" if isinstance(value, Tensor) else "{}", ")"),
)


def of_numpy(failure: Failure) -> list[str]:
    """Return torch's function for one of NumPy's that was called with tensors, and for those that are called of it."""
    call, place = failure.call, None
    found = _of_torch(failure, call)
    while found and not works(failure, found, place):
        body, k, inner = statements_from(failure.user, place)
        outer = [each for each in ast.walk(body[k]) if isinstance(each, ast.Call) and inner in ast.walk(each)]
        place = next((each for each in outer[::-1] if each is not inner and _is_numpys(failure.value(each.func))), None)
        found = "" if place is None else _of_torch(failure, with_texts(place, {id(inner): found}))
    return [found] if found else []


def _is_numpys(function: Any) -> bool:
    return (module_of(function) or "").startswith("numpy")


def _of_torch(failure: Failure, call: ast.expr | None) -> str:
    """Return the call of torch whose result is that of a call of NumPy; "" if there is none."""
    if not isinstance(call, ast.Call) or not _is_numpys(function := failure.value(call.func)):
        return ""
    path = ast.unparse(call.func)
    name = path.rpartition(".")[2]
    nodes = [*call.args, *[each.value for each in call.keywords]]
    starred = any(isinstance(each, ast.Starred) for each in nodes) or any(each.arg is None for each in call.keywords)
    if starred or _NOT_CALLED.search(path) or (name in _ARRAYS and not failure.learns):
        return ""
    keys = [""] * len(call.args) + [f"{each.arg}=" for each in call.keywords]
    try:
        values = [evaluated(failure.trial, each, NAMES | failure.variables) for each in nodes]
    except Failed:
        return ""
    given = list(tensors_in(values))
    if not given or any(each.is_meta for each in given):
        return ""
    learned = any(each.requires_grad for each in given)
    words = {f"operand{k}_": value for k, value in enumerate(values)}
    wanted = [_result(function, keys, each) for each in (values, list(map(_other, values)))]

    def text(torch: str, change: Callable[[Any], str], end: str, said: list[Any]) -> str:
        parts = []
        for key, value, each in zip(keys, values, said, strict=True):
            whole = isinstance(each, str)
            way = change(value)
            parts.append(key + way.format(each if whole else operand(each) if way[:3] == "{}." else ast.unparse(each)))
        found = f"{torch}({', '.join(parts)}{end}"
        return found if '"' in found else found.replace("'", '"')

    def same(torch: str, change: Callable[[Any], str], end: str) -> bool:
        """Return whether a function of torch gives what NumPy's gives of the operands, and of others like them."""
        for result, operands in zip(wanted, (values, map(_other, values)), strict=True):
            own = dict(zip(words, operands, strict=True))
            try:
                found = evaluated(failure.trial, text(torch, change, end, list(words)), NAMES, own)
            except (Failed, Unknown):
                return False
            if not _alike(found, result) or found.requires_grad < (learned and found.is_floating_point()):
                return False
        return True

    own = f"torch.linalg.{name}" if ".linalg." in path else f"torch.{name}"
    for change, end in _CHANGES:
        if same(own, change, end):
            return text(own, change, end, nodes)
    first, few = _CHANGES[0], sum(each.numel() for each in given) <= MOST
    alike = {each: SequenceMatcher(None, each, name).ratio() for each in _functions()}
    found = [each for each in alike if (few or alike[each] > 0.5) and same(f"torch.{each}", *first)]
    found.sort(key=lambda each: (-alike[each] * (alike[each] > 0.5), len(each)))
    return text(f"torch.{found[0]}", *first, nodes) if found else ""


def _functions() -> Iterator[str]:
    """Yield the names of torch's functions that write nothing."""
    for name in sorted({*functions} & {*dir(NAMES["torch"])}):
        if not name.startswith("_") and not name.endswith(("_", "_copy", "einsum")):
            yield name


def _result(function: Any, keys: list[str], values: list[Any]) -> Any:
    """Return what a function of NumPy gives; None if it fails."""
    given = list(map(_array, values))
    named = {key[:-1]: value for key, value in zip(keys, given, strict=True) if key}
    try:
        with np.errstate(all="ignore"):
            return function(*given[: keys.count("")], **named)
    except Exception:
        return None


def _array(x: Any) -> Any:
    """Return a tensor as an array, and those in a list."""
    if isinstance(x, Tensor):
        return x.detach().numpy()
    return type(x)(map(_array, x)) if type(x) in (list, tuple) else x


def _other(x: Any) -> Any:
    """Return other values: what two functions do alike for the values at hand may be a coincidence."""
    if isinstance(x, Tensor):
        return 0.3 - 1.7 * x if x.is_floating_point() else x
    return type(x)(map(_other, x)) if type(x) in (list, tuple) else x


def _alike(found: Any, wanted: Any) -> bool:
    """Return whether a tensor has the shape, the kind of numbers, and the values of a result of NumPy."""
    if not isinstance(found, Tensor) or wanted is None or found.is_meta:
        return False
    a, b = np.asarray(found.detach()), np.asarray(wanted)
    if a.shape != b.shape or a.dtype.kind != b.dtype.kind:
        return False
    return bool(np.allclose(a, b, 1e-4, 1e-6, equal_nan=True))


def of_library(failure: Failure) -> list[str]:
    """Return a call of another library with the tensors that it makes arrays of without their graph."""
    statement, call = failure.statement(), failure.call
    if "on Tensor that requires grad" not in failure.text or (failure.learns and not failure.is_unused):
        return []
    nodes: list[ast.expr] = []
    if isinstance(call, ast.Call):
        nodes = [*call.args, *[each.value for each in call.keywords]]
    elif isinstance(call, ast.Subscript) and isinstance(statement, ast.Assign):
        call, nodes = statement, [statement.value]  # type: ignore[assignment]
    texts = {}
    for node in nodes:
        if isinstance(node, (ast.List, ast.Tuple)):
            nodes += node.elts
            continue
        try:
            value = evaluated(failure.trial, node, NAMES | failure.variables)
        except Failed:
            return []
        if isinstance(value, Tensor) and value.requires_grad:
            texts[id(node)] = f"{operand(node)}.detach()"
        elif type(value) is list and all(isinstance(each, Tensor) for each in value):
            numbers = all(each.numel() == 1 for each in value)
            texts[id(node)] = f"[each.{'item' if numbers else 'detach'}() for each in {ast.unparse(node)}]"
    return [failure.unparsed(with_texts(call, texts))] if call is not None and texts else []
