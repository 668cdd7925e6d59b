"""`linear_cross_entropy`, its module and its options, against PyTorch's: values, gradients, errors, memory."""

from __future__ import annotations

import tracemalloc
import warnings
from typing import Any

import numpy as np
import pytest

import tinytorch
from tests import oracle

torch = oracle.module()

OPTIONS: dict[str, dict[str, Any] | None] = {
    "at once": None, "auto": {}, "one chunk": {"chunking_method": None}, "rows": {"batch_chunk_size": 3},
    "aspect": {"chunking_method": "aspect_ratio"}, "small": {"chunking_method": "aspect_ratio:8"},
    "retained": {"allow_retain_graph": True, "acc_policy": "accurate"},
}  # fmt: skip
SAMPLES, FEATURES, CLASSES = 11, 4, 17


def both(function: Any) -> list[Any]:
    """Return what `function(library)` returns, or the class and the first words of its error, of both libraries."""
    results = []
    for library in (tinytorch, torch):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            try:
                results.append((function(library), [str(each.message) for each in seen]))
            except Exception as error:
                results.append((type(error), str(error).split(" (")[0]))
    return results


def inputs(library: Any, dtype: str, single: bool = False) -> tuple[Any, ...]:
    """Return input, weights, bias, target and class weights: the same numbers as tensors of a library."""
    draw = np.random.default_rng(0)
    shapes = [(SAMPLES, FEATURES)[single:], (CLASSES, FEATURES), (CLASSES,)]
    tensors = [library.tensor(draw.normal(size=shape).tolist()).to(getattr(library, dtype)) for shape in shapes]
    target = draw.integers(0, CLASSES, (SAMPLES,)).tolist()
    target[2] = -100
    weight = library.tensor(draw.uniform(0.5, 2, CLASSES).tolist()).to(getattr(library, dtype))
    return (*[each.requires_grad_() for each in tensors], library.tensor(3 if single else target), weight)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("with_weight", [False, True])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", OPTIONS)
def test_values_and_gradients(name: str, reduction: str, with_weight: bool, with_bias: bool, dtype: str) -> None:
    for single in (False, True):
        for ignored in (None, 5):

            def run(library: Any) -> Any:
                x, matrix, bias, target, weight = inputs(library, dtype, single)  # noqa: B023
                if ignored is not None and not single:  # noqa: B023
                    target[2], target[4] = ignored, ignored  # noqa: B023
                given = OPTIONS[name]
                loss = library.nn.functional.linear_cross_entropy(
                    x, matrix, target, linear_bias=bias if with_bias else None, weight=weight if with_weight else None,
                    reduction=reduction, ignore_index=ignored,  # noqa: B023
                    options=None if given is None else library.nn.LinearCrossEntropyOptions(**given),
                )  # fmt: skip
                (loss * 2).sum().backward()
                found = [loss, x.grad, matrix.grad, *([bias.grad] if with_bias else [])]
                return [(str(each.dtype), np.array(each.detach().double().tolist())) for each in found]

            ours, theirs = both(run)
            tolerance = {"float32": 2e-5, "float64": 1e-12, "bfloat16": 0.1}[dtype]
            for (kind, mine), (expected_kind, expected) in zip(ours[0], theirs[0], strict=True):
                assert kind == expected_kind and mine.shape == expected.shape
                np.testing.assert_allclose(mine, expected, rtol=tolerance, atol=tolerance)


def test_the_chunks_of_options_are_pytorchs() -> None:
    for given in OPTIONS.values():
        if given is None:
            continue
        for samples, features, classes in ((11, 4, 17), (4096, 512, 32000), (1, 3, 2), (100, 64, 10), (7, 7, 7)):
            for dtype in ("float32", "bfloat16"):
                ours = tinytorch.nn.LinearCrossEntropyOptions(**given)
                theirs = torch.nn.LinearCrossEntropyOptions(**given)._adjust(
                    samples, features, classes, getattr(torch, dtype), torch.device("cpu")
                )
                assert ours._rows(samples, features, classes, getattr(tinytorch, dtype)) == theirs.batch_chunk_size
                assert str(ours._kind(getattr(tinytorch, dtype))) == str(theirs.acc_dtype) or given.get("acc_policy")


@pytest.mark.parametrize(
    "given",
    [
        {"acc_policy": "fast"}, {"chunking_method": "rows"}, {"chunking_method": "aspect_ratio:0"},
        {"batch_chunk_size": 0}, {"batch_chunk_size": 2.5}, {"chunking_method": "aspect_ratio:x"},
    ],
    ids=str,
)  # fmt: skip
def test_wrong_options(given: dict[str, Any]) -> None:
    ours, theirs = both(lambda library: library.nn.LinearCrossEntropyOptions(**given))
    assert ours == theirs and ours[0] is ValueError
    assert repr(tinytorch.nn.LinearCrossEntropyOptions()) == repr(torch.nn.LinearCrossEntropyOptions())


def call(library: Any, x: Any, matrix: Any, target: Any, **options: Any) -> Any:
    """Call the function with zeros of these shapes; a target that is not a shape is itself."""
    kinds = {key: library.zeros(*value) if isinstance(value, tuple) else value for key, value in options.items()}
    if "options" in kinds:
        kinds["options"] = library.nn.LinearCrossEntropyOptions(**kinds["options"])
    target = library.zeros(*target) if isinstance(target, tuple) else library.tensor(target)
    result = library.nn.functional.linear_cross_entropy(library.zeros(*x), library.zeros(*matrix), target, **kinds)
    return np.array(result.tolist()).round(4).tolist()


@pytest.mark.parametrize(
    "arguments",
    [
        ((2, 3, 4), (5, 4), [0, 1]), ((2, 4), (4,), [0, 1]), ((2, 4), (5, 3), [0, 1]), ((4,), (5, 2, 4), [0, 1]),
        ((2, 4), (5, 3, 4), [[0, 1, 2], [3, 4, 0]]), ((2, 4), (5, 4), (2, 5)), ((2, 4), (5, 3, 4), (2, 5, 3)),
    ],
    ids=str,
)  # fmt: skip
def test_shapes(arguments: tuple[Any, ...]) -> None:
    x, matrix, target = arguments
    for more in (
        {}, {"linear_bias": (3,)}, {"linear_bias": matrix[:-1]}, {"ignore_index": 1}, {"label_smoothing": 0.1},
        {"options": {}}, {"options": {}, "label_smoothing": 0.1},
    ):  # fmt: skip
        ours, theirs = both(lambda library: call(library, x, matrix, target, **more))  # noqa: B023
        assert ours == theirs


def test_classes_out_of_range_and_batches_that_differ() -> None:
    for options in ({}, {"options": {"batch_chunk_size": 1}}):
        with pytest.raises(IndexError, match="Target 5 is out of bounds"):
            call(tinytorch, (2, 4), (5, 4), [0, 5], **options)
        with pytest.raises(ValueError, match="to match target batch_size"):
            call(tinytorch, (2, 4), (5, 4), [0, 1, 2], **options)
    for reduction in ("mean", "sum", "none"):
        ours, theirs = both(
            lambda m: call(m, (2, 4), (5, 4), [-100, -100], reduction=reduction, options={})  # noqa: B023
        )
        assert str(ours) == str(theirs)


def test_graphs() -> None:
    options = tinytorch.nn.LinearCrossEntropyOptions(batch_chunk_size=4)
    x, matrix, _, target, _ = inputs(tinytorch, "float64")
    for reduction in ("mean", "none"):
        loss = tinytorch.nn.functional.linear_cross_entropy(
            x, matrix, target, reduction=reduction, options=options
        ).sum()
        first = tinytorch.autograd.grad(loss, (x, matrix), retain_graph=True)
        second = tinytorch.autograd.grad(loss, (x, matrix), create_graph=True)
        assert all(a.equal(b) for a, b in zip(first, second, strict=True))
        with pytest.raises(RuntimeError, match="have no derivatives"):
            second[0].sum().backward()
    with tinytorch.no_grad():
        assert not tinytorch.nn.functional.linear_cross_entropy(x, matrix, target, options=options).requires_grad
    far = tinytorch.tensor([[40.0]], dtype=tinytorch.float64, requires_grad=True)  # where 1 - p has lost its digits
    loss = tinytorch.nn.functional.linear_cross_entropy(far, far.new_ones(2, 1).triu(), target[:1] * 0, options=options)
    assert tinytorch.autograd.grad(loss, far)[0].item() == pytest.approx(-np.exp(-40), rel=1e-12, abs=0)
    loss = tinytorch.nn.functional.linear_cross_entropy(x, matrix, target, options=options)
    with tinytorch.no_grad():
        matrix.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
    meta = tinytorch.nn.functional.linear_cross_entropy(
        x.to("meta"), matrix.to("meta"), target.to("meta"), reduction="none", options=options
    )
    assert meta.is_meta and meta.shape == target.shape


@pytest.mark.parametrize("options", [{}, {"bias": True}, {"out_features": (2, 3)}, {"label_smoothing": 0.1}], ids=str)
def test_module(options: dict[str, Any]) -> None:
    def run(library: Any) -> Any:
        library.manual_seed(0)
        module = library.nn.LinearCrossEntropyLoss(FEATURES, CLASSES, weight=library.ones(CLASSES), **options)
        x = inputs(library, "float32")[0]
        places = options.get("out_features", ())
        module(x, library.ones(SAMPLES, *places, dtype=library.int64)).backward()
        state = {key: value.tolist() for key, value in module.state_dict().items()}
        return repr(module), state, np.array(module.linear.weight.grad.tolist()), np.array(x.grad.tolist())

    ours, theirs = (each[0] for each in both(run))
    assert ours[:2] == theirs[:2]
    np.testing.assert_allclose(ours[2], theirs[2], atol=1e-6)
    np.testing.assert_allclose(ours[3], theirs[3], atol=1e-6)


def test_errors_of_the_module() -> None:
    for options in ({"weight": (3,)}, {"label_smoothing": 2.0}):

        def run(library: Any) -> Any:
            given = {k: library.ones(*v) if isinstance(v, tuple) else v for k, v in options.items()}  # noqa: B023
            return library.nn.LinearCrossEntropyLoss(4, 5, **given)

        ours, theirs = both(run)
        assert ours == theirs and ours[0] is RuntimeError


def test_chunks_need_less_memory() -> None:
    samples, features, classes = 512, 32, 4000
    draw = np.random.default_rng(0)
    x = tinytorch.tensor(draw.normal(size=(samples, features)), dtype=tinytorch.float32, requires_grad=True)
    matrix = tinytorch.tensor(draw.normal(size=(classes, features)), dtype=tinytorch.float32, requires_grad=True)
    target, peaks = tinytorch.tensor(draw.integers(0, classes, samples)), []
    for options in (None, tinytorch.nn.LinearCrossEntropyOptions()):
        tracemalloc.start()
        tinytorch.nn.functional.linear_cross_entropy(x, matrix, target, options=options).backward()
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        x.grad = matrix.grad = None
    assert peaks[1] < peaks[0] / 3
