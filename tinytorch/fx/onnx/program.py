"""`ONNXProgram`: a model that was written as ONNX."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tinytorch.core.tensor import Tensor, wrap
from tinytorch.func.pytree import flatten
from tinytorch.fx.export.exported_program import ExportedProgram
from tinytorch.fx.onnx.writing import Writer

#: Parameters of at least this many bytes are stored beside the model.
LARGE = 1024
#: The most bytes that one file can have in this format.
MOST = 2**31 - 2**20


def needed(name: str) -> Any:
    """Return a package that writing ONNX needs."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        raise ModuleNotFoundError(f"torch.onnx needs the package {name}: pip install onnx", name=name) from None


class ONNXProgram:
    """A model as ONNX (`torch.onnx.export`)."""

    def __init__(self, writer: Writer, exported_program: ExportedProgram, parameters: str) -> None:
        self.exported_program, self._writer, self._parameters = exported_program, writer, parameters
        self._model: Any = None
        self._session: Any = None

    @property
    def model_proto(self) -> Any:
        """The model, as `onnx.ModelProto`."""
        if self._model is None:
            self._model = self._writer.model(self._parameters)
        return self._model

    def save(
        self, destination: str | os.PathLike[str], *, include_initializers: bool = True,
        keep_initializers_as_inputs: bool = False, external_data: bool | None = None,
    ) -> None:  # fmt: skip
        """Write the model to a file."""
        onnx = needed("onnx")
        model = self.model_proto
        if not include_initializers or keep_initializers_as_inputs:
            model = self._writer.model("both" if include_initializers else "inputs")
        path = Path(destination)
        if external_data or model.ByteSize() > MOST:
            whole = onnx.ModelProto()
            whole.CopyFrom(model)  # (the function moves the parameters out of what it is given)
            beside = f"{path.name}.data"
            (path.parent / beside).unlink(missing_ok=True)  # (it would append)
            onnx.save_model(whole, str(path), save_as_external_data=True, location=beside, size_threshold=LARGE)
        else:
            path.write_bytes(model.SerializeToString())

    def apply_weights(self, state_dict: Mapping[str, Tensor]) -> None:
        """Replace parameters, by name."""
        for name, x in state_dict.items():
            if name in self._writer.weights:
                self._writer.weights[name] = x
        self.release()
        self._model = None

    def initialize_inference_session(self, initializer: Any = None) -> None:
        """Prepare the model to be run."""
        make = initializer or needed("onnxruntime").InferenceSession
        self._session = make(self.model_proto.SerializeToString())

    def release(self) -> None:
        """Drop the session."""
        self._session = None

    def optimize(self) -> None:
        """Do nothing: runtimes optimize a model when they load it."""

    def _feed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        leaves = [x for x in flatten((args, kwargs))[0] if isinstance(x, (Tensor, np.ndarray))]
        arrays = [x.detach().numpy() if isinstance(x, Tensor) else x for x in leaves]
        names = [each.name for each in self._writer.inputs]
        if len(arrays) != len(names):
            raise ValueError(f"the model takes {len(names)} tensors ({', '.join(names)}), not {len(arrays)}")
        return dict(zip(names, arrays, strict=True))

    def __call__(self, *args: Any, **kwargs: Any) -> list[Tensor]:
        """Return the outputs of the model, which ONNX Runtime runs."""
        if self._session is None:
            self.initialize_inference_session()
        return [wrap(np.asarray(x)) for x in self._session.run(None, self._feed(args, kwargs))]

    def call_reference(self, *args: Any, **kwargs: Any) -> list[Tensor]:
        """Return the outputs of the model, which the package `onnx` computes."""
        reference = needed("onnx.reference").ReferenceEvaluator(self.model_proto)
        return [wrap(np.asarray(x)) for x in reference.run(None, self._feed(args, kwargs))]

    def __repr__(self) -> str:
        writer = self._writer
        inputs, outputs = [", ".join([each.name for each in x]) for x in (writer.inputs, writer.outputs)]
        return (
            f"ONNXProgram(opset={writer.opset}, nodes={len(writer.builder.nodes)}, inputs=({inputs}), "
            f"outputs=({outputs}))"
        )


__all__ = ["ONNXProgram", "needed"]
