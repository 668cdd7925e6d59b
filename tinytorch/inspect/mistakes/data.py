"""Remedies for data sets and loaders."""

from __future__ import annotations

import ast
import inspect
from difflib import get_close_matches
from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.inspect.mistakes.failure import Failure
from tinytorch.inspect.mistakes.remedies import remedy
from tinytorch.inspect.mistakes.stack import locals_of
from tinytorch.inspect.sources import header_of


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
    return _collated_by(failure, "list")


@remedy("default_collate: batch must contain", "but got NoneType")
def list_of_samples(failure: Failure) -> str | tuple[str, int] | None:
    """Drop samples that are None; leave others a list."""
    batch = batch_of(failure)
    if not isinstance(batch, (list, tuple)):
        return None
    if any(each is None for each in batch) and all(each is None or isinstance(each, Tensor) for each in batch):
        return _collated_by(failure, "lambda batch: torch.stack([x for x in batch if x is not None])")
    return _collated_by(failure, "list")


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


@remedy("Sum of input lengths does not equal the length of the input dataset")
def whole_split(failure: Failure) -> str | None:
    """Give the rest to the last part."""
    lengths, size = list(failure.arguments["lengths"]), len(failure.arguments["dataset"])
    rest = (
        round(1 - sum(lengths[:-1]), 10)
        if any(isinstance(each, float) for each in lengths)
        else size - sum(lengths[:-1])
    )
    return failure.rewritten(lengths=str([*lengths[:-1], rest])) if rest >= 0 else None
