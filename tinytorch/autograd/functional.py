"""Derivatives of functions: `jacobian`, `hessian`, `vjp`, `jvp`, `hvp`, `vhp`.

Each calls the function on copies of the inputs that share their memory, and walks that graph alone: no `.grad` is
touched. Source: PyTorch's `torch.autograd.functional`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tinytorch.autograd.api import grad
from tinytorch.autograd.forward_ad import Level
from tinytorch.autograd.grad_mode import enable_grad, set_grad_enabled
from tinytorch.core.mode import local
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.ops.create import zeros_like
from tinytorch.ops.join import stack

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

Tensors = tuple[Tensor, ...]
Gradients = Sequence[Tensor | None]

_OUTPUTS = "outputs of the user-provided function"


def vjp(
    func: Callable[..., Any], inputs: Tensor | Tensors, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return `func(*inputs)` and `v` times its Jacobian, by one walk backward.

    Args:
        func: takes the inputs, returns a Tensor or a tuple of Tensors.
        inputs: a Tensor or a tuple of Tensors.
        v: of the shapes of the outputs; may be None for a single output of one element.
        create_graph: the results can be differentiated, also with respect to the inputs given.
        strict: raise an error where an output does not depend on an input, rather than return zeros.

    Returns:
        The outputs, and per input a Tensor of its shape: a Tensor or a tuple, as `inputs` is.

    Raises:
        RuntimeError: `v` is missing or of the wrong shape; with `strict`, an output is independent of an input.
        TypeError: an input, output or `v` is no Tensor.

    Example:
        >>> x = torch.tensor([1.0, 2.0])
        >>> torch.autograd.functional.vjp(lambda x: x ** 2, x, torch.ones(2))
        (tensor([1., 4.]), tensor([2., 4.]))
    """
    with enable_grad():
        several, xs = _as_tensors(inputs, "inputs", "vjp")
        xs = _entered(xs, create_graph)
        several_out, outs = _as_tensors(func(*xs), _OUTPUTS, "vjp")
        _check_outputs(outs, strict)
        vs = _checked_vector(v, outs, several_out, create_graph, "vjp", _NO_VECTOR_OUT)
    with set_grad_enabled(create_graph or local.state.grad):
        found = _zeros_for_none(_grad(outs, xs, vs, create_graph), xs, create_graph, strict, _VJP)
    return _left(outs, several_out, create_graph), _left(found, several, create_graph)


def jvp(
    func: Callable[..., Any], inputs: Tensor | Tensors, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return `func(*inputs)` and its Jacobian times `v`, by walking backward through a walk backward.

    `tinytorch.func.jvp` gives the same by forward mode, which takes less time and memory.

    Args:
        v: of the shapes of the inputs; may be None for a single input of one element.
        func, inputs, create_graph, strict: as for `vjp`.

    Returns:
        The outputs, and per output a Tensor of its shape.

    Raises:
        RuntimeError: `v` is missing or of the wrong shape; with `strict`, an output is independent of an input.
        TypeError: an input, output or `v` is no Tensor.

    Example:
        >>> x = torch.tensor([1.0, 2.0])
        >>> torch.autograd.functional.jvp(lambda x: x ** 2, x, torch.tensor([1.0, 0.0]))
        (tensor([1., 4.]), tensor([2., 0.]))
    """
    with enable_grad():
        several, xs = _as_tensors(inputs, "inputs", "jvp")
        xs = _entered(xs, create_graph)
        vs = _checked_vector(v, xs, several, create_graph, "jvp", _NO_VECTOR_IN)
        several_out, outs = _as_tensors(func(*xs), _OUTPUTS, "jvp")
        _check_outputs(outs, strict)
        # The gradient is linear in the vector that it starts from: its own gradient by that vector is J v.
        starts = tuple([zeros_like(out).requires_grad_() for out in outs])
        backs = _grad(outs, xs, starts, create_graph=True)
        if strict:
            _check_all_tracked(backs, _CONSTANT_GRADIENT)
    with set_grad_enabled(create_graph or local.state.grad):
        found = _zeros_for_none(_grad(backs, starts, vs, create_graph), outs, create_graph, strict, _JVP)
    return _left(outs, several_out, create_graph), _left(found, several_out, create_graph)


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
        func, inputs, create_graph, strict: as for `vjp`.
        vectorize: accepted; there is one walk for each row or column all the same.
        strategy: "reverse-mode", one walk backward for each element of the outputs; or "forward-mode" (for which
            PyTorch asks for `vectorize=True`), one call of `func` for each element of the inputs.

    Returns:
        A Tensor of shape `output.shape + input.shape`; a tuple of these, one per input or per output, where the
        inputs or the outputs are a tuple; `[i][j]` for output i and input j where both are.

    Raises:
        RuntimeError: with `strict`, an output is independent of an input.
        TypeError: an input or output is no Tensor.

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
        several, xs = _as_tensors(inputs, "inputs", "jacobian")
        xs = _entered(xs, create_graph)
        several_out, outs = _as_tensors(func(*xs), _OUTPUTS, "jacobian")
        _check_outputs(outs, strict)
        if vectorize and strict:
            raise RuntimeError(
                "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together. "
                "Please either set `strict=False` or `vectorize=False`."
            )
        rows = []
        for number, out in enumerate(outs):
            independent = (f"Output {number} of the user-provided function is independent of input {{}}.", _VJP[1])
            gradients = (_grad((out,), xs, (unit,), create_graph, retain_graph=True) for unit in unit_tensors(out))
            found = [_zeros_for_none(each, xs, create_graph, strict, independent) for each in gradients]
            columns = zip(*found, strict=True) if found else [()] * len(xs)
            blocks = [jacobian_block(column, 0, out, x) for column, x in zip(columns, xs, strict=True)]
            rows.append(_left(tuple(blocks), several, create_graph))
    return tuple(rows) if several_out else rows[0]


def jacobian_block(parts: Sequence[Tensor], dim: int, out: Tensor, x: Tensor) -> Tensor:
    """Return the Jacobian of `out` by `x`, given its rows (`dim` 0) or its columns (-1), of which there may be none."""
    shape = (*out.shape, *x.shape)
    return stack(parts, dim).view(shape) if parts else wrap(np.zeros_like(out._array, shape=shape))


def _jacobian_forward(func: Callable[..., Any], inputs: Any, create_graph: bool, strict: bool, vectorize: bool) -> Any:
    for name, given in (("create_graph", create_graph), ("strict", strict)):
        if given:
            error = NotImplementedError if name == "create_graph" else RuntimeError
            raise error(
                f'torch.autograd.functional.jacobian: `{name}=True` and `strategy="forward-mode"` are not supported '
                f'together (yet). Please either set `{name}=False` or `strategy="reverse-mode"`.'
            )
    several, xs = _as_tensors(inputs, "inputs", "jacobian")
    if not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian is only implemented for "
            "`vectorize=True`."
        )
    several_out = False

    def flat(_: Level | None, *duals: Tensor) -> Tensors:
        nonlocal several_out
        several_out, outs = _as_tensors(func(*duals), "outputs", "jacobian")
        return outs

    rows = forward_jacobian(flat, xs)
    if several:
        return rows if several_out else rows[0]  # (lists: PyTorch's are, of this strategy)
    columns = [row[0] for row in rows]
    return tuple(columns) if several_out else columns[0]


def forward_jacobian(func: Callable[..., Sequence[Tensor]], inputs: Sequence[Tensor]) -> list[list[Tensor]]:
    """Return the blocks `[i][j]` of the Jacobian for output i and input j, by one call for each element of the inputs.

    `func` takes the level (None when no tangents are wanted) and the inputs, and returns a sequence of Tensors.
    """
    columns: list[list[list[Tensor]]] = [[] for _ in inputs]  # [input][element][output]
    outs: Sequence[Tensor] = ()
    for j, x in enumerate(inputs):
        for unit in unit_tensors(x):
            with Level() as level:
                outs = func(level, *inputs[:j], level.dual(x, unit), *inputs[j + 1 :])
                columns[j].append([tangent_of(level, out) for out in outs])
    if not any(columns):
        outs = func(None, *inputs)  # for the outputs' shapes
    return [
        [jacobian_block([column[i] for column in columns[j]], -1, out, x) for j, x in enumerate(inputs)]
        for i, out in enumerate(outs)
    ]


def tangent_of(level: Level, out: Tensor) -> Tensor:
    """Return the tangent of an output: zeros where it has none."""
    primal, tangent = level.unpack(out)
    return zeros_like(primal) if tangent is None else tangent


def unit_tensors(like: Tensor) -> Iterator[Tensor]:
    """Return for each element of a tensor, in order, a tensor like it of zeros with a 1 there."""
    for k in range(like._array.size):
        array = np.zeros_like(like._array)
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
    """Return the Hessian of a scalar function: the second derivatives by each pair of elements of its inputs.

    Args:
        func: takes the inputs, returns a Tensor of one element.
        strict: raise an error where the gradient does not depend on an input, rather than return zeros.
        outer_jacobian_strategy: how the gradient is differentiated, see `jacobian`.
        inputs, create_graph, vectorize: as for `jacobian`.

    Returns:
        A Tensor of shape `input.shape + input.shape`; for several inputs a tuple of tuples, `[i][j]` for inputs i, j.

    Raises:
        RuntimeError: the function does not return a Tensor of one element; with `strict`, see there.
        TypeError: an input or output is no Tensor.

    Example:
        >>> torch.autograd.functional.hessian(lambda x: (x ** 3).sum(), torch.tensor([1.0, 2.0]))
        tensor([[ 6.,  0.],
                [ 0., 12.]])
    """
    several, xs = _as_tensors(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')

    def scalar(*xs: Tensor) -> Tensor:
        return _scalar_output(func(*xs), "hessian", strict).squeeze()

    def gradient(*xs: Tensor) -> Tensors:
        if outer_jacobian_strategy == "forward-mode":
            xs = tuple([x.view_as(x).requires_grad_() for x in xs])
        found: Tensors = jacobian(scalar, xs, create_graph=True)
        if strict:
            _check_all_tracked(found, _CONSTANT_JACOBIAN)
        return found

    found = jacobian(gradient, xs, create_graph, strict, vectorize, outer_jacobian_strategy)
    return found if several else found[0][0]


def vhp(
    func: Callable[..., Any], inputs: Tensor | Tensors, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return `func(*inputs)`, a scalar, and `v` times its Hessian.

    Args:
        func, strict: as for `hessian`.
        inputs, v, create_graph: as for `jvp`.

    Returns:
        The output, and per input a Tensor of its shape: a Tensor or a tuple, as `inputs` is.

    Raises:
        RuntimeError: the function does not return one element; `v` is missing or of the wrong shape; see `strict`.
        TypeError: an input, output or `v` is no Tensor.

    Example:
        >>> x = torch.tensor([1.0, 2.0])
        >>> torch.autograd.functional.vhp(lambda x: (x ** 3).sum(), x, torch.ones(2))
        (tensor(9.), tensor([ 6., 12.]))
    """
    return _hessian_product("vhp", func, inputs, v, create_graph, strict)


def hvp(
    func: Callable[..., Any], inputs: Tensor | Tensors, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return `func(*inputs)`, a scalar, and its Hessian times `v`.

    Where the function is twice continuously differentiable the Hessian is symmetric, and `vhp` gives the same faster.

    Args:
        func, inputs, v, create_graph, strict: as for `vhp`.

    Returns:
        The output, and per input a Tensor of its shape: a Tensor or a tuple, as `inputs` is.

    Raises:
        RuntimeError: the function does not return one element; `v` is missing or of the wrong shape; see `strict`.
        TypeError: an input, output or `v` is no Tensor.

    Example:
        >>> x = torch.tensor([1.0, 2.0])
        >>> torch.autograd.functional.hvp(lambda x: (x ** 3).sum(), x, torch.ones(2))
        (tensor(9.), tensor([ 6., 12.]))
    """
    return _hessian_product("hvp", func, inputs, v, create_graph, strict)


def _hessian_product(
    function: str, func: Callable[..., Any], inputs: Any, v: Any, create_graph: bool, strict: bool
) -> tuple[Any, Any]:
    """Return the value of a function, and `v` times its Hessian ("vhp") or its Hessian times `v` ("hvp")."""
    with enable_grad():
        several, xs = _as_tensors(inputs, "inputs", function)
        xs = _entered(xs, create_graph)
        vs = _checked_vector(v, xs, several, create_graph, function, _NO_VECTOR_IN)
        out = _scalar_output(func(*xs), function, strict)
        ends = _grad((out,), xs, None, create_graph=True)
        if strict:
            _check_all_tracked(ends, _CONSTANT_JACOBIAN)
        starts, independent = xs, _VHP
        if function == "hvp":  # as `jvp` does it
            starts, independent = tuple([zeros_like(x).requires_grad_() for x in xs]), _HVP
            ends = _grad(ends, xs, starts, create_graph=True)
    with set_grad_enabled(create_graph or local.state.grad):
        found = _zeros_for_none(_grad(ends, starts, vs, create_graph), xs, create_graph, strict, independent)
    return _left((out,), False, create_graph), _left(found, several, create_graph)


# What they have in common -------------------------------------------------------------------------


def _as_tensors(value: Any, what: str, function: str) -> tuple[bool, Tensors]:
    """Return whether `value` is a tuple, and its tensors."""
    several = isinstance(value, tuple)
    tensors = value if several else (value,)
    for k, each in enumerate(tensors):
        if not isinstance(each, Tensor):
            where = f"value at index {k}" if several else f"given {what}"
            raise TypeError(
                f"The {what} given to {function} must be either a Tensor or a tuple of Tensors but the {where} has "
                f"type {type(each)}."
            )
    return several, tensors


def _entered(xs: Tensors, create_graph: bool, need_graph: bool = True) -> Tensors:
    """Return tensors on the same memory to compute with; with `create_graph`, connected to those given."""
    return tuple(
        [x.view_as(x) if create_graph and x.requires_grad else x.detach().requires_grad_(need_graph) for x in xs]
    )


def _left(tensors: Sequence[Tensor], several: bool, create_graph: bool) -> Any:
    """Return the results as the caller gets them."""
    results = tuple(tensors) if create_graph else tuple([each.detach() for each in tensors])
    return results if several else results[0]


def _checked_vector(
    v: Any, like: Tensors, several: bool, create_graph: bool, function: str, missing: str
) -> Tensors | None:
    """Return `v` as a tuple, of the shapes of the tensors `like`; None stands for a single 1."""
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(missing)
        return None
    _, vs = _as_tensors(v, "v", function)
    vs = _entered(vs, create_graph, need_graph=False)
    if len(vs) != len(like):
        if several:
            raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(vs)}.")
        raise RuntimeError("The given v should contain a single Tensor.")
    for k, (each, other) in enumerate(zip(vs, like, strict=True)):
        if each.shape != other.shape:
            entry = f"Entry {k} in " if several else ""
            raise RuntimeError(f"{entry}v has invalid size: should be {other.shape} but got {each.shape}.")
    return vs


def _grad(
    outs: Gradients, xs: Tensors, vectors: Gradients | None, create_graph: bool, retain_graph: bool | None = None
) -> tuple[Tensor | None, ...]:
    """Return the gradients of those outputs that have any; None for inputs that none of them depends on."""
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
    several, outs = _as_tensors(result, _OUTPUTS, function)
    _check_outputs(outs, strict)
    if several:
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
# What is independent of entry {}: when there is no gradient, and when it cannot be differentiated further.
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
    """Raise an error for the first tensor that is missing, or that cannot be differentiated."""
    for k, each in enumerate(tensors):
        if each is None:
            raise RuntimeError(f"{_VJP[0].format(k)} {_NOT_STRICT}")
        if not each.requires_grad:
            raise RuntimeError(f"{otherwise.format(k)} {_NOT_STRICT}")


def _zeros_for_none(
    found: Gradients, like: Tensors, create_graph: bool, strict: bool, independent: tuple[str, str]
) -> list[Tensor]:
    """Return the gradients with zeros where there is none, which in strict mode is an error."""
    for k, each in enumerate(found if strict else ()):
        if each is None:
            raise RuntimeError(f"{independent[0].format(k)} {_NOT_STRICT}")
        if create_graph and not each.requires_grad:
            raise RuntimeError(f"{independent[1].format(k)} {_NOT_STRICT[:-1]} when create_graph=True.")
    return [zeros_like(x) if each is None else each for each, x in zip(found, like, strict=True)]
