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


@remedy("must be tuple of ints", "must be int, not")
def integer_sizes(failure: Failure) -> str | None:
    """Convert a size to an integer."""
    call = failure.call
    if not isinstance(call, ast.Call):
        return None
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
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return failure.replaced(node, f"torch.{node.value}" if node.value in _dtypes() else '"cpu"')
    return None


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


@remedy("clip_grad_norm_() missing 1 required positional argument: 'max_norm'")
def largest_norm(failure: Failure) -> str | None:
    """Name the largest norm."""
    return failure.with_keywords(max_norm="1.0")


@remedy("Nesterov momentum requires a momentum and zero dampening")
def momentum(failure: Failure) -> str | None:
    """Give the optimizer a momentum."""
    return failure.with_keywords(momentum="0.9") if not failure.arguments.get("dampening") else None


# Optimizers and schedulers ------------------------------------------------------------------------


@remedy("object is not iterable", "params argument given to the optimizer")
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


@remedy("is not an Optimizer")
def optimizer(failure: Failure) -> str | None:
    """Give a scheduler the optimizer."""
    names = [name for name, value in failure.variables.items() if _is_optimizer(value)]
    return failure.rewritten(optimizer=names[0]) if len(names) == 1 else None


def _is_optimizer(value: Any) -> bool:
    return any(each.__name__ == "Optimizer" for each in type(value).__mro__)


@remedy("can't optimize a non-leaf Tensor")
def leaf(failure: Failure) -> str | tuple[str, int] | None:
    """Make a leaf of a result."""
    node = failure.node("params")
    for each in node.elts if isinstance(node, (ast.List, ast.Tuple)) else ():
        value = failure.value(each)
        assigned = failure.assignment(each)
        if isinstance(value, Tensor) and not value.is_leaf and assigned is not None:
            return f"{ast.unparse(each)} = ({ast.unparse(assigned.value)}).detach().requires_grad_()", assigned.lineno
    return None


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


@remedy("tensor(")
def number_as_key(failure: Failure) -> str | None:
    """Look up a number, rather than a tensor, whose hash is that of the object."""
    call, error = failure.call, failure.error
    if not isinstance(error, KeyError) or not isinstance(call, ast.Subscript) or not isinstance(error.args[0], Tensor):
        return None
    if error.args[0].numel() != 1 or not isinstance(failure.value(call.value), dict):
        return None
    return failure.replaced(call.slice, f"{ast.unparse(call.slice)}.item()")
