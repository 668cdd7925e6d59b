"""What notes say of the graph: what cut it, what wrote into a saved value, which parameter was not used."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from typing import Any

from tinytorch.autograd.grad_mode import is_grad_enabled
from tinytorch.core.graph import AccumulateGrad
from tinytorch.core.names import module_of
from tinytorch.core.tensor import Tensor
from tinytorch.inspect.calls import nodes_behind
from tinytorch.inspect.mistakes.failure import Failure
from tinytorch.inspect.mistakes.remedies import fact
from tinytorch.inspect.mistakes.stack import Step, locals_of
from tinytorch.inspect.places import name_of
from tinytorch.inspect.source import assigned_attribute, assignment, function_tree, parsed
from tinytorch.inspect.why import Cut, cuts, switch_around


def made_once(failure: Failure, loop: ast.For | ast.While) -> tuple[str, tuple[str, str] | None] | None:
    """Return which tensor with a graph was computed once, before a loop whose steps use it, and the remedy."""
    used = {node.id for node in ast.walk(loop) if isinstance(node, ast.Name)}
    for node in [each for each in failure.user.nodes(ast.Assign) if each.lineno < loop.lineno]:
        for target in node.targets:
            if isinstance(target, ast.Name) and target.id in used and has_graph(failure.value(target)):
                first = loop.body[0]
                again = assignment(loop, target.id, failure.user.line)
                if again is None:
                    text = f"{target.id} was computed once, at {failure.user.file}:{node.lineno}"
                    change = f"{ast.unparse(node)}; {ast.unparse(first)}"
                    return text, (change, f"{failure.user.file}:{first.lineno}")
    roots = [value for name, value in failure.variables.items() if name in used and hasattr(value, "_modules")]
    for root in roots:
        for module in root.modules() if not isinstance(root, type) else ():
            for name, value in vars(module).items():
                if not isinstance(value, Tensor) or not has_graph(value):
                    continue
                carried = _carried(module, name)
                if carried is not None:
                    return f"{type(module).__name__}.{name} is kept from one step to the next", carried
                assigned = assigned_attribute(type(module), name, "__init__")
                if assigned is None:
                    continue
                statement, file = assigned
                text = f"{type(module).__name__}.{name} was computed once, in __init__ at {file}:{statement.lineno}"
                function: Any = inspect.unwrap(type(module).forward)
                first = function_tree(function).body[0]
                own = {each.id for each in ast.walk(statement.value) if isinstance(each, ast.Name)}
                if not own <= {"self", *function.__globals__}:
                    return text, None
                change = f"{ast.unparse(statement)}; {ast.unparse(first)}"
                return text, (change, f"{file}:{first.lineno}")
    return None


def _carried(module: Any, name: str) -> tuple[str, str] | None:
    """Return the assignment of a state that a module's `forward` computes from the last one, detached; its place."""
    function: Any = inspect.unwrap(type(module).forward)
    for node in ast.walk(function_tree(function)):
        if not isinstance(node, ast.Assign) or f"self.{name}" not in [ast.unparse(each) for each in node.targets]:
            continue
        for each in ast.walk(node.value):
            if isinstance(each, ast.Attribute) and ast.unparse(each) == f"self.{name}":
                text = Failure.in_text(node.value, each, f"self.{name}.detach()")
                return f"self.{name} = {text}", f"{function.__code__.co_filename}:{node.lineno}"
    return None


@fact("Trying to backward through the graph a second time")
def part_made_once(failure: Failure) -> str | None:
    """Say which part of the graph was made once, and freed by the first backward."""
    found = next((found for loop in failure.user.loops() if (found := made_once(failure, loop)) is not None), None)
    return found and f"{found[0]}, and the first backward freed its graph: compute it anew in each step"


def has_graph(value: Any) -> bool:
    """Return whether a tensor, or one of a tuple, was computed with a graph."""
    if isinstance(value, tuple):
        return any(has_graph(each) for each in value)
    return isinstance(value, Tensor) and value.grad_fn is not None


def earlier_backward(failure: Failure) -> ast.Call | None:
    """Return the last call of `backward` without arguments before the line that failed."""
    calls = [each for each in failure.user.nodes(ast.Call) if ast.unparse(each).endswith(".backward()")]
    return next((each for each in calls[::-1] if each.lineno < failure.user.line), None)


def leaves_of(x: Tensor) -> list[Any]:
    """Return the leaves from which a tensor was computed."""
    edge = x._current()._edge
    nodes = nodes_behind([edge[0]]) if edge is not None else ()
    return [node.variable for node in nodes if isinstance(node, AccumulateGrad)]


def passed_on(failure: Failure, first: ast.Call) -> tuple[str, int] | None:
    """Return the assignment of the loss of a first backward, in which what the second loss uses too is detached.

    An optimizer steps between the two, which none of the parameters belong to from which that was computed.
    """
    tree, call = failure.user.tree(), failure.call
    if not isinstance(first.func, ast.Attribute) or tree is None or not isinstance(call, ast.Call):
        return None
    steps = [node.func.value for node in failure.user.nodes(ast.Call) if isinstance(node.func, ast.Attribute)
             and node.func.attr == "step" and first.lineno < node.lineno < failure.user.line]  # fmt: skip
    stepped = {id(each) for step in steps for group in getattr(failure.value(step), "param_groups", ())
               for each in group["params"]}  # fmt: skip
    loss = failure.assignment(first.func.value)
    nodes: list[ast.AST] = [loss.value] if loss is not None else []
    for part in nodes:
        for each in ast.walk(part):
            made = assignment(tree, each.id, first.lineno) if isinstance(each, ast.Name) else None
            if made is not None and made.value not in nodes:
                nodes.append(made.value)
    root = call.func.value if isinstance(call.func, ast.Attribute) else None
    later = getattr(failure.assignment(root), "value", root)
    used = {each.id for each in ast.walk(later) if isinstance(each, ast.Name)} if later is not None else set()
    for node in nodes:
        for each in ast.walk(node):
            value = failure.value(each) if isinstance(each, ast.Name) and each.id in used else None
            if not stepped or not isinstance(value, Tensor) or value.grad_fn is None:
                continue
            if any(id(leaf) in stepped for leaf in leaves_of(value)):
                continue
            statement = next(other for other in ast.walk(tree) if isinstance(other, ast.Assign) and other.value is node)
            text = failure.in_text(node, each, f"{each.id}.detach()")  # type: ignore[attr-defined]
            return f"{ast.unparse(statement.targets[0])} = {text}", statement.lineno
    return None


class _Uncutting(ast.NodeTransformer):
    """Removes what cuts the graph and can be left out.

    Attributes:
        failure: the failed call, for the values of variables; None where these are not at hand.
    """

    def __init__(self, failure: Failure | None) -> None:
        self.failure = failure

    def visit_Call(self, node: ast.Call) -> Any:
        """Return what was detached, or made a number."""
        self.generic_visit(node)
        name = ast.unparse(node.func)
        if name.endswith("autograd.grad") and not any(each.arg == "create_graph" for each in node.keywords):
            node.keywords.append(ast.keyword("create_graph", ast.Constant(True)))
            return node
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("detach", "item") and not node.args:
            return node.func.value
        if name in ("torch.tensor", "torch.as_tensor") and len(node.args) == 1 and self.failure is not None:
            data = node.args[0]
            value = self.failure.value(data)
            if isinstance(data, (ast.List, ast.Tuple)):
                value = [self.failure.value(each) for each in data.elts]
            if isinstance(value, Tensor):
                return data
            if not isinstance(value, (list, tuple)) or not all(isinstance(each, Tensor) for each in value):
                return node
            if len({tuple(each.shape) for each in value}) == 1 and any(each.requires_grad for each in value):
                return ast.Call(ast.parse("torch.stack", mode="eval").body, [data], [])
        return node

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        """Return the tensor whose `data` was read."""
        self.generic_visit(node)
        return node.value if node.attr == "data" else node


def cuts_of(failure: Failure) -> list[Cut]:
    """Return where the graph of what `backward` was called on was cut."""
    tree, call = failure.user.tree(), failure.call
    if tree is None or not isinstance(call, ast.Call):
        return []
    of_method = failure.of_method and isinstance(call.func, ast.Attribute)
    root = call.func.value if of_method else call.args[0] if call.args else None  # type: ignore[attr-defined]
    return [] if root is None else cuts(root, tree, failure.user.file, failure.user.line, failure.value)


def uncut(failure: Failure, cut: Cut) -> str:
    """Return an assignment without what cuts the graph in it; "" if that cannot be left out."""
    if cut.statement is None:
        return ""
    before = ast.unparse(cut.statement)
    own = failure if cut.tree is failure.user.tree() else None
    again = ast.unparse(ast.fix_missing_locations(_Uncutting(own).visit(ast.parse(before))))
    return again if again != before else ""


@fact("does not require grad and does not have a grad_fn", "One of the differentiated Tensors does not require grad")
def where_cut(failure: Failure) -> str | None:
    """Say which lines of the user's code cut the graph."""
    texts = ["recording is off here (no_grad)"] * (not is_grad_enabled())
    texts += [f"{cut.reason} ({cut.file}:{cut.line})" for cut in cuts_of(failure)]
    return f"the graph was cut: {'; '.join(dict.fromkeys(texts[:4]))}" if texts else None


def read_gradient(failure: Failure) -> tuple[str, int] | None:
    """Return the assignment of the leaf whose gradient the program reads later, as one that requires it."""
    for node in failure.user.nodes(ast.Attribute):
        if node.attr != "grad" or node.lineno <= failure.user.line:
            continue
        value, made = failure.value(node.value), failure.assignment(node.value)
        if not isinstance(value, Tensor) or value.requires_grad or not value.dtype.is_floating_point or made is None:
            continue
        if len(made.targets) == 1:
            return failure.assigned_with(made, ".requires_grad_()"), made.lineno
    return None


@fact("appears to not have been used in the graph")
def unused(failure: Failure) -> str | None:
    """Name the parameters that were not used."""
    for step in failure.steps:
        if step.ours and step.code.co_name == "grad":
            found = locals_of(step.frame)
            captured, edges, targets = found.get("captured", {}), found.get("edges", ()), found.get("targets", ())
            names = [
                name_of(target, failure.user.frame) or f"number {k}"
                for k, (edge, target) in enumerate(zip(edges, targets, strict=False))
                if edge not in captured and isinstance(target, Tensor)
            ]
            return f"not used: {', '.join(names[:8])}{', ...' * (len(names) > 8)}"
    return None


def saved(failure: Failure) -> tuple[Any, Any, Step | None]:
    """Return the node that has saved a value which was changed, and the value's version counter."""
    for step in failure.steps:
        if step.ours and step.code.co_name == "_unpack":
            found = locals_of(step.frame)
            item = found.get("item")
            if isinstance(item, tuple) and item:
                cell = item[0]._cell if isinstance(item[0], Tensor) else item[1]
                return found.get("self"), cell, step
    return None, None, None


def _written(tree: ast.AST) -> Iterator[tuple[str, ast.stmt]]:
    """Yield the writes in place of a function's statements: the name of the variable, and the statement."""
    for node in ast.walk(tree):
        target: Any = None
        if isinstance(node, ast.AugAssign):
            target = node.target
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], (ast.Subscript, ast.Attribute)):
            target = node.targets[0]
        elif isinstance(node, ast.Expr | ast.Assign) and isinstance(node.value, ast.Call):
            function = node.value.func
            if isinstance(function, ast.Attribute) and function.attr.rstrip("_") + "_" == function.attr:
                target = function.value
        while isinstance(target, (ast.Subscript, ast.Attribute)):
            target = target.value
        if isinstance(target, ast.Name):
            yield target.id, node  # type: ignore[misc]


def writes(failure: Failure) -> Iterator[tuple[str, ast.stmt, Step]]:
    """Yield the writes into the memory of the changed value in functions that have not returned: name, statement."""
    _, cell, _ = saved(failure)
    for step in reversed([each for each in failure.steps if each.users]) if cell is not None else ():
        names = {
            name for name, value in locals_of(step.frame).items() if isinstance(value, Tensor) and value._cell is cell
        }
        tree = step.tree() if names else None
        yield from ((name, node, step) for name, node in (_written(tree) if tree else ()) if name in names)


def later_writes(failure: Failure) -> list[tuple[str, ast.stmt]]:
    """Return the writes in place in the functions of the user's file that have returned, if they are all there are."""
    node, cell, _ = saved(failure)
    tree = parsed(failure.user.file, failure.user.frame.f_globals)
    if node is None or tree is None or any(each._cell is cell for _, each in _parameters(failure)):
        return []
    running = {step.code.co_firstlineno for step in failure.steps if step.file == failure.user.file}
    return [
        (name, each)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef) and function.lineno not in running and function.name != "__init__"
        for name, each in _written(function)
        if name != "self"
        and not _is_number(function, name)
        and switch_around(function, each.lineno, known=False) is None
    ]


@fact("has been modified by an inplace operation")
def who_wrote(failure: Failure) -> str | None:
    """Name the changed value, the line that wrote into it, and the line whose gradient needs it."""
    node, cell, _ = saved(failure)
    if node is None:
        return None
    texts = [f"{name} is written in place at {step.file}:{each.lineno}: {ast.unparse(each)}"
             for name, each, step in writes(failure)]  # fmt: skip
    if not texts:
        owner = next((path for path, each in _parameters(failure) if each._cell is cell), "")
        if owner:
            texts.append(f"{owner} is written in place between forward and backward, as by optimizer.step()")
    mode: Any = next((each for each in failure.modes if hasattr(each, "place_of_write")), None)
    if mode is not None:
        place = mode.place_of_write(cell)
        if place and not any(place in text for text in texts):
            texts.append(f"it was last written at {place}")
    place = _forward_line(node)
    if place:
        texts.append(f"{node.name()} was recorded at {place}")
    elif mode is None and not texts and len(later := later_writes(failure)) in (1, 2, 3):
        sure = "is" if len(later) == 1 else "may be what"
        for name, each in later:
            texts.append(f"{name} {sure} written in place at {failure.user.file}:{each.lineno}: {ast.unparse(each)}")
    elif mode is None and not texts:
        texts.append("torch.autograd.set_detect_anomaly(True) before the forward pass tells the lines")
    return "; ".join(texts)


def _is_number(tree: ast.AST, name: str) -> bool:
    """Return whether a variable is assigned a constant in a function, such as a counter."""
    made = [each for each in ast.walk(tree) if isinstance(each, ast.Assign) and isinstance(each.value, ast.Constant)]
    return any(isinstance(target, ast.Name) and target.id == name for each in made for target in each.targets)


def _parameters(failure: Failure) -> Iterator[tuple[str, Any]]:
    for step in reversed([each for each in failure.steps if each.users]):
        for name, value in locals_of(step.frame).items():
            if hasattr(value, "named_parameters") and not isinstance(value, type):
                for path, each in value.named_parameters():
                    yield f"{name}.{path}", each


def _forward_line(node: Any) -> str:
    """Return the line of the forward pass that made a node, if anomaly mode has stored it."""
    lines = node.metadata.get("traceback_") if hasattr(node, "metadata") else None
    if not lines:
        return ""
    first, _, text = lines[-1].strip().partition("\n")
    parts = first.split('"')
    return (
        f"{parts[1]}:{parts[2].split()[2].rstrip(',')}: {text.strip().splitlines()[0].strip()}"
        if len(parts) > 2
        else ""
    )


def backward_of(failure: Failure) -> tuple[Any, Any]:
    """Return the user's `backward` that ran last, or None, and its node of the graph."""
    node = next(
        (node for step in failure.steps[::-1] if step.ours and (node := locals_of(step.frame).get("node"))), None
    )
    for kind in type(node).__mro__ if node is not None else ():
        owner: Any = getattr(kind, "_forward_cls", None) or getattr(kind, "function", None) or kind
        function = inspect.unwrap(owner.backward)
        if hasattr(function, "__code__") and not module_of(function).startswith("tinytorch"):
            return function, node
    return None, node


@fact("returned an invalid gradient", "returned nan values", "returned an incorrect number of gradients")
def users_backward(failure: Failure) -> str | None:
    """Say where the `backward` of a user's function stands, or the line of the forward pass."""
    function, node = backward_of(failure)
    if function is not None:
        return f"{function.__qualname__} is at {function.__code__.co_filename}:{function.__code__.co_firstlineno}"
    place = _forward_line(node)
    return f"{node.name()} was recorded at {place}" if place else None


def _kept_graphs(value: Any) -> Iterator[tuple[str, Any, str]]:
    """Yield the attributes of a module that are tensors with a graph: path, the module that has it, name."""
    for path, module in value.named_modules() if hasattr(value, "_modules") else ():
        for name, each in [*vars(module).items(), *module._buffers.items()]:
            if isinstance(each, Tensor) and each.grad_fn is not None:
                yield f"{path}.{name}".lstrip("."), module, name
            elif isinstance(each, (list, dict)) and not name.startswith("_"):
                values = each.values() if isinstance(each, dict) else each
                if any(isinstance(value, Tensor) and value.grad_fn is not None for value in values):
                    yield f"{path}.{name}".lstrip("."), module, f"{name}["


@fact("support the deepcopy protocol")
def who_keeps_a_graph(failure: Failure) -> str | None:
    """Name the attributes of a module that have a graph."""
    call = failure.call
    if not isinstance(call, ast.Call) or not call.args:
        return None
    names = [path for path, _, _ in _kept_graphs(failure.value(call.args[0]))]
    return f"{', '.join(names[:4])}: a result with its graph, which is kept in the module" if names else None
