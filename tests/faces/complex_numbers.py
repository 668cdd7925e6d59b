"""The samples with complex numbers: as in PyTorch, or refused."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

import tinytorch
from tests.faces import face
from tests.faces.calls import array_of, converted, function, parts, tensors_in
from tests.oracle import torch
from tests.samples import Sample

#: The functions that compute with complex numbers: their samples must not be refused.
COMPLEX = frozenset(
    """
    Tensor.__getitem__ Tensor.__matmul__ Tensor.addmm Tensor.bool Tensor.byte Tensor.char Tensor.contiguous
    Tensor.corrcoef Tensor.cov Tensor.cpu Tensor.cross Tensor.det Tensor.dist Tensor.double Tensor.expand
    Tensor.expand_as Tensor.flip Tensor.float Tensor.half Tensor.int Tensor.inverse Tensor.kron Tensor.logdet
    Tensor.long Tensor.matmul Tensor.matrix_power Tensor.mm Tensor.norm Tensor.ormqr Tensor.permute Tensor.repeat
    Tensor.reshape Tensor.reshape_as Tensor.short Tensor.slogdet Tensor.sum_to_size Tensor.svd Tensor.tile Tensor.to
    Tensor.type_as Tensor.unfold Tensor.view Tensor.view_as Tensor.where abs acos acosh add addbmm addcdiv addcmul addmm
    addmv addr adjoint affine_grid_generator alias_copy all allclose angle any as_strided as_strided_copy asin asinh
    atan atanh atleast_1d atleast_2d atleast_3d baddbmm block_diag bmm broadcast_tensors broadcast_to cartesian_prod cat
    channel_shuffle cholesky_inverse cholesky_solve chunk clone column_stack combinations concat concatenate conj
    conj_physical constant_pad_nd conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d corrcoef cos
    cosh count_nonzero cov cross cumprod cumsum cumulative_trapezoid det diag diag_embed diagflat diagonal diagonal_copy
    diagonal_scatter diff dist div dot dsmm dsplit dstack einsum embedding eq equal exp exp2 expand_copy expm1 fft.fft
    fft.fft2 fft.fftn fft.fftshift fft.hfft fft.hfft2 fft.hfftn fft.ifft fft.ifft2 fft.ifftn fft.ifftshift fft.irfft
    fft.irfft2 fft.irfftn flatten flip fliplr flipud float_power gather geqrf ger gradient gru gru_cell hsplit hstack
    index_add index_copy index_fill index_put index_select inner inverse is_complex is_conj is_neg isclose isfinite
    isinf isnan isreal kron ldexp lerp linalg.cholesky linalg.cholesky_ex linalg.cond linalg.cross linalg.det
    linalg.diagonal linalg.eig linalg.eigh linalg.eigvals linalg.eigvalsh linalg.householder_product linalg.inv
    linalg.inv_ex linalg.ldl_factor linalg.ldl_solve linalg.lstsq linalg.lu linalg.lu_factor linalg.lu_factor_ex
    linalg.lu_solve linalg.matrix_exp linalg.matrix_norm linalg.matrix_power linalg.matrix_rank linalg.multi_dot
    linalg.norm linalg.pinv linalg.qr linalg.slogdet linalg.solve linalg.solve_ex linalg.solve_triangular linalg.svd
    linalg.svdvals linalg.tensorinv linalg.tensorsolve linalg.vander linalg.vecdot linalg.vector_norm log log10 log1p
    log2 logaddexp logcumsumexp logdet logical_and logical_not logical_or logical_xor logsumexp lstm lstm_cell lu_unpack
    masked_fill masked_scatter masked_select matmul matrix_exp mean meshgrid mm moveaxis movedim mul mv nan_to_num
    narrow narrow_copy native_channel_shuffle ne neg nn.functional.adaptive_avg_pool1d nn.functional.adaptive_avg_pool2d
    nn.functional.adaptive_avg_pool3d nn.functional.bilinear nn.functional.conv2d nn.functional.embedding
    nn.functional.fold nn.functional.l1_loss nn.functional.linear nn.functional.lp_pool1d nn.functional.lp_pool2d
    nn.functional.lp_pool3d nn.functional.pad nn.functional.poisson_nll_loss nn.functional.rms_norm
    nn.functional.sigmoid nn.functional.silu nn.functional.smooth_l1_loss nn.functional.soft_margin_loss
    nn.functional.softsign nn.functional.tanh nn.functional.tanhshrink nn.functional.unfold nn.utils.rnn.pad_sequence
    nonzero norm orgqr ormqr outer permute permute_copy pinverse pixel_shuffle pixel_unshuffle positive pow prod put
    ravel real reciprocal renorm repeat_interleave reshape resolve_conj resolve_neg rnn_tanh rnn_tanh_cell roll rot90
    row_stack rsqrt rsub scatter scatter_add scatter_reduce select select_copy select_scatter sgn sigmoid sin sinc sinh
    slice_copy slice_scatter slogdet special.exp2 special.expit special.logsumexp split split_copy split_with_sizes
    split_with_sizes_copy sqrt square squeeze squeeze_copy stack std std_mean sub sum svd swapaxes swapdims t t_copy
    take take_along_dim tan tanh tensor_split tensordot tile trace transpose transpose_copy trapezoid trapz tril triu
    true_divide unbind unbind_copy unflatten unfold_copy unsafe_chunk unsafe_split unsafe_split_with_sizes unsqueeze
    unsqueeze_copy vander var var_mean vdot view_copy vsplit vstack where
    """.split()
)


def with_imaginary_parts(value: Any, kind: Any, hermitian: bool = False) -> Any:
    """Return an argument whose float64 arrays have imaginary parts; with `hermitian`, matrices have real diagonals."""
    if isinstance(value, np.ndarray) and value.dtype == np.float64:
        rng = np.random.default_rng(value.size)
        part = 0.5 * rng.standard_normal(value.shape)
        if hermitian and value.shape[-1] == value.shape[-2]:
            part = (part - part.swapaxes(-1, -2)) / 4
        return np.asarray(value + 1j * part).astype(kind)
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(with_imaginary_parts(each, kind, hermitian) for each in value)
    return value


def arrays_in(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [array for each in value for array in arrays_in(each)]
    return [value] if isinstance(value, np.ndarray) else []


def has_floats(sample: Sample) -> bool:
    arrays = arrays_in([*sample.args, *sample.kwargs.values()])
    floats = [each for each in arrays if each.dtype == np.float64]
    return bool(floats) and all(np.isfinite(each).all() for each in floats)


def as_complex(sample: Sample, kind: Any) -> Sample:
    args = tuple(with_imaginary_parts(each, kind, sample.hermitian) for each in sample.args)
    kwargs = {key: with_imaginary_parts(each, kind) for key, each in sample.kwargs.items()}
    return dataclasses.replace(sample, args=args, kwargs=kwargs)


def with_complex_arguments(sample: Sample, library: Any) -> tuple[Any, list[Any]]:
    """Return the result (or the error) of a complex sample, and the tensors among its arguments."""
    args = [converted(each, library) for each in sample.args]
    kwargs = {key: converted(each, library) for key, each in sample.kwargs.items()}
    inputs = tensors_in([*args, *kwargs.values()], library)
    for each in inputs:
        if each.is_floating_point() or each.is_complex():
            each.requires_grad_()
    try:
        result = function(library, sample.name)(*args, **kwargs)
        return result if sample.select is None else sample.select(result), inputs
    except (RuntimeError, TypeError, ValueError, AssertionError) as error:
        return error, inputs


@face(has_floats, ignoring=[""], needs_oracle=True)
def complex_numbers_agree_with_pytorch_or_are_refused(sample: Sample) -> None:
    for kind in (np.complex128, np.complex64):
        _agree_or_are_refused(sample, kind)


def _agree_or_are_refused(sample: Sample, kind: Any) -> None:
    sample = as_complex(sample, kind)
    ours, inputs = with_complex_arguments(sample, tinytorch)
    theirs, their_inputs = with_complex_arguments(sample, torch)
    if isinstance(ours, Exception):
        if not isinstance(theirs, Exception):
            assert isinstance(ours, NotImplementedError)
            assert sample.name not in COMPLEX, ours
        return
    if isinstance(theirs, Exception):
        assert "automatic differentiation" in str(theirs)  # (of functions whose results are complex)
        return
    slack = 1.0 if kind is np.complex128 else 1e5
    rtol, atol = max(sample.rtol, 1e-9) * slack, max(sample.atol, 1e-9) * slack
    _alike(ours, theirs, rtol, atol)
    mine = [each for each in tensors_in([ours], tinytorch) if each.requires_grad]
    other = [each for each in tensors_in([theirs], torch) if each.requires_grad]
    assert len(mine) == len(other), "requires_grad differs"
    if not other or not sample.backward:
        return
    rng = np.random.default_rng(5)
    weights = [
        np.asarray(rng.standard_normal(each.shape) + rng.standard_normal(each.shape) * (1j if each.is_complex() else 0))
        for each in other
    ]
    for library, outputs in ((tinytorch, mine), (torch, other)):
        library.autograd.backward(
            outputs, [library.tensor(w, dtype=each.dtype) for w, each in zip(weights, outputs, strict=True)]
        )
    for x, y in zip(inputs, their_inputs, strict=True):
        assert (x.grad is None) == (y.grad is None)
        if y.grad is not None:
            _alike(x.grad, y.grad, rtol * 10, atol * 10)


def _alike(ours: Any, theirs: Any, rtol: float, atol: float) -> None:
    mine, other = (parts(each) for each in (ours, theirs))
    assert len(mine) == len(other)
    for a, b in zip(mine, other, strict=True):
        if isinstance(b, (list, tuple)):
            _alike(a, b, rtol, atol)
        elif hasattr(b, "dtype"):
            assert str(a.dtype) == str(b.dtype)
            np.testing.assert_allclose(array_of(a), array_of(b), rtol=rtol, atol=atol)
        else:
            assert a == b


@face(lambda sample: sample.name in COMPLEX and sample.gradcheck and has_floats(sample), ignoring=[""])
def derivatives_by_complex_numbers(sample: Sample) -> None:
    sample = as_complex(sample, np.complex128)
    everything = [converted(each, tinytorch) for each in (*sample.args, *sample.kwargs.values())]
    inputs = [each.requires_grad_() for each in tensors_in(everything, tinytorch) if each.is_complex()]

    def run(*given: Any) -> Any:
        replaced = dict(zip(map(id, inputs), given, strict=True))

        def put(value: Any) -> Any:
            if isinstance(value, (list, tuple)):
                return type(value)(put(each) for each in value)
            return replaced.get(id(value), value)

        args = [put(each) for each in everything[: len(sample.args)]]
        kwargs = dict(zip(sample.kwargs, map(put, everything[len(sample.args) :]), strict=True))
        result = function(tinytorch, sample.name)(*args, **kwargs)
        found = tensors_in([result if sample.select is None else sample.select(result)], tinytorch)
        return tuple(each for each in found if each.is_complex() or each.is_floating_point())

    try:
        outputs = run(*inputs)
    except RuntimeError:  # PyTorch refuses it, too: see the test above
        return
    if not any(each.requires_grad for each in outputs) or not sum(each.numel() for each in outputs):
        return
    small = sum(each.numel() for each in (*inputs, *outputs)) < 20
    assert tinytorch.autograd.gradcheck(run, inputs, fast_mode=not small, check_forward_ad=True, atol=1e-4)
    if sample.backward:
        assert tinytorch.autograd.gradgradcheck(run, inputs, fast_mode=True, atol=1e-4)
