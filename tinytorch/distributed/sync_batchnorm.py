"""`torch.nn.SyncBatchNorm`: batch normalisation by the statistics of several processes' batches."""

from __future__ import annotations

from typing import Any

from tinytorch.autograd.grad_mode import no_grad
from tinytorch.core.tensor import Tensor
from tinytorch.distributed import _functions, groups
from tinytorch.nn.modules.batchnorm import _BatchNorm
from tinytorch.nn.modules.module import Module

__all__ = ["SyncBatchNorm"]


class SyncBatchNorm(_BatchNorm):
    """`BatchNorm1d` for any number of dimensions, in training by the statistics of several processes' batches.

    All processes have to call it, forward and backward; their batches may differ in size. Without a process group it
    works like `BatchNorm1d`.

    Shape:
        `(N, C, *)` -> the same.

    Example:
        >>> torch.nn.SyncBatchNorm(3)(torch.randn(2, 3, 4)).shape
        torch.Size([2, 3, 4])
    """

    __module__ = "tinytorch.nn.modules.batchnorm"  # its public place, from which it is pickled

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    def _check_non_zero_input_channels(self, input: Tensor) -> None:
        if input.size(1) == 0:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")

    def forward(self, input: Tensor) -> Tensor:
        """Return the normalised input; in training, update the running statistics."""
        self._check_input_dim(input)
        self._check_non_zero_input_channels(input)
        return super().forward(input)

    def _normalize(self, input: Tensor, mean: Any, var: Any, use_batch_stats: bool, momentum: float) -> Tensor:
        if use_batch_stats and self.training and groups.is_initialized():
            group = self.process_group or groups._get_default_group()
            if group.size() > 1:
                parameters = self.weight, self.bias, mean, var
                settings = self.eps, momentum, group, group.size()
                return _functions.SyncBatchNorm.apply(input, *parameters, *settings)
        return super()._normalize(input, mean, var, use_batch_stats, momentum)

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """Replace all `BatchNorm*d` layers of `module` by `SyncBatchNorm` layers with the same parameters.

        Example:
            >>> from tinytorch import nn
            >>> nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)))
            Sequential(
              (0): Linear(in_features=2, out_features=3, bias=True)
              (1): SyncBatchNorm(3, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
            )
        """
        converted = module
        if isinstance(module, _BatchNorm):
            settings = module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats
            converted = SyncBatchNorm(*settings, process_group, bias=module.bias is not None)
            if module.affine:
                with no_grad():
                    converted.weight = module.weight
                    converted.bias = module.bias
            for name in ("running_mean", "running_var", "num_batches_tracked", "training"):
                setattr(converted, name, getattr(module, name))
        for name, child in module.named_children():
            converted.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return converted
