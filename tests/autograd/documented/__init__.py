"""PyTorch's documentation of autograd, statement by statement: programs under the titles of its sections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Program = Callable[[Any], Any]


class Page:
    """A page of the documentation: its programs, in the order of its sections."""

    def __init__(self) -> None:
        self.programs: list[Any] = []

    def section(self, title: str) -> Callable[[Program], Program]:
        """Return a decorator that enters a program under a section's title."""

        def enter(program: Program) -> Program:
            self.programs.append(pytest.param(program, id=f"{title}: {program.__name__}"))
            return program

        return enter
