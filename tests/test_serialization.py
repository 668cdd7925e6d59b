"""Checkpoints: round trips, also with PyTorch, and files that are damaged or malicious."""

from __future__ import annotations

import builtins
import codecs
import collections
import io
import os
import pickle
import stat
import struct
import sys
import zipfile
from collections import Counter, OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinytorch as tt
from tests.oracle import needs, needs_oracle, torch
from tests.same import compared, refused
from tinytorch import serialization as serialization
from tinytorch.core.tensor import Size, wrap
from tinytorch.nn.parameter import Parameter
from tinytorch.serialization import add_safe_globals, clear_safe_globals, get_safe_globals, load, safe_globals, save

DTYPES = ["float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool"]


def file_of(obj: Any, **options: Any) -> io.BytesIO:
    buffer = io.BytesIO()
    save(obj, buffer, **options)
    return io.BytesIO(buffer.getvalue())


def round_trip(obj: Any, **options: Any) -> Any:
    return load(file_of(obj, **options))


def grid() -> np.ndarray[Any, Any]:
    return np.arange(24.0, dtype=np.float32).reshape(4, 6)


def records(file: io.BytesIO) -> dict[str, bytes]:
    with zipfile.ZipFile(file) as archive:
        found = {name.removeprefix("archive/"): archive.read(name) for name in archive.namelist()}
    file.seek(0)
    return found


def archive_of(contents: dict[str, bytes]) -> io.BytesIO:
    """Return an archive of records, written by Python's zipfile."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in contents.items():
            archive.writestr(f"archive/{name}", data)
    buffer.seek(0)
    return buffer


def with_pickle(program: bytes) -> io.BytesIO:
    """Return a checkpoint of one storage of four floats, with a given pickle program."""
    return archive_of({"data.pkl": program, "byteorder": b"little", "data/0": bytes(16), "version": b"3\n"})


def storage_op(key: str = "0", kind: str = "FloatStorage", numel: int = 4) -> bytes:
    return (
        b"(X\7\0\0\0storage" + f"ctorch\n{kind}\n".encode()
        + b"X" + struct.pack("<I", len(key)) + key.encode() + b"X\3\0\0\0cpu"
        + b"J" + struct.pack("<i", numel) + b"tQ"
    )  # fmt: skip


def tensor_program(offset: bytes, shape: bytes, strides: bytes, storage: bytes = b"") -> bytes:
    """Return the pickle of one tensor; the arguments are opcodes."""
    return (
        b"\x80\2ctorch._utils\n_rebuild_tensor_v2\n(" + (storage or storage_op())
        + offset + shape + strides + b"\x89ccollections\nOrderedDict\n)RtR."
    )  # fmt: skip


# Round trips --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (5,), (2, 3), (2, 1, 3, 2)])
def test_tensors_of_every_dtype_and_shape_come_back(dtype: str, shape: tuple[int, ...]) -> None:
    array = np.array(np.random.default_rng(0).integers(0, 100, shape)).astype(dtype)
    found = round_trip(wrap(array))
    assert type(found) is tt.Tensor and found._array.dtype == array.dtype
    assert found._array.shape == shape
    np.testing.assert_array_equal(found._array, array)
    assert not found.requires_grad
    found._array[...] = 1  # the memory is writable and not shared
    assert array.size == 0 or not np.shares_memory(found._array, array)


def test_other_data_comes_back_as_it_was() -> None:
    data = {
        "numbers": [1, -1, 255, 65536, 2**31, -(2**70), 1.5, float("inf"), 2j, True, False, None],
        "text": ["", "plain", "éß✓"], "bytes": [b"", b"\0\xff", bytearray(b"ab")], ("a", 1): (1, (), (2, (3,))),
        3: {1, 2}, "counts": Counter("abracadabra"),
        "types": [tt.float32, tt.int64, tt.bool, tt.device("cpu"), tt.device("cuda:1")], "size": Size([2, 3]),
        "ordered": OrderedDict([("z", 1), ("a", 2)]),
    }  # fmt: skip
    found = round_trip(data)
    assert found == data
    assert repr(found) == repr(data)  # the same types and the same order
    assert found["types"][0] is tt.float32


def test_objects_that_appear_twice_are_one_object_again() -> None:
    shared, weight = [1], wrap(np.ones(2))
    cycle: list[Any] = [shared, shared, weight, weight]
    cycle.append(cycle)
    found = round_trip(cycle)
    assert found[0] is found[1] and found[2] is found[3] and found[4] is found


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_every_protocol_reads_back(protocol: int) -> None:
    data = {"a": [b"xy", bytearray(b"z"), "text", {1}, (1, 2, 3, 4)], "t": wrap(grid())}
    found = round_trip(data, pickle_protocol=protocol)
    assert found["a"] == data["a"]
    np.testing.assert_array_equal(found["t"]._array, grid())


def test_views_share_memory_again_and_keep_their_strides() -> None:
    base = grid()
    arrays = [base, base[1:3, ::2], base.T, base[2], base[3, 5, ...], base.reshape(-1)[5:9]]
    file = file_of([wrap(array) for array in arrays])
    assert [name for name in records(file) if name.startswith("data/")] == ["data/0"]
    found = [tensor._array for tensor in load(file)]
    for ours, array in zip(found, arrays, strict=True):
        np.testing.assert_array_equal(ours, array)
        assert ours.strides == array.strides
    found[0][...] = -1
    assert all((ours == -1).all() for ours in found)


@pytest.mark.parametrize(("array", "elements"), [
    (np.asfortranarray(grid()), 24), (grid().reshape(2, 2, 6).transpose(2, 0, 1).copy("K"), 24),
    (np.broadcast_to(np.float32(2), (3, 4)), 1), (np.lib.stride_tricks.sliding_window_view(grid(), 3, axis=1), 24),
    (grid()[::-1, ::-2], 12),  # negative strides: PyTorch has none, so a copy
    (grid()[:1][::-1], 24),  # a negative stride that is never used
    (grid().astype(">f4"), 24), (grid().view(np.int32), 24),
    (np.frombuffer(bytes(8) + grid().tobytes()[:12], np.float32)[2:], 5),
])  # fmt: skip
def test_memory_layouts(array: np.ndarray[Any, Any], elements: int) -> None:
    file = file_of(wrap(array))
    assert len(records(file)["data/0"]) == elements * 4
    np.testing.assert_array_equal(load(file)._array, array)


def test_a_view_of_another_dtype_comes_back_with_its_memory() -> None:
    for base, dtype in ((tt.arange(4.0, dtype=tt.float64), tt.int16), (tt.arange(4, dtype=tt.int16), tt.int32)):
        view = base.view(dtype)[1:]
        found = round_trip(view)
        assert (found.tolist(), found.storage_offset()) == (view.tolist(), 1)
        assert found.untyped_storage().nbytes() == base.nbytes


def test_one_memory_as_two_dtypes_is_refused() -> None:
    base = grid()
    refused(RuntimeError, "view the same data as different types", file_of, [wrap(base), wrap(base.view(np.int32))])


def test_parameters_and_leaves_come_back_as_what_they_were() -> None:
    weight = Parameter(wrap(np.ones((2, 2), np.float32)))
    frozen = Parameter(wrap(np.ones(2, np.float32)), requires_grad=False)
    leaf = wrap(np.zeros(3)).requires_grad_()
    found = round_trip([weight, frozen, leaf, weight])
    assert [type(each) for each in found] == [Parameter, Parameter, tt.Tensor, Parameter]
    assert [each.requires_grad for each in found] == [True, False, True, True]
    assert found[0] is found[3] and found[0].is_leaf and found[0].grad is None


def test_attributes_of_tensors_come_back() -> None:
    tensor, weight = wrap(np.ones(2)), Parameter(wrap(np.ones(2)))
    tensor.note, weight.no_decay = {"a": 1}, True
    found = round_trip([tensor, weight])
    assert found[0].note == {"a": 1} and found[1].no_decay is True


@needs("ml_dtypes")
def test_bfloat16_comes_back() -> None:
    array = np.arange(6.0).reshape(2, 3).astype(tt.bfloat16.numpy)
    found = round_trip([wrap(array), wrap(array[:, 1:])])
    assert found[0].dtype is tt.bfloat16
    np.testing.assert_array_equal(found[1]._array.astype(np.float32), [[1, 2], [4, 5]])
    if torch is not None:
        theirs = torch.load(file_of(wrap(array)))
        assert theirs.dtype is torch.bfloat16 and theirs.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_state_dicts_of_modules_and_optimizers_come_back() -> None:
    tt.manual_seed(0)
    model = tt.nn.Sequential(tt.nn.Linear(3, 4), tt.nn.ReLU(), tt.nn.Linear(4, 1))
    optimizer = tt.optim.Adam(model.parameters(), lr=0.1)
    inputs = tt.randn(5, 3)
    model(inputs).sum().backward()
    optimizer.step()
    found = round_trip({"model": model.state_dict(), "optimizer": optimizer.state_dict()})
    assert type(found["model"]) is OrderedDict
    assert found["model"]._metadata == model.state_dict()._metadata
    copy = tt.nn.Sequential(tt.nn.Linear(3, 4), tt.nn.ReLU(), tt.nn.Linear(4, 1))
    copy.load_state_dict(found["model"])
    resumed = tt.optim.Adam(copy.parameters(), lr=0.5)
    resumed.load_state_dict(found["optimizer"])
    for net, steps in ((model, optimizer), (copy, resumed)):
        steps.zero_grad()
        net(inputs).pow(2).sum().backward()
        steps.step()
    for a, b in zip(model.parameters(), copy.parameters(), strict=True):
        np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())


# The file -----------------------------------------------------------------------------------------


def test_records_are_stored_and_aligned_and_equal_contents_make_equal_files() -> None:
    data = {"a": wrap(grid()), "b": wrap(np.ones(3))}
    file = file_of(data)
    content = file.getvalue()
    assert file_of(data).getvalue() == content
    with zipfile.ZipFile(file) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        for entry in archive.infolist():
            assert entry.compress_type == zipfile.ZIP_STORED
            start = entry.header_offset
            name_length, extra_length = struct.unpack("<2H", content[start + 26 : start + 30])
            assert (start + 30 + name_length + extra_length) % 64 == 0
    assert names == [
        "archive/data.pkl", "archive/byteorder", "archive/data/0", "archive/data/1", "archive/version",
        "archive/.data/serialization_id",
    ]  # fmt: skip
    assert "byteorder" not in records(file_of(data, _disable_byteorder_record=True))


@pytest.mark.parametrize(("limit32", "limit16"), [(0, 0), (100, 3), (2000, 100), (10**6, 3), (2000, 10**6)])
def test_the_fields_for_files_beyond_4_gib(monkeypatch: pytest.MonkeyPatch, limit32: int, limit16: int) -> None:
    monkeypatch.setattr(serialization.archive, "_LIMIT32", limit32)
    monkeypatch.setattr(serialization.archive, "_LIMIT16", limit16)
    file = file_of([wrap(np.arange(1000.0)), wrap(np.ones(3))])
    assert b"PK\6\6" in file.getvalue()  # the end's fields of 64 bits
    with zipfile.ZipFile(file) as archive:
        assert archive.testzip() is None
    file.seek(0)
    np.testing.assert_array_equal(load(file)[0]._array, np.arange(1000.0))
    if torch is not None:
        file.seek(0)
        assert torch.load(file)[0].tolist() == list(range(1000))


class OnlyWrites:
    """The interface that PyTorch requires of a file for saving; `write` may accept fewer bytes than it gets."""

    def __init__(self, most: int) -> None:
        self.content, self.most = b"", most

    def write(self, data: Any) -> int:
        taken = bytes(data[: self.most])
        self.content += taken
        return len(taken)


def test_a_file_needs_no_more_than_write_and_may_write_in_parts(tmp_path: Path) -> None:
    file = OnlyWrites(most=7)
    save(wrap(grid()), file)  # type: ignore[arg-type]
    np.testing.assert_array_equal(load(io.BytesIO(file.content))._array, grid())
    with open(tmp_path / "a.pt", "wb") as buffered:
        save(wrap(grid()), buffered)
        np.testing.assert_array_equal(load(tmp_path / "a.pt")._array, grid())


class Answers:
    """A file whose `write` returns a given value, or raises a given error."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def write(self, data: Any) -> Any:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


class Raw(Answers, io.RawIOBase):
    """An unbuffered file."""


@pytest.mark.parametrize(("file", "words"), [
    (Answers(0), "0 were written"), (Answers(-1), "-1 were written"), (Answers(10**9), "1000000000 were written"),
    (Raw(None), "0 were written"),  # a non-blocking file that would block
    (Answers(OSError("disk full")), "^disk full$"),
])  # fmt: skip
def test_a_file_that_does_not_take_all_is_an_error(file: Any, words: str) -> None:
    refused(OSError, words, save, wrap(grid()), file)


@needs_oracle
@pytest.mark.parametrize("kind", ["reading", "text", "closed"])
def test_files_that_are_refused_as_in_pytorch(tmp_path: Path, kind: str) -> None:
    def message(library: Any) -> tuple[Any, str]:
        path = tmp_path / kind
        path.touch()
        with open(path, {"reading": "rb", "text": "w"}.get(kind, "wb")) as file:
            if kind == "closed":
                file.close()
            with pytest.raises((TypeError, ValueError, OSError)) as raised:
                library.save([1], file)
        assert path.read_bytes() == b""
        return raised.type, str(raised.value)

    assert message(tt) == message(torch)


class SlowFile:
    """A file without `readinto` that returns a few bytes at a time."""

    def __init__(self, file: io.BytesIO) -> None:
        self.file = file
        self.seek, self.tell = file.seek, file.tell

    def seekable(self) -> bool:
        return True

    def read(self, count: int = -1) -> bytes:
        return self.file.read(min(count, 50) if count >= 1000 else count)


def test_a_file_may_give_less_than_asked_for() -> None:
    file = SlowFile(file_of(wrap(np.arange(1000.0))))
    np.testing.assert_array_equal(load(file)._array, np.arange(1000.0))  # type: ignore[arg-type]


def test_a_checkpoint_behind_other_bytes_is_read_from_where_the_file_stands() -> None:
    buffer = io.BytesIO()
    buffer.write(b"header")
    save([1, wrap(np.ones(2))], buffer)
    buffer.seek(6)
    assert load(buffer)[0] == 1
    buffer.seek(0, io.SEEK_END)
    save("second", buffer)
    buffer.seek(6)
    refused(RuntimeError, "does not begin where the file is read from", load, buffer)


def test_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in (tmp_path / "a.pt", str(tmp_path / "b.pt")):
        save({"x": 1}, path)
        assert load(path) == {"x": 1}
    with open(tmp_path / "c.pt", "wb") as file:
        save([2], file)
    assert load(tmp_path / "c.pt") == [2]
    monkeypatch.chdir(tmp_path)
    save([1], "d.pt")
    assert load("d.pt") == [1] and sorted(os.listdir(tmp_path)) == ["a.pt", "b.pt", "c.pt", "d.pt"]


def test_mapped_files_are_read_when_used_and_never_written(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    save([wrap(grid()), wrap(grid()[1:])], path)
    found = load(path, mmap=True)
    np.testing.assert_array_equal(found[0]._array, grid())
    found[0]._array[...] = 7
    np.testing.assert_array_equal(load(path)[0]._array, grid())
    # Storages at unaligned addresses are copied.
    with zipfile.ZipFile(path) as archive:
        contents = {name[8:]: archive.read(name) for name in archive.namelist()}
    odd = tmp_path / "odd.pt"
    odd.write_bytes(archive_of({"x" * 64: b"", **contents}).getvalue())
    shifted = tmp_path / "shifted.pt"
    shifted.write_bytes(archive_of({"x" * 65: b"", **contents}).getvalue())
    for each in (odd, shifted):
        np.testing.assert_array_equal(load(each, mmap=True)[0]._array, grid())


def test_a_file_of_the_other_byte_order_is_converted() -> None:
    contents = records(file_of([wrap(grid()), wrap(np.arange(3))]))
    assert contents["byteorder"] == sys.byteorder.encode()
    contents["byteorder"] = {"little": b"big", "big": b"little"}[sys.byteorder]
    contents["data/0"] = grid().byteswap().tobytes()
    contents["data/1"] = np.arange(3).byteswap().tobytes()
    found = load(archive_of(contents))
    np.testing.assert_array_equal(found[0]._array, grid())
    np.testing.assert_array_equal(found[1]._array, np.arange(3))
    contents["byteorder"] = b"middle"
    refused(ValueError, "Unknown endianness type: middle", load, archive_of(contents))


# Safe writing -------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt(), MemoryError()])
def test_a_failed_save_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    path = tmp_path / "a.pt"
    save("old", path)
    before = path.read_bytes()

    def write_half(write: Callable[[Any], Any], records: Any) -> None:
        write(b"PK half of it")
        raise error

    monkeypatch.setattr(serialization.saving, "_write_archive", write_half)
    kind = RuntimeError if isinstance(error, OSError) else type(error)
    refused(kind, r"file write failed: disk full, file path: .*a\.pt|^$", save, {"new": wrap(grid())}, path)
    monkeypatch.undo()
    assert os.listdir(tmp_path) == ["a.pt"] and path.read_bytes() == before and load(path) == "old"


def test_what_cannot_be_saved_leaves_the_old_file(tmp_path: Path) -> None:
    path, buffer = tmp_path / "a.pt", io.BytesIO()
    save("old", path)
    for file in (path, buffer):
        refused((AttributeError, pickle.PicklingError), "Can't", save, [wrap(grid()), lambda: None], file)
    assert load(path) == "old" and buffer.getvalue() == b"" and os.listdir(tmp_path) == ["a.pt"]


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
def test_links_and_devices(tmp_path: Path) -> None:
    save(1, tmp_path / "a.pt")
    os.chmod(tmp_path / "a.pt", 0o600)
    os.symlink("a.pt", tmp_path / "link.pt")
    save(2, tmp_path / "link.pt")
    assert os.path.islink(tmp_path / "link.pt") and load(tmp_path / "a.pt") == 2
    assert stat.S_IMODE(os.stat(tmp_path / "a.pt").st_mode) == 0o600
    save(3, os.devnull)
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


# Refusals -----------------------------------------------------------------------------------------


REFUSED = {
    "missing/a.pt": "Parent directory missing does not exist", "file/a.pt": "Parent directory file does not exist",
    "": "invalid file name", ".": "invalid file name",
    "round": "open file failed with strerror: Too many levels of symbolic links",
    "dangling": "open file failed with strerror: No such file or directory",
    "n" * 300: "open file failed with strerror: File name too long",
}  # fmt: skip


@needs_oracle
@pytest.mark.skipif(os.name == "nt", reason="POSIX links and devices")
@pytest.mark.parametrize("name", REFUSED)
def test_paths_that_are_refused_as_in_pytorch(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    os.symlink("round", "round")
    os.symlink("missing/a.pt", "dangling")
    Path("file").touch()
    before = sorted(os.listdir())
    for library in (tt, torch):
        refused(RuntimeError, REFUSED[name], library.save, [1], name)
    assert sorted(os.listdir()) == before


NAMELESS = [lambda: None, type("Nameless", (), {})(), type("Nameless", (), {})]


def test_calls_that_are_refused(tmp_path: Path) -> None:
    refused(RuntimeError, r"Parent directory .*missing does not exist", save, 1, tmp_path / "missing" / "a.pt")
    refused(RuntimeError, "invalid file name", save, 1, tmp_path)
    refused(AttributeError, "expected 'f' to be string, path, or a file-like", save, 1, 3)
    refused(AttributeError, r"'int' object has no attribute .*seekable", load, 3)
    refused(FileNotFoundError, "missing.pt", load, tmp_path / "missing.pt")
    refused(ValueError, "f must be a file path in order to use the mmap", load, file_of(1), mmap=True)
    refused(NotImplementedError, "pickle_module", file_of, 1, pickle_module=builtins)
    refused(ValueError, "pickle_protocol must be", file_of, 1, pickle_protocol=1)
    refused(RuntimeError, "explicit pickle_module", load, file_of(1), pickle_module=pickle, weights_only=True)
    for nameless in NAMELESS:
        refused(pickle.PicklingError, "Can't pickle", file_of, {"nested": [nameless]})
    if os.path.exists("/dev/full"):
        refused(RuntimeError, "file write failed: No space left on device", save, 1, "/dev/full")


class Malicious:
    """An object whose pickle is a call of `function`."""

    def __init__(self, function: Any, *args: Any) -> None:
        self.function, self.args = function, args

    def __reduce__(self) -> tuple[Any, ...]:
        return self.function, self.args


@pytest.mark.parametrize(("function", "name"), [
    (os.system, f"{os.name}.system"), (builtins.eval, "eval"), (builtins.getattr, "getattr"),
    (builtins.__import__, "__import__"), (codecs.decode, "_codecs.decode"),
])  # fmt: skip
@pytest.mark.parametrize("protocol", [2, 4])
def test_calls_of_other_functions_are_refused(function: Any, name: str, protocol: int) -> None:
    marker = "raise AssertionError('code of the file was run')"
    program = pickle.dumps({"x": [Malicious(function, marker)]}, protocol)
    words = f"Weights only load failed(.|\n)*Unsupported global: GLOBAL {name} was not an allowed"
    refused(pickle.UnpicklingError, words, load, with_pickle(program))


def test_classes_are_refused_by_name() -> None:
    for library, before in (("torch", ""), ("tinytorch", r"weights_only=False(.|\n)*")):
        program = f"\x80\2c{library}.nn.modules.linear\nLinear\n)\x81.".encode("latin1")
        words = f"{before}GLOBAL {library}.nn.modules.linear.Linear was not an"
        refused(pickle.UnpicklingError, words, load, with_pickle(program))


def _text(text: str) -> bytes:
    return b"X" + struct.pack("<I", len(text)) + text.encode()


#: Programs that do more than describe data, and words of their refusals.
MORE = [
    (b"\x80\2cos\nsystem\n.", "whose module os is blocked"),
    (b"\x80\2ctorch\nfloat32\n)R.", "reduce for unrecognized function"),
    (b"\x80\2ctorch\nFloatStorage\n)R.", "reduce for unrecognized function"),
    (b"\x80\2ctorch\nTensor\n)R.", "reduce for unrecognized function"),
    (b"\x80\2ctorch\nTensor\n)\x81.", "Can only create new object"),
    (b"\x80\2ccollections\nOrderedDict\n)\x81.", "Can only create new object"),
    (b"\x80\2ctorch._utils\n_rebuild_tensor_v2\n}" + _text("__defaults__") + b")sb.", "Can only build"),
    (b"\x80\2]}b.", "Can only build"),
    (tensor_program(b"K\0", b"(K\4t", b"(K\1t")[:-1] + b"}" + _text("_array") + b"K\1sb.", "Can only build"),
    (b"\x80\2ccollections\nOrderedDict\n)R}" + _text("items") + b"K\1sb.", "its own 'items'"),
    (b"\x80\2ccollections\nOrderedDict\n)R]b.", "must be a dict"),
    (b"\x80\2(c__builtin__\nset\no.", "Unsupported operand OBJ"),
    (b"\x80\2(i__builtin__\nset\n.", "Unsupported operand INST"), (b"\x80\2\x82\1.", "Unsupported operand EXT1"),
    (b"\x80\2Pid\n.", "Unsupported operand PERSID"), (b"\x80\2c__builtin__\nset\nK\1a.", "Can only append to lists"),
    (b"\x80\2]K\1K\1s.", "Can only set items of dicts"), (b"\x80\4](K\1\x90.", "Can only add to sets"),
    (b"\x80\2K\1Q.", "Unknown typename for persistent_load"),
    (b"\x80\2c__builtin__\nbytearray\nJ\xff\xff\xff\x7f\x85R.", "text in latin1 only"),
    (b"\x80\2c_codecs\nencode\n" + _text("x") + _text("rot13") + b"\x86R.", "latin1 only"),
    (b"\x80\2ctorch\nSize\nK\1\x85R.", "a Size is made from a tuple of ints"),
    (b"\x80\2ccollections\nCounter\nK\1\x85R.", "a Counter is made from a dict"),
    (b"\x80\2c__builtin__\ncomplex\n" + _text("1") + b"K\1\x86R.", "from two floats"),
    (b"\x80\2c__builtin__\nset\n]R.", "arguments must be a tuple"),
    (b"\x80\2ctorch._utils\n_rebuild_parameter\nK\1\x88}\x87R.", "a parameter is made from"),
    (
        b"\x80\2ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._utils\n_rebuild_parameter\nctorch\nTensor\n)}tR.",
        "only a plain Tensor",
    ),
    (b"\x80\2}](K\1es.", "pickle is damaged"), (b"\x80\2}]K\1s.", "unhashable"),
    (b"\x80\2h\5.", "pickle is damaged: KeyError"), (b"\x80\2.", "pickle is damaged: IndexError"),
    (b"\x80\2K\1", "exhausted before seeing STOP"), (b"\x80\2X\xff\xff\xff\x7fabc.", "pickle is damaged"),
    (b"\x80\4\x96" + struct.pack("<Q", 2**62) + b"abc.", "pickle is damaged"), (b"\xff\xff", "pickle is damaged"),
    (b"\x80\4K\1K\2\x93.", "named by two strings"),
    (b"\x80\2c__builtin__\ncomplex\nG" + struct.pack(">d", 1) + b"K\1\x86R.", "made from two floats"),
    (b"\x80\2c__builtin__\ncomplex\nK\1G" + struct.pack(">d", 1) + b"\x86R.", "made from two floats"),
    *[
        (
            b"\x80\2ctorch._utils\n_rebuild_sparse_tensor\nctorch.serialization\n_get_layout\n"
            + _text("torch.sparse_coo") + b"\x85R" + data + b"\x86R.",
            "sparse tensor is not described",
        )
        for data in (b"]", b"K\1K\1\x86")
    ],
    *[
        (b"\x80\2ctorch._utils\n_rebuild_meta_tensor_no_storage\n(" + given + b"\x85K\1\x85\x89tR.", "meta device")
        for given in (b"ctorch\nint32\nJ\xff\xff\xff\xff", b"ctorch\nint32\n\x88", b"K\1K\1")  # dtype, size
    ],
]  # fmt: skip


def flat(offset: bytes, shape: bytes, strides: bytes, storage: bytes = b"") -> bytes:
    """Return the program of a tensor of one dimension, or of others: their lengths and strides are opcodes."""
    return tensor_program(offset, b"(" + shape + b"t", b"(" + strides + b"t", storage)


HUGE = b"\x8a\x08" + struct.pack("<q", 2**62)
OUTSIDE = [
    flat(b"K\0", b"K\5", b"K\1"), flat(b"K\1", b"K\4", b"K\1"), flat(b"K\0", b"K\2K\2", b"K\3K\1"),
    flat(b"J\xff\xff\xff\x7f", b"K\1", b"K\1"), flat(b"K\0", b"K\2", HUGE), flat(b"K\0", HUGE, b"K\1"),
    tensor_program(b"K\4", b")", b")"),
]  # fmt: skip
NOT_WHOLE = [
    flat(b"J\xff\xff\xff\xff", b"K\1", b"K\1"), flat(b"K\0", b"J\xff\xff\xff\xff", b"K\1"),
    flat(b"K\0", b"K\1", b"J\xff\xff\xff\xff"), flat(b"\x88", b"K\1", b"K\1"),
    tensor_program(b"K\0", _text("text"), b"(K\1t"),
]  # fmt: skip
ABSENT: list[tuple[bytes, type[Exception], str]] = [
    (storage_op(key="1"), RuntimeError, "failed locating file data/1: file not found"),
    (storage_op(key="../0"), RuntimeError, "failed locating file"),
    *[(storage_op(numel=n), RuntimeError, "wrong size") for n in (3, 5, 2**31 - 1)],
    (storage_op(kind="DoubleStorage"), RuntimeError, "wrong size"),
    (storage_op(numel=-1), pickle.UnpicklingError, "impossible length"),
    *[(storage_op(kind=f"{kind}Storage"), pickle.UnpicklingError, kind) for kind in ("ComplexHalf", "QInt8")],
    (storage_op() + b"0" + storage_op(kind="IntStorage"), RuntimeError, "in two ways"),
    (b"(X\7\0\0\0storageK\1K\1K\1K\1tQ", pickle.UnpicklingError, "a storage is described by"),
]  # fmt: skip
LONG_LEAF = flat(b"K\0", b"K\2", b"K\1", storage_op(kind="LongStorage", numel=2)).replace(b"\x89cc", b"\x88cc")
#: A tuple that contains the previous one twice, nested 60 times, would need 2**60 hashes; 200,000 overflow the C stack.
DOUBLED = b"h\1h\1\x86q\x010" * 60
MALFORMED: list[tuple[bytes, type[Exception], str]] = [
    *[(program, pickle.UnpicklingError, f"^Weights only load failed(.|\n)*{words}") for program, words in MORE],
    *[(program, RuntimeError, "out of bounds for storage of size 16") for program in OUTSIDE],
    *[(program, pickle.UnpicklingError, "not described by a storage and whole") for program in NOT_WHOLE],
    *[(flat(b"K\0", b"K\1", b"K\1", storage), error, words) for storage, error, words in ABSENT],
    (tensor_program(b"K\0", b"K\1", b"(K\1t"), pickle.UnpicklingError, "pickle is damaged"),
    (flat(b"K\0", b"K\1" * 100, b"K\1" * 100), pickle.UnpicklingError, "pickle is damaged"),
    (flat(b"K\0", b"J\xff\xff\xff\x7f" * 3, b"K\0" * 3), pickle.UnpicklingError, "is damaged"),
    (flat(b"K\0", b"K\1", b"K\1K\1"), RuntimeError, r"sizes .* but strides"),
    (LONG_LEAF, RuntimeError, "floating point"),
    (b"\x80\2)q\x010" + DOUBLED + b"}h\1K\1s.", pickle.UnpicklingError, "a key is too large a tuple"),
    (b"\x80\2})" + b"\x85" * 200_000 + b"K\1s.", pickle.UnpicklingError, "a key is too large a tuple"),
    (b"\x80\2)q\1" + b"h\1h\1\x86q\1" * 60 + b"Q.", pickle.UnpicklingError, "persistent_load"),
]  # fmt: skip


def test_tensors_without_data_have_any_size() -> None:
    for shape in ((), (0,), (0, 3), (1,), (2, 3)):
        found = load(file_of(tt.empty(shape, device="meta", dtype=tt.int32)))
        assert found.is_meta and found.shape == shape and found.dtype is tt.int32


@pytest.mark.parametrize("k", range(len(MALFORMED)))
def test_pickles_that_are_no_data(k: int) -> None:
    program, error, words = MALFORMED[k]
    refused(error, words, load, with_pickle(program))


def test_a_deep_tuple_is_data() -> None:
    assert len(load(with_pickle(b"\x80\2)" + b"\x85" * 1000 + b"."))) == 1


# Damaged and foreign files ------------------------------------------------------------------------


def test_a_file_cut_anywhere_is_an_error() -> None:
    content = file_of({"a": wrap(grid())}).getvalue()
    for length in [*range(1, 40), *range(40, len(content), 29), len(content) - 1]:
        with pytest.raises((RuntimeError, pickle.UnpicklingError)):
            load(io.BytesIO(content[:length]))


def test_changed_bytes_never_do_worse_than_an_error() -> None:
    content = file_of({"a": wrap(grid()), "b": [1, "x", {2}]}).getvalue()
    rng = np.random.default_rng(0)
    caught = 0
    for _ in range(1000):
        changed = bytearray(content)
        for place in rng.integers(0, len(content), rng.integers(1, 4)):
            changed[place] = rng.integers(0, 256)
        try:
            load(io.BytesIO(changed))
        except (RuntimeError, pickle.UnpicklingError):
            caught += 1
    assert caught > 500  # the other bytes are padding, dates and similar


def test_foreign_files() -> None:
    refused(EOFError, "Ran out of input", load, io.BytesIO(b""))
    refused(pickle.UnpicklingError, r"Weights only load failed.*no checkpoint", load, io.BytesIO(b"just some text"))
    refused(RuntimeError, "failed reading zip archive", load, io.BytesIO(b"PK\3\4 and then nothing"))
    refused(RuntimeError, r"failed locating file data.pkl", load, archive_of({"word/document.xml": b"<xml/>"}))
    refused(RuntimeError, "TorchScript", load, archive_of({"data.pkl": b"", "constants.pkl": b""}))


def test_archives_with_tricks() -> None:
    contents = records(file_of(wrap(grid())))
    packed, doubled, outside = io.BytesIO(), archive_of(contents), archive_of(contents)
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in contents.items():
            archive.writestr(f"archive/{name}", data)
    with zipfile.ZipFile(doubled, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("archive/data.pkl", contents["data.pkl"])
    with zipfile.ZipFile(outside, "a") as archive:
        archive.writestr("other/data.pkl", b"")
    for file, words in (
        (packed, "is compressed or encrypted"), (doubled, "two records named"), (outside, "lies outside archive/"),
    ):  # fmt: skip
        file.seek(0)
        refused(RuntimeError, words, load, file)


def directory_entry(content: bytes, name: str) -> int:
    """Return the offset of a record's entry in the central directory."""
    return content.rindex(b"archive/" + name.encode()) - 46


@pytest.mark.parametrize(("size", "words"), [(2**31, "ends too late"), (400, "overlaps another"), (90, "wrong size")])
def test_declared_sizes_are_not_believed(size: int, words: str) -> None:
    content = bytearray(file_of(wrap(grid())).getvalue())
    place = directory_entry(content, "data/0")
    content[place + 20 : place + 28] = struct.pack("<2I", size, size)
    refused(RuntimeError, words, load, io.BytesIO(content))


def test_directories_that_contradict_their_records() -> None:
    content = bytearray(file_of([wrap(grid()), wrap(grid())]).getvalue())
    named = content.replace(b"archive/data/0", b"archive/data/9", 1)
    refused(RuntimeError, "failed reading file data/0", load, io.BytesIO(named))
    first, second = directory_entry(content, "data/0"), directory_entry(content, "data/1")
    content[second + 42 : second + 46] = content[first + 42 : first + 46]
    refused(RuntimeError, "overlaps another", load, io.BytesIO(content))
    content = bytearray(file_of(wrap(grid())).getvalue())
    content[content.index(grid().tobytes()) + 3] ^= 1
    refused(RuntimeError, "data/0: its bytes were changed", load, io.BytesIO(content))


# Devices ------------------------------------------------------------------------------------------


def cuda_file() -> io.BytesIO:
    """Return a checkpoint such as a machine with a GPU writes."""
    contents = records(file_of({"w": wrap(grid())}))
    program = contents["data.pkl"]
    contents["data.pkl"] = program.replace(b"X\3\0\0\0cpu", b"X\6\0\0\0cuda:0")
    assert contents["data.pkl"] != program
    return archive_of(contents)


@pytest.mark.parametrize(
    "map_location", ["cpu", tt.device("cpu"), {"cuda:0": "cpu"}, lambda storage, location: storage.cpu()]
)
def test_tensors_of_another_device_are_mapped_to_the_cpu(map_location: Any) -> None:
    found = load(cuda_file(), map_location=map_location)
    np.testing.assert_array_equal(found["w"]._array, grid())


def test_a_function_is_told_the_location_and_may_leave_it() -> None:
    seen: list[Any] = []

    def where(storage: Any, location: str) -> None:
        seen.append((storage.nbytes(), location))

    load(file_of([wrap(grid()), wrap(np.ones(1))]), where)
    assert seen == [(96, "cpu"), (8, "cpu")]


@pytest.mark.parametrize("map_location", [None, "cuda", tt.device("cuda:1"), {"cpu": "cuda"}])
def test_a_device_that_is_not_there(map_location: Any) -> None:
    words = "Attempting to deserialize object on a CUDA device but torch.cuda.is_available"
    refused(RuntimeError, words, load, cuda_file(), map_location)
    refused(RuntimeError, words, load, cuda_file(), lambda storage, location: storage.cuda())
    refused(RuntimeError, "don't know how to restore data location", load, cuda_file(), "elsewhere")
    refused(TypeError, "map_location must return", load, cuda_file(), lambda storage, location: 3)
    refused(TypeError, "not callable", load, cuda_file(), 3)
    with pytest.raises(ZeroDivisionError):  # the error of the function is propagated
        load(cuda_file(), lambda storage, location: 1 // 0)


# Allowing more ------------------------------------------------------------------------------------


class Settings:
    def __init__(self) -> None:
        self.rate = 0.1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Settings) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]


class Slotted:
    __slots__ = ("a",)


class WithState:
    def __setstate__(self, state: Any) -> None:
        self.restored = state

    def __getstate__(self) -> Any:
        return {"x": 1}


def test_classes_that_the_user_allows() -> None:
    settings = Settings()
    settings.rate = 0.5
    slotted = Slotted()
    slotted.a = 3
    default = collections.defaultdict(list, a=[1])
    allowed = [Settings, Slotted, WithState, collections.defaultdict, list, frozenset]
    with safe_globals(allowed):
        assert get_safe_globals() == allowed
        file = file_of([settings, slotted, WithState(), default, frozenset([2])])
    refused(pickle.UnpicklingError, "add_safe_globals", load, file)
    file.seek(0)
    add_safe_globals(allowed)
    try:
        found = load(file)
    finally:
        clear_safe_globals()
    assert get_safe_globals() == []
    assert found[0] == settings and found[1].a == 3 and found[2].restored == {"x": 1}
    assert found[3] == default and found[3]["new"] == [] and found[4] == {2}


def test_a_name_can_be_given_and_wrong_entries_are_errors() -> None:
    program = b"\x80\2cold.module\nSettings\n)\x81}X\4\0\0\0rateK\1sb."
    with safe_globals([(Settings, "old.module.Settings")]):
        assert load(with_pickle(program)).rate == 1
    refused(ValueError, "Expected tuple of length 2", add_safe_globals, [(Settings,)])
    refused(TypeError, "Expected second item in tuple to be str", add_safe_globals, [(Settings, 1)])
    with (
        safe_globals([(os.getcwd, "os.getcwd")]),
        pytest.raises(pickle.UnpicklingError, match="whose module os is blocked"),
    ):
        load(with_pickle(b"\x80\2cos\ngetcwd\n)R."))


def test_numpys_data_needs_weights_only_false() -> None:
    data = {"best": np.float64(0.5), "state": np.arange(6).reshape(2, 3), "flag": np.bool_(True)}
    file = file_of(data)
    refused(pickle.UnpicklingError, r"GLOBAL numpy\._core\.multiarray", load, file)
    file.seek(0)
    found = load(file, weights_only=False)
    assert found["best"] == 0.5 and type(found["best"]) is np.float64 and found["flag"] == True  # noqa: E712
    np.testing.assert_array_equal(found["state"], data["state"])


def test_safetensors_needs_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "safetensors.numpy", None)
    refused(RuntimeError, "safetensors is not installed", load, tmp_path / "a.safetensors")


# Any objects --------------------------------------------------------------------------------------


class Net(tt.nn.Module):
    """A user's class, which is loaded by its name."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = tt.nn.Linear(3, 4)
        self.tied = tt.nn.Linear(3, 4)
        self.tied.weight = self.hidden.weight
        self.activation = tt.relu
        self.settings = Settings()
        self.register_buffer("steps", tt.zeros(1))
        self.register_forward_hook(doubled)

    def forward(self, x: Any) -> Any:
        return self.activation(self.hidden(x)) + self.tied(x) + self.steps


def doubled(module: Any, inputs: Any, output: Any) -> Any:
    return output * 2


class TensorSubclass(tt.Tensor):
    pass


def trusted(obj: Any, **options: Any) -> Any:
    return load(file_of(obj, **options), weights_only=False)


@pytest.mark.parametrize("protocol", [2, 5])
def test_a_whole_module_comes_back(protocol: int) -> None:
    net = Net()
    net.steps += 1
    net.hidden.bias.requires_grad = False
    found = trusted(net, pickle_protocol=protocol)
    assert type(found) is Net and found.hidden.weight is found.tied.weight
    assert type(found.hidden.weight) is Parameter and found.hidden.weight.is_leaf
    assert not found.hidden.bias.requires_grad and found.activation is tt.relu
    assert found.settings == Settings()
    x = tt.ones(2, 3)
    assert tt.equal(found(x), net(x))
    found(x).sum().backward()
    assert found.hidden.weight.grad is not None and net.hidden.weight.grad is None


def test_a_module_needs_the_names_of_its_classes_or_weights_only_false() -> None:
    model = tt.nn.Sequential(tt.nn.Linear(2, 2), tt.nn.ReLU())
    with pytest.raises(pickle.UnpicklingError, match=r"Weights only load failed(.|\n)*Sequential"):
        load(file_of(model), weights_only=None)
    with safe_globals([tt.nn.Sequential, tt.nn.Linear, tt.nn.ReLU]):
        found = load(file_of(model))
    assert tt.equal(found(tt.ones(2)), model(tt.ones(2)))


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad"])
def test_a_module_and_its_optimizer_stay_together(name: str) -> None:
    model = tt.nn.Linear(2, 1)
    optimizer = getattr(tt.optim, name)(model.parameters(), lr=0.1)
    scheduler = tt.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)

    def train(model: Any, optimizer: Any, scheduler: Any) -> Any:
        optimizer.zero_grad()
        model(tt.ones(3, 2)).sum().backward()
        optimizer.step()
        scheduler.step()
        return model.weight.detach().clone()

    train(model, optimizer, scheduler)
    found = trusted([model, optimizer, scheduler])
    assert found[1].param_groups[0]["params"][0] is found[0].weight and found[2].optimizer is found[1]
    for _ in range(2):
        assert tt.equal(train(*found), train(model, optimizer, scheduler))


def test_other_objects_come_back() -> None:
    generator = tt.Generator().manual_seed(3)
    tensor = wrap(np.ones(2), TensorSubclass)
    tensor.label = "a"
    slotted = Slotted()
    slotted.a = tt.ones(1)
    default = collections.defaultdict(list, a=[1])
    data = [generator, tensor, slotted, default, frozenset([2]), range(3), tt.relu, tt.nn.Linear]
    found = trusted([*data, tt.strided, tt.channels_last, tt.Size([2]), tt.device("cpu"), tt.int8])
    assert tt.equal(tt.rand(3, generator=found[0]), tt.rand(3, generator=generator))
    assert type(found[1]) is TensorSubclass and found[1].label == "a" and found[1].sum() == 2
    assert found[2].a == 1 and found[3] == default and found[3:8] == data[3:8]
    assert found[8] is tt.strided and found[9] is tt.channels_last
    assert found[10:] == [tt.Size([2]), tt.device("cpu"), tt.int8]


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_storages_come_back_with_the_tensors_on_them() -> None:
    tensor = tt.arange(4.0)
    storage, found = trusted([tensor.storage(), tensor])
    assert type(storage) is tt.TypedStorage and storage.tolist() == [0, 1, 2, 3]
    found[0] = 9.0
    assert storage.tolist() == [9, 1, 2, 3]
    untyped = trusted(tensor.untyped_storage())
    assert type(untyped) is tt.UntypedStorage and untyped.nbytes() == 16


def test_a_trusted_file_runs_what_it_names() -> None:
    assert load(with_pickle(pickle.dumps(Malicious(os.path.join, "a", "b"), 2)), weights_only=False) == "a/b"
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        load(with_pickle(b"\x80\2cno_such_module\nName\n."), weights_only=False)
    with pytest.raises(AttributeError, match="Can't get attribute 'NoSuchLayer'"):
        load(with_pickle(b"\x80\2ctorch.nn\nNoSuchLayer\n."), weights_only=False)
    assert "no_such_module" not in sys.modules


def test_a_pickle_module_reads_with_its_unpickler() -> None:
    class Renaming(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            return super().find_class(module.replace("old_place", __name__), name)

    class Module:
        Unpickler = Renaming

    program = b"\x80\2cold_place\nSettings\n)\x81}X\4\0\0\0rateK\1sb."
    assert load(with_pickle(program), pickle_module=Module).rate == 1
    file = with_pickle(b"\x80\2U\1\xe9.")
    assert load(file, weights_only=False, encoding="latin1") == "é"


# PyTorch ------------------------------------------------------------------------------------------


@needs_oracle
@pytest.mark.parametrize("dtype", DTYPES)
def test_pytorch_reads_what_is_written_here(dtype: str, tmp_path: Path) -> None:
    base = np.random.default_rng(0).integers(0, 100, (4, 6)).astype(dtype)
    arrays = [base, base[1:3, ::2], base.T, base[2, 3, ...], base[:0], base[::-1]]
    found = torch.load(file_of([wrap(array) for array in arrays]), weights_only=True)
    for theirs, array in zip(found, arrays, strict=True):
        np.testing.assert_array_equal(theirs.numpy(), array)
        assert theirs.dtype is getattr(torch, dtype)
    save([wrap(grid()), wrap(np.arange(3))], tmp_path / "a.pt")
    mapped = torch.load(tmp_path / "a.pt", mmap=True)
    assert mapped[0].tolist() == grid().tolist() and mapped[1].tolist() == [0, 1, 2]
    assert found[1].storage_offset() == 6 and found[1].stride() == (6, 2)
    assert found[2].stride() == (1, 6) and found[0].data_ptr() == found[2].data_ptr()


@needs_oracle
def test_pytorch_reads_the_other_data() -> None:
    ordered = OrderedDict(a=wrap(grid()))
    ordered._metadata = OrderedDict(x={"version": 1})  # type: ignore[attr-defined]
    weight = Parameter(wrap(np.ones(2, np.float32)))
    frozen = Parameter(wrap(np.ones(2)), requires_grad=False)
    frozen.note = "kept"
    leaf = wrap(np.zeros(2)).requires_grad_()
    leaf.note = 1
    data = [
        ordered, weight, frozen, leaf, Size([1, 2]), tt.float16, tt.device("cuda:1"),
        {1, 2}, Counter("aab"), b"", b"\xff", bytearray(b"x"), 2j, (1, "é", None, True, 2**70),
    ]  # fmt: skip
    found = torch.load(file_of(data), weights_only=True)
    assert found[0]._metadata == ordered._metadata  # type: ignore[attr-defined]
    assert type(found[1]) is torch.nn.Parameter and found[1].requires_grad
    assert type(found[2]) is torch.nn.Parameter and not found[2].requires_grad
    assert found[2].note == "kept" and found[3].note == 1 and found[3].requires_grad
    assert found[4:7] == [torch.Size([1, 2]), torch.float16, torch.device("cuda:1")]
    assert found[7:] == data[7:]


def theirs_file(obj: Any, **options: Any) -> io.BytesIO:
    buffer = io.BytesIO()
    torch.save(obj, buffer, **options)
    return io.BytesIO(buffer.getvalue())


@needs_oracle
def test_what_pytorch_writes_is_read() -> None:
    big = torch.arange(12.0)
    channels_last = torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last)
    noted, weight = torch.ones(2), torch.nn.Parameter(torch.ones(2))
    noted.note = weight.note = [1]
    tensors = [
        big, big[2:], big.view(3, 4).t(), torch.tensor(3), torch.zeros(0, 3), channels_last,
        torch.ones(3, 1).expand(3, 10**6), torch.tensor([True]), torch.ones(2, requires_grad=True), noted, weight,
    ]  # fmt: skip
    others = [
        torch.Size([2]), torch.int8, torch.device("cpu"), {1}, Counter("aa"), b"", b"x",
        bytearray(b"y"), 1j, OrderedDict(a=1), None, 2**70, "é",
    ]  # fmt: skip
    file = theirs_file([tensors, others[:5] + others[6:]])
    found, rest = load(file)
    for ours, theirs in zip(found, tensors, strict=True):
        array = ours._array
        np.testing.assert_array_equal(array, theirs.detach().numpy())
        assert array.shape == tuple(theirs.shape) and ours.requires_grad == theirs.requires_grad
        if array.size:
            assert array.strides == tuple(s * array.itemsize for s in theirs.stride())
    assert found[9].note == [1] and found[10].note == [1] and type(found[10]) is Parameter
    found[0]._array[...] = 5
    assert (found[1]._array == 5).all() and repr(rest) == repr(others[:5] + others[6:])


@needs_oracle
def test_a_training_run_of_pytorch_is_read() -> None:
    model = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2))
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.randn(2, 1, 5, 5)).sum().backward()
    optimizer.step()
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    found = load(theirs_file(state))
    assert found["model"]._metadata == state["model"]._metadata
    for name, theirs in state["model"].items():
        np.testing.assert_array_equal(found["model"][name]._array, theirs.numpy())
    assert found["optimizer"]["param_groups"] == state["optimizer"]["param_groups"]
    moments = found["optimizer"]["state"][0]
    np.testing.assert_array_equal(moments["exp_avg"]._array, state["optimizer"]["state"][0]["exp_avg"].numpy())
    # The other direction.
    again = torch.load(file_of(found))
    for name, theirs in state["model"].items():
        assert torch.equal(again["model"][name], theirs)


@needs_oracle
def test_files_of_pytorch_without_sums_are_read() -> None:
    torch.serialization.set_crc32_options(False)
    try:
        file = theirs_file(torch.arange(3))
    finally:
        torch.serialization.set_crc32_options(True)
    assert load(file)._array.tolist() == [0, 1, 2]


@needs_oracle
@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
def test_what_is_not_data_is_named() -> None:
    words = "GLOBAL torch.nn.modules.linear.Linear was not an allowed global by default"
    refused(pickle.UnpicklingError, words, load, theirs_file(torch.nn.Linear(1, 1)))
    with safe_globals([tt.nn.Linear]):
        found = load(theirs_file(torch.nn.Linear(2, 3)))
    assert type(found) is tt.nn.Linear and found.weight.shape == (3, 2)
    with pytest.raises(pickle.UnpicklingError, match=r"ComplexHalfStorage|torch\.complex32"):
        load(theirs_file(torch.ones(1).to(torch.complex32)))
    assert load(theirs_file(torch.ones(1).to_sparse())).is_sparse


@needs_oracle
def test_refusals_use_pytorchs_classes_and_words(tmp_path: Path) -> None:
    """The same invalid call raises the same class of error in both libraries, with common words."""
    program = pickle.dumps(Malicious(os.path.join, "a"), 2)
    still = r"^Weights only load failed\. This file can still be loaded(.|\n)*WeightsUnpickler error: "
    cases: list[tuple[Callable[[Any], Any], str]] = [
        (lambda m: m.save(1, 3), "file-like object with a 'write' attribute"), (lambda m: m.load(3), "seekable"),
        (lambda m: m.save(1, tmp_path / "no" / "x"), "Parent directory"),
        (lambda m: m.load(tmp_path / "none"), "No such file"), (lambda m: m.load(io.BytesIO()), "^"),
        (lambda m: m.load(io.BytesIO(b"PK\3\4...")), "failed reading zip archive"),
        (lambda m: m.load(with_pickle(program)), "join was not an allowed global by default"),
        (lambda m: m.load(with_pickle(program)), rf"{still}Unsupported global(.|\n)*add_safe_globals"),
        (lambda m: m.load(with_pickle(b"\x80\2cno\nx\n."), weights_only=False), "No module named"),
        (lambda m: m.load(file_of(wrap(grid())), "cuda"), "Attempting to deserialize object on"),
        (lambda m: m.load(file_of(wrap(grid())), "here"), "don't know how to restore data loc"),
        (lambda m: m.load(file_of(1), mmap=True), "f must be a file path"),
        (lambda m: m.save([1, lambda: None], io.BytesIO()), "Can't (get local|pickle)"),
    ]  # fmt: skip
    for call, words in cases:
        with pytest.raises(Exception, match=words) as theirs:
            call(torch)
        refused(type(theirs.value), words, call, serialization)


def _models(nn: Any) -> list[Any]:
    return [
        nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2)),
        nn.LSTM(3, 4, 2, bidirectional=True),
        nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0),
        nn.ModuleDict({"a": nn.Embedding(3, 2), "b": nn.PixelShuffle(2)}),
        nn.ParameterList([nn.Parameter(nn.Linear(2, 2).weight.detach())]),
    ]


@needs_oracle
@pytest.mark.parametrize("which", range(5))
def test_a_whole_module_of_pytorch_is_read(which: int) -> None:
    torch.manual_seed(0)
    theirs, like = _models(torch.nn)[which], _models(tt.nn)[which]
    found = load(theirs_file(theirs), weights_only=False)
    assert type(found) is type(like) and repr(found) == repr(theirs)
    ours = found.state_dict()
    assert list(ours) == list(theirs.state_dict())
    for name, value in theirs.state_dict().items():
        np.testing.assert_array_equal(ours[name].numpy(), value.numpy())
    shape = [(2, 1, 8, 8), (5, 2, 3), (5, 2, 4)]
    if which < 3:
        x = np.random.default_rng(0).random(shape[which], np.float32)
        mine, other = found(tt.from_numpy(x)), theirs(torch.from_numpy(x))
        if which == 1:
            mine, other = mine[0], other[0]
        np.testing.assert_allclose(mine.detach().numpy(), other.detach().numpy(), atol=1e-6)


@needs_oracle
@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_optimizers_generators_and_functions_of_pytorch_are_read() -> None:
    torch.manual_seed(0)
    layer = torch.nn.Linear(2, 1)
    adam = torch.optim.Adam(layer.parameters(), lr=0.1)

    def step(torch: Any, layer: Any, adam: Any) -> Any:
        adam.zero_grad()
        layer(torch.ones(3, 2)).sum().backward()
        adam.step()
        return layer.weight.detach().numpy()

    step(torch, layer, adam)
    generator = torch.Generator().manual_seed(3)
    named = [torch.relu, torch.einsum, torch.nn.functional.gelu, torch.Tensor.add, torch.nn.Linear]
    named += [torch.linalg.norm, torch.special.erf]
    others = [torch.float16, torch.Size([2]), torch.device("cpu"), torch.strided]
    file = theirs_file([layer, adam, generator, torch.ones(2).storage(), *named, *others])
    found = load(file, weights_only=False)
    assert type(found[1]) is tt.optim.Adam
    np.testing.assert_allclose(step(tt, *found[:2]), step(torch, layer, adam), rtol=1e-6)
    assert type(found[2]) is tt.Generator
    drawn = tt.rand(3, generator=found[2]).numpy()
    np.testing.assert_array_equal(drawn, torch.rand(3, generator=generator).numpy())
    assert found[3].tolist() == [1, 1]
    assert found[4:9] == [tt.relu, tt.einsum, tt.nn.functional.gelu, tt.Tensor.add, tt.nn.Linear]
    assert found[9:11] == [tt.linalg.norm, tt.special.erf]
    assert found[11:] == [tt.float16, tt.Size([2]), tt.device("cpu"), tt.strided]


def quickstart_model(nn: Any) -> Any:
    return nn.Sequential(
        nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)
    )


@needs_oracle
@pytest.mark.parametrize("from_pytorch", [False, True])
def test_logits_are_the_same_on_the_other_side(from_pytorch: bool, tmp_path: Path) -> None:
    ours, theirs = quickstart_model(tt.nn), quickstart_model(torch.nn)
    path = tmp_path / "model.pth"
    if from_pytorch:
        torch.save(theirs.state_dict(), path)
        ours.load_state_dict(tt.load(path, weights_only=True))
    else:
        tt.save(ours.state_dict(), path)
        theirs.load_state_dict(torch.load(path, weights_only=True))
    x = np.random.default_rng(0).random((8, 1, 28, 28), np.float32)
    with tt.no_grad(), torch.no_grad():
        mine, other = ours(tt.from_numpy(x)), theirs(torch.from_numpy(x))
    np.testing.assert_allclose(mine.numpy(), other.numpy(), rtol=0, atol=1e-6)


@compared
def test_a_pickle_of_a_result_is_a_leaf(torch: Any) -> Any:
    result = torch.ones(2, requires_grad=True) * 2
    return pickle.loads(pickle.dumps([result, result.detach(), result[:1]]))


@needs_oracle
@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
@pytest.mark.parametrize("weights_only", [True, False])
def test_storages_classes_and_layouts_between_the_libraries(weights_only: bool) -> None:
    for writer, reader in ((tt, torch), (torch, tt), (tt, tt)):
        x = writer.arange(4.0)
        classes = [writer.Tensor, writer.nn.Parameter]
        file = io.BytesIO()
        writer.save([x[1:], x.storage(), writer.strided, classes], file)
        file.seek(0)
        view, storage, layout, found = reader.load(file, weights_only=weights_only)
        assert storage.tolist() == [0, 1, 2, 3] and storage.dtype == reader.float32
        view[0] = 9
        assert storage[1] == 9
        assert layout is reader.strided and found == [reader.Tensor, reader.nn.Parameter]
