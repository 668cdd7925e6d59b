"""Settings of the process, `amp`, `compile`, and `cuda` without a GPU, against PyTorch."""

from __future__ import annotations

import operator
import os
import pickle
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest

import tinytorch
from tests.oracle import needs_oracle, torch
from tests.same import same_as_pytorch
from tinytorch import _version
from tinytorch.kernels import blas
from tinytorch.utils import collect_env


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


def test_grad_scaler() -> None:
    same_as_pytorch(trained)


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


def test_config_names_what_the_library_runs_on() -> None:
    assert np.__version__ in tinytorch.__config__.show()
    assert all(fact in collect_env.get_pretty_env_info() for fact in (*collect_env.libraries(), "PyTorch 2.13"))
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


def test_the_precision_of_products_is_seen_in_the_backends() -> None:
    def program(torch: Any) -> Any:
        found = []
        for precision in ("high", "medium", "highest"):
            torch.set_float32_matmul_precision(precision)
            cuda, mkldnn = torch.backends.cuda.matmul, torch.backends.mkldnn.matmul
            found.append([cuda.allow_tf32, cuda.fp32_precision, mkldnn.fp32_precision])
        return found

    same_as_pytorch(program)
