"""Facts and remedies for the graph: what cut it, what wrote into a saved value, which parameter was not used."""

from __future__ import annotations

import ast
import inspect
import itertools
import linecache
import re
from collections.abc import Iterator
from typing import Any

from tinytorch.core.mode import local
from tinytorch.core.names import module_of
from tinytorch.core.tensor import Tensor
from tinytorch.inspect.mistakes.arguments import leaves_of
from tinytorch.inspect.mistakes.failure import Failure, is_layer, operand
from tinytorch.inspect.mistakes.layers import constructor
from tinytorch.inspect.mistakes.places import made_at
from tinytorch.inspect.mistakes.remedies import fact, remedy
from tinytorch.inspect.mistakes.stack import Step, locals_of
from tinytorch.inspect.sources import assigned_attribute, assignment, function_tree, header_of, parsed
from tinytorch.ops.register import functions, methods

# Roots --------------------------------------------------------------------------------------------


@remedy("grad can be implicitly created only for scalar outputs")
def scalar(failure: Failure) -> str | None:
    """Reduce the loss to a number."""
    call = failure.call
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    if failure.of_method:
        return failure.called_as(f"{failure.said('input')}.mean().backward")
    return failure.replaced(call.args[0], f"{ast.unparse(call.args[0])}.sum()")


@remedy("Mismatch in shape: grad_output[0]")
def ones(failure: Failure) -> str | None:
    """Start backward from ones of the right shape, if it was to start from ones."""
    name = "gradient" if "gradient" in failure.arguments else "grad_tensors"
    g = failure.arguments.get(name)
    if not isinstance(g, Tensor) or not bool((g == 1).all()) or not failure.of_method:
        return None
    return failure.rewritten(**{name: f"torch.ones_like({failure.said('input')})"})


@remedy("Trying to backward through the graph a second time")
def once_more(failure: Failure) -> str | tuple[str, int] | tuple[str, str] | None:
    """Detach what is passed on from one step of a loop to the next, or keep the graph of the first backward."""
    tree, call = failure.user.tree(), failure.call
    loops = [
        node
        for node in (ast.walk(tree) if tree is not None else ())
        if isinstance(node, (ast.For, ast.While)) and node.lineno <= failure.user.line <= (node.end_lineno or 0)
    ]
    for node in ast.walk(loops[-1]) if loops else ():
        for each in ast.walk(node.value) if isinstance(node, ast.Assign) else ():
            if not isinstance(node, ast.Assign) or not isinstance(each, ast.Name):
                continue
            targets = {part.id for target in node.targets for part in ast.walk(target) if isinstance(part, ast.Name)}
            if each.id in targets and _has_graph(failure.value(each)):
                if isinstance(failure.value(each), tuple):
                    text = f"tuple([each.detach() for each in {each.id}])"
                else:
                    text = f"{each.id}.detach()"
                changed = failure.in_text(node.value, each, text)
                return f"{ast.unparse(node.targets[0]).strip('()')} = {changed}", node.lineno
        if not isinstance(node, ast.AugAssign) or not isinstance(node.op, ast.Add):
            continue
        if (
            isinstance(node.value, ast.Name)
            and isinstance(call, ast.Call)
            and ast.unparse(call.func) == f"{ast.unparse(node.target)}.backward"
        ):
            return f"{node.value.id}.backward()"  # (the sum of the losses of all steps has the graphs of all)
    first = _earlier_backward(failure, tree)
    if first is not None:
        passed = _passed_on(failure, first)
        if passed is not None:
            return passed
    if loops and (first is None or first.lineno < loops[-1].lineno):
        found = _made_once(failure, loops[-1])
        return found[1] if found is not None else None
    if first is not None:
        return f"{ast.unparse(first.func)}(retain_graph=True)", first.lineno
    return failure.with_keywords(retain_graph="True") if isinstance(call, ast.Call) else None


def _made_once(failure: Failure, loop: ast.For | ast.While) -> tuple[str, tuple[str, str] | None] | None:
    """Return which tensor with a graph was computed once, before a loop whose steps use it, and the remedy."""
    used = {node.id for node in ast.walk(loop) if isinstance(node, ast.Name)}
    tree = failure.user.tree()
    for node in ast.walk(tree) if tree is not None else ():
        if not isinstance(node, ast.Assign) or node.lineno >= loop.lineno:
            continue
        for target in node.targets:
            if isinstance(target, ast.Name) and target.id in used and _has_graph(failure.value(target)):
                first = loop.body[0]
                again = assignment(loop, target.id, failure.user.line)
                if again is None:
                    text = f"{target.id} was computed once, at {failure.user.file}:{node.lineno}"
                    change = f"{ast.unparse(node)}; {ast.unparse(first)}".replace("'", '"')
                    return text, (change, f"{failure.user.file}:{first.lineno}")
    roots = [value for name, value in failure.variables.items() if name in used and hasattr(value, "_modules")]
    for root in roots:
        for module in root.modules() if not isinstance(root, type) else ():
            for name, value in vars(module).items():
                if not isinstance(value, Tensor) or not _has_graph(value):
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
                change = f"{ast.unparse(statement)}; {ast.unparse(first)}".replace("'", '"')
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
    tree = failure.user.tree()
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, (ast.For, ast.While)) and node.lineno <= failure.user.line <= (node.end_lineno or 0):
            found = _made_once(failure, node)
            if found is not None:
                return f"{found[0]}, and the first backward freed its graph: compute it anew in each step"
    return None


def _has_graph(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(_has_graph(each) for each in value)
    return isinstance(value, Tensor) and value.grad_fn is not None


def _earlier_backward(failure: Failure, tree: ast.AST | None) -> ast.Call | None:
    """Return the last call of `backward` without arguments before the line that failed."""
    found = None
    for node in ast.walk(tree) if tree is not None else ():
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.args or node.keywords:
            continue
        if node.func.attr == "backward" and node.lineno < failure.user.line:
            found = node
    return found


def _passed_on(failure: Failure, first: ast.Call) -> tuple[str, int] | None:
    """Return the assignment of the loss of a first backward, in which what the second loss uses too is detached.

    An optimizer steps between the two, which none of the parameters belong to from which that was computed.
    """
    tree, call = failure.user.tree(), failure.call
    if not isinstance(first.func, ast.Attribute) or tree is None or not isinstance(call, ast.Call):
        return None
    steps = [
        node.value.func.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and first.lineno < node.lineno < failure.user.line
        and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute)
        and node.value.func.attr == "step"
    ]  # fmt: skip
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


# Where the graph was cut --------------------------------------------------------------------------


class _Cut:
    """Finds, from an expression backwards through the assignments before it, what has no gradient.

    Attributes:
        found: per place, (line, file, what it says, a replacement of the statement or "").
    """

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        self.found: list[tuple[int, str, str, str]] = []
        self._seen: set[int] = set()

    def follow(self, node: ast.AST, tree: ast.AST, file: str, line: int, depth: int = 0) -> None:
        """Look at an expression that stands at a line of a function, and at what it depends on."""
        if depth > 12 or id(node) in self._seen:
            return
        self._seen.add(id(node))
        for each in ast.walk(node):
            reason = self._reason(each)
            if reason:
                self.found.append((getattr(each, "lineno", line), file, reason, ""))
            if isinstance(each, ast.Name):
                assigned = assignment(tree, each.id, line)
                if assigned is not None:
                    if _without_recording(tree, assigned):
                        self.found.append((assigned.lineno, file, "nothing is recorded inside of no_grad()", ""))
                    before = len(self.found)
                    self.follow(assigned.value, tree, file, assigned.lineno, depth + 1)
                    for k, (at, name, why, text) in enumerate(self.found[before:], before):
                        if not text and at == assigned.lineno:
                            own = self.failure if tree is self.failure.user.tree() else None
                            self.found[k] = (at, name, why, _uncut(assigned, own))
            if isinstance(each, ast.Call):
                self._into(self.failure.value(each.func), depth)
                self._into_function(self.failure.value(each.func), ast.unparse(each.func), depth)

    def _reason(self, node: ast.AST) -> str:
        """Return why an expression has no gradient; "" if it may have one."""
        if isinstance(node, ast.Compare):
            return "a comparison has no gradient"
        if isinstance(node, ast.Attribute) and node.attr in ("data", "indices"):
            return f".{node.attr} has no graph"
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and node.slice.value == 1:
            pair = ast.unparse(node.value).partition("(")[0].rpartition(".")[2]
            if isinstance(node.value, ast.Call) and pair in ("max", "min", "sort", "topk", "median", "mode"):
                return f"{pair}(...)[1]: indices have no gradient"
        if not isinstance(node, ast.Call):
            return ""
        name = ast.unparse(node.func)
        own = name.rpartition(".")[2]
        if isinstance(node.func, ast.Attribute):
            if own in ("detach", "item", "numpy", "tolist"):
                return f".{own}() cuts the graph"
            if own in ("long", "int", "bool", "byte", "short"):
                return f".{own}(): integers have no gradient"
        if name.endswith("autograd.grad") and not any(each.arg == "create_graph" for each in node.keywords):
            return f"{name}() records no graph without create_graph=True"
        if name in ("torch.tensor", "torch.as_tensor", "torch.from_numpy", "torch.Tensor", "float", "int"):
            return f"{name}() makes a number or a tensor without a graph"
        declared = methods.get(own) if isinstance(node.func, ast.Attribute) else None
        declared = declared or getattr(functions.get(own), "raw", None)
        op = getattr(declared, "op", None)
        if op is not None and not op.wants and op.inputs:
            return f"{own}() has no gradient"
        module = self.failure.value(node.func)
        if hasattr(module, "_modules"):
            parameters = list(module.parameters())
            if parameters and not any(each.requires_grad for each in parameters):
                return f"all parameters of {name} have requires_grad=False"
        return ""

    def _into(self, module: Any, depth: int) -> None:
        """Look at what `forward` of a user's module returns."""
        if not hasattr(module, "_modules") or module_of(type(module)).startswith("tinytorch.") or depth > 3:
            return
        function = inspect.unwrap(type(module).forward)
        tree = function_tree(function)
        for each in ast.walk(tree):
            if isinstance(each, ast.Return) and each.value is not None:
                self.follow(each.value, tree, function.__code__.co_filename, each.lineno, depth + 1)

    def _into_function(self, function: Any, name: str, depth: int) -> None:
        """Look at what a user's function returns, and whether it runs without recording."""
        plain = inspect.unwrap(function) if callable(function) else None
        if not inspect.isfunction(plain) or module_of(plain).partition(".")[0] == "tinytorch" or depth > 3:
            return
        tree, file = function_tree(plain), plain.__code__.co_filename
        for decorator in tree.decorator_list if isinstance(tree, ast.FunctionDef) else ():
            text = ast.unparse(decorator)
            if "no_grad" in text or "inference_mode" in text:
                reason = f"nothing is recorded inside of {name}(), which is decorated by @{text}"
                self.found.append((decorator.lineno, file, reason, ""))
                return
        for each in ast.walk(tree):
            if isinstance(each, ast.Return) and each.value is not None:
                self.follow(each.value, tree, file, each.lineno, depth + 1)


def _without_recording(tree: ast.AST, statement: ast.stmt) -> bool:
    """Return whether a statement stands inside of `with torch.no_grad()`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.With) and any(each is statement for each in ast.walk(node)):
            texts = [ast.unparse(item.context_expr) for item in node.items]
            if any(
                "no_grad" in text or "inference_mode" in text or "set_grad_enabled(False)" in text for text in texts
            ):
                return True
    return False


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


def _uncut(statement: ast.Assign, failure: Failure | None) -> str:
    """Return an assignment without what cuts the graph; "" if that cannot be left out."""
    before = ast.unparse(statement)
    again = ast.parse(before)
    text = ast.unparse(ast.fix_missing_locations(_Uncutting(failure).visit(again))).replace("'", '"')
    return text if text != before.replace("'", '"') else ""


def _cuts(failure: Failure) -> list[tuple[int, str, str, str]]:
    tree, call = failure.user.tree(), failure.call
    if tree is None or not isinstance(call, ast.Call):
        return []
    if failure.of_method and isinstance(call.func, ast.Attribute):
        root: ast.AST = call.func.value
    elif call.args:
        root = call.args[0]
    else:
        return []
    cut = _Cut(failure)
    cut.follow(root, tree, failure.user.file, failure.user.line)
    return cut.found


@fact("does not require grad and does not have a grad_fn", "One of the differentiated Tensors does not require grad")
def where_cut(failure: Failure) -> str | None:
    """Say which lines of the user's code cut the graph."""
    texts = ["recording is off here (no_grad)"] * (not local.state.grad)
    texts += [f"{reason} ({file}:{line})" for line, file, reason, _ in _cuts(failure)]
    return f"the graph was cut: {'; '.join(dict.fromkeys(texts[:4]))}" if texts else None


@remedy("does not require grad and does not have a grad_fn")
def uncut(failure: Failure) -> str | tuple[str, int] | None:
    """Leave out what cut the graph."""
    found = _cuts(failure)
    answers = _answers_counted(failure)
    if answers is not None:
        return answers
    inputs = _read_gradient(failure)
    if inputs is not None:
        return inputs
    texts = {(text, line) for line, file, _, text in found if text and file == failure.user.file}
    if len(texts) == 1 and all(text for _, _, _, text in found):
        return texts.pop()
    frozen = [reason for _, _, reason, _ in found if reason.startswith("all parameters of")]
    if len(found) == len(frozen) == 1:
        return f"{frozen[0].split()[3]}.requires_grad_(True)"
    return None


def _answers_counted(failure: Failure) -> tuple[str, int] | None:
    """Return the assignment of a loss that counts wrong answers, as one of their cross-entropy."""
    call = failure.call
    node = call.func.value if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) else None
    assigned = failure.assignment(node)
    for each in ast.walk(assigned.value) if assigned is not None else ():
        if not isinstance(each, ast.Compare) or len(each.comparators) != 1:
            continue
        sides = (each.left, each.comparators[0])
        for side, other in (sides, sides[::-1]):
            made: Any = getattr(failure.assignment(side), "value", side)
            chosen = isinstance(made, ast.Call) and isinstance(made.func, ast.Attribute) and made.func.attr == "argmax"
            labels = failure.value(other)
            if not chosen or not isinstance(labels, Tensor) or labels.dtype.is_floating_point:
                continue
            text = failure.named("nn.functional", "nn.functional")
            scores = ast.unparse(made.func.value)
            if _has_graph(failure.value(made.func.value)):
                loss = f"{text}.cross_entropy({scores}, {ast.unparse(other)})"
                return f"{ast.unparse(assigned.targets[0])} = {loss}", assigned.lineno
    return None


def _read_gradient(failure: Failure) -> tuple[str, int] | None:
    """Return the assignment of the leaf whose gradient the program reads later, as one that requires it."""
    tree = failure.user.tree()
    for node in ast.walk(tree) if tree is not None else ():
        if not isinstance(node, ast.Attribute) or node.attr != "grad" or node.lineno <= failure.user.line:
            continue
        value, made = failure.value(node.value), failure.assignment(node.value)
        if not isinstance(value, Tensor) or value.requires_grad or not value.dtype.is_floating_point or made is None:
            continue
        if len(made.targets) == 1:
            return failure.assigned_with(made, ".requires_grad_()"), made.lineno
    return None


@remedy("One of the differentiated Tensors does not require grad")
def points_require_grad(failure: Failure) -> tuple[str, int] | None:
    """Let the points by which is differentiated require a gradient, before they are used."""
    node, tree = failure.node("inputs"), failure.user.tree()
    if isinstance(node, (ast.List, ast.Tuple)):
        node = next((each for each in node.elts if not getattr(failure.value(each), "requires_grad", True)), None)
    value = failure.value(node)
    if not isinstance(node, ast.Name) or not isinstance(value, Tensor) or not value.dtype.is_floating_point:
        return None
    made = failure.assignment(node)
    if made is not None and len(made.targets) == 1 and isinstance(made.targets[0], ast.Name):
        return failure.assigned_with(made, ".requires_grad_()"), made.lineno
    for each in getattr(tree, "body", ()):
        if any(isinstance(part, ast.Name) and part.id == node.id for part in ast.walk(each)):
            if isinstance(each, (ast.Assign, ast.Expr)) and each.lineno < failure.user.line:
                return f"{node.id}.requires_grad_(); {ast.unparse(each)}".replace("'", '"'), each.lineno
            return None
    return None


# Parameters that were not used --------------------------------------------------------------------


def named_in(failure: Failure, tensor: Tensor) -> str:
    """Return the name of a tensor: a parameter's in a module, or a variable's; "" if it has none.

    Looked at are the variables of functions that have not returned.
    """
    for step in reversed([each for each in failure.steps if each.users]):
        for name, value in locals_of(step.frame).items():
            if value is tensor:
                return name
            if hasattr(value, "named_parameters") and not isinstance(value, type):
                for path, each in [*value.named_parameters(), *value.named_buffers()]:
                    if each is tensor:
                        return path
    return ""


@fact("appears to not have been used in the graph")
def unused(failure: Failure) -> str | None:
    """Name the parameters that were not used."""
    for step in failure.steps:
        if step.ours and step.code.co_name == "grad":
            found = locals_of(step.frame)
            captured, edges, targets = found.get("captured", {}), found.get("edges", ()), found.get("targets", ())
            names = [
                named_in(failure, target) or f"number {k}"
                for k, (edge, target) in enumerate(zip(edges, targets, strict=False))
                if edge not in captured and isinstance(target, Tensor)
            ]
            return f"not used: {', '.join(names[:8])}{', ...' * (len(names) > 8)}"
    return None


@remedy("appears to not have been used in the graph")
def allow_unused(failure: Failure) -> str | None:
    """Accept that some inputs have no gradient."""
    return failure.with_keywords(allow_unused="True")


# Saved values that were changed -------------------------------------------------------------------


def _saved(failure: Failure) -> tuple[Any, Any, Step | None]:
    """Return the node that has saved a value which was changed, and the value's version cell."""
    for step in failure.steps:
        if step.ours and step.code.co_name == "_unpack":
            found = locals_of(step.frame)
            item = found.get("item")
            if isinstance(item, tuple) and item:
                cell = item[0]._cell if isinstance(item[0], Tensor) else item[1]
                return found.get("self"), cell, step
    return None, None, None


def _writes(failure: Failure) -> Iterator[tuple[str, ast.stmt, Step]]:
    """Yield the writes into the memory of the changed value in functions that have not returned: name, statement."""
    _, cell, _ = _saved(failure)
    for step in reversed([each for each in failure.steps if each.users]) if cell is not None else ():
        names = {
            name for name, value in locals_of(step.frame).items() if isinstance(value, Tensor) and value._cell is cell
        }
        tree = step.tree() if names else None
        for node in ast.walk(tree) if tree is not None else ():
            target: Any = None
            if isinstance(node, ast.AugAssign):
                target = node.target
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], (ast.Subscript, ast.Attribute)):
                target = node.targets[0]
            elif isinstance(node, ast.Expr | ast.Assign) and isinstance(node.value, ast.Call):
                function = node.value.func
                if isinstance(function, ast.Attribute) and function.attr.endswith("_"):
                    target = function.value if not function.attr.endswith("__") else None
            while isinstance(target, (ast.Subscript, ast.Attribute)):
                target = target.value
            if isinstance(target, ast.Name) and target.id in names:
                yield target.id, node, step  # type: ignore[misc]


@fact("has been modified by an inplace operation")
def who_wrote(failure: Failure) -> str | None:
    """Name the changed value, the line that wrote into it, and the line whose gradient needs it."""
    node, cell, _ = _saved(failure)
    if node is None:
        return None
    texts = [f"{name} is written in place at {step.file}:{each.lineno}: {ast.unparse(each)}"
             for name, each, step in _writes(failure)]  # fmt: skip
    if not texts:
        owner = next((path for path, each in _parameters(failure) if each._cell is cell), "")
        if owner:
            texts.append(f"{owner} is written in place between forward and backward, as by optimizer.step()")
    mode: Any = next((each for each in local.state.modes or () if hasattr(each, "place_of_write")), None)
    if mode is not None:
        place = mode.place_of_write(cell)
        if place and not any(place in text for text in texts):
            texts.append(f"it was last written at {place}")
    place = _forward_line(node)
    if place:
        texts.append(f"{node.name()} was recorded at {place}")
    elif mode is None and not texts and len(later := _later_writes(failure)) in (1, 2, 3):
        sure = "is" if len(later) == 1 else "may be what"
        for name, each in later:
            texts.append(f"{name} {sure} written in place at {failure.user.file}:{each.lineno}: {ast.unparse(each)}")
        if len(later) == 1 and isinstance(later[0][1], ast.Assign):
            texts.append(f"or collect what {later[0][0]} gets in a list, and torch.stack it")
    elif mode is None and not texts:
        texts.append("torch.autograd.set_detect_anomaly(True) before the forward pass tells the lines")
    return "; ".join(texts)


def _later_writes(failure: Failure) -> list[tuple[str, ast.stmt]]:
    """Return the writes in place in those functions of the user's file that have returned: the name, the statement.

    They may be those that changed the value: which one did is certain only if there is one.
    """
    node, cell, _ = _saved(failure)
    lines = linecache.getlines(failure.user.file, failure.user.frame.f_globals)
    tree = parsed(failure.user.file, failure.user.frame.f_globals)
    if node is None or tree is None or any(each._cell is cell for _, each in _parameters(failure)):
        return []
    if any("inplace=True" in line for line in lines):
        return []  # (a layer may have changed it)
    running = {step.code.co_firstlineno for step in failure.steps if step.file == failure.user.file}
    found = []
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef) or function.lineno in running or function.name == "__init__":
            continue
        if "no_grad" in ast.unparse(function):
            continue
        numbers = {
            target.id
            for each in ast.walk(function)
            if isinstance(each, ast.Assign) and isinstance(each.value, ast.Constant)
            for target in each.targets
            if isinstance(target, ast.Name)
        }
        arguments = {each.arg for each in [*function.args.args, *function.args.kwonlyargs]}
        made = {name.id for each in ast.walk(function) if isinstance(each, (ast.Assign, ast.For))
                for target in (each.targets if isinstance(each, ast.Assign) else [each.target])
                for name in ast.walk(target) if isinstance(name, ast.Name)}  # fmt: skip
        for each in ast.walk(function):
            target: Any = None
            if isinstance(each, ast.AugAssign):
                target = each.target
            elif isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Subscript):
                target = each.targets[0]
            elif isinstance(each, ast.Expr) and isinstance(each.value, ast.Call):
                function_ = each.value.func
                if isinstance(function_, ast.Attribute) and function_.attr.endswith("_"):
                    target = function_.value if not function_.attr.endswith("__") else None
            while isinstance(target, ast.Subscript):
                target = target.value
            if isinstance(target, ast.Name) and target.id not in numbers and target.id in made | arguments:
                found.append((target.id, each))
    return found  # type: ignore[return-value]


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


@remedy("has been modified by an inplace operation")
def out_of_place(failure: Failure) -> str | tuple[str, int] | None:
    """Make the write out of place."""
    found = [(name, node) for name, node, step in _writes(failure) if step.file == failure.user.file]
    if not found:
        found = _later_writes(failure)
    if len(found) != 1:
        return None
    name, node = found[0]
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        value = ast.BinOp(ast.Name(name, ast.Load()), node.op, node.value)
        return f"{name} = {failure.unparsed(value)}", node.lineno
    if isinstance(node, ast.Assign) and any(isinstance(x, ast.Name) and x.id == name for x in ast.walk(node.value)):
        target, text = ast.unparse(node.targets[0]), ast.unparse(node.value)
        return f"new = {text}; {name} = {name}.clone(); {target} = new", node.lineno
    if isinstance(node, ast.Assign | ast.AugAssign):
        return f"{name} = {name}.clone(); {failure.unparsed(node)}", node.lineno
    call = node.value if isinstance(node, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
        again = ast.Call(ast.Attribute(call.func.value, call.func.attr[:-1], ast.Load()), call.args, call.keywords)
        if call.func.attr[:-1] in methods:
            return f"{name} = {failure.unparsed(again)}", node.lineno
    return None


@remedy("has been modified by an inplace operation")
def layer_in_place(failure: Failure) -> tuple[str, str] | None:
    """Make the layer without `inplace=True` that has overwritten what the layer before it needs in backward."""
    node, _, _ = _saved(failure)
    name, found = str(node.name()).partition("Backward")[0].lower() if node is not None else "", []
    for value in failure.variables.values():
        for module in value.modules() if hasattr(value, "_modules") and not isinstance(value, type) else ():
            layers = list(module._modules.values()) if is_layer(module, "Sequential") else []
            found += [(value, after) for before, after in itertools.pairwise(layers)
                      if getattr(after, "inplace", False) and type(before).__name__.lower() == name]  # fmt: skip
    if len({id(layer) for _, layer in found}) != 1:
        return None
    root, layer = found[0]
    failure.modules.append(root)
    place = made_at(failure, layer)
    failure.modules.pop()
    text = constructor(layer, inplace=False)
    return (text, place) if place else None


@remedy("is a view and is being modified inplace")
def layer_not_in_place(failure: Failure) -> tuple[str, str] | None:
    """Make a layer without `inplace=True` that writes into what a backward hook has wrapped."""
    place = made_at(failure) if getattr(failure.module, "inplace", False) else None
    return (constructor(failure.module, inplace=False), place) if place else None


@remedy("has been modified by an inplace operation")
def computed_again(failure: Failure) -> tuple[str, int] | None:
    """Compute a loss again after a step of an optimizer that changed parameters that it uses, as for two networks."""
    _, cell, _ = _saved(failure)
    tree, call = failure.user.tree(), failure.call
    name = next((path for path, each in _parameters(failure) if each._cell is cell), "").partition(".")[0]
    if not name or tree is None or not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    steps = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
            continue
        function = node.value.func
        if isinstance(function, ast.Attribute) and function.attr == "step" and node.lineno < failure.user.line:
            groups = getattr(failure.value(function.value), "param_groups", ())
            if any(each._cell is cell for group in groups for each in group["params"]):
                steps.append(node)
    if len(steps) != 1 or not isinstance(call.func.value, ast.Name):
        return None
    step, wanted, again = steps[0], [call.func.value.id], []
    while wanted:
        made = assignment(tree, wanted.pop(), failure.user.line)
        if made is None or made in again:
            continue
        if made.lineno > step.lineno:
            return None
        names = [each.id for each in ast.walk(made.value) if isinstance(each, ast.Name)]
        inner = [each for each in names if _has_graph(failure.value(ast.Name(each)))]
        again.append(made)
        if name not in names:
            wanted += inner
    if not any(name in ast.unparse(each.value) for each in again):
        return None
    again.sort(key=lambda each: each.lineno)
    return "; ".join([ast.unparse(each) for each in [step, *again]]).replace("'", '"'), step.lineno


@remedy("returned an incorrect number of gradients")
def whole_backward(failure: Failure) -> tuple[str, str] | None:
    """Return a gradient, or None, for each argument of a function's `forward`."""
    found = re.search(r"expected (\d+), got (\d+)", failure.text)
    for step in reversed(failure.steps):
        node = locals_of(step.frame).get("node") if step.ours else None
        owner: Any = getattr(type(node), "_forward_cls", None) or getattr(type(node), "function", None)
        if owner is None or found is None:
            continue
        want, have = int(found[1]), int(found[2])
        function = inspect.unwrap(owner.backward)
        returns = [each for each in ast.walk(function_tree(function))
                   if isinstance(each, ast.Return) and each.value is not None]  # fmt: skip
        if len(returns) != 1 or have > want or returns[0].value is None:
            return None
        text = ast.unparse(returns[0].value)
        if isinstance(returns[0].value, ast.Tuple):
            text = text.removeprefix("(").removesuffix(")").rstrip(",")
        place = f"{function.__code__.co_filename}:{returns[0].lineno}"
        return f"return {', '.join([text, *['None'] * (want - have)])}", place
    return None


@remedy("required positional argument")
def forward_of_context(failure: Failure) -> tuple[str, str] | None:
    """Leave `self` out of the `forward` of an autograd function, whose first argument is the context."""
    if "forward() missing" not in failure.text or not isinstance(failure.call, ast.Call):
        return None
    kind: Any = failure.arguments.get("cls") or failure.value(getattr(failure.call.func, "value", None))
    kind = failure.value(failure.call.func.value) if isinstance(failure.call.func, ast.Attribute) else kind
    function = getattr(kind, "forward", None)
    if function is None or function.__code__.co_varnames[:1] != ("self",):
        return None
    header, line = header_of(function)
    return header.replace("(self, ", "(", 1), f"{function.__code__.co_filename}:{line}"


def _saved_number(failure: Failure) -> tuple[Any, str, list[str]]:
    """Return the class of an autograd function, the name of a number that it saves as a tensor, and its tensors."""
    call = failure.call
    kind = (
        failure.value(call.func.value) if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) else None
    )
    k = int(re.findall(r"argument (\d+)", failure.text)[0])
    for node in ast.walk(function_tree(kind.forward)):  # type: ignore[union-attr]
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".save_for_backward"):
            names = [ast.unparse(each) for each in node.args]
            if names[k].isidentifier():
                return kind, names[k], [*names[:k], *names[k + 1 :]]
    raise LookupError("no variable is saved")


@remedy("save_for_backward can only save variables")
def number_of_context(failure: Failure) -> tuple[str, str] | None:
    """Keep a number as an attribute of the context."""
    kind, name, others = _saved_number(failure)
    for node in ast.walk(function_tree(kind.forward)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".save_for_backward"):
            context = ast.unparse(node.func).rpartition(".")[0]
            text = f"{ast.unparse(node.func)}({', '.join(others)}); {context}.{name} = {name}"
            return text, f"{kind.forward.__code__.co_filename}:{node.lineno}"
    return None


@remedy("save_for_backward can only save variables")
def number_from_context(failure: Failure) -> tuple[str, str] | None:
    """Read a number from an attribute of the context."""
    kind, name, others = _saved_number(failure)
    for node in ast.walk(function_tree(kind.backward)):
        if isinstance(node, ast.Assign) and ast.unparse(node.value).endswith(".saved_tensors"):
            context = ast.unparse(node.value).rpartition(".")[0]
            tensors = f"{', '.join(others)}{',' * (len(others) == 1)} = {ast.unparse(node.value)}; " if others else ""
            place = f"{kind.backward.__code__.co_filename}:{node.lineno}"
            return f"{tensors}{name} = {context}.{name}", place
    return None


@remedy("can be converted to an index", "unsupported operand type(s)", "'tuple' object has no attribute",
        "must be Tensor, not tuple")  # fmt: skip
def saved_tensor(failure: Failure) -> tuple[str, int] | None:
    """Unpack the only tensor that was saved."""
    statement = failure.statement()
    for node in ast.walk(statement) if statement is not None else ():
        assigned, value = failure.assignment(node), failure.value(node)
        saved = assigned is not None and ast.unparse(assigned.value).endswith(".saved_tensors")
        if saved and isinstance(value, tuple) and len(value) == 1:
            return f"{ast.unparse(node)}, = {ast.unparse(assigned.value)}", assigned.lineno
    return None


@remedy("positional arguments but", "positional argument but")
def arguments_of_hook(failure: Failure) -> tuple[str, str] | None:
    """Give a hook of a module all the arguments that it is called with."""
    name = failure.text.partition("(")[0]
    module = failure.module
    if module is None:
        return None
    for hooks, middle in (("_forward_hooks", "input"), ("_backward_hooks", "grad_input"), ("_forward_pre_hooks", "")):
        for hook in getattr(module, hooks).values():
            code = getattr(hook, "__code__", None)
            if code is None or code.co_qualname != name or code.co_argcount + 1 != (3 if middle else 2):
                continue
            names = list(code.co_varnames[: code.co_argcount])
            names = [names[0], middle, names[1]] if middle else ["module", names[0]]
            header, line = header_of(hook)
            text = re.sub(r"\(.*\)", f"({', '.join(names)})", header, count=1)
            return text, f"{code.co_filename}:{line}"
    return None


@remedy("Inference tensors cannot be saved for backward")
def copied_inference(failure: Failure) -> str | None:
    """Copy a tensor of inference mode, which backward can then save."""
    changes = {
        name: "{}.clone()"
        for name, value in failure.arguments.items()
        if isinstance(value, Tensor) and value.is_inference() and failure.node(name) is not None
    }
    return failure.rewritten(**changes) if changes else None


@fact("returned an invalid gradient", "returned nan values", "returned an incorrect number of gradients")
def users_backward(failure: Failure) -> str | None:
    """Say where the `backward` of a user's function stands, or the line of the forward pass."""
    for step in reversed(failure.steps):
        node = locals_of(step.frame).get("node") if step.ours else None
        if node is None:
            continue
        for kind in type(node).__mro__:
            owner: Any = getattr(kind, "_forward_cls", None) or getattr(kind, "function", None) or kind
            function = inspect.unwrap(owner.backward)
            code = getattr(function, "__code__", None)
            if code is not None and not module_of(function).startswith("tinytorch"):
                return f"{function.__qualname__} is at {code.co_filename}:{code.co_firstlineno}"
        place = _forward_line(node)
        return f"{node.name()} was recorded at {place}" if place else None
    return None


# Leaves, and arrays of tensors with a graph ----------------------------------------------------------


@remedy("a leaf Variable that requires grad is being used in an in-place operation",
        "a view of a leaf Variable that requires grad is being used in an in-place operation")  # fmt: skip
def not_recorded(failure: Failure) -> str | None:
    """Do not record the write."""
    return None if failure.statement() is None else f"with torch.no_grad(): {failure.user.text()}"


@remedy("Can't call numpy() on Tensor that requires grad")
def detached_array(failure: Failure) -> str | None:
    """Detach the tensor first, or call the package's function, where the result is differentiated."""
    call, statement, tree = failure.call, failure.statement(), failure.user.tree()
    if not isinstance(call, ast.Call):
        return None
    if isinstance(call.func, ast.Attribute) and call.func.attr in ("numpy", "__array__"):
        return failure.called_as(f"{failure.said('input')}.detach().{call.func.attr}")
    name = ast.unparse(statement.targets[0]) if isinstance(statement, ast.Assign) else ""
    recorded = tree is not None and bool(name) and f"{name}.backward" in ast.unparse(tree)
    function = ast.unparse(call.func).rpartition(".")[2]
    for node in call.args:
        values = failure.value(node)
        if isinstance(node, ast.ListComp):
            return failure.replaced(node.elt, f"{operand(node.elt)}.detach()")
        if not isinstance(values, list) or not values or not all(isinstance(each, Tensor) for each in values):
            continue
        if recorded and function in ("mean", "sum"):
            return f"torch.stack({ast.unparse(node)}).{function}()"
        what = "each.item()" if all(each.numel() == 1 for each in values) else "each.detach()"
        return failure.replaced(node, f"[{what} for each in {ast.unparse(node)}]")
    if recorded and functions.get(function) is not None:
        return failure.called_as(f"torch.{function}")
    graph = [node for node in call.args if isinstance(node, ast.BinOp | ast.Call)
             or getattr(failure.value(node), "requires_grad", False)]  # fmt: skip
    if not graph:
        return None
    plain = isinstance(graph[0], (ast.Name, ast.Attribute))
    text = ast.unparse(graph[0]) if plain else f"({ast.unparse(graph[0])})"
    return failure.replaced(graph[0], f"{text}.detach()")


@remedy("support the deepcopy protocol")
def detached_copy(failure: Failure) -> str | tuple[str, str] | None:
    """Copy the elements, without the graph; keep no graph in an attribute of a module."""
    call = failure.call
    if not isinstance(call, ast.Call) or not call.args:
        return None
    value = failure.value(call.args[0])
    if isinstance(value, Tensor):
        return failure.replaced(call.args[0], f"{ast.unparse(call.args[0])}.detach()")
    for _, owner, name in _kept_graphs(value):
        found = assigned_attribute(type(owner), name)
        if found is not None:
            statement, file = found
            simple = isinstance(statement.value, (ast.Call, ast.Name, ast.Attribute, ast.Subscript))
            text = ast.unparse(statement.value) if simple else f"({ast.unparse(statement.value)})"
            targets = " = ".join([ast.unparse(each) for each in statement.targets])
            return f"{targets} = {text}.detach()".replace("'", '"'), f"{file}:{statement.lineno}"
    return None


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


@remedy(
    "Tensors of floating point and complex dtype can require gradients", "Tensors of floating point dtype can require"
)
def floats_require_grad(failure: Failure) -> str | None:
    """Make the tensor of floats."""
    call = failure.call
    if not isinstance(call, ast.Call):
        return None
    if failure.of_method:
        return failure.rewritten(input="{}.float()")
    return failure.with_keywords(dtype="torch.float32")


@remedy("you can only change requires_grad flags of leaf variables")
def detached_result(failure: Failure) -> str | None:
    """Detach a result."""
    statement = failure.statement()
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Attribute):
        return None
    name = ast.unparse(statement.targets[0].value)
    return f"{name} = {name}.detach()"


@remedy("cannot be converted to Scalar")
def list_of_numbers(failure: Failure) -> str | None:
    """Take all elements."""
    call = failure.call
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "item":
        return failure.renamed("tolist")
    return None


@remedy("Boolean value of Tensor with more than one value is ambiguous")
def all_elements(failure: Failure) -> str | None:
    """Ask whether it is true of all elements."""
    return f"({ast.unparse(failure.call)}).all()" if isinstance(failure.call, ast.Compare) else None
