"""Sequences of different lengths: padded to the longest, or packed without padding."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np

from tinytorch.core.tensor import Tensor, wrap
from tinytorch.kernels import dtypes
from tinytorch.kernels.checks import out_of_range, sizes_differ
from tinytorch.ops.create import as_tensor
from tinytorch.ops.index import index_select
from tinytorch.ops.join import cat
from tinytorch.ops.nn import rnn
from tinytorch.ops.register import asking
from tinytorch.ops.sequences import arange
from tinytorch.ops.sort import sort

__all__ = [
    "PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence",
    "pad_sequence", "unpack_sequence", "unpad_sequence",
]  # fmt: skip


Packed = TypeVar("Packed", bound="PackedSequence")


class PackedSequence_(NamedTuple):
    """The fields of a `PackedSequence`."""

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


def _conversion(name: str, dtype: dtypes.dtype) -> Callable[[Packed], Packed]:
    """Return the method of `PackedSequence` that converts the data to `dtype`."""

    def convert(self: Packed) -> Packed:
        return self.to(dtype=dtype)

    convert.__name__, convert.__qualname__ = name, f"PackedSequence.{name}"
    convert.__doc__ = f"Return the sequences as {dtype.name}."
    return convert


class PackedSequence(PackedSequence_):
    """Sequences of different lengths, stored step by step without padding.

    `pack_padded_sequence` and `pack_sequence` create it; recurrent layers take it and return one.

    `data` are the elements of all steps, concatenated, `batch_sizes` the numbers of sequences at each step, int64, and
    `sorted_indices` and `unsorted_indices` the permutation that sorted the sequences by length and its inverse, None if
    they were sorted.

    Example:
        >>> rnn = torch.nn.utils.rnn
        >>> packed = rnn.pack_sequence([torch.tensor([1, 2, 3]), torch.tensor([4, 5])])
        >>> packed.data, packed.batch_sizes
        (tensor([1, 4, 2, 5, 3]), tensor([2, 2, 1]))
    """

    def __new__(
        cls,
        data: Any,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> Self:
        """Return a packed sequence of data and batch sizes, or of a pair of them."""
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is None:
            if not (isinstance(data, (list, tuple)) and len(data) == 2):
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        elif batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be created manually. "
                "They should be instantiated by functions like pack_sequence and pack_padded_sequences in "
                "nn.utils.rnn."
            )
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Return the sequences with their data converted by `Tensor.to`, or self if that changes nothing.

        Example:
            >>> packed = torch.nn.utils.rnn.pack_sequence([torch.ones(2), torch.ones(1)])
            >>> packed.to(torch.float64).data.dtype, packed.int().data.dtype
            (torch.float64, torch.int32)
        """
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        return type(self)(data, *self[1:])

    def cpu(self, *args: Any, **kwargs: Any) -> Self:
        """Return the sequences on the CPU."""
        return self.to(*args, **{"device": "cpu", **kwargs} if not args else kwargs)

    def cuda(self, *args: Any, **kwargs: Any) -> Self:
        """Raise the error of a machine without CUDA."""
        return type(self)(self.data.cuda(*args, **kwargs), *self[1:])

    def pin_memory(self) -> Self:
        """Return the sequences with their data in pinned memory, as `Tensor.pin_memory`."""
        return type(self)(self.data.pin_memory(), *self[1:])

    double = _conversion("double", dtypes.float64)
    float = _conversion("float", dtypes.float32)
    half = _conversion("half", dtypes.float16)
    long = _conversion("long", dtypes.int64)
    int = _conversion("int", dtypes.int32)
    short = _conversion("short", dtypes.int16)
    char = _conversion("char", dtypes.int8)
    byte = _conversion("byte", dtypes.uint8)

    @property
    def is_cuda(self) -> bool:
        """Whether the data is on a GPU."""
        return self.data.is_cuda

    def is_pinned(self) -> bool:
        """Return whether the data is in pinned memory."""
        return bool(self.data.is_pinned())


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """Return the inverse permutation.

    Example:
        >>> torch.nn.utils.rnn.invert_permutation(torch.tensor([2, 0, 1]))
        tensor([1, 2, 0])
    """
    if permutation is None:
        return None
    inverse: Tensor = wrap(np.empty_like(permutation._array))
    inverse.scatter_(0, permutation, arange(permutation.numel()))
    return inverse


def _steps_and_sequences(lengths: Any) -> tuple[Any, Any, Any]:
    """Return the number of sequences at each step, and each element's step and sequence; `lengths` decrease."""
    present = np.arange(lengths[0])[:, None] < lengths
    steps, sequences = np.nonzero(present)
    return present.sum(1), steps, sequences


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Return padded sequences of these lengths, packed without the padding.

    The input is (steps, batch, *), or with `batch_first` (batch, steps, *); the lengths are a list or a tensor,
    decreasing unless `enforce_sorted` is False.

    Example:
        >>> rnn = torch.nn.utils.rnn
        >>> padded = torch.tensor([[1, 2, 0], [3, 0, 0], [4, 5, 6]])
        >>> packed = rnn.pack_padded_sequence(padded, [2, 1, 3], batch_first=True, enforce_sorted=False)
        >>> packed.data, packed.sorted_indices
        (tensor([4, 1, 3, 5, 2, 6]), tensor([2, 0, 1]))
    """
    if isinstance(lengths, Tensor):
        lengths = lengths.to(dtype=dtypes.int64)
    else:
        lengths = as_tensor(lengths, dtype=dtypes.int64)
    sorted_indices = None
    if not enforce_sorted:
        lengths, sorted_indices = sort(lengths, descending=True)
        input = index_select(input, 0 if batch_first else 1, sorted_indices)
    if batch_first:
        input = input.transpose(0, 1)
    shape, sizes = input._array.shape, lengths._array
    if not input._array.size:
        raise RuntimeError("Cannot pack empty tensors.")
    if sizes.ndim != 1:
        raise RuntimeError(f"'lengths' argument should be a 1D CPU int64 tensor, but got {sizes.ndim}D cpu Long tensor")
    if len(shape) < 2:
        raise out_of_range(1, 1)
    if sizes.size != shape[1]:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {sizes.size} (batch_size={shape[1]})"
        )
    if sizes[-1] <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if (sizes[1:] > sizes[:-1]).any():
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you "
            "do not need ONNX exportability."
        )
    if sizes[0] > shape[0]:
        raise RuntimeError(f"Expected the lengths to be at most the number of steps {shape[0]}, but got {sizes[0]}")
    batch_sizes, steps, sequences = _steps_and_sequences(sizes)
    return PackedSequence(rnn.packed(input, steps, sequences), wrap(batch_sizes), sorted_indices)


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """Return packed sequences padded, in the order in which they were packed, and their lengths.

    The result has `total_length` steps, by default those of the longest sequence.

    Example:
        >>> rnn = torch.nn.utils.rnn
        >>> packed = rnn.pack_sequence([torch.tensor([1, 2, 3]), torch.tensor([4, 5])])
        >>> rnn.pad_packed_sequence(packed, batch_first=True)
        (tensor([[1, 2, 3],
                [4, 5, 0]]), tensor([3, 2]))
    """
    batch_sizes = sequence.batch_sizes._array
    longest = batch_sizes.size
    if total_length is not None and total_length < longest:
        raise ValueError(
            "Expected total_length to be at least the length of the longest sequence in input, but got "
            f"total_length={total_length} and max sequence length being {longest}"
        )
    lengths = (batch_sizes[:, None] > np.arange(batch_sizes[0])).sum(0, dtype=np.int64)
    _, steps, sequences = _steps_and_sequences(lengths)
    data = sequence.data
    shape = (total_length or longest, int(batch_sizes[0]), *data.shape[1:])
    padded = rnn.padded(data, steps, sequences, shape, padding_value)
    if batch_first:
        padded = padded.transpose(0, 1)
    unsorted = sequence.unsorted_indices
    if unsorted is None:
        return padded, wrap(lengths)
    return index_select(padded, 0 if batch_first else 1, unsorted), wrap(lengths[unsorted._array])


@asking("nn.utils.rnn.pad_sequence")
def pad_sequence(
    sequences: Any, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """Return tensors of different lengths as one padded tensor.

    The tensors are (length, *), the result (steps, batch, *), or with `batch_first` (batch, steps, *); `padding_side`
    is "right" or "left".

    Example:
        >>> torch.nn.utils.rnn.pad_sequence([torch.ones(3), torch.ones(1)], batch_first=True)
        tensor([[1., 1., 1.],
                [1., 0., 0.]])
    """
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        )
    tensors = list(sequences)
    if not tensors:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise TypeError(
                "pad_sequence(): argument 'sequences' (position 1) must be tuple of Tensors, not "
                f"tuple containing {type(tensor).__name__}"
            )
        if not tensor.ndim:
            raise RuntimeError("ArrayRef: invalid slice, N = 1; size = 0")
    trailing = tensors[0].shape[1:]
    for tensor in tensors:
        if tensor.shape[1:] != trailing:
            got = tensor.shape[1:]
            differ = [a != b for a, b in zip(trailing, got, strict=False)]
            k = differ.index(True) if any(differ) else 0
            raise sizes_differ([*trailing, 0][k], [*got, 0][k], k + 1)
    lengths = np.array([tensor.shape[0] for tensor in tensors], np.intp)
    longest = int(lengths.max())
    batch = np.repeat(np.arange(len(tensors)), lengths)
    steps = np.arange(batch.size) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    if padding_side == "left":
        steps = steps + np.repeat(longest - lengths, lengths)
    joined = cat([tensor.to(tensors[0].dtype) for tensor in tensors])
    if batch_first:
        shape = (len(tensors), longest, *trailing)
        padded: Tensor = rnn.padded(joined, batch, steps, shape, padding_value)
    else:
        shape = (longest, len(tensors), *trailing)
        padded = rnn.padded(joined, steps, batch, shape, padding_value)
    return padded


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """Return padded sequences as a list of tensors without the padding.

    As in PyTorch, without `batch_first` the given tensor itself is transposed, in place.

    Example:
        >>> rnn = torch.nn.utils.rnn
        >>> rnn.unpad_sequence(torch.tensor([[1, 2, 3], [4, 0, 0]]), torch.tensor([3, 1]), batch_first=True)
        [tensor([1, 2, 3]), tensor([4])]
    """
    if not batch_first:
        padded_sequences.transpose_(0, 1)
    steps = arange(padded_sequences.shape[1])
    return [sequence[steps < length] for sequence, length in zip(padded_sequences, lengths, strict=True)]


def pack_sequence(sequences: list[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Return tensors of different lengths packed.

    The tensors are (length, *); `enforce_sorted` as for `pack_padded_sequence`.

    Example:
        >>> rnn = torch.nn.utils.rnn
        >>> rnn.pack_sequence([torch.tensor([1, 2, 3]), torch.tensor([4, 5])]).data
        tensor([1, 4, 2, 5, 3])
    """
    lengths = as_tensor([sequence.size(0) for sequence in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Return packed sequences as a list of tensors, in the order in which they were packed.

    Example:
        >>> rnn = torch.nn.utils.rnn
        >>> rnn.unpack_sequence(rnn.pack_sequence([torch.tensor([1, 2]), torch.tensor([3])]))
        [tensor([1, 2]), tensor([3])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
