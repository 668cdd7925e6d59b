"""`vmap`: a function of one example as a function of a batch of them, by one run (`ops/batching.py`)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.func.pytree import TreeSpec, _broadcast_to_and_flatten, describe, flatten, unflatten
from tinytorch.ops.batching import Batch, Batched, levels, physical, wrapped
from tinytorch.ops.random import get_rng_state, set_rng_state
from tinytorch.ops.register import functions

Function = Callable[..., Any]

__all__ = ["vmap"]


def vmap(
    func: Function, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *, chunk_size: int | None = None
) -> Function:
    """Return the function that applies `func` to each example of a batch and stacks the results.

    `func` runs once: inside of it a tensor has the shape of one example, and each operation computes all examples. It
    may use other transforms, be one of their arguments, and write in place. It cannot branch on the values of tensors.
    An operation that cannot compute a batch is called once per example, with a warning.

    `in_dims` is the batch dimension of the arguments: one for all, or a tuple with one per argument, nested as the
    argument is; None for an argument that is the same for all examples, as keyword arguments are. `out_dims` is that of
    the results, in the same form. With `randomness` "error", random operations raise an error; with "different" each
    example gets its own random numbers, with "same" all get the same. `chunk_size` is the largest number of examples in
    one run; None for all in one.

    Raises:
        ValueError: (when called) the batch sizes differ; a dimension does not exist; a mapped argument is no tensor.
        RuntimeError: (when called) `func` reads the values of tensors (`item()`, `if`), or writes what is batched into
            a tensor that is not; random numbers are drawn with "error".

    Example:
        >>> batch = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> torch.vmap(torch.dot)(batch, batch)
        tensor([ 5., 25.])
        >>> torch.vmap(torch.func.grad(lambda x: (x * x).sum()))(batch)  # a gradient for each example
        tensor([[2., 4.],
                [6., 8.]])
        >>> torch.vmap(lambda x, y: x * y, in_dims=(0, None), out_dims=1)(batch, batch[0])
        tensor([[1., 3.],
                [4., 8.]])
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if chunk_size is not None and not (chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        size, leaves, dims, structure = _inputs(func, in_dims, args)
        if any(map(_is_collection, leaves)):
            return _looped(func, size, leaves, dims, structure, out_dims, kwargs)
        if chunk_size is None or chunk_size >= size:
            return _run(func, size, leaves, dims, structure, out_dims, randomness, kwargs)
        state = get_rng_state() if randomness == "same" else None
        chunks: list[list[Any]] = []
        out_structure, dims_of_out = structure, dims
        for start in range(0, size, chunk_size):
            if state is not None:
                set_rng_state(state)
            count = min(chunk_size, size - start)
            parts = [x if d is None else x.narrow(d, start, count) for x, d in zip(leaves, dims, strict=True)]
            made = _run(func, count, parts, dims, structure, out_dims, randomness, kwargs)
            flat, out_structure = flatten(made)
            chunks.append(flat)
            dims_of_out = _dims_of_outputs(func, out_dims, made, out_structure)
        joined = [
            column[0] if dim is None else functions["cat"](column, dim)
            for column, dim in zip(zip(*chunks, strict=True), dims_of_out, strict=True)
        ]
        return unflatten(joined, out_structure)

    return mapped


def _run(
    func: Function, size: int, leaves: Sequence[Any], dims: Sequence[Any], structure: TreeSpec, out_dims: Any,
    randomness: str, kwargs: dict[str, Any],
) -> Any:  # fmt: skip
    """Return the results of one run for all examples."""
    examples = [x if not d else x.movedim(d, 0) for x, d in zip(leaves, dims, strict=True)]
    with Batch(size, randomness, True) as level:
        given = [x if d is None else wrapped(x, level) for x, d in zip(examples, dims, strict=True)]
        result = func(*unflatten(given, structure), **kwargs)
    outs, out_structure = flatten(result)
    dims_of_out = _dims_of_outputs(func, out_dims, result, out_structure)
    made = [_output(func, x, d, level) for x, d in zip(outs, dims_of_out, strict=True)]
    for k, x in enumerate(outs):  # an argument that is returned as it is stays the tensor that it was
        for leaf, example, dim in zip(leaves, examples, dims, strict=True):
            if dim is not None and dim == dims_of_out[k] and type(x) is Batched and x._under is example:
                made[k] = leaf
    return unflatten(made, out_structure)


def _output(func: Function, x: Any, dim: Any, level: Batch) -> Any:
    """Return a result with the batch as dimension `dim`."""
    name = _name(func)
    if dim is None:
        if level in levels(x):
            raise ValueError(f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None")
        return x
    if not isinstance(x, Tensor):
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(x)}. Did you mean to set out_dims= "
            "to None for output?"
        )
    whole = physical(x, level)
    return whole if dim == 0 else whole.movedim(0, dim)


# Arguments ------------------------------------------------------------------------------------------


def _inputs(func: Function, in_dims: Any, args: tuple[Any, ...]) -> tuple[int, list[Any], list[Any], TreeSpec]:
    """Return the size of a batch, the leaves of the arguments, their dimensions, and the structure of the arguments."""
    where = f"vmap({_name(func)}, in_dims={in_dims}, ...)(<inputs>)"
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"{where}: expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, "
            f"got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({_name(func)})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap "
            "over a function with no inputs. The latter is unsupported."
        )
    leaves, structure = flatten(args, _is_collection)
    dims = _broadcast_to_and_flatten(in_dims, structure)
    if dims is None:
        raise ValueError(
            f"{where}: in_dims is not compatible with the structure of `inputs`. in_dims has structure "
            f"{describe(flatten(in_dims)[1])} but inputs has structure {describe(structure)}."
        )
    found = []
    for k, (leaf, dim) in enumerate(zip(leaves, dims, strict=True)):
        if dim is None:
            continue
        if not isinstance(dim, int):
            raise ValueError(
                f"{where}: Got in_dim={dim} for an input but in_dim must be either an integer dimension or None."
            )
        if not isinstance(leaf, Tensor) and not _is_collection(leaf):
            raise ValueError(
                f"{where}: Got in_dim={dim} for an input but the input is of type {type(leaf)}. We cannot vmap over "
                "non-Tensor arguments, please use None as the respective in_dim"
            )
        if not -leaf.ndim <= dim < leaf.ndim:
            raise ValueError(
                f"{where}: Got in_dim={dim} for some input, but that input is a Tensor of dimensionality {leaf.ndim} "
                f"so expected in_dim to satisfy -{leaf.ndim} <= in_dim < {leaf.ndim}."
            )
        dims[k] = dim % leaf.ndim
        found.append(leaf.shape[dim])
    if not found:
        raise ValueError("vmap: Expected at least one Tensor to vmap over: all `in_dims` are None")
    if len(set(found)) > 1:
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {found} for the "
            "mapped dimension"
        )
    return found[0], leaves, dims, structure


def _dims_of_outputs(func: Function, out_dims: Any, result: Any, structure: TreeSpec) -> list[Any]:
    """Return a dimension for each leaf of the results."""
    name = _name(func)

    def incompatible() -> ValueError:
        return ValueError(
            f"vmap({name}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure of "
            f"`outputs`. out_dims has structure {describe(flatten(out_dims)[1])} but outputs has structure "
            f"{describe(structure)}."
        )

    flat, _ = flatten(out_dims)
    if any([not (each is None or isinstance(each, int)) for each in flat]):
        raise ValueError(
            f"vmap({name}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python collection of ints "
            "representing where in the outputs the vmapped dimension should appear."
        )
    if isinstance(result, Tensor):
        if isinstance(out_dims, int) or out_dims is None:
            return [out_dims]
        if isinstance(out_dims, tuple) and len(out_dims) == 1 and not isinstance(out_dims[0], (tuple, list, dict)):
            return [out_dims[0]]
        raise incompatible()
    dims = _broadcast_to_and_flatten(out_dims, structure)
    if dims is None:
        raise incompatible()
    return dims


def _name(func: Function) -> str:
    if isinstance(func, functools.partial):
        return f"functools.partial({_name(func.func)}, ...)"
    return getattr(func, "__name__", repr(func))


# Collections --------------------------------------------------------------------------------------


def _is_collection(tree: Any) -> bool:
    """Return whether an object has PyTorch's method by which `vmap` maps collections of tensors (tensordict's)."""
    return hasattr(type(tree), "_add_batch_dim")


def _looped(
    func: Function, size: int, leaves: Sequence[Any], dims: Sequence[Any], structure: TreeSpec, out_dims: Any,
    kwargs: dict[str, Any],
) -> Any:  # fmt: skip
    """Return the results of one run per example: collections batch their tensors by PyTorch's own means."""
    if not size:
        raise NotImplementedError("vmap of a collection of tensors over an empty batch")
    results: list[list[Any]] = []
    for k in range(size):
        elements = [_element(leaf, dim, k) for leaf, dim in zip(leaves, dims, strict=True)]
        out = func(*unflatten(elements, structure), **kwargs)
        out_leaves, out_structure = flatten(out, _is_collection)
        for leaf in out_leaves:
            if not isinstance(leaf, Tensor) and not _is_collection(leaf):
                raise ValueError(
                    f"vmap({_name(func)}, ...): `{_name(func)}` must only return Tensors, got type {type(leaf)}. "
                    "Did you mean to set out_dims= to None for output?"
                )
        results.append(out_leaves)
    dims_of_out = [out_dims] if _is_collection(out) else _dims_of_outputs(func, out_dims, out, out_structure)
    stacked = [
        column[0] if dim is None else functions["stack"](column, dim)
        for column, dim in zip(zip(*results, strict=True), dims_of_out, strict=True)
    ]
    return unflatten(stacked, out_structure)


def _element(leaf: Any, dim: int | None, k: int) -> Any:
    """Return element `k` of a leaf; of a collection, to which the run may write, a new one."""
    if not _is_collection(leaf):
        return leaf if dim is None else leaf.select(dim, k)
    return leaf.clone(False) if dim is None else leaf.unbind(dim)[k]
