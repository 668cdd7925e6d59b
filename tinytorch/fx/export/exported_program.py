"""`torch.export.exported_program`: an exported model."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, NoReturn

from tinytorch.core.tensor import Tensor
from tinytorch.func.pytree import TreeSpec, flatten
from tinytorch.fx._codegen import _PyTreeCodeGen, _PyTreeInfo
from tinytorch.fx.export.dynamic_shapes import Dynamic
from tinytorch.fx.export.graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymIntArgument,
    TensorArgument,
)
from tinytorch.fx.export.tracing import Traced
from tinytorch.fx.graph import Graph
from tinytorch.fx.graph_module import GraphModule
from tinytorch.fx.node import Node
from tinytorch.nn.modules.module import Module
from tinytorch.nn.parameter import Parameter


class CallSpec(NamedTuple):
    """The structures of the arguments and of the result."""

    in_spec: TreeSpec
    out_spec: TreeSpec


class ExportedProgram:
    """A model as a graph of the public functions that it calls, with its parameters (`torch.export.export`).

    The graph takes the parameters, buffers and constants as inputs, before the tensors of the call, and returns a
    tuple. Writes to buffers are steps of the graph like others.

    Attributes:
        graph_module: the graph with its code; `graph` is its graph.
        graph_signature: what the inputs and outputs of the graph are.
        state_dict: the parameters and persistent buffers.
        constants: other buffers and constants, by name.
        example_inputs: the arguments with which it was exported: `(args, kwargs)`.
        call_spec: the structures of the arguments and of the result.
        range_constraints: by name of a dynamic size, its bounds.

    Example:
        >>> program = torch.export.export(torch.nn.Linear(3, 2), (torch.ones(4, 3),))
        >>> [node.name for node in program.graph.nodes]
        ['p_weight', 'p_bias', 'input', 'linear', 'output']
        >>> program.module()(torch.zeros(4, 3)).shape
        torch.Size([4, 2])
    """

    def __init__(
        self, model: Any, traced: Traced, args: tuple[Any, ...], kwargs: dict[str, Any], names: list[str],
        dynamic: list[Dynamic],
    ) -> None:  # fmt: skip
        leaves, in_spec = flatten((args, kwargs))
        self.call_spec = CallSpec(in_spec, traced.structure)
        self.example_inputs: Any = args, kwargs
        self.graph_module = GraphModule(Module(), traced.graph)
        self.names, self.dynamic = names, dynamic
        own = model.state_dict(keep_vars=True) if isinstance(model, Module) else {}
        known = {id(x): name for name, x in reversed(own.items())}  # of a shared one, the first name
        # (PyTorch's order: the parameters, then the buffers.)
        self._state: dict[str, Tensor] = dict(sorted(own.items(), key=lambda item: not isinstance(item[1], Parameter)))
        self.constants: dict[str, Any] = {}
        inputs = []
        for node, (name, x) in traced.states.items():
            arg = TensorArgument(node.name)
            if isinstance(x, Parameter):
                inputs.append(InputSpec(InputKind.PARAMETER, arg, known.get(id(x), name)))
                self._state.setdefault(known.get(id(x), name), x)
            elif node.name.startswith("b_"):
                inputs.append(InputSpec(InputKind.BUFFER, arg, name, id(x) in known))
                if id(x) not in known:
                    self.constants[name] = x
            else:
                unique = node.name.removeprefix("c_")
                inputs.append(InputSpec(InputKind.CONSTANT_TENSOR, arg, unique))
                self.constants[unique] = x
        for node, x in zip(traced.inputs, leaves, strict=True):
            named: Any = TensorArgument(node.name) if isinstance(x, Tensor) else ConstantArgument(node.name, x)
            inputs.append(InputSpec(InputKind.USER_INPUT, named, None))
        (returned,) = self.graph.output_node().args
        outputs = [OutputSpec(OutputKind.USER_OUTPUT, _argument(x), None) for x in returned]
        # (The graph has its placeholders in the order of the specifications.)
        order = {node.name: k for k, node in enumerate(self.graph.find_nodes(op="placeholder"))}
        inputs.sort(key=lambda spec: order[spec.arg.name])
        self.graph_signature = ExportGraphSignature(inputs, outputs)

    @property
    def graph(self) -> Graph:
        """The graph."""
        return self.graph_module.graph

    @property
    def state_dict(self) -> dict[str, Tensor]:
        """The parameters and persistent buffers, by name."""
        return self._state

    @property
    def tensor_constants(self) -> dict[str, Any]:
        """The constants."""
        return self.constants

    @property
    def dialect(self) -> str:
        """Which functions the graph calls: PyTorch's public ones."""
        return "TRAINING"

    @property
    def range_constraints(self) -> dict[str, tuple[int, int | None]]:
        """The bounds of the dynamic sizes that have names."""
        sizes = [each.size for each in self.dynamic if each.size is not None]
        return {size.root.__name__: (size.root.min, size.root.max) for size in sizes}

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """Yield the names and parameters."""
        for name in self.graph_signature.parameters:
            yield name, self._state[name]  # type: ignore[misc]

    def parameters(self) -> Iterator[Parameter]:
        """Yield the parameters."""
        for _, x in self.named_parameters():
            yield x

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """Yield the names and buffers."""
        for name in self.graph_signature.buffers:
            yield name, self._state[name] if name in self._state else self.constants[name]

    def buffers(self) -> Iterator[Tensor]:
        """Yield the buffers."""
        for _, x in self.named_buffers():
            yield x

    def tensor_of(self, spec: InputSpec) -> Tensor:
        """Return the parameter, buffer or constant that an input of the graph is."""
        name = spec.target or ""
        return self._state[name] if name in self._state else self.constants[name]

    def module(self, check_guards: bool = True) -> GraphModule:
        """Return a module that takes the model's arguments, and has its parameters."""
        made, _ = self._with_parameters(self.names)
        if check_guards:
            made.register_forward_pre_hook(self._check_inputs, with_kwargs=True)
        for name in ("train", "eval"):
            setattr(made, name, _refuse_mode)
        return made

    def flat_module(self) -> tuple[GraphModule, list[str]]:
        """Return a module that takes the leaves of the arguments and returns a tuple, and the names of the leaves."""
        return self._with_parameters(None)

    def _with_parameters(self, arguments: list[str] | None) -> tuple[GraphModule, list[str]]:
        """Return a module that has the parameters, and the names of its inputs.

        Args:
            arguments: the names of the arguments, whose leaves the graph takes; None for a module that takes these.
        """
        graph = Graph()
        nodes: dict[Node, Node] = {}
        attributes: dict[str, Any] = {}
        specs = {spec.arg.name: spec for spec in self.graph_signature.input_specs}
        names = []
        for node in self.graph.nodes:
            spec = specs.get(node.name) if node.op == "placeholder" else None
            if spec is not None and spec.kind is not InputKind.USER_INPUT:
                attributes[spec.target or ""] = self.tensor_of(spec)
                nodes[node] = graph.create_node("get_attr", spec.target, name=(spec.target or "").replace(".", "_"))
                nodes[node].meta = copy.copy(node.meta)
            else:
                nodes[node] = graph.node_copy(node, lambda each: nodes[each])
                if spec is not None:
                    names.append(nodes[node].name)
        in_spec, out_spec = self.call_spec
        # (The parameters' nodes come after the inputs' in the code, which is generated in the order of the list.)
        for node in [each for each in graph.nodes if each.op == "placeholder"][::-1]:
            next(iter(graph.nodes)).prepend(node)
        if arguments is not None:
            graph.set_codegen(_PyTreeCodeGen(_PyTreeInfo(arguments, in_spec, out_spec)))
        made = GraphModule(attributes, graph)
        made._in_spec, made._out_spec = in_spec, out_spec
        return made, names

    def _check_inputs(self, module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Raise an error for arguments of other sizes than the exported ones, but for the dynamic sizes."""
        kwargs = {key: kwargs[key] for key in self.example_inputs[1] if key in kwargs}
        leaves, structure = flatten((args, kwargs))
        if structure != self.call_spec.in_spec:
            raise ValueError(
                f"Trying to flatten user inputs with exported input tree spec: \n{self.call_spec.in_spec}\nbut "
                f"actually got inputs with tree spec of: \n{structure}"
            )
        examples = flatten(self.example_inputs)[0]
        sizes: dict[str, int] = {}
        dynamic = {(each.leaf, each.dim): each for each in self.dynamic}
        nodes = [spec.arg.name for spec in self.graph_signature.input_specs if spec.kind is InputKind.USER_INPUT]
        for k, (x, example, name) in enumerate(zip(leaves, examples, nodes, strict=True)):
            if not isinstance(example, Tensor):
                if type(x) is not type(example) or x != example:
                    raise AssertionError(f"Guard failed: {name} == {example!r}")
                continue
            if x.ndim != example.ndim:
                raise AssertionError(f"Guard failed: {name}.dim() == {example.ndim}")
            if x.dtype != example.dtype:
                raise AssertionError(f"Guard failed: {name}.dtype == {example.dtype}")
            for dim, (n, m) in enumerate(zip(x.shape, example.shape, strict=True)):
                size = dynamic.get((k, dim))
                if size is None:
                    if n != m:
                        raise AssertionError(f"Guard failed: {name}.size()[{dim}] == {m}")
                elif size.name and sizes.setdefault(size.name, n) != n:
                    raise AssertionError(f"Guard failed: {name}.size()[{dim}] == {size.name}")
                elif size.size is not None:
                    root, rest = divmod(n - size.size.offset, size.size.factor)
                    high = size.size.root.max
                    if rest or root < size.size.root.min or (high is not None and root > high):
                        raise AssertionError(f"Guard failed: {name}.size()[{dim}] is {size.size!r}")

    def run_decompositions(self, decomp_table: dict[Any, Callable[..., Any]] | None = None) -> ExportedProgram:
        """Raise NotImplementedError: the graph calls public functions, for which there are no decompositions."""
        raise NotImplementedError(
            "run_decompositions: the graph of an exported program calls PyTorch's public functions, not ATen's "
            "operators"
        )

    def validate(self) -> None:
        """Raise an error if the graph is not in order."""
        self.graph.lint()

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise RuntimeError: the module is to be called."""
        raise RuntimeError(
            "Unable to call ExportedProgram directly. You should use `exported_program.module()` instead."
        )

    def __str__(self) -> str:
        code = self.graph_module.code.strip("\n").replace("\n", "\n        ")
        return (
            f"ExportedProgram:\n    class GraphModule(torch.nn.Module):\n        {code}\n\nGraph signature: \n"
            f"{self.graph_signature}\nRange constraints: {self.range_constraints}\n"
        )

    __repr__ = __str__


def _argument(x: Any) -> Any:
    if isinstance(x, Node):
        return TensorArgument(x.name) if "tensor" in x.meta else SymIntArgument(x.name)
    return ConstantArgument("", x)


def _refuse_mode(*_: Any) -> NoReturn:
    raise NotImplementedError("Calling train() or eval() is not supported: an exported program has one mode.")


__all__ = ["CallSpec", "ExportedProgram"]
