"""Parametrizations, norms of weights, pruning, fused layers: states, trajectories and errors as PyTorch's."""

from __future__ import annotations

import copy
import pickle
import warnings
from typing import Any

import numpy as np
import pytest

from tests.same import same_as_pytorch


def numbers(torch: Any, *shape: int, seed: int = 0) -> Any:
    made = np.random.default_rng(seed).standard_normal(shape)
    return torch.tensor(made, dtype=torch.float32)


def trained(torch: Any, make: Any, after: Any = None, width: int = 4) -> Any:
    """Return states and outputs while a wrapped layer trains, and after it is unwrapped."""
    utils = __import__(f"{torch.__name__}.nn.utils", fromlist=["prune"])
    __import__(f"{torch.__name__}.nn.utils.prune")
    layer = make(torch.nn, utils)
    seen = [repr(layer), layer.state_dict(), [name for name, _ in layer.named_parameters()]]
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    for step in range(3):
        optimizer.zero_grad()
        out = layer(numbers(torch, 5, width, seed=step))
        out.square().mean().backward()
        seen += [out, [p.grad for p in layer.parameters()]]
        optimizer.step()
    layer.eval()
    seen += [layer(numbers(torch, 2, width)), layer.state_dict()]
    if after is not None:
        seen += [repr(after(utils, layer)), layer.state_dict(), layer(numbers(torch, 2, width))]
        seen += [sorted(name for name, _ in layer.named_parameters())]
    return seen


def quiet(call: Any) -> Any:
    def run(nn: Any, utils: Any) -> Any:
        with warnings.catch_warnings(action="ignore"):
            return call(nn, utils)

    return run


def unparametrized(keep: bool = True) -> Any:
    return lambda utils, layer: utils.parametrize.remove_parametrizations(layer, "weight", keep)


LAYERS = {
    "weight_norm": (lambda nn, u: u.parametrizations.weight_norm(nn.Linear(4, 3)), unparametrized()),
    "weight_norm, dim 1": (lambda nn, u: u.parametrizations.weight_norm(nn.Linear(4, 3), dim=1), unparametrized()),
    "weight_norm, all": (lambda nn, u: u.parametrizations.weight_norm(nn.Linear(4, 3), dim=None), unparametrized()),
    "spectral_norm": (lambda nn, u: u.parametrizations.spectral_norm(nn.Linear(4, 3)), unparametrized()),
    "spectral_norm, kept": (
        lambda nn, u: u.parametrizations.spectral_norm(nn.Linear(4, 3), "weight", 3, dim=1),
        unparametrized(False),
    ),
    "spectral_norm of a bias": (lambda nn, u: u.parametrizations.spectral_norm(nn.Linear(4, 3), "bias"), None),
    "old weight_norm": (
        quiet(lambda nn, u: u.weight_norm(nn.Linear(4, 3))),
        lambda u, layer: u.remove_weight_norm(layer),
    ),
    "old weight_norm, all": (quiet(lambda nn, u: u.weight_norm(nn.Linear(4, 3), dim=None)), None),
    "old spectral_norm": (
        lambda nn, u: u.spectral_norm(nn.Linear(4, 3), n_power_iterations=2),
        lambda u, layer: u.remove_spectral_norm(layer),
    ),
    "orthogonal, exponential": (lambda nn, u: u.parametrizations.orthogonal(nn.Linear(4, 4)), unparametrized()),
    "orthogonal, cayley": (
        lambda nn, u: u.parametrizations.orthogonal(nn.Linear(4, 4), orthogonal_map="cayley"),
        unparametrized(),
    ),
    "orthogonal, wide, free": (
        lambda nn, u: u.parametrizations.orthogonal(
            nn.Linear(4, 3), orthogonal_map="householder", use_trivialization=False
        ),
        unparametrized(),
    ),
    "pruned": (
        lambda nn, u: u.prune.l1_unstructured(nn.Linear(4, 3), "weight", 0.3),
        lambda u, layer: u.prune.remove(layer, "weight"),
    ),
    "pruned at random": (lambda nn, u: u.prune.random_unstructured(nn.Linear(4, 3), "weight", 5), None),
    "pruned by rows": (lambda nn, u: u.prune.ln_structured(nn.Linear(4, 3), "weight", 1, 2, 0), None),
    "pruned by columns at random": (lambda nn, u: u.prune.random_structured(nn.Linear(4, 3), "weight", 0.5, 1), None),
    "pruned twice": (
        lambda nn, u: u.prune.l1_unstructured(u.prune.ln_structured(nn.Linear(4, 3), "weight", 1, 1, 1), "weight", 3),
        lambda u, layer: u.prune.remove(layer, "weight"),
    ),
    "not pruned": (lambda nn, u: u.prune.identity(nn.Linear(4, 3), "bias"), None),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name: str) -> None:
    make, after = LAYERS[name]
    same_as_pytorch(lambda torch: trained(torch, make, after), rtol=1e-3, atol=1e-5)


def kinds(torch: Any) -> Any:
    nn = torch.nn

    class Symmetric(nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return x.triu() + x.triu(1).mT

        def right_inverse(self, x: Any) -> Any:
            return x.triu()

    class Half(nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return x * 0.5

    class Wrong(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, result: Any, inverse: Any = None) -> None:
            super().__init__()
            self.result = result
            if inverse is not None:
                self.right_inverse = inverse

        def forward(self, *x: Any) -> Any:
            return self.result(*x)

    return Symmetric, Half, Wrong


def chained(torch: Any) -> Any:
    symmetric, half, _ = kinds(torch)
    parametrize = torch.nn.utils.parametrize
    layer = torch.nn.Linear(3, 3)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    parametrize.register_parametrization(layer, "weight", symmetric())
    seen = [repr(layer), layer.weight, list(layer.state_dict()), parametrize.is_parametrized(layer)]
    layer.weight = numbers(torch, 3, 3)
    layer(numbers(torch, 2, 3)).sum().backward()
    optimizer.step()
    seen += [layer.weight, layer.parametrizations.weight.original.grad]
    parametrize.register_parametrization(layer, "weight", half())
    with parametrize.cached():
        seen += [layer.weight is layer.weight]
    seen += [layer.weight is layer.weight, repr(layer), repr(copy.deepcopy(layer)), layer.weight]
    seen += [parametrize.type_before_parametrizations(layer).__name__]
    parametrize.register_parametrization(layer, "bias", half())
    parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)
    seen += [repr(layer), layer.weight]
    parametrize.remove_parametrizations(layer, "bias")
    return [*seen, repr(layer), sorted(layer.state_dict()), layer.bias]


def wrong(result: Any, inverse: Any = None) -> Any:
    def program(torch: Any) -> Any:
        made = kinds(torch)[2](result, inverse)
        layer = torch.nn.utils.parametrize.register_parametrization(torch.nn.Linear(2, 2), "weight", made)
        return list(layer.state_dict())

    return program


def fused(torch: Any, training: bool = False, size: int = 3) -> Any:
    linear, norm = torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(size)
    norm.running_mean.copy_(numbers(torch, size))
    norm.running_var.copy_(numbers(torch, size).abs() + 0.5)
    linear.train(training)
    norm.eval()
    made = torch.nn.utils.fuse_linear_bn_eval(linear, norm)
    return [made.state_dict(), made(numbers(torch, 4, 2)), norm(linear(numbers(torch, 4, 2)))]


def fused_convolution(torch: Any) -> Any:
    conv, norm = torch.nn.Conv2d(2, 3, 2, bias=False).eval(), torch.nn.BatchNorm2d(3).eval()
    norm.running_mean.copy_(numbers(torch, 3))
    made = torch.nn.utils.fuse_conv_bn_eval(conv, norm)
    return [made.state_dict(), made(numbers(torch, 1, 2, 4, 4))]


def global_pruning(torch: Any) -> Any:
    prune = __import__(f"{torch.__name__}.nn.utils.prune", fromlist=["prune"])
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))
    pairs = [(model[0], "weight"), (model[1], "weight")]
    prune.global_unstructured(pairs, prune.L1Unstructured, amount=0.4)
    seen = [model.state_dict(), prune.is_pruned(model)]
    prune.custom_from_mask(model[0], "bias", torch.tensor([1.0, 0, 1, 0]))
    prune.global_unstructured(pairs, prune.L1Unstructured, amount=2)
    return [*seen, model.state_dict(), len(model[0]._forward_pre_hooks)]


def with_prune(call: Any) -> Any:
    return lambda t: call(t, __import__(f"{t.__name__}.nn.utils.prune", fromlist=["prune"]))


def old_state(torch: Any) -> Any:
    with warnings.catch_warnings(action="ignore"):
        state = torch.nn.utils.weight_norm(torch.nn.Linear(2, 3)).state_dict()
    layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 3))
    return [list(layer.load_state_dict(state)), layer.state_dict()]


def reloaded_spectrum(torch: Any) -> Any:
    """A state from before version 1: it held the divided weight, and no v."""
    layer = torch.nn.utils.spectral_norm(torch.nn.Linear(4, 3))
    layer(numbers(torch, 2, 4))
    state = layer.state_dict()
    del state["weight_v"]
    state["weight"] = layer.weight.detach().clone()
    del state._metadata[""]["spectral_norm"]
    other = torch.nn.utils.spectral_norm(torch.nn.Linear(4, 3))
    return [list(other.load_state_dict(state)), other.eval()(numbers(torch, 2, 4))]


PROGRAMS = {
    "chained": chained,
    "no tensor": lambda t: t.nn.utils.parametrize.register_parametrization(t.nn.Linear(2, 2), "none", kinds(t)[1]()),
    "dtype": wrong(lambda x: x.double()),
    "shape": wrong(lambda x: x[:1]),
    "number": wrong(lambda x: 3),
    "inverse": wrong(lambda x: x, lambda x: 3),
    "two": wrong(lambda x, y: x + y, lambda x: (x, x * 0)),
    "two, wrong": wrong(lambda x, y: x + y, lambda x: (x, 3)),
    "not parametrized": lambda t: t.nn.utils.parametrize.remove_parametrizations(t.nn.Linear(2, 2), "weight"),
    "no inverse": lambda t: setattr(
        t.nn.utils.parametrize.register_parametrization(t.nn.Linear(2, 2), "weight", kinds(t)[1]()),
        "weight",
        t.ones(2, 2),
    ),
    "pickle": lambda t: pickle.dumps(t.nn.utils.parametrizations.weight_norm(t.nn.Linear(2, 2))),
    "old state": old_state,
    "old spectrum": reloaded_spectrum,
    "orthogonal, name": lambda t: t.nn.utils.parametrizations.orthogonal(t.nn.Linear(3, 3), "x"),
    "orthogonal, vector": lambda t: t.nn.utils.parametrizations.orthogonal(t.nn.Linear(3, 3), "bias"),
    "orthogonal, map": lambda t: t.nn.utils.parametrizations.orthogonal(t.nn.Linear(3, 3), orthogonal_map="no"),
    "no weight_norm": lambda t: t.nn.utils.remove_weight_norm(t.nn.Linear(2, 2)),
    "no spectral_norm": lambda t: t.nn.utils.remove_spectral_norm(t.nn.Linear(2, 2)),
    "spectral_norm twice": lambda t: t.nn.utils.spectral_norm(t.nn.utils.spectral_norm(t.nn.Linear(2, 2))),
    "spectral_norm, iterations": lambda t: t.nn.utils.spectral_norm(t.nn.Linear(2, 2), n_power_iterations=0),
    "weight_norm warns": lambda t: repr(t.nn.utils.weight_norm(t.nn.Linear(2, 2))),
    "fused": fused,
    "fused in training": lambda t: fused(t, True),
    "fused, sizes": lambda t: fused(t, size=2),
    "fused convolution": fused_convolution,
    "skip_init": lambda t: (lambda made: [repr(made), *made.weight.shape])(t.nn.utils.skip_init(t.nn.Linear, 2, 3)),
    "skip_init, seed": lambda t: [t.nn.utils.skip_init(t.nn.Linear, 2, 3) is None, t.rand(2)],
    "skip_init, filled": lambda t: (
        t.use_deterministic_algorithms(True),
        t.nn.utils.skip_init(t.nn.Linear, 2, 3).weight,
        t.use_deterministic_algorithms(False),
    )[1],
    "skip_init, no device": lambda t: t.nn.utils.skip_init(t.nn.ReLU),
    "global": global_pruning,
    "prune nothing": with_prune(lambda t, p: p.remove(t.nn.Linear(2, 2), "weight")),
    "prune one": with_prune(lambda t, p: p.L1Unstructured(2).prune(t.tensor([3.0, -1.0, 2.0]))),
    **{
        f"amount {amount}": with_prune(
            lambda t, p, amount=amount: p.l1_unstructured(t.nn.Linear(3, 2), "weight", amount)
        )
        for amount in (1.5, -1, 100, "x")
    },
    "structured vector": with_prune(lambda t, p: p.ln_structured(t.nn.Linear(3, 2), "bias", 1, 2, 0)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    same_as_pytorch(PROGRAMS[name], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("rows", "columns"), [(5, 3), (3, 5)])
def test_orthogonal_weights_that_are_not_square(rows: int, columns: int) -> None:
    """The rest of the basis is drawn, from the same numbers."""

    def program(torch: Any) -> Any:
        torch.manual_seed(0)
        layer = torch.nn.utils.parametrizations.orthogonal(torch.nn.Linear(columns, rows))
        base = layer.parametrizations.weight[0].base
        weight = layer.weight
        small = weight.mT @ weight if rows > columns else weight @ weight.mT
        return [list(layer.state_dict()), weight, small, base, torch.rand(3)]

    same_as_pytorch(program, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("name", [None, "cayley", "matrix_exp", "householder"])
@pytest.mark.parametrize("shape", [(3, 3), (3, 5), (5, 3)])
def test_complex_weights_become_unitary(shape: tuple[int, int], name: str | None) -> None:
    def program(torch: Any) -> Any:
        layer = torch.nn.Linear(*shape, dtype=torch.complex128)
        torch.nn.utils.parametrizations.orthogonal(layer, orthogonal_map=name)
        layer.weight.abs().pow(3).sum().backward()
        return layer.weight.detach().resolve_conj(), layer.parametrizations.weight.original.grad.resolve_conj()

    same_as_pytorch(program, rtol=1e-7, atol=1e-7)
    same_as_pytorch(lambda torch: torch.nn.init.orthogonal_(torch.empty(*shape, dtype=torch.complex64)))
