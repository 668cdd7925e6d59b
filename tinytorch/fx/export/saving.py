"""`torch.export.save` and `load`: exported programs in files.

A file is a zip archive: `program.json` has the graph, the structures of the arguments and of the result, and the
dynamic sizes; `tensors.npz` the parameters, buffers, constants and example inputs.
"""

from __future__ import annotations

import importlib
import io
import json
import operator
import os
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np

from tinytorch.core.device import device
from tinytorch.core.names import module_of
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.func.pytree import flatten, treespec_dumps, treespec_loads, unflatten
from tinytorch.fx.export.dynamic_shapes import Dim, Dynamic
from tinytorch.fx.export.exported_program import ExportedProgram
from tinytorch.fx.export.graph_signature import InputKind
from tinytorch.fx.export.tracing import Described, ExportError, Traced
from tinytorch.fx.graph import Graph
from tinytorch.fx.graph_module import _made_module
from tinytorch.fx.node import Node
from tinytorch.kernels import dtypes
from tinytorch.nn.modules.module import Module
from tinytorch.nn.parameter import Parameter
from tinytorch.ops.register import Function, functions

VERSION = 1


def save(
    ep: ExportedProgram, f: Any, *, extra_files: dict[str, Any] | None = None, opset_version: Any = None,
    pickle_protocol: int = 2,
) -> None:  # fmt: skip
    """Write an exported program to a file.

    Raises:
        ExportError: the graph calls a function that has no public name.

    Example:
        >>> import io
        >>> program = torch.export.export(torch.nn.Linear(3, 2), (torch.ones(4, 3),))
        >>> file = io.BytesIO()
        >>> torch.export.save(program, file)
        >>> _ = file.seek(0)
        >>> torch.export.load(file).module()(torch.zeros(4, 3)).shape
        torch.Size([4, 2])
    """
    arrays: dict[str, Any] = {}
    examples, _ = flatten(ep.example_inputs)
    record: dict[str, Any] = {
        "version": VERSION,
        "in_spec": treespec_dumps(ep.call_spec.in_spec),
        "out_spec": treespec_dumps(ep.call_spec.out_spec),
        "names": ep.names,
        "examples": [_stored(x, arrays) for x in examples],
        "dynamic": [[x.leaf, x.dim, x.name, x.required, _size(x.size)] for x in ep.dynamic],
        "states": [],
        "nodes": [],
    }
    for spec in ep.graph_signature.input_specs:
        if spec.kind is not InputKind.USER_INPUT:
            x = ep.tensor_of(spec)
            kind = [isinstance(x, Parameter), x.requires_grad, bool(spec.persistent)]
            record["states"].append([spec.arg.name, spec.target, _stored(x.detach(), arrays), kind])
    for node in ep.graph.nodes:
        described = node.meta.get("tensor")
        record["nodes"].append({
            "op": node.op, "name": node.name, "target": _target(node), "args": _written(node.args),
            "kwargs": _written(dict(node.kwargs)), "line": node.meta.get("line", ""), "val": _number(node),
            "writes": getattr(node.meta.get("writes"), "name", None),
            "tensor": None if described is None else _written(tuple(described)),
        })  # fmt: skip
    with zipfile.ZipFile(f, "w") as file:
        file.writestr("program.json", json.dumps(record))
        buffer = io.BytesIO()
        np.savez(buffer, **arrays)
        file.writestr("tensors.npz", buffer.getvalue())
        for name, text in (extra_files or {}).items():
            file.writestr(f"extra_files/{name}", text)


def load(
    f: Any, *, extra_files: dict[str, Any] | None = None, expected_opset_version: Any = None
) -> ExportedProgram:  # fmt: skip
    """Return an exported program that `save` has written."""
    if isinstance(f, (str, os.PathLike)) and not zipfile.is_zipfile(f):
        raise ExportError(f"{f} is no file of an exported program")
    with zipfile.ZipFile(f) as file:
        if "program.json" not in file.namelist():
            raise ExportError("this is no file that tinytorch's torch.export.save has written")
        record = json.loads(file.read("program.json"))
        with np.load(io.BytesIO(file.read("tensors.npz"))) as stored:
            arrays = {name: stored[name] for name in stored.files}
        for name in extra_files or {}:
            extra_files[name] = file.read(f"extra_files/{name}").decode()  # type: ignore[index]
    graph = Graph()
    nodes: dict[str, Node] = {}
    for each in record["nodes"]:
        args, kwargs = [_read(each[part], nodes) for part in ("args", "kwargs")]
        target = _found(each["target"]) if each["op"] == "call_function" else each["target"]
        node = nodes[each["name"]] = graph.create_node(each["op"], target, args, kwargs, each["name"])
        node.name = each["name"]
        node.meta["line"], node.meta["val"] = each["line"], each["val"]
        if each["writes"]:
            node.meta["writes"] = nodes[each["writes"]]
        if each["tensor"] is not None:
            node.meta["tensor"] = Described(*_read(each["tensor"], nodes))
    root = Module()
    states = {}
    for name, target, key, (parameter, grad, persistent) in record["states"]:
        x: Any = _loaded(key, arrays)
        x = Parameter(x, requires_grad=grad) if parameter else x
        states[nodes[name]] = target, x
        _put(root, target, x, parameter, persistent and not name.startswith("c_"))
    in_spec, out_spec = treespec_loads(record["in_spec"]), treespec_loads(record["out_spec"])
    known = {node for node in states}
    inputs = [node for node in graph.find_nodes(op="placeholder") if node not in known]
    args, kwargs = unflatten([_loaded(x, arrays) for x in record["examples"]], in_spec)
    dynamic = [Dynamic(leaf, dim, _dim(size), name, required) for leaf, dim, name, required, size in record["dynamic"]]
    return ExportedProgram(root, Traced(graph, out_spec, states, inputs, []), args, kwargs, record["names"], dynamic)


def _put(root: Module, path: str, x: Any, parameter: bool, persistent: bool) -> None:
    """Give a module a parameter or buffer at a dotted path."""
    home, _, name = path.rpartition(".")
    owner = _made_module(root, home)
    if parameter:
        owner.register_parameter(name, x)
    else:
        owner.register_buffer(name, x, persistent=persistent)


def _stored(x: Any, arrays: dict[str, Any]) -> Any:
    if not isinstance(x, Tensor):
        return {"value": x}
    key = f"t{len(arrays)}"
    arrays[key] = x.detach().numpy()
    return {"array": key}


def _loaded(x: Any, arrays: dict[str, Any]) -> Any:
    return wrap(arrays[x["array"]]) if "array" in x else x["value"]


def _size(size: Dim | None) -> Any:
    return None if size is None else [size.root.__name__, size.root.min, size.root.max, size.factor, size.offset]


def _dim(size: Any) -> Dim | None:
    if size is None:
        return None
    name, low, high, factor, offset = size
    root = Dim(name, min=low, max=high)
    return root if (factor, offset) == (1, 0) else factor * root + offset


def _number(node: Node) -> Any:
    value = node.meta.get("val")
    return value if isinstance(value, (int, float, str, type(None))) else None


def _target(node: Node) -> str:
    """Return the name of the function that a node calls."""
    target: Any = node.target
    if isinstance(target, str):
        return target
    if isinstance(target, Function):
        return f"torch:{target.name}"
    own = getattr(target, "__name__", "")
    if getattr(operator, own, None) is target:
        return f"operator:{own}"
    if target is getattr:
        return "builtins:getattr"
    home, name = module_of(target), getattr(target, "__qualname__", "")
    if not name or getattr(importlib.import_module(home or "builtins"), name, None) is not target:
        raise ExportError(f"{target!r} has no name by which it could be found again")
    return f"{home}:{name}"


def _found(text: str) -> Any:
    home, _, name = text.partition(":")
    if home == "torch":
        operator.attrgetter(name)(importlib.import_module("tinytorch"))
        return functions[name]
    return getattr(importlib.import_module(home), name)


def _items(x: Any) -> list[Any]:
    return [_written(each) for each in x]


def _back(items: Any, nodes: dict[str, Node]) -> list[Any]:
    return [_read(each, nodes) for each in items]


#: What JSON lacks, by kind: the type, what is written of a value, and how this is read again, given the nodes by name.
_KINDS: dict[str, tuple[type, Callable[[Any], Any], Callable[[Any, dict[str, Node]], Any]]] = {
    "node": (Node, lambda x: x.name, lambda name, nodes: nodes[name]),
    "list": (list, _items, _back),
    "tuple": (tuple, _items, lambda items, nodes: tuple(_back(items, nodes))),
    "dict": (dict, lambda x: [_items(pair) for pair in x.items()], lambda x, nodes: dict([_back(y, nodes) for y in x])),
    "slice": (slice, lambda x: _items((x.start, x.stop, x.step)), lambda parts, nodes: slice(*_back(parts, nodes))),
    "ellipsis": (type(...), lambda x: 0, lambda _, nodes: ...),
    "dtype": (dtypes.dtype, lambda x: x.name, lambda name, nodes: getattr(dtypes, name)),
    "device": (device, str, lambda text, nodes: device(text)),
}


def _written(x: Any) -> Any:
    """Return an argument as JSON has it."""
    if x is None or isinstance(x, (bool, int, float, str)):
        return x
    for kind, (each, write, _) in _KINDS.items():
        if isinstance(x, each):
            return {kind: write(x)}
    name = str(x).removeprefix("torch.")
    if getattr(importlib.import_module("tinytorch"), name, None) is x:
        return {"torch": name}  # a layout or a memory format
    raise ExportError(f"an argument is a {type(x).__name__}, which cannot be written to a file")


def _read(x: Any, nodes: dict[str, Node]) -> Any:
    if not isinstance(x, dict):
        return x
    ((kind, value),) = x.items()
    return getattr(importlib.import_module("tinytorch"), value) if kind == "torch" else _KINDS[kind][2](value, nodes)
