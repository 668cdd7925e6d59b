"""What processes do with tensors together: `all_reduce`, `broadcast`, `all_gather` and their kin.

Each function says what must be the same on all ranks (`facts`), how MPI begins it, and what is done with what has come.
MPI gets bytes where it only moves, and numbers where it computes.
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

# What they have in common -------------------------------------------------------------------------


def check_tensor(value: Any, name: str) -> None:
    """Raise TypeError if an argument is no tensor."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor\n"
            f"             but got {type(value)} instead."
        )


def check_tensors(values: Any, name: str, dtype: Any = None) -> None:
    """Raise TypeError if an argument is no list of tensors, ValueError if they have not all the same dtype."""
    if not isinstance(values, (list, tuple)) or not all(isinstance(each, Tensor) for each in values):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]\n"
            f"             but got {type(values)} with elements of type {[type(each) for each in values]}."
        )
    for each in values:
        if dtype is not None and each.dtype != dtype:
            raise ValueError(f"Invalid usage of tensors with different dtypes: found {dtype} and {each.dtype}")


def octets(array: Array) -> Array:
    """Return the bytes of a contiguous array."""
    return array.reshape(-1).view(np.uint8)


def put(tensors: Sequence[Tensor], arrays: Sequence[Array]) -> None:
    """Put arrays of the same sizes into tensors."""
    for tensor, array in zip(tensors, arrays, strict=True):
        if array is not tensor._array:
            tensor._array[...] = array.reshape(tensor.shape)
        tensor._bump()


def receiving(tensor: Tensor) -> tuple[Array, Done]:
    """Return a contiguous array to receive into, the tensor's own if it is, and what puts it into the tensor."""
    array = tensor._array
    into = array if array.flags.c_contiguous else np.empty(array.shape, array.dtype)
    return into, lambda: put([tensor], [into])


def ended(work: Work, async_op: bool) -> Work | None:
    """Return the work if nobody is to wait for it; else wait."""
    if async_op:
        return work
    work.wait()
    return None


def member_rank(
    group: ProcessGroup, rank: int | None, group_rank: int | None, what: str, default: int | None = None
) -> int:
    """Return the rank in a group of the process that a function names by `src` or `dst`, or by its rank in the group.

    Args:
        default: `rank`, where neither is given.

    Raises:
        ValueError: both are given, or none.
        RuntimeError: there is no such process.
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


def _facts(tensor: Tensor, *others: object) -> str:
    return " ".join([str(tensor.dtype).removeprefix("torch."), str(tuple(tensor.shape)), *map(str, others)])


# Reductions ---------------------------------------------------------------------------------------


class _Reduction:
    """How MPI computes with the numbers of a dtype.

    Of 16-bit floats it knows nothing: they are added in float32. Booleans are added as they are multiplied by others,
    in bits: PyTorch's sum of them is true where any is.

    Raises:
        TypeError: `op` is no `ReduceOp`.
        RuntimeError: the dtype has no such operation.
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
        """Return contiguous numbers that MPI computes with: in the array's own memory if they are such."""
        if array.dtype == np.bool_:
            array = array.view(np.uint8)
        return np.array(array, self.computes, order="C", copy=None)

    def leave(self, numbers: Array, tensor: Tensor) -> None:
        """Put the result into the tensor."""
        if self.divisor != 1:
            numbers /= self.divisor
        if not np.may_share_memory(numbers, tensor._array):
            tensor._array[...] = numbers.reshape(tensor.shape)
        tensor._bump()


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Group = None, async_op: bool = False) -> Work | None:
    """Put into the tensor the sum (or what `op` says) of all processes' tensors.

    Args:
        tensor: of the same shape and dtype everywhere.
        op: a `ReduceOp`.
        group: the processes; all if None.
        async_op: return at once; the result is there after `wait()`.

    Returns:
        The work if `async_op`, else None.

    Raises:
        TypeError: `tensor` is no tensor, or `op` no `ReduceOp`.
        RuntimeError: the dtype has no such operation; a rank is late, or calls something else.

    Example:
        >>> torch.distributed.init_process_group("gloo", rank=0, world_size=1)
        >>> x = torch.ones(2)
        >>> torch.distributed.all_reduce(x)
        >>> x  # the only process's
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
        _facts(tensor, op.name),
        lambda comm: comm.Iallreduce(mpi().IN_PLACE, numbers, reduction.op),
        lambda: reduction.leave(numbers, tensor),
        [tensor],
    )


def all_reduce_coalesced(
    tensors: Sequence[Tensor], op: Any = ReduceOp.SUM, group: Group = None, async_op: bool = False
) -> Work | None:
    """Do to each of the tensors what `all_reduce` does."""
    check_tensors(tensors, "tensors")
    if (group := member(group, "all_reduce_coalesced")) is None:
        return None
    works = [_all_reduce(each, op, group, "all_reduce_coalesced") for each in tensors]
    return ended(together(group, "all_reduce_coalesced", works, list(tensors)), async_op)


def together(group: ProcessGroup, name: str, works: Sequence[Work], results: list[Any]) -> Work:
    """Return several works, which wait for their turns on their own, as one."""
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
    """Put the sum (or what `op` says) of all processes' tensors into the one of process `dst`; see `all_reduce`."""
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
    return ended(group.run("reduce", _facts(tensor, op.name, "to", root), start, finish, [tensor]), async_op)


def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: Any = ReduceOp.SUM, group: Group = None, async_op: bool = False
) -> Work | None:
    """Put into the output this process's part of the sum (or what `op` says) of all processes' inputs.

    Args:
        output: as many elements as each process gets.
        input: the parts of all processes, one after the other (or stacked): as many elements as all outputs have.
        op, group, async_op: those of `all_reduce`.

    Raises:
        ValueError: the sizes do not fit.
    """
    check_tensor(output, "output")
    check_tensor(input, "input")
    if (group := member(group, "reduce_scatter_tensor")) is None:
        return None
    if input.numel() != output.numel() * group.size():
        raise ValueError("input tensor must be the same size as output size times world size")
    if input.dtype != output.dtype:
        raise ValueError(f"Invalid usage of tensors with different dtypes: found {output.dtype} and {input.dtype}")
    return ended(_reduce_scatter(output, input._array, op, group, "reduce_scatter_tensor"), async_op)


def _reduce_scatter(output: Tensor, parts: Array, op: Any, group: ProcessGroup, name: str) -> Work:
    reduction = _Reduction(op, parts.dtype, group.size())
    sent, numbers = reduction.enter(parts), reduction.enter(output._array)
    return group.run(
        name,
        _facts(output, op.name),
        lambda comm: comm.Ireduce_scatter_block(sent, numbers, reduction.op),
        lambda: reduction.leave(numbers, output),
        [output],
        [(numbers, sent.reshape(numbers.shape))] if group.size() == 1 else (),
    )


reduce_scatter_single = reduce_scatter_tensor


def reduce_scatter(
    output: Tensor, input_list: Sequence[Tensor], op: Any = ReduceOp.SUM, group: Group = None, async_op: bool = False
) -> Work | None:
    """Put into the output the sum (or what `op` says) of what all processes' lists have for this process."""
    check_tensor(output, "output")
    check_tensors(input_list, "input_list", output.dtype)
    if (group := member(group, "reduce_scatter")) is None:
        return None
    if len(input_list) != group.size():
        raise RuntimeError("invalid input tensor list size, must be world size")
    _check_sizes("reduce_scatter", output, input_list)
    parts = np.stack([each._array for each in input_list])
    return ended(_reduce_scatter(output, parts, op, group, "reduce_scatter"), async_op)


# Moving -------------------------------------------------------------------------------------------


def _check_sizes(name: str, tensor: Tensor, others: Sequence[Tensor]) -> None:
    for i, each in enumerate(others):
        if each.shape != tensor.shape:
            wanted, found = tuple(tensor.shape), tuple(each.shape)
            raise RuntimeError(f"{name}: invalid tensor size at index {i} (expected {wanted}, got {found})")


def broadcast(
    tensor: Tensor, src: int | None = None, group: Group = None, async_op: bool = False, group_src: int | None = None
) -> Work | None:
    """Put the tensor of process `src` into those of all.

    Args:
        tensor: of the same shape and dtype everywhere.
        src: the rank among all processes; or `group_src`, that in the group.
        group, async_op: those of `all_reduce`.

    Raises:
        ValueError: neither `src` nor `group_src` is given, or both are.
        RuntimeError: there is no such process; a rank is late, or calls something else.
    """
    check_tensor(tensor, "tensor")
    if (group := member(group, "broadcast")) is None:
        return None
    root = member_rank(group, src, group_src, "broadcast")
    array, finish = receiving(tensor)
    if group.rank() == root:
        array, finish = np.ascontiguousarray(tensor._array), tensor._bump
    facts = _facts(tensor, "from", root)
    work = group.run("broadcast", facts, lambda comm: comm.Ibcast(octets(array), root), finish, [tensor])
    return ended(work, async_op)


def _broadcast_coalesced(group: Group, tensors: Sequence[Tensor], buffer_size: int = 0, src: int = 0) -> None:
    """Give all processes the values of tensors of one: one message for all of a dtype."""
    by_dtype: dict[Any, list[Tensor]] = {}
    for each in tensors:
        by_dtype.setdefault(each._array.dtype, []).append(each)
    for dtype, some in by_dtype.items():
        ends = np.cumsum([each.numel() for each in some])
        flat = np.empty(ends[-1], dtype)
        if group.rank() == src:
            np.concatenate([each._array.reshape(-1) for each in some], out=flat)
        everything = octets(flat)
        facts = f"{len(some)} tensors of {dtype}, {flat.size} elements"
        group.run("broadcast", facts, lambda comm, all=everything: comm.Ibcast(all, src)).wait()
        if group.rank() != src:
            put(some, np.split(flat, ends[:-1]))


def all_gather(
    tensor_list: Sequence[Tensor], tensor: Tensor, group: Group = None, async_op: bool = False
) -> Work | None:
    """Put the tensors of all processes into a list of tensors, in the order of their ranks.

    Args:
        tensor_list: as many tensors as processes, each like `tensor`: they are written into.
        tensor: of the same shape and dtype everywhere.
        group, async_op: those of `all_reduce`.

    Raises:
        RuntimeError: the list has not as many tensors, or they have another shape.
        ValueError: they have another dtype.
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
        _facts(tensor),
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
    """Do for each of several tensors what `all_gather` does: each list has, by process, all of its tensors."""
    check_tensors(input_tensor_list, "input_tensor_list")
    if (group := member(group, "all_gather_coalesced")) is None:
        return None
    name = "all_gather_coalesced"
    columns = list(zip(*output_tensor_lists, strict=True))
    works = [_all_gather(column, each, group, name) for column, each in zip(columns, input_tensor_list, strict=True)]
    return ended(together(group, name, works, []), async_op)


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Group = None, async_op: bool = False
) -> Work | None:
    """Put the tensors of all processes into one, one after the other (or stacked), in the order of their ranks.

    Args:
        output_tensor: as many elements as all inputs have.
        input_tensor: of the same shape and dtype everywhere.
        group, async_op: those of `all_reduce`.

    Raises:
        ValueError: the sizes or the dtypes do not fit.
    """
    check_tensor(output_tensor, "output_tensor")
    check_tensor(input_tensor, "input_tensor")
    if (group := member(group, "all_gather_into_tensor")) is None:
        return None
    if output_tensor.numel() != input_tensor.numel() * group.size():
        raise ValueError("output tensor size must be equal to world_size times input tensor size")
    if output_tensor.dtype != input_tensor.dtype:
        dtypes = f"{output_tensor.dtype} and {input_tensor.dtype}"
        raise ValueError(f"Invalid usage of tensors with different dtypes: found {dtypes}")
    sent = np.ascontiguousarray(input_tensor._array)
    into, finish = receiving(output_tensor)
    work = group.run(
        "all_gather_into_tensor",
        _facts(input_tensor),
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
    """Put the tensors of all processes into a list of tensors of process `dst` (0 if None).

    Args:
        tensor: of the same shape and dtype everywhere.
        gather_list: there, as many tensors as processes, which are written into; elsewhere None.
        dst: the rank among all processes; or `group_dst`, that in the group.
        group, async_op: those of `all_reduce`.

    Raises:
        ValueError: the list is missing there, or given elsewhere.
    """
    check_tensor(tensor, "tensor")
    if (group := member(group, "gather")) is None:
        return None
    root = member_rank(group, dst, group_dst, "gather", default=0)
    here = group.rank() == root
    tensors = _given(gather_list, "gather_list", "destination", here, tensor, group)
    sent = np.ascontiguousarray(tensor._array)
    rows = np.empty((len(tensors), *tensor.shape), sent.dtype)

    def start(comm: Any) -> Any:
        return comm.Igather(octets(sent), octets(rows) if here else None, root)

    facts = _facts(tensor, "to", root)
    work = group.run("gather", facts, start, lambda: put(tensors, list(rows)), tensors, [(rows, sent)])
    return ended(work, async_op)


def _given(values: Any, name: str, end: str, here: bool, tensor: Tensor, group: ProcessGroup) -> list[Tensor]:
    """Return a list that one process gives, and the others do not."""
    if not here:
        if values:
            raise ValueError(f"Argument ``{name}`` must NOT be specified on non-{end} ranks.")
        return []
    if not values:
        raise ValueError(f"Argument ``{name}`` must be specified on {end} rank.")
    check_tensors(values, name, tensor.dtype)
    if len(values) != group.size():
        way = "input" if end == "source" else "output"
        raise RuntimeError(
            f"{name}: Incorrect {way} list size {len(values)}. {way.capitalize()} list size should be "
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
    """Put into the tensor what a list of process `src` (0 if None) has for this process.

    Args:
        tensor: of the same shape and dtype everywhere.
        scatter_list: there, as many tensors as processes; elsewhere None.
        src: the rank among all processes; or `group_src`, that in the group.
        group, async_op: those of `all_reduce`.

    Raises:
        ValueError: the list is missing there, or given elsewhere.
    """
    check_tensor(tensor, "tensor")
    if (group := member(group, "scatter")) is None:
        return None
    root = member_rank(group, src, group_src, "scatter", default=0)
    here = group.rank() == root
    tensors = _given(scatter_list, "scatter_list", "source", here, tensor, group)
    rows = np.stack([each._array for each in tensors]) if here else None
    into, finish = receiving(tensor)

    def start(comm: Any) -> Any:
        return comm.Iscatter(None if rows is None else octets(rows), octets(into), root)

    alone = [(into, rows[0])] if rows is not None and group.size() == 1 else ()
    return ended(group.run("scatter", _facts(tensor, "from", root), start, finish, [tensor], alone), async_op)


def all_to_all(
    output_tensor_list: Sequence[Tensor],
    input_tensor_list: Sequence[Tensor],
    group: Group = None,
    async_op: bool = False,
) -> Work | None:
    """Send each process the tensor that a list has for it, and put what comes from each into another list.

    Args:
        output_tensor_list: by process, a tensor of the size of what comes.
        input_tensor_list: by process, what it gets; sizes may differ.
        group, async_op: those of `all_reduce`.

    Raises:
        RuntimeError: the lists have not as many tensors as there are processes; what comes has another size.
    """
    check_tensors(output_tensor_list, "output_tensor_list")
    check_tensors(input_tensor_list, "input_tensor_list")
    if (group := member(group, "all_to_all")) is None:
        return None
    if len(output_tensor_list) != group.size() or len(input_tensor_list) != group.size():
        raise RuntimeError(f"all_to_all: the lists must have {group.size()} tensors, one for each process")
    received = [receiving(each) for each in output_tensor_list]
    sent = [np.ascontiguousarray(each._array) for each in input_tensor_list]

    def finish() -> None:
        for _, done in received:
            done()

    facts = " ".join(sorted({str(each.dtype) for each in (*input_tensor_list, *output_tensor_list)}))
    work = _exchange([each for each, _ in received], sent, group, "all_to_all", facts, finish, list(output_tensor_list))
    return ended(work, async_op)


def _exchange(
    received: Sequence[Array],
    sent: Sequence[Array],
    group: ProcessGroup,
    name: str,
    facts: str,
    finish: Done,
    results: list[Any],
) -> Work:
    """Send arrays to all processes, and receive from all; sizes may differ, and are compared before anything moves."""
    size = group.size()
    coming = np.empty(size, np.int64)
    going = np.array([each.nbytes for each in sent])
    expected = np.array([each.nbytes for each in received])
    group.run(name, facts, lambda comm: comm.Ialltoall(going, coming), None, None, [(coming, going)]).wait()
    wrong = np.flatnonzero(coming != expected)
    if wrong.size:
        k = wrong[0]
        raise RuntimeError(
            f"[rank {group.global_rank}] {name}: rank {group.ranks[k]} sends {coming[k]} bytes, where the output has "
            f"{expected[k]}"
        )
    packed = np.concatenate([octets(each) for each in sent])
    into = np.empty(int(expected.sum()), np.uint8)

    def start(comm: Any) -> Any:
        return comm.Ialltoallv([packed, _places(going)], [into, _places(expected)])

    def unpack() -> None:
        for array, part in zip(received, np.split(into, np.cumsum(expected)[:-1]), strict=True):
            octets(array)[...] = part
        finish()

    return group.run(name, None, start, unpack, results, [(into, packed)])


def _places(counts: Array) -> tuple[Any, Any]:
    """Return the lengths and the beginnings of pieces that lie one after the other."""
    return counts, np.cumsum(counts) - counts


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: Group = None,
    async_op: bool = False,
) -> Work | None:
    """Send each process its part of a tensor, and put what comes from each into another, one after the other.

    Args:
        output, input: tensors that are cut along their first dimension.
        output_split_sizes, input_split_sizes: by process, the lengths of the parts; equal parts if None.
        group, async_op: those of `all_reduce`.

    Raises:
        RuntimeError: the parts do not fill the tensor; what comes has another size.
    """
    check_tensor(output, "output")
    check_tensor(input, "input")
    if (group := member(group, "all_to_all_single")) is None:
        return None
    if output.dtype != input.dtype:
        raise ValueError(f"Invalid usage of tensors with different dtypes: found {output.dtype} and {input.dtype}")
    into, finish = receiving(output)
    received = _cut(into, output_split_sizes, group.size())
    sent = _cut(np.ascontiguousarray(input._array), input_split_sizes, group.size())
    work = _exchange(received, sent, group, "all_to_all_single", str(input.dtype), finish, [output])
    return ended(work, async_op)


def _cut(array: Array, sizes: Sequence[int] | None, parts: int) -> list[Array]:
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


# Waiting ------------------------------------------------------------------------------------------


def barrier(group: Group = None, async_op: bool = False, device_ids: Any = None, timeout: Any = None) -> Work | None:
    """Wait until all processes have come to this point.

    Args:
        group, async_op: those of `all_reduce`.
        device_ids: accepted; it has no meaning here.
        timeout: how long at most; the group's if None.
    """
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
