"""Where the user's code makes a module: the line of its constructor."""

from __future__ import annotations

import ast
from typing import Any

from tinytorch.core.names import module_of
from tinytorch.core.warning import is_ours
from tinytorch.inspect.mistakes.failure import Failure
from tinytorch.inspect.mistakes.stack import locals_of
from tinytorch.inspect.source import assigned_attribute

__all__ = ["made_at"]


def made_at(failure: Failure, module: Any = None) -> str:
    """Return "file:line" of the expression that makes a module, by default the innermost; "" if it cannot be told.

    Looked at are assignments: to an attribute in `__init__` of the module that contains it, or else to a variable in
    the functions that have not returned.
    """
    try:
        module = failure.module if module is None else module
        root, path = next(
            (each, path)
            for each in failure.modules
            for path, found in each.named_modules(remove_duplicate=False)
            if found is module
        )
        root = root._modules.get("_orig_mod", root)
        path = path.replace("_orig_mod.", "").replace("_orig_mod", "")
        chain, names = [root], path.split(".") if path else []
        for name in names:
            chain.append(chain[-1]._modules[name])
        for k in range(len(names) - 1, -1, -1):
            owner = type(chain[k])
            if not module_of(owner).startswith("tinytorch."):
                found = assigned_attribute(owner, names[k], "__init__")
                return f"{found[1]}:{_below(found[0].value, names[k + 1 :]).lineno}" if found is not None else ""
        return _in_functions(failure, root, names)
    except Exception:
        return ""


def _in_functions(failure: Failure, root: Any, names: list[str]) -> str:
    """Return where one of the functions that have not returned assigns a module to a variable."""
    for step in reversed([each for each in failure.steps if each.users and not is_ours(each.frame)]):
        variables = locals_of(step.frame)
        own = {name for name, value in variables.items() if value is root or getattr(value, "_orig_mod", None) is root}
        tree = step.tree() if own else None
        found = None
        for node in ast.walk(tree) if tree is not None else ():
            if not isinstance(node, ast.Assign) or node.lineno >= step.line:
                continue
            if any(isinstance(target, ast.Name) and target.id in own for target in node.targets):
                found = node
        if found is not None:
            value: ast.expr = found.value
            if isinstance(value, ast.Call) and ast.unparse(value.func).rpartition(".")[2] == "compile" and value.args:
                value = value.args[0]
            return f"{step.file}:{_below(value, names).lineno}"
    return ""


def _below(value: ast.expr, names: list[str]) -> ast.expr:
    """Return the expression that makes a module inside of sequences and lists, as far as it can be followed."""
    for name in names:
        items = value.args if isinstance(value, ast.Call) else value.elts if isinstance(value, ast.List) else []
        if len(items) == 1 and isinstance(items[0], ast.List):
            items = items[0].elts
        if not name.isdigit() or int(name) >= len(items) or any(isinstance(each, ast.Starred) for each in items):
            return value
        value = items[int(name)]
    return value
