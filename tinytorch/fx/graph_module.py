"""`torch.fx.graph_module`: modules whose `forward` is generated from a graph."""

from __future__ import annotations

import contextlib
import copy
import importlib
import itertools
import linecache
import operator
import os
import pickle
import re
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, Self

from tinytorch.core.mode import traced_as
from tinytorch.core.tensor import Tensor
from tinytorch.fx._codegen import PythonCode, _custom_builtins, _PyTreeCodeGen
from tinytorch.fx._names import root as package
from tinytorch.fx.graph import Graph
from tinytorch.nn.modules.module import Module, _addindent
from tinytorch.nn.parameter import Parameter

__all__ = ["GraphModule", "reduce_graph_module"]

_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"


# Sources ------------------------------------------------------------------------------------------


_numbers = itertools.count()


def _file_of(source: str, origin: dict[str, Any]) -> str:
    """Return the name of a file that does not exist, of which tracebacks show the source's lines."""
    # (PyTorch, if it runs in this process, too, changes `linecache` to find its own sources under such names.)
    name = f"<eval_with_key{' of tinytorch' * ('torch._C' in sys.modules)}>.{next(_numbers)}"
    if origin:
        name += " from {co_filename}:{co_firstlineno} in {co_name}".format(**origin)
        name = name.removesuffix(">")  # (`linecache` does not look up names in brackets)
    linecache.cache[name] = len(source), None, source.splitlines(True), name
    return name


def _forward_from_src(src: str, globals: dict[str, Any], co_fields: dict[str, Any] | None = None) -> Any:
    """Return the function `forward` of a source."""
    names = dict(globals)
    exec(compile(src, _file_of(src, co_fields or {}), "exec", dont_inherit=True), names)
    return names.pop("forward")


def _in_this_process(statement: str) -> str:
    """Return an import of `torch` as one of this package, unless this package has the name `torch`."""
    ours = package()
    if sys.modules.get("torch") is ours:
        return statement
    own = ours.__spec__.name
    if statement == "import torch":
        return f"import {own} as torch"
    return re.sub(r"^(from|import) torch\b", rf"\1 {own}", statement)


def _format_import_statement(name: str, obj: Any) -> str:
    """Return the statement that imports an object by a name."""
    if name in _custom_builtins:
        return _in_this_process(_custom_builtins[name].import_str)
    own = getattr(obj, "__qualname__", None) or getattr(obj, "__name__", None) or getattr(obj, "_name", None)
    module = getattr(obj, "__module__", None) or pickle.whichmodule(obj, own)  # type: ignore[attr-defined]
    found = sys.modules.get(module)
    for part in str(own).split("."):
        found = getattr(found, part, None)
    if found is not obj and found != obj and getattr(found, "__wrapped__", None) is not obj:
        raise pickle.PicklingError(f"{obj} was not found as {module}.{own}: it cannot be imported by generated code")
    first, _, rest = str(own).partition(".")
    if not rest:
        return f"from {module} import {own} as {name}"
    return f"import {module}; {name} = {module}.{first}.{rest}"


def _format_import_block(globals: dict[str, Any]) -> str:
    return "\n".join(sorted({_format_import_statement(name, obj) for name, obj in globals.items()}))


# Pickles ------------------------------------------------------------------------------------------


def reduce_graph_module(body: dict[str, Any], import_block: str) -> Any:
    """Return the module of a pickle: the graph is recorded from its code."""
    source = body.get("_code") or body["code"]
    return _deserialize_graph_module(_forward_from_src(import_block + source, {}), body)


class _CodeOnlyModule(Module):
    """A module with given attributes and, in a subclass, a `forward`."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__ = body


def _deserialize_graph_module(forward: Any, body: dict[str, Any], graph_module_cls: Any = None) -> Any:
    """Return a graph module with the graph of a function, and with the attributes of another."""
    tracer_cls: Any = body.get("_tracer_cls") or importlib.import_module("tinytorch.fx._symbolic_trace").Tracer

    class KeepModules(tracer_cls):  # type: ignore[misc]
        """Records every module as a leaf: the code calls those of the graph."""

        def is_leaf_module(self, _: Module, __: str) -> bool:
            return True

    holder = type("_CodeOnlyModule", (_CodeOnlyModule,), {"forward": forward})(body)
    graph = KeepModules().trace(holder, **body.get("_tracer_extras", {}))
    graph._tracer_cls = tracer_cls
    name = body.get("_graphmodule_cls_name", "GraphModule")
    made = (graph_module_cls or GraphModule)(holder, graph, name)
    for key, value in body.items():
        if not hasattr(made, key):
            setattr(made, key, value)
    return made


# Attributes by path -------------------------------------------------------------------------------


def _put(owner: Module, name: str, value: Any) -> None:
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        owner.register_buffer(name, value)
    else:
        setattr(owner, name, value)


def _copy_attr(from_module: Module, to_module: Module, target: str) -> None:
    """Give a module the attribute of another one at a path, with the modules on the way."""
    *path, name = target.split(".")
    for part in path:
        source, own = getattr(from_module, part), getattr(to_module, part, None)
        if source is own:
            return
        if own is None:
            own = Module()
            setattr(to_module, part, own)
        from_module, to_module = source, own
    _put(to_module, name, getattr(from_module, name))


def _assign_attr(from_obj: Any, to_module: Module, target: str) -> None:
    """Give a module an attribute at a path, with the modules on the way."""
    home, _, name = target.rpartition(".")
    _put(_made_module(to_module, home), name, from_obj)


def _made_module(owner: Any, path: str) -> Any:
    """Return the module at a path, with empty ones where there is nothing; None if what is on the way is no module."""
    for name in path.split(".") if path else ():
        if getattr(owner, name, None) is None:
            setattr(owner, name, Module())
        owner = getattr(owner, name)
        if not isinstance(owner, Module):
            return None
    return owner


def _get_attr(model: Module, attr_name: str) -> Any:
    """Return the attribute of a module at a path."""
    return operator.attrgetter(attr_name)(model)


def _print_readable(module: Any, module_name: str, print_output: bool = True, **options: Any) -> str:
    source = module.graph.python_code("self", verbose=True, **options).src.lstrip("\n")
    text = _addindent(f"class {module_name}(torch.nn.Module):\n{source}", 4)
    parts = [""]
    for name, child in module.named_children():
        if isinstance(child, GraphModule):
            parts.append(_print_readable(child, name, print_output=False, **options))
    text += _addindent("\n".join(parts), 4)
    if print_output:
        print(text)
    return text


def _failing_line(error: Exception) -> traceback.FrameSummary | None:
    """Return the generated line in which a function of tensors has failed; None if a module or the program has."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = str(Path(package().__file__).parent)
    while frames and frames[-1].filename.startswith(ours) and "torch.nn" not in _module_of(frames[-1].filename, ours):
        frames.pop()
    return frames[-1] if frames and "eval_with_key" in frames[-1].filename else None


def _module_of(file: str, folder: str) -> str:
    """Return the dotted name of a file of this package, as one of `torch`."""
    return "torch" + file.removeprefix(folder).replace(os.sep, ".")


class _WrappedCall:
    """Calls a graph module; if its generated code fails, the line is printed."""

    def __init__(self, cls: Any, cls_call: Callable[..., Any] | None) -> None:
        self.cls, self.cls_call = cls, cls_call

    @staticmethod
    def _generate_error_message(frame_summary: traceback.FrameSummary) -> str:
        number, line = frame_summary.lineno or 0, frame_summary.line or ""
        lines = linecache.getlines(frame_summary.filename)
        return "\n".join(
            [
                traceback.format_exc(),
                f"Call using an FX-traced Module, line {number} of the traced Module's generated forward function:",
                "".join(lines[max(number - 2, 0) : number]),
                f"{'~' * len(line)}~~~ <--- HERE",
                "\n".join(lines[number : number + 2]),
            ]
        )

    def __call__(self, obj: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the result of the module's call."""
        try:
            if self.cls_call is not None:
                return self.cls_call(obj, *args, **kwargs)
            return super(self.cls, obj).__call__(*args, **kwargs)  # type: ignore[misc]
        except Exception as error:
            last = _failing_line(error)
            if last is None:
                raise
            print(self._generate_error_message(last), file=sys.stderr)
            raise error.with_traceback(None)  # noqa: B904


class GraphModule(Module):
    """A module whose `forward` is the code of a graph; it shares what that refers to with `root`, a module or a dict.

    Example:
        >>> graph = torch.fx.Graph()
        >>> x = graph.placeholder("x")
        >>> y = graph.output(graph.call_module("layer", (x,)))
        >>> module = torch.fx.GraphModule({"layer": torch.nn.ReLU()}, graph)
        >>> module(torch.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """

    _graph: Graph
    _code: str

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Return an instance of a new subclass: each has a `forward` of its own."""
        base = next((each for each in cls.__mro__ if each.__qualname__.rpartition(".")[2] != "GraphModuleImpl"), cls)

        class GraphModuleImpl(base):  # type: ignore[misc, valid-type]
            pass

        return super().__new__(GraphModuleImpl)

    def __init__(self, root: Module | dict[str, Any], graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        type(self).__name__ = class_name
        targets: list[Any] = [node.target for node in graph.nodes if node.op in ("get_attr", "call_module")]
        if isinstance(root, Module):
            self.training = root.training
            if isinstance(root, _CodeOnlyModule):
                for members in (root.named_children(), root.named_buffers(), root.named_parameters()):
                    for name, _ in members:
                        _copy_attr(root, self, name)
            for target in targets:
                _copy_attr(root, self, target)
        elif isinstance(root, dict):
            for node in graph.nodes:
                if node.target in targets and node.target not in root:
                    raise RuntimeError(
                        f"Node {node} referenced target {node.target} but that target was not provided in ``root``!"
                    )
            for target in sorted(targets, key=lambda path: path.count(".")):
                _assign_attr(root[target], self, target)
        else:
            raise RuntimeError(f"Unsupported type {root} passed for root!")
        self.graph = graph
        tracer_cls = graph._tracer_cls
        self._tracer_cls = tracer_cls if tracer_cls and "<locals>" not in tracer_cls.__qualname__ else None
        self._tracer_extras = graph._tracer_extras or {}
        self.meta: dict[str, Any] = {}

    # The code -------------------------------------------------------------------------------------

    @property
    def graph(self) -> Graph:
        """The graph; assigning another one generates the code anew."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        self._graph = g
        g.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The generated code."""
        return self._code

    def recompile(self) -> PythonCode:
        """Generate `forward` from the graph: after the graph was changed.

        Example:
            >>> module = torch.fx.symbolic_trace(lambda x: torch.relu(x))
            >>> for node in module.graph.find_nodes(op="call_function", target=torch.relu):
            ...     node.target = torch.neg
            >>> code = module.recompile()
            >>> module(torch.ones(1))
            tensor([-1.])
        """
        codegen = self._graph._codegen
        if isinstance(codegen, _PyTreeCodeGen):
            self._in_spec, self._out_spec = codegen.pytree_info.in_spec, codegen.pytree_info.out_spec
        made = self._graph.python_code("self")
        self._code = made.src
        cls: Any = type(self)
        cls.forward = _forward_from_src(made.src, made.globals, self._graph._co_fields)
        if "_wrapped_call" not in vars(cls):
            cls._wrapped_call = _WrappedCall(cls, vars(cls).get("__call__"))
        self._recompile_submodules()

        def call_wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
            return self._wrapped_call(self, *args, **kwargs)

        if cls._wrapped_call.cls_call is None:  # it does what a module's call does
            traced_as("inline")(call_wrapped)
        cls.__call__ = call_wrapped
        return made

    def _recompile_submodules(self) -> list[tuple[str, PythonCode]]:
        """Recompile the graph modules among the children; return their names and codes."""
        return [(name, child.recompile()) for name, child in self.named_children() if isinstance(child, GraphModule)]

    def print_readable(
        self, print_output: bool = True, include_stride: bool = False, include_device: bool = False,
        colored: bool = False, **unused: Any,
    ) -> str:  # fmt: skip
        """Print the code as a class, with dtypes, shapes and lines of the program as far as the nodes tell them."""
        return _print_readable(
            self, self._get_name(), print_output, include_stride=include_stride, include_device=include_device,
        )  # fmt: skip

    def __str__(self) -> str:
        hint = "# To see more debug info, please use `graph_module.print_readable()`"
        return "\n".join([super().__repr__(), self._code, hint])

    def _get_name(self) -> str:
        return type(self).__name__

    # Modules --------------------------------------------------------------------------------------

    def add_submodule(self, target: str, m: Module) -> bool:
        """Add a module at a path, with empty modules on the way where there are none.

        Returns:
            Whether it was added: not if something on the way is no module.
        """
        home, _, name = target.rpartition(".")
        owner = _made_module(self, home)
        if owner is not None:
            owner.add_module(name, m)
        return owner is not None

    def delete_submodule(self, target: str) -> bool:
        """Delete the module at a path; return whether there was one."""
        home, _, name = target.rpartition(".")
        owner: Any = self
        for part in home.split(".") if home else ():
            owner = getattr(owner, part, None)
            if not isinstance(owner, Module):
                return False
        if not isinstance(getattr(owner, name, None), Module):
            return False
        delattr(owner, name)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Delete the modules that the graph does not use, nor modules below them.

        Example:
            >>> module = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Tanh()))
            >>> unused = module.graph.find_nodes(op="call_module", target="1")[0]
            >>> unused.replace_all_uses_with(unused.args[0])
            [output]
            >>> module.graph.erase_node(unused)
            >>> module.delete_all_unused_submodules()
            >>> [name for name, _ in module.named_children()]
            ['0']
        """
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op not in ("call_module", "get_attr") or not isinstance(node.target, str):
                continue
            used.update(itertools.accumulate(node.target.split("."), lambda x, y: f"{x}.{y}"))
            if node.op == "call_module":
                with contextlib.suppress(AttributeError):
                    below = self.get_submodule(node.target).named_modules()
                    used.update([f"{node.target}.{name}" for name, _ in below if name])
        for name in [name for name, _ in self.named_modules() if name not in used]:
            if name:
                self.delete_submodule(name)

    def to_folder(self, folder: str | os.PathLike[str], module_name: str = "FxModule") -> NoReturn:
        """Raise NotImplementedError: in PyTorch it writes a package; here a module is pickled."""
        raise NotImplementedError("torch.fx.GraphModule.to_folder: write the module by pickle, or its code by yourself")

    # Copies and pickles ---------------------------------------------------------------------------

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the attributes and the code: the graph is recorded from it when the pickle is read."""
        body = {key: value for key, value in self.__dict__.items() if key != "_graph"}
        return reduce_graph_module, (body, _format_import_block(self.recompile().globals))

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return self.__reduce__()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        holder = _CodeOnlyModule(copy.deepcopy(self.__dict__, memo))
        GraphModule.__init__(made, holder, holder.__dict__["_graph"])
        for name in ("_state_dict_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks"):
            if name in self.__dict__:
                setattr(made, name, copy.deepcopy(self.__dict__[name], memo))
        made.meta = copy.deepcopy(getattr(self, "meta", {}), memo)
        for name, value in made.meta.get(_USER_PRESERVED_ATTRIBUTES_KEY, {}).items():
            setattr(made, name, value)
        return made

    def __copy__(self) -> Any:
        made = GraphModule(self, self.graph)
        made.meta = getattr(self, "meta", {})
        return made
