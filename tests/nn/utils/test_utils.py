"""`nn.utils`: clipping gradients, and parameters as a vector. Compared with PyTorch."""

from __future__ import annotations

import importlib
import math
from typing import Any

import pytest

import tinytorch
from tests.same import same_as_pytorch
from tests.same import same_to_the_word as check


def trained(torch: Any, *, infinite: bool = False) -> Any:
    """Return parameters of which one has no gradient."""
    params = [torch.nn.Parameter(torch.zeros(size)) for size in (3, 2, 1)]
    params[0].grad = torch.tensor([3.0, -4.0, 0.0])
    params[1].grad = torch.tensor([math.inf if infinite else 12.0, 0.5])
    return params


def clip_norm(*args: Any, infinite: bool = False, **options: Any) -> Any:
    def program(torch: Any) -> Any:
        params = trained(torch, infinite=infinite)
        total = torch.nn.utils.clip_grad_norm_(params, *args, **options)
        return [total, [p.grad for p in params]]

    return program


def clip_value(*args: Any) -> Any:
    def program(torch: Any) -> Any:
        params = trained(torch)
        return [torch.nn.utils.clip_grad_value_(params, *args), [p.grad for p in params]]

    return program


def clip_one(torch: Any) -> Any:
    params = trained(torch)
    total = torch.nn.utils.clip_grad_norm_(params[0], 1)
    torch.nn.utils.clip_grad_value_(params[1], 0.25)
    return [total, params[0].grad, params[1].grad]


def clip_kept_in_place(torch: Any) -> Any:
    params = trained(torch)
    grad = params[0].grad
    torch.nn.utils.clip_grad_norm_(iter(params), 1.0)
    return [params[0].grad is grad, grad.requires_grad]


def clip_without_gradients(torch: Any) -> Any:
    params = [torch.nn.Parameter(torch.zeros(2))]
    total = torch.nn.utils.clip_grad_norm_(params, 1.0)
    return [total, torch.nn.utils.clip_grad_norm_([], 1.0)]


def clip_old_name(torch: Any) -> Any:
    return torch.nn.utils.clip_grad_norm(trained(torch), 1.0)


def two_steps(torch: Any) -> Any:
    params = trained(torch)
    total = torch.nn.utils.get_total_norm([p.grad for p in params if p.grad is not None], 1)
    torch.nn.utils.clip_grads_with_norm_(params, 2.0, total)
    return [total, [p.grad for p in params], torch.nn.utils.get_total_norm(params[0].grad)]


def vector(torch: Any) -> Any:
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 2)
    v = torch.nn.utils.parameters_to_vector(model.parameters())
    (v * v).sum().backward()
    new = torch.arange(8.0)
    weight = model.weight
    torch.nn.utils.vector_to_parameters(new, model.parameters())
    new[0] = 100.0  # the memory is shared
    return [v, weight.grad, weight is model.weight, model.weight, model.bias]


PROGRAMS = {
    "norm": clip_norm(1.0),
    "norm, within": clip_norm(100.0),
    "norm 1": clip_norm(1.0, 1),
    "norm 3": clip_norm(1.0, norm_type=3.0),
    "norm inf": clip_norm(1, math.inf),
    "norm 'inf'": clip_norm(1, "inf"),
    "norm 0": clip_norm(1.0, 0),
    "infinite gradient": clip_norm(1.0, infinite=True),
    "infinite gradient is an error": clip_norm(1.0, error_if_nonfinite=True, infinite=True),
    "foreach": clip_norm(1.0, foreach=False),
    "value": clip_value(0.75),
    "value by text": clip_value("0.75"),
    "one parameter": clip_one,
    "in place": clip_kept_in_place,
    "no gradients": clip_without_gradients,
    "empty generator": lambda t: t.nn.utils.clip_grad_norm_((p for p in ()), 1.0),
    "old name": clip_old_name,
    "two steps": two_steps,
    "vector": vector,
    "vector of nothing": lambda t: t.nn.utils.vector_to_parameters([1.0], []),
    "vector too short": lambda t: t.nn.utils.vector_to_parameters(t.ones(1), t.nn.Linear(2, 2).parameters()),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_same_as_pytorch(name: str) -> None:
    check(PROGRAMS[name])


def test_parameters_without_gradients_have_nothing_to_clamp() -> None:
    parameter = tinytorch.nn.Parameter(tinytorch.zeros(2))
    tinytorch.nn.utils.clip_grad_value_([parameter], 1.0)
    assert parameter.grad is None


def test_gradients_of_several_dtypes_are_clipped_together() -> None:
    params = [tinytorch.nn.Parameter(tinytorch.zeros(1, dtype=d)) for d in (tinytorch.float32, tinytorch.float64)]
    params[0].grad = tinytorch.tensor([3.0])
    params[1].grad = tinytorch.tensor([4.0], dtype=tinytorch.float64)
    assert float(tinytorch.nn.utils.clip_grad_norm_(params, 1.0)) == pytest.approx(5.0)
    assert [p.grad.dtype for p in params] == [p.dtype for p in params]
    assert params[1].grad.item() == pytest.approx(0.8, rel=1e-5)


PRUNING = """
    _validate_pruning_amount_init("x")
    _validate_pruning_amount_init(1.1)
    _validate_pruning_amount_init(-1)
    _validate_pruning_amount_init(0.5)
    _validate_pruning_amount(20, 19)
    _validate_pruning_amount(1.0, 3)
    _compute_nparams_toprune(0.4, 15)
    _compute_nparams_toprune(3, 15)
    _compute_nparams_toprune(1.5, 4)
    _validate_structured_pruning(t.ones(2))
    _validate_structured_pruning(t.ones(2, 2))
    _validate_pruning_dim(t.ones(2, 2), 2)
    _compute_norm(t.ones(2, 3), 2, 0)
    _compute_norm(t.ones(2, 3, 4), 1, -1)
    L1Unstructured(20).prune(t.ones(4))
    LnStructured(5, 2, 0).prune(t.ones(3, 4))
    LnStructured(0.5, 2, 3).prune(t.ones(3, 4))
""".strip().splitlines()


@pytest.mark.parametrize("call", [line.strip() for line in PRUNING])
def test_helpers_of_pruning_methods(call: str) -> None:
    def program(torch: Any) -> Any:
        prune = importlib.import_module(f"{torch.__name__}.nn.utils.prune")
        return eval(f"prune.{call}", {"prune": prune, "t": torch})  # the calls above

    check(program)


@pytest.mark.parametrize("change", ["x.double()", "x[:1]", "x.tolist()", "x + 1"])
def test_an_inverse_that_changes_shape_or_dtype(change: str) -> None:
    def program(torch: Any) -> Any:
        class Plain(torch.nn.Module):  # type: ignore[name-defined, misc]
            def forward(self, x: Any) -> Any:
                return x

        class Inverse(Plain):
            def right_inverse(self, x: Any) -> Any:
                return eval(change)

        layer = torch.nn.Linear(3, 3)
        parametrize = torch.nn.utils.parametrize
        parametrize.register_parametrization(layer, "weight", Plain())
        parametrize.register_parametrization(layer, "weight", Inverse())
        return layer.weight

    check(program)


def test_parametrizations_of_stacked_matrices_and_derived_layers():
    def program(torch):
        ways = torch.nn.utils.parametrizations
        conv = ways.orthogonal(torch.nn.Conv2d(2, 4, 3))
        back = ways.weight_norm(torch.nn.ConvTranspose1d(2, 3, 2))
        ways.spectral_norm(back)
        return (conv.parametrizations.weight.original, back.parametrizations.weight[1]._u, back.weight)

    check(program)


def test_structured_pruning_after_another_looks_at_the_dimension():
    def program(torch):
        prune = importlib.import_module(f"{torch.__name__}.nn.utils.prune")
        layer = torch.nn.Linear(3, 4)
        prune.identity(layer, "weight")
        try:
            prune.ln_structured(layer, "weight", 1, n=2, dim=2)
        except IndexError:
            return True

    check(program)


PRUNED = [
    ("weight", lambda prune, layer: prune.ln_structured(layer, "weight", 1, n=2, dim=-5)),
    ("weight", lambda prune, layer: prune.random_structured(layer, "weight", 1, dim=-5)),
    ("weight", lambda prune, layer: prune.ln_structured(layer, "weight", 0.0, n="fro", dim=3)),
    ("weight", lambda prune, layer: prune.l1_unstructured(layer, "weight", True)),
    ("weight", lambda prune, layer: prune.ln_structured(layer, "weight", 2, n=1, dim=1)),
    ("bias", lambda prune, layer: prune.ln_structured(layer, "bias", 1, n=2, dim=0)),
    ("bias", lambda prune, layer: prune.random_structured(layer, "bias", 0, dim=-1)),
]


@pytest.mark.parametrize(("name", "step"), PRUNED)
@pytest.mark.parametrize("first", ["identity", "l1_unstructured"])
def test_structured_pruning_after_another(first: str, name: str, step: Any) -> None:
    def program(torch: Any) -> Any:
        prune = importlib.import_module(f"{torch.__name__}.nn.utils.prune")
        layer = torch.nn.Conv2d(3, 4, 2)
        getattr(prune, first)(layer, name, *([2] if first != "identity" else []))
        try:
            step(prune, layer)
        except (IndexError, RuntimeError, TypeError, ValueError) as error:
            return type(error).__name__, str(error)[:20]
        return getattr(layer, name), getattr(layer, name + "_mask"), len(layer._forward_pre_hooks)

    check(program)


def small(torch: Any) -> dict[str, Any]:
    """Return modules, and a batch of four for each."""
    torch.manual_seed(0)
    nn, x = torch.nn, torch.linspace(-1, 1, 12).reshape(4, 3)
    return {
        "linear": (nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2, bias=False)), x),
        "convolution": (nn.Sequential(nn.Conv1d(1, 4, 2), nn.GroupNorm(2, 4), nn.Flatten()), x[:, None] ** 2),
        "embedding": (nn.Sequential(nn.Embedding(5, 4), nn.LayerNorm(4)), torch.arange(8).reshape(4, 2) % 5),
    }


@pytest.mark.parametrize("reduction", ["sum", "mean"])
@pytest.mark.parametrize("name", ["linear", "convolution", "embedding"])
def test_gradients_of_each_sample(name: str, reduction: str) -> None:
    def program(torch: Any) -> Any:
        module, x = small(torch)[name]
        module = module.double()  # group norm of two values of one sign cancels all but a few bits of float32
        x = x.double() if x.is_floating_point() else x
        first = next(module.parameters())
        call = importlib.import_module(f"{torch.__name__}.nn.utils._per_sample_grad").call_for_per_sample_grads
        out = call(module, loss_reduction=reduction)(x)
        getattr(out.exp(), reduction)().backward()
        return out.detach(), first.grad, [each.grad_sample for each in module.parameters()]

    same_as_pytorch(program)


REFUSED: dict[str, Any] = {
    "reduction": lambda torch, call, m, x: call(m, loss_reduction="none"),
    "no module": lambda torch, call, m, x: call(torch.relu),
    "size of a wrong type": lambda torch, call, m, x: call(m, batch_size="2"),
    "no size": lambda torch, call, m, x: call(m, batch_size=0),
    "other size": lambda torch, call, m, x: call(m, batch_size=3)(x),
    "no tensor": lambda torch, call, m, x: call(m)("x"),
    "sizes": lambda torch, call, m, x: call(torch.nn.Bilinear(3, 3, 1))(x, x[:2]),
    "again": lambda torch, call, m, x: (call(m)(x).sum().backward(), call(m)),
    "batch norm": lambda torch, call, m, x: call(torch.nn.BatchNorm1d(3))(x),
}


@pytest.mark.parametrize("name", REFUSED)
def test_gradients_of_samples_are_refused_as_in_pytorch(name: str) -> None:
    def program(torch: Any) -> Any:
        call = importlib.import_module(f"{torch.__name__}.nn.utils._per_sample_grad").call_for_per_sample_grads
        return REFUSED[name](torch, call, torch.nn.Linear(3, 2), torch.ones(4, 3))

    same_as_pytorch(program)
