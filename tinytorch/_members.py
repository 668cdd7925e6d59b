"""The members of Tensor that modules declare, by module: `core/members.py` gives them to the class."""

# The tables (scripts/make_names.py writes them).
HOMES = {
    "autograd.api": """
        _base _current _is_view _place_of_hooks _version _view_func backward data detach detach_ grad grad_fn
        is_inference is_leaf output_nr register_hook register_post_accumulate_grad_hook requires_grad requires_grad_
        retain_grad retains_grad
    """,
    "inspect.notebook": "_repr_html_",
    "ops.arithmetic": """
        abs abs_ absolute absolute_ add addcdiv addcmul allclose ceil ceil_ clamp clamp_max clamp_min clip copysign
        copysign_ div divide equal fix fix_ floor floor_ floor_divide floor_divide_ fmax fmin fmod fmod_ frac frac_
        isclose lerp maximum minimum mul mul_ multiply multiply_ nan_to_num nan_to_num_ neg neg_ negative negative_
        positive remainder remainder_ round round_ sgn sgn_ sign sign_ signbit sub subtract true_divide true_divide_
        trunc trunc_
    """,
    "ops.compare": """
        bitwise_and bitwise_and_ bitwise_left_shift bitwise_left_shift_ bitwise_not bitwise_not_ bitwise_or
        bitwise_or_ bitwise_right_shift bitwise_right_shift_ bitwise_xor bitwise_xor_ eq eq_ ge ge_ greater greater_
        greater_equal greater_equal_ gt gt_ isfinite isinf isnan isneginf isposinf isreal le le_ less less_
        less_equal less_equal_ logical_and logical_and_ logical_not logical_not_ logical_or logical_or_ logical_xor
        logical_xor_ lt lt_ ne ne_ not_equal not_equal_
    """,
    "ops.complex": "_conj _neg_view conj conj_physical conj_physical_ is_conj is_neg resolve_conj resolve_neg",
    "ops.convert": "bfloat16 bool byte cdouble cfloat char cpu cuda double float half int long short to type_as",
    "ops.copies": """
        as_strided_ as_strided_scatter diagonal_scatter narrow_copy select_scatter slice_inverse slice_scatter
        squeeze_ swapaxes_ swapdims_ t_ transpose_ unsafe_chunk unsafe_split unsafe_split_with_sizes unsqueeze_
    """,
    "ops.create": "new_empty new_full new_ones new_tensor new_zeros",
    "ops.index": """
        copy_ fill_ fill_diagonal_ index_add index_add_ index_copy index_copy_ index_fill index_fill_ index_put
        index_put_ index_select zero_
    """,
    "ops.join": "chunk dsplit hsplit split split_with_sizes tensor_split unbind vsplit",
    "ops.linalg.factor": "det logdet",
    "ops.linalg.matrices": """
        cholesky cholesky_inverse cholesky_solve corrcoef cov cross dist geqrf inverse kron lu lu_solve norm orgqr
        ormqr pinverse qr renorm renorm_ slogdet svd triangular_solve
    """,
    "ops.linalg.products": """
        addbmm addbmm_ addmm addmm_ addmv addmv_ addr addr_ baddbmm baddbmm_ bmm dot ger inner matmul mm mv outer
        trace vdot
    """,
    "ops.linalg.solve": "matrix_exp matrix_power",
    "ops.masks": """
        argwhere masked_fill masked_fill_ masked_scatter masked_scatter_ masked_select nonzero nonzero_static
    """,
    "ops.members": """
        __array_wrap__ __contains__ __cuda_array_interface__ __dlpack__ __dlpack_device__ __torch_function__ _cdata
        _indices _make_subclass _nnz _typed_storage _values apply_ as_subclass ccol_indices coalesce col_indices
        const_data_ptr crow_indices dense_dim dequantize get_device grad_dtype indices int_repr ipu is_coalesced
        is_distributed is_ipu is_maia is_mtia is_nonzero is_pinned is_same_size is_sparse_csr is_vulkan is_xla map2_
        map_ module_load mtia name new pin_memory q_per_channel_axis q_per_channel_scales q_per_channel_zero_points
        q_scale q_zero_point qscheme record_stream reinforce resize_as_sparse_ row_indices smm sparse_dim
        sparse_mask sparse_resize_ sparse_resize_and_clear_ sspaddmm to_dense to_mkldnn to_padded_tensor to_sparse
        to_sparse_bsc to_sparse_bsr to_sparse_coo to_sparse_csc to_sparse_csr values volatile xpu
    """,
    "ops.memory": """
        dim_order is_set_to is_shared new_empty_strided resize resize_ resize_as resize_as_ set_ share_memory_
    """,
    "ops.nn.activation": "hardshrink log_softmax prelu softmax",
    "ops.operators": """
        __abs__ __add__ __and__ __delitem__ __div__ __eq__ __floordiv__ __ge__ __getitem__ __gt__ __iadd__ __iand__
        __idiv__ __ifloordiv__ __ilshift__ __imod__ __imul__ __invert__ __ior__ __ipow__ __irshift__ __isub__
        __itruediv__ __ixor__ __le__ __lshift__ __lt__ __matmul__ __mod__ __mul__ __ne__ __neg__ __or__ __pos__
        __pow__ __radd__ __rand__ __rdiv__ __rfloordiv__ __rlshift__ __rmatmul__ __rmod__ __rmul__ __ror__ __rpow__
        __rrshift__ __rshift__ __rsub__ __rtruediv__ __rxor__ __setitem__ __sub__ __truediv__ __xor__ add_ addcdiv_
        addcmul_ clamp_ clip_ div_ divide_ lerp_ polygamma pow_ sub_ subtract_ where
    """,
    "ops.random": """
        bernoulli bernoulli_ cauchy_ exponential_ geometric_ log_normal_ multinomial normal_ random_ uniform_
    """,
    "ops.rearrange": "flip fliplr flipud repeat repeat_interleave roll rot90 tile tril tril_ triu triu_",
    "ops.reduce": """
        _is_all_true _is_any_true all amax amin aminmax any argmax argmin count_nonzero cummax cummin cumprod
        cumprod_ cumsum cumsum_ hash_tensor logsumexp max mean median min nanmean nanmedian nansum prod std sum
        sum_to_size var
    """,
    "ops.scatter": """
        gather index_reduce index_reduce_ put put_ scatter scatter_ scatter_add scatter_add_ scatter_reduce
        scatter_reduce_ take take_along_dim
    """,
    "ops.shape": """
        H T adjoint as_strided broadcast_to clone contiguous data_ptr diag diag_embed diagflat diagonal dim
        element_size expand expand_as flatten imag is_complex is_contiguous is_floating_point is_signed mH mT
        moveaxis movedim narrow ndimension nelement numel permute ravel real reshape reshape_as select size squeeze
        storage_offset stride swapaxes swapdims t transpose unflatten unfold unsqueeze view view_as
    """,
    "ops.sort": "argsort bincount msort sort topk unique unique_consecutive",
    "ops.special": """
        angle clamp_max_ clamp_min_ digamma digamma_ erfinv erfinv_ float_power_ frexp gcd gcd_ heaviside heaviside_
        i0 i0_ igamma igamma_ igammac igammac_ lcm lcm_ ldexp ldexp_ lgamma lgamma_ logaddexp2 logcumsumexp logit
        logit_ mvlgamma mvlgamma_ nextafter nextafter_ polygamma_
    """,
    "ops.statistics": "diff histc histogram kthvalue mode nanquantile quantile",
    "ops.stft": "istft stft",
    "ops.storage": "storage storage_type untyped_storage",
    "ops.transcendental": """
        acos acos_ acosh acosh_ arccos arccos_ arccosh arccosh_ arcsin arcsin_ arcsinh arcsinh_ arctan arctan2
        arctan2_ arctan_ arctanh arctanh_ asin asin_ asinh asinh_ atan atan2 atan2_ atan_ atanh atanh_ cos cos_ cosh
        cosh_ deg2rad deg2rad_ erf erf_ erfc erfc_ exp exp2 exp2_ exp_ expm1 expm1_ float_power hypot hypot_ log
        log10 log10_ log1p log1p_ log2 log2_ log_ logaddexp pow rad2deg rad2deg_ reciprocal reciprocal_ relu relu_
        rsqrt rsqrt_ sigmoid sigmoid_ sin sin_ sinc sinc_ sinh sinh_ sqrt sqrt_ square square_ tan tan_ tanh tanh_
        xlogy xlogy_
    """,
    "ops.values": """
        __array__ __bool__ __complex__ __deepcopy__ __dir__ __float__ __format__ __index__ __int__ __iter__ __len__
        __new__ __repr__ __reversed__ _only _text _warn_of_a_scalar item itemsize nbytes ndim numpy tolist type
    """,
}
# End of the tables.
