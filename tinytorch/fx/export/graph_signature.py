"""`torch.export.graph_signature`: what the inputs and outputs of an exported graph are."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from types import MappingProxyType
from typing import Any


@dataclass
class TensorArgument:
    """A tensor, by the name of its node."""

    name: str


@dataclass
class SymIntArgument:
    """A size, by the name of its node."""

    name: str


@dataclass
class ConstantArgument:
    """A value that is the same in all calls."""

    name: str
    value: Any


class InputKind(Enum):
    """What an input of the graph is."""

    USER_INPUT = auto()
    PARAMETER = auto()
    BUFFER = auto()
    CONSTANT_TENSOR = auto()
    CUSTOM_OBJ = auto()
    TOKEN = auto()


class OutputKind(Enum):
    """What an output of the graph is."""

    USER_OUTPUT = auto()
    LOSS_OUTPUT = auto()
    BUFFER_MUTATION = auto()
    PARAMETER_MUTATION = auto()
    GRADIENT_TO_PARAMETER = auto()
    GRADIENT_TO_USER_INPUT = auto()
    USER_INPUT_MUTATION = auto()
    TOKEN = auto()


@dataclass
class InputSpec:
    """An input of the graph."""

    kind: InputKind
    arg: Any
    target: str | None
    persistent: bool | None = None


@dataclass
class OutputSpec:
    """An output of the graph: what it is, its node, and what it belongs to."""

    kind: OutputKind
    arg: Any
    target: str | None


def _targets(signature: Any, kind: InputKind | None) -> list[tuple[str, str]]:
    return [(each.arg.name, each.target or "") for each in signature.input_specs if each.kind is kind]


def _names(kind: InputKind, doc: str) -> Any:
    return property(lambda self: tuple([target for _, target in _targets(self, kind)]), doc=doc)


def _by_node(kind: InputKind | None, doc: str) -> Any:
    return property(lambda self: MappingProxyType(dict(_targets(self, kind))), doc=doc)


@dataclass
class ExportGraphSignature:
    """The inputs and outputs of an exported graph.

    Example:
        >>> program = torch.export.export(torch.nn.Linear(3, 2), (torch.ones(4, 3),))
        >>> program.graph_signature.inputs_to_parameters
        mappingproxy({'p_weight': 'weight', 'p_bias': 'bias'})
        >>> program.graph_signature.user_inputs, program.graph_signature.user_outputs
        (('input',), ('linear',))
    """

    input_specs: list[InputSpec] = field(default_factory=list)
    output_specs: list[OutputSpec] = field(default_factory=list)

    parameters = _names(InputKind.PARAMETER, "The names of the parameters in the model.")
    buffers = _names(InputKind.BUFFER, "The names of the buffers in the model.")
    lifted_tensor_constants = _names(InputKind.CONSTANT_TENSOR, "The names of the constants.")
    lifted_custom_objs = _names(InputKind.CUSTOM_OBJ, "No names: there are no custom objects.")
    inputs_to_parameters = _by_node(InputKind.PARAMETER, "The names of the parameters by the names of their nodes.")
    inputs_to_buffers = _by_node(InputKind.BUFFER, "The names of the buffers by the names of their nodes.")
    inputs_to_lifted_tensor_constants = _by_node(
        InputKind.CONSTANT_TENSOR, "The names of the constants by the names of their nodes."
    )
    buffers_to_mutate = _by_node(None, "No names: the graph writes to its buffers.")
    user_inputs_to_mutate = _by_node(None, "No names: the graph writes to its inputs.")

    @property
    def non_persistent_buffers(self) -> set[str]:
        """The names of the buffers that the `state_dict` does not have."""
        specs = [each for each in self.input_specs if each.kind is InputKind.BUFFER and each.persistent is False]
        return {each.target or "" for each in specs}

    @property
    def user_inputs(self) -> tuple[Any, ...]:
        """The names of the inputs, and the values of those that are no tensors."""
        return tuple([_shown(each.arg) for each in self.input_specs if each.kind is InputKind.USER_INPUT])

    @property
    def user_outputs(self) -> tuple[Any, ...]:
        """The names of the outputs, and the values of those that are no tensors."""
        return tuple([_shown(each.arg) for each in self.output_specs if each.kind is OutputKind.USER_OUTPUT])

    def __str__(self) -> str:
        lines = ["# inputs"]
        for spec in self.input_specs:
            target = f" target={spec.target!r}" if spec.target is not None else ""
            persistent = f" persistent={spec.persistent}" if spec.persistent is not None else ""
            lines.append(f"{spec.arg.name}: {spec.kind.name}{target}{persistent}")
        lines += ["", "# outputs"]
        lines += [f"{each.arg.name}: {each.kind.name}" for each in self.output_specs]
        return "\n".join([*lines, ""])


def _shown(arg: Any) -> Any:
    return arg.value if isinstance(arg, ConstantArgument) else arg.name


__all__ = [
    "ConstantArgument", "ExportGraphSignature", "InputKind", "InputSpec", "OutputKind", "OutputSpec", "SymIntArgument",
    "TensorArgument",
]  # fmt: skip
