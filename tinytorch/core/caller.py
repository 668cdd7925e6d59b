"""What a call of an op does, written out for each kind of op: `caller`.

One function of Tensors that serves all ops would look at each call what kind of op it serves, and take half as long
again. So the text is put together of what the op needs, when it is first called; ops of one kind share it. Tracebacks
and debuggers show it. That of an op of one tensor and a number, `scaled(x, factor=2)`, is in short:

    def call(x=None, factor=None, *_more, **_kwargs):
        _state = local.state
        if _state.modes is not None:
            return dispatch(OP, CALL, *OP.given((x, factor), _more, _kwargs))
        if _more or _kwargs or x is _MISSING:
            (x, factor) = OP.bound((x, factor), _more, _kwargs)      # names that Python did not know, or an error
        if type(x) is not Tensor and not isinstance(x, Tensor):
            x = OP.adopted(x, 0)                                     # PyTorch's tensor, or an error
        _array = KERNEL(x._array, factor)
        _out = _new(Tensor)                                          # and its attributes
        if _state.grad:
            if x._view is not None:
                refresh(x)
            if x._requires_grad:
                _node = NODE()                                       # its edges, plan, number, shape and dtype
                _node.saved = [factor]                               # what the formula of the gradient names
                _out._edge = (_node, 0)
                _out._requires_grad = True
        return _out
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tinytorch.core.op import Op, Plan

# What the text names; in capitals, what belongs to the op.
_NAMES = """
    FLOATS INFERENCE_NOT_SAVED Tensor _F32 _MISSING _PLAIN_NUMBERS _new as_array dispatch leaf_edge local make_view
    ndarray numbers refresh several_outputs translated
""".split()
OP: Any
CALL: Any

_codes: dict[str, CodeType] = {}


def caller(op: Op, scope: dict[str, Any]) -> Callable[..., Any]:
    """Return the function of Tensors that binds, unwraps, computes, wraps and records a call of an op.

    Args:
        op: the op.
        scope: has what the text names.
    """
    own = {name: scope[name] for name in _NAMES}
    own |= {"OP": op, "KERNEL": op.kernel, "PLANS": op.plans, "NODE": op.node_class, "OVERLOAD": op.overload}
    own["_write"] = _write
    call = own["CALL"] = FunctionType(_first_call.__code__, own)
    return call


def _first_call(*args: Any, **kwargs: Any) -> Any:
    _write(CALL, OP)  # noqa: F821
    return CALL(*args, **kwargs)  # noqa: F821


def _write(call: FunctionType, op: Op) -> None:
    """Put what it does into a function that is called for the first time."""
    several = op.outputs != 1 or bool(op.residuals or op.result)
    one = len(op.inputs) == 1 and not (several or op.many or op.joint)
    plan = None
    if op.wants and not several and (one or op.many):
        plan = op.plan_of(None if op.many else 0b1_0000_0001)  # that input needs a gradient, and is a tensor
    call.__globals__["PLAN"] = plan
    text = "\n".join(_lines(op, one, several, plan))
    code = _codes.get(text)
    if code is None:
        file = f"<caller of ops {len(_codes)}>"
        whole = compile(text, file, "exec")
        code = _codes[text] = next(each for each in whole.co_consts if isinstance(each, CodeType))
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    call.__defaults__ = op.defaults[: op.positional]
    call.__kwdefaults__ = dict(zip(op.arguments[op.positional :], op.defaults[op.positional :], strict=True))
    # Last: until then other threads take the first call's. (A copy: Python speeds a code up for what it finds there.)
    call.__code__ = code.replace()


def _lines(op: Op, one: bool, several: bool, plan: Plan | None) -> list[str]:
    """Return the text. Its own names begin with an underscore or are in capitals; the others are the op's arguments.

    Args:
        op: the op.
        one: it has one tensor and one output, as most have: then it is known what to save.
        several: it has several outputs, or residuals.
        plan: what is always saved, if that is known.
    """
    names, inputs = op.arguments, list(enumerate(op.inputs))
    first, many = names[op.inputs[0]], op.many is not None
    values = f"({', '.join(names)},)"
    lines: list[str] = []

    def put(indent: int, text: str) -> None:
        lines.extend([" " * 4 * indent + line for line in text.split("\n")])

    # Bind.
    signature = [f"{name}=None" for name in names]  # (`_write` puts the defaults in)
    signature[op.positional : op.positional] = ["*_more"]
    incomplete = [f"{names[i]} is _MISSING" for i in op.required[-1:]]
    put(0, f"def call({', '.join(signature)}, **_kwargs):")
    put(1, "_state = local.state")
    put(1, "if _state.modes is not None:")
    put(2, f"return dispatch(OP, CALL, *OP.given({values}, _more, _kwargs))")
    put(1, f"if {' or '.join(['_more', '_kwargs', *incomplete])}:")
    put(2, f"{values} = OP.bound({values}, _more, _kwargs)")

    # Unwrap.
    arrays = list(names)
    for k, i in inputs:
        x = names[i]
        arrays[i] = f"{x}._array" if one else f"_array{k}"
        if one:
            put(1, f"if type({x}) is not Tensor and not isinstance({x}, Tensor):")
            put(2, f"{x} = OP.adopted({x}, {i})")
        elif many:
            put(1, f"try:\n    _array{k} = [_each._array for _each in {x}]")
            put(1, f"except AttributeError:\n    _array{k} = OP.elements({x}, {i})")
        else:
            put(1, f"_given{k} = type({x}) is Tensor or isinstance({x}, Tensor)")
            put(1, f"if _given{k}:\n    _array{k} = {x}._array\nelse:")
            put(2, f"_array{k} = {x} if {x} is None or type({x}) in _PLAIN_NUMBERS else OP.checked({x}, {i})")

    # Compute.
    arrays[op.positional :] = [f"{names[i]}={arrays[i]}" for i in range(op.positional, len(names))]
    put(1, f"try:\n    _array = KERNEL({', '.join(arrays)})")
    put(1, f"except (ValueError, TypeError) as _error:\n    raise translated(OP, {values}, _error) from None")

    # Wrap.
    if not several:
        put(1, "if type(_array) is not ndarray:\n    _array = as_array(_array)")
        put(1, "_out = _new(Tensor)\n_out._array = _array\n_out._requires_grad = False")
        put(1, "_out._grad = _out._view = _out._hooks = _out._accumulator = _out._edge = None")
        put(1, f"make_view(_out, {first}, _state)" if op.view else "_out._cell = None if _state.inference else [0]")

    # Which inputs need a gradient, and by which edges; `_key` as in `Op.plan_of`.
    if many:
        key, edges, needed = "None", "tuple(_edges)", "any(_edges)"
        put(1, "_edges = []")
    elif one:
        key, edges, needed = "", f"({first}._edge or leaf_edge({first}),)", f"{first}._requires_grad"
    else:
        key, edges, needed = "_key", f"({', '.join([f'_edge{k}' for k, _ in inputs])},)", "_key & 255"
        put(1, f"_key = 0\n{' = '.join([f'_edge{k}' for k, _ in inputs])} = None")
    recorded = bool(op.wants) and (several or 0 not in op.nondiff)
    if recorded:
        put(1, "if _state.grad:")
        for k, i in inputs:
            x = "_each" if many else names[i]
            if many:
                put(2, f"for _each in {first}:")
            elif not one:
                put(2, f"if _given{k}:\n    _key |= {256 << k}")
            put(2 if one else 3, f"if {x}._view is not None:\n    refresh({x})")
            if many:
                put(3, f"_edges.append({x}._edge or leaf_edge({x}) if {x}._requires_grad else None)")
            elif not one and not op._constant[k]:
                put(3, f"if {x}._requires_grad:\n    _edge{k} = {x}._edge or leaf_edge({x})\n    _key |= {1 << k}")
    if several:
        put(1, f"return several_outputs(OP, {values}, _array, _state, {key}, {edges} if {needed} else None)")
    elif recorded:
        if plan is not None:
            which, saved = "PLAN", plan.saved(names, values, "_array", "_out._cell")
        else:
            which = f"PLANS.get({key}) or OP.plan_of({key})"
            saved = f"(_plan.keep or _plan.keeper())({values}, (_array,), _out._cell)"
        node = "NODE()"
        if op.overload is not None:
            node = f"NODE() if {names[op.overload[0]]} is None else OVERLOAD[1]()"
        put(2, f"if {needed}:")
        put(3, "_dtype = _array.dtype\nif _dtype is _F32 or _dtype.kind in FLOATS:")
        put(4, f"_node = {node}\n_node.edges = {edges}\n_node.plan = _plan = {which}\n_node.hooks = None")
        put(4, "_node.number = next(numbers)\n_node.shape = _array.shape\n_node.dtype = _dtype")
        put(4, f"try:\n    _node.saved = {saved}")
        put(4, "except TypeError:\n    raise RuntimeError(INFERENCE_NOT_SAVED) from None")
        put(4, "_out._edge = (_node, 0)\n_out._requires_grad = True")
    if not several:
        put(1, "return _out")
    return lines
