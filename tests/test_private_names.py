"""Names that PyTorch does not document and packages use: that they exist, and do what PyTorch's do."""

from __future__ import annotations

import importlib
import io
import mmap
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinytorch
from tests.oracle import needs_oracle, torch


def outcome(expression: str, library: Any) -> Any:
    """Return what an expression gives, with tensors and storages as lists, or the class and text of its error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # typed storages are deprecated
            unscale = library._amp_foreach_non_finite_check_and_unscale_
            return plain(eval(expression, {"torch": library, "np": np, "UNSCALE": unscale}))
    except Exception as error:
        return type(error).__name__, str(error)


def plain(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [plain(each) for each in value]
    if hasattr(value, "tolist"):
        return value.tolist()
    return value


EXPRESSIONS = """
    torch._segment_reduce(torch.tensor([1.0, 2.0, 3.0]), "sum", lengths=torch.tensor([1, 2]))
    torch._C.has_lapack
    torch._C._nn.gelu(torch.zeros(2), approximate="tanh")
    torch._C._nn.linear(torch.ones(2), torch.ones(3, 2))
    torch.autograd.functional._construct_standard_basis_for((torch.ones(2), torch.ones(1)), (2, 1))
    torch.autograd.functional._construct_standard_basis_for((torch.ones(2).double(),), (2,))
    torch.serialization.get_default_mmap_options()
    torch.serialization.set_default_mmap_options(5)
    torch.utils.set_module(torch.ones, 1)
    torch._shape_as_tensor(torch.ones(2, 3))
    torch._cast_Long(torch.tensor([1.5]))
    torch._cast_Double(torch.tensor([1.5])).dtype is torch.float64
    torch._amp_update_scale_(torch.tensor(8.0), torch.tensor(3, dtype=torch.int32), torch.tensor(0.0), 2.0, 0.5, 4)
    torch._amp_update_scale_(torch.tensor(8.0), torch.tensor(1, dtype=torch.int32), torch.tensor(1.0), 2.0, 0.5, 4)
    torch._amp_update_scale_(torch.tensor(3e38), torch.tensor(3, dtype=torch.int32), torch.tensor(0.0), 2.0, 0.5, 4)
    [g := [torch.ones(1)], f := torch.zeros(1), UNSCALE(g, f, torch.tensor(0.5))]
    [g := [torch.tensor([np.inf])], f := torch.zeros(1), UNSCALE(g, f, torch.tensor(0.5))]
    torch._amp_foreach_non_finite_check_and_unscale_([torch.ones(1)], torch.zeros(2), torch.tensor(0.5))
    torch.UntypedStorage.from_buffer(b"ab", dtype=torch.int16, byte_order="big")
    torch.UntypedStorage.from_buffer(b"ab")
    torch.UntypedStorage.from_buffer(b"ab", dtype=torch.int16)
    torch.UntypedStorage.from_buffer(b"ab", dtype=torch.int16, byte_order="x")
    torch.UntypedStorage.from_buffer(b"abcd", "little", 1, 2, dtype=torch.int16)
    torch.UntypedStorage.from_buffer(b"abcd", "little", 5, dtype=torch.uint8)
    torch.UntypedStorage.from_buffer(b"abcd", "little", 0, 9, dtype=torch.uint8)
    torch.UntypedStorage.from_buffer(b"abc", "little", dtype=torch.int16)
    torch.UntypedStorage.from_buffer(b"", "little", dtype=torch.int16)
    torch.UntypedStorage.from_buffer(b"a\\0c", dtype=torch.bool)
    torch.ShortStorage.from_buffer(b"abcd", byte_order="big")
    torch.ShortStorage._from_buffer(b"abcd", "big")
    torch.ShortStorage._from_buffer(b"abcd", dtype=torch.int8, byte_order="big")
    torch.ByteStorage._from_buffer(b"abcd")
    torch.TypedStorage.from_buffer(b"abcd", dtype=torch.int16, byte_order="big")
    torch.TypedStorage._from_buffer(b"abcd", byte_order="little")
    [s := torch.UntypedStorage([1, 2, 3, 4]), s.byteswap(torch.int16)]
    torch.UntypedStorage._new_shared(3).is_shared()
    torch._foreach_add([torch.ones(2)], np.float32(2))
    torch._foreach_mul([torch.ones(2)], np.int64(2))
    torch._foreach_add([torch.ones(2)], np.bool_(True))
    torch.nn.functional.max_unpool2d(torch.ones(1, 0, 2, 2), torch.zeros(1, 0, 2, 2, dtype=torch.int64), 2)
    torch.nn.functional.max_unpool2d(torch.ones(1, 1, 0, 2), torch.zeros(1, 1, 0, 2, dtype=torch.int64), 2)
    torch.nn.functional.max_unpool2d(torch.ones(0, 1, 2, 2), torch.zeros(0, 1, 2, 2, dtype=torch.int64), 2)
    torch.nn.functional.max_unpool1d(torch.ones(1, 0, 2), torch.zeros(1, 0, 2, dtype=torch.int64), 2)
    torch.nn.functional.max_unpool3d(torch.ones(1, 0, 2, 2, 2), torch.zeros(1, 0, 2, 2, 2, dtype=torch.int64), 2)
    torch.nn.functional.max_unpool3d(torch.ones(1, 1, 2, 2, 2), torch.zeros(1, 1, 2, 2, 2), 2)
"""


@needs_oracle
@pytest.mark.parametrize("expression", [line.strip() for line in EXPRESSIONS.strip().splitlines()])
def test_an_expression_gives_what_it_gives_in_pytorch(expression: str) -> None:
    assert outcome(expression, tinytorch) == outcome(expression, torch)


@needs_oracle
def test_bytes_saved_by_pytorch_are_loaded() -> None:
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # typed storages are deprecated
        torch.save(torch.tensor([1.0, 2.0]).untyped_storage(), buffer)
        loaded = tinytorch.storage._load_from_bytes(buffer.getvalue())
    assert loaded.tolist() == [0, 0, 128, 63, 0, 0, 0, 64]


def test_storages_survive_pickling() -> None:
    storage = tinytorch.tensor([1.0, 2.0]).untyped_storage()
    assert pickle.loads(pickle.dumps(storage)).tolist() == storage.tolist()


def test_writes_reach_a_file_that_is_mapped_shared(tmp_path: Path) -> None:
    path = str(tmp_path / "x.pt")
    tinytorch.save(tinytorch.zeros(3), path)
    tinytorch.load(path, mmap=True).fill_(7)
    assert tinytorch.load(path).tolist() == [0, 0, 0]
    with tinytorch.serialization.set_default_mmap_options(mmap.MAP_SHARED):
        tinytorch.load(path, mmap=True).fill_(7)
    assert tinytorch.load(path, mmap=True).tolist() == [7, 7, 7]
    assert tinytorch.serialization.get_default_mmap_options() == mmap.MAP_PRIVATE


def test_frozen_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    backends = importlib.import_module("tinytorch.backends")
    allowed = vars(backends)["__allow_nonbracketed_mutation"]
    monkeypatch.setattr(backends, "_may_change", [True])
    assert not backends.flags_frozen()
    backends.disable_global_flags()
    assert backends.flags_frozen()
    with allowed():
        assert not backends.flags_frozen()
    assert backends.flags_frozen()


def test_decorators_of_the_scripting_compiler_return_the_function() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        module = importlib.import_module("tinytorch._jit_internal")
    assert module._copy_to_script_wrapper(len) is len


def test_settings_of_compilers_can_be_changed_for_a_while() -> None:
    config = importlib.import_module("tinytorch._dynamo.config")
    before = config.cache_size_limit
    with config.patch(cache_size_limit=3), config.patch({"verbose": True}), config.patch("recompile_limit", 5):
        assert (config.cache_size_limit, config.verbose, config.recompile_limit) == (3, True, 5)
    assert (config.cache_size_limit, config.verbose) == (before, False)

    @config.patch(cache_size_limit=4)
    def inside() -> Any:
        return config.cache_size_limit

    assert inside() == 4 and config.cache_size_limit == before
    with pytest.raises(AttributeError, match="does not exist"):
        config.patch(no_such_setting=1)


def test_options_of_printing_for_a_while() -> None:
    printing = importlib.import_module("tinytorch._tensor_str")
    with printing.printoptions(precision=2):
        assert str(tinytorch.tensor(1 / 3)) == "tensor(0.33)"
    assert str(tinytorch.tensor(1 / 3)) == "tensor(0.3333)"
