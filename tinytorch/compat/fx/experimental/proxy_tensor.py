"""`torch.fx.experimental.proxy_tensor`: nothing is traced; programs ask."""

__all__ = ["get_proxy_mode"]


def get_proxy_mode() -> None:
    """Return None: there is no mode in which tensors stand for those of a trace."""
