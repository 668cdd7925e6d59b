"""`Compiled`: a function with the programs that were recorded of it; a call runs the first one whose guards hold."""

from __future__ import annotations

import dis
import functools
import gc
import importlib
import inspect
import logging
import os
import threading
import types
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tinytorch.compiler.backward import Layouts, put_back
from tinytorch.compiler.calls import has_hooks
from tinytorch.compiler.entry import BAILOUT, BUSY, MISSED, Entry
from tinytorch.compiler.explained import shown_times, times_of
from tinytorch.compiler.general import General, without_sizes
from tinytorch.compiler.graph_breaks import Children, split
from tinytorch.compiler.guards import is_record
from tinytorch.compiler.recorder import NotRecorded, Recorder, fault
from tinytorch.compiler.trace import Unwritten, plain
from tinytorch.compiler.tracing import Late, Tracer, disabled
from tinytorch.core.mode import PerThread, local
from tinytorch.nn.modules.module import Module
from tinytorch.ops import overrides

#: Allocations between garbage collections while a call is recorded: most objects live until its end.
GC_THRESHOLD = 100_000
DEPTH = 40  # parts in parts; functions that run in parts within others
LIMIT = 8  # programs, after which the least used one makes room: PyTorch's number
SIZES = 2  # programs that differ in nothing but sizes, after which one for any size is made
COUNTED = 2  # values of a number that a part is given, beyond which it is split where it reads the number
IDLE = 3  # calls of a part, one after another, that compute nothing with tensors: from then on it runs as Python
RARELY = 8  # runs, below which that one replaces them


class CompileError(RuntimeError):
    """A function cannot be compiled though `fullgraph` or the stance requires it."""


class _Disturbed(Exception):
    """Raised where a traced function raises an error, before any effect, with that error and the tracer."""


class Stance:
    """How compiled functions run (`set_stance`)."""

    name = "default"


class _Recording(PerThread):
    count = 0  # of calls that are being recorded
    depth = 0  # of functions that run in parts


stance = Stance()
recording = _Recording()
_all: weakref.WeakSet[Compiled] = weakref.WeakSet()


def reset() -> None:
    """Forget all programs."""
    for compiled in list(_all):
        compiled._clear()


class Compiled:
    """A function that runs as a program where the guards of one hold.

    A function that cannot be compiled as a whole is split into parts (`graph_breaks`), which are compiled.

    Attributes:
        function: the function.
        variants: the programs, one for each signature.
        reasons: why calls could not be compiled.
        failed: no further programs are recorded.
        strict: a tensor's truth value is not compiled: it has been another than before too often.
        infers: whether programs are rewritten for inference where nothing requires a gradient.
        recorded, plain: the number of calls that were recorded as programs, and that ran as Python for good.
        idle: the number of the last calls that were traced and did nothing with tensors.
        dynamic: whether programs are for tensors of any size: True, False, or None for those whose sizes change.
        split: the function in parts, or None; `parts` are these, and the compiled forms of what it calls elsewhere.
        graph_breaks: the place and the reason of each statement of the function that runs as Python.
        outer: the function of which this is a part.
    """

    def __init__(
        self, function: Callable[..., Any], fullgraph: bool = False, limit: int | None = None,
        dynamic: bool | None = None, infers: bool = False, outer: Compiled | None = None,
    ) -> None:  # fmt: skip
        if not isinstance(function, Module):
            functools.update_wrapper(self, function)  # (first: it copies the attributes of a compiled function, too)
        self.function, self.fullgraph, self.limit, self.dynamic = function, fullgraph, limit or LIMIT, dynamic
        self.infers = infers
        self._clear(None if outer is None else outer.children)
        self.outer, self.depth = outer, 0 if outer is None else outer.depth + 1
        self._objects: list[tuple[Any, type, int]] = []  # objects of users' classes that were arguments
        self._renewed = False
        self._layouts = Layouts(restores=outer is not None)
        self._numbers: dict[str, set[Any]] = {}  # by name of an argument of a part, the numbers that it has been
        self._left = 0  # number of calls that left a program since a truth value differed
        self._lock = threading.Lock()
        self._torchdynamo_orig_callable = function
        _all.add(self)

    def _clear(self, children: Children | None = None) -> None:
        self.variants: list[Entry | General] = []
        self.reasons: list[str] = []
        self.failed = self.strict = False
        self.recorded = self.plain = self.idle = 0
        self.split: Callable[..., Any] | None = None
        self.parts: list[Compiled] = []
        self.graph_breaks: list[tuple[str, str]] = []
        self.children = children

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __reduce__(self) -> Any:
        return type(self), (self.function, self.fullgraph, self.limit, self.dynamic, self.infers)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the function returns."""
        busy = False
        if stance.name != "force_eager":
            for variant in self.variants:
                result = variant.enter(args, kwargs)
                if result is MISSED:
                    continue
                if result is BAILOUT:
                    return self._bail_out(variant, args, kwargs)
                if result is not BUSY:
                    variant.runs += 1
                    return result
                busy = True
            if not (self.failed or _observed()):
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
        """The text of the latest program, and of that of its gradient; of a function in parts, those of all of them."""
        if self.split is not None:
            return "\n\n".join([part.variants[-1].source for part in self.whole() if part.variants])
        return self.variants[-1].source if self.variants else ""

    def _entries(self) -> list[Entry]:
        """Return the programs for tensors of certain sizes."""
        return [variant for variant in self.variants if isinstance(variant, Entry)]

    def explain(self, guards: bool = False) -> str:
        """Return a sentence about the calls so far, the programs, and why other calls were not compiled.

        Args:
            guards: list the conditions under which each program runs, instead of their number.
        """
        whole = list(self.whole())
        variants = [variant for part in whole for variant in part.variants]
        breaks = dict.fromkeys([each for part in whole for each in part.graph_breaks])
        ran = sum(variant.runs for variant in self.variants)
        calls = f"{ran} of {ran + self.recorded + self.plain} calls"
        lines = [f"{self._name()}: {_counted(len(variants), 'program')}"]
        if self.split is None:
            lines[0] += f" ran {calls}; {self.recorded} were recorded, {self.plain} ran as Python"
        else:
            shown = ", ".join([f"at {place} ({reason})" for place, reason in breaks])
            lines[0] += f", {_counted(len(breaks), 'graph break')} {shown}"
            lines.append(f"one program ran {calls}; {self.plain} ran in parts")
        for k, variant in enumerate(variants):
            lines += [f"program {k}: {program.summary()}" for program in variant.programs]
            lines[-1] += f"; ran {variant.runs} times"
            lines += (
                [f"    if {guard}" for guard in variant.guards] if guards else [f"    {len(variant.guards)} guards"]
            )
        reasons = dict.fromkeys([reason for part in whole for reason in part.reasons]) if self.split else self.reasons
        return "\n".join([*lines, *[f"not compiled: {reason}" for reason in reasons]])

    def profile(self, *args: Any, **kwargs: Any) -> str:
        """Call the function, and return the lines of its program that ran, each with its time."""
        spent = times_of(self, args, kwargs)
        programs = [program for part in self.whole() for variant in part.variants for program in variant.programs]
        return "\n".join([line for program in programs for line in shown_times(program, spent)])

    def whole(self) -> Iterator[Compiled]:
        """Yield the function, its parts, and what it calls outside of these."""
        yield self
        for part in self.parts:
            yield from part.whole()

    def _name(self) -> str:
        return getattr(self.function, "__qualname__", type(self.function).__name__)

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the function without a program, or in parts."""
        self.plain += 1
        if self.split is None or stance.name == "force_eager" or recording.count or _observed():
            return self.function(*args, **kwargs)
        if recording.depth >= DEPTH:  # a recursive function: parts take several times the frames
            return self.function(*args, **kwargs)
        recording.depth += 1
        try:
            return self.split(*args, **kwargs)
        finally:
            recording.depth -= 1

    def _give_up(self, reason: str, remedy: str) -> None:
        """Record no further programs, and tell the user so, once, in the log (as PyTorch does)."""
        self.failed, self._layouts.open = True, False
        if self.outer is None:
            what = f"{self._name()} runs as Python: {reason}; {remedy}"
            logging.getLogger(__name__).warning("torch.compile: %s", what)

    def _split(
        self, reason: str, own_line: int | None, line: tuple[str, int] | None, whole: bool = False,
        through: Sequence[tuple[types.CodeType, int]] = (), told: bool = False,
    ) -> None:  # fmt: skip
        """Run the function in parts from now on, and tell the user so, once.

        Args:
            reason: why it cannot be compiled.
            own_line: the line of the function where that is; `line` is that of the user's code.
            whole: no statements become parts; only what they call is compiled.
            through: the code and the line of each function that it calls there: these will be split, too.
            told: whether the user knows it.
        """
        if self.children is None:
            self.children = Children(self._called)
        for code, inner_line in through:
            self.children.known.setdefault(code, (reason, inner_line, line))
        try:
            if self.depth < DEPTH:
                self.split = split(self.function, own_line, self._part, self.children, whole)
        except Exception as error:
            self.reasons.append(fault(error))
        if self.split is None:
            return self._give_up(reason, "compile a function without that line")
        self.failed, self._layouts.open = True, False
        place = f"{line[0]}:{line[1]}" if line else self._place()
        self.graph_breaks.append((place, reason.removeprefix(f"{place}: ")))
        if self.outer is None and not told:
            what = f"graph break at {place} ({self.graph_breaks[0][1]}); compile a function without that line"
            logging.getLogger(__name__).warning("torch.compile: %s: %s", self._name(), what)
        return None

    def split_at(self, line: int) -> Compiled:
        """Run the function in parts from the first call on, since the statement of a line is not to be compiled."""
        self._split("a loop", line, (self._place().rpartition(":")[0], line), told=True)
        return self

    def _place(self) -> str:
        """Return the file and line of the function."""
        function: Any = self.function
        code = getattr(inspect.unwrap(getattr(type(function), "forward", function)), "__code__", None)
        return "?" if code is None else f"{code.co_filename}:{code.co_firstlineno}"

    def _called(self, function: Callable[..., Any]) -> Compiled:
        """Return the compiled form of a function or module that is called outside of the parts."""
        made = self._part(function)
        inner: Any = type(function).forward if isinstance(function, Module) else function
        code: Any = getattr(inner, "__code__", None)
        known = self.children.known.get(code)  # type: ignore[union-attr]
        if known is not None and not (isinstance(function, Module) and has_hooks(function)):
            made.reasons.append(known[0])
            made._split(*known)
        return made

    def _part(self, function: Callable[..., Any]) -> Compiled:
        """Return the compiled form of a part."""
        self.parts.append(Compiled(function, limit=self.limit, dynamic=self.dynamic, infers=self.infers, outer=self))
        return self.parts[-1]

    def _bail_out(self, variant: Entry | General, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the function without its program: a truth value differs from the recorded one."""
        self._left += 1
        if variant.broken or self._left >= self.limit:
            self.variants = []
            self.reasons.append(variant.broken or f"a tensor's truth value was another than before, {self._left} times")
            if variant.broken or self.strict or self.fullgraph:
                self._give_up(self.reasons[-1], "`torch.where` may do the same as an `if`")
            self.strict, self._left = True, 0  # the next call is split where the value decides
        return self._run(args, kwargs)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the program that was made last as a module that needs NumPy alone, with an `.npz` file beside it.

        The module has a function `step`, which takes arrays for the tensors of the call and returns arrays in the same
        structure. `parameters` and `buffers`, as they are now, have the names of the model's state dict, and
        `load_state_dict` takes others; a training step changes them in the module. They lie in the `.npz` file, with
        copies of the modules of kernels that the program calls. The results are those of the compiled function under
        `TINYTORCH_NATIVE=0`, bit for bit; of a result that has a graph, its numbers.

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
        entries = self._entries()
        if not entries:
            reason = f": {self.reasons[-1]}" if self.reasons else ": call it first"
            raise CompileError(f"there is no program to be saved{reason}")
        saved = importlib.import_module("tinytorch.compiler.saved")  # (rarely used, and large)
        saved.save(self.function, entries[-1], getattr(self.function, "__name__", type(self.function).__name__), path)

    def _record(self, args: tuple[Any, ...], kwargs: dict[str, Any], busy: bool, sizes: bool = True) -> Any:
        """Call the function and record a program; a second one for the same guards if the first is `busy`.

        An error, before which nothing has changed, may be one of the compiler: then the function runs as Python.
        """
        self.variants = [variant for variant in self.variants if not variant.retired]
        sizes = sizes and not busy and self._is_for_any_size(args, kwargs)
        try:
            return self._record_call(args, kwargs, busy, sizes)
        except _Disturbed as disturbed:
            error, tracer = disturbed.args
        put_back(tracer.recorder.marks, tracer.recorder.marks.values())
        if sizes:  # perhaps the function does not take a `Dimension` for a number
            result = self._record(args, kwargs, busy, sizes=False)
            self.dynamic = False
            return result
        result = self._run(args, kwargs)  # (which raises the error, unless it is one of the compiler)
        self.reasons.append(fault(error))
        if self.fullgraph:
            raise CompileError(f"torch.compile(fullgraph=True): {self.reasons[-1]}") from error
        own_line, line = tracer.stopped_at
        self._split(self.reasons[-1], own_line, line, through=tracer.through, told=True)
        return result

    def _record_call(self, args: tuple[Any, ...], kwargs: dict[str, Any], busy: bool, sizes: bool = False) -> Any:
        """Call the function and record a program, for tensors of any size if `sizes` is set and it is possible."""
        if sum(variant.extra is busy for variant in self.variants) >= self.limit and (busy or self._is_unsteady()):
            return self._run(args, kwargs)
        if self.outer is not None and self._counts(args):
            return self._run(args, kwargs)
        recorder = Recorder()
        tracer = Tracer(recorder, strict=self.fullgraph or self.strict, sizes=sizes)
        tracer.guards.renewed = self._has_new_objects(args, kwargs) or self.outer is not None
        collected = gc.get_threshold()
        if 0 < collected[0] < GC_THRESHOLD:
            gc.set_threshold(GC_THRESHOLD, *collected[1:])
        recording.count += 1
        try:
            with recorder:
                result = tracer.start(self.function, args, kwargs)
            if recorder.stopped is None:
                result = self._enter(tracer, args, kwargs, result, busy)
        except Exception as error:
            changed = tracer.counted or tracer.replaced or tracer.tokens
            if recorder.stopped is None and not recorder.has_effects() and not changed:
                tracer.failed(error)
                raise _Disturbed(error, tracer) from error
            raise
        finally:
            recording.count -= 1
            tracer.close()
            if 0 < collected[0] < GC_THRESHOLD:
                gc.set_threshold(*collected)
        idle = self.outer is not None and not recorder.used
        self.idle = self.idle + 1 if idle else 0
        if self.idle >= IDLE:
            self.failed, self.variants = True, [each for each in self.variants if each.programs[0].count]
        if recorder.stopped is None:
            self.recorded += 1
        else:
            self.plain += 1
            self.reasons.append(recorder.stopped)
            if self.fullgraph:
                self.failed = len(self.reasons) > 1
                raise CompileError(f"torch.compile(fullgraph=True): {recorder.stopped}")
            # (A first call may differ: it may initialize something.)
            if (len(self.reasons) > 1 or self.outer is not None) and not idle:
                self._split(recorder.stopped, *tracer.stopped_at, through=tracer.through)
        return _without_late(result)

    def _has_new_objects(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Return whether calls were given different objects of one class, such as a cache for each call."""
        kinds = [(k, type(x), id(x)) for k, x in (*enumerate(args), *kwargs.items()) if is_record(x)]
        self._renewed = self._renewed or any(
            k == j and kind is other and number != before
            for k, kind, number in kinds
            for j, other, before in self._objects
        )
        self._objects = kinds
        return self._renewed

    def _is_unsteady(self) -> bool:
        """Return whether most programs were hardly used; then no more of them are recorded."""
        ran = sum(variant.runs for variant in self.variants)
        if not (self.recorded > 2 * self.limit > ran or self.recorded > ran + 8 * self.limit):
            return False
        reason = f"it was called in more than {self.limit} ways (shapes, dtypes, settings)"
        self._give_up(reason, "the programs so far remain, and `recompile_limit` allows more")
        signatures = {tuple([(x.shape, x.dtype) for x in variant.inputs]) for variant in self._entries()}
        if self.outer is not None and len(signatures) == 1:
            self.variants = [variant for variant in self.variants if variant.runs]
            self._split(reason, None, None, whole=True)  # (numbers or objects differ; what it calls may not)
        return True

    def _counts(self, args: tuple[Any, ...]) -> bool:
        """Return whether a part is split where it reads a number that is another one each time, such as a count."""
        code = getattr(self.function, "__code__", None)
        if code is None:
            return False
        for name, x in zip(code.co_varnames, args, strict=False):
            if type(x) in (int, float):
                self._numbers.setdefault(name, set()).add(x)
                if len(self._numbers[name]) > COUNTED:
                    line = _first_use(code, name)
                    if line is not None:
                        self.variants, self._numbers = [], {}
                        self._split(f"the number {name} is another one each time", line, (code.co_filename, line))
                        return True
        return False

    def _make_room(self, new: list[Entry | General]) -> None:
        """Drop the least used programs of those beyond the limit."""
        for extra in (False, True):
            alike = [variant for variant in self.variants if variant.extra is extra]
            old = sorted([variant for variant in alike if variant not in new], key=lambda variant: variant.runs)
            gone = old[: max(len(alike) - self.limit, 0)]
            self.variants = [variant for variant in self.variants if variant not in gone]

    def _is_for_any_size(self, args: Any, kwargs: Any) -> bool:
        """Return whether the next program shall be for tensors of any size."""
        if self.dynamic is not None:
            return self.dynamic
        general = [variant for variant in self.variants if isinstance(variant, General)]
        if any(variant.wanted for variant in general):  # the sizes of this call are frequent
            for variant in general:
                variant.wanted = False
            return False
        # (For inference a program of kernels for each size is worth more.)
        limit = 2 * SIZES if self.infers else SIZES
        # (It may also say what a program of kernels cannot: that a result shares memory with an input, say.)
        return bool(general or self.reasons) or len(self._of_other_sizes(args, kwargs)) >= limit

    def _of_other_sizes(self, args: Any, kwargs: Any) -> list[Entry]:
        """Return the programs that differ from a call in nothing but sizes."""
        entries = [entry for entry in self._entries() if not entry.extra]
        return [entry for entry in entries if entry.differs_in_size(args, kwargs)]

    def _enter(self, tracer: Tracer, args: Any, kwargs: Any, result: Any, busy: bool) -> Any:
        """Generate programs of what was recorded, and return the result."""
        trace, general = tracer.trace, None
        if trace is not None:
            try:
                general = General(tracer, trace, args, kwargs, result)
            except (NotRecorded, Unwritten) as error:
                trace.fail(str(error))
            trace.close()
            result = without_sizes(result)
        entry: Entry | None = None
        reason = ""
        line = None
        try:
            entry = Entry(self.function, tracer, args, kwargs, result, busy, self._layouts, self.infers)
        except NotRecorded as error:
            reason, line = str(error), error.line
        except Exception as error:  # the call has its result
            reason = fault(error)
        others = self._of_other_sizes(args, kwargs) if general is not None else []
        changing = self.dynamic or others or any(isinstance(variant, General) for variant in self.variants)
        if entry is not None and not changing:
            general = None
        elif entry is None and general is None:
            tracer.stop_at(reason, line)
        gone = [other for other in others if other.runs < RARELY]
        kept = [variant for variant in self.variants if variant not in gone]
        new = [variant for variant in (entry, general) if variant is not None]
        self.variants = sorted([*kept, *new], key=lambda variant: isinstance(variant, General))
        self._make_room(new)
        return result


def _first_use(code: types.CodeType, name: str) -> int | None:
    """Return the first line of a function that reads a variable, or None."""
    lines = [
        each.positions.lineno for each in dis.get_instructions(code)
        if each.argval == name and each.opname.startswith("LOAD") and each.positions is not None
    ]  # fmt: skip
    return min([line for line in lines if line is not None], default=None)


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _observed() -> bool:
    """Return whether a mode sees the operations of this thread, which a program would hide from it."""
    return bool(local.state.modes is not None or overrides.state.modes or local.state.inference)


def _without_late(x: Any) -> Any:
    """Return a result with the numbers in the place of `Late` ones, and of sizes."""
    if type(x) is Late:
        return x.number
    return tuple([_without_late(element) for element in x]) if type(x) is tuple else plain(x)


__all__ = ["CompileError", "Compiled", "disabled", "recording", "reset", "stance"]
