"""Drawn clothes: the same everywhere, balanced, varied; and when they take FashionMNIST's place."""

from __future__ import annotations

import hashlib
import os
import pickle
import subprocess
import sys
import tracemalloc

import numpy as np
import numpy._core._multiarray_umath as numpy_core
import pytest

import tinytorch
from tests.data.programs import plain
from tests.data.test_vision import ARRAYS, Small, mirror, put  # noqa: F401 - a fixture
from tinytorch.data import DataLoader, DrawnFashion, FashionMNIST, drawn, fashion_or_drawn
from tinytorch.data.transforms import Compose, Lambda, Normalize, ToTensor

#: Of 500 pictures of each split and their labels, from seed 0.
SUMS = {
    0: (
        "284dc1afbcc98cb381df3ead63dba72bfe57d00a791f5f132a8c6ff144feac20",
        "7c5d406b043c4142fec7483a848213402779e6fd66545733f390115b1d9e9401",
    ),
    1: (
        "d2aa24236c3b2c3968a3f0fc8b80f0fdcf96976c6e8b3303d6a50e6448dfd70d",
        "013973e0c564a967cf004e719495c8ba39c5e0aa69ea302ebc853571e7e1aee5",
    ),
}
NOBODY = "http://127.0.0.1:9/"  # the discard port: no one listens


def sums(images, labels):
    return tuple(hashlib.sha256(array.tobytes()).hexdigest() for array in (images, labels))


@pytest.fixture
def few(monkeypatch):
    """Let the sets be small."""
    monkeypatch.setattr(drawn, "TRAINING", 300)
    monkeypatch.setattr(drawn, "TEST", 50)


# The pictures ------------------------------------------------------------------------------------


def test_it_is_as_large_as_fashion_mnist():
    for train, count in (True, 60_000), (False, 10_000):
        dataset = DrawnFashion(train=train)
        assert len(dataset) == count
        assert dataset.train is train
        assert dataset.data.shape == (count, 28, 28)
        assert dataset.data.dtype is tinytorch.uint8
        assert dataset.targets.dtype is tinytorch.int64
        assert np.bincount(dataset.targets.numpy()).tolist() == [count // 10] * 10
    assert dataset.classes == FashionMNIST.classes
    assert dataset.class_to_idx["Ankle boot"] == 9


@pytest.mark.parametrize("split", SUMS)
def test_the_same_seed_gives_the_same_bytes(split):
    assert sums(*drawn.draw(0, split, 500)) == SUMS[split]


def test_a_processor_without_vector_instructions_draws_the_same():
    code = "from tests.data.test_drawn import SUMS, drawn, sums;assert sums(*drawn.draw(0, 1, 500)) == SUMS[1]"
    used = [name for name in numpy_core.__cpu_dispatch__ if numpy_core.__cpu_features__[name]]
    environment = {**os.environ, "NPY_DISABLE_CPU_FEATURES": " ".join(used)}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True)
    assert run.returncode == 0, run.stderr


def test_seeds_and_splits_differ():
    shown = set()
    for seed in (0, 1, 2**70):
        for split in (0, 1):
            images, labels = drawn.draw(seed, split, 100)
            shown |= {image.tobytes() for image in images}
            shown.add(labels.tobytes())
    assert len(shown) == 6 * 101


def test_the_order_is_random():
    _, labels = drawn.draw(0, 0, 1000)
    assert np.bincount(labels).tolist() == [100] * 10
    pairs = np.bincount(10 * labels[:-1] + labels[1:], minlength=100)
    assert pairs.max() < 30  # 10 on the average
    assert np.bincount(labels[:100], minlength=10).min() > 0


def test_blocks_change_nothing():
    whole = drawn.draw(3, 0, 230)
    for block in (1, 7, 1000):
        assert sums(*drawn.draw(3, 0, 230, block)) == sums(*whole)


def test_memory_beside_the_pictures_is_small():
    drawn.draw(0, 0, 1000)  # what is allocated once
    tracemalloc.start()
    images, labels = drawn.draw(0, 0, 20_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < images.nbytes + 3 * labels.nbytes + 12e6


def test_other_random_numbers_are_left_alone(few):
    tinytorch.manual_seed(0)
    np.random.seed(0)
    expected = tinytorch.rand(3), np.random.rand(3)
    tinytorch.manual_seed(0)
    np.random.seed(0)
    DrawnFashion()
    assert tinytorch.equal(tinytorch.rand(3), expected[0])
    np.testing.assert_array_equal(np.random.rand(3), expected[1])


def test_the_pictures_are_as_described():
    images, labels = drawn.draw(0, 0, 5000)
    corner = images[:, 0, 0]  # of the ground, mostly
    white = corner > 128
    assert 0.35 < white.mean() < 0.45
    images = np.where(white[:, None, None], 255 - images, images)
    cover = (images > 25).mean(axis=(1, 2))
    assert cover.min() > 0.05 and cover.max() < 0.9
    masses = [cover[labels == label].mean() for label in range(10)]
    assert masses[4] > masses[0] > masses[1] > masses[5]  # coats, T-shirts, trousers, sandals
    for label in range(10):  # no two are alike
        some = images[labels == label][:100].reshape(100, -1).astype(np.float32)
        apart = np.abs(some[:, None] - some).mean(axis=2)
        assert apart[~np.eye(100, dtype=bool)].min() > 3


def test_seeds_that_cannot_be():
    with pytest.raises(ValueError, match="seed should not be negative, but got -1"):
        DrawnFashion(seed=-1)
    with pytest.raises(TypeError, match="'float' object cannot be interpreted as an integer"):
        DrawnFashion(seed=1.5)
    with pytest.raises(TypeError, match="positional"):
        DrawnFashion(None, True, None, None, False, 1)


# The dataset -------------------------------------------------------------------------------------


def test_fashion_mnists_arguments(few, tmp_path):
    dataset = DrawnFashion(str(tmp_path / "data"), False, ToTensor(), lambda label: 2 * label, True, seed=4)
    images, labels = drawn.draw(4, 1, 50)
    image, label = dataset[7]
    np.testing.assert_array_equal(image.numpy(), images[7:8] / np.float32(255))
    assert label == 2 * labels[7]
    assert files(tmp_path) == ["DrawnFashion", "data", "test-seed4.npy"]


@pytest.mark.parametrize("damaged", [b"", b"\x00\x00\x08\x03", b"\x93NUMPY", None], ids=repr)
def test_what_was_drawn_is_kept(tmp_path, monkeypatch, damaged):
    """It is read unless it is damaged, or another version has drawn it; a folder that is none is left alone."""
    monkeypatch.setattr(drawn, "TRAINING", 1500)
    file = tmp_path / "DrawnFashion" / "train-seed0.npy"
    DrawnFashion(tmp_path)
    assert not file.exists()
    first = DrawnFashion(tmp_path, download=True).data.numpy()
    kept = np.load(file)
    np.testing.assert_array_equal(kept, first)
    kept[-1] = 7  # (whether the first blocks are the same is looked at)
    np.save(file, kept)
    assert (DrawnFashion(tmp_path).data[-1] == 7).all()
    kept[0] ^= 1
    np.save(file, kept)
    if damaged is not None:
        file.write_bytes(damaged)
    np.testing.assert_array_equal(DrawnFashion(tmp_path, download=True).data.numpy(), first)
    np.testing.assert_array_equal(np.load(file), first)
    np.testing.assert_array_equal(DrawnFashion(file, download=True).data.numpy(), first)


def test_repr(few):
    assert repr(DrawnFashion("data", seed=3, transform=ToTensor())) == (
        "Dataset DrawnFashion\n"
        "    Number of datapoints: 300\n"
        "    Seed: 3\n"
        "    Split: Train\n"
        "    StandardTransform\n"
        "Transform: ToTensor()"
    )


def test_a_sample_without_a_transform_is_a_pillow_image(few):
    pytest.importorskip("PIL")
    dataset = DrawnFashion(train=False)
    image, label = dataset[-1]
    assert image.mode == "L" and type(label) is int
    np.testing.assert_array_equal(np.asarray(image), dataset.data[-1].numpy())


@pytest.mark.parametrize(
    "transform",
    [ToTensor(), Compose([ToTensor(), Normalize((0.3,), (0.4,))]), Compose([ToTensor(), Lambda(lambda x: x.sum())])],
    ids=["ToTensor", "Normalize", "then single images"],
)
@pytest.mark.parametrize("shuffle", [False, True])
def test_batches_equal_collated_samples(few, transform, shuffle):
    dataset = DrawnFashion(train=False, transform=transform)

    def batches(**options):
        tinytorch.manual_seed(0)
        return plain(list(DataLoader(dataset, batch_size=8, shuffle=shuffle, **options)))

    collate = tinytorch.utils.data.default_collate
    assert batches() == batches(collate_fn=lambda batch: collate(batch))


def test_whole_batches_do_not_touch_samples(few, monkeypatch):
    dataset = DrawnFashion(train=False, transform=ToTensor())
    monkeypatch.setattr("tinytorch.data.vision.StandardTransform", None)  # every sample goes through it
    assert sum(len(labels) for _, labels in DataLoader(dataset, batch_size=8)) == 50


def test_it_can_be_pickled(few):
    dataset = pickle.loads(pickle.dumps(DrawnFashion(train=False, transform=ToTensor())))
    assert sums(dataset.data.numpy(), dataset.targets.numpy()) == sums(*drawn.draw(0, 1, 50))


# In FashionMNIST's place -------------------------------------------------------------------------


@pytest.fixture
def alone(monkeypatch):
    """Let no mirror be reached, and the files be small."""
    monkeypatch.setattr(FashionMNIST, "mirrors", (NOBODY, NOBODY + "too/"))
    monkeypatch.setattr(FashionMNIST, "resources", Small.resources)


def files(folder):
    return sorted(path.name for path in folder.rglob("*"))


def test_what_is_asked_for(alone, tmp_path, capsys):
    assert fashion_or_drawn(tmp_path, "fashion") is FashionMNIST
    assert fashion_or_drawn(tmp_path, "drawn") is DrawnFashion
    assert fashion_or_drawn(None, "drawn") is DrawnFashion
    with pytest.raises(ValueError, match="'auto', 'fashion' or 'drawn', but got 'photographed'"):
        fashion_or_drawn(tmp_path, "photographed")
    assert capsys.readouterr() == ("", "")
    assert files(tmp_path) == []


@pytest.mark.parametrize("packed", [True, False], ids=["packed", "unpacked"])
def test_what_is_on_disk_is_taken(alone, tmp_path, capsys, packed):
    put(tmp_path, packed, kind="FashionMNIST")
    before = files(tmp_path)
    assert fashion_or_drawn(str(tmp_path)) is FashionMNIST
    assert capsys.readouterr() == ("", "")
    assert files(tmp_path) == before


def test_what_can_be_downloaded_is_taken(alone, tmp_path, monkeypatch, mirror):  # noqa: F811
    monkeypatch.setattr(FashionMNIST, "mirrors", (NOBODY, f"{mirror}/files/"))
    assert fashion_or_drawn(tmp_path) is FashionMNIST
    images = FashionMNIST(tmp_path, train=True).data.numpy()
    np.testing.assert_array_equal(images, ARRAYS["train-images-idx3-ubyte"])


def test_what_cannot_be_had_is_drawn(alone, tmp_path, capsys):
    assert fashion_or_drawn(tmp_path / "data") is DrawnFashion
    out, said = capsys.readouterr()
    assert out == ""
    assert said == (
        "Error downloading train-images-idx3-ubyte.gz: Connection refused\n"
        "Pictures of clothes are drawn in some seconds, instead of FashionMNIST.\n"
    )
    assert files(tmp_path) == []


def test_what_has_a_wrong_sum_is_drawn(alone, tmp_path, capsys, monkeypatch, mirror):  # noqa: F811
    """So do the pages that some networks answer everything with."""
    monkeypatch.setattr(FashionMNIST, "mirrors", (f"{mirror}/wrong/",))
    assert fashion_or_drawn(tmp_path) is DrawnFashion
    assert "expected the MD5 sum" in capsys.readouterr().err


def test_a_folder_that_cannot_be_made(alone, tmp_path, capsys, monkeypatch, mirror):  # noqa: F811
    (tmp_path / "data").write_text("a file")
    assert fashion_or_drawn(tmp_path / "data") is DrawnFashion
    monkeypatch.setattr(FashionMNIST, "mirrors", (f"{mirror}/files/",))
    assert fashion_or_drawn(tmp_path / "data") is DrawnFashion
    assert "Not a directory" in capsys.readouterr().err.splitlines()[-2]


def test_an_incomplete_download_is_not_the_end(alone, tmp_path, capsys):
    raw = put(tmp_path, kind="FashionMNIST")
    (raw / "t10k-labels-idx1-ubyte.gz").unlink()
    assert fashion_or_drawn(tmp_path) is DrawnFashion
    assert len(capsys.readouterr().err.splitlines()) == 2


def test_damaged_files_are_not_passed_over(alone, tmp_path, capsys):
    raw = put(tmp_path, packed=False, kind="FashionMNIST")
    images = raw / "t10k-images-idx3-ubyte"
    images.write_bytes(images.read_bytes()[:-1])
    with pytest.raises(RuntimeError, match="t10k-images-idx3-ubyte is damaged"):
        fashion_or_drawn(tmp_path)
    (raw / "train-images-idx3-ubyte").unlink()  # also if others are not there at all
    with pytest.raises(RuntimeError, match="t10k-images-idx3-ubyte is damaged"):
        fashion_or_drawn(tmp_path)
    assert capsys.readouterr() == ("", "")


def test_damaged_training_files_are_not_passed_over(alone, tmp_path):
    raw = put(tmp_path, packed=False, kind="FashionMNIST")
    (raw / "train-labels-idx1-ubyte").write_bytes(b"")
    with pytest.raises(RuntimeError, match="train-labels-idx1-ubyte is damaged"):
        fashion_or_drawn(tmp_path)(tmp_path, train=True)


def test_a_packed_file_with_a_wrong_sum_is_not_passed_over(alone, tmp_path):
    raw = put(tmp_path, kind="FashionMNIST")
    (raw / "t10k-images-idx3-ubyte.gz").write_bytes(b"damaged")
    with pytest.raises(RuntimeError, match=r"Error downloading t10k-images-idx3-ubyte\.gz"):
        fashion_or_drawn(tmp_path)
