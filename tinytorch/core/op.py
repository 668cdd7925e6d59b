"""How an op is declared: `@op`, `pointwise`, and the forms that are derived from an op.

An op is a NumPy function (its kernel) plus, by argument name, the formula of its gradient. A formula's parameter
names say what it needs: see `core/node.py`.

    exp = pointwise("exp", np.exp, x=lambda g, out: g * out, floating=True)

    @op(reduce.sum, x=lambda g, x_shape, dim, keepdim: ...)
    def sum(x, dim=None, keepdim=False, *, dtype=None): ...
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tinytorch.core.call import CALL, IN_PLACE, OPERATOR, Caller
from tinytorch.core.complex import OWN
from tinytorch.core.declaration import DIMENSIONS, MISSING, Op, camel, signature
from tinytorch.core.node import Formula

__all__ = ["Op", "in_place", "op", "operator_of", "pointwise"]


#: Facts that `Op` is given as `op` gets them.
_FACTS = frozenset(
    "many joint outputs nondiff residuals view broadcasts result overload refuses data_dependent holds complex moves "
    "batch own_layout loss multiply_adds".split()
)
_OF_POINTWISE = frozenset(
    "floating in_float32 numbers of_tensors refuses complex moves batch own_layout multiply_adds".split()
)


def op(
    kernel: Callable[..., Any] | None = None, /, *, name: str | None = None, inputs: tuple[str, ...] = (), **facts: Any
) -> Callable[[Callable[..., Any]], Any]:
    """Make an op of the function below: a function of Tensors with its signature and docstring.

    Args:
        kernel: the kernel, which takes the arguments of the function below; by default that function is the kernel.
        name: the node's class name, in which "Backward0" may be omitted; by default the function's in PyTorch's
            CamelCase.
        many: the name of the argument that is a sequence of tensors; its formula returns one gradient per tensor.
        joint: one formula for all `inputs`: `joint(g, needs, ...)` returns a tuple; `needs` says which are wanted.
        inputs: the tensor arguments of `joint`; for an input without a gradient also pass the formula None.
        outputs: the number of output tensors, 0 for as many as the kernel returns; unless it is 1, `g` is a tuple with
            None for unused outputs. The kernel of an op without formulas may return None for outputs.
        nondiff: which of the outputs are not differentiable (indices).
        residuals: names of the arrays that the kernel returns after its outputs, for the formulas alone. Those of
            floats are a cache: under create_graph a formula gets None for them and computes them from the inputs.
        view: the output shares the memory of the first argument.
        broadcasts: inputs broadcast, so gradients are summed to their shapes.
        result: converts the list of outputs to the return value (for example a named tuple's class).
        overload: (argument, class name): the name that PyTorch gives the node where that argument is not None.
        refuses: PyTorch's kernel has no code for unsigned integers wider than a byte: the kernel's name, for the error;
            or a function that returns it given the kernel's arguments, None where PyTorch does not call the kernel.
        data_dependent: the shape of the output depends on the values of the input.
        holds: an argument that holds tensors but is not an input; a backward pass frees it like the saved inputs.
        complex: the kernel computes with complex numbers: HOLOMORPHIC or OWN, see `core/complex.py`. By default the op
            refuses them, unless it views or moves elements: then it is OWN.
        moves: the kernel only moves elements, so it can do so with 8-bit floats, too; views need not say it.
        batch: how `vmap` calls the op on a batch: the name of a rule in `ops/batch_rules.py`, or a function of the same
            arguments that is composed of other ops. By default it follows from `many`, `view`, `moves` and `broadcasts`
            and from arguments: `key`, `dim`, or one named like it (`DIMENSIONS`), `shape`, `sizes`, `repeats` and
            `reduction`. Else the op is called once per example.
        loss: what the first argument of a loss has: "value", "prob" and "logit" of one of two classes, scores of each
            "class", or their logarithms ("nll").
        multiply_adds: a function of the shape of the output and of the arguments, with shapes for tensors, that returns
            how many products the kernel adds up; None for ops that do so for no more than each element.
        own_layout: an elementwise kernel whose result has its own order in memory, not the one of the operands.
        **facts: also, per tensor argument, the formula of its gradient, or None for an argument without one.
    """
    facts, formulas = _parted(facts, _FACTS)
    batch = facts.pop("batch", None)

    def declare(function: Callable[..., Any]) -> Any:
        arguments, defaults, positional = signature(function)
        declared = Op(
            kernel or function, formulas, arguments=arguments, defaults=defaults, positional=positional,
            name=function.__name__, node_name=name or camel(function.__name__), joint_inputs=inputs,
            batch=batch or _batch_of(frozenset(arguments), facts), **facts,
        )  # fmt: skip
        declared.caller = functools.wraps(function)(Caller(declared, CALL).function)
        return declared.caller

    return declare


def _batch_of(arguments: frozenset[str], facts: dict[str, Any]) -> str | None:
    """Return how `vmap` calls an op, as far as it follows from the names of the arguments and from other facts."""
    if "many" in facts:
        return "sequence" if "dim" in arguments else None
    if not arguments.isdisjoint((*DIMENSIONS, "key")):
        return "along"
    moves = facts.get("view") or facts.get("moves")
    if not arguments.isdisjoint(("sizes", "repeats")) or (moves and "shape" in arguments):
        return "sized"
    if "reduction" in arguments:
        return "loss" if "target" not in arguments else "classes" if "ignore_index" in arguments else None
    return "elementwise" if facts.get("broadcasts") else None


def pointwise(
    name: str,
    kernel: Callable[..., Any],
    *,
    doc: str | None = None,
    node_name: str | None = None,
    linear: bool = False,
    of_floats: Callable[..., Any] | None = None,
    **facts: Any,
) -> Any:
    """Return the op of a ufunc (or a function like one) of one or two arguments that broadcast.

    Args:
        name: the public name.
        kernel: the ufunc.
        floating: integers are first converted to the default floating-point type.
        doc: the public docstring.
        node_name: PyTorch's name of the node, if it is not the public name in CamelCase.
        linear: the function is linear in each argument, but not pointwise (for example a matrix product).
        of_floats: replaces the ufunc for arrays of float32.
        refuses, complex, moves, batch, own_layout, multiply_adds: see `op`.
        in_float32: do not round a number to the 16 bits of the tensor, but compute in float32; needs `f(x, 1) == x`.
        of_tensors: a number in the place of an operand is an error.
        numbers: the kernel gets a Python number as it is, as NumPy's ufuncs do; any other kernel an array of the dtype.
        **facts: also, per argument, in order, the formula of its gradient, or None.
    """
    facts, formulas = _parted(facts, _OF_POINTWISE)
    facts.setdefault("batch", None if linear else "elementwise")
    facts.setdefault("numbers", linear or isinstance(kernel, np.ufunc))
    count = len(formulas)
    declared = Op(
        kernel, formulas, arguments=tuple(formulas), defaults=(MISSING,) * count, positional=count, name=name,
        node_name=node_name or camel(name), broadcasts=True, operands=count, linear=linear, elementwise=not linear,
        of_floats=None if of_floats is kernel else of_floats, **facts,
    )  # fmt: skip
    declared.caller = _named(Caller(declared, CALL).function, name, doc)
    return declared.caller


def operator_of(function: Any) -> Any:
    """Return an op of two operands as Python's operator: NotImplemented for operands of other types."""
    return _named(Caller(function.op, OPERATOR).function, function.__name__, function.__doc__)


def in_place(caller: Any, name: str | None = None) -> Any:
    """Return the in-place form of an op: it writes its result into its first argument and returns that.

    Args:
        caller: the op as `op` or `pointwise` made it.
        name: the public name, by default the op's with an underscore.
    """
    declared: Op = caller.op
    doc = f"In-place version of `{declared.name}`: writes the result into this tensor and returns it."
    return _named(Caller(declared, IN_PLACE).function, name or f"{declared.name}_", doc)


def _parted(given: dict[str, Any], known: frozenset[str]) -> tuple[dict[str, Any], dict[str, Formula | None]]:
    """Return the facts with known names and with those that follow from them, and the others, which are formulas."""
    facts = {k: x for k, x in given.items() if k in known}
    if facts.get("view") or facts.get("moves"):
        facts["complex"] = facts.get("complex") or OWN
    formulas = {k: x for k, x in given.items() if k not in known}
    for name, formula in formulas.items():
        if formula is not None and not callable(formula):
            raise TypeError(f"{name}={formula!r} is no formula; the facts are {', '.join(sorted(known))}")
    return facts, formulas


def _named(function: Any, name: str, doc: str | None) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function
