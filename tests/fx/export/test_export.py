"""`torch.export`: graphs of models, their signature, their module, dynamic sizes, files and errors."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from tinytorch.export import Dim, ExportError, export

import tinytorch as torch
from tests.fx.onnx.models import GPT, ConvNeXt, Quickstart, ResNet, Tagger, UNet, ViT, Writes, images, texts
from tests.oracle import needs_oracle
from tests.oracle import torch as oracle
from tests.same import refused
from tinytorch import nn
from tinytorch.func.pytree import flatten

BATCH, LENGTH = Dim("batch"), Dim("length", max=32)
MODELS: dict[str, Any] = {
    "ResNet": (ResNet, lambda n: images(n, side=32), ({0: BATCH},), [(2,), (1,), (5,)]),
    "ConvNeXt": (ConvNeXt, images, ({0: BATCH},), [(2,), (1,), (5,)]),
    "ViT": (ViT, images, ({0: BATCH},), [(2,), (5,)]),
    "GPT": (GPT, texts, ({0: BATCH, 1: LENGTH},), [(2, 6), (1, 1), (3, 32)]),
    "LSTM": (lambda: Tagger("LSTM", batch_first=True), texts, ({0: BATCH, 1: LENGTH},), [(2, 6), (3, 9)]),
    "U-Net": (UNet, lambda n: images(n, channels=1), ({0: BATCH},), [(2,), (5,)]),
    "quickstart": (Quickstart, lambda n: images(n, channels=1, side=28), ({0: BATCH},), [(2,), (64,)]),
    "writes": (Writes, lambda n: (torch.randn(n, 6),), None, [(2,)]),
}  # fmt: skip


def same(x: Any, y: Any) -> bool:
    xs, ys = flatten(x), flatten(y)
    alike = xs[1] == ys[1]
    return alike and all(
        torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b for a, b in zip(xs[0], ys[0], strict=True)
    )


@pytest.mark.parametrize("name", MODELS)
def test_module_computes_the_same_bit_for_bit(name: str) -> None:
    make, inputs, shapes, sizes = MODELS[name]
    torch.manual_seed(0)
    model = make().eval()
    program = export(model, inputs(*sizes[0]), dynamic_shapes=shapes)
    program.validate()
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    module, loaded = program.module(), torch.export.load(file).module()
    for each in sizes:
        args = inputs(*each)
        with torch.no_grad():
            expected = model(*[x.clone() for x in args])
            assert same(module(*[x.clone() for x in args]), expected)
            assert same(loaded(*[x.clone() for x in args]), expected)


def test_gradients_reach_the_parameters() -> None:
    model, x = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)), torch.randn(5, 3)
    module = export(model, (x,)).module()
    module(x).sum().backward()
    grads = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    model(x).sum().backward()
    assert all(torch.equal(a, p.grad) for a, p in zip(grads, model.parameters(), strict=True))


class Program(nn.Module):
    """A model with a buffer, a constant, and containers as arguments and result."""

    def __init__(self) -> None:
        super().__init__()
        self.l, self.offset = nn.Linear(3, 4), [torch_ones(4)]
        self.register_buffer("k", torch_ones(4))

    def forward(self, x: Any, d: Any, scale: float = 2.0) -> Any:
        return {"a": self.l(x) * self.k + d["q"] * scale, "b": (x, None)}


def torch_ones(n: int) -> Any:
    return torch.ones(n)


def signature_of(library: Any, model: Any) -> Any:
    args = (library.ones(2, 3), {"q": library.ones(4)})
    program = library.export.export(model, args, dynamic_shapes=({0: library.export.Dim("batch")}, {"q": None}))
    signature = program.graph_signature
    return (
        dict(signature.inputs_to_parameters), dict(signature.inputs_to_buffers), signature.user_inputs,
        signature.parameters, signature.buffers, [spec.kind.name for spec in signature.input_specs],
        [spec.kind.name for spec in signature.output_specs], list(program.state_dict),
        [name for name, _ in program.named_parameters()], str(program.call_spec.out_spec),
    )  # fmt: skip


@needs_oracle
def test_signature() -> None:
    class Theirs(oracle.nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.l = oracle.nn.Linear(3, 4)
            self.register_buffer("k", oracle.ones(4))

        forward = Program.forward

    assert signature_of(torch, Program()) == signature_of(oracle, Theirs())


def test_members() -> None:
    program = export(Program(), (torch.ones(2, 3), {"q": torch.ones(4)}))
    assert [node.op for node in program.graph.nodes][:5] == ["placeholder"] * 5
    assert program.graph is program.graph_module.graph
    assert "torch._C._nn.linear(x, p_l_weight, p_l_bias)" in program.graph_module.code
    assert len(list(program.parameters())) == 2 and len(list(program.buffers())) == 1
    assert "p_l_weight: PARAMETER target='l.weight'" in str(program)
    refused(RuntimeError, "Unable to call ExportedProgram directly", program, torch.ones(2, 3))
    refused(NotImplementedError, "run_decompositions", program.run_decompositions)
    refused(NotImplementedError, "one mode", program.module().eval)


def test_guards() -> None:
    batch = Dim("batch", min=2, max=8)
    args = torch.ones(4, 3), {"q": torch.ones(4)}
    program = export(Program(), args, dynamic_shapes=({0: 2 * batch}, {"q": None}))
    assert program.range_constraints == {"batch": (2, 8)}
    module = program.module()
    assert module(torch.ones(6, 3), {"q": torch.ones(4)})["a"].shape == (6, 4)
    for x, q in (((5, 3), 4), ((2, 3), 4), ((18, 3), 4), ((4, 2), 4), ((4, 3, 1), 4), ((4, 3), 1)):
        refused(AssertionError, "Guard failed", module, torch.ones(*x), {"q": torch.ones(q)})
    refused(AssertionError, "dtype", module, torch.ones(4, 3, dtype=torch.float64), {"q": torch.ones(4)})
    refused(ValueError, "input tree spec", module, torch.ones(4, 3), [torch.ones(4)])


class Plus(nn.Module):
    def forward(self, x: Any, y: Any) -> Any:
        return x + y


@pytest.mark.parametrize(("shapes", "words"), [
    ({"x": {0: BATCH}}, "top-level keys must be the arg names"),
    (({0: BATCH},), "has 2 elements, but `dynamic_shapes` has 1"), (({5: BATCH}, None), "Unexpected dimension"),
    (((BATCH,), None), "same length"), ((3, None), "Unexpected dynamic shape"),
])  # fmt: skip
def test_bad_dynamic_shapes(shapes: Any, words: str) -> None:
    refused(ExportError, words, export, Plus(), (torch.ones(2, 3), torch.ones(2, 3)), dynamic_shapes=shapes)


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match=r"Expected `mod` to be an instance of `torch.nn.Module`, got .*function"):
        export(lambda x: x, (torch.ones(2),))  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="Expecting `args` to be a tuple of example positional inputs"):
        export(Plus(), torch.ones(2))  # type: ignore[arg-type]
    refused(AssertionError, "inconsistent", Dim, "n", min=3, max=2)
    refused(ExportError, "is no file", torch.export.load, __file__)


class Parity(nn.Module):
    def forward(self, x: Any) -> Any:
        return x if x.shape[0] % 2 else -x


class Root(nn.Module):
    def forward(self, x: Any) -> Any:
        return x / x.shape[0] ** 0.5


class Limited(nn.Module):
    def forward(self, x: Any) -> Any:
        assert x.shape[0] <= 5
        return x * 2


class Value(nn.Module):
    def forward(self, x: Any) -> Any:
        return x * x.sum().item()


class Selects(nn.Module):
    def forward(self, x: Any) -> Any:
        return x[x > 0]


class Counts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[int] = []

    def forward(self, x: Any) -> Any:
        self.calls.append(1)
        return x


@pytest.mark.parametrize("kind", [Parity, Root])
def test_what_depends_on_a_dynamic_size(kind: Any) -> None:
    x = torch.ones(4, 3)
    refused(ExportError, "Constraints violated", export, kind(), (x,), dynamic_shapes=({0: BATCH},))
    static = export(kind(), (x,), dynamic_shapes=({0: Dim.AUTO},)).module()  # the size is not dynamic, then
    assert torch.equal(static(x), kind()(x))
    refused(AssertionError, "Guard failed", static, torch.ones(3, 3))


def test_limits_of_sizes() -> None:
    module = export(Limited(), (torch.ones(4, 3),), dynamic_shapes=({0: BATCH},)).module()
    assert module(torch.ones(5, 3)).shape == (5, 3)


@pytest.mark.parametrize(
    ("kind", "words"),
    [(Value, "value is read by Python"), (Selects, "depends on values"), (Counts, "effects are not known")],
)
def test_what_cannot_be_exported(kind: Any, words: str) -> None:
    with pytest.raises(ExportError, match=words) as error:
        export(kind(), (torch.ones(4, 3),))
    lines = Path(__file__).read_text("utf-8").splitlines()
    place, _, line = str(error.value).partition(": ")[0].rpartition(":")
    assert place == __file__
    start = lines.index(f"class {kind.__name__}(nn.Module):")
    assert start < int(line) <= start + 8


def test_an_unchanged_input() -> None:
    class Clears(nn.Module):
        def forward(self, x: Any) -> Any:
            return x.zero_() + 1

    x = torch.ones(3)
    module = export(Clears(), (x,)).module()
    assert x.tolist() == [1, 1, 1] and module(x).tolist() == [1, 1, 1] and x.tolist() == [0, 0, 0]


def test_buffers_are_written_to() -> None:
    class Sums(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("total", torch.zeros(3))

        def forward(self, x: Any) -> Any:
            self.total.add_(x)
            return self.total * 2

    model = Sums()
    program = export(model, (torch.ones(3),))
    model.total.zero_()
    module = program.module()
    assert [module(torch.ones(3)).tolist() for _ in range(2)] == [[2, 2, 2], [4, 4, 4]]
