"""`Module`, the base class of layers and models: members, conversions, the call with its hooks."""

from __future__ import annotations

import inspect
import sys
import types
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self

from tinytorch.autograd.grad_mode import no_grad
from tinytorch.autograd.hooks import RemovableHandle
from tinytorch.core import native
from tinytorch.core.device import as_device, cpu
from tinytorch.core.mode import short
from tinytorch.core.notes import leave
from tinytorch.core.tensor import Tensor
from tinytorch.core.warning import warn
from tinytorch.kernels import dtypes
from tinytorch.nn.modules import _conversion
from tinytorch.nn.modules._backward_hooks import BackwardHooks
from tinytorch.nn.modules._hooks import Hook, Hooking, _register
from tinytorch.nn.modules._hooks import _WrappedHook as _WrappedHook  # (pickles refer to it here)
from tinytorch.nn.modules._state_dict import _EXTRA_STATE_KEY_SUFFIX as _EXTRA_STATE_KEY_SUFFIX
from tinytorch.nn.modules._state_dict import Saving
from tinytorch.nn.modules._state_dict import _IncompatibleKeys as _IncompatibleKeys
from tinytorch.nn.parameter import Buffer, Parameter
from tinytorch.ops.create import empty_like
from tinytorch.ops.members import typename

__all__ = [
    "Module", "register_module_backward_hook", "register_module_buffer_registration_hook",
    "register_module_forward_hook", "register_module_forward_pre_hook",
    "register_module_full_backward_hook", "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook", "register_module_parameter_registration_hook",
]  # fmt: skip

# Global hooks -------------------------------------------------------------------------------------

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


def register_module_buffer_registration_hook(hook: Hook) -> RemovableHandle:
    """Run `hook(module, name, buffer)` when any module registers a buffer; a result replaces the buffer."""
    return _register(_global_buffer_registration_hooks, hook)


def register_module_module_registration_hook(hook: Hook) -> RemovableHandle:
    """Run `hook(module, name, submodule)` when any module registers a submodule; a result replaces it."""
    return _register(_global_module_registration_hooks, hook)


def register_module_parameter_registration_hook(hook: Hook) -> RemovableHandle:
    """Run `hook(module, name, param)` when any module registers a parameter; a result replaces it.

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
    """Run `hook(module, args)` before the call of every module, and before the hooks of that module.

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
    """Run `hook(module, args, output)` after the call of every module, before the hooks of that module.

    The arguments are those of `Module.register_forward_hook`.

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
    """Register a hook as `Module.register_backward_hook` (deprecated), for all modules."""
    return _register_global_backward(hook, full=False)


def register_module_full_backward_hook(hook: Hook) -> RemovableHandle:
    """Run `hook(module, grad_input, grad_output)` in the backward of the call of any module.

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
    """Run `hook(module, grad_output)` at the start of the backward of the call of any module.

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
    """Return `text` with all lines except the first indented."""
    first, *rest = text.split("\n")
    return "\n".join([first, *(" " * spaces + line if line.strip() else "" for line in rest)])


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool]:
    """Return device, dtype and `non_blocking` from the arguments of `Module.to`, in any of its forms."""

    def invalid() -> TypeError:
        got = ", ".join([type(a).__name__ for a in args] + [f"{k}={type(v).__name__}" for k, v in kwargs.items()])
        return TypeError(
            f"to() received an invalid combination of arguments - got ({got}), but expected one of: (device=None, "
            "dtype=None, non_blocking=False), (dtype, non_blocking=False), (tensor, non_blocking=False)"
        )

    names = ["device", "dtype", "non_blocking", "copy"]
    first = args[0] if args else kwargs.get("tensor")
    if isinstance(first, Tensor):
        names = ["tensor", "non_blocking", "copy"]
    elif _is_dtype(first):
        names = ["dtype", "non_blocking", "copy"]
    values = dict(zip(names, args, strict=False))
    if len(args) > len(names) or not kwargs.keys() <= {*names, "memory_format"} - values.keys():
        raise invalid()
    values.update(kwargs)
    if "tensor" in values:
        values["device"], values["dtype"] = values["tensor"].device, values["tensor"].dtype
    device, dtype = values.get("device"), values.get("dtype")
    flags = (values.get("non_blocking", False), values.get("copy", False))
    if (dtype is not None and not _is_dtype(dtype)) or not all(isinstance(f, bool) for f in flags):
        raise invalid()
    if flags[1]:
        raise RuntimeError(".to() does not accept copy argument")
    return (None if device is None else as_device(device), None if dtype is None else dtypes.as_dtype(dtype), flags[0])


def _is_dtype(value: Any) -> bool:
    return isinstance(value, dtypes.dtype) or value is float or value is int or value is bool


def _forward_unimplemented(self: Module, *input: Any) -> None:
    """Compute the output; every subclass defines it."""
    raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')


_GLOBAL_HOOKS = _global_forward_hooks, _global_forward_pre_hooks, _global_backward_hooks, _global_backward_pre_hooks


@native.declared
@short("has_hooks", *_GLOBAL_HOOKS)
def _has_hooks(module: Module) -> bool:
    """Return whether hooks run around the calls of a module."""
    own = module._forward_hooks or module._forward_pre_hooks or module._backward_hooks or module._backward_pre_hooks
    return bool(own) or any(_GLOBAL_HOOKS)


# Module -------------------------------------------------------------------------------------------


class Module(Hooking, Saving):
    """The base class of all layers and models.

    A subclass assigns parameters, buffers and other modules in `__init__`, after `super().__init__()`, and computes its
    output in `forward`. Assigned members are registered: `parameters()` iterates over them, `to()` converts them,
    `state_dict()` saves them.

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

    #: Saved in the metadata of `state_dict`, so that `_load_from_state_dict` can convert older versions.
    _version: int = 1

    #: Whether `Module.__init__` passes its arguments to the next class in the MRO.
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
        self.__dict__.update(_initial_state())  # (`__setattr__` needs these entries)
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    # Registration ---------------------------------------------------------------------------------

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Register a tensor that belongs to the module but is not trained, such as a running mean.

        None reserves the name, and is not saved; `state_dict` includes buffers that are `persistent`.

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
        self._buffers[name] = self._run_registration_hooks(_global_buffer_registration_hooks, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Register a parameter as the attribute `name`.

        None reserves the name (a layer without bias).

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
            param = self._run_registration_hooks(_global_parameter_registration_hooks, name, param)
        self._parameters[name] = param

    def add_module(self, name: str, module: Module | None) -> None:
        """Register a child module as the attribute `name`."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{typename(module)} is not a Module subclass")
        self._check_name("module", "_modules", name)
        self._modules[name] = self._run_registration_hooks(_global_module_registration_hooks, name, module)

    def register_module(self, name: str, module: Module | None) -> None:
        """Alias of `add_module`."""
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

    def _run_registration_hooks(self, hooks: OrderedDict[int, Hook], name: str, value: Any) -> Any:
        """Return `value`, or its replacement by the global registration hooks."""
        for hook in hooks.values():
            replaced = hook(self, name, value)
            if replaced is not None:
                value = replaced
        return value

    @native.declared
    @short("member")
    def __getattr__(self, name: str) -> Any:
        # Called only for names that are not in `__dict__`. Unrolled for speed: every forward() gets its parameters and
        # modules here.
        members = self.__dict__
        if "_parameters" in members:  # (not before `__init__`)
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
        # By the type of the value, or by the name of a registered member: parameter, module, buffer, attribute.
        members = self.__dict__
        parameters = members.get("_parameters")
        if isinstance(value, Tensor) and isinstance(value, Parameter):
            if parameters is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._remove_elsewhere(name, "_parameters")
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
            self._remove_elsewhere(name, "_modules")
            members["_modules"][name] = self._run_registration_hooks(_global_module_registration_hooks, name, value)
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

    def _remove_elsewhere(self, name: str, registry: str) -> None:
        """Remove `name` from `__dict__` and all registries except `registry`."""
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
        return sorted(name for name in names if not name[0].isdigit())  # without "0", "1" … of `Sequential`

    # Access by path -------------------------------------------------------------------------------

    def get_submodule(self, target: str) -> Module:
        """Return the module at a path such as "features.0"; this one for "".

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
        """Set the module at a path such as "features.0".

        With `strict` a module must exist at the path.

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

        Example:
            >>> model = torch.nn.Sequential(torch.nn.BatchNorm1d(2))
            >>> model.get_parameter("0.weight").shape, model.get_buffer("0.running_var")
            (torch.Size([2]), tensor([1., 1.]))
        """
        path, _, name = target.rpartition(".")
        param = self.get_submodule(path)._member(name)
        if not isinstance(param, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return param

    def get_buffer(self, target: str) -> Tensor:
        """Return the buffer at a path such as "norm.running_mean"."""
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

    # Iteration over members -----------------------------------------------------------------------

    def _named_members(
        self,
        get_members_fn: Callable[[Module], Iterable[tuple[str, Any]]],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        """Yield (path, member) of this module and, if `recurse`, of its submodules, without None."""
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
        """Yield the parameters that `named_parameters` yields; with `recurse=False` without those of submodules."""
        for _, param in self.named_parameters(recurse=recurse):
            yield param

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Yield (path, parameter).

        A shared parameter is yielded only once, with its first path, unless `remove_duplicate` is False.

        Example:
            >>> model = torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.BatchNorm1d(1, affine=False))
            >>> [(name, tuple(p.shape)) for name, p in model.named_parameters()]
            [('0.weight', (1, 2)), ('0.bias', (1,))]
            >>> [name for name, _ in model.named_buffers()]
            ['1.running_mean', '1.running_var', '1.num_batches_tracked']
        """
        yield from self._named_members(lambda module: module._parameters.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Yield the buffers that `named_buffers` yields; with `recurse=False` without those of submodules."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Yield (path, buffer); the arguments are those of `named_parameters`."""
        yield from self._named_members(lambda module: module._buffers.items(), prefix, recurse, remove_duplicate)

    def children(self) -> Iterator[Module]:
        """Yield the direct submodules, each once."""
        for _, module in self.named_children():
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Yield (name, module) of the direct submodules, each once.

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
        """Yield this module and all submodules, each once unless `remove_duplicate` is False."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Yield (path, module) of this module and all submodules, parents first.

        `memo` has modules to skip; `prefix` is the path of this module.

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
        """Call `fn` on all submodules, then on this module, and return this module.

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
        """Set training mode of this module and all submodules, which affects dropout and batch norm; return self.

        Example:
            >>> model = torch.nn.Sequential(torch.nn.Dropout())
            >>> model.eval()(torch.ones(3)), model.train()[0].training
            (tensor([1., 1., 1.]), True)
        """
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Set evaluation mode, as `train(False)`; return self."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set `requires_grad` of all parameters (False freezes them); return self."""
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set the gradients of all parameters to None, or to zeros with `set_to_none=False`.

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
        """Apply `fn` to the data of all parameters and their gradients, and to all buffers."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        overwrite = (
            _conversion.get_overwrite_module_params_on_conversion()
            and not _conversion.get_swap_module_params_on_conversion()
        )
        for name, param in self._parameters.items():
            if param is None:
                continue
            with no_grad():
                data = fn(param)
                if overwrite or data.is_meta is not param.is_meta:
                    converted = Parameter(data, param.requires_grad)
                    if param.grad is not None:
                        converted.grad = fn(param.grad).requires_grad_(param.grad.requires_grad)
                    self._parameters[name] = converted
                    continue
                param.data = data  # (optimizers reference the parameter object)
                if param.grad is not None:
                    param.grad.data = fn(param.grad)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Convert parameters and buffers in place and return self.

        The forms are `to(device, dtype, non_blocking)`, `to(dtype, non_blocking)` and `to(tensor,
        non_blocking)`. Only floating-point members change their dtype.

        Example:
            >>> layer = torch.nn.Linear(2, 2)
            >>> layer.to("cpu", torch.float64).weight.dtype, layer.float().weight.dtype, layer.half().weight.dtype
            (torch.float64, torch.float32, torch.float16)
        """
        device, dtype, non_blocking = _parse_to(*args, **kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
            )
        if dtype is not None and dtype.is_complex:
            warn(
                "Complex modules are a new feature under active development whose design may change, and some modules "
                "might not work as expected when using complex tensors as parameters or buffers."
            )
        memory_format = kwargs.get("memory_format")

        def converted(t: Tensor) -> Tensor:
            if t.is_meta and device == cpu:
                raise NotImplementedError(
                    "Cannot copy out of meta tensor; no data! Please use torch.nn.Module.to_empty() instead of "
                    "torch.nn.Module.to() when moving module from meta to a different device."
                )
            new_dtype = dtype if t.is_floating_point() or t.is_complex() else None
            if memory_format is not None and t.dim() in (4, 5):
                return t.to(device, new_dtype, non_blocking, memory_format=memory_format)
            return t.to(device, new_dtype, non_blocking)

        return self._apply(converted)

    def type(self, dst_type: Any) -> Self:
        """Convert all parameters and buffers, including those that are not floating point; return self."""
        return self._apply(lambda t: t.type(dst_type))

    def float(self) -> Self:
        """Convert floating-point parameters and buffers to float32 and return self."""
        return self._to_floating(dtypes.float32)

    def double(self) -> Self:
        """Convert floating-point parameters and buffers to float64 and return self."""
        return self._to_floating(dtypes.float64)

    def half(self) -> Self:
        """Convert floating-point parameters and buffers to float16 and return self."""
        return self._to_floating(dtypes.float16)

    def bfloat16(self) -> Self:
        """Convert floating-point parameters and buffers to bfloat16 (needs the extra `bf16`)."""
        return self._to_floating(dtypes.bfloat16)

    def _to_floating(self, dtype: dtypes.dtype) -> Self:
        return self._apply(lambda t: t.to(dtype) if t.is_floating_point() else t)

    def cpu(self) -> Self:
        """Move parameters and buffers to the CPU and return self."""
        return self._apply(lambda t: t.cpu())

    def cuda(self, device: Any = None) -> Self:
        """Move parameters and buffers to a CUDA device and return self."""
        return self.to("cuda" if device is None else device)

    def to_empty(self, *, device: Any, recurse: bool = True) -> Self:
        """Move parameters and buffers to uninitialized memory on `device`, and return self."""
        return self._apply(lambda t: empty_like(t, device=device), recurse=recurse)

    def share_memory(self) -> Self:
        """Move parameters, gradients and buffers to memory that forked processes share, and return self.

        See `Tensor.share_memory_`.
        """
        for param in self.parameters():
            param.share_memory_()
            if param.grad is not None:
                param.grad.share_memory_()
        for buffer in self.buffers():
            buffer.share_memory_()
        return self

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile `forward` in place; arguments as for `torch.compile`.

        Example:
            >>> layer = torch.nn.ReLU()
            >>> layer.compile()
            >>> layer(torch.tensor([-1.0, 1.0]))
            tensor([0., 1.])
        """
        package: Any = sys.modules["tinytorch"]  # (the compiler imports this module)
        self.__dict__["forward"] = package.compile(types.MethodType(type(self).forward, self), *args, **kwargs)

    # The call -------------------------------------------------------------------------------------

    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        """Run `forward` and the hooks before and after it."""
        try:
            return self._call_with_hooks(args, kwargs) if _has_hooks(self) else self.forward(*args, **kwargs)
        except Exception:
            leave()  # (its notes name the module)
            raise

    __call__: Callable[..., Any] = _call_impl

    def _call_with_hooks(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], forward: Callable[..., Any] | None = None
    ) -> Any:
        """Run the hooks around `forward`, or around a function that does the same."""
        result = None
        # Global hooks run before those of the module.
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
            result = (forward or self.forward)(*args, **kwargs)
            for number, hook in forward_hooks.items():
                run(number, hook)
            if around is not None:
                if not isinstance(result, (Tensor, tuple)):
                    warn(
                        "For backward hooks to be called, module output should be a Tensor or a "
                        f"tuple of Tensors but received {type(result)}"
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
                        warn(
                            "module forward hook with ``always_call=True`` raised an exception "
                            f"that was silenced as another error was raised in forward: {error}"
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
        """Return the full backward hooks, and the deprecated ones on a single node."""
        full: list[Hook] = []
        on_node: list[Hook] = []
        for is_full, hooks in (
            (_global_is_full_backward_hook, _global_backward_hooks),
            (self._is_full_backward_hook, self._backward_hooks),
        ):
            (full if is_full else on_node).extend(hooks.values())
        return full, on_node

    def _get_backward_pre_hooks(self) -> list[Hook]:
        return [*_global_backward_pre_hooks.values(), *self._backward_pre_hooks.values()]

    # Pickling -------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__.copy()

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Entries missing in an older pickle get their initial value.
        self.__dict__.update({**_initial_state(), **state})

    # Printing -------------------------------------------------------------------------------------

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """Return the settings that `repr` shows besides the submodules.

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


def _initial_state() -> dict[str, Any]:
    """Return the initial `__dict__` of a module, under PyTorch's names, which programs use."""
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
