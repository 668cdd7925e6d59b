"""`torch.fx.passes.graph_drawer`: pictures of graphs, by the package pydot."""

from __future__ import annotations

import hashlib
import importlib
import itertools
from typing import Any

from tinytorch.fx._codegen import parsed_stack_trace
from tinytorch.fx._names import pretty_target, qualified_name
from tinytorch.fx.graph_module import GraphModule
from tinytorch.fx.node import Node, _format_arg
from tinytorch.fx.operator_schemas import normalize_function
from tinytorch.fx.passes.shape_prop import TensorMetadata
from tinytorch.nn.modules.module import Module
from tinytorch.nn.parameter import Parameter
from tinytorch.ops.members import typename

__all__ = ["FxGraphDrawer"]

_COLORS = {
    "placeholder": '"AliceBlue"', "call_module": "LemonChiffon1", "get_param": "Yellow2", "get_attr": "LightGrey",
    "output": "PowderBlue",
}  # fmt: skip
#: The colors of functions and methods, which are chosen by their names.
_COLORS_OF_CALLS = """
    CadetBlue1 Coral DarkOliveGreen1 DarkSeaGreen1 GhostWhite Khaki1 LavenderBlush1 LightSkyBlue MistyRose1 MistyRose2
    PaleTurquoise2 PeachPuff1 Salmon Thistle1 Thistle3 Wheat1
""".split()
_LINE = r"\n"


def _escaped(text: str) -> str:
    return text.replace("{", r"\{").replace("}", r"\}")


class FxGraphDrawer:
    """Draws a graph module, and the graph modules that it calls.

    Args:
        graph_module: the graph module.
        name: the name of the picture.
        ignore_getattr: whether nodes that read attributes are left out.
        ignore_parameters_and_buffers: whether the parameters and buffers of called modules are left out.
        skip_node_names_in_args: whether arguments that are nodes are left out of the labels.
        parse_stack_trace: whether labels tell the lines of the program.
        dot_graph_shape: the shape of the boxes.
        normalize_args: whether arguments are shown by the signatures of functions.

    Raises:
        RuntimeError: pydot is not installed.
    """

    def __init__(
        self, graph_module: GraphModule, name: str, ignore_getattr: bool = False,
        ignore_parameters_and_buffers: bool = False, skip_node_names_in_args: bool = True,
        parse_stack_trace: bool = False, dot_graph_shape: str | None = None, normalize_args: bool = False,
    ) -> None:  # fmt: skip
        try:
            self._pydot: Any = importlib.import_module("pydot")
        except ImportError:
            raise RuntimeError(
                "FXGraphDrawer requires the pydot package to be installed. Please install pydot through your favorite "
                "Python package manager."
            ) from None
        self._name, self.normalize_args = name, normalize_args
        self.dot_graph_shape = "record" if dot_graph_shape is None else dot_graph_shape
        options = (ignore_getattr, ignore_parameters_and_buffers, skip_node_names_in_args, parse_stack_trace)
        self._dot_graphs = {name: self._to_dot(graph_module, name, *options)}
        for node in graph_module.graph.find_nodes(op="call_module"):
            leaf = self._get_leaf_node(graph_module, node)
            if isinstance(leaf, GraphModule):
                below = f"{name}_{node.target}"
                self._dot_graphs[below] = self._to_dot(leaf, below, *options)

    def get_dot_graph(self, submod_name: str | None = None) -> Any:
        """Return the picture as a `pydot.Dot`.

        Args:
            submod_name: the path of a graph module that is called; by default the whole.
        """
        return self.get_main_dot_graph() if submod_name is None else self.get_submod_dot_graph(submod_name)

    def get_main_dot_graph(self) -> Any:
        """Return the picture of the whole."""
        return self._dot_graphs[self._name]

    def get_submod_dot_graph(self, submod_name: str) -> Any:
        """Return the picture of a graph module that is called."""
        return self._dot_graphs[f"{self._name}_{submod_name}"]

    def get_all_dot_graphs(self) -> dict[str, Any]:
        """Return all pictures by their names."""
        return self._dot_graphs

    # Labels ---------------------------------------------------------------------------------------

    def _get_node_style(self, node: Node) -> dict[str, str]:
        color = _COLORS.get(node.op)
        if color is None:
            digest = hashlib.md5(pretty_target(node.target).encode(), usedforsecurity=False).hexdigest()
            color = _COLORS_OF_CALLS[int(digest[:8], 16) % len(_COLORS_OF_CALLS)]
        return {
            "shape": self.dot_graph_shape, "fillcolor": color, "style": '"filled,rounded"', "fontcolor": "#000000",
        }  # fmt: skip

    def _get_leaf_node(self, module: Module, node: Node) -> Any:
        found: Any = module
        for part in str(node.target).split("."):
            if not hasattr(found, part):
                raise RuntimeError(f"{found} does not have attribute {part}!")
            found = getattr(found, part)
        return found

    def _typename(self, target: Any) -> str:
        if isinstance(target, Module):
            return _escaped(typename(target))
        return _escaped(target if isinstance(target, str) else qualified_name(target))

    def _shorten_file_name(self, full_file_name: str, truncate_to_last_n: int = 2) -> str:
        return "/".join(full_file_name.split("/")[-truncate_to_last_n:])

    def _arguments(self, value: Any, skip_nodes: bool) -> str:
        if isinstance(value, tuple):
            start, end = r"|args=(\l", r",\n)\l"
            texts = [_format_arg(each, max_list_len=8) for each in value]
        else:
            start, end = r"|kwargs={\l", r",\n}\l"
            texts = [f"{key}: {_format_arg(each, max_list_len=8)}" for key, each in value.items()]
        shown = [text for text in texts if not skip_nodes or "%" not in text]
        if not shown:
            return ""
        text = f"{start}{(',' + _LINE).join(shown)}{end}"
        return _escaped(text if len(shown) > 1 else text.replace(r"\l", "").replace(_LINE, ""))

    def _get_node_label(
        self, module: GraphModule, node: Node, skip_node_names_in_args: bool, parse_stack_trace: bool
    ) -> str:
        label = f"{{name=%{node.name}|op_code={node.op}\n"
        if node.op == "call_module":
            leaf = self._get_leaf_node(module, node)
            constants = [f"{name}: {getattr(leaf, name)}" for name in getattr(leaf, "__constants__", ())]
            label += f"{_LINE}{self._typename(leaf)}{_LINE}|{_LINE.join(constants)}{_LINE}"
        else:
            args, kwargs = self._normalized(node)
            label += f"|target={self._typename(node.target)}{_LINE}"
            label += self._arguments(args, skip_node_names_in_args) if args else ""
            label += self._arguments(kwargs, skip_node_names_in_args) if kwargs else ""
            label += f"|num_users={len(node.users)}{_LINE}"
        label += self._tensor_meta_to_label(node.meta.get("tensor_meta"))
        line = parsed_stack_trace(node.stack_trace) if parse_stack_trace and node.stack_trace is not None else None
        if line is not None:
            label += f"|file={self._shorten_file_name(line.file)}:{line.lineno} {line.code}{_LINE}"
        return f"{label}}}"

    def _normalized(self, node: Node) -> tuple[Any, Any]:
        if self.normalize_args and callable(node.target):
            try:
                found = normalize_function(node.target, node.args, dict(node.kwargs), normalize_to_only_use_kwargs=True)
            except Exception:  # (the arguments do not fit: they are shown as they are)
                found = None
            if found is not None:
                return found.args, found.kwargs
        return node.args, node.kwargs

    def _tensor_meta_to_label(self, tm: Any) -> str:
        if tm is None:
            return ""
        if isinstance(tm, TensorMetadata):
            return self._stringify_tensor_meta(tm)
        if isinstance(tm, (list, tuple)):
            return "".join([self._tensor_meta_to_label(each) for each in tm])
        if isinstance(tm, dict):
            return "".join([self._tensor_meta_to_label(each) for each in tm.values()])
        raise RuntimeError(f"Unsupported tensor meta type {type(tm)}")

    def _stringify_tensor_meta(self, tm: TensorMetadata) -> str:
        facts = {
            "dtype": tm.dtype, "shape": tuple(tm.shape), "requires_grad": tm.requires_grad, "stride": tm.stride,
        }  # fmt: skip
        return "".join([f"|{key}={value}{_LINE}" for key, value in facts.items()])

    # The picture ----------------------------------------------------------------------------------

    def _to_dot(
        self, graph_module: GraphModule, name: str, ignore_getattr: bool, ignore_parameters_and_buffers: bool,
        skip_node_names_in_args: bool, parse_stack_trace: bool,
    ) -> Any:  # fmt: skip
        dot = self._pydot.Dot(name, rankdir="TB")
        nodes = [node for node in graph_module.graph.nodes if not (ignore_getattr and node.op == "get_attr")]
        for node in nodes:
            label = self._get_node_label(graph_module, node, skip_node_names_in_args, parse_stack_trace)
            dot.add_node(self._pydot.Node(node.name, label=label, **self._get_node_style(node)))
            leaf = self._get_leaf_node(graph_module, node) if node.op == "call_module" else None
            if leaf is not None and not ignore_parameters_and_buffers and not isinstance(leaf, GraphModule):
                self._add_state(dot, node, leaf)
        for node in nodes:
            for user in node.users:
                dot.add_edge(self._pydot.Edge(node.name, user.name))
        return dot

    def _add_state(self, dot: Any, node: Node, leaf: Module) -> None:
        """Draw the parameters and buffers of a module."""
        for path, value in itertools.chain(leaf.named_parameters(), leaf.named_buffers()):
            name = f"{node.name}.{path}"
            kind = f"{name}|op_code=get_parameter" if isinstance(value, Parameter) else r"buffer\l"
            label = f"{{{kind}{value.dtype}{list(value.shape)}{_LINE}}}"
            style = {
                "fillcolor": "Salmon", "style": '"filled,rounded"', "fontcolor": "#000000",
                "shape": self.dot_graph_shape,
            }  # fmt: skip
            dot.add_node(self._pydot.Node(name, label=label, **style))
            dot.add_edge(self._pydot.Edge(name, node.name))
