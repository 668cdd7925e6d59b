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
from tests.oracle import needs_oracle
from tests.same import same_as_pytorch

#: Modules and the names that programs import from them; all names exist in PyTorch, too.
NAMES = """
    cpu.amp.autocast_mode: autocast
    cpu.amp.grad_scaler: GradScaler
    cuda.amp: autocast GradScaler custom_fwd custom_bwd amp_definitely_not_available
    cuda.amp.autocast_mode: autocast custom_fwd custom_bwd
    cuda.amp.common: amp_definitely_not_available
    cuda.amp.grad_scaler: GradScaler
    _C: DispatchKey DispatchKeySet DisableTorchFunctionSubclass Generator _log_api_usage_once _get_tracing_state
    _C: _TensorMeta _nn Node Value
    _custom_ops: custom_op impl
    _functorch.vmap: Tensor _broadcast_to_and_flatten _get_name tree_flatten tree_unflatten
    _ops: HigherOrderOperator OpOverload OpOverloadPacket
    _dynamo: config disable reset allow_in_graph graph_break is_compiling optimize list_backends OptimizedModule
    _dynamo: mark_dynamic mark_static maybe_mark_dynamic
    _dynamo.config: suppress_errors verbose capture_scalar_outputs
    _dynamo.eval_frame: OptimizedModule
    _dynamo._trace_wrapped_higher_order_op: TransformGetItemToIndex
    _dynamo.utils: is_compile_supported
    _higher_order_ops: associative_scan cond foreach_map map scan while_loop
    _higher_order_ops.associative_scan: associative_scan
    _higher_order_ops.cond: cond
    _higher_order_ops.foreach_map: foreach_map
    _higher_order_ops.map: map
    _higher_order_ops.scan: scan
    _higher_order_ops.while_loop: while_loop
    _inductor.config: debug max_autotune fx_graph_cache
    _logging: set_logs getArtifactLogger warning_once
    _subclasses.fake_tensor: FakeTensor FakeTensorMode is_fake
    ao.nn.quantized.dynamic: Linear
    ao.quantization: QuantStub DeQuantStub quantize_dynamic default_dynamic_qconfig
    cuda.memory: memory_allocated max_memory_allocated empty_cache memory_stats mem_get_info reset_peak_memory_stats
    cuda.nvtx: range_push range_pop range mark
    cuda.random: manual_seed manual_seed_all get_rng_state_all seed_all initial_seed
    distributed: is_available is_initialized is_nccl_available ReduceOp get_rank get_world_size all_reduce barrier group
    distributed.distributed_c10d: ProcessGroup
    distributed.nn: all_gather all_reduce
    distributed.tensor: DTensor
    distributions: Wishart
    fft: fft ifft rfft irfft fft2 ifft2 fftn fftfreq rfftfreq fftshift ifftshift
    functional: einsum norm tensordot cdist meshgrid split unique block_diag broadcast_tensors atleast_2d
    futures: Future collect_all wait_all
    fx: wrap symbolic_trace Tracer Proxy Node Graph GraphModule
    fx.experimental.proxy_tensor: get_proxy_mode
    fx.graph_module: GraphModule _CodeOnlyModule _copy_attr _USER_PRESERVED_ATTRIBUTES_KEY
    fx.node: Node Target
    fx.proxy: Proxy
    hub: _get_torch_home HASH_REGEX load_state_dict_from_url get_dir set_dir load list help download_url_to_file
    jit: script trace ScriptModule script_method export ignore unused fork wait annotate isinstance Final Attribute
    jit.annotations: BroadcastingList1 BroadcastingList2 List Optional
    library: Library custom_op define impl register_fake register_autograd register_kernel register_vmap
    multiprocessing: spawn start_processes Process Queue Pool get_context set_start_method ProcessRaisedException
    nn.common_types: _size_1_t _size_2_t _size_3_t _size_any_t _ratio_2_t _size_2_opt_t _tensor_list_t _maybe_indices_t
    autograd: SavedTensor
    _C: is_grad_enabled _WeakTensorRef
    nn.utils.prune: _validate_pruning_amount _compute_norm
    nn.grad: conv1d_input conv1d_weight conv2d_input conv2d_weight conv3d_input conv3d_weight
    nn.modules.channelshuffle: ChannelShuffle
    nn.modules.pixelshuffle: PixelShuffle PixelUnshuffle
    nn.parallel: DataParallel DistributedDataParallel
    nn.parallel.distributed: DistributedDataParallel
    nn.parallel.scatter_gather: scatter scatter_kwargs gather
    nn.utils._named_member_accessor: NamedMemberAccessor set_tensor swap_submodule swap_tensor
    nn.utils.stateless: functional_call _reparametrize_module
    onnx: export is_in_onnx_export register_custom_op_symbolic
    onnx.symbolic_helper: parse_args
    onnx.symbolic_opset11: __doc__
    random: manual_seed fork_rng get_rng_state
    storage: TypedStorage UntypedStorage
    serialization: load save DEFAULT_PROTOCOL MAP_LOCATION
    types: Number Device Tensor
    utils.checkpoint: checkpoint get_device_states set_device_states
    utils._foreach_utils: _group_tensors_by_device_and_dtype _has_foreach_support _device_has_foreach_support
    utils._pytree: tree_map tree_flatten tree_unflatten tree_leaves tree_map_only register_pytree_node TreeSpec
    utils._pytree: Context SUPPORTED_NODES LeafSpec PyTree _get_node_type
    utils.benchmark: Timer Measurement
    utils.data: DistributedSampler
    utils.data._utils.collate: default_collate default_collate_fn_map collate collate_tensor_fn default_convert
    utils.data._utils.collate: np_str_obj_array_pattern
    utils.data._utils.worker: get_worker_info WorkerInfo
    utils.data.dataloader: DataLoader default_collate _BaseDataLoaderIter _SingleProcessDataLoaderIter
    utils.data.dataloader: _MultiProcessingDataLoaderIter
    utils.data.dataset: Dataset random_split
    utils.data.distributed: DistributedSampler
    utils.data.sampler: Sampler RandomSampler
    utils.flop_counter: FlopCounterMode
    utils.hooks: RemovableHandle
    utils.model_zoo: load_url tqdm
    version: debug
    _utils: _flatten_dense_tensors _unflatten_dense_tensors _take_tensors _rebuild_tensor_v2 _get_device_index
    _utils: _get_device_module
"""


@needs_oracle
@pytest.mark.parametrize("line", [each.strip() for each in NAMES.strip().splitlines()])
def test_names_are_where_pytorch_has_them(line: str) -> None:
    path, names = line.split(": ")
    ours, theirs = (importlib.import_module(f"{each}.{path}") for each in ("tinytorch", "torch"))
    for name in names.split():
        assert hasattr(theirs, name), name
        assert getattr(ours, name) is not None


#: Names that packages use and tinytorch has, by module or class (`scripts/imported_names.py --table` writes the file).
ASKED = Path(__file__).with_name("asked_names.txt").read_text("utf-8").splitlines()


def found(name: str) -> Any:
    """Return the object with a dotted name in tinytorch; the modules in the path are imported."""
    value: Any = tinytorch
    way = "tinytorch"
    for part in name.removeprefix("torch").removeprefix(".").split("."):
        way += f".{part}"
        try:
            value = inspect.getattr_static(value, part) if isinstance(value, type) else getattr(value, part)
        except AttributeError:
            value = importlib.import_module(way)
    return value


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("line", ASKED, ids=lambda line: line.split(":")[0])
def test_no_name_that_packages_ask_for_goes_away(line: str) -> None:
    path, names = line.split(": ")
    for name in names.split():
        found(f"{path}.{name}")


@needs_oracle
def test_modules_of_layers_have_pytorchs_names() -> None:
    import torch

    for name in torch.nn.modules.__all__:
        ours = getattr(tinytorch.nn, name, None)
        if ours is not None and name != "DataParallel":
            theirs = getattr(torch.nn, name).__module__
            assert ours.__module__ == theirs.replace("torch.", "tinytorch.", 1), name


def of(torch: Any, path: str) -> Any:
    return importlib.import_module(f"{torch.__name__}.{path}")


@needs_oracle
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


@needs_oracle
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


@needs_oracle
def test_distributed_sampler_of_no_such_part() -> None:
    same_as_pytorch(lambda t: t.utils.data.DistributedSampler(range(3), 2, 2))
    same_as_pytorch(lambda t: t.utils.data.DistributedSampler(range(3), 2, -1))
    same_as_pytorch(lambda t: t.utils.data.DistributedSampler(range(3)))
    same_as_pytorch(lambda t: t.utils.data.DistributedSampler(range(3), 2))
    same_as_pytorch(lambda t: t.utils.data.DistributedSampler(range(3), rank=0))


# Devices that are not available -------------------------------------------------------------------

ABSENT = """
    torch.xpu.is_available(), torch.xpu.device_count(), torch.xpu.is_initialized(), torch.xpu.is_bf16_supported()
    torch.xpu.manual_seed(1), torch.xpu.manual_seed_all(1), torch.xpu.seed(), torch.xpu.get_rng_state_all()
    torch.xpu.empty_cache(), torch.xpu.memory_allocated(), torch.xpu.max_memory_reserved(), torch.xpu.memory_stats()
    torch.xpu.current_device()
    torch.xpu.synchronize()
    torch.xpu.get_device_name()
    torch.mps.is_available(), torch.mps.device_count(), torch.mps.manual_seed(3)
    torch.mps.synchronize()
    torch.mps.empty_cache()
    torch.mps.seed()
    torch.mps.get_rng_state()
    torch.mps.current_allocated_memory()
    torch.mps.driver_allocated_memory()
    torch.mps.recommended_max_memory()
    torch.mps.set_per_process_memory_fraction(0.5)
    torch.accelerator.is_available(), torch.accelerator.device_count(), torch.accelerator.current_accelerator()
    torch.accelerator.synchronize()
    torch.accelerator.current_device_index()
    torch.accelerator.memory_allocated()
    torch.accelerator.empty_cache()
    torch.accelerator.device_index(None).__enter__()
    torch.accelerator.device_index(0).__enter__()
    torch.cuda.memory.memory_allocated(), torch.cuda.memory_stats_as_nested_dict(), torch.cuda.random.seed_all()
    torch.cuda.cudart()
    torch.cuda.memory.mem_get_info()
    torch.cuda.random.initial_seed()
    torch.cuda.nvtx.range_push("a")
    torch.cuda.nvtx.mark("a")
    torch.cuda.nvtx.range("a").__enter__()
"""


@needs_oracle
@pytest.mark.parametrize("line", [each.strip() for each in ABSENT.strip().splitlines()])
def test_absent_devices(line: str) -> None:
    same_as_pytorch(lambda torch: eval(line, {"torch": torch}))


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


@needs_oracle
def test_switches_without_effect() -> None:
    def program(torch: Any) -> list[Any]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            torch.backends.mkldnn.matmul.fp32_precision = "none"  # `set_float32_matmul_precision` leaves it changed
            return switches(torch)

    same_as_pytorch(program)


# TorchScript --------------------------------------------------------------------------------------

JIT = """
    torch.jit.annotate(int, 3), torch.jit.is_scripting(), torch.jit.is_tracing()
    torch.jit.fork(torch.add, torch.ones(1), 2).wait()
    torch.jit.wait(torch.jit.fork(lambda x: x, 3))
    torch.jit.isinstance([1], list[int]), torch.jit.isinstance([1, "a"], list[int]), torch.jit.isinstance([], list[int])
    torch.jit.isinstance({"a": torch.ones(1)}, dict[str, torch.Tensor]), torch.jit.isinstance({1: 2}, dict[str, int])
    torch.jit.isinstance((1, "a"), tuple[int, str]), torch.jit.isinstance((1,), tuple[int, str])
    torch.jit.isinstance(None, int | None), torch.jit.isinstance("a", int | None), torch.jit.isinstance(2, (str, int))
    torch.jit.isinstance(1, "int")
    torch.jit.Attribute(3, int)
    torch.jit.script(3)
    torch.jit.trace(torch.nn.Linear(2, 2))
    torch.jit.trace(torch.nn.Linear(2, 3), torch.ones(2))(torch.zeros(4, 2))
    torch.jit.trace(torch.nn.Bilinear(2, 2, 1), (torch.ones(2), torch.ones(2)))(torch.ones(3, 2), torch.zeros(3, 2))
    torch.jit.script(torch.nn.Linear(2, 3))(torch.zeros(4, 2))
    torch.jit.freeze(torch.jit.script(torch.nn.Linear(2, 3)))
    torch.jit.freeze(torch.jit.script(torch.nn.Linear(2, 3)).eval())(torch.ones(2))
    torch.jit.load("no such file")
"""


@needs_oracle
@pytest.mark.parametrize("line", [each.strip() for each in JIT.strip().splitlines()])
def test_jit(line: str) -> None:
    def program(torch: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return eval(line, {"torch": torch})

    same_as_pytorch(program)


@needs_oracle
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

UTILS = """
    u._flatten_dense_tensors([torch.ones(1), torch.zeros(1, 2)])
    u._unflatten_dense_tensors(torch.arange(5), [torch.ones(2), torch.ones(3, 1)])
    [len(c) for c in u._take_tensors([torch.ones(2), torch.ones(3), torch.ones(1).double(), torch.ones(9)], 20)]
    u._reorder_tensors_as([torch.ones(2), torch.ones(1), torch.ones(1).int()], [torch.ones(1).int(), torch.ones(1)])
    u._get_device_index(3), u._get_device_index("cuda:1"), u._get_device_index(None, True)
    u._get_device_index(torch.device("cpu"), False, True)
    u._get_device_index("cpu")
    u._get_device_index(None)
    u._get_device_index("x")
"""


@needs_oracle
@pytest.mark.parametrize("line", [each.strip() for each in UTILS.strip().splitlines()])
def test_utils(line: str) -> None:
    same_as_pytorch(lambda torch: eval(line, {"torch": torch, "u": of(torch, "_utils")}))


@needs_oracle
def test_parallel_modules() -> None:
    def program(torch: Any) -> Any:
        return torch.nn.parallel.DataParallel(torch.nn.Linear(2, 1))(torch.ones(3, 2))

    same_as_pytorch(program)
    same_as_pytorch(lambda t: of(t, "nn.parallel").DistributedDataParallel(t.nn.Linear(2, 2)))


@needs_oracle
def test_stateless_functional_call() -> None:
    def program(torch: Any) -> Any:
        layer = torch.nn.Linear(2, 1)
        new = {"weight": torch.ones(1, 2), "bias": torch.zeros(1)}
        return of(torch, "nn.utils.stateless").functional_call(layer, new, (torch.ones(2),))

    same_as_pytorch(program)


def test_later_modules_are_not_loaded_at_import() -> None:
    code = "import sys, tinytorch; print([m for m in ('hub', 'jit', 'functional') if f'tinytorch.{m}' in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
