"""`Module`, the base of all models: what it holds, how it is called, saved and loaded."""

from __future__ import annotations

import functools
import inspect
import warnings
import weakref
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Self

from tinytorch.autograd.grad_mode import no_grad
from tinytorch.autograd.hooks import RemovableHandle
from tinytorch.core import dtypes
from tinytorch.core.device import as_device
from tinytorch.core.graph import Within
from tinytorch.core.tensor import Tensor
from tinytorch.nn.modules import _conversion
from tinytorch.nn.modules._backward_hooks import BackwardHooks
from tinytorch.nn.parameter import Buffer, Parameter
from tinytorch.ops.create import empty_like
from tinytorch.ops.members import typename

__all__ = [
    "Module", "register_module_backward_hook", "register_module_buffer_registration_hook",
    "register_module_forward_hook", "register_module_forward_pre_hook",
    "register_module_full_backward_hook", "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook", "register_module_parameter_registration_hook",
]  # fmt: skip

Hook = Callable[..., Any]

_EXTRA_STATE_KEY_SUFFIX = "_extra_state"


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """What `load_state_dict` returns: the keys that were missing, and those that nothing took."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


class _WrappedHook:
    """A hook that gets its module first, and holds it weakly: the module holds the hook."""

    def __init__(self, hook: Hook, module: Module | None = None) -> None:
        self.hook = hook
        functools.update_wrapper(self, hook)
        self.with_module = module is not None
        self.module = weakref.ref(module) if module is not None else None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.module is None:
            return self.hook(*args, **kwargs)
        module = self.module()
        if module is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args, **kwargs)

    def __getstate__(self) -> dict[str, Any]:
        return {"hook": self.hook, "module": None if self.module is None else self.module()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["hook"], state.get("module"))  # type: ignore[misc]


# Hooks of all modules -----------------------------------------------------------------------------

_global_buffer_registration_hooks: OrderedDict[int, Hook] = OrderedDict()
_global_module_registration_hooks: OrderedDict[int, Hook] = OrderedDict()
_global_parameter_registration_hooks: OrderedDict[int, Hook] = OrderedDict()
_global_forward_pre_hooks: OrderedDict[int, Hook] = OrderedDict()
_global_forward_hooks: OrderedDict[int, Hook] = OrderedDict()
_global_forward_hooks_with_kwargs: OrderedDict[int, bool] = OrderedDict()
_global_forward_hooks_always_called: OrderedDict[int, bool] = OrderedDict()
_global_backward_pre_hooks: OrderedDict[int, Hook] = OrderedDict()
_global_backward_hooks: OrderedDict[int, Hook] = OrderedDict()
_global_is_full_backward_hook: bool | None = None


def _register(
    hooks: OrderedDict[int, Hook], hook: Hook, prepend: bool = False, **marks: tuple[OrderedDict[int, bool], bool]
) -> RemovableHandle:
    """Enter `hook` and return its handle.

    Each mark is a table of hooks, and whether this one goes into it.
    """
    handle = RemovableHandle(hooks, extra_dict=[table for table, _ in marks.values()])
    hooks[handle.id] = hook
    for table, wanted in marks.values():
        if wanted:
            table[handle.id] = True
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def register_module_buffer_registration_hook(hook: Hook) -> RemovableHandle:
    """Run `hook(module, name, buffer)` before any module registers one; a result replaces it.

    Example:
        >>> from tinytorch.nn.modules.module import register_module_buffer_registration_hook
        >>> handle = register_module_buffer_registration_hook(lambda module, name, buffer: print(name))
        >>> torch.nn.Module().register_buffer("mean", torch.zeros(1))
        mean
        >>> handle.remove()
    """
    return _register(_global_buffer_registration_hooks, hook)


def register_module_module_registration_hook(hook: Hook) -> RemovableHandle:
    """Run `hook(module, name, submodule)` before any module registers one; a result replaces it.

    Example:
        >>> from tinytorch.nn.modules.module import register_module_module_registration_hook
        >>> handle = register_module_module_registration_hook(lambda module, name, submodule: print(name))
        >>> model = torch.nn.Sequential(torch.nn.Tanh())
        0
        >>> handle.remove()
    """
    return _register(_global_module_registration_hooks, hook)


def register_module_parameter_registration_hook(hook: Hook) -> RemovableHandle:
    """Run `hook(module, name, param)` before any module registers one; a result replaces it.

    Example:
        >>> from tinytorch.nn.modules.module import register_module_parameter_registration_hook
        >>> handle = register_module_parameter_registration_hook(lambda module, name, param: print(name))
        >>> layer = torch.nn.Linear(2, 1)
        weight
        bias
        >>> handle.remove()
    """
    return _register(_global_parameter_registration_hooks, hook)


def register_module_forward_pre_hook(hook: Hook) -> RemovableHandle:
    """Run `hook(module, args)` before the call of every module, ahead of its own hooks.

    Example:
        >>> from tinytorch.nn.modules.module import register_module_forward_pre_hook
        >>> handle = register_module_forward_pre_hook(lambda module, args: print(module))
        >>> out = torch.nn.Tanh()(torch.zeros(1))
        Tanh()
        >>> handle.remove()
    """
    return _register(_global_forward_pre_hooks, hook)


def register_module_forward_hook(
    hook: Hook, *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Run `hook(module, args, output)` after the call of every module, ahead of its own hooks.

    Args:
        hook: the function; what it returns replaces the output.
        with_kwargs: call it as `hook(module, args, kwargs, output)`.
        always_call: run it also when the call raised.

    Returns:
        a handle; its `remove()` takes the hook away.

    Example:
        >>> from tinytorch.nn.modules.module import register_module_forward_hook
        >>> handle = register_module_forward_hook(lambda module, args, output: output + 1)
        >>> torch.nn.Tanh()(torch.zeros(1))
        tensor([1.])
        >>> handle.remove()
    """
    return _register(
        _global_forward_hooks,
        hook,
        with_kwargs=(_global_forward_hooks_with_kwargs, with_kwargs),
        always_call=(_global_forward_hooks_always_called, always_call),
    )


def register_module_backward_hook(hook: Hook) -> RemovableHandle:
    """Do for every module what `Module.register_backward_hook` (deprecated) does for one."""
    return _register_global_backward(hook, full=False)


def register_module_full_backward_hook(hook: Hook) -> RemovableHandle:
    """Run `hook(module, grad_input, grad_output)` in the backward of every module's call.

    Example:
        >>> from tinytorch.nn.modules.module import register_module_full_backward_hook
        >>> handle = register_module_full_backward_hook(lambda module, grad_input, grad_output: print(grad_output))
        >>> torch.nn.Tanh()(torch.zeros(1, requires_grad=True)).backward()
        (tensor([1.]),)
        >>> handle.remove()
    """
    return _register_global_backward(hook, full=True)


def _register_global_backward(hook: Hook, full: bool) -> RemovableHandle:
    global _global_is_full_backward_hook
    if _global_is_full_backward_hook is not None and _global_is_full_backward_hook is not full:
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module "
            "hook. Please use only one of them."
        )
    _global_is_full_backward_hook = full
    return _register(_global_backward_hooks, hook)


def register_module_full_backward_pre_hook(hook: Hook) -> RemovableHandle:
    """Run `hook(module, grad_output)` at the start of the backward of every module's call.

    Example:
        >>> from tinytorch.nn.modules.module import register_module_full_backward_pre_hook
        >>> handle = register_module_full_backward_pre_hook(lambda module, grad_output: print(grad_output))
        >>> torch.nn.Tanh()(torch.zeros(1, requires_grad=True)).backward()
        (tensor([1.]),)
        >>> handle.remove()
    """
    return _register(_global_backward_pre_hooks, hook)


# Helpers ------------------------------------------------------------------------------------------


def _addindent(text: str, spaces: int) -> str:
    """Return `text` with every line but the first indented."""
    first, *rest = text.split("\n")
    return "\n".join([first, *(" " * spaces + line if line.strip() else "" for line in rest)])


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool]:
    """Return device, dtype and `non_blocking` from the arguments of any form of `Module.to`."""

    def refuse() -> TypeError:
        got = ", ".join([type(a).__name__ for a in args] + [f"{k}={type(v).__name__}" for k, v in kwargs.items()])
        return TypeError(
            f"to() received an invalid combination of arguments - got ({got}), but expected one "
            "of: (device=None, dtype=None, non_blocking=False), (dtype, non_blocking=False), "
            "(tensor, non_blocking=False)"
        )

    names = ["device", "dtype", "non_blocking", "copy"]
    first = args[0] if args else kwargs.get("tensor")
    if isinstance(first, Tensor):
        names = ["tensor", "non_blocking", "copy"]
    elif _is_dtype(first):
        names = ["dtype", "non_blocking", "copy"]
    given = dict(zip(names, args, strict=False))
    if len(args) > len(names) or not kwargs.keys() <= {*names, "memory_format"} - given.keys():
        raise refuse()
    given.update(kwargs)
    if "tensor" in given:
        given["device"], given["dtype"] = given["tensor"].device, given["tensor"].dtype
    device, dtype = given.get("device"), given.get("dtype")
    flags = (given.get("non_blocking", False), given.get("copy", False))
    if (dtype is not None and not _is_dtype(dtype)) or not all(isinstance(f, bool) for f in flags):
        raise refuse()
    if flags[1]:
        raise RuntimeError(".to() does not accept copy argument")
    return (None if device is None else as_device(device), None if dtype is None else dtypes.as_dtype(dtype), flags[0])


def _is_dtype(value: Any) -> bool:
    return isinstance(value, dtypes.dtype) or value is float or value is int or value is bool


def _load_all(
    module: Module, state: Any, prefix: str, metadata: Any, assign: bool, found: tuple[list[str], list[str], list[str]]
) -> None:
    """Load a module and those in it; `found` collects missing keys, unexpected ones and errors."""
    local_metadata = {} if metadata is None else metadata.get(prefix[:-1], {})
    if assign:
        local_metadata["assign_to_params_buffers"] = True
    # Keys are always collected here, and thrown away by the caller when not strict.
    module._load_from_state_dict(state, prefix, local_metadata, True, *found)
    for name, child in module._modules.items():
        if child is not None:
            path = f"{prefix}{name}."
            part = {k: v for k, v in state.items() if k.startswith(path)}
            _load_all(child, part, path, metadata, assign, found)
    incompatible = _IncompatibleKeys(*found[:2])
    for hook in module._load_state_dict_post_hooks.values():
        if hook(module, incompatible) is not None:
            raise AssertionError(
                "Hooks registered with ``register_load_state_dict_post_hook`` are not "
                "expected to return new values, if incompatible_keys need to be modified, "
                "it should be done inplace."
            )


def _forward_unimplemented(self: Module, *input: Any) -> None:
    """Compute the output; every subclass defines it.

    Raises:
        NotImplementedError: the subclass does not.
    """
    raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')


# Module -------------------------------------------------------------------------------------------


class Module:
    """The base class of all layers and models.

    A subclass assigns parameters, buffers and other modules in `__init__` (after
    `super().__init__()`) and says in `forward` what it computes. What is assigned is registered:
    `parameters()` finds it, `to()` converts it, `state_dict()` saves it.

    Attributes:
        training: whether the module is in training mode; `train()` and `eval()` set it.

    Example:
        >>> from tinytorch import nn
        >>> class Net(nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.hidden = nn.Linear(4, 8)
        ...         self.out = nn.Linear(8, 2)
        ...     def forward(self, x):  # (N, 4)
        ...         return self.out(self.hidden(x).relu())  # (N, 2)
        >>> net = Net()
        >>> net(torch.ones(3, 4)).shape, sum(p.numel() for p in net.parameters())
        (torch.Size([3, 2]), 58)
        >>> net
        Net(
          (hidden): Linear(in_features=4, out_features=8, bias=True)
          (out): Linear(in_features=8, out_features=2, bias=True)
        )
    """

    dump_patches: bool = False

    #: Goes into the metadata of `state_dict`, for `_load_from_state_dict` of a later version to
    #: look at.
    _version: int = 1

    #: Whether `Module.__init__` hands its arguments on to the next class (multiple inheritance).
    call_super_init: bool = False

    training: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _non_persistent_buffers_set: set[str]
    _modules: dict[str, Module | None]
    _is_full_backward_hook: bool | None

    forward: Callable[..., Any] = _forward_unimplemented

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init:
            if kwargs:
                raise TypeError(
                    f"{type(self).__name__}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'"
                )
            if args:
                raise TypeError(
                    f"{type(self).__name__}.__init__() takes 1 positional argument but {len(args) + 1} were given"
                )
        self.__dict__.update(_fresh_state())  # not by assignment: __setattr__ looks for these very entries
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    # Registration ---------------------------------------------------------------------------------

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Register a tensor that belongs to the module but is not trained, such as a running mean.

        Args:
            name: the attribute it becomes.
            tensor: the buffer; None keeps the name and is left out of `state_dict`.
            persistent: whether `state_dict` has it.

        Raises:
            KeyError: the name is empty, has a dot, or is another attribute's.
            TypeError: `name` is no string, or `tensor` no tensor.
            AttributeError: before `super().__init__()`.

        Example:
            >>> layer = torch.nn.Linear(2, 1)
            >>> layer.register_buffer("count", torch.tensor(0))
            >>> layer.count
            tensor(0)
            >>> list(layer.state_dict())
            ['weight', 'bias', 'count']
        """
        self._check_name("buffer", "_buffers", name)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{typename(tensor)}' object to buffer '{name}' (torch Tensor or None required)"
            )
        self._buffers[name] = self._ask(_global_buffer_registration_hooks, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Register a parameter, which then is an attribute of this name.

        Args:
            name: the attribute it becomes.
            param: the parameter; None keeps the name (a layer without bias).

        Raises:
            KeyError: the name is empty, has a dot, or is another attribute's.
            TypeError: `name` is no string, or `param` no `Parameter`.
            ValueError: `param` is the result of an operation: only leaves can be trained.
            AttributeError: before `super().__init__()`.

        Example:
            >>> module = torch.nn.Module()
            >>> module.register_parameter("scale", torch.nn.Parameter(torch.ones(1)))
            >>> module.register_parameter("shift", None)
            >>> [name for name, _ in module.named_parameters()]
            ['scale']
        """
        self._check_name("parameter", "_parameters", name)
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(
                    f"cannot assign '{typename(param)}' object to parameter '{name}' "
                    "(torch.nn.Parameter or None required)"
                )
            if param.grad_fn is not None:
                raise ValueError(
                    f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must "
                    f"be created explicitly. To express '{name}' as a function of another Tensor, "
                    "compute the value in the forward() method."
                )
            param = self._ask(_global_parameter_registration_hooks, name, param)
        self._parameters[name] = param

    def add_module(self, name: str, module: Module | None) -> None:
        """Register a child module, which then is an attribute of this name.

        Raises:
            KeyError: the name is empty, has a dot, or is another attribute's.
            TypeError: `name` is no string, or `module` no `Module`.
            AttributeError: before `super().__init__()`.

        Example:
            >>> module = torch.nn.Module()
            >>> module.add_module("act", torch.nn.ReLU())
            >>> module.act
            ReLU()
        """
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{typename(module)} is not a Module subclass")
        self._check_name("module", "_modules", name)
        self._modules[name] = self._ask(_global_module_registration_hooks, name, module)

    def register_module(self, name: str, module: Module | None) -> None:
        """Do what `add_module` does.

        Example:
            >>> model = torch.nn.Module()
            >>> model.register_module("layer", torch.nn.Linear(2, 1))
            >>> model.layer
            Linear(in_features=2, out_features=1, bias=True)
        """
        self.add_module(name, module)

    def _check_name(self, kind: str, registry: str, name: Any) -> None:
        if registry not in self.__dict__:
            raise AttributeError(f"cannot assign {kind} before Module.__init__() call")
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {typename(name)}")
        if "." in name:
            got = f", got: {name}" if kind == "module" else ""
            raise KeyError(f'{kind} name can\'t contain "."{got}')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if name not in self.__dict__[registry] and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")

    def _ask(self, hooks: OrderedDict[int, Hook], name: str, value: Any) -> Any:
        """Return `value`, or what the global registration hooks put in its place."""
        for hook in hooks.values():
            replaced = hook(self, name, value)
            if replaced is not None:
                value = replaced
        return value

    def __getattr__(self, name: str) -> Any:
        # Python calls this only for what is not in `__dict__`. Written out, not a loop over the
        # three: every forward() comes here for its parameters and modules.
        members = self.__dict__
        if "_parameters" in members:  # not so before __init__
            registered = members["_parameters"]
            if name in registered:
                return registered[name]
            registered = members["_modules"]
            if name in registered:
                return registered[name]
            registered = members["_buffers"]
            if name in registered:
                return registered[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        # A parameter, or the name of one; a module, or the name of one; the same for buffers.
        members = self.__dict__
        parameters = members.get("_parameters")
        if isinstance(value, Tensor) and isinstance(value, Parameter):
            if parameters is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget_elsewhere(name, "_parameters")
            self.register_parameter(name, value)
        elif parameters is not None and name in parameters:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as parameter '{name}' (torch.nn.Parameter or None expected)"
                )
            self.register_parameter(name, value)
        elif isinstance(value, Module) or (parameters is not None and name in members["_modules"]):
            if parameters is None:
                raise AttributeError("cannot assign module before Module.__init__() call")
            if value is not None and not isinstance(value, Module):
                raise TypeError(
                    f"cannot assign '{typename(value)}' as child module '{name}' (torch.nn.Module or None expected)"
                )
            self._forget_elsewhere(name, "_modules")
            members["_modules"][name] = self._ask(_global_module_registration_hooks, name, value)
        elif (parameters is not None and name in members["_buffers"]) or (
            isinstance(value, Tensor) and isinstance(value, Buffer)
        ):
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(
                    f"cannot assign '{typename(value)}' as buffer '{name}' (torch.nn.Buffer, "
                    "torch.Tensor or None expected)"
                )
            if isinstance(value, Buffer):
                persistent = value.persistent
            else:
                persistent = name not in members["_non_persistent_buffers_set"]
            register = self.register_buffer
            if (
                getattr(register, "__func__", None) is Module.register_buffer
                or "persistent" in inspect.signature(register).parameters
            ):
                register(name, value, persistent)
            elif persistent:
                register(name, value)
            else:
                raise RuntimeError(
                    "Registering a non-persistent buffer on a Module subclass that implements "
                    "register_buffer() without the persistent argument is not allowed."
                )
        else:
            object.__setattr__(self, name, value)

    def _forget_elsewhere(self, name: str, registry: str) -> None:
        """Take `name` out of all places but `registry`: an attribute is one thing at a time."""
        members = self.__dict__
        members.pop(name, None)
        members["_non_persistent_buffers_set"].discard(name)
        for other in ("_parameters", "_buffers", "_modules"):
            if other != registry:
                members[other].pop(name, None)

    def __delattr__(self, name: str) -> None:
        for registry in (self._parameters, self._buffers, self._modules):
            if name in registry:
                del registry[name]
                self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    def __dir__(self) -> list[str]:
        names = [*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers]
        return sorted(name for name in names if not name[0].isdigit())  # not the "0", "1" of a Sequential

    # By path --------------------------------------------------------------------------------------

    def get_submodule(self, target: str) -> Module:
        """Return the module at a path such as "features.0"; this one for "".

        Raises:
            AttributeError: nothing is there, or no module.

        Example:
            >>> model = torch.nn.Sequential(torch.nn.Sequential(torch.nn.ReLU()))
            >>> model.get_submodule("0.0")
            ReLU()
        """
        module = self
        for name in target.split(".") if target else ():
            module = module._member(name)
            if not isinstance(module, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Put `module` at a path such as "features.0".

        Args:
            target: the path.
            module: what goes there.
            strict: whether there must be one already.

        Raises:
            ValueError: the path is empty, or `module` is none.
            AttributeError: the path leads nowhere, or something else than a module is there.

        Example:
            >>> model = torch.nn.Sequential(torch.nn.Sequential(torch.nn.ReLU()))
            >>> model.set_submodule("0.0", torch.nn.Tanh())
            >>> model[0][0]
            Tanh()
        """
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if (strict or hasattr(parent, name)) and not isinstance(parent._member(name), Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """Return the parameter at a path such as "features.0.weight".

        Raises:
            AttributeError: nothing is there, or no parameter.

        Example:
            >>> model = torch.nn.Sequential(torch.nn.Linear(2, 1))
            >>> model.get_parameter("0.weight").shape
            torch.Size([1, 2])
        """
        path, _, name = target.rpartition(".")
        param = self.get_submodule(path)._member(name)
        if not isinstance(param, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return param

    def get_buffer(self, target: str) -> Tensor:
        """Return the buffer at a path such as "norm.running_mean".

        Raises:
            AttributeError: nothing is there, or no buffer.

        Example:
            >>> model = torch.nn.Sequential(torch.nn.BatchNorm1d(2))
            >>> model.get_buffer("0.running_var")
            tensor([1., 1.])
        """
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        buffer: Tensor = module._member(name)
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return buffer

    def _member(self, name: str) -> Any:
        if not hasattr(self, name):
            raise AttributeError(f"{self._get_name()} has no attribute `{name}`")
        return getattr(self, name)

    # All of a kind --------------------------------------------------------------------------------

    def _named_members(
        self,
        get_members_fn: Callable[[Module], Iterable[tuple[str, Any]]],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        """Yield (path, member) of this module and, if `recurse`, of those below; no Nones."""
        modules: Iterable[tuple[str, Module]] = [(prefix, self)]
        if recurse:
            modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
        seen: set[int] = set()
        for path, module in modules:
            for name, member in get_members_fn(module):
                if member is None or id(member) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(member))
                yield (f"{path}.{name}" if path else name), member

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Yield the parameters, each once; `recurse=False`: this module's own only.

        Example:
            >>> from tinytorch import nn
            >>> [tuple(p.shape) for p in nn.Linear(4, 2).parameters()]
            [(2, 4), (2,)]
        """
        for _, param in self.named_parameters(recurse=recurse):
            yield param

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Yield (path, parameter).

        Args:
            prefix: goes before every path.
            recurse: whether to take in the modules below this one.
            remove_duplicate: whether a shared parameter comes under its first path only.

        Example:
            >>> model = torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.ReLU())
            >>> [(name, tuple(each.shape)) for name, each in model.named_parameters()]
            [('0.weight', (1, 2)), ('0.bias', (1,))]
        """
        yield from self._named_members(lambda module: module._parameters.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Yield the buffers, each once; `recurse=False`: this module's own only.

        Example:
            >>> [each.shape for each in torch.nn.BatchNorm1d(2).buffers()]
            [torch.Size([2]), torch.Size([2]), torch.Size([])]
        """
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Yield (path, buffer); the arguments are those of `named_parameters`.

        Example:
            >>> [name for name, _ in torch.nn.BatchNorm1d(2).named_buffers()]
            ['running_mean', 'running_var', 'num_batches_tracked']
        """
        yield from self._named_members(lambda module: module._buffers.items(), prefix, recurse, remove_duplicate)

    def children(self) -> Iterator[Module]:
        """Yield the modules directly below this one, each once.

        Example:
            >>> list(torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Tanh()).children())
            [ReLU(), Tanh()]
        """
        for _, module in self.named_children():
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Yield (name, module) of the modules directly below this one, each once.

        Example:
            >>> list(torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Tanh()).named_children())
            [('0', ReLU()), ('1', Tanh())]
        """
        seen: set[Module] = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """Yield this module and all below it, each once unless `remove_duplicate` is False.

        Example:
            >>> model = torch.nn.Sequential(torch.nn.Sequential(torch.nn.ReLU()))
            >>> [type(each).__name__ for each in model.modules()]
            ['Sequential', 'Sequential', 'ReLU']
        """
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Yield (path, module) of this module and all below it, parents first.

        Args:
            memo: the modules that have been yielded already.
            prefix: this module's own path.
            remove_duplicate: whether a shared module comes under its first path only.

        Example:
            >>> model = torch.nn.Sequential(torch.nn.Sequential(torch.nn.ReLU()))
            >>> [name for name, _ in model.named_modules()]
            ['', '0', '0.0']
        """
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                path = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(memo, path, remove_duplicate)

    # Modes and conversions ------------------------------------------------------------------------

    def apply(self, fn: Callable[[Module], None]) -> Self:
        """Call `fn` on every module below this one, then on this one, and return this one.

        Example:
            >>> from tinytorch import nn
            >>> def init(m):
            ...     if isinstance(m, nn.Linear):
            ...         nn.init.ones_(m.weight)
            >>> nn.Sequential(nn.Linear(1, 2)).apply(init)[0].weight
            Parameter containing:
            tensor([[1.],
                    [1.]], requires_grad=True)
        """
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self, mode: bool = True) -> Self:
        """Set training mode (dropout drops, batch norm uses the batch) here and below; return self.

        Raises:
            ValueError: `mode` is no bool.

        Example:
            >>> model = torch.nn.Sequential(torch.nn.Dropout()).eval()
            >>> model.train()[0].training
            True
        """
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Leave training mode here and below, and return the module.

        Example:
            >>> model = torch.nn.Sequential(torch.nn.Dropout()).eval()
            >>> model(torch.ones(3))
            tensor([1., 1., 1.])
        """
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set whether the parameters are trained (False freezes them), and return the module.

        Example:
            >>> layer = torch.nn.Linear(2, 1).requires_grad_(False)
            >>> layer.weight.requires_grad
            False
        """
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters; `set_to_none=False` makes them zeros instead.

        Example:
            >>> layer = torch.nn.Linear(2, 1)
            >>> layer(torch.ones(2)).backward()
            >>> layer.zero_grad()
            >>> layer.weight.grad is None
            True
        """
        for param in self.parameters():
            if param.grad is None:
                continue
            if set_to_none:
                param.grad = None
            elif param.grad.grad_fn is not None:
                param.grad.detach_().zero_()
            else:
                param.grad.requires_grad_(False).zero_()

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replace every parameter's data, its gradient's data and every buffer by `fn` of it."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        new = (
            _conversion.get_overwrite_module_params_on_conversion()
            and not _conversion.get_swap_module_params_on_conversion()
        )
        for name, param in self._parameters.items():
            if param is None:
                continue
            with no_grad():
                if new:
                    made = Parameter(fn(param), param.requires_grad)
                    if param.grad is not None:
                        made.grad = fn(param.grad).requires_grad_(param.grad.requires_grad)
                    self._parameters[name] = made
                    continue
                param.data = fn(param)  # the object stays the same: an optimizer has hold of it
                if param.grad is not None:
                    param.grad.data = fn(param.grad)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Convert parameters and buffers in place and return the module.

        The forms are `to(device, dtype, non_blocking)`, `to(dtype, non_blocking)` and `to(tensor,
        non_blocking)`. Only floating-point members change their dtype.

        Raises:
            TypeError: `dtype` is not floating point, or the arguments fit none of the forms.
            RuntimeError: the device is not there.

        Example:
            >>> torch.nn.Linear(2, 2).to("cpu", torch.float64).weight.dtype
            torch.float64
        """
        device, dtype, non_blocking = _parse_to(*args, **kwargs)
        if dtype is not None and not dtype.is_floating_point:
            raise TypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
            )
        form = kwargs.get("memory_format")

        def converted(t: Tensor) -> Tensor:
            kind = dtype if t.is_floating_point() else None
            if form is not None and t.dim() in (4, 5):
                return t.to(device, kind, non_blocking, memory_format=form)
            return t.to(device, kind, non_blocking)

        return self._apply(converted)

    def type(self, dst_type: Any) -> Self:
        """Convert all parameters and buffers, also those that are not floating point.

        Example:
            >>> torch.nn.Linear(2, 1).type(torch.float64).weight.dtype
            torch.float64
        """
        return self._apply(lambda t: t.type(dst_type))

    def float(self) -> Self:
        """Convert floating-point parameters and buffers to float32 and return the module.

        Example:
            >>> torch.nn.Linear(2, 1).double().float().weight.dtype
            torch.float32
        """
        return self._to_floating(dtypes.float32)

    def double(self) -> Self:
        """Convert floating-point parameters and buffers to float64 and return the module.

        Example:
            >>> torch.nn.Linear(2, 1).double().weight.dtype
            torch.float64
        """
        return self._to_floating(dtypes.float64)

    def half(self) -> Self:
        """Convert floating-point parameters and buffers to float16 and return the module.

        Example:
            >>> torch.nn.Linear(2, 1).half().weight.dtype
            torch.float16
        """
        return self._to_floating(dtypes.float16)

    def bfloat16(self) -> Self:
        """Convert floating-point parameters and buffers to bfloat16 (needs the extra `bf16`)."""
        return self._to_floating(dtypes.bfloat16)

    def _to_floating(self, dtype: dtypes.dtype) -> Self:
        return self._apply(lambda t: t.to(dtype) if t.is_floating_point() else t)

    def cpu(self) -> Self:
        """Move parameters and buffers to the CPU and return the module.

        Example:
            >>> torch.nn.Linear(2, 1).cpu().weight.device
            device(type='cpu')
        """
        return self._apply(lambda t: t.cpu())

    def cuda(self, device: Any = None) -> Self:
        """Move parameters and buffers to a CUDA device and return the module.

        Raises:
            RuntimeError: there is none.
        """
        return self.to("cuda" if device is None else device)

    def to_empty(self, *, device: Any, recurse: bool = True) -> Self:
        """Give parameters and buffers new memory on `device`, without values, and return self.

        Example:
            >>> torch.nn.Linear(2, 1).to_empty(device="cpu").weight.shape
            torch.Size([1, 2])
        """
        return self._apply(lambda t: empty_like(t, device=device), recurse=recurse)

    def share_memory(self) -> Self:
        """Move parameters, gradients and buffers to memory that forked processes share, and return self.

        See `Tensor.share_memory_`.

        Example:
            >>> layer = torch.nn.Linear(2, 1).share_memory()
            >>> layer.weight.is_shared()
            True
        """
        for param in self.parameters():
            param.share_memory_()
            if param.grad is not None:
                param.grad.share_memory_()
        for buffer in self.buffers():
            buffer.share_memory_()
        return self

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing, whatever the arguments: there is no compiler, the module runs as it is.

        Example:
            >>> layer = torch.nn.ReLU()
            >>> layer.compile()
            >>> layer(torch.tensor([-1.0, 1.0]))
            tensor([0., 1.])
        """

    # The call -------------------------------------------------------------------------------------

    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        """Run `forward` and the hooks around it."""
        if not (
            self._forward_hooks
            or self._forward_pre_hooks
            or self._backward_hooks
            or self._backward_pre_hooks
            or _global_forward_hooks
            or _global_forward_pre_hooks
            or _global_backward_hooks
            or _global_backward_pre_hooks
        ):
            return self.forward(*args, **kwargs)
        return self._call_with_hooks(args, kwargs)

    __call__: Callable[..., Any] = _call_impl

    def _call_with_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        result = None
        # Global hooks run before the module's own.
        forward_hooks = {**_global_forward_hooks, **self._forward_hooks}
        with_kwargs = {**_global_forward_hooks_with_kwargs, **self._forward_hooks_with_kwargs}
        always_called = {**_global_forward_hooks_always_called, **self._forward_hooks_always_called}
        called: set[int] = set()

        def run(number: int, hook: Hook) -> None:
            nonlocal result
            called.add(number)
            if number in with_kwargs:
                replaced = hook(self, args, kwargs, result)
            else:
                replaced = hook(self, args, result)
            if replaced is not None:
                result = replaced

        try:
            args, kwargs = self._run_forward_pre_hooks(args, kwargs)
            full_hooks, node_hooks = self._get_backward_hooks()
            pre_hooks = self._get_backward_pre_hooks()
            around = BackwardHooks(self, full_hooks, pre_hooks) if full_hooks or pre_hooks else None
            if around is not None:
                args = around.before(args)
            result = self.forward(*args, **kwargs)
            for number, hook in forward_hooks.items():
                run(number, hook)
            if around is not None:
                if not isinstance(result, (Tensor, tuple)):
                    warnings.warn(
                        "For backward hooks to be called, module output should be a Tensor or a "
                        f"tuple of Tensors but received {type(result)}",
                        stacklevel=3,
                    )
                result = around.after(result)
            if node_hooks:
                self._register_on_node(node_hooks, args, result)
            return result
        except Exception:
            for number, hook in forward_hooks.items():
                if number in always_called and number not in called:
                    try:
                        run(number, hook)
                    except Exception as error:
                        warnings.warn(
                            "module forward hook with ``always_call=True`` raised an exception "
                            f"that was silenced as another error was raised in forward: {error}",
                            stacklevel=3,
                        )
            raise

    def _run_forward_pre_hooks(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        for number, hook in (*_global_forward_pre_hooks.items(), *self._forward_pre_hooks.items()):
            if number in self._forward_pre_hooks_with_kwargs:
                replaced = hook(self, args, kwargs)
                if replaced is None:
                    continue
                if not (isinstance(replaced, tuple) and len(replaced) == 2):
                    raise RuntimeError(
                        f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {replaced}."
                    )
                args, kwargs = replaced
            else:
                replaced = hook(self, args)
                if replaced is not None:
                    args = replaced if isinstance(replaced, tuple) else (replaced,)
        return args, kwargs

    def _get_backward_hooks(self) -> tuple[list[Hook], list[Hook]]:
        """Return the full backward hooks, and the deprecated ones that hang on a single node."""
        full: list[Hook] = []
        on_node: list[Hook] = []
        for kind, hooks in (
            (_global_is_full_backward_hook, _global_backward_hooks),
            (self._is_full_backward_hook, self._backward_hooks),
        ):
            (full if kind else on_node).extend(hooks.values())
        return full, on_node

    def _get_backward_pre_hooks(self) -> list[Hook]:
        return [*_global_backward_pre_hooks.values(), *self._backward_pre_hooks.values()]

    def _register_on_node(self, hooks: list[Hook], args: tuple[Any, ...], result: Any) -> None:
        """Hang `register_backward_hook`'s hooks on the node of the first tensor in the result."""
        first = result
        while not isinstance(first, Tensor):
            if isinstance(first, dict):
                first = next(v for v in first.values() if isinstance(v, Tensor))
            else:
                first = first[0]
        node = first.grad_fn
        if node is None:
            return
        shown = _as_pytorch_shows(node)
        for hook in hooks:
            wrapped = _WrappedHook(hook, self)
            node.register_hook(shown(wrapped) if shown else wrapped)
        lacking = _what_node_hooks_miss(args, result, node)
        if lacking:
            warnings.warn(lacking, FutureWarning, stacklevel=4)

    def register_forward_pre_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Run `hook(module, args)` before `forward`; what it returns replaces the arguments.

        Args:
            hook: the function.
            prepend: whether it runs before the hooks that are there.
            with_kwargs: call it as `hook(module, args, kwargs)`; it may return `(args, kwargs)`.

        Returns:
            a handle; its `remove()` takes the hook away.

        Example:
            >>> layer = torch.nn.Identity()
            >>> handle = layer.register_forward_pre_hook(lambda module, args: args[0] + 1)
            >>> layer(torch.zeros(2))
            tensor([1., 1.])
        """
        return _register(
            self._forward_pre_hooks, hook, prepend, with_kwargs=(self._forward_pre_hooks_with_kwargs, with_kwargs)
        )

    def register_forward_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Run `hook(module, args, output)` after `forward`; what it returns replaces the output.

        Args:
            hook: the function.
            prepend: whether it runs before the hooks that are there.
            with_kwargs: call it as `hook(module, args, kwargs, output)`.
            always_call: run it also when the call raised.

        Returns:
            a handle; its `remove()` takes the hook away.

        Example:
            >>> seen = []
            >>> layer = torch.nn.Linear(3, 2)
            >>> handle = layer.register_forward_hook(lambda m, args, out: seen.append(out.shape))
            >>> y = layer(torch.ones(5, 3))
            >>> seen
            [torch.Size([5, 2])]
        """
        return _register(
            self._forward_hooks,
            hook,
            prepend,
            with_kwargs=(self._forward_hooks_with_kwargs, with_kwargs),
            always_call=(self._forward_hooks_always_called, always_call),
        )

    def register_full_backward_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Run `hook(module, grad_output)` when the gradients of the outputs are known.

        Args:
            hook: the function; a tuple that it returns replaces `grad_output`.
            prepend: whether it runs before the hooks that are there.

        Returns:
            a handle; its `remove()` takes the hook away.

        Example:
            >>> layer = torch.nn.Linear(1, 1)
            >>> handle = layer.register_full_backward_pre_hook(lambda module, grads: (2 * grads[0],))
            >>> layer(torch.ones(1, requires_grad=True)).backward()
            >>> layer.bias.grad
            tensor([2.])
        """
        return _register(self._backward_pre_hooks, hook, prepend)

    def register_full_backward_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Run `hook(module, grad_input, grad_output)` when the gradients of the inputs are known.

        Both are tuples with an entry per positional argument and per output, None where there is no
        gradient.

        Args:
            hook: the function; a tuple that it returns replaces `grad_input`.
            prepend: whether it runs before the hooks that are there.

        Returns:
            a handle; its `remove()` takes the hook away.

        Raises:
            RuntimeError: the module has hooks of the deprecated kind (`register_backward_hook`).

        Example:
            >>> layer = torch.nn.ReLU()
            >>> handle = layer.register_full_backward_hook(lambda module, gi, go: print(gi, go))
            >>> layer(torch.tensor([-1.0, 1.0], requires_grad=True)).sum().backward()
            (tensor([0., 1.]),) (tensor([1., 1.]),)
        """
        self._backward_hooks_are("full")
        return _register(self._backward_hooks, hook, prepend)

    def register_backward_hook(self, hook: Hook) -> RemovableHandle:
        """Run `hook(module, grad_input, grad_output)` after the last operation (deprecated).

        `grad_input` holds the gradients of that one operation's inputs;
        `register_full_backward_hook` gives those of the module's.

        Raises:
            RuntimeError: the module has full backward hooks.
        """
        self._backward_hooks_are("regular")
        return _register(self._backward_hooks, hook)

    def _backward_hooks_are(self, kind: str) -> None:
        if self._is_full_backward_hook is (kind != "full"):
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single "
                "Module. Please use only one of them."
            )
        self._is_full_backward_hook = kind == "full"

    # Saving and loading ---------------------------------------------------------------------------

    def get_extra_state(self) -> Any:
        """Return what `state_dict` shall hold beside tensors; goes with `set_extra_state`.

        Raises:
            RuntimeError: the subclass does not define it.

        Example:
            >>> class Counted(torch.nn.Module):
            ...     count = 3
            ...     def get_extra_state(self):
            ...         return self.count
            ...     def set_extra_state(self, state):
            ...         self.count = state
            >>> dict(Counted().state_dict())
            {'_extra_state': 3}
        """
        raise RuntimeError(
            "Reached a code path in Module.get_extra_state() that should never be called: a subclass defines it."
        )

    def set_extra_state(self, state: Any) -> None:
        """Take back what `get_extra_state` returned.

        Raises:
            RuntimeError: the subclass does not define it.

        Example:
            >>> class Counted(torch.nn.Module):
            ...     count = 3
            ...     def get_extra_state(self):
            ...         return self.count
            ...     def set_extra_state(self, state):
            ...         self.count = state
            >>> counted = Counted()
            >>> counted.load_state_dict({"_extra_state": 7})
            <All keys matched successfully>
            >>> counted.count
            7
        """
        raise RuntimeError(
            "Reached a code path in Module.set_extra_state() that should never be called: a subclass defines it."
        )

    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """Return an ordered dictionary of path -> tensor of all parameters and persistent buffers.

        The tensors share memory with the module.

        Args:
            args: deprecated; destination, prefix and keep_vars by position.
            destination: the dictionary to fill, a new one by default.
            prefix: goes before every path.
            keep_vars: whether to hand out the parameters themselves rather than detached tensors.

        Example:
            >>> from tinytorch import nn
            >>> list(nn.Sequential(nn.Linear(4, 2), nn.ReLU()).state_dict())
            ['0.weight', '0.bias']
        """
        if args:
            warnings.warn("Positional args are being deprecated, use kwargs instead.", FutureWarning, stacklevel=2)
            destination = args[0] if destination is None else destination
            prefix = args[1] if len(args) > 1 and prefix == "" else prefix
            keep_vars = args[2] if len(args) > 2 and keep_vars is False else keep_vars
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            replaced = hook(self, destination, prefix, local_metadata)
            if replaced is not None:
                if getattr(hook, "_from_public_api", False):
                    raise RuntimeError("state_dict post-hook must return None")
                destination = replaced
        return destination

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Enter this module's own parameters, persistent buffers and extra state."""
        for name, tensor in self._own_state().items():
            destination[prefix + name] = tensor if keep_vars else tensor.detach()
        if _overrides(self, "get_extra_state"):
            destination[prefix + _EXTRA_STATE_KEY_SUFFIX] = self.get_extra_state()

    def _own_state(self) -> dict[str, Tensor]:
        """Return this module's own members that `state_dict` has."""
        hidden = self._non_persistent_buffers_set
        own: dict[str, Tensor] = {k: p for k, p in self._parameters.items() if p is not None}
        own.update((k, b) for k, b in self._buffers.items() if b is not None and k not in hidden)
        return own

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> _IncompatibleKeys:
        """Copy parameters and buffers from a dictionary as `state_dict` returns it.

        Args:
            state_dict: path -> tensor.
            strict: whether its keys must be exactly the module's.
            assign: put the dictionary's tensors in the places of the module's (with their dtypes)
                rather than copy their values.

        Returns:
            the named tuple `(missing_keys, unexpected_keys)`.

        Raises:
            RuntimeError: shapes differ or, when strict, keys do; it lists them all.
            TypeError: `state_dict` is no mapping.

        Example:
            >>> from tinytorch import nn
            >>> nn.Linear(4, 2).load_state_dict(nn.Linear(4, 2).state_dict())
            <All keys matched successfully>
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        missing: list[str] = []
        unexpected: list[str] = []
        errors: list[str] = []
        metadata = getattr(state_dict, "_metadata", None)
        state: Any = OrderedDict(state_dict)  # a copy: hooks may rename its keys
        if metadata is not None:
            state._metadata = metadata

        _load_all(self, state, "", metadata, assign, (missing, unexpected, errors))
        if strict:
            for what, keys in (("Unexpected", unexpected), ("Missing", missing)):
                if keys:
                    listed = ", ".join(f'"{key}"' for key in keys)
                    errors.insert(0, f"{what} key(s) in state_dict: {listed}. ")
        if errors:
            listed = "\n\t".join(errors)
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{listed}")
        return _IncompatibleKeys(missing, unexpected)

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Load this module's own members, and note in the three lists what does not fit.

        A subclass overrides it to read dictionaries of its earlier versions
        (`local_metadata["version"]`).
        """
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        own = self._own_state()
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, tensor in own.items():
            key = prefix + name
            if key in state_dict:
                error = self._load_member(name, tensor, key, state_dict[key], assign)
                if error:
                    error_msgs.append(error)
            elif strict:
                missing_keys.append(key)

        extra_key = prefix + _EXTRA_STATE_KEY_SUFFIX
        if _overrides(self, "set_extra_state"):
            if extra_key in state_dict:
                self.set_extra_state(state_dict[extra_key])
            elif strict:
                missing_keys.append(extra_key)
        elif strict and extra_key in state_dict:
            unexpected_keys.append(extra_key)

        if strict:
            for key in state_dict:
                if key.startswith(prefix) and key != extra_key:
                    name, dot, _ = key[len(prefix) :].partition(".")
                    if name not in (self._modules if dot else own):
                        unexpected_keys.append(key)

    def _load_member(self, name: str, tensor: Tensor, key: str, loaded: Any, assign: bool) -> str | None:
        """Give the member `tensor` the value `loaded`; return what went wrong, or None."""
        if not isinstance(loaded, Tensor):
            return (
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like '
                f"object from checkpoint but received {type(loaded)}"
            )
        if len(tensor.shape) == 0 and len(loaded.shape) == 1 and loaded.shape[0] == 1:
            loaded = loaded.squeeze(0)  # checkpoints of long ago have one-element vectors for 0-d tensors
        if loaded.shape != tensor.shape:
            return (
                f"size mismatch for {key}: copying a param with shape {loaded.shape} from "
                f"checkpoint, the shape in current model is {tensor.shape}."
            )
        try:
            with no_grad():
                if not assign:
                    tensor.copy_(loaded)
                    return None
                if isinstance(tensor, Parameter):
                    if isinstance(loaded, Parameter):
                        loaded.requires_grad_(tensor.requires_grad)
                    else:
                        loaded = Parameter(loaded, requires_grad=tensor.requires_grad)
                setattr(self, name, loaded)
        except Exception as error:  # one report for all members
            return (
                f'While copying the parameter named "{key}", whose dimensions in the model are '
                f"{tensor.shape} and whose dimensions in the checkpoint are {loaded.shape}, an "
                f"exception occurred : {error.args}."
            )
        return None

    def register_state_dict_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Run `hook(module, prefix, keep_vars)` before `state_dict` collects the members.

        Example:
            >>> layer = torch.nn.ReLU()
            >>> handle = layer.register_state_dict_pre_hook(lambda module, prefix, keep_vars: print("saving", module))
            >>> _ = layer.state_dict()
            saving ReLU()
        """
        return _register(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Hook) -> RemovableHandle:
        """Run `hook(module, state_dict, prefix, local_metadata)` after `state_dict`.

        It may change the dictionary in place.

        Example:
            >>> layer = torch.nn.Linear(2, 1)
            >>> def without_bias(module, state, prefix, metadata):
            ...     del state[prefix + "bias"]
            >>> handle = layer.register_state_dict_post_hook(without_bias)
            >>> list(layer.state_dict())
            ['weight']
        """
        hook._from_public_api = True  # type: ignore[attr-defined]
        return _register(self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook: Hook) -> RemovableHandle:
        """Register a state dict hook whose result, if it returns one, takes the place."""
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was "
                "previously registered via register_state_dict_post_hook"
            )
        return _register(self._state_dict_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Run a hook before the module's own members are loaded.

        It is called as `hook(module, state_dict, prefix, local_metadata, strict, missing_keys,
        unexpected_keys, error_msgs)` and may change all of these in place.

        Example:
            >>> layer = torch.nn.Linear(2, 1)
            >>> def renamed(module, state, *rest):
            ...     state["weight"] = state.pop("w")
            >>> handle = layer.register_load_state_dict_pre_hook(renamed)
            >>> layer.load_state_dict({"w": torch.ones(1, 2), "bias": torch.zeros(1)})
            <All keys matched successfully>
        """
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(self, hook: Hook, with_module: bool = False) -> RemovableHandle:
        return _register(self._load_state_dict_pre_hooks, _WrappedHook(hook, self if with_module else None))

    def register_load_state_dict_post_hook(self, hook: Hook) -> RemovableHandle:
        """Run `hook(module, incompatible_keys)` after loading; it may change the lists in place.

        Example:
            >>> layer = torch.nn.Linear(2, 1)
            >>> def forgiving(module, keys):
            ...     keys.missing_keys.clear()
            >>> handle = layer.register_load_state_dict_post_hook(forgiving)
            >>> layer.load_state_dict({})
            <All keys matched successfully>
        """
        return _register(self._load_state_dict_post_hooks, hook)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__.copy()

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Entries that an older pickle lacks keep their fresh value.
        self.__dict__.update({**_fresh_state(), **state})

    # Printing -------------------------------------------------------------------------------------

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """Return what `repr` shows beside the children; a layer returns its settings.

        Example:
            >>> class Scale(torch.nn.Module):
            ...     def extra_repr(self):
            ...         return "factor=2"
            >>> Scale()
            Scale(factor=2)
        """
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        children = [f"({name}): " + _addindent(repr(m), 2) for name, m in self._modules.items()]
        lines = (extra.split("\n") if extra else []) + children
        if not lines:
            return f"{self._get_name()}()"
        if not children and len(lines) == 1:
            return f"{self._get_name()}({extra})"
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"


def _fresh_state() -> dict[str, Any]:
    """Return what `__dict__` of a module starts with, under PyTorch's names: programs use them."""
    return {
        "training": True,
        "_parameters": {},
        "_buffers": {},
        "_non_persistent_buffers_set": set(),
        "_backward_pre_hooks": OrderedDict(),
        "_backward_hooks": OrderedDict(),
        "_is_full_backward_hook": None,
        "_forward_hooks": OrderedDict(),
        "_forward_hooks_with_kwargs": OrderedDict(),
        "_forward_hooks_always_called": OrderedDict(),
        "_forward_pre_hooks": OrderedDict(),
        "_forward_pre_hooks_with_kwargs": OrderedDict(),
        "_state_dict_hooks": OrderedDict(),
        "_state_dict_pre_hooks": OrderedDict(),
        "_load_state_dict_pre_hooks": OrderedDict(),
        "_load_state_dict_post_hooks": OrderedDict(),
        "_modules": {},
    }


def _overrides(module: Module, method: str) -> bool:
    return getattr(type(module), method) is not getattr(Module, method)


def _as_pytorch_shows(node: Any) -> Callable[[Hook], Hook] | None:
    """Return what makes a hook of a node see a weight's gradient as PyTorch's, whose node has the transpose."""
    within = [isinstance(edge[0], Within) and edge[0].name().startswith("TBackward") for edge in node.next_functions]
    if True not in within:
        return None

    def turned(grads: Any) -> Any:
        if not isinstance(grads, (tuple, list)) or len(grads) != len(within):
            return grads
        pairs = zip(grads, within, strict=True)
        return tuple([g.t() if one and isinstance(g, Tensor) else g for g, one in pairs])

    def shown(hook: Hook) -> Hook:
        @functools.wraps(hook)
        def call(grad_input: Any, grad_output: Any) -> Any:
            return turned(hook(turned(grad_input), grad_output))

        return call

    return shown


_DEPRECATED = "is deprecated and will be removed in future versions. This hook will be missing"
_FULL = "Please use register_full_backward_hook to get the documented behavior."
_ON_MODULE = (
    "Using non-full backward hooks on a Module that does not {} a single Tensor or a tuple of Tensors "
    f"{_DEPRECATED} some of the {{}}. {_FULL}"
)
_ON_NODE = f"Using a non-full backward hook when {{}} {_DEPRECATED} some {{}}. {_FULL}"


def _what_node_hooks_miss(args: tuple[Any, ...], result: Any, node: Any) -> str:
    """Return PyTorch's warning of how the gradients at `node` are not the module's, or "" if they are."""
    results = result if isinstance(result, tuple) else (result,)
    if not all(isinstance(each, Tensor) for each in results):
        return _ON_MODULE.format("return", "grad_output")
    if not all(isinstance(each, Tensor) for each in args):
        return _ON_MODULE.format("take as input", "grad_input")
    if len({each.grad_fn for each in results if each.grad_fn is not None}) > 1:
        return _ON_NODE.format("outputs are generated by different autograd Nodes", "grad_output")
    sources = {each.grad_fn for each in args if each.grad_fn is not None}
    if sources != {edge[0] for edge in node.next_functions}:
        return _ON_NODE.format("the forward contains multiple autograd Nodes", "grad_input")
    return ""
