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
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tinytorch.core.tensor import Tensor

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
        if name.startswith("add_") and name not in vars(writer):
            setattr(writer, name, _taking_tensors(method))
    return writer


def _add_graph(self: Any, *args: Any, **kwargs: Any) -> None:
    """Raise NotImplementedError: it would need a trace of the model."""
    raise NotImplementedError(
        "add_graph traces the model, which tinytorch does not support; tinytorch.autograd.picture draws a graph"
    )


def _with_pytorchs_arguments(base: Any) -> type:
    class SummaryWriter(base):  # type: ignore[misc]
        """Write scalars, histograms, images, texts … for TensorBoard into a folder; see tensorboardX's documentation.

        Args:
            log_dir: the folder; `runs/<time>_<host>` if it is None.
            comment: a suffix for the default name of the folder.
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
