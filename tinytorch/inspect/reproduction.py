"""`reproducible`: whether a function computes the same numbers twice, bit for bit, and if not, where it parts first.

A mode keeps a checksum of the result of every op of the first run, and compares those of the others with them. What an
op did not make, such as the data, or a parameter after an optimizer's step, is compared where an op takes it.
"""

from __future__ import annotations

import hashlib
import random
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from tinytorch.autograd.profiler import tensors_in
from tinytorch.core.mode import Event, on
from tinytorch.core.tensor import Tensor
from tinytorch.core.terminal import shown
from tinytorch.inspect.calls import Call, Listener, array_of, name_of_op, named_arguments
from tinytorch.inspect.places import Line, innermost_module, name_of, path_of
from tinytorch.ops.random import get_rng_state, set_rng_state

__all__ = ["Parting", "Reproducibility", "reproducible"]


class Parting(NamedTuple):
    """The first difference between two runs; `str` explains it.

    Attributes:
        what: "result", "argument" (it differs before the op), "op" (another op ran), "end" (a run was shorter), or
            "return value".
        number: the number of the op, from 0.
        op: its name; of "op", those of both runs.
        node: the node of the backward pass that runs it, such as "MulBackward0"; or "".
        module: the module that was running, such as "head.0: Linear", or "".
        line: the user's line, or None.
        argument: of "argument", its name.
        run: the number of the run that differs from the first one, from 1.
        detail: the elements of small tensors in both runs, or what else is known.
    """

    what: str
    number: int
    op: str
    node: str
    module: str
    line: Line | None
    argument: str
    run: int
    detail: str

    def __str__(self) -> str:
        of = f"op {self.number}, {self.op}" + (f" (in the backward {self.node})" if self.node else "")
        first = {
            "result": f"the result of {of} differs",
            "argument": f"{self.argument} of {of} differs before the op: no op has made it in this run",
            "op": f"op {self.number} is another one: {self.op}",
            "end": f"the runs have different numbers of ops: {self.detail}",
            "return value": "all ops agree, but the functions return different values",
        }[self.what]
        lines = [first + (f": {self.detail}" if self.detail and self.what != "end" else "")]
        if self.line is not None:
            lines.append(f"  at {self.line.shown()}")
        if self.module:
            lines.append(f"  in {self.module}")
        return "\n".join(lines)


class Reproducibility:
    """The report of `reproducible`; true if all runs were equal, bit for bit.

    Attributes:
        runs: how often the function ran.
        operations: the number of ops of the first run.
        first: the first `Parting`, or None.
        result: what the first run returned.
    """

    def __init__(self, runs: int, operations: int, first: Parting | None, result: Any) -> None:
        self.runs, self.operations, self.first, self.result = runs, operations, first, result

    def __bool__(self) -> bool:
        return self.first is None

    @shown
    def __str__(self) -> str:
        if self.first is None:
            return f"{self.runs} runs of {self.operations:,} ops are equal, bit for bit"
        return f"run {self.first.run} parts from the first one: {self.first}"

    __repr__ = __str__


class _Record(NamedTuple):
    """An op of the first run: its name, checksums of its results and of arguments, small results, and its line."""

    name: str
    results: tuple[bytes, ...]
    arguments: tuple[tuple[str, bytes], ...]
    small: tuple[Any, ...]
    line: Line


_SMALL = 4  # the number of elements of tensors whose elements are kept


class _Log(Listener):
    """Records ops, or compares them with those of the first run."""

    def __init__(self, first: list[_Record] | None, run: int) -> None:
        self.records: list[_Record] = []
        self.first, self.run = first, run
        self.parting: Parting | None = None
        self.count = 0
        self._node = ""
        self._drawn: list[Any] = []  # references to arrays of random numbers
        self._walked = False  # whether a backward pass has run
        self._versions: dict[int, tuple[Any, int]] = {}  # by id of an array that an op has made: its version

    def listen(self, call: Call) -> Iterator[None]:
        """Record a call, or compare it."""
        given = []
        # (What is overwritten may not have been initialized; if its elements are used, the results tell.)
        written = call.args[0] if call.writes else None
        for name, x in _named(call) if self.parting is None else ():
            if x is written:
                continue
            array, version = _array_of(x), _version_of(x)
            if array is not None and not self._is_known(array, version):
                given.append((name, x, checksum(array)))
                self._know(array, version)
        yield
        if self.parting is not None:
            return
        outputs = [x for x in call.outputs if _array_of(x) is not None]
        sums = tuple([checksum(x._array) for x in outputs])
        small = tuple([x._array.tolist() if x._array.size <= _SMALL else None for x in outputs])
        for x in outputs:
            self._know(x._array, _version_of(x))
        arguments = tuple([(argument, digest) for argument, _, digest in given])
        record = _Record(name_of_op(call.op), sums, arguments, small, call.line)
        if self.first is None:
            self.records.append(record)
        else:
            self._compare(self.first, record, given, sys._getframe())
        self.count += 1

    def step(self, node: Any, run: Callable[[], Any]) -> Any:
        """Return the gradients of a node, having noted that it runs."""
        before, self._node, self._walked = self._node, node.name(), True
        try:
            return run()
        finally:
            self._node = before

    @on(Event.FILLED)
    def _filled(self, x: Any, **facts: Any) -> None:
        """Forget a tensor that will be filled with random numbers: they are compared where an op takes them."""
        array = _array_of(x)
        if array is not None:
            self._versions.pop(id(array), None)
            self._drawn = [each for each in self._drawn if each() is not None]
            self._drawn.append(weakref.ref(array))

    def _is_known(self, array: Any, version: int) -> bool:
        known = self._versions.get(id(array))
        return known is not None and known[0]() is array and known[1] == version

    def _know(self, array: Any, version: int) -> None:
        key = id(array)
        versions = self._versions
        versions[key] = (weakref.ref(array, lambda _: versions.pop(key, None)), version)

    def _compare(self, first: list[_Record], now: _Record, given: list[Any], frame: Any) -> None:
        """Compare an op with that of the first run."""
        if self.count >= len(first):
            detail = f"{len(first)} in the first, more in the other; the next one is {now.name}"
            self._part("end", now, "", detail, frame)
            return
        then = first[self.count]
        if then.name != now.name:
            both = f"{then.name} at {then.line} in the first run, {now.name} in the other"
            self._part("op", now._replace(name=both), "", "", frame)
            return
        sums = dict(then.arguments)
        for name, x, digest in given:
            if sums.get(name, digest) != digest:
                of = name_of(x, frame)
                what = f"argument {name} ({of})" if of else f"argument {name}"
                detail = ""
                if any(each() is x._array for each in self._drawn):
                    detail = (
                        "random numbers, whose generator was in another state: was it seeded by the time, or is it "
                    )
                    detail += "a `Generator` of its own?"
                elif x._requires_grad and x._edge is None and not self._walked:
                    detail = "was it trained by the first run, and not made anew?"
                self._part("argument", now, what, detail, frame)
                return
        for k, (a, b) in enumerate(zip(then.results, now.results, strict=False)):
            if a != b:
                values = f"{then.small[k]} and {now.small[k]}" if None not in (then.small[k], now.small[k]) else ""
                self._part("result", now, "", values, frame)
                return

    def _part(self, what: str, now: _Record, argument: str, detail: str, frame: Any) -> None:
        self.parting = Parting(
            what, self.count, now.name, self._node, path_of(innermost_module(frame), frame), now.line, argument,
            self.run, detail,
        )  # fmt: skip


def _named(call: Call) -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors among the arguments of a call, by name."""
    for name, value in named_arguments(call.op, call.args, call.kwargs).items():
        for k, x in enumerate(tensors_in(value)):
            yield (name if isinstance(value, Tensor) else f"{name}[{k}]").removeprefix("argument "), x


def _array_of(x: Any) -> Any:
    array = array_of(x)
    return array if type(array) is np.ndarray else None


def _version_of(x: Tensor) -> int:
    return 0 if x._cell is None else x._cell[0]


def checksum(array: Any) -> bytes:
    """Return a checksum of the shape, the dtype and the bytes of an array."""
    made = hashlib.blake2b(f"{array.shape} {array.dtype}".encode(), digest_size=12)
    whole = array if array.flags.c_contiguous else np.ascontiguousarray(array)
    bytes_of: Any = whole.reshape(-1).view(np.uint8) if whole.size else b""
    made.update(bytes_of)
    return made.digest()


def _digest_of(value: Any) -> bytes:
    """Return a checksum of what a function returned: tensors, arrays, numbers, and containers of these."""
    if isinstance(value, Tensor):
        array = _array_of(value)
        return b"" if array is None else checksum(array)
    if isinstance(value, np.ndarray):
        return checksum(value)
    if isinstance(value, Mapping):
        return b"{" + b",".join([repr(key).encode() + b":" + _digest_of(each) for key, each in value.items()]) + b"}"
    if isinstance(value, (list, tuple)):
        return b"[" + b",".join(map(_digest_of, value)) + b"]"
    if hasattr(value, "state_dict"):
        return _digest_of(value.state_dict())
    if isinstance(value, (bool, int, float, complex, str, bytes, type(None))):
        return repr(value).encode()
    return type(value).__qualname__.encode()  # (an object of which nothing is known)


def reproducible(f: Callable[[], Any], times: int = 2) -> Reproducibility:
    """Run a function several times from the same state of the random generators; name the first number that differs.

    Before each run the generators of `torch`, of NumPy (`np.random`) and of Python (`random`) get the state that they
    have now. What else `f` uses it has to make anew: a model that the first run trains is another one in the second.
    Every op is compared, forward and backward, bit for bit, and what `f` returns (tensors, numbers, containers of
    these, and the `state_dict` of modules and optimizers). Ops of other threads are not seen.

    Args:
        f: a function without arguments: a step, or a whole training.
        times: how often it runs, at least 2.

    Returns:
        a `Reproducibility`, which is true if all runs were equal; else its `first` names the op, the module, the line.

    Raises:
        ValueError: `times` is less than 2.

    Example:
        >>> import numpy as np
        >>> def train(seeded):
        ...     noise = np.random.default_rng(0 if seeded else None).random(3)
        ...     w = torch.rand(3, requires_grad=True)
        ...     (w * torch.from_numpy(noise)).sum().backward()
        ...     return w.grad
        >>> print(torch.inspect.reproducible(lambda: train(seeded=True)))
        2 runs of 6 ops are equal, bit for bit
        >>> report = torch.inspect.reproducible(lambda: train(seeded=False))
        >>> bool(report), report.first.what, report.first.op, report.first.argument
        (False, 'argument', 'mul', 'argument other')
    """
    if times < 2:
        raise ValueError(f"reproducible(): times should be at least 2, but got {times}")
    states = get_rng_state(), np.random.get_state(), random.getstate()
    first: list[_Record] = []
    kept: Any = None
    parting: Parting | None = None
    for run in range(times):
        set_rng_state(states[0])
        np.random.set_state(states[1])
        random.setstate(states[2])
        log = _Log(first if run else None, run)
        with log:
            result = f()
        digest = _digest_of(result)
        if not run:
            first, kept, of_first = log.records, result, digest
            continue
        parting = log.parting
        if parting is None and log.count < len(first):
            then = first[log.count]
            detail = f"{len(first)} in the first, {log.count} in the other; the next one is {then.name}"
            parting = Parting("end", log.count, then.name, "", "", then.line, "", run, detail)
        if parting is None and digest != of_first:
            parting = Parting("return value", log.count, "", "", "", None, "", run, "")
        if parting is not None:
            break
    return Reproducibility(times if parting is None else run + 1, len(first), parting, kept)
