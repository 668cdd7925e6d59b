"""The scheduler: runs of one program, of which one at a time executes Python.

A run continues until it reaches a compiled program. When all runs wait at one, those that recorded the same steps make
them jointly (`joint`); then each continues with its results. A run whose steps differ runs its own program.

Each run is a thread, or a greenlet where the package `greenlet` is installed: switching between threads takes 25 to
100 microseconds, which is more than a small training step of one of many runs.

Each run has its own streams of random numbers: those of `torch`, `random` and `numpy.random`.
"""

from __future__ import annotations

import logging
import random
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from tinytorch.autograd import api
from tinytorch.autograd.saved import _disabled
from tinytorch.compiler import entry as entries
from tinytorch.compiler.compiled import recording
from tinytorch.compiler.recorder import Call, NotRecorded, Recorder, Value, fault
from tinytorch.compiler.sources import FOLDER
from tinytorch.compiler.sweep.comparison import NotJoined, Steps, copied, difference
from tinytorch.compiler.sweep.joint import Joint, Unable
from tinytorch.core.mode import State, local
from tinytorch.core.tensor import Tensor
from tinytorch.kernels.programs import Bailout
from tinytorch.kernels.random import Source
from tinytorch.ops import overrides
from tinytorch.ops.random import default_generator

CACHE = 1 << 24  # bytes of arrays that runs use together: with more, steps wait for main memory
FEWEST = 3  # runs for which joining is worth its while
PATIENCE = 3  # steps in which some of a group's runs are elsewhere, after which the others form a group


try:
    import greenlet
except ImportError:
    greenlet = None


class Stopped(BaseException):
    """Raised in a run that is to end since the sweep was interrupted."""


class Run:
    """A run in progress.

    Attributes:
        number: its place among the runs.
        losses: what `backward` was called on, in order.
        joint, alone: the number of its steps, that is of losses, that were made jointly with others, and alone.
        met: the number of programs that it has run since the last loss.
        begun: whether `backward` runs outside of a program: the step is joint if its backward program is.
        reason: why it ran programs, or steps of Python, alone.
        result, error: what it returned, or raised.
    """

    def __init__(self, number: int, seed: int, body: Callable[[], Any]) -> None:
        self.number, self.seed, self.body = number, seed, body
        self.losses: list[float] = []
        self.joint = self.alone = 0
        self.begun = False
        self.met = 0
        self.reason = ""
        self.result: Any = None
        self.error: BaseException | None = None
        self.source = Source(seed)
        self.source.shift = seed
        self.random, self.numpy = random.Random(seed), np.random.RandomState(seed % 2**32)
        self.baton = threading.Lock()
        self.baton.acquire()
        self.arguments: list[str] | None = None  # `sys.argv`
        self.greenlet: Any = None
        self.states: tuple[Any, ...] = ()  # of the thread, while another run executes
        self.finished = False
        self.answer: Any = None
        self.waits: tuple[_Program, tuple[Any, ...]] | None = None
        self.programs: list[_Program] = []
        self.compiled: list[Any] = []  # its compiled functions
        self.last: _Program | None = None  # that it ran last
        self.repeats = 0  # how often it waits to make its last step again

    def count(self, array: Any) -> int:
        """Return the number of references to an array that the run's programs and optimizers hold."""
        return sum(program.references(array) for program in self.programs) + sum(
            x is array for optimizer in self._optimizers() for plan in optimizer._plans.values()
            for pack in plan.packs for x in pack.arrays
        )  # fmt: skip

    def replace(self, array: Any, by: Any) -> None:
        """Replace an array, which has moved, in the guards of the run's programs."""
        for program in self.programs:
            program.replace(array, by)

    def why_alone(self) -> str:
        """Return why it ran steps alone, or an empty string."""
        if self.reason or not self.alone:
            return self.reason
        breaks = [each for made in self.compiled for part in made.whole() for each in part.graph_breaks]
        reasons = [reason for made in self.compiled for part in made.whole() for reason in part.reasons]
        found = [f"{reason}, at {place}" for place, reason in breaks if reason != "a loop"] or reasons
        return f"steps run as Python: {found[0]}" if found else "no training step was found in a loop"

    def _optimizers(self) -> list[Any]:
        found = {id(x): x for program in self.programs for x in program.optimizers}
        return list(found.values())


class _Program:
    """A program of a run: that of an entry, or a backward program, which exists as `own` already.

    Attributes:
        repeats: whether nothing but its results is seen, so that it can be run again without Python in between.
    """

    def __init__(self, run: Run, entry: Any, program: Any, steps: Steps, own: Any, repeats: bool) -> None:
        self.run, self.entry, self.program, self.steps, self.repeats = run, entry, program, steps, repeats
        self.backward = own is not None
        self.group: _Group | None = None
        frames = traceback.walk_stack(sys._getframe(1))
        of_user = [
            (frame.f_code.co_filename, line) for frame, line in frames if "<" not in frame.f_code.co_filename[:1]
        ]
        self.line = next((at for at in of_user if not at[0].startswith(FOLDER)), None)
        owners = [getattr(call.function, "__self__", None) for call in steps.calls]
        self.optimizers = [x for x in owners if hasattr(x, "_plans")]
        self._own = own
        self._arrays: list[Any] = []

    def references(self, array: Any) -> int:
        """Return the number of references to an array."""
        scope = sum(x is array for x in self.entry._scope.values())
        values = {id(v): v for call in self.steps.calls for v in (*call.inputs(),)} | {
            id(v): v for v in (*self.steps.inputs, *self.steps.results)
        }
        return scope + sum(v.array is array for v in values.values()) + sum(x is array for x in self._arrays)

    def replace(self, array: Any, by: Any) -> None:
        """Replace an array."""
        scope = self.entry._scope
        for name, x in scope.items():
            if x is array:
                scope[name] = by
        for value in (*self.steps.inputs, *self.steps.results):
            if value.array is array:
                value.array = by

    def alone(self, given: tuple[Any, ...]) -> Any:
        """Run the run's own program."""
        steps = self.steps
        arrays = [v.tensor._array for v, stays in zip(steps.inputs, steps.bound, strict=True) if stays]  # type: ignore[union-attr]
        if self._own is None or any(a is not b for a, b in zip(arrays, self._arrays, strict=True)):
            self._arrays = arrays
            self._own = self.program.binding(arrays)()
        return self._own(*given)


class _Group:
    """Programs of different runs that are alike."""

    def __init__(self, capacity: int) -> None:
        self.capacity = max(capacity, 1)  # the most runs that are joined
        self.programs: list[_Program] = []
        self.joint: Joint | None = None
        self.joined: list[_Program] = []
        self.refused = "" if capacity >= FEWEST else "the arrays of a run fill the cache: its steps are made one by one"
        self.waited = 0


class Scheduler:
    """Runs programs together.

    Args:
        runs: the runs.
        told: called with the number of steps that have been made, in all runs.
    """

    def __init__(self, runs: Sequence[Run], told: Callable[[int], None] = lambda count: None) -> None:
        self.runs, self.told = runs, told
        self._ready: deque[Run] = deque(runs)
        self._groups: list[_Group] = []
        self._of_thread = threading.local()
        self._running: Run | None = None  # the greenlet that executes
        self._main: Any = None  # the greenlet that starts the others
        self._done = threading.Event()
        self._stopped = False
        self._interrupt: BaseException | None = None  # a KeyboardInterrupt, say: all runs are to end
        self._pending: list[tuple[Recorder, int, Value]] = []

    def start(self) -> None:
        """Run everything, and return when all runs have ended."""
        before, arguments = default_generator._source, sys.argv
        with self._observing(), _streams(self):
            try:
                if greenlet is None:
                    self._start_threads()
                else:
                    self._start_greenlets()
            finally:
                default_generator._source, sys.argv = before, arguments
        if self._interrupt is not None:
            raise self._interrupt

    def _start_threads(self) -> None:
        threads = [threading.Thread(target=self._live, args=(run,), daemon=True) for run in self.runs]
        try:
            for thread in threads:
                thread.start()
            self._wake(self._ready.popleft())
            self._done.wait()
        except BaseException:
            self._stopped = True
            self._done.wait(60)
            raise

    def _start_greenlets(self) -> None:
        own, self._main = _states(), greenlet.getcurrent()
        self._of_thread.own = True
        for run in self.runs:
            run.greenlet, run.states = greenlet.greenlet(self._live), (State(), *own[1:])
        try:
            while self._ready:  # (a greenlet that ends continues here)
                self._running = None
                self._wake(self._ready.popleft())
        finally:
            self._of_thread.own, self._running = False, None
            _set_states(own)

    @property
    def current(self) -> Run | None:
        """The run of this thread."""
        return self._running if getattr(self._of_thread, "own", False) else getattr(self._of_thread, "run", None)

    @contextmanager
    def _observing(self) -> Iterator[None]:
        logger = logging.getLogger("tinytorch.compiler.compiled")
        entries.observer, api.observer = self, self._observe_loss
        logger.addFilter(self._is_first)
        try:
            yield
        finally:
            logger.removeFilter(self._is_first)
            entries.observer = api.observer = None

    def _is_first(self, record: Any) -> bool:
        """Return whether a message is one of the first run, or an error: those of the others say the same."""
        return record.levelno >= logging.ERROR or self.current in (None, self.runs[0])

    # Switching ------------------------------------------------------------------------------------

    def _wake(self, run: Run) -> None:
        default_generator._source = run.source
        if run.arguments is not None:
            sys.argv = run.arguments
        if run.greenlet is None:
            run.baton.release()
            return
        before = self._running
        if before is not None:
            before.states = _states()
        if before is not None and not run.greenlet:
            # `_start_greenlets` starts it: started from here, it would begin at the depth of this stack.
            self._ready.appendleft(run)
            self._main.switch()
            return
        self._running = run
        _set_states(run.states)
        run.greenlet.switch(*[] if run.greenlet else [run])  # (the first time with its argument)

    def _live(self, run: Run) -> None:
        """Execute a run, in its thread."""
        if run.greenlet is None:
            run.baton.acquire()
            self._of_thread.run = run
        try:
            run.result = run.body()
        except Exception as error:
            run.error = error
        except BaseException as error:
            run.error = None if isinstance(error, (Stopped, SystemExit)) else error
            self._interrupt = self._interrupt or run.error
            self._stopped = self._interrupt is not None
        run.finished = True
        try:
            self._serve()
        except BaseException as error:  # of this module: let the others end
            run.error = error
            self._stopped = True
        if run.greenlet is not None:
            return
        if self._ready:
            self._wake(self._ready.popleft())
        else:
            self._done.set()

    def meet(self, program: _Program, given: tuple[Any, ...]) -> Any:
        """Wait for the other runs, and return the results of the program."""
        run = program.run
        if self._stopped:
            raise Stopped
        run.met += 1
        run.waits, run.last = (program, given), program if program.repeats else None
        self._pass_on(run)
        answer, run.answer = run.answer, None
        if isinstance(answer, BaseException):
            raise answer
        count = program.steps.losses
        if count:
            run.losses += [float(x) for x in answer[-count:]]
            run.met = 0
            self.told(count)
        return answer

    def _pass_on(self, run: Run) -> None:
        """Let the other runs execute until this one has its answer."""
        self._serve(run)
        other = self._ready.popleft()
        if other is not run:
            self._wake(other)
            if run.greenlet is None:
                run.baton.acquire()

    def repeated(self, function: Any, most: int) -> int:
        """Make the last step again, as often as all runs do the same, and return how often that was.

        No Python runs in between, so that no thread does: what it would see, such as `.grad`, is set by the last step.
        `function` is the compiled step of the current run, which wants to make it `most` times.
        """
        run = self.current
        program = None if run is None else run.last
        if run is None or program is None or most <= 0:
            return 0
        if program.entry not in function.variants or program.entry.retired or function.split is not None:
            return 0  # (it was only a part of the step)
        run.repeats, run.waits = most, (program, ())
        self._pass_on(run)
        count, run.answer = run.answer, None
        if isinstance(count, BaseException):
            raise count
        return int(count)

    def _repeat(self, runs: list[Run]) -> int:
        """Make a group's step until one of its runs has made all of its steps, or must not; return how often."""
        programs: list[Any] = [run.last for run in runs]
        group = programs[0].group
        joint = group.joint
        if joint is None or group.joined != programs or any(program.entry.retired for program in programs):
            return 0
        most = min(run.repeats for run in runs)
        losses = programs[0].steps.losses
        if not joint.is_valid():
            return 0
        for count in range(most):
            if self._stopped or (count and not joint.is_current()):
                return count
            steps, given = [], []
            for program in programs:
                step = program.entry.parts((), {})
                try:
                    given.append(next(step))
                except StopIteration:
                    break
                steps.append(step)
            try:
                answers = joint.run(given, count == most - 1) if len(steps) == len(runs) else None
            except Unable:
                answers = None
            if answers is None:
                for step in steps:
                    _abandon(step)
                joint.set_gradients()
                return count
            for step, answer in zip(steps, answers, strict=True):
                with suppress(StopIteration):
                    step.send(answer)
            for run, answer in zip(runs, answers, strict=True):
                run.joint += losses
                if losses:
                    run.losses += [float(x) for x in answer[-losses:]]
            self.told(len(runs) * losses)
        return most

    def _serve(self, run: Run | None = None) -> None:
        """Run the programs at which the runs wait, if all of them wait, or if all of a full group do.

        A full group, that of a run that has begun to wait, goes on before the others: its arrays are in the cache.
        Where runs wait at different programs, those that are behind go on, so that they meet the others again.
        """
        group = None if run is None or run.waits is None else run.waits[0].group
        if group is not None and len(group.programs) >= group.capacity:
            members = [program.run for program in group.programs if not program.run.finished]
            if all(each.waits is not None and each.waits[0].group is group for each in members):
                self._answer(members)
                self._ready.extendleft([each for each in reversed(members) if each.waits is None])
                return
        if self._ready:
            return
        waiting = [run for run in self.runs if run.waits is not None]
        by_group: dict[int, list[Run]] = {}
        for each in waiting:
            by_group.setdefault(id(each.waits[0].group), []).append(each)  # type: ignore[index]
        asking = any(each.repeats for each in waiting)
        behind = min([(len(each.losses), each.met) for each in waiting], default=None)
        for runs in by_group.values():
            if any(each.repeats if asking else (len(each.losses), each.met) == behind for each in runs):
                self._answer(runs)
        self._ready.extend([each for each in waiting if each.waits is None])

    def _answer(self, runs: list[Run]) -> None:
        """Run the programs of one group; those who ask to repeat their steps do so if all of them ask."""
        asking = [run for run in runs if run.repeats]
        if not asking:
            self._run_group(runs)
        else:
            count: Any = 0
            if len(asking) == len(runs):
                try:
                    count = self._repeat(runs)
                except Exception as error:
                    count = error
            for run in asking:
                run.answer = count
        for run in asking or runs:
            run.waits, run.repeats = None, 0

    def _run_group(self, runs: list[Run]) -> None:
        programs = [run.waits[0] for run in runs]  # type: ignore[index]
        given = [run.waits[1] for run in runs]  # type: ignore[index]
        joint = self._joint_of(programs)
        if joint is not None:
            try:
                answers = joint.run(given)
            except Unable:  # each of them runs alone, and raises its own error, or leaves its program
                pass
            except Exception as error:
                for run in runs:
                    run.answer = error
                return
            else:
                for run, answer in zip(runs, answers, strict=True):
                    run.answer = answer
                    run.joint += run.begun if programs[0].backward else programs[0].steps.losses
                    run.alone -= run.begun and programs[0].backward
                    run.begun &= not programs[0].backward
                return
        for run, program, arrays in zip(runs, programs, given, strict=True):
            default_generator._source = run.source
            if not run.reason and not program.backward:  # (else its forward program says why)
                run.reason = (program.group and program.group.refused) or self._why(program)
            try:
                run.answer = program.alone(arrays)
            except BaseException as error:
                run.answer = error
            run.alone += program.steps.losses

    def _joint_of(self, programs: list[_Program]) -> Joint | None:
        """Return the joint program of programs of one group, or None."""
        group = programs[0].group
        assert group is not None
        if len(programs) == 1 or group.refused:
            return None
        if programs != group.joined or group.joint is None or not group.joint.is_valid():
            alive = [program for program in group.programs if not program.run.finished]
            if len(programs) < len(alive) and group.joint is not None:
                group.waited += 1
                if group.waited < PATIENCE:
                    return None
            group.waited, group.joint, group.joined = 0, None, programs
            try:
                group.joint = Joint([x.steps for x in programs], [x.run for x in programs])
            except (NotJoined, NotRecorded) as reason:
                group.refused = str(reason)
            except Exception as error:
                group.refused = fault(error)
        return group.joint

    def _why(self, program: _Program) -> str:
        """Return why a program is in no group with others."""
        others = [run.waits[0] for run in self.runs if run.waits and run.waits[0].group is not program.group]
        others += [x for group in self._groups for x in group.programs if x.run is not program.run]
        reasons = [reason for other in others if (reason := difference(other.steps, program.steps))]
        found = next(iter([each for each in reasons if ", at " in each] or reasons), "the other runs have ended")
        where = f", at {program.line[0]}:{program.line[1]}" if reasons and program.line else ""
        return found if ", at " in found else found + where

    # Programs -------------------------------------------------------------------------------------

    def steps_of(
        self, calls: list[Call], values: list[Value], bound: list[bool], shown: list[Value], views: set[int],
        recorder: Recorder | None = None,
    ) -> Steps | None:  # fmt: skip
        """Return the steps of a program that is being made, whose results get the losses in addition."""
        if self.current is None:
            return None
        losses = [value for of, at, value in self._pending if of is recorder and at <= len(calls)]
        self._pending = [x for x in self._pending if x[0] is not recorder]
        shown += losses
        return Steps(copied(calls), values, list(bound), list(shown), set(views), len(losses))

    def compiles(self, function: Any) -> Any:
        """Return a compiled function of the current run, after noting it."""
        if self.current is not None:
            self.current.compiled.append(function)
        return function

    def made(self, entry: Any, made: Any, steps: Steps, in_graph: bool, own: Any = None) -> Callable[..., Any]:
        """Return the function of a program that has been made: it meets those of the other runs."""
        run = self.current
        assert run is not None
        program = _Program(run, entry, made, steps, own, not in_graph)
        run.programs.append(program)
        for group in self._groups:
            free = len(group.programs) < group.capacity and all(x.run is not run for x in group.programs)
            if free and not difference(group.programs[0].steps, steps):
                break
        else:
            used = sum(v.size * v.dtype.itemsize for v in steps.inputs) + made.peak
            group = _Group(CACHE // max(used, 1))
            self._groups.append(group)
        group.programs.append(program)
        program.group = group
        return lambda *given: self.meet(program, given)

    def _observe_loss(self, tensors: Any) -> None:
        """Note the loss that `backward` is called on."""
        run = self.current
        if run is None or not isinstance(tensors, Tensor) or tensors._array.size != 1:
            return
        recorder = next((mode for mode in local.state.modes or () if isinstance(mode, Recorder)), None)
        run.losses.append(float(tensors._array.item()))
        run.begun, run.met = False, 0
        self.told(1)
        if recorder is not None and recorder.stopped is None:
            value = recorder.find(tensors._array)
            if value is not None and value.source is not None:
                self._pending.append((recorder, len(recorder.calls), value))
        else:
            run.alone += 1
            run.begun = True


def _states() -> tuple[Any, ...]:
    """Return the states of the thread that belong to the run that executes."""
    asked = overrides.state
    return local.state, recording.depth, asked.modes, asked.asks, _disabled.message


def _set_states(states: tuple[Any, ...]) -> None:
    """Put the states of a run in their place."""
    asked = overrides.state
    local.state, recording.depth, asked.modes, asked.asks, _disabled.message = states


def _abandon(step: Any) -> None:
    """End a step that has found its arrays, but shall not be made."""
    with suppress(StopIteration):
        step.throw(Bailout())


@contextmanager
def _streams(scheduler: Scheduler) -> Iterator[None]:
    """Let the functions of `random` and `numpy.random` use the streams of the run that calls them."""
    changed: list[tuple[Any, str, Any]] = []
    for module, owner, name in ((random, random._inst, "random"), (np.random, np.random.mtrand._rand, "numpy")):
        for key, function in list(vars(module).items()):
            if getattr(function, "__self__", None) is owner:
                changed.append((module, key, function))
                setattr(module, key, _dispatched(scheduler, function, name, key))
    try:
        yield
    finally:
        for module, key, function in changed:
            setattr(module, key, function)


def _dispatched(scheduler: Scheduler, function: Any, name: str, key: str) -> Callable[..., Any]:
    """Return a function that calls the method `key` of a run's stream."""

    def call(*args: Any, **kwargs: Any) -> Any:
        run = scheduler.current
        if run is None:
            return function(*args, **kwargs)
        if key == "seed" and args and isinstance(args[0], int):
            args = ((args[0] + run.seed) % 2**32, *args[1:])
        return getattr(getattr(run, name), key)(*args, **kwargs)

    call.__name__, call.__doc__ = key, function.__doc__
    return call


__all__ = ["Run", "Scheduler", "Stopped"]
