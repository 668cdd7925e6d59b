"""States of models and optimizers under names that do not depend on how many processes train them.

PyTorch's optimizers number parameters; here their states have the parameters' names, and those of a model in
`DistributedDataParallel`, or compiled, are the names that it would have without.
"""

from __future__ import annotations

import collections
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

from tinytorch.autograd.grad_mode import no_grad
from tinytorch.core.tensor import Tensor
from tinytorch.distributed.groups import get_rank, is_initialized
from tinytorch.distributed.objects import broadcast_object_list
from tinytorch.nn.modules.module import Module, _IncompatibleKeys
from tinytorch.nn.parallel.distributed import DistributedDataParallel
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
    """How states are got and set.

    Args:
        full_state_dict: all of each tensor; here no tensor is ever spread over ranks.
        cpu_offload: with `full_state_dict`, only rank 0 gets the state, the others an empty one.
        ignore_frozen_params: leave out the model's parameters that need no gradients.
        keep_submodule_prefixes: whether names of `submodules` begin with theirs.
        strict: raise an error for what is missing when a state is set.
        broadcast_from_rank0: set the state that rank 0 has on all ranks; it needs `full_state_dict`.
        flatten_optimizer_state_dict: optimizers' states as one dict, "state.weight.exp_avg".
        dsd_fqn_modifiers: accepted; it has no meaning here.
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
    """Return a name of a model's state without what wrappers add to it."""
    kept = []
    place: Any = model
    for part in name.split("."):
        wrapped = isinstance(place, DistributedDataParallel) and part == "module"
        if not wrapped and part not in ("_orig_mod", "_checkpoint_wrapped_module"):
            kept.append(part)
        place = getattr(place, part, None)
    return ".".join(kept)


def _several(optimizers: Optimizers) -> tuple[Optimizer, ...]:
    return (optimizers,) if isinstance(optimizers, Optimizer) else tuple(optimizers)


def _here(state: State, options: StateDictOptions) -> State:
    """Return the state, or nothing, where rank 0 alone is to have it."""
    one = options.full_state_dict and options.cpu_offload and is_initialized()
    return {} if one and get_rank() else state


def _from_rank0(state: State, options: StateDictOptions) -> State:
    if options.broadcast_from_rank0:
        held = [state]
        broadcast_object_list(held, src=0)
        state = held[0]
    return state


# Models -------------------------------------------------------------------------------------------


def get_model_state_dict(
    model: Module, *, submodules: set[Module] | None = None, options: StateDictOptions | None = None
) -> State:
    """Return `model.state_dict()` with the names that it has without wrappers.

    Args:
        model: the model, which may be in a `DistributedDataParallel`.
        submodules: only the state of these (deprecated).
        options: see `StateDictOptions`.

    Raises:
        RuntimeError: the state is empty.

    Example:
        >>> from tinytorch.distributed.checkpoint.state_dict import get_model_state_dict
        >>> list(get_model_state_dict(torch.compile(torch.nn.Linear(2, 3))))
        ['weight', 'bias']
    """
    options = _checked(options)
    with no_grad():
        state = {_name(model, name): value for name, value in model.state_dict().items()}
    if submodules:
        state = _only(state, model, submodules, options)
    if options.ignore_frozen_params:
        for name, p in model.named_parameters():
            if not p.requires_grad:
                state.pop(_name(model, name))
    if not (state or submodules or options.ignore_frozen_params):
        _refuse_empty(options)
    return _here(state, options)


def _only(state: State, model: Module, submodules: set[Module], options: StateDictOptions) -> State:
    warnings.warn(
        "Getting submodules only model/optim state_dict is deprecated and will be removed in 2.5. This feature can be "
        "achieved by manually filtering out the state_dict returned from get_state_dict.",
        FutureWarning,
        stacklevel=3,
    )
    found = {}
    for prefix in [f"{_name(model, name)}." for name, module in model.named_modules() if module in submodules]:
        cut = 0 if options.keep_submodule_prefixes else len(prefix)
        found.update({name[cut:]: value for name, value in state.items() if name.startswith(prefix)})
    return found


def _refuse_empty(options: StateDictOptions) -> None:
    if options.strict and not options.broadcast_from_rank0 and not (options.cpu_offload and options.full_state_dict):
        raise RuntimeError(
            "The option indicates that model state_dict is required to save or load, but model state_dict is empty."
        )


def set_model_state_dict(
    model: Module, model_state_dict: State, *, options: StateDictOptions | None = None
) -> _IncompatibleKeys:
    """Load what `get_model_state_dict` returned into a model.

    Args:
        model: the model, which may be in a `DistributedDataParallel`, whether it was when the state was got or not.
        model_state_dict: the state.
        options: see `StateDictOptions`.

    Returns:
        The names that are missing, and those that the model has not.

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
        plain = _name(model, name)
        if plain != name:
            if plain not in state and options.strict:
                raise RuntimeError(f"Missing key: {plain}.")
            if plain in state:
                state[name] = state.pop(plain)
    return model.load_state_dict(state, strict=options.strict)


# Optimizers ---------------------------------------------------------------------------------------


def _initialize(optimizer: Optimizer) -> None:
    """Make the state that the first step would make, by a step that changes no parameter."""
    params = list(chain.from_iterable(group["params"] for group in optimizer.param_groups))
    if optimizer.state or any(p.grad is not None for p in params):
        return  # it is there; or there is none to make, as after steps of SGD
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
    """Return the state of optimizers of a model, with names of parameters instead of numbers.

    State that the first step would make is made.

    Args:
        model: the model.
        optimizers: one, or several, whose states are put together.
        submodules: accepted; it has no meaning here.
        options: see `StateDictOptions`.

    Returns:
        "state", by name, and "param_groups"; or with `flatten_optimizer_state_dict` one dict of all.

    Example:
        >>> from tinytorch.distributed.checkpoint.state_dict import get_optimizer_state_dict
        >>> model = torch.nn.Linear(2, 1)
        >>> state = get_optimizer_state_dict(model, torch.optim.Adam(model.parameters()))
        >>> state["param_groups"][0]["params"], list(state["state"]["bias"])
        (['weight', 'bias'], ['step', 'exp_avg', 'exp_avg_sq'])
    """
    several, options = _several(optimizers), _checked(options)
    if not several:
        raise RuntimeError("Optimizers are not passed in but optim_only is set to True.")
    with no_grad():
        found = _optimizers_state(model, several)
    return _here(_flat(found) if options.flatten_optimizer_state_dict else found, options)


def _optimizers_state(model: Module, optimizers: tuple[Optimizer, ...]) -> State:
    names = {p: _name(model, name) for name, p in model.named_parameters()}
    found: State = {"state": {}, "param_groups": []}
    for optimizer in optimizers:
        _initialize(optimizer)
        state = optimizer.state_dict()
        of_number = {
            number: names[p]
            for group, packed in zip(optimizer.param_groups, state["param_groups"], strict=True)
            for number, p in zip(packed["params"], group["params"], strict=True)
        }
        found["state"].update({of_number[number]: kept for number, kept in state["state"].items()})
        for group in state["param_groups"]:
            found["param_groups"].append({**group, "params": [of_number[number] for number in group["params"]]})
    return found


def _flat(state: State) -> State:
    def leaves(prefix: str, kept: State) -> Iterator[tuple[str, Any]]:
        for key, value in kept.items():
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
    """Load what `get_optimizer_state_dict` returned, in either form, into optimizers of a model.

    Args:
        model: the model.
        optimizers: one, or several, of which each takes what is its own.
        optim_state_dict: the state.
        options: see `StateDictOptions`.

    Raises:
        RuntimeError: a parameter that needs gradients has no saved state, unless `strict` is False; or all is empty.

    Example:
        >>> from tinytorch.distributed.checkpoint.state_dict import get_optimizer_state_dict, set_optimizer_state_dict
        >>> model = torch.nn.Linear(2, 1)
        >>> saved = get_optimizer_state_dict(model, torch.optim.Adam(model.parameters(), lr=0.5))
        >>> optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        >>> set_optimizer_state_dict(model, optimizer, saved)
        >>> optimizer.param_groups[0]["lr"]
        0.5
    """
    several, options = _several(optimizers), _checked(options)
    if not several:
        raise RuntimeError("Optimizers are not passed in but optim_only is set to True.")
    if not optim_state_dict and not options.broadcast_from_rank0:
        raise RuntimeError(
            "The option indicates that model state_dict is required to save, or load but optim state_dict is empty. "
            f"{optim_state_dict}"
        )
    state = _from_rank0(optim_state_dict, options)
    names: dict[Any, list[str]] = collections.defaultdict(list)  # a parameter that is used twice has two
    for name, p in model.named_parameters(remove_duplicate=False):
        names[p].append(_name(model, name))
    for optimizer in several:
        _initialize(optimizer)
        part = _split(optimizer, names, state, options.strict) if "state" in state else _unflat(optimizer, names, state)
        optimizer.load_state_dict(part)


def _split(optimizer: Optimizer, names: dict[Any, list[str]], state: State, strict: bool) -> State:
    """Return the part of a state that is an optimizer's."""
    if all(isinstance(key, int) for key in state["state"]) and any(
        isinstance(number, int) for group in state["param_groups"] for number in group["params"]
    ):
        return state  # an optimizer's own, with numbers
    saved = {name: group for group in state["param_groups"] for name in group["params"]}
    empty = [group for group in state["param_groups"] if not group["params"]]
    found: State = {"state": {}, "param_groups": []}
    for group in optimizer.param_groups:
        params = []
        for p in group["params"]:
            known = [name for name in names[p] if name in saved] or names[p][:1]
            params += known
            for name in known:
                if name in state["state"]:
                    found["state"][name] = state["state"][name]
                elif p.requires_grad and strict and any(state["state"].values()):
                    raise RuntimeError(
                        f"Missing optimizer state for parameter '{name}' in checkpoint. The parameter requires "
                        "gradients but has no saved optimizer state. To load anyway, use "
                        "StateDictOptions(strict=False)."
                    )
        if not params and len(empty) != 1:
            raise ValueError("There are param groups that have zero parameters: only one such group is supported.")
        source: State = next((saved[name] for name in params if name in saved), empty[0] if not params else {})
        found["param_groups"].append({**source, "params": params})
    return found


def _unflat(optimizer: Optimizer, names: dict[Any, list[str]], state: State) -> State:
    """Return an optimizer's part of what `_flat` made."""

    def kept(name: str) -> State:
        found: State = {}
        prefix = f"state.{name}."
        for key, value in state.items():
            if key.startswith(prefix):
                *path, last = key.removeprefix(prefix).split(".")
                place = found
                for part in path:
                    place = place.setdefault(part, {})
                place[last] = value
        return found

    found: State = {"state": {}, "param_groups": []}
    for group in optimizer.param_groups:
        options = [key for key in group if key != "params"]
        params = []
        for p in group["params"]:
            known = [name for name in names[p] if f"param_groups.{name}.{options[0]}" in state] or names[p][:1]
            params += known
            found["state"].update({name: kept(name) for name in known if p.requires_grad and optimizer.state.get(p)})
        values = {key: state[f"param_groups.{params[0]}.{key}"] for key in options}
        found["param_groups"].append({"params": params, **values})
    return found


# Both ---------------------------------------------------------------------------------------------


def get_state_dict(
    model: Module,
    optimizers: Optimizers,
    *,
    submodules: set[Module] | None = None,
    options: StateDictOptions | None = None,
) -> tuple[State, State]:
    """Return what `get_model_state_dict` and `get_optimizer_state_dict` return (nothing for no optimizers)."""
    several = _several(optimizers)
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
    """Do what `set_optimizer_state_dict` and `set_model_state_dict` do, and return what the latter returns."""
    several = _several(optimizers)
    if several:
        set_optimizer_state_dict(model, several, optim_state_dict, options=options)
    if not model_state_dict and not _checked(options).broadcast_from_rank0:
        return _IncompatibleKeys([], [])
    return set_model_state_dict(model, model_state_dict, options=options)
