"""Sweeps of a script that was not written for it: settings are changed in its text, the rest in its syntax tree.

Settings replace constants, or become options of its command line. Functions that call `backward` are compiled; a loop
outside of functions that does becomes a function first.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import functools
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
from tinytorch.compiler.liveness import Names, own_nodes
from tinytorch.compiler.sources import codes_in, keep_tree, parsed

#: In the namespace of a script: what begins the names of functions that loops become, what runs these, and what
#: compiles functions.
LOOP, RUN, COMPILED = "_sweep_loop_", "_sweep_run_", "_sweep_compiled_"


class Script:
    """The text of a script.

    Args:
        path: of its file.
        text: its text; read from the file by default.
        file: the name that tracebacks show; the path by default.

    Raises:
        OSError, SyntaxError: it cannot be read.
    """

    def __init__(self, path: str, text: str | None = None, file: str | None = None) -> None:
        self.path, self.file = path, file or path
        if text is None:
            with open(path, encoding="utf-8") as stream:
                text = stream.read()
        self.text = text
        self.tree = ast.parse(text, path)
        if file is not None:
            linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file

    def options(self) -> set[str]:
        """Return the options of the command line that the script mentions: {"--lr"}."""
        constants = [node.value for node in ast.walk(self.tree) if isinstance(node, ast.Constant)]
        return {x.split("=")[0] for x in constants if isinstance(x, str) and x.startswith("--")}

    def places(self, name: str) -> list[ast.expr]:
        """Return the constants that a setting stands for.

        These are what a variable or an attribute of the name is set to, defaults of parameters, keyword arguments and
        entries of dictionaries.
        """
        found: list[Any] = []
        for node in ast.walk(self.tree):
            if isinstance(node, (ast.Assign, ast.AnnAssign)):
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    pairs: Any = [(target, node.value)]
                    if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                        pairs = zip(target.elts, node.value.elts, strict=False)
                    found += [value for each, value in pairs if name in (_of(each, "id"), _of(each, "attr"))]
            elif isinstance(node, ast.arguments):
                args = [*[*node.posonlyargs, *node.args][::-1][: len(node.defaults)], *node.kwonlyargs]
                defaults = [*node.defaults[::-1], *node.kw_defaults]
                found += [default for arg, default in zip(args, defaults, strict=True) if arg.arg == name]
            elif isinstance(node, ast.keyword) and node.arg == name:
                found.append(node.value)
            elif isinstance(node, ast.Dict):
                found += [value for key, value in zip(node.keys, node.values, strict=True) if _of(key, "value") == name]
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
        shown = ", ".join([f"{name}={value}" for name, value in settings.items()])
        return Script(self.path, b"".join(lines).decode(), f"{self.path} [{shown}]")

    def program(self) -> Callable[[dict[str, Any]], None]:
        """Return a function that executes the script in a namespace, with its training steps compiled."""
        loops = _Loops(self)
        tree = loops.visit(copy.deepcopy(self.tree))
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and not node.decorator_list and _calls_backward(node):
                inner: list[Any] = [each for each in own_nodes(node.body) if _is_loop(each) and _calls_backward(each)]
                if not any(isinstance(each, (ast.Yield, ast.YieldFrom)) for each in ast.walk(node)):
                    (decorator,) = parsed(f"{COMPILED}({inner[-1].lineno if inner else 0})", node)
                    node.decorator_list.append(decorator.value)
        code = compile(tree, self.file, "exec")
        for inner_code in _all_codes(code):
            if inner_code.co_name in loops.made:
                keep_tree(inner_code, loops.made[inner_code.co_name])

        def execute(scope: dict[str, Any]) -> None:
            scope[COMPILED], scope[RUN] = _in_parts, functools.partial(_run, scope)
            exec(code, scope)

        return execute

    def read_elsewhere(self, loop: Any) -> set[str]:
        """Return the names of global variables that functions outside of a loop use."""
        found: set[str] = set()
        todo = list(symtable.symtable(self.text, self.path, "exec").get_children())
        while todo:
            table = todo.pop()
            if not loop.lineno <= table.get_lineno() <= loop.end_lineno:
                found.update([symbol.get_name() for symbol in table.get_symbols() if symbol.is_global()])
                todo += table.get_children()
        return found


class _Loops(ast.NodeTransformer):
    """Replaces the outermost loops outside of functions that call `backward` by functions, whose trees are `made`."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.made: dict[str, ast.FunctionDef] = {}

    def keep(self, node: Any) -> Any:
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = keep

    def visit_For(self, node: Any) -> Any:
        stored = _stored(node) if _calls_backward(node) else None
        if stored is None:
            return node
        shared = stored & self.script.read_elsewhere(node)  # (these remain global)
        names, name = sorted(stored - shared), f"{LOOP}{len(self.made)}"
        given = "".join([f"{each}, " for each in names])
        kept = f"    global {', '.join(sorted(shared))}\n" if shared else ""
        function, run = parsed(f"def {name}({given}):\n{kept}    return ({given})\n{RUN}({name}, {names!r})", node)
        if shared:  # (the loop shall be the first statement at its line)
            function.body[0].lineno = function.body[0].end_lineno = node.lineno - 1
        function.body.insert(-1, node)
        self.made[name] = copy.deepcopy(function)
        return [function, run]

    visit_While = visit_For


_UNSET: Any = object()


def _run(scope: dict[str, Any], function: Callable[..., Any], names: Sequence[str]) -> None:
    """Run a loop, whose variables are global ones before and after it."""
    found = function(*[scope.get(name, _UNSET) for name in names])
    scope.update({name: x for name, x in zip(names, found, strict=True) if x is not _UNSET})


def _in_parts(line: int) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles a function, in parts if a loop of training steps is at the line."""

    def decorate(function: Callable[..., Any]) -> Any:
        made = Compiled(function, dynamic=False)  # (programs for any size are not joined)
        made = made.split_at(line) if line else made
        return entry.observer.compiles(made) if entry.observer is not None else made

    return decorate


def _stored(loop: Any) -> frozenset[str] | None:
    """Return the names of the variables that a loop sets; None if it also deletes some, or declares some as global."""
    for node in ast.walk(loop):
        if isinstance(node, (ast.Global, ast.Nonlocal, ast.Delete)) or (
            isinstance(node, ast.ExceptHandler) and node.name
        ):
            return None
    return Names((), ()).bound([loop])


def _all_codes(code: types.CodeType) -> Iterator[types.CodeType]:
    for inner in codes_in(code):
        yield inner
        yield from _all_codes(inner)


def _is_loop(node: Any) -> bool:
    return isinstance(node, (ast.For, ast.While))


def _calls_backward(node: ast.AST) -> bool:
    """Return whether a statement calls `backward`, in functions that it defines aside."""
    calls = [each.func for each in own_nodes(ast.iter_child_nodes(node)) if isinstance(each, ast.Call)]
    return any(_of(function, "attr") == "backward" for function in calls)


def _of(node: Any, name: str) -> Any:
    return getattr(node, name, None)


def _is_constant(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except ValueError:
        return False
    return True


class _Loader(importlib.machinery.SourceFileLoader):
    def exec_module(self, module: types.ModuleType) -> None:
        """Execute the module with its training steps compiled."""
        Script(self.path).program()(module.__dict__)


@contextlib.contextmanager
def neighbours(folder: str) -> Iterator[None]:
    """Let imports, in a `with` block, find the modules of the script's folder, with their training steps compiled."""
    extensions = importlib.machinery.ExtensionFileLoader, importlib.machinery.EXTENSION_SUFFIXES
    finder = importlib.machinery.FileFinder.path_hook(extensions, (_Loader, importlib.machinery.SOURCE_SUFFIXES))

    others = {*sys.path} - {folder}  # (a virtual environment in the folder, say)

    def hook(path: str) -> Any:
        if path in others or not f"{path}{os.sep}".startswith(folder + os.sep):
            raise ImportError
        return finder(path)

    sys.path.insert(0, folder)
    sys.path_hooks.insert(0, hook)
    sys.path_importer_cache.clear()
    try:
        yield
    finally:
        sys.path_hooks.remove(hook)
        sys.path.remove(folder)
        sys.path_importer_cache.clear()


def planned(
    path: str, arguments: Sequence[str], settings: Mapping[str, Sequence[str]], combinations: Sequence[dict[str, str]]
) -> list[tuple[dict[str, Any], list[str], Callable[[], Any]]]:
    """Return, for each combination of settings, the values, the command line, and a function that runs the script.

    `settings` are the texts of the values, by name; one that is not known to the script is a ValueError.
    """
    script = Script(path)
    options = script.options()
    of_options = {name: f"--{name.replace('_', dash)}" for name in settings for dash in "-_"
                  if f"--{name.replace('_', dash)}" in options}  # fmt: skip
    found: list[tuple[dict[str, Any], list[str], Callable[[], Any]]] = []
    for values in combinations:
        argv = [path, *arguments, *[x for name, option in of_options.items() for x in (option, values[name])]]
        constants = {name: _as_python(value) for name, value in values.items() if name not in of_options}
        body = functools.partial(_executed, script.with_settings(constants).program(), path)
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


__all__ = ["Script", "neighbours", "planned"]
