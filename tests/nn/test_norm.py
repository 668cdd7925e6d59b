"""Normalisation by batches, instances and groups: layers, running statistics, errors as PyTorch's."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import tinytorch
from tests.same import same_as_pytorch


def numbers(torch: Any, *shape: int, seed: int = 0) -> Any:
    made = np.random.default_rng(seed).standard_normal(shape) * 2 + 1
    return torch.tensor(made, dtype=torch.float32)


def ran(torch: Any, make: Any, *shape: int) -> Any:
    """Return all that three steps of training and an evaluation show of a layer."""
    layer = make(torch.nn)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1) if list(layer.parameters()) else None
    seen = [repr(layer), list(layer.state_dict()), layer.state_dict()._metadata[""]]
    for step in range(3):
        x = numbers(torch, *shape, seed=step).requires_grad_()
        out = layer(x)
        (out * torch.linspace(-1, 2, out.numel()).reshape(out.shape)).sum().backward()
        seen += [out, x.grad, *[p.grad for p in layer.parameters()]]
        if optimizer is not None:
            optimizer.step()
            optimizer.zero_grad()
    seen += [layer.state_dict()]
    x = numbers(torch, *shape, seed=9).requires_grad_()
    out = layer.eval()(x)
    out.square().sum().backward()
    return [*seen, out, x.grad, *[p.grad for p in layer.parameters()]]


LAYERS = {
    "BatchNorm1d": (lambda nn: nn.BatchNorm1d(3), 5, 3),
    "BatchNorm1d on sequences": (lambda nn: nn.BatchNorm1d(3), 5, 3, 7),
    "BatchNorm2d": (lambda nn: nn.BatchNorm2d(3), 4, 3, 2, 3),
    "BatchNorm2d, many places": (lambda nn: nn.BatchNorm2d(3), 4, 3, 6, 7),
    "BatchNorm3d": (lambda nn: nn.BatchNorm3d(2), 2, 2, 2, 3, 2),
    "SyncBatchNorm": (lambda nn: nn.SyncBatchNorm(3), 4, 3, 2, 3),
    "mean of all": (lambda nn: nn.BatchNorm1d(3, momentum=None), 5, 3),
    "momentum": (lambda nn: nn.BatchNorm1d(3, 0.1, 0.5), 5, 3),
    "without parameters": (lambda nn: nn.BatchNorm1d(3, affine=False), 5, 3),
    "without bias": (lambda nn: nn.BatchNorm1d(3, bias=False), 5, 3),
    "without statistics": (lambda nn: nn.BatchNorm1d(3, track_running_stats=False), 5, 3),
    "InstanceNorm1d": (lambda nn: nn.InstanceNorm1d(3), 4, 3, 5),
    "InstanceNorm1d of one": (lambda nn: nn.InstanceNorm1d(3), 3, 5),
    "InstanceNorm2d": (lambda nn: nn.InstanceNorm2d(3, affine=True), 4, 3, 2, 3),
    "InstanceNorm3d": (lambda nn: nn.InstanceNorm3d(2, affine=True), 2, 2, 2, 3, 2),
    "InstanceNorm, statistics": (lambda nn: nn.InstanceNorm1d(3, track_running_stats=True), 4, 3, 5),
    "InstanceNorm, all": (lambda nn: nn.InstanceNorm2d(3, 0.1, 0.3, affine=True, track_running_stats=True), 4, 3, 6, 7),
    "GroupNorm": (lambda nn: nn.GroupNorm(2, 6), 4, 6, 5),
    "GroupNorm, one group": (lambda nn: nn.GroupNorm(1, 4), 4, 4, 6, 7),
    "GroupNorm, plain": (lambda nn: nn.GroupNorm(2, 4, 0.1, affine=False), 4, 4),
    "GroupNorm without bias": (lambda nn: nn.GroupNorm(4, 4, bias=False), 4, 4, 2, 2),
    "LocalResponseNorm": (lambda nn: nn.LocalResponseNorm(3, 0.1, 0.5, 2.0), 2, 5, 4),
    "LayerNorm": (lambda nn: nn.LayerNorm(5), 2, 3, 5),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name: str) -> None:
    make, *shape = LAYERS[name]
    same_as_pytorch(lambda torch: ran(torch, make, *shape), rtol=2e-4, atol=3e-5)


def loaded(torch: Any, layer: Any, state: Any, **options: Any) -> Any:
    result = layer.load_state_dict(state, **options)
    return [list(result), layer.state_dict()]


def of_version_1(torch: Any) -> Any:
    state = torch.nn.BatchNorm1d(2).state_dict()
    del state["num_batches_tracked"]
    state._metadata[""]["version"] = 1
    layer = torch.nn.BatchNorm1d(2)
    layer(numbers(torch, 4, 2))
    return loaded(torch, layer, state)


def of_version_2(torch: Any) -> Any:
    state = torch.nn.BatchNorm1d(2).state_dict()
    del state["num_batches_tracked"]
    return loaded(torch, torch.nn.BatchNorm1d(2), state)


def saved_with_statistics(torch: Any) -> Any:
    state = dict(torch.nn.InstanceNorm1d(2, track_running_stats=True).state_dict())
    return loaded(torch, torch.nn.InstanceNorm1d(2), state)


def converted(torch: Any) -> Any:
    nn = torch.nn
    model = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.BatchNorm1d(3, bias=False).eval()))
    sync = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    return [repr(sync), sync is model, list(sync.state_dict()), sync[1][0].training]


def running(torch: Any, dtype: str, of_parameters: str) -> Any:
    dtype, of_parameters = getattr(torch, dtype), getattr(torch, of_parameters)
    mean, var = torch.zeros(3, dtype=of_parameters), torch.ones(3, dtype=of_parameters)
    x = numbers(torch, 4, 3, 5).to(dtype).requires_grad_()
    weight = torch.full((3,), 2.0, dtype=of_parameters, requires_grad=True)
    out = torch.nn.functional.batch_norm(x, mean, var, weight, None, True)
    out.sum().backward()
    return [out.dtype, x.grad.dtype, weight.grad.float(), mean.float(), var.float(), out.detach().float()]


def twice(torch: Any, call: Any, *shape: int) -> Any:
    """Return gradients of a function of the gradients of a normalisation."""
    x = numbers(torch, *shape).double().requires_grad_()
    weight = numbers(torch, shape[1], seed=1).double().requires_grad_()
    bias = numbers(torch, shape[1], seed=2).double().requires_grad_()
    out = call(torch.nn.functional, x, weight, bias)
    first = torch.autograd.grad(out.pow(3).sum(), (x, weight, bias), create_graph=True)
    total = sum((each * each.cos()).sum() for each in first)
    return [*first, *torch.autograd.grad(total, (x, weight, bias))]


def through_evaluation(torch: Any) -> Any:
    """Two passes through one layer before backward: the statistics that moved are not an error."""
    layer = torch.nn.BatchNorm1d(3)
    x = numbers(torch, 4, 3).requires_grad_()
    first = layer(x)
    layer.eval()
    second = layer(x)
    layer.train()
    layer(x)
    layer.running_mean.data += 1
    (first.square() + second.square()).sum().backward()
    return [x.grad, layer.running_mean, layer.num_batches_tracked]


def lazy(torch: Any, name: str, *shape: int, **options: Any) -> Any:
    with warnings.catch_warnings(action="ignore"):
        layer = getattr(torch.nn, name)(**options)
    before = [repr(layer), list(layer.state_dict()), layer.num_features]
    x = numbers(torch, *shape)
    return [*before, layer(x), repr(layer), type(layer).__name__, layer.state_dict()]


def lazy_loaded(torch: Any) -> Any:
    with warnings.catch_warnings(action="ignore"):
        layer = torch.nn.LazyBatchNorm1d()
    layer.load_state_dict(torch.nn.BatchNorm1d(3).state_dict())
    return [list(layer.weight.shape), layer(numbers(torch, 4, 3)), repr(layer)]


PROGRAMS = {
    "lazy 1": lambda t: lazy(t, "LazyBatchNorm1d", 4, 3),
    "lazy 2": lambda t: lazy(t, "LazyBatchNorm2d", 4, 3, 2, 2, affine=False),
    "lazy 3": lambda t: lazy(t, "LazyBatchNorm3d", 4, 3, 2, 2, 2, track_running_stats=False),
    "lazy, bias": lambda t: lazy(t, "LazyBatchNorm1d", 4, 3, bias=False),
    "lazy, instances 1": lambda t: lazy(t, "LazyInstanceNorm1d", 4, 3, 5),
    "lazy, instances 2": lambda t: lazy(t, "LazyInstanceNorm2d", 4, 3, 5, 2, affine=False),
    "lazy, instances 3": lambda t: lazy(t, "LazyInstanceNorm3d", 4, 3, 5, 2, 2),
    "lazy, loaded": lazy_loaded,
    "version 1": of_version_1,
    "version 2": of_version_2,
    "instances with statistics": saved_with_statistics,
    "convert_sync_batchnorm": converted,
    "second, batch": lambda t: twice(t, lambda f, x, w, b: f.batch_norm(x, None, None, w, b, True), 4, 3, 5),
    "second, evaluation": lambda t: twice(
        t, lambda f, x, w, b: f.batch_norm(x, w.detach(), b.detach() ** 2, w, b), 4, 3, 5
    ),
    "second, groups": lambda t: twice(t, lambda f, x, w, b: f.group_norm(x, 2, w, b), 4, 4, 5),
    "second, instances": lambda t: twice(t, lambda f, x, w, b: f.instance_norm(x, None, None, w, b), 4, 3, 5),
    "second, neighbours": lambda t: twice(
        t, lambda f, x, w, b: f.local_response_norm(x, 3, 0.1) * w[:, None] + b[:, None], 2, 5, 4
    ),
    "moved statistics": through_evaluation,
    "native, training": lambda t: t.native_batch_norm(
        numbers(t, 4, 3), None, None, t.zeros(3), t.ones(3), True, 0.1, 1e-5
    ),
    "native, evaluation": lambda t: t.native_batch_norm(
        numbers(t, 4, 3), t.ones(3), t.ones(3), t.zeros(3), t.ones(3), False, 0.1, 1e-5
    ),
    "native, groups": lambda t: t.native_group_norm(numbers(t, 4, 6, 5), t.ones(6), None, 4, 6, 5, 3, 1e-5),
    "native, layer": lambda t: t.native_layer_norm(numbers(t, 4, 6), (6,), t.ones(6), None, 1e-5),
    "reset": lambda t: (lambda b: [b(numbers(t, 4, 2)).sum(), b.reset_parameters(), b.state_dict()])(
        t.nn.BatchNorm1d(2)
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    same_as_pytorch(PROGRAMS[name], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "dtypes",
    [
        ("float16", "float16"), ("float16", "float32"), ("bfloat16", "float32"), ("bfloat16", "bfloat16"),
        ("float64", "float64"), ("float64", "float32"), ("float32", "float64"), ("float16", "float64"),
    ],
)  # fmt: skip
def test_dtypes(dtypes: tuple[str, str]) -> None:
    slack = {"float16": 2e-2, "bfloat16": 1e-1}.get(dtypes[0], 1e-4)
    same_as_pytorch(lambda torch: running(torch, *dtypes), rtol=slack, atol=slack)


ERRORS = {
    "no statistics": lambda t, f, x: f.batch_norm(x, None, None),
    "one value": lambda t, f, x: f.batch_norm(t.ones(1, 3), None, None, training=True),
    "one value, top": lambda t, f, x: t.batch_norm(t.ones(1, 3), None, None, t.zeros(3), None, True, 0.1, 1e-5, False),
    "empty batch, gradients": lambda t, f, x: t.autograd.grad(
        f.batch_norm(t.ones(0, 3), None, None, w := t.ones(3, requires_grad=True), training=True).sum(), w
    ),
    "empty batch": lambda t, f, x: f.batch_norm(t.ones(0, 3), t.zeros(3), t.ones(3), training=True),
    "wrong mean": lambda t, f, x: f.batch_norm(x, t.zeros(4), t.ones(4)),
    "wrong weight": lambda t, f, x: f.batch_norm(x, t.zeros(3), t.ones(3), t.ones(4)),
    "wrong bias": lambda t, f, x: f.batch_norm(x, t.zeros(3), t.ones(3), None, t.ones(4)),
    "matrix as weight": lambda t, f, x: f.batch_norm(x, t.zeros(3), t.ones(3), t.ones(3, 1)),
    "integers": lambda t, f, x: f.batch_norm(x.long(), t.zeros(3), t.ones(3)),
    "only a mean": lambda t, f, x: f.batch_norm(x, t.zeros(3), None),
    "only a mean, training": lambda t, f, x: f.batch_norm(x, t.zeros(3), None, training=True),
    "no momentum": lambda t, f, x: f.batch_norm(x, t.zeros(3), t.ones(3), training=True, momentum=None),
    "groups": lambda t, f, x: f.group_norm(x, 2),
    "no groups": lambda t, f, x: f.group_norm(x, 0),
    "groups, weight": lambda t, f, x: f.group_norm(x, 3, t.ones(4)),
    "groups, bias": lambda t, f, x: f.group_norm(x, 3, None, t.ones(4)),
    "groups, integers": lambda t, f, x: f.group_norm(x.long(), 3),
    "groups, one value": lambda t, f, x: f.group_norm(t.ones(1, 3), 3),
    "groups, two values": lambda t, f, x: f.group_norm(t.ones(2, 3), 3),
    "groups, vector": lambda t, f, x: f.group_norm(t.ones(3), 3),
    "groups, dtype": lambda t, f, x: f.group_norm(x, 3, t.ones(3).double()),
    "groups, half": lambda t, f, x: f.group_norm(x.half(), 3, t.ones(3)).float().sum().isfinite(),
    "instances, only a mean": lambda t, f, x: f.instance_norm(x, t.zeros(3)),
    "instances, no statistics": lambda t, f, x: f.instance_norm(x, use_input_stats=False),
    "instances of one value": lambda t, f, x: f.instance_norm(t.ones(2, 3, 1)),
    "instances without places": lambda t, f, x: f.instance_norm(t.ones(2, 3)),
    "instances, weight": lambda t, f, x: f.instance_norm(x, weight=t.ones(4)),
    "instances, integers": lambda t, f, x: f.instance_norm(x.long()),
    "instances, empty": lambda t, f, x: f.instance_norm(t.ones(0, 3, 2)),
    "neighbours, matrix": lambda t, f, x: f.local_response_norm(t.ones(2, 3), 2),
    "neighbours, empty": lambda t, f, x: f.local_response_norm(t.ones(0, 3, 2), 2),
    "neighbours, size 0": lambda t, f, x: f.local_response_norm(x, 0),
    "GroupNorm": lambda t, f, x: t.nn.GroupNorm(3, 4),
    "CrossMapLRN2d": lambda t, f, x: t.nn.CrossMapLRN2d(2)(x),
    "BatchNorm1d, one example": lambda t, f, x: t.nn.BatchNorm1d(3)(x[:1]),
    "BatchNorm1d, vector": lambda t, f, x: t.nn.BatchNorm1d(2)(t.ones(2)),
    "BatchNorm1d, image": lambda t, f, x: t.nn.BatchNorm1d(2)(t.ones(2, 2, 2, 2)),
    "BatchNorm2d, matrix": lambda t, f, x: t.nn.BatchNorm2d(2)(t.ones(2, 2)),
    "BatchNorm3d, image": lambda t, f, x: t.nn.BatchNorm3d(2)(t.ones(2, 2, 2, 2)),
    "SyncBatchNorm, vector": lambda t, f, x: t.nn.SyncBatchNorm(2)(t.ones(2)),
    "SyncBatchNorm, no channels": lambda t, f, x: t.nn.SyncBatchNorm(2)(t.ones(2, 0)),
    "channels": lambda t, f, x: t.nn.BatchNorm1d(4)(x),
    "InstanceNorm1d, image": lambda t, f, x: t.nn.InstanceNorm1d(2)(t.ones(2, 2, 2, 2)),
    "InstanceNorm2d, matrix": lambda t, f, x: t.nn.InstanceNorm2d(2)(t.ones(2, 2)),
    "InstanceNorm, channels": lambda t, f, x: t.nn.InstanceNorm1d(4, affine=True)(x),
    "InstanceNorm, channels that do not matter": lambda t, f, x: t.nn.InstanceNorm1d(4)(x),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_and_edges(name: str) -> None:
    program = ERRORS[name]
    same_as_pytorch(lambda t: program(t, t.nn.functional, numbers(t, 2, 3, 4)), 1e-4, 1e-5)


def test_cross_map_lrn() -> None:
    """With few channels; with more, PyTorch's running sum keeps the first one for ever (and its gradient differs)."""
    for size, channels in ((3, 2), (5, 3), (4, 2)):
        same_as_pytorch(lambda t, *s: t.nn.CrossMapLRN2d(size, 0.1)(numbers(t, 2, channels, 3, 2)))  # noqa: B023
    x = numbers(tinytorch, 2, 6, 3, 2)
    found = tinytorch.nn.CrossMapLRN2d(3, 0.1, 0.5, 2)(x).numpy()
    squares = np.pad(x.numpy() ** 2, [(0, 0), (1, 1), (0, 0), (0, 0)])
    total = squares[:, :-2] + squares[:, 1:-1] + squares[:, 2:]
    np.testing.assert_allclose(found, x.numpy() / np.sqrt(2 + 0.1 / 3 * total), rtol=1e-5)


def test_statistics_of_numbers_far_from_0_are_right() -> None:
    x = (np.random.default_rng(0).standard_normal((8, 4, 9, 9)) + 1000).astype(np.float32)
    out, mean, scale = tinytorch.native_batch_norm(tinytorch.tensor(x), None, None, None, None, True, 0.1, 0.0)
    exact = x.astype(np.float64)
    np.testing.assert_allclose(mean.numpy(), exact.mean((0, 2, 3)), rtol=1e-6)
    np.testing.assert_allclose(1 / scale.numpy() ** 2, exact.var((0, 2, 3)), rtol=1e-4)
    np.testing.assert_allclose(out.numpy().std((0, 2, 3)), 1, rtol=1e-4)


@pytest.mark.parametrize("shape", [(70, 8, 600), (600, 300, 4), (900, 400), (2, 700, 300)])
def test_large_inputs_in_blocks(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    x, g = (rng.standard_normal(shape) for _ in range(2))
    weight = rng.standard_normal(shape[1])
    found = []
    for normalised in (
        lambda x, w: tinytorch.nn.functional.batch_norm(x, None, None, w, None, True),
        lambda x, w: tinytorch.nn.functional.group_norm(x, 4, w),
    ):
        for create_graph in (False, True):  # by the kernels, and in Tensor code
            leaf = tinytorch.tensor(x, requires_grad=True)
            w = tinytorch.tensor(weight, requires_grad=True)
            out = normalised(leaf, w)
            grads = tinytorch.autograd.grad(out, (leaf, w), tinytorch.tensor(g), create_graph=create_graph)
            found.append([each.detach().numpy() for each in grads])
    for quick, general in (found[:2], found[2:]):
        for mine, other in zip(quick, general, strict=True):
            np.testing.assert_allclose(mine, other, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("shape", [(1100, 500), (3, 70000, 3), (1, 600000)])
def test_rows_of_large_layers_in_blocks(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    x, g = (rng.standard_normal(shape) for _ in range(2))
    vectors = [rng.standard_normal(shape[-1:]) for _ in range(2)]
    found = []
    for create_graph in (False, True):  # by the kernels, and in Tensor code
        leaves = [tinytorch.tensor(each, requires_grad=True) for each in (x, *vectors)]
        out = tinytorch.nn.functional.layer_norm(leaves[0], shape[-1:], *leaves[1:])
        grads = tinytorch.autograd.grad(out, leaves, tinytorch.tensor(g), create_graph=create_graph)
        found.append([each.detach().numpy() for each in (out, *grads)])
    for quick, general in zip(*found, strict=True):
        np.testing.assert_allclose(quick, general, rtol=1e-7, atol=1e-9)
    exact = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(found[0][0], exact * vectors[0] + vectors[1], rtol=1e-9, atol=1e-9)


def test_gradients_of_wide_parameters_do_not_overflow_in_half() -> None:
    """Under autocasting the parameters of a LayerNorm are float32, and so are the sums that are their gradients."""

    def program(torch: Any) -> Any:
        x = torch.arange(16.0).reshape(4, 4).half().requires_grad_()
        weight, bias = torch.ones(4, requires_grad=True), torch.zeros(4, requires_grad=True)
        y = torch.nn.functional.layer_norm(x, (4,), weight, bias)
        y.backward(torch.full((4, 4), 30000.0).half())
        return y, bias.grad  # (the rows of the weight PyTorch adds up in half)

    same_as_pytorch(program, rtol=2e-3)
