"""Transforms: values, types, texts and errors are torchvision's."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import tinytorch
from tests.data.vision_oracle import needs_torchvision, torchvision
from tinytorch.data import transforms
from tinytorch.data.images import convert_image_dtype
from tinytorch.data.transforms import Compose, Lambda, Normalize, ToTensor, split

RNG = np.random.default_rng(0)
BYTES = RNG.integers(0, 256, (5, 4, 3), dtype=np.uint8)

IMAGES = {
    "bytes (H, W)": BYTES[:, :, 0],
    "bytes (H, W, C)": BYTES,
    "all bytes": np.arange(256, dtype=np.uint8).reshape(16, 16),
    "float32": RNG.random((3, 4), dtype=np.float32),
    "float64": RNG.random((3, 4, 2)),
    "int64": RNG.integers(-5, 5, (3, 4, 1)),
    "bool": RNG.random((3, 4)) > 0.5,
    "backwards": BYTES[::-1, ::-1],
}


@needs_torchvision
@pytest.mark.parametrize("name", IMAGES)
def test_to_tensor_of_arrays(name: str) -> None:
    ours = ToTensor()(IMAGES[name])
    if name == "backwards":
        theirs = torchvision.transforms.ToTensor()(IMAGES[name].copy())  # it takes no such strides
    else:
        theirs = torchvision.transforms.ToTensor()(IMAGES[name])
    assert str(ours.dtype) == str(theirs.dtype) and ours.is_contiguous()
    np.testing.assert_array_equal(ours.numpy(), theirs.numpy(), strict=True)


@needs_torchvision
@pytest.mark.parametrize("mode", ["L", "LA", "P", "RGB", "YCbCr", "RGBA", "CMYK", "1", "I", "F", "I;16"])
def test_to_tensor_of_pillow_images(mode: str) -> None:
    image_module = pytest.importorskip("PIL.Image")
    gray = image_module.fromarray(IMAGES["all bytes"])
    image = gray.convert(mode) if mode not in ("I;16", "LA") else gray.convert("I").convert("I;16")
    if mode == "LA":
        image = gray.convert("RGBA").convert("LA")
    assert image.mode == mode
    ours, theirs = ToTensor()(image), torchvision.transforms.ToTensor()(image)
    assert str(ours.dtype) == str(theirs.dtype)
    np.testing.assert_array_equal(ours.numpy(), theirs.numpy(), strict=True)


def test_to_tensor_gives_the_default_dtype() -> None:
    tinytorch.set_default_dtype(tinytorch.float64)
    try:
        assert ToTensor()(BYTES).dtype is tinytorch.float64
        assert ToTensor().__batch__(BYTES).dtype is tinytorch.float64
    finally:
        tinytorch.set_default_dtype(tinytorch.float32)


def test_to_tensor_errors() -> None:
    with pytest.raises(TypeError, match=r"pic should be PIL Image or ndarray. Got <class 'list'>"):
        ToTensor()([[1]])
    with pytest.raises(TypeError, match="pic should be PIL Image or ndarray"):
        ToTensor().__batch__(tinytorch.zeros(1, 1, 2, 2))
    with pytest.raises(ValueError, match=r"pic should be 2/3 dimensional\. Got 1 dimensions\."):
        ToTensor()(np.zeros(3))


NORMALIZED = {
    "one channel": ((0.5,), (0.25,), (1, 3, 4)),
    "three": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225), (3, 4, 5)),
    "a batch": ((0.1, 0.2), (0.3, 0.4), (6, 2, 3, 3)),
    "numbers": (0.2860, 0.3530, (2, 3, 4)),
    "lists": ([0.5], [0.5], (3, 2, 2)),
}


@needs_torchvision
@pytest.mark.parametrize("name", NORMALIZED)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_normalize(name: str, dtype: type) -> None:
    mean, std, shape = NORMALIZED[name]
    array = RNG.random(shape).astype(dtype)
    image = tinytorch.tensor(array)
    ours = Normalize(mean, std)(image)
    theirs = torchvision.transforms.Normalize(mean, std)(torchvision.torch.tensor(array))
    np.testing.assert_array_equal(ours.numpy(), theirs.numpy(), strict=True)
    np.testing.assert_array_equal(image.numpy(), array)


def test_normalize_in_place() -> None:
    image = tinytorch.ones(1, 2, 2)
    assert Normalize((0.5,), (0.5,), inplace=True)(image) is image or image.sum().item() == 4
    Normalize((1.0,), (0.5,), inplace=True)(image)
    assert image.tolist() == [[[0, 0], [0, 0]]]


def test_normalize_keeps_the_graph() -> None:
    image = tinytorch.ones(1, 2, 2, requires_grad=True)
    Normalize((0.5,), (0.25,))(image).sum().backward()
    assert image.grad.tolist() == [[[4, 4], [4, 4]]]


BAD = {
    "no tensor": (lambda t: np.zeros((1, 2, 2)), (0.5,), (0.5,), TypeError, "img should be Tensor Image. Got"),
    "bytes": (
        lambda t: t.zeros(1, 2, 2, dtype=t.uint8),
        (0.5,),
        (0.5,),
        TypeError,
        "should be a float tensor. Got torch.uint8",
    ),
    "two dimensions": (lambda t: t.zeros(2, 2), (0.5,), (0.5,), ValueError, "Got tensor.size() = torch.Size([2, 2])"),
    "zero": (
        lambda t: t.zeros(1, 2, 2),
        (0.5,),
        (0.0,),
        ValueError,
        "std evaluated to zero after conversion to torch.float",
    ),
    "channels": (lambda t: t.zeros(2, 2, 2), (0.5,) * 3, (0.5,) * 3, RuntimeError, ""),
}


@needs_torchvision
@pytest.mark.parametrize("name", BAD)
def test_normalize_errors(name: str) -> None:
    make, mean, std, error, words = BAD[name]
    pairs = ((tinytorch, Normalize), (torchvision.torch, torchvision.transforms.Normalize))
    for library, transform in pairs:
        with pytest.raises(error) as caught:
            transform(mean, std)(make(library))
        assert words in str(caught.value)


def test_casts_that_lose_numbers_are_refused() -> None:
    for before, after in (("float32", "int32"), ("float32", "int64"), ("float64", "int64")):
        image = tinytorch.ones(1, 2, 2, dtype=getattr(tinytorch, before))
        with pytest.raises(RuntimeError, match="cannot be performed safely"):
            convert_image_dtype(image, getattr(tinytorch, after))
    assert convert_image_dtype(tinytorch.ones(1, dtype=tinytorch.float64), tinytorch.int32).tolist() == [2**31 - 1]


@needs_torchvision
def test_texts() -> None:
    texts = []
    for module in (transforms, torchvision.transforms):
        inner = module.Compose([module.Lambda(len)])
        made = module.Compose([module.ToTensor(), module.Normalize((0.5,), [0.25]), inner])
        texts.append(repr(made))
    assert texts[0] == texts[1]


def test_compose_and_lambda() -> None:
    assert Compose([Lambda(lambda x: x + 1), str])(1) == "2"
    assert Compose([])(1) == 1
    with pytest.raises(TypeError, match="Argument lambd should be callable, got 'int'"):
        Lambda(3)


def test_a_batch_equals_single_images() -> None:
    images = RNG.integers(0, 256, (6, 5, 4), dtype=np.uint8)
    for transform in (ToTensor(), Compose([ToTensor(), Normalize((0.3,), (0.7,))])):
        whole, rest = split(transform)
        batch = Compose(whole)(images)
        single = np.stack([transform(image).numpy() for image in images])
        assert rest == [] and batch.is_contiguous()
        np.testing.assert_array_equal(batch.numpy(), single, strict=True)
    colours = RNG.integers(0, 256, (6, 5, 4, 3), dtype=np.uint8)
    single = np.stack([ToTensor()(image).numpy() for image in colours])
    np.testing.assert_array_equal(ToTensor().__batch__(colours).numpy(), single, strict=True)


def test_only_the_beginning_of_a_transform_works_on_batches() -> None:
    flatten = Lambda(lambda x: x.flatten())

    def names(transform):
        whole, single = split(transform)
        return [type(step.__self__).__name__ for step in whole], [type(s).__name__ for s in single]

    assert names(None) == ([], [])
    assert names(ToTensor()) == (["ToTensor"], [])
    assert names(Compose([ToTensor(), flatten, Normalize(0, 1)])) == (["ToTensor"], ["Lambda", "Normalize"])
    assert names(Compose([Compose([ToTensor()]), Normalize(0, 1)])) == (["ToTensor", "Normalize"], [])
    assert names(Compose([flatten, ToTensor()])) == ([], ["Lambda", "ToTensor"])


def test_a_subclass_with_its_own_call_is_called() -> None:
    class Inverted(ToTensor):
        def __call__(self, pic):
            return 1 - super().__call__(pic)

    class Backwards(Compose):
        def __call__(self, img):
            return super().__call__(img)

    assert split(Inverted())[0] == []
    assert split(Backwards([ToTensor()]))[0] == []


def test_extras_are_imported_late() -> None:
    import subprocess

    program = (
        "import sys, numpy, tinytorch.data; "
        "tinytorch.data.transforms.ToTensor()(numpy.zeros((2, 2), numpy.uint8)); "
        "lazy = {'PIL', 'gzip', 'torch', 'tqdm', 'urllib.request'}; "
        "sys.exit(sorted(lazy & set(sys.modules)) or None)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
