"""`ZeroRedundancyOptimizer`: each process stores the optimizer state of its share of the parameters."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.distributed._join import Join, Joinable, JoinHook
from tinytorch.distributed.collectives import _broadcast_coalesced, broadcast
from tinytorch.distributed.groups import _get_default_group
from tinytorch.distributed.objects import gather_object
from tinytorch.ops.create import empty
from tinytorch.optim.optimizer import Optimizer

__all__ = ["ZeroRedundancyOptimizer"]

Group = dict[str, Any]


class _ZeROJoinHook(JoinHook):
    """For a process that has no inputs left: it continues to update its share of the parameters."""

    def __init__(self, zero: ZeroRedundancyOptimizer) -> None:
        self.zero = zero

    def main_hook(self) -> None:
        """Take a step."""
        self.zero.step()


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """An optimizer whose state is distributed over N processes, about 1/N on each.

    Each process updates its share of the parameters, with gradients that are equal on all processes (as after the
    backward of `DistributedDataParallel`), and broadcasts the new values. The results are those of the plain optimizer.
    A share consists of whole parameters: in order of decreasing size, each is assigned to the process with the fewest
    elements.

    Args:
        params: the parameters or parameter groups, of one dtype.
        optimizer_class: the class of the optimizer.
        process_group: the process group; all processes if None.
        parameters_as_bucket_view: store the parameters of a share in one contiguous tensor, so that they are sent in
            one message without a copy.
        overlap_with_ddp: not supported.
        defaults: the optimizer's options.

    Example:
        >>> torch.distributed.init_process_group("gloo", rank=0, world_size=1)
        >>> from tinytorch.distributed.optim import ZeroRedundancyOptimizer
        >>> w = torch.nn.Parameter(torch.ones(2))
        >>> optimizer = ZeroRedundancyOptimizer([w], torch.optim.SGD, lr=0.1, momentum=0.9)
        >>> w.sum().backward()
        >>> optimizer.step()
        >>> w
        Parameter containing:
        tensor([0.9000, 0.9000], requires_grad=True)
        >>> optimizer.consolidate_state_dict()  # on all ranks; rank 0 gets the whole state
        >>> optimizer.state_dict()["state"]
        {0: {'momentum_buffer': tensor([1., 1.])}}
        >>> torch.distributed.destroy_process_group()
    """

    def __init__(
        self,
        params: Any,
        optimizer_class: type[Optimizer],
        process_group: Any = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        if overlap_with_ddp:
            raise NotImplementedError("ZeroRedundancyOptimizer: overlap_with_ddp=True is not supported")
        params = _checked(params)
        self.optim: Any = None  # the optimizer of this process's share
        self.process_group = _get_default_group() if process_group is None else process_group
        self.world_size, self.rank = self.process_group.size(), self.process_group.rank()
        self.parameters_as_bucket_view = parameters_as_bucket_view
        Optimizer.__init__(self, params, defaults)
        Joinable.__init__(self)
        self._all_state_dicts: list[dict[str, Any]] = []
        self.optim = optimizer_class(self._partition_parameters()[self.rank], **defaults)
        _copy_options(self.optim.param_groups, self.param_groups)
        self._assign_shares()

    def add_param_group(self, param_group: Group) -> None:
        """Add a parameter group; all processes have to add the same."""
        super().add_param_group(param_group)
        if self.optim is not None:
            self.optim.add_param_group(self._partition_parameters()[self.rank][-1])
            _copy_options(self.optim.param_groups[-1:], self.param_groups[-1:])
            self._assign_shares()

    def _partition_parameters(self) -> list[list[Group]]:
        """Return for each process the parameter groups of its share."""
        shares: list[list[Group]] = [[] for _ in range(self.world_size)]
        sizes = [0] * self.world_size
        for group in self.param_groups:
            for share in shares:
                share.append({**group, "params": []})
            for p in sorted(group["params"], key=lambda p: -p.numel()):
                smallest = sizes.index(min(sizes))
                shares[smallest][-1]["params"].append(p)
                sizes[smallest] += p.numel()
        for group in chain.from_iterable(shares):
            group.pop("param_names", None)  # (the names are those of the whole group)
        return shares

    def _assign_shares(self) -> None:
        """Assign the parameters to the processes; with `parameters_as_bucket_view` move each share to one tensor."""
        self._shares = [[p for group in share for p in group["params"]] for share in self._partition_parameters()]
        if self.parameters_as_bucket_view:
            self._buckets = [_flattened(share) for share in self._shares]

    # The step -------------------------------------------------------------------------------------

    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        """Update this process's share, and broadcast all shares; return the closure's loss, or None."""
        Join.notify_join_context(self)
        _copy_options(self.param_groups, self.optim.param_groups)
        loss = self.optim.step(**kwargs) if closure is None else self.optim.step(closure=closure, **kwargs)
        _copy_options(self.optim.param_groups, self.param_groups)
        self._broadcast_shares()
        return loss

    def _broadcast_shares(self) -> None:
        """Broadcast the parameters of each process's share to the others."""
        group = self.process_group
        if not self.parameters_as_bucket_view:
            for rank, share in enumerate(self._shares):
                _broadcast_coalesced(group, share, src=rank)
            return
        works = [broadcast(bucket, group=group, group_src=i, async_op=True) for i, bucket in enumerate(self._buckets)]
        for work, share in zip(works, self._shares, strict=True):
            assert work is not None
            work.wait()
            for p in share:
                p._bump()

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Return the hook for a process that has no inputs left: it takes part in the others' steps."""
        return _ZeROJoinHook(self)

    @property
    def join_device(self) -> Any:
        """Return the device of the parameters."""
        return self.param_groups[0]["params"][0].device

    @property
    def join_process_group(self) -> Any:
        """Return the process group."""
        return self.process_group

    # The state ------------------------------------------------------------------------------------

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Gather the whole state on one rank, for its `state_dict`; all ranks have to call this method."""
        _copy_options(self.param_groups, self.optim.param_groups)
        here = self.rank == to
        self._all_state_dicts = [{}] * self.world_size if here else []
        state = self.optim.state_dict()
        gather_object(state, self._all_state_dicts if here else None, group=self.process_group, group_dst=to)

    def state_dict(self) -> dict[str, Any]:
        """Return the state that `consolidate_state_dict` has gathered last, in the form of the plain optimizer's."""
        if not self._all_state_dicts:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank. Please call "
                f"`consolidate_state_dict(to={self.rank})` on all ranks beforehand if you meant to save the global "
                "state."
            )
        number = self._numbers()
        state = {}
        for local, share in zip(self._all_state_dicts, self._shares, strict=True):
            state.update({number[share[i]]: values for i, values in local["state"].items()})
        return {**super().state_dict(), "state": dict(sorted(state.items()))}

    def _numbers(self) -> dict[Any, int]:
        """Return for each parameter its number in `state_dict`."""
        return {p: i for i, p in enumerate(chain.from_iterable(group["params"] for group in self.param_groups))}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load this process's share of a whole state, of `state_dict` or of the plain optimizer.

        Args:
            state_dict: the same on all processes; it may have been saved by another number of processes.
        """
        super().load_state_dict({**state_dict, "state": {}})
        number = self._numbers()
        share = {i: state_dict["state"].get(number[p]) for i, p in enumerate(self._shares[self.rank])}
        groups = self.optim.state_dict()["param_groups"]
        _copy_options(self.param_groups, groups)
        state = {i: values for i, values in share.items() if values is not None}
        self.optim.load_state_dict({"state": state, "param_groups": groups})


def _checked(params: Any) -> list[Any]:
    """Return parameters, or groups of them, as a list."""
    kind = "torch.Tensor" if isinstance(params, Tensor) else type(params).__name__
    if isinstance(params, Tensor) or not hasattr(params, "__iter__"):
        raise TypeError(f"`params` argument should be an iterable of Tensors or dicts, but got {kind}")
    entries = list(params)
    if not entries:
        raise ValueError("ZeroRedundancyOptimizer got an empty parameter list")
    if all(isinstance(entry, dict) for entry in entries):
        if not all("params" in entry for entry in entries):
            raise ValueError(
                "Each parameter group passed-in via `params` must have a 'params' key mapping to the parameters in "
                "the group"
            )
        entries = [{**group, "params": list(group["params"])} for group in entries]
        tensors = list(chain.from_iterable(group["params"] for group in entries))
    elif all(isinstance(entry, Tensor) for entry in entries):
        tensors = entries
    else:
        raise TypeError("`params` argument should be an iterable of Tensors or dicts")
    types = list(dict.fromkeys(tensor.type() for tensor in tensors))
    if len(types) > 1:
        raise ValueError(
            "ZeroRedundancyOptimizer only supports using the same dense type for all parameters but got both "
            f"{types[0]} and {types[1]}"
        )
    return entries


def _copy_options(source: list[Group], target: list[Group]) -> None:
    """Copy the options of parameter groups to other groups."""
    for source_group, group in zip(source, target, strict=True):
        group.update({key: value for key, value in source_group.items() if key not in ("params", "param_names")})


def _flattened(params: list[Any]) -> Tensor:
    """Move parameters to one new 1-d tensor, of which they become views, and return it."""
    flat = empty(sum(p.numel() for p in params), dtype=params[0].dtype if params else None)
    end = 0
    for p in params:
        begin, end = end, end + p.numel()
        part = flat[begin:end].view_as(p)
        part.copy_(p.detach())
        p.data = part
    return flat
