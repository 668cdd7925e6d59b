"""All requirements of an op, for the samples in `tests/samples`, where the format of samples is described."""

from __future__ import annotations

import dataclasses
import functools
import importlib
from typing import Any

import numpy as np
import pytest

import tinytorch
from tests.oracle import needs_oracle, torch
from tests.samples import Sample, all_samples
from tinytorch.autograd.forward_ad import Level
from tinytorch.core.node import OpNode
from tinytorch.core.tensor import wrap
from tinytorch.ops import out as _out  # noqa: F401  (its ops are in the table, too)
from tinytorch.ops import rejection as _rejection  # noqa: F401

SAMPLES = all_samples()
DIFFERENTIABLE = [each for each in SAMPLES if each.gradcheck and each.backward]
parametrize = pytest.mark.parametrize


def function(library: Any, name: str) -> Any:
    """Return the function at the path `name` below `library`."""
    for part in name.split("."):
        library = getattr(library, part)
    return library


def converted(value: Any, library: Any, change: Any = None, requires_grad: bool = False) -> Any:
    """Return an argument with its arrays as the library's tensors."""
    if isinstance(value, np.ndarray):
        array = value if change is None else change(value)
        if library is tinytorch:
            tensor = (
                wrap(array)
                if isinstance(array, Standin)
                else tinytorch.from_numpy(array.copy("K") if array.base is None else array)
            )
        else:
            tensor = torch.from_numpy(array.copy("K") if array.base is None else array)
        if requires_grad and array.dtype.kind in "fc":
            tensor.requires_grad_()
        return tensor
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(converted(each, library, change, requires_grad) for each in value)
    if library is torch and isinstance(value, tinytorch.dtype):
        return getattr(torch, value.name)
    return value


def call(sample: Sample, library: Any, change: Any = None, requires_grad: bool = False) -> tuple[Any, list[Any]]:
    """Return the result of a sample and the tensors among its arguments."""
    args = [converted(arg, library, change, requires_grad) for arg in sample.args]
    kwargs = {key: converted(arg, library, change, requires_grad) for key, arg in sample.kwargs.items()}
    result = function(library, sample.name)(*args, **kwargs)
    return result, tensors_in([*args, *kwargs.values()], library)


def tensors_in(values: Any, library: Any) -> list[Any]:
    """Return all tensors in nested sequences."""
    if isinstance(values, library.Tensor):
        return [values]
    if isinstance(values, (list, tuple)):
        return [tensor for each in values for tensor in tensors_in(each, library)]
    return []


def parts(result: Any, select: Any) -> list[Any]:
    """Return the tensors or values that a call returned."""
    if select is not None:
        result = select(result)
    return list(result) if isinstance(result, (list, tuple)) else [result]


def array_of(value: Any) -> Any:
    return value.numpy(force=True) if hasattr(value, "numpy") else np.asarray(value)


def agree(ours: Any, theirs: Any, rtol: float, atol: float) -> None:
    """Assert that two results agree in value, dtype and shape."""
    ours, theirs = (parts(each, None) for each in (ours, theirs))
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        if isinstance(other, (list, tuple)):
            agree(mine, other, rtol, atol)
            continue
        if not hasattr(other, "dtype"):
            assert mine == other, (mine, other)
            continue
        assert str(mine.dtype) == str(other.dtype)
        assert tuple(mine.shape) == tuple(other.shape)
        slack = 1.0 if str(other.dtype).endswith(("t64", "complex128")) else 1e4
        np.testing.assert_allclose(array_of(mine), array_of(other), rtol=rtol * slack, atol=atol * slack)


def single(array: Any) -> Any:
    return array.astype(np.float32) if array.dtype == np.float64 else array


def strided(array: Any) -> Any:
    """Return the same numbers in non-contiguous memory, with the axes in reverse order."""
    if array.ndim == 0:
        return array
    wide = np.zeros((*array.shape[::-1], 2), array.dtype)
    wide[..., 0] = array.T
    return wide[..., 0].T


@needs_oracle
@pytest.mark.filterwarnings("ignore:index_reduce", "ignore:torch.searchsorted")
@parametrize("sample", SAMPLES, ids=str)
def test_agrees_with_pytorch(sample: Sample) -> None:
    for change in (None, single, strided):
        ours, inputs = call(sample, tinytorch, change, requires_grad=True)
        theirs, their_inputs = call(sample, torch, change, requires_grad=True)
        if sample.select is not None:
            ours, theirs = sample.select(ours), sample.select(theirs)
        rtol, atol = sample.rtol, sample.atol
        agree(ours, theirs, rtol, atol)
        mine = [each for each in tensors_in(ours, tinytorch) if each.requires_grad]
        other = [each for each in tensors_in(theirs, torch) if each.requires_grad]
        assert len(mine) == len(other), "requires_grad differs"
        if not other or not sample.backward:
            continue
        weights = [np.random.default_rng(5).standard_normal(tuple(each.shape)) for each in other]
        tinytorch.autograd.backward(
            mine, [tinytorch.tensor(w, dtype=each.dtype) for w, each in zip(weights, mine, strict=True)]
        )
        torch.autograd.backward(
            other, [torch.tensor(w, dtype=each.dtype) for w, each in zip(weights, other, strict=True)]
        )
        for x, y in zip(inputs, their_inputs, strict=True):
            assert (x.grad is None) == (y.grad is None)
            if y.grad is not None:
                agree(x.grad, y.grad, max(rtol, 1e-7), max(atol, 1e-9) * 10)


def as_function(sample: Sample, in_place: bool = False) -> tuple[Any, list[Any]]:
    """Return a sample as a function of its floating-point tensors, and the tensors; in place it works on a copy."""
    everything = [*sample.args, *sample.kwargs.values()]
    tensors = [converted(each, tinytorch, requires_grad=True) for each in everything]
    inputs = [each for each in tensors_in(tensors, tinytorch) if each.requires_grad]

    def run(*given: Any) -> Any:
        replaced = dict(zip([id(each) for each in inputs], given, strict=True))

        def put(value: Any) -> Any:
            if isinstance(value, (list, tuple)):
                return type(value)(put(each) for each in value)
            return replaced.get(id(value), value)

        args = [put(each) for each in tensors[: len(sample.args)]]
        kwargs = dict(zip(sample.kwargs, [put(each) for each in tensors[len(sample.args) :]], strict=True))
        if in_place:
            result = getattr(args[0].clone(), f"{sample.name.rpartition('.')[2]}_")(*args[1:], **kwargs)
        else:
            result = function(tinytorch, sample.name)(*args, **kwargs)
        if sample.select is not None:
            result = sample.select(result)
        found = tensors_in(result, tinytorch)
        return tuple([each for each in found if each.dtype.is_floating_point or each.dtype.is_complex])

    return run, inputs


@parametrize("sample", DIFFERENTIABLE, ids=str)
def test_gradients_of_first_and_second_order(sample: Sample) -> None:
    run, inputs = as_function(sample)
    outputs = run(*inputs) if inputs else ()
    if not any(each.requires_grad for each in outputs):
        return
    small = sum(each.numel() for each in (*inputs, *outputs)) < 40
    assert tinytorch.autograd.gradcheck(run, inputs, fast_mode=not small, check_forward_ad=True)
    # For larger samples, forward over reverse is compared with reverse over reverse below.
    assert tinytorch.autograd.gradgradcheck(run, inputs, fast_mode=True, atol=1e-4, check_fwd_over_rev=small)


def vectors(tensors: Any, seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    drawn = [
        rng.standard_normal(each.shape) + (1j * rng.standard_normal(each.shape) if each.is_complex() else 0)
        for each in tensors
    ]
    return [tinytorch.tensor(v, dtype=each.dtype) for v, each in zip(drawn, tensors, strict=True)]


def tangents(run: Any, inputs: Any, directions: Any) -> tuple[list[Any], list[Any]]:
    """Return the outputs of a function and their tangents, with zeros for outputs without one."""
    with Level() as level:
        duals = [level.dual(x, v) for x, v in zip(inputs, directions, strict=True)]
        outputs = [level.unpack(out) for out in run(*duals)]
    zeros = [tinytorch.zeros_like(out.primal) for out in outputs]
    return [out.primal for out in outputs], [
        zero if out.tangent is None else out.tangent for out, zero in zip(outputs, zeros, strict=True)
    ]


def total(firsts: Any, seconds: Any) -> Any:
    """Return the inner product of two lists of tensors: of complex numbers as of pairs of real numbers."""
    zero = tinytorch.tensor(0.0, dtype=tinytorch.float64)
    products = [a * b.conj() for a, b in zip(firsts, seconds, strict=True) if a is not None]
    return sum([(each.real if each.is_complex() else each).sum() for each in products], zero)


@parametrize("sample", DIFFERENTIABLE, ids=str)
def test_tangents_are_transposes_of_gradients(sample: Sample) -> None:
    """Compare forward mode with reverse mode, and both ways of nesting them, exactly."""
    run, inputs = as_function(sample)
    outputs = run(*inputs) if inputs else ()
    outputs = [each for each in outputs if each.requires_grad]
    if not outputs:
        return
    gradient = functools.partial(tinytorch.autograd.grad, allow_unused=True)

    def only_differentiable(*given: Any) -> Any:
        return [each for each, first in zip(run(*given), run(*inputs), strict=True) if first.requires_grad]

    v, u = vectors(inputs, 1), vectors(outputs, 2)
    _, pushed = tangents(only_differentiable, inputs, v)
    pulled = gradient(outputs, inputs, u, create_graph=True)
    forward = total(pushed, u)
    reverse = total(pulled, v)
    np.testing.assert_allclose(forward.item(), reverse.item(), rtol=1e-9, atol=1e-9)
    # The derivative of <u, J v> by reverse over reverse, reverse over forward, and forward over reverse.
    if not reverse.requires_grad:
        return
    expected = gradient(reverse, inputs, retain_graph=True)
    found = gradient(forward, inputs) if forward.requires_grad else [None] * len(inputs)
    for want, have in zip(expected, found, strict=True):
        want, have = (0 if each is None else each.numpy() for each in (want, have))
        np.testing.assert_allclose(have, want, rtol=1e-9, atol=1e-9)

    def gradients(*given: Any) -> Any:
        found = gradient(only_differentiable(*given), given, u)
        return [tinytorch.zeros_like(x) if g is None else g for g, x in zip(found, given, strict=True)]

    w = vectors(inputs, 3)
    _, pushed = tangents(gradients, inputs, w)
    np.testing.assert_allclose(total(pushed, v).item(), total(expected, w).item(), rtol=1e-9, atol=1e-9)


@parametrize("sample", [each for each in SAMPLES if each.in_place], ids=str)
def test_in_place_form_gives_the_same(sample: Sample) -> None:
    expected, inputs = call(sample, tinytorch, requires_grad=True)
    args = [converted(arg, tinytorch, requires_grad=True) for arg in sample.args]
    kwargs = {key: converted(arg, tinytorch, requires_grad=True) for key, arg in sample.kwargs.items()}
    target = args[0].clone()  # a leaf that requires grad cannot be written to
    version = target._version
    method = getattr(target, f"{sample.name.rpartition('.')[2]}_")
    result = method(*args[1:], **kwargs)
    assert result is target
    assert target._version > version
    agree(target, expected.to(target.dtype), 0, 0)
    if expected.requires_grad:
        expected.sum().backward()
        target.sum().backward()
        for x, y in zip(inputs, tensors_in([*args, *kwargs.values()], tinytorch), strict=True):
            if x.grad is not None:
                agree(y.grad, x.grad, 1e-12, 1e-12)


@parametrize("sample", [each for each in DIFFERENTIABLE if each.in_place], ids=str)
def test_tangents_of_the_in_place_form(sample: Sample) -> None:
    run, inputs = as_function(sample)
    write, _ = as_function(sample, in_place=True)
    if inputs:
        v = vectors(inputs, 1)
        for expected, found in zip(*(tangents(each, inputs, v)[1] for each in (run, write)), strict=True):
            np.testing.assert_allclose(found.numpy(force=True), expected.numpy(force=True), rtol=1e-12)


# Complex numbers ----------------------------------------------------------------------------------

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


WITH_FLOATS = [each for each in SAMPLES if has_floats(each)]


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


@needs_oracle
@pytest.mark.filterwarnings("ignore")
@parametrize("kind", [np.complex128, np.complex64])
@parametrize("sample", WITH_FLOATS, ids=str)
def test_complex_numbers_agree_with_pytorch_or_are_refused(sample: Sample, kind: Any) -> None:
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
    mine, other = (parts(each, None) for each in (ours, theirs))
    assert len(mine) == len(other)
    for a, b in zip(mine, other, strict=True):
        if isinstance(b, (list, tuple)):
            _alike(a, b, rtol, atol)
        elif hasattr(b, "dtype"):
            assert str(a.dtype) == str(b.dtype)
            np.testing.assert_allclose(array_of(a), array_of(b), rtol=rtol, atol=atol)
        else:
            assert a == b


@pytest.mark.filterwarnings("ignore")
@parametrize("sample", [each for each in WITH_FLOATS if each.name in COMPLEX and each.gradcheck], ids=str)
def test_derivatives_by_complex_numbers(sample: Sample) -> None:
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


class Standin(np.ndarray):
    """An array of another device: ufuncs and NumPy's functions work by NumPy's protocols, and conversion raises."""

    def __array_finalize__(self, obj: Any) -> None:
        pass

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if "out" in kwargs:
            kwargs["out"] = tuple(bare(each) for each in kwargs["out"])
        return dressed(getattr(ufunc, method)(*map(bare, inputs), **{k: bare(v) for k, v in kwargs.items()}))

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return dressed(func(*map(bare, args), **{k: bare(v) for k, v in kwargs.items()}))

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("an array of another device was converted to NumPy's implicitly")


def bare(value: Any) -> Any:
    if isinstance(value, Standin):
        return value.view(np.ndarray)
    if isinstance(value, (list, tuple)):
        return type(value)(bare(each) for each in value)
    return value


def dressed(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = np.asarray(value)  # the device has no scalars, only 0-d arrays
    if isinstance(value, np.ndarray):
        return value.view(Standin)
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(dressed(each) for each in value)
    return value


def registered(cls: Any = OpNode) -> set[Any]:
    """Return all ops."""
    ops = {cls.op} if hasattr(cls, "op") else set()
    for each in cls.__subclasses__():
        if each.__module__.startswith("tinytorch"):
            ops |= registered(each)
    return ops


#: Ops that only in-place writes or random functions record; tests/autograd/test_writes.py tests them.
ELSEWHERE = {
    "_bernoulli_each", "_bincount", "_fill", "_normal_each", "_scatter_multiply", "fill", "floor_divide", "heaviside",
    "_MaxUnpool3D",  # tests/nn/test_edges.py
    "_triangular_solve", "old_cholesky",  # which warn: test_old_solvers in tests/ops/test_decompose.py
    "_geqrf", "_ldl", "_ldl_solve", "_only_r",  # their gradients raise an error, as PyTorch's
    "_corner_pick",  # gradients of gradients of maxima: tests/nn/test_pooling.py
    "_histogram", "_unique2", "_unique_dim", "_unique_runs",  # which have no derivative
    "_amax", "_amin",  # `max` and `min` inside of `vmap`: tests/ops/test_batching.py
    "_second", "_product",  # which refuses; and of NaN and infinities: tests/ops/test_out.py and test_statistics.py
    "_clone_in",  # memory formats: tests/ops/test_shape.py
    "_grouped_mm",  # which takes no float64: tests/ops/test_grouped_mm.py
    "quantized_linear",  # tests/nn/test_quantization.py
    "_without_data",  # tests/test_meta.py
    "_vdot", "polar", "view_as_complex",  # tests/ops/test_complex.py
    "_neg_view", "conj_physical",  # tests/ops/test_bits.py
    "_entries", "_multiply", "_sampled",  # tests/sparse
    "_by_given", "_ctc_grad", "_ctc_losses",  # see tests/nn/test_norm.py and test_losses_more.py
    "_beta_grad", "_binomial", "_dirichlet", "_gamma", "_gamma_grad", "_poisson",  # random
}  # fmt: skip


def nodes_below(tensors: list[Any], found: list[Any]) -> None:
    """Add the nodes of the tensors' graph to `found`."""
    stack = [each.grad_fn for each in tensors if each.grad_fn is not None]
    seen = {id(node) for node in found}
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen.add(id(node))
            found.append(node)
            stack += [each for each, _ in node.next_functions if each is not None]


def test_every_op_of_the_table_is_reached_by_a_sample() -> None:
    for name in ("sparse", "ops.quantized"):  # (they are loaded at their first use)
        importlib.import_module(f"tinytorch.{name}")
    seen: set[str] = set()
    for sample in [each for each in SAMPLES if each.backward]:
        run, inputs = as_function(sample)
        outputs = [each for each in (run(*inputs) if inputs else ()) if each.requires_grad]
        if not outputs:
            continue
        found: list[Any] = []
        nodes_below(outputs, found)
        ones = [tinytorch.ones_like(each).requires_grad_() for each in outputs]
        gradients = tinytorch.autograd.grad(outputs, inputs, ones, create_graph=True, allow_unused=True)
        gradients = [g for g in gradients if g is not None and g.requires_grad]
        nodes_below(gradients, found)
        if gradients:
            ones = [tinytorch.ones_like(each) for each in gradients]
            second = tinytorch.autograd.grad(gradients, inputs, ones, create_graph=True, allow_unused=True)
            nodes_below([g for g in second if g is not None], found)
        seen |= {node.op.name for node in found if isinstance(node, OpNode)}
    of_tests = {op for op in registered() if (getattr(op.kernel, "__module__", None) or "").startswith("tests.")}
    known = {op.name for op in registered() - of_tests if op.wants}
    missing, stale = known - seen - ELSEWHERE, ELSEWHERE - (known - seen)
    assert not missing, f"no sample reaches these ops: {sorted(missing)}"
    assert not stale, f"take these out of ELSEWHERE: {sorted(stale)}"


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # from the array class of the test, not from the package
@parametrize("sample", SAMPLES, ids=str)
def test_kernels_accept_arrays_of_another_device(sample: Sample) -> None:
    args = [converted(arg, tinytorch, lambda array: array.copy("K").view(Standin)) for arg in sample.args]
    kwargs = {
        key: converted(arg, tinytorch, lambda array: array.copy("K").view(Standin))
        for key, arg in sample.kwargs.items()
    }
    result = function(tinytorch, sample.name)(*args, **kwargs)
    for each in tensors_in(result, tinytorch):
        # (Methods of ndarray, such as `dot`, return scalars also for the derived class: so 0-d results may be plain.)
        assert isinstance(each._array, Standin) or each.ndim == 0, "the result came back on the CPU"
