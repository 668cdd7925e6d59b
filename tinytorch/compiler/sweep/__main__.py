"""Run a training script with several seeds and settings, its steps together.

  python -m tinytorch sweep train.py                   8 seeds
  python -m tinytorch sweep --seeds 4 --set lr=1e-3,3e-3 train.py
                                                       4 seeds of each rate
  python -m tinytorch sweep --seeds 0,7 --show 0 train.py --epochs 5
                                                       the script's options last

The script needs no change, whether it imports torch or tinytorch. A setting
NAME is its option `--NAME`, if it has one; else the constants of that name in
its text: `lr = 1e-3`, `def main(lr=1e-3)`, `SGD(..., lr=1e-3)`,
`{"lr": 1e-3}`. Each run has its own random numbers; seeds that the script sets
itself are shifted by the run's seed, so that seed 0 is the script as it is.
Each run's results are those of running it alone.

The table has a row for each run: its last and its least loss, its steps, the
share of them that was made together with other runs, and the curve. Below it
stands why runs were apart, with the line.
"""

from __future__ import annotations

import argparse
import io
import itertools
import os
import sys
import warnings
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from typing import Any

from tinytorch._atomic import check_writable
from tinytorch.compiler.sweep import together
from tinytorch.compiler.sweep.scheduler import Scheduler
from tinytorch.compiler.sweep.script import neighbours, planned
from tinytorch.core.terminal import failed, interrupted, wrapped
from tinytorch.inspect.plots import check_plot


class _Output(io.TextIOBase):
    """A stream that shows what one run writes, or none."""

    def __init__(self, stream: Any, scheduler: Scheduler, shown: int | None) -> None:
        self.stream, self.scheduler, self.shown = stream, scheduler, shown

    def write(self, text: str) -> int:
        """Write a text of the run that is shown, or of no run."""
        run = self.scheduler.current
        if run is None or run.number == self.shown:
            self.stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush the stream."""
        self.stream.flush()

    def isatty(self) -> bool:
        """Return whether it is a terminal."""
        return bool(self.stream.isatty())


def _setting(text: str) -> tuple[str, list[str]]:
    name, equals, values = text.partition("=")
    if not (name.isidentifier() and equals and values):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE,VALUE,...")
    return name, values.split(",")


def _seeds(text: str) -> list[int]:
    try:
        return [int(x) for x in text.split(",")] if "," in text else list(range(int(text)))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number nor a list of seeds") from None


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(
        "python -m tinytorch sweep", "%(prog)s [options] SCRIPT [ARGS ...]", __doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument(
        "--seeds", type=_seeds, default=list(range(8)), metavar="N|SEED,...",
        help="the number of seeds, or the seeds: 0,5,7 (default: 8)",
    )  # fmt: skip
    parser.add_argument("--set", type=_setting, action="append", default=[], metavar="NAME=VALUE,...", dest="settings",
                        help="the values of a setting; several settings are combined with each other")  # fmt: skip
    parser.add_argument("--csv", metavar="FILE", help="write the curves as a table: run, settings, seed, step, loss")
    parser.add_argument("--plot", metavar="FILE", help="draw the curves (with matplotlib)")
    parser.add_argument(
        "--show", type=int, metavar="RUN", help="show what the run of this number prints (the others are silent)"
    )
    parser.add_argument("script", metavar="SCRIPT", help="the training script: its steps are the calls of backward()")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGS", help="its own ones").required = False
    options = parser.parse_args(arguments)
    settings = dict(options.settings)
    combinations = [dict(zip(settings, values, strict=True)) for values in itertools.product(*settings.values())]
    try:
        if options.csv:
            check_writable(options.csv)
        if options.plot:
            check_plot(options.plot)
        programs = planned(options.script, options.arguments, settings, combinations)
    except (ImportError, OSError, SyntaxError, ValueError) as error:
        print(f"sweep: {error}", file=sys.stderr)
        return 2
    runs = [(seed, values, body, argv) for values, argv, body in programs for seed in options.seeds]

    def run(scheduler: Scheduler) -> None:
        for each, (_, _, _, argv) in zip(scheduler.runs, runs, strict=True):
            each.arguments = argv
        stack.enter_context(redirect_stdout(_Output(sys.stdout, scheduler, options.show)))
        stack.enter_context(redirect_stderr(_Output(sys.stderr, scheduler, options.show)))

    folder = os.path.dirname(os.path.abspath(options.script))
    try:
        with ExitStack() as stack, warnings.catch_warnings(), neighbours(folder):
            found = together([each[:3] for each in runs], options.show is None, run)
    except KeyboardInterrupt:
        return interrupted("sweep")
    except Exception as error:
        failed(error, "sweep")
        return 1
    print(wrapped(str(found), sys.stdout))
    if options.csv:
        found.csv(options.csv)
    if options.plot:
        found.plot(options.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
