#!/usr/bin/env python
"""Write the pictures in docs/, by running the examples of pages and of README.md.

python scripts/make_docs_picture.py            # write it
python scripts/make_docs_picture.py --check    # fail if it is not up to date
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
from pathlib import Path
from typing import Any

import tinytorch

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGE, DRAWING = DOCS / "autograd.md", DOCS / "autograd.svg"
MODELS, MODEL = DOCS / "pictures.md", DOCS / "model.svg"
README, FIRST = ROOT / "README.md", DOCS / "readme.svg"


def drawn(page: str, heading: str) -> Any:
    """Return the picture that the examples of a section draw."""
    section = page.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line[4:] for line in section.splitlines() if line.startswith((">>> ", "..."))]
    return ran("\n".join(lines))["drawn"]


def ran(code: str) -> dict[str, Any]:
    """Run code in an empty folder, and return its names."""
    names: dict[str, Any] = {"torch": tinytorch, "nn": tinytorch.nn, "inspect": tinytorch.inspect}
    printed = contextlib.redirect_stdout(io.StringIO())
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), printed:
        exec(code, names)
    return names


def written() -> dict[Path, str]:
    """Return the up-to-date contents of the files."""
    picture = drawn(PAGE.read_text("utf-8"), "A picture of the graph")
    model = drawn(MODELS.read_text("utf-8"), "A drawing of a model")
    first = README.read_text("utf-8").split("```python\n")[1].split("```")[0]
    svg = {DRAWING: picture.svg, MODEL: model.svg, FIRST: ran(first)["drawing"].svg}
    return {path: text + "\n" for path, text in svg.items()}


if __name__ == "__main__":
    for path, text in written().items():
        if "--check" not in sys.argv[1:]:
            path.write_text(text, "utf-8")
        elif not path.exists() or path.read_text("utf-8") != text:
            sys.exit(f"run scripts/make_docs_picture.py: {path.name} is stale")
