"""Graph breaks: what cannot be compiled runs as Python, and the parts of the function before and after it as programs.

A function is split at the level of statements. The statement that cannot be compiled is the *graph break*; those before
and after it become *parts*, functions of the local variables that they use, each with programs of its own. Of a
compound statement (a loop, an `if`, a `with`, a `try`) the blocks are split in the same way. What runs as Python calls
modules and functions of the user's by the programs of these. A part that cannot be compiled is split again.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import copy
import functools
import inspect
import sys
import types
import weakref
from collections.abc import Callable, Iterable
from typing import Any

from tinytorch.compiler.calls import has_hooks, original
from tinytorch.compiler.liveness import SCOPES, Flow, Names, binding_counts, captures, mentioned, own_nodes
from tinytorch.compiler.policy import OP, policy_of
from tinytorch.compiler.rewriting import OF_FRAMES, OF_OBJECTS
from tinytorch.compiler.sources import (
    as_function,
    code_of,
    definition,
    keep_tree,
    load_lines,
    parsed,
    source_of,
    without_defaults,
)
from tinytorch.compiler.tracing import disabled
from tinytorch.core.names import module_of
from tinytorch.nn.modules.module import Module

#: Names in a function that is split: what stands for a variable that is not bound, and the error of reading one; what
#: finds the compiled form of a function; how a part has ended.
UNBOUND, UNBOUND_ERROR, CALLED = "__unbound__", "__unbound_error__", "__called__"
EXIT, RESULT, OUTS = "__exit__", "__result__", "__outs__"
#: How a part ends: at its end, or by one of these statements of the function around it.
_RETURN, _BREAK, _CONTINUE = 1, 2, 3
#: A function that names one of these is not split: a part has other variables, but the same globals.
_OF_FRAMES = OF_FRAMES - {"super", "globals"}
MOST = 256  # objects for each function (modules, closures) that have programs of their own
_PASSING = 8  # closures with one code, after which they are taken for functions that each call creates
_WAITING = (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith)
_LATER = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class Unbound:
    """Stands for a local variable to which nothing has been assigned."""


class Parts:
    """A function with a compiled form for each choice of the modules among its arguments.

    A method that several modules share, or the body of a loop over modules, has programs for each of these.

    Args:
        function: the function.
        make: returns the compiled form of a function.
    """

    def __init__(self, function: types.FunctionType, make: Callable[[Any], Any]) -> None:
        self.function, self._make = function, make
        self._compiled: dict[tuple[int, ...], Any] = {}
        self._modules: list[Any] = []  # (they keep their ids)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the function returns."""
        key = tuple([id(x) for x in args if isinstance(x, Module)])
        compiled = self._compiled.get(key)
        if compiled is None:
            compiled = self.function
            if len(self._compiled) < MOST:
                compiled = self._compiled[key] = self._make(self.function)
                self._modules += [x for x in args if isinstance(x, Module)]
        return compiled(*args, **kwargs)


class Children:
    """The compiled forms of the functions and modules that a split function calls where it runs as Python.

    Args:
        make: returns the compiled form of a function or module.

    Attributes:
        known: by code, the reason why a function cannot be compiled, its line, and that of the user's code.
    """

    def __init__(self, make: Callable[[Any], Any]) -> None:
        self._make = make
        self.known: dict[types.CodeType, tuple[str, int | None, Any]] = {}
        self._modules: dict[int, Any] = {}
        self._functions: weakref.WeakKeyDictionary[Any, Parts | None] = weakref.WeakKeyDictionary()
        self._closures: dict[Any, int] = {}  # by code, how many functions with a closure have been seen

    def called(self, x: Any) -> Any:
        """Return what is called in the place of an object: its compiled form, or the object itself."""
        if isinstance(x, Module):
            return self._module(x)
        if isinstance(x, types.FunctionType):
            return self._function(x) or x
        if isinstance(x, types.MethodType) and isinstance(x.__func__, types.FunctionType):
            parts = None if x in disabled else self._function(x.__func__)
            return x if parts is None else types.MethodType(parts, x.__self__)
        return x

    def _module(self, x: Module) -> Any:
        found = self._modules.get(id(x))
        if found is None:
            compiled = len(self._modules) < MOST and x not in disabled and _is_compiled_whole(x)
            found = self._modules[id(x)] = x, self._make(x) if compiled else x  # (the module keeps its id)
        return found[1]

    def _function(self, x: types.FunctionType) -> Parts | None:
        if x in self._functions:
            return self._functions[x]
        parts = Parts(x, self._make) if self._is_followed(x) else None
        self._functions[x] = parts
        return parts

    def _is_followed(self, x: types.FunctionType) -> bool:
        home = module_of(x).partition(".")[0]
        if policy_of(x) is not None or x in disabled or x.__code__.co_flags & _LATER or home == "numpy":
            return False
        if x.__closure__:  # perhaps each call creates another one
            code = x.__code__
            self._closures[code] = self._closures.get(code, 0) + 1
            if self._closures[code] > _PASSING:
                return False
        return home not in sys.stdlib_module_names or home == "__main__"


def _is_compiled_whole(x: Module) -> bool:
    """Return whether a module has a program of its own: a layer of the package that is one operation has none."""
    if "_orig_mod" in x._modules or type(x).__call__ is not Module.__call__:
        return False
    return bool(x._modules) or policy_of(type(x)) is None


def split(function: Any, line: int | None, make: Callable[[Any], Any], children: Children, whole: bool = False) -> Any:
    """Return a function that does the same as another one, in parts; None if it cannot be split.

    Args:
        function: a function, a method, or a module, whose `forward` is split.
        line: where it cannot be compiled; None if that is not known: then it is split in the middle.
        make: returns the compiled form of a part.
        children: the compiled forms of what is called elsewhere.
        whole: no statements become parts; only what they call is compiled.
    """
    if isinstance(function, types.FunctionType):
        return _Splitting(function, line, make, children).function(whole)
    if isinstance(function, Module):
        known = type(function).__call__ is Module.__call__
        return _split_module(function, line, make, children, whole) if known else None
    if isinstance(function, functools.partial):
        new = split(function.func, line, make, children, whole)
        return None if new is None else functools.partial(new, *function.args, **function.keywords)
    method = function if isinstance(function, types.MethodType) else getattr(function, "__call__", None)  # noqa: B004
    if not isinstance(method, types.MethodType) or not isinstance(method.__func__, types.FunctionType):
        return None
    new = _Splitting(method.__func__, line, make, children).function(whole)
    return None if new is None else types.MethodType(new, method.__self__)


def _split_module(module: Module, line: int | None, make: Any, children: Children, whole: bool) -> Any:
    kind: Any = type(module)
    before, own = kind.forward, module.__dict__.get("forward")
    forward = original(before) or before
    if own is not None:
        new = children.called(own)
    elif has_hooks(module):  # (they are what is not compiled, and its `forward` is a part)
        new = Parts(forward, make)
    else:
        new = split(forward, line, make, children, whole)
    if new is None:
        return None

    def run(*args: Any, **kwargs: Any) -> Any:
        if type(module).forward is not before or module.__dict__.get("forward") is not own:
            return module.forward(*args, **kwargs)
        return new(module, *args, **kwargs) if own is None else new(*args, **kwargs)

    def run_with_hooks(*args: Any, **kwargs: Any) -> Any:
        return module._call_with_hooks(args, kwargs, run) if has_hooks(module) else run(*args, **kwargs)

    return run_with_hooks


class _Splitting:
    """A function that is split: its syntax tree, and what is known of its variables."""

    def __init__(
        self, function: types.FunctionType, line: int | None, make: Callable[[Any], Any], children: Children
    ) -> None:
        self._function, self._line, self._make, self._children = function, line, make, children
        self._parts: dict[str, Parts] = {}
        self._code = function.__code__

    def function(self, whole: bool) -> Any:
        """Return the function that runs in parts, or None."""
        code, function = self._code, self._function
        if code.co_flags & _LATER:
            return None
        load_lines(code.co_filename, function.__globals__)
        node: Any = source_of(code, False)
        if node is None:
            return None
        node = as_function(node)
        given = [part.func for part in ast.walk(node) if isinstance(part, ast.Call) and part.args]
        if any(isinstance(part, _WAITING) or _reads_frame(part, part in given) for part in ast.walk(node)):
            return None
        self._names = Names(code.co_varnames, code.co_cellvars)
        arguments = [part.arg for part in ast.walk(node.args) if isinstance(part, ast.arg)]
        self._flow = Flow(self._names, node, arguments, self._suppresses)
        self._functions = _local_functions(node)
        self._outer = _declared(node)
        whole = whole or not self._may_split(node)
        node.body = self._plain(node.body) if whole else self._block(node.body, True)
        _clear_annotations(without_defaults(node))
        cells = self._cells()
        cells |= {name: types.CellType(part) for name, part in self._parts.items()}
        cells[CALLED] = types.CellType(self._children.called)
        new = self._compiled(node, cells)
        new.__defaults__, new.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
        return new

    def _cells(self) -> dict[str, types.CellType]:
        """Return the variables of the functions around this one, and what stands for none."""
        cells = dict(zip(self._code.co_freevars, self._function.__closure__ or (), strict=True))
        cells[UNBOUND], cells[UNBOUND_ERROR] = types.CellType(Unbound), types.CellType(NameError)
        return cells

    def _compiled(self, node: Any, cells: dict[str, types.CellType], tree: bool = False) -> types.FunctionType:
        """Return the function of a syntax tree; `tree` keeps the tree, for the tracer."""
        name = node.name
        kept = copy.deepcopy(node) if tree else None
        code = code_of(node, [*cells], self._code).replace(co_name=name)
        if kept is not None:
            keep_tree(code, kept)
        closure = tuple([cells[free] for free in code.co_freevars])
        new = types.FunctionType(code, self._function.__globals__, name, None, closure)
        new.__qualname__, new.__module__ = self._function.__qualname__, self._function.__module__
        return new

    # What may be moved into a part -------------------------------------------------------------------

    def _may_split(self, node: Any) -> bool:
        """Return whether variables may be copied: a closure reads one that is bound once, before it is created."""
        counts = binding_counts(node)
        for statement, inner in captures(node):
            shared = self._names.used([inner]) & self._names.cells - {getattr(inner, "name", None)}
            if any(counts.get(name, 0) > 1 for name in shared) or not shared <= self._flow.at(statement).defined:
                return False
            if any(isinstance(part, ast.Nonlocal) for part in ast.walk(inner)):
                return False
        return True

    def _suppresses(self, manager: ast.expr) -> bool:
        """Return whether a context manager may suppress an error: one of the package does not."""
        made = manager.func if isinstance(manager, ast.Call) else manager
        path = []
        while isinstance(made, ast.Attribute):
            path.append(made.attr)
            made = made.value
        if not isinstance(made, ast.Name) or made.id in self._names.local:
            return True
        found = self._function.__globals__.get(made.id)
        for name in reversed(path):
            found = getattr(found, name, None) if isinstance(found, types.ModuleType) else None
        return found is not contextlib.nullcontext and policy_of(found) != OP

    def _is_partable(self, statement: ast.stmt) -> bool:
        """Return whether a statement may be moved into a part."""
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)):
            return False
        for part in ast.walk(statement):
            if isinstance(part, (ast.Global, ast.Nonlocal, ast.ClassDef, ast.AsyncFunctionDef)):
                return False
        own = mentioned([statement])
        if self._names.bound([statement]) & self._outer:
            return False
        return all(name not in own or self._functions[name] is not None for name in self._functions)

    # Blocks --------------------------------------------------------------------------------------------

    def _holds(self, statement: ast.stmt) -> bool:
        found = self._line is not None and statement.lineno <= self._line <= (statement.end_lineno or 0)
        return found and not isinstance(statement, SCOPES)

    def _block(self, statements: list[ast.stmt], tail: bool, seek: bool = True) -> list[ast.stmt]:
        """Return the statements of a block, in parts.

        Args:
            statements: the block.
            tail: the function returns at the end of the block.
            seek: the block has the line that cannot be compiled; else all of it may be a part.
        """
        broken = -1
        if seek:
            found = [k for k, statement in enumerate(statements) if self._holds(statement)]
            movable = [k for k, statement in enumerate(statements) if self._is_worth([statement])]
            if found:
                broken = found[0]
            elif len(movable) == 1:
                broken = movable[0]
            middle = movable[len(movable) // 2] if len(movable) > 1 and not found else -1
        else:
            middle = -1
        done: list[ast.stmt] = []
        run: list[ast.stmt] = []

        def flush(last: bool) -> None:
            if run:
                done.extend(self._part(list(run), tail and last))
                run.clear()

        for k, statement in enumerate(statements):
            if k in (broken, middle):
                flush(False)
            if k == broken:
                done += self._broken(statement, tail and k == len(statements) - 1)
            elif self._is_partable(statement) and not (not run and _is_text(statement)):
                run.append(statement)
            else:
                flush(False)
                done += self._plain([statement])
        flush(True)
        return done

    def _broken(self, statement: Any, tail: bool) -> list[ast.stmt]:
        """Return a statement that cannot be compiled: the blocks in it are split."""
        blocks = [getattr(statement, name, None) for name in ("body", "orelse", "finalbody")]
        blocks += [handler.body for handler in getattr(statement, "handlers", ())]
        blocks += [case.body for case in getattr(statement, "cases", ())]
        if isinstance(statement, SCOPES) or not any(blocks):
            return self._plain([statement])
        inner = [block for block in blocks if block]
        seek = [any(self._holds(each) for each in block) for block in inner]
        if self._line is None and len(inner) == 1:
            seek = [True]
        tail = tail and isinstance(statement, (ast.If, ast.With))
        new = [self._block(block, tail, sought) for block, sought in zip(inner, seek, strict=True)]
        for block in inner:  # (what remains, the heads, is rewritten without them)
            block[:] = []
        head = self._plain([statement])
        for block, replaced in zip(inner, new, strict=True):
            block[:] = replaced
        return head

    def _plain(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        """Return statements that run as Python, with their calls by `Children.called`."""
        calls = _Calls(self._names.local, self._function.__globals__)
        return [calls.visit(statement) for statement in statements]

    def _is_worth(self, run: list[ast.stmt]) -> bool:
        """Return whether statements may do something with tensors."""
        return any(
            isinstance(part, (ast.Call, ast.BinOp, ast.AugAssign, ast.Subscript, ast.UnaryOp, ast.Attribute))
            for statement in run
            for part in ast.walk(statement)
        )

    # Parts ---------------------------------------------------------------------------------------------

    def _part(self, run: list[ast.stmt], tail: bool) -> list[ast.stmt]:
        """Return the call of a part that consists of some statements, and what it assigns."""
        flow, names, where = self._flow, self._names, run[0]
        place, last = flow.at(where), flow.at(run[-1])
        bound, escapes, returns = names.bound(run), *_exits(run)
        copies, own = self._copies(run), set(self._functions)
        live = set(last.after) if last.ends and not tail else set()
        for escape in escapes:
            live |= place.broken if isinstance(escape, ast.Break) else place.continued
        read = names.used(copies) - own
        given = {*((names.used(run) | bound) & place.before), *read} - own
        taken = bound & live
        before, after = place.defined, last.defined_after
        for escape in escapes:
            after &= flow.at(escape).defined
        unsure_in, unsure_out = sorted(given - before), sorted(taken - after)
        order = {name: k for k, name in enumerate(dict.fromkeys((*self._code.co_varnames, *self._code.co_cellvars)))}
        ins, outs = sorted(given, key=order.__getitem__), sorted(taken, key=order.__getitem__)
        frames = "super" in mentioned(run)
        if frames:  # it takes the first argument of the function
            first = (*self._code.co_varnames[: self._code.co_argcount], "")[0]
            ins = [first, *[name for name in ins if name != first]]
        if (
            not self._is_worth(run)
            or bound & place.raised
            or not read <= before
            or taken & own
            or (place.guarded and (unsure_in or unsure_out))
            or (frames and (ins[0] not in before or ins[0] in bound))
        ):
            return self._plain(run)
        simple = (tail or not last.ends) and not escapes
        flagged = not simple and bool(escapes or returns)
        body = self._body(run, copies, unsure_in, unsure_out, outs, flagged, simple, last.ends)
        arguments = ast.arguments([], [ast.arg(name) for name in ins], None, [], [], None, [])
        node = ast.copy_location(definition(self._function.__name__, arguments, body), where)
        name = f"__part_{len(self._parts)}__"
        self._parts[name] = Parts(self._compiled(node, self._cells(), tree=True), self._make)
        return self._call(name, where, ins, outs, unsure_in, unsure_out, flagged, simple, escapes, returns)

    def _copies(self, run: list[ast.stmt]) -> list[ast.stmt]:
        """Return the local functions that statements call; a part has copies of them."""
        wanted = {name for name in mentioned(run) if name in self._functions}
        while True:
            further = {name for each in wanted for name in mentioned([self._functions[each]]) & set(self._functions)}
            if further <= wanted:
                break
            wanted |= further
        return [copy.deepcopy(node) for name, node in self._functions.items() if name in wanted]

    def _body(
        self, run: list[ast.stmt], copies: list[ast.stmt], unsure_in: list[str], unsure_out: list[str],
        outs: list[str], flagged: bool, simple: bool, ends: bool,
    ) -> list[ast.stmt]:  # fmt: skip
        """Return the body of a part, which returns how it has ended, and what it has assigned."""
        where = run[0]
        forgetting = parsed(_forgetting(unsure_in), where)
        for statement in forgetting:  # (a line at which the part is split is none of these)
            statement.lineno = statement.end_lineno = where.lineno - 1
        body = [*forgetting, *copies, *copy.deepcopy(run)]
        if simple:
            return body

        def leave(how: int, where: ast.stmt, value: ast.expr | None = None) -> list[ast.stmt]:
            if not flagged and len(outs) == 1:
                return parsed(f"{_attempting(unsure_out)}\nreturn {outs[0]}", where)
            elements = [str(how), "None"] * flagged + (["None"] * len(outs) if how == _RETURN else outs)
            found = "" if how == _RETURN else _attempting(unsure_out)
            statements = parsed(f"{found}\nreturn ({''.join([f'{x}, ' for x in elements])})", where)
            if value is not None:
                statements[-1].value.elts[1] = value
            return statements

        if flagged:
            body = _Leaving(leave).block(body)
        return [*body, *leave(0, run[-1])] if ends else body

    def _call(
        self, part: str, where: ast.stmt, ins: list[str], outs: list[str], unsure_in: list[str],
        unsure_out: list[str], flagged: bool, simple: bool, escapes: list[Any], returns: bool,
    ) -> list[ast.stmt]:  # fmt: skip
        """Return the statements that call a part."""
        call = f"{part}({', '.join(ins)})"
        targets = ", ".join(outs)
        forget = _forgetting(dict.fromkeys([*unsure_in, *unsure_out]))
        texts = [_attempting(unsure_in)]
        if simple:
            texts.append(f"return {call}")
        elif not flagged:
            texts += [f"{targets} = {call}" if outs else call, forget]
        else:
            texts.append(f"{EXIT}, {RESULT}, *{OUTS} = {call}")
            if returns:
                texts.append(f"if {EXIT} == {_RETURN}:\n    return {RESULT}")
            if outs:
                texts.append(f"{targets}, = {OUTS}")
            texts += [f"{OUTS} = None", forget]
            for kind, how, word in ((ast.Break, _BREAK, "break"), (ast.Continue, _CONTINUE, "continue")):
                if any(isinstance(escape, kind) for escape in escapes):
                    texts.append(f"if {EXIT} == {how}:\n    {word}")
        return parsed("\n".join(texts), where)


def _forgetting(names: Iterable[str]) -> str:
    """Return the statements that unbind variables which stand for unbound ones."""
    return "\n".join([f"if {name} is {UNBOUND}:\n    del {name}" for name in names])


def _attempting(names: Iterable[str]) -> str:
    """Return the statements that give variables a value which have none."""
    return "\n".join([f"try:\n    {x}\nexcept {UNBOUND_ERROR}:\n    {x} = {UNBOUND}" for x in names])


def _exits(statements: list[ast.stmt]) -> tuple[list[Any], bool]:
    """Return the `break` and `continue` statements, in a block, of loops around it; and whether it has a `return`."""
    found: list[tuple[int, Any]] = []

    def note(how: int, node: Any, value: Any = None) -> list[Any]:
        found.append((how, node))
        return [node]

    _Leaving(note).block(statements)
    return [node for how, node in found if how != _RETURN], any(how == _RETURN for how, _ in found)


class _Leaving(ast.NodeTransformer):
    """Replaces `return`, and `break` and `continue` of a loop around, by what a part returns instead."""

    def __init__(self, leave: Callable[..., list[ast.stmt]]) -> None:
        self._leave, self._inside = leave, 0

    def block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        done: list[ast.stmt] = []
        for statement in statements:
            found = self.visit(statement)
            done += found if isinstance(found, list) else [found]
        return done

    def visit_Return(self, node: ast.Return) -> Any:
        return self._leave(_RETURN, node, node.value)

    def visit_Break(self, node: ast.Break) -> Any:
        return node if self._inside else self._leave(_BREAK, node)

    def visit_Continue(self, node: ast.Continue) -> Any:
        return node if self._inside else self._leave(_CONTINUE, node)

    def visit_For(self, node: Any) -> Any:
        self._inside += 1
        node.body = self.block(node.body)
        self._inside -= 1
        node.orelse = self.block(node.orelse)
        return node

    visit_While = visit_For

    def keep(self, node: Any) -> Any:
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = visit_ClassDef = keep


class _Calls(ast.NodeTransformer):
    """Lets calls find the compiled form of what is called."""

    def __init__(self, variables: Iterable[str], scope: dict[str, Any]) -> None:
        self._variables, self._scope = variables, scope

    def keep(self, node: Any) -> Any:
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = visit_ClassDef = visit_GeneratorExp = keep

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        name = node.func.id if isinstance(node.func, ast.Name) else None
        known = name is not None and name not in self._variables and name not in self._scope
        if not (known and hasattr(builtins, str(name))):
            found = ast.Call(ast.Name(CALLED, ast.Load()), [node.func], [])
            node.func = ast.fix_missing_locations(ast.copy_location(found, node.func))
        return node


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _clear_annotations(node: Any) -> None:
    node.returns = None
    for part in ast.walk(node.args):
        if isinstance(part, ast.arg):
            part.annotation = None


def _reads_frame(node: ast.AST, given: bool) -> bool:
    """Return whether a node names a function of the calling frame, and not of an object that it is `given`."""
    if isinstance(node, ast.Name):
        return node.id in _OF_FRAMES and not (given and node.id in OF_OBJECTS)
    return isinstance(node, ast.Attribute) and node.attr.strip("_") in ("getframe", "currentframe")


def _declared(node: Any) -> set[str]:
    """Return the variables that a function declares as global or nonlocal."""
    found = [part for part in own_nodes(node.body) if isinstance(part, (ast.Global, ast.Nonlocal))]
    return {name for part in found for name in part.names}


def _local_functions(node: Any) -> dict[str, Any]:
    """Return the definitions of the functions in a function, by name; None for those that cannot be copied."""
    found: dict[str, Any] = {}
    counts = binding_counts(node)
    for part in own_nodes(node.body):
        name = None
        if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            name = part.name
        elif isinstance(part, ast.Assign) and isinstance(part.value, ast.Lambda):
            name = part.targets[0].id if isinstance(part.targets[0], ast.Name) else None
        if name is None:
            continue
        plain = isinstance(part, ast.FunctionDef) and part in node.body and counts.get(name) == 1
        found[name] = part if plain and _is_copied(part, name, node) else None
    return found


def _is_copied(part: Any, name: str, node: Any) -> bool:
    """Return whether a local function is only called, and nothing else tells it from a copy."""
    defaults = [*part.args.defaults, *[each for each in part.args.kw_defaults if each is not None]]
    if part.decorator_list or not all(isinstance(each, ast.Constant) for each in defaults):
        return False
    if any(isinstance(inner, (ast.Nonlocal, ast.Global)) for inner in ast.walk(part)):
        return False
    calls = [id(each.func) for each in ast.walk(node) if isinstance(each, ast.Call)]
    reads = [each for each in ast.walk(node) if isinstance(each, ast.Name) and each.id == name]
    return all(id(each) in calls for each in reads)


__all__ = ["Children", "Parts", "split"]
