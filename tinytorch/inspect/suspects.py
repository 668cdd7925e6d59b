"""What the source of a program suggests where nothing was watched: lines that may cut a gradient off."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable, Iterator
from types import CodeType, FrameType
from typing import Any, NamedTuple

from tinytorch.inspect.places import Line, is_library
from tinytorch.inspect.sources import definition_of, parsed
from tinytorch.nn.modules.module import Module

__all__ = ["Suspect", "attribute_line", "is_mentioned", "suspects"]

#: By the name of a method, attribute or function of PyTorch, the code of the cause (see `explain`).
_CUTS = {
    "detach": "detach", "detach_": "detach", "data": "data", "item": "read", "tolist": "read", "numpy": "read",
    "from_numpy": "read", "no_grad": "no_grad", "inference_mode": "inference_mode", "set_grad_enabled": "no_grad",
    "argmax": "not differentiable", "argmin": "not differentiable", "argsort": "not differentiable",
    "long": "not differentiable", "int": "not differentiable", "bool": "not differentiable",
    "zero_grad": "cleared", "grad": "autograd.grad", "requires_grad_": "frozen", "requires_grad": "frozen",
}  # fmt: skip


class Suspect(NamedTuple):
    """A line that may be the cause.

    Attributes:
        code: the cause, see `explain`.
        line: the line.
        what: the expression, such as "h.detach".
    """

    code: str
    line: Line
    what: str


def _found_in(tree: ast.AST, file: str, function: str) -> Iterator[Suspect]:
    for node in ast.walk(tree):
        name, expression = "", node
        if isinstance(node, ast.Call) and isinstance(node.func, (ast.Attribute, ast.Name)):
            expression = node.func
            name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
            of_module = isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) in ("torch", "tinytorch")
            if name == "tensor" and (of_module or isinstance(node.func, ast.Name)):
                argument = node.args[0] if node.args else None
                if argument is not None and not isinstance(argument, (ast.Constant, ast.List, ast.Tuple)):
                    yield Suspect("copied", Line(file, node.lineno, function), ast.unparse(node.func))
                continue
            if name == "float" and isinstance(node.func, ast.Name):
                yield Suspect("read", Line(file, node.lineno, function), "float")
                continue
            if isinstance(node.func, ast.Name) and name in ("int", "bool"):
                continue
            if name == "grad" and not ast.unparse(node.func).endswith("autograd.grad"):
                continue
        elif isinstance(node, ast.Attribute) and node.attr == "data":
            name = "data"
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
            target = node.targets[0]
            constant = node.value.value if isinstance(node.value, ast.Constant) else ...
            if target.attr == "requires_grad" and constant is False:
                name, expression = "requires_grad", target
            elif target.attr == "grad" and constant is None:
                name, expression = "zero_grad", target
            else:
                continue
        elif isinstance(node, ast.FunctionDef):
            for decorator in node.decorator_list:
                for cut in ("no_grad", "inference_mode"):
                    if ast.unparse(decorator).rstrip("()").endswith(cut):
                        yield Suspect(cut, Line(file, decorator.lineno, function), ast.unparse(decorator))
            continue
        else:
            continue
        if name in _CUTS and isinstance(expression, (ast.Attribute, ast.Name, ast.Subscript)):
            line = getattr(expression, "end_lineno", None) or expression.lineno
            yield Suspect(_CUTS[name], Line(file, line, function), ast.unparse(expression))


def _function_at(code: CodeType) -> ast.AST | None:
    """Return the syntax tree of a function, or of a module's own statements."""
    tree = parsed(code.co_filename)
    if tree is None:
        return None
    if code.co_name == "<module>":
        outer = [each for each in tree.body if not isinstance(each, (ast.FunctionDef, ast.ClassDef))]
        return ast.Module(outer, [])
    return definition_of(code, tree)


def _code_of(function: Any) -> CodeType | None:
    code = getattr(inspect.unwrap(function), "__code__", None)
    return code if isinstance(code, CodeType) and not is_library(code) else None


def suspects(frames: Iterable[FrameType], modules: Iterable[Module]) -> list[Suspect]:
    """Return the suspicious lines of running functions, of what they call by name, and of the `forward` of modules."""
    codes: list[CodeType] = []
    for module in modules:
        code = _code_of(type(module).forward)
        if code is not None:
            codes.append(code)
    for frame in frames:
        codes.append(frame.f_code)
        names = {**frame.f_globals, **frame.f_locals}
        for name in frame.f_code.co_names + frame.f_code.co_varnames:
            called = names.get(name)
            if inspect.isfunction(called) and (code := _code_of(called)) is not None:
                codes.append(code)
    found: dict[tuple[str, Line], Suspect] = {}
    for code in dict.fromkeys(codes):
        tree = _function_at(code)
        for each in _found_in(tree, code.co_filename, code.co_name) if tree is not None else ():
            found.setdefault((each.code, each.line), each)
    return list(found.values())


def _class_tree(kind: type) -> tuple[ast.ClassDef, str] | None:
    function = kind.__dict__.get("forward") or kind.__dict__.get("__init__")
    code = None if function is None else _code_of(function)
    tree = None if code is None else parsed(code.co_filename)
    if code is None or tree is None:
        return None
    for node in ast.walk(tree):
        named = isinstance(node, ast.ClassDef) and node.name == kind.__name__
        if named and node.lineno <= code.co_firstlineno <= (node.end_lineno or 0):  # type: ignore[attr-defined]
            return node, code.co_filename  # type: ignore[return-value]
    return None


def is_mentioned(module: Module, attribute: str) -> bool:
    """Return whether the methods of a module's class use an attribute; True if that cannot be known."""
    known = False
    for kind in type(module).__mro__:
        if kind is Module:
            break
        found = _class_tree(kind)
        if found is None:
            return True
        known = True
        for method in found[0].body:
            if isinstance(method, ast.FunctionDef) and method.name != "__init__":
                for node in ast.walk(method):
                    if isinstance(node, ast.Attribute) and node.attr == attribute:
                        return True
                    text = ast.unparse(node) if isinstance(node, ast.Call) else ""
                    if any(part in text for part in ("getattr(", ".children(", ".modules(", "_modules", "super()")):
                        return True
    return not known


def attribute_line(module: Module, attribute: str) -> Line | None:
    """Return the line that sets an attribute of a module in its `__init__`, or None."""
    found = _class_tree(type(module))
    for node in ast.walk(found[0]) if found is not None else ():
        if isinstance(node, ast.Assign) and any(ast.unparse(each) == f"self.{attribute}" for each in node.targets):
            assert found is not None
            return Line(found[1], node.lineno, "__init__")
    return None
