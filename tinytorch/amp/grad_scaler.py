"""`GradScaler`, dynamic loss scaling."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from tinytorch.autograd.grad_mode import no_grad
from tinytorch.core.tensor import Tensor
from tinytorch.core.warning import warn
from tinytorch.kernels import dtypes
from tinytorch.kernels.checks import refused
from tinytorch.ops.create import scalar_tensor
from tinytorch.ops.register import Builtin

__all__ = ["GradScaler"]


def _number(value: float) -> Tensor:
    number: Tensor = scalar_tensor(value, dtype=dtypes.float32)
    return number


# Steps of `GradScaler`, which scalers of other packages are made of -------------------------------


@Builtin
@no_grad()
def _amp_foreach_non_finite_check_and_unscale_(self: Any, found_inf: Tensor, inv_scale: Tensor) -> None:
    """Multiply gradients by `inv_scale` in place, and set `found_inf` to 1 if one is infinite or NaN.

    Args:
        self: a list of gradients.
        found_inf, inv_scale: of one element each.

    Example:
        >>> grads, found = [torch.tensor([8.0, float("inf")])], torch.zeros(1)
        >>> torch._amp_foreach_non_finite_check_and_unscale_(grads, found, torch.tensor(0.5))
        >>> grads, found
        ([tensor([4., inf])], tensor([1.]))
    """
    for name, one in (("found_inf", found_inf), ("inv_scale", inv_scale)):
        if one.numel() != 1:
            raise RuntimeError(f"{name} must be a 1-element tensor.")
        if one.dtype is not dtypes.float32:
            raise RuntimeError(f"{name} must be a float tensor.")
    factor = inv_scale.item()
    for each in self:
        if each.dtype.is_complex:
            raise refused("_amp_foreach_non_finite_check_and_unscale_cpu", each._array)
        if not each.isfinite().all():
            found_inf.fill_(1)
        if factor != 1:
            each.mul_(factor)


@Builtin
@no_grad()
def _amp_update_scale_(
    self: Tensor,
    growth_tracker: Tensor,
    found_inf: Tensor,
    scale_growth_factor: float,
    scale_backoff_factor: float,
    growth_interval: int,
) -> Tensor:
    """Update the scale of a `GradScaler` in place, and return it.

    Args:
        self: the scale; reduced if `found_inf` is not 0, increased after `growth_interval` calls without.
        growth_tracker: the number of these calls, int32.

    Example:
        >>> scale, tracker = torch.tensor(8.0), torch.tensor(0, dtype=torch.int32)
        >>> torch._amp_update_scale_(scale, tracker, torch.tensor(0.0), 2.0, 0.5, 1)
        tensor(16.)
    """
    if found_inf.item():
        growth_tracker.zero_()
        return self.fill_(self.item() * scale_backoff_factor)
    successes = growth_tracker.item() + 1
    if successes == growth_interval:
        with np.errstate(over="ignore"):
            grown = np.float32(self.item() * scale_growth_factor)
        if math.isfinite(grown):
            self.fill_(grown.item())
        successes = 0
    growth_tracker.fill_(successes)
    return self


# The scaler ---------------------------------------------------------------------------------------


class OptState(enum.Enum):
    """The progress of an optimizer since the last update."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


class GradScaler:
    """Scale a loss before `backward`, so that small gradients do not underflow, and unscale the gradients.

    A step with infinite or NaN gradients is skipped, and the scale reduced; after `growth_interval` successful steps
    the scale is increased. With "cuda", the default, it warns and is disabled, since there is no GPU.

    Args:
        growth_factor, backoff_factor: factors by which the scale is increased and reduced.

    Example:
        >>> weight = torch.nn.Parameter(torch.ones(1))
        >>> optimizer = torch.optim.SGD([weight], lr=0.5)
        >>> scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
        >>> scaler.scale(weight.sum()).backward()
        >>> weight.grad
        tensor([8.])
        >>> scaler.step(optimizer)
        >>> scaler.update()
        >>> weight.data
        tensor([0.5000])
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = device
        self._enabled = enabled
        if enabled and device == "cuda":
            warn("torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.", UserWarning)
            self._enabled = False
        if not self._enabled:
            return
        if not growth_factor > 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if not backoff_factor < 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale = init_scale
        self._init_growth_tracker = 0
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._scale: Tensor | None = None  # created on first use, as in PyTorch
        self._growth_tracker: Tensor | None = None
        self._stages: dict[int, OptState] = {}
        self._found: dict[int, bool] = {}

    def scale(self, outputs: Any) -> Any:
        """Return a tensor, or the tensors of an iterable, multiplied by the scale."""
        if not self._enabled:
            return outputs
        if self._scale is None:
            self._init_state()
        return self._multiply(outputs)

    def _init_state(self) -> None:
        self._scale = _number(self._init_scale)
        self._growth_tracker = scalar_tensor(self._init_growth_tracker, dtype=dtypes.int32)

    def _multiply(self, outputs: Any) -> Any:
        if isinstance(outputs, Tensor):
            return outputs * self._scale
        if isinstance(outputs, Iterable):
            scaled = [self._multiply(output) for output in outputs]
            return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else iter(scaled)
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def _check(self, name: str) -> float:
        if self._scale is None:
            raise AssertionError(
                f"Attempted {name} but _scale is None.  This may indicate your script did not use scaler.scale(loss "
                "or outputs) earlier in the iteration."
            )
        return float(self._scale._array.item())

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer's parameters by the scale; `step` does so if it was not called.

        Raises:
            RuntimeError: `unscale_` or `step` was already called since the last `update`.

        Example:
            >>> weight = torch.nn.Parameter(torch.ones(1))
            >>> optimizer = torch.optim.SGD([weight], lr=0.5)
            >>> scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
            >>> scaler.scale(weight.sum()).backward()
            >>> scaler.unscale_(optimizer)
            >>> weight.grad
            tensor([1.])
        """
        if not self._enabled:
            return
        scale, key = self._check("unscale_"), id(optimizer)
        stage = self._stages.get(key, OptState.READY)
        if stage == OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if stage == OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        gradients = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        if any(grad.dtype is dtypes.float16 for grad in gradients):
            raise ValueError("Attempting to unscale FP16 gradients.")
        if gradients:
            found = _number(0)
            _amp_foreach_non_finite_check_and_unscale_(gradients, found, _number(1.0 / scale))
            self._found[key] = bool(found.item())
        self._stages[key] = OptState.UNSCALED

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Call `optimizer.step(*args, **kwargs)` with unscaled gradients, or return None if they are not finite.

        Raises:
            RuntimeError: `step` was already called since the last `update`, or there is a closure.
            AssertionError: no parameter has a gradient.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check("step")
        key = id(optimizer)
        if self._stages.get(key) == OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if self._stages.get(key, OptState.READY) == OptState.READY:
            self.unscale_(optimizer)
        if key not in self._found:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        result = None if self._found[key] else optimizer.step(*args, **kwargs)
        self._stages[key] = OptState.STEPPED
        return result

    def update(self, new_scale: Any = None) -> None:
        """Adapt the scale after the steps of all optimizers, or set it to `new_scale`.

        Raises:
            AssertionError: no gradients were unscaled since the last update, or `new_scale` is not a single number.

        Example:
            >>> weight = torch.nn.Parameter(torch.ones(1))
            >>> optimizer = torch.optim.SGD([weight], lr=0.5)
            >>> scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
            >>> scaler.scale(weight.sum() * torch.inf).backward()
            >>> scaler.step(optimizer)
            >>> scaler.update()
            >>> weight.data, scaler.get_scale()
            (tensor([1.]), 2.0)
        """
        if not self._enabled:
            return
        self._check("update")
        assert self._scale is not None and self._growth_tracker is not None
        if new_scale is not None:
            if isinstance(new_scale, Tensor):
                single = new_scale.numel() == 1 and not new_scale.requires_grad
                new_scale = new_scale.item() if single else None
            if not isinstance(new_scale, float):
                raise AssertionError(
                    "new_scale should be a float or a 1-element torch.cuda.FloatTensor or torch.FloatTensor with "
                    "requires_grad=False."
                )
            self._scale.fill_(new_scale)
        else:
            if not self._found:
                raise AssertionError("No inf checks were recorded prior to update.")
            factors = self._growth_factor, self._backoff_factor, self._growth_interval
            found = _number(any(self._found.values()))
            _amp_update_scale_(self._scale, self._growth_tracker, found, *factors)
        self._stages.clear()
        self._found.clear()

    def get_scale(self) -> float:
        """Return the scale, or 1.0 if disabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else float(self._scale._array.item())

    def get_growth_factor(self) -> float:
        """Return the factor by which the scale is increased."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set the factor by which the scale is increased."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """Return the factor by which the scale is reduced."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set the factor by which the scale is reduced."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """Return the number of successful steps after which the scale is increased."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set the number of successful steps after which the scale is increased."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        """Return the number of successful steps since the last change of the scale."""
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else int(self._growth_tracker.item())

    def is_enabled(self) -> bool:
        """Return whether scaling is enabled."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """Return the scale and its parameters as a dict, which is empty if disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state returned by `state_dict`."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._scale is not None:
            self._init_state()
