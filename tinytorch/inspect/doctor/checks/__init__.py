"""The checks of the doctor, classes that listen to a program and say at its end what they suspect.

A new check is a subclass of `Check` in a module of this folder; nothing else names it.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any, ClassVar

from tinytorch.core.names import module_of
from tinytorch.inspect.doctor.finding import Finding

__all__ = ["Check", "all_checks"]


class Check:
    """The base of checks: it suspects nothing; a method of the name of an event (`Watch.EVENTS`) receives it.

    Attributes:
        doctor: the doctor, with `doctor.watch`, which knows models, optimizers, loaders and losses.
    """

    _classes: ClassVar[list[type[Check]]] = []

    def __init__(self, doctor: Any) -> None:
        self.doctor = doctor

    def __init_subclass__(cls) -> None:
        Check._classes.append(cls)

    @property
    def watch(self) -> Any:
        """The doctor's `Watch`."""
        return self.doctor.watch

    # At the end -------------------------------------------------------------------------------------

    def finish(self) -> Iterator[Finding]:
        """Yield suspicions."""
        yield from ()

    def series(self) -> dict[str, Any]:
        """Return curves for the report, by name."""
        return {}


def all_checks() -> list[type[Check]]:
    """Return the classes of all checks."""
    for info in sorted(pkgutil.iter_modules(__path__), key=lambda info: info.name):
        importlib.import_module(f"{__name__}.{info.name}")
    return [each for each in Check._classes if module_of(each).startswith(__name__)]
