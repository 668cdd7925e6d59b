"""Sweeps of a script that was not written for it: its text is changed, not its lines.

Settings replace constants, or become options of its command line. Functions that call `backward` are compiled; a loop
outside of functions that does becomes a function first.
"""

from __future__ import annotations

import ast
import functools
import importlib.abc
import importlib.machinery
import linecache
import os
import symtable
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tinytorch.compiler import entry
from tinytorch.compiler.compiled import Compiled

LOOP = "_sweep_loop_"  # begins the names of functions that loops become
COMPILED = "_sweep_compiled_"


class Script:
    """The text of a script.

    Args:
        path: of its file, which tracebacks show.
        text: its text; read from the file by default.

    Raises:
        OSError, SyntaxError: it cannot be read.
    """

    def __init__(self, path: str, text: str | None = None) -> None:
        self.path = path
        if text is None:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        self.text = text
        self.tree = ast.parse(text, path)

    def options(self) -> set[str]:
        """Return the options of the command line that the script mentions: {"--lr"}."""
        constants = [node.value for node in ast.walk(self.tree) if isinstance(node, ast.Constant)]
        return {x.split("=")[0] for x in constants if isinstance(x, str) and x.startswith("--")}

    def places(self, name: str) -> list[ast.expr]:
        """Return the constants that a setting stands for.

        These are what a variable or an attribute of the name is set to, defaults of parameters, keyword arguments and
        entries of dictionaries.
        """
        found: list[ast.expr | None] = []
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Assign):
                found += [node.value for target in node.targets if _name_of(target) == name]
            elif isinstance(node, ast.AnnAssign) and _name_of(node.target) == name:
                found.append(node.value)
            elif isinstance(node, ast.arguments):
                args = [*node.posonlyargs, *node.args]
                pairs = [*zip(args[len(args) - len(node.defaults) :], node.defaults, strict=True)]
                pairs += zip(node.kwonlyargs, node.kw_defaults, strict=True)  # type: ignore[arg-type]
                found += [default for arg, default in pairs if arg.arg == name]
            elif isinstance(node, ast.keyword) and node.arg == name:
                found.append(node.value)
            elif isinstance(node, ast.Dict):
                found += [
                    value for key, value in zip(node.keys, node.values, strict=True)
                    if isinstance(key, ast.Constant) and key.value == name
                ]  # fmt: skip
        return [node for node in found if node is not None and _is_constant(node)]

    def with_settings(self, settings: Mapping[str, str]) -> Script:
        """Return the script with other constants; `settings` are Python's text of them, by name.

        Raises:
            ValueError: the script has no such constant.
        """
        changes = []
        for name, value in settings.items():
            places = self.places(name)
            if not places:
                raise ValueError(f"{self.path} has neither an option --{name} nor a constant named {name}")
            changes += [(node, value) for node in places]
        if not changes:
            return self
        lines = [line.encode() for line in self.text.splitlines(keepends=True)]  # (offsets are in bytes)
        for node, value in sorted(changes, key=lambda change: (change[0].lineno, change[0].col_offset), reverse=True):
            if node.lineno != node.end_lineno:
                raise ValueError(f"{self.path}:{node.lineno}: a constant that takes several lines cannot be replaced")
            line = lines[node.lineno - 1]
            lines[node.lineno - 1] = line[: node.col_offset] + value.encode() + line[node.end_col_offset :]
        return Script(self.path, b"".join(lines).decode())

    def program(self) -> Callable[[dict[str, Any]], None]:
        """Return a function that executes the script in a namespace, with its training steps compiled."""
        lines = self.text.splitlines()
        loops = []
        for k, loop in enumerate(_loops(self.tree.body)):
            name, stored = f"{LOOP}{k}", _stored(loop)
            if stored is None or not stored.isdisjoint(self._read_elsewhere(loop)):
                continue  # its variables must remain global
            names = sorted(stored)
            loops.append((name, names, _function_of(loop, name, names, lines, self.path)))
            indent = lines[loop.lineno - 1][: loop.col_offset]
            end = loop.end_lineno or loop.lineno
            lines[loop.lineno - 1 : end] = [f"{indent}{name}()", *[""] * (end - loop.lineno)]
        text = "\n".join(lines) + "\n"
        file = _shown_as(self.path, text)
        code = _compiled(text, file)

        def execute(scope: dict[str, Any]) -> None:
            scope[COMPILED] = _in_parts
            for name, stored, function in loops:
                exec(function, scope)
                scope[name] = functools.partial(_loop, scope, scope[name], stored)
            exec(code, scope)

        return execute

    def _read_elsewhere(self, loop: ast.stmt) -> set[str]:
        """Return the names of global variables that functions outside of a loop use."""
        found: set[str] = set()
        todo = list(symtable.symtable(self.text, self.path, "exec").get_children())
        while todo:
            table = todo.pop()
            if not loop.lineno <= table.get_lineno() <= (loop.end_lineno or 0):
                found.update([symbol.get_name() for symbol in table.get_symbols() if symbol.is_global()])
                todo += table.get_children()
        return found


_UNSET: Any = object()


def _loop(scope: dict[str, Any], function: Callable[..., Any], names: Sequence[str]) -> None:
    """Run a loop, whose variables are global ones before and after it."""
    found = function(*[scope.get(name, _UNSET) for name in names])
    scope.update({name: x for name, x in zip(names, found, strict=True) if x is not _UNSET})


def _in_parts(line: int) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles a function, in parts if a loop of training steps is at the line."""

    def decorate(function: Callable[..., Any]) -> Any:
        made = Compiled(function).split_at(line) if line else Compiled(function)
        return entry.observer.compiles(made) if entry.observer is not None else made

    return decorate


def _stored(loop: ast.stmt) -> set[str] | None:
    """Return the names of the variables that a loop sets; None if it also deletes some, or returns."""
    found: set[str] = set()
    for node in ast.walk(loop):
        if isinstance(node, (ast.Global, ast.Nonlocal, ast.Delete)):
            return None
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.ExceptHandler) and node.name:
            return None
    return found


def _compiled(text: str, file: str) -> types.CodeType:
    """Return the code of a text, in which functions that call `backward` are compiled."""
    tree = ast.parse(text, file)
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef) or node.decorator_list or not _calls_backward(node):
            continue
        if not any(isinstance(each, (ast.Yield, ast.YieldFrom)) for each in ast.walk(node)):
            loop = _inner_loop(node)
            call: Any = ast.Call(ast.Name(COMPILED, ast.Load()), [ast.Constant(loop.lineno if loop else 0)], [])
            for each in ast.walk(call):
                ast.copy_location(each, node)
            node.decorator_list.append(call)
    return compile(tree, file, "exec")


def _inner_loop(node: ast.AST) -> ast.stmt | None:
    """Return the innermost loop in a function, outside of inner functions, that calls `backward`."""
    found = None
    todo: list[Any] = list(ast.iter_child_nodes(node))
    while todo:
        each = todo.pop(0)
        if isinstance(each, (ast.For, ast.While)) and _calls_backward(each):
            found = each
        if not isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            todo += ast.iter_child_nodes(each)
    return found


def _function_of(loop: ast.stmt, name: str, stored: Sequence[str], lines: Sequence[str], path: str) -> types.CodeType:
    """Return the code of the definition of a function that is a loop; it gets and returns its variables."""
    body = [line[loop.col_offset :] for line in lines[loop.lineno - 1 : loop.end_lineno]]
    names = "".join([f"{each}, " for each in stored])
    before = [""] * (loop.lineno - 2)  # so that its lines have their numbers
    body = [f"    {line}" if line.strip() else line for line in body]
    text = "\n".join([*before, f"def {name}({names}):", *body, f"    return ({names})"]) + "\n"
    return _compiled(text, _shown_as(path, text))


def _shown_as(path: str, text: str) -> str:
    """Return the name of a file with a text, for tracebacks; it is the path if that file has the text."""
    if "".join(linecache.getlines(path)) == text:
        return path
    file = path
    while file in linecache.cache and "".join(linecache.getlines(file)) != text:
        file += "\u200b"  # (an invisible character)
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    return file


def _loops(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the outermost loops outside of functions that call `backward`."""
    for node in body:
        if isinstance(node, (ast.For, ast.While)):
            if _calls_backward(node):
                yield node
        elif isinstance(node, (ast.If, ast.With, ast.Try)):
            for name in ("body", "orelse", "finalbody"):
                yield from _loops(getattr(node, name, ()))


def _calls_backward(node: ast.AST) -> bool:
    """Return whether a statement calls `backward`, in functions that it defines aside."""
    todo = list(ast.iter_child_nodes(node))
    while todo:
        each = todo.pop()
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr == "backward":
            return True
        if not isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            todo += ast.iter_child_nodes(each)
    return False


def _name_of(target: ast.expr) -> str | None:
    return target.id if isinstance(target, ast.Name) else target.attr if isinstance(target, ast.Attribute) else None


def _is_constant(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except ValueError:
        return False
    return True


class Neighbours(importlib.abc.MetaPathFinder):
    """Finds the modules in the folder of the script, whose training steps are compiled, too."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Return the spec of a module of the folder."""
        spec = importlib.machinery.PathFinder.find_spec(name, path or [self.folder])
        inside = spec is not None and spec.origin is not None and spec.origin.startswith(self.folder + os.sep)
        if not inside or type(spec.loader) is not importlib.machinery.SourceFileLoader:  # type: ignore[union-attr]
            return None
        spec.loader = _Loader(spec.loader.name, spec.loader.path)  # type: ignore[union-attr]
        return spec


class _Loader(importlib.machinery.SourceFileLoader):
    def exec_module(self, module: types.ModuleType) -> None:
        """Execute the module with its training steps compiled."""
        Script(self.path).program()(module.__dict__)


def planned(
    path: str, arguments: Sequence[str], settings: Mapping[str, Sequence[str]], combinations: Sequence[dict[str, str]]
) -> list[tuple[dict[str, Any], list[str], Callable[[], Any]]]:
    """Return, for each combination of settings, the values, the command line, and a function that runs the script.

    Args:
        path, arguments: of the script.
        settings: the texts of the values, by name.
        combinations: of them.

    Raises:
        ValueError: a setting is not known to the script.
    """
    script = Script(path)
    options = script.options()
    of_options = {name: f"--{name.replace('_', dash)}" for name in settings for dash in "-_"
                  if f"--{name.replace('_', dash)}" in options}  # fmt: skip
    found: list[tuple[dict[str, Any], list[str], Callable[[], Any]]] = []
    for values in combinations:
        argv = [path, *arguments]
        for name, option in of_options.items():
            argv += [option, values[name]]
        constants = {name: _as_python(value) for name, value in values.items() if name not in of_options}
        execute = script.with_settings(constants).program()

        body = functools.partial(_executed, execute, path)
        found.append(({name: _value(value) for name, value in values.items()}, argv, body))
    return found


def _executed(execute: Callable[[dict[str, Any]], None], path: str) -> None:
    execute({"__name__": "__main__", "__file__": path, "__builtins__": __builtins__})


def _value(text: str) -> Any:
    """Return the value of a setting: Python's, or the text itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _as_python(text: str) -> str:
    return text if type(_value(text)) is not str or text[:1] in "'\"" else repr(text)


@functools.cache
def find_neighbours(folder: str) -> Neighbours:
    """Let imports of modules in the folder of the script compile their training steps."""
    finder = Neighbours(folder)
    sys.meta_path.insert(0, finder)
    return finder


__all__ = ["Script", "find_neighbours", "planned"]
