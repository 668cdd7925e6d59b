"""tinytorch: PyTorch's API and semantics on NumPy.

import tinytorch as torch

A public name is imported when it is first asked for, from the module that the table names (`core/members.txt`
has those of Tensor's members).
"""

from importlib import import_module as _import_module
from math import e, inf, nan, pi

from tinytorch.kernels import blas as _blas

_blas.let_idle_threads_sleep()  # before NumPy is imported

from tinytorch.core import device as _device
from tinytorch.core import notes as _notes

_device.keep_freed_memory()
_notes.watch_uncaught()

_import_module("tinytorch.compat")  # which finds the submodules for other devices, older programs and private names
_import_module("tinytorch.ops")

from tinytorch.core.supplied import left_out as _left_out
from tinytorch.core.tensor import Tensor
from tinytorch.ops.register import Builtin as _Builtin
from tinytorch.ops.register import functions as _functions

newaxis = None
__traced_as__ = "refused"  # by `torch.compile`, unless a module, class or function says otherwise

# The tables (scripts/make_names.py writes them).
_NAMES = {
    "absent": "OutOfMemoryError",
    "alias": "load_ipython_extension",
    "amp": """
        GradScaler autocast autocast_decrement_nesting autocast_increment_nesting clear_autocast_cache
        get_autocast_cpu_dtype get_autocast_dtype get_autocast_gpu_dtype is_autocast_cache_enabled
        is_autocast_cpu_enabled is_autocast_enabled set_autocast_cache_enabled set_autocast_cpu_dtype
        set_autocast_cpu_enabled set_autocast_dtype set_autocast_enabled set_autocast_gpu_dtype
    """,
    "autograd.anomaly": "is_anomaly_check_nan_enabled is_anomaly_enabled",
    "autograd.grad_mode": """
        enable_grad inference_mode is_grad_enabled is_inference_mode_enabled no_grad set_grad_enabled
    """,
    "checks": """
        SymBool SymFloat SymInt _assert _assert_async _check _check_index _check_is_size _check_not_implemented
        _check_tensor_all _check_tensor_all_with _check_type _check_value _check_with sym_float sym_int sym_ite
        sym_max sym_min sym_not sym_sqrt sym_sum
    """,
    "compiler": "_disable_dynamo compile",
    "control": "cond while_loop",
    "core.device": "device",
    "core.layout": """
        channels_last channels_last_3d contiguous_format jagged layout legacy_contiguous_format memory_format
        preserve_format sparse_bsc sparse_bsr sparse_coo sparse_csc sparse_csr strided
    """,
    "core.tensor": "Size Tensor is_tensor",
    "func": "vmap",
    "futures": "Future",
    "inspect.summary": "summary",
    "jit": "ScriptModule",
    "kernels.dtypes": """
        bfloat16 bool can_cast cdouble cfloat chalf complex128 complex32 complex64 double dtype float float16
        float32 float64 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu get_default_dtype
        half int int16 int32 int64 int8 long promote_types qint32 qint8 quint2x4 quint4x2 quint8 set_default_dtype
        short uint16 uint32 uint64 uint8
    """,
    "kernels.limits": "finfo iinfo",
    "kernels.printing": "set_printoptions",
    "legacy": """
        BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor IntTensor LongTensor
        ShortTensor _amp_foreach_non_finite_check_and_unscale_ _amp_update_scale_ _cast_Double _cast_Float
        _cast_Half _cast_Int _cast_Long _shape_as_tensor eig lstsq matrix_rank solve symeig
    """,
    "named": "DeviceObjType FloatType TensorType",
    "nn.functional.activation": "celu celu_ rrelu rrelu_ selu selu_ threshold threshold_",
    "nn.functional.layers": "bilinear layer_norm rms_norm",
    "nn.functional.loss": "cosine_similarity pairwise_distance",
    "nn.functional.unlike": """
        alpha_dropout alpha_dropout_ binary_cross_entropy_with_logits cosine_embedding_loss dropout dropout_
        feature_alpha_dropout feature_alpha_dropout_ feature_dropout feature_dropout_ hinge_embedding_loss kl_div
        margin_ranking_loss poisson_nll_loss triplet_margin_loss
    """,
    "ops.arithmetic": """
        abs abs_ absolute add addcdiv addcmul allclose ceil ceil_ clamp clamp_max clamp_min clip copysign div divide
        equal fix fix_ floor floor_ floor_divide fmax fmin fmod frac frac_ isclose lerp maximum minimum mul multiply
        nan_to_num nan_to_num_ neg neg_ negative negative_ positive remainder result_type round round_ rsub sgn sign
        signbit sub subtract true_divide trunc trunc_
    """,
    "ops.compare": """
        bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor eq ge greater
        greater_equal gt isfinite isinf isnan isneginf isposinf isreal le less less_equal logical_and logical_not
        logical_or logical_xor lt ne not_equal
    """,
    "ops.complex": """
        _conj _neg_view complex conj conj_physical conj_physical_ imag is_conj is_neg polar resolve_conj resolve_neg
        view_as_complex view_as_real
    """,
    "ops.copies": """
        alias_copy as_strided_ as_strided_copy as_strided_scatter channel_shuffle constant_pad_nd detach_copy
        diagonal_copy diagonal_scatter expand_copy narrow_copy native_channel_shuffle permute_copy pixel_shuffle
        pixel_unshuffle select_copy select_scatter slice_copy slice_inverse slice_scatter split_copy
        split_with_sizes_copy squeeze_copy t_copy transpose_copy unbind_copy unfold_copy unsafe_chunk unsafe_split
        unsafe_split_with_sizes unsqueeze_copy view_copy
    """,
    "ops.create": """
        as_tensor asarray empty empty_like from_numpy frombuffer full full_like ones ones_like scalar_tensor tensor
        zeros zeros_like
    """,
    "ops.index": "fill fill_ index_add index_copy index_fill index_put index_put_ index_select zero_",
    "ops.join": """
        atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors cartesian_prod cat chunk
        column_stack concat concatenate dsplit dstack hsplit hstack meshgrid row_stack split split_with_sizes stack
        tensor_split unbind vsplit vstack
    """,
    "ops.linalg.factor": "det logdet",
    "ops.linalg.matrices": """
        _weight_norm cdist cholesky cholesky_inverse cholesky_solve corrcoef cov cross cumulative_trapezoid dist
        frobenius_norm geqrf inverse kron lobpcg lu lu_solve lu_unpack norm norm_except_dim nuclear_norm orgqr ormqr
        pca_lowrank pdist pinverse qr renorm slogdet svd svd_lowrank trapezoid trapz triangular_solve vander
    """,
    "ops.linalg.products": """
        addbmm addmm addmv addmv_ addr baddbmm bmm chain_matmul dot dsmm einsum ger inner matmul mm mv outer spmm
        tensordot trace vdot
    """,
    "ops.linalg.solve": "matrix_exp matrix_power",
    "ops.masks": "argwhere masked_fill masked_scatter masked_select nonzero nonzero_static where",
    "ops.members": "get_device is_distributed is_nonzero is_same_size typename",
    "ops.memory": "empty_permuted empty_strided from_dlpack from_file resize_as_ to_dlpack",
    "ops.nn.activation": "hardshrink log_softmax prelu softmax",
    "ops.nn.conv": "conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d convolution",
    "ops.nn.ctc": "ctc_loss",
    "ops.nn.embedding": "embedding embedding_bag embedding_renorm_",
    "ops.nn.norm": "batch_norm group_norm instance_norm native_batch_norm native_group_norm native_layer_norm",
    "ops.nn.pool": """
        adaptive_avg_pool1d adaptive_max_pool1d avg_pool1d max_pool1d max_pool1d_with_indices max_pool2d max_pool3d
    """,
    "ops.nn.resample": "affine_grid_generator grid_sampler grid_sampler_2d grid_sampler_3d",
    "ops.nn.rnn": "gru gru_cell lstm lstm_cell rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell",
    "ops.operators": "clamp_ clip_ detach detach_ is_inference",
    "ops.quantized": "_int_mm",
    "ops.random": """
        Generator bernoulli default_generator get_rng_state initial_seed manual_seed multinomial native_dropout
        normal rand rand_like randint randint_like randn randn_like randperm seed set_rng_state
    """,
    "ops.rearrange": "flip fliplr flipud repeat_interleave roll rot90 tile tril triu",
    "ops.reduce": """
        _is_all_true _is_any_true all amax amin aminmax any argmax argmin count_nonzero cummax cummin cumprod cumsum
        hash_tensor logsumexp max mean median min nanmean nanmedian nansum prod std std_mean sum var var_mean
    """,
    "ops.rejection": "_dirichlet_grad _sample_dirichlet _standard_gamma _standard_gamma_grad binomial poisson",
    "ops.scatter": "gather index_reduce put scatter scatter_add scatter_reduce take take_along_dim",
    "ops.sequences": "arange eye linspace logspace range tril_indices triu_indices",
    "ops.shape": """
        adjoint as_strided broadcast_to clone diag diag_embed diagflat diagonal flatten is_complex is_floating_point
        is_signed moveaxis movedim narrow numel permute ravel real reshape select squeeze swapaxes swapdims t
        transpose unflatten unsqueeze
    """,
    "ops.sort": "argsort bincount bucketize isin msort searchsorted sort topk unique unique_consecutive unravel_index",
    "ops.special": """
        angle clamp_max_ clamp_min_ digamma erfinv frexp gcd gcd_ heaviside i0 i0_ igamma igammac lcm lcm_ ldexp
        ldexp_ lgamma logaddexp2 logcumsumexp logit logit_ mvlgamma nextafter polygamma
    """,
    "ops.statistics": """
        _segment_reduce combinations diff gradient histc histogram histogramdd kthvalue mode nanquantile quantile
        segment_reduce
    """,
    "ops.stft": "istft stft",
    "ops.storage": """
        BFloat16Storage BoolStorage ByteStorage CharStorage DoubleStorage FloatStorage HalfStorage IntStorage
        LongStorage ShortStorage TypedStorage UntypedStorage is_storage
    """,
    "ops.transcendental": """
        acos acos_ acosh acosh_ arccos arccos_ arccosh arccosh_ arcsin arcsin_ arcsinh arcsinh_ arctan arctan2
        arctan_ arctanh arctanh_ asin asin_ asinh asinh_ atan atan2 atan_ atanh atanh_ cos cos_ cosh cosh_ deg2rad
        deg2rad_ erf erf_ erfc erfc_ exp exp2 exp2_ exp_ expm1 expm1_ float_power hypot log log10 log10_ log1p
        log1p_ log2 log2_ log_ logaddexp pow rad2deg rad2deg_ reciprocal reciprocal_ relu relu_ rsqrt rsqrt_ sigmoid
        sigmoid_ sin sin_ sinc sinc_ sinh sinh_ sqrt sqrt_ square square_ tan tan_ tanh tanh_ xlogy xlogy_
    """,
    "ops.windows": "bartlett_window blackman_window hamming_window hann_window kaiser_window",
    "serialization": "PyTorchFileReader load save",
    "sparse.construct": """
        _convert_indices_from_coo_to_csr _convert_indices_from_csr_to_coo resize_as_sparse_ sparse_bsc_tensor
        sparse_bsr_tensor sparse_compressed_tensor sparse_coo_tensor sparse_csc_tensor sparse_csr_tensor
    """,
    "sparse.products": "hsmm hspmm saddmm smm sspaddmm",
    "storage": "StorageBase",
    "streams": "Event Stream get_device_module",
    "switches": """
        are_deterministic_algorithms_enabled compiled_with_cxx11_abi get_default_device get_deterministic_debug_mode
        get_float32_matmul_precision get_num_interop_threads get_num_threads
        is_deterministic_algorithms_warn_only_enabled is_warn_always_enabled set_default_device
        set_default_tensor_type set_deterministic_debug_mode set_float32_matmul_precision set_flush_denormal
        set_num_interop_threads set_num_threads set_warn_always use_deterministic_algorithms
    """,
    "version": "__version__",
}
_SUBMODULES = """
    _C _VF __config__ __future__ __main__ _atomic _custom_ops _dynamo _functorch _guards _higher_order_ops _inductor
    _jit_internal _logging _ops _subclasses _tensor _tensor_str _utils absent accelerator alias amp ao autograd
    backends checks compat compiler control core cpu cuda data distributed distributions export fft foreach func
    functional functorch futures fx hub inspect jit kernels legacy library linalg masked mps mtia multiprocessing
    named names nested nn numa onnx ops optim overrides profiler quantization quasirandom random return_types
    serialization signal sparse special storage streams switches testing torch_version torchaudio_ops torchvision
    torchvision_ops types utils version xpu
"""
# End of the tables.

_WHERE = {name: path for path, names in _NAMES.items() for name in names.split()}
_HIDDEN = frozenset(
    """
    absent alias checks compat core dtypes foreach inspect kernels legacy named names ops streams switches torchvision
    torchaudio_ops torchvision_ops
    """.split()
)
#: Those that do not become methods where a class holds them; most are declared as `register.Function`s.
_BUILTINS = frozenset(
    """
    _assert_async autocast_decrement_nesting autocast_increment_nesting can_cast clear_autocast_cache
    get_autocast_cpu_dtype get_autocast_dtype get_autocast_gpu_dtype get_default_dtype get_num_interop_threads
    get_num_threads is_anomaly_check_nan_enabled is_anomaly_enabled is_autocast_cache_enabled is_autocast_cpu_enabled
    is_autocast_enabled is_grad_enabled is_inference_mode_enabled promote_types set_autocast_cache_enabled
    set_autocast_cpu_dtype set_autocast_cpu_enabled set_autocast_dtype set_autocast_enabled set_autocast_gpu_dtype
    set_flush_denormal set_num_interop_threads set_num_threads _dirichlet_grad _sample_dirichlet _standard_gamma
    _standard_gamma_grad
    """.split()
)


def _builtin(function: object) -> _Builtin:
    made = _Builtin(function)
    made.__module__ = __name__  # where it is pickled from
    return made


def __getattr__(name: str) -> object:
    path = _WHERE.get(name)
    if path is not None:
        module = _import_module(f"tinytorch.{path}")
        found = _functions.get(name) or getattr(module, name)
        found = globals()[name] = _builtin(found) if name in _BUILTINS else found
        _WHERE.pop(name, None)  # (what a program deletes stays deleted)
        return found
    if name in _SUBMODULES.split():
        return _import_module(f"tinytorch.{name}")
    if name.startswith("_foreach_"):
        return globals().setdefault(name, _builtin(getattr(_import_module("tinytorch.foreach"), name)))
    if name == "torch":  # PyTorch's own name is one of its names
        return _import_module("tinytorch")
    if name in globals():  # another thread was faster
        return globals()[name]
    raise _left_out.error("tinytorch", name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE, *_SUBMODULES.split()})


__all__ = sorted(
    name for name in {*globals(), *_WHERE, *_SUBMODULES.split()} if not name.startswith("_") and name not in _HIDDEN
)
