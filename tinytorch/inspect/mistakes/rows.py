"""Remedies that no edit of an expression gives: for a message, what has to hold besides, and the code that replaces.

`TEMPLATES` has messages with their code; what needs a look at the values is a function below, with the words of its
messages: it returns the remedy, or None where what it needs does not hold.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from types import ModuleType
from typing import Any

import numpy as np

from tinytorch import nn
from tinytorch.autograd.grad_mode import is_grad_enabled
from tinytorch.core.names import module_of
from tinytorch.core.tensor import Tensor
from tinytorch.inspect.mistakes.edits import named_dtype
from tinytorch.inspect.mistakes.failure import Failure, described, is_layer, is_model, operand, with_texts
from tinytorch.inspect.mistakes.graph import (
    backward_of,
    cuts_of,
    earlier_backward,
    has_graph,
    later_writes,
    leaves_of,
    made_once,
    passed_on,
    read_gradient,
    saved,
    uncut,
    writes,
)
from tinytorch.inspect.mistakes.layers import arguments_of, constructor, like, number
from tinytorch.inspect.mistakes.places import made_at
from tinytorch.inspect.mistakes.remedies import fact, remedy
from tinytorch.inspect.mistakes.running import NAMES, evaluated, variables_of, works
from tinytorch.inspect.mistakes.stack import Step, locals_of
from tinytorch.inspect.mistakes.trial import Unknown, is_users, tensors_in
from tinytorch.inspect.source import assigned_attribute, function_tree, header_of, parsed

#: A message, and the code that takes the place of the call that failed. {func} stands for what it calls, {args} for its
#: arguments, {first} for the first one and {rest} for the others, {owner} for what is before the last dot, {attr} for
#: what is behind it, {line} for the line, {target} and {value} for the sides of an assignment, {object} for that whose
#: attribute is assigned, {left} and {right} for those of an operation; the others are `WORDS`. A row of which a word is
#: not to be found, or whose code fails where it is tried, says nothing: then the next one for the message does.
TEMPLATES = (
    ("grad can be implicitly created only for scalar outputs", "{owner}.mean().backward()"),
    ("leaf Variable that requires grad is being used in an in-place operation", "with torch.no_grad(): {line}"),
    ("refers to a single memory location", "{owner} = {owner}.clone(); {line}"),
    ("elements cannot be converted to Scalar", "{owner}.tolist()"),
    ("invalid index of a 0-dim tensor", "{owner}.item()"),
    ("begins with b'\\x93NUMPY", "torch.from_numpy(np.load({args}))"),
    ("Weights only load failed. This file can still", "{func}({args}, weights_only=False)"),
    ("Invalid magic number", "pickle.load(open({args}, 'rb'))"),
    ("got <class 'str'>", "{func}(torch.load({args}))"),
    ("appears to not have been used in the graph", "{func}({args}, allow_unused=True)"),
    ("cannot assign 'numpy.ndarray' as parameter", "{target} = nn.Parameter(torch.from_numpy({value}).float())"),
    ("' as parameter '", "{target} = nn.Parameter({value})"),
    ("can't assign a list", "{target} = torch.tensor({value})"),
    ("can't assign a numpy.ndarray", "{target} = torch.from_numpy({value})"),
    ("Module [ModuleList] is missing the required", "nn.Sequential(*{func})({args})"),
    ("missing 2 required positional arguments: 'key' and 'value'", "{func}({first}, {first}, {first})"),
    ('missing 2 required positional argument: "dim0", "dim1"', "{owner}.T"),
    ('missing 2 required positional argument: "dim0", "dim1"', "{owner}.transpose(-2, -1)"),
    ("seed() takes 0 positional arguments", "torch.manual_seed({args})"),
    ("doesn't define __round__", "{func}({first}.item(), {rest})"),
    ("doesn't define __round__", "{first}.round(decimals={rest})"),
    ("doesn't define __round__", "{first}.round()"),
    ("for +: 'generator' and 'list'", "list({left}) + {right}"),
    ("for +: 'generator' and 'generator'", "[*{left}, *{right}]"),
    ("missing 1 required positional argument: 'steps'", "{func}({args}, 50)"),
    ("has no attribute 'save'", "torch.save({state}, {args})"),
    ("Can't pickle", "{func}({state}, {rest})"),
    ("missing 1 required positional argument: 'optimizer'", "{func}({optimizer}, {keywords})"),
    ("missing 1 required positional argument: 'params'", "{func}({parameters}, {keywords})"),
    ("missing 1 required positional argument: 'metrics'", "{func}({number})"),
    ("missing 1 required positional argument: 'closure'", "{func}({closure})"),
    ("is not an Optimizer", "{func}({optimizer}, {rest})"),
    ("has no attribute 'step'", "{optimizer}.{attr}"),
    ("has no attribute 'zero_grad'", "{optimizer}.{attr}"),
    ("has no attribute 'backward'", "{loss}.{attr}"),
    ("Nesterov momentum requires a momentum", "{func}({args}, momentum=0.9)"),
    ("tensor() takes 1 positional argument", "{func}([{args}])"),
    ("must be Tensor, not PackedSequence", "{func}(nn.utils.rnn.pad_packed_sequence({args}, batch_first=True)[0])"),
    ("probability tensor contains either", "{func}({first}.softmax(-1), {rest})"),
    ("Please use torch.nn.Module.to_empty", "{owner}.to_empty(device={args})"),
    ("you can only change requires_grad flags of leaf variables", "{object} = {object}.detach()"),
    ("object has no attribute 'device'", "next({owner}.parameters()).device"),
)  # fmt: skip


def _only(failure: Failure, fits: Callable[[Any], bool], text: str = "{}") -> str:
    """Return the name of the only variable whose value fits, in a text; "" if there are several."""
    names = [name for name, value in failure.variables.items() if fits(value)]
    return text.format(names[0]) if len(names) == 1 else ""


def _is_optimizer(value: Any) -> bool:
    return any(each.__name__ == "Optimizer" for each in type(value).__mro__)


def _is_loss(value: Any) -> bool:
    return isinstance(value, Tensor) and value.grad_fn is not None and value.ndim == 0


def _last_number(failure: Failure) -> str:
    """Return the variable to which a number was assigned last, rather than one that is summed up."""
    nodes = [each for each in failure.user.nodes(ast.Assign) if each.lineno < failure.user.line]
    found = [each.id for node in nodes for each in node.targets if isinstance(each, ast.Name)]
    return next((name for name in found[::-1] if _is_number(failure.variables.get(name))), "")


def _is_number(value: Any) -> bool:
    return isinstance(value, float) or (isinstance(value, Tensor) and value.numel() == 1 and value.is_floating_point())


def _closure(failure: Failure) -> str:
    """Return the last function without arguments that calls `backward`, of those that the user's function defines."""
    inner = [each for each in failure.user.nodes(ast.FunctionDef) if each is not failure.user.tree()]
    names = [each.name for each in inner if not ast.unparse(each.args) and ".backward(" in ast.unparse(each)]
    return names[-1] if names else ""


def _state(failure: Failure) -> str:
    """Return the state of the model that is saved."""
    call = failure.call
    saved: Any = call.value if isinstance(call, ast.Attribute) else failure.calling.args[0]
    program = parsed(failure.user.file, failure.user.frame.f_globals)
    if program is not None and ".load(" in (text := ast.unparse(program)) and "load_state_dict" not in text:
        return ""  # (what is loaded is used as a model)
    saved = saved.args[0] if isinstance(saved, ast.Call) and ast.unparse(saved.func).endswith("jit.script") else saved
    return f"{ast.unparse(saved)}.state_dict()" if is_model(failure.value(saved)) else ""


#: What the program has that a template may name: "" if there is none, or more than one.
WORDS: dict[str, Callable[[Failure], str]] = {
    "optimizer": lambda failure: _only(failure, _is_optimizer),
    "parameters": lambda failure: _only(failure, is_model, "{}.parameters()"),
    "loss": lambda failure: _only(failure, _is_loss),
    "number": _last_number,
    "closure": _closure,
    "state": _state,
}


@remedy(*[message for message, _ in TEMPLATES])
def filled(failure: Failure) -> str | None:
    """Fill the template of a message with the user's words."""
    call, statement = failure.call, failure.statement()
    words = {"line": failure.user.text().partition("  #")[0]}
    whole = called(failure) if isinstance(call, ast.Attribute) else call
    if isinstance(whole, ast.Call) and not any(isinstance(each, ast.Starred) for each in whole.args):
        keywords = [f"{each.arg}={ast.unparse(each.value)}" for each in whole.keywords]
        given = [*map(ast.unparse, whole.args), *keywords]
        words |= {"func": ast.unparse(whole.func), "args": ", ".join(given), "rest": ", ".join(given[1:])}
        words |= {"first": given[0]} if given else {}
        if not whole.args:
            words["keywords"] = ", ".join(keywords)
    if isinstance(call, ast.BinOp):
        words |= {"left": ast.unparse(call.left), "right": ast.unparse(call.right)}
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and failure.of_method:
        words["owner"] = operand(call.func.value)
    elif isinstance(call, (ast.Subscript, ast.Attribute)):
        words["owner"] = operand(call.value)
    elif hasattr(call, "in_place"):
        words["owner"] = call.in_place  # type: ignore[union-attr]
    member = call.func if isinstance(call, ast.Call) else call
    if isinstance(member, ast.Attribute) and isinstance(failure.value(member.value), (Tensor, nn.Module)):
        words["attr"] = ast.unparse(call).removeprefix(f"{ast.unparse(member.value)}.")  # type: ignore[arg-type]
    if isinstance(statement, ast.Assign):
        target = statement.targets[0]
        words |= {"target": ast.unparse(target), "value": ast.unparse(statement.value)}
        words |= {"object": ast.unparse(target.value)} if isinstance(target, ast.Attribute) else {}
    for template in [text for message, text in TEMPLATES if message in failure.text]:
        fields = re.findall(r"{(\w+)}", template)
        words |= {name: WORDS[name](failure) for name in fields if name in WORDS}
        if not all(words.get(name) or name == "keywords" in words for name in fields):
            continue
        text = template.format_map(words).replace(", )", ")")
        if not (words["line"].endswith(":") and "line" in fields) and works(failure, text):
            return text
    return None


#: What arguments, members and words are called in NumPy, in Keras, and elsewhere.
_ELSEWHERE = {
    "axis": "dim", "axes": "dim", "keepdims": "keepdim", "learning_rate": "lr", "lrate": "lr", "strides": "stride",
    "units": "out_features", "filters": "out_channels", "rate": "p", "beta": "betas", "epsilon": "eps",
    "decay": "weight_decay", "shape": "size", "requires_gradient": "requires_grad", "nb_workers": "num_workers",
    "batchsize": "batch_size", "astype": "to", "copy": "clone", "np": "numpy", "array": "tensor", "gpu": "cuda",
    "expand_dims": "unsqueeze", "repeat": "repeat_interleave", "avg": "mean", "average": "mean", "num": "steps",
    "ddof": "correction", "permutation": "randperm", "a_min": "min", "a_max": "max",
}  # fmt: skip
#: The calls for those of NumPy's functions that get their arguments in another way.
_OF_NUMPY = {"append": "cat(({}))", "default_rng": "Generator().manual_seed({})", "flat": "flatten()"}
#: NumPy's names of arguments that torch's functions have, too.
_ALSO = ("axis", "keepdims")
_CUDA = '"cuda" if torch.cuda.is_available() else "cpu"'


def _meant(wrong: str, names: Iterable[str], least: float = 0.6) -> str | None:
    """Return which of the names was meant: what another library's is called here, or the nearest in spelling."""
    names = sorted(names)
    alike = [name for name in names if name == _ELSEWHERE.get(wrong) or name.lower() == wrong.lower()]
    return next(iter(alike or get_close_matches(wrong, names, 1, least)), None)


@remedy("unexpected keyword argument")
def named_otherwise(failure: Failure) -> str | None:
    """Name the argument that was meant, also one that a constructor passes on to that of its base class."""
    wrong = re.findall(r"unexpected keyword argument '(\w+)'", failure.text)[0]  # (Python may add a suggestion)
    call = failure.calling
    function = failure.function.forward if failure.calls_module else failure.function
    kinds = function.__mro__[:-1] if isinstance(function, type) else [function]
    names = dict.fromkeys([name for each in kinds for name in inspect.signature(each).parameters])
    meant = _meant(wrong, [name for name in names if name not in ("self", "args", "kwargs")])
    if meant is None and len(names) == len(call.keywords) == 1 and not call.args:
        meant = next(iter(names))
    if meant is None or wrong not in [each.arg for each in call.keywords]:
        return None
    keywords = [ast.keyword(meant if each.arg == wrong else each.arg, each.value) for each in call.keywords]
    for each in keywords:
        each.arg = each.arg if each.arg in names or each.arg in _ALSO else _ELSEWHERE.get(f"{each.arg}", each.arg)
    return failure.unparsed(ast.Call(call.func, call.args, keywords))


@remedy("")
def word(failure: Failure) -> str | tuple[str, int] | tuple[str, str] | None:
    """Give the text that was meant: one that the message names, what raised it compares with, or a module has.

    The GPU is used only where there is one.
    """
    if not failure.inside or isinstance(failure.error, OSError):
        return None
    inner = failure.steps[failure.steps.index(failure.user) + 1 :]
    texts = re.findall(r"'([\w-]+)'", " ".join([repr(step.code.co_consts) for step in inner]))
    for value in map(failure.value, failure.parts(ast.Name, ast.Attribute)):
        own = (value._parameters, value._buffers, value._modules) if is_model(value) else ()
        texts += itertools.chain(*own)
    words, cuda = re.findall(r"[\w-]+", failure.text), "compiled with CUDA" in failure.text

    def meant(wrong: Any) -> str | None:
        if cuda and str(wrong).startswith("cuda"):
            return _CUDA
        if not isinstance(wrong, str) or len(wrong) < 3 or wrong not in words or wrong in texts:
            return None
        found = _meant(wrong, {*texts, *words} - {wrong}, 0.65)
        return _CUDA if found == "cuda" else found and f'"{found}"'

    for node in failure.parts(ast.Constant, ast.Name):
        made = failure.assignment(node)
        whole = node if made is None else made.value
        for part in (whole, *getattr(whole, "args", ()), *[each.value for each in getattr(whole, "keywords", ())]):
            text = meant(part.value) if isinstance(part, ast.Constant) else None
            if text:
                return (
                    failure.replaced(node, text) if made is None else (failure.in_text(made, part, text), made.lineno)
                )
    for name, (value, _) in arguments_of(failure.module).items() if failure.module is not None else ():
        if text := meant(value):
            again, place = like(failure.module, **{name: ast.literal_eval(text)}), made_at(failure)
            return (again, place) if place else again
    return f"{ast.unparse(failure.member.value)}.to({_CUDA})" if cuda and failure.member.attr == "cuda" else None


@remedy("positional arguments but", "positional argument but")
def parameters_of_function(failure: Failure) -> tuple[str, str] | None:
    """Give `forward` its `self`, and a hook of a module all the arguments that it is called with."""
    name, module = failure.text.partition("(")[0], failure.module
    forward: Any = getattr(type(module), "forward", None)
    code = getattr(forward, "__code__", None)
    if code is not None and code.co_qualname == name and code.co_varnames[:1] != ("self",):
        header, line = header_of(forward)
        text = header.replace("forward(", "forward(self, ", 1).replace("self, )", "self)")
        return text, f"{code.co_filename}:{line}"
    kinds = (("_forward_hooks", "input"), ("_backward_hooks", "grad_input"), ("_forward_pre_hooks", ""))
    for hooks, middle in kinds if module is not None else ():
        for hook in getattr(module, hooks).values():
            code = getattr(hook, "__code__", None)
            if code is None or code.co_qualname != name or code.co_argcount + 1 != (3 if middle else 2):
                continue
            names = list(code.co_varnames[: code.co_argcount])
            names = [names[0], middle, names[1]] if middle else ["module", names[0]]
            header, line = header_of(hook)
            return re.sub(r"\(.*\)", f"({', '.join(names)})", header, count=1), f"{code.co_filename}:{line}"
    return None


@remedy("has been modified by an inplace operation")
def not_modified(failure: Failure) -> str | tuple[str, int] | tuple[str, str] | None:
    """Compute again what an optimizer has changed, or write out of place, also in a layer."""
    return _computed_again(failure) or _layer_in_place(failure) or _out_of_place(failure)


def _computed_again(failure: Failure) -> tuple[str, int] | None:
    """Compute a loss again after a step of an optimizer that changed parameters that it uses, as for two networks."""
    _, cell, _ = saved(failure)
    models = [(name, value) for name, value in failure.variables.items() if is_model(value)]
    name = next((name for name, value in models if any(each._cell is cell for each in value.parameters())), "")
    steps = []
    for node in [each for each in failure.user.nodes(ast.Expr) if each.lineno < failure.user.line]:
        function = node.value.func if isinstance(node.value, ast.Call) else None
        if isinstance(function, ast.Attribute) and function.attr == "step":
            groups = getattr(failure.value(function.value), "param_groups", ())
            steps += [node] * any(each._cell is cell for group in groups for each in group["params"])
    made = failure.assignment(failure.member.value)
    if not name or len(steps) != 1 or made is None or made.lineno > steps[0].lineno:
        return None
    if name not in {each.id for each in _names_in(made.value)}:
        return None
    return "; ".join([ast.unparse(each) for each in (steps[0], made)]), steps[0].lineno


@remedy("can't optimize a non-leaf Tensor")
def leaf(failure: Failure) -> str | tuple[str, int] | tuple[str, str] | None:
    """Make a leaf of a result, or optimize the parameter that a module computes it from."""
    node = failure.node("params")
    made = failure.assignment(node)
    for each in ast.walk(node if made is None else made.value) if node is not None else ():
        value = failure.value(each)
        if not isinstance(value, Tensor) or value.is_leaf:
            continue
        if isinstance(each, ast.Attribute):
            module, leaves = failure.value(each.value), leaves_of(value)
            own = getattr(module, "_parameters", {})
            names = [name for name, parameter in own.items() if any(parameter is leaf for leaf in leaves)]
            if len(names) == len(leaves) == 1:
                return failure.replaced(each, f"{ast.unparse(each.value)}.{names[0]}")
            found = assigned_attribute(type(module), each.attr, "__init__")
            return None if found is None else (_as_leaf(found[0]), f"{found[1]}:{found[0].lineno}")
        assigned = failure.assignment(each)
        if assigned is not None:
            return _as_leaf(assigned), assigned.lineno
    return None


def _as_leaf(statement: ast.Assign) -> str:
    """Return an assignment of a result as one of a leaf: the last call requires its gradient."""
    value = ast.unparse(statement.value)
    calls = [node for node in ast.walk(statement.value) if isinstance(node, ast.Call)
             for each in node.keywords if each.arg == "requires_grad"]  # fmt: skip
    if len(calls) == 1:
        before = ast.unparse(calls[0])
        calls[0] = ast.Call(calls[0].func, calls[0].args, [each for each in calls[0].keywords
                                                           if each.arg != "requires_grad"])  # fmt: skip
        value = value.replace(before, ast.unparse(calls[0]), 1)
    simple = isinstance(statement.value, (ast.Call, ast.Name, ast.Attribute, ast.Subscript))
    cut = "" if len(calls) == 1 else ".detach()"
    return f"{ast.unparse(statement.targets[0])} = {value if simple else f'({value})'}{cut}.requires_grad_()"


@remedy("to satisfy the constraint")
def parameter_of_distribution(failure: Failure) -> str | None:
    """Name logits, or make a scale positive."""
    name = re.findall(r"Expected parameter (\w+)", failure.text)[0]
    value, node = failure.arguments.get(name), failure.node(name)
    if not isinstance(value, Tensor) or not bool(value.isfinite().all()) or not isinstance(failure.call, ast.Call):
        return None
    if name == "probs" and "logits" in inspect.signature(failure.function).parameters and node is not None:
        rest = [ast.unparse(each) for each in failure.call.args if each is not node]
        rest += [f"{each.arg}={ast.unparse(each.value)}" for each in failure.call.keywords if each.value is not node]
        rest.append(f"logits={ast.unparse(node)}")
        return f"{ast.unparse(failure.call.func)}({', '.join(rest)})"
    if "GreaterThan" not in failure.text or node is None:
        return None
    return failure.rewritten(**{name: f"{failure.named('nn.functional', 'nn.functional')}.softplus({{}})"})


def _names_in(node: ast.AST) -> list[ast.Name]:
    return [each for each in ast.walk(node) if isinstance(each, ast.Name)]


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


@remedy("object is not callable")
def not_callable(failure: Failure) -> str | tuple[str, int] | tuple[str, str] | None:
    """Index what has elements, call the layers of a list in turn, and leave out a call of a value."""
    call = failure.calling
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


@remedy("'NoneType'", "not NoneType", "'_IncompatibleKeys' object")
def not_assigned(failure: Failure) -> tuple[str, int] | None:
    """Leave out an assignment of a result, where the method changed its object: `parts.append(part)`."""
    for node in expressions(failure):
        nothing = isinstance(node, ast.Name) and type(failure.value(node)).__name__ in ("NoneType", "_IncompatibleKeys")
        assigned = failure.assignment(node) if nothing else None
        made: Any = getattr(assigned, "value", None)
        owner: Any = getattr(made.func, "value", None) if isinstance(made, ast.Call) else None
        if assigned is not None and owner is not None and ast.unparse(owner) == node.id:
            return ast.unparse(made), assigned.lineno
    return None


def called(failure: Failure) -> ast.expr | None:
    """Return the call of the method that was looked for, rather than the method alone."""
    statement, text = failure.statement(), ast.unparse(failure.member)
    calls = [each for each in ast.walk(statement) if isinstance(each, ast.Call)] if statement is not None else []
    return next((each for each in calls if ast.unparse(each.func) == text), failure.call)


@remedy("'list' object has no attribute", "'tuple' object has no attribute", "'dict' object has no attribute")
def each_element(failure: Failure) -> str | None:
    """Call a method of tensors for each tensor of a list or dictionary."""
    call, node = called(failure), failure.member
    value, text = failure.value(node.value), ast.unparse(node.value)
    values = list(value.values()) if isinstance(value, dict) else value if type(value) is list else []
    if not values or not hasattr(Tensor, node.attr) or not all(isinstance(each, Tensor) for each in values):
        return None
    method = node.attr + ast.unparse(call).removeprefix(ast.unparse(node)) if isinstance(call, ast.Call) else node.attr
    if isinstance(value, dict):
        return f"{{key: value.{method} for key, value in {text}.items()}}"
    if node.attr == "backward":
        return f"torch.stack({text}).sum().backward()" if all(each.numel() == 1 for each in values) else None
    whole = node.attr not in ("to", "cpu", "cuda", "float", "double", "half", "long", "detach", "numpy")
    alike = len({tuple(each.shape) for each in values}) == 1
    return f"torch.stack({text}).{method}" if whole and alike else f"[each.{method} for each in {text}]"


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


@fact("must be Tensor, not tuple", "'tuple' object has no attribute")
def pair_in_sequence(failure: Failure) -> str | None:
    """Say which layer of a sequence returns a pair."""
    outer: Any = failure.modules[-2] if len(failure.modules) > 1 else None
    if not is_layer(outer, "Sequential") or not isinstance(next(iter(failure.given.values()), None), tuple):
        return None
    layers = list(outer._modules.values())
    layer = layers[next(k for k, each in enumerate(layers) if each is failure.module) - 1]
    kind = type(layer).__name__
    if not is_layer(layer, "RNNBase", "MultiheadAttention"):
        return None
    return (
        f"{kind} returns a pair, which Sequential gives to the next layer: call it outside of the Sequential "
        f"(out, _ = {kind.lower()}(x)), or put a module behind it whose forward returns x[0]"
    )


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
        return f"{', '.join(written)} = {parts}"
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
    return text


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
    if hasattr(made, "_modules") and is_users(type(made)):
        return _names_returned(type(made).forward)
    if inspect.isfunction(made) and is_users(made):
        return _names_returned(made)
    return []


def _names_returned(function: Any) -> list[str]:
    """Return the values of the only `return` of several values in a user's function, as names."""
    tree = function_tree(function) if inspect.isfunction(function) else ast.Module([], [])
    nodes = [each.value for each in ast.walk(tree) if isinstance(each, ast.Return)]
    if len(nodes) != 1 or not isinstance(nodes[0], ast.Tuple):
        return []
    return [each.id if isinstance(each, ast.Name) else f"value{k}" for k, each in enumerate(nodes[0].elts)]


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
    return WORDS["parameters"](failure) if any(each.__name__ == "Optimizer" for each in kind.__mro__) else ""


@remedy("has no attribute", "takes 1 positional argument but", "takes 0 positional arguments but")
def misspelt_constructor(failure: Failure) -> tuple[str, str] | None:
    """Name the constructor of a module, where the class has a method of a similar name."""
    kinds = [type(each) for each in (failure.self, *failure.modules[::-1])]
    kinds += [each for each in [failure.function, failure.called()] if isinstance(each, type)]
    own = [each for each in kinds if is_users(each) and hasattr(each, "load_state_dict")]
    return next(filter(None, [_misspelt_method(each, "__init__", 0.75) for each in own]), None)


def _misspelt_method(kind: type, wanted: str, least: float = 0.6) -> tuple[str, str] | None:
    """Return the header of a method by the name that a base class calls, where a class has a similar one."""
    own = {name.replace("_", "").lower(): each for name, each in vars(kind).items() if inspect.isfunction(each)}
    found = [] if wanted in vars(kind) else get_close_matches(wanted.strip("_"), list(own), 1, least)
    if not found:
        return None
    function: Any = own[found[0]]
    header, line = header_of(function)
    return header.replace(f"def {function.__name__}", f"def {wanted}", 1), f"{function.__code__.co_filename}:{line}"


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


def batch_of(failure: Failure) -> Any:
    """Return the samples of the batch that could not be put together; None outside of a loader."""
    for step in failure.steps:
        if step.ours and step.code.co_name in ("default_collate", "collate"):
            return locals_of(step.frame).get("batch")
    return None


def loader_of(step: Step) -> ast.Call | None:
    """Return the only call of a user's function that makes a loader, or None."""
    calls = [each for each in step.nodes(ast.Call) if ast.unparse(each.func).rpartition(".")[2] == "DataLoader"]
    return calls[0] if len(calls) == 1 else None


def _collated_by(failure: Failure, text: str) -> str | tuple[str, int]:
    """Return the constructor of the loader with another `collate_fn`, and its line."""
    call = loader_of(failure.user)
    if call is None:
        return f"DataLoader(..., collate_fn={text})"
    return failure.at(call).with_keywords(collate_fn=text), call.lineno


def _padded(failure: Failure, batch: list[Any]) -> str | tuple[str, int] | None:
    """Pad the samples of a batch, or leave them a list."""
    if all(isinstance(each, Tensor) for each in batch) and len({tuple(each.shape[1:]) for each in batch}) == 1:
        return _collated_by(failure, "lambda batch: nn.utils.rnn.pad_sequence(batch, batch_first=True)")
    first = batch[0]
    if isinstance(first, dict) and all(isinstance(each, dict) and set(each) == set(first) for each in batch):
        parts = {key: _column(f"[each[{key!r}] for each in batch]", [each[key] for each in batch]) for key in first}
        items = ", ".join([f"{key!r}: {text}" for key, text in parts.items()])
        return _collated_by(failure, f"lambda batch: {{{items}}}") if all(parts.values()) else None
    if isinstance(first, tuple) and len(first) > 1 and {len(each) for each in batch} == {len(first)}:
        columns = [_column(f"[each[{k}] for each in batch]", [each[k] for each in batch]) for k in range(len(first))]
        if all(columns):
            return _collated_by(failure, f"lambda batch: ({', '.join(columns)})")
    return _collated_by(failure, "list")


def _column(text: str, values: list[Any]) -> str:
    """Return what collates some values of a batch: tensors of different lengths are padded; "" if they cannot be."""
    if all(isinstance(each, Tensor) for each in values) and len({tuple(each.shape) for each in values}) > 1:
        alike = all(each.ndim for each in values) and len({tuple(each.shape[1:]) for each in values}) == 1
        return f"nn.utils.rnn.pad_sequence({text}, batch_first=True)" if alike else ""
    return f"torch.utils.data.default_collate({text})"


@remedy("object is not iterable", "but one of the params is")
def parameters_of_model(failure: Failure) -> str | None:
    """Give an optimizer the parameters of a model, or of several."""
    value, node = failure.arguments.get("params"), failure.node("params")
    if is_model(value):
        return failure.rewritten(params="{}.parameters()")
    models = isinstance(value, (list, tuple)) and all(map(is_model, value))
    parts = [f"{operand(each)}.parameters()" for each in getattr(node, "elts", ())]
    return failure.rewritten(params=parts[0] if len(parts) == 1 else f"[*{', *'.join(parts)}]") if models else None


@remedy("has no len()")
def listed(failure: Failure) -> str | tuple[str, int] | None:
    """Make a list of what a loader cannot index, such as `zip(x, y)`."""
    call = loader_of(failure.user)
    node = call.args[0] if call is not None and call.args else None
    made = failure.assignment(node)
    source = node if made is None else made.value
    if not isinstance(source, ast.Call) or not re.search("'(zip|map|enumerate|filter)'", failure.text):
        return None
    text = f"list({ast.unparse(source)})"
    whole = call if made is None else made
    return failure.in_text(whole, source, text), whole.lineno  # type: ignore[arg-type, union-attr]


@remedy("one of the params is numpy.ndarray")
def parameters_of_arrays(failure: Failure) -> tuple[str, int] | None:
    """Make a tensor with a gradient of an array, where it was made."""
    for node in expressions(failure):
        made = failure.assignment(node)
        if made is not None and isinstance(failure.value(node), np.ndarray):
            value = ast.unparse(made.value)
            return f"{ast.unparse(made.targets[0])} = torch.from_numpy({value}).requires_grad_()", made.lineno
    return None


@remedy("step must be greater than zero")
def flipped(failure: Failure) -> str | None:
    """Flip the dimensions that are indexed backwards."""
    call: Any = failure.call
    parts = call.slice.elts if isinstance(call.slice, ast.Tuple) else [call.slice]
    texts = list(map(ast.unparse, parts))
    dims = [k - sum(":" not in each for each in texts[:k]) for k, each in enumerate(texts) if each == "::-1"]
    rest = [":" if each == "::-1" else each for each in texts]
    index = "" if {*rest} == {":"} else f"[{', '.join(rest)}]"
    text = f"{operand(call.value)}{index}.flip({', '.join(map(str, dims))})"
    return text if dims and not {"None", "..."} & {*texts} and works(failure, text) else None


@remedy("bitwise_")
def compared_first(failure: Failure) -> str | None:
    """Put the comparisons that are joined in brackets: `&` binds more closely than `>`."""
    statement = failure.statement()
    for node in ast.walk(statement) if statement is not None else ():
        middle: Any = node.comparators[0] if isinstance(node, ast.Compare) and len(node.ops) == 2 else None
        sign = {"BitAnd": " & ", "BitOr": " | "}.get(type(getattr(middle, "op", None)).__name__)
        if isinstance(node, ast.Compare) and sign:
            pairs = (node.left, middle.left), (middle.right, node.comparators[1])
            return sign.join(_compared(node, pairs))
    return None


def _compared(node: ast.Compare, pairs: Iterable[Iterable[ast.expr]]) -> list[str]:
    """Return the comparisons of pairs of expressions, by the signs of a chain, in brackets."""
    return [f"({ast.unparse(ast.Compare(a, [op], [b]))})" for op, (a, b) in zip(node.ops, pairs, strict=True)]


@fact("")
def what_is_asserted(failure: Failure) -> str | None:
    """Show what an assertion compares."""
    statement = failure.statement()
    test = statement.test if isinstance(statement, ast.Assert) else None
    if failure.inside or not isinstance(failure.error, AssertionError) or not isinstance(test, ast.Compare):
        return None
    value = evaluated(failure.trial, test.left, failure.variables)
    return f"{ast.unparse(test.left)} is {described(value)}"


@remedy("default_collate: batch must contain", "NoneType", "stack expects each tensor to be equal size")
def collated(failure: Failure) -> str | tuple[str, int] | tuple[str, str] | None:
    """Return the sample from `__getitem__`, or drop samples that are None; pad tensors; leave other objects a list."""
    batch = batch_of(failure)
    if not isinstance(batch, (list, tuple)):
        return None
    call, owners = loader_of(failure.user), [locals_of(step.frame).get("self") for step in failure.steps]
    data: Any = next((each.dataset for each in owners if hasattr(each, "dataset")), None)  # type: ignore[union-attr]
    lengths = {x.shape[:1] for x in data if isinstance(x, (Tensor, np.ndarray))} if type(data) in (tuple, list) else {}
    if len(lengths) == 1 and call is not None and isinstance(call.args[0], (ast.Tuple, ast.List)):
        parts = [f"torch.from_numpy({ast.unparse(node)})" if isinstance(each, np.ndarray) else ast.unparse(node)
                 for node, each in zip(call.args[0].elts, data, strict=True)]  # fmt: skip
        text = f"torch.utils.data.TensorDataset({', '.join(parts)})"
        return failure.in_text(call, call.args[0], text), call.lineno
    if "equal size" in failure.text:
        return _padded(failure, list(batch))
    if "PIL" in failure.text:
        return _with_transform(failure, call)
    if all(each is None for each in batch):
        return _with_return(getattr(type(_users_data(failure)), "__getitem__", None))
    if any(each is None for each in batch):
        kept = "[each for each in batch if each is not None]"
        return _collated_by(failure, f"lambda batch: torch.utils.data.default_collate({kept})")
    return _collated_by(failure, "list") if "default_collate: batch must contain" in failure.text else None


def _with_transform(failure: Failure, loader: ast.Call | None) -> str | tuple[str, int] | None:
    """Return the constructor of a data set of images with what makes tensors of them."""
    node = loader.args[0] if loader is not None and loader.args else None
    made = failure.assignment(node)
    call = node if made is None else made.value
    if not isinstance(call, ast.Call) or any(each.arg == "transform" for each in call.keywords):
        return None
    return failure.at(call).with_keywords(transform="transforms.ToTensor()"), call.lineno


def _with_return(function: Any) -> tuple[str, str] | None:
    """Return what the last statement of a function without `return` computes, as what it returns, and its place."""
    tree = function_tree(function)
    last = tree.body[-1]
    returns = any(isinstance(each, ast.Return) and each.value is not None for each in ast.walk(tree))
    if returns or not isinstance(last, (ast.Assign, ast.Expr)) or isinstance(last.value, ast.Constant):
        return None
    value = ast.unparse(last.value)
    value = value[1:-1] if isinstance(last.value, ast.Tuple) else value
    return f"return {value}", f"{function.__code__.co_filename}:{last.lineno}"


def _users_data(failure: Failure) -> Any:
    """Return the data set of the user's class that the running loader reads, without the subsets around it."""
    for step in failure.steps:
        found = locals_of(step.frame)
        for value in (found.get("dataset"), getattr(found.get("self"), "dataset", None)):
            while hasattr(value, "dataset"):
                value = value.dataset  # type: ignore[union-attr]
            if value is not None and is_users(type(value)):
                return value
    return None


@fact("'")
def sample_without_key(failure: Failure) -> str | None:
    """Say which sample of a batch lacks an entry that the first one has."""
    batch = batch_of(failure)
    if not isinstance(failure.error, KeyError) or not isinstance(batch, (list, tuple)):
        return None
    lacking = [k for k, each in enumerate(batch) if isinstance(each, dict) and failure.error.args[0] not in each]
    return f"sample {lacking[0]} of the batch has no {failure.text}, which sample 0 has" if lacking else None


@remedy("should implement __getitem__", 'is missing the required "forward" function', "has no len()")
def misspelt_method(failure: Failure) -> tuple[str, str] | None:
    """Name a method that a base class calls, where the class has one of a similar name."""
    wanted = next(name for name in ("__getitem__", "forward", "__len__") if name.strip("_") in failure.text)
    owner: Any = failure.module if wanted == "forward" else _data_set(failure)
    return _misspelt_method(type(owner), wanted) or (_length(owner) if wanted == "__len__" else None)


def _length(data: Any) -> tuple[str, str] | None:
    """Give a data set the length of that from which it takes the items."""
    own = vars(type(data))
    if "__len__" in own or not inspect.isfunction(own.get("__getitem__")):
        return None
    function: Any = own["__getitem__"]
    tree = function_tree(function)
    items = [node for node in ast.walk(tree) if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Name)]
    index = tree.args.args[-1].arg
    taken = [ast.unparse(each.value) for each in items if each.slice.id == index]  # type: ignore[attr-defined]
    if not taken or not all(each.startswith("self.") for each in taken):
        return None
    return f"def __len__(self): return len({taken[0]})", f"{function.__code__.co_filename}:{tree.lineno}"


def _data_set(failure: Failure) -> Any:
    for step in reversed(failure.steps):
        found = locals_of(step.frame)
        if step.ours and step.code.co_name in ("__getitem__", "__len__") and "self" in found:
            return found["self"]
    return failure.arguments.get("dataset")


@remedy("Sum of input lengths does not equal the length of the input dataset")
def whole_split(failure: Failure) -> str | None:
    """Give the rest to the last part."""
    lengths, size = list(failure.arguments["lengths"]), len(failure.arguments["dataset"])
    node = failure.node("lengths")
    if any(isinstance(each, float) for each in lengths):
        rest = round(1 - sum(lengths[:-1]), 10)
        return failure.rewritten(lengths=str([*lengths[:-1], rest])) if rest >= 0 else None
    if size < sum(lengths[:-1]):
        return None
    if not isinstance(node, (ast.List, ast.Tuple)) or all(isinstance(each, ast.Constant) for each in node.elts):
        return failure.rewritten(lengths=str([*lengths[:-1], size - sum(lengths[:-1])]))
    kept = [ast.unparse(each) for each in node.elts[:-1]]
    count = f"len({failure.said('dataset')})"
    for name, value in failure.variables.items():
        if value == size and type(value) is int and any(name in text for text in kept):
            count = name
    return failure.rewritten(lengths=f"[{', '.join(kept)}, {' - '.join([count, *kept])}]")


def _detached(failure: Failure, node: ast.Name) -> str:
    """Return a variable without its graph: a tensor, or a tuple of them."""
    of_tuple = isinstance(failure.value(node), tuple)
    return f"tuple([each.detach() for each in {node.id}])" if of_tuple else f"{node.id}.detach()"


@remedy("Trying to backward through the graph a second time")
def once_more(failure: Failure) -> str | tuple[str, int] | tuple[str, str] | None:
    """Detach what is passed on from one step of a loop to the next, or keep the graph of the first backward."""
    call, loops, sums = failure.call, failure.user.loops(), dict[str, str]()
    for node in ast.walk(loops[-1]) if loops else ():
        if isinstance(node, ast.Assign):
            targets = {each.id for target in node.targets for each in _names_in(target)}
            read = [each.id for each in _names_in(loops[-1]) if each.lineno < node.lineno]
            copied = isinstance(node.value, (ast.Name, ast.Tuple)) and not targets.isdisjoint(read)
            parts = [each for each in _names_in(node.value) if copied or each.id in targets]
            texts = {id(each): _detached(failure, each) for each in parts if has_graph(failure.value(each))}
            if texts:
                changed = failure.unparsed(with_texts(node.value, texts))
                return f"{ast.unparse(node.targets[0]).strip('()')} = {changed}", node.lineno
        elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) and isinstance(node.value, ast.Name):
            sums.setdefault(f"{ast.unparse(node.target)}.backward", f"{node.value.id}.backward()")
    if call is not None and (said := ast.unparse(call).partition("(")[0]) in sums:
        return sums[said]  # (the sum of the losses of all steps has the graphs of all)
    first = earlier_backward(failure)
    passed = passed_on(failure, first) if first is not None else None
    if passed is not None:
        return passed
    if loops and (first is None or first.lineno < loops[-1].lineno):
        found = made_once(failure, loops[-1])
        return found[1] if found is not None else None
    if first is not None:
        return f"{ast.unparse(first.func)}(retain_graph=True)", first.lineno
    return failure.with_keywords(retain_graph="True")


@remedy("returned an incorrect number of gradients")
def gradient_for_each(failure: Failure) -> tuple[str, str] | None:
    """Return None from `backward` for the last inputs of `forward`, for which it returns no gradient."""
    expected, got = map(int, re.findall(r"expected (\d+), got (\d+)", failure.text)[0])
    function, _ = backward_of(failure)
    for node in ast.walk(function_tree(function)) if function is not None and got < expected else ():
        if isinstance(node, ast.Return) and node.value is not None:
            parts = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            text = ", ".join([*map(ast.unparse, parts), *["None"] * (expected - got)])
            return f"return {text}", f"{function.__code__.co_filename}:{node.lineno}"
    return None


@remedy("Expected all tensors to have the same size in the mapped dimension")
def in_dims(failure: Failure) -> str | tuple[str, int] | None:
    """Do not map over the arguments whose first sizes are not those of the others, such as parameters."""
    made = failure.assignment(failure.calling.func)
    call = failure.calling.func if made is None else made.value
    given = next((each for each in failure.arguments.values() if isinstance(each, tuple)), ())
    sizes = [{x.shape[0] if x.ndim else 0 for x in tensors_in(each)} for each in given]
    own = [each for each in sizes if len(each) == 1]
    batch = max(own, key=own.count, default=set())
    if not isinstance(call, ast.Call) or not own or (own.count(batch) == 1 < len(own)):
        return None
    dims = ", ".join(["0" if each == batch else "None" for each in sizes])
    return failure.at(call).with_keywords(in_dims=f"({dims})"), getattr(made, "lineno", 0)


@remedy("The specified number of total steps is")
def all_steps(failure: Failure) -> tuple[str, int] | None:
    """Count the steps of a schedule in batches rather than in epochs, where it steps in the loop over the batches."""
    made, loops = failure.assignment(failure.member.value), failure.user.loops()
    total = [each.value for each in made.value.keywords if each.arg == "total_steps"]
    batches = getattr(loops[-1], "iter", None)
    while isinstance(batches, ast.Call) and ast.unparse(batches.func) in ("enumerate", "tqdm"):
        batches = batches.args[0]
    if len(loops) < 2 or not total or not isinstance(batches, ast.Name):
        return None
    text = f"{operand(total[0])} * len({batches.id})"
    return failure.in_text(made.value, total[0], text), made.lineno


@remedy("takes no arguments", "positional argument but", "missing 1 required positional argument")
def object_in_list(failure: Failure) -> tuple[str, str] | None:
    """Make an object of a class that is given among others, and called as if it were one."""
    kind, module = failure.called(), parsed(failure.user.file, failure.user.frame.f_globals)
    if not isinstance(kind, type) or ast.unparse(failure.calling.func) == kind.__name__ or module is None:
        return None
    for statement in [each for each in ast.walk(module) if isinstance(each, (ast.Assign, ast.Expr))]:
        calls = [each.func for each in ast.walk(statement) if isinstance(each, ast.Call)]
        for node in _names_in(statement):
            if node.id == kind.__name__ and node not in calls:
                return failure.in_text(statement, node, f"{node.id}()"), f"{failure.user.file}:{statement.lineno}"
    return None


@remedy("does not require grad and does not have a grad_fn")
def with_graph(failure: Failure) -> str | tuple[str, int] | None:
    """Leave out what cut the graph; switch gradients on where a context is made, but not entered."""
    module = parsed(failure.user.file, failure.user.frame.f_globals)
    for node in ast.walk(module) if module is not None and not is_grad_enabled() else ():
        if isinstance(node, ast.Expr) and ast.unparse(node).endswith("enable_grad()"):
            return "torch.set_grad_enabled(True)", node.lineno
    inputs = read_gradient(failure)
    if inputs is not None:
        return inputs
    found = cuts_of(failure)
    texts = {(uncut(failure, cut), cut.line) for cut in found if cut.file == failure.user.file}
    if len(texts) == 1 and all(uncut(failure, cut) for cut in found):
        return texts.pop()
    frozen = [cut.reason for cut in found if cut.reason.startswith("all parameters of")]
    if len(found) == len(frozen) == 1:
        return f"{frozen[0].split()[3]}.requires_grad_(True)"
    return None


@remedy("does not require grad and does not have a grad_fn")
def loss_of_scores(failure: Failure) -> tuple[str, int] | None:
    """Compute the loss of the scores, where it is computed of the classes that `argmax` has chosen."""
    made = failure.assignment(getattr(getattr(failure.call, "func", None), "value", None))
    call = getattr(made, "value", None)
    if not isinstance(call, ast.Call) or len(call.args) != 2:
        return None
    for node, other in (call.args, call.args[::-1]):
        whole = [node, *[getattr(failure.assignment(each), "value", each) for each in ast.walk(node)]]
        for each in [each for part in whole for each in ast.walk(part)]:
            if isinstance(each, ast.Call) and ast.unparse(each.func).endswith(".argmax"):
                owner = each.func.value  # type: ignore[attr-defined]
                scores = each.args[0] if isinstance(failure.value(owner), ModuleType) else owner
                target = re.sub(r"\.(float|long)\(\)$", "", ast.unparse(other))
                loss = (
                    f"{failure.named('nn.functional', 'nn.functional')}.cross_entropy({ast.unparse(scores)}, {target})"
                )
                value = evaluated(failure.trial, loss, NAMES | failure.variables)
                return (loss, made.lineno) if value.requires_grad else None
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
    users = [each for each in getattr(tree, "body", ()) if node.id in [part.id for part in _names_in(each)]]
    if not users or not isinstance(users[0], (ast.Assign, ast.Expr)) or users[0].lineno >= failure.user.line:
        return None
    return f"{node.id}.requires_grad_(); {ast.unparse(users[0])}", users[0].lineno


def _out_of_place(failure: Failure) -> str | tuple[str, int] | None:
    """Make the write out of place."""
    found = [(name, node) for name, node, step in writes(failure) if step.file == failure.user.file]
    found = found or later_writes(failure)
    if len(found) != 1:
        return None
    name, node = found[0]
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        value = ast.BinOp(ast.Name(name, ast.Load()), node.op, node.value)
        return f"{name} = {failure.unparsed(value)}", node.lineno
    call = node.value if isinstance(node, (ast.Expr, ast.Assign)) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr[:-1] in vars(Tensor):
        again = ast.Call(ast.Attribute(call.func.value, call.func.attr[:-1], ast.Load()), call.args, call.keywords)
        if call.func.attr.endswith("_"):
            target = ast.unparse(node.targets[0]) if isinstance(node, ast.Assign) else name
            return f"{target} = {failure.unparsed(again)}", node.lineno
    if isinstance(node, ast.Assign) and name in [each.id for each in _names_in(node.value)]:
        target, text = ast.unparse(node.targets[0]), ast.unparse(node.value)
        return f"new = {text}; {name} = {name}.clone(); {target} = new", node.lineno
    if isinstance(node, ast.Assign | ast.AugAssign):
        return f"{name} = {name}.clone(); {failure.unparsed(node)}", node.lineno
    return None


def _layer_in_place(failure: Failure) -> tuple[str, str] | None:
    """Make the layer without `inplace=True` that has overwritten what the layer before it needs in backward."""
    node, _, _ = saved(failure)
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
    text = like(layer, inplace=False)
    return (text, place) if place else None


@remedy("Expected more than 1 value per channel when training")
def one_value(failure: Failure) -> tuple[str, str] | None:
    """Leave out the last batch of a loader, if that is the small one; else switch the whole model to evaluation."""
    for step in [each for each in failure.steps if each.users]:
        call = step.expression()
        if not isinstance(call, ast.Call) or not call.args:
            continue
        if not hasattr(failure.value(call.func, variables_of(step)), "_modules"):
            continue
        if step.loops():
            return _without_last_batch(failure, step)
        again = ast.Call(ast.parse(f"{ast.unparse(call.func)}.eval()", mode="eval").body, call.args, call.keywords)
        return failure.unparsed(again), f"{step.file}:{step.line}"
    return None


def _without_last_batch(failure: Failure, step: Step) -> tuple[str, str] | None:
    """Return the constructor of the only loader that a function makes, without a smaller last batch."""
    call = loader_of(step)
    sizes = [each.value for each in getattr(call, "keywords", ()) if each.arg == "batch_size"]
    if call is None or not sizes or failure.value(sizes[0], variables_of(step)) == 1:
        return None
    return failure.at(call).with_keywords(drop_last="True"), f"{step.file}:{call.lineno}"


def pair(failure: Failure) -> tuple[Any, Any]:
    """Return the predictions and the targets of a loss."""
    given = failure.arguments if isinstance(failure.arguments.get("target"), Tensor) else failure.given
    x, target = given.get("input"), given.get("target")
    if not isinstance(x, Tensor) or not isinstance(target, Tensor):
        raise Unknown("no loss")
    return x, target


@remedy("is out of bounds.")
def labels_in_range(failure: Failure) -> str | None:
    """Shift labels that start at 1, ignore negative ones, or derive the number of outputs of the last layer."""
    x, target = pair(failure)
    classes = x.shape[1] if x.ndim > 1 else x.shape[0]
    low, high = int(target.min()), int(target.max())
    outside = {int(each) for each in target[(target < 0) | (target >= classes)].flatten()}
    if len(outside) == 1 and (low < 0 or high > classes + 1):  # (a label that stands for none)
        if failure.calls_module:
            return f"nn.{type(failure.module).__name__}(ignore_index={outside.pop()})"
        return failure.with_keywords(ignore_index=str(outside.pop()))
    if low < 0:
        return None
    head = _last_layer(failure)
    if head is not None and getattr(head, "out_features", 0) == classes and not low:
        return f"nn.Linear({head.in_features}, {high + 1})"
    return failure.rewritten(target="{} - 1") if low >= 1 and high == classes else None


def _last_layer(failure: Failure) -> Any:
    """Return the last module of the model that computed the predictions, as far as the user's function shows it."""
    origin = failure.origin("input")
    model: Any = failure.value(origin.func) if isinstance(origin, ast.Call) else None
    return list(model.modules())[-1] if hasattr(model, "modules") else None


@remedy("all elements of input should be between 0 and 1")
def logits(failure: Failure) -> str | None:
    """Name the loss for logits."""
    made = arguments_of(failure.module) if failure.module is not None else {}
    return constructor("BCEWithLogitsLoss", made) if failure.calls_module else None


@remedy("Boolean value of Tensor with more than one value is ambiguous")
def elementwise(failure: Failure) -> str | None:
    """Join masks elementwise: `&` for `and`, `~` for `not`; ask whether a condition is true of all elements."""
    statement = failure.statement()
    if statement is None:
        return None
    if isinstance(statement, (ast.If, ast.While, ast.Assert)):
        alone = not any(isinstance(each, ast.BoolOp) for each in ast.walk(statement))
        call = failure.call if isinstance(failure.call, ast.Compare) and len(failure.call.ops) == 1 else None
        return f"({ast.unparse(call)}).all()" if call is not None and alone else None
    for node in ast.walk(statement):
        if isinstance(node, ast.Compare) and len(node.ops) == 2:
            return " & ".join(_compared(node, ((node.left, node.comparators[0]), node.comparators)))
        if isinstance(node, ast.BoolOp):
            first = failure.value(node.values[0])
            if isinstance(first, Tensor) and str(first.dtype) != "torch.bool":
                return None
            sign = " & " if isinstance(node.op, ast.And) else " | "
            parts = [f"({ast.unparse(each)})" if isinstance(each, ast.Compare) else ast.unparse(each)
                     for each in node.values]  # fmt: skip
            return sign.join(parts)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            operand = ast.unparse(node.operand)
            return f"~({operand})" if isinstance(node.operand, (ast.Compare, ast.BoolOp)) else f"~{operand}"
    return None


@remedy("has no attribute")
def misspelt(failure: Failure) -> str | tuple[str, int] | None:
    """Name the member of a similar name."""
    wrong = re.findall(r"'(\w+)'", failure.text)[-1]
    node = next((each for each in failure.parts(ast.Attribute) if each.attr == wrong), None)
    if not isinstance(failure.error, AttributeError) or node is None:
        return None
    owner = failure.value(node.value)
    owner = failure.error.obj if owner is None else owner
    if not isinstance(owner, (Tensor, ModuleType)) and not _is_ours(owner):
        return None
    wrapped = [name for name in ("module", "dataset") if hasattr(getattr(owner, name, None), wrong)]
    if wrapped:
        return f"{ast.unparse(node.value)}.{wrapped[0]}.{wrong}"
    whole, text = called(failure), ast.unparse(node.value)
    if wrong in _OF_NUMPY and (isinstance(owner, ModuleType) is isinstance(whole, ast.Call)):
        args = getattr(whole, "args", [])
        for given in (map(ast.unparse, args), (_as_vector(failure, each) for each in args)):
            again = f"{text}.{_OF_NUMPY[wrong].format(', '.join(given))}"
            if works(failure, again):
                return again
        return None
    if wrong == "append" and isinstance(owner, Tensor):
        made = failure.assignment(node.value)
        return (f"{text} = []", made.lineno) if made is not None and owner.numel() == 0 else None
    outer = node.value.value if isinstance(node.value, ast.Attribute) else node.value
    above = failure.value(outer)
    if isinstance(above, ModuleType) and hasattr(above, wrong):  # (NumPy has it in a module: `random.rand`)
        return f"{ast.unparse(outer)}.{wrong}"
    names = [name for name in dir(owner) if not name.startswith("_") and name.endswith("_") is wrong.endswith("_")]
    meant = _meant(wrong, names, 0.7)
    if meant is None or works(failure, f"{text}.{meant}"):
        return meant and f"{text}.{meant}"
    args = [named_dtype(failure.value(each)) or ast.unparse(each) for each in getattr(whole, "args", [])]
    again = f"{text}.{meant}({', '.join(args)})"
    return again if isinstance(whole, ast.Call) and works(failure, again, whole) else None


def _as_vector(failure: Failure, node: ast.expr) -> str:
    """Return an operand that is joined with others as one with a dimension."""
    value, text = failure.value(node), ast.unparse(node)
    if isinstance(value, Tensor):
        return text if value.ndim else f"{operand(node)}.reshape(1)"
    return f"torch.tensor([{text}])" if isinstance(value, (int, float)) else f"torch.tensor({text})"


def _is_ours(owner: Any) -> bool:
    """Return whether an object is a module, or of a class that the package defines."""
    return hasattr(owner, "_modules") or any(module_of(each).startswith("tinytorch.") for each in type(owner).__mro__)


@remedy("'NoneType' object has no attribute", "'NoneType' object is not", "unsupported operand type(s)")
def gradient_that_is_none(failure: Failure) -> str | tuple[str, int] | None:
    """Keep the gradient of a result, require that of a leaf, or leave out parameters that have none."""
    statement = failure.statement()
    for node in [each for each in failure.parts(ast.Attribute) if each.attr == "grad"]:
        owner, text = failure.value(node.value), ast.unparse(node.value)
        if not isinstance(owner, Tensor) or owner._grad is not None:
            continue
        assigned = failure.assignment(node.value)
        if not owner.is_leaf:
            return _updated(failure, assigned, text) or (None if owner.retains_grad else f"{text}.retain_grad()")
        if not owner.requires_grad:
            if assigned is None or not owner.dtype.is_floating_point or len(assigned.targets) != 1:
                return None
            return failure.assigned_with(assigned, ".requires_grad_()"), assigned.lineno
        for each in ast.walk(statement) if statement is not None else ():
            if isinstance(each, ast.comprehension) and ast.unparse(each.target) == text and not each.ifs:
                item = f"for {text} in {ast.unparse(each.iter)}"
                return f"{item} if {text}.grad is not None"
        whole = statement.value if isinstance(statement, ast.Expr) else None
        written = isinstance(whole, ast.Call) and ast.unparse(whole.func).startswith(f"{text}.grad.")
        if written or (failure.of_loop(node.value) and isinstance(statement, (ast.Expr, ast.AugAssign))):
            return f"if {text}.grad is not None: {failure.user.text().partition('  #')[0]}"
    return None


def _updated(failure: Failure, made: ast.Assign | None, text: str) -> tuple[str, int] | None:
    """Return a step of gradient descent by hand as one that is written in place, and not recorded."""
    for statement, line in ((failure.statement(), 0), (made, getattr(made, "lineno", 0))):
        value = getattr(statement, "value", None)
        if isinstance(statement, ast.Assign) and isinstance(value, ast.BinOp) and isinstance(value.op, ast.Sub):
            change = ast.unparse(value.right)
            if ast.unparse(statement.targets[0]) == ast.unparse(value.left) == text and f"{text}.grad" in change:
                return f"with torch.no_grad(): {text} -= {change}", line
    return None


@remedy("'NoneType' object has no attribute", "'NoneType' object is not", "must be Tensor, not NoneType",
        "unsupported operand type(s)")  # fmt: skip
def forgotten_return(failure: Failure) -> tuple[str, str] | None:
    """Return what the last statement of a module's `forward` computes."""
    for node in failure.parts(ast.expr):
        made = getattr(failure.assignment(node), "value", node)
        module = failure.value(made.func) if isinstance(made, ast.Call) else None
        if hasattr(module, "_modules") and is_users(type(module)):
            found = _with_return(getattr(type(module), "forward", None))
            if found is not None:
                return found
    return None


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
            base: Any = type(locals_of(step.frame).get("self")).__mro__[1]
            parameters = list(inspect.signature(base.__init__).parameters.values())[1:]
            named = [each for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)]
            needed = [each.name for each in named if each.default is each.empty]
            if not {*needed} <= {each.arg for each in tree.args.args}:
                return None
            return f"super().__init__({', '.join(needed)}); {ast.unparse(body[0])}", body[0].lineno
    return "super().__init__()"


@remedy("is not a Module subclass")
def modules_of_sequence(failure: Failure) -> str | None:
    """Unpack a list of modules; make modules of classes, and of functions: `nn.ReLU()` for `F.relu`."""
    kinds = {each.lower(): each for each in dir(nn) if isinstance(getattr(nn, each), type)}
    for node in failure.calling.args:
        value = failure.value(node)
        if isinstance(value, (list, tuple)) or isinstance(node, (ast.List, ast.ListComp)):
            text = ast.unparse(node)
            return failure.replaced(node, f"[*{text}]").replace(f"[*{text}]", f"*{text}")
        if isinstance(value, type):
            return failure.replaced(node, f"{ast.unparse(node)}()")
        name = ast.unparse(node).rpartition(".")[2]
        kind = kinds.get(name.replace("_", "").lower()) if isinstance(node, (ast.Attribute, ast.Name)) else None
        if kind is not None:
            return failure.replaced(node, f"nn.{kind}({'dim=-1' if 'softmax' in name else ''})")
    return None


@remedy("optimizer got an empty parameter list")
def registered_list(failure: Failure) -> str | tuple[str, int] | None:
    """Make a `ModuleList` of a list of modules, a parameter of a tensor, and a list of what can be used once."""
    node = failure.node("params")
    assigned = failure.assignment(node)
    if assigned is not None and hasattr(failure.arguments.get("params"), "__next__"):
        return f"{ast.unparse(assigned.targets[0])} = list({ast.unparse(assigned.value)})", assigned.lineno
    owner: Any = node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
    value = failure.value(owner.func if isinstance(owner, ast.Call) else owner)
    kind = value if isinstance(value, type) else type(value)
    made: Any = kind.__init__  # type: ignore[misc]
    for each in ast.walk(function_tree(made)) if inspect.isfunction(made) else ():
        if not isinstance(each, ast.Assign) or not isinstance(each.targets[0], ast.Attribute):
            continue
        held = () if value is kind else vars(value).get(each.targets[0].attr)
        written = isinstance(each.value, (ast.List, ast.ListComp)) and "nn." in ast.unparse(each.value)
        if isinstance(held, Tensor) and held.is_leaf:
            return f"{ast.unparse(each.targets[0])} = nn.Parameter({ast.unparse(each.value)})", each.lineno
        if written or (isinstance(held, list) and any(isinstance(item, nn.Module) for item in held)):
            text = f"{ast.unparse(each.targets[0])} = nn.ModuleList({ast.unparse(each.value)})"
            return text, each.lineno
    return None


@remedy("in loading state_dict for")
def matching_state(failure: Failure) -> str | None:
    """Take the state out of a checkpoint, or remove the prefix of its names."""
    module, state = failure.self, failure.arguments["state_dict"]
    own = set(module.state_dict())
    said = failure.said("state_dict")
    if state and all(isinstance(value, np.ndarray) for value in state.values()):
        text = f"{{name: torch.from_numpy(array) for name, array in {said}.items()}}"
        return failure.rewritten(state_dict=text)
    for key, value in state.items():
        if isinstance(value, Mapping) and own & set(value):
            return failure.rewritten(state_dict=f"{{}}[{key!r}]")
        if isinstance(value, Mapping) and any(f".{name}" in f".{each}" for each in value for name in own):
            said, state = f'{said}["{key}"]', value
    for prefix in {key.partition(".")[0] + "." for key in state} if own != set(state) else ():
        if {key.removeprefix(prefix) for key in state} == own:
            text = f'{{key.removeprefix("{prefix}"): value for key, value in {said}.items()}}'
            return failure.rewritten(state_dict=text)
    for name, child in module._modules.items():
        if child is not None and set(child.state_dict()) == set(state):
            return failure.called_as(f"{ast.unparse(failure.member.value)}.{name}.load_state_dict")
    renamed = _renamed(own - set(state), set(state) - own)
    if renamed is not None and _same_sizes(module.state_dict(), state, *renamed):
        old, new = renamed
        text = f'{{key.replace("{old}", "{new}", 1): value for key, value in {said}.items()}}'
        return failure.rewritten(state_dict=text)
    if "size mismatch" not in failure.text and 2 * len(own & set(state)) >= len(own | set(state)):
        return failure.with_keywords(strict="False")
    return _matching_sizes(failure)


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
    alike = {key.removeprefix(old) for key in unexpected} == {key.removeprefix(new) for key in missing}
    return (old, new) if alike else None


def _matching_sizes(failure: Failure) -> str | None:
    """Derive the layer for which the weights were saved."""
    pattern = r"size mismatch for (?:(\S+)\.)?weight: copying a param with shape torch.Size\(\[([\d, ]*)\]"
    found = re.search(pattern, failure.text)
    if found is None:
        return None
    layer = failure.self.get_submodule(found[1] or "")
    sizes = [int(size) for size in found[2].split(",")]
    names = {"Linear": ("out_features", "in_features"), "Embedding": ("num_embeddings", "embedding_dim")}
    if type(layer).__name__ in names:
        return like(layer, **dict(zip(names[type(layer).__name__], sizes, strict=True)))
    if is_layer(layer, "Conv1d", "Conv2d", "Conv3d"):
        size = number(tuple(sizes[2:]))
        return like(layer, in_channels=sizes[1] * layer.groups, out_channels=sizes[0], kernel_size=size)
    return None


def _shortcut(failure: Failure) -> tuple[tuple[str, str], str]:
    """Return the layer that makes the input of a residual block fit its result, its place, and the sum with it."""
    call, own = failure.call, failure.variables.get("self")
    if not isinstance(call, ast.BinOp) or not isinstance(call.op, ast.Add) or not failure.modules:
        raise Unknown("no sum in a module")
    if own is not failure.module or not is_users(type(own)):
        raise Unknown("not in a user's module")
    (a, x), (b, y) = [pair for pair in failure.arguments.items() if isinstance(pair[1], Tensor)][:2]
    names = [name for name in (a, b) if any(failure.arguments[name] is each for each in failure.given.values())]
    if len(names) != 1 or x.ndim != y.ndim or x.shape[0] != y.shape[0]:
        raise Unknown("no shortcut")
    given, other = (x, y) if names[0] == a else (y, x)
    function: Any = inspect.unwrap(type(own).__init__)
    tree, file = function_tree(function), function.__code__.co_filename
    numbers = list(_said_numbers(own, tree))
    said = {(name, value): text for name, value, text in numbers[::-1]}
    if x.ndim == 2:
        sizes = [said.get(("in_features", given.shape[1])), said.get(("out_features", other.shape[1]))]
        layer, step = "nn.Linear({}, {})", 1
    else:
        steps = {-(-m // n) for m, n in zip(given.shape[2:], other.shape[2:], strict=True)}
        step = steps.pop()
        if x.ndim < 3 or steps or [-(-size // step) for size in given.shape[2:]] != list(other.shape[2:]):
            raise Unknown("no number of steps")
        sizes = [said.get(("in_channels", given.shape[1])), said.get(("out_channels", other.shape[1]))]
        stride = f", stride={said.get(('stride', step), step)}" * (step != 1)
        layer = f"nn.Conv{x.ndim - 2}d({{}}, {{}}, 1{stride})"
    layer = layer.format(sizes[0] or given.shape[1], sizes[1] or other.shape[1])
    node = failure.node(names[0])
    if not isinstance(node, ast.Call):
        text = failure.rewritten(**{names[0]: "self.shortcut({})"})
        return (f"self.shortcut = {layer}", f"{file}:{function.__code__.co_firstlineno + 1}"), text
    made = [each for each in ast.walk(tree) if isinstance(each, ast.Assign)
            and ast.unparse(each.targets[0]) == ast.unparse(node.func)]  # fmt: skip
    choice = next((each for each in ast.walk(tree) if isinstance(each, ast.If) and made[-1] in each.body), None)
    values = {text: value for _, value, text in numbers}
    if choice is not None and type(failure.value(node.func)) is nn.Identity:  # (the layer is made, but not for this)
        parts = choice.test.values if isinstance(choice.test, ast.BoolOp) else [choice.test]
        strided = f"{said.get(('stride', step), '')} != 1"
        more = [strided] if step != 1 and strided not in ast.unparse(choice.test) else []
        test = " or ".join([*more, *map(ast.unparse, parts)])
        if not evaluated(failure.trial, test, values) or evaluated(failure.trial, choice.test, values):
            raise Unknown("another condition")
        return (f"if {test}:", f"{file}:{choice.lineno}"), ""
    line = made[0].lineno if made else function.__code__.co_firstlineno + 1
    return (f"{ast.unparse(node.func)} = {layer}", f"{file}:{line}"), ""


@remedy("index out of range in self")
def vocabulary(failure: Failure) -> tuple[str, str] | None:
    """Give a model a larger vocabulary, where its constructor passes that on to the embedding that failed."""
    layer, root = failure.module, next(iter(failure.modules), None)
    if root is None or type(layer) is not nn.Embedding or not is_users(type(root)):
        return None
    made_by: Any = vars(type(root)).get("__init__")
    said = _said_numbers(root, function_tree(made_by)) if inspect.isfunction(made_by) else ()
    names = [text for name, value, text in said if (name, value) == ("num_embeddings", layer.num_embeddings)]
    needed = int(next(iter(failure.given.values())).max()) + 1
    for step in reversed([each for each in failure.steps if each.users]):
        variables = [name for name, value in locals_of(step.frame).items() if value is root]
        for made in [each for each in step.nodes(ast.Assign) if ast.unparse(each.targets[0]) in variables]:
            given = _bound(root, made.value).get(names[0]) if names and isinstance(made.value, ast.Call) else None
            if given is not None:
                more = needed == layer.num_embeddings + 1 and not isinstance(given, ast.Constant)
                text = failure.in_text(made.value, given, f"{ast.unparse(given)} + 1" if more else str(needed))
                return text, f"{step.file}:{made.lineno}"
    return None


def _said_numbers(module: nn.Module, tree: ast.AST) -> Iterator[tuple[str, Any, str]]:
    """Yield the numbers of a module's layers that its constructor says by a name: the argument, the value, the name."""
    for node in [each for each in ast.walk(tree) if isinstance(each, ast.Assign) and isinstance(each.value, ast.Call)]:
        layer = module._modules.get(ast.unparse(node.targets[0]).removeprefix("self."))
        for name, said in _bound(layer, node.value).items() if layer is not None else ():
            if isinstance(said, ast.Name) and hasattr(layer, name):
                yield name, number(getattr(layer, name)), said.id


def _bound(layer: Any, call: Any) -> dict[str, ast.expr]:
    """Return the expressions of a call that makes a layer by the names of the arguments."""
    try:
        keywords = {each.arg: each.value for each in call.keywords if each.arg}
        return inspect.signature(type(layer)).bind_partial(*call.args, **keywords).arguments
    except TypeError:
        return {}


@remedy("must match the size of tensor b")
def shortcut(failure: Failure) -> tuple[str, str]:
    """Derive a layer for the shortcut of a residual block."""
    return _shortcut(failure)[0]


@remedy("must match the size of tensor b")
def with_shortcut(failure: Failure) -> str:
    """Use the layer for the shortcut."""
    return _shortcut(failure)[1]
