"""`torch.fx.experimental.rewriter`: traces programs whose assertions are rewritten as calls, which a graph records."""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import textwrap
import types
from collections.abc import Callable
from typing import Any

from tinytorch.fx._symbolic_trace import Tracer
from tinytorch.fx.graph import Graph
from tinytorch.nn.modules.module import Module

__all__ = ["AST_Rewriter", "RewritingTracer"]

_PACKAGE = __name__.partition(".")[0]


class AST_Rewriter(ast.NodeTransformer):
    """Rewrites functions: `assert` becomes a call of `torch._assert`, an annotation one of `fx.annotate`."""

    def rewrite(self, fn: Any) -> Any:
        """Return a function that runs the rewritten source of `fn` with its globals."""
        plain = getattr(fn, "__func__", fn)
        tree = ast.parse(textwrap.dedent(inspect.getsource(plain)))
        definition: Any = next(each for each in tree.body if isinstance(each, ast.FunctionDef))
        code = compile(ast.fix_missing_locations(self.visit(tree)), plain.__code__.co_filename, "exec")
        names = dict(plain.__globals__)
        exec(code, names)
        made = names[definition.name]
        if definition.decorator_list:
            return made
        new = types.FunctionType(made.__code__, plain.__globals__, made.__name__, plain.__defaults__)
        new.__kwdefaults__ = plain.__kwdefaults__
        return functools.update_wrapper(new, made)

    def visit_Assert(self, node: ast.Assert) -> ast.Expr:
        """Return the call that stands for an assertion."""
        call: Any = ast.parse(f"__import__('{_PACKAGE}')._assert()", mode="eval").body
        call.args = [node.test, node.msg or ast.Constant("")]
        return ast.copy_location(ast.Expr(call), node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """Return the assignment of an annotated value (`fx.annotate`)."""
        if node.value is None:
            return node
        function = f"__import__('{_PACKAGE}.fx.annotate', fromlist=['annotate']).annotate"
        call: Any = ast.parse(f"{function}()", mode="eval").body
        call.args = [self.visit(node.value), node.annotation]
        return ast.copy_location(ast.Assign([node.target], call), node)


class RewritingTracer(Tracer):
    """Traces a program whose assertions are recorded as calls of `torch._assert`."""

    def trace(self, root: Module | Callable[..., Any], concrete_args: Any = None) -> Graph:
        """Record a module or a function, after its source was rewritten."""
        return super().trace(_rewrite(root), concrete_args)


def _rewrite(program: Any) -> Any:
    """Return a function, or a copy of a module, with rewritten source."""
    if not isinstance(program, Module):
        return AST_Rewriter().rewrite(program)
    made = copy.copy(program)
    forward = AST_Rewriter().rewrite(type(program).forward)
    made.__class__ = type(type(program).__name__, (type(program),), {"forward": forward})
    return made
