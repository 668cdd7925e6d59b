"""Remedies for methods and classes that are not called, for what is called and cannot be, and for pairs."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from tinytorch.core.names import module_of
from tinytorch.core.tensor import Tensor
from tinytorch.inspect.mistakes.failure import Failure, is_layer
from tinytorch.inspect.mistakes.remedies import fact, remedy
from tinytorch.inspect.sources import assigned_attribute, function_tree, header_of

# Methods that are not called ----------------------------------------------------------------------


def expressions(failure: Failure) -> Iterator[Any]:
    """Yield the names, attributes and subscripts in the user's expression, or else in the statement."""
    for root in (failure.call, failure.statement()):
        for node in ast.walk(root) if root is not None else ():
            if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
                yield node


def replaced(failure: Failure, node: ast.AST, text: str) -> str | None:
    """Return the user's expression, or else the statement, with another text for a part of it."""
    for root in (failure.call, failure.statement()):
        if root is not None and any(each is node for each in ast.walk(root)):
            return failure.in_text(root, node, text)
    return None


@remedy("'method'", "'builtin_function_or_method'", "'function'", "must be Tensor, not method",
        "must be Tensor, not builtin", "object is not iterable")  # fmt: skip
def method_called(failure: Failure) -> str | None:
    """Call a method: `loss.item()` for `loss.item`, `x.size(0)` for `x.size[0]`."""
    called = {id(node.func) for root in (failure.call, failure.statement()) if root is not None
              for node in ast.walk(root) if isinstance(node, ast.Call)}  # fmt: skip
    for node in expressions(failure):
        if isinstance(node, ast.Subscript) and _is_method(failure, node.value):
            return replaced(failure, node, f"{ast.unparse(node.value)}({ast.unparse(node.slice)})")
    for node in expressions(failure):
        if id(node) not in called and _is_method(failure, node):
            return replaced(failure, node, f"{ast.unparse(node)}()")
    return None


def _is_method(failure: Failure, node: ast.AST) -> bool:
    """Return whether an expression is a method of a tensor, a module or another object of the package."""
    if not isinstance(node, ast.Attribute):
        return False
    owner, value = failure.value(node.value), failure.value(node)
    ours = isinstance(owner, Tensor) or any(module_of(each).startswith("tinytorch") for each in type(owner).__mro__)
    return ours and not isinstance(owner, type) and callable(value) and not hasattr(value, "_modules")


@remedy("'tuple' object is not callable", "'tuple' object has no attribute", "must be Tensor, not tuple",
        "instances of 'tuple'", "'tuple' and", "and 'tuple'")  # fmt: skip
def without_comma(failure: Failure) -> tuple[str, int] | tuple[str, str] | None:
    """Leave out a comma at the end of an assignment, which makes a tuple."""
    for node in expressions(failure):
        value = failure.value(node)
        if type(value) is not tuple or len(value) != 1:
            continue
        assigned = failure.assignment(node)
        place: Any = getattr(assigned, "lineno", 0)
        if isinstance(node, ast.Attribute):
            found = assigned_attribute(type(failure.value(node.value)), node.attr)
            assigned, place = (found[0], f"{found[1]}:{found[0].lineno}") if found is not None else (None, 0)
        if assigned is not None and isinstance(assigned.value, ast.Tuple) and len(assigned.value.elts) == 1:
            return f"{ast.unparse(assigned.targets[0])} = {ast.unparse(assigned.value.elts[0])}", place
    return None


# What cannot be called ----------------------------------------------------------------------------


@remedy("object is not callable")
def not_callable(failure: Failure) -> str | tuple[str, int] | tuple[str, str] | None:
    """Index what has elements, call the layers of a list in turn, and leave out a call of a value."""
    call = failure.call
    if not isinstance(call, ast.Call):
        return None
    value, text = failure.value(call.func), ast.unparse(call.func)
    if isinstance(value, list) and value and all(hasattr(each, "_modules") for each in value):
        return _sequential(failure, call)
    sequence = isinstance(value, (tuple, list)) and not hasattr(value, "_fields")
    if sequence and len(call.args) == 1 and not any(hasattr(each, "_modules") for each in value):
        return f"{text}[{ast.unparse(call.args[0])}]"
    if isinstance(value, Tensor):
        return f"{text}[{', '.join(map(ast.unparse, call.args))}]" if call.args else text
    return None


def _sequential(failure: Failure, call: ast.Call) -> str | tuple[str, int] | tuple[str, str] | None:
    """Return the assignment of a list of layers as one layer."""
    found: Any = failure.assignment(call.func)
    place: Any = getattr(found, "lineno", 0)
    if isinstance(call.func, ast.Attribute):
        attribute = assigned_attribute(type(failure.value(call.func.value)), call.func.attr, "__init__")
        if attribute is not None:
            found, place = attribute[0], f"{attribute[1]}:{attribute[0].lineno}"
    if found is None or not isinstance(found.value, (ast.List, ast.ListComp)):
        return failure.called_as("nn.Sequential(*{})")
    items = ast.unparse(found.value)
    inner = items[1:-1] if isinstance(found.value, ast.List) else f"*{items}"
    return f"{ast.unparse(found.targets[0])} = nn.Sequential({inner})", place


@remedy("'Tensor' object is not callable")
def function_and_arguments(failure: Failure) -> str | None:
    """Give the function and its arguments apart, where the result of its call was given; step without a loss."""
    if failure.entrance is None:
        return None
    call = failure.call
    for name, value in failure.arguments.items():
        node = failure.node(name)
        if isinstance(value, Tensor) and isinstance(node, ast.Call) and callable(failure.value(node.func)):
            arguments = ", ".join([ast.unparse(each) for each in (node.func, *node.args)])
            return failure.replaced(node, f"({arguments})").replace(f"(({arguments})", f"({arguments}")
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "step":
        return f"{ast.unparse(call.func)}()"
    return None


@fact("object is not callable")
def hidden_method(failure: Failure) -> str | None:
    """Say which attribute of a module hides a method."""
    for owner in [failure.self, *failure.modules[::-1], *[failure.value(node) for node in expressions(failure)]]:
        if not hasattr(owner, "_modules") or isinstance(owner, type):
            continue
        for name, value in vars(owner).items():
            method = getattr(type(owner), name, None)
            if inspect.isfunction(method) and not callable(value):
                found = assigned_attribute(type(owner), name)
                place = f" at {found[1]}:{found[0].lineno}" if found is not None else ""
                kind = type(owner).__name__
                return f"the attribute {name} that is assigned{place} hides the method {kind}.{name}: rename it"
    return None


# Results that are not what they are taken for -----------------------------------------------------


@remedy("'NoneType'", "'_IncompatibleKeys'", "not NoneType")
def not_assigned(failure: Failure) -> str | tuple[str, int] | None:
    """Leave out an assignment of a result, where the method changed its object: `model.load_state_dict(state)`."""
    for node in expressions(failure):
        if isinstance(node, ast.Name):
            value, assigned = failure.value(node), failure.assignment(node)
            made = getattr(assigned, "value", None)
            if not isinstance(made, ast.Call) or not isinstance(made.func, ast.Attribute):
                continue
            if value is not None and type(value).__name__ != "_IncompatibleKeys":
                continue
            owner = ast.unparse(made.func.value)
            if owner == node.id:
                return ast.unparse(made).replace("'", '"'), assigned.lineno
            if type(value).__name__ == "_IncompatibleKeys":
                return replaced(failure, node, owner)
    return None


@remedy("'collections.OrderedDict' object", "'OrderedDict' object", "'dict' object is not callable")
def loaded_state(failure: Failure) -> str | None:
    """Load a state into the model, rather than use it as one."""
    for node in expressions(failure):
        state = failure.value(node)
        if not isinstance(state, Mapping) or not state or not all(isinstance(each, str) for each in state):
            continue
        for name, value in failure.variables.items():
            own = hasattr(value, "_modules") and not isinstance(value, type) and not name.startswith("_")
            if own and set(value.state_dict()) == set(state):
                return f"{name}.load_state_dict({ast.unparse(node)})"
        text = ast.unparse(node)
        kinds = [name for name, value in failure.variables.items() if _is_made_without_arguments(value)]
        assigned = failure.assignment(node)
        if len(kinds) == 1 and assigned is not None and isinstance(node, ast.Name):
            return f"{text} = {kinds[0]}(); {text}.load_state_dict({ast.unparse(assigned.value)})".replace("'", '"')
    return None


def _is_made_without_arguments(value: Any) -> bool:
    """Return whether a value is a user's class of modules whose constructor needs no arguments."""
    if not isinstance(value, type) or not hasattr(value, "load_state_dict") or module_of(value).startswith("tiny"):
        return False
    parameters = list(inspect.signature(value.__init__).parameters.values())[1:]  # type: ignore[misc]
    return all(each.default is not each.empty or each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
               for each in parameters)  # fmt: skip


@remedy("has no attribute 'step'", "has no attribute 'zero_grad'", "has no attribute 'backward'")
def other_object(failure: Failure) -> str | None:
    """Call the method of the object that has it: `optimizer.step()` for `model.step()`."""
    call = failure.call
    node = call.func if isinstance(call, ast.Call) else call
    if not isinstance(node, ast.Attribute) or failure.value(node.value) is None:
        return None
    owner = failure.value(node.value)
    if not isinstance(owner, Tensor) and not hasattr(owner, "_modules"):
        return None
    if node.attr == "backward":
        names = [name for name, value in failure.variables.items()
                 if isinstance(value, Tensor) and value.grad_fn is not None and value.ndim == 0]  # fmt: skip
        names = [name for name in names if "loss" in name] or names
    else:
        names = [name for name, value in failure.variables.items()
                 if any(each.__name__ == "Optimizer" for each in type(value).__mro__)]  # fmt: skip
    return failure.replaced(node.value, names[0]) if len(names) == 1 else None


def called(failure: Failure) -> ast.expr | None:
    """Return the call of the method that was looked for, rather than the method alone."""
    statement, call = failure.statement(), failure.call
    if statement is None or not isinstance(call, ast.Attribute):
        return call
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == ast.unparse(call):
            return node
    return call


# Members of containers ----------------------------------------------------------------------------


@remedy("'list' object has no attribute", "'tuple' object has no attribute", "'dict' object has no attribute")
def each_element(failure: Failure) -> str | None:
    """Call a method of tensors for each tensor of a list or dictionary."""
    call = called(failure)
    node = call.func if isinstance(call, ast.Call) else call
    if not isinstance(node, ast.Attribute) or not hasattr(Tensor, node.attr):
        return None
    value, text = failure.value(node.value), ast.unparse(node.value)
    arguments = ast.unparse(call).removeprefix(ast.unparse(node)) if isinstance(call, ast.Call) else ""
    if isinstance(value, dict) and value and all(isinstance(each, Tensor) for each in value.values()):
        again = f"{{key: value.{node.attr}{arguments} for key, value in {text}.items()}}"
    elif type(value) is list and value and all(isinstance(each, Tensor) for each in value):
        if node.attr == "backward":
            return f"torch.stack({text}).sum().backward()" if all(each.numel() == 1 for each in value) else None
        whole = node.attr not in ("to", "cpu", "cuda", "float", "double", "half", "long", "detach", "numpy")
        if whole and len({tuple(each.shape) for each in value}) == 1:
            again = f"torch.stack({text}).{node.attr}{arguments}"
        else:
            again = f"[each.{node.attr}{arguments} for each in {text}]"
    else:
        return None
    return again if '"' in again else again.replace("'", '"')


@remedy("'numpy.ndarray' object has no attribute", "'float' object has no attribute", "'int' object has no attribute")
def tensor_of_array(failure: Failure) -> str | None:
    """Make a tensor of an array whose method of tensors is called; leave out the method that makes a number."""
    if failure.inside:
        for name, value in failure.arguments.items():
            if module_of(type(value)) == "numpy" and hasattr(value, "ndim") and failure.node(name) is not None:
                return failure.rewritten(**{name: "torch.from_numpy({})"})
    call = called(failure)
    node = call.func if isinstance(call, ast.Call) else call
    if not isinstance(node, ast.Attribute) or not hasattr(Tensor, node.attr):
        return None
    value, text = failure.value(node.value), ast.unparse(node.value)
    if module_of(type(value)) == "numpy" and hasattr(value, "ndim"):
        return replaced(failure, node.value, f"torch.from_numpy({text})")
    if isinstance(value, (int, float)) and node.attr in ("item", "cpu", "detach", "tolist"):
        return text
    return None


@remedy("must be Tensor, not dict", "'dict' object has no attribute")
def entry_of_dictionary(failure: Failure) -> str | None:
    """Take the tensor out of a dictionary: the only one that can be meant."""
    found = re.search(r"has no attribute '(\w+)'", failure.text)
    for node in expressions(failure) if found is not None else ():
        owner = failure.value(node.value) if isinstance(node, ast.Attribute) else getattr(failure.error, "obj", None)
        wrong = found[1] if found is not None else ""
        if isinstance(node, ast.Attribute) and isinstance(owner, dict) and node.attr == wrong in owner:
            return replaced(failure, node, f'{ast.unparse(node.value)}["{node.attr}"]')
    for name, value in failure.arguments.items():
        if not isinstance(value, dict) or found is not None:
            continue
        keys = [key for key, each in value.items() if isinstance(each, Tensor) and each.dtype.is_floating_point]
        usual = [key for key in keys if key in ("logits", "output", "out", "pred", "image", "images", "x", "input")]
        keys = usual if len(usual) == 1 else keys
        return failure.rewritten(**{name: f'{{}}["{keys[0]}"]'}) if len(keys) == 1 else None
    return None


@remedy("'")
def key_of_dictionary(failure: Failure) -> str | None:
    """Name the key that was meant."""
    call = failure.call
    if not isinstance(failure.error, KeyError) or not isinstance(call, ast.Subscript):
        return None
    owner, wrong = failure.value(call.value), failure.error.args[0]
    keys = [each for each in owner if isinstance(each, str)] if hasattr(owner, "keys") else []
    if not isinstance(wrong, str) or not isinstance(call.slice, ast.Constant):
        return None
    found = get_close_matches(wrong, keys, 1, 0.75) or [each for each in keys if wrong in each or each in wrong]
    return failure.replaced(call.slice, f'"{found[0]}"') if len(found) == 1 else None


@remedy("must be a Tensor")
def tensor_of_number(failure: Failure) -> str | None:
    """Make a tensor of a number."""
    names = [name for name, value in failure.arguments.items() if isinstance(value, (int, float, list))]
    return failure.rewritten(**{names[0]: "torch.tensor({})"}) if len(names) == 1 else None


@remedy("object has no attribute 'device'")
def device_of_module(failure: Failure) -> str | None:
    """Ask the parameters of a module for its device."""
    for node in expressions(failure):
        if isinstance(node, ast.Attribute) and node.attr == "device" and hasattr(failure.value(node.value), "_modules"):
            return replaced(failure, node, f"next({ast.unparse(node.value)}.parameters()).device")
    return None


@remedy("object has no attribute")
def of_wrapped(failure: Failure) -> str | None:
    """Look for a member in the model or the data set that another object wraps."""
    call = failure.call
    node = call.func if isinstance(call, ast.Call) else call
    owner = failure.value(node.value) if isinstance(node, ast.Attribute) else None
    for name in ("module", "dataset"):
        inner = getattr(owner, name, None)
        if isinstance(node, ast.Attribute) and inner is not None and hasattr(inner, node.attr):
            return failure.replaced(node.value, f"{ast.unparse(node.value)}.{name}")
    return None


@remedy("'tuple' object has no attribute 'grad'")
def without_names(failure: Failure) -> str | None:
    """Give the parameters without their names."""
    for name in failure.arguments:
        node = failure.node(name)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "named_parameters":
            return failure.rewritten(**{name: f"{ast.unparse(node.func.value)}.parameters()"})
    return None


@remedy("'NoneType' object has no attribute", "must be Tensor, not NoneType")
def unless_none(failure: Failure) -> str | None:
    """Leave out a call for a member of a layer that is None, such as the bias of one without."""
    statement = failure.statement()
    if not failure.inside or not isinstance(statement, ast.Expr):
        return None
    for name, value in failure.arguments.items():
        node = failure.node(name)
        if value is None and isinstance(node, ast.Attribute) and hasattr(failure.value(node.value), "_modules"):
            return f"if {ast.unparse(node)} is not None: {failure.user.text()}"
    return None


@remedy("'generator' object has no attribute")
def of_whole_module(failure: Failure) -> str | None:
    """Call the method of the module, rather than of the generator of its parameters."""
    call = failure.call
    node = call.func if isinstance(call, ast.Call) else call
    made = node.value if isinstance(node, ast.Attribute) else None
    if not isinstance(node, ast.Attribute) or not isinstance(made, ast.Call):
        return None
    owner = made.func.value if isinstance(made.func, ast.Attribute) and not made.args else None
    if owner is None or not callable(getattr(failure.value(owner), node.attr, None)):
        return None
    return failure.replaced(made, ast.unparse(owner))


# Pairs that are taken for a tensor ----------------------------------------------------------------


@remedy("unsupported operand type(s)")
def operand_of_pair(failure: Failure) -> str | None:
    """Take the result out of the tuple that a layer, or `max` along a dimension, returns."""
    call = failure.call
    found = re.search(r"for (\S+?):? '(\w+)' and '(\w+)'", failure.text)
    if not isinstance(call, ast.BinOp) or found is None or "Tensor" not in found.groups():
        return None
    for node, kind in ((call.left, found[2]), (call.right, found[3])):
        if kind in ("tuple", "max", "min", "sort", "topk", "median", "mode", "kthvalue", "cummax"):
            value = failure.value(node)
            text = "[0]" if kind == "tuple" and not hasattr(value, "values") else ".values"
            return failure.replaced(node, f"{ast.unparse(node)}{text}")
    return None


@remedy("must be Tensor, not")
def argument_of_pair(failure: Failure) -> str | None:
    """Take the tensor out of a tuple or list that is given at once: `norm(rnn(x)[0])`, `model(batch[0])`."""
    if failure.entrance is None:
        return None
    for name, value in failure.arguments.items():
        node = failure.node(name)
        pair = isinstance(value, (tuple, list)) and value and isinstance(value[0], Tensor)
        if not pair or node is None:
            continue
        if isinstance(value, tuple) and isinstance(node, ast.Call):
            return failure.rewritten(**{name: "{}" + (".values" if hasattr(value, "values") else "[0]")})
        if failure.of_loop(node):
            return failure.rewritten(**{name: "{}[0]"})
    return None


def _pair_in_sequence(failure: Failure) -> tuple[Any, int]:
    """Return the sequence, and the place in it of the layer whose pair the next layer was given."""
    outer: Any = failure.modules[-2] if len(failure.modules) > 1 else None
    if not is_layer(outer, "Sequential") or not isinstance(next(iter(failure.given.values()), None), tuple):
        raise LookupError("no pair in a sequence")
    layers = list(outer._modules.values())
    return outer, next(k for k, each in enumerate(layers) if each is failure.module) - 1


@remedy("must be Tensor, not tuple", "'tuple' object has no attribute")
def sequence_apart(failure: Failure) -> str | None:
    """Call a recurrent layer of a sequence by itself, and the rest of the sequence with its output."""
    outer, k = _pair_in_sequence(failure)
    call = failure.call
    if k < 0 or not isinstance(call, ast.Call) or failure.value(call.func) is not outer or len(call.args) != 1:
        return None
    name = ast.unparse(call.func)
    first = f"{name}[0]" if k == 0 else f"{name}[:{k + 1}]"
    rest = f"{name}[{k + 1}:]" if k + 2 < len(outer) else f"{name}[{k + 1}]"
    return f"{rest}({first}({ast.unparse(call.args[0])})[0])"


@fact("must be Tensor, not tuple", "'tuple' object has no attribute")
def pair_in_sequence(failure: Failure) -> str | None:
    """Say which layer of a sequence returns a pair."""
    outer, k = _pair_in_sequence(failure)
    layer = list(outer._modules.values())[k]
    kind = type(layer).__name__
    if not is_layer(layer, "RNNBase", "MultiheadAttention"):
        return None
    return (
        f"{kind} returns a pair, which Sequential gives to the next layer: call it outside of the Sequential "
        f"(out, _ = {kind.lower()}(x)), or put a module behind it whose forward returns x[0]"
    )


@remedy("'bool' object has no attribute")
def compared_pair(failure: Failure) -> str | tuple[str, int] | None:
    """Compare the indices of a maximum, or a tensor instead of a list."""
    nodes = [node for root in (failure.call, failure.statement()) if root is not None
             for node in ast.walk(root) if isinstance(node, ast.Compare)]  # fmt: skip
    for node in nodes:
        for side in (node.left, node.comparators[0]):
            value, assigned = failure.value(side), failure.assignment(side)
            pair = isinstance(value, tuple) and hasattr(value, "indices") and assigned is not None
            if pair and ast.unparse(assigned.targets[0]) == ast.unparse(side):
                text = f"_, {ast.unparse(side)} = {ast.unparse(assigned.value)}"
                return text.replace("'", '"'), assigned.lineno
            if isinstance(value, list):
                return replaced(failure, side, f"torch.tensor({ast.unparse(side)})")
    return None


@remedy("values to unpack")
def unpacked(failure: Failure) -> str | None:
    """Unpack as many values as a loader, a layer or a user's function gives, by the names that these have."""
    statement = failure.statement()
    if isinstance(statement, ast.For):
        target: Any = statement.target
        source: Any = statement.iter
        source = source.args[0] if isinstance(source, ast.Call) and ast.unparse(source.func) == "tqdm" else source
        if isinstance(source, ast.Call) and ast.unparse(source.func) == "enumerate" and isinstance(target, ast.Tuple):
            first, *rest = [ast.unparse(each) for each in target.elts]
            if len(rest) > 1:
                return f"for {first}, ({', '.join(rest)}) in {ast.unparse(statement.iter)}:"
            target, source = target.elts[-1], source.args[0]
    elif isinstance(statement, ast.Assign):
        target, source = statement.targets[0], statement.value
    else:
        return None
    if isinstance(statement, ast.For) and isinstance(source, ast.Call) and isinstance(source.func, ast.Attribute):
        own = hasattr(failure.value(source.func.value), "_modules")
        if own and source.func.attr in ("parameters", "modules", "children", "buffers"):
            return f"{ast.unparse(source.func.value)}.named_{source.func.attr}()"
    if not isinstance(target, ast.Tuple) or not all(isinstance(each, ast.Name) for each in target.elts):
        return None
    if isinstance(failure.value(source), dict) and isinstance(statement, ast.For):
        return f"{ast.unparse(source)}.items()"
    names, written = _returned(failure, source), [ast.unparse(each) for each in target.elts]
    parts = _parts(failure, source, len(written)) if isinstance(statement, ast.Assign) else ""
    if parts:
        return f"{', '.join(written)} = {parts}".replace("'", '"')
    width = _width(failure.value(source.func)) if isinstance(source, ast.Call) else 0
    if width and width % len(written) == 0 and isinstance(statement, ast.Assign):
        return f"{', '.join(written)} = {ast.unparse(source)}.chunk({len(written)}, dim=-1)"
    if not names:
        return None
    again = [*written[: len(names)], *names[len(written) :]]
    if len(names) > len(written) and len(set(again)) < len(again):
        again = names
    if names == ["output", "(h, c)"]:
        again = [written[0], f"({', '.join(written[1:])})" if len(written) == 3 else "_"]
    text = f"{', '.join(again)} = {ast.unparse(source)}"
    if isinstance(statement, ast.For):
        whole = ast.unparse(statement.target).strip("()").replace(ast.unparse(target), f"({', '.join(again)})")
        inner = ", ".join(again) if target is statement.target else whole
        text = f"for {inner} in {ast.unparse(statement.iter)}:"
    return text.replace("'", '"')


def _parts(failure: Failure, source: ast.expr, count: int) -> str:
    """Return a call that splits a tensor, with the number of parts that are assigned; "" if it cannot be told."""
    if not isinstance(source, ast.Call) or not isinstance(source.func, ast.Attribute):
        return ""
    if source.func.attr == "chunk" and source.args and isinstance(source.args[0], ast.Constant):
        return failure.in_text(source, source.args[0], str(count))
    sizes = source.args if source.func.attr in ("reshape", "view") else []
    places = [k for k, each in enumerate(sizes) if failure.value(each) == count]
    return f"{ast.unparse(source)}.unbind({places[0]})" if len(places) == 1 and places[0] else ""


def _width(module: Any) -> int:
    """Return the number of features that a linear layer, or a sequence that ends with one, computes; 0 for others."""
    while is_layer(module, "Sequential") and len(module):
        module = module[-1]
    return int(module.out_features) if is_layer(module, "Linear") else 0


def _returned(failure: Failure, source: ast.expr) -> list[str]:
    """Return names for the values that an expression gives; [] if their number cannot be told."""
    value = failure.value(source)
    made: Any = failure.value(source.func) if isinstance(source, ast.Call) else None
    if isinstance(source, ast.Call) and ast.unparse(source).startswith("next(iter("):
        value = failure.value(source.args[0].args[0])  # type: ignore[attr-defined]
    if isinstance(source, ast.Call) and value is None and isinstance(made, type):
        keywords = {each.arg: each.value for each in source.keywords}
        value = failure.value(source.args[0] if source.args else keywords.get("dataset"))
    if hasattr(value, "dataset") or hasattr(value, "__getitem__"):
        data = value
        while hasattr(data, "dataset"):
            data = data.dataset
        if hasattr(data, "tensors"):
            return ["x", "y", *"_" * len(data.tensors)][: len(data.tensors)]
        return _names_returned(type(data).__getitem__)
    if is_layer(made, "LSTM"):
        return ["output", "(h, c)"]
    if hasattr(made, "_modules") and not module_of(type(made)).startswith("tinytorch."):
        return _names_returned(type(made).forward)
    if inspect.isfunction(made) and not module_of(made).startswith("tinytorch."):
        return _names_returned(made)
    return []


def _names_returned(function: Any) -> list[str]:
    """Return the values of the only `return` of several values in a user's function, as names."""
    nodes = [each.value for each in ast.walk(function_tree(function)) if isinstance(each, ast.Return)]
    if len(nodes) != 1 or not isinstance(nodes[0], ast.Tuple):
        return []
    return [each.id if isinstance(each, ast.Name) else f"value{k}" for k, each in enumerate(nodes[0].elts)]


# Classes ------------------------------------------------------------------------------------------


@remedy("missing 1 required positional argument: 'self'")
def object_made(failure: Failure) -> str | tuple[str, int] | None:
    """Make an object of a class first: `Net().parameters()` for `Net.parameters()`."""
    for node in expressions(failure):
        if isinstance(node, ast.Attribute) and isinstance(failure.value(node.value), type):
            assigned = failure.assignment(node.value)
            if assigned is not None and ast.unparse(assigned.targets[0]) == ast.unparse(node.value):
                arguments = _of_model(failure, failure.value(node.value))
                return f"{ast.unparse(assigned)}({arguments})", assigned.lineno
            return replaced(failure, node.value, f"{ast.unparse(node.value)}()")
    return None


def _of_model(failure: Failure, kind: type) -> str:
    """Return the argument of an optimizer's class: the parameters of the only model among the variables."""
    names = failure.models()
    own = any(each.__name__ == "Optimizer" for each in kind.__mro__)
    return f"{names[0]}.parameters()" if own and len(names) == 1 else ""


@remedy("'type' object is not", "an instance or subtype of type")
def base_of_class(failure: Failure) -> str | None:
    """Call the constructor of the base class without naming a class."""
    call = failure.call
    for node in ast.walk(call) if call is not None and failure.text.startswith("super") else ():
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "super":
            whole = failure.statement()
            return failure.in_text(whole.value, _same(whole, node), "super()") if isinstance(whole, ast.Expr) else None
    return None


def _same(tree: ast.AST, node: ast.AST) -> ast.AST:
    """Return the part of a tree that has the text of another tree's part."""
    return next(each for each in ast.walk(tree) if ast.unparse(each) == ast.unparse(node) and type(each) is type(node))


@remedy("has no attribute", "takes 1 positional argument but", "takes 0 positional arguments but")
def misspelt_constructor(failure: Failure) -> tuple[str, str] | None:
    """Name the constructor of a module, where the class has a method of a similar name."""
    kinds = [type(each) for each in (failure.self, *failure.modules[::-1])]
    kinds += [each for each in [failure.function, failure.called()] if isinstance(each, type)]
    for kind in kinds:
        if module_of(kind).startswith("tinytorch.") or "__init__" in vars(kind) or not hasattr(kind, "load_state_dict"):
            continue
        for name, function in vars(kind).items():
            if name.strip("_").lower() in ("init", "int", "inti", "initt", "iniit") and inspect.isfunction(function):
                header, line = header_of(function)
                place = f"{function.__code__.co_filename}:{line}"
                return header.replace(f"def {name}", "def __init__", 1), place
    return None


@remedy("Legacy autograd function with non-static forward", "object has no attribute", "unsupported operand type(s)",
        "must be Tensor, not")  # fmt: skip
def applied(failure: Failure) -> str | tuple[str, int] | None:
    """Apply an autograd function, rather than make an object of its class."""
    for root in (failure.call, failure.statement()):
        for node in ast.walk(root) if root is not None else ():
            assigned = failure.assignment(node) if isinstance(node, ast.Name) else None
            call = node if assigned is None else assigned.value
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Call) and _is_function(failure, call.func.func):
                call = ast.Call(call.func.func, call.args, call.keywords)
            if not isinstance(call, ast.Call) or not _is_function(failure, call.func) or not call.args:
                continue
            again = ast.Call(ast.Attribute(call.func, "apply", ast.Load()), call.args, call.keywords)
            if assigned is not None:
                return f"{ast.unparse(assigned.targets[0])} = {failure.unparsed(again)}", assigned.lineno
            return failure.unparsed(again)
    return None


def _is_function(failure: Failure, node: ast.AST) -> bool:
    """Return whether an expression is a user's class of autograd functions."""
    value = failure.value(node)
    return isinstance(value, type) and any(
        each.__name__ == "Function" and module_of(each) == "tinytorch.autograd.function" for each in value.__mro__
    )
