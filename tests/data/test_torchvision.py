"""`torchvision` where it is not installed: what tinytorch has of it gives what torchvision gives."""

from __future__ import annotations

import gzip
import hashlib
import io
import pickle
import subprocess
import sys
import tarfile
import textwrap
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tinytorch.torchvision as ours

import tinytorch
from tests.data.vision_oracle import needs_torchvision
from tests.data.vision_oracle import torchvision as theirs
from tests.same import Raised, compare, ended, in_pytorchs_name, same_as_pytorch
from tinytorch.data import datasets
from tinytorch.data.dataloader import DataLoader

RNG = np.random.default_rng(0)
COLOURS = RNG.integers(0, 256, (9, 12, 3), dtype=np.uint8)
BYTES = COLOURS.transpose(2, 0, 1).copy()


def pictures(torch: Any) -> dict[str, Any]:
    image_module = pytest.importorskip("PIL.Image")
    colours = image_module.fromarray(COLOURS)
    found = {mode: colours.convert(mode) for mode in ("RGB", "L", "P", "RGBA", "1", "I", "F")}
    found |= {"bytes": torch.tensor(BYTES), "floats": torch.tensor(BYTES) / 255, "doubles": torch.tensor(BYTES / 255)}
    found |= {"ints": torch.tensor(BYTES).int() - 100, "grey": torch.tensor(BYTES[:1]), "flat": torch.tensor(BYTES[0])}
    return found | {"batch": torch.tensor(np.stack([BYTES, 255 - BYTES]))}


def plain(value: Any) -> Any:
    """Return Pillow images as (mode, array), to compare."""
    if isinstance(value, (tuple, list)):
        return [plain(each) for each in value]
    if hasattr(value, "getbands"):
        return [value.mode, np.asarray(value), value.getpalette()]
    return value


def both(program: Any, atol: float = 1e-6) -> None:
    """Assert that `program(torch, torchvision)` returns or raises the same with ours and with theirs."""

    def quietly(torch: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return plain(program(torch, ours if torch is tinytorch else theirs))

    same_as_pytorch(quietly, rtol=1e-6, atol=atol)


# Transforms ---------------------------------------------------------------------------------------

TRANSFORMS: dict[str, Any] = {
    "PILToTensor": lambda t, T: T.PILToTensor(),
    "ToTensor": lambda t, T: T.ToTensor(),
    "ToPILImage": lambda t, T: T.ToPILImage(),
    "ConvertImageDtype float": lambda t, T: T.ConvertImageDtype(t.float32),
    "ConvertImageDtype int16": lambda t, T: T.ConvertImageDtype(t.int16),
    "ConvertImageDtype uint8": lambda t, T: T.ConvertImageDtype(t.uint8),
    "ConvertImageDtype int64": lambda t, T: T.ConvertImageDtype(t.int64),
    "Normalize": lambda t, T: T.Normalize((0.5,), (0.25,)),
    "Resize": lambda t, T: T.Resize(6),
    "Resize up": lambda t, T: T.Resize([20]),
    "Resize pair": lambda t, T: T.Resize((5, 17)),
    "Resize same": lambda t, T: T.Resize(9),
    "Resize nearest": lambda t, T: T.Resize((5, 17), T.InterpolationMode.NEAREST),
    "Resize exact": lambda t, T: T.Resize((5, 17), T.InterpolationMode.NEAREST_EXACT),
    "Resize bicubic": lambda t, T: T.Resize((17, 5), T.InterpolationMode.BICUBIC),
    "Resize lanczos": lambda t, T: T.Resize((17, 5), T.InterpolationMode.LANCZOS),
    "Resize by number": lambda t, T: T.Resize((17, 5), 3),
    "Resize at most": lambda t, T: T.Resize(6, max_size=7),
    "Resize rough": lambda t, T: T.Resize(6, antialias=False),
    "Resize wrong": lambda t, T: T.Resize((6, 7), max_size=8),
    "Resize too much": lambda t, T: T.Resize(6, max_size=6),
    "Resize of a text": lambda t, T: T.Resize(6, "bilinear"),
    "CenterCrop": lambda t, T: T.CenterCrop(4),
    "CenterCrop odd": lambda t, T: T.CenterCrop((5, 7)),
    "CenterCrop outside": lambda t, T: T.CenterCrop((12, 7)),
    "CenterCrop beyond": lambda t, T: T.CenterCrop(15),
    "Pad": lambda t, T: T.Pad(2),
    "Pad with a colour": lambda t, T: T.Pad((1, 2), fill=7),
    "Pad with colours": lambda t, T: T.Pad((1, 2, 3, 4), fill=(1, 2, 3)),
    "Pad edge": lambda t, T: T.Pad((1, 2, 3, 4), padding_mode="edge"),
    "Pad reflect": lambda t, T: T.Pad([3], padding_mode="reflect"),
    "Pad symmetric": lambda t, T: T.Pad([1, 3], padding_mode="symmetric"),
    "Grayscale": lambda t, T: T.Grayscale(),
    "Grayscale in three": lambda t, T: T.Grayscale(3),
    "Grayscale in two": lambda t, T: T.Grayscale(2),
    "RandomCrop": lambda t, T: T.RandomCrop(4),
    "RandomCrop padded": lambda t, T: T.RandomCrop((5, 6), padding=3, padding_mode="reflect"),
    "RandomCrop if needed": lambda t, T: T.RandomCrop((12, 20), pad_if_needed=True, fill=3),
    "RandomCrop all": lambda t, T: T.RandomCrop((9, 12)),
    "RandomCrop too large": lambda t, T: T.RandomCrop(20),
    "RandomHorizontalFlip": lambda t, T: T.RandomHorizontalFlip(),
    "RandomVerticalFlip": lambda t, T: T.RandomVerticalFlip(0.4),
    "Compose": lambda t, T: T.Compose([T.RandomHorizontalFlip(), T.RandomCrop(5), T.Lambda(lambda x: x)]),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:Anti-alias option is always applied")
@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name: str) -> None:
    for picture in pictures(tinytorch):

        def program(torch: Any, vision: Any, picture: str = picture) -> list[Any]:
            transform = TRANSFORMS[name](torch, vision.transforms)
            image = pictures(torch)[picture]
            return [transform(image) for _ in range(3)]

        # Bytes are rounded from sums in another order.
        loose = name.startswith(("Resize", "Grayscale")) and picture in ("bytes", "ints", "batch", "grey", "flat")
        both(program, atol=1 if loose else 1e-6)


def test_texts_of_transforms() -> None:
    makers = [make for name, make in TRANSFORMS.items() if name != "Resize of a text"]
    both(lambda torch, vision: [repr(make(torch, vision.transforms)) for make in makers])


WRONG = {
    "pad of none": lambda t, T: T.Pad(None),
    "pad of three": lambda t, T: T.Pad((1, 2, 3)),
    "unknown mode": lambda t, T: T.Pad(1, padding_mode="wrap"),
    "crop of three": lambda t, T: T.CenterCrop((1, 2, 3)),
    "size of three": lambda t, T: T.Resize((1, 2, 3)),
    "size of a text": lambda t, T: T.Resize(1.5),
    "no image": lambda t, T: T.RandomHorizontalFlip(1.0)(np.zeros((2, 2))),
    "1-d": lambda t, T: T.CenterCrop(2)(t.zeros(3)),
    "no tensor": lambda t, T: T.ToPILImage()([1]),
    "five channels": lambda t, T: T.ToPILImage()(t.zeros(5, 2, 2)),
    "4-d": lambda t, T: T.ToPILImage()(t.zeros(1, 3, 2, 2)),
    "another mode": lambda t, T: T.ToPILImage("L")(t.zeros(3, 2, 2)),
    "no mode": lambda t, T: T.ToPILImage()(t.zeros(3, 2, 2, dtype=t.int32)),
    "no grey": lambda t, T: T.functional.to_grayscale(t.zeros(3, 2, 2)),
    "no Pillow image": lambda t, T: T.PILToTensor()(t.zeros(3, 2, 2)),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_of_transforms(name: str) -> None:
    both(lambda torch, vision: WRONG[name](torch, vision.transforms))
    assert isinstance(ended(lambda: WRONG[name](tinytorch, ours.transforms))[0], Raised)


def test_functions_of_images() -> None:
    def program(torch: Any, vision: Any) -> list[Any]:
        functional, found = vision.transforms.functional, []
        for image in pictures(torch).values():
            found += [functional.get_dimensions(image), functional.get_image_size(image)]
            found += [functional.get_image_num_channels(image), functional.crop(image, -1, 3, 5, 20)]
            found += [functional.hflip(image), functional.vflip(image)]
        return [*found, functional.to_pil_image(COLOURS), functional.to_pil_image(COLOURS, "YCbCr")]

    both(program)


def test_transforms_are_modules_and_keep_the_graph() -> None:
    T = ours.transforms
    image = tinytorch.rand(3, 6, 8, requires_grad=True)
    tinytorch.nn.Sequential(T.Resize(5), T.Pad(1, padding_mode="edge"), T.CenterCrop(4), T.Grayscale())(
        image
    ).sum().backward()
    assert image.grad.abs().sum() > 0


# Grids and files ----------------------------------------------------------------------------------

GRIDS: dict[str, Any] = {
    "rows": lambda t, g: g(t.arange(5 * 3 * 4 * 2.0).view(5, 3, 4, 2), nrow=2),
    "grey": lambda t, g: g(t.arange(24.0).view(3, 1, 4, 2), padding=1, pad_value=0.5),
    "list": lambda t, g: g([t.ones(3, 2, 2), t.zeros(3, 2, 2)], nrow=1),
    "one": lambda t, g: g(t.arange(4.0).view(2, 2)),
    "one of a channel": lambda t, g: g(t.arange(4.0).view(1, 2, 2)),
    "normalized": lambda t, g: g(t.arange(36.0).view(3, 3, 2, 2), normalize=True),
    "each": lambda t, g: g(t.arange(36.0).view(3, 3, 2, 2), normalize=True, scale_each=True),
    "of a range": lambda t, g: g(t.arange(12.0).view(1, 3, 2, 2), normalize=True, value_range=(2, 5)),
    "wrong range": lambda t, g: g(t.arange(12.0).view(1, 3, 2, 2), normalize=True, value_range=[2, 5]),
    "no tensor": lambda t, g: g(np.zeros((3, 2, 2))),
    "list of arrays": lambda t, g: g([np.zeros((3, 2, 2))]),
}


@pytest.mark.parametrize("name", GRIDS)
def test_make_grid(name: str) -> None:
    both(lambda torch, vision: GRIDS[name](torch, vision.utils.make_grid))


@needs_torchvision
@pytest.mark.parametrize("suffix", ["png", "jpg", "bmp"])
def test_save_image(suffix: str, tmp_path: Path) -> None:
    image_module = pytest.importorskip("PIL.Image")

    def program(torch: Any, vision: Any) -> list[Any]:
        path = tmp_path / f"grid.{suffix}"
        vision.utils.save_image(torch.tensor(BYTES / 255)[None].repeat(3, 1, 1, 1), path, nrow=2)
        file = io.BytesIO()
        vision.utils.save_image(torch.tensor(BYTES / 255), file, format="png")
        return [image_module.open(path).convert("RGB"), image_module.open(file)]

    both(program)


# Datasets -----------------------------------------------------------------------------------------


def cifar(folder: Path, classes: tuple[type, ...], hundred: bool) -> tuple[list[type], Path]:
    """Write an archive like that of CIFAR, and return subclasses that know its sums."""
    lists = (["train"], ["test"]) if hundred else ([f"data_batch_{k}" for k in range(1, 6)], ["test_batch"])
    meta = {"filename": "meta" if hundred else "batches.meta", "key": ("fine_" if hundred else "") + "label_names"}
    base = classes[0].base_folder  # type: ignore[attr-defined]
    labels = "fine_labels" if hundred else "labels"
    files = {
        name: {"data": RNG.integers(0, 256, (4, 3072), dtype=np.uint8), labels: [3, 1, 0, 2]}
        for part in lists
        for name in part
    }
    files[meta["filename"]] = {meta["key"]: ["cat", "dog", "cow", "hen"]}
    contents = {name: pickle.dumps(value) for name, value in files.items()}
    sums = {name: hashlib.md5(data).hexdigest() for name, data in contents.items()}
    archive = folder / "archive.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        for name, data in contents.items():
            member = tarfile.TarInfo(f"{base}/{name}")
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    attributes = {
        "url": archive.as_uri(), "filename": archive.name, "tgz_md5": hashlib.md5(archive.read_bytes()).hexdigest(),
        "train_list": [[name, sums[name]] for name in lists[0]], "test_list": [[name, sums[name]] for name in lists[1]],
        "meta": {**meta, "md5": sums[meta["filename"]]},
    }  # fmt: skip
    return [type(each.__name__, (each,), attributes) for each in classes], archive


@pytest.mark.parametrize("name", ["CIFAR10", "CIFAR100"])
def test_cifar(name: str, tmp_path: Path) -> None:
    pytest.importorskip("PIL.Image")
    (source, root) = tmp_path / "source", tmp_path / "root"
    source.mkdir()
    root.mkdir()
    classes = [getattr(each.datasets, name) for each in (ours, theirs) if each is not None]
    made, _ = cifar(source, tuple(classes), name == "CIFAR100")
    with pytest.raises(RuntimeError, match="Dataset not found or corrupted"):
        made[0](root)
    found = made[0](root, download=True)
    assert found.class_to_idx == {"cat": 0, "dog": 1, "cow": 2, "hen": 3}
    assert found.data.shape == (4 if name == "CIFAR100" else 20, 32, 32, 3) and found.targets[:4] == [3, 1, 0, 2]
    made[0](root, download=True)  # does nothing
    for train in (True, False):
        tensors = made[0](root, train, ours.transforms.ToTensor())
        images, labels = next(iter(DataLoader(tensors, batch_size=3)))
        expected = np.stack([tensors[k][0].numpy() for k in range(3)])
        np.testing.assert_array_equal(images.numpy(), expected, strict=True)
        assert labels.tolist() == [3, 1, 0] and labels.dtype is tinytorch.int64
        shuffled, _ = next(iter(DataLoader(tensors, batch_sampler=[[2, 0]])))
        np.testing.assert_array_equal(shuffled.numpy(), expected[[2, 0]])
        if theirs is not None:
            other = made[1](str(root), train)
            mine = made[0](str(root), train)
            compare(plain(mine[1]), plain(other[1]), 0, 0)
            assert repr(mine) == repr(other) and mine.classes == other.classes and mine.targets == other.targets
    path = root / made[0].base_folder / made[0].test_list[0][0]  # type: ignore[attr-defined]
    path.write_bytes(b"damaged")
    with pytest.raises(RuntimeError, match="Dataset not found or corrupted"):
        made[0](root)
    assert len(made[0](root, train=False, download=True)) == 4  # fetched again


def idx(array: Any) -> bytes:
    header = bytes([0, 0, 8, array.ndim]) + b"".join(n.to_bytes(4, "big") for n in array.shape)
    return gzip.compress(header + array.astype(np.uint8).tobytes())


def test_emnist(tmp_path: Path) -> None:
    archive, root = tmp_path / "gzip.zip", tmp_path / "root"
    with zipfile.ZipFile(archive, "w") as packed:
        for part, count in (("train", 5), ("test", 3)):
            images, labels = RNG.integers(0, 256, (count, 28, 28)), RNG.integers(0, 26, count)
            packed.writestr(f"gzip/emnist-letters-{part}-images-idx3-ubyte.gz", idx(images))
            packed.writestr(f"gzip/emnist-letters-{part}-labels-idx1-ubyte.gz", idx(labels))
    md5 = hashlib.md5(archive.read_bytes()).hexdigest()
    made = [
        type("EMNIST", (each.datasets.EMNIST,), {"url": archive.as_uri(), "md5": md5})
        for each in (ours, theirs)
        if each is not None
    ]
    with pytest.raises(RuntimeError, match="Dataset not found"):
        made[0](root, "letters")
    with pytest.raises(ValueError, match="Unknown value 'words' for argument split"):
        made[0](root, "words")
    found = [made[0](str(root), "letters", train=train, download=True) for train in (True, False)]
    assert list(map(len, found)) == [5, 3] and found[0].classes[:2] == ["N/A", "a"]
    for each, train in zip(found, (True, False), strict=True):
        if theirs is not None:
            other = made[1](str(root), "letters", train=train)
            np.testing.assert_array_equal(each.data.numpy(), other.data.numpy())
            assert each.targets.tolist() == other.targets.tolist() and repr(each) == repr(other)
    if theirs is not None:
        for split, classes in theirs.datasets.EMNIST.classes_split_dict.items():
            empty = type("EMNIST", (datasets.EMNIST,), {"_load": lambda self: (None, None)})
            assert empty(root, split).classes == classes


def test_fake_data() -> None:
    pytest.importorskip("PIL.Image")

    def program(torch: Any, vision: Any) -> list[Any]:
        data = vision.datasets.FakeData(4, (3, 5, 6), 7, random_offset=2)
        more = vision.datasets.FakeData(2, (1, 5, 6), transform=vision.transforms.ToTensor())
        return [data[0], data[3], torch.rand(2), more[1], repr(data), repr(more), len(list(data))]

    both(program)


@needs_torchvision
def test_folders(tmp_path: Path) -> None:
    image_module = pytest.importorskip("PIL.Image")
    for name in ("b/1.png", "a/x/2.PNG", "a/1.bmp"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        image_module.fromarray(COLOURS if name != "a/1.bmp" else COLOURS[:, :, 0]).save(tmp_path / name)
    (tmp_path / "a" / "words.txt").write_text("words")
    (tmp_path / "empty").mkdir()

    def program(torch: Any, vision: Any) -> list[Any]:
        sets = vision.datasets
        whole = sets.ImageFolder(tmp_path, allow_empty=True)
        small = sets.ImageFolder(str(tmp_path), vision.transforms.ToTensor(), lambda y: -y, allow_empty=True)
        words = sets.DatasetFolder(tmp_path, lambda path: path[-5:], (".txt",), allow_empty=True)
        own = sets.ImageFolder(tmp_path, is_valid_file=lambda path: "1." in path, allow_empty=True)
        return [
            whole.classes, whole.class_to_idx, whole.samples, whole.targets, whole.imgs, len(whole), [*whole],
            repr(whole), small[1], words.samples, words[0], own.samples,
        ]  # fmt: skip

    both(program)
    both(lambda torch, vision: vision.datasets.ImageFolder(tmp_path))
    both(lambda torch, vision: vision.datasets.ImageFolder(tmp_path / "a" / "x"))
    both(lambda torch, vision: vision.datasets.ImageFolder(tmp_path / "nowhere"))
    both(lambda torch, vision: vision.datasets.DatasetFolder(tmp_path, len))
    both(lambda torch, vision: vision.datasets.DatasetFolder(tmp_path, len, (".doc", ".rtf")))


@needs_torchvision
def test_datasets_of_ones_own() -> None:
    def program(torch: Any, vision: Any) -> list[Any]:
        class Own(vision.datasets.VisionDataset):
            def __getitem__(self, index: int) -> Any:
                return self.transforms(index, -index)

            def __len__(self) -> int:
                return 3

            def extra_repr(self) -> str:
                return "Mine\nAlone"

        made = Own("~", transform=vision.transforms.Compose([abs]), target_transform=abs)
        joint = Own(transforms=lambda x, y: (y, x))
        texts = [repr(Own("here")), in_pytorchs_name(repr(made)), made.root]
        return [*texts, made[2], joint[2], joint.transform]

    both(program)
    both(lambda torch, vision: vision.datasets.VisionDataset(".", len, len))


# Where torchvision is not installed ---------------------------------------------------------------

HIDING = """
import sys
from importlib.machinery import PathFinder
plain, hidden = PathFinder.find_spec, {hidden}
PathFinder.find_spec = lambda name, *more: None if name.partition(".")[0] in hidden else plain(name, *more)
import tinytorch.compat
tinytorch.compat.install()
"""


def without(hidden: set[str], program: str, cwd: Path) -> str:
    """Run a program under the alias where some packages are not installed; return what it prints."""
    code = HIDING.format(hidden=hidden) + textwrap.dedent(program)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_where_torchvision_is_not_installed(tmp_path: Path) -> None:
    program = """
    import torch, torchvision
    from torchvision import datasets, transforms, utils
    import torchvision.transforms.functional as F
    from torchvision.transforms import Compose, InterpolationMode, ToTensor
    from torchvision.datasets import CIFAR10, FashionMNIST, ImageFolder
    print(torchvision.__version__, datasets.MNIST.__name__, F.hflip(torch.tensor([[1, 2]])).tolist())
    attempts = ["torchvision.models", "import torchvision.ops", "from torchvision import models",
        "datasets.VOCDetection", "from torchvision.datasets import ImageNet",
        "from torchvision.transforms import v2", "transforms.ColorJitter",
        "import torchvision.transforms.v2 as v2", "F.affine", "utils.draw_keypoints",
        "from torchvision.models import vgg11"]
    for text in attempts:
        try:
            exec(text)
        except (AttributeError, ImportError) as error:
            print(type(error).__name__, "pip install --no-deps torchvision pillow" in str(error), text.split()[-1])
    print(hasattr(torchvision, "models"), "PIL" in sys.modules)
    """
    lines = without({"torchvision"}, program, tmp_path).splitlines()
    assert lines[0] == "0.28.0 MNIST [[2, 1]]"
    assert lines[1:-1] == [
        "AttributeError True torchvision.models", "ImportError True torchvision.ops", "ImportError True models",
        "AttributeError True datasets.VOCDetection", "ImportError True ImageNet", "ImportError True v2",
        "AttributeError True transforms.ColorJitter", "ImportError True v2", "AttributeError True F.affine",
        "AttributeError True utils.draw_keypoints", "ImportError True vgg11",
    ]  # fmt: skip
    assert lines[-1] == "False False"


def test_where_pillow_is_not_installed(tmp_path: Path) -> None:
    program = """
    import torch
    from torchvision import datasets, transforms, utils
    step = transforms.Compose([transforms.Resize(4), transforms.RandomCrop(3), transforms.RandomHorizontalFlip()])
    print(step(torch.rand(3, 8, 8)).shape)
    image = torch.arange(60).view(3, 4, 5) / 59
    utils.save_image(image, "image.png")
    with open("same.png", "wb") as file:
        utils.save_image(image, file, format="PNG")
    attempts = {"jpeg": lambda: utils.save_image(image, "image.jpg"), "pil": lambda: transforms.ToPILImage()(image),
        "fake": lambda: datasets.FakeData(2)[0], "folder": lambda: datasets.folder_loader("image.png")}
    from tinytorch.data.datasets import default_loader
    datasets.folder_loader = default_loader
    for name, attempt in attempts.items():
        try:
            attempt()
        except ImportError as error:
            print(name, "pip install pillow" in str(error))
    """
    printed = without({"torchvision", "PIL"}, program, tmp_path)
    assert printed == "torch.Size([3, 3, 3])\njpeg True\npil True\nfake True\nfolder True\n"
    assert (tmp_path / "image.png").read_bytes() == (tmp_path / "same.png").read_bytes()
    image_module = pytest.importorskip("PIL.Image")
    read = np.asarray(image_module.open(tmp_path / "image.png"))
    expected = np.floor(np.arange(60, dtype=np.float32).reshape(3, 4, 5) / np.float32(59) * 255 + 0.5)
    np.testing.assert_array_equal(read, expected.transpose(1, 2, 0).astype(np.uint8))
