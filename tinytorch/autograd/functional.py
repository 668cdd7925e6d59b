"""Derivatives of functions: `jacobian`, `hessian`, `vjp`, `jvp`, `hvp`, `vhp`.

Each calls the function on leaves that share the memory of the inputs, and runs backward through the graph of that call
alone: no `.grad` is changed. Source: PyTorch's `torch.autograd.functional`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tinytorch.autograd.api import grad
from tinytorch.autograd.batches import forward_jacobian, reverse_jacobian
from tinytorch.autograd.forward_ad import Level
from tinytorch.autograd.grad_mode import enable_grad, set_grad_enabled
from tinytorch.core.mode import local
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.kernels.meta import is_meta
from tinytorch.ops.create import zeros_like
from tinytorch.ops.join import stack

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

Tensors = tuple[Tensor, ...]
Gradients = Sequence[Tensor | None]


_OUTPUTS = "outputs of the user-provided function"


def vjp(
    func: Callable[..., Any], inputs: Tensor | Tensors, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return `func(*inputs)` and the product of `v` and its Jacobian, by one backward pass.

    Args:
        v: of the shapes of the outputs; may be None for a single output of one element.
        strict: raise an error if an output does not depend on an input, instead of returning zeros.

    Returns:
        The outputs, and per input a Tensor of its shape: a Tensor or a tuple, as `inputs` is.

    Example:
        >>> x = torch.tensor([1.0, 2.0])
        >>> torch.autograd.functional.vjp(lambda x: x ** 2, x, torch.ones(2))
        (tensor([1., 4.]), tensor([2., 4.]))
    """
    with enable_grad():
        is_tuple, xs = _as_tensors(inputs, "inputs", "vjp")
        xs = _inputs_of_graph(xs, create_graph)
        out_is_tuple, outs = _as_tensors(func(*xs), _OUTPUTS, "vjp")
        _check_outputs(outs, strict)
        vs = _vectors(v, outs, out_is_tuple, create_graph, "vjp", _NO_VECTOR_OUT)
    with set_grad_enabled(create_graph or local.state.grad):
        products = _with_zeros(_grad(outs, xs, vs, create_graph), xs, create_graph, strict, _VJP)
    return _results(outs, out_is_tuple, create_graph), _results(products, is_tuple, create_graph)


def jvp(
    func: Callable[..., Any], inputs: Tensor | Tensors, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return `func(*inputs)` and the product of its Jacobian and `v`, by differentiating a backward pass.

    `tinytorch.func.jvp` computes the same by forward mode, which takes less time and memory.

    Args:
        v: of the shapes of the inputs; may be None for a single input of one element.

    Returns:
        The outputs, and per output a Tensor of its shape.

    Example:
        >>> x = torch.tensor([1.0, 2.0])
        >>> torch.autograd.functional.jvp(lambda x: x ** 2, x, torch.tensor([1.0, 0.0]))
        (tensor([1., 4.]), tensor([2., 0.]))
    """
    with enable_grad():
        is_tuple, xs = _as_tensors(inputs, "inputs", "jvp")
        xs = _inputs_of_graph(xs, create_graph)
        vs = _vectors(v, xs, is_tuple, create_graph, "jvp", _NO_VECTOR_IN)
        out_is_tuple, outs = _as_tensors(func(*xs), _OUTPUTS, "jvp")
        _check_outputs(outs, strict)
        # The vector-Jacobian product is linear in the vector: its own gradient by the vector is J v.
        starts = tuple([zeros_like(out).requires_grad_() for out in outs])
        vjps = _grad(outs, xs, starts, create_graph=True)
        if strict:
            _check_all_tracked(vjps, _CONSTANT_GRADIENT)
    with set_grad_enabled(create_graph or local.state.grad):
        products = _with_zeros(_grad(vjps, starts, vs, create_graph), outs, create_graph, strict, _JVP)
    return _results(outs, out_is_tuple, create_graph), _results(products, out_is_tuple, create_graph)


def jacobian(
    func: Callable[..., Any],
    inputs: Tensor | Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """Return the Jacobian of a function: the derivative of each element of its outputs by each of its inputs.

    Args:
        vectorize: compute all rows by one backward pass, or all columns by one call of `func`.
        strategy: "reverse-mode", by backward passes; or "forward-mode", which needs `vectorize=True`.

    Returns:
        A Tensor of shape `output.shape + input.shape`; a tuple of these, one per input or per output, where the
        inputs or the outputs are a tuple; `[i][j]` for output i and input j where both are.

    Example:
        >>> torch.autograd.functional.jacobian(lambda x: x ** 2, torch.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more outputs '
            'than inputs, "forward-mode" tends to be more performant. Otherwise, prefer to use "reverse-mode".'
        )
    if strategy == "forward-mode":
        return _jacobian_forward(func, inputs, create_graph, strict, vectorize)
    with enable_grad():
        is_tuple, xs = _as_tensors(inputs, "inputs", "jacobian")
        xs = _inputs_of_graph(xs, create_graph)
        out_is_tuple, outs = _as_tensors(func(*xs), _OUTPUTS, "jacobian")
        _check_outputs(outs, strict)
        if vectorize and strict:
            raise RuntimeError(
                "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together. "
                "Please either set `strict=False` or `vectorize=False`."
            )

        def row(number: int, out: Tensor, unit: Tensor) -> list[Tensor]:
            independent = (f"Output {number} of the user-provided function is independent of input {{}}.", _VJP[1])
            gradients = _grad((out,), xs, (unit,), create_graph, retain_graph=True)
            return _with_zeros(gradients, xs, create_graph, strict, independent)

        rows = [
            _results(blocks, is_tuple, create_graph)
            for blocks in (reverse_jacobian if vectorize else _by_rows)(row, outs, xs)
        ]
    return tuple(rows) if out_is_tuple else rows[0]


def _by_rows(
    row: Callable[[int, Tensor, Tensor], Sequence[Tensor]], outs: Sequence[Tensor], xs: Sequence[Tensor]
) -> list[list[Tensor]]:
    """Return the blocks `[i][j]` of the Jacobian for output i and input j, by one backward pass per row.

    Args:
        row: from the number of an output, the output, and a vector of zeros and a 1, to the gradients of the inputs.
    """
    jacobian = []
    for number, out in enumerate(outs):
        rows = [row(number, out, unit) for unit in unit_tensors(out)]
        columns: Any = zip(*rows, strict=True) if rows else [()] * len(xs)
        jacobian.append([_block(column, out, x) for column, x in zip(columns, xs, strict=True)])
    return jacobian


def _block(rows: Sequence[Tensor], out: Tensor, x: Tensor) -> Tensor:
    """Return the Jacobian of `out` by `x` from its rows; there may be none."""
    shape = (*out.shape, *x.shape)
    return stack(rows, 0).view(shape) if rows else wrap(np.zeros_like(out._array, shape=shape))


def _jacobian_forward(func: Callable[..., Any], inputs: Any, create_graph: bool, strict: bool, vectorize: bool) -> Any:
    for name, is_set in (("create_graph", create_graph), ("strict", strict)):
        if is_set:
            error = NotImplementedError if name == "create_graph" else RuntimeError
            raise error(
                f'torch.autograd.functional.jacobian: `{name}=True` and `strategy="forward-mode"` are not supported '
                f'together (yet). Please either set `{name}=False` or `strategy="reverse-mode"`.'
            )
    is_tuple, xs = _as_tensors(inputs, "inputs", "jacobian")
    if not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian is only implemented for "
            "`vectorize=True`."
        )
    out_is_tuple = False

    def outputs_as_tuple(_: Level | None, *duals: Tensor) -> Tensors:
        nonlocal out_is_tuple
        out_is_tuple, outs = _as_tensors(func(*duals), "outputs", "jacobian")
        return outs

    rows = forward_jacobian(outputs_as_tuple, xs)
    if is_tuple:
        return rows if out_is_tuple else rows[0]  # (lists, as PyTorch's are with this strategy)
    columns = [row[0] for row in rows]
    return tuple(columns) if out_is_tuple else columns[0]


def unit_tensors(like: Tensor) -> Iterator[Tensor]:
    """Yield, for each element of a tensor in order, a tensor of its shape that is 1 there and 0 elsewhere."""
    for k in range(like._array.size):
        array = np.zeros_like(like._array)
        if not is_meta(array):
            array.flat[k] = 1
        yield wrap(array)


def hessian(
    func: Callable[..., Any],
    inputs: Tensor | Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """Return the Hessian of a scalar function: the second derivatives by all pairs of elements of its inputs.

    Args:
        strict: raise an error if the gradient does not depend on an input, instead of returning zeros.
        outer_jacobian_strategy: the strategy by which the gradient is differentiated, see `jacobian`.

    Returns:
        A Tensor of shape `input.shape + input.shape`; for several inputs a tuple of tuples, `[i][j]` for inputs i, j.

    Example:
        >>> torch.autograd.functional.hessian(lambda x: (x ** 3).sum(), torch.tensor([1.0, 2.0]))
        tensor([[ 6.,  0.],
                [ 0., 12.]])
    """
    is_tuple, xs = _as_tensors(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')

    def scalar(*xs: Tensor) -> Tensor:
        return _scalar_output(func(*xs), "hessian", strict).squeeze()

    def gradient(*xs: Tensor) -> Tensors:
        if outer_jacobian_strategy == "forward-mode":
            xs = tuple([x.view_as(x).requires_grad_() for x in xs])
        result: Tensors = jacobian(scalar, xs, create_graph=True)
        if strict:
            _check_all_tracked(result, _CONSTANT_JACOBIAN)
        return result

    result = jacobian(gradient, xs, create_graph, strict, vectorize, outer_jacobian_strategy)
    return result if is_tuple else result[0][0]


def vhp(
    func: Callable[..., Any], inputs: Tensor | Tensors, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return `func(*inputs)`, a scalar, and the product of `v` and its Hessian.

    Returns:
        The output, and per input a Tensor of its shape: a Tensor or a tuple, as `inputs` is.

    Example:
        >>> x = torch.tensor([1.0, 2.0])
        >>> torch.autograd.functional.vhp(lambda x: (x ** 3).sum(), x, torch.ones(2))
        (tensor(9.), tensor([ 6., 12.]))
    """
    return _hessian_product("vhp", func, inputs, v, create_graph, strict)


def hvp(
    func: Callable[..., Any], inputs: Tensor | Tensors, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return `func(*inputs)`, a scalar, and the product of its Hessian and `v`.

    If the function is twice continuously differentiable the Hessian is symmetric, and `vhp` computes the same faster.
    Arguments, results and errors are those of `vhp`.

    Example:
        >>> x = torch.tensor([1.0, 2.0])
        >>> torch.autograd.functional.hvp(lambda x: (x ** 3).sum(), x, torch.ones(2))
        (tensor(9.), tensor([ 6., 12.]))
    """
    return _hessian_product("hvp", func, inputs, v, create_graph, strict)


def _hessian_product(
    function: str, func: Callable[..., Any], inputs: Any, v: Any, create_graph: bool, strict: bool
) -> tuple[Any, Any]:
    """Return the value of a function, and the product of `v` and its Hessian in the order that `function` names."""
    with enable_grad():
        is_tuple, xs = _as_tensors(inputs, "inputs", function)
        xs = _inputs_of_graph(xs, create_graph)
        vs = _vectors(v, xs, is_tuple, create_graph, function, _NO_VECTOR_IN)
        out = _scalar_output(func(*xs), function, strict)
        ends = _grad((out,), xs, None, create_graph=True)
        if strict:
            _check_all_tracked(ends, _CONSTANT_JACOBIAN)
        starts, independent = xs, _VHP
        if function == "hvp":  # as in `jvp`
            starts, independent = tuple([zeros_like(x).requires_grad_() for x in xs]), _HVP
            ends = _grad(ends, xs, starts, create_graph=True)
    with set_grad_enabled(create_graph or local.state.grad):
        products = _with_zeros(_grad(ends, starts, vs, create_graph), xs, create_graph, strict, independent)
    return _results((out,), False, create_graph), _results(products, is_tuple, create_graph)


# Arguments and results ----------------------------------------------------------------------------


def _as_tensors(value: Any, what: str, function: str) -> tuple[bool, Tensors]:
    is_tuple = isinstance(value, tuple)
    tensors = value if is_tuple else (value,)
    for k, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):
            where = f"value at index {k}" if is_tuple else f"given {what}"
            raise TypeError(
                f"The {what} given to {function} must be either a Tensor or a tuple of Tensors but the {where} has "
                f"type {type(tensor)}."
            )
    return is_tuple, tensors


def _inputs_of_graph(xs: Tensors, create_graph: bool, need_graph: bool = True) -> Tensors:
    """Return tensors on the same memory for the graph of the call; with `create_graph` they are views of `xs`."""
    return tuple(
        [x.view_as(x) if create_graph and x.requires_grad else x.detach().requires_grad_(need_graph) for x in xs]
    )


def _results(tensors: Sequence[Tensor], is_tuple: bool, create_graph: bool) -> Any:
    """Return results as the caller receives them: detached without `create_graph`, a tuple if `is_tuple`."""
    results = tuple(tensors) if create_graph else tuple([tensor.detach() for tensor in tensors])
    return results if is_tuple else results[0]


def _vectors(v: Any, like: Tensors, is_tuple: bool, create_graph: bool, function: str, missing: str) -> Tensors | None:
    """Return `v` as a tuple, having checked that it has the shapes of `like`; None stands for a single 1."""
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(missing)
        return None
    _, vs = _as_tensors(v, "v", function)
    vs = _inputs_of_graph(vs, create_graph, need_graph=False)
    if len(vs) != len(like):
        if is_tuple:
            raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(vs)}.")
        raise RuntimeError("The given v should contain a single Tensor.")
    for k, (vector, other) in enumerate(zip(vs, like, strict=True)):
        if vector.shape != other.shape:
            entry = f"Entry {k} in " if is_tuple else ""
            raise RuntimeError(f"{entry}v has invalid size: should be {other.shape} but got {vector.shape}.")
    return vs


def _grad(
    outs: Gradients, xs: Tensors, vectors: Gradients | None, create_graph: bool, retain_graph: bool | None = None
) -> tuple[Tensor | None, ...]:
    """Return the gradients of the outputs that require grad; None for inputs that none of them depends on."""
    pairs = [
        (out, vector)
        for out, vector in zip(outs, vectors or (None,) * len(outs), strict=True)
        if out is not None and out.requires_grad
    ]
    if not pairs:
        return (None,) * len(xs)
    starts, weights = zip(*pairs, strict=True)
    return grad(starts, xs, weights, retain_graph, create_graph, allow_unused=True)


def _scalar_output(result: Any, function: str, strict: bool) -> Tensor:
    """Return the output of a function that must return one Tensor of one element."""
    is_tuple, outs = _as_tensors(result, _OUTPUTS, function)
    _check_outputs(outs, strict)
    if is_tuple:
        raise RuntimeError(f"The function given to {function} should return a single Tensor")
    if outs[0].numel() != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {function} should contain a single element")
    return outs[0]


# Strict mode --------------------------------------------------------------------------------------

_NOT_STRICT = "This is not allowed in strict mode."
_NO_VECTOR = "The vector v can only be None if {} a single Tensor with a single element."
_NO_VECTOR_OUT = _NO_VECTOR.format("the user-provided function returns")
_NO_VECTOR_IN = _NO_VECTOR.format("the input to the user-provided function is")
_CONSTANT_GRADIENT = "The gradient with respect to input {} is independent of the inputs of the user-provided function."
_CONSTANT_JACOBIAN = (
    "While computing the hessian, found that the jacobian of the user-provided function with respect to input {} is "
    "independent of the input. You should ensure that your function is twice differentiable and that the jacobian "
    "depends on the inputs (this would be violated by a linear function for example)."
)
# Messages in strict mode: if there is no gradient, and if it cannot be differentiated further.
_VJP = (
    "The output of the user-provided function is independent of input {}.",
    "The jacobian of the user-provided function is independent of input {}.",
)
_JVP = (
    "The gradient with respect to the input is independent of entry {} in the grad_outputs when using the double "
    "backward trick to compute forward mode gradients.",
    _VJP[1],
)
_VHP = (_VJP[1], "The hessian of the user-provided function is independent of input {}.")
_HVP = (
    "The hessian of the user-provided function is independent of entry {} in the grad_jacobian, as it prevents from "
    "using the double backward trick to replace forward mode AD.",
    _VHP[1],
)


def _check_outputs(outs: Tensors, strict: bool) -> None:
    for k, out in enumerate(outs if strict else ()):
        if not out.requires_grad:
            raise RuntimeError(
                f"Output {k} of the user-provided function does not require gradients. The outputs must be computed in "
                "a differentiable manner from the input when running in strict mode."
            )


def _check_all_tracked(tensors: Gradients, otherwise: str) -> None:
    """Raise an error for the first gradient that is missing, or that cannot be differentiated."""
    for k, tensor in enumerate(tensors):
        if tensor is None:
            raise RuntimeError(f"{_VJP[0].format(k)} {_NOT_STRICT}")
        if not tensor.requires_grad:
            raise RuntimeError(f"{otherwise.format(k)} {_NOT_STRICT}")


def _with_zeros(
    gradients: Gradients, like: Tensors, create_graph: bool, strict: bool, independent: tuple[str, str]
) -> list[Tensor]:
    """Return gradients with zeros in place of None, which in strict mode is an error."""
    for k, g in enumerate(gradients if strict else ()):
        if g is None:
            raise RuntimeError(f"{independent[0].format(k)} {_NOT_STRICT}")
        if create_graph and not g.requires_grad:
            raise RuntimeError(f"{independent[1].format(k)} {_NOT_STRICT[:-1]} when create_graph=True.")
    return [zeros_like(x) if g is None else g for g, x in zip(gradients, like, strict=True)]
