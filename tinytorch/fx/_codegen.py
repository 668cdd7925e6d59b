"""The Python code of a graph: names, lines, and what they refer to."""

from __future__ import annotations

import builtins
import enum
import inspect
import itertools
import keyword
import math
import re
import types
import typing
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tinytorch.core.device import device
from tinytorch.core.tensor import Tensor
from tinytorch.func import pytree
from tinytorch.fx import _pytree as fx_pytree
from tinytorch.fx._names import is_ours, qualified_name, root, type_name
from tinytorch.fx.node import Node, dtype_abbrs

__all__ = ["CodeGen", "PythonCode"]

TransformCodeFunc = Callable[[list[str]], list[str]]


# Names --------------------------------------------------------------------------------------------


class _CustomBuiltin(NamedTuple):
    """An object that generated code may use without further ado: the statement that imports it, and the object."""

    import_str: str
    obj: Any


#: What the `repr` of arguments refers to, by name.
_custom_builtins: dict[str, _CustomBuiltin] = {}
_taken: dict[str, Any] = {**{word: object() for word in keyword.kwlist}, **vars(builtins)}


def _register_custom_builtin(name: str, import_str: str, obj: Any) -> None:
    """Let the code of every graph refer to an object by a name."""
    _custom_builtins[name] = _CustomBuiltin(import_str, obj)
    _taken[name] = obj


_register_custom_builtin("inf", "from math import inf", math.inf)
_register_custom_builtin("nan", "from math import nan", math.nan)
_register_custom_builtin("NoneType", "NoneType = type(None)", type(None))
_register_custom_builtin("torch", "import torch", root())
_register_custom_builtin("device", "from torch import device", device)
_register_custom_builtin("fx_pytree", "import torch.fx._pytree as fx_pytree", fx_pytree)
_register_custom_builtin("pytree", "import torch.utils._pytree as pytree", pytree)

_NUMBERED = re.compile(r"([a-zA-Z_][0-9a-zA-Z_]*?)(?:_(\d+))?")


class _Namespace:
    """Names of a graph's values, or of the objects that its code refers to: each is used once."""

    def __init__(self) -> None:
        self._obj_to_name: dict[Any, str] = {}
        self._used_names: set[str] = set()
        self._base_count: dict[str, int] = {}

    def create_name(self, candidate: str, obj: Any) -> str:
        """Return a name like `candidate`, with a number if it is in use or means something else in Python.

        Args:
            candidate: the name that is asked for; what no identifier may have becomes `_`.
            obj: an object that has the name from now on, or None.
        """
        if obj is not None and obj in self._obj_to_name:
            return self._obj_to_name[obj]
        if not _NUMBERED.fullmatch(candidate):
            candidate = re.sub("[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
            if candidate[0].isdigit():
                candidate = f"_{candidate}"
        parts = _NUMBERED.fullmatch(candidate)
        assert parts is not None
        base, suffix = parts.groups()
        if suffix is not None and candidate not in self._used_names:
            number = int(suffix)
        else:
            number = self._base_count.get(base, 0)
            if candidate in _taken and _taken[candidate] is not obj:
                number += 1
                candidate = f"{base}_{number}"
        while candidate in self._used_names:
            number += 1
            candidate = f"{base}_{number}"
        self._used_names.add(candidate)
        self._base_count[base] = number
        if obj is not None:
            self._obj_to_name[obj] = candidate
        return candidate

    def associate_name_with_obj(self, name: str, obj: Any) -> None:
        """Give an object without a name one that is in use."""
        if self._obj_to_name.setdefault(obj, name) is not name:
            raise AssertionError("obj is already associated")

    def _rename_object(self, obj: Any, name: str) -> None:
        if obj not in self._obj_to_name:
            raise AssertionError(f"Object {obj} is not in _obj_to_name")
        self._obj_to_name[obj] = name
        self._used_names.add(name)


def _is_magic(x: str) -> bool:
    return x.startswith("__") and x.endswith("__")


def _snake_case(s: str) -> str:
    """Return a name in lower case, with `_` before each capital that follows a small letter."""
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", s).lower()


# Operators ----------------------------------------------------------------------------------------

reflectable_magic_methods = {
    name: f"{{}} {sign} {{}}"
    for name, sign in zip(
        "add sub mul floordiv truediv div mod pow lshift rshift and_ or_ xor".split(),
        "+ - * // / / % ** << >> & | ^".split(),
        strict=True,
    )
} | {"getitem": "{}[{}]", "matmul": "{} @ {}"}

magic_methods = {
    name: f"{{}} {sign} {{}}" for name, sign in zip("eq ne lt gt le ge".split(), "== != < > <= >=".split(), strict=True)
} | {"pos": "+{}", "neg": "-{}", "invert": "~{}", **reflectable_magic_methods}

inplace_methods = {
    f"i{name.strip('_')}": f"{{}} {sign.split()[1]}= {{}}"
    for name, sign in reflectable_magic_methods.items()
    if name not in ("div", "getitem")
} | {"setitem": "{}[{}] = {}"}

#: The names that typing's generic types have in annotations.
_GENERIC = {list: list, dict: dict, set: set, frozenset: frozenset, tuple: tuple} | {
    origin: getattr(typing, name)
    for origin, name in ((list, "List"), (dict, "Dict"), (set, "Set"), (frozenset, "FrozenSet"), (tuple, "Tuple"))
}


# Code ---------------------------------------------------------------------------------------------


@dataclass
class PythonCode:
    """The code of a graph.

    Attributes:
        src: the source of its function.
        globals: the objects that the source refers to, by name.
    """

    src: str
    globals: dict[str, Any]
    _lineno_map: dict[int, int | None] | None
    _prologue_start: int = 0


def _format_target(base: str, target: str) -> str:
    """Return the expression of an attribute at a dotted path."""
    for name in target.split("."):
        base = f"{base}.{name}" if name.isidentifier() else f'getattr({base}, "{name}")'
    return base


def _bracketed(values: Iterable[Any]) -> str:
    return f"[{', '.join([str(each) for each in values])}]"


class _Colors:
    """The terminal's colors of annotations; plain text unless `on`."""

    def __init__(self, on: bool) -> None:
        self.on = on

    def __getattr__(self, name: str) -> Callable[[str], str]:
        codes = {"red": "\033[31m", "green": "\033[32m", "blue": "\033[34m", "dim": "\033[2m"}
        start = "".join([codes[each] for each in name.split("_")])
        return (lambda text: f"{start}{text}\033[0m") if self.on else str


class _Summary:
    """The comment above lines of code: where the program has the call that they come from."""

    def __init__(self, colors: _Colors, additional: Sequence[str]) -> None:
        self.colors, self.additional = colors, additional
        self.last: str | None = None

    def of(self, node: Node) -> str:
        """Return the comment; "" for nodes without one, or with the same as before."""
        if node.op in ("placeholder", "output"):
            return ""
        found = [f"{key}: {node.meta[key]}" for key in self.additional if key in node.meta]
        start = f"# {', '.join(found)} #" if found else "#"
        custom = node.meta.get("custom") or {}
        if custom:
            texts = {key: str(value) for key, value in custom.items()}
            shown = {key: f"{text[:40]}..." if len(text) > 40 else custom[key] for key, text in texts.items()}
            start += f" Annotation: {shown}"
        text = f"\n{self.colors.dim(f'{start} {_place_of(node.stack_trace)}')}\n"
        if text == self.last:
            return ""
        self.last = text
        return text


class _ProgramLine(NamedTuple):
    """A line of the program."""

    file: str
    lineno: str
    name: str
    code: str


def parsed_stack_trace(stack_trace: str | None) -> _ProgramLine | None:
    """Return the innermost line of a stack trace; None if it has none."""
    lines = (stack_trace or "").strip().split("\n")
    for line, code in reversed(list(itertools.pairwise(lines))):
        found = re.fullmatch(r'File "(.+)", line (\d+), in (.+)', line.strip())
        if found:
            file, number, name = found.groups()
            return _ProgramLine(file, number, name, code.strip())
    return None


def _place_of(stack_trace: str | None) -> str:
    line = parsed_stack_trace(stack_trace)
    if line is None:
        return "No stacktrace found for following nodes"
    return f"File: {line.file}:{line.lineno} in {line.name}, code: {line.code}"


class _Writer:
    """Writes the lines of a graph's nodes, and collects what they refer to."""

    def __init__(
        self, codegen: CodeGen, nodes: Iterable[Node], root_module: str, names: _Namespace, *, verbose: bool,
        strides: bool, devices: bool, colors: _Colors, expanded: bool, additional: Sequence[str],
    ) -> None:  # fmt: skip
        self.codegen, self.nodes, self.root_module, self.names = codegen, list(nodes), root_module, names
        self.verbose, self.strides, self.devices, self.expanded = verbose, strides, devices, expanded
        self.colors = colors
        self.summary = _Summary(colors, additional)
        self.globals: dict[str, Any] = {}
        self.parameters: list[str] = []
        self.returns = ""
        self.wrapped: dict[str, None] = {}
        for name, (_, obj) in _custom_builtins.items():
            self.name_of(name, obj)
        self.frees = self._last_uses()

    def _last_uses(self) -> dict[Node, list[Node]]:
        """Return by node the values that nothing uses after it."""
        found: dict[Node, list[Node]] = {}
        seen: set[Node] = set()
        for user in reversed(self.nodes):
            for used in user._input_nodes:
                if used not in seen:
                    seen.add(used)
                    found.setdefault(user, []).append(used)
        return found

    def name_of(self, hint: str, obj: Any) -> str:
        """Return the name by which the code refers to an object."""
        if is_ours(obj) and obj is not device:
            return qualified_name(obj)
        name = self.names.create_name(hint, obj)
        known = self.globals.setdefault(name, obj)
        if known is not obj and known != obj:
            raise AssertionError(f"Global name {name} already assigned to different object")
        return name

    def type_text(self, kind: Any) -> str:
        """Return the text of an annotation."""
        if kind == ():
            return "()"
        text = type_name(kind)
        if isinstance(kind, types.UnionType) and "|" in text:
            return "|".join([self.type_text(each) for each in typing.get_args(kind)])
        origin = getattr(kind, "__origin__", None)
        if not origin:
            return self.name_of(text, kind)
        if isinstance(kind, typing._GenericAlias):  # type: ignore[attr-defined]
            origin = _GENERIC.get(origin, origin)
        name = self.name_of(type_name(origin), origin)
        items = [self.type_text(each) for each in typing.get_args(kind)]
        return f"{name}[{','.join(items)}]" if items else name

    def value_text(self, value: Any) -> str:
        """Return the expression of an argument."""
        if isinstance(value, Node):
            return repr(value)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return f"{self.name_of(qualified_name(type(value)), type(value))}{tuple(value)!r}"
        if isinstance(value, enum.Enum):
            return f"{self.name_of(type(value).__name__, type(value))}.{value.name}"
        if isinstance(value, Tensor):
            return f"torch.Tensor(size={list(value.shape)}, dtype={str(value.dtype).rpartition('.')[2]})"
        if isinstance(value, (tuple, list)):
            text = ", ".join([self.value_text(each) for each in value])
            if isinstance(value, list):
                return f"[{text}]"
            return f"({text},)" if len(value) == 1 else f"({text})"
        if isinstance(value, slice):
            parts = [self.value_text(each) for each in (value.start, value.stop, value.step)]
            return f"slice({', '.join(parts)})"
        return self.colors.blue(repr(value))

    def arguments(self, args: Iterable[Any], kwargs: dict[str, Any]) -> str:
        """Return the arguments of a call."""
        parts = [self.value_text(each) for each in args]
        return ", ".join([*parts, *[f"{key} = {self.value_text(value)}" for key, value in kwargs.items()]])

    def annotation(self, node: Node) -> str:
        """Return the annotation of a node's value: its type, or in verbose code its dtype and shape."""
        plain = "" if node.type is None else f" : {self.type_text(node.type)}"
        if not self.verbose:
            return plain
        value: Any = node.meta.get("val", node.meta.get("tensor_meta", node.meta.get("example_value")))
        colors = self.colors
        if isinstance(value, Tensor):
            text = colors.red(dtype_abbrs[value.dtype]) + colors.blue(_bracketed(value.shape))
            text += colors.dim_blue(_bracketed(value.stride()) if self.strides else "")
            text += colors.dim_green(str(value.device) if self.devices else "")
            return f': "{text}"' if type(value) is Tensor else f': "{type(value).__name__}({text})"'
        if type(value).__name__ == "TensorMetadata":
            return f': "{dtype_abbrs[value.dtype]}{_bracketed(value.shape)}"'
        return plain

    def line(self, node: Node) -> str:
        """Return the statement of a node, without its end."""
        assign = f"{node!r}{self.annotation(node)} = "
        target: Any = node.target
        if node.op == "call_method":
            callee = _format_target(self.value_text(node.args[0]), target)
            return f"{assign}{callee}({self.arguments(node.args[1:], node.kwargs)})"
        if node.op == "call_module":
            return f"{assign}{_format_target(self.root_module, target)}({self.arguments(node.args, node.kwargs)})"
        if node.op == "get_attr":
            return assign + _format_target(self.root_module, target)
        if node.op == "call_function":
            return self.call(node, assign)
        if node.op == "output":
            if node.type is not None:
                self.returns = f" -> {self.type_text(node.type)}"
            descriptions = node.meta.get("desc") if self.expanded else None
            text: str = _given_what_it_takes(
                self.codegen.generate_output, node.args[0], descs=descriptions, repr_fn=self.value_text
            )
            return text
        raise NotImplementedError(f"node: {node.op} {node.target}")

    def call(self, node: Node, assign: str) -> str:
        """Return the statement of a function's call; operators are written as such."""
        target: Any = node.target
        if getattr(target, "__module__", "") == "_operator":
            values = [self.value_text(each) for each in node.args]
            if target.__name__ in magic_methods:
                return assign + magic_methods[target.__name__].format(*values)
            if target.__name__ in inplace_methods:
                return f"{inplace_methods[target.__name__].format(*values)};  {assign}{values[0]}"
        name = self.name_of(qualified_name(target), target)
        args = node.args
        if name == "getattr" and len(args) == 2 and isinstance(args[1], str) and args[1].isidentifier():
            return assign + _format_target(self.value_text(args[0]), args[1])
        if node.meta.get("is_wrapped", False):
            self.wrapped.setdefault(name)
        return f"{assign}{name}({self.arguments(args, node.kwargs)})"

    def parameter(self, node: Node) -> str:
        """Note a parameter; return the statement that gives it the node's name, if that is another one."""
        target = str(node.target)
        default = f" = {self.value_text(node.args[0])}" if node.args else ""
        description = node.meta.get("desc") if self.expanded else None
        comment = "" if description is None else f"  # {description}"
        self.parameters.append(f"{target}{self.annotation(node)}{default}{comment}")
        name = target.replace("*", "")
        return "" if name == repr(node) else f"{node!r} = {name}\n"

    def body(self) -> list[str]:
        """Return the pieces of the body; before those of each node is a comment that tells its number."""
        pieces: list[str] = []
        for number, node in enumerate(self.nodes):
            summary = self.summary.of(node) if self.verbose else ""
            pieces += [summary] if summary else []
            pieces.append(f"# COUNTER: {number}\n")
            if node.op == "placeholder":
                pieces += filter(None, [self.parameter(node)])
                continue
            pieces.append(self.line(node))
            freed = self.frees.get(node, []) + ([] if node.users else [node])
            if node.op == "output" or not freed:
                pieces.append("\n")
            else:
                pieces.append(f";  {self.colors.dim(' = '.join([*map(repr, freed), 'None']))}\n")
        return pieces or ["pass\n"]


def _given_what_it_takes(method: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call a method with those of the options that it has parameters for: subclasses may take fewer."""
    known = inspect.signature(method).parameters
    return method(*args, **{key: value for key, value in options.items() if key in known})


class CodeGen:
    """Writes the code of a graph; subclasses change how it takes arguments and returns results."""

    def __init__(self) -> None:
        self._body_transformer: TransformCodeFunc | None = None
        self._func_name = "forward"

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False) -> str:
        """Return the first line of the function.

        Args:
            free_vars: the parameters, with annotations and defaults.
            maybe_return_annotation: the annotation of the result, or "".
            expanded_def: whether each parameter has a line of its own.
        """
        if not free_vars or free_vars[0] != "self":
            free_vars.insert(0, "self")
        if not expanded_def:
            return f"def {self._func_name}({', '.join(free_vars)}){maybe_return_annotation}:"
        lines = ""
        for each in free_vars:
            code, mark, comment = each.partition("#")
            lines += f"    {code.rstrip()},  # {comment.lstrip()}\n" if mark else f"    {each},\n"
        return f"def {self._func_name}(\n{lines}){maybe_return_annotation}:"

    def generate_output(
        self, output_args: Any, *, descs: Sequence[str] | None = None, repr_fn: Callable[[Any], str] | None = None
    ) -> str:
        """Return the return statement."""
        return self._returned(output_args, descs, repr_fn, "return ", "")

    def _returned(
        self, value: Any, descs: Sequence[str] | None, repr_fn: Callable[[Any], str] | None, start: str, end: str
    ) -> str:
        text = repr if repr_fn is None else repr_fn
        if descs is None or not isinstance(value, (list, tuple)):
            return f"{start}{text(value)}{end}"
        brackets = "()" if isinstance(value, tuple) else "[]"
        lines = [f"    {text(each)},  # {about}\n" for each, about in zip(value, descs, strict=False)]
        return f"{start}{brackets[0]}\n{''.join(lines)}{brackets[1]}{end}"

    def process_inputs(self, *args: Any) -> Any:
        """Return the values of the graph's parameters for the arguments of the function."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """Return the function's result for the graph's."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Return further names that the code refers to, with their objects."""
        return []

    def _gen_python_code(
        self, nodes: Any, root_module: str, namespace: _Namespace, *, verbose: bool = False,
        include_stride: bool = False, include_device: bool = False, colored: bool = False, expanded_def: bool = False,
        record_func: bool = False, additional_meta: list[str] | None = None,
    ) -> PythonCode:  # fmt: skip
        writer = _Writer(
            self, nodes, root_module, namespace, verbose=verbose, strides=include_stride, devices=include_device,
            colors=_Colors(colored), expanded=expanded_def, additional=additional_meta or (),
        )  # fmt: skip
        pieces = writer.body()
        wraps = ""
        if writer.wrapped:
            wrap = writer.name_of("wrap", root().fx.wrap)
            wraps = "\n".join([f'{wrap}("{name}")' for name in writer.wrapped])
        if self._body_transformer:
            pieces = self._body_transformer(pieces)
        for name, value in self.additional_globals():
            writer.name_of(name, value)
        head = _given_what_it_takes(self.gen_fn_def, writer.parameters, writer.returns, expanded_def=expanded_def)

        lines: list[str] = []
        numbers: dict[int, int | None] = {}
        number, offset = None, head.count("\n") + 1
        for line in "".join(pieces).split("\n"):
            counter = re.search(r"# COUNTER: (\d+)", line)
            if counter:
                number = int(counter.group(1))
            else:
                numbers[len(lines) + offset] = number
                lines.append(line)
        body = "\n".join(lines).lstrip("\n")
        body = "\n".join([f"    {line}" for line in body.split("\n")])
        source = f"\n{wraps}\n\n{head}\n{body}"
        return PythonCode(source, writer.globals, numbers, wraps.count("\n") + 4)


class _PyTreeInfo(NamedTuple):
    """How a function takes containers: its parameters, and the structures of arguments and result."""

    orig_args: list[str]
    in_spec: Any
    out_spec: Any


class _PyTreeCodeGen(CodeGen):
    """Writes functions whose arguments and results are containers of the graph's values."""

    def __init__(self, pytree_info: _PyTreeInfo) -> None:
        super().__init__()
        self.pytree_info = pytree_info

    def process_inputs(self, *inputs: Any) -> Any:
        """Return the leaves of the arguments."""
        return pytree.arg_tree_leaves(*inputs)

    def process_outputs(self, out: Any) -> Any:
        """Return the container of the results."""
        if self.pytree_info is None or self.pytree_info.out_spec is None:
            return out
        return pytree.tree_unflatten(out if isinstance(out, (list, tuple)) else [out], self.pytree_info.out_spec)

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False) -> str:
        """Return the first line, and the lines that take the values out of the arguments."""
        if self.pytree_info is None:
            return super().gen_fn_def(free_vars, maybe_return_annotation, expanded_def=expanded_def)
        parameters = self.pytree_info.orig_args
        if parameters and parameters[0] == "self":
            free_vars.insert(0, "self")
        head = super().gen_fn_def(parameters[:], maybe_return_annotation, expanded_def=expanded_def)
        return head + self.gen_var_bindings(parameters, free_vars, expanded_def) if free_vars else head

    def gen_var_bindings(self, fn_args: list[str], free_vars: list[str], expanded_def: bool) -> str:
        """Return the lines that take the values out of the arguments."""
        spec = self.pytree_info.in_spec
        children = spec.children()
        arguments = f"[{', '.join(fn_args)}]"
        if spec.type is tuple and [each.type for each in children] == [tuple, dict]:  # positional and keyword ones
            count = children[0].num_children
            names = self.pytree_info.orig_args
            named = ", ".join([f"'{key}':{v}" for key, v in zip(children[1].context, names[count:], strict=False)])
            arguments = f"([{', '.join(names[:count])}], {{{named}}})"
        annotated = [each for each in free_vars if ":" in each]
        lines = ""
        if annotated:  # (a statement cannot annotate several names)
            lines = "\n    " + ("\n    ".join(annotated) if expanded_def else "; ".join([*annotated, ""]) + "\n")
        plain = [each.split(":")[0].split("#")[0] for each in free_vars]
        return f"{lines}\n    {', '.join(plain)}, = fx_pytree.tree_flatten_spec({arguments}, self._in_spec)"

    def generate_output(
        self, output_args: Any, *, descs: Sequence[str] | None = None, repr_fn: Callable[[Any], str] | None = None
    ) -> str:
        """Return the return statement, which makes the container."""
        if not (self.pytree_info and self.pytree_info.out_spec):
            return super().generate_output(output_args, descs=descs, repr_fn=repr_fn)
        return self._returned(output_args, descs, repr_fn, "return pytree.tree_unflatten(", ", self._out_spec)")


class _BoxedCodeGen(CodeGen):
    """Writes functions that take their arguments in one list, which they empty."""

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False) -> str:
        """Return the first line, and the lines that take the arguments out of the list."""
        names = [each.split(":")[0].split("=")[0].strip() for each in free_vars if each != "self"]
        lines = [f"def {self._func_name}(self, args_list){maybe_return_annotation}:"]
        if names:
            lines += ["args_iter = iter(args_list)", *[f"{name} = next(args_iter)" for name in names]]
            lines.append("args_list.clear()")
        return "\n    ".join(lines)
