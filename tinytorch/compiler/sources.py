"""The syntax tree of a function, and whether it still matches the function's code: the file may have been edited."""

from __future__ import annotations
import __future__

import ast
import copy
import functools
import inspect
import linecache
import operator
import os
import re
import types
import weakref
from collections.abc import Iterator
from typing import Any

_FEATURES = [getattr(__future__, name).compiler_flag for name in __future__.all_feature_names]
_FUTURE = functools.reduce(operator.or_, _FEATURES)
#: The trees of functions that have no source of their own: parts of split functions.
_kept: weakref.WeakKeyDictionary[types.CodeType, ast.FunctionDef] = weakref.WeakKeyDictionary()
FOLDER = os.path.dirname(os.path.dirname(__file__)) + os.sep  # of the package


def source_of(code: types.CodeType, inner: bool) -> Any:
    """Return the definition of a function or lambda as a syntax tree, or None if there is none that matches the code.

    Args:
        code: the code object of the function.
        inner: whether the code was compiled from a rewritten tree: the function is defined inside a rewritten one.
    """
    kept = _kept.get(code)
    if kept is not None:
        return copy.deepcopy(kept)
    found = _lambdas(code, inner) if code.co_name == "<lambda>" else _functions(code)
    return next((node for node in found if inner or _is_of(code, node)), None)


def keep_tree(code: types.CodeType, tree: ast.FunctionDef) -> None:
    """Note the definition of a function whose code was compiled from a syntax tree."""
    _kept[code] = tree


def load_lines(file: str, scope: dict[str, Any]) -> None:
    """Let `linecache` find a module's source that is in an archive, or that of a module frozen into the interpreter."""
    if file.startswith("<frozen ") and file not in linecache.cache:
        lines = linecache.getlines(scope.get("__file__") or "")
        linecache.cache[file] = sum(map(len, lines)), None, lines, file
    else:
        linecache.lazycache(file, scope)


def _functions(code: types.CodeType) -> Iterator[ast.FunctionDef]:
    """Yield candidates for a function's definition: the lines of its code, or the block that starts in the first."""
    first = code.co_firstlineno
    lines = linecache.getlines(code.co_filename)[first - 1 :]
    for count in (last_line(code) - first + 1, None):
        text = "".join(lines[:count] if count is not None else inspect.getblock(lines))
        indented = text[:1].isspace()  # (removing the indentation would change docstrings, too)
        try:
            body = ast.parse(f"if True:\n{text}" if indented else text).body
        except SyntaxError:
            continue
        if indented:
            body = body[0].body  # type: ignore[attr-defined]
            ast.increment_lineno(ast.Module(body, []), -1)
        node = body[0] if len(body) == 1 else None
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            node.decorator_list = []
            ast.increment_lineno(node, first - 1)
            yield node


def last_line(code: types.CodeType) -> int:
    """Return the last line of a code object, including nested ones."""
    own = max([span[1] or span[0] or 0 for span in code.co_positions()], default=code.co_firstlineno)
    return max([own, *[last_line(inner) for inner in codes_in(code)]])


def _lambdas(code: types.CodeType, inner: bool) -> Iterator[ast.Lambda]:
    """Yield the lambdas that start in the code's first line; for an inner lambda, the one at the code's column."""
    source = linecache.getlines(code.co_filename)
    spans = {(span[0], span[2]) for span in code.co_positions() if span[3]}
    for trees in (_around(source, code.co_firstlineno), lambda: _of_file("".join(source))[1]):
        for node in trees():
            place = node.body.lineno, node.body.col_offset
            if node.lineno == code.co_firstlineno and (not inner or place in spans):
                yield copy.deepcopy(node)


def _around(lines: list[str], line: int) -> Any:
    """Return a function that finds the lambdas in the top-level statement around a line, which usually suffice."""

    def found() -> list[ast.Lambda]:
        begins = [k for k, text in enumerate(lines, 1) if re.match(r"[^\W\d]", text)]
        first = max([k for k in begins if k <= line], default=1)
        last = min([k for k in begins if k > line], default=len(lines) + 1)
        try:
            tree = ast.parse("".join(lines[first - 1 : last - 1]))
        except SyntaxError:
            return []
        ast.increment_lineno(tree, first - 1)
        return _lambdas_in(tree)

    return found


def _lambdas_in(tree: ast.AST) -> list[ast.Lambda]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Lambda)]


@functools.lru_cache(128)
def _of_file(source: str) -> tuple[list[ast.stmt], list[ast.Lambda]]:
    """Return the imports of a file, except those from `__future__`, and its lambdas.

    The whole tree would take a hundred times the memory of the text.
    """
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return [], []
    top = [statement for statement in tree.body if not isinstance(statement, (ast.FunctionDef, ast.ClassDef))]
    imports = [x for statement in top for x in ast.walk(statement) if isinstance(x, (ast.Import, ast.ImportFrom))]
    return [node for node in imports if getattr(node, "module", None) != "__future__"], _lambdas_in(tree)


def as_function(node: Any) -> Any:
    """Return the definition of a function, or that of one that does the same as a lambda."""
    if not isinstance(node, ast.Lambda):
        return node
    returned = ast.copy_location(ast.Return(node.body), node.body)
    return ast.copy_location(definition("<lambda>", node.args, [returned]), node)


def without_defaults(node: Any) -> Any:
    """Return the definition of a function with None in the place of its defaults, which the new function gets later."""
    node.args.defaults = [ast.Constant(None) for _ in node.args.defaults]
    node.args.kw_defaults = [default and ast.Constant(None) for default in node.args.kw_defaults]
    return node


def definition(name: str, arguments: ast.arguments, body: list[Any]) -> Any:
    """Return the definition of a function."""
    node: Any = ast.FunctionDef(name, arguments, body, [])
    node.type_params = []  # (Python has them from 3.12 on)
    return node


def parsed(text: str, where: ast.AST) -> list[Any]:
    """Return the statements of a text, at the place of a node."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        ast.copy_location(node, where)
    return tree.body


def code_of(node: Any, free: list[str], like: types.CodeType, imports: list[ast.stmt] | None = None) -> types.CodeType:
    """Compile a function or lambda with free variables, as in the file of another code object."""
    names = ast.arguments([], [ast.arg(variable) for variable in free], None, [], [], None, [])
    body = [ast.Expr(node)] if isinstance(node, ast.Lambda) else [node]
    if isinstance(node, ast.FunctionDef):
        node.name = "<lambda>"  # a recursive function finds itself by its name in the closure
    outer = ast.copy_location(definition("outer", names, body), node)
    module = ast.fix_missing_locations(ast.Module([*(imports or []), outer], []))
    future = like.co_flags & _FUTURE
    whole = compile(module, like.co_filename, "exec", flags=future, dont_inherit=True)
    (of_outer,) = codes_in(whole)
    return next(inner for inner in codes_in(of_outer) if inner.co_name == "<lambda>")


def _is_of(code: types.CodeType, node: Any) -> bool:
    """Return whether a syntax tree is the source of a code object."""
    rewritten = any(name.startswith("@py") for name in (*code.co_names, *code.co_varnames))  # by pytest
    if rewritten or code.co_filename.startswith(FOLDER):
        return True
    source = "".join(linecache.getlines(code.co_filename))
    # (How names are called depends on what a file imports, usually in statements of one line.)
    short = "\n".join(re.findall(r"^(?:import|from) [^(\n]*$", source, re.MULTILINE))
    found = (_of_file(text)[0] for text in (short, source))
    return any(_alike(code, code_of(node, list(code.co_freevars), code, candidates)) for candidates in found)


def _alike(code: types.CodeType, other: types.CodeType) -> bool:
    """Return whether two code objects have the same instructions, names and constants."""
    if (code.co_code, code.co_names, code.co_varnames) != (other.co_code, other.co_names, other.co_varnames):
        return False
    pairs = zip(code.co_consts, other.co_consts, strict=True)
    return all(_alike(x, y) if isinstance(x, types.CodeType) else repr(x) == repr(y) for x, y in pairs)


def codes_in(code: types.CodeType) -> list[types.CodeType]:
    """Return the code objects of functions and classes that are defined inside a code object."""
    return [const for const in code.co_consts if isinstance(const, types.CodeType)]


__all__ = [
    "FOLDER", "as_function", "code_of", "codes_in", "definition", "keep_tree", "last_line", "load_lines", "parsed",
    "source_of",
    "without_defaults",
]  # fmt: skip
