"""`Optimizer`: groups of parameters, their state, and the step over them.

An optimizer of this package is two small methods: `_new_state`, what is kept for one parameter, and
`_update`, which changes one parameter in place. Everything else stands here once. An optimizer
written for PyTorch, which overrides `step`, works as well.
"""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from copy import deepcopy
from itertools import chain
from typing import Any, ClassVar

import numpy as np

from tinytorch.autograd.grad_mode import enable_grad
from tinytorch.autograd.hooks import RemovableHandle
from tinytorch.autograd.profiler import record_function
from tinytorch.core.mode import local
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.kernels.dtypes import float32, float64, get_default_dtype
from tinytorch.kernels.optim import blocks
from tinytorch.optim._plan import Plan

__all__ = ["Optimizer", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook"]

#: What an optimizer takes: parameters, named parameters, or dicts that describe groups of them.
Params = Iterable[Tensor] | Iterable[tuple[str, Tensor]] | Iterable[dict[str, Any]]

#: Options that most optimizers got after their first checkpoints, and what these meant.
LATER: dict[str, Any] = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}


class _Required:
    def __repr__(self) -> str:
        return "<required parameter>"


#: As a default: an option that every group has to give.
required: Any = _Required()

_step_pre_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
_step_post_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()


def _register(
    hooks: OrderedDict[int, Callable[..., Any]], hook: Callable[..., Any], first: bool = False
) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if first:
        hooks.move_to_end(handle.id, last=False)
    return handle


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Return a handle to `hook(optimizer, args, kwargs)`, called before every optimizer's step.

    The hook returns None, or a tuple of new `(args, kwargs)`.

    Example:
        >>> from tinytorch.optim.optimizer import register_optimizer_step_pre_hook
        >>> handle = register_optimizer_step_pre_hook(lambda optimizer, args, kwargs: None)
        >>> handle.remove()
    """
    return _register(_step_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Return a handle to `hook(optimizer, args, kwargs)`, called after every optimizer's step.

    Example:
        >>> from tinytorch.optim.optimizer import register_optimizer_step_post_hook
        >>> handle = register_optimizer_step_post_hook(lambda optimizer, args, kwargs: None)
        >>> handle.remove()
    """
    return _register(_step_post_hooks, hook)


def _shown(name: str) -> Any:
    """Return a context that a profile, if one is on, shows under a name."""
    return nullcontext() if local.state.modes is None else record_function(name)


def _with_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """Return `step` with the hooks called around it."""

    @functools.wraps(step)
    def hooked(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        if type(self).step is not hooked or "_optimizer_step_pre_hooks" not in self.__dict__:
            # Reached through `super().step()`: the hooks run around the outer step, once. Or there are none, since
            # the class does not call `Optimizer.__init__`: some that wrap another optimizer do not.
            return step(self, *args, **kwargs)
        args = (self, *args)
        for hook in (*_step_pre_hooks.values(), *self._optimizer_step_pre_hooks.values()):
            result = hook(self, args, kwargs)
            if result is not None:
                if not (isinstance(result, tuple) and len(result) == 2):
                    raise RuntimeError(
                        f"{step} must return None or a tuple of (new_args, new_kwargs), but got {result}."
                    )
                args, kwargs = result
        with _shown(f"Optimizer.step#{type(self).__name__}.step"):
            out = step(*args, **kwargs)
        for hook in (*self._optimizer_step_post_hooks.values(), *_step_post_hooks.values()):
            hook(self, args, kwargs)
        return out

    return hooked


class Optimizer:
    """The base of all optimizers: holds the parameters in groups and the state kept for each.

    To write one, give `_update` and, if it keeps something, `_new_state`; or override `step`, as in
    PyTorch. `_recorded` is `_update` once more, in operations that record, for `differentiable=True`.

    Args:
        params: an iterable of parameters, of pairs `(name, parameter)`, or of dicts. A dict describes a group: its
            parameters under "params", beside options that differ from `defaults`. The order must be the same in every
            run, for it is what a saved state refers to.
        defaults: the options, by name, of groups that do not give their own.

    Attributes:
        param_groups: a list of dicts: "params" (a list of tensors), the options, and "param_names" if names were given.
        state: what is kept for a parameter, a dict, by parameter.
        defaults: as given.

    Raises:
        TypeError: `params` is a tensor, or holds something that is not one.
        ValueError: there are no parameters, one is not a leaf, or one is in two groups.

    Example:
        >>> class Descent(torch.optim.Optimizer):
        ...     def __init__(self, params, lr):
        ...         super().__init__(params, {"lr": lr})
        ...     def _update(self, p, g, state, group):
        ...         p -= group["lr"] * g
        >>> w = torch.ones(2, requires_grad=True)
        >>> optimizer = Descent([w], lr=0.5)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w
        tensor([0., 0.], requires_grad=True)
    """

    #: Options that checkpoints from before their time lack, and what these meant.
    _options_added_later: ClassVar[dict[str, Any]] = {}
    #: Names of the numbers (not buffers) among what is kept for a parameter, each a 0-d tensor.
    _counts: ClassVar[tuple[str, ...]] = ()
    #: Whether `_update` treats every element by itself, and all that is kept for a parameter is
    #: `_counts` and buffers of its shape: then small parameters are updated as one.
    _elementwise: ClassVar[bool] = False

    param_groups: list[dict[str, Any]]
    state: defaultdict[Any, dict[Any, Any]]
    defaults: dict[str, Any]
    _optimizer_step_pre_hooks: OrderedDict[int, Callable[..., Any]]
    _optimizer_step_post_hooks: OrderedDict[int, Callable[..., Any]]
    _optimizer_state_dict_pre_hooks: OrderedDict[int, Callable[..., Any]]
    _optimizer_state_dict_post_hooks: OrderedDict[int, Callable[..., Any]]
    _optimizer_load_state_dict_pre_hooks: OrderedDict[int, Callable[..., Any]]
    _optimizer_load_state_dict_post_hooks: OrderedDict[int, Callable[..., Any]]
    _plans: dict[int, Plan]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not {"_update", "_new_state"}.isdisjoint(cls.__dict__):
            # What a subclass does otherwise, it need not do element by element.
            cls._elementwise = cls.__dict__.get("_elementwise", False)
        if "step" in cls.__dict__:
            cls.step = _with_hooks(cls.__dict__["step"])  # type: ignore[method-assign]

    def __init__(self, params: Params, defaults: dict[str, Any]) -> None:
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, "
                f"but got {_type_name(params)}: put it in a list"
            )
        self.defaults = defaults
        self._set_up()
        self.state = defaultdict(dict)
        self.param_groups = []

        groups: list[Any] = list(params)
        if not groups:
            raise ValueError(
                "optimizer got an empty parameter list (a generator such as model.parameters() "
                "is empty after its first use)"
            )
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def _patch_step_function(self) -> None:
        """Do nothing: a class's step gets its hooks where the class is defined.

        Optimizers around another one, which do not call `__init__`, call this, as PyTorch's needs it.
        """

    def _set_up(self) -> None:
        """Make what neither a pickle nor a checkpoint holds, where it is not there yet."""
        for stage in ("step", "state_dict", "load_state_dict"):
            for when in ("pre", "post"):
                self.__dict__.setdefault(f"_optimizer_{stage}_{when}_hooks", OrderedDict())
        self._plans = {}

    def __getstate__(self) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in ("defaults", "state", "param_groups")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._set_up()
        self.defaults.setdefault("differentiable", False)  # groups added from now on have it, too
        for group in self.param_groups:
            for option, meaning in self._options_added_later.items():
                group.setdefault(option, meaning)
        for kept in self.state.values():
            for name in self._counts:
                if name in kept and not isinstance(kept[name], Tensor):
                    kept[name] = count(float(kept[name]))  # a number in checkpoints of old

    def __repr__(self) -> str:
        text = f"{type(self).__name__} ("
        for i, group in enumerate(self.param_groups):
            text += f"\nParameter Group {i}\n"
            text += "".join(f"    {key}: {group[key]}\n" for key in sorted(group) if key != "params")
        return f"{text})"

    # The step -------------------------------------------------------------------------------------

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient; return the closure's loss, or None.

        The closure computes the loss anew, calls `backward` on it and returns it.

        Example:
            >>> w = torch.ones(2, requires_grad=True)
            >>> optimizer = torch.optim.SGD([w], lr=0.1)
            >>> w.sum().backward()
            >>> optimizer.step()
            >>> w
            tensor([0.9000, 0.9000], requires_grad=True)
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        if self.defaults.get("differentiable"):
            self._step_recorded()
            return loss
        for number, group in enumerate(self.param_groups):
            params = group["params"]
            if group.get("capturable"):
                _check_capturable(group)
            if self._elementwise and len(params) > 1:
                plan = self._plans.get(number)
                if plan is None or not plan.fits(params):
                    plan = self._plans[number] = self._plan(group)
                params = plan.carry_out(self.state, self._update, group)
            for p in params:
                grad = p.grad
                if grad is None:
                    continue
                state = self.state.get(p) or self._new_state(p, group)
                self._update(p._array, grad._array, state, group)
                p._bump()
                if state:
                    self.state[p] = state
        return loss

    def _plan(self, group: dict[str, Any]) -> Plan:
        """Return how to update the parameters of a group, with an entry in `state` for each."""
        for p in group["params"]:
            if p._grad is not None and not self.state.get(p):
                state = self._new_state(p, group)
                if state:
                    self.state[p] = state
        return Plan(group["params"], self.state, self._counts)

    def _step_recorded(self) -> None:
        """Update the parameters by recorded operations, so that gradients flow through the step."""
        for group in self.param_groups:
            if group.get("capturable"):
                _check_capturable(group)
            for p in group["params"]:
                grad = p.grad
                if grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state.update(self._new_state(p, group))
                if "step" in state:
                    state["step"]._array += 1
                with enable_grad():
                    # Of a copy: backward finds what was saved of it as it was.
                    start, direction = _pulled(p.clone(), grad, group)
                    p.copy_(self._recorded(start, direction, state, group))

    def _recorded(self, p: Tensor, g: Tensor, state: dict[str, Any], group: dict[str, Any]) -> Tensor:
        """Return what `_update` makes of a parameter, by operations that record; `state` gets new tensors.

        The step is counted already, `g` is the direction after `maximize` and weight decay.
        """
        raise NotImplementedError(f"{type(self).__name__} has no step that can be differentiated")

    def _new_state(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """Return what is kept for `p` from its first step on; nothing if not overridden."""
        return {}

    def _update(self, p: Any, g: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        """Change the parameter's array `p` in place, given the array `g` of its gradient."""
        raise NotImplementedError(
            f"{type(self).__name__} has no step: override step(self, closure=None), "
            "or _update(self, p, g, state, group)"
        )

    def _blocks(self, *arrays: Any, scratch: int, group: dict[str, Any] | None = None) -> Iterator[tuple[Any, ...]]:
        """Yield matching pieces of `arrays`, each time with `scratch` free arrays of their shape.

        The pieces are views: what is written into them is written into the arrays. With a `group` the first two are a
        parameter and its gradient, and `maximize` and weight decay are done: in place of the gradient comes the
        direction to go down in, which is the first free array where it is not the gradient itself.
        """
        return blocks(*arrays, scratch=scratch, pull=(1, 1, 0) if group is None else pull(group))

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters.

        Args:
            set_to_none: set `grad` to None, which frees its memory and lets `step` skip a parameter
                that gets none; False fills it with zeros.

        Example:
            >>> w = torch.ones(2, requires_grad=True)
            >>> optimizer = torch.optim.SGD([w], lr=0.1)
            >>> w.sum().backward()
            >>> optimizer.zero_grad()
            >>> print(w.grad)
            None
        """
        for group in self.param_groups:
            for p in group["params"]:
                if set_to_none:
                    p.grad = None
                elif p.grad is not None:
                    if p.grad.grad_fn is not None:
                        p.grad.detach_()
                    else:
                        p.grad.requires_grad_(False)
                    p.grad.zero_()

    # Groups ---------------------------------------------------------------------------------------

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters, such as layers that are trained from now on.

        Args:
            param_group: a dict: "params", a parameter or a list of parameters (or of pairs of name and parameter), and
                the options that differ from the defaults. It becomes the group: the other options are entered in it.

        Raises:
            TypeError: `param_group` is no dict, its "params" are a set (which has no order), or
                hold something that is not a tensor.
            ValueError: a parameter is not a leaf or is in another group, a required option is
                missing, or some parameters have names and others have none.

        Example:
            >>> a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
            >>> optimizer = torch.optim.SGD([a], lr=0.1)
            >>> optimizer.add_param_group({"params": b, "lr": 0.01})
            >>> [group["lr"] for group in optimizer.param_groups]
            [0.1, 0.01]
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        given = param_group["params"]
        if isinstance(given, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the "
                "ordering of tensors in sets will change between runs. Please use a list instead."
            )
        given = [given] if isinstance(given, Tensor) else list(given)
        params = [entry[1] if isinstance(entry, tuple) else entry for entry in given]
        names = [entry[0] for entry in given if isinstance(entry, tuple)]
        if names and len(names) != len(params):
            raise ValueError("all optimizer params should be with/without names. Some param names are missing")
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {_type_name(p)}")
            if not (self.defaults.get("differentiable") or p.is_leaf or p.retains_grad):
                raise ValueError(
                    "can't optimize a non-leaf Tensor: it is computed from others "
                    "(detach() it and require its gradient, or optimize what it is computed from)"
                )

        param_group["params"] = params
        if names:
            param_group["param_names"] = names
        for option, default in self.defaults.items():
            if default is required and option not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {option}")
            param_group.setdefault(option, default)

        seen = {id(p) for p in params}
        if len(seen) != len(params):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; "
                "each is updated once per entry, and in future this will cause an error",
                stacklevel=3,
            )
        for group in self.param_groups:
            if ("param_names" in group) != ("param_names" in param_group):
                which = "with" if "param_names" in param_group else "without"
                raise ValueError(
                    "all optimizer param groups should be with/without names. "
                    f"cannot add param group {which} names to the optimizer"
                )
            if any(id(p) in seen for p in group["params"]):
                raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)

    # Saving and loading ---------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return the state and the groups as a dict of plain data, laid out as in PyTorch.

        A number stands for each parameter, counted through the groups: "state" maps it to what is kept for it, and
        "params" of each of the "param_groups" lists the numbers. The tensors are those of the optimizer, not copies.

        Example:
            >>> optimizer = torch.optim.SGD([torch.ones(2, requires_grad=True)], lr=0.1)
            >>> state = optimizer.state_dict()
            >>> state["state"], state["param_groups"][0]["lr"], state["param_groups"][0]["params"]
            ({}, 0.1, [0])
        """
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        numbers: dict[int, int] = {}
        for i, p in enumerate(chain.from_iterable(g["params"] for g in self.param_groups)):
            numbers.setdefault(id(p), i)
        groups = []
        for group in self.param_groups:
            packed = {option: value for option, value in group.items() if option != "params"}
            packed["params"] = [numbers[id(p)] for p in group["params"]]
            groups.append(packed)
        state = {numbers[id(key)] if isinstance(key, Tensor) else key: kept for key, kept in self.state.items()}
        result: dict[str, Any] = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            result = _or(hook(self, result), result)
        return result

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` returned, here or in PyTorch.

        Tensors are converted to the dtype of their parameter, except "step". Those that need no conversion are taken
        over themselves, not copied: the steps that follow change them. Names of parameters are not compared.

        Args:
            state_dict: "state" and "param_groups", as `state_dict` returns them. `copy.deepcopy` it
                to keep it as it is.

        Raises:
            ValueError: its groups are not as many, or not as long, as those of the optimizer.
            KeyError: "state" or "param_groups" is missing.

        Example:
            >>> w = torch.ones(2, requires_grad=True)
            >>> saved = torch.optim.SGD([w], lr=0.25).state_dict()
            >>> optimizer = torch.optim.SGD([w], lr=0.1)
            >>> optimizer.load_state_dict(saved)
            >>> optimizer.param_groups[0]["lr"]
            0.25
        """
        state_dict = dict(state_dict)
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            state_dict = _or(hook(self, state_dict), state_dict)

        groups = self.param_groups
        saved_groups = deepcopy(state_dict["param_groups"])
        if len(groups) != len(saved_groups):
            raise ValueError(
                "loaded state dict has a different number of parameter groups: "
                f"{len(saved_groups)}, and the optimizer has {len(groups)}"
            )
        for i, (group, saved) in enumerate(zip(groups, saved_groups, strict=True)):
            if len(group["params"]) != len(saved["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group that doesn't match the size of optimizer's group: "
                    f"group {i} has {len(saved['params'])} parameters, and the optimizer's {len(group['params'])}"
                )

        params = {
            number: p
            for group, saved in zip(groups, saved_groups, strict=True)
            for number, p in zip(saved["params"], group["params"], strict=True)
        }
        state: defaultdict[Any, dict[Any, Any]] = defaultdict(dict)
        for number, kept in state_dict["state"].items():
            if number in params:
                state[params[number]] = _fitted(params[number], kept)
            else:
                state[number] = kept
        for group, saved in zip(groups, saved_groups, strict=True):
            saved["params"] = group["params"]
            if "param_names" in group:
                saved.setdefault("param_names", group["param_names"])
        self.__setstate__({"state": state, "param_groups": saved_groups})

        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    # Hooks ----------------------------------------------------------------------------------------

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Return a handle to `hook(optimizer, args, kwargs)`, called before each step.

        The hook returns None, or a tuple of new `(args, kwargs)` of the step; the first of `args` is the optimizer.

        Example:
            >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
            >>> handle = optimizer.register_step_pre_hook(lambda optimizer, args, kwargs: print("before"))
            >>> optimizer.step()
            before
        """
        return _register(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Return a handle to `hook(optimizer, args, kwargs)`, called after each step.

        Example:
            >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
            >>> handle = optimizer.register_step_post_hook(lambda optimizer, args, kwargs: print("after"))
            >>> optimizer.step()
            after
        """
        return _register(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable[[Optimizer], None], prepend: bool = False) -> RemovableHandle:
        """Return a handle to `hook(optimizer)`, called at the start of `state_dict`; `prepend` puts it first.

        Example:
            >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
            >>> handle = optimizer.register_state_dict_pre_hook(lambda optimizer: print("saving"))
            >>> _ = optimizer.state_dict()
            saving
        """
        return _register(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(
        self, hook: Callable[[Optimizer, dict[str, Any]], dict[str, Any] | None], prepend: bool = False
    ) -> RemovableHandle:
        """Return a handle to `hook(optimizer, state_dict)`, called at the end of `state_dict`.

        The hook may change the dict or return another. `prepend` puts it first.

        Example:
            >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
            >>> def noted(optimizer, state):
            ...     state["epoch"] = 3
            >>> handle = optimizer.register_state_dict_post_hook(noted)
            >>> optimizer.state_dict()["epoch"]
            3
        """
        return _register(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Callable[[Optimizer, dict[str, Any]], dict[str, Any] | None], prepend: bool = False
    ) -> RemovableHandle:
        """Return a handle to `hook(optimizer, state_dict)`, called at the start of loading.

        It gets a shallow copy of the dict and may return another. `prepend` puts it first.

        Example:
            >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
            >>> handle = optimizer.register_load_state_dict_pre_hook(lambda optimizer, state: print(list(state)))
            >>> optimizer.load_state_dict(optimizer.state_dict())
            ['state', 'param_groups']
        """
        return _register(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Callable[[Optimizer], None], prepend: bool = False
    ) -> RemovableHandle:
        """Return a handle to `hook(optimizer)`, called at the end of `load_state_dict`; `prepend` puts it first.

        Example:
            >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
            >>> handle = optimizer.register_load_state_dict_post_hook(lambda optimizer: print("loaded"))
            >>> optimizer.load_state_dict(optimizer.state_dict())
            loaded
        """
        return _register(self._optimizer_load_state_dict_post_hooks, hook, prepend)


Optimizer.step = _with_hooks(Optimizer.step)  # type: ignore[method-assign]


def of_group(group: dict[str, Any], *names: str) -> list[Any]:
    """Return options of a group as factors: numbers as they are, tensors with no dimensions."""
    return [v.reshape(()) if isinstance(v, Tensor) else v for v in (group[n] for n in names)]


def pull(group: dict[str, Any]) -> tuple[float, float, float]:
    """Return what `kernels.optim` calls so: `maximize` and the weight decay of a group."""
    sign, weight_decay = -1.0 if group["maximize"] else 1.0, float(group["weight_decay"])
    if group.get("decoupled_weight_decay"):
        return sign, 1 - float(group["lr"]) * weight_decay, 0.0
    return sign, 1.0, weight_decay


def _pulled(p: Tensor, g: Tensor, group: dict[str, Any]) -> Any:
    """Return parameter and gradient after `maximize` and weight decay, by operations that record."""
    if group.get("maximize"):
        g = -g
    if group.get("weight_decay", 0) != 0:
        lr, weight_decay = of_group(group, "lr", "weight_decay")
        if group.get("decoupled_weight_decay"):
            return p * (1 - lr * weight_decay), g
        g = g + p * weight_decay
    return p, g


def averages(g: Tensor, state: dict[str, Any], beta1: Any, beta2: Any) -> tuple[Tensor, Tensor]:
    """Enter a gradient in the averages of it and of its square, by operations that record."""
    m, v = state["exp_avg"], state["exp_avg_sq"]
    m = state["exp_avg"] = m + (g - m) * (1 - beta1)
    v = state["exp_avg_sq"] = v * beta2 + g * g * (1 - beta2)
    return m, v


def _or(result: Any, otherwise: Any) -> Any:
    return otherwise if result is None else result


def _type_name(value: Any) -> str:
    """Return the type of `value` as PyTorch's messages name it: int, numpy.ndarray."""
    if isinstance(value, Tensor):
        return str(value.type())
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def _fitted(p: Tensor, value: Any, key: Any = None) -> Any:
    """Return a loaded `value` with its tensors of the dtype and device of `p`, the same where they are."""
    if isinstance(value, Tensor):
        # A count of steps is no part of the arithmetic: in half precision it would stop at 2048.
        if key == "step":
            return value
        return value.to(dtype=p.dtype if p.is_floating_point() else value.dtype, device=p.device)
    if isinstance(value, dict):
        return {k: _fitted(p, v, k) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_fitted(p, v) for v in value)
    return value


def count(value: float) -> Tensor:
    """Return a number as PyTorch keeps it in states: a 0-d tensor of floating-point type."""
    kind = float64 if get_default_dtype() is float64 else float32
    return wrap(np.array(value, kind.numpy))


def begun(p: Tensor, *names: str) -> dict[str, Any]:
    """Return what is kept for a parameter before its first step: the count of steps, and buffers of zeros."""
    return {"step": count(0.0), **{name: zeros(p) for name in names}}


def zeros(p: Tensor) -> Tensor:
    """Return a buffer like a parameter, of zeros."""
    return wrap(np.zeros_like(p._array))


#: What PyTorch's messages call an option, if not by its name.
_WORDS = {"lr": "learning rate", "eps": "epsilon value"}


def check(**options: Any) -> None:
    """Raise PyTorch's ValueError for the first option out of its range: none is negative, betas are below 1."""
    for name, value in options.items():
        if name == "betas":
            check_betas(value)
            continue
        if name == "lr":
            check_one_element(name, value)
        if not value >= 0:  # nor is it not a number
            raise ValueError(f"Invalid {_WORDS.get(name, f'{name} value')}: {value}")


def chosen(arguments: dict[str, Any], names: str) -> dict[str, Any]:
    """Return the options `names` of an optimizer, in the order that PyTorch has them in, out of its arguments.

    Raises:
        RuntimeError: two of them exclude each other.
    """
    options = {name: arguments[name] for name in names.split()}
    if options.get("fused"):
        if options["differentiable"]:
            raise RuntimeError("`fused` does not support `differentiable`")
        if options["foreach"]:
            raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
    return options


def check_betas(betas: Any) -> None:
    """Raise PyTorch's ValueError for a factor of an average that is not in [0, 1)."""
    for i in range(2):
        check_one_element(f"betas[{i}]", betas[i])
        if not 0 <= betas[i] < 1:
            raise ValueError(f"Invalid beta parameter at index {i}: {betas[i]}")


def _check_capturable(group: dict[str, Any]) -> None:
    """Raise PyTorch's AssertionError for a group to be updated with the option for graphs on accelerators."""
    if not group.get("fused") and any(p.grad is not None for p in group["params"]):
        raise AssertionError(
            "If capturable=True, params and state_steps must be on supported devices, "
            "which are accelerators: on a CPU leave it False"
        )


def check_one_element(words: str, value: Any) -> None:
    """Raise PyTorch's ValueError if `value` is a tensor that holds not just one number."""
    if isinstance(value, Tensor) and value.numel() != 1:
        raise ValueError(f"Tensor {words} must be 1-element")
