"""Models as ONNX: ONNX Runtime gives what the model gives, also for other sizes of the dynamic dimensions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinytorch as torch
from tests.fx.onnx.models import GPT, ConvNeXt, Quickstart, ResNet, Tagger, UNet, ViT, Writes, images, texts
from tests.oracle import package
from tests.same import refused
from tinytorch import nn
from tinytorch.func.pytree import flatten

onnx = package("onnx")
package("onnxruntime")

BATCH, TEXT = {"x": {0: "batch"}}, {"x": {0: "batch", 1: "length"}}
MODELS: dict[str, tuple[Callable[[], Any], Callable[..., Any], Any, list[tuple[int, ...]]]] = {
    "ResNet": (ResNet, lambda n: images(n, side=32), BATCH, [(2,), (1,), (5,)]),
    "ConvNeXt": (ConvNeXt, images, BATCH, [(2,), (1,), (5,)]), "ViT": (ViT, images, BATCH, [(2,), (1,), (5,)]),
    "GPT": (GPT, texts, TEXT, [(2, 6), (1, 1), (3, 32)]),
    "GPT, causal": (lambda: GPT(True), texts, TEXT, [(2, 6), (1, 1), (3, 32)]),
    "LSTM": (lambda: Tagger("LSTM", batch_first=True), texts, TEXT, [(2, 6), (1, 1), (3, 9)]),
    "LSTM, deep": (
        lambda: Tagger("LSTM", num_layers=2, bidirectional=True, dropout=0.5), texts, TEXT, [(6, 2), (1, 1), (9, 3)]
    ),
    "GRU": (
        lambda: Tagger("GRU", num_layers=2, bidirectional=True, batch_first=True), texts, TEXT, [(2, 6), (1, 1), (3, 9)]
    ),
    "RNN": (lambda: Tagger("RNN", nonlinearity="relu", bias=False), texts, TEXT, [(6, 2), (1, 1), (9, 3)]),
    "U-Net": (
        UNet, lambda n, side: images(n, channels=1, side=side), {"x": {0: "batch", 2: "side", 3: "side"}},
        [(2, 16), (1, 8), (3, 32)],
    ),
    "quickstart": (Quickstart, lambda n: images(n, channels=1, side=28), BATCH, [(2,), (1,), (64,)]),
    "writes": (Writes, lambda n: (torch.randn(n, 6),), {}, [(2,)]),
}  # fmt: skip


def outputs(result: Any) -> list[Any]:
    return [x.detach().numpy() for x in flatten(result)[0] if x is not None]


def check(model: Any) -> None:
    onnx.checker.check_model(model, full_check=True)
    onnx.shape_inference.infer_shapes(model, strict_mode=True, check_type=True)


@pytest.mark.parametrize("opset", [18, 20, 23])
@pytest.mark.parametrize("name", MODELS)
def test_models(name: str, opset: int) -> None:
    make, inputs, axes, sizes = MODELS[name]
    torch.manual_seed(0)
    model = make()
    program = torch.onnx.export(
        model, inputs(*sizes[0]), input_names=["x"], dynamic_axes=axes, opset_version=opset, verbose=False
    )
    assert all(module.training for module in model.modules())
    check(program.model_proto)
    model.eval()
    for each in sizes:
        args = inputs(*each)
        with torch.no_grad():
            expected = outputs(model(*[x.clone() for x in args]))
        found = program(*args)
        assert len(found) == len(expected)
        for x, y in zip(found, expected, strict=True):
            assert x.dtype == torch.from_numpy(y).dtype
            np.testing.assert_allclose(x.numpy(), y, rtol=1e-4, atol=1e-5)


class Positions(nn.Module):
    """Asks whether the batch is that of the positions, which is 1."""

    def forward(self, x: Any) -> Any:
        places = torch.arange(x.shape[1]).unsqueeze(0)
        if x.shape[0] != places.shape[0]:
            places = places.expand(x.shape[0], -1)
        return x * places


def test_a_batch_of_one() -> None:
    program = torch.onnx.export(Positions(), (torch.ones(1, 3),), dynamic_shapes=({0: "batch", 1: "length"},))
    for n in (1, 4):
        assert torch.equal(program(torch.ones(n, 5))[0], torch.arange(5.0).expand(n, 5))


def test_names_and_files(tmp_path: Path) -> None:
    model = GPT()
    program = torch.onnx.export(
        model, texts(2, 6), tmp_path / "gpt.onnx", input_names=["tokens"], output_names=["logits"],
        dynamic_axes={"tokens": {0: "batch", 1: "length"}}, external_data=False,
    )  # fmt: skip
    graph = program.model_proto.graph
    assert [each.name for each in graph.input] == ["tokens"]
    assert [each.name for each in graph.output] == ["logits"]
    dims = [each.dim_param or each.dim_value for each in graph.input[0].type.tensor_type.shape.dim]
    assert dims == ["batch", "length"]
    dims = [each.dim_param or each.dim_value for each in graph.output[0].type.tensor_type.shape.dim]
    assert dims == ["batch", 1, 30]
    names = {each.name for each in graph.initializer}
    own = {*dict(model.named_parameters()), "mask"}
    assert own <= names
    stored = {each.name: onnx.numpy_helper.to_array(each) for each in graph.initializer}
    for key, x in model.named_parameters():
        np.testing.assert_array_equal(stored[key], x.detach().numpy())
    assert onnx.load(tmp_path / "gpt.onnx").graph == graph


def test_legacy_exporter_returns_none(tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"
    assert torch.onnx.export(nn.Linear(3, 2), torch.ones(4, 3), file, dynamo=False) is None
    assert [path.name for path in tmp_path.iterdir()] == ["model.onnx"]
    check(onnx.load(file))
    refused(ValueError, "path", torch.onnx.export, nn.Linear(3, 2), torch.ones(4, 3), dynamo=False)


def test_external_data(tmp_path: Path) -> None:
    runtime = package("onnxruntime")
    model, x = nn.Linear(40, 20), torch.randn(3, 40)
    for _ in range(2):  # a second time, over the first
        torch.onnx.export(model, (x,), tmp_path / "model.onnx")
    assert (tmp_path / "model.onnx.data").stat().st_size < 4000
    (y,) = runtime.InferenceSession(tmp_path / "model.onnx").run(None, {"input": x.numpy()})
    np.testing.assert_allclose(y, model(x).detach().numpy(), rtol=1e-5, atol=1e-6)


def test_parameters_as_inputs() -> None:
    model = nn.Linear(3, 2)
    program = torch.onnx.export(model, (torch.ones(4, 3),), export_params=False)
    assert [each.name for each in program.model_proto.graph.input] == ["input", "weight", "bias"]
    assert not program.model_proto.graph.initializer
    program = torch.onnx.export(model, (torch.ones(4, 3),), keep_initializers_as_inputs=True)
    assert [each.name for each in program.model_proto.graph.input] == ["input", "weight", "bias"]
    assert len(program.model_proto.graph.initializer) == 2


def test_other_weights() -> None:
    model, other, x = nn.Linear(3, 2), nn.Linear(3, 2), torch.randn(4, 3)
    program = torch.onnx.export(model, (x,), verify=True)
    program.apply_weights(other.state_dict())
    np.testing.assert_allclose(program(x)[0].numpy(), other(x).detach().numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(program.call_reference(x)[0].numpy(), other(x).detach().numpy(), rtol=1e-5, atol=1e-6)


def test_an_exported_program() -> None:
    batch = torch.export.Dim("batch", max=64)
    program = torch.export.export(ResNet().eval(), images(2, side=32), dynamic_shapes={"x": {0: batch}})
    written = torch.onnx.export(program)
    (x,) = images(7, side=32)
    with torch.no_grad():
        np.testing.assert_allclose(written(x)[0].numpy(), program.module()(x).numpy(), rtol=1e-4, atol=1e-5)
    names = {each.name for each in written.model_proto.graph.initializer}
    assert {"stem.0.weight", "blocks.0.bn1.running_mean", "fc.bias"} <= names


class Branches(nn.Module):
    """Takes and returns containers."""

    def forward(self, x: Any, pair: Any, scale: float = 1.0, *, more: Any = None) -> Any:
        return {"sum": x * scale + pair["a"], "rest": [pair["b"], None if more is None else more + 1], "none": None}


def test_containers_and_keywords() -> None:
    x, pair, more = torch.randn(2, 3), {"a": torch.randn(2, 3), "b": torch.ones(2)}, torch.ones(4)
    program = torch.onnx.export(Branches(), (x, pair, 3.0), kwargs={"more": more})
    assert [each.name for each in program.model_proto.graph.input] == ["x", "pair_a", "pair_b", "more"]
    found = program(x, pair, 3.0, more=more)
    expected = outputs(Branches()(x, pair, 3.0, more=more))
    for y, z in zip(found, expected, strict=True):
        np.testing.assert_allclose(y.numpy(), z, rtol=1e-6)
    program = torch.onnx.export(Branches(), (x, pair, {"more": more}))
    assert len(program.model_proto.graph.input) == 4


class Sized(nn.Module):
    """Calculates with sizes."""

    def forward(self, x: Any) -> Any:
        n, m = x.shape
        half = (m + 1) // 2
        mean = x.sum(1) / m
        rows = torch.arange(n).unsqueeze(1) * m + torch.arange(m)
        return x[:, :half].reshape(-1), mean, rows, torch.full((n, m % 3 + 1), 2.5), x.new_zeros(-(-m // 2)), n * m


def test_sizes() -> None:
    program = torch.onnx.export(Sized(), (torch.randn(3, 5),), dynamic_shapes=({0: "n", 1: "m"},))
    check(program.model_proto)
    for shape in ((3, 5), (1, 8), (4, 1)):
        x = torch.randn(*shape)
        found, expected = program(x), flatten(Sized()(x))[0]
        for y, z in zip(found, expected, strict=True):
            np.testing.assert_allclose(y.numpy(), np.asarray(z), rtol=1e-5, atol=1e-6)


class Creates(nn.Module):
    """Makes tensors of numbers and sizes."""

    def forward(self, x: Any) -> Any:
        n, m = x.shape
        return (
            torch.tensor(m, dtype=torch.float32) * x, torch.tensor([1.5, 2]), torch.tensor(data=3, dtype=torch.int32),
            torch.zeros(n, m, dtype=torch.int64), torch.ones((m, 2)), torch.full((n,), m, dtype=torch.float64),
            torch.zeros(size=(n, 1)), torch.arange(m, dtype=torch.float32), torch.arange(1, n + 1),
            torch.arange(start=0, end=2 * m, step=2), torch.linspace(0, 1, m), torch.eye(n), torch.eye(n, m),
            torch.zeros_like(x, dtype=torch.bool), torch.full_like(x, 2.5), x.new_ones(m), x.new_full((n, 2), 7),
            x.new_tensor([1, 2]), torch.empty(n, 0), torch.as_tensor(x), torch.ones(m, m).triu(1), torch.tensor([n, m]),
        )  # fmt: skip


def test_creation() -> None:
    program = torch.onnx.export(Creates(), (torch.randn(3, 5),), dynamic_shapes=({0: "n", 1: "m"},))
    check(program.model_proto)
    for shape in ((3, 5), (1, 2), (6, 4)):
        x = torch.randn(*shape)
        for y, z in zip(program(x), Creates()(x), strict=True):
            assert y.dtype == z.dtype and y.shape == z.shape
            np.testing.assert_allclose(y.numpy(), z.numpy(), rtol=1e-6, atol=1e-6)


class Singular(nn.Module):
    def forward(self, x: Any) -> Any:
        return torch.linalg.svd(x)[1]  # this line


class Decides(nn.Module):
    def forward(self, x: Any) -> Any:
        if x.sum() > 0:  # this line
            return x
        return -x


class Fixed(nn.Module):
    def forward(self, x: Any) -> Any:
        return x * 2 if len(x) == 4 else x  # this line


class Random(nn.Module):
    def forward(self, x: Any) -> Any:
        return x + torch.rand(3)  # this line


def line_in(kind: type) -> str:
    lines = Path(__file__).read_text("utf-8").splitlines()
    start = lines.index(f"class {kind.__name__}(nn.Module):")
    return str(next(k for k in range(start, len(lines)) if "# this line" in lines[k]) + 1)


@pytest.mark.parametrize(
    ("kind", "words"), [(Singular, "svd"), (Random, "random numbers"), (Decides, "decides"), (Fixed, "Constraints")]
)
def test_errors_name_the_line(kind: Any, words: str) -> None:
    with pytest.raises(torch.onnx.OnnxExporterError, match=words) as error:
        torch.onnx.export(kind(), (torch.ones(4, 3),), input_names=["x"], dynamic_axes={"x": [0]})
    assert f"{__file__}:{line_in(kind)}" in str(error.value)
    unsupported = isinstance(error.value, torch.onnx.errors.UnsupportedOperatorError)
    assert unsupported is (kind in (Singular, Random))


def test_training_mode() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5))
    with pytest.raises(torch.onnx.errors.UnsupportedOperatorError, match="dropout"):
        torch.onnx.export(model, (torch.ones(2, 3),), training=torch.onnx.TrainingMode.TRAINING)
    with pytest.raises(torch.onnx.errors.UnsupportedOperatorError, match="buffer is written to"):
        torch.onnx.export(nn.BatchNorm1d(3), (torch.ones(2, 3),), training=torch.onnx.TrainingMode.PRESERVE)
    program = torch.onnx.export(model, (torch.ones(2, 3),))
    assert [node.op_type for node in program.model_proto.graph.node] == ["Gemm"]


def test_bad_arguments(tmp_path: Path) -> None:
    model, x = nn.Linear(3, 2), torch.ones(4, 3)
    refused(ValueError, "opset version", torch.onnx.export, model, (x,), opset_version=9)
    refused(ValueError, "input names", torch.onnx.export, model, (x,), input_names=["a", "b"])
    refused(ValueError, "output names", torch.onnx.export, model, (x,), output_names=["a", "b"])
    with pytest.warns(torch.onnx.errors.OnnxExporterWarning, match="not a valid input"):
        torch.onnx.export(model, (x,), dynamic_axes={"y": [0]})
    with pytest.raises(NotImplementedError, match="custom_translation_table"):
        torch.onnx.export(model, (x,), custom_translation_table={torch.relu: print})


def test_the_package_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "onnx", None)
    refused(ModuleNotFoundError, r"pip install onnx", torch.onnx.export, nn.Linear(3, 2), (torch.ones(4, 3),))


def test_is_in_onnx_export() -> None:
    class Asks(nn.Module):
        def forward(self, x: Any) -> Any:
            return x + 1 if torch.onnx.is_in_onnx_export() else x

    x = torch.ones(2)
    assert torch.onnx.export(Asks(), (x,))(x)[0].tolist() == [2, 2]
    assert not torch.onnx.is_in_onnx_export()
