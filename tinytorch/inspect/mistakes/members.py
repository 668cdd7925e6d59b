"""Remedies for modules, their members and their states, and for names that do not exist."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Mapping
from difflib import get_close_matches
from types import ModuleType
from typing import Any

from tinytorch.core.names import module_of
from tinytorch.core.tensor import Tensor
from tinytorch.inspect.mistakes.failure import Failure, is_layer
from tinytorch.inspect.mistakes.layers import constructor, first_of_pair
from tinytorch.inspect.mistakes.remedies import remedy
from tinytorch.inspect.mistakes.stack import Step, locals_of
from tinytorch.inspect.sources import function_tree, header_of

# Names --------------------------------------------------------------------------------------------


@remedy("has no attribute")
def misspelt(failure: Failure) -> str | None:
    """Name the member of a similar name."""
    call = failure.call
    if not isinstance(failure.error, AttributeError) or call is None:
        return None
    wrong = re.findall(r"'(\w+)'", failure.text)[-1]
    for node in ast.walk(call):
        if isinstance(node, ast.Attribute) and node.attr == wrong:
            owner = failure.value(node.value)
            owner = getattr(failure.error, "obj", None) if owner is None else owner
            meant = None
            if isinstance(owner, Tensor):
                meant = {"astype": "to", "copy": "clone", "array": "numpy", "np": "numpy"}.get(wrong)
            elif not isinstance(owner, ModuleType) and not _is_ours(owner):
                return None
            names = [name for name in dir(owner) if not name.startswith("_")]
            meant = meant or next((name for name in names if name.lower() == wrong.lower()), None)
            meant = meant or next(iter(get_close_matches(wrong, names, 1, 0.7)), None)
            return None if meant is None else f"{ast.unparse(node.value)}.{meant}"
    return None


def _is_ours(owner: Any) -> bool:
    """Return whether an object is a module, or of a class that the package defines."""
    return hasattr(owner, "_modules") or any(module_of(each).startswith("tinytorch.") for each in type(owner).__mro__)


@remedy("'tuple' object has no attribute", "tuple indices must be integers or slices")
def of_pair(failure: Failure) -> str | tuple[str, int] | None:
    """Take the output out of the tuple that a recurrent layer returns."""
    call = failure.call
    node = call.func if isinstance(call, ast.Call) else call
    if not isinstance(node, (ast.Attribute, ast.Subscript)):
        return None
    value = failure.value(node.value)
    if isinstance(value, tuple) and value and isinstance(value[0], Tensor):
        return first_of_pair(failure, node.value)
    return None


@remedy("values to unpack")
def one_state(failure: Failure) -> str | None:
    """Take the one state that a GRU returns."""
    statement = failure.statement()
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
        return None
    target, module = statement.targets[0], failure.value(statement.value.func)
    pair = isinstance(target, ast.Tuple) and len(target.elts) == 2 and isinstance(target.elts[1], ast.Tuple)
    if not pair or not is_layer(module, "GRU", "RNN") or not isinstance(target, ast.Tuple):
        return None
    state = target.elts[1]
    first = state.elts[0] if isinstance(state, ast.Tuple) else state
    return f"{ast.unparse(target.elts[0])}, {ast.unparse(first)} = {ast.unparse(statement.value)}"


@remedy("'NoneType' object has no attribute", "'NoneType' object is not", "unsupported operand type(s)")
def gradient_that_is_none(failure: Failure) -> str | tuple[str, int] | None:
    """Keep the gradient of a result, require that of a leaf, or leave out parameters that have none."""
    statement, call = failure.statement(), failure.call
    for node in ast.walk(call) if call is not None else ():
        if not isinstance(node, ast.Attribute) or node.attr != "grad":
            continue
        owner, text = failure.value(node.value), ast.unparse(node.value)
        if not isinstance(owner, Tensor) or owner._grad is not None:
            continue
        assigned = failure.assignment(node.value)
        if not owner.is_leaf:
            return _updated(failure, text) or (None if owner.retains_grad else f"{text}.retain_grad()")
        if not owner.requires_grad:
            if assigned is None or not owner.dtype.is_floating_point or len(assigned.targets) != 1:
                return None
            return failure.assigned_with(assigned, ".requires_grad_()"), assigned.lineno
        for each in ast.walk(statement) if statement is not None else ():
            if isinstance(each, ast.comprehension) and ast.unparse(each.target) == text and not each.ifs:
                item = f"for {text} in {ast.unparse(each.iter)}"
                return f"{item} if {text}.grad is not None".replace("'", '"')
        whole = statement.value if isinstance(statement, ast.Expr) else None
        written = isinstance(whole, ast.Call) and ast.unparse(whole.func).startswith(f"{text}.grad.")
        if written or (failure.of_loop(node.value) and isinstance(statement, (ast.Expr, ast.AugAssign))):
            return f"if {text}.grad is not None: {failure.user.text().partition('  #')[0]}"
    return None


def _updated(failure: Failure, text: str) -> str | None:
    """Return a step of gradient descent by hand as one that is written in place, and not recorded."""
    tree, statement = failure.user.tree(), failure.statement()
    for node in ast.walk(tree) if tree is not None else ():
        value = node.value if isinstance(node, ast.Assign) else None
        if not isinstance(node, ast.Assign) or not isinstance(value, ast.BinOp):
            continue
        own = ast.unparse(node.targets[0]) == ast.unparse(value.left) == text and isinstance(value.op, ast.Sub)
        if own and f"{text}.grad" in ast.unparse(value.right):
            change = f"with torch.no_grad(): {text} -= {ast.unparse(value.right)}"
            return change if statement is not None and ast.unparse(statement) == ast.unparse(node) else None
    return None


@remedy("'float' object has no attribute 'backward'", "'int' object has no attribute 'backward'",
        "object has no attribute 'backward'")  # fmt: skip
def loss_as_number(failure: Failure) -> str | tuple[str, int] | None:
    """Leave the loss a tensor."""
    call = failure.call
    node = call.func if isinstance(call, ast.Call) else call
    made = node.value if isinstance(node, ast.Attribute) else None
    if isinstance(made, ast.Call) and isinstance(made.func, ast.Attribute) and made.func.attr == "item":
        return f"{ast.unparse(made.func.value)}.backward()"
    assigned = failure.assignment(node.value) if isinstance(node, ast.Attribute) else None
    value = getattr(assigned, "value", None)
    if assigned is None or not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return None
    if value.func.attr in ("item", "numpy"):
        return f"{ast.unparse(assigned.targets[0])} = {ast.unparse(value.func.value)}", assigned.lineno
    return None


@remedy("'NoneType' object has no attribute", "'NoneType' object is not", "must be Tensor, not NoneType",
        "unsupported operand type(s)")  # fmt: skip
def forgotten_return(failure: Failure) -> str | tuple[str, int] | None:
    """Return what the last statement of a module's `forward` computes."""
    call: Any = failure.call
    node: Any
    nodes = [node for node in ast.walk(call) if isinstance(node, (ast.Call, ast.Name))] if call is not None else []
    for node in nodes:
        if isinstance(node, ast.Name):
            assigned = failure.assignment(node)
            node = None if assigned is None else assigned.value
        module = failure.value(node.func) if isinstance(node, ast.Call) else None
        function: Any = getattr(type(module), "forward", None)
        if not hasattr(module, "_modules") or module_of(type(module)).startswith("tinytorch."):
            continue
        tree = function_tree(function)
        if any(isinstance(each, ast.Return) and each.value is not None for each in ast.walk(tree)):
            continue
        last = tree.body[-1]
        if isinstance(last, (ast.Assign, ast.Expr)):
            return f"return {ast.unparse(last.value)}", last.lineno
    return None


@remedy("object has no attribute")
def values_of_pair(failure: Failure) -> str | None:
    """Take the values out of the pair of values and indices that a function returns."""
    call, found = failure.call, getattr(failure.error, "obj", None)
    node = call.func if isinstance(call, ast.Call) else call
    if not isinstance(node, ast.Attribute) or not isinstance(found, tuple) or not hasattr(found, "values"):
        return None
    return f"{ast.unparse(node.value)}.values.{node.attr}"


@remedy("object has no attribute 'detach'")
def parameter_of_list(failure: Failure) -> str | None:
    """Make a tensor of the list of which a parameter is made."""
    values = failure.arguments.get("data")
    return failure.rewritten(data="torch.tensor({})") if isinstance(values, (list, tuple, float)) else None


@remedy("'DataLoader' object is not subscriptable", "'DataLoader' object is not an iterator")
def first_batch(failure: Failure) -> str | None:
    """Take the first batch of a loader."""
    call = failure.call
    node = call.value if isinstance(call, ast.Subscript) else call.args[0] if isinstance(call, ast.Call) else None
    return None if node is None else f"next(iter({ast.unparse(node)}))"


@remedy("object does not support the context manager protocol")
def made_manager(failure: Failure) -> str | None:
    """Call the class of a context manager."""
    (statement,) = ast.parse(f"{failure.user.text()} pass").body
    for item in statement.items if isinstance(statement, ast.With) else ():
        kind = failure.value(item.context_expr)
        if isinstance(kind, type) and module_of(kind).startswith("tinytorch."):
            return f"{ast.unparse(item.context_expr)}()"
    return None


@remedy("unsupported operand type(s)")
def tensor_of_list(failure: Failure) -> str | None:
    """Make a tensor of a list that is an operand."""
    call = failure.call
    if not isinstance(call, ast.BinOp) or "'list'" not in failure.text or "'Tensor'" not in failure.text:
        return None
    node = call.left if isinstance(failure.value(call.left), list) or isinstance(call.left, ast.List) else call.right
    return failure.replaced(node, f"torch.tensor({ast.unparse(node)})")


# Modules ------------------------------------------------------------------------------------------


@remedy("before Module.__init__() call")
def initialized(failure: Failure) -> str | tuple[str, int] | None:
    """Call the constructor of the base class first, with the arguments of the own one that it needs."""
    for step in reversed([each for each in failure.steps if each.users]):
        tree: Any = step.tree()
        if isinstance(tree, ast.FunctionDef) and tree.name == "__init__" and step.file == failure.user.file:
            body = tree.body[1:] if ast.get_docstring(tree) is not None and len(tree.body) > 1 else tree.body
            for each in body:
                if isinstance(each, ast.Expr) and ast.unparse(each).endswith(").__init__"):
                    return f"{ast.unparse(each)}()", each.lineno  # (it is not called)
            needed = _needed(step, [each.arg for each in tree.args.args])
            if needed is None:
                return None
            return f"super().__init__({needed}); {ast.unparse(body[0])}".replace("'", '"'), body[0].lineno
    return "super().__init__()"


def _needed(step: Step, own: list[str]) -> str | None:
    """Return the arguments that a base class's constructor needs; None if one is not among those of the own one."""
    base: Any = type(locals_of(step.frame).get("self")).__mro__[1]
    parameters = list(inspect.signature(base.__init__).parameters.values())[1:]
    named = [each for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)]
    names = [each.name for each in named if each.default is each.empty]
    if not all(name in own for name in names):
        return None
    return ", ".join(names)


@remedy('is missing the required "forward" function')
def called_list(failure: Failure) -> str | None:
    """Call the modules of a list one after the other."""
    call = failure.call
    if not failure.is_module("ModuleList") or not isinstance(call, ast.Call):
        return None
    return failure.called_as("nn.Sequential(*{})")


@remedy("positional argument but", "positional arguments but")
def method_without_self(failure: Failure) -> str | tuple[str, int] | None:
    """Give `forward` its `self`."""
    function: Any = getattr(type(failure.module), "forward", None)
    code = getattr(function, "__code__", None)
    if code is None or f"{code.co_qualname}()" not in failure.text or code.co_varnames[:1] == ("self",):
        return None
    header, line = header_of(function)
    text = header.replace("forward(", "forward(self, ", 1).replace("self, )", "self)")
    return text, line if code.co_filename == failure.user.file else 0


@remedy("is not a Module subclass")
def modules_of_sequence(failure: Failure) -> str | None:
    """Unpack a list of modules; make modules of classes."""
    call = failure.call
    if not isinstance(call, ast.Call):
        return None
    for node in call.args:
        value = failure.value(node)
        if isinstance(value, (list, tuple)) or isinstance(node, (ast.List, ast.ListComp)):
            text = ast.unparse(node)
            return failure.replaced(node, f"[*{text}]").replace(f"[*{text}]", f"*{text}")
        if isinstance(value, type):
            return failure.replaced(node, f"{ast.unparse(node)}()")
    return None


@remedy("as parameter '")
def assigned_parameter(failure: Failure) -> str | None:
    """Make a parameter of a tensor."""
    statement = failure.statement()
    if not isinstance(statement, ast.Assign):
        return None
    return f"{ast.unparse(statement.targets[0])} = nn.Parameter({ast.unparse(statement.value)})"


@remedy("optimizer got an empty parameter list")
def registered_list(failure: Failure) -> str | tuple[str, int] | None:
    """Make a `ModuleList` of a list of modules."""
    node = failure.node("params")
    owner: Any = node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
    value = failure.value(owner.func if isinstance(owner, ast.Call) else owner)
    kind = value if isinstance(value, type) else type(value)
    for each in ast.walk(function_tree(kind.__init__)):  # type: ignore[misc]
        if not isinstance(each, ast.Assign) or not isinstance(each.value, (ast.List, ast.ListComp)):
            continue
        if "nn." in ast.unparse(each.value):
            text = f"{ast.unparse(each.targets[0])} = nn.ModuleList({ast.unparse(each.value)})"
            return text, each.lineno
    return None


# States -------------------------------------------------------------------------------------------


@remedy("Expected state_dict to be dict-like")
def state_of(failure: Failure) -> str | None:
    """Give the state of a module, rather than the module or the name of a file."""
    given = failure.arguments["state_dict"]
    if isinstance(given, str):
        return failure.rewritten(state_dict="torch.load({})")
    return failure.rewritten(state_dict="{}.state_dict()") if hasattr(given, "state_dict") else None


@remedy("in loading state_dict for")
def matching_state(failure: Failure) -> str | None:
    """Take the state out of a checkpoint, or remove the prefix of its names."""
    module, state = failure.self, failure.arguments["state_dict"]
    own = set(module.state_dict())
    said = failure.said("state_dict")
    for key, value in state.items():
        if isinstance(value, Mapping) and own & set(value):
            return failure.rewritten(state_dict=f"{{}}[{key!r}]").replace("'", '"')
        if isinstance(value, Mapping) and any(f".{name}" in f".{each}" for each in value for name in own):
            said, state = f'{said}["{key}"]', value
    for prefix in {key.partition(".")[0] + "." for key in state} if own != set(state) else ():
        if {key.removeprefix(prefix) for key in state} == own:
            text = f'{{key.removeprefix("{prefix}"): value for key, value in {said}.items()}}'
            return failure.rewritten(state_dict=text)
    call = failure.call
    for name, child in module._modules.items():
        if child is not None and set(child.state_dict()) == set(state) and isinstance(call, ast.Call):
            owner = ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else "model"
            return failure.called_as(f"{owner}.{name}.load_state_dict")
    renamed = _renamed(own - set(state), set(state) - own)
    if renamed is not None and _same_sizes(module.state_dict(), state, *renamed):
        old, new = renamed
        text = f'{{key.replace("{old}", "{new}", 1): value for key, value in {said}.items()}}'
        return failure.rewritten(state_dict=text)
    if "size mismatch" not in failure.text and 2 * len(own & set(state)) >= len(own | set(state)):
        return failure.with_keywords(strict="False")
    return None


def _same_sizes(own: Mapping[str, Any], state: Mapping[str, Any], old: str, new: str) -> bool:
    """Return whether the tensors of a state have the sizes that the renamed ones of a module have."""
    pairs = [(own.get(key.replace(old, new, 1)), value) for key, value in state.items() if key.startswith(old)]
    return all(tuple(a.shape) == tuple(b.shape) for a, b in pairs if a is not None)


def _renamed(missing: set[str], unexpected: set[str]) -> tuple[str, str] | None:
    """Return the beginning of names in a state, and the one that a module has in its place, if all others agree."""
    olds, news = {key.partition(".")[0] for key in unexpected}, {key.partition(".")[0] for key in missing}
    if len(olds) != 1 or len(news) != 1 or not all("." in key for key in missing | unexpected):
        return None
    old, new = f"{olds.pop()}.", f"{news.pop()}."
    return (
        (old, new)
        if {key.removeprefix(old) for key in unexpected} == {key.removeprefix(new) for key in missing}
        else None
    )


@remedy("size mismatch for")
def matching_sizes(failure: Failure) -> str | None:
    """Derive the layer for which the weights were saved."""
    pattern = r"size mismatch for (?:(\S+)\.)?weight: copying a param with shape torch.Size\(\[([\d, ]*)\]"
    found = re.search(pattern, failure.text)
    if found is None:
        return None
    layer = failure.self.get_submodule(found[1] or "")
    sizes = [int(size) for size in found[2].split(",")]
    if type(layer).__name__ == "Linear":
        return constructor(layer, sizes[1], sizes[0])
    if is_layer(layer, "Conv1d", "Conv2d", "Conv3d"):
        return constructor(layer, sizes[1] * layer.groups, sizes[0], tuple(sizes[2:]))
    return constructor(layer, *sizes) if type(layer).__name__ == "Embedding" else None
