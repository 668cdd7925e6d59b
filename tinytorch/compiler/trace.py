"""The trace of a traced call: the functions of tensors that it calls, with sizes as expressions.

A recorded program consists of kernels, and the numbers that they get (the shape of a view, where a slice ends) are
those of the recorded call. A trace has the calls of public functions instead, whose arguments are tensors of the
trace, constants, and expressions of tensors' sizes; it is therefore right for tensors of any size. The sizes that
the traced function reads are `Dimension`s: integers that note what is done with them. Where one decides something, or
is used as a plain number, the trace gets a check, which leaves it if another call's number differs.
"""

from __future__ import annotations

import linecache
import re
import types
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tinytorch.compiler.recorder import expression
from tinytorch.core.mode import local
from tinytorch.core.names import module_of
from tinytorch.core.tensor import Size, Tensor
from tinytorch.nn.parameter import Parameter

_SHAPES = r"\bshape_\d+\b"  # names of the shapes of tensors that the call makes


class Dimension(int):
    """A size that a traced function has read.

    Attributes:
        text: the expression of the size in the trace.
        of: the trace; when that is closed, the size is a number like any other.
        early: whether only sizes of the function's inputs are in the expression.
    """

    text: str
    of: Trace
    early: bool

    def fixed(self) -> int:
        """Return the number, which the trace checks from now on."""
        number = int.__index__(self)
        if self.of.open:
            self.of.check(f"{self.text} == {number}", self.early)
        return number

    def __hash__(self) -> int:
        return hash(self.fixed())

    def __reduce_ex__(self, protocol: Any) -> Any:
        return int, (int.__index__(self),)


def _calculating(name: str, sign: str, turned: bool = False) -> Callable[[Any, Any], Any]:
    plain: Any = getattr(int, name)

    def calculate(self: Dimension, other: Any) -> Any:
        result = plain(self, other)
        if not self.of.open or isinstance(other, Tensor):
            return result
        if type(result) is not int or type(other) not in (int, Dimension):
            return plain(self.fixed(), other)
        parts = [text_of(other), self.text] if turned else [self.text, text_of(other)]
        early = self.early and getattr(other, "early", True)
        return self.of.dimension(result, f"({parts[0]} {sign} {parts[1]})", early)

    return calculate


def _comparing(name: str, sign: str) -> Callable[[Any, Any], Any]:
    plain: Any = getattr(int, name)

    def compare(self: Dimension, other: Any) -> Any:
        result = plain(self, other)
        if type(result) is bool and self.of.open:
            if type(other) not in (int, Dimension):
                self.fixed()
            elif self.text != text_of(other):
                condition = f"{self.text} {sign} {text_of(other)}"
                early = self.early and getattr(other, "early", True)
                self.of.check(condition if result else f"not {condition}", early)
        return result

    return compare


def _fixing(name: str) -> Callable[..., Any]:
    plain: Any = getattr(int, name)
    return lambda self, *args: plain(self.fixed(), *args)


for _name, _sign in (("add", "+"), ("sub", "-"), ("mul", "*"), ("floordiv", "//"), ("mod", "%")):
    setattr(Dimension, f"__{_name}__", _calculating(f"__{_name}__", _sign))
    setattr(Dimension, f"__r{_name}__", _calculating(f"__r{_name}__", _sign, turned=True))
for _name, _sign in (("eq", "=="), ("ne", "!="), ("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">=")):
    setattr(Dimension, f"__{_name}__", _comparing(f"__{_name}__", _sign))
for _name in (
    "bool float format str repr abs round trunc floor ceil invert truediv rtruediv divmod rdivmod pow rpow and rand or "
    "ror xor rxor lshift rlshift rshift rrshift"
).split():
    setattr(Dimension, f"__{_name}__", _fixing(f"__{_name}__"))
Dimension.__neg__ = lambda self: 0 - self  # type: ignore[method-assign]
Dimension.__pos__ = lambda self: self  # type: ignore[method-assign]


class Text(str):
    """A formatted string with sizes in it; where it is used as a string, the trace checks the sizes.

    Attributes:
        sizes: the sizes.
    """

    sizes: list[Dimension]

    def __new__(cls, text: str, sizes: list[Dimension]) -> Text:
        """Return the string."""
        made = super().__new__(cls, text)
        made.sizes = sizes
        return made

    def __reduce_ex__(self, protocol: Any) -> Any:
        return str, (str.__str__(self),)


def _reading(name: str) -> Callable[..., Any]:
    of_string: Any = getattr(str, name)

    def read(self: Text, *args: Any, **kwargs: Any) -> Any:
        for size in self.sizes:
            size.fixed()
        return of_string(self, *args, **kwargs)

    return read


for _name in dir(str):
    if (callable(getattr(str, _name)) and not hasattr(type, _name)) or _name in ("__eq__", "__ne__", "__hash__"):
        setattr(Text, _name, _reading(_name))


def text_of(x: Any) -> str:
    """Return the expression of an integer."""
    return x.text if type(x) is Dimension else repr(x)


def dimensions_in(x: Any) -> Iterator[Dimension]:
    """Yield the sizes in an object, also within containers."""
    if type(x) is Dimension:
        yield x
    elif type(x) is Text:
        yield from x.sizes
    elif isinstance(x, (tuple, list)):
        for each in x:
            yield from dimensions_in(each)
    elif type(x) is dict:
        for each in x.values():
            yield from dimensions_in(each)
    elif type(x) is slice:
        yield from dimensions_in((x.start, x.stop, x.step))


def plain(x: Any) -> Any:
    """Return an object with integers in the place of the sizes in it."""
    kind = type(x)
    if kind is Dimension:
        return int.__index__(x)
    if kind is Text:
        return str.__str__(x)
    if not any(True for _ in dimensions_in(x)):
        return x
    if kind is slice:
        return slice(plain(x.start), plain(x.stop), plain(x.step))
    if kind is dict:
        return {key: plain(value) for key, value in x.items()}
    parts = [plain(each) for each in x]
    return kind._make(parts) if hasattr(kind, "_make") else kind(parts)


def fixed(x: Any) -> Any:
    """Return an object with plain numbers, which the trace checks, in the place of the sizes in it."""
    for size in dimensions_in(x):
        size.fixed()
    return plain(x)


class Unwritten(Exception):
    """Raised with the reason why a call cannot be written down."""


UNKNOWN = "a tensor is used of which it is not known which function made it"


class Trace:
    """The calls of a traced function, as lines of Python.

    Attributes:
        lines: the lines, in order.
        early: checks of the inputs' sizes, to be made before the first line.
        scope: objects that the lines name.
        reason: why the function cannot be written down, or None.
        effect: the index of the first line that changes what exists outside of the call, or None.
        open: whether the call still runs.
    """

    def __init__(self, has_effects: Callable[[], bool], line: Callable[[], Any], inputs: dict[int, Any]) -> None:
        self.lines: list[tuple[Any, str]] = []  # with the user's line
        self.early: dict[str, None] = {}
        self.scope: dict[str, Any] = {}
        self.reason: str | None = None
        self.effect: int | None = None
        self.open = True
        self._has_effects, self._line, self._inputs = has_effects, line, inputs
        self._names: dict[int, tuple[Any, Any]] = {}  # by id of a tensor, its name and a weak reference
        self._objects: dict[int, str] = {}
        self._checked: set[str] = set()
        self._count = 0
        self._grad, self.sets_grad = local.state.grad, False

    def close(self) -> None:
        """Make the sizes plain numbers from now on."""
        self.open = False
        self.lines, self.scope, self._names, self._objects = [], {}, {}, {}  # (a size may outlive the call)

    def fail(self, reason: str) -> None:
        """Note why the function cannot be written down; the first reason is kept."""
        if self.reason is None:
            self.reason = reason

    def dimension(self, number: int, text: str, early: bool) -> Dimension:
        """Return a size with its expression."""
        made = Dimension(number)
        made.text, made.of, made.early = text, self, early
        return made

    def check(self, condition: str, early: bool = False) -> None:
        """Leave the program where a condition does not hold, which does in the call that is traced."""
        if early:
            self.early[condition] = None
        elif condition not in self._checked:
            self._checked.add(condition)
            if self._has_effects():
                self.fail("a size decides what is done after something was written")
            self._put(f"if not ({condition}): raise Missed")

    def _put(self, text: str) -> None:
        if local.state.grad is not self._grad:
            self._grad, self.sets_grad = local.state.grad, True
            self.lines.append((None, f"state.grad = {self._grad}"))
        self.lines.append((self._line(), text))

    def _new_name(self) -> str:
        self._count += 1
        return f"x{self._count}"

    def _refer(self, x: Any) -> str:
        name = self._objects.get(id(x))
        if name is None:
            wish = re.sub(r"\W", "_", getattr(x, "__name__", type(x).__name__)).strip("_") or "o"
            name = self._objects[id(x)] = f"{wish}_o{len(self._objects)}"
            self.scope[name] = x
        return name

    def name(self, x: Tensor) -> str:
        """Return the name of a tensor."""
        found = self._named(x)
        if found is None and id(x) not in self._inputs:
            raise Unwritten(UNKNOWN)
        return found or f"t{[*self._inputs].index(id(x))}"

    def _named(self, x: Tensor) -> Any:
        """Return the name of a tensor that a function has returned, or None."""
        name, tensor = self._names.get(id(x), (None, None))
        return name if tensor is not None and tensor() is x else None

    def shown(self, x: Any) -> str:
        """Return the expression of an argument."""
        return expression(x, self._shown)

    def _shown(self, x: Any) -> str:
        if isinstance(x, Tensor):
            return self.name(x)
        if type(x) is Dimension:
            return x.text
        if type(x) is Size:
            return self.shown(tuple(x))
        if isinstance(x, (tuple, list, dict, set, types.GeneratorType)) or hasattr(x, "__next__"):
            raise Unwritten(f"a {type(x).__name__} is an argument")
        return self._refer(x)

    # Lines ----------------------------------------------------------------------------------------

    def call(
        self, run: Callable[..., Any], function: Any, args: tuple[Any, ...], kwargs: dict[str, Any],
        in_place: bool = False,
    ) -> Any:  # fmt: skip
        """Call `run` in the place of a function, write the call of the function down, and return the result with sizes.

        With `in_place` the function writes into its first argument and returns it, if that is a tensor.
        """
        owner = getattr(function, "__self__", None)
        method = isinstance(owner, Tensor)
        if method:
            function, args = function.__func__, (owner, *args)
        if self.reason is None:
            known = self._instead(function, args, kwargs, method)
            if known is not NotImplemented:
                return known
        note = None
        if self.reason is None:
            try:
                note = self._noting(function, args, kwargs, method, in_place)
            except Unwritten as reason:
                self.fail(str(reason))
        result = run(*[plain(x) for x in args[method:]], **{key: plain(x) for key, x in kwargs.items()})
        return result if note is None or self.reason is not None else note(result)

    def _instead(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], method: bool) -> Any:
        """Return the result of a call that is not to be written down; NotImplemented of others."""
        return NotImplemented

    def _noting(
        self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], method: bool, in_place: bool
    ) -> Callable[[Any], Any]:
        """Return what writes a call down when it has run: it takes the result, and returns it with sizes."""
        name = getattr(function, "__name__", "")
        given = [self.shown(x) for x in args] + [f"{key}={self.shown(x)}" for key, x in kwargs.items()]
        if method and getattr(type(args[0]), name, None) is function:
            text = f"{given[0]}.{name}({', '.join(given[1:])})"
        else:
            text = f"{self._refer(function)}({', '.join(given)})"
        in_place |= name.endswith("_") and not name.endswith("__")

        def note(result: Any) -> Any:
            if result is None or (in_place and isinstance(result, Tensor) and self._is_known(result)):
                self._put(text)
            else:
                variable = self._new_name()
                self._put(f"{variable} = {text}")
                result = self._entered(result, variable, name)
            if self.effect is None and self._has_effects():
                self.effect = len(self.lines) - 1
            return result

        return note

    def _is_known(self, x: Tensor) -> bool:
        return id(x) in self._inputs or self._named(x) is not None

    def _entered(self, x: Any, where: Any, name: str) -> Any:
        """Name the tensors in the result of a function, found at a place, and return it with sizes for integers."""
        kind = type(x)
        if isinstance(x, Tensor):
            if self._is_known(x):
                self._returns_known(x, where, name)
            else:
                self._enter(x, where, name)
            return x
        if kind is int:
            return self._number(x, where)
        if isinstance(x, (tuple, list)):
            parts = [self._entered(each, part, name) for each, part in zip(x, self._parts(x, where), strict=True)]
            if not any(a is not b for a, b in zip(x, parts, strict=True)):
                return x
            return kind._make(parts) if hasattr(kind, "_make") else kind(parts)
        self._returns_constant(x, where, name)
        return x

    def _enter(self, x: Tensor, where: Any, name: str | None = None) -> None:
        self._names[id(x)] = where, weakref.ref(x)

    def _number(self, x: int, where: str) -> Dimension:
        return self.dimension(x, where, False)

    def _parts(self, x: Any, where: str) -> Iterable[Any]:
        if not hasattr(type(x), "_make"):
            self.check(f"len({where}) == {len(x)}")
        return [f"{where}[{k}]" for k in range(len(x))]

    def _returns_known(self, x: Tensor, where: str, name: str) -> None:
        self.check(f"{where} is {self.name(x)}")  # whether a function returns its argument may depend on sizes

    def _returns_constant(self, x: Any, where: str, name: str) -> None:
        kind = type(x)
        if x is None or kind in (bool, int, str):
            self.check(f"{where} == {x!r}")
        elif module_of(kind).startswith("tinytorch"):  # a dtype, for instance
            self.check(f"{where} == {self._refer(x)}")
        else:
            self.fail(f"{name} returns a {kind.__name__}")

    def shape(self, x: Tensor) -> Size:
        """Return the shape of a tensor, with `Dimension`s; that of a parameter does not change."""
        if self.reason is None:
            try:
                return self._shape(x)
            except Unwritten as reason:
                self.fail(str(reason))
        return x.shape

    def _shape(self, x: Tensor) -> Size:
        early = id(x) in self._inputs
        if early and isinstance(x, Parameter):
            return x.shape
        name = self.name(x)
        where = f"{name}_shape"
        if not early:
            where = f"shape_{len(self.lines)}"
            self._put(f"{where} = {name}._array.shape")
        return Size([self.dimension(n, f"{where}[{k}]", early) for k, n in enumerate(x._array.shape)])

    def body(self, returned: str) -> tuple[list[str], int | None]:
        """Return the source of the calls, and the index of the first line that changes what exists outside, or None.

        The names in the expression that is returned are not deleted after their last use.
        """
        texts = [text for _, text in self.lines]
        read = re.findall(_SHAPES, " ".join([*[text.partition(" = ")[2] or text for text in texts], returned]))
        last: dict[str, int] = {}
        for number, text in enumerate(texts):
            made = re.match(r"(x\d+) = ", text)
            if made:
                last[made[1]] = number
            last.update({name: number for name in re.findall(r"\bx\d+\b", text) if name in last})
        for name in re.findall(r"\bx\d+\b", returned):
            last.pop(name, None)
        ends: dict[int, list[str]] = {}
        for name, number in last.items():
            ends.setdefault(number, []).append(name)
        lines: list[str] = []
        effect, at = None, None
        for number, (place, text) in enumerate(self.lines):
            if number == self.effect:
                effect = len(lines)
            if place is not None and place != at:
                at = place
                lines.append(f"# {linecache.getline(*place).strip()}")
            made = re.match(_SHAPES + " = ", text)
            if made is None or made[0].removesuffix(" = ") in read:
                lines.append(text)
            if number in ends:
                lines.append(f"del {', '.join(ends[number])}")
        return lines, effect


__all__ = ["Dimension", "Text", "Trace", "Unwritten", "dimensions_in", "fixed", "plain"]
