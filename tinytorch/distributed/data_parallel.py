"""`DistributedDataParallel`, one model on several processes: PyTorch's module `torch.nn.parallel.distributed`."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import inspect
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from tinytorch.autograd.grad_mode import is_grad_enabled, no_grad
from tinytorch.core.tensor import Tensor
from tinytorch.core.warning import warn
from tinytorch.distributed._join import Join, Joinable, JoinHook, _JoinConfig
from tinytorch.distributed._reducer import GradBucket, Reducer, after_backward
from tinytorch.distributed.collectives import _broadcast_coalesced, all_reduce
from tinytorch.distributed.futures import Future
from tinytorch.distributed.groups import ReduceOp, _get_default_group
from tinytorch.nn.modules._backward_hooks import _through_identity
from tinytorch.nn.modules.module import Module
from tinytorch.nn.parameter import UninitializedParameter
from tinytorch.ops.create import tensor

__all__ = ["DistributedDataParallel"]

_MB = 1 << 20
_PICKLING = (
    "DDP Pickling/Unpickling are only supported when using DDP with the default process group. That is, when you have "
    "called init_process_group and have not passed process_group argument to DDP constructor"
)


def _replaced(value: Any, function: Callable[[Tensor], Any]) -> Any:
    """Return a model's output with what a function returns for its tensors.

    The tensors are in nested lists, tuples, dictionaries and dataclasses.
    """
    if isinstance(value, Tensor):
        return function(value)
    if isinstance(value, (list, tuple)):
        parts = [_replaced(part, function) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if not (isinstance(value, dict) or dataclasses.is_dataclass(value)):
        return value
    result: Any = copy.copy(value)
    if isinstance(value, dict):
        for key in value:
            result[key] = _replaced(value[key], function)
    else:
        for field in dataclasses.fields(value):
            object.__setattr__(result, field.name, _replaced(getattr(value, field.name), function))
    return result


def _find_tensors(value: Any) -> list[Tensor]:
    """Return the tensors in a model's output, in the order in which `_replaced` replaces them."""
    found: list[Tensor] = []

    def note(x: Tensor) -> Tensor:
        found.append(x)
        return x

    _replaced(value, note)
    return found


class _DDPJoinHook(JoinHook):
    def __init__(self, ddp: DistributedDataParallel) -> None:
        self.ddp = ddp

    def main_hook(self) -> None:
        ddp = self.ddp
        if ddp.will_sync_module_buffers():
            ddp._sync_module_buffers(ddp._find_common_rank(False))
        syncs = ddp._anyone_syncs(False)
        # The other processes set it after their forward pass.
        ddp.require_forward_param_sync = syncs
        if syncs:
            ddp.reducer.answer()

    def post_hook(self, is_last_joiner: bool) -> None:
        self.ddp._sync_module_states(self.ddp._find_common_rank(is_last_joiner), self.ddp.forward_sync_buffers)


class DistributedDataParallel(Module, Joinable):
    """A module trained by several processes, each on its part of every batch, with averaged gradients.

    All processes start with the values of rank 0. In backward, gradients are collected in buckets; MPI sums each bucket
    over the processes as soon as it is full, while backward continues. So all processes take the same steps.

    Args:
        module: the model, the same on all ranks, on the CPU.
        broadcast_buffers: the deprecated name of `forward_sync_buffers`; False also skips the initial synchronisation
            of buffers.
        init_sync: give all ranks the parameters and buffers of rank 0.
        process_group: the process group; all processes if None.
        bucket_cap_mb: the size of buckets in MB; 25 if None, and 1 for the first.
        find_unused_parameters: search the graph of each forward pass for parameters that will get no gradient. Without
            it each parameter has to get one.
        gradient_as_bucket_view: let `.grad` be views of the buckets, which saves memory and a copy.
        static_graph: each step uses the same parameters, each the same number of times.
        bucket_cap_mb_list: the size of each bucket, the last one for all further buckets.
        forward_sync_buffers: give all ranks the buffers of rank 0 before each forward pass; True if None.
        device_ids, output_device, dim: for other devices: None.
        check_reduction, skip_all_reduce_unused_params, batched_grad_copy: accepted, without effect on results.
        delay_all_reduce_named_params, param_to_hook_all_reduce, mixed_precision, device_mesh: not implemented.

    Attributes:
        module: the model; keys of `state_dict()` start with "module.".
        require_backward_grad_sync: whether the next backward pass averages gradients; False inside `no_sync()`.

    Raises:
        ValueError: no process group exists, or an argument is for other devices.
        RuntimeError: no parameter requires a gradient, or the model differs between ranks; later, if a backward pass
            did not reach all parameters, or a rank times out.

    Example:
        >>> torch.distributed.init_process_group("gloo", rank=0, world_size=1)
        >>> model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
        >>> model(torch.ones(4, 2)).sum().backward()
        >>> model.module.weight.grad  # the mean over all processes
        tensor([[4., 4.]])
        >>> torch.distributed.destroy_process_group()

    Source:
        Li et al., "PyTorch Distributed: Experiences on Accelerating Data Parallel Training", 2020.
    """

    __module__ = "tinytorch.nn.parallel.distributed"  # its public place, from which it is pickled

    def __init__(
        self,
        module: Module,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool | None = None,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params: Any = None,
        param_to_hook_all_reduce: Any = None,
        mixed_precision: Any = None,
        device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False,
        bucket_cap_mb_list: list[float] | None = None,
        batched_grad_copy: bool = False,
        forward_sync_buffers: bool | None = None,
    ) -> None:
        super().__init__()
        self._join_config = _JoinConfig()
        if (delay_all_reduce_named_params is None) != (param_to_hook_all_reduce is None):
            raise ValueError(
                "delay_all_reduce_named_params and param_to_hook_all_reduce need to be set at the same time."
            )
        if process_group and device_mesh is not None:
            raise RuntimeError("Cannot specify both process_group and device_mesh arguments.")
        for name in ("delay_all_reduce_named_params", "mixed_precision", "device_mesh"):
            if locals()[name] is not None:
                raise NotImplementedError(f"tinytorch's DistributedDataParallel has no {name}")
        self.process_group = _get_default_group() if process_group is None else process_group
        self.parameters_to_ignore = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        ignored = self.parameters_to_ignore
        self._module_parameters = [p for name, p in module.named_parameters() if name not in ignored]
        if not any(p.requires_grad for p in self._module_parameters):
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a "
                "gradient."
            )
        if device_ids is not None and len(device_ids) > 1:
            raise ValueError("device_ids can only be None or contain a single element.")
        self.device = self._module_parameters[0].device
        if device_ids or output_device:
            raise ValueError(
                "DistributedDataParallel device_ids and output_device arguments only work with "
                f"single-device/multiple-device GPU modules or CPU modules, but got device_ids {device_ids}, "
                f"output_device {output_device}, and module parameters { {self.device} }."
            )
        if any(isinstance(p, UninitializedParameter) for p in self._module_parameters):
            raise RuntimeError(
                "Modules with uninitialized parameters can't be used with `DistributedDataParallel`. Run a dummy "
                "forward pass to correctly initialize the modules"
            )
        if broadcast_buffers is not None:
            warn(
                "Both `broadcast_buffers` and `forward_sync_buffers` were specified. `broadcast_buffers` is deprecated "
                "and its value is ignored when `forward_sync_buffers` is provided."
                if forward_sync_buffers is not None
                else "`broadcast_buffers` is deprecated. Use `forward_sync_buffers` instead. IMPORTANT: unlike "
                "`broadcast_buffers=False`, `forward_sync_buffers=False` still syncs buffers at init. If you rely on "
                "buffers NOT being synced at init (e.g. rank-local buffers), keep using `broadcast_buffers=False` "
                "until `init_sync_buffers` is available.",
                FutureWarning,
            )
        if check_reduction:
            warn(
                "The `check_reduction` argument in `DistributedDataParallel` module is deprecated. Please avoid using "
                "it.",
                FutureWarning,
            )
        init_sync_buffers = True
        if forward_sync_buffers is None:
            forward_sync_buffers = init_sync_buffers = broadcast_buffers is not False
        self.forward_sync_buffers = forward_sync_buffers
        self.device_ids = self.output_device = None
        self.device_type, self.is_multi_device_module, self.dim = self.device.type, False, dim
        self.module = module
        self.find_unused_parameters, self.gradient_as_bucket_view = find_unused_parameters, gradient_as_bucket_view
        self.skip_all_reduce_unused_params, self.batched_grad_copy = skip_all_reduce_unused_params, batched_grad_copy
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        self.mixed_precision = None
        self.static_graph = False
        if bucket_cap_mb_list:
            limits = [int(size * _MB) for size in bucket_cap_mb_list]
        else:
            limits = [_MB, 25 * _MB] if bucket_cap_mb is None else [int(bucket_cap_mb * _MB)]
        self.bucket_bytes_cap = max(limits)
        self._limits = limits
        self._make_reducer()
        if init_sync:
            self._sync_module_states(0, init_sync_buffers)
        if static_graph:
            self._set_static_graph()

    def _make_reducer(self) -> None:
        parameters = [p for p in self._module_parameters if p.requires_grad]
        self.reducer = Reducer(
            parameters, self.process_group, self._limits, self.find_unused_parameters, self.gradient_as_bucket_view
        )
        self._assign_modules_buffers()

    @property
    def broadcast_buffers(self) -> bool:
        """The deprecated name of `forward_sync_buffers`."""
        return self.forward_sync_buffers

    @broadcast_buffers.setter
    def broadcast_buffers(self, value: bool) -> None:
        self.forward_sync_buffers = value

    def _set_static_graph(self) -> None:
        if self.static_graph:
            warn("You've set static_graph to be True, no need to set it again.")
            return
        self.static_graph = self.reducer.static = True
        self._static_graph_delay_allreduce_enqueued = False
        if self.find_unused_parameters:
            warn(
                "You passed find_unused_parameters=true to DistributedDataParallel, `_set_static_graph` will detect "
                "unused parameters automatically, so you do not need to set find_unused_parameters=true, just be sure "
                "these unused parameters will not change during training loop while calling `_set_static_graph`."
            )

    # A step ---------------------------------------------------------------------------------------

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Return the module's output; the next backward pass averages its gradients."""
        work = Join.notify_join_context(self)
        if work is not None:
            self.reducer.join(work, self._divide_by_initial_world_size)
        if self.will_sync_module_buffers():
            self._sync_module_buffers(self._find_common_rank(True) if self._join_config.enable else 0)
        if self._join_config.enable:
            self._anyone_syncs(True)
        output = self.module(*inputs, **kwargs)
        self.require_forward_param_sync = is_grad_enabled() and self.require_backward_grad_sync
        searches = self.find_unused_parameters and not self.static_graph
        first = self.static_graph and not self._static_graph_delay_allreduce_enqueued
        if self.require_forward_param_sync:
            self.reducer.prepare_for_backward(_find_tensors(output) if searches else ())
        if searches or (first and self.require_forward_param_sync):
            output = self._with_sink(output)
        return output

    def _with_sink(self, output: Any) -> Any:
        """Return the output passed through one node, which backward reaches first from any part of the output.

        So backward visits all parameters, also those that get no gradient. With a static graph, the node schedules the
        reduction of all gradients at the end of the first backward pass.
        """
        reference = weakref.ref(self)

        def begin(grads: Any) -> Any:
            ddp = reference()
            if ddp is not None and ddp.static_graph and not ddp._static_graph_delay_allreduce_enqueued:
                after_backward(ddp.reducer.reduce_all)
                ddp._static_graph_delay_allreduce_enqueued = True
            return grads

        # (Tensors without a graph are left out: they have to stay leaves.)
        tensors = _find_tensors(output)
        indices = [k for k, tensor in enumerate(tensors) if tensor.grad_fn is not None]
        _, passed = _through_identity(tuple([tensors[k] for k in indices]), begin, materialize=False)
        for k, x in zip(indices, passed, strict=True):
            tensors[k] = x
        given = iter(tensors)
        return _replaced(output, lambda _: next(given))

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Accumulate gradients without averaging; the first backward pass after the context averages their sums.

        The forward pass has to be inside the context, too.

        Example:
            >>> torch.distributed.init_process_group("gloo", rank=0, world_size=1)
            >>> model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
            >>> with model.no_sync():
            ...     model(torch.ones(4, 2)).sum().backward()
            >>> model(torch.ones(4, 2)).sum().backward()
            >>> model.module.bias.grad
            tensor([8.])
            >>> torch.distributed.destroy_process_group()
        """
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    # Parameters and buffers -----------------------------------------------------------------------

    def _assign_modules_buffers(self) -> None:
        ignored = self.parameters_to_ignore
        self.named_module_buffers = {name: b for name, b in self.module.named_buffers() if name not in ignored}
        self.modules_buffers = list(self.named_module_buffers.values())

    def will_sync_module_buffers(self) -> bool:
        """Return whether the next forward pass starts by copying the buffers of rank 0."""
        return self.require_forward_param_sync and self.forward_sync_buffers and bool(self.modules_buffers)

    def _sync_module_buffers(self, source: int) -> None:
        self._assign_modules_buffers()  # the module's buffers may have been replaced
        # Restore the versions: buffers that an earlier forward pass saved count as unchanged.
        versions = [buffer._version for buffer in self.modules_buffers]
        _broadcast_coalesced(self.process_group, self.modules_buffers, src=source)
        for buffer, version in zip(self.modules_buffers, versions, strict=True):
            if buffer._cell is not None:
                buffer._cell[0] = version

    def _sync_module_states(self, source: int, buffers: bool) -> None:
        states: list[Tensor] = list(self._module_parameters)
        if buffers:
            self._assign_modules_buffers()
            states += self.modules_buffers
        with no_grad():
            _broadcast_coalesced(self.process_group, states, src=source)

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(module: Module, params_and_buffers_to_ignore: Any) -> None:
        """Exclude the parameters and buffers with these names from synchronisation."""
        module._ddp_params_and_buffers_to_ignore = params_and_buffers_to_ignore
        members: Any = (*module.named_parameters(), *module.named_buffers())
        for name, member in members:
            if name in params_and_buffers_to_ignore:
                member._ddp_ignored = True

    # Hooks ----------------------------------------------------------------------------------------

    def register_comm_hook(self, state: object, hook: Callable[..., Any]) -> None:
        """Reduce each full bucket of gradients by `hook(state, bucket)` instead of averaging it.

        Example:
            >>> def unchanged(state, bucket):
            ...     future = torch.futures.Future()
            ...     future.set_result(bucket.buffer())
            ...     return future
            >>> torch.distributed.init_process_group("gloo", rank=0, world_size=1)
            >>> model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
            >>> model.register_comm_hook(None, unchanged)
            >>> torch.distributed.destroy_process_group()
        """
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        signature = inspect.signature(hook)
        accepted: tuple[Any, ...] = (inspect.Parameter.empty, GradBucket, "dist.GradBucket", "GradBucket")
        if signature.parameters["bucket"].annotation not in accepted:
            raise ValueError("Communication hook: bucket annotation should be dist.GradBucket.")
        returned = signature.return_annotation
        if returned is not inspect.Parameter.empty and not isinstance(returned, str) and returned != Future[Tensor]:
            raise ValueError("Communication hook: return annotation should be torch.futures.Future[torch.Tensor].")
        if self.reducer.hook is not None:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")
        self.reducer.hook = (hook, state)

    def _get_ddp_logging_data(self) -> dict[str, Any]:
        group = self.process_group
        return {"world_size": group.size(), "rank": group.rank(), "backend_name": group.name()}

    def _remove_autograd_hooks(self) -> None:
        self.reducer.remove_hooks()

    def _check_reducer_finalized(self) -> None:
        self.reducer.check_finished()

    # Uneven inputs --------------------------------------------------------------------------------

    def join(
        self, divide_by_initial_world_size: bool = True, enable: bool = True, throw_on_early_termination: bool = False
    ) -> Join:
        """Return a context manager for a training loop that has a different number of steps on each process.

        A process that has left the loop contributes zeros until all have left; then all processes get the parameters of
        one that left last.
        """
        return Join(
            [self], enable, throw_on_early_termination, divide_by_initial_world_size=divide_by_initial_world_size
        )

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Return the hook by which this process, when it has no inputs left, answers the others' collectives."""
        self._divide_by_initial_world_size = kwargs.get("divide_by_initial_world_size", True)
        return _DDPJoinHook(self)

    @property
    def join_device(self) -> Any:
        """The CPU."""
        return self.device

    @property
    def join_process_group(self) -> Any:
        """The process group."""
        return self.process_group

    def _find_common_rank(self, candidate: bool) -> int:
        """Return the highest rank among the candidates."""
        rank = tensor([self.process_group.rank() if candidate else -1])
        all_reduce(rank, ReduceOp.MAX, self.process_group)
        return int(rank)

    def _anyone_syncs(self, active: bool) -> bool:
        """Return whether any process that has not joined will average its gradients in this step."""
        syncs = tensor([float(active and self.require_backward_grad_sync)])
        all_reduce(syncs, group=self.process_group)
        return bool(syncs)

    # Copies ---------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        try:
            default = self.process_group is _get_default_group()
        except ValueError:
            default = False
        if not default:
            raise RuntimeError(_PICKLING)
        state = self.__dict__.copy()
        del state["process_group"], state["reducer"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.process_group = _get_default_group()
        self._make_reducer()
        self.reducer.static = self.static_graph
