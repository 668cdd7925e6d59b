"""What is said of a public name of PyTorch that tinytorch leaves out, where a program asks for it.

Imported when a name is not found. `NAMES` is the table of `scripts/make_coverage.py`, which writes this file's end.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from pathlib import Path

from tinytorch._version import __version__
from tinytorch.ops import register


def error(module: str, name: str) -> AttributeError:
    """Return the error for a name that a module, such as `tinytorch.linalg`, or `tinytorch.Tensor` lacks."""
    theirs = f"torch{module.removeprefix('tinytorch')}"
    for reason, names in NAMES.get(theirs, {}).items():
        if name in names.split():
            words = f": {reason}" if reason else ""
            return AttributeError(f"{theirs}.{name} is not in tinytorch {__version__}{words}", name=name)
    here = Path(__file__).parent
    if module == "tinytorch" and name[:2] != "__" and (here.parents[1] / "scripts" / "make_names.py").exists():
        for each in pkgutil.walk_packages([str(here)], "tinytorch.ops."):
            importlib.import_module(each.name)
        known = " ".join(sys.modules[module]._NAMES.values()).split()  # (what is known may have been deleted)
        if name in register.functions and name not in known:  # in a checkout, in which the table of names is stale
            words = "is declared, but not in the table of names: run scripts/make_names.py"
            return AttributeError(f"{theirs}.{name} {words}", name=name)
    return AttributeError(f"module {module!r} has no attribute {name!r}", name=name)


#: By module, and by the reason, the names that are left out (scripts/make_coverage.py writes them).
# ruff: noqa: E501
# fmt: off
NAMES: dict[str, dict[str, str]] = {
    "torch": {
        "everything runs on the CPU": """
            AcceleratorError StreamObjType cudnn_affine_grid_generator cudnn_batch_norm cudnn_convolution
            cudnn_convolution_add_relu cudnn_convolution_relu cudnn_convolution_transpose cudnn_grid_sampler
            cudnn_is_acceptable is_vulkan_available miopen_batch_norm miopen_convolution
            miopen_convolution_add_relu miopen_convolution_relu miopen_convolution_transpose miopen_ctc_loss
            miopen_depthwise_convolution miopen_rnn mkldnn_adaptive_avg_pool2d mkldnn_convolution
            mkldnn_linear_backward_weights mkldnn_max_pool2d mkldnn_max_pool3d mkldnn_rnn_layer
            profiler_allow_cudagraph_cupti_lazy_reinit_cuda12
        """,
        "Python runs the programs: torch.jit.script returns its argument, and torch.compile generates NumPy programs": """
            AggregationType AliasDb AnyType Argument ArgumentSpec AwaitType Block BoolType CallStack Capsule
            ClassType Code CompilationUnit CompleteArgumentSpec ComplexType ConcreteModuleType
            ConcreteModuleTypeBuilder DeepCopyMemoTable DeserializationStorageContext DictType EnumType
            ErrorReport ExecutionPlan FileCheck FunctionSchema FutureType Gradient Graph GraphExecutorState
            IODescriptor InferredType IntType InterfaceType JITException ListType LiteScriptModule Node
            NoneType NumberType OperatorInfo OptionalType PyObjectType PyTorchFileWriter ScriptClass
            ScriptClassFunction ScriptDict ScriptDictIterator ScriptDictKeyIterator ScriptFunction
            ScriptList ScriptListIterator ScriptMethod ScriptModuleSerializer ScriptObject
            ScriptObjectProperty SerializationStorageContext StaticModule StringType SymBoolType SymIntType
            TracingState TupleType Type UnionType Use Value fork get_file_path import_ir_module
            import_ir_module_from_buffer merge_type_from_type_comment parse_ir parse_schema
            parse_type_comment unify_type_list wait
        """,
        "undocumented (except `Tag`); tinytorch has other internals": """
            BenchmarkConfig BenchmarkExecutionStats BufferDict DisableTorchFunction
            DisableTorchFunctionSubclass DispatchKey DispatchKeySet ExcludeDispatchKeyGuard FatalError
            LockingLogger LoggerBase ModuleDict NoopLogger ParameterDict Tag ThroughputBenchmark
            classproperty init_num_threads
        """,
        "there are no quantized dtypes, and no operators of quantized networks": """
            QInt32Storage QInt8Storage QUInt2x4Storage QUInt4x2Storage QUInt8Storage
            choose_qparams_optimized dequantize empty_quantized fake_quantize_per_channel_affine
            fake_quantize_per_tensor_affine fbgemm_linear_fp16_weight
            fbgemm_linear_fp16_weight_fp32_activation fbgemm_linear_int8_weight
            fbgemm_linear_int8_weight_fp32_activation fbgemm_linear_quantize_weight
            fbgemm_pack_gemm_matrix_fp16 fbgemm_pack_quantized_matrix fused_moving_avg_obs_fake_quant
            int_repr q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale q_zero_point
            qscheme quantize_per_channel quantize_per_tensor quantize_per_tensor_dynamic
            quantized_batch_norm quantized_gru quantized_gru_cell quantized_lstm quantized_lstm_cell
            quantized_max_pool1d quantized_max_pool2d quantized_max_pool3d quantized_rnn_relu_cell
            quantized_rnn_tanh_cell
        """,
        "there is one device": """
            RRefType prepare_multiprocessing_environment thread_safe_generator
        """,
        "they belong to the compiler": """
            sym_constrain_range sym_constrain_range_for_size sym_fresh_size
        """,
        "undocumented parts and variants of public functions": """
            batch_norm_backward_elemt batch_norm_backward_reduce batch_norm_elemt batch_norm_gather_stats
            batch_norm_gather_stats_with_counts batch_norm_stats batch_norm_update_stats ccol_indices_copy
            col_indices_copy crow_indices_copy indices_copy native_norm row_indices_copy values_copy
            view_as_complex_copy view_as_real_copy
        """,
        "undocumented functions below `torch.autocast`": """
            get_autocast_ipu_dtype get_autocast_xla_dtype is_autocast_ipu_enabled is_autocast_xla_enabled
            set_autocast_ipu_dtype set_autocast_ipu_enabled set_autocast_xla_dtype set_autocast_xla_enabled
        """,
        "": """
            ComplexDoubleStorage ComplexFloatStorage Storage set_anomaly_enabled
        """,
    },
    "torch.Tensor": {
        "NumPy has no complex numbers of 16 bits": """
            chalf
        """,
        "": """
            index
        """,
    },
    "torch.nn": {
        "undocumented (except `Tag`); tinytorch has other internals": """
            factory_kwargs
        """,
        "": """
            Container
        """,
    },
    "torch.nn.functional": {
        "everything runs on the CPU": """
            ScalingType SwizzleType scaled_grouped_mm scaled_mm
        """,
        "undocumented (except `Tag`); tinytorch has other internals": """
            assert_int_or_pair boolean_dispatch
        """,
    },
    "torch.optim": {
        "undocumented (except `Tag`); tinytorch has other internals": """
            swap_in_optimizer_params_and_state
        """,
    },
    "torch.utils.data": {
        "deprecated in PyTorch in favour of data sets and loaders": """
            DFIterDataPipe DataChunk
        """,
        "undocumented (except `Tag`); tinytorch has other internals": """
            argument_validation guaranteed_datapipes_determinism non_deterministic runtime_validation
            runtime_validation_disabled
        """,
    },
    "torch.autograd": {
        "Python runs the programs: torch.jit.script returns its argument, and torch.compile generates NumPy programs": """
            NestedIOFunction
        """,
        "undocumented (except `Tag`); tinytorch has other internals": """
            enforce_grad_layout_policy
        """,
    },
}
