"""Where an op, or a function of tensors, becomes public: all that is true of it is said once, at its declaration.

    hypot = pointwise("hypot", np.hypot, x=…, y=…, method=True, in_place=True, out="promoted", operands="tensors")

    @public(method=True, out="diff", also="special.diff")
    def diff(input, n=1, dim=-1): ...

`pointwise` declares an op (see `core/op.py`) and makes it public at once; `public` does the latter for what is declared
below it: an op made by `@op`, or a function that is composed of others. What the module keeps under the
name is the function itself, for other ops and formulas to call. What users get is a `Function`, made here: it sees to
`out=`, to NumPy's names of arguments, to autocasting and to classes that answer themselves (`__torch_function__`), and
costs next to nothing where none of these is asked for. Methods of Tensor go past it.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from types import MethodType
from typing import Any, TypeVar

from tinytorch.core import op as core
from tinytorch.core.declaration import NUMPY, Op
from tinytorch.core.tensor import Tensor
from tinytorch.ops import autocast, overrides

__all__ = [
    "Builtin", "Function", "asking", "autocasting", "functions", "members", "methods", "namespace", "no_such_call",
    "pointwise", "public",
]  # fmt: skip

F = TypeVar("F")

#: Public functions by their dotted names below `torch`: "prod", "linalg.inv", "nn.functional.relu".
functions: dict[str, Function] = {}
_lowered: dict[Any, Any] = {}
#: The methods of Tensor that are declared with ops.
methods: dict[str, Any] = {}
#: The members of Tensor that `overrides.get_overridable_functions` leaves out.
unlisted: set[str] = set()

#: Whether both operands must be tensors, else the calls that PyTorch lists in its error.
Operands = tuple[bool, tuple[str, ...]]

_NOT_GIVEN: Any = object()


def no_such_call(name: str, args: tuple[Any, ...], signatures: tuple[str, ...]) -> TypeError:
    """Return PyTorch's error for arguments that fit none of a function's signatures."""
    got = ", ".join([type(each).__name__ for each in args])
    return TypeError(
        f"{name}() received an invalid combination of arguments - got ({got}), but expected one of:\n"
        + "".join([f" * ({each})\n" for each in signatures])
    )


class Builtin(staticmethod):  # type: ignore[type-arg]
    """A function that does not become a method where a class holds it, as PyTorch's builtins do not."""

    __slots__ = ()
    __objclass__ = staticmethod  # (doctest looks for the examples where the function is written)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self

    def __repr__(self) -> str:
        return f"<built-in function torch.{self.__name__}>"

    def __reduce__(self) -> str:
        return self.__name__  # pickled by its name, copied as itself

    @property
    def path(self) -> str:
        """The name by which `overrides.resolve_name` knows it."""
        return f"torch.{self.__name__}"


class Function(Builtin):
    """A public function. Where a class holds it, it becomes a method if PyTorch's does; its builtins do not.

    Attributes:
        binds: whether it becomes a method.
        name: the dotted name below `torch`.
        raw: the function that computes.
        of_tensors: whether it takes one or two tensors, and nothing else.
        rule: how it writes into `out` (a name of `out.RULES`), or None.
        autocast: how it runs where its thread autocasts (of `AUTOCAST`), or None.
        lowered: `raw` as it runs where its thread autocasts.
        python: whether PyTorch defines it in `torch.functional`, in Python.
        asks: who may answer a call by `__torch_function__` (`public`).
        listed: whether `overrides.get_overridable_functions` lists it.
        operands: whether both arguments must be tensors, and the calls that PyTorch lists if they are not; or None.
    """

    __slots__ = (
        "__weakref__", "asks", "autocast", "binds", "listed", "lowered", "name", "names", "operands", "python", "raw",
        "rule",
    )  # fmt: skip

    def __init__(
        self, name: str, raw: Any, rule: str | None = None, autocast: str | None = None, lowered: Any = None,
        operands: Operands | None = None, binds: bool | None = None, python: bool = False, asks: str = "arguments",
        listed: bool = True,
    ) -> None:  # fmt: skip
        self.name, self.raw, self.rule, self.operands = name, raw, rule, operands
        self.autocast, self.lowered = autocast, raw if lowered is None else lowered
        self.python, self.asks, self.listed = python, asks, listed
        code = getattr(inspect.unwrap(raw), "__code__", None)
        self.names: tuple[str, ...] = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if code else ()
        stars = bool(code and code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)) or hasattr(raw, "also")
        self.of_tensors = self.names in (("input",), ("input", "other")) and not stars
        call = _of_operands(self) if operands else _call(self)
        call.__doc__ = raw.__doc__
        home, _, own = name.rpartition(".")
        self.binds = (home not in ("", "fft", "linalg", "special") or python) if binds is None else binds
        call.__name__ = call.__qualname__ = f"{home}_{own}" if home in ("fft", "linalg", "special") else own
        call.__module__ = f"tinytorch.{home}".rstrip(".")
        call.__wrapped__ = raw
        super().__init__(call)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return MethodType(self, instance) if self.binds and instance is not None else self

    def __repr__(self) -> str:
        if self.binds:
            return f"<function {self.__name__} at {id(self):#x}>"
        return f"<built-in function torch.{self.name}>"

    def __reduce__(self) -> str:
        return self.name.rpartition(".")[2]

    @property
    def path(self) -> str:
        """The name by which `overrides.resolve_name` knows it; PyTorch finds it in several modules, too."""
        shared = functions.get(f"nn.functional.{self.name}") is self
        return f"torch.{'functional.' if self.python else 'nn.functional.' if shared else ''}{self.name}"

    @property
    def op(self) -> Op:
        """The op, of a function that is one."""
        op: Op = self.raw.op
        return op

    @property
    def __signature__(self) -> inspect.Signature:
        signature = inspect.signature(self.raw)
        parameters = list(signature.parameters.values())
        if parameters and parameters[0].name in ("self", "x") and "input" not in signature.parameters:
            parameters[0] = parameters[0].replace(name="input")
        if self.rule is None or "out" in signature.parameters:
            return signature.replace(parameters=parameters)
        last = bool(parameters) and parameters[-1].kind is inspect.Parameter.VAR_KEYWORD
        out = inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None)
        parameters.insert(len(parameters) - last, out)
        return signature.replace(parameters=parameters)

    def called(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of a call that may ask for more than its result."""
        if overrides.active and self.asks != "nobody":
            found = overrides.asked(args, kwargs) if self.asks == "arguments" else overrides.asked((), {})
            if found is not None:
                return overrides.handle_torch_function(self, found, *args, **kwargs)
        out = None
        if self.rule is not None and "out" in kwargs:
            out = (kwargs := dict(kwargs)).pop("out")
        if self.of_tensors:
            args, kwargs = self._given(args, kwargs), {}
            if self.operands is not None:
                self._check_operands(args)
        if out is not None:
            write = importlib.import_module("tinytorch.ops.out").into
            return self.run(lambda *args, **kwargs: write(self, out, args, kwargs), args, kwargs)
        return self.run(self.lowered if autocast.on else self.raw, args, kwargs)

    def failed(self, error: Exception, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return what the first arguments that have a say make of a call that failed with them, or raise its error."""
        if self.asks != "nobody" and overrides.first_contact(args, kwargs):
            return self.called(args, kwargs)
        if isinstance(error, AttributeError):
            raise self.not_a_tensor(error, args, kwargs) from None
        raise error

    def run(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return `function(*args, **kwargs)`, also where keywords are NumPy's names; raise PyTorch's errors."""
        try:
            return function(*args, **kwargs)
        except TypeError:
            renamed = self._renamed(kwargs)
            if renamed is None:
                raise
        except AttributeError as error:
            raise self.not_a_tensor(error, args, kwargs) from None
        return self.run(function, args, renamed)

    def _renamed(self, kwargs: dict[str, Any]) -> dict[str, Any] | None:
        """Return arguments with NumPy's names, and `input` of methods, replaced; None if all are the function's."""
        theirs = {"input": "self"} if "self" in self.names else NUMPY
        if theirs.keys().isdisjoint(kwargs):
            return None
        renamed = {key if key in self.names else theirs.get(key, key): kwargs[key] for key in kwargs}
        return None if renamed.keys() == kwargs.keys() else renamed

    def _given(self, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        """Return the arguments of a function of one or two tensors, given by place or by name, also by NumPy's."""
        names, name = self.names, self.__name__
        if len(args) > len(names):
            raise TypeError(f"{name}() takes {len(names)} positional arguments but {len(args)} were given")
        values = dict(zip(names, args, strict=False))
        for key, value in named.items():
            public = key if key in names else NUMPY.get(key, key)
            if public not in names or (public != key and public in values):
                raise TypeError(f"{name}() got an unexpected keyword argument '{key}'")
            if public in values:
                raise TypeError(f"{name}() got multiple values for argument '{public}'")
            values[public] = value
        for each in names:
            if each not in values:
                raise TypeError(f'{name}() missing 1 required positional arguments: "{each}"')
        return tuple([values[each] for each in names])

    def _check_operands(self, args: tuple[Any, ...]) -> None:
        """Raise PyTorch's error for a number where it takes a tensor alone."""
        assert self.operands is not None
        both, signatures = self.operands
        if isinstance(args[0], Tensor) and (not both or isinstance(args[1], Tensor)):
            return
        name = getattr(getattr(self.raw, "op", None), "name", "")
        name = name if name.startswith("special_") else self.name.rpartition(".")[2]
        if both:
            k = 0 if not isinstance(args[0], Tensor) else 1
            raise TypeError(
                f"{name}(): argument '{self.names[k]}' (position {k + 1}) must be Tensor, not {type(args[k]).__name__}"
            )
        if len(signatures) < 3 or not isinstance(args[1], Tensor):
            raise no_such_call(name, args, signatures)

    def not_a_tensor(self, error: AttributeError, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Exception:
        """Return PyTorch's error if what lacked an attribute is an argument that is no tensor, else that error."""
        given = error.obj
        if isinstance(given, Tensor):
            return error
        name, kind = self.name.rpartition(".")[2], type(given)
        shown = f"numpy.{kind.__name__}" if kind.__module__ == "numpy" else kind.__name__
        for argument, value in kwargs.items():
            if value is given:
                return TypeError(f"{name}(): argument '{argument}' must be Tensor, not {shown}")
        for position, (argument, value) in enumerate(zip(self.names, args, strict=False), 1):
            if value is given:
                return TypeError(f"{name}(): argument '{argument}' (position {position}) must be Tensor, not {shown}")
        return error


def _call(function: Function) -> Any:
    """Return what a call goes through: as short as can be, since all calls of public functions do."""
    raw, of_tensors = function.raw, function.of_tensors

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            if kwargs or overrides.active or autocast.on:
                if of_tensors or "out" in kwargs or overrides.active or autocast.on:
                    return function.called(args, kwargs)
                return function.run(raw, args, kwargs)
            return raw(*args)
        except Exception as error:
            if overrides.active:
                raise
            return function.failed(error, args, kwargs)

    return call


def _given(*args: Any) -> tuple[Any, ...]:
    return tuple([each for each in args if each is not _NOT_GIVEN])


def _of_operands(function: Function) -> Any:
    """As `_call`, of a function of two that does not take numbers everywhere."""
    raw = function.raw
    both = function.operands is not None and function.operands[0]

    def call(x: Any = _NOT_GIVEN, y: Any = _NOT_GIVEN, /, *more: Any, **kwargs: Any) -> Any:
        try:
            if (
                type(x) is Tensor
                and (type(y) is Tensor or (y is not _NOT_GIVEN and not both))
                and not (more or kwargs or overrides.active or autocast.on)
            ):
                return raw(x, y)
            return function.called(_given(x, y, *more), kwargs)
        except TypeError as error:
            if overrides.active:
                raise
            return function.failed(error, _given(x, y, *more), kwargs)

    return call


def namespace(module: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and the names of a module's functions, which imports where they are declared.

    Args:
        module: its name, as `tinytorch.linalg`.
    """
    home = module.partition(".")[2]

    def find(name: str) -> Any:
        function = functions.get(f"{home}.{name}")
        if function is None:
            raise AttributeError(f"module '{module}' has no attribute {name!r}")
        setattr(sys.modules[module], name, function)
        return function

    def names() -> list[str]:
        own = sys.modules[module]
        return sorted({*vars(own), *own.__all__})

    return find, names, sorted(name.rpartition(".")[2] for name in functions if name.rpartition(".")[0] == home)


# Declaring ----------------------------------------------------------------------------------------

_TENSOR_AND_NUMBER = (
    "Tensor input, Tensor other, *, Tensor out = None", "Tensor input, Number other, *, Tensor out = None",
)  # fmt: skip
_NUMBER_FIRST = (_TENSOR_AND_NUMBER[0], "Number self, Tensor other", _TENSOR_AND_NUMBER[1])
_EITHER = (_TENSOR_AND_NUMBER[0], f"{_NUMBER_FIRST[1]}, *, Tensor out = None", _TENSOR_AND_NUMBER[1])

#: Which operands of two may be numbers: whether both must be tensors, else the calls that PyTorch lists.
OPERANDS: dict[str, Operands] = {
    "tensors": (True, ()),
    "tensor first": (False, _TENSOR_AND_NUMBER),
    "number first": (False, _NUMBER_FIRST),
    "either": (False, _EITHER),
}

#: How a function runs where its thread autocasts: what makes it that.
AUTOCAST: dict[str, Callable[[Any], Any]] = {
    "op": autocast.low_op,
    "low": autocast.lowering,
    "float32": autocast.raising,
    "widest": autocast.promoting,
    "alone": autocast.leaving,
}


def public(
    name: str | None = None,
    *,
    also: str = "",
    out: str | None = None,
    autocast: str | None = None,
    operands: str | None = None,
    method: bool | str = False,
    in_place: bool | str = False,
    binds: bool | None = None,
    python: bool = False,
    asks: str = "arguments",
    listed: bool | str = True,
) -> Callable[[F], F]:
    """Make the function below public; it stays what it is.

    Args:
        name: its name below `torch`, dotted ("linalg.inv"); by default its own. "" for methods that are no function.
        also: further names, separated by spaces.
        out: how it writes into `out=`: the name of a rule in `out.RULES`. None: it has no `out`, or sees to it itself.
        autocast: how it runs where its thread autocasts: "low" (in low precision), "float32", "widest" (in the widest
            precision of its arguments), "alone" (whatever it calls runs unchanged), "op" (an op, in low precision also
            where others call it).
        operands: of a function of two that does not take numbers everywhere, one of `OPERANDS`.
        method: whether Tensor has it as a method, too, under all its names below `torch` itself; or the names.
        in_place: whether Tensor has the method `name_`, derived; "function" if `torch` has it as well.
        binds: whether it becomes a method where a class holds it; by default functions of `torch.nn.functional` and
            those that PyTorch defines in Python do.
        python: whether PyTorch defines it in `torch.functional`, in Python.
        asks: who may answer a call by `__torch_function__`: its "arguments" and the modes, "modes" alone, or "nobody".
        listed: whether `overrides.get_overridable_functions` lists it; "function": the function, but not the method.
    """

    def declare(function: F) -> F:
        raw: Any = function
        names = [raw.__name__ if name is None else name, *also.split()]
        lowered = raw
        if autocast is not None:
            lowered = _lowered[raw] = AUTOCAST[autocast](raw)
        for each in filter(None, names):
            home, _, own = each.rpartition(".")
            made = functions.get(own) if home == "nn.functional" and binds is False else None
            made = made or Function(
                each, raw, out, autocast, lowered, OPERANDS[operands] if operands else None, binds,
                python and not home, asks, bool(listed),
            )  # fmt: skip
            if functions.setdefault(each, made) is not made:
                raise TypeError(f"two functions are declared as torch.{each}")
        own = [each for each in names if "." not in each]
        bound = method.split() if isinstance(method, str) else own * method
        for each in bound:
            _bind(each, lowered)
        if listed == "function" or not (listed or any(own)):
            unlisted.update(bound)
        if in_place:
            written = core.in_place(raw)
            for each in own:
                _bind(f"{each}_", written)
                if in_place == "function":
                    functions[f"{each}_"] = Function(f"{each}_", written)
        return function

    return declare


def asking(name: str, binds: bool | None = None) -> Callable[[F], F]:
    """Make the function below public as `public` does, and ask for it, too, where other modules call it."""

    def declare(function: F) -> F:
        made: Any = Function(name, function, binds=binds)
        functions[name] = made
        return made

    return declare


def autocasting(raw: Any) -> Any:
    """Return a function as its callers get it from `torch`: changed where their thread autocasts.

    For functions that are composed of it, and are on no list of PyTorch's themselves.
    """
    return _lowered.get(raw, raw)


def members(found: dict[str, Any], listed: bool = True) -> None:
    """Give Tensor what is no public function: operators, properties, methods under names of their own.

    Args:
        found: the members, by name.
        listed: whether `overrides.get_overridable_functions` lists them.
    """
    for name, member in found.items():
        _bind(name, member)
    if not listed:
        unlisted.update(found)


def _bind(name: str, function: Any) -> None:
    if name in methods:
        raise TypeError(f"two methods are declared as Tensor.{name}")
    methods[name] = function
    setattr(Tensor, name, function)


for _name, _member in overrides.MEMBERS.items():
    setattr(Tensor, _name, _member)

_PUBLIC = ("also", "out", "autocast", "operands", "method", "in_place", "binds", "listed")


def pointwise(name: str, kernel: Callable[..., Any], **facts: Any) -> Any:
    """Return the op of a ufunc, as `core.op.pointwise` does, and make it public if the facts of `public` say how."""
    # (An input may be called `out`: what backward functions take.)
    said = {key: facts.pop(key) for key in _PUBLIC if key in facts and not callable(facts[key])}
    public_name = facts.pop("public", None)
    made = core.pointwise(name, kernel, **facts)
    return public(public_name, **said)(made) if said or public_name is not None else made
