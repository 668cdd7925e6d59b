"""Layers that normalise each channel: by statistics of the batch in training, by running ones in evaluation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tinytorch.core.tensor import Tensor
from tinytorch.kernels import dtypes
from tinytorch.nn import functional as F
from tinytorch.nn import init
from tinytorch.nn._distributed import lazy_names
from tinytorch.nn.modules._family import DimensionalLayer, redefining
from tinytorch.nn.modules.lazy import LazyModuleMixin
from tinytorch.nn.parameter import Parameter, UninitializedBuffer, UninitializedParameter
from tinytorch.ops.create import empty, ones, tensor, zeros

if TYPE_CHECKING:
    from tinytorch.distributed.sync_batchnorm import SyncBatchNorm as SyncBatchNorm

__all__ = [
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d",
    "SyncBatchNorm",
]  # fmt: skip
__getattr__, __dir__ = lazy_names(__name__, "SyncBatchNorm")


class _NormBase(DimensionalLayer):
    """The base of layers with running statistics: members, resetting, loading."""

    _redefined = ()

    _version = 2
    __constants__ = ["track_running_stats", "momentum", "eps", "num_features", "affine"]  # noqa: RUF012

    weight: Tensor | None
    bias: Tensor | None
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        for name, present in (("weight", affine), ("bias", affine and bias)):
            parameter = Parameter(empty(num_features, device=device, dtype=dtype)) if present else None
            self.register_parameter(name, parameter)
        buffers: tuple[Tensor | None, ...] = (None, None, None)
        if track_running_stats:
            buffers = (
                zeros(num_features, device=device, dtype=dtype),
                ones(num_features, device=device, dtype=dtype),
                tensor(0, dtype=dtypes.int64, device=device),
            )
        for name, buffer in zip(("running_mean", "running_var", "num_batches_tracked"), buffers, strict=True):
            self.register_buffer(name, buffer)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Reset the running mean to 0, the running variance to 1 and the number of batches to 0."""
        if self.track_running_stats:
            for buffer, value in ((self.running_mean, 0), (self.running_var, 1), (self.num_batches_tracked, 0)):
                if buffer is not None:
                    buffer.fill_(value)

    def reset_parameters(self) -> None:
        """Reset the running statistics, the weight to 1 and the bias to 0."""
        self.reset_running_stats()
        if self.affine:
            if self.weight is not None:
                init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        if not self._input_dims:
            raise NotImplementedError
        if input.dim() not in self._input_dims:
            expected = " or ".join(f"{n}D" for n in self._input_dims)
            raise ValueError(f"expected {expected} input (got {input.dim()}D input)")

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _convert_earlier(self, state_dict: Any, prefix: str, version: int | None, error_msgs: list[str]) -> None:
        key = f"{prefix}num_batches_tracked"
        if (version is None or version < 2) and self.track_running_stats and key not in state_dict:
            # Version 1 did not count batches.
            state_dict[key] = (
                tensor(0, dtype=dtypes.int64) if self.num_batches_tracked is None else self.num_batches_tracked
            )


@redefining("__init__")
class _BatchNorm(_NormBase):
    _example = """\
        >>> torch.nn.{name}(3)(torch.randn(2, 3, {4})).shape
        torch.Size([2, 3, {4}])
    """

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        momentum = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # the mean of all batches
                momentum = 1.0 / float(self.num_batches_tracked)
        use_batch_stats = self.training or (self.running_mean is None and self.running_var is None)
        mean, var = self.running_mean, self.running_var
        if self.training and not self.track_running_stats:
            mean = var = None
        return self._normalize(input, mean, var, use_batch_stats, momentum)

    def _normalize(self, input: Tensor, mean: Any, var: Any, use_batch_stats: bool, momentum: float) -> Tensor:
        return F.batch_norm(input, mean, var, self.weight, self.bias, use_batch_stats, momentum, self.eps)


class BatchNorm1d(_BatchNorm, dims=1):
    """(x - mean) / sqrt(variance + eps) * weight + bias per channel; see `nn.functional.batch_norm`.

    In training, mean and variance are those of the batch, and the running statistics are moved towards them; in
    evaluation the running statistics are used.

    `momentum` is the weight of the batch in the running statistics; None is for the mean over all batches. Without
    `track_running_stats` evaluation uses the statistics of the batch, too; `affine` is for a weight, and `bias`.

    Attributes:
        weight, bias: of shape `(num_features,)`, initially 1 and 0; or None.
        running_mean, running_var: of shape `(num_features,)`, initially 0 and 1; or None.
        num_batches_tracked: the number of batches in the running statistics.

    Shape: `(N, C)` or `(N, C, L)` -> the same.

    Example:
        >>> norm = torch.nn.BatchNorm1d(1)
        >>> norm(torch.tensor([[1.0], [3.0]])).detach()
        tensor([[-1.0000],
                [ 1.0000]])
        >>> norm.running_mean
        tensor([0.2000])
    """

    _input_dims = (2, 3)


class BatchNorm2d(_BatchNorm, dims=2):
    """`BatchNorm1d` for images, `(N, C, H, W)` -> the same."""

    _input_dims = (4,)


class BatchNorm3d(_BatchNorm, dims=3):
    """`BatchNorm1d` for volumes, `(N, C, D, H, W)` -> the same."""

    _input_dims = (5,)


class _LazyNormBase(LazyModuleMixin, _NormBase):
    """Makes a normalisation lazy: it takes `num_features` from the first input."""

    _example = """\
        >>> layer = torch.nn.{name}()
        >>> layer(torch.randn(2, 5, {3})).shape[1], layer.num_features
        (5, 5)
    """

    weight: Any
    bias: Any
    running_mean: Any
    running_var: Any

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        # Without parameters and buffers: their shapes are not known yet.
        super().__init__(0, eps, momentum, False, False, device, dtype, bias=bias)
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(device=device, dtype=dtype)
            if bias:
                self.bias = UninitializedParameter(device=device, dtype=dtype)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)
            self.num_batches_tracked = tensor(0, dtype=dtypes.int64, device=device)

    def reset_parameters(self) -> None:
        """Reset parameters and statistics, unless they have no shape yet."""
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Give the parameters and statistics the shape that matches `input`."""
        if self.has_uninitialized_params():
            self.num_features = input.shape[1]
            for member in (self.weight, self.bias, self.running_mean, self.running_var):
                if member is not None:
                    member.materialize((self.num_features,))
            self.reset_parameters()


class LazyBatchNorm1d(_LazyNormBase, _BatchNorm, dims=1, becomes=BatchNorm1d):
    """A `BatchNorm1d` that takes `num_features` from its first input; the other arguments are the same."""


class LazyBatchNorm2d(_LazyNormBase, _BatchNorm, dims=2, becomes=BatchNorm2d):
    """A `BatchNorm2d` that takes `num_features` from its first input; the other arguments are the same."""


class LazyBatchNorm3d(_LazyNormBase, _BatchNorm, dims=3, becomes=BatchNorm3d):
    """A `BatchNorm3d` that takes `num_features` from its first input; the other arguments are the same."""
