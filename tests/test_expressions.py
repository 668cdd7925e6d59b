"""Expressions and short programs in tables: values, errors and warnings are PyTorch's."""

from __future__ import annotations

import contextlib
import importlib
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tinytorch
from tests.oracle import needs_oracle, torch
from tests.same import same_as_pytorch, same_to_the_word

#: Programs: all statements run, and the value of the last one is compared.
SAME = """
    # Settings of the process, `amp`, and `cuda` without a GPU
    torch.set_num_threads(1); torch.get_num_threads() || torch.set_num_threads(2); torch.get_num_threads()
    torch.set_num_threads(0) || torch.set_num_threads(-1) || torch.set_num_threads("a") || torch.set_num_threads(1.5)
    torch.set_num_threads(True) || torch.set_num_interop_threads(0) || torch.set_num_interop_threads("a")
    torch.get_num_interop_threads() > 0 || deterministic()
    torch.use_deterministic_algorithms(True); deterministic()
    torch.use_deterministic_algorithms(True, warn_only=True); deterministic()
    torch.use_deterministic_algorithms(mode=False, warn_only=True); deterministic()
    torch.use_deterministic_algorithms(1) || torch.use_deterministic_algorithms("a")
    torch.use_deterministic_algorithms(True); torch.empty(2), torch.empty(1, dtype=torch.uint16), torch.LongTensor(1)
    torch.use_deterministic_algorithms(True); torch.empty_like(torch.ones(2)), torch.zeros(1).new_empty(2)
    torch.use_deterministic_algorithms(True); torch.empty_strided((2, 2), (3, 1)), torch.empty(2, dtype=torch.complex64)
    torch.use_deterministic_algorithms(True); torch.ones(2).resize_(3), torch.ones(4, dtype=torch.int8)[2:].resize_(6)
    torch.use_deterministic_algorithms(True); torch.vmap(torch.empty_like)(torch.ones(2, 3))
    torch.use_deterministic_algorithms(True); setattr(of(torch, FILL[0]), FILL[1], False); torch.ones(1).resize_(2)[0]
    setattr(of(torch, FILL[0]), FILL[1], 1) || getattr(of(torch, FILL[0]), FILL[1])
    torch.set_deterministic_debug_mode("warn"); deterministic()
    torch.set_deterministic_debug_mode(2); deterministic()
    torch.set_deterministic_debug_mode("default"); deterministic() || torch.set_deterministic_debug_mode(3)
    torch.set_deterministic_debug_mode("x") || torch.set_deterministic_debug_mode(1.5)
    torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium"); torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("x"); torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(1) || torch.set_flush_denormal(1) || torch.set_warn_always(1)
    torch.set_warn_always(True); torch.is_warn_always_enabled()
    torch.set_default_tensor_type("torch.DoubleTensor"); torch.zeros(1)
    torch.set_default_tensor_type(torch.DoubleTensor); torch.get_default_dtype()
    torch.set_default_tensor_type(torch.IntTensor) || torch.set_default_tensor_type("torch.cuda.FloatTensor")
    torch.set_default_tensor_type("abc") || torch.set_default_dtype(torch.int32) || torch.set_default_dtype("a")
    torch.set_default_dtype(None) || torch.get_default_device()
    torch.set_default_device("cpu"); torch.get_default_device()
    torch.set_default_device("cpu:0"); torch.get_default_device() || torch.set_default_device("cpu"); torch.zeros(1)
    torch.set_default_device("foo") || torch.set_default_device(1) || inside(torch.device("cpu"))
    inside(torch.device("cpu:0")) || torch.device("") || torch.device(3) || torch.device(-1)
    torch.zeros(1, device=0) || torch.device("cpu:") || inside(torch.autocast("cpu", enabled=False))
    inside(torch.autocast("cuda")) || inside(torch.autocast("cuda", dtype=torch.bfloat16))
    inside(torch.autocast(device_type="cuda", dtype=torch.float16, enabled=False))
    inside(torch.autocast("cpu", dtype=torch.float32)) || inside(torch.autocast("mps"))
    inside(torch.autocast("foo")) || inside(torch.amp.autocast("cuda"))
    inside(torch.cuda.amp.autocast()) || inside(torch.cuda.amp.autocast(enabled=False))
    torch.autocast(3) || torch.autocast() || torch.autocast("cuda")(lambda a: a + 1)(2)
    torch.autocast("cpu", enabled=False)(lambda a: a + 1)(2) || torch.amp.autocast is torch.autocast
    torch.is_autocast_enabled("foo")
    torch.get_autocast_dtype("cpu"), torch.get_autocast_dtype("cuda"), torch.get_autocast_dtype("xpu")
    torch.is_autocast_cpu_enabled() || torch.get_autocast_cpu_dtype() || torch.get_autocast_gpu_dtype()
    torch.is_autocast_cache_enabled() || torch.set_autocast_enabled(False) || torch.set_autocast_enabled("cpu", False)
    torch.clear_autocast_cache() || torch.autocast_increment_nesting(), torch.autocast_decrement_nesting()
    torch.amp.is_autocast_available("cpu"), torch.amp.is_autocast_available("cuda")
    torch.amp.is_autocast_available("foo") || torch.amp.GradScaler().is_enabled()
    torch.amp.GradScaler("cuda", enabled=False).is_enabled() || torch.amp.GradScaler("cuda").state_dict()
    torch.amp.GradScaler("cuda").get_scale() || torch.cuda.amp.GradScaler().scale(torch.ones(2))
    torch.cuda.amp.GradScaler(enabled=False).is_enabled() || torch.amp.GradScaler("cpu").scale(torch.ones(2))
    torch.amp.GradScaler("cpu").scale([torch.ones(2), (torch.ones(1),)]) || torch.amp.GradScaler("cpu").scale(1)
    torch.amp.GradScaler("cpu").state_dict() || torch.amp.GradScaler("cpu").update()
    torch.amp.GradScaler("cpu").load_state_dict({}) || torch.amp.GradScaler("cpu", growth_factor=1.0)
    torch.amp.GradScaler("cpu", backoff_factor=1.0)
    torch.cond(True, lambda a: a + 1, lambda a: a - 1, (torch.ones(2),))
    torch.cond(torch.tensor(False), lambda a: a + 1, lambda a: a - 1, (torch.ones(2),))
    torch.cuda.is_available(), torch.cuda.is_initialized(), torch.cuda.device_count()
    torch.cuda.is_bf16_supported(), torch.cuda.is_tf32_supported(), torch.cuda.get_arch_list() || torch.cuda.init()
    torch.cuda.current_device() || torch.cuda.synchronize() || torch.cuda.empty_cache()
    torch.cuda.manual_seed(1), torch.cuda.manual_seed_all(1), torch.cuda.seed(), torch.cuda.seed_all()
    torch.cuda.manual_seed("a")
    torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated(), torch.cuda.memory_reserved()
    torch.cuda.memory_cached() || dict(torch.cuda.memory_stats()) || torch.cuda.mem_get_info()
    torch.cuda.get_device_name(0) || torch.cuda.get_device_properties(0) || torch.cuda.get_device_capability()
    torch.cuda.set_device(-1) || inside(torch.cuda.device(-1)) || inside(torch.cuda.device(0))
    inside(torch.cuda.device_of(torch.ones(1))) || inside(torch.cuda.stream(None)) || torch.cuda.Stream()
    torch.cuda.Event() || torch.cuda.CUDAGraph() || torch.cuda.current_stream() || torch.cuda.get_rng_state()
    torch.cuda.get_rng_state_all() || torch.cuda.FloatTensor(2) || isinstance(torch.ones(1), torch.cuda.FloatTensor)
    issubclass(torch.OutOfMemoryError, RuntimeError), torch.OutOfMemoryError is torch.cuda.OutOfMemoryError
    torch.version.cuda, torch.version.hip, torch.version.debug
    torch.cpu.is_available(), torch.cpu.device_count(), torch.cpu.current_device(), torch.cpu.synchronize()
    torch.mps.is_available(), torch.xpu.is_available(), torch.xpu.device_count()
    torch.backends.cudnn.version(), torch.backends.cudnn.is_available()
    torch.backends.cudnn.enabled, torch.backends.cudnn.benchmark, torch.backends.cudnn.benchmark_limit
    torch.backends.cuda.flash_sdp_enabled(), torch.backends.cuda.math_sdp_enabled()
    torch.backends.cuda.matmul.allow_tf32 || torch.backends.mha.get_fastpath_enabled() || torch.compiler.is_compiling()
    torch.can_cast(torch.int32, torch.uint8) || torch.can_cast(1, torch.int32) || torch.promote_types(1, torch.int8)
    repr(torch.finfo(torch.float32)), repr(torch.finfo(torch.float64)), repr(torch.finfo())
    repr(torch.finfo(torch.float16)), repr(torch.finfo(torch.bfloat16))
    [getattr(torch.finfo(torch.bfloat16), n) for n in "bits eps max min tiny smallest_normal resolution dtype".split()]
    [getattr(torch.finfo(torch.float32), n) for n in "bits eps max min tiny smallest_normal resolution dtype".split()]
    repr(torch.iinfo(torch.int32)), repr(torch.iinfo(torch.uint8)), repr(torch.iinfo(torch.int64))
    [getattr(torch.iinfo(torch.int16), n) for n in "bits max min dtype".split()]
    torch.finfo(torch.float32) == torch.finfo(torch.float32), torch.finfo(torch.float32) == torch.finfo(torch.float64)
    torch.finfo(torch.int32) || torch.finfo("a") || torch.iinfo(torch.float32) || torch.iinfo(torch.bool)
    torch.iinfo("a") || torch.iinfo() || torch.typename(torch.ones(1)), torch.typename(1)
    # Devices that are not available
    torch.xpu.is_available(), torch.xpu.device_count(), torch.xpu.is_initialized(), torch.xpu.is_bf16_supported()
    torch.xpu.manual_seed(1), torch.xpu.manual_seed_all(1), torch.xpu.seed(), torch.xpu.get_rng_state_all()
    torch.xpu.empty_cache(), torch.xpu.memory_allocated(), torch.xpu.max_memory_reserved(), torch.xpu.memory_stats()
    torch.xpu.current_device() || torch.xpu.synchronize() || torch.xpu.get_device_name()
    torch.mps.is_available(), torch.mps.device_count(), torch.mps.manual_seed(3) || torch.mps.synchronize()
    torch.mps.empty_cache() || torch.mps.seed() || torch.mps.get_rng_state() || torch.mps.current_allocated_memory()
    torch.mps.driver_allocated_memory() || torch.mps.recommended_max_memory()
    torch.mps.set_per_process_memory_fraction(0.5)
    torch.accelerator.is_available(), torch.accelerator.device_count(), torch.accelerator.current_accelerator()
    torch.accelerator.synchronize() || torch.accelerator.current_device_index() || torch.accelerator.memory_allocated()
    torch.accelerator.empty_cache() || torch.accelerator.device_index(None).__enter__()
    torch.accelerator.device_index(0).__enter__()
    torch.cuda.memory.memory_allocated(), torch.cuda.memory_stats_as_nested_dict(), torch.cuda.random.seed_all()
    torch.cuda.cudart() || torch.cuda.memory.mem_get_info() || torch.cuda.random.initial_seed()
    torch.cuda.nvtx.range_push("a") || torch.cuda.nvtx.mark("a") || torch.cuda.nvtx.range("a").__enter__()
    # Streams, events and devices
    torch.Stream().device, torch.Stream().query(), torch.Stream().synchronize(), torch.Stream().stream_id
    torch.Stream() == torch.Stream(), torch.Stream(device="cpu").device_index || torch.Stream("cuda")
    torch.Stream().record_event() || torch.Stream().wait_stream(torch.Stream())
    torch.Stream().wait_event(torch.Event()), torch.Event().wait()
    torch.Event().query(), torch.Event(enable_timing=True).device, torch.Event().synchronize()
    torch.Event(device="cuda") || torch.Event().record()
    torch.get_device_module().__name__.split(".")[1], torch.get_device_module("mps").__name__.split(".")[1]
    torch.get_device_module(torch.device("cpu")).is_available(), torch.get_device_module("cuda").is_available()
    torch.get_device_module("meta") || torch.get_device_module("nothing") || torch.get_device_module(3)
    torch._C._get_accelerator(), torch._utils._element_size(torch.float16), torch.cuda._is_in_bad_fork()
    torch.cuda._lazy_call(len), torch._C._is_tracing(), torch._C._jit_set_profiling_mode(True)
    of(torch, "nn.modules.module")._EXTRA_STATE_KEY_SUFFIX
    of(torch, "nn.modules.transformer")._get_activation_fn("relu")(torch.tensor([-1.0, 2.0]))
    of(torch, "nn.modules.transformer")._get_activation_fn("tanh") || torch.backends.mps.is_macos_or_newer(13, 0)
    str(torch.legacy_contiguous_format), str(torch.jagged)
    [(str(d), d.itemsize, d.is_floating_point, d.is_complex) for d in (torch.qint8, torch.quint8, torch.quint4x2)]
    [(each.name, each.value) for each in of(torch, "amp.grad_scaler").OptState]
    # Process groups
    d.GroupMember.NON_GROUP_MEMBER, d.GroupMember.WORLD, d.group.WORLD
    d.Backend("GLOO"), d.Backend.NCCL, d.Backend.MPI, d.Backend.default_device_backend_map["cpu"] || d.Backend(3)
    d.default_pg_timeout.seconds || d.get_global_rank(None, 3), d.get_group_rank(None, 1) || d.get_backend_config()
    d.new_subgroups_by_enumeration([[0]]) || d.send_object_list([1], dst=0) || d.recv_object_list([1], src=0)
    # Assertions and sizes
    torch._check(True) || torch._check(False) || torch._check(False, lambda: "said so") || torch._check(1)
    torch._check(torch.tensor(True)) || torch._check(False, "said so") || torch._check_index(False, lambda: "index")
    torch._check_value(False, lambda: 3) || torch._check_type(False) || torch._check_not_implemented(False)
    torch._check_is_size(-1) || torch._check_is_size(3) || torch._check_with(KeyError, False, lambda: "key")
    torch._check_tensor_all(torch.tensor([True, False])) || torch._check_tensor_all(torch.tensor([True, True]))
    torch._check_tensor_all(torch.tensor([1])) || torch._check_tensor_all(True) || torch._assert(False, "said so")
    torch._assert(torch.tensor(True), "said so") || torch._assert(torch.tensor([True, False]), "said so")
    torch._assert_async(torch.tensor(0), "said so") || torch._assert_async(torch.tensor(0))
    torch._assert_async(torch.tensor(1)) || [torch.sym_int(-3.7), torch.sym_float(3), torch.sym_not(False)]
    [torch.sym_max(3, 2.0), torch.sym_min(3, 2.0), torch.sym_max(2, 3)]
    [torch.sym_ite(True, 1, 2), torch.sym_sum([1, 2]), torch.sym_sqrt(4)] || torch.sym_ite(1, 1, 2)
    [isinstance(3, (torch.SymInt, torch.SymFloat, torch.SymBool))]
    # Helpers
    u._flatten_dense_tensors([torch.ones(1), torch.zeros(1, 2)])
    u._unflatten_dense_tensors(torch.arange(5), [torch.ones(2), torch.ones(3, 1)])
    u._get_device_index(3), u._get_device_index("cuda:1"), u._get_device_index(None, True)
    u._get_device_index(torch.device("cpu"), False, True) || u._get_device_index("cpu") || u._get_device_index(None)
    u._get_device_index("x") || parsed() || parsed("cpu") || parsed(torch.float64) || parsed("cpu", torch.float16, True)
    parsed(device="cpu", dtype=torch.int64) || parsed(torch.ones(1)) || parsed(memory_format=torch.channels_last)
    parsed(torch.device("cpu"), non_blocking=True)
    # Scaled gradients
    w, o, s = parts(); s.scale(w.sum()).backward(); s.unscale_(o); s.unscale_(o)
    w, o, s = parts(); s.scale(w.sum()).backward(); s.step(o); s.step(o)
    w, o, s = parts(); s.scale(w.sum()).backward(); s.step(o); s.unscale_(o) || w, o, s = parts(); s.unscale_(o)
    w, o, s = parts(); s.scale(w.sum()); s.step(o)
    w, o, s = parts(); s.scale(w.sum()).backward(); s.step(o, closure=lambda: 1)
    w, o, s = parts(torch.float16); w.grad = w.detach(); s.scale(torch.ones(1)); s.unscale_(o)
    w, o, s = parts(); s.scale(w.sum()); s.update(3.0); s.update(torch.tensor(5.0)); s.get_scale()
    w, o, s = parts(); s.scale(w.sum()); s.update(3.0); s.get_scale()
    w, o, s = parts(); s.scale(w.sum()); s.update(torch.tensor([1.0, 2.0]))
    s = parts(init_scale=2.0, growth_interval=7)[2]; s.set_growth_factor(3.0); s.set_backoff_factor(0.25); scaler(s)
    w, o, s = parts(); s.load_state_dict(parts(init_scale=2.0, growth_interval=7)[2].state_dict()); scaler(s)
    w, o, s = parts(enabled=False); s.scale(w.sum()).backward(); s.unscale_(o); s.step(o); s.update(); [w, scaler(s)]
    w, o, s = parts(enabled=False); s.load_state_dict({}), s.is_enabled()
    # Functions on lists, samplers, modules, and others
    list(torch._foreach_pow(2, [torch.ones(2), torch.zeros(1)]))
    list(torch._foreach_mm([torch.ones(2, 3)], [torch.ones(3, 1)])) || torch._foreach_add([torch.ones(2)], "x")
    torch._foreach_mul(5, 1) || list(torch._foreach_mul([torch.ones(2)], 2 + 1j))
    torch.linspace(-0.5, 0.5, torch.tensor(5)) || torch.logspace(0, 2, torch.tensor(3))
    d.get_rank() || d.get_world_size() || d.barrier()
    of(torch, "distributed.distributed_c10d").is_xccl_available()
    of(torch, "distributed.distributed_c10d").is_ucc_available()
    of(torch, "distributed.distributed_c10d")._rank_not_in_group(None)
    torch.utils.data.DistributedSampler(range(3), 2, 2) || torch.utils.data.DistributedSampler(range(3), 2, -1)
    torch.utils.data.DistributedSampler(range(3)) || torch.utils.data.DistributedSampler(range(3), 2)
    torch.utils.data.DistributedSampler(range(3), rank=0)
    torch.nn.parallel.DataParallel(torch.nn.Linear(2, 1))(torch.ones(3, 2))
    of(torch, "nn.parallel").DistributedDataParallel(torch.nn.Linear(2, 2))
    [repr(getattr(torch, each)) for each in "strided sparse_coo sparse_csr sparse_csc sparse_bsr sparse_bsc".split()]
    torch.ones(1).layout is torch.strided, torch.nn.Parameter(torch.ones(1)).layout == torch.sparse_coo
    x, y = torch.ones(1), torch.ones(1); x._cdata == x._cdata, x._cdata == y._cdata, isinstance(x._cdata, int)
    [torch.can_cast(getattr(torch, a), getattr(torch, b)) for a in DTYPES for b in DTYPES]
    torch.jit.annotate(int, 3), torch.jit.is_scripting(), torch.jit.is_tracing()
    torch.jit.fork(torch.add, torch.ones(1), 2).wait() || torch.jit.wait(torch.jit.fork(lambda x: x, 3))
    torch.jit.isinstance([1], list[int]), torch.jit.isinstance([1, "a"], list[int])
    torch.jit.isinstance({"a": torch.ones(1)}, dict[str, torch.Tensor]), torch.jit.isinstance({1: 2}, dict[str, int])
    torch.jit.isinstance((1, "a"), tuple[int, str]), torch.jit.isinstance((1,), tuple[int, str])
    torch.jit.isinstance(None, int | None), torch.jit.isinstance("a", int | None), torch.jit.isinstance(2, (str, int))
    torch.jit.isinstance(1, "int") || torch.jit.Attribute(3, int) || torch.jit.script(3)
    torch.jit.trace(torch.nn.Linear(2, 2)) || torch.jit.trace(torch.nn.ReLU(), torch.ones(2), None, 0)(torch.ones(2))
    torch.jit.trace(torch.nn.Bilinear(2, 2, 1), (torch.ones(2), torch.ones(2)), None, 0)(*torch.ones(2, 3, 2))
    torch.jit.script(torch.nn.Linear(2, 3))(torch.zeros(4, 2))
    torch.jit.freeze(torch.jit.script(torch.nn.Linear(2, 3)))
    torch.jit.freeze(torch.jit.script(torch.nn.Linear(2, 3)).eval())(torch.ones(2)) || torch.jit.load("no such file")
    [of(torch, "multiprocessing").set_sharing_strategy(f"file_{each}") for each in ("system", "descriptor")]
    sorted(of(torch, "multiprocessing").get_all_sharing_strategies()) || torch.multiprocessing.set_sharing_strategy("x")
    of(torch, "functional").stft is torch.stft, torch.functional.istft is torch.istft
    of(torch, "optim.lr_scheduler").EPOCH_DEPRECATION_WARNING
    [torch.lerp(torch.zeros(2), torch.ones(2), torch.tensor(w)) for w in (0.5j, 0.25)]
    torch.lerp(torch.tensor([0, 4]), torch.tensor([2, 4]), torch.tensor(0.5)) || torch.lerp(*[torch.tensor(3)] * 3)
    x = torch.eye(2).to_sparse() * 1j; [x.is_conj(), x.is_neg(), x.storage_offset(), x.mH.to_dense(), x.mT.to_dense()]
    torch.eye(2).to_sparse().nbytes || torch.ones(2).to_sparse().mH || torch.eye(2).to_sparse().cfloat().to_dense()
    torch._weight_norm(torch.ones(2, 3), torch.ones(2, 1)), torch._weight_norm(torch.ones(2, 3), torch.ones(1, 3), 1)
    [torch.Size(each) for each in (torch.tensor([1, 2]), [torch.tensor(3)], [True], np.array([1, 2]), ())]
    torch.Size([1.5]) || torch.Size(torch.tensor([1.0])) || torch.Size(3) || torch.Size("a")
    x = torch.zeros(3, dtype=torch.int64); x.index_put_((x,), torch.tensor(1))
    x = torch.arange(4); x[2:].index_put_((x[:2],), torch.tensor(7))
    x = torch.ones(2, requires_grad=True); torch.nn.functional.elu(x * -1, -2.0, True).sum().backward()
    x = torch.ones(2, requires_grad=True); torch.nn.functional.leaky_relu_(x * -1, -2.0).sum().backward()
    x = torch.ones(1, 4, requires_grad=True); y, i = torch.max_pool1d_with_indices(x, 2); i.zero_(); y.sum().backward()
    x = torch.ones(2, requires_grad=True); y, i = x.sort(); i.zero_(); y.sum().backward()
    [torch.nn.functional.batch_norm(torch.ones(3, 2), torch.zeros(2, requires_grad=True), torch.ones(2))]
    torch.zeros(1).lerp_(torch.ones(1), torch.tensor(0.5j))
    torch.lerp(torch.tensor(0.0), torch.tensor(1.0), torch.tensor(0.5).double())
"""

#: With all warnings ignored, with the same words in errors, and with tensors and storages as lists.
EXACT = """
    torch._segment_reduce(torch.tensor([1.0, 2.0, 3.0]), "sum", lengths=torch.tensor([1, 2])) || torch._C.has_lapack
    torch._C._nn.gelu(torch.zeros(2), approximate="tanh") || torch._C._nn.linear(torch.ones(2), torch.ones(3, 2))
    torch.serialization.get_default_mmap_options() || torch.serialization.set_default_mmap_options(5)
    torch.utils.set_module(torch.ones, 1) || torch._shape_as_tensor(torch.ones(2, 3))
    torch._cast_Long(torch.tensor([1.5])) || torch._cast_Double(torch.tensor([1.5])).dtype is torch.float64
    torch._amp_update_scale_(torch.tensor(8.0), torch.tensor(3, dtype=torch.int32), torch.tensor(0.0), 2.0, 0.5, 4)
    torch._amp_update_scale_(torch.tensor(8.0), torch.tensor(1, dtype=torch.int32), torch.tensor(1.0), 2.0, 0.5, 4)
    torch._amp_update_scale_(torch.tensor(3e38), torch.tensor(3, dtype=torch.int32), torch.tensor(0.0), 2.0, 0.5, 4)
    [g := [torch.ones(1)], f := torch.zeros(1), UNSCALE(g, f, torch.tensor(0.5))]
    [g := [torch.tensor([np.inf])], f := torch.zeros(1), UNSCALE(g, f, torch.tensor(0.5))]
    torch._amp_foreach_non_finite_check_and_unscale_([torch.ones(1)], torch.zeros(2), torch.tensor(0.5))
    torch.UntypedStorage.from_buffer(b"ab", dtype=torch.int16, byte_order="big")
    torch.UntypedStorage.from_buffer(b"ab") || torch.UntypedStorage.from_buffer(b"ab", dtype=torch.int16)
    torch.UntypedStorage.from_buffer(b"ab", dtype=torch.int16, byte_order="x")
    torch.UntypedStorage.from_buffer(b"abcd", "little", 1, 2, dtype=torch.int16)
    torch.UntypedStorage.from_buffer(b"abcd", "little", 5, dtype=torch.uint8)
    torch.UntypedStorage.from_buffer(b"abcd", "little", 0, 9, dtype=torch.uint8)
    torch.UntypedStorage.from_buffer(b"abc", "little", dtype=torch.int16)
    torch.UntypedStorage.from_buffer(b"", "little", dtype=torch.int16)
    torch.UntypedStorage.from_buffer(b"a\\0c", dtype=torch.bool)
    torch.ShortStorage.from_buffer(b"abcd", byte_order="big") || torch.ShortStorage._from_buffer(b"abcd", "big")
    torch.ShortStorage._from_buffer(b"abcd", dtype=torch.int8, byte_order="big")
    torch.ByteStorage._from_buffer(b"abcd")
    torch.TypedStorage.from_buffer(b"abcd", dtype=torch.int16, byte_order="big")
    torch.TypedStorage._from_buffer(b"abcd", byte_order="little")
    [s := torch.UntypedStorage([1, 2, 3, 4]), s.byteswap(torch.int16)]
    torch.UntypedStorage._new_shared(3).is_shared() || torch._foreach_add([torch.ones(2)], np.float32(2))
    torch._foreach_mul([torch.ones(2)], np.int64(2)) || torch._foreach_add([torch.ones(2)], np.bool_(True))
    torch.nn.functional.max_unpool2d(torch.ones(1, 0, 2, 2), torch.zeros(1, 0, 2, 2, dtype=torch.int64), 2)
    torch.nn.functional.max_unpool2d(torch.ones(1, 1, 0, 2), torch.zeros(1, 1, 0, 2, dtype=torch.int64), 2)
    torch.nn.functional.max_unpool2d(torch.ones(0, 1, 2, 2), torch.zeros(0, 1, 2, 2, dtype=torch.int64), 2)
    torch.nn.functional.max_unpool1d(torch.ones(1, 0, 2), torch.zeros(1, 0, 2, dtype=torch.int64), 2)
    torch.nn.functional.max_unpool3d(torch.ones(1, 0, 2, 2, 2), torch.zeros(1, 0, 2, 2, 2, dtype=torch.int64), 2)
    torch.nn.functional.max_unpool3d(torch.ones(1, 1, 2, 2, 2), torch.zeros(1, 1, 2, 2, 2), 2)
    # Complex numbers: conjugates are views in transforms and in a backward pass, too; writes to real memory
    x = torch.eye(2) * 1j; torch.vmap(lambda x: (y := x.conj(), y.mul_(1j), x + y.is_conj()))(x), x
    x = torch.eye(2) * 1j; torch.vmap(torch.vmap(lambda x: x.mul_(2j)), 1)(x.conj()), x, x.mH.add_(1j), x
    x = torch.tensor([1 + 2j, 3]); torch.func.jvp(lambda x: x.mul_(2j), (x.conj(),), (x * 2,)), x
    f = lambda x: (x * (y := x * x).conj().mul_(2j) + y).abs().sum(); torch.vmap(torch.func.grad(f))(torch.eye(2) * 1j)
    x = torch.tensor([1j, 2]); torch.func.grad(lambda a, b: (a * b.mul_(2j)).abs().sum())(x * 3, x.conj()), x
    x = torch.ones(1).requires_grad_(); y = x * 1j; y.register_hook(lambda g: g.conj().mul_(2) and g) and GRAD(y, x, y)
    f = torch.vmap(lambda x: (y := x * 1)[:1].unsqueeze_(0).mul_(3) + y); torch.func.jvp(f, *[(torch.ones(2, 2),)] * 2)
    torch.tensor([1j, 2]).conj().detach_()
    P = torch.nn.Parameter; torch.func.jvp(lambda x: P(x) * x, *[(torch.ones(2),)] * 2), torch.vmap(P)(torch.ones(2, 3))
    x = torch.ones(2, 3); torch.vmap(lambda x: x + isinstance(torch.nn.Parameter(x), torch.nn.Parameter))(x)
    x = torch.ones(2); torch.vmap(torch.func.grad(lambda x: x.detach_()))(x) || torch.vmap(torch.detach_)(torch.ones(2))
    c = torch.tensor(2j).requires_grad_(); x = torch.zeros(2); x[0] = c; x[1:] = c; x, GRAD(x.sum(), c)
    torch.zeros(2).fill_(torch.tensor(1 + 2j)) || torch.eye(2).__setitem__(torch.eye(2) > 0, torch.tensor(2j))
    torch.zeros(2).__setitem__([0], torch.tensor(2j)) || torch.eye(2).bool().index_fill_(0, torch.tensor([0]), 1j)
    # Layers, whose class errors name; the files of distributions
    torch.nn.ReLU(x=1) || torch.nn.CELU(x=1) || torch.nn.ZeroPad2d() || torch.nn.BatchNorm2d()
    torch.nn.AdaptiveAvgPool2d(2)() || torch.nn.LPPool1d(2, 2)() || torch.nn.Dropout2d()() || torch.nn.LSTM(1, 1)()
    torch.nn.MSELoss(x=1) || torch.nn.MarginRankingLoss(x=1) || torch.nn.Dropout(x=1) || torch.nn.MaxUnpool2d(2)()
    of(torch, "distributions.half_normal").HalfNormal(1.0).mean, str(torch.distributions.studentT.StudentT(3.0))
"""

DTYPES = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64".split()


def of(torch: Any, path: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # old names
        return importlib.import_module(f"{torch.__name__}.{path}")


FILL = "utils.deterministic", "fill_uninitialized_memory"


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
        torch.utils.deterministic.fill_uninitialized_memory = True
        torch.set_float32_matmul_precision("highest")
        torch.set_default_dtype(torch.float32)
        torch.set_default_device(None)


def run(text: str, torch: Any) -> Any:
    def inside(context: Any) -> tuple[Any, ...]:
        with context:
            return torch.is_autocast_enabled(), torch.is_autocast_enabled("cpu"), torch.get_default_device()

    def deterministic() -> tuple[Any, ...]:
        enabled = torch.are_deterministic_algorithms_enabled()
        return (
            enabled, torch.is_deterministic_algorithms_warn_only_enabled(), torch.get_deterministic_debug_mode(),
        )  # fmt: skip

    def parsed(*args: Any, **kwargs: Any) -> list[str]:
        return [str(each).replace("tinytorch", "torch") for each in torch._C._nn._parse_to(*args, **kwargs)]

    def parts(dtype: Any = None, **options: Any) -> tuple[Any, Any, Any]:
        weight = torch.nn.Parameter(torch.ones(2, dtype=dtype))
        return weight, torch.optim.SGD([weight], lr=0.1), torch.amp.GradScaler("cpu", **options)

    def scaler(s: Any) -> list[Any]:
        factors = [s.get_growth_factor(), s.get_backoff_factor(), s.get_growth_interval(), s.get_scale()]
        return [s.state_dict(), s.scale(torch.ones(1)), s.is_enabled(), *factors]

    *before, last = text.split("; ")
    names = {"torch": torch, "np": np, "of": of, "inside": inside, "deterministic": deterministic, "parsed": parsed}
    names |= {"parts": parts, "scaler": scaler}
    names |= {"d": of(torch, "distributed"), "u": torch._utils, "DTYPES": DTYPES, "FILL": FILL}
    names["GRAD"], names["UNSCALE"] = torch.autograd.grad, torch._amp_foreach_non_finite_check_and_unscale_
    with as_it_was(torch):
        for statement in before:
            exec(statement, names)
        return eval(last, names)


def quiet(text: str, torch: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return run(text, torch)


def plain(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [plain(each) for each in value]
    return value.tolist() if hasattr(value, "tolist") else value


def cases(table: str) -> list[str]:
    lines = [line.strip() for line in table.strip().splitlines()]
    return [case for line in lines if not line.startswith("#") for case in line.split(" || ")]


@pytest.mark.parametrize("text", cases(SAME))
def test_same(text: str) -> None:
    same_as_pytorch(lambda torch: run(text, torch))


@pytest.mark.parametrize("text", cases(EXACT))
def test_same_to_the_word(text: str) -> None:
    same_to_the_word(lambda torch: plain(quiet(text, torch)))


@needs_oracle
def test_the_instructions_of_this_processor() -> None:
    assert tinytorch.backends.cpu.get_cpu_capability() == torch.backends.cpu.get_cpu_capability()
