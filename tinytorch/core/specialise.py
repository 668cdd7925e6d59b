"""Specialises an ordinary function for facts that are known before it runs, from its own syntax tree.

What depends on the facts alone is computed once: branches are chosen, loops over constants unrolled, and the elements
of lists whose lengths are known become variables. What remains keeps its lines: tracebacks and debuggers show the
function that it was made from, which does the same as it stands.
"""

from __future__ import annotations

import ast
import functools
import itertools
import linecache
from collections.abc import Iterator
from typing import Any

#: What a part of a tree depends on: on nothing that is known, on that and other things, or on what is known alone.
_OTHERS, _BOTH, _KNOWN = range(3)
_LOAD = ast.Load()
_DISPLAYS = (ast.List, ast.Tuple)
_SIGNS = (ast.Constant, ast.expr_context, ast.boolop, ast.cmpop, ast.operator, ast.unaryop)


class Specialiser:
    """Specialises a function that returns a function; known are facts, and numbers and texts with names in capitals.

    Args:
        function: the function; its first argument is the facts.
        lists: the names of lists whose lengths are known: only elements with known numbers are read and written, or all
            of them at once. Their elements become variables: those of `values` are `values0`, `values1`, ...
        inlined: functions whose statements replace `name = function(...)` and `function(...)`. They may return in the
            last line alone, and their variables become the caller's.
    """

    def __init__(self, function: Any, lists: str, *inlined: Any) -> None:
        self.function, self.lists, self.inlined = function, frozenset(lists.split()), inlined
        self._made: dict[Any, Any] = {}

    @functools.cached_property
    def _prepared(self) -> tuple[ast.FunctionDef, dict[str, Any], dict[str, Any]]:
        """The marked tree, the globals, and the constants among them."""
        scope: dict[str, Any] = {}
        for each in (*self.inlined, self.function):
            scope |= each.__globals__
        constants: dict[str, Any] = {"enumerate": enumerate, "len": len, "range": range}
        constants |= {name: each for name, each in scope.items() if name.isupper() and isinstance(each, (int, str))}
        tree = _inlined([_tree(self.function)], {each.__name__: each for each in self.inlined})[0]
        self._mark(tree, frozenset((tree.args.args[0].arg, *constants)))
        return tree, scope, constants

    def made(self, facts: Any, names: list[str], positional: int, more: bool, **lengths: int) -> Any:
        """Return the function for some facts.

        Args:
            facts: the facts; the function that is returned gets them once more.
            names: the arguments of the inner function; those from number `positional` on by name alone.
            more: whether it takes further `args` and `kwargs`.
            **lengths: the lengths of the lists.
        """
        key = facts, *lengths.values()
        if key not in self._made:
            tree, scope, constants = self._prepared
            made = _part(tree, constants | {tree.args.args[0].arg: facts} | lengths)
            inner = next(each for each in made.body if isinstance(each, ast.FunctionDef))
            args = [_at(inner, ast.arg(name)) for name in (*names, "args", "kwargs")]
            by_place, by_name, rest = args[:positional], args[positional:-2], args[-2:] if more else [None, None]
            inner.args = ast.arguments([], by_place, rest[0], by_name, [None] * len(by_name), rest[1], [])
            found: dict[str, Any] = {}
            exec(compile(ast.Module([made], []), self.function.__code__.co_filename, "exec"), scope, found)
            self._made[key] = found[made.name]
        return self._made[key]

    def _mark(self, node: Any, known: frozenset[str]) -> int:
        """Note what the parts of a tree depend on; return what the whole does."""
        loop = node if isinstance(node, ast.For) else node.generators[0] if hasattr(node, "generators") else None
        if loop is not None and self._mark(loop.iter, known) == _KNOWN:
            known |= {each.id for each in ast.walk(loop.target) if isinstance(each, ast.Name)}
        found = {self._mark(each, known) for each in ast.iter_child_nodes(node) if not isinstance(each, _SIGNS)}
        if isinstance(node, ast.Name):
            depends = _KNOWN if node.id in known else _BOTH if node.id in self.lists else _OTHERS
        elif found == {_KNOWN} and isinstance(node, ast.expr) and not isinstance(node, (ast.Starred, ast.Slice)):
            depends = _KNOWN
        else:
            depends = _BOTH if found - {_OTHERS} else _OTHERS
        if depends == _KNOWN:
            node.make = self._known
        elif depends == _BOTH:
            node.make = getattr(self, f"_{type(node).__name__}", self._copy)
            node.changing = [(name, part) for name, part in ast.iter_fields(node) if _changes(part)]
        return depends

    # Parts of the tree, with what is known computed -------------------------------------------------

    def _value(self, node: Any, known: dict[str, Any]) -> Any:
        """Return the value of an expression that is known."""
        if node is None or isinstance(node, ast.Constant):
            return node and node.value
        if not hasattr(node, "code"):
            node.code = compile(ast.Expression(node), "<known>", "eval")
        return eval(node.code, known)

    def _known(self, node: Any, known: dict[str, Any]) -> Any:
        value = self._value(node, known)
        return node if callable(value) else _at(node, ast.Constant(value))

    def _parts(self, nodes: list[Any], known: dict[str, Any]) -> list[Any]:
        """Return the parts of a list, of which each may become none or several."""
        made: list[Any] = []
        for each in nodes:
            make = getattr(each, "make", None)
            part = each if make is None else make(each, known)
            if isinstance(part, list):
                made += part
            else:
                made.append(part)
            if made and isinstance(made[-1], (ast.Return, ast.Raise)):
                break
        return made

    def _copy(self, node: Any, known: dict[str, Any]) -> Any:
        """Return a part with its own parts made."""
        made = type(node)()
        vars(made).update(vars(node))
        for name, value in node.changing:
            if isinstance(value, list):
                part: Any = self._parts(value, known) or [_at(node, ast.Pass())] * (name == "body")
            else:
                part = value.make(value, known)
            setattr(made, name, part)
        return made

    def _turns(self, loop: Any, known: dict[str, Any]) -> list[dict[str, Any]]:
        """Return what is known in each turn of a loop over something that is known."""
        return [known | dict(_bound(loop.target, item)) for item in self._value(loop.iter, known)]

    def _If(self, node: Any, known: dict[str, Any]) -> Any:
        test = _part(node.test, known)
        if isinstance(test, ast.Constant):
            return self._parts(node.body if test.value else node.orelse, known)
        body = self._parts(node.body, known) or [_at(node, ast.Pass())]
        return _at(node, ast.If(test, body, self._parts(node.orelse, known)))

    def _IfExp(self, node: Any, known: dict[str, Any]) -> Any:
        test = _part(node.test, known)
        if isinstance(test, ast.Constant):
            return _part(node.body if test.value else node.orelse, known)
        return _at(node, ast.IfExp(test, _part(node.body, known), _part(node.orelse, known)))

    def _BoolOp(self, node: Any, known: dict[str, Any]) -> Any:
        """Return the rest of a condition: parts that are known decide it, or say nothing."""
        decisive, rest = isinstance(node.op, ast.Or), list[Any]()
        for part in self._parts(node.values, known):
            if not isinstance(part, ast.Constant):
                rest.append(part)
            elif bool(part.value) is decisive:
                return part
        rest = rest or [_at(node, ast.Constant(not decisive))]
        return _at(node, ast.BoolOp(node.op, rest)) if len(rest) > 1 else rest[0]

    def _UnaryOp(self, node: Any, known: dict[str, Any]) -> Any:
        part = _part(node.operand, known)
        return _at(node, ast.Constant(not part.value) if isinstance(part, ast.Constant) else ast.UnaryOp(node.op, part))

    def _For(self, node: Any, known: dict[str, Any]) -> Any:
        if node.iter.make != self._known:
            return self._copy(node, known)
        return [part for turn in self._turns(node, known) for part in self._parts(node.body, turn)]

    def _ListComp(self, node: Any, known: dict[str, Any]) -> Any:
        loop = node.generators[0]
        if loop.iter.make != self._known:
            return self._copy(node, known)
        return _at(node, ast.List([_part(node.elt, turn) for turn in self._turns(loop, known)], _LOAD))

    def _DictComp(self, node: Any, known: dict[str, Any]) -> Any:
        turns = self._turns(node.generators[0], known)
        keys, values = ([_part(each, turn) for turn in turns] for each in (node.key, node.value))
        return _at(node, ast.Dict(keys, values))

    def _Name(self, node: Any, known: dict[str, Any]) -> Any:
        """Return all elements of a list."""
        names = [_at(node, ast.Name(f"{node.id}{k}", node.ctx)) for k in range(known[node.id])]
        return _at(node, ast.Tuple(names, node.ctx))

    def _Subscript(self, node: Any, known: dict[str, Any]) -> Any:
        """Return an element of a list, or some."""
        if not isinstance(node.value, ast.Name) or node.value.id not in self.lists:
            return self._copy(node, known)
        index = node.slice
        if not isinstance(index, ast.Slice):
            return _at(node, ast.Name(f"{node.value.id}{self._value(index, known)}", node.ctx))
        made = self._Name(node.value, known)
        made.elts = made.elts[self._value(index.lower, known) : self._value(index.upper, known)]
        return made

    def _Assign(self, node: Any, known: dict[str, Any]) -> Any:
        made = self._copy(node, known)
        target, value = made.targets[0], made.value
        if isinstance(node.targets[0], ast.Name) and isinstance(target, ast.Tuple):
            if isinstance(value, _DISPLAYS):
                pairs = zip(target.elts, value.elts, strict=True)
                return [_at(node, ast.Assign([name], part)) for name, part in pairs]
            made.value = value.args[0]  # `list(...)`: its elements are assigned
        return made

    def _Call(self, node: Any, known: dict[str, Any]) -> Any:
        made = self._copy(node, known)
        if getattr(made.func, "id", "") in ("list", "tuple") and isinstance(made.args[0], _DISPLAYS):
            return made.args[0]
        named = list[Any]()
        for each in made.keywords:
            if each.arg is None and isinstance(each.value, ast.Dict):
                pairs: Any = zip(each.value.keys, each.value.values, strict=True)
                named += [_at(node, ast.keyword(key.value, value)) for key, value in pairs]
            else:
                named.append(each)
        made.keywords = named
        return made

    def _Starred(self, node: Any, known: dict[str, Any]) -> Any:
        value = _part(node.value, known)
        return value.elts if isinstance(value, _DISPLAYS) else _at(node, ast.Starred(value, node.ctx))


def _bound(target: Any, item: Any) -> Iterator[tuple[str, Any]]:
    """Yield the names that an assignment gives values, and these."""
    if isinstance(target, ast.Tuple):
        for part, each in zip(target.elts, item, strict=True):
            yield from _bound(part, each)
    else:
        yield target.id, item


def _part(node: Any, known: dict[str, Any]) -> Any:
    """Return a part of the tree with what is known computed."""
    make = getattr(node, "make", None)
    return node if make is None else make(node, known)


def _changes(part: Any) -> bool:
    """Return whether a part of the tree, or one of a list, depends on something that is known."""
    return any(map(_changes, part)) if isinstance(part, list) else hasattr(part, "make")


def _at(place: Any, node: Any) -> Any:
    """Return a new part of a tree, in the place of another one."""
    node.lineno, node.col_offset = place.lineno, place.col_offset
    node.end_lineno, node.end_col_offset = place.end_lineno, place.end_col_offset
    return node


def _tree(function: Any) -> Any:
    """Return the syntax tree of a function of a module, of which the source must be there."""
    code = function.__code__
    lines = linecache.getlines(code.co_filename, function.__globals__)[code.co_firstlineno - 1 :]
    inner = itertools.takewhile(lambda line: line[:1] in (" ", ")", "\n"), lines[1:])
    return ast.increment_lineno(ast.parse("".join([lines[0], *inner])), code.co_firstlineno - 1).body[0]


class _Replacing(ast.NodeTransformer):
    """Replaces names by expressions."""

    def __init__(self, expressions: dict[str, ast.expr]) -> None:
        self.expressions = expressions

    def visit_Name(self, node: ast.Name) -> ast.expr:
        found = self.expressions.get(node.id, node)
        return ast.Name(found.id, node.ctx) if isinstance(found, ast.Name) else found


def _inlined(nodes: list[Any], functions: dict[str, Any]) -> list[Any]:
    """Return statements with those of some functions in the place of their calls."""
    made: list[Any] = []
    for node in nodes:
        for name in ("body", "orelse", "handlers"):
            if isinstance(getattr(node, name, None), list):
                setattr(node, name, _inlined(getattr(node, name), functions))
        call = getattr(node, "value", None)
        function = functions.get(getattr(call.func, "id", "")) if isinstance(call, ast.Call) else None
        made += [node] if function is None else _statements(function, node, call)
    return made


def _statements(function: Any, node: Any, call: Any) -> list[Any]:
    """Return the statements of a function in the place of a statement that calls it."""
    tree = _tree(function)
    names = [each.arg for each in tree.args.args]
    given = dict(zip(reversed(names), reversed(tree.args.defaults), strict=False))
    given |= dict(zip(names, call.args, strict=False))
    body = [_Replacing(given).visit(each) for each in tree.body[1:]]  # (the first one is the docstring)
    if isinstance(body[-1], ast.Return):
        node.value = body.pop().value
        if isinstance(node, ast.Return) or ast.unparse(node.targets[0]) != ast.unparse(node.value):
            body.append(node)
    for part in [part for each in body for part in ast.walk(each)]:
        _at(node, part)
    return body
