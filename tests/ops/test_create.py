"""Tensors from data, shapes and ranges: PyTorch's values, dtypes, strides and errors."""

from __future__ import annotations

import array
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tinytorch
from tests.oracle import FUSED, needs_oracle
from tests.oracle import torch as pytorch
from tests.same import compared, expressions, refused, same_as_pytorch
from tinytorch.ops import create, register, sequences


class Sequence:
    """What Python takes for a sequence without its being a list."""

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> float:
        return [1.0, 2.0][index]


class Offers:
    """Another library's array."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.arange(3.0)


class Exporter:
    """One that has only DLPack's methods."""

    def __dlpack__(self, **options: Any) -> Any:
        return np.arange(3.0).__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


# Each is evaluated with tinytorch and with PyTorch and must give the same value, or the same
# warning or error.
SAME = expressions("""
    torch.ones((np.array(3), 4)); torch.zeros(torch.tensor([3])); torch.eye(np.array(2)); torch.randperm(np.array(1))
    torch.tensor(Exporter()); torch.as_tensor(Exporter(), dtype=torch.int32); torch.asarray(Exporter(), copy=True)
    torch.tensor(1); torch.tensor(True); torch.tensor(1.5); torch.tensor(-(2**63)); torch.tensor(1e40)
    torch.tensor([]); torch.tensor(()); torch.tensor([[], []]); torch.tensor([[], [1]]); torch.tensor([[[1]], [[2]]])
    torch.tensor([[1, 2], (3, 4)]); torch.tensor([True, False]); torch.tensor([True, 2]); torch.tensor([True, 1.5, 2])
    torch.tensor([1, 2.5]); torch.tensor([2**62, 1.5]); torch.tensor([1, 2], dtype=torch.float64)
    torch.tensor([1, 2], dtype=float); torch.tensor([1.7, -1.7, 2], dtype=torch.int64)
    torch.tensor([1.0, 0], dtype=torch.bool); torch.tensor(2, dtype=torch.bool)
    torch.tensor([-1, 255], dtype=torch.uint8); torch.tensor(2**63, dtype=torch.float32)
    torch.tensor(70000.0, dtype=torch.float16); torch.tensor([1.0, 2], requires_grad=True)
    torch.tensor([1.0], device="cpu", pin_memory=False); torch.tensor(data=[1]); torch.tensor(range(4))
    torch.tensor(range(0)); torch.tensor([range(2), range(2)]); torch.tensor(Sequence())
    torch.tensor(bytearray(b"abc")); torch.tensor(memoryview(b"abc")); torch.tensor(array.array("f", [1, 2]))
    torch.tensor(np.array([1, 2], np.int32)); torch.tensor(np.zeros((2, 0))); torch.tensor(np.array(2.5))
    torch.tensor(np.arange(3), dtype=torch.float64, requires_grad=True)
    torch.tensor(np.asfortranarray(np.arange(6).reshape(2, 3))); torch.tensor(np.float32(3))
    torch.tensor(np.float64(3)); torch.tensor(np.int16(3)); torch.tensor(np.bool_(True))
    torch.tensor([np.float32(3), np.float32(4)]); torch.tensor([np.float64(3)]); torch.tensor([np.int8(3)])
    torch.tensor([np.int8(3), 2.5]); torch.tensor([1, np.float64(2.5)]); torch.tensor([np.int64(1), np.float32(2.5)])
    torch.tensor([torch.tensor(1), torch.tensor(2.5)]); torch.tensor([torch.tensor(1), 2])
    torch.tensor([torch.tensor(1.0), torch.tensor(2, dtype=torch.float64)])
    torch.tensor([torch.tensor(True), torch.tensor(False)]); torch.tensor([True, torch.tensor(2, dtype=torch.int8)])
    torch.tensor([torch.tensor([1]), torch.tensor([[2]])]); torch.tensor([[torch.tensor(1.0), 2], [3, 4]])
    torch.tensor(torch.tensor([1.0, 2.0])); torch.tensor(torch.tensor(3), dtype=torch.float64)
    torch.tensor(torch.ones(2, requires_grad=True)); torch.tensor(torch.ones(2), requires_grad=True)
    torch.tensor(torch.arange(6).view(2, 3).t()); torch.as_tensor([1, 2]); torch.as_tensor(5, dtype=torch.float32)
    torch.as_tensor(np.arange(3.0)); torch.as_tensor(np.arange(3.0), dtype=torch.float32)
    torch.as_tensor(np.float32(2)); torch.as_tensor(torch.ones(2), dtype=torch.int64)
    torch.as_tensor(torch.ones(2, requires_grad=True), dtype=torch.float64, device="cpu"); torch.asarray([1, 2])
    torch.asarray([]); torch.asarray(1.5); torch.asarray(np.float64(1.5))
    torch.asarray([1, 2], dtype=torch.float32, requires_grad=True); torch.asarray(np.arange(3.0), copy=True)
    torch.asarray(np.arange(3.0), dtype=torch.float32); torch.asarray(bytearray(b"abcd"), dtype=torch.int32)
    torch.asarray(bytearray(b"abcd")); torch.asarray(torch.ones(2), dtype=torch.int64)
    torch.asarray(torch.ones(2), requires_grad=True)
    torch.asarray(torch.ones(2, requires_grad=True), requires_grad=False)
    torch.asarray(torch.ones(2, requires_grad=True), copy=True, requires_grad=True); torch.from_numpy(np.arange(3))
    torch.from_numpy(np.array(3.0)); torch.from_numpy(np.arange(6).reshape(2, 3)[:, ::2])
    torch.frombuffer(bytearray(b"abcdefgh"), dtype=torch.float32)
    torch.frombuffer(bytearray(b"abcdefgh"), dtype=torch.int16, count=2, offset=2)
    torch.frombuffer(bytearray(b"abcd"), dtype=torch.int16, count=-2)
    torch.frombuffer(bytearray(b"abcdefgh"), dtype=torch.float32, requires_grad=True); torch.zeros(2, 3)
    torch.zeros([2, 3], dtype=torch.int32); torch.zeros(()); torch.zeros(0, 3); torch.zeros(size=(2,))
    torch.zeros(torch.Size([2, 1])); torch.zeros(torch.tensor(3)); torch.zeros([torch.tensor(3), 2])
    torch.zeros(np.int64(3)); torch.zeros((np.int32(2), 3)); torch.zeros(2, dtype=None, device=None)
    torch.zeros(2, dtype=float); torch.zeros(2, device=torch.device("cpu"), layout=torch.strided, pin_memory=False)
    torch.zeros(2, requires_grad=True); torch.zeros(2, out=torch.ones(2)); torch.zeros(2, out=torch.ones(3, 4))
    torch.ones(2, 3, dtype=torch.bool); torch.ones(2, requires_grad=True)
    torch.ones(2, out=torch.zeros(2, dtype=torch.int64)); torch.empty(2, 3).shape
    torch.empty((2, 3), memory_format=torch.contiguous_format).shape
    torch.empty((2, 3, 4, 5), memory_format=torch.channels_last).stride(); torch.full((2,), True); torch.full((2,), 3)
    torch.full((2,), 3.5); torch.full((), 7); torch.full([2], -1); torch.full((2,), 3, dtype=torch.float32)
    torch.full((2,), 3.7, dtype=torch.int64); torch.full((2,), 2, dtype=torch.bool)
    torch.full((2,), -1, dtype=torch.uint8); torch.full((2,), float("inf")); torch.full((2,), float("nan"))
    torch.full((2,), 2**63, dtype=torch.float32); torch.full((2,), 2**64 - 1, dtype=torch.bfloat16).float()
    torch.full((1,), 1e300, dtype=torch.float16); torch.full_like(torch.ones(1, 1).bfloat16(), -1e300).float()
    torch.zeros(1).half().new_full((), 70000); torch.full((2,), torch.tensor(3))
    torch.full((2,), torch.tensor(3.5, dtype=torch.float64)); torch.full((2,), torch.tensor(True))
    torch.full((2,), np.float64(3)); torch.full((2,), np.int32(3)); torch.full(size=(2,), fill_value=1.0)
    torch.full((2,), 1, out=torch.zeros(2)); torch.full((2,), 3.0, requires_grad=True); torch.scalar_tensor(3)
    torch.scalar_tensor(3, dtype=torch.int64); torch.zeros_like(torch.ones(2, 3))
    torch.zeros_like(torch.ones(2), dtype=torch.int64); torch.zeros_like(torch.ones(2, requires_grad=True))
    torch.ones_like(torch.zeros(2), requires_grad=True); torch.ones_like(torch.zeros(0, 2))
    torch.full_like(torch.ones(2), 3); torch.full_like(torch.ones(2, dtype=torch.int64), 3.7)
    torch.full_like(torch.ones(2), torch.tensor(3)); torch.full_like(torch.ones(2), fill_value=2, dtype=torch.float64)
    torch.empty_like(torch.ones(2, 3), device="cpu", layout=torch.strided, pin_memory=False).shape
    torch.zeros_like(torch.ones(2, 3).t()).stride()
    torch.zeros_like(torch.ones(2, 3, 4).permute(2, 0, 1)[:, :1]).shape
    torch.zeros_like(torch.ones(2, 4, 4)[:, ::2]).stride(); torch.zeros_like(torch.ones(3).expand(5, 3)).stride()
    torch.zeros_like(torch.ones(5, 1).expand(5, 3)).stride()
    torch.zeros_like(torch.ones(4, 1, 3).expand(4, 5, 3)).stride()
    torch.zeros_like(torch.ones(2, 3).t(), memory_format=torch.contiguous_format).stride()
    torch.zeros_like(torch.ones(2, 3).t(), memory_format=torch.preserve_format).stride()
    torch.zeros_like(torch.ones(2, 3, 4, 5), memory_format=torch.channels_last).stride(); torch.ones(2).new_zeros(2, 3)
    torch.ones(2).new_zeros((2, 3), dtype=torch.int64); torch.ones(2).new_zeros(())
    torch.ones(2).new_zeros(2, requires_grad=True); torch.ones(2, dtype=torch.int64).new_ones([2])
    torch.ones(2).new_full((2,), 3); torch.ones(2).new_full((2,), True)
    torch.ones(2, dtype=torch.int64).new_full((2,), 3.7); torch.ones(2).new_empty(2, 3).shape
    torch.ones(2).new_empty(size=(2,)).shape; torch.ones(2).new_tensor([1, 2])
    torch.ones(2).new_tensor([1, 2], dtype=torch.int64); torch.ones(2, dtype=torch.int64).new_tensor([1.7, 2])
    torch.ones(2, dtype=torch.int64).new_tensor(np.array([1.5])); torch.ones(2).new_tensor([1.0], requires_grad=True)
    torch.ones(2).new_tensor(torch.ones(1)); torch.arange(5); torch.arange(0); torch.arange(5.0); torch.arange(True)
    torch.arange(1, 4); torch.arange(1, 2.5, 0.5); torch.arange(0, 1, 0.1)
    torch.arange(0, 1, 0.3, dtype=torch.float64); torch.arange(5, 0, -2); torch.arange(start=1, end=3)
    torch.arange(end=3); torch.arange(1, end=3, step=2); torch.arange(3, dtype=torch.int8)
    torch.arange(250, 260, dtype=torch.uint8); torch.arange(-2, 2, dtype=torch.uint8)
    torch.arange(2.7, dtype=torch.int64); torch.arange(0.5, 3.5, dtype=torch.int64)
    torch.arange(0.5, 3.5, 1.5, dtype=torch.int64); torch.arange(1.5, 7.9, 2.6, dtype=torch.int64)
    torch.arange(-3.5, 3, 1, dtype=torch.int64); torch.arange(0, 5, 2.5, dtype=torch.int32)
    torch.arange(2**53, 2**53 + 3); torch.arange(2**63 - 3, 2**63 - 1); torch.arange(0, 10, 3, dtype=torch.float16)
    torch.arange(torch.tensor(3)); torch.arange(torch.tensor(3.0)); torch.arange(np.int64(3))
    torch.arange(np.float32(3)); torch.arange(3.0, requires_grad=True); torch.arange(3, out=torch.zeros(3))
    torch.arange(3, device="cpu", layout=torch.strided, pin_memory=False); torch.linspace(0, 1, 5)
    torch.linspace(0, 1, 1); torch.linspace(0, 1, 0); torch.linspace(3, 3, 4); torch.linspace(True, 3, 3)
    torch.linspace(-1, -0.0, 9, dtype=torch.float64).signbit(); torch.linspace(-0.0, -0.0, 3, dtype=torch.float64)
    torch.empty_like(torch.ones(3, 1, 1).transpose(0, 1)).stride(); torch.ones(2, 1, 1).transpose(0, 2).clone().stride()
    torch.zeros_like(torch.ones(2, 2, 3)[:, :1, :2]).stride(); torch.ones(1, 3)[:, :2].double().stride()
    torch.linspace(0, 10, 5, dtype=torch.int64); torch.linspace(0, 10, 4, dtype=torch.int32)
    torch.linspace(5, -5, 5, dtype=torch.int8); torch.linspace(0.5, 9.7, 4, dtype=torch.int64)
    torch.linspace(0, 1, 3, dtype=torch.float16); torch.linspace(start=0, end=1, steps=3)
    torch.linspace(torch.tensor(0), torch.tensor(1.0), 3); torch.linspace(0, 1, 3, requires_grad=True)
    torch.linspace(0, 1, 3, out=torch.zeros(3)); torch.logspace(0, 2, 3); torch.logspace(0, 2, 1)
    torch.logspace(0, 2, 0); torch.logspace(0, 2, 5, base=2); torch.logspace(0, 1, 3, base=0)
    torch.logspace(-1, 1, 5, base=-2); torch.logspace(0, 2, 3, dtype=torch.int64)
    torch.logspace(0.5, 2.5, 3, dtype=torch.int64); torch.eye(3); torch.eye(2, 3); torch.eye(3, m=2); torch.eye(0)
    torch.eye(3, dtype=torch.int64); torch.eye(2, dtype=torch.bool); torch.eye(2, requires_grad=True)
    torch.eye(3, out=torch.zeros(2, 2)); torch.tril_indices(3, 3); torch.tril_indices(3, 2, -1)
    torch.triu_indices(3, 4, 1); torch.triu_indices(2, 2, dtype=torch.int32)
""")

ERRORS = expressions("""
    torch.asarray(np.float64(1), copy=False); torch.asarray(np.int32(1), copy=False)
    torch.tensor([[1, 2, 3], [1, 2]]); torch.tensor([[1, 2, 3], [1, 2, 3], [1, 2]]); torch.tensor([[1, 2], 3])
    torch.tensor([[1], "a"]); torch.tensor([1, [2, 3]]); torch.tensor([1.0, [2]]); torch.tensor([[1, 2], [3, [4]]])
    torch.tensor("a"); torch.tensor(["a", "b"]); torch.tensor([["a"]]); torch.tensor([1, "b"]); torch.tensor(b"abc")
    torch.tensor([b"a"]); torch.tensor(None); torch.tensor([None]); torch.tensor([1, None]); torch.tensor({1, 2})
    torch.tensor({1: 2}); torch.tensor([{}]); torch.tensor(object()); torch.tensor(i for i in range(3))
    torch.tensor([torch.tensor([1, 2]), torch.tensor([2, 3])]); torch.tensor([torch.zeros(2, 0)])
    torch.tensor(np.array(["a"])); torch.tensor(np.array([1, 2], object)); torch.tensor(np.array([1, 2], ">f4"))
    torch.tensor(np.arange(3)[::-1]); torch.tensor([300], dtype=torch.uint8); torch.tensor(-300, dtype=torch.uint8)
    torch.tensor(256.5, dtype=torch.uint8); torch.tensor(-129, dtype=torch.int8)
    torch.tensor(2**40, dtype=torch.int32); torch.tensor(2**63); torch.tensor([2**63]); torch.tensor(-(2**63) - 1)
    torch.tensor([float("nan")], dtype=torch.int64); torch.tensor(float("inf"), dtype=torch.int64)
    torch.tensor([1, 2], requires_grad=True); torch.tensor([1.0], device="nowhere"); torch.tensor([1.0], foo=2)
    torch.tensor(1, 2); torch.tensor(); torch.tensor([1], dtype="float32"); torch.tensor([1], dtype=np.float32)
    torch.as_tensor("a"); torch.as_tensor(np.arange(3)[::-1]); torch.asarray(None); torch.asarray("abc")
    torch.asarray([1, 2], copy=False); torch.asarray(np.arange(3.0), dtype=torch.float32, copy=False)
    torch.asarray(torch.ones(2), dtype=torch.int64, copy=False); torch.asarray([1, 2], requires_grad=True)
    torch.from_numpy([1]); torch.from_numpy(torch.ones(2)); torch.from_numpy(np.float32(1))
    torch.from_numpy(np.array(["a"])); torch.from_numpy(np.arange(6)[::-1])
    torch.from_numpy(np.arange(3, dtype=">i4")); torch.frombuffer(bytearray(b"abc"), dtype=torch.int16)
    torch.frombuffer(bytearray(b"abcd"), dtype=torch.int16, count=3)
    torch.frombuffer(bytearray(b"abcd"), dtype=torch.int16, offset=5)
    torch.frombuffer(bytearray(b"abcd"), dtype=torch.int16, offset=-1)
    torch.frombuffer(bytearray(b"abcd"), dtype=torch.int16, count=0)
    torch.frombuffer(bytearray(b""), dtype=torch.int16); torch.frombuffer([1], dtype=torch.int16)
    torch.frombuffer(bytearray(b"abcd"), dtype=torch.int8, requires_grad=True); torch.zeros(); torch.zeros(-1)
    torch.zeros(2, -3); torch.zeros(2.0); torch.zeros("a"); torch.zeros(None); torch.zeros(True); torch.zeros([2, 2.0])
    torch.zeros(2, (3,)); torch.zeros(torch.tensor([3, 2])); torch.zeros(np.array([2, 3])); torch.zeros(2**62)
    torch.zeros(2, dtype=torch.int64, requires_grad=True); torch.zeros(2, dtype="a"); torch.zeros(2, device="nowhere")
    torch.zeros(2, foo=1); torch.ones(-1); torch.ones(2, dtype=torch.float32, out=torch.zeros(2, dtype=torch.int64))
    torch.empty((2, 3), memory_format=torch.channels_last); torch.full(2, 3); torch.full((2,)); torch.full((-2,), 3)
    torch.full((2,), "a"); torch.full((2,), torch.tensor([3.5])); torch.full((2,), 300, dtype=torch.uint8)
    torch.full((2,), -300, dtype=torch.uint8); torch.full((2,), 255.9, dtype=torch.uint8)
    torch.full((2,), -129, dtype=torch.int8); torch.full((2,), -(2**31) - 1, dtype=torch.int32)
    torch.full((2,), 2**63); torch.full((2,), 2**64); torch.full((2,), 2**64, dtype=torch.float64)
    torch.full((2,), 2**64, dtype=torch.bool); torch.full((2,), -(2**63) - 1, dtype=torch.float32)
    torch.full((2,), 2**64, out=torch.empty(2)); torch.full_like(torch.ones(2), 2**1100)
    torch.zeros(2).new_full((2,), 2**64, dtype=torch.int8); torch.full((2,), 1e40)
    torch.full((2,), 70000.0, dtype=torch.float16); torch.full((2,), float("inf"), dtype=torch.int64)
    torch.full((2,), float("nan"), dtype=torch.int32); torch.full((2,), 3, requires_grad=True); torch.zeros_like([1])
    torch.full_like(torch.ones(2, dtype=torch.uint8), 300); torch.full_like(torch.ones(2), "a")
    torch.ones_like(torch.ones(2, dtype=torch.int64), requires_grad=True); torch.ones(1).new_zeros()
    torch.ones(1).new_zeros(-1); torch.ones(1).new_full((2,), "a"); torch.ones(1).new_tensor("a"); torch.arange(5, 0)
    torch.arange(-1); torch.arange(0, 5, -1); torch.arange(0, 5, 0); torch.arange(0, 3, 0.5, dtype=torch.int64)
    torch.arange(0, float("inf")); torch.arange(float("nan")); torch.arange(0, 2**63)
    torch.arange(3, dtype=torch.bool); torch.arange("a"); torch.arange(torch.tensor([1])); torch.arange()
    torch.arange(1, 2, 3, 4); torch.arange(3, requires_grad=True); torch.linspace(0, 1, -1)
    torch.linspace(torch.tensor([0]), 1, 3); torch.linspace(0, 1, 3, dtype=torch.bool)
    torch.linspace(0, 300, 3, dtype=torch.uint8); torch.linspace(0, 1, 3, dtype=torch.int64, requires_grad=True)
    torch.logspace(0, 2, -3); torch.eye(-1); torch.eye(2, -1); torch.eye(2.0); torch.tril_indices(-1, 2)
""")


def evaluate(expression: str, torch: Any) -> Any:
    names = {"torch": torch, "np": np, "array": array, "Sequence": Sequence, "Exporter": Exporter}
    result = eval(expression.strip(), names)
    return tuple(result) if isinstance(result, torch.Size) else result


@pytest.mark.parametrize("expression", SAME)
def test_same_values(expression: str) -> None:
    # logspace: NumPy's power and PyTorch's differ in the last bit.
    same_as_pytorch(lambda torch: evaluate(expression, torch), rtol=1e-6 if "logspace" in expression else 0, atol=0)


@pytest.mark.parametrize("expression", ERRORS)
def test_same_errors(expression: str) -> None:
    with pytest.raises(Exception):  # noqa: B017  (which one, PyTorch says)
        evaluate(expression, tinytorch)
    same_as_pytorch(lambda torch: evaluate(expression, torch))


def last_digits(dtype: str, largest: float) -> dict[str, float]:
    """Return how near numbers must be: the same, or up to rounding (of what becomes integers, to whole numbers)."""
    if FUSED:
        return {"rtol": 0, "atol": 0}
    eps = 0 if "int" in dtype else float(np.finfo(dtype).eps)
    return {"rtol": eps, "atol": eps * largest if eps else 1}


@needs_oracle
@given(
    st.floats(-100, 100), st.floats(0.01, 10), st.integers(1, 200), st.sampled_from(["float16", "float32", "float64"])
)
def test_arange_rounds_as_pytorch(start: float, step: float, count: int, dtype: str) -> None:
    end = start + step * (count - 0.5)
    same_as_pytorch(
        lambda torch: torch.arange(start, end, step, dtype=getattr(torch, dtype)),
        **last_digits(dtype, max(abs(start), abs(end))),
    )


@needs_oracle
@given(
    st.integers(-1000, 1000), st.integers(-1000, 1000), st.integers(2, 200),
    st.sampled_from(["float16", "float32", "float64", "int64", "int16"]),
)  # fmt: skip
def test_linspace_rounds_as_pytorch(start: int, end: int, steps: int, dtype: str) -> None:
    divisor = 1 if "int" in dtype else 7
    same_as_pytorch(
        lambda torch: torch.linspace(start / divisor, end / divisor, steps, dtype=getattr(torch, dtype)),
        **last_digits(dtype, max(abs(start), abs(end))),
    )


def test_memory_is_shared_or_copied() -> None:
    for name in ("from_numpy", "as_tensor", "asarray", "tensor"):
        source = np.arange(3.0)
        shared = getattr(tinytorch, name)(source)
        source[0] = 7
        shared.add_(1)
        expected = [[8, 2, 3]] * 2 if name != "tensor" else [[7, 1, 2], [1, 2, 3]]
        assert [source.tolist(), shared.tolist()] == expected
    buffer = bytearray(4)
    tinytorch.frombuffer(buffer, dtype=tinytorch.int16).add_(1)
    assert buffer == b"\1\0\1\0"


def test_a_tensor_that_fits_is_returned_itself() -> None:
    x = tinytorch.ones(2)
    assert tinytorch.as_tensor(x) is tinytorch.as_tensor(x, dtype=tinytorch.float32) is tinytorch.asarray(x) is x


def test_a_numpy_scalar_is_never_shared() -> None:
    scalar = np.float64(3)
    for make in (tinytorch.as_tensor, tinytorch.asarray, tinytorch.tensor):
        made = make(scalar)
        made.add_(1)
        assert scalar == 3 and made.item() == 4


def test_out_is_written_and_resized() -> None:
    out = tinytorch.ones(2)
    version = out._version
    assert tinytorch.zeros(2, 2, out=out) is out
    assert out.tolist() == [[0, 0], [0, 0]] and out._version > version
    refused(TypeError, "'out' must be Tensor, not numpy.ndarray", tinytorch.zeros, 2, out=np.zeros(2))


def test_out_must_not_require_grad() -> None:
    out = tinytorch.ones(2, requires_grad=True)
    for call in (tinytorch.zeros, tinytorch.ones, tinytorch.rand):
        refused(RuntimeError, "don't support automatic differentiation", call, 2, out=out)
    with tinytorch.no_grad():
        assert tinytorch.zeros(2, out=out).tolist() == [0, 0]


def test_what_other_libraries_offer() -> None:
    for make in (tinytorch.tensor, tinytorch.as_tensor, tinytorch.asarray):
        assert make(Offers()).tolist() == [0, 1, 2]
    if pytorch is not None:
        assert tinytorch.tensor(pytorch.ones(2, 3)).shape == (2, 3)
        assert tinytorch.tensor([pytorch.tensor(1.5), 2]).tolist() == [1.5, 2]


def test_what_is_refused() -> None:
    zeros, tensor = tinytorch.zeros, tinytorch.tensor
    words = r"zeros\(\): argument 'layout' must be torch.layout, not str"
    refused(TypeError, words, zeros, 2, layout="torch.sparse_coo")
    words = r"'memory_format' must be torch\.memory_format, not str"
    refused(TypeError, words, tinytorch.empty, 2, memory_format="fortran")
    refused(AssertionError, "not compiled with CUDA enabled", zeros, 2, device="cuda")
    refused(NotImplementedError, "complex32", tensor, [1, 1j], dtype=tinytorch.chalf)
    with pytest.warns(UserWarning, match="extremely slow"):
        refused(ValueError, r"of length 2 at dim 1 \(got 1\)", tensor, [np.array([1, 2]), np.array([3])])


def test_inference_tensors() -> None:
    with tinytorch.inference_mode():
        made = [tinytorch.zeros(2), tinytorch.tensor([1.0]), tinytorch.arange(3), tinytorch.ones(2).new_zeros(1)]
    assert all(each.is_inference() for each in made)


def test_the_default_dtype() -> None:
    tinytorch.set_default_dtype(tinytorch.float64)
    try:
        made = [tinytorch.zeros(1), tinytorch.tensor(0.1), tinytorch.arange(1.0), tinytorch.full((1,), 0.1)]
        assert all(each.dtype is tinytorch.float64 for each in made) and made[1].item() == 0.1
    finally:
        tinytorch.set_default_dtype(tinytorch.float32)


def test_warnings() -> None:
    read_only = np.arange(3.0)
    read_only.flags.writeable = False
    for make in (tinytorch.from_numpy, tinytorch.as_tensor, tinytorch.asarray):
        with pytest.warns(UserWarning, match="The given NumPy array is not writable"):
            assert make(read_only).tolist() == [0, 1, 2]
    with pytest.warns(UserWarning, match="The given buffer is not writable"):
        assert tinytorch.frombuffer(b"ab", dtype=tinytorch.uint8).tolist() == [97, 98]
    with pytest.warns(UserWarning, match="a list of numpy.ndarrays is extremely slow"):
        assert tinytorch.tensor([np.array([1, 2]), np.array([3, 4])]).tolist() == [[1, 2], [3, 4]]
    with pytest.warns(UserWarning, match="a list of numpy.ndarrays is extremely slow"):
        assert tinytorch.tensor([[np.zeros((2, 0))]]).shape == (1, 1, 2, 0)
    with pytest.warns(UserWarning, match="unspecified requires_grad now defaults"):
        tinytorch.asarray(tinytorch.ones(2, requires_grad=True))


def test_what_is_declared_is_public() -> None:
    declared = {
        name
        for name, made in register.functions.items()
        if made.raw.__module__ in (create.__name__, sequences.__name__)
    }
    assert {"tensor", "zeros", "arange", "linspace"} <= declared
    assert all(getattr(tinytorch, name) is register.functions[name] for name in declared)


@pytest.mark.parametrize("kind", ["float64", "int64", "bool", None])
@pytest.mark.parametrize("other", [None, "a", {}])
@compared
def test_what_is_no_number_among_numbers(torch: Any, kind: str | None, other: Any) -> Any:
    return torch.tensor([1, other], dtype=None if kind is None else getattr(torch, kind))


@pytest.mark.parametrize("create", [
    lambda torch: torch.zeros([1] * 65), lambda torch: torch.rand([1] * 65), lambda torch: torch.ones([1] * 64)[None],
    lambda torch: torch.empty([1] * 65, device="meta"), lambda torch: torch.ones(3).reshape([1] * 64 + [3]),
    lambda torch: torch.ones([1] * 64).unsqueeze(-1), lambda torch: torch.ones(3).expand([1] * 64 + [3]),
    lambda torch: torch.empty_strided([1] * 65, [1] * 65), lambda torch: torch.ones(1).repeat([1] * 65),
    lambda torch: torch.stack([torch.ones([1] * 64)]), lambda torch: torch.ones(1).as_strided([1] * 65, [1] * 65),
])  # fmt: skip
def test_the_limit_of_dimensions_is_named(create: Any) -> None:
    refused(NotImplementedError, "at most 64 dimensions", create, tinytorch)


def test_sizes_of_tensors_without_elements() -> None:
    assert tinytorch.zeros(0, 2**30, 2**20).stride() == (2**50, 2**20, 1)
    with pytest.raises(NotImplementedError, match=r"2\*\*59"):  # PyTorch makes it, with a stride of 2 ** 62
        tinytorch.zeros(0, 2**31, 2**31)
    refused(RuntimeError, "Stride calculation overflowed", tinytorch.zeros, 0, 2**40, 2**40)
