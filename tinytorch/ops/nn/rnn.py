"""Recurrent layers and cells, packed and padded sequences.

A layer in one direction over whole sequences is one op with a joint formula. Under create_graph it computes the
gradient of the same layer composed of elementary ops, which has derivatives of every order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinytorch.core.complex import OWN
from tinytorch.core.engine import gradients
from tinytorch.core.mode import local, recording
from tinytorch.core.op import op
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.kernels import rnn as kernels
from tinytorch.kernels.checks import sizes_differ
from tinytorch.ops import autocast
from tinytorch.ops.arguments import check_elements, check_tensor, op_of, renamed, unless_empty
from tinytorch.ops.batching import all_levels, at_levels, levels, plain, without_levels
from tinytorch.ops.join import cat, chunk, stack, unbind
from tinytorch.ops.nn.linear import linear
from tinytorch.ops.random import apart
from tinytorch.ops.register import public
from tinytorch.ops.transcendental import relu, sigmoid, tanh

States = tuple[Tensor, ...]

# One step, composed of elementary ops -------------------------------------------------------------
# `projected` is W_ih x + b_ih for the step's inputs x.


def _lstm_step(projected: Tensor, states: States, w_hh: Tensor, b_hh: Any, w_hr: Any = None) -> States:
    h, c = states
    i, f, g, o = chunk(projected + linear(h, w_hh, b_hh), 4, 1)
    c = sigmoid(f) * c + sigmoid(i) * tanh(g)
    h = sigmoid(o) * tanh(c)
    return (h if w_hr is None else linear(h, w_hr), c)


def _gru_step(projected: Tensor, states: States, w_hh: Tensor, b_hh: Any) -> States:
    (h,) = states
    r, z, n = chunk(projected, 3, 1)
    r_h, z_h, n_h = chunk(linear(h, w_hh, b_hh), 3, 1)
    n = tanh(n + sigmoid(r + r_h) * n_h)
    return ((h - n) * sigmoid(z + z_h) + n,)


def _tanh_step(projected: Tensor, states: States, w_hh: Tensor, b_hh: Any) -> States:
    return (tanh(projected + linear(states[0], w_hh, b_hh)),)


def _relu_step(projected: Tensor, states: States, w_hh: Tensor, b_hh: Any) -> States:
    return (relu(projected + linear(states[0], w_hh, b_hh)),)


# A layer ------------------------------------------------------------------------------------------


def _unrolled(step: Callable[..., States], count: int, tensors: Sequence[Any], widths: Any, reverse: bool) -> States:
    """Return the output and the last states of a layer composed of elementary ops.

    Args:
        step, count: the function for one step, and the number of its states.
        tensors: the input, the states, W_ih, W_hh, b_ih, b_hh, and further arguments of `step`.
        widths: the number of sequences in each step.
        reverse: whether to begin with the last step.
    """
    x, states, (w_ih, w_hh, b_ih, b_hh, *others) = tensors[0], tensors[1 : 1 + count], tensors[1 + count :]
    projected = linear(x.reshape(-1, x.shape[-1]), w_ih, b_ih)
    current: States = tuple(states)
    ended: list[States] = []
    outs: dict[int, Tensor] = {}
    for begin, end in kernels.spans(widths, reverse):
        width, had = end - begin, current[0].shape[0]
        if not outs or width < had:
            if outs:  # sequences end here (before the first step they have not begun)
                ended.append(tuple([each[width:] for each in current]))
            current = tuple([each[:width] for each in current])
        elif width > had:
            more = [each[had:width] for each in states]
            current = tuple([cat(pair) for pair in zip(current, more, strict=True)])
        current = step(projected[begin:end], current, w_hh, b_hh, *others)
        outs[begin] = current[0]
    if ended:
        current = tuple([cat(parts) for parts in zip(current, *reversed(ended), strict=True)])
    out = cat([outs[begin] for begin in sorted(outs)])
    return (out.reshape(*x.shape[:-1], out.shape[1]), *current)


def _gradients_of_composition(
    g: Sequence[Any], needs: Any, step: Callable[..., States], count: int, tensors: Any, widths: Any, reverse: bool
) -> list[Any]:
    """Return the gradients of the results of `_unrolled`; they are differentiable if recording is on."""
    recorded = local.state.grad
    with recording(True):
        inputs = [
            each.view_as(each) if need and each.requires_grad else each.detach() if need else each
            for each, need in zip(tensors, needs, strict=True)
        ]
        batches = all_levels((*inputs, *g))
        inputs = [  # (the gradients of an input that examples share stay apart)
            at_levels(without_levels(each, batches), batches) if need else each
            for each, need in zip(inputs, needs, strict=True)
        ]
        wanted = [each for each, need in zip(inputs, needs, strict=True) if need]
        for each in wanted:
            each._requires_grad = True
        outputs = _unrolled(step, count, inputs, widths, reverse)
    pairs = [(out, each) for out, each in zip(outputs, g, strict=True) if each is not None]
    vectors = [without_levels(each, levels(out)) for out, each in pairs]
    found = gradients([plain(out) for out, _ in pairs], vectors, [plain(each) for each in wanted], recorded)
    found = iter([None if each is None else at_levels(each, batches) for each in found])
    return [next(found) if need else None for need in needs]


def _layer_ops(
    layer: Any, rule: Any, step: Any, states: tuple[str, ...], residuals: tuple[str, ...], *names: str
) -> list[Any]:
    """Return the ops of a layer; their nodes have the names of the ops that create the output in PyTorch."""
    count = 1 + len(states)

    def composed(*values: Any) -> States:  # (for `vmap`: each example may have weights of its own)
        tensors = len(inputs)
        widths, reverse, *rectified = values[tensors:]
        chosen = step or (_relu_step if rectified[0] else _tanh_step)
        return _unrolled(chosen, len(states), values[:tensors], widths, reverse)

    def multiply_adds(out: Any, x: Any, *others: Any) -> int:  # (the weights are used in each step of each sequence)
        weights = [each for name, each in zip(inputs[1:], others, strict=False) if name.startswith("w_")]
        return math.prod(x[:-1]) * sum(math.prod(each) for each in weights if each is not None)

    inputs = ("x", *states, "w_ih", "w_hh", "b_ih", "b_hh", *(("w_hr",) if len(states) > 1 else ()))
    return [
        op_of(
            layer,
            name=name,
            joint=rule,
            inputs=inputs,
            batch=composed,
            multiply_adds=multiply_adds,
            outputs=count,
            residuals=residuals,
            refuses=unless_empty("addmm_impl_cpu_"),
        )
        for name in names
    ]


_OF_GRADIENTS = dict.fromkeys(("g_out", "g_h", "x", "w_ih", "w_hh", "matrix"))


def _lstm_rule(
    g: Any, needs: Any, x: Tensor, h0: Tensor, c0: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Any, b_hh: Any,
    w_hr: Any, widths: Any, reverse: bool, matrix: Any, gates: Any, before: Any, squashed: Any, bounds: Any,
) -> list[Any]:  # fmt: skip
    if matrix is None:
        tensors = (x, h0, c0, w_ih, w_hh, b_ih, b_hh, w_hr)
        return _gradients_of_composition(g, needs, _lstm_step, 2, tensors, widths, reverse)
    return _lstm_grad(
        *g, needs, x, w_ih, w_hh, b_ih is not None, w_hr, widths, reverse, matrix, gates, before, squashed, bounds
    )


_lstm_grad = op_of(
    kernels.lstm_grad, name="MkldnnRnnLayerBackward", outputs=8, g_c=None, w_hr=None, gates=None, before=None,
    squashed=None, bounds=None, **_OF_GRADIENTS,
)  # fmt: skip
_lstm, _lstm_packed = _layer_ops(
    kernels.lstm_layer,
    _lstm_rule,
    _lstm_step,
    ("h0", "c0"),
    ("matrix", "gates", "before", "squashed", "bounds"),
    "MkldnnRnnLayer",
    "Cat",
)


def _gru_rule(
    g: Any, needs: Any, x: Tensor, h0: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Any, b_hh: Any, widths: Any,
    reverse: bool, matrix: Any, gates: Any, new: Any,
) -> list[Any]:  # fmt: skip
    if matrix is None:
        tensors = (x, h0, w_ih, w_hh, b_ih, b_hh)
        return _gradients_of_composition(g, needs, _gru_step, 1, tensors, widths, reverse)
    return _gru_grad(*g, needs, x, w_ih, w_hh, b_ih is not None, widths, reverse, matrix, gates, new)


_gru_grad = op_of(kernels.gru_grad, outputs=6, gates=None, new=None, **_OF_GRADIENTS)
# A layer for padded sequences, a layer for packed sequences, and a cell.
_gru, _gru_packed, _gru_cell = _layer_ops(
    kernels.gru_layer, _gru_rule, _gru_step, ("h0",), ("matrix", "gates", "new"), "Stack", "Cat", "Add"
)


def _rnn_rule(
    g: Any, needs: Any, x: Tensor, h0: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Any, b_hh: Any, widths: Any,
    reverse: bool, rectified: bool, matrix: Any, states: Any,
) -> list[Any]:  # fmt: skip
    if matrix is None:
        step = _relu_step if rectified else _tanh_step
        tensors = (x, h0, w_ih, w_hh, b_ih, b_hh)
        return _gradients_of_composition(g, needs, step, 1, tensors, widths, reverse)
    return _rnn_grad(*g, needs, x, w_ih, w_hh, b_ih is not None, widths, reverse, rectified, matrix, states)


_rnn_grad = op_of(kernels.rnn_grad, outputs=6, states=None, **_OF_GRADIENTS)
_rnn, _rnn_packed = _layer_ops(kernels.rnn_layer, _rnn_rule, None, ("h0",), ("matrix", "states"), "Stack", "Cat")

#: The output of a layer with the batch first, where PyTorch does this in place.
_batch_first: Any = renamed(
    op_of(
        kernels.batch_first, batch=lambda x: x.transpose(0, 1), name="Transpose", view=True, x=lambda g: _batch_first(g)
    ),
    "TransposeBackward1",
)


# Stacked layers -----------------------------------------------------------------------------------

_SHARED = ("params", "has_biases", "num_layers", "dropout", "train", "bidirectional")
_PADDED = ("input", "hx", *_SHARED, "batch_first")
_PACKED = ("data", "batch_sizes", "hx", *_SHARED)


def _bound(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments by name, for either of the two signatures."""
    packed = "data" in kwargs or "batch_sizes" in kwargs
    packed |= len(args) > 3 and isinstance(args[3], (list, tuple))
    packed |= len(args) == 3 and "params" in kwargs
    names = _PACKED if packed else _PADDED
    values = dict(zip(names, args, strict=False))
    if len(args) > len(names) or set(values) & set(kwargs) or set(values) | set(kwargs) != set(names):
        kinds = ", ".join(type(each).__name__ for each in args)
        hx = "tuple of Tensors" if name == "lstm" else "Tensor"
        shared = (
            "tuple of Tensors params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional"
        )
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got ({kinds}), but expected one of:\n"
            f" * (Tensor data, Tensor batch_sizes, {hx} hx, {shared})\n"
            f" * (Tensor input, {hx} hx, {shared}, bool batch_first)\n"
        )
    return values | kwargs


def _dropped(x: Tensor, p: float) -> Tensor:
    mask = wrap(np.zeros_like(x._array))
    if p < 1:
        with recording(False):
            mask = apart(mask).bernoulli_(1 - p).div_(1 - p)
    return x * mask


def _check_weights(x: Tensor, w_ih: Tensor, w_hh: Tensor, h: Tensor) -> None:
    """Raise the errors of PyTorch's matrix products if sizes or dtypes do not match."""
    for each, weight in ((x, w_ih), (h, w_hh)):
        if each.dtype != weight.dtype:
            raise RuntimeError(
                f"mat1 and mat2 must have the same dtype, but got {each.dtype.tensor_name} and "
                f"{weight.dtype.tensor_name}"
            )
        a, b = each._array.shape, weight._array.shape
        if len(b) != 2 or a[-1] != b[1]:
            rows = int(np.prod(a[:-1]))
            raise RuntimeError(
                f"mat1 and mat2 shapes cannot be multiplied ({rows}x{a[-1]} and {'x'.join(map(str, b[::-1]))})"
            )
    m, n = w_ih._array.shape[0], w_hh._array.shape[0]
    if m != n:
        raise sizes_differ(m, n, 1)


def _stacked(
    name: str, layers: Sequence[Any], step: Callable[..., States], hx: Sequence[Tensor], given: dict[str, Any],
    more: tuple[Any, ...] = (),
) -> States:  # fmt: skip
    """Return the output of all layers and the stacked last states.

    Of `layers`, for padded and for packed sequences, one computes a layer in one direction, from input, states,
    weights, widths, direction and `more`; `given` are the arguments of the public function called `name`.
    """
    packed = "data" in given
    projected = len(hx) > 1 and hx[0]._array.shape[2] != hx[1]._array.shape[2]
    x = given["data" if packed else "input"]
    check_tensor(x, name, "data" if packed else "input")
    directions = 2 if given["bidirectional"] else 1
    count, depth = 2 + 2 * bool(given["has_biases"]) + projected, given["num_layers"]
    params = list(given["params"])
    check_elements(params, 2 + packed)
    if len(params) % count or len(params) // count % directions:
        raise RuntimeError(
            "Odd number of params or hiddens given to a bidirectional RNN"
            if directions == 2
            else f"MatrixRef: ArrayRef size {len(params)} not divisible by stride {count}"
        )
    if len(params) // count < depth * directions:
        raise RuntimeError("Expected more params in stacked_rnn")
    states = [unbind(each) for each in hx]
    for each in states:
        if directions == 2 and len(each) % 2:
            raise RuntimeError("Odd number of params or hiddens given to a bidirectional RNN")
        if len(each) < depth * directions:
            raise RuntimeError("Expected more hidden states in stacked_rnn")
    if packed:
        widths = tuple(given["batch_sizes"].tolist())
    else:
        if given["batch_first"]:
            x = x.transpose(0, 1)
        widths = (x._array.shape[1],) * x._array.shape[0]
        if not widths:
            raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
    dropout = given["dropout"] if given["train"] else 0
    casting = autocast.active()
    # Under autocasting only products have low precision; then layers are composed of elementary ops, and so are those
    # of complex numbers.
    composed = casting or x.dtype.is_complex
    last: list[States] = []
    for k in range(depth):
        outs = []
        for direction in range(directions):
            n = k * directions + direction
            w_ih, w_hh, *rest = params[n * count : (n + 1) * count]
            w_hr = (rest.pop() if projected else None,) * (len(hx) > 1)
            b_ih, b_hh = rest or (None, None)
            before = [each[n] for each in states]
            if before[0]._array.shape[0] != max(widths):
                raise RuntimeError(
                    f"Expected hidden size ({max(widths)}, {before[0]._array.shape[1]}), got "
                    f"{list(before[0]._array.shape)}"
                )
            if not casting:
                _check_weights(x, w_ih, w_hh, before[0])
            for each in (*before[1:], *rest, *w_hr):
                if each is not None and each.dtype != x.dtype and not casting:
                    raise RuntimeError(
                        f"{name}: unsupported data type: states and weights must have the dtype of the input, "
                        f"{x.dtype}, but one has {each.dtype}"
                    )
            tensors = (x, *before, w_ih, w_hh, b_ih, b_hh, *w_hr)
            if composed:
                out, *after = _unrolled(step, len(hx), tensors, widths, direction == 1)
            else:
                out, *after = layers[packed](*tensors, widths, direction == 1, *more)
            outs.append(out)
            last.append(tuple(after))
        x = outs[0] if directions == 1 else cat(outs, -1)
        if dropout and k < depth - 1:
            x = _dropped(x, dropout)
    if not packed and given["batch_first"]:
        x = x.transpose(0, 1) if name == "lstm" else _batch_first(x)
    return (x, *[stack(each) for each in zip(*last, strict=True)])


@public()
def lstm(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Return output and last states `(out, h_n, c_n)` of layers of long short-term memory; see `nn.LSTM`.

    Called as `lstm(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)`, or for
    packed sequences as `lstm(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional)`.

    The arguments are those of `nn.LSTM` and its `forward`; `params` are per layer and direction W_ih, W_hh, then b_ih,
    b_hh if `has_biases`, then W_hr if h is narrower than c.

    Example:
        >>> layer = torch.nn.LSTM(3, 4)
        >>> hx = (torch.zeros(1, 2, 4), torch.zeros(1, 2, 4))
        >>> out, h, c = torch.lstm(torch.ones(5, 2, 3), hx, layer._flat_weights, True, 1, 0.0, False, False, False)
        >>> out.shape, torch.equal(out[-1], h[0])
        (torch.Size([5, 2, 4]), True)
    """
    given = _bound("lstm", args, kwargs)
    hx = given["hx"]
    if isinstance(hx, Tensor):
        raise TypeError("lstm(): argument 'hx' must be tuple of Tensors, not Tensor")
    check_elements(hx, 1)
    if len(hx) != 2:
        raise RuntimeError("lstm expects two hidden states")
    projected = hx[0]._array.shape[2] != hx[1]._array.shape[2]
    layers = _lstm, _lstm_packed
    if autocast.on and autocast.active() and not projected and "data" not in given:
        # (PyTorch uses a kernel here that computes everything in low precision.)
        hx, given = autocast.lowered(hx, given)
        out, h, c = autocast.outside(_stacked, "lstm", layers, _lstm_step, hx, given)
    else:
        out, h, c = _stacked("lstm", layers, _lstm_step, hx, given)
    return out, h, c


@public()
def gru(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    """Return output and last state of layers of gated recurrent units; see `nn.GRU`.

    Arguments as `lstm`, but `hx` is one tensor.

    Example:
        >>> layer = torch.nn.GRU(3, 4)
        >>> hx = torch.zeros(1, 2, 4)
        >>> out, h = torch.gru(torch.ones(5, 2, 3), hx, layer._flat_weights, True, 1, 0.0, False, False, False)
        >>> out.shape, torch.equal(out[-1], h[0])
        (torch.Size([5, 2, 4]), True)
    """
    given = _bound("gru", args, kwargs)
    out, h = _stacked("gru", (_gru, _gru_packed), _gru_step, [given["hx"]], given)
    return out, h


@public()
def rnn_tanh(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    """Return output and last state of recurrent layers with tanh; see `nn.RNN`. Arguments as `gru`.

    Example:
        >>> weights = [torch.eye(1), torch.eye(1)]
        >>> torch.rnn_tanh(torch.ones(2, 1, 1), torch.zeros(1, 1, 1), weights, False, 1, 0.0, False, False, False)[1]
        tensor([[[0.9427]]])
    """
    given = _bound("rnn_tanh", args, kwargs)
    out, h = _stacked("rnn_tanh", (_rnn, _rnn_packed), _tanh_step, [given["hx"]], given, (False,))
    return out, h


@public()
def rnn_relu(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    """Return output and last state of recurrent layers with rectifiers; see `nn.RNN`. Arguments as `gru`.

    Example:
        >>> weights = [torch.eye(1), torch.eye(1)]
        >>> torch.rnn_relu(torch.ones(2, 1, 1), torch.zeros(1, 1, 1), weights, False, 1, 0.0, False, False, False)[1]
        tensor([[[2.]]])
    """
    given = _bound("rnn_relu", args, kwargs)
    out, h = _stacked("rnn_relu", (_rnn, _rnn_packed), _relu_step, [given["hx"]], given, (True,))
    return out, h


# Cells --------------------------------------------------------------------------------------------


def _check_cell(input: Tensor, states: Sequence[Tensor], w_ih: Tensor, w_hh: Tensor, gates: int) -> None:
    """Raise PyTorch's error if the sizes of the input, the weights and the states do not match."""
    hidden = w_hh.size(1)
    if input.size(1) != w_ih.size(1):
        raise RuntimeError(f"input has inconsistent input_size: got {input.size(1)} expected {w_ih.size(1)}")
    for name, weight in (("ih", w_ih), ("hh", w_hh)):
        if weight.size(0) != gates * hidden:
            raise RuntimeError(
                f"weight_{name} first dim must be {gates} * hidden_size = {gates * hidden}, but got {weight.size(0)}"
            )
    for label, each in enumerate(states):
        if input.size(0) != each.size(0):
            raise RuntimeError(
                f"Input batch size {input.size(0)} doesn't match hidden{label} batch size {each.size(0)}"
            )
        if each.size(1) != hidden:
            raise RuntimeError(f"hidden{label} has inconsistent hidden_size: got {each.size(1)}, expected {hidden}")
    if input.ndim > states[0].ndim:  # PyTorch adds in place
        out, broadcast = ([*each.shape[:-1], w_ih.size(0)] for each in (states[0], input))
        raise RuntimeError(f"output with shape {out} doesn't match the broadcast shape {broadcast}")


def _as_layer(x: Tensor, others: Sequence[Tensor], b_ih: Any, b_hh: Any) -> bool:
    """Return whether a cell can run as a layer of one step, which takes two thirds of the time of elementary ops."""
    if (b_ih is None) != (b_hh is None) or autocast.active() or x._array.dtype.kind == "c":
        return False
    dtype, rows = x._array.dtype, others[-1]._array.shape[:1]
    if x._array.ndim != 2:
        return False
    for each in others:
        if each._array.ndim != 2 or each._array.dtype != dtype:
            return False
    return b_ih is None or all([each._array.shape == rows and each._array.dtype == dtype for each in (b_ih, b_hh)])


@public()
def lstm_cell(
    input: Tensor, hx: Sequence[Tensor], w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return the states (h, c) of long short-term memory one step after `hx`; see `nn.LSTMCell`.

    Shapes: (batch, features), twice (batch, hidden), (4 * hidden, features), (4 * hidden, hidden), and twice (4 *
    hidden,).

    Example:
        >>> zeros = torch.zeros(1, 1)
        >>> torch.lstm_cell(torch.ones(1, 1), (zeros, zeros), torch.ones(4, 1), torch.ones(4, 1))
        (tensor([[0.3696]]), tensor([[0.5568]]))
    """
    if isinstance(hx, Tensor):
        raise TypeError("lstm_cell(): argument 'hx' (position 2) must be tuple of Tensors, not Tensor")
    check_elements(hx, 1)
    if len(hx) != 2:
        raise RuntimeError("lstm_cell expects two hidden states")
    _check_cell(input, hx, w_ih, w_hh, 4)
    if _as_layer(input, (*hx, w_ih, w_hh), b_ih, b_hh):
        width = input._array.shape[0]
        _, h, c = _lstm(input, *hx, w_ih, w_hh, b_ih, b_hh, None, (width,), False)
    else:
        h, c = _lstm_step(linear(input, w_ih, b_ih), tuple(hx), w_hh, b_hh)
    return h, c


@public()
def gru_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """Return the state of gated recurrent units one step after `hx`; see `nn.GRUCell`.

    Shapes: (batch, features), (batch, hidden), (3 * hidden, features), (3 * hidden, hidden), and twice (3 * hidden,).

    Example:
        >>> torch.gru_cell(torch.ones(1, 1), torch.zeros(1, 1), torch.ones(3, 1), torch.ones(3, 1))
        tensor([[0.2048]])
    """
    _check_cell(input, (hx,), w_ih, w_hh, 3)
    if hx._array.flags.c_contiguous and _as_layer(input, (hx, w_ih, w_hh), b_ih, b_hh):
        width = input._array.shape[0]
        return _gru_cell(input, hx, w_ih, w_hh, b_ih, b_hh, (width,), False)[1]
    return _gru_step(linear(input, w_ih, b_ih), (hx,), w_hh, b_hh)[0]


@public()
def rnn_tanh_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """Return `tanh(W_ih x + b_ih + W_hh h + b_hh)`; see `nn.RNNCell`.

    Shapes: (batch, features), (batch, hidden), (hidden, features), (hidden, hidden), and twice (hidden,).

    Example:
        >>> torch.rnn_tanh_cell(torch.ones(1, 1), torch.zeros(1, 1), torch.ones(1, 1), torch.ones(1, 1))
        tensor([[0.7616]])
    """
    _check_cell(input, (hx,), w_ih, w_hh, 1)
    return _tanh_step(linear(input, w_ih, b_ih), (hx,), w_hh, b_hh)[0]


@public()
def rnn_relu_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """Return `relu(W_ih x + b_ih + W_hh h + b_hh)`; see `nn.RNNCell`. Arguments as `rnn_tanh_cell`.

    Example:
        >>> torch.rnn_relu_cell(torch.ones(1, 1), torch.ones(1, 1), torch.ones(1, 1), torch.ones(1, 1))
        tensor([[2.]])
    """
    _check_cell(input, (hx,), w_ih, w_hh, 1)
    return _relu_step(linear(input, w_ih, b_ih), (hx,), w_hh, b_hh)[0]


# Packed and padded sequences ----------------------------------------------------------------------
# Each op is the other's gradient.


packed = op(
    name="PackPaddedSequence",
    complex=OWN,
    x=lambda g, x_shape, steps, sequences: padded(g, steps, sequences, x_shape, 0),
)(kernels.packed)
padded = op(complex=OWN, x=lambda g, steps, sequences: packed(g, steps, sequences))(kernels.padded)
# PyTorch writes the sequences into parts of the array, one after the other.
renamed(padded, "CopySlices")
