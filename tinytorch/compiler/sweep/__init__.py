"""`torch.func.sweep`: many runs of one training program, with other seeds and settings, made together.

Small models are bound by calls rather than by arithmetic. The runs take turns in executing Python until each of them
has reached the compiled training step (`scheduler`); then the step is made in all of them at once, on stacks of their
arrays (`joint`, `updates`). `script` sweeps a program that was not written for it (`python -m tinytorch sweep`).
"""

from __future__ import annotations

import csv
import itertools
import math
import os
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tinytorch.compiler.compiled import Compiled
from tinytorch.compiler.sweep.scheduler import Run as _Run
from tinytorch.compiler.sweep.scheduler import Scheduler
from tinytorch.inspect import bars

__all__ = ["Run", "Sweep", "sweep"]


class Run:
    """A run of a sweep.

    Attributes:
        seed: of its random numbers.
        settings: the arguments that it got.
        losses: the loss of each step, that is what `backward` was called on: the curve.
        result: what the program returned.
        error: the exception that ended it, or None.
        together: the share of its steps that were made together with other runs.
        reason: why the others were not, with the line; empty if there are none.
    """

    def __init__(self, run: _Run, settings: dict[str, Any]) -> None:
        self.seed, self.settings, self.losses = run.seed, settings, run.losses
        self.result, self.error = run.result, run.error
        self.together = run.joint / (run.joint + run.alone) if run.joint else 0.0
        self.reason = re.sub(r" \[[^]]*\](?=:\d)", "", run.why_alone())  # (without the settings)

    @property
    def final(self) -> float:
        """The last loss; NaN if there is none."""
        return self.losses[-1] if self.losses else math.nan

    @property
    def best(self) -> float:
        """The least loss; NaN if there is none."""
        return min((x for x in self.losses if x == x), default=math.nan)

    def __repr__(self) -> str:
        return f"Run(seed={self.seed}, settings={self.settings}, final={self.final:.6g}, best={self.best:.6g})"


class Sweep(Sequence[Run]):
    """The runs of a sweep, in order; as text, a table.

    Attributes:
        runs: the runs.
    """

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs = list(runs)

    def __len__(self) -> int:
        return len(self.runs)

    def __getitem__(self, k: Any) -> Any:
        return self.runs[k]

    @property
    def best(self) -> Run:
        """The run that ended with the least loss."""
        return min(self.runs, key=lambda run: math.inf if run.final != run.final else run.final)

    def __str__(self) -> str:
        names = list(dict.fromkeys(name for run in self.runs for name in run.settings))
        rows = [["run", *names, "seed", "final", "best", "steps", "together", "curve"]]
        for k, run in enumerate(self.runs):
            cells = [str(run.settings.get(name, "")) for name in names]
            numbers = [f"{run.final:.6g}", f"{run.best:.6g}", str(len(run.losses)), f"{run.together:.0%}"]
            rows.append([str(k), *cells, str(run.seed), *numbers, _curve(run.losses)])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join([cell.rjust(n) for cell, n in zip(row, widths, strict=True)]) for row in rows]
        notes: dict[str, list[int]] = {}
        for k, run in enumerate(self.runs):
            if run.error is not None:
                notes.setdefault(f"{type(run.error).__name__}: {run.error}", []).append(k)
            elif run.reason and run.together < 0.9:  # (the first steps are always made alone)
                notes.setdefault(f"alone: {run.reason}", []).append(k)
        lines += [f"runs {', '.join(map(str, numbers))}: {note}" for note, numbers in notes.items()]
        return "\n".join(lines)

    def csv(self, path: str | os.PathLike[str]) -> None:
        """Write the curves as a table with the columns run, the settings, seed, step and loss."""
        names = list(dict.fromkeys(name for run in self.runs for name in run.settings))
        with open(path, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["run", *names, "seed", "step", "loss"])
            for k, run in enumerate(self.runs):
                cells = [run.settings.get(name, "") for name in names]
                writer.writerows([k, *cells, run.seed, step, repr(loss)] for step, loss in enumerate(run.losses))

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draw the curves into a file, by matplotlib.

        Raises:
            ImportError: matplotlib is not installed.
        """
        try:
            from matplotlib.figure import Figure
        except ModuleNotFoundError:
            raise ImportError("Sweep.plot draws with matplotlib: pip install matplotlib") from None
        figure = Figure(figsize=(8, 5), layout="constrained")
        axes = figure.subplots()
        labels = [", ".join([f"{name}={x}" for name, x in run.settings.items()]) for run in self.runs]
        colours = {label: f"C{k}" for k, label in enumerate(dict.fromkeys(labels))}
        for run, label in zip(self.runs, labels, strict=True):
            axes.plot(run.losses, color=colours[label], alpha=0.6, linewidth=1)
        for label, colour in colours.items():
            if label:
                axes.plot([], color=colour, label=label)
        axes.set(xlabel="step", ylabel="loss")
        if any(labels):
            axes.legend()
        figure.savefig(path)


def _curve(losses: Sequence[float], width: int = 16) -> str:
    """Return a curve as a line of blocks."""
    finite = [x for x in losses if math.isfinite(x)]
    if not finite:
        return ""
    low, high = min(finite), max(finite)
    parts = [losses[k * len(losses) // width : (k + 1) * len(losses) // width] for k in range(width)]
    means = [math.fsum(part) / len(part) for part in parts if part]
    blocks = "▁▂▃▄▅▆▇█"
    scale = (len(blocks) - 1) / (high - low) if high > low else 0.0
    return "".join([blocks[min(int((x - low) * scale), 7)] if math.isfinite(x) else "!" for x in means])


def sweep(
    make: Callable[..., Any], seeds: Iterable[int] | int = 8, steps: int | None = None, progress: bool = True,
    **settings: Any,
) -> Sweep:  # fmt: skip
    """Return the runs of a training program with several seeds and settings, made together.

    Every combination of a seed and of settings is one run. It has its own model, optimizer, order of data and random
    streams (of `torch`, `random` and `numpy.random`), and its curve is that of the same program run on its own after
    `torch.manual_seed(seed)`: bit for bit, but for products of matrices, which agree to rounding (1e-6). A seed that
    the program sets itself is shifted by the run's seed, so that seed 0 is the program as it is.

    Where runs do different things (a branch on a value, other shapes), each goes on by itself, and `Run.reason` says
    why, with the line.

    Args:
        make: with `steps`, a function that returns a training step: a function without arguments that does everything
            from the batch to `optimizer.step()`. It is compiled. Without `steps`, a function that trains to the end;
            compiled, too, with graph breaks.
        seeds: the seeds, or their number.
        steps: how often each run calls its step.
        progress: whether to show a bar, or a line at the end if the output is not a terminal.
        **settings: for each argument of `make` by name, a list of values, or one value for all runs.

    Raises:
        ValueError: there are no seeds, or a setting has no values.
        Exception: the error of the first run, if all of them fail. Otherwise `Run.error` has it.

    Example:
        >>> def make(lr):
        ...     model = torch.nn.Linear(3, 1)
        ...     optimizer = torch.optim.SGD(model.parameters(), lr=lr)
        ...     x, y = torch.randn(16, 3), torch.randn(16, 1)
        ...     def step():
        ...         loss = torch.nn.functional.mse_loss(model(x), y)
        ...         optimizer.zero_grad()
        ...         loss.backward()
        ...         optimizer.step()
        ...     return step
        >>> runs = torch.func.sweep(make, seeds=4, steps=20, progress=False, lr=[0.01, 0.1])
        >>> len(runs), len(runs[0].losses), runs.best.settings
        (8, 20, {'lr': 0.1})
    """
    numbers = list(range(seeds)) if isinstance(seeds, int) else list(seeds)
    values = {name: list(x) if isinstance(x, (list, tuple, range)) else [x] for name, x in settings.items()}
    if not numbers:
        raise ValueError("sweep() got no seeds")
    for name, x in values.items():
        if not x:
            raise ValueError(f"sweep() got no values of {name}")
    chosen = [dict(zip(values, each, strict=True)) for each in itertools.product(*values.values())]

    def body(options: dict[str, Any]) -> Callable[[], Any]:
        def whole() -> Any:
            if steps is None:
                return scheduler[0].compiles(Compiled(make, dynamic=False))(**options)
            step, left, result = scheduler[0].compiles(Compiled(make(**options), dynamic=False)), steps, None
            while left > 0:
                result = step()
                left -= 1
                left -= scheduler[0].repeated(step, left - 1)  # (the last one has the result)
            return result

        return whole

    scheduler: list[Any] = []
    planned = [(seed, options, body(options)) for options in chosen for seed in numbers]
    return together(planned, progress, scheduler.append)


def together(
    planned: Sequence[tuple[int, dict[str, Any], Callable[[], Any]]], progress: bool = True,
    chosen: Callable[[Scheduler], Any] | None = None,
) -> Sweep:  # fmt: skip
    """Return runs, made together.

    Args:
        planned: the seed, the settings and the program of each; runs with the same settings stand side by side.
        progress: whether to show a bar.
        chosen: gets the scheduler before it starts.
    """
    runs = [_Run(k, seed, body) for k, (seed, _, body) in enumerate(planned)]
    with bars.progress(unit=" steps", desc=f"{len(runs)} runs", disable=not progress) as bar:
        scheduler = Scheduler(runs, bar.update)
        if chosen is not None:
            chosen(scheduler)
        scheduler.start()
        joint, alone = sum([run.joint for run in runs]), sum([run.alone for run in runs])
        bar.set_postfix(together=f"{joint / max(joint + alone, 1):.0%}")
    made = [Run(run, settings) for run, (_, settings, _) in zip(runs, planned, strict=True)]
    if all(run.error is not None for run in made):
        raise made[0].error  # type: ignore[misc]
    return Sweep(made)
