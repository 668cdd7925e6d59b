"""The text of an ordinary program, changed so that what it does again and again goes through `compiled_or_not`.

Functions and methods get that as a decorator; and of each loop that trains, the statements around `backward` become
a function, a step, which has it too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

STEP, DECORATOR = "step_of_loop", "compiled_or_not"
_SCOPES = (ast.Module, ast.FunctionDef)
_METHODS = frozenset(("backward", "step", "zero_grad"))
_SPEAKING = frozenset(("print", "append", "extend", "write", "set_postfix", "item", "tolist", "numpy"))


class _Names(ast.NodeVisitor):
    """Finds the names that some statements read and write, in the order in which they run.

    Attributes:
        needed: those that are read before they are written.
        written: those that are written.
    """

    def __init__(self, statements: list[ast.stmt]) -> None:
        self.needed: dict[str, None] = {}
        self.written: dict[str, None] = {}
        for each in statements:
            self.visit(each)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Store):
            self.written[node.id] = None
        elif node.id not in self.written:
            self.needed[node.id] = None

    def visit_Assign(self, node: ast.Assign) -> None:
        for each in (node.value, *node.targets):
            self.visit(each)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.visit(node.value)
        if isinstance(node.target, ast.Name):
            self.visit(ast.Name(node.target.id, ast.Load()))
        self.visit(node.target)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        self.visit(node.iter)
        for each in node.ifs:
            self.visit(each)

    def visit_ListComp(self, node: Any) -> None:
        own = {each.id for part in node.generators for each in ast.walk(part.target) if isinstance(each, ast.Name)}
        before = dict(self.needed)
        self.generic_visit(node)
        for name in own - set(before):
            self.needed.pop(name, None)

    visit_GeneratorExp = visit_SetComp = visit_DictComp = visit_ListComp

    def visit_Lambda(self, node: ast.Lambda) -> None:
        own = {each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)}
        before = dict(self.needed)
        self.visit(node.body)
        for name in own - set(before):
            self.needed.pop(name, None)


def _methods_called(node: ast.AST) -> Iterator[str]:
    for each in ast.walk(node):
        if isinstance(each, ast.Call):
            function = each.func
            yield function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _is_of_a_step(node: ast.stmt) -> bool:
    """Return whether a statement may be in a step: it computes, and says and decides nothing."""
    if isinstance(node, ast.With):
        return all(_is_of_a_step(each) for each in node.body)
    if not isinstance(node, (ast.Assign, ast.AugAssign, ast.Expr)):
        return False
    return not any(name in _SPEAKING for name in _methods_called(node)) and not any(
        isinstance(each, (ast.Yield, ast.Await, ast.NamedExpr, ast.Attribute, ast.Subscript))
        and (isinstance(each, (ast.Yield, ast.Await, ast.NamedExpr)) or isinstance(each.ctx, ast.Store))
        for each in ast.walk(node)
    )


def _only_speaks(node: ast.stmt) -> bool:
    """Return whether a statement may as well come after the step: it prints or keeps what there is."""
    kinds = (ast.Break, ast.Continue, ast.Return, ast.Raise, ast.Yield, ast.Await)
    return isinstance(node, (ast.If, ast.Expr)) and not any(
        isinstance(each, kinds)
        or isinstance(getattr(each, "ctx", None), ast.Store)
        or (isinstance(each, ast.Attribute) and each.attr in _METHODS)
        for each in ast.walk(node)
    )


def _parted(body: list[ast.stmt]) -> tuple[list[ast.stmt], ...] | None:
    """Return what of a loop comes before its step, the step, as much as there is around `backward`, and the rest."""
    middle = next((k for k, each in enumerate(body) if "backward" in _methods_called(each)), None)
    if middle is None or not _is_of_a_step(body[middle]):
        return None
    first = last = middle
    while first and (_is_of_a_step(body[first - 1]) or _only_speaks(body[first - 1])):
        first -= 1
    while last + 1 < len(body) and _is_of_a_step(body[last + 1]):
        last += 1
    found = body[first : last + 1]
    step = [each for each in found if _is_of_a_step(each)]
    return body[:first], step, [each for each in found if each not in step] + body[last + 1 :]


def _loaded(node: ast.AST) -> list[str]:
    return [each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)]


class _Stepper(ast.NodeTransformer):
    """Makes functions of the steps of loops, and decorates functions."""

    def __init__(self, tree: ast.Module) -> None:
        self._reads = _loaded(tree)
        self._made: list[list[ast.stmt]] = [[]]
        self._in_loops = self._count = 0

    def visit_Module(self, node: ast.Module) -> Any:
        node.body = self._block(node.body)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        loops, self._in_loops = self._in_loops, 0
        self.generic_visit(node)
        self._in_loops = loops
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        loops, self._in_loops = self._in_loops, 0
        node.body = self._block(node.body)
        self._in_loops = loops
        if not node.name.startswith("__"):
            node.decorator_list.append(ast.Name(DECORATOR, ast.Load()))
        return node

    def visit_For(self, node: Any) -> Any:
        self._in_loops += 1
        self.generic_visit(node)
        self._in_loops -= 1
        parts = _parted(node.body)
        if parts is not None:
            before, step, after = parts
            node.body = [*before, self._called(step), *after]
        return node

    visit_While = visit_For

    def _block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Return the statements of a function or of the program: before each stand the steps that are in it."""
        found: list[ast.stmt] = []
        for each in body:
            self._made.append([])
            changed = self.visit(each)
            found += [*self._made.pop(), changed]
        return found

    def _called(self, statements: list[ast.stmt]) -> ast.stmt:
        names = _Names(statements)
        own = [name for each in statements for name in _loaded(each)]
        given = [name for name in names.needed if name in names.written]
        back = [name for name in names.written if self._reads.count(name) > own.count(name)]
        self._count += 1
        name = f"{STEP}_{self._count}"
        result = ast.Tuple([ast.Name(each, ast.Load()) for each in back], ast.Load())
        text = f"@{DECORATOR}\ndef {name}({', '.join(given)}):\n    return ()"
        function: Any = ast.parse(text).body[0]
        function.body = [*statements, ast.Return(result)]
        self._made[-1].append(function)
        call: Any = ast.parse(f"{name}({', '.join(given)})").body[0]
        if not back:
            return call
        target = ast.Tuple([ast.Name(each, ast.Store()) for each in back], ast.Store())
        return ast.Assign([target], call.value)


def stepped(text: str) -> str:
    """Return the text of a program whose functions, and the steps of its loops, go through `compiled_or_not`."""
    tree = ast.parse(text)
    return ast.unparse(ast.fix_missing_locations(_Stepper(tree).visit(tree)))
