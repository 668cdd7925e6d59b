"""Members of Tensor that are not ops: type and device queries, and those for other devices and layouts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tinytorch.core.layout import sparse_bsc, sparse_bsr, sparse_csc, sparse_csr
from tinytorch.core.mode import traced_as, without_bits
from tinytorch.core.supplied import declare_members, sparse
from tinytorch.core.tensor import Tensor
from tinytorch.core.warning import warn
from tinytorch.kernels import dtypes
from tinytorch.kernels import shape as kernels
from tinytorch.ops.create import blank, finished
from tinytorch.ops.memory import dlpack, dlpack_device, set_
from tinytorch.ops.overrides import _torch_function
from tinytorch.ops.register import public
from tinytorch.ops.shape import aliased
from tinytorch.ops.storage import Array, _typed_storage, is_storage
from tinytorch.ops.values import legacy_new

# Elementwise Python functions ---------------------------------------------------------------------


def _refuse_grad(self: Tensor, name: str) -> None:
    if self.requires_grad:
        raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.")


def _put(self: Tensor, values: Any) -> Tensor:
    array = self._array
    found = list(values)
    for each in found:
        if not isinstance(each, (int, float, np.generic)):
            raise TypeError(f"must be real number, not {type(each).__name__}")
    array[...] = np.array(found, dtype=array.dtype).reshape(array.shape)
    return self  # (PyTorch does not count this as a write)


@public("", method="apply_", traced="refused")
def apply_(self: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Replace each element by the result of a Python function of it; slow. RuntimeError if the tensor requires grad.

    Example:
        >>> torch.arange(3).apply_(lambda x: x + 1)
        tensor([1, 2, 3])
    """
    _refuse_grad(self, "apply_")
    return _put(self, map(callable, self._array.ravel().tolist()))


@public("", method="map_", traced="refused")
def map_(self: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Replace each element by the result of a Python function of it and the other tensor's element; slow.

    Example:
        >>> x = torch.tensor([1.0, 2.0])
        >>> x.map_(torch.tensor([3.0, 4.0]), lambda a, b: a * b)
        tensor([3., 8.])
    """
    _refuse_grad(self, "map_")
    return _mapped_with(self, "map_", callable, other=tensor)


@public("", method="map2_", traced="refused")
def map2_(self: Tensor, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
    """Replace each element by the result of a Python function of it and two other tensors' elements; slow.

    Example:
        >>> x = torch.tensor([1.0, 2.0])
        >>> x.map2_(torch.ones(2), torch.ones(2), lambda a, b, c: a + b + c)
        tensor([3., 4.])
    """
    _refuse_grad(self, "map2_")
    return _mapped_with(self, "map2_", callable, x=x, y=y)


def _mapped_with(self: Tensor, name: str, callable: Callable[..., Any], **others: Tensor) -> Tensor:
    columns = [self._array.ravel().tolist()]
    for argument, other in others.items():
        if other.dtype is not self.dtype:
            raise TypeError(f"{name}: expected {self.type()} for '{argument}' (got {other.type()})")
        expanded = kernels.expand(other._array, self._array.shape)
        columns.append(expanded.ravel().tolist())
    return _put(self, map(callable, *columns))


# Other members ------------------------------------------------------------------------------------


@public("", method="new", listed=False)
def new(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Return a tensor of this dtype from sizes, data, or another tensor (PyTorch's legacy constructor).

    Example:
        >>> torch.zeros(1, dtype=torch.int64).new([1, 2])
        tensor([1, 2])
    """
    kind = self.dtype
    if len(args) == 1 and is_storage(args[0]):
        return set_(blank((0,), None, kind), args[0])
    if not args and set(kwargs) == {"size"}:
        args, kwargs = tuple(kwargs["size"]), {}
    return legacy_new(Tensor, args, kwargs, kind)


@public("", method="module_load")
def module_load(self: Tensor, other: Tensor, assign: bool = False) -> Tensor:
    """Return the tensor by which `load_state_dict` replaces this one: `other` copied into it, or `other` itself."""
    return other.detach() if assign else self.copy_(other).detach()


@public(method=True)
def get_device(input: Tensor) -> int:
    """Return -1, PyTorch's device index for the CPU.

    Example:
        >>> torch.get_device(torch.ones(1))
        -1
    """
    return -1


@public("", method="as_subclass")
def as_subclass(self: Tensor, cls: Any) -> Any:
    """Return an instance of a subclass that shares this tensor's memory; gradients flow to this tensor.

    Example:
        >>> class Mine(torch.Tensor):
        ...     pass
        >>> type(torch.ones(2).as_subclass(Mine)).__name__
        'Mine'
    """
    if not isinstance(cls, type):
        raise TypeError(f"cls must be a type (got {type(cls).__name__})")
    if not issubclass(cls, Tensor):
        raise TypeError(
            "Creating a Tensor subclass from a class that does not inherit from Tensor is not possible. Make sure "
            "your class inherits from Tensor."
        )
    # (A conjugate or negative view is copied: its own class knows of its bits.)
    made: Tensor = aliased(without_bits(self), None)
    made.__class__ = cls
    return made


def _make_subclass(cls: Any, data: Tensor, require_grad: bool = False) -> Any:
    """Return a subclass instance that shares the memory of `data`, detached from its graph."""
    made = as_subclass(data.detach(), cls)
    made._view, made._edge, made._requires_grad = None, None, False
    return made.requires_grad_(require_grad)


@public(method=True)
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Return whether two tensors have the same shape.

    Example:
        >>> torch.is_same_size(torch.zeros(2, 3), torch.ones(2, 3))
        True
    """
    return bool(input._array.shape == other._array.shape)


@public(method=True)
def is_nonzero(input: Tensor) -> bool:
    """Return whether the single element is nonzero. RuntimeError unless there is exactly one.

    Example:
        >>> torch.is_nonzero(torch.tensor([0.0])), torch.is_nonzero(torch.tensor(2))
        (False, True)
    """
    return bool(input)


@public(method=True)
def is_distributed(input: Tensor) -> bool:
    """Return False: no tensor is distributed over processes.

    Example:
        >>> torch.is_distributed(torch.ones(1))
        False
    """
    return False


@public("", method="is_pinned")
def is_pinned(self: Tensor, device: Any = None) -> bool:
    """Return False: memory is never pinned without a GPU.

    Example:
        >>> torch.ones(2).is_pinned()
        False
    """
    return False


@public("", method="pin_memory")
def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """Raise RuntimeError, as PyTorch does without a GPU to pin for."""
    if self.is_meta:
        raise RuntimeError(f"cannot pin '{self.type()}' only dense CPU tensors can be pinned")
    raise RuntimeError("Cannot access accelerator device when none is available.")


@public("", method="to_dense")
def to_dense(self: Tensor, dtype: dtypes.dtype | None = None, *, masked_grad: bool | None = None) -> Tensor:
    """Return the tensor itself, which is dense; converted to `dtype` unless that is None.

    Example:
        >>> torch.ones(2).to_dense()
        tensor([1., 1.])
    """
    return self if dtype is None else self.to(dtype)


@public("", method="dequantize")
def dequantize(self: Tensor) -> Tensor:
    """Return the tensor in float32."""
    return self.to(dtypes.float32)


def contains(self: Tensor, element: Any) -> bool:
    """Return whether any element equals `element`, a number or broadcast tensor (`element in tensor`)."""
    if not isinstance(element, (Tensor, int, float, complex)):
        raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}.")
    return bool((self == element).any().item())


def array_wrap(self: Tensor, array: Array, context: Any = None, return_scalar: bool = False) -> Tensor:
    """Return the result of a NumPy function called on this tensor as a tensor (`Tensor.__array_wrap__`)."""
    array = np.asarray(array)
    return finished(array.astype(np.uint8) if array.dtype == np.bool_ else array)


def _raises(error: type[Exception], text: str, what: str) -> Any:
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        raise error(text)

    method.__doc__ = f"Raise {error.__name__}: {what}"
    return method


@traced_as("refused")
def _volatile(self: Tensor) -> bool:
    warn("volatile was removed (Variable.volatile is always False)")
    return False


def _cuda_array(self: Tensor) -> Any:
    raise AttributeError(
        f"Can't get __cuda_array_interface__ on non-CUDA tensor type: {self.type()} If CUDA data is required use "
        "tensor.cuda() to copy tensor to device memory."
    )


def const_data_ptr(self: Tensor) -> int:
    """Return the address of the first element, for reading."""
    return self.data_ptr()


def dense_dim(self: Tensor) -> int:
    """Return the number of dense dimensions: all."""
    return self._array.ndim


def sparse_dim(self: Tensor) -> int:
    """Return the number of sparse dimensions: none."""
    return 0


_ELSEWHERE = ("ipu", "maia", "mtia", "sparse_csr", "vulkan", "xla")
_SPARSE = "it is a strided tensor, not a sparse one."

#: Members of Tensor whose names differ from this module's, or that do not apply to strided CPU tensors.
declare_members(
    {
        "__array_wrap__": array_wrap,
        "__contains__": contains,
        "__cuda_array_interface__": property(_cuda_array),
        "__dlpack__": dlpack,
        "__dlpack_device__": dlpack_device,
        "__torch_function__": classmethod(_torch_function),
        "_make_subclass": staticmethod(_make_subclass),
        "_cdata": property(lambda self: id(self)),  # (programs compare it to identify tensors)
        "_typed_storage": _typed_storage,
        "const_data_ptr": const_data_ptr,
        "dense_dim": dense_dim,
        "sparse_dim": sparse_dim,
        "grad_dtype": property(lambda self: self.dtype),
        "name": property(lambda self: None),
        "volatile": property(_volatile),
        "xpu": _raises(AssertionError, "Torch not compiled with XPU enabled", "tensors live on the CPU."),
        "mtia": _raises(AssertionError, "Torch not compiled with MTIA enabled", "tensors live on the CPU."),
        "ipu": _raises(RuntimeError, "PyTorch is not linked with support for ipu devices", "tensors live on the CPU."),
        "record_stream": _raises(RuntimeError, "unknown parameter type", "there are no streams."),
        "values": _raises(RuntimeError, "values expected sparse tensor layout but got Strided", _SPARSE),
        "smm": _raises(RuntimeError, "tensor.sspaddmm(...) can only be called on sparse tensors", _SPARSE),
        "sspaddmm": _raises(RuntimeError, "tensor.sspaddmm(...) can only be called on sparse tensors", _SPARSE),
        "resize_as_sparse_": _raises(RuntimeError, "resize_as_sparse_ expects a sparse tensor", _SPARSE),
    }
)
declare_members({f"is_{kind}": property(lambda self: False) for kind in _ELSEWHERE})
declare_members(
    {
        name: _raises(RuntimeError, f"{name} expected sparse coordinate tensor layout but got Strided", _SPARSE)
        for name in ("coalesce", "indices", "is_coalesced")
    }
)
declare_members({
    name: _raises(
        RuntimeError, f"{name} expected sparse {which} compressed tensor layout but got Strided", _SPARSE
    )
    for name, which in (
        ("crow_indices", "row"), ("col_indices", "row"), ("ccol_indices", "column"), ("row_indices", "column"),
    )
})  # fmt: skip


def _not_a_layout(name: str) -> Any:
    message = f"{name}(): tinytorch has strided and sparse layouts"
    return _raises(NotImplementedError, message, "tinytorch does not have the layout.")


def to_sparse(
    self: Tensor, sparse_dim: int | None = None, *, layout: Any = None, blocksize: Any = None, dense_dim: Any = None
) -> Tensor:
    """Return the tensor in a sparse layout: its entries are the elements that are not 0.

    `layout` is `torch.sparse_coo`, of which `sparse_dim` is the number of sparse dimensions, the first ones, by default
    all; or `sparse_csr`, `sparse_csc`, `sparse_bsr` or `sparse_bsc`, of which `dense_dim` is the number of dense
    dimensions, the last ones, and `blocksize` the height and width of a block.

    Example:
        >>> torch.tensor([0.0, 3.0]).to_sparse()
        tensor(indices=tensor([[1]]),
               values=tensor([3.]),
               size=(2,), nnz=1, layout=torch.sparse_coo)
    """
    return sparse.sparsified(self, sparse_dim, layout=layout, blocksize=blocksize, dense_dim=dense_dim)


def to_sparse_coo(self: Tensor) -> Tensor:
    """Return the tensor in the layout `torch.sparse_coo`; see `to_sparse`."""
    return to_sparse(self)


def to_sparse_csr(self: Tensor, dense_dim: int | None = None) -> Tensor:
    """Return matrices in the layout `torch.sparse_csr`; see `to_sparse`."""
    return sparse.compressed_from_dense(self, sparse_csr, None, dense_dim)


def to_sparse_csc(self: Tensor, dense_dim: int | None = None) -> Tensor:
    """Return matrices in the layout `torch.sparse_csc`; see `to_sparse`."""
    return sparse.compressed_from_dense(self, sparse_csc, None, dense_dim)


def to_sparse_bsr(self: Tensor, blocksize: Any, dense_dim: int | None = None) -> Tensor:
    """Return matrices in the layout `torch.sparse_bsr`; see `to_sparse`."""
    return sparse.compressed_from_dense(self, sparse_bsr, blocksize, dense_dim)


def to_sparse_bsc(self: Tensor, blocksize: Any, dense_dim: int | None = None) -> Tensor:
    """Return matrices in the layout `torch.sparse_bsc`; see `to_sparse`."""
    return sparse.compressed_from_dense(self, sparse_bsc, blocksize, dense_dim)


def sparse_mask(self: Tensor, mask: Tensor) -> Tensor:
    """Return the elements at the entries of a sparse tensor, as a sparse tensor.

    Example:
        >>> mask = torch.tensor([0.0, 3.0]).to_sparse()
        >>> torch.tensor([5.0, 7.0]).sparse_mask(mask).values()
        tensor([7.])
    """
    return sparse.of_sparse("sparse_mask", (self, mask), {})


def _of_other_layouts(name: str) -> Any:
    message = f"Could not run 'aten::{name}' with arguments from the 'CPU' backend."
    return _raises(NotImplementedError, message, "PyTorch has it for other tensors than strided ones only.")


declare_members({"to_sparse": to_sparse, "sparse_mask": sparse_mask, "to_mkldnn": _not_a_layout("to_mkldnn")})
declare_members(
    {
        "to_sparse_bsc": to_sparse_bsc, "to_sparse_bsr": to_sparse_bsr, "to_sparse_coo": to_sparse_coo,
        "to_sparse_csc": to_sparse_csc, "to_sparse_csr": to_sparse_csr,
    },
    listed=False,
)  # fmt: skip
declare_members({
    name: _of_other_layouts(name)
    for name in (
        "_indices", "_nnz", "_values", "int_repr", "q_per_channel_axis", "q_per_channel_scales",
        "q_per_channel_zero_points", "q_scale", "q_zero_point", "qscheme", "sparse_resize_",
        "sparse_resize_and_clear_",
    )
})  # fmt: skip
declare_members({"to_padded_tensor": _of_other_layouts("to_padded_tensor")}, listed=False)
declare_members(
    {
        "reinforce": _raises(
            RuntimeError, "reinforce() was removed. Use torch.distributions instead.", "PyTorch removed it."
        )
    },
    listed=False,
)


def typename(obj: Any, /) -> str:
    """Return a tensor's type ("torch.FloatTensor"), or the qualified name of another object or its class.

    Example:
        >>> torch.typename(torch.ones(1))
        'torch.FloatTensor'
    """
    if isinstance(obj, Tensor):
        return str(obj.type())
    named = obj if hasattr(obj, "__qualname__") else type(obj)
    module = getattr(named, "__module__", None)
    return named.__qualname__ if module in (None, "builtins") else f"{module}.{named.__qualname__}"
