"""Programs with a mistake: the table tests/inspect/mistakes.txt, what its programs print, and the page that shows it.

    python -m scripts.website.mistakes    # write into the table what its programs print with tinytorch

A program of the table begins with the line `== NAME: TITLE`, or `== NAME in MODULE: TITLE` if the error happens in a
module: its path in the model, or its class if the path is empty. A program whose first line is not an import begins
with `import torch` and, if it uses `nn`, `from torch import nn`, which the table leaves out. Some lines are not part of
the program, but about the line before them:

    #! CODE    corrects it, in the only way that the values at hand allow
    #: CODE    corrects it, in a way that only the author of the program can know
    #| CODE    is another correction, as likely as the one before it
    #> TEXT    is printed for the error that leaves this line: a line of its message, or of its notes

What a note has to name as the remedy is in backticks in a correction. The corrected program runs. The notes `at ...`
(where the error leaves) and `remedy: ...` (what is in backticks) are not written out.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import io
import linecache
import logging
import re
import tempfile
import traceback
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tinytorch.core.notes import annotate

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "tests" / "inspect" / "mistakes.txt"
_HEAD = re.compile(r"== (?P<name>\w+)(?: in (?P<module>\S+))?: (?P<title>.*)")
_REMARK = re.compile(r" *#([!:|>]) (.*)")


@dataclass(eq=False)
class Program:
    """A program with a mistake.

    Attributes:
        name: its name; `file` is that of its file.
        title: what the mistake is.
        module: the path of the module in which the error happens, or its class if the path is empty; or "".
        lines: its lines; `source` is its text, and `corrected` that of the corrected program.
        right: the corrections, by the number of the line that each takes the place of.
        determined: whether the values at hand determine the corrections.
        others: other corrections that are as likely.
        remedies: what a note has to name, with the number of the line of its correction.
        printed: what is printed for the error, as far as the table states it.
        place: the number of the line that the error leaves.
    """

    name: str
    title: str
    module: str
    lines: list[str]
    right: dict[int, str] = field(default_factory=dict)
    determined: bool = False
    others: list[str] = field(default_factory=list)
    remedies: list[tuple[int, str]] = field(default_factory=list)
    printed: list[str] = field(default_factory=list)
    place: int = 0

    @property
    def file(self) -> str:
        """The name of its file."""
        return f"{self.name}.py"

    @property
    def source(self) -> str:
        """The text of the program."""
        return "\n".join(self.lines) + "\n"

    @property
    def wrong(self) -> list[str]:
        """The lines that are corrected."""
        return [self.lines[number - 1].strip() for number in self.right]

    @property
    def corrected(self) -> str:
        """The text of the corrected program."""
        lines = list(self.lines)
        for number, code in self.right.items():
            lines[number - 1] = indent(lines[number - 1]) + code
        return "\n".join(lines) + "\n"


def indent(line: str) -> str:
    """Return the spaces at the beginning of a line."""
    return line[: len(line) - len(line.lstrip())]


def head_of(text: str) -> list[str]:
    """Return the lines at the beginning of a program that the table leaves out."""
    if text.startswith(("import ", "from ")):
        return []
    imports = ["import torch", *["from torch import nn"] * bool(re.search(r"(?<![\w.])nn\.", text))]
    return [*imports, "", *[""] * text.startswith(("class ", "def ", "@"))]


def parsed(part: str) -> Program:
    """Return a program from its part of the table."""
    head, _, text = part.rstrip("\n").partition("\n")
    said = _HEAD.fullmatch(head)
    if said is None:
        raise ValueError(f"{TABLE.name}: {head!r} is not the beginning of a program")
    program = Program(said["name"], said["title"], said["module"] or "", head_of(text))
    for line in text.split("\n"):
        remark = _REMARK.fullmatch(line)
        if remark is None:
            program.lines.append(line)
            continue
        kind, text = remark.groups()
        number = len(program.lines)
        if kind == ">":
            program.printed.append(text)
            program.place = number
            continue
        program.remedies += [(number, code) for code in re.findall(r"`([^`]*)`", text)]
        code = text.replace("`", "")
        if kind == "|":
            program.others.append(code)
        else:
            program.right[number] = code
            program.determined = kind == "!"
    return program


def parts_of_table() -> list[str]:
    """Return the parts of the table, a program each."""
    return re.split(r"^(?=== )", TABLE.read_text("utf-8"), flags=re.MULTILINE)[1:]


@functools.cache
def programs() -> dict[str, Program]:
    """Return the programs of the table, by name."""
    found = [parsed(part) for part in parts_of_table()]
    return {program.name: program for program in found}


# What programs print ------------------------------------------------------------------------------


class Outcome(NamedTuple):
    """What a program printed, and what that names.

    Attributes:
        text: the traceback, as Python prints it.
        kind, message: the class of the error, and its message.
        said: the lines of the message and of the notes.
        place: the number of the program's line that the error leaves.
        module: whether the module is named.
        line: whether the user's line is the end of the traceback, or in a note; `cause`: the line to change.
        remedies: the remedies in the notes.
        remedy: the right remedy that is named, or "".
    """

    text: str
    kind: str
    message: str
    said: list[str]
    place: int
    module: bool
    line: bool
    cause: bool
    remedies: list[str]
    remedy: str


def with_tinytorch(text: str) -> str:
    """Return a program that imports tinytorch in the place of PyTorch."""
    text = re.sub(r"^import torch$", "import tinytorch as torch", text, flags=re.MULTILINE)
    return re.sub(r"^(import|from) torch\b", r"\1 tinytorch", text, flags=re.MULTILINE)


def run(program: Program, library: str, corrected: bool = False) -> BaseException | None:
    """Run a program in this process with a library, in an empty folder; return the error that ended it."""
    text = program.corrected if corrected else program.source
    linecache.cache[program.file] = (len(text), None, text.splitlines(True), program.file)
    code = compile(text if library == "torch" else with_tinytorch(text), program.file, "exec")
    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)  # PyTorch's compiler also logs the errors that it raises
    with (
        tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()),
        warnings.catch_warnings(action="ignore"),
    ):  # fmt: skip
        try:
            exec(code, {"__name__": "__main__", "__file__": program.file})
        except Exception as error:
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next  # without this function
            return error
        finally:
            logging.disable(level)
    return None


def cleaned(text: str) -> str:
    """Return a traceback without what depends on the version of Python and the place of packages."""
    text = re.sub(r"^ *[~^][~^ ]*\n", "", text, flags=re.MULTILINE)  # marks below a line
    text = re.sub(r"\.? Did you mean:? '\w+'\?$", "", text, flags=re.MULTILINE)
    text = re.sub(r"(super.*) \(.* is not (an instance or subtype of type) .*", r"\1 must be \2", text)
    text = re.sub(r'File "[^"]*?/((?:site-packages/)?(?:tinytorch|torch|numpy)/[^"]*)"', r'File ".../\1"', text)
    return text.replace(".../site-packages/", ".../").rstrip()


def outcome(program: Program, error: BaseException) -> Outcome:
    """Return what an error says: with tinytorch's notes, if they have been added."""
    frames = traceback.extract_tb(error.__traceback__)
    place = next((frame.lineno or 0 for frame in reversed(frames) if frame.filename == program.file), 0)
    message = str(error)
    _, frame, said = cleaned("".join(traceback.format_exception_only(error))).rpartition('  File "')
    said = [line.strip() for line in said.split("\n")[2 if frame else 0 :]]  # (a message of a worker has frames)
    notes = "\n".join(str(note) for note in getattr(error, "__notes__", ()))
    line = frames[-1].filename == program.file or f"{program.file}:{place}" in notes
    places = {*map(int, re.findall(rf"{re.escape(program.file)}:(\d+)", notes)), *[place] * line}
    remedies = re.findall(r"^ *remedy(?: at \S+)?: (.*)$", notes, re.MULTILINE)
    remedy = next((each for each in remedies if is_right(each, program)), "")
    if not remedy:
        fresh = names_of(program.right.values()) - names_of(program.wrong)
        remedy = " ".join(sorted(name for name in fresh if re.search(rf"\b{re.escape(name)}\b", message)))
    path = rf"(?<![\w.]){re.escape(program.module)}(?![\w.]\w)"
    return Outcome(
        text=cleaned("".join(traceback.format_exception(error))),
        kind=type(error).__name__,
        message=message,
        said=[each for each in said if each],
        place=place,
        module=bool(program.module) and re.search(path, f"{message}\n{notes}") is not None,
        line=line,
        cause=not places.isdisjoint(program.right),
        remedies=remedies,
        remedy=remedy,
    )


def is_right(remedy: str, program: Program) -> bool:
    """Return whether a remedy is part of the corrected lines, or of another correction."""
    return any(_plain(remedy) in _plain(line) for line in [*program.right.values(), *program.others])


def names_of(lines: Iterable[str]) -> set[str]:
    """Return the identifiers in some lines."""
    return {name for line in lines for name in re.findall(r"[A-Za-z_]\w*", line)}


def _plain(text: str) -> str:
    return re.sub(r"\s+", "", text).replace("'", '"')


@functools.cache
def ours(program: Program) -> Outcome:
    """Return what a program prints with tinytorch."""
    error = run(program, "tinytorch")
    if error is None:
        raise AssertionError(f"{program.name} raises no error")
    annotate(error)  # as `sys.excepthook` does
    return outcome(program, error)


@functools.cache
def theirs(program: Program) -> Outcome | None:
    """Return what a program prints with PyTorch; None if it raises no error."""
    from torch.distributions import Distribution

    Distribution.set_default_validate_args(True)  # PyTorch's compiler, which a program calls, turns it off for all
    error = run(program, "torch")
    return None if error is None else outcome(program, error)


def implied(program: Program, place: int) -> list[str]:
    """Return the notes that the table does not write out, of an error that leaves a line."""
    printed = [line for line in program.printed if not line.startswith("at ")]
    named = len(printed) > 1 or bool(program.remedies)  # (else the package knows nothing of the error)
    return [f"at {program.file}:{place}: {program.lines[place - 1].strip()}"] * named + [
        f"remedy: {code}" if number == place else f"remedy at {program.file}:{number}: {code}"
        for number, code in program.remedies
    ]


def written_part(part: str) -> str:
    """Return the part of a program in the table, with what it prints."""
    program = programs()[part.split(maxsplit=2)[1].rstrip(":")]
    found = ours(program)
    others = implied(program, found.place)
    start = indent(program.lines[found.place - 1])
    printed = [f"{start}#> {line}" for line in found.said if line not in others]
    head, *lines = [line for line in part.rstrip("\n").split("\n") if not re.match(" *#> ", line)]
    result, number = [head], len(head_of("\n".join(lines)))
    for line in lines:
        if _REMARK.fullmatch(line) is None:
            result += printed if number == found.place else []
            number += 1
        result.append(line)
    result += printed if number == found.place else []
    return "\n".join(result) + "\n"


# How much is named --------------------------------------------------------------------------------

ROWS = (("module", "module"), ("line", "line"), ("line to change", "cause"), ("remedy", "remedy"))


def share(name: str, found: dict[Program, Outcome | None]) -> tuple[int, int]:
    """Return in how many outcomes something is named, and in how many programs there is something to name."""
    has = {"module": lambda program: bool(program.module), "remedy": lambda program: program.determined}
    those = [program for program in found if has.get(name, lambda _: True)(program)]
    return sum(bool(each and getattr(each, name)) for each in map(found.get, those)), len(those)


# The pages ----------------------------------------------------------------------------------------

#: The groups, a page each: its title, and what is in the lines to correct, or in the title, of its programs. A program
#: belongs to the first group that fits.
GROUPS = {
    "data": ("Data sets, loaders, NumPy", r"Load|[Dd]ata ?set|collate|ampler|getitem|numpy|np\.|arrays?\b|batch_size"),
    "saving": ("Saving and loading", r"torch\.(save|load)|state_dict|pickle|files?\b|saved|loaded"),
    "sequences": (
        "Recurrent layers, attention, embeddings",
        r"LSTM|GRU|RNN|[Tt]ransformer|[Mm]ultihead|[Aa]ttention|mbed|pack|pad_sequence|einsum|tokens?\b",
    ),
    "optimizers": ("Optimizers and schedules", r"optim|LR\b|schedul|clip_grad|SGD|Adam|learning rate|\.step\("),
    "losses": ("Losses and labels", r"[Ll]oss|entropy|criterion|labels?\b|targets?\b|BCE|MSE|NLL"),
    "gradients": ("Gradients", r"backward|grad|detach|in place|autograd|vmap|hook|\.data\b|requires"),
    "layers": ("Layers and models", r"nn\.|super\(|[Ll]ayer|[Mm]odule|[Mm]odel|net\b|forward|[Cc]onv|pool|norm|self\."),
    "tensors": ("Tensors: shapes, dtypes, names", ""),
}
INTRODUCTION = """\
# What mistakes print

Each of these {count} programs has one mistake that people make, and ends with an error in both libraries. Its class and
its message are PyTorch's; what tinytorch knows besides stands in notes below it. [Errors](errors.md) says what they
are, and in how many of the programs they name the module, the line and the remedy.

{determined} mistakes have a correction that follows from the values at hand; in the others ("other corrections are
possible") only their author knows it. The corrected programs run.
"""


def group_of(program: Program) -> str:
    """Return the group that a program belongs to."""
    text = "\n".join([program.title, *program.wrong, *program.right.values()])
    return next(group for group, (_, words) in GROUPS.items() if re.search(words, text))


def section(program: Program, own: Outcome, other: str) -> str:
    """Return the section of a program: its text, what it prints with tinytorch, and PyTorch's message."""
    more = "" if program.determined else " (other corrections are possible)"
    right = "\n".join(f"{code}  # line {number}" for number, code in program.right.items())
    right += "".join(f"\n# or {code}" for code in program.others)
    return (
        f"## {program.title} {{ #{program.name} }}\n\n``` {{ .python .run }}\n{program.source}```\n\n"
        f"```text\n{end_of(own.text)}\n```\n\n{other}Corrected{more}:\n\n```python\n{right}\n```\n"
    )


def end_of(text: str) -> str:
    """Return what is printed from the last frame on."""
    lines = text.split("\n")
    start = max(k for k, line in enumerate(lines) if line.startswith('  File "'))
    return "\n".join(["Traceback (most recent call last):", *["  ..."] * (start > 1), *lines[start:]])


def of_pytorch(program: Program) -> str:
    """Return what the page says of PyTorch's error."""
    found = theirs(program)
    if found is None:
        return "PyTorch: no error.\n\n"
    files = re.findall(r'File "([^"]*)"', found.text)
    depth = len(files) - 1 - max(k for k, name in enumerate(files) if name == program.file)
    message = " ".join(found.message.split())
    message = re.sub(r"/\S*/(?:site-packages|lib)/", ".../", message)
    shown = message if len(message) <= 300 else f"{message[:297]}..."
    below = f", below {depth} frame{'s' * (depth > 1)} of its own" if depth > 0 else ""
    return f"PyTorch{below}: `{found.kind}: {shown}`\n\n"


def written() -> dict[str, str]:
    """Return the pages, by their paths in the site; they say what PyTorch prints if PyTorch is installed."""
    found = programs().values()
    compared = importlib.util.find_spec("torch") is not None
    index = [INTRODUCTION.format(count=len(found), determined=sum(program.determined for program in found))]
    pages = {}
    for group, (title, _) in GROUPS.items():
        mine = sorted((program for program in found if group_of(program) == group), key=lambda program: program.title)
        parts = [section(program, ours(program), of_pytorch(program) if compared else "") for program in mine]
        pages[f"mistakes/{group}.md"] = "\n".join([f"# {title}\n", *parts])
        index += [f"## [{title}](mistakes/{group}.md)\n"]
        index += [f"- [{program.title}](mistakes/{group}.md#{program.name})" for program in mine] + [""]
    return {"mistakes.md": "\n".join(index), **pages}


if __name__ == "__main__":
    TABLE.write_text("\n".join(map(written_part, parts_of_table())), "utf-8")
