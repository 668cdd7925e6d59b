"""`quantize_dynamic`: linear layers with weights of 8 and 16 bits, against PyTorch's and against float32."""

from __future__ import annotations

import copy
import importlib
import io
import warnings
from typing import Any

import numpy as np
import pytest

import tinytorch
from tests.oracle import needs_oracle
from tests.same import same_as_pytorch
from tinytorch import nn
from tinytorch.kernels import quantized

QUANTIZED = tinytorch.ao.nn.quantized.dynamic.Linear
DTYPES = ("qint8", "float16", "bfloat16")
#: The largest error of the output of `model`, relative to the largest output.
BOUNDS = {"qint8": 0.01, "float16": 1e-3, "bfloat16": 8e-3}


def quantize(model: Any, *args: Any, **options: Any) -> Any:
    return tinytorch.ao.quantization.quantize_dynamic(model, *args, **options)


def model(torch: Any, seed: int = 0, features: int = 96) -> Any:
    """Return three layers whose weights are the same in both libraries."""
    rng, nn = np.random.default_rng(seed), torch.nn
    made = nn.Sequential(
        nn.Linear(features, 3 * features),
        nn.GELU(),
        nn.Sequential(nn.Linear(3 * features, 50, bias=False)),
        nn.Linear(50, 7),
    )
    with torch.no_grad():
        for each in made.parameters():
            # Rows of different sizes, as those of trained layers are.
            rows = np.exp(0.7 * rng.standard_normal((len(each),) + (1,) * (each.ndim - 1)))
            each.copy_(torch.tensor((rng.standard_normal(each.shape) * rows / 10).astype(np.float32)))
    return made.eval()


def inputs(torch: Any, rows: int = 20, features: int = 96) -> Any:
    return torch.tensor(np.random.default_rng(1).standard_normal((rows, features)).astype(np.float32))


def layers_of(module: Any) -> list[str]:
    return [type(each).__name__ if type(each) is not QUANTIZED else "quantized" for each in module.modules()]


# Numbers ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1, 3, 8, 20, 100])
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_output_is_near_that_of_the_model(dtype: str, rows: int) -> None:
    floats, x = model(tinytorch), inputs(tinytorch, rows)
    expected = floats(x)
    error = (quantize(floats, {nn.Linear}, getattr(tinytorch, dtype))(x) - expected).abs().max()
    assert 0 < error < BOUNDS[dtype] * expected.abs().max()


@needs_oracle
@pytest.mark.parametrize("engine", ["x86", "fbgemm", "qnnpack"])
@pytest.mark.parametrize(
    "config", ["default_dynamic_qconfig", "per_channel_dynamic_qconfig", "float16_dynamic_qconfig"]
)
def test_the_error_is_not_larger_than_pytorchs(config: str, engine: str) -> None:
    import torch

    if engine not in torch.backends.quantized.supported_engines or (engine == "qnnpack" and "float16" in config):
        engine = "x86"
    before, errors = torch.backends.quantized.engine, []
    torch.backends.quantized.engine = engine
    try:
        for library in (tinytorch, torch):
            total = 0.0
            for seed in range(3):
                floats, x = model(library, seed), inputs(library)
                with warnings.catch_warnings(), library.no_grad():
                    warnings.simplefilter("ignore")  # PyTorch's function is deprecated
                    spec = {library.nn.Linear: getattr(library.ao.quantization, config)}
                    made = library.ao.quantization.quantize_dynamic(floats, spec)
                    total += float((made(x) - floats(x)).square().mean())
            errors.append(total)
    finally:
        torch.backends.quantized.engine = before
    ours, theirs = errors
    assert 0 < ours <= theirs * 1.01


def test_rows_are_rounded_to_the_nearest_of_255_levels() -> None:
    rng = np.random.default_rng(0)
    weight = (rng.standard_normal((40, 300)) * 10.0 ** rng.integers(-6, 6, (40, 1))).astype(np.float32)
    values, scale = quantized.quantized_rows(weight)
    assert values.dtype == np.int8 and scale.dtype == np.float32
    assert np.abs(values.astype(int)).max(1).tolist() == [127] * 40
    assert (np.abs(values * scale[:, None] - weight) <= 0.5001 * scale[:, None]).all()


def test_rows_without_a_scale() -> None:
    tiny = float(np.finfo(np.float32).tiny)
    rows = [[0, 0], [tiny, -tiny], [1e-45, 0], [np.inf, 1], [np.nan, 1], [3e38, -3e38]]
    values, scale = quantized.quantized_rows(np.array(rows, np.float32))
    assert values[:2].tolist() == [[0, 0], [1, -1]] and values[5].tolist() == [127, -127]
    assert np.isnan(scale).tolist() == [False, False, False, True, True, False]
    layer = nn.Linear(2, 6, bias=False)
    with tinytorch.no_grad():
        layer.weight.copy_(tinytorch.tensor(rows))
    y = quantize(nn.Sequential(layer))(tinytorch.tensor([[1.0, 0.0]]))[0]
    assert y.isnan().tolist() == [False, False, False, True, True, False] and y[0] == 0


def test_16_bits_are_rounded_as_tensors_are() -> None:
    rng = np.random.default_rng(0)
    weight = np.concatenate(
        [(rng.standard_normal(3000) * 10.0 ** rng.integers(-9, 5, 3000)), [np.nan, np.inf, -0.0, 1e30]]
    )
    floats = tinytorch.tensor(weight.astype(np.float32))
    largest = tinytorch.finfo(tinytorch.float16).max
    half = tinytorch.tensor(quantized.saturated(floats.numpy()))
    tinytorch.testing.assert_close(half, floats.clamp(-largest, largest).half(), rtol=0, atol=0, equal_nan=True)
    pytest.importorskip("ml_dtypes")
    bits = tinytorch.tensor(quantized.bfloat16_bits(floats.numpy()).view(np.int16))
    assert bits.equal(floats.bfloat16().view(tinytorch.int16))


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_layer_computes_with_the_dequantized_weight(dtype: str) -> None:
    floats = nn.Linear(70, 30)
    layer = quantize(nn.Sequential(floats), dtype=getattr(tinytorch, dtype))[0]
    assert layer.weight().shape == (30, 70) and layer.weight().dtype is tinytorch.float32
    assert layer.bias().equal(floats.bias) and layer.bias() is not floats.bias
    for shape in ((2, 70), (9, 70), (2, 3, 70), (0, 70), (2, 0, 70)):
        x = tinytorch.randn(shape)
        expected = nn.functional.linear(x, layer.weight(), layer.bias())
        tinytorch.testing.assert_close(layer(x), expected, rtol=1e-5, atol=1e-5)
    x = tinytorch.randn(70, 9).t()  # not contiguous
    tinytorch.testing.assert_close(layer(x), layer(x.contiguous()), rtol=0, atol=0)


def test_the_input_gets_the_gradient_of_the_layer_with_the_dequantized_weight() -> None:
    layer = quantize(nn.Sequential(nn.Linear(6, 4)))[0]
    x = tinytorch.randn(2, 3, 6, requires_grad=True)
    g = tinytorch.randn(2, 3, 4)
    (ours,) = tinytorch.autograd.grad(layer(x), x, g)
    (expected,) = tinytorch.autograd.grad(nn.functional.linear(x, layer.weight(), layer.bias()), x, g)
    tinytorch.testing.assert_close(ours, expected)
    _, tangent = tinytorch.func.jvp(layer, (x.detach(),), (x.detach(),))
    tinytorch.testing.assert_close(tangent, layer(x.detach()) - layer.bias())
    assert not list(layer.parameters())


# What is quantized --------------------------------------------------------------------------------

SPECS = """
None
{nn.Linear}
{"0"}
{"2"}
{"2.0", "3"}
{"nothing"}
{nn.Sequential}
{nn.ReLU}
set()
{}
{nn.Linear: q.default_dynamic_qconfig}
{nn.Linear: q.default_dynamic_qconfig, "0": None}
{nn.Linear: None, "2.0": q.per_channel_dynamic_qconfig}
{"": q.default_dynamic_qconfig, "2": None}
{nn.Linear: q.float16_dynamic_qconfig}
"""


@pytest.mark.parametrize("text", SPECS.strip().splitlines())
def test_which_layers_are_quantized(text: str) -> None:
    def program(torch: Any) -> Any:
        nn, q = torch.nn, torch.ao.quantization
        floats = model(torch)
        floats[3].qconfig = None if "2.0" in text else q.default_dynamic_qconfig
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = q.quantize_dynamic(floats.train(), eval(text, {"nn": nn, "q": q}))
        # (The scales of a weight are one in PyTorch's default configuration, and one for each row here.)
        text_of = str(made).replace("per_tensor", "per_channel")
        return [text_of, str(floats), floats.training, made[0].training if "Quant" not in str(made[0]) else False]

    same_as_pytorch(program)


def test_in_place() -> None:
    def program(torch: Any) -> Any:
        floats = model(torch)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = torch.quantization.quantize_dynamic(floats, {"0"}, inplace=True)
            alone = torch.nn.Linear(2, 3)
            same = torch.quantization.quantize_dynamic(alone, {torch.nn.Linear}, inplace=True)
        return [made is floats, same is alone, str(made).replace("per_tensor", "per_channel"), str(same)]

    same_as_pytorch(program)


ERRORS = """
q.quantize_dynamic(m, {nn.Linear}, dtype=torch.int8)
q.quantize_dynamic(m, None, dtype=torch.int8)
q.quantize_dynamic(m, [nn.Linear])
q.quantize_dynamic(m, {nn.Linear: 5})
torch.ao.nn.quantized.dynamic.Linear(3, 4, dtype=torch.int8)
torch.ao.nn.quantized.dynamic.Linear.from_float(nn.ReLU())
torch.ao.nn.quantized.dynamic.Linear.from_float(nn.Linear(2, 3))
q.quantize_dynamic(m)(torch.ones(96))
q.quantize_dynamic(m)(torch.ones(2, 96).double())
q.quantize_dynamic(m)(torch.ones(2, 96).half())
"""


@pytest.mark.parametrize("text", ERRORS.strip().splitlines())
def test_errors(text: str) -> None:
    def program(torch: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return eval(text, {"torch": torch, "nn": torch.nn, "q": torch.ao.quantization, "m": model(torch)})

    same_as_pytorch(program)


def test_sizes_that_do_not_match() -> None:
    with pytest.raises(RuntimeError, match="equal to K: 7"):
        quantize(model(tinytorch))(tinytorch.ones(2, 7))


def test_other_layers_are_refused_where_they_are_named() -> None:
    made = nn.Sequential(nn.Linear(2, 3), nn.LSTM(3, 3), nn.Embedding(3, 4))
    assert layers_of(quantize(made)) == ["Sequential", "quantized", "LSTM", "Embedding"]
    for spec in ({nn.LSTM}, {"1"}, {"2"}, {"": tinytorch.ao.quantization.default_dynamic_qconfig}):
        with pytest.raises(NotImplementedError, match=r"LSTM|Embedding"):
            quantize(made, spec)


def test_what_is_no_linear_layer_itself_stays() -> None:
    class Own(nn.Linear):
        pass

    attention = nn.MultiheadAttention(4, 2)  # it reads the weight of its layer
    made = quantize(nn.Sequential(Own(2, 3), attention, nn.Bilinear(2, 2, 2), nn.LazyLinear(2)))
    assert "quantized" not in layers_of(made)


def test_a_mapping_and_hooks() -> None:
    class Other(nn.Module):
        @classmethod
        def from_float(cls, layer: Any) -> Any:
            made = cls()
            made.of, made.config = type(layer).__name__, layer.qconfig
            return made

    made = quantize(nn.Sequential(nn.Linear(2, 2), nn.Conv2d(1, 1, 1)), {"1"}, mapping={nn.Conv2d: Other})
    assert made[1].of == "Conv2d" and made[1].config.dtype is tinytorch.qint8
    floats, calls = nn.Sequential(nn.Linear(2, 2)), []
    floats[0].register_forward_pre_hook(lambda *_: calls.append("before"))
    floats[0].register_forward_hook(lambda *_: calls.append("after"))
    quantize(floats)(tinytorch.ones(1, 2))
    assert calls == ["before", "after"]


def test_a_layer_in_two_places_stays_one_layer() -> None:
    layer = nn.Linear(2, 2)
    made = quantize(nn.Sequential(layer, nn.Sequential(layer, nn.ReLU())))
    assert made[0] is made[1][0] and type(made[0]) is QUANTIZED


def test_parametrized_layers_are_quantized() -> None:
    floats = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(5, 4)))
    x = tinytorch.randn(3, 5)
    made = quantize(floats)
    assert type(made[0]) is QUANTIZED
    tinytorch.testing.assert_close(made(x), floats(x), rtol=0.02, atol=0.02)


def test_the_models_weights_are_copied() -> None:
    for dtype in DTYPES:
        floats = nn.Sequential(nn.Linear(5, 4))
        made, x = quantize(floats, dtype=getattr(tinytorch, dtype)), tinytorch.randn(3, 5)
        before = made(x)
        with tinytorch.no_grad():
            floats[0].weight.zero_()
            floats[0].bias.zero_()
        assert made(x).equal(before)


def test_a_transformer() -> None:
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval()
    made, x = quantize(layer), tinytorch.randn(2, 5, 16)
    assert layers_of(made).count("quantized") == 2
    tinytorch.testing.assert_close(made(x), layer(x), rtol=0.05, atol=0.05)


# Files and programs -------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_state_and_a_model_come_back_from_their_files(dtype: str) -> None:
    kind = getattr(tinytorch, dtype)
    made, x = quantize(model(tinytorch), dtype=kind), inputs(tinytorch)
    other = quantize(model(tinytorch, seed=5), dtype=kind)
    assert not other(x).equal(made(x))
    state, whole = io.BytesIO(), io.BytesIO()
    tinytorch.save(made.state_dict(), state)
    tinytorch.save(made, whole)
    for file in (state, whole):
        file.seek(0)
    other.load_state_dict(tinytorch.load(state))
    assert other(x).equal(made(x))
    read = tinytorch.load(whole, weights_only=False)
    assert read(x).equal(made(x)) and str(read) == str(made)
    assert copy.deepcopy(made)(x).equal(made(x))
    fresh = QUANTIZED(96, 288, dtype=kind)
    fresh.load_state_dict(made[0].state_dict())
    assert fresh(x).equal(made[0](x))
    assert state.getbuffer().nbytes < (0.3 if dtype == "qint8" else 0.55) * 4 * sum(
        each.numel() for each in model(tinytorch).parameters()
    )


@needs_oracle
def test_pytorch_reads_the_state() -> None:
    import torch

    made, file = quantize(model(tinytorch)), io.BytesIO()
    tinytorch.save(made.state_dict(), file)
    file.seek(0)
    state = torch.load(file)
    weight = state["0.weight_values"] * state["0.weight_scales"][:, None]
    assert np.array_equal(weight.numpy(), made[0].weight().numpy())


def test_a_state_of_another_dtype_is_refused() -> None:
    made, other = (quantize(model(tinytorch), dtype=kind) for kind in (tinytorch.qint8, tinytorch.float16))
    with pytest.raises(RuntimeError, match=r"weight_scales"):
        other.load_state_dict(made.state_dict())


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_model_is_one_program(dtype: str) -> None:
    made = quantize(model(tinytorch), dtype=getattr(tinytorch, dtype))
    compiled = tinytorch.compile(made, fullgraph=True)
    with tinytorch.no_grad():
        for rows in (1, 1, 20, 20, 20):
            x = tinytorch.randn(rows, 96)
            assert compiled(x).equal(made(x))
    x = tinytorch.randn(4, 96, requires_grad=True)
    for _ in range(2):
        ours, expected = (tinytorch.autograd.grad(each(x).sum(), x)[0] for each in (compiled, made))
        assert ours.equal(expected)


def test_the_summary_counts_the_products() -> None:
    floats = model(tinytorch)
    counts = [tinytorch.summary(each, (20, 96)).multiply_adds for each in (floats, quantize(floats))]
    assert counts[0] == counts[1] == 20 * (96 * 288 + 288 * 50 + 50 * 7)


def test_a_layer_shows_how_it_is_stored() -> None:
    for dtype, shown in zip(DTYPES, (", qscheme=torch.per_channel_affine", "", ""), strict=True):
        layer = QUANTIZED(3, 4, False, getattr(tinytorch, dtype))
        assert repr(layer) == f"DynamicQuantizedLinear(in_features=3, out_features=4, dtype=torch.{dtype}{shown})"


def test_the_names_of_pytorch() -> None:
    assert tinytorch.quantization is tinytorch.ao.quantization
    assert importlib.import_module("tinytorch.nn.quantized.dynamic").Linear is QUANTIZED
