from collections.abc import Callable
from typing import Any

SETS: tuple[str, ...]
KERNELS: dict[str, tuple[str, ...]]
MIN_PRODUCT: int

def twin(
    definition: Callable[..., Any], name: str, set: str, defaults: dict[str, Any] = ..., /
) -> Callable[..., Any]: ...
def set_threads(count: int, /) -> None: ...
