"""The recurrent layers `RNN`, `LSTM`, `GRU`, and their cells, which compute one step."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from typing import Any, ParamSpec

from tinytorch.core.tensor import Tensor
from tinytorch.core.warning import warn
from tinytorch.nn import init
from tinytorch.nn.modules._family import non_default, redefining
from tinytorch.nn.modules.module import Module
from tinytorch.nn.parameter import Parameter
from tinytorch.nn.utils.rnn import PackedSequence
from tinytorch.ops import autocast
from tinytorch.ops.create import empty, zeros
from tinytorch.ops.index import index_select
from tinytorch.ops.nn import rnn as _rnn  # noqa: F401 (declares the functions)
from tinytorch.ops.register import functions

__all__ = ["GRU", "GRUCell", "LSTM", "LSTMCell", "RNN", "RNNBase", "RNNCell", "RNNCellBase"]
P = ParamSpec("P")

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def apply_permutation(tensor: Tensor, permutation: Tensor, dim: int = 1) -> Tensor:
    """Return `tensor.index_select(dim, permutation)`."""
    return index_select(tensor, dim, permutation)


class _Recurrent(Module):
    """The base of layers and cells: their initial parameters."""

    hidden_size: int

    def reset_parameters(self) -> None:
        """Draw the parameters again, from U(-k, k) with k = 1/sqrt(hidden_size)."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)


class RNNBase(_Recurrent):
    """The base of `RNN`, `LSTM` and `GRU`.

    The mode is "RNN_TANH", "RNN_RELU", "LSTM" or "GRU". Input and output are (steps, batch, features), or with
    `batch_first` (batch, steps, features). `dropout` is between layers, in training; the output of `bidirectional`
    layers concatenates both directions; `proj_size` is for `LSTM`, the number of features that the hidden state is
    projected to.

    Example:
        >>> isinstance(torch.nn.GRU(2, 3), torch.nn.RNNBase)
        True
    """

    _flat_weights_names: list[str]
    _all_weights: list[list[str]]

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        if not isinstance(dropout, numbers.Number) or isinstance(dropout, bool) or not 0 <= dropout <= 1:
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
            )
        if dropout > 0 and num_layers == 1:
            warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
                f"num_layers greater than 1, but got dropout={dropout} and num_layers={num_layers}"
            )
        self._check_settings()
        self._flat_weights_names, self._all_weights = [], []
        rows = _GATES[mode] * hidden_size
        width = proj_size or hidden_size
        directions = 2 if bidirectional else 1
        for layer in range(num_layers):
            for suffix in ("", "_reverse")[:directions]:
                shapes: dict[str, tuple[int, ...]] = {
                    "weight_ih": (rows, width * directions if layer else input_size),
                    "weight_hh": (rows, width),
                }
                if bias:
                    shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                names = [f"{name}_l{layer}{suffix}" for name in shapes]
                for name, shape in zip(names, shapes.values(), strict=True):
                    setattr(self, name, Parameter(empty(shape, device=device, dtype=dtype)))
                self._flat_weights_names += names
                self._all_weights.append(names)
        self.reset_parameters()

    def _check_settings(self) -> None:
        for name, kind in (("bias", bool), ("batch_first", bool), ("input_size", int), ("hidden_size", int)):
            value = getattr(self, name)
            if not isinstance(value, kind):
                raise TypeError(f"{name} should be of type {kind.__name__}, got: {type(value).__name__}")
            if kind is int and value <= 0:
                raise ValueError(f"{name} must be greater than zero")
        if self.num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if self.proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if self.proj_size >= self.hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if self.mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + self.mode)

    @property
    def _flat_weights(self) -> list[Any]:
        """The weights in the order of the arguments of `torch.lstm` and `torch.gru`."""
        return [getattr(self, name, None) for name in self._flat_weights_names]

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters, one list per layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self) -> None:
        """Do nothing; in PyTorch, cuDNN needs all parameters in one block of memory."""

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Raise PyTorch's errors for a wrong dtype, number of dimensions or number of features."""
        dtype = self._flat_weights[0].dtype
        if input.dtype != dtype and not autocast.active():
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({dtype}). Convert input: "
                f"input.to({dtype}), or convert model: model.to({input.dtype})"
            )
        expected = 3 if batch_sizes is None else 2
        if input.ndim != expected:
            raise RuntimeError(f"input must have {expected} dimensions, got {input.ndim}")
        if self.input_size != input.shape[-1]:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.shape[-1]}"
            )

    def _state_shape(self, input: Tensor, batch_sizes: Tensor | None, size: int) -> tuple[int, ...]:
        if batch_sizes is not None:
            batch = int(batch_sizes[0])
        else:
            batch = input.shape[0 if self.batch_first else 1]
        return (self.num_layers * (2 if self.bidirectional else 1), batch, size)

    def get_expected_hidden_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, ...]:
        """Return the shape of the hidden state for this input."""
        return self._state_shape(input, batch_sizes, self.proj_size or self.hidden_size)

    def check_hidden_size(
        self, hx: Tensor, expected_hidden_size: tuple[int, ...], msg: str = "Expected hidden size {}, got {}"
    ) -> None:
        """Raise a RuntimeError unless `hx` has the expected shape."""
        if hx.shape != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.shape)))

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Raise PyTorch's errors unless input and hidden state have matching shapes."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """Return the state with its sequences permuted."""
        return hx if permutation is None else apply_permutation(hx, permutation)

    def _batched(self, hx: Any, batched: bool) -> Any:
        """Return the state with a batch dimension; raise PyTorch's errors for a wrong number of dimensions."""
        if batched:
            if hx.ndim != 3:
                raise RuntimeError(f"For batched 3-D input, hx should also be 3-D but got {hx.ndim}-D tensor")
            return hx
        if hx.ndim != 2:
            raise RuntimeError(f"For unbatched 2-D input, hx should also be 2-D but got {hx.ndim}-D tensor")
        return hx.unsqueeze(1)

    def _unbatched(self, hx: Any) -> Any:
        return hx.squeeze(1)

    def _initial(self, input: Tensor, batch_sizes: Tensor | None) -> Any:
        return zeros(self.get_expected_hidden_size(input, batch_sizes), dtype=input.dtype, device=input.device)

    def _split_result(self, result: Any) -> tuple[Tensor, Any]:
        return result[0], result[1]

    def forward(self, input: Any, hx: Any = None) -> Any:
        """Return the output of the last layer at all steps, and the last state.

        Args:
            input: (steps, batch, features), with `batch_first` (batch, steps, features), or (steps, features); or a
                `PackedSequence`, and then the output is one too.
            hx: the initial state, (layers * directions, batch, hidden); zeros by default.
        """
        function = functions[self.mode.lower()]
        settings = (self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional)
        if isinstance(input, PackedSequence):
            data, batch_sizes, sorted_indices, unsorted_indices = input
            if hx is None:
                hx = self._initial(data, batch_sizes)
            else:
                hx = self.permute_hidden(hx, sorted_indices)
            self.check_forward_args(data, hx, batch_sizes)
            out, last = self._split_result(function(data, batch_sizes, hx, *settings))
            packed = PackedSequence(out, batch_sizes, sorted_indices, unsorted_indices)
            return packed, self.permute_hidden(last, unsorted_indices)
        if input.ndim not in (2, 3):
            name = self.mode.partition("_")[0]
            kind = " tensor" if name == "RNN" else ""
            raise ValueError(f"{name}: Expected input to be 2D or 3D, got {input.ndim}D{kind} instead")
        batched = input.ndim == 3
        dim = 0 if self.batch_first else 1
        if not batched:
            input = input.unsqueeze(dim)
        hx = self._initial(input, None) if hx is None else self._batched(hx, batched)
        self.check_forward_args(input, hx, None)
        out, last = self._split_result(function(input, hx, *settings, self.batch_first))
        if not batched:
            return out.squeeze(dim), self._unbatched(last)
        return out, last

    def extra_repr(self) -> str:
        shown = non_default(
            self, proj_size=0, num_layers=1, bias=True, batch_first=False, dropout=0, bidirectional=False
        )
        return ", ".join([f"{self.input_size}, {self.hidden_size}", *shown])

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_flat_weights": self._flat_weights}  # (which PyTorch reads)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("proj_size", 0)  # (older pickles lack it)
        self.__dict__.pop("_flat_weights", None)  # (in PyTorch's pickles; a property here)


@redefining("forward")
class RNN(RNNBase):
    """Recurrent layers, h_t = tanh(W_ih x_t + b_ih + W_hh h_(t-1) + b_hh).

    `nonlinearity` is "tanh" or "relu"; positionally, it follows `num_layers`. Other arguments as for `RNNBase`, in the
    order there, without `mode` and `proj_size`.

    Attributes:
        weight_ih_l[k], weight_hh_l[k], bias_ih_l[k], bias_hh_l[k]: the parameters of layer k, all from U(-s, s) with
            s = 1/sqrt(hidden_size); those of the reverse direction end in `_reverse`.

    Shape:
        `(steps, batch, input_size)` -> `(steps, batch, directions * hidden_size)`, and the last state
        `(num_layers * directions, batch, hidden_size)`.

    Example:
        >>> layer = torch.nn.RNN(10, 20, 2)
        >>> out, h = layer(torch.ones(5, 3, 10), torch.zeros(2, 3, 20))
        >>> out.shape, h.shape
        (torch.Size([5, 3, 20]), torch.Size([2, 3, 20]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse_projection(kwargs)
        if len(args) > 3:
            nonlinearity = args[3]
            args = args[:3] + args[4:]
        else:
            nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__(f"RNN_{nonlinearity.upper()}", *args, **kwargs)
        self.nonlinearity = nonlinearity


def _layers(
    self: Any, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
    dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0, device: Any = None, dtype: Any = None,
) -> None: ...  # fmt: skip


def _as(known: Callable[P, None]) -> Callable[[Callable[..., None]], Callable[P, None]]:
    """Return a decorator that tells type checkers the parameters of a function that passes its arguments on."""
    return lambda function: function


def _refuse_projection(kwargs: dict[str, Any]) -> None:
    if "proj_size" in kwargs:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")


@redefining("forward")
class LSTM(RNNBase):
    """Layers of long short-term memory; arguments as `RNNBase`, without `mode`.

    With the gates i, f, o = sigmoid(W x_t + b + W' h_(t-1) + b'), g = tanh(W x_t + b + W' h_(t-1) + b'), which have
    separate parameters W, b, W', b',

        c_t = f * c_(t-1) + i * g,        h_t = o * tanh(c_t).

    Attributes:
        as those of `RNN`, for the gates i, f, g, o; with a projection also `weight_hr_l[k]`.

    Shape:
        `(steps, batch, input_size)` -> `(steps, batch, directions * (proj_size or hidden_size))`, and the last states
        `(h_n, c_n)`, both `(num_layers * directions, batch, hidden_size)`, h_n with `proj_size` if that is not 0.

    Example:
        >>> layer = torch.nn.LSTM(10, 20, 2, batch_first=True)
        >>> out, (h, c) = layer(torch.ones(3, 5, 10))
        >>> out.shape, h.shape, c.shape
        (torch.Size([3, 5, 20]), torch.Size([2, 3, 20]), torch.Size([2, 3, 20]))

    Source: Hochreiter and Schmidhuber, "Long short-term memory", 1997.
    """

    @_as(_layers)
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, ...]:
        """Return the shape of the cell state for this input."""
        return self._state_shape(input, batch_sizes, self.hidden_size)

    def _state_shapes(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return self.get_expected_hidden_size(input, batch_sizes), self.get_expected_cell_size(input, batch_sizes)

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Raise PyTorch's errors unless input and states have matching shapes."""
        self.check_input(input, batch_sizes)
        for k, shape in enumerate(self._state_shapes(input, batch_sizes)):
            self.check_hidden_size(hidden[k], shape, f"Expected hidden[{k}] size {{}}, got {{}}")

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """Return the states with their sequences permuted."""
        if permutation is None:
            return hx
        return apply_permutation(hx[0], permutation), apply_permutation(hx[1], permutation)

    def _batched(self, hx: Any, batched: bool) -> Any:
        h, c = hx[0], hx[1]
        dims = 3 if batched else 2
        if h.ndim != dims or c.ndim != dims:
            raise RuntimeError(
                f"For {'batched' if batched else 'unbatched'} {dims}-D input, hx and cx should also be {dims}-D but "
                f"got ({h.ndim}-D, {c.ndim}-D) tensors"
            )
        return hx if batched else (h.unsqueeze(1), c.unsqueeze(1))

    def _unbatched(self, hx: Any) -> Any:
        return hx[0].squeeze(1), hx[1].squeeze(1)

    def _initial(self, input: Tensor, batch_sizes: Tensor | None) -> Any:
        return tuple(
            [zeros(shape, dtype=input.dtype, device=input.device) for shape in self._state_shapes(input, batch_sizes)]
        )

    def _split_result(self, result: Any) -> tuple[Tensor, Any]:
        return result[0], (result[1], result[2])


@redefining("forward")
class GRU(RNNBase):
    """Layers of gated recurrent units; arguments as `RNNBase`, without `mode` and `proj_size`.

    With the gates r, z = sigmoid(W x_t + b + W' h_(t-1) + b'), which have separate parameters W, b, W', b',

        n = tanh(W_in x_t + b_in + r * (W_hn h_(t-1) + b_hn)),        h_t = (1 - z) * n + z * h_(t-1).

    Attributes:
        as those of `RNN`, for the gates r, z, n.

    Shape: as that of `RNN`.

    Example:
        >>> layer = torch.nn.GRU(10, 20, bidirectional=True)
        >>> out, h = layer(torch.ones(5, 3, 10))
        >>> out.shape, h.shape
        (torch.Size([5, 3, 40]), torch.Size([2, 3, 20]))

    Source:
        Cho et al., "Learning phrase representations using RNN encoder-decoder for statistical machine translation",
        2014.
    """

    @_as(_layers)
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse_projection(kwargs)
        super().__init__("GRU", *args, **kwargs)


# Cells --------------------------------------------------------------------------------------------


class RNNCellBase(_Recurrent):
    """The base of `RNNCell`, `LSTMCell` and `GRUCell`.

    Example:
        >>> isinstance(torch.nn.GRUCell(2, 3), torch.nn.RNNCellBase)
        True
    """

    weight_ih: Tensor
    weight_hh: Tensor

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        shapes = {"weight_ih": (rows, input_size), "weight_hh": (rows, hidden_size)}
        for name, shape in shapes.items():
            setattr(self, name, Parameter(empty(shape, device=device, dtype=dtype)))
        for name in ("bias_ih", "bias_hh"):
            value = Parameter(empty(rows, device=device, dtype=dtype)) if bias else None
            self.register_parameter(name, value)
        self.reset_parameters()

    def extra_repr(self) -> str:
        shown = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            shown += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            shown += f", nonlinearity={self.nonlinearity}"
        return shown

    def _weights(self) -> tuple[Tensor, Tensor, Any, Any]:
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh

    def _check(self, input: Tensor, hx: Any) -> None:
        name = type(self).__name__
        if input.ndim not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.ndim}D instead")
        if hx is not None and hx.ndim not in (1, 2):
            raise ValueError(f"{name}: Expected hidden to be 1D or 2D, got {hx.ndim}D instead")

    def _step(self, function: Any, input: Tensor, hx: Tensor | None) -> Tensor:
        """Return the next state, a single tensor."""
        self._check(input, hx)
        batched = input.ndim == 2
        if not batched:
            input = input.unsqueeze(0)
        if hx is None:
            hx = input.new_zeros(input.size(0), self.hidden_size)
        elif not batched:
            hx = hx.unsqueeze(0)
        result: Tensor = function(input, hx, *self._weights())
        return result if batched else result.squeeze(0)


class RNNCell(RNNCellBase):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh).

    `nonlinearity` is "tanh" or "relu".

    Attributes:
        weight_ih, weight_hh, bias_ih, bias_hh: from U(-k, k) with k = 1/sqrt(hidden_size).

    Shape: input `(batch, input_size)` or `(input_size,)`, state `(batch, hidden_size)` or `(hidden_size,)`.

    Example:
        >>> cell = torch.nn.RNNCell(10, 20)
        >>> cell(torch.ones(3, 10)).shape
        torch.Size([3, 20])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Return the next state; `hx` is zeros by default."""
        self._check(input, hx)
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._step(functions[f"rnn_{self.nonlinearity}_cell"], input, hx)


class LSTMCell(RNNCellBase):
    """One step of an `LSTM`; arguments as `RNNCell`, without `nonlinearity`.

    Attributes:
        weight_ih, weight_hh, bias_ih, bias_hh: for the gates i, f, g, o, from U(-k, k) with k = 1/sqrt(hidden_size).

    Shape: input `(batch, input_size)` or `(input_size,)`, states `(batch, hidden_size)` or `(hidden_size,)`.

    Example:
        >>> cell = torch.nn.LSTMCell(10, 20)
        >>> h, c = cell(torch.ones(3, 10))
        >>> h, c = cell(torch.ones(3, 10), (h, c))
        >>> h.shape, c.shape
        (torch.Size([3, 20]), torch.Size([3, 20]))
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """Return the next states (h, c); `hx`, the previous states, are zeros by default."""
        self._check(input, None)
        for k, state in enumerate(() if hx is None else hx):
            if state.ndim not in (1, 2):
                raise ValueError(f"LSTMCell: Expected hx[{k}] to be 1D or 2D, got {state.ndim}D instead")
        batched = input.ndim == 2
        if not batched:
            input = input.unsqueeze(0)
        if hx is None:
            zero = input.new_zeros(input.size(0), self.hidden_size)
            hx = (zero, zero)
        elif not batched:
            hx = (hx[0].unsqueeze(0), hx[1].unsqueeze(0))
        h, c = functions["lstm_cell"](input, hx, *self._weights())
        return (h, c) if batched else (h.squeeze(0), c.squeeze(0))


class GRUCell(RNNCellBase):
    """One step of a `GRU`; arguments as `RNNCell`, without `nonlinearity`.

    Attributes:
        weight_ih, weight_hh, bias_ih, bias_hh: for the gates r, z, n, from U(-k, k) with k = 1/sqrt(hidden_size).

    Shape: as that of `RNNCell`.

    Example:
        >>> cell = torch.nn.GRUCell(10, 20)
        >>> cell(torch.ones(3, 10)).shape
        torch.Size([3, 20])
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Return the next state; `hx` is zeros by default."""
        return self._step(functions["gru_cell"], input, hx)
