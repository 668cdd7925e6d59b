"""Why a value has no gradient: what was watched tells it (`cause_of`), else what the source says (`suspects`, `cuts`).

A new reason is a row of `CUTS` or a case of `cut_by`: what ends a gradient, as it is written. What can also be seen
while a program runs is told by `_of_cut` from the events that `watching.watch` has noted; a function that takes numbers
out of tensors notes them by `core.mode.tell_of_reading`. The docstring of `explain` lists the codes of causes.

`explain` uses `cause_of` and `suspects`, the notes of errors use `cuts` (`mistakes/graph.py`). The doctor hears of a
cut from the mode that watches its program, and needs no source.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterable
from types import CodeType, FrameType
from typing import Any, NamedTuple

from tinytorch.core import supplied
from tinytorch.core.names import module_of
from tinytorch.core.tensor import Tensor
from tinytorch.inspect.calls import nodes_behind
from tinytorch.inspect.places import Line
from tinytorch.inspect.source import assignment, function_tree, parsed, tree_of, users_code
from tinytorch.inspect.watching import UNKNOWN, Event, watch
from tinytorch.nn.modules.module import Module
from tinytorch.ops.register import functions

__all__ = [
    "Cause",
    "Cut",
    "Suspect",
    "after_backward",
    "cause_of",
    "cut_by",
    "cuts",
    "suspects",
    "switch_around",
    "zeros",
]

#: What ends a gradient, as it is written: a method "x.f()" (also as `torch.f(x)`), an attribute "x.a", a function "f()"
#: of PyTorch or Python, which is never a method.
#: The code of the cause, "" for what is too frequent to be suspected; and what is said of it, "" if the result of the
#: expression itself has a gradient nevertheless.
CUTS = {
    "x.detach()": ("detach", " cuts the graph"),
    "x.detach_()": ("detach", ""),
    "x.data": ("data", " has no graph"),
    "x.item()": ("read", " cuts the graph"),
    "x.tolist()": ("read", " cuts the graph"),
    "x.numpy()": ("read", " cuts the graph"),
    "float()": ("read", " makes a number or a tensor without a graph"),
    "int()": ("", " makes a number or a tensor without a graph"),
    "from_numpy()": ("read", " makes a number or a tensor without a graph"),
    "tensor()": ("copied", " makes a number or a tensor without a graph"),
    "as_tensor()": ("", " makes a number or a tensor without a graph"),
    "Tensor()": ("", " makes a number or a tensor without a graph"),
    "x.long()": ("not differentiable", ": integers have no gradient"),
    "x.int()": ("not differentiable", ": integers have no gradient"),
    "x.bool()": ("not differentiable", ": integers have no gradient"),
    "x.byte()": ("", ": integers have no gradient"),
    "x.short()": ("", ": integers have no gradient"),
    "x.argmax()": ("not differentiable", ""),
    "x.argmin()": ("not differentiable", ""),
    "x.argsort()": ("not differentiable", ""),
    "x.indices": ("", " has no graph"),
    "no_grad()": ("no_grad", ""),
    "set_grad_enabled()": ("no_grad", ""),
    "inference_mode()": ("inference_mode", ""),
    "x.zero_grad()": ("cleared", ""),
    "x.requires_grad_()": ("frozen", ""),
}
#: Functions whose second result are indices.
_PAIRS = ("max", "min", "sort", "topk", "median", "mode")


class Cause(NamedTuple):
    """Why a parameter has the gradient that it has.

    Attributes:
        code: a word for programs, such as "detach"; see `explain`.
        reason: the sentence.
        line: the line behind it, or None.
        certain: whether it was seen to happen; else it is what the sources suggest.
    """

    code: str
    reason: str
    line: Line | None = None
    certain: bool = True


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


# What the source says -----------------------------------------------------------------------------


def cut_by(node: ast.AST, value_of: Callable[[ast.AST], Any] = lambda node: None) -> tuple[str, Any, str] | None:
    """Return how a node of a syntax tree ends a gradient: the code and what is said, as in `CUTS`, and the expression.

    Args:
        node: the node.
        value_of: returns the value of a name or an attribute, or None.
    """
    if isinstance(node, ast.Compare):
        return "", node, "a comparison has no gradient"
    if isinstance(node, ast.Attribute):
        code, text = CUTS.get(f"x.{node.attr}", ("", ""))
        return (code, node, f".{node.attr}{text}") if text else None
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and node.slice.value == 1:
        pair = ast.unparse(node.value).partition("(")[0].rpartition(".")[2]
        found = isinstance(node.value, ast.Call) and pair in _PAIRS
        return ("", node, f"{pair}(...)[1]: indices have no gradient") if found else None
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
        target, value = node.targets[0], node.value.value if isinstance(node.value, ast.Constant) else ...
        code = "frozen" if target.attr == "requires_grad" and value is False else ""
        code = "cleared" if target.attr == "grad" and value is None else code
        return (code, target, "") if code else None
    return _cut_by_call(node, value_of) if isinstance(node, ast.Call) else None


def _cut_by_call(node: ast.Call, value_of: Callable[[ast.AST], Any]) -> tuple[str, Any, str] | None:
    owner, _, own = (name := ast.unparse(node.func)).rpartition(".")
    if own == "grad":
        kept = any(each.arg == "create_graph" for each in node.keywords)
        said = "" if kept else f"{name}() records no graph without create_graph=True"
        return ("autograd.grad", node.func, said) if name.endswith("autograd.grad") else None
    of_torch = owner.partition(".")[0] in ("", "torch", "tinytorch")
    code, text = CUTS.get(f"{own}()" if of_torch else f"x.{own}()") or CUTS.get(f"x.{own}()", ("", ""))
    if own in ("tensor", "as_tensor", "Tensor"):
        parts = [each for argument in node.args for each in ast.walk(argument)]
        if not any(isinstance(each, (ast.Name, ast.Call)) for each in parts):
            return None  # (numbers that are written out)
        code = "" if isinstance(node.args[0], (ast.List, ast.Tuple)) else code
    if text:
        return code, node.func, f"{name if of_torch else f'.{own}'}(){text}"
    declared = (supplied.declared.get(own) if owner else None) or getattr(functions.get(own), "raw", None)
    op = getattr(declared, "op", None)
    if op is not None and not op.wants and op.inputs:
        text = f"{own}() has no gradient"
    module = value_of(node.func)
    parameters = list(module.parameters()) if hasattr(module, "_modules") and not isinstance(module, type) else []
    if not text and parameters and not any(each.requires_grad for each in parameters):
        text = f"all parameters of {name} have requires_grad=False"
    return (code, node.func, text) if code or text else None


def switches_off(nodes: Iterable[ast.expr], known: bool) -> ast.expr | None:
    """Return the last of some context managers or decorators that switches recording off, or None.

    Args:
        nodes: the expressions.
        known: whether it is known that recording is off, so that `set_grad_enabled(flag)` does so.
    """
    names = ("no_grad", "inference_mode", "set_grad_enabled" if known else "set_grad_enabled(False)")
    return next((each for each in reversed([*nodes]) if any(name in ast.unparse(each) for name in names)), None)


def switch_around(tree: ast.AST | None, line: int, known: bool = True) -> ast.expr | None:
    """Return the innermost context manager or decorator around a line that switches recording off, or None."""
    found: ast.expr | None = None
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, (ast.With, ast.FunctionDef)) and node.lineno <= line <= (node.end_lineno or 0):
            of_with = [item.context_expr for item in node.items] if isinstance(node, ast.With) else node.decorator_list
            switch = switches_off(of_with, known)
            if switch is not None and (found is None or switch.lineno > found.lineno):
                found = switch
    return found


def suspects(frames: Iterable[FrameType], modules: Iterable[Module]) -> list[Suspect]:
    """Return the suspicious lines of running functions, of what they call by name, and of the `forward` of modules."""
    codes: list[CodeType | None] = [users_code(type(module).forward) for module in modules]
    for frame in frames:
        codes.append(frame.f_code)
        names = {**frame.f_globals, **frame.f_locals}
        called = [names.get(name) for name in frame.f_code.co_names + frame.f_code.co_varnames]
        codes += [users_code(each) for each in called if inspect.isfunction(each)]
    found: dict[tuple[str, Line], Suspect] = {}
    for code in [each for each in dict.fromkeys(codes) if each is not None]:
        tree = tree_of(code)
        for node in ast.walk(tree) if tree is not None else ():
            cut = cut_by(node)
            if isinstance(node, ast.FunctionDef) and (switch := switches_off(node.decorator_list, False)) is not None:
                name = ast.unparse(switch.func if isinstance(switch, ast.Call) else switch).rpartition(".")[2]
                cut = CUTS.get(f"{name}()", ("no_grad", ""))[0], switch, ""
            if cut is not None and cut[0]:
                line = Line(code.co_filename, cut[1].end_lineno, code.co_name)
                found.setdefault((cut[0], line), Suspect(cut[0], line, ast.unparse(cut[1])))
    return list(found.values())


class Cut(NamedTuple):
    """A place where the graph of a value was cut, according to the source.

    Attributes:
        line, file: the place.
        reason: the sentence.
        statement: the assignment that it is part of, if it is one of the line.
        tree: the function in which it stands.
    """

    line: int
    file: str
    reason: str
    statement: ast.Assign | None
    tree: ast.AST


def cuts(node: ast.AST, tree: ast.AST, file: str, line: int, value_of: Callable[[ast.AST], Any]) -> list[Cut]:
    """Return what has no gradient of that which an expression is computed from: backwards through assignments.

    Args:
        node: the expression.
        tree, file, line: the function in which it stands, its file, and the line.
        value_of: returns the value of a name or an attribute, or None.
    """
    found: list[Cut] = []
    seen: set[int] = set()

    def follow(node: ast.AST, tree: ast.AST, file: str, line: int, depth: int) -> None:
        if depth > 12 or id(node) in seen:
            return
        seen.add(id(node))
        for each in ast.walk(node):
            cut = cut_by(each, value_of)
            if cut is not None and cut[2]:
                found.append(Cut(getattr(each, "lineno", line), file, cut[2], None, tree))
            made = assignment(tree, each.id, line) if isinstance(each, ast.Name) else None
            if made is not None:
                if switch_around(tree, made.lineno, known=False) is not None:
                    found.append(Cut(made.lineno, file, "nothing is recorded inside of no_grad()", None, tree))
                before = len(found)
                follow(made.value, tree, file, made.lineno, depth + 1)
                found[before:] = [
                    cut._replace(statement=cut.statement or made) if cut.line == made.lineno else cut
                    for cut in found[before:]
                ]
            if isinstance(each, ast.Call) and depth <= 3:
                called = value_of(each.func)
                of_module = hasattr(called, "_modules") and not isinstance(called, type)
                function = type(called).forward if of_module else called
                into(inspect.unwrap(function) if callable(function) else None, ast.unparse(each.func), depth)

    def into(function: Any, name: str, depth: int) -> None:
        """Look at what a user's function returns, and whether it runs without recording."""
        if not inspect.isfunction(function) or module_of(function).partition(".")[0] == "tinytorch":
            return
        tree, file = function_tree(function), function.__code__.co_filename
        switch = switches_off(getattr(tree, "decorator_list", ()), known=False)
        if switch is not None:
            reason = f"nothing is recorded inside of {name}(), which is decorated by @{ast.unparse(switch)}"
            found.append(Cut(switch.lineno, file, reason, None, tree))
            return
        for each in ast.walk(tree):
            if isinstance(each, ast.Return) and each.value is not None:
                follow(each.value, tree, file, each.lineno, depth + 1)

    follow(node, tree, file, line, 0)
    return found


# What was watched ---------------------------------------------------------------------------------


def cause_of(seen: watch, x: Tensor, loss: Tensor | None) -> Cause:
    """Return why a leaf has no gradient from a loss; code "" if it has one, or would get one."""
    leaf = seen.leaves.get(id(x))
    targets = seen.targets(loss)
    if leaf is None:
        return Cause("unused", "it was never used")
    carrying = _carrying(seen, leaf)
    if any(target in carrying for target in targets):
        return Cause("", "")
    behind = _before(targets)
    ends = [e for e in seen.events if e in behind and e not in carrying and _takes(e, carrying)]
    if ends:
        return _of_cut(ends[0], carrying, ends)
    return _through_python(leaf, targets) or _discarded(leaf)


def _carrying(seen: watch, leaf: Event) -> set[Event]:
    """Return the events whose results carry the gradient of a leaf."""
    found = {leaf}
    for event in seen.events[leaf.number + 1 :]:
        if (
            event.kind == "op"
            and event.recorded
            and any(carries and found.intersection(sources) for sources, carries in event.sources)
        ):
            found.add(event)
    return found


def _of_cut(cut: Event, carrying: set[Event], cuts: list[Event]) -> Cause:
    """Return the cause that an event is the end of a gradient."""
    more = [each for each in cuts[1:] if each.line != cut.line]
    also = f"; the loss depends on it also through {', '.join([str(each.line) for each in more[:3]])}" * bool(more)
    if cut.kind in ("detach", "data"):
        return Cause(cut.kind, f"cut off by `{cut.name}` at {cut.line.shown()}{also}", cut.line)
    if cut.kind == "made" and any(carries for _, carries in cut.sources):
        reason = f"`{cut.name}` at {cut.line.shown()} copies the numbers into a new tensor without a graph{also}"
        return Cause("copied", reason, cut.line)
    if cut.kind != "made" and (cut.inference or not cut.recording):
        code = "inference_mode" if cut.inference else "no_grad"
        node = switch_around(parsed(cut.line.file), cut.line.number)
        switch = None if node is None else cut.line._replace(number=node.lineno)
        where = f", switched on at {switch.shown()}" if switch is not None else ""
        reason = f"`{cut.name}` at {cut.line.shown()} was computed without recording (`{code}`{where}){also}"
        return Cause(code, reason, switch or cut.line)
    for k, (sources, carries) in enumerate(cut.sources if cut.kind == "op" else ()):
        by = [source for source in sources if source in carrying]
        if by and not carries and not _has_gradients(cut.dtypes[k]):  # another output of an op, such as indices
            reason = f"`{by[-1].name}` at {by[-1].line.shown()} returns {cut.dtypes[k]}, which has no gradient{also}"
            return Cause("not differentiable", reason, by[-1].line)
    if cut.kind != "made" and not cut.differentiable:
        kind = cut.dtypes[-1] if cut.dtypes else "integers"
        reason = f"`{cut.name}` at {cut.line.shown()} returns {kind}, which has no gradient{also}"
        return Cause("not differentiable", reason, cut.line)
    cut_off = [source for sources, carries in cut.sources if not carries for source in sources if source in carrying]
    reads = [e for source in cut_off for e in source.users if e.kind == "read" and e.number < cut.number]
    if reads:
        reason = f"`{reads[-1].name}` at {reads[-1].line.shown()} takes the numbers out of the graph{also}"
        return Cause("read", reason, reads[-1].line)
    if cut_off:
        reason = f"when `{cut.name}` at {cut.line.shown()} used it, it did not require grad{also}"
        return Cause("did not require grad", reason, cut.line)
    return Cause("not differentiable", f"`{cut.name}` at {cut.line.shown()} has no derivative{also}", cut.line)


def _through_python(leaf: Event, targets: list[Event]) -> Cause | None:
    """Return the cause that numbers have gone through Python, if some were read that a later tensor may have."""
    behind = _before(targets)
    made = [e for e in behind if e.kind in ("made", "leaf") and not any(sources for sources, _ in e.sources)]
    after = _after(leaf)
    reads = [e for e in after if e.kind == "read"]
    pairs = [(read, each) for each in made for read in reads if read.number < each.number and each.kind == "made"]
    if not pairs:
        return None
    read, each = max(pairs, key=_likelihood)
    then = "" if each.line == read.line else f"; `{each.name}` at {each.line} makes a new tensor of them"
    reason = f"`{read.name}` at {read.line.shown()} takes the numbers out of the graph{then}"
    return Cause("read", reason, read.line)


def _discarded(leaf: Event) -> Cause:
    """Return the cause that what was computed from a leaf is not used for the loss."""
    after = [
        e
        for e in _after(leaf)
        if e.kind == "op" and not (e.writes and leaf in [s for each, _ in e.sources for s in each])
    ]  # (writes into the parameter itself, such as its initialization, do not use it)
    if not after:
        return Cause("unused", "it was never used")
    reads = [e for e in _after(leaf) if e.kind == "read"]
    if reads:
        first = min(reads, key=lambda e: e.number)
        reason = (
            f"the loss does not depend on it through the graph: `{first.name}` at {first.line.shown()} takes the "
            "numbers out of the graph"
        )
        return Cause("read", reason, first.line)
    last = max(after, key=lambda e: (not any(user.kind == "op" for user in e.users), e.number))
    reason = f"it was used, but the loss does not depend on the result: `{last.name}` at {last.line.shown()}"
    return Cause("discarded", reason, last.line)


def after_backward(seen: watch, x: Tensor, loss: Tensor | None) -> Cause:
    """Return why a leaf that a loss depends on has no `.grad`."""
    walk = seen.accumulated.get(id(x))
    if walk is not None:
        reason = f"the backward pass at {walk.line.shown()} has set it, and it was set to None since"
        return Cause("cleared", reason + " (`zero_grad()` does so)", walk.line)
    edge = None if loss is None else loss._current()._edge
    walks = [each for each in seen.walks if edge is None or edge[0] in each.roots]
    if not walks:
        return Cause("no backward", "backward was not called for this loss")
    last = walks[-1]
    if last.captures:
        reason = f"`autograd.grad` at {last.line.shown()} returns gradients, and sets no `.grad`"
        return Cause("autograd.grad", reason, last.line)
    if last.limited:
        reason = f"the backward pass at {last.line.shown()} was limited by `inputs` to other tensors"
        return Cause("inputs", reason, last.line)
    leaf = x._accumulator() if x._accumulator is not None else None
    for node, others in seen.without.items():
        if leaf in others or leaf is None or any(leaf in nodes_behind([other]) for other in others):
            event = seen.nodes.get(node.number)
            line = None if event is None else event.line
            where = "" if line is None else f" (called at {line.shown()})"
            reason = f"the backward of `{node.name()}`{where} returns None in place of its gradient"
            return Cause("returns None", reason, line)
    return Cause("unknown", f"the backward pass at {last.line.shown()} did not reach it", last.line)


def zeros(seen: watch, x: Tensor) -> Cause:
    """Return which node has made a leaf's gradient zero."""
    accumulator = x._accumulator() if x._accumulator is not None else None
    node = None if accumulator is None else seen.vanished.get(accumulator.number)
    event = None if node is None else seen.nodes.get(node.number)
    if node is None:
        return Cause("zero", "all elements are 0")
    where = "" if event is None else f" of the line {event.line.shown()}"
    reason = f"all elements are 0 since the backward of `{node.name()}`{where}"
    return Cause("zero", reason, None if event is None else event.line)


def _likelihood(pair: tuple[Event, Event]) -> Any:
    """Return how likely it is that a tensor was made of numbers which were read: as a key for sorting."""
    read, made = pair
    return made.name != UNKNOWN, read.line == made.line, read.number, -made.number


def _has_gradients(name: str) -> bool:
    """Return whether tensors of a dtype have gradients."""
    return name.startswith(("float", "bfloat", "complex"))


def _takes(event: Event, carrying: set[Event]) -> bool:
    return any(not carrying.isdisjoint(sources) for sources, _ in event.sources)


def _closure(events: Iterable[Event], following: Callable[[Event], Iterable[Event]]) -> set[Event]:
    """Return events, those that follow them, and so on."""
    found, stack = set(events), list(events)
    while stack:
        new = set(following(stack.pop())) - found
        found |= new
        stack += new
    return found


def _before(targets: list[Event]) -> set[Event]:
    """Return the events on which others depend, and these."""
    return _closure(targets, lambda event: [source for sources, _ in event.sources for source in sources])


def _after(event: Event) -> set[Event]:
    """Return the events that depend on one, and it."""
    return _closure([event], lambda event: event.users)
