"""What PyTorch gives, kept in files: so tests compare with its numbers where it is not installed, too.

`samples/<family>.npz` has the outcomes of the samples in `tests/samples/<family>.py`, and `programs/<folder>.npz` those
of the programs that the tests of a folder compare by `tests/same.py`. `scripts/make_kept.py` asks PyTorch for them.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tests.oracle import torch

FOLDER = Path(__file__).parent


class Numbers(NamedTuple):
    """A tensor among results: the name of its dtype, its elements, and its part in the graph."""

    dtype: str
    array: Any
    requires_grad: bool = False
    is_leaf: bool = True


class Raised(NamedTuple):
    """An error that a program raised."""

    kind: str
    text: str

    def __repr__(self) -> str:
        return f"{self.kind}: {self.text}"


class File(NamedTuple):
    """The outcomes in a file, packed, by their keys; the memory of their arrays; the version of PyTorch."""

    outcomes: dict[str, Any]
    memory: bytes
    version: str

    def get(self, key: str) -> Any:
        """Return an outcome, or None if there is none."""
        found = self.outcomes.get(key)
        return None if found is None else unpacked(found, self.memory)


@functools.cache
def read(name: str) -> File:
    """Return what a file has; nothing, if there is no such file."""
    path = FOLDER / f"{name}.npz"
    if not path.exists():
        return File({}, b"", "")
    with np.load(path) as file:
        return File(json.loads(file["outcomes"].tobytes()), file["memory"].tobytes(), str(file["version"]))


def write(name: str, outcomes: dict[str, Any]) -> None:
    """Write a file of outcomes, without those that cannot be packed."""
    memory, kept = bytearray(), {}
    for key, value in outcomes.items():
        try:
            kept[key] = packed(value, memory)
        except TypeError:  # other objects than results usually are
            continue
    np.savez_compressed(
        FOLDER / f"{name}.npz",
        version=version(),
        outcomes=np.frombuffer(json.dumps(kept, separators=(",", ":")).encode(), np.uint8),
        memory=np.frombuffer(memory, np.uint8),
    )
    read.cache_clear()


def version() -> str:
    """Return the version of PyTorch that is installed."""
    return str(torch.__version__).partition("+")[0]


def packed(value: Any, memory: bytearray) -> Any:
    """Return a value in JSON; the elements of arrays go into the memory, once where they are the same."""
    if isinstance(value, (Numbers, np.ndarray)):
        array = value.array if isinstance(value, Numbers) else value
        if array.dtype.kind not in "biufc" or array.nbytes > 100_000:
            raise TypeError(f"an array of {array.dtype} with {array.size} elements is not kept")
        data = array.tobytes()
        start = memory.find(data)
        if start < 0:
            start = len(memory)
            memory += data
        rest = [value.dtype, value.requires_grad, value.is_leaf] if isinstance(value, Numbers) else []
        return {"array": [array.dtype.str, array.shape, start, *rest]}
    if isinstance(value, Raised):
        return {"raised": list(value)}
    if isinstance(value, (list, tuple)):
        return [packed(each, memory) for each in value]
    if isinstance(value, dict):
        return {"dict": [[packed(key, memory), packed(each, memory)] for key, each in value.items()]}
    if type(value) is complex:
        return {"complex": [value.real, value.imag]}
    if type(value) is str and str(FOLDER.parents[1]) in value:
        raise TypeError("a path of this machine is not kept")
    if value is None or type(value) in (bool, int, float, str):
        return value
    raise TypeError(f"{type(value)} is not kept")


def unpacked(value: Any, memory: bytes) -> Any:
    """Return the value of what `packed` returned: sequences are lists."""
    if isinstance(value, list):
        return [unpacked(each, memory) for each in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "array":
        dtype, shape, start, *rest = content
        array = np.frombuffer(memory, dtype, int(np.prod(shape, dtype=int)), start).reshape(shape)
        return Numbers(rest[0], array, *rest[1:]) if rest else array
    if kind == "raised":
        return Raised(*content)
    if kind == "dict":
        return {unpacked(key, memory): unpacked(each, memory) for key, each in content}
    return complex(*content)
