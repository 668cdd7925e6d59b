"""Names of PyTorch's that packages import and tinytorch does not implement: a table, and the modules made of it.

They can be imported, derived from, and tested with `isinstance`. Calling one raises an error that gives the reason.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import importlib
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any

from .absent import Idle, Refused, answering, marking, refusing, same


class Offer:
    """The names that a module of the table has.

    Args:
        missing: names that are not implemented, separated by spaces: a class without instances for a capitalised name,
            a function that raises for any other one, a static method that raises for `Name.method`.
        all_of: a module of the table whose public names this one has, too.
        values: further names: a `Deferred` value (one of the functions below), or the value itself.
    """

    def __init__(self, missing: str = "", *, all_of: str = "", **values: Any) -> None:
        self.missing, self.all_of, self.values = missing.split(), all_of, values


class Deferred:
    """A value that is made when its module is imported, by a function of the value's name and its module's name."""

    def __init__(self, make: Callable[[str, str], Any]) -> None:
        self.make = make


def elsewhere(path: str) -> Deferred:
    """Return the object at this path below `tinytorch`."""
    home, _, name = path.rpartition(".")
    return Deferred(lambda *_: getattr(importlib.import_module(f"tinytorch.{home}"), name))


def submodule(path: str) -> Deferred:
    """Return the module at this path below `tinytorch`."""
    return Deferred(lambda *_: importlib.import_module(f"tinytorch.{path}"))


def returns(value: object) -> Deferred:
    """Return a function that returns `value`, whatever its arguments."""

    def make(name: str, module: str) -> Any:
        function = answering(name, lambda *args, **kwargs: value, f"Return {value!r}.", " ")
        function.__module__ = module
        return function

    return Deferred(make)


class Patch(contextlib.ContextDecorator):
    """Settings of a module of the table that are changed for a while: a context manager and a decorator.

    Args:
        module: the module's name.
        *changes: a name and a value, or a dict.
        **more: further settings.
    """

    def __init__(self, module: str, *changes: Any, **more: Any) -> None:
        given = dict([changes]) if len(changes) == 2 else dict(*changes)
        self.module, self.changes = sys.modules[module], given | more
        self.before: list[dict[str, Any]] = []
        for name in self.changes:
            if name not in vars(self.module):
                raise AttributeError(f"{module.removeprefix('tiny')}.{name} does not exist")

    def __enter__(self) -> None:
        self.before.append({name: vars(self.module)[name] for name in self.changes})
        vars(self.module).update(self.changes)

    def __exit__(self, *error: object) -> None:
        vars(self.module).update(self.before.pop())


patching = Deferred(lambda _, module: functools.partial(Patch, module))


def enumeration(members: str | dict[str, str]) -> Deferred:
    """Return an enumeration with these members."""
    return Deferred(lambda name, module: enum.Enum(name, members, module=module))


def subclass_of(base: type) -> Deferred:
    """Return an empty subclass: of an error, so that programs can catch it."""
    return Deferred(lambda name, module: type(name, (base,), {"__module__": module}))


#: By reason, the modules below `tinytorch` whose names are missing for it.
# fmt: off
TABLE: dict[str, dict[str, Offer]] = {
    "these names are those of other modules": {
        "_custom_ops": Offer(custom_op=elsewhere("library.custom_op"), impl=elsewhere("library.impl")),
        "cpu.amp.autocast_mode": Offer(autocast=elsewhere("cpu.amp.autocast")),
        "cpu.amp.grad_scaler": Offer(GradScaler=elsewhere("cpu.amp.GradScaler")),
        "cuda.amp.grad_scaler": Offer(GradScaler=elsewhere("cuda.amp.GradScaler")),
    },
    "tinytorch spreads no tensors over processes, and calls no functions of others": {
        "_C._distributed_c10d": Offer(
            GradBucket=elsewhere("distributed.GradBucket"), ProcessGroup=elsewhere("distributed.ProcessGroup"),
            Reducer=elsewhere("distributed._reducer.Reducer"), Work=elsewhere("distributed.Work"),
        ),
        "_C._distributed_rpc": Offer("PyRRef"),
        "distributed._composable.fsdp": Offer(all_of="distributed.fsdp"),
        "distributed._functional_collectives": Offer(
            "AsyncCollectiveTensor all_gather_tensor all_reduce all_to_all_single all_to_all_single_autograd "
            "permute_tensor reduce_scatter_tensor wait_tensor",
        ),
        "distributed._symmetric_memory": Offer("enable_symm_mem_for_group"),
        "distributed._tensor": Offer(all_of="distributed.tensor"),
        "distributed._tensor.experimental": Offer(all_of="distributed.tensor.experimental"),
        "distributed.algorithms._checkpoint.checkpoint_wrapper": Offer(
            "CheckpointWrapper OffloadWrapper apply_activation_checkpointing checkpoint_wrapper offload_wrapper",
            CheckpointImpl=enumeration("REENTRANT NO_REENTRANT"),
        ),
        "distributed.checkpoint._consolidate_hf_safetensors": Offer("consolidate_safetensors_files"),
        "distributed.checkpoint.hf_storage": Offer("HuggingFaceStorageReader HuggingFaceStorageWriter"),
        "distributed.checkpoint.optimizer": Offer("load_sharded_optimizer_state_dict"),
        "distributed.device_mesh": Offer("DeviceMesh init_device_mesh"),
        "distributed.fsdp": Offer(
            "CPUOffload CPUOffloadPolicy FSDPModule FullOptimStateDictConfig FullStateDictConfig "
            "FullyShardedDataParallel FullyShardedDataParallel.fsdp_modules FullyShardedDataParallel.optim_state_dict "
            "FullyShardedDataParallel.optim_state_dict_to_load FullyShardedDataParallel.rekey_optim_state_dict "
            "FullyShardedDataParallel.state_dict_type FullyShardedDataParallel.summon_full_params "
            "LocalStateDictConfig MixedPrecision MixedPrecisionPolicy OffloadPolicy ShardedOptimStateDictConfig "
            "ShardedStateDictConfig fully_shard register_fsdp_forward_method",
            BackwardPrefetch=enumeration("BACKWARD_PRE BACKWARD_POST"),
            OptimStateKeyType=enumeration("PARAM_NAME PARAM_ID"),
            ShardingStrategy=enumeration("FULL_SHARD SHARD_GRAD_OP NO_SHARD HYBRID_SHARD _HYBRID_SHARD_ZERO2"),
            StateDictType=enumeration("FULL_STATE_DICT LOCAL_STATE_DICT SHARDED_STATE_DICT"),
        ),
        "distributed.fsdp.api": Offer(all_of="distributed.fsdp"),
        "distributed.fsdp.fully_sharded_data_parallel": Offer(all_of="distributed.fsdp"),
        "distributed.fsdp.sharded_grad_scaler": Offer("ShardedGradScaler"),
        "distributed.fsdp.wrap": Offer(
            "ModuleWrapPolicy _or_policy enable_wrap lambda_auto_wrap_policy size_based_auto_wrap_policy "
            "transformer_auto_wrap_policy wrap",
        ),
        "distributed.launcher.api": Offer("LaunchConfig elastic_launch"),
        "distributed.nn.api.remote_module": Offer("RemoteModule"),
        "distributed.optim.optimizer": Offer("DistributedOptimizer"),
        "distributed.optim.post_localSGD_optimizer": Offer("PostLocalSGDOptimizer"),
        "distributed.pipelining": Offer(
            "PipelineStage Schedule1F1B ScheduleGPipe pipeline", SplitPoint=enumeration("BEGINNING END"),
        ),
        "distributed.pipelining.microbatch": Offer("TensorChunkSpec"),
        "distributed.rpc": Offer(
            "BackendType PyRRef RRef TensorPipeRpcBackendOptions get_worker_info init_rpc remote rpc_async rpc_sync "
            "shutdown",
            is_available=returns(False),
        ),
        "distributed.rpc.api": Offer("_all_gather"),
        "distributed.tensor": Offer(
            "DTensor DTensor.from_local distribute_module distribute_tensor",
            all_of="distributed.tensor.placement_types",
        ),
        "distributed.tensor._utils": Offer("compute_local_shape_and_global_offset"),
        "distributed.tensor.experimental": Offer("context_parallel implicit_replication"),
        "distributed.tensor.experimental._attention": Offer("set_rotate_method"),
        "distributed.tensor.parallel": Offer(
            "ColwiseParallel PrepareModuleInput PrepareModuleOutput RowwiseParallel SequenceParallel loss_parallel "
            "parallelize_module",
        ),
        "distributed.tensor.placement_types": Offer(
            "_StridedShard", Partial=elsewhere("distributed.placements.Partial"),
            Placement=elsewhere("distributed.placements.Placement"),
            Replicate=elsewhere("distributed.placements.Replicate"), Shard=elsewhere("distributed.placements.Shard"),
        ),
        "distributed.utils": Offer("_sync_module_states"),
        "numa.binding": Offer(
            "NumaOptions",
            AffinityMode=enumeration(
                {"NODE": "node", "SOCKET": "socket", "EXCLUSIVE": "exclusive", "CORE_COMPLEX": "core-complex"}
            ),
        ),
    },
    "tinytorch traces no programs": {
        "_guards": Offer(
            "TracingContext TracingContext.try_get", active_fake_mode=returns(None), detect_fake_mode=returns(None),
        ),
        "_subclasses": Offer("FakeTensor FakeTensorMode"),
        "_subclasses.fake_tensor": Offer(
            all_of="_subclasses", is_fake=returns(False), maybe_get_fake_mode=returns(None),
            unset_fake_temporarily=Idle,
        ),
        "_subclasses.functional_tensor": Offer("FunctionalTensor mb_unwrap_functional_tensor"),
        "_subclasses.meta_utils": Offer("MetaConverter"),
        "export.decomp_utils": Offer("CustomDecompTable"),
        "jit": Offer("ScriptFunction TopLevelTracedModule"),
        "onnx.symbolic_helper": Offer(parse_args=marking),
        "onnx.operators": Offer("reshape_from_tensor_shape shape_as_tensor"),
        "onnx.symbolic_opset11": Offer("select squeeze unsqueeze"),
        "onnx.symbolic_opset12": Offer("dropout"),
        "onnx.symbolic_opset9": Offer("masked_fill softmax"),
        "utils._sympy.functions": Offer("FloorDiv"),
        "utils._sympy.numbers": Offer("IntInfinity"),
        "utils._sympy.value_ranges": Offer("ValueRanges"),
    },
    "tinytorch has no symbolic sizes": {
        "fx.experimental.symbolic_shapes": Offer(
            "ShapeEnv free_symbols free_unbacked_symbols guard_or_false guard_or_true statically_known_true",
            GuardOnDataDependentSymNode=subclass_of(RuntimeError),
        ),
        "fx.passes.fake_tensor_prop": Offer("FakeTensorProp"),
    },
    "tinytorch has no backends that run parts of graphs": {
        "fx._compatibility": Offer(compatibility=marking),
        "fx._lazy_graph_module": Offer("_LazyGraphModule _force_skip_lazy_graph_module _use_lazy_graph_module"),
        "fx.annotate": Offer("annotate"),
        "fx.experimental.const_fold": Offer("FoldedGraphModule split_const_subgraphs"),
        "fx.experimental.rewriter": Offer("AST_Rewriter RewritingTracer"),
        "fx.operator_schemas": Offer(
            "ArgsKwargsPair create_type_hint get_signature_for_torch_op normalize_function normalize_module "
            "type_matches",
            check_for_mutable_operation=elsewhere("fx.proxy.check_for_mutable_operation"),
        ),
        "fx.passes.annotate_getitem_nodes": Offer("annotate_getitem_nodes"),
        "fx.passes.dialect.common.cse_pass": Offer(
            CSEPass=elsewhere("fx.passes.cse_pass.CSEPass"),
            get_CSE_banned_ops=elsewhere("fx.passes.cse_pass.get_CSE_banned_ops"),
        ),
        "fx.passes.graph_drawer": Offer("FxGraphDrawer"),
        "fx.passes.infra.partitioner": Offer("CapabilityBasedPartitioner Partition"),
        "fx.passes.infra.pass_base": Offer(
            PassBase=elsewhere("fx.passes.pass_manager.PassBase"),
            PassResult=elsewhere("fx.passes.pass_manager.PassResult"),
        ),
        "fx.passes.operator_support": Offer(
            "OpSupports OperatorSupport OperatorSupportBase any_chain chain create_op_support",
        ),
        "fx.passes.param_fetch": Offer("extract_attrs_for_lowering lift_lowering_attrs_to_nodes"),
        "fx.passes.split_module": Offer("Partition split_module"),
        "fx.passes.split_utils": Offer("Component getattr_recursive setattr_recursive split_by_tags"),
        "fx.passes.tools_common": Offer(
            "FxNetAccFusionsFinder get_acc_ops_name get_node_target is_node_output_tensor legalize_graph "
            "stable_topological_sort",
        ),
        "fx.passes.utils.common": Offer("HolderModule compare_graphs lift_subgraph_as_module"),
        "fx.passes.utils.fuser_utils": Offer("fuse_as_graphmodule fuse_by_partitions topo_sort validate_partition"),
        "fx.passes.utils.matcher_with_name_node_map_utils": Offer("SubgraphMatcherWithNameNodeMap"),
        "fx.passes.utils.source_matcher_utils": Offer(
            "SourcePartition check_subgraphs_connected get_source_partitions",
        ),
        "fx.traceback": Offer(
            "annotate annotate_fn format_stack reset_grad_fn_seq_nr set_grad_fn_seq_nr set_stack_trace",
            get_current_meta=elsewhere("fx.proxy.get_current_meta"),
            has_preserved_node_meta=elsewhere("fx.proxy.has_preserved_node_meta"),
            preserve_node_meta=elsewhere("fx.proxy.preserve_node_meta"),
            set_current_meta=elsewhere("fx.proxy.set_current_meta"),
        ),
    },
    "tinytorch compiles nothing": {
        "_C": Offer(
            "Graph ScriptMethod ScriptObject", DeviceObjType=elsewhere("named.DeviceObjType"),
            TensorType=elsewhere("named.TensorType"), _distributed_c10d=submodule("_C._distributed_c10d"),
            _are_functorch_transforms_active=returns(False), _distributed_rpc=submodule("_C._distributed_rpc"),
            _functorch=submodule("_C._functorch"), _get_privateuse1_backend_name=returns("privateuseone"),
            _get_tracing_state=returns(None), _has_xpu=False, _is_tracing=returns(False),
            _jit_can_fuse_on_cpu=returns(False), _jit_can_fuse_on_gpu=returns(False),
            _jit_override_can_fuse_on_cpu=returns(None), _jit_override_can_fuse_on_gpu=returns(None),
            _jit_set_nvfuser_enabled=returns(False), _jit_set_profiling_executor=returns(True),
            _jit_set_profiling_mode=returns(True), _jit_set_texpr_fuser_enabled=returns(None),
            _log_api_usage_once=returns(None),
        ),
        "_jit_internal": Offer(_copy_to_script_wrapper=same, export=same, ignore=elsewhere("jit.ignore")),
        "_dynamo": Offer(
            OptimizedModule=elsewhere("compiler.OptimizedModule"), allow_in_graph=elsewhere("compiler.allow_in_graph"),
            assume_constant_result=elsewhere("compiler.assume_constant_result"), config=submodule("_dynamo.config"),
            disable=elsewhere("compiler.disable"), eval_frame=submodule("_dynamo.eval_frame"),
            graph_break=returns(None), is_compiling=elsewhere("compiler.is_compiling"),
            list_backends=elsewhere("compiler.list_backends"), mark_dynamic=returns(None), mark_static=returns(None),
            mark_static_address=returns(None), maybe_mark_dynamic=returns(None), optimize=elsewhere("compiler.compile"),
            reset=elsewhere("compiler.reset"), utils=submodule("_dynamo.utils"),
        ),
        "_dynamo._trace_wrapped_higher_order_op": Offer(TransformGetItemToIndex=Idle),
        "_dynamo.config": Offer(
            accumulated_cache_size_limit=256, assume_static_by_default=True, automatic_dynamic_shapes=True,
            cache_size_limit=8, capture_dynamic_output_shape_ops=False, capture_scalar_outputs=False, disable=False,
            dynamic_shapes=True, optimize_ddp=True, patch=patching, recompile_limit=8,
            skip_fwd_side_effects_in_bwd_under_checkpoint=False, suppress_errors=False, verbose=False,
        ),
        "_dynamo.decorators": Offer(
            mark_dynamic=elsewhere("_dynamo.mark_dynamic"), mark_static=elsewhere("_dynamo.mark_static"),
        ),
        "_dynamo.exc": Offer(
            TensorifyScalarRestartAnalysis=subclass_of(RuntimeError), TorchDynamoException=subclass_of(RuntimeError),
        ),
        "_dynamo.eval_frame": Offer(OptimizedModule=elsewhere("compiler.OptimizedModule")),
        "_dynamo.utils": Offer(is_compile_supported=returns(False)),
        "_higher_order_ops.cond": Offer(cond=elsewhere("control.cond")),
        "_higher_order_ops.while_loop": Offer(while_loop=elsewhere("control.while_loop")),
        "_ops": Offer(
            "HigherOrderOperator", OpOverload=elsewhere("fx._operators.OpOverload"),
            OpOverloadPacket=elsewhere("fx._operators.OpOverloadPacket"), ops=submodule("ops"),
        ),
        "_inductor": Offer(
            "compile list_mode_options", config=submodule("_inductor.config"), cudagraph_mark_step_begin=returns(None),
        ),
        "_inductor.codecache": Offer("extract_tensor_metadata_for_cache_key"),
        "_inductor.config": Offer(
            conv_1x1_as_mm=False, coordinate_descent_tuning=False, cpp=SimpleNamespace(threads=-1), debug=False,
            epilogue_fusion=True, force_fuse_int_mm_with_mul=False, fx_graph_cache=True, max_autotune=False,
            patch=patching, shape_padding=True, triton=SimpleNamespace(unique_kernel_names=True, cudagraphs=False),
        ),
        "_inductor.cpu_vec_isa": Offer("pick_vec_isa"),
        "_inductor.runtime.cache_dir_utils": Offer("cache_dir"),
        "utils.model_zoo": Offer(load_url=elsewhere("hub.load_state_dict_from_url"), tqdm=elsewhere("hub.tqdm")),
        "utils.cpp_extension": Offer(
            "BuildExtension CUDAExtension CppExtension SyclExtension include_paths load load_inline "
            "verify_ninja_availability",
            CUDA_HOME=None, ROCM_HOME=None, is_ninja_available=returns(False),
        ),
    },
    "the steps of vmap are not PyTorch's": {
        "_C._functorch": Offer(
            "_add_batch_dim _remove_batch_dim get_unwrapped",
            is_batchedtensor=elsewhere("ops.batching.is_batchedtensor"), is_legacy_batchedtensor=returns(False),
        ),
        "_functorch.vmap": Offer(
            "_create_batched_inputs _maybe_remove_batch_dim _process_batched_inputs _unwrap_batched "
            "_validate_and_get_batch_size",
            Tensor=elsewhere("core.tensor.Tensor"), _add_batch_dim=elsewhere("_C._functorch._add_batch_dim"),
            _broadcast_to_and_flatten=elsewhere("utils._pytree._broadcast_to_and_flatten"),
            _get_name=elsewhere("func.batches._name"), in_dims_t=object,
            tree_flatten=elsewhere("utils._pytree.tree_flatten"),
            tree_unflatten=elsewhere("utils._pytree.tree_unflatten"),
        ),
    },
    "tinytorch has no nested tensors": {
        "nested": Offer("as_nested_tensor nested_tensor nested_tensor_from_jagged to_padded_tensor"),
        "nested._internal.nested_tensor": Offer("NestedTensor"),
        "nested._internal.ops": Offer("extract_kwargs"),
    },
    "tinytorch compiles no scripts": {
        "named": Offer("DeviceObjType FloatType TensorType"),
    },
    "tinytorch has sparse tensors in `torch.sparse`": {
        "cuda.sparse": Offer(FloatTensor=elsewhere("sparse.FloatTensor")),
    },
    "tinytorch quantises the weights of linear layers alone, by quantize_dynamic": {
        "ao.quantization": Offer(
            "FakeQuantizeBase ObserverBase QConfig convert default_observer default_per_channel_weight_observer "
            "default_weight_observer fuse_modules fuse_modules_qat get_default_qat_qconfig get_default_qconfig "
            "prepare prepare_qat",
        ),
        "backends.quantized": Offer(engine="none", supported_engines=["none"]),
        "nn.quantized": Offer("BatchNorm2d FloatFunctional"),
        "nn.quantized.dynamic": Offer(Linear=elsewhere("nn.quantization.dynamic.Linear")),
        "nn.quantized.functional": Offer("conv1d conv2d conv3d linear"),
        "quantization.observer": Offer(
            "HistogramObserver MinMaxObserver MinMaxObserver.with_args PerChannelMinMaxObserver",
        ),
        "quantization.qconfig": Offer("QConfig"),
    },
    "tinytorch has no data pipes": {
        "utils.data.datapipes._decorator": Offer(functional_datapipe=marking),
        "utils.data.datapipes.datapipe": Offer(
            "IterDataPipe MapDataPipe _IterDataPipeSerializationWrapper _MapDataPipeSerializationWrapper",
        ),
        "utils.data.datapipes.iter.combinatorics": Offer("ShufflerIterDataPipe"),
        "utils.data.datapipes.utils.common": Offer("StreamWrapper"),
        "utils.data.graph_settings": Offer("apply_random_seed apply_sharding apply_shuffle_settings"),
        "utils.data._utils.signal_handling": Offer(
            "_remove_worker_pids _set_SIGCHLD_handler _set_worker_pids _set_worker_signal_handlers",
        ),
    },
    "there is no such device": {
        "cuda": Offer(_is_in_bad_fork=returns(False), _lazy_call=returns(None)),
        "cuda.comm": Offer("broadcast broadcast_coalesced gather reduce_add scatter"),
        "cuda.nccl": Offer("version"),
        "cuda.profiler": Offer("profile start stop"),
        "cuda.streams": Offer(Event=elsewhere("cuda.Event"), Stream=elsewhere("cuda.Stream")),
        "mtia": Offer(is_available=returns(False)),
        "utils._device": Offer("DeviceContext set_device", CURRENT_DEVICE=None),
        "backends.nnpack": Offer("set_flags", is_available=returns(False)),
        "backends.xnnpack": Offer(enabled=False),
    },
}
# fmt: on


@functools.cache
def offers() -> dict[str, tuple[str, Offer]]:
    """Return by module the reason and the names of the table."""
    return {path: (reason, offer) for reason, modules in TABLE.items() for path, offer in modules.items()}


@functools.cache
def names_of(module: str) -> dict[str, Any]:
    """Return the names that the table has for a module, such as `tinytorch.distributed.fsdp`, with their values."""
    reason, offer = offers().get(module.removeprefix("tinytorch."), ("", Offer()))
    inherited = names_of(f"tinytorch.{offer.all_of}") if offer.all_of else {}
    names = {name: value for name, value in inherited.items() if not name.startswith("_")}
    for name in offer.missing:
        error = NotImplementedError, f"{module.removeprefix('tiny')}.{name}: {reason}"
        owner, _, method = name.partition(".")
        if method:
            setattr(names[owner], method, staticmethod(refusing(*error)))
        elif name.lstrip("_")[0].isupper():
            members = {"__module__": module, "__doc__": f"There are none: {reason}.", "_error": error}
            names[name] = type(name, (Refused,), members)
        else:
            names[name] = refusing(*error)
            names[name].__name__ = names[name].__qualname__ = name
            names[name].__module__ = module
    for name, value in offer.values.items():
        names[name] = value.make(name, module) if isinstance(value, Deferred) else value
    return names


class Loader:
    """Makes a module of the table, or a package that contains one."""

    def create_module(self, spec: ModuleSpec) -> None:
        """Return None: Python creates the module."""

    def exec_module(self, module: ModuleType) -> None:
        """Give the module its names."""
        module.__doc__ = "Names of PyTorch's that tinytorch does not implement: the table is in `compat/named.py`."
        vars(module).update(names_of(module.__name__))


def find_spec(fullname: str) -> ModuleSpec | None:
    """Return where a module comes from, if it, or a module below it, is in the table."""
    path = fullname.removeprefix("tinytorch.")
    if not any(module == path or module.startswith(f"{path}.") for module in offers()):
        return None
    loader: Any = Loader()
    return ModuleSpec(fullname, loader, is_package=True)


globals().update(names_of(__name__))
