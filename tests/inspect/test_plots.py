"""The plots of a training: what is in them, what they refuse, and that a missing matplotlib is noticed early."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinytorch as torch
from tinytorch import inspect

pytest.importorskip("matplotlib")


def test_curves_share_panels_by_their_last_word() -> None:
    history = {"training loss": [2.0, 1.0], "test loss": [2.5, 1.5], "test accuracy": [0.5, 0.75], "rate": []}
    loss, accuracy = inspect.plot_curves(history).axes
    assert [line.get_label() for line in loss.lines] == ["training", "test"]
    assert [line.get_ydata().tolist() for line in loss.lines] == [[2.0, 1.0], [2.5, 1.5]]
    assert loss.lines[0].get_xdata().tolist() == [1, 2]
    assert accuracy.get_title() == "accuracy" and accuracy.yaxis.get_major_formatter().format_pct(0.5, 1) == "50%"
    with pytest.raises(ValueError, match=r"plot_curves\(\): there are no values"):
        inspect.plot_curves({"loss": []})


def test_confusion_has_the_actual_classes_in_rows() -> None:
    figure = inspect.plot_confusion(torch.tensor([0, 1, 1, 2, 1]), torch.tensor([0, 0, 0, 2, 2]))
    (axes,) = figure.axes
    counts = {tuple(map(int, cell.get_position()))[::-1]: int(cell.get_text()) for cell in axes.texts}
    assert counts == {(0, 0): 1, (0, 1): 2, (2, 1): 1, (2, 2): 1}
    np.testing.assert_allclose(axes.images[0].get_array()[0], [1 / 3, 2 / 3, 0])
    assert axes.get_title() == "40.0% of 5 right"
    with pytest.raises(ValueError, match="as many predictions as targets, but got 2 and 1"):
        inspect.plot_confusion(torch.tensor([0, 1]), torch.tensor([1]))
    with pytest.raises(ValueError, match="at least 3 classes, but got 2"):
        inspect.plot_confusion(torch.tensor([2]), torch.tensor([1]), ["a", "b"])


def test_mistakes_are_ordered_by_certainty() -> None:
    scores = torch.tensor([[0.0, 9.0], [5.0, 0.0], [0.0, 7.0], [1.0, 0.0]])
    images = torch.arange(4.0).reshape(4, 1, 1, 1).expand(4, 1, 3, 3) / 4
    figure = inspect.plot_mistakes(images, scores, torch.tensor([1, 1, 0, 1]), ["cat", "dog"], count=2)
    assert [axes.get_title() for axes in figure.axes] == ["dog (99.9%)\nis cat", "cat (99.3%)\nis dog"]
    assert [float(axes.images[0].get_array()[0, 0]) for axes in figure.axes] == [0.5, 0.25]
    right = inspect.plot_mistakes(images, scores, scores.argmax(1))
    assert right.texts[0].get_text() == "no mistakes" and not right.axes
    with pytest.raises(ValueError, match=r"expected images \(N, C, H, W\)"):
        inspect.plot_mistakes(images, scores[:3], torch.tensor([1, 1, 0, 1]))


@pytest.mark.parametrize("images", [torch.rand(12, 3, 8, 8), torch.rand(12, 8, 8), torch.randn(12, 1, 8, 8) * 255])
def test_everything_in_one_figure(images: Any, tmp_path: Path) -> None:
    scores, targets = torch.randn(12, 4, requires_grad=True), torch.arange(12) % 4
    figure = inspect.plot_classifier(images, scores, targets, list("abcd"), {"loss": [1.0], "accuracy": []})
    for suffix in ("png", "svg"):
        figure.savefig(tmp_path / f"plot.{suffix}")
    assert (tmp_path / "plot.png").read_bytes()[:4] == figure._repr_png_()[:4] == b"\x89PNG"
    assert len(inspect.plot_classifier(images, scores, targets).axes) == 1 + min(
        10, int((scores.argmax(1) != targets).sum())
    )


def test_what_would_fail_later_is_refused_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "plot.png"
    inspect.check_plot(path)
    assert not path.exists()
    path.write_text("x")
    inspect.check_plot(path)
    assert path.read_text() == "x"
    with pytest.raises(ValueError, match=r"saved as \.png, \.svg or \.pdf, not as 'plot\.abc'"):
        inspect.check_plot("plot.abc")
    with pytest.raises(FileNotFoundError):
        inspect.check_plot(tmp_path / "none" / "plot.png")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"plots need matplotlib \(the extra `plot`\): pip install matplotlib"):
        inspect.check_plot(path)


def test_no_window_is_opened() -> None:
    before = "matplotlib.pyplot" in sys.modules
    inspect.plot_curves({"loss": [1.0]})
    assert ("matplotlib.pyplot" in sys.modules) == before
