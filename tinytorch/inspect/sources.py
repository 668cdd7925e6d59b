"""Reading the source of a program: the syntax trees of its files and functions."""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import textwrap
from collections.abc import Callable
from types import CodeType
from typing import Any

from tinytorch.core.names import module_of

__all__ = ["around", "assigned_attribute", "assignment", "definition_of", "function_tree", "header_of", "parsed"]


def parsed(file: str, scope: dict[str, Any] | None = None) -> ast.Module | None:
    """Return the syntax tree of a file, or None if it cannot be read or parsed.

    Args:
        file: the name of the file, as in `co_filename`.
        scope: the global names of its module, whose loader may have the source.
    """
    return _parsed("".join(linecache.getlines(file, scope)))


@functools.lru_cache(maxsize=64)
def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text) if text else None
    except (SyntaxError, ValueError):
        return None


def definition_of(code: CodeType, tree: ast.Module) -> ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | None:
    """Return the definition in a file's syntax tree of the function that has a code, or None."""
    found = None
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            first = min([node.lineno, *[each.lineno for each in getattr(node, "decorator_list", [])]])
            if first == code.co_firstlineno and getattr(node, "name", "<lambda>") == code.co_name:
                found = node
    return found


def around(tree: ast.AST, line: int, *kinds: type[ast.AST]) -> Any:
    """Return the innermost statement of some kinds that contains a line, or None."""
    found: Any = None
    for node in ast.walk(tree):
        if isinstance(node, kinds or ast.stmt):
            first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
            if first <= line <= last and (found is None or first >= found.lineno):
                found = node
    return found


def function_tree(function: Callable[..., Any]) -> Any:
    """Return the syntax tree of a function's definition, with the line numbers of its file.

    Raises:
        OSError: the source is not to be found.
    """
    lines, first = inspect.getsourcelines(function)
    return ast.increment_lineno(ast.parse(textwrap.dedent("".join(lines))), first - 1).body[0]


def header_of(function: Callable[..., Any]) -> tuple[str, int]:
    """Return the line of a function's definition that begins with `def`, without indentation, and its number."""
    lines, first = inspect.getsourcelines(function)
    k = next(k for k, line in enumerate(lines) if line.strip().startswith("def "))
    return lines[k].strip(), first + k


def assignment(tree: ast.AST, name: str, line: int) -> ast.Assign | None:
    """Return the last assignment of a variable before a line, or None."""
    found = None
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and node.lineno < line:
            names = {each.id for target in node.targets for each in ast.walk(target) if isinstance(each, ast.Name)}
            if name in names and (found is None or node.lineno > found.lineno):
                found = node
    return found


def assigned_attribute(kind: type, name: str, *methods: str) -> tuple[ast.Assign, str] | None:
    """Return the statement of a class of the user's, or of its bases, that assigns an attribute, and its file.

    Args:
        kind: the class.
        name: the attribute; with "[" behind it, an assignment to one of its elements is looked for.
        *methods: the methods that are looked at; by default all.
    """

    def matches(target: ast.AST) -> bool:
        text = ast.unparse(target)
        return text.startswith(f"self.{name}") if name.endswith("[") else text == f"self.{name}"

    for each in kind.__mro__:
        if module_of(each).startswith("tinytorch."):
            continue
        for key, function in vars(each).items():
            if not inspect.isfunction(function) or (methods and key not in methods):
                continue
            for node in ast.walk(function_tree(function)):
                if isinstance(node, ast.Assign) and any(matches(target) for target in node.targets):
                    return node, function.__code__.co_filename
    return None
