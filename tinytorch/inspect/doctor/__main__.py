"""Run a training script, watch it, and find out why it does not learn.

The script needs no change. Each mistake that is suspected is undone in a copy
of the process, which takes some steps again; what removed the symptom is proven
and reported first. Ctrl-C ends the script, and then what is tried. The exit
status is 1 with findings, 0 without, and 2 if the script failed, or 130 if it
was interrupted, and the doctor found nothing else.
"""

from __future__ import annotations

import argparse
import json
import os
import runpy
import sys

from tinytorch.core.terminal import failed, interrupted
from tinytorch.inspect.doctor.doctor import Doctor


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(
        "python -m tinytorch doctor", "%(prog)s [options] SCRIPT [ARGS ...]", __doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--steps", type=int, metavar="N", help="end the script after N backward passes")
    parser.add_argument("--seconds", type=float, metavar="S", help="the most time for proofs (as long as the script)")
    parser.add_argument("--report", metavar="FILE", help="write the report as a page (.html) or as JSON (.json)")
    parser.add_argument("--all", action="store_true", help="also what could not be proven and may be meant")
    parser.add_argument("--json", action="store_true", help="print the report as JSON on standard output")
    parser.add_argument("--quiet", action="store_true", help="do not show what it is at")
    parser.add_argument("-m", action="store_true", dest="module", help="SCRIPT is the name of a module")
    parser.add_argument("script", metavar="SCRIPT", help="the training script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGS", help="its arguments").required = False
    options = parser.parse_args(arguments)

    sys.argv = [options.script, *options.arguments]
    if not options.module:
        sys.path[0] = os.path.dirname(os.path.abspath(options.script))
    try:
        doctor = Doctor(
            report=options.report, show=not options.json, weak=options.all, seconds=options.seconds,
            steps=options.steps, bar=not options.quiet,
        )  # fmt: skip
    except OSError as error:
        parser.exit(2, f"{parser.prog}: can't write the report: {error}\n")
    status, began = 0, True
    try:
        with doctor:
            try:
                if options.module:
                    runpy.run_module(options.script, run_name="__main__", alter_sys=True)
                else:
                    runpy.run_path(options.script, run_name="__main__")
            except Exception as error:
                began = doctor.replay.order is not None or failed(error, parser.prog)  # (nobody sees a copy's)
                if not began:
                    doctor.show, doctor.report = False, None
                raise
    except SystemExit as end:
        status = 0 if end.code in (None, 0) else 2
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except KeyboardInterrupt as error:
        status = 130
        if error is not doctor.error:
            return interrupted("doctor")
    except Exception:
        status = 2
    if options.json and began:
        print(json.dumps(doctor.as_dict()))
    return 1 if doctor.findings else status


if __name__ == "__main__":
    sys.exit(main())
