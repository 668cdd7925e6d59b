"""Looking into the text of a program: where a value comes from, where an attribute is assigned."""

from __future__ import annotations

import ast
import linecache
import re
from typing import Any

from tinytorch.core.names import module_of
from tinytorch.inspect.doctor.place import Place, frame_here, place_of
from tinytorch.inspect.source import parsed

__all__ = ["assigned_at", "changed_at", "in_one_loop", "line_with", "option_at", "return_of", "tree_of", "variable_at"]


def tree_of(file: str) -> ast.Module:
    """Return the syntax tree of a file; an empty one if it cannot be read."""
    return parsed(file) or ast.Module([], [])


def name_of(node: Any) -> str:
    """Return the name of a variable or attribute; "" for any other expression."""
    return getattr(node, "id", "") or getattr(node, "attr", "")


def targets_of(node: ast.AST) -> list[ast.AST]:
    """Return what a statement assigns to, the elements of tuples one by one."""
    targets = list(getattr(node, "targets", None) or [getattr(node, "target", None)])
    found: list[ast.AST] = []
    while targets:
        each = targets.pop()
        if isinstance(each, (ast.Tuple, ast.List)):
            targets += each.elts
        elif isinstance(each, ast.Starred):
            targets.append(each.value)
        elif each is not None:
            found.append(each)
    return found


def assigned_at(owner: Any, name: str) -> Place | None:
    """Return the line of an object's class that assigns an attribute."""
    for cls in type(owner).__mro__:
        if module_of(cls).startswith("tinytorch."):
            break
        method = next((each for each in vars(cls).values() if hasattr(each, "__code__")), None)
        if method is None:
            continue
        file = method.__code__.co_filename
        for node in ast.walk(tree_of(file)):
            if not isinstance(node, ast.ClassDef) or node.name != cls.__name__:
                continue
            for each in ast.walk(node):
                if isinstance(each, (ast.Assign, ast.AnnAssign)) and any(name_of(t) == name for t in targets_of(each)):
                    return Place(file, each.lineno, cls.__name__)
    return None


def option_at(place: Place | None, keyword: str, position: int | None = None) -> Place | None:
    """Return where the value of a call's argument is written: in the call, or where its variable is assigned.

    Args:
        place: the line of the call.
        keyword: the name of the argument.
        position: its position, if it may be given without its name.
    """
    if place is None:
        return None
    tree = tree_of(place.file)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.lineno <= place.number <= (node.end_lineno or node.lineno):
            continue
        value: ast.expr | None = next((each.value for each in node.keywords if each.arg == keyword), None)
        if value is None and position is not None and len(node.args) > position:
            value = node.args[position]
        if value is None:
            if any(each.arg is None for each in node.keywords):  # **options
                return value_at(place, keyword) or place
            continue
        if isinstance(value, (ast.Name, ast.Attribute)):
            return value_at(place, name_of(value)) or place
        if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Constant):
            return value_at(place, str(value.slice.value)) or place
        return place._replace(number=value.lineno)
    return place


def value_at(place: Place, name: str) -> Place | None:
    """Return the line of a file that gives a number to a variable, parameter, option or key of a name."""
    for node in ast.walk(tree_of(place.file)):
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and any(name_of(t) == name for t in targets_of(node)):
            if node.value is not None and not isinstance(node.value, (ast.Name, ast.Attribute)):
                return place._replace(number=node.lineno)
        elif isinstance(node, ast.Dict):
            for key in node.keys:
                if isinstance(key, ast.Constant) and key.value == name:
                    return place._replace(number=key.lineno)
        elif isinstance(node, ast.Call):
            listed = any(isinstance(each, ast.Constant) and str(each.value).lstrip("-") == name for each in node.args)
            if listed and any(each.arg == "default" for each in node.keywords):
                return place._replace(number=node.lineno)
            if isinstance(node.func, (ast.Name, ast.Attribute)):
                for each in node.keywords:
                    if each.arg == name and isinstance(each.value, (ast.Constant, ast.UnaryOp)):
                        return place._replace(number=each.value.lineno)
        elif isinstance(node, (ast.FunctionDef, ast.Lambda)):
            arguments = node.args
            named = [*arguments.posonlyargs, *arguments.args]
            for argument, default in [*zip(named[::-1], arguments.defaults[::-1], strict=False),
                                  *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]:  # fmt: skip
                if argument.arg == name and isinstance(default, ast.Constant):
                    return place._replace(number=argument.lineno)
    return None


def in_one_loop(first: Place, second: Place) -> bool:
    """Return whether the innermost loop around a line has another line in it, too; True if there is none."""
    around = [node for node in ast.walk(tree_of(first.file)) if isinstance(node, (ast.For, ast.While))
              and node.lineno <= first.number <= (node.end_lineno or node.lineno)]  # fmt: skip
    if not around or first.file != second.file or first.function != second.function:
        return True
    inner = max(around, key=lambda node: node.lineno)
    return inner.lineno <= second.number <= (inner.end_lineno or inner.lineno)


def changed_at(name: str, file: str, function: str) -> Place | None:
    """Return the first line of a file that adds to a variable or an attribute of a name."""
    found = None
    for node in ast.walk(tree_of(file)):
        targets: list[Any] = []
        if isinstance(node, ast.AugAssign):
            targets = [node.target]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in ("append", "extend", "add", "insert", "appendleft"):
                targets = [node.func.value]
        elif isinstance(node, ast.Assign):
            used = {name_of(each) for each in ast.walk(node.value)}
            targets = targets_of(node)
            if name not in used and not all(isinstance(each, ast.Subscript) for each in targets):
                continue
        for target in targets:
            while isinstance(target, ast.Subscript):
                target = target.value
            line: int = getattr(node, "lineno", 0)
            if name_of(target) == name and (found is None or line < found.number):
                found = Place(file, line, function)
    return found


def line_with(place: Place | None, pattern: str, before: Place | None = None) -> Place | None:
    """Return the line of a file that matches a pattern: the last one up to a line, else the first.

    Args:
        place: a line of the file.
        pattern: a regular expression.
        before: the line before which the match is looked for first.
    """
    if place is None:
        return None
    texts = [node for node in ast.walk(tree_of(place.file)) if isinstance(node, ast.Expr)
             and isinstance(node.value, ast.Constant)]  # fmt: skip
    prose = {line for node in texts for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    lines = enumerate(linecache.getlines(place.file), 1)
    found = [k for k, text in lines if k not in prose and re.search(pattern, text.partition("#")[0])]
    earlier = [k for k in found if before is not None and k <= before.number]
    return place._replace(number=earlier[-1] if earlier else found[0]) if found else None


def variable_at(value: Any) -> Place | None:
    """Return the line that assigns a variable, or an attribute of an object, that a running function has."""
    frame: Any = frame_here()
    while frame is not None:
        for name, each in [*frame.f_locals.items(), *frame.f_globals.items()]:
            found = None
            if each is value and not name.startswith("__"):
                found = value_at(place_of(frame), name)
            elif module_of(type(each)) == "__main__" and hasattr(each, "__dict__"):
                attribute = next((key for key, own in vars(each).items() if own is value), "")
                found = assigned_at(each, attribute) if attribute else None
            if found is not None:
                return found
        frame = frame.f_back
    return None


def return_of(function: Any) -> Place:
    """Return the last line of a function that returns something."""
    code = function.__code__
    place = Place(code.co_filename, code.co_firstlineno, code.co_name)
    for node in ast.walk(tree_of(code.co_filename)):
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name and node.lineno >= code.co_firstlineno:
            lines = [each.lineno for each in ast.walk(node) if isinstance(each, ast.Return)]
            return place._replace(number=max(lines, default=node.lineno))
    return place
