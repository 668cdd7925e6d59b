"""Recurrent layers and cells, packed and padded sequences: all that can be seen of them as PyTorch's."""

from __future__ import annotations

import copy
import io
import math
import warnings
from typing import Any

import numpy as np
import pytest

import tinytorch
from tests.same import same_as_pytorch
from tests.same import same_to_the_word as check
from tinytorch import nn
from tinytorch.autograd import gradcheck, gradgradcheck
from tinytorch.nn.utils import rnn

parametrize = pytest.mark.parametrize

FEATURES, HIDDEN, BATCH, STEPS = 5, 4, 3, 6

# (input's shape, whether states are given, lengths of packed sequences)
CALLS = {
    "batched": ((STEPS, BATCH, FEATURES), False, None),
    "batched, with states": ((STEPS, BATCH, FEATURES), True, None),
    "unbatched": ((STEPS, FEATURES), False, None),
    "unbatched, with states": ((STEPS, FEATURES), True, None),
    "one step": ((1, BATCH, FEATURES), True, None),
    "no sequences": ((STEPS, 0, FEATURES), True, None),
    "packed": ((STEPS, BATCH, FEATURES), True, [1, 6, 2]),
    "packed, two of one length": ((STEPS, BATCH, FEATURES), False, [6, 3, 3]),
    "packed, all of one length": ((STEPS, BATCH, FEATURES), True, [4, 4, 4]),
}
SETTINGS: dict[str, dict[str, Any]] = {
    "usual": {},
    "no bias": {"bias": False},
    "bidirectional": {"bidirectional": True},
    "batch first": {"num_layers": 2, "bidirectional": True, "batch_first": True},
    "dropout": {"num_layers": 3, "dropout": 0.5},
    "all dropped": {"num_layers": 2, "dropout": 1.0},
}
LAYERS = [
    *[(kind, label) for kind in ("LSTM", "GRU", "RNN") for label in SETTINGS],
    ("RNN", "relu"),
    ("LSTM", "projection"),
    ("LSTM", "projections"),
]
SETTINGS |= {
    "relu": {"nonlinearity": "relu"},
    "projection": {"proj_size": 3},
    "projections": {"proj_size": 3, "num_layers": 2, "bidirectional": True, "bias": False},
}


def tensors_of(last: Any) -> tuple[Any, ...]:
    return last if isinstance(last, tuple) else (last,)


def ran(torch: Any, kind: str, settings: dict[str, Any], shape: Any, given: bool, lengths: Any, dtype: str) -> Any:
    """Return a layer's outputs, strides and gradients."""
    dtype = getattr(torch, dtype)
    torch.manual_seed(3)
    layer = getattr(torch.nn, kind)(FEATURES, HIDDEN, dtype=dtype, **settings)
    batch_first = settings.get("batch_first", False)
    if batch_first and len(shape) == 3:
        shape = (shape[1], shape[0], shape[2])
    x = torch.randn(*shape, dtype=dtype, requires_grad=True)
    count = settings.get("num_layers", 1) * (2 if settings.get("bidirectional") else 1)
    batch = () if len(shape) == 2 else (shape[0 if batch_first else 1],)
    leaves, arguments = [x], ()
    if given:
        widths = [settings.get("proj_size", HIDDEN), HIDDEN][: 2 if kind == "LSTM" else 1]
        states = [torch.randn(count, *batch, width, dtype=dtype, requires_grad=True) for width in widths]
        leaves += states
        arguments = (tuple(states) if kind == "LSTM" else states[0],)
    inputs = x
    utils = torch.nn.utils.rnn
    if lengths is not None:
        inputs = utils.pack_padded_sequence(x, lengths, batch_first, enforce_sorted=False)
    with warnings.catch_warnings():
        # PyTorch says that it takes its slower kernel.
        warnings.filterwarnings("ignore", "LSTM with projections")
        out, last = layer(inputs, *arguments)
    if lengths is not None:
        out, found = utils.pad_packed_sequence(out, batch_first, -1.0)
        assert found.tolist() == lengths
    outs = [out, *tensors_of(last)]
    weights = [torch.linspace(-1, 2, each.numel(), dtype=dtype).reshape(each.shape) for each in outs]
    sum((each * w).sum() for each, w in zip(outs, weights, strict=True)).backward()
    return [
        repr(layer), out.stride() if out.numel() else None, outs, [each.grad for each in leaves],
        [(name, p, p.grad) for name, p in layer.named_parameters()],
    ]  # fmt: skip


@parametrize("called", CALLS)
@parametrize(("kind", "settings"), LAYERS)
def test_layers_do_as_pytorchs(kind: str, settings: str, called: str) -> None:
    for dtype, tolerance in (("float64", 1e-10), ("float32", 2e-5)):
        same_as_pytorch(
            lambda torch, dtype=dtype: ran(torch, kind, SETTINGS[settings], *CALLS[called], dtype),
            rtol=tolerance,
            atol=tolerance,
        )


@parametrize("dtype", ["float16", "bfloat16"])
@parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_layers_of_16_bits(kind: str, dtype: str) -> None:
    def program(torch: Any) -> Any:
        found = ran(torch, kind, {}, *CALLS["batched"], dtype)
        return [str(found[2][0].dtype), [each.float() for each in found[2]], found[3][0].float()]

    same_as_pytorch(program, rtol=0.05, atol=0.05)


@parametrize("lengths", [None, [2, 3, 1]])
@parametrize(
    ("kind", "settings"),
    [
        ("LSTM", {"bidirectional": True}),
        ("LSTM", {"proj_size": 1, "bidirectional": True, "bias": False}),
        ("GRU", {"bidirectional": True}),
        ("RNN", {"bidirectional": True}),
        ("RNN", {"nonlinearity": "relu", "bidirectional": True}),
    ],
)
def test_gradients_of_first_and_second_order(kind: str, settings: Any, lengths: Any) -> None:
    tinytorch.manual_seed(1)
    layer = getattr(nn, kind)(3, 2, dtype=tinytorch.float64, **settings)
    x = tinytorch.randn(3, 3, 3, dtype=tinytorch.float64, requires_grad=True)
    width = settings.get("proj_size", 2)
    h = tinytorch.randn(2, 3, width, dtype=tinytorch.float64, requires_grad=True)
    c = tinytorch.randn(2, 3, 2, dtype=tinytorch.float64, requires_grad=True)
    names = [name for name, _ in layer.named_parameters()]

    def run(x: Any, h: Any, c: Any, *weights: Any) -> Any:
        inputs = x
        if lengths is not None:
            inputs = rnn.pack_padded_sequence(x, lengths, enforce_sorted=False)
        states = (h, c) if kind == "LSTM" else h
        out, last = tinytorch.func.functional_call(layer, dict(zip(names, weights, strict=True)), (inputs, states))
        if lengths is not None:
            out, _ = rnn.pad_packed_sequence(out)
        return (out, *tensors_of(last))

    given = (x, h, c, *layer.parameters())
    assert gradcheck(run, given, fast_mode=True, check_forward_ad=True)
    assert gradgradcheck(run, given, fast_mode=True, atol=1e-4, check_fwd_over_rev=True)


@parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_second_derivatives_of_some_inputs_only(kind: str) -> None:
    def program(torch: Any) -> Any:
        torch.manual_seed(0)
        layer = getattr(torch.nn, kind)(2, 3, dtype=torch.float64)
        layer.weight_hh_l0.requires_grad_(False)
        x = torch.randn(4, 2, 2, dtype=torch.float64, requires_grad=True)
        out, _ = layer(x)
        (g,) = torch.autograd.grad(out[-1].sum(), x, create_graph=True)
        g.square().sum().backward()
        return [g, x.grad, [p.grad for p in layer.parameters()]]

    same_as_pytorch(program, rtol=1e-9, atol=1e-11)


@parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_training_goes_the_same_way(kind: str) -> None:
    def program(torch: Any) -> Any:
        torch.manual_seed(0)
        layer = getattr(torch.nn, kind)(3, 8, 2, dropout=0.25, batch_first=True)
        last = torch.nn.Linear(8, 4)
        params = [*layer.parameters(), *last.parameters()]
        optimizer = torch.optim.Adam(params, 0.01)
        x, y = torch.randn(5, 7, 3), torch.tensor([0, 1, 2, 3, 0])
        losses = []
        for _ in range(10):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(last(layer(x)[0][:, -1]), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        layer.eval()
        return losses, layer(x)[0], list(layer.state_dict())

    same_as_pytorch(program, rtol=1e-3, atol=1e-4)


def made(kind: str, *args: Any, **kwargs: Any) -> Any:
    return lambda torch: getattr(torch.nn, kind)(*args, **kwargs)


def shape(*sizes: int, **options: Any) -> Any:
    return lambda torch: torch.zeros(*sizes, **options)


def called(kind: str, x: Any, hx: Any = None, **settings: Any) -> Any:
    def program(torch: Any) -> Any:
        torch.manual_seed(0)
        states = [each(torch) for each in hx or ()]
        if kind.startswith("LSTM"):
            states = [tuple(states)] if states else []
        result = getattr(torch.nn, kind)(3, 4, **settings)(x(torch), *states)
        return [tuple(each.shape) for each in result] if isinstance(result, tuple) else result

    return program


MADE = {
    "dropout of one layer": made("LSTM", 2, 3, dropout=0.5),
    "dropout of 1.5": made("GRU", 2, 3, dropout=1.5),
    "dropout that is a bool": made("GRU", 2, 3, dropout=True),
    "bias that is a number": made("RNN", 2, 3, bias=1),
    "batch_first that is a number": made("LSTM", 2, 3, batch_first=1),
    "input_size 2.0": made("LSTM", 2.0, 3),
    "input_size 0": made("LSTM", 0, 3),
    "hidden_size 3.0": made("LSTM", 2, 3.0),
    "hidden_size 0": made("LSTM", 2, 0),
    "num_layers 0": made("LSTM", 2, 3, 0),
    "proj_size -1": made("LSTM", 2, 3, proj_size=-1),
    "proj_size 3": made("LSTM", 2, 3, proj_size=3),
    "proj_size of a GRU": made("GRU", 2, 3, proj_size=1),
    "proj_size of an RNN": made("RNN", 2, 3, proj_size=1),
    "unknown nonlinearity": made("RNN", 2, 3, nonlinearity="selu"),
    "nonlinearity by place": made("RNN", 2, 3, 2, "relu", False, True),
    "unknown mode": made("RNNBase", "MLP", 2, 3),
    "base": made("RNNBase", "LSTM", 2, 3),
    "cell": made("RNNCell", 2, 3, nonlinearity="relu"),
    "cell without bias": made("GRUCell", 2, 3, False),
}
REFUSED = {
    f"{kind}, {label}": program
    for kind in ("LSTM", "GRU", "RNN")
    for label, program in {
        "1-D": called(kind, shape(3)),
        "4-D": called(kind, shape(2, 2, 2, 3)),
        "features": called(kind, shape(5, 2, 4)),
        "dtype": called(kind, lambda torch: torch.zeros(5, 2, 3, dtype=torch.float64)),
        "no steps": called(kind, shape(0, 2, 3)),
        "batch of the state": called(kind, shape(5, 2, 3), [shape(1, 3, 4), shape(1, 3, 4)][: 1 + (kind == "LSTM")]),
        "size of the state": called(kind, shape(5, 2, 3), [shape(1, 2, 5), shape(1, 2, 4)][: 1 + (kind == "LSTM")]),
        "layers of the state": called(kind, shape(5, 2, 3), [shape(2, 2, 4), shape(2, 2, 4)][: 1 + (kind == "LSTM")]),
        "2-D state": called(kind, shape(5, 2, 3), [shape(1, 4), shape(1, 4)][: 1 + (kind == "LSTM")]),
        "3-D state": called(kind, shape(5, 3), [shape(1, 1, 4), shape(1, 1, 4)][: 1 + (kind == "LSTM")]),
    }.items()
} | {
    f"{kind}, {label}": program
    for kind in ("LSTMCell", "GRUCell", "RNNCell")
    for label, program in {
        "3-D": called(kind, shape(2, 2, 3)),
        "features": called(kind, shape(2, 4)),
        "batch": called(kind, shape(2, 3), [shape(3, 4), shape(3, 4)][: 1 + (kind == "LSTMCell")]),
        "size": called(kind, shape(2, 3), [shape(2, 5), shape(2, 5)][: 1 + (kind == "LSTMCell")]),
        "3-D state": called(kind, shape(2, 3), [shape(2, 2, 4), shape(2, 2, 4)][: 1 + (kind == "LSTMCell")]),
        "dtype": called(kind, lambda torch: torch.zeros(2, 3, dtype=torch.float64)),
    }.items()
}
REFUSED["RNNCell of another nonlinearity"] = called("RNNCell", shape(2, 3), nonlinearity="gelu")
REFUSED["c of LSTMCell"] = called("LSTMCell", shape(2, 3), [shape(2, 4), shape(2, 5)])


@parametrize("label", MADE)
def test_made_as_pytorchs(label: str) -> None:
    check(lambda torch: repr(MADE[label](torch)))


@parametrize("label", REFUSED)
def test_refused_as_by_pytorch(label: str) -> None:
    same_as_pytorch(REFUSED[label])


@parametrize("batched", [True, False])
@parametrize("given", [True, False])
@parametrize("kind", ["LSTMCell", "GRUCell", "RNNCell", "relu", "no bias"])
def test_cells_do_as_pytorchs(kind: str, given: bool, batched: bool) -> None:
    def program(torch: Any) -> Any:
        torch.manual_seed(2)
        if kind == "relu":
            cell = torch.nn.RNNCell(3, 4, nonlinearity="relu")
        elif kind == "no bias":
            cell = torch.nn.LSTMCell(3, 4, bias=False)
        else:
            cell = getattr(torch.nn, kind)(3, 4)
        leading = (2,) if batched else ()
        x = torch.randn(*leading, 3, requires_grad=True)
        states = [torch.randn(*leading, 4, requires_grad=True) for _ in range(2)]
        pair = kind in ("LSTMCell", "no bias")
        found = cell(x, *([tuple(states) if pair else states[0]] if given else []))
        for _ in range(2):
            found = cell(x, found)
        outs = tensors_of(found)
        sum(((k + 1) * out.square().sum() for k, out in enumerate(outs)), 0).backward()
        return [
            repr(cell), outs, x.grad, [each.grad for each in states],
            [(name, p, p.grad) for name, p in cell.named_parameters()],
        ]  # fmt: skip

    same_as_pytorch(program, rtol=2e-5, atol=1e-6)


def test_a_layer_does_what_its_cell_does_step_by_step() -> None:
    tinytorch.manual_seed(0)
    for kind in ("LSTM", "GRU", "RNN"):
        layer, cell = getattr(nn, kind)(3, 4), getattr(nn, kind + "Cell")(3, 4)
        cell.load_state_dict({k.removesuffix("_l0"): v for k, v in layer.state_dict().items()})
        x, state = tinytorch.randn(5, 2, 3), None
        out, last = layer(x)
        for step, expected in zip(x, out, strict=True):
            state = cell(step, state)
            tinytorch.testing.assert_close(tensors_of(state)[0], expected)
        for mine, other in zip(tensors_of(state), tensors_of(last), strict=True):
            tinytorch.testing.assert_close(mine, other[0])


@parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_a_wide_batch_is_shared_among_threads(kind: str) -> None:
    threads = tinytorch.get_num_threads()
    tinytorch.set_num_threads(2)
    try:
        layer = getattr(nn, kind)(16, 256)
        x = tinytorch.randn(9, 65, 16, requires_grad=True)
        found = layer(x)[0]
        found.sin().sum().backward()
        for k in (0, 32, 33, 64):
            part = x.detach()[:, k : k + 1].requires_grad_()
            expected = layer(part)[0]
            expected.sin().sum().backward()
            assert tinytorch.allclose(found[:, k : k + 1], expected, atol=1e-5)
            assert tinytorch.allclose(x.grad[:, k : k + 1], part.grad, atol=1e-5)
    finally:
        tinytorch.set_num_threads(threads)


@parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_saturated_gates(kind: str) -> None:
    def program(torch: Any) -> Any:
        torch.manual_seed(0)
        layer = getattr(torch.nn, kind)(2, 3)
        x = (torch.randn(4, 2, 2) * 1e4).requires_grad_()
        out, _ = layer(x)
        out.sum().backward()
        return out, x.grad

    same_as_pytorch(program, rtol=1e-4, atol=1e-6)


def test_weights() -> None:
    layer = nn.LSTM(2, 3, 2, bidirectional=True)
    assert len(layer._flat_weights) == 16
    assert all(mine is other for mine, other in zip(layer._flat_weights, layer.parameters(), strict=True))
    assert [len(each) for each in layer.all_weights] == [4] * 4
    assert layer.flatten_parameters() is None
    layer.weight_ih_l0 = nn.Parameter(tinytorch.zeros(12, 2))
    assert layer._flat_weights[0] is layer.weight_ih_l0
    assert layer.double()._flat_weights[0].dtype == tinytorch.float64
    copied = copy.deepcopy(layer)
    assert copied._flat_weights[0] is copied.weight_ih_l0 is not layer.weight_ih_l0
    file = io.BytesIO()
    tinytorch.save(layer.state_dict(), file)
    file.seek(0)
    copied.load_state_dict(tinytorch.load(file))
    x = tinytorch.randn(4, 3, 2, dtype=tinytorch.float64)
    assert tinytorch.equal(copied(x)[0], layer(x)[0])


def test_the_backward_of_a_layer_notices_changed_weights() -> None:
    layer = nn.GRU(2, 3)
    out, _ = layer(tinytorch.ones(4, 1, 2))
    with tinytorch.no_grad():
        layer.weight_hh_l0.add_(1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


# Packed and padded sequences ----------------------------------------------------------------------


def sequences(torch: Any, *lengths: int, **options: Any) -> list[Any]:
    return [torch.arange(float(2 * n), **options).reshape(n, 2) + 10 * k for k, n in enumerate(lengths)]


def packed(torch: Any, *lengths: int, **options: Any) -> Any:
    return torch.nn.utils.rnn.pack_sequence(sequences(torch, *lengths), **options)


def padded(torch: Any, *lengths: Any, **options: Any) -> Any:
    x = torch.arange(24.0).reshape(4, 3, 2)
    return list(torch.nn.utils.rnn.pack_padded_sequence(x, *lengths, **options))


PACKING = {
    "sorted": lambda t: list(packed(t, 3, 2, 2)),
    "not sorted": lambda t: packed(t, 2, 3),
    "sorted here": lambda t: list(packed(t, 2, 4, 1, 3, enforce_sorted=False)),
    "repr": lambda t: repr(packed(t, 2, 1)),
    "padded": lambda t: padded(t, [4, 2, 1]),
    "padded, a tensor": lambda t: padded(t, t.tensor([4, 4, 1])),
    "padded, int32": lambda t: padded(t, t.tensor([4, 4, 1], dtype=t.int32)),
    "padded, batch first": lambda t: padded(t, [2, 3, 1, 1], True, False),
    "padded, too few lengths": lambda t: padded(t, [4, 2]),
    "padded, length 0": lambda t: padded(t, [4, 2, 0]),
    "padded, not sorted": lambda t: padded(t, [1, 2, 2]),
    "padded, nothing": lambda t: t.nn.utils.rnn.pack_padded_sequence(t.zeros(0, 2), [1, 1]),
    "padded, 2-D lengths": lambda t: padded(t, t.tensor([[4, 2, 1]])),
    "padded, 1-D": lambda t: t.nn.utils.rnn.pack_padded_sequence(t.zeros(3), [1]),
    "unpacked": lambda t: t.nn.utils.rnn.unpack_sequence(packed(t, 2, 3, enforce_sorted=False)),
    "padded again": lambda t: t.nn.utils.rnn.pad_packed_sequence(packed(t, 3, 1)),
    "padded again, batch first": lambda t: t.nn.utils.rnn.pad_packed_sequence(
        packed(t, 1, 3, 2, enforce_sorted=False), True, -1.5, 5
    ),
    "padded again, too short": lambda t: t.nn.utils.rnn.pad_packed_sequence(packed(t, 3, 1), total_length=2),
    "pad": lambda t: t.nn.utils.rnn.pad_sequence(sequences(t, 2, 3, 1)),
    "pad, batch first": lambda t: t.nn.utils.rnn.pad_sequence(sequences(t, 2, 3, 1), True, 0.5),
    "pad left": lambda t: t.nn.utils.rnn.pad_sequence(sequences(t, 2, 3), padding_side="left"),
    "pad up": lambda t: t.nn.utils.rnn.pad_sequence(sequences(t, 2, 3), padding_side="up"),
    "pad a tensor": lambda t: t.nn.utils.rnn.pad_sequence(t.ones(2, 3)),
    "pad a generator": lambda t: t.nn.utils.rnn.pad_sequence(t.ones(n) for n in (1, 2)),
    "pad integers": lambda t: t.nn.utils.rnn.pad_sequence([t.tensor([1, 2]), t.tensor([3])], True, 7),
    "pad of two dtypes": lambda t: t.nn.utils.rnn.pad_sequence([t.ones(2), t.ones(1).double()]),
    "pad an empty one": lambda t: t.nn.utils.rnn.pad_sequence([t.ones(2), t.ones(0)]),
    "pad nothing": lambda t: t.nn.utils.rnn.pad_sequence([]),
    "pad a number": lambda t: t.nn.utils.rnn.pad_sequence(3),
    "pad 0-d": lambda t: t.nn.utils.rnn.pad_sequence([t.tensor(1.0), t.tensor(2.0)]),
    "pad what does not fit": lambda t: t.nn.utils.rnn.pad_sequence([t.ones(2, 2), t.ones(2, 3)]),
    "unpad": lambda t: t.nn.utils.rnn.unpad_sequence(t.ones(3, 2), t.tensor([3, 1])),
    "invert": lambda t: t.nn.utils.rnn.invert_permutation(t.tensor([2, 0, 1])),
    "invert None": lambda t: t.nn.utils.rnn.invert_permutation(None),
    "made of a pair": lambda t: list(t.nn.utils.rnn.PackedSequence((t.ones(2), t.tensor([2])))),
    "made of indices": lambda t: list(t.nn.utils.rnn.PackedSequence(t.ones(2), t.tensor([2]), t.tensor([1, 0]))),
    "made of data": lambda t: t.nn.utils.rnn.PackedSequence(t.ones(2)),
    "to": lambda t: [str(each.data.dtype) for each in conversions(packed(t, 2, 1), t)],
    "where": lambda t: [packed(t, 1).is_cuda, packed(t, 1).is_pinned()],
    "gradients": lambda t: gradients(t),
}


def conversions(x: Any, torch: Any) -> list[Any]:
    assert x.to(torch.float32) is x is x.float() is x.cpu()
    made = [x.to(torch.int32), x.to("cpu", torch.float64), x.double(), x.half(), x.long(), x.int()]
    made += [x.short(), x.char(), x.byte(), x.cpu(dtype=torch.float64)]
    assert all(isinstance(each, torch.nn.utils.rnn.PackedSequence) for each in made)
    return made


def gradients(torch: Any) -> Any:
    x = torch.arange(24.0).reshape(4, 3, 2).requires_grad_()
    utils = torch.nn.utils.rnn
    found = utils.pack_padded_sequence(x, [2, 4, 1], enforce_sorted=False)
    out, _ = utils.pad_packed_sequence(utils.PackedSequence(found.data.square(), *found[1:]))
    out.square().sum().backward()
    return x.grad, type(found.data.grad_fn).__name__, type(out.grad_fn).__name__


@parametrize("label", PACKING)
def test_packing_as_pytorchs(label: str) -> None:
    same_as_pytorch(PACKING[label])


def test_packed_sequences_are_named_tuples() -> None:
    found = packed(tinytorch, 2, 1)
    assert found._fields == ("data", "batch_sizes", "sorted_indices", "unsorted_indices")
    assert isinstance(found, tuple)
    assert found.sorted_indices is None


def test_functions_refuse_as_pytorchs() -> None:
    def lstm(torch: Any) -> tuple[Any, ...]:
        h = torch.zeros(1, 2, 4)
        weights = [torch.zeros(16, n) for n in (3, 4)] + [torch.zeros(16)] * 2
        return torch.zeros(5, 2, 3), (h, h), weights

    def functions(change: Any) -> Any:
        return lambda torch: [
            each.shape for each in torch.lstm(*change(torch, *lstm(torch)), 1, 0.0, True, False, False)
        ]

    same_as_pytorch(functions(lambda t, x, hx, w: (x, hx, w, True)))
    same_as_pytorch(functions(lambda t, x, hx, w: (x, hx[:1], w, True)))
    same_as_pytorch(functions(lambda t, x, hx, w: (x, hx, w[:3], True)))
    same_as_pytorch(functions(lambda t, x, hx, w: (x.double(), hx, w, True)))
    same_as_pytorch(lambda torch: torch.gru())
    same_as_pytorch(lambda torch: torch.lstm_cell(torch.ones(1, 1), torch.ones(1, 1), None, None))


def test_memory_of_one_pass_only() -> None:
    """A second backward through a layer is an error, as for every op that saved tensors."""
    layer = nn.LSTM(2, 3)
    loss = layer(tinytorch.ones(4, 1, 2))[0].sum()
    loss.backward()
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()


def test_the_bound_of_the_parameters() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        layer = nn.GRU(50, 100)
    for p in layer.parameters():
        assert 0.09 < p.abs().max().item() <= 1 / math.sqrt(100)
    assert np.isfinite(layer(tinytorch.ones(2, 50))[0].detach().numpy()).all()
