"""A saved program: a module that needs NumPy alone, and an `.npz` file beside it with its arrays and kernels.

An `.npz` file is a zip file, and Python can import modules from it: the modules of `kernels/` that the program calls,
and the modules that these import, are copied into it whole, as a package. Operations that are implemented outside of
`kernels/`, and optimizer steps, are written into the module itself by `definitions`. The statements of `bind` stand at
the top of the module, `step` at its end. Gradients are arrays in a dictionary.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import inspect
import os
import re
import sys
import tempfile
import textwrap
import types
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tinytorch.compiler.definitions import (
    NOTHING,
    Definition,
    Definitions,
    Edits,
    LookUp,
    NotSaved,
    Text,
    dtype_name,
    laid_down,
    literal,
)
from tinytorch.compiler.entry import Entry
from tinytorch.compiler.recorder import Formula
from tinytorch.core.tensor import Tensor
from tinytorch.kernels import dtypes, parallel
from tinytorch.optim.lr_scheduler import LRScheduler
from tinytorch.optim.optimizer import Optimizer

_GIVEN = '''

def given(name, x, shape, dtype, order="C"):
    """Return an argument as an array; ValueError if it is not like the one that the program was made for."""
    x = np.asarray(x, order=order)
    if x.shape != shape or x.dtype != dtype:
        wanted = f"an array of shape {shape} and dtype {np.dtype(dtype)} is needed"
        raise ValueError(f"{name}: {wanted}, not one of shape {x.shape} and dtype {x.dtype}")
    return x.view(dtype)  # kernels ask for the very dtype; an array that was pickled has another, equal one


'''
_LOADING = '''path = Path(__file__).with_suffix(".npz")
with np.load(path) as file:
    arrays = {{name: file[name] for name in file.files if not name.endswith(".py")}}

#: The modules of kernels, which Python imports from the `.npz` file: it is a zip file.
package = sys.modules.setdefault("{0}", types.ModuleType("{0}"))
package.__path__ = [str(path / "{0}")]
importlib.invalidate_caches()  # the file may have been written anew
warnings.filterwarnings("ignore", category=RuntimeWarning, module="{0}")  # NumPy's, in threads


def kernel(name):
    """Return a kernel by its module and name."""
    module, _, member = name.rpartition(".")
    return getattr(importlib.import_module(f"{{package.__name__}}.{{module}}"), member)


kernel("parallel.set_threads")({1})
kernel("dtypes.set_default_dtype")(kernel("dtypes.{2}"))
'''
#: Names that a saved module defines besides the variables of its program.
_OWN = {
    "np", "Path", "arrays", "parameters", "gradients", "given", "file", "annotations", "step", "bind", "kernel",
    "package", "path", "sys", "types", "importlib", "warnings",
}  # fmt: skip
WIDTH = 120


class _Step(Edits):
    """The edits of a program's source: gradients are kept in a dictionary, dtypes become NumPy's.

    Args:
        text, look_up, definitions: as for `Edits`.
        leaves: maps the variable of a tensor to the name of the array whose `.grad` is set.
    """

    def __init__(self, text: Text, look_up: LookUp, definitions: Definitions, leaves: dict[str, str]) -> None:
        super().__init__(text, look_up, "step", definitions)
        self.leaves = leaves
        self.sets: list[str] = []

    def visit_Assign(self, node: ast.Assign) -> None:
        """Replace an assignment to `.grad` by one to the dictionary of gradients."""
        target = node.targets[0]
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
            name = target.value.id
            if target.attr == "_grad" and name in self.leaves:
                self.sets.append(self.leaves[name])
                # (The assigned value is `wrap(x)`, `written(x, version)` or None.)
                value = ast.unparse(node.value.args[0]) if isinstance(node.value, ast.Call) else "None"
                self.cut(self.text.start(node), self.text.end(node), f'gradients["{self.leaves[name]}"] = {value}')
                return
        for each in node.targets:
            self.visit(each)
        self.visit(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        """Visit a call; the dtype arguments of `np.empty` and `np.ndarray` are written by their short names."""
        if ast.unparse(node.func) in ("np.empty", "np.ndarray") and len(node.args) == 2:
            dtype, _ = self.value(node.args[1])
            if isinstance(dtype, np.dtype):
                self.cut(self.text.start(node.args[1]), self.text.end(node.args[1]), dtype_name(dtype))
                return
        super().visit_Call(node)


class Saved:
    """The source of the module for a program, and the arrays that are stored beside it.

    Args:
        entry: the program, with its guards.
        name: the name of the compiled function.

    Attributes:
        text: the source of the module.
        arrays: the arrays that are stored beside the module, by name.
        arguments: by name of each argument of `step`, its shape and dtype, and whether it is contiguous.
        definitions: the definitions that the module contains.

    Raises:
        NotSaved: the program needs an object that cannot be written as a function of arrays.
    """

    def __init__(self, entry: Entry, name: str) -> None:
        self.arrays: dict[str, Any] = {}
        self.arguments: dict[str, tuple[Any, Any, bool]] = {}
        self._entry, self._name = entry, name
        self._program = Text(entry.programs[0].source)
        bind: Any = self._program.tree.body[0]
        self._bind: ast.FunctionDef = bind
        self._step = next(each for each in self._bind.body if isinstance(each, ast.FunctionDef))
        self._scope = entry.step.__globals__
        self._names = self._input_names()
        named = {each.id for each in ast.walk(self._program.tree) if isinstance(each, ast.Name)}
        own = {each for each in named if each not in self._scope} | {each.arg for each in self._step.args.args}
        self.definitions = Definitions({*own, *self._names, *_OWN})
        self._tensors = {key: x for key, x in self._scope.items() if isinstance(x, Tensor)}
        self._stay: dict[str, Tensor] = {}  # tensors whose arrays are stored beside the module, by name
        self._grads: dict[str, str] = {}  # maps the name of each gradient that is read to the name of its tensor
        self._sort()
        self.text = self._module()

    # Arguments and stored tensors -----------------------------------------------------------------

    def _input_names(self) -> list[str]:
        """Return the names of the inputs, in order."""
        stays = iter([each.arg for each in self._bind.args.args])
        comes = iter([each.arg for each in self._step.args.args])
        return [next(stays if each.stays else comes) for each in self._entry.inputs]

    def _sort(self) -> None:
        """Separate the inputs that are arguments of each call from those that the function finds elsewhere."""
        scope = self._entry.enter.__globals__
        places: dict[str, str] = {}
        for k, (name, each) in enumerate(zip(self._names, self._entry.inputs, strict=True)):
            places[each.where] = name
            of = each.where.removesuffix("._grad")
            if of != each.where and of in places:
                self._grads[name] = places[of]
            elif each.where.startswith(("args[", "kwargs[")):
                self.arguments[name] = each.shape, each.dtype, each.contiguous
            else:
                found = scope[f"t{k}"] if each.stays else eval(each.where, scope)
                if found._array.shape != each.shape or found._array.dtype != each.dtype:
                    raise NotSaved(f"{name} has another shape or dtype now than when the program was made")
                self._stay[name] = found

    def _leaves(self) -> dict[str, str]:
        """Return a dictionary from the name of each tensor in the program to the name of its array."""
        names = {id(x): name for name, x in self._stay.items()}
        found = {key: names[id(x)] for key, x in self._tensors.items() if id(x) in names}
        for each in self._step.args.args:
            name = each.arg.removesuffix("_tensor")
            if name != each.arg and name in self._names:
                found[each.arg] = name
        return found

    # The module -----------------------------------------------------------------------------------

    def _module(self) -> str:
        leaves = self._leaves()
        edits = _Step(self._program, self._look_up, self.definitions, leaves)
        before = self._before(edits)
        edits.visit(self._step)
        last: Any = self._step.body[-1]
        start = self._program.after_line(self._program.start(self._step))
        lines = self._program.parts(start, self._program.of_line(self._program.start(last)), edits.found)
        results = [ast.unparse(each) for each in last.value.elts]
        returned = self._returned(ast.parse(self._entry.returned, mode="eval").body, results)
        optimizers = self._optimizers(edits)
        starts = self._starting_gradients(edits)
        self.definitions.name_all()
        self.arrays.update({each.name: each.array for each in self.definitions.all if each.array is not None})
        self.package, self.kernels = _package(self.definitions.modules)
        body = textwrap.indent(textwrap.dedent(_text(lines)), "    ").rstrip()
        parts = [
            self._head(), *self._imports(), *self._beside(), *starts, _title("Kernels"), self._shared(),
            _text(optimizers), _title("The program"), _text(before), self._function(body, returned),
        ]  # fmt: skip
        return _spaced("\n".join(parts))

    def _look_up(self, name: str) -> tuple[Any, Any]:
        value = self._scope.get(name, NOTHING)
        if value is NOTHING or name in ("np", "__builtins__", "bind") or isinstance(value, Tensor):
            return NOTHING, None
        if callable(value) and isinstance(_owner(value), Optimizer | LRScheduler):
            return NOTHING, None
        if isinstance(value, Formula):
            return value, lambda found: self._formula(value, name)
        wish = getattr(value, "__name__", name)
        return value, lambda found: found.take(value, name if wish in ("<lambda>", "call", "kernel", "work") else wish)

    def _formula(self, formula: Formula, name: str) -> Definition:
        """Return the definition of a node's formula as a function of arrays."""
        calls = [each for each in ast.walk(self._step) if isinstance(each, ast.Call) and ast.unparse(each.func) == name]
        items: Any = calls[0].args[1]
        none = [isinstance(each, ast.Constant) and each.value is None for each in items.elts]
        texts = []
        for rule, needs, indices in formula.rules():
            arguments = [*inspect.signature(rule).parameters][-len(indices) :] if indices else []
            known = dict(zip(arguments, [none[k] for k in indices], strict=True))
            made = self.definitions.rule(rule, known)
            given = ["g", *([repr(needs)] if needs is not None else []), *[f"items[{k}]" for k in indices]]
            texts.append([made, f"({', '.join(given)})"])
        return self.definitions.formula(name, texts, formula.plan.joint or formula.plan.many)

    def _head(self) -> str:
        """Return the docstring of the module."""
        given = [f"    {name}: {_said(*of)}" for name, of in self.arguments.items()]
        lines = [
            f'"""`{self._name}` as a program of NumPy calls, which `torch.compile` has made and `save` has written.',
            "",
            "It needs NumPy, and the `.npz` file beside it, which has its arrays and kernels. Buffers are used again:",
            "one call at a time.",
            *(["", f"`step({', '.join(self.arguments)})` takes:", *given] if given else []),
            "",
            "The kernels are the definitions in NumPy: with these (`TINYTORCH_NATIVE=0`) the compiled function gives",
            "the same, bit for bit; its native kernels may round otherwise.",
            '"""',
        ]
        return "\n".join(lines) + "\n"

    def _imports(self) -> list[str]:
        found = {each.text for each in self.definitions.all if each.kind == "import"}
        plain = sorted(each for each in found if each.startswith("import "))
        others = sorted([*[each for each in found if each.startswith("from ")], "from pathlib import Path"])
        plain = sorted({*plain, "import importlib", "import sys", "import types", "import warnings"})
        return ["from __future__ import annotations\n", *plain, *others, "", "import numpy as np\n"]

    def _beside(self) -> list[str]:
        """Return the lines that read the stored arrays."""
        lines = [_LOADING.format(self.package, parallel.get_threads(), dtypes.get_default_dtype().name)]
        if self._stay:
            texts = {name: self.stored(name, x._array) for name, x in self._stay.items()}
            lines.append("#: What was there before the calls, by name; training changes these arrays.")
            lines += ["parameters = {", *[f'    "{name}": {text},' for name, text in texts.items()], "}"]
            lines += [f'{name} = parameters["{name}"]' for name in self._stay]
        return lines

    def stored(self, name: str, array: Any) -> str:
        """Store an array beside the module, and return the expression that restores it with its memory layout."""
        self.arrays[name], after = laid_down(array)
        return "".join(after(f'arrays["{name}"]'))

    def _shared(self) -> str:
        """Return the definitions: constants first, then functions, each after the definitions that it uses."""
        needed = [each for each in self.definitions.all if each.kind != "import"]
        plain = [each for each in needed if each.is_plain()]
        texts = [each.text for each in plain] + [_GIVEN] * bool(self.arguments)
        for each in needed:
            if each not in plain:
                texts.append(each.text if each.kind == "value" else f"\n\n{each.text}\n\n")
        return "\n".join(texts)

    def _function(self, body: str, returned: str) -> str:
        lines = [f"def step({', '.join(self.arguments)}):", f'    """Do what `{self._name}` does."""']
        for name, (shape, dtype, contiguous) in self.arguments.items():
            order = "" if contiguous else ", None"
            lines.append(f'    {name} = given("{name}", {name}, {shape}, {dtype_name(dtype)}{order})')
        lines += [f'    {name} = gradients["{of}"]' for name, of in self._grads.items()]
        return "\n".join(["\n", '@np.errstate(all="ignore")', *lines, body, f"    return {returned}", ""])

    def _returned(self, node: Any, results: list[str]) -> str:
        """Return the expression of a result, with arrays in the places of tensors."""
        if isinstance(node, ast.Name):
            kind, number = node.id[0], int(node.id[1:])
            return results[number] if kind == "r" else self._names[number]
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr == "item":
                return f"{self._returned(node.func.value, results)}.item()"
            name = ast.unparse(node.func)
            if name in ("wrap", "written", "viewed", "spent", "node.output"):
                return self._returned(node.args[0], results)
            return self._listed(node.args, results)  # a named tuple
        if isinstance(node, ast.Tuple):
            return self._listed(node.elts, results)
        if isinstance(node, ast.List):
            return f"[{', '.join([self._returned(each, results) for each in node.elts])}]"
        if isinstance(node, ast.Dict):
            values = [self._returned(each, results) for each in node.values]
            keys = [ast.unparse(each) for each in node.keys if each is not None]
            return "{" + ", ".join([f"{key}: {value}" for key, value in zip(keys, values, strict=True)]) + "}"
        return ast.unparse(node)

    def _listed(self, nodes: list[Any], results: list[str]) -> str:
        texts = [self._returned(each, results) for each in nodes]
        return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"

    # The statements of `bind` ---------------------------------------------------------------------

    def _before(self, edits: _Step) -> list[Any]:
        """Return the statements that run before the first call: buffers, views, and results computed from constants."""
        cells = dict(zip(self._entry.step.__code__.co_freevars, self._entry.step.__closure__ or (), strict=True))
        lost: set[str] = set()  # constants that have been freed, since only other constants were computed from them
        lines: list[Any] = []

        def keep(name: str) -> None:
            if name in cells:
                lines.append(self._constant(name, cells[name].cell_contents))
            else:
                lost.add(name)

        for each in self._bind.args.args:
            if each.arg not in self._names:
                keep(each.arg)
        for node in self._bind.body:
            if isinstance(node, ast.Assign):
                if lost.isdisjoint(each.id for each in ast.walk(node.value) if isinstance(each, ast.Name)):
                    edits.visit(node)
                    start, end = self._program.start(node), self._program.end(node)
                    lines += [*self._program.parts(start, end, edits.found), "\n"]
                else:  # the constants that were computed from it are stored where they are needed
                    for target in ast.walk(node.targets[0]):
                        if isinstance(target, ast.Name):
                            keep(target.id)
        return lines

    def _constant(self, name: str, array: Any) -> str:
        text = literal(array)
        return f"{name} = {self.stored(name, array) if text is None else text}\n"

    # Training -------------------------------------------------------------------------------------

    def _starting_gradients(self, edits: _Step) -> list[str]:
        """Return the lines that define the gradients that exist before the first call."""
        if not (edits.sets or self._grads):
            return []
        entries = []
        for name in dict.fromkeys([*self._grads.values(), *edits.sets]):
            leaf = self._stay.get(name)
            if leaf is not None and leaf._grad is not None:
                entries.append(f'    "{name}": {self.stored(f"{name}.grad", leaf._grad._array)},')
            elif name in self._grads.values():
                raise NotSaved(f"the program adds to the gradient of {name}, which has none now")
        lines = ["", "#: By name, as they are after the last call."]
        return [*lines, *(["gradients = {", *entries, "}"] if entries else ["gradients = {}"])]

    def _optimizers(self, edits: _Step) -> list[Any]:
        """Return the source of the optimizers' steps."""
        found: list[Any] = []
        for node in ast.walk(self._step):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                owner = _owner(self._scope.get(node.func.id))
                if isinstance(owner, LRScheduler):
                    kind = type(owner).__name__
                    raise NotSaved(
                        f"the step of a scheduler, {kind}, is no function of arrays: call it outside of what is "
                        "compiled, and set the options of the optimizer in the module"
                    )
                if isinstance(owner, Optimizer):
                    found += _Update(self, owner, node.func.id).parts()
        return found

    def name_of(self, p: Tensor) -> str | None:
        """Return the name of a parameter's array."""
        return next((name for name, x in self._stay.items() if x is p), None)


class _Update:
    """The source of an optimizer's step.

    Args:
        saved: the module that the step is written into.
        optimizer: the optimizer.
        name: the name of the step in the program.

    Raises:
        NotSaved: the step cannot be written as a function of arrays.
    """

    def __init__(self, saved: Saved, optimizer: Optimizer, name: str) -> None:
        self._saved, self._optimizer, self._name = saved, optimizer, name
        self._short = name.removesuffix("_step")
        kind = type(optimizer)
        if kind.step is not Optimizer.step or kind._update is Optimizer._update:
            raise NotSaved(f"{kind.__name__} has a step of its own, which cannot be written without the framework")

    def parts(self) -> list[Any]:
        """Return the source, with definitions in the places of names."""
        update = _Methods(self._saved.definitions, self._optimizer, self._short).take("_update")
        groups, state = self._groups(), self._state()
        short = self._short
        return [
            "\n".join([
                "", f"#: The options of {type(self._optimizer).__name__}, by group, and what it keeps, by parameter.",
                f"{short}_groups = [", *groups, "]", f"{short}_state = {{", *state, "}", "", "",
                f"def {self._name}():",
                f'    """Update the parameters that have gradients, as {type(self._optimizer).__name__} does."""',
                f"    for group in {short}_groups:",
                '        for name in group["params"]:',
                "            if gradients.get(name) is not None:",
                "                ",
            ]),
            update, f"(parameters[name], gradients[name], {short}_state[name], group)\n\n",
        ]  # fmt: skip

    def _groups(self) -> list[str]:
        lines = []
        for group in self._optimizer.param_groups:
            names = [f'"{name}"' for name in map(self._saved.name_of, group["params"]) if name is not None]
            if group.get("capturable"):
                raise NotSaved("capturable is for accelerators")
            lines += ["    {", *_filled('        "params": [', names, "],")]
            for key, value in group.items():
                if key not in ("params", "param_names", "foreach", "fused", "differentiable", "capturable"):
                    lines.append(f'        "{key}": {self._option(key, value)},')
            lines.append("    },")
        return lines

    def _option(self, key: str, value: Any) -> str:
        if isinstance(value, Tensor):
            return repr(float(value))
        if isinstance(value, tuple | list):
            texts = [self._option(key, each) for each in value]
            return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"
        if value is None or isinstance(value, bool | int | float | str):
            return repr(value)
        raise NotSaved(f"the option {key} of {type(self._optimizer).__name__} is a {type(value).__name__}")

    def _state(self) -> list[str]:
        lines = []
        for group in self._optimizer.param_groups:
            for p in group["params"]:
                name = self._saved.name_of(p)
                kept: dict[Any, Any] = self._optimizer.state.get(p) or self._optimizer._new_state(p, group)
                texts = [f'"{key}": {self._kept(f"{name}.{key}", value)}' for key, value in kept.items()]
                if name is not None:
                    lines += _filled(f'    "{name}": {{', texts, "},")
        return lines

    def _kept(self, name: str, value: Any) -> str:
        if isinstance(value, Tensor):
            return self._saved.stored(name, value._array)
        return self._option(name, value)


class _Methods:
    """The methods of an optimizer, written as functions.

    Args:
        definitions: the definitions of the module, to which the functions are added.
        optimizer: the optimizer.
        prefix: the prefix of the functions' names.
    """

    def __init__(self, definitions: Definitions, optimizer: Optimizer, prefix: str) -> None:
        self._definitions, self._optimizer, self._prefix = definitions, optimizer, prefix

    def take(self, name: str) -> Definition:
        """Return the definition of a method as a function without `self`."""
        found = getattr(self._optimizer, name)
        function = getattr(found, "__func__", found)
        if not isinstance(function, types.FunctionType):
            return self._definitions.take(found, name)
        wish = f"{self._prefix}_{name.strip('_')}"
        return self._definitions.method(function, wish, self.take if found is not function else None)


def _owner(function: Any) -> Any:
    """Return the optimizer or scheduler whose `step` a function is."""
    if getattr(function, "_wrapped_by_lr_sched", False):  # a scheduler counts the steps
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        return cells["reference"].cell_contents()
    return getattr(function, "__self__", None)


def _text(parts: list[Any]) -> str:
    return "".join([each if isinstance(each, str) else each.shown for each in parts])


def _title(words: str) -> str:
    return f"\n# {words} {'-' * (WIDTH - 20 - len(words) - 3)}\n"


def _filled(before: str, texts: list[str], after: str) -> list[str]:
    """Return the lines of a bracketed list: one line if the elements fit into it."""
    line = f"{before}{', '.join(texts)}{after}"
    if len(line) <= WIDTH:
        return [line]
    indent = " " * (len(before) - len(before.lstrip()))
    return [before, *[f"{indent}    {each}," for each in texts], f"{indent}{after}"]


def _said(shape: tuple[int, ...], dtype: Any, contiguous: bool) -> str:
    return f"an array of shape {shape}, {dtype.name}."


def _spaced(text: str) -> str:
    """Return source with two blank lines around definitions, and their parameters in one line where they fit."""

    def joined(found: re.Match[str]) -> str:
        line = f"{found[1]}{' '.join(found[2].split()).rstrip(',')}):"
        return line if len(line) <= WIDTH else found[0]

    text = re.sub(r"^( *def \w+\()\n([^()#]*?)\n *\):$", joined, text, flags=re.MULTILINE)
    text = re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)
    text = re.sub(r"\n{4,}", "\n\n\n", text)
    text = re.sub(r"\n\n\n+(?=[A-Za-z_#])(?!def |class |@)", "\n\n\n", text)
    return text.strip("\n") + "\n"


def _package(modules: set[str]) -> tuple[str, dict[str, str]]:
    """Return the name of a package of kernels, and its modules' source by path: copies, with all that they import.

    The name is a hash of the sources and the settings, so that programs with the same kernels share the package.
    """
    texts: dict[str, str] = {}
    names = {"tinytorch.kernels.parallel", "tinytorch.kernels.dtypes", *modules}
    waiting = list(names)
    for name in waiting:  # grows
        file = inspect.getsourcefile(sys.modules[name]) or ""
        texts[name] = Path(file).read_text("utf-8")
        for node in ast.walk(ast.parse(texts[name])):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tinytorch.kernels"):
                imported = [node.module or "", *[f"{node.module}.{each.name}" for each in node.names]]
                found = {each for each in imported if each in sys.modules and each != "tinytorch.kernels"} - names
                found = {each for each in found if (getattr(sys.modules[each], "__file__", "") or "").endswith(".py")}
                names |= found
                waiting += sorted(found)
    settings = f"{parallel.get_threads()} {dtypes.get_default_dtype()}"
    digest = hashlib.sha256("".join([settings, *[texts[name] for name in sorted(texts)]]).encode())
    package = f"kernels_{digest.hexdigest()[:12]}"
    files = {}
    for name, text in texts.items():
        is_package = hasattr(sys.modules[name], "__path__")
        path = name.removeprefix("tinytorch.kernels.").replace(".", "/") + ("/__init__" if is_package else "")
        files[f"{package}/{path}.py"] = text.replace("tinytorch.kernels", package)
    return package, files


def save(entry: Entry, name: str, path: str | os.PathLike[str]) -> None:
    """Write a program to a file, and its arrays to an `.npz` file beside it.

    Args:
        entry: the program.
        name: the name of the compiled function.
        path: the path of the file, which ends in `.py`.

    Raises:
        ValueError: the path does not end in `.py`.
        NotSaved: the program needs an object that cannot be written as a function of arrays.
    """
    target = Path(path)
    if target.suffix != ".py":
        raise ValueError(f"{target}: the name of a module ends in .py")
    saved = Saved(entry, name)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        trial = Path(folder) / target.name
        trial.write_text(saved.text, "utf-8")
        _write(trial.with_suffix(".npz"), saved.arrays, saved.kernels)
        _try(trial, saved.arguments)
        for each in (trial.with_suffix(".npz"), trial):
            os.replace(each, target.parent / each.name)


def _write(path: Path, arrays: dict[str, Any], modules: dict[str, str]) -> None:
    """Write arrays as `np.savez` does (which cannot store names such as "file"), and the source of modules."""
    with zipfile.ZipFile(path, "w") as file:
        for name, text in modules.items():
            file.writestr(name, text, zipfile.ZIP_DEFLATED)
        for name, array in arrays.items():
            with file.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, np.asanyarray(array), allow_pickle=False)


def _try(path: Path, arguments: dict[str, tuple[Any, Any, bool]]) -> None:
    """Run a saved program on zeros, so that missing definitions raise an error now rather than at the first use."""
    spec: Any = importlib.util.spec_from_file_location("tinytorch_saved_step", path)
    module = importlib.util.module_from_spec(spec)
    try:
        exec(compile(path.read_text("utf-8"), str(path), "exec"), vars(module))
        run: Callable[..., Any] = vars(module)["step"]
        run(*[np.zeros(shape, dtype) for shape, dtype, _ in arguments.values()])
    except (NameError, AttributeError, TypeError, ImportError, SyntaxError) as error:
        raise NotSaved(f"the program does not run without the framework: {type(error).__name__}: {error}") from error
    except Exception:  # other errors may come from the zeros, which need not be valid inputs
        return


__all__ = ["Saved", "save"]
