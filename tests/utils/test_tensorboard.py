"""Files for TensorBoard: written, and read again by the format's definition."""

from __future__ import annotations

import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tensorboardX.proto.event_pb2 import Event

import tinytorch
from tinytorch.utils import tensorboard
from tinytorch.utils.tensorboard import SummaryWriter


def events(folder: Path) -> list[Any]:
    """Return the events of all files below a folder: each is its length, a checksum, it and its checksum."""
    found = []
    for file in sorted(folder.rglob("events.*")):
        data, at = file.read_bytes(), 0
        while at < len(data):
            (length,) = struct.unpack_from("<Q", data, at)
            found.append(Event.FromString(data[at + 12 : at + 12 + length]))
            at += 12 + length + 4
    return found


def values(folder: Path) -> dict[tuple[str, int], Any]:
    """Return what was written, by tag and step."""
    return {(v.tag, event.step): v for event in events(folder) for v in event.summary.value}


def test_scalars(tmp_path: Path) -> None:
    with SummaryWriter(log_dir=tmp_path) as writer:
        assert writer.log_dir == writer.get_logdir() == str(tmp_path)
        writer.add_scalar("loss", tinytorch.tensor(0.5, requires_grad=True), 1, new_style=True)
        writer.add_scalar("loss", 0.25, global_step=2)
        writer.add_scalars("both", {"a": tinytorch.tensor(1.0), "b": 2}, 3)
    found = values(tmp_path)
    assert found["loss", 1].simple_value == 0.5
    assert found["loss", 2].simple_value == 0.25
    third = [v.simple_value for e in events(tmp_path) if e.step == 3 for v in e.summary.value]
    assert sorted(third) == [1.0, 2.0]  # each in a run of its own


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
    assert (picture.height, picture.width, picture.colorspace) == (5, 6, 3)
    assert ("pictures", 7) in found
    assert b"a word" in found["note/text_summary", 7].tensor.string_val[0]
    assert any(
        tag == "accuracy" and np.isclose(v.simple_value, 0.9) for (tag, _), v in found.items()
    )


def test_graphs_are_refused(tmp_path: Path) -> None:
    with (
        SummaryWriter(tmp_path) as writer,
        pytest.raises(NotImplementedError, match="traces the model"),
    ):
        writer.add_graph(tinytorch.nn.Linear(1, 1), tinytorch.ones(1))


def test_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorboardX.writer", None)
    tensorboard._summary_writer.cache_clear()
    for name in ("SummaryWriter", "FileWriter", "RecordWriter"):
        with pytest.raises(ImportError, match=r"pip install tensorboardX"):
            getattr(tensorboard, name)
    with pytest.raises(AttributeError, match="no attribute 'Writer'"):
        tensorboard.Writer  # noqa: B018
