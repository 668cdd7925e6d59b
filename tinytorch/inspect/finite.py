"""`nonfinite`: which op made the first number that is not finite, from which values, and where.

A mode looks at the result of every op and of every node's backward, by one sum over the elements; only if that is not
finite are the elements looked at, and then those of the arguments. While everything is finite, a node gets a note of
its line, and nothing else is kept.
"""

from __future__ import annotations

import math
import sys
import weakref
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from tinytorch.amp.grad_scaler import GradScaler
from tinytorch.autograd.function import forward_seen
from tinytorch.core import engine
from tinytorch.core.graph import Start
from tinytorch.core.mode import DispatchMode, arriving, local
from tinytorch.core.node import INPUT, OUTPUT, PACKED, RESIDUAL, OpNode
from tinytorch.core.tensor import Tensor
from tinytorch.core.terminal import shown
from tinytorch.core.warning import warn
from tinytorch.inspect.calls import array_of, name_of_op, named_arguments, nodes_behind
from tinytorch.inspect.places import CALL, Line, innermost_module, is_ours, name_of, our_frames, path_of, users_line
from tinytorch.kernels.dtypes import DIFFERENTIABLE
from tinytorch.kernels.reduce import all_finite

__all__ = ["NonFinite", "NonFiniteError", "nonfinite"]

_F32 = np.dtype(np.float32)
_SCALING = GradScaler._multiply.__code__
_WALK = engine.walk.__code__
#: In-place ops keep a copy of what they overwrite, if it is not larger: it shows which value did it.
_KEPT = 2**16
_DEPTH = 8  # how many frames outwards of the user's line a module is looked for
_MOST = 1000  # the number of findings that are kept
_SHOWN = 3  # the number of elements that a message shows


class Element(NamedTuple):
    """An element of a result that is not finite.

    Attributes:
        position: its index.
        result: its value.
        inputs: by name, the elements of the arguments at this position; of an argument of another shape, its smallest
            and its largest element.
    """

    position: tuple[int, ...]
    result: Any
    inputs: dict[str, Any]


class NonFinite(NamedTuple):
    """The origin of numbers that are not finite; `str` explains it.

    Attributes:
        phase: "forward", "backward", "sum" (of the gradients of a tensor that is used several times), or "input" (the
            number came from outside: from the data, or from a parameter).
        op: the name of the op, such as "log".
        node: the name of the node in the backward pass, such as "LogBackward0", else "".
        kind: "nan", "inf", "-inf", or several of them.
        wrong, size: how many elements are not finite, and how many there are.
        module: the module that was running, such as "head.0: Linear", or "".
        line: the user's line; for "backward" that of the forward pass, or None if it was not watched.
        called: the line that called `backward`, or None.
        argument: for "input", the name of the argument.
        elements: the first elements that are not finite.
        remedy: what helps, if it is known; or "".
    """

    phase: str
    op: str
    node: str
    kind: str
    wrong: int
    size: int
    module: str
    line: Line | None
    called: Line | None
    argument: str
    elements: tuple[Element, ...]
    remedy: str

    @shown
    def __str__(self) -> str:
        share = f"{self.wrong} of {self.size} elements" if self.size > 1 else "the only element"
        if self.phase == "input":
            first = f"{self.argument} of {self.op} has {self.kind} ({share}), which no op seen here has made"
        elif self.phase == "backward":
            first = f"the backward of {self.op} ({self.node}) gives {self.kind} ({share})"
        elif self.phase == "sum":
            first = f"the sum of a tensor's gradients gives {self.kind} ({share})"
        else:
            first = f"{self.op} gives {self.kind} ({share})"
        lines = [first]
        for element in self.elements:
            at = f"[{', '.join(map(str, element.position))}]" if element.position else ""
            given = ", ".join(f"{name} = {_number(value)}" for name, value in element.inputs.items())
            lines.append(f"  result{at} = {_number(element.result)}" + (f" from {given}" if given else ""))
        if self.line is not None:
            lines.append(f"  at {self.line.shown()}")
        elif self.phase == "backward":
            lines.append("  at a line that was not watched: the forward pass ran outside of the `with` block")
        if self.module:
            lines.append(f"  in {self.module}")
        if self.called is not None:
            lines.append(f"  in the backward pass that began at {self.called.shown()}")
        if self.remedy:
            lines.append(f"  {self.remedy}")
        return "\n".join(lines)


class NonFiniteError(RuntimeError):
    """Raised inside of `inspect.nonfinite()` by the first op whose result is not finite; `origin` is a `NonFinite`.

    Example:
        >>> with torch.inspect.nonfinite():
        ...     torch.tensor([1.0, -1.0]).sqrt()  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        tinytorch.inspect.NonFiniteError: sqrt gives nan (1 of 2 elements)
          result[1] = nan from input = -1.0
        ...
    """

    __module__ = "tinytorch.inspect"

    def __init__(self, origin: NonFinite) -> None:
        super().__init__(str(origin))
        self.origin = origin

    def __reduce__(self) -> Any:
        return (type(self), (self.origin,))


class _Note:
    """What is kept on a node: the line that made it, the module that was running, and the `GradScaler` of a loss."""

    __slots__ = ("function", "line", "module", "name", "scaler")

    def __init__(self, frame: FrameType) -> None:
        self.module: Any = None
        self.scaler: Any = None
        while is_ours(frame.f_code) and frame.f_back is not None:
            code = frame.f_code
            if code is CALL and self.module is None:
                self.module = weakref.ref(frame.f_locals["self"])
            elif code is _SCALING:
                self.scaler = weakref.ref(frame.f_locals["self"])
            frame = frame.f_back
        code = frame.f_code
        self.name, self.line, self.function = code.co_filename, frame.f_lineno, code.co_name
        for _ in range(_DEPTH if self.module is None else 0):  # the line may be in a module's `forward`
            if frame.f_code is CALL:
                self.module = weakref.ref(frame.f_locals["self"])
                break
            if frame.f_back is None:
                break
            frame = frame.f_back

    def users_line(self) -> Line:
        """Return the line."""
        return Line(self.name, self.line, self.function)


class _Arrival(NamedTuple):
    """Where a number that is not finite came in: the first op with it among its arguments."""

    op: Any
    argument: str
    tensor: Callable[[], Any]
    line: Line


class nonfinite(DispatchMode):
    """Inside, the first op, forward or backward, that makes a number which is not finite is named; a context manager.

    An op is named if its result has NaN and none of its arguments has; or if its result has an infinity, and none of
    its arguments is infinite or NaN. So a mask of `-inf` is no finding, nor NaN in the data that is selected away. If
    the loss itself is not finite and no op made it so, its backward names the argument by which the number came in.
    A loss that a `GradScaler` scales may overflow: the scaler skips that step, and it is no finding. What several
    backward passes add up in `.grad`, and what an optimizer computes, is seen when the next op takes the parameter.

    A step takes about 1.1 to 1.25 times as long. Only the thread that enters the context is watched.

    Args:
        action: "raise" a `NonFiniteError` (the default), "warn", or only "record": `found` is the list of findings.
        allow_inf: infinities are intended: name only what makes NaN.

    Raises:
        ValueError: `action` is another word.
        NonFiniteError: (inside) a number is not finite; its `origin` is a `NonFinite`: the op, the values, the line.

    Example:
        >>> x = torch.tensor([1.0, 0.0], requires_grad=True)
        >>> with torch.inspect.nonfinite(action="record") as seen:
        ...     torch.where(x > 0, x.sqrt(), x).sum().backward()
        >>> origin = seen.found[0]
        >>> origin.phase, origin.node, origin.kind, origin.elements[0].inputs
        ('backward', 'SqrtBackward0', 'nan', {'gradient': 0.0, 'result': 0.0})
        >>> print(origin.remedy)  # doctest: +ELLIPSIS
        the gradient that arrives there is 0, ...
    """

    sees_leaves = False

    def __init__(self, action: str = "raise", *, allow_inf: bool = False) -> None:
        if action not in ("raise", "warn", "record"):
            got = repr(action) if isinstance(action, str) else type(action).__name__
            raise ValueError(f"nonfinite(): action should be 'raise', 'warn' or 'record', but got {got}")
        self.action, self.allow_inf = action, allow_inf
        self.found: list[NonFinite] = []
        self._explained = False  # whether there was a finding since the last backward pass
        self._spread = False  # whether nodes are marked whose outputs are not finite
        self._consumers: dict[Any, Any] = {}  # by node, the node that gave it a gradient last, in this walk
        self._walk: Any = None
        self._scaler: Any = None  # the scaler of the loss whose backward runs
        self._called: Line | None = None

    def __enter__(self) -> nonfinite:
        if self in (local.state.modes or ()):
            raise RuntimeError("this nonfinite() is already on")
        super().__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        super().__exit__(*exc)
        self._consumers.clear()

    def __bool__(self) -> bool:
        """Return whether everything was finite so far."""
        return not self.found

    # Forward --------------------------------------------------------------------------------------

    def call(self, op: Any, caller: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of a call, having looked at it."""
        writes = getattr(caller, "writes", None)
        if writes is None:
            return self._call_function(op, args)
        before = self.overwritten(args[0]) if writes else None
        result = caller(*args, **kwargs)
        if type(result) is Tensor and not writes:  # the usual case, without a further call
            edge = result._edge
            if edge is not None:
                notes = edge[0].__dict__
                if "_note" not in notes:
                    notes["_note"] = _Note(sys._getframe(1))
            if op.view or op.moves:
                if self._spread:
                    self._spread_over(result, args)
            elif not is_finite(result._array):
                self._look(op, result, args, kwargs, None)
        else:
            self.look(op, args, kwargs, result, before)
        return result

    def look(self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any, before: Any) -> None:
        """Look at the result of a call, and note its line on its nodes.

        Args:
            op, args, kwargs: the call, as in `call`.
            result: what it returned.
            before: for a write, what `overwritten` has returned.
        """
        several = result if isinstance(result, (tuple, list)) else (result,)
        outputs = [x for x in several if isinstance(x, Tensor)]
        fine = getattr(op, "view", False) or getattr(op, "moves", False)
        for output in outputs:
            edge = output._edge
            if edge is not None:
                notes = edge[0].__dict__
                if before is not None or "_note" not in notes:
                    notes["_note"] = _Note(sys._getframe(2))
            if fine:
                if self._spread:
                    self._spread_over(output, args)
            elif not _is_finite(output):
                self._look(op, output, args, kwargs, before)
                break

    @staticmethod
    def overwritten(x: Any) -> Any:
        """Return what is needed to judge a write into a tensor: a copy of it, or of a large one, what it has."""
        array = array_of(x)
        if type(array) is not np.ndarray or array.dtype.kind not in DIFFERENTIABLE:
            return None
        return array.copy() if array.size <= _KEPT else _Overwritten(_kinds(array))

    def _call_function(self, function: Any, args: tuple[Any, ...]) -> Any:
        """Return the result of a user's `Function`; the ops of its `forward` are looked at, too."""
        result = forward_seen(self, function)._call(*args)
        for output in result if isinstance(result, tuple) else (result,):
            if isinstance(output, Tensor):
                if output._edge is not None:
                    output._edge[0].__dict__.setdefault("_note", _Note(sys._getframe(1)))
                if not _is_finite(output):
                    self._look(function, output, args[1], {}, None)
                    break
        return result

    def _look(self, op: Any, output: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any], before: Any) -> None:
        """Judge a call whose result has elements that are not finite."""
        array = output._array
        named = named_arguments(op, args, kwargs)
        if before is not None:
            named = {name: (before if value is args[0] else value) for name, value in named.items()}
        kinds = _kinds(array)
        given: set[str] = set()
        origin: Any = None
        for name, value in named.items():
            of_value = _kinds_of(value)
            if isinstance(value, Tensor) and of_value:
                origin = origin or _mark_of(value)
                if origin is None:
                    origin = _Arrival(op, name, weakref.ref(value), users_line(sys._getframe(1)))
            given |= of_value
        if not self._is_new(kinds, given) or self._is_skipped(sys._getframe(1)):
            self._mark(output, origin)
            return
        frame = sys._getframe(1)
        module = innermost_module(frame)
        of_walk = _is_in_walk(frame)
        found = _finding("sum" if of_walk else "forward", op, array, named, users_line(frame), module, frame)
        found = found._replace(remedy=_remedy(found, array))
        self._mark(output, found)
        self._report(found)

    def _is_new(self, kinds: set[str], given: set[str]) -> bool:
        """Return whether a result has numbers that its arguments do not explain."""
        if "nan" in kinds:
            return "nan" not in given
        return not self.allow_inf and not given

    @staticmethod
    def _is_skipped(frame: FrameType | None) -> bool:
        """Return whether a scaler multiplies a loss here: an overflow lets it skip the step."""
        scaling = [each for each in our_frames(frame) if each.f_code is _SCALING]
        return bool(scaling) and _scale_of(scaling[0].f_locals["self"]) > 1

    def _mark(self, output: Tensor, mark: Any) -> None:
        if output._edge is not None:
            self._spread = True
            output._edge[0].__dict__["_not_finite"] = mark

    def _spread_over(self, output: Tensor, args: tuple[Any, ...]) -> None:
        for x in args:
            for each in x if isinstance(x, (tuple, list)) else (x,):
                if isinstance(each, Tensor) and (mark := _mark_of(each)) is not None:
                    self._mark(output, mark)

    # Backward -------------------------------------------------------------------------------------

    def step(self, node: Any, run: Callable[[], Any]) -> Any:
        """Return the gradients that a node's backward computes, having looked at them."""
        self.reach(node)
        # A user's code, or a graph of the gradients: its ops are looked at, too.
        followed = type(node).backward is not OpNode.backward or local.state.grad
        grads = run() if followed else self.unseen(run)
        for k, (edge, g) in enumerate(zip(node.edges, grads)):  # noqa: B905  (a keyword costs time here)
            if edge is None or g is None:
                continue
            if not (is_finite(g._array) if type(g) is Tensor else _is_finite(g)):
                self._look_at_gradient(node, k, g, run)
        return grads

    def reach(self, node: Any) -> None:
        """Note that a walk has reached a node."""
        callbacks = local.state.callbacks
        if callbacks is not self._walk:
            self._begin(callbacks)
        consumers = self._consumers
        for edge in node.edges:
            if edge is not None:
                consumers[edge[0]] = node

    def _begin(self, callbacks: Any) -> None:
        """Begin a walk: a loss that is not finite is reported here, unless an op was named for it.

        Args:
            callbacks: the list by which the walk is known: each has its own. (One that runs inside of another, as in
                reentrant checkpoints, ends the other's notes.)
        """
        self._walk, self._consumers, self._scaler = callbacks, {}, None
        frame = sys._getframe(3)
        while frame.f_code is not _WALK and frame.f_back is not None:
            frame = frame.f_back
        start: Start = frame.f_locals["start"]
        self._called = users_line(frame)
        explained, self._explained = self._explained, False
        for edge in start.edges:
            if edge is None:
                continue
            note = edge[0].__dict__.get("_note")
            if note is not None and note.scaler is not None:
                self._scaler = note.scaler()
            mark = edge[0].__dict__.get("_not_finite") if self._spread else None
            if isinstance(mark, _Arrival) and not explained:
                self._report_input(mark, frame)
                self._explained = False

    def _report_input(self, carried: _Arrival, frame: FrameType) -> None:
        """Report where a number that is not finite came in, if the tensor is still there."""
        op, name, line = carried.op, carried.argument, carried.line
        tensor = carried.tensor()
        if tensor is None:
            return
        of_tensor = name_of(tensor, frame)
        what = f"argument {name} ({of_tensor})" if of_tensor and tensor._edge is None else f"argument {name}"
        array = tensor._array
        remedy = (
            "a parameter: an optimizer's step made it so, or it was loaded; a smaller learning rate, or clipping the "
            "gradients (`nn.utils.clip_grad_norm_`), may help"
            if tensor._requires_grad and tensor._edge is None
            else "look at the data: `torch.isfinite(x).all()`; `x.nan_to_num()` replaces such numbers"
        )
        found = _finding("input", op, array, {}, line, None, frame)
        self._report(found._replace(argument=what, remedy=remedy))

    def _look_at_gradient(self, node: Any, k: int, g: Tensor, run: Any) -> None:
        """Judge the gradient number `k` of a node, which has elements that are not finite."""
        named: dict[str, Any] = {}
        given_to = arriving(run)
        for number, each in enumerate(given_to if isinstance(given_to, (list, tuple)) else (given_to,)):
            if isinstance(each, Tensor):
                named["gradient" if not number else f"gradient {number}"] = each
        named |= dict(_saved(node))
        array = g._array
        kinds = _kinds(array)
        given: set[str] = set()
        for value in named.values():
            given |= _kinds_of(value)
        if not self._is_new(kinds, given):
            return
        if self._scaler is not None and _scale_of(self._scaler) > 1:
            return  # the scaler skips the step, and lowers its scale
        note = node.__dict__.get("_note")
        frame = sys._getframe(2)
        module = None if note is None or note.module is None else note.module()
        line = None if note is None else note.users_line()
        found = _finding("backward", getattr(type(node), "op", None), array, named, line, module, frame)
        name = found.op or type(node).__name__
        found = found._replace(op=name.removesuffix("Backward"), node=node.name(), called=self._called)
        elements = found.elements
        if elements and all([element.inputs.get("gradient") == 0 for element in elements]):
            found = found._replace(remedy=self._unselected(node))
        else:
            found = found._replace(remedy=_remedy(found, array))
        self._report(found)

    def _unselected(self, node: Any) -> str:
        """Return the remedy where a gradient of 0 meets an infinite derivative: a branch that was selected away."""
        text = (
            "the gradient that arrives there is 0{}, but the derivative is infinite, and 0 * inf is nan: replace such "
            "elements before this op, as in `torch.where(ok, x, 1.0).{}()`, not after it"
        )
        op = getattr(type(node), "op", None)
        where: Any = self._consumers.get(node)
        for _ in range(100):
            if where is None:
                break
            of_where = getattr(type(where), "op", None)
            if of_where is not None and of_where.name in ("where", "kept", "masked_fill"):
                break
            where = self._consumers.get(where)
        note = None if where is None else where.__dict__.get("_note")
        by = "" if note is None else f", since `{name_of_op(where.op)}` at {note.users_line()} selects others"
        return text.format(by, getattr(op, "name", "f"))

    def explain_gradient(self, node: Any, k: int, g: Tensor, run: Any) -> str:
        """Return the origin of the NaN in gradient number `k` of a node; "" if it is not known.

        It is this node's backward, or an op of the forward pass, which has left its mark on a node before it.
        """
        self.found.clear()
        self._look_at_gradient(node, k, g, run)
        if self.found:
            return str(self.found.pop())
        marks = {each.number: each.__dict__.get("_not_finite") for each in nodes_behind([node])}
        origins = [mark for _, mark in sorted(marks.items()) if isinstance(mark, NonFinite)]
        return f"the forward pass was not finite before: {origins[0]}" if origins else ""

    # Findings -------------------------------------------------------------------------------------

    def _report(self, found: NonFinite) -> None:
        if len(self.found) < _MOST:
            self.found.append(found)
        self._explained = True
        if self.action == "raise":
            raise NonFiniteError(found)
        if self.action == "warn":
            warn(str(found), RuntimeWarning)


def _is_in_walk(frame: FrameType | None) -> bool:
    """Return whether the engine's own op is running: the sum of two gradients."""
    return any(each.f_code is _WALK for each in our_frames(frame))


def _scale_of(scaler: Any) -> float:
    scale = None if scaler is None else scaler._scale
    return 0.0 if scale is None else float(scale._array.item())


def _mark_of(x: Tensor) -> Any:
    return None if x._edge is None else x._edge[0].__dict__.get("_not_finite")


# Arrays -------------------------------------------------------------------------------------------


def _is_finite(x: Tensor) -> bool:
    """Return whether all elements of a tensor are finite; True for tensors without elements that can be read."""
    return is_finite(array_of(x))


def is_finite(array: Any) -> bool:
    """Return whether all elements of an array are finite; True for arrays without data and for integers."""
    if type(array) is not np.ndarray or (array.dtype is not _F32 and array.dtype.kind not in DIFFERENTIABLE):
        return True
    return all_finite(array)


class _Overwritten:
    """Stands for a large array that a call has overwritten; `kinds` of numbers that are not finite were in it."""

    def __init__(self, kinds: set[str]) -> None:
        self.kinds = kinds


def _kinds(array: Any) -> set[str]:
    """Return which of "nan", "inf" and "-inf" an array has."""
    if type(array) is not np.ndarray or array.dtype.kind not in DIFFERENTIABLE or is_finite(array):
        return set()
    parts = (array.real, array.imag) if array.dtype.kind == "c" else (array,)
    found = set()
    for part in parts:
        if np.isnan(part).any():
            found.add("nan")
        if (part == np.inf).any():
            found.add("inf")
        if (part == -np.inf).any():
            found.add("-inf")
    return found


def _kinds_of(value: Any) -> set[str]:
    """Return which numbers that are not finite an argument has: a tensor, an array, a number, or a list of these."""
    if isinstance(value, _Overwritten):
        return value.kinds
    if isinstance(value, Tensor):
        return _kinds(array_of(value))
    if isinstance(value, np.ndarray):
        return _kinds(value)
    if isinstance(value, (float, np.floating)):
        return set() if math.isfinite(value) else {"nan" if math.isnan(value) else "inf" if value > 0 else "-inf"}
    if isinstance(value, (tuple, list)):
        return {kind for each in value for kind in _kinds_of(each)}
    return set()


def _finding(phase: str, op: Any, array: Any, named: dict[str, Any], line: Line | None, module: Any, frame: Any) -> Any:
    """Return a finding in an array, which was computed from some values by an op, in a module or in none."""
    return NonFinite(
        phase, "" if op is None else name_of_op(op), "", ", ".join(sorted(_kinds(array))),
        int(array.size - np.isfinite(array).sum()), int(array.size),
        path_of(module, frame), line, None, "", tuple(_elements(array, named)), "",
    )  # fmt: skip


def _elements(array: Any, named: dict[str, Any]) -> Iterator[Element]:
    """Yield the first elements that are not finite, NaN before infinities, with what they were computed from."""
    wrong = np.isnan(array)
    if not wrong.any():
        wrong = ~np.isfinite(array)
    for flat in np.flatnonzero(wrong)[:_SHOWN]:
        position = tuple([int(i) for i in np.unravel_index(flat, array.shape)])
        inputs = {}
        for name, value in named.items():
            shown = _element(value, position, array.shape)
            if shown is not None:
                inputs[name] = shown
        yield Element(position, array[position].item(), inputs)


def _element(value: Any, position: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    """Return the element of an argument at a position of the result; or its range; None if it has no numbers."""
    if isinstance(value, (float, int)) and not isinstance(value, bool):
        return value
    array = array_of(value) if isinstance(value, Tensor) else value
    if not isinstance(array, np.ndarray) or not array.size:
        return None
    aligned = array.shape[::-1]
    wanted = shape[::-1]
    if len(aligned) <= len(wanted) and all([a in (1, b) for a, b in zip(aligned, wanted, strict=False)]):
        index = position[len(shape) - array.ndim :]
        return array[tuple([0 if n == 1 else i for i, n in zip(index, array.shape, strict=True)])].item()
    if array.dtype.kind not in "fiu":
        return None
    return (array.min().item(), array.max().item())


def _number(value: Any) -> str:
    if isinstance(value, tuple):
        return f"{value[0]:.6g} … {value[1]:.6g}"
    whole = isinstance(value, float) and math.isfinite(value) and value == int(value) and abs(value) < 1e6
    return f"{value:.6g}" if isinstance(value, float) and math.isfinite(value) and not whole else str(value)


def _saved(node: Any) -> Iterator[tuple[str, Any]]:
    """Yield the names and values of the tensors that a node has saved, and of the numbers."""
    if not isinstance(node, OpNode) or node.saved is None:
        return
    op = node.op
    for source, item in zip(node.plan.sources, node.saved, strict=True):
        kind, place = source
        if kind == PACKED:
            continue  # (a hook has packed it)
        if kind == INPUT:
            name = ("input", "other")[place] if op.operands else op.arguments[place]
            yield ("input" if name == "x" else name), item[0]
        elif kind == OUTPUT:
            yield "result", item[0]
        elif kind == RESIDUAL:
            yield op.residuals[place], item[0]
        elif isinstance(item, (float, int)) and not isinstance(item, bool):
            yield (op.arguments[place] if isinstance(place, int) else str(place)), item


def _remedy(found: NonFinite, array: Any) -> str:
    """Return what helps against a number that is not finite, as far as it follows from the op and the values."""
    values = [value for element in found.elements for value in element.inputs.values() if isinstance(value, float)]
    name = found.op.rstrip("_")
    largest = max([abs(value) for value in values if math.isfinite(value)], default=0.0)
    if array.dtype.itemsize == 2 and array.dtype.kind == "f" and "inf" in found.kind:
        return "float16 ends at 65504: compute this in float32 (or bfloat16), or scale the values"
    if name == "exp" and largest > 80:
        return "exp overflows above 88.7 in float32: subtract the maximum first, or use log_softmax or logsumexp"
    if name.startswith("log") and found.phase == "forward" and any(value <= 0 for value in values):
        return "log needs numbers above 0: `x.clamp_min(1e-8).log()`, or log_softmax or logsigmoid in place of both"
    if name.startswith(("sqrt", "rsqrt", "norm", "pow")) and found.phase == "backward" and 0 in values:
        return "the derivative at 0 is infinite: add a small number first, as in `(x + 1e-12).sqrt()`"
    if name == "sqrt" and any(value < 0 for value in values):
        return "sqrt needs numbers from 0: `x.clamp_min(0).sqrt()`"
    if name.startswith(("std", "var")) and found.phase == "forward":
        return "the deviation of a single number is not defined: use `correction=0`, or more numbers"
    if name in ("div", "true_divide", "reciprocal") and 0 in values:
        return "a division by 0: add a small number to the divisor, or replace its zeros first"
    if "inf" in str(values) or any(math.isinf(value) for value in values):
        return "an argument is infinite: inf - inf, 0 * inf and inf / inf are nan"
    return ""
