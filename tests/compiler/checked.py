"""A compiled function whose every call runs the program and the function itself, and compares their visible effects."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.compiler.visible import Unseen, Visible, described, difference
from tinytorch.autograd.api import grad
from tinytorch.compiler.backward import Spent
from tinytorch.compiler.compiled import Compiled, recording, stance
from tinytorch.compiler.entry import BAILOUT, BUSY, MISSED, Entry
from tinytorch.compiler.recorder import tensors_of
from tinytorch.core.graph import FREED
from tinytorch.core.mode import local
from tinytorch.core.tensor import Tensor, wrap


class CheckError(RuntimeError):
    """A program differs from its function in a result or an effect."""


class Checked(Compiled):
    """A compiled function of which every call is checked; the effects that remain are those of the function itself."""

    _unseen = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the function returns.

        Raises:
            CheckError: its program has another result or effect; the message says which.
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
        """Return what the function returns, or MISSED if a guard of this program does not hold."""
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
        if found.result is BAILOUT:
            return self._bail_out(variant, args, kwargs)
        found.look(Visible(self.function, args, kwargs))
        put_back()
        expected = Outcome(lambda: self.function(*args, **kwargs), inputs)
        expected.look(Visible(self.function, args, kwargs))
        differences = expected.differences(found)
        if differences:
            shown = "; ".join(differences[:5]) + ("; and more" if len(differences) > 5 else "")
            raise CheckError(
                f"the program of {self._name()} does not do what the function does: {shown}"
            ) from expected.error
        if expected.error is not None:
            raise expected.error
        return expected.result


class Outcome:
    """The result or error of a call, and the state of all visible objects after it.

    Args:
        call: runs the call.
        inputs: tensors with respect to which the gradients of the result are compared, too.
    """

    def __init__(self, call: Callable[[], Any], inputs: list[Tensor]) -> None:
        self.result: Any = None
        self.error: Exception | None = None
        self.what: dict[str, Any] = {}
        try:
            self.result = call()
        except Exception as error:  # errors of all classes are compared too
            self.error = error
            self.what["the error"] = f"{type(error).__name__}"
        if not any(self.result is signal for signal in (MISSED, BAILOUT, BUSY)):
            _enter(self.what, "the result", self.result)
            self._take_gradients(inputs)

    def _take_gradients(self, inputs: list[Tensor]) -> None:
        """Compute the gradients of results that have a graph, and retain the graph."""
        given = {id(x) for x in inputs}
        outputs = [x for x in tensors_of(self.result) if x._edge is not None and id(x) not in given]
        outputs = [x for x in outputs if not isinstance(x._edge[0], Spent)]  # type: ignore[index]
        for k, x in enumerate(outputs if inputs and local.state.modes is None else ()):
            try:
                found = grad(x, inputs, _some_numbers(x), retain_graph=True, allow_unused=True)
            except RuntimeError as error:
                if str(error) == FREED:  # the call itself has run backward
                    continue
                found = type(error).__name__
            _enter(self.what, f"the gradients of the result{f' {k}' * (len(outputs) > 1)}", found)

    def look(self, seen: Visible) -> None:
        """Copy the state of all visible objects."""
        self.what |= seen.described()

    def differences(self, found: Outcome) -> list[str]:
        """Return descriptions of the differences between this outcome and that of the program."""
        places = dict.fromkeys([*self.what, *found.what])
        missing = "nothing"
        pairs = [(where, self.what.get(where, missing), found.what.get(where, missing)) for where in places]
        return [f"{where} {how}" for where, expected, actual in pairs if (how := difference(expected, actual))]


def _some_numbers(x: Tensor) -> Tensor:
    made: Tensor = wrap(np.resize([1, -0.5, 2, 0.25, -3], x._array.shape).astype(x._array.dtype))
    return made


def _enter(what: dict[str, Any], where: str, x: Any) -> None:
    """Enter a result and its elements into a dictionary."""
    what[where] = described(x)
    if isinstance(x, (list, tuple)):
        for k, element in enumerate(x):
            _enter(what, f"{where}[{k}]", element)
    elif isinstance(x, dict):
        for key, value in x.items():
            _enter(what, f"{where}[{key!r}]", value)


__all__ = ["CheckError", "Checked"]
