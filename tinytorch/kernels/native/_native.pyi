from collections.abc import Callable
from typing import Any

SETS: tuple[str, ...]
KERNELS: tuple[str, ...]

def twin(definition: Callable[..., Any], name: str, set: str, /) -> Callable[..., Any]: ...
def set_threads(count: int, /) -> None: ...
