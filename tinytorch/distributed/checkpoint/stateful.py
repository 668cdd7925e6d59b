"""`Stateful`: the protocol of objects that `save` and `load` handle by their state."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar, runtime_checkable

__all__ = ["Stateful", "StatefulT"]


@runtime_checkable
class Stateful(Protocol):
    """The protocol of objects with `state_dict` and `load_state_dict`: `save` and `load` use their state.

    Example:
        >>> from tinytorch.distributed.checkpoint.stateful import Stateful
        >>> isinstance(torch.nn.Linear(2, 3), Stateful)
        True
    """

    def state_dict(self) -> dict[str, Any]:
        """Return the state; `load` calls it, too, and loads into the result."""
        ...

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state."""
        ...


StatefulT = TypeVar("StatefulT", bound=Stateful)
