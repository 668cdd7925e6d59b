"""`TINYTORCH_COMPILE=check`: a call runs the program and the function as it is, and compares all that can be seen."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from tinytorch.autograd.api import grad
from tinytorch.compiler.backward import Spent
from tinytorch.compiler.compiled import Compiled, recording, stance
from tinytorch.compiler.entry import BUSY, LEFT, MISSED, Entry
from tinytorch.compiler.recorder import tensors_of
from tinytorch.compiler.visible import Unseen, Visible, described, difference
from tinytorch.core.graph import FREED
from tinytorch.core.mode import local
from tinytorch.core.tensor import Tensor, wrap


class CheckError(RuntimeError):
    """What a program does is not what its function does."""


class Checked(Compiled):
    """A compiled function of which each call is checked: what a call leaves is what the function left, run as it is."""

    _unseen = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the function returns.

        Raises:
            CheckError: its program returns something else, or changes something else; it says where.
        """
        if stance.name != "force_eager" and not recording.count and not self._unseen:
            for variant in self.variants:
                result = self._check(variant, args, kwargs)
                if result is not MISSED:
                    return result
        if self._unseen:
            return self.function(*args, **kwargs)
        return super().__call__(*args, **kwargs)

    def _check(self, variant: Entry, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return what the function returns, or MISSED if this program is not for the call."""
        try:
            seen = Visible(self.function, args, kwargs)
        except Unseen as reason:
            self._unseen = True
            warnings.warn(f"torch.compile: {self._name()} is not checked, and runs as it is: {reason}", stacklevel=3)
            return self.function(*args, **kwargs)
        put_back, inputs = seen.keep(), seen.tensors()
        found = Outcome(lambda: variant.enter(args, kwargs), inputs)
        if found.result is MISSED or found.result is BUSY:
            return MISSED
        if found.result is LEFT:
            return self._leave(variant, args, kwargs)
        found.look(Visible(self.function, args, kwargs))
        put_back()
        expected = Outcome(lambda: self.function(*args, **kwargs), inputs)
        expected.look(Visible(self.function, args, kwargs))
        differences = expected.differences(found)
        if differences:
            shown = "; ".join(differences[:5]) + ("; and more" if len(differences) > 5 else "")
            raise CheckError(
                f"TINYTORCH_COMPILE=check: the program of {self._name()} does not do what the function does: {shown}"
            ) from expected.error
        if expected.error is not None:
            raise expected.error
        return expected.result


class Outcome:
    """What a call returned or raised, and after it all that can be seen.

    Args:
        call: runs it.
        inputs: tensors, with respect to which the gradients of what it returns are taken, too.
    """

    def __init__(self, call: Callable[[], Any], inputs: list[Tensor]) -> None:
        self.result: Any = None
        self.error: Exception | None = None
        self.what: dict[str, Any] = {}
        try:
            self.result = call()
        except Exception as error:  # every class: it is compared
            self.error = error
            self.what["the error"] = f"{type(error).__name__}"
        if not any(self.result is each for each in (MISSED, LEFT, BUSY)):
            _enter(self.what, "the result", self.result)
            self._take_gradients(inputs)

    def _take_gradients(self, inputs: list[Tensor]) -> None:
        """Note the gradients of a result that has a graph, which stays."""
        given = {id(x) for x in inputs}
        outputs = [x for x in tensors_of(self.result) if x._edge is not None and id(x) not in given]
        outputs = [x for x in outputs if not isinstance(x._edge[0], Spent)]  # type: ignore[index]
        for k, x in enumerate(outputs if inputs and local.state.modes is None else ()):
            try:
                found = grad(x, inputs, _some_numbers(x), retain_graph=True, allow_unused=True)
            except RuntimeError as error:
                if str(error) == FREED:  # the call has walked through it itself
                    continue
                found = type(error).__name__
            _enter(self.what, f"the gradients of the result{f' {k}' * (len(outputs) > 1)}", found)

    def look(self, seen: Visible) -> None:
        """Note all that can be seen."""
        self.what |= seen.described()

    def differences(self, found: Outcome) -> list[str]:
        """Return where another outcome differs from this one, and how."""
        places = dict.fromkeys([*self.what, *found.what])
        missing = "nothing"
        each = ((where, difference(self.what.get(where, missing), found.what.get(where, missing))) for where in places)
        return [f"{where} {how}" for where, how in each if how]


def _some_numbers(x: Tensor) -> Tensor:
    made: Tensor = wrap(np.resize([1, -0.5, 2, 0.25, -3], x._array.shape).astype(x._array.dtype))
    return made


def _enter(what: dict[str, Any], where: str, x: Any) -> None:
    """Note a result, and what is in it."""
    what[where] = described(x)
    if isinstance(x, (list, tuple)):
        for k, each in enumerate(x):
            _enter(what, f"{where}[{k}]", each)
    elif isinstance(x, dict):
        for key, each in x.items():
            _enter(what, f"{where}[{key!r}]", each)


__all__ = ["CheckError", "Checked"]
