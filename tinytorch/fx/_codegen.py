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
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from tinytorch.core.device import device
from tinytorch.core.tensor import Tensor
from tinytorch.func import pytree
from tinytorch.fx import _pytree as fx_pytree
from tinytorch.fx._names import is_ours, qualified_name, root, type_name
from tinytorch.fx.node import Node, dtype_abbrs, last_uses

__all__ = ["CodeGen", "PythonCode"]

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
        """Return a name like `candidate`, with a number if it is in use or means something else in Python."""
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
        self._obj_to_name[obj] = name

    def _rename_object(self, obj: Any, name: str) -> None:
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
    """The code of a graph."""

    src: str
    globals: dict[str, Any]


def _format_target(base: str, target: str) -> str:
    """Return the expression of an attribute at a dotted path."""
    for name in target.split("."):
        base = f"{base}.{name}" if name.isidentifier() else f'getattr({base}, "{name}")'
    return base


def _bracketed(values: Iterable[Any]) -> str:
    return f"[{', '.join([str(each) for each in values])}]"


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


class _Writer:
    """Writes the lines of a graph's nodes, and collects what they refer to."""

    def __init__(
        self, codegen: CodeGen, nodes: Iterable[Node], root_module: str, names: _Namespace, *, verbose: bool,
        strides: bool, devices: bool,
    ) -> None:  # fmt: skip
        self.codegen, self.nodes, self.root_module, self.names = codegen, list(nodes), root_module, names
        self.verbose, self.strides, self.devices = verbose, strides, devices
        self.last_place = ""
        self.globals: dict[str, Any] = {}
        self.parameters: list[str] = []
        self.returns = ""
        self.wrapped: dict[str, None] = {}
        for name, (_, obj) in _custom_builtins.items():
            self.name_of(name, obj)
        self.frees = last_uses(self.nodes)

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
        return repr(value)

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
        if isinstance(value, Tensor):
            text = dtype_abbrs[value.dtype] + _bracketed(value.shape)
            text += (_bracketed(value.stride()) if self.strides else "") + (str(value.device) if self.devices else "")
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
            write: Any = self.codegen.generate_output  # (that of a subclass may take the value alone)
            takes_both = "repr_fn" in inspect.signature(write).parameters
            return str(write(node.args[0], **({"repr_fn": self.value_text} if takes_both else {})))
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
        self.parameters.append(f"{target}{self.annotation(node)}{default}")
        name = target.replace("*", "")
        return "" if name == repr(node) else f"{node!r} = {name}\n"

    def place(self, node: Node) -> list[str]:
        """Return the comment above a node, which tells where the program has the call; none that repeats the last."""
        if not self.verbose or node.op in ("placeholder", "output"):
            return []
        line = parsed_stack_trace(node.stack_trace)
        place = "No stacktrace found for following nodes"
        if line is not None:
            place = f"File: {line.file}:{line.lineno} in {line.name}, code: {line.code}"
        before, self.last_place = self.last_place, place
        return [] if place == before else [f"\n# {place}\n"]

    def body(self) -> list[str]:
        """Return the pieces of the body."""
        pieces: list[str] = []
        for node in self.nodes:
            pieces += self.place(node)
            if node.op == "placeholder":
                pieces += filter(None, [self.parameter(node)])
                continue
            pieces.append(self.line(node))
            freed = self.frees.get(node, []) + ([] if node.users else [node])
            if node.op == "output" or not freed:
                pieces.append("\n")
            else:
                pieces.append(f";  {' = '.join([*map(repr, freed), 'None'])}\n")
        return pieces if self.nodes else ["pass\n"]


class CodeGen:
    """Writes the code of a graph; subclasses change how it takes arguments and returns results."""

    def __init__(self) -> None:
        self._func_name = "forward"

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """Return the first line of the function."""
        if not free_vars or free_vars[0] != "self":
            free_vars.insert(0, "self")
        return f"def {self._func_name}({', '.join(free_vars)}){maybe_return_annotation}:"

    def generate_output(self, output_args: Any, *, repr_fn: Callable[[Any], str] = repr) -> str:
        """Return the return statement."""
        return f"return {repr_fn(output_args)}"

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
        include_stride: bool = False, include_device: bool = False,
    ) -> PythonCode:  # fmt: skip
        writer = _Writer(
            self, nodes, root_module, namespace, verbose=verbose, strides=include_stride, devices=include_device,
        )  # fmt: skip
        pieces = writer.body()
        wraps = ""
        if writer.wrapped:
            wrap = writer.name_of("wrap", root().fx.wrap)
            wraps = "\n".join([f'{wrap}("{name}")' for name in writer.wrapped])
        for name, value in self.additional_globals():
            writer.name_of(name, value)
        head = self.gen_fn_def(writer.parameters, writer.returns)

        body = "".join(pieces).lstrip("\n").replace("\n", "\n    ")
        return PythonCode(f"\n{wraps}\n\n{head}\n    {body}", writer.globals)


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

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """Return the first line, and the lines that take the values out of the arguments."""
        if self.pytree_info is None:
            return super().gen_fn_def(free_vars, maybe_return_annotation)
        parameters = self.pytree_info.orig_args
        if parameters and parameters[0] == "self":
            free_vars.insert(0, "self")
        head = super().gen_fn_def(parameters[:], maybe_return_annotation)
        return head + self.gen_var_bindings(parameters, free_vars) if free_vars else head

    def gen_var_bindings(self, fn_args: list[str], free_vars: list[str]) -> str:
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
        # (A statement cannot annotate several names.)
        lines = "\n    " + "; ".join([*annotated, ""]) + "\n" if annotated else ""
        plain = [each.split(":")[0].split("#")[0] for each in free_vars]
        return f"{lines}\n    {', '.join(plain)}, = fx_pytree.tree_flatten_spec({arguments}, self._in_spec)"

    def generate_output(self, output_args: Any, *, repr_fn: Callable[[Any], str] = repr) -> str:
        """Return the return statement, which makes the container."""
        if not (self.pytree_info and self.pytree_info.out_spec):
            return super().generate_output(output_args, repr_fn=repr_fn)
        return f"return pytree.tree_unflatten({repr_fn(output_args)}, self._out_spec)"
