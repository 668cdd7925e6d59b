"""The call of an op: one template, from which the function of Tensors of each op is generated (`Caller`).

The function binds its arguments, passes the call to the modes, unwraps the tensors, calls the kernel, wraps the result
and records a node. One function for all ops would test in each call which kind of op it runs, and take 1.5 times as
long; so source is generated from the template when an op is declared, and ops with the same facts share the compiled
source ("text"). In it the arguments are `a0`, `a1`, ..., and names in capitals belong to the op. The text for an op of
one tensor and a number, `scaled(x, factor=2)`, abridged:

    def call(a0=None, a1=None, *args, **kwargs):
        state = local.state
        if state.modes is not None:
            return dispatch(OP, THIS.function, *OP.given((a0, a1,), args, kwargs))
        if args or kwargs or a0 is MISSING:
            a0, a1, = OP.bound((a0, a1,), args, kwargs)      # PyTorch's or NumPy's argument names, or an error
        if type(a0) is not Tensor:
            if not isinstance(a0, Tensor):
                a0 = OP.adopted(a0, 0)                       # PyTorch's tensor, or an error
            if a0._receives is not None:                     # a class that computes some calls in its own way
                received = a0._receives(OP.name, THIS.function, (a0, a1,), {})
                if received is not NotImplemented:
                    return received
        if a0._array.dtype is not F32 and a0._array.dtype not in ACCEPTED:
            OP.refuse_dtypes((a0._array, a1,))
        array = KERNEL(a0._array, a1)
        out = new(Tensor)                                    # and the initial values of its slots
        if state.grad:
            if a0._view is not None:
                refresh(a0)
            if a0._requires_grad:
                node = NODE()                                # and its edges, plan, number, shape and dtype
                node.saved = plan.keep(a0, a1, array, out._cell, ())
                out._edge, out._requires_grad = (node, 0), True
        return out

All forms of a call (`CALL`, `OPERATOR`, `IN_PLACE`, `WRITING`) are generated from this template, as is the witnessed
function (`Caller.witnessed`), which reports to a mode what was computed: the op, the arrays in, the arrays out.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from tinytorch.core import inplace
from tinytorch.core.complex import HOLOMORPHIC
from tinytorch.core.declaration import MISSING, NUMBERS, Op
from tinytorch.core.graph import FREES_BY_RECURSION, add_tail, leaf_edge, numbers
from tinytorch.core.mode import dispatch, function_modes, local, plain, runs
from tinytorch.core.node import INFERENCE_NOT_SAVED, INPUT, Plan
from tinytorch.core.notes import leave
from tinytorch.core.supplied import layouts, native, overriding
from tinytorch.core.tensor import Tensor, new_tensor_text
from tinytorch.core.view import SEVERAL, USUAL, count_write, expanded, make_view, refresh, shared_places
from tinytorch.kernels import dtypes, parallel, silence
from tinytorch.kernels.checks import exceeds_dimensions, too_many_dimensions
from tinytorch.kernels.dtypes import DIFFERENTIABLE, FLOATS, get_default_dtype, number
from tinytorch.kernels.meta import MetaArray, NoData, NotCopied, is_meta, on_zeros
from tinytorch.kernels.programs import as_array

_F32, _F64, _I64 = np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.int64)
_PLAIN_NUMBERS = frozenset((float, int, bool))
#: Ufuncs that are faster with a 0-d array than with a Python number.
_QUICK = (np.add, np.subtract, np.multiply, np.true_divide)

#: The forms of a call: out of place; Python's operator (NotImplemented for operands of other types); the in-place form
#: that is derived from an op; and the in-place form of an op whose kernel writes into its first argument.
CALL, OPERATOR, IN_PLACE, WRITING = "call", "operator", "in place", "writing"


class Facts(NamedTuple):
    """The properties of an op that the text of its call depends on: ops with the same facts share a text.

    Attributes:
        form: the form of the call (`CALL`, ...); `witnessed` if it reports to the witness.
        arguments: the number of the op's arguments; `positional` is the number of those that are not keyword-only.
        keywords: the names of the keyword-only arguments.
        incomplete: the position of the last argument without a default, or None.
        inputs: the positions of the tensors among the arguments; `many` if the only one is a sequence of tensors.
        constant: per input, whether it has no gradient.
        records: whether the result may require grad.
        outputs, residuals: how many arrays the kernel returns (0 outputs: any number).
        overload: the position of the argument that decides the name of the node, or None.
        direct: for which arrays the kernel is first called directly (`kernels/native`): of floats, always, or never.
        quick: whether the kernel gets a 0-d array for a Python number, because it is faster so or takes no numbers.
        laid: whether the order of the result's dimensions in memory is PyTorch's for elementwise functions.
        saved: the expression of the saved values: of an op of one tensor; of two operands that both need a gradient,
            where it is a common one.
        holds_first: whether formulas of a write use the first argument, so that a copy of its old elements is saved.
        holomorphic: whether the formulas are others for complex gradients.
        Others: as in `Op`; for attributes that are functions, whether the op has one.
    """

    form: str
    witnessed: bool
    arguments: int
    positional: int
    keywords: tuple[str, ...]
    incomplete: int | None
    inputs: tuple[int, ...]
    many: bool
    joint: bool
    constant: tuple[bool, ...]
    records: bool
    outputs: int
    residuals: int
    result: bool
    view: bool
    overload: int | None
    operands: int
    elementwise: bool
    laid: bool
    floating: bool
    of_floats: bool
    is_ufunc: bool
    direct: str
    quick: bool
    selects: bool
    holds_first: bool
    holomorphic: bool
    saved: str | None


#: The commonest sources of two operands that both need a gradient.
_COMMON = ((), ((INPUT, 1), (INPUT, 0)))


def _plan(op: Op) -> Plan:
    """Return the plan of a call all of whose inputs are tensors that need a gradient."""
    all_inputs = (True,) * len(op.inputs)
    return op._plan(all_inputs, all_inputs)


def _of_arrays(op: Op) -> Any:
    """Return the twin or the ufunc of an op, if it has one; a kernel around it refuses dtypes other than floats."""
    return op.of_floats or getattr(op.kernel, "ufunc", op.kernel)


def _facts(op: Op, form: str, witnessed: bool) -> Facts:
    """Return the facts of an op for a form of call; facts that the text does not depend on are left empty."""
    operands = op.operands
    facts: dict[str, Any] = dict.fromkeys(Facts._fields, False)
    facts |= {"form": form, "witnessed": witnessed, "laid": op.laid and form in (CALL, OPERATOR)}
    facts |= {"selects": op.selects, "operands": operands, "holomorphic": op.complex == HOLOMORPHIC}
    facts |= {"residuals": len(op.residuals), "arguments": operands, "inputs": (), "constant": (), "keywords": ()}
    facts |= {
        "incomplete": None,
        "overload": None,
        "outputs": 1,
        "saved": None,
        "floating": bool(operands) and op.floating,
    }
    if operands == 2:
        facts |= {"elementwise": op.elementwise, "of_floats": op.of_floats is not None}
        facts["quick"] = op.kernel in _QUICK or not op.numbers
        facts["is_ufunc"] = form == IN_PLACE and isinstance(op.kernel, np.ufunc)
    if form == IN_PLACE:
        first = op.arguments[op.inputs[0]]
        facts["holds_first"] = any(first in names for names in op.wants.values())
    elif form != WRITING:
        if native.direct(_of_arrays(op)) is not None:
            facts["direct"] = "of floats" if hasattr(op.kernel, "ufunc") else "always"
        several = op.outputs != 1 or bool(op.residuals or op.result)
        facts |= {
            "arguments": len(op.arguments),
            "positional": op.positional,
            "keywords": op.arguments[op.positional :],
        }
        facts |= {"inputs": op.inputs, "many": op.many is not None, "view": op.view, "outputs": op.outputs}
        facts |= {"records": bool(op.wants) and (several or 0 not in op.nondiff), "result": op.result is not None}
        if op.required and not operands:
            facts["incomplete"] = op.required[-1]
        one = len(op.inputs) == 1 and not (several or op.many or op.joint)
        if facts["records"] and (one or operands == 2):
            plan = _plan(op)
            if one or tuple(plan.sources) in _COMMON:
                facts["saved"] = plan.text(len(op.arguments), "array", "out._cell")
        if op.overload is not None:
            facts["overload"] = op.overload[0]
        if several or len(op.inputs) > 1:
            facts |= {"joint": op.joint is not None, "constant": () if operands else tuple(op._constant)}
    return Facts(**facts)


class Caller:
    """A function of Tensors that is generated for an op.

    Attributes:
        op: the op.
        form: the form of the call (`CALL`, ...).
        function: the function, or one that generates it when it is first called.
        scope: further objects that the text names, for a `WRITING` call: see `writing` in `ops/writing.py`.
    """

    def __init__(self, op: Op, form: str, **scope: Any) -> None:
        self.op, self.form, self.scope = op, form, scope
        self._generated: Any = None
        self._witnessed: Any = None
        # To compile a text takes 0.3 ms. Ops of operands and of one tensor share few texts; the functions of other ops
        # are generated at the first call.
        one = len(op.inputs) == 1 and op.outputs == 1 and not (op.many or op.joint or op.residuals or op.result)
        self.function: Any = self.generated if op.operands or (one and form == CALL) else self._waiting()
        self.function.op, self.function.caller, self.function.writes = op, self, self.writes

    @property
    def writes(self) -> bool:
        """Whether the function writes into its first argument."""
        return self.form in (IN_PLACE, WRITING)

    @property
    def generated(self) -> Any:
        """The function that the template makes."""
        if self._generated is None:
            self._generated = self._generate(witnessed=False)
        return self._generated

    def _waiting(self) -> Any:
        """Return a function that generates the function when it is first called."""
        function: Any = None

        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal function
            if function is None:
                function = self.generated
            return function(*args, **kwargs)

        def write(input: Any, *args: Any, **kwargs: Any) -> Any:
            return call(input, *args, **kwargs)

        return write if self.writes else call

    @property
    def witnessed(self) -> Any:
        """The same function, but it reports to `local.state.witness` what it computes: see `DispatchMode.computed`."""
        if self._witnessed is None:
            self._witnessed = self._generate(witnessed=True)
        return self._witnessed

    def _generate(self, witnessed: bool) -> Any:
        """Return a new function, generated from the template."""
        op = self.op
        facts = _facts(op, self.form, witnessed)
        factory = _factories.get(facts)
        if factory is None:
            text = _Text(facts).text()
            factory = _factories[facts] = _texts.get(text) or _compiled(text)
        overload = None if op.overload is None else op.overload[1]
        kernels = op.kernel, native.direct(_of_arrays(op)), getattr(op.kernel, "ufunc", op.kernel), op.of_floats
        plan = _plan(op) if facts.saved is not None else None
        scope = self.scope
        template = factory(
            op, self, *kernels, op.accepted, op.node_class, overload, op.plans, plan, op.result,
            scope.get("WRITE"), scope.get("REPEATS"), scope.get("READS"),
            layouts.settled, layouts.ordered, layouts.arranged,
        )  # fmt: skip
        # Give the arguments their own names.
        names = ("input", "other")[: op.operands] if op.operands else op.arguments
        if self.writes:
            names = ("input",)
        code = template.__code__
        code = code.replace(co_varnames=(*names, *code.co_varnames[len(names) :]))
        defaults = None if self.writes or op.operands else op.defaults[: op.positional]
        call: Any = FunctionType(code, template.__globals__, op.name, defaults, template.__closure__)
        if defaults is not None and op.positional < len(names):
            call.__kwdefaults__ = dict(zip(names[op.positional :], op.defaults[op.positional :], strict=True))
        return call


_NAMES = (
    "OP THIS KERNEL DIRECT UFUNC OF_FLOATS ACCEPTED NODE OVERLOAD PLANS PLAN RESULT WRITE REPEATS READS SETTLED "
    "ORDERED ARRANGED"
)
_factories: dict[Facts, Callable[..., Any]] = {}
_HERE = __file__.removesuffix("call.py")
_texts: dict[str, Callable[..., Any]] = {}


def _compiled(text: str) -> Callable[..., Any]:
    """Compile a text and return its function `factory`, which returns the function `call` for an op."""
    file = f"{_HERE}<call of ops {len(_texts)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)  # for tracebacks and debuggers
    scope: dict[str, Any] = {}
    exec(compile(text, file, "exec"), _SCOPE, scope)
    factory: Callable[..., Any] = scope["factory"]
    _texts[text] = factory
    return factory


def _unusual(kind: str) -> str:
    """Return the expression of whether the kernel may not compute with a dtype: most tensors are of float32."""
    return f"{kind} is not F32 and {kind} not in ACCEPTED"


class _Text:
    """Generates the text for given facts.

    Attributes:
        a: the expressions of the arguments.
        arrays: the expressions of their arrays, or of arguments that are not tensors.
        values: the expression of a tuple of all arguments.
        several: whether the kernel returns several outputs, or residuals.
        one: whether the op has one tensor and one output, as most ops do.
        first: the expression of the first tensor among the arguments.
    """

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.lines: list[str] = [f"def factory({', '.join(_NAMES.split())}):"]
        self.a = [f"a{i}" for i in range(facts.arguments)]
        self.arrays = list(self.a)
        self.values = f"({', '.join(self.a)},)"
        self.several = facts.outputs != 1 or bool(facts.residuals or facts.result)
        self.one = len(facts.inputs) == 1 and not (self.several or facts.many or facts.joint)
        self.first = self.a[facts.inputs[0]] if facts.inputs else "a0"

    def put(self, indent: int, *lines: str) -> None:
        """Add lines to the body of the function."""
        for text in lines:
            self.lines.extend([" " * 4 * (indent + 2) + line for line in text.split("\n")])

    def text(self) -> str:
        """Return the text."""
        if self.facts.form in (IN_PLACE, WRITING):
            self.values = "values"
            self.bind_write()
            (self.compute_in_place if self.facts.form == IN_PLACE else self.compute_by_writing)()
            self.record_write()
        else:
            (self.bind_operands if self.facts.operands else self.bind)()
            self.unwrap_and_compute()
            (self.wrap_several if self.several else self.wrap)()
        self.catch()
        self.lines.append("    return call")
        return "\n".join(self.lines)

    def catch(self) -> None:
        """Put the body into a `try`, which is free: an error that leaves the package gets its notes."""
        start = next(k for k, line in enumerate(self.lines) if line.startswith("    def call(")) + 1
        self.lines[start:] = ["        try:", *["    " + line for line in self.lines[start:]]]
        if self.facts.form in (IN_PLACE, WRITING):
            arguments = "a0, *args, **kwargs"
        else:
            count = self.facts.arguments if self.facts.operands else self.facts.positional
            named = zip(self.facts.keywords, self.a[count:], strict=True)
            arguments = ", ".join([*self.a[:count], *[f"{name}={x}" for name, x in named]])
        again = f"THIS.{'witnessed' if self.facts.witnessed else 'function'}({arguments})"
        self.put(0, "except Exception as error:\n    if silence.is_entered(state.quietly, error):")
        self.put(2, "state.quietly = silence.runner()", f"return {again}")
        self.put(1, "leave()", "raise")

    def tell(self, method: str, argument: str) -> None:
        """Add a call of a method of the witness, if the function is witnessed."""
        if self.facts.witnessed:
            self.put(0, f"state.witness.{method}(OP, {self.values}, {self.tuple_of_arrays()}, {argument})")

    def tuple_of_arrays(self) -> str:
        """Return the expression of a tuple of the kernel's arguments."""
        return f"({', '.join(self.arrays)},)" if self.arrays else "arrays"

    # Bind -----------------------------------------------------------------------------------------

    def bind_operands(self) -> None:
        """Bind the operands of a ufunc: by position, or by the names `input` and `other`."""
        this = "OP.caller" if self.facts.form == OPERATOR else "THIS.function"
        self.lines.append(f"    def call({', '.join(self.a)}):")
        self.put(0, "state = local.state")
        if self.facts.form == OPERATOR:
            self.ask()
        self.put(0, "if state.modes is not None:")
        self.trying(1, f"return dispatch(OP, {this}, {self.values}, {{}})")

    def ask(self) -> None:
        """Let a mode, or an operand's class, override the operator by `__torch_function__`."""
        self.put(0, "is_tensor0 = type(a0) is Tensor", "is_tensor1 = type(a1) is Tensor")
        strange = " or ".join([f"not (is_tensor{k} or type(a{k}) in plain)" for k in (0, 1)])
        self.put(0, f"if function_modes.on or {strange}:")
        self.put(1, "found = overriding.asked((a0, a1), {})", "if found is not None:")
        self.put(2, "return overriding.operator_overridden(OP.name, found, a0, a1)")

    def trying(self, indent: int, *lines: str) -> None:
        """Add lines; of an operator, the other operand may handle a TypeError in them."""
        if self.facts.form == OPERATOR and self.facts.operands == 2:
            self.put(indent, "try:")
            self.put(indent + 1, *lines)
            self.put(indent, "except TypeError:\n    return NotImplemented")
        else:
            self.put(indent, *lines)

    def bind(self) -> None:
        """Bind the arguments by the signature of the op."""
        facts, a = self.facts, self.a
        parameters = [f"{x}=None" for x in a]  # (the defaults are put in afterwards)
        parameters[facts.positional : facts.positional] = ["*args"]
        incomplete = [] if facts.incomplete is None else [f"{a[facts.incomplete]} is MISSING"]
        self.lines.append(f"    def call({', '.join(parameters)}, **kwargs):")
        self.put(0, "state = local.state", "if state.modes is not None:")
        self.put(1, f"return dispatch(OP, THIS.function, *OP.given({self.values}, args, kwargs))")
        self.put(0, f"if {' or '.join(['args', 'kwargs', *incomplete])}:")
        self.put(1, f"{self.values} = OP.bound({self.values}, args, kwargs)")

    def bind_write(self) -> None:
        """Bind the arguments of a write, and check that the first one may be written to."""
        in_place = self.facts.form == IN_PLACE
        floats = "" if in_place else " and target.dtype.kind in DIFFERENTIABLE"
        self.lines.append("    def call(a0, *args, **kwargs):")
        self.put(0, "state = local.state", "if state.modes is not None:")
        self.put(1, "return dispatch(OP, THIS.function, (a0, *args), kwargs)")
        self.put(0, "if type(a0) is not Tensor:\n    if not isinstance(a0, Tensor):\n        OP.refuse(a0, 0)")
        self.receive(1, "a0", "(a0, *args), kwargs")
        self.put(0, "target = a0._array")
        self.put(0, "if state.run is not None:\n    state.run.check(a0)")
        self.put(0, "values = OP.bind((a0, *args), kwargs)")
        self.put(0, f"edges = edges_of_write(OP, a0, values) if state.grad{floats} else None")
        if in_place:
            self.put(0, "check_operands_of_write(OP, a0, values)")
        else:
            self.put(0, "if expanded(target) and not (REPEATS and REPEATS(*values)):\n    raise shared_places()")

    # Unwrap and compute ---------------------------------------------------------------------------

    def unwrap_and_compute(self) -> None:
        """Set `array` to what the kernel returns."""
        facts = self.facts
        if facts.operands == 2:
            self.unwrap_operands()
            self.compute_operands()
        elif facts.operands == 1:
            self.unwrap_operand()
            self.compute_operand()
        else:
            self.unwrap()
            by_name = [f"{x}={array}" for x, array in zip(facts.keywords, self.arrays[facts.positional :], strict=True)]
            if self.one:
                self.refuse_dtypes(f"{self.arrays[facts.inputs[0]]}.dtype")
            elif not facts.many and facts.inputs:
                self.refuse_dtypes(*[f"array{k}.dtype" for k in range(len(facts.inputs))], given="is_tensor")
            elif facts.many and facts.selects:
                self.put(0, "if not ACCEPTED.issuperset([x.dtype for x in arrays0]):")
                self.put(1, f"OP.refuse_dtypes({self.tuple_of_arrays()})")
            self.put(0, "try:")
            self.compute(1, *self.arrays[: facts.positional], *by_name)
            self.translate()

    def compute(self, indent: int, *arguments: str) -> None:
        """Set `array` to what the kernel returns for the arguments; a kernel that returns a view computes nothing."""
        call = ", ".join(arguments)
        if self.facts.direct:
            others = " if x.dtype.kind == 'f' else NotImplemented" if self.facts.direct == "of floats" else ""
            kernel = "OF_FLOATS if is_tensor0 and kind is F32 else KERNEL" if self.facts.of_floats else "KERNEL"
            self.put(indent, f"array = DIRECT({call}){others}")
            self.put(indent, f"if array is NotImplemented:\n    array = state.quietly({kernel}, {call})")
        else:
            self.put(indent, f"array = KERNEL({call})" if self.facts.view else f"array = state.quietly(KERNEL, {call})")

    def refuse_dtypes(self, *kinds: str, given: str = "") -> None:
        """Refuse dtypes that the kernel does not compute with.

        Args:
            kinds: the expressions of the tensors' dtypes.
            given: the name, without its number, of the variable that says whether an argument is a tensor.
        """
        if self.facts.selects:
            each = [f"{given}{k} and {_unusual(kind)}" if given else _unusual(kind) for k, kind in enumerate(kinds)]
            self.put(0, f"if {' or '.join(each)}:\n    OP.refuse_dtypes({self.tuple_of_arrays()})")

    def translate(self) -> None:
        """Convert NumPy's errors to PyTorch's classes and messages."""
        self.put(0, "except (ValueError, TypeError, AttributeError) as error:")
        self.put(1, f"raise translated(OP, {self.values}, error) from None")
        self.without_data()

    def without_data(self) -> None:
        """Call the kernel on zeros, if it reads elements of arrays without data."""
        facts = self.facts
        if facts.form == WRITING:
            self.put(0, "except NoData:\n    if not is_meta(arrays[0]):\n        raise")
        else:
            arrays = "arrays" if facts.form == IN_PLACE and not facts.operands else self.tuple_of_arrays()
            self.put(0, f"except NoData:\n    array = without_data(OP, {arrays})")

    def unwrap_operand(self) -> None:
        """Set `x` to the array of the operand of a unary ufunc."""
        self.adopt("a0", 0)
        self.put(0, "x = a0._array")
        self.arrays = ["x"]
        if self.facts.floating or self.facts.selects:
            self.put(0, "kind = x.dtype")
        self.refuse_dtypes("kind")
        if self.facts.floating:
            self.put(0, "if kind is not F32 and kind.kind not in DIFFERENTIABLE:")
            self.put(1, "x = x.astype(get_default_dtype().numpy)")

    def compute_operand(self) -> None:
        """Compute a ufunc of one operand; large arrays are shared among threads."""
        self.put(0, "try:\n    if x.size < parallel.LARGE:")
        self.compute(2, "x")
        self.put(1, "else:\n    kernel = UFUNC if x.dtype.kind == 'f' else KERNEL")
        self.put(2, "array = state.quietly(parallel.blockwise, kernel, x)")
        self.put(0, f"except TypeError as error:\n    raise translated(OP, {self.values}, error) from None")
        self.without_data()

    def unwrap_operands(self) -> None:
        """Set `x` and `y` to the operands of a binary ufunc: arrays of one dtype, or a number."""
        differ = "kind is not y.dtype"
        if self.facts.floating:
            differ += " or (kind is not F32 and kind is not F64)"
        elif self.facts.selects:
            differ += f" or ({_unusual('kind')})"
        promote = "x, y = promoted(OP, a0, a1)"
        self.look(0, "a0")
        self.look(1, "a1")
        self.trying(
            0, "if is_tensor0:", "    x = a0._array", "    kind = x.dtype",
            f"    if is_tensor1:\n        y = a1._array\n        if {differ}:\n            {promote}",
            "    elif (kind is F32 or kind is F64) and (type(a1) is float or type(a1) is int):",
            f"        y = {'number(a1, kind) if a1 else np.asarray(a1, kind)' if self.facts.quick else 'a1'}",
            f"    else:\n        {promote}",
            f"else:\n    {promote}",
        )  # fmt: skip
        self.arrays = ["x", "y"]

    def compute_operands(self) -> None:
        """Compute a ufunc of two operands."""
        self.put(0, "try:")
        indent = 1
        if self.facts.elementwise:  # (the kernel for float32 has threads)
            small = "(x if is_tensor0 else y).size < parallel.LARGE"
            self.put(1, f"if {'is_tensor0 and kind is F32 or ' if self.facts.of_floats else ''}{small}:")
            indent = 2
        self.compute(indent, "x", "y")
        if self.facts.elementwise:
            shared = "ORDERED" if self.facts.laid and not self.facts.witnessed else "parallel.blockwise"
            self.put(1, f"else:\n    array = state.quietly({shared}, KERNEL, x, y)")
        self.translate()

    def operands(self) -> str:
        """Return the expressions of the operands of an elementwise op, not of copies of them in another dtype."""
        if self.facts.operands == 2:
            return "a0._array if is_tensor0 else a0, a1._array if is_tensor1 else a1"
        return "a0._array" if self.facts.operands else ", ".join(self.arrays)

    def unwrap(self) -> None:
        """Unwrap the tensors among the arguments."""
        for k, i in enumerate(self.facts.inputs):
            x = self.a[i]
            self.arrays[i] = f"{x}._array" if self.one else f"array{k}"
            if self.one:
                self.adopt(x, i)
            elif self.facts.many:
                self.arrays[i] = "arrays0"
                self.put(0, f"try:\n    arrays0 = [x._array for x in {x}]")
                self.put(0, f"except AttributeError:\n    arrays0 = OP.elements({x}, {i})")
            else:
                self.look(k, x)
                self.put(0, f"if is_tensor{k}:\n    array{k} = {x}._array\nelse:")
                self.put(1, f"array{k} = {x} if {x} is None or type({x}) in PLAIN_NUMBERS else OP.checked({x}, {i})")

    def adopt(self, x: str, i: int) -> None:
        """Make sure that argument `i`, whose expression is `x`, is an ordinary tensor."""
        self.put(0, f"if type({x}) is not Tensor:\n    if not isinstance({x}, Tensor):")
        self.put(2, f"{x} = OP.adopted({x}, {i})")
        self.receive(1, x, self.call_of_this())

    def look(self, k: int, x: str) -> None:
        """Set `is_tensor{k}`: whether the argument `x` is a tensor."""
        if self.facts.form != OPERATOR:
            self.put(0, f"is_tensor{k} = type({x}) is Tensor")
        self.put(0, f"if not is_tensor{k}:\n    is_tensor{k} = isinstance({x}, Tensor)\n    if is_tensor{k}:")
        self.receive(2, x, self.call_of_this())

    def receive(self, indent: int, x: str, call: str) -> None:
        """Hand the call to the class of a tensor that is not an ordinary one, if that computes it in its own way."""
        name = "f'{OP.name}_'" if self.facts.form == IN_PLACE else "OP.name"
        self.put(indent, f"if {x}._receives is not None:")
        self.put(indent + 1, f"received = {x}._receives({name}, THIS.function, {call})")
        self.put(indent + 1, "if received is not NotImplemented:\n    return received")

    def call_of_this(self) -> str:
        """Return the expression of the positional arguments of the call, and of those by name."""
        count = self.facts.positional or self.facts.arguments
        given = "".join([f"{x}, " for x in self.a[:count]])
        named = ", ".join([f"{name!r}: {x}" for name, x in zip(self.facts.keywords, self.a[count:], strict=True)])
        return f"({given}), {{{named}}}"

    # Wrap and record ------------------------------------------------------------------------------

    def wrap(self) -> None:
        """Return the array as a tensor, with a node if it requires grad."""
        usual = f"if type(array) is not ndarray:\n    array = unusual(OP, {self.tuple_of_arrays()}, array)"
        operands = self.operands()
        if self.facts.laid and not self.facts.witnessed:
            self.put(0, f"if not SETTLED(array, {', '.join(self.arrays)}):")
            self.put(1, usual, f"array = ARRANGED(array, {operands})")
        else:
            self.put(0, usual)
            self.tell("computed", "[array]")
            if self.facts.laid:
                self.put(0, f"raw, array = array, ARRANGED(array, {operands})")
                self.put(0, f"if array is not raw:\n    state.witness.laid(raw, array, [{operands}])")
        self.put(0, *self.new_tensor("USUAL"))
        if self.facts.records:
            self.find_edges()
            self.put(1, f"if {self.needed()}:")
            self.put(2, "dtype = array.dtype", "if dtype is F32 or dtype.kind in DIFFERENTIABLE:")
            self.record()
        self.put(0, "return out")

    def wrap_several(self) -> None:
        """Return the arrays as tensors, with one node if they require grad; None (a gradient not needed) stays None."""
        facts, hidden = self.facts, self.facts.residuals
        outputs = f"results[:-{hidden}]" if hidden else "results" if facts.outputs != 1 else "(results,)"
        self.put(0, "results, outs, arrays = array, [], []", f"for array in {outputs}:")
        self.put(1, "if type(array) is not ndarray:")
        self.put(2, f"array = unusual(OP, {self.tuple_of_arrays()}, array, len(arrays))")
        self.put(2, "if array is None:\n    arrays.append(None)\n    outs.append(None)\n    continue")
        if facts.laid:
            self.put(1, f"array = ARRANGED(array, {', '.join(self.arrays)})")
        self.put(1, "arrays.append(array)")
        self.put(1, *self.new_tensor("SEVERAL" if facts.outputs != 1 else "USUAL"), "outs.append(out)")
        if hidden:
            self.put(0, f"residuals = tuple([as_array(array) for array in results[-{hidden}:]])")
        residuals = "residuals" if hidden else "()"
        self.tell("computed", f"[*arrays, *{residuals}]")
        if facts.records:
            self.find_edges()
            self.put(1, f"if {self.needed()}:\n    record_several(OP, {self.key()}, {self.edges()},")
            self.put(3, f"{self.values}, outs, tuple(arrays), {residuals})")
        if facts.result:
            self.put(0, "return RESULT(outs)")
        else:
            self.put(0, "return outs[0]" if facts.outputs == 1 else "return tuple(outs)")

    def new_tensor(self, kind: str) -> list[str]:
        """Return the statements that create the tensor `out`; for a view op it is a view of the given kind."""
        if self.facts.view:
            return [new_tensor_text("out", _cell="None"), f"make_view(out, {self.first}, state, {kind})"]
        return [new_tensor_text("out")]

    def find_edges(self) -> None:
        """Find the edges of the inputs that need a gradient, after `if state.grad`."""
        facts = self.facts
        self.put(0, "if state.grad:")
        if self.one:
            self.put(1, self.refreshed(self.first))
        elif facts.many:
            self.put(1, f"edges = []\nfor x in {self.first}:")
            self.put(2, self.refreshed("x"), f"edges.append({self.edge('x')} if x._requires_grad else None)")
        else:
            edges = " = ".join([f"edge{k}" for k in range(len(facts.inputs))])
            self.put(1, f"{edges} = None" if facts.operands else f"key = 0\n{edges} = None")
            for k, i in enumerate(facts.inputs):
                x = self.a[i]
                self.put(1, f"if is_tensor{k}:")
                if not facts.operands:
                    self.put(2, f"key |= {256 << k}")
                self.put(2, self.refreshed(x))
                if facts.operands or not facts.constant[k]:
                    self.put(2, f"if {x}._requires_grad:\n    edge{k} = {self.edge(x)}")
                    if not facts.operands:
                        self.put(3, f"key |= {1 << k}")

    def needed(self) -> str:
        """Return the condition that some input needs a gradient."""
        if self.one:
            return f"{self.first}._requires_grad"
        if self.facts.many:
            return "any(edges)"
        return "edge0 is not None or edge1 is not None" if self.facts.operands else "key & 255"

    def edges(self) -> str:
        """Return the expression of the inputs' edges."""
        if self.one:
            return f"({self.edge(self.first)},)"
        if self.facts.many:
            return "tuple(edges)"
        return f"({', '.join([f'edge{k}' for k in range(len(self.facts.inputs))])},)"

    def key(self) -> str:
        """Return the expression of the key of the plan (see `Op.plan_of`)."""
        return "257" if self.one else "None" if self.facts.many else "key"

    @staticmethod
    def refreshed(x: str) -> str:
        """Return the statement that brings the edge of a view up to date."""
        return f"if {x}._view is not None:\n    refresh({x})"

    @staticmethod
    def edge(x: str) -> str:
        """Return the expression of the edge of a tensor that requires grad."""
        return f"{x}._edge or leaf_edge({x})"

    def record(self) -> None:
        """Give the tensor `out` its node."""
        facts, key = self.facts, self.key()
        node = "NODE()" if facts.overload is None else f"NODE() if {self.a[facts.overload]} is None else OVERLOAD()"
        self.put(3, f"node = {node}", f"node.edges = {self.edges()}", "node.hooks = None")
        self.put(3, "node.number = next(numbers)", "node.shape = array.shape", "node.dtype = dtype")
        if FREES_BY_RECURSION:
            self.put(3, "add_tail(node)")
        self.put(3, "try:")
        indent = 4
        if self.one:
            self.put(4, "node.plan = PLAN", f"node.saved = {facts.saved}")
        elif facts.operands == 2:
            if facts.saved is not None:
                self.put(4, "if edge0 is not None and edge1 is not None:")
                self.put(5, "node.plan = PLAN", f"node.saved = {facts.saved}")
                self.put(4, "else:")
            key, indent = "key", 4 if facts.saved is None else 5
            self.put(indent, "if edge0 is None:\n    key = 770 if is_tensor0 else 514")
            self.put(indent, "elif edge1 is None:\n    key = 769 if is_tensor1 else 257\nelse:\n    key = 771")
        if not self.one:
            self.put(indent, f"node.plan = plan = PLANS.get({key}) or OP.plan_of({key})")
            self.put(indent, f"node.saved = plan.keep({', '.join(self.a)}, array, out._cell, ())")
        if facts.holomorphic:
            self.put(4, "if dtype is not F32 and dtype.kind == 'c':\n    node.plan = node.plan.conjugated()")
        self.put(3, "except TypeError:\n    raise RuntimeError(INFERENCE_NOT_SAVED) from None")
        self.put(3, "out._edge = (node, 0)", "out._requires_grad = True")

    # Writes ---------------------------------------------------------------------------------------

    def compute_in_place(self) -> None:
        """Compute the result, which is copied into the first argument later, or write it there directly."""
        facts = self.facts
        if facts.operands == 2:
            self.put(0, "a1 = values[1]")
            self.unwrap_operands()
            self.tell("writes", "None")
            if facts.is_ufunc:  # the fast path: nothing is recorded, nothing is converted
                self.put(0, "if edges is None and x is target and fits(y, target):")
                if facts.of_floats:
                    self.put(1, "if kind is F32:\n    state.quietly(OF_FLOATS, x, y, out=target)")
                self.put(1, f"{'elif' if facts.of_floats else 'if'} target.size < parallel.LARGE:")
                self.put(2, "state.quietly(KERNEL, x, y, out=target)")
                self.put(1, "else:\n    state.quietly(parallel.blockwise, KERNEL, x, y, out=target)")
                self.put(1, "count_write(a0)", "return a0")
            self.compute_operands()
        elif facts.operands == 1:
            self.unwrap_operand()
            self.tell("writes", "None")
            self.compute_operand()
        else:
            self.put(0, "arrays = OP.arrays(values)")
            self.tell_of_arrays("None")
            self.put(0, "try:\n    array = state.quietly(OP.compute, arrays)")
            self.translate()

    def compute_by_writing(self) -> None:
        """Let the kernel write into the first argument."""
        self.put(0, "arrays = arrays_of_write(OP, a0, values, READS)")
        self.tell_of_arrays("WRITE")
        self.put(0, "try:\n    state.quietly(WRITE, *arrays)")
        self.translate()

    def tell_of_arrays(self, kernel: str) -> None:
        """Refuse unsupported dtypes of `arrays`, and report the write to the witness."""
        self.arrays = []
        if self.facts.selects:
            self.put(0, "if not ACCEPTED.issuperset([x.dtype for x in arrays if type(x) is ndarray]):")
            self.put(1, "OP.refuse_dtypes(arrays)")
        self.tell("writes", kernel)

    def record_write(self) -> None:
        """Count the write and enter it in the graph."""
        before, residuals = "None", "()"
        if self.facts.form == IN_PLACE:
            if self.facts.residuals:
                self.put(0, "array, *residuals = array")
                residuals = "tuple(residuals)"
            if self.facts.holds_first:
                self.put(0, "before = None if edges is None else target.copy()")
                if self.facts.witnessed:
                    self.put(0, "if before is not None:", "    state.witness.overwrites(target, before)")
                before = "before"
            self.put(0, "check_result(array, target)", "state.quietly(np.copyto, target, array, casting='unsafe')")
        self.put(0, "count_write(a0)", "if edges is not None:")
        self.put(1, f"record_write(OP, edges, values, a0, {residuals}, {before})")
        self.put(0, "return a0")


def record_several(
    op: Op, key: Any, edges: Any, values: tuple[Any, ...], outs: list[Tensor], arrays: tuple[Any, ...], residuals: Any
) -> None:
    """Give the outputs of an op with several outputs, or with residuals, their node.

    Args:
        op: the op.
        key: see `Op.plan_of`.
        edges: the inputs' edges.
        values: the arguments.
        outs: the outputs; `arrays` are their arrays.
        residuals: the arrays that the kernel returned for the formulas.
    """
    node: Any = None
    for position, out in enumerate(outs):
        if arrays[position].dtype.kind in DIFFERENTIABLE and position not in op.nondiff:
            if node is None:
                cells = tuple([None if each is None else each._cell for each in outs])
                node = op.node(key, edges, values, arrays, cells if op.outputs != 1 else cells[0], residuals)
            out._edge, out._requires_grad = (node, position), True
            op.last = position


# Operands of two dtypes, and errors ----------------------------------------------------------------


def promoted(made: Op, x: Any, y: Any) -> tuple[Any, Any]:
    """Return the operands of a ufunc: arrays of PyTorch's result dtype, or an unchanged Python number (`made.numbers`).

    NumPy's weak promotion of Python numbers equals PyTorch's unless the number's category is the higher one.
    """
    if made.name == "sub":
        refuse_booleans(x, y)
    if not made.in_float32:
        if isinstance(x, Tensor) and not isinstance(y, Tensor):
            kind = x._array.dtype.kind
            if kind == "f" and type(y) in _PLAIN_NUMBERS:  # (NumPy would widen bfloat16)
                made.refuse_dtype(x._array.dtype)
                return x._array, _taken(made, y, x._array.dtype)
            if type(y) is int and x._array.dtype is _I64 and not made.floating and -(2**63) <= y < 2**63:
                return x._array, _taken(made, y, _I64)
        elif isinstance(y, Tensor) and not isinstance(x, Tensor):
            kind = y._array.dtype.kind
            if kind == "f" and type(x) in _PLAIN_NUMBERS:
                made.refuse_dtype(y._array.dtype)
                return _taken(made, x, y._array.dtype), y._array
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
    if made.floating and not (target.is_floating_point or target.is_complex):
        target = dtypes.get_default_dtype()
    numpy_dtype = target.numpy
    if (
        made.in_float32
        and numpy_dtype.itemsize == 2
        and target.is_floating_point
        and not (isinstance(y, Tensor) and y._array.ndim)
    ):
        narrow = _cast(x, numpy_dtype) if isinstance(x, Tensor) else x
        wide = silence.quiet(made.kernel)(_cast(narrow, _F32), _cast(y, _F32))
        return silence.cast(wide, numpy_dtype), np.ones((), numpy_dtype)  # the result, and 1, which leaves it unchanged
    arrays = _cast(x, numpy_dtype), _cast(y, numpy_dtype)
    if numpy_dtype not in made.accepted:
        made.refuse_dtypes(arrays)
    return arrays


def _taken(made: Op, value: Any, kind: Any) -> Any:
    """Return a number as the kernel takes it: as it is, or as an array."""
    return value if made.numbers else number(value, kind) if value else np.asarray(value, kind)


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


@silence.quiet
def _cast(x: Any, numpy_dtype: Any) -> Any:
    if isinstance(x, Tensor):
        return x._array.astype(numpy_dtype, copy=False)
    if isinstance(x, np.ndarray):
        return x.astype(numpy_dtype, copy=False)
    return np.asarray(x).astype(numpy_dtype)  # a number: wraps as in C, as PyTorch's scalars do


def unusual(made: Op, arrays: tuple[Any, ...], array: Any, k: int = 0) -> Any:
    """Return a result of a kernel that is not exactly an `ndarray`: a scalar of NumPy as an array.

    Of a small array without data the strides are those that the kernel gives an array of zeros, since rules of NumPy's
    functions do not tell them for dimensions of one element.

    Args:
        made: the op.
        arrays: the arguments of the kernel.
        array: the result; of several, the one with number `k`.

    Raises:
        RuntimeError: as `check_devices`.
    """
    if isinstance(array, np.generic):  # of numbers alone: with an array without data, there would be none
        return np.asarray(array)
    if type(array) is not MetaArray:
        if len(made.inputs) > 1 and type(array) is not np.ndarray:
            check_devices(made, arrays)
        return array
    inputs = check_devices(made, arrays)
    if array.size <= SMALL and all([x.size <= SMALL for x in inputs if is_meta(x)]):
        results = without_data(made, arrays)
        return results[k] if isinstance(results, (tuple, list)) else results
    return array


def check_devices(made: Op, arrays: Any) -> list[Any]:
    """Return the tensors' arrays among the arguments of a kernel.

    Raises:
        RuntimeError: a tensor on the meta device meets one on the CPU that is neither 0-d nor an index of it.
    """
    inputs: list[Any] = []
    for i in made.inputs:
        inputs.extend(arrays[i] if isinstance(arrays[i], (list, tuple)) else (arrays[i],))
    if any(map(is_meta, inputs)):
        for k, x in enumerate(inputs):
            if type(x) is np.ndarray and x.ndim > 0 and (not k or x.dtype.kind in FLOATS):
                raise RuntimeError(f"{made.name}: Tensor on device cpu is not on the expected device meta!")
    return inputs


def without_data(made: Op, arrays: Any) -> Any:
    """Return what a kernel that reads elements returns for zeros, as arrays without data.

    Raises:
        NotImplementedError: the shape of the result depends on the elements.
    """
    check_devices(made, arrays)
    if made.data_dependent:
        raise NotCopied(
            f"{made.name}: the shape of the result depends on the elements, and a tensor on the meta device has none"
        )
    count = made.positional
    named = dict(zip(made.arguments[count:], arrays[count:], strict=True))
    return on_zeros(made.kernel, tuple(arrays[:count]), named)


def translated(made: Op, values: tuple[Any, ...], error: Exception) -> Exception:
    """Return NumPy's error with PyTorch's class and message; PyTorch's own errors are returned unchanged."""
    text = str(error)
    if isinstance(error, AttributeError) and not isinstance(error.obj, Tensor):
        for i in made.inputs:
            if values[i] is error.obj:
                return made.refusal(error.obj, i)
    if isinstance(error, ValueError) and ("broadcast" in text):
        shapes = [value._array.shape for value in values if isinstance(value, Tensor)]
        return RuntimeError(_broadcast_error(made.name, shapes))
    if isinstance(error, ValueError) and exceeds_dimensions(error):
        return too_many_dimensions()
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


#: The largest arrays without data for which kernels run on zeros.
SMALL = 2**12
#: The globals of the texts.
_SCOPE = {
    "__name__": __name__,
    "DIFFERENTIABLE": DIFFERENTIABLE, "F32": _F32, "F64": _F64,
    "INFERENCE_NOT_SAVED": INFERENCE_NOT_SAVED, "MISSING": MISSING,
    "PLAIN_NUMBERS": _PLAIN_NUMBERS, "Tensor": Tensor, "as_array": as_array,
    "arrays_of_write": inplace.arrays_of_write, "check_operands_of_write": inplace.check_operands_of_write,
    "check_result": inplace.check_result, "count_write": count_write, "dispatch": dispatch,
    "edges_of_write": inplace.edges_of_write, "expanded": expanded, "fits": inplace.fits,
    "get_default_dtype": get_default_dtype, "leaf_edge": leaf_edge, "local": local, "make_view": make_view,
    "ndarray": np.ndarray, "new": object.__new__, "np": np, "number": number, "numbers": numbers,
    "parallel": parallel, "promoted": promoted, "record_write": inplace.record_write, "refresh": refresh,
    "add_tail": add_tail, "runs": runs, "record_several": record_several, "shared_places": shared_places,
    "silence": silence,
    "SEVERAL": SEVERAL, "USUAL": USUAL, "NoData": NoData, "is_meta": is_meta, "leave": leave,
    "function_modes": function_modes, "plain": plain,
    "overriding": overriding, "translated": translated, "unusual": unusual, "without_data": without_data,
}  # fmt: skip
