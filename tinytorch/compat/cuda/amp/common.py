"""`torch.cuda.amp.common`."""

__all__ = ["amp_definitely_not_available"]


def amp_definitely_not_available() -> bool:
    """Return True: there is no GPU.

    Example:
        >>> from tinytorch.cuda.amp.common import amp_definitely_not_available
        >>> amp_definitely_not_available()
        True
    """
    return True
