"""`torch.utils.tensorboard`: writes TensorBoard files by the package tensorboardX (extra `tensorboard`) or tensorboard.

`SummaryWriter` is derived from that of tensorboardX, with PyTorch's argument names. Where only tensorboard is
installed, it writes scalars, histograms, images, figures, texts and hyperparameters. It accepts tensors wherever
numbers or arrays are accepted.

Example:
    >>> import tempfile
    >>> from tinytorch.utils.tensorboard import SummaryWriter
    >>> with tempfile.TemporaryDirectory() as folder, SummaryWriter(log_dir=folder) as writer:
    ...     writer.add_scalar("loss", torch.tensor(0.5), 1)
"""

from __future__ import annotations

import functools
import importlib
import inspect
import re
from collections import Counter
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tinytorch.autograd.grad_mode import enable_grad
from tinytorch.autograd.picture import picture
from tinytorch.core.tensor import Tensor
from tinytorch.func.pytree import tree_leaves, tree_map

if TYPE_CHECKING:  # (that of tensorboardX has the same methods, and more)
    from tinytorch.utils.tensorboard._events import FileWriter as FileWriter
    from tinytorch.utils.tensorboard._events import SummaryWriter as SummaryWriter

    RecordWriter: Any

__all__ = ["FileWriter", "RecordWriter", "SummaryWriter"]  # created at the first access, by `__getattr__`


def _package() -> ModuleType:
    try:
        import tensorboardX.writer

        return tensorboardX
    except ImportError:
        pass
    try:
        import tensorboard.summary.writer.event_file_writer  # noqa: F401
    except ImportError:
        raise ModuleNotFoundError(
            "tinytorch.utils.tensorboard writes its files by tensorboard or tensorboardX, and neither is installed: "
            "pip install tensorboardX"
        ) from None
    return importlib.import_module("tinytorch.utils.tensorboard._events")


def _as_arrays(value: Any) -> Any:
    """Return a value with all tensors in it, also in lists, tuples and dictionaries, converted to NumPy arrays."""
    if isinstance(value, Tensor):
        return value.detach().numpy()
    if isinstance(value, dict):
        return {key: _as_arrays(item) for key, item in value.items()}
    return type(value)(map(_as_arrays, value)) if type(value) in (list, tuple) else value


def _taking_tensors(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return method(self, *_as_arrays(args), **_as_arrays(kwargs))

    return call


@functools.cache
def _summary_writer() -> type:
    package = _package()
    writer = type("SummaryWriter", (package.SummaryWriter,), {"__module__": __name__, "add_graph": _add_graph})
    if package.__name__ == "tensorboardX":
        writer = _with_pytorchs_arguments(writer)
    for name, method in inspect.getmembers(writer, inspect.isfunction):
        if name.startswith("add_") and name not in (*vars(writer), "add_graph"):
            setattr(writer, name, _taking_tensors(method))
    return writer


def _add_graph(
    self: Any, model: Any, input_to_model: Any = None, verbose: bool = False, use_strict_trace: bool = True
) -> None:
    """Write the graph that `autograd.picture` draws: the operations from the inputs and parameters to the outputs.

    The model runs once, in its mode; inputs of integers, which have no gradients, are not in the graph.

    Args:
        use_strict_trace: PyTorch's option for outputs that are dictionaries, which are always accepted.

    Raises:
        RuntimeError: no output depends on a floating-point input or a parameter that requires grad.
    """
    args = input_to_model if isinstance(input_to_model, (tuple, list)) else (input_to_model,)
    args = tree_map(lambda x: x.detach().requires_grad_() if _has_gradient(x) else x, tuple(args))
    with enable_grad():
        outputs = [each for each in tree_leaves(model(*args)) if isinstance(each, Tensor) and each.requires_grad]
    if not outputs:
        raise RuntimeError("add_graph: no output depends on an input or a parameter that requires grad")
    inputs = {f"input/{k}": x for k, x in enumerate(tree_leaves(args)) if _has_gradient(x)}
    parameters = {name.replace(".", "/"): each for name, each in model.named_parameters()}
    drawn = picture({f"output/{k}": each for k, each in enumerate(outputs)}, inputs | parameters)
    if verbose:
        print(drawn)
    package = "tensorboardX.proto" if hasattr(self, "_get_file_writer") else "tensorboard.compat.proto"
    graph = importlib.import_module(f"{package}.graph_pb2").GraphDef()
    names: list[str] = []
    seen: Counter[str] = Counter()
    for box in drawn._boxes:
        title = re.sub(r"[^A-Za-z0-9_./-]", "_", box.lines[0])
        names.append(f"{title}_{seen[title]}" if box.kind == "operation" or seen[title] else title)
        seen[title] += 1
    sources: list[list[str]] = [[] for _ in names]
    for arrow in drawn._arrows:
        sources[arrow.target].append(names[arrow.source] + (f":{arrow.output}" if arrow.output else ""))
    for box, name, inputs_of in zip(drawn._boxes, names, sources, strict=True):
        kind = {"leaf": "Parameter", "result": "Output"}.get(box.kind, box.lines[0])
        node = graph.node.add(name=name, op="Input" if box.lines[0] in inputs else kind)
        node.input.extend(inputs_of)
        if box.lines[1:]:
            node.attr["tensor"].s = "; ".join(box.lines[1:]).encode()
    event = importlib.import_module(f"{package}.event_pb2").Event(graph_def=graph.SerializeToString())
    (self._get_file_writer() if hasattr(self, "_get_file_writer") else self.file_writer).add_event(event)


def _has_gradient(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()


def _with_pytorchs_arguments(base: Any) -> type:
    class SummaryWriter(base):  # type: ignore[misc]
        """Write scalars, histograms, images, texts … for TensorBoard into a folder; see tensorboardX's documentation.

        Args:
            log_dir: the folder; `runs/<time>_<host>` if it is None.
            **kwargs: arguments of tensorboardX: `purge_step`, `max_queue`, `flush_secs`, `filename_suffix`.
        """

        def __init__(self, log_dir: Any = None, comment: str = "", **kwargs: Any) -> None:
            super().__init__(None if log_dir is None else str(log_dir), comment, **kwargs)
            self.log_dir = self.logdir

        def get_logdir(self) -> str:
            """Return the folder."""
            return self.logdir

        def add_scalar(
            self, tag: str, scalar_value: Any, global_step: int | None = None, walltime: float | None = None,
            new_style: bool = False, double_precision: bool = False,
        ) -> None:  # fmt: skip
            """Write a number; tensorboardX decides how it is stored."""
            super().add_scalar(tag, _as_arrays(scalar_value), global_step, walltime)

        def add_hparams(
            self, hparam_dict: Any, metric_dict: Any, hparam_domain_discrete: Any = None, run_name: str | None = None,
            global_step: int | None = None,
        ) -> None:  # fmt: skip
            """Write the hyperparameters and the metrics of a run."""
            metrics = {key: float(value) for key, value in metric_dict.items()}
            super().add_hparams(hparam_dict, metrics, run_name, global_step)

    SummaryWriter.__qualname__ = "SummaryWriter"
    return SummaryWriter


def __getattr__(name: str) -> Any:
    if name == "SummaryWriter":
        return _summary_writer()
    if name in ("FileWriter", "RecordWriter"):
        return getattr(_package(), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
