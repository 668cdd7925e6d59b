"""What a function reads besides its arguments, and what else it does in Python: found out while it runs.

A function is run in a changed form, made from its source: each attribute that it reads, each call, each truth value
goes by a `Reader`. So for everything that the function saw there is a *guard*, which says that it is as it was:
closures, globals, attributes of modules and of other objects, the elements of lists. What a guard cannot say ends the
recording, with the user's line: a tensor's value that decides something, an object that is changed, a call of what is
not known.
"""

from __future__ import annotations

import builtins
import dis
import enum
import functools
import inspect
import linecache
import math
import operator
import sys
import types
import weakref
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tinytorch.compiler.recorder import Recorder, Value, is_ours, tensors_of
from tinytorch.compiler.rewriting import READER, Unreadable, changed
from tinytorch.compiler.sources import FOLDER, codes_in
from tinytorch.core.device import device
from tinytorch.core.tensor import Size, Tensor
from tinytorch.kernels import dtypes
from tinytorch.nn.modules.module import (
    Module,
    _global_backward_hooks,
    _global_backward_pre_hooks,
    _global_forward_hooks,
    _global_forward_pre_hooks,
)
from tinytorch.ops.random import Generator
from tinytorch.ops.register import Function
from tinytorch.optim import _lr_base
from tinytorch.optim.lr_scheduler import LRScheduler
from tinytorch.optim.optimizer import Optimizer, _step_post_hooks, _step_pre_hooks

PLAIN = (int, float, bool, str, bytes, complex, type(None), type(Ellipsis), dtypes.dtype, device, enum.Enum, np.generic)
_MAKERS = {
    "zeros", "ones", "full", "empty", "arange", "linspace", "eye", "tensor", "zeros_like", "ones_like", "full_like",
    "empty_like", "logspace", "tril_indices", "triu_indices", "rand", "randn", "rand_like", "randn_like", "randint",
    "randint_like", "randperm", "normal", "new_zeros", "new_ones", "new_full", "new_empty", "new_tensor",
}  # fmt: skip


#: Functions that are not to be compiled (`torch.compiler.disable`).
disabled: weakref.WeakSet[Any] = weakref.WeakSet()


class Late:
    """A number that is read from a tensor when the function returns it.

    Attributes:
        number: what it was.
        tensor: where it was read.
        at: how many steps there were before.
    """

    def __init__(self, tensor: Tensor, at: int) -> None:
        self.number, self.tensor, self.at = tensor.item(), tensor, at


def _static(kind: type, name: str) -> Any:
    """Return what a class has by a name, without asking it."""
    return next((vars(each)[name] for each in kind.__mro__ if name in vars(each)), None)


def _globals_of(code: types.CodeType) -> Iterator[str]:
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield instruction.argval
    for each in codes_in(code):
        yield from _globals_of(each)


_OPERATORS: dict[str, Any] = {
    "Add": operator.add, "Sub": operator.sub, "Mult": operator.mul, "MatMult": operator.matmul, "Div": operator.truediv,
    "Mod": operator.mod, "Pow": operator.pow, "LShift": operator.lshift, "RShift": operator.rshift,
    "BitOr": operator.or_, "BitXor": operator.xor, "BitAnd": operator.and_, "FloorDiv": operator.floordiv,
}  # fmt: skip
_IN_PLACE: dict[str, Any] = {
    "Add": operator.iadd, "Sub": operator.isub, "Mult": operator.imul, "MatMult": operator.imatmul,
    "Div": operator.itruediv, "Mod": operator.imod, "Pow": operator.ipow, "LShift": operator.ilshift,
    "RShift": operator.irshift, "BitOr": operator.ior, "BitXor": operator.ixor, "BitAnd": operator.iand,
    "FloorDiv": operator.ifloordiv,
}  # fmt: skip

#: Functions of Python that depend on nothing but what they are given, and change nothing.
_PURE = frozenset(
    [len, range, zip, enumerate, reversed, isinstance, issubclass, min, max, sum, abs, round, int, float, bool, str,
     repr, tuple, list, dict, set, frozenset, sorted, callable, divmod, pow, slice, type, any, all, Size, object]
)  # fmt: skip
#: Those of them that look at no more than a type, and those that make something.
_OF_TYPES = frozenset([isinstance, issubclass, callable, type])
_CONSTRUCTORS = frozenset([list, dict, set, frozenset, tuple, zip, enumerate, reversed, range, slice, sorted])
_LAZY: Any = (zip, enumerate, reversed, type({}.items()), type({}.keys()), type({}.values()), type(iter([])))
_READING_METHODS = frozenset("get items keys values index count copy".split())
_OF_PYTHON = (str, bytes, int, float, tuple, range, dict, list, set, frozenset)


class Input(NamedTuple):
    """A tensor that was there before the call.

    Attributes:
        tensor: it.
        where: the text by which a call finds it.
        stays: it is the same in later calls, as a rule.
        name: what it may be called.
    """

    tensor: Tensor
    where: str
    stays: bool
    name: str


class Reader:
    """Runs a function, notes what it reads, and finds out what cannot be written down.

    Attributes:
        recorder: what sees the operations meanwhile.
        strict: a tensor's truth value is the end; else the program looks whether it is the same.
        guards: their texts, in order.
        objects: what these speak of, by name.
        inputs: tensors that were there before the call, by id.
    """

    def __init__(self, recorder: Recorder, strict: bool = False) -> None:
        self.recorder, self.strict = recorder, strict
        recorder.meets = self.meet
        self.guards: dict[str, None] = {}
        self.objects: dict[str, Any] = {}
        self.inputs: dict[int, Input] = {}
        self._names: dict[int, str] = {}
        self._made: dict[int, Any] = {}
        self._seen: set[Any] = set()
        self._owners: dict[int, Any] = {}
        self._depth, self._last = 0, 1  # of functions that run, and of those whose results the first one returns
        self._steady = False  # what is read is not what steps change
        self._paths: dict[int, str] = {}  # of modules, by id
        self._of_modules: set[Value] = set()  # what has the name of a module
        self._held: list[Any] = []

    def close(self) -> None:
        """Let go of all that was seen: what the call made would stay as long as garbage is not collected."""
        self._made, self._held, self.inputs, self.objects = {}, [], {}, {}

    def stop(self, reason: str) -> None:
        """Note why this is not compiled."""
        where = f"{self.recorder.line[0]}:{self.recorder.line[1]}: " if self.recorder.line else ""
        self.recorder.stop(f"{where}{reason}")

    def at(self, line: int) -> None:
        """Note which of the user's lines runs: not those of the house."""
        file = sys._getframe(2).f_code.co_filename
        if not file.startswith(FOLDER):
            self.recorder.line = file, line

    @property
    def stopped(self) -> bool:
        """Whether it cannot be compiled."""
        return self.recorder.stopped is not None

    # Guards ---------------------------------------------------------------------------------------

    def refer(self, x: Any) -> str:
        """Return the name by which guards speak of an object."""
        name = self._names.get(id(x))
        if name is None:
            name = self._names[id(x)] = f"o{len(self._names)}"
            self.objects[name] = x
        return name

    def guard(self, text: str) -> None:
        """Require something of later calls."""
        self.guards[text] = None

    def see(self, x: Any, where: str, stays: bool, name: str) -> None:
        """Note something that was there before the call.

        Args:
            x: what it is.
            where: the text by which a later call finds it.
            stays: as a rule it is the same in later calls.
            name: what it may be called.
        """
        if self.stopped:
            return
        plain = isinstance(x, PLAIN) or type(x) in (tuple, list, dict, set)
        if plain and self.recorder.changed_state and not self._steady:
            self.stop("what a step may have changed is read")
        if where.count("[") > 20:
            self.stop("what is read is nested too deeply")
        if (where, id(x)) in self._seen or self.stopped:
            return
        self._seen.add((where, id(x)))
        self._held.append(x)
        kind = type(x)
        if self.made(x):
            return
        if isinstance(x, Tensor):
            known = self.inputs.get(id(x))
            if known is not None:
                self.guard(f"{where} is {self._found(known)}")
                return
            if self.recorder.find(x._array) is not None:
                self.stop("tensors that are given share memory")
                return
            self.inputs[id(x)] = Input(x, where, stays, name)
            self.recorder.take(x, name)
        elif kind is float:
            if x - x == 0:
                self.guard(f"type({where}) is float and {where} == {x!r}")
                self.guard(f"copysign(1, {where}) == {math.copysign(1, x)}")
            else:
                self.guard(f"{where} is {self.refer(x)}")
        elif x is None or kind is bool or x is Ellipsis:
            self.guard(f"{where} is {x!r}")
        elif kind in (int, str, bytes):
            self.guard(f"type({where}) is {kind.__name__} and {where} == {x!r}")
        elif kind in (set, frozenset):
            if not all(isinstance(each, PLAIN) for each in x):
                self.stop("a set of objects is read")
            self.guard(f"type({where}) is {self.refer(kind)} and {where} == {self.refer(kind(x))}")
        elif kind in (tuple, list, Size, dict):
            self.guard(f"type({where}) is {self.refer(kind)}")
            if kind is not dict:
                self.guard(f"len({where}) == {len(x)}")
            if len(x) >= 1000:
                self.stop("a list of a thousand elements is read")
            elif kind is dict:
                self.guard(f"[*{where}] == {self.refer([*x])}")
                for key, each in x.items():
                    by: Any = type(key)
                    if not isinstance(key, (str, int, bytes)) and by.__eq__ is not object.__eq__:
                        self.stop(f"a {by.__name__} is a key")
                    key_text = repr(key) if by in (str, int) else self.refer(key)
                    self.see(each, f"{where}[{key_text}]", stays, f"{name}_{key}")
            else:
                for k, each in enumerate(x):
                    self.see(each, f"{where}[{k}]", stays, f"{name}_{k}")
        else:
            self.guard(f"{where} is {self.refer(x)}")

    def meet(self, leaf: Tensor) -> None:
        """Note what the `.grad` of a leaf was before the call."""
        known = self.inputs.get(id(leaf))
        if known is None:  # it is the call's own
            if not self.made(leaf):
                self.stop("the gradient of a tensor that is not known")
            return
        where = f"{self._found(known)}._grad"
        if leaf._grad is None:
            self.guard(f"{where} is None")
        else:
            self.see(leaf._grad, where, False, f"{known.name}_grad")

    def _found(self, x: Input) -> str:
        """Return the text by which guards find a tensor again."""
        return self.refer(x.tensor) if x.stays else x.where

    def make(self, x: Any) -> Any:
        """Note that an object was made by the call itself, and return it."""
        if isinstance(x, Tensor):
            number = id(x)
            if number not in self.inputs and number not in self._made:  # (it may die before the call ends)
                self._made[number] = weakref.ref(x, lambda _: self._made.pop(number, None))
        elif isinstance(x, (list, dict, set, *_LAZY, types.GeneratorType)) or _of_distributions(type(x)):
            self._made[id(x)] = x
        return x

    def trusted(self, x: Any) -> bool:
        """Return whether an object is the house's, and was made by the call: what it does may run as it is."""
        return _of_distributions(type(x)) and self.made(x)

    def _trusting(self, function: Any) -> Any:
        """Return a function of the house's as one that runs as it is."""

        def run(*args: Any, **kwargs: Any) -> Any:
            for x in [*args, *kwargs.values()]:
                parts = x if type(x) in (list, tuple) else (x,)
                known = all(self.recorder.find(each._array) is not None for each in tensors_of(x))
                if not known or not all(self.simple(each) or self.trusted(each) for each in parts):
                    self.stop(f"a distribution is given a {type(x).__name__}")
            before, self.recorder.trusts = self.recorder.trusts, True
            try:
                return function(*args, **kwargs)
            finally:
                self.recorder.trusts = before

        return run

    def made(self, x: Any) -> bool:
        """Return whether an object was made by the call itself."""
        return id(x) in self._made

    # What the changed form calls ------------------------------------------------------------------

    def plain(self, x: Any) -> Any:
        """See an operand."""
        kind: Any = type(x)
        if not (self.stopped or self.simple(x) or kind.__eq__ is object.__eq__):
            self.stop(f"a {kind.__name__} is computed with")
        return x

    def operands(self, *operands: Any) -> None:
        """See what is computed with."""
        for x in operands:
            if not (self.stopped or self.simple(x)):
                self.stop(f"a {type(x).__name__} is computed with")

    def simple(self, x: Any, deep: int = 9) -> bool:
        """Return whether Python knows an object by itself: a number, a tensor, and what holds such."""
        if isinstance(x, (*PLAIN, Tensor, builtins.type)) or x is None:
            return True
        kind = type(x)
        if kind in (list, tuple, set, frozenset, Size):
            return deep > 0 and all(self.simple(each, deep - 1) for each in x)
        if kind is dict:
            return deep > 0 and all(self.simple(each, deep - 1) for pair in x.items() for each in pair)
        if kind is types.GeneratorType:
            return READER in x.gi_code.co_freevars
        return kind in (range, builtins.slice) or (self.made(x) and kind in _LAZY)

    def slice(self, *parts: Any) -> slice:
        """Return a slice of a key."""
        if any(isinstance(x, Tensor) for x in parts):
            self.stop("a tensor's value is an index")
        return slice(*[self.plain(x) for x in parts])

    def binary(self, name: str, line: int, x: Any, y: Any) -> Any:
        """See an operator of two."""
        self.operands(x, y)
        self.at(line)
        if isinstance(x, str) and name == "Mod" and tensors_of(y):
            self.stop("a tensor is shown")
        return self.make(_OPERATORS[name](x, y))

    def augmented(self, name: str, x: Any, y: Any) -> Any:
        """See `x += y`, of a name."""
        self.operands(x, y)
        if isinstance(x, (list, dict, set)) and not self.made(x):
            self.stop("a list is changed")
        return self.make(_IN_PLACE[name](x, y))

    def truth(self, x: Any) -> bool:
        """Return whether something holds that decides what is done."""
        if isinstance(x, Tensor) and not (self.strict or self.stopped):
            return bool(self._trusting(bool)(x))
        return bool(self.decides(x))

    def decides(self, x: Any) -> Any:
        """See what decides something, and return it: it may be the value of `x or y`."""
        if not self.stopped:
            if isinstance(x, Tensor):
                self.stop("a tensor's value decides what is done: torch.where may do the same")
            elif not isinstance(x, (*PLAIN, tuple, list, dict, set, str, range)) and (
                hasattr(type(x), "__bool__") or hasattr(type(x), "__len__")
            ):
                if isinstance(x, Module):
                    self._see_own(x, "_modules")
                else:
                    self.stop(f"a {type(x).__name__} decides what is done")
        return x

    def negated(self, x: Any) -> bool:
        """See `not x`."""
        return not self.truth(x)

    def number(self, x: Any) -> Any:
        """See an operand of a comparison of several."""
        if not self.stopped and not isinstance(x, PLAIN):
            self.stop("several are compared")
        return x

    def shown(self, x: Any) -> Any:
        """See what is put into a string."""
        if not self.stopped and not self.simple(x):
            self.stop(f"a {type(x).__name__} is shown")
        return x

    def named(self, name: str, x: Any, of_module: bool = False) -> Any:
        """See what gets a name; that of a module that made it gives way to a variable's."""
        if not self.stopped and isinstance(x, Tensor):
            value = self.recorder.find(x._array)
            if value is not None and value.source is not None and (not value.name or value in self._of_modules):
                value.name = name
                (self._of_modules.add if of_module else self._of_modules.discard)(value)
        return x

    def iterate(self, x: Any) -> Any:
        """See what is iterated over."""
        if self.stopped or isinstance(x, (Tensor, tuple, list, dict, set, str, range, map)):
            return x
        walks = getattr(type(x), "__iter__", None)
        if isinstance(x, Module) and walks is not None and walks.__module__.startswith("tinytorch.nn"):
            self._see_own(x, "_modules", "_parameters")
            return x
        if type(x) in _LAZY or (
            isinstance(x, types.GeneratorType) and (self.made(x) or READER in x.gi_code.co_freevars)
        ):
            return x
        self.stop(f"a {type(x).__name__} is iterated over")
        return x

    def attribute(self, x: Any, name: str) -> Any:
        """Return `x.name`, and guard it."""
        kind: Any = type(x)
        if not self.stopped and self.trusted(x):
            self._of_class(kind, name)
            return self.make(self._trusting(getattr)(x, name))
        if not self.stopped and not isinstance(x, (Tensor, types.ModuleType, *PLAIN)):
            static = _static(kind, name)
            if isinstance(static, property) and isinstance(static.fget, types.FunctionType):
                self._of_class(kind, name)
                return self.run(static.fget, x)
        value = getattr(x, name)
        if self.stopped:
            return value
        if isinstance(x, types.ModuleType):
            package = x.__name__.partition(".")[0]
            if package in ("tinytorch", "torch", "math", "numpy"):
                self.guard(f"{self.refer(x)}.{name} is {self.refer(value)}")
            else:
                self.see(value, f"{self.refer(vars(x))}[{name!r}]", True, name)
        elif isinstance(x, Tensor):
            if not (name in _OF_TENSORS or callable(value)):
                self.stop(f"{name} of a tensor is asked for")
            elif name in x.__dict__:
                self.stop("an attribute of a tensor")
            elif name == "grad":
                self.recorder.meet(x)
                if value is not None and self.recorder.find(value._array) is None:
                    self.stop("a gradient that is not known is read")
                self.make(value)
            elif name == "data":
                self.make(value)
        elif isinstance(x, Module):
            self._of_module(x, name, value)
        elif isinstance(x, Optimizer) and name == "step" and name in x.__dict__:
            if value.__globals__ is _lr_base.__dict__:  # it counts the steps
                self._owners[id(value)] = x
                self.guard(f"{self.refer(x.__dict__)}.get('step') is {self.refer(value)}")
            else:
                self.stop("the step of an optimizer was replaced")
        elif hasattr(kind, "_fields") and isinstance(x, tuple) and name in kind._fields:
            self.see(value, f"{self.refer(x)}[{kind._fields.index(name)}]", True, name)
        elif kind in (str, bytes, list, tuple, dict, set, Size) or isinstance(x, PLAIN) or self.made(x):
            pass
        elif isinstance(value, types.MethodType) and value.__self__ is x and name not in getattr(x, "__dict__", ()):
            self._of_class(kind, name, x)
        elif name in getattr(x, "__dict__", ()) and kind.__getattribute__ is object.__getattribute__:
            if isinstance(_static(kind, name), property):
                self.stop(f"{name} is a property")
            self.see(value, f"{self.refer(x.__dict__)}[{name!r}]", True, name)
        elif isinstance(x, (Optimizer, LRScheduler, types.FunctionType, types.BuiltinFunctionType)):
            if not callable(value):
                self.stop(f"{name} of a {kind.__name__} is read")
        elif (isinstance(x, type) and name in ("__name__", "__qualname__")) or isinstance(x, super):
            pass
        else:
            self.stop(f"{name} of a {kind.__name__} is read")
        return value

    def _of_class(self, kind: type, name: str, x: Any = None) -> None:
        own = getattr(x, "__dict__", None)
        if own is not None:
            self.guard(f"{name!r} not in {self.refer(own)}")
        static = _static(kind, name)
        if type(kind) is type and isinstance(static, types.FunctionType):
            self.guard(f"{self.refer(kind)}.{name} is {self.refer(static)}")
            return
        for base in kind.__mro__:
            if name not in base.__dict__:
                if not base.__module__.startswith("tinytorch"):
                    self.guard(f"{name!r} not in {self.refer(base)}.__dict__")
            else:
                function = base.__dict__[name]
                self.guard(f"{self.refer(base)}.__dict__.get({name!r}) is {self.refer(function)}")
                return

    def _see_own(self, x: Module, *kinds: str) -> None:
        """See which modules, say, a module has."""
        for kind in kinds:
            self.see(x.__dict__[kind], f"{self.refer(x.__dict__)}[{kind!r}]", True, "")

    def _of_module(self, x: Module, name: str, value: Any) -> None:
        own = x.__dict__
        for kind in ("_parameters", "_buffers", "_modules"):
            if name in own[kind]:
                where = f"{self.refer(own[kind])}[{name!r}]"
                self.see(value, where, True, self._path(x, name))
                if isinstance(value, Module):
                    self._paths[id(value)] = self._path(x, name)
                return
        if name in own:
            self.see(value, f"{self.refer(own)}.get({name!r}, MISSED)", True, name)
            return
        if isinstance(value, types.MethodType) and value.__self__ is x:
            self._of_class(type(x), name, x)
            return
        static = _static(type(x), name)
        if static is value and isinstance(value, (*PLAIN, tuple, types.FunctionType, type)):
            self._of_class(type(x), name, x)
            return
        self.stop(f"{name} of a {type(x).__name__} is read")

    def _path(self, x: Module, name: str) -> str:
        before = self._paths.get(id(x), "")
        return f"{before}.{name}" if before else name

    def item(self, x: Any, key: Any) -> Any:
        """Return `x[key]`, and guard it."""
        if isinstance(key, Tensor) and not isinstance(x, Tensor):
            self.stop("a tensor's value is an index")
        if self.recorder.changed_state and not isinstance(x, Tensor) and not self.made(x):
            self.stop("what a step may have changed is read")
        if isinstance(x, Tensor):
            for each in key if isinstance(key, tuple) else (key,):
                if isinstance(each, Tensor) and each.dtype in (dtypes.bool, dtypes.uint8):
                    self.stop("the shape of what a mask picks depends on values: torch.where may do the same")
                elif isinstance(each, np.ndarray):
                    self.stop("an array of NumPy's is an index")
                elif isinstance(each, Tensor) and not each.ndim:
                    self.stop("a tensor's value is an index")
        elif isinstance(x, Module):
            self.iterate(x)
        elif not isinstance(x, (tuple, list, dict, str, bytes, range, types.GenericAlias, type)) and not self.made(x):
            self.stop(f"a {type(x).__name__} is indexed")
        value = x[key]
        return self.make(value) if isinstance(x, Tensor) else value

    def set_attribute(self, x: Any, name: str, value: Any) -> None:
        """See `x.name = value`."""
        if isinstance(x, Tensor) and name == "grad" and value is None:
            setattr(x, name, value)
            if not self.stopped:
                if id(x) in self.inputs:
                    self.recorder.set_gradient(x)
                elif not self.made(x):
                    self.stop("the gradient of a tensor that is not known is set")
            return
        if not self.made(x):
            self.stop(f"the attribute {name} of a {type(x).__name__} is set")
        elif isinstance(x, Tensor):
            self.stop(f"{name} of a tensor is set")
        setattr(x, name, value)

    def set_item(self, x: Any, key: Any, value: Any) -> None:
        """See `x[key] = value`."""
        if isinstance(x, Tensor):
            self.item(x, key)
        elif not self.made(x):
            self.stop(f"a {type(x).__name__} is changed")
        x[key] = value

    def augment_attribute(self, name: str, x: Any, attribute: str, y: Any) -> None:
        """See `x.attribute += y`."""
        before = self.attribute(x, attribute)
        if isinstance(before, Tensor) and not self.made(x):
            result = self.augmented(name, before, y)
            if result is not before:
                self.stop(f"the attribute {attribute} of a {type(x).__name__} is set")
            setattr(x, attribute, result)
            return
        self.set_attribute(x, attribute, self.augmented(name, before, y))

    def augment_item(self, name: str, x: Any, key: Any, y: Any) -> None:
        """See `x[key] += y`."""
        self.set_item(x, key, self.augmented(name, self.item(x, key), y))

    def context(self, x: Any) -> Any:
        """See what is entered by `with`."""
        if not type(x).__module__.startswith("tinytorch.autograd.grad_mode") and type(x).__name__ not in ("autocast",):
            self.stop(f"with {type(x).__name__}")
        return x

    def last(self, line: int, function: Any, *args: Any, **kwargs: Any) -> Any:
        """Call a function whose result is returned."""
        self.at(line)
        returned = self._depth == self._last
        self._last += returned
        try:
            return self.call(line, function, *args, **kwargs)
        finally:
            self._last -= returned

    # Calls ----------------------------------------------------------------------------------------

    def call(self, line: int, function: Any, *args: Any, **kwargs: Any) -> Any:
        """Call a function, having looked at what it is."""
        self.at(line)
        if self.stopped:
            return function(*args, **kwargs)
        run = self._runner(function, args, kwargs)
        if run is None:
            name = getattr(function, "__qualname__", type(function).__name__)
            self.stop(f"{name} is called, of which it is not known what it does")
            return function(*args, **kwargs)
        before = self.recorder.line
        result = run(*args, **kwargs)
        self.recorder.line = before
        if isinstance(function, Module) and id(function) in self._paths:
            self.named(self._paths[id(function)], result, of_module=True)
        constructs = isinstance(function, type) and function in _CONSTRUCTORS
        if isinstance(result, Tensor) or constructs or function is sorted or _of_distributions(type(result)):
            return self.make(result)
        if isinstance(run, types.BuiltinFunctionType) and run.__name__ in ("copy", "items", "keys", "values", "split"):
            return self.make(result)
        if isinstance(function, types.MethodType) and isinstance(function.__self__, Module):
            return self.make(result) if function.__name__ in _OF_THE_TREE else result
        return result

    def _runner(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return what is to be called in a function's place, or None if it is not known."""
        given = [*args, *kwargs.values()]
        try:
            pure = function in _PURE
        except TypeError:
            pure = False
        if pure:
            walked = [x for x in given if isinstance(x, Module) and function in (len, *_CONSTRUCTORS)]
            for x in walked:
                self.iterate(x)
            if function not in _OF_TYPES and not all(self.simple(x) or x in walked for x in given):
                self.stop(f"{function.__name__} of an object is asked for")
            return function
        if function is next and self.made(args[0]):
            return function
        if function in (getattr, hasattr) and type(args[1]) is str:
            return self._getattr if function is getattr else self._hasattr
        inner = getattr(function, "_torchdynamo_orig_callable", None)
        if inner is not None:
            if isinstance(function, types.MethodType):
                inner = types.MethodType(inner, function.__self__)
            return self._runner(inner, args, kwargs)
        if isinstance(function, Module):
            return self._module_call(function)
        owner = self._owners.get(id(function)) or getattr(function, "__self__", None)
        if self.trusted(function) or self.trusted(owner):
            return self._trusting(function)
        if isinstance(owner, Tensor):
            return self._method(function, owner, args)
        if isinstance(function, Function):
            return self._public(function)
        if isinstance(owner, Optimizer):
            return self._of_optimizer(function, owner, args, kwargs)
        if isinstance(owner, LRScheduler) and function.__name__ == "step" and not given:
            self.recorder.changed_state = True
            return self._changing(function)
        if isinstance(owner, Module):
            return self._of_a_module(function, owner, args)
        if isinstance(function, types.BuiltinFunctionType):
            if function.__module__ in ("math",) or isinstance(owner, (str, bytes, int, float)):
                return function
            if isinstance(owner, _OF_PYTHON) and (self.made(owner) or function.__name__ in _READING_METHODS):
                return function
            return None
        if isinstance(function, types.MethodType):
            return functools.partial(self.run, function.__func__, owner)
        if isinstance(function, types.FunctionType):
            if (function.__module__ or "").startswith("tinytorch."):
                return self._of_the_house(function)
            return functools.partial(self.run, function)
        if isinstance(function, type):
            if function.__module__.startswith("tinytorch.autograd.grad_mode"):
                return function
            if _of_distributions(function):
                for base in function.__mro__:
                    if "_validate_args" in base.__dict__:
                        self.see(base.__dict__["_validate_args"], f"{self.refer(base)}._validate_args", True, "")
                self._of_class(function, "__init__")
                return self._trusting(function)
        return None

    def _getattr(self, x: Any, name: str, *default: Any) -> Any:
        try:
            return self.attribute(x, name)
        except AttributeError:
            if not default:
                raise
            self._hasattr(x, name)
            return default[0]

    def _hasattr(self, x: Any, name: str) -> bool:
        if isinstance(_static(type(x), name), property):
            self.stop(f"whether {name}, a property, is there is asked")  # (to look again may do something)
        found = hasattr(x, name)
        if not isinstance(x, (Tensor, *PLAIN)) and not self.made(x):
            self.guard(f"hasattr({self.refer(x)}, {name!r}) is {found}")
        return found

    def numeric(self, x: Any) -> bool:
        """Return whether an argument is numbers, or tells where they come from."""
        if type(x) in (list, tuple, Size):
            return all(self.numeric(each) for each in x)
        return isinstance(x, (*PLAIN, Generator, range))

    def _method(self, function: Any, x: Tensor, args: tuple[Any, ...]) -> Any:
        name = function.__name__
        if name == "requires_grad_" and self.made(x) and not x._requires_grad and x._edge is None:
            return function
        if name.startswith("register_") or not is_ours(type(x)):
            return None
        return self._seen_public(function, name)

    def late(self, x: Any) -> Any:
        """Return `x.item()` of what is returned."""
        if self.stopped or self._depth > self._last or not isinstance(x, Tensor):
            return x.item()
        self.recorder.reads = False
        try:
            return Late(x, len(self.recorder.calls))
        finally:
            self.recorder.reads = True

    def _public(self, function: Any) -> Any:
        return self._seen_public(function, function.name.rpartition(".")[2])

    def _seen_public(self, function: Any, name: str) -> Any:
        if name in _UNKNOWN or name in _READS:
            return None
        if name in _MAKERS:

            def run(*args: Any, **kwargs: Any) -> Any:
                numbers = [*args, *kwargs.values()]
                if name.endswith("_like") or name.startswith("new_"):
                    numbers = numbers[not name.startswith("new_") :]
                if not all(self.numeric(x) for x in numbers):
                    self.stop(f"{name} of what is no number")
                result = function(*args, **kwargs)
                self.recorder.known(result)
                return result

            return run
        return function

    def _of_the_house(self, function: types.FunctionType) -> Any:
        module, name = function.__module__, function.__name__
        if module.startswith(("tinytorch.nn.functional", "tinytorch.ops.", "tinytorch.special")):
            return self._seen_public(function, name)
        if module == "tinytorch.distributions.kl":
            registry = function.__globals__["_KL_REGISTRY"]
            if not all((each.__module__ or "").startswith("tinytorch.") for each in registry.values()):
                return None
            self.guard(f"{self.refer(registry)} == {self.refer(dict(registry))}")
        if module.startswith("tinytorch.distributions"):
            return self._trusting(function)
        if module.startswith(("tinytorch.nn.modules", "tinytorch.nn.utils")):
            return functools.partial(self.run, function)
        if module == "tinytorch.autograd.api" and name in ("backward", "grad"):
            return function
        return None

    def _of_optimizer(self, function: Any, optimizer: Optimizer, args: Any, kwargs: Any) -> Any:
        name = function.__name__
        if not type(optimizer).__module__.startswith("tinytorch.optim") or type(optimizer).__name__ == "LBFGS":
            return None
        groups = self.refer(optimizer.param_groups)
        self._steady = True
        for k, group in enumerate(optimizer.param_groups):
            self.guard(f"not {groups}[{k}].get('differentiable')")
            self.see(group["params"], f"{groups}[{k}]['params']", True, "param")
        self.guard(f"{self.refer(optimizer)}.param_groups is {groups}")
        self.guard(f"len({groups}) == {len(optimizer.param_groups)}")
        self._steady = False
        params = [p for group in optimizer.param_groups for p in group["params"]]
        if name == "zero_grad":
            if args or kwargs:  # they may become zeros, if there are any
                for p in params:
                    self.recorder.meet(p)
            return functools.partial(self._zero_grad, function, params)
        if name == "step" and not args and not kwargs:
            if any(group.get("differentiable") for group in optimizer.param_groups):
                return None
            if "step" not in optimizer.__dict__:
                self.guard(f"'step' not in {self.refer(optimizer.__dict__)}")
            for hooks in (optimizer._optimizer_step_pre_hooks, optimizer._optimizer_step_post_hooks, _step_pre_hooks,
                          _step_post_hooks):  # fmt: skip
                self.guard(f"not {self.refer(hooks)}")
                if hooks:
                    return None
            return self._changing(function, params)
        return None

    def _changing(self, function: Any, written: Iterable[Tensor] = ()) -> Any:
        def run() -> Any:
            recorder = self.recorder
            state, before = recorder.off()
            versions = {place: x._version for place, x in recorder.tensors.items()}
            try:
                result = function()
            finally:
                state.modes = before
            for place, x in recorder.tensors.items():  # it counts its writes itself
                recorder.versions[place] += x._version - versions[place]
            if result is not None:
                self.stop("a step returns something")
            owner = type(self._owners.get(id(function)) or function.__self__).__name__
            self.recorder.state(function, f"{owner}_{function.__name__}".lower(), written)
            return result

        return run

    def _zero_grad(self, function: Any, params: Sequence[Tensor], *args: Any, **kwargs: Any) -> None:
        before = [p._grad for p in params]
        function(*args, **kwargs)
        for p, had in zip(params, before, strict=True):
            if p._grad is None:
                self.recorder.set_gradient(p)
            elif p._grad is not had:
                self.stop("zero_grad made gradients")

    def _module_call(self, module: Module) -> Any:
        kind = type(module)
        if "_orig_mod" in module._modules and "_compiled" in module.__dict__:  # what is compiled by itself
            inner = module._modules["_orig_mod"]
            self.guard(f"{self.refer(module._modules)}.get('_orig_mod') is {self.refer(inner)}")
            return self._runner(inner, (), {})
        if kind.__call__ is not Module.__call__:
            return None
        own = module.__dict__
        for name in ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks"):
            if own[name]:
                self.stop("a module has hooks")
                return module
            self.guard(f"not {self.refer(own[name])}")
        for hooks in _GLOBAL_HOOKS:
            if hooks:
                self.stop("modules have global hooks")
                return module
            self.guard(f"not {self.refer(hooks)}")
        if "forward" in own:
            forward = own["forward"]
            self.see(forward, f"{self.refer(own)}.get('forward')", True, "")
            return self._runner(forward, (), {})
        self.guard(f"'forward' not in {self.refer(own)}")
        self._of_class(kind, "forward")
        forward = getattr(kind.forward, "_torchdynamo_orig_callable", kind.forward)
        if not isinstance(forward, types.FunctionType):
            return None
        return functools.partial(self.run, forward, module)

    def _of_a_module(self, function: Any, module: Module, args: tuple[Any, ...]) -> Any:
        name = function.__name__
        if name in ("train", "eval") and function.__func__ in (Module.train, Module.eval):
            mode = bool(args[0]) if args else name == "train"
            for each in module.modules():
                if each.__dict__.get("training") is not mode:
                    self.stop("a module's mode is changed")
                    break
                self.guard(f"{self.refer(each.__dict__)}.get('training') is {mode}")
            return function
        if name == "zero_grad" and function.__func__ is Module.zero_grad and not args:
            params = list(module.parameters())
            self._see_tree(module)
            return functools.partial(self._zero_grad, function, params)
        if name in _OF_THE_TREE and function.__func__ is getattr(Module, name):
            self._see_tree(module)
            return lambda *args, **kwargs: iter(list(function(*args, **kwargs)))
        return functools.partial(self.run, function.__func__, module)

    def _see_tree(self, module: Module) -> None:
        self._steady = True
        for path, each in module.named_modules():
            self._paths[id(each)] = path
            for kind in ("_parameters", "_buffers", "_modules"):
                own = each.__dict__[kind]
                self.guard(f"len({self.refer(own)}) == {len(own)}")
                for key, value in own.items():
                    self.see(value, f"{self.refer(own)}[{key!r}]", True, self._path(each, key))
        self._steady = False

    # Running --------------------------------------------------------------------------------------

    def start(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the function that is compiled."""
        code = getattr(getattr(function, "forward", function), "__code__", None)
        names = code.co_varnames[: code.co_argcount] if code is not None else ()
        if isinstance(function, (Module, types.MethodType)):
            names = names[1:]
        for k, x in enumerate(args):
            self.see(x, f"args[{k}]", False, names[k] if k < len(names) else f"x{k}")
        for key, x in kwargs.items():
            self.see(x, f"kwargs[{key!r}]", False, key)
        for x in [*args, *kwargs.values()]:
            if isinstance(x, Tensor) and x._cell is None:
                self.stop("an inference tensor is given")
        run = None if self.stopped else self._runner(function, args, kwargs)
        if run is None:
            self.stop("it is not known what it does")
            run = function
        return run(*args, **kwargs)

    def run(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        """Run a function of Python's in the changed form."""
        if function in disabled:
            self.stop(f"{function.__qualname__} is not to be compiled")
        if self.stopped:
            return function(*args, **kwargs)
        if not isinstance(function, types.FunctionType):
            self.stop(f"{function!r} is called, of which it is not known what it does")
            return function(*args, **kwargs)
        code = function.__code__
        if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
            self.stop(f"{function.__qualname__} is a generator")
            return function(*args, **kwargs)
        linecache.lazycache(code.co_filename, function.__globals__)  # (it may lie in an archive)
        try:
            again_code = changed(code, function.__qualname__)
        except Unreadable as reason:
            self.stop(str(reason))
            return function(*args, **kwargs)
        self._surroundings(function)
        cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
        cells[READER] = types.CellType(self)
        closure = tuple([cells[name] for name in again_code.co_freevars])
        again = types.FunctionType(again_code, function.__globals__, function.__name__, function.__defaults__, closure)
        again.__kwdefaults__, again.__qualname__ = function.__kwdefaults__, function.__qualname__
        if function.__defaults__:
            self.see(function.__defaults__, f"{self.refer(function)}.__defaults__", True, "default")
        if function.__kwdefaults__:
            self.see(function.__kwdefaults__, f"{self.refer(function)}.__kwdefaults__", True, "default")
        self._depth += 1
        try:
            return again(*args, **kwargs)
        finally:
            self._depth -= 1

    def _surroundings(self, function: types.FunctionType) -> None:
        """Guard the globals that a function names, and what it closes over."""
        if id(function) in self._seen:
            return
        self._seen.add(id(function))
        self._held.append(function)
        if not function.__module__ or not function.__module__.startswith("tinytorch."):
            scope = function.__globals__
            for name in dict.fromkeys(_globals_of(function.__code__)):
                if name in scope:
                    value = scope[name]
                    if isinstance(value, types.ModuleType) and value.__name__.startswith("tinytorch"):
                        self.guard(f"{self.refer(scope)}.get({name!r}) is {self.refer(value)}")
                        continue
                    self.see(value, f"{self.refer(scope)}.get({name!r})", False, name)
                elif hasattr(builtins, name):
                    self.guard(f"{name!r} not in {self.refer(scope)}")
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            try:
                value = cell.cell_contents
            except ValueError:
                continue
            if name != "__class__":
                self.see(value, f"{self.refer(cell)}.cell_contents", False, name)


def _of_distributions(kind: type) -> bool:
    """Return whether a class is one of the house's distributions, constraints or transforms."""
    return kind.__module__.startswith("tinytorch.distributions")


_OF_TENSORS = frozenset("shape dtype device ndim T mT H grad data requires_grad is_leaf layout itemsize nbytes".split())
_OF_THE_TREE = frozenset("parameters named_parameters children modules named_children named_modules buffers".split())
_GLOBAL_HOOKS = (_global_forward_hooks, _global_forward_pre_hooks, _global_backward_hooks, _global_backward_pre_hooks)
_READS = frozenset(
    """
    item tolist numpy __bool__ __float__ __int__ __index__ __len__ __contains__ __array__ __repr__ __str__ equal
    allclose is_nonzero nonzero masked_select unique unique_consecutive argwhere bincount repeat_interleave data_ptr
    storage untyped_storage __format__ __iter__ histc histogram
    """.split()
)
_UNKNOWN = frozenset(
    """
    manual_seed seed initial_seed get_rng_state set_rng_state from_numpy from_dlpack as_tensor asarray frombuffer
    set_ resize_ resize_as_ share_memory_ apply_ map_ map2_ requires_grad_ retain_grad detach_ to_sparse one_hot
    set_default_dtype save load compile vmap checkpoint tensor_split share_memory backward_hook is_shared
    """.split()
)
