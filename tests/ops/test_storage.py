"""Storages, memory layout, DLPack: what programs see of a tensor's memory is what PyTorch shows."""

from __future__ import annotations

import copy
import os
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinytorch
from tests.oracle import needs_oracle
from tests.same import compared, expressions, refused

# Each is evaluated with tinytorch and with PyTorch; x is arange(6.), y zeros(2), g requires grad.
SAME = """
    x.resize_(2, 2); x.resize_((2, 2)); x.resize_(size=(2, 2)); x.resize_(2, 6).shape; x.resize_(2, 6).flatten()[:6]
    x[2:].resize_(3); x[1::2].resize_(2); x.view(2, 3).t().resize_(4); x.resize_(0); x.resize_(0).resize_(3)
    torch.zeros(0).resize_(2, 3).shape; x.resize_(); x.resize_(-1, 2); g.resize_(2); (g * 1).resize_(2); x.resize(2, 3)
    x.resize(2); g.resize(3, 1); x.resize_as(y); x.resize_as(torch.zeros(2, 3)); x.resize_as_(y)
    x.resize_(2, 2, memory_format=torch.channels_last)
    x.resize_(1, 2, 1, 3, memory_format=torch.channels_last).stride()
    x.resize_(1, 2, 1, 3, memory_format=torch.channels_last); x.set_(y); x.set_(y)._version; x.set_()
    x.set_(y.untyped_storage()); x.set_(y.untyped_storage(), 1, (1,), (1,)); x.set_(y.untyped_storage(), 1, (1,))
    y.set_(x, 1, (2, 2), (1, 2)); y.set_(x.untyped_storage(), 0, (3, 2)); x.set_(torch.zeros(2, dtype=torch.int64))
    x.set_(3); g.set_(y); x.untyped_storage().nbytes(); x[2:].untyped_storage().nbytes(); x.untyped_storage().size()
    len(x.untyped_storage()); x.untyped_storage().tolist(); x.untyped_storage()[7]; x.untyped_storage()[6:8].tolist()
    list(y.untyped_storage()); x.untyped_storage().device; x.untyped_storage().element_size()
    x.untyped_storage().is_shared(); x.untyped_storage().is_pinned(); x.untyped_storage().type()
    x.untyped_storage().filename; x.untyped_storage().float().tolist(); x.untyped_storage().clone().tolist()
    x.untyped_storage().copy_(y.untyped_storage()); y.untyped_storage().copy_(x[:2].clone().untyped_storage()).tolist()
    x.untyped_storage().fill_(1).tolist(); x.untyped_storage().resize_(12).nbytes()
    x.untyped_storage() == x[1:].untyped_storage(); x.untyped_storage() == y.untyped_storage()
    x.untyped_storage().data_ptr() == x.data_ptr(); repr(y.untyped_storage()); torch.UntypedStorage(3).nbytes()
    torch.UntypedStorage([1, 2, 3]).tolist(); torch.UntypedStorage().nbytes()
    torch.TypedStorage([1, 2, 3], dtype=torch.int64).tolist(); repr(torch.TypedStorage([1, 2], dtype=torch.float64))
    torch.FloatStorage([1, 2]).tolist(); torch.FloatStorage(3).size(); torch.LongStorage([1, 2]).element_size()
    torch.DoubleStorage([1, 2]).nbytes(); torch.HalfStorage([1, 2]).dtype; torch.IntStorage([1, 2]).float().tolist()
    torch.FloatStorage([1.5, 2]).int().tolist(); torch.FloatStorage([1.5, 2])[0]; torch.FloatStorage([1.5, 2])[0:1]
    torch.FloatStorage([1.5, 2]).fill_(3).tolist(); torch.FloatStorage([1.5, 2]).type()
    torch.FloatStorage([1.5, 2]).pickle_storage_type(); torch.FloatStorage([1.5, 2]).untyped().nbytes()
    isinstance(torch.FloatStorage([1.5]), torch.FloatStorage); isinstance(torch.FloatStorage([1.5]), torch.LongStorage)
    isinstance(torch.FloatStorage([1.5]), torch.TypedStorage); torch.FloatTensor(torch.FloatStorage([1.5]))
    torch.LongTensor(range(3)); torch.empty(0).set_(torch.FloatStorage([1.5, 2]))
    torch.empty(0).set_(torch.LongStorage([1, 2])); x.storage().tolist(); x.storage().size(); x.storage().dtype
    str(x.storage_type()); torch.is_storage(x.untyped_storage()), torch.is_storage(x)
    x.is_set_to(x), x.is_set_to(x[:]), x.is_set_to(x[1:]), x.is_set_to(x.clone()); x.is_shared(), x.is_pinned()
    x.share_memory_().is_shared(); x.share_memory_(); x.view(2, 3).t().clone().share_memory_().stride()
    g.share_memory_(); x.pin_memory(); x.dim_order(); torch.zeros(2, 3, 4).permute(2, 0, 1).dim_order()
    torch.zeros(2, 3, 4, 5).to(memory_format=torch.channels_last).dim_order()
    torch.zeros(2, 3, 4, 5).dim_order(ambiguity_check=True); torch.zeros(2, 1, 1, 5).dim_order(ambiguity_check=True)
    torch.zeros(2, 3, 4, 5).dim_order(ambiguity_check=[torch.contiguous_format, torch.channels_last])
    torch.zeros(2, 1, 4, 5).dim_order(ambiguity_check=[torch.contiguous_format, torch.channels_last])
    torch.zeros(2, 3).dim_order(ambiguity_check="x"); x.const_data_ptr() == x.data_ptr(); x.apply_(lambda v: v + 1)
    x.apply_(lambda v: v + 1)._version; x.view(2, 3).t().apply_(lambda v: v * 2); x.int().apply_(lambda v: v * 2)
    g.apply_(lambda v: v + 1); x.map_(x, lambda a, b: a + b); x.view(2, 3).map_(torch.arange(3.0), lambda a, b: a * b)
    x.map_(y, lambda a, b: a + b); x.map_(x.int(), lambda a, b: a + b); g.map_(x, lambda a, b: a + b)
    x.map2_(x, x, lambda a, b, c: a + b + c); x.new(); x.new(2, 3).shape; x.new([1, 2]); x.new(y); x.int().new([1.5])
    x.new(torch.Size([2])).shape; x.new(2, device="cpu").shape; x.new(torch.FloatStorage([1.5]))
    x.new_empty_strided((2, 3), (1, 2)).stride(); x.int().new_empty_strided((2, 3), (1, 2)).dtype
    torch.empty_strided((2, 3), (1, 2)).stride()
    torch.empty_strided((2, 3), (1, 2), dtype=torch.int16, requires_grad=False).dtype
    torch.empty_strided((2, 3), (0, 1)).fill_(1); torch.empty_strided((2, 3), (1,))
    torch.empty_strided((2, 3), (-1, 1)); torch.empty_strided((), ()).shape; torch.empty_strided((0, 3), (3, 1)).shape
    torch.empty_permuted((2, 3, 4), (2, 0, 1)).stride(); torch.empty_permuted((2, 3, 4), (2, 0))
    torch.empty_permuted((2, 3, 4), (2, 0, 0)); torch.empty_permuted((2, 3, 4), (2, 0, 3))
    torch.zeros(2).module_load(torch.ones(2)); torch.zeros(2).module_load(torch.ones(2), assign=True); x.module_load(y)
    x.get_device(), torch.get_device(x); type(x.as_subclass(torch.nn.Parameter)) is torch.nn.Parameter
    (g * 2).as_subclass(torch.Tensor); x.as_subclass(int); x.as_subclass(3)
    x.is_distributed(), torch.is_distributed(x); x.to_dense(); x.to_dense(dtype=torch.float64); x.int().dequantize()
    x.coalesce(); x.is_coalesced(); x.indices(); x.values(); x.crow_indices(); x.col_indices()
    x.sparse_dim(), x.view(2, 3).dense_dim(); x._nnz(); x.q_scale(); x.smm(x); x.xpu(); x.mtia(); x.ipu()
    x.record_stream(None); x.is_same_size(y), torch.is_same_size(x, x + 1); x.is_nonzero()
    torch.ones(1).is_nonzero(), torch.is_nonzero(torch.zeros(1, 1)); torch.zeros(0).is_nonzero(); x.grad_dtype; x.name
    x.volatile; x.is_xla, x.is_ipu, x.is_mtia, x.is_vulkan, x.is_maia, x.is_sparse_csr
    1.0 in x, 9 in x, x[0] in x, True in x; "a" in x; x.__array_wrap__(np.ones(2, bool)); tuple(x.__dlpack_device__())
    g.__dlpack__(); x.__dlpack__(stream=1); torch.from_dlpack(x); torch.from_dlpack(x).data_ptr() == x.data_ptr()
    torch.from_dlpack(x, copy=True).data_ptr() == x.data_ptr(); torch.from_dlpack(x, device="cpu")
    torch.from_dlpack(x[::2]); torch.from_dlpack(np.arange(3)); torch.from_dlpack(np.array([True]))
    torch.from_dlpack(np.arange(3).astype(">i4")); torch.from_dlpack([1])
    torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x))
    torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x)).add_(1); np.from_dlpack(x)
    x.__cuda_array_interface__; hasattr(x, "__cuda_array_interface__")
    torch.zeros(2, 3, 4, 5).contiguous(memory_format=torch.channels_last).stride()
    torch.zeros(2, 3, 4, 5).clone(memory_format=torch.channels_last).stride()
    torch.zeros(2, 3, 4, 5).to(memory_format=torch.channels_last).add(1).stride()
    torch.empty_like(torch.zeros(2, 3, 4, 5), memory_format=torch.channels_last).stride()
    torch.zeros(2, 1, 4, 5).is_contiguous(memory_format=torch.channels_last)
    torch.zeros(2, 3, 4, 5, 6).to(memory_format=torch.channels_last_3d).stride()
    torch.zeros(2, 3, 4).to(memory_format=torch.channels_last); torch.from_numpy(np.array([object()]))
    torch.tensor(np.array(["a"]))
"""


def evaluate(text: str, torch: Any) -> Any:
    names = {
        "torch": torch, "np": np, "x": torch.arange(6.0), "y": torch.zeros(2), "g": torch.ones(3, requires_grad=True),
    }  # fmt: skip
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "TypedStorage is deprecated")  # once in a process, in both
        return eval(text, names)


@pytest.mark.parametrize("text", expressions(SAME))
@compared
def test_same_as_pytorch(torch: Any, text: str) -> Any:
    return evaluate(text, torch)


def test_a_storage_is_the_tensors_memory() -> None:
    x = tinytorch.zeros(4)
    x.untyped_storage()[3] = 64  # the high byte of the first element, little-endian: 2.0
    assert x.tolist() == [2.0, 0.0, 0.0, 0.0]
    bytes_ = x[2:].untyped_storage()
    assert bytes_ == x.untyped_storage() and hash(bytes_) == hash(x.untyped_storage())
    bytes_.fill_(0)
    assert x.tolist() == [0.0] * 4


def test_set_shares_memory_and_resize_keeps_it() -> None:
    x, y = tinytorch.zeros(6), tinytorch.ones(2)
    y.set_(x, 2, (2, 2))
    y[0, 0] = 5
    assert x.tolist() == [0, 0, 5, 0, 0, 0]
    y.resize_(1)
    y[0] = 7
    assert x[2].item() == 7
    y.resize_(10)  # more than there is: new memory, with what was there
    assert y[:4].tolist() == [7, 0, 0, 0] and x.shape == (6,)
    y[0] = 1
    assert x[2].item() == 7


def test_storages_are_copied_and_pickled() -> None:
    for made in (tinytorch.UntypedStorage([1, 2]), tinytorch.LongStorage([1, 2])):
        for other in (copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
            assert other.tolist() == [1, 2] and type(other) is type(made)
            other[0] = 5
            assert made[0] == 1


def test_dlpack_shares_memory_both_ways() -> None:
    array = np.zeros(3)
    x = tinytorch.from_dlpack(array)
    x[0] = 1
    array[1] = 2
    assert array.tolist() == x.tolist() == [1, 2, 0]
    back = np.from_dlpack(x)
    x[2] = 3  # (NumPy before 2.2.5 calls `back` read-only)
    assert back[2] == 3
    for capsule in (tinytorch.utils.dlpack.to_dlpack(x), x.__dlpack__()):  # of the newer and the older kind
        y = tinytorch.utils.dlpack.from_dlpack(capsule)
        y[0] += 9
        with pytest.raises((RuntimeError, ValueError)):
            tinytorch.utils.dlpack.from_dlpack(capsule)  # taken up once
    assert array[0] == 19


def test_memory_from_dlpack_outlives_its_owner() -> None:
    numbers = list(range(10_000))
    x = tinytorch.utils.dlpack.from_dlpack(np.arange(10_000).__dlpack__())
    tinytorch.arange(10_000, 20_000)  # would lie where the owner did
    assert x.tolist() == numbers


def test_what_its_owner_calls_read_only_is_not_written_to() -> None:
    array = np.zeros(2)
    array.flags.writeable = False
    x = tinytorch.from_dlpack(array)
    with pytest.raises(ValueError, match="read-only"):
        x[0] = 1


@needs_oracle
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_dlpack_with_pytorch_itself(dtype: str) -> None:
    import torch

    theirs = torch.zeros(2, 3, dtype=getattr(torch, dtype))
    ours = tinytorch.from_dlpack(theirs.t())
    ours[2, 1] = 4
    assert theirs[1, 2].item() == 4 and ours.stride() == (1, 3)
    again = torch.from_dlpack(tinytorch.from_dlpack(theirs))
    assert again.data_ptr() == theirs.data_ptr()


def test_as_subclass_passes_the_gradient() -> None:
    class Mine(tinytorch.Tensor):
        pass

    x = tinytorch.ones(2, requires_grad=True)
    made = (x * 2).as_subclass(Mine)
    assert isinstance(made, Mine)
    made.sum().backward()
    assert x.grad.tolist() == [2, 2]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="memory is shared by forking")
def test_forked_processes_share_memory() -> None:
    x = tinytorch.zeros(3)
    mine = tinytorch.zeros(3)
    x.share_memory_()
    child = os.fork()
    if child == 0:
        x[1] = 5
        mine[1] = 5
        os._exit(0)
    os.waitpid(child, 0)
    assert x.tolist() == [0, 5, 0] and mine.tolist() == [0, 0, 0]
    assert x.is_shared() and not mine.is_shared() and x[1:].is_shared()
    refused(NotImplementedError, "owns the memory", mine[1:].share_memory_)


def test_layouts_that_there_are_not_say_so() -> None:
    refused(NotImplementedError, "has strided and sparse layouts", tinytorch.ones(2).to_mkldnn)


def test_from_file(tmp_path: Path) -> None:
    path = tmp_path / "numbers"
    x = tinytorch.from_file(str(path), shared=True, size=4, dtype=tinytorch.int32)
    assert x.tolist() == [0, 0, 0, 0]
    x[1] = 7
    y = tinytorch.from_file(str(path), shared=False, size=4, dtype=tinytorch.int32)
    assert y.tolist() == [0, 7, 0, 0]
    y[0] = 1  # stays in this process
    assert x[0].item() == 0
    assert tinytorch.UntypedStorage.from_file(str(path), True, 8).tolist() == [0, 0, 0, 0, 7, 0, 0, 0]
    with pytest.raises(RuntimeError):
        tinytorch.from_file(str(tmp_path / "absent"), size=1)
    refused(RuntimeError, "smaller", tinytorch.from_file, str(path), size=100)


def test_the_old_storage_warns() -> None:
    from tinytorch.ops import storage

    storage._warned[0] = False
    with pytest.warns(UserWarning, match="TypedStorage is deprecated"):
        tinytorch.ones(1).storage()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tinytorch.ones(1).storage()  # once in a process


@compared
def test_deep_copies_share_memory_as_their_originals(torch: Any) -> Any:
    x = torch.arange(12.0).reshape(3, 4)
    views = [x[1:, ::2], x, x.t(), x.flatten()[5:], x.half()]
    copies = copy.deepcopy(views)
    copies[1][1, 2] = 99.0
    alone = copy.deepcopy(x[1])
    memory = [(c.stride(), c.storage_offset(), c.untyped_storage().nbytes()) for c in copies]
    return [views, copies, memory, alone, alone.untyped_storage().nbytes()]


def test_asarray_of_a_storage_shares_its_memory() -> None:
    x = tinytorch.arange(4.0)
    part = tinytorch.asarray(x.untyped_storage()[4:12], dtype=tinytorch.uint8)
    assert part.shape == (8,) and part.view(tinytorch.float32).tolist() == [1.0, 2.0]
    part.view(tinytorch.float32)[0] = 7
    assert x.tolist() == [0.0, 7.0, 2.0, 3.0]
