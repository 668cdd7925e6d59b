"""Unsigned integers of 16, 32 and 64 bits: what PyTorch has of them, and what it refuses, by the samples of all ops."""

from __future__ import annotations

import io
import re
from typing import Any

import numpy as np
import pytest

import tinytorch
from tests.conftest import PROFILE
from tests.oracle import needs_oracle, torch
from tests.same import compare, outcome
from tests.samples import Sample, all_samples
from tests.turns import in_turn
from tinytorch.core.node import OpNode
from tinytorch.core.supplied import load

KINDS = ("uint16", "uint32", "uint64")

#: By reason what differs: patterns of samples.
KNOWN = {
    "the error is that of another step of the computation": r"""
        add\(.*alpha=2.5\)
        addr\(.*(alpha|beta)=.*
        cov\(.*fweights=int64.*
        einsum\('ij,ij->', float64\[1x3\].*
        index_reduce\(.*
        linalg.matrix_rank\(.*
        linalg.pinv\(.*
        native_layer_norm\(.*
        nn.functional.(cross_entropy|embedding_bag|local_response_norm|scaled_dot_product_attention)\(.*
        renorm\(.*
        vander\(.*
    """,
    "nothing is computed": r"""
        linalg.(cond|eigh|lu|lu_factor|lu_factor_ex)\(float64\[0.*
        masked_select\(float64\[4\], bool\[4\]\)
        nonzero_static\(int64\[\], size=2\)
    """,
    "PyTorch refuses, or takes, what its way to compute makes use of": r"""
        combinations\(.*
        index_select\(float64\[\], .*
        ldexp\(.*
        lu_unpack\(.*
    """,
}


def of_kind(value: Any, library: Any, kind: str, indices: bool) -> Any:
    """Return a sample's arguments with its arrays as tensors of a dtype; of integers only if `indices`."""
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.array(value)
        if array.dtype.kind == "b" or (array.dtype.kind != "f" and not indices):
            return library.from_numpy(array)
        whole = np.abs(np.round(array * 4 if array.dtype.kind == "f" else array))
        whole = np.where(np.isfinite(whole), whole, 7).astype(np.int64)
        return library.from_numpy(whole).to(getattr(library, kind))
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)([of_kind(each, library, kind, indices) for each in value])
    if isinstance(value, tinytorch.dtype):
        return getattr(library, value.name)
    return value


def called(sample: Sample, kind: str, indices: bool) -> Any:
    def program(library: Any) -> Any:
        args = [of_kind(each, library, kind, indices) for each in sample.args]
        kwargs = {key: of_kind(each, library, kind, indices) for key, each in sample.kwargs.items()}
        function = library
        for name in sample.name.split("."):
            function = getattr(function, name)
        return function(*args, **kwargs)

    return program


@needs_oracle
@pytest.mark.parametrize("indices", [True, False])
def test_all_ops(indices: bool) -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    patterns = [line.strip() for lines in KNOWN.values() for line in lines.strip().splitlines()]
    wrong, known = [], re.compile("|".join(patterns))
    for k, sample in enumerate(in_turn(all_samples())):
        for kind in KINDS if PROFILE == "long" else (KINDS[k % 3],):
            ours, theirs = (outcome(called(sample, kind, indices), library)[0] for library in (tinytorch, torch))
            try:
                compare(ours, theirs, 1e-5, 1e-6)
            except AssertionError as error:
                if not known.fullmatch(str(sample)):
                    wrong.append(f"{sample} in {kind}: {str(error)[:300]}")
    torch.set_num_threads(threads)
    assert not wrong, "\n".join(wrong)


#: By theme, expressions of `torch`, `np`, vectors `u`, `u32`, `u64`, the matrix `m`, and floats `f`.
EXPRESSIONS = {
    "numbers": """
        u
        u64
        [u64.tolist(), u[2].item(), int(u[2]), float(u64[2]), bool(u[0]), [5, 6, 7][u[1]], f"{u[1]:>5}", str(u32)]
        torch.tensor(2**63, dtype=torch.uint64)
        torch.tensor([2**64], dtype=torch.uint64)
        torch.tensor([-1], dtype=torch.uint64)
        torch.tensor([1.5, 2], dtype=torch.uint64)
        torch.tensor([[-1, 65535], [-65535, True]], dtype=torch.uint16)
        torch.tensor([-65536], dtype=torch.uint16)
        torch.tensor(2**32, dtype=torch.uint32)
        torch.tensor([1.7, 255.5], dtype=torch.uint32)
        torch.tensor([-0.5], dtype=torch.uint16)
        torch.tensor([-1.0], dtype=torch.uint8)
        torch.tensor([np.uint16(5), np.uint16(6)])
        torch.tensor(np.array([1, 2**63], np.uint64))
        torch.tensor(np.array([1, 70000, -2]), dtype=torch.uint16)
        torch.from_numpy(np.arange(3, dtype=">u2"))
        [torch.from_numpy(np.arange(3, dtype=each)) for each in ("u2", "u4", "u8")]
        torch.as_tensor(np.arange(3, dtype=np.uint32), dtype=torch.int32)
        torch.frombuffer(bytearray(b"abcdefgh"), dtype=torch.uint64)
        torch.asarray([1, 2], dtype=torch.uint32)
        [torch.zeros(2, dtype=torch.uint16), torch.ones(2, dtype=torch.uint64), torch.full_like(u, -4)]
        [u.new_tensor([1]), u.type()]
        torch.full((2,), 2**64 - 1, dtype=torch.uint64)
        torch.full((2,), 70000, dtype=torch.uint16)
        torch.full((2,), -2.5, dtype=torch.uint16)
        torch.arange(5, dtype=torch.uint16)
        torch.linspace(0, 4, 5, dtype=torch.uint16)
        torch.linspace(0, 4, 1, dtype=torch.uint16)
        torch.eye(2, dtype=torch.uint32)
        torch.tril_indices(2, 2, dtype=torch.uint32)
        torch.zeros(2, dtype=torch.uint16, requires_grad=True)
        torch.nn.Parameter(u, requires_grad=False)
        torch.set_default_dtype(torch.uint16)
        [torch.iinfo(each.dtype).max for each in (u, u32, u64)]
        torch.finfo(torch.uint16)
        torch.testing.assert_close(u, u + 0.0)
    """,
    "conversion": """
        [u64.to(each) for each in (torch.float16, torch.float32, torch.int64, torch.uint8, torch.bool, torch.uint32)]
        [torch.tensor([-1.5, 70000.0, 3e9]).to(each) for each in (torch.uint16, torch.uint32, torch.uint64)]
        [torch.tensor([-1, 70000]).to(each) for each in (torch.uint16, torch.uint32, torch.uint64)]
        torch.tensor([True]).type(torch.uint16)
        [u.view(torch.int16), u.view(torch.uint8), torch.tensor([1.0, -2]).view(torch.uint32), u64.view(torch.uint16)]
        torch.tensor([1, 2, 3], dtype=torch.uint8).view(torch.uint16)
        [u.type("torch.UInt16Tensor"), f.type_as(u), u.type_as(f), u.short()]
        [u.numpy(), np.asarray(u32), np.from_dlpack(u64), torch.from_dlpack(np.arange(3, dtype=np.uint16))]
        torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(u32))
        torch.utils.data.default_collate([np.array([1, 2], np.uint16), np.array([3, 4], np.uint16)])
        torch.utils.data.default_collate([np.uint32(3), np.uint32(4)])
        u.untyped_storage().tolist()
        torch.UInt16Storage
        torch.zeros(3, dtype=torch.int64).copy_(u)
        torch.zeros(3, dtype=torch.uint32).copy_(f)
    """,
    "promotion": """
        torch.promote_types(torch.uint16, torch.uint16)
        torch.promote_types(torch.uint16, torch.int8)
        torch.promote_types(torch.bool, torch.uint16)
        torch.promote_types(torch.uint32, torch.float16)
        [torch.can_cast(torch.uint16, each) for each in (torch.int8, torch.bool, torch.float16)]
        [torch.can_cast(each, torch.uint64) for each in (torch.int8, torch.bool, torch.float16)]
        [torch.result_type(u, each) for each in (1, 1.5, True, torch.tensor(1), torch.tensor(1.0), f)]
        torch.result_type(u[0], torch.tensor([1]))
        torch.result_type(u[0], torch.tensor(1))
        torch.result_type(torch.tensor([True]), u[0])
        torch.result_type(u, u32)
        u == u32
        u == torch.tensor([1])
        [u == 1, u == 65537, u == -1, u == 1.5, u == f, u != u]
        torch.equal(u, u32)
        torch.cat([u, torch.tensor([1])])
        torch.cat([u, f])
        torch.where(u != 1, u, -1)
        torch.where(u != 1, u, u32)
    """,
    "arithmetic": """
        u + 1
        1 + u
        u + u
        u.add_(1)
        u - f
        u + 1.5
        [u * 2, u * u, u * -1, u * 70000, u64 * u64, u * 2.5, u / 2, u * torch.tensor(2)]
        u * u32
        u.mul_(3)
        u.mul_(2.5)
        [u**0, u**1, 1**u, u**2.0]
        u**2
        2**u
        u // 2
        u % 2
        -u
        abs(u)
        ~u
        u << 1
        u < 2
        u < 2.5
        [u & 1, u | 2, u ^ u]
        u & u32
        u.clamp(0, 5)
        torch.maximum(u, u)
        torch.mul(u, u, out=torch.empty(3, dtype=torch.uint8))
        torch.add(f, f, out=torch.empty(3, dtype=torch.uint16))
        torch.add(u, u, out=torch.empty(3))
        [u64.sum(), u64.prod(), u64.cumsum(0), u.sum(dtype=torch.float32), u.any(), u.all(), u.count_nonzero(0)]
        u64.sum(dtype=torch.uint64)
        u.cumsum(0, dtype=torch.uint16)
        u.mean()
        u.max()
        u.max(0)
        u.argmax()
        u.median()
        u.nonzero()
        u.diff()
        m @ m.T
        u.dot(u)
        [u64.sqrt(), u.exp(), u.round(), u.isnan(), u.signbit(), u.nan_to_num()]
    """,
    "places": """
        [u[0], u[1:], u[[0, 2]], u[torch.tensor([True, False, True])], m[:, 1], m[..., None], m[torch.tensor([0]), 1:]]
        f[u]
        u.__setitem__(0, -1)
        u.__setitem__(0, 70000)
        u.__setitem__(slice(1, None), torch.tensor([5.5, 6.0]))
        u.__setitem__([0, 1], 3)
        u.__setitem__([0, 1], u[:2])
        u.__setitem__(torch.tensor([True, False, True]), 3)
        u.masked_fill_(torch.tensor([True, False, True]), 3)
        [torch.sort(u64, descending=True), torch.unique(torch.cat([u32, u32]), return_counts=True), torch.msort(m)]
        [torch.cat([u, u]), torch.stack([u, u]), torch.where(u != 1, u, 5), u.roll(1), u.repeat(2)]
        [m.flip(0), m.T.flip(1)]
        m.flip(1)
        m.rot90()
        [m.rot90(3), m[None].rot90(1), u.diag(), torch.block_diag(u, u), m.index_select(1, torch.tensor([2, 0]))]
        m.gather(1, torch.tensor([[0], [1]]))
        m.scatter(1, torch.tensor([[0], [1]]), 7)
        torch.searchsorted(u, u)
        torch.searchsorted(f, u)
        torch.isin(u, u)
        torch.isin(u, 2)
        torch.nn.functional.embedding(u, torch.ones(3, 2))
        torch.nn.functional.one_hot(u)
        torch.nn.functional.cross_entropy(torch.ones(3, 4), u)
        torch.nn.functional.pad(u, (1, 1), value=3)
        torch.nn.functional.pad(u, (1, 1), value=-1)
        torch.constant_pad_nd(u, (1, 1), -1)
        torch.nn.functional.pad(m[None], (1, 1), mode="reflect")
        torch.nn.utils.rnn.pad_sequence([u, u[:1]], padding_value=2)
        torch.nn.utils.rnn.pad_sequence([u, u[:1]], padding_value=-1)
    """,
    "random": """
        [torch.randint(0, 100, (5,), dtype=torch.uint16), torch.randint(0, 2**40, (5,), dtype=torch.uint64)]
        torch.randint(0, 65537, (5,), dtype=torch.uint16)
        torch.randint(-5, 70, (5,), dtype=torch.uint32)
        [torch.empty(3, dtype=torch.uint32).random_(2**32), torch.empty(3, dtype=torch.uint16).random_(5, None)]
        u.random_()
        u.bernoulli_()
        u.bernoulli_(torch.tensor(0.5))
        u.geometric_(0.5)
        u.normal_()
        u.exponential_()
        torch.bernoulli(u)
        torch.rand_like(u)
        torch.randint_like(u, 5)
        torch.randperm(5, dtype=torch.uint16)
        torch.multinomial(u, 2)
    """,
}


@needs_oracle
@pytest.mark.parametrize("theme", EXPRESSIONS)
def test_expressions(theme: str) -> None:
    wrong = []
    for line in EXPRESSIONS[theme].strip().splitlines():

        def program(torch: Any, line: str = line.strip()) -> Any:
            names = {
                "u": torch.tensor([1, 2, 65535], dtype=torch.uint16),
                "u32": torch.tensor([1, 2, 2**32 - 1], dtype=torch.uint32),
                "u64": torch.tensor([1, 2, 2**64 - 1], dtype=torch.uint64),
                "m": torch.tensor([[1, 2, 3], [4, 5, 6]], dtype=torch.uint16),
                "f": torch.tensor([1.5, 2.5, -3.0]),
            }
            result = eval(line, {"torch": torch, "np": np}, names)
            return [result, list(names.values())]

        ours, theirs = (outcome(program, library) for library in (tinytorch, torch))
        try:
            compare(ours, theirs, 1e-5, 1e-6)
        except AssertionError as error:
            wrong.append(f"{line.strip()}: {str(error)[:300]}")
    assert not wrong, "\n".join(wrong)


@needs_oracle
def test_files() -> None:
    tensors = {"a": np.arange(3, dtype=np.uint16), "b": np.array([2**63], np.uint64)}
    for writer, reader in ((tinytorch, torch), (torch, tinytorch)):
        file = io.BytesIO()
        state = {key: writer.from_numpy(each.copy()) for key, each in tensors.items()}
        writer.save([state, writer.uint32], file)
        file.seek(0)
        found, kind = reader.load(file, weights_only=True)
        assert kind is reader.uint32
        for key, each in tensors.items():
            assert str(found[key].dtype) == f"torch.{each.dtype}"
            np.testing.assert_array_equal(found[key].numpy(), each)


def test_which_dtypes_an_op_refuses_is_a_fact_of_its_declaration() -> None:
    load(tinytorch.Tensor)
    refusing = {node.op.name for node in OpNode.__subclasses__() if node.op.refuses is not None}
    assert len(refusing) > 80
    assert {"add", "lt", "argmax", "_flip", "_median_all"} <= refusing
    u = tinytorch.zeros(3, dtype=tinytorch.uint16)
    for call in (lambda: u < u, lambda: u + u, lambda: u.add_(u), lambda: u.flip(0), lambda: u.median()):
        with pytest.raises(NotImplementedError, match="not implemented for 'UInt16'"):
            call()
