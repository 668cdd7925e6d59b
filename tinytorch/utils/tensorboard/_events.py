"""A `SummaryWriter` for the package tensorboard, which writes event files but leaves creating the events to others."""

from __future__ import annotations

import contextlib
import datetime
import os
import socket
import time
from typing import Any, NoReturn

import numpy as np

from tinytorch.data.images import png

with contextlib.suppress(ImportError):  # `_package` reports a missing tensorboard before it imports this module
    from tensorboard.compat.proto.event_pb2 import Event, SessionLog
    from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary, SummaryMetadata
    from tensorboard.compat.proto.tensor_pb2 import TensorProto
    from tensorboard.plugins.hparams import api_pb2, metadata, plugin_data_pb2
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

__all__ = ["FileWriter", "SummaryWriter"]


class FileWriter:
    """Writes events into a new file in a folder."""

    def __init__(self, log_dir: Any, max_queue: int = 10, flush_secs: int = 120, filename_suffix: str = "") -> None:
        self.event_writer = EventFileWriter(str(log_dir), max_queue, flush_secs, filename_suffix)
        self.get_logdir, self.flush = self.event_writer.get_logdir, self.event_writer.flush
        self.close = self.event_writer.close

    def add_event(self, event: Any, step: int | None = None, walltime: float | None = None) -> None:
        """Write an event of a step; `walltime` is in seconds since 1970, by default the current time."""
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)

    def add_summary(self, summary: Any, global_step: int | None = None, walltime: float | None = None) -> None:
        """Write a summary as an event."""
        self.add_event(Event(summary=summary), global_step, walltime)


def _plugin(name: str, content: bytes = b"") -> Any:
    return SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name=name, content=content))


def _bins() -> Any:
    """Return the edges of a histogram's bins, whose widths grow by a tenth from bin to bin on both sides of 0."""
    positive = np.cumprod([1e-12, *[1.1] * 773])
    return np.concatenate([-positive[::-1], [0.0], positive])


def _grid(images: Any) -> Any:
    """Return images, (number, height, width, channels), arranged in a grid of at most eight columns."""
    number, height, width, channels = images.shape
    columns = min(number, 8)
    rows = -(-number // columns)
    grid = np.zeros((rows * columns, height, width, channels), images.dtype)
    grid[:number] = images
    grid = grid.reshape(rows, columns, height, width, channels).swapaxes(1, 2)
    return grid.reshape(rows * height, columns * width, channels)


class SummaryWriter:
    """Write scalars, histograms, images and texts for TensorBoard into a folder.

    Args:
        log_dir: the folder; `runs/<time>_<host>` if it is None.
    """

    def __init__(
        self, log_dir: Any = None, comment: str = "", purge_step: int | None = None, max_queue: int = 10,
        flush_secs: int = 120, filename_suffix: str = "",
    ) -> None:  # fmt: skip
        if not log_dir:
            now = datetime.datetime.now().strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{now}_{socket.gethostname()}{comment}")
        self.log_dir, self.purge_step = str(log_dir), purge_step
        self._options = max_queue, flush_secs, filename_suffix
        self.file_writer = FileWriter(self.log_dir, *self._options)
        self.all_writers = {self.log_dir: self.file_writer}
        if purge_step is not None:
            self.file_writer.add_event(Event(step=purge_step, file_version="brain.Event:2"))
            start = SessionLog(status=SessionLog.START)
            self.file_writer.add_event(Event(step=purge_step, session_log=start))

    def get_logdir(self) -> str:
        """Return the folder."""
        return self.log_dir

    def _write(self, step: Any, walltime: Any, writer: Any = None, **value: Any) -> None:
        (writer or self.file_writer).add_summary(Summary(value=[Summary.Value(**value)]), step, walltime)

    def add_scalar(
        self, tag: str, scalar_value: Any, global_step: int | None = None, walltime: float | None = None,
        new_style: bool = False, double_precision: bool = False,
    ) -> None:  # fmt: skip
        """Write a number."""
        number = float(scalar_value)
        if not new_style:
            self._write(global_step, walltime, tag=tag, simple_value=number)
            return
        stored = {"double_val": [number]} if double_precision else {"float_val": [number]}
        tensor = TensorProto(dtype="DT_DOUBLE" if double_precision else "DT_FLOAT", **stored)
        self._write(global_step, walltime, tag=tag, tensor=tensor, metadata=_plugin("scalars"))

    def add_scalars(
        self, main_tag: str, tag_scalar_dict: Any, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """Write several numbers that share one plot, each as a run of its own."""
        for tag, number in tag_scalar_dict.items():
            folder = f"{self.log_dir}/{main_tag.replace('/', '_')}_{tag}"
            if folder not in self.all_writers:
                self.all_writers[folder] = FileWriter(folder, *self._options)
            self._write(global_step, walltime, self.all_writers[folder], tag=main_tag, simple_value=float(number))

    def add_histogram(
        self, tag: str, values: Any, global_step: int | None = None, bins: Any = "tensorflow",
        walltime: float | None = None, max_bins: int | None = None,
    ) -> None:  # fmt: skip
        """Write a histogram of values; `bins` is that of `numpy.histogram`, or "tensorflow"."""
        values = np.asarray(values, np.float64).ravel()
        if not values.size:
            raise ValueError("The input has no element.")
        counts, limits = np.histogram(values, _bins() if isinstance(bins, str) and bins == "tensorflow" else bins)
        if max_bins is not None and len(counts) > max_bins:
            step = len(counts) // max_bins
            counts = np.add.reduceat(counts, np.arange(0, len(counts), step))
            limits = np.append(limits[:-1:step], limits[-1])
        nonempty = np.flatnonzero(counts)
        if not nonempty.size:
            raise ValueError("The histogram is empty, please file a bug report.")
        # TensorBoard's format has an empty bin in front.
        counts, first, end = np.append(0, counts), nonempty[0], nonempty[-1] + 2
        histo = HistogramProto(
            min=values.min(), max=values.max(), num=len(values), sum=values.sum(), sum_squares=values @ values,
            bucket_limit=limits[first:end].tolist(), bucket=counts[first:end].tolist(),
        )  # fmt: skip
        self._write(global_step, walltime, tag=tag, histo=histo)

    def add_image(
        self, tag: str, img_tensor: Any, global_step: int | None = None, walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:  # fmt: skip
        """Write an image of uint8, or of floats from 0 to 1; `dataformats` names its dimensions."""
        x, layout = np.asarray(img_tensor), dataformats.upper()
        if x.ndim != len(layout):
            raise AssertionError(f"size of input tensor and input format are different. {x.shape}, {dataformats}")
        if x.dtype != np.uint8:
            x = np.clip(x.astype(np.float64) * 255, 0, 255).astype(np.uint8)
        for dim in "NC":
            if dim not in layout:
                x, layout = x[None], dim + layout
        x = x.transpose([layout.index(dim) for dim in "NHWC"])
        if x.shape[-1] == 1:
            x = np.repeat(x, 3, -1)
        x = _grid(x)
        height, width, channels = x.shape
        image = Summary.Image(height=height, width=width, colorspace=channels, encoded_image_string=png(x))
        self._write(global_step, walltime, tag=tag, image=image)

    def add_images(
        self, tag: str, img_tensor: Any, global_step: int | None = None, walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:  # fmt: skip
        """Write images, arranged in a grid."""
        self.add_image(tag, img_tensor, global_step, walltime, dataformats)

    def add_figure(
        self, tag: str, figure: Any, global_step: int | None = None, close: bool = True, walltime: float | None = None
    ) -> None:
        """Write a matplotlib figure, or a list of them side by side, as an image."""
        from matplotlib import pyplot
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        images = []
        for fig in figure if isinstance(figure, list) else [figure]:
            canvas: Any = FigureCanvasAgg(fig)
            canvas.draw()
            images.append(np.asarray(canvas.buffer_rgba())[..., :3])
            if close:
                pyplot.close(fig)
        self.add_image(tag, np.stack(images), global_step, walltime, "NHWC")

    def add_text(
        self, tag: str, text_string: str, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """Write a text."""
        tensor = TensorProto(dtype="DT_STRING", string_val=[text_string.encode()])
        tensor.tensor_shape.dim.add(size=1)
        self._write(global_step, walltime, tag=f"{tag}/text_summary", tensor=tensor, metadata=_plugin("text"))

    def add_hparams(
        self, hparam_dict: Any, metric_dict: Any, hparam_domain_discrete: Any = None, run_name: str | None = None,
        global_step: int | None = None,
    ) -> None:  # fmt: skip
        """Write the hyperparameters and the metrics of a run."""
        if not isinstance(hparam_dict, dict) or not isinstance(metric_dict, dict):
            raise TypeError("hparam_dict and metric_dict should be dictionary.")
        experiment, start = api_pb2.Experiment(), plugin_data_pb2.SessionStartInfo()
        for name, value in hparam_dict.items():
            field, dtype = ("string_value", "STRING") if isinstance(value, str) else ("number_value", "FLOAT64")
            info = experiment.hparam_infos.add(name=name, type=f"DATA_TYPE_{dtype}")
            for choice in (hparam_domain_discrete or {}).get(name, ()):
                info.domain_discrete.values.add(**{field: choice})
            setattr(start.hparams[name], field, value)
        for name in metric_dict:
            experiment.metric_infos.add(name=api_pb2.MetricName(tag=name))
        end = plugin_data_pb2.SessionEndInfo(status=api_pb2.STATUS_SUCCESS)
        parts = {"experiment": experiment, "session_start_info": start, "session_end_info": end}
        with SummaryWriter(os.path.join(self.log_dir, run_name or str(time.time()))) as writer:
            for tag, (name, part) in zip(
                (metadata.EXPERIMENT_TAG, metadata.SESSION_START_INFO_TAG, metadata.SESSION_END_INFO_TAG),
                parts.items(), strict=True,
            ):  # fmt: skip
                data = plugin_data_pb2.HParamsPluginData(version=metadata.PLUGIN_DATA_VERSION, **{name: part})
                writer._write(global_step, None, tag=tag, metadata=_plugin("hparams", data.SerializeToString()))
            for name, number in metric_dict.items():
                writer.add_scalar(name, number, global_step)

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise NotImplementedError: this summary needs tensorboardX."""
        raise NotImplementedError("this kind of summary needs tensorboardX: pip install tensorboardX")

    add_audio = add_embedding = add_mesh = add_pr_curve = add_video = add_image_with_boxes = _refuse
    add_custom_scalars = add_histogram_raw = add_pr_curve_raw = add_tensor = add_onnx_graph = _refuse

    def flush(self) -> None:
        """Write all buffered events."""
        for writer in self.all_writers.values():
            writer.flush()

    def close(self) -> None:
        """Write all buffered events and close the files."""
        for writer in self.all_writers.values():
            writer.close()

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
