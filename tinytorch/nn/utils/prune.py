"""Pruning: a mask sets elements of a parameter to 0."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.nn.modules.module import Module
from tinytorch.ops.create import ones_like, zeros_like
from tinytorch.ops.join import cat
from tinytorch.ops.random import rand, rand_like

__all__ = [
    "BasePruningMethod", "CustomFromMask", "Identity", "L1Unstructured", "LnStructured", "PruningContainer",
    "RandomStructured", "RandomUnstructured", "custom_from_mask", "global_unstructured", "identity", "is_pruned",
    "l1_unstructured", "ln_structured", "random_structured", "random_unstructured", "remove",
]  # fmt: skip


class BasePruningMethod:
    """The base of pruning methods; an instance is the forward pre-hook that applies the mask.

    A subclass defines `compute_mask` and `PRUNING_TYPE`, which selects the part of a tensor pruned before that
    `compute_mask` receives: "unstructured" (the remaining elements), "structured" (the remaining slices) or "global"
    (all elements).

    Example:
        >>> class Negative(torch.nn.utils.prune.BasePruningMethod):
        ...     PRUNING_TYPE = "unstructured"
        ...     def compute_mask(self, t, default_mask):
        ...         return default_mask * (t >= 0)
        >>> layer = torch.nn.Linear(3, 1)
        >>> layer.weight.data = torch.tensor([[0.1, -2.0, 1.0]])
        >>> _ = Negative.apply(layer, "weight")
        >>> layer.weight_mask
        tensor([[1., 0., 1.]])
    """

    PRUNING_TYPE: str
    _tensor_name: str

    def __call__(self, module: Any, inputs: Any) -> None:
        """Apply the mask."""
        setattr(module, self._tensor_name, self.apply_mask(module))

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask: 1 for the elements to keep, 0 for those to prune.

        Args:
            t: the importance of the elements.
            default_mask: the mask of earlier pruning.
        """
        raise NotImplementedError

    def apply_mask(self, module: Any) -> Tensor:
        """Return the tensor with its pruned elements set to 0."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        mask = getattr(module, self._tensor_name + "_mask")
        original = getattr(module, self._tensor_name + "_orig")
        return mask.to(dtype=original.dtype) * original

    @classmethod
    def apply(cls, module: Any, name: str, *args: Any, importance_scores: Tensor | None = None, **kwargs: Any) -> Any:
        """Prune a module's parameter: `<name>` becomes the product of `<name>_orig` and `<name>_mask`.

        `importance_scores`, of the parameter's shape, are by default the parameter; other arguments are those of the
        class. The result is the hook: a `PruningContainer` if the parameter was pruned before.
        """
        method: Any = cls(*args, **kwargs)
        method._tensor_name = name
        previous = [
            (key, hook)
            for key, hook in module._forward_pre_hooks.items()
            if isinstance(hook, BasePruningMethod) and hook._tensor_name == name
        ]
        if len(previous) > 1:
            raise AssertionError(
                f"Avoid adding multiple pruning hooks to the same tensor {name} of module {module}. Use a "
                "PruningContainer."
            )
        original = getattr(module, name)
        if importance_scores is None:
            importance_scores = original
        elif importance_scores.shape != original.shape:
            raise AssertionError(f"importance_scores should have the same shape as parameter {name} of {module}")
        if previous:
            key, hook = previous[0]
            del module._forward_pre_hooks[key]
            container: Any = hook if isinstance(hook, PruningContainer) else PruningContainer(hook)
            container.add_pruning_method(method)
            method = container
            default = getattr(module, name + "_mask").detach().clone()
        else:
            default = ones_like(original)
        mask = method.compute_mask(importance_scores, default_mask=default)
        if not previous:
            module.register_parameter(name + "_orig", module._parameters.pop(name))
        module.register_buffer(name + "_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None) -> Tensor:
        """Return a tensor pruned, without any module.

        Args:
            default_mask: the mask of earlier pruning; ones by default.
            importance_scores: the importance of the elements; by default the tensor.
        """
        if importance_scores is None:
            importance_scores = t
        elif importance_scores.shape != t.shape:
            raise AssertionError("importance_scores should have the same shape as tensor t")
        default = ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(importance_scores, default_mask=default)

    def remove(self, module: Any) -> None:
        """Make the pruned tensor the parameter again; pruned elements stay 0.

        Example:
            >>> from tinytorch.nn.utils import prune
            >>> layer = torch.nn.Linear(4, 1)
            >>> method = prune.L1Unstructured.apply(layer, "weight", amount=3)
            >>> method.remove(layer)
            >>> int((layer.weight == 0).sum())
            3
        """
        name = self._tensor_name
        if name is None:
            raise AssertionError(f"Module {module} has to be pruned before pruning can be removed")
        weight = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        original = module._parameters.pop(name + "_orig")
        original.data = weight.data
        del module._buffers[name + "_mask"]
        setattr(module, name, original)


class PruningContainer(BasePruningMethod):
    """Several pruning methods for one tensor, applied in order.

    Example:
        >>> prune = torch.nn.utils.prune
        >>> layer = torch.nn.Linear(4, 1)
        >>> _ = prune.l1_unstructured(layer, "weight", amount=1)
        >>> _ = prune.l1_unstructured(layer, "weight", amount=1)
        >>> (hook,) = layer._forward_pre_hooks.values()
        >>> type(hook).__name__, len(hook), layer.weight_mask.sum()
        ('PruningContainer', 2, tensor(2.))
    """

    def __init__(self, *args: Any) -> None:
        self._pruning_methods: tuple[Any, ...] = ()
        if args and not isinstance(args[0], Iterable):
            self._tensor_name = args[0]._tensor_name
            for method in args:
                self.add_pruning_method(method)
        elif len(args) == 1:
            self._pruning_methods = tuple(args[0])

    def add_pruning_method(self, method: Any) -> None:
        """Append a method for the same tensor."""
        if not isinstance(method, BasePruningMethod) and method is not None:
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and self._tensor_name != method._tensor_name:
            raise ValueError(
                "Can only add pruning methods acting on the parameter named "
                f"'{self._tensor_name}' to PruningContainer {self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Any:
        return iter(self._pruning_methods)

    def __getitem__(self, index: int) -> Any:
        return self._pruning_methods[index]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask after the last method."""
        method = self._pruning_methods[-1]
        mask = default_mask.to(dtype=t.dtype)
        if method.PRUNING_TYPE == "unstructured":
            index: Any = mask == 1
        elif method.PRUNING_TYPE == "structured":
            if not hasattr(method, "dim"):
                raise AttributeError(
                    "Pruning methods of PRUNING_TYPE 'structured' need to have the attribute `dim` defined."
                )
            dim = method.dim if method.dim >= 0 else t.dim() + method.dim
            if dim < 0:
                raise IndexError(f"Index is out of bounds for tensor with dimensions {t.dim()}")
            kept: list[Any] = [slice(None)] * t.dim()
            kept[dim] = (
                mask.sum([k for k in range(t.dim()) if k != dim]) != 0
            )  # (of a vector: whether any element is 1)
            index = tuple(kept)
        elif method.PRUNING_TYPE == "global":
            index = tuple([slice(None)] * t.dim())
        else:
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        new = method.compute_mask(t[index], default_mask=mask[index])
        out: Tensor = mask.clone()
        out[index] = new.to(dtype=out.dtype)
        return out


# Users' pruning methods call these under PyTorch's names.


def _validate_pruning_amount(amount: Any, tensor_size: int) -> None:
    if isinstance(amount, numbers.Integral) and int(amount) > tensor_size:
        raise ValueError(f"amount={amount} should be smaller than the number of parameters to prune={tensor_size}")


def _compute_nparams_toprune(amount: Any, tensor_size: int) -> int:
    """Return the number of elements to prune, given it or the fraction of `tensor_size`."""
    return amount if isinstance(amount, numbers.Integral) else round(amount * tensor_size)  # type: ignore[return-value]


def _validate_pruning_amount_init(amount: Any) -> None:
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if (isinstance(amount, numbers.Integral) and int(amount) < 0) or (
        not isinstance(amount, numbers.Integral) and not 0.0 <= float(amount) <= 1.0
    ):
        raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")


def _validate_structured_pruning(t: Tensor) -> None:
    if t.dim() <= 1:
        raise ValueError(
            "Structured pruning can only be applied to multidimensional tensors. Found tensor of shape "
            f"{t.shape} with {t.dim()} dims"
        )


def _validate_pruning_dim(t: Tensor, dim: int) -> None:
    if dim >= t.dim():
        raise IndexError(f"Invalid index {dim} for tensor of size {t.shape}")


def _compute_norm(t: Tensor, n: Any, dim: int) -> Tensor:
    axis = dim if dim >= 0 else t.dim() + dim
    return t.norm(n, [k for k in range(t.dim()) if k != axis])


class Identity(BasePruningMethod):
    """Prunes nothing.

    Example:
        >>> layer = torch.nn.Linear(3, 1)
        >>> _ = torch.nn.utils.prune.Identity.apply(layer, "weight")
        >>> layer.weight_mask
        tensor([[1., 1., 1.]])
    """

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the default mask."""
        return default_mask


class _Unstructured(BasePruningMethod):
    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: Any) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def _select(self, t: Tensor, count: int) -> Tensor:
        """Return the flat indices of `count` elements to prune."""
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask without the selected elements."""
        count = _compute_nparams_toprune(self.amount, t.nelement())
        _validate_pruning_amount(count, t.nelement())
        mask = default_mask.clone()
        if count:
            mask.view(-1)[self._select(t, count)] = 0
        return mask


class RandomUnstructured(_Unstructured):
    """Prunes random elements.

    `amount` is the number of elements to prune, or the fraction of those not pruned yet.

    Example:
        >>> method = torch.nn.utils.prune.RandomUnstructured(amount=0.5)
        >>> method.prune(torch.ones(6)).sum()
        tensor(3.)
    """

    def _select(self, t: Tensor, count: int) -> Tensor:
        return rand_like(t).view(-1).topk(count).indices


class L1Unstructured(_Unstructured):
    """Prunes the elements of the smallest magnitudes; `amount` as for `RandomUnstructured`.

    Example:
        >>> method = torch.nn.utils.prune.L1Unstructured(amount=1)
        >>> method.prune(torch.tensor([0.1, -2.0, 1.0]))
        tensor([ 0., -2.,  1.])
    """

    def _select(self, t: Tensor, count: int) -> Tensor:
        return t.abs().view(-1).topk(count, largest=False).indices


class _Structured(BasePruningMethod):
    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, dim: int = -1) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount
        self.dim = dim

    def _scores(self, t: Tensor, count: int) -> Tensor:
        """Return the importance of every slice along `dim`; `count` slices are to be pruned."""
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask without the slices of the lowest scores."""
        _validate_structured_pruning(t)
        _validate_pruning_dim(t, self.dim)
        size = t.shape[self.dim]
        count = _compute_nparams_toprune(self.amount, size)
        _validate_pruning_amount(count, size)
        scores = self._scores(t, count)
        if not count:
            return default_mask
        mask = zeros_like(t)
        kept: list[Any] = [slice(None)] * t.dim()
        kept[self.dim] = scores.topk(size - count).indices
        mask[tuple(kept)] = 1
        return mask * default_mask.to(dtype=mask.dtype)


class RandomStructured(_Structured):
    """Prunes random slices.

    `amount` is the number of slices along `dim` to prune, or the fraction of those not pruned yet.

    Example:
        >>> method = torch.nn.utils.prune.RandomStructured(amount=1, dim=0)
        >>> method.prune(torch.ones(2, 3)).sum()
        tensor(3.)
    """

    def _scores(self, t: Tensor, count: int) -> Tensor:
        return rand(t.shape[self.dim] if count else 0)  # (as in PyTorch, nothing is drawn if nothing is pruned)


class LnStructured(_Structured):
    """Prunes the slices of the smallest norms.

    The norm is the `n`-norm; other arguments as for `RandomStructured`.

    Example:
        >>> method = torch.nn.utils.prune.LnStructured(amount=1, n=2, dim=0)
        >>> method.prune(torch.tensor([[0.1, 0.2], [3.0, 4.0]]))
        tensor([[0., 0.],
                [3., 4.]])
    """

    def __init__(self, amount: Any, n: Any, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def _scores(self, t: Tensor, count: int) -> Tensor:
        return _compute_norm(t, self.n, self.dim)


class CustomFromMask(BasePruningMethod):
    """Prunes the elements where `mask` is 0.

    Example:
        >>> method = torch.nn.utils.prune.CustomFromMask(torch.tensor([1, 0, 1]))
        >>> method.prune(torch.ones(3))
        tensor([1., 0., 1.])
    """

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the product of both masks."""
        if default_mask.shape != self.mask.shape:
            raise AssertionError("mask shape must match default_mask shape")
        return default_mask * self.mask.to(dtype=default_mask.dtype)


def identity(module: Any, name: str) -> Any:
    """Prune nothing of a module's parameter, which gets a mask of ones; return the module.

    Example:
        >>> from tinytorch.nn.utils import prune
        >>> list(prune.identity(torch.nn.Linear(2, 3), "bias").bias_mask)
        [tensor(1.), tensor(1.), tensor(1.)]
    """
    Identity.apply(module, name)
    return module


def random_unstructured(module: Any, name: str, amount: Any) -> Any:
    """Prune random elements of a module's parameter; `amount` as for `RandomUnstructured`; return the module.

    Example:
        >>> layer = torch.nn.utils.prune.random_unstructured(torch.nn.Linear(2, 3), "weight", 2)
        >>> int((layer.weight_mask == 0).sum())
        2
    """
    RandomUnstructured.apply(module, name, amount=amount)
    return module


def l1_unstructured(module: Any, name: str, amount: Any, importance_scores: Tensor | None = None) -> Any:
    """Prune the elements of a module's parameter of the smallest magnitudes; return the module.

    Example:
        >>> layer = torch.nn.Linear(3, 1)
        >>> layer.weight.data = torch.tensor([[0.1, -2.0, 1.0]])
        >>> _ = torch.nn.utils.prune.l1_unstructured(layer, "weight", amount=1)
        >>> layer.weight.detach()
        tensor([[ 0., -2.,  1.]])
    """
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Any, name: str, amount: Any, dim: int) -> Any:
    """Prune random slices of a module's parameter; `amount` and `dim` as for `RandomStructured`; return the module.

    Example:
        >>> layer = torch.nn.Linear(4, 4)
        >>> _ = torch.nn.utils.prune.random_structured(layer, "weight", amount=2, dim=0)
        >>> layer.weight_mask.sum()
        tensor(8.)
    """
    RandomStructured.apply(module, name, amount=amount, dim=dim)
    return module


def ln_structured(
    module: Any, name: str, amount: Any, n: Any, dim: int, importance_scores: Tensor | None = None
) -> Any:
    """Prune the slices of a module's parameter of the smallest norms; return the module.

    Example:
        >>> layer = torch.nn.Linear(2, 2)
        >>> layer.weight.data = torch.tensor([[0.1, 0.2], [3.0, 4.0]])
        >>> _ = torch.nn.utils.prune.ln_structured(layer, "weight", amount=1, n=2, dim=0)
        >>> layer.weight.detach()
        tensor([[0., 0.],
                [3., 4.]])
    """
    LnStructured.apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Any, name: str, mask: Tensor) -> Any:
    """Prune the elements of a module's parameter where `mask` is 0; return the module.

    Example:
        >>> layer = torch.nn.Linear(3, 1)
        >>> _ = torch.nn.utils.prune.custom_from_mask(layer, "weight", torch.tensor([[1, 0, 1]]))
        >>> layer.weight_mask
        tensor([[1., 0., 1.]])
    """
    CustomFromMask.apply(module, name, mask=mask)
    return module


def global_unstructured(parameters: Any, pruning_method: Any, importance_scores: Any = None, **kwargs: Any) -> None:
    """Prune several parameters as if they were one tensor.

    The parameters are pairs of a module and a name, by which a dictionary may give `importance_scores`; the method is a
    class whose `PRUNING_TYPE` is "unstructured", and gets `kwargs`.

    Example:
        >>> from tinytorch.nn.utils import prune
        >>> a, b = torch.nn.Linear(2, 3), torch.nn.Linear(3, 2)
        >>> prune.global_unstructured([(a, "weight"), (b, "weight")], prune.L1Unstructured, amount=4)
        >>> int((a.weight == 0).sum() + (b.weight == 0).sum())
        4
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    pairs: list[tuple[Any, str]] = list(parameters)
    scores = {} if importance_scores is None else importance_scores
    if not isinstance(scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    relevance = cat([scores.get((module, name), getattr(module, name)).reshape(-1) for module, name in pairs])
    default = cat(
        [getattr(module, name + "_mask", ones_like(getattr(module, name))).reshape(-1) for module, name in pairs]
    )
    container = PruningContainer()
    container._tensor_name = "temp"
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    container.add_pruning_method(method)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            f'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method {pruning_method} of '
            f"type {method.PRUNING_TYPE}"
        )
    mask = container.compute_mask(relevance, default)
    begin = 0
    for module, name in pairs:
        shape = getattr(module, name).shape
        end = begin + shape.numel()
        custom_from_mask(module, name, mask=mask[begin:end].view(shape))
        begin = end


def remove(module: Any, name: str) -> Any:
    """Make the pruned parameter an ordinary one again, with zeros for pruned elements; return the module.

    Example:
        >>> layer = torch.nn.Linear(3, 1)
        >>> _ = torch.nn.utils.prune.l1_unstructured(layer, "weight", amount=1)
        >>> _ = torch.nn.utils.prune.remove(layer, "weight")
        >>> [name for name, _ in layer.named_parameters()], int((layer.weight == 0).sum())
        (['bias', 'weight'], 1)
    """
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")


def is_pruned(module: Module) -> bool:
    """Return whether a parameter of a module, or of one of its submodules, is pruned.

    Example:
        >>> torch.nn.utils.prune.is_pruned(torch.nn.Linear(2, 3))
        False
    """
    return any(isinstance(hook, BasePruningMethod) for m in module.modules() for hook in m._forward_pre_hooks.values())
