"""Write the pictures of graphs in docs/autograd.md (an SVG file and Mermaid text) and README.md, by running their code.

python scripts/make_docs_picture.py            # write it
python scripts/make_docs_picture.py --check    # fail if it is not up to date
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import tinytorch

ROOT = Path(__file__).resolve().parent.parent
PAGE, DRAWING = ROOT / "docs" / "autograd.md", ROOT / "docs" / "autograd.svg"
README, FIRST = ROOT / "README.md", ROOT / "docs" / "readme.svg"


def drawn(page: str) -> Any:
    """Return the picture that the examples of the section draw."""
    section = page.split("\n## A picture of the graph\n")[1].split("\n## ")[0]
    lines = [line[4:] for line in section.splitlines() if line.startswith((">>> ", "... "))]
    return ran("\n".join(lines))["drawn"]


def ran(code: str) -> dict[str, Any]:
    """Run code in an empty folder, and return its names."""
    names: dict[str, Any] = {"torch": tinytorch}
    printed = contextlib.redirect_stdout(io.StringIO())
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), printed:
        exec(code, names)
    return names


def written() -> dict[Path, str]:
    """Return the up-to-date contents of the files."""
    page = PAGE.read_text("utf-8")
    picture = drawn(page)
    block = f"```mermaid\n{picture.mermaid}\n```"
    page = re.sub(r"^```mermaid\n.*?^```$", lambda _: block, page, flags=re.M | re.S)
    first = README.read_text("utf-8").split("```python\n")[1].split("```")[0]
    return {PAGE: page, DRAWING: picture.svg + "\n", FIRST: ran(first)["drawing"].svg + "\n"}


if __name__ == "__main__":
    for path, text in written().items():
        if "--check" not in sys.argv[1:]:
            path.write_text(text, "utf-8")
        elif not path.exists() or path.read_text("utf-8") != text:
            sys.exit(f"run scripts/make_docs_picture.py: {path.name} is stale")
