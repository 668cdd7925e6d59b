"""Definitions for a saved program: imports of kernels, and the source of functions from outside of `kernels/`.

Functions and classes of `kernels/` are imported by name from a copy of their module. Operations in `ops/`, formulas and
optimizer steps are functions whose source can be read: `Definitions` copies it with its comments, and changes only
names that other modules define, annotations, decorators, tensors (which become arrays) and dtypes (which become
NumPy's). The objects that the source names are added to the definitions in turn.
"""

from __future__ import annotations

import ast
import builtins
import functools
import importlib
import inspect
import keyword
import re
import sys
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tinytorch.compiler.sources import FOLDER
from tinytorch.core import mode, tensor
from tinytorch.kernels import dtypes, native, programs
from tinytorch.kernels.random import Source

HOUSE, KERNELS = "tinytorch", "tinytorch.kernels."
#: The largest number of elements of an array that is written as literal numbers.
SHORT = 16
#: The value of a name whose value is not known.
NOTHING: Any = object()
#: Returns the value of a name, and a function that adds it to `Definitions`.
LookUp = Callable[[str], tuple[Any, Callable[["Definitions"], Any]]]
_COMMENT = re.compile(r" *# (fmt: skip|type: ignore|noqa).*$", re.MULTILINE)


class NotSaved(RuntimeError):
    """Why a program cannot be written to a file."""


# Replacements for functions of the package: in source from outside of `kernels/`, dtypes are NumPy's.
_STAND_INS: list[tuple[Any, Any]] = [
    (dtypes.as_dtype, np.dtype), (dtypes.checked, programs.checked), (dtypes.dtype, np.dtype),
    (dtypes.result_dtype, programs.result_dtype), (dtypes.promote_types, programs.promoted), (tensor.Tensor, ()),
]  # fmt: skip


def same(dtype: Any) -> Any:
    """Return a dtype unchanged."""
    return dtype


_STAND_INS.append((dtypes.from_numpy_dtype, same))


def _plain(value: Any) -> Any:
    """Return the replacement of a value, or the function inside a wrapper (for rare dtypes, or of `functools`)."""
    while True:
        for known, other in _STAND_INS:
            if value is known:
                return other
        if kernel_name(value) is not None or not hasattr(value, "__wrapped__"):
            return value
        around: Any = value
        house = isinstance(value, types.FunctionType) and _is_house(around.__code__.co_filename)
        if house or not isinstance(value, (types.FunctionType, *_TWINS)):
            return value
        value = around.__wrapped__


def kernel_name(value: Any) -> str | None:
    """Return the module and name by which `kernels/` has a function or class, or None."""
    module: str = getattr(value, "__module__", None) or ""
    if not module.startswith(KERNELS) or isinstance(value, types.ModuleType):
        return None
    scope, name = vars(sys.modules[module]), getattr(value, "__name__", "")
    return f"{module.removeprefix(KERNELS)}.{name}" if scope.get(name) is value else None


#: The types of native twins, if there are any.
_TWINS: Any = () if native.instructions is None else (type(native.twin(np.add)),)


def _is_house(name: str) -> bool:
    """Return whether a module (by its name) or file (by its path) belongs to this package."""
    return name == HOUSE or name.startswith((HOUSE + ".", FOLDER))


# Text -----------------------------------------------------------------------------------------------


class Definition:
    """An object that a file defines under a name, or an expression that is written where it is used.

    Attributes:
        parts: the source, with definitions in the places of names.
        wish: the preferred name; None for an expression without a name.
        name: the final name, chosen once all definitions are known.
        local: names that the source binds locally.
        kind: "import", "value" or "function".
        array: the array, if it is stored beside the file.
    """

    def __init__(self, kind: str, wish: str | None = None) -> None:
        self.kind, self.wish = kind, wish
        self.parts: list[Any] = []
        self.name = ""
        self.local: set[str] = set()
        self.array: Any = None

    def named(self) -> Iterator[Definition]:
        """Yield the definitions that its source names."""
        for each in self.parts:
            if isinstance(each, Definition) and each is not self:
                if each.wish is None:
                    yield from each.named()
                else:
                    yield each

    def is_plain(self) -> bool:
        """Return whether it is a value that depends on no function or class."""
        return self.kind == "value" and all(each.kind == "import" or each.is_plain() for each in self.named())

    @property
    def text(self) -> str:
        """The source of the definition."""
        return "".join([each if isinstance(each, str) else each.shown for each in self.parts])

    @property
    def shown(self) -> str:
        """The text by which other source refers to it: its name, or the expression itself."""
        return self.text if self.wish is None else self.name


class Text:
    """The source of a module, with the offsets of its syntax nodes, to which edits refer.

    Args:
        source: the source of the module.
    """

    def __init__(self, source: str) -> None:
        self.tree = ast.parse(source)
        lines = source.encode().splitlines(keepends=True)
        self.bytes = b"".join(lines)
        self._starts = [0]
        for line in lines:
            self._starts.append(self._starts[-1] + len(line))

    def start(self, node: Any) -> int:
        """Return the offset of the start of a node."""
        return self._starts[node.lineno - 1] + int(node.col_offset)

    def end(self, node: Any) -> int:
        """Return the offset of the end of a node."""
        return self._starts[node.end_lineno - 1] + int(node.end_col_offset)

    def of_line(self, place: int) -> int:
        """Return the offset of the start of the line that contains an offset."""
        return self.bytes.rfind(b"\n", 0, place) + 1

    def after_line(self, place: int) -> int:
        """Return the offset of the start of the line after the one that contains an offset."""
        found = self.bytes.find(b"\n", place)
        return len(self.bytes) if found < 0 else found + 1

    def parts(self, start: int, end: int, edits: list[tuple[int, int, Any]]) -> list[Any]:
        """Return the source between two offsets with the edits applied; edits inside other edits are dropped."""
        found: list[Any] = [""]
        for begin, stop, new in sorted(edits, key=lambda edit: (edit[0], edit[0] != edit[1], -edit[1])):
            if begin >= start and stop <= end:
                found[-1] += self.bytes[start:begin].decode()
                if isinstance(new, str):
                    found[-1] += new
                else:
                    found += [*(new if isinstance(new, list) else [new]), ""]
                start = stop
        found[-1] += self.bytes[start:end].decode()
        return found


@functools.lru_cache(64)
def _text_of(file: str) -> Text:
    with open(file, encoding="utf-8") as source:
        return Text(source.read())


def _bound(node: Any) -> set[str]:
    """Return the names that a function, class or comprehension binds in its own scope."""
    found: set[str] = set()
    shared: set[str] = set()
    if isinstance(node, ast.FunctionDef | ast.Lambda):
        given = node.args
        many = [each for each in (given.vararg, given.kwarg) if each is not None]
        found = {each.arg for each in [*given.posonlyargs, *given.args, *given.kwonlyargs, *many]}
    body = node.body if isinstance(node, ast.FunctionDef) else []
    waiting: list[Any] = [*body, *getattr(node, "generators", ())]
    while waiting:
        each = waiting.pop()
        if isinstance(each, ast.FunctionDef | ast.ClassDef):
            found.add(each.name)
        elif isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load):
            found.add(each.id)
        elif isinstance(each, ast.ExceptHandler) and each.name:
            found.add(each.name)
        elif isinstance(each, ast.alias):
            found.add((each.asname or each.name).partition(".")[0])
        elif isinstance(each, ast.Global | ast.Nonlocal):
            shared |= set(each.names)
        elif isinstance(each, ast.GeneratorExp | ast.ListComp | ast.SetComp | ast.DictComp):
            waiting += [one.iter for one in each.generators[:1]]
            continue
        if not isinstance(each, ast.FunctionDef | ast.ClassDef | ast.Lambda):
            waiting += list(ast.iter_child_nodes(each))
    return found - shared


class Edits(ast.NodeVisitor):
    """Collects the edits of a definition's source.

    Args:
        text: the source of the module that contains the definition.
        look_up: returns the value of a global name, or NOTHING, and a function that adds it to `definitions`.
        own: the definition.
        none: by argument, whether it is None, where this is known.
    """

    def __init__(
        self, text: Text, look_up: LookUp, own: str, definitions: Definitions, none: dict[str, bool] | None = None
    ) -> None:
        self.text, self.look_up, self.own, self.definitions = text, look_up, own, definitions
        self.none = none or {}
        self.defaults: tuple[Any, ...] = ()  # the values of the arguments' defaults
        self.found: list[tuple[int, int, Any]] = []
        self.local: set[str] = set()
        self._scopes: list[set[str]] = []
        self._kinds: list[str] = []

    def cut(self, start: int, end: int, new: Any = "") -> None:
        """Add an edit: replace the source between two offsets."""
        self.found.append((start, end, new))

    def cut_line(self, node: ast.AST) -> None:
        """Delete the lines of a statement."""
        self.cut(self.text.of_line(self.text.start(node)), self.text.after_line(self.text.end(node) - 1))

    # Names ----------------------------------------------------------------------------------------

    def value(self, node: Any) -> tuple[Any, Any]:
        """Return the value of a global name, or of a member of a module of this package, and how to add it."""
        if isinstance(node, ast.Name) and not any(node.id in scope for scope in self._scopes):
            return self.look_up(node.id)
        if isinstance(node, ast.Attribute):
            if node.attr == "kernel" and isinstance(node.value, ast.Attribute) and node.value.attr == "op":
                of, _ = self.value(node.value.value)
                kernel = of.op.kernel if hasattr(of, "op") else NOTHING
                return kernel, lambda found: found.take(kernel, self.own)
            of, _ = self.value(node.value)
            if isinstance(of, types.ModuleType) and _is_house(of.__name__):
                return _member(of, node.attr)
        return NOTHING, None

    def visit_Name(self, node: ast.Name) -> None:
        """Replace a global name by the definition of its value."""
        value, take = self.value(node)
        if value is not NOTHING:
            self.cut(self.text.start(node), self.text.end(node), take(self.definitions))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """Replace a member of a module by its definition; replace `x._array` by `x`."""
        value, take = self.value(node)
        if value is not NOTHING:
            self.cut(self.text.start(node), self.text.end(node), take(self.definitions))
            return
        if node.attr in ("_array", "numpy"):  # the array of a tensor, the NumPy dtype of a dtype
            self.cut(self.text.end(node.value), self.text.end(node))
        elif node.attr in _KINDS:
            self.cut(self.text.start(node), self.text.start(node), "(")
            self.cut(self.text.end(node.value), self.text.end(node), f'.kind in "{_KINDS[node.attr]}")')
        elif node.attr == "category":
            self.cut(self.text.start(node), self.text.start(node), [self.definitions.take(programs.category), "("])
            self.cut(self.text.end(node.value), self.text.end(node), ")")
        self.visit(node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Visit an f-string; Python reports the offsets of its expressions from 3.12 on."""
        if sys.version_info >= (3, 12):
            self.generic_visit(node)
            return
        start = self.text.start(node)
        named: dict[str, Any] = {}
        for each in ast.walk(node):
            value, take = self.value(each)
            if value is not NOTHING and not isinstance(value, types.ModuleType):
                named[ast.unparse(each)] = take
        for field in re.finditer(rb"\{[^{}]*\}", self.text.bytes[start : self.text.end(node)]):
            for name, take in named.items():
                for found in re.finditer(rb"(?<![\w.'\"])" + re.escape(name.encode()) + rb"\b", field.group()):
                    at = start + field.start()
                    self.cut(at + found.start(), at + found.end(), take(self.definitions))

    def visit_Raise(self, node: ast.Raise) -> None:
        """Replace an error whose message calls functions of the package by one with a constant message."""
        error = node.exc
        if error is None or not any(self._is_own(self.value(each)[0]) for each in ast.walk(error)):
            self.generic_visit(node)
            return
        kind = "RuntimeError"
        if isinstance(error, ast.Call) and isinstance(error.func, ast.Name) and hasattr(builtins, error.func.id):
            kind = error.func.id
        message = f"{self.own.strip('_')}: these arguments are not taken"
        self.cut(self.text.start(error), self.text.end(error), f'{kind}("{message}")')

    def _is_own(self, value: Any) -> bool:
        """Return whether a value belongs to this package, but not to `kernels/` (or belongs to its `dtypes`)."""
        module = getattr(value, "__module__", None) or ""
        return _is_house(module) and (not module.startswith("tinytorch.kernels") or "dtypes" in module)

    def visit_Call(self, node: ast.Call) -> None:
        """Remove calls that convert an array to a tensor."""
        value, _ = self.value(node.func)
        if value is tensor.wrap:
            simple = isinstance(node.args[0], ast.Call | ast.Name | ast.Attribute | ast.Subscript | ast.Constant)
            self.cut(self.text.start(node), self.text.start(node.args[0]), "" if simple else "(")
            self.cut(self.text.end(node.args[0]), self.text.end(node), "" if simple else ")")
            self.visit(node.args[0])
            return
        self.called(node)

    def called(self, node: ast.Call) -> None:
        """Visit a call; a called `x.numpy` is a method of `x`, not a member of a dtype."""
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("numpy", *_KINDS):
            self.visit(node.func.value)
        else:
            self.visit(node.func)
        for each in [*node.args, *node.keywords]:
            self.visit(each)

    def visit_For(self, node: ast.For) -> None:
        """Remove loops that notify the modes."""
        if any(self.value(each)[0] is mode.local for each in ast.walk(node.iter)):
            self.cut_line(node)
        else:
            self.generic_visit(node)

    # Scopes, decorators, annotations --------------------------------------------------------------

    def _within(self, node: Any, parts: list[Any]) -> None:
        bound = _bound(node)
        self.local |= bound
        self._scopes.append(bound)
        self._kinds.append(type(node).__name__)
        for each in parts:
            self.visit(each)
        self._scopes.pop()
        self._kinds.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Visit a nested function."""
        for each in node.decorator_list:
            value, _ = self.value(each.func if isinstance(each, ast.Call) else each)
            base = each.func if isinstance(each, ast.Call) else each
            while isinstance(base, ast.Attribute):
                base = base.value
            if value is NOTHING:
                value, _ = self.value(base)
            if isinstance(each, ast.Name) and value is NOTHING and hasattr(builtins, each.id):
                continue  # property, staticmethod
            keeps = "wraps" not in ast.unparse(each)
            if keeps and isinstance(value, types.ModuleType | types.FunctionType | type) and not _is_house(
                value.__name__ if isinstance(value, types.ModuleType) else value.__module__
            ):  # fmt: skip
                self.visit(each)
                continue
            self.cut_line(each)
        given = node.args
        self._defaults(given)
        self._without_annotations(node)
        self._within(node, node.body if self._kinds or not self.none else self._reached(node))

    def _reached(self, node: ast.FunctionDef) -> list[Any]:
        """Return the reachable statements of a function, and delete the others."""
        found: list[Any] = []
        for each in node.body:
            holds = self._holds(each.test, found) if isinstance(each, ast.If) and not each.orelse else None
            if holds is False:
                self.cut_line(each)
                continue
            found.append(each)
            if isinstance(each, ast.If) and holds and isinstance(each.body[-1], ast.Return):
                self.cut(self.text.end(each), self.text.end(node))
                break
        return found

    def _holds(self, test: ast.expr, before: list[Any]) -> bool | None:
        """Return whether `x is None` or `x is not None` holds, if that is known after some statements."""
        if not (isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and len(test.ops) == 1):
            return None
        changed = set().union(*[_stored(each) for each in before])
        is_none = None if test.left.id in changed else self.none.get(test.left.id)
        if is_none is None or ast.unparse(test.comparators[0]) != "None":
            return None
        return {ast.Is: is_none, ast.IsNot: not is_none}.get(type(test.ops[0]))

    def _without_annotations(self, node: ast.FunctionDef) -> None:
        given = node.args
        positional = [*given.posonlyargs, *given.args]
        defaults: list[Any] = [None] * (len(positional) - len(given.defaults)) + list(given.defaults)
        pairs = [*zip(positional, defaults, strict=True), *zip(given.kwonlyargs, given.kw_defaults, strict=True)]
        pairs += [(each, None) for each in (given.vararg, given.kwarg) if each is not None]
        for argument, default in pairs:
            if argument.annotation is not None:
                start = self.text.start(argument) + len(argument.arg.encode())
                if default is None:
                    self.cut(start, self.text.end(argument.annotation))
                else:
                    self.cut(start, self.text.start(default), "=")
        if node.returns is not None:
            arrow = self.text.bytes.rfind(b"->", 0, self.text.start(node.returns))
            start = len(self.text.bytes[:arrow].rstrip())
            self.cut(start, self.text.end(node.returns))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Remove an annotation."""
        if self._kinds and self._kinds[-1] == "NamedTuple":
            self.cut(self.text.start(node.annotation), self.text.end(node.annotation), "object")
        elif node.value is None:
            self.cut_line(node)
            return
        else:
            self.cut(self.text.end(node.target), self.text.start(node.value), " = ")
        if node.value is not None:
            self.visit(node.value)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        """Visit a nested function."""
        self._defaults(node.args)
        self._within(node, [node.body])

    def _defaults(self, given: ast.arguments) -> None:
        """Visit the defaults of arguments, which may name objects that existed only while the function was defined."""
        for k, default in enumerate([*given.defaults, *[each for each in given.kw_defaults if each is not None]]):
            names = [each for each in ast.walk(default) if isinstance(each, ast.Name)]
            known = all(hasattr(builtins, each.id) or self.value(each)[0] is not NOTHING for each in names)
            if known or self._kinds or k >= len(self.defaults):
                self.visit(default)
            else:
                made = self.definitions.take(self.defaults[k], self.own)
                self.cut(self.text.start(default), self.text.end(default), made)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Visit a class."""
        for each in node.bases:
            self.visit(each)
        plain = [ast.unparse(each) for each in node.bases]
        self._scopes.append(set())
        self._kinds.append("NamedTuple" if "NamedTuple" in plain else "ClassDef")
        for part in node.body:
            self.visit(part)
        self._scopes.pop()
        self._kinds.pop()

    def comprehension(self, node: Any) -> None:
        """Visit a comprehension, which has its own scope."""
        self.visit(node.generators[0].iter)
        first, *others = node.generators
        results = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        self._within(node, [*first.ifs, *others, *results])

    visit_ListComp = visit_SetComp = visit_GeneratorExp = visit_DictComp = comprehension


class _MethodEdits(Edits):
    """Collects the edits of a method's source: attributes of `self` become definitions."""

    def __init__(
        self, text: Text, look_up: LookUp, own: str, definitions: Definitions, take: Callable[[str], Definition] | None
    ) -> None:
        super().__init__(text, look_up, own, definitions)
        self._take = take

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """Replace an attribute of `self` by its definition."""
        if self._take is not None and isinstance(node.value, ast.Name) and node.value.id == "self":
            self.cut(self.text.start(node), self.text.end(node), self._take(node.attr))
        else:
            super().visit_Attribute(node)


#: Members of our dtypes (methods of tensors), with the kinds of NumPy dtypes for which they are true.
_KINDS = {"is_floating_point": "f", "is_signed": "if"}


# Definitions ----------------------------------------------------------------------------------------


class Definitions:
    """The definitions that a file needs.

    Args:
        taken: names that are in use already.

    Attributes:
        all: definitions with names, each after the definitions that it uses.
        modules: the full names of the modules of `kernels/` that the file imports.
    """

    def __init__(self, taken: set[str]) -> None:
        self.all: list[Definition] = []
        self.modules: set[str] = set()
        self._taken = {*taken, *dir(builtins), *keyword.kwlist}
        self._known: dict[Any, Definition] = {}
        self._held: list[Any] = []
        self._open: list[str] = []

    def take(self, value: Any, wish: str = "x") -> Definition:
        """Return the definition of a value.

        Raises:
            NotSaved: the value cannot be written as source.
        """
        value = _plain(value)
        key = repr(value) if _is_simple(value) else id(value)
        found = self._known.get(key)
        if found is None:
            self._held.append(value)
            found = self._made(key, value, wish)
        return found

    def _made(self, key: Any, value: Any, wish: str) -> Definition:
        if value is dtypes.get_default_dtype:
            return self._answer(key, value)
        name = kernel_name(value)
        if name is not None:
            return self.kernel(name)
        if isinstance(value, types.FunctionType) and _is_house(value.__code__.co_filename):
            return self._function(key, value, wish)
        if isinstance(value, functools._lru_cache_wrapper) and _is_house(value.__module__ or ""):
            cached: Any = value.__wrapped__
            return self._function(key, cached, wish)
        if isinstance(value, type) and _is_house(value.__module__):
            return self._class(key, value)
        if isinstance(value, Source):
            return self._generator(key, value)
        kernels = type(value).__module__.startswith(f"{HOUSE}.kernels.")
        if kernels and not isinstance(value, (dtypes.dtype, tuple, dict, *_TWINS)):
            return self._instance(key, value, wish)
        made = self._known[key] = Definition("value")
        made.parts = self._expression(value, wish)
        return made

    def kernel(self, name: str) -> Definition:
        """Return the import of a member of a module of `kernels/`; the module is copied whole."""
        found = self._known.get(("kernel", name))
        if found is None:
            found = self._known["kernel", name] = Definition("value", name.rpartition(".")[2])
            found.parts = [found, f' = kernel("{name}")']
            self.modules.add(KERNELS + name.rpartition(".")[0])
            self._add(found)
        return found

    def _instance(self, key: Any, value: Any, wish: str) -> Definition:
        """Define an instance of a class of `kernels/` by its attributes, except those that it computes on demand."""
        kind = type(value)
        made = self._known[key] = Definition("value", wish)
        later = [name for name, of in vars(kind).items() if isinstance(of, functools.cached_property)]
        pairs = [(name, each) for name, each in vars(value).items() if name not in later]
        texts = [part for name, each in pairs for part in (f"    {name}=", self.take(each, name), ",\n")]
        made.parts = [made, " = object.__new__(", self.take(kind), ")\nvars(", made, ").update(\n", *texts, ")"]
        return self._add(made)

    def _source_of(
        self, name: str, node: Any, text: Text, look_up: LookUp, key: Any, none: dict[str, bool] | None = None
    ) -> Definition:
        made = self._known[key] = Definition("function", name)
        edits = Edits(text, look_up, name, self, none)
        edits.visit(node)
        made.local = edits.local
        return self._write(made, node, text, edits)

    def _write(self, made: Definition, node: Any, text: Text, edits: Edits) -> Definition:
        own = made.wish or ""
        at = text.bytes.find(own.encode() if node.name == own else node.name.encode(), text.start(node))
        edits.cut(at, at + len(node.name.encode()), made)
        first = node.body[0]
        document = ast.get_docstring(node, clean=True)
        if document is not None and (">>>" in document):
            edits.cut(text.start(first), text.end(first), f'"""{_paragraph(document)}"""')
        lines = [text.start(each) for each in node.decorator_list]
        start = text.of_line(min([*lines, text.start(node)]))
        parts = text.parts(start, text.end(node), edits.found)
        made.parts = _tidied(parts, node.col_offset)
        return self._add(made)

    def _add(self, made: Definition) -> Definition:
        self.all.append(made)
        return made

    def _function(
        self, key: Any, function: types.FunctionType, wish: str, none: dict[str, bool] | None = None
    ) -> Definition:
        code = function.__code__
        text = _text_of(code.co_filename)
        node = _node_of(text, code)
        name = code.co_name
        if name in ("<lambda>", "call", "kernel", "work", "unary", "shared"):
            name = wish
        globals_ = looker(function.__globals__)
        cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))

        def look_up(name: str) -> Any:
            if name in cells:
                value = cells[name].cell_contents
                return value, lambda found: found.take(value, name)
            return globals_(name)

        if isinstance(node, ast.Lambda):
            return self._lambda(key, node, text, look_up, name, function.__defaults__ or ())
        self._open.append(name)
        made = self._source_of(name, node, text, look_up, key, none)
        self._open.pop()
        return made

    def method(self, function: types.FunctionType, wish: str, take: Callable[[str], Definition] | None) -> Definition:
        """Return the definition of a method as a function without `self`.

        Args:
            function: the method.
            wish: the preferred name.
            take: returns the definition of an attribute of `self`; None for a static method.
        """
        key = ("method", function)
        found = self._known.get(key)
        if found is not None:
            return found
        text = _text_of(function.__code__.co_filename)
        node = _node_of(text, function.__code__)
        made = self._known[key] = Definition("function", wish)
        edits = _MethodEdits(text, looker(function.__globals__), wish, self, take)
        if take is not None:
            first = node.args.args[0]
            comma: Any = re.compile(rb"\s*,?\s*").match(text.bytes, text.end(first))
            edits.cut(text.start(first), comma.end())
        self._open.append(function.__qualname__)
        edits.visit(node)
        self._open.pop()
        made.local = edits.local
        return self._write(made, node, text, edits)

    def rule(self, function: types.FunctionType, none: dict[str, bool]) -> Definition:
        """Return the definition of a gradient formula, without its unreachable statements.

        Args:
            function: the formula; its operations on tensors become operations on arrays.
            none: by argument, whether it is None.
        """
        key = ("rule", function, *none.items())
        found = self._known.get(key)
        return self._function(key, function, function.__name__, none) if found is None else found

    def formula(self, name: str, calls: list[list[Any]], whole: bool) -> Definition:
        """Return the definition of a function of a gradient and of saved items that calls formulas.

        Args:
            name: the preferred name.
            calls: the source of each call.
            whole: there is one call, which returns all gradients.
        """
        text = "".join([each if isinstance(each, str) else str(id(each)) for call in calls for each in call])
        found = self._known.get(("formula", text))
        if found is not None:
            return found
        made = self._known["formula", text] = Definition("function", name)
        listed = [part for k, call in enumerate(calls) for part in ([", "] if k else []) + call]
        all_ = listed if whole else ["[", *listed, "]"]
        document = "Return the gradients that there are, given that of the result."
        before = ["def ", made, f'(g, items):\n    """{document}"""\n    return [each for each in ']
        made.parts = [*before, *all_, " if each is not None]"]
        return self._add(made)

    def _lambda(
        self, key: Any, node: ast.Lambda, text: Text, look_up: LookUp, name: str, defaults: tuple[Any, ...]
    ) -> Definition:
        made = self._known[key] = Definition("function", name)
        edits = Edits(text, look_up, name, self)
        edits.defaults = defaults
        edits.visit(node)
        made.local = edits.local
        given = text.parts(text.start(node) + len("lambda"), text.start(node.body), edits.found)
        body = text.parts(text.start(node.body), text.end(node.body), edits.found)
        arguments = _stripped(given)
        several = node.body.lineno != node.body.end_lineno
        made.parts = ["def ", made, "(", *arguments, "):\n    return ", *(["(", *body, ")"] if several else body)]
        return self._add(made)

    def _class(self, key: Any, kind: type) -> Definition:
        text = _text_of(inspect.getfile(kind))
        found = [each for each in text.tree.body if isinstance(each, ast.ClassDef) and each.name == kind.__name__]
        if len(found) != 1:
            raise NotSaved(f"the class {kind.__qualname__} is not to be found in a file")
        return self._source_of(kind.__name__, found[0], text, looker(vars(sys.modules[kind.__module__])), key)

    def _answer(self, key: Any, function: Any) -> Definition:
        """Define a function that returns the value that another function returns now."""
        made = self._known[key] = Definition("function", function.__name__)
        document = _paragraph(inspect.getdoc(function) or "").partition(":")[0].rstrip(".")
        answer = function()
        shown = "()" if isinstance(answer, tuple) else self.take(answer)
        made.parts = ["def ", made, f'():\n    """{document}: as it was when this was written."""\n    return ', shown]
        return self._add(made)

    def _generator(self, key: Any, source: Source) -> Definition:
        """Define a generator of random numbers that starts with the present state of this one."""
        made = self._known[key] = Definition("value", "source")
        state = self.array(source.state(), "source_state")
        made.parts = [made, " = ", self.take(Source), f"({source.seed})\n", made, ".set_state(", state, ")"]
        return self._add(made)

    def array(self, value: Any, wish: str) -> Definition:
        """Return the definition of an array that is stored beside the file."""
        made = Definition("value", wish)
        made.array, after = laid_down(value)
        made.parts = [made, " = ", *after("arrays[", _Quoted(made), "]")]
        return self._add(made)

    def constant(self, module: Any, name: str, node: ast.expr | None, value: Any) -> Definition:
        """Return the definition of a global of a module that is neither a function nor a class.

        Args:
            node: the expression that the module assigns to it, if that determines its value.
        """
        key = (id(module), name)
        found = self._known.get(key)
        if found is not None:
            return found
        by_itself = (np.ufunc, types.BuiltinFunctionType, types.FunctionType, type, *_TWINS)
        if node is None or _is_house(type(value).__module__) or isinstance(value, by_itself):
            return self.take(value, name)
        made = self._known[key] = Definition("value", name)
        text = _text_of(module["__file__"])
        edits = Edits(text, looker(module), name, self)
        edits.visit(node)
        made.local = edits.local
        parts = text.parts(text.start(node), text.end(node), edits.found)
        several = node.lineno != node.end_lineno and not isinstance(node, ast.Tuple | ast.List | ast.Dict | ast.Call)
        made.parts = [made, " = ", *(["(", *parts, ")"] if several else parts)]
        return self._add(made)

    def imported(self, module: str, name: str | None, wish: str) -> Definition:
        """Return the definition of an import."""
        key = ("import", module, name)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = Definition("import", wish)
            if module == "numpy" and name is None:
                found.name = "np"  # every file imports it
                return found
            if name is None:
                found.parts = [f"import {module}"] if module == wish else [f"import {module} as ", found]
            else:
                found.parts = [f"from {module} import {name}"]
                found.parts += [] if name == wish else [" as ", found]
            self._taken.add(wish)
            found.name = wish
            self._add(found)
        return found

    # Values ---------------------------------------------------------------------------------------

    def _expression(self, value: Any, wish: str) -> list[Any]:
        """Return the source of an expression for a value."""
        if value is None or value is Ellipsis or type(value) in (bool, int, str, bytes, range):
            return ["..." if value is Ellipsis else repr(value)]
        if type(value) is float:
            return [repr(value) if value - value == 0 else f'float("{value!r}")']
        if type(value) is slice:
            return ["slice(", *self._listed([value.start, value.stop, value.step], wish), ")"]
        if isinstance(value, tuple) and type(value) is not tuple and hasattr(value, "_fields"):
            return self._tuple_with_names(value, wish)
        if type(value) is tuple:
            return ["(", *self._listed(value, wish), ",)" if len(value) == 1 else ")"]
        if type(value) is list:
            return ["[", *self._listed(value, wish), "]"]
        if type(value) in (set, frozenset):
            return [f"{type(value).__name__}([", *self._listed(value, wish), "])"]
        if type(value) is dict:
            pairs = [[self.take(key, wish), ": ", self.take(each, wish)] for key, each in value.items()]
            return ["{", *[part for k, pair in enumerate(pairs) for part in ([", "] if k else []) + pair], "}"]
        return self._of_numpy(value, wish)

    def _listed(self, values: Any, wish: str) -> list[Any]:
        parts: list[Any] = []
        for k, each in enumerate(values):
            parts += [", "] if k else []
            parts.append(self.take(each, wish))
        return parts

    def _tuple_with_names(self, value: Any, wish: str) -> list[Any]:
        made = Definition("value", wish)
        made.parts = [made, " = ", self.take(type(value)), "(", *self._listed(value, wish), ")"]
        return [self._add(made)]

    def _of_numpy(self, value: Any, wish: str) -> list[Any]:
        if isinstance(value, dtypes.dtype):
            value = value.numpy
        if isinstance(value, np.dtype):
            return [f"np.dtype({dtype_name(value)})" if value.names is None else f"np.dtype({value.descr!r})"]
        if isinstance(value, np.generic):
            return [f"np.{type(value).__name__}(", *self._expression(value.item(), wish), ")"]
        if isinstance(value, np.ndarray):
            return self._array(value, wish)
        if isinstance(value, functools.partial):
            pairs = [part for key, each in value.keywords.items() for part in (f", {key}=", self.take(each, key))]
            given = [part for each in value.args for part in (", ", self.take(each, wish))]
            of = self.imported("functools", None, "functools")
            return [of, ".partial(", self.take(value.func, wish), *given, *pairs, ")"]
        return self._by_name(value, wish)

    def _array(self, value: Any, wish: str) -> list[Any]:
        text = literal(value)
        if text is None:
            return [self.array(value, wish)]
        made = Definition("value", wish)
        made.parts = [made, f" = {text}"]
        return [self._add(made)]

    def _by_name(self, value: Any, wish: str) -> list[Any]:
        """Return the qualified name of an object of NumPy or of Python's standard library."""
        owner = getattr(value, "__self__", None)
        name = getattr(value, "__name__", "")
        if isinstance(value, types.ModuleType) and not _is_house(value.__name__):
            return [self.imported(value.__name__, None, wish)]
        if owner is not None and not isinstance(owner, types.ModuleType) and getattr(owner, name, None) is not None:
            return [self.take(owner, wish), f".{name}"]
        if isinstance(getattr(value, "__objclass__", None), type):
            return [self.take(value.__objclass__, wish), f".{name}"]
        if getattr(builtins, name, None) is value:
            return [name]
        module = getattr(value, "__module__", None) or "numpy"
        for where in dict.fromkeys(["numpy", "numpy.linalg", module]):
            if not _is_house(where) and getattr(importlib.import_module(where), name, None) is value:
                if where.startswith("numpy"):
                    return [f"np{where.removeprefix('numpy')}.{name}"]
                return [self.imported(where, name, name)]
        if isinstance(value, type(threading.Lock()) | type(threading.RLock())):
            return [self.imported("threading", None, "threading"), f".{type(value).__name__.strip('_').capitalize()}()"]
        what = getattr(value, "__qualname__", type(value).__qualname__)
        of = f", which {self._open[-1].strip('_')} needs," if self._open else ""
        raise NotSaved(f"{module}.{what}{of} is no function of arrays, and cannot be written without the framework")

    # Names ----------------------------------------------------------------------------------------

    def name_all(self) -> None:
        """Give every definition its name."""
        users: dict[int, list[Definition]] = {}
        for user in self.all:
            for made in user.named():
                users.setdefault(id(made), []).append(user)
        for made in self.all:
            if made.name or made.wish is None:
                continue
            forbidden = self._taken.union(*[user.local for user in users.get(id(made), ())])
            wish = re.sub(r"\W", "_", made.wish)
            name, count = wish, 1
            if wish in forbidden and not wish.endswith("_") and f"{wish}_" not in forbidden:
                name = f"{wish}_"
            while name in forbidden:
                count += 1
                name = f"{wish}_{count}"
            self._taken.add(name)
            made.name = name


def dtype_name(dtype: Any) -> str:
    """Return the expression of a NumPy dtype as an argument.

    Raises:
        NotSaved: the dtype is not built into NumPy.
    """
    if dtype.isbuiltin != 1:
        raise NotSaved(f"there are arrays of {dtype}, which NumPy has not: convert them to float32 before")
    return "np.bool_" if dtype.name == "bool" else f"np.{dtype.name}"


def literal(array: Any) -> str | None:
    """Return the expression of an array that is short, or filled with one number; else None."""
    kind = dtype_name(array.dtype)
    if not array.flags.c_contiguous or not array.size or not np.isfinite(array).all():
        return None
    if array.size <= SHORT:
        return f"np.array({array.tolist()!r}, {kind})"
    flat = array.reshape(-1).view(f"V{array.itemsize}")
    if (flat == flat[0]).all():
        number = array.reshape(-1)[0].item()
        is_zero = not number and not str(number).startswith("-")
        return f"np.zeros({array.shape}, {kind})" if is_zero else f"np.full({array.shape}, {number!r}, {kind})"
    return None


def laid_down(array: Any) -> tuple[Any, Callable[..., list[Any]]]:
    """Return an array that a file can store, and a function from its expression to that with the original strides.

    Raises:
        NotSaved: the dtype is not built into NumPy.
    """
    kind = dtype_name(array.dtype)
    order = sorted(range(array.ndim), key=lambda dim: -abs(array.strides[dim]))  # of dimensions in memory
    if array.flags.c_contiguous or array.flags.f_contiguous or not array.size:
        return array, lambda *text: [*text]
    if array.transpose(order).flags.c_contiguous:
        back = [order.index(dim) for dim in range(array.ndim)]
        return array.transpose(order), lambda *text: [*text, f".transpose({', '.join(map(str, back))})"]
    if min(array.strides) < 0 or any(step % array.itemsize for step in array.strides):
        return array, lambda *text: [*text]
    length = 1 + sum((n - 1) * (step // array.itemsize) for n, step in zip(array.shape, array.strides, strict=True))
    memory = np.lib.stride_tricks.as_strided(array, (length,), (array.itemsize,)).copy()
    return memory, lambda *text: [f"np.ndarray({array.shape}, {kind}, ", *text, f", 0, {array.strides})"]


class _Quoted(Definition):
    """The name of a definition as a string literal."""

    def __init__(self, of: Definition) -> None:
        super().__init__("value")
        self._of = of

    @property
    def shown(self) -> str:
        return f'"{self._of.name}"'


def looker(scope: dict[str, Any]) -> LookUp:
    """Return a function that looks up a global name of a module: its value, and how to add it to `Definitions`."""

    def look_up(name: str) -> tuple[Any, Any]:
        if name not in scope:
            return NOTHING, None
        value = scope[name]
        file = scope.get("__file__")
        if file is None or not _is_house(file):
            return value, lambda found: found.take(value, name)
        kind, what = _binding(file, name)
        if kind == "import":
            module, member = what
            if not _is_house(module):
                return value, lambda found: found.imported(module, member, name)
            if member is not None and not isinstance(value, types.ModuleType):
                return _member(sys.modules[module], member)
        if isinstance(value, types.ModuleType):
            return value, lambda found: found.take(value, name)
        if isinstance(value, types.FunctionType | type) or kind is None:
            return value, lambda found: found.take(value, name)
        return value, lambda found: found.constant(scope, name, what, value)

    return look_up


def _member(module: types.ModuleType, name: str) -> tuple[Any, Any]:
    """Return the value of a global of a module of the package, and how to add it to `Definitions`."""
    value = vars(module).get(name, NOTHING)
    known = any(value is each for each, _ in _STAND_INS) or value is dtypes.get_default_dtype
    if not module.__name__.startswith(KERNELS) or known or isinstance(value, (types.ModuleType, dtypes.dtype)):
        return looker(vars(module))(name)
    if isinstance(value, (bool, int, float, str)):
        return value, lambda found: found.take(value, name)
    if isinstance(value, tuple) and any(isinstance(each, dtypes.dtype) for each in value):
        return value, lambda found: found.take(value, name)
    return value, lambda found: found.kernel(f"{module.__name__.removeprefix(KERNELS)}.{name}")


@functools.lru_cache(4096)
def _binding(file: str, name: str) -> tuple[str | None, Any]:
    """Return how a module binds a name: by an import, as (module, member), or by an expression; else None."""
    found: list[tuple[str | None, Any]] = []
    for node in _text_of(file).tree.body:
        if isinstance(node, ast.Import):
            found += [
                ("import", (each.name if each.asname else each.name.partition(".")[0], None))
                for each in node.names
                if (each.asname or each.name.partition(".")[0]) == name
            ]
        elif isinstance(node, ast.ImportFrom):
            found += [("import", (node.module, each.name)) for each in node.names if (each.asname or each.name) == name]
        elif isinstance(node, ast.AnnAssign | ast.Assign) and node.value is not None:
            found += _assigned(node, name)
        elif not isinstance(node, ast.FunctionDef | ast.ClassDef) and name in _stored(node):
            return None, None  # for instance in a loop
    return found[0] if len(found) == 1 else (None, None)


def _stored(node: ast.AST) -> set[str]:
    names = [each for each in ast.walk(node) if isinstance(each, ast.Name)]
    return {each.id for each in names if not isinstance(each.ctx, ast.Load)}


def _assigned(node: Any, name: str) -> Iterator[tuple[str, Any]]:
    for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
        if isinstance(target, ast.Name) and target.id == name:
            yield "value", node.value
        elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            for each, value in zip(target.elts, node.value.elts, strict=True):
                if isinstance(each, ast.Name) and each.id == name:
                    yield "value", value


def _node_of(text: Text, code: types.CodeType) -> Any:
    """Return the syntax node of the function or lambda that a code object was compiled from."""
    found: list[Any] = []
    for node in ast.walk(text.tree):
        if isinstance(node, ast.FunctionDef):
            first = node.decorator_list[0].lineno if node.decorator_list else node.lineno
            if node.name == code.co_name and first == code.co_firstlineno:
                return node
        elif isinstance(node, ast.Lambda) and code.co_name == "<lambda>" and node.lineno == code.co_firstlineno:
            found.append(node)
    same = [each for each in found if len(found) == 1 or _is_alike(each, code)]
    if len({ast.dump(each) for each in same}) == 1:
        return same[0]
    raise NotSaved(f"the source of {code.co_name} ({code.co_filename}:{code.co_firstlineno}) is not to be found")


def _is_alike(node: ast.Lambda, code: types.CodeType) -> bool:
    names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)}
    bound = _bound(node)
    given = node.args
    arguments = [each.arg for each in [*given.posonlyargs, *given.args, *given.kwonlyargs]]
    own = list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
    made: Any = compile(ast.fix_missing_locations(ast.Expression(node)), "", "eval").co_consts[0]
    return (
        arguments == own
        and names - bound >= set(code.co_freevars)
        and [each for each in made.co_consts if isinstance(each, int | float | str)]
        == [each for each in code.co_consts if isinstance(each, int | float | str)]
        and {*made.co_names, *made.co_freevars} == {*code.co_names, *code.co_freevars}
    )


def _is_simple(value: Any) -> bool:
    """Return whether a value is written as a literal where it is used."""
    if type(value) is tuple:
        return all(_is_simple(each) for each in value)
    return type(value) in (bool, int, str) or (type(value) is float and value != 0)


def _paragraph(document: str) -> str:
    return document.partition("\n\n")[0].replace("\n", " ")


def _stripped(parts: list[Any]) -> list[Any]:
    """Return the parameters of a lambda without surrounding white space."""
    first, *others = parts
    parts = [first.lstrip() if isinstance(first, str) else first, *others]
    last = parts[-1].rstrip()
    return [*parts[:-1], last.removesuffix(":").rstrip()]


def _tidied(parts: list[Any], indent: int) -> list[Any]:
    """Return parts of source without comments for linters, with `indent` fewer columns of indentation."""
    found: list[Any] = []
    for k, each in enumerate(parts):
        if isinstance(each, str):
            lines = _COMMENT.sub("", each).split("\n")
            first = [] if k == 0 else lines[:1]  # text after a name continues a line
            others = [line if line[:indent].strip() else line[indent:] for line in lines[len(first) :]]
            found.append("\n".join([*first, *others]))
        else:
            found.append(each)
    return found


__all__ = [
    "NOTHING", "Definition", "Definitions", "Edits", "LookUp", "NotSaved", "Text", "dtype_name", "laid_down", "literal",
    "looker",
]  # fmt: skip
