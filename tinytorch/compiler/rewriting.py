"""The rewritten form of a function: in its source, attributes, calls and truth values go through the tracer."""

from __future__ import annotations

import ast
import functools
import operator
import types
from typing import Any

from tinytorch.compiler import cache
from tinytorch.compiler.sources import as_function, code_of, parsed, source_of, without_defaults

#: Names in the rewritten form: the free variable that holds the tracer, and a temporary variable.
TRACER, VALUE = "__tracer__", "__value__"
#: By the name of a node, the functions of operators.
OPERATORS: dict[str, Any] = {
    "Add": operator.add, "Sub": operator.sub, "Mult": operator.mul, "MatMult": operator.matmul, "Div": operator.truediv,
    "Mod": operator.mod, "Pow": operator.pow, "LShift": operator.lshift, "RShift": operator.rshift,
    "BitOr": operator.or_, "BitXor": operator.xor, "BitAnd": operator.and_, "FloorDiv": operator.floordiv,
    "Eq": operator.eq, "NotEq": operator.ne, "Lt": operator.lt, "LtE": operator.le, "Gt": operator.gt,
    "GtE": operator.ge, "USub": operator.neg, "UAdd": operator.pos, "Invert": operator.invert,
}  # fmt: skip
_PLACES = (ast.Attribute, ast.Subscript)  # in objects
#: Functions whose results depend on the calling frame.
OF_FRAMES = frozenset("super locals globals vars eval exec dir".split())
#: Those of them that look at an object instead, if they are given one.
OF_OBJECTS = frozenset(["vars", "dir"])


class Unreadable(Exception):
    """Raised with the reason why a function cannot be rewritten, and the line, if it is one line's."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason)
        self.line = line


@functools.lru_cache(1024)
def rewritten(code: types.CodeType, name: str) -> types.CodeType:
    """Return the code of a function in its rewritten form."""
    return cache.rewritten(code, lambda: _rewritten(code, name))


def _rewritten(code: types.CodeType, name: str) -> types.CodeType:
    node: Any = source_of(code, TRACER in code.co_freevars)
    if node is None:
        raise Unreadable(f"the source of {name} is not found, or has changed")
    node = without_defaults(_Rewriter().visit(as_function(node)))
    free = [variable for variable in code.co_freevars if variable != TRACER]  # (an inner function already has it)
    return code_of(node, [*free, TRACER], code).replace(co_name=code.co_name)


class _Rewriter(ast.NodeTransformer):
    """Replaces expressions and statements by calls of the tracer's methods."""

    def hook(self, name: str, at: ast.AST, *args: ast.expr) -> Any:
        """Return a call of a method of the tracer, with arguments that have been visited."""
        function = ast.Attribute(ast.Name(TRACER, ast.Load()), name, ast.Load())
        return self.done(ast.copy_location(ast.Call(function, list(args), []), at))

    def done(self, node: Any) -> Any:
        """Note that a node is in its rewritten form: a part of a statement may be so before the rest."""
        node.is_rewritten = True
        return node

    def visit(self, node: ast.AST) -> Any:
        return node if hasattr(node, "is_rewritten") else super().visit(node)

    def refuse(self, node: ast.AST) -> Any:
        line = getattr(node, "lineno", None)
        raise Unreadable(f"line {line or '?'}: {type(node).__name__} is not supported", line)

    visit_Await = visit_AsyncFor = visit_AsyncWith = visit_AsyncFunctionDef = refuse
    visit_ClassDef = visit_Global = visit_Nonlocal = visit_Match = visit_TryStar = refuse

    # Statements -------------------------------------------------------------------------------------

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        decorators, node.decorator_list, node.returns = node.decorator_list, [], None
        self.generic_visit(node)
        if node.args.kwarg is not None:  # each call has a dictionary of its own
            node.body[:0] = _made(node.args.kwarg.arg, node)
        decorated: Any = ast.Name(node.name, ast.Load())
        for decorator in reversed(decorators):
            decorated = self.hook("call", node, ast.Constant(node.lineno), self.visit(decorator), decorated)
        if not decorators:
            return node
        return [node, ast.copy_location(ast.Assign([ast.Name(node.name, ast.Store())], decorated), node)]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        module = "." * node.level + (node.module or "")
        see = f"{TRACER}.imported"
        texts = [f"{see}({x.asname or x.name}, __name__, {module!r}, {x.name!r})" for x in node.names]
        return [node, *parsed("\n".join(texts), node)]

    def visit_Try(self, node: ast.Try) -> Any:
        kinds = ", ".join([ast.unparse(handler.type) if handler.type else "BaseException" for handler in node.handlers])
        self.generic_visit(node)
        for handler in node.handlers:  # whether an error is caught decides what runs
            handler.body[:0] = parsed(f"{TRACER}.caught()", handler)
        if node.handlers:
            begin, end = parsed(f"{TRACER}.trying(lambda: [{kinds}])\n{TRACER}.tried()", node)
            node.body = [begin, ast.copy_location(ast.Try(node.body, [], [], [end]), node)]
        return node

    def visit_arg(self, node: ast.arg) -> Any:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return self.visit(ast.copy_location(ast.Assign([node.target], node.value), node))

    def test(self, node: ast.expr) -> Any:
        if isinstance(node, ast.BoolOp):
            node.values = [self.test(value) for value in node.values]
            return self.done(node)
        return self.hook("truth", node, self.visit(node))

    def visit_If(self, node: Any) -> Any:
        node.test = self.test(node.test)
        return self.generic_visit(node)

    visit_While = visit_IfExp = visit_Assert = visit_If

    def visit_For(self, node: Any) -> Any:
        node.iter = self.hook("iterate", node.iter, self.visit(node.iter))
        return self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> Any:
        if node.is_async:
            self.refuse(node)
        node.ifs = [self.test(condition) for condition in node.ifs]
        return self.visit_For(node)

    def visit_With(self, node: ast.With) -> Any:
        for item in node.items:
            item.context_expr = self.hook("context", node, self.visit(item.context_expr))
        return self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> Any:
        if node.value is not None:
            node.value = self.result(node.value)
        return node

    def result(self, node: Any) -> Any:
        """Rewrite a returned expression: the program reads an `x.item()` in it when it returns."""
        if isinstance(node, ast.Tuple):
            node.elts = [self.result(element) for element in node.elts]
            return node
        function = getattr(node, "func", None)
        if isinstance(function, ast.Attribute) and function.attr == "item" and not (node.args or node.keywords):
            return self.hook("late", node, self.visit(function.value))
        changed = self.visit(node)
        if isinstance(node, ast.Call) and isinstance(changed, ast.Call) and len(changed.args) > 1:
            changed.func = ast.copy_location(ast.Attribute(ast.Name(TRACER, ast.Load()), "last", ast.Load()), node)
        return changed

    # Expressions ------------------------------------------------------------------------------------

    def visit_Name(self, node: ast.Name) -> Any:
        if node.id.startswith("__") and not node.id.endswith("__"):
            self.refuse(node)  # names in a class are mangled
        return node

    def display(self, node: Any) -> Any:
        """Report to the tracer a list, set or dictionary that an expression creates."""
        self.generic_visit(node)
        return node if isinstance(getattr(node, "ctx", None), ast.Store) else self.hook("make", node, node)

    visit_List = visit_Dict = visit_Set = visit_ListComp = visit_SetComp = visit_DictComp = display

    def place(self, node: Any) -> tuple[str, Any, Any]:
        """Return the kind of a place in an object, the object, and its attribute or key."""
        if isinstance(node, ast.Subscript):
            return "item", self.visit(node.value), self.visit(node.slice)
        if node.attr.startswith("__") and not node.attr.endswith("__"):
            self.refuse(node)
        return "attribute", self.visit(node.value), ast.Constant(node.attr)

    def visit_Attribute(self, node: Any) -> Any:
        if not isinstance(node.ctx, ast.Load):
            self.refuse(node)
        kind, of, key = self.place(node)
        return self.hook(kind, node, of, key)

    visit_Subscript = visit_Attribute

    def visit_Slice(self, node: ast.Slice) -> Any:
        parts = [node.lower, node.upper, node.step]
        return self.hook("slice", node, *[ast.Constant(None) if part is None else self.visit(part) for part in parts])

    def visit_Call(self, node: ast.Call) -> Any:
        given = OF_OBJECTS if node.args else ()
        if isinstance(node.func, ast.Name) and node.func.id in OF_FRAMES and node.func.id not in given:
            if node.func.id != "super" or not all(isinstance(argument, ast.Name) for argument in node.args):
                self.refuse(node)
            return node
        args = [self.visit(argument) for argument in node.args]
        keywords = [ast.keyword(keyword.arg, self.visit(keyword.value)) for keyword in node.keywords]
        call = self.hook("call", node, ast.Constant(node.lineno), self.visit(node.func), *args)
        call.keywords = keywords
        return call

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        return self.hook("binary", node, ast.Constant(type(node.op).__name__), ast.Constant(node.lineno),
                         self.visit(node.left), self.visit(node.right))  # fmt: skip

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        if isinstance(node.op, ast.Not):
            return self.hook("negated", node, self.visit(node.operand))
        return self.hook("unary", node, ast.Constant(type(node.op).__name__), self.visit(node.operand))

    def visit_Compare(self, node: ast.Compare) -> Any:
        identity = all(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops)
        sides = [self.visit(side) for side in (node.left, *node.comparators)]
        if len(sides) == 2 and isinstance(node.ops[0], (ast.In, ast.NotIn)):
            found = self.hook("contains", node, *sides)
            return found if isinstance(node.ops[0], ast.In) else ast.copy_location(ast.UnaryOp(ast.Not(), found), node)
        if len(sides) == 2 and not identity:
            return self.hook("compare", node, ast.Constant(type(node.ops[0]).__name__), *sides)
        if not identity:  # (`a < b < c` tests each comparison)
            sides = [self.hook("number", node, side) for side in sides]
        node.left, *node.comparators = sides
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        *others, last = node.values
        node.values = [*[self.hook("decides", operand, self.visit(operand)) for operand in others], self.visit(last)]
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> Any:
        for part in ast.walk(node):
            if isinstance(part, ast.FormattedValue) and part.value is not None:
                part.value = self.hook("shown", node, self.visit(part.value))
        return self.hook("text", node, node)

    def visit_Starred(self, node: Any) -> Any:
        self.generic_visit(node)
        if isinstance(getattr(node, "ctx", None), ast.Store):
            return node
        node.value = self.hook("iterate", node, node.value)
        return node

    visit_YieldFrom = visit_Starred

    # Assignments ------------------------------------------------------------------------------------

    def counted(self, node: ast.Assign) -> Any:
        """Return the call for `x.attribute = x.attribute + 1`, or None for another assignment."""
        value, target = node.value, node.targets[0]
        if len(node.targets) > 1 or not isinstance(target, ast.Attribute) or not isinstance(target.value, ast.Name):
            return None
        if not isinstance(value, ast.BinOp) or not isinstance(value.right, ast.Constant):
            return None
        if ast.unparse(value.left) != ast.unparse(target) or target.attr.startswith("__"):
            return None
        call = self.hook("count_attribute", node, ast.Constant(type(value.op).__name__), ast.Constant(node.lineno),
                         ast.Name(target.value.id, ast.Load()), ast.Constant(target.attr), value.right)  # fmt: skip
        return ast.copy_location(ast.Expr(call), node)

    def visit_Assign(self, node: ast.Assign) -> Any:
        counted = self.counted(node)
        if counted is not None:
            return counted
        value = self.visit(node.value)
        if len(node.targets) > 1 and any(isinstance(name, _PLACES) for name in node.targets):
            first = ast.copy_location(ast.Assign([ast.Name(VALUE, ast.Store())], value), node)
            value = ast.Name(VALUE, ast.Load())
            others = [ast.copy_location(ast.Assign([name], value), node) for name in node.targets]
            return [first, *[self.visit(assignment) for assignment in others]]
        if len(node.targets) == 1:
            target = node.targets[0]
            if isinstance(target, ast.Name):
                node.value = self.hook("named", node, ast.Constant(target.id), value)
                return node
            if isinstance(target, _PLACES):
                return self.stored(target, value, node)
        after: list[ast.stmt] = []
        targets = [self.named_target(target, node, after) for target in node.targets]
        unpacked = isinstance(targets[0], (ast.Tuple, ast.List))
        return [
            ast.copy_location(ast.Assign(targets, self.hook("iterate", node, value) if unpacked else value), node),
            *after,
        ]

    def named_target(self, target: Any, node: ast.AST, after: list[ast.stmt]) -> Any:
        """Return a target with variables for the attributes and items in it, and append what stores them to `after`."""
        if isinstance(target, _PLACES):
            name = f"{VALUE}{len(after)}"
            after.append(self.stored(target, ast.Name(name, ast.Load()), node))
            return ast.copy_location(ast.Name(name, ast.Store()), node)
        if isinstance(target, ast.Starred):
            target.value = self.named_target(target.value, node, after)
            if isinstance(target.value, ast.Name):  # it names a new list
                after += _made(target.value.id, node)
        elif isinstance(target, (ast.Tuple, ast.List)):
            target.elts = [self.named_target(part, node, after) for part in target.elts]
        return target

    def stored(self, target: Any, value: Any, node: ast.AST) -> Any:
        kind, of, key = self.place(target)
        return ast.copy_location(ast.Expr(self.hook(f"set_{kind}", node, of, key, value)), node)

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        name = ast.Constant(type(node.op).__name__)
        value = self.visit(node.value)
        target = node.target
        if isinstance(target, ast.Name):
            read = ast.copy_location(ast.Name(target.id, ast.Load()), node)
            call = self.hook("augmented", node, name, read, value)
            return ast.copy_location(ast.Assign([target], call), node)
        kind, of, key = self.place(target)
        return ast.copy_location(ast.Expr(self.hook(f"augment_{kind}", node, name, of, key, value)), node)

    def visit_Delete(self, node: ast.Delete) -> Any:
        return [self.deleted(target, node) for target in node.targets]

    def deleted(self, target: Any, node: ast.AST) -> Any:
        if not isinstance(target, _PLACES):
            return ast.copy_location(ast.Delete([self.visit(target)]), node)
        kind, of, key = self.place(target)
        return ast.copy_location(ast.Expr(self.hook(f"delete_{kind}", node, of, key)), node)


def _made(name: str, where: ast.AST) -> list[Any]:
    """Return the statement by which the tracer sees that a variable holds a new object."""
    return parsed(f"{name} = {TRACER}.make({name})", where)


__all__ = ["OF_FRAMES", "OF_OBJECTS", "OPERATORS", "TRACER", "Unreadable", "rewritten"]
