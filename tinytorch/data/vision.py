"""Image datasets with torchvision's names and files: `FashionMNIST`, `MNIST`, `KMNIST`; `datasets` has others.

`Pictures` is the base class of image datasets in memory. MNIST, FashionMNIST and KMNIST consist of four files, images
and labels for training and test, in the idx format: a magic number (two zero bytes, the element type, the number of
dimensions), the sizes as big-endian 32-bit integers, and the bytes.
"""

from __future__ import annotations

import io
import math
import os
import re
import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from tinytorch._atomic import replacing
from tinytorch.core.supplied import inspect
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.data.collate import default_collate
from tinytorch.data.dataset import Dataset, positions, rows
from tinytorch.data.images import pillow
from tinytorch.data.transforms import Compose, split

__all__ = ["KMNIST", "MNIST", "FashionMNIST", "VisionDataset"]

ROOT_VARIABLE = "TINYTORCH_DATA"  # the environment variable that names the default root
CHUNK = 1 << 20  # bytes read at a time
WAIT = 9.0  # seconds to wait for a first answer, from all mirrors of a file together
TIMEOUT = 30  # seconds without data after which a download fails


class StandardTransform:
    """A transform of images and a transform of labels, combined into one of samples."""

    def __init__(
        self, transform: Callable[[Any], Any] | None = None, target_transform: Callable[[Any], Any] | None = None
    ) -> None:
        self.transform, self.target_transform = transform, target_transform

    def __call__(self, input: Any, target: Any) -> tuple[Any, Any]:
        """Return the transformed image and label."""
        input = input if self.transform is None else self.transform(input)
        return input, target if self.target_transform is None else self.target_transform(target)

    def __repr__(self) -> str:
        heads = {"Transform: ": self.transform, "Target transform: ": self.target_transform}
        lines = [
            head + repr(transform).replace("\n", "\n" + " " * len(head))
            for head, transform in heads.items()
            if transform is not None
        ]
        return "\n".join([type(self).__name__, *lines])


class VisionDataset(Dataset[Any]):
    """Base class of image datasets. Subclasses implement `__getitem__` and `__len__`.

    Args:
        root: the folder of the files.
        transforms: maps (image, label) to a sample.
        transform: maps an image to the first element of a sample.
        target_transform: maps a label to the second element of a sample.
    """

    root: Any
    transform: Callable[[Any], Any] | None
    target_transform: Callable[[Any], Any] | None

    def __init__(
        self,
        root: Any = None,
        transforms: Callable[[Any, Any], Any] | None = None,
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[Any], Any] | None = None,
    ) -> None:
        self.root = os.path.expanduser(root) if isinstance(root, str) else root
        self.transform, self.target_transform = transform, target_transform
        single = transform is not None or target_transform is not None
        if transforms is not None and single:
            raise ValueError("Only transforms or transform/target_transform can be passed as argument")
        self.transforms = StandardTransform(transform, target_transform) if single else transforms

    def extra_repr(self) -> str:
        """Return additional lines of `repr`."""
        return ""

    def __repr__(self) -> str:
        body = [f"Number of datapoints: {len(self)}"]  # type: ignore[arg-type]
        if self.root is not None:
            body.append(f"Root location: {self.root}")
        body += self.extra_repr().splitlines()
        if self.transforms is not None:
            body.append(repr(self.transforms))
        return "\n".join([f"Dataset {type(self).__name__}", *("    " + line for line in body)])


class Pictures(VisionDataset):
    """Base class of image datasets in memory, which implements samples and batches.

    A subclass sets the attributes of `MNIST`, `train`, `transform` and `target_transform`. Either `data` is a tensor
    (N, H, W) and `targets` a tensor, or `data` is an array (N, H, W, C) and `targets` a list.
    """

    classes: Sequence[str]
    data: Any
    targets: Any
    train: bool

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        picture, target = self.data[index], int(self.targets[index])
        array = picture.numpy() if isinstance(picture, Tensor) else picture
        batched, single = split(self.transform)
        if batched:  # the first steps take arrays: Pillow is not needed
            batch: Any = Compose(batched)(array[None])
            image: Any = batch[0]
        else:
            image = _pillow_image(array, type(self).__name__)
        return StandardTransform(Compose(single), self.target_transform)(image, target)

    def __getbatch__(self, indices: Sequence[int]) -> Any:
        batched, single = split(self.transform)
        selection = positions(indices, len(self))
        if not batched or selection is None or not self._has_expected_types():
            return NotImplemented
        if isinstance(self.targets, Tensor):
            pictures = self.data.numpy()
            targets = rows(self.targets.numpy(), selection).astype(np.int64, copy=False)  # (B,)
        else:
            pictures, targets = self.data, np.array([self.targets[index] for index in indices], np.int64)
        images: Any = Compose(batched)(pictures[selection])  # (B, H, W) or (B, H, W, C) -> (B, C, H, W)
        if not single and self.target_transform is None:
            return [images, wrap(targets)]
        finish = StandardTransform(Compose(single), self.target_transform)
        return default_collate(list(map(finish, images, targets.tolist())))

    def _has_expected_types(self) -> bool:
        """Return whether `data` and `targets`, which users may replace, are still tensors, or array and list."""
        if isinstance(self.data, Tensor) and isinstance(self.targets, Tensor):
            return bool(self.targets.shape == self.data.shape[:1])
        arrays = isinstance(self.data, np.ndarray) and isinstance(self.targets, list)
        return arrays and len(self.targets) == len(self.data)

    def __len__(self) -> int:
        return len(self.data)

    @property
    def class_to_idx(self) -> dict[str, int]:
        """The label of each class name."""
        return {name: i for i, name in enumerate(self.classes)}

    def extra_repr(self) -> str:
        """Return the line of `repr` with the split."""
        return f"Split: {'Train' if self.train is True else 'Test'}"


class DownloadError(RuntimeError):
    """A file could not be downloaded from any mirror.

    Attributes:
        failures: (mirror, reason), in the order of the attempts.
        found: the paths of the files of the dataset that exist.
        brief: the message in a line of at most 100 characters.
    """

    def __init__(self, message: str, failures: Sequence[tuple[str, str]], found: Sequence[str]) -> None:
        super().__init__(message)
        self.failures = failures
        self.found = found
        reasons = dict.fromkeys(re.sub(r"^<urlopen error |\[Errno -?\d+\] |>$", "", why) for _, why in failures)
        line = f"{message.splitlines()[0]} {'; '.join(reasons)}"
        self.brief = line if len(line) <= 100 else f"{line[:98].rpartition(' ')[0]} …"


class MNIST(Pictures):
    """Handwritten digits (LeCun et al.): 60,000 training and 10,000 test images of 28×28 bytes.

    A sample is (image, label): a Pillow image, or the result of `transform`, and an int. In a
    `DataLoader` with `transform=ToTensor()` (or `Compose([ToTensor(), Normalize(...)])`) a batch is
    computed at once, directly from the bytes, without Pillow.

    Args:
        root: the folder that contains the files, in `<root>/MNIST/raw`, unpacked or as .gz; by
            default the value of the environment variable TINYTORCH_DATA.

    Attributes:
        data: the images, a uint8 tensor (N, 28, 28).
        targets: the labels, an int64 tensor (N,).

    Raises:
        RuntimeError: files are missing, damaged, or cannot be downloaded.
        ValueError: neither `root` nor TINYTORCH_DATA is set.

    Example:
        >>> from tinytorch.data import DataLoader
        >>> from tinytorch.data.transforms import ToTensor
        >>> digits = MNIST("data", transform=ToTensor(), download=True)  # doctest: +SKIP
        >>> images, labels = next(iter(DataLoader(digits, batch_size=64)))  # doctest: +SKIP
        >>> images.shape, labels.shape  # doctest: +SKIP
        (torch.Size([64, 1, 28, 28]), torch.Size([64]))
    """

    mirrors: ClassVar[Sequence[str]] = (
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "http://yann.lecun.com/exdb/mnist/",
    )
    #: The names of the files and their MD5 sums: training and test, images and labels.
    resources: ClassVar[Sequence[tuple[str, str]]] = (
        ("train-images-idx3-ubyte.gz", "f68b3c2dcbeaaa9fbdd348bbdeb94873"),
        ("train-labels-idx1-ubyte.gz", "d53e105ee54ea40749a09fcbcd1e9432"),
        ("t10k-images-idx3-ubyte.gz", "9fb629c4189551a2d022fa330f9573f3"),
        ("t10k-labels-idx1-ubyte.gz", "ec29112dd5afa0611ce80d1b7f02629c"),
    )
    classes: Sequence[str] = (
        "0 - zero", "1 - one", "2 - two", "3 - three", "4 - four",
        "5 - five", "6 - six", "7 - seven", "8 - eight", "9 - nine",
    )  # fmt: skip
    root: str | os.PathLike[str]

    def __init__(
        self,
        root: str | os.PathLike[str] | None = None,
        train: bool = True,
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[Any], Any] | None = None,
        download: bool = False,
    ) -> None:
        if root is None:
            root = os.environ.get(ROOT_VARIABLE)
            if not root:
                raise ValueError(
                    f"{type(self).__name__} needs a folder: "
                    f"pass root=..., or set the environment variable {ROOT_VARIABLE}"
                )
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.train = train
        if download:
            self.download()
        self.data, self.targets = self._load()

    # The files ------------------------------------------------------------------------------------

    @property
    def raw_folder(self) -> str:
        """The folder of the four files."""
        return os.path.join(self.root, type(self).__name__, "raw")

    def download(self) -> None:
        """Download missing files, verify their checksums, and unpack them.

        A file gets its name only when it is complete, so an interrupted download leaves nothing behind.

        A mirror that fails is tried last for the next file. If no mirror answers, the attempt ends after
        ten seconds; a mirror that answers may take longer.

        Raises:
            DownloadError: a RuntimeError; no mirror returned a file with the right checksum.
        """
        mirrors = list(self.mirrors)
        for name, md5 in self.resources:
            packed = os.path.join(self.raw_folder, name)
            unpacked = packed.removesuffix(".gz")
            path = _existing_path(packed)
            if path == unpacked or (path == packed and _md5_of(packed) == md5):
                continue
            self._fetch(packed, md5, mirrors)
            # Unpacked files load ten times as fast, and torchvision requires them.
            with replacing(unpacked) as file, _open(packed) as stream:
                while chunk := stream.read(CHUNK):
                    file.write(chunk)

    def _fetch(self, path: str, md5: str, mirrors: list[str]) -> None:
        """Download a file from the first mirror that succeeds; move mirrors that fail to the end of `mirrors`."""
        name = os.path.basename(path)
        failures, remaining = [], WAIT
        for attempt, mirror in enumerate(tuple(mirrors), 1):
            # The first mirror gets most of the time, enough for a failing name server.
            allowed = remaining if attempt == len(mirrors) else remaining * 2 / 3
            start = time.monotonic()
            try:
                return _download(mirror + name, path, md5, allowed)
            except (OSError, RuntimeError, ValueError) as error:
                failures.append((mirror, str(error)))
            remaining -= min(time.monotonic() - start, allowed)
            mirrors.append(mirrors.pop(0))
        attempts = (f"Tried {mirror}, got:\n{reason}" for mirror, reason in failures)
        message = "\n".join([f"Error downloading {name}:", *attempts, self._manual_instructions()])
        raise DownloadError(message, failures, self._present_files())

    def _present_files(self) -> list[str]:
        """Return the paths of the files that exist, in the order of `resources`."""
        paths = (os.path.join(self.raw_folder, name) for name, _ in self.resources)
        return [path for packed in paths if (path := _existing_path(packed))]

    def _manual_instructions(self) -> str:
        names = ", ".join(name for name, _ in self.resources)
        return f"Without a network, put these files, packed or unpacked, into {self.raw_folder}: {names}"

    def _load(self) -> tuple[Tensor, Tensor]:
        """Return the images and labels of this split."""
        paths = self._present_files()
        if len(paths) < len(self.resources):
            instructions = self._manual_instructions()
            raise RuntimeError(f"Dataset not found. You can use download=True to download it. {instructions}")
        image_path, label_path = paths[:2] if self.train else paths[2:]
        images = read_idx(image_path, ndim=3)
        labels = read_idx(label_path, ndim=1)
        if len(images) != len(labels):
            raise _damaged(label_path, f"expected {len(images)} labels, found {len(labels)}")
        return wrap(images), wrap(labels.astype(np.int64))


class FashionMNIST(MNIST):
    """Photographs of clothes (Xiao et al.): 60,000 training and 10,000 test images of 28×28 bytes.

    Arguments, attributes and errors are those of `MNIST`; the files are in `<root>/FashionMNIST/raw`.
    """

    mirrors = (
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
        "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",
    )
    resources = (
        ("train-images-idx3-ubyte.gz", "8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
        ("train-labels-idx1-ubyte.gz", "25c81989df183df01b3e8a0aad5dffbe"),
        ("t10k-images-idx3-ubyte.gz", "bef4ecab320f06d8554ea6380940ec79"),
        ("t10k-labels-idx1-ubyte.gz", "bb300cfdad3c16e7a12a480ee83cd310"),
    )
    classes = ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")


class KMNIST(MNIST):
    """Handwritten kana (Clanuwat et al.): 60,000 training and 10,000 test images of 28×28 bytes.

    Arguments, attributes and errors are those of `MNIST`; the files are in `<root>/KMNIST/raw`.
    """

    mirrors = ("http://codh.rois.ac.jp/kmnist/dataset/kmnist/",)
    resources = (
        ("train-images-idx3-ubyte.gz", "bdb82020997e1d708af4cf47b453dcf7"),
        ("train-labels-idx1-ubyte.gz", "e144d726b3acfaa3e44228e80efcd344"),
        ("t10k-images-idx3-ubyte.gz", "5c965bf0a639b31b8f53240b1b52f4d7"),
        ("t10k-labels-idx1-ubyte.gz", "7320c461ea6c1c855c0b718fb2a4b134"),
    )
    classes = ("o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo")


def _pillow_image(array: np.ndarray[Any, Any], dataset: str) -> Any:
    """Return an array (H, W) or (H, W, 3) of bytes as a Pillow image."""
    remedy = ", or pass a transform that begins with tinytorch.data.transforms.ToTensor(), which needs no Pillow"
    return pillow(f"a sample of {dataset} is a Pillow image", remedy).fromarray(array)


# The idx format -----------------------------------------------------------------------------------


def _existing_path(packed: str) -> str | None:
    """Return the path of a file, unpacked or packed, or None if neither exists."""
    return next(filter(os.path.isfile, (packed.removesuffix(".gz"), packed)), None)


def read_idx(path: str, ndim: int) -> np.ndarray[Any, Any]:
    """Return the uint8 array of `ndim` dimensions in an idx file, plain or (.gz) compressed."""
    from zlib import error as BadDeflate  # imported lazily

    try:
        with _open(path) as stream:
            return _parse_idx(stream, path, ndim)
    except (EOFError, OSError, BadDeflate) as error:
        # gzip's BadGzipFile is an OSError without errno; errors of the system (such as no permission) have one.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise _damaged(path, str(error)) from error


def _parse_idx(stream: io.BufferedIOBase, path: str, ndim: int) -> np.ndarray[Any, Any]:
    header_size = 4 + 4 * ndim
    header = stream.read(header_size)
    if len(header) < header_size:
        raise _damaged(path, f"expected a header of {header_size} bytes, found {len(header)}")
    magic, *shape = np.frombuffer(header, ">u4").tolist()
    expected = 0x0800 + ndim  # 08: unsigned bytes
    if magic != expected:
        raise _damaged(path, f"expected the magic number 0x{expected:08x}, found 0x{magic:08x}")
    count = math.prod(shape)
    expectation = f"expected {'x'.join(map(str, shape))} = {count} bytes after the header"
    # Deflate compresses by a factor of at most 1032: do not allocate an array that the file cannot fill.
    size = os.path.getsize(path)
    limit = size * 1032 if path.endswith(".gz") else size - header_size
    if count > limit:
        raise _damaged(path, f"{expectation}, found at most {limit}")
    array = np.empty(shape, np.uint8)
    view = array.reshape(-1).data
    done = 0
    while done < count and (size := stream.readinto(view[done : done + CHUNK])):
        done += size
    if done < count:
        raise _damaged(path, f"{expectation}, found {done}")
    if stream.read(1):  # reading past the end also makes gzip verify its checksum
        raise _damaged(path, f"{expectation}, found more")
    return array


def _damaged(path: str, what: str) -> RuntimeError:
    remedy = "Delete it and use download=True to fetch it again"
    return RuntimeError(f"{path} is damaged: {what}. {remedy}")


def _open(path: str) -> io.BufferedIOBase:
    if path.endswith(".gz"):
        import gzip  # imported lazily

        return gzip.open(path, "rb")
    return open(path, "rb")


# Downloads ----------------------------------------------------------------------------------------


def _download(url: str, path: str, md5: str, seconds: float) -> None:
    """Download `url` to `path`, if its MD5 sum is right; raise OSError if there is no answer for `seconds` seconds."""
    # Imported lazily.
    from http.client import HTTPException

    digest, received = _md5(), 0
    try:
        with _answer(url, seconds) as response:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with (
                replacing(path) as file,
                inspect.progress(
                    total=getattr(response, "length", None),
                    unit="B",
                    unit_scale=True,
                    desc=os.path.basename(path),
                    leave=True,
                ) as bar,
            ):
                while chunk := response.read(CHUNK // 16):
                    file.write(chunk)
                    digest.update(chunk)
                    received += len(chunk)
                    bar.update(len(chunk))
                if digest.hexdigest() != md5:
                    raise RuntimeError(f"expected the MD5 sum {md5}, found {digest.hexdigest()} of {received} bytes")
    except HTTPException as error:
        raise RuntimeError(f"the answer broke off: {error!r}") from error


def _answer(url: str, seconds: float) -> Any:
    """Return the open response of `url`, once its first byte has arrived.

    A socket's timeout does not bound the total time: it restarts for every address of a host and every step, and does
    not include the resolution of names. So the request runs in a thread, which is abandoned after `seconds` seconds.
    """
    from concurrent.futures import Future
    from threading import Thread
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    answer: Future[Any] = Future()

    def request_in_thread() -> None:
        response, problem = None, None
        try:
            request = Request(url, headers={"User-Agent": "tinytorch"})
            response = urlopen(request, timeout=TIMEOUT)
            response.peek(1)
        except BaseException as error:
            problem = error
            if isinstance(error, HTTPError):
                error.close()  # the error holds the connection
        in_time = answer.set_running_or_notify_cancel()
        if response is not None and not (in_time and problem is None):
            response.close()
        if in_time and problem is not None:
            answer.set_exception(problem)
        elif in_time:
            answer.set_result(response)

    Thread(target=request_in_thread, daemon=True).start()  # a daemon does not keep the program from exiting
    try:
        return answer.result(seconds)
    except TimeoutError as error:
        if answer.cancel():
            raise TimeoutError(f"no answer within {seconds:.3g} seconds") from error
        return answer.result()  # the answer arrived just now, or the TimeoutError is the connection's


def _md5() -> Any:
    import hashlib  # imported lazily

    # A checksum against accidental damage, which is permitted where MD5 is forbidden for cryptography.
    return hashlib.md5(usedforsecurity=False)


def _md5_of(path: str) -> str:
    import hashlib

    with open(path, "rb") as file:
        return hashlib.file_digest(file, _md5).hexdigest()
