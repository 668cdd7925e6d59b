"""TensorBoard files, which are read again by the definition of the format."""

from __future__ import annotations

import io
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tensorboardX.proto.event_pb2 import Event
from tensorboardX.proto.graph_pb2 import GraphDef

import tinytorch
from tests.oracle import needs_oracle
from tests.same import refused
from tinytorch.utils import tensorboard
from tinytorch.utils.tensorboard import SummaryWriter


def events(folder: Path) -> list[Any]:
    """Return the events of all files in a folder: each record is a length, its checksum, the event and its checksum."""
    found = []
    for file in sorted(folder.rglob("events.*")):
        data, at = file.read_bytes(), 0
        while at < len(data):
            (length,) = struct.unpack_from("<Q", data, at)
            found.append(Event.FromString(data[at + 12 : at + 12 + length]))
            at += 12 + length + 4
    return found


def values(folder: Path) -> dict[tuple[str, int], Any]:
    """Return the written values, by tag and step."""
    return {(v.tag, event.step): v for event in events(folder) for v in event.summary.value}


def test_scalars(tmp_path: Path) -> None:
    with SummaryWriter(log_dir=tmp_path) as writer:
        assert writer.log_dir == writer.get_logdir() == str(tmp_path)
        writer.add_scalar("loss", tinytorch.tensor(0.5, requires_grad=True), 1, new_style=True)
        writer.add_scalar("loss", 0.25, global_step=2)
        writer.add_scalars("both", {"a": tinytorch.tensor(1.0), "b": 2}, 3)
    found = values(tmp_path)
    assert found["loss", 1].simple_value == 0.5 and found["loss", 2].simple_value == 0.25
    third = [v.simple_value for e in events(tmp_path) if e.step == 3 for v in e.summary.value]
    assert sorted(third) == [1.0, 2.0]  # each in a separate run


def test_histograms_pictures_and_texts(tmp_path: Path) -> None:
    with SummaryWriter(str(tmp_path), comment="x", flush_secs=5) as writer:
        writer.add_histogram("weights", tinytorch.nn.Linear(3, 4).weight, 7)
        writer.add_image("picture", tinytorch.rand(3, 5, 6), 7)
        writer.add_images("pictures", img_tensor=tinytorch.rand(2, 1, 5, 6), global_step=7)
        writer.add_text("note", "a word", 7)
        writer.add_pr_curve("pr", tinytorch.tensor([0, 1, 1]), tinytorch.tensor([0.1, 0.8, 0.4]), 7)
        writer.add_hparams({"lr": 0.1}, {"accuracy": tinytorch.tensor(0.9)}, run_name="run")
    found = values(tmp_path)
    assert found["weights", 7].histo.num == 12
    picture = found["picture", 7].image
    assert (picture.height, picture.width, picture.colorspace) == (5, 6, 3) and ("pictures", 7) in found
    assert b"a word" in found["note/text_summary", 7].tensor.string_val[0]
    assert any(tag == "accuracy" and np.isclose(v.simple_value, 0.9) for (tag, _), v in found.items())


def graph_of(folder: Path) -> dict[str, tuple[str, list[str]]]:
    """Return the written graph: by name of a node its op and its inputs."""
    (data,) = (event.graph_def for event in events(folder) if event.graph_def)
    return {node.name: (node.op, list(node.input)) for node in GraphDef.FromString(data).node}


class Two(tinytorch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.line = tinytorch.nn.Linear(3, 2)

    def forward(self, x: Any, k: Any) -> Any:
        parts = (self.line(x) * k).relu().chunk(2, 1)
        return {"sum": parts[0] + parts[1], "product": parts[1] * parts[0]}


def check_graph(writer: Any, folder: Path) -> None:
    model, x = Two(), tinytorch.ones(4, 3)
    with writer:
        writer.add_graph(model, (x, tinytorch.tensor(2)))
    found = graph_of(folder)
    assert found["input/0"] == ("Input", [])
    assert found["line/weight"] == found["line/bias"] == ("Parameter", [])
    assert found["output/0"] == ("Output", ["AddBackward0_0"]) and found["output/1"] == ("Output", ["MulBackward0_1"])
    assert found["AddBackward0_0"][1] == ["SplitBackward0_0", "SplitBackward0_0:1"]
    assert found["MulBackward0_1"][1] == ["SplitBackward0_0:1", "SplitBackward0_0"]
    names = [name.partition(":")[0] for _, inputs in found.values() for name in inputs]
    assert set(names) <= set(found) and {"input/0", "line/weight", "line/bias"} <= set(names)
    assert not x.requires_grad and x.grad is None


def test_graphs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    check_graph(SummaryWriter(tmp_path / "a"), tmp_path / "a")
    with SummaryWriter(tmp_path / "b") as writer:
        writer.add_graph(tinytorch.nn.Linear(1, 1), tinytorch.ones(1, 1), verbose=True)
        with pytest.raises(RuntimeError, match="no output depends"):
            writer.add_graph(tinytorch.nn.Identity(), tinytorch.ones(1, dtype=tinytorch.int64))
    assert "flowchart TD" in capsys.readouterr().out
    assert {"weight", "bias", "input/0", "output/0"} < set(graph_of(tmp_path / "b"))


def test_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorboardX.writer", None)
    monkeypatch.setitem(sys.modules, "tensorboard.summary.writer.event_file_writer", None)
    tensorboard._summary_writer.cache_clear()
    for name in ("SummaryWriter", "FileWriter", "RecordWriter"):
        refused(ImportError, r"by tensorboard or tensorboardX.*pip install tensorboardX", getattr, tensorboard, name)
    with pytest.raises(AttributeError, match="no attribute 'Writer'"):
        tensorboard.Writer  # noqa: B018


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the writer for the package tensorboard."""
    pytest.importorskip("tensorboard")
    monkeypatch.setitem(sys.modules, "tensorboardX.writer", None)
    tensorboard._summary_writer.cache_clear()
    yield tensorboard.SummaryWriter
    tensorboard._summary_writer.cache_clear()


def written(torch: Any, Writer: Any, folder: Path) -> Any:
    """Write a value of each kind, and return the values in the files."""
    x = torch.tensor([[0.5, -2.0, 0.0], [1.5, 0.25, 3.0]])
    with Writer(log_dir=str(folder), purge_step=3, max_queue=5, flush_secs=60, filename_suffix=".x") as writer:
        writer.add_scalar("loss", torch.tensor(0.5), 1, walltime=5.0)
        writer.add_scalar("new", torch.tensor(0.25), 1, new_style=True)
        writer.add_scalar("double", 0.1, 1, new_style=True, double_precision=True)
        writer.add_scalars("a/b", {"x": torch.tensor(1.0), "y": 2}, 3)
        writer.add_histogram("weights", x, 7)
        writer.add_histogram("few", x, 7, bins=4)
        writer.add_histogram("fewer", x, 7, max_bins=2, bins=[-3, -1, 0, 0.4, 1, 2, 4])
        writer.add_image("picture", torch.arange(90.0).reshape(3, 5, 6) / 80, 7)
        writer.add_image("bytes", torch.arange(30).reshape(5, 6).to(torch.uint8), 7, dataformats="HW")
        writer.add_images("pictures", torch.arange(300.0).reshape(10, 1, 5, 6) / 300, 7)
        writer.add_text("note", "a word", 7)
        writer.add_hparams({"lr": 0.1, "name": "x", "on": True}, {"accuracy": torch.tensor(0.75)}, run_name="run")
    found = []
    for event in events(folder):
        for value in event.summary.value:
            image = value.image
            if image.encoded_image_string:
                from PIL import Image

                pixels = np.asarray(Image.open(io.BytesIO(image.encoded_image_string)))
                found.append((event.step, value.tag, image.height, image.width, image.colorspace, pixels.tolist()))
            else:
                found.append((event.step, str(value)))
        found.append((event.step, event.session_log.status))
    files = sorted(str(file.relative_to(folder).parent) for file in folder.rglob("events.*"))
    return sorted(map(str, found)), files


@needs_oracle
def test_what_pytorch_writes(alone: Any, tmp_path: Path) -> None:
    import torch
    from torch.utils.tensorboard import SummaryWriter as Theirs

    ours, theirs = written(tinytorch, alone, tmp_path / "ours"), written(torch, Theirs, tmp_path / "theirs")
    assert ours == theirs


def test_what_is_asked_of_tensorboardx(alone: Any, tmp_path: Path) -> None:
    with alone(tmp_path) as writer:
        sound = tinytorch.ones(3)
        refused(NotImplementedError, "pip install tensorboardX", writer.add_audio, "sound", sound)
        refused(ValueError, "no element", writer.add_histogram, "nothing", tinytorch.ones(0))
        assert writer.get_logdir() == str(tmp_path)
    assert tensorboard.FileWriter(tmp_path).get_logdir() == str(tmp_path)
    with pytest.raises(AttributeError, match="RecordWriter"):
        tensorboard.RecordWriter  # noqa: B018


def test_graphs_alone(alone: Any, tmp_path: Path) -> None:
    check_graph(alone(tmp_path), tmp_path)


def test_figures(alone: Any, tmp_path: Path) -> None:
    from matplotlib.figure import Figure

    with alone(tmp_path) as writer:
        writer.add_figure("figure", [Figure((2, 1), dpi=50), Figure((2, 1), dpi=50)], 1)
    picture = values(tmp_path)["figure", 1].image
    assert (picture.height, picture.width, picture.colorspace) == (50, 200, 3)
