"""Remedies for data sets and loaders."""

from __future__ import annotations

import ast
import inspect
from difflib import get_close_matches
from typing import Any

from tinytorch.core.names import module_of
from tinytorch.core.tensor import Tensor
from tinytorch.inspect.mistakes.failure import Failure
from tinytorch.inspect.mistakes.remedies import fact, remedy
from tinytorch.inspect.mistakes.stack import locals_of
from tinytorch.inspect.sources import function_tree, header_of


def batch_of(failure: Failure) -> Any:
    """Return the samples of the batch that could not be put together; None outside of a loader."""
    for step in failure.steps:
        if step.ours and step.code.co_name in ("default_collate", "collate"):
            return locals_of(step.frame).get("batch")
    return None


def loader_at(failure: Failure) -> tuple[ast.Call, int] | None:
    """Return the call that made the loader of the user's loop, and its line."""
    tree = failure.user.tree()
    calls = [
        node
        for node in (ast.walk(tree) if tree is not None else ())
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "DataLoader"
    ]
    return (calls[0], calls[0].lineno) if len(calls) == 1 else None


def _collated_by(failure: Failure, text: str) -> str | tuple[str, int]:
    """Return the constructor of the loader with another `collate_fn`, and its line."""
    found = loader_at(failure)
    if found is None:
        return f"DataLoader(..., collate_fn={text})"
    call, line = found
    keywords = [each for each in call.keywords if each.arg != "collate_fn"]
    again = ast.Call(call.func, call.args, [*keywords, ast.keyword("collate_fn", ast.parse(text, mode="eval").body)])
    return failure.unparsed(again), line


@remedy("stack expects each tensor to be equal size")
def padded_batch(failure: Failure) -> str | tuple[str, int] | None:
    """Pad the samples of a batch, or leave them a list."""
    batch = batch_of(failure)
    if not isinstance(batch, list):
        return None
    if all(isinstance(each, Tensor) for each in batch) and len({tuple(each.shape[1:]) for each in batch}) == 1:
        return _collated_by(failure, "lambda batch: nn.utils.rnn.pad_sequence(batch, batch_first=True)")
    pairs = all(isinstance(each, tuple) and len(each) == 2 and isinstance(each[0], Tensor) for each in batch)
    if pairs and len({tuple(x.shape[1:]) for x, _ in batch}) == 1 and all(x.ndim for x, _ in batch):
        pad, second = "nn.utils.rnn.pad_sequence([{} for {} in batch], batch_first=True)", ""
        if all(isinstance(y, (int, float)) for _, y in batch):
            second = "torch.tensor([y for _, y in batch])"
        elif all(isinstance(y, Tensor) for _, y in batch):
            alike = len({tuple(y.shape) for _, y in batch}) == 1
            second = "torch.stack([y for _, y in batch])" if alike else pad.format("y", "_, y")
        if second:
            return _collated_by(failure, f"lambda batch: ({pad.format('x', 'x, _')}, {second})")
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


@remedy("default_collate: batch must contain", "NoneType")
def list_of_samples(failure: Failure) -> str | tuple[str, int] | tuple[str, str] | None:
    """Return the sample from `__getitem__`, or drop samples that are None; leave objects of other classes a list."""
    batch = batch_of(failure)
    if not isinstance(batch, (list, tuple)):
        return None
    if all(each is None for each in batch):
        return _returned_sample(failure)
    if any(each is None for each in batch):
        kept = "[each for each in batch if each is not None]"
        return _collated_by(failure, f"lambda batch: torch.utils.data.default_collate({kept})")
    return _collated_by(failure, "list") if "default_collate: batch must contain" in failure.text else None


def _returned_sample(failure: Failure) -> tuple[str, str] | None:
    """Return what the last statement of a user's `__getitem__` computes, as what it returns, and its place."""
    function: Any = getattr(type(_users_data(failure)), "__getitem__", None)
    tree = function_tree(function)
    last = tree.body[-1]
    if any(isinstance(each, ast.Return) and each.value is not None for each in ast.walk(tree)):
        return None
    place = f"{function.__code__.co_filename}:{last.lineno}"
    if isinstance(last, (ast.Assign, ast.Expr)) and not isinstance(last.value, ast.Constant):
        return f"return {ast.unparse(last.value)}".replace("(", "", 1).removesuffix(")") if isinstance(
            last.value, ast.Tuple
        ) else f"return {ast.unparse(last.value)}", place
    return None


def _users_data(failure: Failure) -> Any:
    """Return the data set of the user's class that the running loader reads, without the subsets around it."""
    for step in failure.steps:
        found = locals_of(step.frame)
        for value in (found.get("dataset"), getattr(found.get("self"), "dataset", None)):
            while hasattr(value, "dataset"):
                value = value.dataset  # type: ignore[union-attr]
            if value is not None and not module_of(type(value)).startswith("tinytorch."):
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
def misspelt_method(failure: Failure) -> str | tuple[str, int] | None:
    """Name a method that a base class calls, where the class has one of a similar name."""
    wanted = next(name for name in ("__getitem__", "forward", "__len__") if name.strip("_") in failure.text)
    owner: Any = failure.module if wanted == "forward" else _data_set(failure)
    own = {name: value for name, value in vars(type(owner)).items() if inspect.isfunction(value)}
    plain = {name.replace("_", "").lower(): name for name in own if name != wanted}
    found = get_close_matches(wanted.strip("_"), list(plain), 1, 0.6)
    if not found:
        return None
    function = own[plain[found[0]]]
    header, line = header_of(function)
    text = header.replace(f"def {function.__name__}", f"def {wanted}", 1)
    return text, line if function.__code__.co_filename == failure.user.file else 0


def _data_set(failure: Failure) -> Any:
    for step in reversed(failure.steps):
        found = locals_of(step.frame)
        if step.ours and step.code.co_name in ("__getitem__", "__len__") and "self" in found:
            return found["self"]
    return failure.arguments.get("dataset")


@remedy("sampler option is mutually exclusive with shuffle")
def without_shuffle(failure: Failure) -> str | None:
    """Leave the order to the sampler."""
    return failure.with_keywords(shuffle=None)


@remedy("batch_size should be a positive integer value")
def integer_batch(failure: Failure) -> str | None:
    """Convert a batch size to an integer."""
    value = failure.arguments.get("batch_size")
    return failure.rewritten(batch_size="int({})") if isinstance(value, float) and value >= 1 else None


@remedy("batch_sampler option is mutually exclusive")
def without_batches(failure: Failure) -> str | None:
    """Leave batches and their order to the sampler of batches."""
    return failure.with_keywords(batch_size=None, shuffle=None, sampler=None, drop_last=None)


@remedy("'int' object is not callable", "has no attribute 'size'")
def tensors_of_arrays(failure: Failure) -> str | None:
    """Make tensors of the arrays and lists of which a data set is made."""
    if failure.name != "TensorDataset" or not isinstance(failure.call, ast.Call):
        return None
    texts = []
    for node, value in zip(failure.call.args, failure.arguments.get("tensors", ()), strict=True):
        name = {"ndarray": "from_numpy", "list": "tensor"}.get(type(value).__name__)
        texts.append(f"torch.{name}({ast.unparse(node)})" if name else ast.unparse(node))
    return f"{ast.unparse(failure.call.func)}({', '.join(texts)})"


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


# Indices of another data set ----------------------------------------------------------------------


def _subset(failure: Failure) -> tuple[Any, Any] | None:
    """Return the subset whose indices were exceeded, and the sampler of the loader that reads it."""
    subset: Any = None
    sampler: Any = None
    for step in failure.steps:
        found = locals_of(step.frame)
        owner = found.get("self")
        if step.ours and hasattr(owner, "indices") and hasattr(owner, "dataset"):
            subset = owner
        if step.ours and hasattr(owner, "sampler") and hasattr(owner, "dataset"):
            sampler = getattr(owner, "sampler", None)
    for name, value in failure.variables.items():
        if subset is not None and sampler is None and getattr(value, "dataset", None) is subset and name:
            sampler = getattr(value, "sampler", None)
    return None if subset is None else (subset, sampler)


@fact("index out of range", "is out of range", "out of bounds")
def sampler_of_other_data(failure: Failure) -> str | None:
    """Say that a sampler draws from other data than the loader reads; or which length a data set says it has."""
    found = _subset(failure)
    if found is not None:
        subset, _ = found
        return (
            f"the indices that the sampler draws go beyond the {len(subset)} samples of the subset: they are those of "
            f"the whole data set, which has {len(subset.dataset)}"
        )
    return None


@remedy("index out of range", "is out of range", "out of bounds")
def sampler_of_subset(failure: Failure) -> str | tuple[str, int] | None:
    """Draw from the subset, or let the loader read the whole data set."""
    found, loader = _subset(failure), loader_at(failure)
    if found is None or loader is None:
        return None
    (subset, sampler), (call, line) = found, loader
    given = {each.arg: each.value for each in call.keywords}
    data: Any = call.args[0] if call.args else given.get("dataset")
    sampler = sampler or failure.value(given.get("sampler"))
    drawn = getattr(sampler, "indices", None)
    if drawn is not None and {int(each) for each in drawn} == {int(each) for each in subset.indices}:
        whole = data.args[0] if isinstance(data, ast.Call) and data.args else ast.Attribute(data, "dataset")
        return failure.in_text(call, data, ast.unparse(whole)), line
    weights = getattr(sampler, "weights", None)
    if weights is None or len(weights) != len(subset.dataset) or not isinstance(data, ast.Name):
        return None
    made: Any = given.get("sampler")
    made = getattr(failure.assignment(made), "value", made)
    if not isinstance(made, ast.Call) or not made.args:
        return None
    text = ast.unparse(made.args[0])
    value = failure.value(made.args[0])
    chosen = f"[{text}[k] for k in {data.id}.indices]" if isinstance(value, list) else f"{text}[{data.id}.indices]"
    options = [f"{each.arg}={ast.unparse(each.value)}" for each in made.keywords if each.arg != "num_samples"]
    again = ", ".join([chosen, f"len({data.id})", *map(ast.unparse, made.args[2:]), *options])
    return f"{ast.unparse(made.func)}({again})", made.lineno


@remedy("index out of range", "is out of range", "out of bounds")
def length_of_samples(failure: Failure) -> tuple[str, str] | None:
    """Return from `__len__` the number of the samples that `__getitem__` reads."""
    call = failure.call
    owner: Any = failure.variables.get("self")
    method: Any = getattr(type(owner), "__len__", None)
    if failure.user.code.co_name != "__getitem__" or not isinstance(call, ast.Subscript) or method is None:
        return None
    read, index = failure.value(call.value), failure.value(call.slice)
    if not hasattr(read, "__len__") or not isinstance(index, int) or not len(read) <= index < len(owner):
        return None
    returns = [each for each in ast.walk(function_tree(method)) if isinstance(each, ast.Return)]
    if len(returns) != 1 or not ast.unparse(call.value).startswith("self."):
        return None
    place = f"{method.__code__.co_filename}:{returns[0].lineno}"
    return f"return len({ast.unparse(call.value)})", place
