"""Recurrent layers: one layer in one direction over whole sequences, and its gradients.

The features are the first dimension and the batch the last: a step's gates are a matrix (gates, batch). So each gate is
one contiguous block, which ufuncs compute in place, and the weights are the first factor of a step's product.

The inputs of all steps form one matrix. Its columns are the sequences of the first step, then of the second, and so on;
its rows are

    the input's features,  ones (for the bias),  the hidden state before the step.

The product of the weights `[W_ih | b | W_hh]` with a step's columns gives the gates, and one product of the gates'
gradients in all steps with the whole matrix gives the gradients of all weights and biases.

`widths` says how many sequences each step has. In a packed sequence they can only decrease: sequences end. In the
reverse direction sequences begin at different steps.

Sources: Hochreiter and Schmidhuber, "Long short-term memory", 1997; Gers, Schmidhuber and Cummins, "Learning to
    forget", 2000. Cho et al., "Learning phrase representations using RNN encoder-decoder", 2014 (GRU, here with the
    reset gate after the product, as in cuDNN). Sak, Senior and Beaufays, "Long short-term memory based recurrent neural
    network architectures for large vocabulary speech recognition", 2014 (the projection). Werbos, "Backpropagation
    through time", 1990.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from .activation import widened
from .dtypes import from_numpy_dtype
from .limits import fits
from .meta import check_all
from .native import twin
from .parallel import get_threads
from .products import product

Array = Any


def spans(widths: Sequence[int], reverse: bool) -> list[tuple[int, int]]:
    """Return the columns (begin, end) of each step, in the order of processing."""
    columns = [(end - width, end) for end, width in zip(accumulate(widths), widths, strict=True)]
    return columns[::-1] if reverse else columns


# Elements of a step's state, and steps, from which on two threads of the twin take half of the sequences each through
# all steps.
_WIDE, _LONG = 1 << 13, 8


def _bounds(widths: Sequence[int], size: int) -> Array:
    """Return the bounds [0, …, batch] of the parts of the batch that threads compute; states have `size` elements."""
    batch = max(widths)
    large = batch > 1 and batch * size >= _WIDE and len(widths) >= _LONG
    cut = get_threads() == 2 and large and min(widths) == batch
    return np.array([0, (batch + 1) // 2, batch] if cut else [0, batch])


def _parts(bounds: Array, steps: list[tuple[int, int]]) -> Iterator[tuple[int, int, list[tuple[int, int]]]]:
    """Yield the parts of the batch: the first sequence, the last one, and the columns of each step."""
    for low, high in pairwise(bounds.tolist()):
        yield low, high, [(begin + low, min(begin + high, end)) for begin, end in steps]


def _empty(like: Array, *shape: int) -> Array:
    return np.empty_like(like, order="C", shape=shape)


def _block(flat: Array, rows: int, begin: int, end: int) -> Array:
    """Return the contiguous matrix of `rows` rows of one step, in memory that holds those of all steps."""
    return flat[rows * begin : rows * end].reshape(rows, end - begin)


def _advanced(state: Array, width: int, initial: Array, final: Array) -> Array:
    """Return the state of the next step, which has `width` columns, given that of a step.

    Columns of sequences that begin come from `initial`, those of sequences that end are copied to `final`.
    """
    had = state.shape[1]
    if width == had:
        return state
    final[:, width:had] = state[:, width:]
    return np.concatenate([state[:, :width], initial[:, had:width]], 1)


def _with_inputs(x: Array, h0: Array, first: tuple[int, int]) -> Array:
    """Return the matrix of all steps' inputs, in which only the hidden state of the first step is filled in."""
    features = x.shape[-1]
    columns = x.shape[0] * x.shape[1] if x.ndim == 3 else x.shape[0]
    matrix = _empty(x, features + 1 + h0.shape[1], columns)
    if x.ndim == 3:
        matrix[:features].reshape(features, *x.shape[:2])[...] = x.transpose(2, 0, 1)
    else:
        matrix[:features] = x.T
    matrix[features] = 1
    begin, end = first
    matrix[features + 1 :, begin:end] = h0[: end - begin].T
    return matrix


def _or_zeros(x: Array | None, like: Array, *shape: int) -> Array:
    return np.zeros_like(like, order="C", shape=shape) if x is None else widened(x)


def _of_inputs(
    slopes: Array, recurrent: Array, x: Array, matrix: Array, w_ih: Array, biased: bool, needs: Sequence[bool]
) -> list[Array]:
    """Return the gradients of x, W_ih, W_hh, b_ih and b_hh, from those of the gates of all steps.

    Args:
        slopes: the gradients of the gates before their nonlinearity, (gates, columns), with respect to the products
            with the input.
        recurrent: the same with respect to the products with the hidden state; often the same array.
        matrix: all steps' inputs.
        biased: whether there are biases.
        needs: which of the gradients of x, the weights and the biases are needed.
    """
    features = x.shape[-1]
    grads: list[Array] = [None] * 5
    if needs[0]:
        grads[0] = product(slopes.T, w_ih).reshape(x.shape)
    if recurrent is slopes:
        if any(needs[1:]):
            whole = product(slopes, matrix.T)
            from_input, from_state = whole[:, : features + 1], whole[:, features:]
    else:
        if needs[1] or needs[3]:
            from_input = product(slopes, matrix[: features + 1].T)
        if needs[2] or needs[4]:
            from_state = product(recurrent, matrix[features:].T)
    if needs[1]:
        grads[1] = np.ascontiguousarray(from_input[:, :features], like=x)
    if needs[2]:
        grads[2] = np.ascontiguousarray(from_state[:, 1:], like=x)
    if biased and needs[3]:
        grads[3] = from_input[:, features].copy()
    if biased and needs[4]:
        grads[4] = from_state[:, 0].copy()
    return grads


# LSTM ---------------------------------------------------------------------------------------------


@twin
def lstm_weights(w_ih: Array, w_hh: Array, b_ih: Array, b_hh: Array) -> Array:
    """Return `[W_ih | b | W_hh]` in the order i, f, o, g, the first three negated, as the sigmoid needs exp(-x)."""
    features, size = w_ih.shape[1], w_hh.shape[0] // 4
    whole = _empty(w_ih, 4 * size, features + 1 + w_hh.shape[1])
    # PyTorch's order is i, f, g, o.
    places = ((0, 0, 2, np.negative), (2, 3, 1, np.negative), (3, 2, 1, np.positive))
    for to, start, count, put in places:
        rows = slice(start * size, (start + count) * size)
        into = whole[to * size : (to + count) * size]
        put(w_ih[rows], out=into[:, :features])
        put(w_hh[rows], out=into[:, features + 1 :])
        if b_ih is None:
            into[:, features] = 0
        else:
            put(b_ih[rows] + b_hh[rows], out=into[:, features])
    return whole


def lstm_layer(
    x: Array, h0: Array, c0: Array, w_ih: Array, w_hh: Array, b_ih: Array, b_hh: Array, w_hr: Array,
    widths: Sequence[int], reverse: bool,
) -> tuple[Array, ...]:  # fmt: skip
    """Return a layer's output, its last states h and c, and what `lstm_grad` needs.

    Args:
        x: (steps, batch, features), or of packed sequences (columns, features).
        h0, c0: (batch, hidden), the states before the first step.
        w_ih, w_hh, b_ih, b_hh: weights and biases (or None) of the gates i, f, g, o.
        w_hr: the projection of the hidden state, or None.
        widths: how many sequences each step has.
        reverse: begin with the last step.
    """
    dtype, leading = x.dtype, x.shape[:-1]
    check_all(x, h0, c0, w_ih, w_hh, b_ih, b_hh, w_hr)
    x, h0, c0, w_ih, w_hh = (widened(array) for array in (x, h0, c0, w_ih, w_hh))
    if b_ih is not None:
        b_ih, b_hh = widened(b_ih), widened(b_hh)
    w_hr = None if w_hr is None else widened(w_hr)
    size = w_hh.shape[0] // 4
    matrix = _with_inputs(x, h0, spans(widths, reverse)[0])
    weights, bounds = lstm_weights(w_ih, w_hh, b_ih, b_hh), _bounds(widths, size)
    columns = matrix.shape[1]
    gates = _empty(x, 4 * size * columns)
    before, squashed = _empty(x, size * columns), _empty(x, size * columns)
    out, h_n, c_n = _empty(x, columns, h0.shape[1]), _empty(x, *h0.shape), _empty(x, *c0.shape)
    lstm_steps(weights, w_hr, h0, c0, widths, reverse, bounds, matrix, gates, before, squashed, out, h_n, c_n)
    results = (out.reshape(*leading, out.shape[1]), h_n, c_n)
    return (*[array.astype(dtype, copy=False) for array in results], matrix, gates, before, squashed, bounds)


@twin
def lstm_steps(
    weights: Array, w_hr: Array | None, h0: Array, c0: Array, widths: Sequence[int], reverse: bool, bounds: Array,
    matrix: Array, gates: Array, before: Array, squashed: Array, out: Array, h_n: Array, c_n: Array,
) -> None:  # fmt: skip
    """Compute the steps of `lstm_layer`, and fill in the hidden states in the matrix of their inputs.

    Args:
        weights: (4 * size, rows of the matrix), the rows of i, f and o negated.
        bounds: the bounds of the parts of the batch; the steps of each part are contiguous in memory.
        matrix: (features + 1 + hidden, columns).
        gates, before, squashed: outputs: i, f, o and n of all steps, c before each step, and tanh(c) after it.
        out, h_n, c_n: outputs: the hidden states of all steps, (columns, hidden), and the last states.
        the others: as for `lstm_layer`.
    """
    size, hidden = c0.shape[1], matrix[matrix.shape[0] - h0.shape[1] :]
    for low, high, steps in _parts(bounds, spans(widths, reverse)):
        begin, end = steps[0]
        c = c0[low : low + end - begin].T
        for (begin, end), (first, last) in zip(steps, [*steps[1:], (0, 0)], strict=True):
            four, t = _block(gates, 4 * size, begin, end), _block(squashed, size, begin, end)
            _block(before, size, begin, end)[...] = c
            np.matmul(weights, matrix[:, begin:end], out=four)
            np.reciprocal(np.exp(four[: 3 * size]) + 1, out=four[: 3 * size])
            np.tanh(four[3 * size :], out=four[3 * size :])
            i, f, o, n = four.reshape(4, size, end - begin)
            c = f * c + i * n
            np.tanh(c, out=t)
            h = o * t if w_hr is None else np.matmul(w_hr, o * t)
            out[begin:end] = h.T
            c = _advanced(c, last - first, c0[low:high].T, c_n[low:high].T)
            hidden[:, first:last] = _advanced(h, last - first, h0[low:high].T, h_n[low:high].T)


def lstm_grad(
    g_out: Array | None, g_h: Array | None, g_c: Array | None, needs: Sequence[bool], x: Array, w_ih: Array,
    w_hh: Array, biased: bool, w_hr: Array | None, widths: Sequence[int], reverse: bool, matrix: Array, gates: Array,
    before: Array, squashed: Array, bounds: Array,
) -> list[Array | None]:  # fmt: skip
    """Return the gradients of `lstm_layer`'s x, h0, c0, W_ih, W_hh, b_ih, b_hh and W_hr, None where not needed.

    Args:
        g_out, g_h, g_c: the gradients of the output and of the last h and c, or None.
        needs: which of the eight are needed.
        biased: whether there are biases.
        the others: as for `lstm_layer`, and what it returned.
    """
    w_ih, w_hh = widened(w_ih), widened(w_hh)
    size, width, columns = w_hh.shape[0] // 4, w_hh.shape[1], matrix.shape[1]
    batch = max(widths)
    g_out = None if g_out is None else g_out.astype(matrix.dtype, "C", copy=False).reshape(columns, width)
    g_h, g_c = (_or_zeros(grad, matrix, batch, n) for grad, n in ((g_h, width), (g_c, size)))
    grad_h0, grad_c0 = _empty(matrix, batch, width), _empty(matrix, batch, size)
    slopes = _empty(matrix, 4 * size, columns)
    projection = None
    if w_hr is not None:
        projection = widened(w_hr), _empty(matrix, size, columns), _empty(matrix, width, columns)
    lstm_steps_grad(
        w_hh, projection, g_out, g_h, g_c, widths, reverse, bounds, gates, before, squashed, slopes, grad_h0, grad_c0
    )
    grads = _of_inputs(slopes, slopes, x, matrix, w_ih, biased, (needs[0], *needs[3:7]))
    grad_w_hr = product(projection[2], projection[1].T) if needs[7] and projection else None
    first = [grad if need else None for grad, need in zip((grad_h0, grad_c0), needs[1:3], strict=True)]
    return [grads[0], *first, *grads[1:], grad_w_hr]


@twin
def lstm_steps_grad(
    w_hh: Array, projection: tuple[Array, Array, Array] | None, g_out: Array | None, g_h: Array, g_c: Array,
    widths: Sequence[int], reverse: bool, bounds: Array, gates: Array, before: Array, squashed: Array, slopes: Array,
    grad_h0: Array, grad_c0: Array,
) -> None:  # fmt: skip
    """Compute the steps of `lstm_grad`, from the last to the first.

    Args:
        projection: W_hr and two outputs, the hidden states before the projection and the gradients of those after it;
            or None.
        g_out, g_h, g_c: the gradients of all hidden states, (columns, hidden), or None, and of the last states.
        slopes: output: the gradients of the gates before their nonlinearity, in PyTorch's order, (4 * size, columns).
        grad_h0, grad_c0: outputs: the gradients of the first states.
        the others: as filled in by `lstm_steps`.
    """
    size, columns = w_hh.shape[0] // 4, slopes.shape[1]
    by_gate = slopes.reshape(4, size, columns)
    for low, high, steps in _parts(bounds, spans(widths, reverse)[::-1]):
        begin, end = steps[0]
        dh, dc = (grad[low : low + end - begin].T for grad in (g_h, g_c))
        for (begin, end), (first, last) in zip(steps, [*steps[1:], (0, 0)], strict=True):
            i, f, o, n = _block(gates, 4 * size, begin, end).reshape(4, size, end - begin)
            t = _block(squashed, size, begin, end)
            if g_out is not None:
                dh = dh + g_out[begin:end].T
            if projection is not None:
                w_hr, unprojected, projected = projection
                projected[:, begin:end] = dh
                unprojected[:, begin:end] = o * t
                dh = np.matmul(w_hr.T, dh)
            dc = dc + (1 - t * t) * o * dh  # the derivative of tanh is 1 - tanh², that of a sigmoid (1 - s) s
            into = by_gate[:, :, begin:end]  # i, f, n, o
            into[0] = (1 - i) * i * n * dc
            into[1] = (1 - f) * f * _block(before, size, begin, end) * dc
            into[2] = (1 - n * n) * i * dc
            into[3] = (1 - o) * o * t * dh
            dc = _advanced(dc * f, last - first, g_c[low:high].T, grad_c0[low:high].T)
            dh = np.matmul(w_hh.T, slopes[:, begin:end])
            dh = _advanced(dh, last - first, g_h[low:high].T, grad_h0[low:high].T)


# GRU ----------------------------------------------------------------------------------------------


def gru_layer(
    x: Array, h0: Array, w_ih: Array, w_hh: Array, b_ih: Array, b_hh: Array, widths: Sequence[int], reverse: bool
) -> tuple[Array, ...]:
    """Return a layer's output, its last state, and what `gru_grad` needs; arguments as `lstm_layer`, gates r, z, n."""
    dtype, leading = x.dtype, x.shape[:-1]
    check_all(x, h0, w_ih, w_hh, b_ih, b_hh)
    x, h0, w_ih, w_hh = (widened(array) for array in (x, h0, w_ih, w_hh))
    size, features = w_hh.shape[1], x.shape[-1]
    steps = spans(widths, reverse)
    matrix = _with_inputs(x, h0, steps[0])
    columns = matrix.shape[1]
    # The new gate needs its products with input and state separately. r and z are negated: sigmoids need exp(-x).
    of_input, of_state = _empty(x, 3 * size, features + 1), _empty(x, 3 * size, 1 + size)
    of_input[:, :features], of_state[:, 1:] = w_ih, w_hh
    of_input[:, features], of_state[:, 0] = (0 if bias is None else widened(bias) for bias in (b_ih, b_hh))
    for weights in (of_input, of_state):
        np.negative(weights[: 2 * size], out=weights[: 2 * size])
    inputs = product(of_input, matrix[: features + 1])
    gates, new = _empty(x, 3 * size * columns), _empty(x, size * columns)
    out, h_n = _empty(x, columns, size), _empty(x, *h0.shape)
    states = matrix[features:]
    hidden = states[1:]
    for (begin, end), (first, last) in zip(steps, [*steps[1:], (0, 0)], strict=True):
        three = _block(gates, 3 * size, begin, end)
        product(of_state, states[:, begin:end], out=three)
        two = three[: 2 * size]
        np.reciprocal(np.exp(two + inputs[: 2 * size, begin:end]) + 1, out=two)
        r, z, of_n = three.reshape(3, size, end - begin)
        n = np.tanh(r * of_n + inputs[2 * size :, begin:end], out=_block(new, size, begin, end))
        h = hidden[:, begin:end] - n
        h *= z
        h += n  # (1 - z) n + z h
        out[begin:end] = h.T
        hidden[:, first:last] = _advanced(h, last - first, h0.T, h_n.T)
    return out.reshape(*leading, size).astype(dtype, copy=False), h_n.astype(dtype, copy=False), matrix, gates, new


def gru_grad(
    g_out: Array | None, g_h: Array | None, needs: Sequence[bool], x: Array, w_ih: Array, w_hh: Array, biased: bool,
    widths: Sequence[int], reverse: bool, matrix: Array, gates: Array, new: Array,
) -> list[Array | None]:  # fmt: skip
    """Return the gradients of `gru_layer`'s x, h0, W_ih, W_hh, b_ih and b_hh; arguments as of `lstm_grad`."""
    w_ih, w_hh = widened(w_ih), widened(w_hh)
    size, columns = w_hh.shape[1], matrix.shape[1]
    steps = spans(widths, reverse)[::-1]
    batch = max(widths)
    g_out = None if g_out is None else widened(g_out).reshape(columns, size)
    g_h = _or_zeros(g_h, matrix, batch, size).T
    grad_h0 = _empty(matrix, batch, size)
    # Rows: n with respect to the product with the input, r, z, and n with respect to the product with the state.
    slopes = _empty(matrix, 4 * size, columns)
    by_gate, hidden = slopes.reshape(4, size, columns), matrix[-size:]
    begin, end = steps[0]
    dh = g_h[:, : end - begin]
    for (begin, end), (first, last) in zip(steps, [*steps[1:], (0, 0)], strict=True):
        three, n = _block(gates, 3 * size, begin, end).reshape(3, size, end - begin), _block(new, size, begin, end)
        r, z, of_state = three
        rest = 1 - three[:2]
        if g_out is not None:
            dh = dh + g_out[begin:end].T
        into = by_gate[:, :, begin:end]
        bend = (1 - n * n) * rest[1] * dh  # the gradient of n before tanh
        rest *= three[:2]  # the derivatives of the sigmoids
        into[0] = bend
        np.multiply(rest[0], bend * of_state, out=into[1])
        np.multiply(rest[1], (hidden[:, begin:end] - n) * dh, out=into[2])
        np.multiply(bend, r, out=into[3])
        dh = product(w_hh.T, slopes[size:, begin:end]) + dh * z
        dh = _advanced(dh, last - first, g_h, grad_h0.T)
    turned = np.concatenate([w_ih[2 * size :], w_ih[: 2 * size]])
    grads = _of_inputs(slopes[: 3 * size], slopes[size:], x, matrix, turned, biased, (needs[0], *needs[2:]))
    for k in (1, 3):
        if grads[k] is not None:
            grads[k] = np.concatenate([grads[k][size:], grads[k][:size]])
    return [grads[0], grad_h0 if needs[1] else None, *grads[1:]]


# RNN ----------------------------------------------------------------------------------------------


def rnn_layer(
    x: Array, h0: Array, w_ih: Array, w_hh: Array, b_ih: Array, b_hh: Array,
    widths: Sequence[int], reverse: bool, rectified: bool,
) -> tuple[Array, ...]:  # fmt: skip
    """Return a layer's output, its last state, and what `rnn_grad` needs; the nonlinearity is ReLU or tanh."""
    dtype, leading = x.dtype, x.shape[:-1]
    check_all(x, h0, w_ih, w_hh, b_ih, b_hh)
    x, h0, w_ih, w_hh = (widened(array) for array in (x, h0, w_ih, w_hh))
    size, features = w_hh.shape[1], x.shape[-1]
    steps = spans(widths, reverse)
    matrix = _with_inputs(x, h0, steps[0])
    columns = matrix.shape[1]
    weights = _empty(x, size, features + 1 + size)
    weights[:, :features], weights[:, features + 1 :] = w_ih, w_hh
    weights[:, features] = 0 if b_ih is None else widened(b_ih) + widened(b_hh)
    states = _empty(x, size * columns)
    out, h_n = _empty(x, columns, size), _empty(x, *h0.shape)
    hidden = matrix[features + 1 :]
    for (begin, end), (first, last) in zip(steps, [*steps[1:], (0, 0)], strict=True):
        h = _block(states, size, begin, end)
        product(weights, matrix[:, begin:end], out=h)
        if rectified:
            np.maximum(h, 0, out=h)
        else:
            np.tanh(h, out=h)
        out[begin:end] = h.T
        hidden[:, first:last] = _advanced(h, last - first, h0.T, h_n.T)
    return out.reshape(*leading, size).astype(dtype, copy=False), h_n.astype(dtype, copy=False), matrix, states


def rnn_grad(
    g_out: Array | None, g_h: Array | None, needs: Sequence[bool], x: Array, w_ih: Array, w_hh: Array, biased: bool,
    widths: Sequence[int], reverse: bool, rectified: bool, matrix: Array, states: Array,
) -> list[Array | None]:  # fmt: skip
    """Return the gradients of `rnn_layer`'s x, h0, W_ih, W_hh, b_ih and b_hh; arguments as of `lstm_grad`."""
    w_ih, w_hh = widened(w_ih), widened(w_hh)
    size, columns = w_hh.shape[1], matrix.shape[1]
    steps = spans(widths, reverse)[::-1]
    batch = max(widths)
    g_out = None if g_out is None else widened(g_out).reshape(columns, size)
    g_h = _or_zeros(g_h, matrix, batch, size).T
    grad_h0 = _empty(matrix, batch, size)
    slopes = _empty(matrix, size, columns)
    begin, end = steps[0]
    dh = g_h[:, : end - begin]
    for (begin, end), (first, last) in zip(steps, [*steps[1:], (0, 0)], strict=True):
        h = _block(states, size, begin, end)
        if g_out is not None:
            dh = dh + g_out[begin:end].T
        slopes[:, begin:end] = (h > 0 if rectified else 1 - h * h) * dh
        dh = _advanced(product(w_hh.T, slopes[:, begin:end]), last - first, g_h, grad_h0.T)
    grads = _of_inputs(slopes, slopes, x, matrix, w_ih, biased, (needs[0], *needs[2:]))
    return [grads[0], grad_h0 if needs[1] else None, *grads[1:]]


# Sequences ----------------------------------------------------------------------------------------


def batch_first(x: Array) -> Array:
    """Return a view of x with its first two dimensions swapped."""
    return x.swapaxes(0, 1)


def packed(x: Array, steps: Array, sequences: Array) -> Array:
    """Return the elements (count, ...) of x (steps, batch, ...) at these steps of these sequences."""
    return x[steps, sequences]


def padded(x: Array, steps: Array, sequences: Array, shape: tuple[int, ...], value: float) -> Array:
    """Return an array of this shape, filled with `value`, with x (count, ...) at these steps of these sequences."""
    out = np.full_like(x, fits(float(value), from_numpy_dtype(x.dtype)), order="C", shape=shape)
    out[steps, sequences] = x
    return out
