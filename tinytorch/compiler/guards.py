"""Guards: conditions, as text, under which a program may run in the place of a call.

For everything that a function read while its call was traced there is a guard, which says that it is as it was:
closures, globals, attributes of modules and of other objects, the elements of lists.
"""

from __future__ import annotations

import enum
import itertools
import math
import sys
import types
import weakref
from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np

from tinytorch.compiler.policy import TRUSTED, policy_of
from tinytorch.compiler.recorder import Recorder
from tinytorch.core.device import device
from tinytorch.core.layout import strided
from tinytorch.core.names import module_of
from tinytorch.core.supplied import Member
from tinytorch.core.tensor import Size, Tensor
from tinytorch.kernels import dtypes

#: Classes of values that never change, and are compared by value or identity.
PLAIN = (int, float, bool, str, bytes, complex, type(None), type(Ellipsis), dtypes.dtype, device, enum.Enum, np.generic)
#: Views of a dictionary's keys; iterators and views of dictionaries.
_DICTS: Any = ({}, OrderedDict())
KEYS: Any = tuple([type(x.keys()) for x in _DICTS])
_ITERABLE: Any = ([], (), "", set(), range(0), *[view for x in _DICTS for view in (x.keys(), x.items(), x.values())])
ITERTOOLS: Any = (
    itertools.chain, itertools.islice, itertools.repeat, itertools.product, itertools.zip_longest, itertools.pairwise,
    itertools.combinations, itertools.permutations, itertools.count, itertools.cycle,
)  # fmt: skip
LAZY: Any = (
    zip, enumerate, map, filter, reversed, *map(type, _ITERABLE[5:]), *[type(iter(x)) for x in _ITERABLE],
    *[type(reversed(x)) for x in ([], range(0), *_ITERABLE[5:])], *ITERTOOLS,
)  # fmt: skip
MAX_DEPTH = 20  # subscripts in the expression of a guard
MAX_LENGTH = 1000  # elements of a list that is read


class Input(NamedTuple):
    """A tensor that existed before the call.

    Attributes:
        tensor: the tensor.
        where: the expression by which a call finds it.
        stays: it is normally the same object in later calls.
        name: the variable's name in the program.
    """

    tensor: Tensor
    where: str
    stays: bool
    name: str


class Guards:
    """The guards of a call, collected while it is traced.

    Attributes:
        recorder: the mode that records the operations of the call.
        texts: the guards, in order.
        objects: what these refer to, by name.
        inputs: tensors that existed before the call, by id.
        called: what an object may be called, by id.
        steady: what is read now is not changed by optimizers' steps.
        renewed: arguments that are objects of users' classes may be other objects in each call.
    """

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        recorder.meets = self.meet_gradient
        self.texts: dict[str, None] = {}
        self.objects: dict[str, Any] = {}
        self.inputs: dict[int, Input] = {}
        self.called: dict[int, str] = {}
        self.steady = self.renewed = False
        self._names: dict[int, str] = {}
        self._given: dict[int, str] = {}  # by id, the expressions of objects that a call is given
        self._made: dict[int, Any] = {}  # by id, objects that the call has created
        self._seen: set[Any] = set()
        self._held: list[Any] = []

    def close(self) -> None:
        """Drop all references: the call's objects would otherwise live until the next garbage collection."""
        self._made, self._held, self.inputs, self.objects = {}, [], {}, {}

    def stop(self, reason: str) -> None:
        """Note why the call is not compiled, with the user's line."""
        self.recorder.stop_here(reason)

    @property
    def stopped(self) -> bool:
        """Whether the call cannot be compiled."""
        return self.recorder.stopped is not None

    def refer(self, x: Any) -> str:
        """Return the name by which guards refer to an object."""
        name = self._names.get(id(x))
        if name is None:
            name = self._names[id(x)] = f"o{len(self._names)}"
            self.objects[name] = x
        return name

    def refers_to(self, x: Any) -> bool:
        """Return whether guards refer to an object, so that it existed before the call."""
        return (self.objects.get(self._names.get(id(x), "")) is x or id(x) in self._given) and not self.made(x)

    def require(self, text: str) -> None:
        """Add a guard."""
        self.texts[text] = None

    def first_time(self, x: Any, where: str = "") -> bool:
        """Return whether an object is seen at a place for the first time, and note that."""
        key = where, id(x)
        if key in self._seen:
            return False
        self._seen.add(key)
        self._held.append(x)
        return True

    def has_seen(self, x: Any, where: str) -> bool:
        """Return whether an object was seen at a place."""
        return (where, id(x)) in self._seen

    def see(self, x: Any, where: str, stays: bool, name: str) -> None:
        """Guard an object that existed before the call.

        Args:
            x: the object.
            where: the expression by which a later call finds it.
            stays: it is normally the same object in later calls.
            name: what it may be called in the program.
        """
        if self.stopped:
            return
        kind, given = type(x), where.startswith(("args[", "kwargs["))
        stays = stays and not given
        if self.recorder.changed_state and not self.steady and (isinstance(x, PLAIN) or kind in _CONTAINERS):
            self.stop("a value is read that the step of an optimizer or scheduler may have changed")
        if where.count("[") + where.count("getitem") > MAX_DEPTH:
            self.stop("what is read is nested too deeply")
        if self.stopped or not self.first_time(x, where) or self.made(x):
            return
        if isinstance(x, Tensor) and x.layout is not strided:
            self.stop(f"a tensor of layout {x.layout} is read")
        elif isinstance(x, Tensor):
            self._see_tensor(x, where, stays, name)
        elif kind is float:
            if x - x == 0:
                self.require(f"type({where}) is float and {where} == {x!r}")
                self.require(f"copysign(1, {where}) == {math.copysign(1, x)}")
            else:
                self.require(f"{where} is {self.refer(x)}")
        elif x is None or kind is bool or x is Ellipsis:
            self.require(f"{where} is {x!r}")
        elif kind in (int, str, bytes):
            self.require(f"type({where}) is {kind.__name__} and {where} == {x!r}")
        elif kind in (set, frozenset):
            if not all(isinstance(element, PLAIN) for element in x):
                self.stop("a set of objects is read")
            self.require(f"type({where}) is {self.refer(kind)} and {where} == {self.refer(kind(x))}")
        elif kind in _CONTAINERS or (isinstance(x, (dict, list)) and policy_of(kind) is None):
            self._see_container(x, where, stays, name)
            if given and self.renewed and kind not in _CONTAINERS:
                self._see_given(x, where)
        elif given and self.renewed and id(x) not in self._names and is_record(x):
            self._see_given(x, where)
        else:
            self.require(f"{where} is {self.refer(x)}")
            self.called.setdefault(id(x), name)

    def _see_given(self, x: Any, where: str) -> None:
        """Guard the class of an object that each call may be given anew; what is read of it is found by its path."""
        self.require(f"type({where}) is {self.refer(type(x))}")
        for other in self._given.values():
            self.require(f"{where} is not {other}")
        self._given[id(x)] = self._names[id(x)] = where
        if hasattr(x, "__dict__"):
            self._names[id(x.__dict__)] = f"{where}.__dict__"

    def same(self, x: Any) -> bool:
        """Guard that an object, and each in a tuple, is this one in each call; return False if the call creates it."""
        if isinstance(x, (*PLAIN, type)):
            return True
        if isinstance(x, (tuple, frozenset)):
            return all(self.same(each) for each in x)
        if self.made(x) or not self.refers_to(x):
            return False
        where = self._given.get(id(x))
        if where is not None:
            name = f"given{len(self.objects)}"
            self.objects[name] = x
            self.require(f"{where} is {name}")
        return True

    def _see_tensor(self, x: Tensor, where: str, stays: bool, name: str) -> None:
        known = self.inputs.get(id(x))
        if known is not None:
            self.require(f"{where} is {self._expression(known)}")
            return
        found = self.recorder.find(x._array)
        if found is not None and found.place is None:
            self.stop("a tensor is read that shares memory with a result of the call")
            return
        self.inputs[id(x)] = Input(x, where, stays, name)
        self.recorder.take(x, name)
        if found is not None:  # (from now on a read of the one is recorded as one of the other)
            other = self._expression(self.inputs[id(found.tensor)])
            self.require(f"{self.refer(is_same_place)}({self._expression(self.inputs[id(x)])}._array, {other}._array)")

    def _see_container(self, x: Any, where: str, stays: bool, name: str) -> None:
        kind: Any = type(x)
        base = next((each for each in (dict, list) if isinstance(x, each)), kind)
        own = "" if kind is base else f"{base.__name__}."  # (a subclass may define `[]` itself)
        self.require(f"type({where}) is {self.refer(kind)}")
        elements: Any = dict.items(x) if base is dict else enumerate(base.__iter__(x))
        if len(x) >= MAX_LENGTH:
            self.stop(f"a container of {MAX_LENGTH:,} elements or more is read")
            return
        if base is dict:
            keys = f"dict.keys({where})" if own else where
            self.require(f"[*{keys}] == {self.refer([*dict.keys(x)])}")
        else:
            self.require(f"{own}__len__({where}) == {len(x)}" if own else f"len({where}) == {len(x)}")
        for key, value in elements:
            of_key: Any = type(key)
            if not isinstance(key, (str, int, bytes)) and of_key.__eq__ is not object.__eq__:
                self.stop(f"a {of_key.__name__} is a key")
            text = repr(key) if of_key in (str, int) else self.refer(key)
            self.see(value, f"{own}__getitem__({where}, {text})" if own else f"{where}[{text}]", stays, f"{name}_{key}")

    def meet_gradient(self, leaf: Tensor) -> None:
        """Guard what the `.grad` of a leaf was before the call."""
        known = self.inputs.get(id(leaf))
        if known is None:
            if not self.made(leaf):
                self.stop("the gradient of an unknown tensor is used")
            return
        where = f"{self._expression(known)}._grad"
        if leaf._grad is None:
            self.require(f"{where} is None")
        else:
            self.see(leaf._grad, where, False, f"{known.name}_grad")

    def _expression(self, x: Input) -> str:
        """Return the expression by which guards find a tensor."""
        return self.refer(x.tensor) if x.stays else x.where

    def make(self, x: Any) -> Any:
        """Note that the call itself has created an object, which needs no guards, and return it."""
        if isinstance(x, Tensor):
            number = id(x)
            if number not in self.inputs and number not in self._made:  # (it may die before the call ends)
                self._made[number] = weakref.ref(x, lambda _: self._made.pop(number, None))
        elif isinstance(x, (list, dict, set, *LAZY, types.GeneratorType)) or policy_of(type(x)) == TRUSTED:
            self._made[id(x)] = x
        return x

    def create(self, x: Any) -> Any:
        """Note that the call has created an object of any class, and return it."""
        if not isinstance(x, (Tensor, *PLAIN)):
            self._made[id(x)] = x
        return x

    def made(self, x: Any) -> bool:
        """Return whether the call itself has created an object."""
        return id(x) in self._made

    def member(self, kind: type, name: str, x: Any = None) -> None:
        """Guard that a class, and a base that it inherits from, defines a member as it does now.

        An instance `x` has no attribute of that name itself.
        """
        own = getattr(x, "__dict__", None)
        if own is not None:
            self.require(f"{name!r} not in {self.refer(own)}")
        static = static_member(kind, name)
        if type(kind) is type and isinstance(static, types.FunctionType):
            self.require(f"{self.refer(kind)}.{name} is {self.refer(static)}")
            return
        for base in kind.__mro__:
            if name in base.__dict__:
                self.require(f"{self.refer(base)}.__dict__.get({name!r}) is {self.refer(base.__dict__[name])}")
                return
            self.require(f"{name!r} not in {self.refer(base)}.__dict__")


_CONTAINERS = (tuple, list, Size, dict, set)


def is_record(x: Any) -> bool:
    """Return whether an object of a user's class holds values by name, such as a configuration or a cache."""
    kind: Any = type(x)
    home = module_of(kind).partition(".")[0]
    if kind.__getattribute__ is not object.__getattribute__ or kind.__new__ is not object.__new__:
        return False
    if not hasattr(x, "__dict__") or (home in sys.stdlib_module_names and home != "__main__"):
        return False
    return all(policy_of(base) is None for base in kind.__mro__[:-1])


def is_same_place(x: Any, y: Any) -> bool:
    """Return whether two arrays of one shape and dtype have the same elements in memory."""
    return x is y or (x.__array_interface__["data"][0] == y.__array_interface__["data"][0] and x.strides == y.strides)


def static_member(kind: type, name: str) -> Any:
    """Return the member of a class under a name, without invoking descriptors."""
    found = next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)
    return found.load() if isinstance(found, Member) else found


__all__ = ["ITERTOOLS", "KEYS", "LAZY", "PLAIN", "Guards", "Input", "is_record", "static_member"]
