"""Layers that normalise every channel of every sample by its mean and variance."""

from __future__ import annotations

from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.core.warning import warn
from tinytorch.nn import functional as F
from tinytorch.nn.modules.batchnorm import _LazyNormBase, _NormBase

__all__ = [
    "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
]  # fmt: skip


class _InstanceNorm(_NormBase):
    _example = """\
        >>> torch.nn.{name}(3)(torch.randn(2, 3, {4})).shape
        torch.Size([2, 3, {4}])
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _get_no_batch_dim(self) -> int:
        return self._input_dims[0]

    def _convert_earlier(self, state_dict: Any, prefix: str, version: int | None, error_msgs: list[str]) -> None:
        if version is None and not self.track_running_stats:
            # Running statistics were the default in early versions.
            names = ("running_mean", "running_var")
            unexpected = [prefix + name for name in names if prefix + name in state_dict]
            if unexpected:
                listed = " and ".join(f'"{key}"' for key in unexpected)
                error_msgs.append(
                    f"Unexpected running stats buffer(s) {listed} for {type(self).__name__} with "
                    "track_running_stats=False. If state_dict is a checkpoint saved before 0.4.0, this may be "
                    "expected because the class does not track running stats by default since 0.4.0. Please remove "
                    "these keys from state_dict. If the running stats are actually needed, instead set "
                    "track_running_stats=True to enable them."
                )
                for key in unexpected:
                    state_dict.pop(key)
        super()._convert_earlier(state_dict, prefix, version, error_msgs)

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        dim = input.dim() - self._get_no_batch_dim()
        if input.size(dim) != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={dim} to match num_features "
                    f"({self.num_features}), but got: {input.size(dim)}."
                )
            warn(
                f"input's size at dim={dim} does not match num_features. You can silence this warning by not passing "
                "in num_features, which is not used because affine=False"
            )
        if dim == 0:  # one sample without a batch dimension
            return self._normalize(input.unsqueeze(0)).squeeze(0)
        return self._normalize(input)

    def _normalize(self, input: Tensor) -> Tensor:
        use_input_stats = self.training or not self.track_running_stats
        momentum = 0.0 if self.momentum is None else self.momentum
        mean, var = self.running_mean, self.running_var
        return F.instance_norm(input, mean, var, self.weight, self.bias, use_input_stats, momentum, self.eps)


class InstanceNorm1d(_InstanceNorm, dims=1):
    """(x - mean) / sqrt(variance + eps) * weight + bias per channel and sample; see `nn.functional.instance_norm`.

    Shape: `(N, C, L)` or `(C, L)` -> the same. Arguments and attributes as for `BatchNorm1d`; without running
    statistics, evaluation uses those of the input.

    Example:
        >>> torch.nn.InstanceNorm1d(2)(torch.tensor([[[1.0, 3.0], [5.0, 5.0]]]))
        tensor([[[-1.0000,  1.0000],
                 [ 0.0000,  0.0000]]])
    """

    _input_dims = (2, 3)


class InstanceNorm2d(_InstanceNorm, dims=2):
    """`InstanceNorm1d` for images, `(N, C, H, W)` or `(C, H, W)` -> the same."""

    _input_dims = (3, 4)


class InstanceNorm3d(_InstanceNorm, dims=3):
    """`InstanceNorm1d` for volumes, `(N, C, D, H, W)` or `(C, D, H, W)` -> the same."""

    _input_dims = (4, 5)


class LazyInstanceNorm1d(_LazyNormBase, _InstanceNorm, dims=1, becomes=InstanceNorm1d):
    """An `InstanceNorm1d` that takes `num_features` from its first input.

    The other arguments are the same, but `affine` and `track_running_stats` are True by default.
    """


class LazyInstanceNorm2d(_LazyNormBase, _InstanceNorm, dims=2, becomes=InstanceNorm2d):
    """An `InstanceNorm2d` that takes `num_features` from its first input; the others as for `LazyInstanceNorm1d`."""


class LazyInstanceNorm3d(_LazyNormBase, _InstanceNorm, dims=3, becomes=InstanceNorm3d):
    """An `InstanceNorm3d` that takes `num_features` from its first input; the others as for `LazyInstanceNorm1d`."""
