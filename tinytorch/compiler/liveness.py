"""Which local variables of a function are read later, and which are certainly bound, at each statement."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
#: Functions that use up a generator expression before they return.
_CONSUMING = frozenset([all, any, dict, frozenset, list, max, min, set, sorted, sum, tuple])
Variables = frozenset[str]
_NONE: Variables = frozenset()


def own_nodes(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield nodes and those in them, without what is inside of functions and classes."""
    for node in nodes:
        yield node
        if not isinstance(node, SCOPES):
            yield from own_nodes(ast.iter_child_nodes(node))


def mentioned(nodes: Iterable[ast.AST]) -> set[str]:
    """Return all names in nodes, of variables of any scope."""
    return {part.id for node in nodes for part in ast.walk(node) if isinstance(part, ast.Name)}


def bindings(node: ast.AST) -> list[str]:
    """Return the variables that a node itself, without the nodes in it, binds or unbinds."""
    if isinstance(node, ast.Name):
        return [] if isinstance(node.ctx, ast.Load) else [node.id]
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, ast.alias):
        return [(node.asname or node.name).partition(".")[0]]
    if isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)):
        return [node.name] if node.name else []
    if isinstance(node, ast.MatchMapping):
        return [node.rest] if node.rest else []
    return []


def _own_bindings(node: ast.AST) -> Iterator[str]:
    """Yield the variables that a node and the nodes in it bind, but not those of comprehensions."""
    yield from bindings(node)
    if isinstance(node, SCOPES):
        return
    if isinstance(node, _COMPREHENSIONS):  # (its targets are its own)
        yield from [part.target.id for part in own_nodes([node]) if isinstance(part, ast.NamedExpr)]
        return
    for inner in ast.iter_child_nodes(node):
        yield from _own_bindings(inner)


def binding_counts(function: Any) -> dict[str, int]:
    """Return how often each variable of a function is bound; in a loop that counts twice."""
    counts: dict[str, int] = {}

    def count(node: ast.AST, times: int) -> None:
        if isinstance(node, (ast.For, ast.While)):
            times = 2
        for name in bindings(node):
            counts[name] = counts.get(name, 0) + times
        if isinstance(node, _COMPREHENSIONS):
            for name in _own_bindings(node):
                counts[name] = counts.get(name, 0) + times
        elif not isinstance(node, SCOPES):
            for inner in ast.iter_child_nodes(node):
                count(inner, times)

    for part in ast.walk(function.args):
        if isinstance(part, ast.arg):
            counts[part.arg] = 1
    for statement in function.body:
        count(statement, 1)
    return counts


def captures(function: Any) -> Iterator[tuple[ast.stmt, ast.AST]]:
    """Yield the functions, classes and generator expressions in a function that may read its variables later.

    Each comes with the innermost statement that it is in.
    """
    waiting: list[tuple[ast.stmt, ast.AST]] = [(statement, statement) for statement in function.body]
    consumed: set[int] = set()
    for statement, node in waiting:  # grows
        if isinstance(node, SCOPES) or (isinstance(node, ast.GeneratorExp) and id(node) not in consumed):
            yield statement, node
        if isinstance(node, SCOPES):
            continue
        if isinstance(node, ast.Call) and _consumes(node.func):
            consumed.update(map(id, node.args))
        waiting += [
            (inner if isinstance(inner, ast.stmt) else statement, inner) for inner in ast.iter_child_nodes(node)
        ]


def _consumes(function: ast.expr) -> bool:
    """Return whether a call of a function uses up a generator expression before it returns."""
    if isinstance(function, ast.Attribute):
        return function.attr == "join"
    return isinstance(function, ast.Name) and getattr(builtins, function.id, None) in _CONSUMING


class Names:
    """The local variables of a function.

    Attributes:
        local: their names.
        cells: those that functions in it, and comprehensions, read.
    """

    def __init__(self, local: Iterable[str], cells: Iterable[str]) -> None:
        self.cells = frozenset(cells)
        self.local = frozenset(local) | self.cells

    def bound(self, nodes: Iterable[ast.AST]) -> Variables:
        """Return the variables that nodes bind or unbind."""
        return frozenset([name for node in nodes for name in _own_bindings(node)])

    def used(self, nodes: Iterable[ast.AST]) -> Variables:
        """Return the variables that nodes read."""
        return frozenset([name for node in nodes for name in self._used(node)]) & self.local

    def _used(self, node: ast.AST) -> set[str]:
        if isinstance(node, ast.Name):
            return set() if isinstance(node.ctx, ast.Store) else {node.id}
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            return {node.target.id} | self._used(node.value)
        if isinstance(node, SCOPES):
            return self._used_in_scope(node)
        if isinstance(node, _COMPREHENSIONS):
            own = {name for part in node.generators for name in mentioned([part.target])}
            inner = {name for each in ast.iter_child_nodes(node) for name in self._used(each)} - own
            return inner | self._used(node.generators[0].iter)
        return {name for inner in ast.iter_child_nodes(node) for name in self._used(inner)}

    def _used_in_scope(self, node: Any) -> set[str]:
        outside = [*getattr(node, "decorator_list", ()), *getattr(node, "bases", ()), *getattr(node, "keywords", ())]
        arguments = getattr(node, "args", None)
        own: set[str] = set()
        if arguments is not None:
            outside += [*arguments.defaults, *[each for each in arguments.kw_defaults if each is not None]]
            own = {part.arg for part in ast.walk(arguments) if isinstance(part, ast.arg)}
        body = node.body if isinstance(node.body, list) else [node.body]
        inner = (mentioned(body) - own) & self.cells
        return inner | {name for each in outside for name in self._used(each)}


class Place(NamedTuple):
    """A statement: its surroundings, and what is known of the variables there.

    Attributes:
        raised: variables that are read after an error of the statement.
        broken, continued: variables that are read after a `break`, or a `continue`, in its place.
        guarded: whether an error of it may be caught.
        before, after: variables that are read from the statement on, and after it.
        defined, defined_after: variables that are certainly bound before and after it; all, if that is never reached.
        ends: whether its end may be reached.
    """

    raised: Variables = _NONE
    broken: Variables = _NONE
    continued: Variables = _NONE
    guarded: bool = False
    before: Variables = _NONE
    after: Variables = _NONE
    defined: Variables = _NONE
    defined_after: Variables = _NONE
    ends: bool = True


class Flow:
    """The flow of values through the variables of a function.

    Args:
        names: its local variables.
        function: its syntax tree.
        arguments: the names of its arguments.
        suppresses: returns whether a context manager may suppress an error.
    """

    def __init__(
        self, names: Names, function: Any, arguments: Iterable[str], suppresses: Callable[[ast.expr], bool]
    ) -> None:
        self._names, self._suppresses = names, suppresses
        self._places: dict[int, Place] = {}
        self._defined: dict[int, tuple[Variables | None, Variables | None]] = {}
        self._read(function.body, _NONE, Place())
        self._breaks: list[list[Variables]] = []
        self._define(function.body, frozenset(arguments))

    def at(self, statement: ast.stmt) -> Place:
        """Return what is known of a statement."""
        bound = self._defined.get(id(statement), (None, None))
        defined = [self._names.local if each is None else each for each in bound]
        return self._places[id(statement)]._replace(
            defined=defined[0], defined_after=defined[1], ends=bound[1] is not None
        )

    # What is read later, backwards -------------------------------------------------------------------

    def _read(self, statements: list[Any], after: Variables, place: Place) -> Variables:
        for statement in reversed(statements):
            before = self._read_one(statement, after, place) | place.raised
            self._places[id(statement)] = place._replace(before=before, after=after)
            after = before
        return after

    def _read_one(self, node: Any, after: Variables, place: Place) -> Variables:
        used = self._names.used
        if isinstance(node, (ast.Return, ast.Raise)):
            return used([node])
        if isinstance(node, ast.Break):
            return place.broken
        if isinstance(node, ast.Continue):
            return place.continued
        if isinstance(node, ast.If):
            return used([node.test]) | self._read(node.body, after, place) | self._read(node.orelse, after, place)
        if isinstance(node, (ast.For, ast.While)):
            return self._read_loop(node, after, place)
        if isinstance(node, ast.With):
            return self._read_with(node, after, place)
        if isinstance(node, ast.Try) or type(node).__name__ == "TryStar":
            return self._read_try(node, after, place)
        if isinstance(node, ast.Match):
            inner = [self._read(case.body, after, place) for case in node.cases]
            return after.union(used([node.subject, *[case.pattern for case in node.cases]]), *inner).union(
                used([case.guard for case in node.cases if case.guard is not None])
            )
        return (after - self._rebound(node)) | used([node])

    def _rebound(self, node: Any) -> Variables:
        """Return the variables that a simple statement certainly binds, or unbinds."""
        if isinstance(node, ast.Assign):
            return _targets(node.targets)
        if isinstance(node, ast.AnnAssign):
            return _targets([node.target]) if node.value is not None else _NONE
        if isinstance(node, ast.AugAssign):
            return _targets([node.target])
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)):
            return frozenset(_own_bindings(node))
        return _targets(node.targets) if isinstance(node, ast.Delete) else _NONE

    def _read_loop(self, node: Any, after: Variables, place: Place) -> Variables:
        head = self._names.used([node.iter, node.target] if isinstance(node, ast.For) else [node.test])
        bound = _targets([node.target]) if isinstance(node, ast.For) else _NONE
        end = self._read(node.orelse, after, place)
        again = end if isinstance(node, ast.For) else end | head
        while True:
            inside = place._replace(broken=after, continued=again)
            found = again | (self._read(node.body, again, inside) - bound)
            if found == again:
                return again | head
            again = found

    def _read_with(self, node: Any, after: Variables, place: Place) -> Variables:
        raised = place.raised
        if any(self._suppresses(item.context_expr) for item in node.items):
            raised |= after
        before = self._read(node.body, after, place._replace(raised=raised, guarded=True))
        for item in reversed(node.items):
            if item.optional_vars is not None:
                before = (before - _targets([item.optional_vars])) | self._names.used([item.optional_vars])
            before |= self._names.used([item.context_expr]) | raised
        return before

    def _read_try(self, node: Any, after: Variables, place: Place) -> Variables:
        end = self._read(node.finalbody, after | place.raised, place)
        outer = place._replace(raised=place.raised | end, broken=place.broken | end, continued=place.continued | end,
                               guarded=True) if node.finalbody else place  # fmt: skip
        caught = end
        for handler in node.handlers:
            own = frozenset([handler.name] if handler.name else [])
            caught |= self._read(handler.body, end, outer._replace(guarded=True)) - own
            caught |= self._names.used([handler.type] if handler.type is not None else [])
        inside = outer._replace(raised=outer.raised | caught, guarded=True)
        return self._read(node.body, self._read(node.orelse, end, outer._replace(guarded=True)), inside) | caught

    # What is bound, forwards ------------------------------------------------------------------------

    def _define(self, statements: list[Any], bound: Variables | None) -> Variables | None:
        for statement in statements:
            after = None if bound is None else self._define_one(statement, bound)
            self._defined[id(statement)] = bound, after
            bound = after
        return bound

    def _define_one(self, node: Any, bound: Variables) -> Variables | None:
        if isinstance(node, (ast.Return, ast.Raise)):
            return None
        if isinstance(node, (ast.Break, ast.Continue)):
            if isinstance(node, ast.Break) and self._breaks:
                self._breaks[-1].append(bound)
            return None
        if isinstance(node, ast.If):
            return _joined([self._define(node.body, bound), self._define(node.orelse, bound)])
        if isinstance(node, (ast.For, ast.While)):
            start = bound - _deleted(node)
            self._breaks.append([])
            targets = _targets([node.target]) if isinstance(node, ast.For) else _NONE
            self._define(node.body, start | targets)
            left = self._breaks.pop()
            forever = isinstance(node, ast.While) and isinstance(node.test, ast.Constant) and node.test.value
            return _joined([None if forever else self._define(node.orelse, start), *left])
        if isinstance(node, ast.With):
            for item in node.items:
                bound |= _targets([item.optional_vars] if item.optional_vars is not None else [])
            inner = self._define(node.body, bound)
            if any(self._suppresses(item.context_expr) for item in node.items):
                return _joined([inner, bound - _deleted(node)])
            return inner
        if isinstance(node, ast.Try) or type(node).__name__ == "TryStar":
            return self._define_try(node, bound)
        if isinstance(node, ast.Match):
            start = bound - _deleted(node)
            return _joined([start, *[self._define(case.body, start) for case in node.cases]])
        if isinstance(node, ast.Delete):
            return bound - _targets(node.targets)
        return bound | self._rebound(node)

    def _define_try(self, node: Any, bound: Variables) -> Variables | None:
        least = bound - _deleted(node)
        ends = [self._define(node.orelse, self._define(node.body, bound))]
        for handler in node.handlers:
            own = frozenset([handler.name] if handler.name else [])
            end = self._define(handler.body, least | own)
            ends.append(None if end is None else end - own)
        joined = _joined(ends)
        if not node.finalbody:
            return joined
        end = self._define(node.finalbody, least)
        return None if joined is None or end is None else (joined - _deleted(ast.Module(node.finalbody, []))) | end


def _targets(targets: Iterable[Any]) -> Variables:
    """Return the variables among the targets of an assignment."""
    found: set[str] = set()
    for target in targets:
        if isinstance(target, ast.Name):
            found.add(target.id)
        elif isinstance(target, (ast.Tuple, ast.List)):
            found |= _targets(target.elts)
        elif isinstance(target, ast.Starred):
            found |= _targets([target.value])
    return frozenset(found)


def _deleted(node: ast.AST) -> Variables:
    """Return the variables that statements may unbind; a handler unbinds the name of its error."""
    names = [part.id for part in own_nodes([node]) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Del)]
    return frozenset(
        [*names, *[part.name for part in own_nodes([node]) if isinstance(part, ast.ExceptHandler) and part.name]]
    )


def _joined(ends: list[Variables | None]) -> Variables | None:
    """Return what is bound at the end of each path that has an end; None if none has."""
    reached = [end for end in ends if end is not None]
    return frozenset.intersection(*reached) if reached else None


__all__ = ["SCOPES", "Flow", "Names", "Place", "binding_counts", "captures", "mentioned", "own_nodes"]
