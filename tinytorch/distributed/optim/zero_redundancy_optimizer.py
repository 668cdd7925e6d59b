"""`ZeroRedundancyOptimizer`: each process keeps the state of its share of the parameters."""

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
    """For a process that has no inputs left: it goes on to update its share."""

    def __init__(self, zero: ZeroRedundancyOptimizer) -> None:
        self.zero = zero

    def main_hook(self) -> None:
        """Take a step."""
        self.zero.step()


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """An optimizer whose state lies on N processes, about 1/N on each.

    Each process updates its share of the parameters, given the gradients that all have alike (as after the backward
    of `DistributedDataParallel`), and gives the others the new values. The numbers are those of the plain optimizer.
    Shares are made of whole parameters, the largest first, each for the process that has least so far.

    Args:
        params: what the optimizer takes, of one dtype.
        optimizer_class: the optimizer.
        process_group: the processes; all if None.
        parameters_as_bucket_view: let the parameters of a share lie one after the other in memory, so that they go as
            one message without a copy.
        overlap_with_ddp: not supported.
        defaults: the optimizer's options.

    Raises:
        TypeError: `params` are no tensors or dicts.
        ValueError: there are none, or they have several dtypes; or there is no group of processes.
        NotImplementedError: `overlap_with_ddp`.

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
        >>> optimizer.consolidate_state_dict()  # all call it; process 0 gets the whole state
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
        self.optim: Any = None  # of this process's share, once there is one
        self.process_group = _get_default_group() if process_group is None else process_group
        self.world_size, self.rank = self.process_group.size(), self.process_group.rank()
        self.parameters_as_bucket_view = parameters_as_bucket_view
        Optimizer.__init__(self, params, defaults)
        Joinable.__init__(self)
        self._all_state_dicts: list[dict[str, Any]] = []
        self.optim = optimizer_class(self._partition_parameters()[self.rank], **defaults)
        _give_options(self.optim.param_groups, self.param_groups)
        self._lay_out()

    def add_param_group(self, param_group: Group) -> None:
        """Add a group of parameters: all processes have to, with the same."""
        super().add_param_group(param_group)
        if self.optim is not None:
            self.optim.add_param_group(self._partition_parameters()[self.rank][-1])
            _give_options(self.optim.param_groups[-1:], self.param_groups[-1:])
            self._lay_out()

    def _partition_parameters(self) -> list[list[Group]]:
        """Return by process the groups of its share."""
        shares: list[list[Group]] = [[] for _ in range(self.world_size)]
        sizes = [0] * self.world_size
        for group in self.param_groups:
            for share in shares:
                share.append({**group, "params": []})
            for p in sorted(group["params"], key=lambda p: -p.numel()):
                smallest = sizes.index(min(sizes))
                shares[smallest][-1]["params"].append(p)
                sizes[smallest] += p.numel()
        for each in chain.from_iterable(shares):
            each.pop("param_names", None)  # (they are those of the whole group)
        return shares

    def _lay_out(self) -> None:
        """Find which parameters each process has; if so wanted, put each share into one piece of memory."""
        self._shares = [[p for group in share for p in group["params"]] for share in self._partition_parameters()]
        if self.parameters_as_bucket_view:
            self._pieces = [_in_one_piece(share) for share in self._shares]

    # The step -------------------------------------------------------------------------------------

    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        """Update the parameters of this process's share, and exchange all; return the closure's loss, or None."""
        Join.notify_join_context(self)
        _give_options(self.param_groups, self.optim.param_groups)
        loss = self.optim.step(**kwargs) if closure is None else self.optim.step(closure=closure, **kwargs)
        _give_options(self.optim.param_groups, self.param_groups)
        self._exchange()
        return loss

    def _exchange(self) -> None:
        """Give all processes the parameters of each one's share."""
        group = self.process_group
        if not self.parameters_as_bucket_view:
            for rank, share in enumerate(self._shares):
                _broadcast_coalesced(group, share, src=rank)
            return
        works = [broadcast(piece, group=group, group_src=i, async_op=True) for i, piece in enumerate(self._pieces)]
        for work, share in zip(works, self._shares, strict=True):
            assert work is not None
            work.wait()
            for p in share:
                p._bump()

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Return what a process does that has no inputs left: it takes the others' steps with them."""
        return _ZeROJoinHook(self)

    @property
    def join_device(self) -> Any:
        """Return the device of the parameters."""
        return self.param_groups[0]["params"][0].device

    @property
    def join_process_group(self) -> Any:
        """Return the processes."""
        return self.process_group

    # The state ------------------------------------------------------------------------------------

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Bring the whole state to one process, for its `state_dict`: all processes have to call it.

        Args:
            to: the process's rank in the group.
        """
        _give_options(self.param_groups, self.optim.param_groups)
        here = self.rank == to
        self._all_state_dicts = [{}] * self.world_size if here else []
        state = self.optim.state_dict()
        gather_object(state, self._all_state_dicts if here else None, group=self.process_group, group_dst=to)

    def state_dict(self) -> dict[str, Any]:
        """Return the state that `consolidate_state_dict` brought here last: that of the plain optimizer.

        Raises:
            RuntimeError: it brought none here.
        """
        if not self._all_state_dicts:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank. Please call "
                f"`consolidate_state_dict(to={self.rank})` on all ranks beforehand if you meant to save the global "
                "state."
            )
        number = self._numbers()
        state = {}
        for local, share in zip(self._all_state_dicts, self._shares, strict=True):
            state.update({number[share[i]]: kept for i, kept in local["state"].items()})
        return {**super().state_dict(), "state": dict(sorted(state.items()))}

    def _numbers(self) -> dict[Any, int]:
        """Return by parameter its number in `state_dict`."""
        return {p: i for i, p in enumerate(chain.from_iterable(group["params"] for group in self.param_groups))}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over this process's share of a whole state, of `state_dict` or of the plain optimizer.

        Args:
            state_dict: the same on all processes; another number of them may have saved it.

        Raises:
            ValueError: its groups are not as many, or not as long, as those of the optimizer.
        """
        super().load_state_dict({**state_dict, "state": {}})
        number = self._numbers()
        mine = {i: state_dict["state"].get(number[p]) for i, p in enumerate(self._shares[self.rank])}
        groups = self.optim.state_dict()["param_groups"]
        _give_options(self.param_groups, groups)
        self.optim.load_state_dict(
            {"state": {i: kept for i, kept in mine.items() if kept is not None}, "param_groups": groups}
        )


def _checked(params: Any) -> list[Any]:
    """Return parameters, or groups of them, as a list."""
    kind = "torch.Tensor" if isinstance(params, Tensor) else type(params).__name__
    if isinstance(params, Tensor) or not hasattr(params, "__iter__"):
        raise TypeError(f"`params` argument should be an iterable of Tensors or dicts, but got {kind}")
    given = list(params)
    if not given:
        raise ValueError("ZeroRedundancyOptimizer got an empty parameter list")
    if all(isinstance(each, dict) for each in given):
        if not all("params" in each for each in given):
            raise ValueError(
                "Each parameter group passed-in via `params` must have a 'params' key mapping to the parameters in "
                "the group"
            )
        given = [{**each, "params": list(each["params"])} for each in given]
        tensors = list(chain.from_iterable(each["params"] for each in given))
    elif all(isinstance(each, Tensor) for each in given):
        tensors = given
    else:
        raise TypeError("`params` argument should be an iterable of Tensors or dicts")
    kinds = list(dict.fromkeys(each.type() for each in tensors))
    if len(kinds) > 1:
        raise ValueError(
            "ZeroRedundancyOptimizer only supports using the same dense type for all parameters but got both "
            f"{kinds[0]} and {kinds[1]}"
        )
    return given


def _give_options(source: list[Group], target: list[Group]) -> None:
    """Enter into groups the options of others."""
    for given, group in zip(source, target, strict=True):
        group.update({key: value for key, value in given.items() if key not in ("params", "param_names")})


def _in_one_piece(params: list[Any]) -> Tensor:
    """Return a tensor that the parameters are views of from now on."""
    piece = empty(sum(p.numel() for p in params), dtype=params[0].dtype if params else None)
    end = 0
    for p in params:
        begin, end = end, end + p.numel()
        part = piece[begin:end].view_as(p)
        part.copy_(p.detach())
        p.data = part
    return piece
