"""Reading the source of a program: the syntax trees of its files, functions and classes, and what is assigned where."""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

from tinytorch.core.names import module_of
from tinytorch.inspect.places import Line, is_library
from tinytorch.nn.modules.module import Module

__all__ = [
    "around", "assigned_attribute", "assignment", "attribute_line", "definition_of", "function_tree", "header_of",
    "is_mentioned", "outer_statements", "parsed", "tree_of", "users_code",
]  # fmt: skip


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


def outer_statements(tree: ast.Module) -> ast.Module:
    """Return the statements of a file that are in no function or class."""
    return ast.Module([each for each in tree.body if not isinstance(each, (ast.FunctionDef, ast.ClassDef))], [])


@functools.lru_cache(maxsize=64)
def _definitions(tree: ast.Module) -> dict[tuple[int, str], Any]:
    """Return the definitions of functions in a file's syntax tree, by their first lines and names."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            first = min([node.lineno, *[each.lineno for each in getattr(node, "decorator_list", [])]])
            found[first, getattr(node, "name", "<lambda>")] = node
    return found


def definition_of(code: CodeType, tree: ast.Module) -> ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | None:
    """Return the definition in a file's syntax tree of the function that has a code, or None."""
    return _definitions(tree).get((code.co_firstlineno, code.co_name))


def tree_of(code: CodeType) -> ast.AST | None:
    """Return the syntax tree of the function that has a code, or of a file's outer statements; None without source."""
    tree = parsed(code.co_filename)
    if tree is None:
        return None
    return outer_statements(tree) if code.co_name == "<module>" else definition_of(code, tree)


def users_code(function: Any) -> CodeType | None:
    """Return the code of a function of the user's, without what wraps it; None for others."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return code if isinstance(code, CodeType) and not is_library(code) else None


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
    """Return the syntax tree of a function's definition.

    Raises:
        OSError: the source is not to be found.
    """
    plain: Any = inspect.unwrap(function)
    tree = parsed(plain.__code__.co_filename, plain.__globals__)
    found = None if tree is None else definition_of(plain.__code__, tree)
    if found is None:
        raise OSError("no source")
    return found


def header_of(function: Callable[..., Any]) -> tuple[str, int]:
    """Return the line of a function's definition that begins with `def`, without indentation, and its number."""
    line: int = function_tree(function).lineno
    plain: Any = inspect.unwrap(function)
    return linecache.getline(plain.__code__.co_filename, line, plain.__globals__).strip(), line


def assignment(tree: ast.AST, name: str, line: int) -> ast.Assign | None:
    """Return the last assignment of a variable before a line, or None."""
    found = None
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and node.lineno < line:
            names = {each.id for target in node.targets for each in ast.walk(target) if isinstance(each, ast.Name)}
            if name in names and (found is None or node.lineno > found.lineno):
                found = node
    return found


def _methods_of(kind: type, *names: str) -> Iterator[tuple[Any, str]]:
    """Yield the syntax trees of the methods of a class of the user's and of its bases, and their files."""
    for each in kind.__mro__:
        if not module_of(each).startswith("tinytorch."):
            for key, function in vars(each).items():
                if inspect.isfunction(function) and (not names or key in names):
                    yield function_tree(function), function.__code__.co_filename


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

    for tree, file in _methods_of(kind, *methods):
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and any(matches(target) for target in node.targets):
                return node, file
    return None


def attribute_line(module: Module, attribute: str) -> Line | None:
    """Return the line that sets an attribute of a module in its `__init__`, or None."""
    try:
        found = assigned_attribute(type(module), attribute, "__init__")
    except OSError:
        return None
    return None if found is None else Line(found[1], found[0].lineno, "__init__")


#: What reads attributes whose names it does not say.
_INDIRECT = ("getattr(", ".children(", ".modules(", "_modules", "super()")


def is_mentioned(module: Module, attribute: str) -> bool:
    """Return whether the methods of a module's class use an attribute; True if that cannot be known."""
    kinds: tuple[Any, ...] = type(module).__mro__[: type(module).__mro__.index(Module)]
    try:
        if any(users_code(kind.forward) is None for kind in kinds):
            return True
        trees = [tree for tree, _ in _methods_of(type(module)) if getattr(tree, "name", "") != "__init__"]
    except OSError:
        return True
    for node in [node for tree in trees for node in ast.walk(tree)]:
        if isinstance(node, ast.Attribute) and node.attr == attribute:
            return True
        if isinstance(node, ast.Call) and any(part in ast.unparse(node) for part in _INDIRECT):
            return True
    return not kinds
