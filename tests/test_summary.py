"""`summary`: its counts and its table; the model stays unchanged."""

from __future__ import annotations

import numpy as np
import pytest

import tinytorch as torch
import tinytorch.nn.quantization
from tinytorch import nn
from tinytorch.nn import functional as F


def cnn():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3),
        nn.BatchNorm2d(8),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(8 * 13 * 13, 10),
    )


def by_path(found):
    return {layer.path: layer for layer in found.layers}


# Numbers ------------------------------------------------------------------------------------------


def test_layers_of_a_convolutional_network():
    found = torch.summary(cnn(), (2, 1, 28, 28))
    assert [layer.type for layer in found.layers] == [
        "Sequential", "Conv2d", "BatchNorm2d", "ReLU", "MaxPool2d", "Flatten", "Linear",
    ]  # fmt: skip
    assert [layer.depth for layer in found.layers] == [0] + [1] * 6
    assert [layer.name for layer in found.layers] == ["Sequential", *"012345"]
    image = (2, 8, 26, 26)
    assert [layer.output_shape for layer in found.layers] == [
        (2, 10), image, image, image, (2, 8, 13, 13), (2, 1352), (2, 10),
    ]  # fmt: skip
    parameters = [0, 80, 16, 0, 0, 0, 13530]
    assert [layer.parameters for layer in found.layers] == parameters
    assert found.total_parameters == found.trainable_parameters == sum(parameters)
    work = [0, 2 * 8 * 26 * 26 * 9, 0, 0, 0, 0, 2 * 10 * 1352]
    assert [layer.multiply_adds for layer in found.layers] == work
    assert found.multiply_adds == sum(work)
    # ReLU(inplace=True) and Flatten allocate nothing; the output of the container is that of its last layer.
    big, small = 4 * 2 * 8 * 26 * 26, 4 * 2 * 8 * 13 * 13
    assert [layer.output_bytes for layer in found.layers] == [0, big, big, 0, small, 0, 80]
    assert found.activation_bytes == 2 * big + small + 80
    assert found.input_bytes == 4 * 2 * 28 * 28
    assert found.parameter_bytes == 4 * sum(parameters)
    assert found.buffer_bytes == 2 * 8 * 4 + 8  # means, variances and the number of batches
    assert found.total_bytes == (
        found.input_bytes + found.activation_bytes + found.parameter_bytes + found.buffer_bytes
    )


N, L, S, E = 2, 5, 7, 8


@pytest.mark.parametrize(
    ("layer", "size", "expected"),
    [
        (nn.Linear(8, 3), (4, 5, 8), 4 * 5 * 8 * 3),
        (nn.Linear(8, 3, bias=False), (8,), 24),
        (nn.Conv1d(4, 6, 3, stride=2, groups=2), (2, 4, 11), 2 * 6 * 5 * 2 * 3),
        (nn.Conv3d(1, 2, 2), (1, 1, 3, 3, 3), 2 * 8 * 8),
        (nn.Conv2d(2, 3, 3, padding="same"), (2, 6, 6), 3 * 36 * 2 * 9),
        (nn.ConvTranspose2d(2, 3, 3), (1, 2, 4, 4), 16 * 2 * 3 * 9),
        (nn.RNN(3, 4), (5, 2, 3), 5 * 2 * (3 + 4) * 4),
        (nn.GRU(3, 4, num_layers=2), (5, 2, 3), 5 * 2 * 12 * (3 + 4 + 4 + 4)),
        (nn.LSTM(3, 4), (5, 2, 3), 5 * 2 * 16 * (3 + 4)),
        (nn.LSTM(3, 4, bidirectional=True), (5, 2, 3), 2 * 5 * 2 * 16 * (3 + 4)),
        (nn.LSTM(3, 4, proj_size=2), (5, 2, 3), 5 * 2 * (16 * (3 + 2) + 4 * 2)),
        (nn.LSTMCell(3, 4), (2, 3), 2 * 16 * (3 + 4)),
        (nn.GRUCell(3, 4), (2, 3), 2 * 12 * (3 + 4)),
        (
            nn.MultiheadAttention(E, 2, batch_first=True),
            [(N, L, E), (N, S, E), (N, S, E)],
            N * (2 * L + 2 * S) * E * E + 2 * N * L * S * E,
        ),
        (nn.ReLU(), (3, 4), 0),
        (nn.LayerNorm(4), (3, 4), 0),
    ],
    ids=lambda value: str(value) if isinstance(value, nn.Module) else "",
)
def test_multiply_adds(layer, size, expected):
    assert torch.summary(layer, size).multiply_adds == expected


def test_attention_counts_the_same_with_and_without_its_weights():
    attention = nn.MultiheadAttention(E, 2, batch_first=True)
    x = torch.rand(N, L, E)
    counts = {torch.summary(attention, input_data=(x, x, x), need_weights=need).multiply_adds for need in (True, False)}
    assert counts == {N * 4 * L * E * E + 2 * N * L * L * E}


class Functional(nn.Module):
    """A model with operations and parameters outside of layers, and a layer whose weights are used without a call."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4, 4))
        self.used = nn.Linear(4, 6)

    def forward(self, x):
        x = x @ self.scale  # 2 * 4 * 4
        x = F.linear(x, self.used.weight, self.used.bias)  # 2 * 4 * 6
        q = x.view(1, 1, 2, 6)
        out = F.scaled_dot_product_attention(q, q, q)  # 2 * 2 * (6 + 6)
        return torch.addmm(torch.zeros(2), out.view(2, 6), torch.ones(6, 2))  # 2 * 6 * 2


def test_functions_count_for_the_layer_that_calls_them():
    found = torch.summary(nn.Sequential(Functional(), nn.Linear(2, 3)), (2, 4))
    layer = by_path(found)["0"]
    assert layer.multiply_adds == 2 * 4 * 4 + 2 * 4 * 6 + 2 * 2 * 12 + 2 * 6 * 2
    assert layer.parameters == 16 + 6 * 4 + 6
    assert "0.used" not in by_path(found)
    assert found.total_parameters == sum(layer.parameters for layer in found.layers)


# Shared and frozen parameters ---------------------------------------------------------------------


def test_shared_parameters_count_once():
    embedding, head = nn.Embedding(10, 4), nn.Linear(4, 10, bias=False)
    head.weight = embedding.weight
    found = torch.summary(nn.Sequential(embedding, head), (3,), dtype=torch.int64)
    assert [layer.parameters for layer in found.layers] == [0, 40, 0]
    assert found.total_parameters == 40
    assert found.parameter_bytes == 160


def test_a_layer_called_twice():
    layer = nn.Linear(4, 4)
    found = torch.summary(nn.Sequential(layer, nn.ReLU(), layer), (2, 4))
    assert [layer.recursive for layer in found.layers] == [False, False, False, True]
    assert [layer.parameters for layer in found.layers] == [0, 20, 0, 0]
    assert found.total_parameters == 20
    assert found.multiply_adds == 2 * 32
    assert str(found).count("(recursive)") == 1


def test_frozen_parameters():
    model = cnn()
    model[0].requires_grad_(False)
    found = torch.summary(model, (1, 1, 28, 28))
    assert found.total_parameters - found.trainable_parameters == 80
    assert by_path(found)["0"].trainable_parameters == 0
    (line,) = [line for line in str(found).splitlines() if "Conv2d" in line]
    assert "(80)" in line
    assert "  not trainable: 80\n" in str(found)


# Inputs -------------------------------------------------------------------------------------------


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.linear = nn.Embedding(5, 3), nn.Linear(3, 3)

    def forward(self, number, x, *, twice=False):
        assert number.dtype == torch.int64
        out = self.table(number) + self.linear(x)
        return {"out": out, "more": [out, out.sum()]} if twice else out


def test_several_inputs():
    found = torch.summary(Two(), [(2,), (2, 3)], dtype=[torch.int64, torch.float32])
    assert found.layers[0].output_shape == (2, 3)
    assert found.input_bytes == 16 + 24
    number, x = torch.tensor([4, 0]), torch.ones(2, 3)
    for given in ((number, x), [number, x], {"number": number, "x": x}):
        assert str(torch.summary(Two(), input_data=given)) == str(found)


def test_more_arguments_and_outputs_in_structures():
    data = (torch.tensor([4, 0]), torch.ones(2, 3))
    found = torch.summary(Two(), input_data=data, twice=True)
    assert found.layers[0].output_shape == {"out": (2, 3), "more": [(2, 3), ()]}
    assert "[2, 3], ..." in str(found).splitlines()[3]


def test_inputs_have_the_dtype_of_the_parameters():
    seen = []
    model = nn.Linear(2, 2).double()
    model.register_forward_pre_hook(lambda module, args: seen.append(args[0]))
    torch.summary(model, (3, 2))
    assert seen[0].dtype == torch.float64
    assert 0 <= seen[0].min() < seen[0].max() <= 1


def test_lazy_layers_get_their_parameters():
    found = torch.summary(nn.Sequential(nn.LazyLinear(3)), (2, 5))
    assert found.total_parameters == 18


# The model stays as it was ------------------------------------------------------------------------


def test_modes_buffers_hooks_and_random_numbers_stay():
    model = nn.Sequential(nn.BatchNorm1d(3), nn.Dropout(0.5), nn.Linear(3, 3))
    model.train()
    model[1].eval()
    state = {name: each.clone() for name, each in model.state_dict().items()}
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    torch.summary(model, (4, 3))
    assert torch.equal(torch.rand(3), expected)
    assert [each.training for each in model.modules()] == [True, True, False, True]
    for name, each in model.state_dict().items():
        assert torch.equal(each, state[name])
    assert not any(each._forward_hooks or each._forward_pre_hooks for each in model.modules())
    assert all(each.grad is None for each in model.parameters())


def test_it_is_run_without_recording_in_evaluation_mode():
    seen = []
    model = nn.Linear(2, 2)
    model.register_forward_hook(lambda module, args, out: seen.append((module.training, out.requires_grad)))
    torch.summary(model, (1, 2))
    assert seen == [(False, False)]


def test_after_an_error_too():
    model = cnn()
    with pytest.raises(RuntimeError):
        torch.summary(model, (1, 1, 27, 28))
    assert all(each.training for each in model.modules())
    assert not any(each._forward_hooks or each._forward_pre_hooks for each in model.modules())
    assert model(torch.rand(2, 1, 28, 28)).requires_grad


# The table ----------------------------------------------------------------------------------------


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.ReLU(), nn.Linear(4, 2)))
        self.lstm = nn.LSTM(2, 3)

    def forward(self, x):
        return self.lstm(self.body(x))[0]


def test_the_table():
    lines = str(torch.summary(Net(), (5, 1, 4))).splitlines()
    rule = "=" * len(lines[0])
    assert lines[0] == lines[2] == lines[-1] == rule
    assert lines[1].split() == ["Layer", "Output", "shape", "Parameters", "Multiply-adds"]
    assert [line.partition("  [")[0].rstrip() for line in lines[3:10]] == [
        "Net",
        "  body: Sequential",
        "    0: Linear",
        "    1: Sequential",
        "      0: ReLU",
        "      1: Linear",
        "  lstm: LSTM",
    ]
    assert lines[5].split() == ["0:", "Linear", "[5,", "1,", "4]", "20", "80"]
    assert lines[9].split() == ["lstm:", "LSTM", "[5,", "1,", "3],", "...", "84", "300"]
    assert lines[10] == rule
    assert lines[11:15] == ["Parameters: 114", "  trainable: 114", "  not trainable: 0", "Multiply-adds: 420"]
    assert "Input: 80 B" in lines


def test_depth_adds_up_what_is_not_shown():
    found = torch.summary(Net(), (5, 1, 4), depth=1)
    rows = str(found).splitlines()[3:6]
    assert [row.split()[-2:] for row in rows] == [["-", "-"], ["30", "120"], ["84", "300"]]
    (row,) = str(torch.summary(Net(), (5, 1, 4), depth=0)).splitlines()[3:4]
    assert row.split()[-2:] == ["114", "420"]
    assert len(found.layers) == 7  # the object contains all layers
    assert repr(found) == str(found)


# Mistakes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((lambda x: x, (1,)), TypeError, "model should be a Module, but got function"),
        ((nn.ReLU(),), ValueError, "either input_size or input_data"),
        ((nn.ReLU(), (1,), torch.ones(1)), ValueError, "either input_size or input_data"),
        ((nn.ReLU(), 3), TypeError, "input_size should be a size"),
        ((nn.ReLU(), (1, 2.0)), TypeError, "input_size should be a size"),
        ((nn.ReLU(), (1, -2)), ValueError, "cannot be negative"),
        ((nn.Embedding(3, 2), (4,)), RuntimeError, "pass dtype=torch.int64, or the data as input_data"),
    ],
)
def test_arguments_that_cannot_be(arguments, error, words):
    with pytest.raises(error, match=words):
        torch.summary(*arguments)


@pytest.mark.parametrize("data", [torch.zeros(2, 3), [torch.zeros(2, 3)]])
def test_tensors_are_data(data):
    assert torch.summary(nn.ReLU(), data).layers[0].output_shape == (2, 3)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"dtype": np.float32}, TypeError, "dtype should be a dtype"),
        ({"dtype": [torch.float32] * 2}, ValueError, "1 sizes but 2 dtypes"),
        ({"depth": -1}, ValueError, "depth should be"),
    ],
)
def test_options_that_cannot_be(options, error, words):
    with pytest.raises(error, match=words):
        torch.summary(nn.ReLU(), (1,), **options)


def test_the_layer_that_fails_is_named():
    with pytest.raises(RuntimeError) as caught:
        torch.summary(cnn(), (1, 1, 27, 28))
    said = str(caught.value)
    assert "failed on inputs of [1, 1, 27, 28], in 5 (Linear), after 4 (Flatten)" in said
    assert "had given [1, 1248]" in said
    assert "RuntimeError: mat1 and mat2 shapes cannot be multiplied" in said
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_a_caught_error_inside_the_model():
    class Tries(nn.Module):
        def __init__(self):
            super().__init__()
            self.wrong, self.right = nn.Linear(3, 3), nn.Linear(4, 3)

        def forward(self, x):
            try:
                return self.wrong(x)
            except RuntimeError:
                return self.right(x)

    found = torch.summary(nn.Sequential(Tries(), nn.ReLU()), (1, 4))
    assert [(layer.path, layer.depth) for layer in found.layers if layer.output_shape] == [
        ("", 0), ("0", 1), ("0.right", 2), ("1", 1),
    ]  # fmt: skip
