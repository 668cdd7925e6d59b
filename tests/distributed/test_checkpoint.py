"""Checkpoints that processes write and read together: PyTorch reads ours, we read PyTorch's, and none is ever half."""

from __future__ import annotations

import importlib
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tinytorch
import tinytorch.distributed.checkpoint as dcp
from tests.distributed import needs_mpi, run
from tests.oracle import needs_oracle, torch
from tests.same import compared, expressions, refused, same_as_pytorch
from tinytorch.distributed.checkpoint import state_dict
from tinytorch.distributed.checkpoint.format_utils import dcp_to_torch_save, torch_save_to_dcp

pytestmark = pytest.mark.filterwarnings("ignore:torch.distributed is disabled", "ignore:Detected an existing")


def of(library: Any, path: str = "") -> Any:
    return importlib.import_module(f"{library.__name__}.distributed.checkpoint{path}")


def state(t: Any, value: float = 0.5) -> dict[str, Any]:
    """Return a state with all kinds of entries."""
    model = t.nn.Linear(3, 2)
    with t.no_grad():
        for p in model.parameters():
            p.fill_(value)
    optimizer = t.optim.Adam(model.parameters())
    model(t.ones(1, 3)).sum().backward()
    optimizer.step()
    dtypes = {str(d).partition(".")[2]: t.arange(6).reshape(2, 3).to(d) for d in (t.float16, t.int64, t.bool, t.uint8)}
    return {
        "model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3, "dtypes": dtypes,
        "list": [1, {"x": t.ones(2)}, [t.zeros(1)]], "pair": (t.zeros(()), 5), "empty": {}, "none": None, "nothing": [],
        "rows": t.zeros(0, 3), "scalar": t.tensor(2.5), "part": t.arange(10)[2:5], "words": ["a", "b"],
    }  # fmt: skip


def plain(value: Any) -> Any:
    """Return a state without tensors, to be compared."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map(plain, value))
    return ("tensor", str(value.dtype), value.tolist()) if hasattr(value, "tolist") else value


def causes(call: Any) -> dict[int, str]:
    """Return by rank the errors of what fails."""
    try:
        call()
    except BaseException as error:
        if type(error).__name__ != "CheckpointException":
            raise
        return {rank: f"{type(cause).__name__}: {cause}" for rank, (cause, _) in error.failures.items()}
    raise AssertionError("nothing went wrong")


@needs_oracle
def test_pytorch_reads_ours_and_we_read_pytorchs(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    of(tinytorch).save(state(tinytorch), checkpoint_id=ours)
    of(torch).save(state(torch), checkpoint_id=theirs)
    for reader, folder in ((torch, ours), (tinytorch, theirs), (tinytorch, ours)):
        into = state(reader, 0.25)
        into["epoch"] = into["pair"] = into["words"] = None
        of(reader).load(into, checkpoint_id=folder)
        wanted = plain(state(reader))
        assert plain(into) == wanted

        whole = tmp_path / "whole.pt"
        of(reader, ".format_utils").dcp_to_torch_save(folder, whole)
        found = plain(reader.load(whole, weights_only=False))
        del wanted["empty"]
        wanted["optimizer"]["state"] = {str(key): each for key, each in wanted["optimizer"]["state"].items()}
        assert found == wanted


@needs_oracle
def test_the_metadata_is_pytorchs(tmp_path: Path) -> None:
    ours = of(tinytorch).save(state(tinytorch), checkpoint_id=tmp_path / "ours")
    theirs = of(torch).save(state(torch), checkpoint_id=tmp_path / "theirs")
    read = of(torch).FileSystemReader(tmp_path / "ours").read_metadata()
    assert read.state_dict_metadata == theirs.state_dict_metadata
    assert read.planner_data == theirs.planner_data
    assert set(read.storage_data) == set(theirs.storage_data) and read.version == theirs.version
    back = of(tinytorch).FileSystemReader(tmp_path / "theirs").read_metadata()
    assert back.state_dict_metadata == ours.state_dict_metadata
    assert back.storage_meta.checkpoint_id == str(tmp_path / "theirs")


@needs_oracle
def test_tensors_that_pytorch_saved_in_parts(tmp_path: Path) -> None:
    """Those of sharded models: each rank had some rows."""
    saver = f"""
import sys, torch, torch.distributed as dist, torch.distributed.checkpoint as dcp
from torch.distributed.tensor import Shard, distribute_tensor, init_device_mesh
rank = int(sys.argv[1])
dist.init_process_group("gloo", init_method="file://{tmp_path}/meet", rank=rank, world_size=2)
x = distribute_tensor(torch.arange(15.0).reshape(5, 3), init_device_mesh("cpu", (2,)), [Shard(0)])
dcp.save({{"x": x, "y": torch.ones(2)}}, checkpoint_id="{tmp_path}/parts")
dist.destroy_process_group()
"""
    ranks = [subprocess.Popen([sys.executable, "-W", "ignore", "-c", saver, str(rank)]) for rank in range(2)]
    assert [each.wait(300) for each in ranks] == [0, 0]
    into = {"x": tinytorch.zeros(5, 3), "y": tinytorch.zeros(2)}
    dcp.load(into, checkpoint_id=tmp_path / "parts")
    assert into["x"].tolist() == [[3.0 * i, 3.0 * i + 1, 3.0 * i + 2] for i in range(5)]
    assert into["y"].tolist() == [1, 1]


def test_both_formats(tmp_path: Path) -> None:
    tinytorch.save(state(tinytorch), tmp_path / "a.pt")
    torch_save_to_dcp(tmp_path / "a.pt", tmp_path / "folder")
    dcp_to_torch_save(tmp_path / "folder", tmp_path / "b.pt")
    found = tinytorch.load(tmp_path / "b.pt", weights_only=False)
    assert plain(found["model"]) == plain(state(tinytorch)["model"]) and found["pair"][1] == 5
    module = "tinytorch.distributed.checkpoint.format_utils"
    command = [sys.executable, "-m", module, "dcp_to_torch", str(tmp_path / "folder"), str(tmp_path / "c.pt")]
    assert "Converting checkpoint from" in subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert (tmp_path / "c.pt").read_bytes() == (tmp_path / "b.pt").read_bytes()


def test_files_by_entry_and_by_thread(tmp_path: Path) -> None:
    for name, count, options in (("a", 4, {"single_file_per_rank": False}), ("b", 2, {"thread_count": 2})):
        saved = {"x": tinytorch.ones(30), "y": tinytorch.zeros(20), "z": tinytorch.ones(10), "n": 1}
        dcp.save(saved, storage_writer=dcp.FileSystemWriter(tmp_path / name, **options))
        assert len(list((tmp_path / name).glob("*.distcp"))) == count
        into = {"x": tinytorch.zeros(30), "y": tinytorch.ones(20), "n": 0}
        dcp.load(into, checkpoint_id=tmp_path / name)
        assert into["x"].sum().item() == 30 and into["y"].sum().item() == 0 and into["n"] == 1


WRONG = """
    {"nothing": t.zeros(2)}; {"x": t.zeros(3)}; {"x": 3}; {"n": 1, "x": {"y": t.zeros(2)}}
"""


@pytest.mark.parametrize("into", expressions(WRONG))
@compared
def test_errors_are_pytorchs(t: Any, into: str, tmp_path: Path) -> Any:
    folder = tmp_path / t.__name__
    of(t).save({"x": t.ones(2), "n": 7}, checkpoint_id=folder)
    words = causes(lambda: of(t).load(eval(into, {"t": t}), checkpoint_id=folder))
    return {rank: each.replace("tinytorch", "torch") for rank, each in words.items()}


def test_calls_are_pytorchs(tmp_path: Path) -> None:
    def without(t: Any) -> None:
        of(t).save({"x": 1})

    def no_writer(t: Any) -> None:
        of(t).load({"x": 1}, checkpoint_id="s3+nothing://x")

    def partly(t: Any) -> Any:
        folder = tmp_path / t.__name__
        of(t).save({"x": t.ones(2), "n": 7}, checkpoint_id=folder)
        into = {"x": t.zeros(2), "other": 5}
        of(t).load(into, checkpoint_id=folder, planner=of(t).DefaultLoadPlanner(allow_partial_load=True))
        return plain(into)

    def twice(t: Any) -> Any:
        writer = of(t).FileSystemWriter(tmp_path / t.__name__, overwrite=False)
        return causes(lambda: of(t).save({"x": 1}, storage_writer=writer))

    def duplicates(t: Any) -> Any:
        return causes(lambda: of(t).save({"a.b": 1, "a": {"b": 2}}, checkpoint_id=tmp_path / "none"))

    def old(t: Any) -> Any:
        of(t).save_state_dict({"x": t.ones(2)}, of(t).FileSystemWriter(tmp_path / f"old {t.__name__}"))
        into = {"x": t.zeros(2)}
        of(t).load_state_dict(into, of(t).FileSystemReader(tmp_path / f"old {t.__name__}"))
        return plain(into)

    for program in (without, no_writer, partly, twice, duplicates, old):
        same_as_pytorch(program)


def test_what_is_missing_or_damaged(tmp_path: Path) -> None:
    folder = tmp_path / "a"

    def words(name: str = "x", length: int = 100) -> str:
        return causes(lambda: dcp.load({name: tinytorch.zeros(length)}, checkpoint_id=folder))[0]

    assert "metadata is None; global metadata read failed: [Errno 2]" in words()
    dcp.save({"x": tinytorch.ones(100), "n": 1}, checkpoint_id=folder)
    whole, part = (folder / ".metadata").read_bytes(), folder / "__0_0.distcp"
    content = part.read_bytes()
    for end in (0, 1, 200, len(whole) - 3):
        (folder / ".metadata").write_bytes(whole[:end])
        assert "metadata read failed" in words()
    (folder / ".metadata").write_bytes(pickle.dumps({"x": 1}))
    assert "no metadata of a checkpoint" in words()
    # A file that would call something is not read.
    (folder / ".metadata").write_bytes(b"cos\nsystem\n(S'touch " + str(tmp_path / "called").encode() + b"'\ntR.")
    assert "os.system" in words() and not (tmp_path / "called").exists()
    (folder / ".metadata").write_bytes(whole.replace(b"__0_0.distcp", b"../b.distcp1"[:12]))
    assert "names a file that lies elsewhere" in words()
    (folder / ".metadata").write_bytes(whole)
    place = content.index(b"\0\0\x80?" * 100)
    for damaged, expected in (
        (content[: place + 8], "ends within x"),
        (content[:place] + b"\1" + content[place + 1 :], "its bytes were changed"),
    ):
        part.write_bytes(damaged)
        assert expected in words()
    part.unlink()
    assert words().startswith("FileNotFoundError")
    part.write_bytes(content)
    dcp.load(into := {"x": tinytorch.zeros(100)}, checkpoint_id=folder)
    assert into["x"].sum().item() == 100


def test_a_save_that_fails_leaves_the_checkpoint_before(tmp_path: Path) -> None:
    dcp.save({"x": tinytorch.ones(3), "y": 1}, checkpoint_id=tmp_path)
    before = sorted(each.name for each in tmp_path.iterdir())
    words = causes(lambda: dcp.save({"x": tinytorch.zeros(3), "y": lambda: 1}, checkpoint_id=tmp_path))
    assert "lambda" in words[0] and sorted(each.name for each in tmp_path.iterdir()) == before
    into = {"x": tinytorch.zeros(3), "y": 0}
    dcp.load(into, checkpoint_id=tmp_path)
    assert into["x"].tolist() == [1, 1, 1] and into["y"] == 1
    # Another one takes its place, and nothing of it stays.
    dcp.save({"x": tinytorch.zeros(3)}, checkpoint_id=tmp_path)
    assert sorted(each.name for each in tmp_path.iterdir()) == [".metadata", "__0_1.distcp"]


def test_planners_of_users(tmp_path: Path) -> None:
    class Renaming(dcp.DefaultSavePlanner):
        def set_up_planner(self, state_dict: Any, storage_meta: Any = None, is_coordinator: bool = False) -> None:
            super().set_up_planner({f"own {key}": each for key, each in state_dict.items()})

        def transform_object(self, write_item: Any, object: Any) -> Any:
            return super().transform_object(write_item, object * 2)

    dcp.save({"x": tinytorch.ones(3), "y": 4}, checkpoint_id=tmp_path, planner=Renaming())
    into = {"own x": tinytorch.zeros(3), "own y": 0}
    dcp.load(into, checkpoint_id=tmp_path)
    assert into["own x"].tolist() == [2, 2, 2] and into["own y"] == 8
    flat = dcp.DefaultSavePlanner(flatten_state_dict=False)
    dcp.save({"x": {"y": 1}}, checkpoint_id=tmp_path, planner=flat)
    dcp.load(whole := {"x": None}, checkpoint_id=tmp_path, planner=dcp.DefaultLoadPlanner(flatten_state_dict=False))
    assert whole == {"x": {"y": 1}}


def test_async_save_alone(tmp_path: Path) -> None:
    x = tinytorch.ones(3)
    future = dcp.async_save({"x": x}, checkpoint_id=tmp_path)
    x.zero_()
    future.result()
    dcp.load(into := {"x": tinytorch.zeros(3)}, checkpoint_id=tmp_path)
    assert into["x"].tolist() == [1, 1, 1]
    wrong = dcp.async_save({"x": lambda: 1}, checkpoint_id=tmp_path)
    refused(BaseException, "lambda", wrong.result)
    refused(NotImplementedError, "only threads", dcp.async_save, {"x": x}, checkpoint_id=tmp_path, async_stager=3)


STATES = """
    d.get_model_state_dict(m); d.get_optimizer_state_dict(m, o); d.get_optimizer_state_dict(m, [o, o2])
    d.get_optimizer_state_dict(m, t.optim.SGD(m.parameters(), lr=t.tensor(0.5), momentum=0.9))
    d.get_state_dict(m, o, options=d.StateDictOptions(full_state_dict=True, cpu_offload=True))
    d.get_state_dict(m, o, options=d.StateDictOptions(flatten_optimizer_state_dict=True, ignore_frozen_params=True))
    d.get_state_dict(m, []); d.get_optimizer_state_dict(m, [])
    d.get_model_state_dict(m, options=d.StateDictOptions(broadcast_from_rank0=True))
    d.set_model_state_dict(m, {"0.weight": t.ones(2, 3)})
    d.set_model_state_dict(m, {"0.weight": t.ones(2, 3), "x": t.ones(1)}, options=d.StateDictOptions(strict=False))
    d.set_optimizer_state_dict(m, o, {})
    d.set_optimizer_state_dict(m, o, {"state": {"0.bias": {"step": t.tensor(3.0)}}, "param_groups": []})
"""


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("line", expressions(STATES))
@compared(rtol=1e-5, atol=1e-7)
def test_states_are_pytorchs(t: Any, line: str) -> Any:
    model = t.nn.Sequential(t.nn.Linear(3, 2), t.nn.BatchNorm1d(2), t.nn.Linear(2, 1))
    model[2].bias.requires_grad = False
    groups = [{"params": list(model[0].parameters()), "lr": 0.5}, {"params": list(model[1].parameters())}]
    names = {"t": t, "d": of(t, ".state_dict"), "m": model, "o": t.optim.Adam(groups)}
    return plain(eval(line, {**names, "o2": t.optim.SGD([model[2].weight], lr=0.1)}))


def test_names_without_wrappers() -> None:
    model = tinytorch.nn.Linear(3, 2)
    compiled = tinytorch.compile(model)
    found = state_dict.get_model_state_dict(compiled)
    assert list(found) == ["weight", "bias"] and list(compiled.state_dict()) == ["_orig_mod.weight", "_orig_mod.bias"]
    found = {name: value * 0 for name, value in found.items()}
    store = tinytorch.distributed.HashStore()
    tinytorch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    parallel = tinytorch.nn.parallel.DistributedDataParallel(tinytorch.nn.Sequential(model))
    assert list(parallel.state_dict()) == ["module.0.weight", "module.0.bias"]
    assert list(state_dict.get_model_state_dict(parallel)) == ["0.weight", "0.bias"]
    optimizer = tinytorch.optim.SGD(parallel.parameters(), lr=0.1)
    assert state_dict.get_optimizer_state_dict(parallel, optimizer)["param_groups"][0]["params"] == [
        "0.weight",
        "0.bias",
    ]
    state_dict.set_model_state_dict(parallel, {"0.weight": model.weight * 0 + 2, "0.bias": model.bias})
    assert (model.weight == 2).all()
    tinytorch.distributed.destroy_process_group()
    keys = state_dict.set_model_state_dict(compiled, found)
    assert not any(keys) and not model.weight.any() and list(found) == ["weight", "bias"]
    refused(RuntimeError, r"Missing key: bias\.", state_dict.set_model_state_dict, compiled, {"weight": model.weight})
    for call in (state_dict.get_model_state_dict, lambda model: state_dict.set_model_state_dict(model, {})):
        refused(RuntimeError, "model state_dict is empty", call, tinytorch.nn.ReLU())


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("trained", [False, True])
@compared(rtol=1e-4, atol=1e-6)
def test_states_of_optimizers_come_back(t: Any, flat: bool, trained: bool) -> Any:
    d = of(t, ".state_dict")
    options = d.StateDictOptions(flatten_optimizer_state_dict=flat)

    def made(reverse: bool) -> tuple[Any, Any]:
        model = t.nn.Sequential(t.nn.Linear(3, 2), t.nn.Tanh(), t.nn.Linear(2, 2))
        model[2].bias = model[0].bias  # one parameter, two names
        parts = [list(model[0].parameters()), [model[2].weight]]
        return model, t.optim.AdamW([{"params": each} for each in (reversed(parts) if reverse else parts)])

    model, optimizer = made(False)
    for _ in range(3):
        optimizer.zero_grad()
        model(t.ones(4, 3)).square().sum().backward()
        optimizer.step()
    states = d.get_state_dict(model, optimizer, options=options)
    other, its = made(True)  # the groups come in another order
    if trained:
        other(t.ones(4, 3)).sum().backward()
        its.step()
        its.zero_grad()
    keys = d.set_state_dict(other, its, model_state_dict=states[0], optim_state_dict=states[1], options=options)
    out = []
    for m, o in ((model, optimizer), (other, its)):
        o.zero_grad()
        m(t.ones(4, 3)).square().sum().backward()
        o.step()
        out.append(plain(m.state_dict()))
    assert out[0] == out[1]
    return out, list(keys), sorted(states[1])


def ends(processes: int, what: str, folder: Path, well: bool = True) -> None:
    ran = run("checkpoint.py", processes, what, folder)
    assert (ran.returncode == 0) == well, ran.stderr
    assert ran.stdout.count("done") == (processes if well else 0), ran.stdout


@needs_mpi
def test_several_save_and_others_load(tmp_path: Path) -> None:
    ends(2, "save", tmp_path)
    ends(3, "load", tmp_path)
    # One process, and PyTorch, read it.
    dcp.load(into := {"rank 1": {"seed": 0}, "value": tinytorch.zeros(1000)}, checkpoint_id=tmp_path)
    assert into["rank 1"]["seed"] == 1 and into["value"].sum().item() == 1000
    if torch is not None:
        of(torch).load(theirs := {"rank 1": {"noise": torch.zeros(2)}}, checkpoint_id=tmp_path)
        assert theirs["rank 1"]["noise"].tolist() == [1, 1]
    # Killed while another one is written: this one stays.
    ends(2, "kill", tmp_path, well=False)
    dcp.load(into := {"value": tinytorch.zeros(1000)}, checkpoint_id=tmp_path)
    assert into["value"].sum().item() == 1000
    ends(2, "async", tmp_path)
