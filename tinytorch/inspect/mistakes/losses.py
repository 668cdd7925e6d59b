"""Remedies for losses: the dtypes, shapes and ranges of targets, and classes that are called like functions."""

from __future__ import annotations

import ast
from typing import Any

from tinytorch.core.names import module_of
from tinytorch.core.tensor import Tensor
from tinytorch.inspect.mistakes.failure import Failure
from tinytorch.inspect.mistakes.layers import converted
from tinytorch.inspect.mistakes.remedies import remedy
from tinytorch.inspect.sources import assigned_attribute


def pair(failure: Failure) -> tuple[Any, Any]:
    """Return the predictions and the targets of a loss."""
    given = failure.arguments if isinstance(failure.arguments.get("target"), Tensor) else failure.given
    x, target = given.get("input"), given.get("target")
    if not isinstance(x, Tensor) or not isinstance(target, Tensor):
        raise LookupError("no loss")
    return x, target


# Classes ------------------------------------------------------------------------------------------


@remedy("expected target dtype to be Long", "expected scalar type Long")
def integer_labels(failure: Failure) -> str | None:
    """Convert labels to integers."""
    x, target = pair(failure)
    if target.ndim == max(0, x.ndim - 1):
        return failure.rewritten(target="{}.long()")
    if x.ndim == 2 and target.shape == (x.shape[0], 1):
        return failure.rewritten(target="{}.squeeze(1).long()")
    return None


@remedy("multi-target not supported")
def labels_without_column(failure: Failure) -> str | None:
    """Remove the second dimension of labels."""
    x, target = pair(failure)
    if target.ndim == 2 and target.shape[1] == 1:
        return failure.rewritten(target="{}.squeeze(1)" + ("" if str(target.dtype) == "torch.int64" else ".long()"))
    return failure.rewritten(target="{}.argmax(1)") if target.shape == x.shape else None


@remedy("Expected floating point type for target with class probabilities")
def probabilities(failure: Failure) -> str | None:
    """Convert one-hot labels to floats."""
    x, target = pair(failure)
    if target.shape == x.shape:
        return failure.rewritten(target="{}" + converted(x.dtype))
    if x.ndim == 2 and target.numel() == x.shape[0]:
        return failure.rewritten(target="{}.squeeze(1)" if target.shape[1:] == (1,) else "{}.flatten()")
    return None


@remedy("batches of spatial targets supported", "1D target tensor expected", "0D or 1D target tensor expected")
def labels_without_channel(failure: Failure) -> str | None:
    """Remove the dimension of channels of a map of labels, or take the classes of one-hot labels."""
    x, target = pair(failure)
    kind = "" if str(target.dtype) == "torch.int64" else ".long()"
    if target.ndim == x.ndim and target.shape[1] == 1 and without_second(target) == without_second(x):
        return failure.rewritten(target=f"{{}}.squeeze(1){kind}")
    if target.ndim == x.ndim and target.shape == x.shape:
        return failure.rewritten(target="{}.argmax(1)")
    if target.ndim == x.ndim and target.shape[-1] == x.shape[1] and target.shape[1:-1] == x.shape[2:]:
        return failure.rewritten(target="{}.argmax(-1)")
    return None


def without_second(x: Tensor) -> list[int]:
    """Return a shape without the dimension of classes."""
    return [*x.shape[:1], *x.shape[2:]]


@remedy("to match target batch_size")
def labels_in_one_row(failure: Failure) -> str | None:
    """Flatten the labels where the predictions are flat."""
    x, target = pair(failure)
    fits = target.ndim > 1 and x.ndim == 2 and target.numel() == x.shape[0]
    return failure.rewritten(target="{}.flatten()") if fits else None


@remedy("is out of bounds.")
def labels_in_range(failure: Failure) -> str | None:
    """Shift labels that start at 1, ignore negative ones, or derive the number of outputs of the last layer."""
    x, target = pair(failure)
    classes = x.shape[1] if x.ndim > 1 else x.shape[0]
    low, high = int(target.min()), int(target.max())
    if low < 0:
        kept = target[target >= 0]
        if len({int(each) for each in target[target < 0].flatten()}) > 1 or (len(kept) and int(kept.max()) >= classes):
            return None
        if failure.calls_module:
            return f"nn.{type(failure.module).__name__}(ignore_index={low})"
        return failure.with_keywords(ignore_index=str(low))
    border = target[target >= classes]
    if len({int(each) for each in border.flatten()}) == 1 and high in (255, 254, 99, 999) and high > classes + 1:
        if failure.calls_module:
            return f"nn.{type(failure.module).__name__}(ignore_index={high})"
        return failure.with_keywords(ignore_index=str(high))
    head = _last_layer(failure)
    if head is not None and getattr(head, "out_features", 0) == classes and not low:
        return f"nn.Linear({head.in_features}, {high + 1})"
    return failure.rewritten(target="{} - 1") if low >= 1 and high == classes else None


def _last_layer(failure: Failure) -> Any:
    """Return the last module of the model that computed the predictions, as far as the user's function shows it."""
    origin = failure.origin("input")
    model: Any = failure.value(origin.func) if isinstance(origin, ast.Call) else None
    return list(model.modules())[-1] if hasattr(model, "modules") else None


@remedy("Expected target size")
def classes_second(failure: Failure) -> str | None:
    """Move the dimension of classes to the second place."""
    x, target = pair(failure)
    if x.ndim < 3 or tuple(x.shape[:-1]) != tuple(target.shape):
        return None
    order = (0, x.ndim - 1, *range(1, x.ndim - 1))
    return failure.rewritten(input="{}.transpose(1, 2)" if x.ndim == 3 else f"{{}}.permute{order}")


@remedy("not implemented for 'Long'", "not implemented for 'Int'")
def swapped(failure: Failure) -> str | None:
    """Swap predictions and labels."""
    x, target = pair(failure)
    if x.dtype.is_floating_point or not target.dtype.is_floating_point:
        return None
    return failure.rewritten(input=failure.said("target"), target=failure.said("input"))


@remedy("(the weight)", "to buffer 'weight'", "weight should be Tensor", "to buffer 'pos_weight'")
def weights_of_classes(failure: Failure) -> str | tuple[str, int] | None:
    """Make a tensor of the weights of classes, of the dtype of the predictions."""
    if not failure.calls_module:
        name = next(each for each in ("weight", "pos_weight") if isinstance(failure.arguments.get(each), (list, tuple)))
        return failure.rewritten(**{name: "torch.tensor({})"})
    found, (x, _) = failure.constructor(type(failure.module).__name__), pair(failure)
    for each in found[0].keywords if found is not None else ():
        if each.arg == "weight" and found is not None:
            text = ast.unparse(each.value)
            return failure.in_text(found[0], each.value, f"{text}{converted(x.dtype)}"), found[1]
    return None


@remedy("multi-target not supported", "1D target tensor expected")
def target_without_column(failure: Failure) -> str | None:
    """Remove the second dimension of the target of a loss of two inputs."""
    target = failure.arguments.get("target")
    if not isinstance(target, Tensor) or "input" in failure.arguments or target.ndim != 2 or target.shape[1] != 1:
        return None
    return failure.rewritten(target="{}.squeeze(1)")


@remedy("input_lengths must be of size batch_size")
def steps_first(failure: Failure) -> str | None:
    """Put the steps first in the predictions of CTC."""
    x, lengths = failure.arguments.get("log_probs"), failure.arguments.get("input_lengths")
    if not isinstance(x, Tensor) or not isinstance(lengths, Tensor) or x.shape[0] != lengths.numel():
        return None
    return failure.rewritten(log_probs="{}.transpose(0, 1)")


@remedy("must match the size of tensor b")
def output_padding(failure: Failure) -> tuple[str, int] | None:
    """Pad the result of the only transposed convolution, where it is smaller than the target."""
    x, target = pair(failure)
    more = {n - m for m, n in zip(x.shape[2:], target.shape[2:], strict=True)}
    dims = x.ndim - 2
    found = failure.constructor(f"ConvTranspose{dims}d")
    if x.shape[:2] != target.shape[:2] or more != {1} or found is None:
        return None
    call, line = found
    options = {each.arg: each.value for each in call.keywords}
    stride = options.get("stride") or (call.args[3] if len(call.args) > 3 else None)
    if "output_padding" in options or stride is None or failure.value(stride) == 1:
        return None
    again = ast.Call(call.func, call.args, [*call.keywords, ast.keyword("output_padding", ast.Constant(1))])
    return failure.unparsed(again), line


# Two classes, and regression ----------------------------------------------------------------------


@remedy("must be the same as input size", "that is different to the input size")
def same_shape(failure: Failure) -> str | None:
    """Add a dimension of size 1 to the targets, or remove it."""
    x, target = pair(failure)
    have, want = list(target.shape), list(x.shape)
    kind = converted(x.dtype) if x.dtype.is_floating_point and not target.dtype.is_floating_point else ""
    for k in range(len(want)):
        if want[k] == 1 and want[:k] + want[k + 1 :] == have:
            return failure.rewritten(target=f"{{}}.unsqueeze({k}){kind}")
    for k in range(len(have)):
        if have[k] == 1 and have[:k] + have[k + 1 :] == want:
            return failure.rewritten(target=f"{{}}.squeeze({k}){kind}")
    if len(have) == 1 and x.numel() == target.numel() and want[0] == have[0] and len(want) > 2:
        return failure.rewritten(input="{}.flatten()", target="{}" + kind)
    if len(want) == 2 < len(have) and target.flatten(1).shape == x.shape:
        return failure.rewritten(target=f"{{}}.flatten(1){kind}")
    if len(want) == 2 and have == want[:1] and failure.is_module("BCEWithLogitsLoss") and failure.is_users_call:
        classes = (target >= 0) & (target < want[1]) & (target == target.round())
        kind = "" if str(target.dtype) == "torch.int64" else ".long()"
        text = f"nn.CrossEntropyLoss()({failure.said('input')}, {failure.said('target')}{kind})"
        return text if bool(classes.all()) else None
    return None


@remedy("Found dtype")
def float_targets(failure: Failure) -> str | None:
    """Convert targets to the dtype of the predictions."""
    x, target = pair(failure)
    return None if x.dtype is target.dtype else failure.rewritten(target="{}" + converted(x.dtype))


@remedy("all elements of input should be between 0 and 1")
def logits(failure: Failure) -> str | None:
    """Name the loss for logits."""
    if failure.calls_module:
        reduction = failure.module.reduction
        return f"nn.BCEWithLogitsLoss({'' if reduction == 'mean' else f'reduction={reduction!r}'})"
    return failure.renamed("binary_cross_entropy_with_logits")


@remedy("all elements of target should be between 0 and 1")
def targets_from_zero(failure: Failure) -> str | None:
    """Shift targets that are 1 and 2, or scale bytes."""
    values = {float(each) for each in pair(failure)[1].flatten()[:10000]}
    if values <= {1.0, 2.0}:
        return failure.rewritten(target="{} - 1")
    if values == {-1.0, 1.0}:
        return failure.rewritten(target="({} + 1) / 2")
    return failure.rewritten(target="{} / 255") if min(values) >= 0 and 100 < max(values) <= 255 else None


@remedy("is not a valid value for reduction")
def reduction_name(failure: Failure) -> str | None:
    """Name the reduction that was meant."""
    wrong = failure.text.partition(" ")[0].strip("'\"")
    meant = {"average": "mean", "avg": "mean", "total": "sum", "no": "none", "batchmean": "mean"}.get(wrong.lower())
    meant = meant or next((name for name in ("mean", "sum", "none") if name.startswith(wrong[:2].lower())), None)
    if meant is None:
        return None
    if failure.calls_module:
        return f'nn.{type(failure.module).__name__}(reduction="{meant}")'
    return failure.with_keywords(reduction=f'"{meant}"')


# Classes called like functions --------------------------------------------------------------------


@remedy("Boolean value of Tensor", "object has no attribute", "must be Tensor, not", "unsupported operand type")
def class_called(failure: Failure) -> str | tuple[str, int] | tuple[str, str] | None:
    """Make the module first: `nn.ReLU()(x)` for `nn.ReLU(x)`."""
    call = failure.call
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Call) and _is_class(failure, call.func):
        call = call.func  # nn.Softmax(x)(x)
    elif isinstance(call, ast.Attribute):
        call = call.value
    elif isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and not _is_class(failure, call):
        call = call.func.value
    if isinstance(failure.error, AttributeError) and not isinstance(getattr(failure.error, "obj", None), Tensor):
        wrong = getattr(failure.error, "obj", None)
        if getattr(wrong, "_modules", None):
            return None  # (it has layers: it was made rightly)
    assigned = failure.assignment(call)
    if assigned is not None:
        call = assigned.value
    if not isinstance(call, ast.Call) or not _is_class(failure, call) or not call.args:
        return None
    made = _class_assigned(failure, call)
    if made is not None:
        return made
    name, arguments = ast.unparse(call.func), ", ".join([ast.unparse(each) for each in call.args])
    options = ", ".join([ast.unparse(each) for each in call.keywords])
    if name.rpartition(".")[2] in ("Softmax", "LogSoftmax", "Softmin") and "dim" not in options:
        options = "dim=-1"
    return f"{name}({options})({arguments})"


def _class_assigned(failure: Failure, call: ast.Call) -> tuple[str, int] | tuple[str, str] | None:
    """Return the assignment of a class of a layer, as the assignment of a layer, and its place."""
    assigned = failure.assignment(call.func)
    if assigned is not None and isinstance(assigned.value, (ast.Name, ast.Attribute)):
        return f"{ast.unparse(assigned)}()", assigned.lineno
    if isinstance(call.func, ast.Attribute) and hasattr(failure.value(call.func.value), "_modules"):
        found = assigned_attribute(type(failure.value(call.func.value)), call.func.attr, "__init__")
        if found is not None and isinstance(found[0].value, (ast.Name, ast.Attribute)):
            return f"{ast.unparse(found[0])}()", f"{found[1]}:{found[0].lineno}"
    return None


def _is_class(failure: Failure, call: ast.Call) -> bool:
    """Return whether a class of `torch.nn` is called with a tensor first."""
    function = failure.value(call.func)
    if not isinstance(function, type) or not module_of(function).startswith("tinytorch.nn") or not call.args:
        return False
    if function.__name__.endswith("Loss"):
        return True
    value = failure.value(call.args[0])
    return isinstance(value, Tensor) or (value is None and isinstance(call.args[0], (ast.Call, ast.BinOp)))
