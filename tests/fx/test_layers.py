"""Layers of `torch.nn`, traced themselves rather than recorded as calls, against PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.oracle import needs_oracle
from tests.same import compared, same_as_pytorch

LAYERS: dict[str, Callable[[Any], Any]] = {
    "AdaptiveAvgPool2d": lambda nn: nn.AdaptiveAvgPool2d(1), "AlphaDropout": lambda nn: nn.AlphaDropout(),
    "AvgPool1d": lambda nn: nn.AvgPool1d(1), "BatchNorm1d": lambda nn: nn.BatchNorm1d(2).eval(),
    "Bilinear": lambda nn: nn.Bilinear(2, 2, 2), "CTCLoss": lambda nn: nn.CTCLoss(),
    "ChannelShuffle": lambda nn: nn.ChannelShuffle(1), "Conv2d": lambda nn: nn.Conv2d(1, 1, 1),
    "ConvTranspose2d": lambda nn: nn.ConvTranspose2d(1, 1, 1), "CosineSimilarity": lambda nn: nn.CosineSimilarity(),
    "CrossEntropyLoss": lambda nn: nn.CrossEntropyLoss(), "Dropout": lambda nn: nn.Dropout(),
    "Embedding": lambda nn: nn.Embedding(3, 2), "EmbeddingBag": lambda nn: nn.EmbeddingBag(10, 3, mode="sum"),
    "Flatten": lambda nn: nn.Flatten(), "Fold": lambda nn: nn.Fold((2, 2), 1), "GELU": lambda nn: nn.GELU(),
    "GLU": lambda nn: nn.GLU(), "GRUCell": lambda nn: nn.GRUCell(2, 2), "GroupNorm": lambda nn: nn.GroupNorm(1, 2),
    "Hardtanh": lambda nn: nn.Hardtanh(), "Identity": lambda nn: nn.Identity(),
    "InstanceNorm1d": lambda nn: nn.InstanceNorm1d(2), "KLDivLoss": lambda nn: nn.KLDivLoss(),
    "LPPool2d": lambda nn: nn.LPPool2d(2, 2), "LSTM": lambda nn: nn.LSTM(2, 2), "LayerNorm": lambda nn: nn.LayerNorm(2),
    "Linear": lambda nn: nn.Linear(2, 2), "MSELoss": lambda nn: nn.MSELoss(), "MaxPool2d": lambda nn: nn.MaxPool2d(2),
    "MaxUnpool2d": lambda nn: nn.MaxUnpool2d(2), "MultiheadAttention": lambda nn: nn.MultiheadAttention(4, 2),
    "NLLLoss": lambda nn: nn.NLLLoss(), "PReLU": lambda nn: nn.PReLU(), "PixelShuffle": lambda nn: nn.PixelShuffle(1),
    "RReLU": lambda nn: nn.RReLU(), "ReflectionPad1d": lambda nn: nn.ReflectionPad1d(1),
    "Softmax": lambda nn: nn.Softmax(1), "Threshold": lambda nn: nn.Threshold(0, 1),
    "TripletMarginLoss": lambda nn: nn.TripletMarginLoss(), "Unflatten": lambda nn: nn.Unflatten(1, (1, 2)),
    "Unfold": lambda nn: nn.Unfold(1), "Upsample": lambda nn: nn.Upsample(2), "ZeroPad2d": lambda nn: nn.ZeroPad2d(1),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
@compared
def test_layers_are_traced_as_in_pytorch(t: Any, name: str) -> Any:
    module = t.fx.symbolic_trace(LAYERS[name](t.nn))
    return str(module.graph), module.code


def hooked(t: Any) -> Any:
    layer = t.nn.Linear(2, 2)
    layer.register_forward_hook(lambda module, args, output: output * 2)
    layer.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
    model = t.nn.Sequential(t.nn.Sequential(layer))
    model[0].register_forward_hook(lambda module, args, output: output - 1)
    return t.fx.symbolic_trace(model).code


def attention(t: Any) -> Any:
    class Attention(t.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.qkv = t.nn.Linear(8, 24)

        def forward(self, x, mask=None):  # type: ignore[no-untyped-def]
            n, length, size = x.shape
            q, k, v = self.qkv(x).reshape(n, length, 3, 2, size // 2).permute(2, 0, 3, 1, 4).unbind(0)
            weights = (q @ k.transpose(-2, -1)) * (size // 2) ** -0.5
            if mask is not None:
                weights = weights.masked_fill(mask == 0, float("-inf"))
            plain = t.nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=0.0)
            return (weights.softmax(dim=-1) @ v).transpose(1, 2).flatten(2), plain

    t.manual_seed(0)
    module = t.fx.symbolic_trace(Attention(), concrete_args={"mask": None})
    return module.code, module(t.linspace(-1, 1, 48).view(2, 3, 8), None)


def shared(t: Any) -> Any:
    class Shared(t.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = t.nn.Linear(2, 2), t.nn.Linear(2, 2)
            self.b.weight = self.a.weight
            self.listed = t.nn.ParameterList([t.nn.Parameter(t.ones(2))])

        def forward(self, x):  # type: ignore[no-untyped-def]
            return t.nn.functional.linear(x, self.b.weight, self.b.bias) + self.a(x) + self.listed[0]

    module = t.fx.symbolic_trace(Shared())
    return module.code, list(module.state_dict()), [name for name, _ in module.named_parameters()]


def weight_norm(t: Any) -> Any:
    class Normed(t.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.layer = t.nn.utils.parametrizations.weight_norm(t.nn.Linear(2, 2))

        def forward(self, x):  # type: ignore[no-untyped-def]
            return self.layer(x)

    return t.fx.symbolic_trace(Normed()).code


@needs_oracle
@pytest.mark.parametrize("program", [hooked, attention, shared, weight_norm], ids=lambda each: each.__name__)
def test_models_are_traced_as_in_pytorch(program: Callable[[Any], Any]) -> None:
    same_as_pytorch(program)
