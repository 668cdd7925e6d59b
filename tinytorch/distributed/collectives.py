"""Collective operations on tensors: `all_reduce`, `broadcast`, `all_gather` and so on.

Each function gives `ProcessGroup.run` a signature of the call that must be equal on all ranks, a function that starts
the operation in MPI, and a function that stores the result. MPI gets numbers for reductions, and bytes otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinytorch.core.tensor import Tensor
from tinytorch.distributed.groups import ProcessGroup, ReduceOp, get_group_rank, member
from tinytorch.distributed.mpi import mpi
from tinytorch.distributed.work import Together, Work

__all__ = [
    "all_gather", "all_gather_coalesced", "all_gather_into_tensor", "all_gather_single", "all_reduce",
    "all_reduce_coalesced", "all_to_all", "all_to_all_single", "barrier", "broadcast", "gather", "reduce",
    "reduce_scatter", "reduce_scatter_single", "reduce_scatter_tensor", "scatter", "supports_complex",
]  # fmt: skip

Array = np.ndarray[Any, Any]
Group = Any
Done = Callable[[], None]

# Helpers ------------------------------------------------------------------------------------------


def check_tensor(value: Any, name: str) -> None:
    """Raise TypeError if an argument is not a tensor."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor\n"
            f"             but got {type(value)} instead."
        )


def check_tensors(values: Any, name: str, dtype: Any = None) -> None:
    """Raise TypeError if an argument is not a list of tensors, ValueError if one has another dtype than `dtype`."""
    if not isinstance(values, (list, tuple)) or not all(isinstance(value, Tensor) for value in values):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]\n"
            f"             but got {type(values)} with elements of type {[type(value) for value in values]}."
        )
    for tensor in values:
        if dtype is not None:
            check_same_dtype(dtype, tensor.dtype)


def check_same_dtype(first: Any, second: Any) -> None:
    """Raise ValueError if two dtypes differ."""
    if first != second:
        raise ValueError(f"Invalid usage of tensors with different dtypes: found {first} and {second}")


def octets(array: Array) -> Array:
    """Return the bytes of a contiguous array."""
    return array.reshape(-1).view(np.uint8)


def put(tensors: Sequence[Tensor], arrays: Sequence[Array]) -> None:
    """Copy arrays into tensors with as many elements."""
    for tensor, array in zip(tensors, arrays, strict=True):
        if array is not tensor._array:
            tensor._array[...] = array.reshape(tensor.shape)
        tensor._bump()


def receiving(tensor: Tensor) -> tuple[Array, Done]:
    """Return a contiguous receive buffer (the tensor's array if possible), and a function that stores it."""
    array = tensor._array
    buffer = array if array.flags.c_contiguous else np.empty(array.shape, array.dtype)
    return buffer, lambda: put([tensor], [buffer])


def ended(work: Work, async_op: bool) -> Work | None:
    """Return the work if `async_op`; else wait for it and return None."""
    if async_op:
        return work
    work.wait()
    return None


def member_rank(
    group: ProcessGroup, rank: int | None, group_rank: int | None, what: str, default: int | None = None
) -> int:
    """Return the rank within a group of a process given by its global rank or by its rank in the group.

    Args:
        rank, group_rank: the global rank, or the rank in the group; the other one is None.
        what: the name of the function, for errors.
        default: the global rank if both are None.
    """
    if rank is None and group_rank is None:
        rank = default
    if rank is None and group_rank is None:
        raise ValueError("Must specify global_rank or group_rank")
    if rank is not None and group_rank is not None:
        raise ValueError("Can't specify both group_rank and global_rank")
    if group_rank is None:
        assert rank is not None
        if rank not in group.ranks:
            raise RuntimeError(f"{what}: invalid root rank: {rank}")
        return get_group_rank(group, rank)
    if not 0 <= group_rank < group.size():
        raise RuntimeError(f"{what}: invalid root rank: {group_rank}")
    return group_rank


def _signature(tensor: Tensor, *others: object) -> str:
    """Return the text that all ranks compare: dtype, shape and other arguments."""
    return " ".join([str(tensor.dtype).removeprefix("torch."), str(tuple(tensor.shape)), *map(str, others)])


# Reductions ---------------------------------------------------------------------------------------


class _Reduction:
    """MPI's operation and dtype for a `ReduceOp` on tensors of a dtype.

    MPI has no 16-bit floats: they are reduced in float32. Sums and products of booleans are bitwise operations, since
    PyTorch's sum of booleans is true where any of them is.
    """

    def __init__(self, op: Any, dtype: np.dtype[Any], size: int) -> None:
        if not isinstance(op, ReduceOp):
            raise TypeError(f"incompatible function arguments: op is to be a ReduceOp, but got {op!r}")
        if op is ReduceOp.PREMUL_SUM:
            raise RuntimeError("Cannot use ReduceOp.PREMUL_SUM with Gloo")
        floating = dtype.kind in "fV"
        if floating and op in (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR):
            raise RuntimeError(f"Cannot use ReduceOp.{op.name} with non-integral dtype")
        if op is ReduceOp.AVG and not floating:
            raise RuntimeError(f"result type Float can't be cast to the desired output type {dtype.name}")
        self.computes = np.dtype(np.float32 if floating and dtype.itemsize == 2 else dtype)
        self.divisor = size if op is ReduceOp.AVG else 1
        self.name = op.name
        if dtype == np.bool_:
            self.computes = np.dtype(np.uint8)
            bits = {ReduceOp.SUM: "BOR", ReduceOp.MAX: "BOR", ReduceOp.PRODUCT: "BAND", ReduceOp.MIN: "BAND"}
            self.name = bits.get(op, op.name)

    @property
    def op(self) -> Any:
        """Return MPI's operation."""
        return getattr(mpi(), {"AVG": "SUM", "PRODUCT": "PROD"}.get(self.name, self.name))

    def enter(self, array: Array) -> Array:
        """Return the array as a contiguous array of a dtype that MPI has, without a copy if possible."""
        if array.dtype == np.bool_:
            array = array.view(np.uint8)
        return np.array(array, self.computes, order="C", copy=None)

    def leave(self, numbers: Array, tensor: Tensor) -> None:
        """Store the result in the tensor."""
        if self.divisor != 1:
            numbers /= self.divisor
        if not np.may_share_memory(numbers, tensor._array):
            tensor._array[...] = numbers.reshape(tensor.shape)
        tensor._bump()


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Group = None, async_op: bool = False) -> Work | None:
    """Replace the tensor on each rank by the sum (or another reduction) of all ranks' tensors.

    Args:
        tensor: of the same shape and dtype on all ranks.
        op: a `ReduceOp`.
        group: the process group; all processes if None.
        async_op: return immediately; the result is complete after `wait()`.

    Example:
        >>> torch.distributed.init_process_group("gloo", rank=0, world_size=1)
        >>> x = torch.ones(2)
        >>> torch.distributed.all_reduce(x)
        >>> x  # the sum over one process
        tensor([1., 1.])
        >>> torch.distributed.destroy_process_group()
    """
    check_tensor(tensor, "tensor")
    if (group := member(group, "all_reduce")) is None:
        return None
    return ended(_all_reduce(tensor, op, group, "all_reduce"), async_op)


def _all_reduce(tensor: Tensor, op: Any, group: ProcessGroup, name: str) -> Work:
    reduction = _Reduction(op, tensor._array.dtype, group.size())
    numbers = reduction.enter(tensor._array)
    return group.run(
        name,
        _signature(tensor, op.name),
        lambda comm: comm.Iallreduce(mpi().IN_PLACE, numbers, reduction.op),
        lambda: reduction.leave(numbers, tensor),
        [tensor],
    )


def all_reduce_coalesced(
    tensors: Sequence[Tensor], op: Any = ReduceOp.SUM, group: Group = None, async_op: bool = False
) -> Work | None:
    """Apply `all_reduce` to each of the tensors."""
    check_tensors(tensors, "tensors")
    if (group := member(group, "all_reduce_coalesced")) is None:
        return None
    works = [_all_reduce(tensor, op, group, "all_reduce_coalesced") for tensor in tensors]
    return ended(together(group, "all_reduce_coalesced", works, list(tensors)), async_op)


def together(group: ProcessGroup, name: str, works: Sequence[Work], results: list[Any]) -> Work:
    """Return one work handle for several works."""
    work = Work(group, name, lambda: Together(list(works)), None, results)
    work.begin()
    return work


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: Any = ReduceOp.SUM,
    group: Group = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Replace the tensor on rank `dst` by the sum (or another reduction) of all ranks' tensors; see `all_reduce`."""
    check_tensor(tensor, "tensor")
    if (group := member(group, "reduce")) is None:
        return None
    root = member_rank(group, dst, group_dst, "reduce")
    reduction = _Reduction(op, tensor._array.dtype, group.size())
    numbers = reduction.enter(tensor._array)
    here = group.rank() == root

    def start(comm: Any) -> Any:
        return comm.Ireduce(mpi().IN_PLACE if here else numbers, numbers if here else None, reduction.op, root)

    finish = (lambda: reduction.leave(numbers, tensor)) if here else None
    return ended(group.run("reduce", _signature(tensor, op.name, "to", root), start, finish, [tensor]), async_op)


def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: Any = ReduceOp.SUM, group: Group = None, async_op: bool = False
) -> Work | None:
    """Reduce the inputs of all ranks, and scatter the result: each rank's output gets its part.

    Args:
        output: the part of this rank.
        input: the parts of all ranks, concatenated or stacked: as many elements as all outputs together.
        op, group, async_op: as for `all_reduce`.
    """
    check_tensor(output, "output")
    check_tensor(input, "input")
    if (group := member(group, "reduce_scatter_tensor")) is None:
        return None
    if input.numel() != output.numel() * group.size():
        raise ValueError("input tensor must be the same size as output size times world size")
    check_same_dtype(output.dtype, input.dtype)
    return ended(_reduce_scatter(output, input._array, op, group, "reduce_scatter_tensor"), async_op)


def _reduce_scatter(output: Tensor, parts: Array, op: Any, group: ProcessGroup, name: str) -> Work:
    reduction = _Reduction(op, parts.dtype, group.size())
    sent, numbers = reduction.enter(parts), reduction.enter(output._array)
    return group.run(
        name,
        _signature(output, op.name),
        lambda comm: comm.Ireduce_scatter_block(sent, numbers, reduction.op),
        lambda: reduction.leave(numbers, output),
        [output],
        [(numbers, sent.reshape(numbers.shape))] if group.size() == 1 else (),
    )


reduce_scatter_single = reduce_scatter_tensor


def reduce_scatter(
    output: Tensor, input_list: Sequence[Tensor], op: Any = ReduceOp.SUM, group: Group = None, async_op: bool = False
) -> Work | None:
    """Store in the output the sum (or another reduction) of the tensors that all ranks' lists have for this rank."""
    check_tensor(output, "output")
    check_tensors(input_list, "input_list", output.dtype)
    if (group := member(group, "reduce_scatter")) is None:
        return None
    if len(input_list) != group.size():
        raise RuntimeError("invalid input tensor list size, must be world size")
    _check_sizes("reduce_scatter", output, input_list)
    parts = np.stack([tensor._array for tensor in input_list])
    return ended(_reduce_scatter(output, parts, op, group, "reduce_scatter"), async_op)


# Broadcasting, gathering, scattering --------------------------------------------------------------


def _check_sizes(name: str, tensor: Tensor, others: Sequence[Tensor]) -> None:
    for i, other in enumerate(others):
        if other.shape != tensor.shape:
            expected, actual = tuple(tensor.shape), tuple(other.shape)
            raise RuntimeError(f"{name}: invalid tensor size at index {i} (expected {expected}, got {actual})")


def broadcast(
    tensor: Tensor, src: int | None = None, group: Group = None, async_op: bool = False, group_src: int | None = None
) -> Work | None:
    """Copy the tensor of rank `src` into the tensors of all ranks.

    Args:
        tensor: of the same shape and dtype on all ranks.
        src: the source's global rank; or `group_src`, its rank in the group.
        group, async_op: as for `all_reduce`.
    """
    check_tensor(tensor, "tensor")
    if (group := member(group, "broadcast")) is None:
        return None
    root = member_rank(group, src, group_src, "broadcast")
    array, finish = receiving(tensor)
    if group.rank() == root:
        array, finish = np.ascontiguousarray(tensor._array), tensor._bump
    signature = _signature(tensor, "from", root)
    work = group.run("broadcast", signature, lambda comm: comm.Ibcast(octets(array), root), finish, [tensor])
    return ended(work, async_op)


def _broadcast_coalesced(group: Group, tensors: Sequence[Tensor], buffer_size: int = 0, src: int = 0) -> None:
    """Broadcast tensors of one rank: all tensors of a dtype in one message."""
    by_dtype: dict[Any, list[Tensor]] = {}
    for tensor in tensors:
        by_dtype.setdefault(tensor._array.dtype, []).append(tensor)
    for dtype, same_dtype in by_dtype.items():
        ends = np.cumsum([tensor.numel() for tensor in same_dtype])
        flat = np.empty(ends[-1], dtype)
        if group.rank() == src:
            np.concatenate([tensor._array.reshape(-1) for tensor in same_dtype], out=flat)
        signature = f"{len(same_dtype)} tensors of {dtype}, {flat.size} elements"
        data = octets(flat)
        group.run("broadcast", signature, lambda comm, data=data: comm.Ibcast(data, src)).wait()
        if group.rank() != src:
            put(same_dtype, np.split(flat, ends[:-1]))


def all_gather(
    tensor_list: Sequence[Tensor], tensor: Tensor, group: Group = None, async_op: bool = False
) -> Work | None:
    """Copy the tensors of all ranks into a list of tensors, in the order of the ranks.

    Args:
        tensor_list: an output tensor for each rank, of the shape and dtype of `tensor`.
        tensor: of the same shape and dtype on all ranks.
        group, async_op: as for `all_reduce`.
    """
    check_tensors(tensor_list, "tensor_list", tensor.dtype if isinstance(tensor, Tensor) else None)
    check_tensor(tensor, "tensor")
    if (group := member(group, "all_gather")) is None:
        return None
    return ended(_all_gather(tensor_list, tensor, group, "all_gather"), async_op)


def _all_gather(tensor_list: Sequence[Tensor], tensor: Tensor, group: ProcessGroup, name: str) -> Work:
    size = group.size()
    if len(tensor_list) != size:
        raise RuntimeError(
            f"{name}: invalid output tensor list at index 0 (expected length {size}, got {len(tensor_list)})"
        )
    _check_sizes(name, tensor, tensor_list)
    sent = np.ascontiguousarray(tensor._array)
    rows = np.empty((size, *tensor.shape), sent.dtype)
    return group.run(
        name,
        _signature(tensor),
        lambda comm: comm.Iallgather(octets(sent), octets(rows)),
        lambda: put(tensor_list, list(rows)),
        list(tensor_list),
        [(rows, sent)],
    )


def all_gather_coalesced(
    output_tensor_lists: Sequence[Sequence[Tensor]],
    input_tensor_list: Sequence[Tensor],
    group: Group = None,
    async_op: bool = False,
) -> Work | None:
    """Apply `all_gather` to several tensors: the output list of a rank gets all of its tensors."""
    check_tensors(input_tensor_list, "input_tensor_list")
    if (group := member(group, "all_gather_coalesced")) is None:
        return None
    name = "all_gather_coalesced"
    columns = list(zip(*output_tensor_lists, strict=True))
    works = [_all_gather(column, x, group, name) for column, x in zip(columns, input_tensor_list, strict=True)]
    return ended(together(group, name, works, []), async_op)


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Group = None, async_op: bool = False
) -> Work | None:
    """Concatenate (or stack) the tensors of all ranks in one tensor, in the order of the ranks.

    Args:
        output_tensor: as many elements as all inputs together.
        input_tensor: of the same shape and dtype on all ranks.
        group, async_op: as for `all_reduce`.
    """
    check_tensor(output_tensor, "output_tensor")
    check_tensor(input_tensor, "input_tensor")
    if (group := member(group, "all_gather_into_tensor")) is None:
        return None
    if output_tensor.numel() != input_tensor.numel() * group.size():
        raise ValueError("output tensor size must be equal to world_size times input tensor size")
    check_same_dtype(output_tensor.dtype, input_tensor.dtype)
    sent = np.ascontiguousarray(input_tensor._array)
    into, finish = receiving(output_tensor)
    work = group.run(
        "all_gather_into_tensor",
        _signature(input_tensor),
        lambda comm: comm.Iallgather(octets(sent), octets(into)),
        finish,
        [output_tensor],
        [(octets(into), octets(sent))] if group.size() == 1 else (),
    )
    return ended(work, async_op)


all_gather_single = all_gather_into_tensor


def gather(
    tensor: Tensor,
    gather_list: Sequence[Tensor] | None = None,
    dst: int | None = None,
    group: Group = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Copy the tensors of all ranks into a list of tensors on rank `dst` (0 if None).

    Args:
        tensor: of the same shape and dtype on all ranks.
        gather_list: on rank `dst` an output tensor for each rank; None on the others.
        dst: the destination's global rank; or `group_dst`, its rank in the group.
        group, async_op: as for `all_reduce`.
    """
    check_tensor(tensor, "tensor")
    if (group := member(group, "gather")) is None:
        return None
    root = member_rank(group, dst, group_dst, "gather", default=0)
    here = group.rank() == root
    tensors = _root_list(gather_list, "gather_list", "destination", here, tensor, group)
    sent = np.ascontiguousarray(tensor._array)
    rows = np.empty((len(tensors), *tensor.shape), sent.dtype)

    def start(comm: Any) -> Any:
        return comm.Igather(octets(sent), octets(rows) if here else None, root)

    signature = _signature(tensor, "to", root)
    work = group.run("gather", signature, start, lambda: put(tensors, list(rows)), tensors, [(rows, sent)])
    return ended(work, async_op)


def _root_list(values: Any, name: str, end: str, is_root: bool, tensor: Tensor, group: ProcessGroup) -> list[Tensor]:
    """Check a list that the root passes, and the other ranks do not; return it, empty on the other ranks."""
    if not is_root:
        if values:
            raise ValueError(f"Argument ``{name}`` must NOT be specified on non-{end} ranks.")
        return []
    if not values:
        raise ValueError(f"Argument ``{name}`` must be specified on {end} rank.")
    check_tensors(values, name, tensor.dtype)
    if len(values) != group.size():
        kind = "input" if end == "source" else "output"
        raise RuntimeError(
            f"{name}: Incorrect {kind} list size {len(values)}. {kind.capitalize()} list size should be "
            f"{group.size()}, same as size of the process group."
        )
    _check_sizes(name, tensor, values)
    return list(values)


def scatter(
    tensor: Tensor,
    scatter_list: Sequence[Tensor] | None = None,
    src: int | None = None,
    group: Group = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Copy the tensors of a list on rank `src` (0 if None) to the ranks: each gets the tensor at its place.

    Args:
        tensor: the output, of the same shape and dtype on all ranks.
        scatter_list: on rank `src` a tensor for each rank; None on the others.
        src: the source's global rank; or `group_src`, its rank in the group.
        group, async_op: as for `all_reduce`.
    """
    check_tensor(tensor, "tensor")
    if (group := member(group, "scatter")) is None:
        return None
    root = member_rank(group, src, group_src, "scatter", default=0)
    here = group.rank() == root
    tensors = _root_list(scatter_list, "scatter_list", "source", here, tensor, group)
    rows = np.stack([x._array for x in tensors]) if here else None
    into, finish = receiving(tensor)

    def start(comm: Any) -> Any:
        return comm.Iscatter(None if rows is None else octets(rows), octets(into), root)

    alone = [(into, rows[0])] if rows is not None and group.size() == 1 else ()
    return ended(group.run("scatter", _signature(tensor, "from", root), start, finish, [tensor], alone), async_op)


def all_to_all(
    output_tensor_list: Sequence[Tensor],
    input_tensor_list: Sequence[Tensor],
    group: Group = None,
    async_op: bool = False,
) -> Work | None:
    """Send a tensor to each rank, and receive one from each.

    Args:
        output_tensor_list: the output tensor for each rank, of the size that it sends.
        input_tensor_list: the tensor for each rank; sizes may differ.
        group, async_op: as for `all_reduce`.
    """
    check_tensors(output_tensor_list, "output_tensor_list")
    check_tensors(input_tensor_list, "input_tensor_list")
    if (group := member(group, "all_to_all")) is None:
        return None
    if len(output_tensor_list) != group.size() or len(input_tensor_list) != group.size():
        raise RuntimeError(f"all_to_all: the lists must have {group.size()} tensors, one for each process")
    received = [receiving(tensor) for tensor in output_tensor_list]
    sent = [np.ascontiguousarray(tensor._array) for tensor in input_tensor_list]

    def finish() -> None:
        for _, store in received:
            store()

    dtypes = " ".join(sorted({str(tensor.dtype) for tensor in (*input_tensor_list, *output_tensor_list)}))
    buffers = [buffer for buffer, _ in received]
    work = _exchange(buffers, sent, group, "all_to_all", dtypes, finish, list(output_tensor_list))
    return ended(work, async_op)


def _exchange(
    received: Sequence[Array],
    sent: Sequence[Array],
    group: ProcessGroup,
    name: str,
    signature: str,
    finish: Done,
    results: list[Any],
) -> Work:
    """Send an array to each rank and receive one from each; sizes may differ, and are compared before the exchange."""
    incoming = np.empty(group.size(), np.int64)  # bytes from each rank
    outgoing = np.array([array.nbytes for array in sent])
    expected = np.array([array.nbytes for array in received])
    sizes = [(incoming, outgoing)]
    group.run(name, signature, lambda comm: comm.Ialltoall(outgoing, incoming), None, None, sizes).wait()
    wrong = np.flatnonzero(incoming != expected)
    if wrong.size:
        k = wrong[0]
        raise RuntimeError(
            f"[rank {group.global_rank}] {name}: rank {group.ranks[k]} sends {incoming[k]} bytes, where the output has "
            f"{expected[k]}"
        )
    packed = np.concatenate([octets(array) for array in sent])
    into = np.empty(int(expected.sum()), np.uint8)

    def start(comm: Any) -> Any:  # (a buffer, and the counts and offsets of its parts)
        parts = [(counts, np.cumsum(counts) - counts) for counts in (outgoing, expected)]
        return comm.Ialltoallv([packed, parts[0]], [into, parts[1]])

    def unpack() -> None:
        for array, part in zip(received, np.split(into, np.cumsum(expected)[:-1]), strict=True):
            octets(array)[...] = part
        finish()

    return group.run(name, None, start, unpack, results, [(into, packed)])


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: Group = None,
    async_op: bool = False,
) -> Work | None:
    """Send a part of a tensor to each rank, and concatenate the parts received from all ranks in another tensor.

    Args:
        output, input: tensors that are split along their first dimension.
        output_split_sizes, input_split_sizes: the length of the part for each rank; equal parts if None.
        group, async_op: as for `all_reduce`.
    """
    check_tensor(output, "output")
    check_tensor(input, "input")
    if (group := member(group, "all_to_all_single")) is None:
        return None
    check_same_dtype(output.dtype, input.dtype)
    into, finish = receiving(output)
    received = _split(into, output_split_sizes, group.size())
    sent = _split(np.ascontiguousarray(input._array), input_split_sizes, group.size())
    work = _exchange(received, sent, group, "all_to_all_single", str(input.dtype), finish, [output])
    return ended(work, async_op)


def _split(array: Array, sizes: Sequence[int] | None, parts: int) -> list[Array]:
    """Return the parts of an array along its first dimension."""
    length = array.shape[0] if array.ndim else 1
    if not sizes:
        if length % parts:
            raise RuntimeError("Tensor's dim 0 does not divide equally across group size")
        sizes = [length // parts] * parts
    if len(sizes) != parts:
        raise RuntimeError("Number of tensor splits not equal to group size")
    if sum(sizes) != length:
        raise RuntimeError("Split sizes doesn't match total dim 0 size")
    return np.split(array, np.cumsum(sizes)[:-1])


# Synchronisation ----------------------------------------------------------------------------------


def barrier(group: Group = None, async_op: bool = False, device_ids: Any = None, timeout: Any = None) -> Work | None:
    """Wait until all ranks have called this function."""
    if (group := member(group, "barrier")) is None:
        return None
    work = group.run("barrier", "", lambda comm: comm.Ibarrier())
    if async_op:
        return work
    work.wait(timeout)
    return None


def supports_complex(reduceOp: ReduceOp) -> bool:
    """Return whether an operation is defined for complex numbers.

    Example:
        >>> torch.distributed.supports_complex(torch.distributed.ReduceOp.MAX)
        False
    """
    return reduceOp in (ReduceOp.SUM, ReduceOp.AVG)
