"""The files of the playground, made when the site is built: examples, and archives of what Pyodide has not.

The page is `page.md`, its code `playground.js`; `worker.js` runs Python, by `runtime.py`. Where all that comes from is
said in `config.json`; the addresses there are relative to the folder `playground` of the site:

    pyodide    the folder of a release of Pyodide (its address ends in a slash)
    packages   what is loaded from there at the beginning
    optional   what is loaded from there for a program that matches a pattern
    archives   zip files that are unpacked into Python's packages: `tinytorch.zip` and `tqdm.zip` are made here
    kernels    the native kernels, a file that `scripts/build_wasm.py` builds; null for none

If `build/wasm/_native.abi3.so` exists (`python scripts/build_wasm.py build/wasm`), it becomes a part of the site, and
`kernels` its address. (One that is older than its sources is left out, with a warning.)
"""

from __future__ import annotations

import ast
import importlib.metadata
import io
import json
import logging
import zipfile
from collections.abc import Sequence
from pathlib import Path

import tinytorch
from scripts.website import mistakes
from scripts.website.executed import Step, replaced, steps

ROOT = Path(__file__).resolve().parents[3]
FOLDER = Path(__file__).resolve().parent
KERNELS = ROOT / "build" / "wasm" / "_native.abi3.so"
#: Files of the page that are used as they are.
PLAIN = ("playground.js", "playground.css", "worker.js", "runtime.py", "figures.py")

#: Files of tinytorch that the playground does not need: sources of the native kernels, libraries of this system, stubs.
UNUSED = (".pyc", ".pyi", ".c", ".h", ".so")

#: The examples: title, file, and arguments of its command line. Of a page, all blocks are one program; of the table of
#: mistakes, the argument is the name of a program.
EXAMPLES = [
    ("Quickstart", "docs/start/quickstart.md", []),
    ("Two spirals", "docs/index.md", []),
    ("FashionMNIST, drawn", "train_fashion_mnist.py", ["--dataset", "drawn", "--epochs", "1", "--momentum", "0.9"]),
    ("Burgers' equation", "examples/pinn.py", ["--steps", "300", "--no-plot"]),
    ("A small GPT", "examples/char_gpt.py", ["--quick", "--text", "program.py"]),
    ("A GAN in the plane", "examples/gan_2d.py", ["--steps", "200"]),
    ("An error and its note", "tests/inspect/mistakes.txt", ["linear_after_flatten"]),
]


def part(step: Step) -> str | None:
    """Return what a part of a document contributes to the program of its page: blocks, files, and what is not shown.

    Hidden code that plots is left out: the playground draws curves itself, and matplotlib has to be loaded there.
    """
    if step.kind == "run" or (step.kind == "setup" and "matplotlib" not in step.text):
        return step.text
    if step.kind == "file":
        return f"import pathlib\n\npathlib.Path({step.said!r}).write_text({step.text!r})\n"
    return None


def program(path: Path) -> str:
    """Return the program that a page is."""
    found = [part(step) for step in steps(path.read_text("utf-8"))]
    return "\n\n".join(text.strip("\n") + "\n" for text in found if text is not None)


def with_buttons(document: str) -> tuple[str, list[str]]:
    """Return a document whose blocks can be opened in the playground, and the parts of its program.

    A block gets the class `run-K` if its program consists of the parts up to number K, and `run` if it stands alone, as
    one does that ends with an error.
    """
    found: list[str] = []
    changes = []
    for step in steps(document):
        text = part(step)
        if text is not None:
            found.append(text)
        if step.kind in ("run", "raises"):
            start = document.index("```python", step.span[0])
            name = "run" if step.kind == "raises" else f"run-{len(found) - 1}"
            changes.append(((start, start + len("```python")), f"``` {{ .python .{name} }}"))
    return replaced(document, changes), found


def with_parts(document: str, found: Sequence[str | list[str]]) -> str:
    """Return a document with the parts of its program, which `assets/run.js` puts together."""
    if not found:
        return document
    said = json.dumps(found).replace("</", "<\\/")
    return f'{document}\n\n<script type="application/json" id="parts-of-program">{said}</script>\n'


def with_arguments(code: str, arguments: list[str]) -> str:
    """Return a program that sets its arguments itself, after its docstring."""
    if not arguments:
        return code
    lines = code.splitlines(keepends=True)
    body = ast.parse(code).body
    is_docstring = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
    place = (body[0].end_lineno or 0) if is_docstring else 0
    given = f"\nimport sys\n\nsys.argv[1:] = {json.dumps(arguments)}  # the arguments of its command line\n"
    return "".join([*lines[:place], given, *lines[place:]])


def examples() -> list[dict[str, str]]:
    """Return the examples, each with its title and its code."""
    found = []
    for title, name, arguments in EXAMPLES:
        path = ROOT / name
        if path.suffix == ".md":
            code = program(path)
        elif path == mistakes.TABLE:
            code = mistakes.programs()[arguments[0]].source
        else:
            code = with_arguments(path.read_text("utf-8"), arguments)
        found.append({"title": title, "code": code})
    return found


def archive(files: dict[str, bytes]) -> bytes:
    """Return a zip file; the same files give the same bytes."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as made:
        for name, data in sorted(files.items()):
            made.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return stream.getvalue()


def package() -> dict[str, bytes]:
    """Return the files of tinytorch that a Python without a compiler needs."""
    folder = Path(tinytorch.__file__).parent
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix not in UNUSED]
    return {path.relative_to(folder.parent).as_posix(): path.read_bytes() for path in files}


def distribution(name: str) -> dict[str, bytes]:
    """Return the Python files and the licences of an installed distribution."""
    found = {}
    for path in importlib.metadata.files(name) or []:
        text = path.as_posix()
        if not text.startswith("..") and (path.suffix == ".py" or "LICEN" in path.name or path.name == "METADATA"):
            found[text] = Path(path.locate()).read_bytes()
    return found


def configuration() -> dict[str, object]:
    """Return config.json as the site has it."""
    said = json.loads((FOLDER / "config.json").read_text("utf-8"))
    if said["kernels"] is None and KERNELS.exists():
        sources = [
            path for path in (ROOT / "tinytorch" / "kernels" / "native").iterdir() if path.suffix in (".c", ".h")
        ]
        if max((path.stat().st_mtime for path in sources), default=0.0) <= KERNELS.stat().st_mtime:
            said["kernels"] = KERNELS.name
        else:
            again = f"python scripts/build_wasm.py {KERNELS.parent.relative_to(ROOT)}"
            logging.getLogger("mkdocs.playground").warning("%s is older than its sources: %s", KERNELS.name, again)
    return said  # type: ignore[no-any-return]


def written() -> dict[str, str | bytes]:
    """Return the files of the playground, by their paths in the site."""
    said = configuration()
    made: dict[str, str | bytes] = {name: (FOLDER / name).read_text("utf-8") for name in PLAIN}
    made["config.json"] = json.dumps(said, indent=2)
    made["examples.json"] = json.dumps(examples())
    made["tinytorch.zip"] = archive(package())
    made["tqdm.zip"] = archive(distribution("tqdm"))
    if said["kernels"] == KERNELS.name:
        made[KERNELS.name] = KERNELS.read_bytes()
    return {f"playground/{name}": content for name, content in made.items()} | {
        "playground.md": (FOLDER / "page.md").read_text("utf-8")
    }
