"""The doctor: it watches a program, suspects, proves by counterfactuals, and reports."""

from __future__ import annotations

import functools
import json
import math
import os
import struct
import sys
import time
from typing import Any

import numpy as np

from tinytorch._atomic import check_writable
from tinytorch.core.terminal import Status, wrapped
from tinytorch.inspect.doctor.checks import Check, all_checks
from tinytorch.inspect.doctor.checks.trials import Guess, Trials
from tinytorch.inspect.doctor.course import Course
from tinytorch.inspect.doctor.finding import Finding, Trial
from tinytorch.inspect.doctor.judging import judged, score, series, tail
from tinytorch.inspect.doctor.limits import LIMITS
from tinytorch.inspect.doctor.page import page
from tinytorch.inspect.doctor.patches import Patch
from tinytorch.inspect.doctor.place import Place, is_users
from tinytorch.inspect.doctor.replay import Order, Replay
from tinytorch.inspect.doctor.watch import Watch

__all__ = ["Doctor", "Stopped"]


class Stopped(BaseException):
    """Ends a program after the number of steps that was asked for."""


class Doctor:
    """Watch the training in a `with` block and find out why a network does not learn as it should.

    Of every mistake that it suspects it takes some of the steps again with the mistake undone, in a copy of the
    process; what removed the symptom is proven, and is reported first.

    Args:
        *objects: the model and the optimizer; they may be left out, since what the block calls is watched.
        report: a file for the report: a page if its name ends with ".html", else JSON.
        show: print the report at the end of the block, on standard error.
        weak: also report suspicions that no counterfactual has confirmed and that may be meant.
        seconds: the most time that proofs may take; None for as long as the block took, at least 12 s and at most 60 s.
        steps: end the program (with `Stopped`) after this many backward passes.
        bar: show what it is at, on a terminal.

    Attributes:
        findings: what was found, the proven first; filled at the end of the block.

    Raises:
        RuntimeError: another doctor is at work.
        OSError: the report could not be written.

    Example:
        >>> model = torch.nn.Linear(2, 1)
        >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        >>> x, y = torch.ones(4, 2), torch.ones(4, 1)
        >>> with torch.inspect.Doctor(model, optimizer, show=False) as doctor:
        ...     for _ in range(10):
        ...         loss = torch.nn.functional.mse_loss(model(x), y)
        ...         loss.backward()
        ...         optimizer.step()
        >>> [finding.cause for finding in doctor.findings]
        ['zero_grad-missing']
    """

    _at_work: Doctor | None = None

    def __init__(
        self,
        *objects: Any,
        report: str | None = None,
        show: bool = True,
        weak: bool = False,
        seconds: float | None = None,
        steps: int | None = None,
        bar: bool = False,
    ) -> None:
        self.report, self.show, self.weak, self.seconds, self.steps, self.bar = report, show, weak, seconds, steps, bar
        if report is not None:
            check_writable(report)
        self.findings: list[Finding] = []
        self.notes: list[str] = []
        self.tried: list[dict[str, Any]] = []  # what counterfactuals showed
        self.tried_for = 0.0  # seconds
        self.error: BaseException | None = None
        self.checks: list[Check] = [each(self) for each in all_checks()]
        self.watch = Watch(self.checks, self._start, self._after_backward)
        self.replay = Replay(self._become)
        self.exact: bool | None = None
        self._broken_at = 0  # the backward pass at which a loss was not finite first
        self._processed = 0.0  # seconds of processor time when the block began
        self._controls: dict[tuple[str, int], dict[str, Any]] = {}
        self._patches: set[Any] = set()  # what has been tried: names and options
        self._trials = 0  # those that are still to be made
        self._says = "looking again"  # what is tried
        self._status: Status | None = None
        self._started = False

    # Watching ---------------------------------------------------------------------------------------

    def __enter__(self) -> Doctor:
        if Doctor._at_work is not None:
            raise RuntimeError("another doctor is at work: one program can be watched at a time")
        Doctor._at_work = self
        self._processed = time.process_time()
        self.watch.install()
        if self.bar:
            self._status = Status()
        return self

    def __exit__(self, kind: Any, error: BaseException | None, where: Any) -> bool:
        if self.replay.order is not None:  # a copy has come to the end of the program
            self.replay.send("" if error is None else f"{type(error).__name__}: {error}")
        self.error = error
        print(end="", flush=True)  # (in a pipe, what the program printed comes before the report)
        self.watch.remove()
        Doctor._at_work = None
        try:
            if error is None or isinstance(error, (Exception, Stopped, SystemExit, KeyboardInterrupt)):
                with np.errstate(all="ignore"):
                    self._diagnose()
        finally:
            self.replay.close()
            if self._status is not None:
                self._status.close()
        if self.report:
            self._write()
        if self.show:
            print(wrapped(self.text(), sys.stderr), file=sys.stderr)
        return isinstance(error, Stopped)

    def _start(self) -> None:
        """Keep a copy of the process before training."""
        if not self._started:
            self._started = True
            self.replay.keep("first", self.watch.backwards)

    def _after_backward(self) -> None:
        order, watch = self.replay.order, self.watch
        if order is not None:
            self.replay.taken[:] = struct.pack("<Q", watch.backwards)
            if watch.backwards >= order.steps:
                self.replay.send()
            return
        self._tell(f"watching, {watch.backwards} steps in {watch.seconds():.0f} s", runs=True)
        if not self._broken_at:
            values = [curve.values[-1] for curve in watch.curves.values() if curve.steps[-1] == watch.backwards]
            if values and not math.isfinite(values[0]):
                self._broken_at = watch.backwards
            elif self._due():
                self.replay.rename("recent", "older")
                self.replay.keep("recent", watch.backwards)
        if self.steps is not None and watch.backwards >= self.steps:
            raise Stopped

    def _due(self) -> bool:
        """Return whether it is time for a copy: copies take about one part in fifty of the time.

        The system copies a page of memory when it is written to first, which takes some twenty times as long in all as
        the fork (30 ms after 2 ms, of a process of 65 MB).
        """
        now, replay = time.perf_counter(), self.replay
        return now - replay.last > max(1.0, 50 * 20 * replay.spent / max(replay.made, 1))

    def _tell(self, text: str, runs: bool = False) -> None:
        if self._status is not None:
            self._status.show(f"doctor: {text}", runs)

    def _become(self, order: Order) -> None:
        self._status = None
        self.watch.become(order.patch)

    # Diagnosing -------------------------------------------------------------------------------------

    @property
    def broken_at(self) -> int:
        """The number of the first backward pass from a loss, or to a gradient, that is not finite; 0 if none is."""
        return self._broken_at

    def note_broken(self) -> None:
        """Note that the gradients of the last backward pass are not finite."""
        self._broken_at = self._broken_at or self.watch.backwards

    @functools.cached_property
    def course(self) -> Course:
        """How training went; asked for at the end."""
        return Course(self.watch, self.watch.kinds)

    @functools.cached_property
    def guess(self) -> float | None:
        """The loss of the best constant prediction, if it is known what the loss is."""
        return self._guess.value()

    @functools.cached_property
    def _guess(self) -> Guess:
        return next((check for check in self.checks if isinstance(check, Guess)), Guess(self))

    @property
    def untrained(self) -> float | None:
        """The loss of predictions of zero, or of a constant guess, if that is known: a new model's is about as high."""
        sizes = [np.abs(y.astype(np.float64)) for y in self._guess.targets]
        power = {"square": 2, "apart": 1}.get(self._guess.kind)
        return max([self.guess, *[float((y**power).mean()) for y in sizes if power]]) if self.guess else None

    @property
    def poor(self) -> bool:
        """Whether the loss is not well below a constant's, or has hardly fallen where that is not known."""
        course = self.course
        if course.count < 10 or not course.supervised:
            return False
        if self.guess is None:
            return course.stagnates
        return not course.last < LIMITS["share of a constant's loss"] * self.guess

    @property
    def stuck(self) -> bool:
        """Whether the loss stays where a constant's is, or has hardly fallen where that is not known."""
        course = self.course
        beside = self.guess is None or not course.last < LIMITS["as a constant"] * self.guess
        return self.poor and course.stagnates and beside

    def standing(self) -> str:
        """Say how far the loss is from a constant's."""
        course = self.course
        if not course.count:
            return "No loss was seen."
        mean = f" (the mean of the last {course.count // 10})" if course.count >= 20 else ""
        text = f"The loss went from {course.begin:.4g} to {course.last:.4g}{mean} in {course.count} steps"
        if self.guess is None:
            return text + "."
        return text + f"; the best constant guess has {self.guess:.4g}."

    def made_of(self, names: str) -> Place | None:
        """Return where a layer of one of some classes was made."""
        for info in self.watch.models.values():
            for each in info.module.modules():
                if type(each).__name__ in names.split() and id(each) in self.watch.made_at:
                    return self.watch.made_at[id(each)]
        return None

    def initialized_at(self) -> Place | None:
        """Return where the program itself writes the initial values of a parameter."""
        watch = self.watch
        for info in watch.models.values():
            for name, p in info.parameters.items():
                place = watch.filled_at(p)
                owner = info.module.get_submodule(name.rpartition(".")[0])
                if place is not None and place != watch.made_at.get(id(owner)):
                    return place
        return None

    def error_place(self) -> Place | None:
        """Return the program's line at which it failed."""
        trace = self.error.__traceback__ if self.error is not None else None
        found = None
        while trace is not None:
            if is_users(trace.tb_frame):
                found = Place(trace.tb_frame.f_code.co_filename, trace.tb_lineno, trace.tb_frame.f_code.co_name)
            trace = trace.tb_next
        return found

    def before(self, step: int) -> str:
        """Return the name of the last point of time kept before a backward pass."""
        copies = [(copy.backwards, name) for name, copy in self.replay.copies.items() if copy.backwards < step]
        return max(copies)[1] if copies else "first"

    def run(self, name: str, patches: list[Patch], steps: int) -> list[dict[str, Any] | None]:
        """Return what copies see that go on from a point of time, each with a patch."""
        left = self._until - time.monotonic()
        if left <= 0.2:
            return [None for _ in patches]
        more = f" ({self._trials} trials left)" if self._trials > 1 else ""

        def tell(taken: int) -> None:
            self._tell(f"{self._says}, step {taken} of {steps}{more}")

        try:
            return self.replay.run(name, patches, steps, left, tell)
        except KeyboardInterrupt:
            self._until = 0.0
            self.notes.append("interrupted: not all that is suspected was tried")
            return [None for _ in patches]

    def _diagnose(self) -> None:
        elapsed, began = self.watch.seconds(), time.monotonic()
        # A busy machine makes steps slow: they get as much longer.
        slowness = min(max(elapsed / max(time.process_time() - self._processed, 0.1), 1.0), 4.0)
        budget = self.seconds if self.seconds is not None else min(max(elapsed, 12.0 * slowness), 60.0 * slowness)
        self._until = began + budget
        hindrance = self.replay.hindrance()
        if hindrance:
            self.notes.append(f"nothing could be proven: {hindrance}")
        suspicions: list[Finding] = []
        for check in self.checks:
            try:
                suspicions += check.finish()
            except Exception as error:
                self.watch.failures.append(f"{type(check).__name__}.finish failed: {type(error).__name__}: {error}")
        self.notes += self.watch.failures
        suspicions.sort(key=lambda each: (not each.certain, each.rank))
        self._trials = sum(len(each.trials) for each in suspicions if not each.proven)
        found = self._best([each for each in suspicions if self._stands(each)])
        found.sort(key=lambda each: (not each.proven, each.rank))
        first: dict[Any, Finding] = {}
        for each in found:
            first.setdefault((each.cause, each.place), each)
        self.findings = list(first.values())
        self._drop_consequences()
        if not self.findings and not hindrance and self.watch.backwards >= 8:
            self._try_others(elapsed)
        self.tried_for = time.monotonic() - began

    def _try_others(self, elapsed: float) -> None:
        """Take steps again with one thing changed that needs no cause to be guessed, and note what came of it."""
        self._until = min(self._until, time.monotonic() + max(0.5 * elapsed, 2.0))
        rows = next(check.panel() for check in self.checks if isinstance(check, Trials))
        self._trials = len(rows)
        for says, patch in rows:
            if (patch.name, repr(patch.options)) not in self._patches:
                self._proof(Trial(patch, "", says=f"with {says}"))
            self._trials -= 1

    def _best(self, found: list[Finding]) -> list[Finding]:
        """Leave out what was proven by trying alone, if trying something else gets much further."""
        tried = [each for each in found if each.losses and each.general]
        count = min([len(each.losses) for each in tried], default=0)
        ends = {id(each): tail(each.losses[:count]) for each in tried}
        # (What is far below a guess is learned, be it more or less.)
        least = max(2 * min(ends.values(), default=0.0), LIMITS["learned"] * (self.guess or 0.0))
        if min(ends.values(), default=0.0) <= 0:
            return found
        # What follows from a cause is still seen, but no trial of it helps.
        helped = bool(tried) and not self.weak
        return [each for each in found if (ends[id(each)] <= least if id(each) in ends
                                           else each.proven or each.rank < 4 or not helped)]  # fmt: skip

    def _drop_consequences(self) -> None:
        """Drop general findings where a more special one is proven."""
        best = min((each.rank for each in self.findings if each.proven or each.certain), default=99)
        self.findings = [
            each for each in self.findings
            if best >= 5 or each.rank <= best + 2 or (each.proven and each.rank < 5)
        ]  # fmt: skip
        special = [each for each in self.findings if each.rank < 7]
        if special:
            self.findings = special

    def steps_for(self, start: str) -> int:
        """Return how many steps a counterfactual takes: at most those of the program, and as time permits."""
        copy = self.replay.copies.get(start)
        begun = copy.backwards if copy is not None else 0
        total = self.watch.backwards - begun
        per_step = self.watch.seconds() / max(self.watch.backwards, 1)
        left = max(self._until - time.monotonic(), 0)
        shares = min(self._trials, 5) + 1
        return max(min(total, 400, int(left / shares / max(per_step * 1.5, 1e-5))), min(total, 8))

    def _stands(self, each: Finding) -> bool:
        """Return whether a suspicion is proven, certain, or asked for."""
        for trial in [] if each.proof else each.trials:
            each.proof = self._proof(trial, each)
            self._trials -= 1
            if each.proof:
                each.remedy = trial.remedy or each.remedy
                break
        return each.proven or each.certain or self.weak

    def _proof(self, trial: Trial, finding: Finding | None = None) -> str:
        start = self.before(trial.step) if trial.start == "before" else trial.start
        if start not in self.replay.copies:
            start = "first"
        if start not in self.replay.copies:
            return ""
        self._says = trial.says or "as it was"
        self._patches.add((trial.patch.name, repr(trial.patch.options)))
        kept = self.replay.copies[start].backwards
        steps = trial.step - kept + 10 if trial.start == "before" else self.steps_for(start)
        control = self._known(start, steps)
        if control is not None:
            other = self.run(start, [trial.patch], steps)[0]
        else:
            control, other = self.run(start, [Patch(), trial.patch], steps)
            self._compare(start, steps, control)
        if control is None:
            return ""
        if other is not None:
            a, b = series(control)[0], series(other)[0]
            n = min(len(a), len(b))
            if n:
                self.tried.append({"says": trial.says, "steps": n, "loss": tail(b[:n]), "unchanged": tail(a[:n])})
        proof = judged(trial.judge, control, other, trial.says, finding is not None and finding.certain)
        if not proof or finding is None or other is None or trial.judge == "finite":
            return proof
        if finding.general and not self._is_good(other):
            return ""
        finding.losses = series(other)[0]
        return proof

    def _is_good(self, result: dict[str, Any]) -> bool:
        """Return whether what was learned is better than a constant guess, where that is known."""
        losses, scores = series(result)
        found, guess = score("accuracy", scores), self.guess
        if guess is None or tail(losses) < LIMITS["as a constant"] * guess:
            return True
        return found is not None and found[0] - self._guess.most > max(0.04, 2 * found[1])

    def _known(self, start: str, steps: int) -> dict[str, Any] | None:
        """Return what was seen when the steps were taken again unchanged, if they were."""
        return next((x for (name, count), x in self._controls.items() if name == start and count >= steps), None)

    def _compare(self, start: str, steps: int, result: dict[str, Any] | None) -> None:
        """Compare the steps that were taken again unchanged with what was seen before: every bit must be the same."""
        if result is None:
            return
        self._controls[start, steps] = result
        begun = self.replay.copies[start].backwards
        curves = self.watch.curves.values()
        seen = {step: value for each in curves for step, value in zip(each.steps, each.values, strict=True)}
        again = {begun + 1 + k: value for k, value in enumerate(result["values"])}
        differ = [step for step, value in again.items() if step in seen and not _same(seen[step], value)]
        self.exact = (self.exact is not False) and not differ
        if differ:
            self.notes.append(f"taken again, step {differ[0]} differs: the program is not reproducible")

    # Reporting --------------------------------------------------------------------------------------

    def text(self) -> str:
        """Return the report as text."""
        watch = self.watch
        seen = f"{watch.backwards} backward passes in {watch.seconds():.1f} s"
        parts = [f"doctor: {len(self.findings) or 'no'} finding{'s' * (len(self.findings) != 1)} ({seen})"]
        parts += [str(each) for each in self.findings] or [self._seen()]
        if self.notes:
            parts.append("\n".join(f"note: {each}" for each in self.notes))
        return "\n\n".join(parts)

    def _seen(self) -> str:
        """Say what was looked at, and what was tried."""
        watch = self.watch
        lines = [self.standing()]
        seen = [", ".join([info.name for info in watch.models.values()][:5]) or "no module"]
        for what, each, infos, count in (
            ("step", "optimizer", watch.optimizers, sum(info.steps for info in watch.optimizers.values())),
            ("batch", "loader", watch.loaders, sum(info.batches for info in watch.loaders.values())),
        ):
            seen += [f"{_counted(count, what)} of {_counted(len(infos), each)}"] if infos else []
        if not watch.optimizers:
            seen.append(f"{_counted(watch.updates, 'update')} by the program itself")
        lines.append(f"Seen: {'; '.join(seen)}.")
        if self.tried:
            lines.append(f"Tried, in {self.tried_for:.1f} s:")
        lines += [f"  {each['says']}: a loss of {each['loss']:.4g} rather than {each['unchanged']:.4g} after "
                  f"{each['steps']} steps" for each in self.tried]  # fmt: skip
        lines.append("This does not mean that the program is right: no test data were compared.")
        return "\n".join(lines)

    def as_dict(self) -> dict[str, Any]:
        """Return the report, with all curves, as an object for JSON."""
        watch = self.watch
        curves = [
            {"file": place.file, "line": place.number, "steps": curve.steps,
             "losses": [_plain(x) for x in curve.values], "seconds": curve.times}
            for place, curve in watch.curves.items()
        ]  # fmt: skip
        layers: dict[str, Any] = {}
        for check in self.checks:
            layers.update(check.series())
        return {
            "findings": [each.as_dict() for each in self.findings], "notes": self.notes, "exact": self.exact,
            "guess": self.guess, "standing": self.standing(), "tried": self.tried, "tried_for": self.tried_for,
            "backwards": watch.backwards, "seconds": watch.seconds(), "curves": curves,
            "rates": [list(each) for each in watch.rates], "layers": layers,
            "error": None if self.error is None else f"{type(self.error).__name__}: {self.error}",
        }  # fmt: skip

    def _write(self) -> None:
        assert self.report is not None
        name = os.path.basename(sys.argv[0])
        text = page(self.as_dict(), name) if self.report.endswith((".html", ".htm")) else json.dumps(self.as_dict())
        with open(self.report, "w", encoding="utf-8") as file:
            file.write(text)


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 'es' if what.endswith('ch') else 's'}"


def _plain(x: float) -> float | None:
    return x if math.isfinite(x) else None


def _same(a: float, b: float) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b))
