"""`Op`: the facts that an op is declared with, the binding of its arguments, and the recording of its calls."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from tinytorch.core.complex import HOLOMORPHIC, refused
from tinytorch.core.graph import Edge, enter, leaf_edge
from tinytorch.core.names import module_of
from tinytorch.core.node import (
    INFERENCE_NOT_SAVED,
    INPUT,
    KEPT,
    OUTPUT,
    PLAIN,
    PROPERTY,
    RESIDUAL,
    SHAPE,
    Formula,
    OpNode,
    Plan,
)
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.core.view import refresh
from tinytorch.kernels import dtypes
from tinytorch.kernels.dtypes import DIFFERENTIABLE
from tinytorch.kernels.programs import as_array

MISSING: Any = object()
_F32 = np.dtype(np.float32)
#: The dtypes with which every kernel computes.
_USUAL = frozenset(map(np.dtype, ("float32", "float64", "int64", "bool")))
#: The names of arguments that are dimensions.
DIMENSIONS = ("dim", "dims", "dim0", "dim1", "dim2", "dimension")
#: Names of node classes as they are; others get "Backward0".
_WHOLE = re.compile(r"Backward\d(_copy)?$|^(NotImplemented|CopyBackwards)$")


class Op:
    """A kernel, the formulas of its gradients, and the other facts that the op is declared with.

    Attributes:
        name: the public name ("sum"); `node_class.__name__` is PyTorch's ("SumBackward0").
        kernel: the function of arrays.
        caller: the function of Tensors that `call.py` generates for it.
        inputs: positions of the tensor arguments in the signature; `many`: the one that is a sequence of tensors.
        operands: the number of operands (1 or 2) of a ufunc, or of a kernel that is called like one; else 0.
        elementwise: an element of the output depends on one element of each input, so in forward mode the formulas
            are their own transposes.
        linear: the kernel is linear in each tensor argument with the others held fixed, so the tangent of the output
            is the op applied to the tangent of that argument.
        laid: the result gets the order in memory of PyTorch's elementwise functions (`kernels/layouts.py`).
        Others: the facts that `op` and `pointwise` (`op.py`) explain.
    """

    caller: Any
    operands = 0
    elementwise = linear = in_float32 = numbers = floating = of_tensors = False
    broadcasts = view = data_dependent = moves = False
    lifts = property(lambda self: self.batch == "elementwise")  # see `ops/batching.py`
    of_floats: Callable[..., Any] | None = None
    outputs = 1
    nondiff: tuple[int, ...] = ()
    residuals: tuple[str, ...] = ()
    many: str | None = None
    joint: Formula | None = None
    holds: str | None = None
    complex: str | None = None
    batch: str | Callable[..., Any] | None = None
    refuses: str | Callable[..., str | None] | None = None
    result: Callable[..., Any] | None = None
    loss: str | None = None
    multiply_adds: Callable[..., int] | None = None

    @property
    def several(self) -> bool:
        """Whether the kernel returns several outputs, or residuals, or the op converts what it returns."""
        return self.outputs != 1 or bool(self.residuals or self.result)

    @property
    def records(self) -> bool:
        """Whether a result may require grad."""
        return bool(self.wants) and (self.several or 0 not in self.nondiff)

    def __init__(
        self,
        kernel: Callable[..., Any],
        formulas: dict[str, Formula | None],
        *,
        arguments: tuple[str, ...],
        defaults: tuple[Any, ...],
        positional: int,
        name: str,
        node_name: str,
        joint_inputs: tuple[str, ...] = (),
        overload: tuple[str, str] | None = None,
        own_layout: bool = False,
        **facts: Any,
    ) -> None:
        self.kernel, self.formulas, self.name = kernel, formulas, name
        self.arguments, self.defaults, self.positional = arguments, defaults, positional
        #: Positions of the arguments without a default.
        self.required = [i for i, default in enumerate(defaults) if default is MISSING]
        vars(self).update(facts)
        joint, outputs = self.joint, self.outputs
        self.laid = self.batch == "elementwise" and not own_layout
        self.last = outputs - 1  # number of the last output that is differentiable
        tensors = (*joint_inputs, *formulas)
        self.inputs = tuple(i for i, argument in enumerate(arguments) if argument in tensors)
        self.position = {argument: i for i, argument in enumerate(arguments)}
        for unknown in [name for name in tensors if name not in self.position]:
            raise TypeError(f"op {name}: a formula for '{unknown}', which is not among {arguments}")
        #: Per input, whether it has no gradient.
        self._constant = [
            formulas.get(arguments[i]) is None and (joint is None or arguments[i] in formulas) for i in self.inputs
        ]
        self._given = tuple(zip(self.inputs, self._constant, strict=True))
        self.plans: dict[Any, Plan] = {}
        #: The dtypes that the kernel is known to compute with: `refuse_dtypes` adds those that it does not refuse.
        self.accepted = set(_USUAL)
        #: Whether there are dtypes that the kernel refuses.
        self.selects = self.complex is None or self.refuses is not None or not (self.view or self.moves)
        #: Per formula the names of its parameters after `g` (and `needs`).
        self.wants = {key: _parameter_names(formula)[1:] for key, formula in formulas.items() if formula is not None}
        if joint is not None:
            self.wants["joint"] = _parameter_names(joint)[2:]
        body = {"__slots__": (), "op": self, "outputs": outputs} if outputs else {"__slots__": ("outputs",), "op": self}
        self.node_class = type(node_name if _WHOLE.search(node_name) else f"{node_name}Backward0", (OpNode,), body)
        self.overload: tuple[int, type[OpNode]] | None = None
        if overload is not None:
            argument, class_name = overload
            self.overload = (self.position[argument], type(class_name, (self.node_class,), {"__slots__": ()}))

    # Calling --------------------------------------------------------------------------------------

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Return the arguments in the signature's order, defaults filled in.

        PyTorch's names `input` and `other`, and NumPy's `axis` and `keepdims`, stand for `x`, `y`, `dim` and `keepdim`.
        """
        name, found = self.name, [*args, *self.defaults[len(args) :]]
        if len(args) > self.positional:
            raise too_many(name, self.positional, len(args))
        for key, value in kwargs.items():
            position = self.position.get(key)
            if position is None:
                position = self.position.get(own_name(key), 0 if key == "input" else None)
            if position is None:
                raise TypeError(f"{name}() got an unexpected keyword argument '{key}'")
            if found[position] is not self.defaults[position]:
                raise TypeError(f"{name}() got multiple values for argument '{key}'")
            found[position] = value
        missing = [self.arguments[i] for i in self.required if found[i] is MISSING]
        if missing:
            raise missing_argument(name, *missing)
        return tuple(found)

    def given(self, values: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of a call by place, and those that have names alone."""
        count = self.positional
        return tuple(values[:count]), dict(zip(self.arguments[count:], values[count:], strict=True))

    def checked(self, value: Any, i: int) -> Any:
        """Return a number unchanged and the array of a PyTorch tensor; raise TypeError for anything else."""
        checked = value if isinstance(value, NUMBERS) else self.adopted(value, i)._array
        if self.selects and hasattr(checked, "dtype"):
            self.refuse_dtype(checked.dtype)
        return checked

    def adopted(self, value: Any, i: int) -> Tensor:
        """Return a PyTorch tensor (torchvision's data sets return these) as a tinytorch tensor on the same memory.

        Raises PyTorch's TypeError for any other value.
        """
        if module_of(type(value)).partition(".")[0] == "torch" and hasattr(value, "detach"):
            adopted: Tensor = wrap(value.detach().numpy())
            return adopted
        self.refuse(value, i)

    def refuse(self, value: Any, i: int) -> NoReturn:
        """Raise PyTorch's error for argument `i`, which is not a tensor."""
        raise self.refusal(value, i)

    def refusal(self, value: Any, i: int) -> TypeError:
        """Return PyTorch's error for argument `i`, which is not a tensor."""
        argument = PUBLIC.get(self.arguments[i], self.arguments[i])
        return TypeError(
            f"{self.name.strip('_')}(): argument '{argument}' (position {i + 1}) must be Tensor, not "
            f"{type(value).__name__}"
        )

    def refuse_dtypes(self, arrays: Sequence[Any]) -> None:
        """Raise PyTorch's error if the kernel does not compute with the dtype of one of its arguments.

        Those are complex dtypes, unless the op is declared with `complex`; 8-bit floats, unless it returns a view or is
        declared with `moves`; and unsigned integers wider than a byte, if it is declared with `refuses`.
        """
        for each in arrays:
            for x in each if isinstance(each, (list, tuple)) else (each,):
                kind = getattr(x, "dtype", None)
                if isinstance(kind, np.dtype):
                    self.refuse_dtype(kind)
        if self.refuses is not None and any([is_wide_unsigned(arrays[i]) for i in self.inputs[: self.operands or 1]]):
            self._refuse_unsigned(arrays)

    def refuse_dtype(self, kind: np.dtype[Any]) -> None:
        """Raise PyTorch's error for a complex dtype, or for 8-bit floats, with which the kernel does not compute."""
        if kind.kind == "c" and self.complex is None:
            raise refused(self.name, kind)
        if kind.itemsize == 1 and kind.kind in dtypes.FLOATS and not (self.view or self.moves):
            name = dtypes.from_numpy_dtype(kind).tensor_name
            raise NotImplementedError(f"\"{self.name.strip('_')}\" not implemented for '{name}'")
        if kind.kind != "u" or kind.itemsize == 1 or self.refuses is None:
            self.accepted.add(kind)

    def _refuse_unsigned(self, arrays: Sequence[Any]) -> None:
        """Raise PyTorch's error for unsigned integers wider than a byte, unless it computes with these arguments."""
        wide = [array.dtype for array in arrays if is_wide_unsigned(array)]
        index = self.position.get("index")
        if not wide or (index is not None and is_wide_unsigned(arrays[index])):  # (the kernel checks the index itself)
            return
        name = self.refuses(*arrays) if callable(self.refuses) else self.refuses
        if name is not None:
            kind = dtypes.from_numpy_dtype(wide[0]).tensor_name
            raise NotImplementedError(f"\"{name}\" not implemented for '{kind}'")

    def elements(self, tensors: Sequence[Any], i: int) -> list[Any]:
        """Return the arrays of the tensors in argument `i`."""
        for k, tensor in enumerate(tensors):
            if not isinstance(tensor, Tensor):
                raise TypeError(f"expected Tensor as element {k} in argument {i}, but got {type(tensor).__name__}")
        return [tensor._array for tensor in tensors]

    def products(self, out: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
        """Return how many products a call adds up, whose result is `out`."""
        if self.multiply_adds is None:
            return 0
        given = [x.shape if isinstance(x, Tensor) else x for x in self.bind(args, kwargs)]
        return self.multiply_adds((out[0] if isinstance(out, tuple) else out).shape, *given)

    # Recording ------------------------------------------------------------------------------------

    def edges_of(self, tensors: Sequence[Any]) -> list[Edge | None] | None:
        """Return the edges of the inputs, None for an input without gradient; None if no input requires grad."""
        found = False
        edges: list[Edge | None] = []
        for tensor in tensors:
            edge = None
            if type(tensor) is Tensor or isinstance(tensor, Tensor):
                if tensor._view is not None:
                    refresh(tensor)
                if tensor._requires_grad:
                    edge = tensor._edge or leaf_edge(tensor)
                    found = True
            edges.append(edge)
        return edges if found else None

    def needed(self, values: Sequence[Any]) -> tuple[int | None, Any]:
        """Return the key of a call's plan (see `plan_of`), 0 if no input needs a gradient, and the inputs' edges."""
        if self.many is not None:
            edges = self.edges_of(values[self.inputs[0]])
            return (0 if edges is None else None), edges
        key, bit, edges = 0, 1, []
        for i, constant in self._given:
            x = values[i]
            edge = None
            if type(x) is Tensor or isinstance(x, Tensor):
                key |= bit << 8
                if x._view is not None:
                    refresh(x)
                if x._requires_grad and not constant:
                    edge = x._edge or leaf_edge(x)
                    key |= bit
            edges.append(edge)
            bit <<= 1
        return (key if key & 255 else 0), edges

    def node(
        self, key: Any, edges: Any, values: Sequence[Any], outs: tuple[Any, ...], cell: Any,
        residuals: tuple[Any, ...] = (),
    ) -> OpNode:  # fmt: skip
        """Return the node of a call with its saved values.

        Args:
            key: as in `plan_of`; `edges` are those of the inputs.
            values: the arguments.
            outs: the output arrays; `cell` is the version counter of the only one, or a tuple of their cells.
            residuals: further arrays that the kernel returned for the formulas.
        """
        plan, overload = self.plans.get(key) or self.plan_of(key), self.overload
        node = self.node_class() if overload is None or values[overload[0]] is None else overload[1]()
        out = outs[0]
        kind = out.dtype
        enter(node, tuple(edges), out.shape, kind)
        node.plan = plan
        if kind is not _F32 and kind.kind == "c" and self.complex == HOLOMORPHIC:
            node.plan = plan.conjugated()
        if self.outputs != 1:
            out = outs
            if not self.outputs:
                node.outputs = len(outs)
            if node.outputs != 1:
                node.take_outputs(outs)
        try:
            node.saved = plan.keep(values, out, cell, residuals)
        except TypeError:
            raise RuntimeError(INFERENCE_NOT_SAVED) from None
        return node

    def plan_of(self, key: Any) -> Plan:
        """Return the plan of a set of inputs.

        Args:
            key: bit k is set if the k-th input needs a gradient, bit 8 + k if it is a tensor. None for an op of a
                sequence of tensors, since one formula computes all gradients.
        """
        bits = -1 if key is None else key
        count = range(len(self.inputs))
        plan = self._plan(tuple([bool(bits >> k & 1) for k in count]), tuple([bool(bits >> k & 256) for k in count]))
        self.plans[key] = plan
        return plan

    def _plan(self, needs: tuple[bool, ...], given: tuple[bool, ...]) -> Plan:
        """Return the plan for the inputs in `needs`, which need gradients (`given`: which inputs are tensors)."""
        plan = Plan(self.joint is not None, self.many is not None, self.outputs == 0, self.outputs != 1)
        is_tensor = dict(zip(self.inputs, given, strict=True))
        if self.joint is not None:
            sources = [self._source(name, is_tensor) for name in self.wants["joint"]]
            plan.rules.append((0, self.joint, tuple([plan.save(source) for source in sources])))
            return plan
        if self.many is not None:
            formula = self.formulas[self.many]
            assert formula is not None
            names = self.wants[self.many]
            plan.rules.append((0, formula, tuple([plan.save(self._source(name, is_tensor)) for name in names])))
            return plan
        for k, i in enumerate(self.inputs):
            formula = self.formulas[self.arguments[i]]
            if needs[k] and formula is not None:
                names = self.wants[self.arguments[i]]
                plan.rules.append((k, formula, tuple([plan.save(self._source(name, is_tensor)) for name in names])))
        # A number in the place of a tensor counts as a tensor, since PyTorch converts it to one.
        plan.holds_tensors |= any((PLAIN, i) in plan.index for i in self.inputs)
        plan.holds_tensors |= self.holds is not None and (PLAIN, self.position[self.holds]) in plan.index
        return plan

    def _source(self, name: str, is_tensor: dict[int, bool]) -> tuple[int, Any]:
        """Return the source (kind, position) of the saved value for a parameter of a formula."""
        if name in self.position:
            i = self.position[name]
            if name == self.many:
                raise TypeError(f"op {self.name}: a formula cannot name the sequence '{name}', only its shapes")
            if not is_tensor.get(i):
                return (PLAIN, i)
            return (INPUT, i)
        if name == "out":
            return (OUTPUT, 0)
        if name in self.residuals:
            return (RESIDUAL, self.residuals.index(name))
        base, _, what = name.rpartition("_")
        if base in self.position and what == "kept":
            return (KEPT, self.position[base])
        if base in self.position and what in ("shape", "shapes", "dtype"):
            if what == "shape" and is_tensor.get(self.position[base], True):
                return (SHAPE, self.position[base])
            return (PROPERTY, _property_of(self.position[base], what))
        if name.startswith("out") and name[3:].isdecimal():
            return (OUTPUT, int(name[3:]))
        raise TypeError(f"op {self.name}: the formula's parameter '{name}' is no argument, output or residual")


def record_several(
    op: Op, key: Any, edges: Any, values: Sequence[Any], outs: list[Tensor], arrays: tuple[Any, ...], residuals: Any
) -> None:
    """Give `outs`, the tensors of `arrays`, their node; the other arguments are those of `Op.node`."""
    node: Any = None
    for position, out in enumerate(outs):
        if arrays[position].dtype.kind in DIFFERENTIABLE and position not in op.nondiff:
            if node is None:
                cells = tuple([None if each is None else each._cell for each in outs])
                cell = cells if op.outputs != 1 else cells[0]
                node = op.node(key, edges, values, arrays, cell, tuple(map(as_array, residuals)))
            out._edge, out._requires_grad = (node, position), True
            op.last = position


#: NumPy's names of dimensions.
NUMPY_DIMS = {"axis": "dim", "keepdims": "keepdim"}
#: NumPy's names of arguments, which PyTorch's functions accept, and "self" for calls whose first operand is a number.
NUMPY = {"a": "input", "x": "input", "x1": "input", "x2": "other", "self": "input"} | NUMPY_DIMS
#: By PyTorch's name of an argument, the name that kernels give it.
_OWN = {
    "input": "x", "tensor": "x", "tensors": "xs",
    "other": "y", "exponent": "y", "mat2": "y", "vec": "y", "vec2": "y",
}  # fmt: skip
PUBLIC = {"x": "input", "y": "other", "xs": "tensors"}


def too_many(name: str, most: int, given: int, least: int | None = None) -> TypeError:
    """Return PyTorch's error for a call with more positional arguments than a function has: from `least` to `most`."""
    takes = f"{most} positional argument{'s' * (most != 1)}"
    if least not in (None, most):
        takes = f"from {least} to {most} positional arguments"
    were = "was" if given == 1 and least in (None, most) else "were"
    return TypeError(f"{name}() takes {takes} but {given} {were} given")


def missing_argument(name: str, *arguments: str) -> TypeError:
    """Return PyTorch's error for missing arguments."""
    plural = "s" * (len(arguments) == 1)  # (so it is)
    named = ", ".join([f'"{argument}"' for argument in arguments])
    return TypeError(f"{name}() missing {len(arguments)} required positional argument{plural}: {named}")


def own_name(name: str) -> str:
    """Return the name that kernels give an argument, from PyTorch's or NumPy's name of it."""
    public = NUMPY.get(name, name)
    return _OWN.get(public, public)


NUMBERS = (int, float, bool, complex, np.number, np.bool_)


@functools.cache
def _property_of(position: int, what: str) -> Callable[[tuple[Any, ...]], Any]:
    """Return the function that reads a dtype or shapes from the arguments (cached, so that plans share it)."""
    if what == "dtype":
        return lambda values: values[position]._array.dtype
    if what == "shape":
        return lambda values: ()  # the shape of a number
    return lambda values: [tensor._array.shape for tensor in values[position]]


def _parameter_names(function: Any) -> tuple[str, ...]:
    code = function.__code__
    names: tuple[str, ...] = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return names


def signature(kernel: Any) -> tuple[tuple[str, ...], tuple[Any, ...], int]:
    """Return a kernel's argument names, their defaults (`MISSING` where there is none), and how many are positional.

    They are read from the code object, since `inspect` is slow to import and slower to call.
    """
    while hasattr(kernel, "__wrapped__"):
        kernel = kernel.__wrapped__
    names, positional = _parameter_names(kernel), kernel.__code__.co_argcount
    defaults = kernel.__defaults__ or ()
    by_name = kernel.__kwdefaults__ or {}
    missing = (MISSING,) * (positional - len(defaults))
    return names, (*missing, *defaults, *[by_name.get(name, MISSING) for name in names[positional:]]), positional


def is_wide_unsigned(x: Any) -> bool:
    """Return whether `x` is an array of unsigned integers wider than a byte."""
    return isinstance(x, np.ndarray) and x.dtype.kind == "u" and x.dtype.itemsize > 1


def camel(name: str) -> str:
    """Return a function's name as PyTorch writes it in the names of nodes: "log_softmax" as "LogSoftmax"."""
    return "".join([part.capitalize() for part in name.strip("_").split("_")])
