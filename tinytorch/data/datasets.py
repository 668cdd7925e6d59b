"""More image datasets with torchvision's names and files: CIFAR, EMNIST, image folders, and random noise."""

from __future__ import annotations

import os
import shutil
import string
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, cast

import numpy as np

from tinytorch._atomic import replacing
from tinytorch.core.tensor import Tensor
from tinytorch.data.images import pillow, to_pil_image
from tinytorch.data.vision import MNIST, WAIT, Pictures, StandardTransform, VisionDataset, _download, _md5_of
from tinytorch.ops.random import Generator, randint, randn

__all__ = ["CIFAR10", "CIFAR100", "EMNIST", "DatasetFolder", "FakeData", "ImageFolder"]

Function = Callable[[Any], Any]


class CIFAR10(Pictures):
    """Photographs of ten classes (Krizhevsky): 50,000 training and 10,000 test colour images of 32×32 pixels.

    A sample is (image, label): a Pillow image, or the result of `transform`, and an int. With a transform that
    starts with `ToTensor`, a `DataLoader` computes batches directly from the bytes.

    Args:
        root: the folder that contains the folder of the files, `cifar-10-batches-py`.

    Attributes:
        data: the images, a uint8 array (N, 32, 32, 3).
    """

    base_folder = "cifar-10-batches-py"
    url = "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz"
    tgz_md5 = "c58f30108f718f92721af3b95e74349a"
    train_list: ClassVar[Sequence[Sequence[str]]] = (
        ("data_batch_1", "c99cafc152244af753f735de768cd75f"),
        ("data_batch_2", "d4bba439e000b95fd0a9bffe97cbabec"),
        ("data_batch_3", "54ebc095f3ab1f0389bbae665268c751"),
        ("data_batch_4", "634d18415352ddfa80567beed471001a"),
        ("data_batch_5", "482c414d41f54cd18b22e5b47cb7c3cb"),
    )
    test_list: ClassVar[Sequence[Sequence[str]]] = (("test_batch", "40351d587109b95175f43aff81a1287e"),)
    meta: ClassVar[dict[str, str]] = {
        "filename": "batches.meta", "key": "label_names", "md5": "5ff9c542aee3614f3951f8cda6e48888",
    }  # fmt: skip

    def __init__(
        self,
        root: str | os.PathLike[str],
        train: bool = True,
        transform: Function | None = None,
        target_transform: Function | None = None,
        download: bool = False,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.train = train
        if download:
            self.download()
        if self._missing_or_damaged():
            raise RuntimeError("Dataset not found or corrupted. You can use download=True to download it")
        parts = [self._read(name) for name, _ in (self.train_list if train else self.test_list)]
        self.data = np.concatenate([part["data"] for part in parts]).reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        self.targets = [label for part in parts for label in part.get("labels") or part["fine_labels"]]
        self.classes = self._read(self.meta["filename"])[self.meta["key"]]

    def _path(self, name: str) -> str:
        return os.path.join(self.root, self.base_folder, name)

    def _read(self, name: str) -> Any:
        import pickle

        with open(self._path(name), "rb") as file:  # its checksum has been verified
            return pickle.load(file, encoding="latin1")

    def _missing_or_damaged(self) -> list[str]:
        files = [*self.train_list, *self.test_list, (self.meta["filename"], self.meta["md5"])]
        return [
            name for name, md5 in files if not os.path.isfile(self._path(name)) or _md5_of(self._path(name)) != md5
        ]  # fmt: skip

    def download(self) -> None:
        """Download the archive if files are missing, verify its checksum, and unpack these files.

        Raises:
            RuntimeError: the download failed, or the checksum is wrong.
        """
        import tarfile

        wrong = self._missing_or_damaged()
        if not wrong:
            return
        archive = os.path.join(self.root, os.path.basename(self.url))
        _ensure_download(self.url, archive, self.tgz_md5)
        os.makedirs(self._path(""), exist_ok=True)
        with tarfile.open(archive) as tar:
            for name in wrong:
                stream = cast(Any, tar.extractfile(f"{self.base_folder}/{name}"))
                with replacing(self._path(name)) as file:
                    shutil.copyfileobj(stream, file)


class CIFAR100(CIFAR10):
    """Photographs of a hundred classes; arguments, attributes and errors are those of `CIFAR10`."""

    base_folder = "cifar-100-python"
    url = "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz"
    tgz_md5 = "eb9058c3a382ffc7106e4002c42a8d85"
    train_list = (("train", "16019d7e3df5f24257cddd939b257f8d"),)
    test_list = (("test", "f0ef6b0ae62326f3e7ffdfab6717acfc"),)
    meta: ClassVar[dict[str, str]] = {
        "filename": "meta", "key": "fine_label_names", "md5": "7973b15100ade9c7d40fb424638fde48",
    }  # fmt: skip


def _ensure_download(url: str, path: str, md5: str) -> None:
    """Download a file unless it exists with the right MD5 sum."""
    if os.path.isfile(path) and _md5_of(path) == md5:
        return
    try:
        _download(url, path, md5, WAIT)
    except (OSError, RuntimeError, ValueError) as error:
        raise RuntimeError(f"Error downloading {url}: {error}. Without a network, put it at {path}") from error


class EMNIST(MNIST):
    """Handwritten letters and digits (Cohen et al.), transposed images of 28×28 bytes.

    The files are in `<root>/EMNIST/raw`.

    Args:
        split: one of six sets: "byclass", "bymerge", "balanced", "letters", "digits" or "mnist".

    Raises:
        RuntimeError: files are missing, damaged, or cannot be downloaded.
    """

    url = "https://biometrics.nist.gov/cs_links/EMNIST/gzip.zip"
    md5 = "58c8d27c78d21e728a6bc7b3cc06412e"
    splits = ("byclass", "bymerge", "balanced", "letters", "digits", "mnist")
    _MERGED = frozenset("cijklmopsuvwxyz")  # lower-case letters that look like upper-case ones

    def __init__(self, root: Any, split: str, **kwargs: Any) -> None:
        if split not in self.splits:
            raise ValueError(
                f"Unknown value '{split}' for argument split. Valid values are {{{', '.join(map(repr, self.splits))}}}."
            )
        self.split = split
        self.resources = [  # type: ignore[misc]
            (f"emnist-{split}-{part}-{kind}-ubyte.gz", "")
            for part in ("train", "test")
            for kind in ("images-idx3", "labels-idx1")
        ]
        super().__init__(root, **kwargs)
        characters = sorted(string.digits + string.ascii_letters)
        letters = ["N/A", *string.ascii_lowercase]
        merged = [character for character in characters if character not in self._MERGED]
        classes = {"byclass": characters, "bymerge": merged, "balanced": merged, "letters": letters}
        self.classes = classes.get(split, list(string.digits))

    def download(self) -> None:
        """Download the archive if files of the split are missing, verify its checksum, and unpack them."""
        import gzip
        import zipfile

        if len(self._present_files()) == len(self.resources):
            return
        archive = os.path.join(self.raw_folder, os.path.basename(self.url))
        _ensure_download(self.url, archive, self.md5)
        with zipfile.ZipFile(archive) as packed:
            for name, _ in self.resources:
                with (
                    packed.open(f"gzip/{name}") as member,
                    gzip.open(member) as stream,
                    replacing(os.path.join(self.raw_folder, name.removesuffix(".gz"))) as file,
                ):
                    shutil.copyfileobj(stream, file)


class FakeData(VisionDataset):
    """Random images with random labels for testing, reproducible at every index.

    Args:
        image_size: (channels, height, width).
        target_transform: maps a label, a 0-d tensor, to another.
        random_offset: added to the index to get the seed of a sample.
    """

    def __init__(
        self,
        size: int = 1000,
        image_size: tuple[int, int, int] = (3, 224, 224),
        num_classes: int = 10,
        transform: Function | None = None,
        target_transform: Function | None = None,
        random_offset: int = 0,
    ) -> None:
        super().__init__(transform=transform, target_transform=target_transform)
        self.size, self.image_size, self.num_classes, self.random_offset = size, image_size, num_classes, random_offset

    def __getitem__(self, index: int) -> tuple[Any, int]:
        if index >= len(self):
            raise IndexError(f"{type(self).__name__} index out of range")
        generator = Generator().manual_seed(index + self.random_offset)
        image = to_pil_image(randn(*self.image_size, generator=generator))
        target: Any = randint(0, self.num_classes, (1,), generator=generator)[0]
        image, target = StandardTransform(self.transform, self.target_transform)(image, target)
        return image, int(target.item() if isinstance(target, Tensor) else target)

    def __len__(self) -> int:
        return self.size


# Folders ------------------------------------------------------------------------------------------

IMG_EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")


def default_loader(path: str) -> Any:
    """Return an image file as a Pillow image in RGB."""
    with open(path, "rb") as file:
        return pillow("images of files are read by Pillow").open(file).convert("RGB")


class DatasetFolder(VisionDataset):
    """Samples in one folder per class: `<root>/<class>/…/<file>`.

    Args:
        loader: maps the path of a file to a sample.

    Attributes:
        samples: a list of (path, label).
        targets: the labels.

    Raises:
        FileNotFoundError: there are no folders, or a class has no valid files.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        loader: Callable[[str], Any],
        extensions: Sequence[str] | str | None = None,
        transform: Function | None = None,
        target_transform: Function | None = None,
        is_valid_file: Callable[[str], bool] | None = None,
        allow_empty: bool = False,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.loader, self.extensions = loader, extensions
        self.classes, self.class_to_idx = self.find_classes(self.root)
        self.samples = self.make_dataset(self.root, self.class_to_idx, extensions, is_valid_file, allow_empty)
        self.targets = [target for _, target in self.samples]

    def find_classes(self, directory: Any) -> tuple[list[str], dict[str, int]]:
        """Return the class names in a folder and a dict of their labels; subclasses may override it."""
        classes = sorted(entry.name for entry in os.scandir(directory) if entry.is_dir())
        if not classes:
            raise FileNotFoundError(f"Couldn't find any class folder in {directory}.")
        return classes, {name: label for label, name in enumerate(classes)}

    @staticmethod
    def make_dataset(
        directory: Any,
        class_to_idx: dict[str, int],
        extensions: Sequence[str] | str | None = None,
        is_valid_file: Callable[[str], bool] | None = None,
        allow_empty: bool = False,
    ) -> list[tuple[str, int]]:
        """Return a list of (path, label) of the valid files of all classes."""
        if (extensions is None) is (is_valid_file is None):
            raise ValueError("Both extensions and is_valid_file cannot be None or not None at the same time")
        suffixes = (extensions,) if isinstance(extensions, str) else tuple(extensions or ())
        valid = is_valid_file or (lambda path: path.lower().endswith(suffixes))
        samples, empty = [], []
        for name in sorted(class_to_idx):
            walk = sorted(os.walk(os.path.join(directory, name), followlinks=True))
            paths = [os.path.join(folder, file) for folder, _, files in walk for file in sorted(files)]
            members = [(path, class_to_idx[name]) for path in paths if valid(path)]
            samples += members
            empty += [] if members else [name]
        if empty and not allow_empty:
            supported = f"Supported extensions are: {', '.join(suffixes)}" if suffixes else ""
            raise FileNotFoundError(f"Found no valid file for the classes {', '.join(empty)}. {supported}")
        return samples

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        path, target = self.samples[index]
        return StandardTransform(self.transform, self.target_transform)(self.loader(path), target)

    def __len__(self) -> int:
        return len(self.samples)


class ImageFolder(DatasetFolder):
    """Images in one folder per class, read by Pillow.

    Attributes:
        imgs: a list of (path, label).
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        transform: Function | None = None,
        target_transform: Function | None = None,
        loader: Callable[[str], Any] = default_loader,
        is_valid_file: Callable[[str], bool] | None = None,
        allow_empty: bool = False,
    ) -> None:
        extensions = IMG_EXTENSIONS if is_valid_file is None else None
        super().__init__(root, loader, extensions, transform, target_transform, is_valid_file, allow_empty)
        self.imgs = self.samples
