"""Settings of the process, `amp`, `compile`, and `cuda` without a GPU, against PyTorch."""

from __future__ import annotations

import contextlib
import operator
import os
import pickle
import subprocess
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tinytorch
from tests.oracle import needs_oracle, torch
from tests.same import same_as_pytorch
from tinytorch import _version
from tinytorch.kernels import blas


@contextlib.contextmanager
def as_it_was(torch: Any) -> Iterator[None]:
    """Restore the settings of a library afterwards."""
    threads, always = torch.get_num_threads(), torch.is_warn_always_enabled()
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        torch.set_warn_always(always)
        torch.use_deterministic_algorithms(False)
        torch.set_float32_matmul_precision("highest")
        torch.set_default_dtype(torch.float32)
        torch.set_default_device(None)


def inside(torch: Any, context: Any) -> tuple[Any, ...]:
    with context:
        return (torch.is_autocast_enabled(), torch.is_autocast_enabled("cpu"), torch.get_default_device())


def deterministic(torch: Any) -> tuple[Any, ...]:
    return (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
        torch.get_deterministic_debug_mode(),
    )


# Programs: all statements run, and the value of the last line is compared.
SAME = """
    torch.set_num_threads(1); torch.get_num_threads()
    torch.set_num_threads(2); torch.get_num_threads()
    torch.set_num_threads(0)
    torch.set_num_threads(-1)
    torch.set_num_threads("a")
    torch.set_num_threads(1.5)
    torch.set_num_threads(True)
    torch.set_num_interop_threads(0)
    torch.set_num_interop_threads("a")
    torch.get_num_interop_threads() > 0
    deterministic(torch)
    torch.use_deterministic_algorithms(True); deterministic(torch)
    torch.use_deterministic_algorithms(True, warn_only=True); deterministic(torch)
    torch.use_deterministic_algorithms(mode=False, warn_only=True); deterministic(torch)
    torch.use_deterministic_algorithms(1)
    torch.use_deterministic_algorithms("a")
    torch.set_deterministic_debug_mode("warn"); deterministic(torch)
    torch.set_deterministic_debug_mode(2); deterministic(torch)
    torch.set_deterministic_debug_mode("default"); deterministic(torch)
    torch.set_deterministic_debug_mode(3)
    torch.set_deterministic_debug_mode("x")
    torch.set_deterministic_debug_mode(1.5)
    torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium"); torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("x"); torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(1)
    torch.set_flush_denormal(1)
    torch.set_warn_always(1)
    torch.set_warn_always(True); torch.is_warn_always_enabled()
    torch.set_default_tensor_type("torch.DoubleTensor"); torch.zeros(1)
    torch.set_default_tensor_type(torch.DoubleTensor); torch.get_default_dtype()
    torch.set_default_tensor_type(torch.IntTensor)
    torch.set_default_tensor_type("torch.cuda.FloatTensor")
    torch.set_default_tensor_type("abc")
    torch.set_default_dtype(torch.int32)
    torch.set_default_dtype("a")
    torch.set_default_dtype(None)
    torch.get_default_device()
    torch.set_default_device("cpu"); torch.get_default_device()
    torch.set_default_device("cpu:0"); torch.get_default_device()
    torch.set_default_device("cpu"); torch.zeros(1)
    torch.set_default_device("foo")
    torch.set_default_device(1)
    inside(torch, torch.device("cpu"))
    inside(torch, torch.device("cpu:0"))
    torch.device("")
    torch.device(3)
    torch.device(-1)
    torch.zeros(1, device=0)
    torch.device("cpu:")
    inside(torch, torch.autocast("cpu", enabled=False))
    inside(torch, torch.autocast("cuda"))
    inside(torch, torch.autocast("cuda", dtype=torch.bfloat16))
    inside(torch, torch.autocast(device_type="cuda", dtype=torch.float16, enabled=False))
    inside(torch, torch.autocast("cpu", dtype=torch.float32))
    inside(torch, torch.autocast("mps"))
    inside(torch, torch.autocast("foo"))
    inside(torch, torch.amp.autocast("cuda"))
    inside(torch, torch.cuda.amp.autocast())
    inside(torch, torch.cuda.amp.autocast(enabled=False))
    torch.autocast(3)
    torch.autocast()
    torch.autocast("cuda")(lambda a: a + 1)(2)
    torch.autocast("cpu", enabled=False)(lambda a: a + 1)(2)
    torch.amp.autocast is torch.autocast
    torch.is_autocast_enabled("foo")
    torch.get_autocast_dtype("cpu"), torch.get_autocast_dtype("cuda"), torch.get_autocast_dtype("xpu")
    torch.is_autocast_cpu_enabled()
    torch.get_autocast_cpu_dtype()
    torch.get_autocast_gpu_dtype()
    torch.is_autocast_cache_enabled()
    torch.set_autocast_enabled(False)
    torch.set_autocast_enabled("cpu", False)
    torch.clear_autocast_cache()
    torch.autocast_increment_nesting(), torch.autocast_decrement_nesting()
    torch.amp.is_autocast_available("cpu"), torch.amp.is_autocast_available("cuda")
    torch.amp.is_autocast_available("foo")
    torch.amp.GradScaler().is_enabled()
    torch.amp.GradScaler("cuda", enabled=False).is_enabled()
    torch.amp.GradScaler("cuda").state_dict()
    torch.amp.GradScaler("cuda").get_scale()
    torch.cuda.amp.GradScaler().scale(torch.ones(2))
    torch.cuda.amp.GradScaler(enabled=False).is_enabled()
    torch.amp.GradScaler("cpu").scale(torch.ones(2))
    torch.amp.GradScaler("cpu").scale([torch.ones(2), (torch.ones(1),)])
    torch.amp.GradScaler("cpu").scale(1)
    torch.amp.GradScaler("cpu").state_dict()
    torch.amp.GradScaler("cpu").update()
    torch.amp.GradScaler("cpu").load_state_dict({})
    torch.amp.GradScaler("cpu", growth_factor=1.0)
    torch.amp.GradScaler("cpu", backoff_factor=1.0)
    torch.cond(True, lambda a: a + 1, lambda a: a - 1, (torch.ones(2),))
    torch.cond(torch.tensor(False), lambda a: a + 1, lambda a: a - 1, (torch.ones(2),))
    torch.cuda.is_available(), torch.cuda.is_initialized(), torch.cuda.device_count()
    torch.cuda.is_bf16_supported(), torch.cuda.is_tf32_supported(), torch.cuda.get_arch_list()
    torch.cuda.init()
    torch.cuda.current_device()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.manual_seed(1), torch.cuda.manual_seed_all(1), torch.cuda.seed(), torch.cuda.seed_all()
    torch.cuda.manual_seed("a")
    torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated(), torch.cuda.memory_reserved()
    torch.cuda.memory_cached()
    dict(torch.cuda.memory_stats())
    torch.cuda.mem_get_info()
    torch.cuda.get_device_name(0)
    torch.cuda.get_device_properties(0)
    torch.cuda.get_device_capability()
    torch.cuda.set_device(-1)
    inside(torch, torch.cuda.device(-1))
    inside(torch, torch.cuda.device(0))
    inside(torch, torch.cuda.device_of(torch.ones(1)))
    inside(torch, torch.cuda.stream(None))
    torch.cuda.Stream()
    torch.cuda.Event()
    torch.cuda.CUDAGraph()
    torch.cuda.current_stream()
    torch.cuda.get_rng_state()
    torch.cuda.get_rng_state_all()
    torch.cuda.FloatTensor(2)
    isinstance(torch.ones(1), torch.cuda.FloatTensor)
    issubclass(torch.OutOfMemoryError, RuntimeError), torch.OutOfMemoryError is torch.cuda.OutOfMemoryError
    torch.version.cuda, torch.version.hip, torch.version.debug
    torch.cpu.is_available(), torch.cpu.device_count(), torch.cpu.current_device(), torch.cpu.synchronize()
    torch.mps.is_available(), torch.xpu.is_available(), torch.xpu.device_count()
    torch.backends.cudnn.version(), torch.backends.cudnn.is_available()
    torch.backends.cudnn.enabled, torch.backends.cudnn.benchmark, torch.backends.cudnn.benchmark_limit
    torch.backends.cuda.flash_sdp_enabled(), torch.backends.cuda.math_sdp_enabled()
    torch.backends.cuda.matmul.allow_tf32
    torch.backends.mha.get_fastpath_enabled()
    torch.compiler.is_compiling()
    torch.can_cast(torch.int32, torch.uint8)
    torch.can_cast(1, torch.int32)
    torch.promote_types(1, torch.int8)
    repr(torch.finfo(torch.float32)), repr(torch.finfo(torch.float64)), repr(torch.finfo())
    repr(torch.finfo(torch.float16)), repr(torch.finfo(torch.bfloat16))
    [getattr(torch.finfo(torch.bfloat16), n) for n in "bits eps max min tiny smallest_normal resolution dtype".split()]
    [getattr(torch.finfo(torch.float32), n) for n in "bits eps max min tiny smallest_normal resolution dtype".split()]
    repr(torch.iinfo(torch.int32)), repr(torch.iinfo(torch.uint8)), repr(torch.iinfo(torch.int64))
    [getattr(torch.iinfo(torch.int16), n) for n in "bits max min dtype".split()]
    torch.finfo(torch.float32) == torch.finfo(torch.float32), torch.finfo(torch.float32) == torch.finfo(torch.float64)
    torch.finfo(torch.int32)
    torch.finfo("a")
    torch.iinfo(torch.float32)
    torch.iinfo(torch.bool)
    torch.iinfo("a")
    torch.iinfo()
    torch.typename(torch.ones(1)), torch.typename(1)
"""


def run(text: str, torch: Any) -> Any:
    *before, last = text.split("; ")
    names = {"torch": torch, "np": np, "inside": inside, "deterministic": deterministic}
    with as_it_was(torch):
        for statement in before:
            exec(statement, names)
        return eval(last, names)


@needs_oracle
@pytest.mark.parametrize("text", [line.strip() for line in SAME.strip().splitlines()])
def test_same_as_pytorch(text: str) -> None:
    same_as_pytorch(lambda torch: run(text, torch))


@needs_oracle
def test_can_cast_of_all_dtypes() -> None:
    names = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64".split()
    same_as_pytorch(lambda torch: [torch.can_cast(getattr(torch, a), getattr(torch, b)) for a in names for b in names])


def test_threads_are_those_of_the_blas() -> None:
    found = blas.threads()
    if found is None:
        pytest.skip("NumPy brings no OpenBLAS here")
    before = tinytorch.get_num_threads()
    try:
        tinytorch.set_num_threads(1)
        assert found[1]() == 1
    finally:
        tinytorch.set_num_threads(before)
    assert found[1]() == before


def test_products_can_be_limited_to_one_thread() -> None:
    found = blas.threads()
    if found is None:
        pytest.skip("NumPy brings no OpenBLAS here")
    before = found[1]()
    with blas.one_thread():
        with blas.one_thread():
            assert found[1]() == 1
        assert found[1]() == 1
    assert found[1]() == before


@pytest.mark.parametrize("first", ["numpy", "tinytorch"])
def test_idle_threads_of_the_blas_sleep(first: str) -> None:
    if first == "numpy" and not blas.reload_settings():
        pytest.skip("NumPy's OpenBLAS looks at the variable only once")
    # (In a new process, in which no other library has started threads.)
    program = f"""if True:
        import {first}
        import time
        import numpy as np
        import tinytorch

        square = np.ones((600, 600), np.float32)
        square @ square
        start = time.process_time()
        time.sleep(0.2)
        print(time.process_time() - start)
    """
    environment = {k: v for k, v in os.environ.items() if k != "OPENBLAS_THREAD_TIMEOUT"}
    run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert float(run.stdout) < 0.01  # CPU seconds while the process was idle


def test_idle_threads_are_told_to_sleep_before_numpy_is_imported() -> None:
    program = """if True:
        import os
        import sys

        class Finder:
            def find_spec(self, name, path, target=None):
                if name == "numpy":
                    print(os.environ.get("OPENBLAS_THREAD_TIMEOUT"))

        sys.meta_path.insert(0, Finder())
        import tinytorch
    """
    environment = {k: v for k, v in os.environ.items() if k != "OPENBLAS_THREAD_TIMEOUT"}
    run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert run.stdout == "16\n"


def test_without_a_blas_the_number_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    from tinytorch.kernels import parallel

    monkeypatch.setattr(blas, "threads", lambda: None)
    monkeypatch.setattr(parallel, "_threads", 1)
    tinytorch.set_num_threads(3)
    assert tinytorch.get_num_threads() == 3


def test_interop_threads_are_set_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from tinytorch import switches

    monkeypatch.setattr(switches, "_interop_threads", None)
    tinytorch.set_num_interop_threads(2)
    assert tinytorch.get_num_interop_threads() == 2
    with pytest.raises(RuntimeError, match="cannot set number of interop threads"):
        tinytorch.set_num_interop_threads(2)


def test_a_device_that_there_is_not_is_refused_at_once() -> None:
    with pytest.raises(AssertionError, match="not compiled with CUDA"):
        tinytorch.set_default_device("cuda")
    with pytest.raises(AssertionError, match="not compiled with CUDA"), tinytorch.device("cuda"):
        pass
    assert tinytorch.get_default_device() == tinytorch.device("cpu")


# GradScaler ---------------------------------------------------------------------------------------


def parts(torch: Any, **options: Any) -> tuple[Any, Any, Any]:
    weight = torch.nn.Parameter(torch.ones(2))
    return weight, torch.optim.SGD([weight], lr=0.1), torch.amp.GradScaler("cpu", **options)


def trained(torch: Any) -> list[Any]:
    weight, optimizer, scaler = parts(torch, init_scale=4.0, growth_interval=2)
    seen = []
    for step in range(6):
        optimizer.zero_grad()
        scaler.scale((weight * weight).sum()).backward()
        if step == 3:
            weight.grad[0] = float("inf")
        if step == 4:
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_([weight], 0.1)
        result = scaler.step(optimizer)
        scaler.update()
        seen.append((result, scaler.get_scale(), scaler.state_dict(), weight.tolist()))
    return seen


def twice_unscaled(torch: Any) -> None:
    weight, optimizer, scaler = parts(torch)
    scaler.scale(weight.sum()).backward()
    scaler.unscale_(optimizer)
    scaler.unscale_(optimizer)


def twice_stepped(torch: Any) -> None:
    weight, optimizer, scaler = parts(torch)
    scaler.scale(weight.sum()).backward()
    scaler.step(optimizer)
    scaler.step(optimizer)


def unscaled_after_step(torch: Any) -> None:
    weight, optimizer, scaler = parts(torch)
    scaler.scale(weight.sum()).backward()
    scaler.step(optimizer)
    scaler.unscale_(optimizer)


def without_scale(torch: Any) -> None:
    _, optimizer, scaler = parts(torch)
    scaler.unscale_(optimizer)


def without_gradient(torch: Any) -> None:
    weight, optimizer, scaler = parts(torch)
    scaler.scale(weight.sum())
    scaler.step(optimizer)


def with_closure(torch: Any) -> None:
    weight, optimizer, scaler = parts(torch)
    scaler.scale(weight.sum()).backward()
    scaler.step(optimizer, closure=lambda: 1)


def half(torch: Any) -> None:
    weight = torch.nn.Parameter(torch.ones(2, dtype=torch.float16))
    weight.grad = torch.ones(2, dtype=torch.float16)
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(torch.ones(1))
    scaler.unscale_(torch.optim.SGD([weight], lr=0.1))


def new_scales(torch: Any) -> list[float]:
    weight, _, scaler = parts(torch)
    scaler.scale(weight.sum())
    seen = []
    for scale in (3.0, torch.tensor(5.0)):
        scaler.update(scale)
        seen.append(scaler.get_scale())
    scaler.update(torch.tensor([1.0, 2.0]))
    return seen


def loaded(torch: Any) -> list[Any]:
    _, _, scaler = parts(torch)
    scaler.load_state_dict(parts(torch, init_scale=2.0, growth_interval=7)[2].state_dict())
    scaler.set_growth_factor(3.0)
    scaler.set_backoff_factor(0.25)
    return [
        scaler.state_dict(),
        scaler.scale(torch.ones(1)),
        scaler.get_growth_interval(),
        scaler.get_growth_factor(),
        scaler.get_backoff_factor(),
    ]


def disabled(torch: Any) -> list[Any]:
    weight, optimizer, scaler = parts(torch, enabled=False)
    scaler.scale(weight.sum()).backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    scaler.load_state_dict({})
    return [weight.tolist(), scaler.get_scale(), scaler.state_dict(), scaler.is_enabled()]


@needs_oracle
@pytest.mark.parametrize(
    "program",
    [
        trained, twice_unscaled, twice_stepped, unscaled_after_step, without_scale, without_gradient, with_closure,
        half, new_scales, loaded, disabled,
    ],
)  # fmt: skip
def test_grad_scaler(program: Any) -> None:
    same_as_pytorch(program)


def test_grad_scaler_is_pickled() -> None:
    scaler = tinytorch.amp.GradScaler("cpu", init_scale=2.0)
    assert pickle.loads(pickle.dumps(scaler)).state_dict() == scaler.state_dict()


# compile and control flow -------------------------------------------------------------------------


def of_a_compiled_module(torch: Any) -> Any:
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Dropout())
    compiled = torch.compile(model)
    compiled.eval()
    compiled.extra = 3
    kept = compiled.state_dict()
    compiled.load_state_dict(kept)
    found = [list(kept), len(compiled), model.training, model[1].training, model.extra, repr(compiled)]
    del compiled.extra
    return [*found, hasattr(model, "extra"), compiled._orig_mod is model, compiled.training]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # from imports of PyTorch
@needs_oracle
def test_a_compiled_module_has_what_the_module_has() -> None:
    assert of_a_compiled_module(tinytorch) == of_a_compiled_module(torch)
    compiled = tinytorch.compile(tinytorch.nn.Linear(2, 3))
    x = tinytorch.ones(1, 2)
    assert tinytorch.equal(compiled(x), compiled._orig_mod(x))
    with pytest.raises(AttributeError, match="'Linear' object has no attribute 'nothing'"):
        compiled.nothing  # noqa: B018


def test_compile_takes_what_pytorch_takes() -> None:
    assert tinytorch.compile(abs, mode="max-autotune", backend="inductor")(-1) == 1
    assert tinytorch.compile(mode="reduce-overhead")(abs)(-1) == 1
    assert tinytorch.compile(abs, backend="eager") is abs and tinytorch.compile(abs, disable=True) is abs
    with pytest.raises(RuntimeError, match="Unrecognized mode"):
        tinytorch.compile(abs, mode="fast")
    with pytest.raises(RuntimeError, match="Invalid backend"):
        tinytorch.compile(abs, backend="no such one")
    assert tinytorch.compiler.disable(abs) is abs and tinytorch.compiler.disable()(abs) is abs
    with pytest.raises(RuntimeError, match="Either mode or options"):
        tinytorch.compile(abs, mode="x", options={"a": 1})
    with pytest.raises(AssertionError, match="callable function is expected"):
        tinytorch.compile(tinytorch.ones(1))


def test_control_flow_is_differentiated() -> None:
    x = tinytorch.tensor(2.0, requires_grad=True)
    y = tinytorch.cond(x > 1, lambda a: a * a, lambda a: a, (x,))
    count, z = tinytorch.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * 2), (0, y))
    z.backward()
    assert count == 3 and z.item() == 32 and x.grad.item() == 32
    with pytest.raises(RuntimeError, match="tuple"):
        tinytorch.cond(True, lambda a: a, lambda a: a, x)
    with pytest.raises(RuntimeError, match="2 values"):
        tinytorch.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1,), (0, y))


# Other modules ------------------------------------------------------------------------------------


def test_switches_of_backends_are_set_and_put_back() -> None:
    cudnn = tinytorch.backends.cudnn
    with cudnn.flags(enabled=False, benchmark=True):
        assert not cudnn.enabled and cudnn.benchmark
    assert cudnn.enabled and not cudnn.benchmark
    tinytorch.backends.cuda.enable_flash_sdp(False)
    assert not tinytorch.backends.cuda.flash_sdp_enabled()
    tinytorch.backends.cuda.enable_flash_sdp(True)


def test_multiprocessing_is_pythons() -> None:
    import multiprocessing

    assert tinytorch.multiprocessing.get_context is multiprocessing.get_context
    with pytest.raises(AttributeError):
        tinytorch.multiprocessing.nothing_of_the_kind  # noqa: B018
    with pytest.raises(ValueError, match="sharing strategy"):
        tinytorch.multiprocessing.set_sharing_strategy("file_system")


def test_config_names_what_the_library_runs_on() -> None:
    assert np.__version__ in tinytorch.__config__.show()
    assert str(tinytorch.get_num_threads()) in tinytorch.__config__.parallel_info()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tinytorch.version.__version__ == tinytorch.__version__


def test_programs_see_the_version_of_pytorch() -> None:
    release, _, own = tinytorch.__version__.partition("+")
    assert release == "2.13.0"
    assert own == f"tinytorch{_version.__version__}"
    assert tinytorch.__version__ >= (2, 13)


@needs_oracle
def test_versions_compare_as_pytorchs() -> None:
    others = """
        2.13.0 2.13 2.13.1 1.9 2.13.0+cpu 2.13.0a0 2.13.0.dev20260101 2.13.0rc1 2.13.post1 10.0 2.13.0+cu118 xyz 2.12.9
    """.split()
    for version in ("2.13.0+cpu", "2.13.0a0+git1", "2.13.0"):
        mine, its = (each.torch_version.TorchVersion(version) for each in (tinytorch, torch))
        for other in (*others, (2, 13), [2, 14], (2,), ("2", "13"), 3, None):
            for compare in (operator.gt, operator.ge, operator.lt, operator.le, operator.eq, operator.ne):
                outcomes = []
                for each in (mine, its):
                    try:
                        outcomes.append(compare(each, other))
                    except TypeError:
                        outcomes.append(TypeError)
                assert outcomes[0] == outcomes[1], (version, compare, other)


@needs_oracle
def test_the_precision_of_products_is_seen_in_the_backends() -> None:
    def program(torch: Any) -> Any:
        found = []
        for precision in ("high", "medium", "highest"):
            torch.set_float32_matmul_precision(precision)
            cuda, mkldnn = torch.backends.cuda.matmul, torch.backends.mkldnn.matmul
            found.append([cuda.allow_tf32, cuda.fp32_precision, mkldnn.fp32_precision])
        return found

    same_as_pytorch(program)
