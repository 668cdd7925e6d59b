"""Names of PyTorch's that packages import, of what tinytorch has not: a table, and what makes modules of it.

They can be imported, derived from, and asked about by `isinstance`. What uses them gets an error that says why not.
"""

from __future__ import annotations

import ast
import builtins
import enum
import functools
import importlib
from typing import Any

from .absent import Refused, answering, refusing

#: Below each reason a line per module. `Name` is a class without objects, `name` a function that raises, `Name.name` a
#: method; `Name(A,B)` is an enumeration, `Name<Error` an exception, `name->3` returns 3, `name=3` is 3, `name:x.y` is
#: what `tinytorch.x` has as `y` (itself, if it is `*`), and `*:x` all that the table has for `tinytorch.x`.
TABLE = """
tinytorch spreads no tensors over processes, and calls no functions of others
    _C._distributed_c10d: GradBucket:distributed.GradBucket ProcessGroup:distributed.ProcessGroup
        Reducer:distributed._reducer.Reducer Work:distributed.Work
    _C._distributed_rpc: PyRRef
    distributed._composable.fsdp: *:distributed.fsdp
    distributed._functional_collectives: AsyncCollectiveTensor all_gather_tensor all_reduce all_to_all_single
        all_to_all_single_autograd permute_tensor reduce_scatter_tensor wait_tensor
    distributed._symmetric_memory: enable_symm_mem_for_group
    distributed._tensor: *:distributed.tensor
    distributed._tensor.experimental: *:distributed.tensor.experimental
    distributed.algorithms._checkpoint.checkpoint_wrapper: CheckpointImpl(REENTRANT,NO_REENTRANT) CheckpointWrapper
        OffloadWrapper apply_activation_checkpointing checkpoint_wrapper offload_wrapper
    distributed.checkpoint._consolidate_hf_safetensors: consolidate_safetensors_files
    distributed.checkpoint.hf_storage: HuggingFaceStorageReader HuggingFaceStorageWriter
    distributed.checkpoint.optimizer: load_sharded_optimizer_state_dict
    distributed.device_mesh: DeviceMesh init_device_mesh
    distributed.fsdp: BackwardPrefetch(BACKWARD_PRE,BACKWARD_POST) CPUOffload CPUOffloadPolicy FSDPModule
        FullOptimStateDictConfig FullStateDictConfig FullyShardedDataParallel FullyShardedDataParallel.fsdp_modules
        FullyShardedDataParallel.optim_state_dict FullyShardedDataParallel.optim_state_dict_to_load
        FullyShardedDataParallel.rekey_optim_state_dict FullyShardedDataParallel.state_dict_type
        FullyShardedDataParallel.summon_full_params LocalStateDictConfig MixedPrecision MixedPrecisionPolicy
        OffloadPolicy OptimStateKeyType(PARAM_NAME,PARAM_ID) ShardedOptimStateDictConfig ShardedStateDictConfig
        ShardingStrategy(FULL_SHARD,SHARD_GRAD_OP,NO_SHARD,HYBRID_SHARD,_HYBRID_SHARD_ZERO2)
        StateDictType(FULL_STATE_DICT,LOCAL_STATE_DICT,SHARDED_STATE_DICT) fully_shard register_fsdp_forward_method
    distributed.fsdp.api: *:distributed.fsdp
    distributed.fsdp.fully_sharded_data_parallel: *:distributed.fsdp
    distributed.fsdp.sharded_grad_scaler: ShardedGradScaler
    distributed.fsdp.wrap: ModuleWrapPolicy _or_policy enable_wrap lambda_auto_wrap_policy size_based_auto_wrap_policy
        transformer_auto_wrap_policy wrap
    distributed.launcher.api: LaunchConfig elastic_launch
    distributed.nn.api.remote_module: RemoteModule
    distributed.optim.optimizer: DistributedOptimizer
    distributed.optim.post_localSGD_optimizer: PostLocalSGDOptimizer
    distributed.pipelining: PipelineStage Schedule1F1B ScheduleGPipe SplitPoint(BEGINNING,END) pipeline
    distributed.pipelining.microbatch: TensorChunkSpec
    distributed.rpc: BackendType PyRRef RRef TensorPipeRpcBackendOptions get_worker_info init_rpc
        is_available->False remote rpc_async rpc_sync shutdown
    distributed.rpc.api: _all_gather
    distributed.tensor: DTensor DTensor.from_local distribute_module distribute_tensor
        *:distributed.tensor.placement_types
    distributed.tensor._utils: compute_local_shape_and_global_offset
    distributed.tensor.experimental: context_parallel implicit_replication
    distributed.tensor.experimental._attention: set_rotate_method
    distributed.tensor.parallel: ColwiseParallel PrepareModuleInput PrepareModuleOutput RowwiseParallel
        SequenceParallel loss_parallel parallelize_module
    distributed.tensor.placement_types: _StridedShard Partial:distributed.placements.Partial
        Placement:distributed.placements.Placement Replicate:distributed.placements.Replicate
        Shard:distributed.placements.Shard
    distributed.utils: _sync_module_states
    numa.binding: AffinityMode NumaOptions

tinytorch traces no programs
    _guards: TracingContext TracingContext.try_get active_fake_mode->None detect_fake_mode->None
    _subclasses: FakeTensor FakeTensorMode
    _subclasses.fake_tensor: *:_subclasses is_fake->False maybe_get_fake_mode->None unset_fake_temporarily:absent.Idle
    _subclasses.functional_tensor: FunctionalTensor mb_unwrap_functional_tensor
    _subclasses.meta_utils: MetaConverter
    export: Dim ExportedProgram export load register_dataclass save
    export.decomp_utils: CustomDecompTable
    fx: Graph:fx.graph.Graph Interpreter Node:fx.node.Node Transformer map_arg
    fx._compatibility: compatibility:absent.marking
    fx._pytree: register_pytree_flatten_spec tree_flatten_spec
    fx._symbolic_trace: Tracer:fx.proxy.Tracer symbolic_trace:fx.symbolic_trace wrap:fx.wrap
    fx.experimental.proxy_tensor: get_proxy_mode->None make_fx
    fx.experimental.symbolic_shapes: GuardOnDataDependentSymNode<RuntimeError ShapeEnv free_symbols
        free_unbacked_symbols guard_or_false guard_or_true statically_known_true
    fx.graph: Graph
    fx.immutable_collections: immutable_dict:builtins.dict immutable_list:builtins.list
    fx.node: Argument:builtins.object Node Node.is_impure Target:builtins.object map_aggregate map_arg
    fx.operator_schemas: check_for_mutable_operation
    fx.passes.fake_tensor_prop: FakeTensorProp
    fx.passes.infra.pass_base: PassBase PassResult
    fx.passes.shape_prop: ShapeProp TensorMetadata
    fx.proxy: GraphAppendingTracer TraceError<ValueError
    jit: ScriptFunction TopLevelTracedModule TracerWarning<Warning
    onnx: ONNXProgram
    onnx.operators: reshape_from_tensor_shape shape_as_tensor
    onnx.symbolic_opset11: select squeeze unsqueeze
    onnx.symbolic_opset12: dropout
    onnx.symbolic_opset9: masked_fill softmax
    utils._sympy.functions: FloorDiv
    utils._sympy.numbers: IntInfinity
    utils._sympy.value_ranges: ValueRanges

tinytorch compiles nothing
    _C: DeviceObjType:named.DeviceObjType Graph ScriptMethod ScriptObject TensorType:named.TensorType
        _distributed_c10d:_C._distributed_c10d.* _distributed_rpc:_C._distributed_rpc.*
        _functorch:_C._functorch.*
        _get_privateuse1_backend_name->'privateuseone' _has_xpu=False _is_tracing->False
        _jit_can_fuse_on_cpu->False _jit_can_fuse_on_gpu->False
        _jit_override_can_fuse_on_cpu->None _jit_override_can_fuse_on_gpu->None _jit_set_nvfuser_enabled->False
        _jit_set_profiling_executor->True _jit_set_profiling_mode->True _jit_set_texpr_fuser_enabled->None
    _dynamo: config:_dynamo.config.* eval_frame:_dynamo.eval_frame.* mark_static_address->None utils:_dynamo.utils.*
    _dynamo._trace_wrapped_higher_order_op: TransformGetItemToIndex:absent.Idle
    _dynamo.config: accumulated_cache_size_limit=256 assume_static_by_default=True automatic_dynamic_shapes=True
        cache_size_limit=8 capture_dynamic_output_shape_ops=False capture_scalar_outputs=False disable=False
        dynamic_shapes=True optimize_ddp=True recompile_limit=8 suppress_errors=False verbose=False
    _dynamo.decorators: mark_dynamic:_dynamo.mark_dynamic mark_static:_dynamo.mark_static
    _dynamo.exc: TorchDynamoException<RuntimeError
    _dynamo.eval_frame: OptimizedModule:compiler.OptimizedModule
    _dynamo.utils: is_compile_supported->False
    _higher_order_ops.cond: cond:control.cond
    _higher_order_ops.while_loop: while_loop:control.while_loop
    _ops: HigherOrderOperator OpOverload:library._Operator OpOverloadPacket:library._Operator
    _inductor: compile cudagraph_mark_step_begin->None list_mode_options
    _inductor.codecache: extract_tensor_metadata_for_cache_key
    _inductor.cpu_vec_isa: pick_vec_isa
    _inductor.runtime.cache_dir_utils: cache_dir
    utils.model_zoo: load_url:hub.load_state_dict_from_url tqdm:hub.tqdm
    utils.cpp_extension: BuildExtension CUDAExtension CUDA_HOME=None CppExtension ROCM_HOME=None SyclExtension
        include_paths is_ninja_available->False load load_inline verify_ninja_availability

vmap runs its function once per element, on tensors like all others
    _C._functorch: _add_batch_dim _remove_batch_dim get_unwrapped is_batchedtensor->False
    _functorch.vmap: Tensor:core.tensor.Tensor _add_batch_dim:_C._functorch._add_batch_dim
        _broadcast_to_and_flatten:utils._pytree._broadcast_to_and_flatten _create_batched_inputs
        _get_name:func.transforms._name _maybe_remove_batch_dim _process_batched_inputs _unwrap_batched
        _validate_and_get_batch_size in_dims_t:builtins.object tree_flatten:utils._pytree.tree_flatten
        tree_unflatten:utils._pytree.tree_unflatten

tinytorch has no nested tensors
    nested: as_nested_tensor nested_tensor nested_tensor_from_jagged to_padded_tensor
    nested._internal.nested_tensor: NestedTensor
    nested._internal.ops: extract_kwargs

tinytorch has no masked tensors
    masked: MaskedTensor mean var

tinytorch has no sparse tensors
    named: sparse_bsc_tensor sparse_bsr_tensor sparse_compressed_tensor sparse_coo_tensor sparse_csc_tensor
        sparse_csr_tensor DeviceObjType FloatType TensorType
    sparse: DoubleTensor FloatTensor HalfTensor IntTensor LongTensor addmm log_softmax mm sampled_addmm softmax spdiags
        sum
    cuda.sparse: FloatTensor:sparse.FloatTensor

tinytorch quantises nothing
    ao.quantization: FakeQuantizeBase ObserverBase QConfig convert default_observer
        default_per_channel_weight_observer default_weight_observer fuse_modules fuse_modules_qat
        get_default_qat_qconfig get_default_qconfig prepare prepare_qat quantize_dynamic
    backends.quantized: engine='none' supported_engines=['none']
    nn.quantized: BatchNorm2d FloatFunctional
    nn.quantized.functional: conv1d conv2d conv3d linear
    quantization: *:ao.quantization DeQuantStub:ao.quantization.DeQuantStub QuantStub:ao.quantization.QuantStub
    quantization.observer: HistogramObserver MinMaxObserver MinMaxObserver.with_args PerChannelMinMaxObserver
    quantization.qconfig: QConfig

tinytorch has no data pipes
    utils.data.datapipes._decorator: functional_datapipe:absent.marking
    utils.data.datapipes.datapipe: IterDataPipe MapDataPipe _IterDataPipeSerializationWrapper
        _MapDataPipeSerializationWrapper
    utils.data.datapipes.iter.combinatorics: ShufflerIterDataPipe
    utils.data.datapipes.utils.common: StreamWrapper
    utils.data.graph_settings: apply_random_seed apply_sharding apply_shuffle_settings
    utils.data._utils.signal_handling: _remove_worker_pids _set_SIGCHLD_handler _set_worker_pids
        _set_worker_signal_handlers

there is no such device
    cuda: _is_in_bad_fork->False _lazy_call->None
    cuda.amp: amp_definitely_not_available->True
    cuda.amp.common: *:cuda.amp
    cuda.comm: broadcast broadcast_coalesced gather reduce_add scatter
    cuda.nccl: version
    cuda.profiler: profile start stop
    cuda.streams: Event:cuda.Event Stream:cuda.Stream
    mtia: is_available->False
    utils._device: CURRENT_DEVICE=None DeviceContext set_device
    backends.nnpack: is_available->False set_flags
    backends.xnnpack: enabled=False
"""


@functools.cache
def _read() -> dict[str, tuple[str, list[str]]]:
    """Return the table: by module the reason and the entries."""
    found: dict[str, tuple[str, list[str]]] = {}
    reason = module = ""
    for line in filter(None, TABLE.splitlines()):
        if not line.startswith(" "):
            reason = line
            continue
        head, colon, rest = line.partition(": ")
        if colon:
            module, line = head.strip(), rest
            found[module] = reason, []
        found[module][1].extend(line.split())
    return found


def is_module(path: str) -> bool:
    """Return whether the table makes a module of this name (below `tinytorch`), or one inside of it."""
    return any(each == path or each.startswith(f"{path}.") for each in _read())


@functools.cache
def names_of(module: str) -> dict[str, Any]:
    """Return what the table has for a module, `tinytorch.distributed.fsdp`."""
    reason, entries = _read().get(module.removeprefix("tinytorch."), ("", []))
    found: dict[str, Any] = {}
    for entry in entries:
        _enter(found, module, reason, entry)
    return found


def _enter(found: dict[str, Any], module: str, reason: str, entry: str) -> None:
    name, returns, literal = entry.partition("->")
    if returns:
        found[name] = answering(name, lambda *args, **kwargs: ast.literal_eval(literal), f"Return {literal}.", " ")
        return
    name, is_value, literal = entry.partition("=")
    if is_value:
        found[name] = ast.literal_eval(literal)
        return
    name, elsewhere, path = entry.partition(":")
    if elsewhere:
        home, _, other = path.rpartition(".")
        if name == "*":
            all_names = names_of(f"tinytorch.{path}").items()
            found.update({key: value for key, value in all_names if not key.startswith("_")})
        else:
            source: Any = builtins if home == "builtins" else importlib.import_module(f"tinytorch.{home}")
            found[name] = source if other == "*" else getattr(source, other)
        return
    error = NotImplementedError, f"{module.removeprefix('tiny')}.{entry}: {reason}"
    name, is_error, base = entry.partition("<")
    if is_error:
        found[name] = type(name, (getattr(builtins, base),), {"__module__": module})
        return
    name, is_enumeration, members = entry.partition("(")
    if is_enumeration:
        found[name] = enum.Enum(name, members.rstrip(")").split(","), module=module)
        return
    owner, is_method, method = entry.partition(".")
    if is_method:
        setattr(found[owner], method, staticmethod(refusing(*error)))
    elif name.lstrip("_")[0].isupper():
        about = {"__module__": module, "__doc__": f"There are none: {reason}.", "_error": error}
        found[name] = type(name, (Refused,), about)
    else:
        found[name] = refusing(*error)
        found[name].__name__ = found[name].__qualname__ = name
        found[name].__module__ = module


globals().update(names_of(__name__))
