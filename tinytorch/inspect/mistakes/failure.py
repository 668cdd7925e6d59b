"""`Failure`: what is known of a call that failed, for the functions that derive a remedy from it."""

from __future__ import annotations

import ast
import builtins
import contextlib
import copy
import functools
import inspect
import itertools
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from tinytorch.core.names import module_of
from tinytorch.core.tensor import Tensor
from tinytorch.inspect.mistakes.stack import N, Step, locals_of
from tinytorch.inspect.mistakes.trial import Trial, Unknown, is_users, static
from tinytorch.inspect.source import around, assigned_attribute, assignment, parsed
from tinytorch.ops.overrides import ASKING, NOT_GIVEN

__all__ = [
    "Failure", "assigned", "described", "is_layer", "is_model", "module_text", "named_arguments", "operand",
    "with_texts",
]  # fmt: skip


class Text(str):
    """The text of an argument whose value is not known."""

    __slots__ = ()


class Failure:
    """What is known of a call that failed.

    Attributes:
        error: the error; `text` is its message.
        steps: the frames from the outermost to the one that raised the error.
        user: the user's frame that called the package, or raised the error.
        inside: whether the package raised the error; `entrance` is then the frame of the function that the user called.
        foreign: whether the user called another library, which called the package.
        function: the function of the package that the user called, or None if it cannot be told; `name` is its name.
        arguments: the arguments of that call by their names.
        modules: the modules whose calls have not returned, the outermost first.
        module: the innermost of these, or None; `path` is its name in the outermost module that has it.
        given: the arguments of its call by their names.
        modes: the modes that were on.
        trial: the mode in which remedies are tried.
    """

    def __init__(self, error: BaseException, steps: list[Step], user: int, trial: Trial, modes: Any) -> None:
        self.error, self.text = error, str(error)
        self.steps, self.user = steps, steps[user]
        self.trial, self.modes = trial, modes
        self.name = ""
        self.function: Any = None
        self.self: Any = None
        self.arguments: dict[str, Any] = {}
        self.calls_module = False
        inner = [step for step in steps[user + 1 :] if step.ours]
        self.entrance: Step | None = next((step for step in inner if step.code not in ASKING), next(iter(inner), None))
        self.inside = self.entrance is not None
        calls = module_calls(steps)
        self.modules = [module for module, _ in calls]
        self.module: Any = None
        self.path = ""
        self.given: dict[str, Any] = {}
        if calls:
            self.module, self.given = calls[-1]
            self.path = _path_of(self.module, self.modules)
        between = itertools.takewhile(lambda step: step is not self.entrance, steps[user + 1 :])
        self.foreign = any(step.installed for step in between)
        if self.foreign:
            return
        if self.entrance is not None:
            self._enter(self.entrance)
        else:
            self._find_called()

    def _enter(self, step: Step) -> None:
        """Find which function of the package the user called, and with which arguments, from its frame."""
        code, found = step.code, locals_of(step.frame)
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        called: Any = found.get("self") if code.co_name == "_call_impl" else found.get("function")
        if hasattr(called, "_modules") and "args" in found and "kwargs" in found:  # (also the compiler's tracer)
            self.calls_module = True
            self.name, self.function = type(called).__name__, called
            self.arguments = named_arguments(called.forward, found["args"], found["kwargs"])
            return
        op: Any = found.get("OP")
        if hasattr(op, "caller"):
            self.name, self.function = op.name.strip("_"), op.caller
            if names == ("input",) or not names:  # (of more arguments by place and by name)
                given = [found[name] for name in names if name in found]
                self.arguments = dict(zip(op.arguments, [*given, *found.get("args", ())], strict=False))
                self.arguments |= {k: x for k, x in found.get("kwargs", {}).items() if names or k in op.position}
            else:
                self.arguments = {name: found[name] for name in names if name in found}
        elif hasattr(found.get("function"), "raw") or code in ASKING:
            function = found["function"]
            self.name, self.function = getattr(function, "name", function.__name__), function
            by_place = [found[name] for name in ("self", "first", "other", "value", "x", "y") if name in found]
            by_place = [each for each in (*by_place, *found.get("more", ())) if each is not NOT_GIVEN]
            named = found.get("named", found.get("kwargs", {}))
            self.arguments = named_arguments(function, by_place or found.get("args", ()), named)
        else:
            self.arguments = {name: found[name] for name in names if name in found}
            flags, k = code.co_flags, len(names)
            if flags & inspect.CO_VARARGS:
                self.arguments[code.co_varnames[k]] = found.get(code.co_varnames[k], ())
                k += 1
            if flags & inspect.CO_VARKEYWORDS:
                self.arguments |= found.get(code.co_varnames[k], {})
            self.name = code.co_name
            self.function = self.called()
            if code.co_name == "__new__" and names and isinstance(found.get(names[0]), type):
                self.function = self.arguments.pop(names[0])
                self.name = self.function.__name__
            elif code.co_name == "__init__" and "self" in found:
                self.self = self.arguments.pop("self")
                self.function, self.name = type(self.self), type(self.self).__name__
            elif names[:1] == ("self",) and not isinstance(found.get("self"), Tensor):
                self.self = self.arguments.pop("self")
                self.name = f"{type(self.self).__name__.lstrip('_')}.{code.co_name}"
        first = next(iter(self.arguments), "")
        if first in ("x", "self") and isinstance(self.arguments[first], Tensor) and "input" not in self.arguments:
            self.arguments = {"input" if name == first else name: value for name, value in self.arguments.items()}
        self.arguments = {name: value for name, value in self.arguments.items() if type(value) is not object}
        if "deepcopy" in code.co_name:
            self.arguments.pop("memo", None)  # (of objects that have been copied, by their identities)
        self._name_as_called(code.co_name)
        args, method = self.arguments.get("args"), getattr(Tensor, self.name.rstrip("_"), None)
        if isinstance(args, tuple) and args and isinstance(args[0], Tensor) and method is not None:
            self.arguments = named_arguments(method, args, {**self.arguments, "args": None})
            del self.arguments["args"]
        if self.function is None and isinstance(next(iter(self.arguments.values()), None), Tensor):
            self.function = getattr(Tensor, self.name, None)

    def _name_as_called(self, name: str) -> None:
        """Give a function that has no name of its own the one that the user called it by."""
        call = self.call
        if isinstance(call, ast.Call) and self.name == name:
            self.name = ast.unparse(call.func).rpartition(".")[2]
        elif isinstance(call, ast.BinOp):
            self.name = _NAMES.get(type(call.op).__name__, self.name)

    def _find_called(self) -> None:
        """Find which function the user called with wrong arguments, if Python found that before the call."""
        function = self.called()
        if function is None and isinstance(self.call, ast.Call) and isinstance(self.call.func, ast.Attribute):
            name = self.call.func.attr
            function = getattr(Tensor, name, None) if self.text.startswith(f"{name}(") else None
        module = module_of(function) or module_of(type(function))
        if isinstance(self.error, TypeError) and function is not None and module.partition(".")[0] == "tinytorch":
            self.function = function
            self.name = getattr(function, "__name__", type(function).__name__)
            call = self.call
            if isinstance(call, ast.Call):
                values = [self._value_or_text(each) for each in call.args]
                named = {each.arg: self._value_or_text(each.value) for each in call.keywords if each.arg}
                self.arguments = named_arguments(function, values, named)

    def at(self, call: ast.expr) -> Failure:
        """Return what is known of another call of the user's function, as if that had failed."""
        again = copy.copy(self)
        vars(again)["call"] = call
        again.function, again.self, again.arguments, again.name = again.called(), None, {}, ""
        again.calls_module = hasattr(again.function, "_modules") and not isinstance(again.function, type)
        if isinstance(call, ast.Call):
            again.name = ast.unparse(call.func).rpartition(".")[2]
            owner = [call.func.value] if isinstance(call.func, ast.Attribute) and again.of_method else []
            again.function = again.function or (getattr(Tensor, again.name, None) if owner else None)
            values = [self._value_or_text(each) for each in (*owner, *call.args)]
            named = {each.arg: self._value_or_text(each.value) for each in call.keywords if each.arg}
            forward = again.function.forward if again.calls_module else again.function
            again.arguments = named_arguments(forward, values, named)
        return again

    def _value_or_text(self, node: ast.expr) -> Any:
        """Return the value of an expression, or its text where it would have to be computed."""
        simple = isinstance(node, (ast.Name, ast.Attribute, ast.Constant, ast.Subscript))
        return self.value(node) if simple else Text(ast.unparse(node))

    # What the user wrote ----------------------------------------------------------------------------

    @functools.cached_property
    def call(self) -> ast.expr | None:
        """The expression of the user's code that failed, or None if its source is not to be found."""
        return self.user.expression()

    @property
    def calling(self) -> ast.Call:
        """The call that failed.

        Raises:
            Unknown: another expression failed.
        """
        if not isinstance(self.call, ast.Call):
            raise Unknown("no call")
        return self.call

    @property
    def member(self) -> ast.Attribute:
        """The member that the user's expression looks for, or calls.

        Raises:
            Unknown: it is another expression.
        """
        node = self.call.func if isinstance(self.call, ast.Call) else self.call
        if not isinstance(node, ast.Attribute):
            raise Unknown("no member")
        return node

    def parts(self, *kinds: type[N]) -> list[N]:
        """Return the nodes of some kinds of the expression that failed."""
        return [] if self.call is None else [node for node in ast.walk(self.call) if isinstance(node, kinds)]

    @functools.cached_property
    def variables(self) -> dict[str, Any]:
        """The variables of the user's frame, local ones first; of a comprehension, also those of its function."""
        found = dict(self.user.frame.f_globals)
        if self.user.code.co_name.startswith("<"):
            k = next(k for k, each in enumerate(self.steps) if each is self.user)
            outer = [each for each in self.steps[:k] if each.users and each.file == self.user.file]
            found |= locals_of(outer[-1].frame) if outer else {}
        return found | locals_of(self.user.frame)

    def value(self, node: ast.AST | None, variables: Mapping[str, Any] | None = None) -> Any:
        """Return the value of a name or a chain of attributes; None for anything else.

        Args:
            node: the expression.
            variables: the variables by their names; by default those of the user's frame.
        """
        if isinstance(node, ast.Name):
            known = self.variables if variables is None else variables
            return known[node.id] if node.id in known else getattr(builtins, node.id, None)
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Attribute):
            owner = self.value(node.value, variables)
            if isinstance(owner, Tensor) and node.attr == "grad":
                return owner._grad  # (`grad` may warn)
            if (not isinstance(owner, type) and isinstance(owner, ModuleType)) or not is_users(type(owner)):
                return getattr(owner, node.attr, None)
            with contextlib.suppress(Unknown):  # (no code of the user's runs)
                return static(owner, node.attr)
            return None
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            owner = self.value(node.value, variables)
            key: Any = node.slice.value
            with contextlib.suppress(LookupError, TypeError):
                return owner[key] if isinstance(owner, (list, tuple, dict)) else None
        return None

    def assignment(self, node: ast.AST | None) -> Any:
        """Return the last assignment of a variable of the user's function before the line that failed, or None."""
        tree = self.user.tree()
        if tree is None or not isinstance(node, ast.Name):
            return None
        found, module = assignment(tree, node.id, self.user.line), parsed(self.user.file, self.user.frame.f_globals)
        if found is None and module is not None and node.id not in self.user.code.co_varnames:
            body = [each for each in module.body if not isinstance(each, (ast.FunctionDef, ast.ClassDef))]
            return assignment(ast.Module(body, []), node.id, len(ast.unparse(module)))
        return found

    @staticmethod
    def assigned_with(statement: ast.Assign, text: str) -> str:
        """Return an assignment with a text, such as a call of a method, behind what is assigned."""
        targets = " = ".join([ast.unparse(each) for each in statement.targets])
        return f"{targets} = {operand(statement.value)}{text}"

    def of_loop(self, node: ast.AST | None) -> bool:
        """Return whether an expression is a variable that a `for` loop of the user's function assigns."""
        tree = self.user.tree()
        if tree is None or not isinstance(node, ast.Name) or self.assignment(node) is not None:
            return False
        targets = [each.target for each in ast.walk(tree) if isinstance(each, ast.For)]
        return any(isinstance(part, ast.Name) and part.id == node.id for each in targets for part in ast.walk(each))

    def origin(self, name: str) -> ast.expr | None:
        """Return the expression that computed an argument: what was assigned to it, if the user gave a variable."""
        node = self.node(name)
        assigned = self.assignment(node)
        return node if assigned is None else assigned.value

    def statement(self) -> ast.stmt | None:
        """Return the statement in the line that failed; of a compound one, the header with an empty body."""
        for text in (self.user.text(), f"{self.user.text()} pass"):
            try:
                (statement,) = ast.parse(text).body
            except (SyntaxError, ValueError):
                continue
            return statement
        tree = self.user.tree()
        return None if tree is None else around(tree, self.user.line)

    def named(self, name: str, default: str) -> str:
        """Return how the user's file names a module of the package: "F" for `nn.functional`."""
        for key, value in self.variables.items():
            if isinstance(value, ModuleType) and value.__name__ == f"tinytorch.{name}":
                return key
        return default

    def called(self) -> Any:
        """Return the function that the user's expression calls, or None."""
        call = self.call
        return self.value(call.func) if isinstance(call, ast.Call) else None

    @property
    def of_method(self) -> bool:
        """Whether the user's expression calls a method of a tensor or of another object."""
        call = self.call
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            return False
        owner = self.value(call.func.value)
        return not isinstance(owner, (ModuleType, type)) and not self.calls_module

    def node(self, name: str) -> ast.expr | None:
        """Return the expression that the user wrote for an argument, or None."""
        call, names = self.call, list(self.arguments)
        if isinstance(call, ast.BinOp):
            return {name_: side for name_, side in zip(names, (call.left, call.right), strict=False)}.get(name)
        if isinstance(call, ast.Attribute):
            return call.value if name == "input" else None
        if isinstance(call, ast.Subscript):
            if name == "value":
                return getattr(self.statement(), "value", None)
            return call.value if name in ("self", "input") else call.slice
        if not isinstance(call, ast.Call):
            return None
        for each in call.keywords:
            if each.arg == name:
                return each.value
        written = list(call.args)
        if self.of_method and self.self is None and isinstance(call.func, ast.Attribute):
            written.insert(0, call.func.value)
        elif names[:1] in (["self"], ["cls"]):
            names = names[1:]
        if name not in names or any(isinstance(each, ast.Starred) for each in written):
            return None
        return dict(zip(names, written, strict=False)).get(name)

    def said(self, name: str) -> str:
        """Return how the user wrote an argument: `out[0]`; the argument's name if that cannot be told."""
        node = self.node(name)
        return name if node is None else operand(node)

    def rewritten(self, **changes: str) -> str:
        """Return the user's expression with other texts for some arguments; {} in a text stands for the old one.

        Without the source only the changed arguments are returned.
        """
        nodes = {name: self.node(name) for name in changes}
        texts = {name: text.replace("{}", self.said(name)) for name, text in changes.items()}
        call = self.call
        if call is None or any(node is None for node in nodes.values()):
            return ", ".join(texts.values())
        return self.unparsed(with_texts(call, {id(node): texts[name] for name, node in nodes.items()}))

    def replaced(self, node: ast.AST, text: str) -> str:
        """Return the user's expression with another text for a part of it."""
        assert self.call is not None
        return self.in_text(self.call, node, text)

    @classmethod
    def in_text(cls, whole: ast.AST, part: ast.AST, text: str) -> str:
        """Return an expression with another text for a part of it."""
        return cls.unparsed(with_texts(whole, {id(part): text}))

    def called_as(self, text: str) -> str:
        """Return the user's call of another function; {} in the text stands for the old one."""
        func = self.calling.func
        return self.in_text(self.calling, func, text.replace("{}", ast.unparse(func)))

    def with_keywords(self, **texts: str) -> str:
        """Return the user's call with further keywords, or other texts for its own."""
        call = self.calling
        kept = [each for each in call.keywords if each.arg not in texts]
        more = [ast.keyword(name, ast.parse(text, mode="eval").body) for name, text in texts.items()]
        return self.unparsed(ast.Call(call.func, call.args, [*kept, *more]))

    def with_input(self, text: str, name: str) -> str:
        """Return the user's expression with another text for an argument of the innermost module; {} is the old one."""
        value = self.given.get(name)
        for argument, each in self.arguments.items():
            if each is value and (not self.is_users_call or argument == name):
                return self.rewritten(**{argument: text})
        return text.replace("{}", name)

    @staticmethod
    def unparsed(node: ast.AST) -> str:
        """Return an expression as text, with double quotes."""
        text = ast.unparse(ast.fix_missing_locations(node))
        target = getattr(node, "in_place", "")
        if target and isinstance(node, ast.BinOp):
            if ast.unparse(node.left) == target:
                sign = ast.unparse(ast.AugAssign(ast.Name("x", ast.Store()), node.op, ast.Name("y"))).split()[1]
                text = f"{target} {sign} {ast.unparse(node.right)}"
            else:
                text = f"{target} = {text}"
        return text if '"' in text else text.replace("'", '"')

    # What it was about ------------------------------------------------------------------------------

    @functools.cached_property
    def learns(self) -> bool:
        """Whether a gradient may flow through what the user's expression computes, so that it must not be detached.

        That is so in a module, in what a function returns, and before a call of `backward` in a function that runs.
        """
        before = self.steps[: next(k for k, step in enumerate(self.steps) if step is self.user)]
        if any(step.ours and step.code.co_name == "_call_impl" for step in before):
            return True
        if isinstance(self.statement(), ast.Return):
            return True
        for step in [each for each in (*before, self.user) if each.users]:
            first = min([each.lineno for each in step.loops()], default=step.line)
            calls = [each for each in step.nodes(ast.Attribute) if each.attr in ("backward", "grad")]
            if any(each.lineno >= first for each in calls):
                return True
        return False

    @property
    def is_unused(self) -> bool:
        """Whether the program does not go on with what the user's expression computes."""
        statement = self.statement()
        whole = statement.value if isinstance(statement, ast.Expr) else None
        shown = isinstance(whole, ast.Call) and ast.unparse(whole.func) == "print"
        return whole is not None and self.call is not None and (shown or ast.unparse(whole) == ast.unparse(self.call))

    @property
    def is_users_call(self) -> bool:
        """Whether the user called the innermost module, so that its arguments are in the user's words."""
        return self.calls_module and self.function is self.module


#: What the operators of Python call.
_NAMES = {"Add": "add", "Sub": "sub", "Mult": "mul", "Div": "div", "MatMult": "matmul", "Pow": "pow",
          "BitAnd": "bitwise_and", "BitOr": "bitwise_or", "BitXor": "bitwise_xor"}  # fmt: skip


def module_calls(steps: list[Step]) -> list[tuple[Any, dict[str, Any]]]:
    """Return the modules whose calls have not returned, the outermost first, and the arguments of these calls.

    The compiler's tracer calls `forward` itself.
    """
    calls: list[tuple[Any, dict[str, Any]]] = []
    for step in steps:
        code = step.code
        if step.ours and code.co_name == "_call_impl":
            found = locals_of(step.frame)
            if "self" in found:
                given = named_arguments(found["self"].forward, found.get("args", ()), found.get("kwargs", {}))
                calls.append((found["self"], given))
        elif code.co_name == "forward" and code.co_varnames[:1] == ("self",):
            found = locals_of(step.frame)
            module = found.get("self")
            if hasattr(module, "_modules") and not (calls and calls[-1][0] is module):
                names = code.co_varnames[1 : code.co_argcount] if step.ours else ()  # (the user's may have changed)
                calls.append((module, {name: found[name] for name in names if name in found}))
    return calls


class _Replacing(ast.NodeTransformer):
    """Replaces marked expressions by texts."""

    def __init__(self, texts: dict[int, str]) -> None:
        self.texts = texts

    def visit(self, node: ast.AST) -> Any:
        """Return the node, or what replaces it."""
        text = self.texts.get(getattr(node, "mark", 0))
        if text is not None:
            (statement,) = ast.parse(f"_[{text}]").body  # (an index may have slices)
            return statement.value.slice  # type: ignore[attr-defined]
        return self.generic_visit(node)


def _copy(node: ast.AST, marked: Mapping[int, Any]) -> Any:
    """Return a copy of a tree in which the nodes with these identities have an attribute `mark`."""
    fields = {}
    for name, value in ast.iter_fields(node):
        if isinstance(value, ast.AST):
            value = _copy(value, marked)
        elif isinstance(value, list):
            value = [_copy(each, marked) if isinstance(each, ast.AST) else each for each in value]
        fields[name] = value
    again = type(node)(**fields)
    if hasattr(node, "in_place"):
        again.in_place = node.in_place  # type: ignore[attr-defined]
    if id(node) in marked:
        again.mark = id(node)  # type: ignore[attr-defined]
    return again


def with_texts(whole: ast.AST, texts: dict[int, str]) -> Any:
    """Return a copy of an expression with other texts for its parts, by their identities."""
    return _Replacing(texts).visit(_copy(whole, texts))


def operand(node: ast.expr) -> str:
    """Return an expression as text to which a method call can be appended."""
    text = ast.unparse(node)
    simple = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.List, ast.Tuple, ast.Constant)
    return text if isinstance(node, simple) else f"({text})"


def assigned(failure: Failure, node: ast.AST) -> tuple[ast.Assign | None, Any]:
    """Return the assignment of a variable or an attribute, and its place: a line of the user's file, or "file:line"."""
    if isinstance(node, ast.Attribute):
        owner = failure.value(node.value)
        found = assigned_attribute(type(owner), node.attr) if hasattr(owner, "_modules") else None
        return (found[0], f"{found[1]}:{found[0].lineno}") if found is not None else (None, 0)
    statement = failure.assignment(node)
    return statement, getattr(statement, "lineno", 0)


def is_layer(module: Any, *names: str) -> bool:
    """Return whether a module is of a class of `torch.nn` with one of these names, or derived from it."""
    return any(each.__name__ in names and module_of(each).startswith("tinytorch.nn") for each in type(module).__mro__)


def is_model(value: Any) -> bool:
    """Return whether a value is a module with parameters."""
    return hasattr(value, "_modules") and not isinstance(value, type) and any(True for _ in value.parameters())


def named_arguments(function: Any, args: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call by the function's names, also where they do not fit its signature."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return {**{f"argument {k + 1}": value for k, value in enumerate(args)}, **kwargs}
    names = [each.name for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    rest = [each.name for each in parameters if each.kind is each.VAR_POSITIONAL]
    args = list(args)
    found = dict(zip(names, args, strict=False))
    if len(args) > len(names):
        if rest:
            found[rest[0]] = tuple(args[len(names) :])
        else:
            found |= {f"argument {k + 1}": args[k] for k in range(len(names), len(args))}
    return {**found, **kwargs}


def _path_of(module: Any, modules: list[Any]) -> str:
    """Return the name of a module in the outermost of the modules that has it."""
    for root in modules:
        for path, each in root.named_modules(remove_duplicate=False):
            if each is module:
                return str(path).replace("_orig_mod.", "")
    return ""


def module_text(module: Any) -> str:
    """Return a module as one line, without its submodules."""
    try:
        extra = "" if module._modules else module.extra_repr()
    except Exception:
        extra = ""
    name = type(module).__name__
    text = f"{name}({extra})" if extra or not getattr(module, "_modules", None) else name
    return _cut(" ".join(text.split()), 160)


def _cut(text: str, size: int) -> str:
    return text if len(text) <= size else f"{text[: size - 3]}..."


def described(value: Any, depth: int = 0) -> str:
    """Return a value as notes show it: of tensors the dtype and the shape."""
    if isinstance(value, Tensor):
        try:
            dtype = str(value.dtype).rpartition(".")[2]
            return f"{dtype} {list(value.shape)}" + ("" if str(value.device) == "cpu" else f" on {value.device}")
        except Exception:
            return type(value).__name__
    if isinstance(value, (list, tuple)):
        if depth > 1:
            return type(value).__name__
        found = [described(each, depth + 1) for each in value[:4]]
        inner = ", ".join(found) + (f", ... ({len(value)} in all)" if len(value) > 4 else "")
        if isinstance(value, list):
            return f"[{inner}]"
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, dict):
        if depth > 1:
            return "dict"
        found = [f"{key!r}: {described(each, depth + 1)}" for key, each in list(value.items())[:4]]
        return "{" + _cut(", ".join(found), 120) + "}"
    if isinstance(value, Text):
        return _cut(str(value), 60)
    if value is None or isinstance(value, (bool, int, float, complex, str)):
        return _cut(repr(value), 40)
    if type(value).__module__ == "numpy" and hasattr(value, "shape"):
        return f"ndarray {getattr(value, 'dtype', '')} {list(value.shape)}"
    if module_of(type(value)).startswith("tinytorch") and type(value).__name__ in ("dtype", "device"):
        return str(value)
    return type(value).__name__
