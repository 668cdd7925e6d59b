"""`python -m tinytorch`: run a program for PyTorch with tinytorch as `torch`.

usage: python -m tinytorch SCRIPT [ARGS ...]
       python -m tinytorch -m MODULE [ARGS ...]
       python -m tinytorch -c CODE [ARGS ...]
       python -m tinytorch sweep [--set NAME=VALUE,...] SCRIPT [ARGS ...]
       python -m tinytorch doctor [--report FILE] SCRIPT [ARGS ...]
       python -m tinytorch as-torch [--undo]
       python -m tinytorch --version

The first three forms are those of Python itself; in the program, and in all
processes that it starts, `import torch` imports tinytorch. `sweep` runs a
training script with several seeds and settings together (`sweep --help`).
`doctor` runs a training script, watches it, and says what keeps the network
from learning (`doctor --help`). `as-torch` installs the name in the
environment: a distribution named torch, with the version of PyTorch that
tinytorch follows, and a constraint for pip to keep it (`pip.conf`).
`as-torch --undo` removes it.
"""

from __future__ import annotations

import difflib
import os
import subprocess
import sys

from tinytorch import _version
from tinytorch.compat import alias


def options() -> list[str]:
    """Return the options of Python itself, before `-m tinytorch`: ['-X', 'dev']."""
    before = sys.orig_argv[1 : len(sys.orig_argv) - len(sys.argv) + 1]
    if not before or not before[-1].endswith("tinytorch"):
        return []
    last = before.pop().removesuffix("tinytorch") or before.pop()
    rest = last.removesuffix("m")  # "-u" of "-um tinytorch"
    return before if rest == "-" else [*before, rest]


def run(arguments: list[str]) -> int:
    """Replace this process by Python running the program, with the folder of the name `torch` on its path.

    Since Python itself runs it, exit codes, `sys.argv`, `__main__`, tracebacks and signals are unchanged.
    """
    if sys.flags.ignore_environment:
        print("python -E and -I keep the name torch from the program: do without them", file=sys.stderr)
        return 2
    path = [str(alias.FOLDER), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(path)
    command = [sys.executable, *options(), *arguments]
    if os.name == "nt":  # Windows's `execv` does not wait for the new process
        return subprocess.call(command)
    sys.stdout.flush()
    os.execv(command[0], command)


def change(undone: bool) -> int:
    """Install the name `torch` in the environment, or remove it; print the files."""
    try:
        files = alias.undo() if undone else alias.as_torch()
    except (RuntimeError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    shown: list[object] = [file for file in files if file.suffix != ".pyi"]
    if len(shown) < len(files):
        shown.append(f"{len(files) - len(shown)} stubs of torch, for type checkers (.pyi)")
    print("nothing to remove" if not files else "removed:" if undone else "written:", *shown, sep="\n  ")
    if not undone:
        print("`import torch` is tinytorch here now: run your programs, and pip install packages that require torch.")
    return 0


def main(arguments: list[str]) -> int:
    """Run a command line; return the exit code."""
    if arguments and arguments[0] == "as-torch" and arguments[1:] in ([], ["--undo"]):
        return change(bool(arguments[1:]))
    if arguments in (["--version"], ["-V"]):
        print(
            f"tinytorch {_version.__version__} (the API of PyTorch {_version.PYTORCH}), Python {sys.version.split()[0]}"
        )
        return 0
    asks = arguments[arguments[:1] == ["as-torch"] :][:1]
    if asks in ([], ["-h"], ["--help"]):
        print(__doc__)
        return 0 if asks else 2
    if arguments[0] == "as-torch":
        print(f"python -m tinytorch as-torch: unknown argument {asks[0]}", file=sys.stderr)
        return 2
    commands = {"sweep": "tinytorch.compiler.sweep", "doctor": "tinytorch.inspect.doctor", "as-torch": ""}
    if module := commands.get(arguments[0]):
        return run(["-m", module, *arguments[1:]])
    close = [] if os.path.exists(arguments[0]) else difflib.get_close_matches(arguments[0], commands, 1)
    if close:
        print(f"{arguments[0]}: no such file or command; did you mean {close[0]!r}?", file=sys.stderr)
        return 2
    return run(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
