"""What PyTorch gives for the samples, kept in files: so values are compared also where PyTorch is not installed.

`tests/faces/kept/<family>.npz` has the outcomes of the samples in `tests/samples/<family>.py`. `write` (called by
`scripts/make_kept.py`) adds those of new samples, and `tests/test_ops.py` compares what is kept with PyTorch.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import numpy as np

from tests.faces.outcomes import CHANGES, Numbers, Outcome, outcome
from tests.oracle import torch
from tests.samples import Sample, all_samples

FOLDER = Path(__file__).with_suffix("")


def of(sample: Sample) -> dict[str, Any] | None:
    """Return the kept outcomes of a sample by the names of `outcomes.CHANGES`, or None if it is new."""
    outcomes, memory = _read(sample.family)
    found = outcomes.get(sample.key())
    return None if found is None else {name: _unpacked(each, memory) for name, each in found.items()}


def stale(family: str) -> set[str]:
    """Return the keys of kept outcomes that are of no sample."""
    return set(_read(family)[0]) - {each.key() for each in all_samples() if each.family == family}


def version(family: str) -> str:
    """Return the version of PyTorch whose numbers are kept."""
    with np.load(FOLDER / f"{family}.npz") as file:
        return str(file["version"])


@functools.cache
def _read(family: str) -> tuple[dict[str, Any], bytes]:
    path = FOLDER / f"{family}.npz"
    if not path.exists():
        return {}, b""
    with np.load(path) as file:
        return json.loads(file["outcomes"].tobytes()), file["memory"].tobytes()


def write() -> None:
    """Ask PyTorch for the outcomes of new samples, and forget those of samples that are no more."""
    FOLDER.mkdir(exist_ok=True)
    families: dict[str, list[Sample]] = {}
    for each in all_samples():
        families.setdefault(each.family, []).append(each)
    for family, samples in families.items():
        if all(of(each) for each in samples) and not stale(family) and version(family) == _version():
            continue
        memory, outcomes = bytearray(), {}
        for sample in samples:
            found = of(sample) or {name: outcome(sample, torch, change) for name, change in CHANGES.items()}
            outcomes[sample.key()] = {name: _packed(each, memory) for name, each in found.items()}
        text = np.frombuffer(json.dumps(outcomes, separators=(",", ":")).encode(), np.uint8)
        np.savez_compressed(
            FOLDER / f"{family}.npz", version=_version(), outcomes=text, memory=np.frombuffer(memory, np.uint8)
        )
    _read.cache_clear()


def _version() -> str:
    return str(torch.__version__).partition("+")[0]


def _packed(value: Any, memory: bytearray) -> Any:
    """Return a value in JSON; the elements of arrays go into memory, once where they are the same."""
    if isinstance(value, Outcome):
        return [_packed(value.results, memory), value.with_grad, _packed(value.gradients, memory)]
    if isinstance(value, Numbers):
        array = np.ascontiguousarray(value.array)
        start = memory.find(array.tobytes())
        if start < 0:
            start = len(memory)
            memory += array.tobytes()
        return {"dtype": value.dtype, "array": [array.dtype.str, value.array.shape, start]}
    if isinstance(value, list):
        return [_packed(each, memory) for each in value]
    return {"complex": [value.real, value.imag]} if isinstance(value, complex) else value


def _unpacked(value: Any, memory: bytes) -> Any:
    results, with_grad, gradients = value
    return Outcome(_from_json(results, memory), with_grad, _from_json(gradients, memory))


def _from_json(value: Any, memory: bytes) -> Any:
    if isinstance(value, list):
        return [_from_json(each, memory) for each in value]
    if not isinstance(value, dict):
        return value
    if "complex" in value:
        return complex(*value["complex"])
    kind, shape, start = value["array"]
    count = int(np.prod(shape, dtype=int))
    return Numbers(value["dtype"], np.frombuffer(memory, kind, count, start).reshape(shape))
