"""The Transformer's layers and stacks against PyTorch: parameters, outputs, gradients, trajectories, warnings."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import tinytorch
from tests.same import same_as_pytorch

pytestmark = [pytest.mark.filterwarnings("ignore:enable_nested_tensor")]


def numbers(torch: Any, *shape: int, seed: int = 0) -> Any:
    return torch.tensor(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def seen(torch: Any, module: Any, out: Any) -> Any:
    """Return all that there is to compare after a call: repr, parameters, output, gradients, the generator's state."""
    out.square().sum().backward()
    state = {name: value.detach().clone() for name, value in module.state_dict().items()}
    grads = [None if p.grad is None else p.grad for p in module.parameters()]
    return repr(module), state, out.detach(), grads, torch.rand(2)


OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "norm first": {"norm_first": True},
    "gelu": {"activation": "gelu"},
    "batch first": {"batch_first": True},
    "no bias": {"bias": False},
    "no dropout": {"dropout": 0.0},
    "eps": {"layer_norm_eps": 0.1},
}


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("kind", ["TransformerEncoderLayer", "TransformerDecoderLayer"])
def test_layers(kind: str, name: str, training: bool) -> None:
    def program(torch: Any) -> Any:
        layer = getattr(torch.nn, kind)(8, 2, 12, **OPTIONS[name]).train(training)
        x, memory = numbers(torch, 5, 5, 8), numbers(torch, 5, 5, 8, seed=1)
        return seen(torch, layer, layer(x) if "Encoder" in kind else layer(x, memory))

    same_as_pytorch(program, 1e-3, 1e-4)


def test_activations() -> None:
    def program(torch: Any) -> Any:
        nn = torch.nn
        given = ["relu", "gelu", nn.functional.gelu, nn.ReLU(), nn.GELU(), nn.functional.silu]
        layers = [nn.TransformerEncoderLayer(4, 2, 6, 0.0, each) for each in given]
        return [(x.activation_relu_or_gelu, x(numbers(torch, 3, 1, 4)).detach()) for x in layers]

    same_as_pytorch(program, 1e-4, 1e-5)
    same_as_pytorch(lambda torch: torch.nn.TransformerEncoderLayer(4, 2, activation="tanh"))
    same_as_pytorch(lambda torch: torch.nn.TransformerDecoderLayer(4, 2, activation="tanh"))


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("mask", ["none", "causal", "bool", "float", "padding", "both", "hint"])
def test_encoder(mask: str, training: bool) -> None:
    def program(torch: Any) -> Any:
        nn = torch.nn
        layer = nn.TransformerEncoderLayer(8, 2, 12, batch_first=True)
        model = nn.TransformerEncoder(layer, 2, nn.LayerNorm(8)).train(training)
        causal = nn.Transformer.generate_square_subsequent_mask(5)
        padding = torch.arange(5) >= torch.tensor([[5], [3], [4]])
        given: dict[str, Any] = {
            "none": {},
            "causal": {"mask": causal},
            "bool": {"mask": causal < 0},
            "float": {"mask": numbers(torch, 5, 5)},
            "padding": {"src_key_padding_mask": padding},
            "both": {"mask": causal < 0, "src_key_padding_mask": padding},
            "hint": {"mask": causal, "is_causal": True},
        }
        return seen(torch, model, model(numbers(torch, 3, 5, 8), **given[mask]))

    same_as_pytorch(program, 1e-3, 1e-4)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("at_the_end", [True, False])
@pytest.mark.parametrize("norm", [True, False])
@pytest.mark.parametrize("nested", [True, False])
def test_encoder_without_gradients(nested: bool, norm: bool, at_the_end: bool) -> None:
    """There PyTorch leaves out the padding, whose output is zeros."""
    found = []
    for torch in (tinytorch, pytest.importorskip("torch")):
        torch.manual_seed(0)
        nn = torch.nn
        layer = nn.TransformerEncoderLayer(8, 2, 12, batch_first=True)
        last = nn.LayerNorm(8) if norm else None
        model = nn.TransformerEncoder(layer, 2, last, enable_nested_tensor=nested).eval()
        padding = torch.arange(5) >= torch.tensor([[5], [3], [4]])
        padding = padding if at_the_end else padding.flip(1)
        with torch.no_grad():
            found.append(model(numbers(torch, 3, 5, 8), src_key_padding_mask=padding).numpy())
    np.testing.assert_allclose(*found, 1e-4, 1e-5)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", OPTIONS)
def test_the_whole(name: str, training: bool) -> None:
    def program(torch: Any) -> Any:
        model = torch.nn.Transformer(8, 2, 2, 2, 12, **OPTIONS[name]).train(training)
        causal = model.generate_square_subsequent_mask(5)
        src, tgt = numbers(torch, 5, 5, 8), numbers(torch, 5, 5, 8, seed=1)
        padding = torch.arange(5) >= torch.tensor([[5], [3], [4], [5], [2]])
        out = model(src, tgt, tgt_mask=causal < 0, src_key_padding_mask=padding, memory_key_padding_mask=padding)
        return seen(torch, model, out)

    same_as_pytorch(program, 2e-3, 2e-4)


def test_without_a_batch_and_with_custom_parts() -> None:
    def program(torch: Any) -> Any:
        nn = torch.nn
        layer = nn.TransformerDecoderLayer(8, 2, 12, 0.0)
        decoder = nn.TransformerDecoder(layer, 3)
        model = nn.Transformer(8, 2, 1, 1, 12, 0.0, custom_decoder=decoder)
        return seen(torch, model, model(numbers(torch, 5, 8), numbers(torch, 4, 8)))

    same_as_pytorch(program, 1e-3, 1e-4)


@pytest.mark.parametrize("dropout", [0.0, 0.2])
def test_a_trajectory(dropout: float) -> None:
    def program(torch: Any) -> Any:
        model = torch.nn.Transformer(8, 2, 1, 1, 16, dropout, batch_first=True, norm_first=True)
        # (Not Adam: the gradient of the keys' bias is 0 but for rounding, whose sign Adam would follow.)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        src, tgt = numbers(torch, 4, 5, 8), numbers(torch, 4, 6, 8, seed=1)
        mask = model.generate_square_subsequent_mask(6)
        losses = []
        for _ in range(20):
            optimizer.zero_grad()
            loss = (model(src, tgt, tgt_mask=mask) - tgt).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses, [p.detach() for p in model.parameters()]

    same_as_pytorch(program, 1e-3, 1e-4)


REASONS: dict[str, dict[str, Any]] = {
    "none": {"batch_first": True},
    "norm first": {"batch_first": True, "norm_first": True},
    "batch": {},
    "bias": {"batch_first": True, "bias": False},
    "activation": {"batch_first": True, "activation": tinytorch.nn.functional.silu},
    "heads": {"batch_first": True, "nhead": 1},
}


@pytest.mark.filterwarnings("default:enable_nested_tensor")
@pytest.mark.parametrize("enable", [True, False])
@pytest.mark.parametrize("name", REASONS)
def test_the_warning_of_nested_tensors(name: str, enable: bool) -> None:
    def program(torch: Any) -> Any:
        import warnings

        options = {"nhead": 2, **REASONS[name]}
        layer = torch.nn.TransformerEncoderLayer(8, dim_feedforward=4, **options)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = torch.nn.TransformerEncoder(layer, 1, enable_nested_tensor=enable)
        return [str(each.message) for each in caught], model.use_nested_tensor

    same_as_pytorch(program)


ERRORS = {
    "batches": lambda model, x: model(x, x[:, :1]),
    "features": lambda model, x: model(x, x[..., :4]),
    "mask": lambda model, x: model(x, x, src_mask=x[0, 0] > 0),
    "mask's shape": lambda model, x: model(x, x, tgt_mask=x[0] > 0),
    "padding": lambda model, x: model(x, x, src_key_padding_mask=x > 0),
    "mask of integers": lambda model, x: model(x, x, src_mask=x[0].long()),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    def program(torch: Any) -> Any:
        return ERRORS[name](torch.nn.Transformer(8, 2, 1, 1, 4), numbers(torch, 5, 3, 8))

    same_as_pytorch(program)


@pytest.mark.parametrize("dtype", [None, "float64", "bfloat16"])
def test_the_causal_mask(dtype: str | None) -> None:
    def program(torch: Any) -> Any:
        chosen = None if dtype is None else getattr(torch, dtype)
        mask = torch.nn.Transformer.generate_square_subsequent_mask(4, dtype=chosen)
        return str(mask.dtype), mask.double()

    same_as_pytorch(program)


def test_copies_and_pickles() -> None:
    model = tinytorch.nn.Transformer(8, 2, 1, 1, 4).eval()
    x = numbers(tinytorch, 5, 3, 8)
    for again in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert again(x, x).tolist() == model(x, x).tolist()


def test_parameters_of_pytorch_are_understood() -> None:
    torch = pytest.importorskip("torch")
    other = torch.nn.Transformer(8, 2, 1, 1, 4).eval()
    model = tinytorch.nn.Transformer(8, 2, 1, 1, 4).eval()
    model.load_state_dict({k: tinytorch.tensor(v.numpy()) for k, v in other.state_dict().items()})
    x = numbers(tinytorch, 5, 3, 8)
    np.testing.assert_allclose(
        model(x, x).detach().numpy(), other(*[torch.tensor(x.numpy())] * 2).detach().numpy(), 1e-4, 1e-5
    )
