"""`python -m tinytorch`: run a program that was written for PyTorch, with tinytorch under its name.

usage: python -m tinytorch SCRIPT [ARGS ...]
       python -m tinytorch -m MODULE [ARGS ...]
       python -m tinytorch -c CODE [ARGS ...]
       python -m tinytorch as-torch [--undo]

The first three are Python's own ways to run a program. For this one, and for all that it starts, `import torch` is
tinytorch. `as-torch` makes it so for the whole environment, and for pip: a distribution named torch is then installed,
of the version that tinytorch follows, and pip is told to keep it (`pip.conf`). `as-torch --undo` takes it out again.
"""

from __future__ import annotations

import os
import subprocess
import sys

from tinytorch import alias


def options() -> list[str]:
    """Return the options that Python itself was given before `-m tinytorch`: ['-X', 'dev']."""
    given = sys.orig_argv[1 : len(sys.orig_argv) - len(sys.argv) + 1]
    if not given or not given[-1].endswith("tinytorch"):
        return []
    last = given.pop().removesuffix("tinytorch") or given.pop()
    rest = last.removesuffix("m")  # of "-um tinytorch", "-u"
    return given if rest == "-" else [*given, rest]


def run(arguments: list[str]) -> int:
    """Become a Python that runs a program, with PyTorch's name on its path.

    It is Python that runs it, so all is as ever: exit codes, `sys.argv`, `__main__`, tracebacks, signals.
    """
    if sys.flags.ignore_environment:
        print("python -E and -I keep the name torch from the program: do without them", file=sys.stderr)
        return 2
    path = [str(alias.FOLDER), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(path)
    command = [sys.executable, *options(), *arguments]
    if os.name == "nt":  # where `execv` starts another process, and ends this one at once
        return subprocess.call(command)
    sys.stdout.flush()
    os.execv(command[0], command)


def change(undone: bool) -> int:
    """Give the environment PyTorch's name, or take it away; say what was written or removed."""
    try:
        files = alias.undo() if undone else alias.as_torch()
    except (RuntimeError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    print("nothing to remove" if not files else "removed:" if undone else "written:", *files, sep="\n  ")
    return 0


def main(arguments: list[str]) -> int:
    """Do what a command line says; return the exit code."""
    if arguments and arguments[0] == "as-torch" and arguments[1:] in ([], ["--undo"]):
        return change(bool(arguments[1:]))
    if not arguments or arguments[0] in ("-h", "--help", "as-torch"):
        print(__doc__)
        return 0 if arguments[:1] in (["-h"], ["--help"]) else 2
    return run(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
