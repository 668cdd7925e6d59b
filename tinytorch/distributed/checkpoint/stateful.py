"""`Stateful`: what `save` and `load` ask for its state."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar, runtime_checkable

__all__ = ["Stateful", "StatefulT"]


@runtime_checkable
class Stateful(Protocol):
    """What has `state_dict` and `load_state_dict`: of such an entry `save` and `load` take the state.

    Example:
        >>> from tinytorch.distributed.checkpoint.stateful import Stateful
        >>> isinstance(torch.nn.Linear(2, 3), Stateful)
        True
    """

    def state_dict(self) -> dict[str, Any]:
        """Return the state; `load` calls it, too, for what to load into."""
        ...

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a state."""
        ...


StatefulT = TypeVar("StatefulT", bound=Stateful)
