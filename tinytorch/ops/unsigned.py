"""What PyTorch's kernels refuse of unsigned integers wider than a byte, which NumPy has every operation for.

A look at the dtypes would cost each call, also of other dtypes. So the kernels of `REFUSED` look only from the moment
on when there is an array of such a type (`dtypes.on_unsigned`): programs that have none pay nothing.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from tinytorch.core import op as core
from tinytorch.kernels import dtypes

#: The ops that refuse, by their name, their kernel's or their node's, and how: PyTorch's name of its kernel ("{}" is
#: the op, "{{4}}" its fifth argument), then "*" if it is not called where there are no elements, "+" if it is not for a
#: single number.
REFUSED = {
    op: entry.split()[0].format(op)
    for entry in """
    {}_cpu aminmax bitwise_not flip fmod gcd ge gt heaviside lcm le logical_and logical_not logical_or logical_xor lt
    remainder; {}_cpu* argmax argmin; {}_cpu+ kthvalue topk; {}_cpu*+ cummax cummin mode; {} cross dot index_put
    masked_fill masked_scatter max_all min_all pow trace; {}* baddbmm bmm channel_shuffle masked_select pixel_shuffle
    pixel_unshuffle tril triu; abs_cpu abs; add_stub Add Rsub Sub from_scaled minus_scaled plus_scaled; addcmul_cpu_out
    addcmul; addmm_impl_cpu_* Mm addbmm addmm gru_layer linear lstm_layer mm rnn_layer; addmv_impl_cpu* addmv mv;
    addr_cpu addr; clamp_cpu clamp_to_tensors; clamp_max_scalar_cpu _clamp_max; clamp_min_scalar_cpu _clamp_min relu;
    clamp_scalar_cpu _clamp hardtanh; div_floor_cpu _floor_divided floor_divide; div_trunc_cpu _trunc_divided; flip_cpu
    rot90; im2col_out_cpu Im2Col; index_add_ index_add; index_copy_cpu index_copy; index_fill_cpu index_fill; lshift_cpu
    bitwise_left_shift; max_cpu*+ max_dim; max_values_cpu* amax; maximum_cpu clamp_min fmax maximum; median_cpu*
    median_all nanmedian_all; median_out median_dim nanmedian_dim; min_cpu*+ min_dim; min_values_cpu* amin; minimum_cpu
    clamp_max fmin minimum; neg_cpu neg; nonzero_count_cpu count_nonzero; pow square; prelu_cpu prelu; rshift_cpu
    bitwise_right_shift; scatter_gather_tensor_cpu_reduce_{{4}} scatter_extreme scatter_mean; scatter_gather_tensor_cpu*
    gather scatter scatter_add scatter_prod scatter_sum; sign_cpu sgn sign; take_cpu* take; take_put_cpu* put;
    threshold_cpu threshold; tril unpacked_lu
    """.split(";")
    for op in entry.split()[1:]
}


def begin() -> None:
    """Let all kernels that are listed look, and those of ops to come."""
    core.told.append(refuse)
    for made in core.ops:
        refuse(made)


def refuse(made: core.Op) -> None:
    """Let the kernel of an op look at the dtypes first, if PyTorch's refuses unsigned integers."""
    node = made.node_class.__name__.removesuffix("Backward0")
    names = (made.kernel.__name__, made.name, made.name.strip("_"), node)
    entry = next((REFUSED[each] for each in names if each in REFUSED), None)
    if entry is None:
        return
    name, index = entry.rstrip("*+"), made.position.get("index")

    def check(args: tuple[Any, ...]) -> None:
        arrays = [each for each in args if isinstance(each, np.ndarray)]
        wide = [each.dtype for each in arrays if _is_wide(each)]
        if not wide or (index is not None and _is_wide(args[index])):  # (of an index the kernel says what is wrong)
            return
        if ("*" in entry and not all(each.size for each in arrays)) or ("+" in entry and not arrays[0].ndim):
            return
        if name == "pow" and len(args) == 2:
            base, exponent = args
            if not ((base.ndim or base != 1) and (exponent.ndim or exponent not in (0, 1))):
                return
        if name == "flip_cpu" and not _flips_within_rows(*args):
            return
        if name == "nonzero_count_cpu" and (args[1] or args[1] == 0):  # along dimensions it is a sum
            return
        kind = dtypes.from_numpy_dtype(wide[0]).tensor_name
        raise NotImplementedError(f"\"{name.format(*args)}\" not implemented for '{kind}'")

    def looking(kernel: Any) -> Any:
        def look(*args: Any, **kwargs: Any) -> Any:
            check(args)
            return kernel(*args, **kwargs)

        if isinstance(kernel, np.ufunc):
            look.ufunc, look.writes = kernel, True  # type: ignore[attr-defined]
        return functools.update_wrapper(look, kernel)

    made.looking, made.kernel = looking, looking(made.kernel)
    for call in made.callers:
        if "KERNEL" in call.__globals__:  # (see `core/caller.py`)
            call.__globals__["KERNEL"] = made.kernel
        else:
            cells = dict(zip(call.__code__.co_freevars, call.__closure__, strict=True))
            cell = cells.get("kernel") or cells["write"]
            cell.cell_contents = looking(cell.cell_contents)


def _flips_within_rows(x: Any, *turns_and_dims: Any) -> bool:
    """Return whether more than whole rows change places by `flip` or `rot90`."""
    *turns, dims = turns_and_dims
    if turns:
        dims = ((), dims[1:], dims, dims[:1])[turns[0] % 4]
    flipped = [d % x.ndim for d in dims if x.ndim and x.shape[d] > 1]
    inner = min((abs(step), -d) for d, step in enumerate(x.strides) if x.shape[d] > 1) if flipped else (x.itemsize, 1)
    return inner[0] != x.itemsize or -inner[1] in flipped


def _is_wide(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.dtype.kind == "u" and x.dtype.itemsize > 1
