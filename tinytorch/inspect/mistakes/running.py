"""Going on after a call that failed: whether what follows runs with a value in the place of the failed call.

`Interpreter` evaluates expressions and functions of the user's, of which it runs no code: what it does not know raises
`Unknown`. `onward` evaluates the rest of the statement that failed, the statements that follow, and those of the
functions and sequences that wait for the result, as far as they are known.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import inspect
import operator
import re
import sys
from collections.abc import Mapping
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from tinytorch import nn
from tinytorch.core.tensor import Tensor
from tinytorch.inspect.mistakes.failure import Failure, module_calls
from tinytorch.inspect.mistakes.stack import Step, locals_of
from tinytorch.inspect.mistakes.trial import Failed, Trial, Unknown, is_users, static
from tinytorch.inspect.source import function_tree

__all__ = [
    "NAMES", "Interpreter", "called", "evaluated", "onward", "statements_from", "plain", "values_before",
    "variables_of", "works",
]  # fmt: skip

_BINARY = {"Add": "add", "Sub": "sub", "Mult": "mul", "Div": "truediv", "FloorDiv": "floordiv", "Mod": "mod",
           "Pow": "pow", "MatMult": "matmul", "BitAnd": "and_", "BitOr": "or_", "BitXor": "xor"}  # fmt: skip
_UNARY: dict[str, Any] = {"USub": operator.neg, "UAdd": operator.pos, "Invert": operator.invert}
_COMPARED = {"Eq": operator.eq, "NotEq": operator.ne, "Lt": operator.lt, "LtE": operator.le, "Gt": operator.gt,
             "GtE": operator.ge, "In": lambda x, y: x in y, "NotIn": lambda x, y: x not in y}  # fmt: skip
#: The largest number that a list is multiplied with, or a number raised to.
_LARGEST = 64


_LOOPS = (ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)


class _Returned(Exception):
    """A function has returned: `args[0]` is its value."""


class Interpreter:
    """Evaluates expressions and statements of the user's, as far as they have no effect.

    Attributes:
        trial: makes copies of the user's objects, and calls functions.
        outer: the user's variables.
        own: variables that hold copies: those that are assigned.
        given: values of expressions that are not evaluated, by their identities.
        depth: in how many functions' calls the evaluation is.
    """

    def __init__(
        self, trial: Trial, outer: Mapping[str, Any], own: dict[str, Any] | None = None, depth: int = 0
    ) -> None:
        self.trial, self.outer, self.own, self.depth = trial, outer, own or {}, depth
        self.given: dict[int, Any] = {}

    def visit(self, node: ast.AST) -> Any:
        """Return the value of an expression, or run a statement.

        Raises:
            Unknown: of such an expression or statement it is not known what it does.
        """
        self.trial.tick()
        if id(node) in self.given:
            return self.given[id(node)]
        method = getattr(self, "_on_" + re.sub(r"(?<!^)([A-Z])", r"_\1", type(node).__name__).lower(), None)
        if method is None:
            raise Unknown(type(node).__name__)
        value = method(node)
        self.trial.passed |= node is self.trial.goal
        return value

    # Expressions ------------------------------------------------------------------------------------

    def _on_constant(self, node: ast.Constant) -> Any:
        return node.value

    def _on_name(self, node: ast.Name) -> Any:
        if node.id in self.own:
            return self.own[node.id]
        if node.id in self.outer:
            return self.trial.private(self.outer[node.id])
        if hasattr(builtins, node.id):
            return getattr(builtins, node.id)
        raise Unknown(node.id)

    def _on_attribute(self, node: ast.Attribute) -> Any:
        owner = self.visit(node.value)
        if isinstance(owner, ModuleType):
            name = getattr(owner.__spec__, "name", owner.__name__)  # (tinytorch may be called torch)
            ours = name.partition(".")[0] in ("tinytorch", "numpy", "math")
            value = getattr(owner, node.attr, None) if ours else vars(owner).get(node.attr)
            return self.trial.private(value)
        if self.trial.is_known(owner) or (isinstance(owner, type) and not is_users(owner)):
            return self.trial.do(lambda: getattr(owner, node.attr))
        return self.trial.private(static(owner, node.attr))

    def _on_subscript(self, node: ast.Subscript) -> Any:
        owner, index = self.visit(node.value), self.visit(node.slice)
        if isinstance(owner, nn.Module) and not self.trial.is_known(owner):
            owner = list(self.trial.iterated(owner))
            if type(index) is int and -len(owner) <= index < len(owner):
                return owner[index]
        return self.trial.do(operator.getitem, owner, index)

    def _on_slice(self, node: ast.Slice) -> Any:
        return slice(*[None if each is None else self.visit(each) for each in (node.lower, node.upper, node.step)])

    def _on_tuple(self, node: ast.Tuple) -> Any:
        return tuple(self._items(node.elts))

    def _on_list(self, node: ast.List) -> Any:
        return self._items(node.elts)

    def _items(self, nodes: list[ast.expr]) -> list[Any]:
        found: list[Any] = []
        for each in nodes:
            if isinstance(each, ast.Starred):
                found += self.trial.iterated(self.visit(each.value))
            else:
                found.append(self.visit(each))
        return found

    def _on_dict(self, node: ast.Dict) -> Any:
        return {self.visit(key or node.values[0]): self.visit(value)
                for key, value in zip(node.keys, node.values, strict=True)}  # fmt: skip

    def _on_unary_op(self, node: ast.UnaryOp) -> Any:
        value = self.visit(node.operand)
        return (
            not self.truth(value)
            if isinstance(node.op, ast.Not)
            else self.trial.do(_UNARY[type(node.op).__name__], value)
        )

    def _on_bin_op(self, node: ast.BinOp) -> Any:
        return self._operated(node.op, self.visit(node.left), self.visit(node.right), hasattr(node, "in_place"))

    def _operated(self, op: ast.operator, left: Any, right: Any, in_place: bool = False) -> Any:
        name = _BINARY.get(type(op).__name__)
        if name is None:
            raise Unknown(type(op).__name__)
        numbers = [each for each in (left, right) if type(each) is int and abs(each) > _LARGEST]
        plain = not any(isinstance(each, (Tensor, np.ndarray)) for each in (left, right))
        if plain and numbers and (name == "pow" or any(hasattr(each, "__len__") for each in (left, right))):
            raise Unknown("a large number")
        return self.trial.do(getattr(operator, f"i{name.rstrip('_')}" if in_place else name), left, right)

    def _on_bool_op(self, node: ast.BoolOp) -> Any:
        value: Any = None
        for each in node.values:
            value = self.visit(each)
            if each is not node.values[-1] and self.truth(value) is isinstance(node.op, ast.Or):
                break
        return value

    def _on_compare(self, node: ast.Compare) -> Any:
        left, result = self.visit(node.left), None
        for op, each in zip(node.ops, node.comparators, strict=True):
            right = self.visit(each)
            if isinstance(op, (ast.Is, ast.IsNot)):
                result = (left is right) is isinstance(op, ast.Is)
            else:
                result = self.trial.do(_COMPARED[type(op).__name__], left, right)
            if each is not node.comparators[-1] and not self.truth(result):
                break
            left = right
        return result

    def _on_if_exp(self, node: ast.IfExp) -> Any:
        return self.visit(node.body if self.truth(self.visit(node.test)) else node.orelse)

    def _on_list_comp(self, node: ast.ListComp | ast.GeneratorExp) -> Any:
        found: list[Any] = []
        before = dict(self.own)
        self._comprehended(node.generators, lambda: found.append(self.visit(node.elt)))
        self.own = before
        return found

    _on_generator_exp = _on_list_comp

    def _comprehended(self, generators: list[ast.comprehension], take: Any) -> None:
        if not generators:
            take()
            return
        first, *rest = generators
        for each in self.trial.iterated(self.visit(first.iter)):
            self._assign(first.target, each)
            if all(self.truth(self.visit(test)) for test in first.ifs):
                self._comprehended(rest, take)

    def truth(self, value: Any) -> bool:
        """Return the truth value of a value."""
        return bool(self.trial.do(bool, value))

    def _on_joined_str(self, node: ast.JoinedStr) -> str:
        return "".join(map(self.visit, node.values))

    def _on_formatted_value(self, node: ast.FormattedValue) -> str:
        value = self.visit(node.value)
        spec = "" if node.format_spec is None else self.visit(node.format_spec)
        return str(self.trial.do(format, repr(value) if node.conversion >= 0 else value, spec))

    def _on_call(self, node: ast.Call) -> Any:
        function = self.visit(node.func)
        if function is print:
            with contextlib.suppress(Unknown):
                self._items(node.args)
            return None
        kwargs: dict[str, Any] = {}
        for each in node.keywords:
            value = self.visit(each.value)
            kwargs |= {each.arg: value} if each.arg else self.trial.do(dict, value)
        return called(self.trial, function, tuple(self._items(node.args)), kwargs, self.depth)

    # Statements -------------------------------------------------------------------------------------

    def run(self, statements: list[ast.stmt]) -> None:
        """Run statements."""
        for each in statements:
            self.visit(each)

    def _on_expr(self, node: ast.Expr) -> None:
        self.visit(node.value)

    def _on_pass(self, node: ast.Pass) -> None:
        pass

    def _on_assign(self, node: ast.Assign) -> None:
        value = self.visit(node.value)
        for each in node.targets:
            self._assign(each, value)

    def _assign(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name):
            self.own[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)) and not any(isinstance(x, ast.Starred) for x in target.elts):
            values = list(self.trial.iterated(value))
            if len(values) != len(target.elts):
                raise Failed("values to unpack")
            for each, part in zip(target.elts, values, strict=True):
                self._assign(each, part)
        else:
            raise Unknown("an assignment to a part of an object")

    def _on_aug_assign(self, node: ast.AugAssign) -> None:
        if not isinstance(node.target, ast.Name):
            raise Unknown("an assignment to a part of an object")
        before = self.visit(ast.Name(node.target.id, ast.Load()))
        self.own[node.target.id] = self._operated(node.op, before, self.visit(node.value), in_place=True)

    def _on_return(self, node: ast.Return) -> None:
        raise _Returned(None if node.value is None else self.visit(node.value))

    def _on_if(self, node: ast.If) -> None:
        self.run(node.body if self.truth(self.visit(node.test)) else node.orelse)

    def _on_for(self, node: ast.For) -> None:
        for each in self.trial.iterated(self.visit(node.iter)):
            self._assign(node.target, each)
            self.run(node.body)
        self.run(node.orelse)

    def _on_assert(self, node: ast.Assert) -> None:
        if not self.truth(self.visit(node.test)):
            raise Failed("an assertion")

    def _on_raise(self, node: ast.Raise) -> None:
        raise Failed("an error of the user's")


def evaluated(trial: Trial, text: str | ast.expr, outer: Mapping[str, Any], own: dict[str, Any] | None = None) -> Any:
    """Return the value of an expression in a trial."""
    node = ast.parse(text, mode="eval").body if isinstance(text, str) else text
    return Interpreter(trial, outer, own).visit(node)


#: How remedies name the package, if the user's names do not.
NAMES = {"nn": nn, "torch": sys.modules["tinytorch"]}


def called(trial: Trial, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], depth: int = 0) -> Any:
    """Return the result of a call in a trial: what is the user's is followed, the rest called.

    Args:
        trial: the trial.
        function: a function, method, class or module; a copy, unless it is the user's.
        args, kwargs: the arguments: copies.
        depth: in how many functions' calls the call is.
    """
    if depth > 12:
        raise Unknown("deep calls")
    if isinstance(function, nn.Module):
        if trial.is_known(function):
            return trial.do(function.forward, *args, **kwargs)
        forward = static(function, "forward")
        if forward.__func__ is nn.Sequential.forward and len(args) == 1:
            (value,) = args
            for layer in trial.iterated(function):
                value = called(trial, layer, (value,), {}, depth + 1)
            return value
        function = forward
    if isinstance(function, MethodType) and is_users(function.__func__):
        function, args = function.__func__, (function.__self__, *args)
    if isinstance(function, FunctionType) and is_users(function) and not trial.may_call(function):
        return _followed(trial, function, args, kwargs, depth)
    return trial.apply(function, args, kwargs)


def _followed(trial: Trial, function: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any], depth: int) -> Any:
    """Return the result of a function of the user's, whose source is evaluated."""
    plain = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
    try:
        tree = function_tree(function)
        bound = inspect.signature(function).bind(*args, **kwargs)
        cells = inspect.getclosurevars(function).nonlocals if function.__closure__ else {}
    except TypeError as error:
        raise Failed(str(error)) from error
    except (OSError, SyntaxError, ValueError) as error:
        raise Unknown("no source") from error
    if hasattr(function, "__wrapped__") or function.__code__.co_flags & plain or not isinstance(tree, ast.FunctionDef):
        raise Unknown(function.__name__)
    given = bound.arguments
    bound.apply_defaults()
    own = {name: value if name in given else trial.private(value) for name, value in bound.arguments.items()}
    interpreter = Interpreter(trial, {**function.__globals__, **cells}, own, depth + 1)
    try:
        interpreter.run(tree.body)
    except _Returned as returned:
        return returned.args[0]
    return None


def variables_of(step: Step) -> dict[str, Any]:
    """Return the variables of a frame, local ones first."""
    return dict(step.frame.f_globals) | locals_of(step.frame)


def onward(
    trial: Trial,
    failure: Failure,
    index: int,
    value: Any,
    changed: dict[str, Any] | None = None,
    node: ast.expr | None = None,
) -> None:
    """Go on from a step of an error with a value in the place of what failed there, as far as it is known.

    Args:
        trial: the trial.
        failure: what failed.
        index: the step.
        value: the value.
        changed: other values of variables of this step: copies.
        node: an expression of this step that was evaluated before; it has the value, instead of what failed.

    Raises:
        Failed: what follows fails.
    """
    child: Any = None
    try:
        for step in reversed(failure.steps[: index + 1]):
            own = locals_of(step.frame).get("self")
            if step.users:
                value, changed, node = _rest_of(trial, step, value, changed, node), None, None
            elif step.code.co_name == "_call_impl":
                child = own
            elif step.code.co_name == "forward" and type(own) is nn.Sequential:
                layers = list(own._modules.values())
                places = [k for k, each in enumerate(layers) if each is child]
                for layer in layers[places[0] + 1 :] if places else ():
                    value = called(trial, trial.private(layer), (value,), {})
            elif step.code.co_name not in ("_call_with_hooks", "__call__"):
                return
    except Unknown:
        return


def works(failure: Failure, text: str, place: ast.expr | None = None) -> bool:
    """Return whether code in the place of an expression works to the end of the statement.

    The expression is by default the one that failed. What cannot be known counts as working, and so does the same
    mistake at another place of the statement.
    """
    trial, step = failure.trial, failure.user
    trial.renew()
    try:
        (made,) = ast.parse(text).body
        value = evaluated(trial, made.value, NAMES | failure.variables)  # type: ignore[attr-defined]
        if isinstance(made, ast.Expr):
            body, k, node = statements_from(step, place)
            interpreter = Interpreter(trial, variables_of(step))
            interpreter.given[id(node)] = value
            interpreter.visit(body[k])
    except Failed as error:
        return plain(str(error)) == plain(failure.text)
    except (Unknown, _Returned, SyntaxError, ValueError, AttributeError):
        return True
    return True


def plain(text: str) -> str:
    """Return a message without its numbers, and what it says in brackets: which operation, of which shapes."""
    return re.sub(r"\d+|\(.*?\)", "", text)


def _rest_of(trial: Trial, step: Step, value: Any, changed: dict[str, Any] | None, node: ast.expr | None) -> Any:
    """Return what a function returns, of which the rest runs with a value for the expression that failed."""
    body, k, node = statements_from(step, node)
    interpreter = Interpreter(trial, variables_of(step), changed)
    interpreter.given[id(node)] = value
    try:
        interpreter.run(body[k:])
    except _Returned as returned:
        return returned.args[0]
    raise Unknown("what follows")


def statements_from(step: Step, node: ast.expr | None = None) -> tuple[list[ast.stmt], int, ast.expr]:
    """Return the block that runs in a step, the place of its statement in it, and the expression that failed there.

    Args:
        step: the step.
        node: another expression of the function, which is looked for in its place.
    """
    tree = step.tree()
    if tree is None or step.place < 0:
        raise Unknown("no source")
    place = _place_of(node) if node is not None else tuple(list(step.code.co_positions())[step.place // 2])
    bodies = [each for part in ast.walk(tree) for each in (getattr(part, "body", 0), getattr(part, "orelse", 0))]
    for body in [each for each in bodies if isinstance(each, list)]:
        for k, statement in enumerate(body):
            if isinstance(statement, (ast.Assign, ast.AugAssign, ast.Expr, ast.Return)):
                for part in ast.walk(statement):
                    if isinstance(part, ast.expr) and _place_of(part) == place:
                        if any(isinstance(each, _LOOPS) and part in ast.walk(each) for each in ast.walk(statement)):
                            raise Unknown("what the other items give")
                        return body, k, part
    raise Unknown("what follows")


def _place_of(node: ast.expr) -> tuple[int | None, ...]:
    return node.lineno, node.end_lineno, node.col_offset, node.end_col_offset


def values_before(trial: Trial, failure: Failure, statement: ast.stmt, names: set[str]) -> dict[str, Any]:
    """Return the values that variables had before a statement of the user's function: of those that changed since."""
    step, tree = failure.user, failure.user.tree()
    since = [each for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
             and statement.lineno <= (each := node).lineno < step.line] if tree is not None else []  # fmt: skip
    if not names & {each.id for each in since}:
        return {}
    given = next((given for module, given in module_calls(failure.steps)[::-1] if _runs(step, module)), None)
    if not isinstance(tree, ast.FunctionDef) or statement not in tree.body or given is None:
        raise Unknown("a variable that has changed")
    own = {name: trial.private(value) for name, value in given.items()}
    interpreter = Interpreter(trial, variables_of(step), own)
    interpreter.run(tree.body[: tree.body.index(statement)])
    return interpreter.own


def _runs(step: Step, module: Any) -> bool:
    return getattr(inspect.unwrap(type(module).forward), "__code__", None) is step.code
