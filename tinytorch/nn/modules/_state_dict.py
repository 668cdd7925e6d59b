"""The state dict of a module: saving, loading, and their hooks."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from collections.abc import Mapping
from typing import Any

from tinytorch.autograd.grad_mode import no_grad
from tinytorch.autograd.hooks import RemovableHandle
from tinytorch.core.tensor import Tensor
from tinytorch.core.warning import warn
from tinytorch.nn.modules._hooks import _HOME, Hook, _register, _WrappedHook, of_module
from tinytorch.nn.parameter import Parameter

_EXTRA_STATE_KEY_SUFFIX = "_extra_state"


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """The result of `load_state_dict`: missing and unexpected keys."""

    __slots__ = ()
    __module__ = _HOME

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


@of_module
class Saving:
    """The part of `Module` that saves and loads its state."""

    _version: int
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _non_persistent_buffers_set: set[str]
    _modules: dict[str, Any]
    _state_dict_hooks: OrderedDict[int, Hook]
    _state_dict_pre_hooks: OrderedDict[int, Hook]
    _load_state_dict_pre_hooks: OrderedDict[int, Hook]
    _load_state_dict_post_hooks: OrderedDict[int, Hook]

    def get_extra_state(self) -> Any:
        """Return state besides tensors, for `state_dict`; a subclass defines it and `set_extra_state`, see there."""
        raise RuntimeError(
            "Reached a code path in Module.get_extra_state() that should never be called: a subclass defines it."
        )

    def set_extra_state(self, state: Any) -> None:
        """Restore the state that `get_extra_state` returned.

        Example:
            >>> class Counted(torch.nn.Module):
            ...     count = 3
            ...     def get_extra_state(self):
            ...         return self.count
            ...     def set_extra_state(self, state):
            ...         self.count = state
            >>> counted = Counted()
            >>> dict(counted.state_dict())
            {'_extra_state': 3}
            >>> counted.load_state_dict({"_extra_state": 7}), counted.count
            (<All keys matched successfully>, 7)
        """
        raise RuntimeError(
            "Reached a code path in Module.set_extra_state() that should never be called: a subclass defines it."
        )

    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """Return an ordered dictionary path -> tensor of all parameters and persistent buffers.

        The tensors share memory with the module.

        `destination` is a dictionary to fill, `prefix` that of all paths; `keep_vars` gives the parameters themselves
        rather than detached tensors. (Positional arguments, in this order, are deprecated.)

        Example:
            >>> from tinytorch import nn
            >>> list(nn.Sequential(nn.Linear(4, 2), nn.ReLU()).state_dict())
            ['0.weight', '0.bias']
        """
        if args:
            warn("Positional args are being deprecated, use kwargs instead.", FutureWarning)
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
        """Add this module's parameters, persistent buffers and extra state, without those of submodules."""
        for name, tensor in self._own_state().items():
            destination[prefix + name] = tensor if keep_vars else tensor.detach()
        if _overrides(self, "get_extra_state"):
            destination[prefix + _EXTRA_STATE_KEY_SUFFIX] = self.get_extra_state()

    def _own_state(self) -> dict[str, Tensor]:
        """Return this module's parameters and persistent buffers, without those of submodules."""
        non_persistent = self._non_persistent_buffers_set
        own: dict[str, Tensor] = {k: p for k, p in self._parameters.items() if p is not None}
        own.update((k, b) for k, b in self._buffers.items() if b is not None and k not in non_persistent)
        return own

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> _IncompatibleKeys:
        """Load parameters and buffers from a dictionary as returned by `state_dict`.

        With `strict` its keys must be exactly those of the module; `assign` assigns the tensors (with their dtypes)
        instead of copying their values. The result is the named tuple `(missing_keys, unexpected_keys)`.

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
        state: Any = OrderedDict(state_dict)  # a copy, since hooks may rename keys
        if metadata is not None:
            state._metadata = metadata

        _load_all(self, state, "", metadata, assign, (missing, unexpected, errors))
        if strict:
            for problem, keys in (("Unexpected", unexpected), ("Missing", missing)):
                if keys:
                    listed = ", ".join(f'"{key}"' for key in keys)
                    errors.insert(0, f"{problem} key(s) in state_dict: {listed}. ")
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
        """Load this module's parameters and buffers, and collect problems in the three lists.

        A user's class overrides it to read state dicts of its earlier versions (`local_metadata["version"]`).
        """
        self._convert_earlier(state_dict, prefix, local_metadata.get("version"), error_msgs)
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

    def _convert_earlier(self, state_dict: Any, prefix: str, version: int | None, error_msgs: list[str]) -> None:
        """Change the entries of a state dict that an earlier version of the class saved."""

    def _load_member(self, name: str, tensor: Tensor, key: str, loaded: Any, assign: bool) -> str | None:
        """Set the member `tensor` to `loaded`; return an error message, or None."""
        if not isinstance(loaded, Tensor):
            return (
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like '
                f"object from checkpoint but received {type(loaded)}"
            )
        if len(tensor.shape) == 0 and len(loaded.shape) == 1 and loaded.shape[0] == 1:
            loaded = loaded.squeeze(0)  # old checkpoints store 0-d tensors as vectors of one element
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
        except Exception as error:  # (reported together with all other errors)
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
        """Register a state dict hook whose result, unless None, replaces the dictionary."""
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was "
                "previously registered via register_state_dict_post_hook"
            )
        return _register(self._state_dict_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Run a hook before the module's parameters and buffers are loaded.

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


def _overrides(module: Saving, method: str) -> bool:
    return getattr(type(module), method) is not getattr(Saving, method)


def _load_all(
    module: Saving,
    state: Any,
    prefix: str,
    metadata: Any,
    assign: bool,
    problems: tuple[list[str], list[str], list[str]],
) -> None:
    """Load a module and its submodules; `problems` collects missing keys, unexpected keys and errors."""
    local_metadata = {} if metadata is None else metadata.get(prefix[:-1], {})
    if assign:
        local_metadata["assign_to_params_buffers"] = True
    # Keys are always collected here; the caller ignores them if not strict.
    module._load_from_state_dict(state, prefix, local_metadata, True, *problems)
    for name, child in module._modules.items():
        if child is not None:
            path = f"{prefix}{name}."
            child_state = {k: v for k, v in state.items() if k.startswith(path)}
            _load_all(child, child_state, path, metadata, assign, problems)
    incompatible = _IncompatibleKeys(*problems[:2])
    for hook in module._load_state_dict_post_hooks.values():
        if hook(module, incompatible) is not None:
            raise AssertionError(
                "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new values, "
                "if incompatible_keys need to be modified, it should be done inplace."
            )
