"""FashionMNIST and its sisters: files, downloads, samples and batches."""

from __future__ import annotations

import contextlib
import errno
import gzip
import hashlib
import http.server
import os
import pathlib
import re
import socket
import struct
import sys
import threading
import time

import numpy as np
import pytest

import tinytorch
from tests.data.programs import plain
from tests.data.vision_oracle import needs_torchvision, torchvision
from tinytorch.data import KMNIST, MNIST, DataLoader, FashionMNIST, random_split, vision
from tinytorch.data.transforms import Compose, Lambda, Normalize, ToTensor

RNG = np.random.default_rng(0)


def idx(array: np.ndarray) -> bytes:
    """Return a uint8 array as the bytes of an idx file."""
    header = struct.pack(f">I{array.ndim}I", 0x0800 + array.ndim, *array.shape)
    return header + array.astype(np.uint8).tobytes()


ARRAYS = {
    "train-images-idx3-ubyte": RNG.integers(0, 256, (20, 28, 28), dtype=np.uint8),
    "train-labels-idx1-ubyte": RNG.integers(0, 10, 20, dtype=np.uint8),
    "t10k-images-idx3-ubyte": RNG.integers(0, 256, (8, 28, 28), dtype=np.uint8),
    "t10k-labels-idx1-ubyte": RNG.integers(0, 10, 8, dtype=np.uint8),
}
PACKED = {f"{name}.gz": gzip.compress(idx(array), mtime=0) for name, array in ARRAYS.items()}
IMAGES, LABELS = ARRAYS["train-images-idx3-ubyte"], ARRAYS["train-labels-idx1-ubyte"]


class Small(FashionMNIST):
    """FashionMNIST with the files above."""

    mirrors = ()
    resources = tuple((name, hashlib.md5(data).hexdigest()) for name, data in PACKED.items())


def put(root: pathlib.Path, packed: bool = True, kind: str = "Small") -> pathlib.Path:
    """Write the files and return their folder."""
    raw = root / kind / "raw"
    raw.mkdir(parents=True, exist_ok=True)
    for name, array in ARRAYS.items():
        if packed:
            (raw / f"{name}.gz").write_bytes(PACKED[f"{name}.gz"])
        else:
            (raw / name).write_bytes(idx(array))
    return raw


# Loading -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("packed", [True, False], ids=["packed", "unpacked"])
@pytest.mark.parametrize("train", [True, False], ids=["train", "test"])
def test_the_files_become_tensors(tmp_path, packed: bool, train: bool) -> None:
    put(tmp_path, packed)
    dataset = Small(tmp_path, train=train)
    split = "train" if train else "t10k"
    assert dataset.data.dtype is tinytorch.uint8 and dataset.targets.dtype is tinytorch.int64
    np.testing.assert_array_equal(dataset.data.numpy(), ARRAYS[f"{split}-images-idx3-ubyte"])
    np.testing.assert_array_equal(dataset.targets.numpy(), ARRAYS[f"{split}-labels-idx1-ubyte"])
    assert len(dataset) == (20 if train else 8) and dataset.train is train


def test_the_data_may_be_written_into(tmp_path) -> None:
    put(tmp_path)
    dataset = Small(tmp_path)
    dataset.data[0] = 7
    dataset.targets[0] = 3
    assert ToTensor()(np.array(dataset[0][0])).tolist() == tinytorch.full((1, 28, 28), 7 / 255).tolist()
    assert dataset[0][1] == 3


def test_the_root_from_the_environment(tmp_path, monkeypatch) -> None:
    put(tmp_path)
    monkeypatch.setenv("TINYTORCH_DATA", str(tmp_path))
    dataset = Small()
    assert dataset.root == str(tmp_path) and len(dataset) == 20
    monkeypatch.delenv("TINYTORCH_DATA")
    with pytest.raises(ValueError, match=r"Small needs a folder: pass root=.*TINYTORCH_DATA"):
        Small()


def test_the_users_home_in_a_root(tmp_path, monkeypatch) -> None:
    put(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Small("~").root == str(tmp_path)


def test_missing_files_are_named(tmp_path) -> None:
    raw = put(tmp_path)
    (raw / "t10k-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(RuntimeError, match=r"Dataset not found\. You can use download=True") as e:
        Small(tmp_path)
    for name in PACKED:
        assert name in str(e.value)
    assert str(raw) in str(e.value)


NAME = "train-images-idx3-ubyte"
WHOLE = idx(IMAGES)
LABEL_FILE = idx(LABELS)
CUT = PACKED[NAME + ".gz"]

MAGIC = "expected the magic number 0x00000803, found 0x"
SIZE = "expected 20x28x28 = 15680 bytes after the header, found "
HUGE = WHOLE[:4] + b"\xff" * 12 + WHOLE[16:]

DAMAGED = {
    "empty": (NAME, b"", "expected a header of 16 bytes, found 0"),
    "half a header": (NAME, WHOLE[:9], "expected a header of 16 bytes, found 9"),
    "magic": (NAME, b"\x1f\x8b" + WHOLE[2:], MAGIC + "1f8b0803"),
    "labels for images": (NAME, LABEL_FILE, MAGIC + "00000801"),
    "truncated": (NAME, WHOLE[:-1], SIZE + "at most 15679"),
    "too long": (NAME, WHOLE + b"\0", SIZE + "more"),
    "huge": (NAME, HUGE, "found at most 15680"),
    "gz, no gzip": (NAME + ".gz", WHOLE, "Not a gzipped file"),
    "gz, truncated": (NAME + ".gz", CUT[: len(CUT) // 2], "Compressed file ended before"),
    "gz, sum": (NAME + ".gz", CUT[:-8] + b"\0\0\0\0" + CUT[-4:], "CRC check failed"),
    "gz, bad block": (NAME + ".gz", CUT[:10] + b"\xff" * 20 + CUT[30:], "Error -3"),
    "gz, short inside": (NAME + ".gz", gzip.compress(WHOLE[:-5]), SIZE + "15675"),
    "gz, huge inside": (NAME + ".gz", gzip.compress(HUGE), "found at most"),
    "gz, long inside": (NAME + ".gz", gzip.compress(WHOLE + b"\0"), SIZE + "more"),
    "fewer labels": ("train-labels-idx1-ubyte", idx(LABELS[:-1]), "expected 20 labels, found 19"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_is_named_with_what_is_wrong(tmp_path, name: str) -> None:
    file, content, words = DAMAGED[name]
    raw = put(tmp_path)
    (raw / file).write_bytes(content)  # an unpacked file is preferred to the packed one beside it
    with pytest.raises(RuntimeError) as e:
        Small(tmp_path)
    message = str(e.value)
    assert words in message and f"{raw / file} is damaged: " in message
    assert "Delete it and use download=True" in message


def test_an_empty_dataset_is_no_damage(tmp_path) -> None:
    raw = put(tmp_path, packed=False)
    (raw / NAME).write_bytes(idx(IMAGES[:0]))
    (raw / "train-labels-idx1-ubyte").write_bytes(idx(LABELS[:0]))
    assert len(Small(tmp_path)) == 0


def test_a_file_that_may_not_be_read_is_not_called_damaged(tmp_path, monkeypatch) -> None:
    def refuse(path):
        raise PermissionError(errno.EACCES, "Permission denied", path)

    put(tmp_path)
    monkeypatch.setattr(vision, "_open", refuse)
    with pytest.raises(PermissionError):
        Small(tmp_path)


def test_a_folder_instead_of_a_file_is_a_missing_file(tmp_path) -> None:
    raw = put(tmp_path)
    (raw / f"{NAME}.gz").unlink()
    (raw / f"{NAME}.gz").mkdir()
    with pytest.raises(RuntimeError, match="Dataset not found"):
        Small(tmp_path)


# Samples -----------------------------------------------------------------------------------------


def test_a_sample_without_a_transform_is_a_pillow_image(tmp_path) -> None:
    pytest.importorskip("PIL")
    put(tmp_path)
    image, label = Small(tmp_path)[3]
    assert image.mode == "L" and image.size == (28, 28) and type(label) is int
    np.testing.assert_array_equal(np.asarray(image), IMAGES[3])
    assert label == LABELS[3]


def test_without_pillow_a_sample_needs_to_tensor(tmp_path, monkeypatch) -> None:
    put(tmp_path)
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match=r"Small is a Pillow image, and Pillow is not installed.*ToTensor\(\)"):
        Small(tmp_path)[0]
    image, _ = Small(tmp_path, transform=Compose([ToTensor(), Lambda(lambda x: x.flatten())]))[0]
    np.testing.assert_array_equal(image.numpy(), IMAGES[0].reshape(-1).astype(np.float32) / np.float32(255))


def test_transforms_of_image_and_label(tmp_path) -> None:
    put(tmp_path)
    dataset = Small(tmp_path, transform=ToTensor(), target_transform=lambda label: -label)
    image, label = dataset[-1]
    assert image.shape == (1, 28, 28) and label == -int(LABELS[-1])
    with pytest.raises(IndexError):
        dataset[20]


@needs_torchvision
def test_everything_is_torchvisions(tmp_path) -> None:
    put(tmp_path, packed=False, kind="FashionMNIST")
    theirs_to_tensor = torchvision.transforms.ToTensor()
    theirs_compose = torchvision.transforms.Compose
    pairs = [
        (None, None, None),
        (ToTensor(), theirs_to_tensor, None),
        (None, None, abs),
        (Compose([ToTensor()]), theirs_compose([theirs_to_tensor]), abs),
    ]
    for train in (True, False):
        for transform, their_transform, target_transform in pairs:
            ours = FashionMNIST(str(tmp_path), train, transform, target_transform)
            theirs = torchvision.datasets.FashionMNIST(str(tmp_path), train, their_transform, target_transform)
            assert repr(ours) == repr(theirs)
            assert len(ours) == len(theirs)
            assert plain(ours.data) == plain(theirs.data) and plain(ours.targets) == plain(theirs.targets)
            assert list(ours.classes) == theirs.classes and ours.class_to_idx == theirs.class_to_idx
            assert ours.raw_folder == theirs.raw_folder and ours.extra_repr() == theirs.extra_repr()
            for i in (0, 5, -1):
                (image, label), (their_image, their_label) = ours[i], theirs[i]
                assert type(label) is type(their_label) is int and label == their_label
                if transform is None:
                    assert image == their_image
                else:
                    assert plain(image) == plain(their_image)


@needs_torchvision
@pytest.mark.parametrize("kind", [MNIST, FashionMNIST, KMNIST])
def test_the_tables_are_torchvisions(kind) -> None:
    theirs = getattr(torchvision.datasets, kind.__name__)
    assert list(kind.resources) == theirs.resources
    assert list(kind.mirrors[: len(theirs.mirrors)]) == theirs.mirrors  # and others
    assert list(kind.classes) == theirs.classes


# Batches -----------------------------------------------------------------------------------------

TRANSFORMS = {
    "ToTensor": (ToTensor(), None),
    "Normalize": (Compose([ToTensor(), Normalize((0.286,), (0.353,))]), None),
    "then single images": (Compose([ToTensor(), Lambda(lambda x: x.reshape(-1)[:3])]), None),
    "labels": (ToTensor(), lambda label: float(label)),
    "both": (Compose([ToTensor(), Lambda(lambda x: x.sum())]), lambda label: label % 2),
    "from Pillow": (Compose([np.array, ToTensor()]), None),
}


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("shuffle", [False, True])
def test_batches_equal_collated_samples(tmp_path, name: str, shuffle: bool) -> None:
    put(tmp_path)
    dataset = Small(tmp_path, True, *TRANSFORMS[name])

    def batches(**options):
        tinytorch.manual_seed(0)
        return plain(list(DataLoader(dataset, batch_size=6, shuffle=shuffle, **options)))

    collate = tinytorch.utils.data.default_collate
    assert batches() == batches(collate_fn=lambda batch: collate(batch))


@needs_torchvision
def test_batches_of_torchvisions_transforms_and_datasets(tmp_path) -> None:
    put(tmp_path, packed=False, kind="FashionMNIST")
    theirs = torchvision.transforms
    transform = theirs.Compose([theirs.ToTensor(), theirs.Normalize((0.5,), (0.5,))])
    own = FashionMNIST(tmp_path, transform=Compose([ToTensor(), Normalize((0.5,), (0.5,))]))
    mixed = FashionMNIST(tmp_path, transform=transform)
    foreign = torchvision.datasets.FashionMNIST(tmp_path, transform=transform)
    expected = plain(list(torchvision.torch.utils.data.DataLoader(foreign, batch_size=7)))
    for dataset in (own, mixed, foreign):
        batches = list(DataLoader(dataset, batch_size=7))
        assert type(batches[0][0]) is tinytorch.Tensor and plain(batches) == expected


def test_whole_batches_do_not_touch_samples(tmp_path, monkeypatch) -> None:
    put(tmp_path)
    monkeypatch.setitem(sys.modules, "PIL", None)
    transform = Compose([ToTensor(), Normalize(0.5, 0.5)])
    dataset = Small(tmp_path, transform=transform)
    monkeypatch.setattr("tinytorch.data.vision.StandardTransform", None)  # every sample goes through it
    before = dataset.data.tolist()
    part, _ = random_split(dataset, [15, 5])
    for images, labels in DataLoader(part, batch_size=4):
        images.fill_(0.0)
        labels.fill_(0)
    assert dataset.data.tolist() == before and dataset.targets.tolist() == LABELS.tolist()


def test_a_subclass_with_its_own_samples_is_read_sample_by_sample(tmp_path) -> None:
    class Noisy(Small):
        @property
        def raw_folder(self):
            return os.path.join(self.root, "Small", "raw")

        def __getitem__(self, index):
            return 42

    put(tmp_path)
    assert next(iter(DataLoader(Noisy(tmp_path, transform=ToTensor()), 2))).tolist() == [42, 42]


REPLACED = {
    "targets, a list": lambda d: setattr(d, "targets", [1] * 20),
    "targets, floats": lambda d: setattr(d, "targets", d.targets.double()),
    "fewer samples": lambda d: (setattr(d, "data", d.data[:6]), setattr(d, "targets", d.targets[:6])),
    "floats as images": lambda d: setattr(d, "data", d.data.double()),
}


@pytest.mark.parametrize("name", REPLACED)
def test_data_and_targets_may_be_replaced(tmp_path, name: str) -> None:
    put(tmp_path)
    dataset = Small(tmp_path, transform=ToTensor())
    REPLACED[name](dataset)
    collate = tinytorch.utils.data.default_collate
    single = collate([dataset[i] for i in range(5)])
    (whole,) = [batch for batch, _ in zip(DataLoader(dataset, batch_size=5), [0], strict=False)]
    assert plain(whole) == plain(single) and single[1].dtype is tinytorch.int64


# Downloads ---------------------------------------------------------------------------------------


class Mirror(http.server.BaseHTTPRequestHandler):
    """Serves the files; /wrong ones, /short ones, the first one in a /slow way, or /none."""

    asked: list[str]

    def do_GET(self) -> None:
        type(self).asked.append(self.path)
        _, folder, name = self.path.split("/")
        data = PACKED[name]
        if folder == "none":
            return self.send_error(404)
        if folder == "wrong":
            data = data[:-1] + b"?"
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if folder == "slow" and name == f"{NAME}.gz":
            for start in range(0, 500, 100):
                self.wfile.write(data[start : start + 100])
                self.wfile.flush()
                time.sleep(0.5)
            data = data[500:]
        self.wfile.write(data[:-10] if folder == "short" else data)

    def log_message(self, *args) -> None:
        pass


@pytest.fixture
def mirror(monkeypatch):
    Mirror.asked = []
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Mirror) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def small(*mirrors: str) -> type[Small]:
    return type("Small", (Small,), {"mirrors": mirrors})


def listing(root: pathlib.Path) -> list[str]:
    return sorted(path.name for path in root.rglob("*") if path.is_file())


def test_a_download(tmp_path, mirror, capsys) -> None:
    dataset = small(f"{mirror}/files/")(tmp_path, download=True)
    np.testing.assert_array_equal(dataset.data.numpy(), IMAGES)
    assert listing(tmp_path) == sorted([*PACKED, *ARRAYS])
    for name, array in ARRAYS.items():
        assert (tmp_path / "Small" / "raw" / name).read_bytes() == idx(array)
    lines = capsys.readouterr().err.splitlines()  # (of bars, where the output is no terminal)
    assert [line.partition(":")[0] for line in lines] == [*PACKED] and all("B in 00:0" in line for line in lines)
    Mirror.asked.clear()
    small(f"{mirror}/files/")(tmp_path, download=True)
    assert Mirror.asked == []


@needs_torchvision
def test_torchvision_finds_what_was_downloaded(tmp_path, mirror) -> None:
    kind = type("FashionMNIST", (Small,), {"mirrors": (f"{mirror}/files/",)})
    kind(tmp_path, download=True)
    assert len(torchvision.datasets.FashionMNIST(tmp_path, train=False)) == 8


@pytest.mark.parametrize("folder", ["none", "wrong", "short"])
def test_the_next_mirror_is_tried(tmp_path, mirror, folder: str) -> None:
    dataset = small(f"{mirror}/{folder}/", f"{mirror}/files/")(tmp_path, download=True)
    assert len(dataset) == 20 and listing(tmp_path) == sorted([*PACKED, *ARRAYS])
    name = "train-images-idx3-ubyte.gz"
    assert Mirror.asked[:2] == [f"/{folder}/{name}", f"/files/{name}"]


FAILURES = {"none": "HTTP Error 404", "wrong": "expected the MD5 sum", "short": "expected the MD5 sum"}


@pytest.mark.parametrize("folder", FAILURES)
def test_nothing_half_written_stays(tmp_path, mirror, folder: str) -> None:
    with pytest.raises(RuntimeError, match=r"Error downloading train-images-idx3-ubyte\.gz") as e:
        small(f"{mirror}/{folder}/")(tmp_path, download=True)
    assert f"Tried {mirror}/{folder}/, got:" in str(e.value) and FAILURES[folder] in str(e.value)
    assert listing(tmp_path) == []


def test_without_a_network_the_error_says_what_to_do_by_hand(tmp_path, mirror) -> None:
    nobody = "http://127.0.0.1:9/"  # the discard port: no one listens
    with pytest.raises(RuntimeError, match="Without a network, put these files") as e:
        small(nobody)(tmp_path, download=True)
    assert all(name in str(e.value) for name in PACKED)
    assert str(tmp_path / "Small" / "raw") in str(e.value) and nobody in str(e.value)


def test_a_mirror_that_failed_is_asked_last(tmp_path, mirror) -> None:
    small(f"{mirror}/none/", f"{mirror}/files/")(tmp_path, download=True)
    assert Mirror.asked == [f"/none/{NAME}.gz", *(f"/files/{name}" for name in PACKED)]


@pytest.fixture
def silent(monkeypatch):
    """An address where connections are taken and never answered."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/"


def test_mirrors_that_do_not_answer_are_given_up(tmp_path, silent, monkeypatch) -> None:
    monkeypatch.setattr(vision, "WAIT", 0.3)
    with pytest.raises(RuntimeError) as e:
        small(silent, silent + "too/")(tmp_path, download=True)
    assert f"Tried {silent}, got:\nno answer within 0.2 seconds" in str(e.value)
    assert re.search(f"Tried {silent}too/, got:\nno answer within 0.[01]", str(e.value))
    assert not (tmp_path / "Small").exists()


def test_a_name_server_that_does_not_answer_is_given_up(tmp_path, monkeypatch) -> None:
    end = threading.Event()

    def ask(*args, **options):
        end.wait(60)
        raise OSError("too late")

    monkeypatch.setattr(vision, "WAIT", 0.2)
    monkeypatch.setattr(socket, "getaddrinfo", ask)
    try:
        with pytest.raises(RuntimeError, match=r"no answer within 0\.2 seconds"):
            small("http://tinytorch.invalid/")(tmp_path, download=True)
    finally:
        end.set()


def test_an_answer_that_comes_too_late_is_closed(tmp_path, monkeypatch) -> None:
    import urllib.request

    closed, begin = threading.Event(), threading.Event()

    class Late:
        peek = staticmethod(lambda size: b"x")
        close = staticmethod(closed.set)

    def late(request, timeout):
        begin.wait(60)
        return Late()

    monkeypatch.setattr(vision, "WAIT", 0.1)
    monkeypatch.setattr(urllib.request, "urlopen", late)
    with pytest.raises(RuntimeError, match=r"no answer within 0\.1 seconds"):
        small("http://127.0.0.1/")(tmp_path, download=True)
    begin.set()
    assert closed.wait(60)


def test_a_time_out_of_the_connection_is_told_as_it_is(tmp_path, monkeypatch) -> None:
    import urllib.request

    def fail(request, timeout):
        raise TimeoutError(errno.ETIMEDOUT, "Connection timed out")

    monkeypatch.setattr(urllib.request, "urlopen", fail)
    with pytest.raises(RuntimeError, match="Connection timed out"):
        small("http://127.0.0.1/")(tmp_path, download=True)


def test_a_slow_download_has_its_time(tmp_path, mirror, monkeypatch) -> None:
    """What bounds the wait for an answer does not bound the answer."""
    monkeypatch.setattr(vision, "WAIT", 2.0)
    dataset = small(f"{mirror}/slow/")(tmp_path, download=True)
    np.testing.assert_array_equal(dataset.data.numpy(), IMAGES)


def test_ctrl_c_leaves_nothing_behind(tmp_path, mirror, monkeypatch) -> None:
    class Interrupted:
        """A checksum that is interrupted at the first bytes."""

        def update(self, chunk) -> None:
            raise KeyboardInterrupt

    monkeypatch.setattr(vision, "_md5", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        small(f"{mirror}/files/")(tmp_path, download=True)
    assert listing(tmp_path) == []


def test_an_answer_that_breaks_off_is_reported(tmp_path, monkeypatch) -> None:
    import http.client
    import urllib.request

    def broken(request, timeout):
        raise http.client.IncompleteRead(b"half")

    monkeypatch.setattr(urllib.request, "urlopen", broken)
    with pytest.raises(RuntimeError, match="the answer broke off: IncompleteRead"):
        small("http://127.0.0.1/")(tmp_path, download=True)


def test_files_that_lie_there_are_not_fetched_again(tmp_path, mirror) -> None:
    raw = put(tmp_path)
    (raw / "t10k-labels-idx1-ubyte.gz").unlink()
    small(f"{mirror}/files/")(tmp_path, download=True)
    assert Mirror.asked == ["/files/t10k-labels-idx1-ubyte.gz"]


def test_a_packed_file_with_a_wrong_sum_is_fetched_again(tmp_path, mirror) -> None:
    raw = put(tmp_path)
    (raw / f"{NAME}.gz").write_bytes(b"damaged")
    dataset = small(f"{mirror}/files/")(tmp_path, download=True)
    assert Mirror.asked == [f"/files/{NAME}.gz"]
    np.testing.assert_array_equal(dataset.data.numpy(), IMAGES)


# The real thing ---------------------------------------------------------------------------------


ROOT = os.environ.get("TINYTORCH_DATA", "")


@pytest.mark.skipif(
    not os.path.isdir(os.path.join(ROOT, "FashionMNIST", "raw")),
    reason="TINYTORCH_DATA names no folder with FashionMNIST",
)
def test_fashion_mnist_itself() -> None:
    train, test = FashionMNIST(train=True, transform=ToTensor()), FashionMNIST(train=False)
    assert train.data.shape == (60000, 28, 28) and test.data.shape == (10000, 28, 28)
    assert np.bincount(train.targets.numpy()).tolist() == [6000] * 10
    assert train.targets[:5].tolist() == [9, 0, 0, 3, 0] and test.targets[:5].tolist() == [9, 2, 1, 1, 6]
    total = 0.0
    for images, labels in DataLoader(train, batch_size=64, shuffle=True):
        assert images.shape[1:] == (1, 28, 28) and len(images) == len(labels)
        total += float(images.double().sum().item())
    assert abs(total / train.data.numel() - 0.2860405969887955) < 1e-7  # the published mean


@pytest.fixture(autouse=True)
def _no_default_root(monkeypatch, request):
    """Keep the tests of small files away from a default root."""
    with contextlib.suppress(KeyError):
        if request.function is not test_fashion_mnist_itself:
            monkeypatch.delenv("TINYTORCH_DATA")
