"""LSTM, GRU and RNN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tinytorch.fx.onnx.builder import Builder, UnsupportedCall, Value, rule, torch


class _Kind(NamedTuple):
    """An operator: its name, which of PyTorch's gates stands at each of ONNX's places, and options."""

    name: str
    order: tuple[int, ...]
    options: dict[str, Any]


_LSTM = _Kind("LSTM", (0, 3, 1, 2), {})
_GRU = _Kind("GRU", (1, 0, 2), {"linear_before_reset": 1})


def _joined(parts: Sequence[Any]) -> Any:
    return parts[0] if len(parts) == 1 else parts[0].builder.concat(*parts, axis=0)


def _reordered(x: Value, order: Sequence[int]) -> Any:
    """Return the gates' parts of a parameter in another order."""
    if len(order) == 1:
        return x
    parts = x.Split(outputs=len(order), axis=0, num_outputs=len(order))
    return _joined([parts[k] for k in order])


def _layers(
    kind: _Kind, x: Value, states: Sequence[Value], params: Sequence[Value], biases: bool, count: int, both: bool,
    batch_first: bool,
) -> tuple[Value, ...]:  # fmt: skip
    """Return the outputs of all layers, and their last states.

    Args:
        kind: the operator.
        x: (batch, time, features) if `batch_first`, else (time, batch, features).
        states: the first states, each of shape (layers * directions, batch, width).
        params: the weights of the input and of the state, and the biases, of each layer and direction.
        biases: whether there are biases.
        count: the number of layers.
        both: whether they run in both directions.
    """
    if x.ndim != 3:
        raise UnsupportedCall("an input without a batch")
    directions, each = 1 + both, 2 + 2 * biases
    if len(params) != count * directions * each:
        raise UnsupportedCall("projections of the state")
    y: Any = x.Transpose(perm=[1, 0, 2]) if batch_first else x
    options = {name: [value] * directions if name == "activations" else value for name, value in kind.options.items()}
    last: list[list[Value]] = [[] for _ in states]
    for layer in range(count):
        first = layer * directions
        weights: list[list[Value]] = [[], [], []]  # of the input, of the state, and the biases
        for k in range(directions):
            own = [_reordered(p, kind.order) for p in params[(first + k) * each :][:each]]
            for known, parts in zip(weights, (own[:1], own[1:2], own[2:]), strict=True):
                known += [_joined(parts).unsqueeze(0)] if parts else []
        w, r, bias = [_joined(part) if part else None for part in weights]
        starts = [state.slice(0, first, first + directions) if count > 1 else state for state in states]
        results = x.builder.node(
            kind.name, y, w, r, bias, None, *starts, outputs=1 + len(states), hidden_size=params[1].shape[1],
            direction="bidirectional" if both else "forward", **options,
        )  # fmt: skip
        for states_of_layers, state in zip(last, results[1:], strict=True):
            states_of_layers.append(state)
        if both:  # (time, directions, batch, width)
            y = results[0].Transpose(perm=[0, 2, 1, 3]).Reshape([0, 0, -1])
        else:
            y = results[0].squeeze(1)
    return y.Transpose(perm=[1, 0, 2]) if batch_first else y, *map(_joined, last)


def _layered(function: Any, kind: _Kind) -> None:
    @rule(function)
    def write(b: Builder, x: Value, states: Any, params: Any, *options: Any) -> Any:
        packed = isinstance(states, Value) if kind is _LSTM else not isinstance(states, (Value, tuple, list))
        if packed or isinstance(params, bool) or not isinstance(options[0], bool):
            raise UnsupportedCall("packed sequences")
        biases, count, dropout, training, both, batch_first = options
        if dropout and training:
            raise UnsupportedCall("dropout between the layers draws random numbers")
        given = [states] if isinstance(states, Value) else states
        return _layers(kind, x, given, params, biases, count, both, batch_first)


def _cell(function: Any, kind: _Kind) -> None:
    @rule(function)
    def write(b: Builder, x: Value, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
        params = [p for p in (w_ih, w_hh, b_ih, b_hh) if p is not None]
        if x.ndim != 2:
            raise UnsupportedCall("an input without a batch")
        steps = x.unsqueeze(0)
        starts = [s.unsqueeze(0) for s in ([hx] if isinstance(hx, Value) else hx)]
        _, *last = _layers(kind, steps, starts, params, len(params) == 4, 1, False, False)
        results = tuple([state.squeeze(0) for state in last])
        return results if kind is _LSTM else results[0]


for _layer, _step, _kind in (
    (torch.lstm, torch.lstm_cell, _LSTM),
    (torch.gru, torch.gru_cell, _GRU),
    (torch.rnn_tanh, torch.rnn_tanh_cell, _Kind("RNN", (0,), {"activations": "Tanh"})),
    (torch.rnn_relu, torch.rnn_relu_cell, _Kind("RNN", (0,), {"activations": "Relu"})),
):
    _layered(_layer, _kind)
    _cell(_step, _kind)
