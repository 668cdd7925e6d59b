"""Registration of public functions: each op or tensor function states all its properties once, at its declaration.

    hypot = pointwise("hypot", np.hypot, x=…, y=…, method=True, in_place=True, out="promoted", of_tensors=True)

    @public(method=True, out="diff", also="special.diff")
    def diff(input, n=1, dim=-1): ...

`pointwise` declares an op (see `core/op.py`) and makes it public at once; the decorator `public` publishes an `@op`, or
a composite function. The module attribute stays the raw function, which other ops and gradient formulas call.
Users get a `Function` wrapper around it, which handles `out=`, NumPy's argument names, autocasting and
`__torch_function__`, and costs next to nothing when a call uses none of these. Methods of Tensor bypass the wrapper.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from types import MethodType
from typing import Any, TypeVar

from tinytorch.core import native
from tinytorch.core import op as core
from tinytorch.core.declaration import Op
from tinytorch.core.layout import NoArray
from tinytorch.core.mode import function_modes, plain, traced_as
from tinytorch.core.notes import leave
from tinytorch.core.supplied import declare_members, left_out, outputs, sparse
from tinytorch.core.tensor import Tensor, received
from tinytorch.ops import autocast, overrides
from tinytorch.ops.signature import UNTOLD, again, no_such_call

__all__ = [
    "Builtin", "Function", "asking", "autocasting", "functions", "namespace", "no_such_call", "pointwise", "public",
]  # fmt: skip

F = TypeVar("F")

#: Public functions by their dotted names below `torch`: "prod", "linalg.inv", "nn.functional.relu".
functions: dict[str, Function] = {}
_lowered: dict[Any, Any] = {}


def also_by(**names: str) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that accepts alternative keyword names, of other PyTorch overloads or of NumPy."""

    def declare(function: Callable[..., Any]) -> Any:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if kwargs and not names.keys().isdisjoint(kwargs):
                kwargs = {names.get(key, key): value for key, value in kwargs.items()}
            return function(*args, **kwargs)

        call.also = getattr(function, "also", {}) | names  # type: ignore[attr-defined]
        return call

    return declare


class Builtin(staticmethod):  # type: ignore[type-arg]
    """A function that does not become a bound method as a class attribute, like PyTorch's builtin functions."""

    __slots__ = ()
    __objclass__ = staticmethod  # (lets doctest find the examples in the module that defines the function)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self

    def __repr__(self) -> str:
        return f"<built-in function torch.{self.__name__}>"

    def __reduce__(self) -> str:
        return self.__name__  # pickled by name; a copy is the same object

    @property
    def path(self) -> str:
        """The name that `overrides.resolve_name` returns for the function."""
        return f"torch.{self.__name__}"


class Function(Builtin):
    """A public function; as a class attribute it binds as a method exactly if PyTorch's function does.

    Attributes:
        binds: whether the function becomes a bound method when read from an instance.
        name: the dotted name below `torch`.
        raw: the declared function, which computes the result.
        rule: how the function writes into `out` (a key of `out.RULES`), or None.
        autocast: how autocasting changes the function (a key of `AUTOCAST`), or None.
        lowered: the variant of `raw` that runs under autocasting.
        python: whether PyTorch defines the function in `torch.functional`, in Python.
        asks: whose `__torch_function__` may handle a call (see `public`).
        listed: whether `overrides.get_overridable_functions` lists the function.
        operands: whether two operands may not both be numbers.
        forms: the signatures in PyTorch's error, of a function that has several.
    """

    __slots__ = (
        "__weakref__", "asks", "autocast", "binds", "forms", "listed", "lowered", "name", "names", "operands", "python",
        "raw", "rule",
    )  # fmt: skip

    def __init__(
        self, name: str, raw: Any, rule: str | None = None, autocast: str | None = None, lowered: Any = None,
        operands: bool = False, binds: bool | None = None, python: bool = False, asks: str = "arguments",
        listed: bool = True, forms: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        self.name, self.raw, self.rule, self.operands = name, raw, rule, operands
        self.autocast, self.lowered = autocast, raw if lowered is None else lowered
        self.python, self.asks, self.listed, self.forms = python, asks, listed, forms
        code = getattr(inspect.unwrap(raw), "__code__", None)
        self.names: tuple[str, ...] = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if code else ()
        call = _call(self)
        call.__doc__ = raw.__doc__
        home, _, own = name.rpartition(".")
        self.binds = (home not in ("", "fft", "linalg", "special") or python) if binds is None else binds
        call.__name__ = call.__qualname__ = f"{home}_{own}" if home in ("fft", "linalg", "special") else own
        call.__module__ = f"{sys.modules['tinytorch'].__name__}.{home}".rstrip(".")
        call.__wrapped__ = raw
        super().__init__(native.asking(call, raw))

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
        """The name that `overrides.resolve_name` returns: of several aliases the one that PyTorch returns."""
        shared = functions.get(f"nn.functional.{self.name}") is self
        return f"torch.{'functional.' if self.python else 'nn.functional.' if shared else ''}{self.name}"

    @property
    def op(self) -> Op:
        """The op, if the function is one."""
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
        """Return the result of a call that may involve `out=` or autocasting."""
        out = None
        if self.rule is not None and "out" in kwargs:
            out = (kwargs := dict(kwargs)).pop("out")
        if self.operands:
            args, kwargs = self.op.bind(args, kwargs), {}
            first, second = [isinstance(each, Tensor) for each in args]
            if not first and (len(self.forms) < 3 or not second):
                raise no_such_call(self.__name__, args, self.forms)
        if out is not None:
            return outputs.into(self, out, args, kwargs)
        return (self.lowered if autocast.on else self.raw)(*args, **kwargs)

    def answered(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return what a mode, or the class of an argument, makes of a call; NotImplemented if it is as usual."""
        if self.asks != "nobody":
            found = overrides.asked(args, kwargs) if self.asks == "arguments" else overrides.asked((), {})
            if found is not None:
                return overrides.handle_torch_function(self, found, *args, **kwargs)
        return received(self.name, self, args, kwargs)

    def failed(self, error: Exception, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of a failed call with corrected arguments; else raise PyTorch's error."""
        if isinstance(error, NoArray):
            raise sparse.refused(self.name, args, kwargs, error) from None
        if not isinstance(error, UNTOLD):
            raise error
        return again(
            error, lambda *args, **named: self.called(args, named), self.__name__, self.raw, args, kwargs, self
        )


def _call(function: Function) -> Any:
    """Return the function's entry point; it is minimal since every public call runs it."""
    raw, operands, modes, sequences = function.raw, function.operands, function_modes, (list, tuple)

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            for each in args if not kwargs else (*args, *kwargs.values()):
                kind = type(each)
                if (
                    kind is not Tensor
                    and kind not in plain
                    and not (kind in sequences and plain.issuperset(map(type, each)))
                ):
                    break
            else:
                if not (kwargs or modes.on or autocast.on) and (
                    not operands or (len(args) == 2 and type(args[0]) is Tensor)
                ):
                    try:
                        return raw(*args)
                    except Exception as error:
                        return function.failed(error, args, kwargs)
                kind = Tensor
            if modes.on or kind not in plain:
                made = function.answered(args, kwargs)
                if made is not NotImplemented:
                    return made
            try:
                if operands or "out" in kwargs or autocast.on:
                    return function.called(args, kwargs)
                return raw(*args, **kwargs)
            except Exception as error:
                return function.failed(error, args, kwargs)
        except Exception:
            leave()
            raise

    return call


def namespace(module: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and the function names of a module like `tinytorch.linalg`, for its `__all__`."""
    home = module.partition(".")[2]

    def find(name: str) -> Any:
        function = functions.get(f"{home}.{name}")
        if function is None:
            raise left_out.error(module, name)
        setattr(sys.modules[module], name, function)
        return function

    def names() -> list[str]:
        own = sys.modules[module]
        return sorted({*vars(own), *own.__all__})

    return find, names, sorted(name.rpartition(".")[2] for name in functions if name.rpartition(".")[0] == home)


# Declarations -------------------------------------------------------------------------------------

_TENSOR_AND_NUMBER = (
    "Tensor input, Tensor other, *, Tensor out = None", "Tensor input, Number other, *, Tensor out = None",
)  # fmt: skip
_NUMBER_FIRST = (_TENSOR_AND_NUMBER[0], "Number self, Tensor other", _TENSOR_AND_NUMBER[1])
_EITHER = (_TENSOR_AND_NUMBER[0], f"{_NUMBER_FIRST[1]}, *, Tensor out = None", _TENSOR_AND_NUMBER[1])

#: Which of two operands may be a number: the signatures in PyTorch's error.
OPERANDS = {"tensor first": _TENSOR_AND_NUMBER, "number first": _NUMBER_FIRST, "either": _EITHER}

#: The transformations of functions for autocasting, by the names that declarations use.
AUTOCAST: dict[str, Callable[[Any], Any]] = {
    "op": autocast.low_op,
    "low": autocast.lowering,
    "float32": autocast.raising,
    "widest": autocast.promoting,
    "alone": autocast.leaving,
}


_ASKED = ("arguments", "modes", "nobody")


def public(
    name: str | None = None,
    *,
    also: str = "",
    out: str | None = None,
    autocast: str | None = None,
    operands: str | None = None,
    forms: tuple[str, ...] = (),
    method: bool | str = False,
    in_place: bool | str = False,
    binds: bool | None = None,
    python: bool = False,
    asks: str = "arguments",
    listed: bool | str = True,
    traced: str | None = None,
) -> Callable[[F], F]:
    """Return a decorator that makes a function public, and returns it unchanged.

    Args:
        name: the dotted name below `torch` ("linalg.inv"); by default `__name__`. "" for a method without a function.
        also: aliases, separated by spaces.
        out: how the function writes into `out=`: a key of `out.RULES`; None if it has no `out`, or handles it itself.
        autocast: how the function runs under autocasting: "low" (in low precision), "float32", "widest" (in the widest
            precision of the arguments), "alone" (autocasting is off inside it), "op" (an op that runs in low precision
            also when called by other functions).
        operands: which of two operands may be a number (a key of `OPERANDS`); None if any may.
        forms: the signatures that PyTorch lists in its error, of a function that has several.
        method: whether the function is also a method of Tensor, under all its undotted names; or the methods' names.
        in_place: whether to derive the method `name_` of Tensor; "function" if `torch` has `name_` as well.
        binds: whether the function becomes a bound method as a class attribute; by default those of
            `torch.nn.functional`, and those that PyTorch defines in Python, do.
        python: whether PyTorch defines the function in `torch.functional`, in Python.
        asks: whose `__torch_function__` may handle a call: "arguments" (and modes), "modes" alone, or "nobody".
        listed: whether `overrides.get_overridable_functions` lists the function and method; "function": not the method.
        traced: how `torch.compile` treats the function: a policy of `core.mode.traced_as`.
    """
    chosen: tuple[tuple[Any, Any], ...] = (operands, OPERANDS), (autocast, AUTOCAST), (asks, _ASKED)
    for value, known in chosen:
        if value is not None and value not in known:
            raise TypeError(f"{value!r} is none of {', '.join(known)}")

    def declare(function: F) -> F:
        raw: Any = traced_as(traced)(function) if traced else function
        names = [raw.__name__ if name is None else name, *also.split()]
        lowered = raw
        if autocast is not None:
            lowered = _lowered[raw] = AUTOCAST[autocast](raw)
        for each in filter(None, names):
            home, _, own = each.rpartition(".")
            made = functions.get(own) if home == "nn.functional" and binds is False else None
            made = made or Function(
                each, raw, out, autocast, lowered, bool(operands), binds, python and not home, asks, bool(listed),
                OPERANDS[operands] if operands else forms,
            )  # fmt: skip
            if functions.setdefault(each, made) is not made:
                raise TypeError(f"two functions are declared as torch.{each}")
        own = [each for each in names if "." not in each]
        bound = method.split() if isinstance(method, str) else own * method
        declare_members(dict.fromkeys(bound, lowered), listed != "function" and bool(listed or any(own)), raw)
        if in_place:
            written = core.in_place(raw)
            for each in own:
                declare_members({f"{each}_": written})
                if in_place == "function":
                    functions[f"{each}_"] = Function(f"{each}_", written)
        return function

    return declare


def asking(name: str, binds: bool | None = None) -> Callable[[F], F]:
    """Make a function public as `public` does; calls from other modules, too, dispatch to `__torch_function__`."""

    def declare(function: F) -> F:
        made: Any = Function(name, function, binds=binds)
        functions[name] = made
        return made

    return declare


def autocasting(raw: Any) -> Any:
    """Return a raw function's variant that respects autocasting, like the public function.

    For composite functions that call `raw`, and are not on PyTorch's autocast lists themselves.
    """
    return _lowered.get(raw, raw)


_PUBLIC = ("also", "out", "autocast", "operands", "forms", "method", "in_place", "binds", "listed")


def pointwise(name: str, kernel: Callable[..., Any], **facts: Any) -> Any:
    """Return the op of a ufunc, as `core.op.pointwise` does; make it public if `facts` has arguments of `public`."""
    # (A callable `out` is the gradient formula of an input named `out`, as backward ops have.)
    said = {key: facts.pop(key) for key in _PUBLIC if key in facts and not callable(facts[key])}
    public_name = facts.pop("public", None)
    made = core.pointwise(name, kernel, **facts)
    return public(public_name, **said)(made) if said or public_name is not None else made
