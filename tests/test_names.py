"""Names that programs import: they are in the same modules as in PyTorch, and behave as PyTorch's."""

from __future__ import annotations

import http.server
import importlib
import inspect
import os
import pickle
import signal
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinytorch
from tests.oracle import needs_oracle, torch
from tests.same import compared, same_as_pytorch
from tinytorch.core.supplied import Member

#: Names that packages use and tinytorch has, by module or class (`scripts/imported_names.py --table` writes the file).
ASKED = Path(__file__).with_name("asked_names.txt").read_text("utf-8").splitlines()
#: Others that programs import, without the first part of the path.
IMPORTED = """
    cpu.amp.autocast_mode: autocast | cpu.amp.grad_scaler: GradScaler
    cuda.amp: custom_fwd custom_bwd amp_definitely_not_available
    cuda.amp.autocast_mode: autocast custom_fwd custom_bwd | _C: DispatchKey Generator Node _WeakTensorRef
    _custom_ops: custom_op impl | _ops: OpOverload OpOverloadPacket
    _dynamo: graph_break mark_static maybe_mark_dynamic | _dynamo.config: suppress_errors verbose
    _higher_order_ops: cond foreach_map map scan while_loop | _higher_order_ops.associative_scan: associative_scan
    _higher_order_ops.cond: cond | _higher_order_ops.foreach_map: foreach_map | _higher_order_ops.map: map
    _higher_order_ops.scan: scan | _higher_order_ops.while_loop: while_loop
    _inductor.config: debug max_autotune fx_graph_cache | _logging: set_logs getArtifactLogger warning_once
    ao.nn.quantized.dynamic: Linear | ao.quantization: quantize_dynamic default_dynamic_qconfig
    cuda.memory: memory_allocated max_memory_allocated empty_cache memory_stats mem_get_info reset_peak_memory_stats
    cuda.nvtx: range | cuda.random: manual_seed manual_seed_all seed_all initial_seed
    distributed.distributed_c10d: ProcessGroup | distributions: Wishart
    functional: einsum norm tensordot cdist meshgrid split unique block_diag broadcast_tensors atleast_2d
    futures: wait_all | fx.graph_module: GraphModule | hub: list help | jit: script_method fork wait
    jit.annotations: BroadcastingList1 Optional | library: impl register_vmap | multiprocessing: ProcessRaisedException
    nn.common_types: _ratio_2_t _size_2_opt_t _tensor_list_t _maybe_indices_t | autograd: SavedTensor
    nn.utils.prune: _validate_pruning_amount _compute_norm
    nn.grad: conv1d_input conv1d_weight conv2d_input conv2d_weight conv3d_input conv3d_weight
    nn.modules.channelshuffle: ChannelShuffle | nn.modules.pixelshuffle: PixelShuffle PixelUnshuffle
    nn.parallel.scatter_gather: scatter_kwargs gather
    nn.utils._named_member_accessor: NamedMemberAccessor set_tensor swap_submodule | serialization: load save
    types: Device Tensor
    utils._foreach_utils: _group_tensors_by_device_and_dtype _has_foreach_support _device_has_foreach_support
    utils.benchmark: Timer Measurement | utils.data._utils.collate: collate | utils.data._utils.worker: get_worker_info
    utils.data.sampler: RandomSampler | version: debug | _utils: _take_tensors _get_device_module
    onnx: symbolic_opset11
"""
ASKED += [f"torch.{each.strip()}" for each in IMPORTED.strip().replace("\n", " | ").split(" | ")]


def found(path: str, name: str, library: str) -> Any:
    """Return the object with a name in a module, a class or another object of a library; modules are imported."""
    way, *parts = path.split(".")
    way = way if library == "torch" else {"torch": library}.get(way, f"{library}.{way}")
    value: Any = importlib.import_module(way)
    for part in [*parts, name]:
        home, outer, way = value, way, f"{way}.{part}"
        try:
            value = inspect.getattr_static(home, part) if isinstance(home, type) else getattr(home, part)
            value = value.load() if isinstance(value, Member) else value
        except AttributeError:
            value = getattr(importlib.import_module(outer), part, None) if inspect.isroutine(home) else None
            value = importlib.import_module(way) if value is None else value
    return value


def defaults(value: Any) -> dict[str, Any]:
    """Return the defaults of a function's or class's parameters: those that are numbers, texts and the like."""
    if not getattr(value, "__module__", "").startswith(("tinytorch", "torch")):
        return {}  # of the standard library
    try:
        parameters = inspect.signature(value).parameters
    except (TypeError, ValueError):  # PyTorch's built-in functions have none
        return {}
    plain = (type(None), bool, int, float, str, tuple)
    return {name: each.default for name, each in parameters.items() if isinstance(each.default, plain)}


@pytest.mark.parametrize("module", [
    "nn", "nn.functional", "nn.init", "nn.utils", "nn.utils.rnn", "nn.utils.parametrizations", "nn.utils.prune",
    "nn.attention", "nn.attention.flex_attention", "nn.attention.bias", "optim", "optim.lr_scheduler",
    "optim.swa_utils", "utils.data", "utils.checkpoint", "autograd", "autograd.functional", "func", "distributions",
    "amp", "serialization", "testing", "onnx", "linalg", "fx", "compiler",
])  # fmt: skip
@compared
def test_the_defaults_of_parameters(library: Any, module: str) -> dict[str, dict[str, Any]]:
    """Where a parameter is tinytorch's alone, its own default stands for PyTorch's."""
    ours = importlib.import_module(f"tinytorch.{module}")
    theirs = importlib.import_module(f"{library.__name__}.{module}")
    public = [name for name in sorted(dir(ours)) if name[0] != "_" and callable(getattr(ours, name))]
    found = {}
    for name in public:
        found[name] = defaults(getattr(ours, name))
        of_theirs = defaults(getattr(theirs, name, None))
        found[name] |= {parameter: of_theirs[parameter] for parameter in found[name] if parameter in of_theirs}
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("line", ASKED, ids=lambda line: line.split(":")[0])
def test_no_name_that_programs_ask_for_goes_away(line: str) -> None:
    path, names = line.split(": ")
    for name in names.split():  # (its value may be None: that of some depends on what is installed beside PyTorch)
        found(path, name, "tinytorch")


@needs_oracle
def test_modules_of_layers_have_pytorchs_names() -> None:
    for name in torch.nn.modules.__all__:
        ours = getattr(tinytorch.nn, name, None)
        if ours is not None and name != "DataParallel":
            theirs = getattr(torch.nn, name).__module__
            assert ours.__module__ == theirs.replace("torch.", "tinytorch.", 1), name


def of(torch: Any, path: str) -> Any:
    return importlib.import_module(f"{torch.__name__}.{path}")


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize(
    "settings", [{}, {"stride": 2, "padding": 1}, {"stride": 2, "groups": 2, "dilation": 2}], ids=str
)
def test_gradients_of_convolutions(n: int, settings: dict[str, int]) -> None:
    def program(torch: Any) -> list[Any]:
        rng = np.random.default_rng(n)

        def normal(*shape: int) -> Any:
            return torch.tensor(rng.standard_normal(shape))

        x = normal(2, 4, *(9, 8, 7)[:n])
        w = normal(6, 4 // settings.get("groups", 1), *(3, 2, 2)[:n])
        out = getattr(torch.nn.functional, f"conv{n}d")(x, w, **settings)
        g = normal(*out.shape)
        module = of(torch, "nn.grad")
        return [
            getattr(module, f"conv{n}d_input")(x.shape, w, g, **settings),
            getattr(module, f"conv{n}d_weight")(x, w.shape, g, **settings),
        ]

    same_as_pytorch(program, 1e-9, 1e-12)


@pytest.mark.parametrize("size", [(1, 1, 5), (1, 2, 3), (1, 3), (2, 1, 3)])
def test_sizes_of_no_convolution_are_refused(size: tuple[int, ...]) -> None:
    weight, g = tinytorch.ones(1, 1, 2), tinytorch.ones(1, 1, 2)
    with pytest.raises(RuntimeError, match="no convolution of an input of size"):
        tinytorch.nn.grad.conv1d_input(size, weight, g)


# Samplers -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("length", [0, 1, 5, 8, 13])
def test_distributed_sampler(length: int, shuffle: bool, drop_last: bool) -> None:
    def program(torch: Any) -> list[Any]:
        out = []
        for parts in (1, 2, 3, 7):
            for rank in range(parts):
                sampler = torch.utils.data.DistributedSampler(
                    range(length), parts, rank, shuffle, seed=5, drop_last=drop_last
                )
                sampler.set_epoch(rank)
                if not (drop_last and length < parts):  # (PyTorch has a negative length)
                    out.append([list(sampler), len(sampler), sampler.total_size])
        return out

    same_as_pytorch(program)


# Devices that are not available -------------------------------------------------------------------


# Switches without effect ---------------------------------------------------------------------------


def switches(torch: Any) -> list[Any]:
    """Set switches as programs do, and return their values."""
    b = torch.backends
    cudnn, mkldnn, cuda = b.cudnn, b.mkldnn, b.cuda
    out = [b.fp32_precision, cudnn.conv.fp32_precision, mkldnn.matmul.fp32_precision, mkldnn.is_acl_available()]

    def seen() -> None:
        out.append([cudnn.enabled, cudnn.benchmark, cudnn.deterministic, cudnn.allow_tf32, cudnn.fp32_precision])
        out.append([mkldnn.enabled, mkldnn.deterministic])
        out.append([cuda.flash_sdp_enabled(), cuda.math_sdp_enabled(), cuda.mem_efficient_sdp_enabled()])

    seen()
    with cudnn.flags(enabled=True, benchmark=True, deterministic=True, allow_tf32=False):
        seen()
    seen()
    before = cudnn.set_flags(False, True, 5, True)[:5]
    seen()
    cudnn.set_flags(*before)
    with mkldnn.flags(enabled=False, deterministic=True):
        seen()
    with b.mkl.verbose(b.mkl.VERBOSE_OFF), mkldnn.verbose(mkldnn.VERBOSE_OFF):
        seen()
    with cuda.sdp_kernel(enable_flash=False, enable_math=True, enable_mem_efficient=False):
        seen()
    cuda.allow_fp16_bf16_reduction_math_sdp(True)
    out.append(cuda.fp16_bf16_reduction_math_sdp_allowed())
    cuda.allow_fp16_bf16_reduction_math_sdp(False)
    seen()
    return [*out, before, cuda.is_flash_attention_available()]


def test_switches_without_effect() -> None:
    def program(torch: Any) -> list[Any]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            torch.backends.mkldnn.matmul.fp32_precision = "none"  # `set_float32_matmul_precision` leaves it changed
            return switches(torch)

    same_as_pytorch(program)


# TorchScript --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "x * 2 if x.sum() > 0 else x", "x * int(x[0])", "x * float(x[0])", "x * x[0].item()", "x * x.tolist()[0]",
        "x + x.numpy()[0].item()", "x * 2", "x * x.shape[0]", "torch.dropout(x, 0.5, True)",
    ],
)  # fmt: skip
def test_a_trace_warns_where_values_are_read(line: str) -> None:
    def program(torch: Any) -> list[str]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            torch.jit.trace(lambda x: eval(line, {"torch": torch, "x": x}), torch.ones(3), check_trace=False)
        found = [each for each in caught if issubclass(each.category, torch.jit.TracerWarning)]
        assert all(each.filename in (__file__, "<string>") for each in found)
        return [str(each.message).partition(" (So")[0] for each in found]

    same_as_pytorch(program)


def test_scripted_code_is_the_code(tmp_path: Path) -> None:
    def f(x: tinytorch.Tensor) -> tinytorch.Tensor:
        return x * 2 if x.sum() > 0 else x

    module = tinytorch.nn.Linear(2, 2)
    jit = tinytorch.jit
    assert jit.script(f) is f and jit.script(module) is module
    with pytest.warns(jit.TracerWarning, match="Converting a tensor to a Python boolean might cause the trace"):
        assert jit.trace(f, tinytorch.ones(2)) is f
    assert jit.unused(f) is f and jit.export(f) is f and jit.ignore(f) is f and jit.ignore(drop=True)(f) is f
    assert jit.trace_module(module, {"forward": tinytorch.ones(2)}) is module
    with pytest.raises(NotImplementedError, match=r"torch\.save"):
        jit.save(module, tmp_path / "a.pt")
    (tmp_path / "b.pt").write_bytes(b"PK")
    with pytest.raises(NotImplementedError, match="reads no TorchScript"):
        jit.load(tmp_path / "b.pt")


# Files from elsewhere -----------------------------------------------------------------------------


def test_state_dict_from_a_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    hub = tinytorch.hub
    monkeypatch.setattr(hub, "_directory", [])
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "home"))
    assert hub.get_dir() == str(tmp_path / "home" / "hub")
    hub.set_dir(tmp_path / "hub")
    source = tmp_path / "net-00000000.pt"
    tinytorch.save({"w": tinytorch.ones(2)}, source)
    url = source.as_uri()
    with pytest.raises(RuntimeError, match="invalid hash value"):
        hub.load_state_dict_from_url(url, progress=False, check_hash=True)
    assert os.listdir(tmp_path / "hub" / "checkpoints") == []
    assert hub.load_state_dict_from_url(url, progress=False)["w"].tolist() == [1.0, 1.0]
    source.unlink()
    assert list(hub.load_state_dict_from_url(url)) == ["w"]  # from the cache
    assert "Downloading" in capsys.readouterr().out


def test_a_download_that_breaks_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Short(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "20")
            self.end_headers()
            self.wfile.write(b"half" * int(self.path[1:]))

        def log_message(self, *args: Any) -> None:
            pass

    monkeypatch.setenv("no_proxy", "127.0.0.1")
    download = tinytorch.hub.download_url_to_file
    with http.server.HTTPServer(("127.0.0.1", 0), Short) as server:
        url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=lambda: [server.handle_request() for _ in range(2)])
        thread.start()
        with pytest.raises(OSError, match="12 bytes are missing"):
            download(f"{url}/2", str(tmp_path / "a"), progress=False)
        assert os.listdir(tmp_path) == []
        download(f"{url}/5", str(tmp_path / "a"), progress=False)
        thread.join()
    assert (tmp_path / "a").read_bytes() == b"half" * 5


def test_models_of_a_directory(tmp_path: Path) -> None:
    hub = tinytorch.hub
    (tmp_path / "hubconf.py").write_text(
        "dependencies = ['numpy']\n\n\ndef double(k):\n    'Twice.'\n    return 2 * k\n"
    )
    assert hub.load(tmp_path, "double", 3, source="local") == 6
    assert hub.list(tmp_path, source="local") == ["double"]
    assert hub.help(tmp_path, "double", source="local") == "Twice."
    with pytest.raises(RuntimeError, match="Cannot find callable triple in hubconf"):
        hub.load(tmp_path, "triple", source="local")
    with pytest.raises(NotImplementedError, match="not downloaded"):
        hub.load("pytorch/vision", "resnet18")
    with pytest.raises(ValueError, match="Unknown source"):
        hub.load(tmp_path, "double", source="disk")


# Processes ----------------------------------------------------------------------------------------


def work(index: int, directory: str, what: str) -> None:
    if what == "raise" and index == 1:
        raise KeyError("a word")
    if what == "exit" and index == 1:
        os._exit(3)
    if what == "signal" and index == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    Path(directory, str(index)).write_text(str(tinytorch.ones(2).sum().item() + index))


START = "fork" if "fork" in importlib.import_module("multiprocessing").get_all_start_methods() else "spawn"


def test_processes_run(tmp_path: Path) -> None:
    mp = tinytorch.multiprocessing
    assert mp.spawn(work, (str(tmp_path), ""), nprocs=2, start_method=START) is None
    assert [Path(tmp_path, name).read_text() for name in "01"] == ["2.0", "3.0"]
    context = mp.spawn(work, (str(tmp_path), ""), nprocs=2, join=False, start_method=START)
    assert len(context.pids()) == 2
    while not context.join():
        pass
    assert context.join()


@pytest.mark.parametrize(
    ("what", "kind", "words"),
    [
        ("raise", "ProcessRaisedException", "-- Process 1 terminated with the following error:"),
        ("exit", "ProcessExitedException", "process 1 terminated with exit code 3"),
        ("signal", "ProcessExitedException", "process 1 terminated with signal SIGKILL"),
    ],
)
def test_processes_that_fail(tmp_path: Path, what: str, kind: str, words: str) -> None:
    mp = tinytorch.multiprocessing
    with pytest.raises(getattr(mp, kind), match=words) as caught:
        mp.start_processes(work, (str(tmp_path), what), nprocs=2, start_method=START)
    assert caught.value.error_index == 1
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value) and again.__dict__ == caught.value.__dict__
    assert what != "raise" or "KeyError: 'a word'" in str(caught.value)


# Per-sample gradients -----------------------------------------------------------------------------


def test_later_modules_are_not_loaded_at_import() -> None:
    code = "import sys, tinytorch; print([m for m in ('hub', 'jit', 'functional') if f'tinytorch.{m}' in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
