"""PyTorch's formats before 1.6: each library reads the files of both, and damaged files are errors."""

from __future__ import annotations

import contextlib
import io
import pickle
import struct
import tarfile
from collections import Counter, OrderedDict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinytorch as tt
from tests.oracle import needs_oracle, torch
from tests.same import refused


def written(library: Any, obj: Any, protocol: int = 2) -> io.BytesIO:
    file = io.BytesIO()
    library.save(obj, file, pickle_protocol=protocol, _use_new_zipfile_serialization=False)
    file.seek(0)
    return file


def tensors(library: Any) -> dict[str, Any]:
    base = library.arange(12.0).reshape(3, 4)
    kinds = [library.float16, library.float64, library.int8, library.int64, library.bool]
    kinds += [library.bfloat16] if find_spec("ml_dtypes") else []
    return {
        "base": base, "column": base[:, 1], "turned": base.t(), "empty": library.ones(0, 2), "scalar": base[2, 3],
        "parameter": library.nn.Parameter(base[1:].detach()), "again": base, "size": base.shape,
        "text": "été", "none": None,
        "kinds": [library.ones(3).to(kind) for kind in kinds], "leaf": library.ones(2, requires_grad=True),
        "deep": OrderedDict(a=(1, 2.5, {"b": {3}})),
    }  # fmt: skip


def described(obj: Any) -> Any:
    """Return an object in a form that can be compared between the libraries."""
    if hasattr(obj, "untyped_storage"):
        values = obj.detach().float().tolist()
        return type(obj).__name__, str(obj.dtype), values, obj.stride(), obj.requires_grad
    if isinstance(obj, dict):
        return {key: described(value) for key, value in obj.items()}
    return [described(item) for item in obj] if isinstance(obj, list) else obj


def check_shared(loaded: dict[str, Any]) -> None:
    assert loaded["base"] is loaded["again"]
    loaded["base"][1, 1] = 100.0
    for name, place in (("column", 1), ("turned", (1, 1)), ("parameter", (0, 1))):
        assert loaded[name].detach()[place] == 100.0


@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_what_is_written_is_read(weights_only: bool, protocol: int) -> None:
    loaded = tt.load(written(tt, tensors(tt), protocol), weights_only=weights_only)
    assert described(loaded) == described(tensors(tt))
    check_shared(loaded)


@needs_oracle
@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("ours_reads", [True, False])
def test_either_library_reads_the_others_files(ours_reads: bool, weights_only: bool) -> None:
    reader, writer = (tt, torch) if ours_reads else (torch, tt)
    loaded = reader.load(written(writer, tensors(writer)), weights_only=weights_only)
    assert described(loaded) == described(tensors(reader))
    check_shared(loaded)


@needs_oracle
@pytest.mark.filterwarnings("ignore:TypedStorage")
def test_modules_and_storages_of_pytorch() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
    loaded = tt.load(written(torch, model), weights_only=False)  # the file contains the sources of its classes
    assert isinstance(loaded[0], tt.nn.Linear)
    assert described(dict(loaded.state_dict())) == described(dict(model.state_dict()))
    x = torch.arange(3.0)
    storage, same = tt.load(written(torch, [x.storage(), x]), weights_only=False)
    assert storage.tolist() == [0, 1, 2]
    storage[1] = 5.0
    assert same.tolist() == [0, 5, 2]


@pytest.mark.parametrize("weights_only", [True, False])
def test_several_objects_in_one_file_behind_other_bytes(weights_only: bool, tmp_path: Path) -> None:
    path = tmp_path / "several.pt"
    with open(path, "wb") as file:
        file.write(b"other bytes")
        for value in (1.0, 2.0):
            tt.save(tt.full((3,), value), file, _use_new_zipfile_serialization=False)
    for buffering in (-1, 0):
        with open(path, "rb", buffering=buffering) as file:
            file.seek(11)
            assert [tt.load(file, weights_only=weights_only).tolist() for _ in range(2)] == [[1.0] * 3, [2.0] * 3]
            assert not file.read()


def test_a_path_and_where_storages_go(tmp_path: Path) -> None:
    path, seen = tmp_path / "x.pt", []
    tt.save([tt.ones(2), tt.zeros(3)], path, _use_new_zipfile_serialization=False)
    loaded = tt.load(path, map_location=lambda storage, location: seen.append((storage.nbytes(), location)))
    assert (loaded[0].tolist(), loaded[1].tolist(), seen) == ([1, 1], [0, 0, 0], [(8, "cpu"), (12, "cpu")])
    refused(RuntimeError, r"CUDA device but torch.cuda.is_available", tt.load, path, map_location="cuda")
    refused(RuntimeError, "mmap can only be used with files saved with", tt.load, path, mmap=True)
    with pytest.raises(FileNotFoundError):
        tt.save(1, tmp_path / "no" / "x.pt", _use_new_zipfile_serialization=False)


def test_a_file_cut_or_changed_anywhere_is_an_error_or_harmless() -> None:
    content = written(tt, tensors(tt)).getvalue()
    for end in range(len(content)):
        with pytest.raises((RuntimeError, pickle.UnpicklingError, EOFError)):
            tt.load(io.BytesIO(content[:end]))
    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] ^= 0x41
        with contextlib.suppress(RuntimeError, pickle.UnpicklingError, EOFError, AssertionError):
            tt.load(io.BytesIO(changed))


@needs_oracle
@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("content", [
    pickle.dumps({"a": 1}, 2), pickle.dumps(0x1950A86A20F9469CFC6C, 2) + pickle.dumps(7, 2), b"text",
    pickle.dumps(0x1950A86A20F9469CFC6C, 2),
], ids=["another pickle", "another version", "text", "cut"])  # fmt: skip
def test_foreign_files_are_refused_as_in_pytorch(content: bytes, weights_only: bool) -> None:
    raised: list[tuple[type[Exception], str]] = []
    for library in (tt, torch):
        with pytest.raises(Exception) as caught:
            library.load(io.BytesIO(content), weights_only=weights_only)
        raised.append((caught.type, str(caught.value)))
    if not weights_only or raised[1][0] is RuntimeError:  # (otherwise a damaged file is an UnpicklingError here)
        assert raised[0][0] is raised[1][0]
    if raised[1][0] is RuntimeError:
        assert raised[0] == raised[1]


@needs_oracle
@pytest.mark.filterwarnings("ignore:TypedStorage")
def test_storages_that_are_part_of_another_and_bytes_for_text() -> None:
    """Files of Python 2 and PyTorch before 0.4."""

    class Pickler(pickle._Pickler):
        def persistent_id(self, obj: Any) -> Any:
            return obj.identity if isinstance(obj, Part) else None

    class Part:
        def __init__(self, *view: Any) -> None:
            self.identity = (b"storage", torch.FloatStorage, b"7", b"cpu", 6, view or None)

    file = io.BytesIO()
    for fact in (0x1950A86A20F9469CFC6C, 1001, {}):
        pickle.dump(fact, file, 2)
    Pickler(file, 3).dump([Part(), Part(b"8", 2, 3), Part(b"8", 2, 3)])
    pickle.dump([b"7"], file, 3)
    file.write(struct.pack("<q6f", 6, *range(6)))
    for library in (torch, tt):
        file.seek(0)
        whole, part, same = library.load(file, weights_only=False)
        assert (whole.tolist(), part.tolist()) == ([0, 1, 2, 3, 4, 5], [2, 3, 4])
        part[0] = 9.0
        assert (same[0], whole[2]) == (9, 9)


def tar_of(path: Path) -> None:
    """Write a file as PyTorch 0.1 did: the storages, views of them, the tensors, and a pickle that refers to these."""

    class Pickler(pickle._Pickler):
        def persistent_id(self, obj: Any) -> Any:
            return str(obj) if type(obj) is int else None

    named = b"\x80\2(K\5X\3\0\0\0cpuctorch\nFloatStorage\nt."
    storages = pickle.dumps(1, 2) + named + struct.pack("<q6f", 6, *range(6)) + pickle.dumps([(6, 5, 1, 4)], 2)
    place = b"\x80\2(K%cK%cctorch\nFloatTensor\nt."
    found = pickle.dumps(2, 2)
    found += place % (b"\7", b"\5") + struct.pack("<i4x5q", 2, 2, 3, 3, 1, 0)
    found += place % (b"\10", b"\6") + struct.pack("<i4x3q", 1, 2, 2, 1)
    named_by = io.BytesIO()
    Pickler(named_by, 2).dump(OrderedDict(a=7, b=[8]))
    with tarfile.open(path, "w:", format=tarfile.PAX_FORMAT) as tar:
        for name, content in (("storages", storages), ("tensors", found), ("pickle", named_by.getvalue())):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))


def test_a_tar_archive(tmp_path: Path) -> None:
    path = tmp_path / "old.pt"
    tar_of(path)
    refused(RuntimeError, r"weights_only=True`` with files saved in the legacy .tar format", tt.load, path)
    loaded = tt.load(path, weights_only=False)
    assert (loaded["a"].tolist(), loaded["b"][0].tolist()) == ([[0, 1, 2], [3, 4, 5]], [2, 4])
    loaded["a"][1, 1] = 9.0
    assert loaded["b"][0].tolist() == [2, 9]


@needs_oracle
def test_pytorch_reads_the_tar_archive_so(tmp_path: Path) -> None:
    tar_of(tmp_path / "old.pt")
    ours, theirs = (library.load(tmp_path / "old.pt", weights_only=False) for library in (tt, torch))
    assert described([ours["a"], *ours["b"]]) == described([theirs["a"], *theirs["b"]])


def test_classes_as_values() -> None:
    classes = [OrderedDict, Counter, set, bytearray, complex, {"size": tt.Size, "device": tt.device}]
    for legacy in (True, False):
        file = io.BytesIO()
        tt.save(classes, file, _use_new_zipfile_serialization=not legacy)
        file.seek(0)
        assert tt.load(file) == classes


@pytest.mark.filterwarnings("ignore:TypedStorage")
def test_bytes_and_arrays_of_memory() -> None:
    loaded = tt.load(written(tt, [b"\0\xff", tt.ones(2).untyped_storage(), tt.ones(2).storage()]), weights_only=False)
    assert loaded[0] == b"\0\xff"
    assert np.frombuffer(bytes(loaded[1].tolist()), np.float32).tolist() == loaded[2].tolist() == [1, 1]


def test_a_storage_longer_than_the_file() -> None:
    file = written(tt, tt.zeros(100_000, dtype=tt.uint8))
    file.truncate(99_999)
    refused(RuntimeError, "expected 1 more bytes", tt.load, file)


def test_references_that_are_neither_classes_nor_storages() -> None:
    content = written(tt, tt.ones(1)).getvalue()
    for old, new in ((b"X\7\0\0\0storage", b"X\6\0\0\0module"), (b"X\7\0\0\0storage", b"X\7\0\0\0another")):
        assert old in content
        file = io.BytesIO(content.replace(old, new))
        refused(pickle.UnpicklingError, "Unknown typename", tt.load, file)
