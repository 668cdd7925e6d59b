"""Layers of `torch.nn`, traced themselves rather than recorded as calls, against PyTorch's."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fx.programs import model
from tests.same import compared, expressions, of_each

LAYERS = """
    nn.AdaptiveAvgPool2d(1); nn.AlphaDropout(); nn.AvgPool1d(1); nn.BatchNorm1d(2).eval(); nn.Bilinear(2, 2, 2)
    nn.CTCLoss(); nn.ChannelShuffle(1); nn.Conv2d(1, 1, 1); nn.ConvTranspose2d(1, 1, 1); nn.CosineSimilarity()
    nn.CrossEntropyLoss(); nn.Dropout(); nn.Embedding(3, 2); nn.EmbeddingBag(10, 3, mode="sum"); nn.Flatten()
    nn.Fold((2, 2), 1); nn.GELU(); nn.GLU(); nn.GRUCell(2, 2); nn.GroupNorm(1, 2); nn.Hardtanh(); nn.Identity()
    nn.InstanceNorm1d(2); nn.KLDivLoss(); nn.LPPool2d(2, 2); nn.LSTM(2, 2); nn.LayerNorm(2); nn.Linear(2, 2)
    nn.MSELoss(); nn.MaxPool2d(2); nn.MaxUnpool2d(2); nn.MultiheadAttention(4, 2); nn.NLLLoss(); nn.PReLU()
    nn.PixelShuffle(1); nn.RReLU(); nn.ReflectionPad1d(1); nn.Softmax(1); nn.Threshold(0, 1); nn.TripletMarginLoss()
    nn.Unflatten(1, (1, 2)); nn.Unfold(1); nn.Upsample(2); nn.ZeroPad2d(1)
"""


@pytest.mark.parametrize("layer", expressions(LAYERS))
@compared
def test_layers_are_traced_as_in_pytorch(t: Any, layer: str) -> Any:
    module = t.fx.symbolic_trace(eval(layer, {"nn": t.nn}))
    return str(module.graph), module.code


def hooked(t: Any) -> Any:
    layer = t.nn.Linear(2, 2)
    layer.register_forward_hook(lambda module, args, output: output * 2)
    layer.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
    model = t.nn.Sequential(t.nn.Sequential(layer))
    model[0].register_forward_hook(lambda module, args, output: output - 1)
    return t.fx.symbolic_trace(model).code


def attention(t: Any) -> Any:
    def forward(self, x, mask=None):  # type: ignore[no-untyped-def]
        n, length, size = x.shape
        q, k, v = self.qkv(x).reshape(n, length, 3, 2, size // 2).permute(2, 0, 3, 1, 4).unbind(0)
        weights = (q @ k.transpose(-2, -1)) * (size // 2) ** -0.5
        if mask is not None:
            weights = weights.masked_fill(mask == 0, float("-inf"))
        plain = t.nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=0.0)
        return (weights.softmax(dim=-1) @ v).transpose(1, 2).flatten(2), plain

    t.manual_seed(0)
    module = t.fx.symbolic_trace(model(t, forward, qkv=t.nn.Linear(8, 24)), concrete_args={"mask": None})
    return module.code, module(t.linspace(-1, 1, 48).view(2, 3, 8), None)


def shared(t: Any) -> Any:
    def forward(self, x):  # type: ignore[no-untyped-def]
        return t.nn.functional.linear(x, self.b.weight, self.b.bias) + self.a(x) + self.listed[0]

    made = model(t, forward, a=t.nn.Linear(2, 2), b=t.nn.Linear(2, 2))
    made.b.weight = made.a.weight
    made.listed = t.nn.ParameterList([t.nn.Parameter(t.ones(2))])
    module = t.fx.symbolic_trace(made)
    return module.code, list(module.state_dict()), [name for name, _ in module.named_parameters()]


def weight_norm(t: Any) -> Any:
    layer = t.nn.utils.parametrizations.weight_norm(t.nn.Linear(2, 2))
    return t.fx.symbolic_trace(model(t, lambda self, x: self.layer(x), layer=layer)).code


test_models_are_traced_as_in_pytorch = of_each([hooked, attention, shared, weight_norm])
