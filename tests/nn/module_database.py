"""PyTorch's own samples of its modules, run with both libraries: prints where they differ (test_module_database.py).

A process of its own, since to import the samples changes PyTorch's settings.
"""

from __future__ import annotations

import copy
import dataclasses
import io
import re
import types
import warnings
from typing import Any

import numpy as np

import tinytorch
from tests.filled import emptied, reads_what_was_not_written, sizes
from tests.oracle import torch

#: Samples per module and mode.
MOST = 4
ABSENT: set[str] = set()


def ours(value: Any, made: dict[int, Any]) -> Any:
    """Return an argument of PyTorch's as one of tinytorch's; tensors also in `made`, by the id of the original."""
    if isinstance(value, torch.nn.Module):
        file = io.BytesIO()
        torch.save(value, file)
        file.seek(0)
        return tinytorch.load(file, weights_only=False)
    if isinstance(value, torch.Tensor):
        if id(value) not in made:
            leaf = tinytorch.from_numpy(value.detach().numpy().copy())
            made[id(value)] = leaf.requires_grad_(value.requires_grad)
        return made[id(value)]
    if isinstance(value, torch.nn.utils.rnn.PackedSequence):
        return tinytorch.nn.utils.rnn.PackedSequence(
            *[ours(each, made) if each is not None else None for each in value]
        )
    if isinstance(value, (list, tuple)):
        return type(value)(ours(each, made) for each in value)
    if isinstance(value, dict):
        return {key: ours(each, made) for key, each in value.items()}
    if isinstance(value, torch.nn.LinearCrossEntropyOptions):
        return tinytorch.nn.LinearCrossEntropyOptions(**dataclasses.asdict(value))
    if isinstance(value, (torch.dtype, torch.device)):
        return getattr(tinytorch, str(value).rpartition(".")[2])
    if isinstance(value, types.FunctionType):
        named = getattr(tinytorch.nn.functional, value.__name__, None)
        if value.__module__ == "torch.nn.functional" and named is not None:
            return named
        # with tinytorch by the name of torch, and its functions by the names of PyTorch's
        scope = {**value.__globals__, "torch": tinytorch, "F": tinytorch.nn.functional}
        return types.FunctionType(value.__code__, scope, value.__name__, value.__defaults__)
    if callable(value) and not isinstance(value, type):
        return getattr(tinytorch, value.__name__)
    return value


def tensors(value: Any) -> list[Any]:
    """Return the tensors in a value, in order."""
    if isinstance(value, (torch.Tensor, tinytorch.Tensor)):
        return [value]
    if isinstance(value, (list, tuple)):
        return [found for each in value for found in tensors(each)]
    if isinstance(value, dict):
        return [found for each in value.values() for found in tensors(each)]
    return []


def compare(what: str, mine: list[Any], theirs: list[Any]) -> None:
    """Raise AssertionError unless tensors (or None) are the same."""
    assert len(mine) == len(theirs), f"{what}: {len(mine)} against {len(theirs)}"
    for k, (x, y) in enumerate(zip(mine, theirs, strict=True)):
        assert (x is None) == (y is None), f"{what} {k}: {x} against {y}"
        if y is not None:
            assert str(x.dtype) == str(y.dtype) and tuple(x.shape) == tuple(y.shape), f"{what} {k}"
            assert x.requires_grad == y.requires_grad, f"{what} {k}: requires_grad"
            np.testing.assert_allclose(x.detach().numpy(), y.detach().numpy(), 1e-7, 1e-9, err_msg=f"{what} {k}")


def state(what: str, mine: Any, theirs: Any) -> None:
    mine, theirs = mine.state_dict(), theirs.state_dict()
    assert list(mine) == list(theirs), f"{what}: {list(mine)} against {list(theirs)}"
    if not any(type(each).__name__.startswith("Uninit") for each in theirs.values()):
        compare(what, list(mine.values()), list(theirs.values()))


def check(cls: Any, sample: Any, training: bool) -> None:
    """Raise AssertionError where a module of tinytorch does not do what PyTorch's does."""
    made: dict[int, Any] = {}
    given = sample.constructor_input
    torch.manual_seed(1)
    theirs = cls(*given.args, **given.kwargs).train(training)
    tinytorch.manual_seed(1)
    mine = getattr(tinytorch.nn, cls.__name__)(*ours(given.args, made), **ours(given.kwargs, made))
    mine.train(training)
    assert repr(mine) == repr(theirs), f"repr: {mine!r} against {theirs!r}"
    state("state", mine, theirs)
    given = sample.forward_input
    if given is None:
        return
    their_args, their_kwargs = given.args, given.kwargs
    args, kwargs = ours(their_args, made), ours(their_kwargs, made)
    for which, (a, b) in {"itself": (mine, theirs), "a copy": (copy.deepcopy(mine), copy.deepcopy(theirs))}.items():
        torch.manual_seed(2)
        out = tensors(b(*their_args, **their_kwargs))
        tinytorch.manual_seed(2)
        own = tensors(a(*args, **kwargs))
        compare(f"{which}: out", own, out)
        state(f"{which}: state afterwards", a, b)
        leaves = [x for x in tensors([their_args, their_kwargs]) if x.requires_grad]
        wanted = [*leaves, *b.parameters()]
        out = [x for x in out if x.requires_grad]
        if out and wanted:
            own = [x for x in own if x.requires_grad]
            inputs = [*[made[id(x)] for x in leaves], *a.parameters()]
            weights = [np.cos(np.arange(x.numel())).reshape(x.shape) for x in out]
            grads = torch.autograd.grad(out, wanted, [torch.tensor(w) for w in weights], allow_unused=True)
            found = tinytorch.autograd.grad(own, inputs, [tinytorch.tensor(w) for w in weights], allow_unused=True)
            compare(f"{which}: gradient", list(found), list(grads))


def written(cls: Any, sample: Any, training: bool) -> None:
    """Raise AssertionError where a module reads what was not written, or one with 0 for a size does."""
    given, called = sample.constructor_input, sample.forward_input

    def emptied_ones(given: Any) -> tuple[Any, dict[str, Any]]:
        args, values = emptied([ours(given.args, {}), [*ours(given.kwargs, {}).values()]], size)
        return args, dict(zip(given.kwargs, values, strict=True))

    def call() -> Any:
        tinytorch.manual_seed(1)
        args, kwargs = emptied_ones(given)
        module = getattr(tinytorch.nn, cls.__name__)(*args, **kwargs).train(training)
        if called is None:
            return [*module.state_dict().values()]
        args, kwargs = emptied_ones(called)
        out = [x for x in tensors(module(*args, **kwargs)) if x.requires_grad]
        wanted = [x for x in [*tensors([args, kwargs]), *module.parameters()] if x.requires_grad]
        grads = tinytorch.autograd.grad(out, wanted, out, allow_unused=True) if out else None
        return [out, [*module.state_dict().values()], grads]

    for size in {-1} if called is None else {-1, *sizes([*called.args, *called.kwargs.values()])}:
        assert not reads_what_was_not_written(call), f"0 for {size}"


def fails(cls: Any, error: Any, training: bool) -> None:
    """Raise AssertionError unless a wrong use raises PyTorch's error."""
    sample = error.module_error_input

    def run(kind: Any, convert: Any) -> Exception | None:
        try:
            given = sample.constructor_input
            module = kind(*convert(given.args), **convert(given.kwargs)).train(training)
            if error.error_on.name == "FORWARD_ERROR":
                given = sample.forward_input
                module(*convert(given.args), **convert(given.kwargs))
        except Exception as raised:  # every class: it is compared
            return raised
        return None

    expected = run(cls, lambda value: value)
    if expected is None:
        return  # (some samples are wrong only on other devices)
    found = run(getattr(tinytorch.nn, cls.__name__), lambda value: ours(value, {}))
    assert type(found) is type(expected), f"{found!r} against {expected!r}"
    words = error.error_regex
    if re.search(words, str(expected)):  # (not PyTorch's own words in each mode)
        assert re.search(words, str(found)), f"{found} lacks {words}"


def main() -> None:
    warnings.simplefilter("ignore")
    from torch.testing._internal.common_modules import module_db

    for library in (torch, tinytorch):
        library.set_num_threads(1)
        library.set_default_dtype(library.float64)
    count = 0
    for info in module_db:
        cls = info.module_cls
        if not cls.__module__.startswith("torch.nn.modules") or cls.__name__ in ABSENT:
            continue
        for training in (True, False) if info.train_and_eval_differ else (True,):
            how = {"device": "cpu", "dtype": torch.float64, "training": training}
            samples = info.module_inputs_func(info, requires_grad=True, **how)
            step = max(1, len(samples) // MOST)
            work = [(do, sample) for sample in samples[::step] for do in (check, written)]
            if info.module_error_inputs_func is not None:
                wrong = info.module_error_inputs_func(info, requires_grad=False, **how)
                work += [(fails, sample) for sample in wrong]
            for do, sample in work:
                count += 1
                try:
                    do(cls, sample, training)
                except Exception as error:
                    described = getattr(sample, "desc", "")
                    text = f"{type(error).__name__}: {error}"
                    print(f"{cls.__name__} {do.__name__} {described} training={training}: {text}")
    print(f"{count} samples")


if __name__ == "__main__":
    main()
