"""`Compiled`: a function with the programs that were recorded of it; a call runs the first one whose guards hold."""

from __future__ import annotations

import functools
import gc
import importlib
import logging
import os
import threading
import types
import weakref
from collections.abc import Callable
from typing import Any

from tinytorch.compiler.entry import BUSY, LEFT, MISSED, Entry
from tinytorch.compiler.explained import shown_times, times_of
from tinytorch.compiler.guards import Guards
from tinytorch.compiler.recorder import NotRecorded, Recorder
from tinytorch.compiler.tracing import Late, Tracer, disabled
from tinytorch.core.mode import local
from tinytorch.nn.modules.module import Module
from tinytorch.ops import overrides

#: Allocations between garbage collections while a call is recorded: most objects live until its end.
GC_THRESHOLD = 100_000
LIMIT = 8  # signatures, after which a function runs as it is: PyTorch's number


class CompileError(RuntimeError):
    """A function cannot be compiled though `fullgraph` or the stance requires it."""


class Stance:
    """How compiled functions run (`set_stance`)."""

    name = "default"


class _Recording(threading.local):
    count = 0


stance = Stance()
recording = _Recording()
_all: weakref.WeakSet[Compiled] = weakref.WeakSet()


def reset() -> None:
    """Forget all programs."""
    for compiled in list(_all):
        compiled.variants.clear()
        compiled.reasons.clear()
        compiled.failed = False
        compiled.recorded = compiled.plain = 0


class Compiled:
    """A function that runs as a program where the guards of one hold.

    Attributes:
        function: the function.
        variants: the programs, one for each signature.
        reasons: why calls could not be compiled.
        failed: no further programs are recorded.
        infers: whether programs are rewritten for inference where nothing requires a gradient.
        recorded, plain: the number of calls that were recorded as programs, and that ran as Python for good.
    """

    def __init__(
        self, function: Callable[..., Any], fullgraph: bool = False, limit: int | None = None, infers: bool = False
    ) -> None:  # fmt: skip
        self.function, self.fullgraph, self.limit, self.infers = function, fullgraph, limit or LIMIT, infers
        self.variants: list[Entry] = []
        self.reasons: list[str] = []
        self.failed = False
        self.recorded, self.plain = 0, 0
        self._left = 0  # number of calls that left a program since a truth value differed
        self._lock = threading.Lock()
        if not isinstance(function, Module):
            functools.update_wrapper(self, function)
        self._torchdynamo_orig_callable = function
        _all.add(self)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __reduce__(self) -> Any:
        return type(self), (self.function, self.fullgraph, self.limit, self.infers)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the function returns."""
        busy = False
        if stance.name != "force_eager":
            for variant in self.variants:
                result = variant.enter(args, kwargs)
                if result is MISSED:
                    continue
                if result is LEFT:
                    return self._leave(variant, args, kwargs)
                if result is not BUSY:
                    variant.runs += 1
                    return result
                busy = True
            if not (self.failed or local.state.modes is not None or overrides.state.modes or local.state.inference):
                if stance.name == "default" and not recording.count and self._lock.acquire(False):
                    try:
                        return self._record(args, kwargs, busy)
                    finally:
                        self._lock.release()
                if stance.name == "fail_on_recompile":
                    raise CompileError("a compiled function would be compiled again (`set_stance`)")
        return self._run(args, kwargs)

    @property
    def source(self) -> str:
        """The text of the latest program, and of that of its gradient."""
        return self.variants[-1].source if self.variants else ""

    def explain(self, guards: bool = False) -> str:
        """Return a sentence about the calls so far, the programs, and why other calls were not compiled.

        Args:
            guards: list the conditions under which each program runs, instead of their number.
        """
        ran = sum(variant.runs for variant in self.variants)
        programs = "1 program" if len(self.variants) == 1 else f"{len(self.variants)} programs"
        calls = f"{ran} of {ran + self.recorded + self.plain} calls"
        lines = [f"{self._name()}: {programs} ran {calls}; {self.recorded} were recorded, {self.plain} ran as Python"]
        for k, variant in enumerate(self.variants):
            lines += [f"program {k}: {program.summary()}" for program in variant.programs]
            lines[-1] += f"; ran {variant.runs} times"
            lines += (
                [f"    if {guard}" for guard in variant.guards] if guards else [f"    {len(variant.guards)} guards"]
            )
        return "\n".join([*lines, *[f"not compiled: {reason}" for reason in self.reasons]])

    def profile(self, *args: Any, **kwargs: Any) -> str:
        """Call the function, and return the lines of its program that ran, each with its time."""
        spent = times_of(self, args, kwargs)
        programs = [program for variant in self.variants for program in variant.programs]
        return "\n".join([line for program in programs for line in shown_times(program, spent)])

    def _name(self) -> str:
        return getattr(self.function, "__qualname__", type(self.function).__name__)

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the function without a program."""
        self.plain += 1
        return self.function(*args, **kwargs)

    def _give_up(self, reason: str, remedy: str) -> None:
        """Record no further programs, and tell the user so, once, in the log (as PyTorch does)."""
        self.failed = True
        logging.getLogger(__name__).warning("torch.compile: %s runs as Python: %s; %s", self._name(), reason, remedy)

    def _leave(self, variant: Entry, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the function without its program: a truth value differs from the recorded one."""
        self._left += 1
        if variant.broken or self._left >= self.limit:
            self.variants = []
            self.reasons.append(variant.broken or f"a tensor's truth value was another than before, {self._left} times")
            self._give_up(self.reasons[-1], "`torch.where` may do the same as an `if`")
        return self._run(args, kwargs)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the program that was made last as a module that needs NumPy alone, with an `.npz` file beside it.

        The module has a function `step`, which takes arrays for the tensors of the call and returns arrays in the same
        structure. The parameters, as they are now, and copies of the modules of kernels that the program calls lie in
        the `.npz` file of the same name; a training step changes the parameters in the module, as `parameters`, by
        name. The results are those of the compiled function under `TINYTORCH_NATIVE=0`, bit for bit; of a result that
        has a graph, its numbers.

        Args:
            path: of the file, which ends in `.py`.

        Raises:
            RuntimeError: there is no program yet, or it needs what is no function of arrays: a scheduler, say.
            ValueError: the path does not end in `.py`.

        Example:
            >>> import tempfile
            >>> model = torch.compile(torch.nn.Linear(2, 3))
            >>> y = model(torch.zeros(4, 2))
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     model.save(f"{folder}/linear.py")
        """
        if not self.variants:
            reason = f": {self.reasons[-1]}" if self.reasons else ": call it first"
            raise CompileError(f"there is no program to be saved{reason}")
        saved = importlib.import_module("tinytorch.compiler.saved")  # (rarely used, and large)
        saved.save(self.variants[-1], getattr(self.function, "__name__", type(self.function).__name__), path)

    def _record(self, args: tuple[Any, ...], kwargs: dict[str, Any], busy: bool) -> Any:
        """Call the function and record a program; a second one for the same guards if the first is `busy`."""
        self.variants = [variant for variant in self.variants if not variant.retired]
        if sum(variant.extra is busy for variant in self.variants) >= self.limit:
            if not busy:
                reason = f"it was called in more than {self.limit} ways (shapes, dtypes, settings)"
                self._give_up(reason, "the programs so far remain, and `recompile_limit` allows more")
            return self._run(args, kwargs)
        recorder = Recorder()
        tracer = Tracer(recorder, strict=self.fullgraph)
        collected = gc.get_threshold()
        if 0 < collected[0] < GC_THRESHOLD:
            gc.set_threshold(GC_THRESHOLD, *collected[1:])
        recording.count += 1
        try:
            with recorder:
                result = tracer.start(self.function, args, kwargs)
            if recorder.stopped is None:
                self._enter(recorder, tracer.guards, args, kwargs, result, busy)
        finally:
            recording.count -= 1
            tracer.guards.close()
            recorder.close()
            if 0 < collected[0] < GC_THRESHOLD:
                gc.set_threshold(*collected)
        if recorder.stopped is None:
            self.recorded += 1
        else:
            self.plain += 1
            self.reasons.append(recorder.stopped)
            if self.fullgraph:
                self.failed = len(self.reasons) > 1
                raise CompileError(f"torch.compile(fullgraph=True): {recorder.stopped}")
            if len(self.reasons) > 1:  # (a first call may differ: it may initialize something)
                self._give_up(recorder.stopped, "compile a function without that line")
        return _without_late(result)

    def _enter(
        self, recorder: Recorder, guards: Guards, args: Any, kwargs: Any, result: Any, busy: bool
    ) -> None:  # fmt: skip
        """Generate a program of what was recorded."""
        try:
            self.variants.append(Entry(self.function, recorder, guards, args, kwargs, result, busy, self.infers))
        except NotRecorded as reason:
            recorder.stop(str(reason))
        except Exception as error:  # an error of the compiler: the call has its result
            recorder.stop(f"{type(error).__name__}: {error}")


def _without_late(x: Any) -> Any:
    """Return a result with the numbers in the place of `Late` ones."""
    if type(x) is Late:
        return x.number
    return tuple([_without_late(element) for element in x]) if type(x) is tuple else x


__all__ = ["CompileError", "Compiled", "disabled", "recording", "reset", "stance"]
