"""How an op is declared, called and recorded: `@op`, `pointwise`, `Op`.

An op is a NumPy function (its kernel) plus, by argument name, the formula of its gradient. A formula's parameter
names say what it needs: `g`, the gradient of the output, comes first; then any argument of the op, `out`,
`<input>_shape`, a residual by its name. Exactly what the *needed* formulas name is saved, worked out once per set of
inputs that need a gradient (a `Plan`).

    exp = pointwise("exp", np.exp, x=lambda g, out: g * out, floating=True)

    @op(x=lambda g, x_shape, dim, keepdim: ...)
    def sum(x, dim=None, keepdim=False, *, dtype=None): ...
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NoReturn

import numpy as np

from tinytorch.core.caller import caller
from tinytorch.core.graph import FREED, Edge, Node, leaf_edge, numbers
from tinytorch.core.mode import dispatch, local
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.core.view import SEVERAL, USUAL, make_view, refresh
from tinytorch.kernels import dtypes, parallel
from tinytorch.kernels.dtypes import FLOATS, number
from tinytorch.kernels.parallel import LARGE

Formula = Callable[..., Any]

# What is saved for a formula's parameter, and how it is unpacked.
INPUT, OUTPUT, PLAIN, RESIDUAL, SHAPE, PROPERTY, PACKED = range(7)

# Sources that are compared with.
_X, _Y, _OUT = (INPUT, 0), (INPUT, 1), (OUTPUT, 0)
_BOTH = [_Y, _X]  # what a product saves

TENSORS = (INPUT, OUTPUT, RESIDUAL, PACKED)
_OF_ARGUMENTS = (INPUT, PLAIN, SHAPE)

# By the kind of a source: what is kept of it. Without a version cell, as inference tensors are, it is a TypeError.
_KEPT = {
    INPUT: "({x}, {x}._cell[0])",
    OUTPUT: "(outs[{i}], None, 0)",  # a later output is new memory that only its own tensor shares
    PLAIN: "{x}",
    RESIDUAL: "(residuals[{i}], None, 0)",
    SHAPE: "{x}._array.shape",
    PROPERTY: "PLAN.sources[{k}][1]({values})",
}

INFERENCE_NOT_SAVED = (
    "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in "
    "computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it in "
    "autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`."
)

_MISSING: Any = object()
_F32, _F64, _I64 = np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.int64)
_new = object.__new__
ndarray = np.ndarray


class Plan:
    """What to save for one set of inputs that need gradients, and the formulas that use it.

    Attributes:
        sources: per saved value (kind, position): which input, argument, output or residual it is.
        rules: (input's position, formula, indices into the saved values of its arguments after `g`).
        holds_tensors: whether anything saved is a tensor (else a second backward does no harm).
        keep: the function that returns what is saved; None until `keeper` has made it.
    """

    __slots__ = ("any_number", "holds_tensors", "index", "joint", "keep", "many", "packed", "rules", "sources")

    def __init__(self, joint: bool, many: bool, any_number: bool) -> None:
        self.joint = joint  # one rule for all inputs, told which are needed
        self.many = many  # one rule for a sequence of tensors
        self.any_number = any_number  # of outputs
        self.sources: list[tuple[int, Any]] = []
        self.index: dict[tuple[int, Any], int] = {}
        self.rules: list[tuple[int, Formula, tuple[int, ...]]] = []
        self.holds_tensors = False
        self.packed: Plan | None = None  # the same for what hooks have packed
        self.keep: Callable[..., list[Any]] | None = None

    def keeper(self) -> Callable[..., list[Any]]:
        """Return `keep`: of the arguments, outputs, first version cell and residuals of a call, what is saved."""
        values = [
            f"values[{i}]" for i in range(1 + max([i for kind, i in self.sources if kind in _OF_ARGUMENTS] or [0]))
        ]
        text = f"lambda values, outs, cell, residuals=(): {self.saved(values, 'values', 'outs[0]', 'cell')}"
        self.keep = eval(text, {"PLAN": self})
        return self.keep

    def saved(self, arguments: Sequence[str], values: str, out: str, cell: str) -> str:
        """Return the expression of what is saved, as a programmer would write it: a loop over the sources takes longer.

        Args:
            arguments: how to write each argument.
            values: all of them, as a tuple.
            out, cell: the output, and its version cell.
        """
        items = []
        for k, (kind, of) in enumerate(self.sources):
            kept = f"({out}, {cell}, {cell}[0])" if (kind, of) == _OUT else _KEPT[kind]
            x = arguments[of] if kind in _OF_ARGUMENTS else ""
            items.append(kept.format(x=x, i=of, k=k, values=values))
        return f"[{', '.join(items)}]"

    def save(self, source: tuple[int, Any]) -> int:
        """Return the index under which `source` is saved, entering it when new."""
        if source not in self.index:
            self.index[source] = len(self.sources)
            self.sources.append(source)
            self.holds_tensors |= source[0] in TENSORS
        return self.index[source]


class OpNode(Node):
    """A recorded call of an op; each op has a subclass of its own, named as PyTorch names it."""

    __slots__ = ()
    __init__ = object.__init__  # made by the callers below, faster so than by `object.__new__`
    _shows: bool  # whether the class has `_saved_*`
    # Where PyTorch's node has other inputs, or in another order; and by input the name of a node that PyTorch has
    # before it, which our op has within itself.
    _order: ClassVar[tuple[int, ...] | None] = None
    _within: ClassVar[dict[int, str]] = {}

    def release(self) -> None:
        """Free what was saved: a later backward through this node is an error."""
        if self.plan.holds_tensors:
            self.saved = None

    def _inputs(self) -> Sequence[int]:
        op = self.op
        if self._order is not None:
            return self._order
        if op.many is not None:
            return range(len(self.edges))
        return [k for k, constant in enumerate(op._constant) if not constant]

    def _differentiable(self) -> int:
        return self.op.last + 1 if self.op.outputs else self.outputs

    def backward(self, g: Any, create_graph: bool, needed: set[Node] | None) -> Any:
        """Return the gradients of the inputs by the op's formulas."""
        saved = self.saved
        if saved is None:
            raise RuntimeError(FREED)
        plan = self.plan
        if plan.any_number and self.outputs == 1:
            g = (g,)  # an op of any number of outputs gets a tuple also for one
        values = []
        for source, item in zip(plan.sources, saved):  # noqa: B905  (a keyword costs time here)
            kind = source[0]
            if kind not in TENSORS:
                values.append(item)
            elif create_graph or kind != INPUT or item[0]._cell[0] != item[1]:
                values.append(self._unpack(source, item, create_graph))
            else:  # the usual case, in line
                values.append(item[0])
        edges = self.edges
        if plan.joint:
            needs = tuple(edge is not None and (needed is None or edge[0] in needed) for edge in edges)
            _, formula, indices = plan.rules[0]
            return formula(g, needs, *[values[k] for k in indices])
        if plan.many:
            _, formula, indices = plan.rules[0]
            return formula(g, *[values[k] for k in indices])
        grads: list[Any] = [None] * len(edges)
        for i, formula, indices in plan.rules:
            if needed is None or edges[i][0] in needed:  # type: ignore[index]
                if len(indices) == 1:  # the usual numbers of arguments, without building a list
                    grads[i] = formula(g, values[indices[0]])
                elif not indices:
                    grads[i] = formula(g)
                else:
                    grads[i] = formula(g, *[values[k] for k in indices])
        return grads

    def _unpack(self, source: tuple[int, Any], item: Any, create_graph: bool) -> Any:
        """Return a saved tensor, having checked that nobody wrote to its memory since."""
        kind, position = source
        if kind == PACKED:
            return self._unpack_by_hook(position, item, create_graph)
        if kind == INPUT:
            tensor, version = item
            if tensor._cell[0] != version:
                raise modified(self, tensor._array, self._producer(position), tensor._cell[0], version)
            return self._as_recorded(tensor, position) if create_graph else tensor
        array, cell, version = item
        if cell is not None and cell[0] != version:
            raise modified(self, array, f"output {position} of {self.name()}", cell[0], version)
        if kind == RESIDUAL:
            if create_graph and array.dtype.kind in FLOATS:
                return None  # a cache: under create_graph the formula computes it from the inputs, differentiably
            return wrap(array)
        tensor = wrap(array)
        if cell is not None:
            tensor._cell = cell
        if create_graph:
            tensor._edge, tensor._requires_grad = (self, position), True
        return tensor

    def _as_recorded(self, tensor: Tensor, position: Any) -> Tensor:
        """Return an input as it was when recorded: by now it may be detached, or the result of something later."""
        edge = self.edges[self.op.inputs.index(position)]
        if tensor._edge is edge or not (edge is None or edge[0].number > 0):
            return tensor
        again: Tensor = wrap(tensor._array)
        again._cell = tensor._cell
        again._edge, again._requires_grad = edge, edge is not None
        return again

    # What was saved, under PyTorch's names: `_saved_self`, `_raw_saved_self` …

    def _producer(self, position: Any) -> str:
        edge = self.edges[self.op.inputs.index(position)]
        if edge is None:
            return "a tensor that does not require grad"
        return f"output {edge[1]} of {edge[0].name()}"


def modified(node: Node, array: Any, producer: str, found: int, expected: int) -> RuntimeError:
    """Return PyTorch's error for a saved tensor that was written to before backward."""
    kind = dtypes.from_numpy_dtype(array.dtype).tensor_name
    return RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[torch.{kind}Tensor {list(array.shape)}], which is {producer}, is at version {found}; expected version "
        f"{expected} instead. It was saved for {node.name()}. Hint: make the write out of place (x = x + 1 for "
        "x += 1), or enable anomaly detection to find the operation that failed to compute its gradient, with "
        "torch.autograd.set_detect_anomaly(True)."
    )


#: The ops that there are, and who is told of a new one: for what kernels do not say of dtypes (`ops/unsigned.py`).
ops: list[Op] = []
told: list[Callable[[Op], None]] = [ops.append]


class Op:
    """A kernel, its formulas, and what is known about calling it.

    Attributes:
        name: the public name ("sum"); `node_class.__name__` is PyTorch's ("SumBackward0").
        kernel: the function of arrays.
        inputs: positions of the tensor arguments in the signature; `many`: the one that is a sequence of tensors.
        formulas: per differentiable input its formula; or `joint`, one for all.
        broadcasts: gradients are summed to the shape of their input.
        view: the output shares the first input's memory.
        floating: integers become the default floating type first.
    """

    caller: Any  # the public function
    of_floats: Callable[..., Any] | None = None  # the kernel for float32, where that is another one
    # What forward mode need not work out from the formulas:
    elementwise = False  # an element of the output depends on one of each input: formulas are their own transposes
    linear = False  # in each tensor argument, the others held fixed: the tangent is the op's of the tangent
    in_float32 = False  # see `pointwise`
    looking = staticmethod(lambda kernel: kernel)  # makes a kernel look at the dtypes first (see `ops/unsigned.py`)

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
        many: str | None = None,
        joint: Formula | None = None,
        joint_inputs: tuple[str, ...] = (),
        outputs: int = 1,
        nondiff: tuple[int, ...] = (),
        residuals: tuple[str, ...] = (),
        view: bool = False,
        broadcasts: bool = False,
        floating: bool = False,
        result: Callable[..., Any] | None = None,
        overload: tuple[str, str] | None = None,
    ) -> None:
        self.kernel, self.formulas, self.name = kernel, formulas, name
        self.arguments, self.defaults, self.positional = arguments, defaults, positional
        #: Positions of the arguments without a default.
        self.required = [i for i, default in enumerate(defaults) if default is _MISSING]
        self.many, self.joint, self.outputs, self.nondiff = many, joint, outputs, nondiff
        self.residuals, self.view, self.broadcasts, self.floating = (residuals, view, broadcasts, floating)
        self.result = result
        self.last = outputs - 1  # number of the last output that is differentiable
        tensors = (*joint_inputs, *formulas)
        self.inputs = tuple(i for i, argument in enumerate(arguments) if argument in tensors)
        self.position = {argument: i for i, argument in enumerate(arguments)}
        for unknown in [each for each in tensors if each not in self.position]:
            raise TypeError(f"op {name}: a formula for '{unknown}', which is not among {arguments}")
        #: Per input, whether it has no gradient.
        self._constant = [
            formulas.get(arguments[i]) is None and (joint is None or arguments[i] in formulas) for i in self.inputs
        ]
        self.plans: dict[Any, Plan] = {}
        #: Per formula the names of its parameters after `g` (and `needs`), looked at once.
        self.wants = {key: _parameter_names(formula)[1:] for key, formula in formulas.items() if formula is not None}
        if joint is not None:
            self.wants["joint"] = _parameter_names(joint)[2:]
        body = {"__slots__": (), "op": self, "outputs": outputs} if outputs else {"__slots__": ("outputs",), "op": self}
        self.node_class = type(f"{node_name}Backward0", (OpNode,), body)
        self.overload: tuple[int, type[OpNode]] | None = None
        if overload is not None:
            argument, class_name = overload
            self.overload = (self.position[argument], type(class_name, (self.node_class,), {"__slots__": ()}))
        self.callers: list[Any] = []
        for tell in told:
            tell(self)

    # Calling --------------------------------------------------------------------------------------

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Return the arguments in the signature's order, defaults filled in."""
        if not kwargs and len(self.required) <= len(args) <= self.positional:
            return args + self.defaults[len(args) :]  # (the usual case)
        by_place, more = args[: self.positional], args[self.positional :]
        return self.bound((*by_place, *self.defaults[len(by_place) :]), more, kwargs)

    def bound(self, values: tuple[Any, ...], more: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Return the arguments in the signature's order, of a call that Python alone did not understand.

        PyTorch's `input`, `other`, and NumPy's `axis`, `keepdims` are understood for `x`, `y`, `dim`, `keepdim`.

        Args:
            values: the arguments, defaults filled in, `_MISSING` for those that there are not.
            more: those by place that are too many.
            kwargs: those by names that may be other ones.
        """
        name, found = self.name, list(values)
        if more:
            count = self.positional
            raise TypeError(f"{name}() takes {count} positional arguments but {count + len(more)} were given")
        for key, value in kwargs.items():
            position = self.position.get(key, self.position.get(own_name(key), 0 if key == "input" else None))
            if position is None:
                raise TypeError(f"{name}() got an unexpected keyword argument '{key}'")
            if found[position] is not self.defaults[position]:
                raise TypeError(f"{name}() got multiple values for argument '{key}'")
            found[position] = value
        missing = [f'"{self.arguments[i]}"' for i in self.required if found[i] is _MISSING]
        if missing:
            raise TypeError(f"{name}() missing {len(missing)} required positional arguments: {', '.join(missing)}")
        return tuple(found)

    def given(
        self, values: tuple[Any, ...], more: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of a call, as Python has bound them, by place and by name."""
        count = self.positional
        args = tuple([value for value in values[:count] if value is not _MISSING])
        named = zip(self.arguments[count:], values[count:], strict=True)
        return (*args, *more), kwargs | {key: value for key, value in named if value is not _MISSING}

    def run(self, values: tuple[Any, ...]) -> Any:
        """Return what the kernel makes of the arguments, tensors among them unwrapped."""
        arrays = list(values)
        for i in self.inputs:
            value = arrays[i]
            if isinstance(value, Tensor):
                arrays[i] = value._array
            elif isinstance(value, (list, tuple)) and self.arguments[i] == self.many:
                arrays[i] = self.elements(value, i)
            elif value is not None:
                arrays[i] = self.checked(value, i)
        return self.compute(arrays)

    def checked(self, value: Any, i: int) -> Any:
        """Return a number given for a tensor as it is, and the array of PyTorch's tensors; refuse anything else."""
        return value if isinstance(value, NUMBERS) else self.adopted(value, i)._array

    def adopted(self, value: Any, i: int) -> Tensor:
        """Return PyTorch's tensor, which torchvision's data sets give, as one of ours on the same memory.

        Raises PyTorch's TypeError for anything else.
        """
        if type(value).__module__.partition(".")[0] == "torch" and hasattr(value, "detach"):
            adopted: Tensor = wrap(value.detach().numpy())
            return adopted
        self.refuse(value, i)

    def refuse(self, value: Any, i: int, k: int | None = None) -> NoReturn:
        """Raise PyTorch's error for what is no tensor: argument `i`, or element `k` of it."""
        if k is not None:
            raise TypeError(f"expected Tensor as element {k} in argument {i}, but got {type(value).__name__}")
        argument = _PUBLIC.get(self.arguments[i], self.arguments[i])
        raise TypeError(
            f"{self.name.strip('_')}(): argument '{argument}' (position {i + 1}) must be Tensor, not "
            f"{type(value).__name__}"
        )

    def compute(self, arrays: list[Any]) -> Any:
        """Call the kernel with plain arrays."""
        if self.positional == len(arrays):
            return self.kernel(*arrays)
        return self.kernel(
            *arrays[: self.positional],
            **dict(zip(self.arguments[self.positional :], arrays[self.positional :], strict=True)),
        )

    def elements(self, tensors: Sequence[Any], i: int) -> list[Any]:
        """Return the arrays of the tensors in argument `i`."""
        for k, each in enumerate(tensors):
            if not isinstance(each, Tensor):
                self.refuse(each, i, k)
        return [each._array for each in tensors]

    # Recording ------------------------------------------------------------------------------------

    def edges_of(self, tensors: Sequence[Any]) -> list[Edge | None] | None:
        """Return the inputs' edges, None where no gradient flows; None when nothing is to be recorded."""
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

    def record(
        self,
        edges: list[Edge | None],
        values: tuple[Any, ...],
        outs: tuple[Any, ...],
        cell: Any,
        residuals: tuple[Any, ...] = (),
        written_to: Tensor | None = None,
        before: Any = None,
    ) -> OpNode | None:
        """Return the node of a call with its saved values, or None if no input that needs a gradient has a formula.

        Args:
            edges: the inputs' edges.
            values: the arguments.
            outs: the arrays that came out; `cell` the version cell of the first.
            residuals: what the kernel keeps for the formulas.
            written_to: the first input, when the op wrote to it in place; `before` is a copy of what it held.
        """
        if self.many is not None:
            key: Any = None  # one formula serves all
        else:
            key = 0
            k = 0
            for i in self.inputs:
                if edges[k] is not None:
                    if self._constant[k]:
                        edges[k] = None
                    else:
                        key |= 1 << k
                if isinstance(values[i], Tensor):
                    key |= 256 << k
                k += 1
            if not key & 255:
                return None
        node = self.node(key, edges, values, outs, cell, residuals)
        if written_to is not None:
            # The first input's memory holds the output now: a copy of what it held is saved. Others on that memory
            # are saved as of before the write, so that backward finds them modified.
            saved = node.saved
            for k, (kind, position) in enumerate(node.plan.sources):
                if kind != INPUT:
                    continue
                tensor, version = saved[k]
                if position == self.inputs[0]:
                    held = wrap(before)
                    held._edge, held._requires_grad = edges[0], edges[0] is not None
                    saved[k] = (held, 0)
                elif tensor._cell is written_to._cell:
                    saved[k] = (tensor, version - 1)
        return node

    def node(
        self, key: Any, edges: Any, values: tuple[Any, ...], outs: tuple[Any, ...], cell: Any,
        residuals: tuple[Any, ...] = (),
    ) -> OpNode:  # fmt: skip
        """Return the node of a call; `key` as in `plan_of`, the other arguments as in `record`."""
        plan = self.plans.get(key) or self.plan_of(key)
        overload = self.overload
        if overload is None or values[overload[0]] is None:
            node = self.node_class()
        else:
            node = overload[1]()
        node.edges = tuple(edges)
        node.plan = plan
        node.hooks = None
        node.number = next(numbers)
        if not self.outputs:
            node.outputs = len(outs)
        if node.outputs == 1:
            node.shape, node.dtype = outs[0].shape, outs[0].dtype
        else:
            node.shape = tuple([out.shape for out in outs])
            node.dtype = tuple([out.dtype for out in outs])
        try:
            node.saved = (plan.keep or plan.keeper())(values, outs, cell, residuals)
        except TypeError:
            raise RuntimeError(INFERENCE_NOT_SAVED) from None
        return node

    def plan_of(self, key: Any) -> Plan:
        """Return the plan of a set of inputs.

        Args:
            key: bit k says that the k-th input needs a gradient, bit 8 + k that it is a tensor. None for an op of a
                sequence of tensors: one formula serves all.
        """
        bits = -1 if key is None else key
        count = range(len(self.inputs))
        plan = self.plans[key] = self._plan(
            tuple([bool(bits >> k & 1) for k in count]), tuple([bool(bits >> k & 256) for k in count])
        )
        return plan

    def _plan(self, needs: tuple[bool, ...], given: tuple[bool, ...]) -> Plan:
        """Work out what to save when the inputs in `needs` need gradients (`given`: which are tensors at all)."""
        plan = Plan(self.joint is not None, self.many is not None, self.outputs == 0)
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
        # A number given for a tensor counts as one: PyTorch makes it one.
        plan.holds_tensors |= any((PLAIN, i) in plan.index for i in self.inputs)
        return plan

    def _source(self, name: str, is_tensor: dict[int, bool]) -> tuple[int, Any]:
        """Return what a formula's parameter stands for."""
        if name in self.position:
            i = self.position[name]
            if name == self.many:
                raise TypeError(f"op {self.name}: a formula cannot name the sequence '{name}', only its shapes")
            if not is_tensor.get(i):
                return (PLAIN, i)
            return _X if i == 0 else _Y if i == 1 else (INPUT, i)
        if name == "out":
            return _OUT
        if name in self.residuals:
            return (RESIDUAL, self.residuals.index(name))
        base, _, what = name.rpartition("_")
        if base in self.position and what in ("shape", "shapes", "dtype"):
            if what == "shape" and is_tensor.get(self.position[base], True):
                return (SHAPE, self.position[base])
            return (PROPERTY, _property_of(self.position[base], what))
        if name.startswith("out") and name[3:].isdecimal():
            return (OUTPUT, int(name[3:]))
        raise TypeError(f"op {self.name}: the formula's parameter '{name}' is no argument, output or residual")


#: NumPy's names of dimensions.
NUMPY_DIMS = {"axis": "dim", "keepdims": "keepdim"}
#: NumPy's names of arguments, which PyTorch's functions understand, and "self" of calls with a number first.
NUMPY = {"a": "input", "x": "input", "x1": "input", "x2": "other", "self": "input"} | NUMPY_DIMS
#: What kernels call the arguments of public functions.
_OWN = {
    "input": "x", "tensor": "x", "tensors": "xs",
    "other": "y", "exponent": "y", "mat2": "y", "vec": "y", "vec2": "y",
}  # fmt: skip
_PUBLIC = {"x": "input", "y": "other", "xs": "tensors"}


def own_name(name: str) -> str:
    """Return what kernels call an argument, given by PyTorch's or NumPy's name of it."""
    public = NUMPY.get(name, name)
    return _OWN.get(public, public)


NUMBERS = (int, float, bool, np.number, np.bool_)


@functools.cache
def _property_of(position: int, what: str) -> Callable[[tuple[Any, ...]], Any]:
    """Return the function that takes a dtype or shapes out of the arguments (cached, so that plans share it)."""
    if what == "dtype":
        return lambda values: values[position]._array.dtype
    if what == "shape":
        return lambda values: ()  # of a number
    return lambda values: [tensor._array.shape for tensor in values[position]]


def _parameter_names(function: Any) -> tuple[str, ...]:
    code = function.__code__
    names: tuple[str, ...] = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return names


def _signature(kernel: Any) -> tuple[tuple[str, ...], tuple[Any, ...], int]:
    """Return a kernel's argument names, their defaults (`_MISSING` where there is none), and how many are positional.

    (Read from the code object: `inspect` is slow to import and slower to call.)
    """
    kernel = getattr(kernel, "__wrapped__", kernel)
    names, positional = _parameter_names(kernel), kernel.__code__.co_argcount
    defaults = kernel.__defaults__ or ()
    by_name = kernel.__kwdefaults__ or {}
    missing = (_MISSING,) * (positional - len(defaults))
    return names, (*missing, *defaults, *[by_name.get(name, _MISSING) for name in names[positional:]]), positional


def as_array(result: Any) -> Any:
    """Return a kernel's result as an array: ufuncs on 0-d arrays return scalars."""
    return np.asarray(result) if isinstance(result, np.generic) else result


# Declaring ----------------------------------------------------------------------------------------


def op(
    *,
    name: str | None = None,
    many: str | None = None,
    joint: Formula | None = None,
    inputs: tuple[str, ...] = (),
    outputs: int = 1,
    nondiff: tuple[int, ...] = (),
    residuals: tuple[str, ...] = (),
    view: bool = False,
    broadcasts: bool = False,
    result: Callable[..., Any] | None = None,
    overload: tuple[str, str] | None = None,
    **formulas: Formula | None,
) -> Callable[[Callable[..., Any]], Any]:
    """Make an op of the kernel below: a function of Tensors with the kernel's signature and docstring.

    Args:
        name: the node's class name without "Backward0"; by default the function's name in capitals as PyTorch's.
        many: the name of the argument that is a sequence of tensors; its formula returns one gradient for each.
        joint: one rule for all `inputs`: `rule(g, needs, ...)` returns a tuple; `needs` says which are wanted.
        inputs: the tensor arguments of `joint`; None for the formula of one that has no gradient.
        outputs: how many tensors come out, 0 for as many as the kernel returns; unless it is 1, `g` is a tuple with
            None for those unused.
        nondiff: which of the outputs are not differentiable (indices).
        residuals: names of what the kernel returns after its outputs for the formulas alone. Floating-point ones
            are a cache: under create_graph a formula gets None for them and computes them from the inputs.
        view: the output shares the memory of the first argument.
        broadcasts: inputs broadcast, so gradients are summed to their shapes.
        result: makes what is returned of the list of outputs (a named tuple's class).
        overload: (argument, class name): the name that PyTorch gives the node where that argument is not None.
        **formulas: per tensor argument the formula of its gradient, or None where it has none.
    """

    def declare(kernel: Callable[..., Any]) -> Any:
        arguments, defaults, positional = _signature(kernel)
        made = Op(
            kernel, formulas, arguments=arguments, defaults=defaults, positional=positional, name=kernel.__name__,
            node_name=name or _camel(kernel.__name__), many=many, joint=joint, joint_inputs=inputs, outputs=outputs,
            nondiff=nondiff, residuals=residuals, view=view, broadcasts=broadcasts, result=result, overload=overload,
        )  # fmt: skip
        return _public(made, functools.wraps(kernel)(caller(made, globals())))

    return declare


def pointwise(
    name: str,
    kernel: Callable[..., Any],
    *,
    floating: bool = False,
    doc: str | None = None,
    node_name: str | None = None,
    linear: bool = False,
    in_float32: bool = False,
    of_floats: Callable[..., Any] | None = None,
    **formulas: Formula | None,
) -> Any:
    """Return the op of a ufunc (or function like one) of one or two arguments that broadcast.

    Args:
        name: the public name.
        kernel: the ufunc.
        floating: integers become the default floating type first.
        doc: the public docstring.
        node_name: PyTorch's name of the node, if it is not the public name in capitals.
        linear: a product of matrices, say: linear in each argument, and called in the same way, but not pointwise.
        of_floats: takes the ufunc's place for arrays of float32.
        in_float32: a number for the second argument is not rounded to the 16 bits of the first; `f(x, 1)` is x.
        **formulas: per argument, in order, the formula of its gradient, or None.
    """
    arguments = tuple(formulas)
    count = len(arguments)
    made = Op(
        kernel, formulas, arguments=arguments, defaults=(_MISSING,) * count, positional=count,
        name=name, node_name=node_name or _camel(name), broadcasts=True, floating=floating,
    )  # fmt: skip
    made.linear, made.elementwise, made.in_float32 = linear, not linear, in_float32
    if of_floats is not kernel:
        made.of_floats = of_floats
    call = _public(made, _unary(made) if count == 1 else _binary(made))
    call.__name__ = call.__qualname__ = name
    call.__doc__ = doc
    return call


def operator_of(function: Any) -> Any:
    """Return an op of two as Python's operator: NotImplemented for what is neither tensor nor number."""
    call = _binary(function.op, operator=True)
    call.op = function.op  # type: ignore[attr-defined]
    function.op.callers.append(call)
    call.__name__ = call.__qualname__ = function.__name__
    call.__doc__ = function.__doc__
    return call


def _public(made: Op, call: Any) -> Any:
    call.op = made
    made.caller = call
    made.callers.append(call)
    return call


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.strip("_").split("_"))


# Calling: what `caller` writes, and the two hot ones ------------------------------------------------


def several_outputs(made: Op, values: tuple[Any, ...], result: Any, state: Any, key: Any, edges: Any) -> Any:
    """Wrap and record what a kernel returned: the outputs, if there are several, and residuals.

    Args:
        made: the op.
        values: the arguments.
        result: what the kernel returned.
        state: this thread's.
        key: see `Op.plan_of`.
        edges: the inputs' edges; None if nothing is to be recorded.
    """
    hidden, several = len(made.residuals), made.outputs != 1
    results = result if hidden or several else (result,)
    count = len(results) - hidden
    arrays, tensors = [], []
    inference, view = state.inference, made.view
    for array in results[:count] if hidden else results:
        if type(array) is not ndarray:
            array = as_array(array)
        arrays.append(array)
        each: Tensor = _new(Tensor)
        each._array = array
        each._grad = each._view = each._hooks = each._accumulator = each._edge = None
        each._requires_grad = False
        each._cell = None if inference else [0]
        if view:
            make_view(each, values[0], state, SEVERAL if several else USUAL)
        tensors.append(each)
    if edges is not None:
        node: Any = None
        residuals = tuple([as_array(each) for each in results[count:]]) if hidden else ()
        nondiff = made.nondiff
        for number, each in enumerate(tensors):
            if arrays[number].dtype.kind in FLOATS and number not in nondiff:
                if node is None:
                    node = made.node(key, edges, values, tuple(arrays), tensors[0]._cell, residuals)
                each._edge, each._requires_grad = (node, number), True
                made.last = number
    if made.result is not None:
        return made.result(tensors)
    return tuple(tensors) if several else tensors[0]


def _unary(made: Op) -> Callable[[Any], Any]:
    def of_many(array: Any) -> Any:
        # (A kernel that refuses some dtypes, none of floating point, names its ufunc.)
        return parallel.blockwise(getattr(kernel, "ufunc", kernel) if array.dtype.kind == "f" else kernel, array)

    kernel, floating, node_class = made.kernel, made.floating, made.node_class
    plan = made._plan((True,), (True,)) if made.wants else None

    def call(input: Any) -> Any:
        x, state = input, local.state
        if state.modes is not None:
            return dispatch(made, call, (x,), {})
        if type(x) is not Tensor and not isinstance(x, Tensor):
            made.refuse(x, 0)
        array = x._array
        dtype = array.dtype
        if floating and dtype is not _F32 and dtype.kind not in FLOATS:
            array = array.astype(dtypes.get_default_dtype().numpy)
        try:
            array = kernel(array) if array.size < LARGE else of_many(array)
        except TypeError as error:
            raise translated(made, (x,), error) from None
        if type(array) is not ndarray:
            array = as_array(array)
        out: Tensor = _new(Tensor)
        out._array = array
        out._grad = out._view = out._hooks = out._accumulator = None
        if state.grad:
            out._cell = [0]
            if x._view is not None:
                refresh(x)
            dtype = array.dtype
            if x._requires_grad and plan is not None and (dtype is _F32 or dtype.kind in FLOATS):
                node: Any = node_class()
                node.edges = (x._edge or leaf_edge(x),)
                node.plan = plan
                node.hooks = None
                node.number = next(numbers)
                node.shape = array.shape
                node.dtype = dtype
                try:
                    node.saved = (plan.keep or plan.keeper())((x,), (array,), out._cell)
                except TypeError:
                    raise RuntimeError(INFERENCE_NOT_SAVED) from None
                out._edge = (node, 0)
                out._requires_grad = True
                return out
        else:
            out._cell = None if state.inference else [0]
        out._edge = None
        out._requires_grad = False
        return out

    return call


def _binary(made: Op, operator: bool = False) -> Callable[..., Any]:
    kernel, floating, node_class = made.kernel, made.floating, made.node_class
    differentiable, elementwise, of_floats = bool(made.wants), made.elementwise, made.of_floats
    quick = kernel in (np.add, np.subtract, np.multiply, np.true_divide)
    plan_both = made._plan((True, True), (True, True))
    plan_x_of_two, plan_y_of_two = (made._plan(needs, (True, True)) for needs in ((True, False), (False, True)))
    plan_x = made._plan((True, False), (True, False))  # x with a number
    plan_y = made._plan((False, True), (False, True))  # a number with y

    def call(input: Any, other: Any) -> Any:
        x, y, state = input, other, local.state
        try:
            if state.modes is not None:
                return dispatch(made, made.caller if operator else call, (x, y), {})
            x_is_tensor = type(x) is Tensor or isinstance(x, Tensor)
            y_is_tensor = type(y) is Tensor or isinstance(y, Tensor)
            if x_is_tensor:
                a = x._array
                kind = a.dtype
                if y_is_tensor:
                    b = y._array
                    if kind is not b.dtype or (floating and kind is not _F32 and kind is not _F64):
                        a, b = promoted(made, x, y)
                elif (kind is _F32 or kind is _F64) and (type(y) is float or type(y) is int):
                    b = number(y, kind) if y and quick else y
                else:
                    a, b = promoted(made, x, y)
            else:
                a, b = promoted(made, x, y)
        except TypeError:
            if first_contact((x, y), {}):
                return getattr(Tensor, made.name)(x, y)
            if operator:  # Python asks the other operand
                return NotImplemented
            raise
        try:
            if of_floats is not None and x_is_tensor and kind is _F32:
                array = of_floats(a, b)
            elif elementwise and (a.size if x_is_tensor else b.size) >= LARGE:
                array = parallel.blockwise(kernel, a, b)
            else:
                array = kernel(a, b)
        except (ValueError, TypeError) as error:
            raise translated(made, (x, y), error) from None
        if type(array) is not ndarray:
            array = as_array(array)
        out: Tensor = _new(Tensor)
        out._array = array
        out._grad = out._view = out._hooks = out._accumulator = None
        if not (state.grad and differentiable):
            out._cell = None if state.inference else [0]
            out._edge = None
            out._requires_grad = False
            return out
        out._cell = [0]
        ex = ey = None
        if x_is_tensor:
            if x._view is not None:
                refresh(x)
            if x._requires_grad:
                ex = x._edge or leaf_edge(x)
        if y_is_tensor:
            if y._view is not None:
                refresh(y)
            if y._requires_grad:
                ey = y._edge or leaf_edge(y)
        if ex is None:
            plan = None if ey is None else plan_y_of_two if x_is_tensor else plan_y
        elif ey is None:
            plan = plan_x_of_two if y_is_tensor else plan_x
        else:
            plan = plan_both
        dtype = array.dtype
        if plan is None or (dtype is not _F32 and dtype.kind not in FLOATS):
            out._edge = None
            out._requires_grad = False
            return out
        node: Any = node_class()
        node.edges = (ex, ey)
        node.plan = plan
        node.hooks = None
        node.number = next(numbers)
        node.shape = array.shape
        node.dtype = dtype
        sources = plan.sources
        if sources == _BOTH and x._cell is not None and y._cell is not None:
            node.saved = ((y, y._cell[0]), (x, x._cell[0]))
        elif not sources:
            node.saved = ()
        else:
            try:
                node.saved = (plan.keep or plan.keeper())((x, y), (array,), out._cell)
            except TypeError:
                raise RuntimeError(INFERENCE_NOT_SAVED) from None
        out._edge = (node, 0)
        out._requires_grad = True
        return out

    return call


def first_contact(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return whether operands have a say (`__torch_function__`), and were not asked so far: `ops/overrides` knows."""
    raise NotImplementedError


_PLAIN_NUMBERS = frozenset((float, int, bool))


def promoted(made: Op, x: Any, y: Any) -> tuple[Any, Any]:
    """Return the operands as what the ufunc takes: arrays of PyTorch's result dtype, or a Python number left as it is.

    NumPy's weak promotion of Python numbers is PyTorch's as long as the number's category is not the higher one.
    """
    if made.name == "sub":
        refuse_booleans(x, y)
    if not made.in_float32:
        if isinstance(x, Tensor) and not isinstance(y, Tensor):
            kind = x._array.dtype.kind
            if kind == "f" and type(y) in _PLAIN_NUMBERS:  # (NumPy would widen bfloat16)
                return x._array, y
            if type(y) is int and x._array.dtype is _I64 and not made.floating and -(2**63) <= y < 2**63:
                return x._array, y
        elif isinstance(y, Tensor) and not isinstance(x, Tensor):
            kind = y._array.dtype.kind
            if kind == "f" and type(x) in _PLAIN_NUMBERS:
                return x, y._array
    x, y = (
        each if isinstance(each, (Tensor, np.ndarray, *NUMBERS)) else made.adopted(each, k)
        for k, each in enumerate((x, y))
    )
    operands = []
    for each in (x, y):
        if isinstance(each, Tensor):
            operands.append((each.dtype, 2 if each._array.ndim else 1))
        elif isinstance(each, np.ndarray):
            operands.append((dtypes.from_numpy_dtype(each.dtype), 2 if each.ndim else 1))
        else:
            operands.append((dtypes.of_number(each), 0))
    target = dtypes.result_dtype(*operands)
    if made.floating and not target.is_floating_point:
        target = dtypes.get_default_dtype()
    numpy_dtype = target.numpy
    if (
        made.in_float32
        and numpy_dtype.itemsize == 2
        and target.is_floating_point
        and not (isinstance(y, Tensor) and y._array.ndim)
    ):
        wide = made.kernel(_cast(x, _F32), _cast(y, _F32))
        return wide.astype(numpy_dtype), np.ones((), numpy_dtype)  # the result, and what leaves it as it is
    return _cast(x, numpy_dtype), _cast(y, numpy_dtype)


def refuse_booleans(x: Any, y: Any) -> None:
    """Raise PyTorch's error if one operand of a subtraction is boolean."""
    booleans = [
        each._array.dtype.kind == "b" if isinstance(each, Tensor) else isinstance(each, bool) for each in (x, y)
    ]
    if all(booleans):
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` "
            "operator instead."
        )
    if any(booleans):
        raise RuntimeError(
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, "
            "use the `~` or `logical_not()` operator instead."
        )


def _cast(x: Any, numpy_dtype: Any) -> Any:
    if isinstance(x, Tensor):
        return x._array.astype(numpy_dtype, copy=False)
    if isinstance(x, np.ndarray):
        return x.astype(numpy_dtype, copy=False)
    return np.asarray(x).astype(numpy_dtype)  # a number: wraps as in C, as PyTorch's scalars do


def translated(made: Op, values: tuple[Any, ...], error: Exception) -> Exception:
    """Return NumPy's error in PyTorch's class and words (errors that are PyTorch's already come back unchanged)."""
    text = str(error)
    if isinstance(error, ValueError) and ("broadcast" in text):
        shapes = [value._array.shape for value in values if isinstance(value, Tensor)]
        return RuntimeError(_broadcast_error(made.name, shapes))
    if isinstance(error, TypeError) and ("ufunc" in text or "numpy boolean" in text):
        kinds = {value.dtype.tensor_name for value in values if isinstance(value, Tensor)}
        if made.name == "sub":
            refuse_booleans(*values)
        return RuntimeError(f'"{made.name}" not implemented for {" and ".join(sorted(map(repr, kinds)))}')
    return error


def _broadcast_error(name: str, shapes: list[tuple[int, ...]]) -> str:
    if len(shapes) == 2:
        a, b = shapes
        for back in range(1, min(len(a), len(b)) + 1):
            if a[-back] != b[-back] and 1 not in (a[-back], b[-back]):
                dim = max(len(a), len(b)) - back
                return (
                    f"The size of tensor a ({a[-back]}) must match the size of tensor b ({b[-back]}) at "
                    f"non-singleton dimension {dim} ({name} of shapes {list(a)} and {list(b)})"
                )
    return f"{name}: shapes {', '.join(str(list(shape)) for shape in shapes)} cannot be broadcast together"
