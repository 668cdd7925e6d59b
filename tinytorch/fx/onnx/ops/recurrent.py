"""LSTM, GRU and RNN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tinytorch.fx.onnx.builder import Builder, Unsaid, Value, says


def _reordered(b: Builder, x: Value, order: Sequence[int]) -> Any:
    """Return the gates' parts of a parameter in another order."""
    if len(order) == 1:
        return x
    parts = b.op("Split", x, outputs=len(order), axis=0, num_outputs=len(order))
    return b.op("Concat", *[parts[k] for k in order], axis=0)


def _layers(
    b: Builder, kind: str, order: Sequence[int], x: Value, states: Sequence[Value], params: Sequence[Value],
    biases: bool, count: int, both: bool, batch_first: bool, **options: Any,
) -> tuple[str, ...]:  # fmt: skip
    """Return the outputs of all layers, and their last states.

    Args:
        kind: the operator.
        order: which of PyTorch's gates stands at each of ONNX's places.
        x: (batch, time, features) if `batch_first`, else (time, batch, features).
        states: the first states, each of shape (layers * directions, batch, width).
        params: the weights of the input and of the state, and the biases, of each layer and direction.
        biases: whether there are biases.
        count: the number of layers.
        both: whether they run in both directions.
    """
    if x.ndim != 3:
        raise Unsaid("an input without a batch")
    directions, each = 1 + both, 2 + 2 * biases
    if len(params) != count * directions * each:
        raise Unsaid("projections of the state")
    y = b.op("Transpose", x, perm=[1, 0, 2]) if batch_first else x.name
    width = params[1].shape[1]
    last: list[list[str]] = [[] for _ in states]
    for layer in range(count):
        weights: list[list[Any]] = [[], [], []]
        for k in range(directions):
            own = params[(layer * directions + k) * each :][:each]
            parts = [_reordered(b, p, order) for p in own]
            weights[0].append(b.unsqueezed(parts[0], 0))
            weights[1].append(b.unsqueezed(parts[1], 0))
            if biases:
                weights[2].append(b.unsqueezed(b.op("Concat", parts[2], parts[3], axis=0), 0))
        w, r, bias = [
            None if not part else part[0] if len(part) == 1 else b.op("Concat", *part, axis=0) for part in weights
        ]  # fmt: skip
        first = layer * directions
        starts = [
            b.sliced(state, 0, first, first + directions) if count > 1 else state for state in states
        ]  # fmt: skip
        results = b.op(
            kind, y, w, r, bias, None, *starts, outputs=1 + len(states), hidden_size=width,
            direction="bidirectional" if both else "forward", **options,
        )  # fmt: skip
        for known, state in zip(last, results[1:], strict=True):
            known.append(state)
        if both:  # (time, directions, batch, width)
            y = b.op("Reshape", b.op("Transpose", results[0], perm=[0, 2, 1, 3]), np.array([0, 0, -1]))
        else:
            y = b.squeezed(results[0], 1)
    y = b.op("Transpose", y, perm=[1, 0, 2]) if batch_first else y
    return y, *[part[0] if len(part) == 1 else b.op("Concat", *part, axis=0) for part in last]


def _check(arguments: tuple[Any, ...]) -> None:
    """Raise Unsaid for the form of a call that has packed sequences, or that draws random numbers."""
    _, second, third, *_ = arguments
    if isinstance(third, bool) or not isinstance(arguments[3], bool) or not isinstance(second, (Value, tuple, list)):
        raise Unsaid("packed sequences")
    if arguments[5] and arguments[6]:
        raise Unsaid("dropout between the layers draws random numbers")


@says("lstm")
def _lstm(b: Builder, *args: Any) -> Any:
    if isinstance(args[1], Value):
        raise Unsaid("packed sequences")
    _check(args)
    x, states, params, biases, count, _, _, both, batch_first = args
    return _layers(b, "LSTM", (0, 3, 1, 2), x, states, params, biases, count, both, batch_first)


@says("gru")
def _gru(b: Builder, *args: Any) -> Any:
    _check(args)
    x, state, params, biases, count, _, _, both, batch_first = args
    return _layers(b, "GRU", (1, 0, 2), x, [state], params, biases, count, both, batch_first, linear_before_reset=1)


def _simple(name: str, activation: str) -> None:
    @says(name)
    def write(b: Builder, *args: Any) -> Any:
        _check(args)
        x, state, params, biases, count, _, _, both, batch_first = args
        kinds = [activation] * (1 + both)
        return _layers(b, "RNN", (0,), x, [state], params, biases, count, both, batch_first, activations=kinds)


_simple("rnn_tanh", "Tanh")
_simple("rnn_relu", "Relu")


def _cell(b: Builder, kind: str, order: Any, x: Value, states: Any, params: Any, **options: Any) -> Any:
    given = [p for p in params if p is not None]
    biases = len(given) == 4
    if x.ndim != 2:
        raise Unsaid("an input without a batch")
    steps = Value(b.unsqueezed(x, 0), (1, *x.shape), x.dtype)
    starts = [Value(b.unsqueezed(s, 0), (1, *s.shape), s.dtype) for s in states]
    _, *last = _layers(b, kind, order, steps, starts, given, biases, 1, False, False, **options)
    return [b.squeezed(state, 0) for state in last]


@says("lstm_cell")
def _lstm_cell(b: Builder, x: Value, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
    return tuple(_cell(b, "LSTM", (0, 3, 1, 2), x, hx, (w_ih, w_hh, b_ih, b_hh)))


@says("gru_cell")
def _gru_cell(b: Builder, x: Value, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
    return _cell(b, "GRU", (1, 0, 2), x, [hx], (w_ih, w_hh, b_ih, b_hh), linear_before_reset=1)[0]


def _simple_cell(name: str, activation: str) -> None:
    @says(name)
    def write(b: Builder, x: Value, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
        return _cell(b, "RNN", (0,), x, [hx], (w_ih, w_hh, b_ih, b_hh), activations=[activation])[0]


_simple_cell("rnn_tanh_cell", "Tanh")
_simple_cell("rnn_relu_cell", "Relu")

__all__: list[str] = []
