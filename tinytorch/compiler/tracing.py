"""The tracer: runs a function in the form that `rewriting` makes of its source, and sees everything that it does.

In that form every attribute that is read, every call, every truth value goes through a method of `Tracer`. What the
function reads is guarded (`guards`), what it calls runs by the rule for its kind (`calls`), the operations on tensors
are recorded (`recorder`). What none of these can express ends the tracing, with the user's line: a tensor's value that
decides something, an object that is changed, a call whose effects are not known.

A new construct of Python takes a visitor in `rewriting` and a method here; a new kind of callable takes a rule in
`calls`.
"""

from __future__ import annotations

import builtins
import contextlib
import dis
import importlib.util
import inspect
import operator
import sys
import traceback
import types
import typing
import weakref
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from typing import Any

import numpy as np

from tinytorch.autograd.grad_mode import enable_grad, no_grad, set_grad_enabled
from tinytorch.compiler import calls
from tinytorch.compiler.guards import KEYS, LAZY, PLAIN, Guards, static_member
from tinytorch.compiler.lowering import is_pure
from tinytorch.compiler.policy import INLINE, OP, TRUSTED, policy_of
from tinytorch.compiler.recorder import NotRecorded, Recorder, Value, tensors_of
from tinytorch.compiler.rewriting import OPERATORS, TRACER, Unreadable, rewritten
from tinytorch.compiler.sources import FOLDER, codes_in, last_line, load_lines
from tinytorch.compiler.trace import Dimension, Text, Trace, dimensions_in, fixed, plain
from tinytorch.core.device import device
from tinytorch.core.names import module_of
from tinytorch.core.tensor import Size, Tensor
from tinytorch.kernels import dtypes
from tinytorch.nn.modules.module import Module
from tinytorch.optim.lr_scheduler import LRScheduler
from tinytorch.optim.optimizer import Optimizer

#: Functions that are not to be compiled (`torch.compiler.disable`).
disabled: weakref.WeakSet[Any] = weakref.WeakSet()

#: Containers that an attribute may hold after the call.
_LASTING = (list, dict, tuple)
#: Modules, besides those of the package, whose globals never change.
_CONSTANT_MODULES = frozenset(["math", "numpy"])
GRAD_MODES = (no_grad, enable_grad, set_grad_enabled)
#: Attributes of tensors that follow from what is guarded of every tensor.
_TENSOR_ATTRIBUTES = frozenset(
    "shape dtype device ndim T mT H mH grad data requires_grad is_leaf layout itemsize nbytes is_cuda is_cpu is_meta "
    "is_sparse is_quantized is_mps is_xpu is_nested is_mkldnn".split()
)


class Late:
    """A number that is read from a tensor where the function returns it.

    Attributes:
        number: its value.
        tensor: the tensor.
        at: the number of steps recorded before.
    """

    def __init__(self, tensor: Tensor, at: int) -> None:
        self.number, self.tensor, self.at = tensor.item(), tensor, at


class Tracer:
    """Runs a function, collects guards of what it reads, and finds out what cannot be compiled.

    Attributes:
        recorder: the mode that records the operations meanwhile.
        guards: of what the function reads.
        strict: a tensor's truth value ends the tracing; else the program checks that it is the same.
        owners: optimizers, by the id of a function in the place of their `step`.
        paths: names of modules within the outermost one, by id.
        replaced: by object and name, attributes that the call has set: the object, the value before, and the line.
        assigned: attributes that have another tensor after the call: the object, the name and the tensor.
        counted: attributes that the call counts up and does not read: the object, the name, the operator and a number.
        copied: by id of a copy that the call has made, the original.
        tokens: by id, those of context variables that the call has set and not reset.
        trace: what the call is written down in, or None.
        stopped_at: the line of the outermost function, and that of the user's code, at which the tracing has ended.
        through: the code, and the line, of each function within the outermost one that ran then.
        closed: whether the call, and what is made of it, is over.
    """

    def __init__(self, recorder: Recorder, strict: bool = False, sizes: bool = False) -> None:
        self.recorder, self.strict = recorder, strict
        self.guards = Guards(recorder)
        self.stop, self.make, self.made = self.guards.stop, self.guards.make, self.guards.made
        self.owners: dict[int, Any] = {}
        self.paths: dict[int, str] = {}
        self.copied: dict[int, Any] = {}
        self._tries: list[Any] = []  # the number of steps before each `try` block that runs, and what it catches
        self.tokens: dict[int, Any] = {}
        self.replaced: dict[tuple[int, str], Any] = {}
        self.assigned: list[tuple[Any, str, Any]] = []
        self.counted: list[tuple[Any, str, str, Any]] = []
        self._counters: dict[tuple[int, str], Any] = {}  # the numbers before, and the expressions that find them
        self.stopped_at: tuple[int | None, tuple[str, int] | None] = None, None
        self.through: list[tuple[types.CodeType, int]] = []
        self._codes: dict[types.CodeType, types.CodeType] = {}  # by rewritten code, that of the function
        recorder.stops = self._stops
        self._depth, self._returning = 0, 1  # of calls that run; of those whose result the outermost one returns
        self.trace: Trace | None = None
        self._formatted: list[Dimension] = []  # the sizes in the formatted string that is being made
        if sizes:
            self.trace = Trace(recorder.has_effects, lambda: recorder.line, self.guards.inputs)
        self._of_modules: set[Value] = set()  # values that are named after a module
        self.closed = False

    @property
    def stopped(self) -> bool:
        """Whether the call cannot be compiled."""
        return self.recorder.stopped is not None

    def close(self) -> None:
        """Drop all references."""
        self.closed = True
        if self.trace is not None:
            self.trace.close()
        self.guards.close()
        self.recorder.close()

    def _stops(self) -> None:
        """Note where the tracing ends; from there on numbers are no sizes."""
        if self.trace is not None:
            self.trace.fail(str(self.recorder.stopped))
        self._stop_in(self._running(), self.recorder.line)

    def _stop_in(self, running: list[tuple[types.CodeType, int]], line: tuple[str, int] | None) -> None:
        self.stopped_at, self.through = (running[0][1] if running else None, line), running[1:]

    def stop_at(self, reason: str, line: tuple[str, int] | None) -> None:
        """Note why the call cannot be compiled, and the line of the user's code."""
        self.recorder.line = line
        self.stop(reason)
        code = next(iter(self._codes.values()), None)
        file, number = line or ("", 0)
        own = code is not None and code.co_filename == file and code.co_firstlineno <= number <= last_line(code)
        self._stop_in([(code, number)] if code is not None and own else [], line)

    def failed(self, error: Exception) -> None:
        """Note where an error has ended the tracing."""
        running = [(self._codes[code], line) for code, line in _frames(error) if code in self._codes]
        self._stop_in(running, self.recorder.line)

    def has_run(self, error: Exception) -> bool:
        """Return whether an error was raised in a function of the user's that runs in its rewritten form."""
        return any(code in self._codes for code, _ in _frames(error))

    def _running(self) -> list[tuple[types.CodeType, int]]:
        """Return the code and the line of each function that runs in its rewritten form, the outermost one first."""
        found: list[tuple[types.CodeType, int]] = []
        first = next(iter(self._codes), None)
        for frame, line in traceback.walk_stack(sys._getframe(1)):
            if frame.f_code in self._codes:
                found.append((self._codes[frame.f_code], line))
            if frame.f_code is first:
                return found[::-1]
        return []

    def at(self, line: int) -> None:
        """Note which line of the user's code runs; lines of the package do not count."""
        file = sys._getframe(2).f_code.co_filename
        if not file.startswith(FOLDER):
            self.recorder.line = file, line

    def trusted(self, x: Any) -> bool:
        """Return True for objects of trusted classes created during tracing; their methods are not rewritten."""
        return policy_of(type(x)) == TRUSTED and self.made(x)

    # Running a function -----------------------------------------------------------------------------

    def start(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the function that is compiled."""
        code = getattr(getattr(function, "forward", function), "__code__", None)
        names = code.co_varnames[: code.co_argcount] if code is not None else ()
        if isinstance(function, (Module, types.MethodType)):
            names = names[1:]
        for k, x in enumerate(args):
            self.guards.see(x, f"args[{k}]", False, names[k] if k < len(names) else f"x{k}")
        for key, x in kwargs.items():
            self.guards.see(x, f"kwargs[{key!r}]", False, key)
        for x in [*args, *kwargs.values()]:
            if isinstance(x, Tensor) and x._cell is None:
                self.stop("an argument is an inference tensor")
        run = None if self.stopped else calls.runner_of(self, function, args, kwargs)
        if run is None:
            self.stop("the function's effects are not known")
            run = function
        result = run(*args, **kwargs)
        self._check_replaced()
        if self.tokens:
            self.stop("a context variable is set")
        return result

    def run(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        """Run a Python function in its rewritten form."""
        if function in disabled:
            self.stop(f"{function.__qualname__} is not to be compiled (`torch.compiler.disable`)")
        if not isinstance(function, types.FunctionType):
            self.stop(f"{function!r} is called, whose effects are not known")
        if self.stopped:
            return function(*args, **kwargs)
        code = function.__code__
        if code.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
            self.stop(f"{function.__qualname__} is asynchronous")
            return function(*args, **kwargs)
        load_lines(code.co_filename, function.__globals__)
        try:
            new_code = rewritten(code, function.__qualname__)
        except Unreadable as reason:
            self.stop(str(reason))
            if not self._codes and reason.line is not None:
                self._stop_in([(code, reason.line)], (code.co_filename, reason.line))
            return function(*args, **kwargs)
        self._codes.setdefault(new_code, code)
        self._see_surroundings(function)
        cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
        cells[TRACER] = types.CellType(self)
        closure = tuple([cells[name] for name in new_code.co_freevars])
        new = types.FunctionType(new_code, function.__globals__, function.__name__, function.__defaults__, closure)
        new.__kwdefaults__, new.__qualname__ = function.__kwdefaults__, function.__qualname__
        for name in ("__defaults__", "__kwdefaults__"):
            if getattr(function, name):
                self.guards.see(getattr(function, name), f"{self.guards.refer(function)}.{name}", True, "default")
        self._depth += 1
        try:
            return new(*args, **kwargs)
        finally:
            self._depth -= 1

    def _see_surroundings(self, function: types.FunctionType) -> None:
        """Guard the globals that a function names, but those of inlined modules of the package, and its closure."""
        if not self.guards.first_time(function):
            return
        scope, guards = function.__globals__, self.guards
        for name in dict.fromkeys(_globals_of(function.__code__)) if policy_of(function) != INLINE else ():
            if name not in scope:
                if hasattr(builtins, name):
                    guards.require(f"{name!r} not in {guards.refer(scope)}")
            elif isinstance(scope[name], types.ModuleType):
                guards.require(f"{guards.refer(scope)}.get({name!r}) is {guards.refer(scope[name])}")
            else:
                guards.see(scope[name], f"{guards.refer(scope)}.get({name!r})", False, name)
        if self.is_followed(function):  # the variables of the call, and those of functions around it, which are guarded
            return
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            try:
                value = cell.cell_contents
            except ValueError:  # nothing is assigned yet
                continue
            if name != "__class__":
                guards.see(value, f"{guards.refer(cell)}.cell_contents", False, name)

    # Names of values in the program -----------------------------------------------------------------

    def named(self, name: str, x: Any, of_module: bool = False) -> Any:
        """See an assignment to a name; a variable's name takes the place of that of the module that made the value."""
        if not self.stopped and isinstance(x, Tensor):
            value = self.recorder.find(x._array)
            if value is not None and value.source is not None and (not value.name or value in self._of_modules):
                value.name = name
                (self._of_modules.add if of_module else self._of_modules.discard)(value)
        return x

    def name_output(self, module: Module, x: Any) -> None:
        """Name the output of a module after it."""
        if id(module) in self.paths:
            self.named(self.paths[id(module)], x, of_module=True)

    def path(self, module: Module, name: str) -> str:
        """Return the name of a member of a module within the outermost module."""
        outer = self.paths.get(id(module), "")
        return f"{outer}.{name}" if outer else name

    def is_followed(self, x: Any) -> bool:
        """Return whether an object is a generator, or a function that the call has defined, in its rewritten form."""
        code = getattr(x, "gi_code" if isinstance(x, types.GeneratorType) else "__code__", None)
        return isinstance(code, types.CodeType) and TRACER in code.co_freevars

    # Operands and truth values ----------------------------------------------------------------------

    def simple(self, x: Any, depth: int = 9) -> bool:
        """Return whether operations on an object run no unknown code: a number, a tensor, a container of such."""
        if isinstance(x, (*PLAIN, Tensor, builtins.type)):
            return True
        kind = type(x)
        if kind in (list, tuple, set, frozenset, Size):
            return depth > 0 and all(self.simple(element, depth - 1) for element in x)
        if kind is dict:
            return depth > 0 and all(self.simple(element, depth - 1) for pair in x.items() for element in pair)
        if kind is types.GeneratorType:
            return self.is_followed(x)
        known = kind in (range, builtins.slice) or (self.made(x) and kind in LAZY)
        return known or typing.get_origin(x) is not None  # (such as `int | float`)

    def plain(self, x: Any) -> Any:
        """See the operand of a comparison or of a unary operator."""
        kind: Any = type(x)
        if not (self.stopped or self.simple(x) or kind.__eq__ is object.__eq__):
            self.stop(f"a {kind.__name__} is an operand")
        return x

    def contains(self, element: Any, x: Any) -> bool:
        """Return `element in x`."""
        if self.stopped:
            return element in x
        own = self.special(x, "__contains__", element)
        if own is not NotImplemented:
            return self.truth(own)
        if static_member(type(x), "__contains__") is None:
            x = self.iterate(x)
        self.plain(element)
        keyed: Any = (dict, set, frozenset, *KEYS)
        self.plain([*x] if isinstance(x, keyed) else x)
        return element in x

    def number(self, x: Any) -> Any:
        """See an operand of a chained comparison."""
        if not self.stopped and not isinstance(x, PLAIN):
            self.stop("a chained comparison of tensors or objects")
        return x

    def _operands(self, *operands: Any) -> None:
        for x in operands:
            if not (self.stopped or self.simple(x)):
                self.stop(f"a {type(x).__name__} is an operand")

    def binary(self, name: str, line: int, x: Any, y: Any) -> Any:
        """Return `x + y`, or another binary operation."""
        self._operands(x, y)
        self.at(line)
        if isinstance(x, str) and name == "Mod":
            if tensors_of(y):
                self.stop("a tensor is formatted")
            y = fixed(y)
        return self.make(self.operation(_operator(name), x, y))

    def operation(self, function: Any, *operands: Any, in_place: bool = False) -> Any:
        """Return the result of an operator, and write down one of tensors."""
        if self.trace is not None and any(isinstance(x, Tensor) for x in operands):
            return self.trace.call(function, function, operands, {}, in_place)
        return function(*operands)

    def compare(self, name: str, *operands: Any) -> Any:
        """Return `x < y`, or another comparison, or `-x`."""
        return self.operation(_operator(name), *map(self.plain, operands))

    unary = compare

    def augmented(self, name: str, x: Any, y: Any) -> Any:
        """Return what `x += y` assigns."""
        self._operands(x, y)
        if isinstance(x, (list, dict, set)) and not self.made(x):
            self.stop("a container that existed before the call is changed")
        return self.make(self.operation(_operator(name, "i"), x, y, in_place=True))

    def slice(self, *parts: Any) -> slice:
        """Return the slice in a subscript."""
        if any(isinstance(x, Tensor) for x in parts):
            self.stop("a tensor's value is an index")
        return slice(*[self.plain(x) for x in parts])

    def truth(self, x: Any) -> bool:
        """Return the truth value of a condition."""
        if isinstance(x, Tensor) and not (self.strict or self.stopped):
            if self.trace is not None:
                self.trace.fail("a tensor's value decides what is done")
            return bool(calls.trusting(self, bool)(x))
        return bool(self.decides(x))

    def decides(self, x: Any) -> Any:
        """See an operand of `and` or `or`, whose truth value decides, and return it."""
        if not self.stopped:
            if isinstance(x, Tensor):
                self.stop("a tensor's value decides what is done: torch.where may do the same")
            elif isinstance(x, Module) and hasattr(type(x), "__len__"):
                self._see_children(x, "_modules")
            elif not isinstance(x, (*PLAIN, tuple, list, dict, set, range, *KEYS)) and (
                hasattr(type(x), "__bool__") or hasattr(type(x), "__len__")
            ):
                for name in ("__bool__", "__len__"):
                    own = self.special(x, name)
                    if own is not NotImplemented:
                        return own
                self.stop(f"the truth value of a {type(x).__name__} decides what is done")
        return x

    def negated(self, x: Any) -> bool:
        """Return `not x`."""
        return not self.truth(x)

    def shown(self, x: Any) -> Any:
        """See a value that is formatted."""
        if not self.stopped and not self.simple(x):
            self.stop(f"a {type(x).__name__} is formatted")
        if self.trace is not None:
            self._formatted += dimensions_in(x)
        return plain(x)

    def text(self, x: str) -> str:
        """See a formatted string; one with sizes, such as a message, is the same for all sizes until it is used."""
        sizes, self._formatted = self._formatted, []
        return Text(x, sizes) if sizes else x

    # Reading ----------------------------------------------------------------------------------------

    def special(self, x: Any, name: str, *args: Any) -> Any:
        """Return what a special method in Python of a user's class returns, or NotImplemented if there is none."""
        kind = type(x)
        method = static_member(kind, name)
        if not isinstance(method, types.FunctionType) or policy_of(kind) is not None or isinstance(x, Tensor):
            return NotImplemented
        self.guards.member(kind, name)
        return self.run(method, x, *args)

    def iterate(self, x: Any) -> Any:
        """See what is iterated over."""
        own = NotImplemented if self.stopped or isinstance(x, Module) else self.special(x, "__iter__")
        if own is not NotImplemented:
            return self.iterate(own)
        if isinstance(x, Tensor) and self.trace is not None:
            return self.trace.call(tuple, tuple, (x,), {})
        if self.stopped or isinstance(x, (Tensor, tuple, list, dict, set, str, range, map)):
            return x
        if isinstance(x, Module) and policy_of(getattr(type(x), "__iter__", None)) == INLINE:
            self._see_children(x, "_modules", "_parameters")
            return x
        followed = self.is_followed(x) or (isinstance(x, types.GeneratorType) and self.made(x))
        if type(x) not in LAZY and not followed:
            self.stop(f"a {type(x).__name__} is iterated over")
        return x

    def attribute(self, x: Any, name: str) -> Any:
        """Return `x.name`, and guard it."""
        kind: Any = type(x)
        if not self.stopped and self.trusted(x):
            self.guards.member(kind, name)
            return self.make(calls.trusting(self, getattr)(x, name))
        if not self.stopped and not isinstance(x, (Tensor, types.ModuleType, *PLAIN)):
            static = static_member(kind, name)
            if isinstance(static, property) and isinstance(static.fget, types.FunctionType):
                self.guards.member(kind, name)
                return self.run(static.fget, x)
        try:
            value = getattr(x, name)
        except AttributeError:
            self.hasattr(x, name)
            raise
        if (id(x), name) in self._counters:
            self._uncount(x, name)
        if self.stopped or (id(x), name) in self.replaced:
            return value
        if id(x) in self.copied and not isinstance(value, types.MethodType):
            return self._attribute_of_copy(x, name, value)
        if isinstance(x, types.ModuleType):
            self._attribute_of_namespace(x, name, value)
        elif type(x) is super:
            self._attribute_of_super(x, name)
        elif isinstance(x, Tensor):
            return self._attribute_of_tensor(x, name, value)
        elif self.made(x) and hasattr(x, "__dict__"):
            self._attribute_of_made(x, name, value)
        elif isinstance(x, Module):
            self._attribute_of_module(x, name, value)
        elif isinstance(x, Optimizer) and name == "step" and name in x.__dict__:
            if getattr(value, "_wrapped_by_lr_sched", False):  # a scheduler counts the steps
                self.owners[id(value)] = x
                self.guards.require(f"{self.guards.refer(x.__dict__)}.get('step') is {self.guards.refer(value)}")
            else:
                self.stop("the step of an optimizer was replaced")
        elif isinstance(value, Tensor) and id(value) not in self.guards.inputs and self.recorder.find(value._array):
            self.make(value)  # (of a result with named parts, for instance)
        elif isinstance(x, tuple) and name in getattr(kind, "_fields", ()):
            self.guards.see(value, f"{self.guards.refer(x)}[{kind._fields.index(name)}]", True, name)
        elif kind in (str, bytes, list, tuple, dict, set, Size) or isinstance(x, PLAIN) or self.made(x):
            pass
        elif isinstance(value, types.MethodType) and value.__self__ is x and name not in getattr(x, "__dict__", ()):
            self.guards.member(kind, name, x)
        elif name in getattr(x, "__dict__", ()) and kind.__getattribute__ is object.__getattribute__:
            if isinstance(static_member(kind, name), property):
                self.stop(f"{name} is a property")
            self.guards.see(value, f"{self.guards.refer(x.__dict__)}[{name!r}]", True, name)
        elif isinstance(x, type) and isinstance(value, (types.FunctionType, types.MethodType)):
            self.guards.member(x, name)
        elif (
            (isinstance(x, (Optimizer, LRScheduler, types.FunctionType, types.BuiltinFunctionType)) and callable(value))
            or isinstance(x, types.CodeType)
            or getattr(value, "__self__", None) is x
        ):
            pass
        else:
            self._computed(x, name, value)
        return value

    def _attribute_of_made(self, x: Any, name: str, value: Any) -> None:
        """Guard an attribute of an object that the call has made, if it is one of the class."""
        kind = type(x)
        if name in x.__dict__ or policy_of(kind) is not None:
            return
        static = static_member(kind, name)
        if static is value:
            home = next(base for base in kind.__mro__ if name in base.__dict__)
            self.guards.see(value, f"{self.guards.refer(home)}.__dict__.get({name!r})", True, name)
        elif isinstance(value, types.MethodType):
            self.guards.member(kind, name)

    def _attribute_of_super(self, x: Any, name: str) -> None:
        """Guard which class behind `super()` defines a member."""
        order = x.__self_class__.__mro__
        rest = order[order.index(x.__thisclass__) + 1 :]
        home = next((base for base in rest if name in base.__dict__), None)
        if home is None:
            self.stop(f"{name} of a super object is read")
        else:
            self.guards.member(home, name)

    def _attribute_of_copy(self, x: Any, name: str, value: Any) -> Any:
        """Guard an attribute of a copy, which is the same as in the original."""
        original = self.attribute(self.copied[id(x)], name)
        if not isinstance(value, PLAIN) and value is not original:
            self.guards.create(value)
            self.copied[id(value)] = original
        return value

    def _attribute_of_namespace(self, x: types.ModuleType, name: str, value: Any) -> None:
        """Guard a global of an imported module; those of the package, `math` and NumPy never change during a call."""
        guards = self.guards
        if policy_of(x) is not None or x.__name__ in _CONSTANT_MODULES:
            guards.require(f"{guards.refer(x)}.{name} is {guards.refer(value)}")
        else:
            guards.see(value, f"{guards.refer(vars(x))}[{name!r}]", True, name)

    def _attribute_of_tensor(self, x: Tensor, name: str, value: Any) -> Any:
        if not (name in _TENSOR_ATTRIBUTES or callable(value)):
            self.stop(f"{name} of a tensor is read")
        elif name in x.__dict__:
            self.stop("an attribute that was set on a tensor is read")
        elif name == "grad":
            self.recorder.meet(x)
            if value is not None and self.recorder.find(value._array) is None:
                self.stop("an unknown gradient is read")
            self.make(value)
        elif name == "data":
            self.make(value)
        if self.trace is None:
            return value
        if name == "shape":
            return self.trace.shape(x)
        if isinstance(value, Tensor) or name == "nbytes":
            return self.trace.call(lambda *_: value, getattr, (x, name), {})
        return value

    def _attribute_of_module(self, x: Module, name: str, value: Any) -> None:
        own, guards = x.__dict__, self.guards
        for kind in ("_parameters", "_buffers", "_modules"):
            if name in own[kind]:
                guards.see(value, f"{guards.refer(own[kind])}[{name!r}]", True, self.path(x, name))
                if isinstance(value, Module):
                    self.paths[id(value)] = self.path(x, name)
                return
        static = static_member(type(x), name)
        if name in own:
            guards.see(value, f"{guards.refer(own)}.get({name!r}, MISSED)", True, name)
        elif (isinstance(value, types.MethodType) and value.__self__ is x) or (
            static is value and isinstance(value, (*PLAIN, tuple, types.FunctionType, type))
        ):
            guards.member(type(x), name, x)
        else:
            self._computed(x, name, value)

    def _computed(self, x: Any, name: str, value: Any) -> None:
        """Guard an attribute that a class computes, such as that of a configuration: the guard reads it again."""
        if not (isinstance(value, PLAIN) or getattr(x, name) is value):
            self.stop(f"{name} of a {type(x).__name__} is read, which is another object each time")
        self.guards.see(value, f"{self.guards.refer(x)}.{name}", True, name)

    def _see_children(self, x: Module, *kinds: str) -> None:
        """Guard which modules (`_modules`) or parameters (`_parameters`) a module has."""
        for kind in kinds:
            self.guards.see(x.__dict__[kind], f"{self.guards.refer(x.__dict__)}[{kind!r}]", True, "")

    def getattr(self, x: Any, name: str, *default: Any) -> Any:
        """Return `getattr(x, name, *default)`."""
        try:
            return self.attribute(x, name)
        except AttributeError:
            if not default:
                raise
            return default[0]

    def hasattr(self, x: Any, name: str) -> bool:
        """Return whether an object has an attribute, and guard that."""
        if not self.stopped and isinstance(static_member(type(x), name), property):
            try:
                self.attribute(x, name)
            except AttributeError:
                return False
            return True
        result = hasattr(x, name)
        if not isinstance(x, (Tensor, *PLAIN)) and not self.made(x):
            self.guards.require(f"hasattr({self.guards.refer(x)}, {name!r}) is {result}")
        return result

    def item(self, x: Any, key: Any) -> Any:
        """Return `x[key]`, and guard it."""
        own = NotImplemented if self.stopped or isinstance(x, Module) else self.special(x, "__getitem__", key)
        if own is not NotImplemented:
            return own
        if isinstance(key, Tensor) and not isinstance(x, Tensor):
            self.stop("a tensor's value is an index")
        if self.recorder.changed_state and not isinstance(x, Tensor) and not self.made(x):
            self.stop("a value is read that the step of an optimizer or scheduler may have changed")
        if isinstance(x, Tensor):
            self._check_index(key)
        elif isinstance(x, Module):
            self.iterate(x)
        elif not isinstance(x, (tuple, list, dict, str, bytes, range, types.GenericAlias, type)) and not self.made(x):
            self.stop(f"a {type(x).__name__} is indexed")
        if isinstance(x, Tensor):
            return self.make(self.operation(operator.getitem, x, key))
        value = x[fixed(key)]
        return self.make(value) if type(x) is list and type(key) is slice else value  # (it is a new list)

    def _check_index(self, key: Any) -> None:
        """See an index of a tensor."""
        for index in key if isinstance(key, tuple) else (key,):
            if isinstance(index, Tensor) and index.dtype in (dtypes.bool, dtypes.uint8):
                self.stop("the shape of what a mask selects depends on values: torch.where may do the same")
            elif isinstance(index, np.ndarray):
                self.stop("a NumPy array is an index")
            elif isinstance(index, Tensor) and not index.ndim:
                self.stop("a tensor's value is an index")

    # Writing ----------------------------------------------------------------------------------------

    def set_attribute(self, x: Any, name: str, value: Any) -> None:
        """Do `x.name = value`."""
        gradient = isinstance(x, Tensor) and name == "grad" and value is None
        if self.trusted(x):
            setattr(x, name, value)
            return
        if (id(x), name) in self._counters:
            self._uncount(x, name)
        if self.recorder.trial is not None and not self.made(x):
            self.stop(f"the attribute {name} of a {type(x).__name__} is set")
        if not self.stopped and not gradient:
            if self.made(x) and not isinstance(x, Tensor):
                self.replaced[id(x), name] = None
                setter = static_member(type(x), name)
                if isinstance(setter, property):
                    calls.call(self, setter.fset, (x, value), {})
                    return
                own = static_member(type(x), "__setattr__")
                if isinstance(own, types.FunctionType) and own is not Module.__setattr__ and not is_dataclass(x):
                    calls.call(self, own, (x, name, value), {})
                    return
            elif name in getattr(x, "__dict__", ()) and not isinstance(x, (Tensor, type, types.ModuleType)):
                allowed = isinstance(value, PLAIN) or type(value) in (Tensor, *_LASTING)
                if isinstance(x, Module) and not allowed and x.__dict__[name] is not value:
                    self.stop(f"the attribute {name} of a {type(x).__name__} is set")
                self._replace(x, name)
                value = fixed(value)
            elif not self.made(x):
                own = static_member(type(x), name)
                if isinstance(x, (Tensor, Module, type, types.ModuleType)) or not hasattr(x, "__dict__") or own:
                    self.stop(f"the attribute {name} of a {type(x).__name__} is set")
                else:
                    self.guards.require(f"{name!r} not in {self.guards.refer(x)}.__dict__")
                    self.replaced[id(x), name] = x, self, self.recorder.line, self._running()
            elif isinstance(x, Tensor):
                self.stop(f"{name} of a tensor is set")
        setattr(x, name, value)
        if not self.stopped and gradient:
            if id(x) in self.guards.inputs:
                self.recorder.set_gradient(x)
            elif not self.made(x):
                self.stop("the gradient of an unknown tensor is set")
            if self.trace is not None:
                self.trace.call(lambda *_: None, setattr, (x, name, None), {})

    def _replace(self, x: Any, name: str) -> None:
        """Note that an attribute of an object gets another value, which the call must take back, or a tensor."""
        if (id(x), name) not in self.replaced:
            before = x.__dict__[name]
            if type(before) not in _LASTING:  # (what a container holds is of no account unless it is read)
                self.attribute(x, name)
            self.replaced[id(x), name] = x, before, self.recorder.line, self._running()

    def _check_replaced(self) -> None:
        for (_, name), entry in self.replaced.items():
            if entry is None:  # of an object that the call has made
                continue
            x, before, line, running = entry
            now = x.__dict__.get(name, self)
            if now is not before and not (isinstance(now, PLAIN) and type(now) is type(before) and now == before):
                if self.stopped:
                    return
                setter: Any = type(x).__setattr__
                # (A number, or a container that has been read, differs from call to call.)
                lasting = type(now) in (Tensor, bool, dtypes.dtype, device)
                lasting |= type(now) in _LASTING and not self.guards.has_seen(before, self._place(x, name))
                if lasting and setter in (object.__setattr__, Module.__setattr__):
                    self.assigned.append((x, name, now))
                    known = self.guards.inputs.get(id(before))
                    if known is not None:  # it is another tensor in each call
                        self.guards.inputs[id(before)] = known._replace(stays=False)
                    continue
                self.recorder.line = line
                self.stop(f"the attribute {name} of a {type(x).__name__} is set")
                self._stop_in(running, line)

    def set_item(self, x: Any, key: Any, value: Any) -> None:
        """Do `x[key] = value`."""
        if isinstance(x, Tensor):
            self._check_index(key)
            self.operation(operator.setitem, x, key, value)
            return
        if not self.made(x):
            self.stop(f"a {type(x).__name__} is changed")
        x[fixed(key)] = value

    def delete_attribute(self, x: Any, name: str) -> None:
        """Do `del x.name`."""
        if not self.made(x):
            self.stop(f"the attribute {name} of a {type(x).__name__} is deleted")
        delattr(x, name)

    def delete_item(self, x: Any, key: Any) -> None:
        """Do `del x[key]`."""
        if not self.made(x):
            self.stop(f"a {type(x).__name__} is changed")
        del x[key]

    def augment_attribute(self, name: str, x: Any, attribute: str, y: Any) -> None:
        """Do `x.attribute += y`."""
        if self._counts(name, x, attribute, y):
            return
        before = self.attribute(x, attribute)
        result = self.augmented(name, before, y)
        if isinstance(before, Tensor) and result is before and not self.made(x):
            setattr(x, attribute, result)
        else:
            self.set_attribute(x, attribute, result)

    def count_attribute(self, name: str, line: int, x: Any, attribute: str, y: Any) -> None:
        """Do `x.attribute = x.attribute + y`."""
        if not self._counts(name, x, attribute, y):
            self.set_attribute(x, attribute, self.binary(name, line, self.attribute(x, attribute), y))

    def _counts(self, name: str, x: Any, attribute: str, y: Any) -> bool:
        """Count an attribute up, if it is a number that the call has not read; return whether that has been done."""
        own = getattr(x, "__dict__", ())
        before = own.get(attribute) if isinstance(own, dict) else None
        number = type(before) in (int, float) and type(y) is type(before)
        if self.stopped or name not in ("Add", "Sub") or not number:
            return False
        setter: Any = type(x).__setattr__
        static = static_member(type(x), attribute)
        plain = setter in (object.__setattr__, Module.__setattr__) and (static is None or isinstance(static, PLAIN))
        if self.made(x) or not plain or self.recorder.trial is not None or (id(x), attribute) in self.replaced:
            return False
        where = f"{self.guards.refer(own)}.get({attribute!r})"
        if (id(x), attribute) not in self._counters:
            if self.guards.has_seen(before, self._place(x, attribute)):
                return False
            self._counters[id(x), attribute] = x, before, self.recorder.line, self._running()
            self.guards.require(f"type({where}) is {type(before).__name__}")
            self.guards.member(type(x), "__setattr__")
        self.counted.append((x, attribute, "+" if name == "Add" else "-", y))
        setattr(x, attribute, before + y if name == "Add" else before - y)
        return True

    def _place(self, x: Any, name: str) -> str:
        """Return the expression by which guards find an attribute that an object holds."""
        own = self.guards.refer(x.__dict__)
        return f"{own}.get({name!r}, MISSED)" if isinstance(x, Module) else f"{own}[{name!r}]"

    def _uncount(self, x: Any, name: str) -> None:
        """Guard a number that the call has counted up, and reads now: another call's number is another one."""
        of, before, line, running = self._counters.pop((id(x), name))
        self.counted = [each for each in self.counted if each[0] is not x or each[1] != name]
        self.guards.see(before, self._place(x, name), True, name)
        self.replaced[id(x), name] = of, before, line, running

    def augment_item(self, name: str, x: Any, key: Any, y: Any) -> None:
        """Do `x[key] += y`."""
        self.set_item(x, key, self.augmented(name, self.item(x, key), y))

    def context(self, x: Any) -> Any:
        """See the context manager of a `with` statement."""
        if policy_of(type(x)) != OP and type(x) is not contextlib.nullcontext:
            self.stop(f"with {type(x).__name__}")
        if self.trace is not None and type(x) is not contextlib.nullcontext and not isinstance(x, GRAD_MODES):
            self.trace.fail(f"with {type(x).__name__}")
        return x

    def caught(self) -> None:
        """See that an error was caught; only those of kinds that follow from what is guarded are raised again."""
        error = sys.exc_info()[1]
        if isinstance(error, NotRecorded):
            raise error
        known = isinstance(error, (AttributeError, ImportError, LookupError, NameError, StopIteration, TypeError))
        if not known or error is self.recorder.raised:
            self.stop("an error is raised and caught")

    def trying(self, kinds: Callable[[], list[Any]]) -> None:
        """See the beginning of a `try` block; `kinds` returns the classes of errors that it catches."""
        self._tries.append((len(self.recorder.calls), kinds))

    def tried(self) -> None:
        """See the end of a `try` block: an error of a step in it must not follow an effect."""
        begin, kinds = self._tries.pop()
        steps = self.recorder.calls[begin:]
        if not steps or self.stopped:
            return
        self.recorder.tried = True
        if self.recorder.has_effects():
            reason = "an error might be caught after tensors have changed"
            # (A step raises no error of a user's class, and some steps raise only what follows from shapes.)
            if not (all(is_pure(step) for step in steps) or _are_of_user(kinds)):
                self.stop(reason)
            elif self.trace is not None:
                self.trace.fail(reason)

    def imported(self, x: Any, here: str, module: str, name: str) -> None:
        """Guard what `from module import name`, in the module `here`, has imported."""
        if self.stopped or isinstance(x, types.ModuleType):
            return
        package = vars(sys.modules[here]).get("__package__") if here in sys.modules else None
        home = sys.modules.get(importlib.util.resolve_name(module, package))
        if home is None or getattr(home, name, None) is not x:
            self.stop(f"{name} is imported from {module}, which is not found")
        else:
            self._attribute_of_namespace(home, name, x)

    # Calls ------------------------------------------------------------------------------------------

    def call(self, line: int, function: Any, *args: Any, **kwargs: Any) -> Any:
        """Call a function."""
        self.at(line)
        return function(*args, **kwargs) if self.stopped else calls.call(self, function, args, kwargs)

    def last(self, line: int, function: Any, *args: Any, **kwargs: Any) -> Any:
        """Call a function whose result is returned."""
        self.at(line)
        returned = self._depth == self._returning
        self._returning += returned
        try:
            return function(*args, **kwargs) if self.stopped else calls.call(self, function, args, kwargs)
        finally:
            self._returning -= returned

    def inside(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        """Call a function whose result is not returned as it is."""
        before, self._returning = self._returning, 0
        try:
            return function(*args, **kwargs) if self.stopped else calls.call(self, function, args, kwargs)
        finally:
            self._returning = before

    @contextlib.contextmanager
    def unwritten(self) -> Iterator[Trace | None]:
        """Write nothing down in a `with` block; yields the trace."""
        before, self.trace = self.trace, None
        try:
            yield before
        finally:
            self.trace = before

    def late(self, x: Any) -> Any:
        """Return `x.item()` where that is returned: the program reads the number when it returns."""
        if self.stopped or self._depth > self._returning or not isinstance(x, Tensor):
            return x.item()
        self.recorder.reads = False
        try:
            return Late(x, len(self.recorder.calls))
        finally:
            self.recorder.reads = True


def _frames(error: Exception) -> list[tuple[types.CodeType, int]]:
    """Return the code and the line of each function through which an error has gone."""
    return [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__)]


def _operator(name: str, prefix: str = "") -> Any:
    """Return the function of `operator` for the name of a node of a syntax tree; with the prefix i, that in place."""
    function = OPERATORS[name]
    return getattr(operator, prefix + function.__name__.strip("_")) if prefix else function


def _are_of_user(kinds: Callable[[], Any]) -> bool:
    """Return whether the classes of errors that a function returns are all users' or other packages' own."""
    try:
        return all(map(_is_of_user, kinds()))
    except Exception:  # a class that is not found, for instance: that is an error only where one is caught
        return False


def _is_of_user(kind: Any) -> bool:
    """Return whether a class of errors, or each of a tuple of classes, is a user's or another package's."""
    if isinstance(kind, tuple):
        return all(map(_is_of_user, kind))
    home: str = module_of(kind).partition(".")[0]
    return (home not in sys.stdlib_module_names or home == "__main__") and policy_of(kind) is None


def _globals_of(code: types.CodeType) -> Iterator[str]:
    """Return the global names that a function, and those within it, read."""
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield instruction.argval
    for inner in codes_in(code):
        yield from _globals_of(inner)


__all__ = ["Late", "Tracer", "disabled"]
