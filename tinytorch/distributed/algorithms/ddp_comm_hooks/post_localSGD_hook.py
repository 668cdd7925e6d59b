"""Post-local SGD: gradients are averaged over all processes at first, and over subgroups later."""

from __future__ import annotations

from tinytorch.core.tensor import Tensor
from tinytorch.distributed._reducer import GradBucket
from tinytorch.distributed.algorithms.ddp_comm_hooks.debugging_hooks import noop_hook
from tinytorch.distributed.algorithms.ddp_comm_hooks.default_hooks import _allreduce_fut
from tinytorch.distributed.futures import Future
from tinytorch.distributed.groups import ProcessGroup, new_subgroups

__all__ = ["PostLocalSGDState", "post_localSGD_hook"]


class PostLocalSGDState:
    """The settings and the step count of `post_localSGD_hook`.

    Args:
        process_group: the group over which gradients are averaged at first; all processes if None.
        subgroup: the group over which they are averaged later; the processes of one machine if None.
        start_localSGD_iter: the step from which the subgroup is used.
        post_local_gradient_allreduce: False: no communication from that step on.
    """

    def __init__(
        self,
        process_group: ProcessGroup | None,
        subgroup: ProcessGroup | None,
        start_localSGD_iter: int,
        post_local_gradient_allreduce: bool = True,
    ) -> None:
        self.process_group, self.subgroup, self.start_localSGD_iter = process_group, subgroup, start_localSGD_iter
        self.post_local_gradient_allreduce = post_local_gradient_allreduce
        self.iter = 0


def post_localSGD_hook(state: PostLocalSGDState, bucket: GradBucket) -> Future[Tensor]:
    """Return a future of the mean of the gradients, over all processes or over a subgroup.

    The parameters have to be averaged periodically, by a `PeriodicModelAverager`.

    Source:
        Lin et al., "Don't Use Large Mini-Batches, Use Local SGD", 2020.
    """
    if state.iter < state.start_localSGD_iter:
        state.iter += bucket.is_last()
        return _allreduce_fut(state.process_group, bucket.buffer())
    if not state.post_local_gradient_allreduce:
        return noop_hook(None, bucket)
    if state.subgroup is None:
        state.subgroup, _ = new_subgroups()
    return _allreduce_fut(state.subgroup, bucket.buffer())
