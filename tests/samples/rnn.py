"""Samples of recurrent layers and cells, and of padded sequences.

Packed sequences and projections are in `tests/nn/test_rnn.py`: PyTorch misreads batch sizes that are not contiguous,
and warns of projections.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.samples import Sample, integers, normal, sample

FEATURES, HIDDEN, BATCH, STEPS = 3, 2, 2, 2


def weights(gates: int, layers: int = 1, directions: int = 1, biases: bool = True) -> list[np.ndarray]:
    """Return a layer's parameters, in the order in which PyTorch takes them."""
    found: list[np.ndarray] = []
    rows = gates * HIDDEN
    for layer in range(layers):
        for direction in range(directions):
            features = FEATURES if layer == 0 else HIDDEN * directions
            seed = 10 * layer + 5 * direction
            found += [normal(rows, features, seed=seed), normal(rows, HIDDEN, seed=seed + 1)]
            if biases:
                found += [normal(rows, seed=seed + 2), normal(rows, seed=seed + 3)]
    return [each * 0.5 for each in found]


def before(count: int, seed: int = 0) -> np.ndarray:
    """Return a state before the first step."""
    return normal(count, BATCH, HIDDEN, seed=50 + seed)


def layers(name: str, gates: int) -> list[Sample]:
    """Return samples of `lstm`, `gru`, `rnn_tanh` or `rnn_relu`."""

    def state(count: int) -> Any:
        h = before(count)
        return (h, before(count, seed=1)) if name == "lstm" else h

    x = normal(STEPS, BATCH, FEATURES)
    several = weights(gates, 2, 2)
    return [
        sample(name, x, state(1), weights(gates), True, 1, 0.0, True, False, False),
        sample(name, x, state(1), weights(gates, biases=False), False, 1, 0.0, True, False, False),
        sample(name, x, state(4), several, True, 2, 0.0, False, True, False),
        sample(name, x.swapaxes(0, 1), state(4), several, True, 2, 0.5, False, True, True),
        sample(name, x[:1], state(2), weights(gates, directions=2), True, 1, 0.0, True, True, False),
    ]


def cells(name: str, gates: int) -> list[Sample]:
    """Return samples of a cell."""
    x, h = normal(BATCH, FEATURES), normal(BATCH, HIDDEN)
    state: Any = (h, normal(BATCH, HIDDEN, seed=1)) if name == "lstm_cell" else h
    return [sample(name, x, state, *weights(gates)), sample(name, x, state, *weights(gates, biases=False))]


SEQUENCES = [normal(3, 2), normal(1, 2), normal(2, 2)]
PADDING = [
    sample("nn.utils.rnn.pad_sequence", SEQUENCES),
    sample("nn.utils.rnn.pad_sequence", SEQUENCES, True, 2.5),
    sample("nn.utils.rnn.pad_sequence", SEQUENCES, True, -1.0, "left"),
    sample("nn.utils.rnn.pad_sequence", [integers(2), integers(4)]),
]

SAMPLES: list[Sample] = [
    *layers("lstm", 4),
    *layers("gru", 3),
    *layers("rnn_tanh", 1),
    *layers("rnn_relu", 1),
    *cells("lstm_cell", 4),
    *cells("gru_cell", 3),
    *cells("rnn_tanh_cell", 1),
    *cells("rnn_relu_cell", 1),
    *PADDING,
]
