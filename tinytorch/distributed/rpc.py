"""`torch.distributed.rpc`: calls of other processes' functions, which need a group of processes."""

from tinytorch.distributed import init_process_group

__all__ = ["init_rpc", "remote", "rpc_async", "rpc_sync", "shutdown"]

init_rpc = remote = rpc_async = rpc_sync = shutdown = init_process_group
