"""States of models and optimizers under portable names, independent of wrappers and of the number of processes.

Optimizers number their parameters; here their states are keyed by the parameters' names. A model in
`DistributedDataParallel`, or a compiled one, has the same names as the model without the wrapper.
"""

from __future__ import annotations

import collections
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

from tinytorch.autograd.grad_mode import no_grad
from tinytorch.core.tensor import Tensor
from tinytorch.distributed.checkpoint.planners import set_element
from tinytorch.distributed.data_parallel import DistributedDataParallel
from tinytorch.distributed.groups import get_rank, is_initialized
from tinytorch.distributed.objects import broadcast_object_list
from tinytorch.nn.modules.module import Module, _IncompatibleKeys
from tinytorch.ops.create import zeros_like
from tinytorch.optim.optimizer import Optimizer

__all__ = [
    "StateDictOptions", "get_model_state_dict", "get_optimizer_state_dict", "get_state_dict", "set_model_state_dict",
    "set_optimizer_state_dict", "set_state_dict",
]  # fmt: skip

State = dict[str, Any]
Optimizers = Optimizer | Iterable[Optimizer]


@dataclass
class StateDictOptions:
    """Options for getting and setting states.

    Args:
        full_state_dict: whole tensors; tinytorch has no sharded ones.
        cpu_offload: with `full_state_dict`, only rank 0 gets the state, the others get an empty one.
        ignore_frozen_params: omit the model's parameters that require no gradient.
        strict: raise an error for missing entries when a state is set.
        broadcast_from_rank0: set the state of rank 0 on all ranks; requires `full_state_dict`.
        flatten_optimizer_state_dict: one flat dict of optimizer states, with keys such as "state.weight.exp_avg".
        keep_submodule_prefixes, dsd_fqn_modifiers: accepted, without effect.
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


def _checked(options: StateDictOptions | None) -> StateDictOptions:
    options = options or StateDictOptions()
    if options.broadcast_from_rank0 and not options.full_state_dict:
        raise ValueError("full_state_dict must be True when broadcast_from_rank0 is True.")
    return options


def _name(model: Module, name: str) -> str:
    """Return a name in a model's state without the parts that wrappers add."""
    parts = []
    module: Any = model
    for part in name.split("."):
        wrapped = isinstance(module, DistributedDataParallel) and part == "module"
        if not wrapped and part not in ("_orig_mod", "_checkpoint_wrapped_module"):
            parts.append(part)
        module = getattr(module, part, None)
    return ".".join(parts)


def _as_tuple(optimizers: Optimizers) -> tuple[Optimizer, ...]:
    return (optimizers,) if isinstance(optimizers, Optimizer) else tuple(optimizers)


def _for_this_rank(state: State, options: StateDictOptions) -> State:
    """Return the state; an empty one on other ranks than 0 if only rank 0 gets it."""
    only_rank0 = options.full_state_dict and options.cpu_offload and is_initialized()
    return {} if only_rank0 and get_rank() else state


def _from_rank0(state: State, options: StateDictOptions) -> State:
    if options.broadcast_from_rank0:
        objects = [state]
        broadcast_object_list(objects, src=0)
        state = objects[0]
    return state


# Models -------------------------------------------------------------------------------------------


def get_model_state_dict(
    model: Module, *, submodules: set[Module] | None = None, options: StateDictOptions | None = None
) -> State:
    """Return `model.state_dict()` with the names of the model without wrappers.

    Example:
        >>> from tinytorch.distributed.checkpoint.state_dict import get_model_state_dict
        >>> list(get_model_state_dict(torch.compile(torch.nn.Linear(2, 3))))
        ['weight', 'bias']
    """
    if submodules:
        raise NotImplementedError("get_model_state_dict: submodules is deprecated: choose from the state by name")
    options = _checked(options)
    with no_grad():
        state = {_name(model, name): value for name, value in model.state_dict().items()}
    if options.ignore_frozen_params:
        for name, p in model.named_parameters():
            if not p.requires_grad:
                state.pop(_name(model, name))
    if not (state or options.ignore_frozen_params):
        _refuse_empty(options)
    return _for_this_rank(state, options)


def _refuse_empty(options: StateDictOptions) -> None:
    if options.strict and not options.broadcast_from_rank0 and not (options.cpu_offload and options.full_state_dict):
        raise RuntimeError(
            "The option indicates that model state_dict is required to save or load, but model state_dict is empty."
        )


def set_model_state_dict(
    model: Module, model_state_dict: State, *, options: StateDictOptions | None = None
) -> _IncompatibleKeys:
    """Load a state of `get_model_state_dict` into a model.

    Raises:
        RuntimeError: names are missing or unexpected, or the state is empty; unless `strict` is False.

    Example:
        >>> from tinytorch.distributed.checkpoint.state_dict import set_model_state_dict
        >>> model = torch.compile(torch.nn.Linear(2, 1, bias=False))
        >>> set_model_state_dict(model, {"weight": torch.ones(1, 2)})
        <All keys matched successfully>
        >>> model(torch.ones(1, 2))
        tensor([[2.]], grad_fn=<MmBackward0>)
    """
    options = _checked(options)
    if not model_state_dict:
        _refuse_empty(options)
        if not options.broadcast_from_rank0:
            return _IncompatibleKeys([], [])
    state = dict(_from_rank0(model_state_dict, options))
    for name in model.state_dict():
        portable = _name(model, name)
        if portable != name:
            if portable not in state and options.strict:
                raise RuntimeError(f"Missing key: {portable}.")
            if portable in state:
                state[name] = state.pop(portable)
    return model.load_state_dict(state, strict=options.strict)


# Optimizers ---------------------------------------------------------------------------------------


def _initialize(optimizer: Optimizer) -> None:
    """Create the state of an optimizer without one, by a step with gradients and learning rates of 0."""
    params = list(chain.from_iterable(group["params"] for group in optimizer.param_groups))
    if optimizer.state or any(p.grad is not None for p in params):
        return  # the state exists, or the optimizer has none, as after steps of plain SGD
    for p in params:
        if p.requires_grad:
            p.grad = zeros_like(p)
    rates = [group.get("lr") for group in optimizer.param_groups]
    for group, rate in zip(optimizer.param_groups, rates, strict=True):
        if rate is not None:
            group["lr"] = zeros_like(rate) if isinstance(rate, Tensor) else 0.0
    optimizer.step(closure=None)
    for group, rate in zip(optimizer.param_groups, rates, strict=True):
        if rate is not None:
            group["lr"] = rate
    optimizer.zero_grad(set_to_none=True)


def get_optimizer_state_dict(
    model: Module,
    optimizers: Optimizers,
    *,
    submodules: set[Module] | None = None,
    options: StateDictOptions | None = None,
) -> State:
    """Return the state of a model's optimizers, keyed by the names of parameters instead of numbers.

    State that the first step would create is created.

    Returns:
        "state", by name, and "param_groups"; with `flatten_optimizer_state_dict` one flat dict.

    Example:
        >>> from tinytorch.distributed.checkpoint.state_dict import get_optimizer_state_dict
        >>> model = torch.nn.Linear(2, 1)
        >>> state = get_optimizer_state_dict(model, torch.optim.Adam(model.parameters()))
        >>> state["param_groups"][0]["params"], list(state["state"]["bias"])
        (['weight', 'bias'], ['step', 'exp_avg', 'exp_avg_sq'])
    """
    several, options = _as_tuple(optimizers), _checked(options)
    if not several:
        raise RuntimeError("Optimizers are not passed in but optim_only is set to True.")
    with no_grad():
        state = _optimizers_state(model, several)
    return _for_this_rank(_flat(state) if options.flatten_optimizer_state_dict else state, options)


def _optimizers_state(model: Module, optimizers: tuple[Optimizer, ...]) -> State:
    names = {p: _name(model, name) for name, p in model.named_parameters()}
    merged: State = {"state": {}, "param_groups": []}
    for optimizer in optimizers:
        _initialize(optimizer)
        state = optimizer.state_dict()
        name_of = {
            number: names[p]
            for group, packed in zip(optimizer.param_groups, state["param_groups"], strict=True)
            for number, p in zip(packed["params"], group["params"], strict=True)
        }
        merged["state"].update({name_of[number]: values for number, values in state["state"].items()})
        for group in state["param_groups"]:
            merged["param_groups"].append({**group, "params": [name_of[number] for number in group["params"]]})
    return merged


def _flat(state: State) -> State:
    def leaves(prefix: str, nested: State) -> Iterator[tuple[str, Any]]:
        for key, value in nested.items():
            if isinstance(value, dict):
                yield from leaves(f"{prefix}.{key}", value)
            elif isinstance(value, (Tensor, int, float)):
                yield f"{prefix}.{key}", value
            else:
                raise NotImplementedError(
                    "Flattening optimizer state_dict only supports tensor, int, float, dict states now. "
                    f"Type is {type(value)}."
                )

    flat = dict(leaves("state", state["state"]))
    for group in state["param_groups"]:
        for name in group["params"]:
            flat.update({f"param_groups.{name}.{key}": value for key, value in group.items() if key != "params"})
    return flat


def set_optimizer_state_dict(
    model: Module, optimizers: Optimizers, optim_state_dict: State, *, options: StateDictOptions | None = None
) -> None:
    """Load a state of `get_optimizer_state_dict`, in either form, into a model's optimizers.

    Raises:
        RuntimeError: a parameter that requires a gradient has no saved state, unless `strict` is False; or the state is
            empty.

    Example:
        >>> from tinytorch.distributed.checkpoint.state_dict import get_optimizer_state_dict, set_optimizer_state_dict
        >>> model = torch.nn.Linear(2, 1)
        >>> saved = get_optimizer_state_dict(model, torch.optim.Adam(model.parameters(), lr=0.5))
        >>> optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        >>> set_optimizer_state_dict(model, optimizer, saved)
        >>> optimizer.param_groups[0]["lr"]
        0.5
    """
    several, options = _as_tuple(optimizers), _checked(options)
    if not several:
        raise RuntimeError("Optimizers are not passed in but optim_only is set to True.")
    if not optim_state_dict and not options.broadcast_from_rank0:
        raise RuntimeError(
            "The option indicates that model state_dict is required to save, or load but optim state_dict is empty. "
            f"{optim_state_dict}"
        )
    state = _from_rank0(optim_state_dict, options)
    names: dict[Any, list[str]] = collections.defaultdict(list)  # (a shared parameter has several)
    for name, p in model.named_parameters(remove_duplicate=False):
        names[p].append(_name(model, name))
    for optimizer in several:
        _initialize(optimizer)
        part = _split(optimizer, names, state, options.strict) if "state" in state else _unflat(optimizer, names, state)
        optimizer.load_state_dict(part)


def _split(optimizer: Optimizer, names: dict[Any, list[str]], state: State, strict: bool) -> State:
    """Return the part of a state for an optimizer's parameters."""
    if all(isinstance(key, int) for key in state["state"]) and any(
        isinstance(number, int) for group in state["param_groups"] for number in group["params"]
    ):
        return state  # the state of a single optimizer, with numbers
    saved = {name: group for group in state["param_groups"] for name in group["params"]}
    empty = [group for group in state["param_groups"] if not group["params"]]
    part: State = {"state": {}, "param_groups": []}
    for group in optimizer.param_groups:
        params = []
        for p in group["params"]:
            known = [name for name in names[p] if name in saved] or names[p][:1]
            params += known
            for name in known:
                if name in state["state"]:
                    part["state"][name] = state["state"][name]
                elif p.requires_grad and strict and any(state["state"].values()):
                    raise RuntimeError(
                        f"Missing optimizer state for parameter '{name}' in checkpoint. The parameter requires "
                        "gradients but has no saved optimizer state. To load anyway, use "
                        "StateDictOptions(strict=False)."
                    )
        if not params and len(empty) != 1:
            raise ValueError("There are param groups that have zero parameters: only one such group is supported.")
        source: State = next((saved[name] for name in params if name in saved), empty[0] if not params else {})
        part["param_groups"].append({**source, "params": params})
    return part


def _unflat(optimizer: Optimizer, names: dict[Any, list[str]], state: State) -> State:
    """Return an optimizer's part of a state in the form of `_flat`."""

    def values_of(name: str) -> State:
        values: State = {}
        prefix = f"state.{name}."
        for key, value in state.items():
            if key.startswith(prefix):
                set_element(values, tuple(key.removeprefix(prefix).split(".")), value)
        return values

    part: State = {"state": {}, "param_groups": []}
    for group in optimizer.param_groups:
        options = [key for key in group if key != "params"]
        params = []
        for p in group["params"]:
            known = [name for name in names[p] if f"param_groups.{name}.{options[0]}" in state] or names[p][:1]
            params += known
            if p.requires_grad and optimizer.state.get(p):
                part["state"].update({name: values_of(name) for name in known})
        values = {key: state[f"param_groups.{params[0]}.{key}"] for key in options}
        part["param_groups"].append({"params": params, **values})
    return part


# Both ---------------------------------------------------------------------------------------------


def get_state_dict(
    model: Module,
    optimizers: Optimizers,
    *,
    submodules: set[Module] | None = None,
    options: StateDictOptions | None = None,
) -> tuple[State, State]:
    """Return the states of `get_model_state_dict` and `get_optimizer_state_dict` (empty without optimizers)."""
    several = _as_tuple(optimizers)
    state = get_model_state_dict(model, submodules=submodules, options=options)
    return state, get_optimizer_state_dict(model, several, options=options) if several else {}


def set_state_dict(
    model: Module,
    optimizers: Optimizers,
    *,
    model_state_dict: State,
    optim_state_dict: State,
    options: StateDictOptions | None = None,
) -> _IncompatibleKeys:
    """Call `set_optimizer_state_dict` and `set_model_state_dict`, and return the result of the latter."""
    several = _as_tuple(optimizers)
    if several:
        set_optimizer_state_dict(model, several, optim_state_dict, options=options)
    if not model_state_dict and not _checked(options).broadcast_from_rank0:
        return _IncompatibleKeys([], [])
    return set_model_state_dict(model, model_state_dict, options=options)
