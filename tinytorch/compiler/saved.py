"""A saved program: a module that needs NumPy alone, and an `.npz` file beside it with its arrays and kernels.

An `.npz` file is a zip file, and Python can import modules from it: the modules of `kernels/` that the program calls,
and those that these import (relatively), are copied into it as they are, as a package. The module has the source of the
program as it is, and above it a line for each object that the source names. Parameters, buffers and gradients are
arrays in dictionaries, by their names in the state dict of the model.
"""

from __future__ import annotations

import ast
import builtins
import functools
import hashlib
import importlib.util
import itertools
import json
import keyword
import os
import re
import runpy
import sys
import tempfile
import threading
import types
import zipfile
from collections.abc import Callable, Container
from pathlib import Path
from typing import Any

import numpy as np

from tinytorch.autograd.grad_mode import no_grad
from tinytorch.compiler.batches import Unlike, arguments, of_any_batch
from tinytorch.compiler.entry import Entry
from tinytorch.compiler.program import BATCH
from tinytorch.compiler.recorder import expression
from tinytorch.core.names import module_of
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.func.pytree import tree_map_only
from tinytorch.kernels import dtypes, parallel
from tinytorch.kernels.random import Source
from tinytorch.nn.modules.module import Module
from tinytorch.nn.parameter import Parameter
from tinytorch.optim.lr_scheduler import LRScheduler
from tinytorch.optim.optimizer import Optimizer

KERNELS = "tinytorch.kernels."
WIDTH = 120
#: The largest number of elements of an array that is written as literal numbers.
SHORT = 16

_HEAD = '''"""`{name}` as a program of NumPy calls, which `torch.compile` has made and `save` has written.

It needs NumPy, and the `.npz` file beside it, which has its arrays and kernels. Buffers are used again:
one call at a time.
{arguments}
The kernels are the definitions in NumPy: with these (`TINYTORCH_NATIVE=0`) the compiled function gives
the same, bit for bit; its native kernels may round otherwise.
"""

import functools
import importlib
import sys
import types
from pathlib import Path

import numpy as np

path = Path(__file__).with_suffix(".npz")
with np.load(path) as file:
    arrays = {{name: file[name] for name in file.files if not name.startswith("{package}/")}}

#: The modules of kernels, which Python imports from the `.npz` file: it is a zip file.
package = sys.modules.setdefault("{package}", types.ModuleType("{package}"))
package.__path__ = [str(path / "{package}")]
importlib.invalidate_caches()  # the file may have been written anew


def kernel(name):
    """Return a kernel by its module and name."""
    module, _, member = name.rpartition(".")
    return getattr(importlib.import_module(f"{{package.__name__}}.{{module}}"), member)


kernel("parallel.set_threads")({threads})
kernel("dtypes.set_default_dtype")(kernel("dtypes.{dtype}"))
'''
_STATE = '''

def state_dict():
    """Return the parameters and buffers by their names in the model."""
    return {{**parameters, **buffers{tied}}}


def load_state_dict(state):
    """Write arrays, by name, into the parameters and buffers; names of what the program does not use have no effect."""
    kernel("programs.write")({{**parameters, **buffers}}, state)
    program.cache_clear()
'''
_UPDATES = '''

def {name}():
    """Update the parameters that have gradients, as {kind} does."""
    for group in {short}_groups:
        for name in group["params"]:
            if gradients.get(name) is not None:
                {short}_update(parameters[name], gradients[name], {short}_state[name], group)

'''


class NotSaved(RuntimeError):
    """Why a program cannot be written to a file."""


class Saved:
    """The source of the module for a program, and what is stored beside it.

    Args:
        function: the compiled function.
        entry: the program, with its guards.
        name: the name of the function.

    Attributes:
        text: the source of the module.
        arrays: the arrays that are stored beside the module, by name; `files` are the modules of kernels, by path.
        arguments: by name of each argument of `step`, its shape and dtype, and whether it is contiguous.
        batched: the arguments whose first dimension may have any size.

    Raises:
        NotSaved: the program needs an object that cannot be written without the framework.
    """

    def __init__(self, function: Callable[..., Any], entry: Entry, name: str) -> None:
        self.arrays: dict[str, Any] = {}
        self.arguments: dict[str, tuple[Any, Any, bool]] = {}
        self._entry, program = entry, entry.programs[0]
        self._layout, self._scope = program.layout, program.scope
        self.batched: list[str] = []
        self._tensors: dict[str, Tensor] = {}  # tensors that the calls share, by name in the model
        self._keys: dict[str, str] = {}  # by name of an input, that of its tensor
        self._tied: dict[str, str] = {}  # by further names of a tensor, the first one
        self._state: Container[int] = ()  # the ids of what is in state dicts
        self._grads: dict[str, str] = {}  # by name of an input that is a gradient, that of its tensor
        self._modules = {f"{KERNELS}parallel", f"{KERNELS}dtypes"}  # modules of kernels that are imported
        self._lines: list[str] = []  # the lines that define the objects which the program names
        self._known: dict[int, str] = {}  # the names of these objects, by id
        self._sort()
        self._name(function)
        body = self._program(program.source.splitlines())
        before = [*self._parameters(), *self._gradients(), _title("Kernels"), *self._objects()]
        package, self.files = _package(self._modules)
        given = [
            f"    {each}: an array of shape {self._shape(each)}, {of[1].name}." for each, of in self.arguments.items()
        ]
        listed = "\n".join(["", f"`step({', '.join(self.arguments)})` takes:", *given, ""]) if given else ""
        head = _HEAD.format(
            name=name, arguments=listed, package=package, threads=parallel.get_threads(),
            dtype=dtypes.get_default_dtype().name,
        )  # fmt: skip
        text = "\n".join([head, *before, _title("The program"), *body, "", *self._step(name)])
        self.text = re.sub(r"\n{4,}", "\n\n\n", re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE))

    # Inputs ---------------------------------------------------------------------------------------

    def _sort(self) -> None:
        """Separate the inputs that are arguments of each call from those that the function finds elsewhere."""
        scope = self._entry.enter.__globals__
        places: dict[Any, str] = {}  # the names of inputs, by expression, and by id of a tensor
        for k, (name, each) in enumerate(zip(self._layout.inputs, self._entry.inputs, strict=True)):
            places[each.where] = name
            of = each.where.removesuffix("._grad")
            leaf = places.get(of) or places.get(id(scope.get(of)))
            if of != each.where and leaf is not None:
                self._grads[name] = leaf
            elif each.where.startswith(("args[", "kwargs[")):
                self.arguments[name] = each.shape, each.dtype, each.contiguous
                if each.where in self._entry.batched:
                    self.batched.append(name)
            else:
                found = scope[f"t{k}"] if each.stays else eval(each.where, scope)
                if found._array.shape != each.shape or found._array.dtype != each.dtype:
                    raise NotSaved(f"{name} has another shape or dtype now than when the program was made")
                self._tensors[name] = found
                places[id(found)] = name

    def _name(self, function: Any) -> None:
        """Name the tensors: those of a module as its state dict does, and in this order; others as variables.

        The names of modules other than the model, which is what is compiled, or else the only module that has
        parameters, come before those of their tensors.
        """
        owner, scope = getattr(function, "__self__", function), self._entry.enter.__globals__
        met = {id(x): x for x in (owner, *scope.values()) if isinstance(x, Module)}
        met = {id(x): x for x in [x._modules.get("_orig_mod") or x for x in met.values()]}
        inner = {id(x) for outer in met.values() for x in outer.modules() if x is not outer}
        outer = [x for key, x in met.items() if key not in inner]
        found, self._tensors = self._tensors, {}
        given = {id(x): name for name, x in found.items()}
        trained = [x for x in outer if not given.keys().isdisjoint(map(id, x.parameters()))]
        model = owner if owner in outer else trained[0] if len(trained) == 1 else None
        names: dict[int, list[str]] = {}
        for module in outer:
            called = self._entry.called.get(id(module)) or type(module).__name__.lower()
            state = module.state_dict(prefix="" if module is model else f"{called}.", keep_vars=True)
            for name, x in state.items():
                names.setdefault(id(x), []).append(name)
        self._state = names.keys()
        for key in [key for key in {**names, **given} if key in given]:
            name, *others = names.get(key, [given[key]])
            name = self._keys[given[key]] = unique(name, self._tensors)
            self._tensors[name] = found[given[key]]
            self._tied |= dict.fromkeys(others, name)
        self._grads = {name: self._keys.get(of, of) for name, of in self._grads.items()}

    def _input(self, name: str) -> str:
        """Return the expression of an input in `step`, or where `bind` is called."""
        if name in self._grads:
            return f"gradients[{_quoted(self._grads[name])}]"
        return self._place(self._keys[name]) if name in self._keys else name

    def _place(self, key: str) -> str:
        """Return the expression of the array of a tensor that the calls share."""
        x = self._tensors[key]
        kind = "buffers" if id(x) in self._state else "others"
        return f"{'parameters' if isinstance(x, Parameter) or x._requires_grad else kind}[{_quoted(key)}]"

    def _leaf(self, name: str) -> str:
        """Return the name of a tensor whose `.grad` the program sets."""
        tensor = self._scope.get(name)
        names = [each for each, x in self._tensors.items() if x is tensor]
        return names[0] if names else name.removesuffix("_tensor")

    def _parameters(self) -> list[str]:
        texts: dict[str, list[str]] = {"parameters": [], "buffers": [], "others": []}
        stored: dict[Any, str] = {}  # by place in memory: parameters may share it
        for key, x in self._tensors.items():
            place = x._array.__array_interface__["data"], x._array.shape, x._array.strides
            stored[place] = stored.get(place) or self.stored(key, x._array)
            texts[self._place(key).partition("[")[0]].append(f"    {_quoted(key)}: {stored[place]},")
        lines = ["", "#: What was there before the calls, by name; training changes it. No state dict has the others."]
        for kind, each in texts.items():
            lines += [f"{kind} = {{", *each, "}"] if each else [f"{kind} = {{}}"]
        return lines if self._tensors else []

    def _gradients(self) -> list[str]:
        """Return the lines that define the gradients that exist before the first call."""
        leaves = [self._leaf(leaf) for leaf, _ in self._layout.gradients.values()]
        names = dict.fromkeys([*self._grads.values(), *leaves])
        entries = []
        for name in names:
            leaf = self._tensors.get(name)
            if leaf is not None and leaf._grad is not None:
                entries.append(f"    {_quoted(name)}: {self.stored(f'{name}.grad', leaf._grad._array)},")
            elif name in self._grads.values():
                raise NotSaved(f"the program adds to the gradient of {name}, which has none now")
        texts = ["gradients = {", *entries, "}"] if entries else ["gradients = {}"]
        return ["", "#: By name, as they are after the last call.", *texts] if names else []

    # The program ----------------------------------------------------------------------------------

    def _program(self, lines: list[str]) -> list[str]:
        """Return the lines of the program, with gradients in a dictionary."""
        for k, (leaf, gradient) in self._layout.gradients.items():
            indent = lines[k][: len(lines[k]) - len(lines[k].lstrip())]
            lines[k] = f"{indent}gradients[{_quoted(self._leaf(leaf))}] = {gradient}"
        return lines

    def _step(self, name: str) -> list[str]:
        """Return the lines that call `bind`, and those of `step`."""
        layout = self._layout
        pairs = list(zip(layout.inputs, self._entry.inputs, strict=True))
        bound = [self._input(each) for each, given in pairs if given.stays]
        bound += [self.value(array, key) for key, array in layout.constants.items()]
        given = [self._input(each) for each, given in pairs if not given.stays] + ["None"] * len(layout.tensors)
        results = [f"result_{k}" for k in range(len(layout.results))]
        checks = []
        for argument, (_, dtype, contiguous) in self.arguments.items():
            order = "" if contiguous else ", None"
            checks.append(
                f'    {argument} = checked("{argument}", {argument}, {self._shape(argument, first=argument)}, '
                f"{self.value(dtype, 'dtype')}{order})"
            )
            if self.batched[:1] == [argument]:
                checks.append(f"    {BATCH} = len({argument})")
        size = [BATCH] if self.batched else []
        tied = "".join([f", {_quoted(name)}: {self._place(first)}" for name, first in self._tied.items()])
        state = _STATE.format(tied=tied) if self._tensors else ""
        program = f"{'= ' if results else ''}program({', '.join(size)})"
        return [
            "", "", "@functools.lru_cache(8)", f"def program({', '.join(size)}):",
            '    """Return the program, which has buffers of its own for each batch size."""',
            *_filled("    return bind(", [*bound, *size], ")"), state, "", '@np.errstate(all="ignore")',
            f"def step({', '.join(self.arguments)}):", f'    """Do what `{name}` does."""', *checks,
            f"    {''.join([f'{each}, ' for each in results])}{program}({', '.join(given)})",
            f"    return {self._returned(results)!r}", "",
        ]  # fmt: skip

    def _returned(self, results: list[str]) -> Any:
        """Return the result with the expressions of arrays in the place of tensors; of objects, what they hold."""
        names = _Names({f"r{k}": _Text(name) for k, name in enumerate(results)})
        names |= {f"t{k}": _Text(self._input(name)) for k, name in enumerate(self._layout.inputs)}
        names |= dict.fromkeys(["wrap", "written", "viewed", "spent", "Size"], _first)
        names["node"] = types.SimpleNamespace(result=_first, viewed=_first)
        names["rebuilt"] = lambda kind, items, attributes: attributes if items == () else items
        names["args"] = names["kwargs"] = _Names()
        return eval(self._entry.returned, {}, names)

    def _shape(self, argument: str, first: str = "") -> str:
        """Return the expression of an argument's shape; `first` may be the argument that determines the batch size."""
        shape, *_ = self.arguments[argument]
        if argument not in self.batched:
            return repr(tuple(shape))
        size = "None" if first == self.batched[0] else BATCH
        return _tuple([size, *map(repr, shape[1:])])

    def _objects(self) -> list[str]:
        """Return the lines that define the objects which the program names."""
        if self.arguments:
            self._lines.append(f"checked = {self._kernel('programs.checked')}")
        used = set(re.findall(r"\w+", re.sub(r"#.*", "", self._entry.programs[0].source)))
        for name, value in self._scope.items():
            if name in used and name not in ("np", "bind", "wrap", "written") and not isinstance(value, Tensor):
                owner = _owner(value)
                if isinstance(owner, LRScheduler):
                    raise NotSaved(
                        f"the step of a scheduler, {type(owner).__name__}, is no function of arrays: call it outside "
                        "of what is compiled, and set the options of the optimizer in the module"
                    )
                if isinstance(owner, Optimizer):
                    self._lines += self._updates(owner, name)
                elif id(value) in self._known:
                    self._lines.append(f"{name} = {self._known[id(value)]}")
                else:
                    self._define(name, value)
        return self._lines

    # Optimizers -----------------------------------------------------------------------------------

    def _updates(self, optimizer: Optimizer, name: str) -> list[str]:
        """Return the lines that define an optimizer's step: its options, by group, and its state, by parameter."""
        kind, short = type(optimizer).__name__, name.removesuffix("_step")
        update = home_of(getattr(optimizer._update, "kernel", None))
        if type(optimizer).step is not Optimizer.step or update is None:
            raise NotSaved(f"{kind} has a step of its own, which cannot be written without the framework")
        groups, states = [], []
        for group in optimizer.param_groups:
            if group.get("capturable"):
                raise NotSaved("capturable is for accelerators")
            named = {id(x): key for key, x in self._tensors.items()}
            params = [(named[id(p)], p) for p in group["params"] if id(p) in named]
            left_out = ("params", "param_names", "foreach", "fused", "differentiable", "capturable")
            options = {key: self._option(value, key) for key, value in group.items() if key not in left_out}
            groups += ["    {", *_filled('        "params": [', [_quoted(key) for key, _ in params], "],")]
            groups += [*[f'        "{key}": {text},' for key, text in options.items()], "    },"]
            for key, p in params:
                state = optimizer.state.get(p) or optimizer._new_state(p, group)
                texts = [
                    f'"{part}": '
                    + (self.stored(f"{key}.{part}", x._array) if isinstance(x, Tensor) else self._option(x, part))
                    for part, x in state.items()
                ]
                states += _filled(f"    {_quoted(key)}: {{", texts, "},")
        return [
            "", f"#: The options of {kind}, by group, and what it keeps, by parameter.",
            f"{short}_groups = [", *groups, "]", f"{short}_state = {{", *states, "}",
            f"{short}_update = {self._kernel(update)}", _UPDATES.format(name=name, kind=kind, short=short),
        ]  # fmt: skip

    def _option(self, value: Any, name: str) -> str:
        return self.value(tree_map_only(Tensor, float, value), name)

    # Objects --------------------------------------------------------------------------------------

    def _define(self, name: str, value: Any) -> None:
        """Add the lines that define an object under a name."""
        if isinstance(value, Source):  # a generator of random numbers goes on where it is now
            self._lines += [
                f"{name} = {self.value(Source, name)}({value.seed})",
                f"{name}.set_state({self.stored(f'{name}_state', value.state())})",
            ]
        else:
            self._lines.append(f"{name} = {self.value(value, name)}")
        self._known[id(value)] = name

    def value(self, value: Any, name: str) -> str:
        """Return the expression of a value; `name` is the preferred name of an array that is stored.

        Raises:
            NotSaved: the value has no expression without the framework.
        """
        if id(value) in self._known:
            return self._known[id(value)]
        return expression(value, functools.partial(self._object, name))

    def _object(self, name: str, value: Any) -> str:
        """Return the expression of what is no plain number, text or container."""
        home = home_of(value)
        if home is not None or id(value) in self._known:
            return self._known.get(id(value)) or self._kernel(home)  # type: ignore[arg-type]
        if type(value) is range:
            return repr(value)
        if type(value) is float:
            return f'float("{value!r}")'
        if isinstance(value, tuple | set | frozenset):
            parts = self.value((*value,), name) if isinstance(value, tuple) else f"({self.value([*value], name)})"
            return self.value(type(value), name) + parts
        if isinstance(value, functools.partial):
            texts = [self.value(each, name) for each in (value.func, *value.args)]
            texts += [f"{key}={self.value(each, key)}" for key, each in value.keywords.items()]
            return f"functools.partial({', '.join(texts)})"
        if isinstance(value, np.ndarray):
            return literal(value) or self.stored(name, value)
        if isinstance(value, np.dtype):
            return dtype_name(value) if value.names is None else f"np.dtype({value.descr!r})"
        if isinstance(value, np.generic):
            return f"np.{type(value).__name__}({self.value(value.item(), name)})"
        return self._by_name(value, name)

    def _kernel(self, home: str) -> str:
        """Return the expression of a member of `kernels/`, whose module is copied."""
        self._modules.add(KERNELS + home.rpartition(".")[0])
        return f'kernel("{home}")'

    def _by_name(self, value: Any, name: str) -> str:
        """Return the qualified name of an object of NumPy or of the standard library."""
        own, module = getattr(value, "__name__", ""), getattr(value, "__module__", None) or "numpy"
        owner = getattr(value, "__self__", None) or getattr(value, "__objclass__", None)
        if owner is not None and not isinstance(owner, types.ModuleType) and hasattr(owner, own):
            return f"{self.value(owner, name)}.{own}"
        if getattr(builtins, own, None) is value:
            return own
        for where in dict.fromkeys(["numpy", "numpy.linalg", module]):
            known = where.partition(".")[0] in {"numpy", *sys.stdlib_module_names}
            if known and getattr(importlib.import_module(where), own, None) is value:
                return f'importlib.import_module("{where}").{own}' if where[:5] != "numpy" else f"np{where[5:]}.{own}"
        if isinstance(value, type(threading.Lock()) | type(threading.RLock())):
            return f'importlib.import_module("threading").{type(value).__name__.strip("_").capitalize()}()'
        what = getattr(value, "__qualname__", type(value).__qualname__)
        raise NotSaved(f"{module}.{what} is no function of arrays in `kernels/`, and cannot be written")

    def stored(self, name: str, array: Any) -> str:
        """Store an array beside the module, and return the expression that restores it with its memory layout."""
        key = unique(name, self.arrays)
        self.arrays[key], before, after = laid_down(array)
        return f"{before}arrays[{_quoted(key)}]{after}"


class _Text(str):
    """The text of an expression of an array, or that of an object which is not written: "None"."""

    __slots__ = ()
    __repr__ = str.__str__

    def item(self) -> Any:
        return _Text(f"{self}.item()")

    def detach(self) -> Any:
        return self

    def __call__(self, *elements: Any) -> Any:
        return elements  # (of a named tuple)


class _Names(dict[str, Any]):
    def __missing__(self, name: str) -> Any:
        return _Text("None")


def _first(x: Any, *_: Any) -> Any:
    return x


def _owner(function: Any) -> Any:
    """Return the optimizer or scheduler whose `step` a function is."""
    if getattr(function, "_wrapped_by_lr_sched", False):  # a scheduler counts the steps
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        return cells["reference"].cell_contents()
    return getattr(function, "__self__", None)


def home_of(value: Any) -> str | None:
    """Return the module and name by which `kernels/` has a function, class or other object of its own, or None."""
    if value is None or isinstance(value, bool | int | float | str | tuple | np.dtype | np.ufunc | types.ModuleType):
        return None
    first = module_of(value)
    modules = sorted([each for each in sys.modules if each.startswith(KERNELS)], key=lambda each: each != first)
    for module in modules:
        for name, member in vars(sys.modules[module]).items():
            if member is value and not name.startswith("__"):
                return f"{module.removeprefix(KERNELS)}.{name}"
    return None


def dtype_name(dtype: Any) -> str:
    """Return the expression of a NumPy dtype.

    Raises:
        NotSaved: the dtype is not built into NumPy.
    """
    if dtype.isbuiltin != 1:
        raise NotSaved(f"there are arrays of {dtype}, which NumPy has not: convert them to float32 before")
    return f'np.dtype("{dtype.name}")'


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


def laid_down(array: Any) -> tuple[Any, str, str]:
    """Return an array that a file can store, and the text before and after it that restores the original strides.

    Raises:
        NotSaved: the dtype is not built into NumPy.
    """
    kind = dtype_name(array.dtype)
    if array.flags.c_contiguous or array.flags.f_contiguous or not array.size:
        return array, "", ""
    if min(array.strides) < 0 or any(step % array.itemsize for step in array.strides):
        return array, "", ""
    length = 1 + sum((n - 1) * (step // array.itemsize) for n, step in zip(array.shape, array.strides, strict=True))
    memory = np.lib.stride_tricks.as_strided(array, (length,), (array.itemsize,)).copy()
    return memory, f"np.ndarray({array.shape}, {kind}, ", f", 0, {array.strides})"


def unique(name: str, taken: Container[str]) -> str:
    """Return a name that is not taken: the name itself, or with a number."""
    return next(key for key in itertools.chain([name], (f"{name}_{k}" for k in itertools.count(2))) if key not in taken)


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


def _title(words: str) -> str:
    return f"\n# {words} {'-' * (WIDTH - 20 - len(words) - 3)}\n"


def _tuple(texts: list[str]) -> str:
    return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"


def _filled(before: str, texts: list[str], after: str) -> list[str]:
    """Return the lines of a bracketed list: one line if the elements fit into it."""
    line = f"{before}{', '.join(texts)}{after}"
    if len(line) <= WIDTH:
        return [line]
    indent = " " * (len(before) - len(before.lstrip()))
    return [before, *[f"{indent}    {each}," for each in texts], f"{indent}{after}"]


def _package(modules: set[str]) -> tuple[str, dict[str, str]]:
    """Return the name of a package of kernels, and the source of its modules by path: these, and all that they import.

    The name is a hash of the sources and the settings, so that programs with the same kernels share the package.
    """
    texts: dict[str, str] = {}
    waiting = sorted(modules)
    for name in waiting:  # grows
        module = sys.modules[name]
        texts[name] = text = Path(module.__file__ or "").read_text("utf-8")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.level:
                base = importlib.util.resolve_name("." * node.level + (node.module or ""), module.__package__)
                imported = [sys.modules.get(each) for each in (base, *[f"{base}.{each.name}" for each in node.names])]
                sources = [x.__name__ for x in imported if x is not None and (x.__file__ or "").endswith(".py")]
                waiting += [each for each in sources if each not in waiting and each.startswith(KERNELS)]
    settings = f"{parallel.get_threads()} {dtypes.get_default_dtype()}"
    digest = hashlib.sha256("".join([settings, *[texts[name] for name in sorted(texts)]]).encode())
    package = f"kernels_{digest.hexdigest()[:12]}"
    files = {}
    for name, text in texts.items():
        is_package = hasattr(sys.modules[name], "__path__")
        path = name.removeprefix(KERNELS).replace(".", "/") + ("/__init__" if is_package else "")
        files[f"{package}/{path}.py"] = text
    return package, files


def save(function: Callable[..., Any], entry: Entry, name: str, path: str | os.PathLike[str]) -> None:
    """Write a program to a file, and its arrays and kernels to an `.npz` file beside it.

    If possible, the program takes batches of any size: the function is called with some, and the results are compared.
    A path that does not end in `.py` is a ValueError, what is no function of arrays a NotSaved.
    """
    if entry.sets:
        raise NotSaved("the function sets attributes of objects")
    target = Path(path)
    if target.suffix != ".py":
        raise ValueError(f"{target}: the name of a module ends in .py")
    if not target.stem.isidentifier() or keyword.iskeyword(target.stem):
        usual = re.sub(r"\W", "_", target.stem)
        raise ValueError(f"{target}: no program can import a module of this name; {usual}.py, say, is one")
    try:
        _save(function, of_any_batch(function, entry), name, target)
    except (Unlike, NotSaved):
        _save(function, entry, name, target)


def _save(function: Callable[..., Any], entry: Entry, name: str, target: Path) -> None:
    saved = Saved(function, entry, name)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        trial = Path(folder) / target.name
        trial.write_text(saved.text, "utf-8")
        _write(trial.with_suffix(".npz"), saved.arrays, saved.files)
        step = _try(trial, saved.arguments)
        if saved.batched:
            _compare(function, entry, step)
        for each in (trial.with_suffix(".npz"), trial):
            os.replace(each, target.parent / each.name)


def _compare(function: Callable[..., Any], entry: Entry, step: Callable[..., Any]) -> None:
    """Raise Unlike if a saved program for any batch size does not do what the function does."""
    given = [item for item in entry.inputs if item.where.startswith("args[")]
    batched = [item.where in entry.batched for item in given]
    size = entry.programs[0].batch or 1
    for n in (1, 2, size + 5, 3 * size + 2):
        arrays = arguments(given, batched, n)
        try:
            with no_grad():
                expected = function(*[wrap(array.copy()) for array in arrays])
            if not _is_close(step(*arrays), expected):
                raise Unlike(f"other results for a batch of {n}")
        except Unlike:
            raise
        except Exception as error:
            raise Unlike(f"{type(error).__name__} for a batch of {n}") from error


def _is_close(x: Any, expected: Any) -> bool:
    """Return whether a result of a saved program is that of the function, but for rounding."""
    if isinstance(expected, Tensor):
        array = expected._array
        alike = isinstance(x, np.ndarray) and x.shape == array.shape and x.dtype == array.dtype
        largest = float(np.abs(array[np.isfinite(array)]).max(initial=1))
        return alike and np.allclose(x, array, 1e-3, 1e-4 * largest, equal_nan=True)
    if isinstance(expected, dict):
        return x.keys() == expected.keys() and all(_is_close(x[key], each) for key, each in expected.items())
    if isinstance(expected, (tuple, list)):
        return len(x) == len(expected) and all(map(_is_close, x, expected))
    return bool(x == expected)


def _write(path: Path, arrays: dict[str, Any], modules: dict[str, str]) -> None:
    """Write arrays as `np.savez` does (which cannot store names such as "file"), and the source of modules."""
    with zipfile.ZipFile(path, "w") as file:
        for name, text in modules.items():
            file.writestr(name, text, zipfile.ZIP_DEFLATED)
        for name, array in arrays.items():
            with file.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, np.asanyarray(array), allow_pickle=False)


def _try(path: Path, arguments: dict[str, tuple[Any, Any, bool]]) -> Callable[..., Any]:
    """Run a saved program on zeros, so that missing objects raise an error now; return its function `step`."""
    step: Any = None
    try:
        step = runpy.run_path(str(path))["step"]
        step(*[np.zeros(shape, dtype) for shape, dtype, _ in arguments.values()])
    except (NameError, AttributeError, TypeError, ImportError, SyntaxError) as error:
        raise NotSaved(f"the program does not run without the framework: {type(error).__name__}: {error}") from error
    except Exception:  # other errors may come from the zeros, which need not be valid inputs
        pass
    return step


__all__ = ["NotSaved", "Saved", "home_of", "save"]
