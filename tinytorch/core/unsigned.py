"""What PyTorch's kernels refuse of unsigned integers wider than a byte, which NumPy has every operation for.

A look at the dtypes would cost each call, also of other dtypes. So the kernels of `REFUSED` look only from the moment
on when there is an array of such a type (`dtypes.on_unsigned`): programs that have none pay nothing.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from tinytorch.kernels import dtypes

#: PyTorch's names of its kernels ("{}" stands for the op's), and the ops: by the op's name, its kernel's or its node's.
REFUSED = {
    op: line.partition(": ")[0].strip().format(op)
    for line in """
    flip_cpu: rot90
    scatter_gather_tensor_cpu_reduce_mean: scatter_mean
    {}_cpu: aminmax argmax argmin bincount bitwise_not cummax cummin flip fmod gcd ge gt heaviside kthvalue lcm le
    {}_cpu: logical_and logical_not logical_or logical_xor lt mode remainder topk
    {}: baddbmm bmm channel_shuffle cross dot index_put masked_fill masked_scatter masked_select max_all min_all
    {}: pixel_shuffle pixel_unshuffle pow trace tril triu
    abs_cpu: abs
    add_stub: Add Rsub Sub dist from_scaled minus_scaled plus_scaled
    addcmul_cpu_out: addcmul
    addmm_impl_cpu_: Mm addbmm addmm gru_layer linear lstm_layer mm rnn_layer
    addmv_impl_cpu: addmv mv
    addr_cpu: addr
    clamp_cpu: clamp_to_tensors
    clamp_max_scalar_cpu: _clamp_max
    clamp_min_scalar_cpu: _clamp_min relu
    clamp_scalar_cpu: _clamp hardtanh
    div_floor_cpu: _floor_divided floor_divide
    div_trunc_cpu: _trunc_divided
    im2col_out_cpu: Im2Col
    index_add_: index_add
    index_copy_cpu: index_copy
    index_fill_cpu: index_fill
    lshift_cpu: bitwise_left_shift
    max_cpu: max_dim
    max_values_cpu: amax
    maximum_cpu: clamp_min fmax maximum
    median_cpu: median_all nanmedian_all
    median_out: median_dim nanmedian_dim
    min_cpu: min_dim
    min_values_cpu: amin
    minimum_cpu: clamp_max fmin minimum
    neg_cpu: neg
    nonzero_count_cpu: count_nonzero
    pow: square
    prelu_cpu: prelu
    rshift_cpu: bitwise_right_shift
    scatter_gather_tensor_cpu: gather scatter scatter_add scatter_prod scatter_sum
    sign_cpu: sgn sign
    slow_conv2d_cpu: conv conv_input
    take_cpu: take
    take_put_cpu: put
    threshold_cpu: threshold
    """.strip().splitlines()
    for op in line.partition(": ")[2].split()
}


#: Those that are not called where there are no elements, and those that are not called for a single number.
_IDLE = frozenset(
    """addmm_impl_cpu_ addmv_impl_cpu argmax_cpu argmin_cpu baddbmm bmm channel_shuffle cummax_cpu cummin_cpu flip_cpu
    masked_select max_cpu max_values_cpu median_cpu min_cpu min_values_cpu mode_cpu pixel_shuffle pixel_unshuffle
    scatter_gather_tensor_cpu take_cpu take_put_cpu tril triu""".split()
)
_OF_NUMBERS = frozenset("aminmax_cpu cummax_cpu cummin_cpu flip_cpu kthvalue_cpu max_cpu min_cpu mode_cpu topk_cpu".split())


def refuse(made: Any) -> None:
    """Let the kernel of an op look at the dtypes first, if PyTorch's refuses unsigned integers."""
    node = made.node_class.__name__.removesuffix("Backward0")
    names = (made.kernel.__name__, made.name, made.name.strip("_"), node)
    name = next((REFUSED[each] for each in names if each in REFUSED), None)
    if name is None:
        return
    index = made.position.get("index")

    def refuses(args: tuple[Any, ...]) -> bool:
        arrays = [each for each in args if isinstance(each, np.ndarray)]
        if not any(map(_is_wide, arrays)) or (index is not None and _is_wide(args[index])):
            return False  # (of an index the kernel says what is wrong)
        if name == "pow":
            return not any(not each.ndim and each in numbers for each, numbers in zip(args, ((1,), (0, 1))))  # noqa: B905
        if name == "nonzero_count_cpu" and args[1] is not None:
            return False
        return (name not in _IDLE or all(each.size for each in arrays)) and (arrays[0].ndim > 0 or name not in _OF_NUMBERS)

    def looking(kernel: Any) -> Any:
        def look(*args: Any, **kwargs: Any) -> Any:
            if refuses(args):
                kind = next(each.dtype for each in args if _is_wide(each))
                raise NotImplementedError(
                    f"\"{name}\" not implemented for '{dtypes.from_numpy_dtype(kind).tensor_name}'"
                )
            return kernel(*args, **kwargs)

        if isinstance(kernel, np.ufunc):
            look.ufunc, look.writes = kernel, True  # type: ignore[attr-defined]
        return functools.update_wrapper(look, kernel)

    made.looking, made.kernel = looking, looking(made.kernel)
    for call in made.callers:
        if "KERNEL" in call.__globals__:  # (see `caller.py`)
            call.__globals__["KERNEL"] = made.kernel
            continue
        cells = dict(zip(call.__code__.co_freevars, call.__closure__, strict=True))
        cell = cells.get("kernel") or cells["write"]
        cell.cell_contents = looking(cell.cell_contents)


def _is_wide(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.dtype.kind == "u" and x.dtype.itemsize > 1
