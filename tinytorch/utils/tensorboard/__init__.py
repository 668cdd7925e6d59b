"""Files for TensorBoard, written by the package tensorboardX (the extra `tensorboard`), or by tensorboard itself.

`SummaryWriter` is tensorboardX's, with PyTorch's names of arguments, or where only tensorboard is installed one that
writes scalars, histograms, pictures, figures, texts and hyperparameters. It takes tensors where numbers or arrays go.

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
from typing import Any

from tinytorch.core.tensor import Tensor

__all__ = ["FileWriter", "RecordWriter", "SummaryWriter"]  # made when first asked for


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
            "tinytorch.utils.tensorboard writes its files by tensorboard or tensorboardX, of which none is installed: "
            "pip install tensorboardX"
        ) from None
    return importlib.import_module("tinytorch.utils.tensorboard._events")


def _as_arrays(value: Any) -> Any:
    """Return a value with the tensors in it as NumPy's arrays."""
    if isinstance(value, Tensor):
        return value.detach().numpy()
    if isinstance(value, dict):
        return {key: _as_arrays(each) for key, each in value.items()}
    return type(value)(map(_as_arrays, value)) if type(value) in (list, tuple) else value


def _taking_tensors(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return method(self, *_as_arrays(args), **_as_arrays(kwargs))

    return call


@functools.cache
def _summary_writer() -> type:
    package = _package()
    made = type("SummaryWriter", (package.SummaryWriter,), {"__module__": __name__, "add_graph": _add_graph})
    if package.__name__ == "tensorboardX":
        made = _with_pytorchs_arguments(made)
    for name, method in inspect.getmembers(made, inspect.isfunction):
        if name.startswith("add_") and name not in vars(made):
            setattr(made, name, _taking_tensors(method))
    return made


def _add_graph(self: Any, *args: Any, **kwargs: Any) -> None:
    """Raise NotImplementedError: PyTorch traces the model for this."""
    raise NotImplementedError(
        "add_graph traces the model, which tinytorch has no means for; see tinytorch.autograd.picture"
    )


def _with_pytorchs_arguments(base: Any) -> type:
    class SummaryWriter(base):  # type: ignore[misc]
        """Write scalars, histograms, pictures, texts … for TensorBoard into a folder; see tensorboardX's documentation.

        Args:
            log_dir: the folder; `runs/<time>_<host>` if it is None.
            comment: what is added to that.
            **kwargs: tensorboardX's: `purge_step`, `max_queue`, `flush_secs`, `filename_suffix`.
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
            """Write a number; how it is stored, tensorboardX decides."""
            super().add_scalar(tag, _as_arrays(scalar_value), global_step, walltime)

        def add_hparams(
            self, hparam_dict: Any, metric_dict: Any, hparam_domain_discrete: Any = None, run_name: str | None = None,
            global_step: int | None = None,
        ) -> None:  # fmt: skip
            """Write the hyperparameters of a run, and what it reached."""
            numbers = {key: float(each) for key, each in metric_dict.items()}
            super().add_hparams(hparam_dict, numbers, run_name, global_step)

    SummaryWriter.__qualname__ = "SummaryWriter"
    return SummaryWriter


def __getattr__(name: str) -> Any:
    if name == "SummaryWriter":
        return _summary_writer()
    if name in ("FileWriter", "RecordWriter"):
        return getattr(_package(), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
