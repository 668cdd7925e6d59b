"""The faces of an op: what it must do with each of its samples (`tests/samples`). `tests/test_ops.py` runs them.

A face is a function of a sample that raises where the sample fails, declared by `@face`. That values and gradients are
PyTorch's is checked of all samples in every run, that derivatives are those of differences from the tier of CI on. The
other faces are checked of a quarter of the samples in turn, and of those that a change touches (tests/turns.py).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import NamedTuple

from tests.oracle import torch
from tests.samples import Sample
from tests.turns import is_its_turn, tier


class Face(NamedTuple):
    """A requirement, the samples that have it, and the warnings to which it pays no attention.

    `always` is the tier (of conftest.py) from which on it is checked of all samples, None if it is so only in the last.
    """

    check: Callable[[Sample], None]
    applies: Callable[[Sample], bool]
    always: str | None
    ignoring: tuple[str | type[Warning], ...]


FACES: list[Face] = []


def face(
    applies: Callable[[Sample], bool] = lambda sample: True,
    *,
    always: str | None = None,
    needs_oracle: bool = False,
    ignoring: Iterable[str | type[Warning]] = (),
) -> Callable[[Callable[[Sample], None]], Callable[[Sample], None]]:
    """Declare a face of the samples that it applies to; `ignoring` has starts of messages, or classes, of warnings."""

    def declare(check: Callable[[Sample], None]) -> Callable[[Sample], None]:
        if torch is not None or not needs_oracle:
            FACES.append(Face(check, applies, always, tuple(ignoring)))
        return check

    return declare


def look(sample: Sample, always: bool) -> None:
    """Check the faces of a sample, those that have a tier or the others. The error names the faces that fail."""
    failures: dict[str, Exception] = {}
    for each in FACES:
        if bool(each.always) != always or not each.applies(sample):
            continue
        if each.always != "fast" and each.always != tier() and not is_its_turn(sample):
            continue
        with warnings.catch_warnings():
            for kind in each.ignoring:
                if isinstance(kind, str):
                    warnings.filterwarnings("ignore", kind)
                else:
                    warnings.simplefilter("ignore", kind)
            try:
                each.check(sample)
            except Exception as error:  # of any class: it is raised again below
                failures[each.check.__name__] = error
    if failures:
        raise ExceptionGroup(f"{', '.join(failures)}: {sample}", list(failures.values()))
