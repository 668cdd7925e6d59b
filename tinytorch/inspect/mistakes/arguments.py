"""Remedies for arguments: their names, types and ranges, and the devices that they name."""

from __future__ import annotations

import ast
import inspect
import re
from difflib import get_close_matches
from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.inspect.mistakes.failure import Failure
from tinytorch.inspect.mistakes.remedies import fact, remedy
from tinytorch.inspect.sources import assigned_attribute
from tinytorch.kernels import dtypes

#: The names that arguments have in NumPy and in Keras.
_ELSEWHERE = {
    "axis": "dim", "axes": "dim", "keepdims": "keepdim", "learning_rate": "lr", "lrate": "lr", "strides": "stride",
    "units": "out_features", "filters": "out_channels", "rate": "p", "beta": "betas", "epsilon": "eps",
    "decay": "weight_decay", "shape": "size",
    "requires_gradient": "requires_grad", "nb_workers": "num_workers", "batchsize": "batch_size",
}  # fmt: skip


@remedy("unexpected keyword argument")
def named_otherwise(failure: Failure) -> str | None:
    """Name the argument that was meant."""
    wrong = re.findall(r"unexpected keyword argument '(\w+)'", failure.text)[0]  # (Python may add a suggestion)
    call = failure.call
    function = failure.function.forward if failure.calls_module else failure.function
    names = [name for name in inspect.signature(function).parameters if name != "self"]
    meant = _ELSEWHERE.get(wrong)
    if meant not in names:
        meant = next(iter(get_close_matches(wrong, names, 1, 0.6)), None)
    if meant is None and len(names) == len(getattr(call, "keywords", ())) == 1 and not getattr(call, "args", ()):
        meant = names[0]
    if meant is None or not isinstance(call, ast.Call):
        return None
    keywords = [ast.keyword(meant if each.arg == wrong else each.arg, each.value) for each in call.keywords]
    again = ast.Call(call.func, call.args, keywords)
    return failure.unparsed(again)


@remedy("missing 1 required positional argument: 'metrics'")
def metric(failure: Failure) -> str | None:
    """Give the scheduler the loss."""
    names = [name for name in ("val_loss", "valid_loss", "loss") if name in failure.variables]
    call = failure.call
    return f"{ast.unparse(call.func)}({names[0]})" if names and isinstance(call, ast.Call) else None


@remedy("must be tuple of ints", "must be int, not", "received an invalid combination of arguments")
def integer_sizes(failure: Failure) -> str | None:
    """Convert a size to an integer."""
    call = failure.call
    if not isinstance(call, ast.Call):
        return None
    if failure.name == "randint" and len(call.args) == 2 and "not int" in failure.text:
        return f"{ast.unparse(call.func)}({ast.unparse(call.args[0])}, {ast.unparse(call.args[1])}, (1,))"
    if "tuple of ints, not int" in failure.text and call.args:
        return failure.replaced(call.args[-1], f"({ast.unparse(call.args[-1])},)")
    for node in call.args:
        division = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)
        value = failure.value(node)
        if division or isinstance(value, float) or (isinstance(value, str) and value.isdigit()):
            return failure.replaced(node, f"int({ast.unparse(node)})")
    return None


@remedy("expected np.ndarray (got")
def array_or_list(failure: Failure) -> str | None:
    """Make a tensor of a list."""
    value = next(iter(failure.arguments.values()))
    return failure.renamed("tensor") if isinstance(value, (list, tuple, int, float)) else None


@remedy("expected sequence of length")
def ragged(failure: Failure) -> str | None:
    """Pad rows of different lengths."""
    rows = failure.arguments.get("data")
    if not isinstance(rows, (list, tuple)) or not all(isinstance(row, (list, tuple)) for row in rows):
        return None
    if any(isinstance(each, (list, tuple)) for row in rows for each in row):
        return None
    data = failure.said("data")
    return f"nn.utils.rnn.pad_sequence([torch.tensor(row) for row in {data}], batch_first=True)"


@remedy("too many dimensions 'str'", "invalid data type 'str'")
def numbered_texts(failure: Failure) -> str | None:
    """Number texts."""
    values, data = failure.arguments.get("data"), failure.said("data")
    if not isinstance(values, (list, tuple)) or not all(isinstance(each, str) for each in values):
        return None
    if all(re.fullmatch(r"\s*[-+]?\d+\s*", each) for each in values):
        return failure.rewritten(data=f"[int(each) for each in {data}]")
    if all(re.fullmatch(r"\s*[-+]?[\d.]+(e[-+]?\d+)?\s*", each) for each in values):
        return failure.rewritten(data=f"[float(each) for each in {data}]")
    return failure.rewritten(data=f"[sorted(set({data})).index(label) for label in {data}]")


@remedy("only one element tensors can be converted")
def stacked(failure: Failure) -> str | None:
    """Stack a list of tensors."""
    values = failure.arguments.get("data")
    if not isinstance(values, (list, tuple)) or len({tuple(each.shape) for each in values}) != 1:
        return None
    return f"torch.stack({failure.said('data')})"


@remedy("compiled with CUDA")
def without_cuda(failure: Failure) -> str | None:
    """Use the GPU only where there is one."""
    call = failure.call
    choice = '"cuda" if torch.cuda.is_available() else "cpu"'
    if not isinstance(call, ast.Call):
        return None
    for node in ast.walk(call):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("cuda"):
            return failure.replaced(node, choice)
    if isinstance(call.func, ast.Attribute) and call.func.attr == "cuda":
        return f"{ast.unparse(call.func.value)}.to({choice})"
    return None


@remedy("device type at start of device string", "Expected one of cpu, cuda")
def device_name(failure: Failure) -> str | None:
    """Name the device that there is."""
    call = failure.call
    for node in ast.walk(call) if call is not None else ():
        wrong = failure.text.rpartition(": ")[2].strip("'\"")
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in (wrong, "", wrong[:8]):
            return failure.replaced(node, f"torch.{node.value}" if node.value in _dtypes() else '"cpu"')
    return None


@remedy("dtype must be torch.dtype, not type")
def dtype_of_numpy(failure: Failure) -> str | None:
    """Name the dtype of the package, rather than NumPy's."""
    node = failure.node("dtype")
    for each in ast.walk(failure.call) if failure.call is not None and node is None else ():
        node = each.value if isinstance(each, ast.keyword) and each.arg == "dtype" else node
    name = getattr(failure.value(node), "__name__", "")
    return failure.replaced(node, f"torch.{name}") if node is not None and name in _dtypes() else None


@remedy("takes 1 positional argument but")
def data_in_list(failure: Failure) -> str | None:
    """Put numbers or rows into one list."""
    call = failure.call
    if not failure.text.startswith("tensor()") or not isinstance(call, ast.Call):
        return None
    return failure.unparsed(ast.Call(call.func, [ast.List(call.args, ast.Load())], call.keywords))


@remedy("dtype must be torch.dtype, not str", "must be torch.dtype, not str")
def dtype_name(failure: Failure) -> str | None:
    """Name a dtype by the object instead of a text."""
    call = failure.call
    for node in ast.walk(call) if call is not None else ():
        if isinstance(node, ast.Constant) and node.value in _dtypes():
            return failure.replaced(node, f"torch.{node.value}")
    return None


def _dtypes() -> set[str]:
    return {name for name, value in vars(dtypes).items() if isinstance(value, dtypes.dtype)}


@remedy("dropout probability has to be between 0 and 1")
def percentage(failure: Failure) -> str | None:
    """Convert a percentage to a probability."""
    p = failure.arguments.get("p")
    return failure.rewritten(p=repr(p / 100)) if isinstance(p, (int, float)) and 2 <= p <= 100 else None


@remedy("missing 1 required positional argument: 'max_norm'", "missing 1 required positional argument: 'clip_value'",
        'missing 1 required positional arguments: "dim"')  # fmt: skip
def usual_value(failure: Failure) -> str | None:
    """Give the value that an argument usually has."""
    name = re.findall(r"['\"](\w+)['\"]$", failure.text)[0]
    return failure.with_keywords(**{name: "-1" if name == "dim" else "1.0"})


@remedy("required positional argument")
def given_sizes(failure: Failure) -> str | None:
    """Give sizes one by one, rather than as a tuple."""
    call = failure.call
    if not isinstance(call, ast.Call) or len(call.args) != 1 or not isinstance(call.args[0], (ast.Tuple, ast.List)):
        return None
    missing = re.findall(r"'(\w+)'", failure.text)
    if len(missing) + 1 != len(call.args[0].elts):
        return None
    return failure.unparsed(ast.Call(call.func, call.args[0].elts, call.keywords))


@remedy("required positional argument")
def variable_of_name(failure: Failure) -> str | None:
    """Give an argument that is missing from the variable that has its name."""
    missing, call = re.findall(r"'(\w+)'", failure.text), failure.call
    if not isinstance(call, ast.Call) or any(isinstance(each, ast.Starred) for each in call.args):
        return None
    if failure.inside and not (failure.calls_module and failure.function is failure.module):
        return None
    if not missing:
        return None
    others = {"target": ("target", "targets", "labels", "label", "y"),
              "T_max": ("T_max", "epochs", "num_epochs", "n_epochs", "max_epochs")}  # fmt: skip
    names = []
    for name in missing:
        known = [each for each in others.get(name, (name,))
                 if isinstance(failure.variables.get(each), int if name == "T_max" else Tensor)]  # fmt: skip
        if not known or known[0] in [ast.unparse(each) for each in call.args]:
            return None
        names.append(known[0])
    given = [ast.unparse(each) for each in call.args]
    keywords = [f"{each.arg}={ast.unparse(each.value)}" for each in call.keywords]
    if missing == ["T_max"]:
        keywords, names = [f"T_max={names[0]}", *keywords], []
    return f"{ast.unparse(call.func)}({', '.join([*given, *names, *keywords])})" if missing else None


@remedy("must be torch.Generator, not int")
def generator_of_seed(failure: Failure) -> str | None:
    """Make a generator of a seed."""
    if failure.node("generator") is None:
        return None
    return failure.rewritten(generator="torch.Generator().manual_seed({})")


@remedy("Nesterov momentum requires a momentum and zero dampening")
def momentum(failure: Failure) -> str | None:
    """Give the optimizer a momentum."""
    return failure.with_keywords(momentum="0.9") if not failure.arguments.get("dampening") else None


# Optimizers and schedulers ------------------------------------------------------------------------


@remedy("object is not iterable", "params argument given to the optimizer", "but one of the params is")
def parameters(failure: Failure) -> str | None:
    """Give an optimizer the parameters of a model, or a list with a tensor."""
    name = next((each for each in ("params", "parameters") if each in failure.arguments), None)
    if name is None:
        return None
    value = failure.arguments[name]
    if isinstance(value, Tensor):
        return failure.rewritten(**{name: "[{}]"})
    if hasattr(value, "parameters"):
        return failure.rewritten(**{name: "{}.parameters()"})
    node = failure.node(name)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and hasattr(
        failure.value(node.func.value), "parameters"
    ):  # fmt: skip
        return failure.rewritten(**{name: f"{ast.unparse(node.func.value)}.parameters()"})
    return failure.rewritten(**{name: "{}()"}) if inspect.ismethod(value) else None


@remedy("Invalid learning rate: -")
def positive_rate(failure: Failure) -> str | None:
    """Make the rate positive: the optimizer subtracts."""
    return failure.rewritten(lr=repr(-failure.arguments["lr"]))


@remedy("not supported between instances of 'str'", "not supported between instances of 'float' and 'str'")
def number_of_text(failure: Failure) -> str | None:
    """Convert a text to a number."""
    for name, value in failure.arguments.items():
        if isinstance(value, str):
            try:
                float(value)
            except ValueError:
                continue
            return failure.rewritten(**{name: f"{type_of(value)}({{}})"})
    return None


def type_of(text: str) -> str:
    """Return the name of the type of the number that a text contains."""
    return "int" if re.fullmatch(r"[-+]?\d+", text) else "float"


@remedy("slice indices must be integers", "only integer tensors of a single element can be converted to an index")
def integer_slice(failure: Failure) -> str | None:
    """Convert the ends of a slice to integers."""
    call = failure.call
    for each in ast.walk(call) if call is not None else ():
        for end in (each.lower, each.upper) if isinstance(each, ast.Slice) else ():
            value = failure.value(end)
            product = isinstance(end, ast.BinOp) and isinstance(end.op, (ast.Mult, ast.Div))
            if end is not None and (product or isinstance(value, (float, Tensor))):
                return failure.replaced(end, f"int({ast.unparse(end)})")
    return None


@remedy("You must define either total_steps OR")
def total_steps(failure: Failure) -> str | None:
    """Count the steps by epochs and batches."""
    epochs = [name for name in ("epochs", "num_epochs", "n_epochs") if isinstance(failure.variables.get(name), int)]
    loaders = [name for name in ("loader", "train_loader", "dataloader", "train_dataloader")
               if hasattr(failure.variables.get(name), "__len__")]  # fmt: skip
    if len(epochs) != 1 or len(loaders) != 1:
        return None
    return failure.with_keywords(total_steps=f"{epochs[0]} * len({loaders[0]})")


@remedy("missing 1 required positional argument: 'optimizer'", "missing 1 required positional argument: 'params'")
def trained_by(failure: Failure) -> str | None:
    """Give a scheduler the optimizer, or an optimizer the parameters of the model."""
    call = failure.call
    if not isinstance(call, ast.Call) or call.args:
        return None
    if "'optimizer'" in failure.text:
        names = [name for name, value in failure.variables.items() if _is_optimizer(value)]
    else:
        names = [f"{name}.parameters()" for name in failure.models()]
    options = [ast.unparse(each) for each in call.keywords]
    return f"{ast.unparse(call.func)}({', '.join([names[0], *options])})" if len(names) == 1 else None


@remedy("is not an Optimizer")
def optimizer(failure: Failure) -> str | None:
    """Give a scheduler the optimizer."""
    names = [name for name, value in failure.variables.items() if _is_optimizer(value)]
    return failure.rewritten(optimizer=names[0]) if len(names) == 1 else None


def _is_optimizer(value: Any) -> bool:
    return any(each.__name__ == "Optimizer" for each in type(value).__mro__)


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


def leaves_of(x: Tensor) -> list[Any]:
    """Return the leaves from which a tensor was computed."""
    found, nodes, seen = [], [x.grad_fn], set()
    while nodes:
        node: Any = nodes.pop()
        if node is None or id(node) in seen:
            continue
        seen.add(id(node))
        if hasattr(node, "variable"):
            found.append(node.variable)
        nodes += [each for each, _ in node.next_functions]
    return found


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
    text = f"{ast.unparse(statement.targets[0])} = {value if simple else f'({value})'}{cut}.requires_grad_()"
    return text.replace("'", '"')


@remedy("some parameters appear in more than one parameter group")
def other_group(failure: Failure) -> str | None:
    """Leave the parameters of a part, which has a group of its own, out of the group of the whole model."""
    nodes = []
    for each in ast.walk(failure.node("params") or ast.List([])):
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr == "parameters":
            owner: Any = each.func.value
            module: Any = failure.value(owner)
            if module is None and isinstance(owner, ast.Subscript) and isinstance(owner.slice, ast.Constant):
                module = failure.value(owner.value)[owner.slice.value]
            nodes.append((each, ast.unparse(owner), module))
    for node, text, whole in nodes:
        names = {id(module): name for name, module in whole.named_modules() if name}
        parts = [names[id(part)] for each, _, part in nodes if each is not node and id(part) in names]
        if parts:
            prefixes = [f"{part}." for part in parts]
            test = repr(prefixes[0] if len(prefixes) == 1 else tuple(prefixes)).replace("'", '"')
            rest = f"[p for name, p in {text}.named_parameters() if not name.startswith({test})]"
            return failure.replaced(node, rest)
    return None


@remedy("'int' object is not iterable", "'float' object is not iterable")
def sequence_of_one(failure: Failure) -> str | None:
    """Make a list of a number, where a function needs a sequence."""
    parameters = inspect.signature(failure.function).parameters if failure.inside else {}
    for name, value in failure.arguments.items():
        kind = str(parameters[name].annotation) if name in parameters else ""
        if type(value) in (int, float) and re.search(r"(?i)sequence|iterable|list\[", kind):
            return failure.rewritten(**{name: "[{}]"})
    return None


@remedy("'params'")
def key_of_group(failure: Failure) -> str | None:
    """Name the key of a group's parameters."""
    if not isinstance(failure.error, KeyError):
        return None
    for node in ast.walk(failure.node("params") or ast.List([])):
        for key in node.keys if isinstance(node, ast.Dict) else ():
            if isinstance(key, ast.Constant) and key.value in ("param", "parameters", "Params", "parameter"):
                return failure.replaced(key, '"params"')
    return None


@remedy("'float' object is not subscriptable")
def two_betas(failure: Failure) -> str | None:
    """Give both coefficients."""
    return failure.rewritten(betas="({}, 0.999)") if isinstance(failure.arguments.get("betas"), float) else None


@remedy("'float' object is not callable", "'int' object is not callable")
def power_of_rate(failure: Failure) -> str | None:
    """Make a function of the epoch."""
    if not isinstance(failure.arguments.get("lr_lambda"), (int, float)):
        return None
    return failure.rewritten(lr_lambda="lambda epoch: {} ** epoch")


@remedy("Tried to step")
def counted_steps(failure: Failure) -> tuple[str, int] | None:
    """Count the steps of a scheduler by batches, where it is given the number of epochs."""
    tree, call = failure.user.tree(), failure.call
    if tree is None or not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    made = failure.assignment(call.func.value)
    loops = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.For) and node.lineno <= failure.user.line <= (node.end_lineno or 0)
    ]
    if made is None or not isinstance(made.value, ast.Call) or len(loops) != 2:
        return None
    batches = loops[-1].iter
    if isinstance(batches, ast.Call) and ast.unparse(batches.func) in ("enumerate", "tqdm") and batches.args:
        batches = batches.args[0]
    for each in made.value.keywords:
        if each.arg == "total_steps" and isinstance(batches, ast.Name):
            epochs = loops[0].iter.args[0] if isinstance(loops[0].iter, ast.Call) else None
            if epochs is None or ast.unparse(epochs) != ast.unparse(each.value):
                return None
            text = failure.in_text(made.value, each.value, f"{ast.unparse(each.value)} * len({batches.id})")
            return text, made.lineno
    return None


@remedy("that doesn't match the size of optimizer's group")
def same_parameters(failure: Failure) -> tuple[str, int] | None:
    """Make the optimizer of the parameters whose state is loaded."""
    groups, call = failure.arguments["state_dict"]["param_groups"], failure.call
    if len(groups) != 1 or not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    names = []
    for name, value in failure.variables.items():
        own = hasattr(value, "_modules") and hasattr(value, "parameters") and not isinstance(value, type)
        parameters = list(value.parameters()) if own else []
        kept = {id(each) for group in failure.self.param_groups for each in group["params"]}
        if len(parameters) == len(groups[0]["params"]) and kept <= {id(each) for each in parameters}:
            names.append(name)
    made = failure.assignment(call.func.value)
    if len(names) != 1 or made is None or not isinstance(made.value, ast.Call) or not made.value.args:
        return None
    return failure.in_text(made.value, made.value.args[0], f"{names[0]}.parameters()"), made.lineno


@remedy("optimizer got an empty parameter list")
def list_of_iterator(failure: Failure) -> tuple[str, int] | None:
    """Make a list of an iterator of parameters, which can be used once."""
    value, node = failure.arguments.get("params"), failure.node("params")
    made = failure.assignment(node)
    if not hasattr(value, "__next__") or made is None or not isinstance(node, ast.Name):
        return None
    return f"{node.id} = list({ast.unparse(made.value)})".replace("'", '"'), made.lineno


# Arrays, files ------------------------------------------------------------------------------------


@remedy("can't convert np.ndarray of type")
def array_of_numbers(failure: Failure) -> str | None:
    """Convert an array of objects to numbers, or number texts."""
    name, array = next(iter(failure.arguments.items()))
    try:
        array.astype("float32")
    except (TypeError, ValueError):
        texts = {type(each) for each in array.reshape(-1)[:1000].tolist()} == {str}
        numpy = next((key for key, each in failure.variables.items() if getattr(each, "__name__", "") == "numpy"), "")
        if texts and numpy and array.ndim == 1:
            return failure.rewritten(**{name: f"{numpy}.unique({{}}, return_inverse=True)[1]"})
        shapes = {getattr(each, "shape", None) for each in array.reshape(-1)[:1000]}
        alike = numpy and array.ndim == 1 and len(shapes) == 1 and None not in shapes
        return failure.rewritten(**{name: f"{numpy}.stack({{}})"}) if alike else None
    return failure.rewritten(**{name: '{}.astype("float32")'})


@remedy("stride in the given numpy array is negative", "strides of a given numpy array are negative")
def copied_array(failure: Failure) -> str | None:
    """Copy an array that is read backwards."""
    return failure.rewritten(**{next(iter(failure.arguments)): "{}.copy()"})


@remedy("Cannot copy out of meta tensor")
def memory_first(failure: Failure) -> str | None:
    """Give a module on the meta device memory, whose contents are loaded afterwards."""
    call = failure.call
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "to":
        return None
    owner = failure.value(call.func.value)
    if not hasattr(owner, "to_empty"):
        return None
    return f"{ast.unparse(call.func.value)}.to_empty(device={ast.unparse(call.args[0])})".replace("'", '"')


@remedy("Weights only load failed")
def trusted_file(failure: Failure) -> str | None:
    """Load objects of other classes from a file that the user trusts."""
    return failure.with_keywords(weights_only="False")


@fact("Weights only load failed")
def saved_states(failure: Failure) -> str:
    """Say what is better saved."""
    return (
        "the file holds objects of other classes, whose code loading runs: trust it, or save "
        "model.state_dict() and load that with model.load_state_dict(torch.load(...))"
    )


@remedy("Attempting to deserialize object on")
def mapped_location(failure: Failure) -> str | None:
    """Load what was saved on another device."""
    return failure.with_keywords(map_location='"cpu"')


@remedy("enforce_sorted")
def any_order(failure: Failure) -> str | None:
    """Accept sequences in any order of lengths."""
    return failure.with_keywords(enforce_sorted="False")


@remedy("Length of all samples has to be greater than 0")
def length_of_one(failure: Failure) -> str | None:
    """Keep one step of empty sequences."""
    return failure.rewritten(lengths="{}.clamp(min=1)") if isinstance(failure.arguments["lengths"], Tensor) else None


@remedy("Expected `len(lengths)` to be equal to batch_size")
def packed_batch_first(failure: Failure) -> str | None:
    """Say that the batch comes first."""
    x, lengths = failure.arguments["input"], failure.arguments["lengths"]
    fits = x.shape[0] == len(lengths) and not failure.arguments.get("batch_first")
    return failure.with_keywords(batch_first="True") if fits else None


@remedy("argument 'sequences' (position 1) must be tuple of Tensors")
def sequences_of_lists(failure: Failure) -> str | None:
    """Make tensors of lists that are padded."""
    rows = failure.arguments.get("sequences")
    fits = isinstance(rows, (list, tuple)) and all(isinstance(each, (list, tuple)) for each in rows)
    return failure.rewritten(sequences="[torch.tensor(each) for each in {}]") if fits else None


@remedy("must match the size of tensor b", "expand")
def steps_first(failure: Failure) -> str | None:
    """Put the steps first in sequences that are padded."""
    rows = failure.arguments.get("sequences")
    if (
        not isinstance(rows, (list, tuple))
        or {each.ndim for each in rows} != {2}
        or len({each.shape[0] for each in rows}) > 1
    ):
        return None
    return failure.rewritten(sequences="[each.transpose(0, 1) for each in {}]")


# Distributions ------------------------------------------------------------------------------------


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
    if "log" in ast.unparse(node):
        half = "var" in ast.unparse(node) and name == "scale"
        return failure.rewritten(**{name: "({} / 2).exp()" if half else "{}.exp()"})
    return failure.rewritten(**{name: f"{failure.named('nn.functional', 'nn.functional')}.softplus({{}})"})


@remedy("probability tensor contains either")
def probabilities_of_scores(failure: Failure) -> str | None:
    """Make probabilities of scores."""
    x = failure.arguments.get("input")
    finite = isinstance(x, Tensor) and bool(x.isfinite().all())
    return failure.rewritten(input="{}.softmax(-1)") if finite else None


@remedy("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
def drawn_again(failure: Failure) -> str | None:
    """Let a number be drawn more than once."""
    return failure.with_keywords(replacement="True")


@remedy("tensor(")
def number_as_key(failure: Failure) -> str | None:
    """Look up a number, rather than a tensor, whose hash is that of the object."""
    call, error = failure.call, failure.error
    if not isinstance(error, KeyError) or not isinstance(call, ast.Subscript) or not isinstance(error.args[0], Tensor):
        return None
    if error.args[0].numel() != 1 or not isinstance(failure.value(call.value), dict):
        return None
    return failure.replaced(call.slice, f"{ast.unparse(call.slice)}.item()")
