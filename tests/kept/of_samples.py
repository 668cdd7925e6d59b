"""The kept outcomes of samples."""

from __future__ import annotations

from tests.faces.outcomes import CHANGES, Outcome, outcome
from tests.kept import read, version, write
from tests.oracle import torch
from tests.samples import Sample, all_samples


def of(sample: Sample) -> dict[str, Outcome] | None:
    """Return the kept outcomes of a sample by the names of `CHANGES`, or None if it is new."""
    found = read(f"samples/{sample.family}").get(sample.key())
    return None if found is None else {name: Outcome(*each) for name, each in found.items()}


def stale(family: str) -> set[str]:
    """Return the keys of kept outcomes that are of no sample."""
    return set(read(f"samples/{family}").outcomes) - {each.key() for each in all_samples() if each.family == family}


def update() -> None:
    """Ask PyTorch for the outcomes of new samples, and forget those of samples that are no more."""
    families: dict[str, list[Sample]] = {}
    for each in all_samples():
        families.setdefault(each.family, []).append(each)
    for family, samples in families.items():
        current = read(f"samples/{family}").version == version()
        if current and not stale(family) and all(of(each) for each in samples):
            continue
        found = {}
        for each in samples:
            made = (of(each) if current else None) or {
                name: outcome(each, torch, change) for name, change in CHANGES.items()
            }
            found[each.key()] = {name: list(values) for name, values in made.items()}
        write(f"samples/{family}", found)
