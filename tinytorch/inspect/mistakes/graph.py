"""Facts and remedies for the graph: what cut it, what wrote into a saved value, which parameter was not used."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from typing import Any

from tinytorch.core.mode import local
from tinytorch.core.tensor import Tensor
from tinytorch.inspect.mistakes.failure import Failure
from tinytorch.inspect.mistakes.remedies import fact, remedy
from tinytorch.inspect.mistakes.stack import Step, locals_of
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
    return failure.replaced(call.args[0], f"{ast.unparse(call.args[0])}.mean()")


@remedy("Mismatch in shape: grad_output[0]")
def ones(failure: Failure) -> str | None:
    """Start backward from ones of the right shape, if it was to start from ones."""
    name = "gradient" if "gradient" in failure.arguments else "grad_tensors"
    g = failure.arguments.get(name)
    if not isinstance(g, Tensor) or not bool((g == 1).all()) or not failure.of_method:
        return None
    return failure.rewritten(**{name: f"torch.ones_like({failure.said('input')})"})


@remedy("Trying to backward through the graph a second time")
def once_more(failure: Failure) -> str | tuple[str, int] | None:
    """Detach what is passed on from one step of a loop to the next, or keep the graph of the first backward."""
    tree, call = failure.user.tree(), failure.call
    loops = [
        node
        for node in (ast.walk(tree) if tree is not None else ())
        if isinstance(node, (ast.For, ast.While)) and node.lineno <= failure.user.line <= (node.end_lineno or 0)
    ]
    for node in ast.walk(loops[-1]) if loops else ():
        if not isinstance(node, ast.Assign):
            continue
        targets = {each.id for target in node.targets for each in ast.walk(target) if isinstance(each, ast.Name)}
        for each in ast.walk(node.value):
            if isinstance(each, ast.Name) and each.id in targets and _has_graph(failure.value(each)):
                if isinstance(failure.value(each), tuple):
                    text = f"tuple([each.detach() for each in {each.id}])"
                else:
                    text = f"{each.id}.detach()"
                changed = failure.in_text(node.value, each, text)
                return f"{ast.unparse(node.targets[0]).strip('()')} = {changed}", node.lineno
    first = _earlier_backward(failure, tree)
    if first is not None:
        return f"{ast.unparse(first.func)}(retain_graph=True)", first.lineno
    return failure.with_keywords(retain_graph="True") if isinstance(call, ast.Call) else None


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

    def follow(self, node: ast.AST, tree: ast.AST, file: str, line: int, first: int = 0, depth: int = 0) -> None:
        """Look at an expression that stands at a line of a function, and at what it depends on."""
        if depth > 12 or id(node) in self._seen:
            return
        self._seen.add(id(node))
        for each in ast.walk(node):
            reason = self._reason(each)
            if reason:
                self.found.append((first + getattr(each, "lineno", line), file, reason, ""))
            if isinstance(each, ast.Name):
                assigned = _assigned(tree, each.id, line)
                if assigned is not None:
                    if _without_recording(tree, assigned):
                        self.found.append(
                            (first + assigned.lineno, file, "nothing is recorded inside of no_grad()", "")
                        )
                    before = len(self.found)
                    self.follow(assigned.value, tree, file, assigned.lineno, first, depth + 1)
                    for k, (line, name, reason, text) in enumerate(self.found[before:], before):
                        if not text and line == first + assigned.lineno:
                            self.found[k] = (line, name, reason, _uncut(assigned))
            if isinstance(each, ast.Call):
                self._into(self.failure.value(each.func), depth)

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
        if not hasattr(module, "_modules") or type(module).__module__.startswith("tinytorch.") or depth > 3:
            return
        function = inspect.unwrap(type(module).forward)
        lines, first = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines)))
        for each in ast.walk(tree):
            if isinstance(each, ast.Return) and each.value is not None:
                line = each.lineno
                self.follow(each.value, tree, function.__code__.co_filename, line, first - 1, depth + 1)


def _assigned(tree: ast.AST, name: str, line: int) -> ast.Assign | None:
    """Return the last assignment of a variable before a line."""
    found = None
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and node.lineno < line:
            names = {each.id for target in node.targets for each in ast.walk(target) if isinstance(each, ast.Name)}
            if name in names and (found is None or node.lineno > found.lineno):
                found = node
    return found


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
    """Removes what cuts the graph and can be left out."""

    def visit_Call(self, node: ast.Call) -> Any:
        """Return what was detached, or made a number."""
        self.generic_visit(node)
        name = ast.unparse(node.func)
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("detach", "item") and not node.args:
            return node.func.value
        if name in ("torch.tensor", "torch.as_tensor") and len(node.args) == 1 and isinstance(node.args[0], ast.Name):
            return node.args[0]
        return node

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        """Return the tensor whose `data` was read."""
        self.generic_visit(node)
        return node.value if node.attr == "data" else node


def _uncut(statement: ast.Assign) -> str:
    """Return an assignment without what cuts the graph; "" if that cannot be left out."""
    before = ast.unparse(statement)
    again = ast.parse(before)
    text = ast.unparse(_Uncutting().visit(again)).replace("'", '"')
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
    texts = {(text, line) for line, file, _, text in found if text and file == failure.user.file}
    if len(texts) == 1 and all(text for _, _, _, text in found):
        return texts.pop()
    frozen = [reason for _, _, reason, _ in found if reason.startswith("all parameters of")]
    if len(found) == len(frozen) == 1:
        return f"{frozen[0].split()[3]}.requires_grad_(True)"
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
    elif mode is None and not texts:
        texts.append("torch.autograd.set_detect_anomaly(True) before the forward pass tells the lines")
    return "; ".join(texts)


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
    if len(found) != 1:
        return None
    name, node = found[0]
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        value = ast.BinOp(ast.Name(name, ast.Load()), node.op, node.value)
        return f"{name} = {failure.unparsed(value)}", node.lineno
    if isinstance(node, ast.Assign | ast.AugAssign):
        return f"{name} = {name}.clone(); {failure.unparsed(node)}", node.lineno
    call = node.value if isinstance(node, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
        again = ast.Call(ast.Attribute(call.func.value, call.func.attr[:-1], ast.Load()), call.args, call.keywords)
        if call.func.attr[:-1] in methods:
            return f"{name} = {failure.unparsed(again)}", node.lineno
    return None


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
            if code is not None and not function.__module__.startswith("tinytorch"):
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
    """Detach the tensor first."""
    call = failure.call
    if not isinstance(call, ast.Call):
        return None
    if isinstance(call.func, ast.Attribute) and call.func.attr in ("numpy", "__array__"):
        return failure.called_as(f"{failure.said('input')}.detach().{call.func.attr}")
    graph = [node for node in call.args if isinstance(node, ast.BinOp | ast.Call) or _has_graph(failure.value(node))]
    for node in call.args:
        values = failure.value(node)
        if isinstance(values, list) and all(isinstance(each, Tensor) and each.numel() == 1 for each in values):
            return failure.replaced(node, f"[each.item() for each in {ast.unparse(node)}]")
    return failure.replaced(graph[0], f"({ast.unparse(graph[0])}).detach()") if graph else None


@remedy("support the deepcopy protocol")
def detached_copy(failure: Failure) -> str | None:
    """Copy the elements, without the graph."""
    call = failure.call
    if not isinstance(call, ast.Call) or not call.args or not isinstance(failure.value(call.args[0]), Tensor):
        return None
    return failure.replaced(call.args[0], f"{ast.unparse(call.args[0])}.detach()")


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
