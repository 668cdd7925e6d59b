"""`Optimizer`: parameter groups, the state of each parameter, and the step.

An optimizer of this package implements two methods: `_new_state` creates the state of a parameter, and `_update`
changes a parameter in place, by a kernel of `kernels/optim.py`. Everything else is in the base class. Optimizers
written for PyTorch, which override `step`, work as well.
"""

from __future__ import annotations

import functools
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any, ClassVar

import numpy as np

from tinytorch.autograd.grad_mode import enable_grad
from tinytorch.autograd.hooks import RemovableHandle
from tinytorch.autograd.profiler import record_function
from tinytorch.core import native
from tinytorch.core.layout import strided
from tinytorch.core.mode import local, short
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.core.warning import warn
from tinytorch.kernels import complex as complexes
from tinytorch.kernels import dtypes
from tinytorch.kernels.dtypes import float32, float64, get_default_dtype
from tinytorch.kernels.silence import quiet
from tinytorch.nn.modules._hooks import _register
from tinytorch.ops.complex import view_as_complex, view_as_real
from tinytorch.optim.recorded import Tensors

__all__ = ["Optimizer", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook"]

#: Parameters, named parameters, or dicts that describe parameter groups.
Params = Iterable[Tensor] | Iterable[tuple[str, Tensor]] | Iterable[dict[str, Any]]

#: Options that PyTorch added to most optimizers later, and the values that older checkpoints imply.
LATER: dict[str, Any] = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}


class _Required:
    def __repr__(self) -> str:
        return "<required parameter>"


#: The default of an option that every group must specify.
required: Any = _Required()

_step_pre_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
_step_post_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()


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


def _with_hooks(step: Callable[..., Any]) -> Callable[..., Any]:

    @functools.wraps(step)
    def hooked(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        if type(self).step is not hooked or "_optimizer_step_pre_hooks" not in self.__dict__:
            # Called through `super().step()`: the hooks run once, around the outer step. Or the class has no hooks,
            # since it wraps another optimizer and does not call `Optimizer.__init__`.
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
        if local.state.modes is None:
            out = step(*args, **kwargs)
        else:
            with record_function(f"Optimizer.step#{type(self).__name__}.step"):  # for a profiler
                out = step(*args, **kwargs)
        for hook in (*self._optimizer_step_post_hooks.values(), *_step_post_hooks.values()):
            hook(self, args, kwargs)
        return out

    return hooked


class Optimizer:
    """Base class of optimizers, which holds the parameter groups and the state of each parameter.

    A subclass implements `_update` and, if it has state, `_new_state`; or it overrides `step`, as in
    PyTorch. `_recorded` is a differentiable version of `_update`, for `differentiable=True`.

    `params` is an iterable of parameters, of pairs `(name, parameter)`, or of dicts. A dict describes a group: its
    parameters under "params", and options that differ from `defaults`. The order must be the same in every run, since a
    saved state refers to parameters by position. `param_groups` lists the groups, with all options (and "param_names"
    if there are names); `state` has a dict for each parameter.

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

    #: Options that older checkpoints lack, and the values that these imply.
    _options_added_later: ClassVar[dict[str, Any]] = {}
    #: Keys of scalars in a parameter's state, which are 0-d tensors; the others are buffers.
    _counts: ClassVar[tuple[str, ...]] = ()
    #: Whether the kernel of `_update` is elementwise, and a parameter's state consists of `_counts` and buffers of its
    #: shape: then parameters are updated together.
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

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not {"_update", "_new_state"}.isdisjoint(cls.__dict__):
            # An overridden method need not be elementwise.
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
        """Do nothing: `__init_subclass__` wraps `step` with its hooks.

        Optimizers that wrap another one, and do not call `__init__`, call this method, which PyTorch requires.
        """

    def _set_up(self) -> None:
        """Create the attributes that are not part of pickles and checkpoints, if missing."""
        for stage in ("step", "state_dict", "load_state_dict"):
            for when in ("pre", "post"):
                self.__dict__.setdefault(f"_optimizer_{stage}_{when}_hooks", OrderedDict())

    def __getstate__(self) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in ("defaults", "state", "param_groups")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._set_up()
        self.defaults.setdefault("differentiable", False)  # for groups added later
        for group in self.param_groups:
            for option, value in self._options_added_later.items():
                group.setdefault(option, value)
        for entries in self.state.values():
            for name in self._counts:
                if name in entries and not isinstance(entries[name], Tensor):
                    entries[name] = scalar(float(entries[name]))  # a Python number in old checkpoints

    def __repr__(self) -> str:
        text = f"{type(self).__name__} ("
        for i, group in enumerate(self.param_groups):
            text += f"\nParameter Group {i}\n"
            text += "".join(f"    {key}: {group[key]}\n" for key in sorted(group) if key != "params")
        return f"{text})"

    # The step -------------------------------------------------------------------------------------

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient; return the closure's loss, or None.

        The closure recomputes the loss, calls `backward` on it and returns it.

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
        update, state_of = self._update, self.state.get
        for group in self.param_groups:
            if group.get("capturable"):
                _check_capturable(group)
            params = [p for p in group["params"] if p.grad is not None]
            if self._elementwise and len(params) > 1:
                params = self._update_together(params, group)
            for p in params:
                grad, known = p.grad, state_of(p)
                state = known or self._new_state(p, group)
                if (grad._receives is None and p._receives is None) or p.layout is strided is grad.layout:
                    update(p._array, grad._array, state, group)
                    p._bump()
                else:
                    self._update_sparse(p, grad, state, group)
                if state and state is not known:
                    self.state[p] = state
        return loss

    @native.declared
    @short("update_together")
    def _update_together(self, params: list[Tensor], group: dict[str, Any]) -> list[Tensor]:
        """Update the parameters by one call of the kernel, or of several that agree; return those that are left."""
        gradients: list[Any] = [p.grad for p in params]
        if any([x._receives is not None for x in (*gradients, *params)]):
            sparse: list[Tensor] = []
            dense: list[Tensor] = []
            for p, g in zip(params, gradients, strict=True):
                (dense if p.layout is strided is g.layout else sparse).append(p)
            if sparse:  # (they come first: most optimizers refuse them, before anything is updated)
                return sparse + (self._update_together(dense, group) if len(dense) > 1 else dense)
        states = [self.state.get(p) or {} for p in params]
        first, counts = states[0], [name for name in self._counts if name in states[0]]
        try:
            arrays: list[Any] = [p._array for p in params]
            slopes = [g._array for g in gradients]
            lists: dict[str, Any] = {name: [state[name]._array for state in states] for name in first}
        except (AttributeError, KeyError):  # a new state
            return params
        numbers = [[array.item() for array in lists[name]] for name in counts]
        kinds = [array.dtype for array in arrays]
        if len(set(kinds)) > 1 or any(len(set(each)) > 1 for each in numbers):
            agreeing: dict[Any, list[Tensor]] = {}
            for p, *key in zip(params, kinds, *numbers, strict=True):
                agreeing.setdefault(tuple(key), []).append(p)
            alike = [self._update_together(each, group) if len(each) > 1 else each for each in agreeing.values()]
            return list(chain.from_iterable(alike))
        if kinds[0].kind == "c" or any(len(state) != len(first) for state in states) or len(set(params)) < len(params):
            return params
        if not first and self._new_state(params[0], group):
            return params
        state = {**lists, **{name: lists[name][0].copy() for name in counts}}
        try:
            self._update.on_arrays(arrays, slopes, state, group)  # type: ignore[attr-defined]
        except KeyError:  # a buffer begins with this step
            return params
        for name in counts:
            for array in lists[name]:
                array[...] = state[name]
        for p in params:
            p._bump()
        return []

    def _step_recorded(self) -> None:
        """Update the parameters by differentiable operations, so that gradients flow through the step."""
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
                with enable_grad():
                    # A clone, so that backward finds the saved parameter unchanged.
                    if p.is_complex():
                        self._record_pairs(p, grad, state, group)
                    else:
                        p.copy_(self._recorded(p.clone(), grad, state, group))

    def _record_pairs(self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """Update a complex parameter by differentiable operations on pairs of real numbers."""
        pairs = {key: _pairs(value) for key, value in state.items()}
        of_numbers = {key for key, value in state.items() if value is not None and value is pairs[key]}
        p.copy_(view_as_complex(self._recorded(view_as_real(p.clone()), view_as_real(grad), pairs, group)))
        for key, value in pairs.items():
            state[key] = value if key in of_numbers or value is None else view_as_complex(value)

    def _recorded(self, p: Tensor, g: Tensor, state: dict[str, Any], group: dict[str, Any]) -> Tensor:
        """Return the updated parameter, computed by differentiable operations; `state` gets new tensors."""
        kernel = getattr(self._update, "kernel", None)
        if kernel is None:
            raise NotImplementedError(f"{type(self).__name__} has no step that can be differentiated")
        return kernel(p, g, state, group, Tensors)

    def _new_state(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """Return the state of `p` before its first step, by default an empty one."""
        return {}

    def _update(self, p: Any, g: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        """Update the array `p` of a parameter in place, from the array `g` of its gradient; `state` holds tensors."""
        raise NotImplementedError(
            f"{type(self).__name__} has no step: override step(self, closure=None), "
            "or _update(self, p, g, state, group)"
        )

    def _update_sparse(self, p: Tensor, g: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """Update a parameter in place, from a sparse gradient.

        Raises:
            RuntimeError: the optimizer does not support sparse gradients.
        """
        raise RuntimeError(f"{type(self).__name__} does not support sparse gradients")

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients of all parameters.

        None frees their memory and lets `step` skip parameters without a new gradient; with `set_to_none=False` they
        are filled with zeros.

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
        """Add a parameter group, such as the layers to be unfrozen.

        The dict has "params", a parameter or a list of parameters (or of pairs of name and parameter), and the options
        that differ from the defaults. It becomes the group, and gets the other options.

        Example:
            >>> a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
            >>> optimizer = torch.optim.SGD([a], lr=0.1)
            >>> optimizer.add_param_group({"params": b, "lr": 0.01})
            >>> [group["lr"] for group in optimizer.param_groups]
            [0.1, 0.01]
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        entries = param_group["params"]
        if isinstance(entries, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the "
                "ordering of tensors in sets will change between runs. Please use a list instead."
            )
        entries = [entries] if isinstance(entries, Tensor) else list(entries)
        params = [entry[1] if isinstance(entry, tuple) else entry for entry in entries]
        names = [entry[0] for entry in entries if isinstance(entry, tuple)]
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
            warn(
                "optimizer contains a parameter group with duplicate parameters; "
                "each is updated once per entry, and in future this will cause an error"
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
        """Return the state and the parameter groups as a dict with PyTorch's layout.

        Parameters are numbered through all groups: "state" maps these numbers to states, and "params" of each of the
        "param_groups" lists them. The tensors are those of the optimizer, not copies.

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
        state = {numbers[id(key)] if isinstance(key, Tensor) else key: entries for key, entries in self.state.items()}
        result: dict[str, Any] = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            result = _or(hook(self, result), result)
        return result

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state returned by `state_dict` of this package or of PyTorch.

        Tensors are converted to the dtype of their parameter, except "step". Tensors that need no conversion are not
        copied: later steps change them. Names of parameters are not compared.

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
        for number, entries in state_dict["state"].items():
            if number in params:
                state[params[number]] = _converted(params[number], entries)
            else:
                state[number] = entries
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


def by_kernel(kernel: Callable[[Any, Any, dict[str, Any], dict[str, Any]], None]) -> Callable[..., None]:
    """Return the method `_update` of a step that is a kernel: it takes the arrays of the state, by name.

    What the kernel adds to the state, a buffer that begins with the first gradient, becomes a tensor. The attribute
    `kernel` of the method is the kernel. A complex parameter is updated as pairs of real numbers.
    """
    call = quiet(kernel)

    def _update(self: Optimizer, p: Any, g: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        arrays: dict[str, Any] = {}
        for name, x in state.items():  # (a comprehension is a call more)
            if isinstance(x, Tensor):
                arrays[name] = x._array
        known = len(arrays)
        if p.dtype.kind == "c":
            _on_pairs(call, p, g, arrays, group)
        else:
            call(p, g, arrays, group)
        if len(arrays) != known:
            state.update({name: wrap(arrays[name]) for name in list(arrays)[known:]})

    _update.kernel, _update.on_arrays = kernel, quiet(kernel)  # type: ignore[attr-defined]
    return _update


def _on_pairs(kernel: Callable[..., None], p: Any, g: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
    """Call the kernel of a step of a complex parameter, gradient and state as pairs of real numbers."""
    if group.get("fused"):
        raise RuntimeError(
            "`fused=True` requires all the params to be floating point Tensors of supported devices: ['cpu'] but "
            f"{dtypes.from_numpy_dtype(p.dtype)} and cpu"
        )
    pairs = {name: complexes.reals(x) for name, x in state.items()}
    kernel(complexes.view_as_real(p), complexes.view_as_real(g), pairs, group)
    state.update({name: complexes.view_as_complex(x) for name, x in pairs.items() if name not in state})


def _pairs(x: Any) -> Any:
    """Return a complex tensor as pairs of real numbers, anything else unchanged."""
    return view_as_real(x) if isinstance(x, Tensor) and x.is_complex() else x


def _or(result: Any, otherwise: Any) -> Any:
    return otherwise if result is None else result


def _type_name(value: Any) -> str:
    """Return the type of `value` as PyTorch's messages name it: int, numpy.ndarray."""
    if isinstance(value, Tensor):
        return str(value.type())
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def _converted(p: Tensor, value: Any, key: Any = None) -> Any:
    """Return a loaded `value` with its tensors converted to the dtype and device of `p`."""
    if isinstance(value, Tensor):
        # A step count in half precision would stop at 2048.
        if key == "step":
            return value
        return value.to(dtype=p.dtype if p.is_floating_point() else value.dtype, device=p.device)
    if isinstance(value, dict):
        return {k: _converted(p, v, k) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_converted(p, v) for v in value)
    return value


def scalar(value: float) -> Tensor:
    """Return a number as PyTorch stores it in optimizer states: as a 0-d floating-point tensor."""
    kind = float64 if get_default_dtype() is float64 else float32
    return wrap(np.array(value, kind.numpy))


def initial_state(p: Tensor, *names: str, **numbers: float) -> dict[str, Any]:
    """Return the state of a parameter before its first step: the step count, other numbers, and buffers of zeros."""
    counts = {name: scalar(value) for name, value in {"step": 0.0, **numbers}.items()}
    return counts | {name: zeros_like(p) for name in names}


def zeros_like(p: Tensor) -> Tensor:
    """Return a buffer of zeros with the shape and dtype of a parameter."""
    return wrap(np.zeros_like(p._array))


#: Options that PyTorch's messages do not call by their names.
_WORDS = {"lr": "learning rate", "eps": "epsilon value"}


def check(**options: Any) -> None:
    """Raise PyTorch's ValueError for the first negative option, or beta outside of [0, 1)."""
    for name, value in options.items():
        if name == "betas":
            check_betas(value)
            continue
        if name == "lr":
            check_one_element(name, value)
        if not value >= 0:  # negative or NaN
            raise ValueError(f"Invalid {_WORDS.get(name, f'{name} value')}: {value}")


def pick(arguments: dict[str, Any], names: str) -> dict[str, Any]:
    """Return the entries `names` of an optimizer's arguments, in PyTorch's order of options.

    Raises:
        RuntimeError: two options exclude each other.
    """
    options = {name: arguments[name] for name in names.split()}
    if options.get("fused"):
        if options["differentiable"]:
            raise RuntimeError("`fused` does not support `differentiable`")
        if options["foreach"]:
            raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
    return options


def check_betas(betas: Any) -> None:
    """Raise PyTorch's ValueError for a beta that is not in [0, 1)."""
    for i in range(2):
        check_one_element(f"betas[{i}]", betas[i])
        if not 0 <= betas[i] < 1:
            raise ValueError(f"Invalid beta parameter at index {i}: {betas[i]}")


def _check_capturable(group: dict[str, Any]) -> None:
    """Raise PyTorch's AssertionError if a group with `capturable`, an option for accelerators, has gradients."""
    if not group.get("fused") and any(p.grad is not None for p in group["params"]):
        raise AssertionError(
            "If capturable=True, params and state_steps must be on supported devices, "
            "which are accelerators: on a CPU leave it False"
        )


def check_one_element(words: str, value: Any) -> None:
    """Raise PyTorch's ValueError if `value` is a tensor that does not have exactly one element."""
    if isinstance(value, Tensor) and value.numel() != 1:
        raise ValueError(f"Tensor {words} must be 1-element")
