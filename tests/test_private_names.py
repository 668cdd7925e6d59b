"""Names that PyTorch does not document and packages use: that they exist, and do what PyTorch's do."""

from __future__ import annotations

import importlib
import io
import mmap
import pickle
import warnings
from pathlib import Path
from typing import Any

import pytest

import tinytorch
from tests.oracle import needs_oracle, torch


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
